//! A virtual run of compaction in figures.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::forecast::at_share;
use crate::logs::timeline::requests::Timeline;
use crate::whatif::compaction::SUMMARY_CALL;
use crate::whatif::compaction::outcome::{AttemptEnd, CompactionAttempt, Compactions, Percentiles, SummariserTokens};
use crate::whatif::compaction::real::soon_after;
use crate::whatif::compaction::thresholds::CompactionThresholds;
use crate::whatif::sim::breakage;
use crate::whatif::sim::breakage::Detectors;
use crate::whatif::sim::breakage::rows::Break;
use crate::whatif::sim::breakage::tally::tally;
use crate::whatif::sim::simulator::SimulatedRun;

/// Sums a run up. `attempts` are the stage's journal, `breaks` what the detectors found.
pub fn compactions(
    timeline: &Timeline,
    attempts: &[CompactionAttempt],
    run: &SimulatedRun,
    breaks: Option<(&Detectors<'_>, &[Break], &breakage::BreakageThresholds)>,
    sheet: &CompactionThresholds,
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
        is_thrashing: requests_between_p50.is_some_and(|requests| requests < sheet.report.thrash_requests),
        soon_after: breaks.map(|(detectors, breaks, numbers)| {
            let (soon, requests) = of_soon_after(timeline, &fired, breaks, numbers);
            tally(detectors, timeline, &soon, requests, numbers)
        }),
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
    percentiles(run.requests.iter().map(|priced| priced.spent.prompt()).collect())
}

/// Tokens that the requests right after a compaction wrote to the cache.
fn rewritten(run: &SimulatedRun, fired: &[&CompactionAttempt]) -> u64 {
    let requests: BTreeSet<u32> = fired.iter().map(|attempt| attempt.request).collect();
    let after = run.requests.iter().filter(|priced| requests.contains(&priced.request));
    after.map(|priced| priced.spent.write()).sum()
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

/// Breaks within the next tool calls after a compaction, and the requests that were looked at.
fn of_soon_after(
    timeline: &Timeline,
    fired: &[&CompactionAttempt],
    breaks: &[Break],
    numbers: &breakage::BreakageThresholds,
) -> (Vec<Break>, u64) {
    let soon: BTreeSet<u32> =
        fired.iter().flat_map(|attempt| soon_after(timeline, attempt.request, numbers.report.calls_after)).collect();
    let inside = breaks.iter().filter(|event| soon.contains(&event.request)).copied().collect();
    (inside, soon.len() as u64)
}

/// Quantiles by nearest rank; all 0 without values.
pub fn percentiles(mut values: Vec<u64>) -> Percentiles {
    values.sort_unstable();
    let at = |share| at_share(&values, share).unwrap_or_default();
    Percentiles { p5: at(0.05), p25: at(0.25), p50: at(0.5), p75: at(0.75), p95: at(0.95), max: at(1.0) }
}
