//! The Arrow schema of the lake: one table per row type of [`crate::logs::trace`], and the way there and back.
//!
//! A new fact is a new column: name it in `columns` and `read` of its table and raise the table's version in
//! [`VERSIONS`]. Readers give a column that an older segment lacks its default, so rows of deleted logs survive the change.

use arrow_array::{Array, RecordBatch};

use crate::base::body_shape::Showing;
use crate::base::id::Id;
use crate::base::names::{Names, Sym};
use crate::frames::columns::{
    Column, Columns, Outcome, bools, checked, i64s, ids, optional_u32s, texts, u8s, u32s, u64s,
};
use crate::logs::trace::{
    CallRow, ChainKey, Handle, MarkKind, MarkRow, MessageRow, Place, ResultKind, Rows, SessionRow, Status, ToolResult,
    ToolUse, Usage,
};

/// Version of the layout of the lake: of its manifest and of what its files are called. Each table has one of its own.
pub const SCHEMA_VERSION: u32 = 4;

/// The tables, by the name of their files.
pub const TABLES: [&str; 5] = ["chains", "calls", "messages", "marks", "sessions"];

/// Versions of the tables and of the meaning of their columns.
pub const VERSIONS: [(&str, u32); 5] = [("chains", 1), ("calls", 3), ("messages", 1), ("marks", 2), ("sessions", 1)];

/// Rows of several files, each with the number of its source.
pub type Tagged<'a> = [(u32, &'a Rows)];

/// The batch of one table, `None` for a table name that does not exist.
pub fn batch(table: &str, files: &Tagged<'_>, names: &Names) -> Option<Outcome<RecordBatch>> {
    let columns = match table {
        "chains" => chain_columns(files),
        "calls" => call_columns(files, names),
        "messages" => message_columns(files, names),
        "marks" => mark_columns(files),
        "sessions" => session_columns(files, names),
        _ => return None,
    };
    Some(RecordBatch::try_from_iter_with_nullable(columns))
}

/// Adds the rows of a batch to the file that each belongs to. `file_of` gives the place of a source in `files`; rows of
/// sources without one are dead (their file was read anew) and are passed over.
pub fn read(
    table: &str,
    batch: &RecordBatch,
    names: &mut Names,
    files: &mut [(u32, Rows)],
    file_of: &mut dyn FnMut(u32) -> Option<usize>,
) -> Outcome<()> {
    let columns = Columns(batch);
    let sources = columns.u32("source")?;
    let mut places = sources.values().iter().map(|&source| file_of(source));
    let mut put = |add: &mut dyn FnMut(Option<&mut Rows>)| {
        for place in places.by_ref() {
            add(place.map(|place| &mut files[place].1));
        }
    };
    // Every row is taken off its iterator, dead or alive, so that rows and sources stay in step.
    macro_rules! scatter {
        ($rows:expr, $field:ident) => {{
            let mut rows = $rows;
            put(&mut |file| {
                if let (Some(row), Some(file)) = (rows.next(), file) {
                    file.$field.push(row);
                }
            });
        }};
    }
    match table {
        "chains" => scatter!(read_chains(&columns)?, chains),
        "calls" => scatter!(read_calls(&columns, names)?, calls),
        "messages" => scatter!(read_messages(&columns, names)?, messages),
        "marks" => scatter!(read_marks(&columns)?, marks),
        _ => scatter!(read_sessions(&columns, names)?, sessions),
    }
    Ok(())
}

/// One value per row of all files.
fn each<'a, R, T>(
    files: &'a Tagged<'a>,
    rows: fn(&Rows) -> &Vec<R>,
    value: impl Fn(&R) -> T + 'a,
) -> impl Iterator<Item = T> + 'a
where
    R: 'a,
{
    files.iter().flat_map(move |(_, file)| rows(file)).map(value)
}

fn sources<R>(files: &Tagged<'_>, rows: fn(&Rows) -> &Vec<R>) -> Column {
    let values = files.iter().flat_map(|(source, file)| std::iter::repeat_n(*source, rows(file).len()));
    ("source", u32s(values), false)
}

