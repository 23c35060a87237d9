//! Calls with their arguments as they stand in the logs, and the start of their results, handed on one by one and not
//! kept: for whoever checks them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::base::id::{Id, IdMap, IdSet};
use crate::base::json::{Cursor, JsonFault, RawStr};
use crate::base::numbers::saturated;
use crate::logs::assemble::calls::NamelessCalls;
use crate::logs::content::{BlockFields, TextBlocks};
use crate::logs::envelope::{Envelope, ProgressFields};
use crate::logs::field::id_of;
use crate::logs::read::{self, Failure, Job};
use crate::logs::take::TakeRecords;
use crate::logs::trace::Counters;

/// Judges one call: tool, client version, arguments as JSON.
pub type Check<'c, T> = dyn Fn(&str, Option<&str>, &[u8]) -> T + Sync + 'c;

/// Whether a result is an error, and its first characters.
pub type AnswerStart = (bool, String);

/// Which call it is: the message that makes it, and its id, or what stands for one.
pub type CallKey = (Id, Id);

/// A call as it was checked.
#[derive(Debug)]
pub struct CheckedCall<T> {
    pub tool: String,
    /// What the check came to.
    pub verdict: T,
    /// What came back, if anything did.
    pub answer: Option<AnswerStart>,
}

/// Reads all jobs, one worker a file. `check` is asked about each call: tool, client version, arguments as JSON. Of
/// copies the one in the first file counts. Tells, too, which files are not all in it.
pub fn read_all<T: Send>(
    jobs: &[Job<'_>],
    answer_chars: usize,
    pool: &rayon::ThreadPool,
    check: &Check<'_, T>,
) -> (BTreeMap<CallKey, CheckedCall<T>>, Vec<Failure>) {
    let begin = |job: usize| Reader { check, answer_chars, counters: Counters::default(), file: FileCalls::of(job) };
    let (files, failures) = read::read_each(jobs, pool, &begin, &|reader| reader.file);
    (merged(files), failures)
}

/// The calls of all files, each once.
fn merged<T>(files: Vec<FileCalls<T>>) -> BTreeMap<CallKey, CheckedCall<T>> {
    let mut calls: BTreeMap<CallKey, CheckedCall<T>> = BTreeMap::new();
    let mut loose: Vec<(Id, AnswerStart)> = Vec::new();
    for file in files {
        loose.extend(file.loose);
        for (key, call) in file.calls {
            match calls.entry(key) {
                Entry::Vacant(entry) => _ = entry.insert(call),
                Entry::Occupied(entry) => {
                    let known = &mut entry.into_mut().answer;
                    *known = known.take().or(call.answer);
                }
            }
        }
    }
    // A fork may answer what another file asked; of several calls of one id nobody can tell which.
    let mut asked: IdMap<Id, Option<CallKey>> = loose.iter().map(|(id, _)| (*id, None)).collect();
    let mut several: IdSet<Id> = IdSet::default();
    for key in calls.keys() {
        if let Some(known) = asked.get_mut(&key.1) {
            several.extend(known.replace(*key).map(|known| known.1));
        }
    }
    for (id, answer) in loose {
        let key = asked[&id].filter(|_| !several.contains(&id));
        if let Some(call) = key.and_then(|key| calls.get_mut(&key)) {
            call.answer.get_or_insert(answer);
        }
    }
    calls
}

/// The calls of one file.
struct FileCalls<T> {
    /// Number of the file.
    job: usize,
    calls: BTreeMap<CallKey, CheckedCall<T>>,
    /// The latest call of each id: a result is for the nearest before it.
    latest: IdMap<Id, CallKey>,
    nameless: NamelessCalls,
    /// Results without a call before them, with its id.
    loose: Vec<(Id, AnswerStart)>,
}

impl<T> FileCalls<T> {
    fn of(job: usize) -> Self {
        let (latest, nameless) = Default::default();
        Self { job, calls: BTreeMap::new(), latest, nameless, loose: Vec::new() }
    }

    fn ask(&mut self, message: Id, call: Option<Id>, input: &[u8], checked: impl FnOnce() -> (String, T)) {
        let named = call.unwrap_or_else(|| self.nameless.name(message, saturated(input.len() as u64)));
        // Without any id it can have no copies.
        let place = || Id::of(format!("{} {}", self.job, self.calls.len()).as_bytes());
        let key = (message, if named.is_some() { named } else { place() });
        self.latest.extend(call.map(|call| (call, key)));
        self.calls.entry(key).or_insert_with(|| {
            let (tool, verdict) = checked();
            CheckedCall { tool, verdict, answer: None }
        });
    }

    fn answer(&mut self, call: Id, answer: AnswerStart) {
        match self.latest.get(&call).and_then(|key| self.calls.get_mut(key)) {
            Some(call) => _ = call.answer.get_or_insert(answer),
            None => self.loose.push((call, answer)),
        }
    }
}

struct Reader<'c, T> {
    check: &'c Check<'c, T>,
    answer_chars: usize,
    counters: Counters,
    file: FileCalls<T>,
}

impl<T> Reader<'_, T> {
    fn take(&mut self, message: Id, version: Option<RawStr<'_>>, TextBlocks { blocks, .. }: TextBlocks<'_>) {
        let version = version.and_then(RawStr::decode).and_then(|text| String::from_utf8(text.into_owned()).ok());
        let of_kind = |block: &BlockFields<'_>, kind: &[u8]| block.kind.is_some_and(|own| own.0 == kind);
        for (block, _) in blocks.iter().filter(|(block, _)| of_kind(block, b"tool_use")) {
            let Some((tool, input)) = block.name.zip(block.input) else { continue };
            self.file.ask(message, block.id.map(id_of), input, || {
                let tool = tool.text().unwrap_or_default().into_owned();
                let verdict = (self.check)(&tool, version.as_deref(), input);
                (tool, verdict)
            });
        }
        for (block, texts) in blocks.iter().filter(|(block, _)| of_kind(block, b"tool_result")) {
            let Some(call) = block.tool_use_id else { continue };
            // Only the words of errors tell something.
            let text = if block.failed { texts.join(&b'\n') } else { Vec::new() };
            let start = String::from_utf8_lossy(&text).chars().take(self.answer_chars).collect();
            self.file.answer(id_of(call), (block.failed, start));
        }
    }
}

impl<T> TakeRecords for Reader<'_, T> {
    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn record(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonFault> {
        // A character has four bytes at most.
        let mut blocks = TextBlocks::new(self.answer_chars.saturating_mul(4));
        let envelope = Envelope::read(cursor, &mut blocks)?;
        // The record of a subagent that its parent repeats; data that break off say nothing.
        let repeated = envelope.data.and_then(|data| ProgressFields::read(data, &mut blocks).ok()?.record);
        self.take(repeated.unwrap_or(envelope).message_id(), envelope.version, blocks);
        Ok(())
    }
}
