//! What stands at the end of a log, in a fork or at the edge of a window counts alike in every report.

use serde_json::{Value, json};

use crate::shell::arguments::Exit;
use crate::tests::harness::Home;
use crate::tests::log_builder::{
    Record, agent_progress, answers, asks, assistant, boundary, compact_summary, fails, log, user,
};

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
fn a_compaction_that_no_request_follows_is_one_of_its_session() {
    let records = [
        prompt("q1").at(1),
        asks("m1", "c1", "Read").at(2),
        answers("c1", "x").at(3),
        boundary("b1").at(4),
        compact_summary("s1", Some("b1")).at(5),
    ];
    let home = home(&[("s", &chained(&records))]);
    assert_eq!(of_sessions(&home, "compactions", &[]), [1]);
    let told = home.run(&["session", "s", "--since", "2026-01-01"]);
    assert!(told.out.contains("1 compaction"), "{}", told.out);
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

/// The original goes on when the fork has ended.
#[test]
fn a_fork_that_says_so_owns_nothing_that_its_original_has() {
    let more = [prompt("q3").at(50), says("m8").at(51), says("m9").at(52)];
    let whole = chained(&[&original()[..], &more].concat());
    let copied = |record: &Record| {
        let of = json!({ "sessionId": "first", "messageUuid": record.json()["uuid"] });
        record.clone().set("forkedFrom", of)
    };
    let copies: Vec<Record> = chained(&original()).iter().map(copied).collect();
    let own = says("m4").link("u-m4", Some("u-m3")).at(20);
    let home = home(&[("first", &whole), ("second", &[&copies[..], &[own]].concat())]);
    assert_eq!(of_sessions(&home, "messages", &[]), [5, 1]);
    assert_eq!(of_sessions(&home, "calls", &[]), [2, 0]);
    let home = self::home(&[("first", &whole), ("second", &copies)]);
    assert_eq!((of_sessions(&home, "messages", &[])[0], of_sessions(&home, "calls", &[])[0]), (5, 2));
}

#[test]
fn what_was_done_before_the_first_prompt_is_a_turn_of_its_own() {
    let turns = [prompt("q1").at(3), asks("m1", "c1", "Read").at(4), prompt("q2").at(6), says("m2").at(7)];
    for (before, expected) in [(Vec::new(), 2), (vec![asks("m0", "c0", "Read").at(1)], 3)] {
        let home = home(&[("s", &[before, turns.to_vec()].concat())]);
        assert_eq!(of_sessions(&home, "turns", &[]), [expected]);
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

/// A subagent that no file records is told of where its first chunks are counted, whether it called a tool or not.
#[test]
fn a_subagent_without_a_log_and_without_calls_is_told_of_beside_the_bill() {
    let seen = assistant("m9", &[json!({ "type": "text", "text": "done" })]).usage(900, 5).at(3);
    let main = [prompt("q1").at(1), asks("m1", "c1", "Task").usage(10, 1).at(2), agent_progress("a1", &seen).at(3)];
    let home = home(&[("s", &main)]);
    for command in
        [&["cost"][..], &["report", "--since", "2026-01-01"], &["what-if", "prompt-cache"], &["session", "s"]]
    {
        let told = home.json(command)["inputs"]["subagents_in_progress_only"].clone();
        assert_eq!(told, json!({ "count": 1, "holds": "first_chunks" }), "{command:?}");
    }
    assert_eq!(home.json(&["mine", "sessions"])["inputs"]["subagents_in_progress_only"]["count"], 0);
}

/// What such a subagent was shown is a part of what entered contexts, as its tool responses are a part of those.
#[test]
fn the_share_of_tool_responses_counts_the_same_readers_above_and_below() {
    let seen = [
        asks("m9", "c9", "Read").usage(20_000, 5).at(3),
        answers("c9", "word ".repeat(10_000)).at(4),
        says("m10").usage(31_000, 5).at(5),
    ];
    let told = seen.iter().zip(3..).map(|(record, second)| agent_progress("a1", record).at(second));
    let main: Vec<Record> =
        [prompt("q1").at(1), asks("m1", "c1", "Task").usage(5_000, 1).at(2)].into_iter().chain(told).collect();
    let replay = home(&[("s", &main)]).json(&["replay"])["replay"].clone();
    assert_eq!(replay["input"]["context_tokens"], 36_000, "{replay:#}");
}

/// A session lasts from its first request to its last answer, wherever that is told.
#[test]
fn a_session_of_one_request_lasts_until_it_is_answered() {
    let home = home(&[("s", &[prompt("p1").at(0), says("m1").usage(10, 1).at(540)])]);
    let lasted = home.run(&["session", "s"]).out;
    assert!(lasted.contains("9 min"), "{lasted}");
    let row = home.run(&["cost", "--by", "session", "--since", "2026-01-01"]).out;
    assert!(row.contains("9 min"), "{row}");
}

#[test]
fn searches_of_the_web_are_told_beside_the_bill() {
    let page = |tool: &str| {
        let records = [
            prompt("p1").at(1),
            asks("m1", "c1", tool).usage(10, 1).at(2),
            answers("c1", "found").at(3),
            asks("m2", "c2", tool).usage(10, 1).at(4),
            fails("c2", "no network").at(5),
            asks("m3", "c3", tool).usage(10, 1).at(6),
            answers("c3", "found").at(7),
            says("m4").usage(10, 1).at(8),
        ];
        home(&[("s", &chained(&records))]).json(&["report", "--since", "2026-01-01"])["spent"].clone()
    };
    let (searched, fetched) = (page("WebSearch"), page("WebFetch"));
    // Two of them were answered, at ten dollars a thousand; the bill is the same without.
    assert_eq!(searched["web_searches"], 2);
    assert_eq!(searched["web_searches_nano_usd"], 20_000_000);
    assert_eq!(fetched["web_searches"], 0);
    assert_eq!(fetched["total"], searched["total"]);
}

#[test]
fn the_server_of_a_tool_stands_before_the_first_two_underscores() {
    let records = [prompt("p1").at(1), asks("m1", "c1", "mcp__relay__mail__send").at(2), answers("c1", "sent").at(3)];
    let home = home(&[("s", &records)]);
    let bill = home.json(&["cost", "--by", "server", "--since", "2026-01-01"]).to_string();
    assert!(bill.contains("\"relay\"") && !bill.contains("relay__mail"), "{bill}");
}

/// The records, each the child of the one before.
fn chained(records: &[Record]) -> Vec<Record> {
    let parents = std::iter::once(Value::Null).chain(records.iter().map(|record| record.json()["uuid"].clone()));
    records.iter().zip(parents).map(|(record, parent)| record.clone().set("parentUuid", parent)).collect()
}

/// The record, so many seconds into a day of January.
fn on(record: Record, day: u32, second: u32) -> Record {
    record.set("timestamp", format!("2026-01-{day:02}T03:{:02}:{:02}.000Z", second / 60, second % 60))
}

/// What a request was billed for.
fn billed(message: &str, [read, written]: [u64; 2]) -> Record {
    let writes = json!({ "ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": written });
    let usage = json!({
        "input_tokens": 5, "output_tokens": 5, "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written, "cache_creation": writes,
    });
    says(message).message("usage", usage)
}

#[test]
fn an_answer_without_a_prompt_does_not_shorten_the_life_of_the_cache() {
    let told = |between: &[Record]| {
        let first = [prompt("p1").at(1), billed("m1", [0, 50_000]).at(2)];
        let last = [prompt("p2").at(1_202), billed("m3", [1_000, 60_000]).at(1_204)];
        home(&[("s", &[&first[..], between, &last].concat())]).run(&["session", "s"]).out
    };
    let silent = says("m2").message("usage", json!({ "input_tokens": 0, "output_tokens": 5 }));
    for out in [told(&[]), told(&[silent.at(3)])] {
        assert!(out.contains("cache miss") && !out.contains("cache expired"), "{out}");
    }
}

#[test]
fn a_session_of_which_only_a_subagent_is_logged_has_no_main_thread() {
    let agent = [prompt("q").at(1), says("m1").usage(9_000, 10).at(2), says("m2").usage(9_100, 10).at(3)];
    let agent: Vec<Record> = agent.into_iter().map(|record| record.session("s").agent("a1")).collect();
    let home = Home::new();
    home.write(".claude/projects/p/s/subagents/agent-a1.jsonl", log(&agent));
    let told = home.run(&["session", "s"]).out;
    assert!(told.contains("subagent 1") && !told.contains("main"), "{told}");
}

#[test]
fn a_request_without_a_time_has_no_day_and_lasts_no_time() {
    let records =
        [prompt("p1").at(1), says("m1").usage(9_000, 10).at(2), says("m2").usage(9_000, 10).without("timestamp")];
    let next = [prompt("p2").at(100_000), says("m3").usage(9_000, 10).at(100_002)];
    let home = home(&[("s", &records), ("t", &next)]);
    let lasted = home.run(&["cost", "--by", "session", "--since", "2026-01-01", "--allow-empty"]).out;
    assert!(!lasted.contains("2562047"), "{lasted}");
    let page = home.run(&["report"]).out;
    assert!(!page.contains("? $") && page.contains("of it on no known day"), "{page}");
}

#[test]
fn a_summariser_behind_a_long_pause_is_estimated_alike_everywhere() {
    let records = [
        prompt("q1").at(1),
        billed("m1", [0, 160_000]).at(2),
        boundary("b1").at(9_000),
        compact_summary("s1", Some("b1")).at(9_001),
        billed("m2", [0, 20_000]).at(9_002),
    ];
    let home = home(&[("s", &records)]);
    let details = |policy: &str| home.json(&["what-if", policy])["policies"][0]["details"][policy].clone();
    let (cache, compaction) = (details("prompt-cache"), details("compaction"));
    let of_cache = &cache["unlogged"]["summaries"]["spent"];
    let estimate = &compaction["real"]["summariser_estimate"];
    assert_eq!((&of_cache["uncached"], &of_cache["read"]), (&estimate["uncached"], &estimate["read"]));
    assert!(of_cache["uncached"].as_u64().unwrap() >= 160_000, "{of_cache}");
}

#[test]
fn of_one_session_nothing_is_clear() {
    let records: Vec<Record> =
        (0..20).map(|turn| billed(&format!("m{turn}"), [turn * 1_000, 1_000]).at(400 * turn as u32)).collect();
    let told = home(&[("s", &records)]).json(&["what-if", "prompt-cache", "--set", "ttl=5m"]);
    let policy = &told["policies"][0];
    assert_eq!((&policy["is_clear"], &policy["whole"]["verdict"]), (&json!(false), &json!("no clear winner")));
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_read() {
    let home = Home::new();
    for asked in [
        &["compaction", "--set", "window=0"][..],
        &["pick-tools", "--set", "query_chars=0"],
        &["prompt-cache", "--sweep", "ttl=5m,1h", "--alias", "agent-runtime"],
        &["compaction", "--alias", "agent-runtime"],
        &["all", "--alias", "agent-runtime"],
        &["prompt-cache", "--alias", "agent-runtime", "--format", "csv"],
        &["prompt-cache", "--alias", "agent-runtime", "--explain"],
        &["prompt-cache", "--set", "ttl=5m", "--sweep", "prompt-cache.ttl=5m,1h"],
        &["compaction", "--tier", "micro", "--sweep", "tier=auto,micro"],
        &["compaction", "--set", "window=100000", "--set", "compaction.window=200000"],
    ] {
        let outcome = home.run(&[&["what-if"], asked].concat());
        assert_eq!(outcome.exit, Exit::Usage, "{asked:?}: {}", outcome.err);
    }
}

#[test]
fn a_compaction_counts_in_the_window_in_which_it_was_made() {
    let records = [
        on(prompt("q1"), 2, 1),
        on(billed("m1", [0, 90_000]), 2, 2),
        on(boundary("b1"), 4, 0),
        on(compact_summary("s1", Some("b1")), 4, 1),
        on(prompt("q2"), 4, 2),
        on(billed("m2", [0, 20_000]), 4, 3),
    ];
    let home = home(&[("s", &records)]);
    let counted = |window: &[&str]| {
        let told = home.json(&[&["what-if", "prompt-cache"], window].concat());
        told["policies"][0]["details"]["prompt-cache"]["prompt_cache"]["compactions"].as_u64().unwrap()
    };
    assert_eq!((counted(&[]), counted(&["--until", "2026-01-03"]), counted(&["--since", "2026-01-04"])), (1, 0, 1));
}

#[test]
fn a_hook_that_ran_when_a_turn_ended_belongs_to_that_turn() {
    let summary = |name: &str| {
        let infos = json!([{ "command": "x", "durationMs": 200_000 }]);
        Record::new("system", name).set("subtype", "stop_hook_summary").set("hookInfos", infos)
    };
    let session = |name: &str| {
        vec![
            on(prompt(&format!("q1{name}")), 2, 1),
            on(billed(&format!("m1{name}"), [0, 5_000]), 2, 2),
            on(summary(&format!("h{name}")), 2, 202),
            on(prompt(&format!("q2{name}")), 12, 1),
            on(billed(&format!("m2{name}"), [0, 5_000]), 12, 3),
        ]
    };
    let names = ["a", "b", "c", "d", "e"];
    let sessions = names.map(session);
    let home = home(&names.into_iter().zip(sessions.iter().map(Vec::as_slice)).collect::<Vec<_>>());
    let ran = |window: &[&str]| {
        let told = home.json(&[&["report"], window].concat());
        let hooks = told["findings"].as_array().unwrap().iter().find(|found| found["id"] == "hooks").cloned();
        hooks.map_or(0, |found| found["count"].as_u64().unwrap())
    };
    assert_eq!((ran(&["--since", "2026-01-01", "--until", "2026-01-05"]), ran(&["--since", "2026-01-05"])), (5, 0));
}

#[test]
fn a_text_of_the_same_size_is_not_the_same_text() {
    let read = |message: &str, call: &str| {
        assistant(
            message,
            &[json!({ "type": "tool_use", "id": call, "name": "Read", "input": { "file_path": "/w/f" } })],
        )
    };
    let twice = |second: &str| {
        let records = [
            prompt("q").at(1),
            read("m1", "c1").at(2),
            answers("c1", "version 1").at(3),
            read("m2", "c2").at(4),
            answers("c2", second).at(5),
            says("m3").at(6),
        ];
        let told = home(&[("s", &chained(&records))]).json(&["cost", "--by", "outcome", "--since", "2026-01-01"]);
        told["rows"].as_array().unwrap().iter().any(|row| row["outcome"].as_str().unwrap().contains("read again"))
    };
    assert!(twice("version 1") && !twice("version 2"));
}

#[test]
fn a_subagent_whose_own_file_was_cut_off_is_counted_as_its_parent_saw_it() {
    let seen = says("m2").usage(3_000, 7).session("s");
    let main = [prompt("q1").at(1), asks("m1", "c1", "Task").at(2), agent_progress("a1", &seen).at(3)];
    let home = home(&[("s", &main)]);
    let counted = |home: &Home| {
        let bill = home.json(&["cost", "--since", "2026-01-01"])["summary"]["bill"]["requests"].as_u64().unwrap();
        let policies = home.json(&["what-if", "prompt-cache"])["policies"][0]["input"]["requests"].as_u64().unwrap();
        (bill, policies)
    };
    let before = counted(&home);
    assert_eq!(before, (2, 2));
    let asked = prompt("q2").at(2).session("s").agent("a1");
    home.write(".claude/projects/p/s/subagents/agent-a1.jsonl", log(std::slice::from_ref(&asked)));
    assert_eq!(counted(&home), before);
    let whole = [asked, seen.agent("a1").at(3)];
    home.write(".claude/projects/p/s/subagents/agent-a1.jsonl", log(&whole));
    assert_eq!(counted(&home), before);
    assert_eq!(home.run(&["doctor", "--reconcile"]).exit, Exit::Done);
}

/// What a parent repeats of a message that is on record says nothing more of it, in every report.
#[test]
fn a_progress_record_names_no_model_of_a_message_with_a_record_of_its_own() {
    let says = |model: &str| says("m1").message("model", model).usage(3_000, 7).session("s").at(2);
    let seen = says("claude-sonnet-4-5-20250929");
    let home = home(&[("s", &[prompt("q1").at(1), says("claude-opus-4-6"), agent_progress("a1", &seen).at(3)])]);
    let told = home.json(&["cost", "--by", "model", "--since", "2026-01-01"]);
    let models: Vec<_> = told["rows"].as_array().unwrap().iter().map(|row| row["model"].clone()).collect();
    assert_eq!(models, ["claude-opus-4-6"]);
}

/// Who forks a session may give the copies uuids of their own, and say of each what it is a copy of.
#[test]
fn a_fork_counts_alike_whether_its_copies_keep_their_uuids_or_not() {
    let body = "a result of some length ".repeat(60);
    let original = chained(&[
        prompt("q1").at(1),
        asks("m1", "c1", "Read").usage(2_000, 20).at(2),
        answers("c1", body.as_str()).at(3),
        says("m2").usage(2_500, 20).at(4),
        boundary("b1").at(5),
        compact_summary("s1", Some("b1")).at(6),
        prompt("q2").at(7),
        asks("m3", "c2", "Bash").usage(2_600, 20).at(8),
        answers("c2", body.as_str()).at(9),
        says("m4").usage(3_000, 20).at(10),
    ]);
    let copy = |record: &Record, is_renamed: bool| {
        let mut fields: serde_json::Map<String, Value> = serde_json::from_str(&record.to_string()).unwrap();
        fields.insert("forkedFrom".to_owned(), json!({ "sessionId": "s", "messageUuid": fields["uuid"] }));
        for key in ["uuid", "parentUuid"] {
            if let Some(uuid) = fields.get(key).and_then(Value::as_str).map(str::to_owned).filter(|_| is_renamed) {
                fields.insert(key.to_owned(), json!(format!("n-{uuid}")));
            }
        }
        fields.insert("sessionId".to_owned(), json!("fork"));
        json!(fields).to_string() + "\n"
    };
    let told = |is_renamed: bool| {
        let home = home(&[("s", &original)]);
        let copies: String = original.iter().map(|record| copy(record, is_renamed)).collect();
        let last = if is_renamed { "n-m4" } else { "m4" };
        let own =
            [prompt("q3").link("q3", Some(last)).at(20), says("m5").link("m5", Some("q3")).usage(3_200, 20).at(21)];
        let own: Vec<Record> = own.iter().map(|record| record.clone().session("fork")).collect();
        home.write(".claude/projects/p/fork.jsonl", copies + &log(&own));
        let words: [&[&str]; 7] = [
            &["ingest"],
            &["cost", "--by", "session,content", "--since", "2026-01-01"],
            &["cost", "--by", "outcome", "--since", "2026-01-01"],
            &["mine", "sessions"],
            &["what-if", "compaction"],
            &["session", "s"],
            &["session", "fork"],
        ];
        words.map(|words| {
            let mut report = home.json(words);
            // Files, and how many bytes they have.
            for field in ["inputs", "files", "bytes"] {
                report.as_object_mut().unwrap().remove(field);
            }
            report["totals"].as_object_mut().map(|totals| totals.remove("bytes"));
            report
        })
    };
    let (kept, renamed) = (told(false), told(true));
    for (kept, renamed) in kept.iter().zip(&renamed) {
        assert_eq!(kept, renamed);
    }
    assert_eq!(kept[0]["history"]["compactions"], 1);
}

/// What its copies are called stands in the part of a log that was read before.
#[test]
fn a_fork_that_goes_back_is_the_same_whether_its_log_is_read_at_once_or_as_it_grows() {
    let body = "a result of some length ".repeat(60);
    let copied = |record: Record, original: &str| {
        record.set("forkedFrom", json!({ "sessionId": "old", "messageUuid": original })).session("fork")
    };
    let read = |message: &str, call: &str, parent: &str| {
        let question = format!("q-{message}");
        let asked = asks(message, call, "Read").usage(2_000, 20).link(message, Some(&question));
        let answer = answers(call, body.as_str()).link(call, Some(message));
        [prompt(&question).link(&question, Some(parent)), asked, answer].map(|record| record.session("fork"))
    };
    let begun =
        [copied(prompt("n1").link("n1", None), "o1"), copied(says("m0").usage(1_000, 20).link("n2", Some("n1")), "o2")];
    let first: String = log(&begun) + &log(&read("m1", "c1", "n2"));
    let second = log(&read("m2", "c2", "n2"));
    let place = ".claude/projects/p/fork.jsonl";
    let (grown, whole) = (Home::new(), Home::new());
    grown.write(place, &first);
    let read = |home: &Home| home.json(&["replay", "--reproducible"])["replay"]["arms"].clone();
    read(&grown);
    grown.write(place, first.clone() + &second);
    whole.write(place, first + &second);
    assert_eq!(read(&grown), read(&whole));
    assert_eq!(read(&whole)[0]["savings"]["responses"], 2);
    assert_eq!(read(&whole)[0]["savings"]["saved_tokens"], 0, "what was left behind is not referred to");
}
