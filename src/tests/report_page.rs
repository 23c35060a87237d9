//! `devboy` and `devboy report`: what the page says of logs whose truth is known.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::{Home, all_bytes};
use super::log_builder::{Record, answers, assistant, boundary, cases, compact_summary, fails, tool_use, user};
use crate::report::table::paragraph;
use crate::shell::arguments::Exit;

pub(super) const OPUS: &str = "claude-opus-4-5-20251101";
const SONNET: &str = "claude-sonnet-4-5-20250929";
/// Dollars that a token costs more to write for five minutes than to read.
const OPUS_LOST_PER_TOKEN: f64 = (6.25 - 0.5) / 1e6;
const SONNET_LOST_PER_TOKEN: f64 = (3.75 - 0.3) / 1e6;

/// One session of a log: requests, each with what was billed.
pub(super) struct Told {
    session: String,
    cwd: String,
    pub(super) text: String,
    pub(super) second: u32,
    pub(super) number: u32,
    parent: Option<String>,
}

impl Told {
    pub(super) fn new(session: &str, cwd: &str, second: u32) -> Self {
        let (session, cwd) = (session.to_owned(), cwd.to_owned());
        Self { session, cwd, text: String::new(), second, number: 0, parent: None }
    }

    /// A record that follows the one before.
    pub(super) fn push(&mut self, name: &str, record: Record) {
        let uuid = format!("{name}-{}-{}", self.session, self.number);
        let record = record.session(&self.session).set("cwd", self.cwd.as_str());
        self.text += &record.link(&uuid, self.parent.as_deref()).set("timestamp", stamp(self.second)).line();
        self.parent = Some(uuid);
        self.second += 2;
    }

    /// A person writes and the model answers; what was read, written for five minutes, and answered.
    pub(super) fn ask(&mut self, model: &str, read: u64, write: u64, output: u64) -> &mut Self {
        self.ask_about("go on, please, with the secretprompt", model, (read, write, output))
    }

    /// The same with a text that is as long as what is written.
    pub(super) fn ask_at_length(&mut self, model: &str, read: u64, write: u64) -> &mut Self {
        let text: String = (0..write * 3 / 12).map(|word| format!("word {word:06} ")).collect();
        self.ask_about(&text, model, (read, write, 500))
    }

    fn ask_about(&mut self, text: &str, model: &str, (read, write, output): (u64, u64, u64)) -> &mut Self {
        self.number += 1;
        self.push("human", user("", text));
        self.answer(model, (read, write, output), json!({ "type": "text", "text": "secretanswer" }));
        self
    }

    /// The model answers with a block.
    pub(super) fn answer(&mut self, model: &str, (read, write, output): (u64, u64, u64), block: Value) {
        let usage = json!({
            "input_tokens": 5, "output_tokens": output,
            "cache_read_input_tokens": read, "cache_creation_input_tokens": write,
            "cache_creation": { "ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": 0 },
        });
        let message = format!("msg-{}-{}", self.session, self.number);
        self.push("said", assistant(&message, &[block]).message("usage", usage).message("model", model));
    }

    /// The model calls a tool, which answers with this content. The next message is another one.
    pub(super) fn call(&mut self, model: &str, billed: (u64, u64, u64), tool: &str, content: Value) -> &mut Self {
        self.number += 1;
        let call = format!("call-{}-{}", self.session, self.number);
        self.answer(model, billed, tool_use(&call, tool));
        self.push("result", answers(&call, content));
        self.number += 1;
        self
    }

    /// The same of a call that fails with a message.
    fn fail(&mut self, model: &str, billed: (u64, u64, u64), tool: &str, message: &str) -> &mut Self {
        self.number += 1;
        let call = format!("call-{}-{}", self.session, self.number);
        self.answer(model, billed, tool_use(&call, tool));
        self.push("result", fails(&call, message));
        self.number += 1;
        self
    }

    /// The client notes something beside the conversation.
    pub(super) fn attach(&mut self, attachment: Value) -> &mut Self {
        self.number += 1;
        self.push("noted", Record::new("attachment", "").set("attachment", attachment));
        self
    }
}

/// Seconds after the start of 2 January 2026, any number of days.
fn stamp(second: u32) -> String {
    let (day, second) = (2 + second / 86_400, second % 86_400);
    format!("2026-01-{day:02}T{:02}:{:02}:{:02}.000Z", second / 3600, second / 60 % 60, second % 60)
}

pub(super) fn place(home: &Home, told: &Told) {
    let folder = told.cwd.replace('/', "-");
    home.write(&format!(".claude/projects/{folder}/{}.jsonl", told.session), &told.text);
}

/// Sessions of two projects, one a day; in those of `lantern` the model is changed in mid-session.
pub(super) fn home_with_swaps(sessions: u32) -> Home {
    let home = Home::new();
    for number in 0..sessions {
        let project = if number % 2 == 0 { "/home/user/lantern" } else { "/home/user/orchard" };
        let mut told = Told::new(&format!("s-{number}"), project, number * 43_200);
        told.ask(OPUS, 0, 40_000, 500).ask(OPUS, 40_000, 1_000, 500);
        if number % 2 == 0 {
            told.ask(SONNET, 0, 42_000, 500).ask(SONNET, 42_000, 500, 500).ask(OPUS, 0, 43_500, 500);
        }
        told.ask(OPUS, if number % 2 == 0 { 43_500 } else { 41_000 }, 1_000, 500);
        place(&home, &told);
    }
    home
}

