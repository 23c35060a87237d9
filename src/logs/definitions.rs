//! Texts in which logs quote tool definitions: what a tool search brought, and what a client attached. Handed on one by
//! one and not kept.

use std::collections::BTreeSet;

use memchr::memmem;
use serde_json::Value;

use crate::base::json::{Cursor, Fault};
use crate::logs::field::span;
use crate::logs::read;
use crate::logs::read::{Failure, Job};
use crate::logs::take::TakeRecords;
use crate::logs::trace::Counters;

/// Something that may hold definitions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Quote<'a> {
    /// Text of a tool search's result.
    Searched(&'a str),
    /// What a client attached to a request.
    Attached(&'a Value),
}

/// What a quote holds, whatever it is.
pub type Take<'t, T> = dyn Fn(Quote<'_>) -> Vec<T> + Sync + 't;

/// Reads all jobs, one worker a file. `searches` are the tools that search for tools. What `take` finds comes in the order
/// of jobs and lines. Tells, too, which files are not all in it.
pub fn read_all<T: Send>(
    jobs: &[Job<'_>],
    searches: &[String],
    pool: &rayon::ThreadPool,
    take: &Take<'_, T>,
) -> (Vec<T>, Vec<Failure>) {
    let (found, failures) = read::read_each(jobs, pool, &|_| Reader::new(searches, take), &|reader| reader.found);
    (found.into_iter().flatten().collect(), failures)
}

struct Reader<'t, T> {
    searches: &'t [String],
    take: &'t Take<'t, T>,
    counters: Counters,
    /// Searches of this file, by `tool_use` id.
    asked: BTreeSet<String>,
    found: Vec<T>,
}

impl<'t, T> Reader<'t, T> {
    fn new(searches: &'t [String], take: &'t Take<'t, T>) -> Self {
        Self { searches, take, counters: Counters::default(), asked: BTreeSet::new(), found: Vec::new() }
    }

    /// Whether a record may be worth a closer look. A name that is spelled with escapes is passed over.
    fn is_about_tools(&self, record: &[u8]) -> bool {
        let has = |word: &str| memmem::find(record, word.as_bytes()).is_some();
        let is_attachment = has("\"attachment\"") && has("chema\"") || has("\"attachment\"") && has("\"parameters\"");
        is_attachment || self.searches.iter().any(|name| has(name)) || (!self.asked.is_empty() && has("tool_result"))
    }

    fn look(&mut self, record: &Value) {
        if let Some(attachment) = record.get("attachment") {
            self.found.extend((self.take)(Quote::Attached(attachment)));
        }
        let blocks = record.pointer("/message/content").and_then(Value::as_array).into_iter().flatten();
        for block in blocks {
            let text = |key: &str| block.get(key).and_then(Value::as_str);
            if let Some(id) = text("id").filter(|_| self.searches.iter().any(|name| text("name") == Some(name))) {
                self.asked.insert(id.to_owned());
            }
            if text("tool_use_id").is_some_and(|id| self.asked.contains(id)) {
                for text in texts(block.get("content")) {
                    self.found.extend((self.take)(Quote::Searched(text)));
                }
            }
        }
    }
}

impl<T> TakeRecords for Reader<'_, T> {
    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn record(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let record = span(cursor)?;
        if self.is_about_tools(record)
            && let Ok(record) = serde_json::from_slice::<Value>(record)
        {
            self.look(&record);
            // The record of a subagent that its parent repeats.
            record.pointer("/data/message").into_iter().for_each(|inner| self.look(inner));
        }
        Ok(())
    }
}

/// The texts of a result: one string, or a list of parts.
fn texts(content: Option<&Value>) -> Vec<&str> {
    match content {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => Vec::new(),
    }
}
