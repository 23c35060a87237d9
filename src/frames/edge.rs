//! Follow-up edges between tools: what they are counted from, and what is said about each; and calls as events of a process,
//! with the pairs that follow each other.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::error::Result;
use crate::base::names::Sym;
use crate::base::significance::Chance;
use crate::base::stats::{Clustered, Share};
use crate::frames::groups::{column, frame, grouped};
use crate::logs::trace::Millis;

/// What follows what: how calls of one message are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, strum::IntoStaticStr, clap::ValueEnum)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Concurrency {
    /// As concurrent: each is followed by every call of the next message, within a context.
    #[default]
    Message,
    /// As a sequence, one file being one session, nothing breaking it: the published definition.
    Flat,
}

/// Which pairs count with regard to what a person wrote between the two calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, strum::IntoStaticStr, clap::ValueEnum)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Turns {
    /// All.
    #[default]
    All,
    /// Only those without a prompt of a person between the calls.
    Within,
    /// Only those with one.
    Across,
}

/// One call as an event of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Activity {
    /// Number of its context: chain and partition, or file.
    pub case: u32,
    /// Number of its session.
    pub session: u32,
    /// Position; calls one lag apart differ by one. Positions of different chains are never close.
    pub place: u64,
    /// Number of the turn within the chain.
    pub turn: u32,
    pub tool: Sym,
    /// When it was asked.
    pub asked: Option<Millis>,
    /// When its result came.
    pub answered: Option<Millis>,
}

/// The pairs of one tool and another at one lag.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct EdgeSum {
    /// The earlier tool.
    pub from: Sym,
    /// The later tool.
    pub to: Sym,
    /// How much later; none for "at any time".
    pub lag: Option<u32>,
    /// Pairs of calls; at any lag, calls of the earlier tool that the later one follows.
    pub count: u64,
    /// Of these, with a prompt of a person between them; not counted at any lag.
    pub across_turns: u64,
    /// Contexts in which that happened.
    pub cases: u64,
    /// Sessions in which that happened.
    pub sessions: u64,
    /// By session: the same pairs, among all that begin with the earlier tool; at any lag, among its calls.
    pub of_sessions: Clustered,
    /// Median time in milliseconds from the result of the earlier call to the later call (lower element).
    pub gap_ms_p50: Option<i64>,
    /// 90th percentile of the same.
    pub gap_ms_p90: Option<i64>,
    /// Its count if the messages of each context came in another order; none for "at any time".
    pub chance: Option<Chance>,
}

/// The pairs of one tool and another at one lag in one session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionPairs {
    pub session: u32,
    pub from: Sym,
    pub to: Sym,
    pub count: u64,
}

/// How often a tool opens and closes contexts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndSum {
    pub tool: Sym,
    pub calls: u64,
    /// Contexts that begin with it (with a call of their first message).
    pub starts: u64,
    /// Contexts that end with it.
    pub ends: u64,
    pub sessions: u64,
}

/// All that edges are made from.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct EdgeSums {
    /// Names of the tools, by symbol.
    pub names: Vec<String>,
    /// Contexts with a call.
    pub cases: u64,
    /// Sessions with a call.
    pub sessions: u64,
    /// Edges, by tools and lag.
    pub edges: Vec<EdgeSum>,
    /// Tools, by symbol.
    pub ends: Vec<EndSum>,
}

/// What an edge amounts to.
#[derive(Clone, PartialEq, Debug)]
pub struct Edge {
    pub sum: EdgeSum,
    /// Name of the earlier tool.
    pub from: String,
    /// Name of the later tool.
    pub to: String,
    /// Its share of all pairs at the lag.
    pub support: f64,
    /// Its share of the pairs that begin with the earlier tool; at any lag, of its calls. Its interval is over sessions.
    pub confidence: Share,
    /// Confidence against the share of the later tool in all pairs; above 1 it comes more often than by chance.
    pub lift: Option<f64>,
    /// How one-sided the order is, -1 … 1 (Heuristics Miner; Weijters et al. 2006).
    pub dependency: f64,
    /// Probability that another order of the same messages has so many pairs.
    pub p: Option<f64>,
    /// The same after Benjamini–Hochberg over all edges tested.
    pub q: Option<f64>,
    /// Whether the edge is more than chance, where that was tested: `q` small enough, seen often and in several sessions.
    pub significant: bool,
}

/// What makes an edge significant.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct EdgeThresholds {
    pub q_max: f64,
    pub count_min: u64,
    pub sessions_min: u64,
}

/// Calls in the order of their places.
pub struct EdgeFrame<'a> {
    calls: Cow<'a, [Activity]>,
}

/// A call and what comes after it: another call, or a tool at any time.
struct Pair<'c> {
    from: &'c Activity,
    to: Sym,
    across_turns: bool,
    gap_ms: Option<Millis>,
}

impl<'a> EdgeFrame<'a> {
    /// The calls, given in any order; those of a history are in order.
    pub fn new(activities: &'a [Activity]) -> Self {
        let mut calls = Cow::Borrowed(activities);
        if !calls.is_sorted_by_key(|call| call.place) {
            calls.to_mut().sort_by_key(|call| call.place);
        }
        Self { calls }
    }

