//! The tuning journal on disk: `tuning-journal.jsonl` beside the configuration, a line for each time that devboy wrote
//! it. Lines are only ever added; one that cannot be read is counted and costs no other.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use toml_edit::Value;

use super::write::{create_private, directory_of, lock, sync_directory};
use super::{KeyPath, SettingsFile, spell, version};
use crate::error::{Error, Result};
use crate::model::id::Id;
use crate::model::journal::{Entry, Journal, JournalChange, Restore};
use crate::model::trace::Millis;

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

/// What the journal says; a journal that does not exist is empty.
///
/// # Errors
/// If the file is there and cannot be read at all.
pub fn read_journal(path: &Path) -> Result<Journal> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Journal::default()),
        Err(cause) => return Err(Error::io("reading", path, &cause)),
    };
    let mut journal = Journal::default();
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.trim_ascii().is_empty()) {
        match serde_json::from_slice(line) {
            Ok(entry) => journal.entries.push(entry),
            Err(_) => journal.damaged_lines.push(index + 1),
        }
    }
    Ok(journal)
}

/// Adds an entry as a line of its own and waits until it is on the disk. A torn last line is ended first.
///
/// # Errors
/// Whatever the disk says, or another devboy that writes there and does not end.
pub fn append_entry(path: &Path, entry: &Entry) -> Result<()> {
    let directory = directory_of(path);
    create_private(directory)?;
    // The journal is its own lock: it is never replaced.
    let mut file = lock(path)?;
    let mut add = || {
        let is_torn = file.seek(SeekFrom::End(-1)).is_ok() && {
            let mut last = [0];
            file.read_exact(&mut last)?;
            last != *b"\n"
        };
        let line = serde_json::to_string(entry)?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(format!("{}{line}\n", if is_torn { "\n" } else { "" }).as_bytes())?;
        file.sync_all()
    };
    add().map_err(|cause| Error::io("writing", path, &cause))?;
    sync_directory(directory)
}

/// The entry about one change of the file, made or about to be made. `changes` name the keys and why; the values are
/// those of the two texts. A table counts as its keys, and a key that keeps its value is left out.
///
/// # Errors
/// If `after` is no configuration, or a key is not one.
pub fn journal_entry(
    at_ms: Millis,
    command: &str,
    before: &SettingsFile,
    after: &str,
    changes: Vec<JournalChange>,
) -> Result<Entry> {
    let new = SettingsFile::parse(&before.path, after)?;
    let (before_sha, after_sha) = (text_sha(&before.text), text_sha(after));
    let config = journal_name(&before.path);
    let name = format!("{at_ms} {command} {config} {before_sha} {after_sha}");
    Ok(Entry {
        id: text_sha(&name)[..ID_DIGITS].to_owned(),
        at_ms,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.to_owned(),
        config,
        inputs: None,
        before_sha,
        after_sha,
        existed: before.existed,
        changes: filled(before, &new, changes)?,
        predicted: None,
        undoes: None,
        restore: Some(Restore::between(&before.text, after)),
    })
}

/// The pseudonym of a text.
pub(super) fn text_sha(text: &str) -> String {
    Id::pseudonym(text.as_bytes()).to_string()
}

fn filled(before: &SettingsFile, after: &SettingsFile, changes: Vec<JournalChange>) -> Result<Vec<JournalChange>> {
    // The version is raised in the wake of keys that need it.
    let version = JournalChange { key: version::key().to_string(), ..JournalChange::default() };
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for change in changes.into_iter().chain([version]) {
        let key: KeyPath = change.key.parse()?;
        for leaf in leaves(before, after, &key) {
            let spelled = |file: &SettingsFile| file.get(&leaf).map(|value| spell::value(&value));
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
