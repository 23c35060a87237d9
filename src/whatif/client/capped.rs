//! Results of tools as the client would have shown them under a smaller limit: from the start of what was shown, a preview of
//! what is too long.

use std::sync::Arc;

use crate::logs::timeline::requests::{BlockKind, NONE, Timeline};
use crate::whatif::client::thresholds::Results;
use crate::whatif::sim::sizes::SizeRules;
use crate::whatif::sim::view::{ContextView, Item, ItemKey, RequestMoment, Stage, StageOutput};

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
    /// By block what was found of it: each stands in many contexts.
    known: Vec<BlockSize>,
}

/// What is known of a block.
#[derive(Clone, Copy, Default)]
enum BlockSize {
    /// Nothing yet.
    #[default]
    Unknown,
    /// It is not too long.
    Whole,
    /// Its tokens and characters under the limit.
    Cut(u32, u32),
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
        Self { limit, tokens, known: Vec::new() }
    }

    /// The item as it would have been shown. Whoever cut it before has the say.
    fn shown(&mut self, timeline: &Timeline, item: Item) -> Item {
        let ItemKey::Block(index) = item.key else { return item };
        if let BlockSize::Unknown = self.known[index as usize] {
            let is_whole = item.kept_chars >= timeline.blocks[index as usize].chars;
            let cut = is_whole.then(|| self.limit.cut(timeline, index, item.tokens)).flatten();
            self.known[index as usize] = cut.map_or(BlockSize::Whole, |(tokens, chars)| BlockSize::Cut(tokens, chars));
        }
        match self.known[index as usize] {
            BlockSize::Cut(tokens, kept_chars) => Item { tokens, kept_chars, ..item },
            _ => item,
        }
    }
}

impl Stage for Capped {
    fn begin(&mut self, timeline: &Timeline, _: u32) {
        self.known.resize(timeline.blocks.len(), BlockSize::Unknown);
    }

    fn may_change(&self, timeline: &Timeline, chain: u32, _: u64) -> bool {
        let is_cut = |block: u32| self.limit.cut(timeline, block, self.tokens[block as usize]).is_some();
        timeline.blocks_of(chain).is_none_or(|mut blocks| blocks.any(is_cut))
    }

    fn apply(&mut self, moment: &RequestMoment<'_>, view: &mut ContextView, _: &mut StageOutput) {
        for item in &mut view.items {
            *item = self.shown(moment.timeline, *item);
        }
    }
}
