//! What the light reading keeps of the `message` of a record: calls and results, drafted until the record around it is known to
//! be whole.
//!
//! Prompts, output and thinking are stepped over; inputs of tools are measured, results are decoded, measured and
//! named.

use std::borrow::Cow;

use memchr::memmem;

use crate::base::body_shape::BodyShape;
use crate::base::damage::Reason;
use crate::base::id::{Id, IdMap};
use crate::base::json::{Cursor, RawStr};
use crate::base::numbers::saturated;
use crate::logs::body::{Body, BodyStudy, Measured};
use crate::logs::content::{BlockFields, Content, ResultForm, TakeContent};
use crate::logs::endpoint::{EndpointArguments, Endpoints};
use crate::logs::field::{FieldResult, id_of, known_fields, span, text};
use crate::logs::leaves::quoted;
use crate::logs::timeline::TimelineBeside;
use crate::logs::trace::{Handle, NO_TIME, ResultKind, Status, ToolResult, ToolUse};
use crate::logs::value_draft::ValueDraft;
use crate::logs::value_rules::ValueRules;
use crate::logs::vocabulary::Vocabulary;

/// A tool name longer than this, or with control characters, is damage (it is counted under its text all the same).
const TOOL_NAME_BYTES_MAX: usize = 128;

/// What extraction needs to know from outside.
#[derive(Clone, Copy)]
pub struct ExtractionGuide<'v> {
    pub vocabulary: &'v Vocabulary,
    pub endpoints: &'v Endpoints,
    pub values: &'v ValueRules,
    /// Whether values are taken down: not where nobody keeps them or asks for them.
    pub with_values: bool,
    pub classify: fn(&[u8]) -> BodyShape,
    /// Whoever looks closer at bodies; nobody in a light reading.
    pub study: Option<&'v (dyn Fn() -> Box<dyn BodyStudy + 'v> + Sync)>,
    /// For who needs the timeline as well: files that go by in one piece are read both ways at once.
    pub timeline: Option<TimelineBeside<'v>>,
}

/// A drafted call.
pub struct CallDraft {
    /// The `tool_use` id.
    pub call: Id,
    pub tool: String,
    pub endpoint: String,
    /// The file that the input names, as it stands there.
    pub path: Option<Vec<u8>>,
    /// What it quotes of earlier results, if somebody looks at that.
    pub quote: Option<String>,
    /// What else the call tells; the rest is told by the record around it.
    pub asked: ToolUse,
}

/// How a text in the user's role begins.
#[derive(Clone, Copy, Default)]
struct Opening {
    /// Like something that no person types.
    is_wrapper: bool,
    /// Like something with which the context begins anew.
    is_restart: bool,
}

/// What decides how much is looked at in the result of a call.
#[derive(Clone, Copy)]
struct CalledTool {
    /// Not an MCP tool: the shape of its results is not asked for.
    is_builtin: bool,
    /// The published planner takes its results apart by lines.
    is_listing: bool,
}

/// What the `message` of the record at hand contributes.
pub struct MessageDraft<'v> {
    pub(super) guide: ExtractionGuide<'v>,
    body: Body<'v>,
    /// The tools of the calls seen so far.
    called: IdMap<Id, CalledTool>,
    /// How the first text begins.
    opening: Option<Opening>,
    pub asked: Vec<CallDraft>,
    /// Results with the calls that they answer.
    pub answered: Vec<(Id, ToolResult)>,
    /// What the results list and the calls are given, by their places in the two lists above.
    pub values: ValueDraft<'v>,
    /// What was odd in the record, the fields around the message included.
    pub damage: Vec<Reason>,
}

impl<'v> MessageDraft<'v> {
    /// An empty draft.
    pub fn new(guide: ExtractionGuide<'v>) -> Self {
        Self {
            guide,
            body: Body::new(guide.study.map(|begin| begin())),
            called: IdMap::default(),
            opening: None,
            asked: Vec::new(),
            answered: Vec::new(),
            values: ValueDraft::new(guide.values),
            damage: Vec::new(),
        }
    }

    /// Forgets the record before.
    pub fn clear(&mut self) {
        self.begin();
        self.damage.clear();
    }

    /// Takes note of the tool of a call. Other makers' models give ids again: the last call counts.
    pub fn note_call(&mut self, call: Id, tool: &str) {
        let is_listing = self.guide.values.is_listing(tool);
        self.called.insert(call, CalledTool { is_builtin: !tool.starts_with("mcp__"), is_listing });
    }

