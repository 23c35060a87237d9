//! What `tune history` says of changes of Claude Code's settings: planted bills before and after, and requests beside them.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::timeline_builder::{NOON, Story};
use crate::base::bootstrap::next;
use crate::base::data::Data;
use crate::base::id::Id;
use crate::logs::timeline::requests::Timeline;
use crate::logs::trace::NO_TIME;
use crate::rules::report::forecast_words;
use crate::settings::entries::{BillForecast, Journal, JournalChange, JournalEntry};
use crate::whatif::client::LeverPart;
use crate::whatif::client::actual::{
    ActualChange, CameTrue, HistoryRules, ReachedProjects, SettingChange, actual, joint_changes,
};
use crate::whatif::sim::money::Prices;

fn forecast(part: &str, change: f64) -> BillForecast {
    BillForecast {
        unpriced: 0.0,
        part: part.to_owned(),
        without: BTreeSet::new(),
        change,
        lower: change - 0.05,
        upper: change + 0.05,
        of_bill: change,
        usd: None,
        beside: None,
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

/// A change at so many seconds.
fn change(second: i64, part: &str, project: Option<Id>) -> SettingChange {
    let projects = project.map_or_else(
        || ReachedProjects::AllBut(BTreeSet::new()),
        |project| ReachedProjects::Only(BTreeSet::from([project])),
    );
    SettingChange { at: NOON + second * 1_000, projects, part: part.parse().unwrap() }
}

/// What became of one of some changes.
fn among(timeline: &Timeline, changes: &[SettingChange], place: usize, forecast: &BillForecast) -> ActualChange {
    let data = Data::default();
    let rules: HistoryRules = data.parsed("history.toml").unwrap();
    let prices = data.read("prices.toml", Prices::parse).unwrap();
    actual(timeline, &prices, (changes, place), forecast, &rules)
}

fn told(timeline: &Timeline, forecast: &BillForecast, project: Option<Id>) -> ActualChange {
    among(timeline, &[change(1_000_000, &forecast.part, project)], 0, forecast)
}

/// Twelve sessions each before both changes, between them and after them, the changes at 1,000,000 and 2,000,000 seconds: of 100,000 tokens
/// these are read on main threads and by subagents.
fn in_three_stretches(reads: [[u64; 2]; 3]) -> Timeline {
    let mut log = Story::new();
    for (stretch, [main, agents]) in (0..).zip(reads) {
        for number in 0..12 {
            log.at(stretch * 1_000_000 + number * 1_000).session(&format!("{stretch} {number}"), "/p");
            let noise = number as u64 * 500;
            (0..5).for_each(|_| {
                log.human(40).ask(main + noise, 100_000 - main - noise, 0).says(10).wait(30);
            });
            log.agent(&format!("of {stretch} {number}"));
            (0..5).for_each(|_| {
                log.human(40).ask(agents + noise, 100_000 - agents - noise, 0).says(10).wait(30);
            });
        }
    }
    log.done()
}

#[test]
fn what_was_changed_at_once_is_no_control_and_without_one_nothing_is_clear() {
    let timeline = in_three_stretches([[0, 0], [80_000, 80_000], [80_000, 80_000]]);
    let both = ["main", "subagents"].map(|part| change(1_000_000, part, None));
    for (place, part) in [(0, "main"), (1, "subagents")] {
        let found = among(&timeline, &both, place, &forecast(part, -0.76));
        assert_eq!((found.control, found.verdict, found.after), (None, CameTrue::NotClear, 24), "{found:?}");
        assert!((found.change.unwrap() + 0.74).abs() < 0.05, "{found:?}");
        // Nor is anything far from what was told held against it.
        assert_eq!(among(&timeline, &both, place, &forecast(part, 0.5)).verdict, CameTrue::NotClear);
    }
    // Whatever concerns all requests leaves nothing to hold it against either.
    let found = told(&timeline, &forecast("all", -0.76), None);
    assert_eq!((found.control, found.verdict), (None, CameTrue::NotClear));
}

#[test]
fn each_change_is_held_against_what_was_between_it_and_the_others() {
    let timeline = in_three_stretches([[0, 0], [80_000, 0], [80_000, 80_000]]);
    let changes = [change(1_000_000, "main", None), change(2_000_000, "subagents", None)];
    for (place, part) in [(0, "main"), (1, "subagents")] {
        let found = among(&timeline, &changes, place, &forecast(part, -0.74));
        assert_eq!((found.before, found.after, found.verdict), (12, 12, CameTrue::Yes), "{found:?}");
    }
    // Too few between two changes stay too few.
    let early = [change(1_000_000, "main", None), change(1_003_000, "main", None)];
    let found = among(&timeline, &early, 0, &forecast("main", -0.74));
    assert_eq!((found.after, found.change, found.verdict), (3, None, CameTrue::NotClear));
    // What another project changed for itself concerns that one alone.
    let other = Some(Id::pseudonym(b"/q"));
    let apart = [change(500_000, "all", other), change(1_000_000, "main", Some(Id::pseudonym(b"/p")))];
    assert_eq!(among(&timeline, &apart, 1, &forecast("main", -0.74)).before, 12);
}

#[test]
fn a_session_without_times_is_on_no_side() {
    let (cold, warm) = ([0; 12], [80_000; 12]);
    let mut timeline = logged(&cold, &warm, [50_000, 50_000], "/p");
    let session = timeline.chains.last().unwrap().session;
    for request in &mut timeline.requests {
        if timeline.chains[request.chain as usize].session == session {
            request.end = NO_TIME;
        }
    }
    let found = told(&timeline, &forecast("main", -0.7), None);
    assert_eq!((found.before, found.after), (12, 11), "{found:?}");
}

fn entry(told: &[(&str, BillForecast)], together: Option<BillForecast>) -> JournalEntry {
    let change = |(key, told): &(&str, BillForecast)| JournalChange {
        key: (*key).to_owned(),
        forecast: Some(told.clone()),
        ..JournalChange::default()
    };
    let blank = r#"{"id":"1","at_ms":0,"tool_version":"","command":"","config":"","before_sha":"","after_sha":"","existed":true,"changes":[]}"#;
    let blank: JournalEntry = serde_json::from_str(blank).unwrap();
    JournalEntry { changes: told.iter().map(change).collect(), together, ..blank }
}

#[test]
fn changes_of_one_entry_that_concern_the_same_requests_are_one() {
    let journal = Journal::default();
    let (window, bash) = (("window", forecast("all", -0.3)), ("bash", forecast("all", -0.2)));
    let whole = forecast("all", -0.45);
    let entry_of_both = entry(&[window.clone(), bash.clone()], Some(whole.clone()));
    let [both] = &joint_changes(&entry_of_both, &journal)[..] else { panic!("one change") };
    assert_eq!((&both.keys[..], both.part, &both.forecast), (&["window", "bash"][..], LeverPart::All, &Some(whole)));
    // Where nobody tried them together: all of both at most, the best of them at least.
    let entry_of_both = entry(&[window.clone(), bash], None);
    let [both] = &joint_changes(&entry_of_both, &journal)[..] else { panic!("one change") };
    let told = both.forecast.as_ref().unwrap();
    for (found, expected) in [(told.change, -0.5), (told.lower, -0.6), (told.upper, -0.25)] {
        assert!((found - expected).abs() < 1e-9, "{told:?}");
    }
    let of_parts = entry(&[("main", forecast("main", -0.3)), ("agents", forecast("subagents", -0.2))], None);
    let parts = joint_changes(&of_parts, &journal);
    assert_eq!(parts.iter().map(|one| one.part).collect::<Vec<_>>(), [LeverPart::Main, LeverPart::Subagents]);
    // What reaches a project by one of them is compared there, too.
    let (one, other) = (Id::pseudonym(b"/p"), Id::pseudonym(b"/q"));
    let apart = |key, without| (key, BillForecast { without: BTreeSet::from(without), ..forecast("all", -0.2) });
    let in_part = entry(&[apart("window", [one, other]), apart("bash", [other, Id::NONE])], None);
    let [both] = &joint_changes(&in_part, &journal)[..] else { panic!("one change") };
    assert_eq!(both.without, BTreeSet::from([other]));
    // One that takes another one back concerns what that one did.
    let undo = JournalEntry {
        changes: vec![JournalChange { key: "main".into(), ..JournalChange::default() }],
        ..entry(&[], None)
    };
    let journal = Journal { entries: vec![of_parts.clone()], ..journal };
    let [undone] = &joint_changes(&undo, &journal)[..] else { panic!("one change") };
    assert_eq!((undone.part, &undone.forecast), (LeverPart::Main, &None));
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
    // Half of what was told is a saving all the same.
    let half: Vec<u64> = warm.iter().map(|read| read - 40_000).collect();
    let found = told(&logged(&cold, &half, [50_000, 50_000], "/p"), &forecast("main", expected), None);
    assert!(found.verdict == CameTrue::Less && found.upper.unwrap() < 0.0, "{found:?}");
    let found = told(&logged(&cold, &warm[..9], [50_000, 50_000], "/p"), &forecast("main", expected), None);
    assert_eq!((found.verdict, found.after, found.change), (CameTrue::TooEarly, 9, None));
    // What is missing before the change comes with no time.
    let found = told(&logged(&cold[..4], &warm[..9], [50_000, 50_000], "/p"), &forecast("main", expected), None);
    assert_eq!((found.verdict, found.before, found.change), (CameTrue::TooFewBefore, 4, None));
}

/// Twelve sessions each before and after a change, of a project each: what is read on main threads after it, and how many of them
/// have subagents.
fn of_projects(after: &[(&str, u64)], with_agents: [i64; 2]) -> Timeline {
    let mut log = Story::new();
    for (side, with_agents) in (0..).zip(with_agents) {
        for number in 0..12 {
            for (place, (project, read)) in (0..).zip(after) {
                let read = if side == 0 { 0 } else { *read } + number as u64 * 500;
                log.at(side * 1_000_000 + number * 1_000 + place * 400)
                    .session(&format!("{project} {side} {number}"), project);
                (0..5).for_each(|_| {
                    log.human(40).ask(read, 100_000 - read, 0).says(10).wait(30);
                });
                if number < with_agents {
                    log.agent(&format!("of {project} {side} {number}"));
                    (0..5).for_each(|_| {
                        log.human(40).ask(50_000, 50_000, 0).says(10).wait(30);
                    });
                }
            }
        }
    }
    log.done()
}

#[test]
fn what_it_is_held_against_is_waited_for_as_well() {
    let found = |with_agents| told(&of_projects(&[("/p", 80_000)], with_agents), &forecast("main", -0.74), None);
    let early = found([12, 4]);
    assert_eq!((early.verdict, early.change), (CameTrue::TooEarly, None), "{early:?}");
    assert_eq!((early.control, early.control_sessions), (Some("subagents"), Some([12, 4])), "{early:?}");
    assert_eq!(found([12, 12]).verdict, CameTrue::Yes);
    // What a bill shows is not why it shows it.
    assert_eq!(CameTrue::Yes.into_str(), "fits the forecast");
    // No time brings those before it.
    let never = found([4, 4]);
    assert_eq!((never.verdict, never.control, never.control_sessions), (CameTrue::NotClear, None, None), "{never:?}");
}

#[test]
fn a_project_that_sets_it_itself_is_not_compared() {
    let timeline = of_projects(&[("/p", 80_000), ("/q", 0)], [12, 12]);
    let apart = ReachedProjects::AllBut(BTreeSet::from([Id::pseudonym(b"/q")]));
    let all = change(1_000_000, "main", None);
    let told = forecast("main", -0.74);
    let reached = among(&timeline, &[SettingChange { projects: apart, ..all }], 0, &told);
    assert_eq!((reached.verdict, reached.before, reached.after), (CameTrue::Yes, 12, 12), "{reached:?}");
    assert_eq!(among(&timeline, &[all], 0, &told).verdict, CameTrue::Less);
    // What that project changes for itself is no next change.
    let own = change(1_500_000, "main", Some(Id::pseudonym(b"/q")));
    let apart = ReachedProjects::AllBut(BTreeSet::from([Id::pseudonym(b"/q")]));
    let both = [SettingChange { projects: apart, ..change(1_000_000, "main", None) }, own];
    assert_eq!(among(&timeline, &both, 0, &told).verdict, CameTrue::Yes);
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
        prop_assert_eq!(told(&timeline, &forecast("all", -0.5), Some(other)).verdict, CameTrue::TooFewBefore);
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
    assert!(forecast_words(&one).contains("(change −15.0 % to −5.0 %, 95 % over"), "{}", forecast_words(&one));
    assert!(
        forecast_words(&one).contains("10.0 % cheaper")
            && forecast_words(&one).contains("over 1 later session; on real logs one over so few ")
    );
}
