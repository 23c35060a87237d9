//! One record of a log to rows of a timeline: what it said, gave back or did to the context, and what it follows.

use std::sync::Arc;

use crate::base::id::{Id, IdMap};
use crate::base::json::{Cursor, RawStr};
use crate::base::names::Sym;
use crate::base::numbers::saturated;
use crate::base::tokenizer::TokenCounts;
use crate::logs::body::{STUDIED_BYTES, code_points, text_of};
use crate::logs::content::{MessageFields, read_content};
use crate::logs::envelope::{Attachment, Envelope, Metadata, ParentField, ProgressFields};
use crate::logs::field::{FieldResult, Memo, id_of, parse_millis};
use crate::logs::message::InputFields;
use crate::logs::record::project_of;
use crate::logs::take::TakeRecords;
use crate::logs::timeline::content::{ContentDraft, DraftBlock, DraftKind};
use crate::logs::timeline::fields::FieldFollower;
use crate::logs::timeline::identifiers::utterance;
use crate::logs::timeline::references::{References, TextSpot};
use crate::logs::timeline::requests::{BlockKind, Marks, NONE, RequestSetting, Session, ToolCall, Trigger};
use crate::logs::timeline::rows::{
    AgentRow, AnswerRow, BlockRow, ClearedRow, CompactedRow, FileTimeline, Parent, RecordKind, RecordRow,
};
use crate::logs::timeline::rules::is_one_of;
use crate::logs::timeline::words::WordList;
use crate::logs::timeline::{TimelineGuide, TokenCounter, beside};
use crate::logs::trace::{
    ChainIndex, ChainKey, Counters, Place, SUMMARY_WITHIN_RECORDS, SessionPlaces, chain_place, count_under, earlier,
};

/// The model of messages that the client wrote itself.
pub const SYNTHETIC: &str = "<synthetic>";

/// Turns the lines of one file, from its first to its last, into rows.
pub struct TimelineReader<'g, 'v> {
    guide: TimelineGuide<'v>,
    token_counter: Option<&'g mut (dyn TokenCounter + 'v)>,
    pub(in crate::logs) counters: Counters,
    out: FileTimeline,
    /// What the record at hand says.
    pub(in crate::logs) draft: ContentDraft,
    session: Memo<Id>,
    project: Memo<Id>,
    /// By `uuid`: the nearest kept record at or above each record. What stands outside is found in the list behind.
    above: IdMap<Id, Parent>,
    outside: Vec<Id>,
    /// By `uuid` of inline side-chain records: the record that began the side chain.
    roots: IdMap<Id, Id>,
    /// By chain: how things stand in it.
    standing: Vec<ChainStanding>,
    /// The kind of agent that calls asked for, and whether they named a model for it, by `tool_use` id.
    asked_for: IdMap<Id, (Vec<u8>, bool)>,
    branch: Memo<Id>,
    chains: ChainIndex,
    /// Places of the sessions in the rows.
    sessions: SessionPlaces,
    references: References<'v>,
    /// Followed where tokens are counted.
    fields: Option<FieldFollower<'v>>,
    answered: Option<Arc<AnswerRow>>,
    /// Numbers of messages, to tell an answer from what it answers.
    messages: IdMap<Id, u32>,
    words: WordList,
}

/// How things stand in a chain.
#[derive(Clone, Default)]
struct ChainStanding {
    /// Number and `uuid` of its last compaction.
    compacted: Option<(u32, Id)>,
    /// Whether its last prompt was in plan mode.
    plans: bool,
    /// The permission mode of its last prompt.
    mode: Id,
    /// Whether it is known by what name it works in a team.
    in_team: bool,
}

impl TakeRecords for TimelineReader<'_, '_> {
    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn record(&mut self, cursor: &mut Cursor<'_>) -> FieldResult<()> {
        let envelope = Envelope::read(cursor, &mut self.draft)?;
        self.take(&envelope);
        Ok(())
    }
}

