//! Answers questions about the configuration, so that the replay, the rules and `tune show` cannot disagree: what holds for
//! this endpoint, this model, this kind of session.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Serialize};

use super::effective;
use super::sections::{AgentProfile, Axis, DataProfile, LlmProfile, Profiles, Settings, TokenizerProfile};
use crate::base::key_path::KeyPath;
use crate::base::model_id::normalise;
use crate::base::toml;
use crate::settings::tool_model::ToolModel;

/// The value of an axis that lets the session decide.
pub const AUTO: &str = "auto";
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

/// Classifies a session by its number of events, how many of them read files, and its number of compactions.
pub fn classify_agent(events: u64, reads: u64, compactions: u64) -> AgentClass {
    let (marathon, search) = (&THRESHOLDS.marathon_refactor, &THRESHOLDS.file_search_heavy);
    let (events, compactions) = (events as f64, compactions as f64);
    let read_share = reads as f64 / events.max(1.0);
    if events >= marathon.min_events && compactions >= marathon.min_compactions {
        AgentClass::MarathonRefactor
    } else if events <= search.max_events && read_share >= search.min_read_share {
        AgentClass::FileSearchHeavy
    } else {
        AgentClass::Default
    }
}

impl Settings {
    /// The model profile: the active one, else the one of the session's model id: by its name, by its name apart from vendor,
    /// date and separators, or the one for all others.
    pub fn llm_variant_for(&self, model_id: Option<&str>) -> LlmProfile {
        let Axis { active, variants } = &self.profiles.llm;
        let found = self.llm_variant(named(active).or(model_id).unwrap_or(DEFAULT));
        found.or_else(|| variants.get(DEFAULT)).cloned().unwrap_or_else(|| bare("llm"))
    }

    /// Whether the model profile for all others holds in sessions of a model, since none is called by its id.
    pub fn lacks_llm_variant(&self, model_id: &str) -> bool {
        named(&self.profiles.llm.active).is_none() && self.llm_variant(model_id).is_none()
    }

    fn llm_variant(&self, wanted: &str) -> Option<&LlmProfile> {
        let variants = &self.profiles.llm.variants;
        let by_normal = || {
            let wanted = normalise(wanted);
            variants.iter().find(|(name, _)| normalise(name) == wanted)
        };
        variants.get(wanted).or_else(|| by_normal().map(|(_, profile)| profile))
    }

    /// The tokenizer: the active one, else the one that the model profile names; the bare one when it is unknown.
    pub fn tokenizer_for(&self, model_id: Option<&str>) -> TokenizerProfile {
        let Axis { active, variants } = &self.profiles.tokenizer;
        let by_model = || self.llm_variant_for(model_id).tokenizer;
        let wanted = named(active).map_or_else(by_model, str::to_owned);
        variants.get(&wanted).cloned().unwrap_or_else(|| bare("tokenizer"))
    }

