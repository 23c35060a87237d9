//! Clearing of tool results: the oldest are replaced by a marker once all results of a context together grow too large (`--tier
//! micro`). [`Micro`] does it as a stage: what was once cleared stays cleared, and before each request more goes, oldest first,
//! if that frees enough at once. [`replayed`] finds the clearings of the log again.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::iter;
use std::rc::Rc;

use crate::base::id::{Id, IdSet};
use crate::base::stats::Share;
use crate::logs::timeline::requests::{Block, BlockKind, Clearing, Marks, NONE, Segment, SegmentCause, Timeline};
use crate::whatif::compaction::CompactionThresholds;
use crate::whatif::compaction::figures::contexts;
use crate::whatif::compaction::outcome::{ClearingCheck, Clearings, ClearingsReplayed};
use crate::whatif::compaction::params::{MicroParams, Style};
use crate::whatif::sim::breakage::detect::ShownBlocks;
use crate::whatif::sim::breakage::rows::BreakClass;
use crate::whatif::sim::run::SimulatedRun;
use crate::whatif::sim::view::{
    ContextView, ForkPoints, Given, Item, ItemKey, Moment, Noticed, Stage, StageJournal, StageOutput, item_of,
};

/// One result that was cleared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cleared {
    /// Index of the request before which it was cleared.
    pub request: u32,
    pub block: u32,
    /// Tokens by which the context shrank.
    pub removed_tokens: u32,
}

/// The stage.
pub struct Micro {
    params: MicroParams,
    thresholds: CompactionThresholds,
    journal: StageJournal<Cleared>,
    /// Shared with what is forked off, until more is cleared.
    cleared: Rc<BTreeSet<u32>>,
    results: Results,
    /// Items of the context as it was left at the request before.
    left: usize,
    /// What is cleared stays so in what is forked off.
    forks: ForkPoints<Rc<BTreeSet<u32>>>,
    /// By chain: estimated tokens of the results of its contexts that count, or more.
    counted: OnceCell<Vec<u64>>,
}

impl Micro {
    /// Every result that is cleared is written to `journal`.
    pub fn new(params: MicroParams, thresholds: CompactionThresholds, journal: StageJournal<Cleared>) -> Self {
        let (cleared, results, forks) = (Rc::default(), Results::default(), ForkPoints::default());
        Self { params, thresholds, journal, cleared, results, left: 0, forks, counted: OnceCell::new() }
    }

    /// Whether the client counts and clears results of the block's tool.
    fn clears(&self, timeline: &Timeline, block: &Block) -> bool {
        let call = timeline.calls.get(block.call as usize);
        call.is_some_and(|call| self.thresholds.client.clears(timeline.names.text(call.tool)))
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
        let tokens = u64::from(self.thresholds.client.marker_tokens) + head;
        match u32::try_from(tokens) {
            Ok(tokens) if tokens < item.tokens => Item { tokens, kept_chars, ..item },
            _ => item,
        }
    }

    /// A result of a context as the rule sees it; none of what it does not count.
    fn result(&self, timeline: &Timeline, item: Item) -> Option<ResultSize> {
        let block = item.key.block()?;
        let (is_new, of) = (!self.cleared.contains(&block), &timeline.blocks[block as usize]);
        if of.kind != BlockKind::ToolResult || !self.clears(timeline, of) {
            return None;
        }
        let is_free = is_new && u64::from(of.bytes) >= self.params.min_bytes && self.shortened(timeline, item) != item;
        let cleared_tokens = self.thresholds.client.estimate(self.kept_chars(of.chars).min(item.kept_chars));
        let tokens =
            if is_new { self.thresholds.client.estimate(item.kept_chars.min(of.chars)) } else { cleared_tokens };
        Some(ResultSize { tokens, cleared_tokens, is_free })
    }

