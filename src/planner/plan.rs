//! The plan for one answer: which candidates are called ahead within the budget, why the others are not, and what a
//! call is worth and costs by its value model (Paper 3, "Knapsack algorithm").
//!
//! Every request is charged. No class is guaranteed a place: a critical call that does not fit is declined.

use std::collections::BTreeSet;

use crate::planner::candidates::{Candidate, Candidates, Declined};
use crate::planner::knapsack::{KnapsackItem, KnapsackProblem};
use crate::planner::numbers::{PlannerThresholds, ScoreNumbers};
use crate::planner::prefetches::DeclineReason;
use crate::settings::tool_model::{CostModel, ToolModel, ValueClass};

/// What is called ahead.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// Calls in order: what another needs comes first.
    pub calls: Vec<Candidate>,
    /// Everything else.
    pub declined: Vec<Declined>,
}

impl Plan {
    /// Whether another one has the same calls in the same order.
    pub fn is_like(&self, other: &Self) -> bool {
        self.calls.iter().map(|call| &call.request).eq(other.calls.iter().map(|call| &call.request))
    }
}

/// Chooses among candidates. `called` are the tools of the context, which need not be called again as a prerequisite.
pub fn plan(found: Candidates, called: &BTreeSet<String>, budget_tokens: u32) -> Plan {
    let (open, mut declined) = admissible(found, called);
    let problem = problem(&open, called, budget_tokens);
    let picks = problem.greedy();
    let taken: BTreeSet<_> = picks.items.iter().copied().collect();
    for (index, candidate) in open.iter().enumerate().filter(|(index, _)| !taken.contains(index)) {
        let reason = if picks.displaced.contains(&index) { DeclineReason::Preempted } else { DeclineReason::Budget };
        declined.push(decline(candidate, reason));
    }
    Plan { calls: picks.items.iter().map(|&index| open[index].clone()).collect(), declined }
}

/// The knapsack that [`plan`] solves, to be held against the optimum.
pub fn knapsack(found: &Candidates, called: &BTreeSet<String>, budget_tokens: u32) -> KnapsackProblem {
    let (open, _) = admissible(found.clone(), called);
    problem(&open, called, budget_tokens)
}

/// Candidates that are worth something, or free, and whose prerequisites can be met; all else is declined. Sorted, so
/// that the plan does not depend on the order of the candidates; of equals the first of a list is the first.
fn admissible(found: Candidates, called: &BTreeSet<String>) -> (Vec<Candidate>, Vec<Declined>) {
    let Candidates { mut open, mut declined } = found;
    open.sort_by(|a, b| (&a.request.tool, a.rank, &a.request).cmp(&(&b.request.tool, b.rank, &b.request)));
    let (open, worthless): (Vec<_>, Vec<_>) =
        open.into_iter().partition(|call| call.charged_tokens() == 0 || call.expected_value() > 0.0);
    declined.extend(worthless.iter().map(|candidate| decline(candidate, DeclineReason::LowProbability)));
    let grounded = grounded(&open, called);
    let (open, stranded): (Vec<_>, Vec<_>) =
        open.into_iter().partition(|candidate| grounded.contains(&candidate.request.tool));
    declined.extend(stranded.iter().map(|candidate| decline(candidate, DeclineReason::PrereqMissing)));
    (open, declined)
}

/// Tools of the candidates whose prerequisites were called, or can be called before them. Tools that wait for each
/// other are not among them.
fn grounded(open: &[Candidate], called: &BTreeSet<String>) -> BTreeSet<String> {
    let mut grounded = BTreeSet::new();
    loop {
        let before = grounded.len();
        for candidate in open {
            let is_met = |tool: &String| called.contains(tool) || grounded.contains(tool);
            if candidate.requires.iter().all(is_met) {
                grounded.insert(candidate.request.tool.clone());
            }
        }
        if grounded.len() == before {
            return grounded;
        }
    }
}

fn problem(open: &[Candidate], called: &BTreeSet<String>, budget_tokens: u32) -> KnapsackProblem {
    let calls_of =
        |tool: &String| -> Vec<usize> { (0..open.len()).filter(|&index| open[index].request.tool == *tool).collect() };
    let item = |candidate: &Candidate| KnapsackItem {
        cost: candidate.charged_tokens(),
        value: candidate.expected_value(),
        needs: candidate.requires.iter().filter(|tool| !called.contains(*tool)).map(calls_of).collect(),
    };
    KnapsackProblem { items: open.iter().map(item).collect(), budget: budget_tokens.into() }
}

fn decline(candidate: &Candidate, reason: DeclineReason) -> Declined {
    let Candidate { request, .. } = candidate;
    Declined { tool: request.tool.clone(), argument: Some(request.argument.clone()), reason }
}

/// What a call is expected to cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedCost {
    /// UTF-8 bytes of the answer.
    pub bytes: u64,
    /// Tokens of the answer.
    pub tokens: u64,
}

impl ExpectedCost {
    /// `typical_kb` KiB in single precision, as the published schema holds it, cut to whole bytes and whole tokens. A
    /// ratio below one byte per token counts as one.
    pub fn of(cost: &CostModel, bytes_per_token: f64) -> Self {
        let bytes = (cost.typical_kb as f32 * 1024.0) as u64;
        Self { bytes, tokens: (bytes as f64 / bytes_per_token.max(1.0)) as u64 }
    }

    /// Tokens that a budget is charged: nothing for the agent's bookkeeping, at least 1 for all else.
    pub fn charged(self, class: ValueClass) -> u64 {
        if class == ValueClass::AuditOnly { 0 } else { self.tokens.max(1) }
    }
}

/// 1 and the value of every group that is left out by default and has a field whose name contains a keyword, up to the
/// cap. Letter case does not matter.
pub fn intent_boost<'k>(model: &ToolModel, keywords: impl IntoIterator<Item = &'k str>, numbers: &ScoreNumbers) -> f64 {
    let keywords: Vec<_> = keywords.into_iter().map(str::to_ascii_lowercase).collect();
    let is_meant = |field: &String| keywords.iter().any(|word| field.to_ascii_lowercase().contains(word));
    let groups = model.field_groups.values().filter(|group| !group.default_include);
    let meant = groups.filter(|group| group.fields.iter().any(is_meant));
    meant.fold(1.0, |boost: f64, group| boost + group.estimated_value).min(numbers.boost_max)
}

/// The published worth of a call: class and intent, whatever its probability. No host uses the published preset
/// `cost_aware`, by which slow and dear calls are worth less.
pub fn worth<'k>(model: &ToolModel, keywords: impl IntoIterator<Item = &'k str>, numbers: &PlannerThresholds) -> f64 {
    numbers.class_scores.of(model.value_class) * intent_boost(model, keywords, &numbers.score)
}
