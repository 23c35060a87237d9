//! A cursor over JSON bytes that descends where the caller wants it to and skips the rest in one pass, which checks the
//! structure (so a torn or glued record is noticed where it happens) but not the escapes of strings that nobody reads. Nesting
//! is followed with a bit stack, so no input can overflow the call stack.

use std::borrow::Cow;

use memchr::memchr;

use crate::base::block::{BLOCK_BYTES, MASK_BYTES, masks, within};

/// Deepest nesting that is followed.
pub const DEPTH_MAX: usize = 1024;

/// Up to here the end of a string is looked for block by block: most strings are short, and starting a search takes longer.
const NEAR_BLOCKS: usize = 4;

/// So many digits fit into 64 bits, whichever they are.
const DIGITS_MAX: usize = 18;

/// What ends a run of plain text: a quote or a backslash.
const ENDS: [(u8, u8); 2] = [(b'"', b'"'), (b'\\', b'\\')];

/// Why a value could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonFault {
    /// The bytes end inside the value.
    Torn,
    /// These bytes are not JSON.
    Syntax,
    /// Nested deeper than [`DEPTH_MAX`].
    TooDeep,
}

type JsonResult<T> = Result<T, JsonFault>;

/// What kind of value stands at the cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonKind {
    Object,
    Array,
    String,
    /// `true` or `false`
    Bool,
    Null,
    Number,
}

/// The bytes between the quotes of a string, escapes not yet resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RawStr<'a>(pub &'a [u8]);

impl<'a> RawStr<'a> {
    /// The text as it stands, if nothing in it is escaped.
    pub fn plain(self) -> Option<&'a [u8]> {
        memchr(b'\\', self.0).is_none().then_some(self.0)
    }

    /// The first bytes of the text with escapes resolved: so many at least, if it has them, and none behind a malformed escape.
    pub fn head(self, bytes: usize) -> Vec<u8> {
        let mut out = Vec::new();
        // An escape that is cut in two ends the head: what stands before it is enough.
        _ = decode_into(&self.0[..self.0.len().min(bytes * ESCAPE_BYTES_MAX)], &mut out);
        out
    }

    /// The text with escapes resolved. `None` if an escape is malformed.
    pub fn decode(self) -> Option<Cow<'a, [u8]>> {
        if let Some(plain) = self.plain() {
            return Some(Cow::Borrowed(plain));
        }
        // No escape stands for more bytes than it has.
        let mut out = Vec::with_capacity(self.0.len());
        decode_into(self.0, &mut out).ok()?;
        Some(Cow::Owned(out))
    }

    /// The same as UTF-8; half UTF-16 pairs are replaced.
    pub fn text(self) -> Option<Cow<'a, str>> {
        Some(match self.decode()? {
            Cow::Borrowed(plain) => String::from_utf8_lossy(plain),
            Cow::Owned(decoded) => Cow::Owned(String::from_utf8_lossy(&decoded).into_owned()),
        })
    }
}

/// Bytes of the longest escape: a pair of UTF-16 units.
const ESCAPE_BYTES_MAX: usize = 12;

/// Receives a decoded string piece by piece.
pub trait TextSink {
    /// More text, in UTF-8; a piece may end within a character. Half a UTF-16 pair is a piece of its own, in its three-byte
    /// form (WTF-8).
    fn push(&mut self, piece: &[u8]);
    /// Half a UTF-16 pair was seen (and pushed).
    fn lone_surrogate(&mut self) {}
}

impl TextSink for Vec<u8> {
    fn push(&mut self, piece: &[u8]) {
        self.extend_from_slice(piece);
    }
}

