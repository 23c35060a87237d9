//! Facts about bodies go to disk while logs are read: together they would be most of what a first replay holds.

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;

use crate::base::id::Id;
use crate::base::seal::{Seal, Way};
use crate::facts::body_facts::BodyFacts;
use crate::facts::encode;
use crate::frames::new_table::NewTable;
use crate::frames::written::Written;
use crate::frames::{bodies, sealed};

/// Facts of a reading, on their way. Where they are not kept, their files are removed.
pub struct NewFacts {
    seal: Arc<Seal>,
    /// Names what made them.
    pub(super) maker: Id,
    /// One for each of [`bodies::TABLES`]; none once the disk has refused.
    tables: Mutex<Option<FactTables>>,
}

/// See [`bodies::TABLES`].
pub(super) type FactTables = [NewTable; 2];

impl NewFacts {
    /// None so far. An error if the disk refuses at once.
    pub(super) fn begin(mut tables: FactTables, seal: Arc<Seal>, maker: Id) -> Written<Self> {
        write(&mut tables, &groups(&[], &seal)?)?;
        Ok(Self { seal, maker, tables: Mutex::new(Some(tables)) })
    }

    /// Adds some; any worker may. If the disk refuses, all are let go of.
    pub fn add(&self, facts: &[BodyFacts]) {
        let groups = groups(facts, &self.seal);
        let Ok(mut tables) = self.tables.lock() else { return };
        let add = |tables: &mut FactTables| groups.and_then(|groups| write(tables, &groups));
        if tables.as_mut().is_some_and(|tables| add(tables).is_err()) {
            *tables = None;
        }
    }

    /// Whether none was added and the disk has refused none.
    pub fn is_empty(&self) -> bool {
        self.tables.lock().is_ok_and(|tables| tables.as_ref().is_some_and(|[bodies, _]| bodies.rows == 0))
    }

    /// Whether all were let go of.
    pub fn is_refused(&self) -> bool {
        self.tables.lock().map_or(true, |tables| tables.is_none())
    }

    /// The tables; none if the disk has refused.
    pub(super) fn into_tables(self) -> Option<FactTables> {
        self.tables.into_inner().ok().flatten()
    }
}

/// The rows of some facts as they stand on disk, for each table.
fn groups(facts: &[BodyFacts], seal: &Seal) -> Written<Vec<RecordBatch>> {
    let (facts, formats): (Vec<&BodyFacts>, _) = (facts.iter().collect(), encode::ids());
    let group = |name: &&str| Ok(sealed::pass(bodies::batch(name, &facts, &formats)?, seal, Way::ToDisk)?);
    bodies::TABLES.iter().map(group).collect()
}

/// Puts a group behind the others of each table.
fn write(tables: &mut FactTables, groups: &[RecordBatch]) -> Written<()> {
    tables.iter_mut().zip(groups).try_for_each(|(table, group)| table.add(group))
}
