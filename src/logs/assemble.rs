//! Rows of many files to one [`History`]: every call, message and compaction once.
//!
//! Logs hold copies: a resumed or forked session repeats earlier lines under a new name, a subagent may stand in up to
//! three places, one API message is spread over several records. Which copy counts is decided by what the rows say
//! (place, time, ids), never by the order in which files were read.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::corpus::{Corpus, SourceRows};
use crate::model::history::{Call, Chain, Eviction, History, Merged, Message, Session};
use crate::model::id::{Id, IdMap, IdSet};
use crate::model::names::Names;
use crate::model::trace::{
    Answered, Asked, ChainKey, MarkKind, MessageRow, Millis, NO_TIME, Place, ResultKind, SessionRow, Status, earlier,
};

/// A summary this many records behind a boundary belongs to it.
const SUMMARY_WITHIN_RECORDS: u32 = 3;

/// Builds the history of all session logs of a corpus.
pub fn assemble(corpus: &Corpus) -> History {
    let files: Vec<File<'_>> = corpus.files.iter().filter(|file| !file.source.is_sidecar()).map(File::new).collect();
    let mut merged = Merged { sidecar_files: (corpus.files.len() - files.len()) as u64, ..Merged::default() };
    let sessions = sessions(&files, &corpus.names);
    let recorded = better_recorded(&files);
    let asked = canonical_calls(&files, &recorded, &mut merged);
    let answers = answers(&files, &asked, &recorded, &mut merged);
    let mut history = History { sessions, ..History::default() };
    lay_out(&files, asked, &answers, &mut history);
    history.messages = messages(&files, &recorded, &corpus.names, &history.sessions, &mut merged);
    history.merged = merged;
    history
}

/// One log with what is needed to place its rows.
struct File<'a> {
    rows: &'a SourceRows,
    /// Decides between copies: the file whose calls began first, then the one that ended first.
    age: (Millis, Millis, Id),
    /// Root record of each inline side-chain record, by record number.
    roots: BTreeMap<u32, Id>,
    /// Compactions by chain of the file: record number and identity, in order.
    compactions: BTreeMap<u32, Vec<(u32, Id)>>,
}

impl<'a> File<'a> {
    fn new(rows: &'a SourceRows) -> Self {
        let times = || rows.rows.calls.iter().filter_map(|row| row.asked).map(|asked| asked.ts);
        let age = (times().fold(NO_TIME, earlier), times().max().unwrap_or(NO_TIME), rows.source.key);
        Self { rows, age, roots: side_chain_roots(rows), compactions: compactions(rows) }
    }

    /// The chain that a row of the file belongs to.
    fn chain(&self, chain: u32, record: u32) -> ChainKey {
        let mut key = self.rows.rows.chains[chain as usize];
        if !key.session.is_some() {
            key.session = self.rows.source.key;
        }
        if key.place == Place::Inline {
            key.agent = self.roots.get(&record).copied().unwrap_or_default();
        }
        key
    }

    /// Identity of the compaction that opened the partition in which `record` stands; none in the first.
    fn partition(&self, chain: u32, record: u32) -> Id {
        let Some(marks) = self.compactions.get(&chain) else { return Id::NONE };
        let before = marks.partition_point(|&(at, _)| at < record);
        before.checked_sub(1).map_or(Id::NONE, |last| marks[last].1)
    }
}

/// Follows the parents of inline side-chain records up to the prompt that began the side chain.
fn side_chain_roots(file: &SourceRows) -> BTreeMap<u32, Id> {
    let links = || file.rows.marks.iter().filter(|mark| mark.kind == MarkKind::Link);
    let parents: IdMap<Id, Id> = links().map(|mark| (mark.id, mark.other)).collect();
    let mut known: IdMap<Id, Id> = IdMap::default();
    links()
        .map(|mark| {
            let mut path = vec![mark.id];
            let mut at = mark.id;
            let root = loop {
                if let Some(&root) = known.get(&at) {
                    break root;
                }
                match parents.get(&at) {
                    // A record that is its own ancestor is damage; its chain begins where we came in.
                    Some(parent) if parents.contains_key(parent) && path.len() <= parents.len() => at = *parent,
                    _ => break at,
                }
                path.push(at);
            };
            for id in path {
                known.insert(id, root);
            }
            (mark.record, root)
        })
        .collect()
}

