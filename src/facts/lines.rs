//! The stretches of a numbered body, packed: they are most of what is known of bodies, and few of them are looked at
//! again, so they stand in as few bytes as tell them apart.

use crate::base::id::Id;
use crate::base::tokenizer::Size;
use crate::base::varint;

/// A stretch of a body: one numbered line, or text between such lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BodyLine {
    /// The number that stands on the line; 0 for other text.
    pub number: u32,
    /// Witness of the line with its number and its line end ([`witness`]).
    pub text: u64,
    /// Size; those of all stretches add up to that of the body, token by token.
    pub size: Size,
}

/// Half of the witness of a text: a reference stands for two lines at least, and so for a whole one.
pub fn witness(text: &str) -> u64 {
    let Id(bytes) = Id::witness(text.as_bytes());
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[byte]))
}

/// The stretches of a body in their order. What does not fit together is read as far as it does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BodyLines {
    /// Witnesses, eight bytes each, little-endian.
    pub witnesses: Box<[u8]>,
    /// Per stretch its number (0 for one more than the last one, 1 for none, else itself and 2) and its size in bytes and
    /// tokens ([`varint`]).
    pub sizes: Box<[u8]>,
}

const NEXT: u64 = 0;
const NONE: u64 = 1;
const OTHER: u64 = 2;

impl BodyLines {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.witnesses.len() / 8
    }

    /// Whether there are none: the body has no numbered lines.
    pub fn is_empty(&self) -> bool {
        self.witnesses.is_empty()
    }

    /// The witnesses of some lines that follow each other, as bytes.
    pub fn witnesses_of(&self, first: u32, count: usize) -> &[u8] {
        &self.witnesses[8 * first as usize..][..8 * count]
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = BodyLine> {
        let (mut witnesses, mut sizes, mut last) = (&*self.witnesses, &*self.sizes, 0_u32);
        std::iter::from_fn(move || {
            let (witness, rest) = witnesses.split_first_chunk()?;
            let number = match varint::take(&mut sizes)? {
                NEXT => last.checked_add(1)?,
                NONE => 0,
                other => u32::try_from(other - OTHER).ok()?,
            };
            let mut small = || u32::try_from(varint::take(&mut sizes)?).ok();
            let size = Size { bytes: small()?, tokens: [small()?, small()?] };
            (witnesses, last) = (rest, number);
            Some(BodyLine { number, text: u64::from_le_bytes(*witness), size })
        })
    }
}

impl FromIterator<BodyLine> for BodyLines {
    fn from_iter<I: IntoIterator<Item = BodyLine>>(lines: I) -> Self {
        let (mut witnesses, mut sizes, mut last) = (Vec::new(), Vec::new(), 0);
        for BodyLine { number, text, size } in lines {
            witnesses.extend_from_slice(&text.to_le_bytes());
            let coded = match number {
                0 => NONE,
                next if Some(next) == u32::checked_add(last, 1) => NEXT,
                other => u64::from(other) + OTHER,
            };
            last = number;
            varint::put(&mut sizes, coded);
            [size.bytes].iter().chain(&size.tokens).for_each(|&number| varint::put(&mut sizes, number.into()));
        }
        Self { witnesses: witnesses.into(), sizes: sizes.into() }
    }
}
