//! The log as if its own compactions had not been: what stood before them stays, and what they brought is left out.
//!
//! Left out are the summary and what came with it unasked (injected texts, the residual of the first request). What the
//! person wrote and what tools answered stays. The last answer before a compaction was never measured by a next
//! request, so its size is an estimate.

use std::collections::BTreeMap;

use crate::logs::timeline::requests::{BlockKind, NONE, SegmentCause, Timeline};
use crate::whatif::sim::breakage::shown::root_of;
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
