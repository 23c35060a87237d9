//! How likely the lists of other sessions are to have a value, and the tails of the binomial distribution.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::id::{Id, IdMap};
use crate::base::names::Sym;
use crate::mine::projections::{ByValue, LinkKey, ToldHistory, ValueSet};

/// A list of a tool, in one project or in all.
type Scope = (Sym, Sym, Option<Id>);

/// In how many answers each value stands, by scope.
pub(super) struct Donors {
    scopes: BTreeMap<Scope, Frequencies>,
    /// The same of each session, which is of one project.
    own: BTreeMap<(Sym, Sym), OwnFrequencies>,
    projects: Vec<Id>,
    donors_min: u64,
}

#[derive(Default)]
struct Frequencies {
    answers: u64,
    listing: ByValue<u64>,
}

/// By session; there are more of them than of all others.
#[derive(Default)]
struct OwnFrequencies {
    answers: IdMap<u32, u32>,
    /// By value and session. A key of halves leaves no gap before the count.
    listing: IdMap<((u32, u32), u32), u32>,
}

impl Donors {
    /// Counts the answers with the lists of these combinations.
    pub fn of(told: ToldHistory<'_>, donors_min: u64, keys: &BTreeSet<LinkKey>) -> Self {
        let wanted: BTreeSet<(Sym, Sym)> = keys.iter().map(|key| (key.from, key.extractor)).collect();
        let calls = told.history.calls_of_chains();
        let given = calls.clone().flat_map(|(call, _)| told.values.given(call));
        let given: ValueSet = given.map(|given| given.value).collect();
        let projects = told.history.sessions.iter().map(|session| session.project).collect();
        let (scopes, own) = (BTreeMap::new(), BTreeMap::new());
        let mut donors = Self { scopes, own, projects, donors_min };
        for (call, row) in calls {
            let session = told.history.chains[row.chain as usize].session;
            for (list, values) in
                told.values.lists(call).filter(|(list, _)| wanted.contains(&(row.tool, list.extractor)))
            {
                // Only what was ever an argument is asked for.
                let asked = || values.iter().map(|listed| listed.value).filter(|value| given.contains(value));
                for project in [Some(donors.projects[session as usize]), None] {
                    let scope = donors.scopes.entry((row.tool, list.extractor, project)).or_default();
                    scope.answers += 1;
                    asked().for_each(|value| *scope.listing.entry(value).or_default() += 1);
                }
                let own = donors.own.entry((row.tool, list.extractor)).or_default();
                *own.answers.entry(session).or_default() += 1;
                asked().for_each(|value| *own.listing.entry((halves(value), session)).or_default() += 1);
            }
        }
        donors
    }

    /// How likely it is that a list of another session, of the same project if that has enough of them, has one of these
    /// values.
    pub fn chance(&self, key: LinkKey, session: u32, values: &BTreeSet<u64>) -> f64 {
        let Some(own) = self.own.get(&(key.from, key.extractor)) else { return 0.0 };
        let of = |project| self.scopes.get(&(key.from, key.extractor, project));
        let others = |scope: &Frequencies| scope.answers - own.answers_of(session);
        let project = of(Some(self.projects[session as usize])).filter(|scope| others(scope) >= self.donors_min);
        let Some(scope) = project.or_else(|| of(None)).filter(|scope| others(scope) > 0) else { return 0.0 };
        let all = |value: &u64| scope.listing.get(value).copied().unwrap_or_default();
        let share = |value: &u64| (all(value) - own.listing_of(*value, session)) as f64 / others(scope) as f64;
        1.0 - values.iter().map(|value| 1.0 - share(value)).product::<f64>()
    }
}

fn halves(value: u64) -> (u32, u32) {
    (value as u32, (value >> 32) as u32)
}

impl OwnFrequencies {
    fn answers_of(&self, session: u32) -> u64 {
        self.answers.get(&session).copied().unwrap_or_default().into()
    }

    fn listing_of(&self, value: u64, session: u32) -> u64 {
        self.listing.get(&(halves(value), session)).copied().unwrap_or_default().into()
    }
}

/// Tails of the binomial distribution, exact up to rounding.
pub struct Binomial {
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
