//! Which files say nothing that another file does not say as well (whole copies of a log, and parts of copies), and which
//! of several files owns what they all say.
//!
//! The copies must not take part in deciding which copy counts. A part may lack the compaction between two calls, or look
//! older than the whole because it ends earlier. What is decided here serves the history and the timeline alike.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::base::id::{Id, IdMap, IdSet};
use crate::logs::trace::{ChainKey, Millis, NO_TIME, Place, earlier};

/// Subagents whose answers are in files of their own, by session and agent. A file that holds nothing but what one was asked
/// was cut off: what its parent saw of it counts.
pub struct RecordedAgents(BTreeSet<(Id, Id)>);

impl RecordedAgents {
    /// Those of all files; `answers` are the chains of their answers, each as often as it likes.
    pub fn of(answers: impl Iterator<Item = ChainKey>) -> Self {
        let own = answers.filter(|key| key.place == Place::AgentFile);
        Self(own.map(|key| (key.session, key.agent)).collect())
    }

    /// Whether a chain is what progress records of a parent repeat of such a subagent: it is set aside.
    pub fn sets_aside(&self, key: &ChainKey) -> bool {
        key.place == Place::Progress && self.0.contains(&(key.session, key.agent))
    }
}

/// Where a fact stands in its file. Records and messages are numbered each by themselves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum At {
    Message(u32),
    /// In another record of the message of this number.
    Part(u32),
    Record(u32),
}

/// What a file says, as names of facts.
#[derive(Default)]
pub struct FileFacts {
    /// Each fact with its place; a fact that is said twice is there twice.
    said: Vec<(Id, At)>,
    /// The sessions that the file speaks of. A fork says the same in the name of another session.
    sessions: Vec<Id>,
    /// Whether the model was asked for something.
    asks: bool,
    /// Whether it says itself that it repeats another log.
    pub is_fork: bool,
    /// When something was said first and last; none if no record says when.
    said_at: Option<(Millis, Millis)>,
    /// Its records, those included that hold no fact.
    records: u64,
}

impl FileFacts {
    /// Of a file with so many records, nothing yet.
    pub fn of_records(records: u64) -> Self {
        Self { records, ..Self::default() }
    }

    /// Adds a fact in these words.
    pub fn add(&mut self, at: At, words: &[&[u8]]) {
        self.said.push((Id::of(&words.concat()), at));
    }

    /// Says that the model was asked for something, or answered, at a time.
    pub fn asked(&mut self, ts: Millis) {
        self.asks = true;
        self.spoke(ts, ts);
    }

    /// Says that somebody spoke between two times.
    fn spoke(&mut self, from: Millis, to: Millis) {
        let (first, last) = self.said_at.unwrap_or((from, to));
        self.said_at = Some((earlier(first, from), last.max(to)));
    }

    /// Adds a session, and when it spoke first and last as far as the file shows.
    pub fn session(&mut self, session: Id, spoke: Option<(Millis, Millis)>) {
        self.sessions.push(session);
        if let Some((from, to)) = spoke {
            self.spoke(from, to);
        }
    }

    /// Brings the facts into order and tells the second saying of a fact from the first.
    fn settle(&mut self) {
        self.sessions.sort_unstable();
        self.sessions.dedup();
        self.said.sort_unstable_by_key(|&(id, at)| (at, id));
        let mut times: IdMap<Id, u32> = IdMap::default();
        for (id, _) in &mut self.said {
            let times = times.entry(*id).or_default();
            *times += 1;
            if *times > 1 {
                *id = Id::of(&[&id.0[..], &times.to_le_bytes()].concat());
            }
        }
    }

    /// Names the facts; equal for files that say the same in the same order, of whatever sessions.
    fn words(&self) -> Id {
        Id::of(&self.said.iter().flat_map(|(id, _)| id.0).collect::<Vec<u8>>())
    }

    /// Names all that the file says, its `words` and its sessions; whatever it is called.
    fn digest(&self, words: Id) -> Id {
        Id::of(&std::iter::once(&words).chain(&self.sessions).flat_map(|id| id.0).collect::<Vec<u8>>())
    }

    /// The last message (or other record of one) and the last fact of all: whoever says everything says both.
    fn probes(&self) -> impl Iterator<Item = Id> {
        let answers = self.said.partition_point(|&(_, at)| at <= At::Part(u32::MAX));
        let ends = [answers.checked_sub(1).map(|last| &self.said[last]), self.said.last()];
        ends.into_iter().flatten().map(|&(id, _)| id)
    }
}

/// What is known of a file once all files were looked at. The smallest one owns what several files say: the file that
/// says something of its own, that does not say itself that it is a fork, that began first, that ended first; where times do not
/// tell, what the files say decides, never their names.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FileStanding {
    /// Whether another file says all of it.
    pub is_repeated: bool,
    /// Whether it says itself that it repeats another log.
    pub is_fork: bool,
    /// When something was first said in it.
    pub first: Millis,
    /// When something was last said in it.
    pub last: Millis,
    /// Names what the file says.
    pub digest: Id,
}

