//! What nobody can beat: the prefetches of a planner that knows the next calls, from what the results list; and the
//! control: what a planner hits that fetches what the results of other sessions listed.

use std::collections::BTreeMap;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::Sym;
use crate::logs::history::History;
use crate::logs::trace::Status;
use crate::mine::projections::ToldHistory;
use crate::planner::contexts::PlannerContext;
use crate::planner::known_tools::KnownTools;
use crate::planner::numbers::PlannerThresholds;
use crate::planner::opportunities::Opportunity;
use crate::planner::prefetches::Bound;
use crate::planner::watch::key;

/// The bound over the sessions wanted, for every planner that knows the tools in one of these ways.
pub fn bound(told: ToldHistory<'_>, known: &[KnownTools<'_>], numbers: &PlannerThresholds, wanted: &[bool]) -> Bound {
    let of_context = |context: &PlannerContext| {
        let (listed, answered) = (IdMap::default(), IdSet::default());
        let mut search = BoundSearch { told, known, numbers, listed, answered, made: 0 };
        context.steps(told.history).map(|step| search.step(step)).sum::<Bound>()
    };
    let sessions =
        PlannerContext::each_session(told.history, wanted, |contexts| contexts.map(of_context).sum::<Bound>());
    sessions.into_iter().sum()
}

/// How far a call gets on the way to being known ahead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CallReach {
    /// It did not run.
    Nowhere,
    /// Its tool may not be called ahead.
    Ran,
    /// It was answered before.
    Repeat,
    /// No answer had one of its values.
    New,
    /// An answer had, but not all of them.
    Listed,
    /// It came too late after every such answer.
    Whole,
    Reachable,
}

impl CallReach {
    fn bound(self) -> Bound {
        let at_least = |reach| u64::from(self >= reach);
        Bound {
            calls: at_least(Self::Ran),
            speculatable: at_least(Self::Repeat),
            repeats: u64::from(self == Self::Repeat),
            listed: at_least(Self::Listed),
            listed_whole: at_least(Self::Whole),
            reachable: at_least(Self::Reachable),
        }
    }
}

/// The search through one context.
struct BoundSearch<'a> {
    told: ToldHistory<'a>,
    known: &'a [KnownTools<'a>],
    numbers: &'a PlannerThresholds,
    /// By value: the calls made when the last answer that lists it was there.
    listed: IdMap<u64, usize>,
    answered: IdSet<u64>,
    /// Calls before the step.
    made: usize,
}

impl BoundSearch<'_> {
    fn step(&mut self, step: &[u32]) -> Bound {
        let bound = step.iter().map(|&call| self.reach(call).bound()).sum();
        self.made += step.len();
        for &call in step {
            if self.told.history.calls[call as usize].status == Status::Ok {
                let values = self.told.values.lists(call as usize).flat_map(|(_, values)| values);
                self.listed.extend(values.map(|value| (value.value, self.made)));
            }
        }
        bound
    }

    fn reach(&mut self, call: u32) -> CallReach {
        let row = &self.told.history.calls[call as usize];
        if !row.ran() {
            return CallReach::Nowhere;
        }
        let is_speculatable = self.known.iter().any(|known| known.get(row.tool).speculatable);
        let input = self.told.values.input(call as usize).filter(|_| is_speculatable);
        let Some(input) = input else { return CallReach::Ran };
        // A call that failed had no answer: the next like it is no repeat.
        let question = key(row.tool, input.value);
        if self.answered.contains(&question) {
            return CallReach::Repeat;
        }
        if row.status == Status::Ok {
            self.answered.insert(question);
        }
        let given = self.told.values.given(call as usize).iter();
        let last = given.filter_map(|given| self.listed.get(&given.value)).max();
        match last {
            None => CallReach::New,
            Some(_) if input.leaves != 1 => CallReach::Listed,
            Some(then) if self.made - then < self.numbers.judge.calls_near as usize => CallReach::Reachable,
            Some(_) => CallReach::Whole,
        }
    }
}

/// Values by link and project.
type Pools = BTreeMap<(Sym, u16), BTreeMap<Option<Id>, OfferedPool>>;

