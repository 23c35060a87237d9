//! What is worked out of an input, answers that the lake remembers, and the texts behind pseudonyms, as the logs on disk have
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::civil::date;
use jiff::tz::TimeZone;
use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::allocator;
use crate::base::error::Result;
use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::Names;
use crate::base::unpack::Packing;
use crate::frames::input::Input;
use crate::frames::manifest::StoredSource;
use crate::logs::discover::LogFile;
use crate::logs::history::History;
use crate::logs::named::look_up;
use crate::logs::timeline::beside::agent_file_stamp;
use crate::logs::values::{CallBlocks, CallValues, ValueRows};

/// The values of every file by its key, and what their symbols mean.
pub(super) struct FileValues {
    names: Arc<Names>,
    files: IdMap<Id, Arc<ValueRows>>,
}

impl Input {
    /// The values of every call of a history of this input. Rows are let go of before values are loaded: they take as much room.
    pub fn values(&mut self, history: &History) -> CallValues {
        if !std::mem::replace(&mut self.taken_down.values, true) {
            (self.corpus, self.blocks) = (None, None);
        }
        // Of a window they were not found: which calls it has decides where values are looked for.
        let found = self.blocks.take().filter(|found| found.calls() == history.calls.len());
        let mut blocks = found.unwrap_or_else(|| CallBlocks::of(self.calls(), history));
        self.let_go_of_rows();
        let had_lake = self.lake.is_some();
        let known = self.file_values.take().unwrap_or_else(|| self.put_values_together());
        if had_lake && self.lake.is_none() {
            // Without it deleted logs are missing: another copy of a call may count.
            blocks = CallBlocks::of(self.calls(), history);
        }
        let found = self.pool.install(|| blocks.gather(Arc::clone(&known.names), &known.files));
        // The lake gives them again, as it gives rows.
        self.file_values = (!self.keeps_rows()).then_some(known);
        // What unpacked them lies between values that are still in use.
        allocator::give_back_small_blocks();
        found
    }

    /// Those of the lake, those that were read now, and those of standard input.
    fn put_values_together(&mut self) -> FileValues {
        let (mut names, mut known) = self.stored_values();
        let symbols = names.absorb(&self.fresh.0);
        for (number, values) in std::mem::take(&mut self.fresh.1) {
            known.entry(number).or_default().append(values, &symbols, 0);
        }
        let of_file = |stored: &StoredSource| Some((stored.key, Arc::new(known.remove(&stored.number)?)));
        let mut files: IdMap<Id, Arc<ValueRows>> = self.selected.iter().filter_map(of_file).collect();
        let symbols = names.absorb(&self.piped_values.0);
        let mut piped = ValueRows::default();
        piped.append(self.piped_values.1.clone(), &symbols, 0);
        files.insert(Id::NONE, Arc::new(piped));
        FileValues { names: Arc::new(names), files }
    }

