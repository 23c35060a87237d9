//! The plan for one result: which candidates are prefetched within the budget, why the others are not, and what a call is worth
//! and costs by its value model (Paper 3, "Knapsack algorithm"). Every request is charged, and no class is guaranteed a place.
//!
//! Items with prerequisites are chosen greedily by value per cost. Without prerequisites the choice is worth at least half of
//! the optimum: the items that fit before the first misfit, and that misfit alone, together are worth at least as much as the
//! fractional optimum (Dantzig 1957). With them no such bound holds; [`optimum`] measures what is lost.

use std::collections::BTreeSet;

use crate::planner::candidates::{Candidate, Candidates, Declined};
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

/// Something to choose or leave.
#[derive(Debug, Clone, PartialEq)]
pub struct KnapsackItem {
    /// What it costs, in tokens.
    pub cost: u64,
    /// What it is worth; finite, at least 0.
    pub value: f64,
    /// For each prerequisite the items of which one has to be chosen too.
    pub needs: Vec<Vec<usize>>,
}

/// Items and what may be spent. The needs must not run in circles.
#[derive(Debug, Clone, PartialEq)]
pub struct KnapsackProblem {
    /// The items; earlier ones come first among equals.
    pub items: Vec<KnapsackItem>,
    /// What the choice may cost.
    pub budget: u64,
}

/// A choice.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KnapsackChoice {
    /// Indices of items in the order in which they were taken, prerequisites first.
    pub items: Vec<usize>,
    pub cost: u64,
    pub value: f64,
    /// Items that were taken and then put back for a single better one.
    pub displaced: Vec<usize>,
}

impl KnapsackProblem {
    /// By density, everything that still fits; if one item with its prerequisites is worth more than all that, it goes
    /// first.
    pub fn greedy(&self) -> KnapsackChoice {
        let order = self.by_density();
        let walked = self.fill(&order, KnapsackChoice::default());
        let fitting = order.iter().map(|&item| self.with(item, KnapsackChoice::default()));
        let single = fitting
            .filter(|picks| picks.cost <= self.budget)
            .reduce(|best, other| if other.value > best.value { other } else { best });
        match single.filter(|single| single.value > walked.value) {
            None => walked,
            Some(single) => {
                let mut picks = self.fill(&order, single);
                let kept: BTreeSet<_> = picks.items.iter().copied().collect();
                picks.displaced = walked.items.into_iter().filter(|item| !kept.contains(item)).collect();
                picks
            }
        }
    }

    /// Items by value per cost, each together with its prerequisites.
    fn by_density(&self) -> Vec<usize> {
        let density = |item: usize| {
            let bundle = self.with(item, KnapsackChoice::default());
            if bundle.cost == 0 { f64::INFINITY } else { bundle.value / bundle.cost as f64 }
        };
        let mut order: Vec<_> = (0..self.items.len()).map(|item| (density(item), item)).collect();
        order.sort_by(|(a, left), (b, right)| b.total_cmp(a).then(left.cmp(right)));
        order.into_iter().map(|(_, item)| item).collect()
    }

    fn fill(&self, order: &[usize], start: KnapsackChoice) -> KnapsackChoice {
        order.iter().fold(start, |picks, &item| {
            let wider = self.with(item, picks.clone());
            if wider.cost <= self.budget { wider } else { picks }
        })
    }

    /// The choice with an item and what it needs; of several that would do the cheapest is taken.
    fn with(&self, item: usize, mut picks: KnapsackChoice) -> KnapsackChoice {
        if picks.items.contains(&item) {
            return picks;
        }
        let KnapsackItem { cost, value, needs } = &self.items[item];
        for choices in needs {
            if !choices.iter().any(|choice| picks.items.contains(choice)) {
                let wider = choices.iter().map(|&choice| self.with(choice, picks.clone()));
                picks = wider.min_by_key(|wider| wider.cost).unwrap_or(picks);
            }
        }
        picks.items.push(item);
        picks.cost += cost;
        picks.value += value;
        picks
    }
}

/// What the best choice is worth, by branch and bound (Land and Doig 1960); `None` if there are more than `items_max` items.
pub fn optimum(problem: &KnapsackProblem, items_max: usize) -> Option<f64> {
    if problem.items.len() > items_max {
        return None;
    }
    let mut order: Vec<_> = (0..problem.items.len()).collect();
    let density = |&item: &usize| {
        let item = &problem.items[item];
        if item.cost == 0 { f64::INFINITY } else { item.value / item.cost as f64 }
    };
    order.sort_by(|a, b| density(b).total_cmp(&density(a)).then(a.cmp(b)));
    let mut search = Search { problem, chosen: vec![false; order.len()], order, best: 0.0 };
    search.descend(0, problem.budget, 0.0);
    Some(search.best)
}

struct Search<'a> {
    problem: &'a KnapsackProblem,
    order: Vec<usize>,
    chosen: Vec<bool>,
    best: f64,
}

impl Search<'_> {
    /// Decides about the items from `depth` on.
    fn descend(&mut self, depth: usize, room: u64, value: f64) {
        if value > self.best && self.is_closed() {
            self.best = value;
        }
        if depth == self.order.len() || value + self.bound(depth, room) <= self.best {
            return;
        }
        let item = self.order[depth];
        let (cost, worth) = (self.problem.items[item].cost, self.problem.items[item].value);
        if cost <= room {
            self.chosen[item] = true;
            self.descend(depth + 1, room - cost, value + worth);
            self.chosen[item] = false;
        }
        self.descend(depth + 1, room, value);
    }

    /// What the items from `depth` on could add at most: in fractions, and without their prerequisites.
    fn bound(&self, depth: usize, mut room: u64) -> f64 {
        let mut bound = 0.0;
        for item in self.order[depth..].iter().map(|&item| &self.problem.items[item]) {
            if item.cost > room {
                return bound + item.value * room as f64 / item.cost as f64;
            }
            room -= item.cost;
            bound += item.value;
        }
        bound
    }

    fn is_closed(&self) -> bool {
        let chosen = self.problem.items.iter().zip(&self.chosen).filter(|(_, chosen)| **chosen);
        chosen.flat_map(|(item, _)| &item.needs).all(|choices| choices.iter().any(|&choice| self.chosen[choice]))
    }
}
