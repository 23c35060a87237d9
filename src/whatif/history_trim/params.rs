//! The parameters of the policy, which values make sense, and the numbers of `rules/policies/history_trim.toml` as types.

use serde::Deserialize;

use crate::base::data::fitting;
use crate::base::error::{Error, Result};
use crate::whatif::history_trim::outcome::CapNumbers;
use crate::whatif::history_trim::plan::{Caps, CutNumbers};

/// `[params]` of the sheet, which says what each one does.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Params {
    /// Whether anything is done at all.
    pub history_trimming: bool,
    /// The router's old name of `history_trimming`; where it is given, it decides.
    #[serde(default)]
    pub enabled: Option<bool>,
    pub max_history_tokens: u32,
    /// Exchanges that stay as they are; with 0 everything is old.
    pub keep_recent_exchanges: u32,
    pub keep_recent_user_turns_in_chained_tool_calls: u32,
    pub skip_router_on_tool_results: bool,
    /// Cap for messages next to the boundary in tokens, 0 for the computed one.
    pub old_message_max_tokens: u32,
    pub oldest_message_max_tokens: u32,
    pub old_tool_result_max_tokens: u32,
    pub oldest_tool_result_max_tokens: u32,
    /// Whether the router's oddities are kept.
    pub fidelity: TrimSource,
    pub trim_thinking: bool,
    pub cut: CutStyle,
    pub sticky: bool,
    pub sticky_step: u32,
    pub segment: SegmentRule,
    pub instruction_tokens: u32,
}

/// Whose rule is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrimSource {
    /// The router's.
    Upstream,
    /// The same with its oddities mended.
    Sane,
}

/// What is kept of a text that is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutStyle {
    Head,
    /// Its head and its tail. What stood in the tail counts as lost all the same where breaks are looked for.
    HeadTail,
}

/// Where a history begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentRule {
    /// At each compaction.
    RespectCompaction,
}

impl Params {
    /// Whether anything is done at all.
    pub fn is_on(&self) -> bool {
        self.enabled.unwrap_or(self.history_trimming)
    }

    /// Whether every message with the role of the user is an exchange, as the router counts, or only a person's.
    pub fn counts_user_role(&self) -> bool {
        self.fidelity == TrimSource::Upstream
    }

    /// Whether requests that continue a chain of tool calls have a boundary and a budget of their own.
    pub fn treats_continuations_apart(&self) -> bool {
        self.fidelity == TrimSource::Upstream && self.skip_router_on_tool_results
    }

    /// The caps that are set instead of computed; 0 where none is.
    pub(crate) fn overrides(&self) -> Caps {
        Caps {
            message_near: self.old_message_max_tokens,
            message_oldest: self.oldest_message_max_tokens,
            tool_near: self.old_tool_result_max_tokens,
            tool_oldest: self.oldest_tool_result_max_tokens,
        }
    }

    pub fn check(&self) -> Result<()> {
        if self.max_history_tokens == 0 {
            return Err(Error::usage("max_history_tokens = 0 leaves no room for any message")
                .hint("a budget without limit is 1000000000"));
        }
        if self.sticky && self.sticky_step == 0 {
            return Err(Error::usage("sticky_step = 0: cuts cannot advance every 0 exchanges")
                .hint("1 advances at every exchange; `sticky=false` at every request"));
        }
        Ok(())
    }
}

/// All numbers of the policy; the file says where each comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct HistoryTrimThresholds {
    pub params: Params,
    pub caps: CapNumbers,
    pub cutting: CutNumbers,
    pub counting: CountNumbers,
    /// How results are shown.
    pub report: ReportNumbers,
    pub variant: Vec<Variant>,
}

/// `[counting]`: how the router counts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CountNumbers {
    /// Tokens of each message besides role and text.
    pub message_tokens: u32,
    pub role_tokens: u32,
    /// Tokens of the conversation besides its messages.
    pub reply_tokens: u32,
}

/// `[report]`: rows and margins.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReportNumbers {
    pub ages: Vec<u32>,
    pub explain_old_messages: Vec<u32>,
}

/// A `[[variant]]`: parameters that differ from those that are set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Variant {
    pub name: String,
    pub elsewhere: Option<String>,
    history_trimming: Option<bool>,
    keep_recent_exchanges: Option<u32>,
    max_history_tokens: Option<u32>,
    keep_recent_user_turns_in_chained_tool_calls: Option<u32>,
    fidelity: Option<TrimSource>,
    sticky: Option<bool>,
    sticky_step: Option<u32>,
}

impl Variant {
    /// These parameters, changed as the variant says.
    pub fn params(&self, base: &Params) -> Params {
        Params {
            history_trimming: self.history_trimming.unwrap_or(base.history_trimming),
            enabled: None,
            keep_recent_exchanges: self.keep_recent_exchanges.unwrap_or(base.keep_recent_exchanges),
            max_history_tokens: self.max_history_tokens.unwrap_or(base.max_history_tokens),
            keep_recent_user_turns_in_chained_tool_calls: self
                .keep_recent_user_turns_in_chained_tool_calls
                .unwrap_or(base.keep_recent_user_turns_in_chained_tool_calls),
            fidelity: self.fidelity.unwrap_or(base.fidelity),
            sticky: self.sticky.unwrap_or(base.sticky),
            sticky_step: self.sticky_step.unwrap_or(base.sticky_step),
            ..base.clone()
        }
    }
}

impl HistoryTrimThresholds {
    /// Reads a sheet.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let fault = |cause: &dyn std::fmt::Display| Error::failed(format!("{place}: {cause}"));
        let thresholds: Self = fitting(text, place)?;
        thresholds.params.check().map_err(|cause| fault(&cause.message))?;
        if !thresholds.cutting.ends() {
            return Err(fault(&"cutting.shrink_to_pct must be below 100, or no text ever becomes short enough"));
        }
        if thresholds.report.ages.first() != Some(&0) || !thresholds.report.ages.is_sorted_by(|a, b| a < b) {
            return Err(fault(&"report.ages must ascend from 0"));
        }
        Ok(thresholds)
    }
}
