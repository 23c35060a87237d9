//! The input of a command: which logs, what the lake already knows of them, what had to be read, and the corpus that
//! follows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::{InputArgs, OutputArgs};
use crate::commands::window;
use crate::content::shape;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::frames::lake::Lake;
use crate::frames::manifest::StoredSource;
use crate::logs::discover::{self, Listing, LogFile, Packing, Root};
use crate::logs::probe::probe;
use crate::logs::read::{self, Job, Reading};
use crate::logs::record::Guide;
use crate::logs::vocabulary::Vocabulary;
use crate::model::corpus::{Corpus, Source, SourceRows};
use crate::model::id::Id;
use crate::model::names::Names;
use crate::model::trace::{Millis, Rows};
use crate::progress::Progress;
use crate::report::numbers;
use crate::rules::data::Data;

/// How each file was brought up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Files on disk.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// Read for the first time.
    pub new: u64,
    /// Read from where they ended last time.
    pub grown: u64,
    /// Read anew because they were rewritten.
    pub rewritten: u64,
    /// Known from the lake.
    pub unchanged: u64,
    /// Deleted from disk, kept in the lake.
    pub kept: u64,
    /// Not opened because they are older than the window (without a lake).
    pub pruned: u64,
    /// Bytes read in this run.
    pub bytes_read: u64,
}

/// What a command works on.
pub struct Input {
    /// The rows.
    pub corpus: Corpus,
    /// The places looked at.
    pub roots: Vec<Root>,
    /// What was found there.
    pub listing: Listing,
    /// The time window.
    pub window: Range<Millis>,
    /// How the files were brought up to date.
    pub tally: Tally,
    /// The lake that was used.
    pub lake: Option<PathBuf>,
    /// Things to tell the user.
    pub notes: Vec<String>,
    /// Words of the logs.
    pub vocabulary: Vocabulary,
    /// The data files.
    pub data: Data,
}

impl Input {
    /// Reads what `args` ask for.
    ///
    /// # Errors
    /// If no log can be found; the error lists the places looked at.
    pub fn read(args: &InputArgs, output: &OutputArgs, context: &mut Context<'_>) -> Result<Self> {
        let window = window::of(args, context.now_ms)?;
        let data = Data::new(args.rules_dir.as_deref())?;
        let vocabulary = Vocabulary::parse(&data.text("logs.toml")?, "rules/logs.toml")?;
        let roots = discover::roots(&args.input_dir, &context.env.places);
        let listing = discover::list(&roots);
        let mut input = Self {
            corpus: Corpus::default(),
            roots,
            listing,
            window,
            tally: Tally::default(),
            lake: None,
            notes: Vec::new(),
            vocabulary,
            data,
        };
        let lake = input.open_lake(args, output, context);
        input.gather(args, output, context, lake)?;
        if input.corpus.files.is_empty() {
            return Err(nothing_found(&input, args));
        }
        Ok(input)
    }

    fn open_lake(&mut self, args: &InputArgs, output: &OutputArgs, context: &mut Context<'_>) -> Option<Lake> {
        if args.no_lake {
            return None;
        }
        let dir = args.lake.clone().or_else(|| context.env.lake_dir())?;
        let err = &mut context.err;
        let waiting = || {
            if !output.quiet {
                let _unheard = writeln!(err, "devboy: another run is updating the lake; waiting for it");
            }
        };
        match Lake::open(&dir, waiting) {
            Ok(lake) => {
                self.notes.extend(lake.note.clone());
                self.lake = Some(dir);
                Some(lake)
            }
            Err(why) => {
                self.notes.push(format!("working without the lake: {why}"));
                None
            }
        }
    }

