//! What replays of compaction and of the clearing of tool results find out.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::base::backtest::Forecast;
use crate::base::stats::Share;
use crate::base::sums::adds_up;
use crate::whatif::sim::breakage::rows::Breakage;
use crate::whatif::sim::cost::{Cost, Spent};

/// What became of an attempt to compact, in the order of reports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// The head was replaced by a summary.
    Ok,
    /// The summariser failed (injected failures).
    Failed,
    /// There is no place to cut: the tail would be everything.
    NoBoundary,
    /// The context would not have shrunk enough.
    NoGain,
    /// Wanted, but too few human turns after the last one.
    Held,
    /// Wanted, but too many failures in a row.
    BreakerOpen,
}

/// One attempt to compact, in a virtual run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CompactionAttempt {
    /// Index of the request before which it was made.
    pub request: u32,
    pub outcome: AttemptEnd,
    /// Tokens of the context that it was decided on.
    pub before_tokens: u64,
    /// Tokens of the messages that went. 0 unless it succeeded; the same holds for all that follows.
    pub head_tokens: u64,
    /// Tokens of summary, acknowledgement and reattached files that came instead.
    pub made_tokens: u64,
    /// Tokens of the messages that stayed.
    pub tail_tokens: u64,
}

impl CompactionAttempt {
    /// One that changed nothing, before a request whose context has so many tokens.
    pub fn idle(request: u32, outcome: AttemptEnd, before_tokens: u64) -> Self {
        Self { request, outcome, before_tokens, head_tokens: 0, made_tokens: 0, tail_tokens: 0 }
    }

    /// Tokens by which the context shrank.
    pub fn removed_tokens(&self) -> u64 {
        self.head_tokens.saturating_sub(self.made_tokens)
    }
}

/// Quantiles over contexts, by nearest rank.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Percentiles {
    pub p5: u64,
    pub p25: u64,
    pub p50: u64,
    pub p75: u64,
    pub p95: u64,
    pub max: u64,
}

/// What a virtual run of compaction did.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Compactions {
    pub outcomes: BTreeMap<AttemptEnd, u64>,
    /// Sessions with at least one compaction.
    pub sessions: u64,
    /// Tokens by which contexts shrank when they were compacted.
    pub removed_tokens: u64,
    /// Tokens that summarisers read and wrote.
    pub summariser: SummariserTokens,
    /// Tokens that the requests right after a compaction wrote to the cache.
    pub rewritten_tokens: u64,
    /// Contexts as they were sent.
    pub context: Percentiles,
    /// Median of requests from one compaction to the next of its chain; none with fewer than two.
    pub requests_between_p50: Option<u64>,
    /// The same in human turns.
    pub turns_between_p50: Option<u64>,
    /// Whether compactions follow each other so fast that they undo themselves.
    pub is_thrashing: bool,
    /// Breaks within the next tool calls after a compaction.
    pub soon_after: Option<Breakage>,
}

/// Tokens of the calls that write summaries.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct SummariserTokens {
    pub calls: u64,
    /// Context read from the cache.
    pub read: u64,
    /// Context that was not cached.
    pub uncached: u64,
    pub output: u64,
}

adds_up!(SummariserTokens: calls, read, uncached, output);

impl SummariserTokens {
    /// Those of one call.
    pub fn of(spent: Spent) -> Self {
        Self { calls: 1, read: spent.read, uncached: spent.uncached, output: spent.output }
    }
}

/// Real compactions found again by the rule.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Placement {
    /// Automatic compactions that the rule places at the same request or one beside it, of all.
    pub placed: Share,
    /// Firings of the rule without a real compaction beside them, and the requests that they stand against.
    pub false_firings: Share,
    /// Chains with contexts past the window: theirs is another one, and they are left out.
    pub beyond_window: u64,
    /// Whether both bars are met; none without automatic compactions.
    pub is_met: Option<bool>,
}

/// Sizes after real compactions.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AfterSizes {
    /// Compactions with a context before and after.
    pub compactions: u64,
    /// First contexts after them.
    pub context: Percentiles,
    /// Static prefix, summary, acknowledgement and reattached files of the parameters are within the tolerance, of all. The
    /// client keeps no message word for word.
    pub by_params: Share,
    /// What was known before the week of the compaction predicts within the tolerance, of all.
    pub learned: Share,
    /// Sizes within the interval of that prediction, of all.
    pub in_interval: Share,
    /// How often that interval promises to hold, in percent.
    pub interval_percent: f64,
    /// One by one, by time.
    pub forecasts: Vec<Forecast>,
    /// Whether the learned prediction meets the bar; none without a compaction.
    pub is_met: Option<bool>,
}

