//! What checking the arguments of every logged call against its schema finds.
//!
//! The report of checked arguments: classes, what the log says about them, places that do not fit, sizes by provider.
//!
//! `arg-check`: the arguments of every logged call against the schema of its tool. The lake holds no arguments, so the
//! logs are read for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::base::error::Result;
use crate::base::id::{Id, IdSet};
use crate::frames::input::{Input, missing};
use crate::logs::{call_texts, window};
use crate::report::numbers::{counted, percent, thousands};
use crate::report::table::{Rows, Table};
use crate::whatif::arg_check::{Checker, Params, Rules, tally};
use crate::whatif::catalog::Source;
use crate::whatif::chosen::{Policy, Sheets};
use crate::whatif::report::{Fidelity, PolicyReport};
use crate::whatif::simulation::Simulation;
use crate::whatif::tools::Tools;

/// What would have become of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Class {
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

impl Class {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Valid,
        Self::ParsedString,
        Self::Coercible,
        Self::ParseError,
        Self::Invalid,
        Self::UnknownTool,
        Self::NoSchemaBlocked,
        Self::NoSchemaReadOnly,
        Self::NoSchemaHumanApproval,
        Self::NoSchemaFull,
        Self::RemoteRefRefused,
    ];

    /// Whether the call would not have run.
    pub fn is_refused(self) -> bool {
        matches!(
            self,
            Self::ParseError | Self::Invalid | Self::UnknownTool | Self::NoSchemaBlocked | Self::RemoteRefRefused
        )
    }

    /// Name in reports.
    pub fn key(self) -> &'static str {
        self.into()
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
pub type Classes = BTreeMap<Class, u64>;

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
    pub fn count(&self, class: Class) -> u64 {
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

/// Valid calls, and how the classes agree with the log.
pub fn summary(found: &ArgCheck) -> Vec<String> {
    let (calls, unknown) = (found.calls(), found.count(Class::UnknownTool));
    let known = calls - unknown;
    let valid = found.count(Class::Valid);
    let of = |part: u64, whole: u64| if whole == 0 { "-".to_owned() } else { percent(part as f64 / whole as f64) };
    let by_truth = |truth: Truth, refused: bool| {
        let classes = found.truth.get(&truth).into_iter().flatten();
        classes.filter(|(class, _)| class.is_refused() == refused).map(|(_, calls)| calls).sum::<u64>()
    };
    let refusals = by_truth(Truth::Refused, true) + by_truth(Truth::UnknownTool, true);
    let all = refusals + by_truth(Truth::Refused, false) + by_truth(Truth::UnknownTool, false);
    let accepted = found.truth.get(&Truth::Accepted).into_iter().flatten();
    let wrongly = accepted.filter(|(class, _)| class.is_refused() && **class != Class::UnknownTool);
    let mut lines = vec![
        format!("{} of {} to known tools are valid ({})", thousands(valid), counted(known, "call"), of(valid, known)),
        format!("{} of {} in the log would have been refused here, too", thousands(refusals), counted(all, "refusal")),
        format!("{} that ran would have been refused", counted(wrongly.map(|(_, calls)| calls).sum(), "call")),
    ];
    if unknown > 0 {
        lines
            .push(format!("{} to tools that no catalog has: bring them with --tool-catalog", counted(unknown, "call")));
    }
    lines
}

/// What the classes mean, and how many calls each has.
pub fn formulas(found: &ArgCheck) -> Vec<String> {
    let (calls, unknown) = (found.calls(), found.count(Class::UnknownTool));
    let by_class = Class::ALL.iter().map(|class| (class, found.count(*class))).filter(|(_, calls)| *calls > 0);
    let by_class: Vec<String> =
        by_class.map(|(class, calls)| format!("{} {}", thousands(calls), class.key())).collect();
    let mut lines = vec![
        format!(
            "calls = Σ classes: {} = {}",
            thousands(calls),
            if by_class.is_empty() { "0".into() } else { by_class.join(" + ") }
        ),
        format!(
            "share of valid calls = valid / (calls − unknown_tool) = {} / ({} − {})",
            thousands(found.count(Class::Valid)),
            thousands(calls),
            thousands(unknown)
        ),
    ];
    let meant = |class: &Class| {
        let runs = if class.is_refused() { "refused" } else { "runs" };
        format!("{} ({runs}): {}", class.key(), meaning(*class))
    };
    lines.extend(Class::ALL.iter().map(meant));
    lines
}

fn meaning(class: Class) -> &'static str {
    match class {
        Class::Valid => "the arguments fit the schema",
        Class::ParsedString => "the arguments came as a text, and what it says fits",
        Class::Coercible => "they fit once numbers and truth values are read from texts",
        Class::ParseError => "the arguments are no JSON",
        Class::Invalid => "they do not fit",
        Class::UnknownTool => "no catalog has the tool",
        Class::NoSchemaBlocked => "the tool has no schema, and no_schema_mode=blocked",
        Class::NoSchemaReadOnly => "the tool has no schema and may run if it only reads",
        Class::NoSchemaHumanApproval => "the tool has no schema and may run if a person agrees",
        Class::NoSchemaFull => "the tool has no schema and may run",
        Class::RemoteRefRefused => "the schema needs a document from elsewhere, which is never fetched",
    }
}

