//! Calls that failed, and readings of what was there already.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::cost::findings::BillEvidence;
use crate::cost::findings::carried::{CarriedCosts, PartItem};
use crate::cost::findings::parts::Parts;
use crate::cost::findings::thresholds::ContextPart;
use crate::cost::groups::requests_of_blocks;
use crate::cost::outcomes::outcomes;
use crate::logs::timeline::requests::NONE;

/// Those that the sheet names, by how their calls ended, each by the tool that was called.
pub fn parts(evidence: &BillEvidence<'_>, carried: &mut CarriedCosts<'_>) -> Vec<Parts> {
    let timeline = &evidence.workload.timeline;
    let (outcomes, requests) = (outcomes(timeline), requests_of_blocks(timeline));
    let mut of = |part: &ContextPart| {
        let mut items: BTreeMap<Sym, PartItem> = BTreeMap::new();
        let is_part = |call: u32| outcomes.get(call as usize) == Some(&part.of.outcome());
        for (index, block) in (0..).zip(&timeline.blocks).filter(|(_, block)| is_part(block.call)) {
            let tool = timeline.calls[block.call as usize].tool;
            let name = || vec![timeline.names.text(tool).to_owned()];
            let item = items.entry(tool).or_insert_with(|| carried.item(name()));
            carried.block(item.item, index, 1.0);
        }
        for (_, call) in timeline.counted_calls().filter(|(call, _)| is_part(*call)) {
            let request = requests.get(call.asked as usize).filter(|request| **request != NONE);
            if let Some((item, &request)) = items.get_mut(&call.tool).zip(request) {
                *item.counts.entry(evidence.key(request)).or_default() += 1;
            }
        }
        Parts::of([&part.id, &part.what, &part.advice], "outcome", &["tool"], items.into_values())
    };
    evidence.sheet.part.iter().map(&mut of).collect()
}
