//! What somebody who has read nothing stumbled over on the page and around it.

use serde_json::{Value, json};

use super::claude_settings::{Kind, home_of};
use super::harness::{Home, session};
use super::log_builder::{agent_progress, asks};
use super::report_page::{OPUS, Told, finding, home_with_large_contexts, home_with_swaps, place, report};
use crate::base::files::WriteStep;
use crate::base::files::faults::Fault;
use crate::report::envelope;
use crate::report::html::Html;
use crate::report::html::chart::{PlotLine, StackedColumns, columns, curve};
use crate::report::numbers::{dates, lasting, signed, usd};
use crate::shell::arguments::Exit;

#[test]
fn flags_of_the_page_need_no_word_before_them() {
    let home = home_with_swaps(12);
    home.run(&[]);
    for flags in [&["--json", "--reproducible"][..], &["--redact"], &["--days", "400"], &["--top", "1", "-q"]] {
        let (bare, named) = (home.run(flags), home.run(&[&["report"], flags].concat()));
        assert_eq!((bare.exit, &bare.out), (Exit::Done, &named.out), "{flags:?}: {}", bare.err);
    }
    let file = home.path("bare.html");
    assert_eq!(home.run(&["--html", file.to_str().unwrap()]).exit, Exit::Done);
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("<!DOCTYPE html>"));
    assert!(home.run(&["--help"]).out.contains("devboy --since 7d"), "the help of devboy says so");
    assert!(home.run(&["--version"]).out.starts_with("devboy "));
    assert_eq!(home.run(&["--no-such-flag"]).exit, Exit::Usage);
}

#[test]
fn a_page_for_a_browser_goes_to_stdout_or_where_a_file_can_be() {
    let home = home_with_swaps(12);
    let out = home.run(&["--html", "-"]).out;
    assert!(out.starts_with("<!DOCTYPE html>") && out.trim_end().ends_with("</html>"), "{out}");
    let both = home.run(&["report", "--json", "--html", "-"]);
    assert_eq!(both.exit, Exit::Usage, "{}", both.out);
    let directory = home.run(&["--html", home.path(".claude").to_str().unwrap()]);
    assert!(directory.err.contains("is a directory"), "{}", directory.err);
}

#[test]
fn a_directory_that_is_not_there_is_a_slip_and_nothing_is_read_for_it() {
    let home = home_with_swaps(2);
    let missing = home.path("no/such/page.html");
    let missing = missing.to_str().unwrap();
    for command in [
        &["report", "--html"][..],
        &["mine", "edges", "--html"],
        &["replay", "--html"],
        &["planner", "--write-selectivity"],
        &["what-if", "prompt-cache", "--per-request"],
    ] {
        let refused = home.run(&[command, &[missing]].concat());
        assert_eq!((refused.exit, refused.out.as_str()), (Exit::Failed, ""), "{command:?}: {}", refused.err);
        let told = "no/such\n  hint: make it, or name another file\n";
        assert!(refused.err.starts_with("devboy: writing ") && refused.err.ends_with(told), "{}", refused.err);
    }
    assert!(!home.path("no").exists());
    let drawn = home.run(&["mine", "edges", "--html", "-"]);
    assert_eq!(drawn.exit, Exit::Usage);
    assert!(drawn.err.starts_with("devboy: - stands for stdout"), "before anything else: {}", drawn.err);
}

