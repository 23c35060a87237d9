//! How large contexts are around the compactions of the log: after them, and whether that is predicted (by the
//! parameters, and by what is known before), and how far they grew before. The latter is all that telemetry can say
//! about thresholds, since its sizes are those of tool answers alone.

use crate::base::stats::Share;
use crate::logs::timeline::requests::{Boundary, Segment, SegmentCause, Timeline};
use crate::whatif::compaction::carry;
use crate::whatif::compaction::figures::percentiles;
use crate::whatif::compaction::outcome::{AfterSizes, ContextGrowth, Grown};
use crate::whatif::compaction::params::Params;
use crate::whatif::compaction::thresholds::CompactionThresholds;
use crate::whatif::sim::sizes::BlockSizes;

/// Compares the first contexts after real compactions with what the parameters leave (without a tail: the client keeps none),
/// and with what was known of each before the week in which it came.
pub fn after_sizes(
    timeline: &Timeline,
    sizes: &BlockSizes,
    params: &Params,
    sheet: &CompactionThresholds,
) -> AfterSizes {
    let tolerance = sheet.bars.after_size_tolerance_percent;
    let within = |predicted: u64, came: u64| predicted.abs_diff(came) * 100 <= came * tolerance;
    let carry = made_tokens(params, sheet) + sheet.client.tail_keep_tokens;
    let after: Vec<(u64, u64)> = contexts(timeline, sizes);
    let by_params = after.iter().filter(|(prefix, came)| within(prefix + carry, *came)).count() as u64;
    let forecasts = carry::forecasts(&carry::compactions(timeline, sizes, sheet), sheet);
    let close = forecasts.iter().filter(|one| within(one.predicted.round() as u64, one.came as u64)).count() as u64;
    let learned = Share::new(close, forecasts.len() as u64);
    AfterSizes {
        compactions: after.len() as u64,
        context: percentiles(after.iter().map(|(_, came)| *came).collect()),
        by_params: Share::new(by_params, after.len() as u64),
        is_met: (learned.n > 0).then_some(learned.value() * 100.0 >= sheet.bars.after_size_percent),
        learned,
        in_interval: Share::new(forecasts.iter().filter(|one| one.holds()).count() as u64, forecasts.len() as u64),
        interval_percent: sheet.client.reattach.interval_percent,
        forecasts,
    }
}

/// Summary, acknowledgement and what is reattached.
fn made_tokens(params: &Params, sheet: &CompactionThresholds) -> u64 {
    let sizes = [params.summary_tokens, sheet.client.acknowledgement_tokens, params.reattach_tokens];
    sizes.map(u64::from).iter().sum()
}

/// The static prefix and the first context after every compaction with a request after it.
fn contexts(timeline: &Timeline, sizes: &BlockSizes) -> Vec<(u64, u64)> {
    let first = |boundary: &Boundary| {
        let request = timeline.requests.get(boundary.request as usize)?;
        let prefix = sizes.prefix.get(boundary.chain as usize).copied().unwrap_or_default();
        (request.chain == boundary.chain && request.context() > 0).then(|| (prefix, request.context()))
    };
    timeline.boundaries.iter().filter_map(first).collect()
}

/// Partitions that a compaction ended, and the last ones of their contexts.
pub fn growth(timeline: &Timeline) -> ContextGrowth {
    let is_compacted = |index: usize, segment: &Segment| {
        let next = timeline.segments.get(index + 1).filter(|next| next.chain == segment.chain);
        next.is_some_and(|next| next.cause == SegmentCause::Compaction)
    };
    let (compacted, open): (Vec<_>, Vec<_>) =
        timeline.segments.iter().enumerate().partition(|(index, segment)| is_compacted(*index, segment));
    let grown = |segments: Vec<(usize, &Segment)>| {
        let requests = |segment: &Segment| segment.requests.end - segment.requests.start;
        let last = |segment: &Segment| timeline.requests[segment.requests.end as usize - 1].context();
        let some = || segments.iter().map(|(_, segment)| *segment).filter(|segment| requests(segment) > 0);
        Grown {
            partitions: some().count() as u64,
            tokens: percentiles(some().map(last).collect()),
            requests: percentiles(some().map(|segment| requests(segment).into()).collect()),
        }
    };
    ContextGrowth { compacted: grown(compacted), open: grown(open) }
}
