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
    projects: Vec<Id>,
    donors_min: u64,
}

#[derive(Default)]
struct Frequencies {
    answers: u64,
    answers_by_session: IdMap<u32, u64>,
    listing: ByValue<u64>,
    listing_by_session: IdMap<(u64, u32), u64>,
}

impl Donors {
    /// Counts the answers with the lists of these combinations.
    pub fn of(told: ToldHistory<'_>, donors_min: u64, keys: &BTreeSet<LinkKey>) -> Self {
        let wanted: BTreeSet<(Sym, Sym)> = keys.iter().map(|key| (key.from, key.extractor)).collect();
        let calls = told.history.calls_of_chains();
        let given = calls.clone().flat_map(|(call, _)| told.values.given(call));
        let given: ValueSet = given.map(|given| given.value).collect();
        let projects = told.history.sessions.iter().map(|session| session.project).collect();
        let mut donors = Self { scopes: BTreeMap::new(), projects, donors_min };
        for (call, row) in calls {
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
    pub fn chance(&self, key: LinkKey, session: u32, values: &BTreeSet<u64>) -> f64 {
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
