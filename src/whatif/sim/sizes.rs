//! How many tokens each block of a context has. No tokenizer is trusted: the growth of a context from one request to the next
//! is billed, and the blocks of that increment share it in proportion to estimates. What the log does not show (reminders,
//! attachments) is the residual of the request that brought it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;

use crate::base::data::fitting;
use crate::base::error::{Error, Result};
use crate::base::id::{Id, IdSet};
use crate::base::numbers::saturated;
use crate::base::tokenizer::Bpe;
use crate::logs::timeline::requests::{Block, BlockKind, Chain, Marks, NONE, Request, Segment, SegmentCause, Timeline};
use crate::logs::trace::Millis;
use crate::whatif::prompt_cache::params::CacheLifetime;
use crate::whatif::sim::priors::Prior;
use crate::whatif::sim::view::{Item, ItemKey};
use crate::whatif::sim::{laid_out, priors, view};

/// Where sizes come from (`--estimator`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Estimator {
    /// Measured growth, shared out by the fitted formula.
    #[default]
    Anchored,
    /// The fitted formula alone.
    Fitted,
    /// Tokens of `cl100k_base`.
    Cl100k,
    /// Tokens of `o200k_base`.
    O200k,
    /// Four characters per token.
    Chars4,
}

/// Constants of estimates (`rules/policies/sizes.toml`).
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct SizeRules {
    pub chars_per_token: CharsPerToken,
    /// Tokens of framing.
    pub framing: Framing,
    pub stretch_max: f64,
    pub inherited_tokens_min: u64,
    /// What sizes of blocks were made with.
    #[serde(skip)]
    pub estimator: Estimator,
}

/// Characters per token.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct CharsPerToken {
    /// What people and the client write, and the model's text.
    pub text: f64,
    pub thinking: f64,
    pub tool_use: f64,
    pub tool_result: f64,
}

/// Tokens that come with blocks whatever their length.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Framing {
    pub tool_use: f64,
    pub tool_result: f64,
    pub increment: f64,
    /// An image or document.
    pub media: f64,
}

impl SizeRules {
    /// Of the tokens of a block in a context, those of its text, so many code points of which are there; none if the block
    /// is no text. What is measured of a tool result has its framing in it, which no shortening removes; what is counted has none.
    pub fn text_tokens(&self, block: &Block, kept_chars: u32, tokens: u32) -> Option<u32> {
        match block.kind {
            BlockKind::Human | BlockKind::Injected | BlockKind::Summary | BlockKind::Text => Some(tokens),
            BlockKind::ToolResult => {
                let text = f64::from(kept_chars) / self.chars_per_token.tool_result;
                let whole = text + if self.is_framed(block) { self.framing_of(block) } else { 0.0 };
                Some(if whole > 0.0 { (f64::from(tokens) * (text / whole)) as u32 } else { 0 })
            }
            BlockKind::Thinking | BlockKind::ToolUsage | BlockKind::Media => None,
        }
    }

