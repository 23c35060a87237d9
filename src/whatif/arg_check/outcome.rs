//! What checking the arguments of every logged call against its schema finds, and the report of it: classes, what the log
//! says about them, places that do not fit, sizes by provider.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::EnumMessage as _;

use crate::report::numbers::{counted, percent, thousands};
use crate::report::table::{Table, TableBuilder};

/// What would have become of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumMessage, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum ArgClass {
    #[strum(message = "the arguments fit the schema")]
    Valid,
    #[strum(message = "the arguments came as a text, and what it says fits")]
    ParsedString,
    #[strum(message = "they fit once numbers and truth values are read from texts")]
    Coercible,
    #[strum(message = "the arguments are no JSON")]
    ParseError,
    #[strum(message = "they do not fit")]
    Invalid,
    #[strum(message = "no catalog has the tool")]
    UnknownTool,
    #[strum(message = "the tool has no schema, and no_schema_mode=blocked")]
    NoSchemaBlocked,
    #[strum(message = "the tool has no schema and may run if it only reads")]
    NoSchemaReadOnly,
    #[strum(message = "the tool has no schema and may run if a person agrees")]
    NoSchemaHumanApproval,
    #[strum(message = "the tool has no schema and may run")]
    NoSchemaFull,
    #[strum(message = "the schema needs a document from elsewhere, which is never fetched")]
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
    pub provider: Provider,
    pub tools: Vec<ShapedTool>,
}

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShapedTool {
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

/// Valid calls, and how the classes agree with the log.
pub fn summary(found: &ArgCheck) -> Vec<String> {
    let (calls, unknown) = (found.calls(), found.count(ArgClass::UnknownTool));
    let known = calls - unknown;
    let valid = found.count(ArgClass::Valid);
    let of = |part: u64, whole: u64| if whole == 0 { "-".to_owned() } else { percent(part as f64 / whole as f64) };
    // Of a tool that no catalog has is only known that it was there, or that the client did not have it either.
    let is_judged = |truth: Truth, class: ArgClass| class != ArgClass::UnknownTool || truth == Truth::UnknownTool;
    let by_truth = |truth: Truth, refused: bool| {
        let classes = found.truth.get(&truth).into_iter().flatten();
        let classes = classes.filter(|(class, _)| class.is_refused() == refused && is_judged(truth, **class));
        classes.map(|(_, calls)| calls).sum::<u64>()
    };
    let refusals = by_truth(Truth::Refused, true) + by_truth(Truth::UnknownTool, true);
    let all = refusals + by_truth(Truth::Refused, false) + by_truth(Truth::UnknownTool, false);
    let nameless = match by_truth(Truth::UnknownTool, true) {
        0 => String::new(),
        calls => format!(" ({} of them for naming no tool that there is)", thousands(calls)),
    };
    let mut lines = vec![
        format!("{} of {} to known tools are valid ({})", thousands(valid), counted(known, "call"), of(valid, known)),
        format!(
            "{} of {} in the log would have been refused here, too{nameless}",
            thousands(refusals),
            counted(all, "refusal")
        ),
        format!("{} that ran would have been refused", counted(by_truth(Truth::Accepted, true), "call")),
    ];
    if unknown > 0 {
        lines
            .push(format!("{} to tools that no catalog has: bring them with --tool-catalog", counted(unknown, "call")));
    }
    lines
}

/// What the classes mean, and how many calls each has.
pub fn formulas(found: &ArgCheck) -> Vec<String> {
    let (calls, unknown) = (found.calls(), found.count(ArgClass::UnknownTool));
    let by_class = ArgClass::ALL.iter().map(|class| (class, found.count(*class))).filter(|(_, calls)| *calls > 0);
    let by_class: Vec<String> =
        by_class.map(|(class, calls)| format!("{} {}", thousands(calls), class.into_str())).collect();
    let mut lines = vec![
        format!(
            "calls = Σ classes: {} = {}",
            thousands(calls),
            if by_class.is_empty() { "0".into() } else { by_class.join(" + ") }
        ),
        format!(
            "share of valid calls = valid / (calls − unknown_tool) = {} / ({} − {})",
            thousands(found.count(ArgClass::Valid)),
            thousands(calls),
            thousands(unknown)
        ),
    ];
    let meant = |class: &ArgClass| {
        let runs = if class.is_refused() { "refused" } else { "runs" };
        format!("{} ({runs}): {}", class.into_str(), class.get_message().unwrap_or_default())
    };
    lines.extend(ArgClass::ALL.iter().map(meant));
    lines
}

/// Calls by tool and class; all but the valid ones first.
pub fn classes(found: &ArgCheck) -> Table {
    let rows =
        found.tools.iter().flat_map(|(tool, classes)| classes.iter().map(move |(class, calls)| (tool, class, calls)));
    let mut rows = rows.collect::<Vec<_>>();
    rows.sort_by_key(|(tool, class, calls)| (**class == ArgClass::Valid, std::cmp::Reverse(**calls), *tool, **class));
    TableBuilder::of(rows)
        .text("tool", |(tool, _, _)| (*tool).clone())
        .text("class", |(_, class, _)| class.into_str().to_owned())
        .count("calls", |(_, _, calls)| **calls)
        .table()
}

/// Places by calls.
pub fn errors(found: &ArgCheck) -> Table {
    let mut rows = found.errors.iter().collect::<Vec<_>>();
    rows.sort_by_key(|(place, calls)| (std::cmp::Reverse(**calls), *place));
    TableBuilder::of(rows)
        .text("place: keyword", |(place, _)| (*place).clone())
        .count("calls", |(_, calls)| **calls)
        .table()
}

/// Title of the table of sizes.
pub const PROVIDER_TITLE: &str = "definitions in that provider's shape (estimated)";

/// The answer in a line.
pub fn headline(found: &ArgCheck) -> String {
    let refused: u64 =
        found.tools.values().flatten().filter(|(class, _)| class.is_refused()).map(|(_, calls)| calls).sum();
    let (valid, unknown) = (found.count(ArgClass::Valid), found.count(ArgClass::UnknownTool));
    let known = counted(found.calls() - unknown, "call");
    let others =
        if unknown == 0 { String::new() } else { format!("; {} to tools without a definition", thousands(unknown)) };
    let refused = thousands(refused.saturating_sub(unknown));
    format!("{} of {known} to known tools valid, {refused} would not have run{others}", thousands(valid))
}

/// Sizes of definitions in a provider's shape, as brought and as sent.
pub fn provider(found: &ProviderSizes) -> Table {
    let mut table = Table::new(&["tool", "#tokens brought", "#tokens sent", "#difference"]);
    let difference = |brought: u64, sent: u64| format!("{:+}", sent as i64 - brought as i64);
    for tool in &found.tools {
        let (brought, sent) = (tool.tokens_brought, tool.tokens_sent);
        table.row([tool.tool.clone(), thousands(brought), thousands(sent), difference(brought, sent)]);
    }
    let (brought, sent) = found.totals();
    table.row(["all".to_owned(), thousands(brought), thousands(sent), difference(brought, sent)]);
    table
}
