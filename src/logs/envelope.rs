//! The outer fields of records, and the small objects in them that say what happened: read once, for every reader.

use crate::base::id::Id;
use crate::base::json::{Cursor, JsonKind, RawStr};
use crate::base::numbers::DAY_MS;
use crate::logs::content::{MessageFields, TOKENS_MAX, TakeContent, expected, name, read_message};
use crate::logs::field::{
    FieldResult, Memo, each_field, flag_or, id_of, known_fields, parse_millis, pseudonym_of, span, text, whole_number,
};
use crate::logs::path::normal_path;
use crate::logs::timeline::requests::Trigger;
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

impl ParentField<'_> {
    /// The `uuid`, or none.
    pub(super) fn id(self) -> Id {
        if let Self::Uuid(uuid) = self { id_of(uuid) } else { Id::NONE }
    }
}

/// The outer fields of a record.
#[derive(Default, Clone, Copy)]
pub(super) struct Envelope<'a> {
    /// `type`.
    pub(super) kind: Option<RawStr<'a>>,
    pub(super) subtype: Option<RawStr<'a>>,
    /// `sessionId`.
    pub(super) session: Option<RawStr<'a>>,
    /// `session_id`.
    pub(super) session_snake: Option<RawStr<'a>>,
    /// `agentId`.
    pub(super) agent: Option<RawStr<'a>>,
    pub(super) uuid: Option<RawStr<'a>>,
    /// `forkedFrom.messageUuid`: the record that this one is a copy of, in the session that was forked.
    pub(super) copied: Option<RawStr<'a>>,
    /// `parentUuid`.
    pub(super) parent: ParentField<'a>,
    /// `requestId`.
    pub(super) request: Option<RawStr<'a>>,
    pub(super) cwd: Option<RawStr<'a>>,
    pub(super) version: Option<RawStr<'a>>,
    pub(super) timestamp: Option<RawStr<'a>>,
    /// `permissionMode`.
    pub(super) permission_mode: Option<RawStr<'a>>,
    /// `isSidechain`, once it was seen.
    pub(super) sidechain: Option<bool>,
    /// `isCompactSummary`.
    pub(super) summary: bool,
    /// `isMeta`.
    pub(super) meta: bool,
    /// `message`, if it is an object; its content went to whoever takes it.
    pub(super) message: Option<MessageFields<'a>>,
    pub(super) data: Option<&'a [u8]>,
    pub(super) attachment: Option<&'a [u8]>,
    /// `compactMetadata` or `microcompactMetadata`.
    pub(super) metadata: Option<&'a [u8]>,
    /// `gitBranch`.
    pub(super) branch: Option<RawStr<'a>>,
    pub(super) effort: Option<RawStr<'a>>,
    /// `sessionKind`.
    pub(super) session_kind: Option<RawStr<'a>>,
    /// Of an `agent-setting`: the agent that the main thread was started as.
    pub(super) agent_setting: Option<RawStr<'a>>,
    /// `teamName`.
    pub(super) team: Option<RawStr<'a>>,
    /// `agentName`.
    pub(super) agent_name: Option<RawStr<'a>>,
    /// The call that a progress record is about.
    pub(super) parent_call: Option<RawStr<'a>>,
    /// `toolDenialKind`: why a call was not allowed to run.
    pub(super) denial: Option<RawStr<'a>>,
    /// `toolUseResult`.
    pub(super) tool_result: Option<&'a [u8]>,
    /// Of a `cost-state`: tokens and cost by model.
    pub(super) model_usage: Option<&'a [u8]>,
    /// Of a `stop_hook_summary`: the hooks that ran, each with its time.
    pub(super) hook_infos: Option<&'a [u8]>,
}

/// What `compactMetadata` and `microcompactMetadata` say.
#[derive(Default)]
pub(super) struct Metadata {
    pub(super) trigger: Option<Trigger>,
    pub(super) pre_tokens: Option<u64>,
    pub(super) tokens_saved: Option<u64>,
    pub(super) calls: Vec<Id>,
}

