//! A word of its own in every field of a log: what is made to be shared, and the lake, hold those that docs/privacy.md lists
//! and no other.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::harness::{Home, all_bytes, hidden};
use super::log_builder::*;
use crate::report::sharing::without_place;
use crate::shell::arguments::Exit;

/// Hands out words and knows where each was planted.
#[derive(Default)]
struct Words(BTreeMap<String, &'static str>);

impl Words {
    fn plant(&mut self, field: &'static str) -> String {
        let word = format!("zq{:03}xv", self.0.len());
        self.0.insert(word.clone(), field);
        word
    }

    /// The fields of which a word stands in the bytes.
    fn found(&self, bytes: &[u8]) -> Vec<&'static str> {
        let holds = |word: &str| memchr::memmem::find(bytes, word.as_bytes()).is_some();
        let mut fields: Vec<_> = self.0.iter().filter(|(word, _)| holds(word)).map(|(_, field)| *field).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }
}

/// What every shared form may hold: names that say what a program is, not whose.
const PROGRAMS: [&str; 4] = ["model", "tool", "verb", "version"];

/// Two sessions with a word in every field.
fn planted() -> (Home, Words) {
    let (home, mut words) = (Home::new(), Words::default());
    let words_ = &mut words;
    let (user_name, project) = (words_.plant("user"), words_.plant("project"));
    let (server, verb) = (words_.plant("server"), words_.plant("verb"));
    let (tool, model, version) = (words_.plant("tool"), words_.plant("model"), words_.plant("version"));
    let (key, argument) = (words_.plant("key of an answer"), words_.plant("argument"));
    let cwd = format!("/home/{user_name}/{project}");
    for number in 0..6 {
        let (session, file) = (words.plant("session"), words.plant("file"));
        let mut records = vec![user(&words.plant("uuid"), words.plant("prompt") + " please")];
        for turn in 0..24 {
            let name = match turn % 6 {
                0 => "Read".to_owned(),
                1 => "Bash".to_owned(),
                2 => format!("mcp__{server}__{verb}"),
                3 => tool.clone(),
                4 => "Agent".to_owned(),
                _ => format!("mcp__{server}"),
            };
            let input = json!({
                "file_path": format!("{cwd}/{}", words.plant("path")), "command": words.plant("command"),
                "description": words.plant("description"), "prompt": words.plant("task"),
                "subagent_type": words.plant("agent"), argument.as_str(): words.plant("value"),
                "url": format!("https://{}.example/{}", words.plant("host"), words.plant("page")),
            });
            let id = words.plant("call id");
            let block = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
            let text = json!({ "type": "text", "text": words.plant("said") });
            let usage = json!({
                "input_tokens": 5, "output_tokens": 9, "cache_creation_input_tokens": 900,
                "cache_read_input_tokens": 16_000 + 900 * turn,
            });
            let answered = if turn % 5 == 4 { model.clone() } else { "claude-opus-4-6".to_owned() };
            let request = words.plant("request");
            let asked = assistant(&words.plant("message"), &[text, block]).set("requestId", request);
            let uuid = words.plant("uuid");
            records.push(asked.message("model", answered).message("usage", usage).set("uuid", uuid));
            let row = json!({ key.as_str(): words.plant("result"), "id": words.plant("id") });
            let body = Value::Array(vec![row; 20]).to_string();
            let extra = json!({ "stdout": words.plant("output"), "filenames": [words.plant("listed")] });
            let uuid = words.plant("uuid");
            records.push(answers(&id, body.as_str()).set("toolUseResult", extra).set("uuid", uuid));
        }
        let mut text = String::new();
        for (place, record) in records.into_iter().enumerate() {
            let record = record.session(&session).set("cwd", cwd.as_str()).set("gitBranch", words.plant("branch"));
            let record = record.set("slug", words.plant("slug")).set("version", version.as_str());
            text += &record.at((number * 1_200 + place * 9) as u32).line();
        }
        text += &json!({ "type": "summary", "summary": words.plant("summary"), "leafUuid": words.plant("leaf") })
            .to_string();
        text += "\n{ damaged\n";
        home.write(&format!(".claude/projects/-home-{user_name}-{project}/{file}.jsonl"), text);
    }
    (home, words)
}