    /// Places of the items that are to be cleared now. `kept` leading items stand as they were left at the request before.
    fn chosen(&self, moment: &Moment<'_>, view: &ContextView, kept: usize) -> Vec<usize> {
        if self.results.tokens <= self.params.target_tokens {
            return Vec::new();
        }
        let Results { all, free, .. } = &self.results;
        let cached = self.cached(moment);
        // As long as no stage behind has left anything out, what was sent before stands where it stood.
        let stood = if moment.before.is_some_and(|before| before.items.len() == self.left) { kept } else { 0 };
        let free = &free[free.partition_point(|&index| all[index].0 < cached.len().min(stood))..];
        let protected = all.len().saturating_sub(self.params.protect_last);
        let size = |&index: &usize| {
            #[cfg(test)]
            crate::base::id::work::step();
            let (place, size) = all[index];
            let is_sent = |block: u32| item_of(moment.timeline, cached, block).is_some();
            let is_cached = place >= stood && view.items[place].key.block().is_some_and(is_sent);
            ResultSize { is_free: index < protected && !is_cached, ..size }
        };
        let sizes: Vec<ResultSize> = free.iter().map(size).collect();
        let others = self.results.tokens - sizes.iter().map(|result| result.tokens).sum::<u64>();
        let target = self.params.target_tokens.saturating_sub(others);
        let chosen = plan(&sizes, target, self.params.min_saving_tokens);
        chosen.into_iter().map(|at| all[free[at]].0).collect()
    }

    /// What a cache holds of the context that was sent before, as all stages left it, where that is to be left alone.
    fn cached<'m>(&self, moment: &Moment<'m>) -> &'m [Item] {
        let sent = moment.before.filter(|_| self.params.only_uncached).zip(moment.sent_before);
        let Some((before, mut start)) = sent else { return &[] };
        // Mostly all but the end is cached.
        let is_new = |item: &&Item| {
            #[cfg(test)]
            crate::base::id::work::step();
            start = start.saturating_sub(item.tokens.into());
            start >= moment.cached_before
        };
        let new = before.items.iter().rev().take_while(is_new).count();
        &before.items[..before.items.len() - new]
    }

    fn clear(&mut self, moment: &Moment<'_>, item: &mut Item, output: &mut StageOutput) {
        let ItemKey::Block(block) = item.key else { return };
        let shortened = self.shortened(moment.timeline, *item);
        Rc::make_mut(&mut self.cleared).insert(block);
        let request = &moment.timeline.requests[moment.request as usize];
        if request.counts() {
            let removed_tokens = item.tokens - shortened.tokens;
            self.journal.push(Cleared { request: moment.request, block, removed_tokens });
        }
        *item = shortened;
        // What comes in with this request was never sent before.
        if request.inputs.contains(&block) {
            let call = moment.timeline.blocks[block as usize].call;
            output.noticed.push(Noticed { class: BreakClass::ClearedBeforeSeen, call });
        }
    }
}

impl Stage for Micro {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        self.cleared = self.forks.take(timeline, chain).unwrap_or_default();
        self.left = 0;
    }

    fn may_change(&self, timeline: &Timeline, chain: u32, _: u64) -> bool {
        let is_counted = |block: &Block| block.kind == BlockKind::ToolResult && self.clears(timeline, block);
        let counted = |block: u32| {
            let block = &timeline.blocks[block as usize];
            if is_counted(block) { self.thresholds.client.estimate(block.chars) } else { 0 }
        };
        self.counted.get_or_init(|| timeline.sums_by_chain(counted))[chain as usize] > self.params.target_tokens
    }

    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, out: &mut StageOutput) -> usize {
        view.follow(given.view, given.kept, given.kept);
        self.results.keep(given.kept);
        for (place, item) in view.items.iter_mut().enumerate().skip(given.kept) {
            if matches!(item.key, ItemKey::Block(block) if self.cleared.contains(&block)) {
                *item = self.shortened(moment.timeline, *item);
            }
            if let Some(size) = self.result(moment.timeline, *item) {
                self.results.push(place, size);
            }
        }
        let chosen = self.chosen(moment, view, given.kept);
        for &place in &chosen {
            self.clear(moment, &mut view.items[place], out);
        }
        self.results.clear(&chosen);
        self.left = view.items.len();
        self.forks.keep(moment.timeline, moment.request, |_| Rc::clone(&self.cleared));
        chosen.first().map_or(given.kept, |&first| given.kept.min(first))
    }
}

