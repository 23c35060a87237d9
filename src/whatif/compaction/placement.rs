//! Whether the client's rule finds the automatic compactions of the log again.
//!
//! In every stretch of requests the rule fires at the first context that reaches the trigger. The context that the
//! client saw right before a compaction was never sent: it is what the boundary says of it, else the context before
//! with an estimate of what came since. Results that arrived right before a compaction were sent to nobody and may be
//! missing from that estimate, so placing by it alone is a lower bound; it stands beside. A firing is false where no
//! automatic compaction is next to it.

use std::collections::BTreeMap;

use crate::base::stats::Share;
use crate::logs::timeline::requests::{Boundary, NONE, Segment, Timeline, Trigger};
use crate::logs::trace::compare_versions;
use crate::whatif::compaction::outcome::{Placement, VersionEdge};
use crate::whatif::compaction::params::Params;
use crate::whatif::compaction::thresholds;
use crate::whatif::compaction::thresholds::CompactionThresholds;

/// Replays the trigger of `params` against the log.
pub fn placement(timeline: &Timeline, params: &Params, sheet: &CompactionThresholds) -> Placement {
    let boundaries = by_segment(timeline);
    let beyond = |chain: u32| timeline.requests_of(chain).iter().any(|request| request.context() > params.window);
    let chains: Vec<bool> = (0..timeline.chains.len()).map(|chain| beyond(chain as u32)).collect();
    let mut tried = PlacementCounts::default();
    for (place, segment) in timeline.segments.iter().enumerate().filter(|(_, segment)| !chains[segment.chain as usize])
    {
        tried.segment(timeline, segment, boundaries.get(&place).copied(), params, sheet);
    }
    let who = |trigger| timeline.boundaries.iter().filter(|boundary| boundary.trigger == trigger).count() as u64;
    let placed = Share::new(tried.placed, tried.automatic);
    let false_firings = Share::new(tried.false_firings, tried.requests);
    let is_met = placed.value() * 100.0 >= sheet.bars.placed_percent
        && false_firings.value() * 100.0 <= sheet.bars.false_firings_percent;
    Placement {
        placed,
        placed_by_estimate: Share::new(tried.placed_by_estimate, tried.automatic),
        false_firings,
        manual: who(Trigger::Manual),
        unknown: who(Trigger::Unknown),
        beyond_window: chains.iter().filter(|&&beyond| beyond).count() as u64,
        edges: edges(timeline, params, sheet),
        is_met: (tried.automatic > 0).then_some(is_met),
    }
}

#[derive(Default)]
struct PlacementCounts {
    automatic: u64,
    placed: u64,
    placed_by_estimate: u64,
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
        sheet: &CompactionThresholds,
    ) {
        let fires = |request: u32, tokens: u64| {
            let version = timeline.names.text(timeline.request(request).version);
            tokens >= params.trigger_tokens(sheet, version)
        };
        let counted = || segment.requests.clone().filter(|&at| timeline.request(at).counts());
        self.requests += counted().count() as u64;
        let sent = segment.requests.clone().find(|&at| fires(at, timeline.requests[at as usize].context()));
        let end = segment.requests.end;
        let is_beside = |fired: Option<u32>| fired.is_some_and(|at| end - at <= sheet.bars.placed_within_requests);
        let automatic = boundary.filter(|boundary| boundary.trigger == Trigger::Auto);
        if let (Some(boundary), Some(last)) = (automatic, segment.requests.clone().last()) {
            let estimate = grown(timeline, last, &sheet.client.growth);
            let placed = |tokens| is_beside(sent.or_else(|| fires(last, tokens).then_some(end)));
            self.automatic += 1;
            self.placed += u64::from(placed(boundary.pre_tokens.unwrap_or(estimate)));
            self.placed_by_estimate += u64::from(placed(estimate));
        }
        let is_sent = sent.is_some_and(|at| timeline.request(at).counts());
        self.false_firings += u64::from(is_sent && !(boundary.is_some() && is_beside(sent)));
    }
}

/// The compaction that ends each segment, where one does and something was sent before it.
fn by_segment(timeline: &Timeline) -> BTreeMap<usize, &Boundary> {
    let ends = |boundary: &Boundary| {
        let last = boundary.request.checked_sub(1)?;
        let request = timeline.requests.get(last as usize)?;
        (request.chain == boundary.chain).then_some(request.segment as usize)
    };
    timeline.boundaries.iter().filter_map(|boundary| Some((ends(boundary)?, boundary))).collect()
}

/// The context after this request: its own, its answer and the results of the calls it made.
fn grown(timeline: &Timeline, request: u32, growth: &thresholds::GrowthThresholds) -> u64 {
    let request = timeline.request(request);
    let blocks = request.outputs.clone().map(|block| &timeline.blocks[block as usize]);
    let tokens = |chars: u64| (chars as f64 * growth.tokens_per_char) as u64;
    let answer = tokens(blocks.clone().map(|block| u64::from(block.chars)).sum());
    let calls = blocks.filter(|block| block.call != NONE).map(|block| &timeline.calls[block.call as usize]);
    let results = calls
        .filter(|call| call.answered != NONE)
        .map(|call| growth.tokens_per_result + tokens(u64::from(timeline.blocks[call.answered as usize].chars)));
    // The logged output is a lower bound, and so is the text: thinking may be missing.
    request.context() + answer.max(request.usage.output) + results.sum::<u64>()
}

/// Contexts at automatic compactions by client version.
fn edges(timeline: &Timeline, params: &Params, sheet: &CompactionThresholds) -> Vec<VersionEdge> {
    let mut sizes: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for boundary in timeline.boundaries.iter().filter(|boundary| boundary.trigger == Trigger::Auto) {
        let before = boundary.request.checked_sub(1).and_then(|last| timeline.requests.get(last as usize));
        let before = before.filter(|request| request.chain == boundary.chain);
        if let (Some(request), Some(tokens)) = (before, boundary.pre_tokens) {
            sizes.entry(timeline.names.text(request.version)).or_default().push(tokens);
        }
    }
    let edge = |(version, sizes): (&str, Vec<u64>)| VersionEdge {
        version: version.to_owned(),
        compactions: sizes.len() as u64,
        tokens_min: sizes.iter().copied().min().unwrap_or_default(),
        tokens_max: sizes.iter().copied().max().unwrap_or_default(),
        trigger_tokens: params.trigger_tokens(sheet, version),
    };
    let mut edges: Vec<VersionEdge> = sizes.into_iter().map(edge).collect();
    edges.sort_by(|a, b| compare_versions(&a.version, &b.version));
    edges
}
