//! Results of tools as the client would have shown them under a smaller limit: a preview of what is too long. And what a limit
//! keeps back and a later step names: nothing else in the context says it, so the model has to look it up where the client
//! stored the rest, and has it in its context from then on.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::logs::timeline::requests::{BlockKind, NONE, Reference, ReferenceKind, Timeline};
use crate::whatif::client::thresholds::Results;
use crate::whatif::sim::breakage::detect::ShownBlocks;
use crate::whatif::sim::breakage::rows::{Break, BreakClass};
use crate::whatif::sim::sizes::SizeRules;
use crate::whatif::sim::view::{ContextView, Given, Item, ItemKey, Moment, Stage, StageOutput};

/// How long a result may be, and of which tools.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Limit {
    /// Characters of shell output that succeeded; more is stored in a file.
    BashChars(u64),
    /// Tokens of a result of an MCP tool; more is stored in a file.
    McpTokens(u64),
    /// Tokens of a reading; more comes in pages, of which this is the first.
    ReadTokens(u64),
}

/// What a limit leaves of a result.
pub struct ResultLimit {
    limit: Limit,
    results: Results,
    sizes: SizeRules,
}

/// The stage.
pub struct Capped {
    limit: ResultLimit,
    /// Sizes of [`Timeline::blocks`].
    tokens: Arc<[u32]>,
    /// By chain: how many results of its contexts are cut, or more.
    cuts: OnceCell<Vec<u64>>,
}

impl ResultLimit {
    /// Under a limit.
    pub fn new(limit: Limit, results: Results, sizes: SizeRules) -> Self {
        Self { limit, results, sizes }
    }

    fn concerns(&self, tool: &str) -> bool {
        let listed = |tools: &[String]| tools.iter().any(|known| known == tool);
        match self.limit {
            Limit::BashChars(_) => listed(&self.results.bash_tools),
            Limit::McpTokens(_) => tool.starts_with("mcp__"),
            Limit::ReadTokens(_) => listed(&self.results.read_tools),
        }
    }

    /// Tokens and characters that a block of so many tokens would have had; none if it is not too long.
    pub fn cut(&self, timeline: &Timeline, block: u32, tokens: u32) -> Option<(u32, u32)> {
        let block = &timeline.blocks[block as usize];
        if block.kind != BlockKind::ToolResult || block.call == NONE || block.chars == 0 {
            return None;
        }
        let call = &timeline.calls[block.call as usize];
        // What failed is shown by other rules.
        if call.is_error || !self.concerns(timeline.names.text(call.tool)) {
            return None;
        }
        let text = self.sizes.text_tokens(block, block.chars, tokens).unwrap_or_default();
        let chars = u64::from(block.chars);
        let page = |tokens: u64| u32::try_from(chars * tokens / u64::from(text.max(1))).unwrap_or(block.chars);
        let (is_long, kept_chars) = match self.limit {
            Limit::BashChars(most) => (chars > most, self.results.preview_chars),
            Limit::McpTokens(most) => (u64::from(text) > most, self.results.preview_chars),
            Limit::ReadTokens(most) => (u64::from(text) > most, page(most)),
        };
        let kept_chars = kept_chars.min(block.chars);
        let kept = (u64::from(text) * u64::from(kept_chars) / chars) as u32;
        let shown = tokens - text + kept + self.results.preview_tokens;
        (is_long && shown < tokens).then_some((shown, kept_chars))
    }
}

impl Capped {
    /// Shows results under a limit; `tokens` are the sizes of [`Timeline::blocks`].
    pub fn new(limit: ResultLimit, tokens: Arc<[u32]>) -> Self {
        Self { limit, tokens, cuts: OnceCell::new() }
    }

    /// The item as it would have been shown. Whoever cut it before has the say.
    fn shown(&self, timeline: &Timeline, item: Item) -> Item {
        let ItemKey::Block(index) = item.key else { return item };
        let is_whole = item.kept_chars >= timeline.blocks[index as usize].chars;
        let cut = is_whole.then(|| self.limit.cut(timeline, index, item.tokens)).flatten();
        cut.map_or(item, |(tokens, kept_chars)| Item { tokens, kept_chars, ..item })
    }
}

impl Stage for Capped {
    fn begin(&mut self, _: &Timeline, _: u32) {}

