//! `devboy tune undo`: takes back what devboy wrote, and nothing that a person did since.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::history::tell_damaged;
use crate::base::error::{Error, Result};
use crate::base::visible::{Shown as _, visible};
use crate::commands::config::config_path;
use crate::report::numbers::{counted, date};
use crate::report::table::{Table, TableFormat};
use crate::rules::report as findings;
use crate::settings::claude::file::{ClaudeFile, name_of};
use crate::settings::claude::reversal::{claude_entry, journal_of_all, reverse_claude};
use crate::settings::entries::{Journal, JournalChange, JournalEntry};
use crate::settings::journal::WrittenFile;
use crate::settings::reversal::KeptKey;
use crate::settings::{
    Reversal, SettingsFile, journal_entry, journal_of, journal_path, reverse, unified_diff, write_noted,
};
use crate::shell::arguments::{Exit, OutputArgs};
use crate::shell::context::Context;

/// Take back the last change that devboy wrote, or the one named, and print the diff.
///
/// Both targets are known: the configuration of the pipeline and Claude Code's settings. Each key goes back to its value before. A key that was changed since, and one that is marked `# pin`, is kept and
/// named. The previous file stays beside the new one as pipeline_config.toml.bak. The undo is a change of its own in
/// the journal, and can be undone by its id.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The change to take back, as `devboy tune history` names it; the start of its id will do. Default: the last one.
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// The configuration, or the settings, to read and write. Default: what the change is about.
    #[arg(long, short, value_name = "FILE", visible_alias = "config")]
    output: Option<PathBuf>,
    /// Print the same, write nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    report: OutputArgs,
}

/// Chooses an entry, takes it back, shows, writes.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let path = config_path(args.output.as_ref(), context)?;
    let target = UndoTarget::load(&path, &config_path(None, context)?, args)?;
    if !args.report.quiet {
        tell_damaged(&target.journal, &target.place, context)?;
    }
    let entry = chosen(&target.journal, args.id.as_deref(), &target.path)?;
    if !target.file().existed {
        return Err(Error::failed(format!("{} does not exist: there is nothing to undo in it", target.path.shown()))
            .hint("--output names another configuration"));
    }
    let reversal = target.reverse(entry)?;
    if reversal.undone.is_empty() {
        return Err(nothing_undone(entry, &reversal));
    }
    let undo = Undo { args, target: &target, entry, reversal };
    context.show(|context| undo.show(context))?;
    if !args.dry_run {
        undo.write(context)?;
    }
    if !args.report.quiet {
        undo.conclude(context)?;
    }
    Ok(Exit::Done)
}

/// An entry that is taken back.
struct Undo<'u> {
    args: &'u Args,
    target: &'u UndoTarget,
    entry: &'u JournalEntry,
    reversal: Reversal,
}

/// The file in which something is taken back, and its journal.
struct UndoTarget {
    path: PathBuf,
    file: UndoFile,
    place: PathBuf,
    journal: Journal,
}

/// The file as it is.
#[expect(clippy::large_enum_variant, reason = "there is one of it")]
enum UndoFile {
    Pipeline(SettingsFile),
    Claude(ClaudeFile),
}

impl UndoTarget {
    /// The file that the entry is about: settings of Claude Code if `--output` names them, if the id does, or if they were what
    /// was last written; else the configuration of the pipeline. What was done to settings is noted beside `usual`.
    fn load(config: &Path, usual: &Path, args: &Args) -> Result<Self> {
        let place = journal_path(usual);
        let whole = journal_of_all(usual)?;
        let of_settings = |entry: &&JournalEntry| entry.is_about_claude();
        let meant = match (&args.id, &args.output) {
            (_, Some(path)) => {
                let name = name_of(path);
                whole.entries.iter().filter(of_settings).rfind(|entry| entry.config == name)
            }
            (Some(id), None) => match whole.named(id)[..] {
                ref ids if ids.len() > 1 => return Err(ambiguous(id, ids)),
                ref ids => ids.first().copied().filter(of_settings),
            },
            (None, None) => whole.last_standing().or_else(|| whole.last_change()).filter(of_settings),
        };
        let Some(entry) = meant else {
            let file = SettingsFile::load(config)?;
            let (journal, place) = (journal_of(&file)?, journal_path(config));
            return Ok(Self { path: config.to_owned(), file: UndoFile::Pipeline(file), place, journal });
        };
        let path = PathBuf::from(&entry.config);
        let file = ClaudeFile::load(&path)?;
        let journal = whole.about(&name_of(&path));
        Ok(Self { path, file: UndoFile::Claude(file), place, journal })
    }