/// Compactions of a file, a boundary and its summary once.
fn compactions(file: &SourceRows) -> BTreeMap<u32, Vec<(u32, Id)>> {
    let mut out: BTreeMap<u32, Vec<(u32, Id)>> = BTreeMap::new();
    let boundaries: IdSet<Id> =
        file.rows.marks.iter().filter(|mark| mark.kind == MarkKind::Boundary).map(|mark| mark.id).collect();
    for mark in &file.rows.marks {
        let known = out.entry(mark.chain).or_default();
        let follows = known.last().is_some_and(|&(record, _)| mark.record - record <= SUMMARY_WITHIN_RECORDS);
        let opens = match mark.kind {
            MarkKind::Boundary => true,
            MarkKind::Summary => !follows && !boundaries.contains(&mark.other),
            MarkKind::Evicted | MarkKind::Link => false,
        };
        if opens {
            known.push((mark.record, mark.id));
        }
    }
    out
}

/// Each session once. The file in which it begins names its project.
fn sessions(files: &[File<'_>], names: &Names) -> Vec<Session> {
    let mut rows: BTreeMap<Id, SessionRow> = BTreeMap::new();
    let mut projects: BTreeMap<Id, (Millis, Id, Id)> = BTreeMap::new();
    for file in files {
        for row in &file.rows.rows.sessions {
            if row.project.is_some() {
                let named = (row.ts_first, row.project, row.project_name);
                projects.entry(row.session).and_modify(|first| *first = named.min(*first)).or_insert(named);
            }
            rows.entry(row.session).and_modify(|known| known.merge(row, names)).or_insert(*row);
        }
        if file.rows.rows.chains.iter().any(|key| !key.session.is_some()) {
            rows.entry(file.rows.source.key).or_insert(nameless_session(file));
        }
    }
    let session = |row: SessionRow| {
        let (_, project, project_name) = projects.get(&row.session).copied().unwrap_or_default();
        let SessionRow { session: id, version, ts_first, ts_last, .. } = row;
        Session { id, project, project_name, version, ts_first, ts_last }
    };
    rows.into_values().map(session).collect()
}

/// Stands for the records of a file that carry no `sessionId`.
fn nameless_session(file: &File<'_>) -> SessionRow {
    SessionRow {
        session: file.rows.source.key,
        project: Id::NONE,
        project_name: Id::NONE,
        project_record: u32::MAX,
        version: crate::model::names::Sym(0),
        ts_first: file.age.0,
        ts_last: file.age.1,
        records: 0,
    }
}

/// Subagents that have records of their own: what their parents' progress records repeat is set aside.
fn better_recorded(files: &[File<'_>]) -> BTreeSet<(Id, Id)> {
    let chains = files.iter().flat_map(|file| &file.rows.rows.chains);
    chains.filter(|key| key.place == Place::AgentFile).map(|key| (key.session, key.agent)).collect()
}

fn superseded(key: &ChainKey, recorded: &BTreeSet<(Id, Id)>) -> bool {
    key.place == Place::Progress && recorded.contains(&(key.session, key.agent))
}

/// A call with the file whose copy of it counts.
#[derive(Clone, Copy)]
struct Canonical {
    file: usize,
    id: Id,
    asked: Asked,
}

/// Each call once: the best place, then the oldest file, then the first line.
fn canonical_calls(files: &[File<'_>], recorded: &BTreeSet<(Id, Id)>, merged: &mut Merged) -> Vec<Canonical> {
    let mut best: IdMap<Id, usize> = IdMap::default();
    let mut calls: Vec<Canonical> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        for row in &file.rows.rows.calls {
            let Some(asked) = row.asked else { continue };
            if superseded(&file.rows.rows.chains[asked.chain as usize], recorded) {
                merged.superseded_progress += 1;
                continue;
            }
            let call = Canonical { file: index, id: row.call, asked };
            // Calls without an id cannot be copies of each other as far as anyone can tell.
            let known = if row.call.is_some() { best.get(&row.call).copied() } else { None };
            match known {
                None => {
                    best.insert(row.call, calls.len());
                    calls.push(call);
                }
                Some(known) => {
                    merged.duplicate_call += 1;
                    let rank = |call: &Canonical| {
                        let place = files[call.file].rows.rows.chains[call.asked.chain as usize].place;
                        (place, files[call.file].age, call.asked.block)
                    };
                    if rank(&call) < rank(&calls[known]) {
                        calls[known] = call;
                    }
                }
            }
        }
    }
    calls
}

/// The result of each call: from the file whose copy counts, else from the oldest file that has one; the last of
/// several in a file.
fn answers(
    files: &[File<'_>],
    calls: &[Canonical],
    recorded: &BTreeSet<(Id, Id)>,
    merged: &mut Merged,
) -> IdMap<Id, Answered> {
    let home: IdMap<Id, usize> = calls.iter().map(|call| (call.id, call.file)).collect();
    let mut best: IdMap<Id, (usize, Answered)> = IdMap::default();
    let mut orphans: IdSet<Id> = IdSet::default();
    for (index, file) in files.iter().enumerate() {
        for row in &file.rows.rows.calls {
            let Some(answered) = row.answered else { continue };
            let Some(&home) = home.get(&row.call) else {
                let agents_own =
                    row.asked.is_some_and(|a| superseded(&file.rows.rows.chains[a.chain as usize], recorded));
                if !row.progress && !agents_own {
                    orphans.insert(row.call);
                }
                continue;
            };
            let rank = |file: usize, answered: &Answered| {
                (row.progress, file != home, files[file].age, Reverse(answered.block))
            };
            let better = best.get(&row.call).is_none_or(|(file, known)| rank(index, &answered) < rank(*file, known));
            if better {
                best.insert(row.call, (index, answered));
            }
        }
    }
    merged.orphan_result += orphans.len() as u64;
    best.into_iter().map(|(id, (_, answered))| (id, answered)).collect()
}

/// Puts the calls in order, chain by chain, and numbers steps and partitions.
fn lay_out(files: &[File<'_>], calls: Vec<Canonical>, answers: &IdMap<Id, Answered>, history: &mut History) {
    let session_index: IdMap<Id, u32> =
        history.sessions.iter().enumerate().map(|(index, session)| (session.id, index as u32)).collect();
    let mut chains: BTreeMap<(u32, bool, Id, Place), Vec<Canonical>> = BTreeMap::new();
    for call in calls {
        let key = files[call.file].chain(call.asked.chain, call.asked.record);
        let Some(&session) = session_index.get(&key.session) else { continue };
        chains.entry((session, key.place != Place::Main, key.agent, key.place)).or_default().push(call);
    }
    for ((session, _, agent, place), mut calls) in chains {
        in_conversation_order(files, &mut calls);
        let start = history.calls.len();
        let chain = history.chains.len() as u32;
        number(files, &calls, chain, answers, history);
        let compactions = chain_compactions(files, &calls);
        history.chains.push(Chain { session, agent, place, calls: start..history.calls.len(), compactions });
    }
    history.evictions = evictions(files, history);
}

/// Lines of one file keep their order; the files of a chain follow each other by the time of their first call in it.
fn in_conversation_order(files: &[File<'_>], calls: &mut [Canonical]) {
    let mut begins: BTreeMap<usize, Millis> = BTreeMap::new();
    for call in calls.iter() {
        let begin = begins.entry(call.file).or_insert(NO_TIME);
        *begin = earlier(*begin, call.asked.ts);
    }
    calls.sort_by_key(|call| (begins[&call.file], files[call.file].age, call.asked.block));
}

fn number(files: &[File<'_>], calls: &[Canonical], chain: u32, answers: &IdMap<Id, Answered>, history: &mut History) {
    let start = history.calls.len();
    let mut steps: IdMap<Id, u32> = IdMap::default();
    let (mut next_step, mut partition, mut opened_by) = (0, 0, None);
    for call in calls {
        let asked = &call.asked;
        let known = if asked.message.is_some() { steps.get(&asked.message).copied() } else { None };
        let step = known.unwrap_or_else(|| {
            steps.insert(asked.message, next_step);
            next_step += 1;
            next_step - 1
        });
        let opener = files[call.file].partition(asked.chain, asked.record);
        if opened_by.is_some_and(|previous| previous != opener) {
            partition += 1;
        }
        opened_by = Some(opener);
        let answer = if call.id.is_some() { answers.get(&call.id) } else { None };
        history.calls.push(placed(call, chain, step, partition, answer));
    }
    // The lines of one message need not be contiguous: its calls come together at the place of the first.
    history.calls[start..].sort_by_key(|call| call.step);
}

fn placed(call: &Canonical, chain: u32, step: u32, partition: u32, answer: Option<&Answered>) -> Call {
    let asked = &call.asked;
    let elapsed = |answer: &Answered| {
        let known = asked.ts != NO_TIME && answer.ts != NO_TIME;
        known.then(|| answer.ts - asked.ts).and_then(|ms| u32::try_from(ms).ok())
    };
    Call {
        id: call.id,
        tool: asked.tool,
        chain,
        step,
        partition,
        ts: asked.ts,
        latency_ms: answer.and_then(elapsed),
        status: answer.map_or(Status::Unanswered, |answer| answer.status),
        kind: answer.map_or(ResultKind::Absent, |answer| answer.kind),
        chars: answer.map_or(0, |answer| answer.chars),
        bytes: answer.map_or(0, |answer| answer.bytes),
        body: answer.map_or(Id::NONE, |answer| answer.body),
        shape: answer.map_or(0, |answer| answer.shape),
        input_bytes: asked.input_bytes,
    }
}

/// Distinct compactions of a chain over all files that show it.
fn chain_compactions(files: &[File<'_>], calls: &[Canonical]) -> u32 {
    let shown: BTreeSet<(usize, u32)> = calls.iter().map(|call| (call.file, call.asked.chain)).collect();
    let marks = shown.iter().filter_map(|(file, chain)| files[*file].compactions.get(chain)).flatten();
    marks.map(|&(_, id)| id).collect::<BTreeSet<Id>>().len() as u32
}

fn evictions(files: &[File<'_>], history: &History) -> Vec<Eviction> {
    let marked = |file: &File<'_>| file.rows.rows.marks.iter().any(|mark| mark.kind == MarkKind::Evicted);
    if !files.iter().any(marked) {
        return Vec::new();
    }
    let index: IdMap<Id, usize> = history.calls.iter().enumerate().map(|(index, call)| (call.id, index)).collect();
    let mut out: BTreeSet<Eviction> = BTreeSet::new();
    for file in files {
        for mark in file.rows.rows.marks.iter().filter(|mark| mark.kind == MarkKind::Evicted) {
            let Some(&call) = index.get(&mark.id) else { continue };
            let chain = history.calls[call].chain;
            let earlier = file.rows.rows.calls.iter().filter(|row| {
                row.asked.is_some_and(|asked| asked.record < mark.record)
                    && index.get(&row.call).is_some_and(|&call| history.calls[call].chain == chain)
            });
            let before = earlier.filter_map(|row| index.get(&row.call)).max().map_or(call, |last| *last) + 1;
            out.insert(Eviction { chain, before, call });
        }
    }
    // Copies of a session repeat its boundaries: the earliest eviction of a call counts.
    let mut seen = BTreeSet::new();
    out.into_iter().filter(|eviction| seen.insert(eviction.call)).collect()
}

/// Each API message once, with the per-field maximum over all copies.
fn messages(
    files: &[File<'_>],
    recorded: &BTreeSet<(Id, Id)>,
    names: &Names,
    sessions: &[Session],
    merged: &mut Merged,
) -> Vec<Message> {
    let session_index: IdMap<Id, u32> =
        sessions.iter().enumerate().map(|(index, session)| (session.id, index as u32)).collect();
    let mut best: IdMap<Id, (usize, MessageRow)> = IdMap::default();
    for (index, file) in files.iter().enumerate() {
        for row in &file.rows.rows.messages {
            if superseded(&file.rows.rows.chains[row.chain as usize], recorded) {
                continue;
            }
            merged.duplicate_message += u64::from(row.copies) - 1;
            let Some((known_file, known)) = best.get_mut(&row.id) else {
                best.insert(row.id, (index, *row));
                continue;
            };
            merged.duplicate_message += 1;
            let rank = |file: usize, row: &MessageRow| {
                (files[file].rows.rows.chains[row.chain as usize].place, files[file].age)
            };
            let mut both = *row;
            both.merge(known);
            if names.text(known.model) > names.text(row.model) {
                both.model = known.model;
            }
            if rank(*known_file, known) <= rank(index, row) {
                both.chain = known.chain;
            } else {
                *known_file = index;
            }
            *known = both;
        }
    }
    let mut out: Vec<Message> = best
        .into_values()
        .filter_map(|(file, row)| {
            let key = files[file].chain(row.chain, 0);
            Some(Message {
                id: row.id,
                model: row.model,
                session: *session_index.get(&key.session)?,
                ts: row.ts,
                usage: row.usage,
                billed: row.has_usage,
                place: key.place,
                finished: row.finished,
            })
        })
        .collect();
    out.sort_by_key(|message| message.id);
    out
}
