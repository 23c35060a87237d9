//! What was sent and is in no log.

use serde::Serialize;

use crate::whatif::sim::cost::{Cost, Spent};

/// Estimates of what the log does not have (policies.md 8). None of it is in any bill here.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Unlogged {
    /// Requests that shared a prefix and cached an answer before a person wrote, where the next bill shows it.
    pub forks: UnloggedCalls,
    /// Calls that wrote the summaries of compactions.
    pub summaries: UnloggedCalls,
    /// What answers were longer than their usage says, by the sizes of their blocks; no calls of their own.
    pub answers: UnloggedCalls,
}

/// Estimated calls.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct UnloggedCalls {
    /// How many.
    pub calls: u64,
    /// Their tokens.
    pub spent: Spent,
    /// What they would cost.
    pub cost: Cost,
}
