//! Inner formats: what a body holds besides its shape, as the fourteen tags of Paper 2.
//!
//! A text body is one unit; of a JSON body every string is one, down to a published depth. Each detector is linear and
//! asks for a little more than the published one where that one was met by ordinary words and numbers.

use memchr::{memchr_iter, memmem};

use crate::base::body_shape::BodyShape;
use crate::base::json::{Cursor, JsonFault, JsonKind};
use crate::base::numbers::spelled;
use crate::facts::shape::{NumberedLines, is_fence, is_table_row, is_table_rule, lines};

/// Deepest value that is looked at; the body itself has depth 0 (published constant).
const DEPTH_MAX: u8 = 5;
/// Elements of an array that are looked at (published constant).
const ELEMENTS_MAX: usize = 100;
/// Values of an object that are looked at (published constant).
const VALUES_MAX: usize = 200;
/// Strings in JSON under this many bytes have no format (published constant).
const STRING_BYTES_MIN: usize = 8;
/// Shortest JSON inside a text that counts (published constant).
const INLINE_JSON_BYTES_MIN: usize = 20;
/// Closing tags for which an opening one is looked for.
const TAGS_TRIED_MAX: usize = 32;

/// One inner format; the order is the published one.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, strum::EnumString, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[repr(u8)]
pub enum InnerFormat {
    /// `http://` or `https://` and a host.
    Url,
    /// A full timestamp, such as `2026-04-24 18:30:00`.
    Log,
    /// A commit or content hash in hex digits.
    Hash,
    /// A hunk header or `diff --git`.
    Diff,
    /// A Markdown heading.
    Md,
    MdTable,
    /// Fenced code with text around it.
    MdWithCode,
    CodeFence,
    /// An element with its opening and its closing tag.
    XmlHtml,
    /// At least three lines `key: value`, and more than 40 % of all lines.
    Yaml,
    /// Frames of a stack.
    StackTrace,
    NumberedList,
    /// A JSON object or array that fills lines of its own.
    InlineJson,
    /// In JSON only: several lines of text that are nothing of the above but may have links and hashes in them.
    Prose,
}

impl InnerFormat {
    /// All of them, in the published order.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The bit that stands for it in a set.
    pub fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// A set of inner formats, one bit each, the first format in the lowest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct InnerFormats(pub u16);

impl InnerFormats {
    /// Adds a format if `present`.
    pub fn set(&mut self, format: InnerFormat, present: bool) {
        self.0 |= u16::from(present) << format as u8;
    }

    /// Whether a format is in the set.
    pub fn contains(self, format: InnerFormat) -> bool {
        self.0 >> format as u8 & 1 == 1
    }

    /// The formats in the published order.
    pub fn iter(self) -> impl Iterator<Item = InnerFormat> {
        InnerFormat::ALL.iter().copied().filter(move |format| self.contains(*format))
    }

