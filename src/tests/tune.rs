//! `devboy tune` from the outside: what it writes, what it keeps, how it ends.

use serde_json::json;

use super::fleet::log;
use super::harness::{CallLines, ClosedPipe, Home, session};
use crate::base::data::Data;
use crate::base::files::WriteStep;
use crate::base::files::faults::Fault;
use crate::settings::annotations::Annotations;
use crate::shell::arguments::Exit;

const TUNE: [&str; 3] = ["tune", "from-claude-logs", "--tools"];

/// A session in which a Grep finds a file, which is read `read` times of ten; another one is read else.
pub fn searching(name: &str, turns: usize, read: usize) -> String {
    let call = |number: usize, tool: &str, input: &str, body: &str| {
        // Three seconds from call to call: what is called ahead is there in time.
        CallLines { session: name, number: 3 * number, tool, input, body, model: "claude-opus-4-6" }.text()
    };
    let turn = |turn: usize| {
        let found = format!("/secretpath/{name}_{turn:02}.rs");
        let wanted = if turn % 10 < read { found.clone() } else { format!("/secretpath/{name}_{turn:02}_other.rs") };
        call(2 * turn, "Grep", "x", &format!("{found}:3:secretbody"))
            + &call(2 * turn + 1, "Read", &wanted, "secretbody of some length")
    };
    (0..turns).map(turn).collect()
}

/// Twenty sessions in which a Grep finds a file that is read next, so often in ten times.
fn home_that_reads(read: usize) -> Home {
    let home = Home::new();
    for number in 0..20 {
        let name = format!("s{number:02}");
        home.write(&format!(".claude/projects/-home-u-p/{name}.jsonl"), searching(&name, 10, read));
    }
    home
}

/// Twenty sessions in which a Grep is always followed by a Read of what it found.
fn busy_home() -> Home {
    home_that_reads(10)
}

fn mcp_session(home: &Home, name: &str, tool: &str, body: &str, calls: usize) {
    mcp_calls(home, name, &[(tool, body, calls)]);
}

/// A session with calls of several tools, one tool after the other.
fn mcp_calls(home: &Home, name: &str, tools: &[(&str, &str, usize)]) {
    let all = tools.iter().flat_map(|(tool, body, calls)| std::iter::repeat_n((*tool, *body), *calls));
    let call = |(number, (tool, body))| {
        CallLines { session: name, number, tool, input: "x", body, model: "claude-opus-4-6" }.text()
    };
    let text: String = all.enumerate().map(call).collect();
    home.write(&format!(".claude/projects/-home-u-p/{name}.jsonl"), text);
}

const TABLE: &str = "| a | b |\n|---|---|\n| 1 | 2 |\n";

