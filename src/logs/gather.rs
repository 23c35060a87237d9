//! The values of every call of a history, from whichever file has the copy that counts.

use crate::base::id::{Id, IdMap};
use crate::base::names::Names;
use crate::logs::corpus::Corpus;
use crate::logs::history::History;
use crate::logs::trace::{CallRow, Status};
use crate::logs::values::{CallValues, Copied, Values};

/// Rank of a copy, smaller is better: a record of its own before a progress record; then whatever does not depend on the
/// order of files.
type Rank = (bool, Id, u32);

/// Finds the values of each call. `values` has those of each file of the corpus, `names` what their symbols mean. Calls
/// without an id have none: nobody can tell which answer is theirs.
pub fn gather(corpus: &Corpus, history: &History, names: Names, values: Vec<Values>) -> CallValues {
    let index: IdMap<Id, usize> = history.calls.iter().enumerate().map(|(index, call)| (call.id, index)).collect();
    let mut answers: Vec<Option<(Rank, Copied)>> = vec![None; history.calls.len()];
    let mut inputs = answers.clone();
    for (file, rows) in corpus.files.iter().enumerate().filter(|(_, file)| !file.source.is_sidecar()) {
        let key = rows.source.key;
        for row in rows.rows.calls.iter().filter(|row| row.call.is_some()) {
            let Some(&call) = index.get(&row.call) else { continue };
            let CallRow { asked, answered, progress, .. } = *row;
            if let Some(asked) = asked {
                better(&mut inputs[call], (progress, key, asked.block), (file, asked.block));
            }
            // Another answer to the call may have been given up for the one that counts.
            let body = history.calls[call].body;
            if let Some(answered) = answered.filter(|half| half.body == body && half.status == Status::Ok) {
                better(&mut answers[call], (progress, key, answered.block), (file, answered.block));
            }
        }
    }
    let places = |best: Vec<Option<(Rank, Copied)>>| -> Vec<Option<Copied>> {
        best.into_iter().map(|best| best.map(|(_, copy)| copy)).collect()
    };
    CallValues::new(names, values, &places(answers), &places(inputs))
}

fn better(best: &mut Option<(Rank, Copied)>, rank: Rank, copy: Copied) {
    if best.is_none_or(|(known, _)| rank < known) {
        *best = Some((rank, copy));
    }
}
