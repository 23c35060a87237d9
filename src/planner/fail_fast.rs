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

#[derive(Debug, Clone, Copy, Default)]
struct Streak {
    empties: u32,
    refusals: u32,
}

/// A tool, and the hash of its canonical arguments.
type Question = (Sym, u64);

/// The streaks of one context, by tool and hash of the canonical arguments.
#[derive(Debug)]
pub struct FailFast<'n> {
    numbers: &'n FailFastNumbers,
    streaks: BTreeMap<Question, Streak>,
}

impl<'n> FailFast<'n> {
    /// No streaks yet.
    pub fn new(numbers: &'n FailFastNumbers) -> Self {
        Self { numbers, streaks: BTreeMap::new() }
    }

    /// Whether a call is refused, to be asked once for each: then nothing else may be counted as saved for it. Else it runs,
    /// and its answer is to be reported. It is refused if the last `after_n` answers were empty (0 counts as 1); after
    /// `refusals_max` refusals the question is let through, to see whether it has an answer by now.
    pub fn refuses(&mut self, question: Question, after_n: u32) -> bool {
        let streak = self.streaks.get_mut(&question).filter(|streak| streak.empties >= after_n.max(1));
        let Some(streak) = streak else { return false };
        let is_refused = streak.refusals < self.numbers.refusals_max;
        streak.refusals = if is_refused { streak.refusals + 1 } else { 0 };
        is_refused
    }

    /// Takes in whether the answer to a call that ran was empty; none of an error, which says nothing about it.
    pub fn answered(&mut self, question: Question, is_empty: Option<bool>) {
        match is_empty {
            None => {}
            Some(true) => {
                let streak = self.streaks.entry(question).or_default();
                streak.empties = streak.empties.saturating_add(1);
            }
            Some(false) => drop(self.streaks.remove(&question)),
        }
    }
}

/// Whether next to nothing came back; none of an error. An image or a document is something without text.
pub fn came_empty(row: &Call, numbers: &FailFastNumbers) -> Option<bool> {
    match (row.status, row.kind) {
        _ if row.is_empty() => Some(true),
        (Status::Ok, ResultKind::NonText | ResultKind::Mixed) => Some(false),
        (Status::Ok, _) => Some(numbers.is_empty(row.bytes)),
        _ => None,
    }
}

/// What is refused in one context.
pub struct Refusals<'a> {
    policy: &'a JudgedPlanner<'a>,
    /// As published: empty answers in a row by tool, whatever was asked; once armed, for the rest of the context.
    by_tool: BTreeMap<Sym, u32>,
    /// Of all other planners: by tool and arguments, bounded, on evidence.
    by_question: FailFast<'a>,
}

impl<'a> Refusals<'a> {
    /// Before the first call.
    pub fn new(policy: &'a JudgedPlanner<'a>) -> Self {
        Self { policy, by_tool: BTreeMap::new(), by_question: FailFast::new(&policy.numbers.fail_fast) }
    }

    /// The agent calls.
    pub fn call(&mut self, told: ToldHistory<'_>, index: usize, total: &mut PrefetchTally) {
        let row = &told.history.calls[index];
        let model = &self.policy.known.get(row.tool).model.model;
        let Some(after_n) = model.fail_fast_after_n.filter(|_| row.ran()) else { return };
        if self.is_refused(told, index, after_n) {
            total.refused += 1;
            total.refused_wrongly += u64::from(came_empty(row, &self.policy.numbers.fail_fast) == Some(false));
            total.refused_tokens += self.tokens(model);
        }
    }

    fn is_refused(&mut self, told: ToldHistory<'_>, index: usize, after_n: u32) -> bool {
        let row = &told.history.calls[index];
        let numbers = &self.policy.numbers.fail_fast;
        if self.policy.is_published {
            let empties = self.by_tool.entry(row.tool).or_default();
            let is_refused = *empties >= after_n;
            // Nothing that a refused call comes back with resets the streak: it never ran.
            if !is_refused && row.status == Status::Ok {
                *empties = if numbers.is_empty(row.bytes) { *empties + 1 } else { 0 };
            }
            return is_refused;
        }
        let Some(input) = told.values.input(index) else { return false };
        let question = (row.tool, input.value);
        let is_refused = self.by_question.refuses(question, after_n);
        if !is_refused {
            self.by_question.answered(question, came_empty(row, numbers));
        }
        is_refused
    }

    /// Tokens that a refused call was expected to bring.
    fn tokens(&self, model: &ToolModel) -> u64 {
        let published = &self.policy.numbers.published;
        if self.policy.is_published {
            return published.refused_tokens;
        }
        ExpectedCost::of(&model.cost_model, published.bytes_per_token.into()).charged(model.value_class)
    }
}