/// The results of a context, oldest first, and what they come to.
#[derive(Default)]
struct Results {
    /// With the places of their items.
    all: Vec<(usize, ResultSize)>,
    /// Indices of those that may be cleared, if they are old enough and in no cache.
    free: Vec<usize>,
    tokens: u64,
}

impl Results {
    /// Forgets those that stood behind so many items.
    fn keep(&mut self, items: usize) {
        while let Some((_, size)) = self.all.pop_if(|(place, _)| *place >= items) {
            self.tokens -= size.tokens;
        }
        while self.free.pop_if(|free| *free >= self.all.len()).is_some() {}
    }

    fn push(&mut self, place: usize, size: ResultSize) {
        self.tokens += size.tokens;
        self.free.extend(size.is_free.then_some(self.all.len()));
        self.all.push((place, size));
    }

    /// Those at these places were cleared.
    fn clear(&mut self, places: &[usize]) {
        let Self { all, free, tokens } = self;
        let Some(&first) = places.first() else { return };
        let mut behind = free.split_off(free.partition_point(|&index| all[index].0 < first));
        behind.retain(|&index| {
            let (place, size) = &mut all[index];
            let is_cleared = places.binary_search(place).is_ok();
            if is_cleared {
                *tokens -= size.tokens - size.cleared_tokens;
                size.tokens = size.cleared_tokens;
            }
            !is_cleared
        });
        free.append(&mut behind);
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

/// Indices of the results to clear, oldest first; empty if clearing is not worth it. `results` are those of a context
/// that count, oldest first.
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

/// Checks every clearing of the log against what the rule would have cleared among the results in the context at that moment:
/// those that the last request was sent or answered with, and what came in since. Older results may have gone in a clearing
/// that no record shows: the rule is taken to have acted where a context shrank by as much as it would have freed. The client's
/// own limits are used (any size, none protected); the rest is `params`.
pub fn replayed(timeline: &Timeline, params: &MicroParams, thresholds: &CompactionThresholds) -> ClearingsReplayed {
    let rule = ClearingRule::new(timeline, params, thresholds);
    let mut done: BTreeSet<u32> = BTreeSet::new();
    let mut checks = Vec::new();
    for clearing in &timeline.clearings {
        let unlogged = rule.unlogged(clearing, &done);
        let before = timeline.requests.get(clearing.request as usize).filter(|one| one.chain == clearing.chain);
        if before.is_none_or(|request| request.counts()) {
            checks.push(rule.check(clearing, &done, &unlogged));
        }
        done.extend(unlogged);
        done.extend(rule.named(clearing));
    }
    let judged: Vec<&ClearingCheck> = checks.iter().filter(|check| check.is_judged()).collect();
    let equal = Share::new(judged.iter().filter(|check| check.is_equal()).count() as u64, judged.len() as u64);
    let is_met = (equal.n > 0).then_some(equal.value() * 100.0 >= thresholds.bars.clearings_percent);
    ClearingsReplayed { checks, equal, is_met }
}

/// The client's rule over one timeline.
struct ClearingRule<'a> {
    timeline: &'a Timeline,
    params: &'a MicroParams,
    thresholds: &'a CompactionThresholds,
    /// Those that clearings name.
    calls: BTreeSet<(Id, u32)>,
}

/// The call of a result, and the client's estimate of its tokens.
type Sized = (u32, u64);

impl<'a> ClearingRule<'a> {
    fn new(timeline: &'a Timeline, params: &'a MicroParams, thresholds: &'a CompactionThresholds) -> Self {
        let named = timeline.clearings.iter().flat_map(|one| one.arrived.iter().map(|(id, _)| id).chain(&one.calls));
        let named: IdSet<Id> = named.copied().collect();
        let calls = timeline.calls.iter().zip(0..).filter(|(call, _)| named.contains(&call.id));
        let calls = calls.map(|(call, index)| (call.id, index)).collect();
        Self { timeline, params, thresholds, calls }
    }

