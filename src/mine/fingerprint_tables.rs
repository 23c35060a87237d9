//! Fingerprints of endpoints as tables and JSON, with the denominators of every share.

use serde_json::{Value, json};

use crate::frames::fingerprint::{EventProfile, Fingerprint, LayerTokens};
use crate::report::numbers::{date, thousands};
use crate::report::table::{Table, TableBuilder};

/// Longest name of an endpoint in a table, in characters (published width).
const NAME_MAX: usize = 35;

/// What people want to see of each endpoint, the most frequent first.
pub fn overview(fingerprints: &[Fingerprint]) -> Table {
    TableBuilder::of(most_called(fingerprints))
        .text("endpoint", |row| row.endpoint.clone())
        .number("calls", |row| calls(row.calls))
        .count("sessions", |row| row.sessions)
        .count("avg bytes", |row| row.bytes_mean.round() as u64)
        .number("dup %", |row| format!("{:.1}", 100.0 * row.dup_rate()))
        .text("shape (share of calls)", |row| {
            row.shape_dominant.as_ref().map_or_else(String::new, |shape| {
                let share = row.shape_mix.iter().find(|(name, _)| name == shape).map_or(0.0, |(_, share)| *share);
                format!("{shape} {:.0} %", 100.0 * share)
            })
        })
        .number("entropy", |row| format!("{:.2}", row.format_entropy))
        .text("inner formats", |row| row.inner_formats_top3.join(", "))
        .table()
}

fn most_called(fingerprints: &[Fingerprint]) -> Vec<&Fingerprint> {
    let mut most: Vec<&Fingerprint> = fingerprints.iter().collect();
    most.sort_by(|a, b| b.calls.total_cmp(&a.calls).then_with(|| a.endpoint.cmp(&b.endpoint)));
    most
}

/// All fields, one row per endpoint, under the names and in the order of the Parquet form.
pub fn csv(fingerprints: &[Fingerprint]) -> Table {
    let optional = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let mix = |row: &&Fingerprint| {
        let shares: Vec<String> = row.shape_mix.iter().map(|(shape, share)| format!("{shape}={share}")).collect();
        shares.join(" ")
    };
    TableBuilder::of(fingerprints)
        .text("endpoint_class", |row| row.endpoint.clone())
        .number("call_count", |row| row.calls.to_string())
        .number("events", |row| row.events.to_string())
        .number("avg_response_chars", |row| row.bytes_mean.to_string())
        .text("shape_dominant", |row| row.shape_dominant.clone().unwrap_or_default())
        .text("shape_mix", mix)
        .number("dup_rate", |row| row.dup_rate().to_string())
        .number("repeat_distance_p90", |row| row.repeat_distance_p90.map(|p90| p90.to_string()).unwrap_or_default())
        .number("format_entropy", |row| row.format_entropy.to_string())
        .text("inner_formats_top3", |row| row.inner_formats_top3.join(" "))
        .number("avg_cols", |row| optional(row.columns_mean))
        .number("avg_rows", |row| optional(row.rows_mean))
        .number("key_stability_mean", |row| optional(row.key_stability_mean))
        .number("first_seen_ms", |row| row.first_ms.to_string())
        .number("last_seen_ms", |row| row.last_ms.to_string())
        .number("source_sessions", |row| row.sessions.to_string())
        .number("tokens_baseline", |row| row.tokens.total().to_string())
        .number("dedup_savings", |row| optional(row.tokens.dedup()))
        .number("encoder_savings", |row| optional(row.tokens.encoder()))
        .number("combined_savings", |row| optional(row.tokens.combined()))
        .table()
}

/// The published fields for Markdown, one row per endpoint.
pub fn markdown(fingerprints: &[Fingerprint]) -> Table {
    let optional = |value: Option<f64>, digits: usize| value.map(|v| format!("{v:.digits$}")).unwrap_or_default();
    TableBuilder::of(fingerprints)
        .text("endpoint_class", |row| row.endpoint.clone())
        .number("call_count", |row| calls(row.calls))
        .number("avg_response_chars", |row| format!("{:.0}", row.bytes_mean))
        .text("shape_dominant", |row| row.shape_dominant.clone().unwrap_or_default())
        .number("dup_rate", |row| format!("{:.4}", row.dup_rate()))
        .number("format_entropy", |row| format!("{:.3}", row.format_entropy))
        .text("inner_formats_top3", |row| row.inner_formats_top3.join(" "))
        .number("avg_cols", |row| optional(row.columns_mean, 1))
        .number("avg_rows", |row| optional(row.rows_mean, 1))
        .number("key_stability_mean", |row| optional(row.key_stability_mean, 3))
        .number("source_sessions", |row| row.sessions.to_string())
        .text("first_seen", |row| date(row.first_ms))
        .text("last_seen", |row| date(row.last_ms))
        .table()
}

