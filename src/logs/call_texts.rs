//! Calls with their arguments as they stand in the logs, and the start of their results, handed on one by one and not
//! kept: for whoever checks them.

use std::collections::BTreeMap;

use crate::base::id::Id;
use crate::base::json::{Cursor, Fault, RawStr, Shape};
use crate::logs::message::id_of;
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
    let (files, failures) = read::read_each(jobs, pool, &|_| Reader::new(check, answer_chars), &|reader| reader.calls);
    let mut calls = Calls { asked: BTreeMap::new(), answered: BTreeMap::new() };
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
#[derive(Default)]
struct Blocks<'a> {
    asked: Vec<(Id, RawStr<'a>, &'a [u8])>,
    answered: Vec<(Id, bool, &'a [u8])>,
}

impl<'c, T> Reader<'c, T> {
    fn new(check: &'c Check<'c, T>, answer_chars: usize) -> Self {
        let calls = Calls { asked: BTreeMap::new(), answered: BTreeMap::new() };
        Self { check, answer_chars, counters: Counters::default(), calls }
    }

    fn take(&mut self, version: Option<RawStr<'_>>, blocks: Blocks<'_>) {
        let version = version.and_then(RawStr::decode).and_then(|text| String::from_utf8(text).ok());
        for (id, tool, input) in blocks.asked {
            let tool = String::from_utf8_lossy(&tool.decode().unwrap_or_default()).into_owned();
            let checked = (self.check)(&tool, version.as_deref(), input);
            self.calls.asked.entry(id).or_insert((tool, checked));
        }
        for (id, is_error, content) in blocks.answered {
            // Only the words of errors tell something.
            let text = if is_error { self.start_of(content) } else { String::new() };
            self.calls.answered.entry(id).or_insert((is_error, text));
        }
    }

    /// The first characters of a result's text.
    fn start_of(&self, content: &[u8]) -> String {
        let value: serde_json::Value = serde_json::from_slice(content).unwrap_or_default();
        let text = match &value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Array(parts) => {
                parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
            }
            _ => String::new(),
        };
        text.chars().take(self.answer_chars).collect()
    }
}

impl<T> TakeRecords for Reader<'_, T> {
    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn record(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let (mut version, mut blocks) = (None, Blocks::default());
        cursor.enter()?;
        let mut first = true;
        while let Some(key) = cursor.next_key(&mut first)? {
            match (key.0, cursor.shape()?) {
                (b"version", Shape::String) => version = Some(cursor.string()?),
                (b"message", Shape::Object) => message(cursor, &mut blocks)?,
                (b"data", Shape::Object) => progress(cursor, &mut blocks)?,
                _ => cursor.skip_value()?,
            }
        }
        self.take(version, blocks);
        Ok(())
    }
}

/// The record of a subagent that its parent repeats: `data.message.message`.
fn progress<'a>(cursor: &mut Cursor<'a>, blocks: &mut Blocks<'a>) -> Result<(), Fault> {
    cursor.enter()?;
    let mut first = true;
    while let Some(key) = cursor.next_key(&mut first)? {
        if key.0 != b"message" || cursor.shape()? != Shape::Object {
            cursor.skip_value()?;
            continue;
        }
        cursor.enter()?;
        let mut first = true;
        while let Some(key) = cursor.next_key(&mut first)? {
            match (key.0, cursor.shape()?) {
                (b"message", Shape::Object) => message(cursor, blocks)?,
                _ => cursor.skip_value()?,
            }
        }
    }
    Ok(())
}

fn message<'a>(cursor: &mut Cursor<'a>, blocks: &mut Blocks<'a>) -> Result<(), Fault> {
    cursor.enter()?;
    let mut first = true;
    while let Some(key) = cursor.next_key(&mut first)? {
        if key.0 != b"content" || cursor.shape()? != Shape::Array {
            cursor.skip_value()?;
            continue;
        }
        cursor.enter()?;
        let mut first = true;
        while cursor.next_element(&mut first)? {
            if cursor.shape()? == Shape::Object {
                block(cursor, blocks)?;
            } else {
                cursor.skip_value()?;
            }
        }
    }
    Ok(())
}

fn block<'a>(cursor: &mut Cursor<'a>, blocks: &mut Blocks<'a>) -> Result<(), Fault> {
    let (mut kind, mut id, mut name, mut input) = (None, None, None, None);
    let (mut answers, mut is_error, mut content) = (None, false, &b"null"[..]);
    cursor.enter()?;
    let mut first = true;
    while let Some(key) = cursor.next_key(&mut first)? {
        match (key.0, cursor.shape()?) {
            (b"type", Shape::String) => kind = Some(cursor.string()?.0),
            (b"id", Shape::String) => id = Some(id_of(cursor.string()?)),
            (b"name", Shape::String) => name = Some(cursor.string()?),
            (b"tool_use_id", Shape::String) => answers = Some(id_of(cursor.string()?)),
            (b"is_error", Shape::Bool) => is_error = cursor.boolean()?,
            (b"input", _) => input = Some(spanned(cursor)?),
            (b"content", _) => content = spanned(cursor)?,
            _ => cursor.skip_value()?,
        }
    }
    match (kind, id.zip(name).zip(input), answers) {
        (Some(b"tool_use"), Some(((id, name), input)), _) => blocks.asked.push((id, name, input)),
        (Some(b"tool_result"), _, Some(id)) => blocks.answered.push((id, is_error, content)),
        _ => {}
    }
    Ok(())
}

/// The bytes of the value at the cursor.
fn spanned<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Fault> {
    cursor.skip_space();
    let start = cursor.pos();
    cursor.skip_value()?;
    Ok(cursor.since(start))
}
