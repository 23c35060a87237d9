//! Checks the arguments of logged calls against the schemas of their tools: parse, validate, would it run.
//!
//! The class of a call is a function of its schema and its input alone. Schemas are never fetched: a reference to
//! another document is refused. Errors name places and keywords, never values.

pub mod checked;
mod coercion;
mod keyword;
pub mod outcome;
pub mod schema;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::base::error::{Error, Result};
use crate::whatif::arg_check::coercion::value;
use crate::whatif::arg_check::outcome::{ArgCheck, ArgClass, Truth};
use crate::whatif::arg_check::schema::{Schema, SchemaRefusal};
use crate::whatif::arg_check::walk::SchemaFault;
use crate::whatif::catalog::{Catalog, ToolDefinition, Version};

/// What the user may set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// What becomes of calls to tools without a schema.
    pub no_schema_mode: NoSchemaMode,
    /// Whether numbers and booleans are read from texts.
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
pub struct Rules {
    /// How the client logs what it could not parse.
    pub client: ClientRules,
    /// How it says no.
    pub truth: TruthRules,
}

/// See [`Rules`].
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientRules {
    /// Only key of an input that was no JSON.
    pub unparsed_key: String,
}

/// See [`Rules`].
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TruthRules {
    /// How far into a result is looked, in code points.
    pub chars: usize,
    /// The arguments were refused.
    pub refused: Vec<String>,
    /// There is no such tool.
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
    /// The class.
    pub class: ArgClass,
    /// In the order of the schema's keywords; empty unless the call does not fit.
    pub errors: Vec<Misfit>,
}

/// Where arguments do not fit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Misfit {
    /// JSON pointer into the arguments; empty for the whole.
    pub pointer: String,
    /// Keyword of the schema.
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
    ///
    /// # Errors
    /// If one is no JSON Schema.
    pub fn new(catalog: &Catalog, params: &Params, rules: &Rules) -> Result<Self> {
        let mut tools = BTreeMap::<String, Vec<CheckedTool>>::new();
        for definition in &catalog.definitions {
            let schema = compiled(definition.schema.as_ref()).map_err(|cause| {
                let file = catalog.files.get(definition.file).map_or("catalog", |file| &file.name);
                Error::failed(format!("{file}: tool {}: its schema is no JSON Schema: {cause}", definition.name))
                    .hint("take the tool out of the file, or ask its author for a schema that holds")
            })?;
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
        let version = version.and_then(Version::parse);
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

fn compiled(schema: Option<&Value>) -> std::result::Result<Compiled, String> {
    let Some(schema) = schema else { return Ok(Compiled::None) };
    match Schema::new(schema) {
        Ok(schema) => Ok(Compiled::Ready(Box::new(schema))),
        Err(SchemaRefusal::Remote) => Ok(Compiled::Remote),
        Err(SchemaRefusal::Broken(cause)) => Err(cause),
    }
}
