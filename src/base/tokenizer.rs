//! How tokens are counted: by a byte-pair vocabulary, or by a ratio of characters.

use serde::{Deserialize, Serialize};

/// The vocabularies for which exact counts are kept, in the order of [`TokenCounts`].
pub const VOCABULARIES: [Bpe; 2] = [Bpe::O200kBase, Bpe::Cl100kBase];

/// How a tokenizer profile counts (spellings of the configuration).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Bpe {
    /// Bytes by `chars_per_token`.
    Heuristic,
    #[serde(rename = "cl100k_base", alias = "cl100k")]
    Cl100kBase,
    #[serde(rename = "o200k_base", alias = "o200k")]
    O200kBase,
}

impl Bpe {
    /// Place of the vocabulary in [`VOCABULARIES`]; none for the ratio.
    pub fn place(self) -> Option<usize> {
        VOCABULARIES.iter().position(|&known| known == self)
    }
}

/// Tokens by vocabulary, in the order of [`VOCABULARIES`]; 0 where the vocabulary was not counted.
pub type TokenCounts = [u32; VOCABULARIES.len()];

/// Size of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Size {
    /// UTF-8 bytes.
    pub bytes: u32,
    pub tokens: TokenCounts,
}

impl Size {
    /// The size of two texts, one behind the other, where no token spans the joint.
    pub fn plus(&self, other: &Self) -> Self {
        let tokens = std::array::from_fn(|place| self.tokens[place] + other.tokens[place]);
        Self { bytes: self.bytes + other.bytes, tokens }
    }
}

/// What replaces a ratio that makes no sense (published constant).
const CHARS_PER_TOKEN: f64 = 3.5;

/// A way to count that is settled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Counting {
    /// The vocabulary at this place of [`VOCABULARIES`].
    Exact(usize),
    /// Bytes per token.
    Ratio(f64),
}

impl Counting {
    /// How a tokenizer profile counts.
    pub fn new(bpe: Bpe, chars_per_token: f64) -> Self {
        let usable = chars_per_token.is_finite() && chars_per_token > 0.0;
        let ratio = if usable { chars_per_token } else { CHARS_PER_TOKEN };
        bpe.place().map_or(Self::Ratio(ratio), Self::Exact)
    }

    /// Tokens of a text of this size. By a ratio: `ceil(bytes / chars_per_token)`, 0 for the empty text (published
    /// formula).
    pub fn tokens(self, size: &Size) -> u64 {
        match self {
            Self::Exact(place) => size.tokens[place].into(),
            Self::Ratio(ratio) => (f64::from(size.bytes) / ratio).ceil() as u64,
        }
    }

    /// The name in reports.
    pub fn name(self) -> String {
        match self {
            Self::Exact(place) => VOCABULARIES[place].into_str().to_owned(),
            Self::Ratio(ratio) => format!("{ratio} bytes per token"),
        }
    }
}
