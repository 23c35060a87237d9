//! `endpoints.parquet`: fingerprints of endpoints as a table that other programs can read. Names of MCP servers are
//! pseudonyms in it.

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};

use crate::base::error::Result;
use crate::frames::columns::ColumnResult;
use crate::frames::export;
use crate::frames::fingerprint::Fingerprint;

/// Version of the schema; it rises when a column is renamed, removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// Writes fingerprints. The metadata holds `devboy.schema_version`, `devboy.tool_version` and what `about` adds.
///
/// # Errors
/// Whatever the sink says.
pub fn write(out: &mut (impl Write + Send), fingerprints: &[Fingerprint], about: &[(&str, String)]) -> Result<()> {
    export::write(out, batch(fingerprints), SCHEMA_VERSION, about)
}

fn batch(rows: &[Fingerprint]) -> ColumnResult<RecordBatch> {
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
