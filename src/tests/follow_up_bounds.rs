//! Bounds of follow-up shares on generated sessions whose habits are known: they have to hold on the sessions that come.

use std::collections::BTreeMap;

use super::observed::event;
use super::planted::Random;
use crate::base::backtest::{BacktestNumbers, Promise, PromiseCoverage, SessionSplit, cuts};
use crate::base::bootstrap::Resampling;
use crate::base::data::Data;
use crate::base::names::{Names, Sym};
use crate::base::significance::{quantile_above, t_above, upper_tail};
use crate::base::stats::{Clustered, TargetVerdict, wilson};
use crate::mine::follow_ups::FollowUps;
use crate::mine::sizes::SizesBySession;
use crate::report::table::TableFormat;
use crate::rules::statistics;
use crate::telemetry::log::EventLog;

const DAY_MS: i64 = 86_400_000;

/// Sessions of a day each, in chains of 40 steps. After T1 comes T2 at a rate that every session has of its own, drawn
/// between `low` and `high`: calls of a session hang together.
fn log(seed: u64, sessions: u32, low: f64, high: f64) -> EventLog {
    let mut random = Random(seed);
    let mut events = Vec::new();
    for session in 0..sessions {
        let rate = low + (high - low) * random.share();
        let mut last = 0;
        for step in 0..40_u32 {
            let tool = match last {
                1 if random.share() < rate => 2,
                _ => *random.pick(&[1, 3, 4]),
            };
            last = tool;
            let mut row = event(2 * session, 0, step, tool, 0, step as usize);
            row.session = session;
            row.ts = i64::from(session) * DAY_MS + i64::from(step);
            events.push(row);
        }
    }
    let names = Names::from_texts((0..5).map(|number| format!("T{number}")).collect());
    EventLog {
        names: names.into(),
        sessions: (0..sessions).map(|number| format!("s{number}")).collect(),
        events,
        ..EventLog::default()
    }
}

fn counted(log: &EventLog, lags: &[u32]) -> FollowUps {
    FollowUps::of_events(log, &log.starts(), lags, usize::MAX)
}

/// Of all worlds, in how many the later sessions stay above the bound of the earlier ones; and above Wilson's.
fn held(low: f64, high: f64) -> (u32, u32, u32) {
    let numbers = statistics::numbers(&Data::default()).unwrap();
    let (mut bounds, mut wilsons, mut worlds) = (0, 0, 0);
    for seed in 1..=120 {
        let log = log(seed, 60, low, high);
        let part = |range: std::ops::Range<u32>| {
            let events = log.events.iter().filter(|event| range.contains(&event.session)).copied().collect();
            let found = counted(
                &EventLog { events, names: log.names.clone(), sessions: log.sessions.clone(), ..EventLog::default() },
                &[1, 2, 3],
            );
            found.rows(&numbers).into_iter().find(|row| (row.from, row.to, row.lag) == (Sym(1), Sym(2), 1)).unwrap()
        };
        let (before, after) = (part(0..30), part(30..60));
        let came = after.support as f64 / after.trials as f64;
        worlds += 1;
        bounds += u32::from(came >= before.lower);
        wilsons += u32::from(came >= wilson(before.support as f64, before.trials as f64).0);
        assert!(before.lower > 0.05, "a bound that says nothing always holds: {before:?}");
    }
    (bounds, wilsons, worlds)
}

#[test]
fn bounds_hold_on_later_sessions_where_calls_of_a_session_hang_together() {
    let (bounds, wilsons, worlds) = held(0.1, 0.9);
    assert!(f64::from(bounds) >= 0.955 * f64::from(worlds), "{bounds} of {worlds}");
    assert!(f64::from(wilsons) < 0.92 * f64::from(worlds), "{wilsons}: the world is too easy to tell them apart");
}

