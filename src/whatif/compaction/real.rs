//! What the compactions of the log cost and broke, and whether the client's rule finds the automatic ones again.
//!
//! The summariser's calls are not logged, so their tokens are an estimate and never part of the bill. What broke is
//! what later output took up and only the compacted part had shown.
//!
//! In every stretch of requests the rule fires at the first context that reaches the trigger. The context that the
//! client saw right before a compaction was never sent: it is what the boundary says of it, else the context before
//! with an estimate of what came since. Results that arrived right before a compaction were sent to nobody and may be
//! missing from that estimate, so placing by it alone is a lower bound; it stands beside. A firing is false where no
//! automatic compaction is next to it.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::base::stats::Share;
use crate::logs::timeline::requests::{Boundary, NONE, Request, Segment, Timeline, Trigger};
use crate::whatif::compaction::carry::around;
use crate::whatif::compaction::outcome::{Placement, RealCompactions, SummariserTokens};
use crate::whatif::compaction::params::{CompactionThresholds, GrowthThresholds, Params};
use crate::whatif::sim::breakage::Detectors;
use crate::whatif::sim::breakage::detect::ShownBlocks;
use crate::whatif::sim::breakage::files::{calls_of, rereads};
use crate::whatif::sim::breakage::rows::{Break, Breakage, tally};
use crate::whatif::sim::laid_out::item;
use crate::whatif::sim::unlogged::summariser_calls;
use crate::whatif::sim::view::ContextView;

/// Sums up all real compactions.
pub fn real_compactions(detectors: &Detectors<'_>, thresholds: &CompactionThresholds) -> RealCompactions {
    let Detectors { timeline, tokens, files, .. } = detectors;
    let calls_after = detectors.thresholds.report.calls_after;
    let summarisers = summariser_calls(timeline, tokens, thresholds.warm.slack_seconds).into_iter();
    let mut real = RealCompactions {
        triggers: BTreeMap::new(),
        summariser_estimate: summarisers.map(|call| SummariserTokens::of(call.spent)).sum(),
        rewritten_tokens: 0,
        removed_tokens: 0,
        rereads: rereads(timeline, files, detectors.thresholds),
        breakage: Breakage::default(),
    };
    let mut breaks = Vec::new();
    let mut requests = 0;
    for boundary in &timeline.boundaries {
        *real.triggers.entry(boundary.trigger.into_str().to_owned()).or_default() += 1;
        let (before, after) = around(timeline, boundary);
        change(before, after, &mut real);
        // Where nothing came after it, the next request is another chain's.
        if after.is_none() {
            continue;
        }
        let soon = soon_after(timeline, boundary.request, calls_after);
        requests += soon.len() as u64;
        if before.is_some() {
            lost(detectors, boundary, soon, &mut breaks);
        }
    }
    real.breakage = tally(detectors, &breaks, requests);
    real
}

/// The requests from `request` on, in its chain and segment, until so many tools were called.
pub fn soon_after(timeline: &Timeline, request: u32, calls: usize) -> Range<u32> {
    let end = timeline.segments[timeline.request(request).segment as usize].requests.end;
    let mut left = calls;
    let mut at = request;
    while at < end && left > 0 {
        left = left.saturating_sub(calls_of(timeline, at).len());
        at += 1;
    }
    request..at
}

/// What the context lost, and what was written to the cache again.
fn change(before: Option<&Request>, after: Option<&Request>, real: &mut RealCompactions) {
    real.rewritten_tokens += after.map_or(0, |request| request.usage().cache_creation);
    if let (Some(before), Some(after)) = (before, after) {
        real.removed_tokens += before.context().saturating_sub(after.context());
    }
}

