//! Rows of many files to one [`History`]: every call, message and compaction once.
//!
//! Logs hold copies: a resumed or forked session repeats earlier lines under a new name, a subagent may stand in up to
//! three places, one API message is spread over several records. Which copy counts is decided by what the rows say
//! (place, time, ids), never by the order in which files were read.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use rayon::prelude::*;

use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::Names;
use crate::logs::copies::{At, FileFacts, FileStanding, RecordedAgents, standings};
use crate::logs::corpus::{Corpus, SourceRows};
use crate::logs::history::{Call, CallIndex, Chain, Compaction, Eviction, History, Merged, Message, Session};
use crate::logs::trace::{
    CallRow, ChainKey, MarkKind, MarkRow, MessageRow, Millis, NO_TIME, Place, ResultKind, SUMMARY_WITHIN_RECORDS,
    SessionRow, Status, ToolResult, ToolUse, Usage, earlier,
};

/// Builds the history of all session logs of a corpus.
pub fn assemble(corpus: &Corpus) -> History {
    let mut files: Vec<File<'_>> = ranked(corpus).map(|(rows, standing)| File::new(rows, standing)).collect();
    let sessions = sessions(&files, &corpus.names);
    let session_index: IdMap<Id, u32> =
        sessions.iter().enumerate().map(|(index, session)| (session.id, index as u32)).collect();
    let recorded = RecordedAgents::of(files.iter().flat_map(|file| {
        let rows = &file.rows.rows;
        rows.messages.iter().map(|row| rows.chains[row.chain as usize])
    }));
    for file in &mut files {
        file.resolve(&session_index, &recorded);
    }
    let superseded = superseded(&files);
    let (mut laid_out, (messages, duplicate_message)) = rayon::join(
        || {
            let mut history = History::default();
            let calls = canonical_calls(&files, &superseded, &mut history.merged);
            lay_out(&files, calls, &mut history);
            history
        },
        || messages(&files, &superseded, &corpus.names),
    );
    laid_out.merged.duplicate_message = duplicate_message;
    laid_out.merged.sidecar_files = (corpus.files.len() - files.len()) as u64;
    History { sessions, messages, ..laid_out }
}

/// Which log owns what several of them say, by the pseudonym of the file.
pub fn standings_of(corpus: &Corpus) -> IdMap<Id, FileStanding> {
    ranked(corpus).map(|(file, standing)| (file.source.key, standing)).collect()
}

/// The session logs, each with its rank.
fn ranked(corpus: &Corpus) -> impl Iterator<Item = (&SourceRows, FileStanding)> {
    let logs: Vec<&SourceRows> = corpus.files.iter().filter(|file| !file.source.is_sidecar()).collect();
    let known = || standings(logs.par_iter().map(|file| facts(file, &corpus.names)).collect());
    let standings = corpus.standings.get_or_init(known);
    logs.into_iter().zip(standings.iter().copied())
}

/// What a file says: nothing that depends on its name, or on what else stands in it.
fn facts(file: &SourceRows, names: &Names) -> FileFacts {
    let rows = &file.rows;
    let mut facts = FileFacts::of_records(file.source.counters.records);
    for row in &rows.sessions {
        facts.session(row.session, Some((row.ts_first, row.ts_last)));
    }
    for key in &rows.chains {
        facts.session(key.session, None);
    }
    let reader = |chain: u32| {
        let ChainKey { agent, place, .. } = rows.chains[chain as usize];
        [&agent.0[..], &[place as u8]].concat()
    };
    for row in &rows.calls {
        let kind = [b'c', row.progress.into()];
        if let Some(asked) = &row.asked {
            let ToolUse { record, message, tool, chain, ts, input_bytes, path, .. } = *asked;
            let numbers = [ts.to_le_bytes(), i64::from(input_bytes).to_le_bytes()];
            let ids = [row.call.0, message.0, path.0];
            let tool = names.text(tool).as_bytes();
            facts.asked(ts);
            facts.add(At::Record(record), &[&kind, ids.as_flattened(), &reader(chain), numbers.as_flattened(), tool]);
        }
        if let Some(answered) = &row.answered {
            let ToolResult { record, ts, chars, body, kind: content, status, .. } = *answered;
            let (ids, numbers) = ([row.call.0, body.0], [ts.to_le_bytes(), i64::from(chars).to_le_bytes()]);
            let end = [content as u8, status as u8];
            facts.add(At::Record(record), &[&kind, ids.as_flattened(), numbers.as_flattened(), &end]);
        }
    }
    for (number, row) in (0..).zip(&rows.messages) {
        let Usage { input, output, cache_creation, cache_read, .. } = row.usage;
        let numbers = [input, output, cache_creation, cache_read].map(u64::to_le_bytes);
        let all = [&row.ts.to_le_bytes(), numbers.as_flattened(), names.text(row.model).as_bytes()].concat();
        facts.asked(row.ts);
        // Copies of a message differ in what they know of it.
        let words = [&row.id.0[..], &reader(row.chain), if row.id.is_some() { &[] } else { &all }].concat();
        facts.add(At::Message(number), &[b"m", &words]);
        for part in 1..row.copies {
            facts.add(At::Part(number), &[b"p", &part.to_le_bytes(), &words]);
        }
    }
    let marks = marks(file);
    if matches!(marks, Cow::Owned(_)) {
        facts.forked();
    }
    // What was said is a fact as a prompt; where it stands in the tree is not.
    for mark in marks.iter().filter(|mark| mark.kind.is_event()) {
        facts.add(At::Record(mark.record), &[&[mark.kind as u8], &mark.id.0, &mark.other.0, &reader(mark.chain)]);
    }
    facts
}

