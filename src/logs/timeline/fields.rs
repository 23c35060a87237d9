//! Which fields of JSON results the model wrote down again later: a result's values are followed, as hashes and only while
//! the file is read, through the arguments, edits and texts behind it.
//!
//! A value counts for a result if neither the model nor a person had written it before in the chain: else the result echoes
//! it. A later value counts for every result that told it and was asked for in an earlier message.

use std::collections::hash_map::Entry;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

#[cfg(test)]
use crate::base::id::work;
use crate::base::id::{Id, IdMap, IdSet};
use crate::base::json::{Cursor, JsonKind, RawStr};
use crate::base::names::{Names, is_listed};
use crate::logs::endpoint::{EndpointArguments, Endpoints};
use crate::logs::field::FieldResult;
use crate::logs::message::InputFields;
use crate::logs::timeline::TokenCounter;
use crate::logs::timeline::references::{Occurrences, TextSpot};
use crate::logs::timeline::requests::NONE;
use crate::logs::timeline::rows::FieldRow;
use crate::logs::timeline::rules::{FieldRules, TimelineRules, is_one_of};

/// Follows one file from its start.
pub struct FieldFollower<'r> {
    rules: &'r TimelineRules,
    endpoints: &'r Endpoints,
    /// What the model and people wrote.
    written: Occurrences<()>,
    /// Values that answers told, by their first word and their form: few forms, however many values begin with a word.
    told: Occurrences<Vec<Told>>,
    /// The latest call of each id, by chain: other makers' models give ids again.
    asked: IdMap<(u32, Id), Asked>,
    /// By row of `found`: the message that asked for the answer.
    messages: Vec<u32>,
    pub found: Vec<FieldRow>,
}

/// A call.
#[derive(Clone, Copy)]
struct Asked {
    message: u32,
    /// Whether the keys of its answer are names and no data.
    is_named: bool,
}

/// Values of one form that are waited for.
struct Told {
    /// Where the first word stands in them.
    offset: usize,
    bytes: usize,
    /// By hash of the value: rows that told it and have not seen it yet.
    rows: IdMap<u64, Vec<u32>>,
}

/// One field of the answer at hand.
struct Field {
    name: String,
    /// Its members, one behind the other, as they stand in the answer.
    text: Vec<u8>,
    values: Vec<Vec<u8>>,
}