    fn may_change(&self, timeline: &Timeline, chain: u32, _: u64) -> bool {
        let is_cut = |block: u32| self.limit.cut(timeline, block, self.tokens[block as usize]).is_some();
        let cuts = self.cuts.get_or_init(|| timeline.sums_by_chain(|block| is_cut(block).into()));
        cuts[chain as usize] > 0
    }

    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, _: &mut StageOutput) -> usize {
        view.follow(given.view, given.kept, given.kept);
        for item in &mut view.items[given.kept..] {
            *item = self.shown(moment.timeline, *item);
        }
        given.kept
    }
}

/// The rest of a result, looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LookUp {
    /// Index of the first request whose answer needs it.
    pub request: u32,
    /// Index of the result.
    pub block: u32,
    /// Tokens that had been kept back.
    pub tokens: u32,
}

impl LookUp {
    /// The later requests of the chain whose context in the log has the result, segment by segment.
    fn carried(self, timeline: &Timeline) -> impl Iterator<Item = Range<u32>> {
        let own = timeline.request(self.request).segment;
        let chain = timeline.segments[own as usize].chain;
        let later = (own..).zip(&timeline.segments[own as usize..]).take_while(move |(_, later)| later.chain == chain);
        // The contexts of a segment only grow.
        let has_result = move |requests: &Range<u32>| {
            !requests.is_empty() && ShownBlocks::to(timeline, requests.start).contains(self.block)
        };
        let having = later.filter(move |(index, later)| *index == own || has_result(&later.requests));
        having.map(move |(_, later)| later.requests.start.max(self.request + 1)..later.requests.end)
    }
}

/// Tokens that later requests have to read because they had been looked up, by request.
pub fn carried(timeline: &Timeline, looked_up: &[LookUp]) -> Vec<(u32, u64)> {
    let mut steps: BTreeMap<u32, i64> = BTreeMap::new();
    for one in looked_up {
        for requests in one.carried(timeline).filter(|requests| !requests.is_empty()) {
            *steps.entry(requests.start).or_default() += i64::from(one.tokens);
            *steps.entry(requests.end).or_default() -= i64::from(one.tokens);
        }
    }
    let mut carried = Vec::new();
    let (mut tokens, mut from) = (0_i64, 0);
    for (at, step) in steps {
        if tokens > 0 {
            carried.extend((from..at).map(|request| (request, tokens.unsigned_abs())));
        }
        (tokens, from) = (tokens + step, at);
    }
    carried
}

/// The results that are looked up under some limits, each once; `tokens` are the sizes of [`Timeline::blocks`].
pub fn lookups(timeline: &Timeline, limits: &[ResultLimit], tokens: &[u32], breaks: &[Break]) -> Vec<LookUp> {
    if limits.is_empty() {
        return Vec::new();
    }
    // A file that is read again is paid for as a reading.
    let is_unpaid = |one: &&Break| {
        one.class == BreakClass::RefLost || one.class == BreakClass::RereadPredicted && one.reading == NONE
    };
    let unpaid: BTreeSet<(u32, u32)> = breaks.iter().filter(is_unpaid).map(|one| (one.request, one.call)).collect();
    let mut found: BTreeMap<u32, LookUp> = BTreeMap::new();
    for reference in timeline.references.iter().filter(|known| unpaid.contains(&(known.request, known.call))) {
        if let Some(lost) = kept_back(timeline, limits, tokens, reference) {
            let known = found.entry(lost.block).or_insert(lost);
            known.request = known.request.min(lost.request);
        }
    }
    found.into_values().collect()
}

/// The latest result that says what is referred to, if it stands in the context only where a limit keeps it back.
fn kept_back(timeline: &Timeline, limits: &[ResultLimit], tokens: &[u32], reference: &Reference) -> Option<LookUp> {
    if reference.kind == ReferenceKind::EditSource {
        return None;
    }
    let context = ShownBlocks::to(timeline, reference.request);
    let sources = &timeline.sources[reference.sources.start as usize..reference.sources.end as usize];
    let mut latest = None;
    for source in sources.iter().filter(|source| context.contains(source.block)) {
        let whole = tokens[source.block as usize];
        let (shown, kept) = limits.iter().find_map(|limit| limit.cut(timeline, source.block, whole))?;
        if source.end_chars <= kept {
            return None;
        }
        latest = Some(LookUp { request: reference.request, block: source.block, tokens: whole - shown });
    }
    latest
}
