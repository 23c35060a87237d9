//! What one log file says, as rows without text: calls, messages, marks and sessions, in the order of the file.
//!
//! These rows are what the lake keeps. A [`FileTrace`] is a value: pieces of a file read by different workers, or on
//! different days, are joined with [`FileTrace::append`] and give the same rows as one reading.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::base::body_shape::Showing;
use crate::base::client_version::ClientVersion;
use crate::base::damage::Damage;
use crate::base::id::{Id, IdMap};
use crate::base::names::{Names, Sym};
use crate::base::tokenizer::{Size, VOCABULARIES};
use crate::logs::value_rules::ValueRules;
use crate::logs::values::ValueRows;

/// Milliseconds since 1970; [`NO_TIME`] when the record has none.
pub type Millis = i64;
/// The timestamp of a record that carries none.
pub const NO_TIME: Millis = i64::MIN;

/// A summary this many records behind a compaction boundary belongs to it. They are written together; concurrent
/// writers may put a record or two between.
pub const SUMMARY_WITHIN_RECORDS: u32 = 3;

/// Where a chain of calls was recorded, best place first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, strum::FromRepr)]
#[repr(u8)]
pub enum Place {
    /// The main thread of a session.
    #[default]
    Main = 0,
    /// A subagent, in lines that carry its `agentId` (its own file).
    AgentFile = 1,
    /// A subagent, as side-chain lines inside the main file (versions 1.0 and 2.0).
    Inline = 2,
    /// A subagent, only as progress records of its parent: usage is a first chunk, output unknown.
    Progress = 3,
}

/// What kind of content a result carried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, strum::FromRepr)]
#[repr(u8)]
pub enum ResultKind {
    /// No result was seen.
    #[default]
    Absent = 0,
    /// No content at all, or an empty text.
    Empty = 1,
    /// Text only.
    Text = 2,
    /// Images, documents or references only: zero characters of text, but not an empty answer.
    NonText = 3,
    /// Text and something else.
    Mixed = 4,
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, strum::IntoStaticStr, strum::FromRepr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[repr(u8)]
pub enum Status {
    /// No result in the log: interrupted, or the log ends.
    #[default]
    Unanswered = 0,
    /// A result that is no error.
    Ok = 1,
    /// The tool failed.
    Error = 2,
    /// The user (or a permission rule) said no. Not a failure of the tool.
    Rejected = 3,
    /// A parallel call failed and this one was cancelled with it.
    Cancelled = 4,
}

impl Status {
    /// All states, in the order of reports.
    pub const ALL: [Self; 5] = [Self::Ok, Self::Error, Self::Rejected, Self::Cancelled, Self::Unanswered];
}

/// Who speaks: a session's main thread or one of its subagents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ChainKey {
    /// Session (pseudonym of `sessionId`).
    pub session: Id,
    /// Subagent (of `agentId`); none on the main thread and for side-chain lines without an id.
    pub agent: Id,
    /// Where it was recorded.
    pub place: Place,
}

/// The asking half of a call: one `tool_use` block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ToolUse {
    /// Number of the record in its file.
    pub record: u32,
    /// Number of the block among all blocks of the file; orders calls within a record.
    pub block: u32,
    /// API message that holds the call.
    pub message: Id,
    pub tool: Sym,
    /// Index into [`FileRows::chains`].
    pub chain: u32,
    /// When the record was written.
    pub ts: Millis,
    /// Length of the input as JSON text, in bytes.
    pub input_bytes: u32,
    /// Endpoint class: the tool, or for shells and fetches what is called with it.
    pub endpoint: Sym,
    /// Pseudonym of the file that the call names, its path normalised.
    pub path: Id,
    /// The handle by which a hint can name the call; not made by a light reading.
    pub handle: Handle,
    /// How its result shows the text of files, as far as the input tells.
    pub showing: Showing,
    /// The lines that it asks for: the first one (`offset`), and how many (`limit`); 0 where the input does not say.
    pub lines: [u32; 2],
}

/// The name of a call in telemetry and in hints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handle {
    /// First 4 bytes of SHA-256 of the `tool_use` id.
    pub short: u32,
    /// Bytes of the name in hints: the end of the `tool_use` id, which the reader of a hint has before it.
    pub bytes: u8,
    /// Tokens of that name, by vocabulary.
    pub tokens: [u8; VOCABULARIES.len()],
}

impl Handle {
    /// Size of the name in a hint.
    pub fn size(&self) -> Size {
        Size { bytes: self.bytes.into(), tokens: self.tokens.map(u32::from) }
    }
}

