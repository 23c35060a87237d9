//! Aggregates as Parquet that other programs can read: one batch with the versions of schema and program. Listings,
//! mined projections (`projections.parquet`), and fingerprints of endpoints (`endpoints.parquet`).

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::base::error::{Error, Result};
use crate::base::listing::{ColumnValues, Listing};
use crate::frames::columns::ColumnResult;
use crate::frames::fingerprint::Fingerprint;
use crate::frames::projection::MinedProjection;

/// Writes a batch. The metadata holds `devboy.schema_version`, `devboy.tool_version` and what `about` adds.
fn write(
    out: &mut (impl Write + Send),
    batch: ColumnResult<RecordBatch>,
    schema_version: u32,
    about: &[(&str, String)],
) -> Result<()> {
    let level = ZstdLevel::try_new(3).map_err(|cause| failed(&cause))?;
    let own = [("schema_version", schema_version.to_string()), tool_version()];
    write_batch(out, batch, Compression::ZSTD(level), own.iter().chain(about))
}

/// The version of the program, as files say it.
pub(super) fn tool_version() -> (&'static str, String) {
    ("tool_version", env!("CARGO_PKG_VERSION").to_owned())
}

fn failed(cause: &dyn std::fmt::Display) -> Error {
    Error::failed(format!("writing Parquet: {cause}"))
}

/// Writes a batch. The metadata holds what `about` says, each name behind `devboy.`.
pub(super) fn write_batch<'a>(
    out: &mut (impl Write + Send),
    batch: ColumnResult<RecordBatch>,
    compression: Compression,
    about: impl Iterator<Item = &'a (&'a str, String)>,
) -> Result<()> {
    let batch = batch.map_err(|cause| failed(&cause))?;
    let about = about.map(|(key, value)| KeyValue::new(format!("devboy.{key}"), value.clone()));
    let properties =
        WriterProperties::builder().set_compression(compression).set_key_value_metadata(Some(about.collect())).build();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties)).map_err(|cause| failed(&cause))?;
    writer.write(&batch).map_err(|cause| failed(&cause))?;
    writer.close().map_err(|cause| failed(&cause))?;
    Ok(())
}

/// Version of the columns of all listings; it rises when a column is renamed, removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// Writes a listing. The metadata holds `devboy.schema_version`, `devboy.tool_version` and what `about` adds.
pub fn write_listing(out: &mut (impl Write + Send), listing: &Listing, about: &[(&str, String)]) -> Result<()> {
    let is_nullable = |values: &ColumnValues| !matches!(values, ColumnValues::Texts(_));
    let columns = listing.columns.iter().map(|(name, values)| (*name, array(values), is_nullable(values)));
    write(out, RecordBatch::try_from_iter_with_nullable(columns), SCHEMA_VERSION, about)
}

fn array(values: &ColumnValues) -> ArrayRef {
    match values {
        ColumnValues::Texts(values) => Arc::new(StringArray::from_iter_values(values)),
        ColumnValues::Wholes(values) => Arc::new(values.iter().copied().collect::<Int64Array>()),
        ColumnValues::Reals(values) => Arc::new(values.iter().copied().collect::<Float64Array>()),
        ColumnValues::Flags(values) => Arc::new(values.iter().copied().collect::<BooleanArray>()),
    }
}

/// Version of the schema; it rises when a column is renamed, removed or changes its meaning.
pub const PROJECTIONS_VERSION: u32 = 1;

/// Writes mined projections. The metadata holds `devboy.schema_version`, `devboy.tool_version` and what `about` adds.
pub fn write_projections(
    out: &mut (impl Write + Send),
    rows: &[MinedProjection],
    about: &[(&str, String)],
) -> Result<()> {
    let texts = |of: fn(&MinedProjection) -> Option<&str>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let counts =
        |of: fn(&MinedProjection) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(rows.iter().map(of))) };
    let floats =
        |of: fn(&MinedProjection) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values(rows.iter().map(of))) };
    let batch = RecordBatch::try_from_iter_with_nullable([
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
    ]);
    write(out, batch, PROJECTIONS_VERSION, about)
}

/// Version of the schema; it rises when a column is renamed, removed or changes its meaning.
pub const ENDPOINTS_VERSION: u32 = 1;

/// Writes fingerprints; names of MCP servers are pseudonyms in them. The metadata holds `devboy.schema_version`, `devboy.tool_version` and what `about` adds.
pub fn write_endpoints(
    out: &mut (impl Write + Send),
    fingerprints: &[Fingerprint],
    about: &[(&str, String)],
) -> Result<()> {
    write(out, endpoints_batch(fingerprints), ENDPOINTS_VERSION, about)
}

fn endpoints_batch(rows: &[Fingerprint]) -> ColumnResult<RecordBatch> {
    let texts =
        |of: fn(&Fingerprint) -> Option<&str>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<StringArray>()) };
    let floats =
        |of: fn(&Fingerprint) -> Option<f64>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<Float64Array>()) };
    let counts =
        |of: fn(&Fingerprint) -> Option<u64>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<UInt64Array>()) };
    let times =
        |of: fn(&Fingerprint) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(rows.iter().map(of))) };
    RecordBatch::try_from_iter_with_nullable([
        ("endpoint_class", texts(|row| Some(&row.endpoint)), false),
        ("call_count", floats(|row| Some(row.calls)), false),
        ("events", counts(|row| Some(row.events)), false),
        ("avg_response_chars", floats(|row| Some(row.bytes_mean)), false),
        ("shape_dominant", texts(|row| row.shape_dominant.as_deref()), true),
        ("shape_mix", shape_mix(rows)?, false),
        ("dup_rate", floats(|row| Some(row.dup_rate())), false),
        ("repeat_distance_p90", counts(|row| row.repeat_distance_p90), true),
        ("format_entropy", floats(|row| Some(row.format_entropy)), false),
        ("inner_formats_top3", inner_formats(rows), false),
        ("avg_cols", floats(|row| row.columns_mean), true),
        ("avg_rows", floats(|row| row.rows_mean), true),
        ("key_stability_mean", floats(|row| row.key_stability_mean), true),
        ("first_seen_ms", times(|row| row.first_ms), false),
        ("last_seen_ms", times(|row| row.last_ms), false),
        ("source_sessions", counts(|row| Some(row.sessions)), false),
        ("tokens_baseline", floats(|row| Some(row.tokens.total())), false),
        ("dedup_savings", floats(|row| row.tokens.dedup()), true),
        ("encoder_savings", floats(|row| row.tokens.encoder()), true),
        ("combined_savings", floats(|row| row.tokens.combined()), true),
    ])
}

fn shape_mix(rows: &[Fingerprint]) -> ColumnResult<ArrayRef> {
    let mut map = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    for row in rows {
        for (shape, share) in &row.shape_mix {
            map.keys().append_value(shape);
            map.values().append_value(*share);
        }
        map.append(true)?;
    }
    Ok(Arc::new(map.finish()))
}

fn inner_formats(rows: &[Fingerprint]) -> ArrayRef {
    let mut list = ListBuilder::new(StringBuilder::new());
    for row in rows {
        row.inner_formats_top3.iter().for_each(|format| list.values().append_value(format));
        list.append(true);
    }
    Arc::new(list.finish())
}
