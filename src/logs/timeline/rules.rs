//! The numbers and words of `rules/timeline.toml`.

use std::collections::BTreeMap;

use memchr::memmem;
use serde::Deserialize;

use crate::base::model_id;

/// `rules/timeline.toml`.
#[derive(Deserialize, Debug, Clone)]
pub struct TimelineRules {
    pub shrink_tokens_min: u64,
    pub skill_tools: Vec<String>,
    pub plan_tools: Vec<String>,
    pub plan_attachments: Vec<String>,
    pub plan_permission_mode: String,
    pub tool_attachments: Vec<String>,
    pub attachments: Vec<String>,
    pub agent_type_keys: Vec<String>,
    /// The value of `sessionKind` of sessions that run in the background.
    pub background_session_kind: String,
    pub resume_hooks: Vec<String>,
    /// How much of the start of a text is taken for its words, in code points.
    pub utterance_chars_max: usize,
    pub hooks: HookRules,
    /// What is followed back through the context.
    pub references: ReferenceRules,
    pub identifiers: IdentifierRules,
    pub fields: FieldRules,
    helper_agents: BTreeMap<String, String>,
    efforts_share_cache: Vec<String>,
    skill_prefixes: Vec<String>,
    interrupt_prefixes: Vec<String>,
    resume_commands: Vec<String>,
    command_within_bytes: usize,
    workspace_names: Vec<String>,
    workspace_directories: Vec<String>,
    markdown_endings: Vec<String>,
    file_kinds: BTreeMap<String, Vec<String>>,
}

/// The table `[hooks]`.
#[derive(Deserialize, Debug, Clone)]
pub struct HookRules {
    pub attachments: Vec<String>,
    /// Attachments whose text the model is sent.
    pub context_attachments: Vec<String>,
    /// Attachments whose text is the hook's output, which the model is sent at some events.
    pub output_attachments: Vec<String>,
    pub output_events: Vec<String>,
    pub summed_events: Vec<String>,
}

/// The table `[references]`.
#[derive(Deserialize, Debug, Clone)]
pub struct ReferenceRules {
    pub edit_tools: Vec<String>,
    pub edit_keys: Vec<String>,
    pub file_tools: Vec<String>,
    pub file_keys: Vec<String>,
    /// Shortest line that is followed, in code points.
    pub line_chars_min: u64,
    pub prefix_bytes_max: usize,
    pub sources_max: usize,
    pub lines_max: usize,
    pub identifiers_max: usize,
}

/// The table `[identifiers]`.
#[derive(Deserialize, Debug, Clone)]
pub struct IdentifierRules {
    pub bytes_min: usize,
    pub path_bytes_min: usize,
    /// Fewest hexadecimal digits.
    pub hex_digits_min: usize,
    pub symbol_chars_min: usize,
    pub ticket_letters: Span,
    pub ticket_digits: Span,
}

/// The table `[fields]`.
#[derive(Deserialize, Debug, Clone)]
pub struct FieldRules {
    pub data_tools: Vec<String>,
    pub named_endpoints: Vec<String>,
    /// Tools that write text into files.
    pub edit_tools: Vec<String>,
    /// Levels of JSON that are walked.
    pub depth_max: usize,
    /// Fields kept of one answer.
    pub fields_max: usize,
    /// Values followed of one answer.
    pub values_max: usize,
    pub text_bytes_min: usize,
    /// Values held per generation, by their first word.
    pub told_max: usize,
    pub written_max: usize,
    text_bytes_max: usize,
    words_max: usize,
    digits_min: usize,
    plain_bytes_min: usize,
    key_bytes_max: usize,
    key_digits_max: usize,
}

impl FieldRules {
    /// A key as it may be kept: an identifier. All others are data.
    pub fn name<'k>(&self, key: &'k [u8]) -> Option<&'k str> {
        let digits = key.iter().filter(|byte| byte.is_ascii_digit()).count();
        let is_name = key.first().is_some_and(|first| !first.is_ascii_digit())
            && key.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            && key.len() <= self.key_bytes_max
            && digits <= self.key_digits_max;
        if is_name { std::str::from_utf8(key).ok() } else { None }
    }

    /// Whether a value says where it is from when it is met again.
    pub fn is_followed(&self, value: &[u8]) -> bool {
        if value.iter().all(u8::is_ascii_digit) {
            return value.len() >= self.digits_min && value.len() <= self.text_bytes_max;
        }
        let is_odd = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_punctuation() || byte.is_ascii_whitespace();
        let mixes_case = || value[1..].iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase);
        let words = || value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
        (self.text_bytes_min..=self.text_bytes_max).contains(&value.len())
            && !value.iter().any(|byte| matches!(byte, b'\n' | b'\t' | b'\r'))
            && words() <= self.words_max
            && (value.len() >= self.plain_bytes_min || value.iter().any(is_odd) || mixes_case())
    }
}

