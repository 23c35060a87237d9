//! Arrow columns from plain values and back, for the tables of the lake.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Float32Array, Int64Array,
    RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::ArrowError;

use crate::base::id::Id;
use crate::base::names::{Names, Sym};

/// Result of a conversion.
pub type ColumnResult<T> = Result<T, ArrowError>;

/// A column by name, and whether it may hold nulls.
pub(super) type Column = (&'static str, ArrayRef, bool);

pub(super) fn blobs(values: impl Iterator<Item = impl AsRef<[u8]>>) -> ArrayRef {
    Arc::new(BinaryArray::from_iter_values(values))
}

pub(super) fn u32s(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(values))
}

fn ids(values: impl Iterator<Item = Id>) -> ArrayRef {
    let mut builder = FixedSizeBinaryBuilder::with_capacity(values.size_hint().0, 16);
    for id in values {
        builder.append_value(id.0).expect("an id has 16 bytes");
    }
    Arc::new(builder.finish())
}

fn texts(values: impl Iterator<Item = Sym>, names: &Names) -> ArrayRef {
    let keys = UInt32Array::from_iter_values(values.map(|sym| sym.0));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(names.texts()));
    Arc::new(DictionaryArray::<UInt32Type>::new(keys, texts))
}

/// The columns of a batch by name; one that is missing reads as zeros.
pub(super) struct BatchColumns<'a>(pub(super) &'a RecordBatch);

