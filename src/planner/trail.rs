//! What one planner prefetched and declined, as events beside those of the agent's calls. A prefetch never ran, so its result
//! is that of the same call where it is in the logs, the nearest in time; else the event has no content and names a file that
//! no call names.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::body_shape::BodyShape;
use crate::base::id::Id;
use crate::base::names::Names;
use crate::logs::trace::{NO_TIME, Status};
use crate::planner::prefetches::HostTrace;
use crate::planner::stage::{Planner, PlannerStage, trail};
use crate::replay::Scenario;
use crate::replay::input::{CallTime, ReplayInput};
use crate::telemetry::log::{EventLog, RecordedEvent, RecordedPlan};

/// Adds what a planner did in the judged sessions to the events of the same logs.
pub fn add(stage: &PlannerStage, planner: &Planner, source: &ReplayInput, scenario: &Scenario, log: &mut EventLog) {
    let answers = Answers::new(stage);
    let EventLog { names, planned, .. } = log;
    let names = Arc::make_mut(names);
    let event = |trace: HostTrace| {
        let known = answers.of(&trace).filter(|_| trace.plan.prefetched);
        let answer = known.and_then(|index| source.plain_event(names, scenario, index));
        // Without an answer there is nothing to hold a prediction against.
        let predicted = if answer.is_some() { trace.plan.predicted } else { 0 };
        let answer = answer.unwrap_or_else(|| unknown(names, &trace));
        let (session, chain, partition) = source.tape.responses[trace.after as usize].context();
        let CallTime { ts, step, .. } = source.times[trace.after as usize];
        RecordedEvent {
            session,
            chain,
            partition,
            step,
            ts: if ts == NO_TIME { 0 } else { ts },
            call: name(&trace),
            plan: RecordedPlan { predicted, ..trace.plan },
            ..answer
        }
    };
    planned.extend(trail(stage, planner).into_iter().map(event));
}

/// Calls that were answered, by tool and whole input, in order.
struct Answers<'s> {
    stage: &'s PlannerStage,
    calls: BTreeMap<(&'s str, u64), Vec<u32>>,
}

impl<'s> Answers<'s> {
    fn new(stage: &'s PlannerStage) -> Self {
        let mut calls: BTreeMap<(&str, u64), Vec<u32>> = BTreeMap::new();
        for (index, call) in (0..).zip(&*stage.history.calls) {
            let input = stage.values.input(index as usize).filter(|_| call.status == Status::Ok);
            if let Some(input) = input {
                calls.entry((stage.tools.text(call.tool), input.value)).or_default().push(index);
            }
        }
        Self { stage, calls }
    }

    /// The same call as the traced one, the nearest in time.
    fn of(&self, trace: &HostTrace) -> Option<u32> {
        let time = |index: u32| self.stage.history.calls[index as usize].ts;
        let same = self.calls.get(&(trace.tool.as_str(), trace.input))?;
        same.iter().copied().min_by_key(|&index| (time(index).abs_diff(time(trace.after)), index))
    }
}

/// The first bytes of the hash of a call id such as the host makes: tool and arguments. Here with the call that set it
/// off, so that no two of them are the same.
fn name(trace: &HostTrace) -> u32 {
    let id = format!("prefetch_{}_{:08x}_{}", trace.tool, trace.input, trace.after);
    let [a, b, c, d, ..] = Id::pseudonym(id.as_bytes()).0;
    u32::from_be_bytes([a, b, c, d])
}

/// An event of which only the tool is known.
fn unknown(names: &mut Names, trace: &HostTrace) -> RecordedEvent {
    let tool = names.intern(&trace.tool);
    RecordedEvent {
        tool,
        endpoint: tool,
        path: if trace.is_path { trace.input as u32 } else { 0 },
        shape: BodyShape::Unknown as u8,
        ..RecordedEvent::default()
    }
}
