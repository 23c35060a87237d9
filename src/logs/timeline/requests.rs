//! What the model was sent, and when: every request in order with its billed usage, and the blocks that each one added to
//! the context. Sizes, hashes and positions; no text.
//!
//! This is the ground on which policies about a context are replayed (caching, compaction, trimming, tool lists).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::id::Id;
use crate::base::names::{Names, Sym};
use crate::base::tokenizer::VOCABULARIES;
use crate::logs::timeline::window as timeline_window;
use crate::logs::timeline::words::WordIndex;
use crate::logs::trace::{Millis, Place, Usage};

/// What stands behind the name of a model that answers in fast mode.
pub const FAST: &str = "[fast]";

/// No index.
pub const NONE: u32 = u32::MAX;

/// What a block is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, strum::FromRepr)]
#[repr(u8)]
pub enum BlockKind {
    /// Text that a person wrote.
    #[default]
    Human = 0,
    /// Text in a user record that no person wrote: reminders, expanded commands and skills, hook output.
    Injected = 1,
    /// The summary that stands for a compacted head.
    Summary = 2,
    /// Text of the model.
    Text = 3,
    /// Thinking of the model; its text may be empty in the log.
    Thinking = 4,
    /// A tool call.
    ToolUsage = 5,
    ToolResult = 6,
    /// An image or a document outside of a tool result.
    Media = 7,
}

impl BlockKind {
    /// Whether the model wrote it.
    pub fn is_output(self) -> bool {
        matches!(self, Self::Text | Self::Thinking | Self::ToolUsage)
    }
}

/// One block of content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    pub kind: BlockKind,
    /// Code points of its text; of a tool call: of its input as compact JSON.
    pub chars: u32,
    /// UTF-8 bytes of the same text.
    pub bytes: u32,
    /// Tokens of the same text by vocabulary, in the order of [`VOCABULARIES`].
    pub tokens: [u32; VOCABULARIES.len()],
    /// Index into [`Timeline::calls`] for calls and results, else [`NONE`].
    pub call: u32,
    /// Whether the content was one string in the log, no list of parts.
    pub is_string: bool,
    /// Images and documents in a tool result, which no text shows; fifteen or more count as fifteen.
    pub media: u8,
    /// `uuid` of the record that holds it; blocks of one record belong to one message.
    pub record: Id,
}

impl Block {
    /// Whether its tokens are known: a text has at least one in every vocabulary.
    pub fn is_counted(&self) -> bool {
        self.chars == 0 || self.tokens.iter().all(|&tokens| tokens > 0)
    }
}

/// One tool call with its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToolCall {
    /// The `tool_use` id.
    pub id: Id,
    pub tool: Sym,
    /// The file that the input names, by a number within the family of log files; [`NONE`] if it names none.
    pub path: u32,
    /// Index into [`Timeline::blocks`] of the call.
    pub asked: u32,
    /// Index into [`Timeline::blocks`] of the result, [`NONE`] if there is none.
    pub answered: u32,
    /// The text of the result, by such a number; [`NONE`] where not all of it was held, where an image came with it, and where
    /// there is no text.
    pub text: u32,
    pub is_error: bool,
    /// Bits: [`ToolCall::MARKDOWN`], [`ToolCall::WORKSPACE`].
    pub file: u8,
    /// What the file is, by `file_kinds` of `rules/timeline.toml`; the empty name if the input names none.
    pub file_kind: Sym,
}

impl ToolCall {
    /// The file is named `*.md`.
    pub const MARKDOWN: u8 = 1;
    /// The file is `CLAUDE.md`, `AGENTS.md` or lies under `.claude/`.
    pub const WORKSPACE: u8 = 2;
}

/// What happened between the request before and this one, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Marks(pub u32);

