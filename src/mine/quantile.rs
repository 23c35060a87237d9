//! Quantiles of weighted values: with sampling, one recorded value stands for several.

/// The smallest value that at least the share `q` (0 … 1) of all weight does not exceed (inverse of the empirical
/// distribution function). `sorted` holds values with their weights, ascending; none without weight.
pub fn quantile(sorted: &[(u64, f64)], q: f64) -> Option<u64> {
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
    found.or(sorted.last()).map(|(value, _)| *value)
}
