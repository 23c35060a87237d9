//! What a case is made of, by names that are neither projects nor models: kinds of agents, servers, hooks, versions.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::names::Sym;
use crate::whatif::sim::cost::Cost;

/// A part of a finding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Made {
    /// Its names, in the order of [`MadeOf::kinds`].
    pub names: Vec<String>,
    /// How often.
    pub count: u64,
    /// Dollars that it cost, as the bill has them.
    pub before_usd: f64,
    /// Dollars that are saved.
    pub saved_usd: f64,
}

/// Sums by name, for each session and model, so that they can be told of a part of the logs.
#[derive(Clone, Default)]
pub struct MadeOf {
    /// What the names are: `agent type`, `server`, `hook`, `version`, `model`.
    pub kinds: Vec<&'static str>,
    sums: BTreeMap<(Vec<String>, (u32, Sym)), FindingSum>,
}

/// How often, what it cost, what it would have cost.
#[derive(Clone, Copy, Default)]
struct FindingSum {
    count: u64,
    before: Cost,
    after: Cost,
}

impl MadeOf {
    /// Nothing so far.
    pub fn by(kinds: &[&'static str]) -> Self {
        Self { kinds: kinds.to_vec(), sums: BTreeMap::new() }
    }

    /// Adds what happened under some names: how often, what it cost, what it would have cost.
    pub fn add(&mut self, names: Vec<String>, key: (u32, Sym), count: u64, before: Cost, after: Cost) {
        let sum = self.sums.entry((names, key)).or_default();
        sum.count += count;
        sum.before += before;
        sum.after += after;
    }

    /// The rows of these sessions and models, those that save most first.
    pub fn rows(&self, inside: &[(u32, Sym)]) -> Vec<Made> {
        let inside: BTreeSet<&(u32, Sym)> = inside.iter().collect();
        let mut rows: BTreeMap<&Vec<String>, (u64, f64, f64)> = BTreeMap::new();
        for ((names, _), sum) in self.sums.iter().filter(|((_, key), _)| inside.contains(key)) {
            let [before, after] = [sum.before, sum.after].map(|cost| cost.nano_usd as f64 / 1e9);
            let row = rows.entry(names).or_default();
            (row.0, row.1, row.2) = (row.0 + sum.count, row.1 + before, row.2 + before - after);
        }
        let made = |(names, (count, before_usd, saved_usd)): (&Vec<String>, _)| Made {
            names: names.clone(),
            count,
            before_usd,
            saved_usd,
        };
        let mut rows: Vec<Made> = rows.into_iter().map(made).collect();
        rows.sort_by(|a, b| b.saved_usd.total_cmp(&a.saved_usd).then_with(|| a.names.cmp(&b.names)));
        rows
    }
}