/// The answering half of a call: one `tool_result` block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ToolResult {
    /// Number of the record in its file.
    pub record: u32,
    /// Number of the block among all blocks of the file.
    pub block: u32,
    /// When the record was written.
    pub ts: Millis,
    /// Code points of the text the model saw.
    pub chars: u32,
    /// Bytes of the same text.
    pub bytes: u32,
    /// Name of the same text.
    pub body: Id,
    /// Content kinds.
    pub kind: ResultKind,
    /// How the call ended, as far as the result tells.
    pub status: Status,
    /// Number of the [`crate::base::body_shape::BodyShape`], 0 where it was not looked at.
    pub shape: u8,
}

/// One row of facts: a call with its result, or one half while the other is not (yet) in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallRow {
    /// The `tool_use` id.
    pub call: Id,
    pub asked: Option<ToolUse>,
    pub answered: Option<ToolResult>,
    /// Recorded in a progress record of the parent rather than in a record of its own.
    pub progress: bool,
}

/// Token counts of one API message: the largest value seen in each field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Tokens neither read from nor written to the cache.
    pub input: u64,
    /// Output tokens; a lower bound where the message never got its `stop_reason`.
    pub output: u64,
    /// Tokens written to the cache, both lifetimes.
    pub cache_creation: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Of `cache_creation`, those kept for 5 minutes.
    pub cache_creation_5m: u64,
    /// Of `cache_creation`, those kept for 1 hour.
    pub cache_creation_1h: u64,
}

impl Usage {
    /// Makes writes by lifetime a part of all writes, as they are where both are right: without a total they are the total,
    /// and beyond it they are cut.
    pub fn settle_split(&mut self) {
        let split = self.cache_creation_5m.saturating_add(self.cache_creation_1h);
        if self.cache_creation == 0 {
            self.cache_creation = split;
        }
        self.cache_creation_1h = self.cache_creation_1h.min(self.cache_creation);
        self.cache_creation_5m = self.cache_creation_5m.min(self.cache_creation - self.cache_creation_1h);
    }

    /// Per-field maximum with another copy of the same message; how writes are split by lifetime is one field.
    pub fn merge(&mut self, other: &Self) {
        self.input = self.input.max(other.input);
        self.output = self.output.max(other.output);
        self.cache_creation = self.cache_creation.max(other.cache_creation);
        self.cache_read = self.cache_read.max(other.cache_read);
        let split = |usage: &Self| {
            let (short, long) = (usage.cache_creation_5m, usage.cache_creation_1h);
            (short.saturating_add(long), long, short)
        };
        (_, self.cache_creation_1h, self.cache_creation_5m) = split(self).max(split(other));
    }
}

/// One API message as one file shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MessageRow {
    /// `message.id` (else `requestId`, else the record's `uuid`, else none: it is a message of its own).
    pub id: Id,
    pub model: Sym,
    /// Index into [`FileRows::chains`].
    pub chain: u32,
    /// Earliest record of the message.
    pub ts: Millis,
    /// Records that carry the message.
    pub copies: u32,
    /// Per-field maximum.
    pub usage: Usage,
    /// Whether a record of its own (not a progress record, not `<synthetic>`) carries usage.
    pub has_usage: bool,
    /// Whether `id` is the `message.id`.
    pub has_id: bool,
    /// Whether some copy has a `stop_reason`; without one, output is a lower bound.
    pub finished: bool,
}

/// What a [`MarkRow`] says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, strum::FromRepr)]
#[repr(u8)]
pub enum MarkKind {
    /// `compact_boundary`; `id` is its uuid.
    #[default]
    Boundary = 0,
    /// `isCompactSummary`; `id` is its uuid, `other` its parent's.
    Summary = 1,
    /// A micro-compaction cleared the result of call `id`; `other` is the boundary's uuid.
    Evicted = 2,
    /// A side-chain record without an `agentId`: `id` is its uuid, `other` its parent's.
    Link = 3,
    /// A person wrote: a prompt, also one sent while the assistant worked; `id` is its uuid.
    Prompt = 4,
    /// A record in the user's role without a result, on a main thread: `id` is its uuid, `other` its parent's, none where the
    /// context begins anew.
    Said = 5,
    /// A copy in a fork that has another uuid than its original, or with which the fork begins: `id` is the original's, `other` its
    /// own, which is the parent of records behind it.
    Copied = 6,
}

