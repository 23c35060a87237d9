//! What stands behind hashes, looked up in the owner's own logs for who asks to see it; nothing of it is kept. Rows hold no
//! texts of directories, branches and sessions, only their pseudonyms; and records are found again by the hash of their
//! `uuid`, to show what an example is about.

use std::collections::BTreeMap;
use std::path::Path;

use memchr::memmem::Finder;

use crate::base::files;
use crate::base::id::{Id, IdMap, IdSet};
use crate::base::json::{Cursor, JsonFault, RawStr};
use crate::base::lines::{LineBuffer, LineReader};
use crate::base::unpack::{Packing, unpack};
use crate::logs::content::Unread;
use crate::logs::envelope::Envelope;
use crate::logs::path::directory;
use crate::logs::read::{self, Failure, Job};
use crate::logs::take::TakeRecords;
use crate::logs::trace::Counters;

/// Fields of records that hold such a text.
const FIELDS: [&[u8]; 4] = [b"\"cwd\"", b"\"gitBranch\"", b"\"sessionId\"", b"\"session_id\""];

/// Looks for texts in the first so many bytes of a log: those found, and why no more of it could be read.
pub fn look_up(
    path: &Path,
    packing: Packing,
    bytes: u64,
    wanted: &IdSet<Id>,
    found: &mut IdMap<Id, String>,
) -> std::io::Result<()> {
    let source = unpack(packing, files::open(path)?)?;
    let mut fields = FIELDS.map(|field| (Finder::new(field), None));
    let mut buffer = LineBuffer::default();
    let mut lines = LineReader::new(source, &mut buffer);
    while found.len() < wanted.len() && lines.offset() < bytes {
        let Some(line) = lines.next_line()? else { break };
        let bytes = line.bytes.unwrap_or_default();
        fields.iter_mut().for_each(|field| take(bytes, field, wanted, found));
    }
    Ok(())
}

/// Takes the texts of one field of a line, unless they are that of the one before.
fn take(
    line: &[u8],
    (finder, last): &mut (Finder<'_>, Option<Vec<u8>>),
    wanted: &IdSet<Id>,
    found: &mut IdMap<Id, String>,
) {
    // The field of a record may stand behind one of a call, or on the line of another record.
    for raw in finder.find_iter(line).filter_map(|at| text_behind(&line[at + finder.needle().len()..])) {
        if last.as_deref() == Some(raw.0) {
            continue;
        }
        if let Some(text) = raw.decode() {
            // What several spellings mean can only be a directory.
            let text = directory(&text);
            let id = Id::pseudonym(&text);
            if wanted.contains(&id) {
                found.entry(id).or_insert_with(|| String::from_utf8_lossy(&text).into_owned());
            }
        }
        *last = Some(raw.0.to_owned());
    }
}

/// The string behind a key, whatever white space stands around the colon.
fn text_behind(behind: &[u8]) -> Option<RawStr<'_>> {
    let value = behind.trim_ascii_start().strip_prefix(b":")?;
    Cursor::new(value.trim_ascii_start()).string().ok()
}

/// A record that was found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cited {
    /// Number of the job.
    pub job: usize,
    /// Its line, from 1.
    pub line: u64,
    pub uuid: String,
    /// The first characters of its `message.content`, as JSON.
    pub start: String,
}

/// Looks for records in all jobs, one worker a file. Of copies the one in the first file is given. Tells, too, which files
/// could not be searched.
pub fn find_records(
    jobs: &[Job<'_>],
    wanted: &IdSet<Id>,
    chars: usize,
    pool: &rayon::ThreadPool,
) -> (BTreeMap<Id, Cited>, Vec<Failure>) {
    let begin = |job| Reader { wanted, chars, job, counters: Counters::default(), found: Vec::new() };
    let (found, failures) = read::read_each(jobs, pool, &begin, &|reader| reader.found);
    let mut all: Vec<(Id, Cited)> = found.into_iter().flatten().collect();
    // Of several copies the last one of the list stays.
    all.sort_by(|a, b| b.1.cmp(&a.1));
    (all.into_iter().collect(), failures)
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
