//! The value model of one tool, as it stands in `[tools.<name>]` and in the shipped annotations, with the names, spellings and
//! defaults of the published schema (Paper 3, "Value model").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How much an answer of the tool matters to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueClass {
    /// File content, search results.
    #[default]
    Critical,
    /// Improves the answer, dispensable.
    Supporting,
    /// First to go.
    Optional,
    /// The agent's own bookkeeping; never charged to a budget.
    AuditOnly,
}

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffectClass {
    /// Same input, same output, no state.
    Pure,
    /// No mutation, the result may change with time.
    ReadOnly,
    /// Edits files or local state.
    MutatesLocal,
    /// Edits remote state.
    MutatesExternal,
    /// Cannot be told statically (a shell).
    #[default]
    Indeterminate,
    /// A class that devboy does not know: the list of classes is open. Nothing allows a call ahead then.
    #[serde(other)]
    Other,
}

impl SideEffectClass {
    fn is_default(&self) -> bool {
        *self == Self::Indeterminate
    }
}

/// A named group of response fields with a common value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename = "part")]
pub struct FieldGroup {
    /// Field names; empty means all the rest.
    pub fields: Vec<String>,
    /// 0 … 1.
    pub estimated_value: f64,
    /// Whether the group is kept without being asked for.
    pub default_include: bool,
}

impl Default for FieldGroup {
    fn default() -> Self {
        Self { fields: Vec::new(), estimated_value: 0.5, default_include: true }
    }
}

/// What a call costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename = "part")]
pub struct CostModel {
    /// Median response size in KiB (1,024 bytes of UTF-8).
    pub typical_kb: f64,
    /// 99th percentile of the response size in KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_kb: Option<f64>,
    /// Median time from call to result in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms_p50: Option<u64>,
    /// Price of one call in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    /// How long an answer may be reused, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freshness_ttl_s: Option<u64>,
}

impl Default for CostModel {
    fn default() -> Self {
        Self { typical_kb: 1.0, max_kb: None, latency_ms_p50: None, dollars: None, freshness_ttl_s: None }
    }
}

/// A tool that tends to come next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename = "part")]
pub struct FollowUp {
    /// Live tool name.
    pub tool: String,
    /// Probability that it comes next, 0 … 1.
    #[serde(default = "half")]
    pub probability: f64,
    /// Field of the previous response that supplies the argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection: Option<String>,
    /// Argument of the next tool that receives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection_arg: Option<String>,
}

fn half() -> f64 {
    0.5
}

/// The value model of one tool, its keys in the order in which they are written. An empty table equals the default (critical,
/// 1 KiB, indeterminate).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename = "part")]
pub struct ToolModel {
    /// How much an answer matters.
    pub value_class: ValueClass,
    /// What a call does to the world.
    #[serde(skip_serializing_if = "SideEffectClass::is_default")]
    pub side_effect_class: SideEffectClass,
    /// Tools whose cached answers this call makes stale.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalidates: Vec<String>,
    /// Refuse after this many empty answers in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_fast_after_n: Option<u32>,
    /// Host whose rate limit the call counts against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit_host: Option<String>,
    /// `false` forbids speculation, `true` allows it for an indeterminate class; absent follows the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speculate: Option<bool>,
    /// Groups of response fields, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub field_groups: BTreeMap<String, FieldGroup>,
    /// Sizes, latency, price.
    pub cost_model: CostModel,
    /// Tools that tend to come next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follow_up: Vec<FollowUp>,
}