impl<'g, 'v> TimelineReader<'g, 'v> {
    /// A reader for one file.
    pub fn new(guide: TimelineGuide<'v>, token_counter: Option<&'g mut (dyn TokenCounter + 'v)>) -> Self {
        let fields = token_counter.is_some().then(|| FieldFollower::new(guide.rules, guide.endpoints));
        // What is counted has to be held.
        let held_bytes_max = if token_counter.is_some() { usize::MAX } else { STUDIED_BYTES };
        Self {
            guide,
            token_counter,
            counters: Counters::default(),
            out: FileTimeline::default(),
            draft: ContentDraft::holding(held_bytes_max),
            session: Memo::default(),
            project: Memo::default(),
            above: IdMap::default(),
            outside: Vec::new(),
            roots: IdMap::default(),
            standing: Vec::new(),
            asked_for: IdMap::default(),
            branch: Memo::default(),
            chains: ChainIndex::default(),
            sessions: SessionPlaces::default(),
            references: References::new(guide.rules),
            fields,
            answered: None,
            messages: IdMap::default(),
            words: WordList::default(),
        }
    }

    /// The rows, and what was counted.
    pub fn finish(mut self) -> (FileTimeline, Counters) {
        self.skip("forgotten", self.references.forgotten());
        self.out.rows.references = self.references.found;
        self.out.rows.sources = self.references.sources;
        self.out.rows.fields = self.fields.map(|fields| fields.found).unwrap_or_default();
        // Of many small logs the room to grow would be as much as the rows.
        let rows = &mut self.out.rows;
        rows.records.shrink_to_fit();
        rows.blocks.shrink_to_fit();
        rows.references.shrink_to_fit();
        rows.sources.shrink_to_fit();
        rows.utterances.shrink_to_fit();
        rows.added.shrink_to_fit();
        self.out.rows.words = self.words.finish();
        (self.out, self.counters)
    }

    /// Takes a record, whose content was drafted.
    pub(in crate::logs) fn take(&mut self, envelope: &Envelope<'_>) {
        self.counters.items += 1;
        self.counters.records += 1;
        let parent = self.parent(envelope);
        self.side_chain(envelope);
        let kept = self.commit(envelope, parent);
        if let Some(uuid) = envelope.uuid {
            self.above.insert(id_of(uuid), kept.map_or(parent, Parent::Record));
        }
    }

    fn parent(&mut self, envelope: &Envelope<'_>) -> Parent {
        match envelope.parent {
            ParentField::Absent => Parent::Unknown,
            ParentField::Null => Parent::Nothing,
            ParentField::Uuid(uuid) => {
                let uuid = id_of(uuid);
                self.above.get(&uuid).copied().unwrap_or_else(|| {
                    self.outside.push(uuid);
                    Parent::Outside(self.outside.len() as u32 - 1)
                })
            }
        }
    }

    fn skip(&mut self, reason: &str, count: u64) {
        if count > 0 {
            count_under(&mut self.out.rows.skipped, reason, count);
        }
    }

    /// The record is whole: its row, if it becomes one.
    fn commit(&mut self, envelope: &Envelope<'_>, parent: Parent) -> Option<u32> {
        let (kind, has_message) = (envelope.kind(), envelope.message.is_some());
        if matches!(kind, b"user" | b"assistant" | b"system") {
            self.session_span(envelope);
        }
        match kind {
            b"user" if has_message => Some(self.user(envelope, parent, None)),
            b"assistant" if has_message => Some(self.assistant(envelope, parent, None)),
            b"user" | b"assistant" => {
                self.skip("no_message", 1);
                None
            }
            b"system" => self.system(envelope, parent),
            b"attachment" => self.attachment(envelope, parent),
            b"progress" => self.progress(envelope, parent),
            b"agent-setting" => {
                let kind = beside::word(&mut self.out.names, envelope.agent_setting?);
                let session = envelope.session_id(&mut self.session);
                self.out.rows.agents.push(AgentRow { session, kind, ..AgentRow::default() });
                None
            }
            b"cost-state" => {
                let session = envelope.session_id(&mut self.session);
                let stated = beside::stated_costs(session, envelope.model_usage?, &mut self.out.names);
                self.out.rows.stated_costs.extend(stated);
                None
            }
            _ => None,
        }
    }

    /// Remembers where and when a session took place.
    fn session_span(&mut self, envelope: &Envelope<'_>) {
        let session = envelope.session_id(&mut self.session);
        let cwd = envelope.cwd.filter(|cwd| !cwd.0.is_empty());
        let project = cwd.map_or(Id::NONE, |cwd| self.project.get(cwd.0, |raw| project_of(raw).0));
        let ts_first = envelope.ts();
        let background = self.guide.rules.background_session_kind.as_bytes();
        let is_background = envelope.session_kind.is_some_and(|kind| kind.0 == background);
        let sessions = &mut self.out.rows.sessions;
        let place = *self.sessions.entry(session).or_insert_with(|| {
            sessions.push(Session { id: session, project, ts_first, is_background });
            sessions.len() - 1
        });
        let known = &mut sessions[place];
        known.ts_first = earlier(known.ts_first, ts_first);
        known.is_background |= is_background;
        if !known.project.is_some() {
            known.project = project;
        }
    }

    fn chain_of(&mut self, envelope: &Envelope<'_>) -> u32 {
        let session = envelope.session_id(&mut self.session);
        if !envelope.is_sidechain() {
            return self.chain(ChainKey { session, agent: Id::NONE, place: Place::Main });
        }
        if let Some(agent) = envelope.agent {
            return self.agent_chain(session, agent);
        }
        let agent = self.roots.get(&envelope.own_uuid()).copied().unwrap_or(envelope.uuid());
        self.chain(ChainKey { session, agent, place: Place::Inline })
    }

    /// The chain of a subagent with records of its own. Those that the client runs for itself are told by their ids.
    fn agent_chain(&mut self, session: Id, agent: RawStr<'_>) -> u32 {
        let known = self.out.rows.chains.len();
        let chain = self.chain(ChainKey { session, agent: id_of(agent), place: Place::AgentFile });
        if chain as usize == known
            && let Some(kind) = self.guide.rules.helper_agent(agent.0)
        {
            let kind = self.out.names.intern(kind);
            self.out.rows.agents.push(AgentRow { session, agent: id_of(agent), kind, names_model: false });
        }
        chain
    }

    /// Remembers which inline side chain a record belongs to, of whatever type it is: others may follow it.
    fn side_chain(&mut self, envelope: &Envelope<'_>) {
        let uuid = envelope.own_uuid();
        if envelope.is_sidechain() && envelope.agent.is_none() && uuid.is_some() {
            let above = envelope.parent.id();
            let agent = self.roots.get(&above).copied().unwrap_or(envelope.uuid());
            self.roots.insert(uuid, agent);
        }
    }

    fn chain(&mut self, key: ChainKey) -> u32 {
        let place = chain_place(&mut self.out.rows.chains, &mut self.chains, key);
        self.standing.resize(self.out.rows.chains.len(), ChainStanding::default());
        place
    }

    fn push(&mut self, envelope: &Envelope<'_>, parent: Parent, chain: u32, marks: Marks, kind: RecordKind) -> u32 {
        let version = envelope.version.map(|text| String::from_utf8_lossy(text.0));
        let version = self.out.names.intern(version.as_deref().unwrap_or_default());
        let rows = &mut self.out.rows;
        let blocks = rows.blocks.len() as u32..rows.blocks.len() as u32;
        let parent = if let Parent::Outside(place) = parent {
            rows.outside.push(self.outside[place as usize]);
            Parent::Outside(rows.outside.len() as u32 - 1)
        } else {
            parent
        };
        let (id, ts) = (envelope.uuid(), envelope.ts());
        rows.records.push(RecordRow { id, parent, chain, ts, version, marks, kind, blocks });
        (rows.records.len() - 1) as u32
    }

    /// A record in the user's role; `chain` is given where the record does not tell.
    fn user(&mut self, envelope: &Envelope<'_>, parent: Parent, chain: Option<u32>) -> u32 {
        let chain = chain.unwrap_or_else(|| self.chain_of(envelope));
        let mut marks = Marks::default();
        marks.set_if(Marks::META, envelope.meta);
        let mut draft = std::mem::take(&mut self.draft);
        draft.keep(|part| !matches!(part, DraftKind::Call | DraftKind::Thinking));
        for block in draft.blocks.iter().filter(|block| block.part == DraftKind::Text) {
            marks.set(self.marks_of_text(envelope, draft.text_of(block)));
        }
        if let Some(mode) = envelope.permission_mode {
            let plans = mode.0 == self.guide.rules.plan_permission_mode.as_bytes();
            let known = &mut self.standing[chain as usize];
            marks.set_if(Marks::PLAN_MODE, std::mem::replace(&mut known.plans, plans) != plans);
            let mode = id_of(mode);
            let before = std::mem::replace(&mut known.mode, mode);
            marks.set_if(Marks::MODE_CHANGE, before.is_some() && before != mode);
        }
        if let Some(result) = envelope.tool_result {
            self.agent_of_result(envelope, &draft, result);
        }
        if envelope.summary {
            self.lone_summary(envelope, parent, chain);
        }
        self.team_member(envelope, chain);
        let row = self.push(envelope, parent, chain, marks, RecordKind::Said);
        self.blocks(envelope, draft, row);
        row
    }

    /// Remembers by what name a session works in a team.
    fn team_member(&mut self, envelope: &Envelope<'_>, chain: u32) {
        let Some((_, name)) = envelope.team.zip(envelope.agent_name) else { return };
        let ChainKey { session, agent, .. } = self.out.rows.chains[chain as usize];
        if std::mem::replace(&mut self.standing[chain as usize].in_team, true) {
            return;
        }
        let kind = beside::word(&mut self.out.names, name);
        self.out.rows.agents.push(AgentRow { session, agent, kind, names_model: false });
    }

    /// Remembers what kind of agent a call ran, if its result names one.
    fn agent_of_result(&mut self, envelope: &Envelope<'_>, draft: &ContentDraft, result: &[u8]) {
        // Only the results of calls that run agents or name a model are looked into: others may hold whole files.
        let asked = draft.blocks.iter().find_map(|block| self.asked_for.get(&block.call));
        let Some((asked, names_model)) = asked else { return };
        let Some((agent, kind)) = beside::agent_of_result(result, RawStr(asked), &mut self.out.names) else { return };
        let session = envelope.session_id(&mut self.session);
        self.out.rows.agents.push(AgentRow { session, agent, kind, names_model: *names_model });
    }

    fn marks_of_text(&self, envelope: &Envelope<'_>, text: &[u8]) -> Marks {
        let rules = self.guide.rules;
        let mut marks = Marks::default();
        marks.set_if(Marks::HUMAN, !envelope.meta && !envelope.summary);
        let is_skill = rules.is_skill(text);
        marks.set_if(Marks::META, is_skill);
        marks.set_if(Marks::SKILL, is_skill);
        marks.set_if(Marks::INTERRUPT, rules.is_interrupt(text));
        marks.set_if(Marks::RESUME, rules.is_resume(text));
        marks
    }

    fn kind_of(&self, envelope: &Envelope<'_>, row: u32, part: DraftKind, text: &[u8]) -> BlockKind {
        let by_model = matches!(self.out.rows.records[row as usize].kind, RecordKind::Answer(_));
        match part {
            DraftKind::Result => BlockKind::ToolResult,
            DraftKind::Media => BlockKind::Media,
            DraftKind::Thinking => BlockKind::Thinking,
            DraftKind::Call => BlockKind::ToolUsage,
            DraftKind::Text if by_model => BlockKind::Text,
            DraftKind::Text if envelope.summary => BlockKind::Summary,
            DraftKind::Text => {
                let wrappers = &self.guide.vocabulary.wrapper_prefixes;
                let wrapped = wrappers.iter().any(|prefix| text.starts_with(prefix.as_bytes()));
                // In a side chain the parent speaks.
                let person = !envelope.meta && !envelope.is_sidechain() && !wrapped;
                if person { BlockKind::Human } else { BlockKind::Injected }
            }
        }
    }

    /// A summary without the boundary that belongs to it stands for both.
    fn lone_summary(&mut self, envelope: &Envelope<'_>, parent: Parent, chain: u32) {
        let record = self.counters.items;
        let above = envelope.parent.id();
        let belongs = self.standing[chain as usize]
            .compacted
            .is_some_and(|(number, id)| record - number <= SUMMARY_WITHIN_RECORDS || (id.is_some() && id == above));
        if !belongs {
            self.standing[chain as usize].compacted = Some((record, envelope.own_uuid()));
            let nameless = Envelope { uuid: None, copied: None, ..*envelope };
            let kind = CompactedRow { trigger: Trigger::Unknown, pre_tokens: None };
            let kind = RecordKind::Compacted(Box::new(kind));
            self.push(&nameless, parent, chain, Marks::COMPACTION, kind);
        }
    }

    fn assistant(&mut self, envelope: &Envelope<'_>, parent: Parent, chain: Option<u32>) -> u32 {
        let chain = chain.unwrap_or_else(|| self.chain_of(envelope));
        let mut draft = std::mem::take(&mut self.draft);
        draft.keep(|part| part != DraftKind::Result);
        let rules = self.guide.rules;
        let mut marks = Marks::default();
        for block in draft.blocks.iter().filter(|block| block.part == DraftKind::Call) {
            marks.set_if(Marks::SKILL, is_one_of(&block.tool, &rules.skill_tools));
            marks.set_if(Marks::PLAN_MODE, is_one_of(&block.tool, &rules.plan_tools));
            if let Some((kind, names_model)) = beside::agent_asked_for(draft.text_of(block), &rules.agent_type_keys) {
                self.asked_for.insert(block.call, (kind.0.to_vec(), names_model));
            }
        }
        let message = envelope.message.unwrap_or_default();
        let model = message.model.and_then(RawStr::text).unwrap_or_default();
        let answer = AnswerRow {
            message: envelope.message_id(),
            model: self.out.names.intern(&model),
            usage: message.usage.unwrap_or_default(),
            setting: self.setting(envelope, &message),
            is_request: message.usage.is_some() && model != SYNTHETIC,
        };
        let kind = RecordKind::Answer(answer.shared(&mut self.answered));
        let row = self.push(envelope, parent, chain, marks, kind);
        self.blocks(envelope, draft, row);
        row
    }

    fn setting(&mut self, envelope: &Envelope<'_>, message: &MessageFields<'_>) -> RequestSetting {
        let names = &mut self.out.names;
        let mut word = |text: Option<RawStr<'_>>| match text.unwrap_or_default() {
            RawStr(b"") => Sym::default(),
            text => beside::word(names, text),
        };
        RequestSetting {
            effort: word(envelope.effort.or(message.effort)),
            speed: word(message.speed),
            miss_reason: word(message.diagnostics.and_then(beside::miss_reason)),
            branch: envelope.branch.map_or(Id::NONE, |name| self.branch.get(name.0, |raw| beside::branch(RawStr(raw)))),
        }
    }