    /// The agent profile: the active one, else the one of the session's class, else the one for all others.
    pub fn agent_variant_for(&self, class: AgentClass) -> AgentProfile {
        let Axis { active, variants } = &self.profiles.agent;
        let found = variants.get(named(active).unwrap_or(class.into_str())).or_else(|| variants.get(DEFAULT));
        found.cloned().unwrap_or_else(|| bare("agent"))
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

    /// The value model of a tool: its own, else the shipped one, else that of `*`. They are never mixed.
    pub fn tool_model_for<'m>(&'m self, tool: &str, shipped: Option<&'m ToolModel>) -> Option<&'m ToolModel> {
        self.tools.get(tool).or(shipped).or_else(|| self.tools.get(ANY))
    }

    /// Keys that name a variant which is not there, and what that comes to.
    pub fn unresolved(&self) -> Vec<UnknownVariant> {
        let Profiles { tokenizer, llm, agent, data } = &self.profiles;
        let bytes = format!("bytes are counted, {} per token", bare::<TokenizerProfile>("tokenizer").chars_per_token);
        let default = format!("`{DEFAULT}` holds");
        let active = |axis: &str| KeyPath::from(["profiles", axis, "active"]);
        let is_spelled_otherwise = |name: &str| llm.variants.keys().any(|known| normalise(known) == normalise(name));
        let model = named(&llm.active).filter(|name| !is_spelled_otherwise(name));
        let of_models = llm.variants.iter().map(|(name, profile)| {
            let key = KeyPath::from(["profiles", "llm", "variants", name, "tokenizer"]);
            unknown(key, Some(&profile.tokenizer), &tokenizer.variants, &bytes)
        });
        let of_axes = [
            unknown(active("tokenizer"), named(&tokenizer.active), &tokenizer.variants, &bytes),
            unknown(active("llm"), model, &llm.variants, &default),
            unknown(active("agent"), named(&agent.active), &agent.variants, &default),
            unknown(active("data"), named(&data.active), &data.variants, "no data profile holds"),
        ];
        of_axes.into_iter().chain(of_models).flatten().collect()
    }

    /// Whether hints of this type may be shown to this model. The caller keeps count of `max_per_session`.
    pub fn hint_allowed(&self, hint_type: &str, model_id: &str) -> bool {
        let meant = |model: &String| model == ANY || model == model_id || normalise(model) == normalise(model_id);
        let policy = self.hints.types.get(hint_type);
        policy.is_some_and(|policy| policy.enabled && policy.applies_to_models.iter().any(meant))
    }
}

/// The keys that say the same of an endpoint, of its tool, or of all: the one that is written takes the meaning from the
/// others. `tools` tells the tool of an endpoint class.
pub fn overruled(key: &KeyPath, tools: &BTreeMap<String, String>) -> Vec<KeyPath> {
    let segments: Vec<&str> = key.0.iter().map(String::as_str).collect();
    match segments[..] {
        ["endpoint_overrides", endpoint, "dedup_enabled"] | ["dedup", "enabled_per_endpoint", endpoint] => {
            names_of(endpoint, tools).flat_map(switches_of).collect()
        }
        ["endpoint_overrides", endpoint, "template_id"] | ["templates", "endpoint_overrides", endpoint] => {
            names_of(endpoint, tools).flat_map(templates_of).collect()
        }
        ["endpoint_overrides", endpoint, key @ "min_body_chars"] => {
            names_of(endpoint, tools).map(|name| KeyPath::from(["endpoint_overrides", name, key])).collect()
        }
        // The largest size holds for all endpoints, so that the one of all may be raised without the one of an endpoint.
        ["endpoint_overrides", _, "lru_size"] => vec![KeyPath::from(["dedup", "lru_size"])],
        _ => Vec::new(),
    }
}

/// The names under which a configuration may speak of an endpoint `Tool:class`, `class` or `Tool`, most specific first.
fn names_of<'a>(endpoint: &'a str, tools: &'a BTreeMap<String, String>) -> impl Iterator<Item = &'a str> {
    let (tool, class) = match endpoint.split_once(':') {
        Some((tool, class)) => (Some(tool), Some(class)),
        None => (tools.get(endpoint).map(String::as_str), None),
    };
    [Some(endpoint), class, tool].into_iter().flatten()
}

/// The keys that switch L0 for an endpoint, first the one that comes first.
fn switches_of(endpoint: &str) -> [KeyPath; 2] {
    let own = KeyPath::from(["endpoint_overrides", endpoint, "dedup_enabled"]);
    [own, KeyPath::from(["dedup", "enabled_per_endpoint", endpoint])]
}

/// The keys that give an endpoint its template, first the one that comes first.
pub fn templates_of(endpoint: &str) -> [KeyPath; 2] {
    let own = KeyPath::from(["endpoint_overrides", endpoint, "template_id"]);
    [own, KeyPath::from(["templates", "endpoint_overrides", endpoint])]
}

/// The variant that an axis names, unless it leaves the choice to the session.
pub(super) fn named(active: &str) -> Option<&str> {
    (!active.is_empty() && active != AUTO).then_some(active)
}

/// A name that no variant has.
#[derive(Debug, Clone)]
pub struct UnknownVariant {
    pub key: KeyPath,
    /// What is wrong, with the names that there are.
    pub message: String,
    /// What holds instead, where the configuration is read all the same.
    pub instead: String,
}

fn unknown<P>(
    key: KeyPath,
    name: Option<&str>,
    variants: &BTreeMap<String, P>,
    instead: &str,
) -> Option<UnknownVariant> {
    let name = name.filter(|name| !variants.contains_key(*name))?;
    let known = variants.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let message = format!("`{key}` is {name:?}, which no variant is called ({known})");
    Some(UnknownVariant { key, message, instead: instead.to_owned() })
}

/// The values of a variant that says nothing.
fn bare<P: DeserializeOwned>(axis: &str) -> P {
    let value = effective::fallback(&KeyPath::from(["profiles", axis, "variants", "<id>"]));
    let profile = value.and_then(|value| P::deserialize(value.clone().into_deserializer()).ok());
    profile.expect("the shipped bare profiles fit their types; a test reads each")
}
