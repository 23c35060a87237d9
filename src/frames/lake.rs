//! The lake on disk: Parquet segments and a manifest, written so that a run killed at any moment, or a disk that fails at
//! any step, leaves either the lake as it was or the lake as it should be.
//!
//! A [`Lake`] is what was found at one moment and never changes: a commit takes values, writes them, and returns the lake
//! as it is then. It writes new segments under names that nobody refers to and replaces the manifest. Readers wait for
//! nobody; a writer holds the lock while it writes (timelines, facts and first rows go to files of their own before), and starts
//! from the lake as it finds it then. What no manifest refers to is swept away when nobody reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use rayon::prelude::*;

use crate::base::allocator;
use crate::base::files;
use crate::base::id::{Id, IdSet};
use crate::base::names::{Names, Sym};
use crate::base::seal::{Seal, Way, drawn, kept_secret, secret_file};
use crate::facts::body_facts::{BodyFacts, WantedFacts};
use crate::frames::columns::ColumnResult;
use crate::frames::manifest::{LakeSegment, Manifest, StoredSource, Unusable};
use crate::frames::new_facts::NewFacts;
use crate::frames::new_rows::{NewRows, WrittenRows, row_tables};
use crate::frames::new_table::NewTable;
use crate::frames::new_timelines::NewTimelines;
use crate::frames::stored::{StoredTable, Unreadable};
use crate::frames::tables::TaggedRows;
use crate::frames::timelines::{Joined, PackedTimeline};
use crate::frames::written::write_table;
use crate::frames::{bodies, manifest, packed, sealed, tables, timelines, values};
use crate::logs::trace::FileRows;
use crate::logs::values::ValueRows;

/// Held by whoever writes.
const WRITER_LOCK: &str = "lock";
/// Shared by all who read; held alone while files are swept away.
const READER_LOCK: &str = "readers";
/// More segments than this are merged into one.
const SEGMENTS_MAX: usize = 8;
/// Answers kept; a window that moves with the clock asks a new question every time.
const MEMOS_MAX: usize = 16;
/// Rows of a table that are laid out and compressed together: what is being written should not need much room besides.
pub(super) const GROUP_ROWS: usize = 1 << 12;
/// Facts of so many bodies are read before memory between them is given back: to look for what is free takes its time.
const FACTS_AT_ONCE: usize = 1 << 16;
/// Every column of a table.
pub(super) const ALL: &(dyn Fn(&str) -> bool + Sync) = &|_| true;

/// A file of the lake that does not hold what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LakeDamage {
    segment: u32,
    table: String,
    /// What is wrong, with the name of the file.
    pub why: String,
}

/// Why something could not be read or written. The lake on disk is then as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Files do not hold what was written: [`Lake::without`] them the lake can be used.
    Damaged(Vec<LakeDamage>),
    /// Another run has changed the lake since it was opened: [`Lake::open`] gives the new one.
    Overtaken,
    /// The disk refused facts that were not in memory any more: logs have to be read again for them.
    LetGo,
    /// Whatever the disk says; next time it may be different.
    Failed(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damaged(files) => {
                let first = files.first().map_or("", |damage| damage.why.as_str());
                match files.len() {
                    0 | 1 => f.write_str(first),
                    more => write!(f, "{first}, and {} more", more - 1),
                }
            }
            Self::Overtaken => f.write_str("another run has changed it meanwhile"),
            Self::LetGo => f.write_str("facts have to be made again"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

/// What a run found out.
pub struct Update<'a> {
    /// All sources from now on.
    pub sources: &'a BTreeMap<Id, StoredSource>,
    /// The next number of a source.
    pub next_source: u32,
    /// What was read; none if only the sources changed.
    pub news: Option<News<'a>>,
    /// Timelines of it that are on disk.
    pub timelines: Option<NewTimelines>,
    /// Facts of it that are on disk: [`News::facts`] are none then.
    pub facts: Option<NewFacts>,
    /// Rows and values of it that are on disk: those of its [`News`] are none then.
    pub rows: Option<NewRows>,
}

/// What a run read.
pub struct News<'a> {
    /// New rows by source.
    pub delta: &'a TaggedRows<'a>,
    /// Every live row by source, for when segments are merged.
    pub all: &'a TaggedRows<'a>,
    /// What symbols in the rows mean.
    pub names: &'a Names,
    /// Facts about bodies that were not known before.
    pub facts: &'a [BodyFacts],
    pub maker: Id,
    /// See [`crate::facts::body_facts::Encoding::format`].
    pub formats: &'a [&'a str],
    /// New values by source.
    pub values: &'a BTreeMap<u32, ValueRows>,
    /// What symbols in the values mean.
    pub value_names: &'a Names,
}

/// The lake as it was found or left at one moment.
#[derive(Clone, Debug)]
pub struct Lake {
    pub dir: PathBuf,
    pub manifest: Arc<Manifest>,
    /// Names the manifest on disk; [`Id::NONE`] if there is none that can be used.
    stamp: Id,
    /// Whether the manifest differs from that on disk.
    is_mended: bool,
    /// What seals its hashes on disk.
    pub(super) seal: Arc<Seal>,
    /// Whether it was sealed by a secret that is gone: its rows still count as a whole, but nothing can be found in it by name
    /// or added to it.
    pub is_foreign: bool,
    /// While it lives, nothing that this lake refers to is swept away.
    share: Option<Arc<File>>,
    /// What there is to say about the state in which the lake was found.
    pub note: Option<String>,
}

