//! The tuning journal on disk: `tuning-journal.jsonl` beside the configuration, a line for each time that devboy wrote it.
//! Lines are only ever added; one that cannot be read is counted and costs no other. An entry is added before the configuration
//! is written and confirmed after: whenever a run is killed in between, the journal knows of the change, and the configuration
//! itself tells whether it was made.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Serialize;
use toml_edit::Value;

use super::SettingsFile;
use super::write::{GuardedFile, create_private, directory_of, lock, sync_directory};
use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::id::Id;
use crate::base::key_path::KeyPath;
use crate::base::visible::Shown as _;
use crate::logs::trace::Millis;
use crate::settings::entries::{Journal, JournalChange, JournalEntry, Restore, SettledEntry};
use crate::settings::{schema, values};

/// Hex digits of an entry's id.
const ID_DIGITS: usize = 8;

/// Where the journal of a configuration is.
pub fn journal_path(config: &Path) -> PathBuf {
    config.with_file_name("tuning-journal.jsonl")
}

/// The name under which a configuration stands in the journal beside it.
pub fn journal_name(config: &Path) -> String {
    config.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What the journal says; a journal that does not exist is empty. An error if the file is there and cannot be read at
/// all.
pub fn read_journal(path: &Path) -> Result<Journal> {
    let bytes = match files::read_own(path) {
        Ok(bytes) => bytes,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Journal::default()),
        Err(cause) => return Err(Error::io("reading", path, &cause)),
    };
    let mut journal = Journal::default();
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.trim_ascii().is_empty()) {
        match (serde_json::from_slice(line), serde_json::from_slice::<SettledEntry>(line)) {
            (Ok(entry), _) => journal.entries.push(entry),
            (Err(_), Ok(settled)) => journal.settle(&settled),
            (Err(_), Err(_)) => journal.damaged_lines.push(index + 1),
        }
    }
    Ok(journal)
}

/// What the journal says about the configuration in `file`; entries that were not confirmed are decided by what it holds.
pub fn journal_of(file: &SettingsFile) -> Result<Journal> {
    let journal = read_journal(&journal_path(&file.path))?.about(&journal_name(&file.path));
    Ok(journal.decided(|_| Some(text_sha(&file.text))))
}

/// A file that devboy writes, as it was read, and where that is noted.
#[derive(Debug, Clone)]
pub struct WrittenFile<'f> {
    pub path: &'f Path,
    pub text: &'f str,
    pub existed: bool,
    pub journal: PathBuf,
    /// Its name there.
    pub name: String,
    /// The file whose lock keeps two devboys apart; none: one beside it.
    pub lock: Option<PathBuf>,
}

impl SettingsFile {
    /// The configuration as a file that is written.
    pub fn place(&self) -> WrittenFile<'_> {
        WrittenFile {
            path: &self.path,
            text: &self.text,
            existed: self.existed,
            journal: journal_path(&self.path),
            name: journal_name(&self.path),
            lock: None,
        }
    }
}

/// Writes a file and notes it in the journal: first the entry, then the file, then that it was written; all of it under the
/// lock of the file, so that no other run takes an entry for one that was given up. An error if the journal or the file
/// cannot be written. Nothing is written then, and the journal knows it or can tell.
pub fn write_noted(file: &WrittenFile<'_>, new: &str, entry: &JournalEntry) -> Result<()> {
    let path = &file.journal;
    let guarded = GuardedFile::take(file.lock.as_deref(), file.path, file.existed.then_some(file.text))?;
    // What an earlier run left open can be told only while the file is still as that run left it.
    for settled in read_journal(path)?.about(&file.name).undecided(|_| Some(text_sha(file.text))) {
        append(path, &settled)?;
    }
    append(path, &JournalEntry { pending: true, ..entry.clone() })
        .map_err(|cause| cause.hint("a change is noted before it is made: the configuration was not touched"))?;
    let outcome = guarded.replace(new);
    // Without this line the file itself tells.
    let _told_by_the_file = append(path, &SettledEntry { settles: entry.id.clone(), written: outcome.is_ok() });
    outcome?
}

/// Whether a change could be written there, before it is told of. An error if the disk refuses the file or the journal.
pub fn expect_writable(file: &WrittenFile<'_>) -> Result<()> {
    let advice = "nothing was written. devboy needs to write there: allow it, name another file with --output, or print the \
                  changes with --dry-run";
    let noted = "nothing was written. Changes are noted beside devboy's configuration: allow devboy to write there, or name \
                 another place with DEVBOY_CONFIG";
    let directory = directory_of(&file.journal);
    let noted = if directory == directory_of(file.path) { advice } else { noted };
    create_private(directory).map_err(|cause| cause.hint(noted))?;
    expect_own(directory)?;
    drop(lock(&file.journal).map_err(|cause| cause.hint(noted))?);
    create_private(directory_of(file.path)).map_err(|cause| cause.hint(advice))?;
    GuardedFile::take(file.lock.as_deref(), file.path, file.existed.then_some(file.text))?.expect_room()
}