#[test]
fn what_cannot_be_read_or_made_is_told_with_what_to_do() {
    let home = home_with_swaps(2);
    home.write(".claude/projects/p/a.jsonl", session("a", 12));
    let file = home.write("file", "text");
    let file = file.to_str().unwrap();
    for (command, told) in [
        (
            &["mine", "compare", "no.csv", "30d.."][..],
            "no.csv: No such file or directory (os error 2)\n  hint: name a file",
        ),
        (&["tune", "from-claude-logs", "--dry-run", "--team", "no.parquet"], "(os error 2)\n  hint: name a file"),
        (&["report", "--rules-dir", "no/such"], "--rules-dir no/such does not exist\n  hint: name a directory"),
        (&["report", "--rules-dir", file], "is a file, not a directory\n  hint: name a directory"),
        (&["replay", "--emit-telemetry", file], "file: is not a directory\n  hint: name a directory"),
    ] {
        let outcome = home.run(command);
        assert_eq!(outcome.exit, Exit::Failed, "{command:?}: {}", outcome.err);
        assert!(outcome.err.contains(told), "{command:?}: {}", outcome.err);
    }
    let lake = home.run(&["report", "--lake", file]);
    assert!(
        lake.err.contains("working without the lake: making ") && lake.err.contains(": is not a directory"),
        "{}",
        lake.err
    );
    let closed = home.path("closed.toml");
    let _fault = Fault::new(&closed, WriteStep::Open, 0, true, 13);
    let barred = home.run(&["replay", "--config", closed.to_str().unwrap()]);
    assert!(barred.err.contains("hint: you may not read it"), "{}", barred.err);
}

#[test]
fn a_file_that_cannot_be_written_is_called_by_its_own_name() {
    let home = home_with_swaps(2);
    let (page, page_path) = (home.write("out/page.html", "old"), home.path("out/page.html"));
    let page = page.to_str().unwrap();
    let _fault = Fault::new(&home.path("out"), WriteStep::Create, 0, true, 13);
    let refused = home.run(&["report", "--html", page]);
    assert_eq!(refused.exit, Exit::Failed);
    let told = format!("writing {page}: Permission denied (os error 13)\n  hint: no permission in that directory");
    assert!(refused.err.contains(&told) && refused.err.contains("was not touched"), "{}", refused.err);
    assert_eq!(std::fs::read_to_string(&page_path).unwrap(), "old");
    let new = home.run(&["report", "--html", home.path("out/new.html").to_str().unwrap()]);
    assert!(new.err.contains("out/new.html: Permission") && !new.err.contains("not touched"), "{}", new.err);
}

#[test]
fn who_has_no_logs_yet_is_told_how_to_get_some() {
    let outcome = Home::new().run(&["report"]);
    assert_eq!(outcome.exit, Exit::Failed);
    assert!(outcome.err.contains("hint: run Claude Code once, set CLAUDE_CONFIG_DIR, or give --input-dir DIR\n"));
    assert!(!outcome.err.contains("looked at"), "the places are told once: {}", outcome.err);
}

