//! The texts behind pseudonyms, as the logs on disk have them.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::Input;
use crate::base::id::{Id, IdMap, IdSet};
use crate::base::unpack::Packing;
use crate::frames::sync::directory_of;
use crate::logs::discover::LogFile;
use crate::logs::named::look_up;

/// Bytes at the start of a log that are searched for the directory and the session: they stand in its first records, behind
/// at most one long prompt or a few pasted images.
const HEAD_BYTES: u64 = 1 << 20;

impl Input {
    /// The texts behind pseudonyms, as far as the logs on disk have them: of directories and sessions, which stand at the head
    /// of a log, and of branches, which stand anywhere.
    pub fn texts(&self, mut wanted: IdSet<Id>, branches: IdSet<Id>) -> IdMap<Id, String> {
        let mut found = IdMap::default();
        let (mut files, mut rest): (Vec<&LogFile>, Vec<&LogFile>) = (Vec::new(), Vec::new());
        let mut directories: BTreeSet<String> = BTreeSet::new();
        for file in &self.listing.files {
            if let Some((stem, _)) = Packing::split_name(&file.path) {
                let id = Id::pseudonym(stem);
                if wanted.remove(&id) {
                    found.insert(id, String::from_utf8_lossy(stem).into_owned());
                }
            }
            // One log of each project first: mostly that is enough.
            let is_first = directories.insert(directory_of(file, &self.listing));
            if is_first { files.push(file) } else { rest.push(file) }
        }
        files.append(&mut rest);
        let naming = self.logs_naming(&wanted);
        let likely = naming.iter().map(|(file, ids)| (*file, ids)).collect();
        found.extend(self.texts_in(likely, HEAD_BYTES));
        wanted.retain(|id| !found.contains_key(id));
        self.look_through(&files, HEAD_BYTES, wanted, &mut found);
        self.look_through(&files, u64::MAX, branches, &mut found);
        found
    }

    /// Looks through logs, one for each thread, until everything is found.
    fn look_through(&self, files: &[&LogFile], bytes: u64, mut wanted: IdSet<Id>, found: &mut IdMap<Id, String>) {
        for some in files.chunks(self.pool.current_num_threads()) {
            if wanted.is_empty() {
                return;
            }
            found.extend(self.texts_in(some.iter().map(|file| (*file, &wanted)).collect(), bytes));
            wanted.retain(|id| !found.contains_key(id));
        }
    }

    /// What logs have of the texts wanted of each, in their first so many bytes.
    fn texts_in(&self, logs: Vec<(&LogFile, &IdSet<Id>)>, bytes: u64) -> Vec<(Id, String)> {
        let look = |(file, wanted): (&LogFile, &IdSet<Id>)| look_up(&file.path, file.packing, bytes, wanted);
        self.pool.install(|| logs.into_par_iter().flat_map_iter(look).collect())
    }
}
