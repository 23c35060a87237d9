//! Sessions written step by step, read from log text into a history with its values.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::log_builder::*;
use crate::base::data::Data;
use crate::base::id::{Id, IdMap};
use crate::base::names::Names;
use crate::logs::assemble::{Kept, assemble};
use crate::logs::corpus::{Corpus, RowSource};
use crate::logs::history::History;
use crate::logs::values::{CallBlocks, CallValues, ValueRows};
use crate::mine::projections::ToldHistory;
use crate::planner::value_models::{LayerPrecedence, ModelLayers, ValueModels};
use crate::settings::SettingsFile;
use crate::settings::annotations::Annotations;

/// A session in the making: steps that come one after the other.
pub struct Script {
    session: String,
    records: Vec<Record>,
    second: u32,
    steps: u32,
    calls: u32,
}

impl Script {
    pub fn new(session: &str) -> Self {
        Self { session: session.to_owned(), records: Vec::new(), second: 0, steps: 0, calls: 0 }
    }

    /// Calls made in parallel: tool, input, answer. They are answered a second later; the next step comes nine seconds
    /// after that.
    pub fn step(mut self, calls: &[(&str, Value, &str)]) -> Self {
        self.step_in_place(calls, false);
        self
    }

    /// A call that fails.
    pub fn failing(mut self, tool: &str, input: Value) -> Self {
        self.step_in_place(&[(tool, input, "no such thing")], true);
        self
    }

    fn step_in_place(&mut self, calls: &[(&str, Value, &str)], fail: bool) {
        let id = |number: u32| format!("toolu_{}_{number}", self.session);
        let blocks: Vec<Value> = (self.calls..)
            .zip(calls)
            .map(|(number, (tool, input, _))| {
                json!({ "type": "tool_use", "id": id(number), "name": tool, "input": input })
            })
            .collect();
        let message = format!("m-{}-{}", self.session, self.steps);
        let mut records = vec![assistant(&message, &blocks).at(self.second)];
        for (number, (_, _, body)) in (self.calls..).zip(calls) {
            let record = if fail { fails(&id(number), body) } else { answers(&id(number), *body) };
            records.push(record.at(self.second + 1));
        }
        self.records.extend(records.into_iter().map(|record| record.session(&self.session)));
        self.calls += calls.len() as u32;
        self.steps += 1;
        self.second += 10;
    }

    /// Lets time pass, or takes some of the nine seconds back.
    pub fn pause(mut self, seconds: i32) -> Self {
        self.second = self.second.saturating_add_signed(seconds);
        self
    }

    /// A search that lists these files, one call each.
    pub fn grep(self, files: &[&str]) -> Self {
        let pattern = json!({ "pattern": format!("word{}", self.calls) });
        self.step(&[("Grep", pattern, &files.join("\n"))])
    }

    /// A whole file is read.
    pub fn read(self, file: &str) -> Self {
        self.step(&[("Read", json!({ "file_path": path(file) }), "     1→fn main() {}")])
    }

    /// The context is compacted.
    pub fn compact(mut self) -> Self {
        let uuid = format!("c-{}-{}", self.session, self.steps);
        self.records.push(boundary(&uuid).at(self.second).session(&self.session));
        self
    }

    pub fn log(&self) -> String {
        log(&self.records)
    }
}

/// A file as a call names it.
pub fn path(file: &str) -> String {
    format!("{CWD}/{file}")
}

/// What was read.
pub struct Scene {
    pub history: History,
    pub values: CallValues,
    pub tools: Names,
}

impl Scene {
    pub fn of(scripts: &[Script]) -> Self {
        let (mut corpus, mut names, mut values) = (Corpus::default(), Names::default(), IdMap::default());
        for script in scripts {
            let mut trace = trace(script.log());
            let symbols = names.absorb(&trace.value_names);
            let mut own = ValueRows::default();
            own.append(std::mem::take(&mut trace.values), &symbols, 0);
            let (key, name) = (Id::pseudonym(script.session.as_bytes()), format!("{}.jsonl", script.session));
            values.insert(key, Arc::new(own));
            let source = RowSource { key, path: Some(name.into()), bytes: 0, counters: trace.counters.clone().into() };
            corpus.push(source, trace);
        }
        let history = assemble(&mut corpus, &|_| (), Kept::default()).0;
        let values = CallBlocks::of(&corpus, &history).gather(Arc::new(names), &values);
        Self { history, values, tools: corpus.names }
    }

    pub fn told(&self) -> ToldHistory<'_> {
        ToldHistory { history: &self.history, values: &self.values, tools: &self.tools }
    }

    /// Shipped models under a user's file.
    pub fn models(&self, user: &str) -> ValueModels {
        let annotations = Annotations::load(&Data::default()).unwrap();
        let mut layers = ModelLayers::default();
        let tools: BTreeSet<&str> = self.tools.texts().iter().map(String::as_str).collect();
        let of = |tool: &str| annotations.of(tool).map(|found| (found.model, found.origin));
        layers.annotate_reachable(tools, of).unwrap();
        layers.user(&SettingsFile::parse("pipeline_config.toml".as_ref(), user).unwrap());
        layers.resolve(LayerPrecedence::ByField).unwrap()
    }
}