fn with(args: &[&'static str]) -> Vec<&'static str> {
    [&TUNE[..], args].concat()
}

#[test]
fn a_run_writes_the_configuration_and_a_second_run_proposes_nothing() {
    let home = busy_home();
    let first = home.run(&TUNE);
    assert_eq!(first.exit, Exit::Done, "{}", first.err);
    let text = std::fs::read_to_string(home.config()).unwrap();
    assert!(text.contains("[tools.Grep]") && text.contains("active = \"claude-opus-4.6\""), "{text}");
    let second = home.run(&TUNE);
    assert_eq!((second.exit, second.out.lines().count()), (Exit::Done, 1), "{}", second.out);
    assert_eq!(std::fs::read_to_string(home.config()).unwrap(), text);
    assert!(second.out.starts_with("Nothing to change in "), "{}", second.out);
}

#[test]
fn the_diff_applied_to_the_old_file_gives_the_new_one() {
    let home = busy_home();
    let old = "# mine\nschema_version = 4\n\n[dedup]\nlru_size = 7 # seven\n";
    home.write(".config/devboy/pipeline_config.toml", old);
    let outcome = home.run(&TUNE);
    let new = std::fs::read_to_string(home.config()).unwrap();
    let added: Vec<&str> = outcome.out.lines().take_while(|line| !line.starts_with("# why")).collect();
    let kept = added.iter().filter_map(|line| line.strip_prefix('+')).filter(|line| !line.starts_with("++"));
    for line in kept {
        assert!(new.lines().any(|there| there == line), "{line}");
    }
    assert!(new.starts_with(old), "nothing of a person's file is touched");
    assert_eq!(std::fs::read_to_string(home.path(".config/devboy/pipeline_config.toml.bak")).unwrap(), old);
}

/// The variable by which hosts find their configuration names another file.
#[test]
fn a_configuration_that_hosts_do_not_read_is_told_of() {
    let home = busy_home();
    let other = home.path("host.toml").to_str().unwrap().to_owned();
    home.variables.lock().unwrap().push(format!("DEVBOY_PIPELINE_CONFIG={other}"));
    let told = format!("# note: hosts read {other} (DEVBOY_PIPELINE_CONFIG), not this file");
    let err = home.run(&with(&["--dry-run"])).err;
    assert!(err.contains(&told), "{err}");
    for same in [other.clone(), other.replace("/host.toml", "/.claude/../host.toml")] {
        let err = home.run(&[&TUNE[..], &["--dry-run", "--output", &same]].concat()).err;
        assert!(!err.contains("# note: hosts read "), "{err}");
    }
}

#[test]
fn dry_run_and_check_write_no_configuration() {
    let home = busy_home();
    let dry = home.run(&with(&["--dry-run"]));
    assert_eq!(dry.exit, Exit::Done);
    assert!(dry.out.contains("+[tools.Grep]"));
    let check = home.run(&with(&["--check"]));
    assert_eq!(check.exit, Exit::Pending);
    assert!(!home.config().exists());
    home.run(&TUNE);
    assert_eq!(home.run(&with(&["--check"])).exit, Exit::Done);
}

#[test]
fn a_follow_up_is_a_bound_for_as_many_later_steps_and_only_a_call_that_can_be_made_is_one() {
    let home = busy_home();
    home.run(&TUNE);
    let text = std::fs::read_to_string(home.config()).unwrap();
    let tree: toml_edit::DocumentMut = text.parse().unwrap();
    // 200 of 200 steps with Grep are followed by Read: lower bound n / (n + z²) of the 100 that 200 and as many later ones are
    // worth, at t = 2.63 with 19 degrees of freedom, a third of 2.5 % for each of three lags.
    let link = &tree["tools"]["Grep"]["follow_up"].as_array_of_tables().unwrap().get(0).unwrap().clone();
    assert_eq!(link["tool"].as_str(), Some("Read"));
    let probability = link["probability"].as_float().unwrap();
    assert!((probability - 100.0 / (100.0 + 2.63 * 2.63)).abs() < 0.01, "{probability}");
    assert_eq!(link["projection_arg"].as_str(), Some("file_path"));
    // 180 of 200 Reads are followed by Grep, but a Read supplies no pattern: the shipped links stay, and name none.
    let links = tree["tools"]["Read"]["follow_up"].as_array_of_tables().unwrap();
    assert!(links.iter().all(|link| link["probability"].as_float() < Some(0.5)), "{text}");
    assert_eq!(tree["tools"]["Grep"]["cost_model"]["typical_kb"].as_float(), Some(0.0332));
    assert_eq!(tree["tools"]["Grep"]["cost_model"]["latency_ms_p50"].as_integer(), Some(500));
}

#[test]
fn a_size_that_does_not_hold_leaves_the_shipped_one_in_the_block() {
    let home = Home::new();
    for number in 0..30 {
        // Twenty days with long files, and five weeks with shorter ones.
        let (size, day) = if number < 20 { (2_000, number) } else { (200, 20 + 4 * (number - 20)) };
        let text = searching(&format!("s{number:02}"), 4, 10).replace("secretbody of some length", &"x".repeat(size));
        let text = text.replace("2026-10-30", &format!("2026-{:02}-{:02}", 9 + day / 30, 1 + day % 30));
        home.write(&format!(".claude/projects/-home-u-p/s{number:02}.jsonl"), text);
    }
    let outcome = home.run(&with(&["--explain"]));
    assert!(outcome.out.contains("T1 hold Read: typical sizes do not hold on later sessions"), "{}", outcome.out);
    let tree: toml_edit::DocumentMut = std::fs::read_to_string(home.config()).unwrap().parse().unwrap();
    for tool in ["Grep", "Read"] {
        let costs = Annotations::load(&Data::default()).unwrap().of(tool).unwrap().model.cost_model;
        assert_eq!(tree["tools"][tool]["cost_model"]["typical_kb"].as_float(), Some(costs.typical_kb), "{tree}");
    }
    assert_eq!(home.run(&with(&["--check"])).exit, Exit::Done);
}

#[test]
fn the_block_for_all_others_speaks_for_a_tool_without_one() {
    let home = Home::new();
    home.write(".config/devboy/pipeline_config.toml", "schema_version = 4\n\n[tools.\"*\"]\nspeculate = false\n");
    mcp_session(&home, "a", "mcp__alpha__list", "x", 30);
    let outcome = home.run(&with(&["--dry-run", "--explain"]));
    assert!(outcome.out.contains("T1 hold mcp__alpha__list: `tools.\"*\"` speaks for it"), "{}", outcome.out);
}

#[test]
fn what_a_person_wrote_is_kept_and_a_pin_is_never_touched() {
    let home = busy_home();
    let old = "schema_version = 4\n\n[profiles.llm]\nactive = \"auto\" # pin\n\n[tools.Grep]\nvalue_class = \"optional\"\n\n[tools.Read] # pin\nside_effect_class = \"read_only\"\n";
    home.write(".config/devboy/pipeline_config.toml", old);
    let outcome = home.run(&with(&["--explain"]));
    let text = std::fs::read_to_string(home.config()).unwrap();
    let tree: toml_edit::DocumentMut = text.parse().unwrap();
    assert_eq!(tree["profiles"]["llm"]["active"].as_str(), Some("auto"));
    assert!(tree["profiles"]["llm"].get("variants").is_none(), "no variant that nobody may use");
    assert_eq!(tree["tools"]["Grep"]["value_class"].as_str(), Some("optional"));
    assert!(tree["tools"]["Grep"].get("cost_model").is_some(), "what is missing is added");
    assert_eq!(tree["tools"]["Read"].as_table().unwrap().len(), 1);
    assert!(outcome.out.contains("T1 hold Read"), "{}", outcome.out);
    assert!(tree["tools"]["Grep"].get("side_effect_class").is_none(), "what is shipped fills no block of a person's");
}

#[test]
fn a_broken_configuration_is_named_with_its_line_and_nothing_is_written() {
    for (text, told) in [
        ("schema_version = 4\n[dedup\nlru_size = 5\n", "pipeline_config.toml:2"),
        ("schema_version = 5\n", "1 to 4"),
        ("schema_version = 4\n[dedup]\nlru_size = \"five\"\n", "pipeline_config.toml:3"),
    ] {
        let home = busy_home();
        home.write(".config/devboy/pipeline_config.toml", text);
        let outcome = home.run(&TUNE);
        assert_eq!(outcome.exit, Exit::Failed);
        assert!(outcome.err.replace('–', " to ").contains(told), "{}", outcome.err);
        assert_eq!(std::fs::read_to_string(home.config()).unwrap(), text);
    }
}

#[test]
fn an_empty_home_fails_and_lists_the_places_looked_at() {
    let home = Home::new();
    let outcome = home.run(&TUNE);
    assert_eq!(outcome.exit, Exit::Failed);
    assert!(outcome.err.contains(".claude/projects") && outcome.err.contains(".config/claude/projects"));
    assert!(!home.config().exists());
}

#[test]
fn files_without_any_record_are_no_success() {
    let home = Home::new();
    home.write(".claude/projects/p/a.jsonl", "not json\n");
    for command in [&["ingest"][..], &TUNE] {
        let outcome = home.run(command);
        assert_eq!(outcome.exit, Exit::Failed);
        assert!(outcome.err.contains("no session record"), "{}", outcome.err);
    }
    assert_eq!(home.run(&["ingest", "--allow-empty"]).exit, Exit::Done);
}

#[test]
fn a_window_cuts_calls_and_an_empty_one_fails() {
    let home = busy_home();
    // All calls are of 2026-10-30; now is 2026-11-01.
    let outcome = home.run(&with(&["--days", "1", "--dry-run"]));
    assert_eq!(outcome.exit, Exit::Failed);
    assert!(outcome.err.contains("in the window"), "{}", outcome.err);
    let whole = home.run(&with(&["--since", "7d", "--dry-run"]));
    assert!(whole.err.contains("400 calls"), "{}", whole.err);
    let cut = home.run(&with(&["--until", "2026-10-30T00:00:27.000Z", "--dry-run"]));
    assert!(cut.err.contains("200 calls"), "{}", cut.err);
}

#[test]
fn a_mistyped_flag_ends_with_2_and_a_suggestion() {
    let outcome = busy_home().run(&["tune", "from-claude-logs", "--dry-rum"]);
    assert_eq!(outcome.exit, Exit::Usage);
    assert!(outcome.err.contains("--dry-run"), "{}", outcome.err);
    assert!(outcome.out.is_empty());
}

#[test]
fn equal_verbs_of_two_servers_are_told_apart() {
    let home = Home::new();
    mcp_session(&home, "a", "mcp__alpha__list", "x", 2);
    mcp_session(&home, "b", "mcp__beta__list", "x", 2);
    // Neither has a format, so that both are names alone.
    let told = home.run(&["tune", "from-claude-logs", "--dry-run", "--explain"]).out;
    assert!(
        told.contains("P3 skip mcp__alpha__list: too few") && told.contains("P3 skip mcp__beta__list: too few"),
        "{told}"
    );
}

#[test]
fn a_profile_without_a_format_is_a_name_and_no_change() {
    let home = Home::new();
    mcp_session(&home, "a", "mcp__alpha__list", "x", 30);
    let outcome = home.run(&["tune", "from-claude-logs", "--explain"]);
    assert_eq!(outcome.out.matches("mcp__alpha__list").count(), 1, "{}", outcome.out);
    assert!(outcome.out.contains("P3 skip mcp__alpha__list: no format follows from the shape"), "{}", outcome.out);
    let text = std::fs::read_to_string(home.config()).unwrap();
    assert!(!text.contains("alpha"), "{text}");
}

#[test]
fn a_template_is_not_overruled_by_a_profile() {
    let home = Home::new();
    mcp_session(&home, "a", "mcp__alpha__list", TABLE, 30);
    let own = "endpoint_overrides.mcp__alpha__list.template_id";
    for (text, told) in [
        (
            "[endpoint_overrides.mcp__alpha__list]\ntemplate_id = \"pipeline_deep_mckp\" # pin\n",
            "is marked `# pin`, which",
        ),
        (
            "[endpoint_overrides.mcp__alpha__list]\ntemplate_id = \"pipeline_deep_mckp\"\n",
            "says pipeline_deep_mckp, which",
        ),
    ] {
        home.write(".config/devboy/pipeline_config.toml", text);
        let outcome = home.run(&["tune", "from-claude-logs", "--dry-run", "--explain"]);
        let reason = format!("P3 hold mcp__alpha__list: `{own}` {told}");
        assert!(outcome.out.contains(&reason) && !outcome.out.contains("+[profiles.data"), "{}", outcome.out);
    }
}

#[test]
fn the_profile_that_matches_is_the_first_by_name() {
    let home = Home::new();
    mcp_session(&home, "a", "mcp__alpha__list", TABLE, 30);
    let text = "[profiles.data.variants.aa]\nendpoint_pattern = \"mcp__alpha__list\"\n\n\
                [profiles.data.variants.zz]\nendpoint_pattern = \"mcp__alpha__l\"\n";
    home.write(".config/devboy/pipeline_config.toml", text);
    let outcome = home.run(&["tune", "from-claude-logs", "--dry-run", "--explain"]);
    assert!(outcome.out.contains("matched by `profiles.data.variants.aa`"), "{}", outcome.out);
}

#[test]
fn logs_that_are_too_large_are_not_read_once_more_for_a_profile() {
    let home = Home::new();
    mcp_session(&home, "a", "mcp__alpha__list", TABLE, 30);
    let sheet = include_str!("../../rules/p3_data.toml");
    let told = |bytes_max: &str| {
        home.write("own/p3_data.toml", sheet.replace("replayed_bytes_max = 300_000_000", bytes_max));
        let own = home.path("own");
        let flags = ["--dry-run", "--explain", "--no-lake", "--rules-dir", own.to_str().unwrap()];
        home.run(&[&TUNE[..], &flags].concat()).out
    };
    let reason = "P3 hold mcp__alpha__list: not replayed: the logs with its endpoint are gone, or too large";
    let (large, small) = (told("replayed_bytes_max = 1"), told("replayed_bytes_max = 300_000_000"));
    assert!(large.contains(reason), "{large}");
    assert!(small.contains("mcp__alpha__list") && !small.contains(reason), "{small}");
}

#[test]
fn links_pay_on_later_sessions_or_nothing_is_said_of_their_tools() {
    let told = |read: usize| {
        let home = home_that_reads(read);
        let report = home.json(&with(&["--dry-run"]));
        let outcome = home.run(&with(&["--dry-run", "--explain"]));
        (report, outcome)
    };
    let (report, outcome) = told(10);
    let judged = &report["prefetching"];
    assert_eq!((&judged["mined_on"], &judged["judged_on"]), (&14.into(), &6.into()));
    assert_eq!(judged["links"]["Grep"]["Read"]["sent"], 60, "{judged}");
    assert_eq!(judged["links"]["Grep"]["Read"]["won"], 60, "{judged}");
    assert!(outcome.out.contains("+[enrichment]\n+enabled = true"), "{}", outcome.out);
    assert!(
        outcome.err.contains("prefetching could spare at best 60 of 120 calls of 6 later sessions"),
        "{}",
        outcome.err
    );
    // Of ten files that are found four are read.
    let (report, outcome) = told(4);
    assert_eq!(report["prefetching"]["links"]["Grep"]["Read"]["won"], 24, "{}", report["prefetching"]);
    assert!(!report["diff"].as_str().unwrap().contains("[tools"), "{}", report["diff"]);
    assert!(
        outcome.out.contains("T1 hold Grep: `tools.Grep.follow_up`: Read: loses: 24 of 60 calls ahead"),
        "{}",
        outcome.out
    );
    assert!(outcome.out.contains("no effect, nothing is called ahead with it"), "{}", outcome.out);
    assert!(
        outcome.err.contains("24, with 60 calls made ahead, 36 of them for nothing: not worth it"),
        "{}",
        outcome.err
    );
}

#[test]
fn what_was_mined_spares_no_more_than_can_be_spared_at_best() {
    let home = busy_home();
    home.write(".config/devboy/pipeline_config.toml", "schema_version = 4\n\n[tools.Read]\nspeculate = false\n");
    let outcome = home.run(&with(&["--dry-run"]));
    let told = "could spare at best 60 of 120 calls of 6 later sessions, at any later step; the links learned from earlier sessions would spare 60, with";
    assert!(outcome.err.contains(told), "the file has no say in what was mined: {}", outcome.err);
    // Three calls stand between a search and the reading of what it found.
    let home = Home::new();
    for number in 0..20 {
        let session = &*format!("s{number:02}");
        let call = |at: usize, tool: &str, input: &str, body: &str| {
            CallLines { session, number: 3 * at, tool, input, body, model: "claude-opus-4-6" }.text()
        };
        let turn = |turn: usize| {
            let found = format!("/secretpath/{session}_{turn:02}.rs");
            let shells: String = (1..4).map(|at| call(5 * turn + at, "Bash", "x", "done")).collect();
            let searched = call(5 * turn, "Grep", "x", &format!("{found}:3:secretbody"));
            searched + &shells + &call(5 * turn + 4, "Read", &found, "secretbody of some length")
        };
        home.write(&format!(".claude/projects/-home-u-p/{session}.jsonl"), (0..10).map(turn).collect::<String>());
    }
    let outcome = home.run(&with(&["--dry-run"]));
    assert!(outcome.err.contains("could spare at best 60 of 300 calls of 6 later sessions"), "{}", outcome.err);
}

#[test]
fn calls_ahead_whose_answers_are_larger_than_foreseen_are_declined() {
    let home = Home::new();
    for number in 0..20 {
        let name = format!("s{number:02}");
        // Three files in ten are ten times as long as the others.
        let long = "secretbody of some length ".repeat(10);
        let turns = searching(&name, 10, 10);
        let text: String = turns
            .lines()
            .enumerate()
            .map(|(line, text)| match line / 4 % 10 {
                0..3 => text.replace("secretbody of some length", &long) + "\n",
                _ => text.to_owned() + "\n",
            })
            .collect();
        home.write(&format!(".claude/projects/-home-u-p/{name}.jsonl"), text);
    }
    let outcome = home.run(&with(&["--dry-run", "--explain"]));
    assert!(outcome.out.contains("18 of 60 known results were larger than foreseen by a third"), "{}", outcome.out);
    assert!(!outcome.out.contains("+[tools"), "{}", outcome.out);
}

#[test]
fn links_that_the_file_spoils_are_not_written() {
    let home = busy_home();
    let blocks = [
        ("speculate = false", "no effect: nothing would be called ahead on the later sessions"),
        (
            "side_effect_class = \"read_only\"\ncost_model = { typical_kb = 0.01 }",
            "loses sight of its budget: 60 of 60 known results were larger than foreseen by a third",
        ),
    ];
    for (block, why) in blocks {
        let text = format!("schema_version = 4\n\n[tools.Read]\n{block}\n");
        home.write(".config/devboy/pipeline_config.toml", text);
        let outcome = home.run(&with(&["--dry-run", "--explain"]));
        let reason = format!("`tools.Grep.follow_up`: Read: beside the others and what stands in the file: {why}");
        assert!(outcome.out.contains(&reason) && !outcome.out.contains("+[enrichment]"), "{}", outcome.out);
    }
}

#[test]
fn a_planner_that_loses_is_switched_off() {
    let home = home_that_reads(4);
    home.write(".config/devboy/pipeline_config.toml", "schema_version = 4\n\n[enrichment]\nenabled = true\n");
    let outcome = home.run(&TUNE);
    assert!(outcome.out.contains("T1 enrichment.enabled: true → false"), "{}", outcome.out);
    let busy = busy_home();
    busy.run(&TUNE);
    assert_eq!(busy.run(&with(&["--check"])).exit, Exit::Done, "what pays stays on");
}

#[test]
fn too_few_later_sessions_judge_nothing() {
    let home = Home::new();
    for number in 0..8 {
        let name = format!("s{number:02}");
        home.write(&format!(".claude/projects/-home-u-p/{name}.jsonl"), searching(&name, 10, 10));
    }
    let outcome = home.run(&with(&["--dry-run", "--explain"]));
    assert!(
        outcome.err.contains("prefetching: not proposed; needs 5 later sessions to judge, has 3"),
        "{}",
        outcome.err
    );
    assert!(!outcome.out.contains("[tools."), "{}", outcome.out);
    let reason = "`tools.Grep.follow_up`: Read: needs 5 later sessions to judge, has 3";
    assert!(outcome.out.contains(reason), "{}", outcome.out);
}

/// Of nothing there is no share.
#[test]
fn nothing_has_no_share_and_one_call_is_one() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("empty")).unwrap();
    let empty = home.path("empty").display().to_string();
    let said = |command: &[&str]| {
        let outcome = home.run(&[command, &["--input-dir", &empty, "--allow-empty"]].concat());
        outcome.out + &outcome.err
    };
    let tuned = said(&["tune", "from-claude-logs", "--dry-run"]);
    assert!(tuned.contains("tools:       0 calls (0 read-class, –)"), "{tuned}");
    let fields = said(&["mine", "fields"]);
    assert!(fields.contains("0 of 0 results (–) are JSON, of 0 tools"), "{fields}");
    let examined = said(&["doctor"]);
    assert!(examined.contains(" 0 files, 0 B"), "{examined}");
    mcp_session(&home, "a", "Read", "x", 1);
    let one = home.run(&["tune", "from-claude-logs", "--dry-run"]).err;
    assert!(one.contains("tools:       1 call (1 read-class, 100.0 %)"), "{one}");
}

