//! What the model takes up from its context: lines that an edit replaces, identifiers, and where they stood before.
//!
//! Only hashes of lines and identifiers are kept, and only while the file is read, in bounded memory: what nobody spoke of for
//! long is forgotten. Thinking is passed over: it is not in every log, and it leaves the context by itself.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::base::block::line_ends;
use crate::base::id::IdMap;
use crate::base::json::{Cursor, RawStr};
use crate::logs::body::code_points;
use crate::logs::timeline::identifiers::identifiers;
use crate::logs::timeline::requests::{NONE, Occurrence, ReferenceKind};
use crate::logs::timeline::rows::ReferenceRow;
use crate::logs::timeline::rules::{ReferenceRules, TimelineRules, is_one_of};

/// A block whose text is looked at.
#[derive(Clone, Copy)]
pub struct TextSpot {
    /// Its number in the file.
    pub block: u32,
    /// Index of its chain: what stands in one context does not stand in another.
    pub chain: u32,
    /// Number of the message that it is a part of, or [`NONE`] for what the model did not write.
    pub message: u32,
}

impl TextSpot {
    /// The hash of a text in its chain.
    pub fn hash(self, text: &[u8]) -> u64 {
        xxh3_64_with_seed(text, u64::from(self.chain))
    }
}

/// Follows one file from its start.
pub struct References<'r> {
    rules: &'r TimelineRules,
    lines: Occurrences,
    identifiers: Occurrences,
    /// By block: the message that it is a part of, or [`NONE`].
    messages: Vec<u32>,
    pub found: Vec<ReferenceRow>,
    /// Where it stood.
    pub sources: Vec<Occurrence>,
}

/// Tells how many code points stand before a byte; asked in rising order.
struct Ruler<'t> {
    text: &'t [u8],
    is_ascii: bool,
    byte: usize,
    chars: u32,
    /// Where everything ends, in a text whose parts are never taken one by one.
    fixed: Option<u32>,
}

impl<'t> Ruler<'t> {
    fn new(text: &'t [u8], fixed: Option<u32>) -> Self {
        Self { text, is_ascii: text.is_ascii(), byte: 0, chars: 0, fixed }
    }

    fn chars_before(&mut self, byte: usize) -> u32 {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        if self.is_ascii {
            return byte as u32;
        }
        if byte < self.byte {
            return self.chars;
        }
        self.chars += code_points(&self.text[self.byte..byte]) as u32;
        self.byte = byte;
        self.chars
    }
}