    /// Lets the study look at what a call of a message quotes.
    pub fn study_quote(&mut self, message: Id, call: Id, quote: &str) {
        if let Some(study) = &mut self.body.study {
            study.quote(message, call, quote);
        }
    }

    /// Whether content is what a person may have typed: no result, and no wrapper at its start.
    pub fn is_typed(&self, content: Content) -> bool {
        self.is_said(content) && !self.opening.unwrap_or_default().is_wrapper
    }

    /// Whether content is no result.
    pub fn is_said(&self, content: Content) -> bool {
        matches!(content, Content::Text | Content::Blocks) && self.answered.is_empty()
    }

    /// Whether the context begins anew with the record.
    pub fn is_restart(&self) -> bool {
        self.opening.unwrap_or_default().is_restart
    }

    fn opening(&self, text: RawStr<'_>) -> Opening {
        let begins_with = |prefixes: &[String]| {
            let head = text.head(prefixes.iter().map(String::len).max().unwrap_or_default());
            prefixes.iter().any(|prefix| head.starts_with(prefix.as_bytes()))
        };
        let Vocabulary { wrapper_prefixes, restart_prefixes, .. } = self.guide.vocabulary;
        Opening { is_wrapper: begins_with(wrapper_prefixes), is_restart: begins_with(restart_prefixes) }
    }

    fn draft_asked(&mut self, id: Option<RawStr<'_>>, name: Option<RawStr<'_>>, input: &[u8]) {
        if id.is_none() || name.is_none() {
            self.damage.push(Reason::MissingField);
        }
        let name = name.and_then(RawStr::decode).unwrap_or_default();
        if name.len() > TOOL_NAME_BYTES_MAX || name.iter().any(u8::is_ascii_control) {
            self.damage.push(Reason::OddToolName);
        }
        let tool = String::from_utf8_lossy(&name).into_owned();
        let fields = InputFields::of(input);
        let command = fields.command.and_then(RawStr::text);
        let url = fields.url.and_then(RawStr::text);
        let output_mode = fields.output_mode.and_then(RawStr::text);
        let words =
            EndpointArguments { command: command.as_deref(), url: url.as_deref(), output_mode: output_mode.as_deref() };
        let endpoint = self.guide.endpoints.class(&tool, words).into_owned();
        let showing = self.guide.endpoints.file_text.showing(&tool, words);
        let path = fields.path().and_then(RawStr::decode).filter(|path| !path.is_empty()).map(Cow::into_owned);
        let handle = match (&mut self.body.study, id) {
            (Some(study), Some(id)) => study.call(&id.decode().unwrap_or_default()),
            _ => Handle::default(),
        };
        let call = id.map(id_of).unwrap_or_default();
        let quoting = &self.guide.vocabulary.quoting_arguments;
        let quote = self.body.study.as_ref().and_then(|_| quoted(input, quoting));
        if self.guide.with_values {
            self.values.input(self.asked.len(), input);
        }
        let (input_bytes, lines) = (saturated(input.len() as u64), fields.lines);
        let asked = ToolUse { input_bytes, handle, showing, lines, ..ToolUse::default() };
        self.asked.push(CallDraft { call, tool, endpoint, path, quote, asked });
    }

    fn draft_answered(&mut self, block: &BlockFields<'_>) {
        let BlockFields { tool_use_id: id, failed, result, .. } = *block;
        if result.is_none() {
            self.body.clear();
        }
        let kind = self.result_kind(result.unwrap_or_default());
        if id.is_none() {
            self.damage.push(Reason::MissingField);
        }
        if self.body.lone_surrogates > 0 {
            self.damage.push(Reason::LoneSurrogate);
        }
        let call = id.map(id_of).unwrap_or_default();
        let called = self.called.get(&call).copied();
        let is_builtin = called.is_some_and(|tool| tool.is_builtin);
        let shape = if is_builtin { BodyShape::Unknown } else { self.shape() } as u8;
        let status = if failed { self.failure() } else { Status::Ok };
        let Measured { id: body, chars, bytes } = self.body.measure();
        if let (true, Status::Ok, Some(text)) = (self.guide.with_values, status, self.body.whole()) {
            self.values.answer(self.answered.len(), text, called.is_none_or(|tool| tool.is_listing));
        }
        let (chars, bytes) = (saturated(chars), saturated(bytes));
        let answered = ToolResult { record: 0, block: 0, ts: NO_TIME, chars, bytes, body, kind, status, shape };
        self.answered.push((call, answered));
    }