impl BatchColumns<'_> {
    fn typed<T: Array + Clone + 'static>(&self, name: &str, default: impl FnOnce(usize) -> T) -> ColumnResult<T> {
        let Some(column) = self.0.column_by_name(name) else { return Ok(default(self.0.num_rows())) };
        let typed = column.as_any().downcast_ref::<T>().cloned();
        typed.ok_or_else(|| ArrowError::SchemaError(format!("column {name} has type {}", column.data_type())))
    }

    pub(super) fn blobs(&self, name: &str) -> ColumnResult<BinaryArray> {
        self.typed(name, |rows| BinaryArray::from_iter_values(std::iter::repeat_n([], rows)))
    }

    pub(super) fn u32(&self, name: &str) -> ColumnResult<UInt32Array> {
        self.typed(name, |rows| vec![0; rows].into())
    }

    pub(super) fn ids(&self, name: &str) -> ColumnResult<FixedSizeBinaryArray> {
        let ids = self.typed(name, |rows| {
            FixedSizeBinaryArray::try_from_iter(std::iter::repeat_n([0_u8; 16], rows)).expect("all ids have 16 bytes")
        })?;
        if ids.value_length() != 16 {
            return Err(ArrowError::SchemaError(format!("column {name} holds ids of {} bytes", ids.value_length())));
        }
        Ok(ids)
    }

    fn syms(&self, name: &str, names: &mut Names) -> ColumnResult<Vec<Sym>> {
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

/// A value that stands in a column.
pub(super) trait ColumnValue: Sized {
    /// Whether the column may hold nulls.
    const NULLABLE: bool;

    /// The column of some values.
    fn column(values: impl Iterator<Item = Self>, names: &Names) -> ArrayRef;

    /// Hands on the values of a column, row by row; zeros of one that is missing.
    fn each(
        columns: &BatchColumns<'_>,
        name: &str,
        names: &mut Names,
        put: impl FnMut(usize, Self),
    ) -> ColumnResult<()>;
}

macro_rules! value {
    ($value:ty, $nullable:expr, |$values:ident, $texts:ident| $write:expr, |$from:ident, $name:ident, $names:ident| $read:expr, |$column:ident, $row:ident| $at:expr) => {
        impl ColumnValue for $value {
            const NULLABLE: bool = $nullable;

            fn column($values: impl Iterator<Item = Self>, $texts: &Names) -> ArrayRef {
                $write
            }

            fn each($from: &BatchColumns<'_>, $name: &str, $names: &mut Names, mut put: impl FnMut(usize, Self)) -> ColumnResult<()> {
                let $column = $read?;
                (0..$from.0.num_rows()).for_each(|$row| put($row, $at));
                Ok(())
            }
        }
    };
    ($($value:ty: $array:ty),*) => {$(
        value!(
            $value, false, |values, _names| Arc::new(<$array>::from(values.collect::<Vec<_>>())),
            |from, name, _names| from.typed::<$array>(name, |rows| vec![Self::default(); rows].into()),
            |column, row| column.value(row)
        );
    )*};
}

value!(u8: UInt8Array, u16: UInt16Array, u32: UInt32Array, u64: UInt64Array, i64: Int64Array, f32: Float32Array, bool: BooleanArray);
value!(Id, false, |values, _names| ids(values), |from, name, _names| from.ids(name), |column, row| Id(column
    .value(row)
    .try_into()
    .unwrap_or_default()));
value!(Sym, false, |values, names| texts(values, names), |from, name, names| from.syms(name, names), |column, row| {
    column[row]
});
value!(Vec<u8>, false, |values, _names| blobs(values), |from, name, _names| from.blobs(name), |column, row| column
    .value(row)
    .to_vec());
value!(Box<[u8]>, false, |values, _names| blobs(values), |from, name, _names| from.blobs(name), |column, row| column
    .value(row)
    .into());
value!(
    Option<u32>,
    true,
    |values, _names| Arc::new(values.collect::<UInt32Array>()),
    |from, name, _names| from.u32(name),
    |column, row| column.is_valid(row).then(|| column.value(row))
);

/// What a column has of a row, and how the row gets it back.
type ColumnField<R, T> = (fn(&R) -> T, fn(&mut R, T));
/// The same of a value that stands as a number.
type CodedField<R, T> = (fn(&R) -> u8, fn(&mut R, T));
type Write<R> = Box<dyn Fn(&[&R], &Names) -> ArrayRef>;
type ReadColumn<R> = Box<dyn Fn(&BatchColumns<'_>, &mut Names, &mut [R]) -> ColumnResult<()>>;

/// What a table holds of a row and how the row gets it back, column by column; read in their order.
pub(super) struct RowSchema<R>(Vec<(&'static str, bool, Write<R>, ReadColumn<R>)>);

impl<R: Clone + Default + 'static> RowSchema<R> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a column.
    pub(super) fn column<T: ColumnValue + 'static>(
        mut self,
        name: &'static str,
        (get, set): ColumnField<R, T>,
    ) -> Self {
        let write: Write<R> = Box::new(move |rows, names| T::column(rows.iter().map(|row| get(row)), names));
        let read: ReadColumn<R> =
            Box::new(move |from, names, rows| T::each(from, name, names, |row, value| set(&mut rows[row], value)));
        self.0.push((name, T::NULLABLE, write, read));
        self
    }

    /// Adds a column of numbers that stand for something; a number that stands for nothing is damage.
    pub(super) fn coded<T: 'static>(
        mut self,
        name: &'static str,
        known: fn(u8) -> Option<T>,
        (get, set): CodedField<R, T>,
    ) -> Self {
        let write: Write<R> = Box::new(move |rows, names| u8::column(rows.iter().map(|row| get(row)), names));
        let read: ReadColumn<R> = Box::new(move |from, names, rows| {
            let mut unknown = None;
            u8::each(from, name, names, |row, number| match known(number) {
                Some(value) => set(&mut rows[row], value),
                None => unknown = Some(number),
            })?;
            let odd = |number| ArrowError::SchemaError(format!("column {name} holds the unknown number {number}"));
            unknown.map_or(Ok(()), |number| Err(odd(number)))
        });
        self.0.push((name, false, write, read));
        self
    }

    /// The columns of some rows.
    pub(super) fn columns(&self, rows: &[&R], names: &Names) -> Vec<Column> {
        self.0.iter().map(|(name, nullable, write, _)| (*name, write(rows, names), *nullable)).collect()
    }

    /// Those rows of some files that stand at these places, from the first file on, each with the number of its source. `None`
    /// where no row stands (but at the start: then a batch of no rows).
    pub(super) fn batch<'r, F>(
        &self,
        files: &'r [(u32, &F)],
        names: &Names,
        places: Range<usize>,
        of: impl Fn(&'r F) -> &'r [R],
    ) -> Option<ColumnResult<RecordBatch>> {
        let is_start = places.start == 0;
        let mut start = 0;
        let rows = files.iter().flat_map(|&(source, file)| {
            let all = of(file);
            let here = |place: usize| place.saturating_sub(start).min(all.len());
            let rows = &all[here(places.start)..here(places.end)];
            start += all.len();
            rows.iter().map(move |row| (source, row))
        });
        let (sources, rows): (Vec<u32>, Vec<&R>) = rows.unzip();
        if rows.is_empty() && !is_start {
            return None;
        }
        let sources = ("source", u32s(sources.into_iter()), false);
        Some(RecordBatch::try_from_iter_with_nullable(std::iter::once(sources).chain(self.columns(&rows, names))))
    }

    /// The rows of a batch.
    pub(super) fn rows(&self, batch: &BatchColumns<'_>, names: &mut Names) -> ColumnResult<Vec<R>> {
        let mut rows = vec![R::default(); batch.0.num_rows()];
        self.0.iter().try_for_each(|(.., read)| read(batch, names, &mut rows))?;
        Ok(rows)
    }
}

/// A column that is a field of the row.
macro_rules! field {
    ($($path:tt)+) => {
        (|row| row.$($path)+, |row, value| row.$($path)+ = value)
    };
}

/// Adds columns that are fields of the row, or of a part of it, and called like them.
macro_rules! fields {
    ($schema:expr, $($field:ident),+) => {
        $schema$(.column(stringify!($field), field!($field)))+
    };
    ($schema:expr, $part:ident: $($field:ident),+) => {
        $schema$(.column(stringify!($field), field!($part.$field)))+
    };
}

/// A column that is a field of a part that not every row has; the part is made by a column before it.
macro_rules! part {
    ($part:ident.$($path:tt)+) => {
        (
            |row| row.$part.map(|part| part.$($path)+).unwrap_or_default(),
            |row, value| {
                if let Some(part) = &mut row.$part {
                    part.$($path)+ = value;
                }
            },
        )
    };
}

/// The same of a field with a number.
macro_rules! coded_part {
    ($part:ident.$field:ident) => {
        (
            |row| row.$part.map_or(0, |part| part.$field as u8),
            |row, value| row.$part.iter_mut().for_each(|part| part.$field = value),
        )
    };
}

pub(super) use {coded_part, field, fields, part};
