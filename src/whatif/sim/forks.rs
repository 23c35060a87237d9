//! What stands when a request is sent that another chain is forked off: that chain begins with it.

use std::collections::BTreeMap;

use crate::logs::timeline::requests::Timeline;

/// What stood at such requests, kept until the last chain that was forked off there begins.
#[derive(Debug)]
pub struct ForkPoints<T> {
    /// These requests, each with that chain; none until one was sent.
    points: Option<BTreeMap<u32, u32>>,
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
        let points = || chains.filter_map(|chain| Some((point(timeline, chain)?, chain))).collect();
        if self.points.get_or_insert_with(points).contains_key(&request) {
            self.kept.insert(request, stands());
        }
    }

    /// What a chain begins with; none of one that was not forked off, or off one that is still to come.
    pub fn of(&self, timeline: &Timeline, chain: u32) -> Option<&T> {
        self.kept.get(&point(timeline, chain)?)
    }

    /// The same for a chain that begins now.
    pub fn take(&mut self, timeline: &Timeline, chain: u32) -> Option<T>
    where
        T: Clone,
    {
        let point = point(timeline, chain)?;
        let is_last = self.points.as_ref().and_then(|points| points.get(&point)) == Some(&chain);
        if is_last { self.kept.remove(&point) } else { self.kept.get(&point).cloned() }
    }
}

/// The request that a chain was forked off. Nobody knows what was sent for one without usage: then it is the last one
/// before it that has some.
fn point(timeline: &Timeline, chain: u32) -> Option<u32> {
    let opening = timeline.segments.get(timeline.chain(chain).segments.start as usize)?;
    let base = timeline.requests.get(opening.after as usize)?;
    let first = timeline.segments[base.segment as usize].requests.start;
    (first..=opening.after).rev().find(|&request| timeline.request(request).context() > 0)
}
