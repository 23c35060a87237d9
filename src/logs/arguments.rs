//! What a call is given: the scalars of its input, by path of keys.
//!
//! What a call quotes of what its agent was shown: the text that an edit is to replace.
//!
//! One spelling per file: the paths in the inputs of tools, brought to one form by their letters alone. No file is
//! looked at, no link followed.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::base::json::{Cursor, Shape};
use crate::logs::message::Outcome;
use crate::logs::value_draft::{Argument, Value, ValueDraft};
use crate::logs::values::name_value;

/// Takes one scalar after another.
type Take<'t, 'v> = &'t mut dyn FnMut(&mut ValueDraft<'v>, Argument);

/// Hands over every scalar of an input that is an object; of any other input none. Those that are no values have no name.
pub(super) fn walk<'v>(draft: &mut ValueDraft<'v>, input: &[u8], take: Take<'_, 'v>) {
    if input.first() != Some(&b'{') {
        return;
    }
    let mut walk = Walk { draft, take, path: String::new() };
    // The span was walked before: what fails here are malformed escapes, which end it.
    walk.value(&mut Cursor::new(input), b"", 0).unwrap_or_default();
}

struct Walk<'w, 'v> {
    draft: &'w mut ValueDraft<'v>,
    take: Take<'w, 'v>,
    path: String,
}

impl Walk<'_, '_> {
    /// `key` is the last key above the value.
    fn value(&mut self, cursor: &mut Cursor<'_>, key: &[u8], depth: usize) -> Outcome<()> {
        let shape = cursor.shape()?;
        if depth > self.draft.rules.argument_depth_max {
            return cursor.skip_value();
        }
        let length = self.path.len();
        match shape {
            Shape::Object => {
                cursor.enter()?;
                let mut first = true;
                while let Some(key) = cursor.next_key(&mut first)? {
                    if length > 0 {
                        self.path.push('.');
                    }
                    self.path.push_str(self.draft.rules.key(key.0));
                    self.value(cursor, key.0, depth + 1)?;
                    self.path.truncate(length);
                }
            }
            Shape::Array => {
                cursor.enter()?;
                let mut first = true;
                self.path.push_str("[]");
                while cursor.next_element(&mut first)? {
                    self.value(cursor, key, depth + 1)?;
                }
                self.path.truncate(length);
            }
            Shape::String => {
                let raw = cursor.string()?;
                let decoded;
                let text = match raw.plain() {
                    Some(plain) => plain,
                    // Of a long text the spelling in JSON tells as much.
                    None if !self.draft.rules.may_be_value(raw.0) => raw.0,
                    None => {
                        decoded = raw.decode().unwrap_or_default();
                        &decoded
                    }
                };
                self.string(text, key);
            }
            Shape::Number => {
                let literal = cursor.number()?;
                let is_value = self.draft.rules.is_number_value(literal);
                self.scalar(Value::of(literal), is_value);
            }
            Shape::Bool | Shape::Null => {
                cursor.skip_space();
                let start = cursor.pos();
                cursor.skip_value()?;
                self.scalar(Value::of(cursor.since(start)), false);
            }
        }
        Ok(())
    }

    fn string(&mut self, text: &[u8], key: &[u8]) {
        let value = if self.draft.rules.is_path_argument(key) { self.draft.path(text) } else { self.draft.value(text) };
        self.scalar(value, self.draft.rules.is_value(text));
    }

    fn scalar(&mut self, value: Value, is_value: bool) {
        let name = is_value.then(|| self.draft.names.intern(&self.path));
        let name_hash = name_value(&self.path);
        (self.take)(self.draft, Argument { name, name_hash, value });
    }
}

/// The texts that an input gives under one of these names, at any depth, one after the other; none without any.
pub fn quoted(input: &[u8], names: &BTreeSet<String>) -> Option<String> {
    // Most inputs name none of them and are not read once more.
    if !names.iter().any(|name| memchr::memmem::find(input, name.as_bytes()).is_some()) {
        return None;
    }
    let input: Json = serde_json::from_slice(input).ok()?;
    let mut texts = Vec::new();
    gather(&input, names, &mut texts);
    let text = texts.join("\n");
    (!text.is_empty()).then_some(text)
}