    /// Brings every file up to date and keeps the lake current.
    fn gather(
        &mut self,
        args: &InputArgs,
        output: &OutputArgs,
        context: &mut Context<'_>,
        mut lake: Option<Lake>,
    ) -> Result<()> {
        let pool = thread_pool(args.threads)?;
        let mut names = Names::default();
        let mut stored = match &mut lake {
            Some(lake) => Stored::load(lake, &mut names, &pool),
            None => Stored::default(),
        };
        let roots: Vec<Id> = self.roots.iter().map(|root| root_id(&root.path)).collect();
        let plans = self.plan(&mut stored, &roots, lake.is_none());
        let jobs: Vec<Job<'_>> = plans.iter().filter_map(|plan| plan.job()).collect();
        self.tally.bytes_read = jobs.iter().map(|job| job.to - job.from).sum();
        let progress = Progress::new(self.tally.bytes_read, context.err_is_terminal && !output.quiet);
        let guide = Guide { vocabulary: &self.vocabulary, classify: shape::classify };
        let readings = read::read_all(&jobs, guide, &pool, &|bytes| progress.advance(bytes));
        drop(progress);
        let mut update = Update { stored, names, delta: Vec::new() };
        let mut readings = readings.into_iter();
        let mut files: Vec<(PathBuf, u32)> = Vec::new();
        for plan in &plans {
            let reading = if plan.job().is_some() { readings.next() } else { None };
            files.push((plan.file.path.clone(), update.apply(plan, reading, &roots)));
        }
        if let Some(lake) = &mut lake {
            if let Err(why) = pool.install(|| update.commit(lake)) {
                self.notes.push(format!("the lake was not updated: {why}"));
            }
        }
        let kept = update.stored.kept(&roots, &plans);
        self.corpus = update.corpus(files, &kept, args.project.as_deref(), &self.listing);
        self.tally.kept = self.corpus.files.iter().filter(|file| file.source.path.is_none()).count() as u64;
        if self.listing.stdin {
            let reading = read::read_stream(&mut context.input, guide);
            let source = Source { key: Id::pseudonym(b"-"), path: Some("-".into()), ..Source::default() };
            let source = Source { counters: reading.trace.counters.clone(), ..source };
            self.corpus.push(source, reading.trace);
        }
        Ok(())
    }

    /// Decides for every file on disk what has to be read of it.
    fn plan(&mut self, stored: &mut Stored, roots: &[Id], may_prune: bool) -> Vec<Plan> {
        let listed: BTreeSet<Id> = self.listing.files.iter().map(source_key).collect();
        let mut plans = Vec::new();
        for file in &self.listing.files {
            self.tally.files += 1;
            self.tally.bytes += file.bytes;
            let too_old = may_prune && file.modified_ns / 1_000_000 < self.window.start;
            if too_old {
                self.tally.pruned += 1;
                continue;
            }
            let key = source_key(file);
            let known = stored.sources.get(&key).cloned().or_else(|| stored.moved(file, &listed));
            let action = known.map_or(Action::New, |known| action_for(file, known, stored.outdated));
            let count = match action {
                Action::New => &mut self.tally.new,
                Action::Grown(_) => &mut self.tally.grown,
                Action::Rewritten => &mut self.tally.rewritten,
                Action::Unchanged(_) => &mut self.tally.unchanged,
            };
            *count += 1;
            let directory = Id::pseudonym(slug(&directory_of(file, &self.listing)).as_bytes());
            plans.push(Plan { key, root: roots[file.root], directory, file: file.clone(), action });
        }
        plans
    }

    /// Fields of every JSON report about the input.
    pub fn json(&self) -> Value {
        let tally = &self.tally;
        json!({
            "roots": self.roots.iter().enumerate().map(|(index, root)| json!({
                "path": root.path.display().to_string(),
                "origin": root.origin,
                "found": !self.listing.missing.contains(&index),
            })).collect::<Vec<_>>(),
            "files": tally.files,
            "bytes": tally.bytes,
            "new": tally.new,
            "grown": tally.grown,
            "rewritten": tally.rewritten,
            "unchanged": tally.unchanged,
            "kept_after_deletion": tally.kept,
            "pruned": tally.pruned,
            "bytes_read": tally.bytes_read,
            "sidecar_files": self.corpus.files.iter().filter(|file| file.source.is_sidecar()).count(),
            "unreadable": self.listing.unreadable.iter().map(|(path, why)| json!({
                "path": path.display().to_string(), "reason": why,
            })).collect::<Vec<_>>(),
            "lake": self.lake.as_ref().map(|dir| dir.display().to_string()),
            "notes": self.notes,
        })
    }

