//! The lake on disk: Parquet segments and a manifest, written so that a run killed at any moment leaves either the lake
//! as it was or the lake as it should be.
//!
//! A run writes new segments under names that nobody refers to, then replaces the manifest. One run at a time holds the
//! lock; what no manifest refers to is swept away by the next one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use rayon::prelude::*;

use crate::frames::bodies;
use crate::frames::manifest::{self, Manifest, Unusable};
use crate::frames::tables::{self, SCHEMA_VERSION, TABLES, Tagged};
use crate::frames::timelines::{self, PackedTimeline};
use crate::frames::values;
use crate::model::body_facts::BodyFacts;
use crate::model::id::{Id, IdSet};
use crate::model::names::{Names, Sym};
use crate::model::trace::Rows;
use crate::model::values::Values;

/// More segments than this are merged into one.
const SEGMENTS_MAX: usize = 8;
/// Answers kept; a window that moves with the clock asks a new question every time.
const MEMOS_MAX: usize = 16;
/// Rows per batch when reading.
const BATCH_ROWS: usize = 1 << 16;
/// Rows per group when writing.
const GROUP_ROWS: usize = 1 << 20;
/// Columns of hashes: a dictionary of them only costs time.
const HASH_COLUMNS: [&str; 13] =
    ["call", "message", "body", "id", "other", "sha", "path", "near", "lines", "value", "values", "words", "packed"];

/// What a run found out besides the rows: facts about bodies that were not known before, and values.
pub struct News<'a> {
    /// The facts.
    pub facts: &'a [BodyFacts],
    /// See [`crate::model::body_facts::Encoding::format`].
    pub formats: &'a [&'a str],
    /// Values by source.
    pub values: &'a BTreeMap<u32, Values>,
    /// What symbols in the values mean.
    pub value_names: &'a Names,
}

/// An opened and locked lake.
#[derive(Debug)]
pub struct Lake {
    dir: PathBuf,
    /// Held until the lake is dropped.
    _lock: File,
    /// The table of contents.
    pub manifest: Manifest,
    /// What there is to say about the state in which the lake was found.
    pub note: Option<String>,
    /// Written under an older schema: everything that is still on disk is read anew.
    pub outdated: bool,
}

