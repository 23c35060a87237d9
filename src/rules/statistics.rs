//! The statistics that rules stand on: their numbers, and how well they held on sessions that came later.

use serde::Deserialize;

use crate::base::backtest::{BacktestNumbers, Promise, PromiseCoverage};
use crate::base::bootstrap::Resampling;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::numbers::WEEK_MS;
use crate::logs::trace::Millis;
use crate::mine::follow_ups::FollowUps;
use crate::mine::follow_ups::bounds::{BoundNumbers, FollowUpThresholds};
use crate::mine::sizes::SizesBySession;
use crate::rules::t1_tools;

/// Name of the bounds of follow-up probabilities.
pub const FOLLOW_UPS: &str = "follow-up bounds";
/// Name of typical sizes.
pub const TYPICAL: &str = "typical sizes";
/// Name of largest sizes.
pub const LARGEST: &str = "largest sizes";

/// `rules/backtest.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BacktestThresholds {
    known_min: usize,
    later_min: usize,
    responses_max: usize,
    weeks_max: usize,
    tolerance: f64,
    resampling: Resampling,
    follow_ups: BoundNumbers,
    effects: Effects,
}

/// How effects are predicted and held against what came.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effects {
    /// Weeks that a forecast is about.
    horizon_weeks: i64,
    /// Share of the forecasts in whose interval the realised effect has to lie.
    pub promise: f64,
}

impl Effects {
    /// The time that a forecast is about.
    pub fn horizon_ms(&self) -> Millis {
        self.horizon_weeks * WEEK_MS
    }
}

/// How follow-ups are bounded and judged.
///
/// # Errors
/// If a sheet does not fit.
pub fn numbers(data: &Data) -> Result<FollowUpThresholds> {
    let BacktestThresholds {
        known_min, later_min, responses_max, weeks_max, tolerance, resampling, follow_ups, ..
    } = data.parsed("backtest.toml")?;
    let backtest = BacktestNumbers { known_min, later_min, responses_max, weeks_max, tolerance, resampling };
    Ok(FollowUpThresholds { backtest, bounds: follow_ups, links: t1_tools::link_numbers(data)? })
}

/// How effects are predicted and judged.
///
/// # Errors
/// If the sheet does not fit.
pub fn effects(data: &Data) -> Result<Effects> {
    Ok(data.parsed::<BacktestThresholds>("backtest.toml")?.effects)
}

/// The statistics of value models, each as it was known and as it held.
pub fn coverage(
    follow_ups: &FollowUps,
    sizes: &SizesBySession,
    calls_min: u64,
    numbers: &FollowUpThresholds,
) -> Vec<PromiseCoverage> {
    let of_sizes = |name, promise| sizes.coverage((name, "answers"), promise, calls_min, &numbers.backtest);
    vec![
        follow_ups.coverage(FOLLOW_UPS, numbers),
        of_sizes(TYPICAL, Promise::About(0.5)),
        of_sizes(LARGEST, Promise::AtLeast(0.99)),
    ]
}
