//! The timeline of an input: made for policies and calibrations, together with the rows where these are read anew, and kept in
//! the lake.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use rayon::prelude::*;

use crate::base::damage::Reason;
use crate::base::data::{Data, typed};
use crate::base::error::Result;
use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::Names;
use crate::base::progress::ProgressLine;
use crate::base::tokenizer::VOCABULARIES;
use crate::base::{allocator, numbers};
use crate::facts::body_analyzer::BodyAnalyzer;
use crate::frames::input::{Input, tell_waiting};
use crate::frames::manifest::StoredSource;
use crate::frames::packed::{self, pack, unpack};
use crate::frames::timelines as timelines_table;
use crate::frames::timelines::PackedTimeline;
use crate::logs::corpus::RowSource;
use crate::logs::discover::{LogFile, is_disturbed};
use crate::logs::message::ExtractionGuide;
use crate::logs::read::{FileReading, Job, READING};
use crate::logs::timeline::assemble::{KeptRows, SourceTimeline, assemble};
use crate::logs::timeline::beside::agent_file_stamp;
use crate::logs::timeline::families::Kin;
use crate::logs::timeline::requests::{BlockKind, Timeline, Utterance};
use crate::logs::timeline::rows::{FileTimeline, TimelineRows};
use crate::logs::timeline::rules::TimelineRules;
use crate::logs::timeline::{TimelineGuide, TimelineReader, TokenCounter};
use crate::logs::{read, timeline as timelines};

/// Both vocabularies, one bit each.
const VOCABULARY_BITS: u8 = (1 << VOCABULARIES.len()) - 1;
/// The data file of numbers and words.
const RULES: &str = "timeline.toml";

/// Which words of texts are asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum TextWords {
    #[default]
    None,
    /// Of what people wrote, [`Utterance::words`].
    OfPeople,
    All,
}

/// What is asked for besides the requests and their blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimelineDetail {
    /// The tokens of each block in all vocabularies: they take longer than all the rest, and few questions need them.
    pub tokens: bool,
    /// The words of what people and the model wrote: they are a third of the rows, and only questions about tools need
    /// them.
    pub words: TextWords,
    /// The values of calls and results, for whoever asks for [`Input::values`] as well.
    pub values: bool,
}

impl TimelineDetail {
    /// With tokens.
    pub const COUNTED: Self = Self { tokens: true, words: TextWords::None, values: false };
    /// The same, for whoever asks for values beside bodies: timelines with tokens are not read with the rows.
    pub const VALUES: Self = Self { values: true, ..Self::COUNTED };
}

/// What makes the rows of timelines.
struct TimelineMakers {
    /// Whether tokens are wanted.
    counted: bool,
    /// Of rows with tokens.
    full: Id,
    /// Of rows as they are wanted.
    wanted: Id,
    /// By source: size and time of the file beside the log of a subagent, which is read with it.
    agent_files: IdMap<Id, (u64, i64)>,
}

impl TimelineMakers {
    /// Names what makes the rows of a source: one of the makers, and the file beside it if there is one.
    fn of(&self, maker: Id, source: &Id) -> Id {
        made_with(maker, self.agent_files.get(source))
    }
}

fn made_with(maker: Id, beside: Option<&(u64, i64)>) -> Id {
    beside.map_or(maker, |stamp| Id::pseudonym(format!("{maker} {stamp:?}").as_bytes()))
}

/// Names what makes the rows of a log, with the file beside it as it is now.
pub(super) fn maker_of(maker: Id, log: &Path) -> Id {
    made_with(maker, agent_file_stamp(log).as_ref())
}

/// Why packed rows open: they were packed a moment ago, or looked through when they came from the lake.
const READABLE: &str = "what was packed or looked through can be opened";

/// What a file says, packed, and looked through once: it can be opened.
struct PackedFile {
    rows: Vec<u8>,
    kin: Kin,
}

impl PackedFile {
    fn of(rows: Vec<u8>) -> Option<Self> {
        let kin = Kin::of(&unpack(&rows)?.rows);
        Some(Self { rows, kin })
    }
}

/// The rows of such a file, to be opened in the detail that is asked for.
struct PackedRows {
    rows: Vec<u8>,
    detail: TimelineDetail,
}

impl KeptRows for PackedRows {
    fn names(&self) -> Names {
        packed::names(&self.rows).expect(READABLE)
    }

    fn open(self: Box<Self>) -> FileTimeline {
        opened(&self.rows, self.detail)
    }
}