fn gather<'v>(value: &'v Json, names: &BTreeSet<String>, texts: &mut Vec<&'v str>) {
    match value {
        Json::Object(members) => {
            for (name, value) in members {
                match value {
                    Json::String(text) if names.contains(name) => texts.push(text),
                    value => gather(value, names, texts),
                }
            }
        }
        Json::Array(values) => values.iter().for_each(|value| gather(value, names, texts)),
        _ => {}
    }
}

/// How the parts of a path are separated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `/` only; a back-slash is a letter.
    Posix,
    /// `/` or `\`, behind a drive (`C:`) or a server (`\\host`).
    Windows,
}

/// The path without `.`, `..`, repeated or trailing separators. A relative one stands in `cwd`, if that is known; one
/// that begins with `~` stands where it says.
///
/// `C:\a\b` and `c:/a/b` become `C:/a/b`, and `\\host\a` becomes `\\host/a`. In a path that looks like none of
/// Windows a back-slash is part of a name.
pub fn normal_path(path: &[u8], cwd: Option<&[u8]>) -> Vec<u8> {
    match cwd.filter(|cwd| !cwd.is_empty() && !is_rooted(path)) {
        Some(cwd) => normal(&[cwd, b"/", path].concat()),
        None => normal(path),
    }
}

/// Writes [`normal_path`] to `out`; most paths are normal as they stand, and nothing is allocated for them.
pub fn normal_path_into(path: &[u8], cwd: Option<&[u8]>, out: &mut Vec<u8>) {
    out.clear();
    match cwd.filter(|_| !is_rooted(path)) {
        Some(cwd) if is_plain(cwd) && is_plain_relative(path) => {
            out.extend_from_slice(cwd);
            out.push(b'/');
            out.extend_from_slice(path);
        }
        _ if is_plain(path) => out.extend_from_slice(path),
        _ => out.append(&mut normal_path(path, cwd)),
    }
}

/// Whether an absolute path surely is its own normal form.
fn is_plain(path: &[u8]) -> bool {
    path.first() == Some(&b'/') && is_plain_relative(&path[1..])
}

/// Whether a path without root has no part that is empty, `.` or `..`; one that begins with a dot may.
fn is_plain_relative(path: &[u8]) -> bool {
    let ends = matches!(path, [first, .., last] if !matches!(first, b'/' | b'.') && *last != b'/');
    ends && !path.windows(2).any(|pair| pair[0] == b'/' && matches!(pair[1], b'/' | b'.'))
}

fn normal(path: &[u8]) -> Vec<u8> {
    let style = style_of(path);
    let is_separator = |byte: &u8| *byte == b'/' || (*byte == b'\\' && style == Style::Windows);
    let (mut root, rest) = split_root(path, style);
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in rest.split(is_separator) {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => drop(parts.pop()),
            b".." if !root.is_empty() => {}
            _ => parts.push(part),
        }
    }
    let parts = parts.join(&b'/');
    // A name that looks like a root, such as `~` or `C:`, stays what it is only behind `./`.
    if !is_rooted(path) && is_rooted(&parts) {
        root.extend_from_slice(b"./");
    }
    root.extend_from_slice(&parts);
    if root.is_empty() { b".".to_vec() } else { root }
}

fn style_of(path: &[u8]) -> Style {
    if path.starts_with(br"\\") || has_drive(path) { Style::Windows } else { Style::Posix }
}

/// Whether the path begins with a drive: `C:/` or `C:\`.
pub fn has_drive(path: &[u8]) -> bool {
    matches!(path, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

/// Whether a path says itself where it begins.
pub fn is_rooted(path: &[u8]) -> bool {
    style_of(path) == Style::Windows || path.starts_with(b"/") || path == b"~" || path.starts_with(b"~/")
}

/// The root in its one spelling, and what stands behind it.
fn split_root(path: &[u8], style: Style) -> (Vec<u8>, &[u8]) {
    match (style, path) {
        (Style::Windows, [letter, b':', rest @ ..]) => (vec![letter.to_ascii_uppercase(), b':', b'/'], rest),
        (Style::Windows, _) => (br"\\".to_vec(), path),
        (Style::Posix, [b'/', rest @ ..]) => (b"/".to_vec(), rest),
        (Style::Posix, _) => (Vec::new(), path),
    }
}
