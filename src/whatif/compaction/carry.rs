//! How large contexts are around the compactions of the log: after them, and whether that is predicted (by what the chain began
//! with, a summary as long as the last ones, the files that were read last, and a rest learned from earlier compactions); and
//! how far they grew before, which is all that telemetry can say about thresholds.

use std::collections::BTreeMap;

use crate::base::backtest::{Forecast, at_share, next_within, week_of};
use crate::base::numbers::{counted, thousands};
use crate::base::stats::Share;
use crate::logs::timeline::requests::{BlockKind, Boundary, NONE, Request, Segment, SegmentCause, Timeline};
use crate::logs::trace::{Millis, NO_TIME, Usage};
use crate::whatif::compaction::figures::percentiles;
use crate::whatif::compaction::outcome::{AfterSizes, ContextGrowth, Grown};
use crate::whatif::compaction::params::{CompactionThresholds, Params, Reattach};
use crate::whatif::sim::sizes::{self, BlockSizes};

/// A compaction with what is known before it, and how large the context was after it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CarriedCompaction {
    /// When the first request after it began.
    pub at: Millis,
    /// Tokens that stand in front of the conversation: tools, system prompt, memory.
    pub opening: u64,
    /// Tokens of the files that were read last.
    pub files: u64,
    /// Tokens of the summary.
    pub summary: u64,
    /// Tokens of the first context after it.
    pub came: u64,
}

/// Every compaction with a request after it, by time.
pub fn compactions(
    timeline: &Timeline,
    sizes: &BlockSizes,
    thresholds: &CompactionThresholds,
) -> Vec<CarriedCompaction> {
    let of = |boundary: &Boundary| carried(timeline, sizes, thresholds, boundary);
    let mut found: Vec<CarriedCompaction> = timeline.boundaries.iter().filter_map(of).collect();
    found.sort_by_key(|one| (one.at, one.came));
    found
}

fn carried(
    timeline: &Timeline,
    sizes: &BlockSizes,
    thresholds: &CompactionThresholds,
    boundary: &Boundary,
) -> Option<CarriedCompaction> {
    let request = around(timeline, boundary).1.filter(|request| request.context() > 0)?;
    let summary = (boundary.summary != NONE).then(|| u64::from(sizes.tokens[boundary.summary as usize]));
    Some(CarriedCompaction {
        at: request.start,
        opening: opening(timeline, sizes, thresholds, boundary),
        files: files(timeline, &sizes.tokens, &thresholds.client.reattach, boundary),
        summary: summary.unwrap_or(0),
        came: request.context(),
    })
}

/// The last request of the chain before a compaction, and the first after it.
pub fn around<'t>(timeline: &'t Timeline, boundary: &Boundary) -> (Option<&'t Request>, Option<&'t Request>) {
    let in_chain = |at: u32| timeline.requests.get(at as usize).filter(|request| request.chain == boundary.chain);
    (boundary.request.checked_sub(1).and_then(in_chain), in_chain(boundary.request))
}

/// What the chain began with besides its first prompt; where that cannot be told, the static prefix.
fn opening(timeline: &Timeline, sizes: &BlockSizes, thresholds: &CompactionThresholds, boundary: &Boundary) -> u64 {
    let chain = timeline.chain(boundary.chain);
    let prefix = sizes.prefix[boundary.chain as usize];
    let first = timeline.request(chain.requests.start);
    // A chain that goes on from another one, or that the log shows only from a compaction on, began with a conversation.
    let began = &timeline.segments[chain.segments.start as usize];
    let is_plain =
        began.cause == SegmentCause::Start && began.after == NONE && chain.requests.start != boundary.request;
    let opening = sizes::opening(timeline, first, &sizes.rules);
    let is_believed = is_plain && opening <= prefix + thresholds.client.reattach.memory_tokens_max;
    if is_believed { opening.max(prefix) } else { prefix }
}

