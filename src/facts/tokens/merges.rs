//! A vocabulary: which two tokens join to which third.

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
