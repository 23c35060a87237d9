//! A window in which nothing happened is an error everywhere, which names that window and the one that is there.

use clap::CommandFactory;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::harness::{Home, session};
use crate::commands::cli::Cli;
use crate::frames::input::answers::offsets;
use crate::logs::window::parse;
use crate::shell::arguments::Exit;

/// Every way in which a command can be asked about a window.
const COMMANDS: &[&[&str]] = &[
    &["tune", "from-claude-logs", "--dry-run"],
    &["tune", "analyze", "--from-claude-logs", "--dry-run"],
    &["tune", "analyze", "--dry-run", "--input-dir", "TELEMETRY"],
    &["tune", "claude-settings", "--dry-run"],
    &["tune", "search", "--dry-run"],
    &["tune", "backtest"],
    &["report"],
    &["what-if", "prompt-cache"],
    &["planner"],
    &["cost"],
    &["session"],
    &["replay"],
    &["replay", "--sweep", "dedup.lru_size=1,5"],
    &["replay", "--planner"],
    &["replay", "--policy", "prompt-cache"],
    &["replay", "--policy", "history-trim", "--from-telemetry", "--input-dir", "TELEMETRY"],
    &["mine", "edges"],
    &["mine", "tools"],
    &["mine", "patterns"],
    &["mine", "sessions"],
    &["mine", "fingerprints"],
    &["mine", "fingerprints", "--from-telemetry", "--input-dir", "TELEMETRY"],
    &["mine", "projections"],
    &["mine", "fields"],
];

/// Takes a window and says what lies in it and what does not.
const EXAMINES: &[&str] = &["doctor"];

/// A time without an offset is one of the local zone, to the second; what is neither a day nor a time is refused.
#[test]
fn times_without_an_offset_are_local() {
    let zone = TimeZone::fixed(jiff::tz::offset(-5));
    let bounds = |text: &str| parse("--since", text, Timestamp::UNIX_EPOCH, &zone).ok();
    let at = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond();
    let noon = at("2026-10-22T17:00:00Z");
    for text in ["2026-10-22T12:00:00", "2026-10-22 12:00", "2026-10-22T12:00:00-05:00", "2026-10-22T17:00:00Z"] {
        assert_eq!(bounds(text), Some((noon, noon + 1)), "{text}");
    }
    for text in ["2026-10-22", "20261022"] {
        assert_eq!(bounds(text), Some((at("2026-10-22T05:00:00Z"), at("2026-10-23T05:00:00Z"))), "{text}");
    }
    for text in ["2026-10-22T", "2026-10-22T25:00", "12:00", "2026-10-22 noon"] {
        assert_eq!(bounds(text), None, "{text}");
    }
    // Zones are known by name where the system has them.
    if std::path::Path::new("/usr/share/zoneinfo/America/New_York").exists() {
        assert!(TimeZone::get("America/New_York").is_ok());
    }
}

/// What days are remembered by is what the clocks of a zone show, whatever it is called.
#[test]
fn zones_are_told_apart_by_their_clocks() {
    let [tokyo, new_york, winter] =
        ["JST-9", "EST5EDT,M3.2.0,M11.1.0", "EST5"].map(|zone| TimeZone::posix(zone).unwrap());
    assert_eq!(offsets(&tokyo), offsets(&TimeZone::fixed(jiff::tz::offset(9))));
    assert_ne!(offsets(&tokyo), offsets(&new_york));
    assert_ne!(offsets(&new_york), offsets(&winter));
}

/// Where clocks are put forward at midnight a day begins at one o'clock, and ends at midnight all the same.
#[test]
fn a_day_ends_where_the_next_one_begins() {
    let zone = TimeZone::posix("EET-2EEST,M4.5.5/0,M10.5.4/24").unwrap();
    let bounds = |text: &str| parse("--since", text, Timestamp::UNIX_EPOCH, &zone).unwrap();
    let at = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond();
    assert_eq!(bounds("2026-04-24"), (at("2026-04-23T22:00:00Z"), at("2026-04-24T21:00:00Z")));
    assert_eq!(bounds("2026-04-25").0, bounds("2026-04-24").1);
    assert_eq!(bounds("2026-10-29"), (at("2026-10-28T21:00:00Z"), at("2026-10-29T22:00:00Z")));
}

fn home() -> (Home, String) {
    let home = Home::new();
    home.write(".claude/projects/-home-u-p/s1.jsonl", session("s1", 20));
    let telemetry = home.path("telemetry").to_str().unwrap().to_owned();
    assert_eq!(home.run(&["replay", "--emit-telemetry", &telemetry]).exit, Exit::Done);
    (home, telemetry)
}

fn leaves(command: &clap::Command, path: &[String], out: &mut Vec<(Vec<String>, bool)>) {
    let takes = command.get_arguments().any(|argument| argument.get_long() == Some("since"));
    out.push((path.to_vec(), takes));
    for below in command.get_subcommands() {
        leaves(below, &[path, &[below.get_name().to_owned()]].concat(), out);
    }
}

