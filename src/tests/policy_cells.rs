//! Where a policy wins: in parts whose truth is known, and on logs in which it wins nowhere.

use std::collections::BTreeMap;

use super::timeline_builder::Story;
use crate::base::bootstrap::next;
use crate::logs::timeline::requests::Timeline;
use crate::whatif::prompt_cache::outcome::Cause;
use crate::whatif::sim::cells::{Cell, CellJudge, CellRules, Drawn, correct};
use crate::whatif::sim::cost::{Cost, UNITS_PER_TOKEN};
use crate::whatif::sim::distance::{Apart, DistanceCause, largest_first};
use crate::whatif::sim::figures::CostVerdict;
use crate::whatif::sim::figures::{RunBill, Sides};

const PROJECTS: u64 = 4;
const SESSIONS: u64 = 60;

fn rules() -> CellRules {
    CellRules::parse(include_str!("../../rules/policies/cells.toml"), "cells.toml").unwrap()
}

fn uniform(state: &mut u64) -> f64 {
    next(state) as f64 / u64::MAX as f64
}

/// Sessions of four projects and two models, of all sizes.
fn timeline(state: &mut u64) -> Timeline {
    let mut log = Story::new();
    for session in 0..SESSIONS {
        log.session(&format!("s{session}"), &format!("/project-{}", session % PROJECTS));
        log.model(["claude-opus-4-5", "claude-sonnet-4-5"][(session / PROJECTS % 2) as usize]);
        log.human(40).ask(0, 20_000 + (uniform(state) * 280_000.0) as u64, 0).wait(60);
    }
    log.done()
}

/// Costs of every session: very unequal, and changed by up to `noise` either way; in project 2 also by `planted`.
fn looked_at(seed: u64, noise: f64, planted: f64, off_bill: f64) -> (Timeline, Vec<Cell>) {
    let mut state = seed;
    let timeline = timeline(&mut state);
    let cost =
        |units: f64| Cost { units: units.round() as u128, nano_usd: 5 * units.round() as u128, unpriced_tokens: 0 };
    let mut sides: BTreeMap<_, Sides> = BTreeMap::new();
    let mut apart: BTreeMap<_, Apart> = BTreeMap::new();
    for (session, request) in timeline.requests.iter().enumerate() {
        let key = (session as u32, request.model);
        let before = (10.0 + 3.0 * uniform(&mut state)).exp() * UNITS_PER_TOKEN as f64;
        let here = if session as u64 % PROJECTS == 2 { planted } else { 0.0 };
        let after = before * (1.0 + here + noise * (2.0 * uniform(&mut state) - 1.0));
        let bill = |units| RunBill { cost: cost(units), ..RunBill::default() };
        sides.insert(key, Sides { requests: 1, baseline: bill(before), policy: bill(after), ..Sides::default() });
        let (cost_billed, cost_simulated) = (cost(before), cost(before * (1.0 + off_bill)));
        apart.insert(key, Apart { requests: 1, cost_billed, cost_simulated, ..Apart::default() });
    }
    let rules = rules();
    let judge = CellJudge { rules: &rules, apart: Some(&apart), least: 0.03 };
    let mut found = judge.cells(&timeline, &sides);
    correct(found.iter_mut(), &rules);
    (timeline, found)
}

fn clear(cells: &[Cell]) -> Vec<&Cell> {
    cells.iter().filter(|cell| cell.verdict != CostVerdict::NoClearWinner).collect()
}

#[test]
fn on_logs_where_nothing_wins_nothing_is_found() {
    let found = (0..100).filter(|&seed| !clear(&looked_at(seed, 0.4, 0.0, 0.0).1).is_empty()).count();
    assert!(found <= 5, "something was found on {found} of 100 logs");
}

#[test]
fn a_project_in_which_a_policy_wins_is_found_with_its_size() {
    let (mut found, mut elsewhere, mut covered) = (0, 0, 0);
    for seed in 0..100 {
        let (timeline, cells) = looked_at(seed, 0.25, -0.27, 0.0);
        let project = timeline.sessions[2].project.to_string();
        let here = |cell: &&&Cell| cell.by == "project" && cell.name == project;
        let clear = clear(&cells);
        found += usize::from(clear.iter().any(|cell| here(&cell) && cell.verdict == CostVerdict::Cheaper));
        elsewhere += usize::from(clear.iter().any(|cell| cell.by == "project" && !here(&cell)));
        let cell = cells.iter().find(|cell| cell.name == project).unwrap();
        assert_eq!(cell.sessions, SESSIONS / PROJECTS);
        covered += usize::from(cell.lower.unwrap() <= -0.27 && -0.27 <= cell.upper.unwrap());
    }
    assert!(found >= 90 && elsewhere <= 5, "found in {found} of 100, elsewhere in {elsewhere}");
    assert!(covered >= 88, "the interval of 95 % held the truth in {covered} of 100");
}

