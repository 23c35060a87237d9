//! The `message` of a record with its text: blocks, drafted until the record around them is known to be whole.

use std::ops::Range;

use crate::base::id::Id;
use crate::base::json::{Cursor, Fault, RawStr, Shape, TextSink, decode_into};
use crate::logs::body::code_points;
use crate::logs::message::{id_of, read_usage, span};
use crate::logs::timeline::beside;
use crate::logs::trace::Usage;

/// Result of reading a part of a record.
pub type Outcome<T> = Result<T, Fault>;

/// What a drafted block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A text of either side.
    Text,
    /// Thinking.
    Thinking,
    /// A call; its text is the input as compact JSON.
    Call,
    /// A result.
    Result,
    /// An image or a document.
    Media,
}

/// A drafted block.
#[derive(Debug)]
pub struct DraftBlock {
    /// What it is.
    pub part: Part,
    /// Where its text stands in [`Draft::text`].
    pub text: Range<usize>,
    /// `tool_use` id of a call or a result.
    pub call: Id,
    /// Tool of a call.
    pub tool: Vec<u8>,
    /// Whether the content was one string.
    pub is_string: bool,
    /// Whether a result is an error.
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
    /// Bytes.
    pub bytes: u64,
}

/// A message. Kept from record to record for its buffers.
#[derive(Default)]
pub struct Draft {
    /// `message.id`.
    pub message: Option<Id>,
    /// Model.
    pub model: Vec<u8>,
    /// Tokens.
    pub usage: Option<Usage>,
    /// `effort`, where it stands in the message; escapes are not resolved, as in the next two.
    pub effort: Vec<u8>,
    /// `usage.speed`.
    pub speed: Vec<u8>,
    /// Why the provider says that the cache was missed.
    pub miss_reason: Vec<u8>,
    /// Blocks.
    pub blocks: Vec<DraftBlock>,
    /// Texts of all blocks, one behind the other. Half a UTF-16 pair stands as WTF-8.
    pub text: Vec<u8>,
    /// Images and documents inside results.
    pub media_in_results: u64,
    /// Parts of results that are neither text nor media.
    pub others_in_results: u64,
    /// Blocks of other types.
    pub other_blocks: u64,
    /// How much of a result is held.
    pub held_bytes_max: usize,
}

/// Holds the start of a result and measures the rest.
struct ResultSink<'t> {
    text: &'t mut Vec<u8>,
    end: usize,
    beyond: Beyond,
}

impl TextSink for ResultSink<'_> {
    fn push(&mut self, piece: &[u8]) {
        let room = self.end - self.text.len();
        let (held, rest) = piece.split_at(room.min(piece.len()));
        self.text.extend_from_slice(held);
        self.beyond.chars += code_points(rest);
        self.beyond.bytes += rest.len() as u64;
    }
}

struct Sink<'t>(&'t mut Vec<u8>);

impl TextSink for Sink<'_> {
    fn push(&mut self, piece: &[u8]) {
        self.0.extend_from_slice(piece);
    }
}

impl Draft {
    /// Forgets the record before.
    pub fn clear(&mut self) {
        self.message = None;
        self.model.clear();
        self.usage = None;
        [&mut self.effort, &mut self.speed, &mut self.miss_reason].into_iter().for_each(Vec::clear);
        self.clear_content();
    }

    fn clear_content(&mut self) {
        self.blocks.clear();
        self.text.clear();
        self.media_in_results = 0;
        self.others_in_results = 0;
        self.other_blocks = 0;
    }

    /// Text of a block.
    pub fn text_of(&self, block: &DraftBlock) -> &[u8] {
        &self.text[block.text.clone()]
    }

    /// Drops blocks that nobody writes on this side of the conversation.
    pub fn keep(&mut self, belongs: impl Fn(Part) -> bool) {
        let before = self.blocks.len();
        self.blocks.retain(|block| belongs(block.part));
        self.other_blocks += (before - self.blocks.len()) as u64;
    }

    /// Reads a `message`; false if it is no object.
    ///
    /// # Errors
    /// What the light reading would break off at as well: a malformed escape in a result.
    pub fn read(&mut self, message: &[u8]) -> Outcome<bool> {
        self.clear();
        let mut cursor = Cursor::new(message);
        if cursor.shape()? != Shape::Object {
            return Ok(false);
        }
        // What is odd in it was counted by the light reading.
        let mut odd = Vec::new();
        cursor.enter()?;
        let mut first = true;
        while let Some(key) = cursor.next_key(&mut first)? {
            match key.0 {
                b"id" => self.message = text(&mut cursor)?.filter(|id| !id.0.is_empty()).map(id_of),
                b"model" => self.model = text(&mut cursor)?.and_then(RawStr::decode).unwrap_or_default(),
                b"usage" => {
                    let usage = span(&mut cursor)?;
                    self.usage = read_usage(&mut Cursor::new(usage), &mut odd)?;
                    keep(&mut self.speed, beside::speed(usage));
                }
                b"effort" => keep(&mut self.effort, text(&mut cursor)?),
                b"diagnostics" => keep(&mut self.miss_reason, beside::miss_reason(span(&mut cursor)?)),
                b"content" => self.content(&mut cursor)?,
                _ => cursor.skip_value()?,
            }
        }
        Ok(true)
    }