impl Lake {
    /// Opens the lake in `dir`, making it if need be. `words` names the vocabulary by which rows are made: rows made by
    /// another one are outdated. Another run's lock is waited for; `waiting` is called once then.
    ///
    /// # Errors
    /// The directory cannot be made or locked, or the lake was written by a later devboy. Work goes on without a lake
    /// then.
    pub fn open(dir: &Path, words: Id, waiting: impl FnOnce()) -> Result<Self, String> {
        let said = |doing: &str, cause: &std::io::Error| format!("{doing} {}: {cause}", dir.display());
        make_private_dir(dir).map_err(|cause| said("making", &cause))?;
        let path = dir.join("lock");
        let lock = private(OpenOptions::new().create(true).truncate(false).write(true))
            .open(&path)
            .map_err(|cause| said("opening the lock in", &cause))?;
        if lock.try_lock().is_err() {
            waiting();
            lock.lock().map_err(|cause| said("locking", &cause))?;
        }
        let (manifest, note) = match Manifest::load(dir) {
            Ok(manifest) => (manifest, None),
            Err(Unusable::Absent) => (Manifest::new(), None),
            Err(Unusable::Newer(version)) => {
                return Err(format!(
                    "{} was written by a later devboy (schema {version}, this one writes {SCHEMA_VERSION})",
                    dir.display()
                ));
            }
            Err(Unusable::Broken(why)) => {
                (Manifest::new(), Some(format!("the lake was damaged ({why}) and is rebuilt")))
            }
        };
        let old_schema = manifest.schema != SCHEMA_VERSION;
        let outdated = old_schema || (manifest.words != words && !manifest.sources.is_empty());
        let manifest = Manifest { words, ..manifest };
        let mut lake = Self { dir: dir.to_owned(), _lock: lock, manifest, note, outdated };
        if old_schema {
            lake.note = Some(format!("the lake's schema {} is older: logs are read anew", lake.manifest.schema));
        } else if outdated {
            lake.note = Some("the lake was made with another logs.toml: logs are read anew".to_owned());
        }
        Ok(lake)
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All rows of the live sources, by number.
    ///
    /// # Errors
    /// If a segment cannot be read; [`Lake::forget`] then makes room for reading everything anew.
    pub fn load(&self, names: &mut Names) -> Result<Vec<(u32, Rows)>, String> {
        let live: BTreeSet<u32> = self.manifest.sources.values().map(|source| source.number).collect();
        let mut files: Vec<(u32, Rows)> = live.iter().map(|&number| (number, Rows::default())).collect();
        let place: BTreeMap<u32, usize> = live.iter().enumerate().map(|(index, &number)| (number, index)).collect();
        let parts: Vec<(&str, u32)> =
            self.manifest.segments.iter().flat_map(|&segment| TABLES.map(|table| (table, segment))).collect();
        let read: Vec<Result<Vec<RecordBatch>, String>> =
            parts.par_iter().map(|&(table, segment)| read_segment(&self.segment(segment, table))).collect();
        // Rows come source by source, so the last answer nearly always holds.
        let mut last = (0, None);
        let mut file_of = |source: u32| {
            if last.0 != source {
                last = (source, place.get(&source).copied());
            }
            last.1
        };
        for (&(table, _), batches) in parts.iter().zip(read) {
            for batch in batches? {
                tables::read(table, &batch, names, &mut files, &mut file_of).map_err(|cause| cause.to_string())?;
            }
        }
        Ok(files)
    }

    /// The values of all live sources, by number.
    ///
    /// # Errors
    /// If a segment cannot be read; [`Lake::forget`] then makes room for reading everything anew.
    pub fn load_values(&self, names: &mut Names) -> Result<BTreeMap<u32, Values>, String> {
        let live = self.manifest.sources.values().map(|source| (source.number, Values::default()));
        let mut files: BTreeMap<u32, Values> = live.collect();
        if self.manifest.schema < values::SINCE_SCHEMA {
            return Ok(files);
        }
        let segments = self.manifest.segments.iter();
        let parts: Vec<(&str, u32)> =
            segments.flat_map(|&segment| values::TABLES.map(|table| (table, segment))).collect();
        let read: Vec<Result<Vec<RecordBatch>, String>> =
            parts.par_iter().map(|&(table, segment)| read_segment(&self.segment(segment, table))).collect();
        let mut of = |source: u32, add: &mut dyn FnMut(&mut Values)| {
            if let Some(file) = files.get_mut(&source) {
                add(file);
            }
        };
        for (&(table, _), batches) in parts.iter().zip(read) {
            for batch in batches? {
                values::read(table, &batch, names, &mut of).map_err(|cause| cause.to_string())?;
            }
        }
        Ok(files)
    }

    /// All facts about bodies, by name; `formats` are the names of the formats by number.
    ///
    /// # Errors
    /// If a segment cannot be read; [`Lake::forget`] then makes room for reading everything anew.
    pub fn load_bodies(&self, formats: &[&str]) -> Result<Vec<BodyFacts>, String> {
        let read = |&segment: &u32| {
            let [bodies, encodings] = bodies::TABLES.map(|table| read_segment(&self.segment(segment, table)));
            bodies::read(&bodies?, &encodings?, formats).map_err(|cause| cause.to_string())
        };
        let parts: Vec<Result<Vec<BodyFacts>, String>> = self.manifest.body_segments.par_iter().map(read).collect();
        let mut facts = Vec::new();
        for part in parts.into_iter().rev() {
            facts.extend(part?);
        }
        // The latest segment comes first and stays.
        facts.sort_by_key(|row| row.body);
        facts.dedup_by_key(|row| row.body);
        if self.outdated {
            // They serve for logs that are gone; of all others the bodies are studied again.
            facts.iter_mut().for_each(|row| row.counted = 0);
        }
        Ok(facts)
    }

    /// What `make` makes of what the sources say for a timeline, by number of the source; of several readings of a source
    /// the latest of which it makes something.
    ///
    /// # Errors
    /// If a segment cannot be read; [`Lake::forget_timelines`] then makes room for reading everything anew.
    pub fn load_timelines<T: Send>(
        &self,
        make: &(dyn Fn(PackedTimeline<'_>) -> Option<T> + Sync),
    ) -> Result<BTreeMap<u32, T>, String> {
        let [table] = timelines::TABLES;
        let made = |batch: RecordBatch| {
            let mut made = Vec::new();
            let read = timelines::read(&batch, &mut |row| made.extend(Some(row.source).zip(make(row))));
            read.map(|()| made).map_err(|cause| cause.to_string())
        };
        let mut files = BTreeMap::new();
        for &segment in &self.manifest.timeline_segments {
            files.extend(read_groups(&self.segment(segment, table), &made)?.into_iter().flatten());
        }
        Ok(files)
    }

    /// Starts timelines from nothing: what their segments held is lost.
    pub fn forget_timelines(&mut self) {
        self.manifest.timeline_segments.clear();
    }

    /// Writes what a run read for a timeline. Segments are merged when there are many, without sources that are gone.
    ///
    /// # Errors
    /// Whatever the disk says; the lake is then as it was before.
    pub fn commit_timelines(&mut self, mut news: Vec<PackedTimeline<'_>>) -> Result<(), String> {
        let mut next = self.manifest.clone();
        if next.timeline_segments.len() >= SEGMENTS_MAX {
            let fresh: BTreeSet<u32> = news.iter().map(|row| row.source).collect();
            let live = self.manifest.sources.values().map(|source| source.number);
            let live: BTreeSet<u32> = live.filter(|source| !fresh.contains(source)).collect();
            let owned = |row: PackedTimeline<'_>| {
                let rows = Cow::Owned(row.rows.to_vec());
                live.contains(&row.source).then_some(PackedTimeline { rows, ..row })
            };
            news.extend(self.load_timelines(&owned)?.into_values());
            news.sort_by_key(|row| row.source);
            next.timeline_segments.clear();
        }
        let [table] = timelines::TABLES;
        let path = self.segment(next.next_segment, table);
        let batch = timelines::batch(&news).map_err(|cause| cause.to_string());
        let written = batch.and_then(|batch| write_groups(&path, &batch, timelines::GROUP_ROWS));
        written.map_err(|cause| format!("writing {}: {cause}", path.display()))?;
        next.timeline_segments.push(next.next_segment);
        next.next_segment += 1;
        let before = std::mem::replace(&mut self.manifest, next);
        if let Err(why) = self.save_manifest() {
            self.manifest = before;
            return Err(why);
        }
        self.sweep();
        Ok(())
    }

    /// Starts from nothing: what the segments held is lost.
    pub fn forget(&mut self) {
        let Manifest { next_segment, words, .. } = self.manifest;
        self.manifest = Manifest { next_segment, words, ..Manifest::new() };
        self.outdated = false;
    }

    /// Writes a run's new rows and the new manifest. `all` yields every live row, for when segments are merged; `news`
    /// are the facts about bodies that were not known before.
    ///
    /// # Errors
    /// Whatever the disk says; the lake is then as it was before.
    pub fn commit(
        &mut self,
        delta: &Tagged<'_>,
        all: &Tagged<'_>,
        names: &Names,
        news: &News<'_>,
    ) -> Result<(), String> {
        let live: u64 = all.iter().map(|(_, rows)| row_count(rows)).sum();
        let fresh: u64 = delta.iter().map(|(_, rows)| row_count(rows)).sum();
        let mut merge = self.outdated
            || self.manifest.segments.len() >= SEGMENTS_MAX
            || self.manifest.rows + fresh > 2 * live.max(1);
        let mut value_names = news.value_names.clone();
        let mut kept = BTreeMap::new();
        if merge {
            match self.load_values(&mut value_names) {
                Ok(known) => kept = known,
                Err(why) if self.outdated => return Err(why),
                // Whoever asks for them will have the lake rebuilt.
                Err(_) => merge = false,
            }
        }
        let values: Vec<(u32, &Values)> =
            kept.iter().chain(news.values).map(|(&source, values)| (source, values)).collect();
        let mut next = self.manifest.clone();
        next.schema = SCHEMA_VERSION;
        if merge {
            next.segments.clear();
            next.rows = 0;
        }
        let rows = if merge { all } else { delta };
        let count = if merge { live } else { fresh };
        if count > 0 {
            self.write_segment(next.next_segment, rows, names)?;
            self.write_values(next.next_segment, &values, &value_names)?;
            next.segments.push(next.next_segment);
            next.next_segment += 1;
            next.rows += count;
        }
        next.mcp_tools = mcp_tools(all, names);
        self.commit_bodies(&mut next, all, news)?;
        self.manifest = next;
        self.outdated = false;
        self.save_manifest()?;
        self.sweep();
        Ok(())
    }

    /// Writes the new facts that some call refers to; merges segments when there are many.
    fn commit_bodies(&self, next: &mut Manifest, all: &Tagged<'_>, news: &News<'_>) -> Result<(), String> {
        let answers = all.iter().flat_map(|(_, rows)| &rows.calls).filter_map(|row| row.answered);
        let live: IdSet<Id> = answers.map(|answered| answered.body).collect();
        let mut facts: Vec<&BodyFacts> = news.facts.iter().filter(|row| live.contains(&row.body)).collect();
        let known;
        if self.outdated || next.body_segments.len() >= SEGMENTS_MAX {
            let fresh: IdSet<Id> = facts.iter().map(|row| row.body).collect();
            known = self.load_bodies(news.formats)?;
            facts.extend(known.iter().filter(|row| live.contains(&row.body) && !fresh.contains(&row.body)));
            next.body_segments.clear();
        }
        if facts.is_empty() {
            return Ok(());
        }
        bodies::TABLES.par_iter().try_for_each(|table| {
            let path = self.segment(next.next_segment, table);
            let batch = bodies::batch(table, &facts, news.formats).map_err(|cause| cause.to_string());
            batch
                .and_then(|batch| write_table(&path, &batch))
                .map_err(|cause| format!("writing {}: {cause}", path.display()))
        })?;
        next.body_segments.push(next.next_segment);
        next.next_segment += 1;
        Ok(())
    }

    /// Replaces the manifest on disk.
    ///
    /// # Errors
    /// Whatever the disk says; the manifest on disk is then the old one.
    pub fn save_manifest(&self) -> Result<(), String> {
        let path = self.dir.join(manifest::FILE_NAME);
        replace(&path, &self.manifest.to_json())
            .map_err(|cause| format!("writing the lake in {}: {cause}", self.dir.display()))
    }

    /// What was memorised under a key.
    pub fn recall(&self, key: Id) -> Option<Vec<u8>> {
        std::fs::read(self.memo(key)).ok()
    }

    /// Memorises an answer that follows from the rows. It is a convenience: what cannot be written is made again.
    pub fn memorise(&self, key: Id, answer: &[u8]) {
        let _made_again_next_time = replace(&self.memo(key), answer);
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let memos = entries.filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.ends_with(".memo") && is_own_name(&name)
        });
        let memos = memos.map(|entry| entry.path());
        let age = |path: &PathBuf| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
        let mut memos: Vec<_> = memos.map(|path| (age(&path), path)).collect();
        memos.sort();
        for (_, path) in memos.iter().rev().skip(MEMOS_MAX) {
            let _retried_next_time = std::fs::remove_file(path);
        }
    }

