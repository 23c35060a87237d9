//! The results that went out of their contexts: cleared by micro-compactions, or left behind by a conversation that went back.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::base::id::{Id, IdMap};
use crate::logs::assemble::File;
use crate::logs::history::{CallIndex, Eviction, History};
use crate::logs::trace::{CallRow, MarkKind, MarkRow, Place};

/// The results that went out of their contexts, each once.
pub(super) fn evictions(files: &[File<'_>], history: &History) -> Vec<Eviction> {
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
            let Some(call) = known.or_else(|| index.only(mark.id, &history.calls)) else { continue };
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
