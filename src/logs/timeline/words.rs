//! The words of what people and the model wrote, without order. There are very many of them and few different ones, so
//! each hash stands once, and no room is left between the words that number it.

use std::ops::Range;

use crate::base::id::IdMap;
use crate::base::words::TextWord;

/// One word of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word {
    /// XXH3-64 of the word in lower case.
    pub hash: u64,
    /// How often it occurs.
    pub count: u16,
    /// Where it first occurs, in steps of [`Word::STEP_CHARS`].
    pub position: u8,
}

impl Word {
    /// Code points per step of [`Word::position`].
    pub const STEP_CHARS: usize = 500;
}

/// A [`Word`] with the number of its hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C, packed)]
pub struct Numbered {
    /// Index into [`WordIndex::hashes`].
    pub number: u32,
    /// See [`Word::count`].
    pub count: u16,
    /// See [`Word::position`].
    pub position: u8,
}

/// The words of many texts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WordIndex {
    hashes: Vec<u64>,
    rows: Vec<Numbered>,
}

impl WordIndex {
    /// Words of these hashes; none if one has a number that is no hash's.
    pub fn of_parts(hashes: Vec<u64>, rows: Vec<Numbered>) -> Option<Self> {
        rows.iter().all(|row| (row.number as usize) < hashes.len()).then_some(Self { hashes, rows })
    }

    /// Their hashes, and themselves.
    pub fn into_parts(self) -> (Vec<u64>, Vec<Numbered>) {
        (self.hashes, self.rows)
    }

    /// The hashes, in the order in which words first have them.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// The words.
    pub fn rows(&self) -> &[Numbered] {
        &self.rows
    }

    /// Those of one text.
    pub fn of(&self, range: Range<u32>) -> impl Iterator<Item = Word> {
        let rows = &self.rows[range.start as usize..range.end as usize];
        rows.iter().map(|&Numbered { number, count, position }| Word {
            hash: self.hashes[number as usize],
            count,
            position,
        })
    }

    /// The same hashes without any word.
    #[must_use]
    pub fn without_rows(&self) -> Self {
        Self { hashes: self.hashes.clone(), rows: Vec::new() }
    }

    /// Adds those of one text of words that have the same hashes; tells where they stand.
    pub fn take(&mut self, from: &Self, range: &Range<u32>) -> Range<u32> {
        let start = self.rows.len() as u32;
        self.rows.extend_from_slice(&from.rows[range.start as usize..range.end as usize]);
        start..self.rows.len() as u32
    }
}

/// Words that are being gathered.
#[derive(Default)]
pub struct WordList {
    words: WordIndex,
    /// Numbers of the hashes; empty where nobody asked for one yet.
    known: IdMap<u64, u32>,
    /// Of the text at hand: hash and position of each word.
    met: Vec<(u64, u8)>,
}

impl WordList {
    /// The place of the next one.
    pub fn end(&self) -> u32 {
        self.words.rows.len() as u32
    }

    /// Makes room for so many.
    pub fn reserve(&mut self, words: usize) {
        self.words.rows.reserve_exact(words);
    }

    /// Adds one.
    pub fn push(&mut self, word: Word) {
        let Word { hash, count, position } = word;
        let number = self.number(hash);
        self.words.rows.push(Numbered { number, count, position });
    }

    /// Adds the words of a text, each once; tells where they stand.
    pub fn count<'t>(&mut self, pieces: impl Iterator<Item = TextWord<'t>>) -> Range<u32> {
        let position = |piece: &TextWord<'_>| u8::try_from(piece.start_chars / Word::STEP_CHARS).unwrap_or(u8::MAX);
        let mut met = std::mem::take(&mut self.met);
        met.clear();
        met.extend(pieces.map(|piece| (piece.hash(), position(&piece))));
        // Of one word the first place comes first.
        met.sort_unstable();
        let start = self.end();
        for same in met.chunk_by(|one, other| one.0 == other.0) {
            let (hash, position) = same[0];
            self.push(Word { hash, count: u16::try_from(same.len()).unwrap_or(u16::MAX), position });
        }
        self.met = met;
        start..self.end()
    }

    /// Adds those of another file behind all others.
    pub fn append(&mut self, mut words: WordIndex) {
        if self.words.hashes.is_empty() && self.words.rows.capacity() == 0 {
            self.words = words;
            return;
        }
        let numbers: Vec<u32> = words.hashes.iter().map(|&hash| self.number(hash)).collect();
        words.rows.iter_mut().for_each(|row| row.number = numbers[row.number as usize]);
        self.words.rows.append(&mut words.rows);
    }

    /// All of them, without room to grow.
    pub fn finish(mut self) -> WordIndex {
        self.words.rows.shrink_to_fit();
        self.words
    }

    fn number(&mut self, hash: u64) -> u32 {
        let hashes = &mut self.words.hashes;
        if self.known.len() < hashes.len() {
            self.known.extend((0..).zip(&*hashes).map(|(number, &hash)| (hash, number)));
        }
        let next = hashes.len() as u32;
        let number = *self.known.entry(hash).or_insert(next);
        if number == next {
            hashes.push(hash);
        }
        number
    }
}
