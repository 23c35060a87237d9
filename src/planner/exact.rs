//! The optimum of a small knapsack with prerequisites, by branch and bound (Land and Doig 1960): what greedy is held
//! against.

use crate::planner::knapsack::{KnapsackChoice, KnapsackProblem};

/// How far greedy stays behind the optimum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// Worth of the greedy choice.
    pub greedy: f64,
    /// Worth of the best choice.
    pub optimum: f64,
}

impl Gap {
    /// What greedy loses, as a share of the optimum; 0 if there is nothing to gain.
    pub fn share(&self) -> f64 {
        if self.optimum > 0.0 { (1.0 - self.greedy / self.optimum).max(0.0) } else { 0.0 }
    }
}

/// The gap of greedy for one problem; `None` if it has more than `items_max` items.
pub fn gap(problem: &KnapsackProblem, items_max: usize) -> Option<Gap> {
    let optimum = optimum(problem, items_max)?;
    Some(Gap { greedy: problem.greedy().value, optimum: optimum.value })
}

/// The best choice, in the order of the items; `None` if there are more than `items_max`.
pub fn optimum(problem: &KnapsackProblem, items_max: usize) -> Option<KnapsackChoice> {
    if problem.items.len() > items_max {
        return None;
    }
    let mut order: Vec<_> = (0..problem.items.len()).collect();
    let density = |&item: &usize| {
        let item = &problem.items[item];
        if item.cost == 0 { f64::INFINITY } else { item.value / item.cost as f64 }
    };
    order.sort_by(|a, b| density(b).total_cmp(&density(a)).then(a.cmp(b)));
    let none = vec![false; order.len()];
    let mut search = Search { problem, order, chosen: none.clone(), best: none, best_value: 0.0 };
    search.descend(0, problem.budget, 0.0);
    Some(search.picks())
}

struct Search<'a> {
    problem: &'a KnapsackProblem,
    order: Vec<usize>,
    chosen: Vec<bool>,
    best: Vec<bool>,
    best_value: f64,
}

impl Search<'_> {
    /// Decides about the items from `depth` on.
    fn descend(&mut self, depth: usize, room: u64, value: f64) {
        if value > self.best_value && self.is_closed() {
            self.best.clone_from(&self.chosen);
            self.best_value = value;
        }
        if depth == self.order.len() || value + self.bound(depth, room) <= self.best_value {
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

    fn picks(&self) -> KnapsackChoice {
        let items: Vec<usize> = (0..self.best.len()).filter(|&item| self.best[item]).collect();
        let cost = items.iter().map(|&item| self.problem.items[item].cost).sum();
        KnapsackChoice { items, cost, value: self.best_value, displaced: Vec::new() }
    }
}