/// Looks for the files that say nothing of their own. Of files that say the same the first one stays.
pub fn standings(mut files: Vec<FileFacts>) -> Vec<FileStanding> {
    files.par_iter_mut().for_each(FileFacts::settle);
    let words: Vec<Id> = files.par_iter().map(FileFacts::words).collect();
    let standing = |(facts, words): (&FileFacts, &Id)| {
        let (first, last) = facts.said_at.unwrap_or((NO_TIME, NO_TIME));
        FileStanding { is_repeated: false, is_fork: facts.is_fork, first, last, digest: facts.digest(*words) }
    };
    let mut out: Vec<FileStanding> = files.iter().zip(&words).map(standing).collect();
    // Whoever says all that a file says, says its last facts: most files have nobody to be compared with.
    let probes: IdSet<Id> = files.iter().flat_map(FileFacts::probes).collect();
    let mut witnesses: IdMap<Id, Vec<usize>> = IdMap::default();
    for (index, facts) in files.iter().enumerate() {
        for (id, _) in facts.said.iter().filter(|(id, _)| probes.contains(id)) {
            witnesses.entry(*id).or_default().push(index);
        }
    }
    // The fullest first, since it says the most; whoever comes before a file itself says at least as much.
    let rank = |&file: &usize| (Reverse(files[file].said.len()), Reverse(files[file].records), out[file]);
    witnesses.values_mut().for_each(|files_of| files_of.sort_by_key(rank));
    let speaking = speaking_of(&files);
    let mut known: IdMap<usize, Places> = IdMap::default();
    for (index, facts) in files.iter().enumerate() {
        let Some(rarest) = facts.probes().min_by_key(|probe| witnesses[probe].len()) else {
            let others = facts.sessions.first().and_then(|session| speaking.get(session));
            out[index].is_repeated = others.into_iter().flatten().any(|&other| is_of(facts, &files[other]));
            continue;
        };
        let mut others = witnesses[&rarest].iter().take_while(|&&other| other != index);
        out[index].is_repeated = others.any(|&other| {
            // Forks of one session, in which nothing was said since, are many and say the same.
            if words[other] == words[index] {
                return !facts.asks || is_of(facts, &files[other]) || is_forked_off(facts, &files[other]);
            }
            let places = known.entry(other).or_insert_with(|| files[other].said.iter().copied().collect());
            says_all(facts, &files[other], places)
        });
    }
    out
}

/// The files with facts, by the first session of those without any: these say no more than that their sessions took place.
fn speaking_of(files: &[FileFacts]) -> IdMap<Id, Vec<usize>> {
    let silent = files.iter().filter(|facts| facts.said.is_empty()).filter_map(|facts| facts.sessions.first());
    let mut speaking: IdMap<Id, Vec<usize>> = silent.map(|session| (*session, Vec::new())).collect();
    for (index, facts) in files.iter().enumerate().filter(|(_, facts)| !facts.said.is_empty()) {
        for session in &facts.sessions {
            speaking.get_mut(session).into_iter().for_each(|files| files.push(index));
        }
    }
    speaking
}

/// Whether a file says itself that it repeats another log, and the other one does not.
fn is_forked_off(part: &FileFacts, whole: &FileFacts) -> bool {
    part.is_fork && !whole.is_fork
}

/// Whether a file speaks of no session that the other does not speak of.
fn is_of(part: &FileFacts, whole: &FileFacts) -> bool {
    part.sessions.iter().all(|session| whole.sessions.binary_search(session).is_ok())
}

/// The place of each fact.
type Places = IdMap<Id, At>;

/// Whether a file says nothing that the other does not. What begins like another session and ends early may be what that
/// one was forked off, so between sessions only a part with something left out is a copy, one that asks for nothing, or one that
/// says itself that it is a fork.
fn says_all(part: &FileFacts, whole: &FileFacts, places: &Places) -> bool {
    // The last message and the last record of the whole that the part has.
    let (mut message, mut record) = (None, None);
    for (id, _) in &part.said {
        match places.get(id) {
            Some(&at @ At::Message(_)) => message = message.max(Some(at)),
            // A last answer of which the end is missing is how a session ends that was cut off.
            Some(At::Part(_)) => {}
            Some(&at @ At::Record(_)) => record = record.max(Some(at)),
            None => return false,
        }
    }
    let up_to = |facts: &FileFacts, end: At| facts.said.partition_point(|&(_, at)| at <= end);
    let messages = |facts: &FileFacts| up_to(facts, At::Message(u32::MAX));
    let answers = |facts: &FileFacts| up_to(facts, At::Part(u32::MAX));
    let records = |facts: &FileFacts| facts.said.len() - answers(facts);
    let lacks_messages = message.is_some_and(|end| messages(part) < up_to(whole, end));
    // A conversation begins with what somebody says, so that answers alone are no beginning.
    let lacks_records = match record {
        Some(end) => records(part) < up_to(whole, end) - answers(whole),
        None => records(whole) > 0,
    };
    is_of(part, whole) || is_forked_off(part, whole) || !part.asks || lacks_messages || lacks_records
}
