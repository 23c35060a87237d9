//! `devboy replay` and `devboy encode` from the outside: what they print, how they gate, what the lake makes of it.

use std::fs::OpenOptions;
use std::io::Write;

use serde_json::{Value, json};

use super::harness::{CallLines, ClosedPipe, Home, all_bytes, hidden};
use super::log_builder::{answers, asks, log, user};
use crate::shell::arguments::Exit;

/// A session of reads: every third body repeats, one is a table, one is numbered, one fails to be anything.
fn reads(session: &str, calls: usize) -> String {
    let numbered = |from: usize, changed: usize| -> String {
        let line = |n: usize| format!("{n:>6}\tlet secretname_{n} = {};\n", if n == changed { 1 } else { 0 });
        (from..from + 60).map(line).collect()
    };
    let body = |number: usize| match number % 6 {
        0 | 3 => format!("secretbody {}\n", "the same words again ".repeat(30)),
        1 => {
            let row = |n: usize| format!("| {n:<20} | secretcell{number}_{n:<20} | {:<30} |\n", "open");
            "| id | name | state |\n| --- | --- | --- |\n".to_owned() + &(0..20).map(row).collect::<String>()
        }
        2 => numbered(1, usize::MAX),
        4 => numbered(1, 33 + number),
        _ => serde_json::json!({"id": number, "list": [1, 2, {"secretkey": "x".repeat(300)}]}).to_string(),
    };
    let call = |number: usize| {
        let (tool, body) = (if number.is_multiple_of(5) { "Bash" } else { "Read" }, body(number));
        CallLines { session, number, tool, input: "/secretpath/a.rs", body: &body, model: "claude-opus-4-6" }.text()
    };
    (0..calls).map(call).collect()
}

fn home_with(calls: usize) -> Home {
    let home = Home::new();
    home.write(".claude/projects/-home-u-secretproject/one.jsonl", reads("one", calls));
    home.write(".claude/projects/-home-u-other/two.jsonl", reads("two", 7));
    home
}

fn arm<'r>(report: &'r Value, name: &str) -> &'r Value {
    let arms = report["replay"]["arms"].as_array().unwrap();
    arms.iter().find(|arm| arm["name"] == name).unwrap()
}

fn combined(report: &Value, name: &str) -> f64 {
    arm(report, name)["savings"]["combined_savings_pct"].as_f64().unwrap()
}