#[test]
fn bounds_of_independent_calls_hold_and_are_not_idle() {
    let (bounds, _, worlds) = held(0.5, 0.5);
    assert!(f64::from(bounds) >= 0.955 * f64::from(worlds), "{bounds} of {worlds}");
    let numbers = statistics::numbers(&Data::default()).unwrap();
    let rows = counted(&log(1, 60, 0.5, 0.5), &[1]).rows(&numbers);
    let row = rows.iter().find(|row| (row.from, row.to) == (Sym(1), Sym(2))).unwrap();
    assert!(row.lower > 0.35 && row.upper < 0.65, "{row:?}");
}

#[test]
fn a_habit_that_ends_makes_the_bounds_of_the_past_wider() {
    let numbers = statistics::numbers(&Data::default()).unwrap();
    let steady = log(5, 150, 0.5, 0.5);
    let mut changing = steady.clone();
    // Every third week nothing follows.
    for at in 1..changing.events.len() {
        let row = changing.events[at];
        if row.tool == Sym(2) && (row.session / 7) % 3 == 2 {
            changing.events[at].tool = Sym(4);
        }
    }
    let lower = |log: &EventLog| {
        let rows = counted(log, &[1, 2, 3]).rows(&numbers);
        let row = *rows.iter().find(|row| (row.from, row.to, row.lag) == (Sym(1), Sym(2), 1)).unwrap();
        (row.support as f64 / row.trials as f64, row.lower)
    };
    let ((steady_share, steady_bound), (share, bound)) = (lower(&steady), lower(&changing));
    assert!(steady_bound > 0.75 * steady_share, "{steady_bound} of {steady_share}");
    assert!(bound < 0.6 * share, "{bound} of {share}");
}

#[test]
fn the_design_effect_is_one_for_equal_sessions_and_the_size_of_sessions_that_are_all_or_nothing() {
    let of = |sessions: &[(u64, u64)]| {
        let mut share = Clustered::default();
        for &(successes, trials) in sessions {
            share.add_trials(trials, 1.0);
            share.add_successes(successes, trials, 1.0);
        }
        share
    };
    assert_eq!(of(&[(5, 10); 40]).design_effect(), 1.0);
    let extreme: Vec<(u64, u64)> = (0..400).map(|session| if session % 2 == 0 { (10, 10) } else { (0, 10) }).collect();
    assert!((of(&extreme).design_effect() - 10.0).abs() < 0.05, "{}", of(&extreme).design_effect());
    // The bound inverts: as many errors away as are needed, it just meets the share.
    let share = of(&[(3, 10), (7, 10), (4, 20), (9, 10)]);
    for came in [0.1, 0.2, 0.35] {
        let (lower, _) = share.ahead(share.errors_above(came));
        assert!((lower - came).abs() < 1e-9, "{lower} is not {came}");
    }
    assert_eq!(share.errors_above(0.9), 0.0);
}

#[test]
fn quantiles_are_those_of_the_tables() {
    for (tail, z) in [(0.5, 0.0), (0.025, 1.959_964), (0.05, 1.644_854), (0.001, 3.090_232), (0.975, -1.959_964)] {
        assert!((quantile_above(tail) - z).abs() < 1e-5, "{tail}");
        assert!((upper_tail(z) / tail - 1.0).abs() < 1e-4, "{z}");
    }
    for (df, t) in [(5, 2.5706), (10, 2.2281), (30, 2.0423), (1_000_000, 1.9600)] {
        assert!((t_above(quantile_above(0.025), df) - t).abs() < 0.01, "{df}");
    }
}

fn backtest() -> BacktestNumbers {
    BacktestNumbers {
        known_min: 3,
        later_min: 2,
        responses_max: 50_000,
        weeks_max: 100,
        tolerance: 0.03,
        resampling: Resampling { seed: 1, samples: 500 },
    }
}

