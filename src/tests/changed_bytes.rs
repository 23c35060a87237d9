//! Bytes that are changed here and there, for tests of what is read.

use proptest::prelude::*;

/// A change of some bytes, at a share of the length.
#[derive(Clone, Debug)]
pub enum Change {
    Flip(usize, u8),
    Truncate(usize),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
    Repeat(usize, usize),
}

/// Any change; what is inserted are pieces of JSON, or anything.
pub fn any_change() -> impl Strategy<Value = Change> {
    let place = 0..4096_usize;
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        "\\u12",
        "\\x",
        "\\ud83d",
        ",",
        ":",
        "\n",
        "\r",
        "\0",
        "}{",
        "null",
        "\"type\":",
        "{\"type\":\"user\",\"sessionId\":\"s\"}",
        "\"content\":",
        "1e999",
        "-",
        "\u{feff}",
    ];
    let piece = prop_oneof![
        prop::sample::select(pieces.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 1..6),
    ];
    prop_oneof![
        (place.clone(), any::<u8>()).prop_map(|(at, mask)| Change::Flip(at, mask)),
        place.clone().prop_map(Change::Truncate),
        (place.clone(), 1..40_usize).prop_map(|(at, length)| Change::Remove(at, length)),
        (place.clone(), piece).prop_map(|(at, piece)| Change::Insert(at, piece)),
        (place, 1..200_usize).prop_map(|(at, length)| Change::Repeat(at, length)),
    ]
}

impl Change {
    pub fn apply(&self, bytes: &mut Vec<u8>) {
        let place = |at: usize| at % (bytes.len() + 1);
        let end = |at: usize, length: usize| (at + length).min(bytes.len());
        match self {
            Self::Flip(at, mask) => {
                let at = place(*at);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= mask;
                }
            }
            Self::Truncate(at) => bytes.truncate(place(*at)),
            Self::Remove(at, length) => drop(bytes.drain(place(*at)..end(place(*at), *length))),
            Self::Insert(at, piece) => {
                drop(bytes.splice(place(*at)..place(*at), piece.iter().copied()).collect::<Vec<_>>());
            }
            Self::Repeat(at, length) => {
                let piece = bytes[place(*at)..end(place(*at), *length)].to_vec();
                bytes.extend(piece);
            }
        }
    }
}

/// Lines of which some are changed, and some joined to one.
pub fn changed_log(
    line: impl Strategy<Value = Vec<u8>>,
    changes_max: usize,
    lines_max: usize,
) -> impl Strategy<Value = Vec<u8>> {
    let line = (line, prop::collection::vec(any_change(), 0..changes_max), 0..8_u8);
    prop::collection::vec(line, 0..lines_max).prop_map(|lines| {
        let mut log = Vec::new();
        for (mut line, changes, end) in lines {
            for change in changes {
                change.apply(&mut line);
            }
            log.extend(line);
            if end > 0 {
                log.push(b'\n');
            }
        }
        log
    })
}