impl Lake {
    /// Opens the lake in `dir`, making it if need be. Waits for nobody. An error if the directory cannot be made or
    /// read, if others may write to it, if something else keeps a manifest in it, or if the lake was written by a later
    /// devboy. Work goes on without a lake then.
    pub fn open(dir: &Path) -> Result<Self, String> {
        files::make_dir(dir).map_err(|cause| format!("making {}: {cause}", dir.display()))?;
        if let Some(why) = files::is_exposed(dir) {
            return Err(format!("{why}: it has to be yours alone (chmod go-w)"));
        }
        // Whoever wrote a manifest of ours locked the directory first.
        if !dir.join(WRITER_LOCK).exists() && matches!(Manifest::load(dir), Err(Unusable::Broken(_))) {
            let found = dir.join(manifest::FILE_NAME);
            return Err(format!("{} is not devboy's: name a directory of its own", found.display()));
        }
        // Without a share, for instance on a disk that cannot be written, missing files count as damage.
        let share = files::share(&dir.join(READER_LOCK)).ok().map(Arc::new);
        let secret = kept_secret(dir).map_err(|cause| format!("the secret of {}: {cause}", dir.display()))?;
        let seal = Seal::new(&secret);
        Self::found(dir, share, Arc::new(seal))
    }

    fn found(dir: &Path, share: Option<Arc<File>>, seal: Arc<Seal>) -> Result<Self, String> {
        let place = dir.display();
        let anew = || empty(dir, &seal);
        let (manifest, stamp, note) = match Manifest::load(dir) {
            Ok((manifest, stamp)) => (manifest, stamp, None),
            Err(Unusable::Absent) if last_segment(dir) == 0 => (anew(), Id::NONE, None),
            Err(Unusable::Absent) => {
                let note = "the lake has no manifest.json (its first run was stopped, or the file is lost) and is made anew; \
                            deleted logs that only it knew are lost";
                (anew(), Id::NONE, Some(note.to_owned()))
            }
            Err(Unusable::Newer) => return Err(format!("{place} was written by a later devboy")),
            Err(Unusable::Unreadable(why)) => return Err(format!("{place} cannot be read ({why})")),
            Err(Unusable::Older) => {
                let note = "the lake was laid out by an older devboy: logs are read anew, deleted ones are lost";
                (anew(), Id::NONE, Some(note.to_owned()))
            }
            Err(Unusable::Broken(why)) => {
                let note = format!("the lake was damaged ({why}) and is rebuilt; deleted logs are lost");
                (anew(), Id::NONE, Some(note))
            }
        };
        let is_foreign = manifest.sealed_by != seal.check();
        let manifest = Arc::new(manifest.renamed(|id| seal.id(Way::FromDisk, id)));
        Ok(Self { dir: dir.to_owned(), manifest, stamp, is_mended: false, seal, is_foreign, share, note })
    }

    /// An empty lake in its place, and what there is to say about that.
    #[must_use]
    pub fn emptied(&self) -> (Self, String) {
        let note = format!(
            "the lake was sealed by another secret than {}: logs are read anew, deleted ones are lost",
            secret_file(&self.dir).display()
        );
        let manifest = empty(&self.dir, &self.seal).into();
        (Self { manifest, is_mended: true, is_foreign: false, ..self.clone() }, note)
    }

    /// The lake without what is damaged, if that is the trouble and changes anything.
    #[must_use]
    pub fn mended(&self, trouble: &Trouble) -> Option<Self> {
        let Trouble::Damaged(damage) = trouble else { return None };
        Some(self.without(damage)).filter(|now| now.manifest != self.manifest)
    }

    /// The lake as it is on disk now, if another run has changed it.
    pub fn newer(&self) -> Option<Self> {
        Self::found(&self.dir, self.share.clone(), Arc::clone(&self.seal)).ok().filter(|now| now.stamp != self.stamp)
    }

    /// The lake without damaged files. Sources whose rows were in them are no longer known; those whose values were in
    /// them are to be read anew, and all of whose bodies some facts are missing are to be studied anew.
    #[must_use]
    pub fn without(&self, damage: &[LakeDamage]) -> Self {
        let mut mended = Self { is_mended: true, ..self.clone() };
        let Manifest { segments, body_segments, timeline_segments, sources, .. } = Arc::make_mut(&mut mended.manifest);
        for LakeDamage { segment: number, table, .. } in damage {
            let table = table.as_str();
            let hit = segments.iter_mut().find(|segment| segment.number == *number);
            if tables::TABLES.contains(&table) {
                let lost: BTreeSet<u32> = hit.into_iter().flat_map(|segment| segment.sources.clone()).collect();
                sources.retain(|_, source| !lost.contains(&source.number));
                segments.retain(|segment| segment.number != *number);
            } else if values::TABLES.contains(&table) {
                let Some(segment) = hit else { continue };
                segment.tables.remove(table);
                let stale = sources.values_mut().filter(|source| segment.sources.contains(&source.number));
                stale.for_each(|source| source.maker.rows = Id::NONE);
            } else if bodies::TABLES.contains(&table) {
                body_segments.retain(|segment| segment.number != *number);
                sources.values_mut().for_each(|source| source.tier = 0);
            } else {
                timeline_segments.retain(|segment| segment.number != *number);
            }
        }
        mended
    }

