//! Nothing is lost to an error: faults at every step of writing, flipped bits, pipes and links where files should be.
//! Whatever happens, the answer is the right one or a message says what is missing, and the next run is right.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::harness::{CallLines, Home, session};
use crate::base::files::faults::Fault;
use crate::base::files::{self, WriteStep};
use crate::base::id::Id;
use crate::frames::lake::{Lake, Trouble, Update};
use crate::frames::manifest::Maker;
use crate::frames::tables::TABLES;
use crate::shell::arguments::Exit;

const LOG: &str = ".claude/projects/-home-u-p/one.jsonl";
const EIO: i32 = 5;
const EACCES: i32 = 13;
const ENOSPC: i32 = 28;

/// What a command answers, without what it says about its input; none if it fails. And whether there is a message.
fn answer(home: &Home, arguments: &[&str]) -> (Option<Value>, bool) {
    let outcome = home.run(&[arguments, &["--json", "--reproducible"]].concat());
    if outcome.exit != Exit::Done {
        return (None, !outcome.err.is_empty());
    }
    let mut report: Value = serde_json::from_str(&outcome.out).unwrap();
    let inputs = report.as_object_mut().unwrap().remove("inputs").unwrap_or_default();
    // That logs are deleted is no damage.
    let is_damage = |note: &str| !note.contains("deleted from disk; what was kept of ");
    let told =
        |field: &str| inputs[field].as_array().is_some_and(|list| list.iter().any(|one| is_damage(&one.to_string())));
    let noted = outcome.err.lines().any(|line| line.starts_with("# note:") && is_damage(line));
    let lacks = outcome.out.contains("is missing from this report");
    (Some(report), told("notes") || told("unreadable") || noted || lacks)
}

/// What came of faults.
#[derive(Default)]
struct Faults {
    equal: usize,
    told: usize,
    /// Where an answer differed without a message.
    silent: Vec<String>,
}

impl Faults {
    fn count(&self) -> usize {
        self.equal + self.told + self.silent.len()
    }

    /// Books what a command answered at a fault.
    fn book(&mut self, is_equal: bool, is_told: bool, place: &str) {
        match (is_equal, is_told) {
            (true, _) => self.equal += 1,
            (false, true) => self.told += 1,
            (false, false) => self.silent.push(place.to_owned()),
        }
    }

    /// Prints the line that `scripts/reliability` looks for.
    fn expect(&self, count_min: usize) {
        let Self { equal, told, silent } = self;
        println!("{} faults, {equal} equal, {told} told, {} silent", self.count(), silent.len());
        assert!(silent.is_empty(), "another answer without a message: {silent:#?}");
        assert!(self.count() > count_min, "{} faults", self.count());
    }
}

fn append(home: &Home, text: &str) {
    OpenOptions::new().append(true).open(home.path(LOG)).unwrap().write_all(text.as_bytes()).unwrap();
}

fn files_of(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn restore(dir: &Path, files: &[(PathBuf, Vec<u8>)]) {
    let _absent = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).unwrap();
    files.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
}

fn segments(dir: &Path) -> BTreeSet<PathBuf> {
    let files = files_of(dir).into_iter().map(|(path, _)| path);
    files.filter(|path| path.extension().is_some_and(|ending| ending == "parquet")).collect()
}

fn unfinished(dir: &Path) -> Vec<PathBuf> {
    let files = files_of(dir).into_iter().map(|(path, _)| path);
    files.filter(|path| path.extension().is_some_and(|ending| ending == "tmp")).collect()
}

/// A session of reads, none of which shows what another one does: numbered lines, and more of them in later ones.
fn lines_read(name: &str, calls: usize) -> String {
    let lines = |number: usize| {
        let line = |line: usize| format!("{:>6}\tlet {name}_{number} = {line};\n", line + 1);
        (0..10 + number).map(line).collect::<String>()
    };
    let call = |number: usize| {
        let (tool, body) = ("Read", lines(number));
        CallLines { session: name, number, tool, input: "/a.rs", body: &body, model: "claude-opus-4-6" }.text()
    };
    (0..calls).map(call).collect()
}

// --- Faults ----------------------------------------------------------------------------------------------------------

/// Lets each step of a command fail in turn, with a lake that has something to add to.
fn sweep(arguments: &[&str]) -> Faults {
    sweep_over(&session, arguments)
}