impl<'a> Envelope<'a> {
    /// Reads the record at the cursor; the content of its message goes to `sink`.
    pub(super) fn read<S: TakeContent<'a>>(cursor: &mut Cursor<'a>, sink: &mut S) -> FieldResult<Self> {
        Self::read_until(cursor, sink, |_, _, _| false)
    }

    /// The same for who may have seen enough once type and session are known.
    pub(super) fn read_until<S: TakeContent<'a>>(
        cursor: &mut Cursor<'a>,
        sink: &mut S,
        mut is_enough: impl FnMut(&Self, &mut Cursor<'a>, &mut S) -> bool,
    ) -> FieldResult<Self> {
        let mut envelope = Self::default();
        let mut first = cursor.enter()?;
        while let Some(key) = cursor.next_key(&mut first)? {
            envelope.field(key.0, cursor, sink)?;
            if matches!(key.0, b"type" | b"sessionId") && is_enough(&envelope, cursor, sink) {
                break;
            }
        }
        Ok(envelope)
    }

    fn field<S: TakeContent<'a>>(&mut self, key: &[u8], cursor: &mut Cursor<'a>, sink: &mut S) -> FieldResult<()> {
        match key {
            b"type" => self.kind = expected(cursor, sink)?,
            b"subtype" => self.subtype = expected(cursor, sink)?,
            b"sessionId" => self.session = name(cursor, sink)?,
            b"session_id" => self.session_snake = name(cursor, sink)?,
            b"agentId" => self.agent = name(cursor, sink)?,
            b"uuid" => self.uuid = name(cursor, sink)?,
            b"forkedFrom" => self.copied = copied_from(span(cursor)?),
            b"parentUuid" => self.parent = parent_field(cursor, sink)?,
            b"requestId" => self.request = name(cursor, sink)?,
            b"cwd" => self.cwd = expected(cursor, sink)?,
            b"version" => self.version = expected(cursor, sink)?,
            b"timestamp" => self.timestamp = time(cursor)?,
            b"permissionMode" => self.permission_mode = text(cursor)?,
            b"isSidechain" => self.sidechain = Some(flag_or(cursor, &mut |reason| sink.odd(reason))?),
            b"isCompactSummary" => self.summary = flag_or(cursor, &mut |reason| sink.odd(reason))?,
            b"isMeta" => self.meta = flag_or(cursor, &mut |reason| sink.odd(reason))?,
            b"message" => self.message = read_message(cursor, sink)?,
            b"data" => self.data = Some(span(cursor)?),
            b"attachment" => self.attachment = Some(span(cursor)?),
            b"compactMetadata" | b"microcompactMetadata" => self.metadata = Some(span(cursor)?),
            b"gitBranch" => self.branch = text(cursor)?,
            b"effort" => self.effort = text(cursor)?,
            b"sessionKind" => self.session_kind = text(cursor)?,
            b"teamName" => self.team = text(cursor)?,
            b"agentName" => self.agent_name = text(cursor)?,
            b"agentSetting" => self.agent_setting = text(cursor)?,
            b"parentToolUseID" => self.parent_call = text(cursor)?,
            b"toolDenialKind" => self.denial = text(cursor)?,
            b"toolUseResult" => self.tool_result = Some(span(cursor)?),
            b"hookInfos" => self.hook_infos = Some(span(cursor)?),
            b"modelUsage" => self.model_usage = Some(span(cursor)?),
            _ => cursor.skip_value()?,
        }
        Ok(())
    }

    /// Its type; empty without one.
    pub(super) fn kind(&self) -> &'a [u8] {
        self.kind.map_or(b"", |kind| kind.0)
    }

    /// Hash of its `uuid`, or none; of a copy in a fork that of the original, which may have another one.
    pub(super) fn uuid(&self) -> Id {
        self.copied.or(self.uuid).map(id_of).unwrap_or_default()
    }

    /// Hash of its `uuid` by which the records behind it know it.
    pub(super) fn own_uuid(&self) -> Id {
        self.uuid.map(id_of).unwrap_or_default()
    }

    /// Its session, however the client spells the key.
    pub(super) fn session(&self) -> Option<RawStr<'a>> {
        self.session.or(self.session_snake)
    }

    /// Pseudonym of its session, or none.
    pub(super) fn session_id(&self, last: &mut Memo<Id>) -> Id {
        self.session().map_or(Id::NONE, |text| last.get(text.0, |raw| pseudonym_of(RawStr(raw))))
    }

    /// The path without `.` and the like; a relative one begins at the working directory of the record.
    pub(super) fn normal_path(&self, path: &[u8]) -> Vec<u8> {
        let cwd = self.cwd.and_then(RawStr::decode);
        normal_path(path, cwd.as_deref())
    }

    /// When it was written.
    pub(super) fn ts(&self) -> Millis {
        self.timestamp.and_then(|text| parse_millis(text.0)).unwrap_or(NO_TIME)
    }

    /// Whether it stands in a side chain.
    pub(super) fn is_sidechain(&self) -> bool {
        self.sidechain.unwrap_or_default()
    }

    /// Names a message without an id by its request, else by its record; never equal to a `message.id`.
    pub(super) fn message_id(&self) -> Id {
        let text = self.request.or(self.copied).or(self.uuid);
        let fallback = || text.map_or(Id::NONE, |text| Id::of(&[b"without message.id: ", text.0].concat()));
        self.message.and_then(|message| message.id).unwrap_or_else(fallback)
    }
}