    /// The rows of some of [`TABLES`] of the live sources that are wanted, by number.
    pub fn load(
        &self,
        tables: &[&'static str],
        names: &mut Names,
        wanted: &dyn Fn(u32) -> bool,
    ) -> Result<Vec<(u32, FileRows)>, Trouble> {
        let mut live = self.manifest.live();
        live.retain(|&number| wanted(number));
        let mut files: Vec<(u32, FileRows)> = live.iter().map(|&number| (number, FileRows::default())).collect();
        let place: BTreeMap<u32, usize> = live.iter().enumerate().map(|(index, &number)| (number, index)).collect();
        // Rows come source by source, so the last answer nearly always holds.
        let mut last = (0, None);
        let mut file_of = |source: u32| {
            if last.0 != source {
                last = (source, place.get(&source).copied());
            }
            last.1
        };
        self.each_batch(&live, tables, &mut |table, batch| {
            tables::read(table, batch, names, &mut files, &mut file_of)
        })?;
        Ok(files)
    }

    /// The values of all live sources, by number; with those lists that only the published planner asks about, or without.
    pub fn load_values(&self, names: &mut Names, with_taken: bool) -> Result<BTreeMap<u32, ValueRows>, Trouble> {
        let live = self.manifest.live();
        let mut files: BTreeMap<u32, ValueRows> = live.iter().map(|&number| (number, ValueRows::default())).collect();
        let mut of = |source: u32, add: &mut dyn FnMut(&mut ValueRows)| {
            if let Some(file) = files.get_mut(&source) {
                add(file);
            }
        };
        self.each_batch(&live, &values::TABLES, &mut |table, batch| {
            values::read(table, batch, names, with_taken, &mut of)
        })?;
        // Of a file that stands in several batches there is room for more.
        files.values_mut().for_each(ValueRows::shrink_to_fit);
        Ok(files)
    }

    /// In which vocabularies bodies were counted, each once: as [`Lake::load_bodies`] has it.
    pub fn counted_bodies(&self, maker: Id) -> Result<Vec<(Id, u8)>, Trouble> {
        let is_wanted = |column: &str| bodies::COUNTED_COLUMNS.contains(&column);
        let facts = newest_bodies(&self.body_tables()?, maker, |segment, table, facts| {
            let mut add = |mut group| {
                facts.append(&mut group);
                Ok(())
            };
            self.each_group(segment, (bodies::TABLES[0], table), &is_wanted, &|batch| bodies::read(&batch), &mut add)
        });
        Ok(facts?.iter().map(|facts| (facts.body, facts.counted)).collect())
    }

    /// All facts about bodies, or what is wanted of them, each body once, in any order; `formats` are the names of the formats
    /// by number. Facts that something else than `maker` made serve for logs that are gone: they count as not counted, so that
    /// all other bodies are studied again.
    pub fn load_bodies(
        &self,
        formats: &[&str],
        maker: Id,
        wanted: Option<&dyn WantedFacts>,
    ) -> Result<Vec<BodyFacts>, Trouble> {
        let tables = self.body_tables()?;
        if let Some(wanted) = wanted.filter(|wanted| wanted.looks()) {
            self.show_bodies(&tables, wanted)?;
        }
        newest_bodies(&tables, maker, |segment, table, facts| {
            self.load_body_segment(segment, table, formats, wanted, facts)
        })
    }

    /// The tables of bodies, the latest first.
    fn body_tables(&self) -> Result<Vec<BodyTable<'_>>, Trouble> {
        let segments = self.manifest.body_segments.iter().rev();
        let opened = segments.map(|segment| Ok((segment, self.stored(segment, bodies::TABLES[0])?)));
        let mut tables = Vec::new();
        each_whole(opened, |table| tables.push(table))?;
        Ok(tables)
    }

