//! What the marks of a file's records tell of its chains: where contexts and turns begin, whose side chain a record is of.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::base::id::{Id, IdMap, IdSet};
use crate::logs::corpus::SourceRows;
use crate::logs::trace::{MarkKind, MarkRow, Millis, SUMMARY_WITHIN_RECORDS, ToolUse};

/// Where something happened in a file.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) record: u32,
    /// Tells it from others, and its copies not.
    pub(super) id: Id,
    pub(super) ts: Millis,
}

/// Identity of the last mark of its chain before a call, which opened the partition or turn in which it stands; none if
/// there is none.
pub(super) fn last_before(marks: &BTreeMap<u32, Vec<Mark>>, asked: &ToolUse) -> Id {
    let Some(marks) = marks.get(&asked.chain) else { return Id::NONE };
    let before = marks.partition_point(|mark| mark.record < asked.record);
    before.checked_sub(1).map_or(Id::NONE, |last| marks[last].id)
}

/// The marks of a file, by the names that originals have: records behind a copy in a fork know it by its own. Where it stood may
/// have been read at another time. Borrowed of a file without such a copy.
pub(super) fn marks(file: &SourceRows) -> Cow<'_, [MarkRow]> {
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

pub(super) fn prompts(file: &SourceRows) -> BTreeMap<u32, Vec<Mark>> {
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
pub(super) fn side_chain_roots(marks: &[MarkRow]) -> BTreeMap<u32, Id> {
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
            known.extend(path.into_iter().map(|id| (id, root)));
            (mark.record, root)
        })
        .collect()
}

/// Compactions of a file, a boundary and its summary once.
pub(super) fn compactions(file: &SourceRows, marks: &[MarkRow]) -> BTreeMap<u32, Vec<Mark>> {
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