#[test]
fn the_first_line_says_who_reads_the_file() {
    let home = busy_home();
    home.run(&TUNE);
    let text = std::fs::read_to_string(home.config()).unwrap();
    assert!(text.starts_with("# Read by the devboy pipeline in an MCP host; "), "{text}");
    // A person's file keeps its first line.
    let home = busy_home();
    home.write(".config/devboy/pipeline_config.toml", "# mine\nschema_version = 4\n");
    home.run(&TUNE);
    assert!(std::fs::read_to_string(home.config()).unwrap().starts_with("# mine\nschema_version = 4\n"));
}

#[test]
fn a_profile_that_would_take_over_a_longer_name_is_held() {
    let home = Home::new();
    mcp_session(&home, "a", "mcp__gitlab__get_issue", "x", 2);
    let outcome = home.run(&["tune", "from-claude-logs", "--explain", "--allow-empty"]);
    assert!(outcome.out.contains("P3 hold mcp__gitlab__get_issue: "), "{}", outcome.out);
}

#[test]
fn a_format_is_replayed_and_only_for_a_certain_shape() {
    let home = Home::new();
    mcp_calls(&home, "a", &[("mcp__alpha__table", TABLE, 30), ("mcp__alpha__rare", TABLE, 5)]);
    let report = home.json(&["tune", "from-claude-logs", "--dry-run"]);
    let of = |subject: &str| {
        let rows = report["findings"].as_array().unwrap().iter().filter(|row| row["subject"] == subject);
        rows.map(|row| (row["verdict"].clone(), row["reason"].to_string())).collect::<Vec<_>>()
    };
    // The router writes such tables in the same way without being told.
    let table = of("mcp__alpha__table");
    assert!(
        table.len() == 2 && table.iter().all(|(verdict, why)| verdict == "hold" && why.contains("no effect")),
        "{table:?}"
    );
    let rare = of("mcp__alpha__rare");
    assert!(
        rare.iter().any(|(verdict, why)| verdict == "skip" && why.contains("too few results for a format")),
        "{rare:?}"
    );
}

