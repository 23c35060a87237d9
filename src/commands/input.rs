//! The input of a command: which logs, what is known of them, and the rows behind it, loaded only when somebody needs
//! them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::Names;
use crate::base::visible::{Shown as _, visible};
use crate::commands::lake_sync::{
    Known, Loaded, Scope, Tally, Want, bring_up_to_date, directory_of, root_id, slug, thread_pool,
};
use crate::facts::analysis_pool::AnalysisPool;
use crate::facts::body_facts::BodyFacts;
use crate::facts::rules::FormatRules;
use crate::facts::shape;
use crate::frames::lake::{Lake, Trouble};
use crate::frames::manifest::{Maker, StoredSource};
use crate::logs::assemble::assemble;
use crate::logs::corpus::{Corpus, Source, SourceRows};
use crate::logs::discover;
use crate::logs::discover::{Listing, LogFile, Root};
use crate::logs::endpoint::Endpoints;
use crate::logs::gather::gather;
use crate::logs::history::History;
use crate::logs::message::Guide;
use crate::logs::read;
use crate::logs::read::{Failure, Job};
use crate::logs::timeline::rows::FileTimeline;
use crate::logs::trace::{FileTrace, Millis, Place};
use crate::logs::value_rules::ValueRules;
use crate::logs::values::{CallValues, Values};
use crate::logs::vocabulary::Vocabulary;
use crate::mine::in_progress::{Holds, InProgress};
use crate::mine::overview::Overview;
use crate::mine::quality;
use crate::report::numbers;
use crate::report::paragraph::paragraph;
use crate::shell::arguments::{InputArgs, OutputArgs};
use crate::shell::context::Context;
use crate::shell::progress;
use crate::shell::window;

/// Files that an error names; a note is written for each of them where a report is.
const HINTS_MAX: usize = 10;

/// What a command works on.
pub struct Input {
    /// The files asked for, those on disk first, with what was counted in them.
    pub sources: Vec<Source>,
    /// The places looked at.
    pub roots: Vec<Root>,
    /// What was found there.
    pub listing: Listing,
    /// The time window.
    pub window: Range<Millis>,
    /// How the files were brought up to date.
    pub tally: Tally,
    /// Things to tell the user.
    pub notes: Vec<String>,
    /// Words of the logs.
    pub vocabulary: Vocabulary,
    /// Classes of endpoints.
    pub endpoints: Endpoints,
    /// How bodies are written in other ways.
    pub formats: FormatRules,
    /// What counts as a value.
    value_rules: ValueRules,
    tier: u8,
    /// The data files.
    pub data: Data,
    /// The workers.
    pub pool: rayon::ThreadPool,
    pub(super) lake: Option<Lake>,
    /// Names what makes rows and facts.
    maker: Maker,
    /// Names the data files in place of shipped ones.
    overrides: Id,
    /// Part of the names of the projects asked for.
    project: Option<String>,
    /// The stored form of `sources`.
    pub(super) selected: Vec<StoredSource>,
    corpus: Option<Corpus>,
    /// Facts about bodies, by name.
    bodies: Vec<BodyFacts>,
    /// Values that the lake does not hold, by number of the source, and what their symbols mean.
    fresh: (Names, BTreeMap<u32, Values>),
    /// Those of standard input.
    piped_values: (Names, Values),
    /// Standard input as a source.
    piped_source: Option<Source>,
    /// What came from standard input.
    piped: Option<(FileTrace, Vec<BodyFacts>)>,
    /// What it says for a timeline, if one is wanted.
    pub(super) piped_timeline: Option<FileTimeline>,
    /// Logs that are gone and left no timeline, once one was asked for.
    pub(super) without_timeline: IdSet<Id>,
    /// Subagents known from progress records only, once a report says what it holds of them.
    in_progress: Option<InProgress>,
    pub(super) progress: bool,
}

impl Input {
    /// Finds the logs that `args` ask for and brings what is known of them up to date; `tier` are the vocabularies in
    /// which the facts about bodies are wanted, one bit each, 0 for none.
    ///
    /// # Errors
    /// If no log can be found; the error lists the places looked at.
    pub fn read(
        args: &InputArgs,
        window: Range<Millis>,
        tier: u8,
        output: &OutputArgs,
        context: &mut Context<'_>,
    ) -> Result<Self> {
        Self::read_in_tiers(args, window, (tier, false), output, context)
    }

