//! The log as if its own compactions had not been: what stood before them stays, and what they brought is left out.
//!
//! Left out are the summary and what came with it unasked (injected texts, the residual of the first request). What the
//! person wrote and what tools gave back stays, but for results that came in behind the last request before a compaction:
//! no request was sent them. The last output before a compaction was never measured by a next request, so its size is an
//! estimate.
//!
//! And where the part of a context begins that a virtual compaction keeps.

use std::collections::BTreeMap;

use crate::logs::timeline::requests::{Block, BlockKind, NONE, SegmentCause, Timeline};
use crate::whatif::compaction::params::Align;
use crate::whatif::sim::breakage::detect::root_of;
use crate::whatif::sim::laid_out::item;
use crate::whatif::sim::view::{ContextView, Given, Item, ItemKey};

/// What is remembered along a chain.
#[derive(Clone, Default, Debug)]
pub struct Splice {
    /// By the segment that a compaction opens: a conversation may go back to before its last one.
    joints: BTreeMap<u32, Joint>,
    /// Segment of the last request, and the one that a compaction or the chain opened before it.
    seen: Option<[u32; 2]>,
    /// The context of the last request.
    pub joined: ContextView,
}

/// One compaction of the log, taken out.
#[derive(Clone, Default, Debug)]
struct Joint {
    before: Vec<Item>,
    brought: Vec<ItemKey>,
    /// How many of these the context of the log has, and among how many leading items.
    left_out: (usize, usize),
}

impl Splice {
    /// Puts what came before the log's compactions in front of what is given for a request; `takes_out` says of the one that opens
    /// the segment of the request whether it is taken out, else the context begins anew. `tokens` are the sizes of
    /// [`Timeline::blocks`]. Returns how many leading items stayed.
    pub fn apply(
        &mut self,
        (timeline, request): (&Timeline, u32),
        takes_out: bool,
        tokens: &[u32],
        given: Given<'_>,
    ) -> usize {
        let segment = timeline.request(request).segment;
        let now = [segment, root_of(timeline, segment)];
        let [_, root] = now;
        let before = self.seen.replace(now);
        let is_new = before.is_none_or(|[last, _]| last != segment);
        if is_new && root == segment && timeline.segments[segment as usize].cause == SegmentCause::Compaction {
            let joint = before.filter(|_| takes_out).and_then(|_| self.joint(timeline, segment, tokens));
            let joint = joint.unwrap_or_default();
            self.joints.insert(segment, joint);
        }
        let mut none = Joint::default();
        let joint = self.joints.get_mut(&root).unwrap_or(&mut none);
        let is_brought = |item: &Item| joint.brought.contains(&item.key);
        let (count, among) = joint.left_out;
        // Going back may bring again what had gone.
        let comes_back = given.view.items.iter().skip(given.kept).any(is_brought);
        if before.is_some_and(|[_, last]| last == root) && given.kept >= among.max(1) && !comes_back {
            let kept = joint.before.len() + given.kept - count;
            self.joined.follow(given.view, kept, given.kept);
            return kept;
        }
        let among = given.view.items.iter().rposition(is_brought).map_or(0, |last| last + 1);
        self.joined.follow(given.view, 0, 0);
        self.joined.items.retain(|item| !is_brought(item));
        joint.left_out = (given.view.items.len() - self.joined.items.len(), among);
        self.joined.items.splice(0..0, joint.before.iter().copied());
        0
    }

    /// The compaction that opens a segment, behind the last request; none without one.
    fn joint(&self, timeline: &Timeline, segment: u32, tokens: &[u32]) -> Option<Joint> {
        let first = timeline.segments[segment as usize].requests.start;
        let last = first.checked_sub(1)?;
        let mut before = self.joined.items.clone();
        before.extend(timeline.request(last).outputs.clone().map(|block| item(timeline, tokens, block)));
        Some(Joint { before, brought: brought(timeline, first), left_out: (0, 0) })
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
