//! Reports of policies as tables.

use crate::report::numbers::{known, signed as figure, thousands, usd};
use crate::report::table::{Table, TableBuilder};
use crate::whatif::report::PolicyReport;
use crate::whatif::sim::breakage::rows::Strength;
use crate::whatif::sim::cells::Cell;
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::distance::{Apart, Distance, DistanceCause};
use crate::whatif::sim::figures::{CostVerdict, Outcome, Sides};

/// Causes of the distance from the bill that a table shows.
const CAUSES_SHOWN: usize = 12;

/// Where the simulated log is off the bill: the largest causes, the rest, all.
pub(super) fn parts_off(distance: &Distance) -> Table {
    let shown = &distance.parts[..distance.parts.len().min(CAUSES_SHOWN)];
    let name = |part: &DistanceCause| [part.model.clone(), part.versions.clone(), part.cause.words().to_owned()];
    let alone = |word: &str| [word.to_owned(), String::new(), String::new()];
    let mut rows: Vec<([String; 3], Apart)> = shown.iter().map(|part| (name(part), part.apart)).collect();
    let rest: Apart = distance.parts[shown.len()..].iter().map(|part| part.apart).sum();
    rows.extend((rest.requests > 0).then(|| (alone("other"), rest)));
    rows.push((alone("all"), distance.total));
    let share = |part: &Apart| format!("{} %", figure(100.0 * part.share_of(&distance.total.cost_billed), 2));
    TableBuilder::of(rows)
        .text("model", |(name, _)| name[0].clone())
        .text("versions", |(name, _)| name[1].clone())
        .text("before the request", |(name, _)| name[2].clone())
        .count("requests", |(_, apart)| apart.requests)
        .count("differing", |(_, apart)| apart.differing)
        .count("read, billed", |(_, apart)| apart.read_billed)
        .count("simulated", |(_, apart)| apart.read_simulated)
        .number("of the bill", |(_, apart)| share(apart))
        .table()
}

/// Parts of the logs that a report tells of.
pub(crate) fn told_cells(report: &PolicyReport) -> &[Cell] {
    if report.not_estimated.is_some() { &[] } else { &report.cells }
}

/// Parts of the logs in which one of these policies is clearly cheaper or more expensive.
pub fn clear_parts(reports: &[&PolicyReport]) -> Table {
    let cells = reports.iter().flat_map(|report| told_cells(report).iter().map(move |cell| (&report.policy, cell)));
    TableBuilder::of(cells.filter(|(_, cell)| cell.verdict != CostVerdict::NoClearWinner))
        .text("policy", |(policy, _)| (*policy).clone())
        .text("by", |(_, cell)| cell.by.to_owned())
        .text("part", |(_, cell)| cell.name.clone())
        .count("sessions", |(_, cell)| cell.sessions)
        .count("requests", |(_, cell)| cell.requests)
        .number("cost", |(_, cell)| format!("{} %", figure(100.0 * cell.change, 1)))
        .text("interval", |(_, cell)| interval(cell))
        .number("off the bill", |(_, cell)| format!("{} %", figure(100.0 * cell.off_bill, 1)))
        .text("verdict", |(_, cell)| cell.verdict.into_str().to_owned())
        .table()
}

/// "−34.3 … −10.3 %"; none with too few sessions.
pub(super) fn ends(cell: &Cell) -> Option<String> {
    Some(format!("{} … {} %", figure(100.0 * cell.lower?, 1), figure(100.0 * cell.upper?, 1)))
}

pub(super) fn interval(cell: &Cell) -> String {
    let end = |end: Option<f64>| known(end, |end| figure(100.0 * end, 1));
    format!("[{}, {}]", end(cell.lower), end(cell.upper))
}

/// All policies side by side, cheapest first; those that claim nothing last.
pub fn comparison(reports: &[PolicyReport]) -> Table {
    let mut table = Table::new(&["policy"].into_iter().chain(FIGURES).collect::<Vec<_>>());
    for report in by_cost(reports) {
        table.row(std::iter::once(report.policy.clone()).chain(figures(report)));
    }
    table
}

/// Cheapest first; those that claim nothing last.
pub fn by_cost(reports: &[PolicyReport]) -> Vec<&PolicyReport> {
    let mut rows: Vec<&PolicyReport> = reports.iter().collect();
    let change = |report: &PolicyReport| report.told()?.total.change();
    rows.sort_by(|a, b| {
        let (one, other) = (change(a), change(b));
        let order = one.unwrap_or(f64::INFINITY).total_cmp(&other.unwrap_or(f64::INFINITY));
        order.then_with(|| a.policy.cmp(&b.policy))
    });
    rows
}

