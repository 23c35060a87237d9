//! Brings what is known of the logs up to date: which files are new, grown, rewritten, moved or gone, what has to be
//! read of them, and what the lake keeps.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use crate::base::damage::Reason;
use crate::base::error::{Error, Result};
use crate::base::id::{Id, IdSet};
use crate::base::names::Names;
use crate::base::progress::ProgressLine;
use crate::base::unpack::Packing;
use crate::base::{allocator, numbers};
use crate::facts::analysis_pool::{AnalysisPool, FactsTaker};
use crate::facts::body_facts::{BodyFacts, WantedFacts, keep_quoted, keep_wanted};
use crate::facts::encode::{self, Params};
use crate::frames::bodies;
use crate::frames::lake::{Lake, News, Trouble, Update};
use crate::frames::manifest::{Maker, StoredSource};
use crate::frames::new_facts::NewFacts;
use crate::frames::new_rows::NewRows;
use crate::frames::new_timelines::NewTimelines;
use crate::frames::tables::TABLES;
use crate::frames::timelines::PackedTimeline;
use crate::logs::discover::{Digest, LogFile, LogListing, digest, is_disturbed};
use crate::logs::message::ExtractionGuide;
use crate::logs::read::{self, FileReading, Job};
use crate::logs::trace::FileRows;
use crate::logs::values::ValueRows;

/// How often a run starts again because another one has changed the lake meanwhile.
const OVERTAKEN_MAX: u32 = 3;
/// How often damage to the lake is looked for again once it was cut out.
const MENDED_MAX: u32 = 8;

/// How a file was brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUpdate {
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
    pub path: PathBuf,
    pub stored: StoredSource,
    /// How it was brought up to date.
    pub fate: FileUpdate,
    pub bytes_read: u64,
}

/// How the files asked for were brought up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncTally {
    /// Files on disk.
    pub files: u64,
    /// Their size, and that of standard input.
    pub bytes: u64,
    /// See [`FileUpdate::New`].
    pub new: u64,
    /// See [`FileUpdate::Grown`].
    pub grown: u64,
    /// See [`FileUpdate::Rewritten`].
    pub rewritten: u64,
    /// See [`FileUpdate::Studied`].
    pub studied: u64,
    /// See [`FileUpdate::Unchanged`].
    pub unchanged: u64,
    /// Bytes read in this run.
    pub bytes_read: u64,
}

impl SyncTally {
    /// Counts files.
    pub fn of(files: &[KnownFile]) -> Self {
        let of = |fate| files.iter().filter(|file| file.fate == fate).count() as u64;
        Self {
            files: files.len() as u64,
            bytes: files.iter().map(|file| file.stored.bytes).sum(),
            new: of(FileUpdate::New),
            grown: of(FileUpdate::Grown),
            rewritten: of(FileUpdate::Rewritten),
            studied: of(FileUpdate::Studied),
            unchanged: of(FileUpdate::Unchanged),
            bytes_read: files.iter().map(|file| file.bytes_read).sum(),
        }
    }
}

/// What there is to bring up to date, and with what.
pub struct SyncScope<'a> {
    /// The files on disk.
    pub listing: &'a LogListing,
    /// The names of the roots, in the order of the listing's.
    pub roots: &'a [RootNames],
    /// What a light reading needs to know.
    pub guide: ExtractionGuide<'a>,
    /// Names what makes the rows and facts.
    pub maker: Maker,
    /// How bodies are written in other ways.
    pub params: Params,
    pub pool: &'a rayon::ThreadPool,
    /// Names what makes the timeline of a log, where timelines are read beside rows.
    pub timeline_maker_of: Option<&'a (dyn Fn(&Path) -> Id + Sync)>,
    /// Whether progress may be shown.
    pub progress: bool,
    /// Called when another run keeps this one from writing.
    pub waiting: &'a (dyn Fn() + Sync),
}

impl SyncScope<'_> {
    /// Whether a source was ever found under one of the roots.
    fn is_ours(&self, source: &StoredSource) -> bool {
        source.roots.iter().any(|root| self.roots.iter().flatten().any(|name| name == root))
    }
}

/// What a command needs besides the counts.
#[derive(Clone, Copy, Default)]
pub struct Want<'w> {
    pub rows: bool,
    /// What of the facts about bodies. What counts them is [`Want::tier`]: a lake that has them can give them later.
    pub bodies: Option<&'w dyn WantedFacts>,
    /// Whether texts that no call quotes are dropped at once where there is no lake, since all calls are known then.
    pub only_quoted: bool,
    /// The vocabularies in which bodies are to be counted, one bit each.
    pub tier: u8,
}

/// Rows of every known source, by its number.
#[derive(Default)]
pub struct Loaded {
    /// What symbols in the rows mean.
    pub names: Names,
    pub rows: BTreeMap<u32, FileRows>,
    /// Whether they are left to the lake, which took them while logs were read.
    pub is_in_lake: bool,
    /// What symbols in the values mean.
    pub value_names: Names,
    /// Values that were read in this run and that the lake does not hold.
    pub values: BTreeMap<u32, ValueRows>,
    /// What files say for a timeline, packed, of those that were read both ways and that the lake does not take.
    pub timelines: BTreeMap<u32, Vec<u8>>,
}

