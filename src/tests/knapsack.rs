//! The knapsack against an exact dynamic programme over every budget, and against inputs that upset weaker solvers.

use proptest::prelude::*;

use crate::facts::knapsack::{Choice, Solution, solve};
use crate::tests::log_builder::cases;

fn choice(cost: u64, value: u64) -> Choice {
    Choice { cost, value }
}

/// Options given as (cost, value).
fn class(options: &[(u64, u64)]) -> Vec<Choice> {
    options.iter().map(|&(cost, value)| choice(cost, value)).collect()
}

/// The optimum for every budget up to this one: the definition, spelled out. `None` where nothing fits.
fn optima(classes: &[Vec<Choice>], budget: usize) -> Vec<Option<u64>> {
    classes.iter().fold(vec![Some(0); budget + 1], |before, class| {
        let best = |room: usize| {
            let worth = |choice: &Choice| {
                let rest = room.checked_sub(choice.cost as usize)?;
                Some(before[rest]? + choice.value)
            };
            class.iter().filter_map(worth).max()
        };
        (0..=budget).map(best).collect()
    })
}

/// Checks everything that a solution claims about itself, and returns it.
fn solved(classes: &[Vec<Choice>], budget: u64) -> Option<Solution> {
    let solution = solve(classes, budget)?;
    assert_eq!(solution.picks.len(), classes.len());
    let picked: Vec<Choice> = classes.iter().zip(&solution.picks).map(|(class, &pick)| class[pick]).collect();
    assert_eq!(solution.cost, picked.iter().map(|choice| u128::from(choice.cost)).sum::<u128>());
    assert_eq!(solution.value, picked.iter().map(|choice| u128::from(choice.value)).sum::<u128>());
    assert!(solution.cost <= u128::from(budget), "over budget: {solution:?}");
    assert!(solution.value <= solution.upper_bound, "worth more than its bound: {solution:?}");
    assert_eq!(solution.exact, solution.value == solution.upper_bound);
    assert!((0.0..=1.0).contains(&solution.gap()));
    Some(solution)
}

fn any_choice() -> impl Strategy<Value = Choice> {
    (0_u64..30, 0_u64..40).prop_map(|(cost, value)| choice(cost, value))
}

/// Classes of random options, or of the kinds that are hard: worth what they cost, worth that and a bonus, all worth
/// the same.
fn any_classes() -> impl Strategy<Value = Vec<Vec<Choice>>> {
    let class = (0..4, prop::collection::vec(any_choice(), 1..6)).prop_map(|(kind, options)| {
        let revalued = |option: &Choice| match kind {
            0 => *option,
            1 => choice(option.cost, option.cost),
            2 => choice(option.cost, if option.cost == 0 { 0 } else { option.cost + 10 }),
            _ => choice(option.cost, 7),
        };
        options.iter().map(revalued).collect()
    });
    prop::collection::vec(class, 0..24)
}

