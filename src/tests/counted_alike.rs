//! What stands at the end of a log, in a fork or at the edge of a window counts alike in every report.

use serde_json::{Value, json};

use crate::shell::arguments::Exit;
use crate::tests::harness::Home;
use crate::tests::log_builder::{Record, answers, asks, assistant, boundary, compact_summary, fails, log, user};

/// A home with these logs, by session.
fn home(logs: &[(&str, &[Record])]) -> Home {
    let home = Home::new();
    for (session, records) in logs {
        let records: Vec<Record> = records.iter().map(|record| record.clone().session(session)).collect();
        home.write(&format!(".claude/projects/p/{session}.jsonl"), log(&records));
    }
    home
}

fn says(message: &str) -> Record {
    assistant(message, &[json!({ "type": "text", "text": "an answer" })])
}

fn prompt(name: &str) -> Record {
    user(name, "please go on")
}

/// A field of every session of `mine sessions`, the one with most calls first.
fn of_sessions(home: &Home, field: &str, more: &[&str]) -> Vec<u64> {
    let told = home.json(&[&["mine", "sessions"], more].concat());
    let mut sessions = told["sessions"].as_array().unwrap().clone();
    sessions.sort_by_key(|session| std::cmp::Reverse(session["calls"].as_u64()));
    sessions.iter().map(|session| session[field].as_u64().unwrap()).collect()
}

#[test]
fn a_call_that_fails_where_no_request_follows_has_failed_on_the_bill_too() {
    let failing = [prompt("p1").at(1), asks("m1", "c1", "Bash").at(2), fails("c1", "no such file").at(3)];
    let compacted = [&failing[..], &[boundary("b1").at(4), compact_summary("s1", Some("b1")).at(5)]].concat();
    for records in [&failing[..], &compacted] {
        let home = home(&[("s", records)]);
        let bill = home.json(&["cost", "--since", "2026-01-01"]);
        let mined = home.json(&["mine", "tools"]);
        assert_eq!(bill["summary"]["failed_calls"], 1);
        assert_eq!(mined["tools"][0]["failed"], 1);
    }
}

#[test]
fn what_the_client_says_was_denied_did_not_fail() {
    let denied = fails("c1", "the model that judges calls is not there").at(3);
    let records = |kind: Option<&str>| {
        let denied = kind.map_or(denied.clone(), |kind| denied.clone().set("toolDenialKind", kind));
        [prompt("p1").at(1), asks("m1", "c1", "Bash").at(2), denied]
    };
    let counted = |kind: Option<&str>| {
        let tool = home(&[("s", &records(kind))]).json(&["mine", "tools"])["tools"][0].clone();
        (tool["failed"].as_u64().unwrap(), tool["rejected"].as_u64().unwrap())
    };
    assert_eq!(counted(None), (1, 0));
    assert_eq!(counted(Some("automode-unavailable")), (0, 1));
    assert_eq!(counted(Some("user-rejected")), (0, 1));
}

/// A session with two prompts, and what a fork of it begins with.
fn original() -> Vec<Record> {
    vec![
        prompt("q1").at(1),
        asks("m1", "c1", "Read").at(2),
        answers("c1", "text").at(3),
        prompt("q2").at(10),
        asks("m2", "c2", "Read").at(11),
        answers("c2", "text").at(12),
        says("m3").at(13),
    ]
}

#[test]
fn a_compaction_of_a_fork_counts_though_nothing_was_called_behind_it() {
    let own = [boundary("b1").at(20), compact_summary("s1", Some("b1")).at(21), says("m4").at(22)];
    let fork = [original(), own.to_vec()].concat();
    let home = home(&[("first", &original()), ("second", &fork)]);
    assert_eq!(of_sessions(&home, "compactions", &[]).iter().sum::<u64>(), 1);
    assert_eq!(home.json(&["ingest"])["history"]["compactions"], 1);
    // A copy of a compaction is none of its own.
    let home = self::home(&[("first", &fork), ("second", &[fork.clone(), vec![says("m5").at(30)]].concat())]);
    assert_eq!(of_sessions(&home, "compactions", &[]).iter().sum::<u64>(), 1);
}

