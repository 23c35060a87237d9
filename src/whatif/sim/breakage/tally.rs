//! Adds breaks up: per class events, sessions, rate and examples, beside what the same detector says of the log as it
//! is.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::stats::Share;
use crate::logs::timeline::requests::{NONE, Reference, ReferenceKind, Timeline};
use crate::whatif::sim::breakage::BreakageThresholds;
use crate::whatif::sim::breakage::detect::Detectors;
use crate::whatif::sim::breakage::files::{Access, request_of};
use crate::whatif::sim::breakage::rows::{Break, BreakClass, BreakExample, Breakage, ClassCount, Strength};
use crate::whatif::sim::breakage::shown::ShownBlocks;

/// Sums the breaks of a replay over `requests` requests. The order of `breaks` does not matter.
pub fn tally(
    detectors: &Detectors<'_>,
    timeline: &Timeline,
    breaks: &[Break],
    requests: u64,
    sheet: &BreakageThresholds,
) -> Breakage {
    let mut breaks = breaks.to_vec();
    breaks.sort_unstable();
    let classes = BreakClass::ALL.iter().copied().filter_map(|class| {
        let events: Vec<&Break> = breaks.iter().filter(|event| event.class == class).collect();
        (!events.is_empty()).then(|| count(detectors, timeline, class, &events, requests, sheet))
    });
    Breakage { classes: classes.collect(), reread_tokens: penalty(&breaks) }
}

fn count(
    detectors: &Detectors<'_>,
    timeline: &Timeline,
    class: BreakClass,
    events: &[&Break],
    requests: u64,
    sheet: &BreakageThresholds,
) -> ClassCount {
    let session = |event: &&Break| timeline.session_of_chain(timeline.request(event.request).chain);
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

/// The steps of the log that break, each once and as surely as the surest of its breaks, with their requests: an edit whose
/// text is gone names its file as well.
pub fn steps(breaks: &[Break]) -> impl Iterator<Item = (u32, Strength)> + use<> {
    let mut steps: BTreeMap<(u32, u32), Strength> = BTreeMap::new();
    for one in breaks {
        let strength = one.class.strength();
        let surest = steps.entry((one.request, one.call)).or_insert(strength);
        *surest = strength.min(*surest);
    }
    steps.into_iter().map(|((request, _), strength)| (request, strength))
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
fn control(detectors: &Detectors<'_>, timeline: &Timeline, class: BreakClass) -> Option<Share> {
    let references = |kind: fn(ReferenceKind) -> bool| {
        let found =
            timeline.counted_references().filter(|reference| kind(reference.kind) && is_sourced(timeline, reference));
        Share::new(0, found.count() as u64)
    };
    match class {
        BreakClass::EditSourceLost => Some(references(|kind| kind == ReferenceKind::EditSource)),
        BreakClass::RefLost => {
            Some(references(|kind| !matches!(kind, ReferenceKind::EditSource | ReferenceKind::ReadPath)))
        }
        BreakClass::RereadPredicted => Some(natural_rereads(detectors, timeline)),
        _ => None,
    }
}

/// Whether the log's own context shows a source.
fn is_sourced(timeline: &Timeline, reference: &Reference) -> bool {
    let sources = &timeline.sources[reference.sources.start as usize..reference.sources.end as usize];
    let shown = ShownBlocks::to(timeline, reference.request);
    sources.iter().any(|source| shown.contains(source.block))
}

/// Readings of a file whose last reading still stands in the log's own context.
fn natural_rereads(detectors: &Detectors<'_>, timeline: &Timeline) -> Share {
    let files = detectors.files();
    let counted = timeline.counted_calls().map(|(call, _)| call as usize);
    let readings = counted.filter(|&call| files.access(call) == Access::Read);
    let (mut again, mut all) = (0, 0);
    for call in readings {
        let shown = || ShownBlocks::to(timeline, request_of(timeline, timeline.calls[call].asked));
        let before = files.reading(call);
        all += 1;
        again += u64::from(before != NONE && shown().contains(before));
    }
    Share::new(again, all)
}

fn example(timeline: &Timeline, event: &Break) -> BreakExample {
    let request = timeline.request(event.request);
    let call = timeline.calls.get(event.call as usize);
    let block = call.map_or(request.outputs.start, |call| call.asked);
    BreakExample {
        session: timeline.session_of(request).id.to_string(),
        message: request.id.to_string(),
        call: call.map_or_else(String::new, |call| call.id.to_string()),
        record: timeline.blocks.get(block as usize).map_or_else(String::new, |block| block.record.to_string()),
    }
}
