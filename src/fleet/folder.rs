//! The folders into which people put their contributions, `user=<pseudonym>/week=<Monday>/contribution.parquet`: what in
//! them can be pooled, and what is refused and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::civil::Date;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::id::Id;
use crate::base::visible::Shown as _;
use crate::fleet::check::{BinCounts, checked, counted};
use crate::fleet::limits::{FleetLimits, week_named};
use crate::fleet::naming::{FleetNaming, is_user};
use crate::fleet::roster::{self, Roster};
use crate::frames::contribution::{Contribution, ContributionResult, read};
use crate::frames::light;
use crate::logs::trace::Millis;

/// The name of the file of a person's week.
const FILE: &str = "contribution.parquet";
/// The name of the file beside it with the calls that it counts.
const LIGHT_FILE: &str = "rows.parquet";

/// Why an old contribution is not pooled: of a folder that was used for long, most files.
pub const TOO_OLD: &str = "its week is too long ago";

/// Why a contribution is not pooled where rows are.
pub const NO_ROWS: &str = "no rows lie beside it";

/// Where the contribution of a week lies below a directory.
pub fn place(directory: &Path, user: &str, week: &str) -> PathBuf {
    directory.join(format!("user={user}")).join(format!("week={week}")).join(FILE)
}

/// Where the light rows of the same week lie.
pub fn light_place(directory: &Path, user: &str, week: &str) -> PathBuf {
    place(directory, user, week).with_file_name(LIGHT_FILE)
}

/// A contribution that can be pooled.
#[derive(Debug, Clone)]
pub struct PooledFile {
    /// Pseudonym of the person.
    pub user: String,
    /// Monday of the week.
    pub week: String,
    pub digest: String,
    pub marks: Vec<String>,
    pub counts: BinCounts,
}

/// What folders hold.
#[derive(Debug, Default)]
pub struct FolderContents {
    /// What can be pooled, by week and person.
    pub given: BTreeMap<(String, String), PooledFile>,
    /// What is refused, by place, with the reason.
    pub refused: Vec<(String, String)>,
    /// What was pooled before.
    pub roster: Roster,
}

/// How contributions are judged.
pub struct Judge<'a> {
    pub naming: &'a FleetNaming,
    pub limits: &'a FleetLimits,
    pub now_ms: Millis,
    /// Whether calls are counted anew, from the light rows that lie beside the counts.
    pub by_rows: bool,
}