    /// Reads the sheet; `place` is where it stands, for messages. An error if it does not fit, or a ratio is not
    /// positive.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let rules: Self = fitting(text, place)?;
        let ratios = &rules.chars_per_token;
        let all = [ratios.text, ratios.thinking, ratios.tool_use, ratios.tool_result, rules.stretch_max];
        if all.iter().any(|ratio| !(ratio.is_finite() && *ratio > 0.0)) {
            return Err(Error::failed(format!("{place}: ratios must be above 0")));
        }
        Ok(rules)
    }

    /// Whether the size of a block has its framing in it: a vocabulary and a count of characters see its text alone.
    fn is_framed(&self, block: &Block) -> bool {
        match self.estimator {
            Estimator::Anchored | Estimator::Fitted => true,
            Estimator::Cl100k | Estimator::O200k => !block.is_counted(),
            Estimator::Chars4 => false,
        }
    }

    /// Tokens of a block by the estimator, unanchored.
    fn raw(&self, block: &Block) -> f64 {
        let counted = |vocabulary: Bpe| vocabulary.place().map_or(0.0, |place| f64::from(block.tokens[place]));
        match self.estimator {
            _ if self.is_framed(block) => self.estimate(block),
            Estimator::Cl100k => counted(Bpe::Cl100kBase),
            Estimator::O200k => counted(Bpe::O200kBase),
            _ => f64::from(block.chars) / 4.0,
        }
    }

    /// Estimated tokens of a block, with its framing.
    pub fn estimate(&self, block: &Block) -> f64 {
        let ratio = match block.kind {
            BlockKind::Thinking => self.chars_per_token.thinking,
            BlockKind::ToolUsage => self.chars_per_token.tool_use,
            BlockKind::ToolResult => self.chars_per_token.tool_result,
            _ => self.chars_per_token.text,
        };
        f64::from(block.chars) / ratio + self.framing_of(block)
    }

    /// Tokens that come with a block of this kind whatever the length of its text.
    pub fn framing_of(&self, block: &Block) -> f64 {
        match block.kind {
            BlockKind::ToolUsage => self.framing.tool_use,
            BlockKind::ToolResult => self.framing.tool_result + self.framing.media * f64::from(block.media),
            BlockKind::Media => self.framing.media,
            _ => 0.0,
        }
    }
}

/// Sizes of all blocks of a timeline.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockSizes {
    /// How blocks were estimated.
    pub rules: SizeRules,
    /// Tokens by block.
    pub tokens: Arc<[u32]>,
    /// By request: tokens that came with it and are in no block.
    pub residual: Vec<u32>,
    /// By chain: tokens of its static prefix (tools, system).
    pub prefix: Vec<u64>,
    /// By request: whether its increment was measured.
    pub anchored: Vec<bool>,
    /// By request: blocks and residuals that had been in the context and went before it, in order. The bill says that
    /// something went, the log not what.
    pub gone: BTreeMap<u32, Vec<ItemKey>>,
    /// By request: what is known before its bill if writes whose usage does not say it live for five minutes.
    pub priors: Arc<[Prior]>,
}

impl BlockSizes {
    /// Sizes by an estimator.
    pub fn new(timeline: &Timeline, estimator: Estimator, rules: &SizeRules) -> Self {
        let priors: Arc<[Prior]> = priors::learn(timeline, rules, CacheLifetime::FiveMinutes).into();
        let rules = SizeRules { estimator, ..rules.clone() };
        let mut sizes = Self {
            tokens: timeline.blocks.iter().map(|block| rules.raw(block).round() as u32).collect(),
            rules,
            residual: vec![0; timeline.requests.len()],
            prefix: prefixes(timeline, &priors),
            priors,
            anchored: vec![false; timeline.requests.len()],
            gone: BTreeMap::new(),
        };
        if estimator == Estimator::Anchored {
            let (settled, laid) = (vec![false; timeline.requests.len()], BTreeMap::new());
            Anchoring { timeline, sizes: &mut sizes, settled, laid }.all();
        }
        sizes
    }

    /// Tokens of some blocks together.
    pub fn of(&self, blocks: &Range<u32>) -> u64 {
        blocks.clone().map(|block| u64::from(self.tokens[block as usize])).sum()
    }

    /// By request: what is known before its bill; `unknown` is the lifetime of writes whose usage does not say it.
    pub fn priors(&self, timeline: &Timeline, unknown: CacheLifetime) -> Arc<[Prior]> {
        match unknown {
            CacheLifetime::FiveMinutes => Arc::clone(&self.priors),
            CacheLifetime::Hour => priors::learn(timeline, &self.rules, unknown).into(),
        }
    }

    /// Share of the requests that count whose increment was measured, as k of n.
    pub fn anchored_share(&self, timeline: &Timeline) -> (u64, u64) {
        let anchored = || timeline.counted().map(|(request, _)| self.anchored[request as usize]);
        (anchored().filter(|&anchored| anchored).count() as u64, anchored().count() as u64)
    }
}

