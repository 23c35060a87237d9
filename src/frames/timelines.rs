//! The Arrow schema of timelines: one row per file, its records packed ([`crate::frames::packed`]). They are read only by
//! who replays a policy.

use arrow_array::RecordBatch;

use crate::frames::columns::{Columns, Outcome, blobs, ids, u32s, u64s};
use crate::model::id::Id;

/// The table, by the name of its files.
pub const TABLES: [&str; 1] = ["timelines"];

/// What one file says for a timeline, packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedTimeline {
    /// Number of the source.
    pub source: u32,
    /// Size of the file when it was read.
    pub bytes: u64,
    /// Names the words and numbers by which the rows were made.
    pub words: Id,
    /// The rows.
    pub rows: Vec<u8>,
}

/// The batch of some files.
pub(super) fn batch(files: &[PackedTimeline]) -> Outcome<RecordBatch> {
    RecordBatch::try_from_iter_with_nullable(vec![
        ("source", u32s(files.iter().map(|file| file.source)), false),
        ("bytes", u64s(files.iter().map(|file| file.bytes)), false),
        ("words", ids(files.iter().map(|file| file.words)), false),
        ("packed", blobs(files.iter().map(|file| file.rows.clone())), false),
    ])
}

/// The files of a batch.
pub(super) fn read(batch: &RecordBatch) -> Outcome<Vec<PackedTimeline>> {
    let columns = Columns(batch);
    let (source, bytes) = (columns.u32("source")?, columns.u64("bytes")?);
    let (words, rows) = (columns.ids("words")?, columns.blobs("packed")?);
    let file = |row| PackedTimeline {
        source: source.value(row),
        bytes: bytes.value(row),
        words: words.at(row),
        rows: rows.value(row).to_vec(),
    };
    Ok((0..batch.num_rows()).map(file).collect())
}
