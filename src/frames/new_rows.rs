//! Rows and values go to disk while the first logs of a lake are read: they would be most of what is held until all are read.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::base::names::{Names, Sym};
use crate::base::seal::{Seal, Way};
use crate::frames::columns::ColumnResult;
use crate::frames::lake::{GROUP_ROWS, mcp_tools, row_count, tools_of};
use crate::frames::new_table::NewTable;
use crate::frames::written::Written;
use crate::frames::{sealed, tables, values};
use crate::logs::trace::FileRows;
use crate::logs::values::ValueRows;

/// Rows of all tables that wait at most for a lake: some groups of each, and little room.
#[cfg(not(test))]
fn rows_waiting_max(_: &Path) -> usize {
    24 * GROUP_ROWS
}
#[cfg(test)]
fn rows_waiting_max(lake: &Path) -> usize {
    ROWS_WAITING.lock().ok().and_then(|known| known.get(lake).copied()).unwrap_or(8)
}

/// The same in tests, by lake; 8 for all others.
#[cfg(test)]
pub static ROWS_WAITING: std::sync::Mutex<std::collections::BTreeMap<std::path::PathBuf, usize>> =
    std::sync::Mutex::new(std::collections::BTreeMap::new());

/// What symbols in the rows mean, and what they mean in the values.
pub type RowNames<'n> = (&'n Names, &'n Names);

/// Rows of a reading, on their way. Where they are not kept, their files are removed.
pub struct NewRows {
    seal: Arc<Seal>,
    /// What waits for more, by number of the source, and how many rows that is.
    held: Vec<RowsOfSource>,
    held_rows: usize,
    rows_waiting_max: usize,
    is_written: bool,
    written: WrittenRows,
}

/// What was read of a source, by its number.
pub type RowsOfSource = (u32, FileRows, ValueRows);

/// What is on disk.
pub(super) struct WrittenRows {
    /// One for each of [`row_tables`].
    pub tables: Vec<NewTable>,
    /// Sources that were added.
    pub sources: Vec<u32>,
    /// How many rows they have, without values.
    pub rows: u64,
    tools: BTreeSet<Sym>,
}

impl WrittenRows {
    /// See [`mcp_tools`].
    pub fn mcp_tools(&self, names: &Names) -> BTreeSet<String> {
        mcp_tools(&self.tools, names)
    }
}

impl NewRows {
    /// None so far, for the lake of a directory; there is a table for each of [`row_tables`]. An error if the disk refuses even
    /// that: then nothing has to be read again.
    pub(super) fn begin(tables: Vec<NewTable>, seal: Arc<Seal>, lake: &Path) -> Written<Self> {
        let written = WrittenRows { tables, sources: Vec::new(), rows: 0, tools: BTreeSet::new() };
        let rows_waiting_max = rows_waiting_max(lake);
        let mut begun = Self { seal, held: Vec::new(), held_rows: 0, rows_waiting_max, is_written: false, written };
        let none = (&Names::default(), &Names::default());
        for (name, table) in row_tables().zip(&mut begun.written.tables) {
            if let Some(batch) = batch(name, &begun.held, none, 0) {
                table.add(&sealed::pass(batch?, &begun.seal, Way::ToDisk)?)?;
            }
        }
        Ok(begun)
    }

    /// Adds those of a file. Whether it is time to write them.
    pub fn add(&mut self, source: u32, (rows, values): (FileRows, ValueRows)) -> bool {
        let written = &mut self.written;
        written.sources.push(source);
        written.rows += row_count(&rows);
        written.tools.extend(tools_of(&rows));
        self.held_rows += row_count(&rows) as usize + values.lists.len().max(values.given.len());
        self.held.push((source, rows, values));
        self.held_rows > self.rows_waiting_max
    }

    /// Writes what waits, by all workers of the pool; whoever reads waits as well. An error if the disk refuses.
    pub fn write_held(&mut self, names: RowNames<'_>) -> Written<()> {
        let held = std::mem::take(&mut self.held);
        for (name, table) in row_tables().zip(&mut self.written.tables) {
            let sealed = |batch| sealed::pass(batch, &self.seal, Way::ToDisk);
            table.add_all(&|part| Some(batch(name, &held, names, part)?.and_then(sealed)))?;
        }
        (self.held_rows, self.is_written) = (0, true);
        Ok(())
    }

    /// All of them, if they are so few that none were written.
    pub fn all_held(&mut self) -> Option<Vec<RowsOfSource>> {
        (!self.is_written).then(|| std::mem::take(&mut self.held))
    }

    /// All of them.
    pub(super) fn finish(mut self, names: RowNames<'_>) -> Written<WrittenRows> {
        self.write_held(names)?;
        Ok(self.written)
    }
}

/// The tables of rows, then those of values.
pub(super) fn row_tables() -> impl Iterator<Item = &'static str> {
    tables::TABLES.into_iter().chain(values::TABLES)
}

/// A group of a table.
fn batch(
    table: &str,
    held: &[RowsOfSource],
    (names, value_names): RowNames<'_>,
    part: usize,
) -> Option<ColumnResult<RecordBatch>> {
    let places = part * GROUP_ROWS..(part + 1) * GROUP_ROWS;
    if values::TABLES.contains(&table) {
        let files: Vec<(u32, &ValueRows)> = held.iter().map(|(source, _, values)| (*source, values)).collect();
        return values::batch(table, &files, value_names, places);
    }
    let files: Vec<(u32, &FileRows)> = held.iter().map(|(source, rows, _)| (*source, rows)).collect();
    tables::batch(table, &files, names, places)
}