/// Values, session by session. Every value that was ever offered stands in two of them.
#[derive(Debug, Default)]
struct OfferedPool {
    values: Vec<u64>,
    /// The sessions that offered them, each with the place where its values end.
    sessions: Vec<(u32, u32)>,
    /// By value: where the equal ones that follow it end.
    run_ends: Vec<u32>,
}

impl OfferedPool {
    /// Adds a value of the last session, or of one behind it.
    fn add(&mut self, session: u32, value: u64) {
        self.values.push(value);
        let end = self.values.len() as u32;
        match self.sessions.last_mut().filter(|(last, _)| *last == session) {
            Some((_, known)) => *known = end,
            None => self.sessions.push((session, end)),
        }
    }

    fn settle(&mut self) {
        self.values.shrink_to_fit();
        self.sessions.shrink_to_fit();
        self.run_ends = vec![self.values.len() as u32; self.values.len()];
        for at in (1..self.values.len()).rev() {
            let is_same = self.values[at - 1] == self.values[at];
            self.run_ends[at - 1] = if is_same { self.run_ends[at] } else { at as u32 };
        }
    }

    /// Where the values of a session stand.
    fn of_session(&self, session: u32) -> Range<usize> {
        let place = self.sessions.partition_point(|(other, _)| *other < session);
        let start = place.checked_sub(1).map_or(0, |before| self.sessions[before].1);
        let own = self.sessions.get(place).filter(|(other, _)| *other == session);
        start as usize..own.map_or(start, |(_, end)| *end) as usize
    }

    /// The first other value of another session from a place on that follows from the moment alone.
    fn pick(&self, moment: &Opportunity) -> Option<u64> {
        let Self { values, run_ends, .. } = self;
        let seed = [u64::from(moment.trigger), u64::from(moment.rank)].map(u64::to_le_bytes).concat();
        let mut at = (xxh3_64(&seed) % values.len().max(1) as u64) as usize;
        let own = self.of_session(moment.session);
        let mut passed = 0;
        while passed < values.len() {
            #[cfg(test)]
            crate::base::id::work::step();
            let end = match values[at] {
                _ if own.contains(&at) => own.end,
                value if value == moment.value => run_ends[at] as usize,
                value => return Some(value),
            };
            passed += end - at;
            at = end % values.len();
        }
        None
    }
}

/// What an answer offered to a link: all that is kept of a moment here.
pub struct OfferedValue {
    /// The tool that answered, and the number of the link among those of that tool.
    link: (Sym, u16),
    session: u32,
    value: u64,
}

impl OfferedValue {
    /// That of a moment.
    pub fn of(&Opportunity { from, link, session, value, .. }: &Opportunity) -> Self {
        Self { link: (from, link), session, value }
    }
}

/// Values that the answers of all sessions offered, each with its session.
#[derive(Debug, Default)]
pub struct OfferedValues {
    pools: Pools,
    projects: Vec<Id>,
}

impl OfferedValues {
    /// Collects what the links were offered.
    pub fn new(history: &History, mut offered: Vec<OfferedValue>) -> Self {
        offered.sort_by_key(|value| value.session);
        let projects: Vec<Id> = history.sessions.iter().map(|session| session.project).collect();
        let mut pools = Pools::new();
        for OfferedValue { link, session, value } in offered {
            let pool = pools.entry(link).or_default();
            for project in [Some(projects[session as usize]), None] {
                pool.entry(project).or_default().add(session, value);
            }
        }
        pools.values_mut().flat_map(BTreeMap::values_mut).for_each(OfferedPool::settle);
        Self { pools, projects }
    }

    /// A value that an answer of another session offered to the same link, of the same project if there is one. Which one
    /// follows from the moment alone; none if no other session was offered any.
    pub fn other(&self, moment: &Opportunity) -> Option<u64> {
        let pool = self.pools.get(&(moment.from, moment.link))?;
        let project = Some(self.projects[moment.session as usize]);
        [project, None].iter().find_map(|project| pool.get(project)?.pick(moment))
    }
}
