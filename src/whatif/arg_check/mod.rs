//! `arg-check`: checks the arguments of logged calls against the schemas of their tools, for which the logs are read: the lake
//! holds no arguments. The class of a call is a function of its schema and its input alone; a reference to another document is
//! refused, never fetched. Errors name places and keywords, never values.

mod coercion;
pub mod outcome;
pub mod schema;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::client_version::ClientVersion;
use crate::base::error::{Error, Result};
use crate::base::id::{Id, IdSet};
use crate::frames::input::{Input, missing};
use crate::logs::call_texts::CallKey;
use crate::logs::read::Failure;
use crate::logs::{call_texts, window};
use crate::whatif::arg_check::coercion::value;
use crate::whatif::arg_check::outcome::{
    ArgCheck, ArgClass, PROVIDER_TITLE, Truth, classes, errors, formulas, headline, provider, summary,
};
use crate::whatif::arg_check::schema::{Schema, SchemaRefusal};
use crate::whatif::arg_check::walk::SchemaFault;
use crate::whatif::catalog::{Catalog, DefinitionSource, ToolDefinition};
use crate::whatif::chosen::{Policy, PolicyConfigs, PolicyEntry};
use crate::whatif::report::{Fidelity, PolicyReport};
use crate::whatif::simulation::{PolicyShare, Ready, Simulation};
use crate::whatif::tools::Tools;
use crate::whatif::workload::Workload;

/// What the user may set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct Params {
    /// What becomes of calls to tools without a schema.
    pub no_schema_mode: NoSchemaMode,
    pub coerce: bool,
}

/// What a tool without a schema may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoSchemaMode {
    /// Nothing.
    #[serde(alias = "blocked")]
    Blocked,
    /// Run if it only reads.
    #[serde(alias = "read-only")]
    ReadOnly,
    /// Run if a person agrees.
    #[serde(alias = "human-approval")]
    HumanApproval,
    /// Run.
    Full,
}

impl NoSchemaMode {
    fn class(self) -> ArgClass {
        match self {
            Self::Blocked => ArgClass::NoSchemaBlocked,
            Self::ReadOnly => ArgClass::NoSchemaReadOnly,
            Self::HumanApproval => ArgClass::NoSchemaHumanApproval,
            Self::Full => ArgClass::NoSchemaFull,
        }
    }
}

/// Constants of the policy (`rules/policies/arg_check.toml` beside its parameters).
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename = "part")]
pub struct Rules {
    /// How the client logs what it could not parse.
    pub client: ClientRules,
    pub truth: TruthRules,
}

/// See [`Rules`].
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct ClientRules {
    /// Only key of an input that was no JSON.
    pub unparsed_key: String,
}

/// See [`Rules`].
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct TruthRules {
    /// How far into a result is looked, in code points.
    pub chars: usize,
    pub refused: Vec<String>,
    pub unknown_tool: Vec<String>,
}

impl TruthRules {
    /// What the result of a call says about its arguments; none if there is no result.
    pub fn of(&self, result: Option<(bool, &str)>) -> Truth {
        let Some((is_error, text)) = result else { return Truth::Unanswered };
        let end = text.char_indices().nth(self.chars).map_or(text.len(), |(end, _)| end);
        let says = |phrases: &[String]| is_error && phrases.iter().any(|phrase| text[..end].contains(phrase));
        match () {
            () if says(&self.unknown_tool) => Truth::UnknownTool,
            () if says(&self.refused) => Truth::Refused,
            () => Truth::Accepted,
        }
    }
}

/// A class and why: places in the arguments with the keyword of the schema that they do not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArgVerdict {
    pub class: ArgClass,
    /// In the order of the schema's keywords; empty unless the call does not fit.
    pub errors: Vec<Misfit>,
}

/// Where arguments do not fit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Misfit {
    /// JSON pointer into the arguments; empty for the whole.
    pub pointer: String,
    pub keyword: String,
}

/// Schemas, compiled.
pub struct Checker {
    tools: BTreeMap<String, Vec<CheckedTool>>,
    params: Params,
    unparsed_key: String,
}

struct CheckedTool {
    definition: ToolDefinition,
    schema: Compiled,
}

enum Compiled {
    None,
    Remote,
    Ready(Box<Schema>),
}

