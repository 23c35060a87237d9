//! Other makers' models number their calls anew in each conversation, or in each answer: whatever the ids are, the calls are the
//! same.

use serde_json::{Value, json};

use super::harness::Home;
use super::log_builder::{Record, answers, assistant, log, micro_compaction, user};
use super::report_page::{OPUS, Told, place};

const SESSIONS: u32 = 4;
const CALLS: u32 = 8;

/// How the calls of a session are called, by their number from 1 on.
type Ids<'i> = &'i dyn Fn(u32, u32) -> String;

/// Sessions of calls whose answers are JSON of which the model takes up a part.
fn home(ids: Ids<'_>) -> Home {
    let home = Home::new();
    for session in 0..SESSIONS {
        let mut told = Told::new(&format!("s{session}"), "/home/user/lantern", session * 20_000);
        let mut context = 20_000;
        told.ask(OPUS, 0, context, 300);
        for call in 0..CALLS {
            let rows: Vec<Value> =
                (0..20).map(|row| json!({ "key": format!("item-{session}-{call}-{row}"), "size": row })).collect();
            told.call(OPUS, (context, 2_000, 200), "Read", json!(Value::from(rows).to_string()));
            context += 2_000;
        }
        told.ask(OPUS, context, 400, 300);
        let numbers = told.text.matches("\"tool_use_id\"").count() as u32;
        assert_eq!(numbers, CALLS);
        // Those of a session stand in its log in order, each twice: as it is asked, and with its answer.
        let mut next = 0;
        for number in 0..1_000 {
            let own = format!("\"call-s{session}-{number}\"");
            if told.text.contains(&own) {
                next += 1;
                told.text = told.text.replace(&own, &json!(ids(session, next)).to_string());
            }
        }
        place(&home, &told);
    }
    home
}

#[test]
fn ids_that_come_again_change_no_figure() {
    let [own, of_conversation, of_answer]: [Ids<'_>; 3] =
        [&|session, call| format!("toolu_{session}_{call}"), &|_, call| format!("Read_no:{call}"), &|_, _| {
            "the_call0".to_owned()
        }];
    let homes = [own, of_conversation, of_answer].map(home);
    let commands: [&[&str]; 8] = [
        &["what-if", "prompt-cache"],
        &["what-if", "arg-check"],
        &["what-if", "pipeline"],
        // In the midst of the second session.
        &["what-if", "pipeline", "--since", "2026-01-02T05:33:40Z"],
        &["cost", "--by", "tool"],
        &["report"],
        &["mine", "tools"],
        &["mine", "fields"],
    ];
    for command in commands {
        let [own, of_conversation, of_answer] = homes.each_ref().map(|home| {
            let report = home.json(&[command, &["--reproducible"]].concat());
            report.to_string().replace(home.path("").to_str().unwrap(), "")
        });
        assert_eq!(own, of_conversation, "{command:?}");
        assert_eq!(own, of_answer, "{command:?}");
    }
    let checked = homes[2].json(&["what-if", "arg-check"]).to_string();
    assert!(checked.contains(&(SESSIONS * CALLS).to_string()), "{checked}");
}

/// A call of the message of this number with its answer; each message has a longer context.
fn call(message: u32, id: &str, (tool, input): (&str, Value), answer: &str) -> Vec<Record> {
    let block = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
    let asked = assistant(&format!("m{message}"), &[block]).usage(2_000 + 300 * u64::from(message), 20);
    vec![asked, answers(id, answer).set("uuid", format!("r-{message}"))]
}

/// Writes the log of a session from a second on: each record a second after the one before, which it goes on from.
fn write(home: &Home, session: &str, start: u32, records: &[Record]) {
    let mut parent: Option<String> = None;
    let linked = (start..).zip(records).map(|(at, record)| {
        let uuid = format!("{session}-{}", record.json()["uuid"].as_str().unwrap());
        let record = record.clone().session(session).at(at).link(&uuid, parent.as_deref());
        parent = Some(uuid);
        record
    });
    home.write(&format!(".claude/projects/p/{session}.jsonl"), log(&linked.collect::<Vec<_>>()));
}

#[test]
fn a_call_quotes_what_the_one_of_its_own_message_quotes() {
    let edit = |old: &str| ("Edit", json!({ "file_path": "/a.rs", "old_string": old, "new_string": "other" }));
    let shown = "let first_number = 1;\nlet second_number = 2;\nlet third_number = 3;";
    let quoting = |ids: [&str; 3]| {
        let records = [
            vec![user("p", "go on")],
            call(1, ids[0], ("Read", json!({ "file_path": "/a.rs" })), shown),
            call(2, ids[1], edit("let first_number = 1;\nlet second_number = 2;"), "done"),
            call(3, ids[2], edit("something else\nthat nothing showed"), "done"),
        ];
        let home = Home::new();
        write(&home, "s", 0, &records.concat());
        home.json(&["replay"])["replay"]["arms"][0]["later_edits"]["quoting"].as_u64().unwrap()
    };
    assert_eq!(quoting(["c1", "c2", "c3"]), 1);
    assert_eq!(quoting(["c", "c", "c"]), 1);
}

#[test]
fn what_is_cleared_is_a_call_of_the_same_thread() {
    let text = "what stands in the file ".repeat(40);
    let read = |path: &str| ("Read", json!({ "file_path": path }));
    let told = |[first, second, other]: [&str; 3]| {
        let home = Home::new();
        let cleared = [
            vec![user("p", "go on")],
            call(1, first, read("/a.rs"), &text),
            vec![micro_compaction("x", &[first])],
            call(2, second, read("/a.rs"), &text),
            call(3, "c-last", read("/b.rs"), "another file"),
        ];
        write(&home, "s1", 0, &cleared.concat());
        let task = ("Task", json!({ "description": "look", "prompt": "look around" }));
        write(&home, "s2", 600, &[vec![user("p", "go on")], call(4, other, task, "found")].concat());
        let checked = home.json(&["what-if", "compaction", "--tier", "micro"])["policies"][0]["details"].clone();
        (home.json(&["cost", "--by", "outcome"])["rows"].clone(), checked)
    };
    assert_eq!(told(["c1", "c2", "c3"]), told(["c1", "c2", "c1"]));
}
