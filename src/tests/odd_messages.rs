//! Messages that are told oddly: every report counts them alike.

use serde_json::{Value, json};

use crate::tests::harness::Home;

/// A line of an answer.
fn answer(uuid: &str, message: Value, request: &str) -> Value {
    json!({
        "type": "assistant", "uuid": uuid, "sessionId": "s", "cwd": "/home/user/lantern", "version": "2.1.100",
        "timestamp": "2026-10-21T10:00:00.000Z", "requestId": request, "message": message,
    })
}

fn message(id: &str, model: &str, usage: Value, content: Value) -> Value {
    json!({ "id": id, "role": "assistant", "model": model, "usage": usage, "content": content, "stop_reason": "end_turn" })
}

fn words() -> Value {
    json!([{ "type": "text", "text": "well" }])
}

fn call(id: &str) -> Value {
    json!([{ "type": "tool_use", "id": id, "name": "Read", "input": { "file_path": "/a" } }])
}

fn home(lines: &[Value]) -> Home {
    let home = Home::new();
    let text: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    home.write(".claude/projects/p/s.jsonl", text.concat());
    home
}

const OPUS: &str = "claude-opus-4-6";

/// Messages of `ingest`, requests and nano-dollars of the page and of `cost`.
fn counted(home: &Home) -> [u64; 5] {
    let page = home.json(&["report", "--since", "2026-01-01", "--allow-empty"]);
    let cost = home.json(&["cost", "--since", "2026-01-01"]);
    let ingest = home.json(&["ingest"]);
    let number = |value: &Value| value.as_u64().unwrap();
    [
        number(&ingest["history"]["messages"]),
        number(&page["spent"]["requests"]),
        number(&cost["summary"]["bill"]["requests"]),
        number(&page["spent"]["total"]["nano_usd"]),
        number(&cost["summary"]["bill"]["cost"]["nano_usd"]),
    ]
}

#[test]
fn an_answer_without_a_prompt_is_on_the_bill() {
    let full = json!({ "input_tokens": 10, "output_tokens": 100 });
    let only_output = json!({ "input_tokens": 0, "output_tokens": 700 });
    let lines = [
        answer("u1", message("m1", OPUS, full, words()), "r1"),
        answer("u2", message("m2", OPUS, only_output, words()), "r2"),
    ];
    let [messages, requests, billed, page, cost] = counted(&home(&lines));
    assert_eq!((messages, requests, billed), (2, 2, 2));
    assert_eq!(page, cost);
    let [_, alone, _, page, cost] = counted(&home(&lines[1..]));
    assert_eq!((alone, page), (1, cost));
    assert!(cost > 0);
}

#[test]
fn writes_by_lifetime_are_part_of_all_writes() {
    let usage = |total: Option<u64>, short: u64, long: u64| {
        let split = json!({ "ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long });
        let mut usage = json!({ "input_tokens": 1, "output_tokens": 1, "cache_creation": split });
        if let Some(total) = total {
            usage["cache_creation_input_tokens"] = json!(total);
        }
        usage
    };
    let written = |usages: &[Value]| {
        let lines = usages.iter().zip(["u1", "u2"]);
        let lines = lines.map(|(usage, uuid)| answer(uuid, message("m1", OPUS, usage.clone(), words()), "r1"));
        let home = home(&lines.collect::<Vec<_>>());
        let spent = home.json(&["cost", "--since", "2026-01-01"])["summary"]["bill"]["spent"].clone();
        let all = home.json(&["ingest"])["totals"]["usage"]["cache_creation_input_tokens"].as_u64().unwrap();
        (spent["write_5m"].as_u64().unwrap(), spent["write_1h"].as_u64().unwrap(), all)
    };
    assert_eq!(written(&[usage(Some(100), 70, 30)]), (70, 30, 100));
    assert_eq!(written(&[usage(None, 70, 30)]), (70, 30, 100), "without a total they are it");
    assert_eq!(written(&[usage(Some(100), 100, 100)]), (0, 100, 100), "beyond the total they are cut");
    assert_eq!(
        written(&[usage(Some(100), 100, 0), usage(Some(100), 0, 100)]),
        (0, 100, 100),
        "of two copies one holds"
    );
    assert_eq!(written(&[usage(Some(10), 10, 0), usage(Some(100), 70, 30)]), (70, 30, 100));
}

#[test]
fn copies_that_differ_in_their_model_have_the_same_price_everywhere() {
    let usage = json!({ "input_tokens": 1000, "output_tokens": 100 });
    for other in ["claude-haiku-4-5-20251001", "", "<synthetic>"] {
        for models in [[other, OPUS], [OPUS, other]] {
            let lines = models.iter().zip(["u1", "u2"]);
            let lines = lines.map(|(model, uuid)| answer(uuid, message("m1", model, usage.clone(), words()), "r1"));
            let home = home(&lines.collect::<Vec<_>>());
            let rows = home.json(&["cost", "--by", "model", "--since", "2026-01-01"])["rows"].clone();
            assert_eq!(rows.as_array().unwrap().len(), 1, "{models:?}: {rows}");
            assert_eq!(rows[0]["model"], OPUS, "{models:?}");
            assert_eq!(home.json(&["ingest"])["totals"]["models"], json!({ OPUS: 1 }), "{models:?}");
        }
    }
}

#[test]
fn empty_ids_name_nothing() {
    let usage = json!({ "input_tokens": 10, "output_tokens": 5 });
    let of = |message_id: &str, call_id: &str| {
        let lines = ["u1", "u2"].map(|uuid| answer(uuid, message(message_id, OPUS, usage.clone(), call(call_id)), ""));
        let home = home(&lines);
        let calls = home.json(&["ingest"])["history"]["calls"].as_u64().unwrap();
        let rows = home.json(&["cost", "--by", "tool", "--since", "2026-01-01"])["rows"].clone();
        let row = rows.as_array().unwrap().iter().find(|row| row["tool"] == "Read").cloned().unwrap();
        (counted(&home)[..3].to_vec(), calls, row["calls"].as_u64().unwrap())
    };
    assert_eq!(of("", ""), (vec![2, 2, 2], 2, 2));
    assert_eq!(of("", "c1").0, [2, 2, 2]);
}

#[test]
fn a_record_that_stands_twice_makes_its_call_once() {
    let usage = json!({ "input_tokens": 10, "output_tokens": 5 });
    let with_words = json!([words()[0], call("c1")[0]]);
    for (one, other, content) in
        [("", "", call("c1")), ("u1", "u2", call("c1")), ("", "", with_words.clone()), ("u1", "u2", with_words)]
    {
        let lines = [one, other].map(|uuid| answer(uuid, message("m1", OPUS, usage.clone(), content.clone()), "r1"));
        let home = home(&lines);
        let calls = home.json(&["ingest"])["history"]["calls"].as_u64().unwrap();
        let rows = home.json(&["cost", "--by", "tool", "--since", "2026-01-01"])["rows"].clone();
        let row = rows.as_array().unwrap().iter().find(|row| row["tool"] == "Read").cloned().unwrap();
        assert_eq!((calls, row["calls"].as_u64().unwrap()), (1, 1), "{one:?}, {other:?}");
    }
}
