//! What `devboy tune claude-settings` claims of a setting, and for whom: beside what is set, where it takes effect, and as far
//! as every client knows it.

use std::fs;

use serde_json::{Value, json};

use super::claude_settings::{Kind, TUNE, finding, growing, home_of, judged, pausing, told};
use super::harness::Home;
use super::log_builder::Record;
use crate::base::data::Data;
use crate::settings::claude::layers::{ClaudePlaces, SettingsLayers};
use crate::settings::claude::levers::{Levers, SettingsScope};
use crate::shell::arguments::Exit;

const LIFETIME: &str = "cache lifetime, main threads";
const WINDOW: &str = "automatic compaction";

/// Results of an MCP tool that fill a context, unless they are shown in part.
fn filling() -> Kind {
    Kind { turns: 16, result: 60_000, tool: "mcp__tracker__list", ..Kind::default() }
}

#[test]
fn an_effect_is_told_beside_all_that_is_set() {
    let home = home_of(&Kind { pause: 900, ..filling() });
    let effect = |settings: &str, rule: &str, subject: &str| {
        home.write(".claude/settings.json", settings);
        let found = finding(&home, rule, subject, &[]);
        (found["verdict"].as_str().unwrap().to_owned(), found["effect"]["of_bill"].as_f64().unwrap())
    };
    let (verdict, of_bill) = effect("{\"promptCacheTtl\": \"1h\"}", "S4", "results of MCP tools");
    assert!(verdict == "propose" && -1.0 < of_bill && of_bill < 0.0, "{verdict} {of_bill}");
    let window = |settings| effect(settings, "S3", "automatic compaction");
    assert!(window("{}").1 < 0.0);
    // No context grows that far.
    assert_eq!(window("{\"env\": {\"MAX_MCP_OUTPUT_TOKENS\": \"5000\"}}"), ("hold".to_owned(), 0.0));
}

#[test]
fn what_adds_nothing_beside_the_others_is_not_proposed() {
    let home = home_of(&filling());
    let report = home.json(&[&TUNE[..], &["--dry-run"]].concat());
    let verdict = |rule: &str| {
        let found =
            report["findings"].as_array().unwrap().iter().find(|row| row["rule"] == rule && row["effect"].is_object());
        (found.unwrap()["verdict"].clone(), found.unwrap()["reason"].to_string())
    };
    let (window, why) = verdict("S3");
    assert!(window == "hold" && why.contains("no effect beside the others"), "{report:#}");
    let proposed = report["findings"].as_array().unwrap().iter().filter(|row| row["verdict"] == "propose");
    assert!(proposed.count() == 1 && report["together"].is_null(), "{report:#}");
}

/// What a limit keeps back and the next step names is looked up, and carried along from there.
#[test]
fn a_limit_pays_for_what_it_keeps_back() {
    let kind = Kind { turns: 7, result: 25_000, ..Kind::default() };
    let (verdict, unnamed) = judged(kind.clone(), "S4", "shell output");
    assert_eq!(verdict, "propose", "{unnamed:#}");
    let (verdict, named) = judged(Kind { names: true, ..kind }, "S4", "shell output");
    assert_eq!(verdict, "hold", "{named:#}");
    assert!(named["reason"].as_str().unwrap().contains("loses"), "{named:#}");
}

/// A lever that is known since 2.1.243, and one session of an older client.
fn with_an_older_client(to: &str) -> Home {
    let home = home_of(&Kind { pause: 900, ..Kind::default() });
    let last = fs::read_to_string(home.path(".claude/projects/-home-u-p/s13.jsonl")).unwrap();
    home.write(to, last.replace("2.1.290", "2.1.240").replace("s13", "old"));
    home
}

#[test]
fn what_waits_for_an_update_says_what_else_stands_in_its_way() {
    let home = with_an_older_client(".claude/projects/-other/old.jsonl");
    let switch = "DISABLE_PROMPT_CACHING";
    let told = |settings: &str| {
        home.write(".claude/settings.json", settings);
        finding(&home, "S1", LIFETIME, &[])["reason"].to_string()
    };
    let (free, off) = (told("{}"), told(&format!("{{\"env\": {{\"{switch}\": \"1\"}}}}")));
    assert!(free.contains("2.1.240 was in use") && !free.contains(switch), "{free}");
    assert!(off.contains("2.1.240 was in use") && off.contains(switch), "{off}");
}