pub(super) fn report(home: &Home, more: &[&str]) -> Value {
    home.json(&[&["report"], more].concat())
}

pub(super) fn finding<'v>(report: &'v Value, id: &str) -> Option<&'v Value> {
    report["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id)
}

#[test]
fn devboy_alone_is_the_report() {
    let home = home_with_swaps(4);
    let (alone, named) = (home.run(&[]), home.run(&["report"]));
    assert_eq!((alone.exit, &alone.out), (Exit::Done, &named.out), "{}", alone.err);
    assert!(alone.out.starts_with("Spent 2026-01-02 … 2026-01-03 (2 days): $"), "{}", alone.out);
}

#[test]
fn an_empty_home_is_an_error_that_lists_the_places() {
    let home = Home::new();
    let outcome = home.run(&[]);
    assert_eq!((outcome.exit, outcome.out.as_str()), (Exit::Failed, ""));
    let places = ["/.config/claude/projects", "/.claude/projects"];
    assert!(places.iter().all(|place| outcome.err.contains(place)), "{}", outcome.err);
    assert!(outcome.err.contains("--input-dir"), "what to do: {}", outcome.err);
}

/// Six sessions lose 41,000 tokens when Sonnet comes and 42,500 when Opus comes back; what is lost is written again.
#[test]
fn model_swaps_that_were_planted_are_found_where_they_are_with_their_price() {
    let home = home_with_swaps(12);
    let report = report(&home, &[]);
    let found = finding(&report, "miss_model_swap").unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(found["count"], 12, "two in each of six sessions");
    let expected = 6.0 * (41_000.0 * SONNET_LOST_PER_TOKEN + 42_500.0 * OPUS_LOST_PER_TOKEN);
    let saved = found["saved_usd"].as_f64().unwrap();
    assert!((saved - expected).abs() < 1e-6, "{saved} for {expected}");
    assert!(found["where"].as_str().unwrap().contains("lantern"), "{found:#}");
    assert!(found["advice"].as_str().unwrap().contains("habit: choose the model at the start"), "{found:#}");
    assert!(found["lower_usd"].as_f64().unwrap() > 0.0);
}

/// Six sessions whose contexts grow to half a million tokens.
pub(super) fn home_with_large_contexts(sessions: u32) -> Home {
    let home = Home::new();
    for number in 0..sessions {
        let mut told = Told::new(&format!("large-{number}"), "/home/user/lantern", number * 43_200);
        told.ask(OPUS, 0, 20_000, 800);
        (0..40).for_each(|turn| _ = told.ask_at_length(OPUS, 20_000 + turn * 12_000, 12_000));
        place(&home, &told);
    }
    home
}

/// Every finding names a command; what that prints as data is what the page says.
#[test]
fn findings_are_what_their_commands_print() {
    for (home, id) in [(home_with_swaps(12), "miss_model_swap"), (home_with_large_contexts(12), "context_growth")] {
        let report = report(&home, &[]);
        assert!(finding(&report, id).is_some(), "{id}: {report:#}");
        assert_printed(&home, &report);
    }
}

fn assert_printed(home: &Home, report: &Value) {
    let mut seen = 0;
    for finding in report["findings"].as_array().unwrap() {
        assert_evidence(home, finding);
        // Where nothing breaks, a replay alone is what the policy says of the same window.
        let command = finding["source"].as_str().unwrap().strip_prefix("devboy ").unwrap();
        let arguments: Vec<&str> = command.split(' ').collect();
        let printed = home.json(&arguments);
        let policy = printed["policies"][0].clone();
        let (printed, told) = match finding["basis"].as_str().unwrap() {
            "replayed" => (-policy["delta"]["usd"].as_f64().unwrap(), finding["saved_usd"].as_f64().unwrap()),
            "shared" => {
                let rows = printed["rows"].as_array().unwrap();
                let row =
                    rows.iter().find(|row| row["outcome"] == "(calls that failed, were refused or cancelled)").unwrap();
                (row["nano_usd"].as_f64().unwrap() / 1e9, finding["saved_usd"].as_f64().unwrap())
            }
            _ => {
                let cause = finding["id"].as_str().unwrap().strip_prefix("miss_").unwrap();
                let sum = &policy["details"]["prompt-cache"]["prompt_cache"]["causes"][cause];
                assert_eq!(sum["events"], finding["count"], "{finding:#}");
                (sum["cost_lost"]["nano_usd"].as_f64().unwrap() / 1e9, finding["saved_usd"].as_f64().unwrap())
            }
        };
        let is_whole = !finding["where"].as_str().unwrap().contains("only ");
        assert!(!is_whole || (printed - told).abs() < 1e-6, "{printed} is not {told}: {finding:#}");
        seen += usize::from(is_whole);
    }
    assert!(seen > 0, "{report:#}");
}

