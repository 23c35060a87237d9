//! What nobody can beat: the prefetches of a planner that knows the next calls, from what the answers list; and the
//! control: what a planner hits that fetches what somebody else's answer listed.

use std::collections::BTreeMap;

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::Sym;
use crate::logs::history::History;
use crate::logs::trace::Status;
use crate::planner::contexts::{Context, Told};
use crate::planner::known_tools::KnownTools;
use crate::planner::numbers::Numbers;
use crate::planner::opportunities::Opportunity;
use crate::planner::plan::Cost;
use crate::planner::prefetches::Bound;
use crate::settings::Enrichment;

/// The bound over the sessions wanted.
pub fn bound(
    told: Told<'_>,
    known: &KnownTools<'_>,
    enrichment: &Enrichment,
    numbers: &Numbers,
    wanted: &[bool],
) -> Bound {
    let sessions = Context::of_sessions(told.history);
    let of_session = |(session, contexts): (usize, &Vec<Context>)| {
        let contexts = contexts.iter().filter(|_| wanted[session]);
        contexts.map(|context| of_context(told, known, enrichment, numbers, context)).fold(Bound::default(), sum)
    };
    sessions.par_iter().enumerate().map(of_session).reduce(Bound::default, sum)
}

fn sum(mut a: Bound, b: Bound) -> Bound {
    a += b;
    a
}

/// What one answer may still set off.
#[derive(Clone, Copy)]
struct Room {
    tokens: u64,
    calls: u32,
}

fn of_context(
    told: Told<'_>,
    known: &KnownTools<'_>,
    enrichment: &Enrichment,
    numbers: &Numbers,
    context: &Context,
) -> Bound {
    let mut bound = Bound::default();
    // By value: the last answer that lists it, as the number of its call, and calls made when it was there.
    let mut listed: IdMap<u64, (usize, u32)> = IdMap::default();
    let mut asked: IdSet<u64> = IdSet::default();
    let whole = Room { tokens: enrichment.prefetch_budget_tokens.into(), calls: enrichment.max_parallel_prefetches };
    let mut rooms = vec![whole; context.calls.len()];
    let (mut made, mut place) = (0, 0);
    for step in context.steps(told.history) {
        let before = made;
        for &call in step {
            let row = &told.history.calls[call as usize];
            made += 1;
            if !row.ran() {
                continue;
            }
            bound.calls += 1;
            let tool = known.get(row.tool);
            let Some(input) = told.values.input(call as usize).filter(|_| tool.speculatable) else { continue };
            bound.speculatable += 1;
            if !asked.insert(input.value ^ u64::from(row.tool.0).wrapping_mul(0x9E37_79B9_7F4A_7C15)) {
                bound.repeats += 1;
                continue;
            }
            let sources = told.values.given(call as usize).iter().filter_map(|given| listed.get(&given.value));
            let Some(&(answer, then)) = sources.max() else { continue };
            bound.listed += 1;
            if input.leaves != 1 {
                continue;
            }
            bound.listed_whole += 1;
            if before - then >= numbers.judge.calls_near {
                continue;
            }
            bound.near += 1;
            let cost = Cost::of(&tool.model.model.cost_model, numbers.published.bytes_per_token.into());
            let tokens = cost.charged(tool.model.model.value_class);
            let room = &mut rooms[answer];
            if room.calls > 0 && room.tokens >= tokens {
                room.calls -= 1;
                room.tokens -= tokens;
                bound.reachable += 1;
            }
        }
        for &call in step {
            if told.history.calls[call as usize].status == Status::Ok {
                let values = told.values.lists(call as usize).flat_map(|(_, values)| values);
                listed.extend(values.map(|value| (value.value, (place, made))));
            }
            place += 1;
        }
    }
    bound
}

/// Values by link and project.
type Pools = BTreeMap<(Sym, u16), BTreeMap<Option<Id>, Vec<(u32, u64)>>>;

/// Values that the answers of all sessions offered, each with its session.
#[derive(Debug, Default)]
pub struct Donors {
    pools: Pools,
    projects: Vec<Id>,
}

impl Donors {
    /// Collects what the links were offered.
    pub fn new(history: &History, moments: &[Opportunity]) -> Self {
        let projects: Vec<Id> = history.sessions.iter().map(|session| session.project).collect();
        let mut pools = Pools::new();
        for moment in moments {
            let pool = pools.entry((moment.from, moment.link)).or_default();
            for project in [Some(projects[moment.session as usize]), None] {
                pool.entry(project).or_default().push((moment.session, moment.value));
            }
        }
        Self { pools, projects }
    }

    /// A value that an answer of another session offered to the same link, of the same project if there is one. Which one
    /// follows from the moment alone; none if no other session was offered any.
    pub fn other(&self, moment: &Opportunity) -> Option<u64> {
        let pool = self.pools.get(&(moment.from, moment.link))?;
        let project = Some(self.projects[moment.session as usize]);
        [project, None].iter().find_map(|project| pick(pool.get(project)?, moment))
    }
}

fn pick(values: &[(u32, u64)], moment: &Opportunity) -> Option<u64> {
    let seed = [u64::from(moment.trigger), u64::from(moment.rank)].map(u64::to_le_bytes).concat();
    let start = (xxh3_64(&seed) % values.len().max(1) as u64) as usize;
    let from_there = values[start..].iter().chain(&values[..start]);
    let mut others = from_there.filter(|(session, value)| *session != moment.session && *value != moment.value);
    others.next().map(|(_, value)| *value)
}
