//! A window of time cuts sessions in two: what a thread was sent before is in its contexts and in the cache, and counts nowhere.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::harness::Home;
use super::log_builder::{assistant, log, tool_use, user};
use super::report_page::{OPUS, Told, place};

/// 2026-01-03 00:00 UTC: every session of [`home`] has begun, and none is over.
const CUT: &str = "2026-01-03";
/// Seconds from the start of the made-up logs (2026-01-02 00:00 UTC) to half an hour before the cut.
const BEFORE_CUT_S: u32 = 23 * 3_600 + 1_800;

/// Sessions that go on over midnight: large results before it, small ones after it, a miss, another model now and then.
fn home() -> Home {
    home_that_misses(Some(15))
}

/// The same with a cache miss at one of the steps, or with none.
fn home_that_misses(miss: Option<u32>) -> Home {
    let home = Home::new();
    for number in 0..3_u32 {
        let mut told = Told::new(&format!("over-{number}"), "/home/user/lantern", BEFORE_CUT_S + number * 300);
        let mut context = 15_000;
        told.ask(OPUS, 0, context, 300);
        for step in 0..24_u32 {
            let (tool, length) = if step < 8 { ("Bash", 6_000) } else { ("Read", 700 + 90 * number) };
            let text = format!("line {step} of session {number}, as it was read\n").repeat(length as usize / 40);
            told.second += 150;
            let (read, write) = if miss == Some(step) { (0, context + 2_000) } else { (context, 2_000) };
            told.call(OPUS, (read, write, 200), tool, json!(text));
            context += 2_000;
            if step % 7 == 6 {
                told.ask(OPUS, context, 400, 300);
                context += 400;
            }
        }
        place(&home, &told);
    }
    home
}

fn rows(home: &Home, words: &[&str]) -> Vec<Value> {
    let found = home.json(&[&["cost", "--all"], words].concat());
    found["rows"].as_array().unwrap().clone()
}

/// What rows cost and how many calls they have, by the label behind the day.
fn sums<'r>(rows: impl Iterator<Item = &'r Value>, key: &str) -> BTreeMap<String, [u64; 5]> {
    let mut sums: BTreeMap<String, [u64; 5]> = BTreeMap::new();
    for row in rows {
        let all = ["first_nano_usd", "carried_nano_usd", "again_nano_usd", "nano_usd", "calls"];
        let all = all.map(|part| row[part].as_u64().unwrap());
        let sum = sums.entry(row[key].as_str().unwrap().to_owned()).or_default();
        sum.iter_mut().zip(all).for_each(|(sum, part)| *sum += part);
    }
    sums
}

#[test]
fn the_bill_of_a_window_is_that_of_its_days() {
    let home = home();
    for key in ["tool", "content", "outcome"] {
        let days = rows(&home, &["--by", &format!("day,{key}")]);
        let late = sums(days.iter().filter(|row| row["day"] == CUT), key);
        let window = sums(rows(&home, &["--by", key, "--since", CUT]).iter(), key);
        assert_eq!(window, late, "{key}");
        assert!(days.iter().any(|row| row["day"] != CUT), "there is something before");
    }
}

/// Request by request every policy does what it does over all days.
#[test]
fn policies_do_in_a_window_what_they_do_in_the_whole() {
    let home = home();
    let lines = |policy: &[&str], more: &[&str]| {
        let file = home.path("lines.jsonl");
        let words = [&["what-if"], policy, &["--per-request", file.to_str().unwrap()], more].concat();
        let report = home.json(&words);
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (report, lines)
    };
    let policies: [&[&str]; 6] = [
        &["prompt-cache", "--ttl", "1h"],
        &["compaction", "--set", "window=60000"],
        &["compaction", "--tier", "micro"],
        &["history-trim"],
        &["tool-filter"],
        &["pick-tools"],
    ];
    for policy in policies {
        let (whole, all) = lines(policy, &[]);
        let (window, late) = lines(policy, &["--since", CUT]);
        let later: Vec<Value> = all.iter().filter(|line| late.contains(line)).cloned().collect();
        assert_eq!(later, late, "{policy:?}");
        let requests = |report: &Value| report["policies"][0]["input"]["requests"].as_u64().unwrap();
        assert_eq!(requests(&window), late.len() as u64, "{policy:?}");
        assert!(requests(&window) < requests(&whole) && !late.is_empty(), "{policy:?}");
    }
}

/// The cache is warm where a window begins in the middle of a thread.
#[test]
fn no_window_begins_cold() {
    let home = home_that_misses(None);
    let report = home.json(&["what-if", "prompt-cache", "--since", CUT]);
    let policy = &report["policies"][0];
    let [billed, simulated] = ["billed", "baseline"].map(|side| policy[side]["usd"].as_f64().unwrap());
    assert!((simulated / billed - 1.0).abs() < 0.02, "{simulated} for {billed}");
}

