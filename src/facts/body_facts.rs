//! What is known of one body once its text is gone: all that a replay needs, whatever configuration it replays.
//!
//! Facts follow from the text alone, so a body that many calls return is looked at once.

use crate::base::body_shape::{KeptLines, Showing};
use crate::base::id::Id;
use crate::base::tokenizer::Size;
use crate::facts::lines::BodyLines;
use crate::facts::shape::Description;
use crate::facts::texts::LineHashes;

/// One proven way to write the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encoding {
    /// Number of the format in the register of formats.
    pub format: u8,
    /// The recursion depth from which on this size holds; 0 for formats that do not depend on it.
    pub depth: u8,
    /// Size of the encoded text.
    pub size: Size,
    /// What of the body can be quoted from it.
    pub kept: KeptLines,
}

/// A top-level field of a JSON object, as far as a near-reference needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NearField {
    /// Witness of the value's text.
    pub value: Id,
    /// Whether key and value can stand in a hint without being misread.
    pub plain: bool,
    /// Size of `, key: value`.
    pub old: Size,
    /// Size of `→value`.
    pub new: Size,
}

/// What decides whether one JSON object is another one with a few changed scalars.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NearSignature {
    /// Witness of the body without its top-level scalar values: all of its other bytes, with the types of the values.
    pub skeleton: Id,
    /// The scalar values, in the order of the body.
    pub fields: Vec<NearField>,
}

/// The facts about one body.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BodyFacts {
    /// XXH3-128 of the text: joins with [`crate::logs::trace::ToolResult::body`].
    pub body: Id,
    /// First 16 bytes of SHA-256 of the text: the published fingerprint.
    pub sha: Id,
    /// Vocabularies counted, one bit each.
    pub counted: u8,
    /// Length in code points.
    pub chars: u32,
    /// Size as it stands.
    pub raw: Size,
    /// Number of the [`crate::base::body_shape::BodyShape`].
    pub shape: u8,
    /// Inner formats, one bit each.
    pub inner_formats: u16,
    /// The measures that belong to its shape.
    pub measures: Description,
    /// Whether the client cut the result down to this: the whole stands in a file that the body names.
    pub preview: bool,
    /// Whether the body was too large to be written in other ways.
    pub oversize: bool,
    /// Ways to write it that did not give it back: not used.
    pub unproven: u16,
    /// What the published router would have sent instead, whether or not anything can be read back from it.
    pub published: Option<Size>,
    /// The ways to write it that give it back, by format and then by depth.
    pub encodings: Vec<Encoding>,
    /// For a JSON object: what a near-reference needs.
    pub near: Option<NearSignature>,
    /// For numbered lines: the lines.
    pub lines: BodyLines,
    /// How the body shows the text of files, by its look alone.
    pub look: Showing,
    /// The lines that can be quoted, by hash.
    pub texts: LineHashes,
}

impl BodyFacts {
    /// Facts about what a call quotes: they are no facts about a body, but kept like them under a name of their own.
    pub fn quote(call: Id, counted: u8, texts: LineHashes) -> Self {
        Self { body: Self::quoted_by(call), counted, texts, ..Self::default() }
    }

    /// The name under which is kept what a call quotes.
    pub fn quoted_by(call: Id) -> Id {
        Id::of(&[b"quoted by ", call.0.as_slice()].concat())
    }
}
