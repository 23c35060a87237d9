//! What a request's output took up from the context of the log and would not have found in the one that was sent; and
//! hints that lost their targets: a deduplicated result points at an earlier one that a policy has removed.
//!
//! A reference breaks where the log's own context shows at least one of its occurrences and the sent one shows none. So
//! nothing breaks when nothing is removed, and what the model knew from elsewhere is not put down to the policy. The
//! text of a simulated summary is unknown: it is taken to repeat nothing, so the counts are upper bounds.
//!
//! For that it is looked up which blocks a context shows: the log's own of a request, and one that is sent.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::logs::timeline::requests::{NONE, Occurrence, Reference, ReferenceKind, Timeline};
use crate::whatif::sim::breakage::BreakageThresholds;
use crate::whatif::sim::breakage::files::{Access, Files, calls_of};
use crate::whatif::sim::breakage::rows::{Break, BreakClass};
use crate::whatif::sim::simulator::{SimulatedRun, Simulator};
use crate::whatif::sim::view::{ContextView, Item, Noticed, RequestMoment, Stage, StageOutput};

/// The detectors over one timeline. Made once; every request is looked at by itself, in any order.
pub struct Detectors<'a> {
    /// What was asked and answered.
    pub timeline: &'a Timeline,
    /// Sizes of [`Timeline::blocks`], one each.
    pub tokens: &'a [u32],
    /// The numbers.
    pub sheet: &'a BreakageThresholds,
    /// Which calls are about which files.
    pub files: Files,
}

impl<'a> Detectors<'a> {
    /// Looks the calls through once.
    pub fn new(timeline: &'a Timeline, tokens: &'a [u32], sheet: &'a BreakageThresholds) -> Self {
        Self { timeline, tokens, sheet, files: Files::of(timeline, &sheet.tools) }
    }

    /// Appends what the answer to `request` needed of the log's context and the sent one no longer shows.
    pub fn look(&self, request: u32, logged: &ContextView, sent: &ContextView, breaks: &mut Vec<Break>) {
        let references = self.references_of(request);
        let on_files = || calls_of(self.timeline, request).filter(|&call| self.files.access[call] != Access::Other);
        if references.is_empty() && on_files().next().is_none() || logged.items == sent.items {
            return;
        }
        let contexts = BothContexts { logged: KeptBlocks::of(logged), sent: KeptBlocks::of(sent) };
        for reference in references {
            self.look_at_reference(reference, &contexts, breaks);
        }
        for call in on_files() {
            self.look_at_file(request, call, references, &contexts, breaks);
        }
    }

    /// A break that a stage noticed itself.
    pub fn noticed(&self, request: u32, noticed: &Noticed) -> Break {
        self.broken(noticed.class, request, noticed.call)
    }

    fn references_of(&self, request: u32) -> &'a [Reference] {
        let all = &self.timeline.references;
        let start = all.partition_point(|reference| reference.request < request);
        &all[start..start + all[start..].partition_point(|reference| reference.request == request)]
    }

    fn look_at_reference(&self, reference: &Reference, contexts: &BothContexts, breaks: &mut Vec<Break>) {
        let class = match reference.kind {
            ReferenceKind::EditSource => BreakClass::EditSourceLost,
            ReferenceKind::ReadPath => return, // with its file
            _ => BreakClass::RefLost,
        };
        let sources = self.sources_of(reference);
        if sources.iter().any(|source| contexts.logged.shows(source))
            && !sources.iter().any(|source| contexts.sent.shows(source))
        {
            let is_upper_bound = reference.cut;
            breaks.push(Break { is_upper_bound, ..self.broken(class, reference.request, reference.call) });
        }
    }

    /// The path of a file stands where the reference says and in every earlier call that names the file.
    fn look_at_file(
        &self,
        request: u32,
        call: usize,
        references: &[Reference],
        contexts: &BothContexts,
        breaks: &mut Vec<Break>,
    ) {
        let index = u32::try_from(call).expect("fewer than 2^32 calls");
        let written = references.iter().filter(|known| known.kind == ReferenceKind::ReadPath && known.call == index);
        let mut places: Vec<(bool, bool)> = Vec::new();
        for source in written.clone().flat_map(|reference| self.sources_of(reference)) {
            places.push((contexts.logged.shows(source), contexts.sent.shows(source)));
        }
        let oldest = contexts.logged.first().unwrap_or(NONE);
        let asked = self.files.before(call).map(|earlier| self.timeline.calls[earlier as usize].asked);
        for block in asked.take_while(|&block| block >= oldest) {
            places.push((contexts.logged.chars(block).is_some(), contexts.sent.chars(block).is_some()));
        }
        if places.iter().any(|&(logged, _)| logged) && !places.iter().any(|&(_, sent)| sent) {
            let is_upper_bound = written.into_iter().any(|reference| reference.cut);
            breaks.push(Break { is_upper_bound, ..self.broken(BreakClass::RereadPredicted, request, index) });
        }
    }

    fn sources_of(&self, reference: &Reference) -> &'a [Occurrence] {
        &self.timeline.sources[reference.sources.start as usize..reference.sources.end as usize]
    }

    fn broken(&self, class: BreakClass, request: u32, call: u32) -> Break {
        let on_file = call != NONE && matches!(class, BreakClass::EditSourceLost | BreakClass::RereadPredicted);
        let reading = if on_file { self.files.reading[call as usize] } else { NONE };
        Break {
            reading,
            reread_tokens: if reading == NONE { 0 } else { u64::from(self.tokens[reading as usize]) },
            is_reading: on_file && self.files.access[call as usize] == Access::Read,
            ..Break::new(class, request, call)
        }
    }
}

