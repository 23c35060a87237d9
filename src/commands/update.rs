//! Brings what is known of the logs up to date: which files are new, grown, rewritten, moved or gone, what has to be
//! read of them, and what the lake keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::content::encode::{self, Knobs};
use crate::error::{Error, Result};
use crate::extract::Studies;
use crate::frames::lake::{Lake, News};
use crate::frames::manifest::StoredSource;
use crate::logs::discover::{Listing, LogFile, Packing};
use crate::logs::message::Guide;
use crate::logs::probe::probe;
use crate::logs::read::{self, Job, Reading};
use crate::model::body_facts::BodyFacts;
use crate::model::damage::Reason;
use crate::model::id::Id;
use crate::model::names::Names;
use crate::model::trace::{Millis, Rows};
use crate::model::values::Values;
use crate::progress::Progress;

/// How a file was brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Read for the first time.
    New,
    /// Read from where it ended last time.
    Grown,
    /// Read anew because it was rewritten.
    Rewritten,
    /// Read anew because a replay needs facts about its bodies that the lake lacks.
    Studied,
    /// Known from the lake.
    Unchanged,
}

/// A file on disk with what is stored about it.
pub struct KnownFile {
    /// The file.
    pub path: PathBuf,
    /// What is stored.
    pub stored: StoredSource,
    /// How it was brought up to date.
    pub fate: Fate,
    /// Bytes read in this run.
    pub bytes_read: u64,
}

/// How the files asked for were brought up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Files on disk.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// See [`Fate::New`].
    pub new: u64,
    /// See [`Fate::Grown`].
    pub grown: u64,
    /// See [`Fate::Rewritten`].
    pub rewritten: u64,
    /// See [`Fate::Studied`].
    pub studied: u64,
    /// See [`Fate::Unchanged`].
    pub unchanged: u64,
    /// Not opened because they are older than the window (without a lake).
    pub pruned: u64,
    /// Bytes read in this run.
    pub bytes_read: u64,
}

impl Tally {
    /// Counts files.
    pub fn of(files: &[KnownFile], pruned: u64) -> Self {
        let of = |fate| files.iter().filter(|file| file.fate == fate).count() as u64;
        Self {
            files: files.len() as u64,
            bytes: files.iter().map(|file| file.stored.bytes).sum(),
            new: of(Fate::New),
            grown: of(Fate::Grown),
            rewritten: of(Fate::Rewritten),
            studied: of(Fate::Studied),
            unchanged: of(Fate::Unchanged),
            pruned,
            bytes_read: files.iter().map(|file| file.bytes_read).sum(),
        }
    }
}

/// What there is to bring up to date, and with what.
pub struct Scope<'a> {
    /// The files on disk.
    pub listing: &'a Listing,
    /// Pseudonyms of the roots, in the order of the listing's.
    pub roots: &'a [Id],
    /// What a light reading needs to know.
    pub guide: Guide<'a>,
    /// How bodies are written in other ways.
    pub knobs: Knobs,
    /// The workers.
    pub pool: &'a rayon::ThreadPool,
    /// Without a lake, files last changed before this are not opened.
    pub since: Millis,
    /// Whether progress may be shown.
    pub progress: bool,
}

/// What a command needs besides the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// The rows.
    pub rows: bool,
    /// The facts about bodies, in these vocabularies, one bit each.
    pub tier: u8,
}

/// Rows of every known source, by its number.
#[derive(Default)]
pub struct Loaded {
    /// What symbols in the rows mean.
    pub names: Names,
    /// The rows.
    pub rows: BTreeMap<u32, Rows>,
    /// The facts about bodies, by name; there if they were wanted.
    pub bodies: Vec<BodyFacts>,
    /// What symbols in the values mean.
    pub value_names: Names,
    /// Values that were read in this run and that the lake does not hold.
    pub values: BTreeMap<u32, Values>,
}

/// What is known now.
#[derive(Default)]
pub struct Known {
    /// Files on disk, in the order of the listing.
    pub files: Vec<KnownFile>,
    /// What is stored of files of these roots that are no longer on disk.
    pub kept: Vec<StoredSource>,
    /// The rows; none when nothing changed and nobody asked for them.
    pub loaded: Option<Loaded>,
    /// Files not opened because they are older than the window.
    pub pruned: u64,
    /// What there is to tell.
    pub notes: Vec<String>,
}

