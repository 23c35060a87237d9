//! What stands in a text, without the text: identifiers by their form alone (addresses, paths, UUIDs, tickets,
//! hexadecimal, and names that no prose contains), and the words of what people and the model wrote, as hashes without
//! order.

use std::ops::Range;

use crate::base::words::{TextWord, terms, words};
use crate::logs::timeline::requests::{ReferenceKind, Utterance};
use crate::logs::timeline::rules::IdentifierRules;
use crate::logs::timeline::words::{Word, WordList};

/// Hands every identifier of a text to `take`, with the byte behind its end.
pub fn identifiers<'t>(text: &'t [u8], rules: &IdentifierRules, mut take: impl FnMut(ReferenceKind, &'t [u8], usize)) {
    let mut at = 0;
    // Bytes outside of runs have no sign at all.
    while let Some(start) = text[at..].iter().position(|&byte| SIGNS[byte as usize] != 0).map(|skip| at + skip) {
        let mut end = start + 1;
        // A capital at the start is no sign of anything.
        let mut signs = SIGNS[text[start] as usize] & !CAPITAL;
        while let Some(sign) = text.get(end).map(|&byte| SIGNS[byte as usize]).filter(|&sign| sign != 0) {
            signs |= sign;
            end += 1;
        }
        // Words of prose are neither; a UUID of letters alone is long enough to tell.
        let may_be = signs & !INSIDE != 0 || end - start >= UUID_BYTES;
        if may_be && end - start >= rules.bytes_min {
            run(text, start, end, rules, &mut take);
        }
        at = end;
    }
}

/// Letters and dashes of a UUID.
const UUID_BYTES: usize = 36;
/// See [`SIGNS`].
const INSIDE: u8 = 1;
/// A capital letter: within a word it is a sign of a name.
const CAPITAL: u8 = 2;
/// A digit, `_` or `/`: prose has none within its words.
const MARK: u8 = 4;

/// Bytes that a run of identifiers may hold: ASCII without blanks, quotes, brackets and what separates them in lists.
const SIGNS: [u8; 256] = {
    let mut signs = [0; 256];
    let mut byte = 0x21;
    while byte < 0x7F {
        signs[byte] = match byte as u8 {
            b'A'..=b'Z' => INSIDE | CAPITAL,
            b'0'..=b'9' | b'_' | b'/' => INSIDE | MARK,
            _ => INSIDE,
        };
        byte += 1;
    }
    let outside = b"\"'`()[]{}<>,;|*=\\";
    let mut index = 0;
    while index < outside.len() {
        signs[outside[index] as usize] = 0;
        index += 1;
    }
    signs
};

fn run<'t>(
    text: &'t [u8],
    start: usize,
    end: usize,
    rules: &IdentifierRules,
    take: &mut impl FnMut(ReferenceKind, &'t [u8], usize),
) {
    let end = start + text[start..end].iter().rposition(|byte| !b".:!?".contains(byte)).map_or(0, |last| last + 1);
    let word = &text[start..end];
    let Some(slash) = word.iter().position(|&byte| byte == b'/') else {
        return pieces(text, start, end, rules, take);
    };
    if slash > 1 && word[slash - 1] == b':' && word.get(slash + 1) == Some(&b'/') {
        // Addresses hold what elsewhere separates: `?a=b`.
        let more = text[end..].iter().take_while(|&&byte| SIGNS[byte as usize] & INSIDE != 0 || byte == b'=').count();
        let end =
            end + text[end..end + more].iter().rposition(|byte| !b".:!?=".contains(byte)).map_or(0, |last| last + 1);
        return take(ReferenceKind::Url, &text[start..end], end);
    }
    // What follows a colon is a place in the file, unless the colon stands behind the letter of a drive.
    let colon = word.iter().skip(2).position(|&byte| byte == b':').map_or(word.len(), |at| at + 2);
    let path = &word[..colon];
    if path.len() >= rules.path_bytes_min && is_path(path) {
        take(ReferenceKind::Path, path, start + colon);
    }
}