impl Marks {
    /// A person wrote (policies.md 1.2: text in a user record that is neither meta nor a summary).
    pub const HUMAN: Self = Self(1);
    /// A record marked `isMeta`, or an expanded skill.
    pub const META: Self = Self(1 << 1);
    /// The context was compacted.
    pub const COMPACTION: Self = Self(1 << 2);
    /// Tool results were cleared.
    pub const MICROCOMPACTION: Self = Self(1 << 3);
    /// Another model than before in this chain.
    pub const MODEL_CHANGE: Self = Self(1 << 4);
    /// Another client version than before in this chain.
    pub const VERSION_CHANGE: Self = Self(1 << 5);
    /// The person interrupted.
    pub const INTERRUPT: Self = Self(1 << 6);
    /// The client was left and the session taken up again.
    pub const RESUME: Self = Self(1 << 7);
    /// The conversation went back to an earlier place.
    pub const REWIND: Self = Self(1 << 8);
    /// Plan mode was entered or left.
    pub const PLAN_MODE: Self = Self(1 << 9);
    /// `CLAUDE.md`, `AGENTS.md` or something under `.claude/` was written.
    pub const WORKSPACE_EDIT: Self = Self(1 << 10);
    /// A skill was used: by a call, or by a command of the person.
    pub const SKILL: Self = Self(1 << 11);
    /// The client told the model of other tools, agents, skills or servers than before.
    pub const TOOLS_ARRIVED: Self = Self(1 << 12);
    /// Another permission mode than before in this chain.
    pub const MODE_CHANGE: Self = Self(1 << 13);
    /// Another effort than before in this chain, with a model that caches each effort apart.
    pub const EFFORT_CHANGE: Self = Self(1 << 14);
    /// The client put in text that no block shows: reminders, changed files, lists of tools.
    pub const ATTACHED: Self = Self(1 << 15);
    /// It began outside the window that was asked for, in a chain that goes on in it: it says what was in the context and in
    /// the cache, and counts nowhere.
    pub const UNCOUNTED: Self = Self(1 << 16);
    /// The API refused it at first, or was not reached: what was answered is the last attempt.
    pub const RETRIED: Self = Self(1 << 17);

    /// Whether all bits of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// With the bits of `other`.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Sets the bits of `other`.
    pub fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Sets them if something is so.
    pub fn set_if(&mut self, other: Self, is_so: bool) {
        if is_so {
            self.set(other);
        }
    }
}

/// Under which settings a request was made and what the provider noted about it, as the log has it; empty or none where it
/// says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RequestSetting {
    /// `effort` (`low` … `max`), of clients from 2.1.212 on.
    pub effort: Sym,
    /// `usage.speed`: `standard` or `fast`.
    pub speed: Sym,
    /// Pseudonym of `gitBranch`.
    pub branch: Id,
    /// `diagnostics.cache_miss_reason.type`: why the provider says that the cache was missed.
    pub miss_reason: Sym,
}

impl RequestSetting {
    /// Fills what is empty from another copy of the same answer.
    pub fn merge(&mut self, other: &Self) {
        for (own, other) in [
            (&mut self.effort, other.effort),
            (&mut self.speed, other.speed),
            (&mut self.miss_reason, other.miss_reason),
        ] {
            if *own == Sym::default() {
                *own = other;
            }
        }
        if !self.branch.is_some() {
            self.branch = other.branch;
        }
    }

    /// The same in the symbols of another table: `symbols` says where each symbol went.
    pub(super) fn renamed(self, symbols: &[Sym]) -> Self {
        let at = |sym: Sym| symbols[sym.0 as usize];
        Self { effort: at(self.effort), speed: at(self.speed), miss_reason: at(self.miss_reason), ..self }
    }
}

/// Billed usage in half its room: no context has 2^32 tokens. What claims to have more has [`u32::MAX`] everywhere, which is no
/// usage of one either.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RequestUsage([u32; 6]);

impl From<Usage> for RequestUsage {
    fn from(usage: Usage) -> Self {
        let Usage { input, output, cache_creation, cache_read, cache_creation_5m, cache_creation_1h } = usage;
        let tokens = [input, output, cache_creation, cache_read, cache_creation_5m, cache_creation_1h];
        let fitting = tokens.map(|tokens| u32::try_from(tokens).ok());
        Self(fitting.map(|tokens| if fitting.contains(&None) { u32::MAX } else { tokens.unwrap_or_default() }))
    }
}

impl From<RequestUsage> for Usage {
    fn from(RequestUsage(tokens): RequestUsage) -> Self {
        let [input, output, cache_creation, cache_read, cache_creation_5m, cache_creation_1h] = tokens.map(u64::from);
        Self { input, output, cache_creation, cache_read, cache_creation_5m, cache_creation_1h }
    }
}

