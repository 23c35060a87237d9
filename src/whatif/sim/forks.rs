//! What stands when a request is sent that another chain is forked off: that chain begins with it.

use std::collections::{BTreeMap, BTreeSet};

use crate::logs::timeline::requests::Timeline;

/// What stood at such requests, kept for the chains that are told later.
#[derive(Debug)]
pub struct ForkPoints<T> {
    /// These requests; none until one was sent.
    points: Option<BTreeSet<u32>>,
    kept: BTreeMap<u32, T>,
}

impl<T> Default for ForkPoints<T> {
    fn default() -> Self {
        Self { points: None, kept: BTreeMap::new() }
    }
}

impl<T> ForkPoints<T> {
    /// A request is sent: keeps what stands, if a chain is forked off there.
    pub fn keep(&mut self, timeline: &Timeline, request: u32, stands: impl FnOnce() -> T) {
        let chains = 0..timeline.chains.len() as u32;
        let points = self.points.get_or_insert_with(|| chains.filter_map(|chain| point(timeline, chain)).collect());
        if points.contains(&request) {
            self.kept.insert(request, stands());
        }
    }

    /// What a chain begins with; none of one that was not forked off, or off one that is still to come.
    pub fn of(&self, timeline: &Timeline, chain: u32) -> Option<&T> {
        self.kept.get(&point(timeline, chain)?)
    }
}

/// The request that a chain was forked off. Nobody knows what was sent for one without usage: then it is the last one before
/// it that has some.
fn point(timeline: &Timeline, chain: u32) -> Option<u32> {
    let opening = timeline.segments.get(timeline.chain(chain).segments.start as usize)?;
    let base = timeline.requests.get(opening.after as usize)?;
    let first = timeline.segments[base.segment as usize].requests.start;
    (first..=opening.after).rev().find(|&request| timeline.request(request).context() > 0)
}
