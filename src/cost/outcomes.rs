//! How calls ended: whether they failed, were made once more, or brought what was there already.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use crate::base::id::{Id, IdSet};
use crate::base::names::Sym;
use crate::logs::timeline::requests::{BlockKind, NONE, Segment, SegmentCause, Timeline, ToolCall};

/// Calls with an error for a result: failed, refused, or cancelled with one beside them.
pub const FAILED: &str = "(calls that failed, were refused or cancelled)";
/// Calls that were made once more in the request after, and worked.
pub const AGAIN: &str = "(the same tool again, right after it failed)";
/// Readings whose text was in the context.
pub const READ_AGAIN: &str = "(files read again, though nothing had changed)";
const OTHER: &str = "(other calls)";

/// The tool that reads files.
const READ: &str = "Read";
/// Tools that name files and change none.
const LOOKING: [&str; 4] = [READ, "Grep", "Glob", "LS"];

/// By call, in the order of [`Timeline::calls`]. A call is made once more if the request before asked for the same tool, and
/// file if it names one, and that failed; no more of them than failed.
pub fn outcomes(timeline: &Timeline) -> Vec<&'static str> {
    let asked = |call: &ToolCall| timeline.request_of_block(call.asked);
    let mut failed: HashMap<(u32, Sym, u32), u32> = HashMap::new();
    for call in timeline.calls.iter().filter(|call| call.is_error) {
        *failed.entry((asked(call), call.tool, call.path)).or_default() += 1;
    }
    let read_again = read_again(timeline);
    let chain = |request: u32| timeline.request(request).chain;
    let outcome = |(index, call): (u32, &ToolCall)| {
        let request = asked(call);
        let before = request.checked_sub(1).filter(|&before| chain(before) == chain(request));
        let before = before.filter(|_| !call.is_error && call.answered != NONE);
        let left = before.and_then(|before| failed.get_mut(&(before, call.tool, call.path))).filter(|left| **left > 0);
        match left {
            _ if call.is_error => FAILED,
            Some(left) => {
                *left -= 1;
                AGAIN
            }
            None if read_again.contains(&index) => READ_AGAIN,
            None => OTHER,
        }
    };
    (0..).zip(&timeline.calls).map(outcome).collect()
}

/// A text of a file that the context has.
struct Shown {
    /// The request that it came with.
    request: u32,
    /// The call that brought it.
    call: Id,
}

/// Texts in the context, by file.
type ShownTexts = HashMap<u32, HashMap<u32, Shown>>;

/// Readings of a file of which the same context has the very same text, and that nothing named in between but what only
/// looks at files.
fn read_again(timeline: &Timeline) -> HashSet<u32> {
    let Some(read) = timeline.names.find(READ) else { return HashSet::new() };
    let looking = LOOKING.map(|name| timeline.names.find(name));
    let cleared = cleared(timeline);
    let mut again = HashSet::new();
    let mut shown = ShownTexts::new();
    let mut segment = NONE;
    for (index, request) in (0..).zip(&timeline.requests) {
        if request.segment != segment {
            segment = request.segment;
            go_back(timeline, &timeline.segments[segment as usize], &mut shown);
        }
        let results = &timeline.blocks[request.inputs.start as usize..request.inputs.end as usize];
        for block in results.iter().filter(|block| block.kind == BlockKind::ToolResult) {
            let Some(call) = timeline.calls.get(block.call as usize).filter(|call| call.path != NONE) else {
                continue;
            };
            if !looking.contains(&Some(call.tool)) {
                shown.remove(&call.path);
            } else if call.tool == read && !call.is_error && call.text != NONE {
                if let Entry::Vacant(place) = shown.entry(call.path).or_default().entry(call.text) {
                    place.insert(Shown { request: index, call: call.id });
                } else {
                    again.insert(block.call);
                }
            }
        }
        // What came with the request itself may have been cleared as well.
        if let Some(cleared) = cleared.get(&index) {
            keep(&mut shown, |text| !cleared.contains(&text.call));
        }
    }
    again
}

/// What a context that goes back to an earlier request of its chain still has; nothing of any other that begins anew.
fn go_back(timeline: &Timeline, segment: &Segment, shown: &mut ShownTexts) {
    let goes_back = segment.cause == SegmentCause::Rewind && segment.after != NONE;
    if !goes_back || timeline.request(segment.after).chain != segment.chain {
        return shown.clear();
    }
    keep(shown, |text| text.request <= segment.after);
}

/// Takes all texts out of the context but some.
fn keep(shown: &mut ShownTexts, is_kept: impl Fn(&Shown) -> bool) {
    shown.retain(|_, texts| {
        texts.retain(|_, text| is_kept(text));
        !texts.is_empty()
    });
}

/// The calls whose results were cleared before a request.
fn cleared(timeline: &Timeline) -> HashMap<u32, IdSet<Id>> {
    let mut cleared: HashMap<u32, IdSet<Id>> = HashMap::new();
    for clearing in &timeline.clearings {
        cleared.entry(clearing.request).or_default().extend(&clearing.calls);
    }
    cleared
}
