//! From the planner replay to the rules: the table that it learns, the events that it leaves, and what is made of both.

use std::path::Path;

use serde_json::{Value, json};

use super::harness::{Home, Outcome, all_bytes};
use super::script::{Script, path};
use crate::base::data::Data;
use crate::planner::selectivity::file::Selectivity;
use crate::planner::selectivity::table::{Features, FollowUpLink, ListKind};
use crate::planner::selectivity::{SHEET, SelectivityThresholds};
use crate::settings::annotations::Annotations;
use crate::settings::tool_model::ToolModel;
use crate::settings::{Effective, SettingsFile};
use crate::shell::arguments::Exit;
use crate::telemetry::effectiveness::late_invoked;
use crate::telemetry::log::{Decline, RecordedEvent, RecordedPlan};

const SESSIONS: usize = 40;
/// Listings of one file per session, and of ten.
const EACH: usize = 4;

/// Whether the agent reads what a listing shows. A single file nine times in ten, one of ten files never.
fn is_read(session: usize, n: usize) -> bool {
    (session * EACH + n) % 10 != 3
}

/// An agent that lists single files and mostly reads them, and lists many and reads none of them.
fn lister(session: usize) -> Script {
    let glob = |script: Script, name: &str, files: &[String]| {
        script.step(&[("Glob", json!({ "pattern": name }), &files.join("\n"))])
    };
    (0..EACH).fold(Script::new(&format!("s{session:02}")), |script, n| {
        let file = |file: usize| format!("src/secretdir/file_{session}_{n}_{file}.rs");
        let script = glob(script, &format!("one{n}"), &[path(&file(0))]);
        let read = if is_read(session, n) { file(0) } else { format!("other_{n}.rs") };
        let body =
            format!("     1→// {session} {n}\n     2→{}\n", "the quick brown fox jumps over the lazy dog; ".repeat(20));
        let script = script.step(&[("Read", json!({ "file_path": path(&read) }), &body)]);
        let many: Vec<String> = (1..11).map(|number| path(&file(number))).collect();
        let script = glob(script, &format!("many{n}"), &many);
        script.step(&[("Bash", json!({ "command": format!("run {session} {n}") }), "done and more than that")])
    })
}

fn home() -> Home {
    let home = Home::new();
    for session in 0..SESSIONS {
        let day = format!("2026-{:02}-{:02}T", 1 + session / 28, 1 + session % 28);
        let log = lister(session).log().replace("2026-01-02T", &day);
        home.write(&format!(".claude/projects/p/s{session:02}.jsonl"), log);
    }
    home
}

fn run(home: &Home, arguments: &[&str]) -> Outcome {
    let outcome = home.run(arguments);
    assert_eq!(outcome.exit, Exit::Done, "{arguments:?}: {}", outcome.err);
    outcome
}

fn events(dir: &Path) -> Vec<Value> {
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
    texts.flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>()).collect()
}

/// What the twelve judged sessions hold: single listings, and those that were read.
fn judged() -> (u64, u64) {
    let single = || (28..SESSIONS).flat_map(|session| (0..EACH).map(move |n| (session, n)));
    (single().count() as u64, single().filter(|(session, n)| is_read(*session, *n)).count() as u64)
}

