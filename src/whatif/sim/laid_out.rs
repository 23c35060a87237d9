//! The contexts that the log says were sent, laid out as items. A segment begins with nothing but the static prefix, or with
//! the context and output of an earlier request (a rewind, a fork, a shrunk context without what went). Each request then adds
//! what the model wrote before, the residual, what came in.

use crate::logs::timeline::requests::{NONE, Timeline};
use crate::whatif::sim::sizes::BlockSizes;
use crate::whatif::sim::view::{Item, ItemKey, tokens};

/// Adds the messages of a request's context.
pub fn lay(timeline: &Timeline, sizes: &BlockSizes, request: u32, items: &mut Vec<Item>) {
    let mut spans = Vec::new();
    let mut last = request;
    while last != NONE {
        let segment = &timeline.segments[timeline.request(last).segment as usize];
        spans.push((segment.after, segment.requests.start..last + 1));
        last = segment.after;
    }
    for (mut before, span) in spans.into_iter().rev() {
        for index in span {
            if before != NONE {
                add_outputs(timeline, sizes, before, items);
            }
            complete(timeline, sizes, index, items);
            before = index;
        }
    }
}

/// From the context of the request before, also of another chain, or from nothing to that of this one. Returns how many leading
/// items stayed.
pub fn step(timeline: &Timeline, sizes: &BlockSizes, request: u32, items: &mut Vec<Item>) -> usize {
    let kept = before(timeline, sizes, request, items);
    kept.min(complete(timeline, sizes, request, items))
}

/// From the same to what the context of this one holds before it is known what went and what came with it. Returns how many
/// leading items stayed.
pub fn before(timeline: &Timeline, sizes: &BlockSizes, request: u32, items: &mut Vec<Item>) -> usize {
    let base = base(timeline, request);
    let held = items.len();
    if base == NONE {
        items.clear();
        return 0;
    }
    let is_own = || timeline.request(base).chain == timeline.request(request).chain;
    if base + 1 == request && (held > 0 || is_own()) {
        add_outputs(timeline, sizes, base, items);
        return held;
    }
    let last = request.checked_sub(1).filter(|_| held > 0);
    if let Some(kept) = last.and_then(|last| go_over(timeline, sizes, last, base, items)) {
        return kept;
    }
    // Before the first request there is nothing to compare with, and room for the context of the chain before.
    let old = items.clone();
    items.clear();
    lay(timeline, sizes, base, items);
    add_outputs(timeline, sizes, base, items);
    old.iter().zip(items.iter()).take_while(|(old, new)| old == new).count()
}

/// Takes out of that what went and adds what came with the request. Returns how many leading items stayed.
pub fn complete(timeline: &Timeline, sizes: &BlockSizes, request: u32, items: &mut Vec<Item>) -> usize {
    #[cfg(test)]
    crate::base::id::work::step();
    let kept = leave_out(sizes, request, items);
    add_inputs(timeline, sizes, request, items);
    kept
}

/// The request whose context and answer a request's begins with; none of one that begins with the static prefix.
fn base(timeline: &Timeline, request: u32) -> u32 {
    if !opens(timeline, request) {
        return request - 1;
    }
    timeline.segments[timeline.request(request).segment as usize].after
}

/// From the context of a request to that of another with its answer, by way of the last one that both went on from: what came
/// since is taken away, and what the other has is added. Returns how many leading items stayed. It cannot be done where
/// something went since, or where there is no such request, or where one went on from another that is still to come: then
/// nothing is changed.
fn go_over(timeline: &Timeline, sizes: &BlockSizes, mut from: u32, to: u32, items: &mut Vec<Item>) -> Option<usize> {
    let (mut common, mut ahead, mut since) = (to, Vec::new(), None);
    while from != common {
        #[cfg(test)]
        crate::base::id::work::step();
        let later = from.max(common);
        let earlier = Some(base(timeline, later)).filter(|&earlier| earlier < later)?;
        if later == common {
            ahead.push(common);
            common = earlier;
        } else if sizes.gone.contains_key(&from) {
            return None;
        } else {
            // Its answer stays if it went on from the common one itself.
            let answered = since.map_or(0, |since| since + timeline.request(from).outputs.len());
            let brought = timeline.request(from).inputs.len() + usize::from(sizes.residual[from as usize] > 0);
            since = Some(answered + brought);
            from = earlier;
        }
    }
    let mut kept = items.len().checked_sub(since.unwrap_or(0))?;
    items.truncate(kept);
    if since.is_none() {
        add_outputs(timeline, sizes, common, items);
    }
    for &request in ahead.iter().rev() {
        kept = kept.min(complete(timeline, sizes, request, items));
        add_outputs(timeline, sizes, request, items);
    }
    Some(kept)
}

/// By chain: tokens that no context of it exceeds, by whichever of two ways they are counted: all that stands in it, or what
/// was sent before and what has come since.
pub fn largest(timeline: &Timeline, sizes: &BlockSizes) -> Vec<u64> {
    let mut items = Vec::new();
    let mut of_chain = |chain: usize| {
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

/// Whether a request opens a segment.
pub fn opens(timeline: &Timeline, request: u32) -> bool {
    timeline.segments[timeline.request(request).segment as usize].requests.start == request
}

/// Takes out what went, which mostly is the newest; returns how many items stand before the first of it.
fn leave_out(sizes: &BlockSizes, request: u32, items: &mut Vec<Item>) -> usize {
    let Some(gone) = sizes.gone.get(&request) else { return items.len() };
    let Some(first) = items.iter().rposition(|item| gone.first() == Some(&item.key)) else { return items.len() };
    let mut gone = gone.iter().peekable();
    let rest = items.split_off(first);
    items.extend(rest.into_iter().filter(|item| gone.next_if(|&&key| key == item.key).is_none()));
    first
}

/// Adds what came with a request.
fn add_inputs(timeline: &Timeline, sizes: &BlockSizes, request: u32, items: &mut Vec<Item>) {
    let residual = sizes.residual[request as usize];
    if residual > 0 {
        items.push(Item { key: ItemKey::Residual(request), tokens: residual, kept_chars: 0 });
    }
    items.extend(timeline.request(request).inputs.clone().map(|block| item(timeline, &sizes.tokens, block)));
}

/// Adds what a request was answered.
fn add_outputs(timeline: &Timeline, sizes: &BlockSizes, request: u32, items: &mut Vec<Item>) {
    items.extend(timeline.request(request).outputs.clone().map(|block| item(timeline, &sizes.tokens, block)));
}

/// A block as the log has it. `tokens` are the sizes of [`Timeline::blocks`].
pub fn item(timeline: &Timeline, tokens: &[u32], block: u32) -> Item {
    Item {
        key: ItemKey::Block(block),
        tokens: tokens[block as usize],
        kept_chars: timeline.blocks[block as usize].chars,
    }
}
