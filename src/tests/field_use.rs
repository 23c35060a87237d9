//! `devboy mine fields` and rule T2: which fields of JSON results were taken up later, against a plain recount of the same logs.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::{Home, all_bytes};
use super::log_builder::{Record, answers, assistant, cases, fails, log, user};
use crate::shell::arguments::Exit;

const TOOL: &str = "mcp__tracker__list";

/// A record that makes one call with an input.
fn calls(message: &str, call: &str, tool: &str, input: Value) -> Record {
    assistant(message, &[json!({ "type": "tool_use", "id": call, "name": tool, "input": input })])
}

fn writes(message: &str, text: &str) -> Record {
    assistant(message, &[json!({ "type": "text", "text": text })])
}

fn home_of(records: Vec<Record>) -> Home {
    let home = Home::new();
    place(&home, "s-main", records);
    home
}

fn place(home: &Home, session: &str, records: Vec<Record>) {
    let records = records.into_iter().enumerate().map(|(at, record)| record.session(session).at(at as u32));
    home.write(&format!(".claude/projects/-home-user-lantern/{session}.jsonl"), log(&records.collect::<Vec<_>>()));
}

/// Fields by name.
fn fields(home: &Home) -> BTreeMap<String, Value> {
    let report = home.json(&["mine", "fields", "--explain"]);
    let rows = report["fields"].as_array().unwrap().iter();
    rows.map(|row| (row["field"].as_str().unwrap().to_owned(), row.clone())).collect()
}

/// Followed and used answers of a field.
fn counts(fields: &BTreeMap<String, Value>, name: &str) -> (u64, u64) {
    let row = fields.get(name).unwrap_or_else(|| panic!("{name} is not among {:?}", fields.keys()));
    (row["followed"].as_u64().unwrap(), row["used"].as_u64().unwrap())
}

#[test]
fn a_value_is_used_in_an_argument_an_edit_or_a_text_and_arrays_are_folded() {
    let body = json!({
        "items": [
            { "id": "PRJ-101", "title": "a title of far too many words", "state": "open" },
            { "id": "PRJ-102", "etag": "W/9f8e7d6c" },
        ],
        "page": { "next": "cursor-88Zq", "total": 4711 }, "ok": true, "empty": null,
    });
    let home = home_of(vec![
        user("p", "which one is next?"),
        calls("m1", "c1", TOOL, json!({ "query": "is:open" })),
        answers("c1", body.to_string()),
        calls("m2", "c2", "mcp__tracker__get", json!({ "ref": { "key": "PRJ-102" } })),
        answers("c2", "fine"),
        calls("m3", "c3", "Edit", json!({ "file_path": "/a.md", "old_string": "x", "new_string": "see cursor-88Zq." })),
        answers("c3", "done"),
        writes("m4", "There are 4711 of them."),
    ]);
    let fields = fields(&home);
    let names: Vec<&str> = fields.keys().map(String::as_str).collect();
    let expected =
        ["empty", "items[].etag", "items[].id", "items[].state", "items[].title", "ok", "page.next", "page.total"];
    assert_eq!(names, expected);
    for (name, followed, used, place) in [
        ("items[].id", 1, 1, "in_arguments"),
        ("page.next", 1, 1, "in_edits"),
        ("page.total", 1, 1, "in_texts"),
        ("items[].etag", 1, 0, ""),
        ("items[].state", 0, 0, ""),
        ("items[].title", 0, 0, ""),
        ("ok", 0, 0, ""),
        ("empty", 0, 0, ""),
    ] {
        assert_eq!(counts(&fields, name), (followed, used), "{name}");
        for kind in ["in_arguments", "in_edits", "in_texts"] {
            assert_eq!(fields[name][kind], u64::from(kind == place), "{name} {kind}");
        }
        let unused = fields[name]["tokens_unused"].as_u64().unwrap();
        assert_eq!(unused > 0, name == "items[].etag", "{name}");
    }
}