/// The endpoints called most often, in the published columns and then the tokens that the shares are of.
pub fn top(fingerprints: &[Fingerprint], rows: usize) -> Vec<String> {
    let most = most_called(fingerprints);
    let head = format!(
        "{:<NAME_MAX$} {:>7} {:>8} {:>9} {:>9} {:>9} {:>9} {:>12}",
        "endpoint", "calls", "dup_rate", "avg_chars", "dedup%", "encoder%", "total%", "tokens"
    );
    let share = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), |share| format!("{:.1}%", 100.0 * share));
    let line = |row: &&Fingerprint| {
        format!(
            "{:<NAME_MAX$} {:>7} {:>8} {:>9.0} {:>9} {:>9} {:>9} {:>12}",
            shortened(row.key.as_ref().unwrap_or(&row.endpoint)),
            calls(row.calls),
            share(Some(row.dup_rate())),
            row.bytes_mean,
            share(row.tokens.dedup()),
            share(row.tokens.encoder()),
            share(row.tokens.combined()),
            thousands(row.tokens.total().round() as u64),
        )
    };
    std::iter::once(head).chain(most.iter().take(rows).map(line)).collect()
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_MAX - 1).chain(['…']).collect()
}

/// A weighted count without needless digits.
fn calls(calls: f64) -> String {
    thousands(calls.round() as u64)
}

/// The published one-line summary.
pub fn summary(profile: &EventProfile, endpoints: usize) -> String {
    let share = |share: Option<f64>| share.map_or_else(|| "n/a".to_owned(), |share| format!("{:.1}%", 100.0 * share));
    format!(
        "events: {} | sessions: {} | endpoints: {} | dedup: {} | encoder: {} | total: {}",
        profile.events,
        profile.sessions,
        endpoints,
        share(profile.tokens.dedup()),
        share(profile.tokens.encoder()),
        share(profile.tokens.combined()),
    )
}

/// The three figures with their denominators.
pub fn savings_json(tokens: &LayerTokens) -> Value {
    json!({
        "baseline_tokens": tokens.total(),
        "missed_l0_tokens": tokens.total() - tokens.baseline[0],
        "dedup_savings": tokens.dedup(),
        "encoder_savings": tokens.encoder(),
        "combined_savings": tokens.combined(),
    })
}

/// Fingerprints for JSON, in the published field names. Names in configurations are not among them.
pub fn json(fingerprints: &[Fingerprint]) -> Value {
    fingerprints.iter().map(fingerprint_json).collect()
}

fn fingerprint_json(row: &Fingerprint) -> Value {
    let mix: serde_json::Map<String, Value> =
        row.shape_mix.iter().map(|(shape, share)| (shape.clone(), json!(share))).collect();
    json!({
        "endpoint_class": row.endpoint,
        "call_count": row.calls,
        "events": row.events,
        "avg_response_chars": row.bytes_mean,
        "shape_dominant": row.shape_dominant,
        "shape_mix": mix,
        "dup_rate": row.dup_rate(),
        "dup_events": row.repeat_events,
        "repeat_distance_p90": row.repeat_distance_p90,
        "format_entropy": row.format_entropy,
        "inner_formats_top3": row.inner_formats_top3,
        "avg_cols": row.columns_mean,
        "avg_rows": row.rows_mean,
        "key_stability_mean": row.key_stability_mean,
        "first_seen_ms": row.first_ms,
        "last_seen_ms": row.last_ms,
        "source_sessions": row.sessions,
        "savings": savings_json(&row.tokens),
    })
}

/// The whole for JSON.
pub fn profile_json(profile: &EventProfile) -> Value {
    json!({
        "events": profile.events,
        "calls": profile.calls,
        "sessions": profile.sessions,
        "contexts": profile.contexts,
        "partitions": profile.partitions,
        "compactions": profile.compactions,
        "response_chars_p25": profile.bytes_p25,
        "nested_objects": profile.nested,
        "nested_depth_p95": profile.nested_depth_p95,
        "savings": savings_json(&profile.tokens),
    })
}