#[test]
fn no_rows_at_all_are_refused() {
    let home = home_with_swaps(2);
    let commands =
        ["report", "cost", "session", "what-if prompt-cache", "mine edges", "mine fields", "mine compare a b"];
    let of_rows = ["mine tools", "mine fingerprints", "mine sessions", "mine patterns", "mine projections"];
    let commands = commands.into_iter().chain(of_rows);
    for command in commands {
        let words = |more: &[&'static str]| command.split(' ').chain(more.iter().copied()).collect::<Vec<_>>();
        let outcome = home.run(&words(&["--top", "0"]));
        assert_eq!(outcome.exit, Exit::Usage, "{command}: {}", outcome.out);
        assert!(outcome.err.contains("--all shows everything"), "{command}: {}", outcome.err);
        assert_ne!(home.run(&words(&["--all"])).exit, Exit::Usage, "{command}");
    }
}

/// Twelve sessions that lose the cache at a prompt for no reason in the log, and six whose contexts grow.
#[test]
fn what_nobody_can_change_has_a_place_of_its_own() {
    let home = home_with_large_contexts(12);
    for number in 0..12 {
        let mut told = Told::new(&format!("lost-{number}"), "/home/user/orchard", number * 43_200);
        told.ask(OPUS, 0, 90_000, 50).ask(OPUS, 90_000, 1_000, 50).ask(OPUS, 0, 92_000, 50).ask(OPUS, 92_000, 500, 50);
        place(&home, &told);
    }
    let told = report(&home, &[]);
    assert!(told["findings"].as_array().unwrap().iter().all(|found| found["is_actionable"] == true), "{told:#}");
    let nothing = told["nothing_to_set"].as_array().unwrap();
    assert!(nothing.iter().any(|found| found["id"] == "miss_unknown_at_prompt"), "{told:#}");
    let out = home.run(&["--top", "1"]).out;
    let (before, behind) = out.split_once("Costs money, and no setting stops it").unwrap();
    assert!(before.contains("1. ") && !before.contains("for no reason in the log"), "{out}");
    assert!(behind.contains("for no reason in the log"), "{out}");
    assert!(behind.contains("\n  See: devboy report --finding miss_unknown_at_prompt\n"), "{out}");
    assert!(behind.contains(" (of as large a bill in other sessions like these at most ["), "{out}");
    assert!(!out.contains("prefix_mutation"), "{out}");
}

#[test]
fn every_form_of_the_page_says_how_many_findings_it_leaves_out() {
    let home = home_of(&Kind { turns: 45, result: 9_000, tool: "Fetch", hour: true, pause: 30, ..Kind::default() });
    for form in [&[][..], &["--format", "md"], &["--html", "-"]] {
        let out = home.run(&[&["--top", "1"], form].concat()).out;
        assert!(out.contains("Left out: 1 of 2 findings"), "{out}");
        assert!(out.contains(" (--all shows them)."), "{out}");
    }
}

/// Twelve sessions that lose the cache at one prompt; what is changed of each line of their logs.
fn losing(change: impl Fn(usize, &str) -> String) -> Value {
    report(&home_that_loses(change), &[])
}

fn home_that_loses(change: impl Fn(usize, &str) -> String) -> Home {
    let home = Home::new();
    for number in 0..12 {
        let mut told = Told::new(&format!("lost-{number}"), "/home/user/orchard", number * 43_200);
        told.ask(OPUS, 0, 90_000, 50).ask(OPUS, 90_000, 1_000, 50).ask(OPUS, 0, 92_000, 50).ask(OPUS, 92_000, 500, 50);
        told.text = told.text.lines().enumerate().map(|(line, text)| change(line, text) + "\n").collect();
        place(&home, &told);
    }
    home
}

/// Most models cache each effort apart: the log has the reason.
#[test]
fn a_miss_at_a_change_of_effort_is_a_habit() {
    let told = losing(|line, text| {
        let effort = if line < 4 { "high" } else { "medium" };
        text.replacen("\"version\"", &format!("\"effort\":\"{effort}\",\"version\""), 1)
    });
    let found = finding(&told, "miss_effort_change").unwrap_or_else(|| panic!("{told:#}"));
    assert!(found["count"] == 12 && found["is_actionable"] == true, "{found:#}");
    let nothing = told["nothing_to_set"].as_array().unwrap();
    assert!(nothing.iter().all(|found| found["id"] != "miss_unknown_at_prompt"), "{told:#}");
}

/// Who has the repairs is not told to update. Which clients are in use, all logs say, whatever part is asked about.
#[test]
fn clients_with_the_repairs_are_not_told_to_update() {
    let advice = |told: &Value| {
        let nothing = told["nothing_to_set"].as_array().unwrap();
        let found = nothing.iter().find(|found| found["id"] == "miss_unknown_at_prompt");
        found.unwrap_or_else(|| panic!("{told:#}"))["advice"].as_str().unwrap().to_owned()
    };
    let of_version = |version: &str| home_that_loses(|_, text| text.replace("2.1.40", version));
    let old = advice(&report(&of_version("2.1.240"), &[]));
    assert!(old.contains("update Claude Code"), "{old}");
    let home = of_version("2.1.999");
    let new = advice(&report(&home, &[]));
    assert!(new.contains("have the repairs"), "{new}");
    let mut other = Told::new("other", "/home/user/meadow", 11 * 43_200);
    place(&home, other.ask(OPUS, 0, 1_000, 50));
    let part = advice(&report(&home, &["--project", "orchard"]));
    assert!(part.contains("update Claude Code"), "{part}");
}

#[test]
fn what_does_not_pay_has_its_interval() {
    let told = report(&home_with_swaps(12), &[]);
    let losers = told["not_worth"].as_array().unwrap();
    assert!(!losers.is_empty(), "{told:#}");
    for loser in losers {
        let [lower, change, upper] = ["lower", "change", "upper"].map(|field| loser[field].as_f64().unwrap());
        assert!(0.0 < lower && lower <= change && change <= upper, "{loser}");
        assert!(loser["sessions"].as_u64().unwrap() >= 5, "{loser}");
    }
    let out = home_with_swaps(12).run(&[]).out;
    assert!(out.contains(" … "), "{out}");
    // The first line has the number of all sessions; only how far their intervals hold names it again.
    assert_eq!(out.matches("over 12 sessions").count(), 1, "{out}");
}

#[test]
fn a_finding_that_is_not_there_is_refused_with_those_that_are() {
    let outcome = home_with_swaps(12).run(&["--finding", "nonsense"]);
    assert_eq!(outcome.exit, Exit::Usage);
    assert!(outcome.err.contains("miss_model_swap"), "{}", outcome.err);
    assert!(outcome.err.contains("others that there are") && outcome.err.contains("unused_servers"), "{}", outcome.err);
}

#[test]
fn a_finding_that_these_logs_do_not_have_is_told_and_no_mistake() {
    let home = home_with_swaps(12);
    for id in ["unused_servers", "miss_resume", "context_growth"] {
        let report = home.json(&["report", "--finding", id]);
        assert_eq!((&report["finding"], &report["looks"]), (&json!(null), &json!([])), "{id}");
        let outcome = home.run(&["--finding", id]);
        assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
        assert!(outcome.out.starts_with(&format!("{id} is no finding of these logs")), "{}", outcome.out);
    }
    // The columns are those of a finding that is there.
    let head = |id: &str| {
        let csv = home.run(&["report", "--finding", id, "--format", "csv"]).out;
        csv.lines().next().map(str::to_owned)
    };
    assert_eq!(head("unused_servers"), head("miss_model_swap"));
}

#[test]
fn evidence_that_is_shared_names_nobody() {
    let home = home_with_swaps(12);
    for form in [&["--redact"][..], &["--redact", "--json"], &["--format", "md"]] {
        let outcome = home.run(&[&["--finding", "miss_model_swap"], form].concat());
        assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
        assert!(!outcome.out.contains("lantern") && !outcome.out.contains("/home/"), "{}", outcome.out);
        assert!(outcome.out.contains("project A"), "{}", outcome.out);
    }
    let own = home.run(&["--finding", "miss_model_swap"]).out;
    assert!(own.contains("…/lantern"), "{own}");
    // Half of the sessions are of a project that changes no model.
    let orchard = own.lines().find(|line| line.contains("…/orchard")).unwrap();
    assert!(orchard.ends_with("no effect"), "{own}");
}

#[test]
fn evidence_for_programs_is_plain_numbers_in_the_words_of_json() {
    let home = home_with_swaps(12);
    let asked = ["report", "--finding", "miss_model_swap"];
    let csv = home.run(&[&asked[..], &["--format", "csv"]].concat()).out;
    let mut lines = csv.lines();
    let columns = "by,name,sessions,count,before_usd,saved_usd,lower_usd,upper_usd,verdict";
    assert_eq!(lines.next(), Some(columns));
    let looks = home.json(&asked)["looks"].clone();
    let looks = looks.as_array().unwrap();
    assert_eq!(lines.clone().count(), looks.len(), "{csv}");
    for (line, look) in lines.zip(looks) {
        let cells: Vec<&str> = line.split(',').collect();
        let text = |field: &str| look[field].as_str().unwrap();
        assert_eq!((cells[0], cells[1], cells[8]), (text("by"), text("name"), text("verdict")), "{line}");
        let numbers = [&look["sessions"], &look["count"], &look["before_usd"], &look["saved_usd"]];
        let ends = [&look["interval_usd"][0], &look["interval_usd"][1]];
        for (cell, number) in cells[2..8].iter().zip(numbers.into_iter().chain(ends)) {
            assert_eq!(cell.parse::<f64>().ok(), number.as_f64(), "{line}");
        }
        assert!(["cheaper", "more expensive", "no clear winner"].contains(&cells[8]), "{line}");
    }
}

/// The note about subagents of progress records counts those that the figures are about.
#[test]
fn the_note_about_progress_records_is_about_what_is_shown() {
    let home = Home::new();
    for (session, day, agents) in [("old", "2026-01-02", 2), ("new", "2026-03-20", 1)] {
        let mut told = Told::new(session, "/home/user/lantern", 0);
        told.ask(OPUS, 0, 9_000, 100).ask(OPUS, 9_000, 500, 100);
        for agent in 0..agents {
            let inner = asks(&format!("m-{session}-{agent}"), &format!("c-{session}-{agent}"), "Grep");
            told.text += &agent_progress(&format!("{session}-{agent}"), &inner).session(session).line();
        }
        let text = told.text.replace("2026-01-02", day);
        home.write(&format!(".claude/projects/-home-user-lantern/{session}.jsonl"), text);
    }
    let count = |words: &[&str]| home.json(words)["inputs"]["subagents_in_progress_only"]["count"].clone();
    assert_eq!(count(&["report", "--since", "2026-01-01"]), 3);
    assert_eq!(count(&["report"]), 1, "the page is about its last days");
    assert_eq!((count(&["session", "old"]), count(&["session", "new"])), (json!(2), json!(1)));
}

#[test]
fn an_axis_ends_where_the_data_end() {
    let mut html = Html::new();
    let (names, parts) = (["a".to_owned(), "b".to_owned()], ["x".to_owned()]);
    let values = [vec![50.0], vec![200.0]];
    columns(&mut html, "plot", &StackedColumns { names: &names, parts: &parts, values: &values, write: usd });
    let page = html.page("");
    assert!(page.contains(">$200.00</span>"), "{page}");
    assert!(page.contains("y=\"0\"") && page.contains("height=\"300\""), "the largest takes all of it: {page}");
    let mut html = Html::new();
    let line = PlotLine { name: "c".to_owned(), points: vec![(0.0, 0.0), (1.0, 80.0)], marks: Vec::new() };
    curve(&mut html, "plot", &line, None, usd);
    let page = html.page("");
    assert!(page.contains(">$80.00</span>") && page.contains("L1000 0"), "{page}");
}

#[test]
fn projects_of_a_replay_have_their_names_and_shared_ones_letters() {
    let home = home_with_large_contexts(6);
    for number in 0..6 {
        let mut told = Told::new(&format!("small-{number}"), "/home/user/orchard", number * 43_200);
        (0..4).for_each(|turn| _ = told.ask(OPUS, if turn == 0 { 0 } else { 20_000 }, 20_000, 50));
        place(&home, &told);
    }
    let words = ["what-if", "compaction", "--set", "window=100000", "--explain"];
    let open = home.run(&words).out;
    assert!(open.contains("…/lantern"), "{open}");
    for flags in [&["--redact"][..], &["--format", "md"]] {
        let shared = home.run(&[&words[..], flags].concat()).out;
        assert!(shared.contains("project ") && !shared.contains("lantern"), "{shared}");
    }
    let sessions = home.run(&["what-if", "compaction", "--set", "window=100000", "--per-session"]).out;
    assert!(sessions.contains("large-0"), "{sessions}");
}

#[test]
fn a_setting_that_makes_no_sense_is_refused_before_anything_is_read() {
    let home = Home::new();
    for (policy, set) in [
        ("compaction", "windw=5"),
        ("compaction", "window=wide"),
        ("prompt-cache", "ttl=9q"),
        ("history-trim", "fidelity=odd"),
    ] {
        let outcome = home.run(&["what-if", policy, "--set", set]);
        assert!(!outcome.err.contains("no Claude Code logs"), "{set}: {}", outcome.err);
        assert!(outcome.err.contains(set.split('=').next().unwrap()), "{set}: {}", outcome.err);
    }
}

#[test]
fn a_replay_fits_on_a_screen_unless_more_is_asked_for() {
    let home = home_with_large_contexts(6);
    for policy in ["all", "prompt-cache", "compaction", "history-trim"] {
        let (short, long) = (home.run(&["what-if", policy]).out, home.run(&["what-if", policy, "--all"]).out);
        assert!(short.lines().count() <= 45, "{policy}: {} lines\n{short}", short.lines().count());
        assert!(short.contains("--all") && long.lines().count() > short.lines().count(), "{policy}: {short}");
        assert!(!long.contains("prefix_mutation"), "{long}");
    }
}

#[test]
fn another_cache_moves_no_log_off_its_bill() {
    let home = home_with_large_contexts(6);
    let told = |words: &[&str]| home.json(&[&["what-if"], words].concat())["policies"][0].clone();
    let compaction = ["compaction", "--set", "window=100000"];
    let without = [&compaction[..], &["--set", "prompt-cache.layout=none"]].concat();
    assert_eq!(told(&compaction)["baseline_vs_bill"], told(&without)["baseline_vs_bill"]);
    let out = home.run(&[&["what-if"], &without[..]].concat()).out;
    assert!(out.contains(" than the log under the same cache (layout="), "{out}");
    // What a stack comes to, less what each comes to by itself over the log as it was.
    let iet = |report: &Value| report["delta"]["iet"].as_f64().unwrap();
    let hour = told(&["prompt-cache", "--ttl", "1h"]);
    let words = ["prompt-cache+compaction", "--set", "prompt-cache.ttl=1h", "--set", "compaction.window=100000"];
    let stack = told(&words);
    let apart = iet(&told(&compaction)) + iet(&hour);
    assert!(iet(&hour) != 0.0 && (stack["interaction_iet"].as_f64().unwrap() - (iet(&stack) - apart)).abs() < 1.0);
}

#[test]
fn commands_that_the_page_names_see_the_same_logs() {
    let home = home_with_swaps(12);
    let page = home.run(&["report", "--no-lake"]).out;
    let named: Vec<&str> = page.lines().filter(|line| line.trim_start().starts_with("See: ")).collect();
    assert!(!named.is_empty() && named.iter().all(|line| line.contains("--no-lake")), "{page}");
}

#[test]
fn an_empty_home_gets_hints_and_no_lake() {
    let home = Home::new();
    for command in [&[][..], &["cost"], &["doctor"], &["tune", "--dry-run"], &["share", "--show", "--plain-names"]] {
        home.run(command);
        assert!(!home.lake().exists(), "{command:?} makes a lake of nothing");
    }
    let said = |words: &[&str]| home.run(words).err;
    let tune = home.run(&["tune", "--dry-run"]);
    let tune = tune.out + &tune.err;
    assert!(tune.contains("devboy tune from-claude-logs") && tune.contains("devboy doctor"), "{tune}");
    assert!(Home::of_team(None).run(&["share", "--show"]).err.contains("--plain-names"));
    let pool = said(&["pool", home.path("nowhere").to_str().unwrap()]);
    assert!(pool.contains("there is no directory") && pool.contains("devboy share --to DIR"), "{pool}");
    assert!(said(&["share", "--show", "--plain-names"]).contains("--input-dir"));
}

#[test]
fn money_has_two_decimals_or_is_less_than_a_cent() {
    let told = [0.0, 0.000_001, 0.004, 0.005, 0.42, 1_234.5, -3.0, -0.004].map(usd);
    assert_eq!(told, ["$0.00", "<$0.01", "<$0.01", "$0.01", "$0.42", "$1,234.50", "−$3.00", "−<$0.01"]);
    let home = home_with_swaps(2);
    for command in [&["cost"][..], &["session"], &["report"]] {
        let out = home.run(command).out;
        let long = out.split('$').skip(1).filter(|rest| {
            let number: String = rest.chars().take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ',')).collect();
            number.split('.').nth(1).is_some_and(|cents| cents.trim_end_matches(',').len() > 2)
        });
        assert_eq!(long.count(), 0, "{out}");
    }
}

