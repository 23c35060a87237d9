//! Where things stand in a strict JSON text: comments, trailing commas and keys that stand twice are refused by line and
//! column, since Claude Code leaves a whole file out for any of the first two.

use std::ops::Range;
use std::path::Path;

use serde::de::IgnoredAny;

use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::base::visible::Shown as _;

/// The mark that some editors put at the start of a file.
pub const BOM: char = '\u{feff}';

/// A key with its value in an object: offsets in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The key, escapes resolved.
    pub name: String,
    pub key: Range<usize>,
    pub value: Range<usize>,
}

/// What became of the search for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySearch {
    /// The innermost object on the way to it.
    pub object: Range<usize>,
    pub members: Vec<Member>,
    /// Number of parts of the key in front of that object.
    pub depth: usize,
    /// The member that is the key itself; none if the object lacks the next part.
    pub found: Option<usize>,
}

/// Checks that a text is strict JSON with an object in it; says where the object is.
pub fn check(path: &Path, text: &str) -> Result<Range<usize>> {
    let start = if text.starts_with(BOM) { BOM.len_utf8() } else { 0 };
    let body = &text[start..];
    if let Err(cause) = serde_json::from_str::<IgnoredAny>(body) {
        return Err(refusal(path, body, &cause));
    }
    let object = start + body.len() - body.trim_ascii_start().len();
    if !text[object..].starts_with('{') {
        let message = format!("{}: no object stands in it", at(path, text, object));
        return Err(Error::failed(message).hint("settings are keys in curly brackets"));
    }
    Ok(object..end_of(text, object))
}

fn refusal(path: &Path, body: &str, cause: &serde_json::Error) -> Error {
    let line_start = body.split_inclusive('\n').take(cause.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let mut offset = (line_start + cause.column().saturating_sub(1)).min(body.len());
    while !body.is_char_boundary(offset) {
        offset -= 1;
    }
    if cause.is_eof() {
        offset = body.trim_ascii_end().len();
    }
    let words = cause.to_string();
    let what = words.split(" at line ").next().unwrap_or_default();
    let is_after_comma = body[..offset].trim_ascii_end().ends_with(',');
    let what = match body[offset..].chars().next() {
        Some('}' | ']') if is_after_comma => "a comma with nothing behind it, which JSON does not have",
        Some('/' | '#') => "a comment, which JSON does not have",
        _ if body.trim_ascii().is_empty() => "it is empty",
        _ if cause.is_eof() => "the file ends too early",
        _ => what,
    };
    Error::failed(format!("{}: {what}", at(path, body, offset)))
        .hint("Claude Code leaves out a file that is not strict JSON ({} is one that sets nothing); correct it and run again, nothing was written")
}

/// `path:line:column`, in characters.
pub fn at(path: &Path, text: &str, offset: usize) -> String {
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().trim_start_matches(BOM).chars().count() + 1;
    format!("{}:{line}:{column}", path.shown())
}

/// Looks for a key from the object `root` down; the text was checked. An error if a part of the key stands twice, or
/// something other than an object stands where one has to.
pub fn find(path: &Path, text: &str, root: Range<usize>, key: &KeyPath) -> Result<KeySearch> {
    let mut object = root;
    for (depth, part) in key.0.iter().enumerate() {
        let members = members(text, object.start);
        let mut same = members.iter().enumerate().filter(|(_, member)| member.name == *part);
        let Some((position, member)) = same.next() else {
            return Ok(KeySearch { object, members, depth, found: None });
        };
        if let Some((_, again)) = same.next() {
            let message = format!("{}: `{part}` stands a second time", at(path, text, again.key.start));
            return Err(Error::failed(message).hint("readers differ in which one counts: take one of them out"));
        }
        if depth + 1 == key.0.len() {
            return Ok(KeySearch { object, members, depth, found: Some(position) });
        }
        if !text[member.value.start..].starts_with('{') {
            let message = format!("{}: `{part}` is no object", at(path, text, member.value.start));
            return Err(Error::failed(message).hint(format!("`{key}` would have to stand in it")));
        }
        object = member.value.clone();
    }
    Err(Error::failed("a key has no parts"))
}

/// The members of the object that begins at `start`.
fn members(text: &str, start: usize) -> Vec<Member> {
    let mut members = Vec::new();
    let mut pos = space(text, start + 1);
    while text[pos..].starts_with('"') {
        let key = pos..end_of(text, pos);
        let value = space(text, space(text, key.end) + 1);
        let value = value..end_of(text, value);
        pos = space(text, value.end);
        if text[pos..].starts_with(',') {
            pos = space(text, pos + 1);
        }
        // Half a surrogate pair is no text; such a key is none of ours.
        let name = serde_json::from_str(&text[key.clone()]).unwrap_or_else(|_| text[key.clone()].to_owned());
        members.push(Member { name, key, value });
    }
    members
}

/// The first place from `pos` on that is no white space.
fn space(text: &str, pos: usize) -> usize {
    text.len() - text[pos..].trim_start_matches([' ', '\t', '\n', '\r']).len()
}

/// Where the value that begins at `start` ends.
fn end_of(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut pos, mut depth) = (start, 0_usize);
    while let Some(&byte) = bytes.get(pos) {
        match byte {
            b'"' => pos = string_end(bytes, pos),
            b'{' | b'[' => (pos, depth) = (pos + 1, depth + 1),
            b'}' | b']' if depth == 0 => return pos,
            b'}' | b']' => (pos, depth) = (pos + 1, depth - 1),
            b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return pos,
            _ => pos += 1,
        }
        if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
            return pos;
        }
    }
    pos
}

/// Behind the closing quote of the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut pos = start + 1;
    while let Some(&byte) = bytes.get(pos) {
        match byte {
            b'\\' => pos += 2,
            b'"' => return pos + 1,
            _ => pos += 1,
        }
    }
    bytes.len()
}