/// Shows the detectors the contexts that would have been without the compaction, and those that were.
fn lost(detectors: &Detectors<'_>, boundary: &Boundary, soon: Range<u32>, breaks: &mut Vec<Break>) {
    let Detectors { timeline, tokens, .. } = detectors;
    let before: Vec<u32> = ShownBlocks::after(timeline, boundary.request - 1).blocks().collect();
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

/// Replays the trigger of `params` against the log.
pub fn placement(timeline: &Timeline, params: &Params, thresholds: &CompactionThresholds) -> Placement {
    let boundaries = by_segment(timeline);
    let beyond = |chain: u32| timeline.requests_of(chain).iter().any(|request| request.context() > params.window);
    let chains: Vec<bool> = (0..timeline.chains.len()).map(|chain| beyond(chain as u32)).collect();
    let mut tried = PlacementCounts::default();
    for (place, segment) in timeline.segments.iter().enumerate().filter(|(_, segment)| !chains[segment.chain as usize])
    {
        tried.segment(timeline, segment, boundaries.get(&place).copied(), params, thresholds);
    }
    let placed = Share::new(tried.placed, tried.automatic);
    let false_firings = Share::new(tried.false_firings, tried.requests);
    let is_met = placed.value() * 100.0 >= thresholds.bars.placed_percent
        && false_firings.value() * 100.0 <= thresholds.bars.false_firings_percent;
    Placement {
        placed,
        false_firings,
        beyond_window: chains.iter().filter(|&&beyond| beyond).count() as u64,
        is_met: (tried.automatic > 0).then_some(is_met),
    }
}

#[derive(Default)]
struct PlacementCounts {
    automatic: u64,
    placed: u64,
    false_firings: u64,
    requests: u64,
}

impl PlacementCounts {
    /// `boundary` is the compaction that ends the segment.
    fn segment(
        &mut self,
        timeline: &Timeline,
        segment: &Segment,
        boundary: Option<&Boundary>,
        params: &Params,
        thresholds: &CompactionThresholds,
    ) {
        let fires = |request: u32, tokens: u64| {
            let version = timeline.names.text(timeline.request(request).version);
            tokens >= params.trigger_tokens(thresholds, version)
        };
        let counted = || segment.requests.clone().filter(|&at| timeline.request(at).counts());
        self.requests += counted().count() as u64;
        let sent = segment.requests.clone().find(|&at| fires(at, timeline.requests[at as usize].context()));
        let end = segment.requests.end;
        let is_beside = |fired: Option<u32>| fired.is_some_and(|at| end - at <= thresholds.bars.placed_within_requests);
        let automatic = boundary.filter(|boundary| boundary.trigger == Trigger::Auto);
        if let (Some(boundary), Some(last)) = (automatic, segment.requests.clone().last()) {
            let tokens = boundary.pre_tokens.unwrap_or_else(|| grown(timeline, last, &thresholds.client.growth));
            self.automatic += 1;
            self.placed += u64::from(is_beside(sent.or_else(|| fires(last, tokens).then_some(end))));
        }
        let is_sent = sent.is_some_and(|at| timeline.request(at).counts());
        self.false_firings += u64::from(is_sent && !(boundary.is_some() && is_beside(sent)));
    }
}

/// The compaction that ends each segment, where one does and something was sent before it.
fn by_segment(timeline: &Timeline) -> BTreeMap<usize, &Boundary> {
    let ends = |boundary: &Boundary| around(timeline, boundary).0.map(|last| last.segment as usize);
    timeline.boundaries.iter().filter_map(|boundary| Some((ends(boundary)?, boundary))).collect()
}

/// The context after this request: its own, its answer and the results of the calls it made.
fn grown(timeline: &Timeline, request: u32, growth: &GrowthThresholds) -> u64 {
    let request = timeline.request(request);
    let blocks = request.outputs.clone().map(|block| &timeline.blocks[block as usize]);
    let tokens = |chars: u64| (chars as f64 * growth.tokens_per_char) as u64;
    let answer = tokens(blocks.clone().map(|block| u64::from(block.chars)).sum());
    let calls = blocks.filter(|block| block.call != NONE).map(|block| &timeline.calls[block.call as usize]);
    let results = calls
        .filter(|call| call.answered != NONE)
        .map(|call| growth.tokens_per_result + tokens(u64::from(timeline.blocks[call.answered as usize].chars)));
    // The logged output is a lower bound, and so is the text: thinking may be missing.
    request.context() + answer.max(request.usage().output) + results.sum::<u64>()
}
