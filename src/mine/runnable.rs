//! Which calls can run with one argument alone: what a result can supply is one value, and a call that lacks another
//! required argument is refused.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::names::Names;
use crate::logs::history::History;
use crate::logs::values::CallValues;

/// The schemas of built-in tools.
const CATALOG: &str = "catalogs/claude_code.toml";

/// What tools require: by schema where one is shipped, else what all their calls had.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Runnable {
    schemas: BTreeMap<String, BTreeSet<String>>,
    seen: BTreeMap<String, SeenArguments>,
}

/// Arguments of the calls of one tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct SeenArguments {
    /// Arguments that every call may have had. A call may have any whose value is not kept (long texts, short words).
    always: BTreeSet<String>,
    /// Whether every call had several arguments, one without a value that is kept among them.
    beside: bool,
}

/// The same while calls are counted.
#[derive(Default)]
struct Arguments<'a> {
    calls: u64,
    /// Calls all of whose values are kept.
    whole: u64,
    /// By argument: how many of these had it. One that only other calls had is here as well.
    having: BTreeMap<&'a str, u64>,
    /// Calls with several arguments, one without a value that is kept among them.
    beside: u64,
}

impl<'a> Arguments<'a> {
    /// Adds a call with these arguments, each once, and so many values that are not kept.
    fn add(&mut self, names: &[&'a str], unkept: usize) {
        let is_whole = unkept == 0;
        self.calls += 1;
        self.whole += u64::from(is_whole);
        self.beside += u64::from(!is_whole && names.len() + unkept > 1);
        names.iter().for_each(|name| *self.having.entry(name).or_default() += u64::from(is_whole));
    }

    fn seen(self) -> SeenArguments {
        let always = self.having.iter().filter(|(_, calls)| **calls == self.whole);
        SeenArguments {
            always: always.map(|(name, _)| (*name).to_owned()).collect(),
            beside: self.beside == self.calls,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename = "part")]
struct ToolCatalog {
    tool: Vec<Tool>,
}

#[derive(Deserialize)]
#[serde(rename = "part")]
struct Tool {
    name: String,
    /// First client version without this definition.
    until: Option<String>,
    input_schema: Schema,
}

#[derive(Deserialize, Default)]
#[serde(rename = "part")]
struct Schema {
    #[serde(default)]
    required: BTreeSet<String>,
}

impl Runnable {
    /// What the shipped schemas require.
    pub fn shipped(data: &Data) -> Result<Self> {
        let catalog: ToolCatalog = data.parsed(CATALOG)?;
        let present = catalog.tool.into_iter().filter(|tool| tool.until.is_none());
        let schemas = present.map(|tool| (tool.name, tool.input_schema.required)).collect();
        Ok(Self { schemas, seen: BTreeMap::new() })
    }

    /// The same, and what the calls of the sessions wanted had (of all for an empty list).
    #[must_use]
    pub fn learned(self, history: &History, values: &CallValues, tools: &Names, wanted: &[bool]) -> Self {
        let is_wanted = |chain: u32| wanted.is_empty() || wanted[history.chains[chain as usize].session as usize];
        let tops: Vec<&str> = values.names.texts().iter().map(|path| top(path)).collect();
        let mut seen: BTreeMap<&str, Arguments<'_>> = BTreeMap::new();
        let mut names = Vec::new();
        for (index, call) in history.calls.iter().enumerate().filter(|(_, call)| is_wanted(call.chain) && call.ran()) {
            let Some(input) = values.input(index) else { continue };
            let given = values.given(index);
            names.clear();
            names.extend(given.iter().map(|given| tops[given.argument.0 as usize]));
            names.sort_unstable();
            names.dedup();
            let unkept = usize::from(input.leaves).saturating_sub(given.len());
            seen.entry(tools.text(call.tool)).or_default().add(&names, unkept);
        }
        Self { seen: seen.into_iter().map(|(tool, seen)| (tool.to_owned(), seen.seen())).collect(), ..self }
    }

    /// Whether a call of a tool with this argument alone can run. A tool of which nothing is known may.
    pub fn can_run(&self, tool: &str, argument: &str) -> bool {
        let suffices = |required: &BTreeSet<String>| required.iter().all(|name| name == top(argument));
        match (self.schemas.get(tool), self.seen.get(tool)) {
            (Some(required), _) => suffices(required),
            (None, Some(seen)) => suffices(&seen.always) && !seen.beside,
            (None, None) => true,
        }
    }
}

/// The argument that a path of keys leads into: `filter` of `filter.id` and of `filter[].id`.
fn top(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or_default()
}
