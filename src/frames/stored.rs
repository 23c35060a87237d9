//! A Parquet file of the lake, read group by group: as a whole it may be most of what is in memory.

use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use bytes::Bytes;
use bytes::buf::Reader;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};
use rayon::prelude::*;

use crate::base::files;
use crate::base::id::Id;
use crate::frames::columns::ColumnResult;

/// Rows per batch when reading.
const BATCH_ROWS: usize = 1 << 16;
/// Bytes at the end of a Parquet file: how long the description before them is, and what kind of file it is.
const TAIL_BYTES: u64 = 8;

/// Why a file cannot be read.
pub(super) enum Unreadable {
    /// The disk does not give it.
    Disk(io::Error),
    /// It holds something else than was written.
    Content(String),
}

fn odd(cause: impl Display) -> Unreadable {
    Unreadable::Content(cause.to_string())
}

/// A file with the bytes that were written.
pub(super) struct StoredTable {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
}

impl StoredTable {
    /// Looks through a file, and reads what it says of itself. An error if its bytes have another checksum.
    pub(super) fn open(path: &Path, sum: Id) -> Result<Self, Unreadable> {
        let (found, bytes) = files::sum_of_own(path).map_err(Unreadable::Disk)?;
        if found != sum {
            return Err(odd("its checksum does not fit"));
        }
        let tail = Stretch::read(path, bytes.saturating_sub(TAIL_BYTES)..bytes)?;
        let described = tail.bytes.first_chunk().map_or(0, |length| u64::from(u32::from_le_bytes(*length)));
        let described = Stretch::read(path, bytes.saturating_sub(described + TAIL_BYTES)..bytes)?;
        let metadata = ArrowReaderMetadata::load(&described, ArrowReaderOptions::new()).map_err(odd)?;
        Ok(Self { path: path.to_owned(), metadata })
    }

    /// Hands on what `made` makes of its row groups, in order, one worker a group, so many at once.
    pub(super) fn each_group<T: Send>(
        &self,
        at_once: usize,
        made: &(dyn Fn(RecordBatch) -> ColumnResult<T> + Sync),
        take: &mut dyn FnMut(T) -> ColumnResult<()>,
    ) -> Result<(), Unreadable> {
        let groups: Vec<usize> = (0..self.metadata.metadata().num_row_groups()).collect();
        groups
            .chunks(at_once)
            .try_for_each(|some| self.groups(some, made)?.into_iter().try_for_each(&mut *take).map_err(odd))
    }

    fn groups<T: Send>(
        &self,
        groups: &[usize],
        made: &(dyn Fn(RecordBatch) -> ColumnResult<T> + Sync),
    ) -> Result<Vec<T>, Unreadable> {
        let groups = groups.par_iter().map(|&group| {
            let columns = self.metadata.metadata().row_group(group).columns().iter().map(|column| column.byte_range());
            let ends = columns.map(|(start, bytes)| (start, start + bytes));
            let (start, end) = ends.reduce(|one, next| (one.0.min(next.0), one.1.max(next.1))).unwrap_or_default();
            let read = Stretch::read(&self.path, start..end)?;
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(read, self.metadata.clone());
            let batches = reader.with_row_groups(vec![group]).with_batch_size(BATCH_ROWS).build().map_err(odd)?;
            batches.map(|batch| made(batch?)).collect::<ColumnResult<Vec<T>>>().map_err(odd)
        });
        let groups: Vec<Vec<T>> = groups.collect::<Result<_, _>>()?;
        Ok(groups.into_iter().flatten().collect())
    }
}

/// Some bytes of a file, at the places that they have in it.
struct Stretch {
    start: u64,
    bytes: Bytes,
}

impl Stretch {
    fn read(path: &Path, place: Range<u64>) -> Result<Self, Unreadable> {
        let bytes = files::read_own_part(path, &place).map_err(Unreadable::Disk)?;
        Ok(Self { start: place.start, bytes: bytes.into() })
    }
}

impl Length for Stretch {
    fn len(&self) -> u64 {
        self.start + Length::len(&self.bytes)
    }
}

impl ChunkReader for Stretch {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        self.bytes.get_read(start.saturating_sub(self.start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.bytes.get_bytes(start.saturating_sub(self.start), length)
    }
}
