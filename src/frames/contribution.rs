//! Contributions of people and pools of them as Parquet: tall tables of integer counts. Reading is strict, since such a
//! file may come from anybody.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use sha2::{Digest, Sha256};

use crate::base::contained::contained;
use crate::base::error::Result;
use crate::base::id::Id;
use crate::frames::export::{tool_version, write_batch};

/// Version of the columns and of what they mean.
pub const SCHEMA_VERSION: u32 = 1;
/// What a file of counts says that it is.
const CONTRIBUTION: &str = "contribution";
/// What a file says last of itself: the checksum of the rest.
const CHECKSUM: &str = "checksum";
/// Rows that are read at a time. A column can repeat a long text in every row, so that memory is bounded by this times the
/// size of the file.
const BATCH_ROWS: usize = 64;
/// Longest text in a column, in bytes.
pub const TEXT_BYTES_MAX: usize = 200;

/// What a count is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountSubject {
    /// `endpoint`, `tool` or `edge`.
    pub kind: String,
    /// Name of the endpoint or tool; of an edge the earlier tool.
    pub name: String,
    /// The tool of an endpoint; of an edge the later tool; empty for a tool.
    pub other: String,
    /// Steps between the tools of an edge; 0 otherwise.
    pub lag: u32,
}

/// A count.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count {
    pub subject: CountSubject,
    /// What is counted.
    pub measure: String,
    /// Bin of a histogram or category; 0 for a plain number.
    pub bin: u32,
    pub count: i64,
}

/// What one person adds of one week.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contribution {
    /// Pseudonym of the person.
    pub user: String,
    /// Monday of the week, `2026-10-26`.
    pub week: String,
    /// Tells the team's secret from others.
    pub secret: String,
    /// Marks of sessions of the week, by which the same logs under two names are known.
    pub marks: Vec<String>,
    /// Counts, each key once.
    pub counts: Vec<Count>,
}

/// A published row.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PooledCount {
    /// Monday of the week.
    pub week: String,
    /// Number of the batch of people within the week.
    pub batch: u32,
    /// The count over the people of the batch.
    pub count: Count,
    /// People it stands on.
    pub people: i64,
}

/// A pool as it is published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Tells the team's secret from others.
    pub secret: String,
    /// Rows, sorted.
    pub rows: Vec<PooledCount>,
}

/// Columns with their names. Those of no rows are what a file is held against.
pub(super) type NamedColumns = Vec<(&'static str, ArrayRef)>;

fn fields(columns: &NamedColumns) -> Vec<Field> {
    columns.iter().map(|(name, values)| Field::new(*name, values.data_type().clone(), false)).collect()
}

/// The bytes of a contribution file. Nothing in it is compressed, so that its size bounds what a reader has to hold.
pub fn write(contribution: &Contribution) -> Result<Vec<u8>> {
    encoded(CONTRIBUTION, count_columns(contribution.counts.iter()), &about(contribution))
}

/// What a file of a person's week says of itself.
pub(super) fn about(of: &Contribution) -> [(&'static str, String); 4] {
    let Contribution { user, week, secret, marks, .. } = of;
    [("user", user.clone()), ("week", week.clone()), ("secret", secret.clone()), ("marks", marks.join(","))]
}

/// The bytes of a pool.
pub fn write_pool(pool: &Pool) -> Result<Vec<u8>> {
    encoded("pool", pooled_columns(&pool.rows), &[("secret", pool.secret.clone())])
}

fn pooled_columns(rows: &[PooledCount]) -> NamedColumns {
    let week = texts(rows.iter().map(|row| &*row.week));
    let mut columns = vec![("week", week), ("batch", ints(rows.iter().map(|row| row.batch)))];
    columns.extend(count_columns(rows.iter().map(|row| &row.count)));
    columns.push(("people", longs(rows.iter().map(|row| row.people))));
    columns
}

fn count_columns<'a>(rows: impl Iterator<Item = &'a Count> + Clone) -> NamedColumns {
    vec![
        ("kind", texts(rows.clone().map(|row| &*row.subject.kind))),
        ("name", texts(rows.clone().map(|row| &*row.subject.name))),
        ("other", texts(rows.clone().map(|row| &*row.subject.other))),
        ("lag", ints(rows.clone().map(|row| row.subject.lag))),
        ("measure", texts(rows.clone().map(|row| &*row.measure))),
        ("bin", ints(rows.clone().map(|row| row.bin))),
        ("count", longs(rows.map(|row| row.count))),
    ]
}

pub(super) fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn ints(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(values.map(|value| i32::try_from(value).unwrap_or(i32::MAX)).map(Some).collect::<Int32Array>())
}

pub(super) fn longs(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

pub(super) fn encoded(what: &str, columns: NamedColumns, about: &[(&str, String)]) -> Result<Vec<u8>> {
    let version = [("schema_version", SCHEMA_VERSION.to_string())];
    encoded_as(&version, what, columns, about)
}

pub(super) fn encoded_as(
    version: &[(&str, String)],
    what: &str,
    columns: NamedColumns,
    about: &[(&str, String)],
) -> Result<Vec<u8>> {
    let schema = Schema::new(fields(&columns));
    let batch = RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, values)| values).collect());
    let own = [tool_version(), ("what", what.to_owned())];
    let mut said: Vec<_> = version.iter().chain(&own).chain(about).cloned().collect();
    if let Ok(batch) = &batch {
        said.push((CHECKSUM, checksum(&said, std::slice::from_ref(batch))));
    }
    let mut bytes = Vec::new();
    write_batch(&mut bytes, batch, Compression::UNCOMPRESSED, said.iter())?;
    Ok(bytes)
}

