//! Which columns of the lake hold hashes, and how a batch passes to disk and back: every hash in it is sealed or opened,
//! whatever table it stands in. A column of bytes whose layout is not listed here is refused.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, FixedSizeBinaryArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_schema::{ArrowError, DataType};

use crate::base::id::Id;
use crate::base::seal::Seal;
use crate::frames::columns::ColumnResult;
use crate::frames::packed;

/// Columns of 64-bit hashes.
const HASHES_64: [&str; 1] = ["value"];
/// Columns of 32-bit hashes.
const HASHES_32: [&str; 1] = ["parent"];

/// Which way a batch goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Hashes are sealed.
    ToDisk,
    /// Hashes are opened.
    FromDisk,
}

/// A part of a packed record.
#[derive(Clone, Copy)]
enum RecordPart {
    /// So many bytes of numbers.
    Plain(usize),
    Id,
    Hash64,
    Hash32,
}

/// How the records in a column of bytes are laid out: what comes once, and what comes again and again.
struct RecordLayout {
    column: &'static str,
    once: &'static [RecordPart],
    each: &'static [RecordPart],
}

const LAYOUTS: [RecordLayout; 7] = [
    RecordLayout { column: "values", once: &[], each: &[RecordPart::Hash64, RecordPart::Hash32, RecordPart::Plain(2)] },
    RecordLayout { column: "line_witnesses", once: &[], each: &[RecordPart::Hash64] },
    RecordLayout { column: "line_sizes", once: &[], each: &[RecordPart::Plain(1)] },
    RecordLayout { column: "texts", once: &[], each: &[RecordPart::Hash32] },
    RecordLayout { column: "lost", once: &[], each: &[RecordPart::Plain(1)] },
    // Its hashes are sealed before it is cut in rows, see [`turn_packed`].
    RecordLayout { column: packed::COLUMN, once: &[], each: &[RecordPart::Plain(1)] },
    RecordLayout { column: "near_witness", once: &[RecordPart::Id], each: &[RecordPart::Id, RecordPart::Plain(28)] },
];

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
    bytes[ids].chunks_exact_mut(16).for_each(|id| turn.part(RecordPart::Id, id));
    bytes[hashes].chunks_exact_mut(8).for_each(|hash| turn.part(RecordPart::Hash64, hash));
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
                Arc::new(hashes.unary::<_, arrow_array::types::UInt64Type>(|hash| self.wide(hash)))
            }
            DataType::UInt32 if HASHES_32.contains(&name) => {
                let hashes = UInt32Array::from(data(column));
                Arc::new(hashes.unary::<_, arrow_array::types::UInt32Type>(|hash| self.narrow(hash)))
            }
            DataType::Binary => self.blobs(name, data(column).into())?,
            _ => column,
        })
    }

    fn ids(self, ids: FixedSizeBinaryArray) -> ColumnResult<ArrayRef> {
        let (width, bytes, nulls) = ids.into_parts();
        let mut bytes = changeable(bytes);
        bytes.as_slice_mut().chunks_exact_mut(16).for_each(|id| self.part(RecordPart::Id, id));
        Ok(Arc::new(FixedSizeBinaryArray::try_new(width, bytes.into(), nulls)?))
    }

    fn blobs(self, name: &str, blobs: BinaryArray) -> ColumnResult<ArrayRef> {
        let odd =
            || ArrowError::SchemaError(format!("column {name} holds something that is not laid out as it should be"));
        let (offsets, bytes, nulls) = blobs.into_parts();
        let mut bytes = changeable(bytes);
        for bounds in offsets.windows(2) {
            let blob = &mut bytes.as_slice_mut()[bounds[0] as usize..bounds[1] as usize];
            let layout = LAYOUTS.iter().find(|layout| layout.column == name);
            layout.and_then(|layout| self.records(layout, blob)).ok_or_else(odd)?;
        }
        Ok(Arc::new(BinaryArray::try_new(offsets, bytes.into(), nulls)?))
    }

    fn records(self, layout: &RecordLayout, bytes: &mut [u8]) -> Option<()> {
        let is_plain = |part: &RecordPart| matches!(part, RecordPart::Plain(1));
        if bytes.is_empty() || (layout.once.is_empty() && layout.each.iter().all(is_plain)) {
            return Some(());
        }
        let mut rest = self.record(layout.once, bytes)?;
        while !rest.is_empty() {
            rest = self.record(layout.each, rest)?;
        }
        Some(())
    }

    /// Turns the parts at the start; gives what follows them.
    fn record<'b>(self, parts: &[RecordPart], bytes: &'b mut [u8]) -> Option<&'b mut [u8]> {
        let mut rest = bytes;
        for part in parts {
            let width = match part {
                RecordPart::Plain(bytes) => *bytes,
                RecordPart::Id => 16,
                RecordPart::Hash64 => 8,
                RecordPart::Hash32 => 4,
            };
            let (piece, later) = rest.split_at_mut_checked(width)?;
            self.part(*part, piece);
            rest = later;
        }
        Some(rest)
    }

    fn part(self, part: RecordPart, bytes: &mut [u8]) {
        match part {
            RecordPart::Plain(_) => {}
            RecordPart::Id => turned(bytes, |id| self.id(Id(id)).0),
            RecordPart::Hash64 => turned(bytes, |hash| self.wide(u64::from_le_bytes(hash)).to_le_bytes()),
            RecordPart::Hash32 => turned(bytes, |hash| self.narrow(u32::from_le_bytes(hash)).to_le_bytes()),
        }
    }

    fn id(self, id: Id) -> Id {
        if self.way == Way::ToDisk { self.seal.seal_id(id) } else { self.seal.open_id(id) }
    }

    fn wide(self, hash: u64) -> u64 {
        if self.way == Way::ToDisk { self.seal.seal_u64(hash) } else { self.seal.open_u64(hash) }
    }

    fn narrow(self, hash: u32) -> u32 {
        if self.way == Way::ToDisk { self.seal.seal_u32(hash) } else { self.seal.open_u32(hash) }
    }
}
