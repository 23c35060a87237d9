//! What a question works on: which logs, what is known of them, and the rows behind it, loaded only when somebody needs
//! them.

pub mod answers;
mod rounds;
pub mod timeline;
mod told;

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use crate::base::data::{Data, typed};
use crate::base::error::{Error, Result};
use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::Names;
use crate::base::unpack::CountingReader;
use crate::base::{allocator, progress};
use crate::facts::analysis_pool::AnalysisPool;
use crate::facts::body_facts::{BodyFacts, WantedFacts, keep_wanted};
use crate::facts::encode::FormatRules;
use crate::facts::shape;
use crate::frames::few_rows::ROWS_AT_ONCE;
use crate::frames::input::timeline::{TextWords, TimelineDetail};
use crate::frames::lake::Lake;
use crate::frames::manifest::{Maker, StoredSource};
use crate::frames::packed::pack;
use crate::frames::sync::{
    Loaded, RootNames, SyncScope, SyncTally, UpToDate, Want, bring_up_to_date, root_names, slug, thread_pool,
    with_known,
};
use crate::logs::assemble::{Kept, assemble, files_of_input, standings_of};
use crate::logs::copies::FileStanding;
use crate::logs::corpus::{Corpus, RowSource, SourceRows};
use crate::logs::discover::{LogFile, LogListing, Root};
use crate::logs::endpoint::Endpoints;
use crate::logs::history::History;
use crate::logs::message::ExtractionGuide;
use crate::logs::overview::InProgress;
use crate::logs::read::{Failure, Job, READING};
use crate::logs::timeline::TimelineBeside;
use crate::logs::timeline::rows::FileTimeline;
use crate::logs::timeline::rules::TimelineRules;
use crate::logs::trace::{FileRows, FileTrace, Millis, SessionRow};
use crate::logs::value_rules::ValueRules;
use crate::logs::values::{CallBlocks, ValueRows};
use crate::logs::vocabulary::Vocabulary;
use crate::logs::{discover, read, window};

use answers::FileValues;
use rounds::Seen;
pub use told::missing;

/// Which logs a question is about, and how they are read.
pub struct InputRequest<'a> {
    /// The places to look at.
    pub roots: Vec<Root>,
    pub data: Data,
    pub window: Range<Millis>,
    /// Part of the names of the projects asked for.
    pub project: Option<String>,
    /// Worker threads; all cores unless told otherwise.
    pub threads: Option<u16>,
    /// Where the lake is, if one is to be used.
    pub lake: Option<PathBuf>,
    /// The vocabularies in which the facts about bodies are wanted, one bit each, 0 for none.
    pub tier: u8,
    /// In what detail [`Input::timeline`] will be asked for, if it will: standard input can be read only once, and other logs
    /// need not be read twice.
    pub timeline: Option<TimelineDetail>,
    /// Whether progress may be shown.
    pub progress: bool,
    /// Whether finding nothing is no error.
    pub allow_empty: bool,
    /// Standard input, for `-`.
    pub stdin: &'a mut dyn Read,
}

/// What a reading of logs takes down besides what every question needs. What it leaves out is read again for whoever asks for
/// it all the same.
#[derive(Clone, Copy, Default)]
pub(super) struct TakenDown {
    /// What results list and calls are given: asked for where calls are looked at, and hardly ever beside a timeline.
    pub values: bool,
    pub words: bool,
}

/// What is counted of the rows of a file in a window.
pub type RowCount = fn(&SourceRows, Range<Millis>) -> [u64; 3];
/// What adds files of an input to some sums: all of those that may repeat each other at once, with what their symbols mean.
pub type SeeFiles<'s, S> = &'s (dyn Fn(&mut S, &[&SourceRows], &Names) + Sync);
/// What it came to in a window.
type CountedRows = (Range<Millis>, [u64; 3]);

/// What is left of the rows of a corpus, more and more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HeldRows {
    Sessions,
    /// All but messages.
    Calls,
    All,
}

impl HeldRows {
    /// Drops the others.
    fn cut(self, rows: &mut FileRows) {
        match self {
            Self::Sessions => *rows = FileRows { sessions: std::mem::take(&mut rows.sessions), ..FileRows::default() },
            Self::Calls => rows.messages = Vec::new(),
            Self::All => {}
        }
    }
}

