//! Rows of many files to one [`Timeline`]: every request once, chain by chain, with what it added to its context.
//!
//! Which copy counts is decided by what the rows say (place, time, ids), never by the order in which files were read:
//! records of their own before progress records of a parent, older files before younger ones; and the same files are copies
//! as in the history. What stands before a request is told by the order of the log, and by the parents of records where
//! the conversation went back.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use xxhash_rust::xxh3::Xxh3;

use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::{Names, Sym};
use crate::logs::copies::{FileStanding, RecordedAgents};
use crate::logs::timeline::drafts::{CallsMade, ChainId, RecordNode, RequestDraft, Track};
use crate::logs::timeline::families::{Kin, families};
use crate::logs::timeline::join::join;
use crate::logs::timeline::layout;
use crate::logs::timeline::record::SYNTHETIC;
use crate::logs::timeline::requests::{Addition, BlockKind, Marks, NONE, Request, SegmentCause, Timeline};
use crate::logs::timeline::rows::{AnswerRow, BlockRow, FileTimeline, Parent, RecordKind, RecordRow};
use crate::logs::timeline::rules::TimelineRules;
use crate::logs::timeline::words::WordList;
use crate::logs::trace::{Millis, NO_TIME, Place, count_under, earlier};

/// Where the parent of a record leads is not known: the conversation goes on.
const UNKNOWN: u32 = NONE - 1;

/// The rows of one file, until its family is put together.
pub trait KeptRows: Send {
    /// What its symbols mean.
    fn names(&self) -> Names;
    /// The rows.
    fn open(self: Box<Self>) -> FileTimeline;
}

impl KeptRows for FileTimeline {
    fn names(&self) -> Names {
        self.names.clone()
    }

    fn open(self: Box<Self>) -> FileTimeline {
        *self
    }
}

/// What one file says, its name and its rank.
pub struct SourceTimeline {
    /// Pseudonym of the file.
    pub key: Id,
    pub rows: Box<dyn KeptRows>,
    /// By what other files may know it.
    pub kin: Kin,
    /// What it owns of what several files say, as in the history ([`crate::logs::assemble::standings_of`]).
    pub standing: FileStanding,
}

impl SourceTimeline {
    /// Of rows as they are.
    pub fn new(key: Id, file: FileTimeline, standing: FileStanding) -> Self {
        Self { key, kin: Kin::of(&file.rows), rows: Box::new(file), standing }
    }
}

/// Builds the timeline of all files.
///
/// Family by family, and only the rows of those at hand are open: together they are more than the timeline.
pub fn assemble(mut sources: Vec<SourceTimeline>, rules: &TimelineRules) -> Timeline {
    sources.sort_by_key(|source| source.standing);
    let mut names = Names::default();
    sources.iter().for_each(|source| _ = names.absorb(&source.rows.names()));
    let families = families(sources).into_par_iter();
    let known = KnownNames::new(&names, rules);
    let shrink_tokens_min = rules.shrink_tokens_min;
    let timeline = join(families.map(|family| of_family(family, &known, shrink_tokens_min)).collect());
    Timeline { names, ..timeline }
}

/// The names of all files, and which of them are models whose efforts share one cache.
struct KnownNames<'n> {
    names: &'n Names,
    efforts_share_cache: Vec<bool>,
}

impl<'n> KnownNames<'n> {
    fn new(names: &'n Names, rules: &TimelineRules) -> Self {
        let efforts_share_cache = names.texts().iter().map(|name| rules.keeps_cache_over_efforts(name)).collect();
        Self { names, efforts_share_cache }
    }
}

/// The timeline of files that belong together, but for its names.
fn of_family(sources: Vec<SourceTimeline>, names: &KnownNames<'_>, shrink_tokens_min: u64) -> Timeline {
    let mut files: Vec<File> = sources.into_par_iter().map(|source| File::open(source, names.names)).collect();
    let mut timeline = put_together(&files, names, shrink_tokens_min);
    // Words are most of the rows: they are handed over, file by file, instead of copied.
    let words: Vec<_> = files.iter_mut().map(|file| std::mem::take(&mut file.rows.rows.words)).collect();
    let append = || {
        let mut all = WordList::default();
        words.into_iter().for_each(|words| all.append(words));
        all.finish()
    };
    (timeline.words, ()) = rayon::join(append, || drop(files));
    timeline
}

