//! How many tokens each block of a context has.
//!
//! No tokenizer is trusted: the growth of a context from one request to the next is billed and so exactly known, and the
//! blocks of that increment share it in proportion to estimates. What the log does not show (reminders, attachments) is
//! the residual of the request that brought it.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::model::timeline::{Block, BlockKind, Request, Timeline};

/// Where sizes come from (`--estimator`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
#[serde(deny_unknown_fields)]
pub struct SizeRules {
    /// Characters per token by kind of block.
    pub chars_per_token: CharsPerToken,
    /// Tokens of framing.
    pub framing: Framing,
    /// Blocks take at most this many times their estimate from an increment that no tool result explains.
    pub stretch_max: f64,
}

/// Characters per token.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CharsPerToken {
    /// What people and the client write, and the model's text.
    pub text: f64,
    /// Thinking.
    pub thinking: f64,
    /// Input of a call, as JSON.
    pub tool_use: f64,
    /// Results.
    pub tool_result: f64,
}

/// Tokens that come with blocks whatever their length.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Framing {
    /// Of a call.
    pub tool_use: f64,
    /// Of a result.
    pub tool_result: f64,
    /// Of an increment.
    pub increment: f64,
    /// An image or document.
    pub media: f64,
}

impl SizeRules {
    /// Reads the sheet; `place` is where it stands, for messages.
    ///
    /// # Errors
    /// If it does not fit, or a ratio is not positive.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let rules: Self = toml_edit::de::from_str(text).map_err(|cause| {
            Error::failed(format!("{place}: {cause}")).hint("compare it with the sheet that devboy ships")
        })?;
        let ratios = &rules.chars_per_token;
        let all = [ratios.text, ratios.thinking, ratios.tool_use, ratios.tool_result, rules.stretch_max];
        if all.iter().any(|ratio| !(ratio.is_finite() && *ratio > 0.0)) {
            return Err(Error::failed(format!("{place}: ratios must be above 0")));
        }
        Ok(rules)
    }

    /// Estimated tokens of a block, with its framing.
    pub fn estimate(&self, block: &Block) -> f64 {
        let (ratio, framing) = match block.kind {
            BlockKind::Human | BlockKind::Injected | BlockKind::Summary | BlockKind::Text => {
                (self.chars_per_token.text, 0.0)
            }
            BlockKind::Thinking => (self.chars_per_token.thinking, 0.0),
            BlockKind::ToolUse => (self.chars_per_token.tool_use, self.framing.tool_use),
            BlockKind::ToolResult => (self.chars_per_token.tool_result, self.framing.tool_result),
            BlockKind::Media => (self.chars_per_token.text, self.framing.media),
        };
        f64::from(block.chars) / ratio + framing
    }
}

/// Sizes of all blocks of a timeline.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    /// Tokens by block.
    pub tokens: Vec<u32>,
    /// By request: tokens that came with it and are in no block.
    pub residual: Vec<u32>,
    /// By chain: tokens of its static prefix (tools, system).
    pub prefix: Vec<u64>,
    /// By request: whether its increment was measured.
    pub anchored: Vec<bool>,
}

impl Sizes {
    /// Sizes by an estimator.
    pub fn new(timeline: &Timeline, estimator: Estimator, rules: &SizeRules) -> Self {
        let _ = (estimator, rules);
        Self {
            tokens: timeline.blocks.iter().map(|block| rules.estimate(block) as u32).collect(),
            residual: vec![0; timeline.requests.len()],
            prefix: vec![0; timeline.chains.len()],
            anchored: vec![false; timeline.requests.len()],
        }
    }

    /// Tokens of a request's context as these sizes have it: what a view without stages amounts to.
    pub fn context(&self, _timeline: &Timeline, request: &Request) -> u64 {
        request.context()
    }
}