    fn memo(&self, key: Id) -> PathBuf {
        self.dir.join(format!("{key}.memo"))
    }

    fn write_segment(&self, segment: u32, rows: &Tagged<'_>, names: &Names) -> Result<(), String> {
        TABLES.par_iter().try_for_each(|table| {
            let path = self.segment(segment, table);
            let batch = tables::batch(table, rows, names).expect("every listed table has columns");
            let written = batch.map_err(|cause| cause.to_string()).and_then(|batch| write_table(&path, &batch));
            written.map_err(|cause| format!("writing {}: {cause}", path.display()))
        })
    }

    fn write_values(&self, segment: u32, files: &values::Tagged<'_>, names: &Names) -> Result<(), String> {
        values::TABLES.par_iter().try_for_each(|table| {
            let path = self.segment(segment, table);
            let batch = values::batch(table, files, names).map_err(|cause| cause.to_string());
            let written = batch.and_then(|batch| write_table(&path, &batch));
            written.map_err(|cause| format!("writing {}: {cause}", path.display()))
        })
    }

    fn segment(&self, segment: u32, table: &str) -> PathBuf {
        self.dir.join(format!("{segment:06}-{table}.parquet"))
    }

    /// Removes what the manifest does not refer to. What cannot be removed now is tried again next time.
    fn sweep(&self) {
        let segments = || self.manifest.segments.iter();
        let rows = segments().flat_map(|&segment| TABLES.map(|table| self.segment(segment, table)));
        let values = segments().flat_map(|&segment| values::TABLES.map(|table| self.segment(segment, table)));
        let facts = self.manifest.body_segments.iter();
        let facts = facts.flat_map(|&segment| bodies::TABLES.map(|table| self.segment(segment, table)));
        let timelines = self.manifest.timeline_segments.iter();
        let timelines = timelines.flat_map(|&segment| timelines::TABLES.map(|table| self.segment(segment, table)));
        let wanted: BTreeSet<PathBuf> = rows.chain(values).chain(facts).chain(timelines).collect();
        for entry in std::fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let ours = path.file_name().is_some_and(|name| is_own_name(&name.to_string_lossy()));
            if ours && !wanted.contains(&path) {
                let _retried_next_time = std::fs::remove_file(&path);
            }
        }
    }
}