/// The timeline but for its words, which are those of the sources, one behind the other.
fn put_together(files: &[File], names: &KnownNames<'_>, shrink_tokens_min: u64) -> Timeline {
    let mut assembly = Assembly::new(files, names);
    for place in [Place::Main, Place::AgentFile, Place::Inline, Place::Progress] {
        for file in 0..files.len() {
            assembly.take_file(file as u32, place);
        }
    }
    assembly.forget_ids();
    layout::lay_out(assembly, shrink_tokens_min)
}

/// One file.
pub(super) struct File {
    key: Id,
    pub(super) rows: FileTimeline,
    /// Whether another file says all that this one does: then only the usage in it may say more.
    pub(super) is_repeated: bool,
    /// Where its symbols went.
    pub(super) symbols: Vec<Sym>,
}

impl File {
    fn open(SourceTimeline { key, rows, standing, .. }: SourceTimeline, names: &Names) -> Self {
        let rows = rows.open();
        let symbols = rows.names.texts().iter().map(|text| names.find(text).unwrap_or_default()).collect();
        Self { key, rows, is_repeated: standing.is_repeated, symbols }
    }

    pub(super) fn session(&self, session: Id) -> Id {
        if session.is_some() { session } else { self.key }
    }
}

/// What the files tell of kinds of agents, and whether some call names the model; where they differ in the kind, the file that
/// began first is right.
fn agent_types(files: &[File]) -> BTreeMap<(bool, Id), (Sym, bool)> {
    let mut kinds = BTreeMap::new();
    for file in files {
        for row in &file.rows.rows.agents {
            let named = if row.agent.is_some() { row.agent } else { file.session(row.session) };
            let kind = file.symbols[row.kind.0 as usize];
            let (known, names_model) = kinds.entry((row.agent.is_some(), named)).or_insert((kind, false));
            *names_model |= row.names_model;
            if *known == Sym::default() {
                *known = kind;
            }
        }
    }
    kinds
}

/// Whether two records of one `uuid` say the same: those of different messages do not, whoever gave them the same name.
fn may_be_copies(one: &RecordRow, other: &RecordRow) -> bool {
    match (&one.kind, &other.kind) {
        (RecordKind::Answer(one), RecordKind::Answer(other)) => one.message == other.message,
        (RecordKind::Answer(_), _) | (_, RecordKind::Answer(_)) => false,
        _ => true,
    }
}

/// Messages of which some record has usage and some record has none: all of these are parts of one request. What is set aside
/// is no part of any.
fn partly_billed(files: &[File], recorded: &RecordedAgents) -> IdSet<Id> {
    let records = || {
        files
            .iter()
            .map(|file| &file.rows.rows)
            .flat_map(|rows| rows.records.iter().filter(|row| !recorded.sets_aside(&rows.chains[row.chain as usize])))
    };
    let answers = |is_request: bool| {
        records().filter_map(move |row| match &row.kind {
            RecordKind::Answer(answer) if answer.is_request == is_request => Some(answer.message),
            _ => None,
        })
    };
    let without: IdSet<Id> = answers(false).filter(|message| message.is_some()).collect();
    if without.is_empty() { without } else { answers(true).filter(|message| without.contains(message)).collect() }
}

/// Names an answer without any id of its own by where it stands.
fn unnamed(file: &Id, record: u32) -> Id {
    Id::of(&[&file.0[..], &record.to_le_bytes()].concat())
}