/// The same over logs as `told` writes them.
fn sweep_over(told: &dyn Fn(&str, usize) -> String, arguments: &[&str]) -> Faults {
    let home = Home::new();
    home.write(LOG, told("one", 8));
    home.write(".claude/projects/-home-u-p/two.jsonl", told("two", 4));
    answer(&home, arguments);
    let before = files_of(&home.lake());
    append(&home, &told("three", 6));
    let expected = answer(&home, &[arguments, &["--no-lake"]].concat());
    assert!(expected.0.is_some(), "{arguments:?}");
    let mut faults = Faults::default();
    let kinds = [
        (WriteStep::Open, false, EIO),
        (WriteStep::Read, false, EIO),
        (WriteStep::Read, true, EIO),
        (WriteStep::Create, false, EACCES),
        (WriteStep::Create, true, EACCES),
        (WriteStep::Write, false, ENOSPC),
        (WriteStep::Write, true, ENOSPC),
        (WriteStep::Sync, false, EIO),
        (WriteStep::Rename, false, EIO),
        (WriteStep::MakeDir, false, EACCES),
    ];
    for (step, lasts, error) in kinds {
        for nth in 0.. {
            restore(&home.lake(), &before);
            let kept = segments(&home.lake());
            let fault = Fault::new(&home.path(""), step, nth, lasts, error);
            let (found, is_told) = answer(&home, arguments);
            let has_struck = fault.has_struck();
            drop(fault);
            let place = format!("{arguments:?}: {step:?} {nth}, lasting {lasts}");
            assert_eq!(unfinished(&home.lake()), [] as [PathBuf; 0], "{place}");
            if lasts && has_struck && step == WriteStep::Write {
                let more = &segments(&home.lake()) - &kept;
                let manifest = fs::read_to_string(home.lake().join("manifest.json")).unwrap();
                let number = |path: &PathBuf| {
                    path.file_name().unwrap().to_str().unwrap()[..6].trim_start_matches('0').to_owned()
                };
                let is_named = |path: &PathBuf| manifest.contains(&format!("\"number\":{}", number(path)));
                assert!(more.iter().all(is_named), "{place}: {more:?} fill the disk");
            }
            assert_eq!(answer(&home, arguments).0, expected.0, "{place}: the next run");
            if !has_struck {
                break;
            }
            faults.book(found == expected.0, is_told, &place);
        }
    }
    faults
}

#[test]
fn any_fault_while_logs_are_read_leaves_the_right_answer_or_a_message() {
    sweep(&["ingest"]).expect(50);
}

#[test]
fn an_ingest_that_keeps_nothing_says_so_also_in_a_quiet_run() {
    let home = Home::new();
    home.write(LOG, session("one", 8));
    for (step, error) in [(WriteStep::MakeDir, EACCES), (WriteStep::Write, ENOSPC)] {
        let fault = Fault::new(&home.lake(), step, 0, true, error);
        let outcome = home.run(&["ingest", "--quiet"]);
        drop(fault);
        assert!(outcome.exit == Exit::Done && outcome.out.contains("tool calls, each once"), "{}", outcome.out);
        assert!(outcome.err.contains("read and not kept") && outcome.err.contains("the lake"), "{}", outcome.err);
        assert_eq!(home.run(&["ingest", "--quiet", "--no-lake"]).err, "");
    }
    assert_eq!(home.run(&["ingest", "--quiet"]).err, "");
    // What is kept already needs no disk, also where a log was only touched.
    let log = OpenOptions::new().append(true).open(home.path(LOG)).unwrap();
    log.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let fault = Fault::new(&home.lake(), WriteStep::Write, 0, true, ENOSPC);
    assert_eq!(home.run(&["ingest", "--quiet"]).err, "");
    drop(fault);
}

#[test]
fn any_fault_while_links_are_mined_leaves_the_right_answer_or_a_message() {
    sweep(&["mine", "projections"]).expect(50);
}

#[test]
fn any_fault_while_bodies_are_studied_leaves_the_right_answer_or_a_message() {
    sweep(&["replay"]).expect(50);
    sweep_over(&lines_read, &["replay"]).expect(60);
}

#[test]
fn facts_that_the_disk_refuses_are_made_again() {
    made_again_where_refused(lines_read("one", 30), &["replay"]);
}

#[test]
fn values_that_the_disk_refuses_are_made_again() {
    made_again_where_refused(session("one", 30), &["mine", "projections"]);
}

/// What went to disk is not in memory any more: logs are read once more for it, and only then.
fn made_again_where_refused(log: String, arguments: &[&str]) {
    let home = Home::new();
    home.write(LOG, log);
    let expected = answer(&home, &[arguments, &["--no-lake"]].concat()).0;
    let opened = Fault::none(&home.path(LOG), WriteStep::Open);
    assert_eq!(answer(&home, arguments), (expected.clone(), false));
    let (opened_once, mut read_twice) = (opened.passed(), 0);
    drop(opened);
    for (step, error) in
        [(WriteStep::Create, EACCES), (WriteStep::Write, ENOSPC), (WriteStep::Sync, EIO), (WriteStep::Rename, EIO)]
    {
        for (nth, lasts) in (0..).flat_map(|nth| [(nth, false), (nth, true)]) {
            let _absent = fs::remove_dir_all(home.lake());
            let opened = Fault::none(&home.path(LOG), WriteStep::Open);
            let fault = Fault::new(&home.lake(), step, nth, lasts, error);
            let found = answer(&home, arguments).0;
            let (opened, has_struck) = (opened.passed(), fault.has_struck());
            drop(fault);
            if !has_struck {
                break;
            }
            let place = format!("{step:?} {nth}, lasting {lasts}: opened {opened} times");
            assert_eq!(found, expected, "{place}");
            assert!(opened == opened_once || opened == opened_once + 1, "{place}, {opened_once} without a fault");
            read_twice += opened - opened_once;
            assert_eq!(unfinished(&home.lake()), [] as [PathBuf; 0], "{place}");
            assert_eq!(answer(&home, arguments).0, expected, "{place}: the next run");
        }
    }
    assert!(read_twice > 5, "{read_twice}");
}

