//! What devboy wrote into a file of settings, as an entry of the journal, and the way back: byte for byte where nothing
//! else changed since, else key by key, and never over what somebody did in the meantime.
//!
//! Changes one value in a strict JSON text and leaves every other byte where it was: order, indentation, line ends, marks
//! at the start, keys that nobody here knows.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use serde_json::Value;

use crate::base::error::Result;
use crate::base::files;
use crate::base::key_path::KeyPath;
use crate::logs::trace::Millis;
use crate::settings::claude::layers::ClaudeFile;
use crate::settings::claude::strict::{BOM, Member, Site, check, find};
use crate::settings::entries::{CLAUDE_SETTINGS, Entry, Journal, JournalChange};
use crate::settings::journal::{entry_of, journal_name, journal_path, read_journal, text_sha};
use crate::settings::reversal::{Kept, Reversal};

/// The entry about one change of the file, made or about to be made. `changes` name the keys and why; the values are those
/// of the two texts, and a key that keeps its value is left out.
/// Errors: if one of the texts is no strict JSON, or a key is not one.
pub fn claude_entry(
    at_ms: Millis,
    command: &str,
    before: &ClaudeFile,
    journal: &Path,
    after: &str,
    changes: Vec<JournalChange>,
) -> Result<Entry> {
    let new = before.holding(after.to_owned());
    let mut filled = Vec::new();
    for change in changes {
        let key: KeyPath = change.key.parse()?;
        let spelled =
            |file: &ClaudeFile| -> Result<Option<String>> { Ok(file.get(&key)?.map(|value| value.to_string())) };
        let (old, new) = (spelled(before)?, if after.is_empty() { None } else { spelled(&new)? });
        if old != new {
            filled.push(JournalChange { old, new, ..change });
        }
    }
    let mut entry = entry_of(at_ms, command, &before.place(journal), after, filled);
    entry.target = Some(CLAUDE_SETTINGS.to_owned());
    Ok(entry)
}

/// The entries of the journal about the configuration `config` and about settings of Claude Code; those that were not
/// confirmed are decided by what the files hold.
/// Errors: if the journal is there and cannot be read at all.
pub fn journal_of_all(config: &Path) -> Result<Journal> {
    let mut journal = read_journal(&journal_path(config))?;
    let name = journal_name(config);
    journal.entries.retain(|entry| entry.config == name || entry.is_about_claude());
    let sha = |entry: &Entry| {
        let path = if entry.is_about_claude() { Path::new(&entry.config) } else { config };
        match files::read(path) {
            Ok(bytes) => String::from_utf8(bytes).ok().map(|text| text_sha(&text)),
            Err(cause) => (cause.kind() == ErrorKind::NotFound).then(|| text_sha("")),
        }
    };
    Ok(journal.decided_by(sha))
}