/// The command of a finding prints its figure with its interval, as data and in words.
fn assert_evidence(home: &Home, finding: &Value) {
    let command = finding["command"].as_str().unwrap().strip_prefix("devboy ").unwrap();
    let arguments: Vec<&str> = command.split(' ').collect();
    let (printed, words) = (home.json(&arguments), home.run(&arguments).out);
    assert_eq!(&printed["finding"], finding);
    let told = |look: &&Value| look["saved_usd"] == finding["saved_usd"] && look["verdict"] == "cheaper";
    let looks = printed["looks"].as_array().unwrap();
    let look = looks.iter().find(told).unwrap_or_else(|| panic!("{finding:#} is not in {looks:#?}"));
    assert_eq!(look["interval_usd"], json!([finding["lower_usd"], finding["upper_usd"]]));
    assert_eq!((&look["count"], &look["sessions"]), (&finding["count"], &finding["sessions"]));
    let advice = finding["advice"].as_str().unwrap();
    let interval = &advice[advice.rfind('[').unwrap()..=advice.rfind(']').unwrap()];
    let lines = words.lines().filter(|line| line.contains(interval)).count();
    assert!(lines >= 2, "{interval} stands in the advice and in the table: {words}");
}

/// Where only a part is clear, the figures are of that part: the count as well.
#[test]
fn a_finding_of_a_part_counts_what_is_in_the_part() {
    let home = home_with_swaps(12);
    // Among the others: behind them they would say that it is over.
    for number in 0..6 {
        let mut told = Told::new(&format!("large-{number}"), "/home/user/lantern", 20_000 + number * 86_400);
        told.ask(OPUS, 0, 20_000, 800);
        (0..30).for_each(|turn| _ = told.ask(OPUS, 20_000 + turn * 9_000, 9_000, 500));
        place(&home, &told);
    }
    let report = report(&home, &[]);
    let found = finding(&report, "miss_model_swap").unwrap_or_else(|| panic!("{report:#}"));
    assert!(found["where"].as_str().unwrap().contains(&format!("only with {SONNET}")), "{found:#}");
    let saved = found["saved_usd"].as_f64().unwrap();
    assert!((saved - 6.0 * 41_000.0 * SONNET_LOST_PER_TOKEN).abs() < 1e-6, "{found:#}");
    assert_eq!(found["count"], 6, "the other six are with Opus: {found:#}");
    // Its interval is over the sessions of the part.
    let out = home.run(&[]).out;
    assert!(out.contains("On real logs intervals over 6 sessions held about 57 times in 100"), "{out}");
}

#[test]
fn a_few_sessions_have_no_findings() {
    for sessions in [1, 2, 4] {
        let report = report(&home_with_swaps(sessions), &[]);
        assert_eq!(report["findings"], json!([]), "an interval over {sessions} sessions says nothing");
    }
    let out = home_with_swaps(1).run(&[]).out;
    assert!(
        out.contains("nothing: no saving in this session can be told from chance and the simulation's error"),
        "{out}"
    );
}

/// One clock that ran ahead takes the page to no other days: what it says is left out and told of.
#[test]
fn a_request_of_the_future_hides_no_request_of_the_past() {
    let page = |months: &[&str]| {
        let home = Home::new();
        for (number, month) in months.iter().enumerate() {
            for day in 0..20 {
                let mut told = Told::new(&format!("s{number}-{day}"), "/home/user/lantern", day * 86_400);
                told.ask(OPUS, 0, 1_000, 100);
                told.text = told.text.replace("2026-01-", month);
                place(&home, &told);
                if !month.starts_with("2026") {
                    break;
                }
            }
        }
        let outcome = home.run(&["report"]);
        assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
        (outcome.out.lines().next().unwrap().to_owned(), outcome.err)
    };
    for past in [&["2026-01-", "2026-02-", "2026-03-"][..], &["2026-03-"]] {
        let (alone, err) = page(past);
        assert!(!err.contains("future"), "{err}");
        for ahead in ["2028-01-", "2126-01-"] {
            let (beside, err) = page(&[past, &[ahead]].concat());
            assert_eq!(beside, alone);
            assert!(err.contains("1 request dated in the future is left out"), "{err}");
            assert!(err.contains(&format!("the logs go on to {ahead}")), "{err}");
        }
    }
}

/// The days of a page end with a day, so that commands with its flags see its requests: also beside a clock that ran ahead.
#[test]
fn a_page_that_leaves_the_future_out_ends_with_a_day() {
    let home = Home::new();
    let sheet = include_str!("../../rules/findings.toml").replace("ahead_hours_max = 24", "ahead_hours_max = 12");
    let rules = home.write("rules/findings.toml", sheet);
    for (number, (day, second)) in [("2026-10-20", 0), ("2026-11-01", 50_400), ("2028-01-02", 0)].iter().enumerate() {
        let mut told = Told::new(&format!("s{number}"), "/home/user/lantern", *second);
        told.ask(OPUS, 0, 1_000, 100);
        told.text = told.text.replace("2026-01-02", day);
        place(&home, &told);
    }
    let page = report(&home, &["--rules-dir", rules.parent().unwrap().to_str().unwrap()]);
    let flags: Vec<&str> = page["same_logs"].as_str().unwrap().split(' ').collect();
    let bill = home.json(&[&["cost"], &flags[..]].concat())["summary"]["bill"].clone();
    assert_eq!(page["spent"]["requests"], bill["requests"], "{flags:?}");
}