#[test]
fn a_compaction_is_in_the_window_that_its_time_is_in() {
    let own = [boundary("b1").at(20), compact_summary("s1", Some("b1")).at(21), says("m4").at(22)];
    let home = home(&[("s", &[original(), own.to_vec()].concat())]);
    let within = |since: &str| of_sessions(&home, "compactions", &["--since", since]);
    assert_eq!(of_sessions(&home, "compactions", &[]), [1]);
    assert_eq!(within("2026-01-01"), [1]);
    assert_eq!(within("2026-01-02T03:00:19Z"), [1], "its calls were before");
    assert_eq!(within("2026-01-02T03:00:22Z"), [0]);
}

#[test]
fn prompts_of_a_fork_belong_to_whom_they_were_written_first() {
    let fork = [original(), vec![prompt("q3").at(30), asks("m5", "c5", "Read").at(31), says("m6").at(32)]].concat();
    for (first, second) in [("a", "b"), ("b", "a")] {
        let home = home(&[(first, &original()), (second, &fork)]);
        assert_eq!(of_sessions(&home, "turns", &[]), [2, 1], "{first}");
    }
}

#[test]
fn a_prompt_is_what_a_person_wrote_or_showed() {
    let image = json!([{ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } }]);
    let records = [
        prompt("q1").at(1).link("u1", None),
        says("m1").usage(10, 1).at(2).link("u2", Some("u1")),
        user("n1", "<task-notification>done</task-notification>").at(3).link("u3", Some("u2")),
        says("m2").usage(20, 1).at(4).link("u4", Some("u3")),
        user("q2", image).at(5).link("u5", Some("u4")),
        says("m3").usage(30, 1).at(6).link("u6", Some("u5")),
    ];
    let home = home(&[("s", &records)]);
    let told = home.json(&["session", "s"]);
    let prompts: Vec<&Value> = told["requests"].as_array().unwrap().iter().map(|request| &request["human"]).collect();
    assert_eq!(prompts, [&json!(true), &json!(false), &json!(true)]);
    assert_eq!(of_sessions(&home, "turns", &[]), [2]);
}

#[test]
fn an_answer_without_usage_is_counted_on_the_page() {
    let home = home(&[("s", &[prompt("q1").at(1), says("m1").at(2), says("m2").without_message("usage").at(3)])]);
    assert_eq!(home.json(&["report", "--since", "2026-01-01"])["spent"]["without_usage"], 1);
}

#[test]
fn a_lifetime_without_a_price_is_no_price() {
    let usage = json!({
        "input_tokens": 200_001, "output_tokens": 10, "cache_creation_input_tokens": 100,
        "cache_creation": { "ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 100 },
    });
    let answer = says("m1").message("usage", usage).message("model", "claude-sonnet-4-5-20250929");
    let home = home(&[("s", &[prompt("q1").at(1), answer.at(2)])]);
    let strict = home.run(&["what-if", "prompt-cache", "--strict-pricing"]);
    assert!(strict.exit == Exit::Failed && strict.err.contains("claude-sonnet-4-5"), "{}", strict.err);
    assert_eq!(home.run(&["what-if", "prompt-cache"]).exit, Exit::Done);
}

#[test]
fn a_summariser_that_is_in_the_log_is_not_estimated_beside_it() {
    let main = [
        prompt("q1").at(1),
        says("m1").usage(9_000, 1).at(2),
        boundary("b1").at(20),
        compact_summary("s1", Some("b1")).at(21),
        says("m2").usage(2_000, 1).at(22),
    ];
    let estimated = |home: &Home| {
        let told = home.json(&["report", "--since", "2026-01-01"]);
        told["spent"]["unlogged_calls"].as_u64().unwrap()
    };
    let home = home(&[("s", &main)]);
    assert_eq!(estimated(&home), 1);
    let agent = [prompt("q2").at(10), says("m9").usage(9_500, 300).at(19)];
    let agent: Vec<Record> = agent.into_iter().map(|record| record.session("s").agent("acompact-1")).collect();
    home.write(".claude/projects/p/s/subagents/agent-acompact-1.jsonl", log(&agent));
    assert_eq!(estimated(&home), 0);
}