fn run(home: &Home, command: &[&str]) -> String {
    let outcome = home.run(command);
    assert!(matches!(outcome.exit, Exit::Done | Exit::Gate), "{command:?}: {}", outcome.err);
    outcome.out
}

fn assert_only(found: &[&str], allowed: &[&str], what: &[&str]) {
    let strange: Vec<_> = found.iter().filter(|field| !allowed.contains(field)).collect();
    assert!(strange.is_empty(), "{what:?} holds {strange:?}");
}

#[test]
fn markdown_names_no_project_server_or_place() {
    let (home, words) = planted();
    home.run(&["tune", "from-claude-logs", "--tools", "-q"]);
    let commands: [&[&str]; 20] = [
        &["cost", "--by", "tool,server,project,session,branch", "--all"],
        &["session"],
        &["ingest"],
        &["doctor"],
        &["replay", "--explain"],
        &["replay", "--planner", "--explain"],
        &["replay", "--policy", "all", "--explain"],
        &["replay", "--policy", "prompt-cache", "--explain", "--per-session"],
        &["replay", "--policy", "compaction", "--explain"],
        &["replay", "--policy", "history-trim", "--explain"],
        &["replay", "--policy", "pipeline", "--explain"],
        &["replay", "--policy", "tool-filter", "--explain"],
        &["replay", "--policy", "pick-tools", "--explain"],
        &["replay", "--policy", "arg-check", "--explain"],
        &["tune", "from-claude-logs", "--dry-run", "--tools"],
        &["tune", "analyze", "--from-claude-logs", "--dry-run"],
        &["tune", "show"],
        &["tune", "history", "--explain"],
        &["mine", "tools"],
        &["mine", "projections", "--explain"],
    ];
    // Links between tools and checks of arguments are about arguments and keys.
    let allowed = [&PROGRAMS[..], &["argument", "key of an answer"]].concat();
    for command in commands {
        let asked = [command, &["--format", "md"]].concat();
        assert_only(&words.found(run(&home, &asked).as_bytes()), &allowed, &asked);
    }
    let named = words.found(run(&home, &["replay", "--explain", "--format", "md", "--names"]).as_bytes());
    assert!(named.contains(&"server") && named.contains(&"project"), "--names keeps names: {named:?}");
    let own = words.found(run(&home, &["replay", "--explain"]).as_bytes());
    assert!(own.contains(&"server") && own.contains(&"project"), "a report to one's own terminal: {own:?}");
}

#[test]
fn aggregates_name_no_project_server_or_place() {
    let (home, words) = planted();
    let commands: [&[&str]; 9] = [
        &["mine", "edges"],
        &["mine", "edges", "--ends"],
        &["mine", "tools"],
        &["mine", "tools", "--servers"],
        &["mine", "patterns"],
        &["mine", "sessions"],
        &["mine", "fingerprints"],
        &["mine", "projections"],
        &["mine", "compare", "..2026-01-02T04:00:00Z", "2026-01-02T04:00:01Z.."],
    ];
    for command in commands {
        for form in ["table", "json", "csv", "md"] {
            for more in [&[][..], &["--k-anonymity", "2"]] {
                let asked = [command, &["--format", form], more].concat();
                let allowed: &[&str] = match (command[1], form) {
                    ("projections", _) => &["argument", "key of an answer"],
                    // A table for its owner alone.
                    ("sessions", "table") => &["session", "project"],
                    _ => &[],
                };
                let allowed = [&PROGRAMS[..], allowed].concat();
                assert_only(&words.found(run(&home, &asked).as_bytes()), &allowed, &asked);
            }
        }
    }
    let named = words.found(run(&home, &["mine", "tools", "--json", "--names"]).as_bytes());
    assert!(named.contains(&"server"), "{named:?}");
}