/// A position in one line of JSON.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pos: 0 }
    }

    /// A cursor at `pos`.
    pub fn at(bytes: &'a [u8], pos: usize) -> Self {
        Self { bytes, pos }
    }

    /// Where the cursor stands.
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// The bytes that are still ahead.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.pos..]
    }

    /// The bytes from `start` to here.
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.pos]
    }

    /// Passes over everything that is left.
    pub fn jump_to_end(&mut self) {
        self.pos = self.bytes.len();
    }

    /// Moves past white space.
    pub fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.pos) {
            self.pos += 1;
        }
    }

    /// True when only white space is left.
    pub fn at_end(&mut self) -> bool {
        self.skip_space();
        self.pos >= self.bytes.len()
    }

    fn peek(&self) -> JsonResult<u8> {
        self.bytes.get(self.pos).copied().ok_or(JsonFault::Torn)
    }

    fn expect(&mut self, byte: u8) -> JsonResult<()> {
        if self.peek()? != byte {
            return Err(JsonFault::Syntax);
        }
        self.pos += 1;
        Ok(())
    }

    /// What stands here (white space skipped).
    pub fn shape(&mut self) -> JsonResult<JsonKind> {
        self.skip_space();
        Ok(match self.peek()? {
            b'{' => JsonKind::Object,
            b'[' => JsonKind::Array,
            b'"' => JsonKind::String,
            b't' | b'f' => JsonKind::Bool,
            b'n' => JsonKind::Null,
            b'-' | b'0'..=b'9' => JsonKind::Number,
            _ => return Err(JsonFault::Syntax),
        })
    }

    /// Steps into an object or array whose opening bracket stands here. The answer is true: `first`, which steps from one
    /// member to the next take.
    pub fn enter(&mut self) -> JsonResult<bool> {
        self.skip_space();
        if !matches!(self.peek()?, b'{' | b'[') {
            return Err(JsonFault::Syntax);
        }
        self.pos += 1;
        Ok(true)
    }

    /// The next key of the object that was entered, with the cursor before its value; `None` at the closing brace.
    /// `first` is what [`Cursor::enter`] gave, and kept by the caller.
    pub fn next_key(&mut self, first: &mut bool) -> JsonResult<Option<RawStr<'a>>> {
        self.skip_space();
        if self.peek()? == b'}' {
            self.pos += 1;
            return Ok(None);
        }
        if !std::mem::take(first) {
            self.expect(b',')?;
            self.skip_space();
        }
        let key = self.string()?;
        self.skip_space();
        self.expect(b':')?;
        Ok(Some(key))
    }

    /// Steps over the next key if it is this one, spelled without blanks and escapes; writers keep to one order, so it
    /// pays to ask. Else the cursor stays where it is.
    // Where the name is known to the compiler, it is compared in a few steps.
    #[inline(always)]
    pub fn take_key(&mut self, first: &mut bool, name: &[u8]) -> bool {
        let rest = self.rest();
        let key = if *first { Some(rest) } else { rest.strip_prefix(b",") };
        let behind = key.and_then(|key| key.strip_prefix(b"\"")?.strip_prefix(name)?.strip_prefix(b"\":"));
        if let Some(behind) = behind {
            self.pos = self.bytes.len() - behind.len();
            *first = false;
        }
        behind.is_some()
    }

    /// Moves to the next element of the array that was entered; false at the closing bracket.
    pub fn next_element(&mut self, first: &mut bool) -> JsonResult<bool> {
        self.skip_space();
        if self.peek()? == b']' {
            self.pos += 1;
            return Ok(false);
        }
        if !std::mem::take(first) {
            self.expect(b',')?;
        }
        Ok(true)
    }

    /// The string that stands here.
    // Where it is called, what it returns need not go through memory.
    #[inline]
    pub fn string(&mut self) -> JsonResult<RawStr<'a>> {
        self.skip_space();
        self.expect(b'"')?;
        let start = self.pos;
        self.finish_string()?;
        Ok(RawStr(&self.bytes[start..self.pos - 1]))
    }

    /// Moves behind the closing quote of a string whose opening quote was passed.
    fn finish_string(&mut self) -> JsonResult<()> {
        let mut from = self.pos;
        if let Some(near) = near_end(self.rest()) {
            from += near;
            if self.bytes[from] == b'"' {
                self.pos = from + 1;
                return Ok(());
            }
        }
        // Whether an odd number of backslashes ends the bytes before.
        let mut is_escape_open = false;
        while from < self.bytes.len() {
            let [mut quotes, slashes] = masks(&self.bytes[from..], [[(b'"', b'"')], [(b'\\', b'\\')]]);
            let is_open = |run: u32, bytes: u32| (run % 2 == 1) != (run == bytes && is_escape_open);
            while quotes != 0 {
                let at = quotes.trailing_zeros();
                // An odd number of backslashes before it makes the quote part of the text.
                let run = (slashes << 1 << (63 - at)).leading_ones();
                if !is_open(run, at) {
                    self.pos = from + at as usize + 1;
                    return Ok(());
                }
                quotes &= quotes - 1;
            }
            is_escape_open = is_open(slashes.leading_ones(), MASK_BYTES as u32);
            from += MASK_BYTES;
        }
        Err(JsonFault::Torn)
    }

    /// Reads the string that stands here into `sink`, in one pass.
    pub fn decode_string(&mut self, sink: &mut impl TextSink) -> JsonResult<()> {
        self.skip_space();
        self.expect(b'"')?;
        self.pos += Decoder::new(sink).decode(&self.bytes[self.pos..], true)?;
        Ok(())
    }

    /// `true` or `false`.
    pub fn boolean(&mut self) -> JsonResult<bool> {
        self.skip_space();
        if self.peek()? == b't' { self.literal(b"true").map(|()| true) } else { self.literal(b"false").map(|()| false) }
    }

    fn literal(&mut self, word: &[u8]) -> JsonResult<()> {
        let rest = self.rest();
        if rest.starts_with(word) {
            self.pos += word.len();
            Ok(())
        } else if word.starts_with(rest) {
            Err(JsonFault::Torn)
        } else {
            Err(JsonFault::Syntax)
        }
    }

    /// The literal text of the number that stands here.
    pub fn number(&mut self) -> JsonResult<&'a [u8]> {
        self.skip_space();
        let start = self.pos;
        self.skip_byte(b"-");
        let whole = self.pos;
        self.digits()?;
        if self.pos > whole + 1 && self.bytes[whole] == b'0' {
            return Err(JsonFault::Syntax);
        }
        if self.skip_byte(b".") {
            self.digits()?;
        }
        if self.skip_byte(b"eE") {
            self.skip_byte(b"+-");
            self.digits()?;
        }
        Ok(self.since(start))
    }

    /// The number that stands here if it is spelled as nearly all are: digits alone, as many as cannot overflow. Else the
    /// cursor stays where it is.
    #[inline]
    pub fn plain_number(&mut self) -> Option<i64> {
        let (mut number, mut digits) = (0, 0);
        while let Some(digit @ b'0'..=b'9') = self.bytes.get(self.pos + digits) {
            if digits == DIGITS_MAX {
                return None;
            }
            number = number * 10 + i64::from(digit - b'0');
            digits += 1;
        }
        let is_longer = matches!(self.bytes.get(self.pos + digits), Some(b'.' | b'e' | b'E'));
        if digits == 0 || is_longer || digits > 1 && self.bytes[self.pos] == b'0' {
            return None;
        }
        self.pos += digits;
        Some(number)
    }

    fn skip_byte(&mut self, wanted: &[u8]) -> bool {
        let found = self.bytes.get(self.pos).is_some_and(|byte| wanted.contains(byte));
        self.pos += usize::from(found);
        found
    }

    fn digits(&mut self) -> JsonResult<()> {
        let rest = self.rest();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.pos += count;
        match (count, rest.len()) {
            (0, 0) => Err(JsonFault::Torn),
            (0, _) => Err(JsonFault::Syntax),
            _ => Ok(()),
        }
    }

    fn skip_scalar(&mut self) -> JsonResult<()> {
        match self.peek()? {
            b'"' => {
                self.pos += 1;
                self.finish_string()
            }
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.number().map(drop),
        }
    }

    /// Moves behind the value that stands here, whatever it is.
    pub fn skip_value(&mut self) -> JsonResult<()> {
        self.skip_space();
        let mut open = Nesting::default();
        loop {
            // One value starts here.
            match self.peek()? {
                bracket @ (b'{' | b'[') => {
                    self.pos += 1;
                    open.push(bracket == b'{')?;
                    self.skip_space();
                    if self.peek()? == closing(bracket) {
                        self.pos += 1;
                        open.pop();
                    } else {
                        if bracket == b'{' {
                            self.skip_key()?;
                        }
                        continue;
                    }
                }
                _ => self.skip_scalar()?,
            }
            // One value ended here: close brackets until another value must follow.
            loop {
                let Some(in_object) = open.top() else { return Ok(()) };
                self.skip_space();
                match (self.peek()?, in_object) {
                    (b',', _) => {
                        self.pos += 1;
                        self.skip_space();
                        if in_object {
                            self.skip_key()?;
                        }
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        self.pos += 1;
                        open.pop();
                    }
                    _ => return Err(JsonFault::Syntax),
                }
            }
        }
    }

    fn skip_key(&mut self) -> JsonResult<()> {
        self.expect(b'"')?;
        self.finish_string()?;
        self.skip_space();
        self.expect(b':')?;
        self.skip_space();
        Ok(())
    }
}