/// Takes an entry back, in memory.
/// Errors: if the file is no strict JSON.
pub fn reverse_claude(file: &ClaudeFile, entry: &Entry) -> Result<Reversal> {
    let is_edited = !file.existed || text_sha(&file.text) != entry.after_sha;
    let before = entry.restore.as_ref().filter(|_| !is_edited).and_then(|restore| restore.before(&file.text));
    if let Some(text) = before.filter(|text| text_sha(text) == entry.before_sha) {
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
            Err(reason) => kept.push(Kept { key: change.key.clone(), reason }),
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
        return Ok(Err(match (&found, &new) {
            (found, _) if *found == old => "has its old value already".to_owned(),
            (None, _) => "was taken out since".to_owned(),
            (Some(found), Some(new)) => format!("is {found} now, devboy wrote {new}"),
            (Some(found), None) => format!("is {found} now, devboy took it out"),
        }));
    }
    let Some(old) = old else {
        let text = remove(&file.path, &file.text, &key)?;
        return without_empty_parent(file, &key, text).map(Ok);
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

/// What one step of indentation is where the text has none to go by.
const STEP: &str = "  ";

/// The text with the value set; an empty text becomes a file with nothing else in it.
/// Errors: if the text is no strict JSON object, or the key stands twice or under something that is no object.
pub fn set(path: &Path, text: &str, key: &KeyPath, value: &Value) -> Result<String> {
    if text.is_empty() {
        return set(path, "{}\n", key, value);
    }
    let root = check(path, text)?;
    Ok(match find(path, text, root.clone(), key)? {
        Site::Found { members, position, .. } => replaced(text, members[position].value.clone(), &value.to_string()),
        Site::Missing { object, members, depth } => {
            let style = Style::of(text, root.start);
            insert(text, &style, object, &members, &key.0[depth..], value)
        }
    })
}

/// The text without the key; as it is where there is none.
/// Errors: as [`set`].
pub fn remove(path: &Path, text: &str, key: &KeyPath) -> Result<String> {
    let root = check(path, text)?;
    let Site::Found { object, members, position } = find(path, text, root, key)? else { return Ok(text.to_owned()) };
    let end = |member: &Member| member.value.end;
    let cut = match (position.checked_sub(1).map(|before| &members[before]), members.get(position + 1)) {
        (Some(before), _) => end(before)..end(&members[position]),
        (None, Some(after)) => members[position].key.start..after.key.start,
        (None, None) => object.start + 1..object.end - 1,
    };
    Ok(replaced(text, cut, ""))
}

/// How a text is laid out.
struct Style<'t> {
    newline: &'t str,
    step: &'t str,
    is_compact: bool,
    colon: &'t str,
}

impl<'t> Style<'t> {
    fn of(text: &'t str, root: usize) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let inside = &text[root + 1..];
        let before_key = &inside[..inside.len() - inside.trim_ascii_start().len()];
        let has_members = inside.trim_ascii_start().starts_with('"');
        let is_compact = has_members && !before_key.contains('\n');
        let step = if has_members && !is_compact { before_key.rsplit('\n').next().unwrap_or(STEP) } else { STEP };
        let colon = if is_compact && !inside.contains("\": ") { ":" } else { ": " };
        Self { newline, step, is_compact, colon }
    }

    /// Keys below each other around a value, from a place that is indented so.
    fn nested(&self, keys: &[String], value: &Value, indent: &str) -> String {
        let Some((first, rest)) = keys.split_first() else { return value.to_string() };
        let (name, colon) = (Value::from(first.as_str()), self.colon);
        if self.is_compact {
            return format!("{{{name}{colon}{}}}", self.nested(rest, value, indent));
        }
        let (newline, inner) = (self.newline, format!("{indent}{}", self.step));
        format!("{{{newline}{inner}{name}{colon}{}{newline}{indent}}}", self.nested(rest, value, &inner))
    }
}

fn insert(
    text: &str,
    style: &Style<'_>,
    object: Range<usize>,
    members: &[Member],
    keys: &[String],
    value: &Value,
) -> String {
    let Some((first, rest)) = keys.split_first() else { return text.to_owned() };
    let Some(last) = members.last() else {
        let line = text[..object.start].rsplit('\n').next().unwrap_or_default().trim_start_matches(BOM);
        let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        return replaced(text, object, &style.nested(keys, value, indent));
    };
    // A new member looks like the last one: the same space before it, the same colon.
    let before = members.len().checked_sub(2).map_or(object.start + 1, |at| members[at].value.end);
    let space = text[before..last.key.start].trim_start_matches([' ', '\t', '\n', '\r']);
    let space = space.strip_prefix(',').unwrap_or(&text[before..last.key.start]);
    let is_line = space.contains('\n');
    let indent = space.rsplit('\n').next().filter(|_| is_line).unwrap_or_default();
    let colon = &text[last.key.end..last.value.start];
    let style = Style { is_compact: !is_line, colon, ..*style };
    let name = Value::from(first.as_str());
    let member = format!(",{space}{name}{colon}{}", style.nested(rest, value, indent));
    replaced(text, last.value.end..last.value.end, &member)
}

fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    [&text[..range.start], with, &text[range.end..]].concat()
}