/// What a question works on.
pub struct Input {
    /// The files asked for, those on disk first, with what was counted in them.
    pub sources: Vec<RowSource>,
    /// The places looked at.
    pub roots: Vec<Root>,
    pub listing: LogListing,
    pub window: Range<Millis>,
    /// How the files were brought up to date.
    pub tally: SyncTally,
    /// Things to tell the user.
    pub notes: Vec<String>,
    /// Words of the logs.
    pub vocabulary: Vocabulary,
    pub endpoints: Endpoints,
    /// How bodies are written in other ways.
    pub formats: FormatRules,
    value_rules: ValueRules,
    tier: u8,
    pub data: Data,
    pub pool: rayon::ThreadPool,
    pub(super) lake: Option<Lake>,
    /// Whether it holds all rows that are known.
    is_stored: bool,
    /// Names what makes rows and facts.
    maker: Maker,
    /// What is taken down of logs as they are read, besides what every question needs.
    pub(super) taken_down: TakenDown,
    /// Numbers and words of timelines, if logs are read for these as well.
    twofold: Option<TimelineRules>,
    /// What they said for a timeline, packed, by number of the source, where the lake does not have it.
    pub(super) fresh_timelines: BTreeMap<u32, Vec<u8>>,
    /// Names the data files in place of shipped ones.
    overrides: Id,
    /// Part of the names of the projects asked for.
    pub project: Option<String>,
    /// The stored form of `sources`.
    pub(super) selected: Vec<StoredSource>,
    corpus: Option<Corpus>,
    /// Which of its rows are still there.
    held_rows: HeldRows,
    /// Which of them stay when a history is made of them, if the lake can give the others again.
    rows_to_keep: HeldRows,
    /// Whether [`Input::values`] will be asked for.
    finds_values: bool,
    /// Whether these are to have what only the published planner asks about.
    finds_taken: bool,
    /// Whether nothing is asked of single messages and of details of calls.
    sums_messages: bool,
    /// How many rows of the lake are read at once, as far as nobody keeps them.
    pub rows_at_once: u64,
    /// Where the values of the calls stand of the history of all logs that was made last.
    blocks: Option<CallBlocks>,
    /// What is counted of all rows before a history is made of them, and what it came to in a window.
    row_count: (Option<RowCount>, Option<CountedRows>),
    /// The history of a window that was asked for last, until somebody takes it.
    pub(super) held: Option<(Range<Millis>, History)>,
    /// Facts about bodies until somebody takes them; none as long as they are left to the lake.
    bodies: Option<Vec<BodyFacts>>,
    /// Values that the lake does not hold, by number of the source, and what their symbols mean; until they are put together.
    fresh: (Names, BTreeMap<u32, ValueRows>),
    /// The values of all files, once somebody asked for them.
    file_values: Option<FileValues>,
    /// Those of standard input.
    piped_values: (Names, ValueRows),
    /// Standard input as a source.
    piped_source: Option<RowSource>,
    /// What came from standard input.
    piped: Option<FileTrace>,
    /// The facts about its bodies.
    piped_bodies: Vec<BodyFacts>,
    /// What it says for a timeline, if one is wanted.
    pub(super) piped_timeline: Option<FileTimeline>,
    /// Logs that are gone and left no timeline, or none of their end, once one was asked for.
    pub without_timeline: IdSet<Id>,
    /// Sessions, and from when to when they are, once a report says what it holds.
    pub(super) covers: Option<(u64, Option<(Millis, Millis)>)>,
    /// Subagents known from progress records only, once a report says what it holds of them.
    pub in_progress: Option<InProgress>,
    pub(super) progress: bool,
    /// Logs that could not be read for the names in them, where one is missing, and why.
    pub(super) closed: Mutex<BTreeMap<PathBuf, String>>,
    /// Texts behind pseudonyms, as far as they were looked for and found.
    pub(super) named: Mutex<IdMap<Id, String>>,
}

