//! The one-line hints that stand in for a body, and what each costs without writing it.
//!
//! A hint names its target by the end of the `tool_use` id of the call that showed it: that id stands before the
//! reader, in the very context that the hint speaks about. Names are cut so that their tokens join with nothing around
//! them; the cost of a hint is therefore that of its frame plus that of the name, exactly.

use crate::base::tokenizer::{Size, TokenCounts};

/// Longest name of a call in a hint, in bytes.
const HANDLE_BYTES_MAX: usize = 8;

/// How an earlier body was shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShownAs {
    AsIs,
    /// Re-encoded: a repeat is the same content, not the same bytes.
    Encoded,
}

/// How much a reference says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wording {
    /// The name alone.
    Terse,
    /// What the reference claims.
    Standard,
    /// The claim and the kind of the tool that was called.
    Verbose(&'static str),
}

/// Frames of references with what they cost. The places of the name, and of the numbers of lines, are marked by `@`.
pub(crate) const FRAMES: &[(&str, TokenCounts)] = &[
    ("> [ref:@]\n", [5, 5]),
    ("> [ref:@, byte-identical]\n", [9, 10]),
    ("> [ref:@, encoded]\n", [7, 7]),
    ("> [ref:@, byte-identical, from: file-read]\n", [14, 15]),
    ("> [ref:@, byte-identical, from: file-mutate]\n", [15, 17]),
    ("> [ref:@, byte-identical, from: other]\n", [13, 14]),
    ("> [ref:@, encoded, from: file-read]\n", [12, 12]),
    ("> [ref:@, encoded, from: file-mutate]\n", [13, 14]),
    ("> [ref:@, encoded, from: other]\n", [11, 11]),
    ("> [near-ref:@]\n", [6, 6]),
    ("> [range-ref:@, lines @-@]\n", [10, 10]),
];

/// The name of a call in hints: the end of its id, without what could join with the text behind it.
pub fn handle(tool_use_id: &str) -> &str {
    let trimmed = tool_use_id.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let start = trimmed.len().saturating_sub(HANDLE_BYTES_MAX);
    let tail = trimmed.get(start..).unwrap_or_default();
    tail.trim_start_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// What a reference to a body that is the same costs beside the name.
pub fn reference_size(shown: ShownAs, wording: Wording) -> Size {
    let kind = |kind| match kind {
        "file-read" => 0,
        "file-mutate" => 1,
        _ => 2,
    };
    size_of(match (shown, wording) {
        (ShownAs::AsIs, Wording::Terse) => 0,
        (ShownAs::AsIs, Wording::Standard) => 1,
        // Without a word a reference claims identical bytes, so this one is never terse.
        (ShownAs::Encoded, Wording::Terse | Wording::Standard) => 2,
        (ShownAs::AsIs, Wording::Verbose(from)) => 3 + kind(from),
        (ShownAs::Encoded, Wording::Verbose(from)) => 6 + kind(from),
    })
}

const NEAR_FRAME: usize = 9;
const RANGE_FRAME: usize = 10;

/// What a reference to a body that differs in some scalars costs beside the name and the changes.
pub fn near_size() -> Size {
    size_of(NEAR_FRAME)
}

/// What a reference to lines that were shown costs beside the name. Numbers cost a token for every three digits in both
/// vocabularies.
pub fn range_size(first: u32, last: u32) -> Size {
    let digits = |number: u32| number.checked_ilog10().unwrap_or(0) + 1;
    let mut size = size_of(RANGE_FRAME);
    for digits in [digits(first), digits(last)] {
        size.bytes += digits - 1; // its mark is counted already
        size.tokens.iter_mut().for_each(|tokens| *tokens += digits.div_ceil(3));
    }
    size
}

fn size_of(frame: usize) -> Size {
    let (text, tokens) = FRAMES[frame];
    // The mark is replaced by a space and the name.
    Size { bytes: text.len() as u32, tokens }
}
