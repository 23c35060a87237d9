//! `devboy tune claude-settings` on generated logs: for every rule one in which it proposes (or tells), one in which it holds,
//! and one in which the client is too old.

use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use super::harness::Home;
use super::log_builder::{Record, START_MS, assistant, user};
use crate::base::data::Data;
use crate::base::files::WriteStep;
use crate::base::files::faults::Fault;
use crate::settings::claude::levers::{LeverUse, Levers};
use crate::shell::arguments::Exit;
use crate::whatif::client::thresholds::ClientThresholds;

/// A kind of session.
#[derive(Clone)]
pub(super) struct Kind {
    pub(super) version: &'static str,
    /// Seconds between turns.
    pub(super) pause: u32,
    /// Whether what is written lives an hour.
    pub(super) hour: bool,
    pub(super) turns: u32,
    /// Characters of the result of each turn.
    pub(super) result: usize,
    /// Tokens of each answer, as usage says.
    pub(super) output: u64,
    pub(super) tool: &'static str,
    /// Whether the next call names what stands at the end of a result.
    pub(super) names: bool,
    pub(super) agent: bool,
    /// Tokens of a context from which on the client compacts by itself.
    pub(super) compacts_at: u64,
    pub(super) cwd: String,
    pub(super) sessions: u32,
    /// What their names begin with.
    pub(super) name: &'static str,
    /// The day of the first one.
    pub(super) day: u32,
}

impl Default for Kind {
    fn default() -> Self {
        let (version, tool, cwd) = ("2.1.290", "Bash", "/home/u/p".to_owned());
        Self {
            version,
            pause: 20,
            hour: false,
            turns: 6,
            result: 900,
            output: 60,
            tool,
            names: false,
            agent: false,
            compacts_at: u64::MAX,
            cwd,
            sessions: 14,
            name: "s",
            day: 0,
        }
    }
}

/// A chain as its file would hold it.
struct Teller<'k> {
    kind: &'k Kind,
    session: String,
    is_agent: bool,
    second: i64,
    text: String,
    parent: Option<String>,
    number: u32,
    context: u64,
    cached: u64,
    grown: u64,
    last: Option<i64>,
}

/// Tokens of tools and system prompt.
const PREFIX: u64 = 30_000;

impl Teller<'_> {
    fn push(&mut self, record: Record, chars: usize) {
        self.number += 1;
        let uuid = format!("{}-{}-{}", self.session, self.is_agent, self.number);
        let at = jiff::Timestamp::from_millisecond(START_MS + self.second * 1_000).unwrap().to_string();
        let record = record.session(&self.session).link(&uuid, self.parent.as_deref());
        let record = record.set("timestamp", at).set("version", self.kind.version).set("cwd", self.kind.cwd.as_str());
        let record = if self.is_agent { record.agent("a1") } else { record };
        self.text += &record.line();
        self.parent = Some(uuid);
        self.grown += chars as u64 / 3 + 40;
    }

    fn request(&mut self, block: Value) {
        let lives = if self.kind.hour { 3_600 } else { 300 };
        let is_alive = self.last.is_some_and(|last| self.second - last <= lives);
        let read = if is_alive { self.cached } else { 0 };
        self.context += self.grown;
        self.grown = 0;
        let written = self.context - read;
        let (five, hour) = if self.kind.hour { (0, written) } else { (written, 0) };
        let usage = json!({
            "input_tokens": 3, "output_tokens": self.kind.output, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "cache_creation": { "ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour },
        });
        self.cached = self.context;
        let chars = block.to_string().len();
        let message = format!("m-{}-{}-{}", self.session, self.is_agent, self.number);
        // Another model shares no prefix with the main thread.
        let model = if self.is_agent { "claude-sonnet-4-5" } else { "claude-opus-4-5" };
        let record = assistant(&message, &[block]).message("usage", usage).message("model", model);
        self.push(record, chars);
        self.last = Some(self.second);
        self.second += 2;
    }

    fn turn(&mut self, turn: u32) {
        let words = format!("please go on with step {turn} of the work at hand");
        self.push(user("", words.as_str()), words.len());
        let id = format!("toolu-{}-{}-{turn}", self.session, self.is_agent);
        let input = json!({ "command": format!("step {turn}") });
        self.request(json!({ "type": "tool_use", "id": id, "name": self.kind.tool, "input": input }));
        let body: String = (0..).map(|n| format!("word {n} ")).take(self.kind.result / 7 + 1).collect();
        let name = format!("module_{turn}_case_{}", turn * 7_919);
        let tail = if self.kind.names { format!(" {name}") } else { String::new() };
        let body = format!("{}{tail}", &body[..self.kind.result.min(body.len())]);
        self.push(user("", vec![json!({ "type": "tool_result", "tool_use_id": id, "content": body })]), body.len());
        if self.kind.names {
            let (id, input) = (format!("{id}-again"), json!({ "command": format!("test {name}") }));
            self.request(json!({ "type": "tool_use", "id": id, "name": "Bash", "input": input }));
            self.push(user("", vec![json!({ "type": "tool_result", "tool_use_id": id, "content": "ok" })]), 2);
        }
        self.request(json!({ "type": "text", "text": "this step is done" }));
        if self.context + self.grown >= self.kind.compacts_at {
            self.compact(turn);
        }
        self.second += i64::from(self.kind.pause);
    }

    /// The client sums the context up: what it said so far goes, tools and system prompt stay in the cache.
    fn compact(&mut self, turn: u32) {
        let before = self.context + self.grown;
        let metadata = json!({ "trigger": "auto", "preTokens": before });
        let said = self.parent.take();
        let record = Record::new("system", "").set("subtype", "compact_boundary").set("compactMetadata", metadata);
        self.push(record.set("logicalParentUuid", said), 0);
        (self.context, self.cached, self.grown) = (PREFIX, PREFIX, 0);
        let summary = format!("what was done up to step {turn}: {}", "all of it as asked for; ".repeat(370));
        self.push(user("", summary.as_str()).set("isCompactSummary", true), summary.len());
    }
}

/// Writes sessions of a kind, a day apart each.
pub(super) fn told(home: &Home, kind: &Kind) {
    for number in 0..kind.sessions {
        let session = format!("{}{number:02}", kind.name);
        let teller = |is_agent| {
            let (second, parent, text) = (i64::from(kind.day + number) * 86_400, None, String::new());
            let (context, cached, grown, last, session) = (PREFIX, 0, 0, None, session.clone());
            let mut teller =
                Teller { kind, session, is_agent, second, text, parent, number: 0, context, cached, grown, last };
            (0..kind.turns).for_each(|turn| teller.turn(turn));
            teller.text
        };
        home.write(&format!(".claude/projects/-home-u-p/{session}.jsonl"), teller(false));
        if kind.agent {
            home.write(&format!(".claude/projects/-home-u-p/{session}/subagents/agent-a1.jsonl"), teller(true));
        }
    }
}

pub(super) const TUNE: [&str; 2] = ["tune", "claude-settings"];

/// What a rule says about a subject.
pub(super) fn finding(home: &Home, rule: &str, subject: &str, more: &[&str]) -> Value {
    let report = home.json(&[&TUNE[..], &["--dry-run"], more].concat());
    let found = report["findings"].as_array().unwrap().iter();
    let mut found = found.filter(|finding| finding["rule"] == rule && finding["subject"] == subject);
    found.next().unwrap_or_else(|| panic!("{rule} says nothing of {subject}: {report:#}")).clone()
}

pub(super) fn judged(kind: Kind, rule: &str, subject: &str) -> (String, Value) {
    let home = Home::new();
    told(&home, &kind);
    let finding = finding(&home, rule, subject, &[]);
    (finding["verdict"].as_str().unwrap().to_owned(), finding)
}

/// Proposed in the first, held in the second, and held in the first for an older client.
fn thrice(rule: &str, subject: &str, pays: Kind, loses: Kind, old: &'static str, key: &str, value: &Value) {
    let (verdict, found) = judged(pays.clone(), rule, subject);
    assert_eq!((verdict.as_str(), &found["key"], &found["new"]), ("propose", &json!(key), value), "{found:#}");
    let effect = &found["effect"];
    assert!(effect["change"].as_f64().unwrap() < 0.0 && effect["upper"].as_f64().unwrap() < 0.0, "{effect}");
    assert!(effect["sessions"].as_u64().unwrap() >= 5 && effect["chosen_on"].as_u64().unwrap() >= 5, "{effect}");
    let (verdict, found) = judged(loses, rule, subject);
    assert_eq!(verdict, "hold", "{found:#}");
    let reason = found["reason"].as_str().unwrap();
    assert!(reason.contains("no effect") || reason.contains("loses"), "{reason}");
    let (verdict, found) = judged(Kind { version: old, ..pays }, rule, subject);
    assert_eq!(verdict, "hold", "{found:#}");
    let reason = found["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("update Claude Code first: ") && reason.contains(&format!("; {old} was in use on 2026-01-")),
        "{reason}"
    );
}

#[test]
fn the_lifetime_of_main_threads_is_set_where_pauses_outlive_five_minutes() {
    let pays = Kind { pause: 900, ..Kind::default() };
    let loses = Kind { pause: 15, ..Kind::default() };
    thrice("S1", "cache lifetime, main threads", pays, loses, "2.1.240", "promptCacheTtl", &json!("1h"));
}

#[test]
fn a_lifetime_of_an_hour_is_taken_back_where_nobody_pauses() {
    let (verdict, found) =
        judged(Kind { hour: true, turns: 20, result: 6_000, ..Kind::default() }, "S1", "cache lifetime, main threads");
    assert_eq!((verdict.as_str(), &found["new"]), ("propose", &json!("5m")), "{found:#}");
}

#[test]
fn the_lifetime_of_subagents_is_set_for_them_alone() {
    let pays = Kind { pause: 900, agent: true, ..Kind::default() };
    let loses = Kind { pause: 15, agent: true, ..Kind::default() };
    thrice("S2", "cache lifetime, subagents", pays, loses, "2.1.240", "subagentPromptCacheTtl", &json!("1h"));
    let (verdict, found) = judged(Kind { pause: 900, ..Kind::default() }, "S2", "cache lifetime, subagents");
    assert_eq!(verdict, "skip", "without subagents: {found:#}");
}

#[test]
fn the_window_is_set_where_long_contexts_are_carried_along() {
    let pays = Kind { turns: 45, result: 9_000, tool: "Fetch", ..Kind::default() };
    let loses = Kind { turns: 3, ..Kind::default() };
    thrice("S3", "automatic compaction", pays.clone(), loses, "2.1.239", "autoCompactWindow", &json!(150_000));
    // An older client knows the variable only.
    let (verdict, found) = judged(Kind { version: "2.1.250", ..pays }, "S3", "automatic compaction");
    assert_eq!((verdict.as_str(), &found["new"]), ("propose", &json!("150000")), "{found:#}");
    assert_eq!(found["key"], "env.CLAUDE_CODE_AUTO_COMPACT_WINDOW");
}

