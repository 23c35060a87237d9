//! What is made to be shared: a Markdown report and a JSON document of aggregates name no project, server or place.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use serde_json::Value;

use crate::base::pseudonyms::Pseudonyms;
use crate::base::visible::Shown as _;
use crate::report::escape;

/// What stands for a path.
pub const PATH: &str = "(path)";
/// What every tool of an MCP server begins with.
const MCP: &str = "mcp__";
/// Before what a name with a server in it may stand.
const MARKS: [&str; 2] = [MCP, "data.variants."];

/// A stream of Markdown whose lines go out without names of MCP servers (unless they are pseudonyms already) and without
/// absolute paths.
pub struct Shared<'w> {
    out: &'w mut dyn Write,
    /// None: the text has pseudonyms already.
    servers: Option<&'w Pseudonyms>,
    line: Vec<u8>,
}

impl<'w> Shared<'w> {
    /// A stream into another one.
    pub fn new(out: &'w mut dyn Write, servers: Option<&'w Pseudonyms>) -> Self {
        Self { out, servers, line: Vec::new() }
    }

    fn send(&mut self) -> io::Result<()> {
        let line = String::from_utf8_lossy(&self.line);
        let line = self.servers.map_or(line.clone(), |names| without_servers(&line, names).into_owned().into());
        let sent = self.out.write_all(without_paths(&line).as_bytes());
        self.line.clear();
        sent
    }
}

impl Write for Shared<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.send()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()?;
        self.out.flush()
    }
}

/// A line of Markdown with pseudonyms for the names of MCP servers: in the names of tools, and in those of data profiles,
/// which are the same without the first word.
fn without_servers<'l>(line: &'l str, names: &Pseudonyms) -> Cow<'l, str> {
    if !MARKS.iter().any(|mark| line.contains(mark)) {
        return line.into();
    }
    let mut out = String::new();
    let mut rest = line;
    while let Some((at, mark)) = MARKS.iter().filter_map(|mark| Some((rest.find(mark)?, *mark))).min() {
        let name = &rest[at + mark.len()..];
        let quote = name.len() - name.trim_start_matches('"').len();
        let (before, name) = rest.split_at(at + mark.len() + quote);
        let (name, behind) = name.split_at(name_length(name));
        let tool = format!("{MCP}{}", escape::plain(name));
        // A profile of no tool has no verb.
        let shown = if mark == MCP || tool[MCP.len()..].contains("__") { names.tool(&tool) } else { tool };
        out += before;
        out += &escape::markdown(&shown[MCP.len()..]);
        rest = behind;
    }
    (out + rest).into()
}

/// Bytes of the name at the start of a line of Markdown: letters, digits, escaped marks, and marks between these.
fn name_length(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let goes_on = match c {
            '_' | '-' => true,
            '\\' => chars.next().is_some(),
            '.' | ':' | '@' | '/' | '+' | '&' | ';' | '#' => next.is_some_and(char::is_alphanumeric),
            c => c.is_alphanumeric(),
        };
        if !goes_on {
            return at;
        }
    }
    text.len()
}

/// A text without absolute paths. In the cell of a table a path reaches to the end of the cell, elsewhere to the next blank
/// after its last slash; the number of a line behind it stays.
pub fn without_paths(text: &str) -> Cow<'_, str> {
    let in_table = text.starts_with('|');
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = path_start(rest) {
        let (before, path) = rest.split_at(at);
        let length = path_length(path, in_table);
        let (path, behind) = path.split_at(length);
        out = out + before + PATH + line_number(path);
        rest = behind;
    }
    if out.is_empty() { text.into() } else { (out + rest).into() }
}

fn path_length(text: &str, in_table: bool) -> usize {
    if in_table {
        let is_end = |at: &usize| text[..*at].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 0;
        let end = text.match_indices('|').map(|(at, _)| at).find(is_end).unwrap_or(text.len());
        return text[..end].trim_end().len();
    }
    path_end(text)
}

