//! Which tool followed which: the uses of tools in steps, and what came so many steps after them. Step, lag and
//! partition mean what they mean in [`crate::mine::follow_ups`].

use crate::base::names::Sym;
use crate::telemetry::log::{EventLog, NO_STEP, RecordedEvent};

/// A tool in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepTool {
    /// Who was shown the answer.
    chain: u32,
    step: u32,
    /// The tool.
    pub tool: Sym,
    partition: u32,
    /// Index into [`EventLog::sessions`].
    pub session: u32,
    /// Index of the first event of the step with the tool.
    pub event: usize,
}

/// Every use of a tool, by chain and step.
pub fn uses(log: &EventLog) -> Vec<StepTool> {
    let mut uses = Vec::with_capacity(log.events.len());
    let mut start = 0;
    for chain in log.events.chunk_by(|a, b| (a.session, a.chain) == (b.session, b.chain)) {
        uses.extend((0_u32..).zip(chain).map(|(place, event)| used(event, place, start + place as usize)));
        start += chain.len();
    }
    uses.sort_unstable();
    uses.dedup_by_key(|used| (used.chain, used.step, used.tool, used.partition));
    uses
}

fn used(event: &RecordedEvent, place: u32, index: usize) -> StepTool {
    StepTool {
        chain: event.chain,
        step: if event.step == NO_STEP { place } else { event.step },
        tool: event.tool,
        partition: event.partition,
        session: event.session,
        event: index,
    }
}

/// The tools of the step that came so many steps after a use, in the same partition.
pub fn followers(uses: &[StepTool], at: usize, lag: u32) -> impl Iterator<Item = Sym> {
    let used = uses[at];
    let wanted = (used.chain, used.step.saturating_add(lag));
    let first = uses.partition_point(|later| (later.chain, later.step) < wanted);
    let later = uses[first..].iter().take_while(move |later| (later.chain, later.step) == wanted);
    later.filter(move |later| later.partition == used.partition).map(|later| later.tool)
}
