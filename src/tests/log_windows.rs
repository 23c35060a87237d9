//! Windows over a history: every count is that of a plain walk over the records in the window.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::Value;

use crate::base::id::Id;
use crate::logs::overview::Overview;
use crate::logs::trace::Millis;
use crate::tests::log_builder::*;
use crate::tests::log_stories::{Event, any_event, session, texts};

/// What a walk over the records of a main thread finds in a window.
#[derive(Default, PartialEq, Debug)]
struct Walk {
    calls: BTreeSet<Id>,
    messages: BTreeSet<Id>,
    compactions: u64,
    evicted: BTreeSet<Id>,
}

fn millis(record: &Value) -> Millis {
    let text = record["timestamp"].as_str().unwrap();
    crate::logs::field::parse_millis(text.as_bytes()).unwrap()
}

fn walk(records: &[Record], window: &std::ops::Range<Millis>) -> Walk {
    let records: Vec<Value> = records.iter().map(|record| serde_json::from_str(&record.to_string()).unwrap()).collect();
    let id = |value: &Value| Id::of(value.as_str().unwrap().as_bytes());
    let mut out = Walk::default();
    let mut began: BTreeMap<Id, Millis> = BTreeMap::new();
    let mut last_compaction = None;
    let mut compacted: Vec<Millis> = Vec::new();
    for (number, record) in records.iter().enumerate() {
        if record["subtype"] == "compact_boundary" {
            last_compaction = Some((number, record["uuid"].clone()));
            compacted.push(millis(record));
        } else if record["isCompactSummary"] == true {
            let belongs = last_compaction.as_ref().is_some_and(|(at, _)| number - at <= 3);
            if !belongs {
                last_compaction = Some((number, Value::Null));
                compacted.push(millis(record));
            }
        } else if record["subtype"] == "microcompact_boundary" {
            let calls = record["microcompactMetadata"]["compactedToolIds"].as_array().unwrap();
            out.evicted.extend(calls.iter().map(id));
        } else if record["type"] == "assistant" {
            began.entry(id(&record["message"]["id"])).or_insert(millis(record));
            for block in
                record["message"]["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_use")
            {
                if window.contains(&millis(record)) {
                    out.calls.insert(id(&block["id"]));
                }
            }
        }
    }
    out.evicted.retain(|call| out.calls.contains(call));
    out.messages = began.into_iter().filter(|(_, at)| window.contains(at)).map(|(id, _)| id).collect();
    out.compactions = compacted.iter().filter(|at| window.contains(at)).count() as u64;
    out
}

fn any_thread() -> impl Strategy<Value = Vec<Event>> {
    let on_main = |event: &Event| !matches!(event, Event::Agent(..) | Event::Attachment);
    prop::collection::vec(any_event().prop_filter("main thread", on_main), 1..16)
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn every_count_in_a_window_is_that_of_a_walk_over_it(
        events in any_thread(),
        (from, to) in (0..60_i64, 0..80_i64),
        open in (any::<bool>(), any::<bool>()),
    ) {
        let folder = session("s", &events, &[]);
        let files = texts(&folder);
        let told = Told::of(&files.iter().map(|(name, log)| (name.as_str(), log.as_str())).collect::<Vec<_>>());
        let start = if open.0 { Millis::MIN } else { START_MS + from * 1000 };
        let end = if open.1 { Millis::MAX - 1 } else { START_MS + to * 1000 };
        let prompts = told.history.prompts.iter().filter(|(_, at)| (start..end).contains(at)).count();
        let history = told.history.within(&(start..end));
        prop_assert_eq!(history.prompts.len(), prompts);
        let found = Walk {
            calls: history.calls.iter().map(|call| call.id).collect(),
            messages: history.messages.iter().map(|message| message.id).collect(),
            compactions: history.compactions(),
            evicted: history.evictions.iter().map(|eviction| history.calls[eviction.call].id).collect(),
        };
        let expected = folder.first().map(|(_, records)| walk(records, &(start..end))).unwrap_or_default();
        prop_assert_eq!(&found, &expected);
        let overview = Overview::of(&history);
        prop_assert_eq!(overview.calls, expected.calls.len() as u64);
        prop_assert_eq!(overview.compactions, expected.compactions);
        let is_silent = expected.calls.is_empty() && expected.messages.is_empty() && expected.compactions == 0;
        prop_assert_eq!(overview.sessions, u64::from(!is_silent || prompts > 0));
        prop_assert_eq!(overview.chains, u64::from(!expected.calls.is_empty()));
        prop_assert_eq!(overview.evictions, expected.evicted.len() as u64);
    }
}