/// What pays but waits for an update is said without being asked for.
#[test]
fn what_an_older_client_does_not_know_is_told_with_what_to_update() {
    let home = Home::new();
    told(&home, &Kind { turns: 45, result: 9_000, tool: "Fetch", version: "2.1.239", ..Kind::default() });
    let outcome = home.run(&TUNE);
    let waits = "# S3 autoCompactWindow = 150000 pays here, but update Claude Code first: ";
    assert!(outcome.out.contains(waits) && outcome.out.contains("#      effect: "), "{}", outcome.out);
    let line = "what pays here waits for an update of Claude Code: autoCompactWindow = 150000 (";
    assert!(outcome.out.lines().next().unwrap().contains(line), "{}", outcome.out);
    assert!(!home.path(".claude/settings.json").exists());
}

/// The search finds what the rules propose, by the same sessions.
#[test]
fn the_search_says_of_each_setting_what_its_rule_says() {
    let home = Home::new();
    told(&home, &Kind { turns: 45, result: 9_000, tool: "Fetch", version: "2.1.290", ..Kind::default() });
    let found = home.json(&["tune", "search", "--dry-run"]);
    let rows = found["claude_settings"].as_array().unwrap();
    let window = rows.iter().find(|row| row["setting"].as_str().unwrap().starts_with("window")).unwrap();
    let rule = finding(&home, "S3", "automatic compaction", &[]);
    assert_eq!((&window["value"], &rule["new"]), (&json!(150_000), &json!(150_000)), "{rows:#?}");
    assert_eq!(window["later_change"], rule["effect"]["change"], "{rule:#}");
    // Values of one lever are no looks at another, and all that saves is replayed as one configuration.
    let tried: u64 = rows.iter().map(|row| row["values_tried"].as_u64().unwrap()).sum();
    assert!(tried > rows.len() as u64, "{rows:#?}");
    let saving = rows.iter().filter(|row| row["earlier_change"].as_f64().is_some_and(|change| change < 0.0)).count();
    assert!(saving > 0, "{rows:#?}");
    let together = rows.iter().any(|row| row["setting"].as_str().unwrap().starts_with("all that saved"));
    assert_eq!(
        together,
        saving > 2 || (saving == 2 && rows.last().unwrap()["value"].as_array().is_some_and(|all| all.len() == 2)),
        "{rows:#?}"
    );
    // Nothing is claimed of logs without a request.
    let empty = Home::new();
    let run = empty.run(&["tune", "search", "--dry-run"]);
    assert_ne!(run.exit, Exit::Done);
}

/// The page and the settings are about the same value of the same lever, or about the same update.
#[test]
fn the_page_proposes_what_would_be_written() {
    let advice = |version: &'static str| {
        let home = Home::new();
        told(&home, &Kind { turns: 45, result: 9_000, tool: "Fetch", version, ..Kind::default() });
        let report = home.json(&["report"]);
        let found = report["findings"].as_array().unwrap().iter().find(|found| found["id"] == "context_growth");
        let found = found.unwrap_or_else(|| panic!("{report:#}")).clone();
        assert_eq!(found["command"], "devboy report --finding context_growth");
        let settings = finding(&home, "S3", "automatic compaction", &[]);
        (found["advice"].as_str().unwrap().to_owned(), settings)
    };
    let (words, settings) = advice("2.1.290");
    assert_eq!((&settings["key"], &settings["new"]), (&json!("autoCompactWindow"), &json!(150_000)), "{settings:#}");
    assert!(words.starts_with("in ~/.claude/settings.json set \"autoCompactWindow\": 150000 ("), "{words}");
    let (words, settings) = advice("2.1.250");
    assert_eq!(settings["new"], "150000", "{settings:#}");
    let variable = "in ~/.claude/settings.json set \"env\": { \"CLAUDE_CODE_AUTO_COMPACT_WINDOW\": \"150000\" }";
    assert!(words.starts_with(variable), "{words}");
    let (words, settings) = advice("2.1.200");
    let reason = settings["reason"].as_str().unwrap();
    assert!(words.starts_with(&format!("{reason}. Then in ~/.claude")), "{words}: {reason}");
    assert!(reason.starts_with("update Claude Code first: autoCompactWindow is documented for 2.1.288"), "{reason}");
    assert!(reason.contains("; 2.1.200 was in use on 2026-01-"), "{reason}");
}

/// What saves a good part of the input and next to nothing of the whole bill is proposed by neither.
#[test]
fn the_page_tells_no_setting_that_would_not_be_written() {
    for (output, is_told) in [(60, true), (20_000, false)] {
        let home = Home::new();
        told(&home, &Kind { hour: true, output, ..Kind::default() });
        let page = home.json(&["report"]);
        let found = page["findings"].as_array().unwrap().iter().find(|found| found["id"] == "cache_lifetime_short");
        let settings = finding(&home, "S1", "cache lifetime, main threads", &[]);
        assert_eq!((found.is_some(), settings["verdict"] == "propose"), (is_told, is_told), "{page:#} {settings:#}");
        // Its figures are of the input alone.
        let input = page["spent"]["input"]["nano_usd"].as_f64().unwrap() / 1e9;
        let before = found.map(|found| found["before_usd"].as_f64().unwrap());
        assert!(before.is_none_or(|before| (before - input).abs() < 0.01 * input), "{before:?} {input}");
    }
}

/// What the command would only name an update for is not said to be written.
#[test]
fn the_page_promises_no_write_before_an_update() {
    let line = |version: &'static str| {
        let home = Home::new();
        told(&home, &Kind { turns: 45, result: 9_000, tool: "Fetch", version, ..Kind::default() });
        let out = home.run(&["report"]).out;
        let line = out.lines().find(|line| line.starts_with("Settings: `devboy tune claude-settings --dry-run"));
        line.unwrap_or_else(|| panic!("{out}")).to_owned()
    };
    let (known, unknown) = (line("2.1.290"), line("2.1.200"));
    let ends =
        "(the effects above are of all sessions of the page), and shows what pays; without --dry-run it writes it.";
    assert!(known.ends_with(ends), "{known}");
    assert!(unknown.ends_with("says what to update before they can be written."), "{unknown}");
}

/// What stands in the user's settings, or is switched off there, is said in place of what to do, and not proposed again.
#[test]
fn what_is_set_or_switched_off_already_is_no_advice() {
    let said = |settings: &str| {
        let home = Home::new();
        told(&home, &Kind { turns: 45, result: 9_000, tool: "Fetch", version: "2.1.290", ..Kind::default() });
        home.write(".claude/settings.json", settings);
        let advice = home.advice("context_growth", &[]);
        (advice, finding(&home, "S3", "automatic compaction", &[]))
    };
    let (advice, rule) = said("{\"autoCompactWindow\": 150000}");
    assert!(advice.starts_with("autoCompactWindow is 150000 already: done"), "{advice}");
    assert_eq!(rule["verdict"], "skip", "{rule:#}");
    let (advice, _) = said("{\"autoCompactWindow\": 1000000}");
    assert!(advice.contains("; autoCompactWindow is 1000000 now, which may save part"), "{advice}");
    for off in [
        "{\"autoCompactEnabled\": false}",
        "{\"env\": {\"DISABLE_AUTO_COMPACT\": \"1\"}}",
        "{\"env\": {\"DISABLE_COMPACT\": \"true\"}}",
    ] {
        let (advice, rule) = said(off);
        assert!(advice.starts_with("first correct this: autoCompactWindow is overridden by "), "{off}: {advice}");
        assert_eq!(rule["verdict"], "hold", "{off}: {rule:#}");
        assert!(rule["reason"].as_str().unwrap().contains("is overridden by "), "{rule:#}");
    }
    for on in ["{\"autoCompactEnabled\": true}", "{\"env\": {\"DISABLE_AUTO_COMPACT\": \"0\"}}"] {
        assert_eq!(said(on).1["verdict"], "propose", "{on}");
    }
}

/// Results of 25,000 characters are cut to the same preview under every limit that is tried: the mildest is proposed, and
/// none beside one that stands.
#[test]
fn a_value_that_is_as_good_as_the_best_stays() {
    let home = home_of(&Kind { turns: 7, result: 25_000, tool: "Bash", ..Kind::default() });
    let standing = |value: u64| {
        home.write(".claude/settings.json", format!("{{\"bashOutputMaxChars\": {value}}}"));
        finding(&home, "S4", "shell output", &[])
    };
    let (beyond, as_good) = (standing(30_000), standing(8_000));
    assert_eq!((&beyond["verdict"], &beyond["new"]), (&json!("propose"), &json!(20_000)), "{beyond:#}");
    assert_eq!(as_good["verdict"], "skip", "{as_good:#}");
    assert_eq!(as_good["reason"], "no value is cheaper than 8000, which is set already");
}

/// Whoever changes a value saves beside that value, also one that is not among those that are tried, however it is written.
#[test]
fn an_effect_is_told_beside_what_is_set() {
    let home = home_of(&Kind { turns: 45, result: 9_000, tool: "Fetch", version: "2.1.290", ..Kind::default() });
    let change = |settings: &str| {
        home.write(".claude/settings.json", settings);
        let found = finding(&home, "S3", "automatic compaction", &[]);
        assert_eq!((&found["verdict"], &found["new"]), (&json!("propose"), &json!(150_000)), "{settings}: {found:#}");
        found["effect"]["change"].as_f64().unwrap()
    };
    let beside_the_log = change("{}");
    assert_eq!(change("{\"autoCompactWindow\": 1000000}"), beside_the_log, "no context is that large");
    let beside = ["200000", "180000", "1.8e5"].map(|value| change(&format!("{{\"autoCompactWindow\": {value}}}")));
    assert_eq!(beside[1], beside[2]);
    assert!(beside_the_log < beside[0] && beside[0] < beside[1] && beside[1] < 0.0, "{beside_the_log} {beside:?}");
}

#[test]
fn long_results_are_shown_in_part_where_nobody_needs_the_rest() {
    let of = |tool: &'static str, result: usize| Kind { turns: 7, result, tool, ..Kind::default() };
    let (shell, mcp, read) = ("shell output", "results of MCP tools", "readings of files");
    thrice("S4", shell, of("Bash", 25_000), of("Bash", 500), "2.1.260", "bashOutputMaxChars", &json!(20_000));
    let tool = "mcp__tracker__list";
    let key = "env.MAX_MCP_OUTPUT_TOKENS";
    thrice("S4", mcp, of(tool, 60_000), of(tool, 500), "2.1.239", key, &json!("15000"));
    let key = "env.CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS";
    thrice("S4", read, of("Read", 60_000), of("Read", 500), "2.0.99", key, &json!("5000"));
}

/// Dollars of all input of a home, with those of the calls that sum contexts up, which are in no log.
fn input_usd(home: &Home) -> f64 {
    let spent = home.json(&["report"])["spent"].take();
    let dollars = |part: &str| spent[part]["nano_usd"].as_f64().unwrap() / 1e9;
    dollars("input") + dollars("unlogged")
}

