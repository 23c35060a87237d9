//! Cuts text into the pieces within which tokens are merged.

use crate::facts::tokens::automaton::{Automaton, Position};
use crate::facts::tokens::character::{BEYOND_ASCII, CLASS_OF_BYTE, class_at};

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
