//! Finds records again by the hash of their `uuid`, for people who ask to see what an example is about. Nothing of it is
//! kept.
//!
//! The texts behind pseudonyms of directories, branches and sessions. Rows hold none of them, so whoever shows them to their
//! owner looks them up in the owner's own logs, where they stand.

use std::collections::BTreeMap;
use std::path::Path;

use memchr::memmem::Finder;

use crate::base::files;
use crate::base::id::{Id, IdMap, IdSet};
use crate::base::json::{Cursor, Fault, RawStr, Shape};
use crate::base::lines::{Line, LineBuffer, Lines};
use crate::base::unpack::{Packing, unpack};
use crate::logs::message::{id_of, span};
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

/// Fields of records that hold such a text.
const FIELDS: [&[u8]; 3] = [b"\"cwd\"", b"\"gitBranch\"", b"\"sessionId\""];

/// Looks for texts in the first so many bytes of a log; what is found is taken off `wanted`. A log that cannot be read tells
/// nothing.
pub fn look_up(path: &Path, packing: Packing, bytes: u64, wanted: &mut IdSet<Id>, found: &mut IdMap<Id, String>) {
    if wanted.is_empty() {
        return;
    }
    let Ok(source) = files::open(path) else { return };
    let Ok(source) = unpack(packing, source) else { return };
    let finders = FIELDS.map(|field| (Finder::new(field), None));
    let mut fields: [(Finder<'_>, Option<Vec<u8>>); 3] = finders;
    let mut buffer = LineBuffer::default();
    let mut lines = Lines::new(source, &mut buffer);
    while !wanted.is_empty() && lines.offset() < bytes {
        match lines.next_line() {
            Ok(Some(Line::Text { bytes, .. })) => fields.iter_mut().for_each(|field| take(bytes, field, wanted, found)),
            Ok(Some(Line::Oversize { .. })) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

/// Takes the text of one field of a record, unless it is that of the record before.
fn take(
    line: &[u8],
    (finder, last): &mut (Finder<'_>, Option<Vec<u8>>),
    wanted: &mut IdSet<Id>,
    found: &mut IdMap<Id, String>,
) {
    let value = |at: usize| start_of(line, at + finder.needle().len());
    let Some(start) = finder.find_iter(line).find_map(value) else { return };
    let raw = &line[start..];
    let Some(end) = end_of(raw) else { return };
    let raw = &raw[..end];
    if last.as_deref() == Some(raw) {
        return;
    }
    if let Some(text) = RawStr(raw).decode() {
        let id = Id::pseudonym(&text);
        if wanted.remove(&id) {
            found.insert(id, String::from_utf8_lossy(&text).into_owned());
        }
    }
    *last = Some(raw.to_owned());
}

/// Where the string behind a key begins, whatever white space stands around the colon.
fn start_of(line: &[u8], key_end: usize) -> Option<usize> {
    let skip = |at: usize| at + line[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let colon = skip(key_end);
    let quote = skip((line.get(colon) == Some(&b':')).then_some(colon + 1)?);
    (line.get(quote) == Some(&b'"')).then_some(quote + 1)
}

/// Where a JSON string ends.
fn end_of(raw: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match raw.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}