/// The commands that a page names read what it has read.
#[test]
fn commands_that_are_told_name_the_lake_and_the_rules() {
    let home = super::claude_settings::growing();
    let rules = home.write("rules/tool_use.toml", include_str!("../../rules/tool_use.toml"));
    let lake = home.path("a lake");
    let [lake, rules] = [&*lake, rules.parent().unwrap()].map(|path| path.to_str().unwrap());
    let outcome = home.run(&["report", "--lake", lake, "--rules-dir", rules]);
    assert!(outcome.out.contains(&format!("--lake '{lake}' --rules-dir {rules}")), "{}\n{}", outcome.out, outcome.err);
}

#[test]
fn one_record_only_subagents_and_a_clock_that_runs_backwards_make_a_true_page() {
    let home = Home::new();
    let mut told = Told::new("s", "/home/user/lantern", 1_000);
    told.ask(OPUS, 0, 1_000, 100);
    // The answer alone.
    let answer = told.text.lines().last().unwrap().to_owned() + "\n";
    home.write(".claude/projects/-home-user-lantern/s.jsonl", answer);
    let spent = &report(&home, &[])["spent"];
    // 1,000 written, 5 in full, 100 answered.
    let nano_usd = 1_000 * 6_250 + 5 * 5_000 + 100 * 25_000;
    assert_eq!((&spent["total"]["nano_usd"], &spent["requests"]), (&json!(nano_usd), &json!(1)));

    let home = Home::new();
    let mut agent = Told::new("s", "/home/user/lantern", 1_000);
    agent.ask(OPUS, 0, 1_000, 100);
    let lines = agent.text.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        (record["isSidechain"], record["agentId"]) = (json!(true), json!("a1"));
        format!("{record}\n")
    });
    home.write(".claude/projects/-home-user-lantern/s/subagents/agent-a1.jsonl", lines.collect::<String>());
    assert_eq!(report(&home, &[])["spent"]["total"]["nano_usd"], nano_usd);

    let home = Home::new();
    let mut told = Told::new("s", "/home/user/lantern", 200_000);
    told.ask(OPUS, 0, 1_000, 100).second = 1_000;
    told.ask(OPUS, 1_000, 1_000, 100);
    place(&home, &told);
    let outcome = home.run(&[]);
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    assert!(outcome.out.starts_with("Spent 2026-01-02 … 2026-01-04 (3 days): $0.0"), "{}", outcome.out);
}

#[test]
fn models_without_a_price_are_told_in_tokens_and_never_cost_nothing() {
    let home = Home::new();
    let mut told = Told::new("s", "/home/user/lantern", 1_000);
    told.ask("claude-unheard-of-9", 0, 1_000, 100);
    place(&home, &told);
    let outcome = home.run(&[]);
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    assert!(!outcome.out.contains('$'), "{}", outcome.out);
    assert!(outcome.out.contains("1,105 tokens without a known price"), "{}", outcome.out);
    assert!(outcome.out.contains("claude-unheard-of-9"), "{}", outcome.out);
    assert!(outcome.out.contains("no model here has a known price"), "{}", outcome.out);
}

#[test]
fn the_page_is_about_the_last_thirty_days_and_says_so() {
    let home = Home::new();
    for (session, day) in [("old", 0), ("new", 40)] {
        let mut told = Told::new(session, "/home/user/lantern", 0);
        told.ask(OPUS, 0, 1_000, 100);
        let text = told.text.replace("2026-01-02", if day == 0 { "2026-01-02" } else { "2026-02-11" });
        home.write(&format!(".claude/projects/-home-user-lantern/{session}.jsonl"), text);
    }
    let out = home.run(&[]).out;
    assert!(out.starts_with("Spent in the 30 days up to 2026-02-11 (first request 2026-02-11): "), "{out}");
    let (cut, asked, all) =
        (report(&home, &[]), report(&home, &["--since", "2026-01-13"]), report(&home, &["--since", "2026-01-01"]));
    assert_eq!(cut["spent"], asked["spent"], "the last day counts");
    assert_eq!((&cut["spent"]["requests"], &all["spent"]["requests"]), (&json!(1), &json!(2)));
    assert_eq!(cut["same_logs"], "--since 2026-01-13");
    // What was asked later and never answered is no request.
    let asked = r#"{"type":"user","uuid":"late","sessionId":"late","cwd":"/p","timestamp":"2026-05-20T10:00:00.000Z","message":{"role":"user","content":"hi"}}"#;
    home.write(".claude/projects/-home-user-lantern/late.jsonl", format!("{asked}\n"));
    assert_eq!(report(&home, &[])["spent"]["total"], cut["spent"]["total"]);
}

/// Of an even number of days the two in the middle count alike.
#[test]
fn the_median_of_days_lies_between_the_two_in_the_middle() {
    let home = home_with_swaps(3);
    let days = report(&home, &[])["spent"]["by_day"].clone();
    let money: Vec<f64> =
        days.as_object().unwrap().values().map(|day| day["nano_usd"].as_f64().unwrap() / 1e9).collect();
    assert!(money.len() == 2 && money[0] != money[1], "{days}");
    let line = format!("the median of 2 days ${:.2}", (money[0] + money[1]) / 2.0);
    let out = home.run(&[]).out;
    assert!(out.contains(&line), "{line}: {out}");
}

