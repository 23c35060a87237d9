//! What stands in a text, without the text: identifiers by their form alone (addresses, paths, UUIDs, tickets,
//! hexadecimal, and names that no prose contains), and the words of what people and the model wrote, as hashes without
//! order.
//!
//! Runs of bytes that may hold an identifier are found 64 bytes at a time: every text of a log is looked through for them, and
//! nearly all runs are words of prose, which are passed over without being looked at one by one.

use crate::base::block::{MASK_BYTES, masks};
use crate::base::words::{terms, words};
use crate::logs::timeline::requests::{ReferenceKind, Utterance};
use crate::logs::timeline::rules::IdentifierRules;
use crate::logs::timeline::words::WordList;

/// Hands every identifier of a text to `take`, with the byte behind its end.
pub fn identifiers<'t>(text: &'t [u8], rules: &IdentifierRules, mut take: impl FnMut(ReferenceKind, &'t [u8], usize)) {
    telling_runs(text, |start, end| {
        if end - start >= rules.bytes_min {
            run(text, start, end, rules, &mut take);
        }
    });
}

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
        let more = text[end..].iter().take_while(|&&byte| is_inside(byte) || byte == b'=').count();
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
    let (terms, words) = (out.count(terms(text)), out.count(words(text)));
    (!terms.is_empty() || !words.is_empty()).then_some(Utterance { block, terms, words })
}

/// Letters and dashes of a UUID: a run of so many bytes is looked at whatever it is made of.
pub const UUID_BYTES: usize = 36;

/// What separates identifiers: blanks, quotes, brackets, what stands between the items of lists, and all that is not ASCII.
const SEPARATORS: [(u8, u8); 9] = [
    (0, b' '),
    (b'"', b'"'),
    (b'\'', b'*'),
    (b',', b','),
    (b';', b'>'),
    (b'[', b']'),
    (b'`', b'`'),
    (b'{', b'}'),
    (0x7F, 0xFF),
];
/// Digits, `_` and `/`: prose has none within its words.
const MARKS: [(u8, u8); 2] = [(b'/', b'9'), (b'_', b'_')];
/// Within a word they are a sign of a name. Twice, since [`masks`] takes lists of one length.
const CAPITALS: [(u8, u8); 2] = [(b'A', b'Z'); 2];

/// Whether a run may hold the byte.
fn is_inside(byte: u8) -> bool {
    !SEPARATORS.iter().any(|&(first, last)| (first..=last).contains(&byte))
}

/// Hands on where each run begins and ends that is no word of prose: one with a digit, `_` or `/`, with a capital behind its start,
/// or of at least [`UUID_BYTES`].
pub fn telling_runs(text: &[u8], mut take: impl FnMut(usize, usize)) {
    let mut close = |run: Run, end: usize| {
        if run.tells || end - run.start >= UUID_BYTES {
            take(run.start, end);
        }
    };
    // The run that goes on behind the block before.
    let mut open: Option<Run> = None;
    for block in (0..text.len()).step_by(MASK_BYTES) {
        let place = |bit: u32| block + bit as usize;
        let [outside] = masks(&text[block..], [SEPARATORS]);
        let [marks, capitals] = masks(&text[block..], [MARKS, CAPITALS]);
        let inside = !outside;
        let starts = inside & !(inside << 1 | u64::from(open.is_some()));
        let telling = marks | capitals & !starts;
        let mut from = 0;
        if let Some(mut run) = open.take() {
            from = (!inside).trailing_zeros();
            run.tells |= telling & below(from) != 0;
            if from == u64::BITS {
                open = Some(run);
                continue;
            }
            close(run, place(from));
        }
        let last = u64::BITS - (!inside).leading_zeros();
        if last < u64::BITS {
            open = Some(Run { start: place(last), tells: telling & !below(last) != 0 });
        }
        let mut ahead = (telling | inside_for_32(inside)) & below(last) & !below(from);
        while ahead != 0 {
            let at = ahead.trailing_zeros();
            let start = u64::BITS - (!inside & below(at)).leading_zeros();
            let end = at + (!inside >> at).trailing_zeros();
            close(Run { start: place(start), tells: telling & below(end) & !below(start) != 0 }, place(end));
            ahead &= !below(end);
        }
    }
    if let Some(run) = open {
        close(run, text.len());
    }
}

#[derive(Clone, Copy)]
struct Run {
    start: usize,
    /// Whether something in it is a sign of a name.
    tells: bool,
}

/// The bits below a place.
fn below(place: u32) -> u64 {
    u64::MAX.checked_shl(place).map_or(u64::MAX, |above| !above)
}

/// Bits that, with the 31 behind them, are all set.
fn inside_for_32(inside: u64) -> u64 {
    [1, 2, 4, 8, 16].into_iter().fold(inside, |all, shift| all & all >> shift)
}
