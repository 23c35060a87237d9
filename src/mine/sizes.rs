//! Sizes of results, session by session: how well quantiles of the past hold for what comes. The values are weighted:
//! with sampling, one recorded value stands for several.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::backtest::{BacktestNumbers, JudgedCluster, Promise, PromiseCoverage, SessionSplit, cuts};
use crate::base::bootstrap::SessionTrials;
use crate::base::id::IdMap;
use crate::base::names::Sym;
use crate::base::stats::quantile_place;
use crate::logs::history::History;
use crate::logs::trace::{Millis, ResultKind};
use crate::telemetry::log::{EventLog, RecordedEvent};

/// Bytes of the answers of one session, by tool.
#[derive(Clone, Debug, Default)]
struct SessionSizes {
    start: Millis,
    bytes: BTreeMap<Sym, Vec<u32>>,
}

/// Sizes of all sessions, in the order of their start.
#[derive(Clone, Debug, Default)]
pub struct SizesBySession(Vec<SessionSizes>);

impl SizesBySession {
    /// Of the answers with a text size in a history.
    pub fn of_history(history: &History) -> Self {
        let mut sessions: Vec<SessionSizes> = history
            .sessions
            .iter()
            .map(|row| SessionSizes { start: row.ts_first, ..SessionSizes::default() })
            .collect();
        let calls = history.calls_of_chains().map(|(_, call)| call);
        for call in calls.filter(|call| call.ran() && call.kind != ResultKind::NonText) {
            let session = &mut sessions[history.chains[call.chain as usize].session as usize];
            session.bytes.entry(call.tool).or_default().push(call.bytes);
        }
        Self::in_order(sessions)
    }

    /// Of recorded responses.
    pub fn of_events(log: &EventLog) -> Self {
        let sizes = |events: &[RecordedEvent]| {
            let mut session = SessionSizes { start: Millis::MAX, ..SessionSizes::default() };
            for event in events {
                session.start = session.start.min(event.ts);
                session.bytes.entry(event.tool).or_default().push(event.bytes);
            }
            session
        };
        Self::in_order(log.events.par_chunk_by(|a, b| a.session == b.session).map(sizes).collect())
    }

    fn in_order(mut sessions: Vec<SessionSizes>) -> Self {
        sessions.retain(|session| !session.bytes.is_empty());
        sessions.sort_by_key(|session| session.start);
        Self(sessions)
    }

    /// How many later answers lay within the quantile of the known answers of their tools, once there were `calls_min` of
    /// these. Sizes are compared as they are: how they are rounded when they are written says nothing about them.
    pub fn coverage(
        &self,
        names: (&str, &str),
        promise: Promise,
        calls_min: u64,
        numbers: &BacktestNumbers,
    ) -> PromiseCoverage {
        let starts: Vec<Millis> = self.0.iter().map(|session| session.start).collect();
        let judge = |cut: SessionSplit| -> Vec<JudgedCluster> {
            let (known, later) = self.0.split_at(cut.known);
            let mut sessions = vec![SessionTrials::default(); later.len()];
            for (tool, mut known) in by_tool(known) {
                let place = quantile_place(known.len(), promise.share()).filter(|_| known.len() as u64 >= calls_min);
                let Some(place) = place else { continue };
                judge_tool(promise, *known.select_nth_unstable(place).1, tool, later, &mut sessions);
            }
            (cut.known as u64..).zip(sessions).filter(|(_, (_, judged))| *judged > 0).collect()
        };
        PromiseCoverage::of(names, promise, &cuts(&starts, numbers), numbers, &judge)
    }
}

/// Adds to each session how many answers of a tool there are, and how many of these lie within the bound. Answers that are as large as
/// it count in part: in every session as large a part of them as in all together.
fn judge_tool(promise: Promise, bound: u32, tool: Sym, later: &[SessionSizes], sessions: &mut [SessionTrials]) {
    let counts = |session: &SessionSizes| {
        let bytes = session.bytes.get(&tool).map_or(&[][..], Vec::as_slice);
        let add = |[smaller, equal]: [u64; 2], bytes: &u32| {
            [smaller + u64::from(*bytes < bound), equal + u64::from(*bytes == bound)]
        };
        let [smaller, equal] = bytes.iter().fold([0, 0], add);
        [smaller, equal, bytes.len() as u64]
    };
    let counts: Vec<[u64; 3]> = later.iter().map(counts).collect();
    let [smaller, equal, all] = [0, 1, 2].map(|column| counts.iter().map(|row| row[column]).sum::<u64>());
    let within = held(promise, smaller, equal, all) - smaller;
    let mut seen = 0;
    for (session, [smaller, equal_here, all]) in sessions.iter_mut().zip(counts) {
        let so_far = |seen: u64| (within * seen).checked_div(equal).unwrap_or(0);
        let here = so_far(seen + equal_here) - so_far(seen);
        seen += equal_here;
        *session = (session.0 + smaller + here, session.1 + all);
    }
}

