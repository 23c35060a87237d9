//! Cache misses by cause, as the bill shows them.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::cost::findings::levers::Assignment;
use crate::cost::findings::thresholds::{Miss, ThreadKind};
use crate::cost::findings::{BillEvidence, Case, FindingBasis};
use crate::logs::trace::Place;
use crate::settings::claude::levers::numbers;
use crate::whatif::prompt_cache::causes;
use crate::whatif::prompt_cache::causes::Loss;
use crate::whatif::prompt_cache::params::CacheLifetime;
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
        *cost = cost.less(&loss.sum.cost_lost);
    }
    let of_subagents = !of_cause().any(|loss| is_of(evidence, loss, ThreadKind::Main));
    (!counts.is_empty()).then(|| Case {
        id: format!("miss_{}", miss.id.as_deref().unwrap_or(miss.cause.into_str())),
        what: miss.what.clone(),
        advice: advice(evidence, miss).clone().into(),
        counts,
        unless: miss
            .unless
            .iter()
            .chain(of_subagents.then_some(&miss.unless_of_subagents).into_iter().flatten())
            .cloned()
            .collect(),
        spared_by: spared_by(evidence, miss, of_cause()),
        is_actionable: miss.is_habit,
        sides,
        ..Case::of(FindingBasis::Billed, &["what-if", "prompt-cache"])
    })
}

/// What to do; where all clients in use have the repairs, that they have them.
fn advice<'m>(evidence: &BillEvidence<'_>, miss: &'m Miss) -> &'m String {
    let Some(repaired) = miss.repaired_in.as_deref().and_then(numbers) else { return &miss.advice };
    let mut clients = evidence.study.versions.keys().peekable();
    let is_new = |client: &String| numbers(client).is_some_and(|client| client >= repaired);
    if clients.peek().is_some() && clients.all(is_new) { &miss.repaired } else { &miss.advice }
}

/// Whether a loss happened to a thread of this kind.
fn is_of(evidence: &BillEvidence<'_>, loss: &Loss, of: ThreadKind) -> bool {
    let timeline = &evidence.workload.timeline;
    (timeline.chain(timeline.request(loss.request).chain).place == Place::Main) == (of == ThreadKind::Main)
}

/// The lifetimes of an hour that spare such losses where they are set; nothing if what they do not spare is enough for a finding.
fn spared_by<'l>(
    evidence: &BillEvidence<'_>,
    miss: &Miss,
    losses: impl Iterator<Item = &'l Loss> + Clone,
) -> Vec<Assignment> {
    let priors = &evidence.simulator.priors;
    // What was written for an hour expires behind it.
    let is_spared = |loss: &&Loss| priors[loss.request as usize].idle <= CacheLifetime::Hour.millis();
    let left = losses.clone().filter(|loss| !is_spared(loss)).map(|loss| loss.sum.cost_lost.nano_usd as f64 / 1e9);
    if left.sum::<f64>() >= evidence.sheet.share_min * evidence.billed_usd {
        return Vec::new();
    }
    let spares = miss.spared_by.iter().filter(|longer| losses.clone().any(|loss| is_of(evidence, loss, longer.of)));
    let levers = spares.filter_map(|longer| evidence.owned(&longer.rule).first().copied());
    levers.map(|lever| Assignment { lever: lever.name.clone(), value: CacheLifetime::Hour.into_str().into() }).collect()
}
