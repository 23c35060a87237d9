//! What the compactions of the log cost and broke.
//!
//! The summariser's calls are not logged, so their tokens are an estimate and never part of the bill. What broke is what
//! the next answers took up and only the compacted part had shown.
//!
//! A virtual run of compaction in figures.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::logs::timeline::requests::{Boundary, NONE, Timeline, Trigger};
use crate::whatif::compaction::outcome::{
    Attempt, Compactions, Outcome, Percentiles, RealCompactions, SummariserTokens,
};
use crate::whatif::compaction::sheet::Sheet;
use crate::whatif::compaction::{SUMMARY_CALL, is_warm};
use crate::whatif::sim::breakage;
use crate::whatif::sim::breakage::Detectors;
use crate::whatif::sim::breakage::ages::{calls_of, rereads};
use crate::whatif::sim::breakage::detect::tally;
use crate::whatif::sim::breakage::rows::Break;
use crate::whatif::sim::breakage::shown::Shown;
use crate::whatif::sim::simulate::Run;
use crate::whatif::sim::view::{ContextView, Item, Key};

/// Sums up all real compactions. `tokens` are the sizes of [`Timeline::blocks`].
pub fn real_compactions(
    timeline: &Timeline,
    tokens: &[u32],
    detectors: &Detectors<'_>,
    sheet: &Sheet,
    breakage: &breakage::Sheet,
) -> RealCompactions {
    let mut real = RealCompactions {
        triggers: BTreeMap::new(),
        summariser_estimate: SummariserTokens::default(),
        rewritten_tokens: 0,
        removed_tokens: 0,
        rereads: rereads(timeline, detectors.files(), breakage),
        breakage: tally(detectors, timeline, &[], 0, breakage),
    };
    let mut breaks = Vec::new();
    let mut requests = 0;
    for boundary in &timeline.boundaries {
        *real.triggers.entry(word(boundary.trigger).to_owned()).or_default() += 1;
        bill(timeline, tokens, boundary, sheet, &mut real);
        let soon = soon_after(timeline, boundary.request, breakage.report.calls_after);
        requests += soon.len() as u64;
        lost(timeline, tokens, detectors, boundary, soon, &mut breaks);
    }
    real.breakage = tally(detectors, timeline, &breaks, requests, breakage);
    real
}

/// The requests from `request` on, in its chain and segment, until so many tools were called.
pub fn soon_after(timeline: &Timeline, request: u32, calls: usize) -> Range<u32> {
    let Some(first) = timeline.requests.get(request as usize) else { return request..request };
    let end = timeline.segments[first.segment as usize].requests.end;
    let mut left = calls;
    let mut at = request;
    while at < end && left > 0 {
        left = left.saturating_sub(calls_of(timeline, at).len());
        at += 1;
    }
    request..at
}

fn word(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Auto => "auto",
        Trigger::Manual => "manual",
        Trigger::Unknown => "unknown",
    }
}

fn bill(timeline: &Timeline, tokens: &[u32], boundary: &Boundary, sheet: &Sheet, real: &mut RealCompactions) {
    let in_chain = |at: u32| timeline.requests.get(at as usize).filter(|request| request.chain == boundary.chain);
    let before = boundary.request.checked_sub(1).and_then(in_chain);
    let after = in_chain(boundary.request);
    let read = boundary.pre_tokens.or(before.map(|request| request.context())).unwrap_or_default();
    let bill = &mut real.summariser_estimate;
    bill.calls += 1;
    match after {
        Some(_) if is_warm(timeline, boundary.request, &sheet.warm) => bill.read += read,
        _ => bill.uncached += read,
    }
    bill.output += if boundary.summary == NONE { 0 } else { u64::from(tokens[boundary.summary as usize]) };
    real.rewritten_tokens += after.map_or(0, |request| request.usage.cache_creation);
    if let (Some(before), Some(after)) = (before, after) {
        real.removed_tokens += before.context().saturating_sub(after.context());
    }
}

/// Shows the detectors the contexts that would have been without the compaction, and those that were.
fn lost(
    timeline: &Timeline,
    tokens: &[u32],
    detectors: &Detectors<'_>,
    boundary: &Boundary,
    soon: Range<u32>,
    breaks: &mut Vec<Break>,
) {
    let Some(last) = boundary.request.checked_sub(1) else { return };
    if timeline.requests[last as usize].chain != boundary.chain {
        return;
    }
    let before: Vec<u32> = Shown::after(timeline, last).blocks().collect();
    let view = |blocks: &mut dyn Iterator<Item = u32>| ContextView {
        items: blocks.map(|block| item(timeline, tokens, block)).collect(),
        ..ContextView::default()
    };
    for request in soon {
        let shown = Shown::to(timeline, request);
        let logged = view(&mut before.iter().copied().chain(shown.blocks()));
        detectors.look(request, &logged, &view(&mut shown.blocks()), breaks);
    }
}

