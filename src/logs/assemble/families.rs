//! Which logs belong together: only within a family does one log repeat, answer or go on from what another says.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::id::Id;
use crate::logs::corpus::SourceRows;
use crate::logs::timeline::families::{Kinship, PARTS, half, part_of};
use crate::logs::trace::{FileRows, MarkKind, MarkRow};

/// The families, as places of their logs in this list, in order; those whose first logs come first come first.
pub fn families(logs: &[(usize, &SourceRows)]) -> Vec<Vec<usize>> {
    let kin = Kinship::by_parts(logs.len(), (0..PARTS).into_par_iter(), |kin, part| {
        for (log, (_, file)) in (0..).zip(logs) {
            let halves = ids(&file.rows).chain([&file.source.key]).map(half);
            halves.filter(|half| part_of(*half) == part).for_each(|half| kin.meet(log, half));
        }
    });
    grouped(kin, logs.len())
}

fn grouped(mut kin: Kinship, logs: usize) -> Vec<Vec<usize>> {
    let mut families: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for log in 0..logs {
        families.entry(kin.first(log as u32)).or_default().push(log);
    }
    families.into_values().collect()
}

/// Finds the same families by ids that come in any order, without the rows in which they stand.
#[derive(Default)]
pub struct FamilySearch {
    /// Halves of ids with the logs that have them, part by part.
    parts: [Vec<(u32, u64)>; PARTS as usize],
}

impl FamilySearch {
    /// Says that a log has an id of those that tell families. Ids may be sealed if all are.
    pub fn add(&mut self, log: u32, id: &Id) {
        let half = half(id);
        self.parts[part_of(half) as usize].push((log, half));
    }

    /// The families of so many logs.
    pub fn finish(self, logs: usize) -> Vec<Vec<usize>> {
        let kin = Kinship::by_parts(logs, self.parts.into_par_iter(), |kin, part| {
            part.into_iter().for_each(|(log, half)| kin.meet(log, half));
        });
        grouped(kin, logs)
    }
}

/// By what a log may be known to others: sessions, calls, messages, and what happened besides, also under another id in a fork.
/// Nobody can tell things without an id from each other: logs that have some belong together.
fn ids(rows: &FileRows) -> impl Iterator<Item = &Id> {
    let sessions = rows.sessions.iter().map(|row| &row.session);
    let named = sessions.chain(rows.chains.iter().map(|key| &key.session));
    let named = named.chain(rows.calls.iter().map(|row| &row.call));
    let named = named.chain(rows.messages.iter().map(|row| &row.id));
    named.chain(rows.marks.iter().flat_map(ids_of_mark))
}

/// The same of a mark. A summary may stand for a boundary that another log has.
pub fn ids_of_mark(mark: &MarkRow) -> impl Iterator<Item = &Id> {
    let own = Some(&mark.id).filter(|_| mark.kind != MarkKind::Said);
    own.into_iter().chain(Some(&mark.other).filter(|_| mark.kind == MarkKind::Summary))
}
