//! Timelines go to disk while logs are read, group by group, into a file that no manifest refers to until all are read:
//! together they would be most of what is in memory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::files;
use crate::base::id::Id;
use crate::base::seal::{Seal, Way};
use crate::frames::sealed;
use crate::frames::timelines::{self, PackedTimeline};
use crate::frames::written::{Written, WrittenTable};

/// Timelines of a reading, on their way. Where they are not kept, their file is removed.
pub struct NewTimelines {
    seal: Arc<Seal>,
    /// Where they stand until they are kept.
    pub(super) path: PathBuf,
    /// Sources of which the lake has an earlier timeline.
    stored: BTreeSet<u32>,
    /// Sources of which one was added.
    added: Vec<u32>,
    /// What waits for more: less than a group.
    held: Vec<PackedTimeline<'static>>,
    /// Made with the first group.
    table: Option<WrittenTable>,
}

impl NewTimelines {
    /// None so far, for a lake that has the timelines of some sources.
    pub(super) fn new(path: PathBuf, seal: Arc<Seal>, stored: BTreeSet<u32>) -> Self {
        Self { seal, path, stored, added: Vec::new(), held: Vec::new(), table: None }
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
            let batch = sealed::pass(timelines::batch(&files, group, &self.seal)?, &self.seal, Way::ToDisk)?;
            let begun = match self.table.take() {
                Some(table) => table,
                None => WrittenTable::begin(&self.path, batch.schema())?,
            };
            self.table.insert(begun).add(&batch)?;
        }
        Ok(())
    }

    /// Puts the file in its place; gives its checksum, and which sources are in it.
    pub(super) fn finish(mut self, place: &Path) -> Written<(Id, Vec<u32>)> {
        self.write_held()?;
        let sum = self.table.ok_or("a table without rows")?.finish()?;
        files::rename(&self.path, place).inspect_err(|_| files::remove(&self.path))?;
        Ok((sum, self.added))
    }
}