#[test]
fn echoes_own_messages_errors_and_other_chains_do_not_count() {
    let body = |n: u32| json!({ "id": format!("PRJ-{n}") }).to_string();
    let thread = |record: Record| record.agent("worker");
    let home = home_of(vec![
        user("p", "look at PRJ-201"),
        // Told by the person, by the call itself.
        calls("m1", "c1", TOOL, json!({ "key": "PRJ-201" })),
        answers("c1", body(201)),
        writes("m2", "PRJ-201 it is"),
        calls("m3", "c3", TOOL, json!({ "key": "PRJ-202" })),
        answers("c3", body(202)),
        writes("m4", "PRJ-202 as well"),
        // The rest of the message was written before its answer came.
        calls("m5", "c5", TOOL, json!({})),
        answers("c5", body(203)),
        calls("m5", "c6", TOOL, json!({ "key": "PRJ-203" })),
        fails("c6", &body(204)),
        writes("m7", "PRJ-204 failed"),
        // Another reader.
        calls("m8", "c8", TOOL, json!({})),
        answers("c8", body(205)),
        thread(writes("a1", "PRJ-205 is what I was told")),
        // Not the same word.
        calls("m9", "c9", TOOL, json!({})),
        answers("c9", body(206)),
        writes("m10", "PRJ-2060 and APRJ-206 are others"),
    ]);
    let fields = fields(&home);
    assert_eq!(fields["id"]["responses"], 5, "an error is no answer");
    assert_eq!(counts(&fields, "id"), (3, 0));
}

#[test]
fn a_value_counts_for_every_answer_that_told_it_and_copies_are_one() {
    let body = json!({ "id": "PRJ-301" }).to_string();
    let records = || {
        vec![
            user("p", "go"),
            calls("m1", "c1", TOOL, json!({})),
            answers("c1", body.clone()),
            calls("m2", "c2", TOOL, json!({})),
            answers("c2", body.clone()),
        ]
    };
    let home = home_of(records());
    assert_eq!(counts(&fields(&home), "id"), (2, 0));
    // The session is taken up in another file, which repeats what was there.
    let mut more = records();
    more.push(writes("m3", "PRJ-301"));
    place(&home, "s-later", more);
    assert_eq!(counts(&fields(&home), "id"), (2, 2));
}

#[test]
fn an_escape_in_a_key_stands_for_its_character() {
    let home = home_of(vec![
        user("p", "go"),
        calls("m1", "c1", TOOL, json!({})),
        answers("c1", r#"{"na\u006de":"value-1","b\u0020c":"value-2"}"#),
    ]);
    let fields = fields(&home);
    assert_eq!(fields.keys().map(String::as_str).collect::<Vec<_>>(), ["name", "other names"]);
}

/// A result with an image is not known by its text.
#[test]
fn of_copies_that_give_a_call_different_results_one_counts() {
    let home = Home::new();
    for (session, body) in [("s-main", json!({ "alpha": "value-1" })), ("s-later", json!({ "beta": "value-2" }))] {
        let text = json!({ "type": "text", "text": body.to_string() });
        let image =
            json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } });
        let records = vec![user("p", "go"), calls("m1", "c1", TOOL, json!({})), answers("c1", vec![text, image])];
        place(&home, session, records);
    }
    assert_eq!(fields(&home).keys().map(String::as_str).collect::<Vec<_>>(), ["beta"]);
}

#[test]
fn keys_that_are_data_have_no_names_and_nothing_of_an_answer_stands_in_the_lake() {
    let body = json!({
        "by_user": { "jane.roe@secret.example": { "role": "secretrole-9" } },
        "hashes": { "a81f33c2": "secretvalue-1" }, "weird key": "secretvalue-2", "plain_key": "secretvalue-3",
    });
    let home = home_of(vec![
        user("p", "go"),
        calls("m1", "c1", TOOL, json!({})),
        answers("c1", body.to_string()),
        calls("m2", "c2", "Bash", json!({ "command": "cat /srv/private.json | jq ." })),
        answers("c2", json!({ "secretkey": "secretvalue-4" }).to_string()),
        calls("m3", "c3", "Bash", json!({ "command": "cd /x && gh pr list --json number,headRefName" })),
        answers("c3", json!([{ "number": 5150, "headRefName": "fix/secretvalue-5" }]).to_string()),
        calls("m5", "c5", "mcp__files__read_file", json!({})),
        answers("c5", json!({ "secretkey_of_file": "secretvalue-6" }).to_string()),
        writes("m4", "secretvalue-1 and fix/secretvalue-5"),
    ]);
    let report = home.json(&["mine", "fields", "--explain"]);
    let rows: BTreeSet<(String, String, u64)> = report["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            (text("tool").rsplit("__").next().unwrap().to_owned(), text("field"), row["used"].as_u64().unwrap())
        })
        .collect();
    let row = |tool: &str, field: &str, used| (tool.to_owned(), field.to_owned(), used);
    let expected = [
        row("list", "other names", 1),
        row("list", "plain_key", 0),
        row("Bash: fs_read", "other names", 0),
        row("read_file", "other names", 0),
        row("Bash: bash_gh", "[].number", 0),
        row("Bash: bash_gh", "[].headRefName", 1),
    ];
    assert_eq!(rows, BTreeSet::from(expected));
    let stored = all_bytes(&home.lake());
    for secret in ["secretvalue", "secretkey", "secretrole", "jane.roe", "a81f33c2", "weird key"] {
        assert!(memchr::memmem::find(&stored, secret.as_bytes()).is_none(), "{secret} is in the lake");
    }
    assert!(!report.to_string().contains("tracker"), "the server has a pseudonym");
    let named = home.run(&["mine", "fields", "--names"]);
    assert!(named.out.contains(TOOL), "{}", named.out);
}

