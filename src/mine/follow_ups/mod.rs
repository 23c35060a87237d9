//! Which tool followed which, session by session: over the calls of a history, or over recorded responses. The unit is the
//! step, an API message with its calls.

pub mod bounds;

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::base::significance::Chance;
use crate::frames::edges::Turns;
use crate::logs::history::History;
use crate::logs::trace::Millis;
use crate::mine::edges;
use crate::mine::edges::{Message, Pair};
use crate::telemetry::log::{Event, EventLog, NO_STEP};

/// One tool in one step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    step: u32,
    tool: Sym,
    partition: u32,
}

/// What was counted in one session.
#[derive(Clone, Debug, Default)]
struct SessionCounts {
    start: Millis,
    /// Steps with each tool.
    trials: BTreeMap<Sym, u64>,
    /// Of these, followed by another tool at a lag.
    support: BTreeMap<Pair, u64>,
}

/// Follow-ups of all sessions.
#[derive(Clone, Debug, Default)]
pub struct FollowUps {
    /// In the order of their start.
    sessions: Vec<SessionCounts>,
    /// What another order of the steps would show.
    chances: BTreeMap<Pair, Chance>,
}

impl FollowUps {
    /// Of the calls of a history.
    pub fn of_history(history: &History, lags: &[u32]) -> Self {
        let start = |session: &crate::logs::history::Session| session.ts_first;
        let mut found = Self::starting(history.sessions.iter().map(start));
        for chain in &history.chains {
            let calls = &history.calls[chain.calls.clone()];
            let used = calls.iter().map(|call| Use { step: call.step, tool: call.tool, partition: call.partition });
            found.add(chain.session, used.collect(), lags);
        }
        found.in_order()
    }

    /// Of the responses of a sorted log. Where no step was recorded, each response is a step of its own.
    pub fn of_events(log: &EventLog, lags: &[u32]) -> Self {
        let mut starts = vec![Millis::MAX; log.sessions.len()];
        for event in &log.events {
            let start = &mut starts[event.session as usize];
            *start = event.ts.min(*start);
        }
        let mut found = Self::starting(starts.into_iter());
        for chain in log.events.chunk_by(|a, b| (a.session, a.chain) == (b.session, b.chain)) {
            let used = |(place, event): (u32, &Event)| Use {
                step: if event.step == NO_STEP { place } else { event.step },
                tool: event.tool,
                partition: event.partition,
            };
            found.add(chain[0].session, (0_u32..).zip(chain).map(used).collect(), lags);
        }
        found.in_order()
    }

    fn starting(starts: impl Iterator<Item = Millis>) -> Self {
        let sessions = starts.map(|start| SessionCounts { start, ..SessionCounts::default() }).collect();
        Self { sessions, chances: BTreeMap::new() }
    }

    /// Takes in a chain.
    fn add(&mut self, session: u32, mut uses: Vec<Use>, lags: &[u32]) {
        if lags.is_empty() {
            return;
        }
        uses.sort_unstable();
        uses.dedup();
        let counts = &mut self.sessions[session as usize];
        uses.iter().for_each(|used| *counts.trials.entry(used.tool).or_default() += 1);
        for &lag in lags {
            each_pair(&uses, lag, |from, to| *counts.support.entry((from, to, lag)).or_default() += 1);
        }
        uses.sort_unstable_by_key(|used| (used.partition, used.step, used.tool));
        for context in uses.chunk_by(|a, b| a.partition == b.partition) {
            let message = |step: &[Use]| Message {
                place: step[0].step.into(),
                turn: 0,
                tools: step.iter().map(|used| (used.tool, 1)).collect(),
            };
            let messages: Vec<Message> = context.chunk_by(|a, b| a.step == b.step).map(message).collect();
            edges::add(&messages, lags, Turns::All, &mut self.chances);
        }
    }

    /// Sessions without a call are none.
    fn in_order(mut self) -> Self {
        self.sessions.retain(|session| !session.trials.is_empty());
        self.sessions.sort_by_key(|session| session.start);
        self
    }

    /// The starts of the sessions, in order.
    fn starts(&self) -> Vec<Millis> {
        self.sessions.iter().map(|session| session.start).collect()
    }
}

/// Tells of every tool of a step and every tool `lag` steps later in the same partition.
fn each_pair(uses: &[Use], lag: u32, mut tell: impl FnMut(Sym, Sym)) {
    let mut ahead = 0;
    for from in uses.chunk_by(|a, b| a.step == b.step) {
        let wanted = from[0].step.saturating_add(lag);
        while uses.get(ahead).is_some_and(|to| to.step < wanted) {
            ahead += 1;
        }
        for to in uses[ahead..].iter().take_while(|to| to.step == wanted) {
            let before = from.iter().filter(|from| from.partition == to.partition);
            before.for_each(|from| tell(from.tool, to.tool));
        }
    }
}
