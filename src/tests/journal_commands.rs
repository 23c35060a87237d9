//! `devboy tune history` and `devboy tune undo` from the outside: what they print, what they write, how they end.

use std::fs;
use std::path::Path;

use super::harness::{ClosedPipe, Home, NOW_MS};
use super::tune::searching;
use crate::settings::entries::{JournalChange, JournalEntry, Predicted, RuleInputs, SettledEntry};
use crate::settings::journal::{append, journal_of, write_noted};
use crate::settings::write::GuardedFile;
use crate::settings::*;
use crate::shell::arguments::Exit;

const CONFIG: &str = ".config/devboy/pipeline_config.toml";
const OLD: &str = "# mine\nschema_version = 4\n\n[dedup]\nlru_size = 0b101 # five\n";
const DAY_MS: i64 = 86_400_000;

fn config_of(home: &Home) -> String {
    fs::read_to_string(home.config()).unwrap()
}

/// Writes a configuration as `devboy tune analyze` does, `days` ago.
fn tune(path: &Path, days: i64, changes: &[(&str, &str)]) -> JournalEntry {
    let file = SettingsFile::load(path).unwrap();
    let changes: Vec<WantedValue> = changes
        .iter()
        .map(|(key, value)| WantedValue { key: key.parse().unwrap(), value: Some(value.parse().unwrap()) })
        .collect();
    let because = |change: &WantedValue| JournalChange {
        rule: "R1".into(),
        key: change.key.to_string(),
        evidence: "180 of 400 responses repeat".into(),
        n: 400,
        ..JournalChange::default()
    };
    let text = apply(&file, &changes).unwrap();
    let reasons = changes.iter().map(because).collect();
    let mut entry = journal_entry(NOW_MS - days * DAY_MS, "tune analyze", &file, &text, reasons).unwrap();
    entry.inputs = Some(RuleInputs { origin: "telemetry".into(), events: 1234, sessions: 56, ..RuleInputs::default() });
    entry.predicted = Some(Predicted { baseline: 2000.0, saved_before: 200.0, saved_after: 300.0 });
    GuardedFile::take(None, path, file.existed.then_some(&file.text)).unwrap().replace(&text).unwrap().unwrap();
    append(&journal_path(path), &entry).unwrap();
    entry
}

#[test]
fn a_run_that_begins_while_another_one_writes_takes_nothing_from_it() {
    let home = Home::new();
    let path = home.write(CONFIG, OLD);
    let file = SettingsFile::load(&path).unwrap();
    let entry_to = |text: &str| journal_entry(NOW_MS, "tune analyze", &file, text, Vec::new()).unwrap();
    let text = OLD.to_owned() + "[mckp]\nrecursion_depth = 3\n";
    let first = entry_to(&text);
    std::thread::scope(|scope| {
        let guarded = GuardedFile::take(None, &path, Some(OLD)).unwrap();
        append(&journal_path(&path), &JournalEntry { pending: true, ..first.clone() }).unwrap();
        let other =
            scope.spawn(|| write_noted(&file.place(), "schema_version = 4\n", &entry_to("schema_version = 4\n")));
        // Long enough for the other one to come to the lock, and shorter than it waits there.
        std::thread::sleep(std::time::Duration::from_millis(50));
        guarded.replace(&text).unwrap().unwrap();
        append(&journal_path(&path), &SettledEntry { settles: first.id.clone(), written: true }).unwrap();
        drop(guarded);
        assert!(other.join().unwrap().unwrap_err().message.contains("changed while devboy was working"));
    });
    let journal = journal_of(&SettingsFile::load(&path).unwrap()).unwrap();
    let ids: Vec<&str> = journal.entries.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, [first.id.as_str()]);
}

