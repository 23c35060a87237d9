//! What the compactions of the log cost and broke.
//!
//! The summariser's calls are not logged, so their tokens are an estimate and never part of the bill. What broke is
//! what the next answers took up and only the compacted part had shown.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::logs::timeline::requests::{Boundary, Timeline};
use crate::whatif::compaction::outcome::{RealCompactions, SummariserTokens};
use crate::whatif::compaction::thresholds::CompactionThresholds;
use crate::whatif::sim::breakage;
use crate::whatif::sim::breakage::Detectors;
use crate::whatif::sim::breakage::ages::rereads;
use crate::whatif::sim::breakage::files::calls_of;
use crate::whatif::sim::breakage::rows::Break;
use crate::whatif::sim::breakage::shown::ShownBlocks;
use crate::whatif::sim::breakage::tally::tally;
use crate::whatif::sim::laid_out::item;
use crate::whatif::sim::unlogged::summariser_calls;
use crate::whatif::sim::view::ContextView;

/// Sums up all real compactions. `tokens` are the sizes of [`Timeline::blocks`].
pub fn real_compactions(
    timeline: &Timeline,
    tokens: &[u32],
    detectors: &Detectors<'_>,
    sheet: &CompactionThresholds,
    breakage: &breakage::BreakageThresholds,
) -> RealCompactions {
    let summarisers = summariser_calls(timeline, tokens, sheet.warm.slack_seconds).into_iter();
    let mut real = RealCompactions {
        triggers: BTreeMap::new(),
        summariser_estimate: summarisers.map(|call| SummariserTokens::of(call.spent)).sum(),
        rewritten_tokens: 0,
        removed_tokens: 0,
        rereads: rereads(timeline, detectors.files(), breakage),
        breakage: tally(detectors, timeline, &[], 0, breakage),
    };
    let mut breaks = Vec::new();
    let mut requests = 0;
    for boundary in &timeline.boundaries {
        *real.triggers.entry(boundary.trigger.into_str().to_owned()).or_default() += 1;
        change(timeline, boundary, &mut real);
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

/// What the context lost, and what was written to the cache again.
fn change(timeline: &Timeline, boundary: &Boundary, real: &mut RealCompactions) {
    let in_chain = |at: u32| timeline.requests.get(at as usize).filter(|request| request.chain == boundary.chain);
    let before = boundary.request.checked_sub(1).and_then(in_chain);
    let after = in_chain(boundary.request);
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
    if timeline.request(last).chain != boundary.chain {
        return;
    }
    let before: Vec<u32> = ShownBlocks::after(timeline, last).blocks().collect();
    let view = |blocks: &mut dyn Iterator<Item = u32>| ContextView {
        items: blocks.map(|block| item(timeline, tokens, block)).collect(),
        ..ContextView::default()
    };
    for request in soon {
        let shown = ShownBlocks::to(timeline, request);
        let logged = view(&mut before.iter().copied().chain(shown.blocks()));
        detectors.look(request, &logged, &view(&mut shown.blocks()), breaks);
    }
}
