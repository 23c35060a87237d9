//! The report of a planner replay: plain data, and its forms.

mod json;
mod tables;

use serde::Serialize;

use crate::base::stats::{Share, TargetFigure, TargetVerdict};
use crate::logs::trace::Millis;
use crate::planner::prefetches::{Bound, PrefetchEnd, PrefetchTally};
use crate::planner::selectivity;
use crate::planner::selectivity::backtest::Learned;
use crate::telemetry::effectiveness::Effectiveness;

pub use crate::planner::report::json::sessions;
pub use json::{json, sweep_json};
pub use tables::{SWEPT, sweep, write};

/// Everything that a planner replay says.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannerReport {
    /// What was learned from and what was judged.
    pub backtest: PlannerBacktest,
    pub arms: Vec<PlannerArm>,
    /// What nobody can beat, under the models of the configuration.
    pub bound: Bound,
    pub selectivity: Option<(Learned, selectivity::SelectivityThresholds)>,
    /// What to do about it: lines of rule R7 and others.
    pub advice: Vec<String>,
    /// What stands behind the figures, in words.
    pub notes: Vec<String>,
}

/// Learned from, judged on.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct PlannerBacktest {
    pub training_sessions: u64,
    pub judged_sessions: u64,
    pub judged_calls: u64,
    /// Start of the first session that was judged.
    #[serde(rename = "judged_from_ms")]
    pub judged_from: Option<Millis>,
    /// Whether the planner is switched on in the configuration.
    #[serde(rename = "enrichment_enabled")]
    pub enabled: bool,
}

/// One planner, judged.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PlannerArm {
    pub name: String,
    pub about: String,
    pub total: PrefetchTally,
    /// The same planner with values of other sessions in place of its own.
    pub control: PrefetchTally,
    /// The target metrics, the hit rate first.
    pub metrics: Vec<Metric>,
    /// From one tool to another.
    pub edges: Vec<EdgeRow>,
    /// Sessions that were judged, by name.
    pub sessions: Vec<(String, PrefetchTally)>,
}

/// Key of the hit rate, by which planners are told apart. `prefetch_hit` is the published figure, which goes by the name of
/// the tool.
pub const HIT: &str = "exact_hit";

/// A metric with what it should reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub key: &'static str,
    pub name: &'static str,
    /// Successes of trials; without a target: a count.
    pub share: Share,
    /// Interval over sessions, or over calls (Wilson) where that is wider: either alone can be too sure, the one where few
    /// sessions have any, the other where one session has most of them.
    pub sessions: Option<(f64, f64)>,
    /// What it should reach.
    pub target: Option<TargetFigure>,
}

impl Metric {
    /// Its interval.
    pub fn ends(&self) -> (f64, f64) {
        self.sessions.unwrap_or((self.share.lower, self.share.upper))
    }

    /// How it stands to its target.
    pub fn verdict(&self) -> TargetVerdict {
        let judged = self.target.filter(|_| self.share.n > 0);
        judged.map_or(TargetVerdict::NotApplicable, |target| TargetVerdict::of(self.ends(), target))
    }

    /// Whether its point value reaches the target, however sure that is.
    pub fn seems_reached(&self) -> bool {
        let value = self.share.value();
        let is_reached = |target| TargetVerdict::of((value, value), target) == TargetVerdict::Pass;
        self.share.n > 0 && self.target.is_some_and(is_reached)
    }
}

/// One edge, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeRow {
    /// Tool that answered.
    pub from: String,
    /// Tool that was called ahead.
    pub to: String,
    pub tally: PrefetchTally,
}

/// One value of a parameter, or one cell of a grid of them.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannerSweepRow {
    /// The values, in the order of the keys.
    pub values: Vec<String>,
    pub arm: String,
    pub tally: PrefetchTally,
}

impl PlannerArm {
    /// The hit rate.
    pub fn hit(&self) -> Share {
        Share::new(self.total.near.exact, self.total.sent())
    }

    /// The planner on against the planner off.
    pub fn net(&self) -> Net {
        let PrefetchTally { calls, unused_tokens, hint_tokens, .. } = self.total;
        let (saved, added) = (self.total.calls_saved(), self.total.calls_added());
        Net {
            calls_off: calls,
            calls_on: calls - saved + added,
            saved,
            added,
            calls_net: saved as i64 - added as i64,
            tokens_net: -((unused_tokens + hint_tokens) as i64),
            unused_tokens,
            hint_tokens,
        }
    }
}

/// The same sessions without and with a planner. Of `calls_net` and `tokens_net`, positive is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Net {
    /// Calls that run without it.
    pub calls_off: u64,
    /// Calls that run with it, its own included.
    pub calls_on: u64,
    /// Calls of the agent that need not run.
    pub saved: u64,
    /// Calls that run for nothing or twice.
    pub added: u64,
    pub calls_net: i64,
    pub tokens_net: i64,
    /// Predicted tokens of answers that nobody used. They stay outside of the context.
    #[serde(skip)]
    pub unused_tokens: u64,
    /// Tokens of hints, which stand in the context.
    #[serde(skip)]
    pub hint_tokens: u64,
}

/// The published counters by the published definitions: cited by name, whatever the arguments. Repeats that L0 answers
/// are `devboy replay`'s and not counted here; sizes are known only where the agent made the call itself.
pub fn effectiveness(tally: &PrefetchTally) -> Effectiveness {
    Effectiveness {
        total_prefetches: tally.sent(),
        cited_prefetches: tally.cited,
        total_declines: tally.declined(),
        late_invoked_after_decline: tally.late_published,
        cost_overrun_count: tally.overruns,
        total_predictions: tally.sent(),
        net_prediction_error_tokens: tally.error_tokens,
        saved_prefetch: tally.cited,
        saved_dedup: 0,
        saved_fail_fast: tally.refused,
        tokens_saved: tally.cited_tokens + tally.refused_tokens,
        prefetch_dispatched: tally.sent(),
        prefetch_won_race: tally.ends[PrefetchEnd::Won],
        prefetch_wasted: tally.wasted(),
    }
}

/// Books of tools that are called ahead, by name.
pub fn by_tool(edges: &[EdgeRow]) -> Vec<(String, PrefetchTally)> {
    let mut tools: std::collections::BTreeMap<String, PrefetchTally> = std::collections::BTreeMap::new();
    for edge in edges {
        *tools.entry(edge.to.clone()).or_default() += &edge.tally;
    }
    tools.into_iter().collect()
}
