//! The contexts that the log says were sent, laid out as items.
//!
//! A segment begins with nothing but the static prefix, or with the context and answer of an earlier request (a rewind, a
//! fork, a shrunk context without what went). Each request then adds: what the model answered before, the residual, what
//! came in.

use crate::logs::timeline::requests::{NONE, Timeline};
use crate::whatif::sim::sizes::BlockSizes;
use crate::whatif::sim::view::{Item, ItemKey, tokens};

/// Adds the messages of a request's context.
pub fn lay(timeline: &Timeline, sizes: &BlockSizes, request: u32, items: &mut Vec<Item>) {
    let segment = &timeline.segments[timeline.requests[request as usize].segment as usize];
    for index in segment.requests.start..=request {
        step(timeline, sizes, index, items);
    }
}

/// From the context of the request before in the chain to that of this one. Returns how many leading items stayed.
pub fn step(timeline: &Timeline, sizes: &BlockSizes, request: u32, items: &mut Vec<Item>) -> usize {
    let held = items.len();
    let kept = if opens(timeline, request) {
        let old = std::mem::take(items);
        let segment = &timeline.segments[timeline.requests[request as usize].segment as usize];
        base(timeline, sizes, segment.after, items);
        old.iter().zip(items.iter()).take_while(|(old, new)| old == new).count()
    } else {
        add_outputs(timeline, sizes, request - 1, items);
        held
    };
    let kept = kept.min(leave_out(sizes, request, items));
    add_inputs(timeline, sizes, request, items);
    kept
}

/// By chain: tokens that no context of it exceeds, by whichever of two ways they are counted: all that stands in it, or what
/// was sent before and what has come since.
pub fn largest(timeline: &Timeline, sizes: &BlockSizes) -> Vec<u64> {
    let mut items = Vec::new();
    let mut of_chain = |chain: usize| {
        items.clear();
        let (mut most, mut before) = (0, 0);
        for request in timeline.chains[chain].requests.clone() {
            let held = items.len();
            step(timeline, sizes, request, &mut items);
            let now = match (opens(timeline, request), sizes.gone.contains_key(&request)) {
                (true, _) => tokens(&items),
                (false, false) => before + tokens(&items[held..]),
                // What came cannot be told from what stayed.
                (false, true) => before + tokens(&items),
            };
            most = now.max(most);
            before = if sizes.gone.contains_key(&request) { tokens(&items) } else { now };
        }
        sizes.prefix[chain] + most
    };
    (0..timeline.chains.len()).map(&mut of_chain).collect()
}

/// What a context holds before it is known what went and what came with its request.
pub fn before(timeline: &Timeline, sizes: &BlockSizes, request: u32, items: &mut Vec<Item>) {
    let segment = &timeline.segments[timeline.requests[request as usize].segment as usize];
    if request == segment.requests.start {
        base(timeline, sizes, segment.after, items);
    } else {
        lay(timeline, sizes, request - 1, items);
        add_outputs(timeline, sizes, request - 1, items);
    }
}

/// Whether a request opens a segment.
pub fn opens(timeline: &Timeline, request: u32) -> bool {
    timeline.segments[timeline.requests[request as usize].segment as usize].requests.start == request
}

fn base(timeline: &Timeline, sizes: &BlockSizes, after: u32, items: &mut Vec<Item>) {
    if after != NONE {
        lay(timeline, sizes, after, items);
        add_outputs(timeline, sizes, after, items);
    }
}

/// Takes out what went; returns how many items stand before the first of it.
fn leave_out(sizes: &BlockSizes, request: u32, items: &mut Vec<Item>) -> usize {
    let Some(gone) = sizes.gone.get(&request) else { return items.len() };
    let first = items.iter().position(|item| gone.first() == Some(&item.key)).unwrap_or(items.len());
    let mut gone = gone.iter().peekable();
    items.retain(|item| gone.next_if(|&&key| key == item.key).is_none());
    first
}

/// Adds what came with a request.
fn add_inputs(timeline: &Timeline, sizes: &BlockSizes, request: u32, items: &mut Vec<Item>) {
    let residual = sizes.residual[request as usize];
    if residual > 0 {
        items.push(Item { key: ItemKey::Residual(request), tokens: residual, kept_chars: 0 });
    }
    items.extend(timeline.requests[request as usize].inputs.clone().map(|block| item(timeline, &sizes.tokens, block)));
}

/// Adds what a request was answered.
fn add_outputs(timeline: &Timeline, sizes: &BlockSizes, request: u32, items: &mut Vec<Item>) {
    items.extend(timeline.requests[request as usize].outputs.clone().map(|block| item(timeline, &sizes.tokens, block)));
}

/// A block as the log has it. `tokens` are the sizes of [`Timeline::blocks`].
pub fn item(timeline: &Timeline, tokens: &[u32], block: u32) -> Item {
    Item {
        key: ItemKey::Block(block),
        tokens: tokens[block as usize],
        kept_chars: timeline.blocks[block as usize].chars,
    }
}
