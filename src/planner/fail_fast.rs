//! Refuses a call that keeps coming back empty: only the very same one, only for a while, and only on evidence. And
//! what the planners of a replay refuse, of which the published one does so by tool.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::logs::history::Call;
use crate::logs::trace::{ResultKind, Status};
use crate::mine::projections::ToldHistory;
use crate::planner::numbers::FailFastNumbers;
use crate::planner::plan::ExpectedCost;
use crate::planner::prefetches::PrefetchTally;
use crate::planner::walk::JudgedPlanner;
use crate::settings::tool_model::ToolModel;

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

    /// Whether a call is refused, to be asked once for each: then nothing else may be counted as saved for it. Else it runs,
    /// and its answer is to be reported. After `refusals_max` refusals the question is let through, to see whether it has an
    /// answer by now.
    pub fn refuses(&mut self, tool: &str, arguments: u64, after_n: Option<u32>) -> bool {
        if !self.is_armed(tool, arguments, after_n) {
            return false;
        }
        let streak = self.streaks.entry((tool.to_owned(), arguments)).or_default();
        let is_refused = streak.refusals < self.numbers.refusals_max;
        streak.refusals = if is_refused { streak.refusals + 1 } else { 0 };
        is_refused
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

/// What is refused in one context.
pub struct Refusals<'a> {
    policy: &'a JudgedPlanner<'a>,
    guard: Guard<'a>,
}

enum Guard<'a> {
    /// As published: by tool, whatever is asked; once armed, for the rest of the context.
    Published(BTreeMap<Sym, u32>),
    /// By tool and arguments, bounded, on evidence.
    Improved(FailFast<'a>),
}

impl<'a> Refusals<'a> {
    /// Before the first call.
    pub fn new(policy: &'a JudgedPlanner<'a>) -> Self {
        let guard = if policy.is_published {
            Guard::Published(BTreeMap::new())
        } else {
            Guard::Improved(FailFast::new(&policy.numbers.fail_fast))
        };
        Self { policy, guard }
    }

    /// The agent calls.
    pub fn call(&mut self, told: ToldHistory<'_>, index: usize, total: &mut PrefetchTally) {
        let row = &told.history.calls[index];
        let model = &self.policy.known.get(row.tool).model.model;
        let Some(after_n) = model.fail_fast_after_n.filter(|_| row.ran()) else { return };
        if self.is_refused(told, index, after_n) {
            total.refused += 1;
            total.refused_wrongly += u64::from(self.has_answer(row));
            total.refused_tokens += self.tokens(model);
        }
    }

    fn is_refused(&mut self, told: ToldHistory<'_>, index: usize, after_n: u32) -> bool {
        let row = &told.history.calls[index];
        match &mut self.guard {
            Guard::Published(empties) => {
                let streak = empties.entry(row.tool).or_default();
                let is_refused = *streak >= after_n;
                // Nothing that a refused call comes back with resets the streak: it never ran.
                if !is_refused && row.status == Status::Ok {
                    let is_empty = u64::from(row.bytes) <= self.policy.numbers.fail_fast.empty_bytes_max;
                    *streak = if is_empty { *streak + 1 } else { 0 };
                }
                is_refused
            }
            Guard::Improved(fail_fast) => {
                let Some(input) = told.values.input(index) else { return false };
                let tool = self.policy.known.names.text(row.tool);
                let is_refused = fail_fast.refuses(tool, input.value, Some(after_n));
                if !is_refused {
                    fail_fast.answered(tool, input.value, answer(row));
                }
                is_refused
            }
        }
    }

    /// Whether the log has an answer to a call that is refused.
    fn has_answer(&self, row: &Call) -> bool {
        match answer(row) {
            CallAnswer::Text { bytes } => bytes > self.policy.numbers.fail_fast.empty_bytes_max,
            CallAnswer::NonText => true,
            CallAnswer::Failed => false,
        }
    }

    /// Tokens that a refused call was expected to bring.
    fn tokens(&self, model: &ToolModel) -> u64 {
        let published = &self.policy.numbers.published;
        match self.guard {
            Guard::Published(_) => published.refused_tokens,
            Guard::Improved(_) => {
                ExpectedCost::of(&model.cost_model, published.bytes_per_token.into()).charged(model.value_class)
            }
        }
    }
}

fn answer(row: &Call) -> CallAnswer {
    match (row.status, row.kind) {
        _ if row.is_empty() => CallAnswer::Text { bytes: 0 },
        (Status::Ok, ResultKind::NonText | ResultKind::Mixed) => CallAnswer::NonText,
        (Status::Ok, _) => CallAnswer::Text { bytes: row.bytes.into() },
        _ => CallAnswer::Failed,
    }
}