/// All that is being put together.
pub(super) struct Assembly<'a> {
    pub(super) files: &'a [File],
    names: &'a KnownNames<'a>,
    recorded: RecordedAgents,
    /// Progress records that are set aside, by `uuid`: a fork repeats them in the name of another session.
    superseded: IdSet<Id>,
    pub(super) nodes: Vec<RecordNode>,
    /// Nodes by `uuid`.
    known: IdMap<Id, u32>,
    /// Nodes of the records of each file.
    pub(super) local: Vec<Vec<u32>>,
    pub(super) requests: Vec<RequestDraft>,
    /// Nodes of the requests. There are very many short lists of them, so they stand in one.
    members: Vec<u32>,
    /// See [`partly_billed`].
    partly_billed: IdSet<Id>,
    /// Requests by `message.id`.
    by_message: IdMap<Id, u32>,
    calls_made: CallsMade,
    /// Parts of answers that make calls, by [`Self::part_name`].
    parts_with_calls: IdSet<u64>,
    pub(super) chain_index: BTreeMap<ChainId, u32>,
    /// Kinds of agents, and whether the call names the model: of subagents by their ids, of main threads by those of sessions.
    pub(super) agent_types: BTreeMap<(bool, Id), (Sym, bool)>,
    pub(super) tracks: Vec<Track>,
    pub(super) skipped: BTreeMap<String, u64>,
    /// Answers of the API without usage, by message: their first time.
    pub(super) unbilled: IdMap<Id, Millis>,
}

impl<'a> Assembly<'a> {
    fn new(files: &'a [File], names: &'a KnownNames<'a>) -> Self {
        let mut skipped: BTreeMap<String, u64> = BTreeMap::new();
        for file in files {
            for (reason, count) in &file.rows.rows.skipped {
                count_under(&mut skipped, reason, *count);
            }
        }
        let recorded = RecordedAgents::of(files.iter().flat_map(|file| {
            let rows = &file.rows.rows;
            let answers = rows.records.iter().filter(|row| matches!(row.kind, RecordKind::Answer(_)));
            answers.map(|row| rows.chains[row.chain as usize])
        }));
        let mut superseded = IdSet::default();
        for rows in files.iter().map(|file| &file.rows.rows) {
            let is_aside: Vec<bool> = rows.chains.iter().map(|key| recorded.sets_aside(key)).collect();
            superseded.extend(rows.records.iter().filter(|row| is_aside[row.chain as usize]).map(|row| row.id));
        }
        superseded.remove(&Id::NONE);
        let partly_billed = partly_billed(files, &recorded);
        let records = files.iter().map(|file| file.rows.rows.records.len()).sum();
        Self {
            files,
            names,
            recorded,
            superseded,
            nodes: Vec::with_capacity(records),
            known: IdMap::with_capacity_and_hasher(records, Default::default()),
            local: files.iter().map(|file| vec![NONE; file.rows.rows.records.len()]).collect(),
            requests: Vec::new(),
            members: Vec::new(),
            partly_billed,
            by_message: IdMap::default(),
            calls_made: CallsMade::default(),
            parts_with_calls: IdSet::default(),
            chain_index: BTreeMap::new(),
            agent_types: agent_types(files),
            tracks: Vec::new(),
            skipped,
            unbilled: IdMap::default(),
        }
    }

    /// By what copies and parents were found is as large as the records themselves.
    fn forget_ids(&mut self) {
        (self.known, self.superseded) = Default::default();
        (self.by_message, self.calls_made, self.parts_with_calls) = Default::default();
    }

    /// What was put together in them stands in the timeline now. Tells how many nodes no request sent.
    pub(super) fn forget_drafts(&mut self) -> u64 {
        (self.requests, self.members) = Default::default();
        std::mem::take(&mut self.tracks).iter().map(|track| track.pending.len() as u64).sum()
    }

    fn skip(&mut self, reason: &str) {
        count_under(&mut self.skipped, reason, 1);
    }

