//! Whose weeks were pooled together. A person's week is spent once, in a batch of people that is large enough, and every
//! pool is a sum of whole batches. So the difference of any two pools, of other weeks or other groups, is a sum of such
//! batches too, and never one person.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::base::files;

/// People whose week was pooled, with the digest of what they gave.
pub type Batch = BTreeMap<String, String>;

/// All batches, by week.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roster {
    pub schema_version: u32,
    /// Batches of each week, in the order in which they were made.
    pub weeks: BTreeMap<String, Vec<Batch>>,
}

/// Version of the file.
pub const SCHEMA_VERSION: u32 = 1;
/// Its name in a directory of contributions.
pub const FILE: &str = "pool-roster.json";
/// The name of the lock beside it.
const LOCK_FILE: &str = ".pool-roster.lock";

impl Roster {
    /// Takes in the batches of another directory.
    pub fn absorb(&mut self, other: Self) {
        self.schema_version = SCHEMA_VERSION;
        for (week, batches) in other.weeks {
            let own = self.weeks.entry(week).or_default();
            for batch in batches {
                if !own.contains(&batch) {
                    own.push(batch);
                }
            }
        }
    }

    /// The people whose week is spent.
    pub fn spent(&self, week: &str) -> BTreeSet<&str> {
        let batches = self.weeks.get(week).into_iter().flatten();
        batches.flat_map(|batch| batch.keys().map(String::as_str)).collect()
    }

    /// The numbers of a week's batches that have a person in common with a larger one that is pooled: the difference of the
    /// two would tell of few. Two rosters that did not know of each other give such batches, and it is the same ones in
    /// whichever order they are read.
    pub fn overlapping(&self, week: &str) -> BTreeSet<u32> {
        let batches = self.weeks.get(week).into_iter().flatten();
        let mut largest_first: Vec<(u32, &Batch)> = (0..).zip(batches).collect();
        largest_first.sort_by_key(|(_, batch)| (Reverse(batch.len()), *batch));
        let (mut pooled, mut out) = (BTreeSet::new(), BTreeSet::new());
        for (number, batch) in largest_first {
            if batch.keys().any(|user| pooled.contains(user)) {
                out.insert(number);
            } else {
                pooled.extend(batch.keys());
            }
        }
        out
    }
}

/// Keeps other runs from pooling the same people while the rosters of these directories are read, changed and written.
/// An error if another run does not end in time. Where no lock can be written no roster can be, either.
pub fn locked(directories: &[PathBuf]) -> Result<Vec<File>> {
    // Everybody takes them in the same order, and each once, so that nobody waits for himself.
    let places: BTreeSet<PathBuf> = directories.iter().filter_map(|directory| directory.canonicalize().ok()).collect();
    let mut locks = Vec::new();
    for place in places {
        let path = place.join(LOCK_FILE);
        match files::lock(&path, &|| ()) {
            Ok(lock) => locks.push(lock),
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => {
                return Err(
                    Error::io("locking", &path, &cause).hint("another run pools there: run again when it is done")
                );
            }
            Err(_) => {}
        }
    }
    Ok(locks)
}
