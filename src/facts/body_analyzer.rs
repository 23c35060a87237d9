//! The facts about one body, all of them made while its text is there.

use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::base::body_shape::{BodyShape, KeptLines};
use crate::base::id::Id;
use crate::base::numbers::saturated;
use crate::base::tokenizer::{Size, TokenCounts, VOCABULARIES};
use crate::facts::body_facts::{BodyFacts, BodyLine, BodyLines, Encoding, witness};
use crate::facts::encode::{Format, Params, Subject};
use crate::facts::numbered::{BodySegment, segments};
use crate::facts::quotable::Quotable;
use crate::facts::tokens::Counter;
use crate::facts::{encode, inner_formats, legacy, near_ref, shape, tokens};
use crate::logs::body::text_of;
use crate::logs::timeline::TokenCounter;

/// Recursion depths for which costs are kept; deeper ones cost what the last does.
const DEPTH_MAX: u8 = 8;

/// How the client begins the preview of a result that is over its inline limit.
const PREVIEW_START: &str = "<persisted-output>";

/// A worker's counters and parameters.
pub struct BodyAnalyzer {
    counters: [Option<Counter>; VOCABULARIES.len()],
    vocabularies: u8,
    params: Params,
    long: LongBody,
}

/// What is known so far of a body over [`STUDIED_BYTES`](crate::logs::body::STUDIED_BYTES). It is counted, neither classified nor written in other ways: no
/// model is shown one, and every way of writing it would hold it in memory once more.
#[derive(Default)]
struct LongBody {
    sha: Sha256,
    chars: u64,
    size: Size,
    preview: bool,
}

impl BodyAnalyzer {
    /// An analyzer that counts in the given vocabularies, one bit each.
    pub fn new(vocabularies: u8, params: Params) -> Self {
        let counter = |place: usize| (vocabularies >> place & 1 == 1).then(|| Counter::new(VOCABULARIES[place]));
        Self { counters: std::array::from_fn(counter), vocabularies, params, long: LongBody::default() }
    }

    /// See [`Study::part`](crate::logs::body::BodyStudy::part).
    pub fn part(&mut self, text: &[u8], is_first: bool) -> usize {
        let Some(cut) = tokens::last_cut(text) else { return 0 };
        if is_first {
            let preview = is_preview(&String::from_utf8_lossy(&text[..cut]));
            self.long = LongBody { preview, ..LongBody::default() };
        }
        self.add_to_long(&text[..cut]);
        cut
    }

    /// The facts about the body whose parts were taken.
    pub fn rest(&mut self, body: Id, text: &[u8]) -> BodyFacts {
        self.add_to_long(text);
        let LongBody { sha, chars, size, preview } = std::mem::take(&mut self.long);
        let (sha, counted, chars) = (Id::pseudonym_of(sha), self.vocabularies, saturated(chars));
        BodyFacts { body, sha, counted, chars, raw: size, preview, oversize: true, ..BodyFacts::default() }
    }

    fn add_to_long(&mut self, bytes: &[u8]) {
        let text = text_of(bytes);
        let size = self.measure(&text);
        self.long.sha.update(bytes);
        self.long.chars += text.chars().count() as u64;
        self.long.size = self.long.size.plus(&size);
    }

    /// The size of a text.
    pub fn measure(&mut self, text: &str) -> Size {
        self.measure_part(text, 0..text.len())
    }

    fn measure_part(&mut self, text: &str, part: Range<usize>) -> Size {
        let mut tokens = TokenCounts::default();
        for (tokens, counter) in tokens.iter_mut().zip(&mut self.counters) {
            *tokens = counter.as_mut().map_or(0, |counter| saturated(counter.count_part(text, part.clone())));
        }
        Size { bytes: saturated(part.len() as u64), tokens }
    }

    /// The facts about a body.
    pub fn facts(&mut self, body: Id, bytes: &[u8]) -> BodyFacts {
        let text = text_of(bytes);
        let whole = text.len() == bytes.len();
        let shape = shape::classify(bytes);
        let lines = if whole { self.lines(&text) } else { BodyLines::default() };
        // Tokens are counted once: those of the lines add up to those of the body.
        let raw = if lines.is_empty() {
            self.measure(&text)
        } else {
            lines.iter().fold(Size::default(), |sum, line| sum.plus(&line.size))
        };
        let mut facts = BodyFacts {
            body,
            sha: Id::pseudonym(bytes),
            counted: self.vocabularies,
            chars: saturated(text.chars().count() as u64),
            raw,
            lines,
            shape: shape as u8,
            inner_formats: inner_formats::find(&text, shape).0,
            preview: is_preview(&text),
            ..BodyFacts::default()
        };
        let measures = shape::describe(&text, shape);
        if measures != shape::Description::default() {
            facts.forms.measures = measures;
        }
        // Half a UTF-16 pair cannot be written again as it was: such a body stays as it is.
        if whole {
            facts.raw.bytes = saturated(bytes.len() as u64);
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
        if let Some((_, text)) = legacy::published_output(text, shape) {
            facts.forms.published = Some(self.measure(&text));
        }
        facts.near = near_ref::signature(text, &mut |piece| self.measure(piece)).map(Box::new);
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
        subject.is_deeper.set(true);
        for depth in 0..=if format.by_depth { DEPTH_MAX } else { 0 } {
            let params = Params { recursion_depth: depth.into(), ..self.params };
            // Deeper than the body is, all is the same.
            if !subject.is_deeper.replace(false) {
                break;
            }
            let Some(text) = (format.encode)(subject, params) else { continue };
            if last.as_ref() == Some(&text) {
                continue;
            }
            if !encode::says_the_same(format, subject, &text) {
                facts.unproven += 1;
                continue;
            }
            let kept = quotable.kept(&text);
            facts.forms.encodings.push(Encoding { format: number, depth, size: self.measure(&text), kept });
            if kept == KeptLines::Nothing {
                lossy.push((number, text.clone()));
            }
            last = Some(text);
        }
    }

    fn lines(&mut self, text: &str) -> BodyLines {
        let mut start = 0;
        let segment = |segment: BodySegment<'_>| {
            let part = start..start + segment.text.len();
            start = part.end;
            BodyLine { number: segment.number, text: witness(segment.text), size: self.measure_part(text, part) }
        };
        segments(text).into_iter().map(segment).collect()
    }
}

impl TokenCounter for BodyAnalyzer {
    fn tokens(&mut self, text: &str) -> TokenCounts {
        self.measure(text).tokens
    }
}

fn is_preview(text: &str) -> bool {
    text.trim_start().starts_with(PREVIEW_START)
}
