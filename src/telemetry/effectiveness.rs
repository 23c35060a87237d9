//! The planner and L0 by the published counters: what they spared, and what they declined that was needed after all.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::base::body_shape::LayerId;
use crate::base::names::Sym;
use crate::telemetry::event::is_default;
use crate::telemetry::log::{NO_STEP, RaceWord, RecordedEvent, foreseeable_tokens};

/// The published counters (`EnrichmentEffectiveness`), with their names in the summary of a session. The later ones are left
/// out there when they are zero.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(default)]
pub struct Effectiveness {
    /// Responses that were prefetched.
    pub total_prefetches: u64,
    /// Of these, used by the agent.
    pub cited_prefetches: u64,
    /// Prefetches that the planner declined.
    pub total_declines: u64,
    /// Of these, asked for by the agent soon after.
    pub late_invoked_after_decline: u64,
    /// Predictions that were exceeded by 30 % or more.
    pub cost_overrun_count: u64,
    /// Predictions: one for each prefetch.
    pub total_predictions: u64,
    /// Actual less predicted tokens, added up, both by the ratio of the planner.
    pub net_prediction_error_tokens: i64,
    /// Calls that a prefetch made needless.
    #[serde(rename = "inference_calls_saved_prefetch", skip_serializing_if = "is_default")]
    pub saved_prefetch: u64,
    /// Calls that a hint answered.
    #[serde(rename = "inference_calls_saved_dedup", skip_serializing_if = "is_default")]
    pub saved_dedup: u64,
    /// Calls refused because they kept coming back empty.
    #[serde(rename = "inference_calls_saved_fail_fast", skip_serializing_if = "is_default")]
    pub saved_fail_fast: u64,
    /// Tokens of all three.
    #[serde(rename = "inference_tokens_saved", skip_serializing_if = "is_default")]
    pub tokens_saved: u64,
    /// Prefetches sent out.
    #[serde(skip_serializing_if = "is_default")]
    pub prefetch_dispatched: u64,
    /// Of these, done before they were needed.
    #[serde(skip_serializing_if = "is_default")]
    pub prefetch_won_race: u64,
    /// Of these, never asked for.
    #[serde(skip_serializing_if = "is_default")]
    pub prefetch_wasted: u64,
}

impl Effectiveness {
    /// Takes in a recorded response, `bytes_per_token` being the ratio of the planner. One that was prefetched, used and then
    /// answered by a hint counts once, as prefetched.
    pub fn add(&mut self, event: &RecordedEvent, bytes_per_token: u32) {
        let RecordedEvent { plan, baseline, .. } = *event;
        if plan.prefetched {
            let tokens = foreseeable_tokens(event.bytes.into(), bytes_per_token);
            self.total_prefetches += 1;
            self.total_predictions += 1;
            self.net_prediction_error_tokens += tokens as i64 - i64::from(plan.predicted);
            self.cost_overrun_count += u64::from(plan.is_overrun(tokens));
        }
        if plan.prefetched && plan.cited == Some(true) {
            self.cited_prefetches += 1;
            self.saved_prefetch += 1;
            self.tokens_saved += u64::from(baseline);
        } else if event.layer == LayerId::L0 {
            self.saved_dedup += 1;
            self.tokens_saved += u64::from(baseline);
        }
        self.total_declines += u64::from(plan.declined.is_some());
        self.prefetch_dispatched += u64::from(plan.race.is_some());
        self.prefetch_won_race += u64::from(plan.race == Some(RaceWord::Won));
        self.prefetch_wasted += u64::from(plan.race == Some(RaceWord::Wasted));
    }

    /// Calls saved, by all three ways.
    pub fn calls_saved(&self) -> u64 {
        self.saved_prefetch + self.saved_dedup + self.saved_fail_fast
    }

    /// Whether there is anything to report.
    pub fn is_active(&self) -> bool {
        self.calls_saved() > 0 || self.total_prefetches > 0
    }
}

