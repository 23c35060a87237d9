//! A prediction that was made before its week and what came in it: what a backtest counts coverage of.

use serde::Serialize;

/// Milliseconds of a week.
pub const WEEK_MS: i64 = 7 * 24 * 3_600_000;

/// One prediction and what came.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Forecast {
    /// Weeks since Thursday, 1 January 1970 (UTC). The prediction knows nothing of that week and of later ones.
    pub week: i64,
    /// What was predicted.
    pub predicted: f64,
    /// Lower end of its interval.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// What came.
    pub came: f64,
}

impl Forecast {
    /// Whether what came lies in the interval, ends included.
    pub fn holds(&self) -> bool {
        (self.lower..=self.upper).contains(&self.came)
    }
}

/// The week of a time in milliseconds since 1970.
pub fn week_of(ms: i64) -> i64 {
    ms.div_euclid(WEEK_MS)
}

/// The value at a share of sorted values, by the nearest rank; none of nothing.
pub fn at_share(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil().max(1.0) as usize;
    sorted.get(rank.min(sorted.len()).checked_sub(1)?).copied()
}

/// A range in which the next of exchangeable values lies at least so often (split conformal prediction): so many ranks off either end.
/// None while there are too few values for it.
pub fn next_within(values: &[f64], share: f64) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    // The next one is as likely in any of the n + 1 gaps.
    let off = ((1.0 - share) / 2.0 * (n + 1.0)).floor() as usize;
    let place = off.checked_sub(1)?;
    Some((sorted[place], sorted[sorted.len() - off]))
}
