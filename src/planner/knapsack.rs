//! The knapsack of the planner: items with prerequisites, chosen greedily by value per cost; and what the best choice of a
//! small one is worth, against which greedy is held.
//!
//! Without prerequisites the choice is worth at least half of the optimum: the items that fit before the first misfit,
//! and that misfit alone, together are worth at least as much as the fractional optimum (Dantzig 1957), and the choice
//! is worth no less than either. With prerequisites no such bound holds; [`optimum`] measures what is lost.

use std::collections::BTreeSet;

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
    /// What they cost.
    pub cost: u64,
    /// What they are worth.
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
