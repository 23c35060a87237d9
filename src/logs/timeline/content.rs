//! What a timeline keeps of the `message` of a record: blocks with their text, drafted until the record around them is known
//! to be whole.

use std::ops::Range;

use crate::base::id::{Id, IdSet};
use crate::base::json::{RawStr, TextSink, decode_into};
use crate::logs::body::code_points;
use crate::logs::content::{BlockFields, TakeContent};
use crate::logs::field::id_of;

/// What a drafted block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DraftKind {
    /// A text of either side.
    #[default]
    Text,
    Thinking,
    /// A call; its text is the input as compact JSON.
    Call,
    Result,
    /// An image or a document.
    Media,
}

/// A drafted block.
#[derive(Debug, Default)]
pub struct DraftBlock {
    pub part: DraftKind,
    /// Where its text stands in those of all blocks.
    pub text: Range<usize>,
    /// `tool_use` id of a call or a result.
    pub call: Id,
    pub tool: Vec<u8>,
    pub is_string: bool,
    pub is_error: bool,
    /// Images and documents in a result.
    pub media: u64,
    /// What of a result is not held.
    pub beyond: Beyond,
}

/// The end of a result of which not all is held.
#[derive(Clone, Copy, Default, Debug)]
pub struct Beyond {
    /// Code points.
    pub chars: u64,
    pub bytes: u64,
}

/// Content. Kept from record to record for its buffers.
#[derive(Default)]
pub struct ContentDraft {
    pub blocks: Vec<DraftBlock>,
    /// Images and documents inside results.
    pub media_in_results: u64,
    /// Parts of results that are neither text nor media.
    pub others_in_results: u64,
    /// Blocks of other types.
    pub other_blocks: u64,
    /// Calls that stand there already.
    pub duplicate_blocks: u64,
    calls: IdSet<Id>,
    /// How much of a result is held.
    held_bytes_max: usize,
    texts: HeldTexts,
}

/// Texts of all blocks, one behind the other; half a UTF-16 pair stands as WTF-8. Of the result at the end some may be
/// measured only.
#[derive(Default)]
pub struct HeldTexts {
    text: Vec<u8>,
    /// How far the result at the end may reach.
    end: usize,
    beyond: Beyond,
}

impl TextSink for HeldTexts {
    fn push(&mut self, piece: &[u8]) {
        let room = self.end - self.text.len();
        let (held, rest) = piece.split_at(room.min(piece.len()));
        self.text.extend_from_slice(held);
        self.beyond.chars += code_points(rest);
        self.beyond.bytes += rest.len() as u64;
    }
}

impl ContentDraft {
    /// An empty draft; of a result at most so much is held.
    pub fn holding(held_bytes_max: usize) -> Self {
        Self { held_bytes_max, ..Self::default() }
    }

    /// Text of a block.
    pub fn text_of(&self, block: &DraftBlock) -> &[u8] {
        &self.texts.text[block.text.clone()]
    }

    /// Drops blocks that nobody writes on this side of the conversation.
    pub fn keep(&mut self, belongs: impl Fn(DraftKind) -> bool) {
        let before = self.blocks.len();
        self.blocks.retain(|block| belongs(block.part));
        self.other_blocks += (before - self.blocks.len()) as u64;
    }

    /// Where the text of the next block begins.
    fn start(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.text.end)
    }

    /// Adds a block whose text is all that stands behind those of the others.
    fn push(&mut self, part: DraftKind, is_string: bool) -> &mut DraftBlock {
        let text = self.start()..self.texts.text.len();
        self.blocks.push(DraftBlock { part, text, is_string, ..DraftBlock::default() });
        self.blocks.last_mut().expect("it was just pushed")
    }

    /// The text of the next block; one with a malformed escape stands as it is written.
    fn decode(&mut self, raw: RawStr<'_>) {
        let start = self.start();
        let HeldTexts { text, end, .. } = &mut self.texts;
        text.truncate(start);
        *end = usize::MAX;
        if decode_into(raw.0, &mut self.texts).is_err() {
            self.texts.text.truncate(start);
            self.texts.text.extend_from_slice(raw.0);
        }
    }
}

impl<'a> TakeContent<'a> for ContentDraft {
    type Text = HeldTexts;

    fn begin(&mut self) {
        self.blocks.clear();
        self.texts.text.clear();
        self.media_in_results = 0;
        self.others_in_results = 0;
        self.other_blocks = 0;
        self.duplicate_blocks = 0;
        // Once it was large, clearing it would take long for every record.
        self.calls = IdSet::default();
    }

    fn string(&mut self, text: RawStr<'a>) {
        self.decode(text);
        self.push(DraftKind::Text, true);
    }

    fn begin_result(&mut self) {
        let start = self.start();
        self.texts.text.truncate(start);
        self.texts.end = start.saturating_add(self.held_bytes_max);
        self.texts.beyond = Beyond::default();
    }

    fn result_text(&mut self) -> &mut HeldTexts {
        &mut self.texts
    }

    fn block(&mut self, block: &BlockFields<'a>) {
        let kind = block.kind.unwrap_or_default().0;
        if kind != b"tool_result" || block.result.is_none() {
            self.begin_result();
        }
        match kind {
            b"text" => {
                self.decode(block.text.unwrap_or_default());
                self.push(DraftKind::Text, false);
            }
            b"thinking" | b"redacted_thinking" => {
                self.decode(block.thinking.unwrap_or_default());
                self.push(DraftKind::Thinking, false);
            }
            b"tool_use" => {
                let call = block.id.map(id_of).unwrap_or_default();
                if call.is_some() && !self.calls.insert(call) {
                    self.duplicate_blocks += 1;
                    return;
                }
                compact(block.input.unwrap_or_default(), &mut self.texts.text);
                let made = self.push(DraftKind::Call, false);
                made.call = call;
                made.tool = block.name.and_then(RawStr::decode).unwrap_or_default().into_owned();
            }
            b"tool_result" => {
                let (form, beyond) = (block.result.unwrap_or_default(), self.texts.beyond);
                self.media_in_results += u64::from(form.media);
                self.others_in_results += u64::from(form.others);
                let made = self.push(DraftKind::Result, form.is_string);
                made.call = block.tool_use_id.map(id_of).unwrap_or_default();
                made.is_error = block.failed;
                made.media = u64::from(form.media);
                made.beyond = beyond;
            }
            b"image" | b"document" => drop(self.push(DraftKind::Media, false)),
            _ => self.other_blocks += 1,
        }
    }
}

/// Adds JSON without the blanks between its values.
fn compact(json: &[u8], out: &mut Vec<u8>) {
    let (mut in_string, mut escaped) = (false, false);
    for &byte in json {
        if !in_string && matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            continue;
        }
        in_string ^= byte == b'"' && !escaped;
        escaped = in_string && byte == b'\\' && !escaped;
        out.push(byte);
    }
}
