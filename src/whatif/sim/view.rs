//! A context as it is about to be sent, the stages that may change it, and what chains that were forked off begin with.
//!
//! For every request the driver lays out what the log says was sent. Each stage makes a view of its own of the one before it;
//! the driver compares the last one with what was sent before to see how much of a cached prefix is still good, prices it, and
//! looks for what was lost. So stages compose. A context mostly is the one before with a little behind it: everybody keeps the
//! views and says how much of one stayed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::names::Sym;
use crate::logs::timeline::requests::{Occurrence, Timeline};
use crate::whatif::sim::breakage::detect::Hint;
use crate::whatif::sim::breakage::rows::BreakClass;

/// What an item of a context is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ItemKey {
    /// A block of [`Timeline::blocks`].
    Block(u32),
    /// What a request brought besides its blocks (reminders, hidden text), by index of the request. No stage may remove
    /// it unless everything around it goes (a compaction).
    Residual(u32),
    /// Something that a stage wrote, by a number of its own: a summary, a marker, a definition.
    Made(u32),
}

impl ItemKey {
    /// The block, if it is one.
    pub fn block(self) -> Option<u32> {
        if let Self::Block(block) = self { Some(block) } else { None }
    }
}

/// One item of a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    pub key: ItemKey,
    /// Its tokens as sent.
    pub tokens: u32,
    /// Leading code points of the block's text that are kept; all of them where nothing was cut.
    pub kept_chars: u32,
}

/// The part before all messages: tool definitions and system prompt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Prefix {
    pub tokens: u64,
    /// Two prefixes with the same edition are byte-identical. 0 is the log's own.
    pub edition: u64,
}

/// A context.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContextView {
    /// Tools and system.
    pub prefix: Prefix,
    /// Messages, in order.
    pub items: Vec<Item>,
}

impl ContextView {
    /// Tokens of the whole context.
    pub fn tokens(&self) -> u64 {
        self.prefix.tokens + tokens(&self.items)
    }

    /// Keeps the first `to` of its items; behind them come those of another view from `from` on, and its prefix is taken.
    pub fn follow(&mut self, other: &Self, to: usize, from: usize) {
        #[cfg(test)]
        other.items[from..].iter().for_each(|_| crate::base::id::work::step());
        self.prefix = other.prefix;
        self.items.truncate(to);
        self.items.extend_from_slice(&other.items[from..]);
    }

    /// The item of a block, if it is there.
    pub fn block(&self, timeline: &Timeline, block: u32) -> Option<&Item> {
        item_of(timeline, &self.items, block)
    }

    /// Whether the context still shows this occurrence.
    pub fn shows(&self, timeline: &Timeline, occurrence: &Occurrence) -> bool {
        self.block(timeline, occurrence.block).is_some_and(|item| occurrence.end_chars <= item.kept_chars)
    }
}

/// The item of a block, if it is there. Blocks stand in the order of the timeline, and what a request brought besides its
/// own stands before them; where a stage has put its items, nobody knows.
pub fn item_of<'i>(timeline: &Timeline, items: &'i [Item], block: u32) -> Option<&'i Item> {
    let wanted = (block, true);
    let place = |at: usize| {
        #[cfg(test)]
        crate::base::id::work::step();
        match items[at].key {
            ItemKey::Block(here) => Some((at, (here, true))),
            ItemKey::Residual(request) => Some((at, (timeline.request(request).inputs.start, false))),
            ItemKey::Made(_) => None,
        }
    };
    let (mut low, mut high) = (0, items.len());
    while low < high {
        let middle = low.midpoint(high);
        match (middle..high).find_map(place) {
            Some((at, here)) if here == wanted => return items.get(at),
            Some((at, here)) if here < wanted => low = at + 1,
            _ => high = middle,
        }
    }
    None
}

/// Tokens of some items.
pub fn tokens(items: &[Item]) -> u64 {
    #[cfg(test)]
    items.iter().for_each(|_| crate::base::id::work::step());
    items.iter().map(|item| u64::from(item.tokens)).sum()
}

/// Something that a policy adds to the bill besides the requests of the log.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ExtraCall {
    /// Why, as a word for reports: `summary`, `tool_retry`, `keep_alive`.
    pub cause: &'static str,
    /// The model that is asked; none: that of the request.
    pub model: Option<Sym>,
    /// Whether it goes out before the request of the log: then it reads what of `read` is still alive. Else it comes after
    /// it, and what that has cached is there.
    pub is_before: bool,
    /// Tokens that can be in the cache; where the layout does not cache them, they are billed in full.
    pub read: u64,
    /// Tokens that cannot, and are written to it.
    pub write: u64,
    /// Tokens neither read nor written.
    pub uncached: u64,
    /// Tokens of the answer.
    pub output: u64,
}

