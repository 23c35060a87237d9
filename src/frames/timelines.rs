//! The Arrow schema of timelines: the records of a file, packed ([`crate::frames::packed`]), in one row, or several if long.

use std::borrow::Cow;
use std::ops::Range;

use arrow_array::RecordBatch;

use crate::base::id::Id;
use crate::frames::columns::{BatchColumns, ColumnResult, blobs, ids, u32s, u64s};

/// The table, by the name of its files.
pub const TABLES: [&str; 1] = ["timelines"];

/// Versions of the tables and of the meaning of their columns.
pub const VERSIONS: [(&str, u32); 1] = [("timelines", 6)];

/// Rows that are compressed together: few, so that reading is spread over the workers.
const GROUP_ROWS: usize = 16;
/// Bytes that are compressed together: the records of one large file may be most of what is in memory.
const GROUP_BYTES: usize = 4 << 20;

/// What one file says for a timeline, packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedTimeline<'a> {
    /// The number of its source for timelines.
    pub source: u32,
    /// Size of the file when it was read.
    pub bytes: u64,
    /// Names the words and numbers by which the rows were made.
    pub words: Id,
    pub rows: Cow<'a, [u8]>,
}

impl PackedTimeline<'_> {
    /// The same with its own copy of the rows.
    pub fn owned(self) -> PackedTimeline<'static> {
        PackedTimeline { rows: Cow::Owned(self.rows.into_owned()), ..self }
    }
}

/// A row of the table: the bytes of a file from one place to another.
pub type TimelineSlice = (usize, Range<usize>);

/// The rows of the table for some files, group by group. A file over [`GROUP_BYTES`] has groups of its own.
pub fn groups(files: &[PackedTimeline<'_>]) -> Vec<Vec<TimelineSlice>> {
    let (mut groups, mut bytes) = (vec![Vec::new()], 0);
    for (file, PackedTimeline { rows, .. }) in files.iter().enumerate() {
        let parts = rows.len().div_ceil(GROUP_BYTES).max(1);
        for part in 0..parts {
            let place = part * GROUP_BYTES..rows.len().min((part + 1) * GROUP_BYTES);
            let is_full = |group: &Vec<TimelineSlice>| group.len() == GROUP_ROWS || bytes + place.len() > GROUP_BYTES;
            if groups.last().is_some_and(|group| !group.is_empty() && is_full(group)) {
                groups.push(Vec::new());
                bytes = 0;
            }
            bytes += place.len();
            groups.last_mut().into_iter().for_each(|group: &mut Vec<TimelineSlice>| group.push((file, place.clone())));
        }
    }
    groups
}

/// The batch of a group.
pub fn batch(files: &[PackedTimeline<'_>], group: &[TimelineSlice]) -> ColumnResult<RecordBatch> {
    let each = || group.iter().map(|(file, place)| (&files[*file], place));
    RecordBatch::try_from_iter_with_nullable(vec![
        ("source", u32s(each().map(|(file, _)| file.source)), false),
        ("bytes", u64s(each().map(|(file, _)| file.bytes)), false),
        ("words", ids(each().map(|(file, _)| file.words)), false),
        ("earlier", u64s(each().map(|(_, place)| place.start as u64)), false),
        ("later", u64s(each().map(|(file, place)| (file.rows.len() - place.end) as u64)), false),
        ("packed", blobs(each().map(|(file, place)| &file.rows[place.clone()])), false),
    ])
}

/// Hands on the rows of a batch, each with the bytes of its file that stand in earlier and in later rows.
pub fn read(batch: &RecordBatch, each: &mut dyn FnMut(PackedTimeline<'_>, (u64, u64))) -> ColumnResult<()> {
    let columns = BatchColumns(batch);
    let (source, bytes) = (columns.u32("source")?, columns.u64("bytes")?);
    let (earlier, later) = (columns.u64("earlier")?, columns.u64("later")?);
    let (words, rows) = (columns.ids("words")?, columns.blobs("packed")?);
    for row in 0..batch.num_rows() {
        let (source, bytes, words) = (source.value(row), bytes.value(row), words.at(row));
        let packed = PackedTimeline { source, bytes, words, rows: Cow::Borrowed(rows.value(row)) };
        each(packed, (earlier.value(row), later.value(row)));
    }
    Ok(())
}

/// Puts the rows of long files together, in their order.
#[derive(Default)]
pub struct Joined<'a>(Option<PackedTimeline<'a>>);

impl<'a> Joined<'a> {
    /// Adds the next row; gives the file if that is whole now. A row that does not fit is left out, and its file with it.
    pub fn add(&mut self, row: PackedTimeline<'a>, (earlier, later): (u64, u64)) -> Option<PackedTimeline<'a>> {
        if earlier == 0 {
            self.0 = Some(row);
        } else {
            let file = self.0.as_mut().filter(|file| (file.source, file.rows.len() as u64) == (row.source, earlier))?;
            file.rows.to_mut().extend_from_slice(&row.rows);
        }
        if later == 0 { self.0.take() } else { None }
    }
}
