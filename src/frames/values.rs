//! The Arrow schema of values: one row per list of an answer, one per argument of a call. They are read only by who looks
//! for links between tools.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use crate::base::names::Names;
use crate::frames::columns::{BatchColumns, Column, ColumnResult, blobs, rows_at, texts, u8s, u16s, u32s, u64s};
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
    let is_start = places.start == 0;
    let (rows, columns) =
        if table == "listed" { list_columns(files, names, places) } else { given_columns(files, names, places) };
    (is_start || rows > 0).then(|| RecordBatch::try_from_iter_with_nullable(columns))
}

/// Adds the rows of a batch to the source that each belongs to; `of` gives none for sources that are dead.
pub fn read(table: &str, batch: &RecordBatch, names: &mut Names, of: Of<'_>) -> ColumnResult<()> {
    if table == "listed" {
        read_lists(&BatchColumns(batch), names, of)
    } else {
        read_given(&BatchColumns(batch), names, of)
    }
}

/// Gives the values of a source, if it is alive, to whoever adds to them.
pub type Of<'f> = &'f mut dyn FnMut(u32, &mut dyn FnMut(&mut ValueRows));

fn list_columns(files: &TaggedValues<'_>, names: &Names, places: Range<usize>) -> (usize, Vec<Column>) {
    let rows = files.iter().flat_map(|&(source, file)| {
        let mut rest = &file.listed[..];
        file.lists.iter().map(move |list| {
            let (values, later) = rest.split_at(usize::from(list.kept));
            rest = later;
            (source, list, values)
        })
    });
    let rows: Vec<_> = rows.skip(places.start).take(places.len()).collect();
    let each = || rows.iter().map(|(_, list, _)| list);
    let packed = rows.iter().map(|(.., values)| values.iter().flat_map(pack).collect::<Vec<u8>>());
    let columns = vec![
        ("source", u32s(rows.iter().map(|(source, ..)| *source)), false),
        ("block", u32s(each().map(|row| row.block)), false),
        ("extractor", texts(each().map(|row| row.extractor), names), false),
        ("found", u16s(each().map(|row| row.found)), false),
        ("matches", u32s(each().map(|row| row.matches)), false),
        ("flags", u8s(each().map(|row| row.flags)), false),
        ("values", blobs(packed), false),
    ];
    (rows.len(), columns)
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

fn read_lists(columns: &BatchColumns<'_>, names: &mut Names, of: Of<'_>) -> ColumnResult<()> {
    let (source, block) = (columns.u32("source")?, columns.u32("block")?);
    let extractor = columns.syms("extractor", names)?;
    let (found, matches) = (columns.u16("found")?, columns.u32("matches")?);
    let (flags, values) = (columns.u8("flags")?, columns.blobs("values")?);
    for (row, extractor) in extractor.into_iter().enumerate() {
        let listed: Option<Vec<ListedValue>> = values.value(row).chunks(VALUE_BYTES).map(unpack).collect();
        let odd = || ArrowError::SchemaError("column values holds something that is no list".to_owned());
        let listed = listed.ok_or_else(odd)?;
        let list = List {
            block: block.value(row),
            extractor,
            found: found.value(row),
            matches: matches.value(row),
            flags: flags.value(row),
            kept: u16::try_from(listed.len()).map_err(|_| odd())?,
        };
        of(source.value(row), &mut |file| {
            file.lists.push(list);
            file.listed.extend_from_slice(&listed);
        });
    }
    Ok(())
}

fn given_columns(files: &TaggedValues<'_>, names: &Names, places: Range<usize>) -> (usize, Vec<Column>) {
    let (sources, rows) = rows_at(files, places, |file| &file.given[..]);
    let columns = vec![
        ("source", u32s(sources.into_iter()), false),
        ("block", u32s(rows.iter().map(|row| row.block)), false),
        ("argument", texts(rows.iter().map(|row| row.argument), names), false),
        ("value", u64s(rows.iter().map(|row| row.value)), false),
        ("parent", u32s(rows.iter().map(|row| row.parent)), false),
        ("leaves", u8s(rows.iter().map(|row| row.leaves)), false),
    ];
    (rows.len(), columns)
}

fn read_given(columns: &BatchColumns<'_>, names: &mut Names, of: Of<'_>) -> ColumnResult<()> {
    let (source, block) = (columns.u32("source")?, columns.u32("block")?);
    let argument = columns.syms("argument", names)?;
    let (value, parent, leaves) = (columns.u64("value")?, columns.u32("parent")?, columns.u8("leaves")?);
    for (row, argument) in argument.into_iter().enumerate() {
        let given = GivenArgument {
            block: block.value(row),
            argument,
            value: value.value(row),
            parent: parent.value(row),
            leaves: leaves.value(row),
        };
        of(source.value(row), &mut |file| file.given.push(given));
    }
    Ok(())
}
