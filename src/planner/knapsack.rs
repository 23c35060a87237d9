//! The knapsack of the planner: items with prerequisites, chosen greedily by value per cost.
//!
//! Without prerequisites the choice is worth at least half of the optimum: the items that fit before the first misfit,
//! and that misfit alone, together are worth at least as much as the fractional optimum (Dantzig 1957), and the choice
//! is worth no less than either. With prerequisites no such bound holds; `exact` measures what is lost.
//!
//! The optimum of a small knapsack with prerequisites, by branch and bound (Land and Doig 1960): what greedy is held
//! against.

use std::collections::BTreeSet;

/// Something to choose or leave.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What it costs, in tokens.
    pub cost: u64,
    /// What it is worth; finite, at least 0.
    pub value: f64,
    /// For each prerequisite the items of which one has to be chosen too.
    pub needs: Vec<Vec<usize>>,
}

/// Items and what may be spent. The needs must not run in circles.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The items; earlier ones come first among equals.
    pub items: Vec<Item>,
    /// What the choice may cost.
    pub budget: u64,
}

/// A choice.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Picks {
    /// Indices of items in the order in which they were taken, prerequisites first.
    pub items: Vec<usize>,
    /// What they cost.
    pub cost: u64,
    /// What they are worth.
    pub value: f64,
    /// Items that were taken and then put back for a single better one.
    pub displaced: Vec<usize>,
}

impl Problem {
    /// By density, everything that still fits; if one item with its prerequisites is worth more than all that, it goes
    /// first.
    pub fn greedy(&self) -> Picks {
        let order = self.by_density();
        let walked = self.fill(&order, Picks::default());
        let fitting = order.iter().map(|&item| self.with(item, Picks::default()));
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
    pub(super) fn by_density(&self) -> Vec<usize> {
        let density = |item: usize| {
            let bundle = self.with(item, Picks::default());
            if bundle.cost == 0 { f64::INFINITY } else { bundle.value / bundle.cost as f64 }
        };
        let mut order: Vec<_> = (0..self.items.len()).map(|item| (density(item), item)).collect();
        order.sort_by(|(a, left), (b, right)| b.total_cmp(a).then(left.cmp(right)));
        order.into_iter().map(|(_, item)| item).collect()
    }

    fn fill(&self, order: &[usize], start: Picks) -> Picks {
        order.iter().fold(start, |picks, &item| {
            let wider = self.with(item, picks.clone());
            if wider.cost <= self.budget { wider } else { picks }
        })
    }

    /// The choice with an item and what it needs; of several that would do the cheapest is taken.
    fn with(&self, item: usize, mut picks: Picks) -> Picks {
        if picks.items.contains(&item) {
            return picks;
        }
        let Item { cost, value, needs } = &self.items[item];
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
pub fn gap(problem: &Problem, items_max: usize) -> Option<Gap> {
    let optimum = optimum(problem, items_max)?;
    Some(Gap { greedy: problem.greedy().value, optimum: optimum.value })
}

/// The best choice, in the order of the items; `None` if there are more than `items_max`.
pub fn optimum(problem: &Problem, items_max: usize) -> Option<Picks> {
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
    problem: &'a Problem,
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

    fn picks(&self) -> Picks {
        let items: Vec<usize> = (0..self.best.len()).filter(|&item| self.best[item]).collect();
        let cost = items.iter().map(|&item| self.problem.items[item].cost).sum();
        Picks { items, cost, value: self.best_value, displaced: Vec::new() }
    }
}