#[test]
fn keys_have_names_only_where_every_program_that_prints_has_keys_of_its_own() {
    let of_file = json!({ "secretkey": "value-number-1" }).to_string();
    for (command, name) in [
        ("cd /x && gh pr view 1 --json number", "secretkey"),
        ("gh pr view 1; cat /srv/private.json", "other names"),
        ("gh pr view 1 | jq '{secretkey: .number}'", "other names"),
        ("gh pr view 1 --json number 2>&1 | head -n 50", "secretkey"),
        ("gh pr view 1 | cat - /srv/private.json", "other names"),
        ("gh pr view 1 | cat < /srv/private.json", "other names"),
        ("gh pr view 1 | cat <<< \"$(base64 -d /srv/private)\"", "other names"),
        ("gh pr view 1 | cat 2024", "other names"),
        ("gh pr view 1 | cat -n 2024", "other names"),
        ("gh pr view 1 | cat +2024", "other names"),
        ("gh pr view 1 | head -- -n 5", "other names"),
        ("gh pr view 1 | tail -n +5", "secretkey"),
        ("gh pr view 1 | tail --lines 50", "secretkey"),
        ("gh pr view 1 && head -50", "other names"),
        ("gh auth status && echo \"$(cat /srv/private.json)\"", "other names"),
    ] {
        let home = home_of(vec![
            user("p", "go"),
            calls("m1", "c1", "Bash", json!({ "command": command })),
            answers("c1", of_file.clone()),
        ]);
        assert_eq!(fields(&home).keys().map(String::as_str).collect::<Vec<_>>(), [name], "{command}");
    }
}

/// Other makers' models number their calls anew in each answer.
#[test]
fn keys_have_names_only_where_the_call_of_their_own_message_says_so() {
    let given_again = |record: Record, number: usize| record.set("uuid", format!("r-{number}"));
    let home = home_of(vec![
        user("p", "go"),
        calls("m1", "call_0", TOOL, json!({})),
        given_again(answers("call_0", json!({ "plain_key": "value-number-1" }).to_string()), 1),
        calls("m2", "call_0", "Bash", json!({ "command": "cat /srv/private.json" })),
        given_again(answers("call_0", json!({ "secretkey": "value-number-2" }).to_string()), 2),
        calls("m3", "call_0", TOOL, json!({})),
        given_again(answers("call_0", json!({ "other_key": "value-number-3" }).to_string()), 3),
    ]);
    assert_eq!(fields(&home).keys().collect::<Vec<_>>(), ["other names", "other_key", "plain_key"]);
    assert!(memchr::memmem::find(&all_bytes(&home.lake()), b"secretkey").is_none());
}

#[test]
fn a_copy_of_an_answer_without_its_call_adds_no_field() {
    let records = vec![
        user("p", "go"),
        calls("m1", "c1", TOOL, json!({})),
        answers("c1", json!({ "id": "PRJ-301", "note": "note-of-length" }).to_string()),
        writes("m2", "PRJ-301"),
    ];
    let home = home_of(records.clone());
    let whole = fields(&home);
    place(&home, "s-later", records[2..].to_vec());
    assert_eq!(fields(&home), whole);
}

#[test]
fn what_is_no_json_is_counted_and_nothing_else_is_said() {
    let home = home_of(vec![
        user("p", "go"),
        calls("m1", "c1", TOOL, json!({})),
        answers("c1", "[INFO] not json"),
        calls("m2", "c2", TOOL, json!({})),
        answers("c2", "{\"cut\": \"off"),
    ]);
    let outcome = home.run(&["mine", "fields"]);
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    assert_eq!(outcome.out, "0 of 2 results (0.0 %) are JSON, of 0 tools: 0 tokens.\n");
}