/// What is known now.
#[derive(Default)]
pub struct UpToDate {
    /// Files on disk, in the order of the listing.
    pub files: Vec<KnownFile>,
    /// What is stored of files of these roots that are no longer on disk.
    pub kept: Vec<StoredSource>,
    /// The rows; none when nothing changed and nobody asked for them.
    pub loaded: Option<Loaded>,
    /// The facts about bodies, each once; none if nobody wants them yet and the lake can give them.
    pub bodies: Option<Vec<BodyFacts>>,
    /// Files that could not be read, and why. What was known of them before stands.
    pub unreadable: Vec<(PathBuf, String)>,
    /// What there is to tell.
    pub notes: Vec<String>,
    /// The lake as it is now, if it can be used.
    pub lake: Option<Lake>,
    /// Whether it holds all rows that are known.
    pub is_stored: bool,
}

/// Brings everything in scope up to date, the lake included. Rows are loaded if something changed or they are wanted.
///
/// Whatever is wrong with the lake, the logs that are on disk are counted right: damaged parts are cut out and made anew
/// from the logs, a lake that another run changed is looked at again, and one that cannot be read is done without.
pub fn bring_up_to_date(scope: &SyncScope<'_>, mut lake: Option<Lake>, want: Want<'_>) -> UpToDate {
    let (mut notes, mut overtaken, mut mended, mut writes) = (Vec::new(), 0, 0, Writes::AsItReads);
    if let Some(foreign) = lake.as_ref().filter(|lake| lake.is_foreign) {
        // Which of its rows belong to which log cannot be told. Where there is no log, all of them are what is left.
        if scope.listing.files.is_empty() {
            writes = Writes::Nothing;
        } else {
            let (emptied, note) = foreign.emptied();
            notes.push(note);
            lake = Some(emptied);
        }
    }
    loop {
        let trouble = match attempt(scope, lake.as_ref(), want, writes) {
            Ok(mut known) => {
                notes.append(&mut known.notes);
                return UpToDate { notes, ..known };
            }
            Err(trouble) => trouble,
        };
        // Without a lake there is no trouble with it.
        let Some(now) = lake.take() else { continue };
        if let Some(newer) = now.newer().filter(|_| overtaken < OVERTAKEN_MAX) {
            overtaken += 1;
            lake = Some(newer);
            continue;
        }
        match trouble {
            Trouble::Damaged(damage) if mended < MENDED_MAX => {
                mended += 1;
                let without = now.without(&damage);
                notes.push(format!("the lake was damaged ({}) and is rebuilt", Trouble::Damaged(damage)));
                notes.extend(told_of_lost(scope, &now, &without));
                lake = Some(without);
            }
            Trouble::Overtaken => {
                notes.push("the lake was not updated: other runs kept changing it".to_owned());
                writes = Writes::Nothing;
                lake = Some(now);
            }
            Trouble::LetGo => {
                writes = Writes::AtTheEnd;
                lake = Some(now);
            }
            Trouble::Damaged(_) | Trouble::Failed(_) => {
                let gone = now.manifest.sources.len();
                notes.push(format!(
                    "working without the lake ({trouble}): of {} that it knows, those that are no longer on disk are missing",
                    numbers::counted(gone as u64, "file")
                ));
            }
        }
    }
}

/// Says how many logs that are no longer on disk were in the damaged part of a lake.
fn told_of_lost(scope: &SyncScope<'_>, before: &Lake, after: &Lake) -> Option<String> {
    let listed: BTreeSet<Id> = scope.listing.files.iter().map(source_key).collect();
    let (before, after) = (&before.manifest.sources, &after.manifest.sources);
    let lost: Vec<&StoredSource> =
        before.values().filter(|source| !after.contains_key(&source.key) && !listed.contains(&source.key)).collect();
    let here = lost.iter().filter(|source| scope.is_ours(source)).count();
    let there = lost.len() - here;
    let words = [(here, "deleted log", "lost"), (there, "log", "of other folders read anew if still there")];
    let words = words.iter().filter(|(count, ..)| *count > 0);
    let words: Vec<String> =
        words.map(|(count, what, fate)| format!("{} {fate}", numbers::counted(*count as u64, what))).collect();
    (!words.is_empty()).then(|| format!("rows that the damaged part of the lake held: {}", words.join(", ")))
}

/// What an attempt writes into the lake.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writes {
    Nothing,
    /// Facts, rows and values stay in memory until all is read: if the disk refuses them, they are there.
    AtTheEnd,
    /// They go to disk while logs are read.
    AsItReads,
}