    fn without(self, formats: &[InnerFormat]) -> Self {
        Self(formats.iter().fold(self.0, |bits, format| bits & !(1 << *format as u8)))
    }
}

/// The inner formats of a body of a shape that the classifier found.
pub fn find(text: &str, shape: BodyShape) -> InnerFormats {
    use InnerFormat::{CodeFence, MdTable, Prose};
    let said_by_shape: &[InnerFormat] = match shape {
        // A numbered file is a file: what it quotes is not what the response is made of (published rule).
        BodyShape::NumberedList | BodyShape::Empty => return InnerFormats::default(),
        BodyShape::MarkdownTable => &[MdTable, Prose],
        BodyShape::CodeBlock => &[CodeFence, Prose],
        _ => &[Prose],
    };
    if !shape.is_json() {
        return unit(text.as_bytes()).without(said_by_shape);
    }
    let mut found = InnerFormats::default();
    // A body that turns out to be no JSON keeps what was found before it broke off.
    walk(&mut Cursor::new(text.as_bytes()), 0, &mut found).unwrap_or_default();
    found
}

/// Looks at the value at the cursor and at those inside of it; the depth is limited.
fn walk(cursor: &mut Cursor<'_>, depth: u8, found: &mut InnerFormats) -> Result<(), JsonFault> {
    match cursor.shape()? {
        JsonKind::String => {
            let text = cursor.string()?.decode().unwrap_or_default();
            if text.len() >= STRING_BYTES_MIN {
                found.0 |= unit(&text).0;
            }
        }
        shape @ (JsonKind::Object | JsonKind::Array) if depth < DEPTH_MAX => {
            let is_object = shape == JsonKind::Object;
            let mut left = if is_object { VALUES_MAX } else { ELEMENTS_MAX };
            let mut first = cursor.enter()?;
            while if is_object { cursor.next_key(&mut first)?.is_some() } else { cursor.next_element(&mut first)? } {
                if left == 0 {
                    cursor.skip_value()?;
                } else {
                    left -= 1;
                    walk(cursor, depth + 1, found)?;
                }
            }
        }
        _ => cursor.skip_value()?,
    }
    Ok(())
}

/// The formats of one text.
fn unit(text: &[u8]) -> InnerFormats {
    let mut found = InnerFormats::default();
    at_colons(text, &mut found);
    by_lines(text, &mut found);
    found.set(InnerFormat::Hash, has_hash(text));
    found.set(InnerFormat::XmlHtml, has_element(text));
    let python = memmem::find(text, b"Traceback (most recent call last):").is_some();
    found.set(InnerFormat::StackTrace, python);
    // A text of several lines is prose unless it is something of which more is known.
    let blocks = found.without(&[InnerFormat::Url, InnerFormat::Hash, InnerFormat::Prose]);
    if blocks != InnerFormats::default() {
        found = found.without(&[InnerFormat::Prose]);
    }
    found
}

/// What has a colon in the middle: links and times.
fn at_colons(text: &[u8], found: &mut InnerFormats) {
    let (mut url, mut log) = (false, false);
    for colon in memchr_iter(b':', text) {
        url = url || is_url_at(text, colon);
        log = log || is_timestamp_at(text, colon);
        if url && log {
            break;
        }
    }
    found.set(InnerFormat::Url, url);
    found.set(InnerFormat::Log, log);
}

/// Whether the colon belongs to a link.
fn is_url_at(text: &[u8], colon: usize) -> bool {
    let (scheme, rest) = text.split_at(colon);
    let host = rest.strip_prefix(b"://").and_then(<[u8]>::first);
    host.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'[' | b'$' | b'{' | b'<' | 0x80..))
        && (scheme.ends_with(b"http") || scheme.ends_with(b"https"))
}

/// Whether the colon is the first one of a timestamp `YYYY-MM-DD HH:MM:SS` (also with `T` between, or slashes).
fn is_timestamp_at(text: &[u8], colon: usize) -> bool {
    let Some(start) = colon.checked_sub(13) else { return false };
    let Some(stamp) = text.get(start..start + 19) else { return false };
    let within = |from: usize, to: usize, low, high| {
        spelled(&stamp[from..to]).is_some_and(|number| (low..=high).contains(&number))
    };
    stamp[16] == b':'
        && matches!(stamp[10], b' ' | b'T')
        && matches!((stamp[4], stamp[7]), (b'-', b'-') | (b'/', b'/'))
        && within(11, 13, 0, 23)
        && within(14, 16, 0, 59)
        && within(17, 19, 0, 60)
        && within(8, 10, 1, 31)
        && within(5, 7, 1, 12)
        && within(0, 4, 1970, 2099)
        && !text[..start].last().is_some_and(u8::is_ascii_digit)
}

/// Whether some token of the text [is a hash](is_hash).
fn has_hash(text: &[u8]) -> bool {
    let mut done = 0;
    text.chunks(RUN_BYTES_MIN).enumerate().any(|(index, chunk)| {
        let middle = index * RUN_BYTES_MIN + RUN_BYTES_MIN / 2;
        if !half_is_hex(chunk) || middle < done {
            return false;
        }
        let is_hex = |byte: &&u8| byte.is_ascii_hexdigit();
        let start = middle - text[done..middle].iter().rev().take_while(is_hex).count();
        done = middle + text[middle..].iter().take_while(is_hex).count();
        is_hash(text, start, done)
    })
}

/// Shortest run of hex digits that can be a hash.
const RUN_BYTES_MIN: usize = 7;

