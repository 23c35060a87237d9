//! Where the part of a context begins that a compaction keeps.

use crate::logs::timeline::requests::{Block, BlockKind, NONE, Timeline};
use crate::whatif::compaction::params::Align;
use crate::whatif::sim::view::{Item, ItemKey};

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
    let first = items.iter().position(|item| !matches!(item.key, ItemKey::Residual(_)))?;
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

fn block(key: ItemKey) -> Option<u32> {
    if let ItemKey::Block(block) = key { Some(block) } else { None }
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
