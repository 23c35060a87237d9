//! Endpoint classes: what a tool call is really about, in words that say nothing of the user; and which calls show the text
//! of files.
//!
//! A shell call is known by its effective command, a fetch by the public host it went to. Only words that
//! `rules/endpoints.toml` lists can become part of a class; everything else is one of a few coarse ones. Who shows the text of
//! files is told by tool and command, by the lists of `[file_text]` there.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::base::body_shape::Showing;
use crate::base::data::typed;
use crate::base::error::{Error, Result};
use crate::logs::shell::{Commands, Word};
use crate::logs::value_rules::WordSet;

/// Longest word that can name a program (published constant).
const WORD_CHARS_MAX: usize = 20;

/// The classes of what no list names.
const COARSE: [&str; 13] = [
    "bash_comment",
    "bash_empty",
    "bash_long_or_path",
    "bash_other",
    "bash_path_exec",
    "bash_shell_ctrl",
    "bash_unk",
    "git",
    "unknown",
    "web_empty",
    "web_other",
    "web_search",
    "web_unk",
];

/// The arguments of a tool that tell its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointArguments<'a> {
    /// What a shell is to run.
    pub command: Option<&'a str>,
    pub url: Option<&'a str>,
    /// In what form a search is to answer.
    pub output_mode: Option<&'a str>,
}

/// `rules/endpoints.toml` as it is written.
#[derive(Deserialize)]
struct Lists {
    one_class: BTreeMap<String, Vec<String>>,
    class_per_word: BTreeMap<String, Vec<String>>,
    passed_over: BTreeSet<String>,
    passed_on: BTreeMap<String, Vec<String>>,
    wrappers: BTreeMap<String, Options>,
    git_options_with_value: BTreeSet<String>,
    git_commands: Vec<String>,
    hosts: Vec<String>,
    file_text: FileText,
}

/// How a program is called that runs another one.
#[derive(Deserialize, Debug, Clone)]
struct Options {
    /// Options whose value is the next word.
    with_value: BTreeSet<String>,
    /// Words before the command it runs.
    operands: usize,
}

/// The classes of endpoints.
#[derive(Debug, Clone)]
pub struct Endpoints {
    /// Class by program.
    programs: BTreeMap<String, String>,
    passed_over: BTreeSet<String>,
    /// Programs that show what comes through a pipe and nothing of their own, with their options that ask for a number.
    passed_on: BTreeMap<String, Vec<String>>,
    wrappers: BTreeMap<String, Options>,
    git_options_with_value: BTreeSet<String>,
    /// Class by command of git.
    git_commands: BTreeMap<String, String>,
    /// Class by the last two labels of a host.
    hosts: BTreeMap<String, String>,
    /// Who shows the text of files.
    pub file_text: FileText,
}

