//! Which blocks a context shows: the log's own of a request, and one that is sent.
//!
//! Looks at every context as the driver sends it, and writes down what broke.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::logs::timeline::requests::{NONE, Occurrence, Timeline};
use crate::whatif::sim::breakage::Detectors;
use crate::whatif::sim::breakage::detect::{dangling, orphans};
use crate::whatif::sim::breakage::rows::{Break, Class};
use crate::whatif::sim::simulate::Observer;
use crate::whatif::sim::view::{ContextView, Item, Key, Moment, Noticed, StageOutput};

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

/// The blocks of a context with how much of each is kept. Made per request, and only where something is to be looked up:
/// contexts have thousands of items.
pub struct Kept(Vec<(u32, u32)>);

impl Kept {
    /// The blocks of `view`.
    pub fn of(view: &ContextView) -> Self {
        let block = |item: &Item| match item.key {
            Key::Block(block) => Some((block, item.kept_chars)),
            Key::Residual(_) | Key::Made(_) => None,
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

/// Collects the breaks of a run.
pub struct Watch<'a> {
    detectors: &'a Detectors<'a>,
    /// What broke, request by request.
    pub breaks: Vec<Break>,
    /// Whether halves of calls are looked for that lost the other half.
    with_pairs: bool,
    /// Calls of the chain that are known to have lost one.
    orphans: BTreeSet<u32>,
    /// Calls of the chain whose hints are known to dangle: each breaks once.
    dangling: BTreeSet<u32>,
}

impl<'a> Watch<'a> {
    /// Nothing seen yet.
    pub fn new(detectors: &'a Detectors<'a>) -> Self {
        Self { detectors, breaks: Vec::new(), with_pairs: false, orphans: BTreeSet::new(), dangling: BTreeSet::new() }
    }

    /// The same, looking for split pairs as well: that takes a look at every item of every context.
    #[must_use]
    pub fn with_pairs(self) -> Self {
        Self { with_pairs: true, ..self }
    }

    /// What a stage says itself is not found again.
    fn split_pairs(&mut self, moment: &Moment<'_>, logged: &ContextView, sent: &ContextView, aside: &StageOutput) {
        let orphan = Class::OrphanPair.word();
        self.orphans.extend(aside.noticed.iter().filter(|one| one.class == orphan).map(|one| one.call));
        if !self.with_pairs || sent.items.len() >= logged.items.len() {
            return;
        }
        for call in orphans(moment.timeline, logged, sent) {
            if self.orphans.insert(call) {
                self.breaks.extend(self.detectors.noticed(moment.request, &Noticed { class: orphan, call }));
            }
        }
    }
}

impl Observer for Watch<'_> {
    fn begin(&mut self, _: &Timeline, _: u32) {
        self.dangling.clear();
        self.orphans.clear();
    }

    fn sent(&mut self, moment: &Moment<'_>, logged: &ContextView, sent: &ContextView, aside: &StageOutput) {
        let noticed = aside.noticed.iter().filter_map(|noticed| self.detectors.noticed(moment.request, noticed));
        self.breaks.extend(noticed);
        let lost = dangling(moment.timeline, moment.request, &aside.hints, sent).into_iter();
        self.breaks.extend(lost.filter(|lost| self.dangling.insert(lost.call)));
        self.split_pairs(moment, logged, sent, aside);
        self.detectors.look(moment.request, logged, sent, &mut self.breaks);
    }
}