    /// The call that an id means at a clearing: the last one before it in its chain, or in another one where that has none.
    fn call(&self, clearing: &Clearing, id: Id) -> Option<u32> {
        let of_id = || self.calls.range((id, 0)..=(id, NONE)).rev().map(|&(_, call)| call);
        let asked = |call: u32| self.timeline.request_of_block(self.timeline.calls[call as usize].asked);
        let requests = self.timeline.chain(clearing.chain).requests.start..clearing.request;
        of_id().find(|&call| requests.contains(&asked(call))).or_else(|| of_id().next())
    }

    /// The calls that a clearing names, as far as they are in the logs.
    fn named(&self, clearing: &Clearing) -> BTreeSet<u32> {
        clearing.calls.iter().filter_map(|&id| self.call(clearing, id)).collect()
    }

    /// Whether results of the call's tool are ever cleared.
    fn is_clearable(&self, call: u32) -> bool {
        self.thresholds.client.clears(self.timeline.names.text(self.timeline.calls[call as usize].tool))
    }

    /// Results among blocks, and others behind them, that still stand there; those of the calls `done` are gone.
    fn results(
        &self,
        blocks: impl Iterator<Item = u32>,
        arrived: impl Iterator<Item = (u32, u32)>,
        done: [&BTreeSet<u32>; 2],
    ) -> Vec<Sized> {
        let blocks = blocks.map(|block| &self.timeline.blocks[block as usize]);
        let results = blocks.filter(|block| block.kind == BlockKind::ToolResult && block.call != NONE);
        let all = results.map(|block| (block.call, block.chars)).chain(arrived);
        let is_done = |call: &u32| done.iter().any(|done| done.contains(call));
        let standing = all.filter(|(call, _)| !is_done(call) && self.is_clearable(*call));
        standing.map(|(call, chars)| (call, self.thresholds.client.estimate(chars))).collect()
    }

    /// What the rule clears of these: calls, and the tokens that are freed.
    fn cleared(&self, results: &[Sized]) -> (BTreeSet<u32>, u64) {
        let client = &self.thresholds.client;
        let protected = results.len().saturating_sub(client.micro_protect_last);
        let least = client.micro_min_bytes.div_ceil(u64::from(client.chars_per_token.max(1)));
        let size = |(place, &(_, tokens)): (usize, &Sized)| ResultSize {
            tokens,
            cleared_tokens: 0,
            is_free: place < protected && tokens >= least,
        };
        let sizes: Vec<ResultSize> = results.iter().enumerate().map(size).collect();
        let chosen = plan(&sizes, self.params.target_tokens, self.params.min_saving_tokens);
        let freed = chosen.iter().map(|&place| sizes[place].tokens).sum();
        // Results without any text go along with those around them.
        let until = chosen.last().copied().unwrap_or(0);
        let nothing = (0..until).filter(|&place| sizes[place].is_free && sizes[place].tokens == 0);
        (chosen.iter().copied().chain(nothing).map(|place| results[place].0).collect(), freed)
    }

    /// Calls whose results went before a clearing without a record of it.
    fn unlogged(&self, clearing: &Clearing, done: &BTreeSet<u32>) -> BTreeSet<u32> {
        let mut gone = BTreeSet::new();
        let own = self.timeline.chain(clearing.chain).segments.clone();
        let segments = &self.timeline.segments[own.start as usize..own.end as usize];
        let before = &segments[..segments.partition_point(|segment| segment.requests.start < clearing.request)];
        let compacted = before.iter().rposition(|segment| segment.cause == SegmentCause::Compaction);
        for request in before[compacted.unwrap_or(0)..].iter().filter_map(|segment| self.shrinks(segment)) {
            let blocks = ShownBlocks::to(self.timeline, request);
            let results = self.results(blocks.blocks(), iter::empty(), [done, &gone]);
            let (calls, freed) = self.cleared(&results);
            if freed <= self.lost(request) {
                gone.extend(calls);
            }
        }
        gone
    }