/// As many as go to disk before all are there.
#[test]
fn facts_that_a_full_disk_refuses_while_logs_are_read_are_made_again() {
    let home = Home::new();
    let body = |number: usize| {
        let line = |line: usize| format!("{:>6}\t{number} {line}\n", line + 1);
        (0..9_000).map(line).collect::<String>()
    };
    let call = |number: usize| {
        let (session, tool, body) = ("one", "Read", body(number));
        CallLines { session, number, tool, input: "/a.rs", body: &body, model: "claude-opus-4-6" }.text()
    };
    home.write(LOG, (0..20).map(call).collect::<String>());
    let expected = answer(&home, &["replay", "--no-lake"]).0;
    let opened_in = |fault: Fault| {
        let opened = Fault::none(&home.path(LOG), WriteStep::Open);
        let (found, is_told) = answer(&home, &["replay"]);
        assert!(found == expected && is_told == fault.has_struck() && unfinished(&home.lake()).is_empty());
        opened.passed()
    };
    let opened_once = opened_in(Fault::none(&home.lake(), WriteStep::Write));
    fs::remove_dir_all(home.lake()).unwrap();
    assert_eq!(opened_in(Fault::new(&home.lake(), WriteStep::Write, 0, true, ENOSPC)), opened_once + 1);
    assert!(segments(&home.lake()).is_empty());
}

#[test]
fn facts_of_several_groups_are_those_of_a_fresh_reading() {
    let home = Home::new();
    let replay = |more: &[&str]| answer(&home, &[&["replay"][..], more].concat()).0;
    // Groups of a first run, of a log that has grown, and of many segments that are merged.
    for number in 0..12 {
        home.write(&format!(".claude/projects/p/{number}.jsonl"), lines_read(&format!("s{number}"), 9));
        let first = replay(&["--threads", "2"]);
        assert!(first.is_some());
        assert_eq!(first, replay(&["--no-lake"]), "{number} logs");
        assert_eq!(first, replay(&["--threads", "1"]), "{number} logs, from the lake");
    }
}

#[test]
fn two_runs_that_study_the_same_bodies_give_the_same_answer() {
    let home = Home::new();
    home.write(LOG, lines_read("one", 40));
    let expected = answer(&home, &["replay", "--no-lake"]).0;
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| answer(&home, &["replay"]).0)).collect();
        for run in runs {
            assert_eq!(run.join().unwrap(), expected);
        }
    });
    assert_eq!(answer(&home, &["replay"]), (expected, false));
    assert!(unfinished(&home.lake()).is_empty());
}

#[test]
fn any_fault_while_timelines_are_read_leaves_the_right_answer_or_a_message() {
    sweep(&["replay", "--policy", "prompt-cache"]).expect(50);
}

/// Rows are what is left of a log once it is gone: the disk may refuse its timeline.
#[test]
fn rows_are_kept_where_timelines_are_not() {
    let asked = ["cost"];
    let mut refused = 0;
    for (step, error) in [(WriteStep::Create, EACCES), (WriteStep::Write, ENOSPC), (WriteStep::Sync, EIO)] {
        for nth in 0.. {
            let home = Home::new();
            // Of the first rows of a lake values go to disk as well, and if it refuses anything logs are read once more.
            home.write(".claude/projects/-home-u-p/zero.jsonl", session("zero", 2));
            home.json(&["ingest"]);
            home.write(LOG, session("one", 8));
            home.write(".claude/projects/-home-u-p/two.jsonl", session("two", 4));
            let fault = Fault::new(&home.path(""), step, nth, false, error);
            let outcome = home.run(&[&asked[..], &["--json"]].concat());
            let has_struck = fault.has_struck();
            drop(fault);
            if !has_struck {
                break;
            }
            if outcome.out.contains("the timelines were not stored") {
                refused += 1;
                fs::remove_file(home.path(LOG)).unwrap();
                let calls = home.json(&["mine", "tools"]);
                assert_eq!(calls["inputs"]["kept_after_deletion"], 1, "{step:?} {nth}: {calls:#}");
            }
        }
    }
    assert!(refused > 2, "{refused}");
}

#[test]
fn what_a_killed_run_left_goes_before_the_next_one_writes() {
    let home = Home::new();
    home.write(LOG, session("one", 8));
    home.json(&["cost"]);
    let left = home.lake().join("0123456789abcdef0123456789abcdef.tmp");
    fs::write(&left, "half a file").unwrap();
    append(&home, &session("two", 4));
    let reader = Lake::open(&home.lake()).unwrap();
    home.json(&["cost"]);
    assert!(left.exists(), "somebody may be writing it");
    drop(reader);
    append(&home, &session("three", 4));
    // Every write fails: there was no room beside it.
    let fault = Fault::new(&home.lake(), WriteStep::Write, 0, true, ENOSPC);
    home.json(&["cost"]);
    drop(fault);
    assert!(!left.exists());
}

