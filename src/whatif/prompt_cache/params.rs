//! What can be set about the cache (`--set`), and the constants of its sheet.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::base::model_id;
use crate::logs::trace::Millis;

/// How long a written prefix lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(const_into_str)]
pub enum CacheLifetime {
    #[serde(rename = "5m")]
    #[strum(serialize = "5m")]
    FiveMinutes,
    #[serde(rename = "1h")]
    #[strum(serialize = "1h")]
    Hour,
}

impl CacheLifetime {
    /// Lifetime in milliseconds.
    pub fn millis(self) -> Millis {
        match self {
            Self::FiveMinutes => 5 * 60_000,
            Self::Hour => 60 * 60_000,
        }
    }
}

impl FromStr for CacheLifetime {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "5m" => Ok(Self::FiveMinutes),
            "1h" => Ok(Self::Hour),
            _ => Err(format!("`{text}` is no lifetime: 5m or 1h, also observed, and mixed:static=1h,tail=5m")),
        }
    }
}

/// What decides the lifetime (`ttl`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TtlPolicy {
    /// What the usage of the log says.
    #[default]
    Observed,
    /// One lifetime for all.
    Always(CacheLifetime),
    /// One for tools and system, one for the messages: `mixed:static=1h,tail=5m`.
    Mixed {
        /// Of the static prefix.
        still: CacheLifetime,
        /// Of the rest.
        tail: CacheLifetime,
    },
}

impl FromStr for TtlPolicy {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "observed" {
            return Ok(Self::Observed);
        }
        let Some(parts) = text.strip_prefix("mixed:") else { return text.parse().map(Self::Always) };
        let (mut still, mut tail) = (None, None);
        for part in parts.split(',') {
            match part.split_once('=') {
                Some(("static", class)) => still = Some(class.parse()?),
                Some(("tail", class)) => tail = Some(class.parse()?),
                _ => return Err(format!("`{part}` is neither static=… nor tail=…")),
            }
        }
        match (still, tail) {
            (Some(CacheLifetime::FiveMinutes), Some(CacheLifetime::Hour)) => {
                Err("longer lifetimes come first: static=1h,tail=5m".into())
            }
            (Some(still), Some(tail)) => Ok(Self::Mixed { still, tail }),
            _ => Err("mixed needs both: mixed:static=1h,tail=5m".into()),
        }
    }
}

impl fmt::Display for TtlPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Observed => f.write_str("observed"),
            Self::Always(class) => f.write_str(class.into_str()),
            Self::Mixed { still, tail } => write!(f, "mixed:static={},tail={}", still.into_str(), tail.into_str()),
        }
    }
}

impl<'de> Deserialize<'de> for TtlPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Where breakpoints stand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(const_into_str, serialize_all = "kebab-case")]
pub enum CacheLayout {
    /// The tail is marked at every request, as logs show.
    #[default]
    ClaudeCode,
    /// The static prefix only; the conversation is billed in full.
    AgentRuntime,
    /// The static prefix for an hour, the tail for five minutes.
    #[serde(rename = "static+tail")]
    #[strum(serialize = "static+tail")]
    StaticAndTail,
    None,
}

/// Whether the previous answer counts as cached at a human turn (policies.md F5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HiddenForks {
    /// Yes; its size as measured where the bill shows it, else estimated.
    #[default]
    On,
    /// Yes; its size always estimated, which is what a prediction can know.
    Estimated,
    Off,
}

/// What a parameter is given as where one type does not hold all that is understood.
#[derive(Deserialize)]
#[serde(untagged)]
enum Given {
    Flag(bool),
    Number(u64),
    Word(String),
    Other(de::IgnoredAny),
}

/// `on` or `off`; `true` and `false` are understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase", try_from = "Given")]
pub enum Switch {
    On,
    #[default]
    Off,
}

impl Switch {
    /// Whether it is on.
    pub fn is_on(self) -> bool {
        self == Self::On
    }
}

impl TryFrom<Given> for Switch {
    type Error = String;

    fn try_from(given: Given) -> std::result::Result<Self, String> {
        match given {
            Given::Flag(true) => Ok(Self::On),
            Given::Flag(false) => Ok(Self::Off),
            Given::Word(word) if word == "on" => Ok(Self::On),
            Given::Word(word) if word == "off" => Ok(Self::Off),
            _ => Err("expected on or off".to_owned()),
        }
    }
}

/// Below how many tokens nothing is cached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "Given")]
pub enum MinCacheable {
    /// What the sheet says of the model.
    #[default]
    Table,
    /// The same for all.
    Tokens(u64),
}

impl TryFrom<Given> for MinCacheable {
    type Error = String;

    fn try_from(given: Given) -> std::result::Result<Self, String> {
        match given {
            Given::Number(tokens) => Ok(Self::Tokens(tokens)),
            Given::Word(word) if word == "table" => Ok(Self::Table),
            _ => Err("expected \"table\" or a number of tokens".to_owned()),
        }
    }
}

