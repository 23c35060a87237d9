//! How calls ended: whether they failed, were made once more, or brought what was there already.

use std::collections::{HashMap, HashSet};

use crate::base::id::Id;
use crate::base::names::Sym;
use crate::cost::groups::requests_of_blocks;
use crate::logs::timeline::requests::{BlockKind, NONE, Timeline, ToolCall};

/// Calls with an error for a result: failed, refused, or cancelled with one beside them.
pub const FAILED: &str = "(calls that failed or were refused)";
/// Calls that were made once more in the request after, and worked.
pub const AGAIN: &str = "(the same tool again, right after it failed)";
/// Readings whose text was in the context.
pub const READ_AGAIN: &str = "(files read again, though nothing had changed)";
const OTHER: &str = "(other calls)";

/// The tool that reads files.
const READ: &str = "Read";

/// By call, in the order of [`Timeline::calls`]. A call is made once more if the request before asked for the same tool, and
/// file if it names one, and that failed.
pub fn outcomes(timeline: &Timeline) -> Vec<&'static str> {
    let requests = requests_of_blocks(timeline);
    let asked = |call: &ToolCall| requests.get(call.asked as usize).copied().unwrap_or(NONE);
    let failed: HashSet<(u32, Sym, Id)> = timeline
        .calls
        .iter()
        .filter(|call| call.is_error && asked(call) != NONE)
        .map(|call| (asked(call), call.tool, call.path))
        .collect();
    let read_again = read_again(timeline);
    let chain = |request: u32| timeline.requests.get(request as usize).map(|request| request.chain);
    let outcome = |(index, call): (u32, &ToolCall)| {
        let request = asked(call);
        let before = request.checked_sub(1).filter(|&before| request != NONE && chain(before) == chain(request));
        let again = before.is_some_and(|before| failed.contains(&(before, call.tool, call.path)));
        match (call.is_error, again) {
            (true, _) => FAILED,
            (false, true) => AGAIN,
            (false, false) if read_again.contains(&index) => READ_AGAIN,
            (false, false) => OTHER,
        }
    };
    (0..).zip(&timeline.calls).map(outcome).collect()
}

/// Readings of a file of which the same context has the very same text, and that nothing named in between but readings.
fn read_again(timeline: &Timeline) -> HashSet<u32> {
    let Some(read) = timeline.names.find(READ) else { return HashSet::new() };
    let mut again = HashSet::new();
    let mut seen: HashMap<Id, HashSet<Id>> = HashMap::new();
    let mut segment = NONE;
    for request in &timeline.requests {
        if request.segment != segment {
            seen.clear();
            segment = request.segment;
        }
        let results = &timeline.blocks[request.inputs.start as usize..request.inputs.end as usize];
        for block in results.iter().filter(|block| block.kind == BlockKind::ToolResult) {
            let Some(call) = timeline.calls.get(block.call as usize).filter(|call| call.path.is_some()) else {
                continue;
            };
            if call.tool != read {
                seen.remove(&call.path);
            } else if !call.is_error && call.text.is_some() && !seen.entry(call.path).or_default().insert(call.text) {
                again.insert(block.call);
            }
        }
    }
    again
}