fn item(timeline: &Timeline, tokens: &[u32], block: u32) -> Item {
    Item { key: Key::Block(block), tokens: tokens[block as usize], kept_chars: timeline.blocks[block as usize].chars }
}

/// Sums a run up. `attempts` are the stage's journal, `breaks` what the detectors found.
pub fn compactions(
    timeline: &Timeline,
    attempts: &[Attempt],
    run: &Run,
    breaks: Option<(&Detectors<'_>, &[Break], &breakage::Sheet)>,
    sheet: &Sheet,
) -> Compactions {
    let mut outcomes: BTreeMap<Outcome, u64> = BTreeMap::new();
    for attempt in attempts {
        *outcomes.entry(attempt.outcome).or_default() += 1;
    }
    let fired: Vec<&Attempt> = attempts.iter().filter(|attempt| attempt.outcome == Outcome::Ok).collect();
    let session =
        |attempt: &&Attempt| timeline.chains[timeline.requests[attempt.request as usize].chain as usize].session;
    let (requests_between_p50, turns_between_p50) = between(timeline, &fired);
    Compactions {
        sessions: fired.iter().map(session).collect::<BTreeSet<_>>().len() as u64,
        removed_tokens: fired.iter().map(|attempt| attempt.removed_tokens()).sum(),
        summariser: summariser(run),
        rewritten_tokens: rewritten(run, &fired),
        context: contexts(run),
        requests_between_p50,
        turns_between_p50,
        is_thrashing: requests_between_p50.is_some_and(|requests| requests < sheet.report.thrash_requests),
        soon_after: breaks.map(|(detectors, breaks, numbers)| {
            let (soon, requests) = of_soon_after(timeline, &fired, breaks, numbers);
            tally(detectors, timeline, &soon, requests, numbers)
        }),
        outcomes,
    }
}

/// Tokens of the summariser's calls.
pub fn summariser(run: &Run) -> SummariserTokens {
    let calls = run.extra.iter().filter(|extra| extra.call.cause == SUMMARY_CALL).map(|extra| extra.spent);
    calls.fold(SummariserTokens::default(), |sum, spent| SummariserTokens {
        calls: sum.calls + 1,
        read: sum.read + spent.read,
        uncached: sum.uncached + spent.uncached,
        output: sum.output + spent.output,
    })
}

/// Tokens of the contexts of a run, as they were sent.
pub fn contexts(run: &Run) -> Percentiles {
    percentiles(run.requests.iter().map(|priced| priced.spent.prompt()).collect())
}

/// Tokens that the requests right after a compaction wrote to the cache.
fn rewritten(run: &Run, fired: &[&Attempt]) -> u64 {
    let requests: BTreeSet<u32> = fired.iter().map(|attempt| attempt.request).collect();
    let after = run.requests.iter().filter(|priced| requests.contains(&priced.request));
    after.map(|priced| priced.spent.write()).sum()
}

/// Medians of requests and of human turns from one compaction to the next of its chain.
fn between(timeline: &Timeline, fired: &[&Attempt]) -> (Option<u64>, Option<u64>) {
    let of = |attempt: &Attempt| &timeline.requests[attempt.request as usize];
    let pairs: Vec<(u64, u64)> = fired
        .windows(2)
        .filter(|pair| of(pair[0]).chain == of(pair[1]).chain)
        .map(|pair| (u64::from(pair[1].request - pair[0].request), u64::from(of(pair[1]).turn - of(pair[0]).turn)))
        .collect();
    let median = |values: Vec<u64>| (!values.is_empty()).then(|| percentiles(values).p50);
    (median(pairs.iter().map(|pair| pair.0).collect()), median(pairs.iter().map(|pair| pair.1).collect()))
}

/// Breaks within the next tool calls after a compaction, and the requests that were looked at.
fn of_soon_after(
    timeline: &Timeline,
    fired: &[&Attempt],
    breaks: &[Break],
    numbers: &breakage::Sheet,
) -> (Vec<Break>, u64) {
    let soon: BTreeSet<u32> =
        fired.iter().flat_map(|attempt| soon_after(timeline, attempt.request, numbers.report.calls_after)).collect();
    let inside = breaks.iter().filter(|event| soon.contains(&event.request)).copied().collect();
    (inside, soon.len() as u64)
}

/// Quantiles by nearest rank; all 0 without values.
pub fn percentiles(mut values: Vec<u64>) -> Percentiles {
    values.sort_unstable();
    let at = |percent: usize| {
        let rank = (values.len() * percent).div_ceil(100).max(1);
        values.get(rank - 1).copied().unwrap_or_default()
    };
    Percentiles { p5: at(5), p25: at(25), p50: at(50), p75: at(75), p95: at(95), max: at(100) }
}