#[test]
fn a_filter_hides_no_client() {
    let home = with_an_older_client(".claude/projects/-other/old.jsonl");
    for filter in [&["-p", "home-u-p"][..], &["--until", "2026-01-14"]] {
        let found = finding(&home, "S1", LIFETIME, filter);
        assert!(found["verdict"] == "hold" && found["reason"].to_string().contains("2.1.240 was in use"), "{found:#}");
        let advice = home.advice("cache_lifetime_long", filter);
        assert!(advice.starts_with("update Claude Code first: ") && advice.contains("2.1.240 was in use"), "{advice}");
    }
    let outcome = home.run(&[&TUNE[..], &["--dry-run", "-p", "home-u-p"]].concat());
    assert!(outcome.err.contains("are of all your projects, and only those named like"), "{}", outcome.err);
}

#[test]
fn a_clock_that_runs_ahead_hides_no_client() {
    let home = with_an_older_client(".claude/projects/-home-u-p/old.jsonl");
    let last = fs::read_to_string(home.path(".claude/projects/-home-u-p/s13.jsonl")).unwrap();
    home.write(".claude/projects/-home-u-p/ahead.jsonl", last.replace("2026-01-", "2029-01-").replace("s13", "ahead"));
    let found = finding(&home, "S1", LIFETIME, &[]);
    assert!(found["verdict"] == "hold" && found["reason"].to_string().contains("2.1.240 was in use"), "{found:#}");
}

#[test]
fn nothing_is_claimed_of_a_project_that_sets_a_lever_itself() {
    let kind = Kind { pause: 900, ..Kind::default() };
    let home = home_of(&kind);
    home.write("work/.claude/settings.json", "{\"promptCacheTtl\": \"5m\"}");
    // Where there is no other project, nothing would come of it.
    let alone = finding(&home, "S1", LIFETIME, &[]);
    assert!(alone["verdict"] == "skip" && alone["reason"].to_string().contains("too few sessions"), "{alone:#}");
    assert!(alone["evidence"].to_string().contains("one project decides it itself"), "{alone:#}");
    let advice = |id: &str| home.advice(id, &[]);
    let long = "cache_lifetime_long";
    assert!(advice(long).starts_with("first correct this: promptCacheTtl is set by "), "{}", advice(long));
    home.write(".claude/settings.json", "{\"promptCacheTtl\": \"1h\"}");
    let done = "nothing to set: promptCacheTtl is 1h already; in …/work promptCacheTtl is 5m, which wins there";
    assert_eq!(advice(long), done);
    fs::remove_file(home.path(".claude/settings.json")).unwrap();
    // Of two projects the other one is told of, and compared later.
    let other = |home: &Home| {
        told(home, &Kind { cwd: home.path("other").to_str().unwrap().to_owned(), name: "t", ..kind.clone() });
    };
    other(&home);
    let [found, expected] = [home, {
        let home = Home::new();
        other(&home);
        home
    }]
    .map(|home| {
        let found = finding(&home, "S1", LIFETIME, &[]);
        assert_eq!(home.run(&TUNE).exit, Exit::Done);
        let entry = home.json(&["tune", "history"])["entries"][0].clone();
        (found["effect"].clone(), entry["came_true"][0]["billed"]["before"].clone())
    });
    assert_eq!(
        (&found.0["change"], &found.0["usd"], &found.1),
        (&expected.0["change"], &expected.0["usd"], &expected.1)
    );
    let of_bill = |effect: &Value| effect["of_bill"].as_f64().unwrap();
    assert!((of_bill(&found.0) - of_bill(&expected.0) / 2.0).abs() < 1e-9, "{found:?} {expected:?}");
    assert_eq!(found.0["without"].as_array().unwrap().len(), 1, "{found:?}");
}

/// A value that some client does not know is not done, neither for the page nor for the rules.
#[test]
fn what_is_set_and_not_known_to_the_client_in_use_needs_an_update() {
    let home = home_of(&Kind { turns: 45, result: 9_000, tool: "Fetch", version: "2.1.250", ..Kind::default() });
    home.write(".claude/settings.json", "{\"autoCompactWindow\": 150000}");
    let update = "update Claude Code first: autoCompactWindow is documented for 2.1.288";
    let found = finding(&home, "S3", WINDOW, &[]);
    assert!(found["verdict"] == "hint" && found["hint"].to_string().contains(update), "{found:#}");
    let advice = home.advice("context_growth", &[]);
    assert!(advice.contains("already") && advice.contains(update), "{advice}");
}

