//! What a request's output took up from the context of the log and would not have found in the one that was sent; and hints
//! whose target a policy has removed. A reference breaks where the log's own context shows at least one of its occurrences and
//! the sent one shows none, so nothing breaks when nothing is removed. A simulated summary is taken to repeat nothing, so the
//! counts are upper bounds.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::logs::timeline::requests::{NONE, Occurrence, Reference, ReferenceKind, Timeline};
use crate::whatif::sim::breakage::BreakageThresholds;
use crate::whatif::sim::breakage::files::{Access, Files, calls_of};
use crate::whatif::sim::breakage::rows::{Break, BreakClass};
use crate::whatif::sim::run::SimulatedRun;
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::view::{ContextView, Given, Item, Moment, Noticed, Stage, StageOutput};

/// The detectors over one timeline. Made once; every request is looked at by itself, in any order.
pub struct Detectors<'a> {
    /// What was asked and answered.
    pub timeline: &'a Timeline,
    /// Sizes of [`Timeline::blocks`], one each.
    pub tokens: &'a [u32],
    pub thresholds: &'a BreakageThresholds,
    /// Which calls are about which files.
    pub files: Files,
}

impl<'a> Detectors<'a> {
    /// Looks the calls through once.
    pub fn new(timeline: &'a Timeline, tokens: &'a [u32], thresholds: &'a BreakageThresholds) -> Self {
        Self { timeline, tokens, thresholds, files: Files::of(timeline, &thresholds.tools) }
    }

    /// Appends what the answer to `request` needed of the log's context and the sent one no longer shows.
    pub fn look(&self, request: u32, logged: &ContextView, sent: &ContextView, breaks: &mut Vec<Break>) {
        let references = self.references_of(request);
        for reference in references {
            self.look_at_reference(reference, [logged, sent], breaks);
        }
        for call in calls_of(self.timeline, request).filter(|&call| self.files.access[call] != Access::Other) {
            self.look_at_file(request, call, references, [logged, sent], breaks);
        }
    }

    fn references_of(&self, request: u32) -> &'a [Reference] {
        let all = &self.timeline.references;
        let start = all.partition_point(|reference| reference.request < request);
        &all[start..start + all[start..].partition_point(|reference| reference.request == request)]
    }

    fn look_at_reference(&self, reference: &Reference, [logged, sent]: [&ContextView; 2], breaks: &mut Vec<Break>) {
        let class = match reference.kind {
            ReferenceKind::EditSource => BreakClass::EditSourceLost,
            ReferenceKind::ReadPath => return, // with its file
            _ => BreakClass::RefLost,
        };
        let sources = self.sources_of(reference);
        let is_in = |view: &ContextView| sources.iter().any(|source| view.shows(self.timeline, source));
        if !is_in(sent) && is_in(logged) {
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
        [logged, sent]: [&ContextView; 2],
        breaks: &mut Vec<Break>,
    ) {
        let index = u32::try_from(call).expect("fewer than 2^32 calls");
        let written = references.iter().filter(|known| known.kind == ReferenceKind::ReadPath && known.call == index);
        let both = [sent, logged];
        let sources = written.clone().flat_map(|reference| self.sources_of(reference));
        let sources = sources.map(|source| both.map(|view| view.shows(self.timeline, source)));
        let oldest = logged.items.iter().find_map(|item| item.key.block()).unwrap_or(NONE);
        let asked = self.files.before(call).map(|earlier| self.timeline.calls[earlier as usize].asked);
        let asked = asked.take_while(|&block| block >= oldest);
        let mut was_there = false;
        for [sent, logged] in
            sources.chain(asked.map(|block| both.map(|view| view.block(self.timeline, block).is_some())))
        {
            if sent {
                return;
            }
            was_there |= logged;
        }
        if was_there {
            let is_upper_bound = written.into_iter().any(|reference| reference.cut);
            breaks.push(Break { is_upper_bound, ..self.broken(BreakClass::RereadPredicted, request, index) });
        }
    }

    fn sources_of(&self, reference: &Reference) -> &'a [Occurrence] {
        &self.timeline.sources[reference.sources.start as usize..reference.sources.end as usize]
    }

    /// A break of a call at a request, with what it makes read again.
    pub fn broken(&self, class: BreakClass, request: u32, call: u32) -> Break {
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

/// Calls with a half among these items, of which the log's context has both halves and the sent one has one.
pub fn orphans<'i>(
    timeline: &Timeline,
    logged: &ContextView,
    sent: &ContextView,
    items: impl Iterator<Item = &'i Item>,
) -> Vec<u32> {
    let parted = |item: &Item| {
        let block = item.key.block()?;
        let index = timeline.blocks[block as usize].call;
        let call = timeline.calls.get(index as usize)?;
        let other = [call.asked, call.answered].into_iter().find(|&half| half != block)?;
        let is_half = call.asked == block || call.answered == block;
        let is_split = is_half && sent.block(timeline, block).is_some() != sent.block(timeline, other).is_some();
        (is_split && [block, other].iter().all(|&half| logged.block(timeline, half).is_some())).then_some(index)
    };
    let mut calls: Vec<u32> = items.filter_map(parted).collect();
    calls.sort_unstable();
    calls.dedup();
    calls
}

