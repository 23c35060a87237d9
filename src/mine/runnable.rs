//! Which calls can run with one argument alone: what an answer can supply is one value, and a call that lacks another
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
    seen: BTreeMap<String, Seen>,
}

/// Arguments of the calls of one tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Seen {
    /// Arguments that every call may have had. A call may have any whose value is not kept (long texts, short words).
    always: BTreeSet<String>,
    /// Whether every call had several arguments, one without a value that is kept among them.
    beside: bool,
}

#[derive(Deserialize)]
struct Catalog {
    tool: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    /// First client version without this definition.
    until: Option<String>,
    input_schema: Schema,
}

#[derive(Deserialize, Default)]
struct Schema {
    #[serde(default)]
    required: BTreeSet<String>,
}

impl Runnable {
    /// What the shipped schemas require.
    /// Errors: if the catalog does not fit.
    pub fn shipped(data: &Data) -> Result<Self> {
        let catalog: Catalog = data.parsed(CATALOG)?;
        let present = catalog.tool.into_iter().filter(|tool| tool.until.is_none());
        let schemas = present.map(|tool| (tool.name, tool.input_schema.required)).collect();
        Ok(Self { schemas, seen: BTreeMap::new() })
    }

    /// The same, and what the calls of the sessions wanted had (of all for an empty list).
    #[must_use]
    pub fn learned(self, history: &History, values: &CallValues, tools: &Names, wanted: &[bool]) -> Self {
        let is_wanted = |chain: u32| wanted.is_empty() || wanted[history.chains[chain as usize].session as usize];
        let mut calls: BTreeMap<&str, Vec<(BTreeSet<&str>, usize)>> = BTreeMap::new();
        for (index, call) in history.calls.iter().enumerate().filter(|(_, call)| is_wanted(call.chain) && call.ran()) {
            let Some(input) = values.input(index) else { continue };
            let given = values.given(index);
            let names = given.iter().map(|given| top(values.names.text(given.argument))).collect();
            let unkept = usize::from(input.leaves).saturating_sub(given.len());
            calls.entry(tools.text(call.tool)).or_default().push((names, unkept));
        }
        let seen = |calls: Vec<(BTreeSet<&str>, usize)>| {
            let all: BTreeSet<&str> = calls.iter().flat_map(|(names, _)| names.iter().copied()).collect();
            let may_have = |name: &&str| calls.iter().all(|(names, unkept)| *unkept > 0 || names.contains(name));
            Seen {
                always: all.into_iter().filter(may_have).map(str::to_owned).collect(),
                beside: calls.iter().all(|(names, unkept)| *unkept > 0 && names.len() + unkept > 1),
            }
        };
        Self { seen: calls.into_iter().map(|(tool, calls)| (tool.to_owned(), seen(calls))).collect(), ..self }
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