/// Which clients are in use, all logs say, whatever part is asked about.
#[test]
fn what_is_set_is_not_done_where_a_client_of_another_project_does_not_know_it() {
    let home = growing();
    let last = fs::read_to_string(home.path(".claude/projects/-home-u-p/s13.jsonl")).unwrap();
    home.write(".claude/projects/-other/old.jsonl", last.replace("2.1.290", "2.1.250").replace("s13", "old"));
    home.write(".claude/settings.json", "{\"autoCompactWindow\": 150000}");
    let advice = home.advice("context_growth", &["-p", "home-u-p"]);
    assert!(advice.starts_with("autoCompactWindow is 150000 already, but update Claude Code first: "), "{advice}");
}

#[test]
fn sessions_of_any_project_that_sets_a_lever_itself_are_left_out() {
    let kind = Kind { pause: 900, ..Kind::default() };
    let home = home_of(&kind);
    told(&home, &Kind { cwd: home.path("other").to_str().unwrap().to_owned(), name: "t", ..kind });
    let found = || finding(&home, "S1", LIFETIME, &[]);
    assert!(found()["effect"]["without"].is_null());
    home.write("other/.claude/settings.local.json", "{\"promptCacheTtl\": \"1h\"}");
    let found = found();
    assert_eq!(found["effect"]["without"].as_array().unwrap().len(), 1, "{found:#}");
    assert!(found["evidence"].to_string().contains("one project decides it itself"), "{found:#}");
    // Of all: what several settings save of the bill adds up.
    let out = home.run(&[&TUNE[..], &["--dry-run", "--explain"]].concat()).out;
    assert!(out.contains(" of the whole bill of all later sessions ("), "{out}");
}

/// The current directory may be a project that the logs do not have.
#[test]
fn no_session_is_said_to_be_left_out_of_a_project_without_any() {
    let home = pausing("");
    home.write("work/.claude/settings.json", "{\"promptCacheTtl\": \"5m\"}");
    let found = finding(&home, "S1", LIFETIME, &[]);
    assert!(found["verdict"] == "propose" && !found["evidence"].to_string().contains("left out"), "{found:#}");
}

/// The page tells of a part of the logs what a person may have set already, for that project or for all.
#[test]
fn what_is_to_be_set_for_one_project_is_held_against_what_is_set() {
    let home = home_of(&Kind { pause: 1_200, turns: 10, sessions: 25, ..Kind::default() });
    let other = home.path("other").to_str().unwrap().to_owned();
    told(&home, &Kind { cwd: other.clone(), name: "t", sessions: 3, turns: 60, result: 14_000, ..Kind::default() });
    let advice = || home.advice("cache_lifetime_long", &[]);
    assert!(advice().starts_with("in .claude/settings.json of …/work set \"promptCacheTtl\": \"1h\""), "{}", advice());
    let hour = "{\"promptCacheTtl\": \"1h\"}";
    for (file, text, begins) in [
        (".claude/settings.json", hour, "promptCacheTtl is 1h already: done"),
        ("work/.claude/settings.json", hour, "promptCacheTtl is 1h already: done"),
        (
            "work/.claude/settings.local.json",
            "{\"promptCacheTtl\": \"5m\"}",
            "first correct this: promptCacheTtl is set by ",
        ),
        (".claude/settings.json", "{\"env\": {\"FORCE_PROMPT_CACHING_5M\": \"1\"}}", "first correct this: "),
        // What a project sets wins over what the user's file sets otherwise.
        (".claude/settings.json", "{\"promptCacheTtl\": \"5m\"}", "in .claude/settings.json of …/work set"),
    ] {
        home.write(file, text);
        assert!(advice().starts_with(begins), "{file} {text}: {}", advice());
        fs::remove_file(home.path(file)).unwrap();
    }
    // What was set there and taken back is not advised as if it were new.
    assert_eq!(home.run(&["tune", "claude-settings", "--scope", "project"]).exit, Exit::Done);
    assert_eq!(advice(), "promptCacheTtl is 1h already: done; what is shown here happened without it");
    assert_eq!(home.run(&["tune", "undo"]).exit, Exit::Done);
    assert!(advice().starts_with("promptCacheTtl \"1h\" was taken back on "), "{}", advice());
    fs::remove_file(home.path(".config/devboy/tuning-journal.jsonl")).unwrap();
    // A client of the other project does not read the file of this one.
    told(&home, &Kind { cwd: other, name: "u", sessions: 1, version: "2.1.200", day: 24, ..Kind::default() });
    assert!(advice().starts_with("in .claude/settings.json of …/work set \"promptCacheTtl\": \"1h\""), "{}", advice());
}