/// A break that a stage itself notices (policies.md 1.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Noticed {
    pub class: BreakClass,
    /// Call that shows it, as index into [`Timeline::calls`], or [`crate::logs::timeline::requests::NONE`].
    pub call: u32,
}

/// The request at hand and what is known when it is sent.
pub struct Moment<'a> {
    pub timeline: &'a Timeline,
    /// Index into [`Timeline::requests`].
    pub request: u32,
    /// Tokens of the context that was sent for the request before in this chain, as the stages left it; at first those of
    /// the one that the chain was forked off, or none.
    pub sent_before: Option<u64>,
    /// That context.
    pub before: Option<&'a ContextView>,
    /// Of its tokens, how many leading tokens were cached when it was sent (policies.md, only what is not yet cached may be
    /// cleared for free).
    pub cached_before: u64,
    /// Whether they still are.
    pub is_warm: bool,
    pub opens_segment: bool,
}

/// What a stage leaves behind besides the changed view.
#[derive(Default, Debug)]
pub struct StageOutput {
    /// Calls to pay for.
    pub extra: Vec<ExtraCall>,
    pub noticed: Vec<Noticed>,
    /// Hints that are new in this context: a break is noticed where what they point at is gone in the end.
    pub hints: Vec<Hint>,
    /// Tokens that this context may have in the end: a longer one would be refused. None: nobody looks.
    pub window: Option<u64>,
}

/// The context that a stage is given: the log's, changed by the stages before it.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    pub view: &'a ContextView,
    /// At least so many leading items are as it was given them for the request before; none at the first of a chain.
    pub kept: usize,
}

/// A policy that changes contexts. It is asked for every request of a chain in order, unless it may change none.
pub trait Stage {
    fn begin(&mut self, timeline: &Timeline, chain: u32);

    /// Whether it may change a context of a chain, of which none has more than `largest` tokens. If no stage may, the
    /// chain's contexts go out as the log has them, and nobody is asked.
    fn may_change(&self, _timeline: &Timeline, _chain: u32, _largest: u64) -> bool {
        true
    }

    /// Makes of `view`, which holds what it left at the request before (at the first of a chain: anything), the context that is
    /// about to be sent. Returns how many leading items of it stayed, or fewer.
    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, out: &mut StageOutput) -> usize;
}

/// What a stage writes down while it runs, for whoever made it: the driver owns the stages and gives nothing back.
#[derive(Clone, Debug)]
pub struct StageJournal<T>(Arc<Mutex<Vec<T>>>);

impl<T> Default for StageJournal<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Ord> StageJournal<T> {
    /// Writes an entry.
    pub fn push(&self, entry: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// Takes all entries out, sorted: chains may have run in any order.
    pub fn take(&self) -> Vec<T> {
        let mut entries = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        entries.sort_unstable();
        entries
    }
}

/// What stood when a request was sent that another chain is forked off, kept until the last chain that was forked off
/// there begins.
#[derive(Debug)]
pub struct ForkPoints<T> {
    /// These requests, each with that chain; none until one was sent.
    points: Option<BTreeMap<u32, u32>>,
    kept: BTreeMap<u32, T>,
}

impl<T> Default for ForkPoints<T> {
    fn default() -> Self {
        Self { points: None, kept: BTreeMap::new() }
    }
}

impl<T> ForkPoints<T> {
    /// A request is sent: keeps what stands, if a chain is forked off there. It may share what was kept last, if that still is.
    pub fn keep(&mut self, timeline: &Timeline, request: u32, stands: impl FnOnce(Option<&T>) -> T) {
        let chains = 0..timeline.chains.len() as u32;
        let points = || chains.filter_map(|chain| Some((fork_point(timeline, chain)?, chain))).collect();
        if self.points.get_or_insert_with(points).contains_key(&request) {
            let last = self.kept.last_key_value().map(|(_, kept)| kept);
            let stands = stands(last);
            self.kept.insert(request, stands);
        }
    }

    /// What a chain begins with; none of one that was not forked off, or off one that is still to come.
    pub fn of(&self, timeline: &Timeline, chain: u32) -> Option<&T> {
        self.kept.get(&fork_point(timeline, chain)?)
    }

    /// The same for a chain that begins now.
    pub fn take(&mut self, timeline: &Timeline, chain: u32) -> Option<T>
    where
        T: Clone,
    {
        let point = fork_point(timeline, chain)?;
        let is_last = self.points.as_ref().and_then(|points| points.get(&point)) == Some(&chain);
        if is_last { self.kept.remove(&point) } else { self.kept.get(&point).cloned() }
    }
}

/// The request that a chain was forked off. Nobody knows what was sent for one without usage: then it is the last one
/// before it that has some.
pub fn fork_point(timeline: &Timeline, chain: u32) -> Option<u32> {
    let base = timeline.forked_off(chain)?;
    let first = timeline.segments[timeline.request(base).segment as usize].requests.start;
    (first..=base).rev().find(|&request| timeline.request(request).context() > 0)
}
