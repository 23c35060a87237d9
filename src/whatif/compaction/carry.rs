//! How large a context will be after a compaction, by what is known before it: what the chain began with besides its first prompt, a
//! summary as long as the last ones, the files that were read last (the client puts them back), and a rest learned from earlier
//! compactions.
//!
//! Where the part of a context begins that a compaction keeps.
//!
//! The log as if its own compactions had not been: what stood before them stays, and what they brought is left out.
//!
//! Left out are the summary and what came with it unasked (injected texts, the residual of the first request). What the
//! person wrote and what tools answered stays. The last answer before a compaction was never measured by a next request,
//! so its size is an estimate.

use std::collections::BTreeMap;

use crate::base::forecast::{Forecast, at_share, next_within, week_of};
use crate::base::id::Id;
use crate::logs::timeline::requests::{Block, BlockKind, Boundary, NONE, SegmentCause, Timeline};
use crate::logs::trace::{Millis, NO_TIME};
use crate::whatif::compaction::params::Align;
use crate::whatif::compaction::sheet::{Reattach, Sheet};
use crate::whatif::sim::breakage::shown::root_of;
use crate::whatif::sim::sizes;
use crate::whatif::sim::sizes::Sizes;
use crate::whatif::sim::view::{ContextView, Item, Key};

/// A compaction with what is known before it, and how large the context was after it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Carried {
    /// When the first request after it began.
    pub at: Millis,
    /// Tokens that stand in front of the conversation: tools, system prompt, memory.
    pub opening: u64,
    /// Tokens of the files that were read last.
    pub files: u64,
    /// Tokens of the summary.
    pub summary: u64,
    /// Tokens of the first context after it.
    pub came: u64,
}

/// Every compaction with a request after it, by time.
pub fn compactions(timeline: &Timeline, sizes: &Sizes, sheet: &Sheet) -> Vec<Carried> {
    let of = |boundary: &Boundary| carried(timeline, sizes, sheet, boundary);
    let mut found: Vec<Carried> = timeline.boundaries.iter().filter_map(of).collect();
    found.sort_by_key(|one| (one.at, one.came));
    found
}

fn carried(timeline: &Timeline, sizes: &Sizes, sheet: &Sheet, boundary: &Boundary) -> Option<Carried> {
    let request = timeline.requests.get(boundary.request as usize)?;
    if request.chain != boundary.chain || request.context() == 0 {
        return None;
    }
    let summary = (boundary.summary != NONE).then(|| u64::from(sizes.tokens[boundary.summary as usize]));
    Some(Carried {
        at: request.start,
        opening: opening(timeline, sizes, sheet, boundary),
        files: files(timeline, &sizes.tokens, &sheet.client.reattach, boundary),
        summary: summary.unwrap_or(0),
        came: request.context(),
    })
}

/// What the chain began with besides its first prompt; where that cannot be told, the static prefix.
fn opening(timeline: &Timeline, sizes: &Sizes, sheet: &Sheet, boundary: &Boundary) -> u64 {
    let chain = &timeline.chains[boundary.chain as usize];
    let prefix = sizes.prefix[boundary.chain as usize];
    let first = &timeline.requests[chain.requests.start as usize];
    // A chain that goes on from another one, or that the log shows only from a compaction on, began with a conversation.
    let began = &timeline.segments[chain.segments.start as usize];
    let is_plain =
        began.cause == SegmentCause::Start && began.after == NONE && chain.requests.start != boundary.request;
    let opening = sizes::opening(timeline, first, &sizes.rules);
    let is_believed = is_plain && opening <= prefix + sheet.client.reattach.memory_tokens_max;
    if is_believed { opening.max(prefix) } else { prefix }
}