/// One log with what is needed to place its rows.
struct File<'a> {
    rows: &'a SourceRows,
    /// Decides between copies. If another file says all that this one does, it is asked for nothing but what may grow.
    age: FileStanding,
    /// See [`marks`].
    marks: Cow<'a, [MarkRow]>,
    /// Root record of each inline side-chain record, by record number.
    roots: BTreeMap<u32, Id>,
    /// Compactions by chain of the file, in order.
    compactions: BTreeMap<u32, Vec<Mark>>,
    /// Prompts of people by chain of the file, in order.
    prompts: BTreeMap<u32, Vec<Mark>>,
    /// By chain of the file: its session; none if it is set aside, and none of a copy whose records name no session.
    chains: Vec<Option<u32>>,
    /// By chain of the file: whether what it repeats is better recorded elsewhere.
    is_aside: Vec<bool>,
}

/// Where something happened in a file.
#[derive(Clone, Copy)]
struct Mark {
    record: u32,
    /// Tells it from others, and its copies not.
    id: Id,
    ts: Millis,
}

impl<'a> File<'a> {
    fn new(rows: &'a SourceRows, age: FileStanding) -> Self {
        let marks = marks(rows);
        let (roots, compactions, prompts) = (side_chain_roots(&marks), compactions(rows, &marks), prompts(rows));
        let (chains, is_aside) = Default::default();
        Self { rows, age, marks, roots, compactions, prompts, chains, is_aside }
    }

    /// Looks up the sessions of the file's chains.
    fn resolve(&mut self, sessions: &IdMap<Id, u32>, recorded: &RecordedAgents) {
        let keys = &self.rows.rows.chains;
        self.is_aside = keys.iter().map(|key| recorded.sets_aside(key)).collect();
        let session = |(key, is_aside): (&ChainKey, &bool)| {
            if *is_aside { None } else { sessions.get(&self.session(key)).copied() }
        };
        self.chains = keys.iter().zip(&self.is_aside).map(session).collect();
    }

    fn session(&self, key: &ChainKey) -> Id {
        if key.session.is_some() { key.session } else { self.rows.source.key }
    }

    fn place(&self, chain: u32) -> Place {
        self.rows.rows.chains[chain as usize].place
    }

    /// The subagent that a row of the file belongs to; none on the main thread.
    fn agent(&self, chain: u32, record: u32) -> Id {
        let key = &self.rows.rows.chains[chain as usize];
        match key.place {
            Place::Inline => self.roots.get(&record).copied().unwrap_or_default(),
            _ => key.agent,
        }
    }
}

/// Identity of the last mark of its chain before a call, which opened the partition or turn in which it stands; none if
/// there is none.
fn last_before(marks: &BTreeMap<u32, Vec<Mark>>, asked: &ToolUse) -> Id {
    let Some(marks) = marks.get(&asked.chain) else { return Id::NONE };
    let before = marks.partition_point(|mark| mark.record < asked.record);
    before.checked_sub(1).map_or(Id::NONE, |last| marks[last].id)
}

/// The marks of a file, by the names that originals have: records behind a copy in a fork know it by its own. Where it stood may
/// have been read at another time. Borrowed of a file without such a copy.
fn marks(file: &SourceRows) -> Cow<'_, [MarkRow]> {
    let marks = &file.rows.marks;
    let copied = marks.iter().filter(|mark| mark.kind == MarkKind::Copied);
    let originals: IdMap<Id, Id> = copied.map(|mark| (mark.other, mark.id)).collect();
    if originals.is_empty() {
        return Cow::Borrowed(marks);
    }
    let original = |id: Id| originals.get(&id).copied().unwrap_or(id);
    let named = marks.iter().filter(|mark| mark.kind != MarkKind::Copied);
    named.map(|mark| MarkRow { other: original(mark.other), ..*mark }).collect()
}

fn prompts(file: &SourceRows) -> BTreeMap<u32, Vec<Mark>> {
    let mut out: BTreeMap<u32, Vec<Mark>> = BTreeMap::new();
    for mark in file.rows.marks.iter().filter(|mark| mark.kind == MarkKind::Prompt) {
        out.entry(mark.chain).or_default().push(named(file, mark));
    }
    out
}

/// A mark by its uuid, else by its place. Without a uuid it can have no copies that anyone could tell.
fn named(file: &SourceRows, mark: &MarkRow) -> Mark {
    let MarkRow { record, id, ts, .. } = *mark;
    let place = || Id::of(&[&file.source.key.0[..], &record.to_le_bytes()].concat());
    Mark { record, id: if id.is_some() { id } else { place() }, ts }
}