    /// The window as text for JSON.
    pub fn window_json(&self) -> Value {
        let text = |ms: Millis| jiff::Timestamp::from_millisecond(ms).map(|at| at.to_string()).ok();
        let bound = |ms: Millis| if ms == window::ALL.start || ms == window::ALL.end { None } else { text(ms) };
        json!({ "since": bound(self.window.start), "until": bound(self.window.end) })
    }

    /// Tells the user what is worth knowing about the input.
    pub fn tell(&self, output: &OutputArgs, context: &mut Context<'_>) -> Result<()> {
        if output.quiet {
            return Ok(());
        }
        for note in &self.notes {
            writeln!(context.err, "# note: {note}")?;
        }
        for (path, why) in &self.listing.unreadable {
            writeln!(context.err, "# note: {} could not be read: {why}", path.display())?;
        }
        if output.verbose {
            for file in &self.corpus.files {
                let Some(path) = &file.source.path else { continue };
                let calls = file.rows.calls.len() as u64;
                let records = numbers::counted(file.source.counters.records, "record");
                writeln!(context.err, "# {}: {records}, {}", path.display(), numbers::counted(calls, "call"))?;
            }
        }
        Ok(())
    }
}

/// What has to happen with one file.
struct Plan {
    key: Id,
    root: Id,
    directory: Id,
    file: LogFile,
    action: Action,
}

enum Action {
    New,
    Rewritten,
    Grown(StoredSource),
    Unchanged(StoredSource),
}

impl Plan {
    fn job(&self) -> Option<Job<'_>> {
        let from = match &self.action {
            Action::New | Action::Rewritten => 0,
            Action::Grown(known) => known.bytes,
            Action::Unchanged(_) => return None,
        };
        Some(Job { path: &self.file.path, packing: self.file.packing, from, to: self.file.bytes })
    }
}

fn action_for(file: &LogFile, known: StoredSource, outdated: bool) -> Action {
    let same_stamp =
        (known.bytes, known.modified_ns, known.changed_ns) == (file.bytes, file.modified_ns, file.changed_ns);
    if outdated {
        return Action::Rewritten;
    }
    if same_stamp {
        return Action::Unchanged(known);
    }
    let can_grow = file.bytes > known.bytes && !known.open_tail && file.packing == Packing::Plain;
    // A touched file with the same content in all samples and the same size may still differ: it is read anew.
    if can_grow && probe(&file.path, known.bytes).is_ok_and(|now| now == known.probe) {
        return Action::Grown(known);
    }
    Action::Rewritten
}

fn source_key(file: &LogFile) -> Id {
    Id::pseudonym(file.canonical.as_os_str().as_encoded_bytes())
}

fn root_id(path: &Path) -> Id {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Id::pseudonym(absolute.as_os_str().as_encoded_bytes())
}

