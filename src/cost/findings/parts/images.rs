//! Images and documents: in prompts, and in results of tools.

use std::collections::BTreeMap;

use crate::cost::findings::BillEvidence;
use crate::cost::findings::carried::{CarriedCosts, PartItem};
use crate::cost::findings::parts::Parts;
use crate::cost::groups::requests_of_blocks;
use crate::logs::timeline::requests::{Block, BlockKind, NONE, Timeline};

/// All of them, by the tool that brought them.
pub fn parts(evidence: &BillEvidence<'_>, carried: &mut CarriedCosts<'_>) -> Vec<Parts> {
    let timeline = &evidence.workload.timeline;
    let requests = requests_of_blocks(timeline);
    let mut items: BTreeMap<String, PartItem> = BTreeMap::new();
    for (index, block) in (0..).zip(&timeline.blocks) {
        let (count, request) = (images(block), requests[index as usize]);
        if count == 0 || request == NONE {
            continue;
        }
        let name = source(timeline, block);
        let item = items.entry(name.clone()).or_insert_with(|| carried.item(vec![name]));
        if timeline.request(request).counts() {
            *item.counts.entry(evidence.key(request)).or_default() += count;
        }
        carried.block(item.item, index, share(evidence, block));
    }
    let sheet = &evidence.sheet.images;
    vec![Parts::of([&sheet.id, &sheet.what, &sheet.advice], "content", &["tool"], items.into_values())]
}

/// How many a block holds.
fn images(block: &Block) -> u64 {
    if block.kind == BlockKind::Media { 1 } else { block.media.into() }
}

/// What of a block they are: in a result they stand beside its text.
fn share(evidence: &BillEvidence<'_>, block: &Block) -> f64 {
    let rules = &evidence.workload.sizes.rules;
    if block.kind == BlockKind::Media {
        return 1.0;
    }
    rules.framing.media * f64::from(block.media) / rules.estimate(block)
}

fn source(timeline: &Timeline, block: &Block) -> String {
    let tool = timeline.calls.get(block.call as usize).map(|call| timeline.names.text(call.tool).to_owned());
    tool.unwrap_or_else(|| "(in prompts)".to_owned())
}
