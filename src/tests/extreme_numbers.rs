//! Numbers that no log should hold: no command panics, whatever stands where a number belongs.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::tests::harness::Home;
use crate::tests::log_builder::*;

/// A command line of every kind that reads logs.
const COMMANDS: [&[&str]; 21] = [
    &["ingest"],
    &["doctor"],
    &["doctor", "--reconcile"],
    &["mine", "tools"],
    &["mine", "sessions"],
    &["mine", "edges"],
    &["mine", "patterns"],
    &["mine", "projections"],
    &["tune", "from-claude-logs"],
    &["cost", "--by", "tool,day"],
    &["session"],
    &["replay"],
    &["replay", "--planner"],
    &["replay", "--policy", "all"],
    &["replay", "--policy", "prompt-cache", "--include-output", "estimated"],
    &["replay", "--policy", "compaction", "--explain"],
    &["replay", "--policy", "history-trim"],
    &["replay", "--policy", "tool-filter"],
    &["replay", "--policy", "pick-tools"],
    &["replay", "--policy", "pipeline"],
    &["replay", "--policy", "arg-check"],
];

fn any_number() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(u64::MAX),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(5_000_000_000_000_000_u64),
        json!(u64::from(u32::MAX)),
        json!(1_u64 << 32),
        json!(-1),
        json!(0),
        json!(1e308),
        json!(-1e308),
        json!(0.5),
        json!("7"),
        Value::Null,
    ])
}

fn any_time() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "2026-10-30T03:00:00.000Z",
        "9999-12-31T23:59:59.999Z",
        "0001-01-01T00:00:00Z",
        "-0001-01-01T00:00:00Z",
        "2199-12-31T23:59:59.999-23:59",
        "2000-01-01T00:00:00+23:59",
        "1970-01-01T00:00:00Z",
        "",
    ])
}

fn usage(numbers: &[Value]) -> Value {
    json!({
        "input_tokens": numbers[0], "output_tokens": numbers[1],
        "cache_creation_input_tokens": numbers[2], "cache_read_input_tokens": numbers[3],
        "cache_creation": { "ephemeral_5m_input_tokens": numbers[4], "ephemeral_1h_input_tokens": numbers[5] },
    })
}

proptest! {
    #![proptest_config(cases(8))]

    #[test]
    fn no_command_panics_on_extreme_numbers(
        numbers in prop::collection::vec(any_number(), 32),
        times in prop::collection::vec(any_time(), 8),
    ) {
        let mut records = Vec::new();
        for (at, numbers) in numbers.chunks_exact(8).enumerate() {
            let time = times[at * 2];
            let (message, call) = (format!("m{at}"), format!("c{at}"));
            records.push(user(&format!("p{at}"), "go on with the plan").set("timestamp", time));
            let compacted = json!({ "trigger": "auto", "preTokens": numbers[6] });
            records.push(boundary(&format!("b{at}")).set("compactMetadata", compacted).set("timestamp", time));
            let asked = asks(&message, &call, "Read").message("usage", usage(numbers));
            records.push(asked.message("model", "claude-opus-4-6").set("timestamp", time));
            records.push(answers(&call, "one line\n".repeat(40)).set("timestamp", times[at * 2 + 1]));
            let cleared = json!({ "preTokens": numbers[6], "tokensSaved": numbers[7], "compactedToolIds": [call] });
            let clears = micro_compaction(&format!("x{at}"), &[]).set("microcompactMetadata", cleared);
            records.push(clears.set("timestamp", time));
        }
        let home = Home::new();
        home.write(".claude/projects/p/s-main.jsonl", log(&records));
        for command in COMMANDS {
            for form in ["table", "json"] {
                let outcome = home.run(&[command, &["--format", form]].concat());
                prop_assert!(!outcome.err.contains("panicked"), "{command:?}: {}", outcome.err);
            }
        }
    }
}
