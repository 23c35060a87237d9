//! Long strings that a body repeats (paths, prefixes of log lines) written once and named, as a shell script would (grammar and
//! example: docs/formats.md). Only whole words and paths are named, few of them, and only if it pays: the reader has to look
//! them up. Numbered lines are left alone: they are files, and are quoted from.

use crate::base::block::line_ends;
use crate::facts::encode::{Format, FormatFamily, Meaning, Params, Subject};
use crate::facts::numbered;

/// A name is `$` and a letter, and stands for the same string everywhere.
pub const FORMAT: Format =
    Format { id: "named_strings", family: FormatFamily::Extended, by_depth: false, encode, decode };

/// Letters for names: those that are one token with the `$` before them.
const LETTERS: &[u8] = b"abcdfijlmnopqrstvx";
/// Most names in a body.
const NAMES_MAX: usize = 8;
/// Shortest string that gets a name, in bytes.
const NAMED_BYTES_MIN: usize = 16;
/// Longest string that gets a name, in bytes.
const NAMED_BYTES_MAX: usize = 160;
const BODY_BYTES_MIN: usize = 200;
/// How much of a body is searched for strings to name, in bytes.
const SEARCHED_BYTES_MAX: usize = 64 << 10;
/// Most strings among which names are given.
const CANDIDATES_MAX: usize = 64;
/// Bytes of a token, about.
const TOKEN_BYTES: usize = 4;
/// What a name costs where it is used, in bytes of text.
const USE_BYTES: usize = 2 * TOKEN_BYTES;
/// What a definition costs beside its string, in bytes of text.
const DEFINITION_BYTES: usize = 3 * TOKEN_BYTES;
/// Share of a body that must be saved at least: one in so many bytes.
const SAVED_ONE_IN: usize = 20;

/// What naming a string saves, in bytes, about.
fn saving(uses: usize, length: usize) -> usize {
    (uses * length.saturating_sub(USE_BYTES)).saturating_sub(length + DEFINITION_BYTES)
}

/// What a byte can be to a named string, for every byte.
const ROLES: [ByteRole; 256] = {
    let mut roles = [ByteRole { word: false, opens: false, before: false }; 256];
    let mut byte = 0;
    while byte < roles.len() {
        let ascii = byte as u8;
        let word = ascii.is_ascii_alphanumeric() || ascii == b'_' || !ascii.is_ascii();
        let opens = word
            || matches!(
                ascii,
                b'/' | b'.' | b'~' | b'@' | b'[' | b'(' | b'{' | b'<' | b'#' | b'-' | b'+' | b'*' | b'=' | b'?'
            );
        let quote =
            matches!(ascii, b'"' | b'\'' | b'`' | b'(' | b'[' | b'{' | b'<' | b'>' | b'=' | b',' | b'@' | b':' | b'|');
        roles[byte] = ByteRole { word, opens, before: quote || ascii.is_ascii_whitespace() };
        byte += 1;
    }
    roles
};

#[derive(Clone, Copy)]
struct ByteRole {
    /// Part of a word: a letter, a digit, `_`, anything outside of ASCII.
    word: bool,
    /// Can be the first byte.
    opens: bool,
    /// Can stand before the first byte.
    before: bool,
}

fn role(byte: u8) -> ByteRole {
    ROLES[usize::from(byte)]
}

/// Whether a named string may end with `last`, before `next`.
fn is_end(last: u8, next: Option<u8>) -> bool {
    (role(last).word || matches!(last, b')' | b']')) && !next.is_some_and(|next| role(next).word)
}

/// A place where a named string may begin.
#[derive(Clone, Copy, Default)]
struct StringStart {
    at: usize,
    /// Where its line ends.
    end: usize,
}

/// Where named strings may begin: far enough from the end of the line.
fn places(text: &[u8]) -> Vec<StringStart> {
    let mut places = Vec::new();
    let (mut found, mut start) = (0, 0);
    for end in line_ends(text) {
        let line = std::mem::replace(&mut start, end + 1)..end.saturating_sub(NAMED_BYTES_MIN - 1);
        places.resize(found + line.len(), StringStart::default());
        let mut before = true;
        for at in line {
            // Every place is written down and most are written over: no processor could guess which.
            places[found] = StringStart { at, end };
            let role = role(text[at]);
            found += usize::from(role.opens & before);
            before = role.before;
        }
    }
    places.truncate(found);
    places
}

/// Whether a named string may begin there, as far as the bytes around it tell.
fn is_start(text: &[u8], at: usize) -> bool {
    role(text[at]).opens && (at == 0 || role(text[at - 1]).before)
}

