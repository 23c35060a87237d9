//! Policies as CSV: the figures of the comparison as they are, for programs. What is not known is empty.

use super::PolicyReport;
use super::text::{by_cost, verdict_word};
use crate::model::policy::breakage::Strength;
use crate::model::policy::outcome::{Outcome, Sides};
use crate::report::table::Table;

const FIGURES: [&str; 11] = [
    "tokens_removed",
    "extra_calls",
    "baseline_iet",
    "policy_iet",
    "iet_pct",
    "usd",
    "usd_pct",
    "hard_events",
    "soft_events",
    "requests",
    "verdict",
];

/// All policies, cheapest first; those that claim nothing last.
pub fn comparison(reports: &[PolicyReport]) -> Table {
    let mut table = table(&["policy".to_owned()]);
    for report in by_cost(reports) {
        table.row(std::iter::once(report.policy.clone()).chain(figures(report)));
    }
    table
}

/// One row per cell of a sweep: the values that were set, then what came of them.
pub fn sweep(keys: &[String], cells: &[(&[String], &PolicyReport)]) -> Table {
    let mut table = table(keys);
    for (values, report) in cells {
        table.row(values.iter().cloned().chain(figures(report)));
    }
    table
}

/// One row per session.
pub fn sessions(report: &PolicyReport) -> Table {
    let mut table = Table::new(&["session", "requests", "baseline_iet", "policy_iet", "iet_pct", "usd", "usd_pct"]);
    let by = report.outcome.as_ref().and_then(|outcome| outcome.by.get("session"));
    for (session, sides) in by.into_iter().flatten() {
        let mut costs = costs(sides);
        if report.withheld.is_some() {
            costs[1..].fill(String::new());
        }
        table.row([session.clone(), sides.requests.to_string()].into_iter().chain(costs));
    }
    table
}

fn table(first: &[String]) -> Table {
    Table::new(&first.iter().map(String::as_str).chain(FIGURES).collect::<Vec<_>>())
}

fn figures(report: &PolicyReport) -> Vec<String> {
    let told = report.outcome.as_ref().filter(|_| report.withheld.is_none());
    let calls = |outcome: &Outcome| outcome.extra.values().map(|extra| extra.calls).sum::<u64>().to_string();
    let events = |strength: Strength| {
        report.breakage.as_ref().map(|breakage| breakage.events_of(strength).to_string()).unwrap_or_default()
    };
    let mut cells = vec![
        told.map(|outcome| outcome.tokens_removed.to_string()).unwrap_or_default(),
        told.map(calls).unwrap_or_default(),
    ];
    cells.extend(told.map_or_else(|| vec![String::new(); 5], |outcome| costs(&outcome.total).into()));
    cells.extend([events(Strength::Hard), events(Strength::Soft), report.input.requests.to_string()]);
    cells.push(verdict_word(report).to_owned());
    cells
}

/// Cost of log and policy in input-equivalent tokens, the change in per cent, in dollars, and that in per cent.
fn costs(sides: &Sides) -> [String; 5] {
    let (before, after) = (&sides.baseline.cost, &sides.policy.cost);
    let dollars = after.usd().zip(before.usd()).map(|(after, before)| after - before);
    [
        before.iet().to_string(),
        after.iet().to_string(),
        sides.iet_change().map(|change| (100.0 * change).to_string()).unwrap_or_default(),
        dollars.map(|dollars| dollars.to_string()).unwrap_or_default(),
        dollars.and(sides.change()).map(|change| (100.0 * change).to_string()).unwrap_or_default(),
    ]
}