#[test]
fn a_garbled_tool_name_is_counted_but_not_configured() {
    let home = busy_home();
    mcp_session(&home, "odd", r#"Task\" >\n<parameter name=\"description"#, "x", 25);
    let outcome = home.run(&with(&["--explain"]));
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    assert!(!std::fs::read_to_string(home.config()).unwrap().contains("parameter"));
    assert!(outcome.out.contains("cannot stand in a configuration"));
    assert_eq!(home.json(&["ingest"])["totals"]["tools"]["Task\" >\\u{a}<parameter name=\"description"]["calls"], 25);
}

#[test]
fn reports_are_equal_for_any_number_of_threads() {
    let home = busy_home();
    let run = |threads: &'static str| {
        home.run(&with(&["--dry-run", "--explain", "--no-lake", "--json", "--reproducible", "--threads", threads])).out
    };
    assert_eq!(run("1"), run("2"));
    assert_eq!(run("1"), run("7"));
}

#[test]
fn a_model_that_devboy_pinned_gives_way_to_another() {
    let home = Home::new();
    let answers = |model: &str| {
        for name in ["a", "b", "c"] {
            let call = |number| CallLines { session: name, number, tool: "Read", input: "x", body: "x", model };
            let text: String = (0..12).map(|number| call(number).text()).collect();
            home.write(&format!(".claude/projects/p/{name}.jsonl"), text);
        }
        let outcome = home.run(&["tune", "from-claude-logs", "--explain"]);
        assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
        (outcome.out, std::fs::read_to_string(home.config()).unwrap())
    };
    assert!(answers("claude-opus-4-6").1.contains("active = \"claude-opus-4.6\""));
    let (out, text) = answers("claude-opus-4-5");
    assert!(text.contains("active = \"claude-opus-4.5\""), "{out}");
    // What a person puts there stays.
    std::fs::write(home.config(), text.replace("active = \"claude-opus-4.5\"", "active = \"mine\"")).unwrap();
    let (out, text) = answers("claude-opus-4-6");
    assert!(text.contains("active = \"mine\"") && out.contains("set to \"mine\" by hand"), "{out}");
}

