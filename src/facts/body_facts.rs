//! What is known of one body once its text is gone: all that a replay needs, whatever configuration it replays.
//!
//! Facts follow from the text alone, so a body that many calls return is looked at once.
//!
//! The facts about one body, all of them made while its text is there.

use crate::base::body_shape::BodyShape;
use crate::base::id::Id;
use crate::base::showing::{Kept, Showing};
use crate::base::tokenizer::{Bpe, Size, Tokens, VOCABULARIES};
use crate::facts::encode::{Attempt, Format, Params};
use crate::facts::numbered::{TokenSegment, stretches};
use crate::facts::quotable::Quotable;
use crate::facts::subject::Subject;
use crate::facts::tokens::{Counter, Vocabulary};
use crate::facts::{encode, hints, inner_formats, legacy, shape};
use crate::logs::timeline::TokenCounter;

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
    pub kept: Kept,
}

/// A line that can be quoted from the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    /// Hash of the line, white space around it left out. For counting: two lines may share one.
    pub hash: u32,
    /// The formats whose encoding does not show the line as it is, one bit each by number in the register.
    pub lost_in: u32,
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

/// A stretch of a body: one numbered line, or text between such lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Line {
    /// The number that stands on the line; 0 for other text.
    pub number: u32,
    /// Witness of the line with its number and its line end.
    pub text: Id,
    /// Size; those of all stretches add up to that of the body, token by token.
    pub size: Size,
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
    /// Nesting of JSON containers; a scalar has 0.
    pub depth: u16,
    /// Elements of a JSON array.
    pub items: u32,
    /// Fields of a JSON object.
    pub fields: u32,
    /// Columns of the first Markdown table.
    pub columns: u32,
    /// Rows of the same.
    pub rows: u32,
    /// Mean Jaccard index of the key sets of an array of objects, 0 … 1.
    pub key_stability: f32,
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
    pub lines: Vec<Line>,
    /// How the body shows the text of files, by its look alone.
    pub look: Showing,
    /// The lines that can be quoted, by hash.
    pub texts: Vec<Text>,
}

impl BodyFacts {
    /// Facts about what a call quotes: they are no facts about a body, but kept like them under a name of their own.
    pub fn quote(call: Id, counted: u8, texts: Vec<Text>) -> Self {
        Self { body: Self::quoted_by(call), counted, texts, ..Self::default() }
    }

    /// The name under which is kept what a call quotes.
    pub fn quoted_by(call: Id) -> Id {
        Id::of(&[b"quoted by ", call.0.as_slice()].concat())
    }
}

/// Bodies over this many bytes are counted, not written in other ways: no reader is shown one, and every way of writing
/// it would hold it in memory once more.
const ENCODED_BYTES_MAX: usize = 8 << 20;
/// Recursion depths for which costs are kept; deeper ones cost what the last does.
const DEPTH_MAX: u8 = 8;

/// How the client begins the preview of a result that is over its inline limit.
const PREVIEW_START: &str = "<persisted-output>";

/// A worker's counters and parameters.
pub struct BodyAnalyzer {
    counters: [Option<Counter>; VOCABULARIES.len()],
    vocabularies: u8,
    params: Params,
}

impl BodyAnalyzer {
    /// A desk that counts in the given vocabularies, one bit each.
    pub fn new(vocabularies: u8, params: Params) -> Self {
        let counter = |place: usize| (vocabularies >> place & 1 == 1).then(|| Counter::new(vocabulary(place)));
        Self { counters: std::array::from_fn(counter), vocabularies, params }
    }

    /// The size of a text.
    pub fn measure(&mut self, text: &str) -> Size {
        let mut tokens = Tokens::default();
        for (tokens, counter) in tokens.iter_mut().zip(&mut self.counters) {
            *tokens = counter.as_mut().map_or(0, |counter| saturate(counter.count(text)));
        }
        Size { bytes: saturate(text.len() as u64), tokens }
    }

