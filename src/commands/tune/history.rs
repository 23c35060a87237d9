//! `devboy tune history`: what devboy changed and why, what it was expected to save, and what was saved until the next
//! change.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::visible::{Shown as _, quoted, visible};
use crate::commands::config::config_path;
use crate::commands::tune::realised;
use crate::frames::fingerprint::LayerTokens;
use crate::logs::trace::Millis;
use crate::report::numbers::{counted, date, known, percent, signed, thousands};
use crate::report::table::{Table, TableBuilder, TableFormat};
use crate::rules::report as findings;
use crate::settings::claude::file::ClaudeFile;
use crate::settings::claude::reversal::journal_of_all;
use crate::settings::entries::{EntryStanding, Journal, JournalChange, JournalEntry};
use crate::settings::journal_path;
use crate::shell::arguments::{InputArgs, OutputArgs};
use crate::shell::context::Context;
use crate::telemetry::log::EventLog;
use crate::whatif::client::realised::{ActualChange, CameTrue, JointChange, joint_changes};

/// List the changes that devboy wrote, with what each was expected to save and what was saved until the next one.
///
/// Savings of the pipeline are shares of all tool-response tokens: predicted by replay, with the configuration before and
/// after the change; the actual one in the telemetry, which --input-dir names if it lies elsewhere. Changes of Claude Code's settings
/// are changes of cost with their 95 % intervals: predicted on sessions that they were not chosen on; the actual one in the bills of
/// later sessions over earlier ones, against requests that the change does not concern.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The configuration whose journal is read. Default: $DEVBOY_CONFIG, else ~/.config/devboy/pipeline_config.toml.
    #[arg(long, short, value_name = "FILE", visible_alias = "config")]
    pub output: Option<PathBuf>,
    /// Also print every changed key with its evidence.
    #[arg(long)]
    explain: bool,
    /// Where the logs of Claude Code are. Default: as for other commands.
    #[arg(long, value_name = "PATH")]
    pub log_dir: Vec<PathBuf>,
    /// Where the telemetry is.
    #[command(flatten)]
    pub input: InputArgs,
    /// How the history is shown.
    #[command(flatten)]
    pub report: OutputArgs,
}

/// What was recorded in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ActualSavings {
    /// Tokens by layer.
    pub tokens: LayerTokens,
    /// Recorded events.
    pub events: u64,
}

struct HistoryRow<'j> {
    entry: &'j JournalEntry,
    standing: &'j EntryStanding,
    /// When the next entry was written; none for the last.
    until_ms: Option<Millis>,
    actual: Option<ActualSavings>,
    /// Of Claude Code's settings: changes that concern the same requests, and what became of them.
    came: Vec<(JointChange<'j>, Option<ActualChange>)>,
    /// The same: keys that somebody else has changed since, with what they are now, in words.
    by_hand: Vec<(String, String)>,
}

/// Reads the journal and what was recorded and billed since, and prints it.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let config = config_path(args.output.as_ref(), context)?;
    let path = journal_path(&config);
    let journal = journal_of_all(&config)?;
    let standings = journal.standings();
    let log = realised::recorded(&config, args, context)?;
    let mut rows = rows(&journal, &standings, &log, context.now_ms);
    let changes: Vec<_> = rows.iter().flat_map(|row| row.came.iter().map(|(change, _)| (row.entry, change))).collect();
    let mut came = realised::billed(&changes, args, context)?.into_iter();
    for row in &mut rows {
        // What an undo made again may have been taken back itself.
        let is_taken_back = row.entry.undoes.is_some() && !journal.changed_later(&row.entry.id).is_empty();
        for (change, slot) in &mut row.came {
            // What does not hold any more is not judged.
            let is_by_hand = row.by_hand.iter().any(|(key, _)| change.keys.contains(&key.as_str()));
            *slot = came.next().flatten().filter(|_| !is_by_hand && !is_taken_back);
        }
    }
    if !args.report.quiet {
        tell_damaged(&journal, &path, context)?;
        tell(&rows, args, &config, &path, context)?;
    }
    let form = args.report.form();
    let named = args.output.as_deref();
    match form {
        TableFormat::Json => {
            let fields = json!({
                "config": config.shown(),
                "journal": path.shown(),
                "damaged_lines": journal.damaged_lines,
                "entries": rows.iter().map(|row| row_json(row, &journal)).collect::<Vec<_>>(),
            });
            args.report.write_json("tune history", fields, context)?;
        }
        TableFormat::Table if rows.is_empty() => {}
        TableFormat::Table => {
            table(&rows, named).write(context.out, form, context.width)?;
            if args.explain {
                rows.iter().try_for_each(|row| explain(row, context))?;
            }
        }
        TableFormat::Csv | TableFormat::Md if args.explain => keys(&rows).write(context.out, form, context.width)?,
        TableFormat::Csv | TableFormat::Md => table(&rows, named).write(context.out, form, context.width)?,
    }
    Ok(())
}

