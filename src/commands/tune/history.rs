//! `devboy tune history`: what devboy changed and why, what it was expected to save, and what was saved until the next
//! change.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::base::visible::{Shown as _, visible};
use crate::commands::config::config_path;
use crate::frames::fingerprint::LayerTokens;
use crate::logs::trace::Millis;
use crate::report::envelope;
use crate::report::numbers::{counted, date, percent, thousands};
use crate::report::table::{Format, Table};
use crate::settings::entries::{Entry, Journal, JournalChange, Standing};
use crate::settings::{SettingsFile, journal_name, journal_of, journal_path, read_journal};
use crate::shell::arguments::{Exit, InputArgs, OutputArgs};
use crate::shell::context::Context;

/// List the changes that devboy wrote, with what each was expected to save and what was saved until the next one.
///
/// Savings are shares of all tool-response tokens: predicted by replay, with the configuration before and after the
/// change; realised in the telemetry, which --input-dir names if it lies elsewhere.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The configuration whose journal is read. Default: $DEVBOY_CONFIG, else ~/.config/devboy/pipeline_config.toml.
    #[arg(long, short, value_name = "FILE", visible_alias = "config")]
    pub output: Option<PathBuf>,
    /// Also print every changed key with its evidence.
    #[arg(long)]
    explain: bool,
    /// Where the telemetry is.
    #[command(flatten)]
    pub input: InputArgs,
    /// How the history is shown.
    #[command(flatten)]
    pub report: OutputArgs,
}

/// What was recorded in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Realised {
    /// Tokens by layer.
    pub tokens: LayerTokens,
    /// Recorded events.
    pub events: u64,
}

/// One line of the history.
struct Row<'j> {
    entry: &'j Entry,
    standing: &'j Standing,
    /// When the next entry was written; none for the last.
    until_ms: Option<Millis>,
    realised: Option<Realised>,
}

/// Reads the journal and prints it. `recorded` says what was recorded from one time up to another, itself outside; none
/// if nothing was.
pub fn run(
    args: &Args,
    recorded: &dyn Fn(Millis, Millis) -> Option<Realised>,
    context: &mut Context<'_>,
) -> Result<Exit> {
    let config = config_path(args.output.as_ref(), context)?;
    let path = journal_path(&config);
    let journal = match SettingsFile::load(&config) {
        Ok(file) => journal_of(&file)?,
        // It tells nothing about unconfirmed entries then; they count as written.
        Err(_) => read_journal(&path)?.about(&journal_name(&config)),
    };
    let standings = journal.standings();
    let rows = rows(&journal, &standings, recorded, context.now_ms);
    if !args.report.quiet {
        tell_damaged(&journal, &path, context)?;
        tell(&rows, args, &config, &path, context)?;
    }
    let form = args.report.form();
    match form {
        Format::Json => {
            let fields = json!({
                "config": config.shown(),
                "journal": path.shown(),
                "damaged_lines": journal.damaged_lines,
                "entries": rows.iter().map(|row| row_json(row, &journal)).collect::<Vec<_>>(),
            });
            let document = envelope::envelope("tune history", args.report.stamp(context), fields);
            envelope::write(context.out, &document)?;
        }
        Format::Table if rows.is_empty() => {}
        Format::Table => {
            table(&rows).write(context.out, form, context.width)?;
            if args.explain {
                rows.iter().try_for_each(|row| explain(row, context))?;
            }
        }
        Format::Csv | Format::Md if args.explain => keys(&rows).write(context.out, form, context.width)?,
        Format::Csv | Format::Md => table(&rows).write(context.out, form, context.width)?,
    }
    Ok(Exit::Done)
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
    standings: &'j [Standing],
    recorded: &dyn Fn(Millis, Millis) -> Option<Realised>,
    now_ms: Millis,
) -> Vec<Row<'j>> {
    let row = |(position, (entry, standing)): (usize, (&'j Entry, &'j Standing))| {
        let until_ms = journal.entries.get(position + 1).map(|next| next.at_ms);
        let end_ms = until_ms.unwrap_or(now_ms);
        let realised = if entry.at_ms < end_ms { recorded(entry.at_ms, end_ms) } else { None };
        let realised = realised.filter(|realised| realised.tokens.combined().is_some());
        Row { entry, standing, until_ms, realised }
    };
    journal.entries.iter().zip(standings).enumerate().map(row).collect()
}