#[test]
fn a_place_that_somebody_named_and_is_not_there_is_told_of() {
    let home = Home::new();
    home.write(".claude/projects/-p/one.jsonl", session("one", 6));
    let (logs, gone) = (home.logs().display().to_string(), home.path("gone").display().to_string());
    let note = format!("# note: {gone} (--input-dir) does not exist\n");
    let commands: [&[&str]; 9] = [
        &["report"],
        &["cost"],
        &["session"],
        &["ingest"],
        &["replay"],
        &["what-if", "compaction"],
        &["mine", "tools"],
        &["mine", "fingerprints"],
        &["tune", "from-claude-logs", "--dry-run"],
    ];
    for command in commands {
        let said = home.run(&[command, &["--input-dir", &logs, "--input-dir", &gone]].concat());
        assert_eq!((said.exit, said.err.matches(&note).count()), (Exit::Done, 1), "{command:?}: {}", said.err);
        let quiet = home.run(&[command, &["--input-dir", &logs, "--input-dir", &gone, "-q"]].concat());
        assert!(!quiet.err.contains(&gone), "{}", quiet.err);
        // Of the places that devboy tries by itself only one is there.
        let own = home.run(command).err;
        assert!(!own.contains("projects (default) does not exist"), "{own}");
    }
    let found = home.json(&["cost", "--input-dir", &logs, "--input-dir", &gone])["inputs"].clone();
    assert_eq!(
        (&found["roots"][1]["found"], found["notes"].as_array().unwrap().len()),
        (&json!(false), 1),
        "{found:#}"
    );
    home.variables.lock().unwrap().push(format!("CLAUDE_CONFIG_DIR={},{gone}", home.path(".claude").display()));
    let said = home.run(&["cost"]);
    assert!(said.err.contains(&format!("# note: {gone}/projects (CLAUDE_CONFIG_DIR) does not exist")), "{}", said.err);
}

