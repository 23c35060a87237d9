//! Which entry of the journal is taken back, in which file, and that as an entry of its own: of the configuration of the
//! pipeline, and of Claude Code's settings.

use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result};
use crate::base::numbers::date;
use crate::base::visible::Shown as _;
use crate::logs::trace::Millis;
use crate::settings::claude::file::{ClaudeFile, name_of};
use crate::settings::claude::reversal::{claude_entry, journal_of_all, reverse_claude};
use crate::settings::entries::{Journal, JournalChange, JournalEntry};
use crate::settings::journal::WrittenFile;
use crate::settings::reversal::KeptKey;
use crate::settings::{Reversal, SettingsFile, journal_entry, journal_of, journal_path, reverse, write_noted};

/// The command that an undo is noted under.
const COMMAND: &str = "tune undo";

/// The file in which something is taken back, and its journal.
pub struct UndoTarget {
    pub path: PathBuf,
    file: UndoFile,
    /// Where the journal is.
    pub place: PathBuf,
    /// What it says about the file.
    pub journal: Journal,
}

/// The file as it is.
#[expect(clippy::large_enum_variant, reason = "there is one of it")]
enum UndoFile {
    Pipeline(SettingsFile),
    Claude(ClaudeFile),
}

impl UndoTarget {
    /// The file that the entry is about: settings of Claude Code if `--output` names them, if the id does, or if they were what
    /// was last written; else the configuration of the pipeline. What was done to settings is noted beside `usual`. An
    /// error if the id is the start of several, or the journal or the file cannot be read.
    pub fn load(config: &Path, usual: &Path, id: Option<&str>, output: Option<&Path>) -> Result<Self> {
        let place = journal_path(usual);
        let whole = journal_of_all(usual)?;
        let of_settings = |entry: &&JournalEntry| entry.is_about_claude();
        let meant = match (id, output) {
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

    /// The file as it is written.
    pub fn file(&self) -> WrittenFile<'_> {
        match &self.file {
            UndoFile::Pipeline(file) => file.place(),
            UndoFile::Claude(file) => file.place(&self.place),
        }
    }

    /// Takes back of an entry what no later one changed again: it may have come to the same value for another reason.
    /// An error if the file is broken, or nothing of the entry can be taken back.
    pub fn reverse(&self, entry: &JournalEntry) -> Result<Reversal> {
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
        if reversal.undone.is_empty() { Err(nothing_undone(entry, &reversal)) } else { Ok(reversal) }
    }

    /// The entry named, else the last one that holds. An error if there is none, or several, or it is undone already,
    /// or there is no file.
    pub fn chosen(&self, id: Option<&str>) -> Result<&JournalEntry> {
        let entry = chosen(&self.journal, id, &self.path)?;
        if self.file().existed {
            return Ok(entry);
        }
        Err(Error::failed(format!("{} does not exist: there is nothing to undo in it", self.path.shown()))
            .hint("--output names another configuration"))
    }

    /// Stores the file with an entry taken back, and adds that to the journal.
    pub fn write(&self, entry: &JournalEntry, reversal: &Reversal, now_ms: Millis) -> Result<()> {
        // What makes a change again is expected to do what that was.
        let made = entry.undoes.as_ref().and_then(|id| self.journal.entries.iter().find(|made| made.id == *id));
        let back = |change: &JournalChange| JournalChange {
            rule: change.rule.clone(),
            key: change.key.clone(),
            evidence: format!("takes back {}", entry.id),
            forecast: made.and_then(|made| made.change(&change.key)?.forecast.clone()),
            ..JournalChange::default()
        };
        let changes = reversal.undone.iter().map(back).collect();
        let text = reversal.text.as_str();
        let mut undo = match &self.file {
            UndoFile::Pipeline(file) => journal_entry(now_ms, COMMAND, file, text, changes)?,
            UndoFile::Claude(file) => claude_entry(now_ms, COMMAND, file, &self.place, text, changes)?,
        };
        (undo.undoes, undo.reach) = (Some(entry.id.clone()), entry.reach);
        let is_whole = |made: &&JournalEntry| made.changes.len() == undo.changes.len();
        undo.together = made.filter(is_whole).and_then(|made| made.together.clone());
        write_noted(&self.file(), text, &undo)
    }
}

/// The entry named, else the last one that holds.
fn chosen<'j>(journal: &'j Journal, id: Option<&str>, config: &Path) -> Result<&'j JournalEntry> {
    if id.is_none() && journal.entries.is_empty() {
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
        [] => Err(Error::failed(format!("no recorded change is called {id}"))
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