/// One attempt at it, on the lake as it was found.
fn attempt(
    scope: &SyncScope<'_>,
    lake: Option<&Lake>,
    want: Want<'_>,
    writes: Writes,
) -> std::result::Result<UpToDate, Trouble> {
    let mut stored = StoredFiles::of(lake);
    let plans = plan(scope, &mut stored, lake.is_none(), want.tier);
    let is_read = plans.iter().any(|plan| plan.job().is_some());
    let attempt = Attempt { scope, lake, want, writes, plans: &plans, is_read };
    let mut known = UpToDate { notes: told_of_others(scope, &plans).into_iter().collect(), ..UpToDate::default() };
    let mut loaded = attempt.load_rows()?;
    let (tier, counted) = attempt.counted()?;
    let read = attempt.read(tier, &counted, (&mut stored, &mut loaded, &mut known))?;
    attempt.load_unread(&stored, &mut loaded)?;
    let (is_kept, facts) = attempt.keep(read, &stored, (&mut loaded, &mut known))?;
    known.is_stored = if attempt.writes() { is_kept } else { lake.is_some() && !is_read };
    known.lake = known.lake.or_else(|| lake.cloned());
    // What was made for the first time and the lake keeps now is let go of until somebody asks: it may be most of what is in
    // memory.
    let found = Some(facts).filter(|_| !is_kept).unwrap_or_default();
    if want.bodies.is_some() || !is_kept {
        known.bodies = Some(attempt.bodies(known.lake.as_ref().filter(|_| tier != 0), found)?);
    }
    if is_read {
        // What reading needed, and values that the lake keeps now.
        allocator::give_back_small_blocks();
    }
    known.loaded = (want.rows || is_read).then_some(loaded);
    known.kept = attempt.gone(&stored);
    Ok(known)
}

/// What an attempt goes by.
struct Attempt<'a, 's> {
    scope: &'a SyncScope<'s>,
    lake: Option<&'a Lake>,
    want: Want<'a>,
    writes: Writes,
    plans: &'a [FilePlan<'a>],
    /// Whether any file is read.
    is_read: bool,
}

/// What was read.
struct WhatIsNew {
    /// New rows by source.
    delta: Vec<ReadRows>,
    /// New facts; none where they are on disk.
    facts: Vec<BodyFacts>,
    on_disk: OnDisk,
}

/// What is on disk of what was read.
#[derive(Default)]
struct OnDisk {
    /// Who takes timelines, as long as the disk does.
    timelines: Option<NewTimelines>,
    facts: Option<NewFacts>,
    /// Who takes rows and values.
    rows: Option<NewRows>,
    /// Whether the disk has refused some of those.
    is_row_lost: bool,
}

impl Attempt<'_, '_> {
    fn writes(&self) -> bool {
        self.writes != Writes::Nothing
    }

    /// The rows that the lake holds, if they are asked for or something is read beside them. Those of what is read anew from
    /// its start would be in memory twice.
    fn load_rows(&self) -> std::result::Result<Loaded, Trouble> {
        let (anew, mut loaded) = (self.anew(), Loaded::default());
        let lake = self.lake.filter(|_| self.want.rows || self.is_read);
        self.load(lake, &mut loaded, &|number| !anew.contains(&number))?;
        Ok(loaded)
    }

    /// Those of what was to be read anew and could not be: it stands as it was known.
    fn load_unread(&self, stored: &StoredFiles, loaded: &mut Loaded) -> std::result::Result<(), Trouble> {
        let anew = self.anew();
        let stands = stored.sources.values().map(|source| source.number).filter(|number| anew.contains(number));
        let stands: BTreeSet<u32> = stands.collect();
        self.load(self.lake.filter(|_| !stands.is_empty()), loaded, &|number| stands.contains(&number))
    }

    /// The numbers of the sources that are read anew from their start.
    fn anew(&self) -> BTreeSet<u32> {
        self.plans.iter().filter_map(FilePlan::read_anew).collect()
    }

    /// Adds the rows of some sources that the lake holds.
    fn load(
        &self,
        lake: Option<&Lake>,
        loaded: &mut Loaded,
        is_wanted: &(dyn Fn(u32) -> bool + Sync),
    ) -> std::result::Result<(), Trouble> {
        let Some(lake) = lake else { return Ok(()) };
        let rows = self.scope.pool.install(|| lake.load(&TABLES, &mut loaded.names, is_wanted))?;
        loaded.rows.extend(rows);
        Ok(())
    }

    /// In which vocabularies bodies are counted, and in which those were that the lake holds.
    fn counted(&self) -> std::result::Result<(u8, Vec<(Id, u8)>), Trouble> {
        let Self { scope, want, is_read, .. } = *self;
        let tier = if is_read { reading_tier(scope, self.plans, want) } else { want.tier };
        let Some(lake) = self.lake.filter(|_| is_read && tier != 0) else { return Ok((tier, Vec::new())) };
        let counted = scope.pool.install(|| lake.counted_bodies(scope.maker.facts))?;
        Ok((tier_with(tier, &counted), counted))
    }

    /// What was found out about bodies and what the lake has, as far as it is wanted.
    fn bodies(&self, lake: Option<&Lake>, mut found: Vec<BodyFacts>) -> std::result::Result<Vec<BodyFacts>, Trouble> {
        let (maker, wanted) = (self.scope.maker.facts, self.want.bodies);
        self.scope.pool.install(|| {
            wanted.iter().for_each(|wanted| found.par_iter().for_each(|facts| wanted.see(facts)));
            let held = lake.map(|lake| lake.load_bodies(&encode::ids(), maker, wanted)).transpose()?;
            wanted.iter().for_each(|wanted| keep_wanted(&mut found, *wanted));
            Ok(with_known(found, held.unwrap_or_default()))
        })
    }