/// The next blank after the last slash, if it begins with one, or the colon before that.
fn path_end(text: &str) -> usize {
    let last = if text.starts_with('/') { text.rfind('/').unwrap_or_default() } else { 0 };
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '`' | '\'' | ')' | ',' | ';');
    let end = text[last..].find(is_end).map_or(text.len(), |end| last + end);
    text[..end].trim_end_matches(':').len()
}

/// ":12" of "log.jsonl:12".
fn line_number(path: &str) -> &str {
    let digits = path.len() - path.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let colon = path.len() - digits;
    if digits > 0 && path[..colon].ends_with(':') { &path[colon - 1..] } else { "" }
}

/// Where a path of at least two parts starts; "a/b" and "a / b" are none.
fn path_start(text: &str) -> Option<usize> {
    let starts = |at: &usize| {
        let before = text[..*at].chars().next_back();
        let name = &text[at + 1..];
        let slash = name.find('/').filter(|slash| *slash > 0);
        before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '/' | '.' | ':' | '_' | '-' | ')' | '\\' | '<'))
            && slash.is_some_and(|slash| !name[..slash].contains(['|', '\n', ' ']))
    };
    text.match_indices('/').map(|(at, _)| at).find(starts)
}

/// A place on disk as it is told; of what is shared not even a relative one, which no reader can tell from a word.
pub fn told_place(path: &Path, is_shared: bool) -> String {
    if is_shared { PATH.to_owned() } else { path.shown() }
}

/// A text without a place that the program was given, and without what is named below it.
pub fn without_place(text: &str, place: &Path) -> String {
    let place = place.shown();
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&place).filter(|_| !place.is_empty()) {
        let (before, found) = rest.split_at(at);
        let behind = &found[place.len()..];
        let below = path_end(behind);
        let is_place =
            before.chars().next_back().is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '/' | '.' | '_' | '-'))
                && (below == 0 || place.ends_with('/') || behind.starts_with(['/', ':']));
        let (told, length) = match is_place {
            true => (PATH.to_owned() + line_number(&behind[..below]), place.len() + below),
            false => (place.clone(), place.len()),
        };
        out = out + before + &told;
        rest = &found[length..];
    }
    out + rest
}

/// What is told of a place in a file where paths are not: ":12" of it.
pub fn hidden_place(place: &str) -> String {
    format!("{PATH}{}", line_number(place))
}

/// Takes every place on disk out of the fields of a JSON document about logs or telemetry.
pub fn hide_places(fields: &mut Value) {
    if let Some(inputs) = fields.get_mut("inputs") {
        for list in ["roots", "unreadable"] {
            inputs.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().for_each(|row| hide(row, "path"));
        }
        hide(inputs, "lake");
        // What could not be read has to be said all the same.
        for note in inputs.get_mut("notes").and_then(Value::as_array_mut).into_iter().flatten() {
            *note = note.as_str().map(|note| Value::from(without_paths(note))).unwrap_or_default();
        }
    }
    let reasons = fields.get_mut("data_quality").and_then(Value::as_object_mut).into_iter().flatten();
    reasons.for_each(|(_, row)| hide(row, "first"));
}

/// Puts pseudonyms in place of the names of MCP servers, wherever a value or a key of a document names one of their tools.
pub fn hide_servers(value: &mut Value, names: &Pseudonyms) {
    match value {
        Value::String(text) => *text = servers_hidden(text, names),
        Value::Array(values) => values.iter_mut().for_each(|value| hide_servers(value, names)),
        Value::Object(fields) => {
            let hidden = std::mem::take(fields).into_iter().map(|(key, mut value)| {
                hide_servers(&mut value, names);
                (servers_hidden(&key, names), value)
            });
            *fields = hidden.collect();
        }
        _ => {}
    }
}

/// A name, or a text with names in it, with pseudonyms for the names of MCP servers.
pub fn servers_hidden(text: &str, names: &Pseudonyms) -> String {
    if text.starts_with(MCP) && !text.contains(char::is_whitespace) {
        return names.tool(text);
    }
    if !text.contains(MCP) {
        return text.to_owned();
    }
    escape::plain(&without_servers(&escape::markdown(text), names))
}

fn hide(object: &mut Value, field: &str) {
    if let Some(value) = object.get_mut(field) {
        *value = Value::Null;
    }
}