/// Of all that a file says of itself and of every value, in whatever batches these are.
fn checksum<K: AsRef<str>>(said: &[(K, String)], batches: &[RecordBatch]) -> String {
    let mut parts = Sha256::new();
    let mut add = |part: &[u8]| {
        parts.update((part.len() as u64).to_le_bytes());
        parts.update(part);
    };
    for (key, value) in said {
        add(key.as_ref().as_bytes());
        add(value.as_bytes());
    }
    for (batch, row) in rows_of(batches) {
        for column in batch.columns() {
            if let Some(texts) = column.as_string_opt::<i32>() {
                add(texts.value(row).as_bytes());
            } else if let Some(ints) = column.as_primitive_opt::<Int32Type>() {
                add(&ints.value(row).to_le_bytes());
            } else if let Some(longs) = column.as_primitive_opt::<Int64Type>() {
                add(&longs.value(row).to_le_bytes());
            }
        }
    }
    Id::pseudonym_of(parts).to_string()
}

/// Every row, as its batch and its place there.
pub(super) fn rows_of(batches: &[RecordBatch]) -> impl Iterator<Item = (&RecordBatch, usize)> {
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)))
}

/// Why a file is refused, in words that follow its name.
pub type FileRefusal = String;
/// What was read, or why not.
pub type ContributionResult<T> = std::result::Result<T, FileRefusal>;

/// Reads a contribution of at most so many rows.
pub fn read(bytes: Vec<u8>, rows_max: usize) -> ContributionResult<Contribution> {
    let (mut contribution, batches) = read_table(bytes, CONTRIBUTION, &count_columns(std::iter::empty()), rows_max)?;
    let counts = rows_of(&batches).map(|(batch, row)| count(batch, 0, row));
    contribution.counts = counts.collect::<ContributionResult<_>>()?;
    Ok(contribution)
}

/// Rows of a person's week, and whose they are.
pub(super) fn read_table(
    bytes: Vec<u8>,
    what: &str,
    columns: &NamedColumns,
    rows_max: usize,
) -> ContributionResult<(Contribution, Vec<RecordBatch>)> {
    let table = table(bytes, what, columns, rows_max)?;
    let said = |key: &str| table.said(key).map(str::to_owned).ok_or_else(|| format!("it does not say its {key}"));
    let marks = said("marks")?.split(',').filter(|mark| !mark.is_empty()).map(str::to_owned).collect();
    let of = Contribution { user: said("user")?, week: said("week")?, secret: said("secret")?, marks, counts: vec![] };
    Ok((of, table.batches))
}

/// Reads a pool.
pub fn read_pool(bytes: Vec<u8>, rows_max: usize) -> ContributionResult<Pool> {
    let table = table(bytes, "pool", &pooled_columns(&[]), rows_max)?;
    let pooled = rows_of(&table.batches).map(|(batch, row)| {
        Ok(PooledCount {
            week: text(batch, 0, row),
            batch: small(batch, 1, row)?,
            count: count(batch, 2, row)?,
            people: batch.column(9).as_primitive::<Int64Type>().value(row),
        })
    });
    let rows = pooled.collect::<ContributionResult<_>>()?;
    Ok(Pool { secret: table.said("secret").unwrap_or_default().to_owned(), rows })
}

