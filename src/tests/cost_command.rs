//! `devboy cost` and `devboy session`: every form says the same, names are the owner's own or nobody's.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::harness::{Home, Outcome};
use super::log_builder::*;
use crate::base::id::Id;
use crate::cost::groups::CostKey;
use crate::shell::arguments::Exit;

const FIRST: &str = "5e55aaaa-0000-4000-8000-000000000001";
const SECOND: &str = "5e55abbb-0000-4000-8000-000000000002";

fn usage(read: u64, write: u64, output: u64) -> Value {
    json!({
        "input_tokens": 7, "output_tokens": output, "cache_creation_input_tokens": write, "cache_read_input_tokens": read,
        "cache_creation": { "ephemeral_5m_input_tokens": write / 2, "ephemeral_1h_input_tokens": write - write / 2 },
    })
}

/// A session of four requests: a read, an MCP call that fails, a second try, an answer.
fn log(session: &str, cwd: &str, branches: [&str; 2], model: &str, start: u32) -> String {
    let calls = [("Read", "src/main.rs"), ("mcp__harbour__fetch", ""), ("mcp__harbour__fetch", "")];
    let mut records = vec![user("p", "please look into it")];
    let mut read = 0;
    for (at, (tool, path)) in calls.iter().enumerate() {
        let id = format!("call {session} {at}");
        let input = if path.is_empty() { json!({ "query": "x" }) } else { json!({ "file_path": path }) };
        let block = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
        let write = if at == 0 { 18_000 } else { 900 };
        let asked = assistant(&format!("m{at} {session}"), &[block]).message("usage", usage(read, write, 120));
        records.push(asked.message("model", model));
        let body = "line of a result\n".repeat(90);
        records.push(if at == 1 { fails(&id, &body) } else { answers(&id, body.as_str()) });
        read += write;
    }
    let said = json!({ "type": "text", "text": "done" });
    // The cache was lost: what had been sent is written again.
    records.push(
        assistant(&format!("end {session}"), &[said]).message("usage", usage(0, 20_700, 40)).message("model", model),
    );
    let line = |(at, record): (usize, Record)| {
        let record = record.session(session).set("cwd", cwd).set("gitBranch", branches[usize::from(at > 4)]);
        let record = record.set("uuid", format!("u{at} {session}"));
        let parent = at.checked_sub(1).map(|before| format!("u{before} {session}"));
        record.set("parentUuid", parent).at(start + 20 * at as u32).line()
    };
    records.into_iter().enumerate().map(line).collect()
}

fn home() -> Home {
    let home = Home::new();
    let model = "claude-opus-4-6";
    let place = |cwd: &str, session: &str| format!(".claude/projects/{}/{session}.jsonl", cwd.replace('/', "-"));
    let (work, play) = ("/home/zoe/work/lantern", "/home/zoe/play/lantern");
    home.write(&place(work, FIRST), log(FIRST, work, ["main", "feature/tide"], model, 0));
    home.write(&place(play, SECOND), log(SECOND, play, ["main", "main"], "claude-haiku-4-5", 30_000));
    home
}

#[test]
fn a_name_is_found_whatever_stands_around_it_in_the_log() {
    let home = Home::new();
    let text = log(FIRST, "/home/zoe/work/lantern", ["main", "main"], "claude-opus-4-6", 0);
    let spaced = text.replace("\"cwd\":\"", "\"cwd\" : \"").replace("\"sessionId\":\"", "\"sessionId\":  \"");
    // Arguments of a call may have a field of the same name.
    let spaced = spaced.replace("\"query\":\"x\"", "\"query\":\"x\",\"sessionId\":\"another\"");
    home.write(".claude/projects/p/renamed.jsonl", spaced);
    let report = home.json(&["cost", "--by", "project,session"]);
    let row = &report["rows"][0];
    assert_eq!((row["project"].as_str(), row["session"].as_str()), (Some("…/lantern"), Some(FIRST)), "{row}");
}