/// Shorter results put compactions off, and contexts grow to the same size again: what is promised is what sessions with short
/// results cost that are compacted at the same size.
#[test]
fn shorter_results_save_what_sessions_with_them_cost_less_also_where_they_are_compacted() {
    // What is left of a long result, with the words on where the rest is.
    const SHORT: usize = 2_150;
    for compacts_at in [u64::MAX, 67_000] {
        let long = Kind { turns: 40, result: 21_000, compacts_at, ..Kind::default() };
        let [home, short] = [long.clone(), Kind { result: SHORT, ..long }].map(|kind| home_of(&kind));
        let found = finding(&home, "S4", "shell output", &[]);
        assert_eq!(found["verdict"], "propose", "{found:#}");
        let (promised, holds) =
            (found["effect"]["change"].as_f64().unwrap(), input_usd(&short) / input_usd(&home) - 1.0);
        assert!((promised - holds).abs() < 0.05, "compacted at {compacts_at}: {promised} said, {holds} true");
    }
}

/// The window that stands made the compactions of the log: replayed, it costs what the log costs, and no wider one is cheaper.
#[test]
fn a_window_that_stands_is_not_replayed_on_top_of_what_it_did() {
    // Contexts are sent that are larger than the window compacts at.
    let home = home_of(&Kind { turns: 40, result: 9_000, compacts_at: 70_000, ..Kind::default() });
    home.write(".claude/settings.json", "{\"autoCompactWindow\": 100000}");
    let found = finding(&home, "S3", "automatic compaction", &[]);
    assert_eq!(found["reason"], "no value is cheaper than 100000, which is set already", "{found:#}");
}

/// Told in the first home, in other words or held in the second, held for an older client.
fn hinted(rule: &str, subject: &str, more: &[&str], homes: [&Home; 3], other: &str, old: &str) {
    let [told, quiet, too_old] = homes.map(|home| finding(home, rule, subject, more));
    assert_eq!(told["verdict"], "hint", "{told:#}");
    assert_eq!(quiet["verdict"], other, "{quiet:#}");
    assert_eq!(too_old["verdict"], "hold", "{too_old:#}");
    assert!(too_old["reason"].as_str().unwrap().contains(&format!("; {old} was in use on ")), "{too_old:#}");
}

pub(super) fn home_of(kind: &Kind) -> Home {
    let home = Home::new();
    let cwd = home.path("work").to_str().unwrap().to_owned();
    told(&home, &Kind { cwd, ..kind.clone() });
    home
}