/// Arguments are kept nowhere: logs are read for them each time.
#[test]
fn any_fault_while_arguments_are_checked_leaves_the_right_answer_or_a_message() {
    sweep(&["replay", "--policy", "arg-check"]).expect(50);
}

/// Events of a session as the live pipeline records them, from the logs of another home.
fn recorded() -> Home {
    let other = Home::new();
    other.write(LOG, session("one", 40));
    let home = Home::new();
    let dir = home.path(".devboy/telemetry");
    let outcome = other.run(&["replay", "--emit-telemetry", dir.to_str().unwrap()]);
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    home
}

#[test]
fn any_fault_while_telemetry_is_read_leaves_the_right_answer_or_a_message() {
    let home = recorded();
    // Two files of one name are compared before they are read.
    let events: Vec<PathBuf> = below(&home.path(".devboy/telemetry"));
    let copy = home.path(".config/devboy/telemetry/events");
    fs::create_dir_all(&copy).unwrap();
    for path in &events {
        fs::copy(path, copy.join(path.file_name().unwrap())).unwrap();
    }
    let arguments = ["mine", "fingerprints", "--from-telemetry"];
    let expected = answer(&home, &arguments).0;
    assert!(expected.is_some());
    let mut faults = Faults::default();
    for (step, lasts) in
        [(WriteStep::Open, false), (WriteStep::Open, true), (WriteStep::Read, false), (WriteStep::Read, true)]
    {
        for nth in 0.. {
            let fault = Fault::new(&home.path(""), step, nth, lasts, EIO);
            let (found, is_told) = answer(&home, &arguments);
            if !fault.has_struck() {
                break;
            }
            drop(fault);
            faults.book(found == expected, is_told, &format!("{step:?} {nth}, lasting {lasts}"));
            assert_eq!(answer(&home, &arguments).0, expected, "the next run");
        }
    }
    faults.expect(10);
}

/// All files below a directory.
fn below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

/// The file opens, and breaks off where the disk does.
#[test]
fn a_read_that_fails_in_the_middle_is_no_fact_about_a_log() {
    let home = Home::new();
    let text = (0..60).map(|number| session(&format!("s{number}"), 40)).collect::<String>();
    assert!(text.len() > 2 << 20, "{} bytes are read in several steps", text.len());
    home.write(LOG, text);
    for nth in 1..4 {
        let _absent = fs::remove_dir_all(home.lake());
        let fault = Fault::new(&home.path(LOG), WriteStep::Read, nth, true, EIO);
        let failed = home.run(&["ingest"]);
        assert!(failed.exit == Exit::Failed && failed.err.contains("one.jsonl could not be read"), "{}", failed.err);
        let report = home.json(&["ingest", "--allow-empty"]);
        assert!(fault.has_struck());
        drop(fault);
        assert_eq!(report["totals"]["tool_uses"], 0);
        assert!(report["inputs"]["unreadable"].to_string().contains("one.jsonl"), "{}", report["inputs"]);
        let report = home.json(&["ingest"]);
        assert_eq!((&report["totals"]["tool_uses"], &report["inputs"]["new"]), (&json!(2400), &json!(1)));
    }
}

#[test]
fn a_part_of_a_file_is_all_that_stands_there_or_an_error() {
    let home = Home::new();
    let bytes: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    let (path, length) = (home.path("part"), bytes.len() as u64);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(files::sum_of_own(&path).unwrap(), (Id::of(&bytes), length));
    for place in [0..0, 7..200_000, length - 8..length] {
        let expected = &bytes[place.start as usize..place.end as usize];
        assert_eq!(files::read_own_part(&path, &place).unwrap(), expected);
    }
    assert!(files::read_own_part(&path, &(length - 8..length + 1)).is_err());
}

const TUNE: [&str; 3] = ["tune", "from-claude-logs", "--tools"];

fn tuned() -> (Home, String) {
    let home = Home::new();
    home.write(LOG, session("one", 60));
    home.run(&TUNE);
    let text = fs::read_to_string(home.config()).unwrap();
    fs::remove_dir_all(home.config().parent().unwrap()).unwrap();
    (home, text)
}

fn history(home: &Home) -> usize {
    home.json(&["tune", "history"])["entries"].as_array().unwrap().len()
}