/// The name of the directory that stands for the project: the first one below the root, or the file's own.
fn directory_of(file: &LogFile, listing: &Listing) -> String {
    let below = listing.roots.get(file.root).and_then(|root| file.canonical.strip_prefix(root).ok());
    let first = below
        .and_then(|path| path.parent())
        .and_then(|dir| dir.components().map(|part| part.as_os_str()).find(|part| *part != "projects"));
    let own = file.canonical.parent().and_then(Path::file_name);
    first.or(own).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A project name as Claude Code spells its directory.
fn slug(text: &str) -> String {
    text.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

fn thread_pool(threads: Option<usize>) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()
        .map_err(|cause| Error::failed(format!("starting worker threads: {cause}")))
}

/// What the lake knew before this run.
#[derive(Default)]
struct Stored {
    sources: BTreeMap<Id, StoredSource>,
    rows: BTreeMap<u32, Rows>,
    next_source: u32,
    outdated: bool,
}

impl Stored {
    fn load(lake: &mut Lake, names: &mut Names, pool: &rayon::ThreadPool) -> Self {
        let rows = pool.install(|| lake.load(names)).into_iter().collect();
        Self {
            sources: lake.manifest.sources.clone(),
            rows,
            next_source: lake.manifest.next_source,
            outdated: lake.outdated,
        }
    }

    /// A source under another path whose file is gone and whose content is that of `file`: the file was moved.
    fn moved(&mut self, file: &LogFile, listed: &BTreeSet<Id>) -> Option<StoredSource> {
        let candidates =
            self.sources.values().filter(|known| known.bytes == file.bytes && !listed.contains(&known.key));
        let candidates: Vec<StoredSource> = candidates.cloned().collect();
        if candidates.is_empty() {
            return None;
        }
        let now = probe(&file.path, file.bytes).ok()?;
        let known = candidates.into_iter().find(|known| known.probe == now)?;
        self.sources.remove(&known.key);
        // The new place has its own stamp; the content is the same.
        Some(StoredSource { modified_ns: file.modified_ns, changed_ns: file.changed_ns, ..known })
    }

    /// Sources of these roots that are no longer on disk.
    fn kept(&self, roots: &[Id], plans: &[Plan]) -> Vec<StoredSource> {
        let listed: BTreeSet<Id> = plans.iter().map(|plan| plan.key).collect();
        let ours =
            |known: &&StoredSource| !listed.contains(&known.key) && known.roots.iter().any(|root| roots.contains(root));
        self.sources.values().filter(ours).cloned().collect()
    }
}

/// The lake's knowledge while a run adds to it.
struct Update {
    stored: Stored,
    names: Names,
    /// New rows, by source.
    delta: Vec<(u32, Rows)>,
}

impl Update {
    /// Takes over what was read of a file; returns the number of its source.
    fn apply(&mut self, plan: &Plan, reading: Option<Reading>, roots: &[Id]) -> u32 {
        let mut source = match &plan.action {
            Action::Unchanged(known) | Action::Grown(known) => known.clone(),
            Action::New | Action::Rewritten => self.fresh(),
        };
        if let Some(reading) = reading {
            let names = self.names.absorb(&reading.trace.names);
            let rows = self.stored.rows.entry(source.number).or_default();
            let before = Rows { chains: rows.chains.clone(), ..Rows::default() };
            let mut added = before.clone();
            added.append(reading.trace.rows, &names, &source.counters);
            let new_chains = added.chains.split_off(before.chains.len());
            rows.chains.extend_from_slice(&new_chains);
            let delta = Rows { chains: new_chains, ..added };
            rows.calls.extend_from_slice(&delta.calls);
            rows.messages.extend_from_slice(&delta.messages);
            rows.marks.extend_from_slice(&delta.marks);
            rows.sessions.extend_from_slice(&delta.sessions);
            self.delta.push((source.number, delta));
            source.counters.append(reading.trace.counters);
            source.open_tail = reading.open_tail;
            source.bytes = plan.file.bytes;
            source.probe = probe(&plan.file.path, plan.file.bytes).unwrap_or_default();
        }
        source.key = plan.key;
        source.directory = plan.directory;
        source.modified_ns = plan.file.modified_ns;
        source.changed_ns = plan.file.changed_ns;
        if !source.roots.contains(&plan.root) {
            source.roots.push(plan.root);
            source.roots.sort_unstable();
        }
        debug_assert!(roots.contains(&plan.root), "every file lies under a root");
        let number = source.number;
        self.stored.sources.insert(plan.key, source);
        number
    }

    fn fresh(&mut self) -> StoredSource {
        self.stored.next_source = self.stored.next_source.max(1);
        let number = self.stored.next_source;
        self.stored.next_source += 1;
        StoredSource { number, ..StoredSource::default() }
    }

    /// Writes what is new. Nothing is written when nothing changed.
    fn commit(&mut self, lake: &mut Lake) -> std::result::Result<(), String> {
        if self.delta.is_empty() && lake.manifest.sources == self.stored.sources {
            return Ok(());
        }
        lake.manifest.sources.clone_from(&self.stored.sources);
        lake.manifest.next_source = self.stored.next_source;
        let live: BTreeSet<u32> = self.stored.sources.values().map(|source| source.number).collect();
        let delta: Vec<(u32, &Rows)> = self.delta.iter().map(|(number, rows)| (*number, rows)).collect();
        let all = self.stored.rows.iter().filter(|(number, _)| live.contains(number));
        let all: Vec<(u32, &Rows)> = all.map(|(number, rows)| (*number, rows)).collect();
        lake.commit(&delta, &all, &self.names)
    }

    /// The corpus of the files asked for: those on disk, then those that are only in the lake.
    fn corpus(
        self,
        files: Vec<(PathBuf, u32)>,
        kept: &[StoredSource],
        project: Option<&str>,
        listing: &Listing,
    ) -> Corpus {
        let Self { stored: Stored { sources, mut rows, .. }, names, .. } = self;
        let by_number: BTreeMap<u32, &StoredSource> = sources.values().map(|source| (source.number, source)).collect();
        let directory = |file| directory_of(file, listing);
        let directories: BTreeMap<&Path, String> =
            listing.files.iter().map(|file| (file.path.as_path(), directory(file))).collect();
        let wanted = project.map(slug);
        let in_project = |path: &Path| {
            let directory = directories.get(path).map(|name| slug(name)).unwrap_or_default();
            wanted.as_ref().is_none_or(|wanted| directory.contains(wanted.as_str()))
        };
        let mut corpus = Corpus { names, files: Vec::new() };
        let mut take = |number: u32, path: Option<PathBuf>| {
            let Some(stored) = by_number.get(&number) else { return };
            let mut rows = rows.remove(&number).unwrap_or_default();
            rows.fold(&corpus.names);
            let source = Source { key: stored.key, path, bytes: stored.bytes, counters: stored.counters.clone() };
            corpus.files.push(SourceRows { source, rows });
        };
        for (path, number) in files {
            if in_project(&path) {
                take(number, Some(path));
            }
        }
        for stored in kept {
            // The name of a deleted project is known by its pseudonym only.
            let named = wanted.as_ref().is_none_or(|wanted| stored.directory == Id::pseudonym(wanted.as_bytes()));
            if named {
                take(stored.number, None);
            }
        }
        corpus
    }
}

/// Nothing to work on: say where was looked.
fn nothing_found(input: &Input, args: &InputArgs) -> Error {
    let looked = input.roots.iter().enumerate().map(|(index, root)| {
        let unreadable = input.listing.unreadable.iter().find(|(path, _)| path.starts_with(&root.path));
        let state = match unreadable {
            Some((_, why)) => why.as_str(),
            None if input.listing.missing.contains(&index) => "does not exist",
            None => "holds no .jsonl, .jsonl.gz or .jsonl.zst file",
        };
        format!("looked at {} ({}): {state}", root.path.display(), root.origin)
    });
    let mut hints: Vec<String> = looked.collect();
    if let Some(project) = args.project.as_deref().filter(|_| input.tally.files > 0) {
        hints.push(format!("{} files are there, but none in a project named like \"{project}\"", input.tally.files));
        let names: BTreeSet<String> =
            input.listing.files.iter().map(|file| directory_of(file, &input.listing)).collect();
        hints.push(format!("projects: {}", names.into_iter().take(10).collect::<Vec<_>>().join(", ")));
    } else if input.tally.pruned > 0 {
        hints.push(format!("{} files are older than the window", input.tally.pruned));
    } else {
        hints.push("name the folder of your logs with --input-dir; `devboy doctor` says more".to_owned());
    }
    Error::failed("no Claude Code logs found").hint(hints.join("\n"))
}
