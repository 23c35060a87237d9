//! What `tune history` says of changes of Claude Code's settings: planted bills before and after, and requests beside them.

use proptest::prelude::*;

use super::timeline_builder::{NOON, Story};
use crate::base::bootstrap::next;
use crate::base::data::Data;
use crate::base::id::Id;
use crate::logs::timeline::requests::Timeline;
use crate::logs::trace::Millis;
use crate::rules::report::forecast_words;
use crate::settings::entries::BillForecast;
use crate::whatif::client::realised::{ActualChange, CameTrue, HistoryRules, SettingChange, realised};
use crate::whatif::sim::money::Prices;

/// When the change was made.
const AT: Millis = NOON + 1_000_000_000;

fn forecast(part: &str, change: f64) -> BillForecast {
    BillForecast {
        unpriced: 0.0,
        part: part.to_owned(),
        change,
        lower: change - 0.05,
        upper: change + 0.05,
        of_bill: change,
        usd: None,
        error: 0.0,
        chosen_on: 9,
        sessions: 9,
        span_ms: (0, 1),
        hard_breaks: 0.0,
        soft_breaks: 0.0,
    }
}

/// Sessions before and after the change: of 100,000 tokens of context these are read, on main threads and by subagents.
fn logged(before: &[u64], after: &[u64], agents: [u64; 2], project: &str) -> Timeline {
    let mut log = Story::new();
    let mut tell = |name: String, second: i64, read: u64, agents: u64| {
        log.at(second).session(&name, project);
        for _ in 0..5 {
            log.human(40).ask(read, 100_000 - read, 0).says(10).wait(30);
        }
        log.agent(&format!("of {name}"));
        for _ in 0..5 {
            log.human(40).ask(agents, 100_000 - agents, 0).says(10).wait(30);
        }
    };
    for (number, &read) in before.iter().enumerate() {
        tell(format!("b{number}"), number as i64 * 1_000, read, agents[0]);
    }
    for (number, &read) in after.iter().enumerate() {
        tell(format!("c{number}"), 1_000_000 + number as i64 * 1_000, read, agents[1]);
    }
    log.done()
}

fn told(timeline: &Timeline, forecast: &BillForecast, project: Option<Id>) -> ActualChange {
    let data = Data::default();
    let (rules, prices) = (HistoryRules::load(&data).unwrap(), data.read("prices.toml", Prices::parse).unwrap());
    realised(timeline, &prices, &SettingChange { at: AT, until: Millis::MAX, project, forecast }, &rules)
}

#[test]
fn a_forecast_comes_true_or_does_not_and_early_is_too_early() {
    let (cold, warm): (Vec<u64>, Vec<u64>) =
        ((0..12).map(|n| n * 500).collect(), (0..12).map(|n| 80_000 + n * 500).collect());
    // 1.25 of 100,000 tokens at first; then 0.1 of some 83,000 and 1.25 of the rest: three quarters less.
    let expected = -0.76;
    let timeline = logged(&cold, &warm, [50_000, 50_000], "/p");
    let found = told(&timeline, &forecast("main", expected), None);
    assert_eq!((found.verdict, found.before, found.after), (CameTrue::Yes, 12, 12), "{found:?}");
    assert!(found.lower.unwrap() <= found.change.unwrap() && found.change.unwrap() <= found.upper.unwrap());
    assert!((found.change.unwrap() - expected).abs() < 0.03 && found.control == Some("subagents"), "{found:?}");
    let found = told(&timeline, &forecast("main", -0.3), None);
    assert_eq!(found.verdict, CameTrue::Better);
    let found = told(&logged(&cold, &cold, [50_000, 50_000], "/p"), &forecast("main", expected), None);
    assert_eq!(found.verdict, CameTrue::No, "{found:?}");
    let found = told(&logged(&cold, &warm[..9], [50_000, 50_000], "/p"), &forecast("main", expected), None);
    assert_eq!((found.verdict, found.after, found.change), (CameTrue::TooEarly, 9, None));
}

proptest! {
    #![proptest_config(super::log_builder::cases(32))]

    /// What happens to everybody is not the change's doing.
    #[test]
    fn what_changes_beside_it_too_is_no_effect(
        before in prop::collection::vec(0_u64..20_000, 8..14),
        noise in prop::collection::vec(0_u64..20_000, 10..14),
    ) {
        let after: Vec<u64> = noise.iter().map(|read| read + 60_000).collect();
        let mean = |reads: &[u64]| reads.iter().sum::<u64>() / reads.len() as u64;
        let timeline = logged(&before, &after, [mean(&before), mean(&after)], "/p");
        let found = told(&timeline, &forecast("main", -0.5), None);
        prop_assert!(found.change.unwrap().abs() < 1e-3, "{:?}", found);
        prop_assert_eq!(found.verdict, CameTrue::No);
        // Without anything beside it, that cannot be told.
        let (own, other) = (Id::pseudonym(b"/p"), Id::pseudonym(b"/q"));
        let alone = told(&timeline, &forecast("all", -0.5), Some(own));
        prop_assert_eq!((alone.control, alone.change.unwrap() < -0.3), (None, true));
        prop_assert_eq!(told(&timeline, &forecast("all", -0.5), Some(other)).verdict, CameTrue::TooEarly);
    }
}

#[test]
fn of_sessions_that_are_as_uneven_as_real_ones_the_interval_holds_what_it_says() {
    let mut state = 11;
    let mut uniform = || (next(&mut state) >> 11) as f64 / (1_u64 << 53) as f64;
    let held = (0..60).filter(|_| {
        let mut log = Story::new();
        for number in 0..40_i64 {
            // The largest tenth asks about half of all.
            let requests = (2.0 / (1.0 - 0.98 * uniform()).powf(0.7)) as u64;
            let share = uniform() * if requests > 6 { 1.0 } else { 0.4 };
            let start = if number < 20 { number * 10_000 } else { 1_000_000 + number * 10_000 };
            log.at(start).session(&format!("s{number}"), "/p");
            for _ in 0..requests {
                let read = (share * 100_000.0) as u64;
                log.human(40).ask(read, 100_000 - read, 0).says(10).wait(30);
            }
        }
        let found = told(&log.done(), &forecast("all", -0.3), None);
        found.lower.unwrap() <= 0.0 && 0.0 <= found.upper.unwrap()
    });
    let held = held.count();
    assert!(held >= 53, "the interval of 95 % held the truth in {held} of 60");
}

#[test]
fn what_changes_nothing_is_neither_cheaper_nor_more_expensive() {
    let nothing = BillForecast { change: 0.0, lower: 0.0, upper: 0.0, of_bill: 0.0, ..forecast("all", 0.0) };
    assert!(forecast_words(&nothing).starts_with("all requests cost the same in 9 later sessions; "), "{nothing:?}");
    let one = BillForecast { sessions: 1, ..forecast("main", -0.1) };
    assert!(forecast_words(&one).contains("10.0 % cheaper") && forecast_words(&one).contains("over 1 later session)"));
}
