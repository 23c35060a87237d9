//! The Arrow schema of timelines: one row per file, its records packed ([`crate::frames::packed`]). They are read only by
//! who replays a policy.

use std::borrow::Cow;

use arrow_array::RecordBatch;

use crate::base::id::Id;
use crate::frames::columns::{Columns, Outcome, blobs, ids, u32s, u64s};

/// The table, by the name of its files.
pub const TABLES: [&str; 1] = ["timelines"];

/// Versions of the tables and of the meaning of their columns.
pub const VERSIONS: [(&str, u32); 1] = [("timelines", 4)];

/// Rows that are compressed together: few, so that reading is spread over the workers.
pub(super) const GROUP_ROWS: usize = 16;

/// What one file says for a timeline, packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedTimeline<'a> {
    /// Number of the source.
    pub source: u32,
    /// Size of the file when it was read.
    pub bytes: u64,
    /// Names the words and numbers by which the rows were made.
    pub words: Id,
    /// The rows.
    pub rows: Cow<'a, [u8]>,
}

impl PackedTimeline<'_> {
    /// The same without its own copy of the rows.
    pub fn lent(&self) -> PackedTimeline<'_> {
        PackedTimeline { rows: Cow::Borrowed(&self.rows), ..*self }
    }
}

/// The batch of some files.
pub(super) fn batch(files: &[PackedTimeline<'_>]) -> Outcome<RecordBatch> {
    RecordBatch::try_from_iter_with_nullable(vec![
        ("source", u32s(files.iter().map(|file| file.source)), false),
        ("bytes", u64s(files.iter().map(|file| file.bytes)), false),
        ("words", ids(files.iter().map(|file| file.words)), false),
        ("packed", blobs(files.iter().map(|file| &file.rows)), false),
    ])
}

/// Hands on the files of a batch.
pub(super) fn read(batch: &RecordBatch, each: &mut dyn FnMut(PackedTimeline<'_>)) -> Outcome<()> {
    let columns = Columns(batch);
    let (source, bytes) = (columns.u32("source")?, columns.u64("bytes")?);
    let (words, rows) = (columns.ids("words")?, columns.blobs("packed")?);
    for row in 0..batch.num_rows() {
        let (source, bytes) = (source.value(row), bytes.value(row));
        each(PackedTimeline { source, bytes, words: words.at(row), rows: Cow::Borrowed(rows.value(row)) });
    }
    Ok(())
}
