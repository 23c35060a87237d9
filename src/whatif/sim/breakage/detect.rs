//! What a request's answer took up from the context of the log and would not have found in the one that was sent.
//!
//! A reference breaks where the log's own context shows at least one of its occurrences and the sent one shows none. So
//! nothing breaks when nothing is removed, and what the model knew from elsewhere is not put down to the policy.
//! The text of a simulated summary is unknown: it is taken to repeat nothing, so the counts are upper bounds.
//!
//! Hints that lost their targets: a deduplicated answer points at an earlier one that a policy has removed.
//!
//! Adds breaks up: per class events, sessions, rate and examples, beside what the same detector says of the log as it is.

use std::collections::BTreeSet;

use crate::base::stats::Share;
use crate::logs::timeline::requests::{NONE, Reference, ReferenceKind, Timeline};
use crate::whatif::sim::breakage::ages::{Access, Files, calls_of, request_of};
use crate::whatif::sim::breakage::rows::{Break, Breakage, Class, ClassCount, Example, Sheet};
use crate::whatif::sim::breakage::shown::{Kept, Shown};
use crate::whatif::sim::view::{ContextView, Key, Noticed};

/// The detectors over one timeline. Made once; every request is looked at by itself, in any order.
pub struct Detectors<'a> {
    timeline: &'a Timeline,
    tokens: &'a [u32],
    files: Files,
}

impl<'a> Detectors<'a> {
    /// `tokens` are the sizes of [`Timeline::blocks`], one each.
    pub fn new(timeline: &'a Timeline, tokens: &'a [u32], sheet: &Sheet) -> Self {
        Self { timeline, tokens, files: Files::of(timeline, &sheet.tools) }
    }

    /// Which calls are about which files.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Appends what the answer to `request` needed of the log's context and the sent one no longer shows.
    pub fn look(&self, request: u32, logged: &ContextView, sent: &ContextView, breaks: &mut Vec<Break>) {
        let references = self.references_of(request);
        let on_files = || calls_of(self.timeline, request).filter(|&call| self.files.access(call) != Access::Other);
        if references.is_empty() && on_files().next().is_none() || logged.items == sent.items {
            return;
        }
        let contexts = Contexts { logged: Kept::of(logged), sent: Kept::of(sent) };
        for reference in references {
            self.look_at_reference(reference, &contexts, breaks);
        }
        for call in on_files() {
            self.look_at_file(request, call, references, &contexts, breaks);
        }
    }

    /// A break that a stage noticed itself; words that are no class are the stage's own business.
    pub fn noticed(&self, request: u32, noticed: &Noticed) -> Option<Break> {
        Class::of(noticed.class).map(|class| self.broken(class, request, noticed.call))
    }

    fn references_of(&self, request: u32) -> &'a [Reference] {
        let all = &self.timeline.references;
        let start = all.partition_point(|reference| reference.request < request);
        &all[start..start + all[start..].partition_point(|reference| reference.request == request)]
    }

    fn look_at_reference(&self, reference: &Reference, contexts: &Contexts, breaks: &mut Vec<Break>) {
        let class = match reference.kind {
            ReferenceKind::EditSource => Class::EditSourceLost,
            ReferenceKind::ReadPath => return, // with its file
            _ => Class::RefLost,
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
        contexts: &Contexts,
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
            breaks.push(Break { is_upper_bound, ..self.broken(Class::RereadPredicted, request, index) });
        }
    }

    fn sources_of(&self, reference: &Reference) -> &'a [crate::logs::timeline::requests::Occurrence] {
        &self.timeline.sources[reference.sources.start as usize..reference.sources.end as usize]
    }

    fn broken(&self, class: Class, request: u32, call: u32) -> Break {
        let on_file = call != NONE && matches!(class, Class::EditSourceLost | Class::RereadPredicted);
        let reading = if on_file { self.files.reading(call as usize) } else { NONE };
        Break {
            request,
            call,
            class,
            reading,
            reread_tokens: if reading == NONE { 0 } else { u64::from(self.tokens[reading as usize]) },
            is_reading: on_file && self.files.access(call as usize) == Access::Read,
            is_upper_bound: false,
        }
    }
}

struct Contexts {
    logged: Kept,
    sent: Kept,
}

/// Calls of which one half is in the sent context and the other is not, although the log's has both.
pub fn orphans(timeline: &Timeline, logged: &ContextView, sent: &ContextView) -> Vec<u32> {
    let (before, after) = (Kept::of(logged), Kept::of(sent));
    let asked = logged.items.iter().filter_map(|item| match item.key {
        Key::Block(block) => Some(&timeline.blocks[block as usize]).filter(|block| block.call != NONE),
        _ => None,
    });
    let mut calls: Vec<u32> = asked.map(|block| block.call).collect();
    calls.sort_unstable();
    calls.dedup();
    calls.retain(|&call| {
        let call = &timeline.calls[call as usize];
        let halves = [call.asked, call.answered];
        halves.iter().all(|&half| before.chars(half).is_some())
            && halves.iter().filter(|&&half| after.chars(half).is_some()).count() == 1
    });
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
    let kept = Kept::of(sent);
    let is_whole = |block: u32| kept.chars(block).is_some_and(|chars| chars >= timeline.blocks[block as usize].chars);
    let lost = hints.iter().filter(|hint| kept.chars(hint.block).is_some() && !is_whole(hint.target));
    lost.map(|hint| Break {
        request,
        call: timeline.blocks[hint.block as usize].call,
        class: Class::DanglingRef,
        reading: NONE,
        reread_tokens: 0,
        is_reading: false,
        is_upper_bound: false,
    })
    .collect()
}