/// Tells about lines of the journal that mean nothing to devboy.
pub fn tell_damaged(journal: &Journal, path: &Path, context: &mut Context<'_>) -> Result<()> {
    let lines = &journal.damaged_lines;
    if let Some(first) = lines.first() {
        let count = counted(lines.len() as u64, "line");
        writeln!(context.err, "# note: left out {count} that cannot be read (first: {}:{first})", path.shown())?;
    }
    Ok(())
}

fn rows<'j>(
    journal: &'j Journal,
    standings: &'j [EntryStanding],
    log: &EventLog,
    now_ms: Millis,
) -> Vec<HistoryRow<'j>> {
    let row = |(position, (entry, standing)): (usize, (&'j JournalEntry, &'j EntryStanding))| {
        let rest = &journal.entries[position + 1..];
        let until_ms = rest.iter().find(|next| next.config == entry.config).map(|next| next.at_ms);
        let end_ms = until_ms.unwrap_or(now_ms);
        let is_about_claude = entry.is_about_claude();
        let actual = if is_about_claude { None } else { realised::saved(log, entry.at_ms, end_ms) };
        let actual = actual.filter(|actual| actual.tokens.combined().is_some());
        let changes = if is_about_claude { joint_changes(entry, journal) } else { Vec::new() };
        let came = changes.into_iter().map(|change| (change, None)).collect();
        let by_hand = if standing.holds() { by_hand(entry, rest) } else { Vec::new() };
        HistoryRow { entry, standing, until_ms, actual, came, by_hand }
    };
    journal.entries.iter().zip(standings).enumerate().map(row).collect()
}

/// Keys of Claude Code's settings that no later entry changed and that are not any more what an entry made them. Of a file
/// that cannot be read nothing is known.
fn by_hand(entry: &JournalEntry, later: &[JournalEntry]) -> Vec<(String, String)> {
    let file = Some(entry).filter(|entry| entry.is_about_claude());
    let Some(file) = file.and_then(|entry| ClaudeFile::load(Path::new(&entry.config)).ok()) else { return Vec::new() };
    let again = |key: &str| {
        let mut of_file = later.iter().filter(|next| next.config == entry.config);
        of_file.any(|next| next.changes.iter().any(|change| change.key == key))
    };
    let changed = entry.changes.iter().filter(|change| !again(&change.key)).filter_map(|change| {
        let key: KeyPath = change.key.parse().ok()?;
        let now = file.get(&key).ok()?.map(|value| value.to_string());
        let is = now.as_ref().map_or_else(|| "gone".to_owned(), |now| format!("{now} now"));
        (now != change.new).then(|| (change.key.clone(), format!("{} is {is}", change.key)))
    });
    changed.collect()
}

/// What the columns mean, and why some are empty.
fn tell(rows: &[HistoryRow<'_>], args: &Args, config: &Path, journal: &Path, context: &mut Context<'_>) -> Result<()> {
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
fn table(rows: &[HistoryRow<'_>], journal: Option<&Path>) -> Table {
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
                let words = came_words(row, came.as_ref()?, journal);
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
fn came_words(row: &HistoryRow<'_>, came: &ActualChange, journal: Option<&Path>) -> String {
    match came.verdict {
        CameTrue::TooEarly => {
            let (before, after) = (counted(came.before, "session"), came.after);
            let control = came.control.zip(came.control_sessions);
            let beside = control.map(|(name, [before, after])| format!("; with {name} {before} and {after}"));
            let beside = beside.unwrap_or_default();
            format!("too early to tell: {before} before the change, {after} after it{beside}")
        }
        CameTrue::TooFewBefore => {
            format!("not clear: too few sessions before the change ({}), which no time mends", thousands(came.before))
        }
        CameTrue::NotClear if came.change.is_none() => {
            let (before, after) = (counted(came.before, "session"), came.after);
            format!("not clear: {before} before the change, {after} between it and another one")
        }
        CameTrue::NotClear if came.control.is_none() => {
            "not clear: nothing to hold it against, other causes are possible".to_owned()
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
fn keys(rows: &[HistoryRow<'_>]) -> Table {
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

fn explain(row: &HistoryRow<'_>, context: &mut Context<'_>) -> Result<()> {
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

fn row_json(row: &HistoryRow<'_>, journal: &Journal) -> Value {
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