/// What the columns mean, and why some are empty.
fn tell(rows: &[Row<'_>], args: &Args, config: &Path, journal: &Path, context: &mut Context<'_>) -> Result<()> {
    let err = &mut context.err;
    if rows.is_empty() {
        writeln!(err, "# no change of {} is recorded in {}", config.shown(), journal.shown())?;
        return Ok(());
    }
    writeln!(err, "# config:    {}", config.shown())?;
    if args.report.form() == Format::Json {
        return Ok(());
    }
    writeln!(err, "# predicted: share of tool-response tokens saved, before → after the change, by replay")?;
    if rows.iter().any(|row| row.entry.predicted.is_none()) {
        writeln!(err, "#            – where nothing was replayed")?;
    }
    writeln!(err, "# realised:  the same share, in the events recorded from this change to the next")?;
    if rows.iter().any(|row| row.realised.is_none()) {
        writeln!(err, "#            – where no event was recorded; `telemetry.enabled = true` records them")?;
    }
    Ok(())
}

fn table(rows: &[Row<'_>]) -> Table {
    let mut table = Table::new(&["id", "when", "command", "#keys", "predicted", "#realised", "#events", "state"]);
    for row in rows {
        let entry = row.entry;
        table.row([
            entry.id.clone(),
            date(entry.at_ms),
            command(entry),
            thousands(entry.changes.len() as u64),
            predicted(entry),
            row.realised.and_then(|realised| realised.tokens.combined()).map_or_else(|| "–".to_owned(), percent),
            thousands(row.realised.map_or(0, |realised| realised.events)),
            state(row.standing).to_owned(),
        ]);
    }
    table
}

fn command(entry: &Entry) -> String {
    match &entry.undoes {
        Some(undone) => format!("undo of {undone}"),
        None => entry.command.trim_start_matches("tune ").to_owned(),
    }
}

fn predicted(entry: &Entry) -> String {
    let shares = entry.predicted.as_ref().and_then(|predicted| predicted.shares());
    shares.map_or_else(|| "–".to_owned(), |(before, after)| format!("{} → {}", percent(before), percent(after)))
}

fn state(standing: &Standing) -> &'static str {
    match standing {
        standing if standing.holds() => "",
        standing if standing.is_undone() => "undone",
        _ => "undone in part",
    }
}

/// The changed keys, one a row.
fn keys(rows: &[Row<'_>]) -> Table {
    let mut table = Table::new(&["id", "rule", "key", "old", "new", "#n", "evidence"]);
    for (entry, change) in rows.iter().flat_map(|row| row.entry.changes.iter().map(|change| (row.entry, change))) {
        table.row([
            entry.id.clone(),
            change.rule.clone(),
            change.key.clone(),
            change.old.clone().unwrap_or_default(),
            change.new.clone().unwrap_or_default(),
            change.n.to_string(),
            reasons(change).join("; "),
        ]);
    }
    table
}

fn explain(row: &Row<'_>, context: &mut Context<'_>) -> Result<()> {
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
        format!("its share expected to save {:.0} tokens more, {} of all", effect.tokens, percent(share))
    });
    let n = if change.n > 0 { format!(" (n {})", thousands(change.n)) } else { String::new() };
    let evidence = Some(format!("{}{n}", change.evidence)).filter(|words| !words.is_empty());
    [evidence, change.threshold.clone(), effect].into_iter().flatten().collect()
}

fn row_json(row: &Row<'_>, journal: &Journal) -> Value {
    let Row { entry, standing, .. } = row;
    let shares = entry.predicted.as_ref().and_then(|predicted| predicted.shares());
    json!({
        "id": entry.id,
        "at": instant(entry.at_ms),
        "tool_version": entry.tool_version,
        "command": entry.command,
        "inputs": entry.inputs,
        "predicted": entry.predicted.as_ref().map(|predicted| json!({
            "basis": "replayed",
            "baseline_tokens": predicted.baseline,
            "saved_tokens_before": predicted.saved_before,
            "saved_tokens_after": predicted.saved_after,
            "combined_savings_before": shares.map(|(before, _)| before),
            "combined_savings_after": shares.map(|(_, after)| after),
        })),
        "realised_until": row.until_ms.and_then(instant),
        "realised": row.realised.map(|realised| json!({
            "basis": "measured",
            "events": realised.events,
            "baseline_tokens": realised.tokens.total(),
            "dedup_savings": realised.tokens.dedup(),
            "encoder_savings": realised.tokens.encoder(),
            "combined_savings": realised.tokens.combined(),
        })),
        "undoes": entry.undoes,
        "undone_by": standing.undos.iter().map(|undo| &journal.entries[*undo].id).collect::<Vec<_>>(),
        "undone": standing.is_undone(),
        "changes": entry.changes,
    })
}

fn instant(ms: Millis) -> Option<String> {
    jiff::Timestamp::from_millisecond(ms).map(|at| at.to_string()).ok()
}