    fn result_kind(&self, form: ResultForm) -> ResultKind {
        match (self.body.head().is_empty(), form.texts, form.media + form.others) {
            (_, 0, 1..) => ResultKind::NonText,
            (_, 1.., 1..) => ResultKind::Mixed,
            (true, _, _) => ResultKind::Empty,
            (false, _, _) => ResultKind::Text,
        }
    }

    fn shape(&self) -> BodyShape {
        self.body.whole().map_or(BodyShape::Unknown, self.guide.classify)
    }

    /// What an error result means, by how its text begins.
    fn failure(&self) -> Status {
        let head = self.body.head();
        let near = first_chars(head, self.guide.vocabulary.denied_within_chars);
        let words = self.guide.vocabulary;
        let begins = |prefixes: &[String]| prefixes.iter().any(|prefix| head.starts_with(prefix.as_bytes()));
        let denied = || words.denied_contains.iter().any(|text| memmem::find(near, text.as_bytes()).is_some());
        if begins(&words.rejected_prefixes) || begins(&words.denied_prefixes) || denied() {
            Status::Rejected
        } else if begins(&words.cancelled_prefixes) {
            Status::Cancelled
        } else {
            Status::Error
        }
    }
}

impl<'a, 'v> TakeContent<'a> for MessageDraft<'v> {
    type Text = Body<'v>;

    fn odd(&mut self, reason: Reason) {
        self.damage.push(reason);
    }

    fn begin(&mut self) {
        self.opening = None;
        self.asked.clear();
        self.answered.clear();
        self.values.clear();
    }

    fn string(&mut self, text: RawStr<'a>) {
        self.opening = Some(self.opening(text));
    }

    fn begin_result(&mut self) {
        self.body.clear();
    }

    fn result_text(&mut self) -> &mut Body<'v> {
        &mut self.body
    }

    fn block(&mut self, block: &BlockFields<'a>) {
        self.opening = self.opening.or_else(|| block.text.map(|text| self.opening(text)));
        match block.kind.map(|kind| kind.0) {
            Some(b"tool_use") => self.draft_asked(block.id, block.name, block.input.unwrap_or_default()),
            Some(b"tool_result") => self.draft_answered(block),
            Some(_) => {}
            None => self.damage.push(Reason::MissingField),
        }
    }
}

/// The fields of a tool's input that tell what it works on, escapes not yet resolved.
#[derive(Default, Clone, Copy)]
pub struct InputFields<'a> {
    /// What a shell is to run.
    pub command: Option<RawStr<'a>>,
    url: Option<RawStr<'a>>,
    output_mode: Option<RawStr<'a>>,
    /// By rank: `file_path`, `path`, `notebook_path`.
    paths: [Option<RawStr<'a>>; 3],
    /// `offset` and `limit`.
    lines: [u32; 2],
}

impl<'a> InputFields<'a> {
    /// The fields of an input that is an object of a known form; none of any other.
    pub fn of(input: &'a [u8]) -> Self {
        let mut fields = Self::default();
        known_fields(input, |key, cursor| {
            let field = match key {
                b"offset" => return whole(cursor).map(|first| fields.lines[0] = first),
                b"limit" => return whole(cursor).map(|count| fields.lines[1] = count),
                b"command" => &mut fields.command,
                b"url" => &mut fields.url,
                b"output_mode" => &mut fields.output_mode,
                b"file_path" => &mut fields.paths[0],
                b"path" => &mut fields.paths[1],
                b"notebook_path" => &mut fields.paths[2],
                _ => return cursor.skip_value(),
            };
            *field = text(cursor)?.or(*field);
            Ok(())
        });
        fields
    }

    /// The file or directory that the call names.
    pub fn path(&self) -> Option<RawStr<'a>> {
        self.paths.into_iter().flatten().find(|path| !path.0.is_empty())
    }
}

/// A whole number, also one in quotes; 0 for anything else.
fn whole(cursor: &mut Cursor<'_>) -> FieldResult<u32> {
    let number = span(cursor)?;
    let digits = number.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(number);
    Ok(std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or_default())
}

/// The first `count` characters of UTF-8 text.
fn first_chars(text: &[u8], count: usize) -> &[u8] {
    let starts = text.iter().enumerate().filter(|(_, byte)| **byte & 0xC0 != 0x80);
    &text[..starts.map(|(index, _)| index).nth(count).unwrap_or(text.len())]
}
