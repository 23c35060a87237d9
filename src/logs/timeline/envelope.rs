//! The outer fields of records, and the small objects in them that say what happened.

use crate::base::id::Id;
use crate::base::json::{Cursor, RawStr, Shape};
use crate::base::numbers::DAY_MS;
use crate::logs::message::{TOKENS_MAX, id_of, span};
use crate::logs::time::parse_millis;
use crate::logs::timeline::content::{Outcome, flag, text};
use crate::logs::trace::{Millis, NO_TIME};

/// No hook runs for longer than a day; a larger number of milliseconds is none.
pub(super) const MILLIS_MAX: u64 = DAY_MS as u64;

/// What stands for the parent of a record.
#[derive(Default, Clone, Copy)]
pub(super) enum ParentField<'a> {
    #[default]
    Absent,
    Null,
    Uuid(RawStr<'a>),
}

/// The outer fields of a record.
#[derive(Default, Clone, Copy)]
pub(super) struct Envelope<'a> {
    pub(super) kind: Option<RawStr<'a>>,
    pub(super) subtype: Option<RawStr<'a>>,
    pub(super) session: Option<RawStr<'a>>,
    pub(super) session_snake: Option<RawStr<'a>>,
    pub(super) agent: Option<RawStr<'a>>,
    pub(super) uuid: Option<RawStr<'a>>,
    pub(super) parent: ParentField<'a>,
    pub(super) request: Option<RawStr<'a>>,
    pub(super) cwd: Option<RawStr<'a>>,
    pub(super) version: Option<RawStr<'a>>,
    pub(super) timestamp: Option<RawStr<'a>>,
    pub(super) permission_mode: Option<RawStr<'a>>,
    pub(super) sidechain: bool,
    pub(super) summary: bool,
    pub(super) meta: bool,
    pub(super) message: Option<&'a [u8]>,
    pub(super) data: Option<&'a [u8]>,
    pub(super) attachment: Option<&'a [u8]>,
    /// `compactMetadata` or `microcompactMetadata`.
    pub(super) metadata: Option<&'a [u8]>,
    pub(super) branch: Option<RawStr<'a>>,
    pub(super) effort: Option<RawStr<'a>>,
    pub(super) session_kind: Option<RawStr<'a>>,
    /// Of an `agent-setting`: the agent that the main thread was started as.
    pub(super) agent_setting: Option<RawStr<'a>>,
    pub(super) team: Option<RawStr<'a>>,
    pub(super) agent_name: Option<RawStr<'a>>,
    /// The call that a progress record is about.
    pub(super) parent_call: Option<RawStr<'a>>,
    pub(super) tool_result: Option<&'a [u8]>,
    /// Of a `cost-state`: tokens and cost by model.
    pub(super) model_usage: Option<&'a [u8]>,
    /// Of a `stop_hook_summary`: the hooks that ran, each with its time.
    pub(super) hook_infos: Option<&'a [u8]>,
}

/// What `compactMetadata` and `microcompactMetadata` say.
#[derive(Default)]
pub(super) struct Metadata {
    pub(super) manual: Option<bool>,
    pub(super) pre_tokens: Option<u64>,
    pub(super) tokens_saved: Option<u64>,
    pub(super) calls: Vec<Id>,
}

impl<'a> Envelope<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Outcome<Self> {
        let mut envelope = Self::default();
        cursor.enter()?;
        let mut first = true;
        while let Some(key) = cursor.next_key(&mut first)? {
            match key.0 {
                b"type" => envelope.kind = text(cursor)?,
                b"subtype" => envelope.subtype = text(cursor)?,
                b"sessionId" => envelope.session = text(cursor)?,
                b"session_id" => envelope.session_snake = text(cursor)?,
                b"agentId" => envelope.agent = text(cursor)?,
                b"uuid" => envelope.uuid = text(cursor)?,
                b"parentUuid" => envelope.parent = parent_field(cursor)?,
                b"requestId" => envelope.request = text(cursor)?,
                b"cwd" => envelope.cwd = text(cursor)?,
                b"version" => envelope.version = text(cursor)?,
                b"timestamp" => envelope.timestamp = text(cursor)?,
                b"permissionMode" => envelope.permission_mode = text(cursor)?,
                b"isSidechain" => envelope.sidechain = flag(cursor)?,
                b"isCompactSummary" => envelope.summary = flag(cursor)?,
                b"isMeta" => envelope.meta = flag(cursor)?,
                b"message" => envelope.message = Some(span(cursor)?),
                b"data" => envelope.data = Some(span(cursor)?),
                b"attachment" => envelope.attachment = Some(span(cursor)?),
                b"compactMetadata" | b"microcompactMetadata" => envelope.metadata = Some(span(cursor)?),
                b"gitBranch" => envelope.branch = text(cursor)?,
                b"effort" => envelope.effort = text(cursor)?,
                b"sessionKind" => envelope.session_kind = text(cursor)?,
                b"teamName" => envelope.team = text(cursor)?,
                b"agentName" => envelope.agent_name = text(cursor)?,
                b"agentSetting" => envelope.agent_setting = text(cursor)?,
                b"parentToolUseID" => envelope.parent_call = text(cursor)?,
                b"toolUseResult" => envelope.tool_result = Some(span(cursor)?),
                b"hookInfos" => envelope.hook_infos = Some(span(cursor)?),
                b"modelUsage" => envelope.model_usage = Some(span(cursor)?),
                _ => cursor.skip_value()?,
            }
        }
        Ok(envelope)
    }

    pub(super) fn kind(&self) -> &'a [u8] {
        self.kind.map_or(b"", |kind| kind.0)
    }

    pub(super) fn uuid(&self) -> Id {
        self.uuid.map(id_of).unwrap_or_default()
    }

    pub(super) fn ts(&self) -> Millis {
        self.timestamp.and_then(|text| parse_millis(text.0)).unwrap_or(NO_TIME)
    }
}