impl MarkKind {
    /// Whether something happened there that is told nowhere else; the others only say where records stand.
    pub fn is_event(self) -> bool {
        !matches!(self, Self::Said | Self::Copied)
    }
}

/// Something that shapes a chain without being a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MarkRow {
    /// Number of the record in its file.
    pub record: u32,
    pub kind: MarkKind,
    /// See [`MarkKind`].
    pub id: Id,
    /// See [`MarkKind`].
    pub other: Id,
    /// Index into [`FileRows::chains`].
    pub chain: u32,
    /// When a person wrote or the context was compacted; [`NO_TIME`] of all other marks.
    pub ts: Millis,
}

/// What one file says about one session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SessionRow {
    /// Session (pseudonym of `sessionId`).
    pub session: Id,
    /// Pseudonym of the first `cwd` seen.
    pub project: Id,
    /// Pseudonym of the last component of that `cwd`.
    pub project_name: Id,
    /// Number of the record that gave `project`; the smallest wins.
    pub project_record: u32,
    /// Largest client version seen, by [`compare_versions`].
    pub version: Sym,
    /// Earliest timestamp.
    pub ts_first: Millis,
    /// Latest timestamp.
    pub ts_last: Millis,
    /// Records that carry the session.
    pub records: u64,
}

/// What was counted in one file while its rows were made.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Counters {
    /// Lines, blank and damaged ones included.
    pub lines: u64,
    /// Values found on lines, broken ones included; numbers the records of the file.
    pub items: u32,
    /// Blocks that became halves of calls; numbers [`ToolUse::block`].
    pub blocks: u32,
    /// Records: JSON objects.
    pub records: u64,
    /// Lines that hold something that is no JSON.
    pub bad_fragments: u64,
    /// Arrays and bare values.
    pub non_objects: u64,
    /// Records of a known type: a file without any is no session log.
    pub known_records: u64,
    /// Records by type.
    pub types: BTreeMap<String, u64>,
    pub damage: Damage,
}

impl Counters {
    /// Whether they are of a file that holds records and none of a session log.
    pub fn is_of_sidecar(&self) -> bool {
        self.records > 0 && self.known_records == 0
    }

    /// Adds the counts of the piece that follows.
    pub fn append(&mut self, later: Self) {
        self.damage.absorb(&later.damage, self.lines);
        self.lines += later.lines;
        self.items += later.items;
        self.blocks += later.blocks;
        self.records += later.records;
        self.bad_fragments += later.bad_fragments;
        self.non_objects += later.non_objects;
        self.known_records += later.known_records;
        for (name, count) in later.types {
            *self.types.entry(name).or_default() += count;
        }
    }
}

/// The rows of one file. Symbols refer to a [`Names`] table kept beside them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct FileRows {
    /// Chains, in order of first sight; other rows refer to them by index.
    pub chains: Vec<ChainKey>,
    /// Calls, in order of their first half.
    pub calls: Vec<CallRow>,
    /// Messages, in order of first sight.
    pub messages: Vec<MessageRow>,
    /// Marks, in order.
    pub marks: Vec<MarkRow>,
    /// Sessions, in order of first sight.
    pub sessions: Vec<SessionRow>,
}

/// Adds to what is counted under a name; the name is copied on first sight only.
pub fn count_under(counts: &mut BTreeMap<String, u64>, name: &str, count: u64) {
    match counts.get_mut(name) {
        Some(known) => *known += count,
        None => drop(counts.insert(name.to_owned(), count)),
    }
}

/// Puts rows behind others. Where there are none yet they are taken over as they stand: of a long log a copy would be
/// the most that is in memory.
pub(super) fn put_behind<T>(rows: &mut Vec<T>, mut later: Vec<T>) {
    if rows.capacity() == 0 {
        *rows = later;
    } else {
        rows.append(&mut later);
    }
}

/// Where each chain stands in a list of chains.
pub type ChainIndex = IdMap<ChainKey, u32>;

/// The place of a chain in a list, made on first sight.
pub fn chain_place(chains: &mut Vec<ChainKey>, index: &mut ChainIndex, key: ChainKey) -> u32 {
    *index.entry(key).or_insert_with(|| {
        chains.push(key);
        u32::try_from(chains.len() - 1).expect("fewer than 2^32 chains in a file")
    })
}

