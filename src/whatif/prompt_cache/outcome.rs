//! What `--policy prompt-cache` found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::EnumMessage as _;

use crate::base::backtest::Forecast;
use crate::base::sums::adds_up;
use crate::whatif::prompt_cache::reference::{Own, Stated};
use crate::whatif::sim::cost::{Cost, Total};
use crate::whatif::sim::figures::{CostVerdict, Deviation, Portion};

/// How far a simulated run is from the bill.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct AgainstBill {
    /// Requests with usage.
    pub requests: u64,
    /// Tokens read by the bill.
    pub read_billed: u64,
    /// Tokens read in the simulation.
    pub read_simulated: u64,
    /// Sum of absolute differences, request by request.
    pub read_error: u64,
    /// The bill's cost, without output.
    pub cost_billed: Cost,
    pub cost_simulated: Cost,
    /// Requests within a turn, within the lifetime, with no known reason for a break: reads that are the same to the token.
    pub warm_tool_turns: Portion,
    /// Of the misses among these, reads that are those of the request before: what that one wrote could not be read yet.
    pub late_writes: u64,
    /// Requests at human turns: reads that are the same to the token.
    pub human_turns_exact: Portion,
    /// And reads within 2 % of the context.
    pub human_turns_close: Portion,
}

impl AgainstBill {
    /// Weighted absolute percentage error of the reads.
    pub fn wape(&self) -> Deviation {
        Deviation { off: self.read_error as f64, whole: self.read_billed as f64 }
    }

    /// How much more is read in the simulation.
    pub fn bias(&self) -> Deviation {
        let whole = self.read_billed as f64;
        Deviation { off: self.read_simulated as f64 - whole, whole }
    }

    /// How much more the simulation costs than the bill ([`Cost::beside`]).
    pub fn cost_error(&self) -> Deviation {
        let (billed, simulated) = self.cost_billed.beside(&self.cost_simulated);
        Deviation { off: simulated as f64 - billed as f64, whole: billed as f64 }
    }
}

/// One way to cache, beside the simulated baseline.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CacheArm {
    /// What was set: `ttl=1h`.
    pub name: String,
    /// All requests under it.
    pub total: Total,
    /// Cost of the simulated baseline, in the money of what has a price both ways.
    pub against: Cost,
    /// Lower end of the 95 % interval over sessions of the change against it; none with too few sessions.
    pub change_lower: Option<f64>,
    pub change_upper: Option<f64>,
    /// Against the simulated baseline.
    pub verdict: CostVerdict,
    /// Sessions in which it costs less than the baseline.
    pub sessions_better: u64,
    /// Sessions in which it costs more.
    pub sessions_worse: u64,
}

/// How many reads that only keep a prefix alive one write of it is worth, for one model and lifetime.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct IdleReads {
    pub model: String,
    /// The lifetime of the writes: `5m`, `1h`.
    pub lifetime: &'static str,
    /// What a token costs that is written, in nano-dollars.
    pub write_nano_usd: u64,
    /// What a token costs that is read, in nano-dollars.
    pub read_nano_usd: u64,
    /// Most keep-alive reads that, with the read of the next request, cost no more than the write that they spare.
    pub reads: u64,
    /// By seconds from one read to the next: the seconds of idleness at which one read more would be due, so that any less is
    /// bridged by so many; none where a prefix does not live as long as that.
    pub idle_s: BTreeMap<u32, Option<u64>>,
}

/// Why a prefix was lost, in the order in which causes are looked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumMessage, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Cause {
    #[strum(message = "compaction")]
    Compaction,
    #[strum(message = "old results cleared")]
    Microcompact,
    #[strum(message = "model changed")]
    ModelSwap,
    #[serde(rename = "cache_expired")]
    #[strum(serialize = "cache_expired", message = "cache expired")]
    TtlExpiry,
    #[strum(message = "client updated")]
    VersionChange,
    /// The client was left and came back.
    #[strum(message = "session resumed")]
    Resume,
    /// Another effort: most models cache each one apart.
    #[strum(message = "effort changed")]
    EffortChange,
    #[strum(message = "skill or reminder came in")]
    MetaInjection,
    #[strum(message = "plan mode")]
    PlanMode,
    /// The conversation went back, or shrank.
    #[serde(rename = "rewind/shrink")]
    #[strum(serialize = "rewind/shrink", message = "conversation went back")]
    RewindOrShrink,
    #[strum(message = "CLAUDE.md or .claude/ written")]
    WorkspaceEdit,
    #[serde(rename = "prefix_mutation@human")]
    #[strum(serialize = "prefix_mutation@human", message = "unknown, at a prompt")]
    MutationAtHuman,
    #[serde(rename = "prefix_mutation@tool")]
    #[strum(serialize = "prefix_mutation@tool", message = "unknown, between tool calls")]
    MutationAtTool,
    /// Nothing was there to be lost: a session begins.
    #[strum(message = "session began")]
    SessionStart,
    #[strum(message = "subagent began")]
    AgentStart,
    /// A chain begins with the context of another.
    #[strum(message = "fork")]
    Fork,
}

