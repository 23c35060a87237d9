//! JSON without white space: what a body costs before any better format is tried. And over several lines: only something
//! to compare with, since savings against it are easily large.

use crate::facts::encode::{Format, FormatFamily, Meaning, Params, Subject};
use crate::facts::json_tree::Json;

/// Compact JSON: keys in document order, numbers as they are spelled.
pub const COMPACT: Format =
    Format { id: "json_compact", family: FormatFamily::Published, by_depth: false, encode: compact, decode };

/// JSON indented by two blanks per level.
pub const PRETTY: Format =
    Format { id: "json_pretty", family: FormatFamily::Baseline, by_depth: false, encode: pretty, decode };

fn compact(subject: &Subject<'_>, _: Params) -> Option<String> {
    subject.json().map(Json::compact)
}

fn pretty(subject: &Subject<'_>, _: Params) -> Option<String> {
    subject.json().map(Json::pretty)
}

fn decode(text: &str) -> Option<Meaning> {
    Json::parse(text).ok().map(Meaning::Json)
}