/// The first quote or backslash of a text, if it stands within [`NEAR_BLOCKS`] whole blocks.
// Called for every string: a call takes as long as the look (a third more time over all).
#[inline(always)]
fn near_end(text: &[u8]) -> Option<usize> {
    let (blocks, _) = text.as_chunks();
    blocks.iter().take(NEAR_BLOCKS).enumerate().find_map(|(place, block)| {
        let ends = within(block, ENDS);
        (ends != 0).then(|| BLOCK_BYTES * place + ends.trailing_zeros() as usize)
    })
}

fn closing(bracket: u8) -> u8 {
    if bracket == b'{' { b'}' } else { b']' }
}

/// One bit per open bracket: set for an object.
#[derive(Default)]
struct Nesting {
    bits: [u64; DEPTH_MAX / 64],
    depth: usize,
}

impl Nesting {
    fn push(&mut self, object: bool) -> JsonResult<()> {
        let word = self.bits.get_mut(self.depth / 64).ok_or(JsonFault::TooDeep)?;
        let mask = 1 << (self.depth % 64);
        if object {
            *word |= mask;
        } else {
            *word &= !mask;
        }
        self.depth += 1;
        Ok(())
    }

    fn pop(&mut self) {
        self.depth -= 1;
    }

    fn top(&self) -> Option<bool> {
        let last = self.depth.checked_sub(1)?;
        Some(self.bits[last / 64] >> (last % 64) & 1 == 1)
    }
}