/// One request to the model and its answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// `message.id`.
    pub id: Id,
    /// Index into [`Timeline::chains`].
    pub chain: u32,
    /// Index into [`Timeline::segments`].
    pub segment: u32,
    /// Number of the turn within its chain: a turn begins where a person writes.
    pub turn: u32,
    pub model: Sym,
    pub version: Sym,
    /// Effort, speed, branch: one for requests that follow each other under the same ones.
    pub setting: Arc<RequestSetting>,
    /// Time of the last user record before the answer, the best proxy for the start (policies.md F12).
    pub start: Millis,
    /// Time of the last record of the answer.
    pub end: Millis,
    /// See [`Request::usage`].
    pub tokens: RequestUsage,
    /// What came into the context since the request before: indices into [`Timeline::blocks`].
    pub inputs: Range<u32>,
    /// What the model answered: follows `inputs` in [`Timeline::blocks`].
    pub outputs: Range<u32>,
    /// What happened since the request before.
    pub marks: Marks,
}

impl Request {
    /// Billed usage, per-field maximum over all copies.
    pub fn usage(&self) -> Usage {
        self.tokens.into()
    }

    /// Tokens of the context: uncached, written and read (policies.md F2).
    pub fn context(&self) -> u64 {
        let Usage { input, cache_creation, cache_read, .. } = self.usage();
        input + cache_creation + cache_read
    }

    /// Tokens that the cache holds of it: read or written.
    pub fn cached(&self) -> u64 {
        let Usage { cache_read, cache_creation, .. } = self.usage();
        cache_read + cache_creation
    }

    /// Whether it is one of those that were asked for; see [`Marks::UNCOUNTED`].
    pub fn counts(&self) -> bool {
        !self.marks.has(Marks::UNCOUNTED)
    }

    /// Whether anything was billed: an answer may have cost output alone.
    pub fn is_billed(&self) -> bool {
        self.context() > 0 || self.usage().output > 0
    }
}

/// What one reader is sent: a main thread or one subagent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// Index into [`Timeline::sessions`].
    pub session: u32,
    /// Subagent, or none on the main thread.
    pub agent: Id,
    /// Where it was recorded.
    pub place: Place,
    /// What kind of agent it is (`Explore`, `general-purpose`, the name of an own one); of a main thread: the agent that it was
    /// started as. Empty where the log does not say.
    pub agent_type: Sym,
    /// Whether the call that ran it names its model.
    pub names_model: bool,
    /// Its requests in [`Timeline::requests`].
    pub requests: Range<u32>,
    /// Its segments in [`Timeline::segments`].
    pub segments: Range<u32>,
}

/// Why a segment begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum SegmentCause {
    /// The chain begins.
    Start = 0,
    Compaction = 1,
    /// The conversation went back to an earlier place.
    Rewind = 2,
    /// The context shrank by more than 500 tokens and nothing in the log says why.
    Shrink = 3,
}

/// Requests whose contexts only grow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Index into [`Timeline::chains`].
    pub chain: u32,
    /// Its requests in [`Timeline::requests`].
    pub requests: Range<u32>,
    /// Why it begins.
    pub cause: SegmentCause,
    /// The request whose whole context and answer are still in the context when the segment begins, or [`NONE`] if it
    /// begins with nothing; always an earlier one. After a rewind that is an earlier request of the chain, where a chain is forked off one of
    /// another chain. At a [`SegmentCause::Shrink`] it is the request before: something went, the log does not say what.
    pub after: u32,
}

/// Who asked for a compaction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, strum::FromRepr, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[repr(u8)]
pub enum Trigger {
    /// The client.
    #[default]
    Auto = 0,
    /// The person.
    Manual = 1,
    /// The log does not say.
    Unknown = 2,
}

/// A compaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Boundary {
    /// Index into [`Timeline::chains`].
    pub chain: u32,
    /// First request after it; the end of the chain's requests if there is none.
    pub request: u32,
    pub ts: Millis,
    pub trigger: Trigger,
    /// `preTokens`: tokens of the context before, as the client counted them.
    pub pre_tokens: Option<u64>,
    /// Block of the summary, or [`NONE`].
    pub summary: u32,
}

/// A micro-compaction: results that were cleared.
#[derive(Clone, Debug)]
pub struct Clearing {
    /// `uuid` of the boundary record.
    pub id: Id,
    /// Index into [`Timeline::chains`].
    pub chain: u32,
    /// First request after it.
    pub request: u32,
    /// `preTokens`: the client's estimate of the tokens in tool results before.
    pub pre_tokens: Option<u64>,
    /// `tokensSaved`.
    pub tokens_saved: Option<u64>,
    /// Calls whose results were cleared.
    pub calls: Vec<Id>,
    /// Results that had come in since the last request, by call, with their code points: where the context was compacted at
    /// once, no request was ever sent them.
    pub arrived: ArrivedResults,
}

