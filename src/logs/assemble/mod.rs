//! Rows of many files to one [`History`]: every call, message and compaction once.
//!
//! Logs hold copies: a resumed or forked session repeats earlier lines under a new name, a subagent may stand in up to
//! three places, one API message is spread over several records. Which copy counts is decided by what the rows say
//! (place, time, ids), never by the order in which files were read.

pub mod calls;
mod chains;
mod evictions;
pub mod families;
mod joined;
mod marks;
mod messages;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use crate::base::allocator;
use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::Names;
use crate::logs::assemble::calls::canonical_calls;
use crate::logs::assemble::chains::lay_out;
use crate::logs::assemble::families::families;
use crate::logs::assemble::joined::JoinedHistory;
use crate::logs::assemble::marks::{Mark, compactions, marks, prompts, side_chain_roots};
use crate::logs::assemble::messages::messages;
use crate::logs::copies::{At, FileFacts, FileStanding, RecordedAgents, standings};
use crate::logs::corpus::{Corpus, SourceRows};
use crate::logs::history::{History, Session};
use crate::logs::trace::{ChainKey, FileRows, MarkRow, Millis, Place, SessionRow, ToolResult, ToolUse, Usage};
use crate::logs::values::CallBlocks;

/// Rows of so many calls are dropped before their memory is given back: to look for what is free takes its time.
const CALLS_AT_ONCE: usize = 1 << 16;

/// Families of so many rows of calls and messages are put together side by side: until they are joined, their histories are in
/// memory twice.
#[cfg(not(test))]
const ROWS_TOGETHER: usize = 1 << 14;
#[cfg(test)]
const ROWS_TOGETHER: usize = 8;

/// What may be done with the rows of a log of which a history was made.
pub type LetGo<'a> = &'a (dyn Fn(&mut FileRows) + Sync);

/// Builds the history of all session logs of a corpus, family by family. Of the rows of a family that is done, `let_go` may drop
/// what nobody asks for any more: beside the history they would be the most that is in memory.
pub fn assemble(corpus: &mut Corpus, let_go: LetGo<'_>, kept: Kept) -> (History, Option<CallBlocks>) {
    let families = families_of(corpus, &logs(corpus)).clone();
    assemble_families(corpus, &families, let_go, kept)
}

/// The same of families that are known, as places among the logs.
pub fn assemble_families(
    corpus: &mut Corpus,
    families: &[Vec<usize>],
    let_go: LetGo<'_>,
    kept: Kept,
) -> (History, Option<CallBlocks>) {
    let rows = corpus.files.iter().map(|file| [file.rows.calls.len(), file.rows.messages.len()]);
    let rows = rows.fold([0; 2], |sum, file| [sum[0] + file[0], sum[1] + file[1]]);
    let mut assembly = Assembly::begin(corpus, (families.len(), rows), kept);
    assembly.rank(corpus, families);
    assembly.add(corpus, families, let_go);
    assembly.finish(corpus)
}

/// What is kept beside a history, or not of it.
#[derive(Clone, Copy, Default)]
pub struct Kept {
    /// Where the values of each call stand.
    pub blocks: bool,
    /// Of messages what they add up to, and none of them; no details of calls either.
    pub sums_messages: bool,
}

/// A history that is put together a few families at a time.
pub struct Assembly {
    joined: JoinedHistory,
    /// By log: its place in the corpus, and its standing once its family was added.
    logs: Vec<(usize, FileStanding)>,
    sums_messages: bool,
    /// Rows of calls that were dropped since memory was given back.
    gone: usize,
}

impl Assembly {
    /// With room for all that so many families have: rows of calls, and of messages.
    pub fn begin(corpus: &Corpus, (families, [calls, messages]): (usize, [usize; 2]), kept: Kept) -> Self {
        let (places, logs): (Vec<usize>, Vec<&SourceRows>) = logs(corpus).into_iter().unzip();
        let blocks = kept.blocks.then(|| CallBlocks::without_calls(&logs));
        let rows = if kept.sums_messages { [calls, 0, 0] } else { [calls, calls, messages] };
        let joined = JoinedHistory::of(families, rows, blocks);
        let logs = places.into_iter().map(|place| (place, FileStanding::default())).collect();
        Self { joined, logs, sums_messages: kept.sums_messages, gone: 0 }
    }

    /// Adds families that were ranked, of which the corpus has all rows.
    pub fn add(&mut self, corpus: &mut Corpus, families: &[Vec<usize>], let_go: LetGo<'_>) {
        let mut rest = families;
        while !rest.is_empty() {
            let mut rows = 0;
            let fit = |family: &&Vec<usize>| {
                let of_logs = family.iter().map(|&log| &corpus.files[self.logs[log].0].rows);
                rows += of_logs.map(|log| log.calls.len() + log.messages.len()).sum::<usize>();
                rows <= ROWS_TOGETHER
            };
            let some;
            (some, rest) = rest.split_at(rest.iter().take_while(fit).count().max(1));
            let parts: Vec<_> = some.par_iter().map(|family| self.put_together(corpus, family)).collect();
            for (family, (history, values)) in some.iter().zip(parts) {
                self.let_go(corpus, family, let_go);
                self.joined.add(history, values);
            }
        }
    }

    /// The history of a family, and where its values stand.
    fn put_together(&self, corpus: &Corpus, family: &[usize]) -> (History, Option<CallBlocks>) {
        let rows = |place: usize| &corpus.files[self.logs[place].0];
        let files = family.iter().map(|&place| File::new(rows(place), self.logs[place].1)).collect();
        let mut history = put_together(files, &corpus.names);
        let values = self.joined.values_of(family.iter().map(|&place| (place, rows(place))), &history);
        if self.sums_messages {
            history.sum_messages();
            history.details = Arc::default();
        }
        (history, values)
    }

