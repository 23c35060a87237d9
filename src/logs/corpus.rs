//! All that was read: the rows of every file, with one table of names.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::base::damage::Reason;
use crate::base::id::Id;
use crate::base::names::Names;
use crate::base::unpack;
use crate::base::visible::Shown as _;
use crate::logs::copies::FileStanding;
use crate::logs::trace::{Counters, FileRows, FileTrace};

/// Where the rows of a file came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSource {
    /// Pseudonym of the canonical path.
    pub key: Id,
    /// The path, while the file is on disk; for standard input `-`.
    pub path: Option<PathBuf>,
    /// Size in bytes when it was last read.
    pub bytes: u64,
    pub counters: Arc<Counters>,
}

impl RowSource {
    /// Whether the file holds session records at all. A journal or a prompt history is a sidecar, not a session log.
    /// A file without any record (empty, or all damaged) is not called one either.
    pub fn is_sidecar(&self) -> bool {
        self.counters.is_of_sidecar()
    }

    /// How a file is called in reports; one that was deleted has no name any more.
    pub fn shown(&self) -> String {
        self.path.as_ref().map_or_else(|| format!("(deleted file {:.8})", self.key.to_string()), |path| path.shown())
    }

    /// Says so if a packed file unpacks to too much: the rest of it is in no report.
    pub fn cut_short(&self) -> Option<String> {
        let is_cut = self.counters.damage.count(Reason::UnpacksTooLarge) > 0;
        is_cut.then(|| format!("{} {}", self.shown(), unpack::TOO_LARGE))
    }
}

/// One file's rows.
#[derive(Clone, Debug, Default)]
pub struct SourceRows {
    /// Where they came from.
    pub source: RowSource,
    /// The rows; symbols refer to [`Corpus::names`].
    pub rows: FileRows,
}

/// Every file that was asked for.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    /// Tools, models, versions.
    pub names: Names,
    /// Files, sorted by path; those that are no longer on disk last, by key.
    pub files: Vec<SourceRows>,
    /// The standing of each session log, once somebody asked: both views of the history go by it.
    pub(super) standings: OnceLock<Vec<FileStanding>>,
    /// Which session logs belong together, once somebody asked.
    pub(super) families: OnceLock<Vec<Vec<usize>>>,
}

impl Corpus {
    /// Without any file yet.
    pub fn of(names: Names) -> Self {
        Self { names, ..Self::default() }
    }

    /// Whether it is known which files repeat others: then rows are not asked for it any more.
    pub fn knows_standings(&self) -> bool {
        self.standings.get().is_some()
    }

    /// Adds a file that was read.
    pub fn push(&mut self, source: RowSource, trace: FileTrace) {
        let names = self.names.absorb(&trace.names);
        let mut rows = FileRows::default();
        rows.append(trace.rows, &names, &Counters::default());
        self.files.push(SourceRows { source, rows });
        (self.standings, self.families) = Default::default();
    }
}