/// Decodes a whole raw string (without its quotes).
pub fn decode_into(raw: &[u8], sink: &mut impl TextSink) -> JsonResult<()> {
    Decoder::new(sink).decode(raw, false).map(drop)
}

/// Decoded bytes that are handed on together: a call for every line of a text takes longer than the line.
const HELD_BYTES: usize = 1024;

/// What an escape of two bytes stands for, by its second one; 0 for none.
const ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    let pairs = [
        (b'n', b'\n'),
        (b't', b'\t'),
        (b'"', b'"'),
        (b'\\', b'\\'),
        (b'/', b'/'),
        (b'r', b'\r'),
        (b'b', b'\x08'),
        (b'f', b'\x0c'),
    ];
    let mut place = 0;
    while place < pairs.len() {
        escapes[pairs[place].0 as usize] = pairs[place].1;
        place += 1;
    }
    escapes
};

/// Decodes into a buffer of its own, which goes to the sink whenever it is full.
struct Decoder<'s, S> {
    held: [u8; HELD_BYTES],
    length: usize,
    sink: &'s mut S,
}

impl<'s, S: TextSink> Decoder<'s, S> {
    fn new(sink: &'s mut S) -> Self {
        Self { held: [0; HELD_BYTES], length: 0, sink }
    }

    /// Decodes up to the end, or up to the closing quote; returns how many bytes that took, the quote included. What stands
    /// before a malformed escape is handed on.
    fn decode(mut self, bytes: &[u8], is_quoted: bool) -> JsonResult<usize> {
        let used = self.run(bytes, is_quoted);
        self.hand_on();
        used
    }

