//! The numbers of `rules/policies/history_trim.toml` as types.

use serde::Deserialize;

use crate::base::data::fitting;
use crate::base::error::{Error, Result};
use crate::whatif::history_trim::caps::CutNumbers;
use crate::whatif::history_trim::outcome::CapNumbers;
use crate::whatif::history_trim::params::{Params, TrimSource};

/// All numbers of the policy; the file says where each comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryTrimThresholds {
    /// Defaults of the parameters.
    pub params: Params,
    /// The formulas of the caps.
    pub caps: CapNumbers,
    /// How a text is cut.
    pub cutting: CutNumbers,
    /// How a conversation is counted.
    pub counting: CountNumbers,
    /// How results are shown.
    pub report: ReportNumbers,
    /// Settings to print side by side.
    pub variant: Vec<Variant>,
}

/// `[counting]`: how the router counts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountNumbers {
    /// Tokens of each message besides role and text.
    pub message_tokens: u32,
    /// Tokens of a role.
    pub role_tokens: u32,
    /// Tokens of the conversation besides its messages.
    pub reply_tokens: u32,
}

/// `[report]`: rows and margins.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportNumbers {
    /// Ages at which a row begins, ascending from 0.
    pub ages: Vec<u32>,
    /// Numbers of old messages for which `--explain` works the formulas out.
    pub explain_old_messages: Vec<u32>,
}

/// A `[[variant]]`: parameters that differ from those that are set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// What it cost in other logs, in per cent: writes for 5 minutes / for an hour.
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
    ///
    /// # Errors
    /// If it does not fit, with its `place`.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let fault = |cause: &dyn std::fmt::Display| Error::failed(format!("{place}: {cause}"));
        let sheet: Self = fitting(text, place)?;
        sheet.params.check().map_err(|cause| fault(&cause.message))?;
        if !sheet.cutting.ends() {
            return Err(fault(&"cutting.shrink_to_pct must be below 100, or no text ever becomes short enough"));
        }
        if sheet.report.ages.first() != Some(&0) || !sheet.report.ages.is_sorted_by(|a, b| a < b) {
            return Err(fault(&"report.ages must ascend from 0"));
        }
        Ok(sheet)
    }
}
