//! Timelines in the lake: read once, kept after the log is gone, made anew when anything about them changed.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use clap::Parser;

use super::harness::{Home, NOW_MS, all_bytes, session};
use super::log_builder::*;
use super::timeline::{check, linked, says, told};
use crate::frames::input::Input;
use crate::frames::input::timeline::{TextWords, TimelineDetail};
use crate::logs::timeline::requests::Timeline;
use crate::logs::trace::Millis;
use crate::shell::arguments::{InputArgs, OutputArgs};
use crate::shell::context::{Context, Env};

const PROJECT: &str = ".claude/projects/-home-u-secretproject";

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// A timeline of a home's logs and the notes of the command, as words of a command line change it.
fn ask(home: &Home, words: &[&str], stdin: &str) -> (Timeline, Vec<String>) {
    let (logs, lake) = (home.logs(), home.lake());
    let mut line = vec!["devboy", "--allow-empty"];
    if !words.contains(&"--no-lake") {
        line.extend(["--lake", lake.to_str().unwrap()]);
    }
    if stdin.is_empty() {
        line.extend(["--input-dir", logs.to_str().unwrap()]);
    } else {
        line.extend(["--input-dir", "-"]);
    }
    line.extend(words);
    let line = Line::parse_from(line);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut context = Context {
        out: &mut out,
        err: &mut err,
        input: &mut stdin.as_bytes(),
        env: Env::default(),
        pseudonyms: crate::base::pseudonyms::Pseudonyms::default(),
        now_ms: NOW_MS,
        width: None,
        out_is_terminal: false,
        err_is_terminal: false,
    };
    let window = Millis::MIN..Millis::MAX;
    let mut input =
        Input::read(&line.input, window, (0, Some(TimelineDetail::default())), &line.output, &mut context).unwrap();
    let timeline =
        input.timeline(TimelineDetail { tokens: true, words: TextWords::All, ..TimelineDetail::default() }).unwrap();
    check(&timeline);
    (timeline, input.notes)
}

fn timeline(home: &Home) -> String {
    told(&ask(home, &[], "").0)
}

/// The same without a lake.
fn fresh(home: &Home) -> String {
    told(&ask(home, &["--no-lake"], "").0)
}

fn records() -> Vec<Record> {
    linked(vec![
        user("p", "secretprompt about secretpath/file.rs"),
        asks("m1", "c1", "Read").at(1),
        answers("c1", "   1→fn secretbody() { return 42; }").at(2),
        says("m2", "secretanswer_in_text secretpath/file.rs").at(3),
        boundary("b").at(4),
        compact_summary("s", Some("b")).at(5),
        micro_compaction("mb", &["c1"]).at(6),
        says("m3", "done").at(7),
    ])
}

fn home() -> Home {
    let home = Home::new();
    home.write(&format!("{PROJECT}/one.jsonl"), log(&records()));
    home
}

fn stored(lake: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(lake).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with("-timelines.parquet"));
    files.sort();
    files
}

#[test]
fn the_lake_gives_the_timeline_of_the_logs() {
    let home = home();
    let first = timeline(&home);
    assert_eq!(first, fresh(&home));
    let segments = stored(&home.lake());
    assert_eq!((timeline(&home), stored(&home.lake())), (first, segments), "nothing was read, nothing written");
}

#[test]
fn a_log_that_grew_is_read_again_as_a_whole() {
    let home = home();
    timeline(&home);
    let path = home.path(&format!("{PROJECT}/one.jsonl"));
    for number in 0..12 {
        let more = says(&format!("n{number}"), "secretpath/file.rs again").at(20 + number).line();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(more.as_bytes()).unwrap();
        assert_eq!(timeline(&home), fresh(&home), "grown {number} times");
    }
    assert!(stored(&home.lake()).len() <= 9, "segments are merged");
}

#[test]
fn a_rewritten_log_is_read_again() {
    let home = home();
    timeline(&home);
    home.write(&format!("{PROJECT}/one.jsonl"), log(&records()[..3]));
    assert_eq!(timeline(&home), fresh(&home));
}

#[test]
fn deleted_logs_keep_their_timelines() {
    let home = home();
    home.write(
        &format!("{PROJECT}/two.jsonl"),
        user("q", "go").session("t").line() + &says("m9", "x").session("t").line(),
    );
    let both = timeline(&home);
    std::fs::remove_file(home.path(&format!("{PROJECT}/one.jsonl"))).unwrap();
    assert_eq!(timeline(&home), both);
    assert_ne!(fresh(&home), both);
}

#[test]
fn a_log_that_was_deleted_before_anybody_asked_is_told_of() {
    let home = home();
    home.json(&["mine", "edges"]);
    std::fs::remove_file(home.path(&format!("{PROJECT}/one.jsonl"))).unwrap();
    let (timeline, notes) = ask(&home, &[], "");
    assert!(timeline.requests.is_empty());
    assert!(notes.iter().any(|note| note.contains("the requests of 1 deleted log are missing")), "{notes:?}");
    // What it says to do is about the same logs.
    let logs = home.logs().display().to_string();
    let named = home.json(&["cost", "--allow-empty", "--input-dir", &logs])["inputs"]["notes"].to_string();
    assert!(named.contains(&format!("`devboy ingest --input-dir {logs}` reads them")), "{named}");
    home.json(&["doctor", "--reconcile"]);
}