/// The answers of some sessions, tool by tool.
fn by_tool(sessions: &[SessionSizes]) -> BTreeMap<Sym, Vec<u32>> {
    let mut tools: BTreeMap<Sym, Vec<u32>> = BTreeMap::new();
    for (tool, bytes) in sessions.iter().flat_map(|session| &session.bytes) {
        tools.entry(*tool).or_default().extend(bytes);
    }
    tools
}

/// How many of so many answers lie within a bound, of which so many are smaller and so many just as large. No more than half are
/// smaller than a median and no more than half are larger: of those that are as large as it, as many count as bring it there.
fn held(promise: Promise, smaller: u64, equal: u64, all: u64) -> u64 {
    match promise {
        Promise::AtLeast(_) => smaller + equal,
        Promise::About(share) => ((share * all as f64).round() as u64).clamp(smaller, smaller + equal),
    }
}

/// How many events of a group have one value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValueCount {
    /// Endpoint class or tool.
    pub group: Sym,
    pub value: u32,
    pub events: u64,
    /// Responses that they stand for.
    pub weight: f64,
}

/// How many events of each group have each value: group, value, bits of the weight and events, ascending. A weight is
/// positive, so its bits stand in the order of the weights, and no sum depends on who came first.
#[derive(Clone, Debug, Default)]
pub struct ValueCounts(Vec<(u32, u32, u64, u64)>);

/// The values of some events, by group and bits of the weight.
#[derive(Debug, Default)]
pub struct GroupedValues(IdMap<(Sym, u64), Vec<u32>>);

impl GroupedValues {
    /// Adds the value of an event.
    pub fn add(&mut self, group: Sym, value: u32, weight: f64) {
        self.0.entry((group, weight.to_bits())).or_default().push(value);
    }

    /// Adds those of other events.
    pub fn absorb(&mut self, other: Self) {
        other.0.into_iter().for_each(|(key, values)| self.0.entry(key).or_default().extend(values));
    }
}

impl ValueCounts {
    /// Counts them.
    pub fn of(GroupedValues(values): GroupedValues) -> Self {
        let counted = |((Sym(group), weight), mut values): ((Sym, u64), Vec<u32>)| {
            values.sort_unstable();
            let count = |same: &[u32]| (group, same[0], weight, same.len() as u64);
            values.chunk_by(|a, b| a == b).map(count).collect::<Vec<_>>()
        };
        let mut counts: Vec<_> = values.into_par_iter().flat_map_iter(counted).collect();
        counts.par_sort_unstable();
        Self(counts)
    }

    /// Of the events of both.
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self.0.sort_unstable();
        self.0.dedup_by(|next, known| {
            let is_same = (next.0, next.1, next.2) == (known.0, known.1, known.2);
            known.3 += if is_same { next.3 } else { 0 };
            is_same
        });
        self
    }

    /// The distinct values of each group, ascending.
    pub fn rows(&self) -> Vec<ValueCount> {
        let row = |same: &[(u32, u32, u64, u64)]| ValueCount {
            group: Sym(same[0].0),
            value: same[0].1,
            events: same.iter().map(|count| count.3).sum(),
            weight: same.iter().map(|count| count.3 as f64 * f64::from_bits(count.2)).sum(),
        };
        self.0.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).map(row).collect()
    }
}

/// The smallest value that at least the share `q` (0 … 1) of all weight does not exceed (inverse of the empirical
/// distribution function). `sorted` holds values with their weights, ascending; none without weight.
pub fn quantile(sorted: &[(u32, f64)], q: f64) -> Option<u64> {
    let total: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    if total <= 0.0 {
        return None;
    }
    // A share such as 0.9 has no exact binary form: without the slack it would miss the value that it just reaches.
    let wanted = total * q * (1.0 - 1e-12);
    let mut reached = 0.0;
    let found = sorted.iter().find(|(_, weight)| {
        reached += weight;
        reached >= wanted
    });
    found.or(sorted.last()).map(|(value, _)| u64::from(*value))
}
