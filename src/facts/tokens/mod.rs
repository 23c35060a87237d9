//! Token counts, exact for the two published vocabularies: text is split into pieces by the vocabulary's pattern, and
//! the bytes of each piece are merged to tokens.
//!
//! Almost every piece has been seen before, so nearly all the time goes into splitting ([`splitter`]) and looking up
//! ([`PieceCache`]).

pub(crate) mod automaton;
mod class;
pub(crate) mod merges;
pub(crate) mod splitter;

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::base::tokenizer::Bpe;
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
    let Some(key) = PieceKey::new(piece) else { return merges::count(merges, piece) };
    cache.get(key).unwrap_or_else(|| {
        let count = merges::count(merges, piece);
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

/// How many pieces are remembered: 2 MiB, which is what measures fastest.
const SLOTS_LOG2: u32 = 18;
const SLOTS: usize = 1 << SLOTS_LOG2;
const COUNT_BITS: u32 = 16;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
/// Longer pieces are not remembered: they may have more tokens than a slot can say.
const PIECE_BYTES_MAX: usize = COUNT_MAX as usize;
/// Up to so many bytes a piece can be read as two words.
const SHORT_BYTES_MAX: usize = 15;

/// Counts by piece. A piece has one slot and takes it from whatever was there.
pub struct PieceCache {
    /// The lower 48 bits of a key and a count. The upper bits of the key are the number of the slot; 0 is a free slot.
    slots: Box<[u64; SLOTS]>,
}

impl PieceCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self { slots: vec![0; SLOTS].try_into().expect("the vector is as long as the array") }
    }

    /// The count that was stored for a piece.
    #[inline(always)]
    pub fn get(&self, key: PieceKey) -> Option<u64> {
        let count = self.slots[key.slot()] ^ key.0 << COUNT_BITS;
        (1..=COUNT_MAX).contains(&count).then_some(count)
    }

    /// Stores the count of a piece.
    pub fn put(&mut self, key: PieceKey, count: u64) {
        self.slots[key.slot()] = key.0 << COUNT_BITS | count;
    }
}

/// Names a piece: one to one up to seven bytes, beyond that by 64 bits of hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PieceKey(u64);

impl PieceKey {
    /// The key of a piece that is short and not among the last bytes of the text, for which this is quick.
    #[inline(always)]
    pub fn quick(text: &[u8], start: usize, end: usize) -> Option<Self> {
        let window = text.get(start..start + 16)?.first_chunk()?;
        (end - start <= SHORT_BYTES_MAX).then(|| Self::short(window, end - start))
    }

    /// The key of any piece that is to be remembered.
    pub fn new(piece: &[u8]) -> Option<Self> {
        if piece.len() > SHORT_BYTES_MAX {
            return (piece.len() <= PIECE_BYTES_MAX).then(|| Self(xxh3_64(piece)));
        }
        let mut window = [0; 16];
        window[..piece.len()].copy_from_slice(piece);
        Some(Self::short(&window, piece.len()))
    }

    /// A piece with a 1 behind it makes two words, and the second one, hashed, is mixed into the first one. Up to seven
    /// bytes the second word is 0, its hash too, and multiplying by an odd number loses nothing.
    #[inline(always)]
    fn short(window: &[u8; 16], length: usize) -> Self {
        let [mask, end] = MASKS[length];
        let words = u128::from_le_bytes(*window) & mask | end;
        let product = (words >> 64) * 0xC2B2_AE3D_27D4_EB4F;
        let second = product as u64 ^ (product >> 64) as u64;
        Self((words as u64 ^ second).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn slot(self) -> usize {
        (self.0 >> (u64::BITS - SLOTS_LOG2)) as usize
    }
}

/// By length, what of sixteen bytes belongs to a piece, and a 1 behind it.
static MASKS: [[u128; 2]; SHORT_BYTES_MAX + 1] = {
    let mut masks = [[0; 2]; SHORT_BYTES_MAX + 1];
    let mut length = 0;
    while length < masks.len() {
        let end = 1 << (8 * length);
        masks[length] = [end - 1, end];
        length += 1;
    }
    masks
};
