//! Cache misses by cause, as the bill shows them.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::cost::findings::thresholds::Miss;
use crate::cost::findings::{BillEvidence, Case, FindingBasis};
use crate::whatif::prompt_cache::causes;
use crate::whatif::prompt_cache::causes::Loss;
use crate::whatif::sim::bill;
use crate::whatif::sim::figures::Sides;

/// A case for each cause that the sheet has words for.
pub fn cases(evidence: &BillEvidence<'_>) -> Vec<Case> {
    let losses = causes::losses(evidence.simulator);
    let (class_unknown, tariff) = (evidence.simulator.oracle.cache.class_unknown, &evidence.simulator.tariff);
    let billed = evidence.charged(|request| {
        let spent = bill::spent(request, class_unknown);
        (request.context() > 0).then(|| (spent, tariff.cost(request.model, request.start, &spent)))
    });
    evidence.sheet.miss.iter().filter_map(|miss| case(evidence, miss, &losses, &billed)).collect()
}

fn case(
    evidence: &BillEvidence<'_>,
    miss: &Miss,
    losses: &[Loss],
    billed: &BTreeMap<(u32, Sym), Sides>,
) -> Option<Case> {
    let of_cause = || losses.iter().filter(|loss| loss.cause == miss.cause);
    let counts = evidence.counts(of_cause().map(|loss| loss.request));
    let mut sides = billed.clone();
    for loss in of_cause() {
        let cost = &mut sides.get_mut(&evidence.key(loss.request))?.policy.cost;
        *cost = cost.less(&loss.cost_lost);
    }
    (!counts.is_empty()).then(|| Case {
        id: format!("miss_{}", miss.id.as_deref().unwrap_or(miss.cause.into_str())),
        what: miss.what.clone(),
        advice: miss.advice.clone().into(),
        counts,
        unless: miss.unless.clone(),
        is_actionable: miss.is_habit,
        sides,
        ..Case::of(FindingBasis::Billed, &["what-if", "prompt-cache"])
    })
}
