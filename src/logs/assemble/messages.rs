//! Every API message once, with what its copies know of it.

use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::Names;
use crate::logs::assemble::File;
use crate::logs::history::Message;
use crate::logs::trace::{MessageRow, Place};

/// Each API message once, with the per-field maximum over all copies; and how many copies were merged.
pub(super) fn messages(files: &[File<'_>], superseded: &IdSet<Id>, names: &Names) -> (Vec<Message>, u64) {
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
    let mut messages = Vec::with_capacity(out.len());
    messages.extend(out.iter().filter_map(message));
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
