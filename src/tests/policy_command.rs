//! `devboy replay --policy` from the outside: what it answers, what it refuses, and that every road gives the same bytes.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::harness::{Home, all_bytes};
use super::log_builder::{Record, assistant, boundary, compact_summary, user};
use crate::base::data::fitting;
use crate::report::table::TableFormat;
use crate::shell::arguments::Exit;
use crate::whatif::chosen::{Policy, PolicyConfigs};
use crate::whatif::compaction::params::AS_CLIENT;
use crate::whatif::prompt_cache::READ_ONLY_ALONE;
use crate::whatif::report::{PolicyReport, headline};
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::figures::{Outcome, RunBill, Sides, UnloggedCalls};

const POLICIES: [&str; 7] =
    ["prompt-cache", "compaction", "history-trim", "pipeline", "tool-filter", "pick-tools", "arg-check"];
/// Tokens that stand before the first message.
const STATIC: u64 = 18_000;
/// Compactions of contexts as small as those of the tests.
const SMALL_WINDOW: [&str; 7] = [
    "window=45000",
    "reserve_output=5000",
    "buffer=5000",
    "min_turns_between=2",
    "tail_keep_tokens=4000",
    "summary_tokens=500",
    "reattach_tokens=1000",
];
/// Trimming that has something to do there.
const SHORT_HISTORY: [&str; 2] = ["keep_recent_exchanges=2", "max_history_tokens=8000"];

/// A main thread whose contexts grow as its blocks do: a request reads what was cached and writes what came in since.
struct Talk {
    session: &'static str,
    model: &'static str,
    text: String,
    second: u32,
    number: u32,
    cached: u64,
    grown: u64,
    parent: Option<String>,
    has_usage: bool,
}

impl Talk {
    fn new(session: &'static str, second: u32) -> Self {
        let model = "claude-opus-4-5-20251101";
        Self {
            session,
            model,
            text: String::new(),
            second,
            number: 0,
            cached: 0,
            grown: STATIC,
            parent: None,
            has_usage: true,
        }
    }

    fn push(&mut self, name: &str, record: Record, chars: usize) {
        let uuid = format!("{name}-{}-{}", self.session, self.number);
        let record = record.session(self.session).link(&uuid, self.parent.as_deref()).at(self.second);
        self.text += &record.line();
        self.parent = Some(uuid);
        self.grown += chars as u64 / 3 + 40;
        self.second += 2;
    }

    fn human(&mut self, text: &str) {
        self.push("human", user("", text), text.len());
    }

    /// A request that reads what is cached, writes what came in since, and is answered with these blocks.
    fn request(&mut self, blocks: &[Value]) {
        self.number += 1;
        let (read, written) = (self.cached, self.grown);
        let usage = json!({
            "input_tokens": 5, "output_tokens": 40,
            "cache_read_input_tokens": read, "cache_creation_input_tokens": written,
            "cache_creation": { "ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": written },
        });
        (self.cached, self.grown) = (read + written, 0);
        let message = format!("msg-{}-{}", self.session, self.number);
        let usage = if self.has_usage { usage } else { Value::Null };
        let record = assistant(&message, blocks).message("usage", usage).message("model", self.model);
        let chars = blocks.iter().map(|block| block.to_string().len()).sum();
        self.push("asked", record, chars);
    }

    fn calls(&mut self, tool: &str, input: Value, answer: &str) {
        let id = format!("toolu-{}-{}", self.session, self.number + 1);
        self.request(&[json!({ "type": "tool_use", "id": id, "name": tool, "input": input })]);
        let block = json!({ "type": "tool_result", "tool_use_id": id, "content": answer });
        self.push("answer", user("", vec![block]), answer.len());
    }

    /// A file is read, the file of the turn before is edited, sometimes the weather is looked up.
    fn turn(&mut self, turn: usize) {
        let file = |turn: usize| format!("/home/user/lantern/src/part_{turn}.rs");
        let line = |turn: usize, n: usize| format!("    let secretname_{turn}_{n} = secret_value(\"{turn}.{n}\");\n");
        self.human(&format!("Please look at part {turn} and mend the secretprompt weather report for Lisbon"));
        let body: String = (0..90).map(|n| line(turn, n)).collect();
        self.calls("Read", json!({ "file_path": file(turn) }), &body);
        if turn > 0 {
            let input = json!({
                "file_path": file(turn - 1), "old_string": line(turn - 1, turn), "new_string": "    secretnew();\n",
            });
            self.calls("Edit", input, "The file has been updated.");
        }
        if turn % 3 == 2 {
            self.calls("mcp__weather__get_forecast", json!({ "city": "Lisbon" }), "secretsunny all week");
        }
        self.request(&[
            json!({ "type": "text", "text": "Done with this secretanswer part, the next one may follow." }),
        ]);
        // Every second pause outlives five minutes.
        self.second += if turn.is_multiple_of(2) { 400 } else { 60 };
    }

    fn turns(mut self, turns: usize) -> String {
        (0..turns).for_each(|turn| self.turn(turn));
        self.text
    }
}

/// Three sessions of two projects; contexts of the first reach 50,000 tokens.
fn home() -> Home {
    let home = Home::new();
    home.write(".claude/projects/-home-user-lantern/one.jsonl", Talk::new("s-one", 0).turns(14));
    home.write(".claude/projects/-home-user-lantern/two.jsonl", Talk::new("s-two", 20_000).turns(5));
    home.write(".claude/projects/-home-user-orchard/three.jsonl", Talk::new("s-three", 40_000).turns(8));
    home
}

fn words<'a>(policy: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["replay", "--policy", policy], more].concat()
}

fn set<'a>(settings: &[&'a str]) -> Vec<&'a str> {
    settings.iter().flat_map(|setting| ["--set", setting]).collect()
}

/// The reports of all policies of a run, by name.
fn reports(home: &Home, policy: &str, more: &[&str]) -> BTreeMap<String, Value> {
    let document = home.json(&words(policy, more));
    let reports = document["policies"].as_array().unwrap().iter();
    reports.map(|report| (report["policy"].as_str().unwrap().to_owned(), report.clone())).collect()
}

fn report(home: &Home, policy: &str, more: &[&str]) -> Value {
    let mut reports = reports(home, policy, more);
    assert_eq!(reports.len(), 1);
    reports.pop_first().unwrap().1
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for letter in line.lines().next().unwrap_or_default().chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            _ => cells.last_mut().unwrap().push(letter),
        }
    }
    cells
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no count: {value}"))
}

fn prompt(bill: &Value) -> u64 {
    ["read", "write_5m", "write_1h", "uncached"].iter().map(|field| number(&bill[field])).sum()
}

/// A catalog of every tool that the talks use and three that they do not.
fn catalog(home: &Home) -> String {
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let tool = |name: &str, description: &str, properties: Value| json!({ "name": name, "description": description, "input_schema": object(properties) });
    let text = json!({ "type": "string" });
    let long = "Reserved for later and never asked for. ".repeat(60);
    let tools = json!([
        tool("Read", "Read a file of the project", json!({ "file_path": text })),
        tool("Edit", "Change text in a file", json!({ "file_path": text, "old_string": text, "new_string": text })),
        tool("mcp__weather__get_forecast", "Weather forecast of a city", json!({ "city": text })),
        tool("Reserve", &long, json!({ "name": text })),
        tool("Reserve2", &long, json!({ "name": text })),
        tool("Reserve3", &long, json!({ "name": text })),
    ]);
    home.write("catalog.json", tools.to_string()).to_str().unwrap().to_owned()
}

fn fails(home: &Home, arguments: &[&str], exit: Exit, told: &[&str]) {
    let outcome = home.run(arguments);
    assert_eq!(outcome.exit, exit, "{arguments:?}: {}{}", outcome.out, outcome.err);
    assert!(outcome.out.is_empty(), "{arguments:?}: {}", outcome.out);
    for told in told {
        assert!(outcome.err.contains(told), "{arguments:?} says nothing of {told:?}: {}", outcome.err);
    }
}

/// The rows of `--policy all`.
const ROWS: [&str; 10] = [
    "prompt-cache ttl=5m",
    "prompt-cache ttl=1h",
    "prompt-cache, tools 1h, rest 5m",
    "compaction",
    "compaction tier=micro",
    "history-trim",
    "history-trim, cuts that stick",
    "tool-filter",
    "pick-tools",
    "arg-check",
];

#[test]
fn every_policy_answers_on_its_own_and_in_one_table() {
    let home = home();
    for policy in POLICIES {
        let outcome = home.run(&words(policy, &[]));
        assert_eq!(outcome.exit, Exit::Done, "{policy}: {}", outcome.err);
        assert!(outcome.out.starts_with(&format!("{policy}: ")), "{policy}: {}", outcome.out);
    }
    let all = home.run(&words("all", &["--all"]));
    assert_eq!(all.exit, Exit::Done, "{}", all.err);
    for row in ROWS {
        assert!(all.out.contains(&format!("\n{row}: ")), "{row} has a headline: {}", all.out);
    }
    let csv = home.run(&words("all", &["--format", "csv"])).out;
    let mut names: Vec<String> = csv.lines().skip(1).map(|line| cells(line).swap_remove(0)).collect();
    names.sort_unstable();
    let mut rows = ROWS;
    rows.sort_unstable();
    assert_eq!(names, rows);
    let named: Vec<String> = reports(&home, "all", &[]).into_keys().collect();
    assert_eq!(named, rows);
}