#[test]
fn any_fault_while_a_configuration_is_written_leaves_old_or_new_and_one_entry_in_the_end() {
    let (home, expected) = tuned();
    let dir = home.config().parent().unwrap().to_owned();
    let mut faults = Faults::default();
    for step in
        [WriteStep::Open, WriteStep::Create, WriteStep::Write, WriteStep::Sync, WriteStep::Rename, WriteStep::MakeDir]
    {
        for (nth, lasts) in (0..20).flat_map(|nth| [(nth, false), (nth, true)]) {
            let _absent = fs::remove_dir_all(&dir);
            let fault = Fault::new(&dir, step, nth, lasts, EIO);
            let outcome = home.run(&TUNE);
            let has_struck = fault.has_struck();
            drop(fault);
            let place = format!("{step:?} {nth}, lasting {lasts}");
            let is_written = home.config().exists();
            match fs::read_to_string(home.config()) {
                Ok(text) => assert_eq!(text, expected, "{place}"),
                Err(_) => assert!(outcome.exit == Exit::Failed && !outcome.err.is_empty(), "{place}: {}", outcome.err),
            }
            home.run(&TUNE);
            assert_eq!(fs::read_to_string(home.config()).unwrap(), expected, "{place}");
            assert_eq!(history(&home), 1, "{place}");
            assert!(files_of(&dir).iter().all(|(path, _)| path.extension().is_none_or(|end| end != "tmp")), "{place}");
            if has_struck {
                faults.book(is_written, true, &place);
            }
        }
    }
    faults.expect(10);
}

/// As if the run was killed at either side of replacing the configuration.
#[test]
fn a_change_that_was_not_confirmed_is_known_if_it_was_made() {
    let (home, expected) = tuned();
    let journal = home.config().with_file_name("tuning-journal.jsonl");
    let unmade = Fault::new(&home.config(), WriteStep::Rename, 0, true, EIO);
    let unsettled = Fault::new(&journal, WriteStep::Write, 1, true, EIO);
    home.run(&TUNE);
    drop((unmade, unsettled));
    assert!(fs::read_to_string(&journal).unwrap().contains("\"pending\":true"));
    assert!(!home.config().exists());
    assert_eq!(history(&home), 0);
    assert_eq!(home.run(&["tune", "undo"]).exit, Exit::Failed);
    let unsettled = Fault::new(&journal, WriteStep::Write, 2, true, EIO);
    home.run(&TUNE);
    drop(unsettled);
    assert_eq!(fs::read_to_string(home.config()).unwrap(), expected);
    assert!(!fs::read_to_string(&journal).unwrap().contains("\"written\":true"));
    assert_eq!(history(&home), 1);
    assert_eq!(home.run(&["tune", "undo"]).exit, Exit::Done);
    assert_eq!(history(&home), 2);
    assert_eq!(fs::read_to_string(home.config()).unwrap(), "");
}

#[test]
fn what_a_killed_run_left_beside_the_configuration_is_removed() {
    let (home, _) = tuned();
    let left = home.write(".config/devboy/pipeline_config.toml.999999999-0.tmp", "half");
    let alive = home.write(&format!(".config/devboy/pipeline_config.toml.{}-77.tmp", std::process::id()), "half");
    let other = home.write(".config/devboy/other.toml.999999999-0.tmp", "mine");
    home.run(&TUNE);
    assert!(!left.exists() && alive.exists() && other.exists());
}

#[test]
fn a_log_that_can_no_longer_be_read_keeps_its_rows() {
    let home = Home::new();
    home.write(LOG, session("one", 8));
    let before = answer(&home, &["ingest"]).0.unwrap();
    append(&home, &session("more", 3));
    let fault = Fault::new(&home.path(LOG), WriteStep::Open, 0, true, EACCES);
    let report = home.json(&["ingest"]);
    drop(fault);
    assert_eq!(report["totals"]["tool_uses"], before["totals"]["tool_uses"]);
    assert!(report["inputs"]["unreadable"].to_string().contains("one.jsonl"), "{}", report["inputs"]);
    assert!(report["data_quality"].to_string().contains("unreadable"));
    assert_eq!(home.json(&["ingest"])["totals"]["tool_uses"], 11);
}

// --- Damage ----------------------------------------------------------------------------------------------------------

/// 500 flipped bits, in every file of a lake, with one log still there and one deleted.
#[test]
fn a_flipped_bit_is_never_silent() {
    let home = Home::new();
    home.write(LOG, session("one", 8));
    let gone = home.write(".claude/projects/-home-u-p/gone.jsonl", session("gone", 5));
    let commands: [&[&str]; 4] =
        [&["ingest"], &["mine", "projections"], &["replay"], &["replay", "--policy", "prompt-cache"]];
    commands.iter().for_each(|command| drop(answer(&home, command)));
    fs::remove_file(gone).unwrap();
    let expected = commands.map(|command| answer(&home, command).0);
    let lake = files_of(&home.lake());
    let (mut seed, mut silent, mut told) = (1_u64, 0, 0);
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for flip in 0..500 {
        let mut damaged = lake.clone();
        // Answers that are remembered would hide what became of the rest.
        if flip % 4 != 0 {
            damaged.retain(|(path, _)| path.extension().is_none_or(|ending| ending != "memo"));
        }
        damaged.retain(|(_, bytes)| !bytes.is_empty());
        let (path, bytes) = damaged.get_mut(flip % 17 % lake.len()).unwrap_or_else(|| panic!("{} files", lake.len()));
        let at = next(bytes.len());
        bytes[at] ^= 1 << next(8);
        let place = format!("{} at {at}", path.display());
        restore(&home.lake(), &damaged);
        let which = next(commands.len());
        let (found, is_told) = answer(&home, commands[which]);
        assert!(found == expected[which] || is_told, "{:?}, {place}", commands[which]);
        told += usize::from(is_told);
        silent += usize::from(!is_told);
    }
    assert!(told > 50 && silent > 50, "{told} told, {silent} without effect");
}

