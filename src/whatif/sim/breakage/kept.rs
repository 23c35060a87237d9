//! Whether a place of a block is in a context.

use crate::logs::timeline::requests::Occurrence;
use crate::whatif::sim::view::{ContextView, Key};

/// The blocks of a context with how much of each is kept. Made per request, and only where something is to be looked up:
/// contexts have thousands of items.
pub struct Kept(Vec<(u32, u32)>);

impl Kept {
    /// The blocks of `view`.
    pub fn of(view: &ContextView) -> Self {
        let block = |item: &crate::whatif::sim::view::Item| match item.key {
            Key::Block(block) => Some((block, item.kept_chars)),
            Key::Residual(_) | Key::Made(_) => None,
        };
        let mut blocks: Vec<(u32, u32)> = view.items.iter().filter_map(block).collect();
        if !blocks.is_sorted() {
            blocks.sort_unstable();
        }
        Self(blocks)
    }

    /// Leading code points of a block that are kept; none if it is not there at all.
    pub fn chars(&self, block: u32) -> Option<u32> {
        self.0.binary_search_by_key(&block, |&(known, _)| known).ok().map(|place| self.0[place].1)
    }

    /// Whether the context still shows this occurrence.
    pub fn shows(&self, occurrence: &Occurrence) -> bool {
        self.chars(occurrence.block).is_some_and(|kept| occurrence.end_chars <= kept)
    }

    /// The oldest block.
    pub fn first(&self) -> Option<u32> {
        self.0.first().map(|&(block, _)| block)
    }
}