#[test]
fn the_model_rule_needs_four_answers_in_five() {
    for (others, pinned) in [(2, true), (3, false)] {
        let home = Home::new();
        mcp_session(&home, "a", "Read", "x", 8);
        let call =
            |number| CallLines { session: "b", number, tool: "Read", input: "x", body: "x", model: "claude-haiku-4-5" };
        let text: String = (0..others).map(|number| call(number).text()).collect();
        home.write(".claude/projects/p/b.jsonl", text);
        // Twenty messages are asked for.
        for name in ["c", "d", "e"] {
            let scale = if name == "c" { 8 } else { 0 };
            mcp_session(&home, name, "Read", "x", scale);
        }
        let more =
            |number| CallLines { session: "f", number, tool: "Read", input: "x", body: "x", model: "claude-haiku-4-5" };
        home.write(".claude/projects/p/f.jsonl", (0..others).map(|n| more(n).text()).collect::<String>());
        let outcome = home.run(&["tune", "from-claude-logs", "--dry-run", "--explain"]);
        assert_eq!(outcome.out.contains("P1 profiles.llm.active"), pinned, "{}", outcome.out);
    }
}

#[test]
fn show_tells_where_each_value_comes_from() {
    let home = Home::new();
    home.write(".config/devboy/pipeline_config.toml", "schema_version = 3\n[dedup]\nlru_size = 9\nlru_sise = 3\n");
    let outcome = home.run(&["tune", "show"]);
    let line = |key: &str| outcome.out.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("schema_version = 3").ends_with("# line 1"), "an older file says so");
    assert!(line("dedup.lru_size = 9").ends_with("# line 3"));
    assert!(line("dedup.min_body_chars = 200").ends_with("# built in"));
    assert!(outcome.err.contains(":4:") && outcome.err.contains("lru_size"), "{}", outcome.err);
    assert!(outcome.out.parse::<toml_edit::DocumentMut>().is_ok(), "what is shown is TOML");
}

#[test]
fn standard_input_is_read() {
    let home = Home::new();
    let outcome = home.run_with(&["ingest", "--input-dir", "-", "--json"], session("s", 4).as_bytes());
    let report: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(report["totals"]["tool_uses"], 4);
    assert_eq!(report["history"]["calls"], 4);
    let packed = zstd::encode_all(session("s", 4).as_bytes(), 1).unwrap();
    let packed_bytes = packed.len();
    let outcome = home.run_with(&["ingest", "--input-dir", "-", "--json"], &packed);
    let packed: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(packed["totals"], report["totals"]);
    assert_eq!(report["inputs"]["bytes"], session("s", 4).len());
    assert_eq!(packed["inputs"]["bytes"], packed_bytes);
}

#[test]
fn standard_input_has_no_project() {
    let refused = Home::new().run_with(&["ingest", "--input-dir", "-", "--project", "x"], session("s", 4).as_bytes());
    assert_eq!(refused.exit, Exit::Usage);
    assert!(refused.err.contains("standard input has none"), "{}", refused.err);
}

#[test]
fn the_older_name_of_a_tool_is_taken_together_with_the_present_one() {
    let home = Home::new();
    mcp_session(&home, "a", "Task", "x", 12);
    mcp_session(&home, "b", "Agent", "x", 12);
    let told = home.run(&with(&["--explain"])).out;
    assert!(!told.contains("tools.Task") && told.contains("`tools.Agent.cost_model.typical_kb` = "), "{told}");
    assert_eq!(home.json(&["ingest"])["totals"]["tools"]["Task"]["calls"], 12);
}

