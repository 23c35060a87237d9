//! Every tool call once, with the result that counts.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::base::id::{Id, IdMap, IdSet};
use crate::logs::assemble::File;
use crate::logs::copies::FileStanding;
use crate::logs::history::Merged;
use crate::logs::trace::{CallRow, Place, ToolResult, ToolUse};

/// A call with the file whose copy of it counts. It points at the rows: copies of them would be most of what is in memory.
#[derive(Clone, Copy)]
pub(super) struct Canonical<'a> {
    pub(super) file: u32,
    pub(super) id: &'a Id,
    pub(super) asked: &'a ToolUse,
    pub(super) answered: Option<&'a ToolResult>,
    /// The file that has the answer; that of the call as long as there is none.
    answered_in: u32,
    /// Whether that stands in a progress record.
    progress: bool,
}

impl Canonical<'_> {
    /// Smaller is better: a record of its own before a progress record, the file of the call before others, older files
    /// before younger ones, the last of several in a file.
    fn answer_rank<'f>(&self, files: &'f [File<'_>]) -> (bool, bool, &'f FileStanding, Reverse<u32>) {
        let age = &files[self.answered_in as usize].age;
        let block = self.answered.map_or(0, |answered| answered.block);
        (self.progress, self.answered_in != self.file, age, Reverse(block))
    }
}

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
pub(super) fn canonical_calls<'a>(
    files: &'a [File<'a>],
    superseded: &IdSet<Id>,
    merged: &mut Merged,
) -> Vec<Canonical<'a>> {
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
        // Which result without an id answers which call without one, nobody can tell.
        let answered = row.answered.as_ref().filter(|_| row.call.is_some());
        let progress = row.progress;
        let call = Canonical { file, id: &row.call, asked, answered, answered_in: file, progress };
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
            let Canonical { file, id, answered, progress, .. } = std::mem::replace(&mut self.calls[known], call);
            let call = Some(known);
            self.loose.extend(answered.map(|answered| Loose { file, id: *id, answered, progress, call }));
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
        let other = Canonical { answered: Some(answered), answered_in: file, progress, ..*call };
        if call.answered.is_none() || other.answer_rank(files) < call.answer_rank(files) {
            *call = other;
        }
    }
    merged.orphan_result += orphans.len() as u64;
}

/// Calls of one id: file, block, and where each stands.
type Askers = Vec<(u32, u32, usize)>;

/// The calls that answers without a call beside them may be for, by id.
fn askers(calls: &[Canonical<'_>], loose: &[Loose<'_>]) -> IdMap<Id, Askers> {
    let lonely = loose.iter().filter(|answer| answer.call.is_none() && answer.id.is_some());
    let mut asked: IdMap<Id, Askers> = lonely.map(|answer| (answer.id, Askers::new())).collect();
    if asked.is_empty() {
        return asked;
    }
    for (index, call) in calls.iter().enumerate() {
        if let Some(known) = asked.get_mut(call.id) {
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