/// Tokens of a context before its first message, as far as they are not explained by what came in.
pub fn opening(timeline: &Timeline, request: &Request, rules: &SizeRules) -> u64 {
    let inputs = &timeline.blocks[request.inputs.start as usize..request.inputs.end as usize];
    let estimate: f64 = inputs.iter().map(|block| rules.estimate(block)).sum();
    request.context().saturating_sub(estimate as u64)
}

/// Static prefixes by chain: what is known of each in the end, but never more than a context that begins with nothing. A
/// chain that was forked off another has that one's.
fn prefixes(timeline: &Timeline, priors: &[Prior]) -> Vec<u64> {
    let of = |chain: &Chain| {
        let known = chain.requests.clone().rev().find(|&index| timeline.request(index).context() > 0);
        let still = known.map_or(0, |index| priors[index as usize].still);
        let contexts = chain.requests.clone().map(|index| timeline.request(index).context());
        contexts.filter(|&context| context > 0).fold(still, u64::min)
    };
    let mut prefixes: Vec<u64> = timeline.chains.iter().map(of).collect();
    let mut forked: Vec<(Millis, usize, usize)> = Vec::new();
    for (index, chain) in timeline.chains.iter().enumerate() {
        let Some(segment) = timeline.segments.get(chain.segments.start as usize).filter(|first| first.after != NONE)
        else {
            continue;
        };
        let parent = timeline.request(segment.after).chain as usize;
        forked.push((timeline.request(segment.requests.start).start, index, parent));
    }
    // Forks of forks come later.
    forked.sort_unstable();
    forked.into_iter().for_each(|(_, index, parent)| prefixes[index] = prefixes[parent]);
    prefixes
}

struct Anchoring<'a> {
    timeline: &'a Timeline,
    sizes: &'a mut BlockSizes,
    /// By request: whether its answer has its final size.
    settled: Vec<bool>,
    /// By chain that is not at its end: the last context that was laid out, and of which request it is.
    laid: BTreeMap<u32, (u32, Vec<Item>)>,
}

