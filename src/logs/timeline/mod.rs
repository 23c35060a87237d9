//! Logs to a timeline: every request with the blocks that it added to its context.
//!
//! This is a reading of its own, made only for policies and calibrations: it looks at all text, while the light reading steps
//! over prompts and answers. One worker reads one file from its start, so that what the model writes can be followed to
//! where it stood before; a file that has grown is read again as a whole.

pub mod requests;
pub mod rows;
pub mod window;

mod added;
pub mod assemble;
mod beside;
mod content;
mod envelope;
mod fields;
mod identifiers;
mod layout;
mod occurrences;
pub mod read;
mod record;
mod references;
pub mod rules;
mod utterances;

pub use record::Reader;

use crate::base::tokenizer::Tokens;
use crate::logs::endpoint::Endpoints;
use crate::logs::timeline::rules::TimelineRules;
use crate::logs::vocabulary::Vocabulary;

/// Counts tokens. Each worker has its own.
pub trait TokenCounter {
    /// Tokens of a text by vocabulary.
    fn tokens(&mut self, text: &str) -> Tokens;
}

/// What the reading needs to know from outside.
#[derive(Clone, Copy)]
pub struct TimelineGuide<'v> {
    /// The words of the logs.
    pub vocabulary: &'v Vocabulary,
    /// The classes of shell commands.
    pub endpoints: &'v Endpoints,
    /// Numbers and words of timelines.
    pub rules: &'v TimelineRules,
    /// Makes a worker's counter.
    pub gauge: &'v (dyn Fn() -> Box<dyn TokenCounter + 'v> + Sync),
}
