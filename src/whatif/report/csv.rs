//! Policies as CSV: the figures of the comparison as they are, for programs. What is not known is empty.

use crate::report::table::Table;
use crate::whatif::report::PolicyReport;
use crate::whatif::report::text::{by_cost, told_cells, verdict_word};
use crate::whatif::sim::breakage::rows::Strength;
use crate::whatif::sim::cells::Cell;
use crate::whatif::sim::figures::{Outcome, Sides};

const FIGURES: [&str; 13] = [
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
    "unpriced_requests",
    "unpriced_tokens",
    "off_bill_pct",
];

/// The last column.
const VERDICT: &str = "verdict";

/// What a row is about, where it is a part of the logs.
const PART: [&str; 6] = ["part_by", "part", "sessions", "lower_pct", "upper_pct", "false_discovery_rate"];

/// All policies, cheapest first; those that claim nothing last. Then the parts of the logs, in the same order.
pub fn comparison(reports: &[PolicyReport]) -> Table {
    let columns = ["policy"].into_iter().chain(FIGURES).chain(PART).chain([VERDICT]);
    let mut table = Table::new(&columns.collect::<Vec<_>>());
    let reports = by_cost(reports);
    for report in &reports {
        let whole = std::iter::once(report.policy.clone()).chain(figures(report));
        let no_part = std::iter::repeat_n(String::new(), PART.len());
        table.row(whole.chain(no_part).chain([verdict_word(report).to_owned()]));
    }
    for report in reports {
        for cell in told_cells(report) {
            table.row(std::iter::once(report.policy.clone()).chain(part(cell)));
        }
    }
    table
}

/// A part of the logs, in the columns of a policy: its change is in money where it has a price.
fn part(cell: &Cell) -> Vec<String> {
    let percent = |share: f64| (100.0 * share).to_string();
    let mut cells = vec![String::new(); FIGURES.len()];
    let mut set = |name: &str, value: String| {
        if let Some(place) = FIGURES.iter().position(|figure| *figure == name) {
            cells[place] = value;
        }
    };
    set(if cell.in_money { "usd_pct" } else { "iet_pct" }, percent(cell.change));
    set("requests", cell.requests.to_string());
    set("off_bill_pct", percent(cell.off_bill));
    let end = |end: Option<f64>| end.map(percent).unwrap_or_default();
    cells.extend([cell.by.to_owned(), cell.name.clone(), cell.sessions.to_string(), end(cell.lower), end(cell.upper)]);
    cells.extend([cell.q.to_string(), cell.verdict.into_str().to_owned()]);
    cells
}

/// One row per cell of a sweep: the values that were set, then what came of them.
pub fn sweep(keys: &[String], cells: &[(&[String], &PolicyReport)]) -> Table {
    let columns = keys.iter().map(String::as_str).chain(FIGURES).chain([VERDICT]);
    let mut table = Table::new(&columns.collect::<Vec<_>>());
    for (values, report) in cells {
        table.row(values.iter().cloned().chain(figures(report)).chain([verdict_word(report).to_owned()]));
    }
    table
}

/// One row per policy and session.
pub fn sessions(reports: &[PolicyReport]) -> Table {
    let columns = ["policy", "session", "requests", "baseline_iet", "policy_iet", "iet_pct", "usd", "usd_pct"];
    let mut table = Table::new(&columns);
    for report in by_cost(reports) {
        let by = report.outcome.as_ref().and_then(|outcome| outcome.by.get("session"));
        for (session, sides) in by.into_iter().flatten() {
            let mut costs = costs(sides);
            if report.not_estimated.is_some() {
                costs[1..].fill(String::new());
            }
            let first = [report.policy.clone(), session.clone(), sides.requests.to_string()];
            table.row(first.into_iter().chain(costs));
        }
    }
    table
}

fn figures(report: &PolicyReport) -> Vec<String> {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let count = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let told = report.told();
    let calls = |outcome: &Outcome| outcome.extra.values().map(|extra| extra.calls).sum();
    let events = |strength: Strength| count(report.breakage.as_ref().map(|breakage| breakage.events_of(strength)));
    let unpriced = |of: fn(&Sides) -> u64| count(told.map(|outcome| of(&outcome.total)));
    let error = report.accuracy.and_then(|accuracy| accuracy.cost_error.share());
    let removed = told.map(|outcome| outcome.tokens_removed.to_string()).unwrap_or_default();
    let mut cells = vec![removed, count(told.map(calls))];
    cells.extend(told.map_or_else(|| vec![String::new(); 5], |outcome| costs(&outcome.total).into()));
    cells.extend([events(Strength::Hard), events(Strength::Soft), report.input.requests.to_string()]);
    cells.extend([unpriced(|sides| sides.unpriced_requests), unpriced(Sides::unpriced_tokens)]);
    cells.push(number(error.map(|share| 100.0 * share)));
    cells
}

/// Cost of log and policy in input-equivalent tokens, the change in per cent, in dollars, and that in per cent.
fn costs(sides: &Sides) -> [String; 5] {
    let (before, after) = (&sides.baseline.cost, &sides.policy.cost);
    let dollars = after.usd().zip(before.usd()).map(|(after, before)| after - before);
    let percent = |share: Option<f64>| share.map(|share| 100.0 * share);
    let changes = [percent(sides.iet_change()), dollars, percent(dollars.and(sides.change()))];
    let [iet_pct, usd, usd_pct] = changes.map(|value| value.map(|value| value.to_string()).unwrap_or_default());
    [before.iet().to_string(), after.iet().to_string(), iet_pct, usd, usd_pct]
}