impl Cause {
    /// What stood before the loss, in plain words.
    pub fn words(self) -> &'static str {
        self.get_message().unwrap_or_default()
    }
}

/// Breaks of one cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct CauseSum {
    pub events: u64,
    /// Tokens that had been cached and were not read.
    pub tokens_lost: u64,
    /// Of these, tokens that were written again or billed in full; the rest was dropped.
    pub tokens_again: u64,
    /// What those cost.
    pub cost_again: Cost,
    /// What that is more than reading them would have cost.
    pub cost_lost: Cost,
}

adds_up!(CauseSum: events, tokens_lost, tokens_again, cost_again, cost_lost);

/// The choice of a lifetime for each session by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BestPerSession {
    /// Cost of every session under its own best lifetime.
    pub cost: Cost,
    /// Cost of the same requests under the lifetimes that they had.
    pub against: Cost,
    /// Sessions by the name of their best arm.
    pub sessions: BTreeMap<String, u64>,
}

/// Writes to workspace files.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Workspace {
    /// Sessions with at least one.
    pub sessions: u64,
    /// Roots (working directories) with at least one.
    pub roots: u64,
    /// Writes to Markdown files.
    pub writes: u64,
    /// Of these, to instructions of the client.
    pub instruction_writes: u64,
    /// Invalidations: writes that lie closer together count once.
    pub invalidations: u64,
    /// Invalidations with a request after them, and those where that request lost the cache.
    pub followed_by_break: Portion,
    /// What it would have cost if each invalidation had voided everything behind the static prefix.
    pub cost_at_risk: Cost,
}

/// What the router's rule of a hot cache says, beside what happened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct HotCache {
    /// Requests that the rule calls hot, and those of them that read from the cache.
    pub hot: Portion,
    /// Requests that it calls cold although they read from the cache.
    pub cold_but_warm: Portion,
    /// Effective price of input in thousandths of a percent of the list price (48,333 for 0.48333).
    pub multiplier: u64,
    /// The same as measured: what all input cost over what it would cost uncached.
    pub multiplier_measured: u64,
}

/// The threshold model: writes and reads by the gap before them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct ThresholdModel {
    /// As billed (writes and reads only).
    pub actual: Cost,
    /// All writes for five minutes.
    pub five_minutes: Cost,
    /// All writes for an hour.
    pub hour: Cost,
    /// Tokens written.
    pub written: u64,
    /// Of these, tokens written after a gap that an hour would have bridged.
    pub recoverable: u64,
}

/// What the simulation is held against, in percent.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SimulationBars {
    pub read_error: f64,
    pub warm_exact: f64,
    pub bias: f64,
    pub cost: f64,
    pub human_close: f64,
}

/// Everything that `prompt-cache` found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PromptCache {
    /// What the predictions are held against.
    pub bars: SimulationBars,
    pub billed: Total,
    /// The same input if nothing of it had been cached, at prices of prompts as long.
    pub uncached: Total,
    /// Simulated as the log was sent, with observed lifetimes.
    pub baseline: Total,
    /// Simulated under the parameters.
    pub simulated: Total,
    /// Of the simulated one against the simulated baseline.
    pub verdict: CostVerdict,
    /// Predictions against the bill: no prediction looked at its own bill. All chains.
    pub against_bill: AgainstBill,
    /// Main threads only, which is what public figures are of.
    pub against_bill_main: AgainstBill,
    /// Slack of lifetimes in seconds that did best on one half of the sessions, all chains.
    pub slack_s_fitted: u32,
    /// Tokens read week by week, each predicted by what was known before.
    pub weeks: Vec<Forecast>,
    /// How often the intervals of these promise to hold, in percent; those of the first weeks, which know too little for that,
    /// are of a fixed width.
    pub weeks_promised: f64,
    /// Main threads of the other half, predicted with that slack.
    pub against_bill_held_out: AgainstBill,
    /// Lifetimes, layouts, keep-alive.
    pub arms: Vec<CacheArm>,
    /// The lifetimes again, chosen per session.
    pub best_per_session: BestPerSession,
    /// What a write is worth in keep-alive reads, by model and by the lifetimes that the log wrote for.
    pub idle_reads: Vec<IdleReads>,
    /// Breaks by cause, as billed.
    pub causes: BTreeMap<Cause, CauseSum>,
    /// What the client says that sessions have cost, beside the log; of no session if it says nothing.
    pub stated: Vec<Stated>,
    /// The user's own figures of the questions that a published study asked.
    pub reference: Own,
    /// The router's view.
    pub hot_cache: HotCache,
    pub threshold: ThresholdModel,
    /// Writes to workspace files, if asked for.
    pub workspace: Option<Workspace>,
    /// Models whose minimum prefix is not known.
    pub unlisted_minimum: Vec<String>,
    pub compactions: u64,
    pub without_usage: u64,
}