/// `C:` and `c:`, and either separator, are one directory of Windows.
#[test]
fn a_directory_of_windows_is_one_project() {
    let home = Home::new();
    for (number, cwd) in ["C:\\zoe\\lantern", "c:\\zoe\\lantern\\", "C:/zoe/lantern"].iter().enumerate() {
        let name = format!("s{number}");
        home.write(
            &format!(".claude/projects/p{number}/{name}.jsonl"),
            log(&name, cwd, ["", ""], "claude-opus-4-6", 0),
        );
    }
    let report = home.json(&["cost", "--by", "project"]);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| &row["project"]).collect::<Vec<_>>(), ["…/lantern"], "{report:#}");
}

#[test]
fn fast_mode_is_a_model_of_its_own_and_has_no_dollars_where_it_caches() {
    let home = Home::new();
    let text = log(FIRST, "/home/zoe/work/lantern", ["main", "main"], "claude-opus-4-6", 0);
    let fast = text.replacen("\"input_tokens\":7", "\"input_tokens\":7,\"speed\":\"fast\"", 1);
    assert_ne!(fast, text);
    home.write(&format!(".claude/projects/p/{FIRST}.jsonl"), fast);
    let report = home.json(&["cost", "--by", "model"]);
    let rows = report["rows"].as_array().unwrap();
    let of = |name: &str| rows.iter().find(|row| row["model"] == name).unwrap_or_else(|| panic!("{name}: {rows:?}"));
    assert!(number(&of("claude-opus-4-6")["nano_usd"]) > 0);
    assert_eq!(number(&of("claude-opus-4-6[fast]")["nano_usd"]), 0);
    let said = home.run(&["what-if", "prompt-cache"]);
    assert!(format!("{}{}", said.out, said.err).contains("claude-opus-4-6[fast]"), "{}{}", said.out, said.err);
}

fn done(outcome: Outcome) -> String {
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    outcome.out
}