/// The page goes by the files of the projects that it is about, wherever one stands.
#[test]
fn what_a_project_elsewhere_sets_is_held_against_what_is_to_be_set() {
    let kind = Kind { pause: 900, ..Kind::default() };
    let home = Home::new();
    told(&home, &Kind { cwd: home.path("far/off").to_str().unwrap().to_owned(), ..kind });
    let advice = || home.advice("cache_lifetime_long", &[]);
    let (users, own) = (".claude/settings.json", "far/off/.claude/settings.json");
    home.write(own, "{\"promptCacheTtl\": \"5m\"}");
    assert!(advice().starts_with("first correct this: promptCacheTtl is set by "), "{}", advice());
    // Whatever the user's file says.
    home.write(users, "{\"promptCacheTtl\": \"5m\"}");
    assert!(advice().starts_with("first correct this: promptCacheTtl is set by "), "{}", advice());
    // Of two projects the one is told of beside the other.
    fs::remove_file(home.path(users)).unwrap();
    told(&home, &Kind { cwd: home.path("near").to_str().unwrap().to_owned(), name: "t", ..kind });
    for lifetime in ["5m", "1h"] {
        home.write(own, json!({ "promptCacheTtl": lifetime }).to_string());
        let told = format!("; in …/off, where it wins, promptCacheTtl is {lifetime} now: ");
        assert!(advice().contains(&told), "{}", advice());
    }
}

/// A variable of the shell, or of the user's file, that the project takes away, is in no way there.
#[test]
fn a_variable_that_a_project_takes_away_stands_in_no_way() {
    let home = home_of(&Kind { pause: 900, ..Kind::default() });
    home.variables.lock().unwrap().push("FORCE_PROMPT_CACHING_5M".to_owned());
    let advice = || home.advice("cache_lifetime_long", &[]);
    home.write("work/.claude/settings.json", "{\"promptCacheTtl\": \"1h\"}");
    assert!(advice().starts_with("first correct this: promptCacheTtl is set by the variable "), "{}", advice());
    home.write("work/.claude/settings.json", "{\"env\": {\"FORCE_PROMPT_CACHING_5M\": \"\"}}");
    assert!(advice().starts_with("in ~/.claude/settings.json set \"promptCacheTtl\": \"1h\""), "{}", advice());
}

/// The current directory is named in full.
#[test]
fn a_note_about_the_project_at_hand_names_it() {
    let home = pausing("");
    let work = home.path("work").to_str().unwrap().to_owned();
    let folder: String = work.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    fs::rename(home.logs().join("-home-u-p"), home.logs().join(folder)).unwrap();
    let err = home.run(&[&TUNE[..], &["--dry-run", "-p", "."]].concat()).err;
    assert!(err.contains(&format!("only those named like {work:?} are looked at")), "{err}");
}

/// A switch that does the same may be known to clients that do not know the setting.
#[test]
fn what_a_known_switch_has_set_needs_no_update() {
    let home = home_of(&Kind { pause: 900, version: "2.1.240", ..Kind::default() });
    home.write(".claude/settings.json", "{\"env\": {\"ENABLE_PROMPT_CACHING_1H\": \"1\"}}");
    let advice = home.advice("cache_lifetime_long", &[]);
    assert!(advice.starts_with("ENABLE_PROMPT_CACHING_1H makes it 1h already: done"), "{advice}");
    assert!(!advice.contains("update Claude Code"), "{advice}");
}

/// The user's file holds for all projects, whichever were asked about.
#[test]
fn a_page_about_some_projects_says_whose_file_it_names() {
    let home = home_of(&Kind { pause: 900, ..Kind::default() });
    let told = |more: &[&str]| home.run(&[&["report"], more].concat()).out;
    let note = "this file holds for all of them";
    assert!(told(&["-p", "home"]).contains(note), "{}", told(&["-p", "home"]));
    assert!(!told(&[]).contains(note), "{}", told(&[]));
}

