//! Which tool followed which, session by session: over the calls of a history, or over recorded responses. The unit is the
//! step, an API message with its calls.

pub mod bounds;

use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;

use crate::base::id::IdMap;
use crate::base::names::Sym;
use crate::base::significance::Chance;
use crate::frames::edge::Turns;
use crate::logs::history::{Call, History};
use crate::logs::trace::Millis;
use crate::mine::shuffled::{self, LaggedTools, ShuffledMessage, WantedPairs};
use crate::telemetry::log::{EventLog, NO_STEP, RecordedEvent, Start};

/// Sessions that are counted at once: enough for all threads, few enough that their tables do not add up.
const BATCH_SESSIONS: usize = 128;

/// Places for pairs of tools of a session, each at each lag: of more tools most pairs are never seen.
const PAIR_PLACES_MAX: usize = 1 << 12;

/// Gives the uses of each chain of a session.
type ChainsOf<'a, S> = dyn Fn(&S) -> Vec<Vec<ToolInStep>> + Sync + 'a;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ToolInStep {
    step: u32,
    tool: Sym,
    partition: u32,
}

#[derive(Default)]
struct SessionCounts {
    /// Steps with each tool.
    trials: Vec<(Sym, u32)>,
    /// Of these, followed by another tool at a lag.
    support: Vec<(LaggedTools, u32)>,
}

/// Counts by session (its place in the order of their starts), ascending; sessions without any are left out.
type Counts = Vec<(u32, u32)>;

/// Follow-ups of all sessions.
#[derive(Clone, Debug, Default)]
pub struct FollowUps {
    /// Starts of the sessions, in order.
    starts: Vec<Millis>,
    /// Steps with each tool.
    trials: BTreeMap<Sym, Counts>,
    /// Of these, followed by another tool at a lag.
    support: BTreeMap<LaggedTools, Counts>,
    /// What another order of the steps would show, over the sessions in which that was asked for.
    chances: BTreeMap<LaggedTools, Chance>,
}

impl FollowUps {
    /// Of the calls of a history.
    pub fn of_history(history: &History, lags: &[u32]) -> Self {
        let starts = history.sessions.iter().map(|session| session.ts_first);
        let mut sessions: Vec<(Millis, Vec<Range<usize>>)> = starts.map(|start| (start, Vec::new())).collect();
        for chain in &history.chains {
            sessions[chain.session as usize].1.push(chain.calls.clone());
        }
        let used = |call: &Call| ToolInStep { step: call.step, tool: call.tool, partition: call.partition };
        let uses = |calls: &Range<usize>| history.calls[calls.clone()].iter().map(used).collect();
        Self::of_sessions(sessions, &|chains| chains.iter().map(uses).collect(), lags, usize::MAX)
    }

    /// Of the responses of a sorted log, whose sessions are `starts`. Where no step was recorded, each response is a step of
    /// its own. What chance would show is counted in the first `with_chance` sessions.
    pub fn of_events(log: &EventLog, starts: &[Start], lags: &[u32], with_chance: usize) -> Self {
        let responses = log.by_session();
        let sessions = starts.iter().map(|&(start, session)| (start, responses[session as usize]));
        let used = |(place, event): (u32, &RecordedEvent)| ToolInStep {
            step: if event.step == NO_STEP { place } else { event.step },
            tool: event.tool,
            partition: event.partition,
        };
        let chains = |session: &&[RecordedEvent]| {
            let chains = session.chunk_by(|a, b| a.chain == b.chain);
            chains.map(|chain| (0_u32..).zip(chain).map(used).collect()).collect()
        };
        Self::of_sessions(sessions.collect(), &chains, lags, with_chance)
    }

    /// Counts sessions, of which `chains` tells the uses.
    fn of_sessions<S: Sync>(
        mut sessions: Vec<(Millis, S)>,
        chains: &ChainsOf<'_, S>,
        lags: &[u32],
        with_chance: usize,
    ) -> Self {
        let mut found = Self::default();
        let (mut trials, mut support): (IdMap<Sym, Counts>, IdMap<LaggedTools, Counts>) = Default::default();
        sessions.sort_by_key(|(start, _)| *start);
        let count = |(_, session): &(Millis, S)| count(chains(session), lags);
        in_batches(&sessions, count, |(start, _), counts| {
            // Sessions without a call are none.
            if counts.trials.is_empty() {
                return;
            }
            let place = found.starts.len() as u32;
            found.starts.push(*start);
            for (tool, count) in counts.trials {
                trials.entry(tool).or_default().push((place, count));
            }
            for (pair, count) in counts.support {
                support.entry(pair).or_default().push((place, count));
            }
        });
        (found.trials, found.support) = (trials.into_iter().collect(), support.into_iter().collect());
        // Only now it is known which pairs were seen at all.
        let seen = WantedPairs::of(found.support.keys().map(|(from, to, _)| (*from, *to)));
        found.chances = chances(&sessions[..with_chance.min(sessions.len())], chains, lags, &seen);
        found
    }
}