/// Follows the parents of inline side-chain records up to the prompt that began the side chain.
fn side_chain_roots(marks: &[MarkRow]) -> BTreeMap<u32, Id> {
    let links = || marks.iter().filter(|mark| mark.kind == MarkKind::Link);
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
fn compactions(file: &SourceRows, marks: &[MarkRow]) -> BTreeMap<u32, Vec<Mark>> {
    let mut out: BTreeMap<u32, Vec<Mark>> = BTreeMap::new();
    let boundaries: IdSet<Id> =
        marks.iter().filter(|mark| mark.kind == MarkKind::Boundary).map(|mark| mark.id).collect();
    for mark in marks {
        let known = out.entry(mark.chain).or_default();
        let follows = known.last().is_some_and(|last| mark.record - last.record <= SUMMARY_WITHIN_RECORDS);
        let opens = match mark.kind {
            MarkKind::Boundary => true,
            MarkKind::Summary => !follows && !boundaries.contains(&mark.other),
            MarkKind::Evicted | MarkKind::Link | MarkKind::Prompt | MarkKind::Said | MarkKind::Copied => false,
        };
        if opens {
            // A summary whose boundary another file has is that compaction all the same.
            let is_cut = mark.kind == MarkKind::Summary && mark.other.is_some();
            let compaction = if is_cut { MarkRow { id: mark.other, ..*mark } } else { *mark };
            known.push(named(file, &compaction));
        }
    }
    out
}

/// Each session once. The file in which it begins names its project.
fn sessions(files: &[File<'_>], names: &Names) -> Vec<Session> {
    let mut rows: BTreeMap<Id, SessionRow> = BTreeMap::new();
    let mut projects: BTreeMap<Id, (bool, Millis, Id, Id)> = BTreeMap::new();
    for file in files {
        for row in &file.rows.rows.sessions {
            if row.project.is_some() {
                let named = (file.age.is_repeated, row.ts_first, row.project, row.project_name);
                projects.entry(row.session).and_modify(|first| *first = named.min(*first)).or_insert(named);
            }
            rows.entry(row.session).and_modify(|known| known.merge(row, names)).or_insert(*row);
        }
        let own: IdSet<Id> = file.rows.rows.sessions.iter().map(|row| row.session).collect();
        // A file that says nothing is no session either.
        let rows_of = &file.rows.rows;
        let has_mark = rows_of.marks.iter().any(|mark| mark.kind.is_event());
        let is_empty = rows_of.calls.is_empty() && rows_of.messages.is_empty() && !has_mark;
        let told = rows_of.chains.iter().filter(|_| !file.age.is_repeated && !is_empty).map(|key| file.session(key));
        // The records of the file that carry no `sessionId`.
        let (ts_first, ts_last) = (file.age.first, file.age.last);
        let nameless = SessionRow { project_record: u32::MAX, ts_first, ts_last, ..SessionRow::default() };
        for session in told.filter(|session| !own.contains(session)) {
            let row = SessionRow { session, ..nameless };
            rows.entry(session).and_modify(|known| known.merge(&row, names)).or_insert(row);
        }
    }
    let session = |row: SessionRow| {
        let (_, _, project, project_name) = projects.get(&row.session).copied().unwrap_or_default();
        let SessionRow { session: id, version, ts_first, ts_last, .. } = row;
        Session { id, project, project_name, version, ts_first, ts_last }
    };
    rows.into_values().map(session).collect()
}

/// Calls and messages in progress records that are set aside, also where a fork repeats them.
fn superseded(files: &[File<'_>]) -> IdSet<Id> {
    let mut out = IdSet::default();
    for file in files.iter().filter(|file| !file.age.is_repeated) {
        let is_aside = |chain: u32| file.is_aside[chain as usize];
        let asked = file.rows.rows.calls.iter().filter(|row| row.asked.is_some_and(|asked| is_aside(asked.chain)));
        out.extend(asked.map(|row| row.call));
        out.extend(file.rows.rows.messages.iter().filter(|row| is_aside(row.chain)).map(|row| row.id));
    }
    out.remove(&Id::NONE);
    out
}

/// A call with the file whose copy of it counts. It points at the rows: copies of them would be most of what is in memory.
#[derive(Clone, Copy)]
struct Canonical<'a> {
    file: u32,
    id: Id,
    asked: &'a ToolUse,
    answered: Option<&'a ToolResult>,
    /// Rank of the answer, smaller is better.
    answer_rank: AnswerRank<'a>,
}

/// A record of its own before a progress record, the file of the call before others, older files before younger ones,
/// the last of several in a file.
type AnswerRank<'a> = (bool, bool, &'a FileStanding, Reverse<u32>);

/// An answer that does not stand with the copy of the call that counts.
struct Loose<'a> {
    file: u32,
    id: Id,
    answered: &'a ToolResult,
    progress: bool,
    /// Where its call stands, if a copy of that is beside it.
    call: Option<usize>,
}

impl<'a> Loose<'a> {
    fn of(file: u32, row: &CallRow, answered: &'a ToolResult, call: Option<usize>) -> Self {
        Self { file, id: row.call, answered, progress: row.progress, call }
    }
}

