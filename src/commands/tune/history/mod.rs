//! `devboy tune history`: what devboy changed and why, what it was expected to save, and what was saved until the next
//! change.

mod actual;
mod show;

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::visible::Shown as _;
use crate::commands::config::config_path;
use crate::frames::fingerprint::LayerTokens;
use crate::logs::trace::Millis;
use crate::report::numbers::counted;
use crate::report::table::TableFormat;
use crate::settings::claude::file::ClaudeFile;
use crate::settings::claude::reversal::journal_of_all;
use crate::settings::entries::{EntryStanding, Journal, JournalEntry};
use crate::settings::journal_path;
use crate::shell::arguments::{InputArgs, OutputArgs};
use crate::shell::context::Context;
use crate::telemetry::log::EventLog;
use crate::whatif::client::actual::{ActualChange, JointChange, joint_changes};

/// List the changes that devboy wrote, with what each was expected to save and what was saved until the next one.
///
/// Savings of the pipeline are shares of all tool-response tokens: predicted by replay, with the configuration before and
/// after the change; the actual one in the telemetry, which --input-dir names if it lies elsewhere. Changes of Claude Code's settings
/// are changes of cost with their 95 % intervals: predicted on sessions that they were not chosen on; the actual one in the bills of
/// later sessions over earlier ones, against requests that the change does not concern.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The configuration whose journal is read. Default: $DEVBOY_CONFIG, else devboy/pipeline_config.toml in $XDG_CONFIG_HOME or ~/.config.
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
    let log = actual::recorded(&config, args, context)?;
    let mut rows = rows(&journal, &standings, &log, context.now_ms);
    let changes: Vec<_> = rows.iter().flat_map(|row| row.came.iter().map(|(change, _)| (row.entry, change))).collect();
    let mut came = actual::billed(&changes, args, context)?.into_iter();
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
        show::tell(&rows, args, &config, &path, context)?;
    }
    let form = args.report.form();
    let named = args.output.as_deref();
    match form {
        TableFormat::Json => {
            let fields = json!({
                "config": config.shown(),
                "journal": path.shown(),
                "damaged_lines": journal.damaged_lines,
                "entries": rows.iter().map(|row| show::row_json(row, &journal)).collect::<Vec<_>>(),
            });
            args.report.write_json("tune history", fields, context)?;
        }
        TableFormat::Table if rows.is_empty() => {}
        TableFormat::Table => {
            show::table(&rows, named).write(context.out, form, context.width)?;
            if args.explain {
                rows.iter().try_for_each(|row| show::explain(row, context))?;
            }
        }
        TableFormat::Csv | TableFormat::Md if args.explain => {
            show::keys(&rows).write(context.out, form, context.width)?;
        }
        TableFormat::Csv | TableFormat::Md => show::table(&rows, named).write(context.out, form, context.width)?,
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
        let actual = if is_about_claude { None } else { actual::saved(log, entry.at_ms, end_ms) };
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