/// A message of several records is one answer, and counts in the window that it is in.
#[test]
fn answers_without_usage_are_those_of_the_window() {
    let home = home();
    let part = |block| assistant("bare", &[block]).message("usage", Value::Null);
    let text = |said: &str| json!({ "type": "text", "text": said });
    let parts = [text("thinking aloud"), text("and saying it"), tool_use("c1", "Bash")].map(part);
    let records = [vec![user("p", "go").at(0)], parts.map(|part| part.at(4)).to_vec()].concat();
    home.write(".claude/projects/-home-user-lantern/bare.jsonl", log(&records));
    let told = |more: &[&str]| {
        home.json(&[&["report", "--since", "2026-01-01"], more].concat())["spent"]["without_usage"].clone()
    };
    assert_eq!(told(&[]), 1);
    for lake in [&[][..], &["--no-lake"]] {
        let late = home.json(&[&["report", "--since", CUT], lake].concat());
        assert_eq!(late["spent"]["without_usage"], 0, "{lake:?}");
    }
}

/// What the client notes of prompts beside its logs is no damage.
#[test]
fn a_history_of_prompts_is_no_malformed_log() {
    let home = home();
    let prompt = json!({ "display": "go on", "pastedContents": {}, "timestamp": 1_759_000_000_000_u64, "project": "/home/user/lantern" });
    home.write(".claude/projects/history.jsonl", format!("{prompt}\n{prompt}\n"));
    let told = home.run(&["cost"]);
    assert!(!told.err.contains("malformed"), "{}", told.err);
}

/// A window that it is asked about leaves no log out.
#[test]
fn doctor_looks_at_all_logs_whatever_window_it_is_asked_about() {
    let home = home();
    home.write(".claude/projects/-home-user-lantern/old.jsonl", log(&[user("p", "go").at(0)]));
    let told = home.run(&["doctor", "--no-lake", "--since", CUT]).out;
    assert!(told.contains("ok    reach"), "{told}");
}

/// What a fork goes on from stood in its context, in whichever session it was read.
#[test]
fn a_fork_that_goes_on_in_a_window_carries_what_it_was_forked_off() {
    let mut told = Told::new("lantern-1", "/home/user/lantern", BEFORE_CUT_S);
    let mut context = 15_000;
    told.ask(OPUS, 0, context, 300);
    for step in 0..5 {
        let text = format!("line {step} as it was read\n").repeat(300);
        told.call(OPUS, (context, 2_000, 200), "Read", json!(text));
        context += 2_000;
    }
    told.ask(OPUS, context, 500, 300);
    context += 500;
    let before = told.text.clone();
    told.second = BEFORE_CUT_S + 3_600;
    told.ask(OPUS, 0, context + 500, 300).ask(OPUS, context + 500, 400, 300);
    let (same, forked) = (Home::new(), Home::new());
    place(&same, &told);
    let name = |session: &str| format!(".claude/projects/-home-user-lantern/{session}.jsonl");
    forked.write(&name("lantern-1"), before);
    forked.write(&name("lantern-2"), told.text.replace(r#""sessionId":"lantern-1""#, r#""sessionId":"lantern-2""#));
    for key in ["tool", "content"] {
        let cost = |home: &Home| {
            let rows = rows(home, &["--by", key, "--since", CUT]);
            let cost = |row: &Value| (row[key].as_str().unwrap().to_owned(), row["nano_usd"].as_f64().unwrap());
            rows.iter().map(cost).collect::<BTreeMap<String, f64>>()
        };
        let (same, forked) = (cost(&same), cost(&forked));
        assert_eq!(same.keys().collect::<Vec<_>>(), forked.keys().collect::<Vec<_>>(), "{key}");
        // A token more or less is rounding.
        let is_near = |(name, cost): (&String, &f64)| (cost - forked[name]).abs() < 0.01 * cost;
        assert!(same.iter().all(is_near), "{key}: {same:?} {forked:?}");
    }
    let requests = |home: &Home| home.json(&["report", "--since", CUT])["spent"].clone();
    assert_eq!(requests(&same), requests(&forked));
}

/// What entered a context before the window did not enter it there.
#[test]
fn the_parts_of_a_history_entered_no_more_than_the_whole() {
    let home = home();
    let entered = |window: &[&str]| {
        let out = home.run(&[&["replay"], window].concat()).out;
        let words = out.split(" of the ").nth(1).and_then(|rest| rest.split(" tokens that entered").next());
        words.unwrap_or_else(|| panic!("{out}")).replace(',', "").parse::<u64>().unwrap()
    };
    assert_eq!(entered(&["--until", "2026-01-02"]) + entered(&["--since", CUT]), entered(&[]));
}
