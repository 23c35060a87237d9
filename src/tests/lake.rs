//! The lake: incremental, safe against being killed and against two runs at once, without text.

use std::fs::OpenOptions;
use std::io::Write;

use serde_json::{Value, json};

use super::harness::{Home, all_bytes, session};
use super::timeline_corpus::input;
use crate::base::id::Id;
use crate::frames::input::Input;
use crate::frames::input::answers::answer_name;
use crate::frames::sync::root_names;
use crate::logs::trace::Millis;
use crate::shell::arguments::Exit;

const SECRETS: [&str; 8] = [
    "secretproject",
    "secretthought",
    "secretpath",
    "secretfile",
    "secretbody",
    "secretcopy",
    "secretprompt",
    "-home-u",
];

fn home_with(calls: usize) -> Home {
    let home = Home::new();
    home.write(".claude/projects/-home-u-secretproject/one.jsonl", session("one", calls));
    home
}

fn append(home: &Home, name: &str, text: &str) {
    let path = home.logs().join("-home-u-secretproject").join(name);
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// The parts of an ingest report that must not depend on how the rows were come by.
fn facts(report: &Value) -> (Value, Value, Value) {
    (report["totals"].clone(), report["history"].clone(), report["data_quality"].clone())
}

#[test]
fn an_unchanged_log_is_not_read_again() {
    let home = home_with(6);
    let first = home.json(&["ingest"]);
    let second = home.json(&["ingest"]);
    assert_eq!(first["inputs"]["new"], 1);
    assert_eq!(second["inputs"]["unchanged"], 1);
    assert_eq!(second["inputs"]["bytes_read"], 0);
    assert_eq!(facts(&first), facts(&second));
}

#[test]
fn whoever_says_what_it_will_ask_reads_rows_once() {
    let home = home_with(6);
    home.json(&["ingest"]);
    let (logs, lake) = (home.logs(), home.lake());
    let opened = || input(logs.to_str().unwrap(), lake.to_str());
    let is_damaged = |input: &Input| input.notes.iter().any(|note| note.contains("damaged"));
    let (mut valued, mut counted, mut kept, mut silent) = (opened(), opened(), opened(), opened());
    let mut windowed = opened();
    windowed.window = Millis::MIN..Millis::MAX - 1;
    valued.find_values();
    windowed.find_values();
    counted.count(|file, _| [file.rows.calls.len() as u64, 0, 0]);
    kept.keep_calls();
    let history = [&mut valued, &mut counted, &mut kept, &mut silent].map(Input::history)[0].clone();
    let in_window = windowed.history();
    std::fs::remove_file(lake.join("000001-calls.parquet")).unwrap();

    assert!(valued.values(&history).input(0).is_some());
    assert!(windowed.values(&in_window).input(0).is_some());
    assert_eq!(counted.counted(|_, _| panic!("it was counted")), [6, 0, 0]);
    assert_eq!(kept.calls().files[0].rows.calls.len(), 6);
    assert!(![&valued, &windowed, &counted, &kept].into_iter().any(is_damaged));
    silent.calls();
    assert!(is_damaged(&silent), "rows of which nobody spoke are gone");
}

#[test]
fn what_is_reproducible_is_the_same_cold_and_warm() {
    let commands: [&[&str]; 8] = [
        &["report"],
        &["cost"],
        &["session"],
        &["ingest"],
        &["doctor"],
        &["replay"],
        &["mine", "tools"],
        &["mine", "fingerprints"],
    ];
    for command in commands {
        let home = home_with(6);
        let run = || home.run(&[command, &["--json", "--reproducible"]].concat());
        let (cold, warm) = (run(), run());
        assert!(cold.exit == Exit::Done && !cold.out.contains("bytes_read"), "{command:?}: {}{}", cold.out, cold.err);
        assert_eq!(cold.out, warm.out, "{command:?}");
        assert!(home.json(command)["inputs"]["bytes_read"].is_number(), "{command:?}");
    }
}

#[test]
fn a_grown_log_is_read_from_where_it_ended_and_gives_the_rows_of_a_fresh_reading() {
    let whole = session("one", 12);
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for cut in 1..lines.len() {
        let home = Home::new();
        home.write(".claude/projects/-home-u-secretproject/one.jsonl", lines[..cut].concat());
        home.json(&["ingest"]);
        append(&home, "one.jsonl", &lines[cut..].concat());
        let grown = home.json(&["ingest"]);
        assert_eq!(grown["inputs"]["grown"], 1, "cut at {cut}");
        assert_eq!(grown["inputs"]["bytes_read"], lines[cut..].concat().len());
        assert_eq!(facts(&grown), facts(&home.json(&["ingest", "--no-lake"])), "cut at {cut}");
        // And once more, now from the segments alone.
        assert_eq!(facts(&grown), facts(&home.json(&["ingest"])));
    }
}

#[test]
fn a_log_that_ended_inside_a_record_is_read_right_when_the_record_is_completed() {
    let whole = session("one", 4);
    for cut in [whole.len() - 200, whole.len() - 1] {
        let home = Home::new();
        home.write(".claude/projects/-home-u-secretproject/one.jsonl", &whole[..cut]);
        home.json(&["ingest"]);
        append(&home, "one.jsonl", &format!("{}{}", &whole[cut..], session("one", 6)));
        assert_eq!(facts(&home.json(&["ingest"])), facts(&home.json(&["ingest", "--no-lake"])));
    }
}

#[test]
fn a_rewritten_log_is_read_anew() {
    let home = home_with(6);
    home.json(&["ingest"]);
    // Longer than before, so only the content tells that it has not just grown.
    home.write(".claude/projects/-home-u-secretproject/one.jsonl", session("two", 9));
    let rewritten = home.json(&["ingest"]);
    assert_eq!(rewritten["inputs"]["rewritten"], 1);
    assert_eq!(rewritten["totals"]["tool_uses"], 9);
    assert_eq!(facts(&rewritten), facts(&home.json(&["ingest", "--no-lake"])));
}

#[test]
fn a_deleted_log_keeps_its_rows() {
    let home = home_with(6);
    home.write(".claude/projects/-home-u-secretproject/two.jsonl", session("two", 4));
    let before = home.json(&["ingest"]);
    std::fs::remove_file(home.logs().join("-home-u-secretproject/one.jsonl")).unwrap();
    let after = home.json(&["ingest"]);
    assert_eq!(after["inputs"]["kept_after_deletion"], 1);
    assert_eq!(facts(&before), facts(&after));
    // Even when all are gone.
    std::fs::remove_dir_all(home.logs()).unwrap();
    assert_eq!(facts(&before), facts(&home.json(&["ingest"])));
}

/// Whoever asks about a window is told that some of its logs are on disk no more.
#[test]
fn deleted_logs_that_count_are_told_of() {
    let home = home_with(6);
    let told = |more: &[&str]| home.run(&[&["cost"], more].concat()).err;
    assert!(!told(&[]).contains("deleted"), "{}", told(&[]));
    home.write(".claude/projects/-home-u-secretproject/two.jsonl", session("two", 4));
    told(&[]);
    std::fs::remove_file(home.logs().join("-home-u-secretproject/two.jsonl")).unwrap();
    let note = "# note: 1 log is deleted from disk; what was kept of it counts (--no-lake: only what is on disk)\n";
    assert!(told(&[]).contains(note), "{}", told(&[]));
    for silent in [&["--no-lake"][..], &["-q"]] {
        assert!(!told(silent).contains("deleted"), "{silent:?}: {}", told(silent));
    }
}

#[test]
fn line_ends_and_marks_of_another_system_are_no_malformed_lines() {
    let home = Home::new();
    home.write(".claude/projects/-home-u-p/one.jsonl", format!("\u{FEFF}{}", session("one", 4).replace('\n', "\r\n")));
    assert!(!home.run(&["mine", "tools"]).err.contains("malformed"));
    let found = home.json(&["ingest"])["data_quality"].clone();
    assert!(found["crlf"]["count"].as_u64() > Some(1) && found["bom"]["count"] == 1, "{found:#}");
}

#[test]
fn a_moved_log_counts_once() {
    let home = home_with(6);
    let before = home.json(&["ingest"]);
    let (old, new) = (home.logs().join("-home-u-secretproject"), home.logs().join("-home-u-renamed"));
    std::fs::rename(old, new).unwrap();
    let after = home.json(&["ingest"]);
    assert_eq!(after["inputs"]["kept_after_deletion"], 0);
    assert_eq!(after["inputs"]["bytes_read"], 0);
    assert_eq!(facts(&before), facts(&after));
}

#[test]
fn a_log_that_was_moved_and_has_grown_counts_once() {
    let home = home_with(6);
    home.json(&["ingest"]);
    std::fs::remove_dir_all(home.logs().join("-home-u-secretproject")).unwrap();
    home.write(".claude/projects/-home-u-renamed/one.jsonl", session("one", 9));
    let after = home.json(&["ingest"]);
    assert_eq!(after["inputs"]["kept_after_deletion"], 1);
    assert_eq!(after["totals"], home.json(&["ingest", "--no-lake"])["totals"]);
    assert_eq!(home.run(&["doctor", "--reconcile"]).exit, Exit::Done);
}

#[test]
fn copies_that_were_moved_together_count_as_often_as_before() {
    let home = home_with(6);
    let (old, new) = (home.logs().join("-home-u-secretproject"), home.logs().join("-home-u-renamed"));
    std::fs::copy(old.join("one.jsonl"), old.join("two.jsonl")).unwrap();
    let before = home.json(&["ingest"]);
    std::fs::rename(old, new).unwrap();
    let after = home.json(&["ingest"]);
    assert_eq!(after["inputs"]["kept_after_deletion"], 0);
    assert_eq!(facts(&before), facts(&after));
}

#[test]
fn logs_count_once_though_the_whole_place_was_moved() {
    let home = home_with(6);
    let before = home.json(&["ingest"]);
    std::fs::create_dir_all(home.path(".config")).unwrap();
    std::fs::rename(home.path(".claude"), home.path(".config/claude")).unwrap();
    let after = home.json(&["ingest"]);
    assert_eq!(after["inputs"]["kept_after_deletion"], 0);
    assert_eq!(facts(&before), facts(&after));
}

#[test]
fn a_moved_log_counts_once_though_where_it_went_was_asked_about_first() {
    let home = Home::new();
    home.write("all/x/one.jsonl", session("one", 6));
    let ingest = |dir: &str| home.json(&["ingest", "--input-dir", &home.path(dir).display().to_string()]);
    let before = ingest("all");
    std::fs::rename(home.path("all/x"), home.path("all/y")).unwrap();
    ingest("all/y");
    let after = ingest("all");
    assert_eq!(after["inputs"]["kept_after_deletion"], 0);
    assert_eq!(facts(&before), facts(&after));
}

/// Whatever folder was asked about in between.
#[test]
fn a_project_that_was_renamed_counts_once_though_it_was_asked_about_by_itself() {
    let home = home_with(6);
    let before = home.json(&["ingest"]);
    let (old, new) = (home.logs().join("-home-u-secretproject"), home.logs().join("-home-u-renamed"));
    home.json(&["cost", "--input-dir", old.to_str().unwrap(), "--allow-empty"]);
    std::fs::rename(old, new).unwrap();
    let after = home.json(&["ingest"]);
    assert_eq!(after["inputs"]["kept_after_deletion"], 0);
    assert_eq!(facts(&before), facts(&after));
}

#[test]
fn another_root_does_not_see_the_rows_of_this_one() {
    let home = home_with(6);
    home.json(&["ingest"]);
    home.write("elsewhere/x.jsonl", session("x", 2));
    let dir = home.path("elsewhere");
    let other = home.json(&["ingest", "--input-dir", dir.to_str().unwrap()]);
    assert_eq!(other["totals"]["tool_uses"], 2);
    assert_eq!(home.json(&["ingest"])["totals"]["tool_uses"], 6);
}

#[test]
fn a_deleted_log_of_a_project_that_is_still_there_counts_by_any_part_of_its_name() {
    let home = home_with(4);
    let gone = home.write(".claude/projects/-home-u-secretproject/two.jsonl", session("two", 2));
    home.json(&["ingest"]);
    std::fs::remove_file(gone).unwrap();
    for asked in ["secret", "-home-u-secretproject"] {
        let found = home.json(&["ingest", &format!("--project={asked}")]);
        assert_eq!(found["totals"]["tool_uses"], 6, "{asked}");
    }
}

#[cfg(unix)]
#[test]
fn a_separator_at_the_end_of_a_root_says_nothing() {
    let names = root_names("/a/b/".as_ref(), "".as_ref());
    assert_eq!(names, [Id::pseudonym(b"/a/b"); 2]);
}

#[cfg(unix)]
#[test]
fn a_deleted_log_counts_however_its_root_is_spelled() {
    let home = Home::new();
    home.write("logs/p/one.jsonl", session("one", 4));
    let gone = home.write("logs/p/two.jsonl", session("two", 2));
    let logs = home.path("logs").display().to_string();
    home.json(&["ingest", "--input-dir", &logs]);
    std::fs::remove_file(gone).unwrap();
    std::os::unix::fs::symlink(&logs, home.path("link")).unwrap();
    let link = home.path("link").display().to_string();
    for spelled in [logs.clone(), format!("{logs}/"), format!("{logs}/../logs"), format!("{logs}/."), link] {
        let found = home.json(&["ingest", "--input-dir", &spelled]);
        assert_eq!(found["inputs"]["kept_after_deletion"], 1, "{spelled}");
    }
    std::fs::remove_dir_all(&logs).unwrap();
    let found = home.json(&["ingest", "--input-dir", &format!("{logs}/"), "--allow-empty"]);
    assert_eq!(found["inputs"]["kept_after_deletion"], 2);
}

#[test]
fn a_log_that_was_read_anew_below_this_root_keeps_its_rows_when_it_is_deleted() {
    for (reader, has_tail) in [("replay", true), ("ingest", false)] {
        let home = Home::new();
        let whole = session("one", 6);
        // Without its last line feed a log that grows is read anew.
        let path = home.write("all/x/one.jsonl", if has_tail { &whole } else { whole.trim_end() });
        home.write("all/x/two.jsonl", session("two", 4));
        let [all, below] = ["all", "all/x"].map(|dir| home.path(dir).display().to_string());
        let ingest = || home.json(&["ingest", "--input-dir", &all]);
        let before = ingest();
        std::fs::write(&path, &whole).unwrap();
        home.json(&[reader, "--input-dir", &below]);
        std::fs::remove_file(path).unwrap();
        let after = ingest();
        assert_eq!(after["inputs"]["kept_after_deletion"], 1, "{reader}");
        assert_eq!(after["totals"], before["totals"], "{reader}");
    }
}

#[test]
fn a_subagent_belongs_to_the_project_of_its_session_whichever_directory_is_named() {
    let home = Home::new();
    let agent = session("s1", 2).replace("\"isSidechain\":false", "\"isSidechain\":true,\"agentId\":\"a1\"");
    home.write("projects/-home-u-tool/s1.jsonl", session("s1", 4));
    home.write("projects/-home-u-tool/s1/subagents/agent-a1.jsonl", agent.replace("toolu_", "toolu_a_"));
    for dir in ["projects", "projects/-home-u-tool", "projects/-home-u-tool/s1"] {
        let path = home.path(dir).display().to_string();
        let all = home.json(&["ingest", "--input-dir", &path]);
        let of_project = home.json(&["ingest", "--input-dir", &path, "--project", "home-u-tool"]);
        assert_eq!(of_project["totals"], all["totals"], "{dir}");
        let replayed = home.json(&["replay", "--input-dir", &path]);
        let projects = replayed["replay"]["arms"][0]["projects"].as_array().unwrap();
        assert_eq!(projects.iter().map(|row| &row["name"]).collect::<Vec<_>>(), ["…/secretproject"], "{dir}");
    }
}

/// As Claude Code spells directories: every letter that is not ASCII is a dash.
#[test]
fn a_project_is_found_by_a_name_with_other_letters() {
    let home = Home::new();
    home.write(".claude/projects/-w-caf-/one.jsonl", session("one", 4));
    home.write(".claude/projects/-w-bar/two.jsonl", session("two", 6));
    assert_eq!(home.json(&["ingest", "--project", "w/Café"])["totals"]["tool_uses"], 4);
}

#[test]
fn no_text_of_a_log_is_in_the_lake() {
    let home = home_with(6);
    let prompt = r#"{"type":"user","sessionId":"one","cwd":"/home/u/secretproject","uuid":"p","timestamp":"2026-10-30T00:00:00Z","message":{"role":"user","content":"secretprompt"}}"#;
    append(&home, "one.jsonl", &format!("{prompt}\n"));
    home.json(&["ingest"]);
    home.run(&["tune", "from-claude-logs", "--tools", "--dry-run"]);
    home.run(&["doctor"]);
    let bytes = all_bytes(&home.lake());
    assert!(memchr::memmem::find(&bytes, b"Grep").is_some(), "tool names are kept, so the search works");
    for secret in SECRETS {
        assert!(memchr::memmem::find(&bytes, secret.as_bytes()).is_none(), "{secret} is in the lake");
    }
}

#[cfg(unix)]
#[test]
fn only_the_user_may_read_the_lake() {
    use std::os::unix::fs::PermissionsExt;
    let home = home_with(2);
    home.json(&["ingest"]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.lake()), 0o700);
    for entry in std::fs::read_dir(home.lake()).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

/// A run can die between any two writes: what it leaves is the lake before it plus files that nobody refers to, or a
/// half-written temporary manifest.
#[test]
fn leftovers_of_a_killed_run_are_harmless_and_swept_away() {
    let home = home_with(6);
    let before = home.json(&["ingest"]);
    std::fs::write(home.lake().join("000099-calls.parquet"), b"half a segm").unwrap();
    std::fs::write(home.lake().join("manifest.tmp"), b"{\"schema\":1,").unwrap();
    assert_eq!(facts(&before), facts(&home.json(&["ingest"])));
    append(&home, "one.jsonl", &session("two", 2));
    home.json(&["ingest"]);
    assert!(!home.lake().join("000099-calls.parquet").exists());
    assert!(!home.lake().join("manifest.tmp").exists());
}

#[test]
fn a_damaged_lake_is_rebuilt_and_says_so() {
    for name in ["manifest.json", "-calls.parquet", "-chains.parquet"] {
        let home = home_with(6);
        let before = home.json(&["ingest"]);
        for content in [&b"\0\0\0\0"[..], b""] {
            for path in std::fs::read_dir(home.lake()).unwrap().map(|entry| entry.unwrap().path()) {
                if path.to_string_lossy().ends_with(name) {
                    std::fs::write(&path, content).unwrap();
                } else if path.extension().is_some_and(|ext| ext == "memo") {
                    std::fs::remove_file(&path).unwrap();
                }
            }
            let after = home.json(&["ingest"]);
            assert_eq!(facts(&before), facts(&after), "{name}");
            assert!(after["inputs"]["notes"].to_string().contains("damaged"), "{name}: {}", after["inputs"]["notes"]);
        }
    }
}

#[test]
fn a_lake_without_its_manifest_is_rebuilt_and_says_so() {
    let home = home_with(6);
    let before = home.json(&["ingest"]);
    std::fs::remove_file(home.lake().join("manifest.json")).unwrap();
    let after = home.json(&["ingest"]);
    assert_eq!(facts(&before), facts(&after));
    assert!(
        after["inputs"]["notes"].to_string().contains("the lake has no manifest.json"),
        "{}",
        after["inputs"]["notes"]
    );
    assert_eq!(home.json(&["ingest"])["inputs"]["notes"], json!([]));
}

/// A copy or a backup may give a file any time: what is in a window is told by its records.
#[test]
fn a_file_that_looks_too_old_counts_with_and_without_a_lake() {
    let home = home_with(6);
    home.write(".claude/projects/-home-u-secretproject/two.jsonl", session("two", 4));
    let old = std::fs::File::options().write(true).open(home.path(".claude/projects/-home-u-secretproject/two.jsonl"));
    old.unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let window = ["mine", "tools", "--since", "2026-01-01", "--format", "csv"];
    let without = home.run(&[&window[..], &["--no-lake"]].concat());
    assert_eq!((without.exit, without.out), (Exit::Done, home.run(&window).out), "{}", without.err);
}

/// A directory that belongs to something else stays as it is.
#[test]
fn a_manifest_of_something_else_is_left_alone() {
    let home = home_with(6);
    home.write("lake/manifest.json", "{\"name\": \"an extension\"}");
    let after = home.json(&["ingest", "--lake", home.path("lake").to_str().unwrap()]);
    assert!(after["inputs"]["notes"].to_string().contains("is not devboy's"), "{}", after["inputs"]["notes"]);
    let left: Vec<_> = std::fs::read_dir(home.path("lake")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["manifest.json"]);
}

/// Changes the manifest and makes its checksum fit.
fn edit_manifest(home: &Home, edit: impl FnOnce(&mut Value)) {
    let path = home.lake().join("manifest.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut manifest: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    edit(&mut manifest);
    let body = manifest.to_string();
    std::fs::write(&path, format!("{body}\n\"{}\"\n", Id::of(body.as_bytes()))).unwrap();
}

const OTHER_MAKER: &str = "00112233445566778899aabbccddeeff";

#[test]
fn an_older_schema_is_read_anew_and_deleted_logs_keep_their_rows() {
    let home = home_with(6);
    home.write(".claude/projects/-home-u-secretproject/two.jsonl", session("two", 4));
    let before = home.json(&["ingest"]);
    std::fs::remove_file(home.logs().join("-home-u-secretproject/one.jsonl")).unwrap();
    edit_manifest(&home, |manifest| {
        manifest["sources"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .for_each(|source| source["made_by"] = json!(OTHER_MAKER));
    });
    let after = home.json(&["ingest"]);
    assert_eq!(after["inputs"]["rewritten"], 1);
    assert_eq!(facts(&before), facts(&after));
}

#[test]
fn a_lake_of_a_later_devboy_is_left_alone() {
    let home = home_with(6);
    home.json(&["ingest"]);
    let path = home.lake().join("manifest.json");
    std::fs::write(&path, r#"{"schema":999,"shape":"unknown"}"#).unwrap();
    let report = home.json(&["ingest"]);
    assert_eq!(report["totals"]["tool_uses"], 6);
    assert!(report["inputs"]["notes"].to_string().contains("later devboy"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), r#"{"schema":999,"shape":"unknown"}"#);
}

#[test]
fn two_runs_at_once_give_the_same_answer() {
    let home = home_with(40);
    let expected = facts(&home.json(&["ingest", "--no-lake"]));
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| facts(&home.json(&["ingest"])))).collect();
        for run in runs {
            assert_eq!(run.join().unwrap(), expected);
        }
    });
    assert_eq!(facts(&home.json(&["ingest"])), expected);
}

#[test]
fn many_small_updates_are_merged_into_few_segments() {
    let home = home_with(2);
    for number in 0..12 {
        append(&home, "one.jsonl", &session(&format!("s{number}"), 2));
        home.json(&["ingest"]);
    }
    let segments = std::fs::read_dir(home.lake()).unwrap();
    let segments = segments.filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().ends_with("calls.parquet"));
    assert!(segments.count() <= 9);
    assert_eq!(facts(&home.json(&["ingest"])), facts(&home.json(&["ingest", "--no-lake"])));
}

