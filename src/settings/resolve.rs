//! Answers questions about the configuration: what holds for this endpoint, this model, this kind of session.
//!
//! Pure functions, so that the replay, the rules and `tune show` cannot disagree.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Serialize};

use super::{AgentProfile, DataProfile, Hints, LlmProfile, Mckp, Settings, TokenizerProfile, effective};
use crate::base::key_path::KeyPath;
use crate::base::model_id::normalise;
use crate::base::toml;
use crate::settings::tool_model::ToolModel;

/// The value of an axis that lets the session decide.
const AUTO: &str = "auto";
/// The variant for everything that has none of its own.
const DEFAULT: &str = "default";
/// Matches every tool and every model.
const ANY: &str = "*";

static THRESHOLDS: LazyLock<Thresholds> = LazyLock::new(|| {
    let text = include_str!("../../rules/settings/agent_thresholds.toml");
    toml::parsed(text).expect("the shipped thresholds fit their type; a test reads them")
});

#[derive(Deserialize)]
struct Thresholds {
    marathon_refactor: Marathon,
    file_search_heavy: FileSearch,
}

#[derive(Deserialize)]
struct Marathon {
    min_events: f64,
    min_compactions: f64,
}

#[derive(Deserialize)]
struct FileSearch {
    max_events: f64,
    min_read_share: f64,
}

/// How a session works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum AgentClass {
    /// Neither of the others.
    Default,
    /// Short and mostly reading.
    FileSearchHeavy,
    /// Long, with several compactions.
    MarathonRefactor,
}

/// Classifies a session by its number of events, its number of compactions and the share of its events that read files.
pub fn classify_agent(events: f64, compactions: f64, read_share: f64) -> AgentClass {
    let (marathon, search) = (&THRESHOLDS.marathon_refactor, &THRESHOLDS.file_search_heavy);
    if events >= marathon.min_events && compactions >= marathon.min_compactions {
        AgentClass::MarathonRefactor
    } else if events <= search.max_events && read_share >= search.min_read_share {
        AgentClass::FileSearchHeavy
    } else {
        AgentClass::Default
    }
}

/// How a variant was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matched {
    /// By its name.
    Exact,
    /// By its name, apart from vendor, date and separators.
    Normalised,
    /// Not found; the variant `default` stands in.
    Default,
    /// Not found, and there is no `default` either.
    Bare,
}

/// A profile and how it came to be chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChosenProfile<P> {
    /// Name of the variant; `None` for the bare profile.
    pub variant: Option<String>,
    /// Its values.
    pub profile: P,
    /// How it was found.
    pub matched: Matched,
}

/// What the pipeline reads for one session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionView {
    /// The model.
    pub llm: ChosenProfile<LlmProfile>,
    /// Its tokenizer.
    pub tokenizer: ChosenProfile<TokenizerProfile>,
    /// The way of working.
    pub agent: ChosenProfile<AgentProfile>,
    /// The hint policy.
    pub hints: Hints,
    /// The router, with the recursion depth of the agent profile.
    pub mckp: Mckp,
}

impl Settings {
    /// Everything that depends on the session, resolved.
    pub fn for_session(&self, model_id: Option<&str>, class: AgentClass) -> SessionView {
        let agent = self.agent_variant_for(class);
        let mckp = Mckp { recursion_depth: agent.profile.mckp_recursion_depth, ..self.mckp.clone() };
        SessionView {
            llm: self.llm_variant_for(model_id),
            tokenizer: self.tokenizer_for(model_id),
            hints: self.hints.clone(),
            agent,
            mckp,
        }
    }

    /// The model profile: the active one, else the one of the session's model id.
    pub fn llm_variant_for(&self, model_id: Option<&str>) -> ChosenProfile<LlmProfile> {
        let axis = &self.profiles.llm;
        let wanted = named(&axis.active).or(model_id).unwrap_or(DEFAULT);
        exact(&axis.variants, wanted)
            .or_else(|| normalised(&axis.variants, wanted))
            .unwrap_or_else(|| stand_in(&axis.variants, "llm"))
    }

    /// The tokenizer: the active one, else the one that the model profile names; the bare one when it is unknown.
    pub fn tokenizer_for(&self, model_id: Option<&str>) -> ChosenProfile<TokenizerProfile> {
        let axis = &self.profiles.tokenizer;
        let by_model = || self.llm_variant_for(model_id).profile.tokenizer;
        let wanted = named(&axis.active).map_or_else(by_model, str::to_owned);
        exact(&axis.variants, &wanted).unwrap_or_else(|| bare("tokenizer"))
    }