/// One hint: the answer in `block` was replaced by a pointer to the answer in `target`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Hint {
    /// Index into [`Timeline::blocks`] of the answer that became a hint.
    pub block: u32,
    /// Index of the answer that it points at.
    pub target: u32,
}

/// The hints of a sent context whose targets are gone or cut. A hint dangles at every request that carries it; callers
/// that count hints keep the first break of each call.
pub fn dangling(timeline: &Timeline, request: u32, hints: &[Hint], sent: &ContextView) -> Vec<Break> {
    let is_whole = |block: u32| {
        sent.block(timeline, block).is_some_and(|item| item.kept_chars >= timeline.blocks[block as usize].chars)
    };
    let lost = hints.iter().filter(|hint| sent.block(timeline, hint.block).is_some() && !is_whole(hint.target));
    let call = |hint: &Hint| timeline.blocks[hint.block as usize].call;
    lost.map(|hint| Break::new(BreakClass::DanglingRef, request, call(hint))).collect()
}

/// Collects the breaks of a run.
pub struct BreakWatch<'a> {
    detectors: &'a Detectors<'a>,
    /// What broke, request by request.
    pub breaks: Vec<Break>,
    /// Whether halves of calls are looked for that lost the other half: that looks at what changed of every context.
    pub with_pairs: bool,
    /// How many leading items of the log's context have been looked at for that.
    paired: usize,
    /// Calls of the chain that are known to have lost one.
    orphans: BTreeSet<u32>,
    hints: BTreeSet<Hint>,
    /// Calls of the chain whose hints are known to dangle: each breaks once.
    dangling: BTreeSet<u32>,
}

impl<'a> BreakWatch<'a> {
    /// Nothing seen yet.
    pub fn new(detectors: &'a Detectors<'a>) -> Self {
        Self {
            detectors,
            breaks: Vec::new(),
            with_pairs: false,
            paired: 0,
            orphans: BTreeSet::new(),
            hints: BTreeSet::new(),
            dangling: BTreeSet::new(),
        }
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
    fn split_pairs(&mut self, moment: &Moment<'_>, [logged, sent]: [Given<'_>; 2], output: &StageOutput) {
        let orphan = BreakClass::OrphanPair;
        self.orphans.extend(output.noticed.iter().filter(|one| one.class == orphan).map(|one| one.call));
        let gone = moment.before.and_then(|before| before.items.get(sent.kept..)).unwrap_or_default();
        if !self.with_pairs || sent.view.items.len() >= logged.view.items.len() {
            self.paired = if gone.is_empty() { self.paired.min(logged.kept) } else { 0 };
            return;
        }
        let paired = self.paired.min(logged.kept);
        self.paired = logged.view.items.len();
        // A pair was split by what came, what went, and what came back.
        let changed = gone.iter().chain(&sent.view.items[sent.kept..]).chain(&logged.view.items[paired..]);
        for call in orphans(moment.timeline, logged.view, sent.view, changed) {
            if self.orphans.insert(call) {
                self.breaks.push(self.detectors.broken(orphan, moment.request, call));
            }
        }
    }

    /// A chain begins.
    pub fn begin(&mut self) {
        self.dangling.clear();
        self.hints.clear();
        self.orphans.clear();
        self.paired = 0;
    }

    /// A request goes out: its context as the log has it and as the stages left it, with what of both stayed, and what they left
    /// besides.
    pub fn sent(&mut self, moment: &Moment<'_>, both: [Given<'_>; 2], tokens: u64, output: &StageOutput) {
        let [logged, sent] = both.map(|given| given.view);
        let has_grown = moment.before.is_none_or(|before| both[1].kept >= before.items.len());
        let broken = |noticed: &Noticed| self.detectors.broken(noticed.class, moment.request, noticed.call);
        self.breaks.extend(output.noticed.iter().map(broken));
        if output.window.is_some_and(|window| tokens > window) {
            self.breaks.push(Break::new(BreakClass::Overflow, moment.request, NONE));
        }
        self.hints.extend(&output.hints);
        // Where the context only grew, what hints before the growth point at is where it was.
        let from = if has_grown { both[1].kept } else { 0 };
        let first = sent.items[from..].iter().find_map(|item| item.key.block()).unwrap_or(NONE);
        let hints: Vec<Hint> = self.hints.range(Hint { block: first, target: 0 }..).copied().collect();
        let lost = dangling(moment.timeline, moment.request, &hints, sent).into_iter();
        self.breaks.extend(lost.filter(|lost| self.dangling.insert(lost.call)));
        self.split_pairs(moment, both, output);
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