#[test]
fn doctor_warns_when_the_logs_do_not_reach_back_to_the_window() {
    let home = Home::new();
    let told = |arguments: &[&str]| home.run(&[&["doctor"], arguments].concat()).out;
    // Twelve days old: who began then misses nothing, unless a window is asked for that reaches back further.
    home.write(".claude/projects/-p/a.jsonl", log("a", "Read", 9, "2026-10-20"));
    assert!(told(&[]).contains("ok    reach"), "{}", told(&[]));
    assert!(told(&["--since", "1d"]).contains("ok    reach"));
    // A day is told once.
    assert!(told(&[]).contains("records of 2026-10-20; "), "{}", told(&[]));
    let span = home.run(&with(&["--dry-run"])).err;
    assert!(span.contains("span:        2026-10-20\n"), "{span}");
    let asked = told(&["--since", "20d"]);
    assert!(asked.contains("warn  reach") && asked.contains("before the first of them"), "{asked}");
    assert!(!asked.contains("missing") && !asked.contains("cleanupPeriodDays"), "nothing was deleted: {asked}");
    // About as old as what is kept: something was deleted.
    home.write(".claude/projects/-p/b.jsonl", log("b", "Read", 9, "2026-10-04"));
    assert!(told(&[]).contains("What was before 2026-10-04 is missing"), "{}", told(&[]));
    // What the client does not take sets nothing.
    for (value, kept) in
        [("0", "30 days (its default)"), ("-5", "30 days (its default)"), ("1e3", "1000 days (its settings)")]
    {
        home.write(".claude/settings.json", format!("{{\"cleanupPeriodDays\": {value}}}"));
        let told = home.run(&["doctor"]).out;
        assert!(told.contains(&format!("keeps logs {kept}")), "{value}: {told}");
    }
    assert_eq!(Home::new().run(&["doctor"]).exit, Exit::Failed);
}

#[test]
fn doctor_warns_of_logs_that_are_dated_in_the_future() {
    let told = |day: &str| {
        let home = Home::new();
        home.write(".claude/projects/-p/a.jsonl", log("a", "Read", 9, day));
        home.run(&["doctor"]).out
    };
    // It is 2026-11-01.
    assert!(told("2026-11-01").contains("ok    reach"), "{}", told("2026-11-01"));
    let ahead = told("2027-03-01");
    assert!(ahead.contains("warn  reach") && ahead.contains("dated in the future"), "{ahead}");
}

#[test]
fn doctor_says_which_settings_the_client_is_not_known_to_take() {
    let home = Home::new();
    home.write(".claude/projects/-p/a.jsonl", log("a", "Read", 9, "2026-10-20"));
    let told = |settings: &str| {
        home.write(".claude/settings.json", settings);
        home.run(&["doctor"]).out
    };
    let twice = "{\"autoCompactWindow\": 150000,\n \"autoCompactWindow\": 200000}";
    for (settings, expected) in [
        (
            "{\"autoCompactWindow\": \"big\"}",
            "autoCompactWindow is \"big\"; Claude Code is known to take a whole number from ",
        ),
        ("{\"promptCacheTtl\": \"2h\"}", "promptCacheTtl is \"2h\"; Claude Code is known to take 5m or 1h"),
        ("{\"env\": {\"MAX_MCP_OUTPUT_TOKENS\": \"all\"}}", "MAX_MCP_OUTPUT_TOKENS is \"all\"; "),
        ("{\"env\": {\"MAX_MCP_OUTPUT_TOKENS\": 9000}}", "MAX_MCP_OUTPUT_TOKENS in \"env\" is no text; "),
        (twice, "settings.json:2:2: `autoCompactWindow` stands a second time"),
    ] {
        let out = told(settings);
        assert!(out.contains("warn  settings") && out.contains(expected), "{settings}: {out}");
    }
    let fine = "{\"autoCompactWindow\": 150000, \"promptCacheTtl\": \"1h\", \"theme\": 7, \"env\": {\"MAX_MCP_OUTPUT_TOKENS\": \"\"}}";
    assert!(told(fine).contains("ok    settings"), "{}", told(fine));
    // A time that makes no sense is a wrong command line, before anything is looked at.
    let outcome = home.run(&["doctor", "--since", "tomorrow"]);
    assert_eq!((outcome.exit, outcome.out.as_str()), (Exit::Usage, ""));
}

/// What devboy pinned goes back once another model leads and none reaches the share; what a person set stays.
#[test]
fn a_pin_is_taken_back_once_another_model_leads() {
    let home = Home::new();
    let of_model = |name: &str, model: &str, calls: usize| {
        let call = |number| CallLines { session: name, number, tool: "Read", input: "x", body: "text", model }.text();
        home.write(&format!(".claude/projects/-home-u-p/{name}.jsonl"), (0..calls).map(call).collect::<String>());
    };
    let active = || {
        let text = std::fs::read_to_string(home.config()).unwrap();
        text.lines().find(|line| line.starts_with("active")).unwrap_or_default().to_owned()
    };
    of_model("a", "claude-opus-4-6", 40);
    home.run(&["tune", "from-claude-logs"]);
    assert!(active().starts_with("active = \"claude-opus-4.6\""), "{}", active());
    of_model("b", "claude-sonnet-4-5", 45);
    let outcome = home.run(&["tune", "from-claude-logs"]);
    assert!(active().starts_with("active = \"auto\""), "{}{}", active(), outcome.out);
    home.write(".config/devboy/pipeline_config.toml", "[profiles.llm]\nactive = \"claude-opus-4.6\"\n");
    let told = home.run(&["tune", "from-claude-logs", "--dry-run", "--explain"]).out;
    assert!(told.contains("no model gives 80.0 % of the answers; `claude-opus-4.6` stays"), "{told}");
}

/// What devboy pinned goes back also where the one that leads cannot be pinned in its place.
#[test]
fn a_pin_is_taken_back_once_what_cannot_be_pinned_leads() {
    let home = Home::new();
    let told = |name: &str, (model, tool): (&str, &str), calls: usize| {
        let call = |number| CallLines { session: name, number, tool, input: "x", body: "text", model }.text();
        home.write(&format!(".claude/projects/-home-u-p/{name}.jsonl"), (0..calls).map(call).collect::<String>());
    };
    (0..7).for_each(|number| told(&format!("a{number}"), ("claude-opus-4-6", "Read"), 60));
    home.run(&["tune", "from-claude-logs"]);
    let written = std::fs::read_to_string(home.config()).unwrap();
    let (llm, agent) = ("active = \"claude-opus-4.6\"", "active = \"file_search_heavy\"");
    assert!(written.contains(llm) && written.contains(agent), "{written}");
    // A model that nobody knows, in sessions of no special kind.
    (0..12).for_each(|number| told(&format!("b{number}"), ("claude-nova-9", "Bash"), 60));
    let outcome = home.run(&["tune", "from-claude-logs", "--explain"]);
    let written = std::fs::read_to_string(home.config()).unwrap();
    assert!(!written.contains(llm) && !written.contains(agent), "{written}\n{}", outcome.out);
    assert_eq!(written.matches("active = \"auto\"").count(), 2, "{written}");
}

