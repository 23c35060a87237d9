//! What a policy comes to against the simulated log: saved, paid for, broken; the same for every policy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use crate::base::names::Sym;
use crate::base::sums::adds_up;
use crate::whatif::sim::cost::{Cost, Spent};

/// A part of a whole, or a sum over so many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
pub struct Portion {
    /// The part, or the sum.
    pub k: u64,
    /// The whole, or how many were added up.
    pub n: u64,
}

adds_up!(Portion: k, n);

impl Portion {
    /// k divided by n; 0 of nothing.
    pub fn value(self) -> f64 {
        if self.n == 0 { 0.0 } else { self.k as f64 / self.n as f64 }
    }

    /// k divided by n; none of nothing.
    pub fn share(self) -> Option<f64> {
        (self.n > 0).then(|| self.value())
    }

    /// Adds one case.
    pub fn count(&mut self, is_hit: bool) {
        self.k += u64::from(is_hit);
        self.n += 1;
    }

    /// Adds parts and wholes.
    pub fn add(&mut self, k: u64, n: u64) {
        self.k += k;
        self.n += n;
    }
}

/// How far a figure is off, beside the whole that this is a share of; as JSON the share.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Deviation {
    /// By how much; below 0 the figure is too small.
    pub off: f64,
    pub whole: f64,
}

impl Deviation {
    /// As a share; none of nothing.
    pub fn share(self) -> Option<f64> {
        (self.whole > 0.0).then(|| self.off / self.whole)
    }

    /// How large that share is, whichever way. Of nothing whatever is off is infinitely much.
    pub fn size(self) -> f64 {
        if self.off == 0.0 { 0.0 } else { (self.off / self.whole).abs() }
    }
}

impl Serialize for Deviation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.share().serialize(serializer)
    }
}

/// Tokens and cost of all requests.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct RunBill {
    /// Tokens by how they are billed.
    pub spent: Spent,
    pub cost: Cost,
}

adds_up!(RunBill: spent, cost);

/// Both sides of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Sides {
    pub requests: u64,
    /// Of these, requests without a price on one side or the other: their dollars count on neither.
    pub unpriced_requests: u64,
    /// The simulated log, with the calls that keep its cache alive where the same holds of the policy.
    pub baseline: RunBill,
    /// The policy, its extra calls included.
    pub policy: RunBill,
}

adds_up!(Sides: requests, unpriced_requests, baseline, policy);

impl Sides {
    /// Cost of the policy over that of the log, less one ([`Cost::change_to`]); none without cost.
    pub fn change(&self) -> Option<f64> {
        self.baseline.cost.change_to(&self.policy.cost)
    }

    /// Tokens without a price, of the side that has more of them.
    pub fn unpriced_tokens(&self) -> u64 {
        self.policy.cost.unpriced_tokens.max(self.baseline.cost.unpriced_tokens)
    }

    /// The same in input-equivalent tokens.
    pub fn iet_change(&self) -> Option<f64> {
        self.baseline.cost.units_change_to(&self.policy.cost)
    }
}

/// Who is better, if the difference is more than the model's own error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum CostVerdict {
    /// The policy costs less than the log.
    Cheaper,
    #[serde(rename = "more expensive")]
    #[strum(serialize = "more expensive")]
    MoreExpensive,
    /// The difference is within what the simulation itself is off.
    #[serde(rename = "no clear winner")]
    #[strum(serialize = "no clear winner")]
    NoClearWinner,
}

impl Outcome {
    /// Models that have tokens without a price, with both sides of what they did.
    pub fn unpriced(&self) -> impl Iterator<Item = (&str, &Sides)> {
        let models = self.by.get("model").into_iter().flatten();
        models.map(|(model, sides)| (model.as_str(), sides)).filter(|(_, sides)| sides.unpriced_tokens() > 0)
    }
}

/// Calls that are in no log: extra ones of a policy, or estimated ones.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct UnloggedCalls {
    pub calls: u64,
    /// Their tokens.
    pub spent: Spent,
    pub cost: Cost,
}

adds_up!(UnloggedCalls: calls, spent, cost);

/// How the change of cost is spread over sessions, in shares of the session's own cost.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Spread {
    /// Sessions with cost.
    pub sessions: u64,
    /// Sessions that would have cost more.
    pub worse: u64,
    /// 5th percentile.
    pub p5: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p95: f64,
    /// Smallest: the session that gains most.
    pub best: f64,
    pub worst: f64,
}

/// Everything that holds for any policy.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Outcome {
    pub total: Sides,
    /// Tokens that contexts had fewer of, over all requests; negative if they grew.
    pub tokens_removed: i128,
    /// Calls besides those of the log, by cause.
    pub extra: BTreeMap<&'static str, UnloggedCalls>,
    /// By what it was: `model`, `ttl_class`, `version`, `project`, `session`.
    pub by: BTreeMap<&'static str, BTreeMap<String, Sides>>,
    /// By session (index into the timeline's) and model.
    #[serde(skip)]
    pub by_session: BTreeMap<(u32, Sym), Sides>,
    /// Over sessions.
    pub spread: Spread,
}
