//! Calls with their arguments as they stand in the logs, and the start of their results, handed on one by one and not
//! kept: for whoever checks them.

use std::collections::BTreeMap;

use crate::base::id::Id;
use crate::base::json::{Cursor, JsonFault, RawStr, TextSink};
use crate::logs::content::{BlockFields, TakeContent};
use crate::logs::envelope::{Envelope, ProgressFields};
use crate::logs::field::id_of;
use crate::logs::read;
use crate::logs::read::{Failure, Job};
use crate::logs::take::TakeRecords;
use crate::logs::trace::Counters;

/// What a check of one call came to, whatever it is.
pub type Checked<T> = (String, T);

/// Judges one call: tool, client version, arguments as JSON.
pub type Check<'c, T> = dyn Fn(&str, Option<&str>, &[u8]) -> T + Sync + 'c;

/// What is known of all calls, by `tool_use` id.
#[derive(Debug)]
pub struct Calls<T> {
    /// Checked, each once.
    pub asked: BTreeMap<Id, Checked<T>>,
    /// Whether a result is an error, and its first characters.
    pub answered: BTreeMap<Id, (bool, String)>,
}

/// Reads all jobs, one worker a file. `check` is asked about each call: tool, client version, arguments as JSON. Of
/// copies the one in the first file counts. Tells, too, which files are not all in it.
pub fn read_all<T: Send>(
    jobs: &[Job<'_>],
    answer_chars: usize,
    pool: &rayon::ThreadPool,
    check: &Check<'_, T>,
) -> (Calls<T>, Vec<Failure>) {
    let none = || Calls { asked: BTreeMap::new(), answered: BTreeMap::new() };
    let begin = |_| Reader { check, answer_chars, counters: Counters::default(), calls: none() };
    let (files, failures) = read::read_each(jobs, pool, &begin, &|reader| reader.calls);
    let mut calls = none();
    for file in files {
        for (id, checked) in file.asked {
            calls.asked.entry(id).or_insert(checked);
        }
        for (id, answer) in file.answered {
            calls.answered.entry(id).or_insert(answer);
        }
    }
    (calls, failures)
}

struct Reader<'c, T> {
    check: &'c Check<'c, T>,
    answer_chars: usize,
    counters: Counters,
    calls: Calls<T>,
}

/// The blocks of a record, before it is known to be whole.
struct Blocks<'a> {
    asked: Vec<(Id, RawStr<'a>, &'a [u8])>,
    /// Calls with whether they failed, and the start of what came back.
    answered: Vec<(Id, bool, String)>,
    start: Start,
}

/// The start of a text.
struct Start {
    text: Vec<u8>,
    bytes_max: usize,
}

impl TextSink for Start {
    fn push(&mut self, piece: &[u8]) {
        let room = self.bytes_max - self.text.len();
        self.text.extend_from_slice(&piece[..room.min(piece.len())]);
    }
}

impl<'a> TakeContent<'a> for Blocks<'a> {
    type Text = Start;

    fn begin(&mut self) {
        self.asked.clear();
        self.answered.clear();
    }

    fn begin_result(&mut self) {
        self.start.text.clear();
    }

    fn result_text(&mut self) -> &mut Start {
        &mut self.start
    }

    fn block(&mut self, block: &BlockFields<'a>) {
        match block.kind.map(|kind| kind.0) {
            Some(b"tool_use") => {
                let call = block.id.map(id_of).zip(block.name).zip(block.input);
                self.asked.extend(call.map(|((id, name), input)| (id, name, input)));
            }
            Some(b"tool_result") => {
                // Only the words of errors tell something.
                let tells = block.failed && block.result.is_some();
                let text = if tells { String::from_utf8_lossy(&self.start.text).into_owned() } else { String::new() };
                let answer = |id| (id_of(id), block.failed, text);
                self.answered.extend(block.tool_use_id.map(answer));
            }
            _ => {}
        }
    }
}

impl<T> Reader<'_, T> {
    fn take(&mut self, version: Option<RawStr<'_>>, blocks: Blocks<'_>) {
        let version = version.and_then(RawStr::decode).and_then(|text| String::from_utf8(text.into_owned()).ok());
        for (id, tool, input) in blocks.asked {
            let tool = tool.text().unwrap_or_default().into_owned();
            let checked = (self.check)(&tool, version.as_deref(), input);
            self.calls.asked.entry(id).or_insert((tool, checked));
        }
        for (id, is_error, start) in blocks.answered {
            let text = start.chars().take(self.answer_chars).collect();
            self.calls.answered.entry(id).or_insert((is_error, text));
        }
    }
}

impl<T> TakeRecords for Reader<'_, T> {
    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn record(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonFault> {
        // A character has four bytes at most.
        let start = Start { text: Vec::new(), bytes_max: self.answer_chars.saturating_mul(4) };
        let mut blocks = Blocks { asked: Vec::new(), answered: Vec::new(), start };
        let envelope = Envelope::read(cursor, &mut blocks)?;
        if let Some(data) = envelope.data {
            // The record of a subagent that its parent repeats; data that break off say nothing.
            ProgressFields::read(data, &mut blocks).map(drop).unwrap_or_default();
        }
        self.take(envelope.version, blocks);
        Ok(())
    }
}