/// What a file says of itself, and its rows.
struct ContributionFile {
    about: Vec<(String, String)>,
    batches: Vec<RecordBatch>,
}

impl ContributionFile {
    fn said(&self, key: &str) -> Option<&str> {
        self.about.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// A file with exactly these columns. A reader that panics on hostile bytes has refused them.
fn table(bytes: Vec<u8>, what: &str, columns: &NamedColumns, rows_max: usize) -> ContributionResult<ContributionFile> {
    let (what, fields) = (what.to_owned(), fields(columns));
    let read = move || table_of(bytes.into(), &what, &fields, rows_max);
    contained(read).unwrap_or_else(|| Err("it is no Parquet file: damaged".to_owned()))
}

fn table_of(bytes: Bytes, what: &str, fields: &[Field], rows_max: usize) -> ContributionResult<ContributionFile> {
    let damaged = |cause: &dyn std::fmt::Display| format!("it is no Parquet file: {cause}");
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|cause| damaged(&cause))?;
    let metadata = reader.metadata();
    let about = metadata.file_metadata().key_value_metadata().into_iter().flatten().filter_map(entry).collect();
    let mut table = ContributionFile { about, batches: Vec::new() };
    match table.said("schema_version") {
        None => return Err("no devboy wrote it: it names no schema version".to_owned()),
        Some(version) if version != SCHEMA_VERSION.to_string() => {
            return Err(format!("its schema version is {version}, this devboy reads {SCHEMA_VERSION}"));
        }
        Some(_) => {}
    }
    if table.said("what") != Some(what) {
        return Err(format!("it is no {what}"));
    }
    let plain: Vec<Field> = reader.schema().fields().iter().map(bare).collect();
    if plain != fields {
        return Err("its columns are others than the schema has".to_owned());
    }
    let chunks = || metadata.row_groups().iter().flat_map(|group| group.columns());
    if chunks().any(|chunk| chunk.compression() != Compression::UNCOMPRESSED) {
        return Err("it is compressed, so that its size says nothing of what it holds".to_owned());
    }
    if usize::try_from(metadata.file_metadata().num_rows()).map_or(true, |rows| rows > rows_max) {
        return Err(format!("it has {} rows; at most {rows_max} are read", metadata.file_metadata().num_rows()));
    }
    let mut rows = 0;
    for batch in reader.with_batch_size(BATCH_ROWS).build().map_err(|cause| damaged(&cause))? {
        let batch = batch.map_err(|cause| damaged(&cause))?;
        rows += batch.num_rows();
        let texts = batch.columns().iter().filter_map(|column| column.as_string_opt::<i32>());
        if rows > rows_max || texts.flat_map(|column| column.iter().flatten()).any(|text| text.len() > TEXT_BYTES_MAX) {
            return Err("it holds more than its head says, or texts that are no names".to_owned());
        }
        table.batches.push(batch);
    }
    let others: Vec<_> = table.about.iter().filter(|(key, _)| key != CHECKSUM).cloned().collect();
    if table.said(CHECKSUM).is_none_or(|told| told != checksum(&others, &table.batches)) {
        return Err("it is damaged: its checksum does not fit".to_owned());
    }
    Ok(table)
}

fn entry(pair: &KeyValue) -> Option<(String, String)> {
    Some((pair.key.strip_prefix("devboy.")?.to_owned(), pair.value.clone()?))
}

fn bare(field: &Arc<Field>) -> Field {
    Field::new(field.name(), field.data_type().clone(), field.is_nullable())
}

fn count(batch: &RecordBatch, first: usize, row: usize) -> ContributionResult<Count> {
    Ok(Count {
        subject: CountSubject {
            kind: text(batch, first, row),
            name: text(batch, first + 1, row),
            other: text(batch, first + 2, row),
            lag: small(batch, first + 3, row)?,
        },
        measure: text(batch, first + 4, row),
        bin: small(batch, first + 5, row)?,
        count: batch.column(first + 6).as_primitive::<Int64Type>().value(row),
    })
}

pub(super) fn text(batch: &RecordBatch, column: usize, row: usize) -> String {
    batch.column(column).as_string::<i32>().value(row).to_owned()
}

fn small(batch: &RecordBatch, column: usize, row: usize) -> ContributionResult<u32> {
    let value = batch.column(column).as_primitive::<Int32Type>().value(row);
    u32::try_from(value).map_err(|_| format!("it holds the negative number {value}"))
}

#[cfg(test)]
#[path = "../tests/odd_contributions.rs"]
pub mod hostile;