    pub(super) fn row(&self, node: u32) -> &'a RecordRow {
        let RecordNode { file, record, .. } = self.nodes[node as usize];
        &self.files[file as usize].rows.rows.records[record as usize]
    }

    /// What came in with a node beside the conversation, with the symbols of its file.
    pub(super) fn added_with(&self, node: u32) -> (&'a [Addition], &'a [Sym]) {
        let RecordNode { file, record, .. } = self.nodes[node as usize];
        let file = &self.files[file as usize];
        (file.rows.rows.added_with(record), &file.symbols)
    }

    fn keep(&mut self, nodes: &[u32]) -> Range<u32> {
        let start = self.members.len() as u32;
        self.members.extend_from_slice(nodes);
        start..self.members.len() as u32
    }

    /// Nodes of what went into a request.
    pub(super) fn inputs_of(&self, draft: &RequestDraft) -> &[u32] {
        &self.members[draft.request.inputs.start as usize..draft.request.inputs.end as usize]
    }

    /// Nodes of what came in beside the conversation.
    pub(super) fn added_to(&self, draft: &RequestDraft) -> &[u32] {
        &self.members[draft.added.start as usize..draft.added.end as usize]
    }

    /// Nodes of the parts of an answer.
    pub(super) fn outputs_of(&self, draft: &RequestDraft) -> impl Iterator<Item = u32> {
        let some = |node: u32| (node != NONE).then_some(node);
        std::iter::successors(some(draft.request.outputs.start), move |node| some(self.nodes[*node as usize].next))
    }

    pub(super) fn blocks_of(&self, node: u32) -> &'a [BlockRow] {
        self.blocks_in(self.nodes[node as usize].file, self.row(node))
    }

    /// The blocks of a record of a file.
    fn blocks_in(&self, file: u32, row: &RecordRow) -> &'a [BlockRow] {
        &self.files[file as usize].rows.rows.blocks[row.blocks.start as usize..row.blocks.end as usize]
    }

    /// Takes the records of one file that were recorded in one kind of place.
    fn take_file(&mut self, file: u32, place: Place) {
        let rows = &self.files[file as usize].rows.rows;
        if rows.chains.iter().all(|key| key.place != place) {
            return;
        }
        let tracks: Vec<Option<u32>> = rows
            .chains
            .iter()
            .map(|key| {
                let session = self.files[file as usize].session(key.session);
                let is_aside = self.recorded.sets_aside(key);
                (!is_aside).then(|| self.track((session, place != Place::Main, key.agent, key.place)))
            })
            .collect();
        for (index, row) in rows.records.iter().enumerate() {
            if rows.chains[row.chain as usize].place != place {
                continue;
            }
            let is_aside = place == Place::Progress && self.superseded.contains(&row.id);
            match tracks[row.chain as usize].filter(|_| !is_aside) {
                Some(track) => self.take(file, index as u32, row, track),
                None => self.skip("superseded_progress"),
            }
        }
    }

    fn track(&mut self, id: ChainId) -> u32 {
        let next = self.tracks.len() as u32;
        let track = *self.chain_index.entry(id).or_insert(next);
        if track == next {
            self.tracks.push(Track { place: id.3, ..Track::default() });
        }
        track
    }

    /// The node above, and where that leads.
    fn parent_node(&self, file: u32, parent: Parent) -> (u32, u32) {
        let node = match parent {
            Parent::Nothing => return (NONE, NONE),
            Parent::Unknown => NONE,
            Parent::Record(record) => self.local[file as usize][record as usize],
            Parent::Outside(place) => {
                let id = &self.files[file as usize].rows.rows.outside[place as usize];
                self.known.get(id).copied().unwrap_or(NONE)
            }
        };
        (node, self.nodes.get(node as usize).map_or(UNKNOWN, |node| node.tip))
    }

    fn take(&mut self, file: u32, record: u32, row: &'a RecordRow, track: u32) {
        let is_repeated = self.files[file as usize].is_repeated;
        let known = if is_repeated || !row.id.is_some() { None } else { self.known.get(&row.id).copied() };
        let copied = known.filter(|&node| may_be_copies(self.row(node), row) && !self.is_another_part(file, row));
        if is_repeated || copied.is_some() {
            self.local[file as usize][record as usize] = copied.unwrap_or(NONE);
            if let RecordKind::Answer(answer) = &row.kind {
                self.merge_usage(file, answer, track);
            }
            return self.skip("duplicate_record");
        }
        if self.is_repeated_compaction(file, record) {
            return self.skip("duplicate_record");
        }
        let (parent, tip) = self.parent_node(file, row.parent);
        let node = self.nodes.len() as u32;
        self.nodes.push(RecordNode { file, record, parent, tip, next: NONE });
        self.local[file as usize][record as usize] = node;
        if row.id.is_some() {
            self.known.entry(row.id).or_insert(node);
        }
        if !self.files[file as usize].rows.rows.added_with(record).is_empty() {
            self.tracks[track as usize].added.push(node);
        }
        match &row.kind {
            RecordKind::Said => self.said(node, row, track),
            RecordKind::Answer(answer) => self.answered(node, row, answer, track),
            RecordKind::Compacted(_) => {
                self.nodes[node as usize].tip = NONE;
                let track = &mut self.tracks[track as usize];
                track.marks.set(row.marks);
                track.compactions.push((node, track.requests.len() as u32));
                let dropped = track.take_pending().len();
                count_under(&mut self.skipped, "compacted_before_sent", dropped as u64);
            }
            RecordKind::Cleared(_) => {
                let track = &mut self.tracks[track as usize];
                track.marks.set(row.marks);
                track.clearings.push((node, track.requests.len() as u32));
                track.note_arrived();
            }
            RecordKind::Noted => self.noted(row, track),
        }
    }

    /// The client tries again what it could not send: the request begins anew.
    fn noted(&mut self, row: &RecordRow, track: u32) {
        let track = &mut self.tracks[track as usize];
        track.marks.set(row.marks);
        if row.marks.has(Marks::RETRIED) && row.ts != NO_TIME && track.spoken.is_some() {
            track.spoken = Some(row.ts);
        }
    }

    /// A summary that stands for its compaction, in a copy that lacks the boundary: the compaction is known.
    fn is_repeated_compaction(&self, file: u32, record: u32) -> bool {
        let rows = &self.files[file as usize].rows.rows;
        let summary = rows.records.get(record as usize + 1);
        rows.is_made_up(record as usize) && summary.is_some_and(|summary| self.known.contains_key(&summary.id))
    }

    fn said(&mut self, node: u32, row: &RecordRow, track: u32) {
        let results = self.blocks_of(node).iter().filter(|block| block.kind == BlockKind::ToolResult);
        let mut named = results.filter(|block| block.call.is_some());
        if let Some(asked) = named.find_map(|block| self.calls_made.asker(block.call, track)) {
            self.nodes[node as usize].tip = asked;
        }
        let track = &mut self.tracks[track as usize];
        track.pending.push(node);
        track.marks.set(row.marks);
        if row.ts != NO_TIME {
            track.spoken = Some(row.ts);
        }
    }

    /// A copy of a message adds what it knows of its usage; a progress record adds nothing to a record of its own, since it knows
    /// no more than a first chunk.
    fn merge_usage(&mut self, file: u32, answer: &AnswerRow, track: u32) {
        let setting = answer.setting.renamed(&self.files[file as usize].symbols);
        let Some(&request) = self.by_message.get(&answer.message).filter(|_| answer.is_request) else { return };
        let model = self.files[file as usize].symbols[answer.model.0 as usize];
        let RequestDraft { request, is_progress, .. } = &mut self.requests[request as usize];
        if !*is_progress && self.tracks[track as usize].place == Place::Progress {
            return;
        }
        // Of two names the one that sorts last, as in the history.
        let names = self.names.names;
        if names.text(model) > names.text(request.model) {
            request.model = model;
        }
        let mut merged = *request.setting;
        merged.merge(&setting);
        if merged != *request.setting {
            request.setting = merged.into();
        }
        let mut usage = request.usage();
        usage.merge(&answer.usage);
        request.tokens = usage.into();
    }

    /// Whether a record is a part of a request: it has usage, or another part of its message has.
    fn is_billed(&self, answer: &AnswerRow) -> bool {
        answer.is_request || self.partly_billed.contains(&answer.message)
    }

    /// Whether a record makes a call that its request has not made so far: it is no copy, the rest of its message is elsewhere.
    fn asks_more(&self, blocks: &[BlockRow], request: u32) -> bool {
        let mut calls = blocks.iter().filter(|block| block.kind == BlockKind::ToolUsage);
        calls.any(|block| block.call.is_some() && !self.calls_made.has(block.call, request))
    }

    /// Whether a record of an answer makes other calls than the records of its message before it, though one of them has its
    /// `uuid`. One that repeats a call of theirs is a copy, even if it makes more.
    fn is_another_part(&self, file: u32, row: &RecordRow) -> bool {
        let RecordKind::Answer(answer) = &row.kind else { return false };
        let Some(&request) = self.by_message.get(&answer.message) else { return false };
        let blocks = self.blocks_in(file, row);
        let repeats = blocks.iter().any(|block| block.call.is_some() && self.calls_made.has(block.call, request));
        !repeats && self.asks_more(blocks, request)
    }

    /// Whether a record with calls stands twice, without a uuid or under two: it holds nothing but calls that the request has
    /// made already, or the same blocks as one of its records.
    fn asks_again(&self, node: u32, request: u32) -> bool {
        let blocks = self.blocks_of(node);
        let is_known = |block: &BlockRow| {
            block.kind == BlockKind::ToolUsage && block.call.is_some() && self.calls_made.has(block.call, request)
        };
        blocks.iter().any(is_known)
            && (blocks.iter().all(is_known) || self.parts_with_calls.contains(&self.part_name(node, request)))
    }

    /// Names the blocks of a part of an answer: of two parts with the same ones one is a copy.
    fn part_name(&self, node: u32, request: u32) -> u64 {
        let mut name = Xxh3::with_seed(request.into());
        for block in self.blocks_of(node) {
            name.update(&[block.kind as u8]);
            name.update(&block.call.0);
            name.update(&block.chars.to_le_bytes());
            name.update(&block.bytes.to_le_bytes());
        }
        name.digest()
    }

    fn answered(&mut self, node: u32, row: &'a RecordRow, answer: &AnswerRow, track: u32) {
        if !self.is_billed(answer) {
            let RecordNode { file, record, .. } = self.nodes[node as usize];
            let File { rows, key, .. } = &self.files[file as usize];
            if rows.names.text(answer.model) == SYNTHETIC {
                return self.skip("synthetic");
            }
            // One message may be told in several records.
            let id = if answer.message.is_some() { answer.message } else { unnamed(key, record) };
            let first = self.unbilled.entry(id).or_insert(row.ts);
            *first = earlier(*first, row.ts);
            return;
        }
        let known = self.by_message.get(&answer.message).filter(|_| answer.message.is_some());
        let request = match known.copied() {
            Some(request) => {
                self.merge_usage(self.nodes[node as usize].file, answer, track);
                let is_elsewhere = self.requests[request as usize].request.chain != track
                    && !self.asks_more(self.blocks_of(node), request);
                if is_elsewhere || self.asks_again(node, request) {
                    self.nodes[node as usize].tip = request;
                    self.skip("duplicate_message");
                    return;
                }
                request
            }
            None => self.begin(node, row, answer, track),
        };
        self.nodes[node as usize].tip = request;
        for call in self.blocks_of(node).iter().map(|block| block.call).filter(|call| call.is_some()) {
            let chain = self.requests[request as usize].request.chain;
            self.calls_made.add(call, request, chain);
        }
        if self.blocks_of(node).iter().any(|block| block.kind == BlockKind::ToolUsage) {
            self.parts_with_calls.insert(self.part_name(node, request));
        }
        let draft = &mut self.requests[request as usize].request;
        match std::mem::replace(&mut draft.outputs.end, node) {
            NONE => draft.outputs.start = node,
            last => self.nodes[last as usize].next = node,
        }
        draft.end = draft.end.max(row.ts);
        self.tracks[track as usize].marks.set(row.marks);
    }

    /// The first record of a new message: everything since the one before went into its context.
    fn begin(&mut self, node: u32, row: &RecordRow, answer: &AnswerRow, track_index: u32) -> u32 {
        let request = self.requests.len() as u32;
        let RecordNode { file, parent, tip, .. } = self.nodes[node as usize];
        let symbols = &self.files[file as usize].symbols;
        let (model, version) = (symbols[answer.model.0 as usize], symbols[row.version.0 as usize]);
        let mut setting = Arc::new(answer.setting.renamed(symbols));
        let track = &mut self.tracks[track_index as usize];
        let is_progress = track.place == Place::Progress;
        let pending = track.take_pending();
        let added = std::mem::take(&mut track.added);
        let mut marks = std::mem::take(&mut track.marks);
        let spoken = track.spoken.take();
        let before = track.requests.last().copied();
        track.requests.push(request);
        let count = track.requests.len() as u32 - 1;
        let compacted = track.compactions.last().is_some_and(|&(_, at)| at == count);
        let opens = match before {
            _ if compacted => Some((SegmentCause::Compaction, NONE)),
            None => Some((SegmentCause::Start, if tip == UNKNOWN { NONE } else { tip })),
            Some(before) if tip == UNKNOWN || tip == before => None,
            Some(_) => Some((SegmentCause::Rewind, tip)),
        };
        if let Some(before) = before {
            let before = &self.requests[before as usize].request;
            let (was, is) = (before.setting.effort, setting.effort);
            marks.set_if(Marks::VERSION_CHANGE, before.version != version);
            let is_other = was != is && was != Sym::default() && is != Sym::default();
            marks.set_if(Marks::EFFORT_CHANGE, is_other && !self.names.efforts_share_cache[model.0 as usize]);
            if before.setting == setting {
                setting = Arc::clone(&before.setting);
            }
            marks.set_if(Marks::REWIND, opens.is_some_and(|(cause, _)| cause == SegmentCause::Rewind));
        }
        let inputs = self.inputs(file, parent, tip, &pending, opens);
        let (inputs, added) = (self.keep(&inputs), self.keep(&added));
        let mut id = answer.message;
        if id.is_some() {
            self.by_message.insert(id, request);
        } else {
            // Without any id it can have no copies.
            id = unnamed(&self.files[file as usize].key, self.nodes[node as usize].record);
        }
        let begun = Request {
            id,
            chain: track_index,
            segment: 0,
            turn: 0,
            model,
            version,
            setting,
            start: spoken.unwrap_or(row.ts),
            end: row.ts,
            tokens: answer.usage.into(),
            inputs,
            outputs: NONE..NONE,
            marks,
        };
        self.requests.push(RequestDraft { request: begun, is_progress, opens, added });
        request
    }

    /// What of the pending nodes is in the context: those that the answer descends from, results, and summaries. Behind a
    /// rewind, also what an abandoned request had been sent already; in a fork, also what came since the last answer that it
    /// was forked off.
    fn inputs(
        &mut self,
        file: u32,
        parent: u32,
        tip: u32,
        pending: &[u32],
        opens: Option<(SegmentCause, u32)>,
    ) -> Vec<u32> {
        if tip == UNKNOWN {
            return pending.to_vec();
        }
        let mut path = Vec::new();
        let mut at = parent;
        while at != NONE && path.len() <= self.nodes.len() {
            let row = self.row(at);
            if matches!(row.kind, RecordKind::Compacted(_))
                || matches!(&row.kind, RecordKind::Answer(answer) if self.is_billed(answer))
            {
                break;
            }
            path.push(at);
            at = self.nodes[at as usize].parent;
        }
        let on_path: BTreeSet<u32> = path.iter().copied().collect();
        let went_back = matches!(opens, Some((SegmentCause::Rewind, _)));
        let first = pending.first().copied().unwrap_or(NONE);
        let mut inputs: Vec<u32> = Vec::new();
        if went_back || matches!(opens, Some((SegmentCause::Start, _))) {
            let is_said = |node: u32| matches!(self.row(node).kind, RecordKind::Said);
            inputs.extend(path.iter().rev().filter(|&&node| node < first && is_said(node)));
        }
        if matches!(opens, Some((SegmentCause::Start, after)) if after != NONE) {
            // Of calls that were made at once only one result stands on the path.
            let has_result = |node: u32| self.blocks_of(node).iter().any(|block| block.kind == BlockKind::ToolResult);
            let is_sent = |node: u32| node < first && self.nodes[node as usize].tip == tip && has_result(node);
            inputs.extend(self.local[file as usize].iter().filter(|&&node| is_sent(node)));
            inputs.sort_unstable();
            inputs.dedup();
        }
        for &node in pending {
            let has = |kind| self.blocks_of(node).iter().any(|block| block.kind == kind);
            let result = has(BlockKind::ToolResult) && (!went_back || self.nodes[node as usize].tip == tip);
            if on_path.contains(&node) || result || has(BlockKind::Summary) {
                inputs.push(node);
            } else {
                self.skip("abandoned");
            }
        }
        inputs
    }
}