    /// Adds the blocks of the draft to a record, and puts the draft back.
    fn blocks(&mut self, envelope: &Envelope<'_>, draft: ContentDraft, row: u32) {
        for block in &draft.blocks {
            let bytes = draft.text_of(block);
            let kind = self.kind_of(envelope, row, block.part, bytes);
            let mut made = BlockRow {
                kind,
                is_string: block.is_string,
                is_error: block.is_error,
                file: 0,
                media: block.media.min(15) as u8,
                chars: saturated(code_points(bytes) + block.beyond.chars),
                bytes: saturated(bytes.len() as u64 + block.beyond.bytes),
                tokens: self.tokens(bytes),
                call: block.call,
                tool: self.out.names.intern(&String::from_utf8_lossy(&block.tool)),
                named: if is_told_by_text(block, bytes) { Id::of(bytes) } else { Id::NONE },
                file_kind: Sym::default(),
            };
            if let Some(path) = path_of(envelope, block, bytes) {
                self.name_file(&path, &mut made, row);
            }
            self.follow(&made, row, bytes);
            if self.guide.with_words && matches!(kind, BlockKind::Human | BlockKind::Text) {
                let rows = &mut self.out.rows;
                let text = text_of(bytes);
                let chars_max = self.guide.rules.utterance_chars_max;
                rows.utterances.extend(utterance(rows.blocks.len() as u32, &text, chars_max, &mut self.words));
            }
            self.out.rows.blocks.push(made);
        }
        let end = self.out.rows.blocks.len() as u32;
        self.out.rows.records[row as usize].blocks.end = end;
        let cut = draft.blocks.iter().filter(|block| block.beyond.bytes > 0).count();
        self.skip("end_of_long_result", cut as u64);
        self.skip("media_in_result", draft.media_in_results);
        self.skip("other_in_result", draft.others_in_results);
        self.skip("other_block", draft.other_blocks);
        self.skip("duplicate_block", draft.duplicate_blocks);
        self.draft = draft;
    }