#[test]
fn servers_that_a_project_never_calls_are_told_of_and_never_written() {
    let with_servers = |kind: &Kind| {
        let home = home_of(kind);
        home.write("work/.mcp.json", r#"{"mcpServers": {"tracker": {"command": "x"}, "idle": {"url": "y"}}}"#);
        home
    };
    let calls = Kind { tool: "mcp__tracker__list", ..Kind::default() };
    let homes = [&calls, &Kind { sessions: 3, ..calls.clone() }, &Kind { version: "2.1.200", ..calls.clone() }];
    let homes = homes.map(with_servers);
    let scope = ["--scope", "project"];
    hinted("S5", "idle", &scope, [&homes[0], &homes[1], &homes[2]], "hold", "2.1.200");
    assert_eq!(finding(&homes[0], "S5", "tracker", &scope)["verdict"], "skip");
    let odd = home_of(&Kind { tool: "mcp__docs__v2___search", ..Kind::default() });
    odd.write("work/.mcp.json", r#"{"mcpServers": {"docs (v2)": {"command": "x"}}}"#);
    assert_eq!(finding(&odd, "S5", "docs (v2)", &scope)["reason"], "it is called");
    // However it is denied.
    for (server, entry) in [
        ("idle", r#"{"serverName": "idle"}"#),
        ("idle", r#"{"serverUrl": "https://*.example.org/y"}"#),
        ("own", r#"{"serverName": "own"}"#),
        ("own", r#"{"serverCommand": ["npx", "-y", "own"]}"#),
    ] {
        let home = home_of(&calls);
        let servers =
            r#"{"idle": {"url": "https://mcp.example.org/y"}, "own": {"command": "npx", "args": ["-y", "own"]}}"#;
        home.write("work/.mcp.json", format!("{{\"mcpServers\": {servers}}}"));
        home.write(".claude/settings.json", format!("{{\"deniedMcpServers\": [{entry}]}}"));
        for name in ["idle", "own"] {
            let verdict = if name == server { "skip" } else { "hint" };
            assert_eq!(finding(&home, "S5", name, &scope)["verdict"], verdict, "{entry}: {name}");
        }
    }
    let outcome = homes[0].run(&[&TUNE[..], &scope].concat());
    assert!(outcome.out.contains("S5 hint idle: never called here"), "{}", outcome.out);
    assert!(!homes[0].path("work/.claude").exists(), "a hint is not written");
}

#[test]
fn the_list_of_skills_the_retention_and_the_model_of_subagents_are_told_of() {
    let kind = Kind { agent: true, ..Kind::default() };
    let [all, few, old] =
        [&kind, &Kind { sessions: 4, ..kind.clone() }, &Kind { version: "2.1.60", ..kind.clone() }].map(home_of);
    hinted("S6", "list of skills", &[], [&all, &few, &old], "hold", "2.1.60");
    let kept = home_of(&kind);
    kept.write(".claude/settings.json", "{\"cleanupPeriodDays\": 400}");
    let oldest = home_of(&Kind { version: "0.2.100", ..kind });
    hinted("S8", "retention of logs", &[], [&all, &kept, &oldest], "skip", "0.2.100");
    let alone = home_of(&Kind::default());
    hinted("S7", "model of subagents", &[], [&all, &alone, &old], "skip", "2.1.60");
}

/// A log in which an hour pays, and settings.
pub(super) fn pausing(settings: &str) -> Home {
    let home = Home::new();
    told(&home, &Kind { pause: 900, ..Kind::default() });
    if !settings.is_empty() {
        home.write(".claude/settings.json", settings);
    }
    home
}

/// To the client it is as if it were not there.
#[test]
fn a_null_sets_nothing_and_is_told_as_nothing() {
    let home = pausing("{\"promptCacheTtl\": null}");
    let out = home.run(&[&TUNE[..], &["--dry-run"]].concat()).out;
    assert!(out.contains("# S1 promptCacheTtl: \"1h\"\n"), "{out}");
}

#[test]
fn what_was_taken_back_is_not_proposed_again_until_somebody_asks_for_it() {
    let home = pausing("");
    let path = home.path(".claude/settings.json");
    let subject = "cache lifetime, main threads";
    assert_eq!(home.run(&TUNE).exit, Exit::Done);
    let written = fs::read_to_string(&path).unwrap();
    assert_eq!(home.run(&["tune", "undo"]).exit, Exit::Done);
    let held = finding(&home, "S1", subject, &[]);
    assert!(held["verdict"] == "hold" && held["reason"].as_str().unwrap().contains("was taken back on"), "{held:#}");
    assert_eq!(home.run(&[&TUNE[..], &["--check"]].concat()).exit, Exit::Done);
    // The first line says so, and a page that finds the same does not advise it as if it were new.
    let answer = home.run(&TUNE).out;
    let words = held["reason"].as_str().unwrap().strip_prefix("`promptCacheTtl \"1h\"` ").unwrap().to_owned();
    let why = format!("settings.json: what pays here (promptCacheTtl \"1h\") {words}; ");
    assert!(answer.starts_with("Nothing to change in ") && answer.contains(&why), "{answer}");
    let page = home.run(&["report"]).out;
    assert!(page.contains(&format!("promptCacheTtl \"1h\" {words}; effect of \"1h\": ")), "{page}");
    // Where something is in the way, that is told: to set it again would change nothing.
    fs::write(&path, "{\"env\": {\"DISABLE_PROMPT_CACHING\": \"1\"}}").unwrap();
    let page = home.run(&["report"]).out;
    assert!(page.contains("DISABLE_PROMPT_CACHING") && !page.contains("was taken back"), "{page}");
    assert!(!page.contains("without --dry-run it writes"), "{page}");
    // Set by hand since, it is judged like any other value.
    fs::write(&path, "{\"promptCacheTtl\": \"5m\"}").unwrap();
    assert_eq!(finding(&home, "S1", subject, &[])["verdict"], "propose");
    assert!(!home.run(&["report"]).out.contains("was taken back on"));
    fs::write(&path, "{}\n").unwrap();
    let undo = home.json(&["tune", "history"])["entries"][1]["id"].as_str().unwrap().to_owned();
    assert!(held["reason"].as_str().unwrap().ends_with(&format!("`devboy tune undo {undo}` sets it again")));
    assert_eq!(home.run(&["tune", "undo", &undo]).exit, Exit::Done);
    assert_eq!(fs::read_to_string(&path).unwrap(), written);
    // What is made again is expected to do the same.
    let entries = home.json(&["tune", "history"])["entries"].clone();
    let forecast = |place: usize| &entries[place]["changes"][0]["forecast"];
    assert!(forecast(0).is_object() && forecast(1).is_null() && forecast(2) == forecast(0), "{entries:#}");
}

#[test]
fn a_value_goes_that_no_longer_suits_the_work() {
    let home = Home::new();
    let before = Kind { pause: 900, hour: true, turns: 3, sessions: 300, ..Kind::default() };
    told(&home, &before);
    told(&home, &Kind { pause: 20, sessions: 200, name: "t", day: 300, ..before });
    home.write(".claude/settings.json", "{\"promptCacheTtl\": \"1h\"}");
    let found = finding(&home, "S1", "cache lifetime, main threads", &[]);
    assert_eq!((&found["verdict"], &found["new"]), (&json!("propose"), &json!("5m")), "{found:#}");
    assert_eq!(found["effect"]["chosen_on"], 120);
}

#[test]
fn one_clock_that_ran_ahead_makes_no_session_too_old() {
    let split = ClientThresholds::load(&Data::default()).unwrap().split;
    let hour = 3_600_000;
    let at = |hours: i64| (hours * hour, hours * hour);
    let mut spans: Vec<(i64, i64)> = (0..1_000).map(at).collect();
    spans.push(at(10_000));
    assert_eq!(split.sides(&spans).filter(Option::is_some).count(), 1_001);
    // Of work that went on until then, the last 90 days count.
    spans.extend((10_000..11_000).map(at));
    assert_eq!(split.sides(&spans).filter(Option::is_some).count(), 1_001);
    // A session counts by when it was left: one that was resumed in these days is not too old.
    spans[7].1 = 10_500 * hour;
    let sides: Vec<Option<bool>> = split.sides(&spans).collect();
    assert_eq!((sides[6], sides[7], sides.iter().flatten().count()), (None, Some(true), 1_002));
}

#[test]
fn the_settings_are_written_noted_and_taken_back() {
    for settings in
        ["", "{}\n", "\u{feff}{\r\n\t\"model\": \"opus\",\r\n\t\"own\": [1,2 ,3]\r\n}", "{\"env\":{\"A\":\"1\"}}"]
    {
        let home = pausing(settings);
        let path = home.path(".claude/settings.json");
        let outcome = home.run(&TUNE);
        assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
        let text = fs::read_to_string(&path).unwrap();
        let held: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap();
        assert_eq!(held["promptCacheTtl"], "1h", "{text}");
        let again = home.run(&TUNE);
        assert!(again.out.starts_with("Nothing to change in "), "{}", again.out);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let history = home.json(&["tune", "history"]);
        let entry = &history["entries"][0];
        assert_eq!((&entry["command"], &entry["target"]), (&json!("tune claude-settings"), &json!("claude-settings")));
        let forecast = &entry["changes"][0]["forecast"];
        assert!(forecast["lower"].as_f64().unwrap() <= forecast["change"].as_f64().unwrap(), "{entry:#}");
        // Logs that are named have to be there.
        let nowhere = home.run(&["tune", "history", "--log-dir", "nowhere"]);
        assert!(nowhere.exit == Exit::Failed && nowhere.err.contains("--log-dir names the folder"), "{}", nowhere.err);
        let undone = home.run(&["tune", "undo"]);
        assert_eq!(undone.exit, Exit::Done, "{}", undone.err);
        let back = fs::read_to_string(&path).unwrap();
        assert_eq!(back, if settings.is_empty() { "{}\n" } else { settings });
        let entry = home.json(&["tune", "history"])["entries"][0].clone();
        assert_eq!(entry["undone"], true);
        let again = home.run(&["tune", "undo"]);
        let id = entry["id"].as_str().unwrap();
        assert!(again.err.contains(&format!("settings.json: {id} is undone")), "{}", again.err);
    }
}

#[test]
fn nothing_is_written_where_nothing_pays_and_that_is_one_line() {
    let home = Home::new();
    told(&home, &Kind { turns: 3, ..Kind::default() });
    let outcome = home.run(&TUNE);
    assert_eq!(outcome.exit, Exit::Done);
    let told = format!("{}{}", outcome.out, outcome.err);
    assert_eq!(told.matches("Nothing to change in ").count(), 1, "{told}");
    assert!(
        !home.path(".claude/settings.json").exists() && !home.config().with_file_name("tuning-journal.jsonl").exists()
    );
}

#[test]
fn what_wins_over_the_file_is_named() {
    let held = |home: &Home, more: &[&str]| {
        let found = finding(home, "S1", "cache lifetime, main threads", more);
        assert_eq!(found["verdict"], "hold", "{found:#}");
        found["reason"].as_str().unwrap().to_owned()
    };
    let home = pausing("");
    home.write("managed/managed-settings.json", "{\"promptCacheTtl\": \"5m\"}");
    let reason = held(&home, &[]);
    assert!(reason.contains("managed-settings.json and cannot be overridden here"), "{reason}");
    let home = pausing("");
    home.variables.lock().unwrap().push("CLAUDE_CODE_PROMPT_CACHE_TTL=5m".to_owned());
    let reason = held(&home, &[]);
    assert!(reason.contains("set by the variable CLAUDE_CODE_PROMPT_CACHE_TTL"), "{reason}");
    let home = pausing("{\"env\": {\"FORCE_PROMPT_CACHING_5M\": \"1\"}}");
    let reason = held(&home, &[]);
    assert!(reason.contains("FORCE_PROMPT_CACHING_5M of"), "{reason}");
    let home = home_of(&Kind { pause: 900, ..Kind::default() });
    home.write("work/.claude/settings.local.json", "{\"promptCacheTtl\": \"5m\"}");
    let reason = held(&home, &["--scope", "project"]);
    assert!(reason.contains("settings.local.json and cannot be overridden here"), "{reason}");
    // It says nothing about other projects.
    told(&home, &Kind { pause: 900, cwd: "/home/u/other".to_owned(), name: "t", ..Kind::default() });
    assert_eq!(finding(&home, "S1", "cache lifetime, main threads", &[])["verdict"], "propose");
}

#[test]
fn the_page_names_the_lifetime_of_those_threads_for_which_it_pays() {
    let findings = |kind: Kind| {
        let page = home_of(&kind).json(&["report", "--since", "2026-01-01"]);
        let lifetimes = page["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|found| found["id"].as_str().unwrap().contains("cache_lifetime"));
        lifetimes.map(|found| (found["id"].clone(), found["sets"].clone())).collect::<Vec<_>>()
    };
    let long = |lever: &str| json!([{ "lever": lever, "value": "1h" }]);
    let pausing = Kind { pause: 900, ..Kind::default() };
    assert_eq!(findings(pausing.clone()), [(json!("cache_lifetime_long"), long("promptCacheTtl"))]);
    let with_agents = findings(Kind { agent: true, ..pausing });
    assert!(with_agents.contains(&(json!("subagent_cache_lifetime_long"), long("subagentPromptCacheTtl"))));
    assert!(findings(Kind { pause: 15, ..Kind::default() }).is_empty());
}

#[test]
fn a_month_is_the_same_however_its_window_is_asked_for() {
    let home = home_of(&Kind { pause: 900, sessions: 40, ..Kind::default() });
    // The first days of the last thirty have no request.
    for number in 10..15 {
        fs::remove_file(home.path(&format!(".claude/projects/-home-u-p/s{number}.jsonl"))).unwrap();
    }
    let months = |more: &[&str]| {
        let out = home.run(&[&["report", "--all"], more].concat()).out;
        let month =
            |line: &str| line.split_once(" a month").map(|(money, _)| money.rsplit(' ').next().unwrap().to_owned());
        out.lines().filter_map(month).collect::<Vec<_>>()
    };
    let cut = months(&[]);
    assert!(!cut.is_empty());
    assert_eq!(months(&["--since", "2026-01-12"]), cut);
    assert_ne!(months(&["--since", "2026-01-17"]), cut);
}

/// Logs whose contexts grow, at a place where a project and a user have settings.
pub(super) fn growing() -> Home {
    home_of(&Kind { turns: 45, result: 9_000, tool: "Fetch", version: "2.1.290", ..Kind::default() })
}

#[test]
fn what_holds_for_a_project_is_what_the_files_below_it_say_too() {
    let window = |settings: &str, scope: &str| {
        let home = growing();
        home.write(".claude/settings.json", settings);
        finding(&home, "S3", "automatic compaction", &["--scope", scope])
    };
    for scope in ["project", "local"] {
        assert_eq!(window("{}", scope)["verdict"], "propose");
        let set = window("{\"autoCompactWindow\": 150000}", scope);
        let reason = set["reason"].as_str().unwrap();
        assert_eq!(set["verdict"], "skip", "{set:#}");
        assert!(reason.contains("no value is cheaper than 150000, which is set already"), "{reason}");
        for (settings, why) in [
            ("{\"env\": {\"DISABLE_AUTO_COMPACT\": \"1\"}}", "overridden by DISABLE_AUTO_COMPACT in "),
            ("{\"env\": {\"CLAUDE_CODE_AUTO_COMPACT_WINDOW\": \"400000\"}}", "which wins over it"),
            ("{\"autoCompactWindow\": 150000, \"autoCompactEnabled\": false}", "overridden by autoCompactEnabled in "),
        ] {
            let held = window(settings, scope);
            assert!(
                held["verdict"] == "hold" && held["reason"].as_str().unwrap().contains(why),
                "{settings}: {held:#}"
            );
        }
    }
}

#[test]
fn only_what_is_in_force_is_set_already() {
    let window = |settings: &str, variables: &[&str]| {
        let home = growing();
        home.variables.lock().unwrap().extend(variables.iter().map(|name| (*name).to_owned()));
        home.write(".claude/settings.json", settings);
        finding(&home, "S3", "automatic compaction", &[])
    };
    let beside_the_log = window("{}", &[])["effect"].clone();
    // No client is known to take these, so nothing holds but the log.
    for odd in ["5000", "\"150000\"", "2000000"] {
        let found = window(&format!("{{\"autoCompactWindow\": {odd}}}"), &[]);
        assert_eq!((&found["verdict"], &found["effect"]), (&json!("propose"), &beside_the_log), "{odd}: {found:#}");
    }
    // An empty variable in a file takes that of the shell away.
    let variable = ["CLAUDE_CODE_AUTO_COMPACT_WINDOW=900000", "DISABLE_AUTO_COMPACT"];
    let empty = "{\"env\": {\"CLAUDE_CODE_AUTO_COMPACT_WINDOW\": \"\", \"DISABLE_AUTO_COMPACT\": \"\"}}";
    assert_eq!(window(empty, &variable)["verdict"], "propose");
    assert_eq!(window("{}", &variable[..1])["verdict"], "hold");
    assert_eq!(window("{}", &variable[1..])["verdict"], "hold");
    // A window for one model wins over that for all, for that model.
    let for_one = window("{\"modelSettings\": {\"claude-opus-4-5\": {\"autoCompactWindow\": 120000}}}", &[]);
    let reason = for_one["reason"].as_str().unwrap();
    assert!(reason.contains("set by modelSettings.claude-opus-4-5.autoCompactWindow of "), "{reason}");
    assert!(for_one["verdict"] == "hold" && reason.contains("which wins over it for that model"), "{reason}");
}

#[test]
fn what_the_client_makes_of_a_value_is_what_holds() {
    let data = Data::default();
    let levers = Levers::load(&data).unwrap();
    let taken = |lever: &str, value: Value| levers.named(lever).unwrap().taken(&value);
    assert_eq!(taken("bashOutputMaxChars", json!(2000)), Some(json!(4000)));
    assert_eq!(taken("bashOutputMaxChars", json!(2e6)), Some(json!(128_000)));
    assert_eq!(taken("bashOutputMaxChars", json!("many")), None);
    assert_eq!(taken("autoCompactWindow", json!(5000)), None);
    assert_eq!(taken("CLAUDE_CODE_AUTO_COMPACT_WINDOW", json!("150000")), Some(json!(150_000)));
    assert_eq!(taken("CLAUDE_CODE_AUTO_COMPACT_WINDOW", json!("1.5e5")), None);
    assert_eq!(taken("CLAUDE_CODE_PROMPT_CACHE_TTL", json!("2h")), None);
    assert_eq!(taken("ENABLE_PROMPT_CACHING_1H", json!("1")), Some(json!("1h")));
}

#[test]
fn the_cache_lifetime_in_force_is_seen_whoever_sets_it() {
    let lifetime = |settings: &str, variables: &[&str]| {
        let home = pausing(settings);
        home.variables.lock().unwrap().extend(variables.iter().map(|set| (*set).to_owned()));
        finding(&home, "S1", "cache lifetime, main threads", &[])
    };
    let file = "{\"env\": {\"ENABLE_PROMPT_CACHING_1H\": \"1\"}}";
    for already in [lifetime(file, &[]), lifetime("", &["ENABLE_PROMPT_CACHING_1H"])] {
        let reason = already["reason"].as_str().unwrap();
        assert!(reason.contains("no value is cheaper than 1h, which is set already"), "{already:#}");
    }
    // A setting wins over it.
    let set = lifetime("{\"promptCacheTtl\": \"5m\", \"env\": {\"ENABLE_PROMPT_CACHING_1H\": \"1\"}}", &[]);
    assert_eq!(set["verdict"], "propose", "{set:#}");
    // The client ignores a value that it does not know.
    assert_eq!(lifetime("", &["CLAUDE_CODE_PROMPT_CACHE_TTL=2h"])["verdict"], "propose");
    for off in [
        lifetime("{\"env\": {\"DISABLE_PROMPT_CACHING\": \"1\"}}", &[]),
        lifetime("", &["DISABLE_PROMPT_CACHING"]),
        // Of one family of models: what the others pay is not told apart.
        lifetime("", &["DISABLE_PROMPT_CACHING_OPUS"]),
    ] {
        let reason = off["reason"].as_str().unwrap();
        assert!(off["verdict"] == "hold" && reason.contains("overridden by "), "{off:#}");
    }
}

#[test]
fn what_is_only_told_goes_by_all_files() {
    let home = pausing("{\"cleanupPeriodDays\": 365, \"disableBundledSkills\": true}");
    home.write("work/.mcp.json", "{\"mcpServers\": {\"gh\": {\"command\": \"gh\"}, \"db\": {\"command\": \"db\"}}}");
    home.write("work/.claude/settings.json", "{\"disabledMcpjsonServers\": [\"gh\"]}");
    let found = home.json(&["tune", "claude-settings", "--dry-run", "--scope", "local"]);
    let reason = |subject: &str| {
        let found = found["findings"].as_array().unwrap().iter().find(|found| found["subject"] == subject).unwrap();
        found["reason"].as_str().unwrap_or_default().to_owned()
    };
    assert!(reason("gh").contains("leaves it out already"), "{}", reason("gh"));
    assert!(reason("list of skills").contains("is set already"), "{}", reason("list of skills"));
    assert!(reason("retention of logs").contains("365 days, which is enough"), "{}", reason("retention of logs"));
}

#[test]
fn what_a_stronger_lever_sets_is_not_set_already() {
    let lifetime = |settings: &str| finding(&pausing(settings), "S1", "cache lifetime, main threads", &[]);
    for stronger in ["\"CLAUDE_CODE_PROMPT_CACHE_TTL\": \"5m\"", "\"FORCE_PROMPT_CACHING_5M\": \"1\""] {
        let held = lifetime(&format!("{{\"promptCacheTtl\": \"1h\", \"env\": {{ {stronger} }}}}"));
        let reason = held["reason"].as_str().unwrap();
        assert!(held["verdict"] == "hold" && reason.contains("which wins over it"), "{stronger}: {reason}");
    }
    for off in ["\"0\"", "0", "\"False\"", "\"off\"", "\"no\"", "false"] {
        let open = lifetime(&format!("{{\"env\": {{\"FORCE_PROMPT_CACHING_5M\": {off}}}}}"));
        assert_eq!(open["verdict"], "propose", "{off}: {open:#}");
    }
    assert_eq!(lifetime("{\"promptCacheTtl\": \"1h\"}")["verdict"], "skip");
}

#[test]
fn the_page_knows_what_is_set_already() {
    let advice = |settings: &str| {
        let home = growing();
        home.write(".claude/settings.json", settings);
        let page = home.json(&["report"]);
        let found = page["findings"].as_array().unwrap().iter().find(|found| found["id"] == "context_growth");
        (found.unwrap()["advice"].as_str().unwrap().to_owned(), home.run(&["report"]).out)
    };
    for set in ["{\"autoCompactWindow\": 150000}", "{\"env\": {\"CLAUDE_CODE_AUTO_COMPACT_WINDOW\": \"150000\"}}"] {
        let (_, out) = advice(set);
        assert!(out.contains(": done; what is shown here happened without it"), "{set}: {out}");
    }
    // What a smaller one would do is not what a larger one does: only a replay compares them.
    for other in ["100000", "900000"] {
        let (told, out) = advice(&format!("{{\"autoCompactWindow\": {other}}}"));
        assert!(
            told.contains(&format!("; autoCompactWindow is {other} now, which may save part of this already")),
            "{told}"
        );
        assert!(out.contains("says whether they are cheaper than what is set"), "{out}");
    }
    // The variable in the file wins, so that it is what is changed.
    let (told, _) = advice("{\"env\": {\"CLAUDE_CODE_AUTO_COMPACT_WINDOW\": \"900000\"}}");
    let variable = "in ~/.claude/settings.json set \"env\": { \"CLAUDE_CODE_AUTO_COMPACT_WINDOW\": \"150000\" } (";
    assert!(told.starts_with(variable) && told.contains("CLAUDE_CODE_AUTO_COMPACT_WINDOW is 900000 now"), "{told}");
    // What the client does not take saves nothing.
    for odd in ["50000", "\"200k\"", "null"] {
        let (told, _) = advice(&format!("{{\"autoCompactWindow\": {odd}}}"));
        assert!(told.contains("set \"autoCompactWindow\": 150000 (") && !told.contains(" now, "), "{odd}: {told}");
    }
    let (_, out) = advice("{ broken");
    assert!(out.contains("first correct this: the settings cannot be read"), "{out}");
}

#[test]
fn the_page_knows_that_a_longer_lifetime_has_mended_what_expired() {
    let told_after = |sessions: u32, pause: u32, settings: &str| {
        let home = Home::new();
        let old = Kind { pause, ..Kind::default() };
        told(&home, &old);
        told(&home, &Kind { hour: true, name: "t", day: 14, pause: 900, sessions, ..old });
        home.write(".claude/settings.json", settings);
        let page = home.json(&["report"]);
        let found = page["findings"].as_array().unwrap().iter().find(|found| found["id"] == "miss_cache_expired");
        found.map(|found| found["advice"].as_str().unwrap().to_owned())
    };
    let advice = |pause: u32, settings: &str| told_after(4, pause, settings).unwrap();
    let (hour, minutes) = ("{\"promptCacheTtl\": \"1h\"}", "{\"promptCacheTtl\": \"5m\"}");
    let mended = advice(900, hour);
    assert_eq!(mended, "promptCacheTtl is 1h already: done; what is shown here happened without it");
    for (pause, settings) in [(900, "{}"), (900, minutes), (7_200, hour)] {
        let advice = advice(pause, settings);
        assert!(advice.starts_with("habit: finish the task"), "{pause} {settings}: {advice}");
    }
    // Enough of them say so without any file.
    assert_eq!(told_after(14, 900, "{}"), None);
}

/// Usage tells whether a setting acts, not the file: what a session does that began behind it was not mended.
#[test]
fn what_is_set_and_does_not_act_is_not_done() {
    let advice = |home: &Home, id: &str, settings: &str, day: Option<u64>| {
        let path = home.write(".claude/settings.json", settings);
        if let Some(day) = day {
            let at = UNIX_EPOCH + Duration::from_millis(START_MS as u64) + Duration::from_secs(day * 86_400);
            fs::File::options().append(true).open(path).unwrap().set_modified(at).unwrap();
        }
        home.advice(id, &[])
    };
    let (hour, window) = ("{\"promptCacheTtl\": \"1h\"}", "{\"autoCompactWindow\": 150000}");
    let done = "already: done; what is shown here happened without it";
    for (home, id, settings, does) in [
        (pausing(""), "cache_lifetime_long", hour, "writes for 5 minutes"),
        (growing(), "context_growth", window, "goes on above "),
    ] {
        // A day behind the first session, and behind all of them.
        let early = advice(&home, id, settings, Some(1));
        let said = " already since 2026-01-03, but a session that began on 2026-01-15 ";
        assert!(early.contains(&format!("{said}{does}")) && early.ends_with(": it does not act there"), "{early}");
        assert!(advice(&home, id, settings, Some(40)).ends_with(done));
        assert!(advice(&home, id, settings, None).ends_with(done));
    }
    // So where a project sets something else: what its own sessions do is no sign.
    let home = pausing("");
    let cwd = home.path("other").to_str().unwrap().to_owned();
    told(&home, &Kind { pause: 900, cwd, name: "t", day: 20, ..Kind::default() });
    home.write("other/.claude/settings.json", "{\"promptCacheTtl\": \"5m\"}");
    let early = advice(&home, "cache_lifetime_long", hour, Some(1));
    let wins = "; in …/other promptCacheTtl is 5m, which wins there";
    let does =
        " already since 2026-01-03, but a session that began on 2026-01-15 writes for 5 minutes: it does not act there";
    assert_eq!(early, format!("nothing to set: promptCacheTtl is 1h{does}{wins}"));
    let late = advice(&home, "cache_lifetime_long", hour, Some(16));
    assert_eq!(late, format!("nothing to set: promptCacheTtl is 1h already{wins}"));
    // The journal knows better than a file that was touched since.
    let home = pausing("");
    assert_eq!(home.run(&TUNE).exit, Exit::Done);
    let written = fs::read_to_string(home.path(".claude/settings.json")).unwrap();
    assert!(advice(&home, "cache_lifetime_long", &written, Some(1)).ends_with(done));
}

/// Nobody knows whether a gateway lets an hour through.
#[test]
fn an_hour_behind_a_gateway_is_told_with_what_it_takes() {
    for (address, is_told) in [("https://gw.example.org", true), ("https://api.anthropic.com", false)] {
        let home = pausing(&format!("{{\"env\": {{\"ANTHROPIC_BASE_URL\": \"{address}\"}}}}"));
        let found = finding(&home, "S1", "cache lifetime, main threads", &[]);
        let words = "the Claude apps gateway has no 1h";
        let counts = found["evidence"]["counts"].as_str().unwrap();
        assert_eq!((&found["verdict"], counts.contains(words)), (&json!("propose"), is_told), "{found:#}");
        let advice = home.advice("cache_lifetime_long", &[]);
        assert_eq!(advice.contains(words), is_told, "{advice}");
    }
}

/// Such an address may stand in the file of a project alone.
#[test]
fn a_gateway_of_a_project_is_one_too() {
    for (address, is_told) in [("https://gw.example.org", true), ("https://api.anthropic.com", false)] {
        let home = Home::new();
        let cwd = home.path("other").to_str().unwrap().to_owned();
        told(&home, &Kind { pause: 900, cwd, ..Kind::default() });
        home.write("other/.claude/settings.json", format!("{{\"env\": {{\"ANTHROPIC_BASE_URL\": \"{address}\"}}}}"));
        let words =
            "is another address in some projects: 1h acts there only if that gateway passes `anthropic-beta` on";
        let found = finding(&home, "S1", "cache lifetime, main threads", &[]);
        let counts = found["evidence"]["counts"].as_str().unwrap();
        assert_eq!((&found["verdict"], counts.contains(words)), (&json!("propose"), is_told), "{found:#}");
        let page = home.json(&["report"]);
        let found = page["findings"].as_array().unwrap().iter().find(|found| found["id"] == "cache_lifetime_long");
        let advice = found.unwrap()["advice"].as_str().unwrap();
        assert_eq!(advice.contains(words), is_told, "{advice}");
    }
}

/// What writing to the cache costs of a model without a price, nobody knows.
#[test]
fn nothing_is_promised_of_models_without_a_price() {
    let unpriced = |home: &Home| {
        for number in 0..14 {
            let path = format!(".claude/projects/-home-u-p/s{number:02}.jsonl");
            let text = fs::read_to_string(home.path(&path)).unwrap();
            home.write(&path, text.replace("claude-opus-4-5", "glm-5"));
        }
    };
    let losers = |home: &Home| home.json(&["report"])["not_worth"].as_array().unwrap().len();
    let busy = home_of(&Kind::default());
    assert!(losers(&busy) > 0, "a cache for an hour, at least");
    unpriced(&busy);
    assert_eq!(losers(&busy), 0);
    let home = pausing("");
    assert_eq!(finding(&home, "S1", "cache lifetime, main threads", &[])["verdict"], "propose");
    unpriced(&home);
    let found = finding(&home, "S1", "cache lifetime, main threads", &[]);
    let reason = "no model here has a known price, so nothing can be valued in money";
    assert_eq!((&found["verdict"], &found["reason"]), (&json!("hold"), &json!(reason)), "{found:#}");
    assert!(found["effect"].is_null() && !found.to_string().contains(" %"), "{found:#}");
    let out = home.run(&TUNE).out;
    assert!(out.lines().next().unwrap().contains(&format!(": {reason};")), "{out}");
    assert!(!home.path(".claude/settings.json").exists());
}

/// The user's file does nothing where every project has its own.
#[test]
fn what_all_projects_decide_themselves_is_to_be_changed_there() {
    let home = growing();
    let cwd = home.path("play").to_str().unwrap().to_owned();
    told(&home, &Kind { turns: 45, result: 9_000, tool: "Fetch", name: "t", cwd, ..Kind::default() });
    let advice = |work: &str, play: &str| {
        home.write("work/.claude/settings.json", work);
        home.write("play/.claude/settings.json", play);
        home.advice("context_growth", &[])
    };
    let all = advice("{\"autoCompactWindow\": 900000}", "{\"autoCompactEnabled\": false}");
    let begins = "first correct this: every project decides it itself, and its file wins: in …/";
    assert!(all.starts_with(begins) && all.contains("work autoCompactWindow is 900000"), "{all}");
    assert!(all.contains("play autoCompactWindow is overridden by "), "{all}");
    let both = advice("{\"autoCompactWindow\": 150000}", "{\"autoCompactWindow\": 150000}");
    assert!(both.contains("autoCompactWindow is 150000, in ") && both.contains(" already: done"), "{both}");
    assert!(advice("{\"autoCompactWindow\": 900000}", "{}").starts_with("in ~/.claude/settings.json set "));
}

/// A model is named to those alone who would follow, and pay less.
#[test]
fn the_model_of_subagents_is_hinted_at_where_they_would_follow() {
    let verdict = |from: &str, to: &str, settings: &str| {
        let home = home_of(&Kind { agent: true, ..Kind::default() });
        for number in 0..14 {
            let path = format!(".claude/projects/-home-u-p/s{number:02}/subagents/agent-a1");
            let text = fs::read_to_string(home.path(&format!("{path}.jsonl"))).unwrap();
            home.write(&format!("{path}.jsonl"), text.replace(from, to));
            home.write(&format!("{path}.meta.json"), format!("{{\"agentType\": \"{to}\"}}"));
        }
        home.write(".claude/settings.json", settings);
        let found = finding(&home, "S7", "model of subagents", &[]);
        let reason = found["reason"].as_str().unwrap_or_default();
        match reason.starts_with("no request of theirs would be cheaper with it") {
            true => "none".to_owned(),
            false => found["verdict"].as_str().unwrap().to_owned(),
        }
    };
    let sonnet = "claude-sonnet-4-5";
    assert_eq!(verdict(sonnet, sonnet, "{}"), "hint");
    assert_eq!(verdict(sonnet, "claude-sonnet-5-5", "{}"), "none");
    assert_eq!(verdict("nothing", "Explore", "{}"), "none");
    let set = |variable: &str| format!("{{\"env\": {{\"{variable}\": \"1\"}}}}");
    assert_eq!(verdict(sonnet, sonnet, &set("CLAUDE_CODE_SUBAGENT_MODEL")), "skip");
    // It makes a model win, and names none.
    assert_eq!(verdict(sonnet, sonnet, &set("CLAUDE_CODE_SUBAGENT_MODEL_FORCE")), "hint");
}

#[test]
fn a_change_that_somebody_took_back_is_not_judged() {
    let home = growing();
    assert_eq!(home.run(&TUNE).exit, Exit::Done);
    let state = |settings: &str| {
        home.write(".claude/settings.json", settings);
        home.run(&["tune", "history"]).out
    };
    assert!(!state("{\"autoCompactWindow\": 150000}").contains("changed since"));
    let other = state("{\"autoCompactWindow\": 900000}");
    assert!(other.contains("changed since, not by devboy: autoCompactWindow is 900000 now"), "{other}");
    let gone = state("{}");
    assert!(gone.contains("autoCompactWindow is gone"), "{gone}");
}

#[test]
fn what_one_person_sets_for_a_project_reaches_the_whole_repository() {
    let home = Home::new();
    let cwd = |name: &str| home.path(name).to_str().unwrap().to_owned();
    home.write("repo/.git/HEAD", "");
    home.write(".git/HEAD", "");
    for (name, at, pause) in [("s", "work", 900), ("t", "other/place", 900), ("u", "repo", 20)] {
        told(&home, &Kind { pause, cwd: cwd(at), name, ..Kind::default() });
    }
    let sessions = |scope: &str| home.json(&[&TUNE[..], &["--dry-run", "--scope", scope]].concat())["sessions"].clone();
    // Another repository below it has a file of its own.
    assert_eq!((sessions("user"), sessions("local"), sessions("project")), (json!(42), json!(28), json!(14)));
    let elsewhere = cwd("elsewhere.json");
    for (scope, before) in [("local", 28), ("project", 14), ("user", 42)] {
        let written = home.run(&[&TUNE[..], &["--scope", scope, "--output", &elsewhere]].concat());
        assert_eq!(written.exit, Exit::Done, "{}", written.err);
        let history = home.json(&["tune", "history"]);
        let entry = history["entries"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(entry["came_true"][0]["billed"]["before"], before, "{scope}: {entry:#}");
        fs::remove_file(&elsewhere).unwrap();
        fs::remove_file(home.path(".config/devboy/tuning-journal.jsonl")).unwrap();
    }
}

/// What pays is said with the interval of the same share, of the same bill.
#[test]
fn the_first_line_names_one_whole() {
    let home = pausing("");
    let answer = home.run(&[&TUNE[..], &["--dry-run"]].concat()).out.lines().next().unwrap().to_owned();
    let effect = finding(&home, "S1", "cache lifetime, main threads", &[])["effect"].clone();
    let share = |name: &str| format!("{:.1}", -100.0 * effect[name].as_f64().unwrap());
    let (of_bill, change, ends) = (share("of_bill"), share("change"), [share("upper"), share("lower")].join(" … "));
    assert_eq!(of_bill, change, "all is of main threads");
    let whole =
        format!(": {of_bill} % of the bill of the {} later sessions saved [{ends} %], replayed", effect["sessions"]);
    assert!(answer.contains(&whole), "{answer}");
    let mut whole = crate::settings::entries::BillForecast {
        part: "all".to_owned(),
        change: -0.549,
        lower: -0.581,
        upper: -0.525,
        of_bill: -0.549,
        ..serde_json::from_value(effect).unwrap()
    };
    whole.sessions = 10;
    let words = "54.9 % of the bill of the 10 later sessions saved [52.5 … 58.1 %], replayed";
    assert_eq!(crate::rules::report::brief_words(&whole), words);
    whole.part = "main".to_owned();
    assert_eq!(crate::rules::report::brief_words(&whole), words, "it is not said twice");
    (whole.of_bill, whole.upper, whole.part) = (-0.4, 0.012, "all".to_owned());
    let words = "40.0 % of the bill of all later sessions saved: 54.9 % [−1.2 … 58.1 %] of all requests in 10 of them, replayed";
    assert_eq!(crate::rules::report::brief_words(&whole), words);
}

#[test]
fn a_quiet_run_with_nothing_to_change_says_nothing() {
    // Skills that nobody uses, and logs that are deleted soon, are told of every time.
    let home = home_of(&Kind::default());
    let told = home.run(&TUNE);
    assert!(told.out.contains(" hint ") && told.out.starts_with("Nothing to change in "), "{}", told.out);
    assert!(told.out.contains("0 uses of skills in 14 sessions"), "{}", told.out);
    let quiet = home.run(&[&TUNE[..], &["-q"]].concat());
    assert_eq!((quiet.exit, quiet.out.as_str(), quiet.err.as_str()), (Exit::Done, "", ""));
    assert!(home.run(&[&TUNE[..], &["-q", "--explain"]].concat()).out.contains(" hint "));
    let changed = pausing("").run(&[&TUNE[..], &["-q"]].concat());
    assert!(changed.out.contains("promptCacheTtl"), "{}", changed.out);
}

#[test]
fn what_cannot_be_written_is_not_told_as_a_change() {
    let home = pausing("");
    let barred = Fault::new(&home.path(".config"), WriteStep::MakeDir, 0, true, 13);
    let outcome = home.run(&TUNE);
    assert!(barred.has_struck());
    drop(barred);
    assert!(outcome.exit == Exit::Failed && outcome.out.is_empty(), "{}", outcome.out);
    let hint =
        "hint: nothing was written. Changes are noted beside devboy's configuration: allow devboy to write there, or";
    assert!(outcome.err.contains("creating ") && outcome.err.contains(hint), "{}", outcome.err);
    assert!(!home.path(".claude/settings.json").exists());
    let barred = Fault::new(&home.path(".claude"), WriteStep::Create, 0, true, 13);
    let outcome = home.run(&TUNE);
    drop(barred);
    assert!(outcome.exit == Exit::Failed && outcome.out.is_empty(), "{}", outcome.out);
    assert!(outcome.err.contains("settings.json: Permission denied"), "{}", outcome.err);
    assert!(home.run(&TUNE).out.contains("promptCacheTtl"));
}

/// What one person sets for a project lies at the root of the repository, beside what the project sets for everybody who begins there.
#[test]
fn below_the_root_of_a_repository_its_own_file_counts() {
    use crate::settings::claude::layers::{ClaudePlaces, SettingsLayers};
    use crate::settings::claude::levers::SettingsScope;
    let home = Home::new();
    home.write("repo/.git/HEAD", "");
    home.write("repo/.claude/settings.json", "{\"autoCompactWindow\": 150000}");
    home.write("repo/sub/.claude/settings.json", "{\"autoCompactWindow\": 200000}");
    let levers = Levers::load(&Data::default()).unwrap();
    let window = |at: &str, scope: SettingsScope| {
        let places = ClaudePlaces { project: Some(home.path(at)), ..ClaudePlaces::default() };
        let layers = SettingsLayers::load(&places, scope, &places.file(scope).unwrap()).unwrap();
        layers.resolved(levers.named("autoCompactWindow").unwrap()).unwrap()
    };
    for at in ["repo", "repo/sub", "repo/other"] {
        assert_eq!(window(at, SettingsScope::Local), Some(json!(150_000)), "{at}");
    }
    assert_eq!(window("repo/sub", SettingsScope::Project), Some(json!(200_000)));
    assert_eq!(window("repo/other", SettingsScope::Project), None);
}

#[test]
fn a_file_that_cannot_be_understood_or_written_is_left_as_it_is() {
    for (settings, told) in [
        ("{\n  // mine\n  \"a\": 1\n}", "settings.json:2:3: a comment"),
        ("{\"a\": 1,}", "settings.json:1:9: a comma"),
        ("{\"promptCacheTtl\": \"5m\", \"promptCacheTtl\": \"5m\"}", "stands a second time"),
        ("{\"env\": 1, \"promptCacheTtl\": [", "settings.json:1:"),
    ] {
        let home = pausing(settings);
        let outcome = home.run(&TUNE);
        assert_eq!(outcome.exit, Exit::Failed, "{}", outcome.err);
        assert!(outcome.err.contains(told), "{}", outcome.err);
        assert_eq!(fs::read_to_string(home.path(".claude/settings.json")).unwrap(), settings);
    }
    let home = pausing("{\"mine\": 1}");
    let path = home.path(".claude/settings.json");
    let mut mode = fs::metadata(&path).unwrap().permissions();
    mode.set_readonly(true);
    fs::set_permissions(&path, mode).unwrap();
    let outcome = home.run(&TUNE);
    assert!(outcome.exit == Exit::Failed && outcome.err.contains("is read-only"), "{}", outcome.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"mine\": 1}");
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let home = pausing("");
    let real = home.write("dotfiles/claude.json", "{\"mine\": 1}\n");
    std::os::unix::fs::symlink(&real, home.path(".claude/settings.json")).unwrap();
    assert_eq!(home.run(&TUNE).exit, Exit::Done);
    assert!(fs::symlink_metadata(home.path(".claude/settings.json")).unwrap().file_type().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("promptCacheTtl"));
}

#[test]
fn whatever_fails_the_settings_are_old_or_new_and_the_journal_knows() {
    let home = pausing("{\"mine\": 1}\n");
    let path = home.path(".claude/settings.json");
    assert_eq!(home.run(&TUNE).exit, Exit::Done);
    let expected = fs::read_to_string(&path).unwrap();
    let mut struck = 0;
    for step in [WriteStep::Create, WriteStep::Write, WriteStep::Sync, WriteStep::Rename, WriteStep::MakeDir] {
        for (nth, lasts) in (0..8).flat_map(|nth| [(nth, false), (nth, true)]) {
            fs::write(&path, "{\"mine\": 1}\n").unwrap();
            let _absent = fs::remove_dir_all(home.config().parent().unwrap());
            // The lake is not what is tried here.
            let faults = [".claude", ".config"].map(|dir| Fault::new(&home.path(dir), step, nth, lasts, 5));
            let outcome = home.run(&TUNE);
            let has_struck = faults.iter().any(Fault::has_struck);
            drop(faults);
            let place = format!("{step:?} {nth}, lasting {lasts}: {}", outcome.err);
            let text = fs::read_to_string(&path).unwrap();
            assert!(text == expected || (text == "{\"mine\": 1}\n" && outcome.exit == Exit::Failed), "{place}");
            home.run(&TUNE);
            assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{place}");
            assert_eq!(home.json(&["tune", "history"])["entries"].as_array().unwrap().len(), 1, "{place}");
            assert_eq!(home.run(&["tune", "undo"]).exit, Exit::Done, "{place}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "{\"mine\": 1}\n", "{place}");
            struck += u32::from(has_struck);
            if !has_struck {
                break;
            }
        }
    }
    assert!(struck > 10, "{struck} faults struck");
}

#[test]
fn tune_alone_does_what_concerns_this_machine() {
    let home = pausing("");
    let outcome = home.run(&["tune"]);
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    assert!(outcome.out.contains("Pipeline: nothing reads a configuration here"), "{}", outcome.out);
    assert!(home.path(".claude/settings.json").exists() && !home.config().exists());
    let logs = home.logs().display().to_string();
    let named = home.run(&["tune", "--dry-run", "--input-dir", &logs, "-p", "home"]).out;
    let makes = format!("`devboy tune from-claude-logs --input-dir {logs} --project home` makes one");
    assert!(named.contains(&makes), "{named}");
    let home = pausing("");
    home.write(".config/devboy/pipeline_config.toml", "schema_version = 4\n");
    let outcome = home.run(&["tune", "--check"]);
    assert_eq!(outcome.exit, Exit::Pending, "{}", outcome.err);
    assert!(!home.path(".claude/settings.json").exists());
    let outcome = home.run(&["tune"]);
    assert!(outcome.err.contains("settings →"), "{}", outcome.err);
    // Each file has entries of its own, and broken settings leave the other one whole.
    let entries = home.json(&["tune", "history"])["entries"].as_array().unwrap().clone();
    assert!(entries.iter().any(|entry| entry["target"] == "claude-settings"), "{entries:#?}");
    home.write(".claude/settings.json", "{,}");
    assert_eq!(home.run(&["tune"]).exit, Exit::Failed);
    assert_eq!(fs::read_to_string(home.path(".claude/settings.json")).unwrap(), "{,}");
    // Of two broken files both are told, and what is wrong for both is told once.
    home.write(".config/devboy/pipeline_config.toml", "a = \n");
    let outcome = home.run(&["tune"]);
    let told = ["pipeline_config.toml:1", "settings.json:1"].map(|file| outcome.err.matches(file).count());
    assert_eq!((outcome.exit, told), (Exit::Failed, [1, 1]), "{}", outcome.err);
}

#[test]
fn what_a_hook_could_save_is_told_in_money_and_too_little_does_not_pay() {
    let worth = |home: &Home, reach: &str| home.json(&["replay", "--reach", reach])["worth"].clone();
    // Every turn shows the same text again; a hook has no say over readings.
    for (tool, pays) in [("Bash", true), ("Read", false)] {
        let home = Home::new();
        told(&home, &Kind { tool, result: 20_000, sessions: 4, ..Kind::default() });
        let found = worth(&home, "hook");
        assert_eq!(found["is_worth_it"], pays, "{found:#}");
        let out = home.run(&["replay", "--reach", "hook"]).out;
        assert_eq!(out.contains("less than 2 % of the bill, so it does not pay to build one"), !pays, "{out}");
        let saved = |found: &Value| found["saved_of_bill"]["published"].as_f64().unwrap();
        assert_eq!(saved(&worth(&home, "host")), 0.0);
        assert!(saved(&worth(&home, "gateway")) > 0.02 && (pays || saved(&found) == 0.0), "{found:#}");
    }
    let home = Home::new();
    told(&home, &Kind { sessions: 2, ..Kind::default() });
    let refused = home.run(&["replay", "--policy", "compaction", "--reach", "hook"]);
    assert_eq!(refused.exit, Exit::Usage, "a flag of which nothing would come: {}", refused.err);
}

#[test]
fn what_a_place_saves_has_to_be_more_than_the_simulation_is_off_the_bill() {
    let why_not = |saved: f64, error: f64| crate::whatif::pipeline::replayed::why_not(saved, error, 2.0);
    assert_eq!(why_not(0.03, 0.01), None);
    assert!(
        why_not(0.03, 0.04).unwrap().starts_with("no more than the simulation is off the bill, so it is not clear")
    );
    assert!(why_not(0.01, 0.04).unwrap().starts_with("less than 2 % of the bill"));
}

/// Everything that the page of facts about Claude Code names as something that can be set.
const NAMED: &[&str] = &[
    "promptCacheTtl",
    "CLAUDE_CODE_PROMPT_CACHE_TTL",
    "subagentPromptCacheTtl",
    "CLAUDE_CODE_SUBAGENT_PROMPT_CACHE_TTL",
    "experimental.cacheTtl",
    "ENABLE_PROMPT_CACHING_1H",
    "FORCE_PROMPT_CACHING_5M",
    "DISABLE_PROMPT_CACHING",
    "DISABLE_PROMPT_CACHING_HAIKU",
    "DISABLE_PROMPT_CACHING_SONNET",
    "DISABLE_PROMPT_CACHING_OPUS",
    "DISABLE_PROMPT_CACHING_FABLE",
    "autoCompactEnabled",
    "DISABLE_AUTO_COMPACT",
    "DISABLE_COMPACT",
    "autoCompactWindow",
    "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
    "modelSettings.*.autoCompactWindow",
    "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
    "DISABLE_MICROCOMPACT",
    "ENABLE_TOOL_SEARCH",
    "alwaysLoad",
    "permissions.deny",
    "disabledMcpjsonServers",
    "enabledMcpjsonServers",
    "deniedMcpServers",
    "disableClaudeAiConnectors",
    "CLAUDE_CODE_MAX_MCP_DESCRIPTION_LENGTH",
    "bashOutputMaxChars",
    "BASH_MAX_OUTPUT_LENGTH",
    "MAX_MCP_OUTPUT_TOKENS",
    "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS",
    "TASK_MAX_OUTPUT_LENGTH",
    "taskOutputMaxChars",
    "effortLevel",
    "modelSettings.*.effortLevel",
    "CLAUDE_CODE_EFFORT_LEVEL",
    "maxEffortLevel",
    "alwaysThinkingEnabled",
    "MAX_THINKING_TOKENS",
    "model",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL_FORCE",
    "availableModels",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "fastMode",
    "claudeMdExcludes",
    "autoMemoryEnabled",
    "skillListingBudgetFraction",
    "skillListingMaxDescChars",
    "SLASH_COMMAND_TOOL_CHAR_BUDGET",
    "skillOverrides",
    "disableBundledSkills",
    "includeGitInstructions",
    "CLAUDE_CODE_SIMPLE_SYSTEM_PROMPT",
    "outputStyle",
    "tools, disallowedTools",
    "promptSuggestionEnabled",
    "awaySummaryEnabled",
    "CLAUDE_CODE_DISABLE_TERMINAL_TITLE",
    "DISABLE_NON_ESSENTIAL_MODEL_CALLS",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "enabledPlugins",
    "cleanupPeriodDays",
    "includeCoAuthoredBy",
    "statusLine",
    "hooks",
];

#[test]
fn every_lever_has_a_row_and_every_row_a_fate() {
    let levers = Levers::load(&Data::default()).unwrap();
    for name in NAMED {
        assert!(levers.named(name).is_some(), "{name} has no row");
    }
    let rules: Vec<&str> = crate::rules::claude::REGISTER.iter().map(|rule| rule.id).collect();
    for lever in levers.all() {
        assert!(NAMED.contains(&lever.name.as_str()), "{} is named nowhere", lever.name);
        match lever.fate() {
            LeverUse::Rule(rule) => assert!(rules.contains(&rule) && lever.first_version().is_some(), "{}", lever.name),
            LeverUse::Hint => assert!(lever.first_version().is_some(), "{}", lever.name),
            LeverUse::LeftAlone(reason) => assert!(reason.len() > 10, "{}", lever.name),
        }
    }
}

#[test]
fn a_lever_is_known_from_its_version_on_and_within_its_bounds() {
    let levers = Levers::load(&Data::default()).unwrap();
    let ttl = levers.named("promptCacheTtl").unwrap();
    for (version, is_known) in [
        ("2.1.242", false),
        ("2.1.243", true),
        ("2.1.243 (Claude Code)", true),
        ("2.1.243+build.7", true),
        ("2.1.243-beta.1", false),
        ("2.1.243 beta", false),
        ("2.1.244-beta.1", true),
        ("2.2", true),
        ("2.1.99", false),
        ("3.0.0-beta.1", true),
        ("", false),
        ("x", false),
    ] {
        assert_eq!(ttl.is_known_to(version), is_known, "{version}");
    }
    let over = levers.named("taskOutputMaxChars").unwrap();
    assert!(over.is_known_to("2.1.276") && !over.is_known_to("2.1.277"));
    assert!(!levers.named("DISABLE_MICROCOMPACT").unwrap().is_known_to("9.9.9"), "nobody documents it");
    assert!(ttl.check(&json!("1h")).is_ok() && ttl.check(&json!("2h")).is_err() && ttl.check(&json!(5)).is_err());
    let window = levers.named("autoCompactWindow").unwrap();
    for (value, fits) in [(99_999, false), (100_000, true), (1_000_000, true), (1_000_001, false)] {
        assert_eq!(window.check(&json!(value)).is_ok(), fits, "{value}");
    }
    assert_eq!(levers.named("MAX_MCP_OUTPUT_TOKENS").unwrap().spelled(&json!(5_000)), json!("5000"));
}

#[test]
fn settings_that_are_proposed_together_are_replayed_as_one_configuration() {
    let home = Home::new();
    told(&home, &Kind { pause: 900, agent: true, ..Kind::default() });
    let report = home.json(&[&TUNE[..], &["--dry-run"]].concat());
    let proposed: Vec<&Value> =
        report["findings"].as_array().unwrap().iter().filter(|row| row["verdict"] == "propose").collect();
    assert_eq!(proposed.len(), 2, "{report:#}");
    let of_bill = |row: &Value| row["of_bill"].as_f64().unwrap();
    // One concerns main threads, the other subagents: what they save adds up.
    let sum: f64 = proposed.iter().map(|row| of_bill(&row["effect"])).sum();
    assert!((of_bill(&report["together"]) - sum).abs() < 1e-9 && sum < -0.1, "{sum} {}", report["together"]);
    let shares = proposed.iter().map(|row| (row["effect"]["beside"].clone(), of_bill(&row["effect"])));
    for (beside, alone) in shares {
        let [share, last] = ["of_bill", "last_of_bill"].map(|key| beside[key].as_f64().unwrap());
        assert!((share - alone).abs() < 1e-9 && (last - alone).abs() < 1e-9, "{beside} of {alone}");
    }
    let text = home.run(&[&TUNE[..], &["--dry-run"]].concat()).out;
    assert!(text.lines().last().unwrap().starts_with("# together: all requests "), "{text}");
    // Of a single change there is no more to say.
    let single = pausing("").json(&[&TUNE[..], &["--dry-run"]].concat());
    assert_eq!(single["together"], Value::Null);
}

/// Two settings that spare the same tokens: each is told by itself, and by its share of what both do.
#[test]
fn shares_of_settings_that_overlap_add_up_to_what_they_do_together() {
    let home = home_of(&Kind { pause: 600, hour: true, turns: 45, result: 15_000, tool: "Fetch", ..Kind::default() });
    home.write(".claude/settings.json", "{\"promptCacheTtl\": \"5m\"}");
    let report = home.json(&[&TUNE[..], &["--dry-run"]].concat());
    let effects = report["findings"].as_array().unwrap().iter().filter(|row| row["verdict"] == "propose");
    let effects: Vec<&Value> = effects.map(|row| &row["effect"]).collect();
    assert_eq!(effects.len(), 2, "{report:#}");
    let sum = |of: &dyn Fn(&Value) -> f64| effects.iter().map(|effect| of(effect)).sum::<f64>();
    let whole = |key: &str| report["together"][key].as_f64().unwrap();
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9 * b.abs().max(1.0);
    assert!(close(sum(&|effect| effect["beside"]["of_bill"].as_f64().unwrap()), whole("of_bill")), "{report:#}");
    assert!(close(sum(&|effect| effect["beside"]["usd"].as_f64().unwrap()), whole("usd")), "{report:#}");
    // By itself each does more than beside the other, and both overlap.
    assert!(sum(&|effect| effect["of_bill"].as_f64().unwrap()) < whole("of_bill") - 0.01, "{report:#}");
    for effect in effects {
        let [share, last] = ["of_bill", "last_of_bill"].map(|key| effect["beside"][key].as_f64().unwrap());
        assert!(effect["of_bill"].as_f64().unwrap() < share && share < last && last < 0.0, "{effect:#}");
    }
}

/// A window is chosen beside the lifetime that is proposed with it: a second run finds nothing better.
#[test]
fn what_is_written_is_what_the_next_run_would_write() {
    let home = home_of(&Kind { pause: 600, hour: true, turns: 45, result: 15_000, tool: "Fetch", ..Kind::default() });
    home.write(".claude/settings.json", "{\"promptCacheTtl\": \"5m\"}");
    let outcome = home.run(&TUNE);
    let written = fs::read_to_string(home.path(".claude/settings.json")).unwrap();
    assert!(written.contains("\"1h\"") && written.contains("autoCompactWindow"), "{written}\n{}", outcome.out);
    assert!(outcome.out.contains("effect: by itself all requests "), "{}", outcome.out);
    let again = home.json(&[&TUNE[..], &["--dry-run"]].concat());
    assert_eq!(again["diff"], "", "{written}\n{again:#}");
}

/// Each directory of several has settings of its own, and the figures are of the logs of all.
#[test]
fn what_other_settings_there_are_is_told_beside_the_file() {
    let home = pausing("");
    fs::create_dir_all(home.path("other/projects")).unwrap();
    let dirs = [".claude", "other"].map(|name| home.path(name).to_str().unwrap().to_owned()).join(",");
    home.variables.lock().unwrap().push(format!("CLAUDE_CONFIG_DIR={dirs}"));
    let outcome = home.run(&[&TUNE[..], &["--dry-run"]].concat());
    assert!(outcome.err.contains("# CLAUDE_CONFIG_DIR names several directories"), "{}", outcome.err);
    let page = home.run(&["report"]).out;
    assert!(page.contains("settings.json (and in that of each other directory) set"), "{page}");
    // What is done in one of them is not done in the other.
    let hour = "{\"promptCacheTtl\": \"1h\"}";
    home.write(".claude/settings.json", hour);
    let page = home.run(&["report"]).out;
    assert!(page.contains("(and in that of each other directory) set") && !page.contains(": done"), "{page}");
    home.write("other/settings.json", hour);
    let page = home.run(&["report"]).out;
    assert!(page.contains("promptCacheTtl is 1h already: done"), "{page}");
}

/// What the project at hand sets itself is no reason against the user's file, but wins over it here.
#[test]
fn the_page_says_where_a_project_goes_its_own_way() {
    let home = growing();
    told(&home, &Kind { turns: 45, result: 9_000, tool: "Fetch", name: "t", ..Kind::default() });
    for (settings, told) in [
        ("{\"autoCompactWindow\": 400000}", "; in …/work, where it wins, autoCompactWindow is 400000 now, "),
        ("{\"autoCompactEnabled\": false}", "first correct this: in …/work autoCompactWindow is overridden by "),
    ] {
        home.write("work/.claude/settings.json", settings);
        let advice = home.advice("context_growth", &[]);
        assert!(advice.contains(told), "{advice}");
    }
}

/// What the project has set is done where there is no other; a variable of the user's wins over it, and of a project without a
/// request nothing is told.
#[test]
fn the_page_goes_by_what_holds_in_the_project() {
    let advice = |home: &Home| home.advice("context_growth", &[]);
    let home = growing();
    home.write("work/.claude/settings.json", "{\"autoCompactWindow\": 150000}");
    assert!(advice(&home).starts_with("autoCompactWindow is 150000 already: done"), "{}", advice(&home));
    home.write("work/.claude/settings.json", "{\"autoCompactWindow\": 400000}");
    home.write(".claude/settings.json", "{\"env\": {\"CLAUDE_CODE_AUTO_COMPACT_WINDOW\": \"150000\"}}");
    assert!(advice(&home).starts_with("CLAUDE_CODE_AUTO_COMPACT_WINDOW is 150000 already: done"), "{}", advice(&home));
    let found = finding(&home, "S3", "automatic compaction", &[]);
    assert!(!found["reason"].to_string().contains("too few sessions"), "{found:#}");
    let elsewhere = Home::new();
    told(&elsewhere, &Kind { turns: 45, result: 9_000, tool: "Fetch", ..Kind::default() });
    elsewhere.write("work/.claude/settings.json", "{\"autoCompactWindow\": 400000}");
    assert!(!advice(&elsewhere).contains("400000"), "{}", advice(&elsewhere));
}

/// What a project switches off, or sets for one model, the user's file changes as little as what it sets.
#[test]
fn what_a_project_switches_off_itself_is_not_proposed_for_all_projects() {
    let model = "{\"modelSettings\": {\"claude-opus-4-5\": {\"autoCompactWindow\": 500000}}}";
    let other_model = model.replace("opus", "haiku");
    let concerned = |settings: &str| {
        let home = growing();
        home.write("work/.claude/settings.json", settings);
        let found = finding(&home, "S3", "automatic compaction", &[]);
        let advice = home.advice("context_growth", &[]);
        (found["verdict"] == "propose", found["reason"].as_str().unwrap_or_default().to_owned(), advice)
    };
    for settings in [
        "{\"autoCompactWindow\": 500000, \"autoCompactEnabled\": false}",
        "{\"env\": {\"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE\": \"50\"}}",
        model,
    ] {
        let (is_proposed, reason, advice) = concerned(settings);
        assert!(!is_proposed && reason.starts_with("too few sessions that it concerns"), "{settings}: {reason}");
        let what_is_there = ["is overridden by", "is set by"].iter().any(|words| advice.contains(words));
        assert!(what_is_there && advice.starts_with("first correct this: "), "{settings}: {advice}");
    }
    // What the client does not take, what changes nothing, and what is about other models, decides nothing.
    let percent = |value: &str| format!("{{\"env\": {{\"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE\": \"{value}\"}}}}");
    for settings in [&percent("half")[..], &percent("100"), &other_model] {
        let (is_proposed, reason, advice) = concerned(settings);
        assert!(is_proposed && advice.starts_with("in ~/.claude"), "{settings}: {reason} {advice}");
    }
}

#[test]
fn predicted_savings_of_settings_are_held_against_the_weeks_behind_them() {
    let home = Home::new();
    told(&home, &Kind { pause: 900, sessions: 45, ..Kind::default() });
    let report = home.json(&["tune", "backtest"]);
    let rows = report["statistics"].as_array().unwrap();
    let row = rows.iter().find(|row| row["statistic"] == "effects of S1").unwrap_or_else(|| panic!("{rows:#?}"));
    assert!(row["judged"].as_u64().unwrap() >= 2 && row["held"] == row["judged"], "{row}");
}
