//! The report as JSON, and a row per session in the published columns, further ones behind them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::planner::prefetches::{DeclineReason, PrefetchEnd, PrefetchTally};
use crate::planner::report::{
    EdgeRow, Metric, PlannerArm, PlannerReport, PlannerSweepRow, TargetFigure, by_tool, effectiveness,
};
use crate::planner::selectivity::report as selectivity;
use crate::report::share;
use crate::report::table::{Table, TableBuilder};

/// The fields of the report.
pub fn json(report: &PlannerReport) -> Value {
    json!({
        "backtest": report.backtest,
        "arms": report.arms.iter().map(arm).collect::<Vec<_>>(),
        "bound": report.bound,
        "selectivity": report.selectivity.as_ref().map(|(learned, numbers)| selectivity::json(learned, numbers)),
        "advice": report.advice,
        "notes": report.notes,
    })
}

fn arm(arm: &PlannerArm) -> Value {
    let tools = by_tool(&arm.edges);
    json!({
        "arm": arm.name,
        "about": arm.about,
        "metrics": arm.metrics.iter().map(metric).collect::<Vec<_>>(),
        "net": arm.net(),
        "total": tally(&arm.total),
        "random_arguments": { "sent": arm.control.sent(), "near": arm.control.near, "far": arm.control.far },
        "published_line": effectiveness(&arm.total).to_string(),
        "tools": tools.iter().map(|(tool, sums)| json!({ "tool": tool, "books": tally(sums) })).collect::<Vec<_>>(),
        "edges": arm.edges.iter().map(edge).collect::<Vec<_>>(),
    })
}

fn edge(edge: &EdgeRow) -> Value {
    json!({ "from": edge.from, "to": edge.to, "books": tally(&edge.tally) })
}

fn metric(metric: &Metric) -> Value {
    let (target, bound) = match metric.target {
        Some(TargetFigure::AtLeast(least)) => (Some(least), Some("at_least")),
        Some(TargetFigure::AtMost(most)) => (Some(most), Some("at_most")),
        None => (None, None),
    };
    let mut fields = share::json(metric.share, metric.sessions);
    fields["metric"] = json!(metric.key);
    fields["target"] = json!(target);
    fields["bound"] = json!(bound);
    fields["verdict"] = json!(metric.verdict().into_str());
    fields
}

/// The tally with what follows from it.
#[derive(Serialize)]
struct TallyFigures<'a> {
    #[serde(flatten)]
    tally: &'a PrefetchTally,
    planned: u64,
    sent: u64,
    name_only_by_chance: Option<f64>,
    not_planned: BTreeMap<&'static str, Value>,
    worst_share: Option<f64>,
}

fn tally(tally: &PrefetchTally) -> Value {
    let held = |held: DeclineReason| {
        let count = json!({
            "count": tally.held[held],
            "needed_exactly": held.is_decline().then_some(tally.late_exact[held]),
            "needed_by_name": held.is_decline().then_some(tally.late_name[held]),
        });
        (held.into_str(), count)
    };
    let sent = tally.sent();
    json!(TallyFigures {
        tally,
        planned: tally.planned(),
        sent,
        name_only_by_chance: (sent > 0).then(|| tally.name_by_chance / sent as f64),
        not_planned: DeclineReason::ALL.iter().copied().map(held).collect(),
        worst_share: (tally.plans_compared > 0).then(|| tally.least_share.share()),
    })
}

/// What each value of the swept keys would do.
pub fn sweep_json(keys: &[String], rows: &[PlannerSweepRow]) -> Value {
    let row = |row: &PlannerSweepRow| {
        let values: Map<String, Value> =
            keys.iter().cloned().zip(row.values.iter().map(|value| json!(value))).collect();
        json!({ "values": values, "arm": row.arm, "books": tally(&row.tally),
                "saved": row.tally.calls_saved(),
                "added": row.tally.calls_added() })
    };
    rows.iter().map(row).collect()
}

/// The sessions of one arm, by name, then the total: the published columns in their order, then devboy's own.
pub fn sessions(arm: &PlannerArm) -> Table {
    let sessions = arm.sessions.iter().map(|(session, tally)| (session.as_str(), tally));
    let rows = sessions.chain([("TOTAL", &arm.total)]).map(|(session, tally)| (session, tally, effectiveness(tally)));
    let rate = |part: u64, whole: u64| {
        if whole == 0 { "n/a".to_owned() } else { format!("{:.1}%", 100.0 * part as f64 / whole as f64) }
    };
    TableBuilder::of(rows)
        .text("session_hash", |(session, ..)| (*session).to_owned())
        .count("total_events", |(_, tally, _)| tally.calls)
        .count("total_prefetches", |(_, _, seen)| seen.total_prefetches)
        .count("cited_prefetches", |(_, _, seen)| seen.cited_prefetches)
        .text("prefetch_hit_rate", |(_, _, seen)| rate(seen.cited_prefetches, seen.total_prefetches))
        .count("total_declines", |(_, _, seen)| seen.total_declines)
        .count("late_invoked_after_decline", |(_, _, seen)| seen.late_invoked_after_decline)
        .text("decline_recall_loss", |(_, _, seen)| rate(seen.late_invoked_after_decline, seen.total_declines))
        .count("cost_overrun_count", |(_, _, seen)| seen.cost_overrun_count)
        .count("total_predictions", |(_, _, seen)| seen.total_predictions)
        .text("cost_overrun_rate", |(_, _, seen)| rate(seen.cost_overrun_count, seen.total_predictions))
        .count("inference_calls_saved_prefetch", |(_, _, seen)| seen.saved_prefetch)
        .count("inference_calls_saved_dedup", |(_, _, seen)| seen.saved_dedup)
        .count("inference_calls_saved_fail_fast", |(_, _, seen)| seen.saved_fail_fast)
        .count("inference_calls_saved_total", |(_, _, seen)| seen.calls_saved())
        .count("inference_tokens_saved", |(_, _, seen)| seen.tokens_saved)
        .text("arm", |_| arm.name.clone())
        .count("exact_3_calls", |(_, tally, _)| tally.near.exact)
        .count("exact_10_calls", |(_, tally, _)| tally.far.exact)
        .count("exact_3_steps", |(_, tally, _)| tally.steps.exact)
        .count("target_3_calls", |(_, tally, _)| tally.near.target)
        .count("target_3_steps", |(_, tally, _)| tally.steps.target)
        .count("name_only_3_calls", |(_, tally, _)| tally.near.name_only)
        .count("late_invoked_exact", |(_, tally, _)| tally.declined_needed())
        .count("won", |(_, tally, _)| tally.ends[PrefetchEnd::Won])
        .count("late", |(_, tally, _)| tally.ends[PrefetchEnd::Late])
        .count("wasted", |(_, tally, _)| tally.wasted())
        .count("calls_saved", |(_, tally, _)| tally.calls_saved())
        .count("calls_added", |(_, tally, _)| tally.calls_added())
        .count("waited_ms", |(_, tally, _)| tally.waited_ms)
        .count("unused_tokens", |(_, tally, _)| tally.unused_tokens)
        .count("refused_wrongly", |(_, tally, _)| tally.refused_wrongly)
        .table()
}
