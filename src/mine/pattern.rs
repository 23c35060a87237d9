//! Habits that Paper 3 names, as data, and how often they were seen.

use serde::{Deserialize, Serialize};

/// What is looked for; see `rules/patterns.toml`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternKind {
    /// A call of one tool soon after one of another.
    Follows,
    /// Any call.
    Calls,
    /// A poll that says what the one before said.
    Polls,
    /// A file read again unchanged.
    Rereads,
    /// An empty answer after an empty answer.
    EmptyRun,
    /// A large answer.
    Large,
}

/// A pattern.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// Its number in Paper 3.
    pub number: u32,
    /// Its name.
    pub id: String,
    /// What is looked for.
    pub kind: PatternKind,
    /// Tools; `*` stands for anything.
    pub from: Vec<String>,
    /// Tools that follow.
    #[serde(default)]
    pub to: Vec<String>,
    /// Messages between.
    #[serde(default)]
    pub lag_max: u32,
    /// Other calls between.
    #[serde(default)]
    pub between_max: u32,
    /// Bytes of a large answer.
    #[serde(default)]
    pub bytes_min: u32,
    /// Volume that the paper prints.
    pub published: u64,
    /// What the planner or a rule makes of it.
    pub answer: String,
}

/// All patterns.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patterns {
    /// In the order of the paper.
    pub pattern: Vec<Pattern>,
}

/// How often a pattern was seen.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PatternCount {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub id: String,
    /// Calls of the tools that it is about (of `to`, where there are any).
    pub calls: u64,
    /// Of these, matches.
    pub matches: u64,
    /// Sessions with a match.
    pub sessions: u64,
    /// Tokens of the answers that match.
    pub tokens: u64,
    /// Volume that the paper prints.
    pub published: u64,
    /// What the planner or a rule makes of it.
    pub answer: String,
}