    /// Shows what is asked about before facts are read.
    fn show_bodies(&self, tables: &[BodyTable<'_>], wanted: &dyn WantedFacts) -> Result<(), Trouble> {
        let is_wanted = |column: &str| bodies::SEEN_COLUMNS.contains(&column);
        let show = |batch| {
            bodies::seen(&batch, &self.seal)?.iter().for_each(|facts| wanted.see(facts));
            Ok(())
        };
        let shown = tables.iter().map(|(segment, table)| {
            let shown = table.each_group(&is_wanted, &show, &mut Ok);
            shown.map_err(|cause| self.trouble(segment, bodies::TABLES[0], cause))
        });
        each_whole(shown, |()| ())
    }

    /// Puts the facts of one segment behind others. Bodies come group by group, so that no more than a few of them stand in
    /// memory twice.
    fn load_body_segment(
        &self,
        segment: &LakeSegment,
        table: &StoredTable,
        formats: &[&str],
        wanted: Option<&dyn WantedFacts>,
        facts: &mut Vec<BodyFacts>,
    ) -> Result<(), Trouble> {
        let [bodies_table, encodings_table] = bodies::TABLES;
        let of_encodings = self.stored(segment, encodings_table)?;
        let (mut left, mut encodings) = (0..of_encodings.groups(), bodies::StoredEncodings::default());
        let opened = |batch| sealed::pass(batch, &self.seal, Way::FromDisk);
        facts.reserve_exact(table.rows());
        let mut added = 0;
        for some in (0..table.groups()).collect::<Vec<_>>().chunks(rayon::current_num_threads()) {
            let mut groups: Vec<Vec<BodyFacts>> = Vec::new();
            let read = table.some_groups(some, ALL, &|batch| bodies::read(&opened(batch)?), &mut |group| {
                groups.push(group);
                Ok(())
            });
            read.map_err(|cause| self.trouble(segment, bodies_table, cause))?;
            let here: IdSet<Id> = groups.iter().flatten().map(|row| row.body).collect();
            while !encodings.go_beyond(&here)
                && let Some(next) = left.next()
            {
                let read = of_encodings.some_groups(&[next], ALL, &opened, &mut |batch| encodings.add(&batch, formats));
                read.map_err(|cause| self.trouble(segment, encodings_table, cause))?;
            }
            groups.par_iter_mut().for_each(|group| {
                group.iter_mut().for_each(|row| encodings.give(row));
                group.retain_mut(|row| wanted.is_none_or(|wanted| wanted.keep(row)));
            });
            encodings.let_go_of(&here);
            groups.iter_mut().for_each(|group| facts.append(group));
            added += here.len();
            // What is not wanted of them lay between what is.
            if added > FACTS_AT_ONCE {
                added = 0;
                allocator::give_back_small_blocks();
            }
        }
        Ok(())
    }

    /// What `make` makes of what the sources say for a timeline, by number of the source; of several readings of a source
    /// the latest of which it makes something. Without rows it is only told which timelines there are.
    pub fn load_timelines<T: Send>(
        &self,
        with_rows: bool,
        make: &(dyn Fn(PackedTimeline<'_>) -> Option<T> + Sync),
    ) -> Result<BTreeMap<u32, T>, Trouble> {
        let segments = self.manifest.timeline_segments.iter();
        let read = segments.map(|segment| self.load_timeline_segment(segment, with_rows, make));
        let mut files = BTreeMap::new();
        each_whole(read, |made| files.extend(made))?;
        Ok(files)
    }

    /// The timelines of one segment: first those that stand in one row, by many workers, and then those in several.
    fn load_timeline_segment<T: Send>(
        &self,
        segment: &LakeSegment,
        with_rows: bool,
        make: &(dyn Fn(PackedTimeline<'_>) -> Option<T> + Sync),
    ) -> Result<Vec<(u32, T)>, Trouble> {
        let [table] = timelines::TABLES;
        let opened = |mut row: PackedTimeline<'_>| {
            sealed::turn_packed(row.rows.to_mut(), &self.seal, Way::FromDisk);
            Some((row.source, make(row)?))
        };
        let read = |batch: RecordBatch| {
            let (mut made, mut parts) = (Vec::new(), Vec::new());
            let mut each = |row: PackedTimeline<'_>, around: (u64, u64)| match around {
                (0, 0) => made.extend(opened(row)),
                _ if with_rows => parts.push((row.owned(), around)),
                (_, 0) => made.extend(opened(row)),
                _ => {}
            };
            timelines::read(&batch, &mut each).map(|()| (made, parts))
        };
        let (mut files, mut joined) = (Vec::new(), Joined::default());
        let mut add = |(made, parts): (Vec<(u32, T)>, Vec<_>)| {
            files.extend(made);
            files.extend(parts.into_iter().filter_map(|(row, around)| joined.add(row, around)).filter_map(opened));
            Ok(())
        };
        let is_wanted = |column: &str| with_rows || column != packed::COLUMN;
        self.each_group(segment, (table, &self.stored(segment, table)?), &is_wanted, &read, &mut add)?;
        Ok(files)
    }

    /// Takes timelines of what is read now. None where there are many segments: then they are merged with what is read
    /// ([`Lake::commit_timelines`]).
    pub fn begin_timelines(&self) -> Option<NewTimelines> {
        let segments = &self.manifest.timeline_segments;
        let table = self.new_table().filter(|_| segments.len() < SEGMENTS_MAX)?;
        let stored = segments.iter().flat_map(|segment| segment.sources.iter().copied()).collect();
        Some(NewTimelines::new(table, Arc::clone(&self.seal), stored))
    }

    /// Takes rows and values of what is read now, if these are the first rows: others may have to be merged with them. None where
    /// facts have to be merged, which takes all rows.
    pub fn begin_rows(&self) -> Option<NewRows> {
        let Manifest { segments, body_segments, .. } = &*self.manifest;
        if !segments.is_empty() || body_segments.len() >= SEGMENTS_MAX {
            return None;
        }
        let tables = row_tables().map(|_| self.new_table()).collect::<Option<Vec<_>>>()?;
        NewRows::begin(tables, Arc::clone(&self.seal), &self.dir).ok()
    }

    /// Takes facts of what is read now. None where there are many segments: then they are merged with what is read
    /// ([`Lake::commit`]); and none where nothing can be written.
    pub fn begin_facts(&self, maker: Id) -> Option<NewFacts> {
        let segments = &self.manifest.body_segments;
        let tables = [self.new_table()?, self.new_table().filter(|_| segments.len() < SEGMENTS_MAX)?];
        NewFacts::begin(tables, Arc::clone(&self.seal), maker).ok()
    }

    /// A table under a name that nobody knows.
    fn new_table(&self) -> Option<NewTable> {
        Some(NewTable::new(self.dir.join(format!("{}.tmp", Id(drawn().ok()?)))))
    }

    /// Writes what a run found out, if the lake is still the one it was found out about, and returns the lake as it is
    /// then. `waiting` is called if another run is writing. What is on disk already is taken out of the update: what is tried
    /// again is tried without it.
    pub fn commit(&self, update: &mut Update<'_>, waiting: &dyn Fn()) -> Result<Self, Trouble> {
        let is_known = update.news.is_none() && update.facts.is_none() && self.manifest.sources == *update.sources;
        if is_known && !self.is_mended {
            return Ok(self.clone());
        }
        let timelines = update.timelines.take().filter(|some| !some.is_empty());
        let facts = update.facts.take().and_then(|facts| Some((facts.maker, facts.into_tables()?)));
        let mut rows = match (update.rows.take(), &update.news) {
            (Some(rows), Some(news)) => {
                let ended = rows.finish((news.names, news.value_names));
                Some(ended.map_err(|cause| not_written(&self.segment(self.manifest.next_segment, "calls"), &*cause))?)
            }
            _ => None,
        };
        let own_tables = facts.iter().flat_map(|(_, tables)| tables);
        let own_tables = own_tables.chain(rows.iter().flat_map(|rows| &rows.tables));
        let own_tables = own_tables.chain(timelines.iter().map(|some| &some.table));
        let own: Vec<PathBuf> = own_tables.map(|table| table.path.clone()).collect();
        self.write(waiting, &own, |base, next| {
            if base.stamp != self.stamp {
                return Err(Trouble::Overtaken);
            }
            next.sources.clone_from(update.sources);
            next.next_source = update.next_source;
            if let Some(news) = &update.news {
                match rows.take() {
                    Some(written) => base.take_over_rows(next, written, news.names)?,
                    None => base.add_rows(next, news)?,
                }
                base.add_facts(next, news)?;
            }
            if let Some((maker, tables)) = facts {
                let (number, tables) = base.take_over(next, bodies::TABLES.into_iter().zip(tables))?;
                next.body_segments.push(LakeSegment { number, tables, maker, ..LakeSegment::default() });
            }
            timelines.map_or(Ok(()), |some| base.add_timelines(next, some))
        })
    }

    /// Writes what a run read for timelines of sources that are still known as it knew them, and returns the lake as it
    /// is then. Segments are merged when there are many, without sources that are gone.
    pub fn commit_timelines(
        &self,
        news: Vec<(&StoredSource, PackedTimeline<'_>)>,
        waiting: &dyn Fn(),
    ) -> Result<Self, Trouble> {
        self.write(waiting, &[], |base, next| {
            let told = |source: &StoredSource| (source.timeline(), source.bytes, source.content);
            let is_known = |stored: &StoredSource| next.sources.get(&stored.key).map(told) == Some(told(stored));
            let mut rows: Vec<PackedTimeline<'_>> =
                news.into_iter().filter(|(stored, _)| is_known(stored)).map(|(_, row)| row).collect();
            if next.timeline_segments.len() >= SEGMENTS_MAX {
                let fresh: BTreeSet<u32> = rows.iter().map(|row| row.source).collect();
                let live: BTreeSet<u32> = next.sources.values().map(StoredSource::timeline).collect();
                let is_wanted = |source: &u32| live.contains(source) && !fresh.contains(source);
                rows.extend(
                    base.load_timelines(true, &|row| is_wanted(&row.source).then(|| row.owned()))?.into_values(),
                );
                rows.sort_by_key(|row| row.source);
                next.timeline_segments.clear();
            }
            if rows.is_empty() {
                return Ok(());
            }
            let number = next.take_segment();
            let groups = timelines::groups(&rows);
            let make = |_: &str, part: usize| Some(timelines::batch(&rows, groups.get(part)?, &self.seal));
            let tables = self.write_tables(number, &timelines::TABLES, &make)?;
            let sources = rows.iter().map(|row| row.source).collect();
            next.timeline_segments.push(LakeSegment { number, tables, sources, ..LakeSegment::default() });
            Ok(())
        })
    }

    /// The one place where a lake on disk changes: lets `change` write segments and note them in a copy of the manifest
    /// as it is on disk by then, replaces the manifest, and only then is there a new lake. `own` are temporary files of this
    /// run.
    fn write(
        &self,
        waiting: &dyn Fn(),
        own: &[PathBuf],
        change: impl FnOnce(&Self, &mut Manifest) -> Result<(), Trouble>,
    ) -> Result<Self, Trouble> {
        let failed = |what: &str, cause: &dyn std::fmt::Display| {
            Trouble::Failed(format!("{what} {}: {cause}", self.dir.display()))
        };
        let _lock = files::lock(&self.dir.join(WRITER_LOCK), waiting).map_err(|cause| failed("locking", &cause))?;
        let now = Self::found(&self.dir, self.share.clone(), Arc::clone(&self.seal)).map_err(Trouble::Failed)?;
        let is_current = now.stamp == self.stamp;
        let base = if is_current { self } else { &now };
        // What a killed run left behind may be all that the disk has room for.
        let left_over = base.manifest.next_segment;
        self.remove_from(left_over);
        self.while_nobody_reads(|| {
            let is_left =
                |path: &PathBuf| path.extension().is_some_and(|ending| ending == "tmp") && !own.contains(path);
            own_files(&self.dir).filter(is_left).for_each(|path| files::remove(&path));
        });
        let mut manifest = Manifest::clone(&base.manifest);
        let text = change(base, &mut manifest).and_then(|()| {
            let text = manifest.clone().renamed(|id| self.seal.id(Way::ToDisk, id)).to_json();
            let path = self.dir.join(manifest::FILE_NAME);
            let replaced = files::replace(&path, &path.with_extension("tmp"), &text);
            replaced.map_err(|cause| failed("writing the lake in", &cause))?;
            Ok(text)
        });
        let text = text.inspect_err(|_| self.remove_from(left_over))?;
        if !is_current {
            // Numbers of sources that the caller knows belong to the lake that it knows.
            return Ok(self.clone());
        }
        let lake = Self { manifest: manifest.into(), stamp: Id::of(&text), is_mended: false, ..self.clone() };
        lake.sweep();
        Ok(lake)
    }

    /// Takes over the first rows, which are on disk already.
    fn take_over_rows(&self, next: &mut Manifest, written: WrittenRows, names: &Names) -> Result<(), Trouble> {
        next.mcp_tools = written.mcp_tools(names);
        let WrittenRows { tables, sources, rows, .. } = written;
        if rows > 0 {
            let (number, tables) = self.take_over(next, row_tables().zip(tables))?;
            next.segments.push(LakeSegment { number, tables, sources, rows, maker: Id::NONE });
        }
        Ok(())
    }

    /// Writes new rows, or all where segments are merged.
    fn add_rows(&self, next: &mut Manifest, news: &News<'_>) -> Result<(), Trouble> {
        let live: u64 = news.all.iter().map(|(_, rows)| row_count(rows)).sum();
        let fresh: u64 = news.delta.iter().map(|(_, rows)| row_count(rows)).sum();
        let stored: u64 = next.segments.iter().map(|segment| segment.rows).sum();
        let is_merged = next.segments.len() >= SEGMENTS_MAX || stored + fresh > 2 * live.max(1);
        let mut value_names = news.value_names.clone();
        let mut kept = BTreeMap::new();
        if is_merged {
            let live = next.live();
            kept = self.load_values(&mut value_names, true)?;
            kept.retain(|source, _| live.contains(source));
            next.segments.clear();
        }
        next.mcp_tools = mcp_tools(&news.all.iter().flat_map(|(_, rows)| tools_of(rows)).collect(), news.names);
        let (files, rows) = if is_merged { (news.all, live) } else { (news.delta, fresh) };
        if rows == 0 {
            return Ok(());
        }
        let values: Vec<(u32, &ValueRows)> =
            kept.iter().chain(news.values).map(|(&source, values)| (source, values)).collect();
        let number = next.take_segment();
        let group = |part| part * GROUP_ROWS..(part + 1) * GROUP_ROWS;
        let make = |table: &str, part| match values::TABLES.contains(&table) {
            true => values::batch(table, &values, &value_names, group(part)),
            false => tables::batch(table, files, news.names, group(part)),
        };
        let tables = self.write_tables(number, &row_tables().collect::<Vec<_>>(), &make)?;
        let sources = files.iter().map(|(source, _)| *source).collect();
        next.segments.push(LakeSegment { number, tables, sources, rows, maker: Id::NONE });
        Ok(())
    }

    /// Writes the new facts that some call refers to; merges segments when there are many.
    fn add_facts(&self, next: &mut Manifest, news: &News<'_>) -> Result<(), Trouble> {
        if news.facts.is_empty() && next.body_segments.len() < SEGMENTS_MAX {
            return Ok(());
        }
        let calls = || news.all.iter().flat_map(|(_, rows)| &rows.calls);
        let answers = calls().filter_map(|row| row.answered).map(|answered| answered.body);
        let quotes = calls().filter_map(|row| Some(BodyFacts::quoted_by(row.asked?.message, row.call)));
        let live: IdSet<Id> = answers.chain(quotes).collect();
        let mut facts: Vec<&BodyFacts> = news.facts.iter().filter(|row| live.contains(&row.body)).collect();
        let known;
        if next.body_segments.len() >= SEGMENTS_MAX {
            let fresh: IdSet<Id> = facts.iter().map(|row| row.body).collect();
            known = self.load_bodies(news.formats, news.maker, None)?;
            facts.extend(known.iter().filter(|row| live.contains(&row.body) && !fresh.contains(&row.body)));
            next.body_segments.clear();
            // What others said of the same bodies goes: if they are asked again, they study them again.
            let others = next.sources.values_mut().filter(|source| source.maker.facts != news.maker);
            others.for_each(|source| source.tier = 0);
        }
        if facts.is_empty() {
            return Ok(());
        }
        let number = next.take_segment();
        let groups: Vec<_> = facts.chunks(bodies::GROUP_ROWS).collect();
        let make = |table: &str, part: usize| Some(bodies::batch(table, groups.get(part)?, news.formats));
        let tables = self.write_tables(number, &bodies::TABLES, &make)?;
        next.body_segments.push(LakeSegment { number, tables, maker: news.maker, ..LakeSegment::default() });
        Ok(())
    }

    /// Takes over timelines that are on disk already.
    fn add_timelines(&self, next: &mut Manifest, news: NewTimelines) -> Result<(), Trouble> {
        let [name] = timelines::TABLES;
        let ended = news.into_table();
        let (table, sources) = ended.map_err(|cause| not_written(&self.segment(next.next_segment, name), &*cause))?;
        let (number, tables) = self.take_over(next, [(name, table)])?;
        next.timeline_segments.push(LakeSegment { number, tables, sources, ..LakeSegment::default() });
        Ok(())
    }

    /// Puts tables that are on disk already in their places; gives the number of their segment, and their checksums.
    fn take_over(
        &self,
        next: &mut Manifest,
        tables: impl IntoIterator<Item = (&'static str, NewTable)>,
    ) -> Result<(u32, BTreeMap<String, Id>), Trouble> {
        let number = next.take_segment();
        let placed = tables.into_iter().map(|(name, table)| {
            let path = self.segment(number, name);
            let sum = table.finish(&path).map_err(|cause| not_written(&path, &*cause))?;
            Ok((name.to_owned(), sum))
        });
        Ok((number, placed.collect::<Result<_, _>>()?))
    }

    /// What was memorised under a key, if it is whole.
    pub fn recall(&self, key: Id) -> Option<Vec<u8>> {
        let stored = files::read_own(&self.memo(key)).ok()?;
        let (sum, answer) = stored.split_first_chunk::<16>()?;
        (Id::of(answer).0 == *sum).then(|| answer.to_vec())
    }

    /// Memorises an answer that follows from the rows. It is a convenience: what cannot be written is made again.
    pub fn memorise(&self, key: Id, answer: &[u8]) {
        let path = self.memo(key);
        let stored = [&Id::of(answer).0[..], answer].concat();
        let _made_again_next_time = files::replace(&path, &path.with_extension("tmp"), &stored);
        let memos = own_files(&self.dir).filter(|path| path.extension().is_some_and(|ending| ending == "memo"));
        let age = |path: &PathBuf| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
        let mut memos: Vec<_> = memos.map(|path| (age(&path), path)).collect();
        memos.sort();
        memos.iter().rev().skip(MEMOS_MAX).for_each(|(_, path)| files::remove(path));
    }

    fn memo(&self, key: Id) -> PathBuf {
        self.dir.join(format!("{key}.memo"))
    }

    /// Writes the files of a segment, group by group as `make` gives them; returns their checksums.
    fn write_tables(
        &self,
        number: u32,
        tables: &[&'static str],
        make: &(dyn Fn(&str, usize) -> Option<ColumnResult<RecordBatch>> + Sync),
    ) -> Result<BTreeMap<String, Id>, Trouble> {
        let written = tables.par_iter().map(|table| {
            let path = self.segment(number, table);
            let sealed = |part| Some(make(table, part)?.and_then(|batch| sealed::pass(batch, &self.seal, Way::ToDisk)));
            let written = write_table(&path, &sealed).map(|sum| ((*table).to_owned(), sum));
            written.map_err(|cause| not_written(&path, &*cause))
        });
        written.collect()
    }

    /// Hands on the batches of some tables of the segments that have something of these sources, in that order, few at once: all
    /// together are as much as what is made of them. Damage is gathered over all of them.
    fn each_batch(
        &self,
        sources: &BTreeSet<u32>,
        tables: &[&'static str],
        take: &mut dyn FnMut(&str, &RecordBatch) -> ColumnResult<()>,
    ) -> Result<(), Trouble> {
        let segments = self.manifest.segments.iter();
        let segments = segments.filter(|segment| segment.sources.iter().any(|source| sources.contains(source)));
        let parts = segments.flat_map(|segment| tables.iter().map(move |&table| (segment, table)));
        let parts = parts.filter(|(segment, table)| segment.tables.contains_key(*table));
        let read = parts.map(|(segment, table)| {
            let stored = self.stored(segment, table)?;
            self.each_group(segment, (table, &stored), ALL, &Ok, &mut |batch| take(table, &batch))
        });
        each_whole(read, |()| ())
    }

    /// A file of a segment. An error if its bytes are not those that were written.
    pub(super) fn stored(&self, segment: &LakeSegment, table: &str) -> Result<StoredTable, Trouble> {
        let sum = segment.tables.get(table).copied().unwrap_or_default();
        StoredTable::open(&self.segment(segment.number, table), sum)
            .map_err(|cause| self.trouble(segment, table, cause))
    }

    /// Hands on what `made` makes of the wanted columns of the row groups of a file of a segment, in order, one worker a group;
    /// hashes are as they were before they went to disk.
    fn each_group<T: Send>(
        &self,
        segment: &LakeSegment,
        (table, stored): (&str, &StoredTable),
        is_wanted: &(dyn Fn(&str) -> bool + Sync),
        made: &(dyn Fn(RecordBatch) -> ColumnResult<T> + Sync),
        take: &mut dyn FnMut(T) -> ColumnResult<()>,
    ) -> Result<(), Trouble> {
        let made = |batch| made(sealed::pass(batch, &self.seal, Way::FromDisk)?);
        stored.each_group(is_wanted, &made, take).map_err(|cause| self.trouble(segment, table, cause))
    }

    pub(super) fn trouble(&self, segment: &LakeSegment, table: &str, cause: Unreadable) -> Trouble {
        match cause {
            Unreadable::Disk(cause) if !matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::Unsupported) => {
                Trouble::Failed(format!("reading {}: {cause}", self.segment(segment.number, table).display()))
            }
            Unreadable::Disk(cause) => damaged(segment, table, &cause),
            Unreadable::Content(why) => damaged(segment, table, &why),
        }
    }

    fn segment(&self, number: u32, table: &str) -> PathBuf {
        self.dir.join(segment_name(number, table))
    }

    /// Removes segments from a number on, which no manifest refers to.
    fn remove_from(&self, number: u32) {
        let is_later = |path: &PathBuf| segment_number(path).is_some_and(|found| found >= number);
        own_files(&self.dir).filter(is_later).for_each(|path| files::remove(&path));
    }

    /// Removes what the manifest does not refer to, unless another run reads, which may be reading an older lake. What is
    /// not removed now is tried again next time.
    fn sweep(&self) {
        self.while_nobody_reads(|| {
            let Manifest { segments, body_segments, timeline_segments, .. } = &*self.manifest;
            let segments = segments.iter().chain(body_segments).chain(timeline_segments);
            let files =
                segments.flat_map(|LakeSegment { number, tables, .. }| tables.keys().map(|table| (*number, table)));
            let wanted: BTreeSet<PathBuf> = files.map(|(number, table)| self.segment(number, table)).collect();
            own_files(&self.dir).filter(|path| !wanted.contains(path)).for_each(|path| files::remove(&path));
        });
    }

    /// Does something that no other run may be reading or writing beside; nothing if one does. The caller holds the writer's
    /// lock.
    fn while_nobody_reads(&self, change: impl FnOnce()) {
        let Some(share) = &self.share else { return };
        if share.try_lock().is_ok() {
            change();
        }
        // Nobody can have begun to sweep in between: whoever does holds the writer's lock.
        let _as_before = share.try_lock_shared();
    }
}

impl Manifest {
    fn take_segment(&mut self) -> u32 {
        self.next_segment += 1;
        self.next_segment - 1
    }
}

/// Hands on the parts that can be read; of those that cannot, the damage is gathered over all of them.
fn each_whole<T>(parts: impl IntoIterator<Item = Result<T, Trouble>>, mut take: impl FnMut(T)) -> Result<(), Trouble> {
    let mut damage = Vec::new();
    for part in parts {
        match part {
            Ok(part) => take(part),
            Err(Trouble::Damaged(found)) => damage.extend(found),
            Err(other) => return Err(other),
        }
    }
    if damage.is_empty() { Ok(()) } else { Err(Trouble::Damaged(damage)) }
}

/// A segment of bodies with its opened table.
type BodyTable<'l> = (&'l LakeSegment, StoredTable);

/// What `load` gives of tables of bodies, each body once.
fn newest_bodies(
    tables: &[BodyTable<'_>],
    maker: Id,
    load: impl Fn(&LakeSegment, &StoredTable, &mut Vec<BodyFacts>) -> Result<(), Trouble>,
) -> Result<Vec<BodyFacts>, Trouble> {
    let (mut facts, mut others) = (Vec::new(), Vec::new());
    let read = tables.iter().map(|(segment, table)| {
        let known = if segment.maker == maker { &mut facts } else { &mut others };
        load(segment, table, known)
    });
    each_whole(read, |()| ())?;
    others.iter_mut().for_each(|row: &mut BodyFacts| row.counted = 0);
    // What this maker says comes first and stays, of that the latest.
    facts.append(&mut others);
    // In one segment each body stands once.
    if tables.len() > 1 {
        let mut known = IdSet::default();
        facts.retain(|row| known.insert(row.body));
    }
    Ok(facts)
}

fn damaged(segment: &LakeSegment, table: &str, why: &dyn std::fmt::Display) -> Trouble {
    let why = format!("{}: {why}", segment_name(segment.number, table));
    Trouble::Damaged(vec![LakeDamage { segment: segment.number, table: table.to_owned(), why }])
}

fn not_written(path: &Path, cause: &dyn std::fmt::Display) -> Trouble {
    Trouble::Failed(format!("writing {}: {cause}", path.display()))
}

fn segment_name(number: u32, table: &str) -> String {
    format!("{number:06}-{table}.parquet")
}

fn segment_number(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.split_once('-')?.0.parse().ok()
}

/// A manifest of a lake that holds nothing yet, in a directory where something may lie.
fn empty(dir: &Path, seal: &Seal) -> Manifest {
    Manifest { next_segment: last_segment(dir) + 1, sealed_by: seal.check(), ..Manifest::new() }
}

/// The highest number of a segment of which anything is on disk.
fn last_segment(dir: &Path) -> u32 {
    own_files(dir).filter_map(|path| segment_number(&path)).max().unwrap_or(0)
}

/// Files in a lake's directory that devboy gave their names, but for the manifest and the locks.
fn own_files(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(|entry| is_own_name(&entry.file_name().to_string_lossy())).map(|entry| entry.path())
}

/// Whether devboy gave a file its name: a segment, an answer about the lake as it was, or a temporary file of either. A
/// lake may share its directory with files of somebody else.
fn is_own_name(name: &str) -> bool {
    let mut tables = row_tables().chain(bodies::TABLES).chain(timelines::TABLES);
    let parts = name.strip_suffix(".parquet").and_then(|name| name.split_once('-'));
    let is_segment = parts.is_some_and(|(number, table)| {
        number.len() == 6 && number.bytes().all(|b| b.is_ascii_digit()) && tables.any(|known| known == table)
    });
    let parts = name.rsplit_once('.').filter(|(_, ending)| matches!(*ending, "memo" | "tmp"));
    is_segment || parts.is_some_and(|(stem, _)| Id::from_hex(stem).is_some()) || name == "manifest.tmp"
}

/// The tools of the calls.
pub(super) fn tools_of(rows: &FileRows) -> impl Iterator<Item = Sym> {
    rows.calls.iter().filter_map(|row| Some(row.asked?.tool))
}

/// Those of them that are of MCP servers.
pub(super) fn mcp_tools(tools: &BTreeSet<Sym>, names: &Names) -> BTreeSet<String> {
    let texts = tools.iter().map(|tool| names.text(*tool)).filter(|name| name.starts_with("mcp__"));
    texts.map(str::to_owned).collect()
}

/// Rows of all tables.
pub(super) fn row_count(rows: &FileRows) -> u64 {
    (rows.chains.len() + rows.calls.len() + rows.messages.len() + rows.marks.len() + rows.sessions.len()) as u64
}
