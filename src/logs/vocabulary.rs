//! The words of Claude Code's logs that carry meaning for devboy, read from `rules/logs.toml`.
//!
//! Which calls show the text of files, by tool and command: the lists of `[file_text]` in `rules/endpoints.toml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::base::body_shape::Showing;
use crate::base::error::{Error, Result};
use crate::base::id::Id;
use crate::logs::endpoint::{Input, program_of};
use crate::logs::shell::Commands;
use crate::logs::value_rules::Words;

/// The shipped vocabulary.
#[cfg(test)]
pub const SHIPPED: &str = include_str!("../../rules/logs.toml");

/// Record types, tool classes and the standard phrases by which a result tells how its call ended.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct Vocabulary {
    /// Record types that Claude Code is known to write.
    pub known_types: BTreeSet<String>,
    /// Tools that only read (the published list of rule P2).
    pub read_class_tools: BTreeSet<String>,
    /// Tools whose answers come from files (published list).
    pub file_read_tools: BTreeSet<String>,
    /// Tools that change a file (published list).
    pub file_mutate_tools: BTreeSet<String>,
    /// Arguments by which an edit quotes the text that it replaces.
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
    /// Starts of a text in the user's role that no person typed.
    pub wrapper_prefixes: Vec<String>,
    /// How many days Claude Code keeps logs unless its settings say otherwise.
    pub retention_days: i64,
    /// How many days of logs a report looks at unless told otherwise.
    pub window_days: i64,
    /// Starts of an error result that mean "cancelled with a parallel call".
    pub cancelled_prefixes: Vec<String>,
    /// Answers that only say that there was nothing.
    pub empty_answers: Vec<EmptyAnswers>,
}

/// Texts by which some tools say that there was nothing.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct EmptyAnswers {
    /// Tools; `*` at the end stands for anything.
    tools: Vec<String>,
    /// Whole answers.
    texts: Vec<String>,
}

impl EmptyAnswers {
    fn are_of(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| match name.strip_suffix('*') {
            Some(head) => tool.starts_with(head),
            None => tool == name,
        })
    }
}

impl Vocabulary {
    /// Reads a vocabulary file; `origin` names it in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        toml_edit::de::from_str(text).map_err(|cause| Error::failed(format!("{origin}: {cause}")))
    }

    /// The names of the answers by which a tool says that there was nothing.
    pub fn empty_answers_of(&self, tool: &str) -> impl Iterator<Item = Id> {
        let own = self.empty_answers.iter().filter(move |answers| answers.are_of(tool));
        own.flat_map(|answers| &answers.texts).map(|text| Id::of(text.as_bytes()))
    }

    /// The vocabulary compiled into this program.
    #[cfg(test)]
    pub fn shipped() -> Self {
        Self::parse(SHIPPED, "rules/logs.toml").expect("the shipped rules/logs.toml parses; a test reads it")
    }
}

/// How deep commands are looked for in words of commands (`ssh host 'cat …'`).
const NESTED_MAX: usize = 3;

/// Who shows text of files.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct FileText {
    /// Tools that show numbered lines.
    row_tools: BTreeSet<String>,
    /// Parts of the names of tools that show files in a form of their own.
    tool_parts: Vec<String>,
    /// Values of `output_mode` with which a search shows lines of files.
    content_modes: BTreeSet<String>,
    /// Programs that show lines of files.
    programs: Words,
    /// Of these, the ones that show what comes through a pipe.
    filters: BTreeSet<String>,
    /// Options with which a program numbers the lines.
    numbering: BTreeMap<String, Vec<String>>,
    /// Options with which a program shows no lines.
    silencing: BTreeMap<String, Vec<String>>,
    /// Letters of options whose value may follow at once.
    value_letters: String,
}

impl FileText {
    /// How a call shows the text of files, as far as its input tells.
    pub fn showing(&self, tool: &str, input: Input<'_>) -> Showing {
        if let Some(mode) = input.output_mode {
            return if self.content_modes.contains(mode) { Showing::Rows } else { Showing::Nothing };
        }
        if self.row_tools.contains(tool) {
            return Showing::Rows;
        }
        if self.tool_parts.iter().any(|part| tool.contains(part)) {
            return Showing::Lines;
        }
        input.command.and_then(|command| self.command(command, 0)).unwrap_or(Showing::Nothing)
    }

    /// The same for a command line; none if nothing of it shows a file. Numbers before lines are taken for such wherever
    /// some program writes them.
    fn command(&self, command: &str, depth: usize) -> Option<Showing> {
        let mut commands = Commands::of(command);
        let mut showing = None;
        while let Some(words) = commands.next() {
            for (place, word) in words.iter().enumerate() {
                if word.contains(char::is_whitespace) && depth < NESTED_MAX {
                    showing = showing.max(self.command(word, depth + 1));
                    continue;
                }
                let program = program_of(word.rsplit('/').next().unwrap_or_default());
                let options = &words[place + 1..];
                if !self.programs.has(program.as_bytes()) || self.is_given(&self.silencing, &program, options) {
                    continue;
                }
                let numbers = self.is_given(&self.numbering, &program, options);
                let passes_on = commands.is_piped && place == 0 && self.filters.contains(&*program);
                if !passes_on || numbers && showing.is_some() {
                    showing = showing.max(Some(if numbers { Showing::Rows } else { Showing::Lines }));
                }
            }
        }
        showing
    }

    /// Whether one of the options listed for a program is given.
    fn is_given(&self, listed: &BTreeMap<String, Vec<String>>, program: &str, words: &[String]) -> bool {
        let listed = listed.get(program).map(Vec::as_slice).unwrap_or_default();
        words.iter().any(|word| listed.iter().any(|option| self.gives(word, option)))
    }

    /// Whether a word of a command gives an option: `--count` as it is, `-n` also among other letters.
    fn gives(&self, word: &str, option: &str) -> bool {
        match (word.strip_prefix('-'), option.strip_prefix('-')) {
            (Some(letters), Some(letter)) if !letters.starts_with('-') && !letter.starts_with('-') => {
                let end = letters.find(|letter| self.value_letters.contains(letter)).unwrap_or(letters.len());
                letters[..end].contains(letter)
            }
            _ => word == option,
        }
    }
}
