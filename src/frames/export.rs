//! Aggregates as Parquet that other programs can read: one batch with the versions of schema and program. Listings, and
//! mined projections (`projections.parquet`).

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::base::error::{Error, Result};
use crate::base::listing::{ColumnValues, Listing};
use crate::frames::columns::ColumnResult;
use crate::frames::projection::MinedProjection;

/// Writes a batch. The metadata holds `devboy.schema_version`, `devboy.tool_version` and what `about` adds.
///
/// # Errors
/// Whatever the sink says.
pub(super) fn write(
    out: &mut (impl Write + Send),
    batch: ColumnResult<RecordBatch>,
    schema_version: u32,
    about: &[(&str, String)],
) -> Result<()> {
    let failed = |cause: &dyn std::fmt::Display| Error::failed(format!("writing Parquet: {cause}"));
    let batch = batch.map_err(|cause| failed(&cause))?;
    let own = [("schema_version", schema_version.to_string()), ("tool_version", env!("CARGO_PKG_VERSION").to_owned())];
    let about = own.iter().chain(about).map(|(key, value)| KeyValue::new(format!("devboy.{key}"), value.clone()));
    let level = ZstdLevel::try_new(3).map_err(|cause| failed(&cause))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_key_value_metadata(Some(about.collect()))
        .build();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties)).map_err(|cause| failed(&cause))?;
    writer.write(&batch).map_err(|cause| failed(&cause))?;
    writer.close().map_err(|cause| failed(&cause))?;
    Ok(())
}

/// Version of the columns of all listings; it rises when a column is renamed, removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// Writes a listing. The metadata holds `devboy.schema_version`, `devboy.tool_version` and what `about` adds.
///
/// # Errors
/// Whatever the sink says.
pub fn write_listing(out: &mut (impl Write + Send), listing: &Listing, about: &[(&str, String)]) -> Result<()> {
    let columns = listing.columns.iter().map(|(name, values)| (*name, array(values), is_nullable(values)));
    write(out, RecordBatch::try_from_iter_with_nullable(columns), SCHEMA_VERSION, about)
}

fn array(values: &ColumnValues) -> ArrayRef {
    match values {
        ColumnValues::Texts(values) => Arc::new(StringArray::from_iter_values(values)),
        ColumnValues::Wholes(values) => Arc::new(values.iter().copied().collect::<Int64Array>()),
        ColumnValues::Reals(values) => Arc::new(values.iter().copied().collect::<Float64Array>()),
        ColumnValues::Flags(values) => Arc::new(values.iter().copied().map(Some).collect::<BooleanArray>()),
    }
}

fn is_nullable(values: &ColumnValues) -> bool {
    matches!(values, ColumnValues::Wholes(_) | ColumnValues::Reals(_))
}

/// Version of the schema; it rises when a column is renamed, removed or changes its meaning.
pub const PROJECTIONS_VERSION: u32 = 1;

/// Writes mined projections. The metadata holds `devboy.schema_version`, `devboy.tool_version` and what `about` adds.
///
/// # Errors
/// Whatever the sink says.
pub fn write_projections(
    out: &mut (impl Write + Send),
    rows: &[MinedProjection],
    about: &[(&str, String)],
) -> Result<()> {
    write(out, projections_batch(rows), PROJECTIONS_VERSION, about)
}

fn projections_batch(rows: &[MinedProjection]) -> ColumnResult<RecordBatch> {
    let texts = |of: fn(&MinedProjection) -> Option<&str>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let counts =
        |of: fn(&MinedProjection) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(rows.iter().map(of))) };
    let floats =
        |of: fn(&MinedProjection) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values(rows.iter().map(of))) };
    RecordBatch::try_from_iter_with_nullable([
        ("from", texts(|row| Some(&row.from)), false),
        ("to", texts(|row| Some(&row.to)), false),
        ("argument", texts(|row| Some(&row.argument)), false),
        ("extractor", texts(|row| Some(&row.extractor)), false),
        ("projection", texts(|row| row.spelling.as_ref().map(|link| &*link.projection)), true),
        ("projection_arg", texts(|row| row.spelling.as_ref().map(|link| &*link.projection_arg)), true),
        ("opportunities", counts(|row| row.opportunities), false),
        ("hits", counts(|row| row.hits), false),
        ("top1", counts(|row| row.top1), false),
        ("top3", counts(|row| row.top3), false),
        ("chance", floats(|row| row.chance), false),
        ("sessions_seen", counts(|row| row.sessions_seen), false),
        ("sessions", counts(|row| row.sessions), false),
        ("values", counts(|row| row.values), false),
        ("forward", counts(|row| row.forward), false),
        ("reversed", counts(|row| row.reversed), false),
        ("sole", counts(|row| row.sole), false),
        ("p", floats(|row| row.p), false),
        ("held", texts(|row| row.held.map(|held| held.into_str())), true),
    ])
}