/// Of a log that was deleted before anybody asked for fields only the requests are known.
#[test]
fn answers_of_a_deleted_log_that_nobody_looked_at_are_left_out_and_told_of() {
    let home = Home::new();
    for at in ["1", "2"] {
        let [prompt, message, call] = ["p", "m", "c"].map(|what| format!("{what}{at}"));
        let body = json!({ "id": format!("PRJ-{at}01") }).to_string();
        let records = vec![user(&prompt, "go"), calls(&message, &call, TOOL, json!({})), answers(&call, body)];
        place(&home, &format!("s-{at}"), records);
    }
    home.json(&["ingest"]);
    std::fs::remove_file(home.path(".claude/projects/-home-user-lantern/s-2.jsonl")).unwrap();
    for run in ["made", "remembered"] {
        let report = home.json(&["mine", "fields"]);
        assert_eq!((&report["answers"], &report["tools"][0]["responses"]), (&json!(1), &json!(1)), "{run}");
        let notes = report["inputs"]["notes"].to_string();
        assert!(notes.contains("1 result of deleted logs left out"), "{run}: {notes}");
    }
}

/// What a later record writes of the value with this number.
#[derive(Clone, Debug)]
enum Later {
    Argument(usize),
    Edit(usize),
    Text(usize),
    Nothing,
    /// A further answer with these fields: names by number, values by number.
    Answer(usize, Vec<(usize, usize)>),
}

const KEYS: [&str; 4] = ["id", "name", "url", "note"];
const TOOLS: [&str; 2] = ["mcp__a__list", "mcp__b__get"];

/// Values of all kinds; the last three are not followed.
fn value(number: usize) -> Value {
    match number % 8 {
        0 => json!(format!("KEY-{number}")),
        1 => json!(1000 + number),
        2 => json!(format!("https://example.org/x{number}?a=b")),
        3 => json!(format!("two words{number}")),
        4 => json!(format!("camelCase{number}")),
        5 => json!("open"),
        6 => json!(true),
        _ => json!(format!("a sentence of five words {number}")),
    }
}

