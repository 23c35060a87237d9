//! What is known of one body once its text is gone: all that a replay needs, whatever configuration it replays.
//!
//! Facts follow from the text alone, so a body that many calls return is looked at once. The stretches of a numbered body,
//! and the lines that can be quoted from one, are packed: they are most of what is known of bodies, nearly all are shown by
//! every encoding, and few of them are looked at again. So they stand in as few bytes as tell them apart.

use std::ops::{Deref, DerefMut};

use rayon::prelude::*;

use crate::base::body_shape::{KeptLines, Showing};
use crate::base::id::{Id, IdSet};
use crate::base::tokenizer::Size;
use crate::base::varint;
use crate::facts::shape::Description;

/// Drops the texts that no call quotes, if these are all facts: of what is known of bodies few are ever asked for.
pub fn keep_quoted(facts: &mut [BodyFacts]) {
    let quotes = facts.iter().filter(|facts| facts.is_quote());
    let quoted: IdSet<u32> = quotes.flat_map(|facts| facts.texts.hashes().iter().copied()).collect();
    facts.par_iter_mut().for_each(|facts| facts.texts.keep(|hash| quoted.contains(&hash)));
}

/// What of the facts about bodies a question asks for: lines and texts are most of what is known of bodies, and hardly any of
/// them matter to it. Facts with numbered lines and quotes are shown to it, others may be; then all are handed to it one by one.
pub trait WantedFacts: Sync {
    /// Whether it looks at any before it takes them.
    fn looks(&self) -> bool {
        true
    }

    /// Looks at facts, in any order: whose they are, the witnesses of lines, and the texts of a quote.
    fn see(&self, facts: &BodyFacts);

    /// Drops what is not asked for, once all were seen; says whether the rest is asked for.
    fn keep(&self, facts: &mut BodyFacts) -> bool;
}

/// Asks for sizes alone.
pub struct SizesAlone;

impl WantedFacts for SizesAlone {
    fn looks(&self) -> bool {
        false
    }

    fn see(&self, _: &BodyFacts) {}

    fn keep(&self, facts: &mut BodyFacts) -> bool {
        (facts.lines, facts.texts) = Default::default();
        true
    }
}

/// Drops what is not asked for of some facts.
pub fn keep_wanted(facts: &mut Vec<BodyFacts>, wanted: &dyn WantedFacts) {
    let kept: Vec<bool> = facts.par_iter_mut().map(|facts| wanted.keep(facts)).collect();
    let mut kept = kept.into_iter();
    facts.retain(|_| kept.next().unwrap_or_default());
}

/// One proven way to write the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encoding {
    /// Number of the format in the register of formats.
    pub format: u8,
    /// The recursion depth from which on this size holds; 0 for formats that do not depend on it.
    pub depth: u8,
    /// Size of the encoded text.
    pub size: Size,
    /// What of the body can be quoted from it.
    pub kept: KeptLines,
}

/// A top-level field of a JSON object, as far as a near-reference needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NearField {
    /// Witness of the value's text.
    pub value: Id,
    /// Whether key and value can stand in a hint without being misread.
    pub plain: bool,
    /// Size of `, key: value`.
    pub old: Size,
    /// Size of `→value`.
    pub new: Size,
}

/// What decides whether one JSON object is another one with a few changed scalars.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NearSignature {
    /// Witness of the body without its top-level scalar values: all of its other bytes, with the types of the values.
    pub skeleton: Id,
    /// The scalar values, in the order of the body.
    pub fields: Vec<NearField>,
}

