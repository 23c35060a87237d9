//! Which blocks a context shows: the log's own of a request, and one that is sent.

use std::ops::Range;

use crate::logs::timeline::requests::{NONE, Occurrence, Timeline};
use crate::whatif::sim::view::{ContextView, Item, ItemKey};

/// The blocks of a context: one range per segment that it goes back over, newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownBlocks(Vec<Range<u32>>);

impl ShownBlocks {
    /// What `request` was sent.
    pub fn to(timeline: &Timeline, request: u32) -> Self {
        Self::until(timeline, request, timeline.request(request).inputs.end)
    }

    /// What `request` was sent, and what it answered.
    pub fn after(timeline: &Timeline, request: u32) -> Self {
        Self::until(timeline, request, timeline.request(request).outputs.end)
    }

    fn until(timeline: &Timeline, mut request: u32, mut end: u32) -> Self {
        let mut ranges = Vec::new();
        loop {
            let segment = &timeline.segments[timeline.request(request).segment as usize];
            ranges.push(timeline.request(segment.requests.start).inputs.start..end);
            if segment.after == NONE {
                return Self(ranges);
            }
            request = segment.after;
            end = timeline.request(request).outputs.end;
        }
    }

    /// Whether a block is among them.
    pub fn contains(&self, block: u32) -> bool {
        self.0.iter().any(|range| range.contains(&block))
    }

    /// All of them, oldest first.
    pub fn blocks(&self) -> impl Iterator<Item = u32> {
        self.0.iter().rev().cloned().flatten()
    }
}

/// The segment in which a context began with nothing: where the chain began, or was compacted.
pub fn root_of(timeline: &Timeline, mut segment: u32) -> u32 {
    while timeline.segments[segment as usize].after != NONE {
        segment = timeline.requests[timeline.segments[segment as usize].after as usize].segment;
    }
    segment
}

/// The blocks of a context with how much of each is kept. Made per request, and only where something is to be looked up:
/// contexts have thousands of items.
pub struct KeptBlocks(Vec<(u32, u32)>);

impl KeptBlocks {
    /// The blocks of `view`.
    pub fn of(view: &ContextView) -> Self {
        let block = |item: &Item| match item.key {
            ItemKey::Block(block) => Some((block, item.kept_chars)),
            ItemKey::Residual(_) | ItemKey::Made(_) => None,
        };
        let mut blocks: Vec<(u32, u32)> = Vec::with_capacity(view.items.len());
        blocks.extend(view.items.iter().filter_map(block));
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
