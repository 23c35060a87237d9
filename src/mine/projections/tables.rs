//! Mined projections as tables, JSON and words, with the counts behind every share.

use serde_json::{Value, json};

use crate::frames::projection::MinedProjection;
use crate::report::table::Table;

/// What people want to see of each link.
pub fn overview(rows: &[MinedProjection]) -> Table {
    let mut table =
        Table::new(&["from", "list", "to", "argument", "#hits", "#top 1", "#top 3", "#by chance", "#sessions"]);
    for row in rows.iter().filter(|row| row.held.is_none()) {
        let share = |count: u64| format!("{:.0} %", 100.0 * count as f64 / row.opportunities.max(1) as f64);
        table.row([
            row.from.clone(),
            row.extractor.clone(),
            row.to.clone(),
            row.argument.clone(),
            format!("{} of {}", row.hits, row.opportunities),
            share(row.top1),
            share(row.top3),
            format!("{:.1} %", 100.0 * row.chance / row.opportunities.max(1) as f64),
            row.sessions.to_string(),
        ]);
    }
    table
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
    let mut table = Table::new(&[
        "from",
        "to",
        "argument",
        "extractor",
        "projection",
        "projection_arg",
        "#opportunities",
        "#hits",
        "#top1",
        "#top3",
        "#chance",
        "#sessions_seen",
        "#sessions",
        "#values",
        "#forward",
        "#reversed",
        "#sole",
        "#p",
        "held",
    ]);
    for row in rows {
        let link = row.spelling.clone();
        let (projection, argument) = link.map(|link| (link.projection, link.projection_arg)).unwrap_or_default();
        table.row([
            row.from.clone(),
            row.to.clone(),
            row.argument.clone(),
            row.extractor.clone(),
            projection,
            argument,
            row.opportunities.to_string(),
            row.hits.to_string(),
            row.top1.to_string(),
            row.top3.to_string(),
            format!("{:.3}", row.chance),
            row.sessions_seen.to_string(),
            row.sessions.to_string(),
            row.values.to_string(),
            row.forward.to_string(),
            row.reversed.to_string(),
            row.sole.to_string(),
            format!("{:.2e}", row.p),
            row.held.map(|held| held.key().to_owned()).unwrap_or_default(),
        ]);
    }
    table
}

/// The same for JSON.
pub fn json(rows: &[MinedProjection]) -> Value {
    rows.iter().map(row_json).collect()
}

fn row_json(row: &MinedProjection) -> Value {
    json!({
        "from": row.from,
        "to": row.to,
        "argument": row.argument,
        "extractor": row.extractor,
        "projection": row.spelling.as_ref().map(|link| &link.projection),
        "projection_arg": row.spelling.as_ref().map(|link| &link.projection_arg),
        "opportunities": row.opportunities,
        "hits": row.hits,
        "top1": row.top1,
        "top3": row.top3,
        "chance": row.chance,
        "sessions_seen": row.sessions_seen,
        "sessions": row.sessions,
        "values": row.values,
        "forward": row.forward,
        "reversed": row.reversed,
        "sole": row.sole,
        "p": row.p,
        "held": row.held.map(|held| held.key()),
    })
}
