//! Which columns of the lake hold hashes, and how a batch passes to disk and back: every hash in it is sealed or opened,
//! whatever table it stands in. A column of bytes whose layout is not listed here is refused.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, FixedSizeBinaryArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_schema::{ArrowError, DataType};

use crate::base::id::Id;
use crate::base::seal::{Seal, Way};
use crate::frames::columns::ColumnResult;
use crate::frames::packed;

/// Columns of 64-bit hashes.
const HASHES_64: [&str; 1] = ["value"];
/// Columns of 32-bit hashes.
const HASHES_32: [&str; 1] = ["parent"];

/// The batch as it stands on disk, or as it was before. Hashes are turned where they stand if nobody else holds the
/// batch: a single blob may be most of what is in memory.
pub(super) fn pass(batch: RecordBatch, seal: &Seal, way: Way) -> ColumnResult<RecordBatch> {
    let turn = Turn { seal, way };
    let (schema, columns, _) = batch.into_parts();
    let columns = schema.fields().iter().zip(columns);
    let columns = columns.map(|(field, column)| turn.column(field.name(), column)).collect::<ColumnResult<Vec<_>>>()?;
    RecordBatch::try_new(schema, columns)
}

/// Turns the ids and hashes of a packed timeline where they stand; rows of another edition are made anew and stay as they
/// are.
pub(super) fn turn_packed(bytes: &mut [u8], seal: &Seal, way: Way) {
    let turn = Turn { seal, way };
    let Some((ids, hashes)) = packed::hash_places(bytes) else { return };
    bytes[ids].chunks_exact_mut(16).for_each(|id| turn.id(id));
    bytes[hashes].chunks_exact_mut(8).for_each(|hash| turn.hash_64(hash));
}

/// Some bytes of a packed timeline as they stand on disk; of all of them a copy would be as much again.
pub(super) fn sealed_part(bytes: &[u8], place: &Range<usize>, seal: &Seal) -> Vec<u8> {
    let turn = Turn { seal, way: Way::ToDisk };
    let (ids, hashes) = packed::hash_places(bytes).unwrap_or_default();
    // With room for an id that is cut at either end.
    let (start, end) = (place.start.saturating_sub(16), bytes.len().min(place.end + 16));
    let mut part = bytes[start..end].to_vec();
    let mut whole = |all: Range<usize>, width: usize, turn: &dyn Fn(&mut [u8])| {
        let first = all.start + start.saturating_sub(all.start).next_multiple_of(width);
        let here = part.get_mut(first - start.min(first)..all.end.min(end).saturating_sub(start));
        here.into_iter().for_each(|here| here.chunks_exact_mut(width).for_each(turn));
    };
    whole(ids, 16, &|id| turn.id(id));
    whole(hashes, 8, &|hash| turn.hash_64(hash));
    part.truncate(place.end - start);
    part.drain(..place.start - start);
    part
}

/// The bytes to change them: themselves if they are nobody else's.
fn changeable(bytes: Buffer) -> MutableBuffer {
    bytes.into_mutable().unwrap_or_else(|shared| MutableBuffer::from(shared.as_slice().to_vec()))
}

/// Puts what `turn` makes of bytes, if there are so many, in their place.
fn turned<const N: usize>(bytes: &mut [u8], turn: impl FnOnce([u8; N]) -> [u8; N]) {
    if let Ok(whole) = <&mut [u8; N]>::try_from(bytes) {
        *whole = turn(*whole);
    }
}

/// Goes through records of so many bytes each; none if some bytes are left over.
fn records(bytes: &mut [u8], width: usize, turn: impl FnMut(&mut [u8])) -> Option<()> {
    let mut records = bytes.chunks_exact_mut(width);
    records.by_ref().for_each(turn);
    records.into_remainder().is_empty().then_some(())
}

#[derive(Clone, Copy)]
struct Turn<'s> {
    seal: &'s Seal,
    way: Way,
}

impl Turn<'_> {
    fn column(self, name: &str, column: ArrayRef) -> ColumnResult<ArrayRef> {
        // What is made of the data of a column holds it alone once the column is gone.
        let data = |column: ArrayRef| column.to_data();
        Ok(match column.data_type() {
            DataType::FixedSizeBinary(16) => self.ids(data(column).into())?,
            DataType::UInt64 if HASHES_64.contains(&name) => {
                let hashes = UInt64Array::from(data(column));
                Arc::new(hashes.unary::<_, arrow_array::types::UInt64Type>(|hash| self.seal.hash_64(self.way, hash)))
            }
            DataType::UInt32 if HASHES_32.contains(&name) => {
                let hashes = UInt32Array::from(data(column));
                Arc::new(hashes.unary::<_, arrow_array::types::UInt32Type>(|hash| self.seal.hash_32(self.way, hash)))
            }
            DataType::Binary => self.blobs(name, data(column).into())?,
            _ => column,
        })
    }

    fn ids(self, ids: FixedSizeBinaryArray) -> ColumnResult<ArrayRef> {
        let (width, bytes, nulls) = ids.into_parts();
        let mut bytes = changeable(bytes);
        bytes.as_slice_mut().chunks_exact_mut(16).for_each(|id| self.id(id));
        Ok(Arc::new(FixedSizeBinaryArray::try_new(width, bytes.into(), nulls)?))
    }

    fn blobs(self, name: &str, blobs: BinaryArray) -> ColumnResult<ArrayRef> {
        let odd =
            || ArrowError::SchemaError(format!("column {name} holds something that is not laid out as it should be"));
        let (offsets, bytes, nulls) = blobs.into_parts();
        let mut bytes = changeable(bytes);
        for bounds in offsets.windows(2) {
            let blob = &mut bytes.as_slice_mut()[bounds[0] as usize..bounds[1] as usize];
            self.blob(name, blob).ok_or_else(odd)?;
        }
        Ok(Arc::new(BinaryArray::try_new(offsets, bytes.into(), nulls)?))
    }

    /// Turns the hashes in what stands in a column of bytes; none if that is not laid out as it should be.
    fn blob(self, name: &str, bytes: &mut [u8]) -> Option<()> {
        match name {
            // The hashes of a packed timeline are sealed as it is cut in rows, see [`sealed_part`].
            "line_sizes" | "lost" | packed::COLUMN => Some(()),
            "line_witnesses" => records(bytes, 8, |hash| self.hash_64(hash)),
            "texts" => records(bytes, 4, |hash| self.hash_32(hash)),
            "values" => records(bytes, 14, |record| {
                self.hash_64(&mut record[..8]);
                self.hash_32(&mut record[8..12]);
            }),
            "near_witness" if bytes.is_empty() => Some(()),
            // An id, and then records that begin with one.
            "near_witness" => {
                let (id, rest) = bytes.split_at_mut_checked(16)?;
                self.id(id);
                records(rest, 44, |record| self.id(&mut record[..16]))
            }
            _ => None,
        }
    }

    fn id(self, bytes: &mut [u8]) {
        turned(bytes, |id| self.seal.id(self.way, Id(id)).0);
    }

    fn hash_64(self, bytes: &mut [u8]) {
        turned(bytes, |hash| self.seal.hash_64(self.way, u64::from_le_bytes(hash)).to_le_bytes());
    }

    fn hash_32(self, bytes: &mut [u8]) {
        turned(bytes, |hash| self.seal.hash_32(self.way, u32::from_le_bytes(hash)).to_le_bytes());
    }
}