    /// [`Input::read`] for who will ask for [`Input::timeline`], too.
    ///
    /// # Errors
    /// See [`Input::read`].
    pub fn read_for_timeline(
        args: &InputArgs,
        window: Range<Millis>,
        tier: u8,
        output: &OutputArgs,
        context: &mut Context<'_>,
    ) -> Result<Self> {
        Self::read_in_tiers(args, window, (tier, true), output, context)
    }

    fn read_in_tiers(
        args: &InputArgs,
        window: Range<Millis>,
        (tier, timeline): (u8, bool),
        output: &OutputArgs,
        context: &mut Context<'_>,
    ) -> Result<Self> {
        let data = Data::new(args.rules_dir.as_deref())?;
        let roots = discover::roots(&args.input_dir, &context.env.places);
        let mut input = Self {
            sources: Vec::new(),
            listing: discover::list(&roots),
            roots,
            window,
            tally: Tally::default(),
            notes: Vec::new(),
            vocabulary: data.read("logs.toml", Vocabulary::parse)?,
            endpoints: data.read("endpoints.toml", Endpoints::parse)?,
            formats: data.read("formats.toml", FormatRules::parse)?,
            value_rules: data.read("projections.toml", ValueRules::parse)?,
            tier,
            overrides: data.overrides()?,
            maker: maker(&data)?,
            project: args.project.clone(),
            data,
            pool: thread_pool(args.threads)?,
            lake: None,
            selected: Vec::new(),
            corpus: None,
            bodies: Vec::new(),
            fresh: Default::default(),
            piped_values: Default::default(),
            piped_source: None,
            piped: None,
            piped_timeline: None,
            without_timeline: IdSet::default(),
            in_progress: None,
            progress: context.err_is_terminal && !output.quiet,
        };
        input.open_lake(args, context);
        input.refresh(false);
        if input.listing.stdin {
            input.read_pipe(&mut context.input, timeline)?;
        }
        if input.sources.is_empty() && !args.allow_empty {
            return Err(input.nothing_found(args));
        }
        Ok(input)
    }

