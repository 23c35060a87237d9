//! Byte-pair merging by a vocabulary: always the possible merge of lowest rank, the leftmost of several.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter;
use std::sync::LazyLock;

/// A token, named by its rank: of two possible merges, the one to the lower rank comes first.
pub type Token = u32;

/// `o200k_base`, read when first used.
pub static O200K_BASE: LazyLock<Merges> =
    LazyLock::new(|| Merges::read(include_bytes!(concat!(env!("OUT_DIR"), "/o200k_base.merges"))));
/// `cl100k_base`, read when first used.
pub static CL100K_BASE: LazyLock<Merges> =
    LazyLock::new(|| Merges::read(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base.merges"))));

/// Tokens are numbers of so many bits.
const TOKEN_BITS: u32 = 18;
const TOKEN_MASK: u64 = (1 << TOKEN_BITS) - 1;
const FILTER_BITS: u32 = 20;

/// The tokens of single bytes, and a hash table of all pairs that join.
pub struct Merges {
    bytes: [Token; 256],
    /// A pair and the token it joins to; 0 is a free slot. Linear probing.
    slots: Box<[u64]>,
    /// One bit per hash. Most pairs do not join, and this small table knows it.
    filter: Box<[u64]>,
}

impl Merges {
    /// Reads what the build script wrote.
    fn read(table: &[u8]) -> Self {
        let (bytes, merges) = table.split_at(256);
        let (tokens, _) = merges.as_chunks::<3>();
        let (merges, _) = tokens.as_chunks::<2>();
        let mut read = Self {
            bytes: [0; 256],
            slots: vec![0; (merges.len() * 5 / 4).next_power_of_two()].into(),
            filter: vec![0; 1 << (FILTER_BITS - 6)].into(),
        };
        for (byte, token) in bytes.iter().zip(0..) {
            read.bytes[usize::from(*byte)] = token;
        }
        for (pair, token) in merges.iter().zip(256..) {
            let [left, right] = pair.map(|[low, middle, high]| Token::from_le_bytes([low, middle, high, 0]));
            read.insert(TokenPair::new(left, right), token);
        }
        read
    }

    fn insert(&mut self, pair: TokenPair, token: Token) {
        let (word, bit) = pair.filter();
        self.filter[word] |= 1 << bit;
        let slot = self.probe(pair);
        self.slots[slot] = pair.0 << TOKEN_BITS | u64::from(token);
    }

    /// The token of a byte.
    pub fn byte(&self, byte: u8) -> Token {
        self.bytes[usize::from(byte)]
    }

    /// The token that two others join to, if there is one.
    #[inline(always)]
    pub fn join(&self, left: Token, right: Token) -> Option<Token> {
        let pair = TokenPair::new(left, right);
        let (word, bit) = pair.filter();
        if self.filter[word] >> bit & 1 == 0 {
            return None;
        }
        let slot = self.slots[self.probe(pair)];
        (slot != 0).then_some((slot & TOKEN_MASK) as Token)
    }

    /// The slot of the pair or, if it has none, the free one where it would be.
    #[inline(always)]
    fn probe(&self, pair: TokenPair) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = pair.hash() as usize & mask;
        while self.slots[slot] != 0 && self.slots[slot] >> TOKEN_BITS != pair.0 {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

/// Two tokens in one number.
#[derive(Clone, Copy)]
struct TokenPair(u64);

impl TokenPair {
    fn new(left: Token, right: Token) -> Self {
        Self(u64::from(left) << TOKEN_BITS | u64::from(right))
    }

    /// The well-mixed part of a product.
    fn hash(self) -> u64 {
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
    }

    /// Word and bit in the filter.
    fn filter(self) -> (usize, u64) {
        let hash = self.hash() >> (24 - FILTER_BITS);
        ((hash >> 6) as usize, hash & 63)
    }
}

/// Up to so many bytes, a bit each, the next merge is found by looking at all of them.
const SHORT_BYTES_MAX: usize = 64;
/// Enough for the tokens in a window to settle, little enough to stay in the processor's caches.
const WINDOW_BYTES: usize = 1024;

/// How many tokens a piece is; it is not empty.
pub fn count(merges: &Merges, piece: &[u8]) -> u64 {
    if piece.len() <= SHORT_BYTES_MAX { count_short(merges, piece) } else { count_long(merges, piece, WINDOW_BYTES) }
}

/// Counts up to 64 bytes.
fn count_short(merges: &Merges, piece: &[u8]) -> u64 {
    /// A possible merge: the token, then the place in the lower six bits, so that the least one is the next.
    const NONE: u32 = u32::MAX;
    let merge = |left, right, at: usize| merges.join(left, right).map_or(NONE, |token| token << 6 | at as u32);

    let mut tokens = [0; SHORT_BYTES_MAX];
    for (token, byte) in tokens.iter_mut().zip(piece) {
        *token = merges.byte(*byte);
    }
    let mut possible = [NONE; SHORT_BYTES_MAX];
    for at in 1..piece.len() {
        possible[at - 1] = merge(tokens[at - 1], tokens[at], at - 1);
    }
    let possible = &mut possible[..piece.len()];
    // A bit for every byte at which a token starts.
    let mut starts = u64::MAX >> (u64::BITS as usize - piece.len());
    loop {
        let next = possible.iter().copied().min().unwrap_or(NONE);
        if next == NONE {
            return u64::from(starts.count_ones());
        }
        let (token, at) = (next >> 6, next as usize % SHORT_BYTES_MAX);
        let after = |starts: u64| (starts & (!1 << at)).trailing_zeros() as usize;
        let right = after(starts);
        starts ^= 1 << right;
        possible[right] = NONE;
        tokens[at] = token;
        let right = after(starts);
        possible[at] = if right < piece.len() { merge(token, tokens[right], at) } else { NONE };
        let before = starts & !(u64::MAX << at);
        if before != 0 {
            let left = before.ilog2() as usize;
            possible[left] = merge(tokens[left], token, left);
        }
    }
}

/// Counts any piece, window by window, so that memory does not grow with it.
///
/// The tokens of a window are those of the piece, except perhaps near its end. Whether enough was left out there shows
/// at the next window: tokens are right if and only if any two neighbours, merged by themselves, stay what they are. If
/// they do not, everything is done again with larger windows.
///
/// A window must have room for two of the longest tokens (128 bytes).
pub fn count_long(merges: &Merges, piece: &[u8], mut window_bytes: usize) -> u64 {
    let mut count = 0;
    let mut start = 0;
    let mut last_start = 0;
    loop {
        let window = &piece[start..piece.len().min(start + window_bytes)];
        let ends = token_ends(merges, window);
        let (left, right) = (start - last_start, ends[0]);
        if left > 0 && token_ends(merges, &piece[last_start..start + right]) != [left, left + right] {
            window_bytes *= 2;
            (count, start, last_start) = (0, 0, 0);
            continue;
        }
        if start + window.len() == piece.len() {
            return count + ends.len() as u64;
        }
        let settled = ends.partition_point(|end| *end <= window_bytes - window_bytes / 8);
        count += settled as u64;
        last_start = start + if settled > 1 { ends[settled - 2] } else { 0 };
        start += ends[settled - 1];
    }
}

/// Where the tokens of a text end.
fn token_ends(merges: &Merges, text: &[u8]) -> Vec<usize> {
    /// No token, no merge.
    const NONE: Token = Token::MAX;
    let join = |left, right| merges.join(left, right).unwrap_or(NONE);
    // A possible merge: the token, then the place, so that the least one is the next.
    let merge = |token: Token, at: u32| (token != NONE).then(|| Reverse(u64::from(token) << 32 | u64::from(at)));

    let length = text.len() as u32;
    let mut tokens: Vec<Token> = text.iter().map(|byte| merges.byte(*byte)).collect();
    // By start of a token: what it joins to with the next one, where it ends, where the one before it starts.
    let mut joined: Vec<Token> = tokens.windows(2).map(|pair| join(pair[0], pair[1])).collect();
    joined.push(NONE);
    let mut ends: Vec<u32> = (1..=length).collect();
    let mut before: Vec<u32> = (0..length).map(|at| at.saturating_sub(1)).collect();
    let mut queue: BinaryHeap<Reverse<u64>> =
        joined.iter().zip(0..).filter_map(|(token, at)| merge(*token, at)).collect();
    while let Some(Reverse(next)) = queue.pop() {
        let (token, start) = ((next >> 32) as Token, next as u32);
        let at = start as usize;
        if joined[at] != token {
            // One of the two has been joined with another since.
            continue;
        }
        let right = ends[at] as usize;
        let end = ends[right];
        tokens[at] = token;
        ends[at] = end;
        joined[right] = NONE;
        joined[at] = NONE;
        if end < length {
            before[end as usize] = start;
            joined[at] = join(token, tokens[end as usize]);
            queue.extend(merge(joined[at], start));
        }
        if at > 0 {
            let left = before[at];
            joined[left as usize] = join(tokens[left as usize], token);
            queue.extend(merge(joined[left as usize], left));
        }
    }
    iter::successors(ends.first().copied(), |end| ends.get(*end as usize).copied()).map(|end| end as usize).collect()
}
