//! Prefetches that the planner declined and the agent needed after all.

use std::collections::BTreeMap;

use crate::telemetry::log::{EventLog, NO_STEP, RecordedEvent};

/// Declines whose tool is among the next few responses of later steps in the same context, by the published definition:
/// the name alone counts. A response stands for one decline at most.
pub fn late_invoked(log: &EventLog, calls: u32) -> u64 {
    let context = |event: &RecordedEvent| (event.session, event.chain, event.partition);
    let mut declines: BTreeMap<_, Vec<&RecordedEvent>> = BTreeMap::new();
    for event in log.planned.iter().filter(|event| event.plan.declined.is_some()) {
        declines.entry(context(event)).or_default().push(event);
    }
    if declines.is_empty() {
        return 0;
    }
    let contexts = log.events.chunk_by(|a, b| context(a) == context(b));
    contexts.map(|events| declines.get(&context(&events[0])).map_or(0, |left| needed(left, events, calls))).sum()
}

fn needed(declines: &[&RecordedEvent], events: &[RecordedEvent], calls: u32) -> u64 {
    let mut is_taken = vec![false; events.len()];
    let mut needed = 0;
    for decline in declines {
        let is_later = |event: &RecordedEvent| match (decline.step, event.step) {
            (NO_STEP, _) | (_, NO_STEP) => event.ts > decline.ts,
            (then, now) => now > then,
        };
        // Events of a context stand in the order of time.
        let first = events.partition_point(|event| !is_later(event));
        let window = first..events.len().min(first + calls as usize);
        if let Some(at) = window.into_iter().find(|&at| !is_taken[at] && events[at].tool == decline.tool) {
            is_taken[at] = true;
            needed += 1;
        }
    }
    needed
}