/// Tokens of the files that were read last since the compaction before, as far as the client puts them back.
fn files(timeline: &Timeline, tokens: &[u32], reattach: &Reattach, boundary: &Boundary) -> u64 {
    let chain = &timeline.chains[boundary.chain as usize];
    let own = |other: &&Boundary| other.chain == boundary.chain && other.request < boundary.request;
    let since = timeline.boundaries.iter().filter(own).map(|other| other.request).max();
    let since = since.unwrap_or(chain.requests.start);
    // By file: when it was last worked on, and its size.
    let mut known: BTreeMap<Id, (u32, u64)> = BTreeMap::new();
    for request in &timeline.requests[since as usize..boundary.request as usize] {
        for block in request.inputs.start..request.outputs.end {
            let row = &timeline.blocks[block as usize];
            let Some(call) = timeline.calls.get(row.call as usize).filter(|call| call.path.is_some() && !call.is_error)
            else {
                continue;
            };
            let tool = timeline.names.text(call.tool);
            let size = u64::from(tokens[block as usize]);
            match row.kind {
                BlockKind::ToolResult if reattach.reads(tool) => drop(known.insert(call.path, (block, size))),
                BlockKind::ToolUsage if reattach.writes(tool) => drop(known.insert(call.path, (block, size))),
                BlockKind::ToolResult => {
                    if let Some(file) = known.get_mut(&call.path) {
                        file.0 = block;
                    }
                }
                _ => {}
            }
        }
    }
    let mut latest: Vec<(u32, u64)> = known.into_values().collect();
    latest.sort_unstable_by(|a, b| b.cmp(a));
    latest.iter().take(reattach.files_max).map(|(_, size)| (*size).min(reattach.file_tokens_max)).sum()
}

/// A prediction for each compaction, by those that were over in an earlier week: known until then, judged after.
pub fn forecasts(found: &[Carried], sheet: &Sheet) -> Vec<Forecast> {
    let timed = |one: &&Carried| one.at != NO_TIME;
    found.iter().filter(timed).map(|one| forecast(one, &known_before(found, week_of(one.at)), sheet)).collect()
}

fn known_before(found: &[Carried], week: i64) -> Vec<Carried> {
    found.iter().filter(|other| other.at != NO_TIME && week_of(other.at) < week).copied().collect()
}