    /// The values in the lake, and what their symbols mean. What is damaged is made anew from the logs.
    fn stored_values(&mut self) -> (Names, BTreeMap<u32, ValueRows>) {
        loop {
            let mut names = Names::default();
            let Some(lake) = &self.lake else { return (names, BTreeMap::new()) };
            let trouble = match self.pool.install(|| lake.load_values(&mut names, self.finds_taken)) {
                Ok(values) => return (names, values),
                Err(trouble) => trouble,
            };
            let mended = lake.mended(&trouble);
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
        // An answer that lacks requests comes with a note about them.
        let lake = self.lake.as_ref().filter(|_| self.without_timeline.is_empty());
        if let (Some(lake), Some(key), Ok(text)) = (lake, self.fingerprint(about), serde_json::to_vec(&answer)) {
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
        // Days are those of the local time zone.
        let zone = offsets(&TimeZone::system());
        let mut named = format!("{overrides} {maker:?} {tier} {about} {window:?} {zone:?}").into_bytes();
        for (source, stored) in self.sources.iter().zip(&self.selected) {
            let StoredSource { key, number, bytes, readings, content, directory, .. } = stored;
            // What is on disk can be read again, whoever asks for more than rows; and with it what stands beside it.
            let beside = source.path.as_deref().map(agent_file_stamp);
            [key, content, directory].iter().for_each(|id| named.extend_from_slice(&id.0));
            named.extend_from_slice(&bytes.to_le_bytes());
            [number, readings].iter().for_each(|number| named.extend_from_slice(&number.to_le_bytes()));
            named.push(u8::from(beside.is_some()) + u8::from(beside.flatten().is_some()));
            if let Some((bytes, modified_ns)) = beside.flatten() {
                named.extend_from_slice(&bytes.to_le_bytes());
                named.extend_from_slice(&modified_ns.to_le_bytes());
            }
        }
        Some(answer_name(env!("DEVBOY_BUILD"), &named))
    }
}

/// The years whose days tell time zones apart: no log is older, and rules of summer time repeat.
const YEARS: RangeInclusive<i16> = 2020..=2040;

/// What the clocks of a time zone show, in seconds from UTC at the start of each month. A zone may have no name,
/// and what a name stands for may change.
pub fn offsets(zone: &TimeZone) -> Vec<i32> {
    let months = YEARS.flat_map(|year| (1..=12).map(move |month| date(year, month, 1)));
    let starts = months.filter_map(|day| day.to_zoned(TimeZone::UTC).ok());
    starts.map(|start| zone.to_offset(start.timestamp()).seconds()).collect()
}

/// The name under which a build of devboy remembers its answer to a question.
pub fn answer_name(build: &str, question: &[u8]) -> Id {
    Id::pseudonym(&[build.as_bytes(), question].concat())
}

/// Bytes at the start of a log that are searched for the directory and the session: they stand in its first records, behind
/// at most one long prompt or a few pasted images.
const HEAD_BYTES: u64 = 1 << 20;

impl Input {
    /// The texts behind pseudonyms, as far as the logs on disk have them: of directories and sessions, which stand at the head
    /// of a log, and of branches, which stand anywhere. Where one is missing, logs that could not be read are told of.
    pub fn texts(&self, mut wanted: IdSet<Id>, branches: IdSet<Id>) -> IdMap<Id, String> {
        let mut found = FoundTexts::default();
        // The same names are asked for in several places of one answer.
        if let Ok(known) = self.named.lock() {
            found.texts.extend(wanted.iter().filter_map(|id| Some((*id, known.get(id)?.clone()))));
        }
        wanted.retain(|id| !found.texts.contains_key(id));
        if wanted.is_empty() && branches.is_empty() {
            return found.texts;
        }
        let (mut files, mut rest): (Vec<&LogFile>, Vec<&LogFile>) = (Vec::new(), Vec::new());
        let mut directories: BTreeSet<&str> = BTreeSet::new();
        for file in &self.listing.files {
            if let Some((stem, _)) = Packing::split_name(&file.path) {
                let id = Id::pseudonym(stem);
                if wanted.remove(&id) {
                    found.texts.insert(id, String::from_utf8_lossy(stem).into_owned());
                }
            }
            // One log of each project first: mostly that is enough.
            let is_first = directories.insert(&file.directory);
            if is_first { files.push(file) } else { rest.push(file) }
        }
        files.append(&mut rest);
        let naming = self.logs_naming(&wanted);
        let likely = naming.iter().map(|(file, ids)| (*file, ids)).collect();
        self.look_in(likely, HEAD_BYTES, &mut found);
        wanted.retain(|id| !found.texts.contains_key(id));
        let mut all_named = self.look_through(&files, HEAD_BYTES, wanted.clone(), &mut found);
        // Several sessions may be in one log. Where logs are deleted, a name that is missing is mostly theirs: it is not worth
        // reading all others for it.
        if !all_named && self.kept() == 0 {
            wanted.retain(|id| !found.texts.contains_key(id));
            let is_longer = |file: &&LogFile| file.bytes > HEAD_BYTES || file.packing != Packing::Plain;
            let longer: Vec<&LogFile> = files.iter().copied().filter(is_longer).collect();
            all_named = self.look_through(&longer, u64::MAX, wanted, &mut found);
        }
        if !(self.look_through(&files, u64::MAX, branches, &mut found) && all_named)
            && let Ok(mut closed) = self.closed.lock()
        {
            closed.append(&mut found.closed);
        }
        if let Ok(mut known) = self.named.lock() {
            known.extend(found.texts.iter().map(|(id, text)| (*id, text.clone())));
        }
        found.texts
    }

    /// Looks through logs, one for each thread, until everything is found. Whether it was.
    fn look_through(&self, files: &[&LogFile], bytes: u64, mut wanted: IdSet<Id>, found: &mut FoundTexts) -> bool {
        for some in files.chunks(self.pool.current_num_threads()) {
            if wanted.is_empty() {
                break;
            }
            self.look_in(some.iter().map(|file| (*file, &wanted)).collect(), bytes, found);
            wanted.retain(|id| !found.texts.contains_key(id));
        }
        wanted.is_empty()
    }

    /// Adds what logs have of the texts wanted of each, in their first so many bytes.
    fn look_in(&self, logs: Vec<(&LogFile, &IdSet<Id>)>, bytes: u64, found: &mut FoundTexts) {
        let look = |(file, wanted): (&LogFile, &IdSet<Id>)| {
            let mut texts = IdMap::default();
            let looked = look_up(&file.path, file.packing, bytes, wanted, &mut texts);
            (texts, looked.err().map(|why| (file.path.clone(), why.to_string())))
        };
        let looked: Vec<_> = self.pool.install(|| logs.into_par_iter().map(look).collect());
        for (texts, failure) in looked {
            found.texts.extend(texts);
            found.closed.extend(failure);
        }
    }
}

/// Texts behind pseudonyms, and the logs that could not be read for them, with the reason.
#[derive(Default)]
struct FoundTexts {
    texts: IdMap<Id, String>,
    closed: BTreeMap<PathBuf, String>,
}
