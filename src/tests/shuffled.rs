//! What order explains, against plain enumeration of all orders, and on generated contexts in which nothing follows
//! anything.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::planted::Random;
use crate::base::id::IdMap;
use crate::base::names::{Names, Sym};
use crate::base::significance::{Chance, LaggedPairs, MessageSums, chance};
use crate::frames::edge::{Activity, Edge, EdgeThresholds, Turns};
use crate::mine::shuffled::{ShuffledMessage, WantedPairs};
use crate::mine::{edges, shuffled};

/// All orders of `0..n`.
fn orders(n: usize) -> Vec<Vec<usize>> {
    let Some(last) = n.checked_sub(1) else { return vec![Vec::new()] };
    let shorter = orders(last);
    let insert = |order: &Vec<usize>, at: usize| [&order[..at], &[last], &order[at..]].concat();
    shorter.iter().flat_map(|order| (0..n).map(|at| insert(order, at)).collect::<Vec<_>>()).collect()
}

proptest! {
    #![proptest_config(super::log_builder::cases(64))]

    #[test]
    fn mean_and_variance_are_those_of_all_orders(
        messages in prop::collection::vec((0_u32..3, 0_u32..3), 1..7),
        gaps in prop::collection::vec(1_usize..3, 7),
        lag in 1_usize..3,
        same in any::<bool>(),
    ) {
        let a: Vec<f64> = messages.iter().map(|(a, _)| f64::from(*a)).collect();
        let b: Vec<f64> = if same { a.clone() } else { messages.iter().map(|(_, b)| f64::from(*b)).collect() };
        let places: Vec<usize> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).take(a.len()).collect();
        let at = |place: usize| places.iter().position(|known| *known == place);
        let pairs: Vec<(usize, usize)> = places.iter().enumerate().filter_map(|(i, place)| Some((i, at(place + lag)?))).collect();
        let counts: Vec<f64> = orders(a.len())
            .iter()
            .map(|order| pairs.iter().map(|&(i, j)| a[order[i]] * b[order[j]]).sum())
            .collect();
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64;
        let sum = |of: &dyn Fn(f64, f64) -> f64| a.iter().zip(&b).map(|(a, b)| of(*a, *b)).sum::<f64>();
        let sums = MessageSums {
            a: [sum(&|a, _| a), sum(&|a, _| a * a)],
            b: [sum(&|_, b| b), sum(&|_, b| b * b)],
            both: [sum(&|a, b| a * b), sum(&|a, b| a * a * b), sum(&|a, b| a * b * b), sum(&|a, b| a * a * b * b)],
        };
        let chained = pairs.iter().filter(|(_, j)| pairs.iter().any(|(i, _)| i == j)).count() as u64;
        let found = chance(LaggedPairs { messages: a.len() as u64, pairs: pairs.len() as u64, chained }, &sums);
        prop_assert!((found.expected - mean).abs() < 1e-9, "{} is not {}", found.expected, mean);
        prop_assert!((found.variance - variance).abs() < 1e-7, "{} is not {}", found.variance, variance);
    }
}

#[test]
fn the_tail_is_near_that_of_a_poisson_variable_where_that_is_what_it_is() {
    for mean in [0.5_f64, 2.0, 10.0, 60.0] {
        let chance = Chance { expected: mean, variance: mean };
        let (mut term, mut below) = ((-mean).exp(), 0.0);
        for count in 0_u64..150 {
            let (tail, found) = (1.0 - below, chance.p_at_least(count));
            if tail > 1e-4 && count as f64 > mean {
                assert!((found / tail).ln().abs() < 0.35, "{count} of {mean}: {found} is not {tail}");
            }
            below += term;
            term *= mean / (count + 1) as f64;
        }
    }
}