/// The published report line, byte for byte.
impl fmt::Display for Effectiveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |part: u64, whole: u64| {
            if whole == 0 { "n/a".to_owned() } else { format!("{:.1}%", 100.0 * part as f64 / whole as f64) }
        };
        write!(
            f,
            "prefetch_hit={} decline_recall_loss={} cost_overrun={} race_win={} waste={} calls_saved={} (prefetch={}, \
             dedup={}, fail_fast={}) tokens_saved={} prefetches={} dispatched={} declines={} predictions={}",
            rate(self.cited_prefetches, self.total_prefetches),
            rate(self.late_invoked_after_decline, self.total_declines),
            rate(self.cost_overrun_count, self.total_predictions),
            rate(self.prefetch_won_race, self.prefetch_dispatched),
            rate(self.prefetch_wasted, self.prefetch_dispatched),
            self.calls_saved(),
            self.saved_prefetch,
            self.saved_dedup,
            self.saved_fail_fast,
            self.tokens_saved,
            self.total_prefetches,
            self.prefetch_dispatched,
            self.total_declines,
            self.total_predictions,
        )
    }
}

/// By which numbers a planner is counted (`planner.toml`).
#[derive(Clone, Copy, Debug)]
pub struct CountedBy {
    /// Bytes of an answer that the planner takes for one token.
    pub bytes_per_token: u32,
    /// Responses behind a decline among which its tool must not be.
    pub declined_calls: u32,
}

/// How much the planner and L0 spared in some sessions: their responses in order, and what the planner did besides.
pub fn effectiveness(events: &[RecordedEvent], planned: &[&RecordedEvent], by: CountedBy) -> Effectiveness {
    let mut sum = Effectiveness::default();
    events.iter().chain(planned.iter().copied()).for_each(|event| sum.add(event, by.bytes_per_token));
    sum.late_invoked_after_decline = late_invoked(events, planned, by.declined_calls);
    sum
}

/// Declines whose tool is among the next few responses of later steps in the same context, by the published definition:
/// the name alone counts. A response stands for one decline at most. A decline stands by itself, or on the response that the
/// agent got all the same.
pub fn late_invoked(events: &[RecordedEvent], planned: &[&RecordedEvent], calls: u32) -> u64 {
    let context = |event: &RecordedEvent| (event.session, event.chain, event.partition);
    let mut declines: BTreeMap<_, Vec<&RecordedEvent>> = BTreeMap::new();
    let all = planned.iter().copied().chain(events);
    for event in all.filter(|event| event.plan.declined.is_some()) {
        declines.entry(context(event)).or_default().push(event);
    }
    if declines.is_empty() {
        return 0;
    }
    let contexts = events.chunk_by(|a, b| context(a) == context(b));
    let of_context = |events: &[RecordedEvent]| {
        let declines = declines.get(&context(&events[0])).into_iter().flatten();
        let tools: Vec<Sym> = events.iter().map(|event| event.tool).collect();
        needed(declines.map(|decline| (first_behind(decline, events), decline.tool)), &tools, calls)
    };
    contexts.map(of_context).sum()
}

/// The first response of a later step.
fn first_behind(decline: &RecordedEvent, events: &[RecordedEvent]) -> usize {
    let is_later = |event: &RecordedEvent| match (decline.step, event.step) {
        (NO_STEP, _) | (_, NO_STEP) => event.ts > decline.ts,
        (then, now) => now > then,
    };
    // Events of a context stand in the order of time.
    events.partition_point(|event| !is_later(event))
}

/// Declines of one context, each with the place of the first response behind it and its tool, held against the tools of the
/// responses: how many have theirs among the next few.
pub fn needed(declines: impl Iterator<Item = (usize, Sym)>, tools: &[Sym], calls: u32) -> u64 {
    let mut is_taken = vec![false; tools.len()];
    let mut needed = 0;
    for (first, tool) in declines {
        let mut window = first..tools.len().min(first + calls as usize);
        if let Some(at) = window.find(|&at| !is_taken[at] && tools[at] == tool) {
            is_taken[at] = true;
            needed += 1;
        }
    }
    needed
}