/// Whether devboy gave a file its name: a segment, an answer about the lake as it was, or a temporary file of either. A
/// lake may share its directory with files of somebody else.
fn is_own_name(name: &str) -> bool {
    let segment = name.split_once('-').is_some_and(|(number, table)| {
        let table = table.strip_suffix(".parquet");
        number.len() == 6
            && number.bytes().all(|b| b.is_ascii_digit())
            && table.is_some_and(|table| {
                let all = TABLES.iter().chain(&values::TABLES).chain(&bodies::TABLES).chain(&timelines::TABLES);
                all.into_iter().any(|known| *known == table)
            })
    });
    let memo = || {
        name.rsplit_once('.')
            .is_some_and(|(stem, ending)| matches!(ending, "memo" | "tmp") && Id::from_hex(stem).is_some())
    };
    segment || memo() || name == "manifest.tmp"
}

/// The tools of MCP servers among the calls.
fn mcp_tools(all: &Tagged<'_>, names: &Names) -> BTreeSet<String> {
    let calls = all.iter().flat_map(|(_, rows)| &rows.calls).filter_map(|row| row.asked);
    let tools: BTreeSet<Sym> = calls.map(|asked| asked.tool).collect();
    let texts = tools.into_iter().map(|tool| names.text(tool)).filter(|name| name.starts_with("mcp__"));
    texts.map(str::to_owned).collect()
}