    /// Pairs at one lag, within a context.
    pub fn follows(&self, lag: u32, turns: Turns) -> Result<Vec<EdgeSum>> {
        let mut pairs = self.pairs(lag);
        match turns {
            Turns::All => {}
            Turns::Within => pairs.retain(|pair| !pair.across_turns),
            Turns::Across => pairs.retain(|pair| pair.across_turns),
        }
        let trials = by_session(pairs.iter().map(|pair| pair.from));
        edges(&pairs, Some(lag), &trials)
    }

    /// The same session by session.
    pub fn of_sessions(&self, lag: u32) -> Result<Vec<SessionPairs>> {
        let pairs = self.pairs(lag);
        let columns = vec![
            column("session", &pairs, |pair| pair.from.session),
            column("from", &pairs, |pair| pair.from.tool.0),
            column("to", &pairs, |pair| pair.to.0),
        ];
        grouped(&frame(pairs.len(), columns)?, &["session", "from", "to"], |group| {
            Ok(SessionPairs {
                session: group.key("session")?,
                from: group.name("from")?,
                to: group.name("to")?,
                count: group.count(),
            })
        })
    }

    fn pairs(&self, lag: u32) -> Vec<Pair<'_>> {
        let mut pairs = Vec::new();
        for from in self.calls.iter() {
            let place = from.place + u64::from(lag);
            let begin = self.calls.partition_point(|call| call.place < place);
            let there = self.calls[begin..].iter().take_while(|call| call.place == place);
            pairs.extend(there.filter(|to| to.case == from.case).map(|to| Pair {
                from,
                to: to.tool,
                across_turns: to.turn != from.turn,
                gap_ms: to.asked.zip(from.answered).map(|(asked, answered)| asked.saturating_sub(answered)),
            }));
        }
        pairs
    }

    /// Calls that another tool follows at any time in their context.
    pub fn eventually(&self) -> Result<Vec<EdgeSum>> {
        let mut last: BTreeMap<u32, BTreeMap<Sym, u64>> = BTreeMap::new();
        for call in self.calls.iter() {
            last.entry(call.case).or_default().insert(call.tool, call.place);
        }
        let mut pairs = Vec::new();
        for from in self.calls.iter() {
            let later = last[&from.case].iter().filter(|(_, last)| from.place < **last);
            pairs.extend(later.map(|(to, _)| Pair { from, to: *to, across_turns: false, gap_ms: None }));
        }
        edges(&pairs, None, &by_session(self.calls.iter()))
    }

    /// Calls of every tool, and the contexts that begin and end with it; by symbol.
    pub fn ends(&self) -> Result<Vec<EndSum>> {
        let mut bounds: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
        for call in self.calls.iter() {
            bounds.entry(call.case).or_insert([call.place; 2])[1] = call.place;
        }
        let columns = vec![
            column("tool", &self.calls, |call| call.tool.0),
            column("case", &self.calls, |call| call.case),
            column("session", &self.calls, |call| call.session),
            column("first", &self.calls, |call| bounds[&call.case][0] == call.place),
            column("last", &self.calls, |call| bounds[&call.case][1] == call.place),
        ];
        grouped(&frame(self.calls.len(), columns)?, &["tool"], |group| {
            Ok(EndSum {
                tool: group.name("tool")?,
                calls: group.count(),
                starts: group.only("first")?.distinct("case")?,
                ends: group.only("last")?.distinct("case")?,
                sessions: group.distinct("session")?,
            })
        })
    }
}

/// How often each tool stands in each session.
type ToolsBySession = BTreeMap<Sym, BTreeMap<u32, u64>>;

fn by_session<'c>(calls: impl Iterator<Item = &'c Activity>) -> ToolsBySession {
    let mut counts = ToolsBySession::new();
    for call in calls {
        *counts.entry(call.tool).or_default().entry(call.session).or_default() += 1;
    }
    counts
}

/// Pairs summed up by their two tools; `trials` are what the pairs of a first tool are among.
fn edges(pairs: &[Pair<'_>], lag: Option<u32>, trials: &ToolsBySession) -> Result<Vec<EdgeSum>> {
    let sum = |sessions: &BTreeMap<u32, u64>| Clustered::of(sessions.values().map(|trials| (0, *trials)));
    let all: BTreeMap<Sym, Clustered> = trials.iter().map(|(tool, sessions)| (*tool, sum(sessions))).collect();
    let columns = vec![
        column("from", pairs, |pair| pair.from.tool.0),
        column("to", pairs, |pair| pair.to.0),
        column("case", pairs, |pair| pair.from.case),
        column("session", pairs, |pair| pair.from.session),
        column("across_turns", pairs, |pair| pair.across_turns),
        column("gap_ms", pairs, |pair| pair.gap_ms),
    ];
    grouped(&frame(pairs.len(), columns)?, &["from", "to"], |group| {
        let from = group.name("from")?;
        let (sessions, trials) = (group.counts("session")?, &trials[&from]);
        let mut of_sessions = all[&from];
        sessions.iter().for_each(|(session, count)| of_sessions.add_successes(*count, trials[session], 1.0));
        Ok(EdgeSum {
            from,
            to: group.name("to")?,
            lag,
            count: group.count(),
            across_turns: group.sum("across_turns")?,
            cases: group.distinct("case")?,
            sessions: sessions.len() as u64,
            of_sessions,
            gap_ms_p50: group.quantile("gap_ms", 0.5)?,
            gap_ms_p90: group.quantile("gap_ms", 0.9)?,
            chance: None,
        })
    })
}
