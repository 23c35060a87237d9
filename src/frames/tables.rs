//! The Arrow schema of the lake: one table per row type of [`crate::logs::trace`], and the way there and back.
//!
//! A new fact is a new column: name it in its table and raise the table's version in
//! [`VERSIONS`]. Readers give a column that an older segment lacks its default, so rows of deleted logs survive the change.

use std::ops::Range;

use arrow_array::RecordBatch;

use crate::base::body_shape::Showing;
use crate::base::id::Id;
use crate::base::names::Names;
use crate::frames::columns::{
    BatchColumns, ColumnResult, ColumnValue as _, RowSchema, coded_part, field, fields, part,
};
use crate::logs::assemble::families::ids_of_mark;
use crate::logs::trace::{
    CallRow, ChainKey, FileRows, MarkKind, MarkRow, MessageRow, Place, ResultKind, SessionRow, Status, ToolResult,
    ToolUse,
};

/// Version of the layout of the lake: of its manifest and of what its files are called. Each table has one of its own.
pub const SCHEMA_VERSION: u32 = 4;

/// The tables, by the name of their files.
pub const TABLES: [&str; 5] = ["chains", "calls", "messages", "marks", "sessions"];

/// Versions of the tables and of the meaning of their columns.
pub const VERSIONS: [(&str, u32); 5] = [("chains", 1), ("calls", 5), ("messages", 1), ("marks", 4), ("sessions", 2)];

/// Rows of several files, each with the number of its source.
pub type TaggedRows<'a> = [(u32, &'a FileRows)];

/// Those rows of one table that stand at these places, from the first file on. `None` where no row stands (but at the
/// start: then a batch of no rows), and for a table name that does not exist.
pub fn batch(
    table: &str,
    files: &TaggedRows<'_>,
    names: &Names,
    places: Range<usize>,
) -> Option<ColumnResult<RecordBatch>> {
    match table {
        "chains" => chains().batch(files, names, places, |file| &file.chains),
        "calls" => calls().batch(files, names, places, |file| &file.calls),
        "messages" => messages().batch(files, names, places, |file| &file.messages),
        "marks" => marks().batch(files, names, places, |file| &file.marks),
        "sessions" => sessions().batch(files, names, places, |file| &file.sessions),
        _ => None,
    }
}

/// Adds the rows of a batch to the file that each belongs to. `file_of` gives the place of a source in `files`; rows of
/// sources without one are dead (their file was read anew) and are passed over.
pub fn read(
    table: &str,
    batch: &RecordBatch,
    names: &mut Names,
    files: &mut [(u32, FileRows)],
    file_of: &mut dyn FnMut(u32) -> Option<usize>,
) -> ColumnResult<()> {
    let batch = &BatchColumns(batch);
    let sources = batch.u32("source")?;
    let places = sources.values().iter().map(|&source| file_of(source));
    match table {
        "chains" => scatter(chains().rows(batch, names)?, places, files, |file| &mut file.chains),
        "calls" => scatter(calls().rows(batch, names)?, places, files, |file| &mut file.calls),
        "messages" => scatter(messages().rows(batch, names)?, places, files, |file| &mut file.messages),
        "marks" => scatter(marks().rows(batch, names)?, places, files, |file| &mut file.marks),
        _ => scatter(sessions().rows(batch, names)?, places, files, |file| &mut file.sessions),
    }
    Ok(())
}

/// The source of each row, and each id with its source.
pub type SourcesWithIds = (Vec<u32>, Vec<(u32, Id)>);

/// The columns of [`ids`].
pub const ID_COLUMNS: [&str; 5] = ["source", "call", "id", "kind", "other"];

/// The source of each row of a table of calls, messages or marks, and the ids by which logs that belong together know what it
/// tells of.
pub fn ids(table: &str, batch: &RecordBatch) -> ColumnResult<SourcesWithIds> {
    let columns = BatchColumns(batch);
    let sources = columns.u32("source")?.values().to_vec();
    let mut ids = Vec::with_capacity(sources.len());
    if table == "marks" {
        let rows = marks().rows(&columns, &mut Names::default())?;
        let known = sources.iter().zip(&rows).flat_map(|(source, mark)| ids_of_mark(mark).map(|id| (*source, *id)));
        ids.extend(known);
    } else {
        let name = if table == "calls" { "call" } else { "id" };
        Id::each(&columns, name, &mut Names::default(), |row, id| ids.push((sources[row], id)))?;
    }
    Ok((sources, ids))
}

