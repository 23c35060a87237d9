//! 128-bit names for things whose text must not be kept. [`Id::of`] (XXH3-128) joins rows inside one machine's lake: message
//! ids, call ids, record ids, bodies. [`Id::pseudonym`] (SHA-256) names what may be shown or exported: sessions, projects,
//! files. [`Id::witness`] (SHA-256) stands for a text where a hint claims that two texts are equal. Prefixes are not anonymous
//! against somebody who can guess the text.

use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A 128-bit hash. All zero means "none".
#[derive(Clone, Copy, Eq, PartialOrd, Ord, Default)]
pub struct Id(pub [u8; 16]);

impl Id {
    /// No text at all, for instance a record without the field.
    pub const NONE: Self = Self([0; 16]);

    /// XXH3-128 of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxhash_rust::xxh3::xxh3_128(bytes).to_be_bytes())
    }

    /// The first 128 bits of SHA-256 of `bytes`.
    pub fn pseudonym(bytes: &[u8]) -> Self {
        Self::pseudonym_of(Sha256::new_with_prefix(bytes))
    }

    /// The same of bytes that went by in parts.
    pub fn pseudonym_of(parts: Sha256) -> Self {
        let digest = parts.finalize();
        let mut out = [0; 16];
        out.copy_from_slice(&digest[..16]);
        Self(out)
    }

    /// What two texts are compared by once they are gone: nobody can write two different ones with the same witness.
    /// The one place where that function is chosen.
    pub fn witness(bytes: &[u8]) -> Self {
        Self::pseudonym(bytes)
    }

    /// True unless this is [`Id::NONE`].
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// Reads what [`fmt::Display`] wrote: 32 hex digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits: &[u8; 32] = text.as_bytes().try_into().ok()?;
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
        let mut out = [0; 16];
        for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(out))
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(IdText)
    }
}

/// An id where it stands: manifests hold several for every file.
struct IdText;

impl Visitor<'_> for IdText {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Id, E> {
        Id::from_hex(text).ok_or_else(|| E::custom("an id is malformed"))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Manifests hold several for every file: in one go, not digit by digit.
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 32];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        #[cfg(test)]
        work::step();
        self.0 == other.0
    }
}

#[cfg(test)]
#[path = "../tests/id_work.rs"]
pub mod work;

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        #[cfg(test)]
        work::step();
        let mut low = [0; 8];
        low.copy_from_slice(&self.0[8..]);
        state.write_u64(u64::from_le_bytes(low));
    }
}

/// Hashes an [`Id`] by itself: it is a hash already.
#[derive(Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 ^= value;
    }

    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0.rotate_left(29) ^ u64::from(value)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// A map keyed by [`Id`] (or a pair of an id and a small number).
pub type IdMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<IdHasher>>;
/// A set of [`Id`]s.
pub type IdSet<K> = std::collections::HashSet<K, BuildHasherDefault<IdHasher>>;