/// The client reads what one person sets for a project at the root of the repository.
#[test]
fn nothing_is_claimed_where_the_file_of_one_person_reaches() {
    let home = Home::new();
    home.write("work/.git/HEAD", "");
    for (name, at) in [("s", "work"), ("t", "work/deep"), ("u", "other")] {
        told(&home, &Kind { pause: 900, cwd: home.path(at).to_str().unwrap().to_owned(), name, ..Kind::default() });
    }
    let sessions = |file: &str| {
        home.write(file, "{\"promptCacheTtl\": \"5m\"}");
        let found = finding(&home, "S1", LIFETIME, &[]);
        fs::remove_file(home.path(file)).unwrap();
        let effect = &found["effect"];
        effect["sessions"].as_u64().unwrap() + effect["chosen_on"].as_u64().unwrap()
    };
    assert_eq!(sessions("work/.claude/settings.json"), 28);
    assert_eq!(sessions("work/.claude/settings.local.json"), 14);
}

#[test]
fn a_variable_of_the_shell_is_taken_away_by_the_file() {
    let home = pausing("");
    home.variables.lock().unwrap().push("FORCE_PROMPT_CACHING_5M".to_owned());
    let found = finding(&home, "S1", LIFETIME, &[]);
    let way = "\"env\": { \"FORCE_PROMPT_CACHING_5M\": \"\" } in the file takes it away";
    assert!(found["verdict"] == "hold" && found["reason"].as_str().unwrap().contains(way), "{found:#}");
    home.write(".claude/settings.json", "{\"env\": { \"FORCE_PROMPT_CACHING_5M\": \"\" }}");
    assert_eq!(finding(&home, "S1", LIFETIME, &[])["verdict"], "propose");
}

#[test]
fn what_is_set_for_a_model_that_nobody_uses_stands_in_no_way() {
    let home = growing();
    let window = |model: &str| {
        let settings = format!("{{\"modelSettings\": {{\"{model}\": {{\"autoCompactWindow\": 120000}}}}}}");
        home.write(".claude/settings.json", settings);
        let advice = home.advice("context_growth", &[]);
        (finding(&home, "S3", WINDOW, &[])["verdict"].clone(), advice.starts_with("first correct this: "))
    };
    assert_eq!(window("claude-haiku-4-5"), (json!("propose"), false));
    assert_eq!(window("claude-opus-4"), (json!("propose"), false));
    for same in ["claude-opus-4-5", "claude-opus-4-5-20251101", "claude-opus-4-5[1m]"] {
        assert_eq!(window(same), (json!("hold"), true), "{same}");
    }
    let lifetime = |family: &str| {
        let home = pausing(&format!("{{\"env\": {{\"DISABLE_PROMPT_CACHING_{family}\": \"1\"}}}}"));
        finding(&home, "S1", LIFETIME, &[])["verdict"].clone()
    };
    assert_eq!((lifetime("HAIKU"), lifetime("OPUS")), (json!("propose"), json!("hold")));
}

/// What is switched off for models of subagents only is nothing to main threads, and the other way round.
#[test]
fn what_is_switched_off_for_the_models_of_other_threads_stands_in_no_way() {
    let home = home_of(&Kind { pause: 900, agent: true, ..Kind::default() });
    for (family, main, subagents) in [("SONNET", "propose", "hold"), ("OPUS", "hold", "propose")] {
        home.write(".claude/settings.json", format!("{{\"env\": {{\"DISABLE_PROMPT_CACHING_{family}\": \"1\"}}}}"));
        let verdict = |rule: &str, subject: &str| finding(&home, rule, subject, &[])["verdict"].clone();
        let verdicts = [verdict("S1", LIFETIME), verdict("S2", "cache lifetime, subagents")];
        assert_eq!(verdicts, [main, subagents], "{family}");
    }
}

/// What is set for another model takes away nothing that the search looks beside.
#[test]
fn the_search_looks_beside_what_is_set_for_the_models_in_use() {
    let home = growing();
    let window = |more: &str| {
        home.write(".claude/settings.json", format!("{{\"autoCompactWindow\": 150000{more}}}"));
        let found = home.json(&["tune", "search", "--dry-run"]);
        let rows = found["claude_settings"].as_array().unwrap();
        rows.iter().find(|row| row["setting"].as_str().unwrap().starts_with("window")).cloned()
    };
    let other = ", \"modelSettings\": {\"claude-fable-5\": {\"autoCompactWindow\": 400000}}";
    assert_eq!(window(other), window(""));
}