fn scatter<R>(
    rows: Vec<R>,
    places: impl Iterator<Item = Option<usize>>,
    files: &mut [(u32, FileRows)],
    of: fn(&mut FileRows) -> &mut Vec<R>,
) {
    let places: Vec<Option<usize>> = places.collect();
    let mut rows = rows.into_iter();
    // Rows come file by file, and there are many files: one that has all its rows here gets no more room than they need.
    for run in places.chunk_by(|one, next| one == next) {
        let of_file = rows.by_ref().take(run.len());
        if let Some(place) = run[0] {
            let known = of(&mut files[place].1);
            if known.is_empty() {
                known.reserve_exact(run.len());
            }
            known.extend(of_file);
        } else {
            of_file.for_each(drop);
        }
    }
}

fn chains() -> RowSchema<ChainKey> {
    let schema = fields!(RowSchema::<ChainKey>::new(), session, agent);
    schema.coded("place", Place::from_repr, (|row| row.place as u8, |row, place| row.place = place))
}

fn calls() -> RowSchema<CallRow> {
    fields!(RowSchema::<CallRow>::new(), call, progress)
        .column(
            "asked_record",
            (
                |row| row.asked.map(|half| half.record),
                |row, record| row.asked = record.map(|record| ToolUse { record, ..ToolUse::default() }),
            ),
        )
        .column("asked_block", part!(asked.block))
        .column("asked_ts", part!(asked.ts))
        .column("message", part!(asked.message))
        .column("tool", part!(asked.tool))
        .column("chain", part!(asked.chain))
        .column("input_bytes", part!(asked.input_bytes))
        .column("endpoint", part!(asked.endpoint))
        .column("path", part!(asked.path))
        .column("handle_short", part!(asked.handle.short))
        .column("handle_bytes", part!(asked.handle.bytes))
        .column("handle_o200k", part!(asked.handle.tokens[0]))
        .column("handle_cl100k", part!(asked.handle.tokens[1]))
        .coded("showing", |number| Some(Showing::from_repr(number).unwrap_or_default()), coded_part!(asked.showing))
        .column("first_line", part!(asked.lines[0]))
        .column("line_count", part!(asked.lines[1]))
        .column(
            "answered_record",
            (
                |row| row.answered.map(|half| half.record),
                |row, record| row.answered = record.map(|record| ToolResult { record, ..ToolResult::default() }),
            ),
        )
        .column("answered_block", part!(answered.block))
        .column("answered_ts", part!(answered.ts))
        .column("chars", part!(answered.chars))
        .column("bytes", part!(answered.bytes))
        .column("body", part!(answered.body))
        .coded("kind", ResultKind::from_repr, coded_part!(answered.kind))
        .coded("status", Status::from_repr, coded_part!(answered.status))
        .column("shape", part!(answered.shape))
}

fn messages() -> RowSchema<MessageRow> {
    let schema = fields!(RowSchema::<MessageRow>::new(), id, model, chain, ts, copies);
    let schema =
        fields!(schema, usage: input, output, cache_creation, cache_read, cache_creation_5m, cache_creation_1h);
    fields!(schema, has_usage, has_id, finished)
}

fn marks() -> RowSchema<MarkRow> {
    let schema = fields!(RowSchema::<MarkRow>::new(), record);
    let schema = schema.coded("kind", MarkKind::from_repr, (|row| row.kind as u8, |row, kind| row.kind = kind));
    fields!(schema, id, other, chain, ts)
}

fn sessions() -> RowSchema<SessionRow> {
    let schema = fields!(RowSchema::<SessionRow>::new(), session, project, project_name, project_record);
    fields!(schema, version, ts_first, ts_last, records)
}
