//! Calls that failed, and readings of what was there already.

use crate::cost::findings::BillEvidence;
use crate::cost::findings::carried::CarriedCosts;
use crate::cost::findings::parts::Parts;
use crate::cost::findings::thresholds::ContextPart;
use crate::cost::groups::requests_of_blocks;
use crate::cost::outcomes::outcomes;
use crate::logs::timeline::requests::NONE;

/// Those that the sheet names, by how their calls ended.
pub fn parts(evidence: &BillEvidence<'_>, carried: &mut CarriedCosts<'_>) -> Vec<Parts> {
    let timeline = &evidence.workload.timeline;
    let (outcomes, requests) = (outcomes(timeline), requests_of_blocks(timeline));
    let mut of = |part: &ContextPart| {
        let mut item = carried.item(Vec::new());
        let is_part = |call: u32| outcomes.get(call as usize) == Some(&part.of.outcome());
        let blocks = (0..).zip(&timeline.blocks).filter(|(_, block)| is_part(block.call));
        blocks.for_each(|(block, _)| carried.block(item.item, block, 1.0));
        let calls = timeline.counted_calls().filter(|(call, _)| is_part(*call));
        let asked = calls.filter_map(|(_, call)| requests.get(call.asked as usize).copied());
        item.counts = evidence.counts(asked.filter(|at| *at != NONE));
        Parts::of([&part.id, &part.what, &part.advice], "outcome", &[], [item])
    };
    evidence.sheet.part.iter().map(&mut of).collect()
}