/// Results that came in: a part of a list that the clearings of a chain share, since one repeats what stood before the others.
#[derive(Clone, Default)]
pub struct ArrivedResults {
    pub(crate) all: Arc<[(Id, u32)]>,
    pub(crate) own: Range<usize>,
}

impl Deref for ArrivedResults {
    type Target = [(Id, u32)];

    fn deref(&self) -> &Self::Target {
        &self.all[self.own.clone()]
    }
}

impl fmt::Debug for ArrivedResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// What an answer took up from its context.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, strum::FromRepr)]
#[repr(u8)]
pub enum ReferenceKind {
    /// The longest line of at least 20 characters of an edit's old text.
    #[default]
    EditSource = 0,
    /// A path in the input of a call that reads or edits a file.
    ReadPath = 1,
    /// Another path with a slash.
    Path = 2,
    /// Hexadecimal, 7 digits or more.
    Hex = 3,
    Uuid = 4,
    Url = 5,
    /// A ticket (`ABC-123`).
    Ticket = 6,
    /// A name of 12 characters or more that mixes case, underscores or digits.
    Symbol = 7,
}

/// Something that the model wrote at a request and that stood in its context before. Identifiers count where the model
/// first writes them in a chain; edits always, also those whose source is nowhere (no sources).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    pub kind: ReferenceKind,
    /// Index into [`Timeline::requests`] of the request that answered with it.
    pub request: u32,
    /// Index into [`Timeline::calls`], or [`NONE`] for text.
    pub call: u32,
    /// Earlier occurrences in [`Timeline::sources`], in the order of blocks: the first one and the latest. Blocks of the
    /// whole chain count (and of the one that it was forked off), also those that a compaction took out of the context.
    pub sources: Range<u32>,
    /// Whether there were more than could be kept.
    pub cut: bool,
}

/// One occurrence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Occurrence {
    /// Index into [`Timeline::blocks`].
    pub block: u32,
    /// Where it ends, in code points from the start of the block's text.
    pub end_chars: u32,
}

/// The words of one text, as hashes without order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Utterance {
    /// Index into [`Timeline::blocks`]: a [`BlockKind::Human`] or a [`BlockKind::Text`].
    pub block: u32,
    /// Terms of the relevance filter (letters, digits and `_`), in [`Timeline::words`].
    pub terms: Range<u32>,
    /// Words of the keyword scorer (camelCase split as well), in [`Timeline::words`].
    pub words: Range<u32>,
}

/// What an [`Addition`] is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, strum::FromRepr)]
#[repr(u8)]
pub enum Added {
    /// A hook ran.
    #[default]
    Hook = 0,
    /// Instructions of an MCP server, or names of its tools.
    Server = 1,
}

/// Something that the client put into a context, or did, beside the conversation: no block shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Addition {
    /// Index into [`Timeline::requests`] of the request that it came in with; what came behind the last request of a chain
    /// stands there, and nothing of it was sent. In the rows of a file: index of the record that it came in with.
    pub with: u32,
    pub what: Added,
    /// The event of the hook, the server.
    pub name: Sym,
    /// Names the hooks that ran together; none where one row tells of all of them.
    pub run: Id,
    /// Code points that the model was sent.
    pub chars: u32,
    /// How long a hook ran, in milliseconds.
    pub millis: u32,
}

/// A session.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Session {
    /// Pseudonym of `sessionId`.
    pub id: Id,
    /// Pseudonym of the first working directory: sessions of one directory may share a cached prefix.
    pub project: Id,
    /// First record that is no copy of another session's; in the rows of a file, its first record there.
    pub ts_first: Millis,
    /// Whether the client says that it ran in the background (`sessionKind: bg`).
    pub is_background: bool,
}

/// A model with requests.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct UsedModel {
    /// Its name, as logged.
    pub name: String,
    /// Whether they are of main threads; else of subagents.
    pub is_main: bool,
}

/// What the client itself says that a session has cost so far with a model (`cost-state`): a running total, with calls to
/// helper models that no record shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatedCost {
    /// Pseudonym of the session.
    pub session: Id,
    pub model: Sym,
    /// Tokens of all its requests.
    pub usage: Usage,
    /// US dollars, in billionths.
    pub nanodollars: u64,
}

/// Under which reason [`Timeline::skipped`] has the number of [`Timeline::unbilled`].
pub const NO_USAGE: &str = "no_usage";