fn written(number: usize) -> String {
    let value = value(number);
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn later() -> impl Strategy<Value = Later> {
    let number = || 0..24_usize;
    prop_oneof![
        2 => number().prop_map(Later::Argument),
        1 => number().prop_map(Later::Edit),
        2 => number().prop_map(Later::Text),
        1 => Just(Later::Nothing),
        4 => (0..TOOLS.len(), prop::collection::vec((0..KEYS.len(), number()), 0..5))
            .prop_map(|(tool, members)| Later::Answer(tool, members)),
    ]
}

/// By tool and field: answers, followed, used.
type Recount = BTreeMap<(String, String), (u64, u64, u64)>;

/// A log of these steps, and what it says by the definition: every later text is searched for every value.
fn told(session: &str, steps: &[Later]) -> (Vec<Record>, Recount) {
    let mut records = vec![user(&format!("{session}-p"), "go")];
    // Texts of the model in order; answers with how many texts came before.
    let mut texts: Vec<String> = Vec::new();
    let mut answered: Vec<(usize, usize, BTreeMap<usize, Vec<usize>>)> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let (message, call) = (format!("{session}-m{at}"), format!("{session}-c{at}"));
        match step {
            Later::Argument(number) => {
                records.push(calls(&message, &call, "Other", json!({ "deep": [{ "of": value(*number) }] })));
                records.push(answers(&call, "fine"));
                texts.push(written(*number));
            }
            Later::Edit(number) => {
                let text = format!("// see {} here", written(*number));
                records.push(calls(&message, &call, "Write", json!({ "file_path": "/f", "content": text })));
                records.push(answers(&call, "fine"));
                texts.push(text);
            }
            Later::Text(number) => {
                let text = format!("It is {}, as told.", written(*number));
                records.push(writes(&message, &text));
                texts.push(text);
            }
            Later::Nothing => records.push(writes(&message, "Nothing of it.")),
            Later::Answer(tool, members) => {
                let mut by_key: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
                let row = |(key, number): &(usize, usize)| {
                    by_key.entry(*key).or_default().push(*number);
                    json!({ KEYS[*key]: value(*number) })
                };
                let rows: Vec<Value> = members.iter().map(row).collect();
                records.push(calls(&message, &call, TOOLS[*tool], json!({})));
                records.push(answers(&call, json!({ "rows": rows }).to_string()));
                answered.push((texts.len(), *tool, by_key));
            }
        }
    }
    let stands = |text: &str, number: usize| {
        let (value, inside) = (written(number), |c: char| c.is_alphanumeric() || c == '_');
        text.match_indices(&value).any(|(at, _)| {
            let ends = |c: Option<char>| c.is_none_or(|c| !inside(c));
            ends(text[..at].chars().next_back()) && ends(text[at + value.len()..].chars().next())
        })
    };
    // Of a value with blanks only a whole argument is known to be an echo.
    let is_echo = |text: &String, number: usize| {
        if written(number).contains(' ') { *text == written(number) } else { stands(text, number) }
    };
    let mut recount = Recount::new();
    for (before, tool, by_key) in &answered {
        for (key, numbers) in by_key {
            let followed = |number: &&usize| **number % 8 < 5;
            let is_new = |number: &&usize| !texts[..*before].iter().any(|text| is_echo(text, **number));
            let new: Vec<&usize> = numbers.iter().filter(followed).filter(is_new).collect();
            let is_used = new.iter().any(|number| texts[*before..].iter().any(|text| stands(text, **number)));
            let name = (TOOLS[*tool].to_owned(), format!("rows[].{}", KEYS[*key]));
            let row = recount.entry(name).or_default();
            row.0 += 1;
            row.1 += u64::from(!new.is_empty());
            row.2 += u64::from(is_used);
        }
    }
    (records, recount)
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn a_plain_recount_gives_the_same(sessions in prop::collection::vec(prop::collection::vec(later(), 1..30), 1..4)) {
        let home = Home::new();
        let mut expected = Recount::new();
        for (number, steps) in sessions.iter().enumerate() {
            let session = format!("s-{number}");
            let (records, recount) = told(&session, steps);
            place(&home, &session, records);
            for (key, (answers, followed, used)) in recount {
                let row = expected.entry(key).or_default();
                *row = (row.0 + answers, row.1 + followed, row.2 + used);
            }
        }
        let report = home.json(&["mine", "fields", "--explain", "--names", "--allow-empty"]);
        let of = |row: &Value| {
            let (text, number) = (|key: &str| row[key].as_str().unwrap().to_owned(), |key: &str| row[key].as_u64().unwrap());
            ((text("tool"), text("field")), (number("responses"), number("followed"), number("used")))
        };
        let rows = report["fields"].as_array().unwrap();
        prop_assert_eq!(rows.iter().map(of).collect::<Recount>(), expected);
        // Tools are the sums of their fields, and no token is counted twice.
        for tool in report["tools"].as_array().unwrap() {
            let own = || rows.iter().filter(|row| row["tool"] == tool["tool"]);
            let sum = |key: &str| own().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
            for key in ["followed", "used", "tokens_unused"] {
                prop_assert_eq!(sum(key), tool[key].as_u64().unwrap(), "{}", key);
            }
            let parts = ["tokens_used", "tokens_unused", "tokens_not_followed"].map(|key| tool[key].as_u64().unwrap());
            prop_assert_eq!(parts.iter().sum::<u64>(), sum("tokens"));
        }
    }
}

/// Six sessions with ten answers each: `id` is always taken up, `etag` never, `name` every second time.
fn habit() -> Home {
    let home = Home::new();
    for session in 0..6 {
        let mut records = vec![user(&format!("p-{session}"), "go")];
        for at in 0..10 {
            let number = 1000 + 10 * session + at;
            let body = json!({
                "id": format!("PRJ-{number}"), "etag": format!("W/{number}f"), "name": format!("nameOf{number}"), "state": "open",
            });
            let (message, call) = (format!("m-{number}"), format!("c-{number}"));
            records.push(calls(&message, &call, TOOL, json!({})));
            records.push(answers(&call, body.to_string()));
            let name = if at % 2 == 0 { format!(" called nameOf{number}") } else { String::new() };
            records.push(writes(&format!("t-{number}"), &format!("It is PRJ-{number}{name}.")));
        }
        place(&home, &format!("s-{session}"), records);
    }
    home
}

