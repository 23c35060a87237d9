//! What was put together, laid out chain by chain: blocks, calls, segments, boundaries with their final numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::base::id::{Id, IdMap};
use crate::base::names::Sym;
use crate::logs::timeline::assemble::Assembly;
use crate::logs::timeline::drafts::ChainId;
use crate::logs::timeline::requests::{
    Addition, ArrivedResults, Block, BlockKind, Boundary, Chain, Clearing, Marks, NO_USAGE, NONE, Occurrence,
    Reference, ReferenceKind, Request, Segment, SegmentCause, Session, StatedCost, Timeline, ToolCall, Utterance,
};
use crate::logs::timeline::rows::{BlockRow, ClearedRow, CompactedRow, RecordKind};
use crate::logs::trace::{Millis, NO_TIME, earlier};

/// Lays everything out but the words, which stay where they are.
pub(super) fn lay_out(mut assembly: Assembly<'_>, shrink_tokens_min: u64) -> Timeline {
    let mut layout = Layout {
        assembly: &assembly,
        shrink_tokens_min,
        out: Timeline::default(),
        placed: vec![NONE; assembly.nodes.len()],
        backwards: 0,
        results: Vec::new(),
        numbers: Numbers::default(),
    };
    layout.all();
    let Layout { out, placed, backwards, results, numbers, .. } = layout;
    let never_sent = assembly.forget_drafts();
    let mut layout = Layout { assembly: &assembly, shrink_tokens_min, out, placed, backwards, results, numbers };
    let (references, utterances) = rayon::join(|| layout.references(), || layout.utterances());
    (layout.out.references, layout.out.sources) = references;
    layout.out.utterances = utterances;
    let orphans = layout.answer_calls();
    let out = layout.out;
    let Assembly { mut skipped, unbilled, .. } = assembly;
    let mut unbilled: Vec<Millis> = unbilled.into_values().collect();
    unbilled.sort_unstable();
    skipped.insert(NO_USAGE.to_owned(), unbilled.len() as u64);
    skipped.insert("never_sent".to_owned(), never_sent);
    skipped.insert("orphan_result".to_owned(), orphans);
    skipped.insert("clock_backwards".to_owned(), backwards);
    skipped.retain(|_, count| *count > 0);
    Timeline { skipped, unbilled, ..out }
}

struct ResultBlock {
    block: u32,
    /// The block of the same result where it stood first.
    first: u32,
    /// The `tool_use` id.
    call: Id,
    /// The number of its text; [`NONE`] if it has no name.
    text: u32,
    is_error: bool,
}

struct Layout<'a> {
    assembly: &'a Assembly<'a>,
    shrink_tokens_min: u64,
    out: Timeline,
    /// First block of each node, or [`NONE`].
    placed: Vec<u32>,
    /// Requests that began before the one before them.
    backwards: u64,
    results: Vec<ResultBlock>,
    /// What is only compared within a family of files.
    numbers: Numbers,
}

/// Numbers for ids, in the order in which they are asked for: a quarter of their room.
#[derive(Default)]
struct Numbers(IdMap<Id, u32>);

impl Numbers {
    /// The number of an id; [`NONE`] for none.
    fn of(&mut self, id: Id) -> u32 {
        let next = self.0.len() as u32;
        if id.is_some() { *self.0.entry(id).or_insert(next) } else { NONE }
    }
}

/// What answers in one file took up, each with its block, and where it stood.
#[derive(Default)]
struct FileReferences {
    made: Vec<(u32, Reference)>,
    sources: Vec<Occurrence>,
}

