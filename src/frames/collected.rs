//! The numbers of a collected Polars frame, so that queries can return typed rows.

use polars::prelude::*;

use crate::error::{Error, Result};

/// A collected frame.
pub(super) struct Collected<'a>(pub(super) &'a DataFrame);

impl Collected<'_> {
    /// A whole number; null reads as 0.
    pub(super) fn number(&self, name: &str, row: usize) -> Result<u64> {
        let value = self.0.column(name).map_err(fault)?.get(row).map_err(fault)?;
        Ok(value.extract::<u64>().unwrap_or_default())
    }

    /// The same for numbers that may be below 0.
    pub(super) fn signed(&self, name: &str, row: usize) -> Result<i64> {
        let value = self.0.column(name).map_err(fault)?.get(row).map_err(fault)?;
        Ok(value.extract::<i64>().unwrap_or_default())
    }
}

/// A query that Polars refuses is a fault of ours.
pub(super) fn fault(cause: PolarsError) -> Error {
    Error::failed(format!("aggregating: {cause}")).hint("this is a fault of devboy; please report it")
}