impl Anchoring<'_> {
    /// Segment by segment in the order of the clock, so that what a segment begins with is settled before it; those of one
    /// chain in their order, whatever its clock says.
    fn all(&mut self) {
        let mut order: Vec<(Millis, u32)> = Vec::with_capacity(self.timeline.segments.len());
        for chain in &self.timeline.chains {
            let mut latest = Millis::MIN;
            for segment in chain.segments.clone() {
                let first = self.timeline.segments[segment as usize].requests.start;
                latest = latest.max(self.timeline.request(first).start);
                order.push((latest, segment));
            }
        }
        order.sort_unstable();
        order.into_iter().for_each(|(_, segment)| self.segment(segment));
    }

    fn segment(&mut self, segment: u32) {
        let Segment { chain, requests, after, cause } = self.timeline.segments[segment as usize].clone();
        // What the context went on from, and what came in since.
        let mut base = Some(after).filter(|&after| after != NONE && self.is_billed(after));
        let mut inputs: Vec<u32> = Vec::new();
        let mut whole = cause != SegmentCause::Shrink;
        for index in requests {
            let request = self.timeline.request(index);
            inputs.extend(request.inputs.clone());
            if request.context() > 0 {
                match base {
                    Some(base) if whole => self.grown(base, index, &inputs),
                    _ => self.opened(index),
                }
                self.settle(if base.is_some() { base } else { Some(after).filter(|&after| after != NONE) });
                (base, whole) = (Some(index), true);
                inputs.clear();
            } else {
                inputs.extend(request.outputs.clone());
            }
        }
        if self.timeline.chain(chain).segments.end == segment + 1 {
            self.laid.remove(&chain);
        }
    }

    /// Whatever size the answers before have now, they are part of a context that was laid out: that of a request, and
    /// those behind the last one that was billed before it.
    fn settle(&mut self, base: Option<u32>) {
        let Some(base) = base else { return };
        let first = self.timeline.segments[self.timeline.request(base).segment as usize].requests.start;
        for index in (first..=base).rev() {
            self.settled[index as usize] = true;
            if self.is_billed(index) {
                break;
            }
        }
    }

    fn is_billed(&self, request: u32) -> bool {
        self.timeline.request(request).context() > 0
    }

    /// Shares out the growth from one request to another that goes on from it.
    fn grown(&mut self, base: u32, index: u32, inputs: &[u32]) {
        let (last, request) = (self.timeline.request(base), self.timeline.request(index));
        let stretch = self.sizes.rules.stretch_max;
        let answer: Vec<u32> = last.outputs.clone().collect();
        let Some(growth) = request.context().checked_sub(last.context()) else { return self.opened(index) };
        let settled = std::mem::replace(&mut self.settled[base as usize], true);
        let rest = if settled {
            let Some(growth) = growth.checked_sub(self.sizes.of(&last.outputs)) else { return self.opened(index) };
            self.share(growth, inputs, stretch)
        } else if let Some(surplus) = surplus(last, request).filter(|_| !answer.is_empty()) {
            // A hidden request has cached the answer before, so its size is known by itself.
            let left = self.share(surplus.min(growth), &answer, f64::INFINITY);
            left + self.share(growth.saturating_sub(surplus), inputs, stretch)
        } else {
            let blocks: Vec<u32> = answer.iter().chain(inputs).copied().collect();
            self.share(growth, &blocks, stretch)
        };
        self.sizes.residual[index as usize] = saturated(rest);
        self.sizes.anchored[index as usize] = true;
    }

    /// A context that begins with nothing, or from which an unknown part went. Nothing was measured: blocks have their
    /// estimates, what is left came without a block.
    fn opened(&mut self, index: u32) {
        let request = self.timeline.request(index);
        let room = request.context().saturating_sub(self.sizes.prefix[request.chain as usize]);
        let inputs: Vec<u32> = request.inputs.clone().collect();
        let room = self.share(room, &inputs, 1.0);
        let mut items = self.before(index);
        let held = self.leave_out(index, &items, room);
        self.sizes.residual[index as usize] = saturated(room - held);
        laid_out::complete(self.timeline, self.sizes, index, &mut items);
        self.laid.insert(request.chain, (index, items));
    }

    /// What a context held before anything went, from the last one of its chain that was laid out. What has been laid out has
    /// its final size.
    fn before(&mut self, index: u32) -> Vec<Item> {
        let chain = self.timeline.request(index).chain;
        let start = self.timeline.chain(chain).requests.start;
        let (next, mut items) = self.laid.remove(&chain).map_or((start, Vec::new()), |(last, items)| (last + 1, items));
        for between in next..index {
            laid_out::step(self.timeline, self.sizes, between, &mut items);
        }
        laid_out::before(self.timeline, self.sizes, index, &mut items);
        items
    }

    /// Leaves out what must have gone so that the rest fits. Returns the tokens of what stays.
    fn leave_out(&mut self, index: u32, items: &[Item], room: u64) -> u64 {
        let mut held = view::tokens(items);
        if held <= room {
            return held;
        }
        let newest_first = (0..items.len()).rev();
        let order: Box<dyn Iterator<Item = usize>> = if self.timeline.request(index).marks.has(Marks::MICROCOMPACTION) {
            // Cleared results first, then other results, then the rest; the oldest of each first.
            let named = self.cleared(index);
            let mut order: Vec<usize> = newest_first.collect();
            order.sort_by_cached_key(|&at| (self.clearable(&named, items[at].key), at));
            Box::new(order.into_iter())
        } else {
            // Otherwise the conversation went back: the newest go.
            Box::new(newest_first)
        };
        let mut gone: Vec<usize> = Vec::new();
        for at in order {
            if held <= room {
                break;
            }
            held -= u64::from(items[at].tokens);
            gone.push(at);
        }
        gone.sort_unstable();
        self.sizes.gone.insert(index, gone.into_iter().map(|at| items[at].key).collect());
        held
    }

    /// The calls whose results a clearing before a request names.
    fn cleared(&self, index: u32) -> IdSet<Id> {
        let clearings = self.timeline.clearings.iter().filter(|clearing| clearing.request == index);
        clearings.flat_map(|clearing| &clearing.calls).copied().collect()
    }

    /// In which order a clearing takes things.
    fn clearable(&self, named: &IdSet<Id>, key: ItemKey) -> u8 {
        let ItemKey::Block(block) = key else { return 2 };
        let block = &self.timeline.blocks[block as usize];
        let id = self.timeline.calls.get(block.call as usize).map(|call| call.id);
        match block.kind {
            BlockKind::ToolResult if id.is_some_and(|id| named.contains(&id)) => 0,
            BlockKind::ToolResult => 1,
            _ => 2,
        }
    }

    /// Shares tokens out over blocks in proportion to their estimates, at most so many times each; returns what is left.
    fn share(&mut self, tokens: u64, blocks: &[u32], stretch: f64) -> u64 {
        let weights: Vec<u64> = blocks.iter().map(|&block| self.weight(block)).collect();
        let estimate = weights.iter().sum::<u64>() as f64 / WEIGHT_PER_TOKEN;
        let budget = if estimate == 0.0 { 0 } else { (estimate * stretch).round().min(tokens as f64) as u64 };
        let sizes = Arc::make_mut(&mut self.sizes.tokens);
        for (&block, part) in blocks.iter().zip(apportioned(budget, &weights)) {
            sizes[block as usize] = saturated(part);
        }
        tokens - budget
    }

    fn weight(&self, block: u32) -> u64 {
        (self.sizes.rules.estimate(&self.timeline.blocks[block as usize]) * WEIGHT_PER_TOKEN).round() as u64
    }
}