/// A file of one person that the client cannot read hides nothing of what the project sets for everybody.
#[test]
fn a_broken_local_file_leaves_what_the_project_sets() {
    let home = home_of(&Kind { pause: 900, ..Kind::default() });
    home.write("work/.claude/settings.json", "{\"promptCacheTtl\": \"5m\"}");
    home.write("work/.claude/settings.local.json", "{ broken");
    let found = finding(&home, "S1", LIFETIME, &[]);
    assert!(found["evidence"].to_string().contains("one project decides it itself"), "{found:#}");
}

/// A stronger file with a value that the client ignores decides nothing; one that takes a variable away does.
#[test]
fn a_value_that_the_client_ignores_stands_in_no_way() {
    let home = home_of(&Kind { pause: 900, ..Kind::default() });
    let verdict = |local: &str| {
        home.write("work/.claude/settings.local.json", local);
        finding(&home, "S1", LIFETIME, &["--scope", "project"])["verdict"].clone()
    };
    assert_eq!(verdict("{\"promptCacheTtl\": \"10m\"}"), "propose");
    assert_eq!(verdict("{\"promptCacheTtl\": \"5m\"}"), "hold");
    // What holds is what stands below it.
    home.write("work/.claude/settings.json", "{\"promptCacheTtl\": \"1h\"}");
    home.write("work/.claude/settings.local.json", "{\"promptCacheTtl\": \"10m\"}");
    assert_ne!(finding(&home, "S1", LIFETIME, &["--scope", "local"])["verdict"], "propose");
}

#[test]
fn a_table_that_stood_empty_stays() {
    for (before, after) in [("{\"env\": {}}", json!({"mine": 1, "env": {}})), ("{}", json!({"mine": 1}))] {
        let home = home_of(&Kind { turns: 45, result: 9_000, tool: "Fetch", version: "2.1.250", ..Kind::default() });
        let path = home.write(".claude/settings.json", before);
        assert_eq!(home.run(&TUNE).exit, Exit::Done);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("CLAUDE_CODE_AUTO_COMPACT_WINDOW"), "{text}");
        fs::write(&path, text.replacen('{', "{\"mine\": 1, ", 1)).unwrap();
        let undone = home.run(&["tune", "undo"]);
        assert_eq!(undone.exit, Exit::Done, "{}", undone.err);
        let held: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(held, after);
    }
}

#[test]
fn tools_that_would_be_sent_at_once_anyway_are_no_hint() {
    let told = |more: &str, variables: &[&str]| {
        let home = pausing(&format!("{{\"env\": {{\"ENABLE_TOOL_SEARCH\": \"false\"{more}}}}}"));
        home.variables.lock().unwrap().extend(variables.iter().map(|set| (*set).to_owned()));
        finding(&home, "S5", "tool search", &[])["verdict"].clone()
    };
    assert_eq!(told("", &[]), "hint");
    assert_eq!(told("", &["ANTHROPIC_BASE_URL=https://api.anthropic.com/v1"]), "hint");
    assert_eq!(told("", &["ANTHROPIC_BASE_URL=https://gateway.example/anthropic"]), "skip");
    assert_eq!(told(", \"ANTHROPIC_BASE_URL\": \"\"", &["ANTHROPIC_BASE_URL=https://gateway.example"]), "hint");
    assert_eq!(told(", \"CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS\": \"1\"", &[]), "skip");
}

/// What the shell says stands in no file: the hint says where it is, and how a file takes it away.
#[test]
fn a_search_for_tools_that_the_shell_switches_off_is_told_of_the_shell() {
    let home = pausing("");
    home.variables.lock().unwrap().push("ENABLE_TOOL_SEARCH=false".to_owned());
    let words = finding(&home, "S5", "tool search", &[])["hint"].to_string();
    assert!(words.contains("the variable ENABLE_TOOL_SEARCH of the shell is") && !words.contains("`env."), "{words}");
    assert!(words.contains("in the file takes it away"), "{words}");
}