impl Endpoints {
    /// Reads a list of words; `origin` names it in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let lists: Lists = typed(text, origin)?;
        let mut programs = BTreeMap::new();
        let one_class = lists.one_class.iter().map(|(class, words)| (class, words, false));
        let per_word = lists.class_per_word.iter().map(|(class, words)| (class, words, true));
        for (class, words, per_word) in one_class.chain(per_word) {
            for word in words {
                let class = if per_word { format!("{class}_{word}") } else { class.clone() };
                if programs.insert(word.clone(), class).is_some() {
                    return Err(Error::failed(format!("{origin}: `{word}` is in two classes")));
                }
            }
        }
        let prefixed = |prefix: &str, words: Vec<String>| -> BTreeMap<String, String> {
            words.into_iter().map(|word| (word.clone(), format!("{prefix}_{word}"))).collect()
        };
        Ok(Self {
            programs,
            passed_over: lists.passed_over,
            passed_on: lists.passed_on,
            wrappers: lists.wrappers,
            git_options_with_value: lists.git_options_with_value,
            git_commands: prefixed("git", lists.git_commands),
            hosts: prefixed("web", lists.hosts),
            file_text: lists.file_text,
        })
    }

    /// The list compiled into this program.
    #[cfg(any(test, fuzzing))]
    pub fn shipped() -> Self {
        crate::base::data::Data::default().read("endpoints.toml", Self::parse).expect("a test reads it")
    }

    /// All classes that are made of listed words: none says anything of a user.
    pub fn classes(&self) -> impl Iterator<Item = &str> {
        let listed = self.programs.values().chain(self.git_commands.values()).chain(self.hosts.values());
        listed.map(String::as_str).chain(COARSE)
    }

    /// The class of a call: that of the command for `Bash`, of the host for `WebFetch`, else the name of the tool.
    pub fn class<'a>(&'a self, tool: &'a str, input: EndpointArguments<'_>) -> Cow<'a, str> {
        match tool {
            "Bash" => self.command_class(input.command.unwrap_or_default()).into(),
            "WebFetch" => self.url_class(input.url.unwrap_or_default()),
            "WebSearch" => "web_search".into(),
            "" => "unknown".into(),
            _ => tool.into(),
        }
    }

    /// Whether a call is of one of these classes, and so is every command of it that prints something.
    pub fn is_wholly(&self, classes: &[String], tool: &str, input: EndpointArguments<'_>) -> bool {
        let is_listed = |class: &str| classes.iter().any(|listed| listed == class);
        let mut commands = Commands::of(input.command.unwrap_or_default());
        let mut is_wholly = is_listed(&self.class(tool, input));
        while let Some(words) = commands.next().filter(|_| is_wholly) {
            let Some(words) = self.unwrapped(&words) else { continue };
            let program = program_of(&words[0]);
            let is_silent = self.passed_over.contains(&*program) && !self.file_text.printers.contains(&*program);
            let counting = self.passed_on.get(&*program).filter(|_| commands.is_piped);
            let passes_on = counting.is_some_and(|counting| names_no_file(&words[1..], counting));
            is_wholly = is_silent || passes_on || is_listed(self.program_class(&program, &words[1..]));
        }
        is_wholly
    }

    /// The class of the first command that does something: neither prepares the shell nor runs another command.
    fn command_class(&self, command: &str) -> &str {
        let mut commands = Commands::of(command);
        let mut passed = None;
        for words in commands.by_ref() {
            let Some(words) = self.unwrapped(&words) else { continue };
            let program = program_of(&words[0]);
            if !self.passed_over.contains(&*program) {
                return self.program_class(&program, &words[1..]);
            }
            passed = passed.or_else(|| Some(self.program_class(&program, &[])));
        }
        match passed {
            Some(class) => class,
            None if command.trim().is_empty() => "bash_empty",
            None if commands.has_comment => "bash_comment",
            None => "bash_unk",
        }
    }

    /// The words of a command from its program on, without assignments and programs that only run it. `None` if there
    /// are only assignments.
    fn unwrapped<'w, 't>(&self, words: &'w [Word<'t>]) -> Option<&'w [Word<'t>]> {
        let mut words = without_assignments(words);
        while let Some(options) = words.first().and_then(|word| self.wrappers.get(&*program_of(word))) {
            let inner = options.passed(&words[1..]);
            if inner.is_empty() {
                break;
            }
            words = inner;
        }
        (!words.is_empty()).then_some(words)
    }

    fn program_class(&self, program: &str, arguments: &[Word<'_>]) -> &str {
        match program.as_bytes().first() {
            None => return "bash_unk",
            Some(b'/') => return "bash_path_exec",
            _ if ["~/", "./", "../"].iter().any(|start| program.starts_with(start)) => return "bash_path_exec",
            Some(b'$' | b'`' | b'{' | b'(' | b'[' | b'!') => return "bash_shell_ctrl",
            _ => {}
        }
        if program.contains(['/', '\\']) || program.chars().nth(WORD_CHARS_MAX).is_some() {
            return "bash_long_or_path";
        }
        match program {
            "git" => self.git_class(arguments),
            _ => self.programs.get(program).map_or("bash_other", String::as_str),
        }
    }

    fn git_class(&self, arguments: &[Word<'_>]) -> &str {
        let command = without_options(arguments, &self.git_options_with_value).first();
        command.and_then(|command| self.git_commands.get(&**command)).map_or("git", String::as_str)
    }

    fn url_class(&self, url: &str) -> Cow<'_, str> {
        let url = url.trim();
        if url.is_empty() {
            return "web_empty".into();
        }
        let Some(authority) = authority_of(url) else { return "web_unk".into() };
        let (host, port) = authority.split_once(':').map_or((&*authority, None), |(host, port)| (host, Some(port)));
        let domain = host.rmatch_indices('.').nth(1).map_or(host, |(dot, _)| &host[dot + 1..]);
        match (self.hosts.get(domain), port) {
            (Some(class), None | Some("")) => class.into(),
            (Some(class), Some(port)) if port.parse::<u16>().is_ok() => format!("{class}:{port}").into(),
            _ => "web_other".into(),
        }
    }
}

