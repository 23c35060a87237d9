//! The answer in plain words, before any table.

use crate::model::prefetches::{Bound, End};
use crate::report::numbers::{counted, date, thousands};
use crate::report::planner::{Arm, Metric, PlannerReport, Verdict};

/// "Would prefetching have paid?", for every arm, and what nobody could beat.
pub fn answer(report: &PlannerReport) -> Vec<String> {
    let backtest = &report.backtest;
    let since = backtest.judged_from.map(|ms| format!(" since {}", date(ms))).unwrap_or_default();
    let mut lines = vec![
        format!("Would prefetching have paid? {}", verdict(report)),
        format!(
            "Judged on {}{since} ({}), learned from the {} before; a hit is exactly the call that was made.",
            counted(backtest.judged_sessions, "session"),
            counted(backtest.judged_calls, "call"),
            thousands(backtest.training_sessions),
        ),
    ];
    lines.extend(report.arms.iter().map(words));
    lines.push(bound(&report.bound));
    lines
}

/// The best planner decides; where none would have sent anything there is nothing to say.
fn verdict(report: &PlannerReport) -> String {
    let paid =
        |arm: &&Arm| arm.metrics.first().is_some_and(|hit| hit.verdict() == Verdict::Pass) && arm.calls_saved() > 0;
    let configured = report.arms.iter().find(|arm| arm.name == "configured");
    let others: Vec<&str> = report.arms.iter().filter(paid).map(|arm| arm.name.as_str()).collect();
    match configured {
        _ if report.arms.iter().all(|arm| arm.total.sent() == 0) => "Nothing would have been fetched ahead.".to_owned(),
        Some(arm) if paid(&arm) => "Yes, with your configuration.".to_owned(),
        _ if others.is_empty() => "No.".to_owned(),
        _ => format!("Not with your configuration; yes with: {}.", others.join(", ")),
    }
}

fn words(arm: &Arm) -> String {
    let total = &arm.total;
    if total.sent() == 0 {
        return format!("- {}: sends nothing ahead.", arm.name);
    }
    let hit = arm.metrics.first().map(interval).unwrap_or_default();
    format!(
        "- {}: {} sent ahead, {} asked for exactly ({hit}); {} not have run, {} for nothing or twice; answers wait {} \
         and {} of waiting is spared.",
        arm.name,
        thousands(total.sent()),
        thousands(total.near.exact),
        spared(arm.calls_saved()),
        ran(arm.calls_added()),
        seconds(total.waited_ms),
        seconds(total.spared_ms),
    )
}

fn spared(calls: u64) -> String {
    format!("{} of the agent need", counted(calls, "call"))
}

fn ran(calls: u64) -> String {
    format!("{} run", thousands(calls))
}

/// "12 % [9–18]"
pub fn interval(metric: &Metric) -> String {
    if metric.share.n == 0 {
        return "n/a".to_owned();
    }
    let (lower, upper) = metric.sessions.unwrap_or((metric.share.lower, metric.share.upper));
    format!("{:.0} % [{:.0}–{:.0}]", 100.0 * metric.share.value(), 100.0 * lower, 100.0 * upper)
}

/// "12.3 s"
pub fn seconds(ms: u64) -> String {
    format!("{:.1} s", ms as f64 / 1000.0)
}

fn bound(bound: &Bound) -> String {
    format!(
        "Nobody can do better than {} of {} calls: so many were new, had one argument, and an answer within three calls \
         before listed it (in the whole context {}; with further arguments {}).",
        thousands(bound.reachable),
        thousands(bound.calls),
        thousands(bound.listed_whole),
        thousands(bound.listed),
    )
}

/// Ways in which prefetches ended, those that occurred.
pub fn ends(arm: &Arm) -> String {
    let some = End::ALL.into_iter().filter(|end| arm.total.ends[*end] > 0);
    some.map(|end| format!("{} {}", end.key(), thousands(arm.total.ends[end]))).collect::<Vec<_>>().join(", ")
}