    /// Reads what the plans ask for and joins it to what is known.
    fn read(
        &self,
        tier: u8,
        counted: &[(Id, u8)],
        (stored, loaded, known): (&mut StoredFiles, &mut Loaded, &mut UpToDate),
    ) -> std::result::Result<WhatIsNew, Trouble> {
        let scope = self.scope;
        let counted = counted.iter().filter(|(_, counted)| counted & tier == tier);
        let lake = self.lake.filter(|_| self.is_read && self.writes());
        let takes_facts = tier != 0 && self.writes == Writes::AsItReads;
        let new_facts = lake.filter(|_| takes_facts).and_then(|lake| lake.begin_facts(scope.maker.facts));
        let take = |facts: &[BodyFacts]| new_facts.iter().for_each(|taker| taker.add(facts));
        let taker = new_facts.is_some().then_some(FactsTaker { rows: bodies::GROUP_ROWS, take: &take });
        let analysis = AnalysisPool::new(tier, scope.params, counted.map(|(body, _)| *body)).with_taker(taker);
        let timelines = lake.filter(|_| scope.timeline_maker_of.is_some()).and_then(Lake::begin_timelines);
        let is_lost = || new_facts.as_ref().is_some_and(NewFacts::is_refused);
        let lets_rows_go = self.writes == Writes::AsItReads && !self.want.rows && (tier == 0 || new_facts.is_some());
        let rows = lake.filter(|_| lets_rows_go && !scope.listing.stdin).and_then(Lake::begin_rows);
        let on_disk = OnDisk { timelines, rows, ..OnDisk::default() };
        let joined = Joined { scope, tier, stored, loaded, known, delta: Vec::new(), on_disk };
        let (delta, mut on_disk) = joined.read(self.plans, &analysis, &is_lost);
        // So few need not go, and not be read again.
        if let Some(held) = on_disk.rows.as_mut().and_then(NewRows::all_held) {
            on_disk.rows = None;
            for (source, rows, values) in held {
                loaded.rows.insert(source, rows);
                loaded.values.insert(source, values);
            }
        }
        loaded.is_in_lake = on_disk.rows.is_some();
        let mut facts = analysis.finish();
        // What is in memory would be sifted by all rows.
        if new_facts.as_ref().is_some_and(|taker| on_disk.rows.is_some() || !taker.is_empty()) {
            take(&std::mem::take(&mut facts));
        }
        if is_lost() || on_disk.is_row_lost {
            return Err(Trouble::LetGo);
        }
        if self.want.only_quoted && self.lake.is_none() {
            scope.pool.install(|| keep_quoted(&mut facts));
            allocator::give_back_small_blocks();
        }
        Ok(WhatIsNew {
            delta,
            facts,
            on_disk: OnDisk { facts: new_facts.filter(|taker| !taker.is_empty()), ..on_disk },
        })
    }

    /// Writes what is new into the lake, if that may be; says whether the lake holds all that is known, and gives the facts
    /// back.
    fn keep(
        &self,
        mut new: WhatIsNew,
        stored: &StoredFiles,
        (loaded, known): (&mut Loaded, &mut UpToDate),
    ) -> std::result::Result<(bool, Vec<BodyFacts>), Trouble> {
        let is_kept = match self.lake {
            Some(lake) if self.writes() => write(lake, self.scope, stored, &mut new, (loaded, known))?,
            Some(_) => new.facts.is_empty(),
            None => false,
        };
        Ok((is_kept, new.facts))
    }

    /// What is known of files that are no longer on disk; of a lake whose logs cannot be told apart, of all.
    fn gone(&self, stored: &StoredFiles) -> Vec<StoredSource> {
        match self.lake.filter(|lake| lake.is_foreign) {
            Some(lake) => lake.manifest.sources.values().cloned().collect(),
            None => stored.kept(self.scope, self.plans),
        }
    }
}

/// Writes what is new into the lake; says whether that was done. A lake that cannot be written is no trouble.
fn write(
    lake: &Lake,
    scope: &SyncScope<'_>,
    stored: &StoredFiles,
    WhatIsNew { delta, facts, on_disk }: &mut WhatIsNew,
    (loaded, known): (&mut Loaded, &mut UpToDate),
) -> std::result::Result<bool, Trouble> {
    let live: BTreeSet<u32> = stored.sources.values().map(|source| source.number).collect();
    let held = |number: &u32| loaded.rows.get(number);
    let is_read = !delta.is_empty();
    let delta = delta.iter().filter_map(|(number, new)| Some((*number, new.as_ref().or_else(|| held(number))?)));
    let delta: Vec<(u32, &FileRows)> = delta.collect();
    let all = loaded.rows.iter().filter(|(number, _)| live.contains(number));
    let all: Vec<(u32, &FileRows)> = all.map(|(number, rows)| (*number, rows)).collect();
    let formats = encode::ids();
    let news = News {
        delta: &delta,
        all: &all,
        names: &loaded.names,
        facts: &*facts,
        maker: scope.maker.facts,
        formats: &formats,
        values: &loaded.values,
        value_names: &loaded.value_names,
    };
    let news = (is_read || !facts.is_empty()).then_some(news);
    let OnDisk { timelines, facts: new_facts, rows, .. } = std::mem::take(on_disk);
    let has_timelines = timelines.as_ref().is_some_and(|some| !some.is_empty());
    let lets_go = new_facts.is_some() || rows.is_some();
    let has_news = news.is_some() || has_timelines;
    let (sources, next_source) = (&stored.sources, stored.next_source);
    let mut update = Update { sources, next_source, news, timelines, facts: new_facts, rows };
    let mut commit = || scope.pool.install(|| lake.commit(&mut update, scope.waiting));
    let mut committed = commit();
    if let (Err(Trouble::Failed(_)), true) = (&committed, lets_go) {
        return Err(Trouble::LetGo);
    }
    if let (Err(Trouble::Failed(why)), true) = (&committed, has_timelines) {
        // Rows are what is left of a log once it is gone: they are kept alone rather than not at all.
        let note = format!("the timelines were not stored: {why}");
        committed = commit();
        known.notes.extend(committed.is_ok().then_some(note));
    }
    match committed {
        Ok(lake) => {
            known.lake = Some(lake);
            loaded.values.clear();
            Ok(true)
        }
        Err(Trouble::Failed(why)) => {
            known.notes.push(format!("the lake was not updated: {why}"));
            // Where logs are now and when they changed is found out again; all that they say is there.
            Ok(!has_news)
        }
        Err(trouble) => Err(trouble),
    }
}