    /// The facts about a body.
    pub fn facts(&mut self, body: Id, bytes: &[u8]) -> BodyFacts {
        let text = String::from_utf8_lossy(bytes);
        let whole = text.len() == bytes.len() && bytes.len() <= ENCODED_BYTES_MAX;
        let shape = shape::classify(bytes);
        let described = shape::describe(&text, shape);
        let lines = if whole { self.lines(&text) } else { Vec::new() };
        // Tokens are counted once: those of the lines add up to those of the body.
        let raw = match lines.as_slice() {
            [] => self.measure(&text),
            lines => lines.iter().fold(Size::default(), |sum, line| sum.plus(&line.size)),
        };
        let mut facts = BodyFacts {
            body,
            sha: Id::pseudonym(bytes),
            counted: self.vocabularies,
            chars: saturate(text.chars().count() as u64),
            raw,
            lines,
            shape: shape as u8,
            inner_formats: inner_formats::find(&text, shape).0,
            depth: described.depth,
            items: described.items,
            fields: described.fields,
            columns: described.columns,
            rows: described.rows,
            key_stability: described.key_stability,
            preview: text.trim_start().starts_with(PREVIEW_START),
            oversize: bytes.len() > ENCODED_BYTES_MAX,
            ..BodyFacts::default()
        };
        // Half a UTF-16 pair cannot be written again as it was: such a body stays as it is.
        if whole {
            facts.raw.bytes = saturate(bytes.len() as u64);
            self.add_encodings(&text, shape, &mut facts);
        }
        facts
    }

    fn add_encodings(&mut self, text: &str, shape: BodyShape, facts: &mut BodyFacts) {
        let subject = Subject::new(text, shape);
        let quotable = Quotable::of(text);
        let mut lossy = Vec::new();
        for (number, format) in encode::REGISTER.iter().enumerate() {
            self.add_format(number as u8, format, (&subject, &quotable), facts, &mut lossy);
        }
        facts.look = quotable.look();
        facts.texts = quotable.texts(&lossy);
        facts.published = legacy::published_output(text, shape).map(|(_, text)| self.measure(&text));
        facts.near = hints::signature(text, &mut |piece| self.measure(piece));
    }

    /// Adds what a format makes of the body; texts from which not all of it can be quoted are added to `lossy`.
    fn add_format(
        &mut self,
        number: u8,
        format: &Format,
        (subject, quotable): (&Subject<'_>, &Quotable<'_>),
        facts: &mut BodyFacts,
        lossy: &mut Vec<(u8, String)>,
    ) {
        let mut last = None;
        for depth in 0..=if format.by_depth { DEPTH_MAX } else { 0 } {
            let params = Params { recursion_depth: depth.into(), ..self.params };
            match encode::attempt(format, subject, params) {
                Attempt::Refused => {}
                Attempt::Unproven => facts.unproven += 1,
                Attempt::Proven(text) if last.as_ref() == Some(&text) => {}
                Attempt::Proven(text) => {
                    let kept = quotable.kept(&text);
                    facts.encodings.push(Encoding { format: number, depth, size: self.measure(&text), kept });
                    if kept == Kept::Nothing {
                        lossy.push((number, text.clone()));
                    }
                    last = Some(text);
                }
            }
        }
    }

    fn lines(&mut self, text: &str) -> Vec<Line> {
        let stretch = |stretch: TokenSegment<'_>| Line {
            number: stretch.number,
            text: Id::witness(stretch.text.as_bytes()),
            size: self.measure(stretch.text),
        };
        stretches(text).into_iter().map(stretch).collect()
    }
}

impl TokenCounter for BodyAnalyzer {
    fn tokens(&mut self, text: &str) -> Tokens {
        self.measure(text).tokens
    }
}

fn vocabulary(place: usize) -> Vocabulary {
    match VOCABULARIES[place] {
        Bpe::Cl100kBase => Vocabulary::Cl100kBase,
        _ => Vocabulary::O200kBase,
    }
}

fn saturate(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