fn parent_field<'a>(cursor: &mut Cursor<'a>) -> Outcome<ParentField<'a>> {
    if cursor.shape()? == Shape::Null {
        cursor.skip_value()?;
        return Ok(ParentField::Null);
    }
    Ok(text(cursor)?.map_or(ParentField::Absent, ParentField::Uuid))
}

/// The fields of an attachment that tell what it is.
#[derive(Default, Clone, Copy)]
pub(super) struct Attachment<'a> {
    pub(super) kind: Option<RawStr<'a>>,
    pub(super) mode: Option<RawStr<'a>>,
    pub(super) hook: Option<RawStr<'a>>,
    pub(super) prompt: Option<&'a [u8]>,
    /// Of a hook: when it ran, which run it was, how long it took, and what it said.
    pub(super) event: Option<RawStr<'a>>,
    pub(super) run: Option<RawStr<'a>>,
    pub(super) millis: Option<u64>,
    pub(super) content: Option<&'a [u8]>,
    /// What was added to lists: names, and the texts that stand for them.
    pub(super) names: Option<&'a [u8]>,
    pub(super) lines: Option<&'a [u8]>,
    pub(super) blocks: Option<&'a [u8]>,
}

impl<'a> Attachment<'a> {
    /// The span was walked before: what fails here is an attachment of another form.
    pub(super) fn of(span: &'a [u8]) -> Self {
        let mut fields = Self::default();
        fields.read(span).unwrap_or_default();
        fields
    }

    fn read(&mut self, bytes: &'a [u8]) -> Outcome<()> {
        each_field(bytes, |key, cursor| {
            match key {
                b"type" => self.kind = text(cursor)?,
                b"commandMode" => self.mode = text(cursor)?,
                b"hookName" => self.hook = text(cursor)?,
                b"prompt" => self.prompt = Some(span(cursor)?),
                b"hookEvent" => self.event = text(cursor)?,
                b"toolUseID" => self.run = text(cursor)?,
                b"durationMs" => self.millis = whole_number(cursor, MILLIS_MAX)?,
                b"content" => self.content = Some(span(cursor)?),
                b"addedNames" => self.names = Some(span(cursor)?),
                b"addedLines" => self.lines = Some(span(cursor)?),
                b"addedBlocks" => self.blocks = Some(span(cursor)?),
                _ => cursor.skip_value()?,
            }
            Ok(())
        })
    }
}

/// The fields of progress data.
#[derive(Default, Clone, Copy)]
pub(super) struct Progress<'a> {
    pub(super) kind: Option<RawStr<'a>>,
    pub(super) hook: Option<RawStr<'a>>,
    pub(super) agent: Option<RawStr<'a>>,
    pub(super) message: Option<&'a [u8]>,
}

impl<'a> Progress<'a> {
    /// See [`Attachment::of`].
    pub(super) fn of(span: &'a [u8]) -> Self {
        let mut fields = Self::default();
        fields.read(span).unwrap_or_default();
        fields
    }

    fn read(&mut self, bytes: &'a [u8]) -> Outcome<()> {
        each_field(bytes, |key, cursor| {
            match key {
                b"type" => self.kind = text(cursor)?,
                b"hookName" => self.hook = text(cursor)?,
                b"agentId" => self.agent = text(cursor)?,
                b"message" => self.message = Some(span(cursor)?),
                _ => cursor.skip_value()?,
            }
            Ok(())
        })
    }
}

impl Metadata {
    /// See [`Attachment::of`].
    pub(super) fn of(span: &[u8]) -> Self {
        let mut fields = Self::default();
        fields.read(span).unwrap_or_default();
        fields
    }

    fn read(&mut self, bytes: &[u8]) -> Outcome<()> {
        each_field(bytes, |key, cursor| {
            match key {
                b"trigger" => {
                    self.manual = match text(cursor)?.unwrap_or_default().0 {
                        b"manual" => Some(true),
                        b"auto" => Some(false),
                        _ => None,
                    }
                }
                b"preTokens" => self.pre_tokens = whole_number(cursor, TOKENS_MAX)?,
                b"tokensSaved" => self.tokens_saved = whole_number(cursor, TOKENS_MAX)?,
                b"compactedToolIds" if cursor.shape()? == Shape::Array => {
                    cursor.enter()?;
                    let mut first = true;
                    while cursor.next_element(&mut first)? {
                        self.calls.extend(text(cursor)?.map(id_of));
                    }
                }
                _ => cursor.skip_value()?,
            }
            Ok(())
        })
    }
}

/// Walks the fields of an object.
pub(super) fn each_field<'a>(
    bytes: &'a [u8],
    mut take: impl FnMut(&[u8], &mut Cursor<'a>) -> Outcome<()>,
) -> Outcome<()> {
    let mut cursor = Cursor::new(bytes);
    if cursor.shape()? != Shape::Object {
        return Ok(());
    }
    cursor.enter()?;
    let mut first = true;
    while let Some(key) = cursor.next_key(&mut first)? {
        take(key.0, &mut cursor)?;
    }
    Ok(())
}

/// A whole number; one above `max` is none.
pub(super) fn whole_number(cursor: &mut Cursor<'_>, max: u64) -> Outcome<Option<u64>> {
    if cursor.shape()? == Shape::Number {
        return Ok(std::str::from_utf8(cursor.number()?)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .filter(|&number| number <= max));
    }
    cursor.skip_value()?;
    Ok(None)
}