#[test]
fn a_retention_that_the_client_does_not_take_is_not_set() {
    let kept = |days: &str| {
        let found = finding(&pausing(&format!("{{\"cleanupPeriodDays\": {days}}}")), "S8", "retention of logs", &[]);
        (found["verdict"].clone(), found["evidence"].to_string().contains("30 days unless something else is set"))
    };
    for not_taken in ["0", "-5", "\"x\""] {
        assert_eq!(kept(not_taken), (json!("hint"), true), "{not_taken}");
    }
    assert_eq!((kept("365.0"), kept("40")), ((json!("skip"), false), (json!("hint"), false)));
}

/// A project with an old client that nobody has used since.
#[test]
fn who_has_updated_since_is_not_told_to_update_whatever_part_is_asked_about() {
    let home = home_of(&Kind { pause: 900, version: "2.1.240", ..Kind::default() });
    let last = fs::read_to_string(home.path(".claude/projects/-home-u-p/s13.jsonl")).unwrap();
    let newer = last.replace("2.1.240", "2.1.290").replace("2026-01-", "2026-03-").replace("s13", "new");
    home.write(".claude/projects/-other/new.jsonl", newer);
    for part in [&["-p", "home-u-p"][..], &["--until", "2026-01-30"]] {
        let advice = home.advice("cache_lifetime_long", part);
        assert!(advice.starts_with("in ~/.claude/settings.json set \"promptCacheTtl\": \"1h\""), "{part:?}: {advice}");
        assert_eq!(finding(&home, "S1", LIFETIME, part)["verdict"], "propose", "{part:?}");
    }
}

#[test]
fn what_has_no_price_is_said_to_be_left_out() {
    let home = home_of(&Kind { pause: 900, ..Kind::default() });
    let effect = || finding(&home, "S1", LIFETIME, &[])["effect"]["unpriced"].as_f64().unwrap();
    assert_eq!(effect(), 0.0);
    let path = home.path(".claude/projects/-home-u-p/s13.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("claude-opus-4-5", "of-tomorrow-9")).unwrap();
    assert!(0.1 < effect() && effect() < 0.2);
    let out = home.run(&[&TUNE[..], &["--dry-run"]].concat()).out;
    assert!(out.contains(" of these requests have no price and are left out; the simulation is"), "{out}");
}

#[test]
fn the_users_home_is_no_project() {
    let at = |project: &str| {
        let home = Some("/home/u/.claude".into());
        ClaudePlaces { home, project: Some(project.into()), ..ClaudePlaces::default() }.scope(SettingsScope::Project)
    };
    assert_eq!(at("/home/u"), SettingsScope::User);
    assert_eq!(at("/home/u/work"), SettingsScope::Project);
}

#[test]
fn the_variable_that_wins_in_the_file_is_what_is_changed() {
    let home = growing();
    home.write(".claude/settings.json", "{\"env\": {\"CLAUDE_CODE_AUTO_COMPACT_WINDOW\": \"400000\"}}");
    let found = finding(&home, "S3", WINDOW, &[]);
    assert_eq!((&found["verdict"], &found["new"]), (&json!("propose"), &json!("150000")), "{found:#}");
    assert_eq!(found["key"], "env.CLAUDE_CODE_AUTO_COMPACT_WINDOW");
}

#[test]
fn a_limit_that_is_set_is_not_raised_as_a_saving() {
    let home = home_of(&filling());
    home.write(".claude/settings.json", "{\"env\": {\"MAX_MCP_OUTPUT_TOKENS\": \"999\"}}");
    let found = finding(&home, "S4", "results of MCP tools", &[]);
    assert!(
        found["verdict"] == "skip" && found["reason"].to_string().contains("no value is cheaper than 999"),
        "{found:#}"
    );
}

#[test]
fn of_several_models_the_one_counts_that_the_client_takes() {
    let home = Home::new();
    let windows = "{\"a\": {\"autoCompactWindow\": 5}, \"b\": {\"autoCompactWindow\": 200000}}";
    let path = home.write("settings.json", format!("{{\"modelSettings\": {windows}}}"));
    let layers = SettingsLayers::load(&ClaudePlaces::default(), SettingsScope::User, &path).unwrap();
    let levers = Levers::load(&Data::default()).unwrap();
    let window = levers.named("autoCompactWindow").unwrap();
    let obstacle = layers.overridden(window, &window.key(None).unwrap(), &levers).unwrap().unwrap();
    assert!(obstacle.why.contains("modelSettings.b.autoCompactWindow"), "{}", obstacle.why);
}

#[test]
fn a_client_without_a_version_is_named() {
    let home = pausing("");
    let path = home.path(".claude/projects/-home-u-p/s13.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"2.1.290\"", "\"\"")).unwrap();
    let err = home.run(&[&TUNE[..], &["--dry-run"]].concat()).err;
    assert!(err.contains("clients of the last weeks: a client without a version, 2.1.290"), "{err}");
}

