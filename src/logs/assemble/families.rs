//! Which logs belong together: only within a family does one log repeat, answer or go on from what another says.

use std::collections::BTreeMap;

use crate::base::id::Id;
use crate::logs::corpus::SourceRows;
use crate::logs::timeline::families::{Kinship, PARTS, half, part_of};
use crate::logs::trace::{FileRows, MarkKind, MarkRow};

/// The families, as places of their logs in this list, in order; those whose first logs come first come first.
pub fn families(logs: &[(usize, &SourceRows)]) -> Vec<Vec<usize>> {
    let mut kin = Kinship::of(logs.len());
    // Those of all ids would be as much as half of the rows.
    for part in 0..PARTS {
        for (log, (_, file)) in (0..).zip(logs) {
            let halves = ids(&file.rows).chain([&file.source.key]).map(half);
            halves.filter(|half| part_of(*half) == part).for_each(|half| kin.meet(log, half));
        }
        kin.forget();
    }
    let mut families: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for log in 0..logs.len() {
        families.entry(kin.first(log as u32)).or_default().push(log);
    }
    families.into_values().collect()
}

/// By what a log may be known to others: sessions, calls, messages, and what happened besides, also under another id in a fork.
/// Nobody can tell things without an id from each other: logs that have some belong together.
fn ids(rows: &FileRows) -> impl Iterator<Item = &Id> {
    let sessions = rows.sessions.iter().map(|row| &row.session);
    let named = sessions.chain(rows.chains.iter().map(|key| &key.session));
    let named = named.chain(rows.calls.iter().map(|row| &row.call));
    let named = named.chain(rows.messages.iter().map(|row| &row.id));
    named.chain(rows.marks.iter().filter(|mark| mark.kind != MarkKind::Said).flat_map(known_by))
}

/// A summary may stand for a boundary that another log has.
fn known_by(mark: &MarkRow) -> impl Iterator<Item = &Id> {
    let boundary = (mark.kind == MarkKind::Summary).then_some(&mark.other);
    std::iter::once(&mark.id).chain(boundary)
}
