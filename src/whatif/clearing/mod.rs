//! Clearing of tool results: the oldest results of a context are replaced by a marker once all results together grow
//! too large (`--tier micro`).
//!
//! [`Micro`] is the rule and applies it to contexts as a stage: what was once cleared stays cleared, and before each
//! request the rule may clear more, oldest first until what remains is small enough, and only if that frees enough at
//! once. [`replayed`] finds the clearings of the log again.

pub mod replayed;

use std::collections::BTreeSet;

use crate::logs::timeline::requests::{Block, BlockKind, Timeline};
use crate::whatif::compaction::CompactionThresholds;
use crate::whatif::compaction::params::{MicroParams, Style};
use crate::whatif::sim::breakage::rows::BreakClass;
use crate::whatif::sim::view::{ContextView, Item, ItemKey, Noticed, RequestMoment, Stage, StageJournal, StageOutput};

/// One result that was cleared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cleared {
    /// Index of the request before which it was cleared.
    pub request: u32,
    /// Block of the result.
    pub block: u32,
    /// Tokens by which the context shrank.
    pub removed_tokens: u32,
}

/// The stage.
pub struct Micro {
    params: MicroParams,
    sheet: CompactionThresholds,
    journal: StageJournal<Cleared>,
    cleared: BTreeSet<u32>,
}

impl Micro {
    /// Every result that is cleared is written to `journal`.
    pub fn new(params: MicroParams, sheet: CompactionThresholds, journal: StageJournal<Cleared>) -> Self {
        Self { params, sheet, journal, cleared: BTreeSet::new() }
    }

    /// Whether the client counts and clears results of the block's tool.
    fn clears(&self, timeline: &Timeline, block: &Block) -> bool {
        let call = timeline.calls.get(block.call as usize);
        call.is_some_and(|call| self.sheet.client.clears(timeline.names.text(call.tool)))
    }

    /// Code points of a result that stay when it is cleared.
    fn kept_chars(&self, chars: u32) -> u32 {
        match self.params.style {
            Style::Clear => 0,
            Style::Head(kept) => kept.min(chars),
        }
    }

    /// The item as it is once cleared; the same item where that would not make it smaller.
    fn shortened(&self, timeline: &Timeline, item: Item) -> Item {
        let ItemKey::Block(block) = item.key else { return item };
        let chars = timeline.blocks[block as usize].chars;
        let kept_chars = self.kept_chars(chars).min(item.kept_chars);
        let share = u64::from(item.tokens) * u64::from(kept_chars);
        let head = share.checked_div(u64::from(item.kept_chars)).unwrap_or_default();
        let tokens = u64::from(self.sheet.client.marker_tokens) + head;
        match u32::try_from(tokens) {
            Ok(tokens) if tokens < item.tokens => Item { tokens, kept_chars, ..item },
            _ => item,
        }
    }

    /// The results of a context as the rule sees them, with the places of their items.
    fn results(&self, moment: &RequestMoment<'_>, view: &ContextView) -> Vec<(usize, ResultSize)> {
        let blocks = &moment.timeline.blocks;
        let mut offset = view.prefix.tokens;
        let mut results = Vec::new();
        for (place, item) in view.items.iter().enumerate() {
            let start = offset;
            offset += u64::from(item.tokens);
            let ItemKey::Block(index) = item.key else { continue };
            let block = &blocks[index as usize];
            if block.kind != BlockKind::ToolResult || !self.clears(moment.timeline, block) {
                continue;
            }
            let is_new = !self.cleared.contains(&index);
            let is_free = is_new
                && u64::from(block.bytes) >= self.params.min_bytes
                && self.shortened(moment.timeline, *item) != *item
                && !(self.params.only_uncached && start < moment.cached_before);
            let cleared_tokens = self.sheet.client.estimate(self.kept_chars(block.chars).min(item.kept_chars));
            let tokens =
                if is_new { self.sheet.client.estimate(item.kept_chars.min(block.chars)) } else { cleared_tokens };
            results.push((place, ResultSize { tokens, cleared_tokens, is_free }));
        }
        let protected = results.len().saturating_sub(self.params.protect_last);
        for (_, result) in &mut results[protected..] {
            result.is_free = false;
        }
        results
    }

    fn clear(&mut self, moment: &RequestMoment<'_>, item: &mut Item, output: &mut StageOutput) {
        let ItemKey::Block(block) = item.key else { return };
        let shortened = self.shortened(moment.timeline, *item);
        self.cleared.insert(block);
        self.journal.push(Cleared { request: moment.request, block, removed_tokens: item.tokens - shortened.tokens });
        *item = shortened;
        // What comes in with this request was never sent before.
        if moment.timeline.requests[moment.request as usize].inputs.contains(&block) {
            let call = moment.timeline.blocks[block as usize].call;
            output.noticed.push(Noticed { class: BreakClass::ClearedBeforeSeen.into_str(), call });
        }
    }
}

impl Stage for Micro {
    fn begin(&mut self, _: &Timeline, _: u32) {
        self.cleared.clear();
    }

    fn may_change(&self, timeline: &Timeline, chain: u32, _: u64) -> bool {
        let is_counted = |block: &&Block| block.kind == BlockKind::ToolResult && self.clears(timeline, block);
        timeline.blocks_of(chain).is_none_or(|blocks| {
            let sizes = blocks.iter().filter(is_counted).map(|block| self.sheet.client.estimate(block.chars));
            sizes.sum::<u64>() > self.params.target_tokens
        })
    }

    fn apply(&mut self, moment: &RequestMoment<'_>, view: &mut ContextView, output: &mut StageOutput) {
        for item in &mut view.items {
            if matches!(item.key, ItemKey::Block(block) if self.cleared.contains(&block)) {
                *item = self.shortened(moment.timeline, *item);
            }
        }
        let results = self.results(moment, view);
        let sizes: Vec<ResultSize> = results.iter().map(|&(_, result)| result).collect();
        for chosen in plan(&sizes, self.params.target_tokens, self.params.min_saving_tokens) {
            self.clear(moment, &mut view.items[results[chosen].0], output);
        }
    }
}

/// A result in a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResultSize {
    /// The client's estimate of its tokens as it stands there now.
    pub tokens: u64,
    /// The same once it is cleared.
    pub cleared_tokens: u64,
    /// Whether it may be cleared.
    pub is_free: bool,
}

/// Indices of the results to clear, oldest first; empty if clearing is not worth it. `results` are all of a context,
/// oldest first.
pub fn plan(results: &[ResultSize], target_tokens: u64, min_saving_tokens: u64) -> Vec<usize> {
    let mut remaining: u64 = results.iter().map(|result| result.tokens).sum();
    let mut saved = 0;
    let mut chosen = Vec::new();
    for (index, result) in results.iter().enumerate() {
        if remaining <= target_tokens {
            break;
        }
        let saving = result.tokens.saturating_sub(result.cleared_tokens);
        if !result.is_free || saving == 0 {
            continue;
        }
        remaining -= saving;
        saved += saving;
        chosen.push(index);
    }
    if saved < min_saving_tokens { Vec::new() } else { chosen }
}
