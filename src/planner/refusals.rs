//! Repeats of a question that keeps coming back empty, as the planners of a replay refuse them.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::logs::history::Call;
use crate::logs::trace::{ResultKind, Status};
use crate::planner::contexts::PlannerHistory;
use crate::planner::fail_fast::{CallAnswer, CallVerdict, FailFast};
use crate::planner::plan::ExpectedCost;
use crate::planner::prefetches::PrefetchTally;
use crate::planner::walk::{JudgedPlanner, Wiring};
use crate::settings::tool_model::ToolModel;

/// What is refused in one context.
pub struct Refusals<'a> {
    policy: &'a JudgedPlanner<'a>,
    guard: Guard<'a>,
}

/// Who refuses.
enum Guard<'a> {
    /// As published: by tool, whatever is asked; once armed, for the rest of the context.
    Published(BTreeMap<Sym, u32>),
    /// By tool and arguments, bounded, on evidence.
    Improved(FailFast<'a>),
}

impl<'a> Refusals<'a> {
    /// Before the first call.
    pub fn new(policy: &'a JudgedPlanner<'a>) -> Self {
        let guard = match policy.wiring {
            Wiring::Published { .. } => Guard::Published(BTreeMap::new()),
            Wiring::Improved { .. } => Guard::Improved(FailFast::new(&policy.numbers.fail_fast)),
        };
        Self { policy, guard }
    }

    /// The agent calls.
    pub fn call(&mut self, told: PlannerHistory<'_>, index: usize, total: &mut PrefetchTally) {
        let row = &told.history.calls[index];
        let model = &self.policy.known.get(row.tool).model.model;
        let Some(after_n) = model.fail_fast_after_n.filter(|_| row.ran()) else { return };
        if self.is_refused(told, index, after_n) {
            total.refused += 1;
            total.refused_wrongly += u64::from(self.has_answer(row));
            total.refused_tokens += self.tokens(model);
        }
    }

    fn is_refused(&mut self, told: PlannerHistory<'_>, index: usize, after_n: u32) -> bool {
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
                let verdict = fail_fast.call(tool, input.value, Some(after_n));
                if verdict == CallVerdict::Run {
                    fail_fast.answered(tool, input.value, answer(row));
                }
                verdict == CallVerdict::Refused
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