#[test]
fn a_lake_that_cannot_be_written_is_a_note_and_no_failure() {
    let home = home_with(4);
    home.write("cache/devboy", "a file where the directory should be");
    let report = home.json(&["ingest"]);
    assert_eq!(report["totals"]["tool_uses"], 4);
    assert!(report["inputs"]["notes"].to_string().contains("working without the lake"));
}

#[test]
fn a_remembered_answer_is_the_answer_that_would_be_made_again() {
    let home = home_with(60);
    let args = ["tune", "from-claude-logs", "--tools", "--dry-run", "--explain", "--reproducible"];
    let fresh = home.run(&args);
    let remembered = home.run(&args);
    let without = home.run(&[&args[..], &["--no-lake"]].concat());
    assert_eq!(fresh.out, remembered.out);
    assert_eq!(fresh.out, without.out);
}

#[test]
fn an_answer_that_was_made_by_other_rules_is_made_again() {
    let home = home_with(60);
    let count = |more: &[&str]| home.json(&[&["ingest"], more].concat())["totals"]["tool_uses"].clone();
    assert_eq!(count(&[]), 60);
    for entry in std::fs::read_dir(home.lake()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "memo") {
            let answer = String::from_utf8(std::fs::read(&path).unwrap()[16..].to_vec()).unwrap();
            let answer = answer.replace("\"tool_uses\":60", "\"tool_uses\":61");
            std::fs::write(&path, [&Id::of(answer.as_bytes()).0[..], answer.as_bytes()].concat()).unwrap();
        }
    }
    assert_eq!(count(&[]), 61, "nobody remembers");
    let sheet = include_str!("../../rules/edges.toml");
    home.write("own/edges.toml", format!("{sheet}# another text\n"));
    assert_eq!(count(&["--rules-dir", home.path("own").to_str().unwrap()]), 60);
    let names = ["one build", "another build"].map(|build| answer_name(build, b"the same question"));
    assert_ne!(names[0], names[1]);
}

