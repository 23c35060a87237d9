//! Which files say nothing that another file does not say as well: whole copies of a log, and parts of copies.
//!
//! They must not take part in deciding which copy counts. A part may lack the compaction between two calls, or look
//! older than the whole because it ends earlier.

use crate::model::id::{Id, IdMap, IdSet};

/// What a file says, as names of facts.
#[derive(Default)]
pub struct Facts {
    /// Each fact with the record it stands in, where that is known; a fact that is said twice is there twice.
    said: Vec<(Id, Option<u32>)>,
    /// The sessions that the file speaks of. A fork says the same in the name of another session.
    sessions: Vec<Id>,
    /// Whether the model was asked for anything in it.
    asks: bool,
}

impl Facts {
    /// Adds a fact in these words.
    pub fn add(&mut self, record: Option<u32>, words: &[&[u8]]) {
        self.said.push((Id::of(&words.concat()), record));
    }

    /// Says that the model was asked for something.
    pub fn asks(&mut self) {
        self.asks = true;
    }

    /// Adds a session.
    pub fn session(&mut self, session: Id) {
        self.sessions.push(session);
    }

    /// Brings the facts into order and tells the second saying of a fact from the first.
    fn settle(&mut self) {
        self.sessions.sort_unstable();
        self.sessions.dedup();
        self.said.sort_unstable_by_key(|&(id, record)| (record, id));
        let mut times: IdMap<Id, u32> = IdMap::default();
        for (id, _) in &mut self.said {
            let times = times.entry(*id).or_default();
            *times += 1;
            if *times > 1 {
                *id = Id::of(&[&id.0[..], &times.to_le_bytes()].concat());
            }
        }
    }

    /// Names all that the file says; equal for files that say the same in the same order, whatever they are called.
    fn digest(&self) -> Id {
        let said = self.said.iter().map(|(id, _)| id);
        Id::of(&said.chain(&self.sessions).flat_map(|id| id.0).collect::<Vec<u8>>())
    }
}

/// What is known of a file once all files were looked at.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Standing {
    /// Whether another file says all of it.
    pub is_repeated: bool,
    /// Names what it says.
    pub digest: Id,
}

/// Looks for the files that say nothing of their own. Of files that say the same the first one stays.
pub fn standings(mut files: Vec<Facts>) -> Vec<Standing> {
    files.iter_mut().for_each(Facts::settle);
    let mut out: Vec<Standing> =
        files.iter().map(|facts| Standing { is_repeated: false, digest: facts.digest() }).collect();
    // Whoever says all that a file says, says its last fact: most files have nobody to be compared with.
    let last = |facts: &Facts| facts.said.last().map(|&(id, _)| id);
    let probes: IdSet<Id> = files.iter().filter_map(last).collect();
    let mut witnesses: IdMap<Id, Vec<usize>> = IdMap::default();
    for (index, facts) in files.iter().enumerate() {
        for (id, _) in facts.said.iter().filter(|(id, _)| probes.contains(id)) {
            witnesses.entry(*id).or_default().push(index);
        }
    }
    // The largest first, since it says the most; whoever comes before a file itself says at least as much.
    witnesses.values_mut().for_each(|files_of| files_of.sort_by_key(|&file| std::cmp::Reverse(files[file].said.len())));
    let mut known: IdMap<usize, Places> = IdMap::default();
    for (index, facts) in files.iter().enumerate() {
        let Some(last) = last(facts) else { continue };
        let mut others = witnesses[&last].iter().take_while(|&&other| other != index);
        out[index].is_repeated = others.any(|&other| {
            let places = known.entry(other).or_insert_with(|| files[other].said.iter().copied().collect());
            says_all(facts, &files[other], places)
        });
    }
    out
}

/// The record of each fact.
type Places = IdMap<Id, Option<u32>>;

/// Whether a file says nothing that the other does not. What begins like another session and ends early may be what that
/// one was forked off, so between sessions only a part with something left out is a copy, or one that asks for nothing.
fn says_all(part: &Facts, whole: &Facts, places: &Places) -> bool {
    let mut furthest = None;
    for (id, _) in &part.said {
        let Some(&record) = places.get(id) else { return false };
        furthest = furthest.max(record);
    }
    let up_to = |facts: &Facts, record| facts.said.partition_point(|&(_, at)| at <= record);
    let placed = |facts: &Facts, record| up_to(facts, record) - up_to(facts, None);
    let is_of_it = part.sessions.iter().all(|session| whole.sessions.binary_search(session).is_ok());
    is_of_it || !part.asks || placed(part, Some(u32::MAX)) < placed(whole, furthest)
}