/// Says how many files are read anew because something else made their rows.
fn told_of_others(scope: &SyncScope<'_>, plans: &[FilePlan<'_>]) -> Option<String> {
    let is_other = |known: &StoredSource| known.maker.rows.is_some() && known.maker.rows != scope.maker.rows;
    let others = plans.iter().filter(|plan| plan.known.as_ref().is_some_and(is_other)).count() as u64;
    let files = numbers::counted(others, "file");
    (others > 0).then(|| format!("{files} read anew: the lake was made by another devboy or with other data files"))
}

/// New facts with those that were known; they replace what was known of the same bodies.
pub fn with_known(mut news: Vec<BodyFacts>, known: Vec<BodyFacts>) -> Vec<BodyFacts> {
    if news.is_empty() {
        return known;
    }
    news.extend(known);
    news.sort_by_key(|facts| facts.body);
    news.dedup_by_key(|facts| facts.body);
    news
}

/// The vocabularies in which this run counts: those wanted, and those in which a file that has grown was counted so far,
/// so that every file is counted alike from end to end.
fn reading_tier(scope: &SyncScope<'_>, plans: &[FilePlan<'_>], want: Want<'_>) -> u8 {
    let grown = plans.iter().filter(|plan| plan.fate == FileUpdate::Grown).filter_map(|plan| plan.known.as_ref());
    grown.fold(want.tier, |tier, known| tier | counted_tier(scope, known))
}

/// The same with those in which known bodies were counted, if some of them were not counted as this run counts: such a body
/// may be studied again, and what is said of it then holds for every log that has it.
fn tier_with(tier: u8, held: &[(Id, u8)]) -> u8 {
    let counted = || held.iter().map(|(_, counted)| *counted).filter(|counted| *counted != 0);
    if counted().all(|counted| counted & tier == tier) { tier } else { counted().fold(tier, |all, one| all | one) }
}

/// The vocabularies in which the bodies of a source were counted as this devboy counts.
fn counted_tier(scope: &SyncScope<'_>, known: &StoredSource) -> u8 {
    if known.maker.facts == scope.maker.facts { known.tier } else { 0 }
}

/// What has to happen with one file.
struct FilePlan<'a> {
    key: Id,
    roots: RootNames,
    directory: Id,
    file: &'a LogFile,
    known: Option<StoredSource>,
    /// Hash of all of it; [`Id::NONE`] if reading it will tell.
    content: Id,
    /// Whether reading it has to tell.
    named: bool,
    fate: FileUpdate,
    /// Why it cannot be read, if it cannot: what is known of it stands.
    failure: Option<String>,
}

impl FilePlan<'_> {
    fn job(&self) -> Option<Job<'_>> {
        let from = match self.fate {
            _ if self.failure.is_some() => return None,
            FileUpdate::Unchanged => return None,
            FileUpdate::Grown => self.known.as_ref().map_or(0, |known| known.bytes),
            FileUpdate::New | FileUpdate::Rewritten | FileUpdate::Studied => 0,
        };
        Some(Job { from, named: self.named, ..Job::of(self.file) })
    }

    /// Whether the file begins with all that is known of it.
    fn begins_as(&self, known: &StoredSource) -> bool {
        self.fate == FileUpdate::Studied || (self.content.is_some() && self.content == known.content)
    }

    /// The number under which rows are known of a file that is read from its start.
    fn read_anew(&self) -> Option<u32> {
        let from_start = matches!(self.fate, FileUpdate::Rewritten | FileUpdate::Studied) && self.job().is_some();
        self.known.as_ref().filter(|_| from_start).map(|known| known.number)
    }
}

