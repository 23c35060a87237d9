//! A table of the lake on its way: it goes to disk group by group, into a file that no manifest refers to until all is there.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;

use crate::base::files;
use crate::base::id::Id;
use crate::frames::columns::ColumnResult;
use crate::frames::written::{Written, WrittenTable};

/// A table that is not yet whole. Where it is not kept, its file is removed.
pub(super) struct NewTable {
    /// Where it stands until it is kept.
    pub(super) path: PathBuf,
    /// Made with the first group.
    table: Option<WrittenTable>,
    /// How many rows were put into it one group at a time.
    pub(super) rows: usize,
}

impl NewTable {
    /// Nothing so far; `path` is nobody else's.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, table: None, rows: 0 }
    }

    /// Puts a group behind the others; one without rows only makes the file. An error if the disk refuses.
    pub(super) fn add(&mut self, group: &RecordBatch) -> Written<()> {
        let begun = match self.table.take() {
            Some(table) => table,
            None => WrittenTable::begin(&self.path, group.schema())?,
        };
        self.rows += group.num_rows();
        self.table.insert(begun).add(group)
    }

    /// The same of as many groups as `make` gives, by all workers of the pool.
    pub(super) fn add_all(
        &mut self,
        make: &(dyn Fn(usize) -> Option<ColumnResult<RecordBatch>> + Sync),
    ) -> Written<()> {
        self.table.as_mut().ok_or("a table that was not begun")?.add_all(0, make)
    }

    /// Puts the file in its place; gives its checksum.
    pub(super) fn finish(self, place: &Path) -> Written<Id> {
        let sum = self.table.ok_or("a table without rows")?.finish()?;
        files::rename(&self.path, place).inspect_err(|_| files::remove(&self.path))?;
        Ok(sum)
    }
}
