//! What happened in each chain, laid out in order and each thing once.

use std::collections::BTreeMap;

use crate::base::id::{Id, IdMap};
use crate::logs::assemble::File;
use crate::logs::assemble::calls::Canonical;
use crate::logs::assemble::evictions::evictions;
use crate::logs::assemble::marks::{Mark, last_before};
use crate::logs::copies::FileStanding;
use crate::logs::history::{Call, CallDetails, Chain, Compaction, History};
use crate::logs::trace::{MarkKind, Millis, NO_TIME, Place, ResultKind, Status, ToolResult, ToolUse, earlier};

/// Puts the calls in order, chain by chain, and numbers steps and partitions.
pub(super) fn lay_out(files: &[File<'_>], calls: Vec<Canonical<'_>>, history: &mut History) {
    let key = |call: &Canonical<'_>| {
        let (file, chain) = (&files[call.file as usize], call.asked.chain);
        let place = file.place(chain);
        Some((file.chains[chain as usize]?, place != Place::Main, file.agent(chain, call.asked.record), place))
    };
    let mut chains: BTreeMap<_, Vec<&[Canonical<'_>]>> = BTreeMap::new();
    // Calls come file by file, so the chain of a call is nearly always that of the one before.
    for run in calls.chunk_by(|a, b| key(a) == key(b)) {
        chains.entry(key(&run[0])).or_default().push(run);
    }
    chains.remove(&None);
    let mut compactions: IdMap<Id, Opened> = IdMap::default();
    let mut laid_out = Vec::with_capacity(chains.values().flatten().map(|run| run.len()).sum());
    for (key, runs) in chains {
        let Some((session, _, agent, place)) = key else { continue };
        let mut calls = runs.concat();
        in_conversation_order(files, &mut calls);
        let start = laid_out.len();
        let chain = history.chains.len() as u32;
        let partitions = number(files, &calls, chain, &mut laid_out);
        find_compactions(files, &calls, &partitions, chain, &mut compactions);
        let calls = start..laid_out.len();
        history.chains.push(Chain { session, agent, place, calls, compactions: Vec::new() });
    }
    drop(calls);
    let (calls, details): (Vec<Call>, Vec<CallDetails>) = laid_out.into_iter().unzip();
    (history.calls, history.details) = (calls.into(), details.into());
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

/// Adds the calls of a chain to the others; their partitions, in the order of the log.
fn number(
    files: &[File<'_>],
    calls: &[Canonical<'_>],
    chain: u32,
    laid_out: &mut Vec<(Call, CallDetails)>,
) -> Vec<u32> {
    let start = laid_out.len();
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
        laid_out.push((Call { chain, step, partition, turn, ..unplaced(call) }, details(asked)));
    }
    let partitions = laid_out[start..].iter().map(|(call, _)| call.partition).collect();
    // The lines of one message need not be contiguous: its calls come together at the place of the first.
    laid_out[start..].sort_by_key(|(call, _)| call.step);
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
        id: *call.id,
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
        endpoint: asked.endpoint,
        says_nothing: false,
    }
}

fn details(asked: &ToolUse) -> CallDetails {
    let ToolUse { input_bytes, path, handle, showing, lines, .. } = *asked;
    CallDetails { input_bytes, path, handle, showing, lines }
}
