//! What the best choice of a small knapsack with prerequisites is worth, by branch and bound (Land and Doig 1960): what
//! greedy is held against.

use crate::planner::knapsack::KnapsackProblem;

/// What the best choice is worth; `None` if there are more than `items_max` items.
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
