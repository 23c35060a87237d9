//! JSON without white space: what a body costs before any better format is tried.

use crate::facts::encode::{Family, Format, Params};
use crate::facts::json_tree::Json;
use crate::facts::subject::{Meaning, Subject};

/// Compact JSON: keys in document order, numbers as they are spelled.
pub const FORMAT: Format = Format { id: "json_compact", family: Family::Published, by_depth: false, encode, decode };

fn encode(subject: &Subject<'_>, _: Params) -> Option<String> {
    Some(subject.json().ok()?.compact())
}

fn decode(text: &str) -> Option<Meaning> {
    Json::parse(text).ok().map(Meaning::Json)
}