/// Weights are thousandths of an estimated token.
const WEIGHT_PER_TOKEN: f64 = 1_000.0;

/// Parts of a whole in proportion to weights, by largest remainder; the earlier of equals gets more. They sum to the whole
/// unless all weights are 0.
pub fn apportioned(whole: u64, weights: &[u64]) -> Vec<u64> {
    let all: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    if all == 0 {
        return vec![0; weights.len()];
    }
    // Dividing numbers of 128 bits takes many times as long, and is hardly ever needed.
    let saturated = u64::try_from(all).ok();
    let divided = |weight: u64| match (whole.checked_mul(weight), saturated) {
        (Some(scaled), Some(all)) => (scaled / all, u128::from(scaled % all)),
        _ => {
            let scaled = u128::from(whole) * u128::from(weight);
            ((scaled / all) as u64, scaled % all)
        }
    };
    let (mut parts, mut rests) = (Vec::with_capacity(weights.len()), Vec::with_capacity(weights.len()));
    for (at, &weight) in weights.iter().enumerate() {
        let (part, rest) = divided(weight);
        parts.push(part);
        rests.push((std::cmp::Reverse(rest), at));
    }
    let missing = (whole - parts.iter().sum::<u64>()) as usize;
    if missing > 0 {
        // Fewer are missing than there are parts: each lacks less than one.
        rests.select_nth_unstable(missing - 1);
        rests[..missing].iter().for_each(|&(_, at)| parts[at] += 1);
    }
    parts
}

/// What was read at a warm human turn beyond what had been written before: the answer before, cached by a request that is
/// not logged (policies.md F5). None where that cannot be told.
pub fn surplus(before: &Request, request: &Request) -> Option<u64> {
    let cached = before.cached();
    let tells = request.marks.has(Marks::HUMAN) && before.model == request.model && cached > 0;
    (tells && request.usage().cache_read > cached).then(|| request.usage().cache_read - cached)
}
