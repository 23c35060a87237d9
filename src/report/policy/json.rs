//! The report of a policy as JSON (policies.md 1.6).

use serde_json::{Map, Value, json};

use super::PolicyReport;
use crate::model::policy::breakage::Breakage;
use crate::model::policy::cost::{Cost, UNITS_PER_TOKEN};
use crate::model::policy::outcome::{Bill, ExtraCalls, Outcome, Sides};

/// The fields of the report; sessions one by one if asked for.
pub fn json(report: &PolicyReport, by_session: bool) -> Value {
    let outcome = report.outcome.as_ref();
    json!({
        "policy": report.policy,
        "knobs": report.knobs,
        "input": report.input,
        "fidelity": report.fidelity,
        "billed": bill(&report.billed),
        "baseline": outcome.map(|outcome| bill(&outcome.total.baseline)),
        "baseline_vs_bill": report.accuracy,
        "simulated": outcome.map(|outcome| bill(&outcome.total.policy)),
        "delta": outcome.map(delta),
        "extra_costs": outcome.map(extra_costs),
        "breakage": report.breakage.as_ref().map(breakage),
        "distribution": outcome.map(|outcome| json!({ "per_session": outcome.spread })),
        "by": outcome.map(|outcome| groups(outcome, by_session)),
        "uncached_iet_pct": report.uncached_change.map(|change| 100.0 * change),
        "is_clear": outcome.map(|_| !report.is_unsure()),
        "interaction_iet": report.interaction_units.map(|units| units as f64 / UNITS_PER_TOKEN as f64),
        "details": report.details,
        "formulas": report.formulas,
        "notes": report.notes,
        "shown": report.shown,
        "withheld": report.withheld,
    })
}

fn bill(bill: &Bill) -> Value {
    json!({
        "read": bill.spent.read,
        "write_5m": bill.spent.write_5m,
        "write_1h": bill.spent.write_1h,
        "uncached": bill.spent.uncached,
        "output": bill.spent.output,
        "iet": bill.cost.iet(),
        "usd": bill.cost.usd(),
        "unpriced_tokens": bill.cost.unpriced_tokens,
    })
}

fn delta(outcome: &Outcome) -> Value {
    let mut delta = difference(&outcome.total);
    delta["tokens_removed"] = json!(i64::try_from(outcome.tokens_removed).unwrap_or(i64::MAX));
    delta
}

/// Policy less log: negative is saved.
fn difference(sides: &Sides) -> Value {
    let usd = |cost: &Cost| cost.usd();
    let dollars = usd(&sides.policy.cost).zip(usd(&sides.baseline.cost)).map(|(after, before)| after - before);
    json!({
        "iet": sides.policy.cost.iet() - sides.baseline.cost.iet(),
        "iet_pct": sides.change().map(|change| 100.0 * change),
        "usd": dollars,
    })
}

fn extra_costs(outcome: &Outcome) -> Value {
    let one = |extra: &ExtraCalls| json!({ "calls": extra.calls, "iet": extra.bill.cost.iet() });
    let by_cause: Map<String, Value> =
        outcome.extra.iter().map(|(cause, extra)| ((*cause).into(), one(extra))).collect();
    json!({
        "calls": outcome.extra.values().map(|extra| extra.calls).sum::<u64>(),
        "iet": outcome.extra.values().map(|extra| extra.bill.cost).sum::<Cost>().iet(),
        "by_cause": by_cause,
    })
}

fn breakage(breakage: &Breakage) -> Value {
    let classes = breakage.classes.iter().map(|class| (class.class.word().to_owned(), json!(class)));
    json!({ "reread_tokens": breakage.reread_tokens, "classes": classes.collect::<Map<String, Value>>() })
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
