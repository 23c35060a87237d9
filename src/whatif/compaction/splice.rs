//! The log as if its own compactions had not been: what stood before them stays, and what they brought is left out.
//!
//! Left out are the summary and what came with it unasked (injected texts, the residual of the first request). What the
//! person wrote and what tools gave back stays. The last output before a compaction was never measured by a next
//! request, so its size is an estimate.
//!
//! And where the part of a context begins that a virtual compaction keeps.

use std::collections::BTreeMap;

use crate::logs::timeline::requests::{Block, BlockKind, NONE, SegmentCause, Timeline};
use crate::whatif::compaction::params::Align;
use crate::whatif::sim::breakage::detect::root_of;
use crate::whatif::sim::laid_out::item;
use crate::whatif::sim::view::{ContextView, Item, ItemKey};

/// What is remembered along a chain.
#[derive(Clone, Default, Debug)]
pub struct Splice {
    /// By the segment that a compaction opens: a conversation may go back to before its last one.
    joints: BTreeMap<u32, Joint>,
    /// Segment and context of the last request.
    seen: Option<(u32, Vec<Item>)>,
}

/// One compaction of the log, taken out.
#[derive(Clone, Default, Debug)]
struct Joint {
    before: Vec<Item>,
    brought: Vec<ItemKey>,
}

impl Splice {
    /// Puts what came before the log's compactions in front of the `view` of a request. `tokens` are the sizes of
    /// [`Timeline::blocks`].
    pub fn apply(&mut self, timeline: &Timeline, request: u32, tokens: &[u32], view: &mut ContextView) {
        let segment = timeline.request(request).segment;
        let root = root_of(timeline, segment);
        let is_new = self.seen.as_ref().is_none_or(|&(last, _)| last != segment);
        if is_new && root == segment && timeline.segments[segment as usize].cause == SegmentCause::Compaction {
            let joint = self.joint(timeline, segment, tokens);
            self.joints.insert(segment, joint);
        }
        if let Some(joint) = self.joints.get(&root) {
            view.items.retain(|item| !joint.brought.contains(&item.key));
            view.items.splice(0..0, joint.before.iter().copied());
        }
        let (known, items) = self.seen.get_or_insert_default();
        *known = segment;
        items.clone_from(&view.items);
    }

    fn joint(&self, timeline: &Timeline, segment: u32, tokens: &[u32]) -> Joint {
        let first = timeline.segments[segment as usize].requests.start;
        let (Some((_, seen)), Some(last)) = (&self.seen, first.checked_sub(1)) else { return Joint::default() };
        let mut before = seen.clone();
        before.extend(timeline.request(last).outputs.clone().map(|block| item(timeline, tokens, block)));
        Joint { before, brought: brought(timeline, first) }
    }
}

fn brought(timeline: &Timeline, request: u32) -> Vec<ItemKey> {
    let unasked =
        |&block: &u32| matches!(timeline.blocks[block as usize].kind, BlockKind::Summary | BlockKind::Injected);
    let blocks = timeline.request(request).inputs.clone().filter(unasked).map(ItemKey::Block);
    blocks.chain([ItemKey::Residual(request)]).collect()
}

/// Whether a context goes on in a segment: not where the log compacted, and not where a chain begins.
pub fn goes_on(timeline: &Timeline, segment: u32) -> bool {
    timeline.segments[segment as usize].after != NONE
}

/// The index at which the sizes from there to the end first reach `target`; none if everything would be kept. This is
/// upstream's whole rule (policies.md 3.1), in whatever unit the sizes are.
pub fn by_target(sizes: impl DoubleEndedIterator<Item = u64> + ExactSizeIterator, target: u64) -> Option<usize> {
    let mut sum = 0;
    let reached = sizes.enumerate().rev().find(|&(_, size)| {
        sum += size;
        sum >= target
    });
    reached.map(|(index, _)| index).filter(|&index| index > 0)
}

/// The item at which the tail begins: the newest place at or before [`by_target`] where a message of the wanted kind
/// begins and no result stands without its call. None if there is no such place but the very start. Among the first `sought`
/// items there is none, nor will there be as long as others only come behind them: what was looked through in vain is added.
pub fn start(timeline: &Timeline, items: &[Item], sought: &mut usize, keep_tokens: u64, align: Align) -> Option<usize> {
    let newest = by_target(items.iter().map(|item| u64::from(item.tokens)), keep_tokens)?;
    let oldest_block = items.iter().find_map(|item| item.key.block()).unwrap_or(NONE);
    // A residual alone is nothing to summarise.
    let first = items.iter().position(|item| !matches!(item.key, ItemKey::Residual(_)))?;
    let mut oldest_asked = NONE;
    for index in ((first + 1).max(*sought)..items.len()).rev() {
        let Some(here) = items[index].key.block() else { continue };
        let asked = asked_by_result(timeline, here).filter(|&asked| asked >= oldest_block);
        oldest_asked = oldest_asked.min(asked.unwrap_or(NONE));
        let is_whole = oldest_asked >= here;
        if index <= newest && is_whole && begins_message(timeline, items, index, align) {
            return Some(index);
        }
    }
    *sought = newest + 1;
    None
}

/// Of a result: the block that asked for it.
fn asked_by_result(timeline: &Timeline, index: u32) -> Option<u32> {
    let block = timeline.blocks[index as usize];
    (block.kind == BlockKind::ToolResult && block.call != NONE).then(|| timeline.calls[block.call as usize].asked)
}

/// An answer is one message; of a user record each result is one, and what else it says another.
fn begins_message(timeline: &Timeline, items: &[Item], index: usize, align: Align) -> bool {
    let of = |item: &Item| item.key.block().map(|block| timeline.blocks[block as usize]);
    let Some(here) = of(&items[index]) else { return false };
    let is_continued = of(&items[index - 1]).is_some_and(|before| is_same_message(&before, &here));
    if is_continued {
        return false;
    }
    let message =
        items[index..].iter().map_while(of).take_while(|block| block == &here || is_same_message(&here, block));
    match align {
        Align::Message => true,
        Align::Turn => message.into_iter().any(|block| block.kind == BlockKind::Human),
    }
}

fn is_same_message(a: &Block, b: &Block) -> bool {
    if a.kind.is_output() || b.kind.is_output() {
        return a.kind.is_output() && b.kind.is_output();
    }
    a.record == b.record && a.kind != BlockKind::ToolResult && b.kind != BlockKind::ToolResult
}