/// The facts about one body.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BodyFacts {
    /// XXH3-128 of the text: joins with [`crate::logs::trace::ToolResult::body`].
    pub body: Id,
    /// First 16 bytes of SHA-256 of the text: the published fingerprint.
    pub sha: Id,
    /// Vocabularies counted, one bit each.
    pub counted: u8,
    /// Length in code points.
    pub chars: u32,
    /// Size as it stands.
    pub raw: Size,
    /// Number of the [`crate::base::body_shape::BodyShape`].
    pub shape: u8,
    /// Inner formats, one bit each.
    pub inner_formats: u16,
    /// Whether the client cut the result down to this: the whole stands in a file that the body names.
    pub preview: bool,
    /// Whether the body was too large to be written in other ways.
    pub oversize: bool,
    /// Ways to write it that did not give it back: not used.
    pub unproven: u16,
    /// What is known of a body that can be written in other ways. Most bodies cannot, and there are very many.
    pub forms: SeldomForms,
    /// For a JSON object: what a near-reference needs. Most bodies are none, and there are very many.
    pub near: Option<Box<NearSignature>>,
    /// For numbered lines: the lines.
    pub lines: BodyLines,
    /// How the body shows the text of files, by its look alone.
    pub look: Showing,
    /// The lines that can be quoted, by hash.
    pub texts: LineHashes,
}

/// What is known of a body with structure.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BodyForms {
    /// The measures that belong to its shape.
    pub measures: Description,
    /// What the published router would have sent instead, whether or not anything can be read back from it.
    pub published: Option<Size>,
    /// The ways to write it that give it back, by format and then by depth.
    pub encodings: Vec<Encoding>,
}

static NO_FORMS: BodyForms = BodyForms {
    measures: Description { columns: 0, rows: 0, items: 0, fields: 0, key_stability: 0.0, depth: 0 },
    published: None,
    encodings: Vec::new(),
};

/// [`BodyForms`] that take no room until something of them is known.
#[derive(Clone, Debug, Default)]
pub struct SeldomForms(Option<Box<BodyForms>>);

impl Deref for SeldomForms {
    type Target = BodyForms;

    fn deref(&self) -> &BodyForms {
        self.0.as_deref().unwrap_or(&NO_FORMS)
    }
}

impl DerefMut for SeldomForms {
    fn deref_mut(&mut self) -> &mut BodyForms {
        self.0.get_or_insert_default()
    }
}

impl PartialEq for SeldomForms {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

/// A log has hundreds of thousands of bodies.
const _: () = assert!(size_of::<BodyFacts>() <= 96);

impl BodyFacts {
    /// The name under which is kept what a call of a message quotes: these are no facts about a body, but kept like them.
    pub fn quoted_by(message: Id, call: Id) -> Id {
        Id::of(&[b"quoted by ", message.0.as_slice(), &call.0].concat())
    }

    /// Whether these are no facts about a body, but what some call quotes.
    pub fn is_quote(&self) -> bool {
        self.raw == Size::default() && !self.texts.is_empty()
    }
}

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

/// The stretches of a body in their order. What does not fit together is read as far as it does. Most bodies have none, and
/// there are very many.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BodyLines(Option<Box<PackedLines>>);

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct PackedLines {
    /// Witnesses, eight bytes each, little-endian.
    witnesses: Box<[u8]>,
    /// Per stretch its number (0 for one more than the last one, 1 for none, else itself and 2) and its size in bytes and
    /// tokens ([`varint`]).
    sizes: Box<[u8]>,
}

const NEXT: u64 = 0;
const NONE: u64 = 1;
const OTHER: u64 = 2;

impl BodyLines {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.witnesses().len() / 8
    }

    /// Whether there are none: the body has no numbered lines.
    pub fn is_empty(&self) -> bool {
        self.witnesses().is_empty()
    }

    /// The witnesses, packed.
    pub fn witnesses(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |packed| &packed.witnesses)
    }

    /// Numbers and sizes, packed.
    pub fn sizes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |packed| &packed.sizes)
    }

    /// Puts packed witnesses in the place of these.
    pub fn set_witnesses(&mut self, packed: Box<[u8]>) {
        self.set(packed, |lines| &mut lines.witnesses);
    }

    /// Puts packed numbers and sizes in the place of these.
    pub fn set_sizes(&mut self, packed: Box<[u8]>) {
        self.set(packed, |lines| &mut lines.sizes);
    }

    fn set(&mut self, packed: Box<[u8]>, place: fn(&mut PackedLines) -> &mut Box<[u8]>) {
        if self.0.is_some() || !packed.is_empty() {
            *place(self.0.get_or_insert_default()) = packed;
        }
    }

    /// The witnesses of some lines that follow each other, as bytes.
    pub fn witnesses_of(&self, first: u32, count: usize) -> &[u8] {
        &self.witnesses()[8 * first as usize..][..8 * count]
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = BodyLine> {
        let (mut witnesses, mut sizes, mut last) = (self.witnesses(), self.sizes(), 0_u32);
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
        let mut packed = Self::default();
        packed.set_witnesses(witnesses.into());
        packed.set_sizes(sizes.into());
        packed
    }
}

