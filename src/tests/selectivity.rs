//! The statistics of selectivity, held against planted truths.

use proptest::prelude::*;

use crate::base::bootstrap::{Resampling, interval, next};
use crate::base::data::Data;
use crate::planner::selectivity::backtest::{
    Scored, SelectiveBacktest, ThresholdPoint, backtest, curve, operating_point, point, thresholds,
};
use crate::planner::selectivity::file::Selectivity;
use crate::planner::selectivity::table::{
    CandidateCounts, Feature, FeatureCell, Features, FollowUpLink, JudgedCandidate, LinkCounts, ListKind,
};
use crate::planner::selectivity::{SHEET, SelectivityThresholds};
use crate::tests::log_builder::cases;

const RESAMPLING: Resampling = Resampling { seed: 7, samples: 400 };

fn numbers() -> SelectivityThresholds {
    SelectivityThresholds::parse(&Data::default().text(SHEET).unwrap(), SHEET).unwrap()
}

fn link(from: &str) -> FollowUpLink {
    FollowUpLink { from: from.to_owned(), to: "Read".to_owned(), argument: "file_path".to_owned() }
}

fn features(found: u32, list: ListKind) -> Features {
    Features { found, list, rank: 1, same_directory: false }
}

fn example(session: u32, trigger: u64, features: Features, exact: bool) -> JudgedCandidate {
    JudgedCandidate { session, trigger, link: link("Glob").into(), features, exact, target: exact }
}