#[test]
fn cuts_lie_between_weeks_and_leave_enough_on_both_sides() {
    // 1970 began on a Thursday: the first Monday is the fifth day.
    let starts: Vec<i64> = [0, 1, 2, 3, 4, 5, 11, 12, 25, 26].map(|day| day * DAY_MS).to_vec();
    let found = cuts(&starts, &backtest());
    let monday = |day: i64| day * DAY_MS;
    let cut = |day: i64, known: usize| SessionSplit { week_ms: monday(day), known };
    assert_eq!(found, [cut(4, 4), cut(11, 6), cut(25, 8)]);
    assert!(cuts(&[], &backtest()).is_empty() && cuts(&[5], &backtest()).is_empty());
}

#[test]
fn coverage_passes_fails_or_stays_open_by_its_whole_interval() {
    let cuts: Vec<SessionSplit> = (0..30).map(|week| SessionSplit { week_ms: week, known: 1 }).collect();
    let verdict = |promise: Promise, held: &(dyn Fn(i64) -> u64 + Sync)| {
        let coverage = PromiseCoverage::of(("x", "things"), promise, &cuts, &backtest(), &|cut| {
            vec![(cut.week_ms as u64, (held(cut.week_ms), 20))]
        });
        (coverage.verdict(), coverage.broken().is_some())
    };
    let least = Promise::AtLeast(0.9);
    assert_eq!(verdict(least, &|_| 19), (TargetVerdict::Pass, false));
    assert_eq!(verdict(least, &|_| 16), (TargetVerdict::Fail, true));
    assert_eq!(verdict(least, &|week| if week % 5 == 0 { 10 } else { 19 }), (TargetVerdict::Open, false));
    assert_eq!(verdict(Promise::About(0.5), &|_| 10), (TargetVerdict::Pass, false));
    assert_eq!(verdict(Promise::About(0.5), &|_| 19), (TargetVerdict::Fail, true), "too wide is not right either");
    let nothing = PromiseCoverage::of(("x", "things"), least, &cuts, &backtest(), &|_| Vec::new());
    assert_eq!((nothing.verdict(), nothing.broken()), (TargetVerdict::NotApplicable, None));
}

/// A row of one thing a week, with how many of 200 judgements held in it.
fn judged(statistic: &str, promise: Promise, held: &(dyn Fn(i64) -> u64 + Sync), weeks: i64) -> PromiseCoverage {
    let cuts: Vec<SessionSplit> = (0..weeks).map(|week| SessionSplit { week_ms: week, known: 1 }).collect();
    PromiseCoverage::of((statistic, "things"), promise, &cuts, &backtest(), &|cut| {
        vec![(cut.week_ms as u64 % 10, (held(cut.week_ms), 200))]
    })
}

#[test]
fn a_percentage_stands_beside_what_it_is_a_percentage_of() {
    let row = judged("sizes", Promise::AtLeast(0.9), &|_| 190, 30);
    assert_eq!(row.tally(), "5,700 of 6,000 things (2,000 different)");
    let mut out = Vec::new();
    statistics::table(&[row]).write(&mut out, TableFormat::Table, None).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains(" 95.0 % ") && out.contains("5,700 of 6,000 things (2,000 different)"), "{out}");
    // Whatever was judged once needs no second count, and one of one is in the singular.
    assert_eq!(judged("sizes", Promise::AtLeast(0.9), &|_| 190, 5).tally(), "950 of 1,000 things");
    assert_eq!(judged("sizes", Promise::AtLeast(0.9), &|_| 190, 0).tally(), "0 things");
    let broken = judged("sizes", Promise::AtLeast(0.9), &|_| 160, 30).broken().unwrap();
    assert!(
        broken.contains("80.0 %, 4,800 of 6,000 things (2,000 different), in 30 weeks, 90.0 % promised"),
        "{broken}"
    );
}