/// All requests of all sessions.
#[derive(Clone, Default, Debug)]
pub struct Timeline {
    /// Tools, models, versions.
    pub names: Names,
    /// Sessions, by first record, then id.
    pub sessions: Vec<Session>,
    /// What the client says that the sessions have cost, by session, then model.
    pub stated_costs: Vec<StatedCost>,
    /// Chains: by session, main thread first, then by agent.
    pub chains: Vec<Chain>,
    /// Segments, chain by chain.
    pub segments: Vec<Segment>,
    /// Requests, chain by chain in order.
    pub requests: Vec<Request>,
    /// Blocks, request by request: what went in, then what came out.
    pub blocks: Vec<Block>,
    /// Calls, in the order of their asking blocks.
    pub calls: Vec<ToolCall>,
    /// Compactions.
    pub boundaries: Vec<Boundary>,
    /// Micro-compactions.
    pub clearings: Vec<Clearing>,
    /// What answers took up from their contexts, by request.
    pub references: Vec<Reference>,
    /// Where that stood before.
    pub sources: Vec<Occurrence>,
    /// Words of what people and the model wrote, by block.
    pub utterances: Vec<Utterance>,
    pub words: WordIndex,
    /// What came in beside the conversation, by request.
    pub added: Vec<Addition>,
    /// Blocks of requests that do not count, in order; see [`Marks::UNCOUNTED`].
    pub uncounted: Vec<Range<u32>>,
    /// First times of the answers of the API that the log gives no usage for, in order: they are no requests.
    pub unbilled: Vec<Millis>,
    /// What was left out, by reason. Records: `attachment:TYPE` (reminders of the client), `no_message`, `duplicate_record`,
    /// `superseded_progress` (of subagents with records of their own), `synthetic` and `no_usage` (messages that are no
    /// request), `duplicate_message` (a copy under other uuids), `abandoned` (not on the way to any request),
    /// `compacted_before_sent`, `never_sent` (behind the last request). Blocks: `media_in_result`, `other_in_result`,
    /// `other_block`; `orphan_result` is there, but without a call, `end_of_long_result` is measured, but what it holds is
    /// not followed. `forgotten`: lines and identifiers whose places were given up for room. `clock_backwards`: requests,
    /// kept in the order of the log, that began before the one before.
    pub skipped: BTreeMap<String, u64>,
}

impl Timeline {
    /// The request with this index.
    pub fn request(&self, index: u32) -> &Request {
        &self.requests[index as usize]
    }

    /// The chain with this index.
    pub fn chain(&self, index: u32) -> &Chain {
        &self.chains[index as usize]
    }

    /// The session of a chain: an index into [`Timeline::sessions`].
    pub fn session_of_chain(&self, chain: u32) -> u32 {
        self.chain(chain).session
    }

    /// Requests of a chain.
    pub fn requests_of(&self, chain: u32) -> &[Request] {
        let range = &self.chains[chain as usize].requests;
        &self.requests[range.start as usize..range.end as usize]
    }

    /// The request that a block belongs to.
    pub fn request_of_block(&self, block: u32) -> u32 {
        self.requests.partition_point(|request| request.outputs.end <= block) as u32
    }

    /// The requests that count, with their places; see [`Marks::UNCOUNTED`].
    pub fn counted(&self) -> impl Iterator<Item = (u32, &Request)> {
        (0..).zip(&self.requests).filter(|(_, request)| request.counts())
    }

    /// Those of them that were billed for something.
    pub fn billed(&self) -> impl Iterator<Item = (u32, &Request)> {
        self.counted().filter(|(_, request)| request.is_billed())
    }

    /// The models of the requests that count and had a context, in some projects or in all.
    pub fn models(&self, projects: Option<&BTreeSet<Id>>) -> BTreeSet<UsedModel> {
        let asked = self.counted().map(|(_, request)| request).filter(|request| {
            request.context() > 0 && projects.is_none_or(|asked| asked.contains(&self.session_of(request).project))
        });
        // To collect a set makes a list of all items first.
        let mut used: BTreeSet<(Sym, bool)> = BTreeSet::new();
        used.extend(asked.map(|request| (request.model, self.chain(request.chain).place == Place::Main)));
        used.into_iter()
            .map(|(model, is_main)| UsedModel { name: self.names.text(model).to_owned(), is_main })
            .collect()
    }

    /// The sessions with a request that counts. Others are there for what was forked off them.
    pub fn counted_sessions(&self) -> BTreeSet<u32> {
        let mut sessions = BTreeSet::new();
        sessions.extend(self.counted().map(|(_, request)| self.session_of_chain(request.chain)));
        sessions
    }