    fn tokens(&mut self, text: &[u8]) -> TokenCounts {
        self.token_counter.as_mut().map(|token_counter| token_counter.tokens(&text_of(text))).unwrap_or_default()
    }

    /// Looks for what the block takes up, and remembers what it holds.
    fn follow(&mut self, block: &BlockRow, row: u32, text: &[u8]) {
        let record = &self.out.rows.records[row as usize];
        let message = if let RecordKind::Answer(answer) = &record.kind {
            let next = self.messages.len() as u32;
            // A message without any id has but this record.
            let alone = || Id::of(&self.counters.items.to_le_bytes());
            let message = if answer.message.is_some() { answer.message } else { alone() };
            *self.messages.entry(message).or_insert(next)
        } else {
            NONE
        };
        let spot = TextSpot { block: self.out.rows.blocks.len() as u32, chain: record.chain, message };
        match block.kind {
            BlockKind::Thinking | BlockKind::Media => return self.references.pass(spot),
            BlockKind::ToolUsage => self.references.call(spot, self.out.names.text(block.tool), text),
            _ => self.references.text(spot, text),
        }
        let (Some(fields), Some(token_counter)) = (&mut self.fields, &mut self.token_counter) else { return };
        match block.kind {
            BlockKind::ToolUsage => fields.call(spot, block.call, self.out.names.text(block.tool), text),
            BlockKind::ToolResult if !block.is_error => {
                fields.answer(spot, block.call, text, &mut self.out.names, *token_counter);
            }
            BlockKind::Text => fields.text(spot, text),
            BlockKind::Human => fields.said(spot, text),
            _ => {}
        }
    }

