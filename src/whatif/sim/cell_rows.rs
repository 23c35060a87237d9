//! Parts of the logs in which a policy is looked at by itself.

use serde::Serialize;

use crate::whatif::prompt_cache::outcome::Verdict;

/// What a policy comes to in one part of the logs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// What the part is by: `project`, `model`, `context`.
    pub by: &'static str,
    /// Which one: a pseudonym, a model, a range of tokens.
    pub name: String,
    /// Sessions in it.
    pub sessions: u64,
    /// Requests in it.
    pub requests: u64,
    /// Cost of the policy over that of the log, less one.
    pub change: f64,
    /// Whether that is of money; else of input-equivalent tokens, because nothing in this part has a price.
    pub in_money: bool,
    /// Lower end of its 95 % interval over sessions; none where there are too few of them.
    pub lower: Option<f64>,
    /// Upper end.
    pub upper: Option<f64>,
    /// What the simulation is off the bill in this part, as a share.
    pub off_bill: f64,
    /// Chance of a change as large if it were no more than the least that counts; 1 where there are too few sessions.
    pub p: f64,
    /// Smallest false discovery rate at which it is a discovery, over all parts that were looked at.
    pub q: f64,
    /// What follows.
    pub verdict: Verdict,
}