/// Whether the first or the last four bytes of a chunk are hex digits. A run that is as long as a chunk covers the
/// middle of one, and three bytes on one side of it. Without branches, as most chunks of any text are near misses.
fn half_is_hex(chunk: &[u8]) -> bool {
    const HEX: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < table.len() {
            table[byte] = (byte as u8).is_ascii_hexdigit();
            byte += 1;
        }
        table
    };
    let hex = |place: usize| chunk.get(place).is_some_and(|byte| HEX[usize::from(*byte)]);
    hex(3) & ((hex(0) & hex(1) & hex(2)) | (hex(4) & hex(5) & hex(6)))
}

/// Whether a maximal run of hex digits is a hash: a word of its own, of a length that hashes have (7 to 12 for an
/// abbreviated one, 32, 40, 56, 64, 96 or 128), in one case, with digits and letters, and not a number with an exponent
/// or a unit, a colour or an offset.
fn is_hash(text: &[u8], start: usize, end: usize) -> bool {
    let run = &text[start..end];
    let length_fits = matches!(run.len(), 7..=12 | 32 | 40 | 56 | 64 | 96 | 128);
    length_fits && is_word(text, start, end) && looks_random(run)
}

/// Whether nothing joins a run to what stands around it. A hyphen does: in UUIDs, slugs and names of files.
fn is_word(text: &[u8], start: usize, end: usize) -> bool {
    let joins = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | 0x80..);
    let before = text[..start].last();
    !before.is_some_and(|byte| joins(byte) || *byte == b'#') && !text.get(end).is_some_and(joins)
}

fn looks_random(run: &[u8]) -> bool {
    let lower = run.iter().filter(|byte| byte.is_ascii_lowercase()).count();
    let upper = run.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    let letters = lower + upper;
    let one_case = lower == 0 || upper == 0;
    let number = letters == 1 && (run.contains(&b'e') || run.contains(&b'E') || !run[run.len() - 1].is_ascii_digit());
    one_case && letters > 0 && letters < run.len() && !number && !run.starts_with(b"0000")
}

/// Whether some element has an opening and a closing tag.
fn has_element(text: &[u8]) -> bool {
    memmem::find_iter(text, b"</").take(TAGS_TRIED_MAX).any(|close| {
        let name = &text[close + 2..];
        let length =
            name.iter().take(64).take_while(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte)).count();
        let is_tag = name.first().is_some_and(u8::is_ascii_alphabetic) && name.get(length) == Some(&b'>');
        is_tag && opens(&text[..close], &name[..length])
    })
}

/// Whether the nearest tag that begins with `name` is an opening one of that name.
fn opens(before: &[u8], name: &[u8]) -> bool {
    let tag = [b"<", name].concat();
    let next = memmem::rfind(before, &tag).and_then(|open| before.get(open + tag.len()));
    matches!(next, Some(b'>' | b' ' | b'\t' | b'\r' | b'\n'))
}

/// What lines tell by their beginnings.
#[derive(Default)]
struct Lines<'a> {
    text: &'a [u8],
    /// The line before, trimmed.
    previous: &'a [u8],
    filled: usize,
    indented: usize,
    keys: usize,
    /// The key of the last line that had one.
    last_key: &'a [u8],
    fences: usize,
    /// Lines outside of fences.
    unfenced: usize,
    heading: bool,
    table: bool,
    diff: bool,
    frames: bool,
    json: bool,
    numbers: NumberedLines,
    /// Bytes that failed attempts to read JSON may still cost.
    json_budget: usize,
}

fn by_lines(text: &[u8], found: &mut InnerFormats) {
    let mut seen = Lines { text, json_budget: text.len(), ..Lines::default() };
    let mut start = 0;
    for line in lines(text) {
        seen.add(line, start);
        start += line.len() + 1;
    }
    seen.report(found);
}

impl<'a> Lines<'a> {
    /// Takes the line that begins at `start`.
    fn add(&mut self, whole: &'a [u8], start: usize) {
        let line = whole.trim_ascii_start();
        let indent = whole.len() - line.len();
        let line = line.trim_ascii_end();
        let before = std::mem::replace(&mut self.previous, line);
        self.numbers.add(&whole[indent..]);
        let Some(byte) = line.first() else {
            self.heading = self.heading || before.starts_with(b"# ");
            return;
        };
        self.filled += 1;
        self.indented += usize::from(whole.starts_with(b"  ") || whole.starts_with(b"\t"));
        if is_fence(line) {
            self.fences += 1;
        } else {
            self.unfenced += usize::from(self.fences.is_multiple_of(2));
        }
        match byte {
            b'|' => self.table = self.table || (is_table_rule(line) && is_table_row(before)),
            b'{' | b'[' => self.json = self.json || self.json_starts_at(start + indent),
            b'#' => self.heading = self.heading || is_heading(line, indent),
            b'@' => self.diff = self.diff || is_hunk_header(line),
            b'-' | b'_' | b'A'..=b'Z' | b'a'..=b'z' => self.add_words(line, indent),
            _ => {}
        }
    }