/// What another order of the steps of sessions would show of pairs of tools.
fn chances<S: Sync>(
    sessions: &[(Millis, S)],
    chains: &ChainsOf<'_, S>,
    lags: &[u32],
    wanted: &WantedPairs,
) -> BTreeMap<LaggedTools, Chance> {
    let of_session = |(_, session): &(Millis, S)| {
        let mut chances: IdMap<LaggedTools, Chance> = IdMap::default();
        chains(session).into_iter().for_each(|uses| add_chances(uses, lags, wanted, &mut chances));
        chances
    };
    let mut all: IdMap<LaggedTools, Chance> = IdMap::default();
    in_batches(sessions, of_session, |_, chances| {
        chances.into_iter().for_each(|(pair, chance)| *all.entry(pair).or_default() += chance);
    });
    all.into_iter().collect()
}

/// Hands on what each session gives, in their order. What a batch gave is taken in while the next one is counted.
fn in_batches<S: Sync, T: Send>(sessions: &[S], of: impl Fn(&S) -> T + Sync, mut take: impl FnMut(&S, T) + Send) {
    let (mut before, mut counted): (&[S], Vec<T>) = (&[], Vec::new());
    for batch in sessions.chunks(BATCH_SESSIONS).chain([&[][..]]) {
        let ready = before.iter().zip(std::mem::take(&mut counted));
        (_, counted) = rayon::join(
            || ready.for_each(|(session, counts)| take(session, counts)),
            || batch.par_iter().map(&of).collect(),
        );
        before = batch;
    }
}

fn count(chains: Vec<Vec<ToolInStep>>, lags: &[u32]) -> SessionCounts {
    let mut counts = SessionCounts::default();
    if lags.is_empty() {
        return counts;
    }
    let mut tools: Vec<Sym> = chains.iter().flatten().map(|used| used.tool).collect();
    tools.sort_unstable();
    tools.dedup();
    let mut trials = vec![0_u32; tools.len()];
    let places = tools.len() * tools.len() * lags.len();
    let mut pairs = vec![0_u32; if places > PAIR_PLACES_MAX { 0 } else { places }];
    let mut rare: IdMap<LaggedTools, u32> = IdMap::default();
    for mut uses in chains {
        uses.sort_unstable();
        uses.dedup();
        // From here on tools are known by their places, which stand in the same order.
        for used in &mut uses {
            used.tool = Sym(tools.partition_point(|tool| *tool < used.tool) as u32);
            trials[used.tool.0 as usize] += 1;
        }
        for &lag in lags {
            let at = lags.iter().position(|other| *other == lag).unwrap_or_default();
            each_pair(&uses, lag, |from, to| {
                let place = (from.0 as usize * tools.len() + to.0 as usize) * lags.len() + at;
                match pairs.get_mut(place) {
                    Some(count) => *count += 1,
                    None => *rare.entry((tools[from.0 as usize], tools[to.0 as usize], lag)).or_default() += 1,
                }
            });
        }
    }
    let pair = |place: usize| {
        let (from, to) = (place / lags.len() / tools.len(), place / lags.len() % tools.len());
        (tools[from], tools[to], lags[place % lags.len()])
    };
    let seen = pairs.iter().enumerate().filter(|(_, count)| **count > 0);
    counts.support = seen.map(|(place, count)| (pair(place), *count)).chain(rare).collect();
    counts.trials = tools.into_iter().zip(trials).collect();
    counts.support.sort_unstable();
    counts
}

fn add_chances(
    mut uses: Vec<ToolInStep>,
    lags: &[u32],
    wanted: &WantedPairs,
    chances: &mut IdMap<LaggedTools, Chance>,
) {
    uses.sort_unstable_by_key(|used| (used.partition, used.step, used.tool));
    uses.dedup();
    for context in uses.chunk_by(|a, b| a.partition == b.partition) {
        let message = |step: &[ToolInStep]| ShuffledMessage {
            place: step[0].step.into(),
            turn: 0,
            tools: step.iter().map(|used| (used.tool, 1)).collect(),
        };
        let messages: Vec<ShuffledMessage> = context.chunk_by(|a, b| a.step == b.step).map(message).collect();
        shuffled::add(&messages, (lags, Turns::All), wanted, chances);
    }
}

/// Tells of every tool of a step and every tool `lag` steps later in the same partition.
fn each_pair(uses: &[ToolInStep], lag: u32, mut tell: impl FnMut(Sym, Sym)) {
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
