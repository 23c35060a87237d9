//! Arrow columns from plain values and back, for the tables of the lake.
//!
//! The numbers of a collected Polars frame, so that queries can return typed rows.

use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Float32Array, Int64Array,
    RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::ArrowError;
use polars::prelude::*;

use crate::base::error::{Error, Result};
use crate::base::id::Id;
use crate::base::names::{Names, Sym};

/// Result of a conversion.
pub type Outcome<T> = std::result::Result<T, ArrowError>;

/// A column by name, and whether it may hold nulls.
pub(super) type Column = (&'static str, ArrayRef, bool);

pub(super) fn u8s(values: impl Iterator<Item = u8>) -> ArrayRef {
    Arc::new(UInt8Array::from_iter_values(values))
}

pub(super) fn u16s(values: impl Iterator<Item = u16>) -> ArrayRef {
    Arc::new(UInt16Array::from_iter_values(values))
}

pub(super) fn f32s(values: impl Iterator<Item = f32>) -> ArrayRef {
    Arc::new(Float32Array::from_iter_values(values))
}

pub(super) fn blobs(values: impl Iterator<Item = impl AsRef<[u8]>>) -> ArrayRef {
    Arc::new(BinaryArray::from_iter_values(values))
}

pub(super) fn u32s(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(values))
}

pub(super) fn optional_u32s(values: impl Iterator<Item = Option<u32>>) -> ArrayRef {
    Arc::new(values.collect::<UInt32Array>())
}

pub(super) fn u64s(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

pub(super) fn i64s(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

pub(super) fn bools(values: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(values.map(Some).collect::<BooleanArray>())
}

pub(super) fn ids(values: impl Iterator<Item = Id>) -> ArrayRef {
    let mut builder = FixedSizeBinaryBuilder::with_capacity(values.size_hint().0, 16);
    for id in values {
        builder.append_value(id.0).expect("an id has 16 bytes");
    }
    Arc::new(builder.finish())
}

pub(super) fn texts(values: impl Iterator<Item = Sym>, names: &Names) -> ArrayRef {
    let keys = UInt32Array::from_iter_values(values.map(|sym| sym.0));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(names.texts()));
    Arc::new(DictionaryArray::<UInt32Type>::new(keys, texts))
}

/// The columns of a batch by name; one that is missing reads as zeros.
pub(super) struct Columns<'a>(pub(super) &'a RecordBatch);

impl Columns<'_> {
    pub(super) fn typed<T: Array + Clone + 'static>(&self, name: &str, default: impl FnOnce(usize) -> T) -> Outcome<T> {
        let Some(column) = self.0.column_by_name(name) else { return Ok(default(self.0.num_rows())) };
        let typed = column.as_any().downcast_ref::<T>().cloned();
        typed.ok_or_else(|| ArrowError::SchemaError(format!("column {name} has type {}", column.data_type())))
    }

    pub(super) fn u8(&self, name: &str) -> Outcome<UInt8Array> {
        self.typed(name, |rows| vec![0; rows].into())
    }

    pub(super) fn u16(&self, name: &str) -> Outcome<UInt16Array> {
        self.typed(name, |rows| vec![0; rows].into())
    }

    pub(super) fn f32(&self, name: &str) -> Outcome<Float32Array> {
        self.typed(name, |rows| vec![0.0; rows].into())
    }

    pub(super) fn blobs(&self, name: &str) -> Outcome<BinaryArray> {
        self.typed(name, |rows| BinaryArray::from_iter_values(std::iter::repeat_n([], rows)))
    }

    pub(super) fn u32(&self, name: &str) -> Outcome<UInt32Array> {
        self.typed(name, |rows| vec![0; rows].into())
    }

    pub(super) fn u64(&self, name: &str) -> Outcome<UInt64Array> {
        self.typed(name, |rows| vec![0; rows].into())
    }

    pub(super) fn i64(&self, name: &str) -> Outcome<Int64Array> {
        self.typed(name, |rows| vec![0; rows].into())
    }

    pub(super) fn bool(&self, name: &str) -> Outcome<BooleanArray> {
        self.typed(name, |rows| vec![false; rows].into())
    }

    pub(super) fn ids(&self, name: &str) -> Outcome<Ids> {
        let none = |rows| {
            FixedSizeBinaryArray::try_from_iter(std::iter::repeat_n([0_u8; 16], rows)).expect("all ids have 16 bytes")
        };
        self.typed(name, none).map(Ids)
    }

    pub(super) fn syms(&self, name: &str, names: &mut Names) -> Outcome<Vec<Sym>> {
        let rows = self.0.num_rows();
        let none = |rows: usize| {
            let texts: ArrayRef = Arc::new(StringArray::from(vec![""]));
            DictionaryArray::<UInt32Type>::new(vec![0; rows].into(), texts)
        };
        let column: DictionaryArray<UInt32Type> = self.typed(name, none)?;
        let texts = column.values().as_any().downcast_ref::<StringArray>();
        let texts = texts.ok_or_else(|| ArrowError::SchemaError(format!("column {name} holds no text")))?;
        // Interned on first use: the dictionary may hold more names than the batch.
        let mut known: Vec<Option<Sym>> = vec![None; texts.len()];
        Ok((0..rows)
            .map(|row| {
                let key = column.keys().value(row) as usize;
                *known[key].get_or_insert_with(|| names.intern(texts.value(key)))
            })
            .collect())
    }
}

pub(super) struct Ids(FixedSizeBinaryArray);

impl Ids {
    pub(super) fn at(&self, row: usize) -> Id {
        let mut id = Id::NONE;
        id.0.copy_from_slice(self.0.value(row));
        id
    }
}

pub(super) fn odd(name: &str, number: u8) -> ArrowError {
    ArrowError::SchemaError(format!("column {name} holds the unknown number {number}"))
}

pub(super) fn checked<T>(name: &str, column: &UInt8Array, from: fn(u8) -> Option<T>) -> Outcome<Vec<T>> {
    column.values().iter().map(|&number| from(number).ok_or_else(|| odd(name, number))).collect()
}

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