    /// Tokens that a request lacks of the context before it, what came in since not counted.
    fn lost(&self, request: u32) -> u64 {
        let [before, now] = [request as usize - 1, request as usize].map(|at| &self.timeline.requests[at]);
        let blocks = before.outputs.start..now.inputs.end;
        let came: u64 =
            blocks.map(|block| self.thresholds.client.estimate(self.timeline.blocks[block as usize].chars)).sum();
        (before.context() + came).saturating_sub(now.context())
    }

    /// The request with which a segment begins, if its context shrank there for a reason that the log does not name.
    fn shrinks(&self, segment: &Segment) -> Option<u32> {
        let request = segment.requests.start;
        let is_named = self.timeline.request(request).marks.has(Marks::MICROCOMPACTION);
        (segment.cause == SegmentCause::Shrink && !is_named && request > 0).then_some(request)
    }

    fn check(&self, clearing: &Clearing, done: &BTreeSet<u32>, unlogged: &BTreeSet<u32>) -> ClearingCheck {
        let results = self.in_context(clearing, [done, unlogged]);
        let (predicted, saved_tokens) = self.cleared(&results);
        let logged = self.named(clearing);
        let not_in_logs = clearing.calls.iter().filter(|id| self.call(clearing, **id).is_none());
        let not_in_logs = not_in_logs.collect::<BTreeSet<&Id>>().len() as u64;
        ClearingCheck {
            record: clearing.id.to_string(),
            total_tokens: results.iter().map(|(_, tokens)| tokens).sum(),
            logged_total_tokens: clearing.pre_tokens,
            saved_tokens,
            logged_saved_tokens: clearing.tokens_saved,
            both: predicted.intersection(&logged).count() as u64,
            only_predicted: predicted.difference(&logged).count() as u64,
            only_logged: logged.difference(&predicted).count() as u64 + not_in_logs,
            unlogged: unlogged.len() as u64,
            not_in_logs,
        }
    }

    /// What stood in the context when it was cleared.
    fn in_context(&self, clearing: &Clearing, done: [&BTreeSet<u32>; 2]) -> Vec<Sized> {
        let requests = &self.timeline.chain(clearing.chain).requests;
        let opens_empty = |request: u32| {
            let segment = &self.timeline.segments[self.timeline.request(request).segment as usize];
            segment.cause == SegmentCause::Compaction && segment.requests.start == request
        };
        if requests.contains(&clearing.request) && !opens_empty(clearing.request) {
            return self.results(ShownBlocks::to(self.timeline, clearing.request).blocks(), iter::empty(), done);
        }
        // Compacted at once, or the log ends: no request shows what had come in.
        let before = clearing.request.checked_sub(1).filter(|before| requests.contains(before));
        let shown = before.map(|before| ShownBlocks::after(self.timeline, before));
        let arrived = clearing.arrived.iter().filter_map(|&(id, chars)| Some((self.call(clearing, id)?, chars)));
        self.results(shown.iter().flat_map(ShownBlocks::blocks), arrived, done)
    }
}

/// A virtual run of clearing in figures; `cleared` is the stage's journal.
pub fn clearings(timeline: &Timeline, cleared: &[Cleared], run: &SimulatedRun) -> Clearings {
    let session = |request: u32| timeline.session_of_chain(timeline.request(request).chain);
    Clearings {
        clearings: cleared.iter().map(|entry| entry.request).collect::<BTreeSet<_>>().len() as u64,
        results: cleared.len() as u64,
        removed_tokens: cleared.iter().map(|entry| u64::from(entry.removed_tokens)).sum(),
        sessions: cleared.iter().map(|entry| session(entry.request)).collect::<BTreeSet<_>>().len() as u64,
        context: contexts(run),
    }
}
