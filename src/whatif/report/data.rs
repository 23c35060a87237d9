//! The report of a policy for programs: as JSON (policies.md 1.6), and its figures as CSV, as they are. What is not known is
//! empty there.

use serde_json::{Map, Value, json};

use crate::report::table::Table;
use crate::whatif::report::tables::{by_cost, told_cells, verdict_word};
use crate::whatif::report::{PolicyReport, SimulationAccuracy, TELEMETRY};
use crate::whatif::sim::breakage::rows::{Breakage, Strength};
use crate::whatif::sim::cells::Cell;
use crate::whatif::sim::cost::{Cost, UNITS_PER_TOKEN};
use crate::whatif::sim::distance::{Distance, DistanceCause};
use crate::whatif::sim::figures::{Outcome, RunBill, Sides, Spread, UnloggedCalls};

/// The fields of the report; sessions one by one if asked for.
pub fn json(report: &PolicyReport, by_session: bool) -> Value {
    let outcome = report.outcome.as_ref();
    // Without usage nothing was billed; what is not estimated is not known, and that is no zero.
    let is_billed = report.fidelity.estimator != TELEMETRY;
    let billed = outcome.filter(|_| is_billed);
    let told = billed.filter(|_| report.not_estimated.is_none());
    json!({
        "policy": report.policy,
        "params": report.params,
        "input": report.input,
        "fidelity": report.fidelity,
        "billed": is_billed.then(|| bill(&report.billed)),
        "baseline": billed.map(|outcome| bill(&outcome.total.baseline)),
        "baseline_vs_bill": report.accuracy.map(|accuracy| off_bill(&accuracy, report.distance.as_ref())),
        "simulated": told.map(|outcome| bill(&outcome.total.policy)),
        "delta": outcome.map(|outcome| delta(outcome, told.is_some())),
        "extra_costs": told.map(extra_costs),
        "breakage": report.breakage.as_ref().map(breakage),
        "broken_steps": report.breakage.as_ref().map(|Breakage { steps: (hard, soft), .. }| json!({ "hard": hard, "soft": soft })),
        "reread_tokens": report.breakage.as_ref().map(|breakage| breakage.reread_tokens),
        "reread_iet": report.breakage.as_ref().filter(|_| is_billed).map(|_| report.reread.iet()),
        "distribution": told.map(|outcome| json!({ "per_session": spread(&outcome.spread) })),
        "by": told.map(|outcome| groups(outcome, by_session)),
        "whole": told.map(|_| &report.whole),
        "cells": told.map(|_| &report.cells),
        "unpriced": told.map(unpriced),
        "uncached_iet_pct": report.uncached_change.filter(|_| told.is_some()).map(|change| 100.0 * change),
        "is_clear": told.map(|_| !report.is_unsure()),
        "interaction_iet": report.interaction_units.map(|units| units as f64 / UNITS_PER_TOKEN as f64),
        "details": report.details,
        "formulas": report.formulas,
        "bias": report.bias,
        "notes": report.notes,
        "shown": report.shown,
        "not_estimated": report.not_estimated,
    })
}

/// How far the simulated log is from the bill, and where: the parts add up to the whole.
fn off_bill(accuracy: &SimulationAccuracy, distance: Option<&Distance>) -> Value {
    let mut fields = json!(accuracy);
    fields["misses_bar"] = json!(accuracy.misses_bar());
    fields["parts"] = json!(distance.map(|distance| {
        let part = |part: &DistanceCause| {
            json!({
                "model": part.model,
                "versions": part.versions,
                "cause": part.cause,
                "requests": part.apart.requests,
                "differing": part.apart.differing,
                "read_billed": part.apart.read_billed,
                "read_simulated": part.apart.read_simulated,
                "iet": part.apart.units() as f64 / UNITS_PER_TOKEN as f64,
                "share_of_bill": part.apart.share_of(&distance.total.cost_billed),
            })
        };
        distance.parts.iter().map(part).collect::<Vec<Value>>()
    }));
    fields["losses"] = json!(distance.map(|distance| &distance.losses));
    fields
}

