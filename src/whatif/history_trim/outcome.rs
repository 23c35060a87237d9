//! What trimming did to the contexts of a history, and whether it paid.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::whatif::history_trim::thresholds::ReportNumbers;
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::figures::CostVerdict;

/// Who speaks in a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person or the client.
    User = 0,
    /// The model.
    Assistant = 1,
    /// A tool.
    Tool = 2,
}

impl Role {
    /// All roles, by number.
    pub const ALL: [Self; 3] = [Self::User, Self::Assistant, Self::Tool];
}

/// Why a prefix that the log would have kept was changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum BreakCause {
    /// A message became old, or was old and no longer is.
    BoundaryMoved,
    /// A message was old already and got another cap.
    CapsChanged,
    /// The first request of a turn and its continuations have different histories.
    FirstVsContinuation,
    /// A message was dropped, or came back.
    Dropped,
}

/// Breaks of one cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct BreakCount {
    /// Requests.
    pub events: u64,
    /// Tokens of messages that had been sent and stood at or behind the change.
    pub tokens: u64,
}

/// Tokens of the messages of one role and age, summed over requests: a message counts in every request that sends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MessageAgeRow {
    /// Who speaks.
    pub role: Role,
    /// Least age of the row, in exchanges that came after.
    pub age_from: u32,
    /// Tokens in the log.
    pub logged: u64,
    /// Tokens that were sent. Marks of cuts are in it, so that it can exceed `logged` by a few.
    pub sent: u64,
    /// Of `logged`, those of messages that were dropped.
    pub dropped: u64,
}

/// What trimming did, summed over requests.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct TrimOutcome {
    /// Requests.
    pub requests: u64,
    /// Of these, continuations of a chain of tool calls.
    pub continuations: u64,
    /// Requests of which anything was cut or dropped.
    pub requests_changed: u64,
    /// Tokens of all contexts in the log, prefix included.
    pub logged: u64,
    /// Tokens of all contexts as they were sent.
    pub sent: u64,
    /// Messages that were cut, once per request.
    pub messages_trimmed: u64,
    /// Messages that were dropped, once per request.
    pub messages_dropped: u64,
    /// Requests for which the second pass of the hard cap dropped protected messages.
    pub protected_lost_requests: u64,
    /// Those messages, once per request.
    pub protected_lost_messages: u64,
    /// Requests that lost the first user message of their segment.
    pub first_user_lost_requests: u64,
    /// By role, then age.
    pub ages: Vec<MessageAgeRow>,
    /// Prefix breaks that the log does not have, by cause.
    pub breaks: BTreeMap<BreakCause, BreakCount>,
}

impl TrimOutcome {
    /// Breaks of all causes.
    pub fn breaks_total(&self) -> u64 {
        self.breaks.values().map(|count| count.events).sum()
    }
}

/// The cost of the log and of a policy, by the same simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TrimCosts {
    /// Without the policy.
    pub baseline: Cost,
    /// With it.
    pub policy: Cost,
    /// Which one is better.
    pub verdict: CostVerdict,
}

/// Numbers of the formulas of caps (`[caps]` of the sheet). Budgets and caps are in tokens.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapNumbers {
    /// Least budget that counts.
    pub budget_min: u32,
    /// Largest budget that counts.
    pub budget_max: u32,
    /// Base per token of the budget.
    pub base_per_budget: f64,
    /// Least base.
    pub base_min: u32,
    /// Largest base.
    pub base_max: u32,
    /// Old messages from which on caps shrink.
    pub crowd_messages: u32,
    /// Share of the base that is left in the largest crowd.
    pub crowd_floor: f64,
    /// Share that is added to it where nothing is crowded.
    pub crowd_weight: f64,
    /// Least cap next to the boundary.
    pub message_near_min: u32,
    /// Cap of the oldest message per cap next to the boundary.
    pub message_oldest_share: f64,
    /// Least cap of the oldest message.
    pub message_oldest_min: u32,
    /// Cap of a tool result per cap of a message.
    pub tool_share: f64,
    /// Least cap of a result next to the boundary.
    pub tool_near_min: u32,
    /// Least cap of the oldest result.
    pub tool_oldest_min: u32,
}

/// Edits under a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Edits {
    /// Those whose source was cut or dropped.
    pub lost: u64,
    /// All that had a source in the context of the log.
    pub all: u64,
}

/// Everything that is said about a trimmed history.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TrimReport {
    /// Name of the settings.
    pub name: String,
    /// What the same settings cost in other logs, in per cent: writes for 5 minutes / for an hour.
    pub elsewhere: Option<String>,
    /// What was done.
    pub outcome: TrimOutcome,
    /// With the provider's cache.
    pub cached: TrimCosts,
    /// Tokens with the policy and the cache, as billed.
    pub spent: Spent,
    /// Edits that were looked at, and those whose source was no longer in the context.
    pub edits: Edits,
    /// Without any, for users of providers that have none.
    pub uncached: TrimCosts,
}

impl ReportNumbers {
    /// Holds the cost with the policy against that without, both by the same simulation. They are compared as
    /// in every report ([`Cost::beside`]); `error` is what that simulation is off the bill, as a share.
    pub fn sides(&self, (baseline, policy): (Cost, Cost), error: f64) -> TrimCosts {
        let (before, after) = baseline.beside(&policy);
        let margin_permille = self.margin_permille.max((1_000.0 * error.abs()).ceil() as u32);
        TrimCosts { baseline, policy, verdict: verdict(before, after, margin_permille) }
    }
}

/// What a difference of costs says: nothing unless it is at least so many thousandths of the baseline.
pub fn verdict(baseline: u128, policy: u128, margin_permille: u32) -> CostVerdict {
    let difference = baseline.abs_diff(policy);
    if difference == 0 || difference * 1000 < baseline * u128::from(margin_permille) {
        CostVerdict::NoClearWinner
    } else if policy < baseline {
        CostVerdict::Cheaper
    } else {
        CostVerdict::MoreExpensive
    }
}
