//! Mined projections as tables, JSON and words, with the counts behind every share.

use serde_json::{Value, json};

use crate::frames::projection::{MinedProjection, Spelling};
use crate::report::table::{Table, TableBuilder};

/// What people want to see of each link.
pub fn overview(rows: &[MinedProjection]) -> Table {
    let share =
        |row: &MinedProjection, count: u64| format!("{:.0} %", 100.0 * count as f64 / row.opportunities.max(1) as f64);
    TableBuilder::of(rows.iter().filter(|row| row.held.is_none()))
        .text("from", |row| row.from.clone())
        .text("list", |row| row.extractor.clone())
        .text("to", |row| row.to.clone())
        .text("argument", |row| row.argument.clone())
        .number("hits", |row| format!("{} of {}", row.hits, row.opportunities))
        .number("top 1", |row| share(row, row.top1))
        .number("top 3", |row| share(row, row.top3))
        .number("by chance", |row| format!("{:.1} %", 100.0 * row.chance / row.opportunities.max(1) as f64))
        .number("sessions", |row| row.sessions.to_string())
        .table()
}

/// The evidence of a link in one line.
pub fn words(row: &MinedProjection) -> String {
    let MinedProjection { from, to, argument, extractor, .. } = row;
    let spelled = match &row.spelling {
        Some(link) => format!("projection = \"{}\", projection_arg = \"{}\"", link.projection, link.projection_arg),
        None => "a nested argument cannot stand in a configuration".to_owned(),
    };
    format!(
        "{from} → {to}.{argument} [{extractor}]: {}; {} values pass forwards only, {} backwards only; \
         {} of {} calls had no other argument; {spelled}",
        row.counts(),
        row.forward,
        row.reversed,
        row.sole,
        row.hits
    )
}

/// Why a candidate is no link, in one line.
pub fn held(row: &MinedProjection) -> Option<String> {
    let MinedProjection { from, to, argument, extractor, forward, reversed, .. } = row;
    let reason = row.held?.words();
    Some(format!(
        "held {from} → {to}.{argument} [{extractor}]: {reason} ({}; {forward} values pass forwards only, \
         {reversed} backwards only; p {:.1e})",
        row.counts(),
        row.p
    ))
}

/// All fields, one row per link or candidate.
pub fn table(rows: &[MinedProjection]) -> Table {
    let spelled = |row: &MinedProjection, of: fn(&Spelling) -> &String| {
        row.spelling.as_ref().map(|link| of(link).clone()).unwrap_or_default()
    };
    TableBuilder::of(rows)
        .text("from", |row| row.from.clone())
        .text("to", |row| row.to.clone())
        .text("argument", |row| row.argument.clone())
        .text("extractor", |row| row.extractor.clone())
        .text("projection", |row| spelled(row, |link| &link.projection))
        .text("projection_arg", |row| spelled(row, |link| &link.projection_arg))
        .number("opportunities", |row| row.opportunities.to_string())
        .number("hits", |row| row.hits.to_string())
        .number("top1", |row| row.top1.to_string())
        .number("top3", |row| row.top3.to_string())
        .number("chance", |row| format!("{:.3}", row.chance))
        .number("sessions_seen", |row| row.sessions_seen.to_string())
        .number("sessions", |row| row.sessions.to_string())
        .number("values", |row| row.values.to_string())
        .number("forward", |row| row.forward.to_string())
        .number("reversed", |row| row.reversed.to_string())
        .number("sole", |row| row.sole.to_string())
        .number("p", |row| format!("{:.2e}", row.p))
        .text("held", |row| row.held.map(|held| held.into_str().to_owned()).unwrap_or_default())
        .table()
}

/// The same for JSON.
pub fn json(rows: &[MinedProjection]) -> Value {
    rows.iter().map(row_json).collect()
}

fn row_json(row: &MinedProjection) -> Value {
    let mut fields = json!(row);
    fields.as_object_mut().map(|fields| fields.remove("spelling"));
    fields["projection"] = json!(row.spelling.as_ref().map(|link| &link.projection));
    fields["projection_arg"] = json!(row.spelling.as_ref().map(|link| &link.projection_arg));
    fields
}