/// What has no price, by model.
fn unpriced(outcome: &Outcome) -> Value {
    let one = |(model, sides): (&str, &Sides)| {
        (model.to_owned(), json!({ "requests": sides.unpriced_requests, "tokens": sides.unpriced_tokens() }))
    };
    json!({
        "requests": outcome.total.unpriced_requests,
        "tokens": outcome.total.unpriced_tokens(),
        "by_model": outcome.unpriced().map(one).collect::<Map<String, Value>>(),
    })
}

fn bill(bill: &RunBill) -> Value {
    let mut fields = json!(bill.spent);
    fields["iet"] = json!(bill.cost.iet());
    fields["usd"] = json!(bill.cost.usd());
    fields["unpriced_tokens"] = json!(bill.cost.unpriced_tokens);
    fields
}

/// Sizes can be known where money is not.
fn delta(outcome: &Outcome, is_told: bool) -> Value {
    let mut delta = difference(&outcome.total);
    if !is_told {
        ["iet", "iet_pct", "usd", "usd_pct"].iter().for_each(|field| delta[field] = Value::Null);
    }
    let removed =
        i64::try_from(outcome.tokens_removed).unwrap_or(if outcome.tokens_removed < 0 { i64::MIN } else { i64::MAX });
    delta["tokens_removed"] = json!(Some(removed).filter(|&removed| is_told || removed != 0));
    delta
}

/// In percent of the session's own cost.
fn spread(spread: &Spread) -> Value {
    let Spread { sessions, worse, p5, p25, p50, p75, p95, best, worst } = *spread;
    let mut fields = json!({ "sessions": sessions, "worse": worse });
    let shares = [("p5", p5), ("p25", p25), ("p50", p50), ("p75", p75), ("p95", p95), ("best", best), ("worst", worst)];
    shares.iter().for_each(|(name, share)| fields[name] = json!(100.0 * share));
    fields
}

/// Policy less log: negative is saved.
fn difference(sides: &Sides) -> Value {
    let usd = |cost: &Cost| cost.usd();
    let dollars = usd(&sides.policy.cost).zip(usd(&sides.baseline.cost)).map(|(after, before)| after - before);
    json!({
        "iet": sides.policy.cost.iet() - sides.baseline.cost.iet(),
        "iet_pct": sides.iet_change().map(|change| 100.0 * change),
        "usd": dollars,
        "usd_pct": dollars.and(sides.change()).map(|change| 100.0 * change),
    })
}

fn extra_costs(outcome: &Outcome) -> Value {
    let one = |extra: &UnloggedCalls| json!({ "calls": extra.calls, "iet": extra.cost.iet() });
    let by_cause: Map<String, Value> =
        outcome.extra.iter().map(|(cause, extra)| ((*cause).into(), one(extra))).collect();
    json!({
        "calls": outcome.extra.values().map(|extra| extra.calls).sum::<u64>(),
        "iet": outcome.extra.values().map(|extra| extra.cost).sum::<Cost>().iet(),
        "by_cause": by_cause,
    })
}

fn breakage(breakage: &Breakage) -> Value {
    let classes = breakage.classes.iter().map(|class| (class.class.into_str().to_owned(), json!(class)));
    Value::Object(classes.collect())
}

fn groups(outcome: &Outcome, by_session: bool) -> Value {
    let dimensions = outcome.by.iter().filter(|(dimension, _)| by_session || **dimension != "session");
    let of = |groups: &std::collections::BTreeMap<String, Sides>| -> Map<String, Value> {
        let row = |sides: &Sides| {
            let mut row = difference(sides);
            row["requests"] = json!(sides.requests);
            row["baseline"] = bill(&sides.baseline);
            row["simulated"] = bill(&sides.policy);
            row
        };
        groups.iter().map(|(group, sides)| (group.clone(), row(sides))).collect()
    };
    Value::Object(dimensions.map(|(dimension, groups)| ((*dimension).to_owned(), Value::Object(of(groups)))).collect())
}

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
