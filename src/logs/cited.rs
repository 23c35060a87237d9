//! Finds records again by the hash of their `uuid`, for people who ask to see what an example is about. Nothing of it
//! is kept.

use std::collections::BTreeMap;

use crate::base::id::{Id, IdSet};
use crate::base::json::{Cursor, JsonFault};
use crate::logs::content::Unread;
use crate::logs::envelope::Envelope;
use crate::logs::read;
use crate::logs::read::{Failure, Job};
use crate::logs::take::TakeRecords;
use crate::logs::trace::Counters;

/// A record that was found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cited {
    /// Number of the job.
    pub job: usize,
    /// Its line, from 1.
    pub line: u64,
    /// Its `uuid`.
    pub uuid: String,
    /// The first characters of its `message.content`, as JSON.
    pub start: String,
}

/// Looks for records in all jobs, one worker a file. Of copies the one in the first file is given. Tells, too, which files
/// could not be searched.
pub fn find(
    jobs: &[Job<'_>],
    wanted: &IdSet<Id>,
    chars: usize,
    pool: &rayon::ThreadPool,
) -> (BTreeMap<Id, Cited>, Vec<Failure>) {
    let begin = |job| Reader { wanted, chars, job, counters: Counters::default(), found: Vec::new() };
    let (found, failures) = read::read_each(jobs, pool, &begin, &|reader| reader.found);
    let mut all: Vec<(Id, Cited)> = found.into_iter().flatten().collect();
    all.sort_by(|a, b| a.1.cmp(&b.1));
    let mut first = BTreeMap::new();
    for (id, cited) in all {
        first.entry(id).or_insert(cited);
    }
    (first, failures)
}

struct Reader<'w> {
    wanted: &'w IdSet<Id>,
    chars: usize,
    job: usize,
    counters: Counters,
    found: Vec<(Id, Cited)>,
}

impl TakeRecords for Reader<'_> {
    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn record(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonFault> {
        let envelope = Envelope::read(cursor, &mut Unread)?;
        let id = envelope.uuid();
        if self.wanted.contains(&id) {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            let uuid = text(envelope.uuid.unwrap_or_default().0);
            let content = text(envelope.message.unwrap_or_default().content_json);
            let start = content.chars().take(self.chars).collect();
            self.found.push((id, Cited { job: self.job, line: self.counters.lines, uuid, start }));
        }
        Ok(())
    }
}