#[test]
fn every_command_that_takes_a_window_is_asked_about_an_empty_one() {
    let mut all = Vec::new();
    leaves(&Cli::command(), &[], &mut all);
    let taking: Vec<String> = all.into_iter().filter(|(_, takes)| *takes).map(|(path, _)| path.join(" ")).collect();
    assert!(taking.len() > 8, "{taking:?}");
    for path in taking {
        let asked = COMMANDS.iter().any(|command| command.join(" ").starts_with(&path));
        assert!(asked || EXAMINES.contains(&path.as_str()), "`{path}` takes a window: add it to COMMANDS");
    }
}

#[test]
fn an_empty_window_is_an_error_that_names_it_and_what_is_there() {
    let (home, telemetry) = home();
    for command in COMMANDS {
        let command: Vec<&str> =
            command.iter().map(|part| if *part == "TELEMETRY" { &telemetry } else { *part }).collect();
        let is_logs = !command.contains(&telemetry.as_str());
        for (since, until) in [("2020-01-01", "2020-01-02"), ("2099-01-01", "2099-01-02")] {
            for lake in [&[][..], &["--no-lake"]] {
                let asked = [&command[..], &["--since", since, "--until", until], lake].concat();
                let outcome = home.run(&asked);
                assert_eq!((outcome.exit, outcome.out.as_str()), (Exit::Failed, ""), "{asked:?}\n{}", outcome.err);
                assert!(outcome.err.contains(since), "{asked:?}: {}", outcome.err);
                // Files of telemetry that are older than the window are not opened.
                let unread = since == "2099-01-01" && !is_logs;
                let there = if unread { "older than the window" } else { "2026-10-30" };
                let told = outcome.err.contains(there) || unread && outcome.err.contains("outside the window");
                assert!(told, "{asked:?} does not say {there}: {}", outcome.err);
                assert!(outcome.err.contains("--allow-empty"), "{asked:?}: {}", outcome.err);
                let allowed = home.run(&[&asked[..], &["--allow-empty"]].concat());
                assert_eq!(allowed.exit, Exit::Done, "{asked:?}: {}", allowed.err);
            }
        }
    }
}

#[test]
fn more_days_than_there_are_and_a_window_without_ends_are_refused_in_plain_words() {
    let (home, _) = home();
    let days = home.run(&["cost", "--days", "4294967295"]);
    assert!(days.exit == Exit::Usage && days.err.contains("36500"), "{}", days.err);
    assert!(!days.err.contains("parameter"), "{}", days.err);
    let past = home.run(&["cost", "--days", "3", "--until", "2020-01-01"]);
    assert!(past.err.contains("--days 3 begins later than --until 2020-01-01\n  hint: name more days"), "{}", past.err);
    let compared = home.run(&["mine", "compare", "2026-02-01..2026-01-01", "30d.."]).err;
    assert!(compared.contains("is no window of time: 2026-02-01 is later than 2026-01-01"), "{compared}");
    for begin in [["--since", "7d"], ["--days", "7"]] {
        let nothing = home.run(&[&["cost", "--until", "7d"][..], &begin].concat()).err;
        assert!(nothing.contains("the window is empty") && !nothing.contains("later than"), "{nothing}");
    }
    let compared = home.run(&["mine", "compare", "3d..3d", "30d.."]).err;
    assert!(compared.contains("nothing lies between 3d and 3d: the window is empty"), "{compared}");
    let compared = home.run(&["mine", "compare", "..", "30d.."]);
    assert!(compared.exit == Exit::Usage && compared.err.contains("../ for the directory above"), "{}", compared.err);
}

#[test]
fn a_comparison_of_empty_windows_names_them() {
    let (home, _) = home();
    // A side of a comparison is called by its own name.
    let odd = home.run(&["mine", "compare", "foo..7d", "7d.."]);
    assert_eq!(odd.exit, Exit::Usage);
    assert!(odd.err.contains("foo..7d is no window of time: foo: not a time"), "{}", odd.err);
    assert!(!odd.err.contains("--since"), "{}", odd.err);
    let empty = ["mine", "compare", "2020-01-01..2020-01-02", "2020-02-01..2020-02-02"];
    let outcome = home.run(&empty);
    assert_eq!(outcome.exit, Exit::Failed);
    assert!(outcome.err.contains("2020-01-01") && outcome.err.contains("2026-10-30"), "{}", outcome.err);
    assert!(!outcome.err.contains("in common"), "{}", outcome.err);
    let is_its_own = outcome.err.contains("widen that side, or pass --allow-empty") && !outcome.err.contains("--since");
    assert!(is_its_own, "{}", outcome.err);
    assert_eq!(home.run(&[&empty[..], &["--allow-empty"]].concat()).exit, Exit::Done);
}
