//! The Arrow schema of values: one row per list of a result, one per argument of a call. They are read only by who looks
//! for links between tools.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use crate::base::names::Names;
use crate::frames::columns::{BatchColumns, ColumnResult, RowSchema, blobs, field, fields, u32s};
use crate::logs::values::{GivenArgument, List, ListedValue, ValueKind, ValueRows};

/// The tables, by the name of their files.
pub const TABLES: [&str; 2] = ["listed", "given"];

/// Versions of the tables and of the meaning of their columns.
pub const VERSIONS: [(&str, u32); 2] = [("listed", 2), ("given", 1)];

/// Bytes of a packed value: hash, directory, count, kind.
const VALUE_BYTES: usize = 14;

/// Values of several files, each with the number of its source.
pub type TaggedValues<'a> = [(u32, &'a ValueRows)];

/// Those rows of one of [`TABLES`] that stand at these places, from the first file on; `None` where no row stands, but at
/// the start.
pub fn batch(
    table: &str,
    files: &TaggedValues<'_>,
    names: &Names,
    places: Range<usize>,
) -> Option<ColumnResult<RecordBatch>> {
    match table {
        "listed" => listed_batch(files, names, places),
        _ => given().batch(files, names, places, |file| &file.given),
    }
}

/// Adds the rows of a batch to the source that each belongs to; `of` gives none for sources that are dead. Lists that only
/// the published planner asks about are left out unless they are wanted.
pub fn read(table: &str, batch: &RecordBatch, names: &mut Names, with_taken: bool, of: Of<'_>) -> ColumnResult<()> {
    let columns = &BatchColumns(batch);
    let sources = columns.u32("source")?;
    let mut end = 0;
    let runs = sources.values().chunk_by(|one, next| one == next).map(|run| {
        end += run.len();
        (run[0], end - run.len()..end)
    });
    if table != "listed" {
        let rows = given().rows(columns, names)?;
        runs.for_each(|(source, places)| of(source, &mut |file| put(&mut file.given, &rows[places.clone()])));
        return Ok(());
    }
    let values = columns.blobs("values")?;
    let mut lists = listed().rows(columns, names)?;
    // Up to which list and which value of those that stay each row goes.
    let (mut kept, mut listed, mut ends) = (Vec::with_capacity(lists.len()), Vec::new(), vec![(0, 0)]);
    for (row, list) in lists.iter_mut().enumerate() {
        let odd = || ArrowError::SchemaError("column values holds something that is no list".to_owned());
        let values = values.value(row).chunks(VALUE_BYTES);
        list.kept = u16::try_from(values.len()).map_err(|_| odd())?;
        let stays = with_taken || !list.is_taken();
        for value in values {
            listed.extend(Some(unpack(value).ok_or_else(odd)?).filter(|_| stays));
        }
        kept.extend(Some(*list).filter(|_| stays));
        ends.push((kept.len(), listed.len()));
    }
    runs.for_each(|(source, places)| {
        of(source, &mut |file| {
            let ((list, value), (last_list, last_value)) = (ends[places.start], ends[places.end]);
            put(&mut file.lists, &kept[list..last_list]);
            put(&mut file.listed, &listed[value..last_value]);
        });
    });
    Ok(())
}

/// Adds rows of a file. Mostly they are all that it has, and there are many files: they get no more room than they need.
fn put<R: Copy>(known: &mut Vec<R>, rows: &[R]) {
    if known.is_empty() {
        known.reserve_exact(rows.len());
    }
    known.extend_from_slice(rows);
}

/// Gives the values of a source, if it is alive, to whoever adds to them.
pub type Of<'f> = &'f mut dyn FnMut(u32, &mut dyn FnMut(&mut ValueRows));

/// Lists but for their values, which stand packed in a column of their own.
fn listed() -> RowSchema<List> {
    fields!(RowSchema::<List>::new(), block, extractor, found, matches, flags)
}

fn given() -> RowSchema<GivenArgument> {
    fields!(RowSchema::<GivenArgument>::new(), block, argument, value, parent, leaves)
}

fn listed_batch(files: &TaggedValues<'_>, names: &Names, places: Range<usize>) -> Option<ColumnResult<RecordBatch>> {
    let is_start = places.start == 0;
    let mut start = 0;
    let rows = files.iter().flat_map(|&(source, file)| {
        let here = |place: usize| place.saturating_sub(start).min(file.lists.len());
        let (before, here) = (here(places.start), here(places.start)..here(places.end));
        start += file.lists.len();
        let kept = |list: &List| usize::from(list.kept);
        let passed = if here.is_empty() { 0 } else { file.lists[..before].iter().map(kept).sum() };
        let mut rest = &file.listed[passed..];
        file.lists[here].iter().map(move |list| {
            let (values, later) = rest.split_at(kept(list));
            rest = later;
            (source, list, values)
        })
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() && !is_start {
        return None;
    }
    let lists: Vec<&List> = rows.iter().map(|(_, list, _)| *list).collect();
    let packed = rows.iter().map(|(.., values)| values.iter().flat_map(pack).collect::<Vec<u8>>());
    let sources = ("source", u32s(rows.iter().map(|(source, ..)| *source)), false);
    let columns =
        [sources].into_iter().chain(listed().columns(&lists, names)).chain([("values", blobs(packed), false)]);
    Some(RecordBatch::try_from_iter_with_nullable(columns))
}

fn pack(value: &ListedValue) -> [u8; VALUE_BYTES] {
    let mut out = [0; VALUE_BYTES];
    out[..8].copy_from_slice(&value.value.to_le_bytes());
    out[8..12].copy_from_slice(&value.parent.to_le_bytes());
    out[12] = value.count;
    out[13] = value.kind as u8;
    out
}

fn unpack(bytes: &[u8]) -> Option<ListedValue> {
    let (value, rest) = bytes.split_first_chunk()?;
    let (parent, rest) = rest.split_first_chunk()?;
    let [count, kind] = *rest else { return None };
    let kind = ValueKind::from_repr(kind)?;
    Some(ListedValue { value: u64::from_le_bytes(*value), parent: u32::from_le_bytes(*parent), count, kind })
}