/// What stands below the directory of the shell looks like a word: only who took it for a place knows that it is one.
#[test]
fn relative_places_are_not_shared_either() {
    let home = Home::new();
    let (logs, config) = ("testdata/claude-home", "testdata/settings/new_file/out.toml");
    let doctor = home.run(&["doctor", "--format", "md", "--input-dir", logs, "--config", config]).out;
    assert!(doctor.contains("(path) (--input-dir)") && doctor.contains("(path) (--config)"), "{doctor}");
    let against = ["replay", "--config", config, "--against", config, "--format", "md", "--input-dir", logs];
    let replay = run(&home, &against);
    assert!(replay.contains("first: (path)\nsecond: (path)\n"), "{replay}");
    let own = run(&home, &[&against[..], &["--names"]].concat());
    assert!(own.contains(config), "{own}");
    let compared = home.json(&["mine", "compare", logs, "2020-01-01..2030-01-01", "--input-dir", logs]);
    assert_eq!((&compared["a"], &compared["b"]), (&"(path)".into(), &"2020-01-01..2030-01-01".into()));
    for shared in [doctor, replay] {
        assert!(!shared.contains("testdata") && !shared.contains("claude-home"), "{shared}");
    }
    let below = without_place("x/logs: logs/a.jsonl:12, logs: gone; logs2 in logs", Path::new("logs"));
    assert_eq!(below, "x/logs: (path):12, (path): gone; logs2 in (path)");
}

#[test]
fn what_if_with_redact_names_no_project_server_or_place() {
    let (home, words) = planted();
    let sweep = ["--sweep", "prompt-cache.ttl=5m,1h"];
    let lines = home.path("lines.jsonl").to_string_lossy().into_owned();
    let policies: [&[&str]; 6] = [
        &["all", "--explain", "--per-session"],
        &["pipeline", "--all", "--explain"],
        &["tool-filter", "--all", "--explain"],
        &["pick-tools", "--all", "--per-request", &lines],
        &["arg-check", "--all", "--explain"],
        &["tool-filter", sweep[0], sweep[1]],
    ];
    let place = home.path("").to_string_lossy().into_owned();
    for policy in policies {
        for form in ["table", "json"] {
            let asked = [&["what-if"], policy, &["--redact", "--format", form]].concat();
            let out = run(&home, &asked);
            let found = words.found(out.as_bytes());
            let named = ["server", "project", "user", "file", "session"].map(|field| found.contains(&field));
            assert!(!named.contains(&true) && !out.contains(&place), "{asked:?} holds {found:?}: {out}");
        }
    }
    assert!(!words.found(&std::fs::read(&lines).unwrap()).contains(&"server"));
    let logs = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/claude-home");
    for policy in ["arg-check", "tool-filter"] {
        for form in ["table", "json"] {
            let asked = ["what-if", policy, "--all", "--input-dir", logs, "--format", form];
            let own = run(&home, &asked);
            let shared = run(&home, &[&asked[..], &["--redact"]].concat());
            let named = |out: &str| out.contains("gitlab") || out.contains("github");
            assert!(named(&own) && !named(&shared), "{policy} as {form}: {shared}");
            let pseudonym = hidden("mcp__gitlab__get_issues");
            assert_eq!(shared.matches(&pseudonym).count(), own.matches("mcp__gitlab__get_issues").count(), "{policy}");
        }
    }
    // People name kinds of agents themselves.
    let kinds = |more: &[&str]| -> Vec<String> {
        run(&home, &[&["what-if", "prompt-cache", "--input-dir", logs, "--per-request", &lines], more].concat());
        let text = std::fs::read_to_string(&lines).unwrap();
        let kind = |line: &str| serde_json::from_str::<Value>(line).unwrap()["agent_type"].as_str().unwrap().to_owned();
        text.lines().map(kind).filter(|kind| !kind.is_empty()).collect()
    };
    let (own, shared) = (kinds(&[]), kinds(&["--redact"]));
    assert!(!own.is_empty() && own.len() == shared.len() && own.iter().all(|kind| !kind.starts_with("agent-")));
    assert!(shared.iter().all(|kind| kind.starts_with("agent-")), "{shared:?}");
    for more in ["--names", "--show-content"] {
        assert_eq!(home.run(&["what-if", "compaction", "--redact", more]).exit, Exit::Usage, "{more}");
    }
}

