//! Forecasts, each made of what was known at its week and held against what came: where a ratio over sessions will lie
//! in sessions to come, as wide as the past asks for, and how often it did.

use serde::Serialize;

use crate::base::backtest::{BacktestNumbers, Promise, PromiseCoverage, SessionSplit};
use crate::base::bootstrap::{Resampling, TAIL, below};
use crate::base::numbers::WEEK_MS;

/// One session: an effect, and the whole that it is a part of.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SessionEffect {
    /// The effect.
    pub effect: f64,
    /// The whole.
    pub of: f64,
}

/// A week with what was known then, and what came after it.
#[derive(Clone, PartialEq, Debug)]
pub struct ForecastWeek {
    /// The week, as in [`SessionSplit::week_ms`].
    pub week_ms: i64,
    /// When what came had come.
    pub until_ms: i64,
    /// The sessions that the forecast stands on.
    pub known: Vec<SessionEffect>,
    /// The sessions that it is about.
    pub came: Vec<SessionEffect>,
}

/// The effect as a share of the whole; none of nothing.
pub fn ratio(parts: &[SessionEffect]) -> Option<f64> {
    let (effect, of) = parts.iter().fold((0.0, 0.0), |(effect, of), part| (effect + part.effect, of + part.of));
    (of > 0.0).then(|| effect / of)
}

/// The ratio, and by how much the one of `coming` sessions may lie below and above it, in 95 of 100 cases: both what is known
/// and what comes are drawn from the known sessions.
pub fn ahead(known: &[SessionEffect], coming: usize, resampling: &Resampling) -> Option<(f64, [f64; 2])> {
    let told = ratio(known)?;
    let mut state = resampling.seed;
    let mut drawn =
        |count: usize| ratio(&(0..count).map(|_| known[below(known.len(), &mut state)]).collect::<Vec<_>>());
    let apart = (0..resampling.samples).filter_map(|_| Some(drawn(coming)? - drawn(known.len())?));
    let mut apart: Vec<f64> = apart.collect();
    apart.sort_by(f64::total_cmp);
    Some((told, [at_share(&apart, TAIL)?.min(0.0), at_share(&apart, 1.0 - TAIL)?.max(0.0)]))
}

/// The forecasts of all attempts, in the order of their weeks. Each interval is stretched until it would have held 95 in 100 of the forecasts
/// of which was known by then what came of them.
pub fn forecasts(attempts: &[ForecastWeek], resampling: &Resampling) -> Vec<(i64, Forecast)> {
    let mut out: Vec<(i64, Forecast)> = Vec::new();
    let mut past: Vec<(i64, f64)> = Vec::new();
    for attempt in attempts {
        let told = ahead(&attempt.known, attempt.came.len(), resampling).zip(ratio(&attempt.came));
        let Some(((predicted, [down, up]), came)) = told else { continue };
        let mut known: Vec<f64> =
            past.iter().filter(|(until, _)| *until <= attempt.week_ms).map(|(_, stretch)| *stretch).collect();
        known.sort_by(f64::total_cmp);
        let stretch = at_share(&known, 1.0 - 2.0 * TAIL).unwrap_or(1.0).max(1.0);
        let (lower, upper) = (predicted + stretch * down - ROUNDING, predicted + stretch * up + ROUNDING);
        out.push((attempt.week_ms, Forecast { week: week_of(attempt.week_ms), predicted, lower, upper, came }));
        let side = if came < predicted { -down } else { up };
        let apart = (came - predicted).abs();
        // What never moved before may not be stretched to anything.
        past.push((attempt.until_ms, if apart <= side { 1.0 } else { (apart / side.max(1e-12)).min(STRETCH_MAX) }));
    }
    out
}

/// What sums in another order may differ by.
const ROUNDING: f64 = 1e-12;
/// An interval is never stretched further: of what had no width nothing can be told.
const STRETCH_MAX: f64 = 100.0;

/// How many of the forecasts held.
pub fn coverage(name: &str, attempts: &[ForecastWeek], promise: f64, numbers: &BacktestNumbers) -> PromiseCoverage {
    let told = forecasts(attempts, &numbers.resampling);
    let mut weeks: Vec<SessionSplit> =
        told.iter().map(|(week_ms, _)| SessionSplit { week_ms: *week_ms, known: 0 }).collect();
    weeks.dedup();
    let judge = |cut: SessionSplit| {
        let of_week = || told.iter().filter(|(week_ms, _)| *week_ms == cut.week_ms);
        let held = of_week().filter(|(_, told)| told.holds()).count() as u64;
        vec![(cut.week_ms.unsigned_abs(), (held, of_week().count() as u64))]
    };
    PromiseCoverage::of((name, "forecasts"), Promise::AtLeast(promise), &weeks, numbers, &judge)
}

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

/// The value at a share of sorted values, by the nearest rank: at a half the lower of two in the middle. None of nothing.
pub fn at_share<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
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