#[test]
fn days_are_counted_back_from_now() {
    let home = Home::new();
    assert!(home.run(&["cost", "--help"]).out.contains("last N days, counted back from this moment"));
    home.write(".claude/projects/-p/one.jsonl", session("one", 6));
    assert_eq!(home.json(&["cost", "--days", "2"])["window"]["since"], "2026-10-30T00:00:00Z");
}

/// A minus before nothing is noise, in words and for programs; one day is written once.
#[test]
fn what_is_nothing_has_no_sign() {
    let mut out = Vec::new();
    envelope::write(&mut out, "x", None, json!({ "usd": -0.0, "ends": [[-0.0, -0.5]], "count": 0 })).unwrap();
    let read: Value = serde_json::from_slice(&out).unwrap();
    let signs = [&read["usd"], &read["ends"][0][0], &read["ends"][0][1]]
        .map(|value| value.as_f64().unwrap().is_sign_negative());
    assert_eq!((signs, read["count"].is_u64()), ([false, false, true], true), "{read:#}");
    assert_eq!([-0.0, -0.04, -0.06, 0.06].map(|value| signed(value, 1)), ["0.0", "0.0", "−0.1", "+0.1"]);
    assert_eq!(dates("2026-01-02", "2026-01-02"), "2026-01-02");
    assert_eq!(dates("2026-01-02", "2026-01-03"), "2026-01-02 … 2026-01-03");
}