#[test]
fn a_damaged_file_costs_only_what_was_in_it() {
    for table in ["-given.parquet", "-bodies.parquet", "-timelines.parquet"] {
        let home = Home::new();
        home.write(LOG, session("one", 8));
        let gone = home.write(".claude/projects/-home-u-p/gone.jsonl", session("gone", 5));
        let commands: [&[&str]; 3] = [&["mine", "projections"], &["replay"], &["replay", "--policy", "prompt-cache"]];
        commands.iter().for_each(|command| drop(answer(&home, command)));
        fs::remove_file(gone).unwrap();
        let totals = home.json(&["ingest"])["totals"].clone();
        for path in segments(&home.lake()).iter().filter(|path| path.to_str().unwrap().ends_with(table)) {
            fs::write(path, "PAR1").unwrap();
        }
        for path in fs::read_dir(home.lake()).unwrap().map(|entry| entry.unwrap().path()) {
            if path.extension().is_some_and(|ending| ending == "memo") {
                fs::remove_file(path).unwrap();
            }
        }
        let told: Vec<bool> = commands.iter().map(|command| answer(&home, command).1).collect();
        assert!(told.contains(&true), "{table}");
        assert_eq!(home.json(&["ingest"])["totals"], totals, "{table}: rows of deleted logs stay");
        let again = answer(&home, &["mine", "projections"]);
        assert!(!again.1 && again.0.is_some(), "{table}: it heals");
    }
}

// --- Several runs at once --------------------------------------------------------------------------------------------

#[test]
fn readers_wait_for_nobody_and_writers_not_for_ever() {
    let home = Home::new();
    home.write(LOG, session("one", 8));
    home.json(&["ingest"]);
    let lock = fs::File::open(home.lake().join("lock")).unwrap();
    lock.lock().unwrap();
    let (found, is_told) = answer(&home, &["mine", "tools"]);
    assert!(found.is_some() && !is_told, "a current lake needs no lock");
    append(&home, &session("two", 4));
    let report = home.json(&["ingest"]);
    assert_eq!(report["totals"]["tool_uses"], 12);
    assert!(report["inputs"]["notes"].to_string().contains("not updated"), "{}", report["inputs"]["notes"]);
    drop(lock);
    assert_eq!(home.json(&["ingest"])["inputs"]["notes"].as_array().unwrap().len(), 0);
}

#[test]
fn segments_stay_as_long_as_somebody_reads_them() {
    let home = Home::new();
    home.write(LOG, session("one", 8));
    home.json(&["ingest"]);
    let reader = Lake::open(&home.lake()).unwrap();
    for number in 0..12 {
        append(&home, &session(&format!("s{number}"), 2));
        home.json(&["ingest"]);
    }
    let rows = reader.load(&TABLES, &mut Default::default(), &|_| true).unwrap();
    assert_eq!(rows.iter().map(|(_, rows)| rows.calls.len()).sum::<usize>(), 8);
    let with_reader = segments(&home.lake()).len();
    drop(reader);
    append(&home, &session("last", 2));
    home.json(&["ingest"]);
    assert!(segments(&home.lake()).len() < with_reader, "and are swept away then");
}

#[test]
fn a_run_that_was_overtaken_writes_nothing_of_its_own() {
    let home = Home::new();
    home.write(LOG, session("one", 8));
    home.json(&["ingest"]);
    let late = Lake::open(&home.lake()).unwrap();
    append(&home, &session("two", 4));
    home.json(&["ingest"]);
    let mut sources = late.manifest.sources.clone();
    sources.clear();
    let mut update = Update { sources: &sources, next_source: 9, news: None, timelines: None, facts: None, rows: None };
    assert_eq!(late.commit(&mut update, &|| ()).unwrap_err(), Trouble::Overtaken);
    assert_eq!(late.newer().unwrap().manifest.sources.len(), 1);
    assert_eq!(home.json(&["ingest"])["inputs"]["unchanged"], 1);
}

// --- Identity --------------------------------------------------------------------------------------------------------

#[test]
fn a_look_at_a_backup_leaves_the_original_alone() {
    let home = Home::new();
    home.write(LOG, session("one", 8));
    home.json(&["ingest"]);
    home.write("backup/p/copy.jsonl", session("one", 8));
    let backup = home.path("backup");
    assert_eq!(home.json(&["ingest", "--input-dir", backup.to_str().unwrap()])["totals"]["tool_uses"], 8);
    let report = home.json(&["ingest"]);
    assert_eq!((&report["inputs"]["unchanged"], &report["inputs"]["bytes_read"]), (&1.into(), &0.into()));
    assert_eq!(report["totals"]["tool_uses"], 8);
}

/// A log over the size of any sample; `word` stands in one of its many bodies.
fn large(word: &str) -> String {
    session("one", 400).replacen("secretbody of some length", word, 101).replacen(
        word,
        "secretbody of some length",
        100,
    )
}