/// Brings everything in scope up to date, the lake included. Rows are loaded if something changed or they are wanted.
pub fn bring_up_to_date(scope: &Scope<'_>, mut lake: Option<&mut Lake>, want: Want) -> Known {
    let mut known = Known::default();
    let mut stored = Stored::of(lake.as_deref());
    let mut plans = plan(scope, &mut stored, lake.is_none(), want.tier);
    known.pruned = (scope.listing.files.len() - plans.len()) as u64;
    let something_to_read = plans.iter().any(|plan| plan.job().is_some());
    let mut loaded = Loaded::default();
    if something_to_read || want.rows {
        let mut tier = reading_tier(&plans, want);
        if let Some(lake) = lake.as_deref_mut()
            && let Err(why) = load(lake, scope, tier, &mut loaded)
        {
            known.notes.push(format!("the lake was damaged ({why}) and is rebuilt"));
            lake.forget();
            loaded = Loaded::default();
            stored = Stored::of(Some(lake));
            plans = plan(scope, &mut stored, false, want.tier);
            tier = reading_tier(&plans, want);
        }
        let counted = loaded.bodies.iter().filter(|facts| facts.counted & tier == tier);
        let studies = Studies::new(tier, scope.knobs, counted.map(|facts| facts.body));
        let delta = read_into(scope, &plans, (tier, &studies), &mut stored, &mut loaded, &mut known);
        let news = studies.finish();
        if let Some(lake) = lake {
            match scope.pool.install(|| commit(lake, &stored, &delta, &loaded, &news)) {
                Ok(()) => loaded.values.clear(),
                Err(why) => known.notes.push(format!("the lake was not updated: {why}")),
            }
        }
        loaded.take_over(news);
        known.loaded = Some(loaded);
    } else {
        let studies = Studies::new(0, scope.knobs, std::iter::empty());
        read_into(scope, &plans, (0, &studies), &mut stored, &mut loaded, &mut known);
        if let Some(lake) = lake
            && lake.manifest.sources != stored.sources
        {
            lake.manifest.sources.clone_from(&stored.sources);
            known.notes.extend(lake.save_manifest().err());
        }
    }
    known.kept = stored.kept(scope.roots, &plans);
    known
}

impl Loaded {
    /// Adds new facts; they replace what was known of the same bodies.
    fn take_over(&mut self, news: Vec<BodyFacts>) {
        if self.bodies.is_empty() {
            self.bodies = news;
            return;
        }
        let known = std::mem::take(&mut self.bodies);
        self.bodies = news.into_iter().chain(known).collect();
        self.bodies.sort_by_key(|facts| facts.body);
        self.bodies.dedup_by_key(|facts| facts.body);
    }
}

/// The vocabularies in which this run counts: those wanted, and those in which a file that has grown was counted so far,
/// so that every file is counted alike from end to end.
fn reading_tier(plans: &[Plan<'_>], want: Want) -> u8 {
    let grown = plans.iter().map(|plan| if let Action::Grown(known) = &plan.action { known.tier } else { 0 });
    grown.fold(want.tier, |tier, more| tier | more)
}

fn load(lake: &mut Lake, scope: &Scope<'_>, tier: u8, loaded: &mut Loaded) -> std::result::Result<(), String> {
    scope.pool.install(|| {
        loaded.rows = lake.load(&mut loaded.names)?.into_iter().collect();
        if tier != 0 {
            loaded.bodies = lake.load_bodies(&encode::ids())?;
        }
        Ok(())
    })
}

/// What has to happen with one file.
struct Plan<'a> {
    key: Id,
    root: Id,
    directory: Id,
    file: &'a LogFile,
    action: Action,
}

enum Action {
    New,
    Rewritten,
    Studied,
    Grown(StoredSource),
    Unchanged(StoredSource),
}

impl Action {
    fn fate(&self) -> Fate {
        match self {
            Self::New => Fate::New,
            Self::Rewritten => Fate::Rewritten,
            Self::Studied => Fate::Studied,
            Self::Grown(_) => Fate::Grown,
            Self::Unchanged(_) => Fate::Unchanged,
        }
    }
}

impl Plan<'_> {
    fn job(&self) -> Option<Job<'_>> {
        let from = match &self.action {
            Action::New | Action::Rewritten | Action::Studied => 0,
            Action::Grown(known) => known.bytes,
            Action::Unchanged(_) => return None,
        };
        Some(Job { path: &self.file.path, packing: self.file.packing, from, to: self.file.bytes })
    }
}

/// Decides for every file on disk what has to be read of it.
fn plan<'a>(scope: &Scope<'a>, stored: &mut Stored, may_prune: bool, tier: u8) -> Vec<Plan<'a>> {
    let keys: Vec<Id> = scope.listing.files.iter().map(source_key).collect();
    let listed: BTreeSet<Id> = keys.iter().copied().collect();
    let mut plans = Vec::new();
    for (file, key) in scope.listing.files.iter().zip(keys) {
        if may_prune && file.modified_ns / 1_000_000 < scope.since {
            continue;
        }
        let known = stored.sources.get(&key).cloned().or_else(|| stored.moved(file, &listed));
        let action = known.map_or(Action::New, |known| action_for(file, known, tier));
        let directory = Id::pseudonym(slug(&directory_of(file, scope.listing)).as_bytes());
        plans.push(Plan { key, root: scope.roots[file.root], directory, file, action });
    }
    plans
}

