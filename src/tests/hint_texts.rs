//! The hints whose costs the program counts, as they would be written.

use std::fmt::Write;

use crate::facts::hints::{ShownAs, Wording};

/// A reference to a body that is the same.
pub fn reference(handle: &str, shown: ShownAs, wording: Wording) -> String {
    let claim = match (shown, wording) {
        (ShownAs::AsIs, Wording::Terse) => String::new(),
        (ShownAs::AsIs, Wording::Standard) => ", byte-identical".to_owned(),
        (ShownAs::AsIs, Wording::Verbose(from)) => format!(", byte-identical, from: {from}"),
        (ShownAs::Encoded, Wording::Terse | Wording::Standard) => ", encoded".to_owned(),
        (ShownAs::Encoded, Wording::Verbose(from)) => format!(", encoded, from: {from}"),
    };
    format!("> [ref: {handle}{claim}]\n")
}

/// A reference to a body that differs in some scalars, each with its old and new value.
pub fn near_reference(handle: &str, changes: &[(&str, &str, &str)]) -> String {
    let mut text = format!("> [near-ref: {handle}");
    for (key, old, new) in changes {
        write!(text, ", {key}: {old}→{new}").unwrap();
    }
    text + "]\n"
}

/// A reference to lines that were shown.
pub fn range_reference(handle: &str, first: u32, last: u32) -> String {
    format!("> [range-ref: {handle}, lines {first}-{last}]\n")
}
