//! Which nodes of an outline to keep.
//!
//! It is a multiple-choice knapsack (the forms of a node, or nothing) in which hints and heads cost tokens too. Good
//! selections come from the knapsack, with as much put aside for heads and hints as they turn out to need, and from the
//! price search, which knows them; both are filled up. The best one, if it is within reach, is enumerated.

use std::cmp::Reverse;

use crate::facts::budget::graph::{Graph, State};
use crate::facts::budget::price::{self, Market, gains_ahead};
use crate::facts::knapsack;

/// How often the knapsack is solved, each time with more put aside.
const ROUNDS_MAX: usize = 4;
/// How many nodes that do not fit are passed over when a selection is filled up.
const PASSES_MAX: usize = 16;
/// Paths that are followed: some milliseconds.
const LABELS_MAX: usize = 1 << 17;

/// Some of the nodes.
pub struct NodeSelection {
    /// Whether a part of the outline is a node that is kept.
    pub kept: Vec<bool>,
    /// What the kept nodes are worth.
    pub value: u64,
    /// What no selection that fits can exceed, as far as a text costs what its parts cost.
    pub upper_bound: u64,
}

/// The nodes to keep; `None` if nothing fits.
pub fn select(graph: &Graph, budget: u64) -> Option<NodeSelection> {
    let market = price::search(graph, budget)?;
    let kept = fill(graph, market.fits.kept.clone(), &market.over.kept, budget);
    let mut best = NodeSelection { value: graph.value(&kept), kept, upper_bound: market.upper_bound };
    if let Some(kept) = from_knapsack(graph, budget) {
        best.improve(graph, fill(graph, kept, &market.over.kept, budget));
    }
    if best.value < best.upper_bound {
        match search(graph, budget, &market, best.value) {
            SearchEnd::TooMany => return Some(best),
            SearchEnd::NoneBetter => {}
            SearchEnd::Better(kept) => best.improve(graph, kept),
        }
    }
    best.upper_bound = best.value;
    Some(best)
}

impl NodeSelection {
    fn improve(&mut self, graph: &Graph, kept: Vec<bool>) {
        let value = graph.value(&kept);
        if value > self.value {
            (self.kept, self.value) = (kept, value);
        }
    }
}

/// The knapsack's choice, if heads and hints fit beside it.
fn from_knapsack(graph: &Graph, budget: u64) -> Option<Vec<bool>> {
    let mut reserve = 0;
    for _ in 0..ROUNDS_MAX {
        let solution = knapsack::solve(&graph.classes, budget.checked_sub(reserve)?)?;
        let mut picked = solution.picks.iter().zip(&graph.classes).map(|(&pick, options)| options[pick].cost > 0);
        let kept: Vec<bool> =
            (0..graph.len()).map(|at| graph.form(at).is_some() && picked.next().unwrap_or(false)).collect();
        let cost = graph.cost(&kept);
        if cost <= budget {
            return Some(kept);
        }
        reserve += cost - budget;
    }
    None
}

/// Keeps more nodes as long as they fit, those that are wanted first, and passes over some that do not fit.
fn fill(graph: &Graph, mut kept: Vec<bool>, wanted: &[bool], budget: u64) -> Vec<bool> {
    let mut left_out: Vec<usize> = (0..graph.len()).filter(|&at| graph.form(at).is_some() && !kept[at]).collect();
    left_out.sort_by_key(|&at| !wanted[at]);
    let mut rest = left_out.as_slice();
    let mut more = kept.clone();
    for _ in 0..PASSES_MAX {
        let count = longest_prefix(rest.len(), |count| {
            more.clone_from(&kept);
            rest[..count].iter().for_each(|&at| more[at] = true);
            graph.cost(&more) <= budget
        });
        rest[..count].iter().for_each(|&at| kept[at] = true);
        rest = rest.get(count + 1..).unwrap_or_default();
    }
    kept
}

/// The largest count up to `most` that `fits`, if a count fits whenever a larger one does; found in few steps if small.
fn longest_prefix(most: usize, mut fits: impl FnMut(usize) -> bool) -> usize {
    let (mut count, mut step) = (0, 1);
    while count + step <= most && fits(count + step) {
        count += step;
        step *= 2;
    }
    while step > 1 {
        step /= 2;
        if count + step <= most && fits(count + step) {
            count += step;
        }
    }
    count
}

/// How the search for the best selection of all ended.
enum SearchEnd {
    /// This selection is better than what was known, and the best.
    Better(Vec<bool>),
    /// What was known is the best.
    NoneBetter,
    TooMany,
}

/// A path to some place.
#[derive(Clone, Copy)]
struct PathLabel {
    value: u64,
    cost: u64,
    /// The path without its last move, and the node that this move keeps.
    from: u32,
    kept: Option<u32>,
}

/// Looks for the best selection that fits and is worth more than `known`, if there are not too many to look at.
///
/// Every path that may still be better than what is known is followed. Of those that meet in a place only the ones stay
/// that no other beats in both value and cost (label setting for the shortest path with a resource constraint); what a
/// path can become is bounded by what is ahead of it at the price that was found.
fn search(graph: &Graph, budget: u64, market: &Market, known: u64) -> SearchEnd {
    let ahead = gains_ahead(graph, market.price);
    let mut labels = vec![PathLabel { value: 0, cost: 0, from: 0, kept: None }];
    let mut arrived: Vec<[Vec<u32>; 2]> = vec![[Vec::new(), Vec::new()]; graph.len() + 1];
    arrived[0][State::Kept as usize].push(0);
    for at in 0..graph.len() {
        for state in State::ALL {
            for from in unbeaten(std::mem::take(&mut arrived[at][state as usize]), &labels) {
                for go in graph.moves((at, state)) {
                    let PathLabel { value, cost, .. } = labels[from as usize];
                    let (value, cost) = (value + go.value, cost + go.cost);
                    let (to, next) = (go.to.0, go.to.1 as usize);
                    let value_max = market.price.value(market.price.gain(value, cost) + ahead[to][next], budget);
                    if cost <= budget && value_max > known {
                        arrived[to][next].push(labels.len() as u32);
                        labels.push(PathLabel { value, cost, from, kept: go.keeps.then_some(at as u32) });
                    }
                }
            }
            if labels.len() > LABELS_MAX {
                return SearchEnd::TooMany;
            }
        }
    }
    let value = |path: &&u32| labels[**path as usize].value;
    let best = arrived[graph.len()].iter().flatten().max_by_key(value).filter(|path| value(path) > known);
    best.map_or(SearchEnd::NoneBetter, |path| SearchEnd::Better(trace(graph, *path, &labels)))
}

/// The paths that no other beats, cheapest first.
fn unbeaten(mut paths: Vec<u32>, labels: &[PathLabel]) -> Vec<u32> {
    let label = |path: u32| labels[path as usize];
    paths.sort_unstable_by_key(|&path| (label(path).cost, Reverse(label(path).value), path));
    let mut value_max = None;
    paths.retain(|&path| {
        let better = Some(label(path).value) > value_max;
        value_max = value_max.max(Some(label(path).value));
        better
    });
    paths
}

fn trace(graph: &Graph, last: u32, labels: &[PathLabel]) -> Vec<bool> {
    let mut kept = vec![false; graph.len()];
    let mut path = last;
    while path > 0 {
        let label = labels[path as usize];
        if let Some(node) = label.kept {
            kept[node as usize] = true;
        }
        path = label.from;
    }
    kept
}
