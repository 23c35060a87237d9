//! The log as if its own compactions had not been: what stood before them stays, and what they brought is left out.
//!
//! Left out are the summary and what came with it unasked (injected texts, the residual of the first request). What the
//! person wrote and what tools answered stays. The last answer before a compaction was never measured by a next request,
//! so its size is an estimate.

use std::sync::Arc;

use crate::model::timeline::{BlockKind, SegmentCause, Timeline};
use crate::policies::view::{Item, Key, Moment, View};

/// What is remembered along a chain.
#[derive(Clone, Default, Debug)]
pub struct Splice {
    before: Vec<Item>,
    brought: Vec<Key>,
    seen: Vec<Item>,
}

impl Splice {
    /// Puts what came before the log's compactions in front of `view`. Returns whether the context goes on: false where
    /// a segment begins for another reason. `tokens` are the sizes of [`Timeline::blocks`].
    pub fn apply(&mut self, moment: &Moment<'_>, tokens: &Arc<[u32]>, view: &mut View) -> bool {
        let timeline = moment.timeline;
        let request = &timeline.requests[moment.request as usize];
        let is_compaction = timeline.segments[request.segment as usize].cause == SegmentCause::Compaction;
        if moment.opens_segment {
            self.brought.clear();
            self.before = std::mem::take(&mut self.seen);
            if is_compaction && !self.before.is_empty() {
                self.before.extend(answer(timeline, moment.request - 1, tokens));
                self.brought = brought(timeline, moment.request);
            } else {
                self.before.clear();
            }
        }
        view.items.retain(|item| !self.brought.contains(&item.key));
        view.items.splice(0..0, self.before.iter().copied());
        self.seen.clone_from(&view.items);
        !moment.opens_segment || is_compaction && !self.before.is_empty()
    }
}

fn answer(timeline: &Timeline, request: u32, tokens: &[u32]) -> impl Iterator<Item = Item> {
    timeline.requests[request as usize].outputs.clone().map(move |block| Item {
        key: Key::Block(block),
        tokens: tokens[block as usize],
        kept_chars: timeline.blocks[block as usize].chars,
    })
}

fn brought(timeline: &Timeline, request: u32) -> Vec<Key> {
    let unasked =
        |&block: &u32| matches!(timeline.blocks[block as usize].kind, BlockKind::Summary | BlockKind::Injected);
    let blocks = timeline.requests[request as usize].inputs.clone().filter(unasked).map(Key::Block);
    blocks.chain([Key::Residual(request)]).collect()
}
