//! Parts of contexts that need not be there, by what they cost from the moment they came in.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::names::Sym;
use crate::cost::findings::misses::less;
use crate::cost::findings::made::MadeOf;
use crate::cost::findings::sheet::{Part, PartOf};
use crate::cost::findings::{Basis, Case, Evidence};
use crate::cost::groups::requests_of_blocks;
use crate::cost::outcomes::outcomes;
use crate::cost::shares;
use crate::cost::shares::Thing;
use crate::logs::timeline::requests::{NONE, Timeline};
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::figures::{Bill, Sides};

/// A case for each kind of part.
pub fn cases(evidence: &Evidence<'_>) -> Vec<Case> {
    let timeline = &evidence.world.timeline;
    let (outcomes, requests) = (outcomes(timeline), requests_of_blocks(timeline));
    evidence.sheet.part.iter().filter_map(|part| case(evidence, part, &outcomes, &requests)).collect()
}

fn case(evidence: &Evidence<'_>, part: &Part, outcomes: &[&str], requests: &[u32]) -> Option<Case> {
    let timeline = &evidence.world.timeline;
    let calls = timeline.calls.iter().zip(outcomes).filter(|(_, outcome)| **outcome == part.of.outcome());
    let asked = calls.filter_map(|(call, _)| requests.get(call.asked as usize).copied());
    let counts = evidence.counts(asked.filter(|at| *at != NONE));
    (!counts.is_empty()).then(|| Case {
        id: part.id.clone(),
        what: part.what.clone(),
        advice: part.advice.clone(),
        advice_in: BTreeMap::new(),
        source: ["cost", "--by", "outcome"].map(str::to_owned).to_vec(),
        basis: Basis::Shared,
        counts,
        breaks: None,
        unless: None,
        is_actionable: true,
        sides: sides(evidence, part.of, outcomes),
        made_of: MadeOf::default(),
    })
}

/// Whether a block is one of these.
fn is_part(timeline: &Timeline, block: u32, of: PartOf, outcomes: &[&str]) -> bool {
    outcomes.get(timeline.blocks[block as usize].call as usize) == Some(&of.outcome())
}

/// The whole bill, and the bill without these parts, by session and model.
fn sides(evidence: &Evidence<'_>, of: PartOf, outcomes: &[&str]) -> BTreeMap<(u32, Sym), Sides> {
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
            if matches!(share.thing, Thing::Block(block) if is_part(timeline, block, of, outcomes)) {
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