impl<'r> References<'r> {
    /// Nothing yet.
    pub fn new(rules: &'r TimelineRules) -> Self {
        let ReferenceRules { lines_max, identifiers_max, .. } = rules.references;
        Self {
            rules,
            lines: Occurrences::new(lines_max),
            identifiers: Occurrences::new(identifiers_max),
            messages: Vec::new(),
            found: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// Lines and identifiers whose places were forgotten.
    pub fn forgotten(&self) -> u64 {
        self.lines.forgotten + self.identifiers.forgotten
    }

    /// A block whose text is not looked at.
    pub fn pass(&mut self, spot: TextSpot) {
        self.messages.resize(spot.block as usize + 1, NONE);
        self.messages[spot.block as usize] = spot.message;
    }

    /// Takes the text of a block.
    pub fn text(&mut self, spot: TextSpot, text: &[u8]) {
        self.pass(spot);
        self.take_text(spot, text, None);
    }

    /// Takes the input of a call, as compact JSON.
    pub fn call(&mut self, spot: TextSpot, tool: &str, input: &[u8]) {
        self.pass(spot);
        let rules = &self.rules.references;
        let (edits, names_file) =
            (is_one_of(tool.as_bytes(), &rules.edit_tools), is_one_of(tool.as_bytes(), &rules.file_tools));
        let mut ruler = Ruler::new(input, None);
        let mut key: &[u8] = b"";
        let mut at = 0;
        while let Some((string, end)) = next_string(input, at) {
            at = end;
            if input.get(end) == Some(&b':') {
                key = string.0;
                continue;
            }
            let decoded = string.decode().unwrap_or(Cow::Borrowed(string.0));
            let end_chars = ruler.chars_before(end);
            if edits && is_one_of(key, &rules.edit_keys) {
                self.edit(spot, &decoded);
            }
            if names_file && is_one_of(key, &rules.file_keys) {
                self.identifier(spot, ReferenceKind::ReadPath, &decoded, end_chars);
            }
            self.take_text(spot, &decoded, Some(end_chars));
        }
    }

    fn take_text(&mut self, spot: TextSpot, text: &[u8], fixed: Option<u32>) {
        let rules = self.rules;
        let mut ruler = Ruler::new(text, fixed);
        identifiers(text, &rules.identifiers, |kind, name, end| {
            let end = ruler.chars_before(end);
            self.identifier(spot, kind, name, end);
        });
        let mut ruler = Ruler::new(text, fixed);
        let mut start = 0;
        for end in line_ends(text) {
            self.line(spot, &text[start..end], start, &mut ruler);
            start = end + 1;
        }
    }

    fn identifier(&mut self, spot: TextSpot, kind: ReferenceKind, name: &[u8], end_chars: u32) {
        let entry = self.identifiers.entry(spot.hash(name));
        if spot.message != NONE && !std::mem::replace(&mut entry.written, true) {
            let sources = add_sources(&mut self.sources, entry.places(), &self.messages, spot);
            if !sources.is_empty() {
                self.found.push(ReferenceRow { kind, block: spot.block, sources, cut: entry.is_cut() });
            }
        }
        let place = Occurrence { block: spot.block, end_chars };
        entry.add(place, self.rules.references.sources_max);
    }

    /// An edit: where does the longest line of what it replaces stand?
    fn edit(&mut self, spot: TextSpot, old: &[u8]) {
        let lines = old.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let longest = lines.map(|line| (code_points(line), line)).reduce(|a, b| if b.0 > a.0 { b } else { a });
        let Some((_, line)) = longest.filter(|(chars, _)| *chars >= self.rules.references.line_chars_min) else {
            return;
        };
        let entry = self.lines.get(spot.hash(line));
        let places = entry.into_iter().flat_map(OccurrenceEntry::places);
        let sources = add_sources(&mut self.sources, places, &self.messages, spot);
        let cut = entry.is_some_and(OccurrenceEntry::is_cut);
        self.found.push(ReferenceRow { kind: ReferenceKind::EditSource, block: spot.block, sources, cut });
    }

    /// Remembers a line, without blanks around it; also without the number or path that tools print before it.
    fn line(&mut self, spot: TextSpot, line: &[u8], start: usize, ruler: &mut Ruler<'_>) {
        let bare = line.trim_ascii();
        let chars_min = self.rules.references.line_chars_min;
        if (bare.len() as u64) < chars_min {
            return;
        }
        let end_chars = ruler.chars_before(start + line.trim_ascii_end().len());
        let place = Occurrence { block: spot.block, end_chars };
        let places_max = self.rules.references.sources_max;
        let behind = behind_prefix(bare, self.rules.references.prefix_bytes_max);
        let keeps_whole = behind.is_none_or(|(_, is_number)| !is_number);
        let whole = keeps_whole.then_some(bare);
        for text in behind.map(|(rest, _)| rest).into_iter().chain(whole) {
            if text.len() as u64 >= chars_min && code_points(text) >= chars_min {
                self.lines.entry(spot.hash(text)).add(place, places_max);
            }
        }
    }
}

/// Adds the places that stood before the answer at `spot`: its own blocks were not in its context.
fn add_sources(
    sources: &mut Vec<Occurrence>,
    places: impl Iterator<Item = Occurrence>,
    messages: &[u32],
    spot: TextSpot,
) -> Range<u32> {
    let start = sources.len() as u32;
    let own = |place: &Occurrence| spot.message != NONE && messages[place.block as usize] == spot.message;
    sources.extend(places.filter(|place| !own(place)));
    start..sources.len() as u32
}

/// A line behind `12→` or `12` and a tab (listings of files), `12:` or `12-` or `path:12:` (matches of a search), `+` or
/// `-` (differences); and whether the prefix is the number of a line in a listing, which no file holds.
fn behind_prefix<'l>(line: &'l [u8], prefix_bytes_max: usize) -> Option<(&'l [u8], bool)> {
    let made = |text: &'l [u8], is_number| Some((text.trim_ascii_start(), is_number));
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let behind = &line[digits..];
    if digits > 0 {
        return match behind {
            [0xE2, 0x86, 0x92, text @ ..] | [b'\t', text @ ..] => made(text, true),
            [b':' | b'-', text @ ..] => made(text, false),
            _ => None,
        };
    }
    if let [b'+' | b'-', text @ ..] = line {
        return made(text, false);
    }
    // `path:12:` and `path-12-`: the first number between two such signs, before any blank.
    let head = &line[..line.len().min(prefix_bytes_max)];
    let word = head.iter().position(u8::is_ascii_whitespace).map_or(head, |blank| &head[..blank]);
    let mut from = 0;
    while let Some(sign) = word[from..].iter().position(|byte| matches!(byte, b':' | b'-')).map(|at| from + at) {
        let number = word[sign + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let close = sign + 1 + number;
        if number > 0 && line.get(close) == Some(&word[sign]) {
            return made(&line[close + 1..], false);
        }
        from = sign + 1;
    }
    None
}

/// The next string at or behind a byte of JSON, and where it ends.
fn next_string(json: &[u8], from: usize) -> Option<(RawStr<'_>, usize)> {
    let start = from + memchr(b'"', json.get(from..)?)?;
    let mut cursor = Cursor::at(json, start);
    let string = cursor.string().ok()?;
    Some((string, cursor.pos()))
}

/// What is known of one text. There are millions, most with one place: what others have besides stands elsewhere.
#[derive(Default, Clone)]
pub struct OccurrenceEntry {
    first: Option<Occurrence>,
    /// Whether the model wrote it.
    pub written: bool,
    later: Option<Box<Later>>,
}

/// The places of a text behind the first one.
#[derive(Default, Clone)]
struct Later {
    /// The latest ones, in order; as many as are kept as a rule stand right here.
    places: SmallVec<[Occurrence; 3]>,
    /// Whether places between them and the first one were left out.
    cut: bool,
}

impl OccurrenceEntry {
    /// Where it stood: the first place and the latest ones, in order.
    pub fn places(&self) -> impl Iterator<Item = Occurrence> {
        self.first.into_iter().chain(self.later.iter().flat_map(|later| &later.places).copied())
    }

    /// Whether places between the first and the latest ones were left out.
    pub fn is_cut(&self) -> bool {
        self.later.as_ref().is_some_and(|later| later.cut)
    }

    /// Adds a place; of several in one block the first stands. At most `places_max` are kept.
    pub fn add(&mut self, place: Occurrence, places_max: usize) {
        let Some(first) = self.first else {
            self.first = Some(place);
            return;
        };
        let latest = self.later.as_ref().and_then(|later| later.places.last()).unwrap_or(&first);
        if latest.block == place.block {
            return;
        }
        let later = self.later.get_or_insert_default();
        if later.places.len() + 1 >= places_max.max(2) {
            later.places.remove(0);
            later.cut = true;
        }
        later.places.push(place);
    }
}

/// Two generations of entries: when the younger one is full, the older one is dropped.
#[derive(Default)]
pub struct Occurrences<V = OccurrenceEntry> {
    younger: IdMap<u64, V>,
    older: IdMap<u64, V>,
    entries_max: usize,
    /// Entries that were dropped.
    pub forgotten: u64,
}

impl<V: Default> Occurrences<V> {
    /// Nothing yet; at most twice `entries_max` texts are held.
    pub fn new(entries_max: usize) -> Self {
        Self { entries_max, ..Self::default() }
    }

    /// What is known of a text, made on first sight.
    pub fn entry(&mut self, hash: u64) -> &mut V {
        if self.younger.len() >= self.entries_max && !self.younger.contains_key(&hash) {
            self.forgotten += self.older.len() as u64;
            self.older = std::mem::take(&mut self.younger);
        }
        let older = &mut self.older;
        self.younger.entry(hash).or_insert_with(|| older.remove(&hash).unwrap_or_default())
    }

    /// What is known of a text.
    pub fn get(&self, hash: u64) -> Option<&V> {
        self.younger.get(&hash).or_else(|| self.older.get(&hash))
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, hash: u64) -> Option<&mut V> {
        self.younger.get_mut(&hash).or_else(|| self.older.get_mut(&hash))
    }
}