    /// Lets go of rows of a family that is done.
    fn let_go(&mut self, corpus: &mut Corpus, family: &[usize], let_go: LetGo<'_>) {
        for &place in family {
            let rows = &mut corpus.files[self.logs[place].0].rows;
            let calls = rows.calls.len();
            let_go(rows);
            self.gone += calls - rows.calls.len();
        }
        if self.gone > CALLS_AT_ONCE {
            self.gone = 0;
            allocator::give_back_small_blocks();
        }
    }

    /// Looks up or finds out the standing of the logs of some families, of which the corpus has all rows.
    pub fn rank(&mut self, corpus: &Corpus, families: &[Vec<usize>]) {
        if let Some(known) = corpus.standings.get() {
            self.logs.iter_mut().zip(known).for_each(|(log, standing)| log.1 = *standing);
            return;
        }
        let of = |place: usize| &corpus.files[self.logs[place].0];
        for (place, standing) in standings_in(families, &of, &corpus.names) {
            self.logs[place].1 = standing;
        }
    }

    /// Whether input is counted by this one of the logs, which was ranked: see [`files_of_input`].
    pub fn is_input(&self, corpus: &Corpus, log: usize) -> bool {
        let (place, standing) = self.logs[log];
        !is_gone(&corpus.files[place], standing)
    }

    /// The history, with where the values of its calls stand.
    pub fn finish(self, corpus: &Corpus) -> (History, Option<CallBlocks>) {
        if self.gone > 0 {
            allocator::give_back_small_blocks();
        }
        let sidecar_files = (corpus.files.len() - self.logs.len()) as u64;
        corpus.standings.get_or_init(|| self.logs.iter().map(|(_, standing)| *standing).collect());
        let (mut history, blocks) = self.joined.finish();
        history.merged.sidecar_files = sidecar_files;
        (history, blocks)
    }
}

/// The history of a family.
fn put_together(mut files: Vec<File<'_>>, names: &Names) -> History {
    let sessions = sessions(&files, names);
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
    let mut history = History { sessions, ..History::default() };
    // One after the other: what either needs on its way is as much as half of the rows.
    let (messages, duplicate_message) = messages(&files, &superseded, names);
    let calls = canonical_calls(&files, &superseded, &mut history.merged);
    lay_out(&files, calls, &mut history);
    history.merged.duplicate_message = duplicate_message;
    History { messages, ..history }
}

/// Which log owns what several of them say, by the pseudonym of the file.
pub fn standings_of(corpus: &Corpus) -> IdMap<Id, FileStanding> {
    ranked(corpus).map(|(file, standing)| (file.source.key, standing)).collect()
}

/// The files that input is counted by: those on disk, and those that are gone unless another file says all that they said. A
/// log that was moved and has grown since is known by its old name as well, if there is a lake.
pub fn files_of_input(corpus: &Corpus) -> impl Iterator<Item = &SourceRows> {
    let gone = ranked(corpus).filter(|(file, standing)| is_gone(file, *standing)).map(|(file, _)| file.source.key);
    let gone: IdSet<Id> = gone.collect();
    corpus.files.iter().filter(move |file| !gone.contains(&file.source.key))
}

/// Whether a log is deleted, and another file says all that it said.
fn is_gone(file: &SourceRows, standing: FileStanding) -> bool {
    file.source.path.is_none() && standing.is_repeated
}

/// The session logs with their ranks.
fn ranked(corpus: &Corpus) -> impl Iterator<Item = (&SourceRows, FileStanding)> {
    let logs = logs(corpus);
    let standings = corpus.standings.get_or_init(|| {
        let mut all = vec![FileStanding::default(); logs.len()];
        let known = standings_in(families_of(corpus, &logs), &|place| logs[place].1, &corpus.names);
        known.into_iter().for_each(|(place, standing)| all[place] = standing);
        all
    });
    logs.into_iter().zip(standings).map(|((_, file), standing)| (file, *standing))
}

/// The session logs, each with its place in the corpus.
pub fn logs(corpus: &Corpus) -> Vec<(usize, &SourceRows)> {
    corpus.files.iter().enumerate().filter(|(_, file)| !file.source.is_sidecar()).collect()
}

fn families_of<'c>(corpus: &'c Corpus, logs: &[(usize, &SourceRows)]) -> &'c Vec<Vec<usize>> {
    corpus.families.get_or_init(|| families(logs))
}

/// The standing of each log of some families. What all logs say, as facts, would be as much as their rows.
fn standings_in<'c>(
    families: &[Vec<usize>],
    log: &(dyn Fn(usize) -> &'c SourceRows + Sync),
    names: &Names,
) -> Vec<(usize, FileStanding)> {
    let of_family = |family: &Vec<usize>| -> Vec<(usize, FileStanding)> {
        let facts = family.iter().map(|&place| facts(log(place), names)).collect();
        family.iter().copied().zip(standings(facts)).collect()
    };
    families.par_iter().flat_map_iter(of_family).collect()
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
    facts.is_fork = matches!(marks, Cow::Owned(_));
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
        let spoken = rows_of.chains.iter().filter(|_| !file.age.is_repeated && !is_empty).map(|key| file.session(key));
        // The records of the file that carry no `sessionId`.
        let (ts_first, ts_last) = (file.age.first, file.age.last);
        let nameless = SessionRow { project_record: u32::MAX, ts_first, ts_last, ..SessionRow::default() };
        for session in spoken.filter(|session| !own.contains(session)) {
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