/// A string that occurs more than once.
struct RepeatedString {
    /// Its occurrences: a range of the sorted places.
    places: std::ops::Range<usize>,
    length: usize,
    /// What naming it saves at most.
    saving: usize,
}

/// The strings worth naming, from what is searched of the body.
fn find_strings(text: &[u8]) -> Vec<&[u8]> {
    let places = repeated_places(text);
    let mut candidates = find_candidates(text, &places);
    let mut covered = vec![false; if candidates.is_empty() { 0 } else { text.len() }];
    let mut chosen: Vec<&[u8]> = Vec::new();
    while chosen.len() < NAMES_MAX {
        // What a string saves only shrinks as others are named: the best is the one that still is when looked at again.
        let Some(best) = candidates.pop() else { break };
        let range = |place: &StringStart| place.at..place.at + best.length;
        let uses = &places[best.places.clone()];
        let free = uses.iter().filter(|place| !covered[range(place)].contains(&true)).count();
        let fresh = saving(free, best.length);
        if candidates.last().is_some_and(|next| next.saving > fresh) {
            let at = candidates.partition_point(|other| other.saving < fresh);
            candidates.insert(at, RepeatedString { saving: fresh, ..best });
            continue;
        }
        if fresh == 0 {
            break;
        }
        uses.iter().for_each(|place| covered[range(place)].fill(true));
        chosen.push(&text[range(&uses[0])]);
    }
    chosen
}

/// The places where something begins that also begins elsewhere, sorted by what begins there.
fn repeated_places(text: &[u8]) -> Vec<StringStart> {
    let bits = usize::BITS - (text.len() / 4).clamp(1 << 8, 1 << 16).leading_zeros();
    let mut counts = vec![0u8; 1 << bits];
    let slot = |gram: u64| usize::try_from(gram >> (u64::BITS - bits)).unwrap_or(0);
    let places = places(text);
    let grams = || places.iter().map(|place| (gram(text, place.at), *place));
    grams().for_each(|(gram, _)| counts[slot(gram)] = counts[slot(gram)].saturating_add(1));
    let mut repeated: Vec<(u64, StringStart)> = grams().filter(|(gram, _)| counts[slot(*gram)] > 1).collect();
    if repeated.len() * NAMED_BYTES_MIN < text.len() / SAVED_ONE_IN {
        return Vec::new();
    }
    let begins = |place: StringStart| &text[place.at..place.end.min(place.at + NAMED_BYTES_MAX)];
    repeated.sort_unstable_by(|(one, a), (other, b)| {
        one.cmp(other).then_with(|| begins(*a).cmp(begins(*b))).then(a.at.cmp(&b.at))
    });
    repeated.into_iter().map(|(_, place)| place).collect()
}