/// A sequence that looks random and is the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A body of 1,000 nodes: nothing, or one of five encodings that tell different amounts.
fn body(numbers: &mut Numbers) -> Vec<Vec<Choice>> {
    let node = |numbers: &mut Numbers| {
        let tokens = 5 + numbers.below(60);
        let mut options = vec![choice(0, 0)];
        options.extend((1..6).map(|fine| choice(tokens * fine + numbers.below(9), 40 * fine - fine * fine * 3)));
        options
    };
    (0..1000).map(|_| node(numbers)).collect()
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn is_the_optimum_or_within_its_own_bound(classes in any_classes(), budget in 0_usize..400) {
        let optimum = optima(&classes, budget)[budget];
        match (solved(&classes, budget as u64), optimum) {
            (Some(solution), Some(optimum)) => {
                let optimum = u128::from(optimum);
                prop_assert!(solution.value <= optimum && optimum <= solution.upper_bound, "{optimum}: {solution:?}");
                prop_assert!(solution.exact || classes.len() > 6, "an instance this small is solved: {solution:?}");
            }
            (None, None) => {}
            (result, optimum) => prop_assert!(false, "{result:?} against {optimum:?}"),
        }
    }

    #[test]
    fn more_budget_is_never_worth_less(classes in any_classes(), budget in 0_u64..150, more in 0_u64..50) {
        if let Some(solution) = solved(&classes, budget) {
            let richer = solved(&classes, budget + more).unwrap();
            prop_assert!(richer.upper_bound >= solution.value);
            prop_assert!(richer.value >= solution.value || !richer.exact);
        }
    }

    #[test]
    fn an_option_that_is_beaten_changes_nothing(
        mut classes in any_classes(),
        budget in 0_u64..150,
        at in any::<prop::sample::Index>(),
        costlier in 0_u64..5,
    ) {
        classes.push(vec![choice(3, 4)]);
        let mut wider = classes.clone();
        let class = at.index(classes.len());
        let beaten = choice(wider[class][0].cost + costlier, wider[class][0].value.saturating_sub(costlier));
        wider[class].push(beaten);
        prop_assert_eq!(solved(&wider, budget), solved(&classes, budget));
    }

    #[test]
    fn the_order_of_options_does_not_matter(classes in any_classes(), budget in 0_u64..150) {
        let mut turned = classes.clone();
        turned.iter_mut().for_each(|class| class.reverse());
        let worth = |result: Option<Solution>| result.map(|found| (found.value, found.upper_bound));
        prop_assert_eq!(worth(solved(&turned, budget)), worth(solved(&classes, budget)));
    }

    #[test]
    fn where_the_budget_does_not_bind_the_cheapest_of_the_most_valuable(classes in any_classes()) {
        let solution = solve(&classes, u64::MAX).unwrap();
        for (class, &pick) in classes.iter().zip(&solution.picks) {
            let value = class.iter().map(|choice| choice.value).max().unwrap();
            let cost = class.iter().filter(|choice| choice.value == value).map(|choice| choice.cost).min().unwrap();
            prop_assert_eq!(class[pick], choice(cost, value));
        }
        prop_assert!(solution.exact);
    }

    #[test]
    fn huge_numbers_do_not_overflow(
        classes in prop::collection::vec(prop::collection::vec((any::<u64>(), any::<u64>()), 1..4), 1..7),
        budget in any::<u64>(),
    ) {
        let classes: Vec<_> = classes.iter().map(|options| class(options)).collect();
        let mut sums = vec![(0_u128, 0_u128)];
        for class in &classes {
            let add = |&(cost, value): &(u128, u128)| {
                class.iter().map(move |choice| (cost + u128::from(choice.cost), value + u128::from(choice.value)))
            };
            sums = sums.iter().flat_map(add).collect();
        }
        let optimum = sums.iter().filter(|sum| sum.0 <= u128::from(budget)).map(|sum| sum.1).max();
        match (solved(&classes, budget), optimum) {
            (Some(solution), Some(optimum)) => {
                prop_assert!(solution.value <= optimum && optimum <= solution.upper_bound, "{optimum}: {solution:?}");
                prop_assert!(2 * solution.value >= optimum);
            }
            (result, optimum) => prop_assert!(result.is_none() && optimum.is_none(), "{result:?} against {optimum:?}"),
        }
    }
}

#[test]
fn a_thousand_nodes_are_solved_to_within_a_percent() {
    let mut numbers = Numbers(7);
    for round in 1..=20 {
        let classes = body(&mut numbers);
        let dearest: u64 = classes.iter().map(|class| class.iter().map(|choice| choice.cost).max().unwrap()).sum();
        let solution = solved(&classes, dearest * round / 22).unwrap();
        assert!(solution.gap() < 0.001, "gap {} in round {round}", solution.gap());
        assert_eq!(solve(&classes, dearest * round / 22).unwrap(), solution, "the same again");
    }
}