#[test]
fn the_report_names_its_baseline_its_tokenizer_and_what_was_proven() {
    let report = home_with(30).json(&["replay"]);
    let replay = &report["replay"];
    assert_eq!((&replay["baseline"], &replay["tokens"]), (&"raw".into(), &"o200k_base".into()));
    assert_eq!(replay["input"]["calls"], 37);
    // For people what it saves comes first.
    let told = home_with(30).run(&["replay"]).out;
    let first = told.lines().find(|line| !line.starts_with("logs:")).unwrap();
    assert!(
        first.starts_with("published formats, gateway: ") && first.contains(" tokens saved; deduplication "),
        "{told}"
    );
    assert_eq!(replay["input"]["unproven"], 0);
    assert!(replay["input"]["proven"].as_u64().unwrap() > 20);
    assert!(combined(&report, "published") > 0.0);
    assert!(combined(&report, "extended") > combined(&report, "published"));
    assert!(arm(&report, "extended")["hints"]["lines"].as_u64().unwrap() > 0);
    let layers = &arm(&report, "published")["savings"]["layers"];
    let sum = |field: &str| ["L0", "L1", "L2", "L3"].iter().map(|l| layers[l][field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("baseline_tokens"), arm(&report, "published")["savings"]["baseline_tokens"].as_u64().unwrap());
    assert_eq!(sum("responses"), 37);
}

#[test]
fn lake_threads_and_order_of_reading_change_nothing() {
    let home = home_with(40);
    let replay = |more: &[&str]| home.json(&[&["replay"], more].concat())["replay"].clone();
    let first = replay(&["--no-lake", "--threads", "1"]);
    for more in [&["--no-lake", "--threads", "3"][..], &[], &[], &["--threads", "1"]] {
        assert_eq!(replay(more), first, "{more:?}");
    }
}

#[test]
fn a_grown_log_gives_the_report_of_a_fresh_reading_and_a_light_lake_is_studied_later() {
    let whole = reads("one", 30);
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for (cut, light) in [(1, false), (21, false), (22, true), (40, false)] {
        let home = Home::new();
        let path = home.write(".claude/projects/p/one.jsonl", lines[..cut].concat());
        home.json(if light { &["ingest"] } else { &["replay", "--allow-empty"] });
        OpenOptions::new().append(true).open(&path).unwrap().write_all(lines[cut..].concat().as_bytes()).unwrap();
        let grown = home.json(&["replay"]);
        assert_eq!(grown["replay"], home.json(&["replay", "--no-lake"])["replay"], "cut at {cut}");
        std::fs::remove_file(&path).unwrap();
        home.write(".claude/projects/p/other.jsonl", reads("two", 3));
        let kept = home.json(&["replay"]);
        assert_eq!(kept["replay"]["input"]["calls"], 33, "rows and facts outlive the log");
        assert_eq!(kept["replay"]["input"]["unstudied"], 0);
    }
}

#[test]
fn another_vocabulary_is_counted_when_it_is_asked_for_and_the_first_one_stays() {
    let home = home_with(12);
    let o200k = home.json(&["replay"])["replay"].clone();
    let config = home.write("cl.toml", "schema_version = 4\n[profiles.tokenizer]\nactive = \"openai_cl100k\"\n");
    let config = config.to_str().unwrap();
    let cl100k = home.json(&["replay", "--config", config])["replay"].clone();
    assert_eq!(cl100k["tokens"], "cl100k_base");
    assert_eq!(cl100k, home.json(&["replay", "--config", config, "--no-lake"])["replay"]);
    assert_eq!(o200k, home.json(&["replay"])["replay"]);
    let ratio = home.write("ratio.toml", "schema_version = 4\n[profiles.tokenizer]\nactive = \"ollama_bpe\"\n");
    let ratio = home.json(&["replay", "--config", ratio.to_str().unwrap()])["replay"].clone();
    assert_eq!(ratio["tokens"], "3.8 bytes per token");
}

#[test]
fn facts_made_by_other_rules_are_made_anew() {
    let home = home_with(20);
    let extended = |more: &[&str]| combined(&home.json(&[&["replay"], more].concat()), "extended");
    let shipped = extended(&[]);
    let rules = home.path("my-rules");
    home.write("my-rules/formats.toml", "numbered_every = 2\nrange_lines_min = 1000\n");
    let rules = ["--rules-dir", rules.to_str().unwrap()];
    let other = extended(&rules);
    assert!(other < shipped, "numbers on every second line save less");
    assert_eq!(other, extended(&[&rules[..], &["--no-lake"]].concat()));
    assert_eq!(shipped, extended(&[]));
    home.write("my-rules/formats.toml", "numbered_every = 0\nrange_lines_min = 5\n");
    assert_eq!(home.run(&["replay", rules[0], rules[1]]).exit, Exit::Failed);
}

#[test]
fn what_one_log_was_counted_in_stays_when_another_log_has_the_same_bodies() {
    let home = Home::new();
    let dirs = ["a", "b"].map(|dir| home.path(dir).display().to_string());
    let config = home.write("cl.toml", "schema_version = 4\n[profiles.tokenizer]\nactive = \"openai_cl100k\"\n");
    let rules = home.write("my-rules/formats.toml", "numbered_every = 2\nrange_lines_min = 1000\n");
    let cl100k = ["--config", config.to_str().unwrap()];
    let others = ["--rules-dir", rules.parent().unwrap().to_str().unwrap()];
    home.write("a/p/one.jsonl", reads("one", 12));
    home.write("b/p/two.jsonl", reads("two", 12));
    let replay =
        |dir: &str, more: &[&str]| home.json(&[&["replay", "--input-dir", dir], more].concat())["replay"].clone();
    let counted = replay(&dirs[0], &cl100k);
    replay(&dirs[1], &[]);
    assert_eq!(replay(&dirs[0], &cl100k), counted, "another vocabulary");
    let shipped = replay(&dirs[0], &[]);
    replay(&dirs[1], &others);
    assert_eq!(replay(&dirs[0], &[]), shipped, "other rules");
    // So many segments that they are merged, by who reads other rules.
    for number in 0..9 {
        let body = format!("body {number} ").repeat(30);
        let call =
            CallLines { session: "more", number, tool: "Read", input: "/x", body: &body, model: "claude-opus-4-6" };
        home.write(&format!("b/p/more{number}.jsonl"), call.text());
        replay(&dirs[1], &others);
    }
    assert_eq!(replay(&dirs[0], &[]), shipped, "merged under other rules");
}

#[test]
fn a_log_that_grew_under_other_rules_is_studied_as_a_whole() {
    let home = Home::new();
    let whole = reads("one", 12);
    let (before, behind) = whole.split_at(whole.match_indices('\n').nth(9).unwrap().0 + 1);
    let path = home.write(".claude/projects/p/one.jsonl", before);
    let rules = home.write("my-rules/formats.toml", "numbered_every = 2\nrange_lines_min = 1000\n");
    home.json(&["replay"]);
    OpenOptions::new().append(true).open(&path).unwrap().write_all(behind.as_bytes()).unwrap();
    home.json(&["ingest", "--rules-dir", rules.parent().unwrap().to_str().unwrap()]);
    assert_eq!(home.json(&["replay"])["replay"], home.json(&["replay", "--no-lake"])["replay"]);
}

/// The logs of `a-b` and of `a/b` lie in one folder: they are two projects all the same, named as on the bill.
#[test]
fn directories_whose_logs_share_a_folder_are_two_projects() {
    let home = Home::new();
    for (session, directory) in [("one", "/home/u/a-b"), ("two", "/home/u/a/b")] {
        let log = reads(session, 4).replace("/home/u/secretproject", directory);
        home.write(&format!(".claude/projects/-home-u-a-b/{session}.jsonl"), log);
    }
    let report = home.json(&["replay"]);
    let projects = arm(&report, "published")["projects"].as_array().unwrap();
    let mut names: Vec<_> = projects.iter().map(|row| row["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["…/a-b", "…/b"]);
}

#[test]
fn the_lake_and_the_telemetry_hold_no_text() {
    let home = home_with(30);
    let dir = home.path("telemetry");
    home.json(&["replay", "--emit-telemetry", dir.to_str().unwrap()]);
    for dir in [home.lake(), dir] {
        let bytes = all_bytes(&dir);
        for secret in ["secretbody", "secretcell", "secretname", "secretkey", "secretpath", "secretproject"] {
            assert!(memchr::memmem::find(&bytes, secret.as_bytes()).is_none(), "{secret} in {}", dir.display());
        }
    }
}

#[test]
fn telemetry_has_an_event_per_answer_and_a_summary_per_session() {
    let home = home_with(30);
    let dir = home.path("telemetry");
    let report = home.json(&["replay", "--emit-telemetry", dir.to_str().unwrap()]);
    let text = String::from_utf8(all_bytes(&dir)).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (summaries, events): (Vec<&Value>, Vec<&Value>) =
        lines.iter().partition(|line| line["type"] == "session_summary");
    assert_eq!((summaries.len(), events.len()), (2, 37));
    let sum = |field: &str| events.iter().map(|event| event[field].as_u64().unwrap()).sum::<u64>();
    let savings = &arm(&report, "published")["savings"];
    assert_eq!(sum("tokens_baseline"), savings["baseline_tokens"].as_u64().unwrap());
    assert_eq!(sum("tokens_final"), savings["sent_tokens"].as_u64().unwrap());
    let total: u64 = summaries.iter().map(|line| line["data"]["total_final_tokens"].as_u64().unwrap()).sum();
    assert_eq!(total, sum("tokens_final"));
    assert!(events.iter().all(|event| event["content_sha_prefix_hex"].as_str().unwrap().len() == 32));
    assert!(events.iter().all(|event| event["session_hash"].as_str().unwrap().len() == 16));
}

#[test]
fn telemetry_names_templates_as_published_and_servers_only_if_asked() {
    let home = Home::new();
    let rows: Vec<String> = (0..9).map(|n| format!(r#"{{"id":{n},"title":"some words about it"}}"#)).collect();
    let body = format!(r#"{{"total":9,"issues":[{}]}}"#, rows.join(","));
    let tool = "mcp__tracker__find";
    let call = CallLines { session: "one", number: 0, tool, input: "x", body: &body, model: "claude-opus-4-6" };
    home.write(".claude/projects/p/one.jsonl", call.text());
    let template = "deep_mckp_with_inner_table";
    let config = format!("[templates]\nactive = [\"{template}\"]\nendpoint_overrides.{tool} = \"{template}\"\n");
    let config = home.write("c.toml", config);
    let event = |name: &str, more: &[&str]| -> Value {
        let dir = home.path(name);
        let arguments = ["replay", "--config", config.to_str().unwrap(), "--emit-telemetry", dir.to_str().unwrap()];
        home.json(&[&arguments[..], more].concat());
        let text = String::from_utf8(all_bytes(&dir)).unwrap();
        serde_json::from_str(text.lines().next().unwrap()).unwrap()
    };
    let (hidden_name, named) = (event("hidden", &[]), event("named", &["--names"]));
    assert_eq!((&hidden_name["layer_used"], &hidden_name["template_id"]), (&json!("L1"), &json!(template)));
    for field in ["tool_name_anon", "endpoint_class"] {
        assert_eq!((&hidden_name[field], &named[field]), (&json!(hidden(tool)), &json!(tool)));
    }
}

#[test]
fn a_sweep_names_each_way_to_count_once() {
    let home = home_with(4);
    let counted = |first: &str, second: &str| {
        let out = home.run(&["replay", "--sweep", first, "--sweep", second]).out;
        out.lines().find(|line| line.starts_with("tokens")).unwrap_or_default().to_owned()
    };
    let (sizes, tokenizers) = ("dedup.lru_size=3,5", "profiles.tokenizer.active=anthropic_class,ollama_bpe");
    let told = counted(tokenizers, sizes);
    assert_eq!((told.matches(" | ").count(), counted(sizes, tokenizers)), (1, told));
}

#[test]
fn a_sweep_is_a_grid_and_each_cell_is_the_replay_of_its_configuration() {
    let home = home_with(40);
    let report = home.json(&["replay", "--sweep", "dedup.lru_size=1,5", "--sweep", "dedup.min_body_chars=200,100000"]);
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        let values = &cell["values"];
        let text = format!(
            "schema_version = 4\n[dedup]\nlru_size = {}\nmin_body_chars = {}\n",
            values["dedup.lru_size"].as_str().unwrap(),
            values["dedup.min_body_chars"].as_str().unwrap()
        );
        let config = home.write("cell.toml", text);
        let single = home.json(&["replay", "--config", config.to_str().unwrap()]);
        for name in ["published", "extended"] {
            assert_eq!(cell[name], arm(&single, name)["savings"], "{values} {name}");
        }
    }
    let hits = |cell: &Value| cell["published"]["layers"]["L0"]["responses"].as_u64().unwrap();
    assert!(hits(&cells[2]) > hits(&cells[0]), "a larger cache hits more often here");
    assert_eq!(hits(&cells[3]), 0, "no body is that large");
}

#[test]
fn an_edit_drops_what_was_searched_and_the_report_says_what_that_costs() {
    let call = |(number, tool, input, body): (usize, &str, &str, &str)| {
        CallLines { session: "one", number, tool, input, body, model: "claude-opus-4-6" }.text()
    };
    let found = "src/a.rs:1: the same words again ".repeat(30);
    let calls = [(0, "Grep", "src", found.as_str()), (1, "Edit", "src/a.rs", "done"), (2, "Grep", "src", &found)];
    let home = Home::new();
    home.write(".claude/projects/-home-u-p/one.jsonl", calls.map(call).concat());
    let (plain, own) =
        (home.write("plain.toml", ""), home.write("own.toml", "[tools.Edit]\nvalue_class = \"supporting\"\n"));
    let figures = |config: &std::path::Path| {
        let replay = home.json(&["replay", "--config", config.to_str().unwrap()])["replay"].clone();
        let hits = replay["arms"][0]["savings"]["layers"]["L0"]["responses"].as_u64().unwrap();
        (hits, replay["invalidation_tokens"].as_u64().unwrap())
    };
    let (hits, given_up) = figures(&plain);
    assert_eq!(hits, 0, "the shipped annotation of Edit names Grep");
    assert!(given_up > 100, "{given_up}");
    assert_eq!(figures(&own), (1, 0), "a block stands for the whole model");
}

#[test]
fn no_hint_points_into_what_a_conversation_left_behind() {
    let turn = |name: &str, parent: &str, body: &str| {
        let [ask, call, message] = ["a", "toolu", "m"].map(|half| format!("{half}_{name}"));
        let said = user(name, "go").link(name, Some(parent));
        let result = format!("r_{name}");
        let asked = asks(&message, &call, "Bash").link(&ask, Some(name)).message("model", "claude-opus-4-6");
        log(&[said, asked, answers(&call, body).link(&result, Some(&ask))])
    };
    let [trunk, branch] = ["the trunk ", "the branch "].map(|words| words.repeat(60));
    // Of two branches each shows the same, and what was shown before them.
    let first = turn("p1", "root", &trunk) + &turn("p2", "r_p1", &branch);
    let back = first.clone() + &turn("p3", "r_p1", &branch) + &turn("p4", "r_p3", &trunk);
    let on = first + &turn("p3", "r_p2", &branch) + &turn("p4", "r_p3", &trunk);
    let hints = |text: &str| {
        let home = Home::new();
        home.write(".claude/projects/-home-u-p/one.jsonl", text);
        let replay =
            home.json(&["replay", "--emit-telemetry", home.path("events").to_str().unwrap()])["replay"].clone();
        let what_if = home.json(&["what-if", "pipeline"]);
        let cleared =
            String::from_utf8(all_bytes(&home.path("events"))).unwrap().matches(r#""what":"cleared""#).count();
        let hits = replay["arms"][0]["savings"]["layers"]["L0"]["responses"].as_u64().unwrap();
        (hits, cleared, what_if.to_string().contains(r#""hints_held":0"#))
    };
    assert_eq!(hints(&on), (2, 0, true));
    assert_eq!(hints(&back), (1, 1, true));
}

#[test]
fn two_configurations_are_compared_per_endpoint() {
    let home = home_with(40);
    let off = home.write("off.toml", "schema_version = 4\n[dedup.enabled_per_endpoint]\nBash = false\n");
    let off = off.to_str().unwrap();
    let report = home.json(&["replay", "--against", off]);
    for arm in report["arms"].as_array().unwrap() {
        let rows = arm["endpoints"].as_array().unwrap();
        let sum: i64 = rows.iter().map(|row| row["sent_difference"].as_i64().unwrap()).sum();
        let sent = |which: &str| arm[which]["sent_tokens"].as_i64().unwrap();
        assert_eq!(sum, sent("second") - sent("first"));
        assert!(sum > 0, "without L0 for Bash more is sent");
    }
    let table = home.run(&["replay", "--against", off]).out;
    assert!(table.contains("Bash") && table.contains("off.toml"), "{table}");
    let single = home.json(&["replay", "--config", off]);
    assert_eq!(report["arms"][0]["second"], arm(&single, "published")["savings"]);
}

/// Of one text two vocabularies make different numbers of tokens: what is sent cannot be compared, what is saved can.
#[test]
fn two_vocabularies_are_compared_by_what_is_saved() {
    let home = home_with(40);
    let other = home.write("other.toml", "schema_version = 4\n[profiles.tokenizer]\nactive = \"openai_cl100k\"\n");
    let other = other.to_str().unwrap();
    let report = home.json(&["replay", "--against", other]);
    assert_eq!(report["tokens"], json!(["o200k_base", "cl100k_base"]));
    let arm = &report["arms"][0];
    let number = |of: &Value, key: &str| of[key].as_i64().unwrap();
    let rows = arm["endpoints"].as_array().unwrap();
    let sum: i64 = rows.iter().map(|row| number(row, "saved_difference")).sum();
    let of_all = |key: &str| number(&arm["second"], key) - number(&arm["first"], key);
    assert_eq!(sum, of_all("saved_tokens"));
    assert_ne!(sum, -of_all("sent_tokens"));
    let table = home.run(&["replay", "--against", other]).out;
    assert!(table.contains("tokens: o200k_base (first, baseline), cl100k_base (second); saved by: "), "{table}");
}

#[test]
fn the_gate_writes_compares_and_fails_with_the_lines_that_got_worse() {
    let home = home_with(40);
    let file = home.path("ci/replay-baseline.json");
    let file = file.to_str().unwrap();
    let gate = |more: &[&str]| home.run(&[&["replay", "--baseline", file], more].concat());
    assert_eq!(gate(&[]).exit, Exit::Done);
    let written = std::fs::read(file).unwrap();
    assert_eq!(gate(&[]).exit, Exit::Done, "the same logs pass");
    let worse = home.write("worse.toml", "schema_version = 4\n[dedup]\nlru_size = 1\n[mckp]\nformats_enabled = []\n");
    let worse = worse.to_str().unwrap();
    let failed = gate(&["--config", worse]);
    assert_eq!(failed.exit, Exit::Gate);
    assert!(failed.err.contains("# worse: published"), "{}", failed.err);
    let told = format!("gate failed: savings may fall by 0 points against {file} (--max-regression)\n");
    assert!(failed.out.contains(&told), "{}", failed.out);
    let asked = ["replay", "--baseline", file, "--config", worse];
    assert_eq!(home.run_into(&asked, &mut ClosedPipe), Exit::Gate, "whoever reads its output");
    assert_eq!(home.run_unheard(&asked), (Exit::Gate, failed.out), "and its notes");
    assert_eq!(gate(&["--config", worse, "--max-regression", "99"]).exit, Exit::Done);
    assert_eq!(std::fs::read(file).unwrap(), written, "comparing does not write");
    assert_eq!(gate(&["--config", worse, "--max-regression", "0.5", "--update-baseline"]).exit, Exit::Done);
    assert_eq!(gate(&["--config", worse]).exit, Exit::Done);
    std::fs::write(file, "{\"schema_version\": 1,\n nonsense").unwrap();
    let broken = gate(&[]);
    assert_eq!(broken.exit, Exit::Failed);
    assert!(broken.err.contains("replay-baseline.json:2"), "{}", broken.err);
    // What never was a baseline is not replaced by one.
    for other in ["# Notes\n", "{\"version\": 1}"] {
        std::fs::write(file, other).unwrap();
        for more in [&[][..], &["--update-baseline"]] {
            let refused = gate(more);
            assert_eq!(refused.exit, Exit::Failed, "{more:?}");
            assert!(refused.err.contains("is this the right file?"), "{}", refused.err);
            assert_eq!(std::fs::read_to_string(file).unwrap(), other);
        }
    }
}

#[test]
fn a_gate_with_nothing_to_compare_does_not_pass_for_one() {
    let home = home_with(40);
    let file = home.path("baseline.json");
    let gate = |more: &[&str]| home.run(&[&["replay", "--baseline", file.to_str().unwrap()], more].concat());
    // Nothing in the window: nothing is written, and nothing is worse than what was.
    let nothing = ["--since", "2031-01-01", "--allow-empty"];
    let empty = gate(&nothing);
    assert_eq!((empty.exit, file.exists()), (Exit::Done, false), "{}", empty.err);
    let json = |more: &[&str]| {
        let asked = [&["replay", "--baseline", file.to_str().unwrap()], more].concat();
        home.json(&asked)["gate"]["passed"].clone()
    };
    assert_eq!(json(&nothing), Value::Null);
    assert_eq!((json(&[]), json(&[])), (json!(true), json!(true)), "written, then compared");
    std::fs::remove_file(&file).unwrap();
    assert!(empty.out.contains("nothing was replayed"), "{}", empty.out);
    assert_eq!(gate(&[]).exit, Exit::Done);
    assert_eq!(gate(&nothing).exit, Exit::Done);
    let whole: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let without = |change: &dyn Fn(&mut Value)| {
        let mut baseline = whole.clone();
        change(&mut baseline["arms"]);
        std::fs::write(&file, baseline.to_string()).unwrap();
        gate(&[])
    };
    for outcome in [
        without(&|arms| *arms = json!({})),
        without(&|arms| *arms = json!({ "of the future": arms["published"] })),
        without(&|arms| {
            for arm in arms.as_object_mut().unwrap().values_mut() {
                arm["baseline_tokens"] = json!(0);
            }
        }),
    ] {
        assert_eq!(outcome.exit, Exit::Failed, "{}", outcome.out);
        assert!(outcome.err.contains("holds no figures that this replay could be compared with"), "{}", outcome.err);
    }
}

#[test]
fn over_other_logs_a_single_endpoint_does_not_fail_the_gate() {
    let home = home_with(40);
    let file = home.path("baseline.json");
    let gate = |more: &[&str]| home.run(&[&["replay", "--baseline", file.to_str().unwrap()], more].concat());
    assert_eq!(gate(&[]).exit, Exit::Done);
    // All savings are as they were, apart from those that one endpoint is said to have had.
    let mut baseline: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let endpoints = baseline["arms"]["published"]["endpoints"].as_object_mut().unwrap();
    let [_, sent] = endpoints.values_mut().next().unwrap().as_array_mut().unwrap().as_mut_slice() else { panic!() };
    *sent = 0.into();
    std::fs::write(&file, baseline.to_string()).unwrap();
    let same = gate(&[]);
    assert_eq!(same.exit, Exit::Gate);
    assert!(same.err.contains("# worse: published "), "{}", same.err);
    for arm in ["published", "extended"] {
        let arm = &mut baseline["arms"][arm];
        for key in ["baseline_tokens", "sent_tokens"] {
            arm[key] = (2 * arm[key].as_u64().unwrap()).into();
        }
    }
    std::fs::write(&file, baseline.to_string()).unwrap();
    let other = gate(&[]);
    assert_eq!(other.exit, Exit::Done, "{}", other.err);
    assert!(other.err.contains("# the logs are not those of the baseline"), "{}", other.err);
}

#[test]
fn sessions_are_those_with_a_call_and_idle_keys_are_named() {
    let home = home_with(7);
    let plain = r#"{"type":"user","uuid":"u","sessionId":"three","timestamp":"2026-10-30T10:00:00Z","message":{"role":"user","content":"hello"}}"#;
    home.write(".claude/projects/-home-u-other/three.jsonl", format!("{plain}\n"));
    let report = home.json(&["replay"]);
    assert_eq!(report["replay"]["input"]["sessions"], 2);
    let swept = home.run(&["replay", "--sweep", "enrichment.enabled=true,false", "--sweep", "dedup.lru_size=1,5"]);
    assert!(swept.err.contains("# enrichment.enabled: no value makes a difference"), "{}", swept.err);
    assert!(!swept.err.contains("# dedup.lru_size: no value"), "{}", swept.err);
}

#[test]
fn a_format_that_does_not_exist_does_nothing_and_is_told_with_its_line() {
    let home = home_with(3);
    let savings = |more: &[&str]| home.json(&[&["replay"], more].concat())["replay"]["arms"].clone();
    for (text, line) in [
        ("schema_version = 4\n\n[templates]\nactive = [\"csv_from_md\", \"zip\"]\n", 4),
        ("schema_version = 4\n[mckp]\nformats_enabled = [\"toon\"]\n", 3),
        ("schema_version = 4\n[endpoint_overrides.Read]\ntemplate_id = \"x\"\n", 3),
        ("schema_version = 4\n[templates.endpoint_overrides]\n\nRead = \"y\"\n", 4),
    ] {
        let config = home.write("odd.toml", text);
        let outcome = home.run(&["replay", "--config", config.to_str().unwrap()]);
        assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
        assert!(outcome.err.contains(&format!("odd.toml:{line}: ")), "{}", outcome.err);
        assert!(outcome.err.contains("which no format is called (json_pretty, json_compact, "), "{}", outcome.err);
        if !text.contains("[mckp]") {
            assert_eq!(savings(&["--config", config.to_str().unwrap()]), savings(&[]), "{text}");
        }
    }
}

#[test]
fn odd_arguments_are_usage_errors_that_say_what_to_do() {
    let home = home_with(3);
    for arguments in [
        &["--sweep", "dedup.lru_size"][..],
        &["--sweep", "dedup.lru_sise=3"],
        &["--sweep", "dedupe.lru_size=3"],
        &["--sweep", "dedup.lru_size=three"],
        &["--agent-profile", "nobody"],
        &["--sweep", "profiles.llm.active=nosuch"],
        &["--max-regression", "2"],
        &["--sweep", "mckp.formats_enabled=[\"zip\"]"],
        &["--sweep", "dedup.lru_size=1", "--sweep", "dedup.lru_size=2"],
        &["--sweep", "profiles.agent.active=default", "--agent-profile", "default"],
    ] {
        let outcome = home.run(&[&["replay"], arguments].concat());
        assert_ne!(outcome.exit, Exit::Done, "{arguments:?}");
        assert!(outcome.out.is_empty(), "{arguments:?}");
        assert!(outcome.err.len() > 20, "{arguments:?}");
        // What is refused does not say what would hold instead.
        assert!(!outcome.err.contains(" holds"), "{arguments:?}: {}", outcome.err);
    }
}

#[test]
fn markdown_csv_and_table_print_the_same_figures() {
    let home = home_with(20);
    let report = home.json(&["replay"]);
    let combined = format!("{:.2} %", combined(&report, "extended"));
    for format in ["table", "md"] {
        let short = home.run(&["replay", "--format", format]).out;
        assert!(short.contains(&combined) && short.lines().count() <= 25, "{combined} in\n{short}");
        let out = home.run(&["replay", "--format", format, "--explain"]).out;
        assert!(out.contains(&combined), "{combined} in\n{out}");
        assert!(out.contains("35.01 %"), "the claim stands beside the truth");
    }
    let csv = home.run(&["replay", "--format", "csv"]).out;
    assert!(csv.starts_with("arm,group,name,responses,baseline,sent"), "{csv}");
    assert!(csv.lines().all(|line| line.split(',').count() == 11), "{csv}");
    assert_eq!(home.run(&["replay", "--format", "md"]).out, home.run(&["replay", "--format", "md"]).out);
}

#[test]
fn encode_shows_every_format_with_its_proof() {
    let home = Home::new();
    let rows: Vec<Value> =
        (0..20).map(|n| serde_json::json!({"id": n, "name": format!("n{n}"), "open": true})).collect();
    let body = serde_json::to_string_pretty(&rows).unwrap();
    let outcome = home.run_with(&["encode", "--json"], body.as_bytes());
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    let report: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!((&report["shape"], &report["items"]), (&"array_of_objects".into(), &20.into()));
    let winner = report["winner"].as_str().unwrap();
    let row = report["candidates"].as_array().unwrap().iter().find(|row| row["format"] == winner).unwrap();
    assert!(row["proven"] == true && row["tokens"].as_u64() < report["tokens"].as_u64());
    let printed = home.run_with(&["encode", "--print"], body.as_bytes()).out;
    assert_eq!(report["text"], printed);
    let table = home.run_with(&["encode"], body.as_bytes()).out;
    assert!(table.contains("proven") && table.contains("chosen"), "{table}");
    let csv = home.run_with(&["encode", "--format", "csv"], body.as_bytes()).out;
    assert_eq!(csv.lines().next(), Some("format,tokens,saved,choice,quotable,proof"));
    let one = home.run_with(&["encode"], b"{\"name\": \"value\"}").out;
    assert!(one.contains("; 1 deep, 1 field\n"), "{one}");
    assert_eq!(home.run_with(&["encode"], b"").exit, Exit::Failed);
    let odd = home.run_with(&["encode"], b"ab\xFFcd");
    assert!(odd.exit == Exit::Failed && odd.err.contains("byte 2"), "{}", odd.err);
}

#[test]
fn encode_cuts_to_a_budget_and_says_what_is_missing() {
    let home = Home::new();
    let rows: Vec<Value> =
        (0..50).map(|n| serde_json::json!({"id": n, "title": format!("issue number {n}")})).collect();
    let body = serde_json::to_string(&rows).unwrap();
    let fit = |budget: &str| {
        home.run_with(&["encode", "--budget", budget, "--fetch-rest", "get_issues(page=2)"], body.as_bytes())
    };
    let outcome = fit("120");
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    assert!(outcome.out.contains(" more. call get_issues(page=2)]"), "{}", outcome.out);
    assert!(outcome.err.contains("of the value below the optimum"), "{}", outcome.err);
    assert_eq!(fit("2").exit, Exit::Failed);
    assert_eq!(home.run_with(&["encode", "--budget", "100"], body.as_bytes()).exit, Exit::Usage);
}

#[test]
fn bodies_of_extreme_form_are_replayed() {
    let home = Home::new();
    let row = |n: usize| format!("| {n} | x |\n");
    let table = "| a | b |\n| - | - |\n".to_owned() + &(0..20_000).map(row).collect::<String>();
    let bodies = ["[".repeat(100_000) + &"]".repeat(100_000), table, "x".repeat(2_000_000), "\n".repeat(500_000)];
    let line = |(number, body): (usize, &String)| {
        CallLines { session: "s", number, tool: "Read", input: "/a", body, model: "m" }.text()
    };
    home.write(".claude/projects/p/one.jsonl", bodies.iter().enumerate().map(line).collect::<String>());
    let report = home.json(&["replay"]);
    assert_eq!(report["replay"]["input"]["calls"], 4);
    assert_eq!(report["replay"]["input"]["unproven"], 0);
}

#[test]
fn a_model_that_nobody_knows_is_refused() {
    let home = home_with(7);
    for known in ["gpt-oss:20b", "claude-sonnet-4-6-20260101", "claude-opus-5", "claude-opus-4-6"] {
        assert_eq!(home.run(&["replay", "--model", known]).exit, Exit::Done, "{known}");
    }
    for unknown in ["gtp-oss:20b", ""] {
        let outcome = home.run(&["replay", "--model", unknown]);
        assert_eq!((outcome.exit, outcome.out.as_str()), (Exit::Usage, ""), "{unknown}");
        assert!(outcome.err.contains("no model") && outcome.err.contains("glm-5.1"), "{}", outcome.err);
    }
    assert!(home.run(&["replay", "--model", "gtp-oss:20b"]).err.contains("did you mean gpt-oss:20b?"));
}

#[test]
fn a_model_that_is_asked_for_stands_in_place_of_the_one_in_the_configuration() {
    let home = home_with(7);
    let tokens = |arguments: &[&str]| home.json(&[&["replay"], arguments].concat())["replay"]["tokens"].clone();
    let (usual, asked) = (tokens(&[]), tokens(&["--model", "gpt-oss:20b"]));
    assert_ne!(asked, usual);
    home.write(".config/devboy/pipeline_config.toml", "[profiles.llm]\nactive = \"claude-sonnet-4.6\"\n");
    assert_eq!(tokens(&[]), usual);
    assert_eq!(tokens(&["--model", "gpt-oss:20b"]), asked);
}

#[test]
fn a_report_says_which_logs_it_is_about() {
    let home = home_with(7);
    let whole = "logs: 2 sessions, 2026-10-30\n";
    let one = "logs: 1 session, 2026-10-30, projects named like \"secret\"\n";
    for (words, is_data) in
        [("replay", true), ("replay --sweep dedup.lru_size=1,2", true), ("mine tools", false), ("mine patterns", false)]
    {
        let run = |more: &[&str]| {
            let outcome = home.run(&[&words.split(' ').collect::<Vec<_>>(), more].concat());
            if is_data { outcome.out } else { outcome.err }
        };
        assert!(run(&[]).contains(whole), "{words}: {}", run(&[]));
        assert!(run(&["--project", "secret"]).contains(one), "{words}");
    }
    let shared = home.run(&["replay", "--project", "secret", "--format", "md"]).out;
    assert!(shared.contains("logs: 1 session, 2026-10-30, some of the projects\n") && !shared.contains("secret"));
}

#[test]
fn mistakes_are_told_with_their_place_and_what_to_do() {
    let home = home_with(7);
    let broken = home.write("broken.toml", "[compaction\n");
    let broken = broken.to_str().unwrap();
    let directory = home.path(".claude");
    let directory = directory.to_str().unwrap();
    for (words, exit, said) in [
        (&["what-if", "compaction", "--config", broken][..], Exit::Failed, "broken.toml:1: not valid TOML: "),
        (&["replay", "--config", broken], Exit::Failed, "broken.toml:1: not valid TOML: "),
        (&["replay", "--config", directory], Exit::Failed, "name the file itself"),
        (&["replay", "--sweep", "dedup.lru_size=a"], Exit::Usage, "fit: `dedup.lru_size` must be a whole number"),
        (&["planner", "--arm", "nobody"], Exit::Usage, "[possible values: published, configured, mined, selective]"),
        (&["cost", "--days", "0"], Exit::Usage, "--days"),
        (&["mine", "tools", "--output", directory], Exit::Failed, "is a directory\n  hint: name a file"),
    ] {
        let outcome = home.run(words);
        assert_eq!((outcome.exit, outcome.out.as_str()), (exit, ""), "{words:?}: {}", outcome.err);
        assert!(outcome.err.contains(said) && !outcome.err.contains("\\u{a}"), "{words:?}: {}", outcome.err);
    }
}

/// A file in its place would be the end of it.
#[cfg(unix)]
#[test]
fn a_pipe_is_not_replaced_by_a_file() {
    let home = home_with(7);
    let pipe = home.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let outcome = home.run(&["mine", "tools", "--format", "csv", "--output", pipe.to_str().unwrap()]);
    assert_eq!(outcome.exit, Exit::Failed, "{}", outcome.err);
    assert!(outcome.err.contains("pipe: is a named pipe"), "{}", outcome.err);
    assert!(!std::fs::symlink_metadata(&pipe).unwrap().is_file());
}

/// Where nothing was replayed nothing was counted, and no line says how.
#[test]
fn a_replay_of_nothing_says_nothing_of_counting() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("empty")).unwrap();
    let outcome = home.run(&["replay", "--allow-empty", "--input-dir", &home.path("empty").display().to_string()]);
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    assert!(!outcome.out.contains("tokens: ;"), "{}", outcome.out);
}
