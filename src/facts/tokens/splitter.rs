//! Cuts text into the pieces within which tokens are merged, by the class of every character: from the table that the
//! build script writes.

use crate::facts::tokens::automaton::{Automaton, Position};

/// How much is read before the pieces found in it are handed on.
const BLOCK_BYTES: usize = 1024;
/// Room for the cuts of a block and those kept from before, rounded up to a power of two.
const CUTS: usize = 2048;
/// The last two cuts may yet be taken back, and the piece before them starts at a third.
const CUTS_KEPT: usize = 3;

/// Runs an automaton over texts.
pub struct Splitter {
    automaton: &'static Automaton,
    cuts: Box<[usize; CUTS]>,
}

impl Splitter {
    /// A splitter by a pattern.
    pub fn new(automaton: &'static Automaton) -> Self {
        Self { automaton, cuts: Box::new([0; CUTS]) }
    }

    /// Calls `piece` with start and end of every piece of the text, in order.
    #[inline(always)]
    pub fn split(&mut self, text: &str, mut piece: impl FnMut(usize, usize)) {
        let cuts = &mut *self.cuts;
        let bytes = text.as_bytes();
        let mut count = 0;
        let mut position = Position::START;
        let mut at = 0;
        while at < bytes.len() {
            let block_end = bytes.len().min(at + BLOCK_BYTES);
            while at < block_end {
                let mut class = CLASS_OF_BYTE[usize::from(bytes[at])];
                let mut next = at + 1;
                if class == BEYOND_ASCII {
                    (class, next) = class_at(text, at);
                }
                position = self.automaton.next(class, position);
                count -= position.uncuts();
                cuts[count % CUTS] = at;
                count += position.cuts();
                at = next;
            }
            let mut kept = CUTS_KEPT;
            if at == bytes.len() {
                count -= self.automaton.end(position).uncuts();
                cuts[count % CUTS] = at;
                count += 1;
                kept = 1;
            }
            let Some(handed_on) = count.checked_sub(kept) else { continue };
            for &[start, end] in cuts[..=handed_on].array_windows() {
                piece(start, end);
            }
            cuts.copy_within(handed_on..count, 0);
            count = kept;
        }
    }
}

/// In [`CLASS_OF_BYTE`]: the byte is a part of a character beyond ASCII.
const BEYOND_ASCII: u8 = u8::MAX;

/// The number of the class of an ASCII character, or [`BEYOND_ASCII`].
static CLASS_OF_BYTE: [u8; 256] = {
    let mut classes = [BEYOND_ASCII; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = TABLE[BLOCKS_START + byte];
        byte += 1;
    }
    classes
};

/// Block numbers by code point, then the blocks.
static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes"));
const BLOCKS_START: usize = 0x11_0000 / 256;

/// The number of the class of the character that begins at a byte of the text, and where the next one begins.
#[inline(never)]
fn class_at(text: &str, at: usize) -> (u8, usize) {
    let character = text[at..].chars().next().unwrap_or_default();
    let code = character as usize;
    let block = BLOCKS_START + usize::from(TABLE[code / 256]) * 256;
    (TABLE[block + code % 256], at + character.len_utf8())
}