/// Six sessions of one kind may be chance, seven are most of the work.
#[test]
fn a_way_of_working_is_pinned_once_it_is_sure_to_be_most_of_the_work() {
    let home = Home::new();
    let told = |number: u32| {
        let name = format!("s{number}");
        let call = |number| {
            CallLines { session: &name, number, tool: "Read", input: "x", body: "text", model: "claude-opus-4-6" }
                .text()
        };
        home.write(&format!(".claude/projects/-home-u-p/{name}.jsonl"), (0..60).map(call).collect::<String>());
    };
    (0..6).for_each(told);
    let few = home.run(&["tune", "from-claude-logs", "--dry-run", "--explain"]).out;
    assert!(
        few.contains(
            "P2 hold file_search_heavy: its sessions are too few, or differ too much, to be sure of a majority (rules/"
        ),
        "{few}"
    );
    assert!(!few.contains("active = \"file_search_heavy\""), "{few}");
    told(6);
    let enough = home.run(&["tune", "from-claude-logs", "--dry-run", "--explain"]).out;
    assert!(enough.contains("active = \"file_search_heavy\""), "{enough}");
}

/// A copy of a log in another folder makes no project.
#[test]
fn a_copy_of_a_log_makes_no_project_of_a_replay() {
    let home = Home::new();
    let body = "a text that is long enough to be counted ".repeat(20);
    for name in ["a", "b", "c"] {
        mcp_session(&home, name, "mcp__alpha__list", &body, 6);
    }
    let projects = || home.json(&["replay", "--no-lake"])["replay"]["arms"][0]["projects"].clone();
    let before = projects();
    assert_eq!(before.as_array().unwrap().len(), 1, "{before:#}");
    let log = std::fs::read_to_string(home.path(".claude/projects/-home-u-p/a.jsonl")).unwrap();
    home.write(".claude/projects/-aaa/a.jsonl", &log);
    home.write(".claude/projects/-zzz/copy.jsonl", &log);
    assert_eq!(projects(), before);
}

#[test]
fn a_project_that_matches_nothing_is_told_so() {
    let outcome = busy_home().run(&["ingest", "-p", "nosuch"]);
    assert_eq!(outcome.exit, Exit::Failed);
    assert!(outcome.err.contains("no project is named like \"nosuch\""), "{}", outcome.err);
    let one = Home::new();
    one.write(".claude/projects/p/one.jsonl", "");
    let told = one.run(&["ingest", "-p", "nosuch"]).err;
    assert!(told.contains("1 file is there, of these projects: p"), "{told}");
    for path in ["home/u/", "home\\u\\"] {
        assert_eq!(busy_home().run(&["ingest", "-p", path]).exit, Exit::Done);
    }
}

#[test]
fn a_project_whose_path_has_a_pictogram_is_found_by_it() {
    let home = Home::new();
    // As the client spells `/home/u/😀/app`: two dashes stand for the pictogram.
    home.write(".claude/projects/-home-u----app/one.jsonl", session("one", 4));
    assert_eq!(home.json(&["ingest", "-p", "/home/u/😀/app"])["totals"]["sessions"], 1);
}

#[test]
fn a_project_is_named_by_the_way_to_it_from_here() {
    let home = Home::new();
    for (name, path) in [("here", "work"), ("below", "work/below"), ("beside", "beside"), ("other", "homework/other")] {
        let folder: String =
            home.path(path).to_str().unwrap().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
        home.write(&format!(".claude/projects/{folder}/{name}.jsonl"), session(name, 4));
    }
    let sessions = |project: &str| home.json(&["ingest", "-p", project])["totals"]["sessions"].clone();
    assert_eq!([".", "./below/", "../beside", "other", "…/work/below", "…/work"].map(sessions), [2, 1, 1, 1, 1, 2]);
    for project in ["", "/", "-", "*", "ü", "日本語"] {
        let refused = home.run(&["ingest", "-p", project]);
        assert_eq!((refused.exit, refused.out.as_str()), (Exit::Usage, ""), "{project}");
        assert!(refused.err.contains("names no project"), "{}", refused.err);
    }
}

#[test]
fn a_reader_that_goes_away_changes_neither_the_file_nor_the_exit_code() {
    let home = busy_home();
    assert_eq!(home.run_into(&with(&["--check"]), &mut ClosedPipe), Exit::Pending);
    assert_eq!(home.run_into(&TUNE, &mut ClosedPipe), Exit::Done);
    assert!(home.config().exists());
}

#[test]
fn answers_without_text_have_no_text_size() {
    let home = Home::new();
    let call = |number| CallLines { session: "s", number, tool: "ToolSearch", input: "x", body: "x", model: "m" };
    let text: String = (0..25).map(|number| call(number).text()).collect();
    let text = text.replace("\"content\":\"x\"", "\"content\":[{\"type\":\"tool_reference\",\"tool_name\":\"y\"}]");
    home.write(".claude/projects/p/s.jsonl", text);
    let outcome = home.run(&with(&["--explain"]));
    assert!(outcome.out.contains("25 of 25 results are images or references"), "{}", outcome.out);
    assert!(!outcome.out.contains("typical_kb"), "{}", outcome.out);
}

/// planner-compat.md 3: a block stands for the whole model of its tool.
#[test]
fn what_is_shown_marks_idle_keys_and_tells_of_blocks_that_hide_links() {
    let home = Home::new();
    let text = "schema_version = 4\n\n[tools.Grep]\nspeculate = true\n\n[tools.Glob]\nfollow_up = []\n";
    home.write(".config/devboy/pipeline_config.toml", text);
    let outcome = home.run(&["tune", "show"]);
    let line = |key: &str| outcome.out.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
    assert!(line("tools.Grep.cost_model.typical_kb = 1.0 ").ends_with("# built in"), "{}", outcome.out);
    assert!(line("profiles.agent.auto_detect_window = ").ends_with("# built in, without effect"), "{}", outcome.out);
    assert!(outcome.err.contains("pipeline_config.toml:3: `tools.Grep.follow_up` hides the shipped links to"));
    assert!(!outcome.err.contains("tools.Glob"), "a list that was written is meant: {}", outcome.err);
    let values = home.json(&["tune", "show"])["values"].clone();
    let effect = |key: &str| values.as_array().unwrap().iter().find(|row| row["key"] == key).unwrap()["effect"].clone();
    assert_eq!((effect("telemetry.rotate_mib"), effect("dedup.lru_size")), (json!(false), json!(true)));
}

