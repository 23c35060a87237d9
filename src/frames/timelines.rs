//! The Arrow schema of timelines: the records of a file, packed ([`crate::frames::packed`]), in one row, or in several if
//! they are long. They are read only by who replays a policy.

use std::borrow::Cow;
use std::ops::Range;

use arrow_array::RecordBatch;

use crate::base::id::Id;
use crate::base::names::Names;
use crate::base::seal::Seal;
use crate::frames::columns::{BatchColumns, ColumnResult, RowSchema, blobs, field, fields};
use crate::frames::packed;
use crate::frames::sealed::sealed_part;

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

/// Whether some files are enough for a group.
pub fn is_group(files: &[PackedTimeline<'_>]) -> bool {
    files.len() >= GROUP_ROWS || files.iter().map(|file| file.rows.len()).sum::<usize>() >= GROUP_BYTES
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

/// A row of the table but for the bytes, which are not copied.
#[derive(Clone, Default)]
struct SliceRow {
    source: u32,
    bytes: u64,
    words: Id,
    /// Bytes of the file that stand in rows before it, and in rows behind it.
    earlier: u64,
    later: u64,
}

fn slices() -> RowSchema<SliceRow> {
    fields!(RowSchema::<SliceRow>::new(), source, bytes, words, earlier, later)
}

/// The batch of a group, its hashes sealed.
pub fn batch(files: &[PackedTimeline<'_>], group: &[TimelineSlice], seal: &Seal) -> ColumnResult<RecordBatch> {
    let rows = group.iter().map(|(file, place)| {
        let PackedTimeline { source, bytes, words, ref rows } = files[*file];
        SliceRow { source, bytes, words, earlier: place.start as u64, later: (rows.len() - place.end) as u64 }
    });
    let rows: Vec<SliceRow> = rows.collect();
    let packed = blobs(group.iter().map(|(file, place)| sealed_part(&files[*file].rows, place, seal)));
    let columns = slices().columns(&rows.iter().collect::<Vec<_>>(), &Names::default());
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().chain([(packed::COLUMN, packed, false)]))
}

/// Hands on the rows of a batch, each with the bytes of its file that stand in earlier and in later rows.
pub fn read(batch: &RecordBatch, each: &mut dyn FnMut(PackedTimeline<'_>, (u64, u64))) -> ColumnResult<()> {
    let columns = BatchColumns(batch);
    let packed = columns.blobs(packed::COLUMN)?;
    let rows = slices().rows(&columns, &mut Names::default())?;
    for (place, SliceRow { source, bytes, words, earlier, later }) in rows.into_iter().enumerate() {
        let rows = Cow::Borrowed(packed.value(place));
        each(PackedTimeline { source, bytes, words, rows }, (earlier, later));
    }
    Ok(())
}

/// Puts the rows of long files together, in their order.
#[derive(Default)]
pub struct Joined<'a>(Option<PackedTimeline<'a>>);

impl<'a> Joined<'a> {
    /// Adds the next row; gives the file if that is whole now. A row that does not fit to the last one is left out, and
    /// its file with it.
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