    /// Whether a person wrote something, or showed an image, that came in with a request: reminders and the like are no prompts,
    /// nor are documents that the client puts in.
    pub fn was_prompted(&self, request: &Request) -> bool {
        let inputs = &self.blocks[request.inputs.start as usize..request.inputs.end as usize];
        let has = |kind| inputs.iter().any(|block| block.kind == kind);
        // Where nothing tells what came in, something was written before it.
        if inputs.is_empty() {
            return request.marks.has(Marks::HUMAN);
        }
        has(BlockKind::Human) || has(BlockKind::Media) && !request.marks.has(Marks::META)
    }

    /// Whether a block came with a request that counts, or answered one.
    pub fn counts_block(&self, block: u32) -> bool {
        let behind = self.uncounted.partition_point(|blocks| blocks.start <= block);
        !behind.checked_sub(1).is_some_and(|last| self.uncounted[last].contains(&block))
    }

    /// The calls that were asked for by requests that count, with their places.
    pub fn counted_calls(&self) -> impl Iterator<Item = (u32, &ToolCall)> {
        (0..).zip(&self.calls).filter(|(_, call)| self.counts_block(call.asked))
    }

    /// What answers to requests that count took up.
    pub fn counted_references(&self) -> impl Iterator<Item = &Reference> {
        self.references.iter().filter(|reference| self.request(reference.request).counts())
    }

    /// The request that a chain was forked off.
    pub fn forked_off(&self, chain: u32) -> Option<u32> {
        let opening = self.segments.get(self.chain(chain).segments.start as usize)?;
        (opening.after != NONE).then_some(opening.after)
    }

    /// By chain: what all blocks come to that its contexts can be made of, or more: its own, and those of the chains that it was
    /// forked off or goes back into, to their ends.
    pub fn sums_by_chain(&self, of: impl Fn(u32) -> u64) -> Vec<u64> {
        let mut sums: Vec<u64> = Vec::with_capacity(self.chains.len());
        for chain in 0..self.chains.len() as u32 {
            let Range { start, end } = self.chain(chain).segments;
            let afters = self.segments[start as usize..end as usize].iter().map(|segment| segment.after);
            let bases = afters.filter(|after| *after != NONE).map(|after| self.request(after).chain);
            let bases: BTreeSet<u32> = bases.filter(|base| *base != chain).collect();
            // What a chain that is still to come holds is not known.
            let of_base = |base: u32| sums.get(base as usize).copied().unwrap_or(u64::MAX);
            let inherited = bases.into_iter().map(of_base).fold(0, u64::saturating_add);
            let (first, last) = (self.requests_of(chain).first(), self.requests_of(chain).last());
            let blocks = first.zip(last).map_or(0..0, |(first, last)| first.inputs.start..last.outputs.end);
            sums.push(blocks.map(&of).fold(inherited, u64::saturating_add));
        }
        sums
    }

    /// Keeps the requests that began within the window, and what belongs to them. Of a chain that began earlier, what it
    /// was sent before stays as well, since it is in the contexts and in the cache; see [`Marks::UNCOUNTED`].
    #[must_use]
    pub fn within(self, window: &Range<Millis>) -> Self {
        if *window == (Millis::MIN..Millis::MAX) { self } else { timeline_window::select(self, window) }
    }

    /// Gives requests that were answered in fast mode the name under which prices have it. Speeds share no cache, as models
    /// do not.
    pub fn name_fast(&mut self) {
        let Self { requests, names, .. } = self;
        for request in requests.iter_mut() {
            if names.text(request.setting.speed) == "fast" && !names.text(request.model).ends_with(FAST) {
                let name = format!("{}{FAST}", names.text(request.model));
                request.model = names.intern(&name);
            }
        }
    }

    /// Gives calls of tools that were renamed the present name, by the old one.
    pub fn rename_tools(&mut self, aliases: &BTreeMap<String, String>) {
        let Self { calls, names, .. } = self;
        for (old, new) in aliases {
            let Some(old) = names.find(old) else { continue };
            let new = names.intern(new);
            calls.iter_mut().filter(|call| call.tool == old).for_each(|call| call.tool = new);
        }
    }

    /// The session of a request.
    pub fn session_of(&self, request: &Request) -> &Session {
        &self.sessions[self.chains[request.chain as usize].session as usize]
    }
}