struct BothContexts {
    logged: KeptBlocks,
    sent: KeptBlocks,
}

/// Calls of which one half is in the sent context and the other is not, although the log's has both.
pub fn orphans(timeline: &Timeline, logged: &ContextView, sent: &ContextView) -> Vec<u32> {
    let (before, after) = (KeptBlocks::of(logged), KeptBlocks::of(sent));
    let parted = |&(block, _): &(u32, u32)| {
        let index = timeline.blocks[block as usize].call;
        let call = timeline.calls.get(index as usize).filter(|_| after.chars(block).is_none())?;
        let other = [call.asked, call.answered].into_iter().find(|&half| half != block)?;
        let is_half = call.asked == block || call.answered == block;
        (is_half && after.chars(other).is_some() && before.chars(other).is_some()).then_some(index)
    };
    let mut calls: Vec<u32> = before.0.iter().filter_map(parted).collect();
    calls.sort_unstable();
    calls
}

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
    let kept = KeptBlocks::of(sent);
    let is_whole = |block: u32| kept.chars(block).is_some_and(|chars| chars >= timeline.blocks[block as usize].chars);
    let lost = hints.iter().filter(|hint| kept.chars(hint.block).is_some() && !is_whole(hint.target));
    let call = |hint: &Hint| timeline.blocks[hint.block as usize].call;
    lost.map(|hint| Break::new(BreakClass::DanglingRef, request, call(hint))).collect()
}

/// Collects the breaks of a run.
pub struct BreakWatch<'a> {
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

impl<'a> BreakWatch<'a> {
    /// Nothing seen yet.
    pub fn new(detectors: &'a Detectors<'a>) -> Self {
        Self { detectors, breaks: Vec::new(), with_pairs: false, orphans: BTreeSet::new(), dangling: BTreeSet::new() }
    }

    /// The same, looking for split pairs as well: that takes a look at every item of every context.
    #[must_use]
    pub fn with_pairs(self) -> Self {
        Self { with_pairs: true, ..self }
    }

    /// Sends the requests of all chains through stages: the run, and what broke.
    pub fn over(mut self, simulator: &Simulator<'_>, mut stages: Vec<Box<dyn Stage>>) -> (SimulatedRun, Vec<Break>) {
        if stages.is_empty() {
            return (simulator.baseline(), Vec::new());
        }
        let run = simulator.run(simulator.chains(), &mut stages, Some(&mut self));
        self.breaks.retain(|lost| simulator.timeline.request(lost.request).counts());
        (run, self.breaks)
    }

    /// What a stage says itself is not found again.
    fn split_pairs(
        &mut self,
        moment: &RequestMoment<'_>,
        logged: &ContextView,
        sent: &ContextView,
        output: &StageOutput,
    ) {
        let orphan = BreakClass::OrphanPair;
        self.orphans.extend(output.noticed.iter().filter(|one| one.class == orphan).map(|one| one.call));
        if !self.with_pairs || sent.items.len() >= logged.items.len() {
            return;
        }
        for call in orphans(moment.timeline, logged, sent) {
            if self.orphans.insert(call) {
                self.breaks.push(self.detectors.noticed(moment.request, &Noticed { class: orphan, call }));
            }
        }
    }

    /// A chain begins.
    pub fn begin(&mut self) {
        self.dangling.clear();
        self.orphans.clear();
    }

    /// A request goes out: its context as the log has it and as the stages left it, and what they left besides.
    pub fn sent(&mut self, moment: &RequestMoment<'_>, logged: &ContextView, sent: &ContextView, output: &StageOutput) {
        let noticed = output.noticed.iter().map(|noticed| self.detectors.noticed(moment.request, noticed));
        self.breaks.extend(noticed);
        if output.window.is_some_and(|window| sent.tokens() > window) {
            self.breaks.push(Break::new(BreakClass::Overflow, moment.request, NONE));
        }
        let lost = dangling(moment.timeline, moment.request, &output.hints, sent).into_iter();
        self.breaks.extend(lost.filter(|lost| self.dangling.insert(lost.call)));
        self.split_pairs(moment, logged, sent, output);
        self.detectors.look(moment.request, logged, sent, &mut self.breaks);
    }
}

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
        let block = |item: &Item| item.key.block().map(|block| (block, item.kept_chars));
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