/// An error if others may write in the directory of the journal.
fn expect_own(directory: &Path) -> Result<()> {
    let Some(why) = files::is_exposed(directory) else { return Ok(()) };
    let told = format!("{why}: the journal of changes has to be yours alone");
    Err(Error::failed(told).hint(format!("chmod go-w {}", directory.shown())))
}

/// Adds a line and waits until it is on the disk. A torn last line is ended first. An error if another devboy writes
/// there and does not end, or if others may write there.
pub fn append(path: &Path, line: &impl Serialize) -> Result<()> {
    let directory = directory_of(path);
    create_private(directory)?;
    expect_own(directory)?;
    // The journal is its own lock: it is never replaced.
    let mut file = lock(path)?;
    let mut add = || {
        let is_torn = file.seek(SeekFrom::End(-1)).is_ok() && {
            let mut last = [0];
            file.read_exact(&mut last)?;
            last != *b"\n"
        };
        let line = serde_json::to_string(line)?;
        file.seek(SeekFrom::End(0))?;
        files::write(&mut file, path, format!("{}{line}\n", if is_torn { "\n" } else { "" }).as_bytes())?;
        files::sync(&file, path)
    };
    add().map_err(|cause| Error::io("writing", path, &cause))?;
    sync_directory(directory)
}

/// The entry about one change of the file, made or about to be made. `changes` name the keys and why; the values are
/// those of the two texts. A table counts as its keys, and a key that keeps its value is left out. An error if `after`
/// is no configuration, or a key is not one.
pub fn journal_entry(
    at_ms: Millis,
    command: &str,
    before: &SettingsFile,
    after: &str,
    changes: Vec<JournalChange>,
) -> Result<JournalEntry> {
    let new = SettingsFile::parse(&before.path, after)?;
    Ok(entry_of(at_ms, command, &before.place(), after, filled(before, &new, changes)?))
}

/// The entry about a change of a file whose changed keys are known.
pub(super) fn entry_of(
    at_ms: Millis,
    command: &str,
    before: &WrittenFile<'_>,
    after: &str,
    changes: Vec<JournalChange>,
) -> JournalEntry {
    let (before_sha, after_sha) = (text_sha(before.text), text_sha(after));
    let config = before.name.clone();
    // Two runs at once may want the same.
    let run = std::process::id();
    let name = format!("{at_ms} {run} {command} {config} {before_sha} {after_sha}");
    JournalEntry {
        id: text_sha(&name)[..ID_DIGITS].to_owned(),
        at_ms,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.to_owned(),
        config,
        before_sha,
        after_sha,
        existed: before.existed,
        changes,
        restore: Some(Restore::between(before.text, after)),
        ..JournalEntry::default()
    }
}

/// The pseudonym of a text.
pub fn text_sha(text: &str) -> String {
    Id::pseudonym(text.as_bytes()).to_string()
}

fn filled(before: &SettingsFile, after: &SettingsFile, changes: Vec<JournalChange>) -> Result<Vec<JournalChange>> {
    // The version is raised in the wake of keys that need it.
    let version = JournalChange { key: schema::key().to_string(), ..JournalChange::default() };
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for change in changes.into_iter().chain([version]) {
        let key: KeyPath = change.key.parse()?;
        for leaf in leaves(before, after, &key) {
            let spelled = |file: &SettingsFile| file.get(&leaf).map(|value| values::spelled(&value));
            let (old, new) = (spelled(before), spelled(after));
            if old != new && seen.insert(leaf.clone()) {
                let table = leaf.parent().and_then(|table| before.get(&table));
                let in_empty_table = table.is_some_and(|table| table.as_inline_table().is_some_and(|t| t.is_empty()));
                out.push(JournalChange { key: leaf.to_string(), old, new, in_empty_table, ..change.clone() });
            }
        }
    }
    Ok(out)
}

/// The key itself, or the keys below it where it is a table.
fn leaves(before: &SettingsFile, after: &SettingsFile, key: &KeyPath) -> BTreeSet<KeyPath> {
    let mut leaves = BTreeSet::new();
    for value in [before, after].into_iter().filter_map(|file| file.get(key)) {
        collect_leaves(key, &value, &mut leaves);
    }
    leaves
}

fn collect_leaves(key: &KeyPath, value: &Value, leaves: &mut BTreeSet<KeyPath>) {
    match value {
        Value::InlineTable(table) => {
            table.iter().for_each(|(name, value)| collect_leaves(&key.child(name), value, leaves));
        }
        _ => {
            leaves.insert(key.clone());
        }
    }
}