/// What is shared names no place, and its commands are about the same days.
#[test]
fn commands_of_a_shared_page_keep_the_days() {
    let asked = ["--redact", "--since", "2026-01-02", "--project", "user"];
    let out = home_with_swaps(12).run(&asked).out;
    assert!(out.contains("See: devboy report --finding miss_model_swap --since 2026-01-02\n"), "{out}");
}

/// Settings that cannot be read are no settings without anything in them.
#[test]
fn broken_settings_are_told_of_beside_the_page() {
    let home = home_with_swaps(12);
    home.write(".claude/settings.json", "{\"model\": }");
    let outcome = home.run(&[]);
    assert_eq!(outcome.exit, Exit::Done);
    assert!(outcome.err.contains("# note: what is set already is not known: "), "{}", outcome.err);
}

#[test]
fn a_redacted_page_names_nobody_and_the_lake_holds_no_name() {
    let home = home_with_swaps(12);
    let file = home.path("page.html");
    let page = file.to_str().unwrap();
    let open = home.run(&["report", "--html", page]);
    assert!(open.out.contains("…/lantern") && open.out.contains("…/orchard"), "{}", open.out);
    assert!(std::fs::read_to_string(&file).unwrap().contains("…/lantern"));
    let forms: [&[&str]; 4] =
        [&["--redact"], &["--redact", "--json"], &["--format", "md"], &["--redact", "--html", page]];
    for form in forms {
        let outcome = home.run(&[&["report"], form].concat());
        assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
        let html = if form.contains(&page) { std::fs::read_to_string(&file).unwrap() } else { String::new() };
        for name in ["lantern", "orchard", "/home/", "secret"] {
            assert!(!outcome.out.contains(name) && !html.contains(name), "{form:?} names {name}: {}", outcome.out);
        }
        assert!(outcome.out.contains("project A"), "{form:?}: {}", outcome.out);
    }
    let lake = all_bytes(&home.lake());
    let holds = |name: &str| memchr::memmem::find(&lake, name.as_bytes()).is_some();
    assert!(!holds("lantern") && !holds("orchard"), "the page is remembered without names");
}

#[test]
fn the_file_for_a_browser_runs_nothing_and_fetches_nothing() {
    let home = Home::new();
    for number in 0..8 {
        let mut told = Told::new(&format!("s-{number}"), "/home/<script>alert(1)\"'&", number * 43_200);
        told.ask(OPUS, 0, 40_000, 500).ask(SONNET, 0, 42_000, 500).ask(OPUS, 0, 43_000, 500);
        place(&home, &told);
    }
    let file = home.path("page.html");
    let outcome = home.run(&["report", "--html", file.to_str().unwrap()]);
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    let html = std::fs::read_to_string(&file).unwrap();
    assert!(html.contains("content=\"default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;"), "{html}");
    for word in ["<script", "http", "url(", "@import", " src=", " href="] {
        assert!(!html.contains(word), "{word}: {html}");
    }
    assert!(html.len() < 1_000_000);
    assert!(html.contains("&lt;script&gt;"), "the name is there, as text");
    assert_closed(&html);
    assert!(html.contains("<svg") && html.contains("<title>") && html.contains("<table"));
}

/// Every element that is opened is closed in its order.
fn assert_closed(html: &str) {
    let mut open: Vec<String> = Vec::new();
    let without_style = html.split("<style>").next().unwrap().to_owned() + html.split("</style>").nth(1).unwrap();
    for tag in without_style.split('<').skip(1) {
        let name = tag.split([' ', '>']).next().unwrap();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
            None if ["!DOCTYPE", "meta"].contains(&name) => {}
            None => open.push(name.to_owned()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// A compaction that no request followed is on no other session's line.
#[test]
fn a_compaction_is_drawn_in_its_own_session() {
    let home = Home::new();
    for (number, session) in (0..).zip(["ends", "goes-on"]) {
        let mut told = Told::new(session, "/home/user/lantern", number * 43_200);
        told.ask(OPUS, 0, 40_000, 500).ask(OPUS, 40_000, 500, 500);
        told.parent = None;
        told.push("boundary", boundary(""));
        told.push("summary", compact_summary("", None));
        if session == "goes-on" {
            told.ask(OPUS, 0, 15_000, 500).ask(OPUS, 15_000, 500, 500);
        }
        place(&home, &told);
    }
    assert_eq!(page_of(&home, &["report"]).matches("<title>compaction after").count(), 1);
}

#[test]
fn a_terminal_is_not_overrun_and_a_pipe_has_whole_lines() {
    let home = home_with_swaps(12);
    for width in [60, 80, 120] {
        let out = home.out_at_width(&["report"], width);
        let widest = out.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= width.into(), "{widest} at {width}\n{out}");
    }
    let piped = home.run(&["report"]).out;
    let at_width = home.out_at_width(&["report"], 60);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&piped), words(&at_width), "the same words");
    assert!(piped.lines().count() < at_width.lines().count());
    let table = home.run(&["what-if", "prompt-cache"]).out;
    assert!(!table.contains(['│', '┆', '╞']), "no boxes in a pipe: {table}");
    assert!(home.out_at_width(&["what-if", "prompt-cache"], 160).contains('┆'));
}

