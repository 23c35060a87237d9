//! The numbers of a collected Polars frame, so that queries can return typed rows.

use polars::prelude::*;

use crate::base::error::{Error, Result};

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

    /// A whole column of numbers; for frames with many rows.
    pub(super) fn numbers(&self, name: &str) -> Result<Vec<u64>> {
        let column = self.0.column(name).map_err(fault)?.cast(&DataType::UInt64).map_err(fault)?;
        Ok(column.u64().map_err(fault)?.iter().map(Option::unwrap_or_default).collect())
    }

    /// A whole column of numbers that may be below 0 or missing.
    pub(super) fn signed_or_none(&self, name: &str) -> Result<Vec<Option<i64>>> {
        let column = self.0.column(name).map_err(fault)?.cast(&DataType::Int64).map_err(fault)?;
        Ok(column.i64().map_err(fault)?.iter().collect())
    }
}

/// A query that Polars refuses is a fault of ours.
pub(super) fn fault(cause: PolarsError) -> Error {
    Error::failed(format!("aggregating: {cause}")).hint("this is a fault of devboy; please report it")
}