impl<'r> FieldFollower<'r> {
    /// Nothing yet.
    pub fn new(rules: &'r TimelineRules, endpoints: &'r Endpoints) -> Self {
        let FieldRules { written_max, told_max, .. } = rules.fields;
        Self {
            rules,
            endpoints,
            written: Occurrences::new(written_max),
            told: Occurrences::new(told_max),
            asked: IdMap::default(),
            messages: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Takes the input of a call, as compact JSON.
    pub fn call(&mut self, spot: TextSpot, call: Id, tool: &str, input: &[u8]) {
        let rules = &self.rules.fields;
        let is_named = !is_listed(tool, &rules.data_tools) || self.is_named_endpoint(tool, input);
        // Without an id nobody can tell whose the answer is.
        if call.is_some() {
            self.asked.insert((spot.chain, call), Asked { message: spot.message, is_named });
        }
        let is_edit = is_one_of(tool.as_bytes(), &rules.edit_tools);
        let walked = each_scalar(&mut Cursor::new(input), b"", 0, &mut |key, text| {
            let is_place = is_one_of(key, &self.rules.references.file_keys);
            let how = if is_edit && !is_place { FieldRow::IN_EDIT } else { FieldRow::IN_ARGUMENT };
            self.written.entry(spot.hash(text));
            self.look(spot, how, text);
        });
        // The span was walked before: what fails here are malformed escapes, which end it.
        walked.unwrap_or_default();
    }

    /// Takes a text of the model.
    pub fn text(&mut self, spot: TextSpot, text: &[u8]) {
        self.look(spot, FieldRow::IN_TEXT, text);
    }

    /// Takes what a person wrote: an answer that says it again tells nothing.
    pub fn said(&mut self, spot: TextSpot, text: &[u8]) {
        words(text, |word| {
            self.written.entry(spot.hash(&text[word]));
        });
        self.chunks(spot, text);
    }

    /// Takes an answer that is no error: if it is JSON, its fields become rows.
    pub fn answer(
        &mut self,
        spot: TextSpot,
        call: Id,
        text: &[u8],
        names: &mut Names,
        token_counter: &mut (dyn TokenCounter + '_),
    ) {
        let unknown = Asked { message: NONE, is_named: false };
        let asked = self.asked.get(&(spot.chain, call)).copied().unwrap_or(unknown);
        let Some(fields) = fields_of(text, &self.rules.fields, asked.is_named) else { return };
        for field in fields {
            let row = self.found.len() as u32;
            let name = names.intern(&field.name);
            let tokens = token_counter.tokens(&String::from_utf8_lossy(&field.text));
            let values = field.values.iter().map(|value| u32::from(self.tell(spot, value, row))).sum();
            self.found.push(FieldRow { block: spot.block, name, tokens, values, used: 0, how: 0 });
            self.messages.push(asked.message);
        }
    }

    /// Whether the keys that a program prints are its own.
    fn is_named_endpoint(&self, tool: &str, input: &[u8]) -> bool {
        let command = InputFields::of(input).command.and_then(RawStr::text);
        let input = EndpointArguments { command: command.as_deref(), ..EndpointArguments::default() };
        self.endpoints.is_wholly(&self.rules.fields.named_endpoints, tool, input)
    }

    /// Waits for a value from now on; false if it is known already.
    fn tell(&mut self, spot: TextSpot, value: &[u8], row: u32) -> bool {
        let mut first = None;
        words(value, |word| first = first.take().or(Some(word)));
        let Some(first) = first.filter(|_| self.written.get(spot.hash(value)).is_none()) else { return false };
        let (offset, bytes) = (first.start, value.len());
        let waiting = self.told.entry(spot.hash(&value[first]));
        let known = waiting.iter().position(|told| (told.offset, told.bytes) == (offset, bytes));
        let place = known.unwrap_or_else(|| {
            waiting.push(Told { offset, bytes, rows: IdMap::default() });
            waiting.len() - 1
        });
        waiting[place].rows.entry(xxh3_64(value)).or_default().push(row);
        true
    }

    /// Looks for values in what the model wrote, and remembers that it was written.
    fn look(&mut self, spot: TextSpot, how: u8, text: &[u8]) {
        let Self { written, told, messages, found, .. } = self;
        words(text, |word| {
            let start = word.start;
            let hash = spot.hash(&text[word]);
            written.entry(hash);
            for told in told.get_mut(hash).into_iter().flatten() {
                #[cfg(test)]
                work::step();
                let Some(value) = value_at(text, start, told) else { continue };
                let Entry::Occupied(mut rows) = told.rows.entry(xxh3_64(value)) else { continue };
                rows.get_mut().retain(|&row| {
                    // What the same message wrote beside its call was written before the answer.
                    let is_own = messages[row as usize] == spot.message && spot.message != NONE;
                    if !is_own {
                        let row = &mut found[row as usize];
                        row.used += 1;
                        row.how |= how;
                    }
                    is_own
                });
                if rows.get().is_empty() {
                    rows.remove();
                }
            }
        });
        self.chunks(spot, text);
    }

    /// Remembers addresses, paths and other words with signs in them.
    fn chunks(&mut self, spot: TextSpot, text: &[u8]) {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`<>()[]{},;|".contains(byte);
        for chunk in text.split(ends).filter(|chunk| chunk.len() >= self.rules.fields.text_bytes_min) {
            let end = chunk.iter().rposition(|byte| !b".:!?".contains(byte)).map_or(0, |last| last + 1);
            self.written.entry(spot.hash(&chunk[..end]));
        }
    }
}

/// What stands in a text around a word as a whole, as long as values of a form that is waited for.
fn value_at<'t>(text: &'t [u8], word: usize, told: &Told) -> Option<&'t [u8]> {
    let start = word.checked_sub(told.offset).filter(|_| !told.rows.is_empty())?;
    let end = start + told.bytes;
    let goes_on = |at: usize| at > 0 && at < text.len() && is_inside(text[at - 1]) && is_inside(text[at]);
    text.get(start..end).filter(|_| !goes_on(start) && !goes_on(end))
}

/// Whether a byte is part of a word: letters, digits, `_` and all that is not ASCII.
fn is_inside(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn words(text: &[u8], mut take: impl FnMut(std::ops::Range<usize>)) {
    let mut at = 0;
    while let Some(start) = text[at..].iter().position(|&byte| is_inside(byte)).map(|skip| at + skip) {
        let end = text[start..].iter().position(|&byte| !is_inside(byte)).map_or(text.len(), |length| start + length);
        take(start..end);
        at = end;
    }
}

/// Levels of an input that are walked.
const INPUT_DEPTH_MAX: usize = 64;

/// Every string and number of the value at the cursor, with the last key above it.
fn each_scalar(
    cursor: &mut Cursor<'_>,
    key: &[u8],
    depth: usize,
    take: &mut dyn FnMut(&[u8], &[u8]),
) -> FieldResult<()> {
    let shape = cursor.shape()?;
    if depth > INPUT_DEPTH_MAX {
        return cursor.skip_value();
    }
    match shape {
        JsonKind::Object => {
            let mut first = cursor.enter()?;
            while let Some(key) = cursor.next_key(&mut first)? {
                each_scalar(cursor, &key.decode().unwrap_or_default(), depth + 1, take)?;
            }
        }
        JsonKind::Array => {
            let mut first = cursor.enter()?;
            while cursor.next_element(&mut first)? {
                each_scalar(cursor, key, depth + 1, take)?;
            }
        }
        JsonKind::String => take(key, &cursor.string()?.decode().unwrap_or_default()),
        JsonKind::Number => take(key, cursor.number()?),
        JsonKind::Bool | JsonKind::Null => cursor.skip_value()?,
    }
    Ok(())
}

/// The fields of one or more JSON documents, objects or arrays, which stand one after another, in order of first sight;
/// none if the text is anything else.
fn fields_of(text: &[u8], rules: &FieldRules, is_named: bool) -> Option<Vec<Field>> {
    let mut cursor = Cursor::new(text);
    cursor.skip_space();
    if !matches!(cursor.rest().first(), Some(b'{' | b'[')) {
        return None;
    }
    let (fields, places, seen) = Default::default();
    let mut answer = Answer { rules, is_named, path: String::new(), unnamed: 0, fields, places, seen };
    while !cursor.at_end() {
        let is_document = matches!(cursor.shape(), Ok(JsonKind::Object | JsonKind::Array));
        let start = cursor.pos();
        if !is_document || answer.value(&mut cursor, start, 0).is_err() {
            return None;
        }
    }
    Some(answer.fields)
}

/// An answer that is taken apart.
struct Answer<'r> {
    rules: &'r FieldRules,
    is_named: bool,
    path: String,
    /// Keys above the value at hand that are no names.
    unnamed: usize,
    fields: Vec<Field>,
    /// Fields by path.
    places: IdMap<u64, usize>,
    /// By field and value: each counts once.
    seen: IdSet<u64>,
}

impl Answer<'_> {
    /// Takes a value; `start` is where its key or the sign before it stands.
    fn value(&mut self, cursor: &mut Cursor<'_>, start: usize, depth: usize) -> FieldResult<()> {
        let shape = cursor.shape()?;
        let length = self.path.len();
        match shape {
            JsonKind::Object if depth <= self.rules.depth_max => {
                let mut first = cursor.enter()?;
                loop {
                    let start = cursor.pos();
                    let Some(key) = cursor.next_key(&mut first)? else { break };
                    let key = key.decode().unwrap_or_default();
                    let name = if self.is_named { self.rules.name(&key) } else { None };
                    self.unnamed += usize::from(name.is_none());
                    if length > 0 {
                        self.path.push('.');
                    }
                    self.path.push_str(name.unwrap_or(FieldRow::OTHER));
                    self.value(cursor, start, depth + 1)?;
                    self.path.truncate(length);
                    self.unnamed -= usize::from(name.is_none());
                }
            }
            JsonKind::Array if depth <= self.rules.depth_max => {
                let mut first = cursor.enter()?;
                self.path.push_str("[]");
                loop {
                    let start = cursor.pos();
                    if !cursor.next_element(&mut first)? {
                        break;
                    }
                    self.value(cursor, start, depth + 1)?;
                }
                self.path.truncate(length);
            }
            JsonKind::String => {
                let text = cursor.string()?.decode().unwrap_or_default();
                self.scalar(cursor.since(start), Some(&text));
            }
            JsonKind::Number => {
                let literal = cursor.number()?;
                self.scalar(cursor.since(start), Some(literal));
            }
            JsonKind::Object | JsonKind::Array | JsonKind::Bool | JsonKind::Null => {
                cursor.skip_value()?;
                self.scalar(cursor.since(start), None);
            }
        }
        Ok(())
    }

    fn scalar(&mut self, member: &[u8], value: Option<&[u8]>) {
        let place = self.place();
        let field = &mut self.fields[place];
        field.text.extend_from_slice(member);
        let Some(value) = value.filter(|value| self.rules.is_followed(value)) else { return };
        if self.seen.len() < self.rules.values_max && self.seen.insert(xxh3_64_with_seed(value, place as u64)) {
            field.values.push(value.to_vec());
        }
    }

    /// The field at hand; those beyond the cap are one with those that have no name.
    fn place(&mut self) -> usize {
        let next = self.fields.len();
        let is_other = self.unnamed > 0
            || next >= self.rules.fields_max && !self.places.contains_key(&xxh3_64(self.path.as_bytes()));
        let name: &str = if is_other { FieldRow::OTHER } else { &self.path };
        let place = *self.places.entry(xxh3_64(name.as_bytes())).or_insert(next);
        if place == next {
            self.fields.push(Field { name: name.to_owned(), text: Vec::new(), values: Vec::new() });
        }
        place
    }
}
