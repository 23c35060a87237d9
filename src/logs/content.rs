//! The `message` of a record, walked once for every reader: its usage, and its content block by block. What of it is kept
//! is the reader's own ([`TakeContent`]).

use crate::base::damage::Reason;
use crate::base::id::Id;
use crate::base::json::{Cursor, JsonKind, RawStr, TextSink, decode_into};
use crate::logs::field::{FieldResult, flag_or, id_of, span, text, text_or};
use crate::logs::trace::Usage;

/// No message has more tokens than this (four billion): a larger number is damage. Sums over all logs of a disk stay exact with
/// it, and rows have room for it in 32 bits.
pub const TOKENS_MAX: u64 = 4_000_000_000;

/// Takes content part by part, before it is known whether the record around it is whole. Of a repeated key the last one
/// stands: whatever begins anew is forgotten first.
pub trait TakeContent<'a> {
    /// Where the text of a result goes.
    type Text: TextSink;

    /// Something is not as it should be. Nobody has to count it.
    fn odd(&mut self, _reason: Reason) {}
    /// Content begins.
    fn begin(&mut self);
    /// All of it is one string.
    fn string(&mut self, _text: RawStr<'a>) {}
    /// The text of a result begins; its block comes when it is over.
    fn begin_result(&mut self);
    /// Where that text goes.
    fn result_text(&mut self) -> &mut Self::Text;
    /// Another text of the same result begins.
    fn next_text(&mut self) {
        self.result_text().push(b"\n");
    }
    fn block(&mut self, block: &BlockFields<'a>);
}

/// For who wants nothing of the content.
pub(super) struct Unread;

impl TextSink for Unread {
    fn push(&mut self, _piece: &[u8]) {}
}

impl<'a> TakeContent<'a> for Unread {
    type Text = Self;

    fn begin(&mut self) {}
    fn begin_result(&mut self) {}
    fn block(&mut self, _block: &BlockFields<'a>) {}

    fn result_text(&mut self) -> &mut Self {
        self
    }
}

/// What a message says besides its blocks.
#[derive(Default, Clone, Copy)]
pub struct MessageFields<'a> {
    pub id: Option<Id>,
    pub model: Option<RawStr<'a>>,
    pub usage: Option<Usage>,
    /// `usage.speed`.
    pub speed: Option<RawStr<'a>>,
    pub effort: Option<RawStr<'a>>,
    pub diagnostics: Option<&'a [u8]>,
    /// Whether there is a `stop_reason`.
    pub finished: bool,
    pub content: Content,
    pub content_json: &'a [u8],
}

/// What the content of a message is.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Nothing, or no content.
    #[default]
    None,
    /// One string.
    Text,
    /// A list without an element.
    Empty,
    /// A list.
    Blocks,
}

/// The fields of a block.
#[derive(Default, Clone, Copy)]
pub struct BlockFields<'a> {
    /// `type`.
    pub kind: Option<RawStr<'a>>,
    pub id: Option<RawStr<'a>>,
    pub name: Option<RawStr<'a>>,
    pub tool_use_id: Option<RawStr<'a>>,
    pub text: Option<RawStr<'a>>,
    pub thinking: Option<RawStr<'a>>,
    pub input: Option<&'a [u8]>,
    /// `is_error`.
    pub failed: bool,
    /// What its `content` is, if it has one; its text went by before.
    pub result: Option<ResultForm>,
}

/// What the content of a result consists of.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResultForm {
    pub is_string: bool,
    pub texts: u32,
    /// Images and documents.
    pub media: u32,
    /// Parts of other types.
    pub others: u32,
}

/// Walks the message at the cursor; none if it is no object. A malformed escape in a result is an error, too.
pub fn read_message<'a, S: TakeContent<'a>>(
    cursor: &mut Cursor<'a>,
    sink: &mut S,
) -> FieldResult<Option<MessageFields<'a>>> {
    sink.begin();
    if cursor.shape()? != JsonKind::Object {
        cursor.skip_value()?;
        return Ok(None);
    }
    let mut message = MessageFields::default();
    let mut first = cursor.enter()?;
    while let Some(key) = cursor.next_key(&mut first)? {
        match key.0 {
            b"id" => message.id = name(cursor, sink)?.map(id_of),
            b"model" => message.model = expected(cursor, sink)?,
            b"stop_reason" => {
                message.finished = cursor.shape()? == JsonKind::String;
                cursor.skip_value()?;
            }
            b"usage" => (message.usage, message.speed) = read_usage(cursor, sink)?,
            b"effort" => message.effort = text(cursor)?,
            b"diagnostics" => message.diagnostics = Some(span(cursor)?),
            b"content" => {
                cursor.skip_space();
                let start = cursor.pos();
                message.content = read_content(cursor, sink)?;
                message.content_json = cursor.since(start);
            }
            _ => cursor.skip_value()?,
        }
    }
    Ok(Some(message))
}