/// Whether a policy is clearly cheaper than the log.
pub fn is_cheaper(report: &PolicyReport) -> bool {
    let change = report.told().and_then(|outcome| outcome.total.change());
    !report.is_unsure() && change.is_some_and(|change| change < 0.0)
}

pub(crate) fn verdict_word(report: &PolicyReport) -> &'static str {
    match report.told().and_then(|outcome| outcome.total.change()) {
        None => "not estimated",
        Some(0.0) => "no change",
        Some(_) if report.is_unsure() => "no clear winner",
        Some(_) if is_cheaper(report) => "cheaper",
        Some(_) => "more expensive",
    }
}

/// What came of a policy: the columns of a comparison.
const FIGURES: [&str; 8] = ["#tokens, M", "#calls", "#cost", "#95 %", "#dollars", "#hard", "#soft", "verdict"];

fn figures(report: &PolicyReport) -> [String; FIGURES.len()] {
    let events = |strength| known(report.breakage.as_ref(), |breakage| thousands(breakage.events_of(strength)));
    let told = report.told();
    let cell = |cell: fn(&Outcome) -> Option<String>| known(told.and_then(cell), |cell| cell);
    [
        cell(|outcome| Some(figure((-outcome.tokens_removed) as f64 / 1e6, 1))),
        cell(|outcome| Some(thousands(outcome.extra.values().map(|extra| extra.calls).sum()))),
        cell(|outcome| outcome.total.change().map(|change| format!("{} %", figure(100.0 * change, 1)))),
        known(report.whole.as_ref().filter(|_| told.is_some()).and_then(ends), |ends| ends),
        cell(|outcome| dollars(&outcome.total)),
        events(Strength::Hard),
        events(Strength::Soft),
        verdict_word(report).to_owned(),
    ]
}

/// One row per cell of a sweep: the values that were set, then what came of them.
pub fn sweep(keys: &[String], cells: &[(&[String], &PolicyReport)]) -> Table {
    let columns: Vec<&str> = keys.iter().map(String::as_str).chain(FIGURES).collect();
    let mut table = Table::new(&columns);
    for (values, report) in cells {
        table.row(values.iter().cloned().chain(figures(report)));
    }
    table
}

/// One row per session.
pub fn sessions(report: &PolicyReport) -> Table {
    let by = report.outcome.as_ref().and_then(|outcome| outcome.by.get("session"));
    // What is not estimated is no zero.
    let told = report.not_estimated.is_none();
    let mut rows: Vec<_> = by.into_iter().flatten().collect();
    let apart = |sides: &Sides| {
        let (policy, baseline) = (&sides.policy.cost, &sides.baseline.cost);
        (policy.nano_usd.abs_diff(baseline.nano_usd), policy.units.abs_diff(baseline.units))
    };
    rows.sort_by_key(|(_, sides)| std::cmp::Reverse(apart(sides)));
    TableBuilder::of(rows)
        .text("session", |(session, _)| (*session).clone())
        .count("requests", |(_, sides)| sides.requests)
        .number("baseline", |(_, sides)| money(&sides.baseline.cost))
        .number("policy", |(_, sides)| known(told.then_some(&sides.policy.cost), money))
        .number("cost%", |(_, sides)| known(sides.change().filter(|_| told), |change| figure(100.0 * change, 1)))
        .number("dollars", |(_, sides)| known(dollars(sides).filter(|_| told), |dollars| dollars))
        .table()
}

/// The difference in dollars, with its sign.
pub(super) fn dollars(sides: &Sides) -> Option<String> {
    let (after, before) = (sides.policy.cost.usd()?, sides.baseline.cost.usd()?);
    let value = after - before;
    // What rounds to nothing has no sign.
    Some(match (value * 100.0).round() {
        0.0 => "$0.00".to_owned(),
        cents if cents < 0.0 => format!("−{}", usd(-value)),
        _ => format!("+{}", usd(value)),
    })
}

/// Dollars of what has a price; where nothing has one, input-equivalent tokens.
pub fn money(cost: &Cost) -> String {
    cost.usd().map_or_else(|| format!("{} input-equivalent tokens", thousands(cost.iet().round() as u64)), usd)
}
