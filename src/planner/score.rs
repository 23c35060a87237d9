//! What a call is worth and what it costs, by its value model (Paper 3, "Knapsack algorithm").

use crate::planner::numbers::{Numbers, ScoreNumbers};
use crate::settings::tool_model::{CostModel, ToolModel, ValueClass};

/// What a call is expected to cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// UTF-8 bytes of the answer.
    pub bytes: u64,
    /// Tokens of the answer.
    pub tokens: u64,
}

impl Cost {
    /// `typical_kb` KiB in single precision, as the published schema holds it, cut to whole bytes and whole tokens. A
    /// ratio below one byte per token counts as one.
    pub fn of(cost: &CostModel, bytes_per_token: f64) -> Self {
        let bytes = (cost.typical_kb as f32 * 1024.0) as u64;
        Self { bytes, tokens: (bytes as f64 / bytes_per_token.max(1.0)) as u64 }
    }

    /// Tokens that a budget is charged: nothing for the agent's bookkeeping, at least 1 for all else.
    pub fn charged(self, class: ValueClass) -> u64 {
        if class == ValueClass::AuditOnly { 0 } else { self.tokens.max(1) }
    }
}

/// 1 and the value of every group that is left out by default and has a field whose name contains a keyword, up to the
/// cap. Letter case does not matter.
pub fn intent_boost<'k>(model: &ToolModel, keywords: impl IntoIterator<Item = &'k str>, numbers: &ScoreNumbers) -> f64 {
    let keywords: Vec<_> = keywords.into_iter().map(str::to_ascii_lowercase).collect();
    let is_meant = |field: &String| keywords.iter().any(|word| field.to_ascii_lowercase().contains(word));
    let groups = model.field_groups.values().filter(|group| !group.default_include);
    let meant = groups.filter(|group| group.fields.iter().any(is_meant));
    meant.fold(1.0, |boost: f64, group| boost + group.estimated_value).min(numbers.boost_max)
}

/// The published worth of a call: class and intent, whatever its probability. No host uses the published preset
/// `cost_aware`, by which slow and dear calls are worth less.
pub fn worth<'k>(model: &ToolModel, keywords: impl IntoIterator<Item = &'k str>, numbers: &Numbers) -> f64 {
    numbers.class_scores.of(model.value_class) * intent_boost(model, keywords, &numbers.score)
}