fn chain_columns(files: &Tagged<'_>) -> Vec<Column> {
    fn of(file: &Rows) -> &Vec<ChainKey> {
        &file.chains
    }
    vec![
        sources(files, of),
        ("session", ids(each(files, of, |row| row.session)), false),
        ("agent", ids(each(files, of, |row| row.agent)), false),
        ("place", u8s(each(files, of, |row| row.place as u8)), false),
    ]
}

fn call_columns(files: &Tagged<'_>, names: &Names) -> Vec<Column> {
    fn of(file: &Rows) -> &Vec<CallRow> {
        &file.calls
    }
    let asked = |row: &CallRow| row.asked.unwrap_or(NEVER_ASKED);
    let answered = |row: &CallRow| row.answered.unwrap_or(NEVER_ANSWERED);
    vec![
        sources(files, of),
        ("call", ids(each(files, of, |row| row.call)), false),
        ("progress", bools(each(files, of, |row| row.progress)), false),
        ("asked_record", optional_u32s(each(files, of, |row| row.asked.map(|half| half.record))), true),
        ("asked_block", u32s(each(files, of, move |row| asked(row).block)), false),
        ("asked_ts", i64s(each(files, of, move |row| asked(row).ts)), false),
        ("message", ids(each(files, of, move |row| asked(row).message)), false),
        ("tool", texts(each(files, of, move |row| asked(row).tool), names), false),
        ("chain", u32s(each(files, of, move |row| asked(row).chain)), false),
        ("input_bytes", u32s(each(files, of, move |row| asked(row).input_bytes)), false),
        ("endpoint", texts(each(files, of, move |row| asked(row).endpoint), names), false),
        ("path", ids(each(files, of, move |row| asked(row).path)), false),
        ("handle_short", u32s(each(files, of, move |row| asked(row).handle.short)), false),
        ("handle_bytes", u8s(each(files, of, move |row| asked(row).handle.bytes)), false),
        ("handle_o200k", u8s(each(files, of, move |row| asked(row).handle.tokens[0])), false),
        ("handle_cl100k", u8s(each(files, of, move |row| asked(row).handle.tokens[1])), false),
        ("showing", u8s(each(files, of, move |row| asked(row).showing as u8)), false),
        ("first_line", u32s(each(files, of, move |row| asked(row).lines[0])), false),
        ("line_count", u32s(each(files, of, move |row| asked(row).lines[1])), false),
        ("answered_record", optional_u32s(each(files, of, |row| row.answered.map(|half| half.record))), true),
        ("answered_block", u32s(each(files, of, move |row| answered(row).block)), false),
        ("answered_ts", i64s(each(files, of, move |row| answered(row).ts)), false),
        ("chars", u32s(each(files, of, move |row| answered(row).chars)), false),
        ("bytes", u32s(each(files, of, move |row| answered(row).bytes)), false),
        ("body", ids(each(files, of, move |row| answered(row).body)), false),
        ("kind", u8s(each(files, of, move |row| answered(row).kind as u8)), false),
        ("status", u8s(each(files, of, move |row| answered(row).status as u8)), false),
        ("shape", u8s(each(files, of, move |row| answered(row).shape)), false),
    ]
}

const NEVER_ASKED: ToolUse = ToolUse {
    record: 0,
    block: 0,
    message: Id::NONE,
    tool: Sym(0),
    chain: 0,
    ts: 0,
    input_bytes: 0,
    endpoint: Sym(0),
    path: Id::NONE,
    handle: Handle { short: 0, bytes: 0, tokens: [0; 2] },
    showing: Showing::Lines,
    lines: [0; 2],
};
const NEVER_ANSWERED: ToolResult = ToolResult {
    record: 0,
    block: 0,
    ts: 0,
    chars: 0,
    bytes: 0,
    body: Id::NONE,
    kind: ResultKind::Absent,
    status: Status::Unanswered,
    shape: 0,
};

