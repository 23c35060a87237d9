//! One line of a log to rows of a [`FileTrace`]: what each record type contributes, in a single descent.
//!
//! Records of types that nobody needs are recognised by their head and skipped. Inside the needed ones only `tool_use`,
//! `tool_result`, usage and envelope are looked at; prompts, output, thinking, `toolUseResult` and snapshots are stepped over.

use std::ops::Range;

use memchr::memmem;

use crate::base::damage::Reason;
use crate::base::id::Id;
use crate::base::json::{Cursor, RawStr};
use crate::base::names::Sym;
use crate::logs::content::MessageFields;
use crate::logs::envelope::{Attachment, Envelope, Metadata, ParentField, ProgressFields};
use crate::logs::field::{FieldResult, Memo, id_of, parse_millis};
use crate::logs::message::{CallDraft, ExtractionGuide, MessageDraft};
use crate::logs::path::directory;
use crate::logs::take::{TakeRecords, may_hold_another};
use crate::logs::trace::{
    CallRow, ChainIndex, ChainKey, Counters, FileTrace, MarkKind, MarkRow, MessageRow, Millis, NO_TIME, Place,
    SessionPlaces, SessionRow, Status, ToolResult, ToolUse, chain_place, count_under, merge_session,
};

/// Turns lines into rows. One extractor reads one piece of one file.
pub struct Extractor<'v> {
    trace: FileTrace,
    /// What the record at hand contributes.
    pub(super) draft: MessageDraft<'v>,
    session: Memo<Id>,
    project: Memo<(Id, Id)>,
    version: Memo<Sym>,
    chains: ChainIndex,
    sessions: SessionPlaces,
}

impl<'v> Extractor<'v> {
    /// An extractor for one piece of a file.
    pub fn new(guide: ExtractionGuide<'v>) -> Self {
        Self {
            trace: FileTrace::default(),
            draft: MessageDraft::new(guide),
            session: Memo::default(),
            project: Memo::default(),
            version: Memo::default(),
            chains: ChainIndex::default(),
            sessions: SessionPlaces::default(),
        }
    }

    /// The rows collected so far.
    pub fn finish(mut self) -> FileTrace {
        self.trace.value_names = std::mem::take(&mut self.draft.values.names);
        self.trace.fold(self.draft.guide.values);
        self.trace
    }

    /// The record is whole: turn what was drafted into rows.
    pub(super) fn commit(&mut self, envelope: &Envelope<'_>) {
        let record = self.trace.counters.items;
        self.trace.counters.items += 1;
        self.trace.counters.records += 1;
        for reason in std::mem::take(&mut self.draft.damage) {
            self.damage(reason);
        }
        let kind = self.count_type(envelope);
        let ts = self.timestamp(envelope);
        self.session_row(envelope, record, ts);
        match kind {
            b"assistant" | b"user" => {
                if envelope.message.is_none() || envelope.session().is_none() || envelope.timestamp.is_none() {
                    self.damage(Reason::MissingField);
                }
                self.speech(envelope, record, ts);
            }
            b"system" => self.system(envelope, record),
            b"attachment" if envelope.attachment.is_some_and(is_queued_prompt) => self.prompt(envelope, record),
            b"progress" => self.progress(envelope, record, ts),
            _ => {}
        }
        self.chain_marks(envelope, record);
    }