/// The prediction by what `known` compactions were like.
fn forecast(one: &Carried, known: &[Carried], sheet: &Sheet) -> Forecast {
    let reattach = &sheet.client.reattach;
    let summary = median(known.iter().map(|other| other.summary as f64).filter(|summary| *summary > 0.0));
    let summary = summary.unwrap_or_else(|| f64::from(sheet.params.summary_tokens));
    let plain =
        |of: &Carried| (of.opening + of.files) as f64 + summary + f64::from(sheet.client.acknowledgement_tokens);
    let rest =
        median(known.iter().map(|other| other.came as f64 - plain(other))).unwrap_or(reattach.rest_tokens as f64);
    let predicted = plain(one) + rest;
    // How far off the same prediction was for those that are known.
    let off: Vec<f64> = known.iter().map(|other| other.came as f64 / (plain(other) + rest).max(1.0)).collect();
    let share = reattach.interval_percent / 100.0;
    let (low, high) = next_within(&off, share).unwrap_or((1.0 - reattach.unknown_off, 1.0 + reattach.unknown_off));
    Forecast {
        week: week_of(one.at),
        predicted,
        lower: predicted * low.min(1.0 - reattach.least_off),
        upper: predicted * high.max(1.0 + reattach.least_off),
        came: one.came as f64,
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    at_share(&sorted, 0.5)
}

/// The index at which the sizes from there to the end first reach `target`; none if everything would be kept. This is
/// upstream's whole rule (policies.md 3.1), in whatever unit the sizes are.
pub fn by_target(sizes: impl DoubleEndedIterator<Item = u64> + ExactSizeIterator, target: u64) -> Option<usize> {
    let mut sum = 0;
    let reached = sizes.enumerate().rev().find(|&(_, size)| {
        sum += size;
        sum >= target
    });
    reached.map(|(index, _)| index).filter(|&index| index > 0)
}

/// The item at which the tail begins: the newest place at or before [`by_target`] where a message of the wanted kind
/// begins and no result stands without its call. None if there is no such place but the very start.
pub fn start(timeline: &Timeline, items: &[Item], keep_tokens: u64, align: Align) -> Option<usize> {
    let newest = by_target(items.iter().map(|item| u64::from(item.tokens)), keep_tokens)?;
    let oldest_block = items.iter().find_map(|item| block(item.key)).unwrap_or(NONE);
    // A residual alone is nothing to summarise.
    let first = items.iter().position(|item| !matches!(item.key, Key::Residual(_)))?;
    let mut oldest_asked = NONE;
    for index in (first + 1..items.len()).rev() {
        let Some(here) = block(items[index].key) else { continue };
        let asked = asked_by_result(timeline, here).filter(|&asked| asked >= oldest_block);
        oldest_asked = oldest_asked.min(asked.unwrap_or(NONE));
        let is_whole = oldest_asked >= here;
        if index <= newest && is_whole && begins_message(timeline, items, index, align) {
            return Some(index);
        }
    }
    None
}

fn block(key: Key) -> Option<u32> {
    if let Key::Block(block) = key { Some(block) } else { None }
}

/// Of a result: the block that asked for it.
fn asked_by_result(timeline: &Timeline, index: u32) -> Option<u32> {
    let block = timeline.blocks[index as usize];
    (block.kind == BlockKind::ToolResult && block.call != NONE).then(|| timeline.calls[block.call as usize].asked)
}

/// An answer is one message; of a user record each result is one, and what else it says another.
fn begins_message(timeline: &Timeline, items: &[Item], index: usize, align: Align) -> bool {
    let of = |item: &Item| block(item.key).map(|block| timeline.blocks[block as usize]);
    let Some(here) = of(&items[index]) else { return false };
    let is_continued = of(&items[index - 1]).is_some_and(|before| is_same_message(&before, &here));
    if is_continued {
        return false;
    }
    let message =
        items[index..].iter().map_while(of).take_while(|block| block == &here || is_same_message(&here, block));
    match align {
        Align::Message => true,
        Align::Turn => message.into_iter().any(|block| block.kind == BlockKind::Human),
    }
}

fn is_same_message(a: &Block, b: &Block) -> bool {
    if a.kind.is_output() || b.kind.is_output() {
        return a.kind.is_output() && b.kind.is_output();
    }
    a.record == b.record && a.kind != BlockKind::ToolResult && b.kind != BlockKind::ToolResult
}

/// What is remembered along a chain.
#[derive(Clone, Default, Debug)]
pub struct Splice {
    /// By the segment that a compaction opens: a conversation may go back to before its last one.
    joints: BTreeMap<u32, Joint>,
    /// Segment and context of the last request.
    seen: Option<(u32, Vec<Item>)>,
}

/// One compaction of the log, taken out.
#[derive(Clone, Default, Debug)]
struct Joint {
    before: Vec<Item>,
    brought: Vec<Key>,
}

impl Splice {
    /// Puts what came before the log's compactions in front of the `view` of a request. `tokens` are the sizes of
    /// [`Timeline::blocks`].
    pub fn apply(&mut self, timeline: &Timeline, request: u32, tokens: &[u32], view: &mut ContextView) {
        let segment = timeline.requests[request as usize].segment;
        let root = root_of(timeline, segment);
        let is_new = self.seen.as_ref().is_none_or(|&(last, _)| last != segment);
        if is_new && root == segment && timeline.segments[segment as usize].cause == SegmentCause::Compaction {
            let joint = self.joint(timeline, segment, tokens);
            self.joints.insert(segment, joint);
        }
        if let Some(joint) = self.joints.get(&root) {
            view.items.retain(|item| !joint.brought.contains(&item.key));
            view.items.splice(0..0, joint.before.iter().copied());
        }
        let (known, items) = self.seen.get_or_insert_default();
        *known = segment;
        items.clone_from(&view.items);
    }

    fn joint(&self, timeline: &Timeline, segment: u32, tokens: &[u32]) -> Joint {
        let first = timeline.segments[segment as usize].requests.start;
        let (Some((_, seen)), Some(last)) = (&self.seen, first.checked_sub(1)) else { return Joint::default() };
        let mut before = seen.clone();
        before.extend(timeline.requests[last as usize].outputs.clone().map(|block| Item {
            key: Key::Block(block),
            tokens: tokens[block as usize],
            kept_chars: timeline.blocks[block as usize].chars,
        }));
        Joint { before, brought: brought(timeline, first) }
    }
}

fn brought(timeline: &Timeline, request: u32) -> Vec<Key> {
    let unasked =
        |&block: &u32| matches!(timeline.blocks[block as usize].kind, BlockKind::Summary | BlockKind::Injected);
    let blocks = timeline.requests[request as usize].inputs.clone().filter(unasked).map(Key::Block);
    blocks.chain([Key::Residual(request)]).collect()
}

/// Whether a context goes on in a segment: not where the log compacted, and not where a chain begins.
pub fn goes_on(timeline: &Timeline, segment: u32) -> bool {
    timeline.segments[segment as usize].after != NONE
}
