//! Aggregates as Parquet that other programs can read: one batch with the versions of schema and program.

use std::io::Write;

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::base::error::{Error, Result};
use crate::frames::columns::Outcome;

/// Writes a batch. The metadata holds `devboy.schema_version`, `devboy.tool_version` and what `about` adds.
///
/// # Errors
/// Whatever the sink says.
pub(super) fn write(
    out: &mut (impl Write + Send),
    batch: Outcome<RecordBatch>,
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