fn message_columns(files: &Tagged<'_>, names: &Names) -> Vec<Column> {
    fn of(file: &Rows) -> &Vec<MessageRow> {
        &file.messages
    }
    vec![
        sources(files, of),
        ("id", ids(each(files, of, |row| row.id)), false),
        ("model", texts(each(files, of, |row| row.model), names), false),
        ("chain", u32s(each(files, of, |row| row.chain)), false),
        ("ts", i64s(each(files, of, |row| row.ts)), false),
        ("copies", u32s(each(files, of, |row| row.copies)), false),
        ("input", u64s(each(files, of, |row| row.usage.input)), false),
        ("output", u64s(each(files, of, |row| row.usage.output)), false),
        ("cache_creation", u64s(each(files, of, |row| row.usage.cache_creation)), false),
        ("cache_read", u64s(each(files, of, |row| row.usage.cache_read)), false),
        ("cache_creation_5m", u64s(each(files, of, |row| row.usage.cache_creation_5m)), false),
        ("cache_creation_1h", u64s(each(files, of, |row| row.usage.cache_creation_1h)), false),
        ("has_usage", bools(each(files, of, |row| row.has_usage)), false),
        ("has_id", bools(each(files, of, |row| row.has_id)), false),
        ("finished", bools(each(files, of, |row| row.finished)), false),
    ]
}

fn mark_columns(files: &Tagged<'_>) -> Vec<Column> {
    fn of(file: &Rows) -> &Vec<MarkRow> {
        &file.marks
    }
    vec![
        sources(files, of),
        ("record", u32s(each(files, of, |row| row.record)), false),
        ("kind", u8s(each(files, of, |row| row.kind as u8)), false),
        ("id", ids(each(files, of, |row| row.id)), false),
        ("other", ids(each(files, of, |row| row.other)), false),
        ("chain", u32s(each(files, of, |row| row.chain)), false),
        ("ts", i64s(each(files, of, |row| row.ts)), false),
    ]
}

fn session_columns(files: &Tagged<'_>, names: &Names) -> Vec<Column> {
    fn of(file: &Rows) -> &Vec<SessionRow> {
        &file.sessions
    }
    vec![
        sources(files, of),
        ("session", ids(each(files, of, |row| row.session)), false),
        ("project", ids(each(files, of, |row| row.project)), false),
        ("project_name", ids(each(files, of, |row| row.project_name)), false),
        ("project_record", u32s(each(files, of, |row| row.project_record)), false),
        ("version", texts(each(files, of, |row| row.version), names), false),
        ("ts_first", i64s(each(files, of, |row| row.ts_first)), false),
        ("ts_last", i64s(each(files, of, |row| row.ts_last)), false),
        ("records", u64s(each(files, of, |row| row.records)), false),
    ]
}

fn read_chains(columns: &Columns<'_>) -> Outcome<impl Iterator<Item = ChainKey>> {
    let (session, agent) = (columns.ids("session")?, columns.ids("agent")?);
    let place = checked("place", &columns.u8("place")?, Place::from_number)?;
    Ok(place.into_iter().enumerate().map(move |(row, place)| ChainKey {
        session: session.at(row),
        agent: agent.at(row),
        place,
    }))
}