#[test]
fn all_of_a_file_decides_whether_it_is_the_same() {
    let (old, new) = (large("secretbody of some length"), large("anotherone of some length"));
    assert_eq!(old.len(), new.len());
    assert_eq!(old.bytes().zip(new.bytes()).filter(|(old, new)| old != new).count(), 9);
    // Deleted here, another one of the same size there.
    let home = Home::new();
    let path = home.write(LOG, &old);
    home.json(&["ingest"]);
    fs::remove_file(path).unwrap();
    home.write(".claude/projects/-home-u-p/new.jsonl", &new);
    let report = home.json(&["ingest"]);
    assert_eq!((&report["inputs"]["new"], &report["inputs"]["kept_after_deletion"]), (&1.into(), &1.into()));
    // Rewritten somewhere in the middle and grown.
    let home = Home::new();
    home.write(LOG, &old);
    home.json(&["ingest"]);
    home.write(LOG, format!("{new}{}", session("two", 2)));
    assert_eq!(home.json(&["ingest"])["inputs"]["rewritten"], 1);
    // The same content with another time.
    fs::File::open(home.path(LOG)).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let report = home.json(&["ingest"]);
    assert_eq!((&report["inputs"]["unchanged"], &report["inputs"]["bytes_read"]), (&1.into(), &0.into()));
}

#[test]
fn a_change_of_how_facts_are_made_leaves_the_rows_alone() {
    let [one, other] = ["a", "b"].map(|rules| Maker::of("rows", rules));
    assert_eq!(one.rows, other.rows);
    assert_ne!(one.facts, other.facts);
    let home = Home::new();
    home.write(LOG, session("one", 8));
    home.json(&["replay"]);
    home.write("rules/formats.toml", format!("{}\n# another\n", include_str!("../../rules/formats.toml")));
    let rules = home.path("rules");
    let rules = ["--rules-dir", rules.to_str().unwrap()];
    assert_eq!(home.json(&[&["ingest"][..], &rules].concat())["inputs"]["unchanged"], 1);
    assert_eq!(home.json(&[&["replay"][..], &rules].concat())["inputs"]["studied"], 1);
    assert_eq!(home.json(&[&["replay"][..], &rules].concat())["inputs"]["unchanged"], 1);
}

// --- Pipes, links, other users ---------------------------------------------------------------------------------------

#[cfg(unix)]
fn pipe(path: &Path) {
    let _absent = fs::remove_file(path);
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let home = Home::new();
    home.write(LOG, session("one", 60));
    pipe(&home.logs().join("-home-u-p/x.jsonl"));
    let report = home.json(&["ingest"]);
    assert_eq!(report["totals"]["tool_uses"], 60);
    assert!(report["inputs"]["unreadable"].to_string().contains("named pipe"), "{}", report["inputs"]);
    for name in ["lock", "readers", "manifest.json", "manifest.tmp"] {
        pipe(&home.lake().join(name));
        append(&home, &session(name, 1));
        let expected = home.json(&["ingest", "--no-lake"])["totals"].clone();
        assert_eq!(home.json(&["ingest"])["totals"], expected, "{name}");
        fs::remove_dir_all(home.lake()).unwrap();
        home.json(&["ingest"]);
    }
    fs::create_dir_all(home.config().parent().unwrap()).unwrap();
    for name in ["pipeline_config.toml", "tuning-journal.jsonl", "pipeline_config.toml.lock"] {
        let path = home.config().with_file_name(name);
        pipe(&path);
        let outcome = home.run(&TUNE);
        assert!(outcome.exit == Exit::Failed && outcome.err.contains("named pipe"), "{name}: {}", outcome.err);
        fs::remove_file(path).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_link_in_the_lake_or_of_the_journal_is_not_followed() {
    let home = Home::new();
    home.write(LOG, session("one", 60));
    let victim = home.write("victim", "precious");
    home.json(&["ingest"]);
    let first = segments(&home.lake()).into_iter().next().unwrap();
    for path in [first, home.lake().join("manifest.tmp"), home.lake().join("lock"), home.lake().join("manifest.json")] {
        let _absent = fs::remove_file(&path);
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        append(&home, &session("more", 1));
        let expected = home.json(&["ingest", "--no-lake"])["totals"].clone();
        assert_eq!(home.json(&["ingest"])["totals"], expected, "{}", path.display());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{}", path.display());
        let _swept = fs::remove_file(&path);
    }
    fs::create_dir_all(home.config().parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&victim, home.config().with_file_name("tuning-journal.jsonl")).unwrap();
    assert_eq!(home.run(&TUNE).exit, Exit::Failed);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!home.config().exists());
}

#[cfg(unix)]
#[test]
fn what_others_may_write_to_is_refused_and_a_configuration_that_is_a_link_works() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.write(LOG, session("one", 60));
    home.json(&["ingest"]);
    let open_to = |dir: &Path, mode| fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
    open_to(&home.lake(), 0o770);
    let notes = home.json(&["ingest"])["inputs"]["notes"].to_string();
    assert!(notes.contains("can be written to by other users"), "{notes}");
    let dotfiles = home.write("dotfiles/pipeline_config.toml", "schema_version = 4\n");
    let dir = home.config().parent().unwrap().to_owned();
    fs::create_dir_all(&dir).unwrap();
    std::os::unix::fs::symlink(&dotfiles, home.config()).unwrap();
    open_to(&dir, 0o777);
    let outcome = home.run(&TUNE);
    assert!(outcome.exit == Exit::Failed && outcome.err.contains("can be written to"), "{}", outcome.err);
    assert_eq!(fs::read_to_string(&dotfiles).unwrap(), "schema_version = 4\n");
    open_to(&dir, 0o755);
    assert_eq!(home.run(&TUNE).exit, Exit::Done);
    assert!(fs::read_to_string(&dotfiles).unwrap().len() > 30);
    assert!(fs::symlink_metadata(home.config()).unwrap().is_symlink());
}

