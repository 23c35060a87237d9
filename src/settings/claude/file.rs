//! One file of settings as text: read, checked, asked for values, and one value in it changed with every other byte left where
//! it was: order, indentation, line ends, marks at the start, keys that nobody here knows.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::key_path::KeyPath;
use crate::settings::claude::strict::{BOM, KeySearch, Member, at, check, find};
use crate::settings::journal;
use crate::settings::write::read_if_present;

/// A file of settings. Nothing in it is ever replaced by defaults: one that cannot be understood is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaudeFile {
    /// Where it is, or would be.
    pub path: PathBuf,
    /// What stands in it; empty when there is no file.
    pub text: String,
    pub existed: bool,
}

impl ClaudeFile {
    /// Reads a file; one that is missing is empty. An error with line and column if it is no strict JSON.
    pub fn load(path: &Path) -> Result<Self> {
        let Some(bytes) = read_if_present(path)? else {
            return Ok(Self::missing(path));
        };
        let text = String::from_utf8(bytes).map_err(|cause| {
            let good = cause.utf8_error().valid_up_to();
            let before = String::from_utf8_lossy(&cause.as_bytes()[..good]).into_owned();
            Error::failed(format!("{}: not valid UTF-8", at(path, &before, good))).hint("save the file as UTF-8")
        })?;
        check(path, &text)?;
        Ok(Self { path: path.to_owned(), text, existed: true })
    }

    /// One that is not there.
    pub fn missing(path: &Path) -> Self {
        Self { path: path.to_owned(), text: String::new(), existed: false }
    }

    /// The value of a key; none where there is none. An error if the key stands twice, or under something that is no
    /// object.
    pub fn get(&self, key: &KeyPath) -> Result<Option<Value>> {
        if !self.existed {
            return Ok(None);
        }
        let root = check(&self.path, &self.text)?;
        let KeySearch { members, found, .. } = find(&self.path, &self.text, root, key)?;
        let Some(value) = found.map(|position| members[position].value.clone()) else { return Ok(None) };
        serde_json::from_str(&self.text[value.clone()]).map(Some).map_err(|cause| {
            let place = at(&self.path, &self.text, value.start);
            Error::failed(format!("{place}: `{key}` cannot be read: {cause}"))
        })
    }

    /// The text with these values set.
    pub fn with<'c>(&self, changes: impl IntoIterator<Item = (&'c KeyPath, &'c Value)>) -> Result<String> {
        changes.into_iter().try_fold(self.text.clone(), |text, (key, value)| set(&self.path, &text, key, value))
    }

    /// The same file with another text.
    #[must_use]
    pub fn holding(&self, text: String) -> Self {
        Self { text, existed: true, ..self.clone() }
    }

    /// Where it is written, and where that is noted: beside devboy's own configuration, since the directory of the settings
    /// may be a repository.
    pub fn place(&self, journal: &Path) -> journal::WrittenFile<'_> {
        journal::WrittenFile {
            path: &self.path,
            text: &self.text,
            existed: self.existed,
            journal: journal.to_owned(),
            name: name_of(&self.path),
            lock: Some(journal.with_file_name("claude-settings.lock")),
        }
    }
}

/// The name under which a file of settings stands in the journal.
pub fn name_of(path: &Path) -> String {
    files::one_name(path).to_string_lossy().into_owned()
}

/// What one step of indentation is where the text has none to go by.
const STEP: &str = "  ";

/// The text with the value set; an empty text becomes a file with nothing else in it. An error if the text is no strict
/// JSON object, or the key stands twice or under something that is no object.
pub fn set(path: &Path, text: &str, key: &KeyPath, value: &Value) -> Result<String> {
    if text.is_empty() {
        return set(path, "{}\n", key, value);
    }
    let root = check(path, text)?;
    let KeySearch { object, members, depth, found } = find(path, text, root.clone(), key)?;
    Ok(match found {
        Some(position) => replaced(text, members[position].value.clone(), &value.to_string()),
        None => inserted(text, &JsonStyle::of(text, root.start), object, &members, &key.0[depth..], value),
    })
}

/// The text without the key; as it is where there is none.
pub fn remove(path: &Path, text: &str, key: &KeyPath) -> Result<String> {
    let root = check(path, text)?;
    let KeySearch { object, members, found, .. } = find(path, text, root, key)?;
    let Some(position) = found else { return Ok(text.to_owned()) };
    let end = |member: &Member| member.value.end;
    let cut = match (position.checked_sub(1).map(|before| &members[before]), members.get(position + 1)) {
        (Some(before), _) => end(before)..end(&members[position]),
        (None, Some(after)) => members[position].key.start..after.key.start,
        (None, None) => object.start + 1..object.end - 1,
    };
    Ok(replaced(text, cut, ""))
}

/// How a text is laid out.
struct JsonStyle<'t> {
    newline: &'t str,
    step: &'t str,
    is_compact: bool,
    colon: &'t str,
}

impl<'t> JsonStyle<'t> {
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

fn inserted(
    text: &str,
    style: &JsonStyle<'_>,
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
    let style = JsonStyle { is_compact: !is_line, colon, ..*style };
    let name = Value::from(first.as_str());
    let member = format!(",{space}{name}{colon}{}", style.nested(rest, value, indent));
    replaced(text, last.value.end..last.value.end, &member)
}

fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    [&text[..range.start], with, &text[range.end..]].concat()
}