/// Tokens of the files that were read last since the compaction before, as far as the client puts them back.
fn files(timeline: &Timeline, tokens: &[u32], reattach: &Reattach, boundary: &Boundary) -> u64 {
    let chain = timeline.chain(boundary.chain);
    let own = |other: &&Boundary| other.chain == boundary.chain && other.request < boundary.request;
    let since = timeline.boundaries.iter().filter(own).map(|other| other.request).max();
    let since = since.unwrap_or(chain.requests.start);
    // By file: when it was last worked on, and its size.
    let mut known: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
    for request in &timeline.requests[since as usize..boundary.request as usize] {
        for block in request.inputs.start..request.outputs.end {
            let row = &timeline.blocks[block as usize];
            let Some(call) = timeline.calls.get(row.call as usize).filter(|call| call.path != NONE && !call.is_error)
            else {
                continue;
            };
            let tool = timeline.names.text(call.tool);
            let size = u64::from(tokens[block as usize]);
            match row.kind {
                BlockKind::ToolResult if reattach.reads(tool) => drop(known.insert(call.path, (block, size))),
                BlockKind::ToolUsage if reattach.writes(tool) => drop(known.insert(call.path, (block, size))),
                BlockKind::ToolResult => {
                    if let Some(file) = known.get_mut(&call.path) {
                        file.0 = block;
                    }
                }
                _ => {}
            }
        }
    }
    let mut latest: Vec<(u32, u64)> = known.into_values().collect();
    latest.sort_unstable_by(|a, b| b.cmp(a));
    latest.iter().take(reattach.files_max).map(|(_, size)| (*size).min(reattach.file_tokens_max)).sum()
}

/// A prediction for each compaction, by those that were over in an earlier week: known until then, judged after.
pub fn forecasts(found: &[CarriedCompaction], thresholds: &CompactionThresholds) -> Vec<Forecast> {
    let timed = |one: &&CarriedCompaction| one.at != NO_TIME;
    found.iter().filter(timed).map(|one| forecast(one, &known_before(found, week_of(one.at)), thresholds)).collect()
}

fn known_before(found: &[CarriedCompaction], week: i64) -> Vec<CarriedCompaction> {
    found.iter().filter(|other| other.at != NO_TIME && week_of(other.at) < week).copied().collect()
}

/// The prediction by what `known` compactions were like.
fn forecast(one: &CarriedCompaction, known: &[CarriedCompaction], thresholds: &CompactionThresholds) -> Forecast {
    let reattach = &thresholds.client.reattach;
    let summary = median(known.iter().map(|other| other.summary as f64).filter(|summary| *summary > 0.0));
    let summary = summary.unwrap_or_else(|| f64::from(thresholds.params.summary_tokens));
    let plain = |of: &CarriedCompaction| {
        (of.opening + of.files) as f64 + summary + f64::from(thresholds.client.acknowledgement_tokens)
    };
    let rest =
        median(known.iter().map(|other| other.came as f64 - plain(other))).unwrap_or(reattach.rest_tokens as f64);
    let predicted = plain(one) + rest;
    // How far off the same prediction was for those that are known.
    let off: Vec<f64> = known.iter().map(|other| other.came as f64 / (plain(other) + rest).max(1.0)).collect();
    let share = reattach.interval_percent / 100.0;
    let (low, high) = next_within(&off, share).unwrap_or((1.0 - reattach.unknown_off, 1.0 + reattach.unknown_off));
    Forecast {
        week: week_of(one.at),
        predicted,
        lower: predicted * low.min(1.0 - reattach.least_off),
        upper: predicted * high.max(1.0 + reattach.least_off),
        came: one.came as f64,
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    at_share(&sorted, 0.5)
}

/// Compares the first contexts after real compactions with what the parameters leave (without a tail: the client keeps none),
/// and with what was known of each before the week in which it came.
pub fn after_sizes(
    timeline: &Timeline,
    sizes: &BlockSizes,
    params: &Params,
    thresholds: &CompactionThresholds,
) -> AfterSizes {
    let tolerance = thresholds.bars.after_size_tolerance_percent;
    let within = |predicted: u64, came: u64| predicted.abs_diff(came) * 100 <= came * tolerance;
    let carry = made_sizes(params, thresholds).map(u64::from).iter().sum::<u64>() + thresholds.client.tail_keep_tokens;
    let after: Vec<(u64, u64)> = contexts(timeline, sizes);
    let by_params = after.iter().filter(|(prefix, came)| within(prefix + carry, *came)).count() as u64;
    let forecasts = forecasts(&compactions(timeline, sizes, thresholds), thresholds);
    let close = forecasts.iter().filter(|one| within(one.predicted.round() as u64, one.came as u64)).count() as u64;
    let learned = Share::new(close, forecasts.len() as u64);
    AfterSizes {
        compactions: after.len() as u64,
        context: percentiles(after.iter().map(|(_, came)| *came).collect()),
        by_params: Share::new(by_params, after.len() as u64),
        is_met: (learned.n > 0).then_some(learned.value() * 100.0 >= thresholds.bars.after_size_percent),
        learned,
        in_interval: Share::new(forecasts.iter().filter(|one| one.holds()).count() as u64, forecasts.len() as u64),
        interval_percent: thresholds.client.reattach.interval_percent,
        forecasts,
    }
}

/// What comes back after a compaction besides its summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reattached {
    /// Compactions of which it is known.
    pub known: u64,
    /// Whether these are enough.
    pub is_measured: bool,
    /// Tokens: at the median of these, or what the parameters say where too few are known.
    pub tokens: u32,
}