    fn run(&mut self, bytes: &[u8], is_quoted: bool) -> JsonResult<usize> {
        let mut pos = 0;
        loop {
            pos += self.plain(&bytes[pos..]);
            match bytes.get(pos) {
                None if is_quoted => return Err(JsonFault::Torn),
                None => return Ok(pos),
                Some(b'"') if is_quoted => return Ok(pos + 1),
                Some(b'\\') => pos += self.escape(&bytes[pos..])?,
                Some(&byte) => {
                    self.byte(byte);
                    pos += 1;
                }
            }
        }
    }

    /// Takes what stands before the first quote or backslash; returns its length.
    fn plain(&mut self, bytes: &[u8]) -> usize {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        for (number, block) in blocks.iter().enumerate() {
            if self.length + BLOCK_BYTES > HELD_BYTES {
                self.hand_on();
            }
            // All of it is copied; what does not count is written over.
            self.held[self.length..self.length + BLOCK_BYTES].copy_from_slice(block);
            let ends = within(block, ENDS);
            if ends != 0 {
                let length = ends.trailing_zeros() as usize;
                self.length += length;
                return BLOCK_BYTES * number + length;
            }
            self.length += BLOCK_BYTES;
        }
        let length = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\')).count();
        rest[..length].iter().for_each(|byte| self.byte(*byte));
        BLOCK_BYTES * blocks.len() + length
    }

    /// Decodes one escape (two, for a UTF-16 pair) at the start of `bytes`; returns its length.
    fn escape(&mut self, bytes: &[u8]) -> JsonResult<usize> {
        match *bytes.get(1).ok_or(JsonFault::Torn)? {
            b'u' => self.unicode(bytes),
            byte => match ESCAPES[usize::from(byte)] {
                0 => Err(JsonFault::Syntax),
                plain => {
                    self.byte(plain);
                    Ok(2)
                }
            },
        }
    }

    fn unicode(&mut self, bytes: &[u8]) -> JsonResult<usize> {
        let (code, length) = code_point(bytes)?;
        if let Some(character) = char::from_u32(code) {
            character.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| self.byte(byte));
        } else {
            self.hand_on();
            self.sink.lone_surrogate();
            let last = |shift: u32| 0x80 | (code >> shift & 0x3F) as u8;
            self.sink.push(&[0xE0 | (code >> 12) as u8, last(6), last(0)]);
        }
        Ok(length)
    }

    fn byte(&mut self, byte: u8) {
        if self.length == HELD_BYTES {
            self.hand_on();
        }
        self.held[self.length] = byte;
        self.length += 1;
    }

    fn hand_on(&mut self) {
        if self.length > 0 {
            self.sink.push(&self.held[..self.length]);
            self.length = 0;
        }
    }
}

/// The code point of a `\u` escape, or of two that are a pair, and how many bytes it stands in; half a pair is no character.
fn code_point(bytes: &[u8]) -> JsonResult<(u32, usize)> {
    let unit = hex_unit(bytes.get(2..).unwrap_or_default())?;
    let next = bytes.get(6..).unwrap_or_default();
    if (0xD800..0xDC00).contains(&unit) && next.starts_with(b"\\u") {
        let low = hex_unit(&next[2..])?;
        if (0xDC00..0xE000).contains(&low) {
            return Ok((0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00), 12));
        }
    }
    Ok((unit, 6))
}

fn hex_unit(bytes: &[u8]) -> JsonResult<u32> {
    let digits = bytes.get(..4).ok_or(JsonFault::Torn)?;
    digits.iter().try_fold(0, |value, &digit| {
        let nibble = char::from(digit).to_digit(16).ok_or(JsonFault::Syntax)?;
        Ok(value << 4 | nibble)
    })
}
