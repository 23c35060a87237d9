//! One chain: where each value is born and first used, and which new values are used soon after an answer.
//!
//! How likely the lists of other sessions are to have a value, and the tails of the binomial distribution.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::id::{Id, IdMap};
use crate::base::names::Sym;
use crate::mine::projections::{ByValue, Key, Told, ValueSet};

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

/// A list of a tool, in one project or in all.
type Scope = (Sym, Sym, Option<Id>);

/// In how many answers each value stands, by scope.
pub(super) struct Donors {
    scopes: BTreeMap<Scope, Frequencies>,
    projects: Vec<Id>,
    donors_min: u64,
}

#[derive(Default)]
struct Frequencies {
    answers: u64,
    answers_by_session: IdMap<u32, u64>,
    /// By value.
    listing: ByValue<u64>,
    /// By value and session.
    listing_by_session: IdMap<(u64, u32), u64>,
}

impl Donors {
    /// Counts the answers with the lists of these combinations.
    pub fn of(told: Told<'_>, donors_min: u64, keys: &BTreeSet<Key>) -> Self {
        let wanted: BTreeSet<(Sym, Sym)> = keys.iter().map(|key| (key.from, key.extractor)).collect();
        let calls = 0..told.history.calls.len();
        let given: ValueSet = calls.clone().flat_map(|call| told.values.given(call)).map(|given| given.value).collect();
        let projects = told.history.sessions.iter().map(|session| session.project).collect();
        let mut donors = Self { scopes: BTreeMap::new(), projects, donors_min };
        for call in calls {
            let row = &told.history.calls[call];
            let session = told.history.chains[row.chain as usize].session;
            for (list, values) in
                told.values.lists(call).filter(|(list, _)| wanted.contains(&(row.tool, list.extractor)))
            {
                for project in [Some(donors.projects[session as usize]), None] {
                    let scope = donors.scopes.entry((row.tool, list.extractor, project)).or_default();
                    scope.answers += 1;
                    *scope.answers_by_session.entry(session).or_default() += 1;
                    // Only what was ever an argument is asked for.
                    for value in values.iter().map(|listed| listed.value).filter(|value| given.contains(value)) {
                        *scope.listing.entry(value).or_default() += 1;
                        *scope.listing_by_session.entry((value, session)).or_default() += 1;
                    }
                }
            }
        }
        donors
    }

    /// How likely it is that a list of another session, of the same project if that has enough of them, has one of these
    /// values.
    pub fn chance(&self, key: Key, session: u32, values: &BTreeSet<u64>) -> f64 {
        let of = |project| self.scopes.get(&(key.from, key.extractor, project));
        let others = |scope: &&Frequencies| scope.others(session) >= self.donors_min;
        let project = of(Some(self.projects[session as usize])).filter(others);
        let Some(scope) = project.or_else(|| of(None)).filter(|scope| scope.others(session) > 0) else { return 0.0 };
        1.0 - values.iter().map(|value| 1.0 - scope.share(*value, session)).product::<f64>()
    }
}

impl Frequencies {
    fn others(&self, session: u32) -> u64 {
        self.answers - self.answers_by_session.get(&session).copied().unwrap_or_default()
    }

    /// Share of the other sessions' answers that list a value.
    fn share(&self, value: u64, session: u32) -> f64 {
        let all = self.listing.get(&value).copied().unwrap_or_default();
        let own = self.listing_by_session.get(&(value, session)).copied().unwrap_or_default();
        (all - own) as f64 / self.others(session) as f64
    }
}

/// Tails of the binomial distribution, exact up to rounding.
pub struct Binomial {
    /// Logarithms of factorials.
    ln_factorial: Vec<f64>,
}

impl Binomial {
    /// For up to `trials_max` trials.
    pub fn new(trials_max: u64) -> Self {
        let logarithms = (1..=trials_max).scan(0.0, |sum, number| {
            *sum += (number as f64).ln();
            Some(*sum)
        });
        Self { ln_factorial: std::iter::once(0.0).chain(logarithms).collect() }
    }

    /// The probability of `k` or more successes in `n` trials.
    pub fn at_least(&self, k: u64, n: u64, p: f64) -> f64 {
        if k == 0 || p >= 1.0 {
            return 1.0;
        }
        if p <= 0.0 {
            return 0.0;
        }
        let ln = |number: u64| self.ln_factorial[number as usize];
        let term = |i: u64| (ln(n) - ln(i) - ln(n - i) + i as f64 * p.ln() + (n - i) as f64 * (-p).ln_1p()).exp();
        (k..=n).map(term).sum::<f64>().min(1.0)
    }
}