fn opened(rows: &[u8], detail: TimelineDetail) -> FileTimeline {
    in_detail(unpack(rows).expect(READABLE), detail)
}

/// Numbers and words of timelines.
pub(super) fn rules(data: &Data) -> Result<TimelineRules> {
    data.read(RULES, typed)
}

impl Input {
    /// Every request of the logs within the window, with what it added to its context. Files whose timelines the lake
    /// does not know as they are now, and that were not read both ways, are read as a whole.
    pub fn timeline(&mut self, detail: TimelineDetail) -> Result<Timeline> {
        self.timeline_without(Self::let_go_of_rows, detail)
    }

    /// The same for whoever asks nothing more about calls and messages: they are let go of, and without a lake would be read
    /// again.
    pub fn last_timeline(&mut self, detail: TimelineDetail) -> Result<Timeline> {
        self.timeline_without(Self::let_go_of_calls, detail)
    }

    fn timeline_without(&mut self, let_go: fn(&mut Self), detail: TimelineDetail) -> Result<Timeline> {
        self.held = None;
        // Rows that turn out to be damaged take deleted logs off the sources: first, since places among these are kept.
        let standings = self.standings();
        let_go(self);
        let rules = rules(&self.data)?;
        let known = self.file_timelines(&rules, detail)?;
        let standing = |key: &Id| standings.get(key).copied().unwrap_or_default();
        let piped = self
            .piped_timeline
            .iter()
            .map(|file| SourceTimeline::new(Id::NONE, in_detail(file.clone(), detail), standing(&Id::NONE)));
        let named = known.into_iter().map(|(place, PackedFile { rows, kin })| {
            let key = self.sources[place].key;
            SourceTimeline { key, rows: Box::new(PackedRows { rows, detail }), kin, standing: standing(&key) }
        });
        let files = named.chain(piped).collect::<Vec<_>>();
        let mut timeline = self.pool.install(|| assemble(files, &rules));
        timeline.name_fast();
        // The rows of all files were as much as the timeline is.
        allocator::give_back_small_blocks();
        Ok(timeline.within(&self.window))
    }

    /// The rows behind [`Input::timeline`] of every file, with the tokens of each block.
    pub fn counted_files(&mut self) -> Result<impl Iterator<Item = FileTimeline>> {
        let known = self.file_timelines(&rules(&self.data)?, TimelineDetail::COUNTED)?;
        let files = known.into_par_iter().map(|(_, file)| opened(&file.rows, TimelineDetail::COUNTED));
        let files: Vec<_> = self.pool.install(|| files.collect());
        Ok(files.into_iter().chain(self.piped_timeline.clone()))
    }

    /// The rows of every source, by its place in `sources`.
    fn file_timelines(&mut self, rules: &TimelineRules, detail: TimelineDetail) -> Result<BTreeMap<usize, PackedFile>> {
        if detail.words > TextWords::None && !std::mem::replace(&mut self.taken_down.words, true) {
            self.fresh_timelines.clear();
        }
        let makers = self.timeline_makers(detail.tokens)?;
        let mut known = self.stored_timelines(&makers, true, &PackedFile::of);
        let news = self.news_of_timelines(rules, &known, &makers).into_par_iter();
        let news = news.map(|(place, rows)| (place, PackedFile::of(rows).expect(READABLE)));
        known.extend(self.pool.install(|| news.collect::<Vec<_>>()));
        Ok(known)
    }

    /// Brings the timelines in the lake up to date, so that the bill of a log can be told when the log is gone.
    pub fn keep_timelines(&mut self) -> Result<()> {
        if self.lake.is_none() {
            return Ok(());
        }
        let (rules, makers) = (rules(&self.data)?, self.timeline_makers(false)?);
        let known = self.stored_timelines(&makers, false, &|_| Some(()));
        self.news_of_timelines(&rules, &known, &makers);
        Ok(())
    }

    /// Names what makes rows with or without tokens: how logs are read, the data files, and the version of the table.
    pub(super) fn timeline_maker(&self, counted: bool) -> Result<Id> {
        let texts = [self.data.text("logs.toml")?, self.data.text("endpoints.toml")?, self.data.text(RULES)?].concat();
        let versions = format!("{:?} {READING}", timelines_table::VERSIONS);
        Ok(Id::pseudonym([texts.as_str(), if counted { "counted" } else { "" }, &versions].concat().as_bytes()))
    }