    /// The agent profile: the active one, else the one of the session's class.
    pub fn agent_variant_for(&self, class: AgentClass) -> ChosenProfile<AgentProfile> {
        let axis = &self.profiles.agent;
        let wanted = named(&axis.active).unwrap_or(class.into_str());
        exact(&axis.variants, wanted).unwrap_or_else(|| stand_in(&axis.variants, "agent"))
    }

    /// The data profile: the active one whatever the endpoint is, else the first by name whose pattern is the endpoint
    /// or a prefix of it.
    pub fn data_variant_for(&self, endpoint: &str) -> Option<(&str, &DataProfile)> {
        let axis = &self.profiles.data;
        let found = match named(&axis.active) {
            Some(name) => axis.variants.get_key_value(name),
            None => axis.variants.iter().find(|(_, profile)| endpoint.starts_with(&profile.endpoint_pattern)),
        };
        found.map(|(name, profile)| (name.as_str(), profile))
    }

    /// The format that an endpoint prefers: of its data profile, else its template.
    pub fn preferred_format_for(&self, endpoint: &str) -> Option<&str> {
        let by_data = self.data_variant_for(endpoint).and_then(|(_, profile)| profile.preferred_format.as_deref());
        by_data.or_else(|| self.template_for(endpoint))
    }

    /// The template of an endpoint.
    pub fn template_for(&self, endpoint: &str) -> Option<&str> {
        let own = self.endpoint_overrides.get(endpoint).and_then(|own| own.template_id.as_ref());
        own.or_else(|| self.templates.endpoint_overrides.get(endpoint)).map(String::as_str)
    }

    /// Size of the cache that all endpoints share: the largest value anywhere, at least 1.
    pub fn shared_lru_size(&self) -> usize {
        let overrides = self.endpoint_overrides.values().filter_map(|own| own.lru_size);
        overrides.chain([self.dedup.lru_size, 1]).max().unwrap_or(1)
    }

    /// The value model of a tool: its own, else that of `*`. They are never mixed.
    pub fn tool_model_for(&self, tool: &str) -> Option<&ToolModel> {
        self.tools.get(tool).or_else(|| self.tools.get(ANY))
    }

    /// Whether hints of this type may be shown to this model. The caller keeps count of `max_per_session`.
    pub fn hint_allowed(&self, hint_type: &str, model_id: &str) -> bool {
        let meant = |model: &String| model == ANY || model == model_id || normalise(model) == normalise(model_id);
        let policy = self.hints.types.get(hint_type);
        policy.is_some_and(|policy| policy.enabled && policy.applies_to_models.iter().any(meant))
    }
}

/// The variant that an axis names, unless it leaves the choice to the session.
fn named(active: &str) -> Option<&str> {
    (!active.is_empty() && active != AUTO).then_some(active)
}

fn exact<P: Clone>(variants: &BTreeMap<String, P>, wanted: &str) -> Option<ChosenProfile<P>> {
    variants.get(wanted).map(|profile| chosen(wanted, profile, Matched::Exact))
}

fn normalised<P: Clone>(variants: &BTreeMap<String, P>, wanted: &str) -> Option<ChosenProfile<P>> {
    let wanted = normalise(wanted);
    let found = variants.iter().find(|(name, _)| normalise(name) == wanted);
    found.map(|(name, profile)| chosen(name, profile, Matched::Normalised))
}

fn stand_in<P: Clone + DeserializeOwned>(variants: &BTreeMap<String, P>, axis: &str) -> ChosenProfile<P> {
    let default = variants.get(DEFAULT).map(|profile| chosen(DEFAULT, profile, Matched::Default));
    default.unwrap_or_else(|| bare(axis))
}

fn chosen<P: Clone>(variant: &str, profile: &P, matched: Matched) -> ChosenProfile<P> {
    ChosenProfile { variant: Some(variant.to_owned()), profile: profile.clone(), matched }
}

fn bare<P: DeserializeOwned>(axis: &str) -> ChosenProfile<P> {
    let value = effective::fallback(&KeyPath::from(["profiles", axis, "variants", "<id>"]));
    let profile = value.and_then(|value| P::deserialize(value.clone().into_deserializer()).ok());
    let profile = profile.expect("the shipped bare profiles fit their types; a test reads each");
    ChosenProfile { variant: None, profile, matched: Matched::Bare }
}
