//! `projections.parquet`: mined projections as a table that other programs can read.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};

use crate::base::error::Result;
use crate::frames::columns::Outcome;
use crate::frames::export;
use crate::frames::projection::MinedProjection;

/// Version of the schema; it rises when a column is renamed, removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// Writes mined projections. The metadata holds `devboy.schema_version`, `devboy.tool_version` and what `about` adds.
///
/// # Errors
/// Whatever the sink says.
pub fn write(out: &mut (impl Write + Send), rows: &[MinedProjection], about: &[(&str, String)]) -> Result<()> {
    export::write(out, batch(rows), SCHEMA_VERSION, about)
}

fn batch(rows: &[MinedProjection]) -> Outcome<RecordBatch> {
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
        ("held", texts(|row| row.held.map(|held| held.key())), true),
    ])
}
