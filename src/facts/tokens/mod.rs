//! Token counts, exact for the two published vocabularies: text is split into pieces by the vocabulary's pattern, and
//! the bytes of each piece are merged to tokens.
//!
//! Almost every piece has been seen before, so nearly all the time goes into splitting ([`splitter`]) and looking up
//! ([`cache`]).

pub(crate) mod automaton;
pub(crate) mod cache;
mod class;
pub(crate) mod merges;
pub(crate) mod piece;
pub(crate) mod splitter;

use std::ops::Range;

use crate::base::tokenizer::Bpe;
use crate::facts::tokens::cache::{PieceCache, PieceKey};
use crate::facts::tokens::merges::Merges;
use crate::facts::tokens::splitter::Splitter;

/// Counts tokens. It remembers pieces of text (2 MiB of them), so it pays to keep one per thread.
///
/// Names of special tokens (`<|endoftext|>`) are ordinary text.
///
/// Counts add up, `count(a + b) == count(a) + count(b)`, if `a` ends in a line break and `b` begins with a character
/// other than white space and `/`, or with white space that holds no line break before such a character or a `/`. So
/// any two lines may be counted apart of which the second begins with a number, indented or not, whatever the first one
/// is. They also add up at a [`last_cut`]. Elsewhere counts need not add up: several line breaks are often one token, o200k_base may join a `/` to the line
/// break before it, and cl100k_base joins white space that ends the text to the line break before it.
pub struct Counter {
    splitter: Splitter,
    merges: &'static Merges,
    cache: PieceCache,
}

impl Counter {
    /// A counter for a vocabulary; the ratio has none, and gets that of `o200k_base`. The first one in the process reads the
    /// vocabulary (some milliseconds).
    pub fn new(vocabulary: Bpe) -> Self {
        let (pattern, merges) = match vocabulary {
            Bpe::O200kBase | Bpe::Heuristic => (&automaton::O200K_BASE, &merges::O200K_BASE),
            Bpe::Cl100kBase => (&automaton::CL100K_BASE, &merges::CL100K_BASE),
        };
        Self { splitter: Splitter::new(pattern), merges, cache: PieceCache::new() }
    }

    /// Tokens of a text.
    pub fn count(&mut self, text: &str) -> u64 {
        self.count_part(text, 0..text.len())
    }

    /// Tokens of a part of a text, counted as if nothing stood around it: the bytes behind it only help to look its
    /// last pieces up quickly.
    pub fn count_part(&mut self, text: &str, part: Range<usize>) -> u64 {
        let Self { splitter, merges, cache } = self;
        let bytes = &text.as_bytes()[part.start..];
        let mut count = 0;
        splitter.split(&text[part], |start, end| {
            let known = PieceKey::quick(bytes, start, end).and_then(|key| cache.get(key));
            count += known.unwrap_or_else(|| count_piece(merges, cache, &bytes[start..end]));
        });
        count
    }
}

#[inline(never)]
fn count_piece(merges: &Merges, cache: &mut PieceCache, piece: &[u8]) -> u64 {
    let Some(key) = PieceKey::new(piece) else { return piece::count(merges, piece) };
    cache.get(key).unwrap_or_else(|| {
        let count = piece::count(merges, piece);
        cache.put(key, count);
        count
    })
}

/// The last place in a text at which counts add up whatever follows: between an ASCII letter and an ASCII character that is
/// neither a letter nor an apostrophe. A run of letters ends there in either pattern, and nothing looks behind.
pub fn last_cut(text: &[u8]) -> Option<usize> {
    let ends = |pair: &[u8]| {
        let [before, after] = [pair[0], pair[1]];
        before.is_ascii_alphabetic() && after.is_ascii() && !after.is_ascii_alphabetic() && after != b'\''
    };
    text.windows(2).rposition(ends).map(|place| place + 1)
}
