//! What the pipeline did to the results of a log, and the report of it as a policy.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::report::numbers::{counted, percent_of, thousands};
use crate::report::table::{Table, TableBuilder};

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

const NOTE: &str =
    "a result is shortened as it comes in, so no prefix breaks; the pipeline's own report is `devboy replay`";

/// What is to be kept in mind. Of `unstudied` results nothing is known but the size.
pub fn notes(unstudied: u64) -> Vec<String> {
    let results = counted(unstudied, "result");
    let gone = (unstudied > 0).then(|| format!("{results} of deleted logs were never studied: sent as they are here"));
    std::iter::once(NOTE.to_owned()).chain(gone).collect()
}

/// What became of the results.
pub fn summary(found: &PipelineOutcome) -> Vec<String> {
    let found = &found.all;
    let mut lines = vec![format!(
        "{} of {} sent in fewer tokens ({} of them as hints): {} of their {} tokens, {}",
        thousands(found.shortened),
        counted(found.results, "result"),
        thousands(found.hints),
        thousands(found.tokens_saved),
        thousands(found.tokens),
        percent_of(found.tokens_saved, found.tokens)
    )];
    if found.hints_held > 0 {
        lines.push(format!(
            "{} not sent: what they point at was no longer in the context",
            counted(found.hints_held, "hint")
        ));
    }
    lines
}

/// The same by tool, those first that got shorter by most tokens; at most `rows` tools.
pub fn tools(found: &PipelineOutcome, rows: usize) -> Table {
    let mut tools: Vec<(&String, &Shortened)> = found.tools.iter().collect();
    tools.sort_by_key(|(name, tool)| (Reverse(tool.tokens_saved), Reverse(tool.tokens), *name));
    TableBuilder::of(tools.into_iter().take(rows))
        .text("tool", |(name, _)| (*name).clone())
        .count("results", |(_, tool)| tool.results)
        .count("shorter", |(_, tool)| tool.shortened)
        .count("hints", |(_, tool)| tool.hints)
        .count("held", |(_, tool)| tool.hints_held)
        .count("tokens", |(_, tool)| tool.tokens)
        .count("saved", |(_, tool)| tool.tokens_saved)
        .number("share", |(_, tool)| percent_of(tool.tokens_saved, tool.tokens))
        .table()
}