    fn name_file(&mut self, path: &[u8], block: &mut BlockRow, row: u32) {
        block.named = Id::pseudonym(path);
        let rules = self.guide.rules;
        block.file_kind = self.out.names.intern(rules.file_kind(path));
        if rules.is_markdown(path) {
            block.file |= ToolCall::MARKDOWN;
        }
        if rules.is_workspace(path) {
            block.file |= ToolCall::WORKSPACE;
            if self.guide.vocabulary.file_mutate_tools.contains(self.out.names.text(block.tool)) {
                self.out.rows.records[row as usize].marks.set(Marks::WORKSPACE_EDIT);
            }
        }
    }

    fn system(&mut self, envelope: &Envelope<'_>, parent: Parent) -> Option<u32> {
        let metadata = || envelope.metadata.map(Metadata::of).unwrap_or_default();
        match envelope.subtype.map(|subtype| subtype.0) {
            Some(b"compact_boundary") => {
                let chain = self.chain_of(envelope);
                self.standing[chain as usize].compacted = Some((self.counters.items, envelope.own_uuid()));
                let Metadata { trigger, pre_tokens, .. } = metadata();
                let row = CompactedRow { trigger: trigger.unwrap_or(Trigger::Unknown), pre_tokens };
                Some(self.push(envelope, parent, chain, Marks::COMPACTION, RecordKind::Compacted(Box::new(row))))
            }
            Some(b"microcompact_boundary") => {
                let chain = self.chain_of(envelope);
                let Metadata { pre_tokens, tokens_saved, calls, .. } = metadata();
                let cleared = &mut self.out.rows.cleared;
                let start = cleared.len() as u32;
                cleared.extend(calls);
                let calls = start..cleared.len() as u32;
                let kind = RecordKind::Cleared(Box::new(ClearedRow { pre_tokens, tokens_saved, calls }));
                Some(self.push(envelope, parent, chain, Marks::MICROCOMPACTION, kind))
            }
            Some(b"api_error") => {
                let chain = self.chain_of(envelope);
                Some(self.push(envelope, parent, chain, Marks::RETRIED, RecordKind::Noted))
            }
            Some(b"stop_hook_summary") => {
                let next = self.out.rows.records.len() as u32;
                let row = beside::of_summary(envelope.hook_infos?, next, &mut self.out.names)?;
                let chain = self.chain_of(envelope);
                self.out.rows.added.push(row);
                Some(self.push(envelope, parent, chain, Marks::default(), RecordKind::Noted))
            }
            _ => None,
        }
    }

