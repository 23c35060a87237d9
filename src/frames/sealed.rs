//! Which columns of the lake hold hashes, and how a batch passes to disk and back: every hash in it is sealed or opened,
//! whatever table it stands in. A column of bytes whose layout is not listed here is refused.

use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::{Array, ArrayRef, BinaryArray, FixedSizeBinaryArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType};

use crate::base::id::Id;
use crate::base::seal::Seal;
use crate::frames::columns::Outcome;
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
enum Part {
    /// So many bytes of numbers.
    Plain(usize),
    Id,
    Hash64,
    Hash32,
}

/// How the records in a column of bytes are laid out: what comes once, and what comes again and again.
struct Layout {
    column: &'static str,
    once: &'static [Part],
    each: &'static [Part],
}

const LAYOUTS: [Layout; 6] = [
    Layout { column: "values", once: &[], each: &[Part::Hash64, Part::Hash32, Part::Plain(2)] },
    Layout { column: "line_witnesses", once: &[], each: &[Part::Hash64] },
    Layout { column: "line_sizes", once: &[], each: &[Part::Plain(1)] },
    Layout { column: "texts", once: &[], each: &[Part::Hash32] },
    Layout { column: "lost", once: &[], each: &[Part::Plain(1)] },
    Layout { column: "near_witness", once: &[Part::Id], each: &[Part::Id, Part::Plain(28)] },
];

/// The batch as it stands on disk, or as it was before.
pub(super) fn pass(batch: &RecordBatch, seal: &Seal, way: Way) -> Outcome<RecordBatch> {
    let turn = Turn { seal, way };
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| turn.column(field.name(), column)).collect::<Outcome<Vec<_>>>()?;
    RecordBatch::try_new(schema, columns)
}

#[derive(Clone, Copy)]
struct Turn<'s> {
    seal: &'s Seal,
    way: Way,
}

impl Turn<'_> {
    fn column(self, name: &str, column: &ArrayRef) -> Outcome<ArrayRef> {
        let any = column.as_any();
        Ok(match column.data_type() {
            DataType::FixedSizeBinary(16) => match any.downcast_ref::<FixedSizeBinaryArray>() {
                Some(ids) => self.ids(ids)?,
                None => Arc::clone(column),
            },
            DataType::UInt64 if HASHES_64.contains(&name) => match any.downcast_ref::<UInt64Array>() {
                Some(hashes) => Arc::new(hashes.unary::<_, arrow_array::types::UInt64Type>(|hash| self.wide(hash))),
                None => Arc::clone(column),
            },
            DataType::UInt32 if HASHES_32.contains(&name) => match any.downcast_ref::<UInt32Array>() {
                Some(hashes) => Arc::new(hashes.unary::<_, arrow_array::types::UInt32Type>(|hash| self.narrow(hash))),
                None => Arc::clone(column),
            },
            DataType::Binary => match any.downcast_ref::<BinaryArray>() {
                Some(blobs) => self.blobs(name, blobs)?,
                None => Arc::clone(column),
            },
            _ => Arc::clone(column),
        })
    }

    fn ids(self, ids: &FixedSizeBinaryArray) -> Outcome<ArrayRef> {
        let mut out = FixedSizeBinaryBuilder::with_capacity(ids.len(), 16);
        for id in ids.iter().map(Option::unwrap_or_default) {
            let mut turned = [0; 16];
            turned.copy_from_slice(id);
            out.append_value(self.id(Id(turned)).0)?;
        }
        Ok(Arc::new(out.finish()))
    }

    /// All bytes are copied once and turned where they stand: a single blob may be most of what is in memory.
    fn blobs(self, name: &str, blobs: &BinaryArray) -> Outcome<ArrayRef> {
        let odd =
            || ArrowError::SchemaError(format!("column {name} holds something that is not laid out as it should be"));
        let offsets = blobs.offsets();
        let mut bytes = blobs.value_data()[..offsets[blobs.len()] as usize].to_vec();
        for bounds in offsets.windows(2) {
            let blob = &mut bytes[bounds[0] as usize..bounds[1] as usize];
            let laid_out = match LAYOUTS.iter().find(|layout| layout.column == name) {
                Some(layout) => self.records(layout, blob),
                None if name == packed::COLUMN => self.packed(blob),
                None => None,
            };
            laid_out.ok_or_else(odd)?;
        }
        Ok(Arc::new(BinaryArray::try_new(offsets.clone(), bytes.into(), None)?))
    }

    fn records(self, layout: &Layout, bytes: &mut [u8]) -> Option<()> {
        if bytes.is_empty() {
            return Some(());
        }
        let mut rest = self.record(layout.once, bytes)?;
        while !rest.is_empty() {
            rest = self.record(layout.each, rest)?;
        }
        Some(())
    }

    /// Turns the parts at the start; gives what follows them.
    fn record<'b>(self, parts: &[Part], bytes: &'b mut [u8]) -> Option<&'b mut [u8]> {
        let mut rest = bytes;
        for part in parts {
            let width = match part {
                Part::Plain(bytes) => *bytes,
                Part::Id => 16,
                Part::Hash64 => 8,
                Part::Hash32 => 4,
            };
            let (piece, later) = rest.split_at_mut_checked(width)?;
            self.part(*part, piece);
            rest = later;
        }
        Some(rest)
    }

    fn part(self, part: Part, bytes: &mut [u8]) {
        match part {
            Part::Plain(_) => {}
            Part::Id => {
                if let Ok(id) = <[u8; 16]>::try_from(&*bytes) {
                    bytes.copy_from_slice(&self.id(Id(id)).0);
                }
            }
            Part::Hash64 => {
                if let Ok(hash) = <[u8; 8]>::try_from(&*bytes) {
                    bytes.copy_from_slice(&self.wide(u64::from_le_bytes(hash)).to_le_bytes());
                }
            }
            Part::Hash32 => {
                if let Ok(hash) = <[u8; 4]>::try_from(&*bytes) {
                    bytes.copy_from_slice(&self.narrow(u32::from_le_bytes(hash)).to_le_bytes());
                }
            }
        }
    }

    /// The ids and hashes of a packed timeline; rows of another edition are made anew and stay as they are.
    fn packed(self, bytes: &mut [u8]) -> Option<()> {
        let Some((ids, hashes)) = packed::hash_places(bytes) else { return Some(()) };
        bytes[ids].chunks_exact_mut(16).for_each(|id| self.part(Part::Id, id));
        bytes[hashes].chunks_exact_mut(8).for_each(|hash| self.part(Part::Hash64, hash));
        Some(())
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