#[test]
fn a_flag_of_another_command_is_told_where_it_belongs() {
    let home = home_with_swaps(1);
    for (arguments, tip) in [
        (&["--by", "tool"][..], "tip: --by is a flag of `devboy cost`"),
        (&["replay", "--per-session"], "tip: such flags are those of `devboy what-if POLICY`"),
        (&["replay", "--arm", "mined"], "tip: such flags are those of `devboy planner`"),
    ] {
        let refused = home.run(arguments);
        assert!(refused.exit == Exit::Usage && refused.err.contains(tip), "{arguments:?}: {}", refused.err);
    }
    for arguments in [&["replay", "--no-such-flag"][..], &["replay", "since"]] {
        assert!(!home.run(arguments).err.contains("is a flag of"), "{arguments:?}");
    }
}

#[test]
fn events_and_logs_are_told_apart() {
    let home = home_with_swaps(1);
    home.write(".claude/projects/-home-user-lantern/calls.jsonl", session("calls", 6));
    for command in ["replay", "planner"] {
        let refused = home.run(&[command, "--emit-telemetry", home.path(".claude/projects/new").to_str().unwrap()]);
        assert!(refused.exit == Exit::Usage && refused.err.contains("logs are read from there"), "{}", refused.err);
    }
    assert!(!home.path(".claude/projects/new").exists());
    let events = home.path("events");
    let events = events.to_str().unwrap();
    assert_eq!(home.run(&["replay", "--emit-telemetry", events]).exit, Exit::Done);
    let mistaken = home.run(&["mine", "tools", "--input-dir", events]);
    assert!(mistaken.exit == Exit::Failed && mistaken.err.contains("events of the pipeline"), "{}", mistaken.err);
}

