//! JSON over several lines: only something to compare with, since savings against it are easily large.

use crate::facts::encode::{Family, Format, Params};
use crate::facts::json_tree::Json;
use crate::facts::subject::{Meaning, Subject};

/// JSON indented by two blanks per level.
pub const FORMAT: Format = Format { id: "json_pretty", family: Family::Baseline, by_depth: false, encode, decode };

fn encode(subject: &Subject<'_>, _: Params) -> Option<String> {
    Some(subject.json().ok()?.pretty())
}

fn decode(text: &str) -> Option<Meaning> {
    Json::parse(text).ok().map(Meaning::Json)
}