    fn file(&self) -> WrittenFile<'_> {
        match &self.file {
            UndoFile::Pipeline(file) => file.place(),
            UndoFile::Claude(file) => file.place(&self.place),
        }
    }

    /// Takes back of an entry what no later one changed again: it may have come to the same value for another reason.
    fn reverse(&self, entry: &JournalEntry) -> Result<Reversal> {
        let later = self.journal.changed_later(&entry.id);
        let mut own = entry.clone();
        if !later.is_empty() {
            own.changes.retain(|change| !later.contains_key(change.key.as_str()));
            own.restore = None;
        }
        let mut reversal = match &self.file {
            UndoFile::Pipeline(file) => reverse(file, &own)?,
            UndoFile::Claude(file) => reverse_claude(file, &own)?,
        };
        let kept = |(key, by): (&str, &JournalEntry)| KeptKey {
            key: key.to_owned(),
            reason: format!("was changed again by {} on {}", by.id, date(by.at_ms)),
        };
        reversal.is_edited |= !later.is_empty();
        reversal.kept.extend(later.into_iter().map(kept));
        Ok(reversal)
    }
}

/// The entry named, else the last one that holds.
fn chosen<'j>(journal: &'j Journal, id: Option<&str>, config: &Path) -> Result<&'j JournalEntry> {
    if journal.entries.is_empty() {
        let place = journal_path(config);
        return Err(Error::failed(format!("no change of {} is recorded in {}", config.shown(), place.shown()))
            .hint("a change is recorded when `devboy tune` writes the configuration"));
    }
    let Some(id) = id else {
        return journal.last_standing().ok_or_else(|| {
            let last = journal.last_change().map_or("it", |last| &last.id);
            Error::failed(format!("nothing left to undo in {}: {last} is undone", config.shown()))
                .hint("`devboy tune history` lists all changes; name an undo to take it back")
        });
    };
    match journal.named(id)[..] {
        [only] => refuse_undone(journal, only),
        [] => Err(Error::failed(format!("no recorded change of {} is called {id}", config.shown()))
            .hint("`devboy tune history` lists them with their ids")),
        ref several => Err(ambiguous(id, several)),
    }
}

fn ambiguous(id: &str, entries: &[&JournalEntry]) -> Error {
    let ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
    Error::failed(format!("{id} is the start of several ids: {}", ids.join(", "))).hint("write more of the id")
}

fn refuse_undone<'j>(journal: &'j Journal, entry: &'j JournalEntry) -> Result<&'j JournalEntry> {
    let standings = journal.entries.iter().zip(journal.standings());
    let standing = standings.into_iter().find(|(other, _)| other.id == entry.id).map(|(_, standing)| standing);
    let undos = standing.filter(|standing| standing.is_undone()).map(|standing| standing.undos).unwrap_or_default();
    let Some(undo) = undos.last().map(|undo| &journal.entries[*undo]) else { return Ok(entry) };
    Err(Error::failed(format!("{} was undone on {} by {}", entry.id, date(undo.at_ms), undo.id))
        .hint(format!("`devboy tune undo {}` makes the change again", undo.id)))
}

fn nothing_undone(entry: &JournalEntry, reversal: &Reversal) -> Error {
    let mut why: Vec<String> = reversal.kept.iter().map(|kept| format!("`{}` {}", kept.key, kept.reason)).collect();
    why.push("set by hand what should be different".to_owned());
    Error::failed(format!("nothing of {} of {} can be undone", entry.id, date(entry.at_ms))).hint(why.join("\n"))
}