/// Rows of all tables.
fn row_count(rows: &Rows) -> u64 {
    (rows.chains.len() + rows.calls.len() + rows.messages.len() + rows.marks.len() + rows.sessions.len()) as u64
}

fn read_segment(path: &Path) -> Result<Vec<RecordBatch>, String> {
    let said = |cause: &dyn std::fmt::Display| format!("{}: {cause}", path.display());
    let file = File::open(path).map_err(|cause| said(&cause))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|cause| said(&cause))?;
    let batches = reader.with_batch_size(BATCH_ROWS).build().map_err(|cause| said(&cause))?;
    batches.collect::<Result<_, _>>().map_err(|cause| said(&cause))
}

/// What `made` makes of the row groups of a file, in order, one worker a group.
fn read_groups<T: Send>(
    path: &Path,
    made: &(dyn Fn(RecordBatch) -> Result<T, String> + Sync),
) -> Result<Vec<T>, String> {
    let said = |cause: &dyn std::fmt::Display| format!("{}: {cause}", path.display());
    let opened = || File::open(path).map_err(|cause| said(&cause));
    let metadata = ArrowReaderMetadata::load(&opened()?, ArrowReaderOptions::new()).map_err(|cause| said(&cause))?;
    let group = |group: usize| {
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(opened()?, metadata.clone());
        let batches = reader.with_row_groups(vec![group]).with_batch_size(BATCH_ROWS).build();
        let batches = batches.map_err(|cause| said(&cause))?;
        batches.map(|batch| made(batch.map_err(|cause| said(&cause))?)).collect::<Result<Vec<T>, String>>()
    };
    let groups = (0..metadata.metadata().num_row_groups()).into_par_iter().map(group);
    let groups: Vec<Vec<T>> = groups.collect::<Result<_, String>>()?;
    Ok(groups.into_iter().flatten().collect())
}

fn write_table(path: &Path, batch: &RecordBatch) -> Result<(), String> {
    write_groups(path, batch, GROUP_ROWS)
}

fn write_groups(path: &Path, batch: &RecordBatch, group_rows: usize) -> Result<(), String> {
    let level = ZstdLevel::try_new(1).map_err(|cause| cause.to_string())?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_max_row_group_row_count(Some(group_rows));
    for column in HASH_COLUMNS {
        properties = properties.set_column_dictionary_enabled(column.into(), false);
    }
    let file = private(OpenOptions::new().create(true).truncate(true).write(true)).open(path);
    let file = file.map_err(|cause| cause.to_string())?;
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).map_err(|cause| cause.to_string())?;
    writer.write(batch).map_err(|cause| cause.to_string())?;
    let file = writer.into_inner().map_err(|cause| cause.to_string())?;
    file.sync_all().map_err(|cause| cause.to_string())
}

/// Replaces a file as a whole: whoever opens it sees the old content or the new.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file = private(OpenOptions::new().create(true).truncate(true).write(true)).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    sync_dir(path.parent().unwrap_or(path));
    Ok(())
}

/// Makes a rename durable; where a directory cannot be opened, the system does it in its own time.
fn sync_dir(dir: &Path) {
    if let Ok(handle) = File::open(dir) {
        let _in_its_own_time = handle.sync_all();
    }
}

/// Only the user may read what is created.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

fn make_private_dir(dir: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}
