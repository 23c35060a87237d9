//! The sections of the configuration as types, with the names of the file, as far as devboy asks for them. The values come from
//! `rules/settings/`; what may stand in a section says the schema.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IntoDeserializer};
use toml_edit::Value;

use crate::base::tokenizer::Bpe;
use crate::settings::tool_model::ToolModel;

/// The whole configuration, every value filled in.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Settings {
    /// Always the current version in memory.
    pub schema_version: u32,
    /// L0: repeated answers.
    pub dedup: Dedup,
    /// L1: a fixed format per endpoint.
    pub templates: Templates,
    /// L2: the format router.
    pub mckp: Mckp,
    /// What the live pipeline records.
    pub telemetry: TelemetrySection,
    /// Deviations of single endpoints.
    pub endpoint_overrides: BTreeMap<String, EndpointOverride>,
    /// Tokenizers, models, agents, data.
    pub profiles: Profiles,
    /// Which hints may be shown.
    pub hints: Hints,
    /// Value models by live tool name; `*` stands for all others.
    pub tools: BTreeMap<String, ToolModel>,
    pub enrichment: Enrichment,
}

impl Settings {
    /// Puts a section, named as in the file, into its place. An error if it does not fit.
    pub(super) fn put(&mut self, section: &str, value: Value) -> Result<(), toml_edit::de::Error> {
        fn read<T: DeserializeOwned>(place: &mut T, value: Value) -> Result<(), toml_edit::de::Error> {
            *place = T::deserialize(value.into_deserializer())?;
            Ok(())
        }
        match section {
            "schema_version" => read(&mut self.schema_version, value),
            "dedup" => read(&mut self.dedup, value),
            "templates" => read(&mut self.templates, value),
            "mckp" => read(&mut self.mckp, value),
            "telemetry" => read(&mut self.telemetry, value),
            "endpoint_overrides" => read(&mut self.endpoint_overrides, value),
            "profiles" => read(&mut self.profiles, value),
            "hints" => read(&mut self.hints, value),
            "tools" => read(&mut self.tools, value),
            "enrichment" => read(&mut self.enrichment, value),
            _ => Ok(()),
        }
    }
}

/// `[dedup]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Dedup {
    /// Answers remembered per context.
    pub lru_size: usize,
    /// Length of the hint that replaces a repeated answer.
    pub hint_verbosity: Verbosity,
    /// Whether nearly equal answers are replaced too.
    pub near_ref_enabled: bool,
    /// Smallest body that is looked up, in bytes.
    pub min_body_chars: usize,
    /// Endpoints switched on or off; an absent one is on.
    pub enabled_per_endpoint: BTreeMap<String, bool>,
}

/// How much a hint says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verbosity {
    /// The bare reference.
    Terse,
    /// The reference and what it refers to.
    Standard,
    Verbose,
}

/// `[templates]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Templates {
    /// Templates in use.
    pub active: Vec<String>,
    /// Template per endpoint.
    pub endpoint_overrides: BTreeMap<String, String>,
}

/// `[mckp]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Mckp {
    /// How deep the router looks into nested values.
    pub recursion_depth: usize,
    /// Formats that it may choose.
    pub formats_enabled: Vec<String>,
    /// From which size on a shape counts as one.
    pub shape_thresholds: ShapeThresholds,
}

/// `[mckp.shape_thresholds]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ShapeThresholds {
    pub markdown_table_min_cols: usize,
    pub array_of_objects_min_items: usize,
    /// Share of the objects that have the same keys.
    pub array_of_objects_min_key_stability: f64,
    pub flat_object_min_fields: usize,
}

/// `[telemetry]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TelemetrySection {
    /// Directory of the events; absent means the writer's own.
    pub path: Option<String>,
}

/// `[endpoint_overrides.<endpoint>]`
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct EndpointOverride {
    /// Instead of `dedup.enabled_per_endpoint`.
    pub dedup_enabled: Option<bool>,
    /// Instead of `dedup.lru_size`; can only enlarge it.
    pub lru_size: Option<usize>,
    /// Instead of `templates.endpoint_overrides`.
    pub template_id: Option<String>,
    /// Instead of `dedup.min_body_chars`.
    pub min_body_chars: Option<usize>,
}

/// `[profiles]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Profiles {
    /// What a token costs.
    pub tokenizer: Axis<TokenizerProfile>,
    /// What the model can take.
    pub llm: Axis<LlmProfile>,
    /// How the session works.
    pub agent: Axis<AgentProfile>,
    /// What an endpoint returns.
    pub data: Axis<DataProfile>,
}

/// One of the axes of `[profiles]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Axis<P> {
    /// A variant, or `auto`: of tokenizers the one that the model names, of models the one of the session's model id, of agents
    /// the one of the session's own numbers, of data the first whose pattern fits the endpoint.
    pub active: String,
    /// By name.
    pub variants: BTreeMap<String, P>,
}

/// One tokenizer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TokenizerProfile {
    /// Ratio of the heuristic counter.
    pub chars_per_token: f64,
    pub bpe: Bpe,
}

/// One model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct LlmProfile {
    pub tokenizer: String,
    /// Whether keys are repeated rather than implied.
    pub prefer_explicit_keys: bool,
    /// Tokens.
    pub context_window: u32,
    /// Largest nested value inside a cell; absent means no limit.
    pub max_inline_nested: Option<u32>,
}

/// One way of working.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AgentProfile {
    /// Overrides `mckp.recursion_depth`.
    pub mckp_recursion_depth: usize,
    /// Whether nearly equal answers are replaced.
    pub near_ref_enabled: bool,
}

/// One kind of answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct DataProfile {
    /// An endpoint or a prefix of one.
    pub endpoint_pattern: String,
    /// Template to use.
    pub preferred_format: Option<String>,
}

/// `[hints]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Hints {
    /// By id.
    pub types: BTreeMap<String, HintType>,
}

/// One type of hint.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct HintType {
    /// Whether it may be shown at all.
    pub enabled: bool,
    /// How often in one session; absent means no limit.
    pub max_per_session: Option<u32>,
    /// Model ids, or `*`.
    pub applies_to_models: Vec<String>,
}

/// `[enrichment]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Enrichment {
    /// Whether anything is prefetched.
    pub enabled: bool,
    pub max_parallel_prefetches: u32,
    /// Tokens per turn.
    pub prefetch_budget_tokens: u32,
    /// How long an answer waits for a prefetch.
    pub prefetch_timeout_ms: u32,
    /// Whether the cap per host holds.
    pub respect_rate_limits: bool,
}