    fn count_type<'a>(&mut self, envelope: &Envelope<'a>) -> &'a [u8] {
        let Some(kind) = envelope.kind else {
            count_under(&mut self.trace.counters.types, "None", 1);
            self.damage(Reason::MissingField);
            return b"";
        };
        let name = String::from_utf8_lossy(kind.0);
        count_under(&mut self.trace.counters.types, &name, 1);
        if self.draft.guide.vocabulary.known_types.contains(&*name) {
            self.trace.counters.known_records += 1;
        } else {
            self.damage(Reason::UnknownType);
        }
        kind.0
    }

    fn timestamp(&mut self, envelope: &Envelope<'_>) -> Millis {
        let Some(text) = envelope.timestamp else { return NO_TIME };
        parse_millis(text.0).unwrap_or_else(|| {
            self.damage(Reason::MistypedField);
            NO_TIME
        })
    }

    fn session_row(&mut self, envelope: &Envelope<'_>, record: u32, ts: Millis) {
        if envelope.session().is_none() {
            return;
        }
        let session = envelope.session_id(&mut self.session);
        // Only the records of the conversation tell where and when a session took place; others may be skipped early.
        let talks = matches!(envelope.kind(), b"user" | b"assistant" | b"system");
        let cwd = envelope.cwd.filter(|cwd| talks && !cwd.0.is_empty());
        let (project, project_name) = cwd.map_or((Id::NONE, Id::NONE), |cwd| self.project.get(cwd.0, project_of));
        let Self { version, trace, .. } = self;
        let intern = |text: &[u8]| trace.names.intern(&String::from_utf8_lossy(text));
        let version = envelope.version.map_or(Sym(0), |text| version.get(text.0, intern));
        let ts = if talks { ts } else { NO_TIME };
        let project_record = if project.is_some() { record } else { u32::MAX };
        let row = SessionRow {
            session,
            project,
            project_name,
            project_record,
            version,
            ts_first: ts,
            ts_last: ts,
            records: 1,
        };
        merge_session(&mut self.trace.rows.sessions, &mut self.sessions, row, &self.trace.names);
    }

    fn damage(&mut self, reason: Reason) {
        self.trace.counters.damage.add(reason, self.trace.counters.lines);
    }

    fn chain_of(&mut self, envelope: &Envelope<'_>) -> u32 {
        let session = envelope.session_id(&mut self.session);
        let agent = envelope.agent.filter(|_| envelope.is_sidechain()).map(id_of).unwrap_or_default();
        let place = match (envelope.is_sidechain(), agent.is_some()) {
            (false, _) => Place::Main,
            (true, true) => Place::AgentFile,
            (true, false) => Place::Inline,
        };
        self.chain(ChainKey { session, agent, place })
    }

    fn chain(&mut self, key: ChainKey) -> u32 {
        chain_place(&mut self.trace.rows.chains, &mut self.chains, key)
    }

    /// Rows of a user or assistant record.
    fn speech(&mut self, envelope: &Envelope<'_>, record: u32, ts: Millis) {
        let chain = self.chain_of(envelope);
        if envelope.kind() == b"assistant" {
            return self.assistant_rows(chain, record, ts, envelope, false);
        }
        let content = envelope.message.unwrap_or_default().content;
        let (is_said, is_typed) = (self.draft.is_said(content), self.draft.is_typed(content));
        self.user_rows(record, ts, envelope, false);
        if is_said && !envelope.meta && !envelope.summary {
            self.said(envelope, record);
        }
        if is_typed && !envelope.meta && !envelope.summary {
            self.prompt(envelope, record);
        }
    }

    /// From what is said the conversation goes on, wherever that stands in it.
    fn said(&mut self, envelope: &Envelope<'_>, record: u32) {
        let other = match envelope.parent {
            _ if self.draft.is_restart() => Id::NONE,
            ParentField::Absent => return,
            parent => parent.id(),
        };
        if !envelope.is_sidechain() {
            let mark = MarkRow { record, kind: MarkKind::Said, other, ts: NO_TIME, ..MarkRow::default() };
            self.mark(envelope, mark);
        }
    }

    /// A person wrote. In side chains it is the parent that writes.
    fn prompt(&mut self, envelope: &Envelope<'_>, record: u32) {
        if !envelope.is_sidechain() {
            self.mark(envelope, MarkRow { record, kind: MarkKind::Prompt, ts: envelope.ts(), ..MarkRow::default() });
        }
    }

    /// A mark of what the record itself is.
    fn mark(&mut self, envelope: &Envelope<'_>, mark: MarkRow) {
        let chain = self.chain_of(envelope);
        self.trace.rows.marks.push(MarkRow { id: envelope.uuid(), chain, ..mark });
    }

    fn assistant_rows(&mut self, chain: u32, record: u32, ts: Millis, envelope: &Envelope<'_>, progress: bool) {
        let MessageFields { id, model, usage, finished, .. } = envelope.message.unwrap_or_default();
        let message = envelope.message_id();
        let model = model.and_then(RawStr::text).unwrap_or_default();
        let has_usage = usage.is_some() && model != "<synthetic>" && !progress;
        let model = self.trace.names.intern(&model);
        self.trace.rows.messages.push(MessageRow {
            id: message,
            model,
            chain,
            ts,
            copies: 1,
            // What is no API call adds nothing to one that happens to share its id.
            usage: usage.filter(|_| has_usage || progress).unwrap_or_default(),
            has_usage,
            has_id: id.is_some(),
            finished,
        });
        let first = self.trace.counters.blocks;
        for CallDraft { call, tool, endpoint, path, quote, asked } in std::mem::take(&mut self.draft.asked) {
            self.draft.note_call(call, &tool);
            if let Some(quote) = quote {
                self.draft.study_quote(message, call, &quote);
            }
            let block = self.trace.counters.blocks;
            self.trace.counters.blocks += 1;
            let tool = self.trace.names.intern(&tool);
            let endpoint = self.trace.names.intern(&endpoint);
            let path = path.map_or(Id::NONE, |path| Id::pseudonym(&envelope.normal_path(&path)));
            let asked = ToolUse { record, block, message, tool, chain, ts, endpoint, path, ..asked };
            self.trace.rows.calls.push(CallRow { call, asked: Some(asked), answered: None, progress });
        }
        self.value_rows(envelope, 0..0, first..self.trace.counters.blocks);
    }

    /// Values of the blocks of a record.
    fn value_rows(&mut self, envelope: &Envelope<'_>, answers: Range<u32>, calls: Range<u32>) {
        if !self.draft.values.is_empty() {
            let cwd = envelope.cwd.and_then(RawStr::decode);
            self.draft.values.commit(cwd.as_deref(), answers, calls, &mut self.trace.values);
        }
    }

    fn user_rows(&mut self, record: u32, ts: Millis, envelope: &Envelope<'_>, progress: bool) {
        let first = self.trace.counters.blocks;
        for (call, answered) in std::mem::take(&mut self.draft.answered) {
            let block = self.trace.counters.blocks;
            self.trace.counters.blocks += 1;
            // Whatever its text says: the tool did not run.
            let is_denied = envelope.denial.is_some() && answered.status == Status::Error;
            let status = if is_denied { Status::Rejected } else { answered.status };
            let answered = ToolResult { record, block, ts, status, ..answered };
            self.trace.rows.calls.push(CallRow { call, asked: None, answered: Some(answered), progress });
        }
        self.value_rows(envelope, first..self.trace.counters.blocks, 0..0);
    }

    fn system(&mut self, envelope: &Envelope<'_>, record: u32) {
        let mark = MarkRow { record, ts: NO_TIME, ..MarkRow::default() };
        match envelope.subtype.map(|subtype| subtype.0) {
            Some(b"compact_boundary") => {
                self.mark(envelope, MarkRow { kind: MarkKind::Boundary, ts: envelope.ts(), ..mark });
            }
            Some(b"microcompact_boundary") => {
                let chain = self.chain_of(envelope);
                let evicted = MarkRow { kind: MarkKind::Evicted, other: envelope.uuid(), chain, ..mark };
                let calls = envelope.metadata.map(Metadata::of).unwrap_or_default().calls;
                self.trace.rows.marks.extend(calls.into_iter().map(|id| MarkRow { id, ..evicted }));
            }
            _ => {}
        }
    }

    /// A subagent's own record, as its parent saw it.
    fn progress(&mut self, envelope: &Envelope<'_>, record: u32, ts: Millis) {
        let Some(data) = envelope.data else { return };
        self.draft.clear();
        let Ok(ProgressFields { kind, agent, record: Some(inner), .. }) = ProgressFields::read(data, &mut self.draft)
        else {
            return;
        };
        if kind.is_none_or(|kind| kind.0 != b"agent_progress") {
            return;
        }
        let inner = Envelope { cwd: inner.cwd.or(envelope.cwd), agent, ..inner };
        for reason in std::mem::take(&mut self.draft.damage) {
            self.damage(reason);
        }
        let session = envelope.session_id(&mut self.session);
        let agent = agent.map(id_of).unwrap_or_default();
        let chain = self.chain(ChainKey { session, agent, place: Place::Progress });
        let ts = Some(self.timestamp(&inner)).filter(|own| *own != NO_TIME).unwrap_or(ts);
        match inner.kind() {
            b"assistant" => self.assistant_rows(chain, record, ts, &inner, true),
            b"user" => self.user_rows(record, ts, &inner, true),
            _ => {}
        }
    }

    /// Marks that any record may carry: a compaction summary, a link of an inline side chain, a copy with a name of its own,
    /// or with which a fork begins.
    fn chain_marks(&mut self, envelope: &Envelope<'_>, record: u32) {
        let mark = |kind| MarkRow { record, kind, other: envelope.parent.id(), ts: NO_TIME, ..MarkRow::default() };
        if envelope.summary {
            self.mark(envelope, MarkRow { ts: envelope.ts(), ..mark(MarkKind::Summary) });
        }
        if envelope.is_sidechain() && envelope.agent.is_none() && envelope.uuid.is_some() {
            self.mark(envelope, mark(MarkKind::Link));
        }
        let is_copied = match envelope.parent {
            ParentField::Absent => false,
            // With it a conversation begins: it tells that all of it is a fork.
            ParentField::Null => envelope.copied.is_some(),
            ParentField::Uuid(_) => envelope.own_uuid() != envelope.uuid(),
        };
        if is_copied {
            self.mark(envelope, MarkRow { other: envelope.own_uuid(), ..mark(MarkKind::Copied) });
        }
    }
}

