//! How often a file is read that the chain has read before: after real compactions, and everywhere else.

use crate::base::stats::Share;
use crate::logs::timeline::requests::{NONE, Timeline};
use crate::whatif::compaction::outcome::Rereads;

use crate::whatif::sim::breakage::files::{Access, Files, calls_of};
use crate::whatif::sim::breakage::sheet::Sheet;

/// Counts the readings within the sheet's number of tool calls after each compaction, and the rest as the control.
pub fn rereads(timeline: &Timeline, files: &Files, sheet: &Sheet) -> Rereads {
    let mut found = Rereads::default();
    let mut is_after = vec![false; timeline.calls.len()];
    for (place, boundary) in timeline.boundaries.iter().enumerate() {
        let requests = &timeline.chains[boundary.chain as usize].requests;
        if boundary.request >= requests.end {
            continue; // nothing was asked after it
        }
        let next = timeline.boundaries[place + 1..].iter().filter(|later| later.chain == boundary.chain);
        let end = next.map(|later| later.request).filter(|&later| later > boundary.request).min();
        let calls = (boundary.request..end.unwrap_or(requests.end)).flat_map(|request| calls_of(timeline, request));
        let old = timeline.requests[boundary.request as usize].inputs.start;
        let mut again = 0;
        for call in calls.take(sheet.report.calls_after) {
            is_after[call] = true;
            if files.access(call) == Access::Read {
                found.reads += 1;
                let was_read = files.before(call).any(|earlier| {
                    files.access(earlier as usize) == Access::Read && timeline.calls[earlier as usize].asked < old
                });
                again += u64::from(was_read);
            }
        }
        found.compactions += 1;
        found.reads_again += again;
        found.compactions_with_one += u64::from(again > 0);
    }
    let elsewhere = (0..timeline.calls.len()).filter(|&call| !is_after[call] && files.access(call) == Access::Read);
    let (reads, again) =
        elsewhere.fold((0, 0), |(reads, again), call| (reads + 1, again + u64::from(files.reading(call) != NONE)));
    found.elsewhere = Share::new(again, reads);
    found
}
