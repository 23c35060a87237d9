//! Finds records again by the hash of their `uuid`, for people who ask to see what an example is about. Nothing of it
//! is kept.

use std::collections::BTreeMap;

use crate::base::id::{Id, IdSet};
use crate::base::json::{Cursor, Fault, Shape};
use crate::logs::field::{id_of, span};
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

    fn record(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let (mut uuid, mut message) = (None, &b""[..]);
        cursor.enter()?;
        let mut first = true;
        while let Some(key) = cursor.next_key(&mut first)? {
            match (key.0, cursor.shape()?) {
                (b"uuid", Shape::String) => uuid = Some(cursor.string()?),
                (b"message", Shape::Object) => message = span(cursor)?,
                _ => cursor.skip_value()?,
            }
        }
        if let Some((id, uuid)) = uuid.map(|uuid| (id_of(uuid), uuid)).filter(|(id, _)| self.wanted.contains(id)) {
            let uuid = String::from_utf8_lossy(uuid.0).into_owned();
            let start = content(message).chars().take(self.chars).collect();
            self.found.push((id, Cited { job: self.job, line: self.counters.lines, uuid, start }));
        }
        Ok(())
    }
}

/// The `content` of a message as it stands there.
fn content(message: &[u8]) -> String {
    let walk = || -> Result<&[u8], Fault> {
        let mut cursor = Cursor::new(message);
        cursor.enter()?;
        let mut first = true;
        while let Some(key) = cursor.next_key(&mut first)? {
            if key.0 == b"content" {
                return span(&mut cursor);
            }
            cursor.skip_value()?;
        }
        Ok(b"")
    };
    // A record without a message, or with one of another form, shows nothing.
    String::from_utf8_lossy(walk().unwrap_or_default()).into_owned()
}