/// Whether a word with a slash is a path, rather than `this/that`.
fn is_path(word: &[u8]) -> bool {
    let slashes = word.iter().filter(|&&byte| byte == b'/').count();
    let name = word.rsplit(|&byte| byte == b'/').find(|part| !part.is_empty()).unwrap_or_default();
    let rooted = matches!(word, [b'/', second, ..] if *second != b'/') || matches!(word, [b'~' | b'.', ..]);
    let lettered = name.iter().any(u8::is_ascii_alphabetic);
    slashes > 0 && lettered && (rooted || slashes > 1 || name[1..].contains(&b'.')) && !word.starts_with(b"//")
}

/// The pieces of a word without a slash.
fn pieces<'t>(
    text: &'t [u8],
    start: usize,
    end: usize,
    rules: &IdentifierRules,
    take: &mut impl FnMut(ReferenceKind, &'t [u8], usize),
) {
    let mut at = start;
    let is_piece = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    for piece in text[start..end].split(|byte| !is_piece(byte)) {
        let stop = at + piece.len();
        if is_uuid(piece) {
            take(ReferenceKind::Uuid, piece, stop);
        } else if is_ticket(piece, rules) {
            take(ReferenceKind::Ticket, piece, stop);
        } else {
            let mut from = at;
            for part in piece.split(|&byte| byte == b'-') {
                if is_hex(part, rules) {
                    take(ReferenceKind::Hex, part, from + part.len());
                } else if is_symbol(part, rules) {
                    take(ReferenceKind::Symbol, part, from + part.len());
                }
                from += part.len() + 1;
            }
        }
        at = stop + 1;
    }
}

fn is_uuid(piece: &[u8]) -> bool {
    piece.len() == UUID_BYTES
        && piece.iter().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_ticket(piece: &[u8], rules: &IdentifierRules) -> bool {
    let Some(dash) = piece.iter().position(|&byte| byte == b'-') else { return false };
    let (key, number) = (&piece[..dash], &piece[dash + 1..]);
    rules.ticket_letters.contains(&key.len())
        && rules.ticket_digits.contains(&number.len())
        && key.iter().all(u8::is_ascii_uppercase)
        && number.iter().all(u8::is_ascii_digit)
}

/// Letters and digits: of digits alone it would be a number, of letters alone a word.
fn is_hex(part: &[u8], rules: &IdentifierRules) -> bool {
    part.len() >= rules.hex_digits_min
        && part.iter().all(u8::is_ascii_hexdigit)
        && part.iter().any(u8::is_ascii_digit)
        && part.iter().any(u8::is_ascii_alphabetic)
}

fn is_symbol(part: &[u8], rules: &IdentifierRules) -> bool {
    if part.len() < rules.symbol_chars_min || !part.iter().any(u8::is_ascii_alphabetic) {
        return false;
    }
    let mixes_case = part[1..].iter().any(u8::is_ascii_uppercase) && part.iter().any(u8::is_ascii_lowercase);
    mixes_case || part.iter().any(|byte| *byte == b'_' || byte.is_ascii_digit())
}

/// The words of the start of a text, at most `chars_max` code points; none if there are none.
pub fn utterance(block: u32, text: &str, chars_max: usize, out: &mut WordList) -> Option<Utterance> {
    let end = text.char_indices().nth(chars_max).map_or(text.len(), |(end, _)| end);
    let text = &text[..end];
    let terms = count(terms(text), out);
    let words = count(words(text), out);
    (!terms.is_empty() || !words.is_empty()).then_some(Utterance { block, terms, words })
}

/// Adds each word once, by hash.
fn count<'t>(pieces: impl Iterator<Item = TextWord<'t>>, out: &mut WordList) -> Range<u32> {
    let position = |piece: &TextWord<'_>| u8::try_from(piece.start_chars / Word::STEP_CHARS).unwrap_or(u8::MAX);
    let mut seen: Vec<(u64, u8)> = pieces.map(|piece| (piece.hash(), position(&piece))).collect();
    // Of one word the first place comes first.
    seen.sort_unstable();
    let start = out.end();
    for same in seen.chunk_by(|one, other| one.0 == other.0) {
        let (hash, position) = same[0];
        out.push(Word { hash, count: u16::try_from(same.len()).unwrap_or(u16::MAX), position });
    }
    start..out.end()
}