    /// The makers, and what stands beside logs.
    fn timeline_makers(&self, counted: bool) -> Result<TimelineMakers> {
        let stamp = |source: &RowSource| Some((source.key, agent_file_stamp(source.path.as_deref()?)?));
        let agent_files = self.sources.iter().filter_map(stamp).collect();
        let (full, wanted) = (self.timeline_maker(true)?, self.timeline_maker(counted)?);
        Ok(TimelineMakers { counted, full, wanted, agent_files })
    }

    /// Reads what is not known and stores it, packed.
    fn news_of_timelines<T>(
        &mut self,
        rules: &TimelineRules,
        known: &BTreeMap<usize, T>,
        makers: &TimelineMakers,
    ) -> Vec<(usize, Vec<u8>)> {
        let news = self.read_timelines(rules, known, makers.counted);
        self.store_timelines(makers, &news);
        news
    }

    /// Reads a stream that can be read only once, both ways.
    pub(super) fn read_twofold(&self, source: &mut dyn Read, guide: ExtractionGuide<'_>) -> Result<FileReading> {
        let rules = rules(&self.data)?;
        let mut analyzer = BodyAnalyzer::new(VOCABULARY_BITS, self.formats.params());
        let params = self.formats.params();
        let make = || -> Box<dyn TokenCounter> { Box::new(BodyAnalyzer::new(VOCABULARY_BITS, params)) };
        let Self { vocabulary, endpoints, .. } = self;
        let timeline_guide =
            TimelineGuide { vocabulary, endpoints, rules: &rules, with_words: true, token_counter: Some(&make) };
        Ok(read::read_stream_twofold(source, guide, TimelineReader::new(timeline_guide, Some(&mut analyzer))))
    }