fn read_calls(columns: &Columns<'_>, names: &mut Names) -> Outcome<impl Iterator<Item = CallRow>> {
    let (call, progress) = (columns.ids("call")?, columns.bool("progress")?);
    let (asked_record, asked_block) = (columns.u32("asked_record")?, columns.u32("asked_block")?);
    let (asked_ts, message) = (columns.i64("asked_ts")?, columns.ids("message")?);
    let (tool, chain) = (columns.syms("tool", names)?, columns.u32("chain")?);
    let input_bytes = columns.u32("input_bytes")?;
    let (endpoint, path) = (columns.syms("endpoint", names)?, columns.ids("path")?);
    let (short, handle_bytes) = (columns.u32("handle_short")?, columns.u8("handle_bytes")?);
    let (o200k, cl100k) = (columns.u8("handle_o200k")?, columns.u8("handle_cl100k")?);
    let showing = columns.u8("showing")?;
    let (first_line, line_count) = (columns.u32("first_line")?, columns.u32("line_count")?);
    let (answered_record, answered_block) = (columns.u32("answered_record")?, columns.u32("answered_block")?);
    let (answered_ts, chars, bytes) = (columns.i64("answered_ts")?, columns.u32("chars")?, columns.u32("bytes")?);
    let body = columns.ids("body")?;
    let kind = checked("kind", &columns.u8("kind")?, ResultKind::from_number)?;
    let status = checked("status", &columns.u8("status")?, Status::from_number)?;
    let shape = columns.u8("shape")?;
    Ok((0..columns.0.num_rows()).map(move |row| CallRow {
        call: call.at(row),
        progress: progress.value(row),
        asked: asked_record.is_valid(row).then(|| ToolUse {
            record: asked_record.value(row),
            block: asked_block.value(row),
            message: message.at(row),
            tool: tool[row],
            chain: chain.value(row),
            ts: asked_ts.value(row),
            input_bytes: input_bytes.value(row),
            endpoint: endpoint[row],
            path: path.at(row),
            handle: Handle {
                short: short.value(row),
                bytes: handle_bytes.value(row),
                tokens: [o200k.value(row), cl100k.value(row)],
            },
            showing: Showing::from_number(showing.value(row)),
            lines: [first_line.value(row), line_count.value(row)],
        }),
        answered: answered_record.is_valid(row).then(|| ToolResult {
            record: answered_record.value(row),
            block: answered_block.value(row),
            ts: answered_ts.value(row),
            chars: chars.value(row),
            bytes: bytes.value(row),
            body: body.at(row),
            kind: kind[row],
            status: status[row],
            shape: shape.value(row),
        }),
    }))
}

fn read_messages(columns: &Columns<'_>, names: &mut Names) -> Outcome<impl Iterator<Item = MessageRow>> {
    let (id, model, chain) = (columns.ids("id")?, columns.syms("model", names)?, columns.u32("chain")?);
    let (ts, copies) = (columns.i64("ts")?, columns.u32("copies")?);
    let (input, output) = (columns.u64("input")?, columns.u64("output")?);
    let (creation, read) = (columns.u64("cache_creation")?, columns.u64("cache_read")?);
    let (creation_5m, creation_1h) = (columns.u64("cache_creation_5m")?, columns.u64("cache_creation_1h")?);
    let (has_usage, finished) = (columns.bool("has_usage")?, columns.bool("finished")?);
    let has_id = columns.bool("has_id")?;
    Ok((0..columns.0.num_rows()).map(move |row| MessageRow {
        id: id.at(row),
        model: model[row],
        chain: chain.value(row),
        ts: ts.value(row),
        copies: copies.value(row),
        usage: Usage {
            input: input.value(row),
            output: output.value(row),
            cache_creation: creation.value(row),
            cache_read: read.value(row),
            cache_creation_5m: creation_5m.value(row),
            cache_creation_1h: creation_1h.value(row),
        },
        has_usage: has_usage.value(row),
        has_id: has_id.value(row),
        finished: finished.value(row),
    }))
}

fn read_marks(columns: &Columns<'_>) -> Outcome<impl Iterator<Item = MarkRow>> {
    let (record, id, other) = (columns.u32("record")?, columns.ids("id")?, columns.ids("other")?);
    let kind = checked("kind", &columns.u8("kind")?, MarkKind::from_number)?;
    let (chain, ts) = (columns.u32("chain")?, columns.i64("ts")?);
    Ok(kind.into_iter().enumerate().map(move |(row, kind)| MarkRow {
        record: record.value(row),
        kind,
        id: id.at(row),
        other: other.at(row),
        chain: chain.value(row),
        ts: ts.value(row),
    }))
}

fn read_sessions(columns: &Columns<'_>, names: &mut Names) -> Outcome<impl Iterator<Item = SessionRow>> {
    let (session, project) = (columns.ids("session")?, columns.ids("project")?);
    let (project_name, project_record) = (columns.ids("project_name")?, columns.u32("project_record")?);
    let version = columns.syms("version", names)?;
    let (first, last, records) = (columns.i64("ts_first")?, columns.i64("ts_last")?, columns.u64("records")?);
    Ok((0..columns.0.num_rows()).map(move |row| SessionRow {
        session: session.at(row),
        project: project.at(row),
        project_name: project_name.at(row),
        project_record: project_record.value(row),
        version: version[row],
        ts_first: first.value(row),
        ts_last: last.value(row),
        records: records.value(row),
    }))
}