impl Input {
    /// Finds the logs asked for and brings what is known of them up to date. An error if no log can be found (the error
    /// lists the places looked at), or a project of standard input is asked for.
    pub fn open(asked: InputRequest<'_>) -> Result<Self> {
        let InputRequest { roots, data, window, project, threads, lake, tier, timeline, progress, allow_empty, stdin } =
            asked;
        if project.is_some() && roots.iter().any(|root| discover::is_stdin(&root.path)) {
            let message = "--project picks logs by their directory, and standard input has none";
            return Err(Error::usage(message).hint("leave --project out, or name a directory with --input-dir"));
        }
        let pool = thread_pool(threads)?;
        let known = || lake.as_deref().filter(|dir| dir.is_dir()).map(Lake::open);
        let (listing, known) = pool.install(|| rayon::join(|| discover::list(&roots), known));
        let mut input = Self {
            sources: Vec::new(),
            listing,
            roots,
            window,
            tally: SyncTally::default(),
            notes: data.unread().iter().map(|name| format!("{name}: no data file is called so")).collect(),
            vocabulary: data.read("logs.toml", typed)?,
            endpoints: data.read("endpoints.toml", Endpoints::parse)?,
            formats: data.read("formats.toml", FormatRules::parse)?,
            value_rules: data.read("projections.toml", typed)?,
            tier,
            overrides: data.overrides()?,
            maker: maker(&data)?,
            twofold: timeline.filter(|detail| !detail.tokens).map(|_| timeline::rules(&data)).transpose()?,
            taken_down: TakenDown::default(),
            fresh_timelines: BTreeMap::new(),
            project,
            data,
            pool,
            lake: None,
            is_stored: false,
            selected: Vec::new(),
            corpus: None,
            held_rows: HeldRows::All,
            rows_to_keep: HeldRows::Sessions,
            finds_values: false,
            finds_taken: false,
            sums_messages: false,
            rows_at_once: ROWS_AT_ONCE,
            blocks: None,
            row_count: (None, None),
            held: None,
            bodies: None,
            fresh: Default::default(),
            file_values: None,
            piped_values: Default::default(),
            piped_source: None,
            piped: None,
            piped_bodies: Vec::new(),
            piped_timeline: None,
            without_timeline: IdSet::default(),
            covers: None,
            in_progress: None,
            progress,
            closed: Mutex::default(),
            named: Mutex::default(),
        };
        input.take_lake(lake, known);
        // What the lake keeps answers any question, and standard input goes by only once.
        let all = input.lake.is_some() || input.listing.stdin;
        // A replay of bodies asks for no values, and they take a seventh of its time.
        let of_calls = input.twofold.is_none() && tier == 0;
        input.taken_down = TakenDown {
            values: all || of_calls || timeline.is_some_and(|detail| detail.values),
            words: all || timeline.is_some_and(|detail| detail.words > TextWords::None),
        };
        input.tally = input.refresh(false, None);
        if input.listing.stdin {
            input.read_pipe(stdin, timeline.is_some())?;
        }
        if input.sources.is_empty() && !allow_empty {
            return Err(input.nothing_found());
        }
        Ok(input)
    }