/// Each call once: the best place, then the oldest file, then the first line; and the best answer to it.
fn canonical_calls<'a>(files: &'a [File<'a>], superseded: &IdSet<Id>, merged: &mut Merged) -> Vec<Canonical<'a>> {
    let rows = files.iter().map(|file| file.rows.rows.calls.len()).sum();
    let best = IdMap::with_capacity_and_hasher(rows, Default::default());
    let mut found = FoundCalls { files, best, calls: Vec::with_capacity(rows), loose: Vec::new() };
    for (index, file) in (0..).zip(files) {
        let mut nameless = NamelessCalls::default();
        for row in &file.rows.rows.calls {
            let Some(asked) = &row.asked else {
                found.loose.extend(
                    row.answered.as_ref().filter(|_| !file.age.is_repeated).map(|it| Loose::of(index, row, it, None)),
                );
                continue;
            };
            if file.is_aside[asked.chain as usize] || row.progress && superseded.contains(&row.call) {
                merged.superseded_progress += 1;
            } else if file.age.is_repeated || !found.take(index, row, asked, &mut nameless) {
                merged.duplicate_call += 1;
            }
        }
    }
    let FoundCalls { mut calls, loose, .. } = found;
    answer(files, &mut calls, loose, merged);
    calls
}

/// The calls of a file that have no id, by their message.
#[derive(Default)]
pub struct NamelessCalls(HashMap<Id, u32>);

impl NamelessCalls {
    /// A name for the next one: that of the same call in another file, and of no other one of its message. None where the message
    /// has no id either: then nobody can tell.
    pub fn name(&mut self, message: Id, input_bytes: u32) -> Id {
        if !message.is_some() {
            return Id::NONE;
        }
        let before = self.0.entry(message).or_default();
        *before += 1;
        Id::of(format!("{before} {input_bytes}").as_bytes())
    }
}

/// Calls that were found, each once, and the answers that stand elsewhere.
struct FoundCalls<'a> {
    files: &'a [File<'a>],
    /// Where a call stands in `calls`, by its id and the message that asked for it: other makers' models number their calls anew
    /// in each conversation, or in each answer.
    best: IdMap<(Id, Id), usize>,
    calls: Vec<Canonical<'a>>,
    loose: Vec<Loose<'a>>,
}

impl<'a> FoundCalls<'a> {
    /// Takes a call of a file; says whether it is the first copy of it. The better one of two is kept, and the answer of the other
    /// is loose.
    fn take(&mut self, file: u32, row: &'a CallRow, asked: &'a ToolUse, nameless: &mut NamelessCalls) -> bool {
        let answered = row.answered.as_ref();
        let block = answered.map_or(0, |answered| answered.block);
        let age = &self.files[file as usize].age;
        let call = Canonical {
            file,
            id: row.call,
            asked,
            answered: answered.filter(|_| row.call.is_some()),
            answer_rank: (row.progress, false, age, Reverse(block)),
        };
        let id = if row.call.is_some() { row.call } else { nameless.name(asked.message, asked.input_bytes) };
        let key = (id, asked.message);
        let Some(known) = self.best.get(&key).copied().filter(|_| id.is_some()) else {
            if id.is_some() {
                self.best.insert(key, self.calls.len());
            }
            self.calls.push(call);
            return true;
        };
        if self.rank(&call) < self.rank(&self.calls[known]) {
            let Canonical { file, id, answered, answer_rank, .. } = std::mem::replace(&mut self.calls[known], call);
            let (progress, call) = (answer_rank.0, Some(known));
            self.loose.extend(answered.map(|answered| Loose { file, id, answered, progress, call }));
        } else {
            self.loose.extend(answered.map(|answered| Loose::of(file, row, answered, Some(known))));
        }
        false
    }

    /// Smaller is better.
    fn rank(&self, call: &Canonical<'a>) -> (Place, &'a FileStanding, u32) {
        let file = &self.files[call.file as usize];
        (file.place(call.asked.chain), &file.age, call.asked.block)
    }
}

/// Gives loose answers to the calls that have no better one.
fn answer<'a>(files: &'a [File<'a>], calls: &mut [Canonical<'a>], loose: Vec<Loose<'a>>, merged: &mut Merged) {
    let mut orphans: IdSet<Id> = IdSet::default();
    let asked = askers(calls, &loose);
    for Loose { file, id, answered, progress, call } in loose {
        let call = call.or_else(|| nearest(asked.get(&id)?, file, answered.block));
        let Some(call) = call.map(|index| &mut calls[index]) else {
            if !progress {
                orphans.insert(id);
            }
            continue;
        };
        let rank = (progress, file != call.file, &files[file as usize].age, Reverse(answered.block));
        if call.answered.is_none() || rank < call.answer_rank {
            call.answered = Some(answered);
            call.answer_rank = rank;
        }
    }
    merged.orphan_result += orphans.len() as u64;
}

/// Calls of one id: file, block, and where each stands.
type Askers = Vec<(u32, u32, usize)>;

/// The calls that answers without a call beside them may be for, by id.
fn askers(calls: &[Canonical<'_>], loose: &[Loose<'_>]) -> IdMap<Id, Askers> {
    let mut asked: IdMap<Id, Askers> =
        loose.iter().filter(|answer| answer.call.is_none()).map(|answer| (answer.id, Askers::new())).collect();
    if asked.is_empty() {
        return asked;
    }
    for (index, call) in calls.iter().enumerate() {
        if let Some(known) = asked.get_mut(&call.id) {
            known.push((call.file, call.asked.block, index));
        }
    }
    asked.values_mut().for_each(|known| known.sort_unstable());
    asked
}