impl TakeRecords for Extractor<'_> {
    fn counters(&mut self) -> &mut Counters {
        &mut self.trace.counters
    }

    fn record(&mut self, cursor: &mut Cursor<'_>) -> FieldResult<()> {
        self.draft.clear();
        let envelope = Envelope::read_until(cursor, &mut self.draft, |envelope, cursor, _| {
            let is_enough = is_passed_over(envelope, cursor.rest());
            if is_enough {
                cursor.jump_to_end();
            }
            is_enough
        })?;
        self.commit(&envelope);
        Ok(())
    }
}

/// Decides, at the moment the type or the session of a record becomes known, whether the rest of the line can be
/// passed over unread: nobody needs the type, the line ends like a record, and nothing is glued on behind.
pub(super) fn is_passed_over(envelope: &Envelope<'_>, rest: &[u8]) -> bool {
    let kind = envelope.kind.map(|kind| kind.0);
    let unneeded = match kind {
        None | Some(b"user" | b"assistant" | b"system") => false,
        // These two carry no session.
        Some(b"file-history-snapshot" | b"summary") => true,
        Some(_) => envelope.session.is_some(),
    };
    unneeded
        && rest.last() == Some(&b'}')
        && !may_hold_another(rest)
        // A record inside a side chain may be the parent of one that counts.
        && envelope.sidechain.map_or_else(|| memmem::find(rest, b"\"isSidechain\"").is_none(), |is| !is)
        // Last, so that a line of many glued records is not searched to its end for each of them.
        && (kind != Some(b"progress") || !says(envelope.data, rest, b"\"agent_progress\""))
        && (kind != Some(b"attachment") || !says(envelope.attachment, rest, b"\"queued_command\""))
}

/// Whether a word stands in a field that was read already, or in what is left of the record.
fn says(field: Option<&[u8]>, rest: &[u8], word: &[u8]) -> bool {
    memmem::find(rest, word).is_some() || field.is_some_and(|field| memmem::find(field, word).is_some())
}

/// Whether an attachment is a prompt that was sent while the assistant worked.
fn is_queued_prompt(attachment: &[u8]) -> bool {
    let Attachment { kind, mode, .. } = Attachment::of(attachment);
    kind.is_some_and(|kind| kind.0 == b"queued_command") && mode.is_some_and(|mode| mode.0 == b"prompt")
}

/// Pseudonyms of a working directory (as it stands in the JSON) and of its last component.
pub(super) fn project_of(raw: &[u8]) -> (Id, Id) {
    let path = RawStr(raw).decode().unwrap_or_default();
    let path = directory(&path);
    // Paths of either kind of system.
    let last = path.rsplit(|&byte| byte == b'/' || byte == b'\\').next();
    (Id::pseudonym(&path), Id::pseudonym(last.unwrap_or(&path)))
}