/// A line that can be quoted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    /// Hash of the line, white space around it left out. For counting: two lines may share one.
    pub hash: u32,
    /// The formats whose encoding does not show the line as it is, one bit each by number in the register.
    pub lost_in: u32,
}

/// The lines of one body, by hash. Few bodies have any once it is known which are quoted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LineHashes(Option<Box<HashedLines>>);

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct HashedLines {
    hashes: Box<[u32]>,
    /// Which of them some formats lose, in their order, and those formats.
    lost: Box<[(u32, u32)]>,
}

impl LineHashes {
    /// The lines with these hashes, of which nothing is lost.
    pub fn of_hashes(hashes: impl Iterator<Item = u32>) -> Self {
        Self::new(hashes.collect(), Box::default())
    }

    fn new(hashes: Box<[u32]>, lost: Box<[(u32, u32)]>) -> Self {
        Self((!hashes.is_empty()).then(|| Box::new(HashedLines { hashes, lost })))
    }

    /// Their hashes.
    pub fn hashes(&self) -> &[u32] {
        self.0.as_ref().map_or(&[], |lines| &lines.hashes)
    }

    fn lost(&self) -> &[(u32, u32)] {
        self.0.as_ref().map_or(&[], |lines| &lines.lost)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = Text> {
        let mut lost = self.lost().iter().peekable();
        (0..).zip(self.hashes()).map(move |(place, &hash)| {
            let lost_in = lost.next_if(|(at, _)| *at == place).map_or(0, |&(_, formats)| formats);
            Text { hash, lost_in }
        })
    }

    /// The places of the lines that a format loses, in their order.
    pub fn lost_in(&self, format: u8) -> impl Iterator<Item = u32> {
        self.lost().iter().filter(move |(_, formats)| formats >> format & 1 == 1).map(|&(place, _)| place)
    }

    /// Drops all but those whose hashes are wanted.
    pub fn keep(&mut self, is_wanted: impl Fn(u32) -> bool) {
        if !self.hashes().iter().all(|hash| is_wanted(*hash)) {
            *self = self.iter().filter(|text| is_wanted(text.hash)).collect();
        }
    }

    /// Notes what a format loses, by places in any order; a place beyond the lines is none.
    pub fn lose(&mut self, format: u8, places: impl Iterator<Item = u32>) {
        let Some(HashedLines { hashes, lost }) = self.0.as_deref_mut() else { return };
        let mut all = std::mem::take(lost).into_vec();
        all.extend(places.filter(|&place| (place as usize) < hashes.len()).map(|place| (place, 1 << format)));
        all.sort_unstable_by_key(|(place, _)| *place);
        all.dedup_by(|next, one| {
            let same = next.0 == one.0;
            one.1 |= if same { next.1 } else { 0 };
            same
        });
        *lost = all.into();
    }
}

impl FromIterator<Text> for LineHashes {
    fn from_iter<I: IntoIterator<Item = Text>>(texts: I) -> Self {
        let texts = texts.into_iter();
        let (mut hashes, mut lost) = (Vec::with_capacity(texts.size_hint().0), Vec::new());
        for (place, Text { hash, lost_in }) in (0..).zip(texts) {
            hashes.push(hash);
            lost.extend((lost_in != 0).then_some((place, lost_in)));
        }
        Self::new(hashes.into(), lost.into())
    }
}