impl Undo<'_> {
    fn show(&self, context: &mut Context<'_>) -> Result<()> {
        let Self { args, target, entry, reversal } = self;
        let diff = unified_diff(target.file().text, &reversal.text, &target.path.shown());
        match args.report.form() {
            TableFormat::Json => {
                let undone =
                    |change: &JournalChange| json!({ "key": change.key, "from": change.new, "to": change.old });
                let fields = json!({
                    "config": target.path.shown(),
                    "undoes": entry.id,
                    "written": !args.dry_run,
                    "byte_identical": reversal.is_exact,
                    "edited_since": reversal.is_edited,
                    "undone": reversal.undone.iter().map(undone).collect::<Vec<_>>(),
                    "kept": reversal.kept.iter().map(|kept| json!({ "key": kept.key, "reason": kept.reason }))
                        .collect::<Vec<_>>(),
                    "diff": diff,
                });
                args.report.write_json("tune undo", fields, context)
            }
            TableFormat::Table => {
                let colored = context.colored(args.report.color);
                findings::write_diff(context.out, &diff, colored)?;
                let keys = counted(reversal.undone.len() as u64, "key");
                writeln!(context.out, "\n# {keys} of {} back as before {}:", entry.id, date(entry.at_ms))?;
                for change in &reversal.undone {
                    let words = format!("{}: {} → {}", change.key, side(&change.new), side(&change.old));
                    writeln!(context.out, "# {}", visible(&words))?;
                }
                for kept in &reversal.kept {
                    writeln!(context.out, "# kept: {}", visible(&format!("`{}` {}", kept.key, kept.reason)))?;
                }
                Ok(())
            }
            form => table(reversal).write(context.out, form, context.width),
        }
    }

    /// Stores the file and adds the undo to the journal.
    fn write(&self, context: &Context<'_>) -> Result<()> {
        let Self { target, entry, reversal, .. } = self;
        let back = |change: &JournalChange| JournalChange {
            rule: change.rule.clone(),
            key: change.key.clone(),
            evidence: format!("takes back {}", entry.id),
            ..JournalChange::default()
        };
        let changes = reversal.undone.iter().map(back).collect();
        let (now_ms, text) = (context.now_ms, reversal.text.as_str());
        let mut undo = match &target.file {
            UndoFile::Pipeline(file) => journal_entry(now_ms, "tune undo", file, text, changes)?,
            UndoFile::Claude(file) => claude_entry(now_ms, "tune undo", file, &target.place, text, changes)?,
        };
        (undo.undoes, undo.reach) = (Some(entry.id.clone()), entry.reach);
        write_noted(&target.file(), text, &undo)
    }

    /// What there is to say besides the changes.
    fn conclude(&self, context: &mut Context<'_>) -> Result<()> {
        let Self { args, target, entry, reversal } = self;
        let (err, id, path) = (&mut context.err, &entry.id, target.path.shown());
        match reversal {
            Reversal { text, .. } if text.trim().is_empty() => {
                writeln!(err, "# nothing is left in the file; it stays, empty")?;
            }
            Reversal { is_exact: true, .. } => writeln!(err, "# the file is byte for byte what it was before {id}")?,
            Reversal { is_edited: true, .. } => {
                writeln!(err, "# the file was edited since {id}; all else in it stays")?;
            }
            Reversal { .. } => {
                writeln!(err, "# the file means what it did before {id}, but not every byte is the same")?;
            }
        }
        let keys = counted(reversal.undone.len() as u64, "key");
        match args.dry_run {
            true => writeln!(err, "# {keys} to undo, nothing written")?,
            false => writeln!(err, "# {keys} undone → {path}")?,
        }
        Ok(())
    }
}

fn side(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("nothing")
}

fn table(reversal: &Reversal) -> Table {
    let mut table = Table::new(&["key", "outcome", "from", "to", "why"]);
    for change in &reversal.undone {
        let sides = [&change.new, &change.old].map(|side| side.clone().unwrap_or_default());
        let [from, to] = sides;
        table.row([change.key.clone(), "undone".to_owned(), from, to, String::new()]);
    }
    for kept in &reversal.kept {
        table.row([kept.key.clone(), "kept".to_owned(), String::new(), String::new(), kept.reason.clone()]);
    }
    table
}