fn out(home: &Home, arguments: &[&str]) -> String {
    done(home.run(arguments))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn every_key_gives_rows_that_add_up_to_one_bill_in_all_forms() {
    let home = home();
    let bill = home.json(&["cost"])["summary"]["bill"].clone();
    assert_eq!(number(&bill["requests"]), 8);
    for key in <CostKey as clap::ValueEnum>::value_variants() {
        let report = home.json(&["cost", "--by", key.into_str()]);
        assert_eq!(report["by"], json!([key.into_str()]));
        assert_eq!(report["summary"]["bill"], bill);
        let rows = report["rows"].as_array().unwrap();
        let sum = |field: &str| rows.iter().map(|row| number(&row[field])).sum::<u64>();
        assert_eq!(sum("nano_usd"), number(&bill["cost"]["nano_usd"]), "{key:?}");
        assert_eq!(sum("first_nano_usd") + sum("carried_nano_usd") + sum("again_nano_usd"), sum("nano_usd"), "{key:?}");
        assert_eq!(sum("read_tokens"), number(&bill["spent"]["read"]), "{key:?}");
        assert_eq!(sum("written_1h_tokens"), number(&bill["spent"]["write_1h"]), "{key:?}");
        assert_eq!(sum("calls"), 6, "{key:?}");
        let csv = out(&home, &["cost", "--by", key.into_str(), "--format", "csv"]);
        assert_eq!(csv.lines().count(), rows.len() + 1, "{key:?}");
    }
    let kinds = &home.json(&["cost"])["summary"]["kinds"];
    let kinds = kinds.as_object().unwrap().values().map(|kind| number(&kind["nano_usd"])).sum::<u64>();
    assert_eq!(kinds, number(&bill["cost"]["nano_usd"]));
}

#[test]
fn rows_say_what_they_are() {
    let home = home();
    let values = |key: &str| -> BTreeSet<String> {
        let report = home.json(&["cost", "--by", key]);
        report["rows"].as_array().unwrap().iter().map(|row| row[key].as_str().unwrap().to_owned()).collect()
    };
    let has = |key: &str, wanted: &[&str]| {
        let found = values(key);
        assert!(wanted.iter().all(|name| found.contains(*name)), "{key}: {found:?}");
    };
    has("tool", &["Read", "mcp__harbour__fetch", "(prompts)"]);
    has("server", &["harbour", "(built-in tools)"]);
    has("file-kind", &["Rust", "(calls that name no file)"]);
    has("project", &["…/work/lantern", "…/play/lantern"]);
    has("session", &[FIRST, SECOND]);
    has("branch", &["main", "feature/tide"]);
    has("model", &["claude-opus-4-6", "claude-haiku-4-5"]);
    has("outcome", &["(calls that failed, were refused or cancelled)", "(the same tool again, right after it failed)"]);
    let other = values("outcome").into_iter().filter(|name| name.starts_with("(no call: ")).count();
    assert!(other == 1 && !values("outcome").contains("(prompts)"), "what is no call is one row");
    let cross = home.json(&["cost", "--by", "project,model"]);
    let pairs = cross["rows"].as_array().unwrap().iter().map(|row| (row["project"].clone(), row["model"].clone()));
    let wanted = [("…/work/lantern", "claude-opus-4-6"), ("…/play/lantern", "claude-haiku-4-5")];
    assert_eq!(
        pairs.collect::<Vec<_>>(),
        wanted.map(|(project, model)| (json!(project), json!(model))),
        "dearest first"
    );
    assert_eq!(home.run(&["cost", "--by", "tool,tool"]).exit, Exit::Usage);
}

#[test]
fn a_table_shows_the_first_rows_and_the_rest_in_one() {
    let home = home();
    let short = out(&home, &["cost", "--by", "model", "--top", "1"]);
    let all = out(&home, &["cost", "--by", "model", "--all"]);
    assert!(short.contains("(1 more row)") && !all.contains("more row"), "{short}");
    assert!(all.contains("claude-haiku-4-5") && !short.contains("claude-haiku-4-5"), "{short}");
    let sessions = out(&home, &["cost", "--by", "session"]);
    assert!(sessions.contains("5e55aaaa") && sessions.contains("…/work/lantern"), "{sessions}");
    assert!(sessions.contains("2026-01-02") && sessions.contains("2 min"), "begun, lasted: {sessions}");
}

/// Words that name somebody's things.
const NAMES: [&str; 6] = ["lantern", "zoe", "5e55", "tide", "harbour", "work"];

#[test]
fn letters_stand_for_every_name_in_what_is_shared() {
    let home = home();
    let keys = "tool,server,project,session,branch";
    for form in ["table", "json", "csv", "md"] {
        for command in [&["cost", "--by", keys, "--all"][..], &["session"], &["session", SECOND]] {
            let asked = [command, &["--redact", "--reproducible", "--format", form]].concat();
            let text = out(&home, &asked);
            let found: Vec<_> = NAMES.iter().filter(|name| text.contains(*name)).collect();
            assert!(found.is_empty(), "{asked:?} has {found:?}:\n{text}");
            // A table is broken where it is too wide, and the requests of a session name nothing.
            let has_letters = text.contains("session A") || text.contains("Session A");
            assert!(has_letters || form == "table" || form == "csv" && command[0] == "session", "{asked:?}: {text}");
        }
    }
    let shared = out(&home, &["cost", "--by", keys, "--format", "md", "--all"]);
    assert!(!NAMES.iter().any(|name| shared.contains(name)), "{shared}");
    let named = out(&home, &["cost", "--by", keys, "--format", "md", "--all", "--names"]);
    assert!(named.contains("harbour") && named.contains("tide"), "{named}");
}

#[test]
fn the_lake_has_no_name_of_a_branch_a_directory_or_a_session() {
    let home = home();
    out(&home, &["cost", "--by", "branch,session,project"]);
    let bytes = super::harness::all_bytes(&home.lake());
    // Enough of the ids that no hash has it by chance.
    for name in ["lantern", "zoe", &FIRST[..8], &SECOND[..8], "tide"] {
        assert!(memchr::memmem::find(&bytes, name.as_bytes()).is_none(), "{name}");
    }
    let id = Id::pseudonym(b"feature/tide");
    assert!(memchr::memmem::find(&bytes, &id.0).is_none(), "not even as it is hashed: the lake seals it");
}

#[test]
fn a_session_is_found_by_how_its_id_begins() {
    let home = home();
    let of = |id: &str| home.json(&["session", id])["session"].clone();
    assert_eq!((of(FIRST), of("5e55aa"), of("5e55ab")), (json!(FIRST), json!(FIRST), json!(SECOND)));
    assert_eq!(home.json(&["session"])["session"], json!(SECOND), "the latest");
    let ambiguous = home.run(&["session", "5e55"]);
    assert_eq!(ambiguous.exit, Exit::Failed);
    assert!(ambiguous.err.contains("2 sessions begin with \"5e55\""), "{}", ambiguous.err);
    assert!(ambiguous.err.contains(FIRST) && ambiguous.err.contains(SECOND), "{}", ambiguous.err);
    let unknown = home.run(&["session", "77"]);
    assert!(unknown.err.contains("no session begins with \"77\"") && unknown.err.contains(FIRST), "{}", unknown.err);
}

#[test]
fn a_session_outside_the_window_is_not_unknown() {
    let home = home();
    let since = ["--since", "2026-01-02T08:00:00Z"];
    for more in [&[][..], &["--no-lake"]] {
        let said = home.run(&[&["session", "5e55aa"], &since[..], more].concat());
        assert_eq!(said.exit, Exit::Failed);
        let told = format!("session {FIRST} has no request in the window 2026-01-02");
        assert!(said.err.contains(&told) && said.err.contains("widen --since"), "{}", said.err);
    }
    let unknown = home.run(&[&["session", "77"], &since[..]].concat());
    assert!(unknown.err.contains("no session begins with \"77\""), "{}", unknown.err);
    assert!(home.json(&[&["session", "5e55ab"], &since[..]].concat())["session"] == json!(SECOND));
}

#[test]
fn an_empty_window_says_of_when_the_logs_are() {
    let home = home();
    for more in [&[][..], &["--no-lake"]] {
        let said = home.run(&[&["cost", "--by", "tool", "--since", "2026-03-01"][..], more].concat());
        assert_eq!(said.exit, Exit::Failed);
        assert!(said.err.contains("the logs are of 2026-01-02"), "{}", said.err);
    }
}

/// Usage that is nothing but zeros is no bill, and a prompt alone asked for nothing.
#[test]
fn a_session_that_was_billed_for_nothing_is_in_no_bill() {
    let home = home();
    let head = || out(&home, &["cost"]).lines().next().unwrap().to_owned();
    let billed = head();
    let late = |record: Record| record.session("0zeros").set("timestamp", "2026-01-09T12:00:00.000Z");
    home.write(
        ".claude/projects/p/0zeros.jsonl",
        super::log_builder::log(&[
            late(user("p", "go")),
            late(asks("m", "c", "Read").usage(0, 0)),
            late(answers("c", "done")),
        ]),
    );
    home.write(".claude/projects/p/0prompt.jsonl", super::log_builder::log(&[user("q", "go").session("0prompt")]));
    assert_eq!(head(), billed, "no day more");
    assert_eq!(home.json(&["session"])["session"], json!(SECOND), "the latest that cost something");
    for (id, window) in [("0zeros", None), ("0prompt", None), ("0prompt", Some("--since=2026-01-01"))] {
        let said = home.run(&["session", id].into_iter().chain(window).collect::<Vec<_>>());
        assert_eq!(said.exit, Exit::Failed);
        assert!(said.err.contains(&format!("session {id} has no request: nothing was billed")), "{}", said.err);
        assert!(!said.err.contains("widen"), "{}", said.err);
    }
}

#[test]
fn what_came_on_standard_input_is_in_no_log_on_disk() {
    let log = log(FIRST, "/home/zoe/work/lantern", ["main", "main"], "claude-opus-4-6", 0);
    let said = Home::new().run_with(&["session", "--input-dir", "-"], log.as_bytes());
    assert!(said.out.starts_with("Session (named in no log on disk, "), "{}{}", said.out, said.err);
}

#[test]
fn a_session_whose_log_is_gone_is_found_by_its_whole_id_and_by_what_is_shown_instead() {
    let home = home();
    let before = home.json(&["session", FIRST]);
    std::fs::remove_file(home.logs().join("-home-zoe-work-lantern").join(format!("{FIRST}.jsonl"))).unwrap();
    let after = home.json(&["session", FIRST]);
    assert_eq!(after["requests"], before["requests"]);
    let shown = after["session"].as_str().unwrap().strip_prefix("(named in no log on disk, ").unwrap();
    let shown = shown.trim_end_matches(')');
    assert_eq!(home.json(&["session", shown])["requests"], before["requests"]);
    // How an id begins is that of a log that is there.
    assert_eq!(home.run(&["session", &shown[..7]]).exit, Exit::Failed);
    let log = log(FIRST, "/home/zoe/work/lantern", ["main", "main"], "claude-opus-4-6", 0);
    let piped = Home::new().run_with(&["session", FIRST, "--input-dir", "-"], log.as_bytes());
    assert_eq!(piped.exit, Exit::Done, "{}", piped.err);
}

#[test]
fn the_second_session_of_a_long_log_has_its_name() {
    let home = Home::new();
    let of = |session, start| log(session, "/home/zoe/work/lantern", ["main", "main"], "claude-opus-4-6", start);
    let long = user("long", "x".repeat(1 << 20)).session(FIRST).line();
    home.write(".claude/projects/p/both.jsonl", of(FIRST, 0) + &long + &of(SECOND, 30_000));
    let report = home.json(&["cost", "--by", "session"]);
    let names: BTreeSet<&str> =
        report["rows"].as_array().unwrap().iter().map(|row| row["session"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from([FIRST, SECOND]));
}

#[test]
fn a_session_in_time_has_its_bill_its_misses_and_what_it_carried() {
    let home = home();
    let report = home.json(&["session", FIRST]);
    let requests = report["requests"].as_array().unwrap();
    let sum: u64 = requests.iter().map(|row| number(&row["nano_usd"])).sum();
    assert_eq!(sum, number(&report["total"]["cost"]["nano_usd"]));
    let by_session = home.json(&["cost", "--by", "session"]);
    let row = by_session["rows"].as_array().unwrap().iter().find(|row| row["session"] == FIRST).unwrap().clone();
    assert_eq!((sum, &report["again"]["nano_usd"]), (number(&row["nano_usd"]), &row["again_nano_usd"]));
    let misses: Vec<&Value> = requests.iter().map(|row| &row["miss"]).collect();
    assert!(misses[..3].iter().all(|miss| **miss == json!("")) && *misses[3] != json!(""), "{misses:?}");
    let text = out(&home, &["session", FIRST]);
    for words in
        ["Session 5e55aaaa in …/lantern", "4 requests", "1 cache miss", "Most expensive requests", "m: cache missed"]
    {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
}

#[test]
fn what_has_no_price_has_tokens_beside_it() {
    let home = Home::new();
    home.write(".claude/projects/p/s.jsonl", log("s", "/p", ["", ""], "somebodys-model", 0));
    let report = home.json(&["cost", "--by", "model"]);
    assert_eq!(report["rows"][0]["nano_usd"], 0);
    let spent = &report["summary"]["bill"]["spent"];
    let tokens: u64 = spent.as_object().unwrap().values().map(number).sum();
    assert_eq!(number(&report["rows"][0]["unpriced_tokens"]), tokens);
    let text = out(&home, &["cost"]);
    assert!(
        text.starts_with("4 requests ") && text.contains(" of models that no price is known for: 77,828 tokens."),
        "{text}"
    );
    assert!(!text.contains('$') && text.contains("72,012"), "{text}");
}

/// A tool that was renamed is one tool, as everywhere else; malformed lines are told of.
#[test]
fn a_renamed_tool_is_one_tool_and_malformed_lines_are_told_of() {
    let home = Home::new();
    let calls = [("m1", "c1", "Task"), ("m2", "c2", "Agent")];
    let records = calls.map(|(message, call, tool)| asks(message, call, tool).line() + &answers(call, "done").line());
    let text = user("p", "go").line() + &records.concat() + "{ damaged\n";
    home.write(".claude/projects/-w/s.jsonl", text);
    let run = home.run(&["cost", "--by", "tool"]);
    assert!(run.err.contains("# malformed lines: 1 "), "{}", run.err);
    let report = home.json(&["cost", "--by", "tool"]);
    let rows = report["rows"].as_array().unwrap();
    let calls: Vec<(&Value, &Value)> =
        rows.iter().filter(|row| row["calls"] != 0).map(|row| (&row["tool"], &row["calls"])).collect();
    assert_eq!(calls, [(&json!("Agent"), &json!(2))], "{report:#}");
}

#[test]
fn a_session_that_is_not_there_is_told_where_none_is_no_error() {
    let home = Home::new();
    let outcome = home.run(&["session", "--allow-empty"]);
    assert_eq!((outcome.exit, outcome.out.as_str()), (Exit::Done, ""));
    assert!(outcome.err.contains("# no session in these logs\n"), "{}", outcome.err);
    assert_eq!(home.json(&["session", "--allow-empty"])["session"], Value::Null);
}

/// A hint is about the same logs as the command that gives it.
#[test]
fn the_list_of_all_sessions_is_asked_of_the_same_logs() {
    let home = Home::new();
    for number in 0..12 {
        let name = format!("5e55{number:04}");
        home.write(&format!("my logs/-home-u-p/{name}.jsonl"), super::harness::session(&name, 3));
    }
    let logs = home.path("my logs").display().to_string();
    let said = home.run(&["session", "77", "--input-dir", &logs, "--project", "home", "--days", "9000"]).err;
    let hint = format!("and 2 more: `devboy mine sessions --all --input-dir '{logs}' --project home --days 9000`");
    assert!(said.contains(&hint), "{said}");
}

#[test]
fn searches_of_the_web_are_told_beside_the_bill_as_on_the_page() {
    let home = Home::new();
    // Of two searches one fails.
    let searched = log(FIRST, "/home/zoe/p", ["main", "main"], "claude-opus-4-6", 0);
    home.write(".claude/projects/p/one.jsonl", searched.replace("mcp__harbour__fetch", "WebSearch"));
    let told = home.run(&["cost"]).out;
    assert!(told.contains("Not in the bill: at least $0.01 for 1 web search, billed by number."), "{told}");
    let bill = home.json(&["cost"]);
    assert_eq!((&bill["web_searches"], &bill["web_searches_nano_usd"]), (&1.into(), &10_000_000.into()));
    let [first, last] = [0, 1].map(|side| bill["summary"]["span_ms"][side].as_i64().unwrap());
    assert!(first < last, "{bill:#}");
    let page = home.run(&["report", "--since", "2020-01-01"]).out;
    assert!(page.contains("at least $0.01 for 1 web search"), "{page}");
}
