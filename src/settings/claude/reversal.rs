//! What devboy wrote into a file of settings, as an entry of the journal, and the way back: byte for byte where nothing
//! else changed since, else key by key, and never over what somebody did in the meantime.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use crate::base::error::Result;
use crate::base::files;
use crate::base::key_path::KeyPath;
use crate::logs::trace::Millis;
use crate::settings::claude::file::{ClaudeFile, remove, set};
use crate::settings::entries::{CLAUDE_SETTINGS, Journal, JournalChange, JournalEntry};
use crate::settings::journal::{entry_of, journal_name, journal_path, read_journal, text_sha};
use crate::settings::reversal::{KeptKey, Reversal, changed_since, text_before};

/// The entry about one change of the file, made or about to be made. `changes` name the keys and why; the values are those
/// of the two texts, and a key that keeps its value is left out.
pub fn claude_entry(
    at_ms: Millis,
    command: &str,
    before: &ClaudeFile,
    journal: &Path,
    after: &str,
    changes: Vec<JournalChange>,
) -> Result<JournalEntry> {
    let new = before.holding(after.to_owned());
    let mut filled = Vec::new();
    for change in changes {
        let key: KeyPath = change.key.parse()?;
        let spelled =
            |file: &ClaudeFile| -> Result<Option<String>> { Ok(file.get(&key)?.map(|value| value.to_string())) };
        let (old, new) = (spelled(before)?, if after.is_empty() { None } else { spelled(&new)? });
        if old != new {
            let table = key.parent().filter(|parent| !parent.0.is_empty());
            // One that cannot be read is not empty.
            let table = table.and_then(|table| before.get(&table).ok().flatten());
            let in_empty_table = table.is_some_and(|table| table == Value::Object(Default::default()));
            filled.push(JournalChange { old, new, in_empty_table, ..change });
        }
    }
    let mut entry = entry_of(at_ms, command, &before.place(journal), after, filled);
    entry.target = Some(CLAUDE_SETTINGS.to_owned());
    Ok(entry)
}

/// The entries of the journal about the configuration `config` and about settings of Claude Code; those that were not
/// confirmed are decided by what the files hold. An error if the journal is there and cannot be read at all.
pub fn journal_of_all(config: &Path) -> Result<Journal> {
    let mut journal = read_journal(&journal_path(config))?;
    let name = journal_name(config);
    journal.entries.retain(|entry| entry.config == name || entry.is_about_claude());
    let sha = |entry: &JournalEntry| {
        let path = if entry.is_about_claude() { Path::new(&entry.config) } else { config };
        match files::read(path) {
            Ok(bytes) => String::from_utf8(bytes).ok().map(|text| text_sha(&text)),
            Err(cause) => (cause.kind() == ErrorKind::NotFound).then(|| text_sha("")),
        }
    };
    Ok(journal.decided(sha))
}

/// Takes an entry back, in memory.
pub fn reverse_claude(file: &ClaudeFile, entry: &JournalEntry) -> Result<Reversal> {
    let (is_edited, before) = text_before(file.existed, &file.text, entry);
    if let Some(text) = before {
        // A file of nothing would be no JSON: one that devboy made stays, with nothing in it.
        let text = if text.is_empty() { "{}\n".to_owned() } else { text };
        let is_exact = text_sha(&text) == entry.before_sha;
        return Ok(Reversal { text, undone: entry.changes.clone(), kept: Vec::new(), is_exact, is_edited });
    }
    let (mut text, mut undone, mut kept) = (file.text.clone(), Vec::new(), Vec::new());
    for change in &entry.changes {
        match back(&file.holding(text.clone()), change)? {
            Ok(changed) => {
                text = changed;
                undone.push(change.clone());
            }
            Err(reason) => kept.push(KeptKey { key: change.key.clone(), reason }),
        }
    }
    let is_exact = text_sha(&text) == entry.before_sha;
    Ok(Reversal { text, undone, kept, is_exact, is_edited })
}

/// The text with one change taken back, or why not.
fn back(file: &ClaudeFile, change: &JournalChange) -> Result<std::result::Result<String, String>> {
    let Ok(key) = change.key.parse::<KeyPath>() else { return Ok(Err("is no key".to_owned())) };
    let parsed = |text: &Option<String>| text.as_deref().map(serde_json::from_str::<Value>).transpose();
    let (Ok(old), Ok(new)) = (parsed(&change.old), parsed(&change.new)) else {
        return Ok(Err("has values in the journal that cannot be read".to_owned()));
    };
    let found = file.get(&key)?;
    if found != new {
        let [spelled, wrote] = [&found, &new].map(|value| value.as_ref().map(Value::to_string));
        return Ok(Err(changed_since(spelled, found == old, wrote.as_deref())));
    }
    let Some(old) = old else {
        let text = remove(&file.path, &file.text, &key)?;
        return if change.in_empty_table { Ok(Ok(text)) } else { without_empty_parent(file, &key, text).map(Ok) };
    };
    set(&file.path, &file.text, &key, &old).map(Ok)
}

/// A table that only held what devboy put there goes with it.
fn without_empty_parent(file: &ClaudeFile, key: &KeyPath, text: String) -> Result<String> {
    let Some(parent) = key.parent().filter(|parent| !parent.0.is_empty()) else { return Ok(text) };
    let is_empty =
        file.holding(text.clone()).get(&parent)?.is_some_and(|held| held == Value::Object(Default::default()));
    if is_empty { remove(&file.path, &text, &parent) } else { Ok(text) }
}