#[test]
fn files_of_somebody_else_in_the_lake_directory_are_left_alone() {
    let home = home_with(2);
    let foreign = ["sales.parquet", "draft.tmp", "notes.memo", "000001-sales.parquet"];
    for name in foreign {
        home.write(&format!("cache/devboy/lake/{name}"), "mine");
    }
    home.json(&["ingest"]);
    append(&home, "one.jsonl", &session("two", 2));
    home.json(&["ingest"]);
    for name in foreign {
        assert!(home.lake().join(name).exists(), "{name}");
    }
}

#[test]
fn another_vocabulary_makes_the_rows_anew() {
    let home = home_with(0);
    let refused = session("one", 2)
        .replace("\"content\":\"secretbody of some length\"", "\"is_error\":true,\"content\":\"Go away\"");
    append(&home, "one.jsonl", &refused);
    assert_eq!(home.json(&["ingest"])["history"]["status"]["error"], 2);
    let words = include_str!("../../rules/logs.toml")
        .replace("\"The user doesn't want to proceed with this tool use.\"", "\"Go away\"");
    home.write("rules/logs.toml", words);
    let dir = home.path("rules");
    let report = home.json(&["ingest", "--rules-dir", dir.to_str().unwrap()]);
    assert_eq!(report["history"]["status"]["rejected"], 2, "{report}");
}