#[test]
fn a_message_across_a_compaction_leaves_no_negative_count_in_any_window() {
    let records = [
        asks("m1", "c1", "Read").at(1),
        asks("m2", "c2", "Read").link("u2", None).at(2),
        boundary("b1").at(3),
        asks("m1", "c3", "Read").link("u3", None).at(4),
    ];
    let told = Told::of(&[("f", &log(&records))]);
    for start in 0..6 {
        let history = told.history.clone().within(&(START_MS + start * 1000..Millis::MAX));
        let expected = u64::from(start <= 3);
        assert_eq!(Overview::of(&history).compactions, expected, "from second {start}");
    }
}

/// What ended before the window is no partition of it: rules and telemetry tell compactions by these numbers.
#[test]
fn partitions_count_from_the_first_that_is_in_the_window() {
    let call = |number: u32| asks(&format!("m{number}"), &format!("c{number}"), "Read").at(number);
    let records = [call(1), boundary("b1").at(2), call(3), boundary("b2").at(4), call(5), boundary("b3").at(6)];
    let told = Told::of(&[("f", &log(&records))]);
    for (start, partitions, behind) in
        [(0, vec![0, 1, 2], vec![1, 2, 3]), (3, vec![0, 1], vec![1, 2]), (5, vec![0], vec![1])]
    {
        let history = told.history.clone().within(&(START_MS + start * 1000..Millis::MAX));
        let found: Vec<u32> = history.calls.iter().map(|call| call.partition).collect();
        let compactions: Vec<u32> = history.chains[0].compactions.iter().map(|one| one.partition).collect();
        assert_eq!((found, compactions), (partitions, behind), "from second {start}");
    }
}

#[test]
fn a_log_that_holds_only_a_prompt_is_a_session_in_every_window_with_it() {
    let told = Told::of(&[("f", &log(&[user("p", "go").at(1)]))]);
    let at = START_MS + 1000;
    for (window, expected) in [(Millis::MIN..Millis::MAX, 1), (at..at + 1, 1), (at + 1..Millis::MAX, 0)] {
        let history = told.history.clone().within(&window);
        assert_eq!((history.sessions.len(), history.prompts.len()), (expected, expected), "{window:?}");
    }
}

#[test]
fn windows_side_by_side_have_all_prompts_and_compactions() {
    let records = [user("p", "go").at(1), asks("m", "c", "Read").at(2), boundary("b").at(5), user("q", "on").at(7)];
    let told = Told::of(&[("f", &log(&records))]);
    let counts = |window: std::ops::Range<Millis>| {
        let history = told.history.clone().within(&window);
        [history.prompts.len() as u64, history.compactions()]
    };
    let whole = counts(START_MS..START_MS + 9000);
    for cut in (0..9).map(|second| START_MS + second * 1000) {
        let [before, after] = [counts(START_MS..cut), counts(cut..START_MS + 9000)];
        assert_eq!([before[0] + after[0], before[1] + after[1]], whole, "cut at {cut}");
    }
    assert_eq!(whole, [2, 1]);
}

#[test]
fn what_has_no_time_is_in_no_window_that_ends() {
    let records = [asks("m1", "c1", "Read").without("timestamp"), asks("m2", "c2", "Read").at(1)];
    let told = Told::of(&[("f", &log(&records))]);
    let history = told.history.within(&(Millis::MIN..START_MS + 5000));
    assert_eq!((history.calls.len(), history.messages.len()), (1, 1));
    assert_eq!(history.span(), Some((START_MS + 1000, START_MS + 1000)));
}

#[test]
fn a_call_without_a_time_says_nothing_of_when_its_session_began() {
    for timeless in [0, 1] {
        let mut records = [asks("m1", "c1", "Read").at(1), asks("m2", "c2", "Read").at(1)];
        records[timeless] = records[timeless].clone().without("timestamp");
        let told = Told::of(&[("f", &log(&records))]);
        assert_eq!(told.history.of_sessions(&[true]).span(), Some((START_MS + 1000, START_MS + 1000)));
    }
}