#[test]
fn the_table_is_sorted_by_cost_and_what_claims_nothing_comes_last() {
    let home = home();
    let catalog = catalog(&home);
    let settings = set(&SMALL_WINDOW);
    let more = [&["--tool-catalog", &catalog, "--format", "csv"], &settings[..]].concat();
    let csv = home.run(&words("all", &more)).out;
    let part = cells(&csv).iter().position(|column| column == "part_by").unwrap();
    let rows: Vec<Vec<String>> = csv.lines().skip(1).map(cells).filter(|row| row[part].is_empty()).collect();
    let cost = |row: &Vec<String>| row[5].parse::<f64>().ok();
    let costs: Vec<Option<f64>> = rows.iter().map(cost).collect();
    let told: Vec<f64> = costs.iter().copied().flatten().collect();
    assert!(told.len() >= 4 && told.is_sorted(), "{csv}");
    assert!(told[0] < 0.0, "something is cheaper: {csv}");
    assert!(costs.iter().position(Option::is_none).is_none_or(|at| at == told.len()), "{csv}");
    assert!(rows.iter().filter(|row| cost(row).is_none()).all(|row| row.last().unwrap() == "not estimated"), "{csv}");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_do() {
    let home = home();
    for (policy, more, told) in [
        ("economy", &[][..], &["no policy `economy`", "prompt-cache", "arg-check", "all"][..]),
        ("compaction+economy", &[], &["no policy `economy`"]),
        ("", &[], &["no policy ``"]),
        ("compaction+compaction", &[], &["compaction twice"]),
        ("tool-filter+pick-tools", &[], &["only one can", "leave one of them out"]),
        ("compaction+arg-check", &[], &["stacks with nothing", "run it alone"]),
        ("compaction", &["--compare", "economy"], &["no policy `economy`"]),
        ("compaction", &["--set", "windov=1"], &["windov", "its parameters: ", "tail_keep_tokens", "micro.min_bytes"]),
        ("compaction", &["--set", "compaction.windov=1"], &["windov", "its parameters: "]),
        ("compaction", &["--set", "micro.min_byte=1"], &["min_byte"]),
        ("compaction", &["--set", "window"], &["`window` sets nothing", "KEY=VALUE"]),
        ("compaction", &["--set", "=1"], &["names no parameter"]),
        ("compaction", &["--set", "compaction=1"], &["names a policy, but no parameter"]),
        ("compaction", &["--set", "window=-1"], &["window", "-1"]),
        ("compaction", &["--set", "window=large"], &["window", "large"]),
        ("compaction", &["--set", "window=1000"], &["window", "reserve_output"]),
        ("compaction", &["--set", "window=33000"], &["reserve_output 32000 (the most that was observed)", "33000"]),
        ("compaction", &["--set", "mode=pct", "--set", "compact_at_pct=0.0000001"], &["compact_at_pct", "no token"]),
        ("compaction", &["--set", "mode=guess"], &["guess", "claude-code", "pct"]),
        ("compaction", &["--tier", "nano"], &["nano", "micro"]),
        ("history-trim", &["--set", "cut=middle"], &["middle", "head_tail"]),
        ("tool-filter", &["--set", "predictor=stars"], &["stars"]),
        ("pick-tools", &["--set", "overlap=dice"], &["dice", "jaccard"]),
        ("arg-check", &["--set", "no_schema_mode=maybe"], &["maybe", "human_approval"]),
        ("prompt-cache", &["--set", "ttl.foo=1"], &["--set ttl.foo=1", "ttl"]),
        ("prompt-cache", &["--set", "report.workspace.x.y=1"], &["--set report.workspace.x.y=1", "workspace"]),
        ("compaction", &["--set", "micro.target_tokens.x=2"], &["--set micro.target_tokens.x=2", "target_tokens"]),
        ("prompt-cache", &["--ttl", "7m"], &["7m", "5m or 1h"]),
        ("prompt-cache", &["--set", "ttl=5m", "--ttl", "1h"], &["--set ttl=5m and --ttl are both given"]),
        ("compaction", &["--set", "compaction.tier=micro", "--tier", "auto"], &["--tier are both given"]),
        ("prompt-cache", &["--set", "layout=mine"], &["mine", "agent-runtime"]),
        ("prompt-cache", &["--set", "slack_s=-4"], &["slack_s", "-4"]),
        ("compaction", &["--ttl", "7m"], &["7m", "5m or 1h"]),
        ("all", &["--set", "min_score=0.1"], &["tool-filter.min_score", "pick-tools.min_score", "name the policy"]),
        ("all", &["--set", "colour=1"], &["none of", "colour"]),
        ("compaction", &["--estimator", "guess"], &["no estimator `guess`", "anchored", "chars4"]),
        ("compaction", &["--sweep", "window"], &["sweeps nothing", "KEY=A,B"]),
        ("compaction", &["--sweep", "window="], &["names no value"]),
        ("compaction", &["--sweep", "windov=1,2"], &["windov"]),
        ("compaction", &["--sweep", "window=100000,huge"], &["huge"]),
        ("all", &["--sweep", "compaction.window=100000"], &["one policy"]),
        ("compaction", &["--compare", "history-trim", "--sweep", "window=1"], &["one policy"]),
        ("arg-check", &["--sweep", "coerce=true,false"], &["nothing to sweep"]),
        (
            "compaction",
            &["--since", "2026-02-01", "--until", "2026-01-01"],
            &["--since 2026-02-01 is later than --until 2026-01-01", "swap them"],
        ),
        ("tool-filter", &["--tool-catalog", "server=weather"], &["server=NAME:FILE"]),
    ] {
        fails(&home, &words(policy, more), Exit::Usage, told);
    }
    for alone in [&["--set", "window=1"][..], &["--per-session"], &["--tool-catalog", "x"], &["--from-telemetry"]] {
        fails(&home, &[&["replay"], alone].concat(), Exit::Usage, &["--policy"]);
    }
    let odd = ["--policy", "compaction", "--against", "x.toml"];
    fails(&home, &[&["replay"], &odd[..]].concat(), Exit::Usage, &["cannot be used with"]);
    let cells = (1..=21).map(|n| (100_000 + n).to_string()).collect::<Vec<_>>().join(",");
    let grid = [format!("window={cells}"), format!("buffer={cells}")];
    let more = ["--sweep", &grid[0], "--sweep", &grid[1]];
    fails(&home, &words("compaction", &more), Exit::Usage, &["441 cells are more than 400", "fewer"]);
}

#[test]
fn a_setting_for_a_policy_that_was_not_asked_for_is_no_silent_nothing() {
    let home = home();
    let more = ["--set", "history-trim.sticky=true"];
    fails(&home, &words("compaction", &more), Exit::Usage, &["history-trim", "as the policy", "--compare"]);
    let told = home.run(&["what-if", "prompt-cache", "--tier", "micro"]).err;
    assert!(told.contains("compaction was not asked for") && !told.contains("--policy"), "{told}");
    // The cache prices every policy; in a file every policy may have its table.
    assert_eq!(home.run(&words("compaction", &["--set", "prompt-cache.layout=none"])).exit, Exit::Done);
    let file = home.write("parameters.toml", "[history-trim]\nsticky = true\n");
    assert_eq!(home.run(&words("compaction", &["--config", file.to_str().unwrap()])).exit, Exit::Done);
}

#[test]
fn files_that_cannot_be_used_are_named_with_the_place() {
    let home = home();
    let write = |name: &str, text: &str| home.write(name, text).to_str().unwrap().to_owned();
    let config = |text: &str| write("parameters.toml", text);
    let there = "hint: name a file that is there";
    fails(&home, &words("compaction", &["--config", "no/such.toml"]), Exit::Failed, &["no/such.toml", there]);
    let bad = config("[compaction]\nwindow =\n");
    fails(&home, &words("compaction", &["--config", &bad]), Exit::Failed, &["parameters.toml:2"]);
    let list = config("[[compaction]]\nwindow = 1\n");
    fails(&home, &words("compaction", &["--config", &list]), Exit::Usage, &["parameters.toml", "[[compaction]]"]);
    let unknown = config("[compaction]\n\nwindov = 90000\n");
    fails(&home, &words("compaction", &["--config", &unknown]), Exit::Usage, &["windov", "parameters.toml:3"]);
    let nobody = config("[economy]\nwindow = 90000\n");
    fails(&home, &words("compaction", &["--config", &nobody]), Exit::Usage, &["economy", "parameters.toml:2"]);
    let value = config("[compaction]\nwindow = \"large\"\n");
    fails(&home, &words("compaction", &["--config", &value]), Exit::Usage, &["large", "parameters.toml:2"]);
    let missing = ["--tool-catalog", "no/such.json"];
    fails(&home, &words("tool-filter", &missing), Exit::Failed, &["no/such.json"]);
    let predictor = ["--set", "predictor=replay:no/such.jsonl"];
    fails(&home, &words("tool-filter", &predictor), Exit::Failed, &["no/such.jsonl", there]);
    let into = ["--per-request", "/dev/null/requests.jsonl"];
    assert_eq!(home.run(&words("compaction", &into)).exit, Exit::Failed);
}

#[test]
fn catalogs_of_no_known_shape_say_what_was_found_and_what_is_known() {
    let home = home();
    for (text, found) in [
        ("{\"a\": 1}", "found an object with a"),
        ("[1, 2]", "entry 1 of the catalog: found a number"),
        ("[]", "a catalog without tools"),
        ("tools: []", "catalog.json:1:"),
        ("[{\"description\": \"x\"}]", "no name"),
        ("[{\"name\": \"x\", \"input_schema\": 7}]", "no schema"),
    ] {
        let file = home.write("catalog.json", text).to_str().unwrap().to_owned();
        for policy in ["tool-filter", "pick-tools", "arg-check", "all"] {
            fails(
                &home,
                &words(policy, &["--tool-catalog", &file]),
                Exit::Failed,
                &[found, "known shapes: ", "catalog.json"],
            );
        }
    }
}

#[test]
fn references_that_run_in_circles_end_and_remote_ones_are_refused() {
    let home = home();
    let classes = |schema: Value| {
        let tools = json!({ "tools": [{ "name": "Read", "description": "", "inputSchema": schema }] });
        let file = home.write("catalog.json", tools.to_string()).to_str().unwrap().to_owned();
        let report = report(&home, "arg-check", &["--tool-catalog", &file]);
        report["details"]["arg-check"]["arg_check"]["tools"]["Read"].clone()
    };
    let reads = 14 + 5 + 8;
    let path = |to: &str| json!({ "type": "object", "properties": { "file_path": { "$ref": to } } });
    let with = |mut schema: Value, defs: Value| {
        schema["$defs"] = defs;
        schema
    };
    let ring = with(path("#/$defs/a"), json!({ "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } }));
    assert_eq!(classes(ring).as_object().unwrap().values().map(number).sum::<u64>(), reads);
    let tree =
        json!({ "type": "object", "properties": { "file_path": { "type": "string" }, "child": { "$ref": "#" } } });
    assert_eq!(classes(tree), json!({ "valid": reads }));
    assert_eq!(classes(path("https://example.org/path.json")), json!({ "remote_ref_refused": reads }));
    let tools = json!([{ "name": "Read", "input_schema": { "type": "nonsense" } }]);
    let file = home.write("catalog.json", tools.to_string()).to_str().unwrap().to_owned();
    let more = ["--tool-catalog", &file[..]];
    fails(&home, &words("arg-check", &more), Exit::Failed, &["tool Read", "no JSON Schema", "take the tool out"]);
}

#[test]
fn prices_of_the_user_are_checked_and_used() {
    let home = home();
    let shipped = include_str!("../../rules/prices.toml");
    let rules = home.path("my-rules").to_str().unwrap().to_owned();
    let more = ["--rules-dir", &rules[..]];
    let row = "models = [\"claude-opus-4.5\"]\ninput = 5\nwrite_5m = 6.25\nwrite_1h = 10\nread = 0.5\noutput = 25\n";
    let overlapping = format!("{shipped}\n[[price]]\nfrom = 2026-01-01\n{row}source = \"x\"\n");
    home.write("my-rules/prices.toml", &overlapping);
    let lines = overlapping[..overlapping.rfind("[[price]]").unwrap()].lines().count() + 1;
    let place = format!("prices.toml:{lines}");
    fails(&home, &words("prompt-cache", &more), Exit::Failed, &["claude-opus-4.5", &place]);
    let costlier =
        "models = [\"claude-opus-4.5\"]\ninput = 10\nwrite_5m = 12.5\nwrite_1h = 20\nread = 1\noutput = 50\n";
    home.write("my-rules/prices.toml", format!("[[price]]\n{costlier}source = \"x\"\n"));
    let (usual, other) = (report(&home, "prompt-cache", &[]), report(&home, "prompt-cache", &more));
    assert_eq!(usual["billed"]["iet"], other["billed"]["iet"]);
    let dollars = |report: &Value| report["billed"]["usd"].as_f64().unwrap();
    assert!((dollars(&other) - 2.0 * dollars(&usual)).abs() < 1e-9);
}

#[test]
fn a_model_without_a_price_has_tokens_and_no_dollars_beside_those_of_the_others_and_strict_pricing_fails() {
    let home = home();
    let mut talk = Talk::new("s-four", 60_000);
    talk.model = "aurora-7-preview";
    home.write(".claude/projects/-home-user-orchard/four.jsonl", talk.turns(2));
    let hints = ["no price is known for aurora-7-preview", "prices.toml", "--strict-pricing"];
    fails(&home, &words("all", &["--strict-pricing"]), Exit::Failed, &hints);
    let known = report(&home, "compaction", &["--strict-pricing", "--project", "lantern"]);
    assert!(known["billed"]["usd"].as_f64().unwrap() > 0.0);
    let report = report(&home, "compaction", &[]);
    assert!(report["billed"]["usd"].as_f64().unwrap() > known["billed"]["usd"].as_f64().unwrap());
    assert!(number(&report["billed"]["unpriced_tokens"]) > 0 && report["billed"]["iet"].as_f64().unwrap() > 0.0);
    assert_eq!(report["by"]["model"]["aurora-7-preview"]["usd"], Value::Null);
    assert_eq!(report["unpriced"]["by_model"]["aurora-7-preview"]["tokens"], report["billed"]["unpriced_tokens"]);
    assert!(report["notes"].to_string().contains("of aurora-7-preview: their tokens"), "{}", report["notes"]);
    let out = home.run(&words("compaction", &set(&SMALL_WINDOW))).out;
    let totals: Vec<&str> =
        out.lines().filter(|line| line.contains("than the log") || line.contains("in all")).collect();
    assert_eq!(totals.len(), 2, "{out}");
    assert!(totals.iter().all(|line| line.contains('$')), "{out}");
    let beside = out.lines().find(|line| line.contains("no known price")).unwrap();
    assert!(beside.contains("requests to aurora-7-preview"), "{beside}");
    // Side by side rows say it as well, once.
    for more in [&["all"][..], &["compaction", "--sweep", "window=46000,50000"]] {
        let out = home.run(&[&["what-if"], more].concat()).out;
        let beside: Vec<&str> =
            out.lines().filter(|line| line.starts_with("no known price, left out of dollars")).collect();
        assert!(beside.len() == 1 && beside[0].contains("requests to aurora-7-preview"), "{out}");
    }
}

/// What grows is paid and what shrinks is saved, whatever it is of.
#[test]
fn the_direction_of_a_change_fits_its_heading() {
    let spent = |write_5m: u64, uncached: u64| Spent { write_5m, uncached, ..Spent::default() };
    let bill = |spent: Spent, units: u128| RunBill { spent, cost: Cost { units, ..Cost::default() } };
    let told = |tokens_removed: i128, extra: BTreeMap<&'static str, UnloggedCalls>| {
        let (baseline, policy) = (bill(spent(900, 100), 200_000), bill(spent(700, 150), 180_000));
        let total = Sides { requests: 9, baseline, policy, ..Sides::default() };
        let outcome = Some(Outcome { total, tokens_removed, extra, ..Outcome::default() });
        let mut out = Vec::new();
        headline(&mut out, &PolicyReport { outcome, ..PolicyReport::default() }, TableFormat::Table).unwrap();
        let out = String::from_utf8(out).unwrap();
        ["  saved: ", "  paid: "]
            .map(|heading| out.lines().find_map(|line| line.strip_prefix(heading)).unwrap().to_owned())
    };
    assert_eq!(
        told(-50, BTreeMap::new()),
        [
            "200 fewer tokens written to the cache",
            "no calls besides the log's; 50 more tokens in contexts (5.0 % of all sent), 50 more tokens paid in full"
        ]
    );
    assert_eq!(
        told(50, BTreeMap::new()),
        [
            "50 fewer tokens in contexts (5.0 % of all sent), 200 fewer tokens written to the cache",
            "no calls besides the log's; 50 more tokens paid in full"
        ]
    );
    let calls = |calls: u64| UnloggedCalls { calls, ..UnloggedCalls::default() };
    let [saved, paid] = told(-50, BTreeMap::from([("keep_alive", calls(1_030)), ("tool_retry", calls(1))]));
    assert_eq!(saved, "nothing");
    assert!(paid.starts_with("1,030 calls to keep the cache alive ("), "{paid}");
    assert!(paid.contains("), 1 call to ask again for a tool that was not listed ("), "{paid}");
    assert!(paid.ends_with("; 50 more tokens in contexts (5.0 % of all sent)"), "{paid}");
}

#[test]
fn a_file_of_knobs_sets_what_the_command_line_would_which_has_the_last_word() {
    let home = home();
    let text = "[compaction]\nwindow = 45000\nreserve_output = 5000\nbuffer = 5000\nmin_turns_between = 2\ntail_keep_tokens = 4000\nsummary_tokens = 500\nreattach_tokens = 1000\n\
                [prompt-cache]\nttl = \"5m\"\n[tool-filter]\nalways = [\"Read\"]\n";
    let file = home.write("parameters.toml", text).to_str().unwrap().to_owned();
    let by_file = report(&home, "compaction", &["--config", &file]);
    let mut settings = set(&SMALL_WINDOW);
    settings.extend(["--set", "prompt-cache.ttl=5m"]);
    let by_words = report(&home, "compaction", &settings);
    assert_eq!(by_file, by_words);
    assert!(number(&by_file["extra_costs"]["calls"]) > 0, "the parameters do something");
    let inline = "window = 45000\nreserve_output = 5000\nbuffer = 5000\nmin_turns_between = 2\nreattach_tokens = 1000\n\
                  micro = { min_bytes = 99 }\n";
    let inline = home.write("inline.toml", inline).to_str().unwrap().to_owned();
    let report = report(&home, "compaction", &["--config", &inline, "--set", "buffer=6000"]);
    let params = &report["params"]["compaction"];
    assert_eq!((&params["window"], &params["buffer"]), (&json!(45_000), &json!(6_000)));
    assert_eq!((&params["micro"]["min_bytes"], &params["micro"]["protect_last"]), (&json!(99), &json!(1)));
}

/// The rule of `what-if compaction` is not the client's, and says so until it is set as the client has it.
#[test]
fn what_the_client_does_otherwise_is_told_with_the_flags_that_do_it() {
    let home = home();
    let told = |more: &[&str]| home.run(&[&["what-if", "compaction"], more].concat()).out.replace("\n  ", " ");
    let plain = told(&[]);
    assert!(plain.contains("unlike Claude Code, this rule keeps 20,000 tokens"), "{plain}");
    assert!(plain.contains(&AS_CLIENT.join(" ")), "{plain}");
    let as_it_does = told(&AS_CLIENT);
    assert!(!as_it_does.contains("unlike Claude Code"), "{as_it_does}");
}

#[test]
fn settings_are_understood_with_and_without_their_policy_and_short_flags_are_settings() {
    let home = home();
    let same = |policy: &str, roads: &[&[&str]]| {
        let first = report(&home, policy, roads[0]);
        roads[1..].iter().for_each(|road| assert_eq!(first, report(&home, policy, road), "{policy} {road:?}"));
        first
    };
    same(
        "compaction",
        &[&["--set", "window=60000"], &["--set", "compaction.window=60000"], &["--set", "window = 60000"]],
    );
    let ttl = [&["--ttl", "5m"][..], &["--set", "ttl=5m"], &["--set", "prompt-cache.ttl=\"5m\""]];
    let shorter = same("prompt-cache", &ttl);
    assert_eq!(shorter["fidelity"]["ttl_source"], "5m");
    same("compaction", &[&["--ttl", "5m"], &["--set", "prompt-cache.ttl=5m"]]);
    let micro = same("compaction", &[&["--tier", "micro"], &["--set", "tier=micro"]]);
    assert_eq!(micro["params"]["compaction"]["tier"], "micro");
    same("pick-tools", &[&["--set", "min_score=1"], &["--set", "min_score=1.0"]]);
}

#[test]
fn a_longer_life_reads_more_and_another_lifetime_is_held_against_the_one_that_was() {
    let home = home();
    let read = |ttl: &str| {
        let report = report(&home, "prompt-cache", &["--ttl", ttl]);
        assert_eq!(report["baseline"]["write_5m"], 0, "the talks wrote for an hour");
        (number(&report["simulated"]["read"]), report)
    };
    let ((short, report), (mixed, _), (long, _)) = (read("5m"), read("mixed:static=1h,tail=5m"), read("1h"));
    assert!(short < mixed && mixed < long, "{short} {mixed} {long}");
    assert_eq!(number(&report["simulated"]["write_1h"]), 0);
    assert!(number(&report["simulated"]["write_5m"]) > number(&report["baseline"]["write_1h"]));
    assert_eq!(prompt(&report["simulated"]), prompt(&report["baseline"]));
}

/// The cache of the log is kept alive, too, so that nothing comes of it for another policy.
#[test]
fn a_cache_that_is_kept_alive_is_no_cost_of_another_policy() {
    let home = home();
    let idle = ["history-trim.history_trimming=false", "prompt-cache.keepalive_s=100", "prompt-cache.slack_s=0"];
    let report = report(&home, "history-trim", &set(&idle));
    assert!(report["extra_costs"].to_string().contains("keep_alive"), "{}", report["extra_costs"]);
    assert_eq!(report["baseline"], report["simulated"]);
}

#[test]
fn each_estimator_is_named_and_changes_no_bill() {
    let home = home();
    let settings = set(&SHORT_HISTORY);
    let run = |name: &str| report(&home, "history-trim", &[&["--estimator", name], &settings[..]].concat());
    let anchored = run("anchored");
    assert_eq!(anchored, report(&home, "history-trim", &settings), "the default");
    assert_eq!(prompt(&anchored["baseline"]), prompt(&anchored["billed"]));
    let mut removed = vec![anchored["delta"]["tokens_removed"].as_i64().unwrap()];
    for name in ["fitted", "cl100k", "o200k", "chars4"] {
        let report = run(name);
        assert_eq!(report["fidelity"]["estimator"], name);
        assert_eq!(report["billed"], anchored["billed"], "{name}");
        // Only anchored sizes add up to what was sent.
        let (sent, estimated) = (prompt(&report["billed"]), prompt(&report["baseline"]));
        assert!(estimated != sent && estimated.abs_diff(sent) < sent / 5, "{name}: {estimated} of {sent}");
        removed.push(report["delta"]["tokens_removed"].as_i64().unwrap());
    }
    assert!(removed.iter().all(|&tokens| tokens > 0), "{removed:?}");
    removed.dedup();
    assert!(removed.len() > 2, "sizes differ: {removed:?}");
}

#[test]
fn a_sweep_is_a_grid_and_each_cell_is_the_run_of_its_settings() {
    let home = home();
    let is_swept = |setting: &&&str| ["window=", "tail_keep_tokens="].iter().any(|key| setting.starts_with(key));
    let fixed: Vec<&str> = SMALL_WINDOW.iter().filter(|setting| !is_swept(setting)).copied().collect();
    let settings = set(&fixed);
    let grid = ["--sweep", "window=45000,50000", "--sweep", "tail_keep_tokens=4000,9000"];
    let document = home.json(&words("compaction", &[&grid[..], &settings].concat()));
    let cells = document["cells"].as_array().unwrap();
    let mut seen = Vec::new();
    for cell in cells {
        let value = |key: &str| format!("{key}={}", cell["values"][key].as_str().unwrap());
        let (window, tail) = (value("window"), value("tail_keep_tokens"));
        let more = [&settings[..], &["--set", &window, "--set", &tail]].concat();
        let single = report(&home, "compaction", &more);
        for field in ["policy", "params", "baseline", "simulated", "delta", "extra_costs", "by", "breakage"] {
            assert_eq!(cell["policy"][field], single[field], "{window} {tail} {field}");
        }
        seen.push((window, tail));
    }
    let pair = |window: &str, tail: &str| (format!("window={window}"), format!("tail_keep_tokens={tail}"));
    let grid_order = [("45000", "4000"), ("45000", "9000"), ("50000", "4000"), ("50000", "9000")];
    assert_eq!(seen, grid_order.map(|(window, tail)| pair(window, tail)));
    let lists = ["--sweep", "always=[Read],[Read,Edit]", "--format", "csv"];
    let csv = home.run(&words("tool-filter", &lists)).out;
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert!(csv.starts_with("always,"), "{csv}");
    let named = home.json(&words("compaction+history-trim", &["--sweep", "compaction.window=50000,60000"]));
    assert_eq!(named["cells"][1]["policy"]["params"]["compaction"]["window"], 60_000);
}

#[test]
fn sessions_add_up_to_the_whole() {
    let home = home();
    let settings = set(&SMALL_WINDOW);
    let more = [&settings[..], &["--per-session", "--format", "csv"]].concat();
    let csv = home.run(&words("compaction", &more)).out;
    let report = report(&home, "compaction", &settings);
    let column = |index: usize| -> f64 {
        let cells = csv.lines().skip(1).map(|line| line.split(',').nth(index).unwrap().parse::<f64>().unwrap());
        cells.sum()
    };
    assert_eq!(csv.lines().count(), 4, "{csv}");
    assert_eq!(column(2) as u64, number(&report["input"]["requests"]));
    for (index, side) in [(3, "baseline"), (4, "simulated")] {
        let whole = report[side]["iet"].as_f64().unwrap();
        assert!((column(index) - whole).abs() <= 3.0, "each row is rounded: {} {whole}", column(index));
    }
    let spread = &report["distribution"]["per_session"];
    assert_eq!(spread["sessions"], 3);
    let order: Vec<f64> =
        ["best", "p5", "p25", "p50", "p75", "p95", "worst"].map(|at| spread[at].as_f64().unwrap()).to_vec();
    assert!(order.is_sorted() && order[0] < 0.0, "{spread}");
    let table = home.run(&words("compaction", &["--per-session"])).out;
    assert!(table.contains("by session"), "{table}");
}

#[test]
fn requests_are_written_for_their_owner_only_and_add_up_to_the_whole() {
    let home = home();
    let file = home.path("requests.jsonl");
    let settings = set(&SMALL_WINDOW);
    let more = [&settings[..], &["--compare", "history-trim", "--per-request", file.to_str().unwrap()]].concat();
    let reports = reports(&home, "compaction", &more);
    let lines = std::fs::read_to_string(&file).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (policy, report) in &reports {
        let of_policy: Vec<&Value> = lines.iter().filter(|line| line["policy"] == policy.as_str()).collect();
        assert_eq!(of_policy.len() as u64, number(&report["input"]["requests"]));
        for field in ["read", "write_5m", "write_1h", "uncached"] {
            let sum: u64 = of_policy.iter().map(|line| number(&line["simulated"][field])).sum();
            assert_eq!(sum, number(&report["simulated"][field]) - summaries(report, field), "{policy} {field}");
            let sum: u64 = of_policy.iter().map(|line| number(&line["baseline"][field])).sum();
            assert_eq!(sum, number(&report["baseline"][field]), "{policy} {field}");
        }
        for line in &of_policy {
            assert!(number(&line["simulated"]["read"]) <= number(&line["shared"]), "{line}");
        }
    }
}

/// Tokens of extra calls: the whole has them, no request of the log does.
fn summaries(report: &Value, field: &str) -> u64 {
    let spent = &report["details"]["compaction"]["compactions"]["summariser"];
    spent.get(field).map_or(0, number)
}

#[test]
fn compared_policies_say_what_each_says_alone_and_each_once() {
    let home = home();
    let settings = ["--set", "compaction.window=60000"];
    let more = [&["--compare", "history-trim,prompt-cache", "--compare", "history-trim"], &settings[..]].concat();
    let together = reports(&home, "compaction", &more);
    assert_eq!(together.len(), 3);
    for (policy, report) in &together {
        let more = if policy == "compaction" { &settings[..] } else { &[] };
        let alone = super::policy_command::report(&home, policy, more);
        for field in
            ["params", "baseline", "simulated", "delta", "breakage", "distribution", "not_estimated", "fidelity"]
        {
            assert_eq!(report[field], alone[field], "{policy} {field}");
        }
    }
}

#[test]
fn formulas_come_with_the_numbers_of_these_logs_if_asked_for() {
    let home = home();
    let catalog = catalog(&home);
    for policy in POLICIES {
        let brought = if ["tool-filter", "pick-tools", "arg-check"].contains(&policy) {
            vec!["--tool-catalog", &catalog[..]]
        } else {
            Vec::new()
        };
        let explaining = [&brought[..], &["--explain"]].concat();
        let (plain, explained) = (home.run(&words(policy, &brought)).out, home.run(&words(policy, &explaining)).out);
        assert!(!plain.contains("how it is computed"), "{policy}");
        let formulas =
            explained.split("\nhow it is computed\n").nth(1).unwrap_or_else(|| panic!("{policy}: {explained}"));
        let formulas = formulas.split("\n\n").next().unwrap();
        assert!(formulas.lines().all(|line| line.starts_with("- ")), "{policy}: {formulas}");
        assert!(formulas.contains(|letter: char| letter.is_ascii_digit()), "{policy}: {formulas}");
    }
}

#[test]
fn the_json_report_has_one_shape_for_all_policies() {
    let home = home();
    let catalog = catalog(&home);
    let document = home.json(&words("all", &["--tool-catalog", &catalog]));
    for field in ["schema_version", "command", "tool_version", "generated_at", "window", "inputs", "data_quality"] {
        assert!(document.get(field).is_some(), "{field}");
    }
    assert_eq!(document["command"], "replay");
    let bill = ["read", "write_5m", "write_1h", "uncached", "iet", "usd", "unpriced_tokens"];
    for report in document["policies"].as_array().unwrap() {
        let policy = report["policy"].as_str().unwrap();
        let has = |place: &str, fields: &[&str]| {
            let at = report.pointer(place).unwrap_or_else(|| panic!("{policy} has no {place}"));
            fields.iter().for_each(|field| assert!(at.get(field).is_some(), "{policy} {place}/{field}"));
        };
        has("/input", &["files", "sessions", "requests", "skipped"]);
        let sources = ["estimator", "anchored_share", "static_prefix_source", "tool_catalog_source", "ttl_source"];
        has("/fidelity", &sources);
        has("/billed", &bill);
        has("", &["params", "details", "formulas", "notes", "not_estimated"]);
        assert_eq!((&report["input"]["files"], &report["input"]["sessions"]), (&json!(3), &json!(3)));
        if policy == "arg-check" {
            assert_eq!(report["delta"], Value::Null, "no zero where nothing is known");
            continue;
        }
        has("/baseline", &bill);
        has("/simulated", &bill);
        has("/baseline_vs_bill", &["wape_read", "exact_share", "bias"]);
        has("/delta", &["tokens_removed", "iet", "iet_pct", "usd"]);
        has("/extra_costs", &["calls", "iet"]);
        let spread = ["p5", "p25", "p50", "p75", "p95", "worst", "best", "worse"];
        has("/distribution/per_session", &spread);
        has("/by", &["model", "ttl_class", "version", "project"]);
        let delta = report["simulated"]["iet"].as_f64().unwrap() - report["baseline"]["iet"].as_f64().unwrap();
        assert!((report["delta"]["iet"].as_f64().unwrap() - delta).abs() < 1e-6, "{policy}");
        for dimension in ["model", "ttl_class", "version", "project"] {
            let groups = report["by"][dimension].as_object().unwrap().values();
            let sum: u64 = groups.map(|group| prompt(&group["simulated"])).sum();
            assert_eq!(sum, prompt(&report["simulated"]), "{policy} {dimension}");
        }
    }
    let filter = document["policies"].as_array().unwrap().iter().find(|report| report["policy"] == "tool-filter");
    assert_eq!(filter.unwrap()["fidelity"]["tool_catalog_source"], "given");
}

#[test]
fn breakage_is_told_by_class_with_rates_and_ids_and_no_text() {
    let home = home();
    let settings = set(&SHORT_HISTORY);
    let report = report(&home, "history-trim", &settings);
    let lost = &report["breakage"]["edit_source_lost"];
    assert!(number(&lost["events"]) > 0, "edits reach back one turn: {}", report["breakage"]);
    let rate = 1_000.0 * number(&lost["events"]) as f64 / number(&report["input"]["requests"]) as f64;
    assert!((lost["per_1k_requests"].as_f64().unwrap() - rate).abs() < 1e-9);
    let examples = lost["examples"].as_array().unwrap();
    assert!(!examples.is_empty() && examples.len() <= 5);
    let out = home.run(&words("history-trim", &settings)).out;
    let [saved, paid, broken] = ["\n  saved: ", "\n  paid: ", "\n  broken: "].map(|word| out.find(word).unwrap());
    assert!(saved < paid && paid < broken, "{out}");
}

#[test]
fn no_word_of_a_log_is_in_any_report_nor_in_the_lake() {
    let home = home();
    let catalog = catalog(&home);
    let file = home.path("requests.jsonl");
    let settings = ["--set", "compaction.window=60000", "--set", "history-trim.keep_recent_exchanges=1"];
    let more = ["--tool-catalog", &catalog, "--explain", "--per-request", file.to_str().unwrap()];
    let more = [&more[..], &settings].concat();
    let mut said = home.run(&words("all", &[&more[..], &["--json"]].concat())).out;
    for policy in POLICIES {
        said += &home.run(&words(policy, &[&more[..4], &["--per-session"]].concat())).out;
    }
    said += &std::fs::read_to_string(&file).unwrap();
    assert!(said.len() > 20_000);
    let lake = all_bytes(&home.lake());
    for word in ["secret", "Lisbon", "part_1", "/home/user", "has been updated"] {
        assert!(!said.contains(word), "{word} is in a report");
        assert!(memchr::memmem::find(&lake, word.as_bytes()).is_none(), "{word} is in the lake");
    }
}

#[test]
fn csv_markdown_and_narrow_terminals_hold_the_same_figures() {
    let home = home();
    let settings = set(&SMALL_WINDOW);
    let report = report(&home, "compaction", &settings);
    let csv = home.run(&words("compaction", &[&settings[..], &["--format", "csv"]].concat())).out;
    let row: BTreeMap<String, String> = cells(&csv).into_iter().zip(cells(csv.lines().nth(1).unwrap())).collect();
    for (column, figure) in [
        ("tokens_removed", &report["delta"]["tokens_removed"]),
        ("extra_calls", &report["extra_costs"]["calls"]),
        ("baseline_iet", &report["baseline"]["iet"]),
        ("policy_iet", &report["simulated"]["iet"]),
        ("iet_pct", &report["delta"]["iet_pct"]),
        ("usd", &report["delta"]["usd"]),
        ("requests", &report["input"]["requests"]),
    ] {
        assert_eq!(row[column].parse::<f64>().ok(), figure.as_f64(), "{column}: no figure is rounded");
    }
    let sessions = home.run(&words("compaction", &["--per-session", "--format", "csv"])).out;
    assert_eq!((sessions.lines().count(), cells(&sessions)[5].as_str()), (4, "iet_pct"), "{sessions}");
    let all = home.run(&words("all", &["--format", "csv"])).out;
    assert!(all.lines().all(|line| cells(line).len() == cells(&csv).len()), "{all}");
    for policy in POLICIES {
        let out = home.run(&words(policy, &["--format", "md"])).out;
        assert!(out.starts_with(&format!("## {policy}\n\n")), "{out}");
        // What the pipeline shortens by tool is told by a replay.
        assert!(!out.contains('│') && (out.contains("\n| ") || policy == "pipeline"), "{policy}: {out}");
        for width in [60, 80] {
            let out = home.out_at_width(&words(policy, &[]), width);
            let boxed = out.lines().filter(|line| line.starts_with(['┌', '│', '╞', '└']));
            let widest = boxed.map(|line| line.chars().count()).max().unwrap_or_default();
            assert!(widest <= width.into(), "{policy} at {width}: {widest}\n{out}");
        }
    }
}

/// Whatever stands first in the table: the answer is a row that is clearly cheaper, or that there is none.
#[test]
fn the_answer_of_all_policies_is_what_their_table_says() {
    let large = super::report_page::home_with_large_contexts(12);
    for (home, settings, expected) in [(home(), vec![], false), (large, set(&["compaction.window=150000"]), true)] {
        let out = home.run(&words("all", &settings)).out;
        let is_cheaper = out.lines().any(|line| line.trim_end_matches(['│', ' ']).ends_with(" cheaper"));
        assert_eq!((is_cheaper, out.contains("None of these is clearly cheaper")), (expected, !expected), "{out}");
        let answer = out.lines().any(|line| line.contains("% cheaper than the log"));
        assert_eq!(answer, expected, "{out}");
    }
}

#[test]
fn threads_lakes_and_the_order_of_files_change_no_byte() {
    let home = home();
    let catalog = catalog(&home);
    let run = |more: &[&str]| {
        let more = [&["--tool-catalog", &catalog, "--reproducible", "--set", "compaction.window=60000"], more].concat();
        let policies = home.json(&words("all", &more))["policies"].to_string();
        (policies, home.run(&words("all", &more)).out)
    };
    let first = run(&["--no-lake", "--threads", "1"]);
    for more in [&["--no-lake", "--threads", "2"][..], &["--threads", "2"], &[], &["--threads", "1"]] {
        assert!(run(more) == first, "{more:?}");
    }
    let other = Home::new();
    other.write(".claude/projects/-home-user-lantern/z.jsonl", Talk::new("s-one", 0).turns(14));
    other.write(".claude/projects/-home-user-lantern/y.jsonl", Talk::new("s-two", 20_000).turns(5));
    other.write(".claude/projects/-a/x.jsonl", Talk::new("s-three", 40_000).turns(8));
    let (here, there) = (report(&home, "prompt-cache", &[]), report(&other, "prompt-cache", &[]));
    for field in ["billed", "baseline", "simulated", "distribution", "baseline_vs_bill"] {
        assert_eq!(here[field], there[field], "{field}");
    }
}

#[test]
fn a_session_in_two_files_is_the_session_in_one() {
    let whole = Talk::new("s-one", 0).turns(9);
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let home = Home::new();
    home.write(".claude/projects/p/one.jsonl", &whole);
    for cut in [1, 7, lines.len() / 2, lines.len() - 1] {
        let parts = Home::new();
        // The later part stands first by name.
        parts.write(".claude/projects/p/b.jsonl", lines[..cut].concat());
        parts.write(".claude/projects/p/a.jsonl", lines[cut..].concat());
        for policy in ["prompt-cache", "compaction", "history-trim", "tool-filter"] {
            let (one, two) = (report(&home, policy, &[]), report(&parts, policy, &[]));
            for field in ["billed", "baseline", "simulated", "delta", "distribution", "baseline_vs_bill"] {
                assert_eq!(one[field], two[field], "{policy} {field}, cut at {cut}");
            }
            assert_eq!(one["input"]["requests"], two["input"]["requests"], "{policy}, cut at {cut}");
        }
    }
}

#[test]
fn a_window_keeps_its_requests_and_parts_are_the_whole() {
    let home = home();
    let requests = |more: &[&str]| {
        let report = report(&home, "compaction", more);
        (number(&report["input"]["requests"]), prompt(&report["billed"]))
    };
    // The logs begin on 2 January 2026, 03:00 UTC.
    let whole = requests(&[]);
    let early = requests(&["--until", "2026-01-02T07:00:00Z"]);
    let late = requests(&["--since", "2026-01-02T07:00:00Z"]);
    assert_eq!((early.0 + late.0, early.1 + late.1), whole);
    assert!(early.0 > 0 && late.0 > 0);
    let calls = |more: &[&str]| {
        let report = report(&home, "arg-check", more);
        let tools = report["details"]["arg-check"]["arg_check"]["tools"].as_object().unwrap().clone();
        tools.values().flat_map(|classes| classes.as_object().unwrap().values()).map(number).sum::<u64>()
    };
    let late_calls = calls(&["--since", "2026-01-02T07:00:00Z"]);
    assert_eq!(calls(&["--until", "2026-01-02T07:00:00Z"]) + late_calls, calls(&[]));
    assert!(late_calls > 0);
    for policy in POLICIES {
        let outside = words(policy, &["--since", "2026-02-01"]);
        fails(&home, &outside, Exit::Failed, &["no requests to a model in the window", "--allow-empty"]);
        assert_eq!(home.run(&[&outside[..], &["--allow-empty"]].concat()).exit, Exit::Done, "{policy}");
    }
}

#[test]
fn standard_input_is_a_log_like_any_other() {
    let home = Home::new();
    let log = Talk::new("s-one", 0).turns(6);
    home.write(".claude/projects/-home-user-lantern/one.jsonl", &log);
    for policy in POLICIES.into_iter().filter(|policy| *policy != "arg-check") {
        let outcome = home.run_with(&words(policy, &["--input-dir", "-", "--json"]), log.as_bytes());
        assert_eq!(outcome.exit, Exit::Done, "{policy}: {}", outcome.err);
        let piped: Value = serde_json::from_str(&outcome.out).unwrap();
        let from_file = report(&home, policy, &[]);
        for field in ["billed", "baseline", "simulated", "delta", "breakage", "not_estimated"] {
            assert_eq!(piped["policies"][0][field], from_file[field], "{policy} {field}");
        }
    }
    let checked = home.run_with(&words("arg-check", &["--input-dir", "-"]), log.as_bytes()).out;
    assert!(
        checked.starts_with("arg-check: no savings are claimed: standard input can be read only once"),
        "{checked}"
    );
}

#[test]
fn without_any_request_there_is_no_answer_unless_that_is_allowed() {
    let home = Home::new();
    home.write(".claude/projects/p/empty.jsonl", "");
    for policy in POLICIES.into_iter().chain(["all", "compaction+history-trim"]) {
        let outcome = home.run(&words(policy, &[]));
        assert_eq!(outcome.exit, Exit::Failed, "{policy}: {}", outcome.out);
        assert!(outcome.err.contains("hint: ") && outcome.out.is_empty(), "{policy}: {}", outcome.err);
        let allowed = home.run(&words(policy, &["--allow-empty"]));
        assert_eq!(allowed.exit, Exit::Done, "{policy}: {}", allowed.err);
        for word in ["NaN", "inf", "-0"] {
            assert!(!allowed.out.contains(word), "{policy}: {}", allowed.out);
        }
        let document = home.json(&words(policy, &["--allow-empty"]));
        let text = document["policies"].to_string();
        assert!(!text.contains("-0.0"), "{policy}: {text}");
    }
}

#[test]
fn a_policy_with_everything_off_is_the_log() {
    let home = home();
    let catalog = catalog(&home);
    let filter = ["--tool-catalog", &catalog, "--set", "enabled=false"];
    let all_shown = ["--tool-catalog", &catalog, "--set", "always=[*]", "--set", "fallback=false"];
    let rare = ["--tier", "micro", "--set", "micro.min_saving_tokens=1000000"];
    for (policy, more) in [
        ("prompt-cache", &[][..]),
        ("prompt-cache", &["--ttl", "1h"]),
        ("compaction", &["--set", "window=1000000000"]),
        ("compaction", &rare),
        ("history-trim", &["--set", "history_trimming=false"]),
        (
            "history-trim",
            &[
                "--set",
                "keep_recent_exchanges=1000",
                "--set",
                "max_history_tokens=1000000000",
                "--set",
                "keep_recent_user_turns_in_chained_tool_calls=1000",
            ],
        ),
        ("tool-filter", &filter),
        ("tool-filter", &all_shown),
        ("compaction+history-trim", &["--set", "window=1000000000", "--set", "history_trimming=false"]),
    ] {
        let report = report(&home, policy, more);
        assert_eq!(report["simulated"], report["baseline"], "{policy} {more:?}");
        assert_eq!(
            report["delta"],
            json!({"tokens_removed": 0, "iet": 0.0, "iet_pct": 0.0, "usd": 0.0, "usd_pct": 0.0}),
            "{policy}"
        );
        assert_eq!(report["extra_costs"]["calls"], 0, "{policy} {more:?}");
        let classes = report.pointer("/breakage/classes").and_then(Value::as_object);
        assert!(classes.is_none_or(|classes| classes.is_empty()), "{policy} {more:?}: {}", report["breakage"]);
        assert_eq!(report["not_estimated"], Value::Null, "{policy} {more:?}");
    }
}

#[test]
fn without_caching_every_token_costs_one() {
    let home = home();
    for policy in ["prompt-cache", "compaction"] {
        let report = report(&home, policy, &["--set", "prompt-cache.layout=none"]);
        let contexts = prompt(&report["billed"]);
        assert_eq!(number(&report["simulated"]["uncached"]), contexts);
        assert_eq!(report["simulated"]["iet"].as_f64(), Some(contexts as f64), "{policy}: 20 u20 per token");
        let dollars = contexts as f64 * 5.0 / 1e6;
        assert!((report["simulated"]["usd"].as_f64().unwrap() - dollars).abs() < 1e-9, "{policy}");
    }
    // The log's cache for the first, no cache for the others.
    let cached = report(&home, "history-trim", &set(&SHORT_HISTORY));
    let plain =
        report(&home, "history-trim", &[&set(&SHORT_HISTORY)[..], &["--set", "prompt-cache.layout=none"]].concat());
    assert_eq!(cached["uncached_iet_pct"], plain["delta"]["iet_pct"], "the other world is printed beside");
    assert!(plain["delta"]["iet_pct"].as_f64().unwrap() < 0.0);
}

#[test]
fn a_stack_acts_in_one_order_and_tells_what_its_parts_do_to_each_other() {
    let home = home();
    let settings = [set(&SMALL_WINDOW), set(&SHORT_HISTORY)].concat();
    let stack = report(&home, "compaction+history-trim", &settings);
    let other = report(&home, "history-trim+compaction", &settings);
    assert_eq!(stack, other, "whatever the order of the names");
    assert_eq!(stack["policy"], "compaction+history-trim");
    let change = |report: &Value| report["delta"]["iet"].as_f64().unwrap();
    let apart = change(&report(&home, "compaction", &set(&SMALL_WINDOW)))
        + change(&report(&home, "history-trim", &set(&SHORT_HISTORY)));
    let interaction = stack["interaction_iet"].as_f64().unwrap();
    assert!((interaction - (change(&stack) - apart)).abs() < 1e-6, "{interaction} {apart}");
    assert!(interaction.abs() > 1.0, "old text goes once only");
    let out = home.run(&words("compaction+history-trim", &settings)).out;
    assert!(out.contains("together instead of one by one: "), "{out}");
    assert!(!out.contains("lost their source"), "breaks are of the whole stack: {out}");
    assert_eq!(report(&home, "compaction", &set(&SMALL_WINDOW))["interaction_iet"], Value::Null);
    let catalog = catalog(&home);
    let more = [&settings[..], &["--tool-catalog", &catalog]].concat();
    let three = report(&home, "prompt-cache+tool-filter+compaction+history-trim", &more);
    assert_eq!(three["policy"], "tool-filter+compaction+history-trim+prompt-cache");
    assert_eq!(three["params"].as_object().unwrap().len(), 4);
}

/// What is tried beside the parameters is sent once, and priced with a cache and without.
#[test]
fn a_setting_of_the_router_costs_the_same_whether_it_is_tried_or_set() {
    let home = home();
    let twice = ["--set", "prompt-cache.layout=agent-runtime", "--set", "prompt-cache.double_system=on"];
    for more in [&[][..], &twice] {
        let found = report(&home, "history-trim", more)["details"]["history-trim"].clone();
        let tried = found["variants"].as_array().unwrap();
        let tried = tried.iter().find(|one| one["name"].as_str().unwrap().contains("defaults")).unwrap();
        for key in ["cached", "uncached", "outcome"] {
            assert_eq!(tried[key], found["as_set"][key], "{key} {more:?}");
        }
    }
}

/// A compaction of the log took away the text of the only edit.
#[test]
fn an_edit_whose_text_the_log_had_lost_itself_cannot_lose_it() {
    let home = Home::new();
    let mut talk = Talk::new("s-one", 0);
    talk.turn(0);
    (talk.parent, talk.cached) = (None, STATIC);
    talk.push("boundary", boundary(""), 0);
    talk.push("summary", compact_summary("", None), 300);
    talk.turn(1);
    home.write(".claude/projects/-home-user-lantern/one.jsonl", &talk.text);
    let out = home.run(&words("history-trim", &[])).out;
    assert!(out.contains("0 of 0 edits lost their source"), "{out}");
}

/// A mode that does not read what was set says so, unless another run of the same command does.
#[test]
fn what_was_set_and_no_run_reads_is_told() {
    let home = home();
    let pct = "compaction reads compact_at_pct only with mode=pct";
    let buffer = "compaction reads buffer only with mode=claude-code";
    for (policy, more, told) in [
        ("compaction", &["--set", "compact_at_pct=0.5"][..], pct),
        ("compaction", &["--set", "compact_at_pct=0.5", "--set", "mode=pct"], ""),
        ("compaction", &["--sweep", "buffer=1000,2000", "--set", "mode=pct"], buffer),
        ("compaction", &["--sweep", "buffer=1000,2000", "--sweep", "mode=pct,claude-code"], ""),
        ("compaction", &["--tier", "micro", "--set", "window=90000"], "compaction reads window only with tier=auto"),
        ("all", &["--set", "compaction.window=90000"], ""),
        ("history-trim", &["--set", "prompt-cache.keepalive_max_s=90"], "only with keepalive_s above 0"),
        ("prompt-cache", &["--set", "ttl=5m", "--set", "layout=none"], "only with layout=claude-code or agent-runtime"),
        ("prompt-cache", &["--sweep", "ttl=5m,1h", "--sweep", "layout=static+tail,claude-code"], ""),
        ("prompt-cache", &["--set", "keepalive_s=280", "--set", "layout=none"], "only with layout other than none"),
        ("history-trim", &["--set", "sticky_step=3", "--set", "fidelity=sane"], "only with sticky=true"),
        ("tool-filter", &["--set", "top_k=3"], "only with predictor=tf-cosine or markov"),
        ("tool-filter", &["--set", "top_k=3", "--set", "predictor=markov"], ""),
        ("compaction", &["--set", "micro.protect_last=5"], "reads micro.protect_last only with tier=micro"),
        ("compaction", &["--set", "micro.target_tokens=9000"], ""),
        (
            "tool-filter",
            &["--set", "learn=false", "--set", "expand=fail"],
            "only with expand=retry_append or retry_rebuild",
        ),
        ("tool-filter", &["--set", "min_tools=3", "--set", "skip_cacheable=true"], "only with skip_cacheable=false"),
        ("pick-tools", &["--set", "unsafe_default=spec", "--set", "allow_unsafe=true"], "only with allow_unsafe=false"),
        ("pick-tools", &["--set", "scope=request"], "reads scope only with query_context above 0"),
        ("pick-tools", &["--set", "scope=request", "--set", "query_context=1"], ""),
        (
            "prompt-cache",
            &["--set", "lookback_blocks=20", "--set", "layout=none"],
            "lookback_blocks only with layout=claude-code or static+tail",
        ),
        ("prompt-cache", &["--set", "cross_session=off", "--set", "layout=none"], "only with layout other than none"),
        // How far the log as simulated is off its bill is read of the layout that it had.
        ("history-trim", &["--set", "prompt-cache.lookback_blocks=20", "--set", "prompt-cache.layout=none"], ""),
        (
            "history-trim",
            &["--set", "cut=head_tail", "--set", "history_trimming=false"],
            "only with history_trimming=true",
        ),
    ] {
        let err = home.run(&words(policy, more)).err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(err.contains(told), "{policy} {more:?}: {err}");
        assert_eq!(err.contains("has no effect"), !told.is_empty(), "{policy} {more:?}: {err}");
    }
}

#[test]
fn whatever_is_read_only_with_another_parameter_is_one() {
    let configs = PolicyConfigs::load(&crate::base::data::Data::default()).unwrap();
    for &policy in Policy::ALL {
        let alone = if policy == Policy::PromptCache { READ_ONLY_ALONE } else { &[] };
        for rule in policy.entry().read_only_with.iter().chain(alone) {
            for name in rule.parameters.iter().chain([&rule.other()]) {
                let key: Vec<String> = name.split('.').map(str::to_owned).collect();
                assert!(configs.sheet(policy).has(&key), "{policy:?}: {name}");
            }
        }
    }
}

/// The cache prices every policy, so what was set about it is said wherever it does.
#[test]
fn what_is_set_about_the_cache_stands_in_reports_that_it_prices() {
    let home = home();
    let more = [&set(&SHORT_HISTORY)[..], &["--set", "prompt-cache.layout=none"]].concat();
    let params = report(&home, "history-trim", &more)["params"].clone();
    let [cache, trim] = ["prompt-cache", "history-trim"].map(|policy| &params[policy]);
    assert_eq!(
        (&cache["layout"], &cache["ttl"], &trim["keep_recent_exchanges"]),
        (&json!("none"), &json!("observed"), &json!(2))
    );
    let basis = |policy: &str, more: &[&str]| {
        let out = home.out_at_width(&words(policy, more), 300);
        out.lines().find(|line| line.contains("basis: ")).unwrap().to_owned()
    };
    let told = basis("history-trim", &more);
    assert!(told.contains(", both sides with prompt-cache.layout=none; the simulated log is "), "{told}");
    assert!(!basis("history-trim", &set(&SHORT_HISTORY)).contains("both sides"));
    assert!(!basis("prompt-cache", &["--set", "layout=none"]).contains("both sides"), "it is what was asked about");
    assert_eq!(report(&home, "arg-check", &[])["params"]["arg-check"]["coerce"], true);
}

/// One file read again and again, between answers about it and other calls.
fn home_with_repeats() -> Home {
    let home = Home::new();
    let mut talk = Talk::new("s-five", 0);
    let body: String = (0..90).map(|n| format!("    let secretname_{n} = secret_value({n});\n")).collect();
    for turn in 0..8 {
        talk.human(&format!("Look at the secretpart once more, for the {turn}th time"));
        talk.calls("Read", json!({ "file_path": "/home/user/lantern/src/part.rs" }), &body);
        talk.calls("Bash", json!({ "command": format!("cargo test {turn}") }), &format!("test {turn} passed\n"));
        talk.request(&[json!({ "type": "text", "text": "Nothing has changed in it." })]);
        talk.second += 60;
    }
    home.write(".claude/projects/-home-user-lantern/five.jsonl", talk.text);
    home
}

/// The talks with every n-th time of the log replaced.
fn home_with_odd_times(every: usize, odd: &str) -> Home {
    let home = Home::new();
    for (name, talk) in [("one", Talk::new("s-one", 0).turns(8)), ("two", Talk::new("s-two", 5_000).turns(5))] {
        let lines = talk.lines().enumerate().map(|(number, line)| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            if number % every == 0 {
                record["timestamp"] = json!(odd);
            }
            record.to_string() + "\n"
        });
        home.write(&format!(".claude/projects/-home-user-lantern/{name}.jsonl"), lines.collect::<String>());
    }
    home
}

#[test]
fn times_that_cannot_be_lose_no_request() {
    let whole = number(&report(&home_with_odd_times(1_000_000, ""), "prompt-cache", &[])["input"]["requests"]);
    for odd in ["", "never", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z"] {
        for every in [1, 3, 7] {
            let home = home_with_odd_times(every, odd);
            for policy in ["prompt-cache", "compaction", "history-trim+prompt-cache"] {
                let report = report(&home, policy, &[]);
                assert_eq!(number(&report["input"]["requests"]), whole, "{policy}, every {every}: {odd}");
            }
        }
    }
}

#[test]
fn requests_are_never_written_over_a_log_or_a_device() {
    let home = home();
    let log = home.path(".claude/projects/-home-user-lantern/one.jsonl");
    let before = std::fs::read(&log).unwrap();
    for (place, exit, why) in [
        (log.to_str().unwrap(), Exit::Usage, "one of the logs"),
        ("/dev/null", Exit::Failed, "no regular file"),
        ("-", Exit::Usage, "stands for stdout"),
    ] {
        fails(&home, &words("compaction", &["--per-request", place]), exit, &[why, "name "]);
    }
    let place = log.to_str().unwrap();
    for command in [&["report", "--html"][..], &["mine", "edges", "-o"], &["mine", "edges", "--html"]] {
        fails(&home, &[command, &[place]].concat(), Exit::Usage, &["one of the logs", "name "]);
    }
    assert_eq!(std::fs::read(&log).unwrap(), before);
    // A log that begins with what names no session.
    let snapshot = format!("{{\"type\":\"file-history-snapshot\",\"snapshot\":\"{}\"}}\n", "x".repeat(1 << 20));
    std::fs::write(&log, [snapshot.as_bytes(), &before[..]].concat()).unwrap();
    fails(&home, &["report", "--html", place], Exit::Usage, &["one of the logs", "name "]);
}

#[test]
fn flags_of_which_nothing_would_come_are_refused() {
    let home = home();
    for (policy, more, told) in [
        ("prompt-cache", &["--provider", "openai"][..], &["--provider", "tools"][..]),
        ("compaction", &["--sweep", "window=1000,2000", "--per-session"], &["--per-session", "--sweep"]),
        ("compaction", &["--sweep", "window=1000", "--sweep", "window=2000"], &["window is swept twice"]),
        ("prompt-cache", &["--set", "keepalive_s=1"], &["keepalive_s", "at least 10 s"]),
        ("compaction", &["--set", "window=99999999999999999999"], &["window", "whole number"]),
    ] {
        let outcome = home.run(&words(policy, more));
        assert_eq!(outcome.exit, Exit::Usage, "{more:?}: {}", outcome.err);
        assert!(told.iter().all(|told| outcome.err.contains(told)), "{more:?}: {}", outcome.err);
    }
    for flag in [&["--sweep", "window=1000"][..], &["--per-request", "x"]] {
        let more = [&["--from-telemetry"], flag].concat();
        fails(&home, &words("compaction", &more), Exit::Usage, &[flag[0], "logs only"]);
    }
    fails(&home, &["replay", "--policy", "nosuch", "--planner"], Exit::Usage, &["--planner"]);
    let hint = home.run(&words("tool-filter", &["--set", "nope=1"])).err;
    let hint = hint.split("its parameters: ").nth(1).unwrap();
    assert!(hint.contains("system_tokens") && !hint.contains("nope"), "{hint}");
    let knob = words("tool-filter+compaction", &["--set", "system_tokens=5000"]);
    assert_eq!(home.run(&knob).exit, Exit::Done, "a knob without a default is a parameter all the same");
    let huge = ["summary_tokens=4294967295", "reattach_tokens=4294967295", "tail_keep_tokens=9223372036854775807"];
    for huge in huge {
        let more = set(&["window=15000", "reserve_output=0", "buffer=0", huge]);
        assert_eq!(home.run(&words("compaction", &more)).exit, Exit::Done, "{huge}");
    }
    let days = ["--days", "99999999"];
    fails(&home, &words("compaction", &days), Exit::Usage, &["--days"]);
}

#[test]
fn a_sweep_says_what_it_was_run_on() {
    let home = home();
    let document = home.json(&words("prompt-cache", &["--sweep", "ttl=5m,\"mixed:static=1h,tail=5m\""]));
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2, "a comma in quotes divides nothing");
    for cell in cells {
        let whole = &report(&home, "prompt-cache", &[])["input"];
        assert_eq!(&cell["policy"]["input"], whole);
    }
    let out = home.run(&words("prompt-cache", &["--sweep", "ttl=5m,1h"])).out;
    assert!(out.starts_with("prompt-cache: ") && out.contains("\nbasis: simulated over "), "{out}");
}

#[test]
fn a_summariser_is_charged_its_own_price_which_must_be_known() {
    let home = home();
    let iet = |model: &str| {
        let named = format!("summarizer_model={model}");
        let report = report(&home, "compaction", &set(&[&SMALL_WINDOW[..], &[&named]].concat()));
        assert!(report["extra_costs"]["calls"].as_u64().unwrap() > 0);
        report["extra_costs"]["iet"].as_f64().unwrap()
    };
    // The log's model reads its cache at a tenth; Opus 4.6 costs the same and has no such cache; Haiku costs a fifth.
    let (own, cold, cheap) = (iet("claude-opus-4-5"), iet("claude-opus-4-6"), iet("claude-haiku-4-5-20251001"));
    assert!((own - iet("")).abs() < 1e-9 && own < cold, "{own} {cold}");
    assert!((5.0 * cheap - cold).abs() < 1e-6, "{cheap} {cold}");
    let unknown = set(&["summarizer_model=gpt-9"]);
    fails(&home, &words("compaction", &unknown), Exit::Usage, &["summarizer_model", "gpt-9", "prices.toml"]);
}

#[test]
fn the_pipeline_is_priced_as_its_own_report_counts_it_and_breaks_no_prefix() {
    let home = home_with_repeats();
    let replayed = home.json(&["replay"]);
    let report = report(&home, "pipeline", &[]);
    let found = &report["details"]["pipeline"];
    assert_eq!((&found["hints"], &found["hints_held"], &found["results"]), (&json!(7), &json!(0), &json!(16)));
    let saved = number(&found["tokens_saved"]) as f64 / number(&found["tokens"]) as f64;
    let combined = replayed["scenarios"][0]["published"]["savings"]["combined_savings_pct"].as_f64();
    if let Some(combined) = combined {
        assert!((100.0 * saved - combined).abs() < 10.0, "framing aside: {saved} {combined}");
    }
    assert!(saved > 0.5, "seven of eight are hints: {found}");
    assert!(report["delta"]["iet"].as_f64().unwrap() < 0.0 && report["delta"]["tokens_removed"].as_i64().unwrap() > 0);
    let written = |bill: &Value| number(&bill["write_5m"]) + number(&bill["write_1h"]);
    assert!(written(&report["simulated"]) < written(&report["baseline"]), "what is shorter is written once, shorter");
    assert_eq!(report["breakage"], json!({}), "{}", report["breakage"]);
}

#[test]
fn hints_dangle_where_another_policy_takes_their_target_unless_partitions_know() {
    let home = home_with_repeats();
    let events = |report: &Value, class: &str| report["breakage"][class]["events"].as_u64().unwrap_or(0);
    let short = ["history-trim.keep_recent_exchanges=1", "history-trim.max_history_tokens=3000"];
    let run = |partition: &str| {
        let partition = format!("pipeline.partition={partition}");
        report(&home, "pipeline+history-trim", &[set(&short), set(&[&partition])].concat())
    };
    let (told, untold) = (run("virtual"), run("logged"));
    assert!(events(&untold, "dangling_ref") > 0, "the only showing is cut: {untold}");
    assert!(events(&told, "dangling_ref") < events(&untold, "dangling_ref"), "{told}");
    assert!(number(&told["details"]["pipeline"]["hints_held"]) > 0);
    assert_eq!(untold["details"]["pipeline"]["hints_held"], 0);
    fails(&home, &words("pipeline", &set(&["formats=other"])), Exit::Usage, &["formats", "published"]);
}

#[test]
fn savings_of_hidden_tools_are_withheld_without_a_catalog_and_told_with_one() {
    let home = home();
    let without = report(&home, "tool-filter", &[]);
    assert!(without["not_estimated"].as_str().unwrap().contains("--tool-catalog"));
    assert!(number(&without["breakage"]["tool_miss"]["events"]) > 0, "misses are known all the same");
    let foreseen = report(&home, "tool-filter", &["--set", "predictor=oracle"]);
    assert_eq!(foreseen["broken_steps"], json!({ "hard": 0, "soft": 0 }), "and so is that there are none");
    let out = home.run(&words("tool-filter", &[])).out;
    assert!(!out.contains('$') && out.starts_with("tool-filter: savings are not estimated: "), "{out}");
    let catalog = catalog(&home);
    let with = report(&home, "tool-filter", &["--tool-catalog", &catalog]);
    assert_eq!(with["not_estimated"], Value::Null);
    assert!(with["delta"]["tokens_removed"].as_i64().unwrap() > 0);
    assert_eq!(with["extra_costs"]["by_cause"]["tool_retry"]["calls"], 3, "one per session, where it is learned");
    let picked = report(&home, "pick-tools", &["--tool-catalog", &catalog]);
    assert_eq!(picked["fidelity"]["tool_catalog_source"], "given");
}

/// The talks, in which a tool search spells out the forecast and a client attaches the list of its other tools.
fn home_with_quoted_definitions(is_listed: bool) -> Home {
    let home = home();
    let schema = json!({ "type": "object", "properties": { "city": { "type": "integer" } }, "required": ["city"] });
    let forecast = json!({ "name": "mcp__weather__get_forecast", "description": "Forecast", "parameters": schema });
    let mut talk = Talk::new("s-four", 60_000);
    talk.human("Search for secrettools");
    talk.calls("ToolSearch", json!({ "query": "weather" }), &format!("<function>{forecast}</function>"));
    talk.turn(0);
    if is_listed {
        let text = std::fs::read_to_string(catalog(&home)).unwrap();
        let tools: Value = serde_json::from_str(&text).unwrap();
        let listed = json!({ "type": "tools", "list": tools });
        talk.push("list", user("", "see the list").set("type", "attachment").set("attachment", listed), 0);
    }
    home.write(".claude/projects/-home-user-lantern/four.jsonl", talk.turns(2));
    home
}

#[test]
fn definitions_that_the_logs_quote_serve_where_the_user_brings_none() {
    let searched = home_with_quoted_definitions(false);
    let hidden = report(&searched, "tool-filter", &[]);
    assert!(hidden["not_estimated"].is_string(), "no list ever held what was searched for: {hidden}");
    let notes = hidden["notes"].to_string();
    assert!(notes.contains("definitions in the logs that a tool search brought: 1"), "{notes}");
    let checked = report(&searched, "arg-check", &[]);
    assert_eq!(checked["fidelity"]["tool_catalog_source"], "logged, shipped");
    let invalid = &checked["details"]["arg-check"]["arg_check"]["tools"]["mcp__weather__get_forecast"]["invalid"];
    assert!(number(invalid) > 0, "its schema counts: {checked}");
    let listed = home_with_quoted_definitions(true);
    let hidden = report(&listed, "tool-filter", &[]);
    assert_eq!(
        (&hidden["not_estimated"], &hidden["fidelity"]["tool_catalog_source"]),
        (&Value::Null, &json!("logged"))
    );
    assert!(hidden["delta"]["tokens_removed"].as_i64().unwrap() > 0);
    let catalog = catalog(&listed);
    let given = report(&listed, "tool-filter", &["--tool-catalog", &catalog]);
    assert_eq!(given["fidelity"]["tool_catalog_source"], "given", "the user's word comes first");
    assert!(
        reports(&listed, "all", &[])["tool-filter"]["not_estimated"].is_string(),
        "as a row of many it reads no logs"
    );
}

#[test]
fn definitions_are_measured_in_the_shape_of_each_provider() {
    let home = home();
    let catalog = catalog(&home);
    let sizes = |provider: &str| {
        let more = ["--tool-catalog", &catalog, "--provider", provider];
        let report = report(&home, "arg-check", &more);
        let tools = report["details"]["arg-check"]["provider"]["tools"].as_array().unwrap().clone();
        assert_eq!(tools.len(), 6);
        tools.iter().map(|tool| number(&tool["tokens_sent"])).sum::<u64>()
    };
    let sizes = ["anthropic", "openai", "ollama", "gemini"].map(sizes);
    assert!(sizes.iter().all(|&tokens| tokens > 500) && sizes[1] > sizes[0], "{sizes:?}");
}

#[test]
fn telemetry_answers_what_it_can_and_refuses_the_rest() {
    let home = home();
    let dir = home.path("telemetry");
    let dir = dir.to_str().unwrap();
    home.json(&["replay", "--emit-telemetry", dir]);
    let more = ["--from-telemetry", "--input-dir", dir];
    for (policy, why) in [
        ("prompt-cache", "no usage"),
        ("pick-tools", "no text"),
        ("arg-check", "no arguments"),
        ("pipeline", "tune analyze"),
    ] {
        let told = [policy, why, "leave --from-telemetry out"];
        fails(&home, &words(policy, &more), Exit::Usage, &told);
    }
    for policy in ["compaction", "history-trim", "tool-filter", "compaction+history-trim"] {
        let report = report(&home, policy, &more);
        assert_eq!(report["fidelity"]["estimator"], "telemetry", "{policy}");
        assert_eq!(report["fidelity"]["anchored_share"], Value::Null, "{policy}");
        assert!(report["not_estimated"].as_str().is_some_and(|why| !why.is_empty()), "{policy}");
        assert_eq!(report["input"]["sessions"], 3, "{policy}");
        let outcome = home.run(&words(policy, &more));
        assert!(outcome.out.starts_with(&format!("{policy}: savings are not estimated: ")), "{}", outcome.out);
        assert!(!outcome.out.contains('$'), "nothing is priced: {}", outcome.out);
    }
    let all = home.json(&words("all", &more));
    let not_estimated = |report: &&Value| report["not_estimated"].is_string();
    let policies = all["policies"].as_array().unwrap();
    assert_eq!((policies.len(), policies.iter().filter(not_estimated).count()), (ROWS.len(), ROWS.len()));
    assert_eq!(all["basis"], "telemetry");
    fails(&home, &words("prompt-cache+compaction", &more), Exit::Usage, &["prompt-cache", "no usage"]);
    let empty = home.path("nothing");
    std::fs::create_dir(&empty).unwrap();
    let more = ["--from-telemetry", "--input-dir", empty.to_str().unwrap()];
    assert_eq!(home.run(&words("compaction", &more)).exit, Exit::Failed);
}

/// policies.md 8: a partition grew by all answers, also by those that came after its last request.
#[test]
fn partitions_of_telemetry_grew_by_all_of_their_answers() {
    let home = Home::new();
    let event = |number: u64, partition: u32| {
        json!({
            "session_hash": "s1", "tool_call_id_hash": format!("{number:08x}"), "tool_name_anon": "Bash",
            "endpoint_class": "Bash", "response_chars": 4_000, "shape": "prose", "inner_formats": [],
            "content_sha_prefix_hex": format!("{number:032x}"), "is_dedup_hit": false, "layer_used": "L3",
            "tokens_baseline": 1_200, "tokens_final": 1_000, "context_partition": partition, "is_sidechain": false,
            "ts_ms": super::harness::NOW_MS - 100_000 + number as i64 * 1_000, "sample_rate_applied": 1.0,
        })
        .to_string()
            + "\n"
    };
    let grown = |partitions: &[u32]| {
        let events: String = (1..).zip(partitions).map(|(number, &partition)| event(number, partition)).collect();
        home.write("telemetry/s1.jsonl", events);
        let dir = home.path("telemetry");
        let report = report(&home, "compaction", &["--from-telemetry", "--input-dir", dir.to_str().unwrap()]);
        let growth = &report["details"]["compaction"]["growth"];
        let of = |which: &str| (number(&growth[which]["partitions"]), number(&growth[which]["tokens"]["max"]));
        (of("compacted"), of("open"))
    };
    assert_eq!(grown(&[0, 0, 0, 1, 1]), ((1, 3_000), (1, 2_000)));
    assert_eq!(grown(&[0]), ((0, 0), (1, 1_000)));
    assert_eq!(grown(&[0, 1]), ((1, 1_000), (1, 1_000)));
}

#[test]
fn a_clock_that_runs_backwards_loses_no_request_and_no_prefix() {
    let (straight, backwards) = (Home::new(), Home::new());
    let mut talk = Talk::new("s-one", 20_000);
    let mut back = Talk::new("s-one", 20_000);
    for turn in 0..8 {
        talk.turn(turn);
        back.turn(turn);
        if turn == 3 {
            // Six hours: the clock was wrong and is set right.
            back.second -= 18_000;
        }
    }
    straight.write(".claude/projects/p/one.jsonl", talk.text);
    backwards.write(".claude/projects/p/one.jsonl", back.text);
    for policy in ["prompt-cache", "compaction", "history-trim"] {
        let (then, now) = (report(&straight, policy, &[]), report(&backwards, policy, &[]));
        assert_eq!(now["input"]["skipped"], json!({ "clock_backwards": 1 }), "it is told");
        assert_eq!(then["input"]["requests"], now["input"]["requests"]);
        for field in ["billed", "baseline", "simulated", "delta", "breakage"] {
            assert_eq!(then[field], now[field], "{policy} {field}");
        }
    }
    assert_eq!(backwards.run(&words("all", &[])).exit, Exit::Done);
}

#[test]
fn answers_without_usage_are_counted_and_cost_nothing() {
    let home = home();
    let usual = report(&home, "prompt-cache", &[]);
    let mut talk = Talk::new("s-four", 60_000);
    talk.has_usage = false;
    // Each turn reads a file and says something; all but the first edit, the third looks up the weather.
    let (silent, answers) = (talk.turns(4), 4 * 2 + 3 + 1);
    home.write(".claude/projects/-home-user-orchard/four.jsonl", &silent);
    for policy in POLICIES {
        let report = report(&home, policy, &[]);
        assert_eq!(report["input"]["skipped"]["no_usage"], answers, "{policy}");
        assert_eq!(report["input"]["requests"], usual["input"]["requests"], "{policy}");
        assert_eq!(report["billed"], usual["billed"], "{policy}");
        assert_eq!(report["baseline"], if policy == "arg-check" { Value::Null } else { usual["baseline"].clone() });
    }
    let told = home.run(&words("compaction", &[])).out;
    assert!(told.contains(&format!("{answers} messages of the log without usage: not replayed")), "{told}");
    let home = Home::new();
    home.write(".claude/projects/p/four.jsonl", &silent);
    let hints = [&format!("none of the {answers} messages in the window has usage")[..], "--allow-empty"];
    fails(&home, &words("compaction", &[]), Exit::Failed, &hints);
    assert!(home.run(&words("arg-check", &[])).out.contains("7 of 7 calls to known tools are valid"));
    // As a row of `all` it is put off; by name it runs, whatever stands beside it.
    let details = |policy: &str, more: &[&str]| -> Vec<Value> {
        let run = home.run(&[&words(policy, more)[..], &["--json", "--allow-empty"]].concat());
        let document: Value = serde_json::from_str(&run.out).unwrap();
        let policies = document["policies"].as_array().unwrap();
        policies.iter().filter(|one| one["policy"] == "arg-check").map(|one| one["details"].clone()).collect()
    };
    assert_eq!(details("all", &[]), [json!({})]);
    assert!(details("compaction", &["--compare", "arg-check"])[0]["arg-check"]["arg_check"].is_object());
    let zeros = silent.replace("\"usage\":null", "\"usage\":{\"input_tokens\":0,\"output_tokens\":0}");
    home.write(".claude/projects/p/four.jsonl", &zeros);
    for policy in POLICIES.into_iter().filter(|policy| *policy != "arg-check") {
        let outcome = home.run(&words(policy, &[]));
        assert_eq!(outcome.exit, Exit::Done, "{policy}: {}", outcome.err);
        assert!(!outcome.out.contains("NaN") && !outcome.out.contains("inf "), "{policy}: {}", outcome.out);
    }
    let told = report(&home, "prompt-cache", &[]);
    assert_eq!(told["details"]["prompt-cache"]["prompt_cache"]["without_usage"], answers);
    assert_eq!(told["billed"]["iet"], 0.0);
}

#[test]
fn answers_cost_the_same_on_both_sides_if_they_are_counted() {
    let home = home();
    let settings = set(&SMALL_WINDOW);
    let without = report(&home, "compaction", &settings);
    let with = report(&home, "compaction", &[&settings[..], &["--include-output", "estimated"]].concat());
    let output = |report: &Value, side: &str| number(&report[side]["output"]);
    assert_eq!(output(&without, "baseline"), 0);
    let answers = output(&with, "baseline");
    assert!(answers > 40 * number(&with["input"]["requests"]), "40 tokens each by usage, often more by their blocks");
    assert_eq!(output(&with, "simulated") - answers, output(&without, "simulated"), "summaries have output besides");
    let change = |report: &Value| report["delta"]["iet"].as_f64().unwrap();
    assert!((change(&with) - change(&without)).abs() < 1e-6);
    assert!(with["notes"].to_string().contains("output is counted on both sides"), "{}", with["notes"]);
    fails(&home, &words("compaction", &["--include-output", "exact"]), Exit::Usage, &["estimated"]);
}

#[test]
fn text_of_the_log_is_shown_only_to_who_asks_for_it() {
    let home = home();
    let settings = set(&SHORT_HISTORY);
    let silent = home.run(&words("history-trim", &settings)).out;
    let shown = home.run(&words("history-trim", &[&settings[..], &["--show-content"]].concat())).out;
    assert!(!silent.contains("secret") && !silent.contains("examples of breaks"));
    let (before, examples) = shown.split_once("\nexamples of breaks\n").unwrap();
    assert!(!before.contains("secret"));
    assert!(examples.contains("edit_source_lost: ") && examples.contains("one.jsonl:"), "{examples}");
}

#[test]
fn figures_of_the_cache_have_other_names_on_request() {
    let home = home();
    let metrics = |more: &[&str]| {
        let outcome = home.run(&words("prompt-cache", &[&["--alias", "agent-runtime"], more].concat()));
        assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
        serde_json::from_str::<Value>(&outcome.out).unwrap()["metrics"].clone()
    };
    let report = report(&home, "prompt-cache", &[]);
    let (metrics, same) = (metrics(&[]), metrics(&["--json"]));
    assert_eq!(metrics, same);
    assert_eq!(metrics["llm_cache_read_tokens_total"].as_f64(), report["simulated"]["read"].as_f64());
    let ratio = number(&report["simulated"]["read"]) as f64 / prompt(&report["simulated"]) as f64;
    assert!((metrics["llm_cache_hit_ratio"].as_f64().unwrap() - ratio).abs() < 1e-9);
    fails(&home, &words("compaction", &["--alias", "agent-runtime"]), Exit::Usage, &["ask for `prompt-cache`"]);
    fails(&home, &words("prompt-cache", &["--alias", "other"]), Exit::Usage, &["agent-runtime"]);
}

/// The tables of parameters in `docs/policies.md`: policy, parameter, default.
fn documented_knobs() -> BTreeMap<String, BTreeMap<String, String>> {
    let page = include_str!("../../docs/policies.md");
    let section = page.split("\n## Parameters\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut tables: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut policy = String::new();
    for line in section.lines() {
        if let Some(name) = line.strip_prefix("### `") {
            policy = name.trim_end_matches('`').to_owned();
        } else if let Some(row) = line.strip_prefix("| `") {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let knob = cells[0].trim_end_matches('`').to_owned();
            assert_eq!(tables.entry(policy.clone()).or_default().insert(knob, cells[1].into()), None, "{line}");
        }
    }
    tables
}

#[test]
fn the_page_has_every_knob_with_its_default() {
    fn collect(table: &toml_edit::Table, before: &str, params: &mut BTreeMap<String, String>) {
        for (key, item) in table {
            let name = format!("{before}{key}");
            match item.as_table() {
                Some(inner) => collect(inner, &format!("{name}."), params),
                None => _ = params.insert(name, item.as_value().unwrap().clone().decorated("", "").to_string()),
            }
        }
    }
    let plain = |default: &str| default.trim_matches('"').replace('_', "");
    let documented = documented_knobs();
    assert_eq!(documented.len(), POLICIES.len());
    let home = home();
    for (policy, table) in &documented {
        let file = format!("policies/{}.toml", policy.replace('-', "_"));
        let sheet: toml_edit::DocumentMut = crate::base::data::Data::default().text(&file).unwrap().parse().unwrap();
        let mut params = BTreeMap::new();
        collect(sheet["params"].as_table().unwrap(), "", &mut params);
        let (unset, set): (Vec<_>, Vec<_>) = table.iter().partition(|(_, default)| *default == "unset");
        let names = |params: Vec<&String>| params.into_iter().cloned().collect::<Vec<_>>();
        assert_eq!(names(set.iter().map(|(name, _)| *name).collect()), names(params.keys().collect()), "{policy}");
        for (name, default) in set {
            assert_eq!(plain(default), plain(&params[name]), "{policy}.{name}");
        }
        for (name, _) in unset {
            let more = ["--set", &format!("{name}=100")];
            assert_eq!(home.run(&words(policy, &more)).exit, Exit::Done, "{policy}.{name}");
        }
    }
}

/// What the page shows below `$ devboy …` is what that command prints, up to `…`.
#[test]
fn quoted_answers_are_what_is_printed() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let mut seen = 0;
    for page in [include_str!("../../docs/policies.md"), include_str!("../../docs/pipeline.md")] {
        for block in page.split("```").skip(1).step_by(2) {
            let Some((command, shown)) = block.split_once("$ devboy what-if ").and_then(|(_, it)| it.split_once('\n'))
            else {
                continue;
            };
            let command =
                format!("replay --policy {command} --no-lake").replace("testdata/", &format!("{root}testdata/"));
            let out = Home::new().run(&command.split(' ').collect::<Vec<_>>()).out;
            let shown: Vec<&str> = shown.trim_end().lines().take_while(|line| *line != " …").collect();
            let printed: Vec<&str> = out.lines().take(shown.len()).collect();
            assert_eq!(printed, shown, "{command}");
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn the_page_has_every_class_of_breaks_with_its_strength() {
    let page = include_str!("../../docs/policies.md");
    for &class in crate::whatif::sim::breakage::rows::BreakClass::ALL {
        let strength = format!("{:?}", class.strength()).to_lowercase();
        assert!(
            page.contains(&format!("| `{}` | {} | {strength} |", class.into_str(), class.words(2))),
            "{} is {strength}",
            class.into_str()
        );
    }
}

#[test]
fn the_example_logs_are_answered_by_every_policy_and_stack() {
    let home = Home::new();
    let logs = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/claude-home");
    let more = ["--input-dir", logs];
    let all = reports(&home, "all", &more);
    assert_eq!(all.len(), ROWS.len());
    assert!(all.values().all(|report| report["input"]["requests"] == 200));
    let cache = report(&home, "prompt-cache", &more);
    let billed: u64 = prompt(&cache["billed"]);
    assert_eq!(billed, 3_588_670 + 98_433 + 194_562 + 1_272, "as an independent count of the usage gives it");
    assert_eq!(prompt(&cache["baseline"]), billed, "no token more or less");
    for stack in
        ["compaction+history-trim", "tool-filter+compaction+history-trim+prompt-cache", "pick-tools+compaction"]
    {
        assert_eq!(home.run(&words(stack, &more)).exit, Exit::Done, "{stack}");
    }
}

/// The talks wrote for an hour with Opus 4.5: (10 − 0.5) / 0.5 = 19 reads; a twentieth is due after 20 · 270 s = 90 min, or
/// 20 · 3,300 s = 18 h 20 min.
#[test]
fn a_write_is_told_in_the_idle_reads_that_it_is_worth() {
    let home = home();
    let out = home.out_at_width(&words("prompt-cache", &["--explain", "--all"]), 200);
    let table = out.split("\nkeep-alive reads that one write is worth\n").nth(1).unwrap().split("\n\n").next().unwrap();
    for cell in ["claude-opus-4-5-20251101", "1h", "    19 ┆ 90 min at 270 s; 18 h 20 min at 3,300 s"] {
        assert!(table.contains(cell), "{cell}: {table}");
    }
    assert!(out.contains("claude-opus-4-5-20251101 for 1h (10,000 − 500) / 500 = 19.0"), "{out}");
    let report = report(&home, "prompt-cache", &[]);
    let expected = json!([{
        "model": "claude-opus-4-5-20251101", "lifetime": "1h", "write_nano_usd": 10_000, "read_nano_usd": 500,
        "reads": 19, "idle_s": { "270": 5_400, "3300": 66_000 },
    }]);
    assert_eq!(report["details"]["prompt-cache"]["prompt_cache"]["idle_reads"], expected);
}

/// 27 turns: each reads, all but the first of a session edit, every third asks for the forecast: 14, 5 and 8 turns make
/// 27 + 24 + (4 + 1 + 2) calls. The forecast alone is not in the list; it is asked for at turns 2, 5, 8 … of a session, so
/// that the last three turns always have the one before.
#[test]
fn a_fixed_list_is_told_by_what_it_covers_beside_what_other_logs_came_to() {
    let home = home();
    let out = home.out_at_width(&words("tool-filter", &["--all"]), 200);
    let line = "in main threads the always list alone covers 87.9 % of 58 calls and all calls of 74.1 % of 27 turns that used tools \
                (public logs, the shipped list: 90.8 % and 75.0 %)";
    assert!(out.contains(line), "{out}");
    let title = "\nthe always list and tools that were used of late: what turns of main threads would have missed\n";
    let table = out.split(title).nth(1).unwrap().split("\n\n").next().unwrap();
    let row = |name: &str| {
        let line = table.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {table}"));
        line.split(['│', '┆']).map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    // Each forecast is missed, 7 of 27 turns; looked back on three turns, only the first one of each session.
    assert_eq!(row("1 turn")[1..], ["25.9 %", "12.1", "22.3 %"]);
    assert_eq!(row("3 turns")[1..], ["11.1 %", "5.2", "20.4 %"]);
    assert_eq!(row("all turns")[1..], ["11.1 %", "5.2", "17.5 %"]);
    let coverage = &report(&home, "tool-filter", &[])["details"]["tool-filter"]["coverage"];
    assert_eq!((&coverage["tools"], &coverage["calls"]), (&json!(3), &json!({ "k": 51, "n": 58 })));
    assert_eq!(coverage["recency"]["all"]["turns_missed"], json!({ "k": 3, "n": 27 }));
    let known = json!({ "1": 22.3, "3": 20.4, "5": 19.0, "10": 18.4, "all": 17.5 });
    assert_eq!(coverage["elsewhere"]["turns_missed_pct"], known);
    let beside = &reports(&home, "all", &[])["tool-filter"]["details"]["tool-filter"];
    assert!(beside["misses"].is_object() && beside["coverage"].is_null(), "a row of many is short: {beside}");
}

/// The lines of `--per-request` of one policy.
fn request_lines(home: &Home, policy: &str, more: &[&str]) -> Vec<Value> {
    let file = home.path("lines.jsonl");
    let outcome = home.run(&words(policy, &[more, &["--per-request", file.to_str().unwrap()]].concat()));
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    std::fs::read_to_string(&file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn lines_of_requests_say_why_a_prefix_was_lost() {
    let home = Home::new();
    let mut talk = Talk::new("s-one", 0);
    (0..3).for_each(|turn| talk.turn(turn));
    // An hour and a half of silence: everything is written anew.
    (talk.second, talk.grown, talk.cached) = (talk.second + 5_400, talk.cached + talk.grown, 0);
    (3..5).for_each(|turn| talk.turn(turn));
    home.write(".claude/projects/-home-user-lantern/one.jsonl", talk.text);
    let lines = request_lines(&home, "prompt-cache", &[]);
    let causes: Vec<&str> = lines.iter().filter_map(|line| line["cause"].as_str()).collect();
    assert_eq!(causes, ["cache_expired"]);
    assert!(lines.iter().all(|line| line.get("cause").is_some()), "null where nothing was lost");
    let lost = lines.iter().find(|line| line["cause"].is_string()).unwrap();
    assert!(number(&lost["billed"]["read"]) == 0 && number(&lost["billed"]["write"]) > STATIC);
    let sums = &report(&home, "prompt-cache", &[])["details"]["prompt-cache"]["prompt_cache"]["causes"];
    assert_eq!(sums["cache_expired"]["events"], 1, "{sums}");
    assert!(request_lines(&home, "compaction", &[]).iter().all(|line| line.get("cause").is_none()));
}

/// Words of the forecast without stop words: mcp, weather, get, forecast, city; the prompts have `weather`.
#[test]
fn lines_of_requests_say_which_tools_were_picked_and_by_which_of_their_words() {
    let home = home();
    let catalog = catalog(&home);
    let more = ["--tool-catalog", &catalog[..]];
    let lines = request_lines(&home, "pick-tools", &more);
    let picked: Vec<&Value> = lines.iter().filter(|line| line.get("picks").is_some()).collect();
    assert_eq!(picked.len(), 27, "one request of each turn begins it");
    assert!(lines.len() > 2 * picked.len());
    for line in &picked {
        let forecast =
            line["picks"].as_array().unwrap().iter().find(|pick| pick["tool"] == "mcp__weather__get_forecast");
        let forecast = forecast.unwrap_or_else(|| panic!("{line}"));
        assert_eq!(forecast["matched"], json!(["weather"]), "words of the tool, none of the prompt besides");
        let (above, below) = (number(&forecast["numerator"]), number(&forecast["denominator"]));
        assert_eq!((above, forecast["score"].as_f64()), (1, Some(1.0 / below as f64)));
        let scores: Vec<f64> =
            line["picks"].as_array().unwrap().iter().map(|pick| pick["score"].as_f64().unwrap()).collect();
        assert!(scores.is_sorted_by(|best, next| best >= next) && scores.len() <= 3, "{line}");
    }
    let each = request_lines(&home, "pick-tools", &[&more[..], &["--set", "scope=request"]].concat());
    assert!(each.len() == lines.len() && each.iter().all(|line| line["picks"].is_array()));
    assert!(request_lines(&home, "tool-filter", &more).iter().all(|line| line.get("picks").is_none()));
}

/// The lines of a section of a report.
fn section<'a>(out: &'a str, title: &str) -> Vec<&'a str> {
    let section = out.split(&format!("\n{title}\n")).nth(1).unwrap_or_else(|| panic!("no {title}: {out}"));
    section.split("\n\n").next().unwrap().lines().collect()
}

/// The caps are those of policies.md 9: 16,000 tokens, 8 and 100 old messages; 97 + (256 − 97) × 4 / 7 = 187.86.
#[test]
fn caps_picks_and_classes_are_explained_with_the_numbers_that_are_set() {
    let home = home();
    let catalog = catalog(&home);
    let told = |policy: &str, more: &[&str], expected: &[&str]| {
        let out = home.run(&words(policy, &[&["--explain"], more].concat())).out;
        let lines = section(&out, "how it is computed").join("\n");
        expected.iter().for_each(|part| assert!(lines.contains(part), "{policy} {part}: {lines}"));
    };
    let caps = [
        "base of the caps = 0.016 × budget = 0.016 × 16,000 = 256 tokens",
        "8 old messages: base × share = 256 × 1.000; a message next to the boundary may have 256 tokens, the oldest 97, \
         results 153 and 58",
        "100 old messages: base × share = 256 × 0.724; a message next to the boundary may have 185 tokens, the oldest 70, \
         results 111 and 42",
        "the message at place 4 of 0 to 7 may have 97 + (256 − 97) × 4 / 7 = 187 tokens",
        "while more than 16,000 tokens are left",
        "first those without protected messages, then any",
    ];
    told("history-trim", &[], &caps);
    let other = set(&["max_history_tokens=10000", "old_message_max_tokens=500", "fidelity=sane"]);
    let caps = ["0.016 × 10,000 = 160", "old_message_max_tokens=500", "may have 500 tokens", "protected messages stay"];
    told("history-trim", &other, &caps);
    told("history-trim", &set(&["max_history_tokens=1000000000"]), &["nothing is dropped", "0.016 × 32,000 = 260"]);
    let picks = [
        "(overlap=tool) = |Q∩T| / |T|",
        "the 3 tools with the best score that is at least min_score = 0.05",
        "mcp__weather__get_forecast with 1 / ",
        "(shared: weather)",
    ];
    told("pick-tools", &["--tool-catalog", &catalog], &picks);
    told("pick-tools", &["--tool-catalog", &catalog, "--set", "overlap=cosine"], &["√((Σ q·t)²", "with √(4 / "]);
    // 27 reads, 24 edits, and 7 forecasts that only the catalog knows.
    let unknown =
        ["58 = 51 valid + 7 unknown_tool", "= 51 / (58 − 7)", "coercible (runs): ", "parse_error (refused): "];
    told("arg-check", &[], &unknown);
    told("arg-check", &["--tool-catalog", &catalog], &["calls = Σ classes: 58 = 58 valid", "= 58 / (58 − 0)"]);
}

#[test]
fn every_policy_says_where_its_approximations_lean_and_the_page_says_the_same() {
    let (text, home) = (include_str!("../../rules/policies/bias.toml"), home());
    let rows = fitting::<crate::whatif::sim::params::Bias>(text, "bias.toml").unwrap().leaning;
    let page = include_str!("../../docs/policies.md").split("\n## Where the approximations lean\n").nth(1).unwrap();
    let page: Vec<&str> = page.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| ")).collect();
    let names = |names: &[String]| {
        let one = |name: &String| if name == "all" { name.clone() } else { format!("`{name}`") };
        names.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let expected = rows.iter().map(|row| format!("| {} | {} | {} |", row.text, row.leans, names(&row.policy)));
    assert_eq!(page[2..], expected.collect::<Vec<_>>());
    for name in rows.iter().flat_map(|row| &row.policy) {
        assert!(name == "all" || POLICIES.contains(&name.as_str()), "{name} is no policy");
    }
    for policy in POLICIES {
        let of = |row: &&crate::whatif::sim::params::Leaning| {
            let has = |name: &str| row.policy.iter().any(|one| one == name);
            has(policy) || (policy != "arg-check" && has("all"))
        };
        let lean: Vec<String> = rows.iter().filter(of).map(|row| format!("{} – {}", row.text, row.leans)).collect();
        assert!(!lean.is_empty(), "{policy}");
        assert_eq!(report(&home, policy, &[])["bias"], json!(lean), "{policy}");
        let explained = home.run(&words(policy, &["--explain"])).out;
        let lines: Vec<String> = lean.iter().map(|line| format!("- {line}")).collect();
        assert_eq!(section(&explained, "where approximations lean"), lines, "{policy}");
        assert!(!home.run(&words(policy, &[])).out.contains("where approximations lean"), "{policy}");
    }
    let stack = report(&home, "compaction+history-trim", &[])["bias"].as_array().unwrap().clone();
    let of_stack = |row: &&crate::whatif::sim::params::Leaning| {
        row.policy.iter().any(|name| ["all", "compaction", "history-trim"].contains(&name.as_str()))
    };
    assert_eq!(stack.len(), rows.iter().filter(of_stack).count(), "each once");
}

#[test]
fn savings_are_withheld_where_no_definition_that_counts_is_known() {
    let home = home();
    let tool = |name: &str, chars: usize| json!({ "name": name, "description": "d".repeat(chars), "input_schema": { "type": "object" } });
    let write =
        |name: &str, tools: Vec<Value>| home.write(name, Value::Array(tools).to_string()).to_str().unwrap().to_owned();
    let shown = write("shown.json", vec![tool("Read", 400), tool("Edit", 400)]);
    let huge = write("huge.json", vec![tool("Read", 10), tool("Huge", 400_000)]);
    for (more, why) in [
        (vec!["--tool-catalog", &shown], "of no tool that would be hidden"),
        (vec!["--tool-catalog", &huge], "larger than the static prefix of every chain"),
        (vec!["--set", "system_tokens=4294967296"], "nothing is left for definitions"),
    ] {
        let report = report(&home, "tool-filter", &more);
        assert!(
            report["not_estimated"].as_str().is_some_and(|told| told.contains(why)),
            "{more:?}: {}",
            report["not_estimated"]
        );
        assert_eq!((&report["simulated"], &report["delta"]["iet"]), (&Value::Null, &Value::Null));
    }
    let csv = home.run(&words("tool-filter", &["--per-session", "--format", "csv"])).out;
    let rows: Vec<Vec<String>> = csv.lines().skip(1).map(cells).collect();
    assert!(
        rows.len() == 3 && rows.iter().all(|row| !row[3].is_empty() && row[4..].iter().all(String::is_empty)),
        "{csv}"
    );
    let file = home.path("requests.jsonl");
    let written = home.run(&words("tool-filter", &["--per-request", file.to_str().unwrap()]));
    assert_eq!(written.exit, Exit::Done, "{}", written.err);
    let first: Value = serde_json::from_str(std::fs::read_to_string(file).unwrap().lines().next().unwrap()).unwrap();
    assert!(first["simulated"].is_null() && number(&first["baseline"]["write_1h"]) > 0, "{first}");
}

#[test]
fn a_provider_measures_definitions_for_every_policy_about_tools() {
    let home = home();
    let catalog = catalog(&home);
    let more = ["--tool-catalog", &catalog, "--provider", "openai"];
    let of = |policy: &str| report(&home, policy, &more)["details"][policy]["provider"].clone();
    assert!(of("tool-filter").is_object() && of("tool-filter") == of("arg-check"));
    let without = report(&home, "arg-check", &["--provider", "openai"]);
    assert!(without["notes"].to_string().contains("bring them with --tool-catalog"), "{}", without["notes"]);
    let all = home.run(&words("all", &["--tool-catalog", &catalog])).out;
    assert!(all.contains("would not have run"), "the row says what it found: {all}");
}

#[test]
fn calls_of_subagents_that_only_their_parent_repeats_are_checked_too() {
    let home = home();
    let asked = assistant("msg-sub", &[json!({ "type": "tool_use", "id": "toolu-sub", "name": "Read", "input": {} })]);
    let mut talk = Talk::new("s-six", 80_000);
    talk.turn(0);
    let progress = super::log_builder::agent_progress("sub", &asked.at(80_100)).session("s-six").at(80_100);
    let before =
        number(&report(&home, "arg-check", &[])["details"]["arg-check"]["arg_check"]["tools"]["Read"]["valid"]);
    home.write(".claude/projects/-home-user-orchard/six.jsonl", talk.text + &progress.line());
    let after = &report(&home, "arg-check", &[])["details"]["arg-check"]["arg_check"]["tools"]["Read"];
    assert_eq!((number(&after["valid"]), number(&after["invalid"])), (before + 1, 1), "{after}");
}

#[test]
fn nothing_at_all_is_no_saving() {
    let home = Home::new();
    home.write(".claude/projects/-p/a.jsonl", "{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"u\"}\n");
    fails(&home, &words("all", &[]), Exit::Failed, &["no requests to a model", "devboy ingest"]);
    let out = home.run(&words("prompt-cache", &["--allow-empty"])).out;
    assert!(out.starts_with("prompt-cache: the log was billed nothing") && !out.contains("100.0 %"), "{out}");
}
