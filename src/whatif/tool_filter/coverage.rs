//! What a fixed list covers, with and without the tools of the last turns: the figures by which a list is judged, from
//! names alone.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::logs::timeline::requests::Timeline;
use crate::logs::trace::Place;
pub use crate::whatif::tool_filter::result::ALL_TURNS;
use crate::whatif::tool_filter::result::{Coverage, RecencyCoverage};
use crate::whatif::tools::ToolSet;
use crate::whatif::tools::inventory::Inventory;
use crate::whatif::tools::queries::turns;

/// The figures for main threads: what a person's turns used. `recency_turns` are looked back on, and all.
pub fn coverage(timeline: &Timeline, inventory: &Inventory, always: &ToolSet, recency_turns: &[u32]) -> Coverage {
    let mut found = Coverage::default();
    let mut tools = ToolSet::new();
    for (number, chain) in (0u32..).zip(&timeline.chains) {
        if chain.place != Place::Main {
            continue;
        }
        let turns = turns(timeline, number);
        for turn in &turns {
            let used = inventory.uses_of(turn.clone()).map(|used| used.tool).collect::<Vec<_>>();
            tools.extend(&used);
            used.iter().for_each(|tool| found.calls.count(always.contains(tool)));
            if !used.is_empty() {
                found.turns.count(used.iter().all(|tool| always.contains(tool)));
            }
        }
        for &back in recency_turns.iter().chain([&ALL_TURNS]) {
            recent(inventory, always, &turns, back, found.recency.entry(back).or_default());
        }
    }
    let calls = found.calls.n;
    found.recency.values_mut().for_each(|recency| recency.misses.n = calls);
    found.tools = tools.len() as u64;
    found
}

/// Misses where the list and the tools of the last `back` turns are shown.
fn recent(inventory: &Inventory, always: &ToolSet, turns: &[Range<u32>], back: u32, sums: &mut RecencyCoverage) {
    // The turn in which each tool was last used.
    let mut last = BTreeMap::<u32, usize>::new();
    for (number, turn) in turns.iter().enumerate() {
        let used = inventory.uses_of(turn.clone()).map(|used| used.tool).collect::<ToolSet>();
        let is_recent = |tool: &u32| last.get(tool).is_some_and(|at| number - at <= back as usize);
        let missed = used.iter().filter(|tool| !always.contains(tool) && !is_recent(tool)).count() as u64;
        if !used.is_empty() {
            sums.turns_missed.count(missed > 0);
            sums.misses.add(missed, 0);
        }
        last.extend(used.into_iter().map(|tool| (tool, number)));
    }
}
