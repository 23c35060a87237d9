//! Effects that were predicted, held against what came: the intervals cover, and what does not cover proposes nothing.

use super::fleet_tune::days;
use super::harness::Home;
use super::planted::Random;
use crate::base::backtest::BacktestNumbers;
use crate::base::bootstrap::Resampling;
use crate::base::forecast::{ForecastWeek, SessionEffect, ahead, coverage, forecasts, ratio};
use crate::base::stats::TargetVerdict;

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

fn attempts(weeks: i64, share: &dyn Fn(i64) -> f64) -> Vec<ForecastWeek> {
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
    let row = coverage("x", &attempts(50, &|_| 0.2), 0.9, &numbers());
    assert!(row.share().value() >= 0.9 && row.verdict() != TargetVerdict::Fail, "{:?}", row.share());
    assert_eq!(row.broken(), None);
}

#[test]
fn a_habit_that_ends_every_week_does_not_cover_until_the_intervals_know_it() {
    // It saves a fifth in one week and nothing in the next: no interval of the first weeks knows that.
    let told = forecasts(&attempts(40, &|week| if week % 2 == 0 { 0.2 } else { 0.02 }), &RESAMPLING);
    let held = |from: usize, until: usize| told[from..until].iter().filter(|(_, told)| told.holds()).count();
    assert!(held(0, 4) <= 1, "{} of the first four", held(0, 4));
    assert!(held(20, 40) >= 18, "{} of the last twenty", held(20, 40));
    // What came later is not known before.
    let first = forecasts(&attempts(5, &|week| if week % 2 == 0 { 0.2 } else { 0.02 }), &RESAMPLING);
    assert_eq!(first[..4], told[..4]);
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
}
