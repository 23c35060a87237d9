//! A virtual run of compaction in figures, and the thresholds and carries that are tried beside each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::backtest::at_share;
use crate::logs::timeline::requests::Timeline;
use crate::whatif::compaction::outcome::{
    AttemptEnd, CompactionAttempt, CompactionSweepRow, Compactions, Percentiles, SummariserTokens,
};
use crate::whatif::compaction::params::{CompactionThresholds, Params};
use crate::whatif::compaction::real::soon_after;
use crate::whatif::compaction::{Compaction, CompactionTrigger, SUMMARY_CALL};
use crate::whatif::sim::breakage::rows::{Break, BreakClass, Breakage, tally};
use crate::whatif::sim::breakage::{BreakWatch, Detectors};
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::run::{Extra, SimulatedRun};
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::view::StageJournal;

/// Sums a run up. `attempts` are the stage's journal, `breaks` what the detectors found.
pub fn compactions(
    timeline: &Timeline,
    attempts: &[CompactionAttempt],
    run: &SimulatedRun,
    breaks: Option<(&Detectors<'_>, &[Break])>,
    thresholds: &CompactionThresholds,
) -> Compactions {
    let mut outcomes: BTreeMap<AttemptEnd, u64> = BTreeMap::new();
    for attempt in attempts {
        *outcomes.entry(attempt.outcome).or_default() += 1;
    }
    let fired: Vec<&CompactionAttempt> = attempts.iter().filter(|attempt| attempt.outcome == AttemptEnd::Ok).collect();
    let session = |attempt: &&CompactionAttempt| timeline.session_of_chain(timeline.request(attempt.request).chain);
    let (requests_between_p50, turns_between_p50) = between(timeline, &fired);
    Compactions {
        sessions: fired.iter().map(session).collect::<BTreeSet<_>>().len() as u64,
        removed_tokens: fired.iter().map(|attempt| attempt.removed_tokens()).sum(),
        summariser: summariser(run),
        rewritten_tokens: rewritten(run, &fired),
        context: contexts(run),
        requests_between_p50,
        turns_between_p50,
        is_thrashing: requests_between_p50.is_some_and(|requests| requests < thresholds.report.thrash_requests),
        soon_after: breaks.map(|(detectors, breaks)| of_soon_after(detectors, &fired, breaks)),
        outcomes,
    }
}

/// Tokens of the summariser's calls.
pub fn summariser(run: &SimulatedRun) -> SummariserTokens {
    let calls = run.extra.iter().filter(|extra| extra.call.cause == SUMMARY_CALL).map(|extra| extra.spent);
    calls.map(SummariserTokens::of).sum()
}

/// Tokens of the contexts of a run, as they were sent.
pub fn contexts(run: &SimulatedRun) -> Percentiles {
    percentiles(run.requests.iter().map(|priced| priced.spent().prompt()).collect())
}

/// Tokens that the requests right after a compaction wrote to the cache.
fn rewritten(run: &SimulatedRun, fired: &[&CompactionAttempt]) -> u64 {
    let requests: BTreeSet<u32> = fired.iter().map(|attempt| attempt.request).collect();
    let after = run.requests.iter().filter(|priced| requests.contains(&priced.request));
    after.map(|priced| priced.spent().write()).sum()
}

/// Medians of requests and of human turns from one compaction to the next of its chain.
fn between(timeline: &Timeline, fired: &[&CompactionAttempt]) -> (Option<u64>, Option<u64>) {
    let of = |attempt: &CompactionAttempt| timeline.request(attempt.request);
    let pairs: Vec<(u64, u64)> = fired
        .windows(2)
        .filter(|pair| of(pair[0]).chain == of(pair[1]).chain)
        .map(|pair| (u64::from(pair[1].request - pair[0].request), u64::from(of(pair[1]).turn - of(pair[0]).turn)))
        .collect();
    let median = |values: Vec<u64>| (!values.is_empty()).then(|| percentiles(values).p50);
    (median(pairs.iter().map(|pair| pair.0).collect()), median(pairs.iter().map(|pair| pair.1).collect()))
}

/// What broke within the next tool calls after a compaction.
fn of_soon_after(detectors: &Detectors<'_>, fired: &[&CompactionAttempt], breaks: &[Break]) -> Breakage {
    let calls = detectors.thresholds.report.calls_after;
    let after = fired.iter().flat_map(|attempt| soon_after(detectors.timeline, attempt.request, calls));
    let soon: BTreeSet<u32> = after.collect();
    let inside: Vec<Break> = breaks.iter().filter(|event| soon.contains(&event.request)).copied().collect();
    tally(detectors, &inside, soon.len() as u64)
}

/// Quantiles by nearest rank; all 0 without values.
pub fn percentiles(mut values: Vec<u64>) -> Percentiles {
    values.sort_unstable();
    let at = |share| at_share(&values, share).unwrap_or_default();
    Percentiles { p5: at(0.05), p25: at(0.25), p50: at(0.5), p75: at(0.75), p95: at(0.95), max: at(1.0) }
}

/// One setting of the sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct SweepPoint {
    /// The threshold in tokens; none: never.
    pub trigger_tokens: Option<u64>,
    /// Tokens that a compaction leaves besides the static prefix (where the tail ends exactly where it may).
    pub carry_tokens: u64,
    /// The parameters with that carry.
    pub params: Params,
}