#[test]
fn greedy_alone_would_be_wrong() {
    // By value per cost the small one comes first, and the large one no longer fits.
    let classes = [class(&[(0, 0), (1, 2)]), class(&[(0, 0), (10, 10)])];
    assert_eq!(solved(&classes, 10).unwrap().picks, [0, 1]);
    // The middle option of the first class is below its hull: the relaxation never takes it, the optimum may.
    let classes = [class(&[(0, 0), (5, 9), (10, 20)]), class(&[(0, 0), (6, 10)])];
    assert_eq!(solved(&classes, 11).unwrap().picks, [2, 0]);
    let classes = [class(&[(0, 0), (5, 9), (10, 20)]), class(&[(0, 0), (6, 13)])];
    assert_eq!(solved(&classes, 11).unwrap().picks, [1, 1]);
}

#[test]
fn what_is_hard_for_a_relaxation_is_enumerated() {
    // Worth what they cost: every fill is on the relaxed bound, only a sum finds the one that is whole.
    let classes: Vec<_> = [2, 4, 6, 8, 10, 12, 14].map(|cost| class(&[(0, 0), (cost, cost)])).into();
    for budget in 0..=57 {
        assert_eq!(solved(&classes, budget).unwrap().value, u128::from(budget.min(56) & !1), "budget {budget}");
    }
}

#[test]
fn a_bound_holds_where_the_optimum_is_not_found() {
    // Worth what they cost, and a budget that a secret choice uses up: the optimum is the budget itself.
    let mut numbers = Numbers(3);
    for _ in 0..50 {
        let items: Vec<(u64, bool)> =
            (0..60).map(|_| (1 + numbers.below(1_000_000_000), numbers.below(2) == 1)).collect();
        let budget = items.iter().filter(|(_, secret)| *secret).map(|(cost, _)| cost).sum();
        let classes: Vec<_> = items.iter().map(|&(cost, _)| class(&[(0, 0), (cost, cost)])).collect();
        let solution = solved(&classes, budget).unwrap();
        assert_eq!(solution.upper_bound, u128::from(budget));
        assert!(solution.gap() < 0.01);
    }
}

#[test]
fn edges() {
    assert_eq!(solved(&[], 0).unwrap(), Solution { picks: vec![], cost: 0, value: 0, upper_bound: 0, exact: true });
    assert_eq!(solved(&[class(&[(1, 1)]), vec![]], 9), None);
    assert_eq!(solved(&[class(&[(1, 1)]), class(&[(2, 9), (3, 9)])], 2), None);
    let skipped = [class(&[(0, 0), (1, 5)])];
    assert_eq!(solved(&skipped, 0).unwrap().picks, [0]);
    let free = [class(&[(0, 0), (0, 5), (0, 4)]), class(&[(0, 0), (3, 1)])];
    assert_eq!(solved(&free, 0).unwrap().picks, [1, 0]);
    let most = u64::MAX;
    let huge = vec![class(&[(0, 0), (most, most)]); 1000];
    assert_eq!(solved(&huge, most).unwrap().value, u128::from(most));
    assert_eq!(solved(&vec![class(&[(most, 1)]); 3], most), None);
}

#[test]
fn equal_ratios_by_the_hundred_thousand() {
    let classes = vec![class(&[(0, 0), (3, 3), (6, 6), (9, 9)]); 100_000];
    let solution = solved(&classes, 500_000).unwrap();
    assert!(solution.value >= 499_998 && solution.upper_bound <= 500_000);
}

#[test]
fn one_class_with_a_hundred_thousand_options() {
    let options: Vec<_> = (0..100_000).map(|cost| choice(cost, cost + cost % 7)).collect();
    let solution = solved(&[options], 77_777).unwrap();
    assert_eq!((solution.cost, solution.value, solution.exact), (77_776, 77_782, true));
}