#[test]
fn a_circle_of_prerequisites_is_named_with_its_line() {
    let home = Home::new();
    let text = "schema_version = 4\n\n[tools.Read]\nrequires = [\"Grep\"]\n\n[tools.Grep]\nrequires = [\"Read\"]\n";
    home.write(".config/devboy/pipeline_config.toml", text);
    let told = home.run(&["tune", "show"]).err;
    assert!(told.contains("pipeline_config.toml:7: `tools.Grep.requires` leads back to itself"), "{told}");
    assert!(!told.contains("means nothing"), "the key itself is known: {told}");
}

#[test]
fn the_two_commands_in_turn_reach_a_fixed_point_and_never_change_what_the_other_just_wrote() {
    let (short, long) = ("word ".repeat(20), "word ".repeat(24));
    let analyze = ["tune", "analyze", "--from-claude-logs"];
    for orders in [[&TUNE[..], &analyze[..]], [&analyze[..], &TUNE[..]]] {
        // Two of five answers are empty and two are long, so that the medians of all answers and of those with text differ.
        let home = Home::new();
        for number in 0..20 {
            let name = format!("s{number:02}");
            let text = searching(&name, 10, 10);
            let body = |turn: usize| ["", "", short.as_str(), long.as_str(), long.as_str()][turn % 5];
            let reads = text.matches("secretbody of some length").count();
            let answer = |text: String, turn| text.replacen("secretbody of some length", body(turn), 1);
            let text = (0..reads).fold(text, answer);
            home.write(&format!(".claude/projects/-home-u-p/{name}.jsonl"), text);
        }
        let text = || std::fs::read_to_string(home.config()).unwrap();
        let sizes = |text: &str| {
            let tree: toml_edit::DocumentMut = text.parse().unwrap();
            let size = |tool: &str| tree["tools"][tool]["cost_model"]["typical_kb"].as_float();
            [size("Grep"), size("Read")]
        };
        orders.iter().for_each(|command| assert_eq!(home.run(command).exit, Exit::Done));
        let first = text();
        for command in orders.iter().cycle().take(6) {
            home.run(command);
            assert_eq!(sizes(&text()), sizes(&first), "{command:?} changed what stood");
        }
        let settled = text();
        for command in orders {
            let outcome = home.run(command);
            assert!(outcome.out.contains("Nothing to change in "), "{}", outcome.out);
            assert_eq!(text(), settled);
        }
        if orders[0] == TUNE {
            let explained = home.run(&[&analyze[..], &["--explain", "--dry-run"]].concat()).out;
            assert!(explained.contains("is T1's") && explained.contains("rules/precedence.toml"), "{explained}");
        }
    }
}

#[test]
fn as_many_changes_are_written_as_the_history_lists_and_an_undo_takes_back() {
    for old in ["", "schema_version = 2\n", "schema_version = 4\n[dedup]\nlru_size = 5\n"] {
        let home = busy_home();
        // A shipped model with groups of fields is one value of several keys.
        mcp_session(&home, "issues", "mcp__gitlab__get_issues", "[]", 24);
        if !old.is_empty() {
            home.write(".config/devboy/pipeline_config.toml", old);
        }
        let told = home.run(&TUNE).err;
        let written: u64 =
            told.split(": ").find_map(|part| part.split_once(" changes written")?.0.parse().ok()).unwrap();
        let entries = home.json(&["tune", "history"])["entries"].clone();
        assert_eq!(entries[0]["changes"].as_array().unwrap().len() as u64, written, "{told}");
        let undone = home.json(&["tune", "undo"]);
        assert_eq!(undone["undone"].as_array().unwrap().len() as u64, written);
    }
}

/// A change that the disk refuses is an error, and nothing of it is printed.
pub fn expect_no_word_of_a_refused_change(home: &Home, command: &[&str]) {
    let barred = Fault::new(home.config().parent().unwrap(), WriteStep::Create, 0, true, 13);
    let outcome = home.run(command);
    assert!(barred.has_struck(), "{}", outcome.err);
    drop(barred);
    assert!(outcome.exit == Exit::Failed && outcome.out.is_empty(), "{}", outcome.out);
    assert!(outcome.err.contains("Permission denied"), "{}", outcome.err);
    assert!(!home.config().exists());
    let told = home.run(&[command, &["--dry-run"]].concat()).out;
    assert!(told.contains("pipeline_config.toml (not written)"), "{told}");
}

#[test]
fn what_logs_propose_and_the_disk_refuses_is_not_told_as_a_change() {
    expect_no_word_of_a_refused_change(&busy_home(), &TUNE);
}

/// The class is one of the whole session, as the model mostly is: that all calls and answers of a session have it is seen once.
#[test]
fn the_class_and_the_model_of_sessions_are_as_sure_as_there_are_sessions() {
    let home = Home::new();
    for number in 0..8 {
        home.write(&format!(".claude/projects/-home-u-p/s{number}.jsonl"), searching(&format!("s{number}"), 200, 10));
    }
    let report = home.json(&with(&["--dry-run"]));
    let findings = report["findings"].as_array().unwrap();
    for rule in ["P1", "P2"] {
        let of_rule = findings.iter().filter(|finding| finding["rule"] == rule).map(|finding| &finding["evidence"]);
        let evidence = of_rule.into_iter().find(|evidence| !evidence["interval"].is_null()).unwrap();
        let seen = evidence["interval"]["n"].as_u64().unwrap();
        assert!(seen > 1_000 && evidence["n"] == 8, "{evidence}");
        assert_eq!(evidence["interval"]["value"], 1.0, "{evidence}");
        // Eight of eight are no more than two in three at least.
        assert!(evidence["interval"]["lower"].as_f64().unwrap() < 0.7, "{evidence}");
    }
    let told = home.run(&with(&["--dry-run", "--explain"])).out;
    assert!(told.contains(" in 8 of 8 sessions classed ") && told.contains(" %, n 8 sessions)"), "{told}");
}