#[test]
fn a_second_look_and_any_number_of_threads_say_the_same() {
    let home = home_with_swaps(12);
    let first = home.run(&["report", "--json", "--reproducible", "--no-lake", "--threads", "1"]).out;
    assert!(first.contains("miss_model_swap"));
    let spent = |text: &str| -> (Value, Value) {
        // The commands that it names see the same logs.
        let report: Value = serde_json::from_str(&text.replace(" --no-lake", "")).unwrap();
        (report["spent"].clone(), report["findings"].clone())
    };
    let lake = |threads: &str| home.run(&["report", "--json", "--reproducible", "--threads", threads]).out;
    let (cold, warm) = (lake("3"), lake("1"));
    assert_eq!(spent(&first), spent(&cold));
    assert_eq!(spent(&cold), spent(&warm));
}

#[test]
fn old_spellings_go_on_working_and_are_not_in_the_help() {
    let home = home_with_swaps(3);
    let same = [
        (
            vec!["what-if", "compaction", "--set", "window=100000"],
            vec!["replay", "--policy", "compaction", "--set", "window=100000"],
        ),
        (vec!["what-if", "all"], vec!["replay", "--policy", "all"]),
    ];
    for (new, old) in same {
        let (new, old) = (home.run(&new), home.run(&old));
        assert_eq!((new.exit, &new.out), (Exit::Done, &old.out), "{}", new.err);
    }
    let (new, old) = (home.run(&["planner", "--json"]), home.run(&["replay", "--planner", "--json"]));
    assert_eq!((new.exit, new.out), (old.exit, old.out));
    let help = |command: &str| home.run(&[command, "--help"]).out;
    let replay = help("replay");
    for flag in ["--policy", "--planner", "--ttl", "--train-until"] {
        assert!(!replay.contains(flag), "{flag}: {replay}");
    }
    assert!(help("what-if").contains("--ttl") && help("planner").contains("--train-until"));
    let lone = home.run(&["replay", "--ttl", "5m"]);
    assert_eq!(lone.exit, Exit::Usage, "it still asks for --policy: {}", lone.err);
}

