//! What checking the arguments of every logged call against its schema finds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What would have become of a call.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ArgClass {
    /// It fits its schema.
    Valid,
    /// The arguments came as a text; what that text says fits.
    ParsedString,
    /// Valid once numbers, truths and falsehoods are read from texts.
    Coercible,
    /// The arguments are no JSON.
    ParseError,
    /// It does not fit.
    Invalid,
    /// No catalog has the tool.
    UnknownTool,
    /// The tool has no schema and so never runs.
    NoSchemaBlocked,
    /// It has none and runs if it only reads.
    NoSchemaReadOnly,
    /// It has none and runs if a person agrees.
    NoSchemaHumanApproval,
    /// It has none and runs.
    NoSchemaFull,
    /// Its schema needs a document from elsewhere.
    RemoteRefRefused,
}

impl ArgClass {
    /// All of them.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Whether the call would not have run.
    pub fn is_refused(self) -> bool {
        matches!(
            self,
            Self::ParseError | Self::Invalid | Self::UnknownTool | Self::NoSchemaBlocked | Self::RemoteRefRefused
        )
    }
}

/// What the log says became of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Truth {
    /// Its arguments were not objected to.
    Accepted,
    /// The arguments were refused.
    Refused,
    /// There was no such tool.
    UnknownTool,
    /// No result in the log.
    Unanswered,
}

/// Calls by class.
pub type Classes = BTreeMap<ArgClass, u64>;

/// All calls.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ArgCheck {
    /// By tool and class.
    pub tools: BTreeMap<String, Classes>,
    /// By what the log says and class.
    pub truth: BTreeMap<Truth, Classes>,
    /// By place in the arguments (JSON pointer, numbers as `*`) and keyword of the schema, for calls that do not fit:
    /// `Read/limit: type`.
    pub errors: BTreeMap<String, u64>,
}

impl ArgCheck {
    /// Calls of a class.
    pub fn count(&self, class: ArgClass) -> u64 {
        self.tools.values().filter_map(|classes| classes.get(&class)).sum()
    }

    /// All calls.
    pub fn calls(&self) -> u64 {
        self.tools.values().flat_map(BTreeMap::values).sum()
    }
}

/// Whose shape definitions are written in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// `{name, description, input_schema}`.
    Anthropic,
    /// `{type: function, name, description, parameters}`.
    Openai,
    /// The same inside `function`.
    Ollama,
    /// `{name, description, parameters}`.
    Gemini,
}

/// Definitions in a provider's shape.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProviderSizes {
    /// Whose.
    pub provider: Provider,
    /// Every tool.
    pub tools: Vec<ShapedTool>,
}

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShapedTool {
    /// Name.
    pub tool: String,
    /// Estimated tokens as it was brought, in Anthropic's shape.
    pub tokens_brought: u64,
    /// Estimated tokens as it is sent.
    pub tokens_sent: u64,
}

impl ProviderSizes {
    /// Tokens as brought and as sent.
    pub fn totals(&self) -> (u64, u64) {
        self.tools.iter().fold((0, 0), |(brought, sent), tool| (brought + tool.tokens_brought, sent + tool.tokens_sent))
    }
}
