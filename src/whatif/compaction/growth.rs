//! How far contexts grew before they were compacted: all that telemetry can say about thresholds, since its sizes are those of
//! tool answers alone.

use crate::logs::timeline::requests::{Segment, SegmentCause, Timeline};
use crate::whatif::compaction::outcome::{Grown, Growth};
use crate::whatif::compaction::summary::percentiles;

/// Partitions that a compaction ended, and the last ones of their contexts.
pub fn growth(timeline: &Timeline) -> Growth {
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
    Growth { compacted: grown(compacted), open: grown(open) }
}
