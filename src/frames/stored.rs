//! A Parquet file of the lake, read group by group: as a whole it may be most of what is in memory.

use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use bytes::Bytes;
use bytes::buf::Reader;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};
use rayon::prelude::*;

use crate::base::files;
use crate::base::id::Id;
use crate::frames::columns::ColumnResult;

/// Groups that each worker reads before they are handed on: the next one need not wait for a slow neighbour every time.
const GROUPS_OF_A_WORKER: usize = 4;
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

    /// Hands on what `made` makes of the wanted columns of its row groups, in order, one worker a group: a few are made,
    /// handed on, and dropped, and only then the next ones are read.
    pub(super) fn each_group<T: Send>(
        &self,
        is_wanted: &(dyn Fn(&str) -> bool + Sync),
        made: &(dyn Fn(RecordBatch) -> ColumnResult<T> + Sync),
        take: &mut dyn FnMut(T) -> ColumnResult<()>,
    ) -> Result<(), Unreadable> {
        let groups: Vec<usize> = (0..self.groups()).collect();
        self.some_groups(&groups, is_wanted, made, take)
    }

    /// The same of some of its groups.
    pub(super) fn some_groups<T: Send>(
        &self,
        groups: &[usize],
        is_wanted: &(dyn Fn(&str) -> bool + Sync),
        made: &(dyn Fn(RecordBatch) -> ColumnResult<T> + Sync),
        take: &mut dyn FnMut(T) -> ColumnResult<()>,
    ) -> Result<(), Unreadable> {
        for some in groups.chunks(GROUPS_OF_A_WORKER * rayon::current_num_threads()) {
            let read = some.par_iter().map(|&group| self.group(group, is_wanted, made));
            let read: Vec<Vec<T>> = read.collect::<Result<_, _>>()?;
            read.into_iter().flatten().try_for_each(&mut *take).map_err(odd)?;
        }
        Ok(())
    }

    fn group<T>(
        &self,
        group: usize,
        is_wanted: &dyn Fn(&str) -> bool,
        made: &dyn Fn(RecordBatch) -> ColumnResult<T>,
    ) -> Result<Vec<T>, Unreadable> {
        let described = self.metadata.metadata().row_group(group);
        let columns = described.columns().iter().map(|column| column.column_path().string());
        let wanted: Vec<usize> =
            (0..).zip(columns).filter(|(_, name)| is_wanted(name)).map(|(place, _)| place).collect();
        let ends = wanted.iter().map(|&place| described.column(place).byte_range());
        let ends = ends.map(|(start, bytes)| (start, start + bytes));
        let (start, end) = ends.reduce(|one, next| (one.0.min(next.0), one.1.max(next.1))).unwrap_or_default();
        let read = Stretch::read(&self.path, start..end)?;
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(read, self.metadata.clone());
        let mask = ProjectionMask::leaves(reader.parquet_schema(), wanted);
        // As many rows as there are: the reader makes room for all that it is told of.
        let rows = usize::try_from(described.num_rows()).unwrap_or_default().max(1);
        let reader = reader.with_projection(mask).with_row_groups(vec![group]).with_batch_size(rows);
        let batches = reader.build().map_err(odd)?;
        batches.map(|batch| made(batch?)).collect::<ColumnResult<Vec<T>>>().map_err(odd)
    }

    /// How many row groups it has.
    pub(super) fn groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// How many rows it has.
    pub(super) fn rows(&self) -> usize {
        usize::try_from(self.metadata.metadata().file_metadata().num_rows()).unwrap_or_default()
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
