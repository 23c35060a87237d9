//! Arguments out of answers: what an answer lists that the next call may be about.
//!
//! Reads the answer as the tool gave it, before any layer rewrote it. JSON is parsed; text is read line by line; what
//! does not look like an argument (a heading, a hint, "no matches") is passed over.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::planner::host::host_of;
use crate::planner::numbers::{Extractor, ProjectionNumbers};
use crate::planner::request::Argument;
use crate::settings::tool_model::FollowUp;

/// How the texts of arguments become canonical.
pub type Canonical<'a> = &'a dyn Fn(&str) -> String;

/// What makes arguments.
#[derive(Clone, Copy)]
pub struct Projector<'a> {
    /// Caps and pairs.
    pub numbers: &'a ProjectionNumbers,
    /// The one spelling of a path.
    pub path: Canonical<'a>,
}

impl Projector<'_> {
    /// Different arguments of a link out of the answer of `tool`, in the order of the answer. The built-in extractor of
    /// a known pair decides alone; any other link is followed as its `projection` says.
    pub fn project(&self, tool: &str, answer: &str, link: &FollowUp) -> Vec<Argument> {
        let answer = Answer::read(answer);
        let pair = self.numbers.pairs.iter().find(|pair| pair.from == tool && pair.to == link.tool);
        let Some(pair) = pair else { return self.walk(&answer, link) };
        let name = link.projection_arg.as_deref().unwrap_or(&pair.argument);
        let paths = |found: Vec<String>| found.iter().map(|path| (self.path)(path)).collect();
        let (found, most): (Vec<String>, _) = match pair.extractor {
            Extractor::Glob => (paths(listed(&answer)), self.numbers.arguments_max),
            Extractor::Grep => (paths(matched(&answer)), self.numbers.arguments_max),
            Extractor::Search => (hits(&answer), self.numbers.search_arguments_max),
        };
        distinct(found, most).map(|value| Argument::text(name, value)).collect()
    }

    /// Every value under the key that the link names, at any depth, keys in their order by letters.
    fn walk(&self, answer: &Answer<'_>, link: &FollowUp) -> Vec<Argument> {
        let (Some(key), Some(name), Answer::Json(json)) = (&link.projection, &link.projection_arg, answer) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        collect(json, key, &mut found);
        distinct(found, self.numbers.arguments_max).map(|value| Argument::text(name, value)).collect()
    }
}

/// An answer, parsed if it can be.
enum Answer<'a> {
    Json(Value),
    Text(Cow<'a, str>),
}

impl<'a> Answer<'a> {
    fn read(answer: &'a str) -> Self {
        match serde_json::from_str(answer) {
            Ok(Value::String(text)) => Self::Text(text.into()),
            Ok(json) => Self::Json(json),
            Err(_) => Self::Text(answer.into()),
        }
    }
}

/// The paths of a listing.
fn listed(answer: &Answer<'_>) -> Vec<String> {
    match answer {
        Answer::Json(Value::Array(items)) => {
            let path =
                |item: &Value| item.as_str().or_else(|| string(item, &["path", "match_path"])).map(str::to_owned);
            items.iter().filter_map(path).filter(|path| is_path(path)).collect()
        }
        Answer::Json(_) => Vec::new(),
        Answer::Text(text) => text.lines().map(str::trim).filter(|line| is_path(line)).map(str::to_owned).collect(),
    }
}

/// The files of search hits. If any line has a line number, a line without one is context or a remark.
fn matched(answer: &Answer<'_>) -> Vec<String> {
    match answer {
        Answer::Json(Value::Array(items)) => {
            let file = |item: &Value| string(item, &["path", "file"]).map(str::to_owned);
            items.iter().filter_map(file).filter(|file| is_path(file)).collect()
        }
        Answer::Json(_) => Vec::new(),
        Answer::Text(text) => {
            let hits: Vec<_> = text.lines().map(|line| split_hit(line.trim())).collect();
            let numbered = hits.iter().any(|(_, rest)| is_numbered(rest));
            let counts = |(file, rest): &(&str, &str)| is_path(file) && (!numbered || is_numbered(rest));
            hits.into_iter().filter(counts).map(|(file, _)| file.to_owned()).collect()
        }
    }
}

/// The address of the top hit. The answer may be JSON, or text with a list of hits in it.
fn hits(answer: &Answer<'_>) -> Vec<String> {
    let inside;
    let items = match answer {
        Answer::Json(json) => json.get("results").unwrap_or(json),
        Answer::Text(text) => {
            let list = text
                .find("[{")
                .and_then(|at| serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>().next()?.ok());
            inside = list.unwrap_or_default();
            &inside
        }
    };
    let urls = items.as_array().into_iter().flatten().filter_map(|item| item.get("url")?.as_str());
    urls.filter(|url| is_url(url)).map(str::to_owned).collect()
}

/// The file and the rest of a search hit. The colon of a drive does not end the file.
fn split_hit(line: &str) -> (&str, &str) {
    let drive = matches!(line.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    let start = if drive { 2 } else { 0 };
    match line[start..].find(':') {
        Some(at) => (line[..start + at].trim(), &line[start + at + 1..]),
        None => (line, ""),
    }
}

/// `12:` at the beginning.
fn is_numbered(rest: &str) -> bool {
    rest.split_once(':').is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a text may be a path: not a number, an option, a quoted remark, nor words without any separator.
fn is_path(text: &str) -> bool {
    let separated = text.contains(['/', '\\']);
    let remark = text.is_empty() || text.starts_with(['>', '-', '<']) || text.contains("://") || text.ends_with("...");
    let words = text.contains(char::is_whitespace) && (!separated || text.ends_with(['.', ':', ')', ']']));
    let number = text.bytes().all(|b| b.is_ascii_digit());
    !(remark || words || number || text.contains(char::is_control))
}

fn is_url(text: &str) -> bool {
    let web = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    web && host_of(text).is_some() && !text.contains(char::is_whitespace)
}

fn string<'v>(item: &'v Value, keys: &[&str]) -> Option<&'v str> {
    keys.iter().find_map(|key| item.get(key)?.as_str())
}

fn collect(json: &Value, key: &str, found: &mut Vec<String>) {
    match json {
        Value::Array(items) => items.iter().for_each(|item| collect(item, key, found)),
        Value::Object(fields) => {
            let mut names: Vec<_> = fields.keys().collect();
            names.sort();
            for name in names {
                let value = &fields[name];
                if name == key {
                    found.extend(scalar(value));
                }
                collect(value, key, found);
            }
        }
        _ => {}
    }
}

/// The text of a value that can be an argument.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn distinct(found: Vec<String>, most: usize) -> impl Iterator<Item = String> {
    let mut seen = BTreeSet::new();
    found.into_iter().filter(move |value| seen.insert(value.clone())).take(most)
}
