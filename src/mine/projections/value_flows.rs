//! One chain: where each value is born and first used, and which new values are used soon after a result.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::base::names::Sym;
use crate::mine::projections::{ByValue, ToldHistory};

/// In which direction a chain is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Forward,
    Backward,
}

impl Direction {
    fn time(self, told: ToldHistory<'_>, call: usize) -> i64 {
        let step = i64::from(told.history.calls[call].step);
        if self == Self::Forward { step } else { -step }
    }
}

/// A chain read in one direction. Times are step numbers, negative backwards.
pub(super) struct ReadChain {
    pub index: usize,
    pub session: u32,
    direction: Direction,
    /// When a call first had a value as an argument.
    used: ByValue<i64>,
    /// Call by call, the arguments that had a value first.
    firsts: Vec<First>,
    /// Where those of each call stand, from the first call of the chain on.
    places: Vec<Range<usize>>,
}

/// An argument with a value that no earlier call had.
struct First {
    argument: Sym,
    value: u64,
    /// When a list first had the value; [`i64::MAX`] if none did.
    born: i64,
}

/// An answer, and the new values that calls of the next steps were given.
pub(super) struct ValueFlow {
    pub answer: usize,
    time: i64,
    /// By tool and argument.
    pub uses: BTreeMap<(Sym, Sym), Vec<ValueUse>>,
}

/// A value given to a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ValueUse {
    pub value: u64,
    pub call: usize,
}

impl ReadChain {
    /// Reads a chain of the history.
    pub fn of(told: ToldHistory<'_>, index: usize, direction: Direction) -> Self {
        let chain = &told.history.chains[index];
        let time = |call| direction.time(told, call);
        let mut used: ByValue<i64> = ByValue::default();
        for call in chain.calls.clone() {
            for given in told.values.given(call) {
                used.entry(given.value).and_modify(|known| *known = time(call).min(*known)).or_insert(time(call));
            }
        }
        // Most of what is listed is never an argument.
        let mut born: ByValue<i64> = ByValue::default();
        for call in chain.calls.clone() {
            let listed = told.values.lists(call).flat_map(|(_, values)| values).map(|listed| listed.value);
            for value in listed.filter(|value| used.contains_key(value)) {
                born.entry(value).and_modify(|known| *known = time(call).min(*known)).or_insert(time(call));
            }
        }
        let mut firsts = Vec::new();
        let mut place = |call| {
            let start = firsts.len();
            let given = told.values.given(call).iter().filter(|given| used.get(&given.value) == Some(&time(call)));
            let born = |value| born.get(&value).copied().unwrap_or(i64::MAX);
            firsts.extend(given.map(|given| First {
                argument: given.argument,
                value: given.value,
                born: born(given.value),
            }));
            start..firsts.len()
        };
        let places = chain.calls.clone().map(&mut place).collect();
        Self { index, session: chain.session, direction, used, firsts, places }
    }

    /// Whether a value had not been used when the answer came.
    pub fn is_new(&self, value: u64, flow: &ValueFlow) -> bool {
        self.used.get(&value).is_none_or(|used| *used > flow.time)
    }

    /// Every answer with a list after which, within so many steps and before the context is compacted, a call is given a
    /// value that no earlier call had and no earlier answer listed.
    pub fn each_flow(&self, told: ToldHistory<'_>, steps_max: u32, see: &mut dyn FnMut(ValueFlow)) {
        let range = told.history.chains[self.index].calls.clone();
        let calls = &told.history.calls;
        let (start, end) = (range.start, range.end);
        for answer in range {
            if told.values.lists(answer).next().is_none() {
                continue;
            }
            let mut flow = ValueFlow { answer, time: self.direction.time(told, answer), uses: BTreeMap::new() };
            let step = calls[answer].step;
            let is_near = |call: &usize| calls[*call].step.abs_diff(step) <= steps_max;
            let mut take = |call| self.take(told, call, &mut flow);
            // Calls stand in the order of their steps; those of the own step are passed over at once.
            match self.direction {
                Direction::Forward => {
                    let own = calls[answer..end].partition_point(|call| call.step == step);
                    (answer + own..end).take_while(is_near).for_each(&mut take);
                }
                Direction::Backward => {
                    let earlier = calls[start..answer].partition_point(|call| call.step < step);
                    (start..start + earlier).rev().take_while(is_near).for_each(&mut take);
                }
            }
            if !flow.uses.is_empty() {
                flow.uses.values_mut().for_each(|uses| uses.sort_unstable());
                see(flow);
            }
        }
    }

    fn take(&self, told: ToldHistory<'_>, call: usize, flow: &mut ValueFlow) {
        let (then, now) = (&told.history.calls[flow.answer], &told.history.calls[call]);
        #[cfg(test)]
        crate::base::id::work::step();
        if then.partition != now.partition {
            return;
        }
        let place = &self.places[call - told.history.chains[self.index].calls.start];
        for first in self.firsts[place.clone()].iter().filter(|first| first.born >= flow.time) {
            let uses = flow.uses.entry((now.tool, first.argument)).or_default();
            uses.push(ValueUse { value: first.value, call });
        }
    }
}

impl ValueFlow {
    /// All values used.
    pub fn values(&self) -> Vec<u64> {
        let mut values: Vec<u64> = self.uses.values().flatten().map(|used| used.value).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}
