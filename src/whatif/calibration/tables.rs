//! What the bill says about tokenizers, as tables and JSON.

use serde_json::{Map, Value, json};

use crate::base::tokenizer::VOCABULARIES;
use crate::report::numbers::{percent, thousands};
use crate::report::table::Table;
use crate::whatif::calibration::outcome::{Calibration, DRIFT_LIMITS, Drift, FamilyRatio, Ratio};

/// Characters and bytes per token of each model family.
pub fn families(rows: &[FamilyRatio]) -> Table {
    let mut table =
        Table::new(&["model", "#increments", "#sessions", "#bytes/token", "#95 %", "#chars/token", "#framed"]);
    for row in rows {
        table.row([
            row.family.clone(),
            thousands(row.increments),
            thousands(row.sessions),
            format!("{:.3}", row.bytes_per_token.value),
            interval(row.bytes_per_token),
            format!("{:.3}", row.chars_per_token.value),
            format!("{:.3}", row.chars_per_token_framed),
        ]);
    }
    table
}

fn interval(ratio: Ratio) -> String {
    let ends = ratio.lower.zip(ratio.upper);
    ends.map_or_else(|| "–".to_owned(), |(lower, upper)| format!("{lower:.3}–{upper:.3}"))
}

/// How far each estimator is from measured growth.
pub fn drift(rows: &[Drift]) -> Table {
    let mut table =
        Table::new(&["estimator", "#increments", "#estimated", "#billed", "#of the bill", "#drift p50", "#drift p90"]);
    for row in rows {
        table.row([
            row.estimator.clone(),
            thousands(row.increments),
            thousands(row.estimated),
            thousands(row.actual),
            of_the_bill(row).map_or_else(|| "–".to_owned(), percent),
            format!("{} %", row.percent_p50),
            format!("{} %", row.percent_p90),
        ]);
    }
    table
}

fn of_the_bill(row: &Drift) -> Option<f64> {
    (row.actual > 0).then(|| row.estimated as f64 / row.actual as f64)
}

/// Both as data.
pub fn json(found: &Calibration) -> Value {
    json!({
        "families": found.families.iter().map(family_json).collect::<Vec<_>>(),
        "drift": found.drift.iter().map(drift_json).collect::<Vec<_>>(),
        "drift_limits_percent": DRIFT_LIMITS,
    })
}

fn family_json(row: &FamilyRatio) -> Value {
    let counted = VOCABULARIES.iter().zip(row.counted);
    let counted: Map<String, Value> = counted.map(|(table, tokens)| (table.key().to_owned(), tokens.into())).collect();
    json!({
        "family": row.family,
        "increments": row.increments,
        "sessions": row.sessions,
        "chars": row.chars,
        "bytes": row.bytes,
        "tokens": row.tokens,
        "counted": counted,
        "bytes_per_token": row.bytes_per_token,
        "chars_per_token": row.chars_per_token,
        "chars_per_token_framed": row.chars_per_token_framed,
    })
}

fn drift_json(row: &Drift) -> Value {
    json!({
        "estimator": row.estimator,
        "increments": row.increments,
        "estimated": row.estimated,
        "actual": row.actual,
        "share_of_actual": of_the_bill(row),
        "percent_p50": row.percent_p50,
        "percent_p90": row.percent_p90,
        "histogram": row.histogram,
    })
}
