//! Cache misses by cause, as the bill shows them.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::cost::findings::levers::{Assignment, Repair};
use crate::cost::findings::thresholds::{Miss, ThreadKind};
use crate::cost::findings::{Advice, BillEvidence, Case, FindingBasis, uncached};
use crate::whatif::prompt_cache::causes::Loss;
use crate::whatif::prompt_cache::params::CacheLifetime;
use crate::whatif::sim::figures::Sides;

/// A case for each cause that the sheet has words for. What threads lost that never read what they wrote is a case of its own.
pub fn cases(evidence: &BillEvidence<'_>) -> Vec<Case> {
    let losses = evidence.losses.iter().filter(|loss| !uncached::is_unread(evidence, loss));
    let losses: Vec<&Loss> = losses.collect();
    let billed = billed(evidence);
    evidence.thresholds.miss.iter().filter_map(|miss| case(evidence, miss, &losses, &billed)).collect()
}

/// What the input was billed, on both sides, by session and model.
pub fn billed(evidence: &BillEvidence<'_>) -> BTreeMap<(u32, Sym), Sides> {
    let simulator = evidence.simulator;
    evidence.charged(|request| {
        let spent = simulator.billed(request);
        (request.context() > 0).then(|| (spent, simulator.tariff.of(request, &spent)))
    })
}

/// A case of what was billed without some losses; none without any.
pub fn without<'l>(
    evidence: &BillEvidence<'_>,
    billed: &BTreeMap<(u32, Sym), Sides>,
    losses: impl Iterator<Item = &'l Loss> + Clone,
    case: Case,
) -> Option<Case> {
    let counts = evidence.counts(losses.clone().map(|loss| loss.request));
    let mut sides = billed.clone();
    for loss in losses {
        let cost = &mut sides.get_mut(&evidence.key(loss.request))?.policy.cost;
        *cost = cost.less(&loss.sum.cost_lost);
    }
    (!counts.is_empty()).then_some(Case { counts, sides, ..case })
}

fn case(
    evidence: &BillEvidence<'_>,
    miss: &Miss,
    losses: &[&Loss],
    billed: &BTreeMap<(u32, Sym), Sides>,
) -> Option<Case> {
    let is_of = |loss: &&Loss| miss.of.is_none_or(|kind| kind == thread_kind(evidence, loss));
    let of_cause = || losses.iter().copied().filter(|loss| loss.cause == miss.cause).filter(is_of);
    let case = Case {
        id: format!("miss_{}", miss.id.as_deref().unwrap_or(miss.cause.into_str())),
        what: miss.what.clone(),
        advice: Advice::Do(miss.advice.clone()),
        repair: miss.repaired_in.clone().map(|since| Repair { since, words: miss.repaired.clone() }),
        unless: miss.unless.clone(),
        spared_by: spared_by(evidence, miss, of_cause()),
        spared_of: miss.of,
        is_actionable: miss.is_habit,
        ..Case::of(FindingBasis::Billed, &["what-if", "prompt-cache", "--all"])
    };
    without(evidence, billed, of_cause(), case)
}

/// The kind of thread that a loss happened to.
fn thread_kind(evidence: &BillEvidence<'_>, loss: &Loss) -> ThreadKind {
    let timeline = &evidence.workload.timeline;
    ThreadKind::of(timeline.chain(timeline.request(loss.request).chain).place)
}

/// The lifetime of an hour that spares such losses where it is set; nothing if what it does not spare is enough for a finding.
fn spared_by<'l>(evidence: &BillEvidence<'_>, miss: &Miss, losses: impl Iterator<Item = &'l Loss>) -> Vec<Assignment> {
    let priors = &evidence.simulator.priors;
    // What was written for an hour expires behind it.
    let is_spared = |loss: &&Loss| priors[loss.request as usize].idle <= CacheLifetime::Hour.millis();
    let left = losses.filter(|loss| !is_spared(loss)).map(|loss| loss.sum.cost_lost.nano_usd as f64 / 1e9);
    if left.sum::<f64>() >= evidence.thresholds.share_min * evidence.billed_usd {
        return Vec::new();
    }
    let levers = miss.spared_by.iter().filter_map(|rule| evidence.owned(rule).first().copied());
    levers.map(|lever| Assignment { lever: lever.name.clone(), value: CacheLifetime::Hour.into_str().into() }).collect()
}