/// Sums the breaks of a replay over `requests` requests. The order of `breaks` does not matter.
pub fn tally(
    detectors: &Detectors<'_>,
    timeline: &Timeline,
    breaks: &[Break],
    requests: u64,
    sheet: &Sheet,
) -> Breakage {
    let mut breaks = breaks.to_vec();
    breaks.sort_unstable();
    let classes = Class::ALL.into_iter().filter_map(|class| {
        let events: Vec<&Break> = breaks.iter().filter(|event| event.class == class).collect();
        (!events.is_empty()).then(|| count(detectors, timeline, class, &events, requests, sheet))
    });
    Breakage { classes: classes.collect(), reread_tokens: penalty(&breaks) }
}

fn count(
    detectors: &Detectors<'_>,
    timeline: &Timeline,
    class: Class,
    events: &[&Break],
    requests: u64,
    sheet: &Sheet,
) -> ClassCount {
    let session = |event: &&Break| session_of(timeline, event.request);
    let sessions: BTreeSet<u32> = events.iter().map(session).collect();
    ClassCount {
        class,
        strength: class.strength(),
        events: events.len() as u64,
        upper_bound: events.iter().filter(|event| event.is_upper_bound).count() as u64,
        sessions: sessions.len() as u64,
        per_1k_requests: events.len() as f64 * 1000.0 / requests.max(1) as f64,
        reread_tokens: events.iter().map(|event| event.reread_tokens).sum(),
        control: control(detectors, timeline, class),
        examples: events.iter().take(sheet.report.examples_max).map(|event| example(timeline, event)).collect(),
    }
}

/// One reading brings a file back for all that comes after, so each lost reading is paid for once; and what the log
/// reads again by itself is in its bill already.
pub fn penalty(breaks: &[Break]) -> u64 {
    penalties(breaks).map(|event| event.reread_tokens).sum()
}

/// The breaks that are paid for: the first one of each lost reading.
pub fn penalties(breaks: &[Break]) -> impl Iterator<Item = &Break> {
    let mut seen = BTreeSet::new();
    let unpaid = breaks.iter().filter(|event| event.reading != NONE && !event.is_reading);
    unpaid.filter(move |event| seen.insert(event.reading))
}

/// With nothing removed nothing is lost: the trials say on how much that rests.
fn control(detectors: &Detectors<'_>, timeline: &Timeline, class: Class) -> Option<Share> {
    let references = |kind: fn(ReferenceKind) -> bool| {
        let found =
            timeline.references.iter().filter(|reference| kind(reference.kind) && is_sourced(timeline, reference));
        Share::new(0, found.count() as u64)
    };
    match class {
        Class::EditSourceLost => Some(references(|kind| kind == ReferenceKind::EditSource)),
        Class::RefLost => Some(references(|kind| !matches!(kind, ReferenceKind::EditSource | ReferenceKind::ReadPath))),
        Class::RereadPredicted => Some(natural_rereads(detectors, timeline)),
        _ => None,
    }
}

/// Whether the log's own context shows a source.
fn is_sourced(timeline: &Timeline, reference: &Reference) -> bool {
    let sources = &timeline.sources[reference.sources.start as usize..reference.sources.end as usize];
    let shown = Shown::to(timeline, reference.request);
    sources.iter().any(|source| shown.contains(source.block))
}

/// Readings of a file whose last reading still stands in the log's own context.
fn natural_rereads(detectors: &Detectors<'_>, timeline: &Timeline) -> Share {
    let files = detectors.files();
    let readings = (0..timeline.calls.len()).filter(|&call| files.access(call) == Access::Read);
    let (mut again, mut all) = (0, 0);
    for call in readings {
        let shown = || Shown::to(timeline, request_of(timeline, timeline.calls[call].asked));
        let before = files.reading(call);
        all += 1;
        again += u64::from(before != NONE && shown().contains(before));
    }
    Share::new(again, all)
}

fn session_of(timeline: &Timeline, request: u32) -> u32 {
    timeline.chains[timeline.requests[request as usize].chain as usize].session
}

fn example(timeline: &Timeline, event: &Break) -> Example {
    let request = &timeline.requests[event.request as usize];
    let call = timeline.calls.get(event.call as usize);
    let block = call.map_or(request.outputs.start, |call| call.asked);
    Example {
        session: timeline.session_of(request).id.to_string(),
        message: request.id.to_string(),
        call: call.map_or_else(String::new, |call| call.id.to_string()),
        record: timeline.blocks.get(block as usize).map_or_else(String::new, |block| block.record.to_string()),
    }
}
