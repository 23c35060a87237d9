//! What the pipeline did to the results of a log.

use std::collections::BTreeMap;

use serde::Serialize;

/// All results.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct PipelineOutcome {
    /// Together.
    #[serde(flatten)]
    pub all: Shortened,
    /// By tool.
    pub tools: BTreeMap<String, Shortened>,
}

/// Results, each counted once, when it first stood in a context.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Shortened {
    /// Results with text that the pipeline met.
    pub results: u64,
    /// Of those, sent in fewer tokens, hints included.
    pub shortened: u64,
    /// Of those, hints for an earlier result.
    pub hints: u64,
    /// Hints that were not sent, since what they point at was not in the context any more.
    pub hints_held: u64,
    /// Tokens of all these results as they are; anchored sizes.
    pub tokens: u64,
    /// Tokens by which they were shorter.
    pub tokens_saved: u64,
}