/// A context of many tools, each called once: only pairs that are wanted have a chance, and it is the same for all that.
#[test]
fn chances_are_those_of_wanted_pairs_alone() {
    let tool = |at: u32| Sym(at + 1);
    let message = |at: u32| ShuffledMessage { place: at.into(), turn: 0, tools: [(tool(at), 1)].into() };
    let messages: Vec<ShuffledMessage> = (0..300).map(message).collect();
    let chances = |pairs: Vec<(Sym, Sym)>| {
        let mut out = IdMap::default();
        shuffled::add(&messages, (&[1, 2], Turns::All), &WantedPairs::of(pairs.into_iter()), &mut out);
        out
    };
    let neighbours = chances((0..299).map(|at| (tool(at), tool(at + 1))).collect());
    assert_eq!(neighbours.len(), 2 * 299);
    let all = chances((0..300).flat_map(|from| (0..300).map(move |to| (tool(from), tool(to)))).collect());
    assert_eq!(all.len(), 2 * 300 * 300);
    assert!(neighbours.iter().all(|(pair, chance)| all[pair] == *chance && chance.expected > 0.0));
}

/// Contexts that differ in what they use: each has a few tools of twelve. Nothing follows anything.
fn shuffled(seed: u64) -> Vec<Activity> {
    let mut random = Random(seed);
    let mut rows = Vec::new();
    for case in 0..60_u32 {
        let tools: Vec<u32> = (0..4).map(|_| random.within(1, 12) as u32).collect();
        for place in 0..40_u64 {
            let tool = Sym(*random.pick(&tools));
            rows.push(Activity {
                case,
                session: case,
                place: u64::from(case) << 32 | place,
                turn: 0,
                tool,
                asked: None,
                answered: None,
            });
        }
    }
    rows
}

fn found(activities: &[Activity]) -> Vec<Edge> {
    let names = Names::from_texts((0..13).map(|number| format!("T{number}")).collect());
    let sums = edges::sums(activities, &names, &[1, 2], false, Turns::All).unwrap();
    edges::edges(&sums, &EdgeThresholds { q_max: 0.05, count_min: 20, sessions_min: 5 })
}

#[test]
fn shuffled_messages_leave_about_alpha_significant() {
    let (mut below, mut all, mut significant, mut lifted) = (0, 0, 0, 0);
    for seed in 1..=12 {
        for edge in found(&shuffled(seed)) {
            let expected = edge.sum.chance.unwrap().expected;
            // A count of few steps as that of a rare pair reaches no level exactly.
            if expected >= 5.0 {
                all += 1;
                below += usize::from(edge.p.unwrap() <= 0.05);
            }
            significant += usize::from(edge.significant);
            lifted += usize::from(edge.lift.unwrap() > 1.5);
        }
    }
    let share = below as f64 / f64::from(all);
    assert!(all > 500 && lifted > 100, "the contexts differ: {lifted} of {all}");
    assert!((0.02..=0.07).contains(&share), "{below} of {all}");
    assert!(significant <= 12, "{significant} of {all} called significant");
}

#[test]
fn a_habit_stands_out_from_the_order() {
    let mut rows = shuffled(7);
    // After every T0 comes T1: symbol 0 is the empty name.
    for at in 1..rows.len() {
        if rows[at].case == rows[at - 1].case && rows[at - 1].tool == Sym(1) {
            rows[at].tool = Sym(2);
        }
    }
    let edges = found(&rows);
    let habit = edges.iter().find(|edge| edge.from == "T0" && edge.to == "T1" && edge.sum.lag == Some(1)).unwrap();
    assert!(habit.significant && habit.p.unwrap() < 1e-6, "{habit:?}");
}

/// Which turn a pair lies in belongs to the places, not to the messages.
#[test]
fn only_pairs_that_are_counted_have_a_chance() {
    let rows: Vec<Activity> =
        shuffled(3).into_iter().map(|row| Activity { turn: (row.place as u32) / 5, ..row }).collect();
    let names = Names::from_texts((0..13).map(|number| format!("T{number}")).collect());
    let expected = |turns: Turns| -> BTreeMap<(Sym, Sym), f64> {
        let sums = edges::sums(&rows, &names, &[1], false, turns).unwrap();
        sums.edges.iter().map(|sum| ((sum.from, sum.to), sum.chance.unwrap().expected)).collect()
    };
    let (all, within, across) = (expected(Turns::All), expected(Turns::Within), expected(Turns::Across));
    for (pair, all) in &all {
        if let (Some(within), Some(across)) = (within.get(pair), across.get(pair)) {
            assert!((all - within - across).abs() < 1e-6, "{pair:?}: {all} is not {within} and {across}");
        }
    }
}