/// What can be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct Params {
    /// What decides the lifetime of writes.
    pub ttl: TtlPolicy,
    pub slack_s: u32,
    /// Below how many tokens nothing is cached.
    pub min_cacheable: MinCacheable,
    /// Where breakpoints stand.
    pub layout: CacheLayout,
    pub lookback_blocks: u32,
    /// Requests that the log does not show.
    pub hidden_forks: HiddenForks,
    /// Whether prefixes are lost as often as they were so far where the log gives no reason: as a share of each.
    pub unforeseen: Switch,
    pub keepalive_s: u32,
    pub keepalive_max_s: u32,
    pub cross_session: Switch,
    pub double_system: Switch,
    pub report: ReportParams,
}

/// Reports on request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(expecting = "a table")]
pub struct ReportParams {
    /// Writes to workspace files and what they would have cost if each had voided the prefix.
    pub workspace: Switch,
}

/// Least time between two reads, and the longest for which a cache is kept alive (a day).
const KEEPALIVE_S_MIN: u32 = 10;
const KEEPALIVE_MAX_S_MAX: u32 = 86_400;

impl Params {
    /// The same for a cache as it `was`: when writes expire, where breakpoints stand and what keeps prefixes alive are of the
    /// cache, all else of what is known of it.
    #[must_use]
    pub fn as_it_was(self, was: Self) -> Self {
        let Self { ttl, layout, keepalive_s, keepalive_max_s, double_system, .. } = was;
        Self { ttl, layout, keepalive_s, keepalive_max_s, double_system, ..self }
    }

    /// Rejects values that make no sense.
    pub fn check(&self) -> Result<()> {
        if self.keepalive_s > 0 && self.keepalive_max_s < self.keepalive_s {
            let message = format!(
                "keepalive_max_s = {} is less than keepalive_s = {}: nothing would be kept alive",
                self.keepalive_max_s, self.keepalive_s
            );
            return Err(Error::usage(message).hint("set keepalive_s=0 to switch it off"));
        }
        // Reads of an idle time are taken one by one, and a day of idleness is nobody's cache.
        if self.keepalive_s > 0 && (self.keepalive_s < KEEPALIVE_S_MIN || self.keepalive_max_s > KEEPALIVE_MAX_S_MAX) {
            let message =
                format!("keepalive_s = {}, keepalive_max_s = {}: out of range", self.keepalive_s, self.keepalive_max_s);
            return Err(Error::usage(message)
                .hint(format!("at least {KEEPALIVE_S_MIN} s between reads, for at most {KEEPALIVE_MAX_S_MAX} s")));
        }
        if self.double_system.is_on() && self.layout != CacheLayout::AgentRuntime {
            let message = format!("double_system belongs to layout=agent-runtime, not to {}", self.layout.into_str());
            return Err(Error::usage(message).hint("set layout=agent-runtime as well"));
        }
        Ok(())
    }
}

/// The cache as the sheet `rules/policies/prompt_cache.toml` describes it: parameters with their defaults, and constants.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename = "part")]
pub struct CacheRules {
    /// What can be set.
    pub params: Params,
    pub cache: Constants,
    /// Tokens below which a model caches nothing.
    pub min_cacheable: MinCacheableTable,
}

/// Constants of the simulation.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Constants {
    pub class_unknown: CacheLifetime,
    pub clearing_tokens_min: u64,
    pub unforeseen_weight: UnforeseenWeight,
    pub system_tokens: u64,
}

/// Requests that count as seen besides those of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct UnforeseenWeight {
    /// Where something but results of tools came in: one of so many lost its prefix.
    pub turn: u64,
    /// Within turns: the same.
    pub tools: u64,
    /// After each occasion: they lost it as often as all of the place.
    pub occasion: u64,
}

/// Tokens below which a model caches nothing.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct MinCacheableTable {
    pub unknown: u64,
    /// By model, in the spelling of [`model_id::normalise`].
    pub models: BTreeMap<String, u64>,
}

impl CacheRules {
    /// The same constants with other parameters.
    #[must_use]
    pub fn with(&self, params: Params) -> Self {
        Self { params, ..self.clone() }
    }

    /// Tokens below which a model caches nothing.
    pub fn min_cacheable(&self, model: &str) -> u64 {
        match self.params.min_cacheable {
            MinCacheable::Tokens(tokens) => tokens,
            MinCacheable::Table => self.listed_minimum(model).unwrap_or(self.min_cacheable.unknown),
        }
    }

    /// What the sheet says of a model, if it is listed.
    pub fn listed_minimum(&self, model: &str) -> Option<u64> {
        let models = &self.min_cacheable.models;
        models.get(model).or_else(|| models.get(&model_id::normalise(model))).copied()
    }
}
