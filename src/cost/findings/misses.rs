//! Cache misses by cause, as the bill shows them.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::cost::findings::sheet::Miss;
use crate::cost::findings::{Basis, Case, Evidence};
use crate::whatif::prompt_cache::causes;
use crate::whatif::prompt_cache::causes::Loss;
use crate::whatif::sim::bill;
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::figures::{Bill, Sides};

/// A case for each cause that the sheet has words for.
pub fn cases(evidence: &Evidence<'_>) -> Vec<Case> {
    let losses = causes::losses(evidence.ground);
    let billed = billed(evidence);
    evidence.sheet.miss.iter().filter_map(|miss| case(evidence, miss, &losses, &billed)).collect()
}

/// The bill by session and model, on both sides.
fn billed(evidence: &Evidence<'_>) -> BTreeMap<(u32, Sym), Sides> {
    let mut sums: BTreeMap<(u32, Sym), Sides> = BTreeMap::new();
    for (index, request) in (0..).zip(&evidence.world.timeline.requests).filter(|(_, one)| one.context() > 0) {
        let spent = bill::spent(request, evidence.ground.oracle.cache.class_unknown);
        let one = Bill { spent, cost: evidence.ground.tariff.cost(request.model, request.start, &spent) };
        let unpriced = u64::from(one.cost.unpriced_tokens > 0);
        let sides = Sides { requests: 1, unpriced_requests: unpriced, baseline: one, policy: one };
        *sums.entry(evidence.key(index)).or_default() += sides;
    }
    sums
}

fn case(evidence: &Evidence<'_>, miss: &Miss, losses: &[Loss], billed: &BTreeMap<(u32, Sym), Sides>) -> Option<Case> {
    let of_cause = || losses.iter().filter(|loss| loss.cause == miss.cause);
    let counts = evidence.counts(of_cause().map(|loss| loss.request));
    let mut sides = billed.clone();
    for loss in of_cause() {
        let cost = &mut sides.get_mut(&evidence.key(loss.request))?.policy.cost;
        *cost = less(*cost, loss.cost_lost);
    }
    (!counts.is_empty()).then(|| Case {
        id: format!("miss_{}", miss.id.as_deref().unwrap_or(miss.cause.word())),
        what: miss.what.clone(),
        advice: miss.advice.clone(),
        counts,
        unless: miss.unless.clone(),
        is_actionable: miss.is_habit,
        sides,
        ..Case::of(Basis::Billed, &["what-if", "prompt-cache"])
    })
}

/// A cost without a part of it.
pub fn less(cost: Cost, lost: Cost) -> Cost {
    Cost {
        nano_usd: cost.nano_usd.saturating_sub(lost.nano_usd),
        units: cost.units.saturating_sub(lost.units),
        unpriced_tokens: cost.unpriced_tokens,
    }
}
