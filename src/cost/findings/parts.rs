//! Parts of contexts that need not be there, by what they cost from the moment they came in.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::names::Sym;
use crate::cost::findings::misses::less;
use crate::cost::findings::sheet::{Part, PartOf};
use crate::cost::findings::{Basis, Case, Evidence};
use crate::cost::groups::requests_of_blocks;
use crate::cost::shares;
use crate::cost::shares::Thing;
use crate::logs::timeline::requests::{NONE, Timeline};
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::figures::{Bill, Sides};

/// A case for each kind of part.
pub fn cases(evidence: &Evidence<'_>) -> Vec<Case> {
    evidence.sheet.part.iter().filter_map(|part| case(evidence, part)).collect()
}

fn case(evidence: &Evidence<'_>, part: &Part) -> Option<Case> {
    let timeline = &evidence.world.timeline;
    let requests = requests_of_blocks(timeline);
    let calls = timeline.calls.iter().filter(|call| match part.of {
        PartOf::FailedCalls => call.is_error,
    });
    let counts =
        evidence.counts(calls.filter_map(|call| requests.get(call.asked as usize).copied()).filter(|at| *at != NONE));
    let command = match part.of {
        PartOf::FailedCalls => ["cost", "--by", "outcome"],
    };
    (!counts.is_empty()).then(|| Case {
        id: part.id.clone(),
        what: part.what.clone(),
        advice: part.advice.clone(),
        advice_in: BTreeMap::new(),
        evidence: command.map(str::to_owned).to_vec(),
        basis: Basis::Shared,
        counts,
        breaks: None,
        unless: None,
        is_actionable: true,
        sides: sides(evidence, part.of),
    })
}

/// Whether a block is one of these.
fn is_part(timeline: &Timeline, block: u32, of: PartOf) -> bool {
    let call = timeline.blocks[block as usize].call;
    match of {
        PartOf::FailedCalls => timeline.calls.get(call as usize).is_some_and(|call| call.is_error),
    }
}

/// The whole bill, and the bill without these parts, by session and model.
fn sides(evidence: &Evidence<'_>, of: PartOf) -> BTreeMap<(u32, Sym), Sides> {
    let (bill, timeline) = (evidence.bill(), &evidence.world.timeline);
    let mut sums: BTreeMap<(u32, Sym), Sides> = BTreeMap::new();
    for (index, request) in (0..).zip(&timeline.requests) {
        let charge = bill.charge(request);
        let one = Bill { spent: charge.spent, cost: charge.cost };
        let unpriced = u64::from(one.cost.unpriced_tokens > 0);
        let sides = Sides { requests: 1, unpriced_requests: unpriced, baseline: one, policy: one };
        sums.entry(evidence.key(index)).or_default().join(&sides);
    }
    let chains = 0..timeline.chains.len() as u32;
    let of_chain = |chain: u32| {
        let mut costs: BTreeMap<(u32, Sym), Cost> = BTreeMap::new();
        shares::of_chain(&bill, chain, &mut |share| {
            if matches!(share.thing, Thing::Block(block) if is_part(timeline, block, of)) {
                *costs.entry(evidence.key(share.request)).or_default() += share.cost;
            }
        });
        costs
    };
    let all: Vec<_> = chains.into_par_iter().map(of_chain).collect();
    for (key, cost) in all.into_iter().flatten() {
        if let Some(sides) = sums.get_mut(&key) {
            sides.policy.cost = less(sides.policy.cost, cost);
        }
    }
    sums
}
