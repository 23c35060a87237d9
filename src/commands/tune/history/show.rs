//! The history in words, tables and JSON.

use std::path::Path;

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::base::visible::{Shown as _, quoted, visible};
use crate::commands::tune::history::{Args, HistoryRow};
use crate::logs::trace::Millis;
use crate::report::numbers::{counted, date, known, percent, signed, thousands};
use crate::report::table::{Table, TableBuilder, TableFormat};
use crate::rules::report as findings;
use crate::settings::entries::{Journal, JournalChange, JournalEntry};
use crate::shell::context::Context;
use crate::whatif::client::actual::{ActualChange, CameTrue, JointChange};

/// What the columns mean, and why some are empty.
pub(super) fn tell(
    rows: &[HistoryRow<'_>],
    args: &Args,
    config: &Path,
    journal: &Path,
    context: &mut Context<'_>,
) -> Result<()> {
    let err = &mut context.err;
    if rows.is_empty() {
        writeln!(err, "# no change of {} is recorded in {}", config.shown(), journal.shown())?;
        return Ok(());
    }
    writeln!(err, "# config:    {}", config.shown())?;
    if args.report.form() == TableFormat::Json {
        return Ok(());
    }
    writeln!(
        err,
        "# predicted: share of tool-response tokens saved, before → after, by replay, if every result could be changed"
    )?;
    if rows.iter().any(|row| row.entry.command == "tune search") {
        writeln!(err, "#            of a search: on its later sessions, of the results that its --reach can change")?;
    }
    if rows.iter().any(|row| row.entry.is_about_claude()) {
        writeln!(err, "#            of settings: change of cost of the requests concerned, with its 95 % interval")?;
    }
    if rows.iter().any(|row| row.entry.predicted.is_none() && !row.entry.is_about_claude()) {
        writeln!(err, "#            – where nothing was replayed")?;
    }
    writeln!(err, "# actual:    the same share, in the events recorded from this change to the next")?;
    if rows.iter().any(|row| row.actual.is_none() && !row.entry.is_about_claude()) {
        writeln!(err, "#            – where no event was recorded; `telemetry.enabled = true` records them")?;
    }
    Ok(())
}

/// The history; `journal` is the configuration that names it, if it is not the user's own.
pub(super) fn table(rows: &[HistoryRow<'_>], journal: Option<&Path>) -> Table {
    TableBuilder::of(rows)
        .text("id", |row| row.entry.id.clone())
        .text("when", |row| date(row.entry.at_ms))
        .text("command", |row| command(row.entry))
        .count("keys", |row| row.entry.changes.len() as u64)
        .text("predicted", |row| predicted(row))
        .text("actual", |row| actual(row))
        .count("events", |row| row.actual.map_or(0, |actual| actual.events))
        .text("state", |row| state(row, journal))
        .table()
}

fn command(entry: &JournalEntry) -> String {
    match &entry.undoes {
        Some(undone) => format!("undo of {undone}"),
        None => entry.command.trim_start_matches("tune ").to_owned(),
    }
}

/// Shares as changes of cost: "−12.3 %, −15.0 to −9.1".
fn change_words(change: f64, lower: f64, upper: f64) -> String {
    let [change, lower, upper] = [change, lower, upper].map(|share| signed(100.0 * share, 1));
    format!("{change} %, {lower} to {upper}")
}

fn actual(row: &HistoryRow<'_>) -> String {
    if !row.entry.is_about_claude() {
        let share = row.actual.and_then(|actual| actual.tokens.combined());
        return known(share, percent);
    }
    let of = |came: &ActualChange| match (came.change, came.lower, came.upper) {
        (Some(change), Some(lower), Some(upper)) => change_words(change, lower, upper),
        _ => "–".to_owned(),
    };
    let came: Vec<String> = row.came.iter().map(|(_, came)| came.as_ref().map_or_else(|| "–".to_owned(), of)).collect();
    if came.is_empty() { "–".to_owned() } else { came.join("; ") }
}

fn predicted(row: &HistoryRow<'_>) -> String {
    let told = row.came.iter().filter_map(|(change, _)| change.forecast.as_ref());
    let told: Vec<String> = told.map(|told| change_words(told.change, told.lower, told.upper)).collect();
    if !told.is_empty() {
        return told.join("; ");
    }
    let shares = row.entry.predicted.as_ref().and_then(|predicted| predicted.shares());
    known(shares, |(before, after)| format!("{} → {}", percent(before), percent(after)))
}

fn state(row: &HistoryRow<'_>, journal: Option<&Path>) -> String {
    match row.standing {
        standing if standing.holds() => {
            let changed = row.by_hand.iter().map(|(_, is)| format!("changed since, not by devboy: {is}"));
            let of = |(change, came): &(JointChange<'_>, Option<ActualChange>)| {
                let words = came_words(row, (change, came.as_ref()?), journal);
                Some(if row.came.len() > 1 { format!("{}: {words}", change.keys.join(", ")) } else { words })
            };
            let came = row.came.iter().filter_map(of);
            changed.chain(came).collect::<Vec<_>>().join("; ")
        }
        standing if standing.is_undone() => "undone".to_owned(),
        _ => "undone in part".to_owned(),
    }
}

/// Whether it came true, and what to do where it did not.
fn came_words(
    row: &HistoryRow<'_>,
    (change, came): (&JointChange<'_>, &ActualChange),
    journal: Option<&Path>,
) -> String {
    match came.verdict {
        CameTrue::TooEarly => {
            let (before, after) = (counted(came.before, "session"), came.after);
            let control = came.control.zip(came.control_sessions);
            let beside = control.map(|(name, [before, after])| format!("; with {name} {before} and {after}"));
            let beside = beside.unwrap_or_default();
            format!("too early to tell: {before} before the change, {after} after it{beside}")
        }
        CameTrue::TooFewBefore => {
            format!(
                "not clear: too few sessions before the change ({}); waiting will not change that",
                thousands(came.before)
            )
        }
        CameTrue::NotClear if came.change.is_none() => {
            let (before, after) = (counted(came.before, "session"), came.after);
            format!("not clear: {before} before the change, {after} between it and another one")
        }
        CameTrue::NotClear if came.control.is_none() => {
            let forecast = change.forecast.as_ref();
            let is_beyond = forecast.is_some_and(|told| came.lower.is_some_and(|lower| lower > told.upper));
            let what = if is_beyond { "less was saved than expected" } else { "not clear" };
            format!("{what}: nothing to hold it against, other causes are possible")
        }
        CameTrue::No => {
            // Settings are undone by the journal of a configuration; --output would be the file of settings.
            let place = journal.map_or_else(String::new, |path| format!("DEVBOY_CONFIG={} ", quoted(&path.shown())));
            format!("did not come true: {place}devboy tune undo {}", row.entry.id)
        }
        other => other.into_str().to_owned(),
    }
}

/// The changed keys, one a row.
pub(super) fn keys(rows: &[HistoryRow<'_>]) -> Table {
    TableBuilder::of(rows.iter().flat_map(|row| row.entry.changes.iter().map(|change| (row.entry, change))))
        .text("id", |(entry, _)| entry.id.clone())
        .text("rule", |(_, change)| change.rule.clone())
        .text("key", |(_, change)| change.key.clone())
        .text("old", |(_, change)| change.old.clone().unwrap_or_default())
        .text("new", |(_, change)| change.new.clone().unwrap_or_default())
        .number("n", |(_, change)| change.n.to_string())
        .text("evidence", |(_, change)| reasons(change).join("; ").replace('\n', "; "))
        .table()
}

pub(super) fn explain(row: &HistoryRow<'_>, context: &mut Context<'_>) -> Result<()> {
    let entry = row.entry;
    let read = entry.inputs.as_ref().map_or_else(String::new, |inputs| {
        let (events, sessions) = (counted(inputs.events, "event"), counted(inputs.sessions, "session"));
        format!(", from {} ({events}, {sessions})", inputs.origin)
    });
    let words = format!("{} {}: {}{read}", entry.id, date(entry.at_ms), command(entry));
    writeln!(context.out, "\n{}", visible(&words))?;
    if let Some(predicted) = &entry.predicted {
        let tokens = thousands(predicted.baseline.round() as u64);
        writeln!(context.out, "  replayed over {tokens} tool-response tokens")?;
    }
    for change in &entry.changes {
        writeln!(context.out, "  {}", visible(&step(change)))?;
        for line in reasons(change).iter().flat_map(|reason| reason.lines()) {
            writeln!(context.out, "      {}", visible(line))?;
        }
    }
    Ok(())
}

/// "R1 dedup.lru_size: 5 → 8"
fn step(change: &JournalChange) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let rule = if change.rule.is_empty() { String::new() } else { format!("{} ", change.rule) };
    format!("{rule}{}: {} → {}", change.key, side(&change.old), side(&change.new))
}

fn reasons(change: &JournalChange) -> Vec<String> {
    let effect = change.effect.map(|effect| {
        let share = if effect.baseline > 0.0 { effect.tokens / effect.baseline } else { 0.0 };
        let (tokens, share) = (thousands(effect.tokens.abs().round() as u64), percent(share.abs()));
        let way = if effect.tokens < 0.0 { "less" } else { "more" };
        format!("the change that it is part of is expected to save {tokens} tokens {way}, {share} of all")
    });
    let forecast = change.forecast.as_ref().map(|told| format!("expected: {}", findings::forecast_words(told)));
    let n = if change.n > 0 { format!(" (n {})", thousands(change.n)) } else { String::new() };
    let evidence = Some(format!("{}{n}", change.evidence)).filter(|words| !words.is_empty());
    [evidence, change.threshold.clone(), effect, forecast].into_iter().flatten().collect()
}

pub(super) fn row_json(row: &HistoryRow<'_>, journal: &Journal) -> Value {
    let HistoryRow { entry, standing, .. } = row;
    let shares = entry.predicted.as_ref().and_then(|predicted| predicted.shares());
    json!({
        "id": entry.id,
        "at": instant(entry.at_ms),
        "tool_version": entry.tool_version,
        "command": entry.command,
        "target": entry.target,
        "config": entry.config,
        "inputs": entry.inputs,
        "predicted": entry.predicted.as_ref().map(|predicted| json!({
            "basis": "replayed",
            "baseline_tokens": predicted.baseline,
            "saved_tokens_before": predicted.saved_before,
            "saved_tokens_after": predicted.saved_after,
            "combined_savings_before": shares.map(|(before, _)| before),
            "combined_savings_after": shares.map(|(_, after)| after),
        })),
        "actual_until": row.until_ms.and_then(instant),
        "actual": row.actual.map(|actual| json!({
            "basis": "measured",
            "events": actual.events,
            "baseline_tokens": actual.tokens.total(),
            "dedup_savings": actual.tokens.dedup(),
            "encoder_savings": actual.tokens.encoder(),
            "combined_savings": actual.tokens.combined(),
        })),
        "came_true": row.came.iter().flat_map(|(change, came)| came_json(change, came.as_ref())).collect::<Vec<_>>(),
        "undoes": entry.undoes,
        "undone_by": standing.undos.iter().map(|undo| &journal.entries[*undo].id).collect::<Vec<_>>(),
        "undone": standing.is_undone(),
        "changed_since": row.by_hand.iter().map(|(_, is)| is).collect::<Vec<_>>(),
        "changes": entry.changes,
    })
}

/// Of each key what became of it: of several together, all of them say the same.
fn came_json<'c>(change: &'c JointChange<'_>, came: Option<&'c ActualChange>) -> impl Iterator<Item = Value> + 'c {
    let of_key = move |(key, came): (&&str, &ActualChange)| {
        let with: Vec<_> = change.keys.iter().filter(|other| *other != key).collect();
        json!({ "key": key, "with": with, "basis": "measured", "billed": came })
    };
    came.into_iter().flat_map(move |came| change.keys.iter().map(move |key| (key, came))).map(of_key)
}

fn instant(ms: Millis) -> Option<String> {
    jiff::Timestamp::from_millisecond(ms).map(|at| at.to_string()).ok()
}
