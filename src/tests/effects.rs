//! Effects that were predicted, held against what came: the intervals cover, and what does not cover proposes nothing.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::fleet_tune::days;
use super::harness::Home;
use super::planted::Random;
use crate::base::backtest::{
    BacktestNumbers, ForecastWeek, PromiseCoverage, SessionEffect, ahead, coverage, forecasts, ratio,
};
use crate::base::bootstrap::{Resampling, holds_in_100, stretch, sum_interval};
use crate::base::data::Data;
use crate::base::id::Id;
use crate::base::stats::TargetVerdict;
use crate::logs::trace::Millis;
use crate::rules::claude::paying;
use crate::rules::effects::attempts;
use crate::shell::arguments::Exit;
use crate::whatif::client::capped::Limit;
use crate::whatif::client::{KeptSides, LeverPart, LeverStudy, LeverValue, SettingSides, StudiedSession, Trial};
use crate::whatif::compaction::carry::Reattached;
use crate::whatif::sim::cost::Cost;

const WEEK_MS: i64 = 7 * 24 * 3_600_000;
const RESAMPLING: Resampling = Resampling { seed: 7, samples: 400 };

fn numbers() -> BacktestNumbers {
    BacktestNumbers {
        known_min: 20,
        later_min: 5,
        responses_max: 50_000,
        weeks_max: 60,
        tolerance: 0.03,
        resampling: RESAMPLING,
    }
}

/// Sessions of one size each, in which a change saves `share` give or take a half of it.
fn sessions(random: &mut Random, count: usize, share: f64) -> Vec<SessionEffect> {
    let part = |_| {
        let of = 100.0 + 900.0 * random.share();
        SessionEffect { effect: of * share * (0.5 + random.share()), of }
    };
    (0..count).map(part).collect()
}

fn weekly(weeks: i64, share: &dyn Fn(i64) -> f64) -> Vec<ForecastWeek> {
    let mut random = Random(11);
    let attempt = |week: i64| ForecastWeek {
        week_ms: week * WEEK_MS,
        until_ms: (week + 4) * WEEK_MS,
        known: sessions(&mut random, 30, share(week)),
        came: sessions(&mut random, 12, share(week + 1)),
    };
    (0..weeks).map(attempt).collect()
}

#[test]
fn a_ratio_is_that_of_the_sums_and_its_interval_lies_around_it() {
    let parts = [SessionEffect { effect: 1.0, of: 10.0 }, SessionEffect { effect: 9.0, of: 30.0 }];
    assert_eq!(ratio(&parts), Some(0.25));
    assert_eq!((ratio(&[]), ahead(&[], 5, &RESAMPLING)), (None, None));
    let (told, [down, up]) = ahead(&parts, 2, &RESAMPLING).unwrap();
    assert!(told == 0.25 && down < 0.0 && up > 0.0, "{down} {up}");
}

#[test]
fn intervals_of_a_habit_that_stays_cover() {
    let row = coverage("x", &weekly(50, &|_| 0.2), 0.9, &numbers());
    assert!(row.share().value() >= 0.9 && row.verdict() != TargetVerdict::Fail, "{:?}", row.share());
    assert_eq!(row.broken(), None);
}

/// Neighbouring weeks are about the same coming sessions: what they miss together is missed once.
#[test]
fn forecasts_that_share_what_came_break_a_promise_once() {
    let missed = |weeks: i64| {
        let of = |effect: f64| vec![SessionEffect { effect, of: 10.0 }; 9];
        let week = |week: i64| ForecastWeek {
            week_ms: week * WEEK_MS,
            until_ms: (week + 4) * WEEK_MS,
            known: of(2.0),
            came: of(1.0),
        };
        coverage("x", &(0..weeks).map(week).collect::<Vec<_>>(), 0.9, &numbers())
    };
    let rows = [2, 4, 5].map(missed);
    assert_eq!(rows.each_ref().map(|row| (row.share().k, row.share().n)), [(0, 2), (0, 4), (0, 5)]);
    assert_eq!(rows.each_ref().map(|row| row.distinct), [1, 1, 2]);
    let (open, fail) = (TargetVerdict::Open, TargetVerdict::Fail);
    assert_eq!(rows.each_ref().map(PromiseCoverage::verdict), [open, open, fail]);
}

#[test]
fn a_habit_that_ends_every_week_does_not_cover_until_the_intervals_know_it() {
    // It saves a fifth in one week and nothing in the next: no interval of the first weeks knows that.
    let told = forecasts(&weekly(40, &|week| if week % 2 == 0 { 0.2 } else { 0.02 }), &RESAMPLING);
    let held = |from: usize, until: usize| told[from..until].iter().filter(|(_, told)| told.holds()).count();
    assert!(held(0, 4) <= 1, "{} of the first four", held(0, 4));
    assert!(held(20, 40) >= 18, "{} of the last twenty", held(20, 40));
    // What came later is not known before.
    let first = forecasts(&weekly(5, &|week| if week % 2 == 0 { 0.2 } else { 0.02 }), &RESAMPLING);
    assert_eq!(first[..4], told[..4]);
}