/// All settings: every carry with every threshold, and once without any compaction.
pub fn points(params: &Params, thresholds: &CompactionThresholds) -> Vec<SweepPoint> {
    let mut points: Vec<SweepPoint> = Vec::new();
    for &carry in &thresholds.sweep.carries {
        let params = with_carry(params, thresholds, carry);
        let point =
            |&tokens| SweepPoint { trigger_tokens: Some(tokens), carry_tokens: carry.into(), params: params.clone() };
        points.extend(thresholds.sweep.triggers.iter().map(point));
    }
    points.push(SweepPoint { trigger_tokens: None, carry_tokens: 0, params: params.clone() });
    points
}

/// The summary keeps its size; tail and reattached files share the rest as they do in the parameters.
fn with_carry(params: &Params, thresholds: &CompactionThresholds, carry: u32) -> Params {
    let fixed = params.summary_tokens.saturating_add(thresholds.client.acknowledgement_tokens);
    let free = u64::from(carry.saturating_sub(fixed));
    let (tail, reattach) = (u128::from(params.tail_keep_tokens), u128::from(params.reattach_tokens));
    let tail = (u128::from(free) * tail).checked_div(tail + reattach).map_or(free, |tail| tail as u64);
    let reattach = u32::try_from(free - tail).expect("a part of a carry, which is a u32");
    Params { tail_keep_tokens: tail, reattach_tokens: reattach, ..params.clone() }
}

/// Replays one setting on the requests under the cache that prices them.
pub fn row(
    requests: &Simulator<'_>,
    detectors: &Detectors<'_>,
    point: &SweepPoint,
    thresholds: &CompactionThresholds,
) -> CompactionSweepRow {
    let journal = StageJournal::default();
    let tokens = Arc::clone(&requests.sizes.tokens);
    let trigger = point.trigger_tokens.map_or(CompactionTrigger::Never, CompactionTrigger::Tokens);
    let stage = Compaction::new(point.params.clone(), thresholds.clone(), tokens, journal.clone()).at(trigger);
    let (run, breaks) = BreakWatch::new(detectors).over(requests, vec![Box::new(stage)]);
    let done = compactions(requests.timeline, &journal.take(), &run, None, thresholds);
    let broken = tally(detectors, &breaks, run.requests.len() as u64);
    let is_summary = |extra: &&Extra| extra.call.cause == SUMMARY_CALL;
    CompactionSweepRow {
        trigger_tokens: point.trigger_tokens,
        carry_tokens: point.carry_tokens,
        firings: done.outcomes.get(&AttemptEnd::Ok).copied().unwrap_or_default(),
        is_thrashing: done.is_thrashing,
        cost: run.cost(),
        summariser: run.extra.iter().filter(is_summary).map(|extra| extra.cost).sum::<Cost>(),
        reread_tokens: broken.reread_tokens,
        edit_source_lost: broken.events(BreakClass::EditSourceLost),
        ref_lost: broken.events(BreakClass::RefLost),
    }
}
