//! Texts in which logs quote tool definitions: what a tool search brought, and what a client attached. Handed on one by
//! one and not kept.

use memchr::memmem;
use serde_json::Value;

use crate::base::id::{Id, IdSet};
use crate::base::json::{Cursor, JsonFault, RawStr, TextSink};
use crate::logs::content::{BlockFields, TakeContent};
use crate::logs::envelope::{Envelope, ProgressFields};
use crate::logs::field::{id_of, span};
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

/// The blocks of a record, before it is known to be whole.
struct Blocks<'t> {
    searches: &'t [String],
    asked: Vec<Id>,
    /// Calls with the texts of their results.
    answered: Vec<(Id, Vec<Vec<u8>>)>,
    texts: Texts,
}

/// The texts of a result.
#[derive(Default)]
struct Texts(Vec<Vec<u8>>);

impl TextSink for Texts {
    fn push(&mut self, piece: &[u8]) {
        self.0.last_mut().iter_mut().for_each(|text| text.extend_from_slice(piece));
    }
}

impl<'a> TakeContent<'a> for Blocks<'_> {
    type Text = Texts;

    fn begin(&mut self) {
        self.asked.clear();
        self.answered.clear();
    }

    fn begin_result(&mut self) {
        self.texts.0 = vec![Vec::new()];
    }

    fn result_text(&mut self) -> &mut Texts {
        &mut self.texts
    }

    fn next_text(&mut self) {
        self.texts.0.push(Vec::new());
    }

    fn block(&mut self, block: &BlockFields<'a>) {
        let name = block.name.and_then(RawStr::decode);
        if self.searches.iter().any(|search| name.as_deref() == Some(search.as_bytes())) {
            self.asked.extend(block.id.map(id_of));
        }
        let texts = std::mem::take(&mut self.texts.0);
        self.answered.extend(block.tool_use_id.map(|id| (id_of(id), texts)));
    }
}

impl<'t, T> Reader<'t, T> {
    /// Whether a record may be worth a closer look. A name that is spelled with escapes is passed over.
    fn is_about_tools(&self, record: &[u8]) -> bool {
        let has = |word: &str| memmem::find(record, word.as_bytes()).is_some();
        let is_attachment = has("\"attachment\"") && (has("chema\"") || has("\"parameters\""));
        is_attachment || self.searches.iter().any(|name| has(name)) || (!self.asked.is_empty() && has("tool_result"))
    }

    fn blocks(&self) -> Blocks<'t> {
        Blocks { searches: self.searches, asked: Vec::new(), answered: Vec::new(), texts: Texts::default() }
    }

    fn look(&mut self, envelope: &Envelope<'_>, blocks: Blocks<'_>) {
        let attachment = envelope.attachment.and_then(|json| serde_json::from_slice::<Value>(json).ok());
        if let Some(attachment) = attachment {
            self.found.extend((self.take)(Quote::Attached(&attachment)));
        }
        self.asked.extend(blocks.asked);
        let searched = blocks.answered.into_iter().filter(|(call, _)| self.asked.contains(call));
        for text in searched.flat_map(|(_, texts)| texts) {
            self.found.extend((self.take)(Quote::Searched(&String::from_utf8_lossy(&text))));
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
        let mut blocks = self.blocks();
        let envelope = Envelope::read(&mut Cursor::new(record), &mut blocks)?;
        self.look(&envelope, blocks);
        // The record of a subagent that its parent repeats; data that break off say nothing.
        let mut inner = self.blocks();
        if let Some(data) = envelope.data
            && let Ok(ProgressFields { record: Some(repeated), .. }) = ProgressFields::read(data, &mut inner)
        {
            self.look(&repeated, inner);
        }
        Ok(())
    }
}
