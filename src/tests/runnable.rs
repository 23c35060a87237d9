//! Calls that cannot run are neither written nor made ahead.

use serde_json::{Value, json};

use super::harness::Home;
use super::log_builder::{Record, answers, assistant, log};
use super::script::{Scene, Script};
use crate::base::data::Data;
use crate::mine::runnable::Runnable;

fn learned(inputs: &[Value]) -> Runnable {
    let scene = Scene::of(&[inputs
        .iter()
        .fold(Script::new("s"), |script, input| script.step(&[("mcp__x__get", input.clone(), "an answer")]))]);
    let told = scene.told();
    Runnable::shipped(&Data::default()).unwrap().learned(told.history, told.values, told.tools, &[])
}

#[test]
fn a_schema_says_what_is_required() {
    let known = Runnable::shipped(&Data::default()).unwrap();
    let can = |tool: &str, argument: &str| known.can_run(tool, argument);
    assert!(can("Read", "file_path") && can("Grep", "pattern") && can("Glob", "pattern"));
    assert!(!can("Grep", "path") && !can("WebFetch", "url") && !can("Edit", "file_path") && !can("Read", "offset"));
    assert!(can("mcp__x__get", "whatever"), "nothing is known of it");
}

#[test]
fn without_a_schema_what_every_call_had_is_required() {
    let both = json!({ "project": "acme/shop", "id": "issue-4711" });
    let known = learned(&[both.clone(), both.clone()]);
    assert!(!known.can_run("mcp__x__get", "id"));
    let known = learned(&[both, json!({ "id": "issue-4712" })]);
    assert!(known.can_run("mcp__x__get", "id") && !known.can_run("mcp__x__get", "project"));
    // The value of a long text is not kept, that it was there is.
    let long = json!({ "id": "issue-4711", "question": "why ".repeat(100) });
    assert!(!learned(&[long.clone(), long.clone()]).can_run("mcp__x__get", "id"));
    assert!(learned(&[long, json!({ "id": "issue-4712" })]).can_run("mcp__x__get", "id"));
    // A short word has no value that is kept either; alone it lacks nothing.
    assert!(learned(&[json!({ "id": "7" }), json!({ "id": "8" })]).can_run("mcp__x__get", "id"));
    // Values in lists and objects belong to the argument that holds them.
    let nested = json!({ "filter": { "name": "issue-4711", "state": "open" } });
    assert!(learned(&[nested]).can_run("mcp__x__get", "filter.name"));
}

/// A search whose hits are searched again with a pattern of their own, and pages that are read with a question.
fn session(number: usize) -> String {
    let mut records = Vec::new();
    let mut call = |tool: &str, input: Value, answer: String| {
        let id = format!("c{number}-{}", records.len());
        records.push(assistant(
            &format!("m-{id}"),
            &[json!({ "type": "tool_use", "id": id, "name": tool, "input": input })],
        ));
        records.push(answers(&id, answer));
    };
    for turn in 0..8 {
        let file = format!("/work/src/part_{number}_{turn}.rs");
        call(
            "mcp__x__search",
            json!({ "words": format!("first {number} {turn}") }),
            json!({ "hits": [{ "file": file }] }).to_string(),
        );
        call("Grep", json!({ "pattern": format!("second_{number}_{turn}"), "path": file }), "3: so on".to_owned());
        let page = format!("https://example.org/page/{number}/{turn}");
        call(
            "mcp__x__find",
            json!({ "words": format!("words {number} {turn}") }),
            json!({ "hits": [{ "address": page }] }).to_string(),
        );
        call("WebFetch", json!({ "url": page, "prompt": "what does it say" }), "it says this and that".to_owned());
    }
    let of_session = |record: Record| record.set("sessionId", format!("s{number}"));
    log(&records.into_iter().map(of_session).collect::<Vec<_>>())
}

#[test]
fn links_whose_call_cannot_run_are_neither_written_nor_made_ahead() {
    let home = Home::new();
    for number in 0..30 {
        let log = session(number).replace("2026-01-02T", &format!("2026-01-{:02}T", number + 1));
        home.write(&format!(".claude/projects/p/s{number:02}.jsonl"), log);
    }
    let mined = home.json(&["mine", "projections", "--explain"]);
    let links: Vec<(&str, &str)> = mined["projections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["to"].as_str().unwrap(), row["argument"].as_str().unwrap()))
        .collect();
    let pass = links.contains(&("Grep", "path")) && links.contains(&("WebFetch", "url"));
    assert!(pass, "the values pass: {links:?}");
    home.run(&["tune", "from-claude-logs", "--tools"]);
    let text = std::fs::read_to_string(home.config()).unwrap();
    assert!(!text.contains("projection_arg = \"path\"") && !text.contains("projection_arg = \"url\""), "{text}");
    let report = home.json(&["replay", "--planner"]);
    for arm in report["planner"]["arms"].as_array().unwrap().iter().filter(|arm| arm["arm"] != "published") {
        assert_eq!(arm["total"]["sent"], 0, "{}", arm["arm"]);
        let loss =
            arm["metrics"].as_array().unwrap().iter().find(|metric| metric["metric"] == "exact_recall_loss").unwrap();
        assert_eq!(loss["verdict"], "n/a", "no decline could have hit: {loss}");
    }
}
