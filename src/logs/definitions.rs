//! Texts in which logs quote tool definitions: what a tool search brought, and what a client attached. Handed on one by
//! one and not kept.

use memchr::memmem;
use serde_json::Value;

use crate::base::id::{Id, IdSet};
use crate::base::json::{Cursor, JsonFault, RawStr};
use crate::logs::content::{BlockFields, TextBlocks};
use crate::logs::envelope::{Envelope, ProgressFields};
use crate::logs::field::{id_of, span};
use crate::logs::read::{self, Failure, Job};
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
    let begin =
        |_| Reader { searches, take, counters: Counters::default(), asked: IdSet::default(), found: Vec::new() };
    let (found, failures) = read::read_each(jobs, pool, &begin, &|reader| reader.found);
    (found.into_iter().flatten().collect(), failures)
}

struct Reader<'t, T> {
    searches: &'t [String],
    take: &'t Take<'t, T>,
    counters: Counters,
    /// Searches of this file.
    asked: IdSet<Id>,
    found: Vec<T>,
}

impl<T> Reader<'_, T> {
    /// Whether a record may be worth a closer look. A name that is spelled with escapes is passed over.
    fn is_about_tools(&self, record: &[u8]) -> bool {
        let has = |word: &str| memmem::find(record, word.as_bytes()).is_some();
        let is_attachment = has("\"attachment\"") && (has("chema\"") || has("\"parameters\""));
        is_attachment || self.searches.iter().any(|name| has(name)) || (!self.asked.is_empty() && has("tool_result"))
    }

    fn look(&mut self, envelope: &Envelope<'_>, TextBlocks { blocks, .. }: TextBlocks<'_>) {
        let attachment = envelope.attachment.and_then(|json| serde_json::from_slice::<Value>(json).ok());
        if let Some(attachment) = attachment {
            self.found.extend((self.take)(Quote::Attached(&attachment)));
        }
        for (block, _) in &blocks {
            let name = block.name.and_then(RawStr::decode);
            if self.searches.iter().any(|search| name.as_deref() == Some(search.as_bytes())) {
                self.asked.extend(block.id.map(id_of));
            }
        }
        let is_searched = |block: &BlockFields<'_>| block.tool_use_id.is_some_and(|id| self.asked.contains(&id_of(id)));
        for text in blocks.iter().filter(|(block, _)| is_searched(block)).flat_map(|(_, texts)| texts) {
            self.found.extend((self.take)(Quote::Searched(&String::from_utf8_lossy(text))));
        }
    }
}

impl<T> TakeRecords for Reader<'_, T> {
    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn record(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonFault> {
        let record = span(cursor)?;
        if !self.is_about_tools(record) {
            return Ok(());
        }
        let mut blocks = TextBlocks::new(usize::MAX);
        let envelope = Envelope::read(&mut Cursor::new(record), &mut blocks)?;
        self.look(&envelope, blocks);
        // The record of a subagent that its parent repeats; data that break off say nothing.
        let mut inner = TextBlocks::new(usize::MAX);
        if let Some(data) = envelope.data
            && let Ok(ProgressFields { record: Some(repeated), .. }) = ProgressFields::read(data, &mut inner)
        {
            self.look(&repeated, inner);
        }
        Ok(())
    }
}