#[test]
fn the_selective_planner_recovers_the_planted_habit_and_keeps_it_on_later_sessions() {
    let home = home();
    let file = home.path("selectivity.toml");
    let report = home.json(&["replay", "--planner", "--write-selectivity", file.to_str().unwrap()]);
    let selectivity = &report["planner"]["selectivity"];
    let (single, read) = judged();
    assert_eq!((single, read), (48, 43));
    let exact = &selectivity["judged"]["came_true"];
    assert_eq!((exact["k"].as_u64(), exact["n"].as_u64()), (Some(read), Some(single)), "{selectivity}");
    assert!(selectivity["threshold"].as_f64().unwrap() >= 0.6);
    // Half of the answers list many files, of which none is fetched.
    let coverage = &selectivity["judged"]["coverage"];
    assert_eq!((coverage["k"].as_u64(), coverage["n"].as_u64()), (Some(48), Some(96)));
    let shown = home.out_at_width(&["replay", "--planner", "--explain"], 100);
    let columns = |word: &str| {
        let line = shown.lines().find(|line| line.contains(word)).unwrap_or_default();
        line.split(['│', '┆']).map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(columns("│ from "), ["from", "training", "95 %", "covers", "judged", "95 %", "covers"]);
    let chosen = columns("┆ chosen");
    assert_eq!((chosen[4].as_str(), chosen[6].as_str(), chosen[7].as_str()), ("90 % of 48", "50 %", "chosen"));
    let numbers = SelectivityThresholds::parse(&Data::default().text(SHEET).unwrap(), SHEET).unwrap();
    let written = Selectivity::from_toml(&std::fs::read_to_string(&file).unwrap(), "file", &numbers).unwrap();
    let link = FollowUpLink { from: "Glob".into(), to: "Read".into(), argument: "file_path".into() };
    let of = |found| {
        let features = Features { found, list: ListKind::Files, rank: 1, same_directory: true };
        written.table.estimate(&link, &features, &numbers).unwrap().counts.exact()
    };
    let (one, many) = (of(1), of(10));
    assert!(one.lower < 0.9 && 0.9 < one.upper, "{one:?}");
    assert_eq!((many.k, many.lower), (0, 0.0));
}

#[test]
fn a_configuration_with_the_table_does_as_the_selective_planner_does() {
    let home = home();
    let file = home.path("selectivity.toml");
    let sent = |report: &Value, name: &str| {
        let arms = report["planner"]["arms"].as_array().unwrap();
        let arm = arms.iter().find(|arm| arm["arm"] == name).unwrap();
        (arm["total"]["sent"].clone(), arm["total"]["within_3_steps"]["exact"].clone())
    };
    let before = home.json(&["replay", "--planner", "--write-selectivity", file.to_str().unwrap()]);
    assert_ne!(sent(&before, "configured"), sent(&before, "selective"));
    let text = std::fs::read_to_string(&file).unwrap();
    home.write(".config/devboy/pipeline_config.toml", format!("schema_version = 4\n{text}"));
    let outcome = run(&home, &["replay", "--planner"]);
    assert!(!outcome.err.contains("warning"), "{}", outcome.err);
    let after = home.json(&["replay", "--planner"]);
    assert_eq!(sent(&after, "configured"), sent(&before, "selective"));
    home.write(".config/devboy/pipeline_config.toml", text.replace("found = \"1\"", "found = \"one\""));
    let outcome = home.run(&["replay", "--planner"]);
    assert_eq!(outcome.exit, Exit::Failed);
    assert!(outcome.err.contains("no group \"one\""), "{}", outcome.err);
}

#[test]
fn what_the_planner_did_stands_between_the_events_of_the_calls_and_reaches_r7() {
    let home = home();
    let (plain, planned) = (home.path("plain"), home.path("planned"));
    let arguments = |dir: &Path, more: &[&str]| {
        let dir = dir.to_str().unwrap();
        let all = [&["replay", "--emit-telemetry", dir], more].concat();
        run(&home, &all);
    };
    arguments(&plain, &[]);
    arguments(&planned, &["--planner", "--arm", "selective"]);
    let is_planned =
        |event: &Value| event["enricher_prefetched"] == true || !event["enricher_decline_reason"].is_null();
    let all = events(&planned);
    let (beside, organic): (Vec<Value>, Vec<Value>) = all.into_iter().partition(is_planned);
    // Of the summaries only what the planner did is another.
    let calls = |events: Vec<Value>| -> Vec<Value> {
        let mut events = events;
        let data = events.iter_mut().filter_map(|line| line["data"].as_object_mut());
        data.for_each(|data| drop(data.remove("enrichment")));
        events
    };
    assert_eq!(calls(organic.clone()), calls(events(&plain)), "the calls are what they are without a planner");
    let fetched: Vec<&Value> = beside.iter().filter(|event| event["enricher_prefetched"] == true).collect();
    let declined: Vec<&Value> = beside.iter().filter(|event| event["enricher_prefetched"].is_null()).collect();
    let cited = fetched.iter().filter(|event| event["cited_in_next_n_turns"] == true).count() as u64;
    assert_eq!((fetched.len() as u64, cited), judged());
    // Three of each list of ten are candidates, and so is what Glob could hand to other tools.
    assert!(declined.len() >= 3 * 48, "{}", declined.len());
    assert!(declined.iter().all(|event| event["enricher_decline_reason"] == "low_probability"));
    // The answer of a used prefetch is known, that of an unused one is not.
    for event in &fetched {
        let known = event["content_sha_prefix_hex"] != "";
        assert_eq!(known, event["cited_in_next_n_turns"] == true, "{event}");
        assert_eq!(known, event["enricher_predicted_cost_tokens"].as_u64().is_some(), "{event}");
        assert!(event["file_path_hash"].is_string());
    }
    for secret in ["secretdir", "file_30", "lantern"] {
        assert!(memchr::memmem::find(&all_bytes(&planned), secret.as_bytes()).is_none(), "{secret}");
    }
    let dir = planned.to_str().unwrap();
    let summed = |field: &str| -> u64 {
        let summaries = organic.iter().filter(|line| line["type"] == "session_summary");
        summaries.map(|line| line["data"]["enrichment"][field].as_u64().unwrap_or(0)).sum()
    };
    assert_eq!(summed("total_prefetches"), fetched.len() as u64);
    assert_eq!(summed("cited_prefetches"), cited);
    assert_eq!(summed("total_declines"), declined.len() as u64);
    let told_late = format!(
        " decline_recall_loss={:.1}% ",
        100.0 * summed("late_invoked_after_decline") as f64 / declined.len() as f64
    );
    assert!(summed("late_invoked_after_decline") > 0, "a listed file is declined and another one read");
    let report = home.json(&["planner"])["planner"]["arms"].clone();
    let selective = report.as_array().unwrap().iter().find(|arm| arm["arm"] == "selective").unwrap()["total"].clone();
    assert_eq!(summed("prefetch_dispatched"), selective["sent"].as_u64().unwrap());
    assert_eq!(summed("prefetch_won_race"), selective["ends"]["won"].as_u64().unwrap());
    assert_eq!(summed("prefetch_won_race") + summed("prefetch_wasted"), summed("prefetch_dispatched"));
    let annotated = home.json(&["annotate", dir])["total"].clone();
    assert_eq!((&annotated["prefetches"], &annotated["kept"]), (&json!(48), &json!(48)));
    // The pass comes to the same by itself, from contents and windows.
    assert_eq!(annotated["cited_by_answer"], json!(43), "{annotated}");
    let tuned = |dir: &str, more: &[&str]| {
        let arguments = [&["tune", "analyze", "--dry-run", "--input-dir", dir], more].concat();
        (run(&home, &arguments).err, home.json(&[&arguments[..], &["--reproducible"]].concat()))
    };
    let (told, with) = tuned(dir, &["--auto-enrichment"]);
    assert!(told.contains("R7 enabled: enrichment.enabled = true  (48 prefetches, hit_rate 89.6% ≥ 60%)"), "{told}");
    assert!(told.contains("# enrichment: prefetch_hit=89.6%") && told.contains(&told_late), "{told}");
    // What the planner says of overruns is what its events say.
    let known = (summed("total_predictions"), summed("cost_overrun_count"));
    assert_eq!(known, (selective["sent"].as_u64().unwrap(), selective["overruns"].as_u64().unwrap()));
    assert!(told.contains(" race_win=89.6% waste=10.4% ") && told.contains(" dispatched=48 "), "{told}");
    let (_, without) = tuned(plain.to_str().unwrap(), &[]);
    assert_eq!(with["profile"], without["profile"]);
    assert_eq!(with["fingerprints"], without["fingerprints"]);
    // R6 writes nothing unless R7 switches the planner on.
    let of_rules = |report: &Value| -> Vec<Value> {
        let is_of_planner = |finding: &&Value| ["R6", "R7"].iter().any(|rule| finding["rule"] == *rule);
        report["findings"].as_array().unwrap().iter().filter(|finding| !is_of_planner(finding)).cloned().collect()
    };
    assert_eq!(of_rules(&with), of_rules(&without));
}

#[test]
fn the_logs_alone_tell_r6_and_r7_what_the_configured_planner_is_worth() {
    let home = home();
    let analyze = ["tune", "analyze", "--from-claude-logs", "--dry-run"];
    let plain = home.json(&[&analyze[..], &["--reproducible"]].concat());
    let outcome = run(&home, &[&analyze[..], &["--auto-enrichment", "--explain"]].concat());
    // Three of every ten listed files are fetched for nothing, and one of every single file mostly not.
    let report = home.json(&[&analyze[..], &["--auto-enrichment", "--reproducible"]].concat());
    let counts = "43 of 192 responses prefetched were used";
    let flagged = |report: &Value| {
        let findings = report["findings"].as_array().unwrap().iter();
        findings.filter(|finding| finding["rule"] == "R6" && finding.to_string().contains(counts)).count()
    };
    assert_eq!((flagged(&plain), flagged(&report)), (0, 1), "{}", outcome.out);
    // Nothing is called ahead, so that there is nothing to forbid.
    let off = "R7 hold: [tools.\"Read\"] no effect: `enrichment.enabled` is false";
    assert!(outcome.err.contains(off) && !outcome.out.contains("+[tools"), "{}{}", outcome.err, outcome.out);
    assert!(outcome.err.contains("over the latest 12 sessions"), "{}", outcome.err);
    // Of a planner that runs. What R6 wanted to say beside it is held, since nothing else is called ahead, so that R7 itself
    // says what is shipped: no other value changes.
    let shipped = Annotations::load(&Data::default()).unwrap().of("Read").unwrap().model;
    home.write(".config/devboy/pipeline_config.toml", "schema_version = 4\n\n[enrichment]\nenabled = true\n");
    let outcome = run(&home, &["tune", "analyze", "--from-claude-logs", "--auto-enrichment"]);
    let forbidden = "R7 disabled: [tools.\"Read\"].speculate = false  (192 prefetches";
    assert!(outcome.err.contains(forbidden), "{}", outcome.err);
    let written = SettingsFile::load(&home.config()).unwrap();
    let read = Effective::resolve(&written).unwrap().settings.tools["Read"].clone();
    assert_eq!(read, ToolModel { speculate: Some(false), ..shipped }, "{}", written.text);
    assert_eq!(report["profile"], plain["profile"]);
    assert_eq!(report["fingerprints"], plain["fingerprints"]);
}

#[test]
fn events_and_table_are_the_same_for_any_number_of_threads() {
    let home = home();
    let made = |threads: &str| {
        let (dir, file) = (home.path(&format!("t{threads}")), home.path(&format!("f{threads}")));
        let (dir, file) = (dir.to_str().unwrap(), file.to_str().unwrap());
        let arguments = ["replay", "--planner", "--emit-telemetry", dir, "--write-selectivity", file, "--reproducible"];
        let report = home.json(&[&arguments[..], &["--threads", threads]].concat())["planner"].clone();
        (report, events(Path::new(dir)), std::fs::read(file).unwrap())
    };
    assert_eq!(made("1"), made("3"));
}

#[test]
fn a_planner_that_does_not_exist_records_nothing() {
    let home = home();
    let dir = home.path("none");
    let outcome = home.run(&["replay", "--planner", "--arm", "best", "--emit-telemetry", dir.to_str().unwrap()]);
    assert_eq!(outcome.exit, Exit::Usage);
    assert!(outcome.err.contains("published, configured, mined, selective"), "{}", outcome.err);
    assert!(!dir.exists());
}

#[test]
fn a_decline_is_late_if_its_tool_is_among_the_next_responses_of_later_steps() {
    let response = |step: u32, tool: u32| RecordedEvent {
        step,
        ts: i64::from(step),
        ..super::observed::event(0, 0, step, tool, 1, step as usize)
    };
    let decline = |step: u32, tool: u32| RecordedEvent {
        bytes: 0,
        plan: RecordedPlan { declined: Some(Decline::Budget), ..RecordedPlan::default() },
        ..response(step, tool)
    };
    let late = |declines: Vec<RecordedEvent>| {
        let events =
            vec![response(0, 1), response(0, 2), response(1, 3), response(2, 3), response(3, 2), response(9, 1)];
        late_invoked(&events, &declines.iter().collect::<Vec<_>>(), 3)
    };
    assert_eq!(late(vec![decline(0, 2)]), 1);
    assert_eq!(late(vec![decline(0, 1)]), 0, "the fourth response is too late, and the same step is not later");
    assert_eq!(late(vec![decline(0, 2), decline(1, 2)]), 1, "one response stands for one decline");
    assert_eq!(late(vec![decline(0, 3), decline(0, 3)]), 2);
    assert_eq!(late(vec![RecordedEvent { partition: 1, ..decline(0, 2) }]), 0, "another context");
    assert_eq!(late(vec![]), 0);
    // A decline may stand on the response that the agent got all the same.
    let declined_in = |at: usize| {
        let mut events: Vec<RecordedEvent> = (0..3).map(|step| response(step, 1)).collect();
        events[at].plan.declined = Some(Decline::Budget);
        late_invoked(&events, &[], 3)
    };
    assert_eq!([declined_in(0), declined_in(1), declined_in(2)], [1, 1, 0]);
}
