//! `tune search` on logs in which it is known what pays.

use serde_json::Value;

use super::harness::{ClosedPipe, Home, Outcome};
use super::log_builder::{answers, asks, log};
use crate::base::bootstrap::{Resampling, sum_interval};
use crate::shell::arguments::Exit;

const TOOL: &str = "mcp__store__list";

/// Sessions in which every body comes back after `apart` others, so that only a cache of more than these knows it.
fn write_repeats(home: &Home, sessions: usize, apart: usize) {
    for session in 0..sessions {
        let name = format!("s-{session:02}");
        let calls = (0..4 * apart).flat_map(|number| {
            let (call, body) = (format!("{name}-{number}"), number % apart);
            let text = format!("store {session} shelf {body}: ").repeat(40);
            let at = (session * 600 + number * 2) as u32;
            [
                asks(&format!("m-{call}"), &call, TOOL).at(at).session(&name),
                answers(&call, text).at(at + 1).session(&name),
            ]
        });
        home.write(&format!("logs/projects/p/{name}.jsonl"), log(&calls.collect::<Vec<_>>()));
    }
}

#[test]
fn what_a_search_found_and_the_disk_refuses_is_not_told_as_a_change() {
    let home = Home::new();
    write_repeats(&home, 25, 8);
    let logs = home.path("logs").display().to_string();
    super::tune::expect_no_word_of_a_refused_change(&home, &["tune", "search", "--input-dir", &logs]);
}

/// Sessions that show nothing twice.
fn write_fresh(home: &Home, sessions: std::ops::Range<usize>) {
    for session in sessions {
        let name = format!("s-{session:02}");
        let calls = (0..32).flat_map(|number| {
            let call = format!("{name}-{number}");
            let at = (session * 600 + number * 2) as u32;
            let text = format!("store {session} item {number}: ").repeat(40);
            [
                asks(&format!("m-{call}"), &call, TOOL).at(at).session(&name),
                answers(&call, text).at(at + 1).session(&name),
            ]
        });
        home.write(&format!("logs/projects/p/{name}.jsonl"), log(&calls.collect::<Vec<_>>()));
    }
}

fn search(home: &Home, more: &[&str]) -> Value {
    let logs = home.path("logs").display().to_string();
    home.json(&[&["tune", "search", "--input-dir", &logs][..], more].concat())
}

#[test]
fn a_search_finds_the_one_value_that_pays_writes_it_and_finds_nothing_more() {
    let home = Home::new();
    write_repeats(&home, 25, 8);
    let logs = home.path("logs").display().to_string();
    let check = ["tune", "search", "--input-dir", &logs, "--check"];
    assert_eq!(home.run_into(&check, &mut ClosedPipe), Exit::Pending, "whoever reads its output");
    let found = search(&home, &[]);
    let steps = found["search"]["steps"].as_array().unwrap();
    assert_eq!(steps[0]["key"], "dedup.lru_size", "{steps:#?}");
    // Eight bodies stand between two showings: five entries know none of them, ten all.
    assert_eq!((steps[0]["to"].as_str(), steps[0]["holds"].as_bool()), (Some("8"), Some(true)), "{steps:#?}");
    let (predicted, later) = (&found["search"]["together"], &found["search"]["later"]);
    let share = predicted["tokens"].as_f64().unwrap() / later["baseline_tokens"].as_f64().unwrap();
    assert!(predicted["lower"].as_f64().unwrap() > 0.0 && share > 0.5, "{found:#}");
    // What the search would have promised earlier came.
    for fold in found["search"]["folds"].as_array().unwrap() {
        let (promised, came) = (fold["predicted_tokens"].as_f64().unwrap(), fold["actual"]["tokens"].as_f64().unwrap());
        assert!((promised - came).abs() <= 0.1 * came, "{fold:#}");
    }
    let written: toml_edit::DocumentMut = std::fs::read_to_string(home.config()).unwrap().parse().unwrap();
    assert_eq!(written["dedup"]["lru_size"].as_integer(), Some(8));
    let again = search(&home, &[]);
    assert_eq!(again["changes"], 0, "{again:#}");
}

#[test]
fn what_may_not_be_written_is_not_searched() {
    let home = Home::new();
    write_repeats(&home, 20, 8);
    let pinned = "[dedup]\nlru_size = 5 # pin\n";
    home.write(".config/devboy/pipeline_config.toml", pinned);
    let found = search(&home, &[]);
    let searched = &found["search"];
    assert_eq!((&found["changes"], &searched["together"]["tokens"]), (&0.into(), &0.into()), "{found:#}");
    let closed = &searched["closed"][0];
    assert_eq!((&closed["key"], searched["closed"].as_array().unwrap().len()), (&"dedup.lru_size".into(), 1));
    let held = &found["findings"][0];
    assert_eq!((&held["subject"], &held["verdict"]), (&"dedup.lru_size".into(), &"hold".into()), "{found:#}");
    assert_eq!(std::fs::read_to_string(home.config()).unwrap(), pinned);
    // The keys of endpoints that would overrule the pinned ones are not tried either.
    home.write(".config/devboy/pipeline_config.toml", "# pin\n[dedup.enabled_per_endpoint]\n");
    let closed = search(&home, &["--dry-run"])["search"]["closed"].clone();
    assert_eq!(closed[0]["key"], "endpoint_overrides.mcp__store__list.dedup_enabled", "{closed:#}");
}