#[test]
fn answers_about_moving_windows_do_not_pile_up() {
    let home = home_with(40);
    for minute in 10..40 {
        home.run(&["tune", "from-claude-logs", "--dry-run", "--since", &format!("2026-10-29T00:{minute}:00Z")]);
    }
    let memos = std::fs::read_dir(home.lake()).unwrap();
    let memos = memos.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|ext| ext == "memo"));
    assert!(memos.count() <= 16);
}

#[test]
fn rows_of_other_roots_are_made_anew_as_well_when_the_vocabulary_changes() {
    let home = Home::new();
    let refused = session("one", 2)
        .replace("\"content\":\"secretbody of some length\"", "\"is_error\":true,\"content\":\"Go away\"");
    home.write("a/one.jsonl", &refused);
    home.write("b/two.jsonl", refused.replace("one", "two"));
    let (a, b) = (home.path("a"), home.path("b"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    home.json(&["ingest", "--input-dir", a, "--input-dir", b]);
    let words = include_str!("../../rules/logs.toml")
        .replace("\"The user doesn't want to proceed with this tool use.\"", "\"Go away\"");
    home.write("rules/logs.toml", words);
    let dir = home.path("rules");
    let rejected = |root| {
        home.json(&["ingest", "--input-dir", root, "--rules-dir", dir.to_str().unwrap()])["history"]["status"]["rejected"].clone()
    };
    assert_eq!((rejected(a), rejected(b)), (2.into(), 2.into()));
}
