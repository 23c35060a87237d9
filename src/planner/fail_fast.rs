//! Refuses a question that keeps coming back empty: only the very same one, only for a while, and only on evidence.

use std::collections::BTreeMap;

use crate::planner::numbers::FailFastNumbers;

/// What a call came back with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallAnswer {
    /// Text of so many bytes; with several blocks those of the largest.
    Text {
        /// UTF-8 bytes.
        bytes: u64,
    },
    /// An image, a reference, a document: something, although it has no text.
    NonText,
    /// An error: says nothing about whether there is an answer.
    Failed,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallVerdict {
    /// It runs; its answer is to be reported.
    Run,
    /// It does not run, and nothing else may be counted as saved for it.
    Refused,
}

#[derive(Debug, Clone, Copy, Default)]
struct Streak {
    empties: u32,
    refusals: u32,
}

/// The streaks of one context, by tool and hash of the canonical arguments.
#[derive(Debug)]
pub struct FailFast<'n> {
    numbers: &'n FailFastNumbers,
    streaks: BTreeMap<(String, u64), Streak>,
}

impl<'n> FailFast<'n> {
    /// No streaks yet.
    pub fn new(numbers: &'n FailFastNumbers) -> Self {
        Self { numbers, streaks: BTreeMap::new() }
    }

    /// Whether the last answers to this question were empty, as many as `after_n` asks for. Never without `after_n`; 0
    /// counts as 1.
    pub fn is_armed(&self, tool: &str, arguments: u64, after_n: Option<u32>) -> bool {
        let empties = self.streaks.get(&(tool.to_owned(), arguments)).map_or(0, |streak| streak.empties);
        after_n.is_some_and(|after_n| empties >= after_n.max(1))
    }

    /// Decides about a call, to be asked once for each. After `refusals_max` refusals the question is let through, to
    /// see whether it has an answer by now.
    pub fn call(&mut self, tool: &str, arguments: u64, after_n: Option<u32>) -> CallVerdict {
        if !self.is_armed(tool, arguments, after_n) {
            return CallVerdict::Run;
        }
        let streak = self.streaks.entry((tool.to_owned(), arguments)).or_default();
        if streak.refusals >= self.numbers.refusals_max {
            streak.refusals = 0;
            return CallVerdict::Run;
        }
        streak.refusals += 1;
        CallVerdict::Refused
    }

    /// Takes in the answer to a call that ran.
    pub fn answered(&mut self, tool: &str, arguments: u64, answer: CallAnswer) {
        let question = (tool.to_owned(), arguments);
        match answer {
            CallAnswer::Failed => {}
            CallAnswer::Text { bytes } if bytes <= self.numbers.empty_bytes_max => {
                let streak = self.streaks.entry(question).or_default();
                streak.empties = streak.empties.saturating_add(1);
            }
            CallAnswer::Text { .. } | CallAnswer::NonText => drop(self.streaks.remove(&question)),
        }
    }
}
