//! Follow-up edges between tools: what they are counted from, and what is said about each; and calls as events of a process
//! in a Polars frame, with the pairs that follow each other.

use polars::prelude::*;
use serde::{Deserialize, Serialize};

use crate::base::error::Result;
use crate::base::names::Sym;
use crate::base::significance::Chance;
use crate::base::stats::Share;
use crate::frames::columns::{Collected, fault, grouped, whole};
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
    /// Tool.
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
    /// Median time in milliseconds from the result of the earlier call to the later call (lower element).
    pub gap_ms_p50: Option<i64>,
    /// 90th percentile of the same.
    pub gap_ms_p90: Option<i64>,
    /// Its count if the messages of each context came in another order; none for "at any time".
    pub chance: Option<Chance>,
}

/// How often a tool opens and closes contexts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndSum {
    /// Tool.
    pub tool: Sym,
    /// Its calls.
    pub calls: u64,
    /// Contexts that begin with it (with a call of their first message).
    pub starts: u64,
    /// Contexts that end with it.
    pub ends: u64,
    /// Sessions in which it was called.
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
    /// The counts.
    pub sum: EdgeSum,
    /// Name of the earlier tool.
    pub from: String,
    /// Name of the later tool.
    pub to: String,
    /// Its share of all pairs at the lag.
    pub support: f64,
    /// Its share of the pairs that begin with the earlier tool; at any lag, of its calls.
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
#[serde(deny_unknown_fields)]
pub struct EdgeThresholds {
    /// False discovery rate.
    pub q_max: f64,
    /// Pairs.
    pub count_min: u64,
    /// Sessions.
    pub sessions_min: u64,
}

/// One row per call.
pub struct EdgeFrame {
    calls: LazyFrame,
}

impl EdgeFrame {
    /// The frame of some calls, in any order.
    ///
    /// # Errors
    /// If the columns do not fit together, which is a fault of devboy.
    pub fn new(activities: &[Activity]) -> Result<Self> {
        let of = |value: fn(&Activity) -> u32| activities.iter().map(value).collect::<Vec<u32>>();
        let at = |value: fn(&Activity) -> Option<i64>| activities.iter().map(value).collect::<Vec<Option<i64>>>();
        let frame = df!(
            "case" => of(|row| row.case),
            "session" => of(|row| row.session),
            "place" => activities.iter().map(|row| row.place).collect::<Vec<u64>>(),
            "turn" => of(|row| row.turn),
            "tool" => of(|row| row.tool.0),
            "asked" => at(|row| row.asked),
            "answered" => at(|row| row.answered),
        );
        Ok(Self { calls: frame.map_err(fault)?.lazy() })
    }

    /// Pairs at one lag, within a context.
    ///
    /// # Errors
    /// If Polars refuses the query, which is a fault of devboy.
    pub fn follows(&self, lag: u32, turns: Turns) -> Result<Vec<EdgeSum>> {
        let earlier = self.calls.clone().select([
            (col("place") + lit(u64::from(lag))).alias("next"),
            col("case"),
            col("session"),
            col("turn"),
            col("tool").alias("from"),
            col("answered"),
        ]);
        let later = self.calls.clone().select([
            col("place"),
            col("case").alias("then"),
            col("turn").alias("turn_then"),
            col("tool").alias("to"),
            col("asked"),
        ]);
        let across = || col("turn").neq(col("turn_then"));
        let pairs = earlier
            .join(later, [col("next")], [col("place")], JoinArgs::new(JoinType::Inner))
            .filter(col("case").eq(col("then")));
        let pairs = match turns {
            Turns::All => pairs,
            Turns::Within => pairs.filter(across().not()),
            Turns::Across => pairs.filter(across()),
        };
        let gap = |share: f64| {
            let gaps = (col("asked") - col("answered")).drop_nulls();
            gaps.quantile(lit(share), QuantileMethod::Lower).cast(DataType::Int64)
        };
        let sums = [
            whole(len(), "count"),
            whole(across().sum(), "across_turns"),
            distinct("case", "cases"),
            distinct("session", "sessions"),
            gap(0.5).alias("gap_ms_p50"),
            gap(0.9).alias("gap_ms_p90"),
        ];
        edges(pairs, &sums, Some(lag))
    }

    /// Calls that another tool follows at any time in their context.
    ///
    /// # Errors
    /// If Polars refuses the query, which is a fault of devboy.
    pub fn eventually(&self) -> Result<Vec<EdgeSum>> {
        let last =
            self.calls.clone().group_by([col("case"), col("tool").alias("to")]).agg([col("place").max().alias("last")]);
        let pairs = self
            .calls
            .clone()
            .select([col("case"), col("session"), col("place"), col("tool").alias("from")])
            .join(last, [col("case")], [col("case")], JoinArgs::new(JoinType::Inner))
            .filter(col("place").lt(col("last")));
        let none = || lit(NULL).cast(DataType::Int64);
        let sums = [
            whole(len(), "count"),
            lit(0_u64).alias("across_turns"),
            distinct("case", "cases"),
            distinct("session", "sessions"),
            none().alias("gap_ms_p50"),
            none().alias("gap_ms_p90"),
        ];
        edges(pairs, &sums, None)
    }

    /// Calls of every tool, and the contexts that begin and end with it; by symbol.
    ///
    /// # Errors
    /// If Polars refuses the query, which is a fault of devboy.
    pub fn ends(&self) -> Result<Vec<EndSum>> {
        let bounds = [col("place").min().alias("first"), col("place").max().alias("last")];
        let bounds = self.calls.clone().group_by([col("case")]).agg(bounds);
        let cases_at = |end: &str| col("case").filter(col("place").eq(col(end))).n_unique();
        let calls = self.calls.clone().join(bounds, [col("case")], [col("case")], JoinArgs::new(JoinType::Inner));
        let sums = [
            whole(len(), "calls"),
            whole(cases_at("first"), "starts"),
            whole(cases_at("last"), "ends"),
            distinct("session", "sessions"),
        ];
        Collected(&grouped(calls, &["tool"], &sums)?).rows()
    }
}

fn distinct(column: &str, name: &str) -> Expr {
    whole(col(column).n_unique(), name)
}

fn edges(pairs: LazyFrame, sums: &[Expr], lag: Option<u32>) -> Result<Vec<EdgeSum>> {
    let found = grouped(pairs, &["from", "to"], sums)?;
    let mut edges: Vec<EdgeSum> = Collected(&found).rows()?;
    edges.iter_mut().for_each(|edge| edge.lag = lag);
    Ok(edges)
}