/// How many of something there may be, both ends included.
#[derive(Deserialize, Debug, Clone, Copy)]
pub struct Span(usize, usize);

impl Span {
    /// Whether a number lies in it.
    pub fn contains(self, number: &usize) -> bool {
        (self.0..=self.1).contains(number)
    }
}

impl TimelineRules {
    /// The rules compiled into this program.
    #[cfg(any(test, fuzzing))]
    pub fn shipped() -> Self {
        crate::base::data::Data::default().parsed("timeline.toml").expect("a test reads it")
    }

    /// Whether a model keeps its cache where the effort changes: one of those that are listed, or a later minor version of one.
    pub fn keeps_cache_over_efforts(&self, model: &str) -> bool {
        let model = model_id::normalise(model);
        let is_later = |listed: &String| {
            let (model, listed) = (model_id::minor_version(&model), model_id::minor_version(listed));
            model.zip(listed).is_some_and(|((of, minor), (listed, first))| of == listed && minor >= first)
        };
        self.efforts_share_cache.iter().any(|listed| *listed == model || is_later(listed))
    }

    /// The kind of an agent that the client runs for itself, told by how its id begins.
    pub fn helper_agent(&self, id: &[u8]) -> Option<&str> {
        let mut helpers = self.helper_agents.iter();
        helpers.find(|(prefix, _)| id.starts_with(prefix.as_bytes())).map(|(_, kind)| kind.as_str())
    }

    /// Whether a text is that of an expanded skill.
    pub fn is_skill(&self, text: &[u8]) -> bool {
        begins(text, &self.skill_prefixes)
    }

    /// Whether a text says that the person interrupted.
    pub fn is_interrupt(&self, text: &[u8]) -> bool {
        begins(text, &self.interrupt_prefixes)
    }

    /// Whether a text is a command by which a session is left or taken up.
    pub fn is_resume(&self, text: &[u8]) -> bool {
        const OPEN: &[u8] = b"<command-name>";
        if text.first() != Some(&b'<') {
            return false;
        }
        let head = &text[..text.len().min(self.command_within_bytes)];
        let Some(name) = memmem::find(head, OPEN).map(|at| &head[at + OPEN.len()..]) else { return false };
        let name = name.split(|&byte| byte == b'<').next().unwrap_or_default();
        is_one_of(name.trim_ascii(), &self.resume_commands)
    }

    /// Whether a path (normalised) is that of a Markdown file.
    pub fn is_markdown(&self, path: &[u8]) -> bool {
        self.markdown_endings.iter().any(|ending| {
            let tail = path.len().checked_sub(ending.len()).map(|start| &path[start..]);
            tail.is_some_and(|tail| tail.eq_ignore_ascii_case(ending.as_bytes()))
        })
    }

    /// What a file is by its name (normalised path): a word of the table `file_kinds`, or "other".
    pub fn file_kind(&self, path: &[u8]) -> &str {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_ascii_lowercase();
        let fits = |ending: &String| {
            let is_ending = ending.starts_with('.') && name.len() > ending.len() && name.ends_with(ending.as_bytes());
            is_ending || name == ending.as_bytes()
        };
        self.file_kinds.iter().find(|(_, endings)| endings.iter().any(fits)).map_or("other", |(kind, _)| kind)
    }

    /// Whether a path (normalised) is that of a file that tells the model how to work.
    pub fn is_workspace(&self, path: &[u8]) -> bool {
        let mut parts = path.rsplit(|&byte| byte == b'/');
        let name = parts.next().unwrap_or_default();
        is_one_of(name, &self.workspace_names) || parts.any(|part| is_one_of(part, &self.workspace_directories))
    }
}

/// Whether a word is one of those that are listed.
pub(super) fn is_one_of(word: &[u8], words: &[String]) -> bool {
    words.iter().any(|known| known.as_bytes() == word)
}

fn begins(text: &[u8], prefixes: &[String]) -> bool {
    prefixes.iter().any(|prefix| text.starts_with(prefix.as_bytes()))
}