proptest! {
    #![proptest_config(cases(24))]

    /// Projects, models and days each add up to the whole, to the nano-dollar, and the whole is what usage says.
    #[test]
    fn what_was_spent_adds_up(requests in prop::collection::vec((0_usize..3, 0_usize..3, 0_u64..90_000, 0_u64..9_000, 0_u64..4_000, 0_u32..5), 1..20)) {
        let home = Home::new();
        // Input, written for five minutes, read, answered: nano-dollars per token.
        let models = [(OPUS, [5_000, 6_250, 500, 25_000]), ("claude-haiku-4-5-20251001", [1_000, 1_250, 100, 5_000]), ("nobody-1", [0; 4])];
        let mut sessions: BTreeMap<usize, Told> = BTreeMap::new();
        let (mut whole, mut unpriced) = (0, 0);
        for &(project, model, read, write, output, wait) in &requests {
            let told = sessions.entry(project).or_insert_with(|| Told::new(&format!("s-{project}"), &format!("/p/{project}"), 10));
            let (name, rates) = models[model];
            told.ask(name, read, write, output).second += wait * 4_000;
            whole += 5 * rates[0] + write * rates[1] + read * rates[2] + output * rates[3];
            unpriced += if model == 2 { 5 + write + read + output } else { 0 };
        }
        sessions.values().for_each(|told| place(&home, told));
        let spent = report(&home, &[])["spent"].clone();
        prop_assert_eq!(&spent["total"]["nano_usd"], &json!(whole));
        prop_assert_eq!(&spent["total"]["unpriced_tokens"], &json!(unpriced));
        for by in ["by_project", "by_model", "by_day"] {
            let sum: u64 = spent[by].as_object().unwrap().values().map(|row| row["nano_usd"].as_u64().unwrap()).sum();
            prop_assert_eq!(sum, whole, "{}", by);
        }
    }

    /// No line is longer than the terminal unless a single word is.
    #[test]
    fn paragraphs_keep_their_words_and_their_width(words in prop::collection::vec("[a-z…]{1,12}", 1..60), width in 40_u16..120) {
        let text = words.join(" ");
        let wrapped = paragraph("  → ", &text, Some(width));
        prop_assert!(wrapped.lines().all(|line| line.chars().count() <= usize::from(width)), "{}", wrapped);
        let unwrapped: Vec<&str> = wrapped.split_whitespace().skip(1).collect();
        prop_assert_eq!(unwrapped, words.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(paragraph("  → ", &text, None), format!("  → {text}\n"));
    }
}

/// A page that another command writes: by the same rules, with a drawing, titles and a table.
fn page_of(home: &Home, command: &[&str]) -> String {
    let file = home.path("other.html");
    let outcome = home.run(&[command, &["--html", file.to_str().unwrap()]].concat());
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    let html = std::fs::read_to_string(&file).unwrap();
    assert!(html.contains("content=\"default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;"), "{html}");
    for word in ["<script", "http", "url(", "@import", " src=", " href=", "secret"] {
        assert!(!html.contains(word), "{word}: {html}");
    }
    assert!(html.len() < 1_000_000);
    assert_closed(&html);
    html
}

#[test]
fn edges_beyond_chance_are_drawn_with_their_table() {
    let home = Home::new();
    for number in 0..8 {
        let text =
            super::harness::session(&format!("s{number}"), 40).replace("\"Grep\"", "\"mcp__secretserver__look\"");
        home.write(&format!(".claude/projects/-p/{number}.jsonl"), text);
    }
    let html = page_of(&home, &["mine", "edges", "--lags", "1,2"]);
    let report = home.json(&["mine", "edges", "--lags", "1,2"]);
    let rows = report["edges"].as_array().unwrap();
    let significant: Vec<&Value> = rows.iter().filter(|row| row["significant"] == true).collect();
    assert!(!significant.is_empty(), "{rows:#?}");
    assert_eq!(html.matches("<path").count(), significant.len(), "a mark for each edge beyond chance");
    assert_eq!(html.matches("</title>").count(), significant.len() + 1, "each has a title, and so has the page");
    assert_eq!(html.matches("<tr>").count(), significant.len() + html.matches("<table>").count());
    for row in significant {
        let count = crate::report::numbers::thousands(row["count"].as_u64().unwrap());
        let title = format!("{} → {}: {count} times", row["from"].as_str().unwrap(), row["to"].as_str().unwrap());
        assert!(html.contains(&title), "{title}\n{html}");
    }
    // Nothing beyond chance is a page as well.
    let few = Home::new();
    few.write(".claude/projects/-p/one.jsonl", super::harness::session("one", 3));
    let found = |more: &[&str]| {
        let html = page_of(&few, &[&["mine", "edges"], more].concat());
        html.split("<p>").find_map(|line| line.split_once(" between tools")).unwrap().0.to_owned()
    };
    let all = found(&[]);
    assert!(all.starts_with("0 of ") && all != "0 of 0 edges", "{all}");
    assert_eq!(found(&["--significant"]), all, "of all edges, whichever are shown");
}

#[test]
fn a_replay_is_drawn_by_layer_reach_and_format_with_the_figures_of_the_report() {
    let home = Home::new();
    let rows: Vec<Value> =
        (0..40).map(|row| json!({ "id": row, "name": format!("row {row}"), "state": "open" })).collect();
    let body = serde_json::to_string_pretty(&rows).unwrap();
    for number in 0..3 {
        let call = |at: usize| super::harness::CallLines {
            session: if number == 0 {
                "a"
            } else if number == 1 {
                "b"
            } else {
                "c"
            },
            number: at,
            tool: "mcp__tracker__list",
            input: "/x",
            body: &body,
            model: "claude-opus-4-6",
        };
        home.write(
            &format!(".claude/projects/-p/{number}.jsonl"),
            (0..4).map(|at| call(at).text()).collect::<String>(),
        );
    }
    let html = page_of(&home, &["replay"]);
    let replay = &home.json(&["replay"])["replay"];
    let number = |value: &Value| crate::report::numbers::thousands(value.as_u64().unwrap());
    for arm in replay["arms"].as_array().unwrap() {
        for key in ["baseline_tokens", "saved_tokens"] {
            let figure = number(&arm["savings"][key]);
            assert!(html.contains(&format!(">{figure}<")), "{key} {figure} is not on the page");
        }
    }
    for heading in ["Tokens saved, by layer", "Who could save them", "What was decided, by format"] {
        assert!(html.contains(heading), "{heading}");
    }
    assert_eq!(html.matches("<table>").count(), 3, "each plot has its table");
    assert!(html.contains("title=\"published formats, L0 deduplication: "), "marks have titles: {html}");
    for other in [&["--sweep", "dedup.lru_size=1,5"][..], &["--policy", "prompt-cache"], &["--planner"]] {
        let outcome = home.run(&[&["replay", "--html", "x.html"], other].concat());
        assert_eq!(outcome.exit, Exit::Usage, "{other:?}");
    }
}

/// What a page names to be run is about the same logs, and is not offered where its sessions are letters.
#[test]
fn commands_in_the_words_of_a_finding_are_about_the_same_logs() {
    let home = home_with_failures();
    let asked = ["report", "--finding", "failed_calls", "--since", "2026-01-02", "--project", "user"];
    let out = home.run(&asked).out;
    let flags = "--project user --since 2026-01-02";
    assert!(out.contains(&format!("Sessions with most of it (devboy session ID {flags} shows one)\n")), "{out}");
    let shared = home.run(&[&asked[..], &["--redact"]].concat()).out;
    assert!(shared.contains("\nSessions with most of it\n"), "{shared}");
    let plain = home.run(&["report", "--finding", "failed_calls"]).out;
    assert!(plain.contains("(devboy session ID shows one)"), "{plain}");
}

/// What fails is told by the tool, those first that cost most; all of it is shared out among them.
#[test]
fn failed_calls_are_told_by_tool() {
    let home = home_with_failures();
    let out = home.json(&["report", "--finding", "failed_calls", "--since", "2026-01-02"]);
    let what = out["finding"]["what"].as_str().unwrap();
    assert!(what.contains("96 of them, by Bash, Edit; their messages"), "{what}");
    let advice = out["finding"]["advice"].as_str().unwrap();
    assert!(advice.contains("CLAUDE.md") && advice.contains("permissions"), "what was refused did not fail: {advice}");
    let short = home.run(&["--finding", "failed_calls", "--since", "2026-01-02", "--top", "1"]).out;
    assert!(short.contains("by Bash and 1 other tool; their messages"), "{short}");
    let made = out["made_of"].as_array().unwrap();
    let counts = made.iter().map(|made| (made["tool"].as_str().unwrap(), made["count"].as_u64().unwrap()));
    assert_eq!(counts.collect::<Vec<_>>(), [("Bash", 72), ("Edit", 24)]);
    let sum: f64 = made.iter().map(|made| made["saved_usd"].as_f64().unwrap()).sum();
    let whole = out["finding"]["saved_usd"].as_f64().unwrap();
    assert!((sum - whole).abs() < 1e-9 && whole > 0.0, "{sum} of {whole}");
}

/// Sessions whose calls fail with long messages.
fn home_with_failures() -> Home {
    let home = Home::new();
    for number in 0..8 {
        let mut told = Told::new(&format!("s-{number}"), "/home/user/lantern", number * 43_200);
        told.ask(OPUS, 0, 20_000, 500);
        for turn in 0..12 {
            let text = "no such thing is there ".repeat(400);
            let read = 20_000 + turn * 2_500;
            told.fail(OPUS, (read, 2_500, 100), if turn % 4 == 3 { "Edit" } else { "Bash" }, &text);
        }
        told.ask(OPUS, 50_000, 500, 500);
        place(&home, &told);
    }
    home
}

/// The client compacts some way below its window: what is counted are the requests that reach that size.
#[test]
fn contexts_are_counted_from_where_the_client_compacts() {
    let home = Home::new();
    for number in 0..12 {
        let mut told = Told::new(&format!("near-{number}"), "/home/user/lantern", number * 43_200);
        told.ask(OPUS, 0, 20_000, 800);
        (0..6).for_each(|turn| _ = told.ask_at_length(OPUS, 20_000 + turn * 12_000, 12_000));
        (0..60).for_each(|turn| _ = told.ask_at_length(OPUS, 92_000 + turn * 100, 100));
        place(&home, &told);
    }
    let report = report(&home, &[]);
    let found = finding(&report, "context_growth").unwrap_or_else(|| panic!("{report:#}"));
    // Of each session the last three of the six that grow, and all that stay at that size.
    assert_eq!(found["count"], 12 * (3 + 60), "{found:#}");
    let what = found["what"].as_str().unwrap();
    assert_eq!(
        what,
        "Contexts grow too far: 756 requests carried 67,000 tokens or more, and each paid for all of them"
    );
}

/// Twelve sessions that read a file, grow, and edit a file at last, of which the edit quotes a line.
fn home_with_late_edits(quoted: &str) -> Home {
    let home = Home::new();
    for number in 0..12 {
        let mut told = Told::new(&format!("late-{number}"), "/home/user/lantern", number * 43_200);
        let on_file = |told: &mut Told, tool: &str, billed, input: Value, result: &str| {
            told.number += 1;
            let call = format!("call-{}-{}", told.session, told.number);
            told.answer(OPUS, billed, json!({ "type": "tool_use", "id": call, "name": tool, "input": input }));
            told.push("result", answers(&call, json!(result)));
            told.number += 1;
        };
        let path = "/home/user/lantern/src/wick.rs";
        told.ask(OPUS, 0, 20_000, 800);
        let lines =
            "     1\u{2192}fn trim_the_wick() {\n     2\u{2192}    let oil = measure_the_oil(3);\n     3\u{2192}}\n";
        on_file(&mut told, "Read", (20_000, 1_000, 100), json!({ "file_path": path }), lines);
        (0..40).for_each(|turn| _ = told.ask_at_length(OPUS, 21_000 + turn * 12_000, 12_000));
        let edit = json!({ "file_path": path, "old_string": quoted, "new_string": "    let oil = 4;" });
        on_file(&mut told, "Edit", (501_000, 600, 100), edit, "The file has been updated.");
        told.ask(OPUS, 501_600, 200, 100);
        place(&home, &told);
    }
    home
}

/// As `tune claude-settings` judges it: an edit of text that is gone costs a request more, which reads its whole context.
#[test]
fn what_a_smaller_window_breaks_is_paid_for_on_the_page() {
    let found = |quoted: &str| {
        let page = report(&home_with_late_edits(quoted), &[]);
        finding(&page, "context_growth").unwrap_or_else(|| panic!("{page:#}")).clone()
    };
    let (lost, kept) = (found("    let oil = measure_the_oil(3);"), found("    what nobody has read before"));
    assert!(lost["breaks"].as_str().unwrap().contains("12 edits would need text that is gone"), "{lost:#}");
    let [lost, kept] = [lost, kept].map(|found| found["saved_usd"].as_f64().unwrap());
    let again = 12.0 * 501_605.0 * 0.5 / 1e6;
    assert!((kept - lost - again).abs() < 1e-6, "{kept} − {lost}: {again}");
}