impl Options {
    /// The command that a wrapper runs, given its arguments.
    fn passed<'w, 't>(&self, arguments: &'w [Word<'t>]) -> &'w [Word<'t>] {
        let rest = without_assignments(without_options(arguments, &self.with_value));
        rest.get(self.operands..).unwrap_or_default()
    }
}

/// Whether words behind a program are options alone, with the number that those of `counting` ask for. Behind `--` anything is a
/// file.
fn names_no_file(words: &[Word<'_>], counting: &[String]) -> bool {
    let is_count = |before: Option<&Word<'_>>, word: &Word<'_>| {
        before.is_some_and(|option| counting.iter().any(|known| known == option))
            && word.trim_start_matches('+').bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_option = |word: &Word<'_>| word.starts_with('-') && **word != *"--";
    let befores = std::iter::once(None).chain(words.iter().map(Some));
    befores.zip(words).all(|(before, word)| is_option(word) || is_count(before, word))
}

fn without_options<'w, 't>(mut arguments: &'w [Word<'t>], with_value: &BTreeSet<String>) -> &'w [Word<'t>] {
    while let Some(word) = arguments.first().filter(|word| word.starts_with('-')) {
        let used = if with_value.contains(&**word) { 2 } else { 1 };
        arguments = arguments.get(used..).unwrap_or_default();
    }
    arguments
}

/// A program by its first word, as it is listed; a back-slash passes over an alias.
fn program_of(word: &str) -> Cow<'_, str> {
    let word = word.strip_prefix('\\').unwrap_or(word);
    let word =
        if word.bytes().any(|byte| byte.is_ascii_uppercase()) { word.to_lowercase().into() } else { Cow::from(word) };
    match word.strip_suffix(".exe") {
        Some(bare) => bare.to_owned().into(),
        None => word,
    }
}

fn without_assignments<'w, 't>(words: &'w [Word<'t>]) -> &'w [Word<'t>] {
    let count = words.iter().take_while(|word| is_assignment(word)).count();
    &words[count..]
}

/// `NAME=value`, `NAME+=value` or `NAME[index]=value`.
fn is_assignment(word: &str) -> bool {
    let name = word.split(['=', '[', '+']).next().unwrap_or_default();
    let is_name = !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name && word[name.len()..].contains('=')
}

/// Host and port of a web address in lower case, without a user.
fn authority_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    is_web.then(|| host.to_lowercase())
}

/// How deep commands are looked for in words of commands (`ssh host 'cat …'`).
const NESTED_MAX: usize = 3;

/// Who shows text of files.
#[derive(Deserialize, Debug, Clone)]
pub struct FileText {
    row_tools: BTreeSet<String>,
    tool_parts: Vec<String>,
    content_modes: BTreeSet<String>,
    programs: WordSet,
    filters: BTreeSet<String>,
    printers: BTreeSet<String>,
    numbering: BTreeMap<String, Vec<String>>,
    silencing: BTreeMap<String, Vec<String>>,
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
            if self.printers.contains(&*program_of(&words[0])) && depth < NESTED_MAX {
                let inner = commands.substituted.iter().map(|inner| self.command(inner, depth + 1));
                showing = inner.fold(showing, Ord::max);
            }
            for (place, word) in words.iter().enumerate() {
                if word.contains(char::is_whitespace) && depth < NESTED_MAX {
                    showing = showing.max(self.command(word, depth + 1));
                    continue;
                }
                let program = program_of(word.rsplit(['/', '\\']).next().unwrap_or_default());
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