    /// A prompt that was sent while the assistant worked, or a sign of something; other attachments are reminders of the
    /// client and belong to what no block accounts for.
    fn attachment(&mut self, envelope: &Envelope<'_>, parent: Parent) -> Option<u32> {
        let attachment = Attachment::of(envelope.attachment?);
        let kind = attachment.kind.unwrap_or_default();
        if kind.0 == b"queued_command"
            && let Some(prompt) = attachment.prompt
        {
            read_content(&mut Cursor::new(prompt), &mut self.draft).ok()?;
            let typed = attachment.mode.is_some_and(|mode| mode.0 == b"prompt");
            let envelope = Envelope { meta: envelope.meta || !typed, ..*envelope };
            return Some(self.user(&envelope, parent, None));
        }
        let rules = self.guide.rules;
        let mut marks = Marks::ATTACHED;
        marks.set_if(Marks::PLAN_MODE, is_one_of(kind.0, &rules.plan_attachments));
        marks.set_if(Marks::TOOLS_ARRIVED, is_one_of(kind.0, &rules.tool_attachments));
        marks.set_if(Marks::RESUME, attachment.hook.is_some_and(|hook| is_one_of(hook.0, &rules.resume_hooks)));
        let known = rules.attachments.iter().find(|known| known.as_bytes() == kind.0);
        self.skip(&format!("attachment:{}", known.map_or("other", String::as_str)), 1);
        let next = self.out.rows.records.len() as u32;
        let added = beside::of_attachment(&attachment, next, &rules.hooks, &mut self.out.names);
        self.out.rows.added.extend(added);
        self.note(envelope, parent, marks)
    }

