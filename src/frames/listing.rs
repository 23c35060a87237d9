//! A listing as a Parquet file that other programs can read.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::error::{Error, Result};
use crate::model::listing::{Listing, Values};

/// Version of the columns of all listings; it rises when a column is renamed, removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// Writes a listing. The metadata holds `devboy.schema_version`, `devboy.tool_version` and what `about` adds.
///
/// # Errors
/// Whatever the sink says.
pub fn write(out: &mut (impl Write + Send), listing: &Listing, about: &[(&str, String)]) -> Result<()> {
    let failed = |cause: &dyn std::fmt::Display| Error::failed(format!("writing Parquet: {cause}"));
    let columns = listing.columns.iter().map(|(name, values)| (*name, array(values), is_nullable(values)));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).map_err(|cause| failed(&cause))?;
    let own = [("schema_version", SCHEMA_VERSION.to_string()), ("tool_version", env!("CARGO_PKG_VERSION").to_owned())];
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

fn array(values: &Values) -> ArrayRef {
    match values {
        Values::Texts(values) => Arc::new(StringArray::from_iter_values(values)),
        Values::Wholes(values) => Arc::new(values.iter().copied().collect::<Int64Array>()),
        Values::Reals(values) => Arc::new(values.iter().copied().collect::<Float64Array>()),
        Values::Flags(values) => Arc::new(values.iter().copied().map(Some).collect::<BooleanArray>()),
    }
}

fn is_nullable(values: &Values) -> bool {
    matches!(values, Values::Wholes(_) | Values::Reals(_))
}