    fn guide(&self) -> Guide<'_> {
        let Self { vocabulary, endpoints, value_rules: values, .. } = self;
        Guide { vocabulary, endpoints, values, classify: shape::classify, study: None }
    }

    fn read_pipe(&mut self, source: &mut dyn std::io::Read, timeline: bool) -> Result<()> {
        let studies = AnalysisPool::new(self.tier, self.formats.params(), std::iter::empty());
        let begin = || studies.begin();
        let guide = Guide { study: if self.tier == 0 { None } else { Some(&begin) }, ..self.guide() };
        let trace = if timeline {
            let (trace, rows) = self.read_twofold(source, guide)?;
            self.piped_timeline = Some(rows);
            trace
        } else {
            read::read_stream(source, guide).trace
        };
        let counters = trace.counters.clone();
        let source = Source { key: Id::NONE, path: Some("-".into()), bytes: 0, counters: counters.into() };
        self.sources.push(source.clone());
        self.piped_source = Some(source);
        self.piped = Some((trace, studies.finish()));
        Ok(())
    }

    fn open_lake(&mut self, args: &InputArgs, context: &Context<'_>) {
        let Some(dir) = args.lake.clone().or_else(|| context.env.lake_dir()).filter(|_| !args.no_lake) else { return };
        // Where there is nothing to keep, none is made.
        if self.listing.files.is_empty() && !dir.is_dir() {
            return;
        }
        match Lake::open(&dir) {
            Ok(lake) => {
                self.notes.extend(lake.note.clone());
                self.lake = Some(lake);
            }
            Err(why) => self.notes.push(format!("working without the lake: {why}")),
        }
    }

    /// Brings the logs and the lake up to date and takes over what is known then.
    fn refresh(&mut self, want_rows: bool) {
        let lake = self.lake.take();
        let is_shown = self.progress;
        let waiting = || tell_waiting(is_shown);
        let roots: Vec<Id> = self.roots.iter().map(|root| root_id(&root.path)).collect();
        let scope = Scope {
            listing: &self.listing,
            roots: &roots,
            guide: self.guide(),
            maker: self.maker,
            params: self.formats.params(),
            pool: &self.pool,
            since: self.window.start,
            progress: self.progress,
            waiting: &waiting,
        };
        let mut known = bring_up_to_date(&scope, lake, Want { rows: want_rows, tier: self.tier });
        self.lake = known.lake.take();
        self.note(std::mem::take(&mut known.notes));
        let told: HashSet<PathBuf> = self.listing.unreadable.iter().map(|(path, _)| path.clone()).collect();
        let news = std::mem::take(&mut known.unreadable).into_iter().filter(|(path, _)| !told.contains(path));
        self.listing.unreadable.extend(news);
        self.select(known);
    }

    /// Takes down which files a second reading lacks.
    pub(super) fn leave_out(&mut self, failures: Vec<Failure>) {
        self.note(failures.iter().map(missing));
        self.listing.unreadable.extend(failures);
    }

    /// Takes down things to tell, each once.
    pub(super) fn note(&mut self, words: impl IntoIterator<Item = String>) {
        let mut known: HashSet<String> = self.notes.iter().cloned().collect();
        self.notes.extend(words.into_iter().filter(|words| known.insert(words.clone())));
    }

    /// Picks the files of the project asked for.
    fn select(&mut self, known: Known) {
        let wanted = self.project.as_deref().map(slug);
        let directories = self.listing.files.iter().map(|file| (&file.path, slug(&directory_of(file, &self.listing))));
        let inside: HashSet<&PathBuf> = directories
            .filter(|(_, name)| wanted.as_ref().is_none_or(|wanted| name.contains(wanted.as_str())))
            .map(|(path, _)| path)
            .collect();
        let on_disk: Vec<_> = known.files.into_iter().filter(|file| inside.contains(&file.path)).collect();
        self.tally = Tally::of(&on_disk, known.pruned);
        // The name of a deleted project is known by its pseudonym only.
        let named = |stored: &StoredSource| {
            wanted.as_ref().is_none_or(|wanted| stored.directory == Id::pseudonym(wanted.as_bytes()))
        };
        let kept = known.kept.into_iter().filter(named);
        let on_disk = on_disk.into_iter().map(|file| (Some(file.path), file.stored));
        let all = on_disk.chain(kept.map(|stored| (None, stored)));
        (self.sources, self.selected) = all
            .map(|(path, stored)| {
                let counters = Arc::clone(&stored.counters);
                (Source { key: stored.key, path, bytes: stored.bytes, counters }, stored)
            })
            .unzip();
        self.sources.extend(self.piped_source.clone());
        self.note(quality::cut_short(&self.sources));
        if let Some(loaded) = known.loaded {
            self.take(loaded);
        }
    }

    fn take(&mut self, mut loaded: Loaded) {
        self.bodies = std::mem::take(&mut loaded.bodies);
        self.fresh = (std::mem::take(&mut loaded.value_names), std::mem::take(&mut loaded.values));
        self.corpus = Some(self.corpus_of(loaded));
    }

    fn corpus_of(&self, loaded: Loaded) -> Corpus {
        let mut rows = loaded.rows;
        let mut corpus = Corpus { names: loaded.names, files: Vec::new() };
        for (source, stored) in self.sources.iter().zip(&self.selected) {
            let mut rows = rows.remove(&stored.number).unwrap_or_default();
            // What was read in one go is folded already.
            if stored.readings > 1 {
                rows.fold(&corpus.names);
            }
            corpus.files.push(SourceRows { source: source.clone(), rows });
        }
        corpus
    }

    /// The rows of all files.
    pub fn corpus(&mut self) -> &Corpus {
        if self.corpus.is_none() {
            self.refresh(true);
        }
        let corpus = self.corpus.as_mut().expect("it was just loaded");
        if let Some((mut trace, bodies)) = self.piped.take() {
            self.piped_values = (std::mem::take(&mut trace.value_names), std::mem::take(&mut trace.values));
            self.bodies.extend(bodies);
            self.bodies.sort_by_key(|facts| facts.body);
            self.bodies.dedup_by_key(|facts| facts.body);
            let source = self.sources.last().cloned().unwrap_or_default();
            corpus.push(source, trace);
        }
        corpus
    }

    /// The values of every call of a history of this input.
    pub fn values(&mut self, history: &History) -> CallValues {
        self.corpus();
        let (mut names, mut known) = self.stored_values();
        let symbols = names.absorb(&self.fresh.0);
        for (number, values) in std::mem::take(&mut self.fresh.1) {
            known.entry(number).or_default().append(values, &symbols, 0);
        }
        let mut values: Vec<Values> =
            self.selected.iter().map(|stored| known.remove(&stored.number).unwrap_or_default()).collect();
        let symbols = names.absorb(&self.piped_values.0);
        let mut piped = Values::default();
        piped.append(std::mem::take(&mut self.piped_values.1), &symbols, 0);
        values.push(piped);
        gather(self.corpus.as_ref().expect("it was just loaded"), history, names, values)
    }

    /// The values in the lake, and what their symbols mean. What is damaged is made anew from the logs.
    fn stored_values(&mut self) -> (Names, BTreeMap<u32, Values>) {
        loop {
            let mut names = Names::default();
            let Some(lake) = &self.lake else { return (names, BTreeMap::new()) };
            let trouble = match self.pool.install(|| lake.load_values(&mut names)) {
                Ok(values) => return (names, values),
                Err(trouble) => trouble,
            };
            let mended = match &trouble {
                Trouble::Damaged(damage) => Some(lake.without(damage)).filter(|now| now.manifest() != lake.manifest()),
                Trouble::Overtaken | Trouble::Failed(_) => None,
            };
            self.note([match mended {
                Some(_) => {
                    format!("values in the lake were damaged ({trouble}) and are read anew; deleted logs lost theirs")
                }
                None => format!("working without the lake ({trouble}): deleted logs are missing"),
            }]);
            self.lake = mended;
            self.corpus = None;
            self.corpus();
        }
    }

    /// The facts about bodies, by name. Some bodies of deleted logs may have none.
    pub fn bodies(&mut self) -> Vec<BodyFacts> {
        self.corpus();
        std::mem::take(&mut self.bodies)
    }

    /// The project directory of each session, as a pseudonym; of several the first.
    pub fn projects(&mut self, history: &History) -> Vec<Id> {
        self.corpus();
        let mut known: IdMap<Id, Id> = IdMap::default();
        let files = self.corpus.iter().flat_map(|corpus| &corpus.files);
        for (file, stored) in files.zip(&self.selected) {
            for row in &file.rows.sessions {
                let directory = known.entry(row.session).or_insert(stored.directory);
                *directory = stored.directory.min(*directory);
            }
        }
        history.sessions.iter().map(|session| known.get(&session.id).copied().unwrap_or(session.project)).collect()
    }

    /// The names of project directories that are on disk, by pseudonym.
    pub fn project_names(&self) -> IdMap<Id, String> {
        let names: BTreeSet<String> = self.listing.files.iter().map(|file| directory_of(file, &self.listing)).collect();
        let mut known = IdMap::default();
        for name in names {
            known.entry(Id::pseudonym(slug(&name).as_bytes())).or_insert_with(|| visible(&name).into_owned());
        }
        known
    }

    /// What happened in the logs within the window, whatever copies they hold.
    pub fn history(&mut self) -> History {
        self.corpus();
        let corpus = self.corpus.as_ref().expect("it was just loaded");
        let mut history = self.pool.install(|| assemble(corpus));
        history.find_empty_answers(&self.vocabulary, &corpus.names);
        history.within(&self.window)
    }

    /// Notes what the report holds of subagents that are known from progress records only.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn report_holds(&mut self, holds: Holds) -> Result<()> {
        let subagents = self.remember("in progress only", |input| {
            let chains = input.history().chains;
            Ok(chains.iter().filter(|chain| chain.place == Place::Progress).count() as u64)
        })?;
        self.in_progress = Some(InProgress { subagents, holds });
        Ok(())
    }

    /// The same of a report about one session, which has so many of them.
    pub fn report_holds_of(&mut self, subagents: u64, holds: Holds) {
        self.in_progress = Some(InProgress { subagents, holds });
    }

    /// Gives tools that were renamed their present names.
    pub fn rename_aliases(&self, history: &mut History, names: &mut Names) {
        for (old, new) in &self.vocabulary.tool_aliases {
            if let Some(old) = names.find(old) {
                history.rename_tool(old, names.intern(new));
            }
        }
    }

    /// What `make` says about this input: from the lake if it was asked before and nothing changed, else made and
    /// remembered. `about` names the question and everything besides the input that its answer depends on.
    pub fn remember<T: Serialize + DeserializeOwned>(
        &mut self,
        about: &str,
        make: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let key = self.fingerprint(about);
        let known = self.lake.as_ref().zip(key).and_then(|(lake, key)| lake.recall(key));
        if let Some(answer) = known.and_then(|text| serde_json::from_slice(&text).ok()) {
            return Ok(answer);
        }
        let answer = make(self)?;
        if let (Some(lake), Some(key), Ok(text)) = (&self.lake, self.fingerprint(about), serde_json::to_vec(&answer)) {
            lake.memorise(key, &text);
        }
        Ok(answer)
    }

    /// Names this input and a question about it; none when the input has no lasting identity.
    fn fingerprint(&self, about: &str) -> Option<Id> {
        // What could not be read today may be readable tomorrow.
        if self.listing.stdin || self.lake.is_none() || !self.listing.unreadable.is_empty() {
            return None;
        }
        let Self { tier, overrides, window, maker, .. } = self;
        let mut text = format!("{overrides} {maker:?} {tier} {about} {window:?}");
        for stored in &self.selected {
            let StoredSource { key, number, bytes, readings, content, .. } = stored;
            text += &format!(" {key} {number} {bytes} {readings} {content}");
        }
        Some(answer_name(env!("DEVBOY_BUILD"), &text))
    }

    /// The logs on disk, each as a whole, in the order of `sources`: for whoever has to read text again.
    pub fn jobs(&self) -> Vec<Job<'_>> {
        let listed: BTreeMap<&Path, &LogFile> =
            self.listing.files.iter().map(|file| (file.path.as_path(), file)).collect();
        let logs = self.sources.iter().filter(|source| !source.is_sidecar());
        let files = logs.filter_map(|source| listed.get(source.path.as_deref()?));
        files
            .map(|file| Job { path: &file.path, packing: file.packing, from: 0, to: file.bytes, named: false })
            .collect()
    }

    /// Files that are deleted from disk and live on in the lake.
    pub fn kept(&self) -> u64 {
        self.sources.iter().filter(|source| source.path.is_none()).count() as u64
    }

    /// Where the lake is, if one is used.
    pub fn lake_dir(&self) -> Option<String> {
        self.lake.as_ref().map(|lake| lake.dir().shown())
    }

    /// Fields of every JSON report about the input.
    pub fn json(&self) -> Value {
        let tally = &self.tally;
        json!({
            "roots": self.roots.iter().enumerate().map(|(index, root)| json!({
                "path": root.path.shown(),
                "origin": root.origin,
                "found": !self.listing.missing.contains(&index),
            })).collect::<Vec<_>>(),
            "files": tally.files,
            "bytes": tally.bytes,
            "new": tally.new,
            "grown": tally.grown,
            "rewritten": tally.rewritten,
            "studied": tally.studied,
            "unchanged": tally.unchanged,
            "kept_after_deletion": self.kept(),
            "pruned": tally.pruned,
            "bytes_read": tally.bytes_read,
            "sidecar_files": self.sources.iter().filter(|source| source.is_sidecar()).count(),
            "unreadable": self.listing.unreadable.iter().map(|(path, why)| json!({
                "path": path.shown(), "reason": why,
            })).collect::<Vec<_>>(),
            "lake": self.lake_dir(),
            "subagents_in_progress_only": self.in_progress.as_ref().map(InProgress::json),
            "notes": self.notes,
        })
    }

    /// The window as text for JSON.
    pub fn window_json(&self) -> Value {
        window::json(&self.window)
    }

    /// Tells the user what is worth knowing about the input.
    pub fn tell(&self, output: &OutputArgs, context: &mut Context<'_>) -> Result<()> {
        if output.quiet {
            return Ok(());
        }
        for note in self.notes.iter().chain(&self.in_progress.and_then(|known| known.sentence())) {
            write!(context.err, "{}", paragraph("# note: ", note, context.width))?;
        }
        for (path, why) in &self.listing.unreadable {
            writeln!(context.err, "# note: {} could not be read: {why}", path.shown())?;
        }
        if output.verbose {
            for source in &self.sources {
                let Some(path) = &source.path else { continue };
                let records = numbers::counted(source.counters.records, "record");
                writeln!(context.err, "# {}: {}, {records}", path.shown(), numbers::bytes(source.bytes))?;
            }
        }
        Ok(())
    }

    /// Whether there is a session log among the files.
    ///
    /// # Errors
    /// If there is none, unless `args` allow that.
    pub fn expect_records(&self, args: &InputArgs) -> Result<()> {
        if args.allow_empty || self.sources.iter().any(|source| source.counters.known_records > 0) {
            return Ok(());
        }
        let files = numbers::counted(self.sources.len() as u64, "file");
        let unreadable = self.listing.unreadable.iter();
        let mut hints: Vec<String> = unreadable
            .map(|(path, why)| format!("{} could not be read: {why}", path.shown()))
            .take(HINTS_MAX)
            .collect();
        hints.push("`devboy doctor` says what they hold instead; --allow-empty makes this no error".to_owned());
        Err(Error::failed(format!("{files} read, but no session record in them")).hint(hints.join("\n")))
    }

    /// Whether there is a tool call in the window.
    ///
    /// # Errors
    /// If there is none, unless `args` allow that.
    pub fn expect_calls(&mut self, args: &InputArgs) -> Result<()> {
        self.expect_records(args)?;
        if args.allow_empty || self.overview()?.calls > 0 {
            return Ok(());
        }
        Err(self.nothing_in_window("tool calls"))
    }

    /// What happened within the window, in numbers.
    ///
    /// # Errors
    /// None of its own.
    pub fn overview(&mut self) -> Result<Overview> {
        self.remember("overview", |input| Ok(Overview::of(&input.history())))
    }

    /// The error of a window without what is wanted: which one was asked for, and which one is there.
    pub fn nothing_in_window(&mut self, wanted: &str) -> Error {
        if self.window == window::ALL {
            return Error::failed(format!("no {wanted} in these logs"))
                .hint("`devboy ingest` says what they hold; --allow-empty makes this no error");
        }
        let asked = std::mem::replace(&mut self.window, window::ALL);
        let span = self.overview().ok().and_then(|whole| whole.span_ms);
        self.window = asked;
        let mut hints = vec![window::there("the logs", span)];
        if self.tally.pruned > 0 {
            hints.push(format!("{} older than the window", numbers::counted(self.tally.pruned, "file")));
        }
        hints.push(window::WIDEN.to_owned());
        Error::failed(format!("no {wanted} in the window {}", window::words(&self.window))).hint(hints.join("\n"))
    }

    /// Nothing to work on: say where was looked.
    fn nothing_found(&self, args: &InputArgs) -> Error {
        let looked = self.roots.iter().enumerate().map(|(index, root)| {
            let unreadable = self.listing.unreadable.iter().find(|(path, _)| path.starts_with(&root.path));
            let state = match unreadable {
                Some((_, why)) => why.as_str(),
                None if self.listing.missing.contains(&index) => "does not exist",
                None => "holds no .jsonl, .jsonl.gz or .jsonl.zst file",
            };
            format!("looked at {} ({}): {state}", root.path.shown(), root.origin)
        });
        let mut hints: Vec<String> = looked.collect();
        if let Some(project) = args.project.as_deref().filter(|_| !self.listing.files.is_empty()) {
            let files = numbers::counted(self.listing.files.len() as u64, "file");
            hints = vec![format!("{files} are there, but none in a project named like \"{project}\"")];
            let names: BTreeSet<String> =
                self.listing.files.iter().map(|file| directory_of(file, &self.listing)).collect();
            hints.push(format!("projects: {}", names.into_iter().take(10).collect::<Vec<_>>().join(", ")));
        } else if self.tally.pruned > 0 {
            let older = numbers::counted(self.tally.pruned, "file");
            let newest = self.listing.files.iter().map(|file| file.modified_ns / 1_000_000).max();
            let newest = newest.map(|ms| format!(", last written to on {}", numbers::date(ms))).unwrap_or_default();
            hints = vec![format!("{older} older than the window{newest}"), window::WIDEN.to_owned()];
            return Error::failed(format!("nothing in the window {}", window::words(&self.window)))
                .hint(hints.join("\n"));
        } else if self.roots.is_empty() {
            hints.push("neither HOME nor CLAUDE_CONFIG_DIR is set: name the folder with --input-dir".to_owned());
        } else {
            hints.push("name the folder of your logs with --input-dir; `devboy doctor` says more".to_owned());
        }
        Error::failed("no Claude Code logs found").hint(hints.join("\n"))
    }
}

/// Says that a report lacks a file.
pub(crate) fn missing((path, why): &Failure) -> String {
    format!("{} is missing from this report: {why}", path.shown())
}

/// What makes rows and facts: the data files that decide about them.
fn maker(data: &Data) -> Result<Maker> {
    let rows = ["logs.toml", "endpoints.toml", "projections.toml"].map(|name| data.text(name));
    let rows: Vec<_> = rows.into_iter().collect::<Result<_>>()?;
    Ok(Maker::of(&rows.concat(), &data.text("formats.toml")?))
}

/// Says that another run keeps this one from writing to the lake.
pub(super) fn tell_waiting(is_shown: bool) {
    progress::announce("devboy: another run is writing to the lake; waiting for it", is_shown);
}

/// The name under which a build of devboy remembers its answer to a question.
pub fn answer_name(build: &str, question: &str) -> Id {
    Id::pseudonym(format!("{build} {question}").as_bytes())
}