/// A number of 0 … 1.
fn uniform(state: &mut u64) -> f64 {
    (next(state) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Sessions in which one listed file is read with `single` and one of many with `many`, and lists of lines never tell.
fn planted(sessions: u32, answers: u32, single: f64, many: f64) -> Vec<JudgedCandidate> {
    let mut state = 42;
    let mut out = Vec::new();
    for session in 0..sessions {
        for answer in 0..answers {
            let trigger = u64::from(session * answers + answer);
            let (features, p) = match answer % 3 {
                0 => (features(1, ListKind::Files), single),
                1 => (features(9, ListKind::Files), many),
                _ => (features(1, ListKind::Context), 0.05),
            };
            out.push(example(session, trigger, features, uniform(&mut state) < p));
        }
    }
    out
}

fn learned(examples: &[JudgedCandidate], training: u32) -> SelectiveBacktest {
    backtest(examples, &|session| session < training, 0.6, &numbers(), &RESAMPLING)
}

#[test]
fn the_table_recovers_planted_probabilities_within_its_bounds() {
    let table = LinkCounts::learn(&planted(40, 12, 0.85, 0.12), &numbers());
    for (features, truth) in [
        (features(1, ListKind::Files), 0.85),
        (features(9, ListKind::Files), 0.12),
        (features(1, ListKind::Context), 0.05),
    ] {
        let estimate = table.estimate(&link("Glob"), &features, &numbers()).unwrap();
        let share = estimate.counts.exact();
        assert_eq!(share.n, 160, "{features:?}");
        assert!(share.lower <= truth && truth <= share.upper, "{features:?}: {share:?}");
    }
    assert_eq!(table.estimate(&link("Grep"), &features(1, ListKind::Files), &numbers()), None, "a link never seen");
}

#[test]
fn a_cell_with_few_trials_falls_back_on_the_coarser_one() {
    let one = |n: u64, kind| (0..n).map(move |at| example(at as u32, at, features(1, kind), at.is_multiple_of(2)));
    let examples: Vec<JudgedCandidate> = one(9, ListKind::Files).chain(one(10, ListKind::Lines)).collect();
    let table = LinkCounts::learn(&examples, &numbers());
    let cell = |kind| table.estimate(&link("Glob"), &features(1, kind), &numbers()).unwrap();
    assert_eq!(cell(ListKind::Lines).cell.words(&numbers()), "found 1, list lines, rank 1, directory other");
    assert_eq!(cell(ListKind::Lines).counts.trials, 10);
    assert_eq!(cell(ListKind::Files).cell.words(&numbers()), "found 1");
    assert_eq!(cell(ListKind::Files).counts.trials, 19);
    let elsewhere = table.estimate(&link("Glob"), &features(50, ListKind::Files), &numbers()).unwrap();
    assert_eq!((elsewhere.cell, elsewhere.counts.trials), (FeatureCell::default(), 19));
    let few = LinkCounts::learn(&examples[..9], &numbers());
    assert_eq!(few.estimate(&link("Glob"), &features(1, ListKind::Files), &numbers()), None);
}

#[test]
fn numbers_fall_in_the_groups_that_their_names_say() {
    let numbers = numbers();
    let found = |found| Feature::Found.group(&features(found, ListKind::Files), &numbers);
    let names = Feature::Found.groups(&numbers);
    assert_eq!(names, ["1", "2-3", "4+"]);
    assert_eq!([1, 2, 3, 4, 900].map(|n| names[usize::from(found(n))].clone()), ["1", "2-3", "2-3", "4+", "4+"]);
    assert_eq!(Feature::Rank.groups(&numbers), ["1", "2", "3+"]);
    for kind in [ListKind::Files, ListKind::Lines, ListKind::Context] {
        let group = Feature::List.group(&features(1, kind), &numbers);
        let word = serde_json::to_value(kind).unwrap();
        assert_eq!(word, Feature::List.groups(&numbers)[usize::from(group)].as_str());
    }
    let same = Features { same_directory: true, ..features(1, ListKind::Files) };
    assert_eq!(Feature::Directory.groups(&numbers)[usize::from(Feature::Directory.group(&same, &numbers))], "same");
}

#[test]
fn the_threshold_chosen_on_earlier_sessions_keeps_its_promise_on_later_ones() {
    let result = learned(&planted(60, 12, 0.85, 0.12), 42);
    let chosen = result.chosen.unwrap();
    let judged = result.held_out.iter().find(|point| point.threshold == chosen.threshold).unwrap();
    assert!(chosen.exact.lower >= 0.6);
    // Only single files of a list: a third of the answers.
    assert_eq!((judged.exact.n, judged.coverage.k, judged.coverage.n), (18 * 4, 18 * 4, 18 * 12));
    assert!(judged.exact.lower <= 0.85 && 0.85 <= judged.exact.upper, "{judged:?}");
    let (low, high) = judged.exact_sessions.unwrap();
    assert!(low < judged.exact.value() && judged.exact.value() < high && low > 0.6);
}

#[test]
fn nothing_is_fetched_where_the_target_is_out_of_reach() {
    let result = learned(&planted(60, 12, 0.5, 0.2), 42);
    assert_eq!(result.threshold(), None);
    assert!(result.held_out[0].exact.n > 0, "without a threshold everything would be fetched");
}

#[test]
fn a_session_is_not_judged_by_its_own_counts() {
    // One long session always hits; in all others the same cell never does.
    let mut examples: Vec<JudgedCandidate> =
        (0..60).map(|at| example(0, at, features(1, ListKind::Files), true)).collect();
    examples.extend((1..6).flat_map(|session| {
        (0..4).map(move |at| example(session, u64::from(session * 100 + at), features(1, ListKind::Files), false))
    }));
    let table = LinkCounts::learn(&examples, &numbers());
    let own = table.estimate(&link("Glob"), &features(1, ListKind::Files), &numbers()).unwrap();
    assert_eq!(own.score(), 0.75, "by all counts together the cell is good");
    let result = learned(&examples, 6);
    assert_eq!(result.threshold(), None);
    // At 0.6 the long session is judged by the others, and fetches nothing; each of the others is judged by it.
    let at = result.training.iter().find(|point| point.threshold >= 0.6).unwrap();
    assert_eq!((at.exact.k, at.exact.n), (0, 20));
}

#[test]
fn one_long_session_does_not_choose_a_threshold_for_all() {
    let of = |session: u32, n: u64, hits: u64| {
        (0..n).map(move |at| {
            let exact = at < hits;
            Scored { session, trigger: u64::from(session) << 32 | at, score: Some(0.9), exact, target: exact }
        })
    };
    let long: Vec<Scored> = of(0, 100, 97).chain((1..5).flat_map(|session| of(session, 3, 1))).collect();
    let at = point(&long, 0.6, &RESAMPLING);
    assert!(at.exact.lower > 0.8, "the interval over prefetches is sure of it: {at:?}");
    assert!(at.exact_sessions.unwrap().0 < 0.6, "the one over sessions is not: {at:?}");
    assert_eq!(operating_point(&[at], 0.6), None);
    let spread: Vec<Scored> = (0..5).flat_map(|session| of(session, 20, 19)).collect();
    assert!(operating_point(&[point(&spread, 0.6, &RESAMPLING)], 0.6).is_some());
}

#[test]
fn the_probability_of_the_exact_call_is_what_counts() {
    // The argument is always right, other arguments make it another call: a Read with an offset.
    let examples: Vec<JudgedCandidate> = planted(60, 12, 0.0, 0.0)
        .into_iter()
        .map(|example| JudgedCandidate { target: true, exact: false, ..example })
        .collect();
    let result = learned(&examples, 42);
    assert_eq!(result.threshold(), None);
    assert_eq!(result.training[0].target.value(), 1.0);
}

#[test]
fn results_depend_neither_on_the_order_of_examples_nor_on_names_of_triggers() {
    let examples = planted(30, 12, 0.8, 0.2);
    let result = learned(&examples, 20);
    let mut turned: Vec<JudgedCandidate> = examples;
    turned.reverse();
    turned.rotate_left(77);
    turned.iter_mut().for_each(|example| example.trigger = u64::MAX - example.trigger);
    assert_eq!(learned(&turned, 20), result);
    assert!(result.chosen.is_some());
}

#[test]
fn the_table_is_written_and_read_as_counts() {
    let numbers = numbers();
    let result = learned(&planted(60, 12, 0.85, 0.12), 42);
    let written = Selectivity { threshold: result.threshold(), table: result.table };
    let text = written.to_toml(&numbers);
    assert!(text.contains("[[enrichment.selectivity.cells]]"), "{text}");
    let read = Selectivity::from_toml(&text, "file", &numbers).unwrap();
    assert_eq!(read.threshold, written.threshold);
    for list in [ListKind::Files, ListKind::Lines, ListKind::Context] {
        for found in [1, 2, 4] {
            let features = features(found, list);
            let estimate = |table: &LinkCounts| table.estimate(&link("Glob"), &features, &numbers);
            assert_eq!(estimate(&read.table), estimate(&written.table), "{features:?}");
        }
    }
    assert_eq!(Selectivity::from_toml("schema_version = 4", "file", &numbers).unwrap(), Selectivity::default());
}

#[test]
fn a_row_that_cannot_be_meant_is_named() {
    let read = |row: &str| {
        let head = "[[enrichment.selectivity.cells]]\nafter = \"Glob\"\ntool = \"Read\"\nargument = \"file_path\"\n";
        Selectivity::from_toml(&format!("{head}{row}"), "here.toml", &numbers())
    };
    assert!(read("trials = 10\nexact = 1\ntarget = 2").is_ok());
    for (row, word) in [
        ("trials = 10\nexact = 3\ntarget = 2", "more calls than candidates"),
        ("trials = 10\nexact = 1\ntarget = 12", "more calls than candidates"),
        ("found = \"7\"\ntrials = 10\nexact = 1\ntarget = 2", "no group \"7\""),
        ("rank = \"1\"\ntrials = 10\nexact = 1\ntarget = 2", "without what is told apart before it"),
        ("exact = 1\ntarget = 2", "trials"),
    ] {
        let error = read(row).unwrap_err().to_string();
        assert!(error.contains("here.toml") && error.contains(word), "{row}: {error}");
    }
}

#[test]
fn the_sheet_is_checked() {
    let text = Data::default().text(SHEET).unwrap().into_owned();
    for (from, to) in [
        ("threshold_step = 0.05", "threshold_step = 0.0"),
        ("found_ends = [1, 3]", "found_ends = [3, 1]"),
        ("trials_min = 10", "trials = 10"),
    ] {
        assert!(text.contains(from));
        assert!(SelectivityThresholds::parse(&text.replace(from, to), SHEET).is_err(), "{to}");
    }
}

#[test]
fn the_generator_is_splitmix64() {
    let mut state = 1_234_567;
    let first: Vec<u64> = (0..5).map(|_| next(&mut state)).collect();
    let published = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
        16_408_922_859_458_223_821,
    ];
    assert_eq!(first, published);
}

#[test]
fn an_interval_over_sessions_knows_that_prefetches_of_a_session_belong_together() {
    let wide = |interval: Option<(f64, f64)>| interval.map(|(low, high)| high - low).unwrap();
    let together: Vec<(u64, u64)> = (0..20).map(|at| if at % 2 == 0 { (10, 10) } else { (0, 10) }).collect();
    let apart: Vec<(u64, u64)> = (0..20).map(|_| (5, 10)).collect();
    assert_eq!(interval(&apart, &RESAMPLING), Some((0.5, 0.5)));
    // The standard error of the mean of 20 halves is 0.5 / √20 = 0.112; 1.96 of it on either side.
    let width = wide(interval(&together, &Resampling { seed: 1, samples: 2_000 }));
    assert!((0.38..0.50).contains(&width), "{width}");
    assert_eq!(interval(&together, &RESAMPLING), interval(&together, &RESAMPLING));
    assert_eq!(interval(&[(0, 0)], &RESAMPLING), None);
    assert_eq!(interval(&[(3, 4), (0, 0)], &RESAMPLING), Some((0.75, 0.75)), "one session tells no spread");
}

fn scored() -> impl Strategy<Value = Scored> {
    let score = prop_oneof![Just(None), (0_u32..=20).prop_map(|number| Some(f64::from(number) / 20.0))];
    (0_u32..6, 0_u64..30, score, any::<bool>(), any::<bool>()).prop_map(|(session, trigger, score, exact, other)| {
        Scored { session, trigger, score, exact, target: exact || other }
    })
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn a_higher_threshold_never_covers_more(candidates in prop::collection::vec(scored(), 0..120)) {
        let points = curve(&candidates, &thresholds(0.1), &Resampling { seed: 3, samples: 20 });
        prop_assert_eq!(points.len(), 11);
        let with_score = candidates.iter().filter(|candidate| candidate.score.is_some()).count() as u64;
        prop_assert_eq!(points[0].exact.n, with_score);
        for pair in points.windows(2) {
            prop_assert!(pair[0].coverage.k >= pair[1].coverage.k && pair[0].coverage.n == pair[1].coverage.n);
            prop_assert!(pair[0].exact.n >= pair[1].exact.n && pair[0].sessions >= pair[1].sessions);
        }
        for point in &points {
            prop_assert!(point.exact.k <= point.target.k && point.target.n == point.exact.n);
            prop_assert!(point.coverage.k <= point.exact.n);
            prop_assert_eq!(point.exact_sessions.is_some(), point.exact.n > 0);
            if let Some((low, high)) = point.exact_sessions {
                prop_assert!((0.0..=high).contains(&low) && high <= 1.0);
            }
        }
        let low = |point: &ThresholdPoint| point.exact_sessions.map_or(0.0, |(low, _)| low).min(point.exact.lower);
        let passing = points.iter().find(|point| point.threshold >= 0.3 && low(point) >= 0.3);
        prop_assert_eq!(operating_point(&points, 0.3), passing);
    }

    #[test]
    fn what_is_counted_beside_a_part_is_the_other_part(cut in 1_usize..300, seed in any::<u64>()) {
        let mut state = seed;
        let mut examples = planted(30, 10, 0.7, 0.3);
        for example in &mut examples {
            example.features.rank = 1 + (next(&mut state) % 4) as u32;
            example.features.same_directory = next(&mut state).is_multiple_of(2);
        }
        let (numbers, whole) = (numbers(), LinkCounts::learn(&examples, &numbers()));
        let (part, rest) = (LinkCounts::learn(&examples[..cut], &numbers), LinkCounts::learn(&examples[cut..], &numbers));
        for example in &examples {
            let JudgedCandidate { link, features, .. } = example;
            prop_assert_eq!(
                whole.estimate_beside(&part, link, features, &numbers),
                rest.estimate(link, features, &numbers)
            );
        }
        let all: CandidateCounts = whole.links[&link("Glob")][&FeatureCell::default()];
        prop_assert_eq!((all.trials, all.exact), (300, examples.iter().filter(|example| example.exact).count() as u64));
    }

    #[test]
    fn a_point_counts_each_candidate_once(candidates in prop::collection::vec(scored(), 0..80), at in 0_u32..=10) {
        let threshold = f64::from(at) / 10.0;
        let found = point(&candidates, threshold, &Resampling { seed: 3, samples: 0 });
        let fetched = candidates.iter().filter(|candidate| candidate.score.is_some_and(|score| score >= threshold));
        prop_assert_eq!(found.exact.n, fetched.clone().count() as u64);
        prop_assert_eq!(found.exact.k, fetched.clone().filter(|candidate| candidate.exact).count() as u64);
        prop_assert_eq!(found.target.k, fetched.filter(|candidate| candidate.target).count() as u64);
        prop_assert_eq!(found.exact_sessions, None);
    }
}