/// Decides for every file on disk what has to be read of it. A file is what it was if number, size and times are; when
/// one of these is in doubt, all of its content decides.
fn plan<'a>(scope: &SyncScope<'a>, stored: &mut StoredFiles, without_lake: bool, tier: u8) -> Vec<FilePlan<'a>> {
    let files: Vec<(&LogFile, Id)> = scope.listing.files.iter().map(|file| (file, source_key(file))).collect();
    let mut gone = stored.gone(scope, &files);
    let gone_bytes: BTreeSet<u64> = gone.keys().map(|(_, bytes)| *bytes).collect();
    let mut moved = |stored: &mut StoredFiles, content: Id, bytes: u64| {
        let key = gone.get_mut(&(content, bytes))?.pop()?;
        stored.sources.remove(&key)
    };
    let digests = digests(scope, &files, stored, &gone_bytes, without_lake);
    let (mut plans, mut last) = (Vec::with_capacity(files.len()), None);
    for ((file, key), digest) in files.into_iter().zip(digests) {
        let (digest, failure) = match digest.transpose() {
            Ok(digest) => (digest, None),
            Err(cause) => (None, Some(cause.to_string())),
        };
        let mut known = stored.sources.get(&key).cloned();
        let mut start = digest.map(|digest| digest.start);
        match (&mut known, digest.map(|digest| digest.whole)) {
            (None, Some(whole)) => {
                known = moved(stored, whole, file.bytes);
                start = Some(whole);
            }
            // A run over another root has found it where it was moved to.
            (Some(known), _) if !scope.roots[file.root].iter().any(|name| known.roots.contains(name)) => {
                let before = moved(stored, known.content, known.bytes);
                known.found_under(before.into_iter().flat_map(|before| before.roots));
            }
            _ => {}
        }
        let fate = match &known {
            Some(_) if failure.is_some() => FileUpdate::Unchanged,
            Some(known) => fate(scope, file, known, start, tier),
            None => FileUpdate::New,
        };
        let same = known.as_ref().map_or(Id::NONE, |known| known.content);
        let content = digest.map_or(same, |digest| digest.whole);
        // Files come directory by directory.
        let directory = match last {
            Some((name, directory)) if Arc::ptr_eq(name, &file.directory) => directory,
            _ => Id::pseudonym(slug(&file.directory).as_bytes()),
        };
        last = Some((&file.directory, directory));
        let named = !without_lake && content == Id::NONE;
        let roots = scope.roots[file.root];
        plans.push(FilePlan { key, roots, directory, file, known, content, named, fate, failure });
    }
    plans
}

/// Names the content of the files that may be another than they were, or that may have been moved here.
fn digests(
    scope: &SyncScope<'_>,
    files: &[(&LogFile, Id)],
    stored: &StoredFiles,
    gone_bytes: &BTreeSet<u64>,
    without_lake: bool,
) -> Vec<Option<std::io::Result<Digest>>> {
    scope.pool.install(|| {
        let digests = files.par_iter().map(|(file, key)| {
            let known = stored.sources.get(key);
            let is_certain = without_lake
                || match known {
                    Some(known) => is_as_known(file, known),
                    // Nothing to compare it with: it is new, and is named while it is read.
                    None => !gone_bytes.contains(&file.bytes) && Job::of(file).is_one_piece(),
                };
            (!is_certain).then(|| digest(&file.path, known.map_or(0, |known| known.bytes), file.bytes))
        });
        digests.collect()
    })
}

/// What tells without reading it that a file is what it was.
fn is_as_known(file: &LogFile, known: &StoredSource) -> bool {
    let StoredSource { bytes, modified_ns, changed_ns, inode, .. } = *known;
    (file.bytes, file.modified_ns, file.changed_ns, file.inode) == (bytes, modified_ns, changed_ns, inode)
}

/// What becomes of a known file. `start` is the hash of as much of it as was read then, if its content is in doubt.
fn fate(scope: &SyncScope<'_>, file: &LogFile, known: &StoredSource, start: Option<Id>, tier: u8) -> FileUpdate {
    let is_same_start = start.is_none_or(|start| start == known.content);
    let has_grown = file.bytes > known.bytes;
    let can_grow = has_grown && !known.open_tail && file.packing == Packing::Plain;
    if !is_same_start || known.maker.rows != scope.maker.rows || (file.bytes != known.bytes && !can_grow) {
        return FileUpdate::Rewritten;
    }
    if counted_tier(scope, known) & tier != tier {
        return FileUpdate::Studied;
    }
    if has_grown { FileUpdate::Grown } else { FileUpdate::Unchanged }
}

fn source_key(file: &LogFile) -> Id {
    Id::pseudonym(file.canonical.as_os_str().as_encoded_bytes())
}

/// A project name as Claude Code spells its directory, in lower case: it keeps ASCII letters and digits, and has a dash for
/// every other unit of UTF-16.
pub fn slug(text: &str) -> String {
    let letter = |unit| char::from_u32(u32::from(unit)).filter(char::is_ascii_alphanumeric);
    text.encode_utf16().map(|unit| letter(unit).map_or('-', |letter| letter.to_ascii_lowercase())).collect()
}

/// New rows of a source; none if all rows that are known of it are new.
type ReadRows = (u32, Option<FileRows>);

/// What was read so far, and what it is joined to.
struct Joined<'j, 's> {
    scope: &'j SyncScope<'s>,
    /// In which vocabularies bodies are counted.
    tier: u8,
    stored: &'j mut StoredFiles,
    loaded: &'j mut Loaded,
    known: &'j mut UpToDate,
    delta: Vec<ReadRows>,
    on_disk: OnDisk,
}