/// The `messageUuid` of a `forkedFrom`.
fn copied_from(forked: &[u8]) -> Option<RawStr<'_>> {
    let mut copied = None;
    known_fields(forked, |key, cursor| {
        match key {
            b"messageUuid" => copied = text(cursor)?.filter(|uuid| !uuid.0.is_empty()),
            _ => cursor.skip_value()?,
        }
        Ok(())
    });
    copied
}

/// What stands for a time; null counts as absent. Of another type it is no time, as a text that says none.
fn time<'a>(cursor: &mut Cursor<'a>) -> FieldResult<Option<RawStr<'a>>> {
    match cursor.shape()? {
        JsonKind::String => cursor.string().map(Some),
        kind => Ok(Some(RawStr(span(cursor)?)).filter(|_| kind != JsonKind::Null)),
    }
}

fn parent_field<'a, S: TakeContent<'a>>(cursor: &mut Cursor<'a>, sink: &mut S) -> FieldResult<ParentField<'a>> {
    if cursor.shape()? == JsonKind::Null {
        cursor.skip_value()?;
        return Ok(ParentField::Null);
    }
    Ok(name(cursor, sink)?.map_or(ParentField::Absent, ParentField::Uuid))
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
    /// The fields of the attachment of a record.
    pub(super) fn of(attachment: &'a [u8]) -> Self {
        let mut fields = Self::default();
        known_fields(attachment, |key, cursor| {
            match key {
                b"type" => fields.kind = text(cursor)?,
                b"commandMode" => fields.mode = text(cursor)?,
                b"hookName" => fields.hook = text(cursor)?,
                b"prompt" => fields.prompt = Some(span(cursor)?),
                b"hookEvent" => fields.event = text(cursor)?,
                b"toolUseID" => fields.run = text(cursor)?,
                b"durationMs" => fields.millis = whole_number(cursor, MILLIS_MAX)?,
                b"content" => fields.content = Some(span(cursor)?),
                b"addedNames" => fields.names = Some(span(cursor)?),
                b"addedLines" => fields.lines = Some(span(cursor)?),
                b"addedBlocks" => fields.blocks = Some(span(cursor)?),
                _ => cursor.skip_value()?,
            }
            Ok(())
        });
        fields
    }
}

/// The fields of progress data.
#[derive(Default, Clone, Copy)]
pub(super) struct ProgressFields<'a> {
    /// `type`.
    pub(super) kind: Option<RawStr<'a>>,
    /// `hookName`.
    pub(super) hook: Option<RawStr<'a>>,
    /// `agentId`.
    pub(super) agent: Option<RawStr<'a>>,
    /// The record of a subagent that its parent repeats.
    pub(super) record: Option<Envelope<'a>>,
}

impl<'a> ProgressFields<'a> {
    /// Reads the `data` of a progress record; the content of the record in it goes to `sink`. Data of another form say
    /// nothing.
    pub(super) fn read<S: TakeContent<'a>>(data: &'a [u8], sink: &mut S) -> FieldResult<Self> {
        let mut fields = Self::default();
        each_field(data, |key, cursor| {
            match key {
                b"type" => fields.kind = expected(cursor, sink)?,
                b"hookName" => fields.hook = text(cursor)?,
                b"agentId" => fields.agent = expected(cursor, sink)?,
                b"message" if cursor.shape()? == JsonKind::Object => {
                    fields.record = Some(Envelope::read(cursor, sink)?);
                }
                _ => cursor.skip_value()?,
            }
            Ok(())
        })?;
        Ok(fields)
    }
}

impl Metadata {
    /// The fields of the metadata of a record.
    pub(super) fn of(metadata: &[u8]) -> Self {
        let mut fields = Self::default();
        known_fields(metadata, |key, cursor| {
            match key {
                b"trigger" => {
                    fields.trigger = match text(cursor)?.unwrap_or_default().0 {
                        b"manual" => Some(Trigger::Manual),
                        b"auto" => Some(Trigger::Auto),
                        _ => None,
                    }
                }
                b"preTokens" => fields.pre_tokens = whole_number(cursor, TOKENS_MAX)?,
                b"tokensSaved" => fields.tokens_saved = whole_number(cursor, TOKENS_MAX)?,
                b"compactedToolIds" if cursor.shape()? == JsonKind::Array => {
                    let mut first = cursor.enter()?;
                    while cursor.next_element(&mut first)? {
                        fields.calls.extend(text(cursor)?.map(id_of));
                    }
                }
                _ => cursor.skip_value()?,
            }
            Ok(())
        });
        fields
    }
}
