//! Whose weeks were pooled together. A person's week is spent once, in a batch of people that is large enough, and every
//! pool is a sum of whole batches. So the difference of any two pools, of other weeks or other groups, is a sum of such
//! batches too, and never one person.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// People whose week was pooled, with the digest of what they gave.
pub type Batch = BTreeMap<String, String>;

/// All batches, by week.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roster {
    /// Version of this file.
    pub schema_version: u32,
    /// Batches of each week, in the order in which they were made.
    pub weeks: BTreeMap<String, Vec<Batch>>,
}

/// Version of the file.
pub const SCHEMA_VERSION: u32 = 1;
/// Its name in a directory of contributions.
pub const FILE: &str = "pool-roster.json";

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
}