impl Layout<'_> {
    fn all(&mut self) {
        self.out.sessions = self.sessions();
        self.out.stated_costs = self.stated_costs();
        let sessions = self.out.sessions.iter().enumerate();
        let sessions: IdMap<Id, u32> = sessions.map(|(index, session)| (session.id, index as u32)).collect();
        let used = self.used_chains();
        let mut order: Vec<(u32, ChainId, u32)> = used.map(|(id, track)| (sessions[&id.0], id, track)).collect();
        order.sort_unstable();
        // Where each request will stand.
        let mut place = vec![NONE; self.assembly.requests.len()];
        self.out.requests.reserve(place.len());
        self.out.blocks.reserve(self.assembly.files.iter().map(|file| file.rows.rows.blocks.len()).sum());
        let drafts = order.iter().flat_map(|&(_, _, track)| &self.assembly.tracks[track as usize].requests);
        for (index, &draft) in drafts.enumerate() {
            place[draft as usize] = index as u32;
        }
        for (session, (_, _, agent, recorded), track) in order {
            let chain = self.out.chains.len() as u32;
            let (requests, segments) = (self.out.requests.len() as u32, self.out.segments.len() as u32);
            self.requests(track, chain, &place);
            let requests = requests..self.out.requests.len() as u32;
            self.boundaries(track, chain, &requests);
            let segments = segments..self.out.segments.len() as u32;
            let kinds = &self.assembly.agent_types;
            let named = if agent.is_some() { agent } else { self.out.sessions[session as usize].id };
            let (agent_type, names_model) = kinds.get(&(agent.is_some(), named)).copied().unwrap_or_default();
            let place = recorded;
            self.out.chains.push(Chain { session, agent, place, agent_type, names_model, requests, segments });
        }
    }

    /// Chains with at least one request.
    fn used_chains(&self) -> impl Iterator<Item = (ChainId, u32)> {
        let tracks = &self.assembly.tracks;
        let chains = self.assembly.chain_index.iter().map(|(&id, &track)| (id, track));
        chains.filter(|&(_, track)| !tracks[track as usize].requests.is_empty())
    }

    /// Sessions with at least one request, by the first record that is no copy: a fork comes after what it was forked
    /// off. The file in which a session begins names its project.
    fn sessions(&self) -> Vec<Session> {
        let mut projects: BTreeMap<Id, (Millis, Id)> = BTreeMap::new();
        let mut background: BTreeSet<Id> = BTreeSet::new();
        for file in self.assembly.files.iter().filter(|file| !file.is_repeated) {
            for span in file.rows.rows.sessions.iter().filter(|span| span.project.is_some()) {
                let named = (span.ts_first, span.project);
                let known = projects.entry(file.session(span.id)).or_insert(named);
                *known = named.min(*known);
            }
            let ran = file.rows.rows.sessions.iter().filter(|span| span.is_background);
            background.extend(ran.map(|span| file.session(span.id)));
        }
        let mut begins: BTreeMap<Id, Millis> = self.used_chains().map(|(id, _)| (id.0, NO_TIME)).collect();
        for (number, node) in self.assembly.nodes.iter().enumerate() {
            let (row, file) = (self.assembly.row(number as u32), &self.assembly.files[node.file as usize]);
            let session = file.session(file.rows.rows.chains[row.chain as usize].session);
            if let Some(begin) = begins.get_mut(&session) {
                *begin = earlier(*begin, row.ts);
            }
        }
        let project = |id| projects.get(&id).map_or(Id::NONE, |&(_, project)| project);
        let session = |(id, ts_first)| {
            let is_background = background.contains(&id);
            Session { id, project: project(id), ts_first, is_background }
        };
        let mut sessions: Vec<Session> = begins.into_iter().map(session).collect();
        sessions.sort_by_key(|session| (session.ts_first, session.id));
        sessions
    }

    /// The running totals grow: the largest of a session and a model is the latest.
    fn stated_costs(&self) -> Vec<StatedCost> {
        let mut latest: BTreeMap<(Id, Sym), StatedCost> = BTreeMap::new();
        for file in self.assembly.files {
            for row in &file.rows.rows.stated_costs {
                let (session, model) = (file.session(row.session), file.symbols[row.model.0 as usize]);
                let row = StatedCost { session, model, ..*row };
                let known = latest.entry((session, model)).or_insert(row);
                known.usage.merge(&row.usage);
                known.nanodollars = known.nanodollars.max(row.nanodollars);
            }
        }
        latest.into_values().collect()
    }

    fn requests(&mut self, track: u32, chain: u32, place: &[u32]) {
        let mut turn = 0;
        for (count, &index) in self.assembly.tracks[track as usize].requests.iter().enumerate() {
            let assembly = self.assembly;
            let draft = &assembly.requests[index as usize];
            let number = self.out.requests.len() as u32;
            turn += u32::from(count > 0 && draft.request.marks.has(Marks::HUMAN));
            let mut request = Request { chain, turn, ..draft.request.clone() };
            let before = self.out.requests.last().filter(|_| count > 0);
            let before_end = before.map(|before| before.end);
            // Copies may have told of another model than the first.
            request.marks.set_if(Marks::MODEL_CHANGE, before.is_some_and(|before| before.model != request.model));
            self.backwards += u64::from(before.is_some_and(|before| before.start > request.start));
            let shrinks = before.map_or(0, Request::context) > request.context() + self.shrink_tokens_min;
            // Where odd clocks put a fork before what it was forked off, nothing is known to be there.
            let standing =
                |after: u32| place.get(after as usize).copied().filter(|&after| after < number).unwrap_or(NONE);
            let opens = draft.opens.map(|(cause, after)| (cause, standing(after)));
            if let Some((cause, after)) = opens.or(shrinks.then(|| (SegmentCause::Shrink, number - 1))) {
                self.out.segments.push(Segment { chain, requests: number..number, cause, after });
            }
            request.segment = (self.out.segments.len() - 1) as u32;
            self.out.segments[request.segment as usize].requests.end = number + 1;
            request.inputs = self.blocks(assembly.inputs_of(draft).iter().copied());
            request.outputs = self.blocks(assembly.outputs_of(draft));
            self.out.requests.push(request);
            self.added(assembly.added_to(draft), (before_end.map(|end| (number - 1, end)), number), true);
        }
        if let Some(last) = self.out.requests.len().checked_sub(1) {
            self.added(&self.assembly.tracks[track as usize].added, (None, last as u32), false);
        }
    }

    /// What came in beside the conversation, between a request, which ended then, and another; behind the last request
    /// nothing of it is sent. What only took time belongs to the one that it is nearer to.
    fn added(&mut self, nodes: &[u32], (before, request): (Option<(u32, Millis)>, u32), is_sent: bool) {
        let start = self.out.requests[request as usize].start;
        for &node in nodes {
            let (rows, symbols) = self.assembly.added_with(node);
            let ts = self.assembly.row(node).ts;
            let is_nearer = |(_, end): &(u32, Millis)| {
                ![*end, ts, start].contains(&NO_TIME) && ts.saturating_sub(*end) < start.saturating_sub(ts)
            };
            let nearest = before.filter(is_nearer).map_or(request, |(before, _)| before);
            let addition = |row: &Addition| Addition {
                with: if row.chars == 0 { nearest } else { request },
                name: symbols[row.name.0 as usize],
                chars: if is_sent { row.chars } else { 0 },
                ..*row
            };
            self.out.added.extend(rows.iter().map(addition));
        }
    }

    fn blocks(&mut self, nodes: impl Iterator<Item = u32>) -> Range<u32> {
        let start = self.out.blocks.len() as u32;
        for node in nodes {
            let place = &mut self.placed[node as usize];
            if *place == NONE {
                *place = self.out.blocks.len() as u32;
            }
            let first = *place;
            let record = self.assembly.row(node).id;
            let file = &self.assembly.files[self.assembly.nodes[node as usize].file as usize];
            for (offset, row) in (0..).zip(self.assembly.blocks_of(node)) {
                let block = self.out.blocks.len() as u32;
                let mut call = NONE;
                if row.kind == BlockKind::ToolUsage {
                    call = self.out.calls.len() as u32;
                    self.out.calls.push(ToolCall {
                        id: row.call,
                        tool: file.symbols[row.tool.0 as usize],
                        path: self.numbers.of(row.named),
                        asked: block,
                        answered: NONE,
                        text: NONE,
                        is_error: false,
                        file: row.file,
                        file_kind: file.symbols[row.file_kind.0 as usize],
                    });
                } else if row.kind == BlockKind::ToolResult {
                    let BlockRow { call, named, is_error, .. } = *row;
                    let text = self.numbers.of(named);
                    self.results.push(ResultBlock { block, first: first + offset, call, text, is_error });
                }
                let BlockRow { kind, chars, bytes, tokens, is_string, media, .. } = *row;
                self.out.blocks.push(Block { kind, chars, bytes, tokens, call, is_string, media, record });
            }
        }
        start..self.out.blocks.len() as u32
    }

    /// Gives results to their calls, once all calls are there: a fork may answer calls of another chain. Tells how many
    /// results have no call.
    fn answer_calls(&mut self) -> u64 {
        let mut calls: IdMap<Id, u32> = IdMap::default();
        // Other makers' models number their calls anew in each answer.
        let mut again: IdMap<Id, Vec<u32>> = IdMap::default();
        for (index, call) in (0..).zip(&self.out.calls).filter(|(_, call)| call.id.is_some()) {
            let first = *calls.entry(call.id).or_insert(index);
            let last = again.get(&call.id).and_then(|known| known.last()).copied().unwrap_or(first);
            let asked = |call: u32| self.out.request_of_block(self.out.calls[call as usize].asked);
            if last != index && asked(last) != asked(index) {
                again.entry(call.id).or_insert_with(|| vec![first]).push(index);
            }
        }
        let mut orphans = 0;
        for &ResultBlock { block, first, call, text, is_error } in &self.results {
            // What a fork was sent again is of the same call there.
            let repeated = Some(self.out.blocks[first as usize].call).filter(|&call| call != NONE);
            let before = |known: &Vec<u32>| {
                let place = known.partition_point(|&call| self.out.calls[call as usize].asked < block);
                place.checked_sub(1).map(|place| known[place])
            };
            let of_id = || again.get(&call).and_then(before).or_else(|| calls.get(&call).copied());
            let Some(call) = repeated.or_else(of_id) else {
                orphans += 1;
                continue;
            };
            self.out.blocks[block as usize].call = call;
            let call = &mut self.out.calls[call as usize];
            // The same result stands twice where an abandoned request had been sent it before.
            if call.answered == NONE {
                (call.answered, call.text, call.is_error) = (block, text, is_error);
            }
        }
        calls.retain(|id, _| !again.contains_key(id));
        self.note_unsent_errors(&calls);
        orphans
    }

    /// A result behind the last request, or right before a compaction, was sent to nobody: how its call ended it tells all the
    /// same, where it can only be for one.
    fn note_unsent_errors(&mut self, calls: &IdMap<Id, u32>) {
        let unsent = (0..).zip(&self.placed).filter(|(_, placed)| **placed == NONE).map(|(node, _)| node);
        for row in unsent.flat_map(|node: u32| self.assembly.blocks_of(node)) {
            let is_failure = row.kind == BlockKind::ToolResult && row.is_error;
            if let Some(&call) = calls.get(&row.call).filter(|_| is_failure) {
                let call = &mut self.out.calls[call as usize];
                call.is_error |= call.answered == NONE;
            }
        }
    }

    /// The block of the timeline that a block of a file became, if its record is the copy that counts.
    fn own_block(&self, file: usize, block: u32) -> Option<u32> {
        let (record, offset) = self.record_of(file, block);
        let node = *self.assembly.local[file].get(record)?;
        let counts = self.assembly.nodes.get(node as usize)?.is_of(file as u32, record as u32);
        let first = self.placed[node as usize];
        (counts && first != NONE).then(|| first + offset)
    }

    /// The block of the timeline that a block of a file became or repeats.
    fn any_block(&self, file: usize, block: u32) -> Option<u32> {
        let (record, offset) = self.record_of(file, block);
        let node = *self.assembly.local[file].get(record)?;
        let first = *self.placed.get(node as usize)?;
        // A copy may hold more than what it repeats.
        let within = offset < self.assembly.row(node).blocks.len() as u32;
        (first != NONE && within).then(|| first + offset)
    }

    /// The record that holds a block of a file, and which of its blocks that is.
    fn record_of(&self, file: usize, block: u32) -> (usize, u32) {
        let records = &self.assembly.files[file].rows.rows.records;
        let record = records.partition_point(|record| record.blocks.end <= block);
        (record, block - records.get(record).map_or(block, |record| record.blocks.start))
    }

    /// Where words stand, of each record where it counts: those of all files, one behind the other.
    fn utterances(&self) -> Vec<Utterance> {
        let (mut made, mut start) = (Vec::new(), 0);
        for (index, file) in self.assembly.files.iter().enumerate() {
            let rows = &file.rows.rows;
            let place = |range: &Range<u32>| start + range.start..start + range.end;
            let own = |row: &Utterance| {
                let block = self.own_block(index, row.block)?;
                Some(Utterance { block, terms: place(&row.terms), words: place(&row.words) })
            };
            made.extend(rows.utterances.iter().filter_map(own));
            start += rows.words.rows().len() as u32;
        }
        made.sort_by_key(|utterance| utterance.block);
        made
    }

    /// What answers took up, each where its own record counts; places in copies are those of what they repeat.
    fn references(&self) -> (Vec<Reference>, Vec<Occurrence>) {
        let files = 0..self.assembly.files.len();
        let parts: Vec<FileReferences> = files.into_par_iter().map(|file| self.references_of(file)).collect();
        let mut made: Vec<(u32, usize, &Reference)> =
            Vec::with_capacity(parts.iter().map(|part| part.made.len()).sum());
        for (file, part) in parts.iter().enumerate() {
            made.extend(part.made.iter().map(|(block, reference)| (*block, file, reference)));
        }
        // Those of one block stay in the order of its text.
        made.sort_by_key(|(block, ..)| *block);
        let mut references = Vec::with_capacity(made.len());
        let mut all = Vec::with_capacity(parts.iter().map(|part| part.sources.len()).sum());
        for (_, file, reference) in made {
            let Range { start, end } = reference.sources;
            let first = all.len() as u32;
            all.extend_from_slice(&parts[file].sources[start as usize..end as usize]);
            references.push(Reference { sources: first..all.len() as u32, ..reference.clone() });
        }
        (references, all)
    }

    /// Those of one file; their sources stand beside them.
    fn references_of(&self, file: usize) -> FileReferences {
        let rows = &self.assembly.files[file].rows.rows;
        let mut of_file = FileReferences::default();
        for row in &rows.references {
            let Some(block) = self.own_block(file, row.block) else { continue };
            let sources = &rows.sources[row.sources.start as usize..row.sources.end as usize];
            let place = |source: &Occurrence| {
                let block = self.any_block(file, source.block)?;
                let end_chars = source.end_chars.min(self.out.blocks[block as usize].chars);
                Some(Occurrence { block, end_chars })
            };
            let found = &mut of_file.sources;
            let start = found.len();
            found.extend(sources.iter().filter_map(place));
            found[start..].sort_by_key(|source| (source.block, source.end_chars));
            if found.len() == start && row.kind != ReferenceKind::EditSource {
                continue;
            }
            let request = self.out.request_of_block(block);
            let call = self.out.blocks[block as usize].call;
            let sources = start as u32..found.len() as u32;
            of_file.made.push((block, Reference { kind: row.kind, request, call, sources, cut: row.cut }));
        }
        of_file
    }

    /// The results in records, by call, with their code points; and where those of each record begin: the last entry is their
    /// number.
    fn arrived(&self, nodes: &[u32]) -> (Arc<[(Id, u32)]>, Vec<usize>) {
        let (mut results, mut places) = (Vec::new(), vec![0]);
        for &node in nodes {
            let own = self.assembly.blocks_of(node).iter().filter(|block| block.kind == BlockKind::ToolResult);
            results.extend(own.map(|block| (block.call, block.chars)));
            places.push(results.len());
        }
        (results.into(), places)
    }

    fn boundaries(&mut self, track: u32, chain: u32, requests: &Range<u32>) {
        let track = &self.assembly.tracks[track as usize];
        for &(node, count) in &track.compactions {
            let row = self.assembly.row(node);
            let RecordKind::Compacted(compacted) = &row.kind else { continue };
            let CompactedRow { trigger, pre_tokens } = **compacted;
            let request = requests.start + count;
            let inputs = self.out.requests.get(request as usize).map_or(0..0, |request| request.inputs.clone());
            let summary = inputs.into_iter().find(|&block| self.out.blocks[block as usize].kind == BlockKind::Summary);
            let summary = summary.unwrap_or(NONE);
            self.out.boundaries.push(Boundary { ts: row.ts, chain, request, trigger, pre_tokens, summary });
        }
        let (results, places) = self.arrived(&track.arrived);
        for (&(node, count), arrived) in track.clearings.iter().zip(&track.arrived_at) {
            let row = self.assembly.row(node);
            let RecordKind::Cleared(cleared) = &row.kind else { continue };
            let ClearedRow { pre_tokens, tokens_saved, ref calls } = **cleared;
            let file = &self.assembly.files[self.assembly.nodes[node as usize].file as usize];
            let calls = file.rows.rows.cleared[calls.start as usize..calls.end as usize].to_vec();
            let own = places[arrived.start]..places[arrived.end];
            self.out.clearings.push(Clearing {
                id: row.id,
                chain,
                request: requests.start + count,
                pre_tokens,
                tokens_saved,
                calls,
                arrived: ArrivedResults { all: Arc::clone(&results), own },
            });
        }
    }
}