/// What `--output` ends with is the form, unless one was asked for; a project has one pseudonym everywhere.
#[test]
fn rows_are_written_as_the_name_of_their_file_says() {
    let home = Home::new();
    home.write(".claude/projects/-home-user-lantern/calls.jsonl", session("many-calls", 6));
    let written = |name: &str, more: &[&str]| {
        let file = home.path(name);
        let done = home.run(&[&["mine", "sessions", "--output", file.to_str().unwrap()], more].concat());
        assert_eq!(done.exit, Exit::Done, "{}", done.err);
        std::fs::read_to_string(file).unwrap()
    };
    let csv = written("rows.csv", &[]);
    assert!(csv.starts_with("session,project,"), "{csv}");
    assert_eq!(serde_json::from_str::<Value>(&written("rows.json", &[])).unwrap()["command"], "mine sessions");
    assert!(!written("other.csv", &["--format", "table"]).contains(','));
    let project = csv.lines().nth(1).unwrap().split(',').nth(1).unwrap();
    assert!(home.run(&["replay", "--explain", "--format", "md"]).out.contains(&format!("| {project} |")), "{project}");
    let named = written("named.csv", &["--names"]);
    assert!(!named.contains("project-") && named.lines().nth(1).unwrap().starts_with("many-calls,"), "{named}");
    let published = home.path("published.json");
    let done = home.run(&["mine", "tools", "--layout", "published", "--output", published.to_str().unwrap()]);
    assert_eq!(done.exit, Exit::Done, "{}", done.err);
}

