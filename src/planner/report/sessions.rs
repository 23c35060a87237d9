//! A row per session in the published columns, further ones behind them.

use crate::planner::prefetches::{End, Tally};
use crate::planner::report::{Arm, effectiveness};
use crate::report::table::Table;

/// The published columns in their order, then devboy's own.
const COLUMNS: [&str; 32] = [
    "session_hash",
    "#total_events",
    "#total_prefetches",
    "#cited_prefetches",
    "prefetch_hit_rate",
    "#total_declines",
    "#late_invoked_after_decline",
    "decline_recall_loss",
    "#cost_overrun_count",
    "#total_predictions",
    "cost_overrun_rate",
    "#inference_calls_saved_prefetch",
    "#inference_calls_saved_dedup",
    "#inference_calls_saved_fail_fast",
    "#inference_calls_saved_total",
    "#inference_tokens_saved",
    "arm",
    "#exact_3_calls",
    "#exact_10_calls",
    "#exact_3_steps",
    "#target_3_calls",
    "#target_3_steps",
    "#name_only_3_calls",
    "#late_invoked_exact",
    "#won",
    "#late",
    "#wasted",
    "#calls_saved",
    "#calls_added",
    "#waited_ms",
    "#unused_tokens",
    "#refused_wrongly",
];

/// The sessions of one arm, by name, then the total.
pub fn sessions(arm: &Arm) -> Table {
    let mut table = Table::new(&COLUMNS);
    for (session, tally) in &arm.sessions {
        table.row(row(session, arm, tally));
    }
    table.row(row("TOTAL", arm, &arm.total));
    table
}

fn row(session: &str, arm: &Arm, tally: &Tally) -> Vec<String> {
    let published = effectiveness(tally);
    let rate = |part: u64, whole: u64| {
        if whole == 0 { "n/a".to_owned() } else { format!("{:.1}%", 100.0 * part as f64 / whole as f64) }
    };
    let own = Arm { total: *tally, sessions: Vec::new(), edges: Vec::new(), ..arm.clone() };
    let count = |count: u64| count.to_string();
    vec![
        session.to_owned(),
        count(tally.calls),
        count(published.total_prefetches),
        count(published.cited_prefetches),
        rate(published.cited_prefetches, published.total_prefetches),
        count(published.total_declines),
        count(published.late_invoked_after_decline),
        rate(published.late_invoked_after_decline, published.total_declines),
        count(published.cost_overrun_count),
        count(published.total_predictions),
        rate(published.cost_overrun_count, published.total_predictions),
        count(published.saved_prefetch),
        count(published.saved_dedup),
        count(published.saved_fail_fast),
        count(published.calls_saved()),
        count(published.tokens_saved),
        arm.name.clone(),
        count(tally.near.exact),
        count(tally.far.exact),
        count(tally.steps.exact),
        count(tally.near.target),
        count(tally.steps.target),
        count(tally.near.name_only),
        count(tally.declined_needed()),
        count(tally.ends[End::Won]),
        count(tally.ends[End::Late]),
        count(tally.wasted()),
        count(own.calls_saved()),
        count(own.calls_added()),
        count(tally.waited_ms),
        count(tally.unused_tokens),
        count(tally.refused_wrongly),
    ]
}
