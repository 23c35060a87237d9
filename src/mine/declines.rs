//! How much the planner and L0 spared, and what the planner declined that the agent needed after all.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::telemetry::effectiveness::Effectiveness;
use crate::telemetry::log::{NO_STEP, RecordedEvent};

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