impl Joined<'_, '_> {
    /// Reads what the plans ask for and joins it to what is known; returns the new rows by source, and what went to disk.
    /// Ends early, and then in vain, once something was lost.
    fn read(
        mut self,
        plans: &[FilePlan<'_>],
        analysis: &AnalysisPool<'_>,
        is_lost: &dyn Fn() -> bool,
    ) -> (Vec<ReadRows>, OnDisk) {
        let scope = self.scope;
        let jobs: Vec<Job<'_>> = plans.iter().filter_map(FilePlan::job).collect();
        let progress = ProgressLine::new(jobs.iter().map(|job| job.to - job.from).sum(), scope.progress);
        let begin = || analysis.begin();
        let guide = ExtractionGuide { study: if self.tier == 0 { None } else { Some(&begin) }, ..scope.guide };
        let mut left = plans.iter();
        let mut take = |reading: FileReading| {
            let mut reading = Some(reading);
            // Files that are not read stand between those that are.
            for plan in left.by_ref() {
                self.settle(plan, plan.job().and_then(|_| reading.take()));
                if reading.is_none() {
                    break;
                }
            }
            if is_lost() || self.on_disk.is_row_lost { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        read::read_all(&jobs, guide, scope.pool, &|bytes| progress.advance(bytes), &mut take);
        left.for_each(|plan| self.settle(plan, None));
        (self.delta, self.on_disk)
    }

    /// Joins a file, with what was read of it.
    fn settle(&mut self, plan: &FilePlan<'_>, mut reading: Option<FileReading>) {
        let failed = reading.as_ref().and_then(|reading| reading.failure.clone());
        if let Some(why) = plan.failure.clone().or(failed) {
            self.known.files.push(unreadable(plan, self.stored));
            self.known.unreadable.push((plan.file.path.clone(), why));
            return;
        }
        let mut source = self.source(plan);
        let named = reading.as_ref().and_then(|reading| reading.content);
        let timeline = reading.as_mut().and_then(|reading| reading.packed.take());
        if let Some(reading) = reading {
            self.join(plan, reading, &mut source);
        }
        stamp_source(&mut source, plan, named);
        if let Some(rows) = timeline {
            self.put_away(plan, &source, rows);
        }
        self.known.files.push(KnownFile {
            path: plan.file.path.clone(),
            stored: source.clone(),
            fate: plan.fate,
            bytes_read: plan.job().map_or(0, |job| job.to - job.from),
        });
        self.stored.sources.insert(plan.key, source);
    }

    /// Hands the timeline of a file to the lake, or keeps it in memory.
    fn put_away(&mut self, plan: &FilePlan<'_>, source: &StoredSource, rows: Vec<u8>) {
        // What changed under the reader is read again by the next run.
        let stands = source.content.is_some() && !source.counters.is_of_sidecar();
        let taker = self.on_disk.timelines.as_mut().filter(|taker| stands && !taker.is_stored(source.timeline()));
        let (Some(taker), Some(maker_of)) = (taker, self.scope.timeline_maker_of) else {
            self.loaded.timelines.insert(source.number, rows);
            return;
        };
        let (bytes, words, rows) = (source.bytes, maker_of(&plan.file.path), Cow::Owned(rows));
        // Whoever asks for them reads the logs again, and is told if the disk refuses once more.
        if taker.add(PackedTimeline { source: source.timeline(), bytes, words, rows }).is_err() {
            self.on_disk.timelines = None;
        }
    }

    /// What is known of a file that stands: of one that is read anew nothing but where it was, and its timeline if it begins
    /// as it did.
    fn source(&mut self, plan: &FilePlan<'_>) -> StoredSource {
        match (&plan.known, plan.fate) {
            (Some(known), FileUpdate::Unchanged | FileUpdate::Grown) => known.clone(),
            (Some(known), _) => {
                let fresh = self.stored.fresh();
                let kept_timeline = plan.begins_as(known).then(|| known.timeline());
                StoredSource { kept_timeline, roots: known.roots.clone(), ..fresh }
            }
            (None, _) => self.stored.fresh(),
        }
    }

    /// Takes what was read of a file.
    fn join(&mut self, plan: &FilePlan<'_>, reading: FileReading, source: &mut StoredSource) {
        if plan.fate == FileUpdate::Grown {
            // What it held before was counted as it was; this run counts at least as much, but as this maker does.
            source.tier = counted_tier(self.scope, source);
        } else {
            source.maker = self.scope.maker;
            source.tier = self.tier;
        }
        let rows = self.take_over(plan, reading, source);
        self.delta.push((source.number, rows));
        if let Some(taker) = &mut self.on_disk.rows {
            let Loaded { names, rows, value_names, values, .. } = &mut *self.loaded;
            let own = (rows.remove(&source.number), values.remove(&source.number));
            let own = (own.0.unwrap_or_default(), own.1.unwrap_or_default());
            if taker.add(source.number, own) {
                let written = self.scope.pool.install(|| taker.write_held((names, value_names)));
                self.on_disk.is_row_lost |= written.is_err();
            }
        }
    }

    /// Joins a reading to the rows of its source; returns what is new of them, if not all is.
    fn take_over(&mut self, plan: &FilePlan<'_>, reading: FileReading, source: &mut StoredSource) -> Option<FileRows> {
        let (loaded, guide) = (&mut *self.loaded, self.scope.guide);
        let symbols = loaded.names.absorb(&reading.trace.names);
        let rows = loaded.rows.entry(source.number).or_default();
        let added = if source.readings == 0 {
            rows.append(reading.trace.rows, &symbols, &source.counters);
            None
        } else {
            let known_chains = rows.chains.len();
            let mut added = FileRows { chains: rows.chains.clone(), ..FileRows::default() };
            added.append(reading.trace.rows, &symbols, &source.counters);
            added.chains.drain(..known_chains);
            rows.extend(&added);
            Some(added)
        };
        let symbols = loaded.value_names.absorb(&reading.trace.value_names);
        let values = loaded.values.entry(source.number).or_default();
        values.append(reading.trace.values, &symbols, source.counters.blocks);
        if plan.fate == FileUpdate::Grown {
            // The call of an answer may have been read in an earlier run.
            let names = &loaded.names;
            values.drop_lists(&rows.calls, |tool, list| !guide.values.keeps(names.text(tool), list));
        }
        Arc::make_mut(&mut source.counters).append(reading.trace.counters);
        source.open_tail = reading.open_tail;
        source.readings += 1;
        source.bytes = plan.file.bytes;
        added
    }
}

/// Notes where a file is and what tells that it is the same; `named` is its content, if it was named while it was read.
fn stamp_source(source: &mut StoredSource, plan: &FilePlan<'_>, named: Option<Id>) {
    source.key = plan.key;
    source.directory = plan.directory;
    let LogFile { path, bytes, modified_ns, changed_ns, inode, .. } = plan.file;
    let is_disturbed = plan.job().is_some() && is_disturbed(path, (*bytes, *modified_ns, *inode));
    // What changed under the reader has no name and no times, so that the next run reads all of it.
    (source.content, source.modified_ns, source.changed_ns, source.inode) = match is_disturbed {
        true => Default::default(),
        false => (named.unwrap_or(plan.content), *modified_ns, *changed_ns, *inode),
    };
    source.found_under(plan.roots);
}

/// A file that could not be read: what was known of it before stands, and the next run tries again.
fn unreadable(plan: &FilePlan<'_>, stored: &mut StoredFiles) -> KnownFile {
    let (mut source, fate) = match &plan.known {
        Some(known) => {
            stored.sources.insert(known.key, known.clone());
            (known.clone(), FileUpdate::Unchanged)
        }
        None => (StoredSource { key: plan.key, ..stored.fresh() }, FileUpdate::New),
    };
    Arc::make_mut(&mut source.counters).damage.add(Reason::Unreadable, 0);
    KnownFile { path: plan.file.path.clone(), stored: source, fate, bytes_read: 0 }
}

struct StoredFiles {
    sources: BTreeMap<Id, StoredSource>,
    next_source: u32,
}

impl StoredFiles {
    fn of(lake: Option<&Lake>) -> Self {
        let Some(lake) = lake else { return Self { sources: BTreeMap::new(), next_source: 1 } };
        Self { sources: lake.manifest.sources.clone(), next_source: lake.manifest.next_source }
    }

    fn fresh(&mut self) -> StoredSource {
        let number = self.next_source;
        self.next_source += 1;
        StoredSource { number, ..StoredSource::default() }
    }

    /// Keys of sources whose files are gone, by content and size: a new file with such a content was moved. What lies
    /// outside of the roots of this run is not gone, and nothing is where a place cannot be looked into; one that is not there any
    /// more may have been moved as a whole. What was once found under one of its roots is gone from there, whatever folders of it
    /// were asked about as well.
    fn gone(&self, scope: &SyncScope<'_>, files: &[(&LogFile, Id)]) -> BTreeMap<(Id, u64), Vec<Id>> {
        if !scope.listing.unreadable.is_empty() {
            return BTreeMap::new();
        }
        let listed: IdSet<Id> = files.iter().map(|(_, key)| *key).collect();
        let is_gone =
            |known: &&StoredSource| !listed.contains(&known.key) && scope.is_ours(known) && known.content.is_some();
        let mut gone: BTreeMap<(Id, u64), Vec<Id>> = BTreeMap::new();
        for known in self.sources.values().filter(is_gone) {
            gone.entry((known.content, known.bytes)).or_default().push(known.key);
        }
        gone
    }

    /// Sources of these roots that are no longer on disk.
    fn kept(&self, scope: &SyncScope<'_>, plans: &[FilePlan<'_>]) -> Vec<StoredSource> {
        let listed: IdSet<Id> = plans.iter().map(|plan| plan.key).collect();
        let ours = |known: &&StoredSource| !listed.contains(&known.key) && scope.is_ours(known);
        self.sources.values().filter(ours).cloned().collect()
    }
}

/// Pseudonyms of a root: as it was named, without a separator at its end, and with its links resolved.
pub type RootNames = [Id; 2];

/// The names of a root that was found at `place`, which is empty if it is no longer there.
pub fn root_names(path: &Path, place: &Path) -> RootNames {
    let named: PathBuf = std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components().collect();
    let place = if place.as_os_str().is_empty() { named.as_path() } else { place };
    [named.as_path(), place].map(|path| Id::pseudonym(path.as_os_str().as_encoded_bytes()))
}

/// Worker threads; all cores unless told otherwise.
pub fn thread_pool(threads: Option<u16>) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.map_or(0, usize::from))
        .build()
        .map_err(|cause| Error::failed(format!("starting worker threads: {cause}")))
}
