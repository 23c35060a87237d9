//! Parameters and constants of the policy `tool-filter`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::base::error::{Error, Result};
use crate::whatif::tool_filter::result::CoverageElsewhere;
use crate::whatif::tools::plan::Expand;

/// What the user may set.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Params {
    /// Whether anything is changed at all.
    pub enabled: bool,
    #[serde(deserialize_with = "names")]
    pub always: Vec<String>,
    /// Who proposes others.
    pub predictor: Predictor,
    pub recency_turns: usize,
    pub top_k: usize,
    pub min_score: f64,
    pub min_tools: usize,
    /// Most proposed tools.
    pub max_tools: Option<usize>,
    pub skip_cacheable: bool,
    /// Whether the model can ask for tools.
    pub fallback: bool,
    /// How missed tools come back.
    pub expand: Expand,
    pub max_retries: u32,
    pub learn: bool,
    /// What requests after the first of a turn are shown.
    pub continuation: Continuation,
    /// Longest description, in code points.
    pub description_chars: Option<usize>,
    pub system_tokens: Option<u64>,
    pub catalog: CatalogParams,
}

/// See [`Params::catalog`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(expecting = "a table")]
pub struct CatalogParams {
    pub timeline: bool,
}

/// Who proposes tools.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub enum Predictor {
    None,
    /// The last turns.
    Recency,
    /// Words of the request and of descriptions.
    TfCosine,
    /// Usual successors.
    Markov,
    /// The turn itself.
    Oracle,
    /// Predictions in this file.
    Replay(String),
}

impl TryFrom<String> for Predictor {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        match text.as_str() {
            "none" => Ok(Self::None),
            "recency" => Ok(Self::Recency),
            "tf-cosine" | "tf_cosine" => Ok(Self::TfCosine),
            "markov" => Ok(Self::Markov),
            "oracle" => Ok(Self::Oracle),
            other => match other.strip_prefix("replay:") {
                Some(file) if !file.is_empty() => Ok(Self::Replay(file.to_owned())),
                _ => Err(format!("predictor {other:?}: none, recency, tf-cosine, markov, oracle or replay:FILE")),
            },
        }
    }
}

/// What requests after the first of a turn are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Continuation {
    /// What the first was shown.
    #[serde(alias = "same-set")]
    SameSet,
    All,
}

impl Params {
    /// Whether the values make sense.
    pub fn check(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.min_score) {
            return Err(Error::usage(format!("min_score={}: a score is from 0 to 1", self.min_score)));
        }
        if self.max_tools.is_some_and(|most| most < self.min_tools) {
            let most = self.max_tools.unwrap_or_default();
            return Err(Error::usage(format!("max_tools={most} is less than min_tools={}", self.min_tools))
                .hint("the router would lower min_tools to max_tools; say so yourself"));
        }
        if self.predictor == Predictor::Recency && self.recency_turns == 0 {
            return Err(Error::usage("recency_turns=0: recency would look back on nothing")
                .hint("predictor=none shows the always list alone"));
        }
        if self.description_chars == Some(0) {
            return Err(Error::usage("description_chars=0: a tool without a description is never chosen"));
        }
        Ok(())
    }
}

/// A list of names, also as one text with commas.
pub(crate) fn names<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "it has to be a list of names, or one text with commas")]
    enum Names {
        Many(Vec<String>),
        One(String),
    }
    Ok(match Names::deserialize(deserializer)? {
        Names::Many(names) => names,
        Names::One(text) => {
            text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
        }
    })
}

/// Constants of the policy (`rules/policies/tool_filter.toml` beside its parameters).
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename = "part")]
pub struct Rules {
    /// Other names of tools.
    pub aliases: BTreeMap<String, String>,
    pub fallback: Fallback,
    /// What asking costs.
    pub retry: Retry,
    /// How queries are made.
    pub query: Query,
    /// Prices for the rule of thumb.
    pub break_even: FilterPrices,
    /// The table of what a list covers.
    pub coverage: CoverageRules,
}

/// The tool by which a model asks for others.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Fallback {
    pub name: String,
    pub description: String,
    /// Names of its arguments, all texts.
    pub parameters: Vec<String>,
}

/// What asking costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct Retry {
    pub framing_tokens: u64,
}

/// How queries are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct Query {
    pub stored_messages: usize,
}

/// Prices in twentieths of an uncached input token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct FilterPrices {
    pub read_u20: u64,
    pub write_5m_u20: u64,
    pub write_1h_u20: u64,
}

/// The table of what a list covers.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct CoverageRules {
    pub recency_turns: Vec<u32>,
    pub elsewhere: CoverageElsewhere,
}