    /// Takes a trimmed line that begins with a word or a bullet.
    fn add_words(&mut self, line: &'a [u8], indent: usize) {
        if let Some(key) = key_of(line) {
            // A mapping says everything once; a program says `hint:` before every line.
            self.keys += usize::from(key != self.last_key || line[0] == b'-');
            self.last_key = key;
        }
        self.diff = self.diff || line.starts_with(b"diff --git ");
        self.frames = self.frames
            || (indent > 0 && is_frame(line))
            || line == b"stack backtrace:"
            || (line.starts_with(b"goroutine ") && line.ends_with(b"]:"));
    }

    /// Whether JSON starts there and nothing stands behind it on its last line. Failed attempts together read no more
    /// than the text has.
    fn json_starts_at(&mut self, start: usize) -> bool {
        if self.json_budget == 0 {
            return false;
        }
        let mut cursor = Cursor::at(self.text, start);
        let outcome = cursor.skip_value();
        let length = cursor.pos() - start;
        let spent = if outcome == Err(JsonFault::Torn) { self.text.len() } else { length + 1 };
        self.json_budget = self.json_budget.saturating_sub(spent);
        let rest_of_line = lines(cursor.rest()).next().unwrap_or_default();
        outcome.is_ok() && length >= INLINE_JSON_BYTES_MIN && rest_of_line.trim_ascii().is_empty()
    }

    fn report(&self, found: &mut InnerFormats) {
        let fenced = self.fences >= 2;
        found.set(InnerFormat::Diff, self.diff);
        found.set(InnerFormat::Md, self.heading);
        found.set(InnerFormat::MdTable, self.table);
        found.set(InnerFormat::MdWithCode, fenced && self.unfenced > 0);
        found.set(InnerFormat::CodeFence, fenced);
        found.set(InnerFormat::Yaml, self.keys >= 3 && self.keys * 5 > self.filled * 2);
        found.set(InnerFormat::StackTrace, self.frames);
        found.set(InnerFormat::NumberedList, self.numbers.are_a_list());
        found.set(InnerFormat::InlineJson, self.json);
        // Mostly indented lines are code.
        found.set(InnerFormat::Prose, self.filled >= 2 && self.indented * 2 <= self.filled);
    }
}

/// `## Heading`. One of the first level looks like a comment: it counts if a blank line follows.
fn is_heading(line: &[u8], indent: usize) -> bool {
    let level = line.iter().take_while(|byte| **byte == b'#').count();
    (2..=6).contains(&level) && line.get(level) == Some(&b' ') && indent <= 3
}

/// `@@ -1,3 +1,3 @@`, and those of merges with more signs.
fn is_hunk_header(line: &[u8]) -> bool {
    let signs = line.iter().take_while(|byte| **byte == b'@').count();
    let old = line[signs..].strip_prefix(b" -").and_then(<[u8]>::first);
    signs >= 2 && old.is_some_and(u8::is_ascii_digit) && memmem::find(&line[signs..], b" @@").is_some()
}

/// `at name (file:1:2)`.
fn is_frame(line: &[u8]) -> bool {
    line.strip_prefix(b"at ").is_some_and(|place| {
        place.contains(&b'(') || place.windows(2).any(|pair| pair[0] == b':' && pair[1].is_ascii_digit())
    })
}

/// The key of `key: value` or `key:`, also behind a hyphen; none in a statement of some programming language.
fn key_of(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_prefix(b"- ").unwrap_or(line);
    let length = line.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte)).count();
    let (key, rest) = line.split_at(length);
    let is_name = key.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    let ends_statement = matches!(line.last(), Some(b',' | b';' | b'{' | b'('));
    (is_name && (rest.starts_with(b": ") || rest == b":") && !ends_statement).then_some(key)
}
