//! The best selection of all, if there are not too many to look at.
//!
//! Every path that may still be better than what is known is followed. Of those that meet in a place only the ones stay
//! that no other beats in both value and cost (label setting for the shortest path with a resource constraint); what a
//! path can become is bounded by what is ahead of it at the price that was found.

use std::cmp::Reverse;

use crate::facts::budget::graph::{Graph, State};
use crate::facts::budget::price::{Market, gains_ahead};

/// Paths that are followed: some milliseconds.
const LABELS_MAX: usize = 1 << 17;

/// How the search ended.
pub enum SearchEnd {
    /// This selection is better than what was known, and the best.
    Better(Vec<bool>),
    /// What was known is the best.
    NoneBetter,
    /// There are too many.
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

/// Looks for the best selection that fits and is worth more than `known`.
pub fn search(graph: &Graph, budget: u64, market: &Market, known: u64) -> SearchEnd {
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
