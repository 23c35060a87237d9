//! What a policy comes to against the simulated log: saved, paid for, broken; the same for every policy.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::policy::cost::{Cost, Spent};

/// Tokens and cost of all requests.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Bill {
    /// Tokens by how they are billed.
    pub spent: Spent,
    /// What they cost.
    pub cost: Cost,
}

/// Both sides of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Sides {
    /// Requests.
    pub requests: u64,
    /// The simulated log.
    pub baseline: Bill,
    /// The policy, its extra calls included.
    pub policy: Bill,
}

impl Sides {
    /// Cost of the policy over that of the log, less one ([`Cost::change_to`]); none without cost.
    pub fn change(&self) -> Option<f64> {
        self.baseline.cost.change_to(&self.policy.cost)
    }

    /// The same in input-equivalent tokens.
    pub fn iet_change(&self) -> Option<f64> {
        self.baseline.cost.units_change_to(&self.policy.cost)
    }
}

impl Outcome {
    /// Models with tokens that have no price on either side, and how many.
    pub fn unpriced(&self) -> impl Iterator<Item = (&str, u64)> {
        let tokens = |sides: &Sides| sides.policy.cost.unpriced_tokens.max(sides.baseline.cost.unpriced_tokens);
        let models = self.by.get("model").into_iter().flatten();
        models.map(move |(model, sides)| (model.as_str(), tokens(sides))).filter(|(_, tokens)| *tokens > 0)
    }
}

/// Extra calls of one cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct ExtraCalls {
    /// How many.
    pub calls: u64,
    /// What they come to.
    pub bill: Bill,
}

/// How the change of cost is spread over sessions, in shares of the session's own cost.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Spread {
    /// Sessions with cost.
    pub sessions: u64,
    /// Sessions that would have cost more.
    pub worse: u64,
    /// 5th percentile.
    pub p5: f64,
    /// 25th.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// 75th.
    pub p75: f64,
    /// 95th.
    pub p95: f64,
    /// Smallest: the session that gains most.
    pub best: f64,
    /// Largest.
    pub worst: f64,
}

/// Everything that holds for any policy.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Outcome {
    /// All requests.
    pub total: Sides,
    /// Tokens that contexts had fewer of, over all requests; negative if they grew.
    pub tokens_removed: i128,
    /// Calls besides those of the log, by cause.
    pub extra: BTreeMap<&'static str, ExtraCalls>,
    /// By what it was: `model`, `ttl_class`, `version`, `project`, `session`.
    pub by: BTreeMap<&'static str, BTreeMap<String, Sides>>,
    /// Over sessions.
    pub spread: Spread,
}