#[test]
fn an_interval_over_sessions_of_which_a_few_are_most_of_the_bill_holds_what_it_says() {
    // Costs as uneven as those of real sessions (lognormal), and savings that only the large ones have.
    let session = |state: &mut u64| {
        let normal = (0..12).map(|_| uniform(state)).sum::<f64>() - 6.0;
        let before = (1.5 * normal).exp();
        (before, before * (1.0 - 0.5 * (before / (before + 3.0))))
    };
    let mut state = 7;
    let all: Vec<(f64, f64)> = (0..200_000).map(|_| session(&mut state)).collect();
    let (before, after) = all.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let truth = (after - before) / before;
    let held = (0..200).filter(|_| {
        let pairs: Vec<(f64, f64)> = (0..80).map(|_| session(&mut state)).collect();
        let drawn = Drawn::new(&pairs, &rules().resampling).unwrap();
        drawn.lower <= truth && truth <= drawn.upper
    });
    let held = held.count();
    assert!(held >= 180, "the interval of 95 % held the truth in {held} of 200");
}

#[test]
fn one_odd_session_among_many_that_are_alike_makes_no_boundless_interval() {
    let mut pairs = vec![(100.0, 40.0); 16];
    pairs.push((20.0, 20.0));
    let drawn = Drawn::new(&pairs, &rules().resampling).unwrap();
    assert!(drawn.lower > -0.7 && drawn.upper < -0.4, "{} to {}", drawn.lower, drawn.upper);
}

#[test]
fn a_win_that_the_simulation_itself_is_off_by_is_none() {
    for seed in 0..20 {
        let cells = looked_at(seed, 0.25, -0.27, -0.5).1;
        assert!(clear(&cells).is_empty(), "{:?}", clear(&cells));
    }
}

#[test]
fn the_same_costs_give_the_same_intervals_and_few_sessions_give_none() {
    assert_eq!(looked_at(7, 0.25, -0.27, 0.0).1, looked_at(7, 0.25, -0.27, 0.0).1);
    let (timeline, cells) = looked_at(7, 0.25, -0.27, 0.0);
    let strict = CellRules { sessions_min: SESSIONS + 1, ..rules() };
    let sides = timeline
        .requests
        .iter()
        .enumerate()
        .map(|(session, request)| ((session as u32, request.model), Sides { requests: 1, ..Sides::default() }));
    let judge = CellJudge { rules: &strict, apart: None, least: 0.03 };
    assert!(judge.cells(&timeline, &sides.collect()).is_empty());
    assert!(cells.iter().all(|cell| cell.lower.unwrap() <= cell.change && cell.change <= cell.upper.unwrap()));
}

/// Many tokens of a cheap model are less money than few of an expensive one, and money is what is told.
#[test]
fn causes_of_the_distance_are_ordered_by_their_share_of_the_bill() {
    let cause = |model: &str, units: u128, nano_usd: u128| DistanceCause {
        model: model.to_owned(),
        versions: "2.1.120–129".to_owned(),
        cause: Cause::Compaction,
        apart: Apart { cost_simulated: Cost { units, nano_usd, unpriced_tokens: 0 }, ..Apart::default() },
    };
    let mut parts = [cause("free", 9_000, 0), cause("cheap", 8_000, 1_000), cause("dear", 1_000, 5_000)];
    let order = |parts: &[DistanceCause]| parts.iter().map(|part| part.model.clone()).collect::<Vec<_>>();
    largest_first(&mut parts, &Cost { units: 100_000, nano_usd: 100_000, unpriced_tokens: 0 });
    assert_eq!(order(&parts), ["dear", "cheap", "free"]);
    largest_first(&mut parts, &Cost { units: 100_000, nano_usd: 0, unpriced_tokens: 100_000 });
    assert_eq!(order(&parts), ["free", "cheap", "dear"]);
}