    fn guide(&self) -> ExtractionGuide<'_> {
        let Self { vocabulary, endpoints, value_rules: values, .. } = self;
        let TakenDown { values: with_values, words: with_words } = self.taken_down;
        let timeline = self.twofold.as_ref().map(|rules| TimelineBeside { rules, with_words, pack });
        ExtractionGuide { vocabulary, endpoints, values, with_values, classify: shape::classify, study: None, timeline }
    }

    fn read_pipe(&mut self, source: &mut dyn Read, timeline: bool) -> Result<()> {
        let bytes = Rc::new(Cell::new(0));
        let source = &mut CountingReader { source, bytes: bytes.clone() };
        let analysis = AnalysisPool::new(self.tier, self.formats.params(), std::iter::empty());
        let begin = || analysis.begin();
        let guide = ExtractionGuide { study: if self.tier == 0 { None } else { Some(&begin) }, ..self.guide() };
        let trace = if timeline {
            let reading = self.read_twofold(source, guide)?;
            self.piped_timeline = reading.timeline;
            reading.trace
        } else {
            read::read_stream(source, guide).trace
        };
        let (bytes, counters) = (bytes.get(), trace.counters.clone());
        self.tally.bytes += bytes;
        self.tally.bytes_read += bytes;
        let source = RowSource { key: Id::NONE, path: Some("-".into()), bytes, counters: counters.into() };
        self.sources.push(source.clone());
        self.piped_source = Some(source);
        (self.piped, self.piped_bodies) = (Some(trace), analysis.finish());
        Ok(())
    }

    /// Takes the lake that was found, or makes one; none where there is nothing to keep.
    fn take_lake(&mut self, dir: Option<PathBuf>, found: Option<std::result::Result<Lake, String>>) {
        let anew = || dir.filter(|_| !self.listing.files.is_empty()).map(|dir| Lake::open(&dir));
        match found.or_else(anew) {
            Some(Ok(lake)) => {
                self.notes.extend(lake.note.clone());
                self.lake = Some(lake);
            }
            Some(Err(why)) => self.notes.push(format!("working without the lake: {why}")),
            None => {}
        }
    }

    /// Brings the logs and the lake up to date and takes over what is known then; tells what had to be done for it.
    fn refresh(&mut self, rows: bool, bodies: Option<&dyn WantedFacts>) -> SyncTally {
        let lake = self.lake.take();
        let is_shown = self.progress;
        let waiting = || tell_waiting(is_shown);
        let maker = self.twofold.as_ref().and_then(|_| self.timeline_maker(false).ok());
        let maker_of = maker.map(|maker| move |log: &Path| timeline::maker_of(maker, log));
        let roots = self.roots.iter().zip(&self.listing.roots);
        let roots: Vec<RootNames> = roots.map(|(root, place)| root_names(&root.path, place)).collect();
        let scope = SyncScope {
            listing: &self.listing,
            roots: &roots,
            guide: self.guide(),
            maker: self.maker,
            params: self.formats.params(),
            pool: &self.pool,
            timeline_maker_of: maker_of.as_ref().map(|maker_of| maker_of as _),
            progress: self.progress,
            waiting: &waiting,
        };
        let mut known =
            bring_up_to_date(&scope, lake, Want { rows, bodies, only_quoted: !self.listing.stdin, tier: self.tier });
        (self.lake, self.is_stored) = (known.lake.take(), known.is_stored);
        self.note(std::mem::take(&mut known.notes));
        self.leave_out(std::mem::take(&mut known.unreadable));
        self.select(known)
    }

    /// Takes down which files a second reading lacks.
    pub fn leave_out(&mut self, failures: Vec<Failure>) {
        let known: HashSet<PathBuf> = self.listing.unreadable.iter().map(|(path, _)| path.clone()).collect();
        self.listing.unreadable.extend(failures.into_iter().filter(|(path, _)| !known.contains(path)));
    }

    /// Takes down things to tell, each once.
    pub(super) fn note(&mut self, words: impl IntoIterator<Item = String>) {
        let mut known: HashSet<String> = self.notes.iter().cloned().collect();
        self.notes.extend(words.into_iter().filter(|words| known.insert(words.clone())));
    }

    /// Picks the files of the project asked for.
    fn select(&mut self, known: UpToDate) -> SyncTally {
        let wanted = self.project.as_deref().map(slug);
        let projects = Projects::named(wanted.as_deref(), &self.listing.files);
        let (mut on_disk, mut kept) = (known.files, known.kept);
        if let Some(Projects { files, directories }) = &projects {
            on_disk.retain(|file| files.contains(file.path.as_path()));
            kept.retain(|stored| directories.contains(&stored.directory));
        }
        let tally = SyncTally::of(&on_disk);
        let on_disk = on_disk.into_iter().map(|file| (Some(file.path), file.stored));
        let all = on_disk.chain(kept.into_iter().map(|stored| (None, stored)));
        (self.sources, self.selected) = all
            .map(|(path, stored)| {
                let counters = Arc::clone(&stored.counters);
                (RowSource { key: stored.key, path, bytes: stored.bytes, counters }, stored)
            })
            .unzip();
        self.sources.extend(self.piped_source.clone());
        self.note(self.sources.iter().filter_map(RowSource::cut_short).collect::<Vec<_>>());
        if let Some(mut loaded) = known.loaded {
            self.fresh_timelines.append(&mut loaded.timelines);
            self.fresh = (std::mem::take(&mut loaded.value_names), std::mem::take(&mut loaded.values));
            self.file_values = None;
            self.corpus = (!loaded.is_in_lake).then(|| self.corpus_of(loaded));
            self.held_rows = HeldRows::All;
        }
        self.bodies = known.bodies.or(self.bodies.take());
        tally
    }

    fn corpus_of(&self, loaded: Loaded) -> Corpus {
        let mut rows = loaded.rows;
        let mut corpus = Corpus::of(loaded.names);
        for (source, stored) in self.sources.iter().zip(&self.selected) {
            let mut rows = rows.remove(&stored.number).unwrap_or_default();
            stored.fold(&mut rows, &corpus.names);
            corpus.files.push(SourceRows { source: source.clone(), rows });
        }
        corpus
    }

    /// The rows of all files.
    pub fn corpus(&mut self) -> &Corpus {
        self.corpus_with(HeldRows::All)
    }

    /// The same for whoever asks nothing about messages.
    pub fn calls(&mut self) -> &Corpus {
        self.corpus_with(HeldRows::Calls)
    }

    /// Says that [`Input::calls`] will be asked for behind a history: reading rows again takes its time.
    pub fn keep_calls(&mut self) {
        self.rows_to_keep = HeldRows::Calls;
    }

    /// The same of [`Input::values`], for which rows are needed as long as they are there.
    pub fn find_values(&mut self) {
        self.finds_values = true;
    }

    /// Says that of values [`crate::logs::values::CallValues::taken`] will be asked for: else the lake does not give those.
    pub fn find_taken(&mut self) {
        self.finds_taken = true;
    }

    /// Says that nothing will be asked of the messages of a history but what they come to, and nothing of the details of calls:
    /// both together may be more than half of it.
    pub fn sum_messages(&mut self) {
        self.sums_messages = true;
    }

    /// Which log owns what several of them say, by the pseudonym of the file.
    pub(super) fn standings(&mut self) -> IdMap<Id, FileStanding> {
        let is_known = self.corpus.as_ref().is_some_and(Corpus::knows_standings);
        self.corpus_with(if is_known { HeldRows::Sessions } else { HeldRows::All });
        let corpus = self.corpus.as_ref().expect("it was just loaded");
        self.pool.install(|| standings_of(corpus))
    }

    fn corpus_with(&mut self, wanted: HeldRows) -> &mut Corpus {
        if self.corpus.is_none() || self.held_rows < wanted {
            // Symbols of rows that are read again may mean something else.
            (self.held, self.blocks, self.row_count.1) = (None, None, None);
            self.refresh(true, None);
        }
        let corpus = self.corpus.as_mut().expect("it was just loaded");
        if let Some(mut trace) = self.piped.take() {
            self.piped_values = (std::mem::take(&mut trace.value_names), std::mem::take(&mut trace.values));
            let source = self.sources.last().cloned().unwrap_or_default();
            corpus.push(source, trace);
        }
        corpus
    }

    /// Says that [`Input::counted`] will be asked for behind a history.
    pub fn count(&mut self, count: RowCount) {
        self.row_count.0 = Some(count);
    }

    /// What the rows of the window come to.
    pub fn counted(&mut self, count: RowCount) -> [u64; 3] {
        let window = self.window.clone();
        match std::mem::take(&mut self.row_count).1 {
            Some((of, counted)) if of == window => counted,
            _ => {
                let mut seen = Seen::by(Some(count), &window);
                self.calls();
                let corpus = self.corpus.as_ref().expect("it was just loaded");
                let files = self.pool.install(|| files_of_input(corpus).collect::<Vec<_>>());
                seen.add(&files, &corpus.names, &|(), _, _| ());
                seen.counts
            }
        }
    }

    /// Whether the lake holds what the logs on disk say.
    pub fn is_kept(&self) -> bool {
        self.listing.files.is_empty() || self.lake.is_some() && self.is_stored
    }

    /// Whether the lake can give rows again.
    pub(super) fn keeps_rows(&self) -> bool {
        self.lake.is_some() && self.is_stored && !self.listing.stdin
    }

    /// Drops all rows but the sessions if the lake can give them again: what is made next takes as much room.
    pub fn let_go_of_rows(&mut self) {
        if self.keeps_rows() {
            self.let_go_of_calls();
        }
    }

    /// The same also if the logs would have to be read again for the rest.
    pub fn let_go_of_calls(&mut self) {
        let Some(corpus) = self.corpus.as_mut().filter(|_| !self.listing.stdin) else { return };
        corpus.files.iter_mut().for_each(|file| HeldRows::Sessions.cut(&mut file.rows));
        self.held_rows = HeldRows::Sessions;
        allocator::give_back_small_blocks();
    }

    /// What is wanted of the facts about bodies, each once. Some bodies of deleted logs may have none.
    pub fn bodies(&mut self, wanted: &dyn WantedFacts) -> Vec<BodyFacts> {
        let mut piped = std::mem::take(&mut self.piped_bodies);
        piped.iter().for_each(|facts| wanted.see(facts));
        if let Some(held) = &mut self.bodies {
            self.pool.install(|| {
                held.par_iter().for_each(|facts| wanted.see(facts));
                keep_wanted(held, wanted);
            });
        } else {
            self.refresh(false, Some(wanted));
        }
        self.pool.install(|| keep_wanted(&mut piped, wanted));
        with_known(piped, self.bodies.take().unwrap_or_default())
    }

    /// The first log on disk whose rows name each of these sessions and directories.
    pub fn logs_naming(&self, ids: &IdSet<Id>) -> Vec<(&LogFile, IdSet<Id>)> {
        if ids.is_empty() {
            return Vec::new();
        }
        let mut wanted = ids.clone();
        let mut naming: HashMap<&Path, IdSet<Id>> = HashMap::new();
        for (path, rows) in self.sessions_of_logs() {
            for id in rows.iter().flat_map(|row| [row.session, row.project]) {
                if wanted.remove(&id) {
                    naming.entry(path).or_default().insert(id);
                }
            }
        }
        let logs = self.listing.files.iter();
        logs.filter_map(|file| Some((file, naming.remove(file.path.as_path())?))).collect()
    }

    /// What each log on disk says about its sessions. While rows are left to the lake, it is asked for these alone.
    fn sessions_of_logs(&self) -> Vec<(&Path, Vec<SessionRow>)> {
        if let Some(corpus) = &self.corpus {
            let logs = corpus.files.iter().map(|file| (file.source.path.as_deref(), file.rows.sessions.clone()));
            return logs.filter_map(|(path, rows)| Some((path?, rows))).collect();
        }
        let load = |lake: &Lake| lake.load(&["sessions"], &mut Names::default(), &|_| true).ok();
        let stored = self.lake.as_ref().and_then(|lake| self.pool.install(|| load(lake)));
        let mut stored: BTreeMap<u32, FileRows> = stored.into_iter().flatten().collect();
        let logs = self.sources.iter().zip(&self.selected);
        logs.filter_map(|(source, known)| Some((source.path.as_deref()?, stored.remove(&known.number)?.sessions)))
            .collect()
    }

    /// What happened in the logs within the window, whatever copies they hold; tools that were renamed have their present names.
    pub fn history(&mut self) -> History {
        if let Some((window, history)) = self.held.take() {
            if window == self.window {
                return history;
            }
            if window == window::ALL && !self.sums_messages {
                return history.within(&self.window);
            }
        }
        self.history_seeing(&|(), _, _| ()).0
    }

    /// The same, made anew, with what `see` makes of all rows on the way: they are not read or held for it.
    pub fn history_seeing<S: Default + Send>(&mut self, see: SeeFiles<'_, S>) -> (History, S) {
        // In a window values are looked for among rows.
        let finds_at_once = self.finds_values && self.window == window::ALL;
        let needed = if self.finds_values && !finds_at_once { HeldRows::Calls } else { HeldRows::Sessions };
        let held = needed.max(self.rows_to_keep);
        let kept = Kept {
            blocks: finds_at_once && (held < HeldRows::Calls || !self.keeps_rows()),
            // In a window it takes them to tell what lies in it.
            sums_messages: self.sums_messages && self.window == window::ALL,
        };
        let (mut history, blocks, sums) = match self.few_at_a_time(held, kept, see) {
            Some(made) => made,
            None => self.all_at_once(held, kept, see),
        };
        self.blocks = blocks;
        let corpus = self.corpus.as_mut().expect("it was just loaded");
        history.find_empty_answers(&self.vocabulary, &corpus.names);
        for (old, new) in &self.vocabulary.tool_aliases {
            if let Some(old) = corpus.names.find(old) {
                history.rename_tool(old, corpus.names.intern(new));
            }
        }
        let mut history = history.within(&self.window);
        if self.sums_messages {
            history.sum_messages();
            history.details = Arc::default();
        }
        (history, sums)
    }

    /// The history of all rows, which are loaded if they are not there.
    fn all_at_once<S: Default + Send>(
        &mut self,
        held: HeldRows,
        kept: Kept,
        see: SeeFiles<'_, S>,
    ) -> (History, Option<CallBlocks>, S) {
        self.corpus();
        let held = if self.keeps_rows() { held } else { HeldRows::All };
        let corpus = self.corpus.as_mut().expect("it was just loaded");
        let count = self.row_count.0.take();
        let mut seen = Seen::by(count, &self.window);
        let (history, blocks) = self.pool.install(|| {
            seen.add(&files_of_input(corpus).collect::<Vec<_>>(), &corpus.names, see);
            assemble(corpus, &|rows| held.cut(rows), kept)
        });
        self.row_count.1 = count.map(|_| (self.window.clone(), seen.counts));
        self.held_rows = held.min(self.held_rows);
        (history, blocks, seen.sums)
    }

    /// [`Input::history`] with what its symbols mean.
    pub fn named_history(&mut self) -> (History, Names) {
        let history = self.history();
        (history, self.corpus_with(HeldRows::Sessions).names.clone())
    }

    /// The same for whoever only looks at it: the next one who asks gets it again.
    pub fn seen_history(&mut self) -> (&History, Names) {
        let (history, names) = self.named_history();
        (&self.held.insert((self.window.clone(), history)).1, names)
    }

    /// The logs on disk, each as a whole, in the order of `sources`: for whoever has to read text again.
    pub fn jobs(&self) -> Vec<Job<'_>> {
        let listed: BTreeMap<&Path, &LogFile> =
            self.listing.files.iter().map(|file| (file.path.as_path(), file)).collect();
        let logs = self.sources.iter().filter(|source| !source.is_sidecar());
        logs.filter_map(|source| Some(Job::of(listed.get(source.path.as_deref()?)?))).collect()
    }
}