/// Sessions a day apart, of which limits of results save what is told, in percent of each.
fn study(of_shell: impl Fn(i64) -> u128, of_mcp: impl Fn(i64) -> u128) -> LeverStudy {
    let day = 24 * 3_600_000;
    let cost = |price: u128| Cost { nano_usd: price, units: price, ..Cost::default() };
    let session = |number: i64| StudiedSession {
        project: Id::NONE,
        first: number * day,
        last: number * day + 1,
        cost: cost(1_000),
        subagents: Cost::default(),
        is_earlier: Some(number < 30),
    };
    let trial = |limit, saves: &dyn Fn(i64) -> u128| Trial {
        setting: LeverValue::Result(limit),
        compacts_at: None,
        sessions: (0..80)
            .map(|number| SettingSides {
                before: cost(1_000),
                after: cost(1_000 - 10 * saves(number)),
                ..Default::default()
            })
            .map(KeptSides::from)
            .collect(),
        by_model: Default::default(),
    };
    LeverStudy {
        sessions: (0..80).map(session).collect(),
        trials: vec![trial(Limit::BashChars(4_000), &of_shell), trial(Limit::McpTokens(5_000), &of_mcp)],
        standing: Vec::new(),
        versions: Default::default(),
        own: Default::default(),
        least_percent: 1.0,
        reattached: Reattached { known: 0, is_measured: false, tokens: 0 },
    }
}

#[test]
fn what_was_followed_is_no_broken_promise_and_each_lever_has_a_row() {
    let told = |study: &LeverStudy, changed: &[(Millis, LeverPart)]| {
        attempts(study, &Data::default(), &numbers(), changed).unwrap()
    };
    let broken = |told: &BTreeMap<String, Vec<ForecastWeek>>, row: &str| {
        told.get(row).is_some_and(|attempts| attempts.iter().any(|week| ratio(&week.came).unwrap() > -0.29))
    };
    let (shell, mcp) = ("effects of S4, shell output", "effects of S4, results of MCP tools");
    // Somebody limits the output of the shell on the sixtieth day: from then on the same limit saves nothing more.
    let study = study(|number| if number < 60 { 50 } else { 0 }, |_| 30);
    let all = told(&study, &[]);
    assert!(broken(&all, shell) && all.contains_key(mcp) && !broken(&all, mcp), "{:?}", all.keys());
    // The journal knows when.
    let noted = told(&study, &[(60 * 24 * 3_600_000, LeverPart::All)]);
    assert!(!broken(&noted, shell) && noted[shell].len() < all[shell].len(), "{:?}", noted[shell]);
}

proptest! {
    #![proptest_config(super::log_builder::cases(64))]

    #[test]
    fn what_is_kept_of_both_sides_is_all_of_it(counts: [u32; 4], costs: [[u64; 3]; 4], error: i64) {
        let [requests, unpriced, hard, soft] = counts.map(u64::from);
        let cost = |[nano_usd, units, unpriced_tokens]: [u64; 3]| Cost {
            nano_usd: nano_usd.into(),
            units: units.into(),
            unpriced_tokens,
        };
        let [before, after, answers_before, answers_after] = costs.map(cost);
        let error_units = error.into();
        let sides =
            SettingSides { requests, unpriced, before, after, answers_before, answers_after, hard, soft, error_units };
        prop_assert_eq!(SettingSides::from(KeptSides::from(sides)), sides);
        let (nano_usd, error_units) = (u128::MAX, i128::MIN);
        let huge = SettingSides { before: Cost { nano_usd, ..before }, error_units, ..sides };
        let kept = SettingSides::from(KeptSides::from(huge));
        prop_assert_eq!((kept.before.nano_usd, kept.error_units), (u64::MAX.into(), i64::MIN.into()));
    }
}

/// The page and the settings go by one condition.
#[test]
fn what_later_sessions_do_not_tell_from_nothing_does_not_pay() {
    let pays = |of_shell: fn(i64) -> u128| paying(&study(of_shell, |_| 0), &RESAMPLING, &Data::default()).unwrap();
    let shell = LeverValue::Result(Limit::BashChars(4_000));
    assert_eq!(pays(|_| 30), [shell]);
    // One session of fifty has all of it.
    assert!(pays(|number| if number < 30 { 50 } else { 100 * u128::from(number == 70) }).is_empty());
    // Too little to be worth a line.
    assert!(pays(|number| u128::from(number % 3 == 0)).is_empty());
}