    /// What the lake knows of the sources, by their places in `sources`. Of logs that are gone it is used as it is,
    /// also if nobody counted their blocks ([`crate::logs::timeline::requests::Block::is_counted`]). Without rows they are empty.
    fn stored_timelines<T: Send>(
        &mut self,
        makers: &TimelineMakers,
        with_rows: bool,
        of_rows: &(dyn Fn(Vec<u8>) -> Option<T> + Sync),
    ) -> BTreeMap<usize, T> {
        self.without_timeline.clear();
        let places = self.sources.iter().zip(&self.selected).enumerate();
        let places: BTreeMap<u32, (usize, u64, bool, Id)> = places
            .map(|(at, (source, stored))| (stored.timeline(), (at, stored.bytes, source.path.is_none(), source.key)))
            .collect();
        let make = |row: PackedTimeline<'_>| {
            let &(place, bytes, is_gone, key) = places.get(&row.source)?;
            let is_whole = row.bytes == bytes;
            // Rows with tokens answer either question.
            let as_it_is =
                is_whole && [makers.full, makers.wanted].iter().any(|maker| makers.of(*maker, &key) == row.words);
            if as_it_is || is_gone { Some((place, (is_whole, of_rows(row.rows.into_owned())?))) } else { None }
        };
        loop {
            let Some(lake) = &self.lake else { return BTreeMap::new() };
            let trouble = match self.pool.install(|| lake.load_timelines(with_rows, &make)) {
                Ok(read) => return self.whole_or_told(read.into_values()),
                Err(trouble) => trouble,
            };
            let mended = lake.mended(&trouble);
            let is_mended = mended.is_some();
            self.lake = mended.or_else(|| self.lake.take());
            self.note([format!("the timelines in the lake were damaged ({trouble}) and are read anew")]);
            if !is_mended {
                return BTreeMap::new();
            }
        }
    }

    /// The timelines as they are; tells of those whose logs grew before they were deleted.
    fn whole_or_told<T>(&mut self, read: impl Iterator<Item = (usize, (bool, T))>) -> BTreeMap<usize, T> {
        let mut cut = 0;
        let mut known = BTreeMap::new();
        for (place, (is_whole, file)) in read {
            if !is_whole {
                cut += 1;
                self.without_timeline.insert(self.sources[place].key);
            }
            known.insert(place, file);
        }
        if cut > 0 {
            let logs = numbers::counted(cut, "deleted log");
            let places = self.named_places();
            let why =
                format!("of what they had grown by, only tool calls were read (`devboy ingest{places}` reads both)");
            self.note([format!("the last requests of {logs} are missing: {why}")]);
        }
        known
    }

    /// Reads the sources on disk that are not known; tells of those that are gone.
    fn read_timelines<T>(
        &mut self,
        rules: &TimelineRules,
        known: &BTreeMap<usize, T>,
        counted: bool,
    ) -> Vec<(usize, Vec<u8>)> {
        let listed: BTreeMap<&Path, &LogFile> =
            self.listing.files.iter().map(|file| (file.path.as_path(), file)).collect();
        let sources = self.sources.iter().zip(&self.selected).enumerate();
        let missing = sources.filter(|(index, (source, _))| !source.is_sidecar() && !known.contains_key(index));
        let (mut places, mut jobs, mut gone) = (Vec::new(), Vec::new(), IdSet::default());
        let mut files = Vec::new();
        let mut fresh = std::mem::take(&mut self.fresh_timelines);
        for (index, (source, stored)) in missing {
            if let Some(file) = fresh.remove(&stored.number).filter(|_| !counted) {
                files.push((index, file));
                continue;
            }
            match source.path.as_deref().and_then(|path| listed.get(path)) {
                Some(file) => {
                    places.push(index);
                    jobs.push(Job { to: stored.bytes, ..Job::of(file) });
                }
                None => drop(gone.insert(source.key)),
            }
        }
        let params = self.formats.params();
        let token_counter = || -> Box<dyn TokenCounter> { Box::new(BodyAnalyzer::new(VOCABULARY_BITS, params)) };
        let token_counter = counted.then_some(&token_counter as _);
        let Self { vocabulary, endpoints, .. } = self;
        let guide = TimelineGuide { vocabulary, endpoints, rules, with_words: self.taken_down.words, token_counter };
        let progress = ProgressLine::new(jobs.iter().map(|job| job.to).sum(), self.progress);
        let read = timelines::read_all(&jobs, guide, &self.pool, pack, &|bytes| progress.advance(bytes));
        drop(progress);
        let mut unreadable = Vec::new();
        for ((place, job), (file, counters)) in places.into_iter().zip(&jobs).zip(read) {
            // A failure is no fact about the log: the next run tries again.
            if counters.damage.count(Reason::Unreadable) > 0 {
                unreadable.push((job.path.to_owned(), "reading it for the timeline failed".to_owned()));
            } else {
                files.push((place, file));
            }
        }
        if !gone.is_empty() {
            let logs = numbers::counted(gone.len() as u64, "deleted log");
            let places = self.named_places();
            self.note([format!(
                "the requests of {logs} are missing: they were not read before the logs were deleted (`devboy ingest{places}` reads \
                 them), or the lake lost them"
            )]);
        }
        self.leave_out(unreadable);
        self.without_timeline.extend(gone);
        files
    }

    fn store_timelines(&mut self, makers: &TimelineMakers, news: &[(usize, Vec<u8>)]) {
        let Some(lake) = self.lake.as_ref().filter(|_| !news.is_empty()) else { return };
        let (selected, sources) = (&self.selected, &self.sources);
        // What changed under the reader is read again by the next run.
        let stands = |index: usize| {
            let StoredSource { bytes, modified_ns, inode, .. } = selected[index];
            sources[index].path.as_ref().is_none_or(|path| !is_disturbed(path, (bytes, modified_ns, inode)))
        };
        let packed = news.iter().filter(|(index, _)| stands(*index)).map(|(index, rows)| {
            let stored = &selected[*index];
            let rows = Cow::Borrowed(rows.as_slice());
            let words = makers.of(makers.wanted, &stored.key);
            (stored, PackedTimeline { source: stored.timeline(), bytes: stored.bytes, words, rows })
        });
        let packed: Vec<_> = packed.collect();
        let is_shown = self.progress;
        match self.pool.install(|| lake.commit_timelines(packed, &|| tell_waiting(is_shown))) {
            Ok(lake) => self.lake = Some(lake),
            Err(why) => self.note([format!("the timelines were not stored: {why}")]),
        }
        // By what words and places were found while reading is as much as half of the rows.
        allocator::give_back_small_blocks();
    }
}

/// The rows of a file without what nobody asked for.
fn in_detail(mut file: FileTimeline, detail: TimelineDetail) -> FileTimeline {
    if detail.words < TextWords::All {
        let TimelineRows { utterances, words, blocks, .. } = &mut file.rows;
        let (told, all) = (std::mem::take(utterances), std::mem::take(words));
        if detail.words == TextWords::OfPeople {
            *words = all.without_rows();
            for row in told.into_iter().filter(|row| blocks[row.block as usize].kind == BlockKind::Human) {
                utterances.push(Utterance { terms: 0..0, words: words.take(&all, &row.words), ..row });
            }
        }
    }
    file
}