impl FileRows {
    /// Appends the rows of the piece that follows. `names` says where each symbol of `later` went, `before` how much
    /// of the file came earlier.
    pub fn append(&mut self, mut later: Self, names: &[Sym], before: &Counters) {
        let places = self.chains.iter().zip(0..);
        let mut index: ChainIndex = places.map(|(&key, place)| (key, place)).collect();
        let chains: Vec<u32> = later.chains.iter().map(|&key| chain_place(&mut self.chains, &mut index, key)).collect();
        for row in &mut later.calls {
            if let Some(asked) = &mut row.asked {
                asked.record += before.items;
                asked.block += before.blocks;
                asked.tool = names[asked.tool.0 as usize];
                asked.endpoint = names[asked.endpoint.0 as usize];
                asked.chain = chains[asked.chain as usize];
            }
            if let Some(answered) = &mut row.answered {
                answered.record += before.items;
                answered.block += before.blocks;
            }
        }
        for row in &mut later.messages {
            row.model = names[row.model.0 as usize];
            row.chain = chains[row.chain as usize];
        }
        for row in &mut later.marks {
            row.record += before.items;
            row.chain = chains[row.chain as usize];
        }
        for row in &mut later.sessions {
            row.version = names[row.version.0 as usize];
            row.project_record = row.project_record.saturating_add(before.items);
        }
        put_behind(&mut self.calls, later.calls);
        put_behind(&mut self.messages, later.messages);
        put_behind(&mut self.marks, later.marks);
        put_behind(&mut self.sessions, later.sessions);
    }

    /// Adds rows that know these chains already.
    pub fn extend(&mut self, more: &Self) {
        self.chains.extend_from_slice(&more.chains);
        self.calls.extend_from_slice(&more.calls);
        self.messages.extend_from_slice(&more.messages);
        self.marks.extend_from_slice(&more.marks);
        self.sessions.extend_from_slice(&more.sessions);
    }

    /// Brings together what belongs together: the halves of each call, the copies of each message, the rows of each
    /// session.
    pub fn fold(&mut self, names: &Names) {
        join_halves(&mut self.calls);
        for row in &mut self.calls {
            // Whether a result was classified before its tool was known depends on how the file was cut.
            let builtin = row.asked.is_some_and(|asked| !names.text(asked.tool).starts_with("mcp__"));
            if let Some(answered) = row.answered.as_mut().filter(|_| builtin) {
                answered.shape = 0;
            }
        }
        merge_copies(&mut self.messages, &self.chains, names);
        let (mut sessions, mut places) = (Vec::new(), SessionPlaces::default());
        for row in std::mem::take(&mut self.sessions) {
            merge_session(&mut sessions, &mut places, row, names);
        }
        self.sessions = sessions;
    }
}

/// One file, or one piece of it: rows with their names, and counts.
#[derive(Clone, Default, Debug)]
pub struct FileTrace {
    /// Tools, models, versions.
    pub names: Names,
    pub counters: Counters,
    pub rows: FileRows,
    /// Extractors and arguments.
    pub value_names: Names,
    /// What answers listed and calls were given.
    pub values: ValueRows,
}

impl FileTrace {
    /// Joins the trace of the piece that follows this one in the file.
    pub fn append(&mut self, later: Self) {
        let names = self.names.absorb(&later.names);
        self.rows.append(later.rows, &names, &self.counters);
        let names = self.value_names.absorb(&later.value_names);
        self.values.append(later.values, &names, self.counters.blocks);
        self.counters.append(later.counters);
    }

    /// Brings together what belongs together ([`FileRows::fold`]), and drops the lists of answers that are not kept.
    pub fn fold(&mut self, rules: &ValueRules) {
        self.rows.fold(&self.names);
        self.values.drop_lists(&self.rows.calls, |tool, list| !rules.keeps(self.names.text(tool), list));
        // The room to grow in would be a third of all that is held until it is written.
        self.values.lists.shrink_to_fit();
        self.values.listed.shrink_to_fit();
        self.values.given.shrink_to_fit();
        self.rows.marks.shrink_to_fit();
    }
}

/// Where the row of each session stands in a list of rows.
pub type SessionPlaces = IdMap<Id, usize>;

/// Adds to the row of a session, made on first sight.
pub fn merge_session(rows: &mut Vec<SessionRow>, places: &mut SessionPlaces, row: SessionRow, names: &Names) {
    match places.get(&row.session) {
        Some(&place) => rows[place].merge(&row, names),
        None => {
            places.insert(row.session, rows.len());
            rows.push(row);
        }
    }
}

