//! Answers that only say that there was nothing count as empty, by tool: in `mine tools`, in failed search loops, in fail-fast.

use serde_json::json;

use crate::logs::vocabulary::Vocabulary;
use crate::tests::harness::Home;
use crate::tests::log_builder::*;

/// A session in which one tool answers with these texts, one after the other.
fn session(name: &str, tool: &str, texts: &[&str]) -> String {
    let mut records = vec![user("p", "go").session(name)];
    for (number, text) in texts.iter().enumerate() {
        let call = format!("{name}-{number}");
        records.push(asks(&format!("m-{call}"), &call, tool).session(name).at(number as u32 * 2));
        records.push(answers(&call, *text).session(name).at(number as u32 * 2 + 1));
    }
    log(&records)
}

fn tools(home: &Home) -> serde_json::Value {
    home.json(&["mine", "tools"])["tools"].clone()
}

fn empty_of(rows: &serde_json::Value, tool: &str) -> u64 {
    let row = rows.as_array().expect("rows").iter().find(|row| row["tool"] == tool).expect("the tool is there");
    row["empty"].as_u64().expect("a count")
}

#[test]
fn every_text_counts_for_its_own_tools_and_for_no_other() {
    let words = Vocabulary::shipped();
    let own: Vec<(&str, &str)> = vec![
        ("Grep", "No matches found"),
        ("Grep", "No files found"),
        ("Glob", "No files found"),
        ("ToolSearch", "No matching deferred tools found"),
        ("Bash", "(Bash completed with no output)"),
        ("mcp__tracker__list_issues", "[]"),
    ];
    let home = Home::new();
    for (number, (tool, text)) in own.iter().enumerate() {
        let name = format!("s{number}");
        // A file may hold such words; a search may find more than them.
        let log = session(&name, tool, &[text, "something"]) + &session(&format!("{name}-r"), "Read", &[text]);
        let more = session(&format!("{name}-m"), tool, &[&format!("{text} in time")]);
        home.write(&format!(".claude/projects/p/{name}.jsonl"), log);
        home.write(&format!(".claude/projects/p/{name}-m.jsonl"), more);
    }
    let rows = tools(&home);
    assert_eq!(empty_of(&rows, "Grep"), 2);
    assert_eq!(empty_of(&rows, "Glob"), 1);
    assert_eq!(empty_of(&rows, "ToolSearch"), 1);
    assert_eq!(empty_of(&rows, "Bash"), 1);
    assert_eq!(empty_of(&rows, "mcp__tracker__list_issues"), 1);
    assert_eq!(empty_of(&rows, "Read"), 0, "what a file holds is no answer of the tool");
    assert_eq!(words.empty_answers_of("Edit").count(), 0);
}

#[test]
fn a_search_that_keeps_finding_nothing_is_a_failed_search_loop() {
    let home = Home::new();
    let texts = ["No matches found", "No matches found", "No files found", "a.rs:1:x", "No matches found"];
    home.write(".claude/projects/p/s.jsonl", session("s", "Grep", &texts));
    let report = home.json(&["mine", "patterns"]);
    let loops = report["patterns"].as_array().expect("rows").iter().find(|row| row["id"] == "failed_search_loops");
    assert_eq!(loops.expect("the pattern")["matches"], 2, "the second and the third in a row");
}

#[test]
fn fail_fast_arms_on_answers_that_say_that_there_was_nothing() {
    let home = Home::new();
    let ask = |name: &str, number: usize| {
        let block = json!({ "type": "tool_use", "id": format!("{name}-{number}"), "name": "Grep", "input": { "pattern": "lost" } });
        assistant(&format!("m-{name}-{number}"), &[block]).session(name).at(number as u32 * 2)
    };
    for name in ["a", "b", "c", "d"] {
        let mut records = vec![user("p", "go").session(name)];
        for number in 0..5 {
            records.push(ask(name, number));
            let call = format!("{name}-{number}");
            records.push(answers(&call, "No matches found").session(name).at(number as u32 * 2 + 1));
        }
        home.write(&format!(".claude/projects/p/{name}.jsonl"), log(&records));
    }
    home.write(".config/devboy/pipeline_config.toml", "[tools.Grep]\nfail_fast_after_n = 2\n");
    let report = home.json(&["replay", "--planner"]).to_string();
    let refused = |report: &str| {
        report
            .match_indices("\"refused\":")
            .any(|(at, key)| report[at + key.len()..].starts_with(|digit: char| ('1'..='9').contains(&digit)))
    };
    assert!(refused(&report), "{report}");
    assert!(!report.contains("\"refused_wrongly\":1"), "{report}");
}
