//! What one file says for a timeline ([`crate::logs::timeline::requests::Timeline`]), as the lake keeps it, without text: its
//! records in their order, with what each said, gave back or did to the context.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::base::id::Id;
use crate::base::names::{Names, Sym};
use crate::base::tokenizer::TokenCounts;
use crate::logs::timeline::requests::{
    Addition, BlockKind, Marks, Occurrence, ReferenceKind, RequestSetting, Session, StatedCost, Trigger, Utterance,
};
use crate::logs::timeline::words::WordIndex;
use crate::logs::trace::{ChainKey, Millis, Usage};

/// What a record follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Parent {
    /// Nothing: a conversation begins.
    #[default]
    Nothing,
    /// The nearest kept record above it: index into [`TimelineRows::records`].
    Record(u32),
    /// A record that does not stand before it in this file: index into [`TimelineRows::outside`].
    Outside(u32),
    /// The log does not say.
    Unknown,
}

/// What a record is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RecordKind {
    /// Something for the model: a prompt, a result, a summary.
    Said,
    /// A part of an answer.
    Answer(Arc<AnswerRow>),
    Compacted(Box<CompactedRow>),
    /// A micro-compaction.
    Cleared(Box<ClearedRow>),
    /// Nothing but its marks.
    #[default]
    Noted,
}

/// What a compaction says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CompactedRow {
    pub trigger: Trigger,
    /// `preTokens`.
    pub pre_tokens: Option<u64>,
}

/// What a micro-compaction says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClearedRow {
    /// `preTokens`.
    pub pre_tokens: Option<u64>,
    /// `tokensSaved`.
    pub tokens_saved: Option<u64>,
    /// Calls whose results went, in [`TimelineRows::cleared`].
    pub calls: Range<u32>,
}

/// The message that a record is a part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AnswerRow {
    /// `message.id`, or what stands for it.
    pub message: Id,
    pub model: Sym,
    /// Usage as this record has it.
    pub usage: Usage,
    /// Effort, speed, branch.
    pub setting: RequestSetting,
    /// Whether it is an API call with usage; synthetic messages are none.
    pub is_request: bool,
}

impl AnswerRow {
    /// This answer, or the last one if that says the same: the parts of a message mostly do, and there are many.
    pub fn shared(self, last: &mut Option<Arc<Self>>) -> Arc<Self> {
        match last {
            Some(last) if **last == self => Arc::clone(last),
            _ => Arc::clone(last.insert(Arc::new(self))),
        }
    }
}

/// A record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordRow {
    /// Its `uuid`, or none.
    pub id: Id,
    pub parent: Parent,
    /// Index into [`TimelineRows::chains`].
    pub chain: u32,
    pub ts: Millis,
    pub version: Sym,
    /// What it shows to have happened.
    pub marks: Marks,
    pub kind: RecordKind,
    /// Its blocks in [`TimelineRows::blocks`].
    pub blocks: Range<u32>,
}

/// A block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockRow {
    /// See [`crate::logs::timeline::requests::Block::kind`].
    pub kind: BlockKind,
    /// See [`crate::logs::timeline::requests::Block::is_string`].
    pub is_string: bool,
    pub is_error: bool,
    /// See [`crate::logs::timeline::requests::ToolCall::file`].
    pub file: u8,
    /// See [`crate::logs::timeline::requests::Block::media`].
    pub media: u8,
    /// Code points.
    pub chars: u32,
    /// UTF-8 bytes.
    pub bytes: u32,
    /// Tokens by vocabulary.
    pub tokens: TokenCounts,
    /// `tool_use` id of a call or a result, else none.
    pub call: Id,
    pub tool: Sym,
    /// Of a call the pseudonym of the file that it names, of a result the name of its text, if all of it was held.
    pub named: Id,
    /// What that file is, by `file_kinds` of `rules/timeline.toml`; the empty name if it names none.
    pub file_kind: Sym,
}

