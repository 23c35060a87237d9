//! Timelines go to disk while logs are read: together they would be most of what is in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::seal::{Seal, Way};
use crate::frames::new_table::NewTable;
use crate::frames::sealed;
use crate::frames::timelines::{self, PackedTimeline};
use crate::frames::written::Written;

/// Timelines of a reading, on their way. Where they are not kept, their file is removed.
pub struct NewTimelines {
    seal: Arc<Seal>,
    /// Sources of which the lake has an earlier timeline.
    stored: BTreeSet<u32>,
    /// Sources of which one was added.
    added: Vec<u32>,
    /// What waits for more: less than a group.
    held: Vec<PackedTimeline<'static>>,
    pub(super) table: NewTable,
}

impl NewTimelines {
    /// None so far, for a lake that has the timelines of some sources.
    pub(super) fn new(table: NewTable, seal: Arc<Seal>, stored: BTreeSet<u32>) -> Self {
        Self { seal, stored, added: Vec::new(), held: Vec::new(), table }
    }

    /// Whether none was added.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
    }

    /// Whether the lake has an earlier timeline of a source.
    pub fn is_stored(&self, source: u32) -> bool {
        self.stored.contains(&source)
    }

    /// Adds the timeline of a file. An error if the disk refuses.
    pub fn add(&mut self, file: PackedTimeline<'static>) -> Written<()> {
        self.added.push(file.source);
        self.held.push(file);
        if timelines::is_group(&self.held) { self.write_held() } else { Ok(()) }
    }

    fn write_held(&mut self) -> Written<()> {
        let files = std::mem::take(&mut self.held);
        for group in timelines::groups(&files).iter().filter(|group| !group.is_empty()) {
            self.table.add(&sealed::pass(timelines::batch(&files, group, &self.seal)?, &self.seal, Way::ToDisk)?)?;
        }
        Ok(())
    }

    /// The table of all of them, and which sources are in it.
    pub(super) fn into_table(mut self) -> Written<(NewTable, Vec<u32>)> {
        self.write_held()?;
        Ok((self.table, self.added))
    }
}
