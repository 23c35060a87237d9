//! Where the words of a text begin and end, and which of them have a mark that a path, an address or an id may have.

use crate::base::block::{BLOCK_BYTES, within};

/// Bytes whose bounds are known at a time.
const CHUNK_BYTES: usize = 64;

/// What stands between words: blanks and control characters, quotes, brackets, and signs that no path has.
const SEPARATORS: [(u8, u8); 8] =
    [(0, b'"'), (b'$', b'$'), (b'&', b'*'), (b',', b','), (b';', b'?'), (b'[', b'^'), (b'`', b'`'), (b'{', b'}')];

/// Dot, slash, digits, colon.
const MARKS: [(u8, u8); 1] = [(b'.', b':')];

/// The bounds of the words of a text.
pub struct WordBounds<'t> {
    /// The text.
    pub text: &'t [u8],
    /// What is known of the bytes from here: a bit for each.
    from: usize,
    separators: u64,
    marks: u64,
}

impl<'t> WordBounds<'t> {
    /// The bounds in a text.
    pub fn of(text: &'t [u8]) -> Self {
        let mut bounds = Self { text, from: 0, separators: 0, marks: 0 };
        bounds.look(0);
        bounds
    }

    /// Where the first word at or behind a place begins; the length of the text if there is none.
    pub fn start(&mut self, mut at: usize) -> usize {
        while at < self.text.len() {
            let place = self.place_of(at);
            let words = !self.separators >> place;
            if words != 0 {
                return at + words.trailing_zeros() as usize;
            }
            at = self.from + CHUNK_BYTES;
        }
        self.text.len()
    }

    /// Where the word that goes on at a place ends, and whether it has a mark from there on.
    pub fn end(&mut self, mut at: usize) -> (usize, bool) {
        let mut is_marked = false;
        while at < self.text.len() {
            let place = self.place_of(at);
            let (separators, marks) = (self.separators >> place, self.marks >> place);
            if separators != 0 {
                let before = (1_u64 << separators.trailing_zeros()) - 1;
                return (at + separators.trailing_zeros() as usize, is_marked || marks & before != 0);
            }
            is_marked |= marks != 0;
            at = self.from + CHUNK_BYTES;
        }
        (self.text.len(), is_marked)
    }

    /// The bit of a byte, whose bounds are known then.
    fn place_of(&mut self, at: usize) -> usize {
        let place = at % CHUNK_BYTES;
        if at - place != self.from {
            self.look(at - place);
        }
        place
    }

    fn look(&mut self, from: usize) {
        let mut padded = [b' '; CHUNK_BYTES];
        let rest = &self.text[from..];
        let chunk = rest.first_chunk().unwrap_or_else(|| {
            padded[..rest.len()].copy_from_slice(rest);
            &padded
        });
        (self.from, self.separators, self.marks) = (from, 0, 0);
        for (place, block) in chunk.as_chunks::<BLOCK_BYTES>().0.iter().enumerate() {
            self.separators |= u64::from(within(block, SEPARATORS)) << (BLOCK_BYTES * place);
            self.marks |= u64::from(within(block, MARKS)) << (BLOCK_BYTES * place);
        }
    }
}