/// Files read again.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rereads {
    /// Compactions with a request after them.
    pub compactions: u64,
    /// Of these, with at least one file read again within the next tool calls.
    pub compactions_with_one: u64,
    /// Readings within those calls.
    pub reads: u64,
    /// Of these, of files that were read before the compaction.
    pub reads_again: u64,
    /// Everywhere else: readings of files that the chain had read before, of all readings.
    pub elsewhere: Share,
}

/// What the compactions of the log cost and broke.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RealCompactions {
    /// By who asked for them.
    pub triggers: BTreeMap<String, u64>,
    /// Tokens of their summarisers: an estimate, since these calls are not logged.
    pub summariser_estimate: SummariserTokens,
    /// Tokens that the first requests after them wrote to the cache.
    pub rewritten_tokens: u64,
    /// Tokens by which contexts shrank.
    pub removed_tokens: u64,
    /// Files read again.
    pub rereads: Rereads,
    /// What answers after them needed of what went.
    pub breakage: Breakage,
}

/// One threshold of a sweep.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CompactionSweepRow {
    /// Context at which to compact; none: never.
    pub trigger_tokens: Option<u64>,
    /// Tokens that a compaction leaves besides the static prefix.
    pub carry_tokens: u64,
    pub firings: u64,
    /// Whether they follow each other too fast.
    pub is_thrashing: bool,
    /// All requests and the summarisers.
    pub cost: Cost,
    /// Of these, the summarisers.
    pub summariser: Cost,
    /// Tokens of files to be read again: not in `cost`.
    pub reread_tokens: u64,
    pub edit_source_lost: u64,
    /// Identifiers whose every earlier occurrence went.
    pub ref_lost: u64,
}

/// A clearing of tool results in the log beside what the rule would have cleared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClearingCheck {
    /// Hash of the `uuid` of the boundary record.
    pub record: String,
    /// Results in the context, as the rule estimates them, in tokens.
    pub total_tokens: u64,
    /// `preTokens` of the log.
    pub logged_total_tokens: Option<u64>,
    /// What the rule frees; 0 if it would not have cleared.
    pub saved_tokens: u64,
    /// `tokensSaved` of the log.
    pub logged_saved_tokens: Option<u64>,
    /// Calls that the rule and the log clear.
    pub both: u64,
    /// Calls that only the rule clears.
    pub only_predicted: u64,
    /// Calls that only the log clears.
    pub only_logged: u64,
    /// Calls whose results had gone before without a record, by the rule, where a context shrank by as much.
    pub unlogged: u64,
    /// Calls that the log clears and that stand in no log: the clearing cannot be judged.
    pub not_in_logs: u64,
}

impl ClearingCheck {
    /// Whether the logs hold what was cleared.
    pub fn is_judged(&self) -> bool {
        self.not_in_logs == 0
    }

    /// Whether the two sets are the same.
    pub fn is_equal(&self) -> bool {
        self.only_predicted == 0 && self.only_logged == 0
    }
}

/// Clearings of the log found again by the rule.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClearingsReplayed {
    /// One by one, in the order of the timeline.
    pub checks: Vec<ClearingCheck>,
    /// Those with equal sets, of the others.
    pub equal: Share,
    /// Whether the bar is met; none without a clearing.
    pub is_met: Option<bool>,
}

/// What a virtual run of clearing did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Clearings {
    /// Times at which results were cleared.
    pub clearings: u64,
    pub results: u64,
    /// Tokens that they had.
    pub removed_tokens: u64,
    /// Sessions with at least one.
    pub sessions: u64,
    /// Contexts as they were sent.
    pub context: Percentiles,
}

/// How far contexts grew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ContextGrowth {
    /// Partitions that a compaction ended.
    pub compacted: Grown,
    /// The others: the last ones of their contexts.
    pub open: Grown,
}

/// Partitions with at least one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Grown {
    pub partitions: u64,
    /// Tokens of all answers.
    pub tokens: Percentiles,
    pub requests: Percentiles,
}