/// The call that an answer is for: the only one of its id, else the nearest before it in its file.
fn nearest(asked: &Askers, file: u32, block: u32) -> Option<usize> {
    if let [(.., only)] = asked[..] {
        return Some(only);
    }
    let before = asked.partition_point(|&(of, at, _)| (of, at) < (file, block)).checked_sub(1)?;
    Some(asked[before]).filter(|(of, ..)| *of == file).map(|(.., call)| call)
}

/// Puts the calls in order, chain by chain, and numbers steps and partitions.
fn lay_out(files: &[File<'_>], calls: Vec<Canonical<'_>>, history: &mut History) {
    let mut chains: BTreeMap<(u32, bool, Id, Place), Vec<Canonical<'_>>> = BTreeMap::new();
    // Calls come file by file, so the chain of a call is nearly always that of the one before.
    let mut run: Vec<Canonical<'_>> = Vec::new();
    let mut current = None;
    for call in calls {
        let file = &files[call.file as usize];
        let Some(session) = file.chains[call.asked.chain as usize] else { continue };
        let place = file.place(call.asked.chain);
        let key = (session, place != Place::Main, file.agent(call.asked.chain, call.asked.record), place);
        if current != Some(key) {
            if let Some(key) = current {
                chains.entry(key).or_default().append(&mut run);
            }
            current = Some(key);
        }
        run.push(call);
    }
    if let Some(key) = current {
        chains.entry(key).or_default().append(&mut run);
    }
    let mut compactions: IdMap<Id, Opened> = IdMap::default();
    history.calls.reserve_exact(chains.values().map(Vec::len).sum());
    for ((session, _, agent, place), mut calls) in chains {
        in_conversation_order(files, &mut calls);
        let start = history.calls.len();
        let chain = history.chains.len() as u32;
        let partitions = number(files, &calls, chain, history);
        find_compactions(files, &calls, &partitions, chain, &mut compactions);
        let calls = start..history.calls.len();
        history.chains.push(Chain { session, agent, place, calls, compactions: Vec::new() });
    }
    history.talk_compactions = talk_compactions(files, &compactions);
    for Opened { chain, compaction, .. } in compactions.into_values() {
        history.chains[chain as usize].compactions.push(compaction);
    }
    history.chains.iter_mut().for_each(|chain| chain.compactions.sort_unstable());
    history.evictions = evictions(files, history);
    history.prompts = distinct_prompts(files);
}

/// What people wrote on main threads, each once, by session and time.
fn distinct_prompts(files: &[File<'_>]) -> Vec<(u32, Millis)> {
    // What has no id is known by its session and time.
    type Prompt = (u32, Millis);
    let mut known: BTreeMap<(Id, Option<Prompt>), (FileStanding, Prompt)> = BTreeMap::new();
    for file in files {
        for mark in file.rows.rows.marks.iter().filter(|mark| mark.kind == MarkKind::Prompt) {
            if let Some(session) = file.chains[mark.chain as usize].filter(|_| file.place(mark.chain) == Place::Main) {
                // A copy under another session is the same prompt: the oldest log has it, as it has the calls.
                let here = (session, mark.ts);
                let first = known.entry((mark.id, (!mark.id.is_some()).then_some(here))).or_insert((file.age, here));
                *first = (file.age, here).min(*first);
            }
        }
    }
    let mut prompts: Vec<(u32, Millis)> = known.into_values().map(|(_, prompt)| prompt).collect();
    prompts.sort_unstable();
    prompts
}

/// Where a compaction counts.
struct Opened {
    age: FileStanding,
    chain: u32,
    compaction: Compaction,
}

/// Looks through the files that hold the calls of a chain for compactions. Each counts in the oldest of them: copies in
/// forks and resumed sessions do not count again, and a copy without any call that counts says nothing.
fn find_compactions(
    files: &[File<'_>],
    calls: &[Canonical<'_>],
    partitions: &[u32],
    chain: u32,
    found: &mut IdMap<Id, Opened>,
) {
    let mut places: BTreeMap<(u32, u32), Vec<(u32, u32)>> = BTreeMap::new();
    for (call, &partition) in calls.iter().zip(partitions) {
        places.entry((call.file, call.asked.chain)).or_default().push((call.asked.record, partition));
    }
    for ((file, file_chain), mut calls) in places {
        calls.sort_unstable();
        let age = files[file as usize].age;
        for &Mark { record, id, ts } in files[file as usize].compactions.get(&file_chain).into_iter().flatten() {
            let next = calls.get(calls.partition_point(|&(at, _)| at < record));
            let partition = next.or(calls.last()).map_or(0, |last| last.1 + u32::from(next.is_none()));
            let is_older = found.get(&id).is_none_or(|known| age < known.age);
            if is_older {
                found.insert(id, Opened { age, chain, compaction: Compaction { partition, ts } });
            }
        }
    }
}

/// Compactions where no call is that counts, each in the oldest file that has it: the session and the time. Of a thread that
/// goes on from calls that were copied, those behind the last of them; what stands between them are copies as well.
fn talk_compactions(files: &[File<'_>], found: &IdMap<Id, Opened>) -> Vec<(u32, Millis)> {
    let mut oldest: IdMap<Id, (FileStanding, u32, Millis)> = IdMap::default();
    for file in files.iter().filter(|file| !file.age.is_repeated && !file.compactions.is_empty()) {
        let mut last_call: BTreeMap<u32, u32> = BTreeMap::new();
        for asked in file.rows.rows.calls.iter().filter_map(|row| row.asked) {
            last_call.entry(asked.chain).and_modify(|last| *last = asked.record.max(*last)).or_insert(asked.record);
        }
        for (&chain, marks) in &file.compactions {
            let Some(session) = file.chains[chain as usize] else { continue };
            let is_behind = |mark: &&Mark| last_call.get(&chain).is_none_or(|last| mark.record > *last);
            for mark in marks.iter().filter(|mark| is_behind(mark) && !found.contains_key(&mark.id)) {
                let here = (file.age, session, mark.ts);
                let first = oldest.entry(mark.id).or_insert(here);
                if here.0 < first.0 {
                    *first = here;
                }
            }
        }
    }
    let mut talk: Vec<(u32, Millis)> = oldest.into_values().map(|(_, session, ts)| (session, ts)).collect();
    talk.sort_unstable();
    talk
}

/// Lines of one file keep their order; the files of a chain follow each other by the time of their first call in it.
fn in_conversation_order(files: &[File<'_>], calls: &mut [Canonical<'_>]) {
    if calls.iter().all(|call| call.file == calls[0].file) {
        return calls.sort_by_key(|call| call.asked.block);
    }
    let mut begins: BTreeMap<u32, Millis> = BTreeMap::new();
    for call in calls.iter() {
        let begin = begins.entry(call.file).or_insert(NO_TIME);
        *begin = earlier(*begin, call.asked.ts);
    }
    calls.sort_by_cached_key(|call| (begins[&call.file], files[call.file as usize].age, call.asked.block));
}

/// Adds the calls of a chain to the history; their partitions, in the order of the log.
fn number(files: &[File<'_>], calls: &[Canonical<'_>], chain: u32, history: &mut History) -> Vec<u32> {
    let start = history.calls.len();
    let mut steps: IdMap<Id, u32> = IdMap::default();
    let mut next_step = 0;
    let (mut partition, mut turn) = (SegmentNumber::default(), SegmentNumber::default());
    for call in calls {
        let asked = call.asked;
        let known = if asked.message.is_some() { steps.get(&asked.message).copied() } else { None };
        let step = known.unwrap_or_else(|| {
            steps.insert(asked.message, next_step);
            next_step += 1;
            next_step - 1
        });
        let file = &files[call.file as usize];
        let partition = partition.number(last_before(&file.compactions, asked));
        let turn = turn.number(last_before(&file.prompts, asked));
        history.calls.push(Call { chain, step, partition, turn, ..unplaced(call) });
    }
    let partitions = history.calls[start..].iter().map(|call| call.partition).collect();
    // The lines of one message need not be contiguous: its calls come together at the place of the first.
    history.calls[start..].sort_by_key(|call| call.step);
    partitions
}

/// Numbers stretches of a chain by what opened them.
#[derive(Default)]
struct SegmentNumber {
    opened_by: Option<Id>,
    number: u32,
}

impl SegmentNumber {
    /// The number of the stretch that `opener` opened; equals that of the call before while the opener is the same. A file
    /// in which nothing was opened yet goes on where the one before it ended.
    fn number(&mut self, opener: Id) -> u32 {
        let opener = if opener.is_some() { opener } else { self.opened_by.unwrap_or(opener) };
        self.number += u32::from(self.opened_by.is_some_and(|before| before != opener));
        self.opened_by = Some(opener);
        self.number
    }
}

/// A call whose place in its chain is not known yet.
fn unplaced(call: &Canonical<'_>) -> Call {
    let (asked, answer) = (call.asked, call.answered);
    let elapsed = |answer: &ToolResult| {
        let known = asked.ts != NO_TIME && answer.ts != NO_TIME;
        known.then(|| answer.ts - asked.ts).and_then(|ms| u32::try_from(ms).ok())
    };
    Call {
        id: call.id,
        message: asked.message,
        tool: asked.tool,
        chain: 0,
        step: 0,
        partition: 0,
        turn: 0,
        ts: asked.ts,
        latency_ms: answer.and_then(elapsed),
        status: answer.map_or(Status::Unanswered, |answer| answer.status),
        kind: answer.map_or(ResultKind::Absent, |answer| answer.kind),
        chars: answer.map_or(0, |answer| answer.chars),
        bytes: answer.map_or(0, |answer| answer.bytes),
        body: answer.map_or(Id::NONE, |answer| answer.body),
        shape: answer.map_or(0, |answer| answer.shape),
        input_bytes: asked.input_bytes,
        endpoint: asked.endpoint,
        path: asked.path,
        handle: asked.handle,
        showing: asked.showing,
        lines: asked.lines,
        says_nothing: false,
    }
}

/// The results that went out of their contexts, each once.
fn evictions(files: &[File<'_>], history: &History) -> Vec<Eviction> {
    let (marked, rewinds) = (cleared_marks(files), rewinds(files));
    if marked.is_empty() && rewinds.is_empty() {
        return Vec::new();
    }
    let index = CallIndex::of(&history.calls);
    let (mut cleared, mut left) = (cleared(&marked, history, &index), left(&rewinds, history, &index));
    for (call, before) in &mut cleared {
        *before = left.remove(call).map_or(*before, |left| left.min(*before));
    }
    let eviction = |is_left: bool| {
        move |(&call, &before): (&usize, &usize)| Eviction { chain: history.calls[call].chain, before, call, is_left }
    };
    let mut out: Vec<Eviction> = cleared.iter().map(eviction(false)).chain(left.iter().map(eviction(true))).collect();
    out.sort_unstable();
    out
}

/// The records that a conversation left behind in a chain of its file: from the first of them up to the one with which it goes
/// on from an earlier place, or from nothing.
type Rewind = (u32, Range<u32>);

/// Where conversations go back, or begin anew, file by file, in the order in which they do.
fn rewinds<'a>(files: &'a [File<'a>]) -> Vec<(&'a File<'a>, Vec<Rewind>)> {
    let of_file = |file: &File<'_>| {
        let mut rewinds = Vec::new();
        let mut said: IdMap<(u32, Id), u32> = IdMap::default();
        for mark in file.marks.iter().filter(|mark| mark.kind == MarkKind::Said) {
            let MarkRow { chain, record, id, other, .. } = *mark;
            // What it goes on from, if that was said itself; else what was said first behind the same record.
            let first = if other.is_some() { *said.entry((chain, other)).or_insert(record) } else { 0 };
            said.entry((chain, id)).or_insert(record);
            rewinds.extend((first < record).then_some((chain, first..record)));
        }
        rewinds
    };
    let whole = files.iter().filter(|file| !file.age.is_repeated);
    whole.map(|file| (file, of_file(file))).filter(|(_, rewinds)| !rewinds.is_empty()).collect()
}

/// The results that conversations left behind, each with the first call behind that. Where a fork goes back, what it was
/// forked off does not.
fn left(rewinds: &[(&File<'_>, Vec<Rewind>)], history: &History, index: &CallIndex) -> BTreeMap<usize, usize> {
    let mut left: BTreeMap<usize, usize> = BTreeMap::new();
    for (file, rewinds) in rewinds {
        let mut chains: BTreeMap<u32, RewoundChain> = BTreeMap::new();
        let found = |row: &CallRow| Some((row.asked?, index.find(row.call, row.asked?.message)?));
        let calls = file.rows.rows.calls.iter().filter_map(found);
        for (asked, call) in calls {
            let chain = &history.chains[history.calls[call].chain as usize];
            if chain.place == Place::Main && file.chains[asked.chain as usize] == Some(chain.session) {
                chains.entry(asked.chain).or_default().calls.push((asked.record, call));
            }
        }
        chains.values_mut().for_each(RewoundChain::ready);
        for (chain, records) in rewinds {
            if let Some(chain) = chains.get_mut(chain) {
                chain.go_back(records, history, &mut left);
            }
        }
    }
    left
}

/// The calls of a chain that goes back.
#[derive(Default)]
struct RewoundChain {
    /// Record and call, in the order of records.
    calls: Vec<(u32, usize)>,
    /// By place in `calls`: the first call there or behind.
    first_from: Vec<usize>,
    /// Places of calls that nothing left behind yet: the first time decides, so that each is looked at once.
    here: BTreeSet<usize>,
}

impl RewoundChain {
    fn ready(&mut self) {
        self.calls.sort_unstable();
        let behind = self.calls.iter().rev().scan(usize::MAX, |first, (_, call)| {
            *first = (*first).min(*call);
            Some(*first)
        });
        self.first_from = behind.collect();
        self.first_from.reverse();
        self.here = (0..self.calls.len()).collect();
    }

    fn go_back(&mut self, records: &Range<u32>, history: &History, left: &mut BTreeMap<usize, usize>) {
        let place = |end: u32| self.calls.partition_point(|(record, _)| *record < end);
        let (start, end) = (place(records.start), place(records.end));
        let Some(&next) = self.first_from.get(end) else { return };
        let gone: Vec<usize> = self.here.range(start..end).copied().collect();
        for place in gone {
            self.here.remove(&place);
            let (_, call) = self.calls[place];
            if call < next && history.calls[call].partition == history.calls[next].partition {
                left.entry(call).and_modify(|before| *before = next.min(*before)).or_insert(next);
            }
        }
    }
}

/// The marks of micro-compactions, file by file.
fn cleared_marks<'a>(files: &'a [File<'a>]) -> Vec<(&'a File<'a>, Vec<MarkRow>)> {
    let marks = |file: &File<'_>| {
        let marks = file.rows.rows.marks.iter().filter(|_| !file.age.is_repeated);
        marks.filter(|mark| mark.kind == MarkKind::Evicted).copied().collect::<Vec<MarkRow>>()
    };
    files.iter().map(|file| (file, marks(file))).filter(|(_, marks)| !marks.is_empty()).collect()
}

/// The results that micro-compactions cleared, each with the first call behind that. A boundary's copies may lack calls
/// before it: the copy that has most of them knows best where it stands. Of several boundaries that clear a call the first
/// one counts.
fn cleared(marked: &[(&File<'_>, Vec<MarkRow>)], history: &History, index: &CallIndex) -> BTreeMap<usize, usize> {
    let mut found: BTreeMap<(usize, Id), usize> = BTreeMap::new();
    for (file, marks) in marked {
        let place = |row: &CallRow| Some((row.asked?.record, index.find(row.call, row.asked?.message)?));
        let mut asked: Vec<(u32, usize)> = file.rows.rows.calls.iter().filter_map(place).collect();
        asked.sort_unstable();
        let mut asked = asked.into_iter().peekable();
        // By chain: the call behind the last one that was asked before the mark.
        let mut next: BTreeMap<u32, usize> = BTreeMap::new();
        let mut own: IdMap<Id, usize> = IdMap::default();
        for mark in marks {
            while let Some((_, call)) = asked.next_if(|&(record, _)| record < mark.record) {
                own.insert(history.calls[call].id, call);
                let next = next.entry(history.calls[call].chain).or_default();
                *next = (*next).max(call + 1);
            }
            let known = own.get(&mark.id).copied();
            let Some(call) = known.or_else(|| index.find(mark.id, Id::NONE)) else { continue };
            let before = next.get(&history.calls[call].chain).map_or(call + 1, |&next| next);
            let known = found.entry((call, mark.other)).or_insert(before);
            *known = (*known).max(before);
        }
    }
    let mut first: BTreeMap<usize, usize> = BTreeMap::new();
    for ((call, _), before) in found {
        let known = first.entry(call).or_insert(before);
        *known = (*known).min(before);
    }
    first
}

/// Each API message once, with the per-field maximum over all copies; and how many copies were merged.
fn messages(files: &[File<'_>], superseded: &IdSet<Id>, names: &Names) -> (Vec<Message>, u64) {
    let rows = files.iter().map(|file| file.rows.rows.messages.len()).sum();
    let mut best: IdMap<Id, usize> = IdMap::with_capacity_and_hasher(rows, Default::default());
    let mut out: Vec<(usize, KnownMessage<'_>)> = Vec::with_capacity(rows);
    let mut duplicates = 0;
    for (index, file) in files.iter().enumerate() {
        let rows = file.rows.rows.messages.iter().enumerate();
        for (number, row) in rows.filter(|(_, row)| !file.is_aside[row.chain as usize]) {
            if file.place(row.chain) == Place::Progress && superseded.contains(&row.id) {
                continue;
            }
            duplicates += u64::from(row.copies) - 1;
            if !row.id.is_some() {
                // Without any id it can have no copies but in a file that holds nothing else.
                duplicates += u64::from(file.age.is_repeated);
                let id = Id::of(&[&file.rows.source.key.0[..], &(number as u64).to_le_bytes()].concat());
                out.extend((!file.age.is_repeated).then(|| (index, KnownMessage::of(MessageRow { id, ..*row }))));
                continue;
            }
            let Some(&known) = best.get(&row.id) else {
                best.insert(row.id, out.len());
                out.push((index, KnownMessage::Once(row)));
                continue;
            };
            duplicates += 1;
            merge_messages(files, names, &mut out[known], (index, row));
        }
    }
    let message = |(file, told): &(usize, KnownMessage<'_>)| {
        let (file, row) = (&files[*file], told.row());
        Some(Message {
            id: row.id,
            model: row.model,
            session: file.chains[row.chain as usize]?,
            ts: row.ts,
            usage: row.usage,
            billed: row.has_usage,
            agent: file.rows.rows.chains[row.chain as usize].agent,
            place: file.place(row.chain),
            finished: row.finished,
        })
    };
    drop(best);
    // In one piece: what several workers collect stands in memory twice.
    let mut messages = Vec::with_capacity(out.len());
    messages.extend(out.iter().filter_map(message));
    messages.par_sort_unstable_by_key(|message| message.id);
    (messages, duplicates)
}

/// What is known of a message: a row as it stands, or what its copies came to.
enum KnownMessage<'a> {
    Once(&'a MessageRow),
    Merged(Box<MessageRow>),
}

impl KnownMessage<'_> {
    fn of(row: MessageRow) -> Self {
        Self::Merged(Box::new(row))
    }

    fn row(&self) -> &MessageRow {
        match self {
            Self::Once(row) => row,
            Self::Merged(row) => row,
        }
    }
}

/// Adds the copy that another file has of a message. The best place and oldest file say whose it is.
fn merge_messages<'a>(
    files: &[File<'_>],
    names: &Names,
    known: &mut (usize, KnownMessage<'a>),
    copy: (usize, &'a MessageRow),
) {
    let rank = |file: usize, row: &MessageRow| (files[file].place(row.chain), files[file].age);
    let mut row = *known.1.row();
    let (rank_known, rank_copy) = (rank(known.0, &row), rank(copy.0, copy.1));
    // A progress record repeats a first chunk: it adds nothing to a record of its own.
    match (rank_known.0 == Place::Progress, rank_copy.0 == Place::Progress) {
        (false, true) => return,
        (true, false) => return *known = (copy.0, KnownMessage::Once(copy.1)),
        _ => {}
    }
    if rank_copy < rank_known {
        (known.0, row.chain) = (copy.0, copy.1.chain);
    }
    row.merge(copy.1, names);
    known.1 = KnownMessage::of(row);
}