/// Calls by tool and class; all but the valid ones first.
pub fn classes(found: &ArgCheck) -> Table {
    let rows =
        found.tools.iter().flat_map(|(tool, classes)| classes.iter().map(move |(class, calls)| (tool, class, calls)));
    let mut rows = rows.collect::<Vec<_>>();
    rows.sort_by_key(|(tool, class, calls)| (**class == Class::Valid, std::cmp::Reverse(**calls), *tool, **class));
    Rows::of(rows)
        .text("tool", |(tool, _, _)| (*tool).clone())
        .text("class", |(_, class, _)| class.key().to_owned())
        .count("calls", |(_, _, calls)| **calls)
        .table()
}

/// Places by calls.
pub fn errors(found: &ArgCheck) -> Table {
    let mut rows = found.errors.iter().collect::<Vec<_>>();
    rows.sort_by_key(|(place, calls)| (std::cmp::Reverse(**calls), *place));
    Rows::of(rows).text("place: keyword", |(place, _)| (*place).clone()).count("calls", |(_, calls)| **calls).table()
}

/// Title of the table of sizes.
pub const PROVIDER_TITLE: &str = "definitions in that provider's shape (estimated)";

/// The answer in a line.
pub fn headline(found: &ArgCheck) -> String {
    let refused: u64 =
        found.tools.values().flatten().filter(|(class, _)| class.is_refused()).map(|(_, calls)| calls).sum();
    let (valid, unknown) = (found.count(Class::Valid), found.count(Class::UnknownTool));
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

/// Arguments are in no timeline and in no lake, so they take a second reading.
const PIPED: &str = "standard input can be read only once, so its arguments are not checked: name a file or a folder";

/// As a row of `all` it is left out, unless the user brings schemas to check against: the logs would be read for it alone.
pub fn put_off() -> PolicyReport {
    let why = "the lake holds no arguments; ask for it by name, or bring --tool-catalog, and the logs are read for it";
    PolicyReport { policy: Policy::ArgCheck.name().into(), not_estimated: Some(why.into()), ..PolicyReport::default() }
}

/// Checks every call.
///
/// # Errors
/// If a parameter makes no sense, or a schema is none.
pub fn report(input: &Input, world: &Simulation, sheets: &Sheets, tools: &Tools) -> Result<PolicyReport> {
    let sheet = sheets.sheet(Policy::ArgCheck);
    let params: Params = sheet.params()?;
    let rules: Rules = sheet.read()?;
    // What the user brings or the logs quote comes first; built-in tools are known besides.
    let catalog = match &tools.catalog {
        Some((catalog, _)) => catalog.clone().completed(&tools.shipped),
        None => tools.shipped.clone(),
    };
    let checker = Checker::new(&catalog, &params, &rules)?;
    let check = |tool: &str, version: Option<&str>, input: &[u8]| checker.check(tool, version, input);
    let unread = input.sources.iter().filter(|source| source.path.is_none() && !source.is_sidecar()).count();
    let (calls, failures) = call_texts::read_all(&input.jobs(), rules.truth.chars, &input.pool, &check);
    let mut found = ArgCheck::default();
    // A window is one of requests: calls count with the request that made them.
    let within: Option<IdSet<Id>> =
        (input.window != window::ALL).then(|| world.timeline.calls.iter().map(|call| call.id).collect());
    for (id, (tool, verdict)) in calls.asked.iter().filter(|(id, _)| within.as_ref().is_none_or(|set| set.contains(id)))
    {
        let answer = calls.answered.get(id);
        let truth = answer.map_or(Truth::Unanswered, |(is_error, text)| rules.truth.of(Some((*is_error, text))));
        tally(&mut found, tool, verdict, truth);
    }
    let mut details = json!({ "arg_check": found });
    let mut tables =
        vec![("calls by class".to_owned(), classes(&found)), ("where arguments do not fit".to_owned(), errors(&found))];
    if let Some(sizes) = tools.provider_sizes() {
        tables.push((PROVIDER_TITLE.to_owned(), provider(&sizes)));
        details["provider"] = json!(sizes);
    }
    tables.retain(|(_, table)| !table.is_empty());
    let mut notes = Vec::from_iter(tools.provider_note());
    notes.extend(failures.iter().map(missing));
    if unread > 0 {
        notes.push(format!("{unread} deleted logs live on in the lake only, which holds no arguments: not checked"));
    }
    if input.listing.stdin {
        notes.push(PIPED.to_owned());
    }
    let nothing_else = input.listing.stdin && found.calls() == 0;
    let not_estimated =
        if nothing_else { PIPED } else { "it changes no context; it says which calls would not have run" };
    Ok(PolicyReport {
        policy: Policy::ArgCheck.name().into(),
        params: sheet.settings()?,
        details: std::iter::once(("arg-check".to_owned(), details)).collect(),
        headline: (found.calls() > 0).then(|| headline(&found)),
        summary: summary(&found),
        formulas: formulas(&found),
        bias: world.bias.of(&[Policy::ArgCheck.name()], false),
        tables,
        notes,
        fidelity: Fidelity {
            tool_catalog_source: match &tools.catalog {
                Some((_, Source::Given)) => "given, shipped",
                Some(_) => "logged, shipped",
                None => "shipped",
            }
            .into(),
            ..Fidelity::default()
        },
        not_estimated: Some(not_estimated.to_owned()),
        ..PolicyReport::default()
    })
}