/// Something that the model wrote and that stood in its context before.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReferenceRow {
    pub kind: ReferenceKind,
    /// Index into [`TimelineRows::blocks`] of the block that holds it.
    pub block: u32,
    /// Where it stood, in [`TimelineRows::sources`], in the order of blocks.
    pub sources: Range<u32>,
    /// Whether places were left out.
    pub cut: bool,
}

/// One field of an answer in JSON: the values of one path of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FieldRow {
    /// Index into [`TimelineRows::blocks`] of the answer.
    pub block: u32,
    /// Path of keys, arrays folded (`items[].id`); [`FieldRow::OTHER`] for all whose keys are no names.
    pub name: Sym,
    /// Tokens of its keys and values by vocabulary.
    pub tokens: TokenCounts,
    /// Different values that were new in the chain and can be told again when they are written.
    pub values: u32,
    /// Of these, those that the model wrote later.
    pub used: u32,
    /// Where it did so first, value by value; bits: [`FieldRow::IN_ARGUMENT`], [`FieldRow::IN_EDIT`],
    /// [`FieldRow::IN_TEXT`].
    pub how: u8,
}

impl FieldRow {
    /// The name of all fields whose keys are no names.
    pub const OTHER: &'static str = "*";
    /// In an argument of a call.
    pub const IN_ARGUMENT: u8 = 1;
    /// In what an edit writes.
    pub const IN_EDIT: u8 = 2;
    /// In a text for the person.
    pub const IN_TEXT: u8 = 4;
}

/// What kind of agent a chain is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AgentRow {
    /// Pseudonym of `sessionId`.
    pub session: Id,
    /// The subagent, or none: the main thread.
    pub agent: Id,
    pub kind: Sym,
    /// Whether the call that ran it names its model.
    pub names_model: bool,
}

/// The rows of one file.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TimelineRows {
    /// Chains, in order of first sight.
    pub chains: Vec<ChainKey>,
    /// Sessions, in order of first sight.
    pub sessions: Vec<Session>,
    /// Kinds of agents, in the order in which the file tells them.
    pub agents: Vec<AgentRow>,
    /// Running totals of cost, in order.
    pub stated_costs: Vec<StatedCost>,
    /// Records, in order.
    pub records: Vec<RecordRow>,
    /// What those follow that follow no record before them, in their order.
    pub outside: Vec<Id>,
    pub blocks: Vec<BlockRow>,
    /// Calls whose results were cleared.
    pub cleared: Vec<Id>,
    /// What answers took up from their contexts, in the order of blocks.
    pub references: Vec<ReferenceRow>,
    /// Where that stood; blocks are those of this file.
    pub sources: Vec<Occurrence>,
    /// Fields of answers in JSON, in the order of blocks.
    pub fields: Vec<FieldRow>,
    /// Words of what people and the model wrote, by block of this file.
    pub utterances: Vec<Utterance>,
    pub words: WordIndex,
    /// What came in beside the conversation, by record.
    pub added: Vec<Addition>,
    /// What was left out, by reason.
    pub skipped: BTreeMap<String, u64>,
}

impl TimelineRows {
    /// What came in with a record beside the conversation.
    pub fn added_with(&self, record: u32) -> &[Addition] {
        let start = self.added.partition_point(|row| row.with < record);
        let count = self.added[start..].iter().take_while(|row| row.with == record).count();
        &self.added[start..start + count]
    }

    /// Whether a record stands for the compaction whose boundary is missing before the summary that follows it.
    pub fn is_made_up(&self, record: usize) -> bool {
        let [compaction, summary] = [record, record + 1].map(|at| self.records.get(at));
        let (Some(compaction), Some(summary)) = (compaction, summary) else { return false };
        let is_nameless = matches!(compaction.kind, RecordKind::Compacted(_)) && !compaction.id.is_some();
        let mut blocks = self.blocks[summary.blocks.start as usize..summary.blocks.end as usize].iter();
        is_nameless && summary.chain == compaction.chain && blocks.any(|block| block.kind == BlockKind::Summary)
    }
}

/// The rows of one file with what their symbols mean.
#[derive(Clone, Default, Debug)]
pub struct FileTimeline {
    /// Tools, models, versions.
    pub names: Names,
    pub rows: TimelineRows,
}