/// A string that is told as mistyped if it is none.
pub(super) fn expected<'a, S: TakeContent<'a>>(
    cursor: &mut Cursor<'a>,
    sink: &mut S,
) -> FieldResult<Option<RawStr<'a>>> {
    text_or(cursor, &mut |reason| sink.odd(reason))
}

/// A string that names something: an empty one names nothing.
pub(super) fn name<'a, S: TakeContent<'a>>(cursor: &mut Cursor<'a>, sink: &mut S) -> FieldResult<Option<RawStr<'a>>> {
    Ok(expected(cursor, sink)?.filter(|name| !name.0.is_empty()))
}

/// Walks the content at the cursor: a text, or blocks.
pub fn read_content<'a, S: TakeContent<'a>>(cursor: &mut Cursor<'a>, sink: &mut S) -> FieldResult<Content> {
    sink.begin();
    let mut first = match cursor.shape()? {
        JsonKind::Array => cursor.enter()?,
        JsonKind::String => {
            sink.string(cursor.string()?);
            return Ok(Content::Text);
        }
        shape => return pass_over(shape, cursor, sink).map(|()| Content::None),
    };
    while cursor.next_element(&mut first)? {
        if cursor.shape()? == JsonKind::Object {
            let block = read_block(cursor, sink)?;
            sink.block(&block);
        } else {
            sink.odd(Reason::MistypedField);
            cursor.skip_value()?;
        }
    }
    Ok(if first { Content::Empty } else { Content::Blocks })
}

fn read_block<'a, S: TakeContent<'a>>(cursor: &mut Cursor<'a>, sink: &mut S) -> FieldResult<BlockFields<'a>> {
    let mut block = BlockFields::default();
    let mut first = cursor.enter()?;
    while let Some(key) = cursor.next_key(&mut first)? {
        match key.0 {
            b"type" => block.kind = expected(cursor, sink)?,
            b"id" => block.id = name(cursor, sink)?,
            b"name" => block.name = expected(cursor, sink)?,
            b"tool_use_id" => block.tool_use_id = name(cursor, sink)?,
            b"text" => block.text = text(cursor)?,
            b"thinking" => block.thinking = text(cursor)?,
            b"is_error" => block.failed = flag_or(cursor, &mut |reason| sink.odd(reason))?,
            b"input" => block.input = Some(span(cursor)?),
            b"content" => block.result = Some(read_result(cursor, sink)?),
            _ => cursor.skip_value()?,
        }
    }
    Ok(block)
}

/// Walks the content of a result: a string, or parts, whose texts are joined by line feeds.
fn read_result<'a, S: TakeContent<'a>>(cursor: &mut Cursor<'a>, sink: &mut S) -> FieldResult<ResultForm> {
    let mut form = ResultForm::default();
    sink.begin_result();
    let mut first = match cursor.shape()? {
        JsonKind::String => {
            cursor.decode_string(sink.result_text())?;
            return Ok(ResultForm { is_string: true, texts: 1, ..form });
        }
        JsonKind::Array => cursor.enter()?,
        shape => return pass_over(shape, cursor, sink).map(|()| form),
    };
    while cursor.next_element(&mut first)? {
        if cursor.shape()? != JsonKind::Object {
            sink.odd(Reason::MistypedField);
            cursor.skip_value()?;
            continue;
        }
        let (mut kind, mut written) = (None, None);
        let mut first = cursor.enter()?;
        while let Some(key) = cursor.next_key(&mut first)? {
            match key.0 {
                b"type" => kind = expected(cursor, sink)?,
                b"text" => written = expected(cursor, sink)?,
                _ => cursor.skip_value()?,
            }
        }
        match kind.map(|kind| kind.0) {
            Some(b"text") => {
                if form.texts > 0 {
                    sink.next_text();
                }
                form.texts += 1;
                decode_into(written.unwrap_or_default().0, sink.result_text())?;
            }
            Some(b"image" | b"document") => form.media += 1,
            _ => form.others += 1,
        }
    }
    Ok(form)
}

/// The `usage` of a message, and its `speed`.
fn read_usage<'a, S: TakeContent<'a>>(
    cursor: &mut Cursor<'a>,
    sink: &mut S,
) -> FieldResult<(Option<Usage>, Option<RawStr<'a>>)> {
    if !is_object(cursor, sink)? {
        return Ok((None, None));
    }
    let (mut usage, mut speed) = (Usage::default(), None);
    let mut first = cursor.enter()?;
    while let Some(key) = cursor.next_key(&mut first)? {
        match key.0 {
            b"input_tokens" => usage.input = read_tokens(cursor, sink)?,
            b"output_tokens" => usage.output = read_tokens(cursor, sink)?,
            b"cache_creation_input_tokens" => usage.cache_creation = read_tokens(cursor, sink)?,
            b"cache_read_input_tokens" => usage.cache_read = read_tokens(cursor, sink)?,
            b"speed" => speed = text(cursor)?,
            b"cache_creation" if is_object(cursor, sink)? => {
                let mut first = cursor.enter()?;
                while let Some(key) = cursor.next_key(&mut first)? {
                    match key.0 {
                        b"ephemeral_5m_input_tokens" => usage.cache_creation_5m = read_tokens(cursor, sink)?,
                        b"ephemeral_1h_input_tokens" => usage.cache_creation_1h = read_tokens(cursor, sink)?,
                        _ => cursor.skip_value()?,
                    }
                }
            }
            b"cache_creation" => {}
            _ => cursor.skip_value()?,
        }
    }
    usage.settle_split();
    Ok((Some(usage), speed))
}

/// Whether an object stands here; anything else is passed over.
fn is_object<'a, S: TakeContent<'a>>(cursor: &mut Cursor<'a>, sink: &mut S) -> FieldResult<bool> {
    match cursor.shape()? {
        JsonKind::Object => Ok(true),
        shape => pass_over(shape, cursor, sink).map(|()| false),
    }
}

/// Passes over a value of another type than it should have: told as mistyped unless it is null.
fn pass_over<'a, S: TakeContent<'a>>(shape: JsonKind, cursor: &mut Cursor<'a>, sink: &mut S) -> FieldResult<()> {
    if shape != JsonKind::Null {
        sink.odd(Reason::MistypedField);
    }
    cursor.skip_value()
}

fn read_tokens<'a, S: TakeContent<'a>>(cursor: &mut Cursor<'a>, sink: &mut S) -> FieldResult<u64> {
    match cursor.shape()? {
        JsonKind::Number => {
            let literal = std::str::from_utf8(cursor.number()?).unwrap_or_default();
            let whole = |number: f64| (0.0..=TOKENS_MAX as f64).contains(&number).then_some(number as u64);
            // Whole numbers are read as they stand; 1e3 and 10.0 are numbers as well.
            let tokens = literal.parse::<u64>().map_or_else(|_| literal.parse().ok(), |whole| Some(whole as f64));
            Ok(tokens.and_then(whole).unwrap_or_else(|| {
                sink.odd(Reason::MistypedField);
                0
            }))
        }
        shape => pass_over(shape, cursor, sink).map(|()| 0),
    }
}

/// Takes blocks with the texts of their results: they are kept until the record is known to be whole.
pub(super) struct TextBlocks<'a> {
    /// Blocks, each with the texts of its result.
    pub blocks: Vec<(BlockFields<'a>, Vec<Vec<u8>>)>,
    /// Those of the result that is read.
    texts: Vec<Vec<u8>>,
    bytes_max: usize,
}

impl TextBlocks<'_> {
    /// None yet; of each text so many bytes are kept.
    pub fn new(bytes_max: usize) -> Self {
        Self { blocks: Vec::new(), texts: Vec::new(), bytes_max }
    }
}

impl TextSink for TextBlocks<'_> {
    fn push(&mut self, piece: &[u8]) {
        if let Some(text) = self.texts.last_mut() {
            let room = self.bytes_max - text.len();
            text.extend_from_slice(&piece[..room.min(piece.len())]);
        }
    }
}

impl<'a> TakeContent<'a> for TextBlocks<'a> {
    type Text = Self;

    fn begin(&mut self) {
        self.blocks.clear();
    }

    fn begin_result(&mut self) {
        self.texts = vec![Vec::new()];
    }

    fn result_text(&mut self) -> &mut Self {
        self
    }

    fn next_text(&mut self) {
        self.texts.push(Vec::new());
    }

    fn block(&mut self, block: &BlockFields<'a>) {
        self.blocks.push((*block, std::mem::take(&mut self.texts)));
    }
}