impl Checker {
    /// Compiles every schema of a catalog.
    pub fn new(catalog: &Catalog, params: &Params, rules: &Rules) -> Result<Self> {
        let mut tools = BTreeMap::<String, Vec<CheckedTool>>::new();
        for definition in &catalog.definitions {
            let schema = match definition.schema.as_ref().map(Schema::new) {
                None => Compiled::None,
                Some(Ok(schema)) => Compiled::Ready(Box::new(schema)),
                Some(Err(SchemaRefusal::Remote)) => Compiled::Remote,
                Some(Err(SchemaRefusal::Broken(cause))) => {
                    let file = catalog.files.get(definition.file).map_or("catalog", |file| &file.name);
                    let message = format!("{file}: tool {}: its schema is no JSON Schema: {cause}", definition.name);
                    let hint = "take the tool out of the file, or ask its author for a schema that holds";
                    return Err(Error::failed(message).hint(hint));
                }
            };
            let entry = CheckedTool { definition: definition.clone(), schema };
            tools.entry(definition.name.clone()).or_default().push(entry);
        }
        Ok(Self { tools, params: *params, unparsed_key: rules.client.unparsed_key.clone() })
    }

    /// Tools with patterns that are not checked, in the order of their names.
    pub fn unmatched(&self) -> impl Iterator<Item = &str> {
        let has = |entry: &CheckedTool| matches!(&entry.schema, Compiled::Ready(schema) if schema.unmatched().next().is_some());
        self.tools.iter().filter(move |(_, entries)| entries.iter().any(has)).map(|(tool, _)| tool.as_str())
    }

    /// Checks a call by a client of some version; `input` is JSON as it stands in the log.
    pub fn check(&self, tool: &str, version: Option<&str>, input: &[u8]) -> ArgVerdict {
        let Some(entry) = self.entry(tool, version) else { return ArgVerdict::of(ArgClass::UnknownTool) };
        let Some((arguments, class)) = self.parsed(input) else { return ArgVerdict::of(ArgClass::ParseError) };
        let schema = match &entry.schema {
            Compiled::None => return ArgVerdict::of(self.params.no_schema_mode.class()),
            Compiled::Remote => return ArgVerdict::of(ArgClass::RemoteRefRefused),
            Compiled::Ready(schema) => schema,
        };
        let faults = schema.faults(&arguments);
        if faults.is_empty() {
            return ArgVerdict::of(class);
        }
        if self.params.coerce && schema.coerces(&arguments) {
            return ArgVerdict::of(ArgClass::Coercible);
        }
        let misfit = |fault: SchemaFault<'_>| Misfit { pointer: fault.pointer, keyword: fault.keyword.to_owned() };
        ArgVerdict { class: ArgClass::Invalid, errors: faults.into_iter().map(misfit).collect() }
    }

    /// The definition in force; where none covers the version, the newest.
    fn entry(&self, tool: &str, version: Option<&str>) -> Option<&CheckedTool> {
        let version = version.and_then(ClientVersion::parse);
        let entries = self.tools.get(tool)?;
        entries.iter().rfind(|entry| entry.definition.is_in(version.as_ref())).or(entries.last())
    }

    /// The arguments, and the class of a call that fits. None if they are no JSON.
    fn parsed(&self, input: &[u8]) -> Option<(Value, ArgClass)> {
        let arguments = value(input)?;
        match &arguments {
            Value::String(text) => Some((value(text.as_bytes())?, ArgClass::ParsedString)),
            Value::Object(object) if object.len() == 1 && object.contains_key(&self.unparsed_key) => None,
            _ => Some((arguments, ArgClass::Valid)),
        }
    }
}

impl ArgVerdict {
    fn of(class: ArgClass) -> Self {
        Self { class, errors: Vec::new() }
    }
}

/// Adds a call to what was found.
pub fn tally(found: &mut ArgCheck, tool: &str, verdict: &ArgVerdict, truth: Truth) {
    *found.tools.entry(tool.to_owned()).or_default().entry(verdict.class).or_default() += 1;
    *found.truth.entry(truth).or_default().entry(verdict.class).or_default() += 1;
    let places = verdict.errors.iter().map(|error| error.place(tool)).collect::<BTreeSet<_>>();
    for place in places {
        *found.errors.entry(place).or_default() += 1;
    }
}

impl Misfit {
    /// The place for sums: positions in lists do not matter.
    fn place(&self, tool: &str) -> String {
        let steps = self.pointer.split('/').skip(1);
        let starred = steps.map(|step| if step.bytes().all(|byte| byte.is_ascii_digit()) { "*" } else { step });
        let pointer = starred.map(|step| format!("/{step}")).collect::<String>();
        format!("{tool}{pointer}: {}", self.keyword)
    }
}

/// What the policy says of itself.
pub static POLICY: PolicyEntry = PolicyEntry {
    sheet: "policies/arg_check.toml",
    check: |sheet| sheet.params::<Params>().map(drop),
    read_only_with: &[],
    without_logs: Some("it has no arguments"),
    ready,
};

/// It changes no context and has a report of its own.
fn ready<'s>(_scene: &'s Simulation<'_>, _sheets: &PolicyConfigs) -> Result<Ready<'s>> {
    Ok(Ready { stage: None, conclude: Box::new(|_| PolicyShare::default()) })
}

