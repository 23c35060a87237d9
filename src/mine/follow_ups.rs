//! Which tool followed which in recorded responses. The same counts as over the calls of a history
//! ([`crate::frames::calls::CallFrame::follow_ups`]), in one pass over the sorted log: a log may hold millions of
//! responses, and they stand in order already.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::base::id::IdHasher;
use crate::base::names::Sym;
use crate::base::stats::FollowUpCount;
use crate::telemetry::log::{Event, EventLog, NO_STEP};

type Counts<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// One tool in one step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    step: u32,
    tool: u32,
    partition: u32,
}

#[derive(Default)]
struct Pairs {
    support: u64,
    sessions: u64,
    /// The last session that was counted, plus one.
    last: u32,
}

/// Follow-ups at the given lags, counted over steps; sorted by tools and lag. Where no step was recorded, each response
/// is a step of its own.
pub fn follow_ups(log: &EventLog, lags: &[u32]) -> Vec<FollowUpCount> {
    if lags.is_empty() {
        return Vec::new();
    }
    let mut trials: Counts<u32, u64> = Counts::default();
    let mut pairs: Counts<(u32, u32, u32), Pairs> = Counts::default();
    let mut arrivals: Counts<(u32, u32), u64> = Counts::default();
    let (mut steps, mut uses) = (0, Vec::new());
    for chain in log.events.chunk_by(|a, b| (a.session, a.chain) == (b.session, b.chain)) {
        collect(chain, &mut uses);
        uses.iter().for_each(|used| *trials.entry(used.tool).or_default() += 1);
        steps += uses.chunk_by(|a, b| a.step == b.step).count() as u64;
        for &lag in lags {
            each_step(&uses, lag, |from, later| {
                for to in later {
                    let before = || from.iter().filter(|from| from.partition == to.partition);
                    *arrivals.entry((to.tool, lag)).or_default() += u64::from(before().next().is_some());
                    before()
                        .for_each(|from| add(pairs.entry((from.tool, to.tool, lag)).or_default(), chain[0].session));
                }
            });
        }
    }
    let mut out: Vec<FollowUpCount> = pairs
        .into_iter()
        .map(|((from, to, lag), counts)| FollowUpCount {
            from: Sym(from),
            to: Sym(to),
            lag,
            support: counts.support,
            sessions: counts.sessions,
            trials: trials.get(&from).copied().unwrap_or_default(),
            arrivals: arrivals.get(&(to, lag)).copied().unwrap_or_default(),
            steps,
        })
        .collect();
    out.sort_by_key(|edge| (edge.from, edge.to, edge.lag));
    out
}

fn add(pairs: &mut Pairs, session: u32) {
    pairs.support += 1;
    if pairs.last != session + 1 {
        pairs.last = session + 1;
        pairs.sessions += 1;
    }
}

/// The tools of each step of a chain, each once, in order.
fn collect(chain: &[Event], uses: &mut Vec<Use>) {
    uses.clear();
    uses.extend((0_u32..).zip(chain).map(|(place, event)| Use {
        step: if event.step == NO_STEP { place } else { event.step },
        tool: event.tool.0,
        partition: event.partition,
    }));
    if !uses.is_sorted() {
        uses.sort_unstable();
    }
    uses.dedup();
}

/// Tells of every step that another one follows `lag` steps later, with the uses of both.
fn each_step(uses: &[Use], lag: u32, mut tell: impl FnMut(&[Use], &[Use])) {
    let mut ahead = 0;
    for from in uses.chunk_by(|a, b| a.step == b.step) {
        let wanted = from[0].step.saturating_add(lag);
        while uses.get(ahead).is_some_and(|to| to.step < wanted) {
            ahead += 1;
        }
        let later = uses[ahead..].iter().take_while(|to| to.step == wanted).count();
        if later > 0 {
            tell(from, &uses[ahead..ahead + later]);
        }
    }
}
