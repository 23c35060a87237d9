//! Forecasts of the policies in the backtest: which weeks are judged, and what few weeks can say.

use super::policy_carry::sessions;
use crate::base::backtest::{BacktestNumbers, Forecast, Promise, PromiseCoverage, SessionSplit};
use crate::base::data::Data;
use crate::base::numbers::WEEK_MS;
use crate::base::stats::TargetVerdict;
use crate::rules::statistics;
use crate::whatif::backtest::{CARRY, SLACK, coverage, held};
use crate::whatif::workload::Workload;

fn numbers() -> BacktestNumbers {
    statistics::numbers(&Data::default()).unwrap().backtest
}

/// Forecasts of weeks from 100 on: whether each held.
fn forecasts(held: impl IntoIterator<Item = bool>) -> Vec<Forecast> {
    let one = |(week, held)| Forecast {
        week,
        predicted: 10.0,
        lower: 9.0,
        upper: 11.0,
        came: if held { 10.5 } else { 12.0 },
    };
    (100..).zip(held).map(one).collect()
}

fn of(held_in: impl IntoIterator<Item = bool>, from: Option<i64>) -> PromiseCoverage {
    held(("sizes", "weeks"), 0.9, &forecasts(held_in), from, &numbers())
}

#[test]
fn forecasts_are_counted_from_the_first_week_that_is_judged() {
    let all = of((0..30).map(|week| week >= 10), Some(0));
    assert_eq!((all.share().k, all.share().n, all.weeks.len()), (20, 30, 30));
    assert_eq!(all.verdict(), TargetVerdict::Fail);
    let later = of((0..30).map(|week| week >= 10), Some(110 * WEEK_MS));
    assert_eq!((later.share().k, later.share().n), (20, 20));
    assert_eq!(later.weeks[0].week_ms, 110 * WEEK_MS);
    // Nothing is judged while too few sessions are known.
    assert_eq!(of([true; 30], None).verdict(), TargetVerdict::NotApplicable);
}

#[test]
fn a_few_weeks_without_a_miss_prove_nothing() {
    assert_eq!(of([true; 6], Some(0)).verdict(), TargetVerdict::Open);
    assert_eq!(of([true; 60], Some(0)).verdict(), TargetVerdict::Pass);
    assert_eq!(of([false; 30], Some(0)).verdict(), TargetVerdict::Fail);
}

#[test]
fn one_week_breaks_no_promise() {
    let judged = |weeks: i64| {
        let cuts: Vec<SessionSplit> =
            (0..weeks).map(|week| SessionSplit { week_ms: week * WEEK_MS, known: 20 }).collect();
        // A median below which 53.3 % lie: three points are tolerated.
        PromiseCoverage::of(("sizes", "answers"), Promise::About(0.5), &cuts, &numbers(), &|cut| {
            vec![(cut.week_ms as u64, (1_103, 2_068))]
        })
    };
    assert_eq!(judged(1).verdict(), TargetVerdict::Open);
    assert_eq!(judged(1).broken(), None);
    assert_eq!(judged(5).verdict(), TargetVerdict::Fail);
}

#[test]
fn sizes_after_compactions_hold_as_often_as_they_promise_where_the_client_is_known() {
    let world = Workload::new(sessions(200, 3, 9_000, 16_000), None, &Data::default(), false, true).unwrap();
    let found = coverage(&world, &Data::default(), &numbers()).unwrap();
    let names: Vec<&str> = found.iter().map(|row| row.statistic.as_str()).collect();
    assert_eq!(names, [SLACK, CARRY]);
    let share = found[1].share();
    // Of 200 sessions the last half year: one every day and a half.
    assert!(share.n >= 100 && share.value() >= 0.87, "{share:?}");
}

/// What comes later is judged in every week before it: it is one thing all the same.
#[test]
fn what_is_judged_in_many_weeks_is_counted_once() {
    let cuts: Vec<SessionSplit> = (0..30).map(|week| SessionSplit { week_ms: week * WEEK_MS, known: 20 }).collect();
    let of = |sessions: u64| {
        let judge = |_| (0..sessions).map(|session| (session, (8 + session % 3, 10))).collect();
        PromiseCoverage::of(("sizes", "answers"), Promise::AtLeast(0.9), &cuts, &numbers(), &judge)
    };
    let (few, many) = (of(3), of(200));
    assert_eq!((few.share().n, few.distinct, many.distinct), (30 * 30, 30, 2_000));
    assert_eq!(few.verdict(), TargetVerdict::Open, "{few:?}");
    assert_eq!(many.verdict(), TargetVerdict::Pass, "{many:?}");
}
