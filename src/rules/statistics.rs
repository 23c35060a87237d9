//! The statistics that rules stand on: their numbers, and how well they held on sessions that came later,
//! as a table and as JSON.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::backtest::{BacktestNumbers, Promise, PromiseCoverage};
use crate::base::bootstrap::Resampling;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::numbers::WEEK_MS;
use crate::base::stats::TargetVerdict;
use crate::logs::trace::Millis;
use crate::mine::follow_ups::FollowUps;
use crate::mine::follow_ups::bounds::{BoundNumbers, FollowUpThresholds};
use crate::mine::sizes::SizesBySession;
use crate::report::numbers::{counted, date, known, percent, thousands};
use crate::report::table::{Table, TableBuilder};
use crate::rules::t1_tools;

/// Name of the bounds of follow-up probabilities.
pub const FOLLOW_UPS: &str = "follow-up bounds";
/// Name of typical sizes.
pub const TYPICAL: &str = "typical sizes";
/// Name of largest sizes.
pub const LARGEST: &str = "largest sizes";

/// `rules/backtest.toml`.
#[derive(Deserialize)]
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
pub struct Effects {
    horizon_weeks: i64,
    pub promise: f64,
    /// Least share of all tokens that a change of the pipeline has to save, in percent.
    pub of_tokens_percent_min: f64,
}

impl Effects {
    /// The time that a forecast is about.
    pub fn horizon_ms(&self) -> Millis {
        self.horizon_weeks * WEEK_MS
    }
}

/// How follow-ups are bounded and judged.
pub fn numbers(data: &Data) -> Result<FollowUpThresholds> {
    let BacktestThresholds {
        known_min, later_min, responses_max, weeks_max, tolerance, resampling, follow_ups, ..
    } = data.parsed("backtest.toml")?;
    let backtest = BacktestNumbers { known_min, later_min, responses_max, weeks_max, tolerance, resampling };
    Ok(FollowUpThresholds { backtest, bounds: follow_ups, links: t1_tools::link_numbers(data)? })
}

/// How effects are predicted and judged.
pub fn effects(data: &Data) -> Result<Effects> {
    Ok(data.parsed::<BacktestThresholds>("backtest.toml")?.effects)
}

/// The statistics of value models, each as it was known and as it held.
pub fn coverage(follow_ups: &FollowUps, sizes: &SizesBySession, numbers: &FollowUpThresholds) -> Vec<PromiseCoverage> {
    let FollowUpThresholds { backtest, links, .. } = numbers;
    let of_sizes = |name, promise| sizes.coverage((name, "results"), promise, links.calls_min, backtest);
    vec![
        follow_ups.coverage(FOLLOW_UPS, numbers),
        of_sizes(TYPICAL, Promise::About(0.5)),
        of_sizes(LARGEST, Promise::AtLeast(0.99)),
    ]
}

/// A row for each statistic.
pub fn table(rows: &[PromiseCoverage]) -> Table {
    TableBuilder::of(rows)
        .text("statistic", |row| row.statistic.clone())
        .number("promised", |row| promised(row.promise))
        .number("held", |row| known(row.share().known(), |share| percent(share.value())))
        .number("95 %", |row| known(row.interval, |(low, high)| format!("{}–{}", percent(low), percent(high))))
        .text("held of judged", |row| row.tally())
        .number("weeks", |row| row.weeks.len().to_string())
        .text("judged from", |row| known(row.weeks.first(), |week| date(week.week_ms)))
        .text("verdict", |row| row.verdict().into_str().to_owned())
        .table()
}

/// How many promises were kept, and which were broken.
pub fn answer(rows: &[PromiseCoverage], tolerance: f64) -> String {
    let of = |verdict| rows.iter().filter(move |row| row.verdict() == verdict);
    let [broken, kept, open, unjudged] =
        [TargetVerdict::Fail, TargetVerdict::Pass, TargetVerdict::Open, TargetVerdict::NotApplicable]
            .map(|verdict| of(verdict).map(|row| row.statistic.as_str()).collect::<Vec<&str>>());
    let all = counted(rows.len() as u64, "promise");
    if unjudged.len() == rows.len() {
        return format!("None of {all} could be judged yet: too little came before, or after, any week.");
    }
    let count = |names: &[&str]| thousands(names.len() as u64);
    let broken =
        if broken.is_empty() { "none was broken".to_owned() } else { format!("broken: {}", broken.join(", ")) };
    let short: Vec<&str> =
        rows.iter().filter(|row| row.passes_by_tolerance()).map(|row| row.statistic.as_str()).collect();
    let short = if short.is_empty() { String::new() } else { format!(" (only by tolerance: {})", short.join(", ")) };
    let unjudged = if unjudged.is_empty() { String::new() } else { format!(", not judged yet {}", count(&unjudged)) };
    format!(
        "Of {all} {broken}; kept, give or take {:.0} points, {}{short}, open (too little came after to tell) {}{unjudged}.",
        100.0 * tolerance,
        count(&kept),
        count(&open)
    )
}

/// What stands behind the table.
pub fn notes(tolerance: f64) -> [String; 3] {
    [
        "each week: what the sessions before it said, held against all sessions behind it".to_owned(),
        format!(
            "verdict: pass or fail only where the whole interval is within, or beyond, {:.0} points of the promise; it is over \
             sessions (of bounds over pairs of tools, of forecasts over weeks), since weeks share what came later",
            100.0 * tolerance
        ),
        "a rule whose statistic fails proposes nothing from it; on forecasts of policies (reads, sizes after compactions) no rule \
         stands"
            .to_owned(),
    ]
}

/// Everything.
pub fn json(rows: &[PromiseCoverage]) -> Value {
    let row = |row: &PromiseCoverage| {
        let share = row.share();
        json!({
            "statistic": row.statistic,
            "unit": row.unit,
            "promised": row.promise.share(),
            "kind": match row.promise { Promise::AtLeast(_) => "at_least", Promise::About(_) => "about" },
            "tolerance": row.tolerance,
            "held": share.k,
            "judged": share.n,
            "distinct": row.distinct,
            "share": share.known().map(|share| share.value()),
            "weeks_95": row.interval.map(|(low, high)| [low, high]),
            "verdict": row.verdict().into_str(),
            "weeks": row.weeks,
        })
    };
    rows.iter().map(row).collect()
}

fn promised(promise: Promise) -> String {
    match promise {
        Promise::AtLeast(share) => format!("≥ {}", percent(share)),
        Promise::About(share) => format!("= {}", percent(share)),
    }
}
