//! Which calls show the text of files, by tool and command: the lists of `[file_text]` in `rules/endpoints.toml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::base::showing::Showing;
use crate::logs::endpoint::{EndpointArguments, program_of};
use crate::logs::shell::{Commands, Word};
use crate::logs::value_rules::WordSet;

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
    programs: WordSet,
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
    pub fn showing(&self, tool: &str, input: EndpointArguments<'_>) -> Showing {
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
    fn is_given(&self, listed: &BTreeMap<String, Vec<String>>, program: &str, words: &[Word<'_>]) -> bool {
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