impl Reattached {
    /// What is taken to come back, and why.
    pub fn words(&self) -> String {
        let tokens = thousands(self.tokens.into());
        let why = if self.is_measured {
            format!("the median of {} here", counted(self.known, "compaction"))
        } else {
            "as elsewhere: too few compactions here to measure it".to_owned()
        };
        format!("after a compaction {tokens} tokens come back besides the summary ({why})")
    }
}

/// Measures what came back after the compactions of a log, beside a summary as long as the parameters say.
pub fn reattached(
    timeline: &Timeline,
    sizes: &BlockSizes,
    params: &Params,
    thresholds: &CompactionThresholds,
) -> Reattached {
    let summary = u64::from(params.summary_tokens) + u64::from(thresholds.client.acknowledgement_tokens);
    let came: Vec<(u64, u64)> = contexts(timeline, sizes);
    let reattach = &thresholds.client.reattach;
    let measured = median(came.iter().map(|(prefix, came)| came.saturating_sub(prefix + summary) as f64));
    let measured = measured.filter(|_| came.len() >= reattach.known_min);
    let tokens = measured.map_or(params.reattach_tokens, |tokens| tokens as u32);
    Reattached { known: came.len() as u64, is_measured: measured.is_some(), tokens }
}

/// Summary, acknowledgement and what is reattached.
pub fn made_sizes(params: &Params, thresholds: &CompactionThresholds) -> [u32; 3] {
    [params.summary_tokens, thresholds.client.acknowledgement_tokens, params.reattach_tokens]
}

/// The static prefix and the first context after every compaction with a request after it.
fn contexts(timeline: &Timeline, sizes: &BlockSizes) -> Vec<(u64, u64)> {
    let first = |boundary: &Boundary| {
        let context = around(timeline, boundary).1.map(Request::context).filter(|&context| context > 0)?;
        Some((sizes.prefix.get(boundary.chain as usize).copied().unwrap_or_default(), context))
    };
    timeline.boundaries.iter().filter_map(first).collect()
}

/// Partitions that a compaction ended, and the last ones of their contexts, of a timeline out of telemetry: all answers of a
/// partition, those behind its last request as well.
pub fn growth(timeline: &Timeline) -> ContextGrowth {
    let is_compacted = |index: usize, segment: &Segment| {
        let next = timeline.segments.get(index + 1).filter(|next| next.chain == segment.chain);
        next.is_some_and(|next| next.cause == SegmentCause::Compaction)
    };
    let (compacted, open): (Vec<_>, Vec<_>) =
        timeline.segments.iter().enumerate().partition(|(index, segment)| is_compacted(*index, segment));
    let grown = |segments: Vec<(usize, &Segment)>| {
        let requests = |segment: &Segment| segment.requests.end - segment.requests.start;
        let last = |segment: &Segment| {
            let Usage { cache_read, cache_creation, .. } = timeline.requests[segment.requests.end as usize - 1].usage();
            cache_read + cache_creation + unsent(timeline, segment.requests.end)
        };
        let some = || segments.iter().map(|(_, segment)| *segment).filter(|segment| requests(segment) > 0);
        Grown {
            partitions: some().count() as u64,
            tokens: percentiles(some().map(last).collect()),
            requests: percentiles(some().map(|segment| requests(segment).into()).collect()),
        }
    };
    ContextGrowth { compacted: grown(compacted), open: grown(open) }
}

/// Tokens of the answers between the request before `next` and the one that may follow.
fn unsent(timeline: &Timeline, next: u32) -> u64 {
    let start = timeline.requests[next as usize - 1].outputs.end as usize;
    let end = timeline.requests.get(next as usize).map_or(timeline.blocks.len(), |next| next.inputs.start as usize);
    timeline.blocks[start..end].iter().map(|block| u64::from(block.tokens[0])).sum()
}
