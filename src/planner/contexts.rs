//! The contexts of a history: each chain (thread) between two compactions, step by step; and how long the
//! calls of each tool took, as measured.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::names::Sym;
use crate::base::stats::quantile_place;
use crate::logs::history::History;
use crate::logs::trace::{Millis, NO_TIME};
use crate::mine::projections::ToldHistory;

/// A chain between two compactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannerContext {
    /// Index of the session.
    pub session: u32,
    /// Its calls in order, as indices into the history.
    pub calls: Vec<u32>,
}

impl PlannerContext {
    /// The contexts of every session, by session and chain.
    fn of_sessions(history: &History) -> Vec<Vec<Self>> {
        let mut sessions = vec![Vec::new(); history.sessions.len()];
        for chain in &history.chains {
            // A message that straddles a compaction may go back to the partition before.
            let mut partitions: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for call in chain.calls.clone() {
                partitions.entry(history.calls[call].partition).or_default().push(call as u32);
            }
            let contexts = partitions.into_values().map(|calls| Self { session: chain.session, calls });
            sessions[chain.session as usize].extend(contexts);
        }
        sessions
    }

    /// What something says of the contexts of every session, in the order of the history; of sessions that are not wanted
    /// it is asked nothing. An empty list wants all.
    pub fn each_session<T: Send>(
        history: &History,
        wanted: &[bool],
        of: impl Fn(&mut dyn Iterator<Item = &Self>) -> T + Sync,
    ) -> Vec<T> {
        let sessions = Self::of_sessions(history);
        let is_wanted = |session: usize| wanted.is_empty() || wanted[session];
        let of = |(session, contexts): (usize, &Vec<Self>)| of(&mut contexts.iter().filter(|_| is_wanted(session)));
        sessions.par_iter().enumerate().map(of).collect()
    }

    /// The calls of one message at a time.
    pub fn steps<'c>(&'c self, history: &'c History) -> impl Iterator<Item = &'c [u32]> {
        self.calls.chunk_by(|a, b| history.calls[*a as usize].step == history.calls[*b as usize].step)
    }
}

/// The calls of the messages that begin within the first `calls` of these: all calls of a message or none, since they have
/// no order among each other.
pub fn window<'c>(history: &History, later: &'c [u32], calls: usize) -> &'c [u32] {
    let step = |place: usize| history.calls[later[place] as usize].step;
    let Some(last) = later.len().min(calls).checked_sub(1) else { return &[] };
    let cut = (last + 1..later.len()).find(|&place| step(place) != step(last));
    &later[..cut.unwrap_or(later.len())]
}

/// Which sessions a model is learned from, and which it is judged on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannerSplit {
    /// By session: whether it is learned from.
    pub trains: Vec<bool>,
    /// Start of the first session that is judged; none if there is no such time.
    pub judged_from: Option<Millis>,
}

impl PlannerSplit {
    /// The earlier sessions, as many as `train_share` says, are learned from.
    pub fn by_share(history: &History, train_share: f64) -> Self {
        let mut order: Vec<usize> = (0..history.sessions.len()).collect();
        order.sort_by_key(|&session| (history.sessions[session].ts_first, history.sessions[session].id));
        let trained = (train_share * order.len() as f64).floor() as usize;
        let mut trains = vec![false; order.len()];
        order[..trained].iter().for_each(|&session| trains[session] = true);
        Self::new(history, trains)
    }

    /// Sessions that began before `until` are learned from; those without a time as well.
    pub fn by_time(history: &History, until: Millis) -> Self {
        Self::new(history, history.sessions.iter().map(|session| session.ts_first < until).collect())
    }

    fn new(history: &History, trains: Vec<bool>) -> Self {
        let judged =
            history.sessions.iter().zip(&trains).filter(|(session, trains)| !**trains && session.ts_first != NO_TIME);
        let judged_from = judged.map(|(session, _)| session.ts_first).min();
        Self { trains, judged_from }
    }

    /// Sessions that are judged.
    pub fn judged(&self) -> u64 {
        self.trains.iter().filter(|trains| !**trains).count() as u64
    }
}

/// Median time from call to answer, by tool; waits for permission are in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latencies(Vec<Option<u64>>);

impl Latencies {
    /// Measures the sessions wanted, over calls that ran; the lower of two middle values.
    pub fn measure(told: ToldHistory<'_>, wanted: &[bool]) -> Self {
        let mut times = vec![Vec::new(); told.tools.texts().len()];
        for call in told.history.calls.iter().filter(|call| call.ran()) {
            if let (true, Some(latency)) =
                (wanted[told.history.chains[call.chain as usize].session as usize], call.latency_ms)
            {
                times[call.tool.0 as usize].push(u64::from(latency));
            }
        }
        let median = |mut times: Vec<u64>| {
            times.sort_unstable();
            quantile_place(times.len(), 0.5).map(|place| times[place])
        };
        Self(times.into_iter().map(median).collect())
    }

    /// The median in milliseconds, if the tool was ever timed.
    pub fn median_ms(&self, tool: Sym) -> Option<u64> {
        self.0.get(tool.0 as usize).copied().flatten()
    }
}
