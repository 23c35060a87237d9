//! Values go to disk while the first logs of a lake are read: they would be a third of what is held until all are read.

use std::sync::Arc;

use crate::base::names::Names;
use crate::base::seal::{Seal, Way};
use crate::frames::lake::GROUP_ROWS;
use crate::frames::new_table::NewTable;
use crate::frames::written::Written;
use crate::frames::{sealed, values};
use crate::logs::values::ValueRows;

/// Rows of a table that wait at most: the last group of what is written at once may be small.
#[cfg(not(test))]
const ROWS_AT_ONCE: usize = 8 * GROUP_ROWS;
#[cfg(test)]
const ROWS_AT_ONCE: usize = 4;

/// Values of a reading, on their way. Where they are not kept, their files are removed.
pub struct NewValues {
    seal: Arc<Seal>,
    /// What waits for more, by number of the source, and how many rows that is.
    held: Vec<(u32, ValueRows)>,
    held_rows: usize,
    tables: ValueTables,
}

/// See [`values::TABLES`].
pub(super) type ValueTables = [NewTable; 2];

impl NewValues {
    /// None so far. An error if the disk refuses even that: then nothing has to be read again.
    pub(super) fn begin(tables: ValueTables, seal: Arc<Seal>) -> Written<Self> {
        let mut begun = Self { seal, held: Vec::new(), held_rows: 0, tables };
        let none = |name: &&str| values::batch(name, &[], &Names::default(), 0..0);
        for (batch, table) in values::TABLES.iter().filter_map(none).zip(&mut begun.tables) {
            table.add(&sealed::pass(batch?, &begun.seal, Way::ToDisk)?)?;
        }
        Ok(begun)
    }

    /// Adds those of a file; `names` are what their symbols mean. An error if the disk refuses.
    pub fn add(&mut self, source: u32, rows: ValueRows, names: &Names) -> Written<()> {
        self.held_rows += rows.lists.len().max(rows.given.len());
        self.held.push((source, rows));
        if self.held_rows > ROWS_AT_ONCE { self.write_held(names) } else { Ok(()) }
    }

    fn write_held(&mut self, names: &Names) -> Written<()> {
        let held = std::mem::take(&mut self.held);
        let files: Vec<(u32, &ValueRows)> = held.iter().map(|(source, rows)| (*source, rows)).collect();
        for (name, table) in values::TABLES.iter().zip(&mut self.tables) {
            let group = |part| values::batch(name, &files, names, part * GROUP_ROWS..(part + 1) * GROUP_ROWS);
            for batch in (0..).map_while(group) {
                table.add(&sealed::pass(batch?, &self.seal, Way::ToDisk)?)?;
            }
        }
        self.held_rows = 0;
        Ok(())
    }

    /// The tables of all of them.
    pub(super) fn into_tables(mut self, names: &Names) -> Written<ValueTables> {
        self.write_held(names)?;
        Ok(self.tables)
    }
}