impl SessionRow {
    /// Joins two rows about the same session; the result does not depend on which came first.
    pub fn merge(&mut self, row: &Self, names: &Names) {
        let better = (row.project_record, row.project) < (self.project_record, self.project);
        if row.project.is_some() && (better || !self.project.is_some()) {
            self.project = row.project;
            self.project_name = row.project_name;
            self.project_record = row.project_record;
        }
        let is_newer = || compare_versions(names.text(row.version), names.text(self.version)).is_gt();
        if row.version != self.version && is_newer() {
            self.version = row.version;
        }
        self.ts_first = earlier(self.ts_first, row.ts_first);
        self.ts_last = self.ts_last.max(row.ts_last);
        self.records += row.records;
    }
}

/// Whether a window of time holds this moment. What has no time lies in the window that is open on both sides only.
pub fn is_within(window: &Range<Millis>, ts: Millis) -> bool {
    *window == (Millis::MIN..Millis::MAX) || ts != NO_TIME && window.contains(&ts)
}

/// The earlier of two timestamps, of which either may be [`NO_TIME`].
pub fn earlier(a: Millis, b: Millis) -> Millis {
    match (a, b) {
        (NO_TIME, other) | (other, NO_TIME) => other,
        _ => a.min(b),
    }
}

/// Orders versions of Claude Code ("2.1.9" before "2.1.29-beta.1" before "2.1.29"); what is none comes before all.
pub fn compare_versions(a: &str, b: &str) -> std::cmp::Ordering {
    ClientVersion::parse(a).cmp(&ClientVersion::parse(b)).then_with(|| a.cmp(b))
}

/// Pairs each answering half with the nearest asking half of its id before it, if nothing answered that yet; whatever has no
/// partner stays a row of its own. Other makers' models number their calls anew in each answer, so that an id may come back. The
/// result is a function of the halves alone, however they were joined before. A block has a number of its own, and a half is a
/// block: there are no ties.
fn join_halves(rows: &mut Vec<CallRow>) {
    let answer = |row: &mut CallRow| Some((row.call, row.progress, row.answered.take()?));
    let mut answers: Vec<_> = rows.iter_mut().filter_map(answer).collect();
    rows.retain(|row| row.asked.is_some());
    let block = |row: &CallRow| row.asked.map(|half| half.block).or(row.answered.map(|half| half.block));
    rows.sort_unstable_by_key(block);
    answers.sort_unstable_by_key(|(.., answered)| answered.block);
    let asked = rows.len();
    let mut open: IdMap<(Id, bool), usize> = IdMap::with_capacity_and_hasher(asked, Default::default());
    let mut next = 0;
    for (call, progress, answered) in answers {
        while next < asked && block(&rows[next]) < Some(answered.block) {
            open.insert((rows[next].call, rows[next].progress), next);
            next += 1;
        }
        match open.get(&(call, progress)) {
            Some(&index) if rows[index].answered.is_none() => rows[index].answered = Some(answered),
            _ => rows.push(CallRow { call, asked: None, answered: Some(answered), progress }),
        }
    }
    rows.sort_unstable_by_key(block);
    rows.shrink_to_fit();
}

/// Merges the copies of each message; what progress records repeat stays apart from records of their own, and so does
/// each message without any id.
fn merge_copies(rows: &mut Vec<MessageRow>, chains: &[ChainKey], names: &Names) {
    let mut index: IdMap<(Id, bool), usize> = IdMap::default();
    let mut kept = 0;
    for place in 0..rows.len() {
        let row = rows[place];
        let progress = chains[row.chain as usize].place == Place::Progress;
        match index.get(&(row.id, progress)).filter(|_| row.id.is_some()) {
            Some(&known) => rows[known].merge(&row, names),
            None => {
                index.insert((row.id, progress), kept);
                rows[kept] = row;
                kept += 1;
            }
        }
    }
    rows.truncate(kept);
    rows.shrink_to_fit();
}

impl MessageRow {
    /// Takes over another copy of the message. A record with usage names the model; of two the one that sorts last.
    pub fn merge(&mut self, other: &Self, names: &Names) {
        let better = names.text(other.model) > names.text(self.model);
        if other.has_usage == self.has_usage && better || other.has_usage && !self.has_usage {
            self.model = other.model;
        }
        self.ts = earlier(self.ts, other.ts);
        self.copies += other.copies;
        self.usage.merge(&other.usage);
        self.has_usage |= other.has_usage;
        self.has_id |= other.has_id;
        self.finished |= other.finished;
    }
}
