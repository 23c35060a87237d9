//! Which blocks the log's own context of a request shows.

use std::ops::Range;

use crate::logs::timeline::requests::{NONE, Timeline};

/// The blocks of a context: one range per segment that it goes back over, newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown(Vec<Range<u32>>);

impl Shown {
    /// What `request` was sent.
    pub fn to(timeline: &Timeline, request: u32) -> Self {
        Self::until(timeline, request, timeline.requests[request as usize].inputs.end)
    }

    /// What `request` was sent, and what it answered.
    pub fn after(timeline: &Timeline, request: u32) -> Self {
        Self::until(timeline, request, timeline.requests[request as usize].outputs.end)
    }

    fn until(timeline: &Timeline, mut request: u32, mut end: u32) -> Self {
        let mut ranges = Vec::new();
        loop {
            let segment = &timeline.segments[timeline.requests[request as usize].segment as usize];
            ranges.push(timeline.requests[segment.requests.start as usize].inputs.start..end);
            if segment.after == NONE {
                return Self(ranges);
            }
            request = segment.after;
            end = timeline.requests[request as usize].outputs.end;
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