/// The projects that were asked for.
struct Projects<'l> {
    /// Their logs on disk.
    files: HashSet<&'l Path>,
    /// Pseudonyms of their directories, and of the name that was asked for: that of a deleted log is known by nothing else.
    directories: IdSet<Id>,
}

impl<'l> Projects<'l> {
    /// Those in whose names this one stands; none if all are asked for.
    fn named(wanted: Option<&str>, logs: &'l [LogFile]) -> Option<Self> {
        let wanted = wanted?;
        let logs = logs.iter().map(|log| (log.path.as_path(), slug(&log.directory)));
        let (files, mut names): (_, HashSet<String>) = logs.filter(|(_, name)| name.contains(wanted)).unzip();
        names.insert(wanted.to_owned());
        Some(Self { files, directories: names.iter().map(|name| Id::pseudonym(name.as_bytes())).collect() })
    }
}

/// What makes rows and facts: how logs are read, and the data files that decide about them.
fn maker(data: &Data) -> Result<Maker> {
    let rows = ["logs.toml", "endpoints.toml", "projections.toml"].map(|name| data.text(name));
    let rows: Vec<_> = rows.into_iter().collect::<Result<_>>()?;
    Ok(Maker::of(&(rows.concat() + READING), &data.text("formats.toml")?))
}

/// Says that another run keeps this one from writing to the lake.
pub(super) fn tell_waiting(is_shown: bool) {
    progress::announce("devboy: another run is writing to the lake; waiting for it", is_shown);
}