fn action_for(file: &LogFile, known: StoredSource, tier: u8) -> Action {
    let stamp = (known.bytes, known.modified_ns, known.changed_ns);
    let is_studied = known.tier & tier == tier;
    if stamp == (file.bytes, file.modified_ns, file.changed_ns) {
        return if is_studied { Action::Unchanged(known) } else { Action::Studied };
    }
    let can_grow = file.bytes > known.bytes && !known.open_tail && file.packing == Packing::Plain;
    // A file of the same size with another time stamp may differ between the samples: it is read anew.
    if can_grow && probe(&file.path, known.bytes).is_ok_and(|now| now == known.probe) {
        return if is_studied { Action::Grown(known) } else { Action::Studied };
    }
    Action::Rewritten
}

fn source_key(file: &LogFile) -> Id {
    Id::pseudonym(file.canonical.as_os_str().as_encoded_bytes())
}

/// The name of the directory that stands for the project: the first one below the root, or the file's own.
pub fn directory_of(file: &LogFile, listing: &Listing) -> String {
    let below = listing.roots.get(file.root).and_then(|root| file.canonical.strip_prefix(root).ok());
    let mut parts = below.and_then(Path::parent).into_iter().flat_map(Path::components).map(|part| part.as_os_str());
    let first = parts.find(|part| *part != "projects");
    let own = file.canonical.parent().and_then(Path::file_name);
    first.or(own).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A project name as Claude Code spells its directory, in lower case.
pub fn slug(text: &str) -> String {
    text.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// Reads what the plans ask for and joins it to what is known; returns the new rows by source.
fn read_into(
    scope: &Scope<'_>,
    plans: &[Plan<'_>],
    (tier, studies): (u8, &Studies),
    stored: &mut Stored,
    loaded: &mut Loaded,
    known: &mut Known,
) -> Vec<(u32, Rows)> {
    let jobs: Vec<Job<'_>> = plans.iter().filter_map(Plan::job).collect();
    let progress = Progress::new(jobs.iter().map(|job| job.to - job.from).sum(), scope.progress);
    let begin = || studies.begin();
    let guide = Guide { study: if tier == 0 { None } else { Some(&begin) }, ..scope.guide };
    let readings = read::read_all(&jobs, guide, scope.pool, &|bytes| progress.advance(bytes));
    drop(progress);
    let mut readings = readings.into_iter();
    let mut delta = Vec::new();
    for plan in plans {
        let mut source = match &plan.action {
            Action::Unchanged(known) | Action::Grown(known) => known.clone(),
            Action::New | Action::Rewritten | Action::Studied => stored.fresh(),
        };
        if let Some(reading) = plan.job().and_then(|_| readings.next()) {
            if reading.trace.counters.damage.count(Reason::Unreadable) > 0 {
                known.files.push(unreadable(plan, source, reading));
                continue;
            }
            // What a file holds already was counted as it was; this run counts at least as much.
            if plan.action.fate() != Fate::Grown {
                source.tier = tier;
            }
            delta.push((source.number, take_over(reading, &mut source, plan, loaded, scope.guide)));
        }
        source.key = plan.key;
        source.directory = plan.directory;
        source.modified_ns = plan.file.modified_ns;
        source.changed_ns = plan.file.changed_ns;
        if let Err(place) = source.roots.binary_search(&plan.root) {
            source.roots.insert(place, plan.root);
        }
        known.files.push(KnownFile {
            path: plan.file.path.clone(),
            stored: source.clone(),
            fate: plan.action.fate(),
            bytes_read: plan.job().map_or(0, |job| job.to - job.from),
        });
        stored.sources.insert(plan.key, source);
    }
    delta
}

/// A file that could not be opened: what was known of it before stands, and the next run tries again.
fn unreadable(plan: &Plan<'_>, mut source: StoredSource, reading: Reading) -> KnownFile {
    source.key = plan.key;
    source.counters.append(reading.trace.counters);
    KnownFile { path: plan.file.path.clone(), stored: source, fate: plan.action.fate(), bytes_read: 0 }
}

/// Joins a reading to the rows of its source; returns what is new.
fn take_over(
    reading: Reading,
    source: &mut StoredSource,
    plan: &Plan<'_>,
    loaded: &mut Loaded,
    guide: Guide<'_>,
) -> Rows {
    let symbols = loaded.names.absorb(&reading.trace.names);
    let rows = loaded.rows.entry(source.number).or_default();
    let known_chains = rows.chains.len();
    let mut added = Rows { chains: rows.chains.clone(), ..Rows::default() };
    added.append(reading.trace.rows, &symbols, &source.counters);
    added.chains.drain(..known_chains);
    rows.chains.extend_from_slice(&added.chains);
    rows.calls.extend_from_slice(&added.calls);
    rows.messages.extend_from_slice(&added.messages);
    rows.marks.extend_from_slice(&added.marks);
    rows.sessions.extend_from_slice(&added.sessions);
    let symbols = loaded.value_names.absorb(&reading.trace.value_names);
    let values = loaded.values.entry(source.number).or_default();
    values.append(reading.trace.values, &symbols, source.counters.blocks);
    if plan.action.fate() == Fate::Grown {
        // The call of an answer may have been read in an earlier run.
        let is_data = |tool| guide.values.data_tools.iter().any(|name| name == loaded.names.text(tool));
        values.drop_data_keys(&rows.calls, is_data);
    }
    source.counters.append(reading.trace.counters);
    source.open_tail = reading.open_tail;
    source.readings += 1;
    source.bytes = plan.file.bytes;
    source.probe = probe(&plan.file.path, plan.file.bytes).unwrap_or_default();
    added
}

/// Writes what is new. Nothing is written when nothing changed.
fn commit(
    lake: &mut Lake,
    stored: &Stored,
    delta: &[(u32, Rows)],
    loaded: &Loaded,
    news: &[BodyFacts],
) -> std::result::Result<(), String> {
    if delta.is_empty() && lake.manifest.sources == stored.sources {
        return Ok(());
    }
    lake.manifest.sources.clone_from(&stored.sources);
    lake.manifest.next_source = stored.next_source;
    let live: BTreeSet<u32> = stored.sources.values().map(|source| source.number).collect();
    let delta: Vec<(u32, &Rows)> = delta.iter().map(|(number, rows)| (*number, rows)).collect();
    let all = loaded.rows.iter().filter(|(number, _)| live.contains(number));
    let all: Vec<(u32, &Rows)> = all.map(|(number, rows)| (*number, rows)).collect();
    let formats = encode::ids();
    let news = News { facts: news, formats: &formats, values: &loaded.values, value_names: &loaded.value_names };
    lake.commit(&delta, &all, &loaded.names, &news)
}

/// What the lake knows of files.
struct Stored {
    sources: BTreeMap<Id, StoredSource>,
    next_source: u32,
}

impl Stored {
    fn of(lake: Option<&Lake>) -> Self {
        let Some(lake) = lake else { return Self { sources: BTreeMap::new(), next_source: 1 } };
        let mut sources = lake.manifest.sources.clone();
        if lake.outdated {
            // No file matches such a stamp, now or in a later run that looks at other roots.
            for source in sources.values_mut() {
                source.modified_ns = i64::MIN;
                source.probe = Id::NONE;
            }
        }
        Self { sources, next_source: lake.manifest.next_source }
    }

    fn fresh(&mut self) -> StoredSource {
        let number = self.next_source;
        self.next_source += 1;
        StoredSource { number, ..StoredSource::default() }
    }

    /// A source under another path whose file is gone and whose content is that of `file`: the file was moved.
    fn moved(&mut self, file: &LogFile, listed: &BTreeSet<Id>) -> Option<StoredSource> {
        let gone = |known: &&StoredSource| known.bytes == file.bytes && !listed.contains(&known.key);
        if !self.sources.values().any(|known| gone(&known)) {
            return None;
        }
        let now = probe(&file.path, file.bytes).ok()?;
        let key = self.sources.values().filter(gone).find(|known| known.probe == now)?.key;
        let known = self.sources.remove(&key)?;
        // The new place has its own stamp; the content is the same.
        Some(StoredSource { modified_ns: file.modified_ns, changed_ns: file.changed_ns, ..known })
    }

    /// Sources of these roots that are no longer on disk.
    fn kept(&self, roots: &[Id], plans: &[Plan<'_>]) -> Vec<StoredSource> {
        let listed: BTreeSet<Id> = plans.iter().map(|plan| plan.key).collect();
        let ours =
            |known: &&StoredSource| !listed.contains(&known.key) && known.roots.iter().any(|root| roots.contains(root));
        self.sources.values().filter(ours).cloned().collect()
    }
}

/// The pseudonym of a root, whether or not it is still there.
pub fn root_id(path: &Path) -> Id {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Id::pseudonym(absolute.as_os_str().as_encoded_bytes())
}

/// Worker threads; all cores unless told otherwise.
pub fn thread_pool(threads: Option<u16>) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.map_or(0, usize::from))
        .build()
        .map_err(|cause| Error::failed(format!("starting worker threads: {cause}")))
}
