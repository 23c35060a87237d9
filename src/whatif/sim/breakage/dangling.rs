//! Hints that lost their targets: a deduplicated answer points at an earlier one that a policy has removed.

use crate::logs::timeline::requests::{NONE, Timeline};
use crate::whatif::sim::breakage::rows::{Break, Class};
use crate::whatif::sim::view::ContextView;

use crate::whatif::sim::breakage::shown::Kept;

/// One hint: the answer in `block` was replaced by a pointer to the answer in `target`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hint {
    /// Index into [`Timeline::blocks`] of the answer that became a hint.
    pub block: u32,
    /// Index of the answer that it points at.
    pub target: u32,
}

/// The hints of a sent context whose targets are gone or cut. A hint dangles at every request that carries it; callers
/// that count hints keep the first break of each call.
pub fn dangling(timeline: &Timeline, request: u32, hints: &[Hint], sent: &ContextView) -> Vec<Break> {
    if hints.is_empty() {
        return Vec::new();
    }
    let kept = Kept::of(sent);
    let is_whole = |block: u32| kept.chars(block).is_some_and(|chars| chars >= timeline.blocks[block as usize].chars);
    let lost = hints.iter().filter(|hint| kept.chars(hint.block).is_some() && !is_whole(hint.target));
    lost.map(|hint| Break {
        request,
        call: timeline.blocks[hint.block as usize].call,
        class: Class::DanglingRef,
        reading: NONE,
        reread_tokens: 0,
        is_reading: false,
        is_upper_bound: false,
    })
    .collect()
}