#[test]
fn all_forms_hold_the_same_rows_and_a_window_and_k_cut_them() {
    let home = habit();
    let report = home.json(&["mine", "fields"]);
    assert_eq!((report["answers"].as_u64(), report["sessions"].as_u64()), (Some(60), Some(6)));
    let share = |row: &Value, key: &str| row[key].as_f64().unwrap();
    let tool = &report["tools"][0];
    assert_eq!(
        (tool["responses"].as_u64(), tool["followed"].as_u64(), tool["used"].as_u64()),
        (Some(60), Some(180), Some(90))
    );
    assert!((share(tool, "used_share") - 0.5).abs() < 1e-12);
    assert!(share(tool, "used_share_lower") > 0.42 && share(tool, "used_share_upper") < 0.58);
    for (more, key) in [(&[][..], "tools"), (&["--explain"], "fields")] {
        let run = |form: &str| home.run(&[&["mine", "fields", "--format", form, "-q"], more].concat()).out;
        let rows = report[key].as_array().unwrap();
        let csv = run("csv");
        assert_eq!(csv.lines().count(), rows.len() + 1);
        let markdown = run("md");
        assert_eq!(markdown.lines().count(), rows.len() + 2);
        let is_long =
            |cell: &&str| cell.parse::<f64>().is_ok() && cell.split_once('.').is_some_and(|of| of.1.len() > 4);
        assert_eq!(markdown.split('|').map(str::trim).find(is_long), None, "for people shares have four decimals");
        let header: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
        for (line, row) in csv.lines().skip(1).zip(rows) {
            for (cell, name) in line.split(',').zip(&header) {
                let value = &row[*name];
                match value {
                    Value::Null => assert_eq!(cell, "", "{name}"),
                    Value::Number(number) => assert_eq!(cell.parse::<f64>().ok(), number.as_f64(), "{name}"),
                    text => assert_eq!(Some(cell), text.as_str(), "{name}"),
                }
            }
        }
    }
    let table = |more: &[&str]| home.run(&[&["mine", "fields", "-q"], more].concat()).out;
    assert!(table(&[]).starts_with("60 of 60 results (100.0 %) are JSON, of 1 tool: "), "{}", table(&[]));
    assert!(
        table(&["--explain", "--top", "2"]).contains("2 more rows with --all"),
        "{}",
        table(&["--explain", "--top", "2"])
    );
    let groups: BTreeMap<&str, &str> = report["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["field"].as_str().unwrap(), row["group"].as_str().unwrap()))
        .collect();
    assert_eq!(
        groups,
        BTreeMap::from([("etag", "debug"), ("id", "must_have"), ("name", "nice_to_have"), ("state", "")])
    );
    let few = home.json(&["mine", "fields", "--k-anonymity", "7"]);
    assert_eq!((&few["tools"], &few["fields"]), (&json!([]), &json!([])));
    assert_eq!(few["left_out"], 5);
}

#[test]
fn groups_are_written_only_when_asked_for_and_only_where_enough_was_seen() {
    let home = habit();
    let tune = |more: &[&str]| {
        let outcome = home.run(&[&["tune", "from-claude-logs", "--dry-run", "-q"], more].concat());
        assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
        outcome.out
    };
    assert!(!tune(&["--tools"]).contains("field_groups"));
    let written = tune(&["--tools", "--fields"]);
    for part in [
        "field_groups.must_have",
        "field_groups.nice_to_have",
        "field_groups.debug",
        "\"id\"",
        "\"etag\"",
        "\"name\"",
        "default_include = false",
    ] {
        assert!(written.contains(part), "{part} is not in\n{written}");
    }
    assert!(!written.contains("\"state\""), "what cannot be followed is in no group\n{written}");
    assert_eq!(
        home.run(&["tune", "from-claude-logs", "--fields"]).exit,
        Exit::Usage,
        "there is no block without --tools"
    );
    // What is written can be read, and a second run has nothing to add.
    assert_eq!(home.run(&["tune", "from-claude-logs", "--tools", "--fields"]).exit, Exit::Done);
    assert_eq!(home.run(&["tune", "from-claude-logs", "--tools", "--fields", "--check"]).exit, Exit::Done);
    let few = home_of(vec![
        user("p", "go"),
        calls("m1", "c1", TOOL, json!({})),
        answers("c1", json!({ "id": "PRJ-1000" }).to_string()),
    ]);
    let outcome = few.run(&["tune", "from-claude-logs", "--dry-run", "--tools", "--fields", "--explain"]);
    assert!(!outcome.out.contains("field_groups."), "{}", outcome.out);
    assert!(outcome.out.contains("rules/t2_fields.toml"), "says what was missing: {}", outcome.out);
}