#[test]
fn hints_go_by_what_is_set_and_used() {
    let home = home_of(&Kind { agent: true, ..Kind::default() });
    home.write("work/.mcp.json", "{\"mcpServers\": {\"idle\": {\"url\": \"y\"}}}");
    let server = |settings: &str| {
        home.write(".claude/settings.json", settings);
        finding(&home, "S5", "idle", &["--scope", "local"])
    };
    let words = server("{}")["hint"].to_string();
    assert!(words.contains("deniedMcpServers") && words.contains("mcp__idle"), "{words}");
    for (settings, lever) in [
        ("{\"deniedMcpServers\": [{\"serverName\": \"idle\"}]}", "deniedMcpServers"),
        ("{\"permissions\": {\"deny\": [\"mcp__idle\"]}}", "permissions.deny"),
    ] {
        let found = server(settings);
        assert_eq!(found["reason"], format!("`{lever}` leaves it out already"), "{found:#}");
    }
    let model = |settings: &str| {
        home.write(".claude/settings.json", settings);
        finding(&home, "S7", "model of subagents", &[])["verdict"].clone()
    };
    assert_eq!(model("{}"), "hint");
    assert_eq!(model("{\"env\": {\"CLAUDE_CODE_SUBAGENT_MODEL\": \"haiku\"}}"), "skip");
    assert_eq!(finding(&home, "S6", "list of skills", &[])["verdict"], "hint");
    let path = home.path(".claude/projects/-home-u-p/s03.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("please go on with step 2", "Base directory for this skill: /x")).unwrap();
    assert_eq!(finding(&home, "S6", "list of skills", &[])["verdict"], "skip");
}

/// What another project used says nothing of this one, and of resources nothing says which server has them.
#[test]
fn hints_about_a_project_go_by_what_it_used() {
    let home = home_of(&Kind { tool: "ReadMcpResourceTool", ..Kind::default() });
    home.write("work/.mcp.json", "{\"mcpServers\": {\"idle\": {\"url\": \"y\"}}}");
    let idle = || finding(&home, "S5", "idle", &["--scope", "project"]);
    let found = idle();
    assert!(
        found["verdict"] == "skip" && found["reason"].to_string().contains("resources of some server"),
        "{found:#}"
    );
    assert!(found["evidence"].to_string().contains("; 84 calls for resources of some server"), "{found:#}");
    told(&home, &Kind { name: "t", ..Kind::default() });
    let path = home.path(".claude/projects/-home-u-p/t03.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let again = json!({ "type": "invoked_skills", "skills": [] });
    let again =
        Record::new("attachment", "").session("t03").link("t03-again", Some("t03-false-24")).set("attachment", again);
    fs::write(&path, text + &again.set("cwd", "/home/u/p").line()).unwrap();
    let skills = |scope: &str| {
        let found = finding(&home, "S6", "list of skills", &["--scope", scope]);
        (found["verdict"].clone(), found["evidence"]["counts"].as_str().unwrap().to_owned())
    };
    assert_eq!(skills("project"), (json!("hint"), "0 uses of skills in 14 sessions".to_owned()));
    let all = "0 uses of skills in 28 sessions; 1 text of skills sent again after a compaction";
    assert_eq!(skills("user"), (json!("skip"), all.to_owned()));
}

#[test]
fn a_hint_is_held_where_a_stronger_file_decides() {
    let home = home_of(&Kind::default());
    let retention = || finding(&home, "S8", "retention of logs", &["--scope", "project"]);
    assert_eq!(retention()["verdict"], "hint");
    home.write("work/.claude/settings.local.json", "{\"cleanupPeriodDays\": 30}");
    let found = retention();
    assert!(
        found["verdict"] == "hold" && found["reason"].to_string().contains("cannot be overridden here"),
        "{found:#}"
    );
}
