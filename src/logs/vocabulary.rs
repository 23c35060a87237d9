//! The words of Claude Code's logs that carry meaning for devboy, read from `rules/logs.toml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::base::id::Id;
use crate::base::names::means;

/// Record types, tool classes and the standard phrases by which a result tells how its call ended.
#[derive(Deserialize, Debug, Clone)]
pub struct Vocabulary {
    /// Record types that Claude Code is known to write.
    pub known_types: BTreeSet<String>,
    pub read_class_tools: BTreeSet<String>,
    pub file_read_tools: BTreeSet<String>,
    pub file_mutate_tools: BTreeSet<String>,
    pub quoting_arguments: BTreeSet<String>,
    /// Older names of tools, and the names that they go by now.
    pub tool_aliases: BTreeMap<String, String>,
    /// Starts of an error result that mean "the user said no".
    pub rejected_prefixes: Vec<String>,
    /// Starts of an error result that mean "a permission rule or the mode said no".
    pub denied_prefixes: Vec<String>,
    /// The same, for texts that begin with something of the user's: looked for near the start.
    pub denied_contains: Vec<String>,
    /// How many characters of the start are searched for them.
    pub denied_within_chars: usize,
    pub wrapper_prefixes: Vec<String>,
    pub restart_prefixes: Vec<String>,
    /// How many days Claude Code keeps logs unless its settings say otherwise.
    pub retention_days: i64,
    pub retention_slack_days: i64,
    /// How many days of logs a report looks at unless told otherwise.
    pub window_days: i64,
    /// Starts of an error result that mean "cancelled with a parallel call".
    pub cancelled_prefixes: Vec<String>,
    pub empty_answers: Vec<EmptyAnswers>,
}

/// Texts by which some tools say that there was nothing.
#[derive(Deserialize, Debug, Clone)]
pub struct EmptyAnswers {
    tools: Vec<String>,
    /// Whole answers.
    texts: Vec<String>,
}

impl Vocabulary {
    /// The names of the answers by which a tool says that there was nothing.
    pub fn empty_answers_of(&self, tool: &str) -> impl Iterator<Item = Id> {
        let own = self.empty_answers.iter().filter(move |answers| answers.tools.iter().any(|name| means(name, tool)));
        own.flat_map(|answers| &answers.texts).map(|text| Id::of(text.as_bytes()))
    }

    /// The vocabulary compiled into this program.
    #[cfg(any(test, fuzzing))]
    pub fn shipped() -> Self {
        crate::base::data::Data::default().parsed("logs.toml").expect("a test reads it")
    }
}
