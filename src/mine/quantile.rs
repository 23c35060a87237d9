//! Quantiles of weighted values: with sampling, one recorded value stands for several.

use rayon::prelude::*;

use crate::base::names::Sym;

/// How many events of a group have one value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValueCount {
    /// Endpoint class or tool.
    pub group: Sym,
    /// The value.
    pub value: u32,
    /// Events.
    pub events: u64,
    /// Responses that they stand for.
    pub weight: f64,
}

/// The distinct values of each group, ascending. Each item is a group, a value and the weight of one event.
pub fn value_counts(items: impl ParallelIterator<Item = (Sym, u32, f64)>) -> Vec<ValueCount> {
    // A weight is positive, so its bits stand in the order of the weights: equal items are neighbours, and the sum does
    // not depend on who came first.
    let mut keys: Vec<(u32, u32, u64)> =
        items.map(|(group, value, weight)| (group.0, value, weight.to_bits())).collect();
    keys.par_sort_unstable();
    let mut counts = Vec::new();
    for same in keys.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let by_weight = same.chunk_by(|a, b| a.2 == b.2);
        let weight = by_weight.map(|run| run.len() as f64 * f64::from_bits(run[0].2)).sum();
        counts.push(ValueCount { group: Sym(same[0].0), value: same[0].1, events: same.len() as u64, weight });
    }
    counts
}

/// The smallest value that at least the share `q` (0 … 1) of all weight does not exceed (inverse of the empirical
/// distribution function). `sorted` holds values with their weights, ascending; none without weight.
pub fn quantile(sorted: &[(u32, f64)], q: f64) -> Option<u64> {
    let total: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    if total <= 0.0 {
        return None;
    }
    // A share such as 0.9 has no exact binary form: without the slack it would miss the value that it just reaches.
    let wanted = total * q * (1.0 - 1e-12);
    let mut reached = 0.0;
    let found = sorted.iter().find(|(_, weight)| {
        reached += weight;
        reached >= wanted
    });
    found.or(sorted.last()).map(|(value, _)| u64::from(*value))
}