/// A number for what begins at a place.
fn gram(text: &[u8], at: usize) -> u64 {
    let bytes = text[at..].first_chunk::<NAMED_BYTES_MIN>().copied().unwrap_or_default();
    let [low, high] = [u128::from_le_bytes(bytes), u128::from_le_bytes(bytes) >> u64::BITS].map(|half| half as u64);
    (low ^ high.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Strings that begin at neighbouring places, the best last.
fn find_candidates(text: &[u8], places: &[StringStart]) -> Vec<RepeatedString> {
    let mut found = Vec::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (index, &place) in places.iter().enumerate() {
        let shared = places.get(index + 1).map_or(0, |&next| shared(text, place, next));
        let mut start = index;
        while let Some((length, first)) = open.pop_if(|(length, _)| *length > shared) {
            start = first;
            let saving = saving(index + 1 - first, length);
            if saving > 0 {
                found.push(RepeatedString { places: first..index + 1, length, saving });
            }
        }
        if shared > 0 && open.last().is_none_or(|(length, _)| *length < shared) {
            open.push((shared, start));
        }
    }
    found.sort_by_key(|candidate| candidate.saving);
    found.split_off(found.len().saturating_sub(CANDIDATES_MAX))
}

/// Length of the longest string to name that begins at both places; 0 if there is none.
fn shared(text: &[u8], one: StringStart, other: StringStart) -> usize {
    let max = NAMED_BYTES_MAX.min(one.end - one.at).min(other.end - other.at);
    let (a, b) = (&text[one.at..one.at + max], &text[other.at..other.at + max]);
    let mut length = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let ends = |length: usize, at: usize| is_end(text[at + length - 1], text.get(at + length).copied());
    while length >= NAMED_BYTES_MIN && !(ends(length, one.at) && ends(length, other.at)) {
        length -= 1;
    }
    if length >= NAMED_BYTES_MIN { length } else { 0 }
}

/// Where which string stands, from left to right, the longest where several begin.
fn find_uses(text: &[u8], strings: &[&[u8]]) -> Vec<(usize, usize)> {
    let mut uses = Vec::new();
    for (index, string) in strings.iter().enumerate() {
        let finder = memchr::memmem::Finder::new(string);
        let mut from = 0;
        while let Some(at) = finder.find(&text[from..]).map(|found| from + found) {
            let next = text.get(at + string.len()).copied();
            uses.extend((is_start(text, at) && is_end(string[string.len() - 1], next)).then_some((at, index)));
            from = at + 1;
        }
    }
    uses.sort_unstable();
    let mut end = 0;
    uses.retain(|&(at, index)| {
        at >= end && {
            end = at + strings[index].len();
            true
        }
    });
    uses
}

fn encode(subject: &Subject<'_>, _: Params) -> Option<String> {
    let text = subject.text;
    if subject.shape.is_json() || text.len() < BODY_BYTES_MIN || numbered::has_sequence(text) {
        return None;
    }
    let bytes = text.as_bytes();
    let mut strings = find_strings(&bytes[..bytes.len().min(SEARCHED_BYTES_MAX)]);
    if strings.is_empty() {
        return None;
    }
    strings.sort_by_key(|string| std::cmp::Reverse(string.len()));
    let mut uses = find_uses(bytes, &strings);
    let saved = |uses: &[(usize, usize)], index: usize, string: &[u8]| {
        saving(uses.iter().filter(|(_, used)| *used == index).count(), string.len())
    };
    let worth: Vec<&[u8]> =
        strings.iter().enumerate().filter(|(i, s)| saved(&uses, *i, s) > 0).map(|(_, s)| *s).collect();
    if worth.len() < strings.len() {
        strings = worth;
        uses = find_uses(bytes, &strings);
    }
    let total: usize = strings.iter().enumerate().map(|(index, string)| saved(&uses, index, string)).sum();
    if uses.is_empty() || total < text.len() / SAVED_ONE_IN {
        return None;
    }
    write(text, &strings, &uses)
}

/// Writes definitions in the order in which they are used, and the body; none if there are not enough letters.
fn write(text: &str, strings: &[&[u8]], uses: &[(usize, usize)]) -> Option<String> {
    let bytes = text.as_bytes();
    let taken: Vec<u8> = memchr::memchr_iter(b'$', bytes).filter_map(|at| bytes.get(at + 1).copied()).collect();
    let mut letters = LETTERS.iter().filter(|letter| !taken.contains(letter));
    let mut names = vec![None; strings.len()];
    let mut out = String::with_capacity(text.len());
    for &(at, index) in uses {
        if names[index].is_none() {
            let letter = char::from(*letters.next()?);
            names[index] = Some(letter);
            out.extend(["$", letter.encode_utf8(&mut [0; 4]), "=", &text[at..at + strings[index].len()], "\n"]);
        }
    }
    out.push('\n');
    let mut end = 0;
    for &(at, index) in uses {
        out.push_str(&text[end..at]);
        out.push('$');
        out.push(names[index]?);
        end = at + strings[index].len();
    }
    out.push_str(&text[end..]);
    Some(out)
}

fn decode(text: &str) -> Option<Meaning> {
    let mut strings: [Option<&str>; 256] = [None; 256];
    let mut rest = text;
    loop {
        let (line, after) = rest.split_once('\n')?;
        rest = after;
        if line.is_empty() {
            break;
        }
        let (name, string) = line.split_once('=')?;
        let &[b'$', letter] = name.as_bytes() else { return None };
        strings[usize::from(letter)] = Some(string);
    }
    let mut out = String::with_capacity(rest.len() * 2);
    while let Some(dollar) = memchr::memchr(b'$', rest.as_bytes()) {
        let letter = rest.as_bytes().get(dollar + 1).filter(|letter| letter.is_ascii());
        let string = letter.and_then(|letter| strings[usize::from(*letter)]);
        let kept = if string.is_some() { dollar } else { dollar + 1 };
        out.push_str(&rest[..kept]);
        out.push_str(string.unwrap_or_default());
        rest = &rest[if string.is_some() { dollar + 2 } else { kept }..];
    }
    out.push_str(rest);
    Some(Meaning::Text(out))
}
