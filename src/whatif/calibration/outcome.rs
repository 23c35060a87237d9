//! How many characters a token has on the user's own logs, and how far each estimator is from the bill: as rows, tables
//! and JSON.

use serde::Serialize;
use serde_json::{Value, json};

use crate::base::tokenizer::VOCABULARIES;
use crate::report::numbers::percent;
use crate::report::table::{Table, TableBuilder};

/// A ratio with its 95 % interval over sessions.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// Lower end of its interval; none with fewer than two sessions.
    pub lower: Option<f64>,
    /// Upper end.
    pub upper: Option<f64>,
}

/// Characters per token of one model family.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FamilyRatio {
    /// Model, in the one spelling.
    pub family: String,
    /// Increments that were measured.
    pub increments: u64,
    /// Sessions that they come from.
    pub sessions: u64,
    /// Code points of their blocks.
    pub chars: u64,
    /// UTF-8 bytes of the same.
    pub bytes: u64,
    /// Tokens by which contexts grew, without the framing of calls and results.
    pub tokens: u64,
    /// What the vocabularies make of the same text, in their order.
    pub counted: [u64; VOCABULARIES.len()],
    /// Code points per token.
    pub chars_per_token: Ratio,
    /// Bytes per token: what a tokenizer profile divides by (`[profiles.tokenizer]`, whose key says characters).
    pub bytes_per_token: Ratio,
    /// Code points per token with all framing in the tokens: what an increment brings as a whole.
    pub chars_per_token_framed: f64,
}

/// Limits of the drift histogram in percent; one more class is beyond the last.
pub const DRIFT_LIMITS: [u64; 9] = [1, 2, 5, 10, 15, 20, 30, 50, 100];

/// How far an estimator is from measured growth.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Drift {
    /// Estimator.
    pub estimator: String,
    /// Increments.
    pub increments: u64,
    /// Its tokens.
    pub estimated: u64,
    /// Measured tokens.
    pub actual: u64,
    /// Median drift of one increment in percent.
    pub percent_p50: u64,
    /// 90th percentile.
    pub percent_p90: u64,
    /// Increments by drift: up to each of [`DRIFT_LIMITS`], then beyond.
    pub histogram: [u64; DRIFT_LIMITS.len() + 1],
}

/// Both.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Calibration {
    /// By family.
    pub families: Vec<FamilyRatio>,
    /// By estimator.
    pub drift: Vec<Drift>,
}

/// Characters and bytes per token of each model family.
pub fn families(rows: &[FamilyRatio]) -> Table {
    TableBuilder::of(rows)
        .text("model", |row| row.family.clone())
        .count("increments", |row| row.increments)
        .count("sessions", |row| row.sessions)
        .number("bytes/token", |row| format!("{:.3}", row.bytes_per_token.value))
        .number("95 %", |row| interval(row.bytes_per_token))
        .number("chars/token", |row| format!("{:.3}", row.chars_per_token.value))
        .number("framed", |row| format!("{:.3}", row.chars_per_token_framed))
        .table()
}

fn interval(ratio: Ratio) -> String {
    let ends = ratio.lower.zip(ratio.upper);
    ends.map_or_else(|| "–".to_owned(), |(lower, upper)| format!("{lower:.3}–{upper:.3}"))
}

/// How far each estimator is from measured growth.
pub fn drift(rows: &[Drift]) -> Table {
    TableBuilder::of(rows)
        .text("estimator", |row| row.estimator.clone())
        .count("increments", |row| row.increments)
        .count("estimated", |row| row.estimated)
        .count("billed", |row| row.actual)
        .number("of the bill", |row| of_the_bill(row).map_or_else(|| "–".to_owned(), percent))
        .number("drift p50", |row| format!("{} %", row.percent_p50))
        .number("drift p90", |row| format!("{} %", row.percent_p90))
        .table()
}

fn of_the_bill(row: &Drift) -> Option<f64> {
    (row.actual > 0).then(|| row.estimated as f64 / row.actual as f64)
}

/// Both as data.
pub fn json(found: &Calibration) -> Value {
    let mut fields = json!(found);
    fields["drift_limits_percent"] = json!(DRIFT_LIMITS);
    for (place, row) in found.families.iter().enumerate() {
        let counted =
            VOCABULARIES.iter().zip(row.counted).map(|(table, tokens)| (table.into_str().to_owned(), tokens.into()));
        fields["families"][place]["counted"] = Value::Object(counted.collect());
    }
    for (place, row) in found.drift.iter().enumerate() {
        fields["drift"][place]["share_of_actual"] = json!(of_the_bill(row));
    }
    fields
}