#[test]
fn an_output_that_is_a_link_stays_one() {
    let home = Home::new();
    home.write(".claude/projects/p/a.jsonl", session("a", 12));
    let real = home.write("real/file", "old");
    let link = home.path("link");
    std::os::unix::fs::symlink("real/file", &link).unwrap();
    let name = link.to_str().unwrap();
    for command in [
        &["mine", "tools", "--format", "csv", "-o", name][..],
        &["mine", "edges", "--html", name],
        &["report", "--html", name],
        &["replay", "--baseline", name, "--update-baseline"],
        &["what-if", "prompt-cache", "--per-request", name],
    ] {
        // A baseline replaces nothing but a baseline.
        let old = if command[0] == "replay" { r#"{"schema_version":1,"arms":{}}"# } else { "old" };
        fs::write(&real, old).unwrap();
        let outcome = home.run(command);
        assert_eq!(outcome.exit, Exit::Done, "{command:?}: {}", outcome.err);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "{command:?}");
        assert_ne!(fs::read_to_string(&real).unwrap(), old, "{command:?}");
        let told = format!("{}{}", outcome.out, outcome.err);
        assert!(told.contains(&format!("written: {name}\n")), "{command:?}: {told}");
    }
}

#[test]
fn a_log_that_cannot_be_opened_is_told_once() {
    let home = Home::new();
    home.write(".claude/projects/p/a.jsonl", session("a", 12));
    let locked = home.write(".claude/projects/p/locked.jsonl", session("b", 12));
    let _fault = Fault::new(&locked, WriteStep::Open, 0, true, 13);
    for command in [&["report"][..], &["session"], &["cost"]] {
        let said = home.run(command).err;
        assert_eq!(said.matches("locked.jsonl").count(), 1, "{command:?}: {said}");
        assert!(said.contains("could not be read"), "{command:?}: {said}");
    }
}

#[test]
fn logs_of_which_none_can_be_opened_were_not_read() {
    let home = Home::new();
    let locked = home.write(".claude/projects/p/locked.jsonl", session("b", 12));
    let _fault = Fault::new(&locked, WriteStep::Open, 0, true, 13);
    let outcome = home.run(&["cost"]);
    assert_eq!(outcome.exit, Exit::Failed);
    assert!(outcome.err.contains("none of 1 file could be read"), "{}", outcome.err);
    assert!(outcome.err.contains("locked.jsonl could not be read"), "{}", outcome.err);
    assert!(!outcome.err.contains("malformed lines"), "{}", outcome.err);
}

#[test]
fn what_other_systems_do_differently_is_decided_in_one_place() {
    let home = Home::new();
    let (file, link) = (home.path("file"), home.path("link"));
    fs::write(&file, "text").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    // Where opening follows links whatever it is told, they are refused before.
    assert!(files::no_link(&file).is_ok() && files::no_link(&home.path("none")).is_ok());
    assert_eq!(files::no_link(&link).unwrap_err().to_string(), "is a symbolic link");
    let secret = home.write("secret", "\u{feff} deadbeef \r\nmore\r\n");
    assert_eq!(crate::shell::context::first_line(&secret).unwrap(), b"deadbeef");
    let shows = |is_windows, set: &[(&str, &str)]| {
        let value = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
        files::shows_colours_on(is_windows, value)
    };
    assert!(shows(false, &[("TERM", "xterm-256color")]) && shows(true, &[("TERM", "xterm")]));
    assert!(!shows(false, &[]) && !shows(false, &[("TERM", "dumb"), ("WT_SESSION", "1")]) && !shows(true, &[]));
    assert!(shows(true, &[("WT_SESSION", "1")]) && shows(true, &[("TERM", "dumb"), ("ANSICON", "1")]));
}

/// The journal knows a file of settings by one name.
#[test]
fn a_file_of_settings_has_one_name_whatever_leads_to_it() {
    let home = Home::new();
    let file = home.write("real/settings.json", "{}");
    std::os::unix::fs::symlink(home.path("real"), home.path("link")).unwrap();
    let name = crate::settings::claude::file::name_of(&file);
    for other in ["link/settings.json", "real/../real/settings.json"] {
        assert_eq!(crate::settings::claude::file::name_of(&home.path(other)), name, "{other}");
    }
    assert!(name.ends_with("real/settings.json"), "{name}");
}