#[test]
fn the_first_line_of_the_backtest_counts_every_promise_once() {
    let least = Promise::AtLeast(0.99);
    let in_full = judged("in full", least, &|week| 199 + week as u64 % 2, 30);
    let short = judged("short", least, &|week| 195 + week as u64 % 2, 30);
    assert_eq!((short.verdict(), short.passes_by_tolerance()), (TargetVerdict::Pass, true), "{short:?}");
    assert_eq!((in_full.verdict(), in_full.passes_by_tolerance()), (TargetVerdict::Pass, false));
    let broken = judged("broken", least, &|_| 100, 30);
    let open = judged("open", least, &|_| 200, 1);
    let nothing = judged("nothing", least, &|_| 0, 0);
    let said = |rows: &[&PromiseCoverage]| {
        statistics::answer(&rows.iter().map(|row| (*row).clone()).collect::<Vec<_>>(), 0.03)
    };
    assert_eq!(
        said(&[&in_full, &short, &broken, &open, &nothing]),
        "Of 5 promises broken: broken; kept, give or take 3 points, 2 (only by tolerance: short), open (too little came after to \
         tell) 1, not judged yet 1."
    );
    assert_eq!(
        said(&[&in_full, &open]),
        "Of 2 promises none was broken; kept, give or take 3 points, 1, open (too little came after to tell) 1."
    );
    let none = "None of 2 promises could be judged yet: too little came before, or after, any week.";
    assert_eq!(said(&[&nothing, &nothing]), none);
}

#[test]
fn the_backtest_of_bounds_sees_only_what_was_known() {
    let numbers = statistics::numbers(&Data::default()).unwrap();
    let log = log(3, 120, 0.3, 0.7);
    let whole = counted(&log, &[1, 2, 3]).coverage("bounds", &numbers);
    assert!(whole.weeks.len() > 8 && whole.share().value() >= 0.945, "{whole:?}");
    // Another future changes no bound of the past: what was judged before stays comparable week by week.
    let weeks: BTreeMap<i64, u64> = whole.weeks.iter().map(|week| (week.week_ms, week.judged)).collect();
    let mut other = log;
    let last = other.sessions.len() as u32 - 6;
    other
        .events
        .iter_mut()
        .filter(|event| event.session >= last && event.tool == Sym(2))
        .for_each(|event| event.tool = Sym(4));
    let other = counted(&other, &[1, 2, 3]).coverage("bounds", &numbers);
    let same = other.weeks.iter().filter(|week| weeks.get(&week.week_ms) == Some(&week.judged)).count();
    assert_eq!(same, whole.weeks.len());
}

#[test]
fn a_median_holds_as_long_as_no_half_lies_on_one_side_of_it() {
    // What of the later answers lies within the median of the earlier ones, and what is said of that.
    let typical = |bytes: &dyn Fn(usize, u32) -> u32| {
        let mut log = log(3, 60, 0.5, 0.5);
        log.events.iter_mut().enumerate().for_each(|(number, event)| event.bytes = bytes(number, event.session));
        let numbers = statistics::numbers(&Data::default()).unwrap();
        let sizes = SizesBySession::of_events(&log);
        let coverage = sizes.coverage(("sizes", "answers"), Promise::About(0.5), 20, &numbers.backtest);
        (coverage.share().value(), coverage.verdict())
    };
    // All alike, of a size that has no three digits in KiB, too; and three in ten below, one in ten above.
    let is_kept =
        |(share, verdict): (f64, TargetVerdict)| (share - 0.5).abs() < 0.005 && verdict == TargetVerdict::Pass;
    for always in [2, 500, 4_000] {
        assert!(is_kept(typical(&|_, _| always)), "{always}");
    }
    let mostly_alike = |number: usize| [10, 20, 30, 100, 100, 100, 100, 100, 100, 999][7 * number % 10];
    assert!(is_kept(typical(&|number, _| mostly_alike(number))));
    // What grows or shrinks for good breaks the promise.
    let (grown, verdict) = typical(&|_, session| if session < 20 { 100 } else { 101 });
    assert!(grown < 0.4 && verdict == TargetVerdict::Fail, "{grown}");
    let (shrunk, verdict) = typical(&|_, session| if session < 20 { 100 } else { 99 });
    assert!(shrunk > 0.6 && verdict == TargetVerdict::Fail, "{shrunk}");
}