#[test]
fn an_id_that_begins_two_changes_of_different_files_is_refused() {
    let home = Home::new();
    let path = home.write(CONFIG, OLD);
    let entry = tune(&path, 3, &[("dedup.lru_size", "8")]);
    let settings = home.write(".claude/settings.json", "{}\n").display().to_string();
    // Ids are hashes: the entry's own one may begin with any digits.
    let start = if entry.id.starts_with("28") { "39" } else { "28" };
    let named = |end: &str| JournalEntry { id: format!("{start}{end}"), ..entry.clone() };
    let of_settings = JournalEntry { target: Some("claude-settings".to_owned()), config: settings, ..named("caaf24") };
    append(&journal_path(&path), &of_settings).unwrap();
    append(&journal_path(&path), &named("ffffff")).unwrap();
    let refused = home.run(&["tune", "undo", start, "--dry-run"]);
    let told = format!("{start} is the start of several ids: {start}caaf24, {start}ffffff");
    assert!(refused.err.contains(&told), "{}", refused.err);
}

/// A home in which devboy changed the configuration three and two weeks ago.
fn tuned_home() -> (Home, [JournalEntry; 2]) {
    let home = Home::new();
    let path = home.write(CONFIG, OLD);
    let first = tune(&path, 21, &[("dedup.lru_size", "8")]);
    let second = tune(&path, 14, &[("mckp.recursion_depth", "3"), ("dedup.min_body_chars", "150")]);
    (home, [first, second])
}

// --- History ---------------------------------------------------------------------------------------------------------

#[test]
fn without_a_journal_history_says_so_and_is_content() {
    let home = Home::new();
    let outcome = home.run(&["tune", "history"]);
    assert_eq!((outcome.exit, outcome.out.as_str()), (Exit::Done, ""));
    assert!(
        outcome.err.starts_with("# no change of ") && outcome.err.contains("tuning-journal.jsonl"),
        "{}",
        outcome.err
    );
    assert_eq!(home.json(&["tune", "history"])["entries"], serde_json::json!([]));
    assert!(!home.path(".config/devboy").exists(), "looking creates nothing");
    home.write(".config/devboy/tuning-journal.jsonl", "");
    assert_eq!(home.run(&["tune", "history"]).exit, Exit::Done);
}

#[test]
fn history_lists_the_newest_last_and_says_why_nothing_was_realised() {
    let (home, [first, second]) = tuned_home();
    let outcome = home.run(&["tune", "history", "--format", "csv"]);
    assert_eq!(outcome.exit, Exit::Done);
    let lines: Vec<&str> = outcome.out.lines().collect();
    assert_eq!(lines[0], "id,when,command,keys,predicted,actual,events,state");
    let row = |entry: &JournalEntry, keys: usize| {
        let when = crate::report::numbers::date(entry.at_ms);
        format!("{},{when},analyze,{keys},10.0 % → 15.0 %,–,0,", entry.id)
    };
    assert_eq!(lines[1..], [row(&first, 1), row(&second, 2)]);
    assert!(outcome.err.contains("– where no event was recorded; `telemetry.enabled = true`"), "{}", outcome.err);
    assert!(!outcome.err.contains("nothing was replayed"), "{}", outcome.err);
    assert!(home.run(&["tune", "history", "-q"]).err.is_empty());
}

#[test]
fn history_explains_each_key_when_asked() {
    let (home, [first, _]) = tuned_home();
    let plain = home.run(&["tune", "history"]).out;
    assert!(plain.contains(&first.id) && !plain.contains("responses repeat"), "{plain}");
    let told = home.run(&["tune", "history", "--explain"]).out;
    assert!(told.contains("analyze, from telemetry (1,234 events, 56 sessions)"), "{told}");
    assert!(told.contains("  replayed over 2,000 tool-response tokens\n  R1 dedup.lru_size: 5 → 8\n"), "{told}");
    assert!(
        told.contains("  R1 mckp.recursion_depth: nothing → 3\n      180 of 400 responses repeat (n 400)\n"),
        "{told}"
    );
    let keys = home.run(&["tune", "history", "--explain", "--format", "csv"]).out;
    assert!(
        keys.contains(&format!("{},R1,dedup.lru_size,5,8,400,180 of 400 responses repeat (n 400)\n", first.id)),
        "{keys}"
    );
}

#[test]
fn history_is_about_the_configuration_that_is_named() {
    let (home, _) = tuned_home();
    let other = home.write(".config/devboy/other.toml", "");
    let entry = tune(&other, 1, &[("dedup.lru_size", "9")]);
    let ids = |args: &[&str]| {
        let report = home.json(&[&["tune", "history"], args].concat());
        report["entries"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&["--config", other.to_str().unwrap()]), [entry.id]);
    assert_eq!(ids(&[]).len(), 2);
}