/// Arguments are in no timeline and in no lake, so they take a second reading.
const PIPED: &str = "standard input can be read only once, so its arguments are not checked: name a file or a folder";

/// As a row of `all` it is left out, unless the user brings schemas to check against: the logs would be read for it alone.
pub fn put_off() -> PolicyReport {
    let why =
        "the logs are read for it only if it is asked for by name (devboy what-if arg-check), or with --tool-catalog";
    PolicyReport {
        policy: Policy::ArgCheck.into_str().into(),
        not_estimated: Some(why.into()),
        ..PolicyReport::default()
    }
}

/// Checks every call.
pub fn report(input: &Input, workload: &Workload, configs: &PolicyConfigs, tools: &Tools) -> Result<PolicyReport> {
    let sheet = configs.sheet(Policy::ArgCheck);
    let params: Params = sheet.params()?;
    let rules: Rules = sheet.read()?;
    // What the user brings or the logs quote comes first; built-in tools are known besides.
    let catalog = match &tools.catalog {
        Some((catalog, _)) => catalog.clone().completed(&tools.shipped),
        None => tools.shipped.clone(),
    };
    let checker = Checker::new(&catalog, &params, &rules)?;
    let (found, failures) = checked(input, workload, &rules, &checker);
    let mut details = json!({ "arg_check": found });
    let mut tables =
        vec![("calls by class".to_owned(), classes(&found)), ("where arguments do not fit".to_owned(), errors(&found))];
    if let Some(sizes) = tools.provider_sizes() {
        tables.push((PROVIDER_TITLE.to_owned(), provider(&sizes)));
        details["provider"] = json!(sizes);
    }
    tables.retain(|(_, table)| !table.is_empty());
    let notes = tools.provider_note().into_iter().chain(failures.iter().map(missing)).chain(unchecked(input, &checker));
    let nothing_else = input.listing.stdin && found.calls() == 0;
    let not_estimated =
        if nothing_else { PIPED } else { "it changes no context; it says which calls would not have run" };
    Ok(PolicyReport {
        policy: Policy::ArgCheck.into_str().into(),
        params: json!({ "arg-check": sheet.settings()? }),
        details: std::iter::once(("arg-check".to_owned(), details)).collect(),
        headline: (found.calls() > 0).then(|| headline(&found)),
        summary: summary(&found),
        formulas: formulas(&found),
        bias: workload.bias.of(&[Policy::ArgCheck.into_str()], false),
        tables,
        notes: notes.collect(),
        fidelity: Fidelity {
            tool_catalog_source: match &tools.catalog {
                Some((_, DefinitionSource::Given)) => "given, shipped",
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

/// Every call of the window by what its arguments are to the schema and what came back, and the files that could not be read.
fn checked(input: &Input, workload: &Workload, rules: &Rules, checker: &Checker) -> (ArgCheck, Vec<Failure>) {
    let check = |tool: &str, version: Option<&str>, input: &[u8]| checker.check(tool, version, input);
    let (calls, failures) = call_texts::read_all(&input.jobs(), rules.truth.chars, &input.pool, &check);
    let mut found = ArgCheck::default();
    // A window is one of requests: calls count with the request that made them. One whose message has no id is known by its own.
    let timeline = &workload.timeline;
    let within: Option<IdSet<Id>> = (input.window != window::ALL).then(|| {
        let messages = timeline.counted().map(|(_, request)| request.id);
        messages.chain(timeline.counted_calls().map(|(_, call)| call.id)).collect()
    });
    let is_within = |(message, call): &CallKey| {
        within.as_ref().is_none_or(|within| within.contains(if message.is_some() { message } else { call }))
    };
    for (_, call) in calls.iter().filter(|(key, _)| is_within(key)) {
        let answer = call.answer.as_ref().map(|(is_error, text)| (*is_error, text.as_str()));
        tally(&mut found, &call.tool, &call.verdict, rules.truth.of(answer));
    }
    (found, failures)
}

/// What could not be checked, in sentences.
fn unchecked(input: &Input, checker: &Checker) -> Vec<String> {
    let mut notes = Vec::new();
    let unmatched: Vec<&str> = checker.unmatched().collect();
    if !unmatched.is_empty() {
        let tools = unmatched.join(", ");
        notes.push(format!("patterns that look ahead or behind are not checked, and whatever they meet fits: {tools}"));
    }
    let unread = input.sources.iter().filter(|source| source.path.is_none() && !source.is_sidecar()).count();
    if unread > 0 {
        notes.push(format!("{unread} deleted logs live on in the lake only, which holds no arguments: not checked"));
    }
    if input.listing.stdin {
        notes.push(PIPED.to_owned());
    }
    notes
}