    fn note(&mut self, envelope: &Envelope<'_>, parent: Parent, marks: Marks) -> Option<u32> {
        (marks != Marks::default()).then(|| {
            let chain = self.chain_of(envelope);
            self.push(envelope, parent, chain, marks, RecordKind::Noted)
        })
    }

    /// A subagent's own record as its parent saw it, or a hook that says that the session was taken up.
    fn progress(&mut self, envelope: &Envelope<'_>, parent: Parent) -> Option<u32> {
        // Data that break off say nothing.
        let progress = ProgressFields::read(envelope.data?, &mut self.draft).unwrap_or_default();
        match progress.kind.unwrap_or_default().0 {
            b"hook_progress" => {
                let hook = progress.hook.unwrap_or_default();
                let resumed = is_one_of(hook.0, &self.guide.rules.resume_hooks);
                self.note(envelope, parent, if resumed { Marks::RESUME } else { Marks::default() })
            }
            b"agent_progress" => {
                self.agent_progress(envelope, &progress);
                None
            }
            _ => None,
        }
    }

    fn agent_progress(&mut self, envelope: &Envelope<'_>, progress: &ProgressFields<'_>) {
        let Some(inner) = progress.record.filter(|record| record.message.is_some()) else { return };
        let inner = Envelope {
            cwd: inner.cwd.or(envelope.cwd),
            version: inner.version.or(envelope.version),
            branch: inner.branch.or(envelope.branch),
            timestamp: inner.timestamp.filter(|text| parse_millis(text.0).is_some()).or(envelope.timestamp),
            parent: ParentField::Absent,
            sidechain: Some(true),
            ..inner
        };
        let session = envelope.session_id(&mut self.session);
        let agent = progress.agent.map(id_of).unwrap_or_default();
        let known = self.out.rows.chains.len();
        let chain = self.chain(ChainKey { session, agent, place: Place::Progress });
        let asked_for = envelope.parent_call.and_then(|call| self.asked_for.get(&id_of(call)));
        if chain as usize == known
            && let Some((kind, names_model)) = asked_for
        {
            let kind = beside::word(&mut self.out.names, RawStr(kind));
            self.out.rows.agents.push(AgentRow { session, agent, kind, names_model: *names_model });
        }
        match inner.kind() {
            b"assistant" => drop(self.assistant(&inner, Parent::Unknown, Some(chain))),
            b"user" => drop(self.user(&inner, Parent::Unknown, Some(chain))),
            _ => {}
        }
    }
}

/// Whether the text of a result tells it from another: all of it is held, and nothing came beside it that nobody can compare.
fn is_told_by_text(block: &DraftBlock, text: &[u8]) -> bool {
    block.part == DraftKind::Result && block.beyond.bytes == 0 && block.media == 0 && !text.is_empty()
}

/// The file that a call names, normalised.
fn path_of(envelope: &Envelope<'_>, block: &DraftBlock, input: &[u8]) -> Option<Vec<u8>> {
    if block.part != DraftKind::Call {
        return None;
    }
    let path = InputFields::of(input).path().and_then(RawStr::decode).filter(|path| !path.is_empty())?;
    Some(envelope.normal_path(&path))
}
