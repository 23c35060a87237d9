//! One chain: where each value is born and first used, and which new values are used soon after an answer.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::mine::projections::{ByValue, Told};

/// In which direction a chain is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// A chain read in one direction. Times are step numbers, negative backwards.
pub(super) struct Chain {
    pub index: usize,
    pub session: u32,
    direction: Direction,
    /// When a list first had a value.
    born: ByValue<i64>,
    /// When a call first had it as an argument.
    used: ByValue<i64>,
}

/// An answer, and the new values that calls of the next steps were given.
pub(super) struct Passage {
    /// Its call.
    pub answer: usize,
    time: i64,
    /// By tool and argument.
    pub uses: BTreeMap<(Sym, Sym), Vec<Use>>,
}

/// A value given to a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Use {
    pub value: u64,
    pub call: usize,
}

impl Chain {
    /// Reads a chain of the history.
    pub fn of(told: Told<'_>, index: usize, direction: Direction) -> Self {
        let chain = &told.history.chains[index];
        let (born, used) = Default::default();
        let mut read = Self { index, session: chain.session, direction, born, used };
        for call in chain.calls.clone() {
            let time = read.time(told, call);
            let earliest = |times: &mut ByValue<i64>, value: u64| {
                times.entry(value).and_modify(|known| *known = time.min(*known)).or_insert(time);
            };
            told.values.given(call).iter().for_each(|given| earliest(&mut read.used, given.value));
            let listed = told.values.lists(call).flat_map(|(_, values)| values);
            listed.for_each(|listed| earliest(&mut read.born, listed.value));
        }
        read
    }

    fn time(&self, told: Told<'_>, call: usize) -> i64 {
        let step = i64::from(told.history.calls[call].step);
        if self.direction == Direction::Forward { step } else { -step }
    }

    /// Whether a value had not been used when the answer came.
    pub fn is_new(&self, value: u64, passage: &Passage) -> bool {
        self.used.get(&value).is_none_or(|used| *used > passage.time)
    }

    /// Every answer with a list after which, within so many steps and before the context is compacted, a call is given a
    /// value that no earlier call had and no earlier answer listed.
    pub fn each_passage(&self, told: Told<'_>, steps_max: u32, see: &mut dyn FnMut(&Passage)) {
        let range = told.history.chains[self.index].calls.clone();
        let calls = &told.history.calls;
        let (start, end) = (range.start, range.end);
        for answer in range {
            if told.values.lists(answer).next().is_none() {
                continue;
            }
            let mut passage = Passage { answer, time: self.time(told, answer), uses: BTreeMap::new() };
            let near = |call: &usize| calls[*call].step.abs_diff(calls[answer].step) <= steps_max;
            // Calls stand in the order of their steps.
            let later: Vec<usize> = match self.direction {
                Direction::Forward => (answer + 1..end).take_while(near).collect(),
                Direction::Backward => (start..answer).rev().take_while(near).collect(),
            };
            for call in later {
                self.take(told, call, &mut passage);
            }
            if !passage.uses.is_empty() {
                passage.uses.values_mut().for_each(|uses| uses.sort_unstable());
                see(&passage);
            }
        }
    }

    fn take(&self, told: Told<'_>, call: usize, passage: &mut Passage) {
        let time = self.time(told, call);
        let (then, now) = (&told.history.calls[passage.answer], &told.history.calls[call]);
        if time <= passage.time || then.partition != now.partition {
            return;
        }
        for given in told.values.given(call) {
            let is_first = self.used.get(&given.value) == Some(&time);
            let was_listed = self.born.get(&given.value).is_some_and(|born| *born < passage.time);
            if is_first && !was_listed {
                let uses = passage.uses.entry((now.tool, given.argument)).or_default();
                uses.push(Use { value: given.value, call });
            }
        }
    }
}

impl Passage {
    /// All values used.
    pub fn values(&self) -> Vec<u64> {
        let mut values: Vec<u64> = self.uses.values().flatten().map(|used| used.value).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}