/// A month is reckoned from the days that were asked about, and the page says how many these are.
#[test]
fn days_without_a_request_are_counted_and_told() {
    let home = home_with_swaps(12);
    for day in ["2026-03-03", "2026-03-05"] {
        let mut told = Told::new(day, "/home/user/lantern", 0);
        told.ask(OPUS, 0, 40_000, 500);
        home.write(&format!(".claude/projects/-home-user-lantern/{day}.jsonl"), told.text.replace("2026-01-02", day));
    }
    for (since, told) in [
        ("2026-02-20", "Spent 2026-03-03 … 2026-03-05 (3 days, of 14 looked at): "),
        ("2026-03-04", "Spent on 2026-03-05 (1 day, of 2 looked at): "),
        ("2026-03-03", "Spent 2026-03-03 … 2026-03-05 (3 days): "),
    ] {
        let out = home.run(&["--since", since]).out;
        assert!(out.starts_with(told), "{told}: {out}");
    }
}

/// Two units, the smaller one rounded; nothing is cut off.
#[test]
fn how_long_something_lasted_is_told_in_two_units() {
    let (second, minute, hour) = (1_000, 60_000, 3_600_000);
    for (ms, told) in [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_500, "2 s"),
        (59_499, "59 s"),
        (59_500, "1 min"),
        (20 * minute + 29 * second, "20 min 29 s"),
        (hour - 500, "1 h"),
        (hour + 50 * minute, "1 h 50 min"),
        (hour + 59 * minute + 30 * second, "2 h"),
        (47 * hour, "47 h"),
        (48 * hour, "2 d"),
        (75 * hour, "3 d 3 h"),
        (-90 * second, "−1 min 30 s"),
    ] {
        assert_eq!(lasting(ms), told, "{ms} ms");
    }
}

#[test]
fn two_flags_that_do_not_go_together_say_which_to_leave_out() {
    let outcome = Home::new().run(&["report", "--finding", "x", "--explain"]);
    let tip = "tip: --finding says by itself what its figures stand on: leave --explain out";
    assert!(outcome.exit == Exit::Usage && outcome.err.contains(tip), "{}", outcome.err);
    let outcome = Home::new().run(&["report", "--explain", "--finding", "x"]);
    assert!(outcome.exit == Exit::Usage && outcome.err.contains(tip), "{}", outcome.err);
    assert!(!Home::new().run(&["report", "--all", "--top", "3"]).err.contains("tip: --finding"));
}