    /// Reads content: a text, or blocks.
    ///
    /// # Errors
    /// See [`Draft::read`].
    pub fn content(&mut self, cursor: &mut Cursor<'_>) -> Outcome<()> {
        self.clear_content();
        match cursor.shape()? {
            Shape::Array => cursor.enter()?,
            Shape::String => {
                let text = cursor.string()?;
                let start = self.text.len();
                self.decode(text);
                self.push(Part::Text, start, true);
                return Ok(());
            }
            _ => return cursor.skip_value(),
        }
        let mut first = true;
        while cursor.next_element(&mut first)? {
            if cursor.shape()? == Shape::Object {
                self.block(cursor)?;
            } else {
                cursor.skip_value()?;
            }
        }
        Ok(())
    }

    fn push(&mut self, part: Part, start: usize, is_string: bool) -> &mut DraftBlock {
        let text = start..self.text.len();
        self.blocks.push(DraftBlock {
            part,
            text,
            call: Id::NONE,
            tool: Vec::new(),
            is_string,
            is_error: false,
            media: 0,
            beyond: Beyond::default(),
        });
        self.blocks.last_mut().expect("it was just pushed")
    }

    /// Adds a text; one with a malformed escape stands as it is written.
    fn decode(&mut self, raw: RawStr<'_>) {
        let start = self.text.len();
        if decode_into(raw.0, &mut Sink(&mut self.text)).is_err() {
            self.text.truncate(start);
            self.text.extend_from_slice(raw.0);
        }
    }

    fn block(&mut self, cursor: &mut Cursor<'_>) -> Outcome<()> {
        let (mut kind, mut id, mut name, mut tool_use_id) = (None, None, None, None);
        let (mut written, mut thought, mut failed) = (None, None, false);
        let (mut input, mut content): (Option<&[u8]>, Option<&[u8]>) = (None, None);
        cursor.enter()?;
        let mut first = true;
        while let Some(key) = cursor.next_key(&mut first)? {
            match key.0 {
                b"type" => kind = text(cursor)?,
                b"id" => id = text(cursor)?,
                b"name" => name = text(cursor)?,
                b"tool_use_id" => tool_use_id = text(cursor)?,
                b"text" => written = text(cursor)?,
                b"thinking" => thought = text(cursor)?,
                b"is_error" => failed = flag(cursor)?,
                b"input" => input = Some(span(cursor)?),
                b"content" => content = Some(span(cursor)?),
                _ => cursor.skip_value()?,
            }
        }
        let start = self.text.len();
        match kind.map(|kind| kind.0) {
            Some(b"text") => {
                self.decode(written.unwrap_or_default());
                self.push(Part::Text, start, false);
            }
            Some(b"thinking" | b"redacted_thinking") => {
                self.decode(thought.unwrap_or_default());
                self.push(Part::Thinking, start, false);
            }
            Some(b"tool_use") => {
                compact(input.unwrap_or_default(), &mut self.text);
                let block = self.push(Part::Call, start, false);
                block.call = id.map(id_of).unwrap_or_default();
                block.tool = name.and_then(RawStr::decode).unwrap_or_default();
            }
            Some(b"tool_result") => {
                let before = self.media_in_results;
                let (is_string, beyond) = self.result(content.unwrap_or(b"null"))?;
                let media = self.media_in_results - before;
                let block = self.push(Part::Result, start, is_string);
                block.call = tool_use_id.map(id_of).unwrap_or_default();
                block.is_error = failed;
                block.media = media;
                block.beyond = beyond;
            }
            Some(b"image" | b"document") => drop(self.push(Part::Media, start, false)),
            _ => self.other_blocks += 1,
        }
        Ok(())
    }

    /// Adds the text of a result: a string (true), or its text parts joined by line feeds. Tells what of it is not held.
    fn result(&mut self, content: &[u8]) -> Outcome<(bool, Beyond)> {
        let mut cursor = Cursor::new(content);
        let end = self.text.len().saturating_add(self.held_bytes_max);
        let mut sink = ResultSink { text: &mut self.text, end, beyond: Beyond::default() };
        match cursor.shape()? {
            Shape::String => {
                cursor.decode_string(&mut sink)?;
                return Ok((true, sink.beyond));
            }
            Shape::Array => cursor.enter()?,
            _ => return Ok((false, sink.beyond)),
        }
        let (mut first, mut texts) = (true, 0);
        while cursor.next_element(&mut first)? {
            if cursor.shape()? != Shape::Object {
                cursor.skip_value()?;
                continue;
            }
            let (mut kind, mut written) = (None, None);
            cursor.enter()?;
            let mut first = true;
            while let Some(key) = cursor.next_key(&mut first)? {
                match key.0 {
                    b"type" => kind = text(&mut cursor)?,
                    b"text" => written = text(&mut cursor)?,
                    _ => cursor.skip_value()?,
                }
            }
            match kind.map(|kind| kind.0) {
                Some(b"text") => {
                    if texts > 0 {
                        sink.push(b"\n");
                    }
                    texts += 1;
                    decode_into(written.unwrap_or_default().0, &mut sink)?;
                }
                Some(b"image" | b"document") => self.media_in_results += 1,
                _ => self.others_in_results += 1,
            }
        }
        Ok((false, sink.beyond))
    }
}

fn keep(out: &mut Vec<u8>, text: Option<RawStr<'_>>) {
    out.clear();
    out.extend_from_slice(text.unwrap_or_default().0);
}

/// A string, or nothing where something else stands.
pub fn text<'a>(cursor: &mut Cursor<'a>) -> Outcome<Option<RawStr<'a>>> {
    if cursor.shape()? == Shape::String {
        return cursor.string().map(Some);
    }
    cursor.skip_value()?;
    Ok(None)
}

/// A boolean; anything else counts as false.
pub fn flag(cursor: &mut Cursor<'_>) -> Outcome<bool> {
    if cursor.shape()? == Shape::Bool {
        return cursor.boolean();
    }
    cursor.skip_value()?;
    Ok(false)
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