#[test]
fn the_backtest_says_how_often_effects_came_true() {
    let home = Home::new();
    // Seven weeks of five sessions that poll a ticket.
    for (week, day) in ["08-31", "09-07", "09-14", "09-21", "09-28", "10-05", "10-12"].iter().enumerate() {
        days(&home, &format!("w{week}"), 5, 2, &format!("2026-{day}"));
    }
    let report = home.json(&["tune", "backtest"]);
    let rows = report["statistics"].as_array().unwrap();
    let row =
        |name: &str| rows.iter().find(|row| row["statistic"] == name).unwrap_or_else(|| panic!("{name}: {rows:#?}"));
    for name in ["effects of R1", "effects of R1 to R5 together"] {
        let row = row(name);
        assert!(row["judged"].as_u64().unwrap() >= 2, "{row}");
        assert_eq!((&row["held"], &row["promised"]), (&row["judged"], &0.9.into()), "{row}");
    }
    // Nothing of it stands on what the rules wrote since: what is held in one run is held in the next.
    let of_pipeline = |report: &Value| {
        let rows = report["statistics"].as_array().unwrap().iter();
        rows.filter(|row| row["statistic"].as_str().unwrap().contains("of R")).cloned().collect::<Vec<_>>()
    };
    // The logs are read once: a stream says the same, and so do logs without a lake.
    let projects = std::fs::read_dir(home.path(".claude/projects")).unwrap().map(|place| place.unwrap().path());
    let logs = projects.flat_map(|place| std::fs::read_dir(place).unwrap().map(|log| log.unwrap().path()));
    let logs: BTreeMap<_, _> = logs.map(|log| (log.clone(), std::fs::read(log).unwrap())).collect();
    let logs = logs.into_values().collect::<Vec<_>>().concat();
    let piped = Home::new().run_with(&["tune", "backtest", "--json", "-q", "--input-dir", "-"], &logs);
    let piped: Value = serde_json::from_str(&piped.out).unwrap();
    assert_eq!(of_pipeline(&piped), of_pipeline(&report));
    assert_eq!(home.json(&["tune", "backtest", "--no-lake"])["statistics"], report["statistics"]);
    let analyze = || home.run(&["tune", "analyze", "--from-claude-logs", "--extended-formats"]);
    assert_eq!(analyze().exit, Exit::Done);
    let written = std::fs::read_to_string(home.config()).unwrap();
    assert_eq!(of_pipeline(&home.json(&["tune", "backtest"])), of_pipeline(&report), "{written}");
    assert!(written.contains("formats_enabled"), "{written}");
    let second = analyze();
    assert!(second.out.starts_with("Nothing to change in "), "{}{}", second.out, second.err);
    // What a person writes is theirs.
    home.write(".config/devboy/pipeline_config.toml", "[dedup]\nlru_size = 50\n");
    assert_ne!(of_pipeline(&home.json(&["tune", "backtest"])), of_pipeline(&report));
}

/// Values are compared as they would be with one of them set: what is chosen today is not left tomorrow.
#[test]
fn of_values_the_milder_is_chosen_only_where_it_costs_as_much() {
    let [cheap, mild] = [Limit::BashChars(4_000), Limit::BashChars(8_000)].map(LeverValue::Result);
    let beside = |of_mild: u128| {
        let mut study = study(|_| 80, move |_| of_mild);
        study.trials[1].setting = mild;
        study.least_percent = 3.0;
        study
    };
    let chosen = |study: &LeverStudy| study.chosen(&study.trials).unwrap().1.setting;
    // 22 % of the bill in place of 20 % is a tenth more, though it is two hundredths of what there was.
    assert_eq!((chosen(&beside(78)), chosen(&beside(80))), (cheap, mild));
    // Beside what stands the earlier sessions say as little as when it was chosen, whatever the later ones say.
    let mut set = study(|number| if number < 30 { 2 } else { 20 }, |_| 0);
    set.least_percent = 3.0;
    let pays = |study: &LeverStudy| paying(study, &RESAMPLING, &Data::default()).unwrap();
    assert_eq!(pays(&set), [cheap]);
    set.standing = vec![mild];
    assert!(pays(&set).is_empty());
}

/// What intervals over few sessions lack is added before anything is written.
#[test]
fn few_sessions_have_to_be_surer() {
    assert_eq!(
        (holds_in_100(4), holds_in_100(5), holds_in_100(79), holds_in_100(80)),
        (Some(57), Some(57), Some(90), None)
    );
    assert!((2.3..2.7).contains(&stretch(5)) && (1.1..1.3).contains(&stretch(79)) && stretch(80) == 1.0);
    // Of the later sessions every other one saves; the interval is just clear of nothing, and that is not enough.
    let paid = |share: u128| {
        let study = study(move |number| if number < 30 { 30 } else { share * u128::from(number % 5 == 0) }, |_| 0);
        !paying(&study, &RESAMPLING, &Data::default()).unwrap().is_empty()
    };
    let least = (1..=100).find(|share| paid(*share)).unwrap();
    let clear = (1..=100).find(|share| {
        let values: Vec<f64> = (30..80).map(|number| if number % 5 == 0 { *share as f64 } else { 0.0 }).collect();
        sum_interval(&values, 50, &RESAMPLING, 0.025).unwrap().0 / 50.0 > 1.0
    });
    assert!(clear.unwrap() < least, "clear from {clear:?} on, written from {least} on");
}
