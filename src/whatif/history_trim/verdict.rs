//! Whether trimming paid.

use crate::whatif::history_trim::outcome::{Sides, Verdict};
use crate::whatif::history_trim::sheet::ReportNumbers;
use crate::whatif::sim::cost::Cost;

impl ReportNumbers {
    /// Holds the cost with the policy against that without, both by the same simulation. They are compared as
    /// in every report ([`Cost::beside`]); `error` is what that simulation is off the bill, as a share.
    pub fn sides(&self, (baseline, policy): (Cost, Cost), error: f64) -> Sides {
        let (before, after) = baseline.beside(&policy);
        let margin_permille = self.margin_permille.max((1_000.0 * error.abs()).ceil() as u32);
        Sides { baseline, policy, verdict: verdict(before, after, margin_permille) }
    }
}

/// What a difference of costs says: nothing unless it is at least so many thousandths of the baseline.
pub fn verdict(baseline: u128, policy: u128, margin_permille: u32) -> Verdict {
    let difference = baseline.abs_diff(policy);
    if difference == 0 || difference * 1000 < baseline * u128::from(margin_permille) {
        Verdict::NoClearWinner
    } else if policy < baseline {
        Verdict::Cheaper
    } else {
        Verdict::Dearer
    }
}