#[test]
fn a_log_that_grew_before_it_was_deleted_is_told_of() {
    let home = home();
    let before = timeline(&home);
    let path = home.path(&format!("{PROJECT}/one.jsonl"));
    let more = [asks("m9", "c9", "Bash").at(30), answers("c9", "x").at(31)].map(|record| record.line()).concat();
    OpenOptions::new().append(true).open(&path).unwrap().write_all(more.as_bytes()).unwrap();
    home.json(&["mine", "edges"]);
    std::fs::remove_file(&path).unwrap();
    let (now, notes) = ask(&home, &[], "");
    assert_eq!(told(&now), before);
    assert!(notes.iter().any(|note| note.contains("the last requests of 1 deleted log are missing")), "{notes:?}");
    home.json(&["doctor", "--reconcile"]);
}

#[test]
fn whoever_reads_the_log_anew_leaves_its_timeline() {
    for between in [&["replay"][..], &["mine", "fingerprints"], &["mine", "tools", "--exact"]] {
        let home = home();
        let before = timeline(&home);
        home.json(between);
        std::fs::remove_file(home.path(&format!("{PROJECT}/one.jsonl"))).unwrap();
        let (now, notes) = ask(&home, &[], "");
        assert_eq!((told(&now), &notes[..]), (before, &[][..]), "{between:?}");
    }
}

#[test]
fn ingest_keeps_what_a_bill_is_made_of() {
    let home = home();
    home.json(&["ingest"]);
    let segments = stored(&home.lake());
    home.json(&["ingest"]);
    assert_eq!(stored(&home.lake()), segments, "nothing was read, nothing written");
    let path = home.path(&format!("{PROJECT}/one.jsonl"));
    OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(says("m8", "more").at(20).line().as_bytes())
        .unwrap();
    home.json(&["ingest"]);
    // Nobody counted the tokens of its blocks; a bill needs none.
    let bill = |(timeline, notes): (Timeline, Vec<String>)| (timeline.requests, timeline.calls, notes);
    let before = bill(ask(&home, &["--no-lake"], ""));
    std::fs::remove_file(path).unwrap();
    assert_eq!(bill(ask(&home, &[], "")), before);
}

#[test]
fn other_words_make_timelines_anew() {
    let home = home();
    let before = timeline(&home);
    let sheet =
        include_str!("../../rules/timeline.toml").replace("utterance_chars_max = 4000", "utterance_chars_max = 5");
    home.write("rules/timeline.toml", sheet);
    let rules = home.path("rules");
    let (changed, _) = ask(&home, &["--rules-dir", rules.to_str().unwrap()], "");
    assert_ne!(told(&changed), before);
    assert_eq!(timeline(&home), before);
}

#[test]
fn a_damaged_segment_is_made_anew() {
    let home = home();
    let before = timeline(&home);
    let segment = stored(&home.lake()).remove(0);
    std::fs::write(&segment, b"PAR1 and then nothing of the kind").unwrap();
    let (again, notes) = ask(&home, &[], "");
    assert_eq!(told(&again), before);
    assert!(notes.iter().any(|note| note.contains("timelines in the lake were damaged")), "{notes:?}");
    assert_eq!(timeline(&home), before);
    std::fs::remove_file(stored(&home.lake()).remove(0)).unwrap();
    assert_eq!(timeline(&home), before);
}

#[test]
fn reading_timelines_leaves_the_rest_of_the_lake_alone() {
    let home = home();
    let before = home.json(&["ingest"]);
    timeline(&home);
    let after = home.json(&["ingest"]);
    assert_eq!((&after["totals"], &after["history"]), (&before["totals"], &before["history"]));
    assert_eq!(after["inputs"]["unchanged"], 1);
    let segments = stored(&home.lake());
    home.write(&format!("{PROJECT}/two.jsonl"), user("q", "go").session("t").line());
    home.json(&["mine", "edges"]);
    assert_eq!(stored(&home.lake()), segments, "a light reading sweeps no timeline away");
}

#[test]
fn no_text_of_a_log_is_in_the_lake_and_only_its_owner_reads_it() {
    let home = home();
    timeline(&home);
    let bytes = all_bytes(&home.lake());
    for secret in ["secretproject", "secretprompt", "secretpath", "secretbody", "secretanswer"] {
        assert!(memchr::memmem::find(&bytes, secret.as_bytes()).is_none(), "{secret}");
    }
    #[cfg(unix)]
    for path in stored(&home.lake()) {
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn standard_input_has_a_timeline_as_well() {
    let home = home();
    let (piped, _) = ask(&home, &[], &log(&records()));
    let (filed, _) = ask(&home, &["--no-lake"], "");
    assert_eq!(piped.requests, filed.requests);
    assert_eq!(piped.blocks, filed.blocks);
    assert_eq!(piped.references, filed.references);
}

/// A log of which only rows were read goes and comes back: each time the page says what holds then, also when it was asked before.
#[test]
fn a_page_that_lacks_requests_says_so_each_time_and_is_not_remembered() {
    let home = Home::new();
    home.write(".claude/projects/-w-a/one.jsonl", session("one", 10));
    home.write(".claude/projects/-w-b/two.jsonl", session("two", 14));
    home.json(&["mine", "tools"]);
    let page = || {
        let page = home.json(&["report"]);
        (page["spent"]["requests"].as_u64(), page["inputs"]["notes"].to_string().contains("1 deleted log are missing"))
    };
    let (dir, aside) = (home.path(".claude/projects/-w-b"), home.path("aside"));
    std::fs::rename(&dir, &aside).unwrap();
    assert_eq!([page(), page()], [(Some(10), true); 2]);
    std::fs::rename(&aside, &dir).unwrap();
    assert_eq!([page(), page()], [(Some(24), false); 2]);
    std::fs::rename(&dir, &aside).unwrap();
    assert_eq!([page(), page()], [(Some(24), false); 2], "its timeline is known now");
}