impl Judge<'_> {
    /// Reads directories. An error if one cannot be read, or its roster is damaged.
    pub fn read(&self, directories: &[PathBuf]) -> Result<FolderContents> {
        let mut held = FolderContents::default();
        for directory in directories {
            held.roster.absorb(roster_of(directory)?);
            let paths = files::list(directory).map_err(|cause| Error::io("reading", directory, &cause))?;
            for path in paths {
                self.user(directory, &path, &mut held);
            }
        }
        self.refuse_twins(&mut held);
        held.refused.sort();
        Ok(held)
    }

    fn user(&self, directory: &Path, path: &Path, held: &mut FolderContents) {
        let name = name_of(path);
        if name == roster::FILE || name.starts_with('.') {
            return;
        }
        let user = name.strip_prefix("user=").filter(|user| is_user(user));
        let Some(user) = user.filter(|_| is_directory(path)) else {
            let why = "it is no directory user=<pseudonym> of small letters, digits and dashes";
            return held.refuse(directory, path, why);
        };
        let weeks = match files::list(path) {
            Ok(weeks) => weeks,
            Err(cause) => return held.refuse(directory, path, &format!("it cannot be read: {cause}")),
        };
        for path in weeks {
            let name = name_of(&path);
            let week = name.strip_prefix("week=").and_then(week_named).filter(|_| is_directory(&path));
            let outcome = match week {
                None => Err("it is no directory week=<Monday>".to_owned()),
                Some(week) => self.given(&path.join(FILE), user, week),
            };
            match outcome {
                Err(why) => held.refuse(directory, &path, &why),
                Ok(given) => {
                    let key = (given.week.clone(), given.user.clone());
                    if held.given.get(&key).is_some_and(|known| known.digest != given.digest) {
                        held.refuse(directory, &path, "another folder has another file of this person and week");
                    } else {
                        held.given.insert(key, given);
                    }
                }
            }
        }
    }

    fn given(&self, path: &Path, user: &str, week: Date) -> ContributionResult<PooledFile> {
        if self.limits.is_past(week, self.now_ms) {
            return Err(TOO_OLD.to_owned());
        }
        if !self.limits.is_told(week, self.now_ms) {
            return Err("its week is not over".to_owned());
        }
        let bytes = self.bytes(path, self.limits.file_bytes_max)?;
        let digest = Id::witness(&bytes).to_string();
        let contribution = read(bytes, self.limits.rows_max)?;
        is_of(&contribution, user, week)?;
        let marks = &contribution.marks;
        if marks.is_empty() || marks.len() > self.limits.marks_max {
            return Err("it has no marks of sessions, or too many".to_owned());
        }
        let mut counts = checked(&contribution, self.naming, self.limits)?;
        if self.by_rows {
            counts = self.counted(&path.with_file_name(LIGHT_FILE), user, week, &counts)?;
        }
        Ok(PooledFile { user: user.to_owned(), week: week.to_string(), digest, marks: marks.clone(), counts })
    }

    /// The counts that light rows give.
    fn counted(&self, path: &Path, user: &str, week: Date, beside: &BinCounts) -> ContributionResult<BinCounts> {
        if !path.exists() {
            return Err(NO_ROWS.to_owned());
        }
        let FleetLimits { light_bytes_max, light_rows_max, .. } = self.limits;
        let named = |why| format!("{LIGHT_FILE}: {why}");
        let read = || {
            let (of, calls) = light::read(self.bytes(path, *light_bytes_max)?, *light_rows_max)?;
            is_of(&of, user, week)?;
            counted(&of, &calls, beside, self.naming, self.limits)
        };
        read().map_err(named)
    }

    /// The bytes of a small regular file.
    fn bytes(&self, path: &Path, most: u64) -> ContributionResult<Vec<u8>> {
        let meta = fs::symlink_metadata(path).map_err(|cause| format!("it cannot be read: {cause}"))?;
        if !meta.is_file() {
            return Err("it is no regular file".to_owned());
        }
        if meta.len() > most {
            return Err(format!("it has {} bytes; at most {most} are read", meta.len()));
        }
        files::read_own(path).map_err(|cause| format!("it cannot be read: {cause}"))
    }

    /// Refuses the same logs under two names. Whose week was pooled before keeps it.
    fn refuse_twins(&self, held: &mut FolderContents) {
        let mut owners: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for given in held.given.values() {
            for mark in &given.marks {
                owners.entry((given.week.clone(), mark.clone())).or_default().insert(given.user.clone());
            }
        }
        let twins: BTreeSet<(String, String)> = owners
            .into_iter()
            .filter(|(_, users)| users.len() > 1)
            .flat_map(|((week, _), users)| users.into_iter().map(move |user| (week.clone(), user)))
            .collect();
        for (week, user) in twins {
            if !held.roster.spent(&week).contains(user.as_str()) {
                held.given.remove(&(week.clone(), user.clone()));
                let why = "it holds sessions that another name gives too: one person must have one name";
                held.refused.push((format!("user={user}/week={week}"), why.to_owned()));
            }
        }
    }
}

impl FolderContents {
    fn refuse(&mut self, directory: &Path, path: &Path, why: &str) {
        let place = path.strip_prefix(directory).unwrap_or(path);
        self.refused.push((place.shown(), why.to_owned()));
    }
}

/// Whether a file says that it is of this person and week.
fn is_of(said: &Contribution, user: &str, week: Date) -> ContributionResult<()> {
    if (said.user.as_str(), said.week.as_str()) == (user, week.to_string().as_str()) {
        return Ok(());
    }
    Err("it says that it is another person's, or of another week".to_owned())
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Whether it is a directory, not a link to one.
fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

fn roster_of(directory: &Path) -> Result<Roster> {
    let path = directory.join(roster::FILE);
    match files::read_own(&path) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(Roster::default()),
        Err(cause) => Err(Error::io("reading", &path, &cause)),
        Ok(bytes) => {
            let roster: Option<Roster> = serde_json::from_slice(&bytes).ok();
            roster.filter(|roster| roster.schema_version == roster::SCHEMA_VERSION).ok_or_else(|| {
                Error::failed(format!("{} is damaged or of another version", path.shown()))
                    .hint("it says whose weeks were pooled; without it differences of pools could tell of one person")
            })
        }
    }
}