#[test]
fn what_a_search_promises_is_noted_as_replayed() {
    let home = Home::new();
    write_repeats(&home, 20, 8);
    let found = search(&home, &[]);
    assert_eq!(found["findings"][0]["evidence"]["basis"], "replayed");
    let entry = home.json(&["tune", "history"])["entries"][0].clone();
    let (later, together) = (&found["search"]["later"], &found["search"]["together"]);
    let after = later["saved_tokens"].as_f64().unwrap() + together["tokens"].as_f64().unwrap();
    assert_eq!(entry["predicted"]["saved_tokens_after"].as_f64(), Some(after), "{entry:#}");
}

#[test]
fn nothing_is_changed_where_nothing_pays_and_threads_do_not_matter() {
    let home = Home::new();
    write_fresh(&home, 0..12);
    let logs = home.path("logs").display().to_string();
    let run = |threads: &str| -> Outcome {
        let words = ["tune", "search", "--input-dir", &logs, "--no-lake", "--json", "--reproducible", "-q"];
        home.run(&[&words[..], &["--threads", threads, "--check"]].concat())
    };
    let one = run("1");
    assert_eq!(one.exit, Exit::Done, "{}", one.err);
    assert_eq!(one.out, run("3").out);
    assert!(!home.config().exists());
}

#[test]
fn a_later_loss_ends_the_path() {
    let home = Home::new();
    // A larger cache pays in the earlier sessions only: the later ones show nothing twice.
    write_repeats(&home, 12, 8);
    write_fresh(&home, 12..24);
    let found = search(&home, &["--dry-run"]);
    let steps = found["search"]["steps"].as_array().unwrap();
    assert_eq!((steps[0]["key"].as_str(), steps[0]["holds"].as_bool()), (Some("dedup.lru_size"), Some(false)));
    assert_eq!((steps.len(), &found["changes"]), (1, &Value::from(0)));
}

/// One session would speak for itself, whatever interval it has.
#[test]
fn fewer_than_five_later_sessions_judge_nothing() {
    let told = |sessions: usize| {
        let home = Home::new();
        write_repeats(&home, sessions, 8);
        let logs = home.path("logs").display().to_string();
        let found = search(&home, &["--dry-run"]);
        let words = home.run(&["tune", "search", "--dry-run", "--explain", "-q", "--input-dir", &logs]).out;
        (found, words)
    };
    let (few, words) = told(3);
    assert_eq!((&few["search"]["later"]["sessions"], &few["changes"]), (&1.into(), &0.into()), "{few:#}");
    assert_eq!((&few["search"]["is_judged"], &few["search"]["steps"]), (&false.into(), &Value::Array(Vec::new())));
    assert!(words.contains("too few later sessions (1) to judge ") && !words.contains("made earlier"), "{words}");
    let (enough, _) = told(13);
    assert_eq!(enough["search"]["later"]["sessions"], 5, "{enough:#}");
    assert_eq!(enough["search"]["steps"][0]["holds"], true, "{enough:#}");
}

/// The share of samples whose true sum, 0, lies outside of the interval.
#[test]
fn the_interval_of_a_sum_leaves_out_what_it_says() {
    let resampling = Resampling { seed: 5, samples: 400 };
    let mut state = 11_u64;
    let mut draw =
        || (0..12).map(|_| crate::base::bootstrap::next(&mut state) as f64 / u64::MAX as f64 - 0.5).sum::<f64>();
    let mut outside = 0;
    for _ in 0..400 {
        let values: Vec<f64> = (0..40).map(|_| draw()).collect();
        let (lower, upper) = sum_interval(&values, values.len(), &resampling, 0.05).unwrap();
        outside += usize::from(lower > 0.0 || upper < 0.0);
    }
    // 10 % of 400, with room for intervals of 40 values being a little narrow.
    assert!((24..=66).contains(&outside), "{outside} of 400");
}

#[test]
fn settings_that_cannot_be_read_are_told_of_in_one_line() {
    let home = Home::new();
    write_fresh(&home, 0..4);
    home.write(".claude/settings.json", "{\n  // mine\n  \"env\": {}\n}\n");
    let found = search(&home, &["--dry-run"]);
    let note = found["inputs"]["notes"].as_array().unwrap().iter().filter_map(Value::as_str);
    let note = note.filter(|note| note.starts_with("settings are taken as not set: ")).collect::<Vec<_>>();
    assert!(note.len() == 1 && !note[0].contains(['\n', '\\']) && !note[0].contains("hint:"), "{note:?}");
}

/// A program that reads the steps finds their columns where there is no step.
#[test]
fn without_a_step_the_columns_are_written() {
    let home = Home::new();
    write_fresh(&home, 0..20);
    let logs = home.path("logs").display().to_string();
    let form = ["tune", "search", "--dry-run", "--format", "csv", "-q", "--input-dir", &logs];
    assert_eq!(home.run(&form).out, "step,change,now,earlier,later,from,to,holds\n");
    // Nothing was tried on the later sessions.
    let told = home.run(&["tune", "search", "--dry-run", "-q", "--input-dir", &logs]).out;
    assert!(told.contains(", none saves enough in the ") && told.contains(" to be judged on the "), "{told}");
}

/// Whatever reads both streams, notes included, reads the answer first.
#[test]
fn every_command_that_tunes_answers_before_it_notes() {
    let home = Home::new();
    write_fresh(&home, 0..12);
    home.write("logs/projects/p/broken.jsonl", "no json\n");
    let logs = home.path("logs").display().to_string();
    for command in ["search", "from-claude-logs", "analyze --from-claude-logs", "claude-settings", "backtest"] {
        let words = command.split(' ').chain(["--input-dir", &logs, "--no-lake"]);
        let dry = (command != "backtest").then_some("--dry-run");
        let text = home.in_one_file(&["tune"].into_iter().chain(words).chain(dry).collect::<Vec<_>>());
        assert!(!text.starts_with('#') && text.contains("\n# malformed lines: "), "{command}: {text}");
    }
}
