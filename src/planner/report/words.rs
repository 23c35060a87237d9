//! The answer in plain words, before any table.

use crate::base::stats::TargetVerdict;
use crate::planner::prefetches::{Bound, PrefetchEnd};
use crate::planner::report::{HIT, Metric, Net, PlannerArm, PlannerReport};
use crate::planner::stage::CONFIGURED;
use crate::report::numbers::{counted, date, thousands};

/// "Would prefetching have paid?": as configured, with any other planner, and what nobody could beat.
pub fn answer(report: &PlannerReport) -> Vec<String> {
    let backtest = &report.backtest;
    let since = backtest.judged_from.map(|ms| format!(" since {}", date(ms))).unwrap_or_default();
    let mut lines = vec![
        format!("Would prefetching have paid? {}", verdict(report)),
        format!(
            "Judged on {}{since} ({}), learned from the {} before. A hit is exactly the call that was made.",
            counted(backtest.judged_sessions, "session"),
            counted(backtest.judged_calls, "call"),
            thousands(backtest.training_sessions),
        ),
    ];
    let told = |arm: &&PlannerArm| arm.name == CONFIGURED || reached(arm).is_some();
    lines.extend(report.arms.iter().filter(told).map(words));
    lines.push(bound(&report.bound));
    lines
}

/// The configuration first, then the planners that reach the hit rate; where none would have sent anything there is
/// nothing to say.
fn verdict(report: &PlannerReport) -> String {
    let sent = |arm: &&PlannerArm| arm.total.sent() > 0;
    if !report.arms.iter().any(|arm| sent(&arm)) {
        return "Nothing would have been prefetched.".to_owned();
    }
    let mut said = Vec::new();
    match report.arms.iter().find(|arm| arm.name == CONFIGURED).filter(sent) {
        None => said.push("As configured nothing is prefetched.".to_owned()),
        Some(arm) if reached(arm).is_none() => {
            let hit = arm.metrics.first().map(interval).unwrap_or_default();
            said.push(format!("Not as configured: {hit} of what it fetches is asked for."));
        }
        Some(_) => {}
    }
    for arm in &report.arms {
        let Some(metric) = reached(arm) else { continue };
        let is_sure = metric.verdict() == TargetVerdict::Pass;
        let (sure, but) =
            if is_sure { ("Yes", "") } else { ("Perhaps", ", but the interval reaches below the target") };
        said.push(format!(
            "{sure} with planner \"{}\": {} of what it fetches is asked for{but}.",
            arm.name,
            interval(metric)
        ));
    }
    said.join(" ")
}

/// The hit rate of a planner that reaches the target and spares a call. No other window may stand in for it.
fn reached(arm: &PlannerArm) -> Option<&Metric> {
    let hit = arm.metrics.first().filter(|metric| metric.key == HIT)?;
    (hit.seems_reached() && arm.calls_saved() > 0).then_some(hit)
}

fn words(arm: &PlannerArm) -> String {
    let total = &arm.total;
    if total.sent() == 0 {
        return format!("{}: sends nothing ahead.", arm.name);
    }
    format!(
        "{}: {} prefetched, {} asked for exactly within three calls. {} of the agent need not have run, {} ran for \
         nothing or twice. Answers wait {} longer, {} of its own waiting is spared.",
        arm.name,
        thousands(total.sent()),
        thousands(total.near.exact),
        counted(arm.calls_saved(), "call"),
        thousands(arm.calls_added()),
        seconds(total.waited_ms),
        seconds(total.spared_ms),
    )
}

/// "−66 calls (12 saved, 78 added; 1,300 instead of 1,234), 45,000 tokens of cost (45,000 of unused answers, 0 of hints)"
pub fn net(arm: &PlannerArm) -> String {
    let Net { calls_off, calls_on, saved, added, unused_tokens, hint_tokens } = arm.net();
    let sign = if saved >= added { '+' } else { '−' };
    format!(
        "{sign}{} calls ({} saved, {} added; {} instead of {}), {} tokens of cost ({} of unused answers, {} of hints)",
        thousands(saved.abs_diff(added)),
        thousands(saved),
        thousands(added),
        thousands(calls_on),
        thousands(calls_off),
        thousands(unused_tokens + hint_tokens),
        thousands(unused_tokens),
        thousands(hint_tokens),
    )
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
        "Upper bound: {} of the {} calls that ran were new, had one argument, and were listed by an answer within three calls before \
         (in the whole context {}; with further arguments {}).",
        thousands(bound.reachable),
        thousands(bound.calls),
        thousands(bound.listed_whole),
        thousands(bound.listed),
    )
}

/// Ways in which prefetches ended, those that occurred.
pub fn ends(arm: &PlannerArm) -> String {
    let some = PrefetchEnd::ALL.iter().copied().filter(|end| arm.total.ends[*end] > 0);
    some.map(|end| format!("{} {}", end.into_str(), thousands(arm.total.ends[end]))).collect::<Vec<_>>().join(", ")
}
