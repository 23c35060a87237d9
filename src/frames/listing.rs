//! A listing as a Parquet file that other programs can read.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};

use crate::base::error::Result;
use crate::base::listing::{Listing, Values};
use crate::frames::export;

/// Version of the columns of all listings; it rises when a column is renamed, removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// Writes a listing. The metadata holds `devboy.schema_version`, `devboy.tool_version` and what `about` adds.
///
/// # Errors
/// Whatever the sink says.
pub fn write(out: &mut (impl Write + Send), listing: &Listing, about: &[(&str, String)]) -> Result<()> {
    let columns = listing.columns.iter().map(|(name, values)| (*name, array(values), is_nullable(values)));
    export::write(out, RecordBatch::try_from_iter_with_nullable(columns), SCHEMA_VERSION, about)
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
