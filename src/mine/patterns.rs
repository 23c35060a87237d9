//! The habits that Paper 3 names, as data: looked for in a history, and how often they were seen.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::base::names::Names;
use crate::frames::tool_use::{MinedCall, Reread};
use crate::logs::history::{Call, History};
use crate::logs::trace::ResultKind;

/// Counts every pattern; `uses` are the calls of the history, in its order.
pub fn count(history: &History, uses: &[MinedCall], names: &Names, patterns: &[Pattern]) -> Vec<PatternCount> {
    patterns.iter().map(|pattern| PatternSearch::new(pattern, history, uses, names).run()).collect()
}

/// Whether a name fits one with `*` for anything.
fn fits(name: &str, wanted: &str) -> bool {
    let Some((head, rest)) = wanted.split_once('*') else { return name == wanted };
    let Some(left) = name.strip_prefix(head) else { return false };
    left.char_indices().map(|(at, _)| at).chain([left.len()]).any(|at| fits(&left[at..], rest))
}

struct PatternSearch<'a> {
    pattern: &'a Pattern,
    history: &'a History,
    uses: &'a [MinedCall],
    /// By symbol: whether the tool is one of `from`, of `to`.
    from: Vec<bool>,
    to: Vec<bool>,
}

impl<'a> PatternSearch<'a> {
    fn new(pattern: &'a Pattern, history: &'a History, uses: &'a [MinedCall], names: &Names) -> Self {
        let among = |list: &[String]| {
            names.texts().iter().map(|name| list.iter().any(|wanted| fits(name, wanted))).collect::<Vec<bool>>()
        };
        Self { pattern, history, uses, from: among(&pattern.from), to: among(&pattern.to) }
    }

    fn run(&self) -> PatternCount {
        let Pattern { number, id, published, answer, .. } = self.pattern.clone();
        let about = if self.pattern.to.is_empty() { &self.from } else { &self.to };
        let mut found = PatternCount { number, id, published, answer, ..PatternCount::default() };
        let mut sessions = BTreeSet::new();
        let context = |call: &Call| (call.chain, call.partition);
        let mut start = 0;
        let is_following = self.pattern.kind == PatternKind::Follows;
        for calls in self.history.calls.chunk_by(|a, b| context(a) == context(b)) {
            let led = if is_following { self.led(calls) } else { Vec::new() };
            for at in 0..calls.len() {
                let use_of = &self.uses[start + at];
                found.calls += u64::from(about[calls[at].tool.0 as usize]);
                if self.matches(calls, at, use_of, &led) {
                    found.matches += 1;
                    found.tokens += u64::from(use_of.tokens);
                    sessions.insert(use_of.session);
                }
            }
            start += calls.len();
        }
        found.sessions = sessions.len() as u64;
        found
    }

    /// Whether the call at a place of its context is a match.
    fn matches(&self, calls: &[Call], at: usize, use_of: &MinedCall, led: &[u32]) -> bool {
        let tool = calls[at].tool.0 as usize;
        match self.pattern.kind {
            PatternKind::Follows => self.to[tool] && self.follows(calls, at, led),
            _ if !self.from[tool] => false,
            PatternKind::Calls => true,
            PatternKind::Polls => self.is_unchanged_poll(calls, at),
            PatternKind::Rereads => matches!(use_of.reread, Some(Reread::Same | Reread::Overlapping)),
            PatternKind::EmptyRun => use_of.empty_run > 1,
            PatternKind::Large => use_of.bytes >= self.pattern.bytes_min,
        }
    }

    /// How many calls of one of `from` stand before each place of a context.
    fn led(&self, calls: &[Call]) -> Vec<u32> {
        let mut count = 0;
        let before = |call: &Call| {
            let before = count;
            count += u32::from(self.from[call.tool.0 as usize]);
            before
        };
        calls.iter().map(before).collect()
    }

    fn follows(&self, calls: &[Call], at: usize, led: &[u32]) -> bool {
        let step = calls[at].step;
        // Calls stand in the order of their steps.
        let near = calls[..at].partition_point(|call| call.step < step.saturating_sub(self.pattern.lag_max));
        let own = calls[..at].partition_point(|call| call.step < step);
        led[own] > led[near]
    }

    fn is_unchanged_poll(&self, calls: &[Call], at: usize) -> bool {
        let (call, reach) = (&calls[at], self.pattern.between_max as usize + 1);
        let before = calls[..at].iter().rev().take(reach).find(|before| before.tool == call.tool);
        // Of images nothing is known by which they could be compared.
        let is_text = |call: &Call| call.ran() && !matches!(call.kind, ResultKind::NonText | ResultKind::Mixed);
        is_text(call) && before.is_some_and(|before| is_text(before) && before.body == call.body)
    }
}

/// What is looked for; see `rules/patterns.toml`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternKind {
    /// A call of one tool soon after one of another.
    Follows,
    Calls,
    /// A poll that says what the one before said.
    Polls,
    /// A file read again unchanged.
    Rereads,
    /// An empty answer after an empty answer.
    EmptyRun,
    Large,
}

/// A pattern.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pattern {
    /// Its number in Paper 3.
    pub number: u32,
    pub id: String,
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
    #[serde(default)]
    pub bytes_min: u32,
    /// Volume that the paper prints.
    pub published: u64,
    /// What the planner or a rule makes of it.
    pub answer: String,
}

/// All patterns.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Patterns {
    /// In the order of the paper.
    pub pattern: Vec<Pattern>,
}

/// How often a pattern was seen.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PatternCount {
    pub number: u32,
    pub id: String,
    /// Calls of the tools that it is about (of `to`, where there are any).
    pub calls: u64,
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