#[test]
fn damaged_lines_are_told_and_cost_nothing_else() {
    let (home, _) = tuned_home();
    let path = home.path(".config/devboy/tuning-journal.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("garbage\n{text}{{\"id\":")).unwrap();
    for command in ["history", "undo"] {
        let outcome = home.run(&["tune", command]);
        assert_eq!(outcome.exit, Exit::Done);
        assert!(outcome.err.contains("# note: left out 2 lines that cannot be read"), "{}", outcome.err);
        assert!(outcome.err.contains("tuning-journal.jsonl:1)"), "{}", outcome.err);
    }
    assert_eq!(home.json(&["tune", "history"])["damaged_lines"], serde_json::json!([1, 4]));
    assert_eq!(home.json(&["tune", "history"])["entries"].as_array().unwrap().len(), 3);
}

/// A recorded response: what it was, and what was sent of it.
fn recorded(ts_ms: i64, (baseline, sent): (u64, u64), layer: &str) -> String {
    let event = serde_json::json!({
        "session_hash": "s1", "tool_call_id_hash": format!("{ts_ms:x}{baseline}{sent}"), "tool_name_anon": "Poll", "endpoint_class": "Poll",
        "response_chars": 4 * baseline, "shape": "prose", "inner_formats": [], "content_sha_prefix_hex": format!("{ts_ms:032x}"),
        "is_dedup_hit": layer == "L0", "layer_used": layer, "tokens_baseline": baseline, "tokens_final": sent,
        "context_partition": 0, "is_sidechain": false, "ts_ms": ts_ms, "sample_rate_applied": 1.0,
    });
    format!("{event}\n")
}

#[test]
fn actual_is_what_was_recorded_from_one_change_to_the_next() {
    let (home, [first, second]) = tuned_home();
    let events = [
        recorded(first.at_ms, (40, 10), "L0"),
        recorded(first.at_ms + DAY_MS, (20, 15), "L1"),
        recorded(second.at_ms - 2, (20, 20), "L3"),
        recorded(second.at_ms - 1, (20, 20), "L3"),
        recorded(second.at_ms, (0, 0), "L3"),
    ];
    home.write(".config/devboy/telemetry/events/s.jsonl", events.concat());
    let report = home.json(&["tune", "history"]);
    let rows = report["entries"].as_array().unwrap();
    // 100 tokens, of which 65 were sent; L0 saved 30, and the encoders 5 of the 60 that missed it.
    let actual = &rows[0]["actual"];
    assert_eq!((&actual["combined_savings"], &actual["events"]), (&0.35.into(), &4.into()));
    assert_eq!((&actual["dedup_savings"], &actual["baseline_tokens"]), (&0.3.into(), &100.0.into()));
    assert!((actual["encoder_savings"].as_f64().unwrap() - 5.0 / 60.0).abs() < 1e-12);
    assert_eq!((&rows[0]["actual_until"], &rows[1]["actual_until"]), (&rows[1]["at"], &serde_json::Value::Null));
    assert_eq!(rows[1]["actual"], serde_json::Value::Null, "no share without tokens");
    assert_eq!(rows[1]["predicted"]["combined_savings_after"], 0.15);
}

// --- Undo ------------------------------------------------------------------------------------------------------------

#[test]
fn undo_takes_back_one_change_after_the_other_byte_for_byte() {
    let (home, [first, second]) = tuned_home();
    let between = OLD.replace("0b101", "8");
    let outcome = home.run(&["tune", "undo"]);
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    assert_eq!(config_of(&home), between);
    assert!(outcome.out.contains("-recursion_depth = 3") && outcome.out.contains("-min_body_chars = 150"));
    assert!(outcome.out.contains(&format!("# 2 keys of {} back as before", second.id)), "{}", outcome.out);
    assert!(outcome.out.contains("# mckp.recursion_depth: 3 → nothing\n"), "{}", outcome.out);
    assert!(outcome.err.contains("byte for byte what it was before"), "{}", outcome.err);
    let backup = fs::read_to_string(home.path(&format!("{CONFIG}.bak"))).unwrap();
    assert!(backup.contains("recursion_depth = 3"));

    let outcome = home.run(&["tune", "undo"]);
    assert_eq!(config_of(&home), OLD, "{}", outcome.err);
    assert!(outcome.out.contains("-lru_size = 8 # five\n+lru_size = 0b101 # five\n"), "{}", outcome.out);

    let states = home.run(&["tune", "history", "--format", "csv"]).out;
    let states: Vec<&str> = states.lines().skip(1).collect();
    assert!(states[0].ends_with(",undone") && states[1].ends_with(",undone"), "{states:?}");
    assert!(states[2].contains(&format!(",undo of {},2,–,", second.id)), "{states:?}");
    assert!(states[3].contains(&format!(",undo of {},1,–,", first.id)), "{states:?}");

    let outcome = home.run(&["tune", "undo"]);
    assert_eq!((outcome.exit, outcome.out.as_str()), (Exit::Failed, ""));
    assert!(
        outcome.err.contains(&format!("{} is undone", second.id)) && outcome.err.contains("hint: "),
        "{}",
        outcome.err
    );
}

#[test]
fn an_undo_can_be_undone_by_its_id() {
    let (home, [_, second]) = tuned_home();
    let tuned = config_of(&home);
    home.run(&["tune", "undo"]);
    let refused = home.run(&["tune", "undo", &second.id]);
    assert_eq!(refused.exit, Exit::Failed);
    assert!(refused.err.contains(&format!("{} was undone on ", second.id)), "{}", refused.err);
    let report = home.json(&["tune", "history"]);
    let undo = report["entries"][2]["id"].as_str().unwrap();
    assert_eq!(report["entries"][1]["undone_by"], serde_json::json!([undo]));
    assert!(refused.err.contains(&format!("hint: `devboy tune undo {undo}` makes the change again")));
    assert_eq!(home.run(&["tune", "undo", undo]).exit, Exit::Done);
    assert_eq!(config_of(&home), tuned);
    // It holds again, so it is the last one once more.
    assert_eq!(home.json(&["tune", "undo", "--dry-run"])["undoes"], second.id);
}

#[test]
fn a_dry_run_prints_the_same_and_writes_nothing() {
    let (home, _) = tuned_home();
    let (config, journal) = (config_of(&home), fs::read(home.path(".config/devboy/tuning-journal.jsonl")).unwrap());
    let dry = home.run(&["tune", "undo", "--dry-run"]);
    assert_eq!(dry.exit, Exit::Done);
    assert!(dry.err.contains("2 keys to undo, nothing written"), "{}", dry.err);
    assert_eq!(config_of(&home), config);
    assert_eq!(fs::read(home.path(".config/devboy/tuning-journal.jsonl")).unwrap(), journal);
    assert_eq!(home.run(&["tune", "undo"]).out, dry.out);
}

#[test]
fn an_earlier_change_is_named_by_the_start_of_its_id() {
    let (home, [first, second]) = tuned_home();
    assert_ne!(first.id[..4], second.id[..4], "else the start below is too short");
    let outcome = home.run(&["tune", "undo", &first.id[..4]]);
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    let text = config_of(&home);
    assert!(text.contains("lru_size = 5 # five") && text.contains("recursion_depth = 3"), "{text}");
    assert!(outcome.err.contains(&format!("the file was edited since {}; all else in it stays", first.id)));
    let unknown = home.run(&["tune", "undo", "nope"]);
    assert_eq!(unknown.exit, Exit::Failed);
    assert!(unknown.err.contains("no recorded change is called nope"), "{}", unknown.err);
    let several = home.run(&["tune", "undo", ""]);
    assert!(several.err.contains(" is the start of several ids: "), "{}", several.err);
}

#[test]
fn what_was_changed_since_is_kept_and_named() {
    let (home, [first, second]) = tuned_home();
    let edited = config_of(&home).replace("min_body_chars = 150", "min_body_chars = 151");
    home.write(CONFIG, &edited);
    let outcome = home.run(&["tune", "undo"]);
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    assert!(outcome.out.contains("# kept: `dedup.min_body_chars` is 151 now, devboy wrote 150\n"), "{}", outcome.out);
    assert_eq!(config_of(&home), edited.replace("\n[mckp]\nrecursion_depth = 3\n", ""));
    assert!(home.run(&["tune", "history"]).out.contains("undone in part"));

    let again = home.run(&["tune", "undo", &second.id]);
    assert_eq!((again.exit, again.out.as_str()), (Exit::Failed, ""));
    assert!(again.err.contains(&format!("nothing of {} of ", second.id)), "{}", again.err);
    assert!(again.err.contains("hint: `mckp.recursion_depth` has its old value already"), "{}", again.err);
    assert!(again.err.contains("hint: `dedup.min_body_chars` is 151 now, devboy wrote 150"), "{}", again.err);

    // With nothing else left, the rest is undone as soon as it can be.
    assert_eq!(home.json(&["tune", "undo"])["undoes"], first.id);
    let rest = home.run(&["tune", "undo"]);
    assert!(rest.err.contains(&format!("nothing of {} of ", second.id)), "{}", rest.err);
    home.write(CONFIG, config_of(&home).replace("min_body_chars = 151", "min_body_chars = 150"));
    assert_eq!(home.json(&["tune", "undo"])["undoes"], second.id);
    assert_eq!(config_of(&home), OLD.replace("0b101", "5"));
}

#[test]
fn what_a_later_change_set_again_is_not_undone_by_an_earlier_one() {
    let home = Home::new();
    let path = home.write(CONFIG, OLD);
    let first = tune(&path, 21, &[("dedup.lru_size", "8"), ("mckp.recursion_depth", "3")]);
    let second = tune(&path, 14, &[("dedup.lru_size", "5")]);
    let third = tune(&path, 7, &[("dedup.lru_size", "8")]);
    let tuned = config_of(&home);
    let undone = home.json(&["tune", "undo", &first.id, "--dry-run"]);
    let kept = &undone["kept"][0];
    assert_eq!((&kept["key"], undone["undone"].as_array().unwrap().len()), (&"dedup.lru_size".into(), 1), "{undone:#}");
    assert!(kept["reason"].as_str().unwrap().starts_with(&format!("was changed again by {} on ", third.id)), "{kept}");
    let refused = home.run(&["tune", "undo", &second.id]);
    assert_eq!((refused.exit, config_of(&home)), (Exit::Failed, tuned), "{}", refused.err);
    // Taken back one after the other they all go.
    for entry in [&third, &second, &first] {
        let outcome = home.run(&["tune", "undo", &entry.id]);
        assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    }
    assert!(
        !config_of(&home).contains("recursion_depth") && config_of(&home).contains("0b101"),
        "{}",
        config_of(&home)
    );
}

#[test]
fn a_pinned_key_is_never_undone() {
    let (home, [first, _]) = tuned_home();
    let pinned = config_of(&home).replace("# five", "# pin");
    home.write(CONFIG, &pinned);
    let outcome = home.run(&["tune", "undo", &first.id]);
    assert_eq!(outcome.exit, Exit::Failed);
    assert!(outcome.err.contains("`dedup.lru_size` is marked `# pin`"), "{}", outcome.err);
    assert_eq!(config_of(&home), pinned);
}

#[test]
fn the_undo_of_a_new_file_leaves_it_empty() {
    let home = Home::new();
    tune(&home.config(), 3, &[("dedup.lru_size", "8")]);
    let outcome = home.run(&["tune", "undo"]);
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    assert_eq!(config_of(&home), "");
    assert!(outcome.err.contains("nothing is left in the file; it stays, empty"), "{}", outcome.err);
}

#[test]
fn without_anything_to_undo_it_says_so_and_fails() {
    let home = Home::new();
    home.write(CONFIG, OLD);
    let outcome = home.run(&["tune", "undo"]);
    assert_eq!((outcome.exit, outcome.out.as_str()), (Exit::Failed, ""));
    assert!(outcome.err.contains("no change of ") && outcome.err.contains("hint: a change is recorded when"));
    let (home, _) = tuned_home();
    fs::remove_file(home.config()).unwrap();
    let outcome = home.run(&["tune", "undo"]);
    assert_eq!(outcome.exit, Exit::Failed);
    assert!(outcome.err.contains("pipeline_config.toml does not exist"), "{}", outcome.err);
    assert!(!home.config().exists());
}

#[test]
fn a_program_reads_what_was_undone() {
    let (home, [_, second]) = tuned_home();
    let report = home.json(&["tune", "undo"]);
    assert_eq!((&report["command"], &report["undoes"]), (&"tune undo".into(), &second.id.as_str().into()));
    assert_eq!((&report["written"], &report["byte_identical"]), (&true.into(), &true.into()));
    assert_eq!(report["undone"][0], serde_json::json!({ "key": "mckp.recursion_depth", "from": "3", "to": null }));
    assert_eq!(report["kept"], serde_json::json!([]));
    let csv = home.run(&["tune", "undo", "--format", "csv", "--dry-run"]).out;
    assert_eq!(csv, "key,outcome,from,to,why\ndedup.lru_size,undone,8,5,\n");
}

#[test]
fn a_reader_that_goes_away_does_not_stop_an_undo() {
    let (home, _) = tuned_home();
    assert_eq!(home.run_into(&["tune", "undo"], &mut ClosedPipe), Exit::Done);
    assert_eq!(config_of(&home), OLD.replace("0b101", "8"));
    assert_eq!(home.json(&["tune", "history"])["entries"].as_array().unwrap().len(), 3);
}

// --- With the command that writes ------------------------------------------------------------------------------------

#[test]
fn what_from_claude_logs_writes_is_recorded_and_can_be_undone() {
    const TUNE: [&str; 3] = ["tune", "from-claude-logs", "--tools"];
    let home = Home::new();
    home.write(CONFIG, OLD);
    for number in 0..20 {
        let name = format!("s{number:02}");
        home.write(&format!(".claude/projects/-home-u-p/{name}.jsonl"), searching(&name, 10, 10));
    }
    home.run(&[&TUNE[..], &["--dry-run"]].concat());
    home.run(&[&TUNE[..], &["--check"]].concat());
    assert_eq!(home.json(&["tune", "history"])["entries"], serde_json::json!([]), "nothing was written yet");
    assert_eq!(home.run(&TUNE).exit, Exit::Done);
    home.run(&TUNE);
    let report = home.json(&["tune", "history"]);
    let entries = report["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "a run that changes nothing is no entry");
    assert_eq!(
        (&entries[0]["command"], &entries[0]["inputs"]["sessions"]),
        (&"tune from-claude-logs".into(), &20.into())
    );
    let changes = entries[0]["changes"].as_array().unwrap();
    let of_grep = changes.iter().find(|change| change["key"] == "tools.Grep.cost_model.typical_kb").unwrap();
    assert_eq!((&of_grep["rule"], &of_grep["old"]), (&"T1".into(), &serde_json::Value::Null));
    assert!(of_grep["n"].as_u64().unwrap() > 0 && !of_grep["evidence"].as_str().unwrap().is_empty());
    assert_eq!(home.run(&["tune", "undo"]).exit, Exit::Done);
    assert_eq!(config_of(&home), OLD);
    assert_eq!(home.run(&[&TUNE[..], &["--check"]].concat()).exit, Exit::Pending);
}

/// What an undo leaves without any key is begun anew, like a file that is not there; notes of a person stay.
#[test]
fn a_file_without_any_key_is_begun_like_a_new_one() {
    const TUNE: [&str; 3] = ["tune", "from-claude-logs", "--tools"];
    let home = Home::new();
    for number in 0..20 {
        let name = format!("s{number:02}");
        home.write(&format!(".claude/projects/-home-u-p/{name}.jsonl"), searching(&name, 10, 10));
    }
    assert!(home.run(&TUNE).out.contains("# schema_version: the version of the file's format"));
    let begun = config_of(&home);
    assert!(begun.starts_with("# Read by the devboy pipeline") && begun.contains("\nschema_version = 4\n"), "{begun}");
    home.run(&["tune", "undo"]);
    assert_eq!(config_of(&home), "");
    home.run(&TUNE);
    assert_eq!(config_of(&home), begun);
    home.write(CONFIG, "# mine\n");
    home.run(&TUNE);
    let noted = config_of(&home);
    assert!(noted.starts_with("# mine\n\nschema_version = 4\n\n["), "{noted}");
    home.run(&["tune", "undo"]);
    assert_eq!(config_of(&home), "# mine\n");
}
