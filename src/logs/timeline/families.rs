//! Which files belong together: only within a family does one file repeat, answer or go on from what another says.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::id::{Id, IdMap};
use crate::logs::timeline::assemble::SourceTimeline;
use crate::logs::timeline::rows::{RecordKind, TimelineRows};

/// Ids are looked at by parts, on each thread one after the other: all of them would be the most that is held of the files.
pub(in crate::logs) const PARTS: u64 = 16;

/// By what a file may be known to others: the first half of each id, once. Where two halves are equal by chance, a family is
/// larger than it need be.
#[derive(Default)]
pub struct Kin(Box<[u64]>);

impl Kin {
    /// Takes down sessions, agents, records, messages and calls.
    pub fn of(rows: &TimelineRows) -> Self {
        let TimelineRows { chains, sessions, agents, stated_costs, records, outside, blocks, .. } = rows;
        let named = chains.iter().map(|key| &key.agent).chain(sessions.iter().map(|row| &row.id));
        let named = named.chain(agents.iter().flat_map(|row| [&row.agent, &row.session]));
        let named = named.chain(stated_costs.iter().map(|row| &row.session)).chain(outside);
        let answers = records.iter().filter_map(|row| match &row.kind {
            RecordKind::Answer(answer) => Some(&answer.message),
            _ => None,
        });
        let named = named.chain(records.iter().map(|row| &row.id)).chain(answers);
        let named = named.chain(blocks.iter().map(|row| &row.call)).filter(|id| id.is_some());
        // Files that name no session may speak of the same agents.
        let mut halves: Vec<u64> = named.chain(chains.iter().map(|key| &key.session)).map(half).collect();
        halves.sort_unstable();
        halves.dedup();
        Self(halves.into())
    }

    fn part(&self, part: u64) -> &[u64] {
        let [from, to] = [part, part + 1].map(|part| self.0.partition_point(|half| part_of(*half) < part));
        &self.0[from..to]
    }
}

pub(in crate::logs) fn part_of(half: u64) -> u64 {
    half / (u64::MAX / PARTS + 1)
}

pub(in crate::logs) fn half(id: &Id) -> u64 {
    id.0.first_chunk().map_or(0, |half| u64::from_le_bytes(*half))
}

/// The families, each with its files in their order; those whose first files come first come first.
pub fn families(mut sources: Vec<SourceTimeline>) -> Vec<Vec<SourceTimeline>> {
    let told: Vec<(Kin, u64)> =
        sources.iter_mut().map(|source| (std::mem::take(&mut source.kin), half(&source.key))).collect();
    let mut kin = Kinship::by_parts(sources.len(), (0..PARTS).into_par_iter(), |kin, part| {
        for (file, (known, key)) in (0..).zip(&told) {
            let key = Some(*key).filter(|half| part_of(*half) == part);
            known.part(part).iter().copied().chain(key).for_each(|half| kin.meet(file, half));
        }
    });
    drop(told);
    let mut families: BTreeMap<u32, Vec<SourceTimeline>> = BTreeMap::new();
    for (file, source) in (0..).zip(sources) {
        families.entry(kin.first(file)).or_default().push(source);
    }
    families.into_values().collect()
}

/// Files that met at an id are of one family.
pub(in crate::logs) struct Kinship {
    /// By file: an earlier one of its family, or itself.
    parents: Vec<u32>,
    /// By half of an id of the part at hand: a file that has it.
    seen: IdMap<u64, u32>,
}

impl Kinship {
    fn of(files: usize) -> Self {
        Self { parents: (0..files as u32).collect(), seen: IdMap::default() }
    }

    /// The kinship of so many files by the ids of all parts, each of which says on its own which files meet.
    pub(in crate::logs) fn by_parts<P: Send>(
        files: usize,
        parts: impl ParallelIterator<Item = P>,
        meet: impl Fn(&mut Self, P) + Sync,
    ) -> Self {
        let of_part = |part: P| {
            let mut kin = Self::of(files);
            meet(&mut kin, part);
            kin.parents
        };
        let parts: Vec<Vec<u32>> = parts.map(of_part).collect();
        let mut kin = Self::of(files);
        for parents in parts {
            (0..).zip(parents).for_each(|(file, parent)| kin.relate(file, parent));
        }
        kin
    }

    /// Says that a file has the id of this half.
    pub(in crate::logs) fn meet(&mut self, file: u32, half: u64) {
        let other = *self.seen.entry(half).or_insert(file);
        self.relate(file, other);
    }

    fn relate(&mut self, file: u32, other: u32) {
        if other != file {
            let [one, other] = [self.first(file), self.first(other)];
            self.parents[one.max(other) as usize] = one.min(other);
        }
    }

    /// The first file of a family.
    pub(in crate::logs) fn first(&mut self, mut file: u32) -> u32 {
        while self.parents[file as usize] != file {
            // Half of the way is saved to whoever comes next.
            let above = self.parents[self.parents[file as usize] as usize];
            self.parents[file as usize] = above;
            file = above;
        }
        file
    }
}
