//! A Parquet file of the lake as it is written: its row groups are laid out and compressed by all workers, and stand in it in
//! their order.

use std::error::Error;
use std::io::{BufWriter, IntoInnerError};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use rayon::prelude::*;

use crate::base::files::Growing;
use crate::base::id::Id;
use crate::frames::columns::ColumnResult;

/// Bytes that go to disk at a time.
const PIECE_BYTES: usize = 1 << 20;
/// Columns of hashes and of packed numbers: a dictionary of them only costs time.
const HASH_COLUMNS: [&str; 15] = [
    "call",
    "message",
    "body",
    "id",
    "other",
    "sha",
    "path",
    "near_witness",
    "line_witnesses",
    "line_sizes",
    "texts",
    "value",
    "values",
    "words",
    "packed",
];

/// What writing gave, or whatever the disk or the columns say.
pub type Written<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A file that is being written. What is not [`WrittenTable::finish`]ed is removed.
pub(super) struct WrittenTable {
    file: SerializedFileWriter<BufWriter<Growing>>,
    schema: SchemaRef,
    factory: ArrowRowGroupWriterFactory,
}

impl WrittenTable {
    /// Begins the file.
    pub(super) fn begin(path: &Path, schema: SchemaRef) -> Written<Self> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_statistics_enabled(EnabledStatistics::None);
        for column in HASH_COLUMNS {
            properties = properties.set_column_dictionary_enabled(column.into(), false);
        }
        let file = BufWriter::with_capacity(PIECE_BYTES, Growing::begin(path)?);
        let writer = ArrowWriter::try_new(file, SchemaRef::clone(&schema), Some(properties.build()))?;
        let (file, factory) = writer.into_serialized_writer()?;
        Ok(Self { file, schema, factory })
    }

    /// Puts batches behind each other, each as a group: from the first number on as many as `make` gives.
    pub(super) fn add_all(
        &mut self,
        first: usize,
        make: &(dyn Fn(usize) -> Option<ColumnResult<RecordBatch>> + Sync),
    ) -> Written<()> {
        let workers = rayon::current_num_threads();
        for start in (first..).step_by(workers) {
            let group = |part| Some(make(part)?.map_err(Into::into).and_then(|batch| Ok(self.laid_out(&batch)?)));
            let groups: Vec<Option<Written<_>>> = (start..start + workers).into_par_iter().map(group).collect();
            for group in groups {
                let Some(group) = group else { return Ok(()) };
                self.append(group?)?;
            }
        }
        Ok(())
    }

    /// Puts a batch behind the others.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Written<()> {
        Ok(self.append(self.laid_out(batch)?)?)
    }

    /// The columns of a batch as they stand in a file, one after the other: together they take several times as much room.
    fn laid_out(&self, batch: &RecordBatch) -> ParquetResult<Vec<ArrowColumnChunk>> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        // The number of a group matters where columns are encrypted, and nowhere else.
        let writers = self.factory.create_column_writers(0)?.into_iter();
        let columns =
            self.schema.fields().iter().zip(batch.columns()).zip(writers).map(|((field, column), mut writer)| {
                compute_leaves(field, column)?.iter().try_for_each(|leaf| writer.write(leaf))?;
                writer.close()
            });
        columns.collect()
    }

    fn append(&mut self, columns: Vec<ArrowColumnChunk>) -> ParquetResult<()> {
        if columns.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        columns.into_iter().try_for_each(|column| column.append_to_row_group(&mut group))?;
        group.close().map(drop)
    }

    /// Waits until all is on the disk; gives the checksum.
    pub(super) fn finish(self) -> Written<Id> {
        let file = self.file.into_inner()?.into_inner().map_err(IntoInnerError::into_error)?;
        Ok(file.finish()?)
    }
}

/// Writes a file of the batches that `make` gives, each as a group; gives its checksum.
pub(super) fn write_table(
    path: &Path,
    make: &(dyn Fn(usize) -> Option<ColumnResult<RecordBatch>> + Sync),
) -> Written<Id> {
    let first = make(0).ok_or("a table without rows")??;
    let mut table = WrittenTable::begin(path, first.schema())?;
    table.add(&first)?;
    drop(first);
    table.add_all(1, make)?;
    table.finish()
}
