//! Logs to a timeline: every request with the blocks that it added to its context.
//!
//! This is made only for who asks, since it looks at all text, while the light reading steps over prompts and output. One
//! worker reads one file from its first line to its last, the largest first, so that what the model writes can be followed
//! to where it stood before; a file that has grown is read again as a whole.

pub mod requests;
pub mod rows;
pub mod window;
pub mod words;

pub mod assemble;
pub(crate) mod beside;
pub(crate) mod content;
mod drafts;
pub(crate) mod families;
mod fields;
pub mod identifiers;
mod join;
mod layout;
mod record;
mod references;
pub mod rules;

#[cfg(any(test, fuzzing))]
use std::io::Read;

use crate::base::lines::LineBuffer;
use crate::base::tokenizer::TokenCounts;
use crate::logs::endpoint::Endpoints;
use crate::logs::read::{self, Job};
use crate::logs::timeline::beside::add_agent_file;
use crate::logs::timeline::rows::FileTimeline;
use crate::logs::timeline::rules::TimelineRules;
use crate::logs::trace::Counters;
use crate::logs::vocabulary::Vocabulary;

pub use record::TimelineReader;

/// Counts tokens. Each worker has its own.
pub trait TokenCounter {
    /// Tokens of a text by vocabulary.
    fn tokens(&mut self, text: &str) -> TokenCounts;
}

/// What the reading needs to know from outside.
#[derive(Clone, Copy)]
pub struct TimelineGuide<'v> {
    pub vocabulary: &'v Vocabulary,
    /// The classes of shell commands.
    pub endpoints: &'v Endpoints,
    /// Numbers and words of timelines.
    pub rules: &'v TimelineRules,
    /// Whether the words of utterances are taken down: they are a third of the rows, and few questions need them.
    pub with_words: bool,
    /// Makes a worker's counter. Without one neither blocks are counted nor fields followed: few questions need them.
    pub token_counter: Option<&'v (dyn Fn() -> Box<dyn TokenCounter + 'v> + Sync)>,
}

/// How the rows of a file are kept as bytes until those of all files are put together: they take less room.
pub type PackTimeline = fn(&mut FileTimeline) -> Vec<u8>;

/// What it takes to read files for the timeline beside their rows.
#[derive(Clone, Copy)]
pub struct TimelineBeside<'v> {
    /// Numbers and words of timelines.
    pub rules: &'v TimelineRules,
    /// See [`TimelineGuide::with_words`].
    pub with_words: bool,
    /// See [`PackTimeline`].
    pub pack: PackTimeline,
}

/// Reads all jobs; their rows, packed, stand in the order of the jobs. `advance` is told of bytes as they are done.
pub fn read_all(
    jobs: &[Job<'_>],
    guide: TimelineGuide<'_>,
    pool: &rayon::ThreadPool,
    pack: PackTimeline,
    advance: &(dyn Fn(u64) + Sync),
) -> Vec<(Vec<u8>, Counters)> {
    let begin = || (LineBuffer::default(), guide.token_counter.map(|make| make()));
    read::largest_first(pool, &read::sizes_of(jobs), &begin, &|(buffer, token_counter), job| {
        let mut reader = TimelineReader::new(guide, token_counter.as_deref_mut());
        read::read_whole(&jobs[job], buffer, &mut reader);
        advance(jobs[job].to);
        let (mut file, counters) = reader.finish();
        add_agent_file(jobs[job].path, &mut file);
        (pack(&mut file), counters)
    })
}

/// Reads one stream to its end; how it is packed is told by its first bytes.
#[cfg(any(test, fuzzing))]
pub fn read_stream(source: impl Read, guide: TimelineGuide<'_>) -> (FileTimeline, Counters) {
    let mut token_counter = guide.token_counter.map(|make| make());
    let mut reader = TimelineReader::new(guide, token_counter.as_deref_mut());
    read::read_stream_into(source, &mut reader);
    reader.finish()
}