#[test]
fn files_made_to_be_shared_name_no_project_server_or_place() {
    let (home, words) = planted();
    let path = |name: &str| home.path(name).to_string_lossy().into_owned();
    let (baseline, named, emitted) = (path("shared/baseline.json"), path("named.json"), path("recorded/events"));
    run(&home, &["replay", "--baseline", &baseline]);
    run(&home, &["replay", "--baseline", &named, "--names"]);
    run(&home, &["replay", "--emit-telemetry", &emitted]);
    run(&home, &["tune", "analyze", "--from-claude-logs", "-q"]);
    assert_only(&words.found(&std::fs::read(&baseline).unwrap()), &PROGRAMS, &["the baseline"]);
    assert!(words.found(&std::fs::read(&named).unwrap()).contains(&"server"));
    assert_only(&words.found(&all_bytes(&home.path("recorded"))), &PROGRAMS, &["telemetry"]);
    assert_only(&words.found(&all_bytes(&home.path(".config/devboy/telemetry"))), &PROGRAMS, &["endpoints.parquet"]);
    // Others on the machine see neither the folders nor the files.
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&home.path("recorded")), mode(&home.path("recorded/events"))), (0o700, 0o700));
    for file in std::fs::read_dir(&emitted).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

#[test]
fn a_baseline_is_compared_with_and_without_names() {
    let (home, _) = planted();
    let path = |name: &str| home.path(name).to_string_lossy().into_owned();
    let (short, long) = (path("short.json"), path("long.json"));
    run(&home, &["replay", "--baseline", &short]);
    run(&home, &["replay", "--baseline", &long, "--names"]);
    let read = |path: &str| serde_json::from_str::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap();
    let lines = |path: &str| home.json(&["replay", "--baseline", path])["gate"]["lines"].clone();
    assert_eq!(lines(&short), lines(&long));
    let endpoints = read(&short)["arms"]["published"]["endpoints"].as_object().unwrap().len();
    assert!(endpoints > 2 && lines(&short).as_array().unwrap().len() > 2 * endpoints, "{endpoints}");
    // A file that promises more of an MCP tool is held against it, whatever it calls the tool.
    for path in [&short, &long] {
        let mut better = read(path);
        let of = better["arms"]["published"]["endpoints"].as_object_mut().unwrap();
        let tool = of.iter_mut().find(|(name, _)| name.starts_with("mcp__")).unwrap().1;
        tool[1] = json!(0);
        std::fs::write(path, better.to_string()).unwrap();
        assert_eq!(home.run(&["replay", "--baseline", path]).exit, Exit::Gate, "{path}");
    }
}

#[test]
fn the_lake_holds_the_words_that_the_readme_lists() {
    let (home, words) = planted();
    run(&home, &["replay", "--policy", "all", "-q"]);
    run(&home, &["replay", "-q"]);
    run(&home, &["mine", "projections", "-q"]);
    run(&home, &["cost", "--by", "project,branch,session", "-q"]);
    let allowed = [&PROGRAMS[..], &["server", "argument", "key of an answer"]].concat();
    assert_only(&words.found(&all_bytes(&home.lake())), &allowed, &["the lake"]);
}

#[test]
fn nothing_of_a_log_is_in_what_is_shared_with_a_team() {
    let (home, words) = planted();
    let rules =
        crate::base::data::Data::default().text("fleet.toml").unwrap().replace("weeks_max = 8", "weeks_max = 80");
    home.write("rules/fleet.toml", rules);
    let path = |name: &str| home.path(name).to_string_lossy().into_owned();
    let (team, rules) = (path("team"), path("rules"));
    let shown = run(&home, &["share", "--what-if", "--show", "--format", "csv", "--rules-dir", &rules]);
    assert!(shown.lines().count() > 40, "{shown}");
    assert_only(&words.found(shown.as_bytes()), &[], &["what is shown"]);
    let shown = run(&home, &["share", "--rows", "--show", "--format", "csv", "--rules-dir", &rules]);
    assert!(shown.lines().count() > 100, "{shown}");
    assert_only(&words.found(shown.as_bytes()), &[], &["what is shown of rows"]);
    run(&home, &["share", "--what-if", "--rows", "--to", &team, "--rules-dir", &rules]);
    let bytes = all_bytes(&home.path("team"));
    assert!(bytes.len() > 1_000);
    assert_only(&words.found(&bytes), &[], &["what leaves"]);
    let place = std::fs::read_dir(home.path("team")).unwrap().next().unwrap().unwrap().file_name();
    assert_only(&words.found(place.as_encoded_bytes()), &[], &["the name of the directory"]);
}
