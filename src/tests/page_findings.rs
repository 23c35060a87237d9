//! Findings of the page about what stands beside the conversation: subagents, versions, images, servers, hooks. Each is found
//! where it was planted, with its price, and is silent where nothing is wrong.

use std::fs;

use serde_json::{Value, json};

use super::harness::Home;
use super::log_builder::{Record, answers};
use super::report_page::{OPUS, Told, finding, home_with_swaps, place, report};
use crate::base::data::Data;
use crate::cost::findings::thresholds::FindingThresholds;

const CHEAP: &str = "claude-sonnet-5-5";
const WRITE: f64 = 6.25 / 1e6;
const READ: f64 = 0.5 / 1e6;
const OUTPUT: f64 = 25.0 / 1e6;
const INPUT: f64 = 5.0 / 1e6;
/// Code points of a token of text (rules/policies/sizes.toml).
const CHARS_PER_TOKEN: f64 = 4.14;

fn saved(found: &Value) -> f64 {
    found["saved_usd"].as_f64().unwrap()
}

fn evidence(home: &Home, id: &str) -> Value {
    home.json(&["report", "--finding", id])
}

/// Six sessions with a small main thread, each with a subagent on a model.
fn home_with_subagents(model: &str) -> Home {
    home_with_agents(model, "lamplighter")
}

/// The same with agents of a kind.
fn home_with_agents(model: &str, kind: &str) -> Home {
    let home = Home::new();
    for number in 0..6 {
        let session = format!("s-{number}");
        let mut told = Told::new(&session, "/home/user/lantern", number * 43_200);
        told.ask(CHEAP, 0, 5_000, 100).ask(CHEAP, 5_000, 200, 100);
        place(&home, &told);
        let mut agent = Told::new(&session, "/home/user/lantern", number * 43_200 + 600);
        agent.ask(model, 0, 20_000, 400).ask(model, 20_000, 1_000, 400);
        let lines = agent.text.lines().map(|line| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            (record["isSidechain"], record["agentId"]) = (json!(true), json!(format!("a{number}")));
            let name = |field: &str| json!(format!("agent-{}", record[field].as_str().unwrap_or_default()));
            let (uuid, message) =
                (name("uuid"), record["message"]["id"].as_str().map(|id| json!(format!("agent-{id}"))));
            let parent = if record["parentUuid"].is_string() { name("parentUuid") } else { Value::Null };
            (record["uuid"], record["parentUuid"]) = (uuid, parent);
            message.into_iter().for_each(|id| record["message"]["id"] = id);
            format!("{record}\n")
        });
        let file = format!(".claude/projects/-home-user-lantern/{session}/subagents/agent-a{number}");
        home.write(&format!("{file}.jsonl"), lines.collect::<String>());
        home.write(&format!("{file}.meta.json"), json!({ "agentType": kind }).to_string());
    }
    home
}

#[test]
fn subagents_on_an_expensive_model_are_held_against_a_cheaper_one_at_list_prices() {
    let home = home_with_subagents(OPUS);
    let page = report(&home, &[]);
    let found = finding(&page, "subagent_model").unwrap_or_else(|| panic!("{page:#}"));
    let billed = 6.0 * (10.0 * INPUT + 21_000.0 * WRITE + 20_000.0 * READ + 800.0 * OUTPUT);
    // Every rate of the cheaper model is two fifths of the expensive one's.
    assert!((saved(found) - 0.6 * billed).abs() < 1e-6, "{} of {billed}: {found:#}", saved(found));
    assert_eq!((&found["count"], &found["basis"]), (&json!(12), &json!("priced")));
    let advice = found["advice"].as_str().unwrap();
    assert!(advice.contains("\"CLAUDE_CODE_SUBAGENT_MODEL\": \"sonnet\"") && advice.contains("in no log"), "{advice}");
    assert!(found["where"].as_str().unwrap().starts_with("at most "), "{found:#}");
    // No command writes what is only priced.
    let out = home.run(&[]).out;
    assert!(out.contains("Subagents ran on expensive models") && !out.contains("Settings: `devboy tune"), "{out}");
    let made_of = &evidence(&home, "subagent_model")["made_of"];
    assert_eq!((&made_of[0]["agent type"], &made_of[0]["model"]), (&json!("lamplighter"), &json!(OPUS)), "{made_of:#}");
    let shared = home.run(&["--finding", "subagent_model", "--redact"]).out;
    assert!(shared.contains("agent A") && !shared.contains("lamplighter"), "{shared}");
}

/// What a project sets of it wins there, the same or another model.
#[test]
fn the_model_of_subagents_that_a_project_sets_is_held_against_the_finding() {
    let home = home_with_subagents(OPUS);
    let work = json!(home.path("work").to_str().unwrap()).to_string();
    for number in 0..6 {
        for file in [format!("s-{number}"), format!("s-{number}/subagents/agent-a{number}")] {
            let path = format!(".claude/projects/-home-user-lantern/{file}.jsonl");
            let text = fs::read_to_string(home.path(&path)).unwrap();
            home.write(&path, text.replace("\"/home/user/lantern\"", &work).replace("2.1.40", "2.1.290"));
        }
    }
    for (model, begins) in [
        ("sonnet", "CLAUDE_CODE_SUBAGENT_MODEL is \"sonnet\" already: done"),
        ("opus", "first correct this: CLAUDE_CODE_SUBAGENT_MODEL is set by "),
    ] {
        let settings = json!({ "env": { "CLAUDE_CODE_SUBAGENT_MODEL": model } });
        home.write("work/.claude/settings.json", settings.to_string());
        let page = report(&home, &[]);
        let found = finding(&page, "subagent_model").unwrap_or_else(|| panic!("{page:#}"));
        assert!(found["advice"].as_str().unwrap().starts_with(begins), "{model}: {found:#}");
    }
}

/// Another model is put in the place of one that the client may not pick.
#[test]
fn a_model_that_may_not_be_picked_is_not_told_to_be_set_before_it_may() {
    let home = home_with_subagents(OPUS);
    for (models, is_left_out) in
        [("[\"opus\"]", true), ("[\"opus\", \"sonnet\"]", false), ("[\"claude-sonnet-5-5\"]", false)]
    {
        home.write(".claude/settings.json", format!("{{\"availableModels\": {models}}}"));
        let page = report(&home, &[]);
        let advice = finding(&page, "subagent_model").unwrap_or_else(|| panic!("{page:#}"))["advice"].as_str().unwrap();
        let first = "first correct this: \"sonnet\" of CLAUDE_CODE_SUBAGENT_MODEL is not among the models of availableModels in ";
        assert_eq!(advice.starts_with(first), is_left_out, "{models}: {advice}");
    }
}

/// The variable does not move what comes with the client.
#[test]
fn the_clients_own_agents_are_no_finding() {
    for kind in ["Explore", "Plan", "prompt-suggestion"] {
        let page = report(&home_with_agents(OPUS, kind), &[]);
        assert!(finding(&page, "subagent_model").is_none(), "{kind}: {page:#}");
    }
}

/// The variable does not reach a subagent for which the call names a model.
#[test]
fn subagents_whose_model_the_call_names_are_no_finding() {
    for (input, is_told) in [
        (json!({ "subagent_type": "lamplighter" }), true),
        (json!({ "subagent_type": "lamplighter", "model": "opus" }), false),
        (json!({ "model": "opus" }), false),
    ] {
        let home = home_with_subagents(OPUS);
        for number in 0..6 {
            let mut told = Told::new(&format!("s-{number}"), "/home/user/lantern", number * 43_200);
            told.ask(CHEAP, 0, 5_000, 100).ask(CHEAP, 5_000, 200, 100);
            told.number += 1;
            told.answer(
                CHEAP,
                (5_200, 100, 50),
                json!({ "type": "tool_use", "id": "c1", "name": "Agent", "input": input }),
            );
            let result = answers("c1", json!("lit")).set("toolUseResult", json!({ "agentId": format!("a{number}") }));
            told.push("result", result);
            place(&home, &told);
        }
        let page = report(&home, &[]);
        assert_eq!(finding(&page, "subagent_model").is_some(), is_told, "{input}: {page:#}");
    }
}

#[test]
fn subagents_on_the_cheaper_model_are_no_finding() {
    for model in [CHEAP, "claude-sonnet-4-6", "claude-haiku-4-5", "claude-unheard-of-9"] {
        let page = report(&home_with_subagents(model), &[]);
        assert!(finding(&page, "subagent_model").is_none(), "{model}: {page:#}");
    }
}

/// Ten sessions of each version, an hour apart from a day on; one loses the cache once, if so many tokens are lost.
fn home_with_versions(versions: &[(&str, u64, u32)]) -> Home {
    let home = Home::new();
    for (place, (version, lost, from_day)) in (0..).zip(versions) {
        for number in 10 * place..10 * place + 10 {
            let mut told = Told::new(&format!("v-{number}"), "/home/user/lantern", from_day * 86_400 + number * 3_600);
            told.ask(OPUS, 0, 60_000, 50).ask(OPUS, 60_000, 500, 50);
            let lost = lost + u64::from(number % 10) * 10;
            if lost >= 1_000 {
                told.ask(OPUS, 60_500 - lost, lost + 500, 50).ask(OPUS, 61_000, 500, 50);
            } else {
                told.ask(OPUS, 60_500, 500, 50).ask(OPUS, 61_000, 500, 50);
            }
            let text = told.text.replace("2.1.40", version);
            home.write(&format!(".claude/projects/-home-user-lantern/v-{number}.jsonl"), text);
        }
    }
    home
}

#[test]
fn a_version_in_use_that_loses_the_cache_more_often_than_newer_ones_is_told() {
    let home = home_with_versions(&[("2.1.205", 58_000, 0), ("2.1.219", 0, 0)]);
    let page = report(&home, &[]);
    let found = finding(&page, "old_version").unwrap_or_else(|| panic!("{page:#}"));
    // What newer clients lose, nothing, is what is left.
    let lost: f64 = (0..10).map(|number| (58_000.0 + 10.0 * f64::from(number)) * (WRITE - READ)).sum();
    assert!((saved(found) - lost).abs() < 0.01 * lost, "{} for {lost}: {found:#}", saved(found));
    assert_eq!(found["count"], 10, "{found:#}");
    assert!(found["advice"].as_str().unwrap().contains("update Claude Code to 2.1.219"), "{found:#}");
    // Ten sessions without a loss may be of many of which a quarter has one.
    assert!(found["advice"].as_str().unwrap().contains("newer ones at most 27.8 %"), "{found:#}");
    assert_eq!(evidence(&home, "old_version")["made_of"][0]["version"], "2.1.205");
}

#[test]
fn of_several_versions_the_largest_share_is_told() {
    let home = home_with_versions(&[("2.1.203", 6_000, 0), ("2.1.205", 58_000, 0), ("2.1.219", 0, 0)]);
    let page = report(&home, &[]);
    let advice = finding(&page, "old_version").unwrap_or_else(|| panic!("{page:#}"))["advice"].as_str().unwrap();
    // 58,000 of 61,500 written tokens are written twice, and 6,000.
    let share =
        |lost: f64| 100.0 * lost * (WRITE - READ) / (61_500.0 * WRITE + lost * WRITE + (181_500.0 - lost) * READ);
    let told: f64 = advice.split(" %").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(share(6_000.0) < 10.0 && share(58_000.0) > 10.0, "one digit against two");
    assert!((told - share(58_000.0)).abs() < 0.5, "{told} for {}: {advice}", share(58_000.0));
}

#[test]
fn versions_that_are_alike_or_out_of_use_or_better_than_newer_ones_are_no_finding() {
    // What the fourth one loses, a fifth of its input, ten newer sessions without a loss do not contradict.
    for (old, new, days) in [(58_000, 58_000, 0), (58_000, 0, 12), (0, 58_000, 0), (20_000, 0, 0)] {
        let page = report(&home_with_versions(&[("2.1.205", old, 0), ("2.1.219", new, days)]), &[]);
        assert!(finding(&page, "old_version").is_none(), "{old} {new} {days}: {page:#}");
    }
}

/// Clients with all repairs that are known leave nothing to update, unless some of them are older than others.
#[test]
fn what_an_update_stops_is_not_said_to_be_stopped_by_nothing() {
    let misses = |versions: &[(&str, u64, u32)]| {
        let page = report(&home_with_versions(versions), &[]);
        let mut unsettable = page["nothing_to_set"].as_array().unwrap().iter();
        let found = unsettable.find(|found| found["id"] == "miss_unknown_at_prompt");
        let found = found.unwrap_or_else(|| panic!("{page:#}"));
        (finding(&page, "old_version").is_some(), found["advice"].as_str().unwrap().to_owned())
    };
    let (is_told, advice) = misses(&[("2.1.299", 0, 0), ("2.1.290", 58_000, 0)]);
    assert!(is_told && advice.starts_with("what an older client has more of"), "{advice}");
    let (is_told, advice) = misses(&[("2.1.290", 58_000, 0), ("2.1.299", 58_000, 0)]);
    assert!(!is_told && advice.starts_with("the clients in use have the repairs"), "{advice}");
}

/// What the last sessions no longer do is no advice, if they are not too few or too short to say so.
#[test]
fn what_no_later_session_does_is_no_finding() {
    for (sessions, requests, is_told) in [(4, 4, true), (6, 4, false), (6, 1, true)] {
        let home = home_with_swaps(12);
        for number in 12..12 + sessions {
            let mut told = Told::new(&format!("s-{number}"), "/home/user/lantern", number * 43_200);
            told.ask(OPUS, 0, 40_000, 500);
            (1..requests).for_each(|turn| _ = told.ask(OPUS, 39_500 + turn * 500, 500, 500));
            place(&home, &told);
        }
        let page = report(&home, &[]);
        let found = finding(&page, "miss_model_swap").is_some();
        assert_eq!(found, is_told, "{sessions} sessions of {requests} requests: {page:#}");
    }
}

/// In one project it goes on; another one, in which it happened once, was worked on last.
#[test]
fn what_goes_on_in_one_project_is_not_over_in_another() {
    let home = home_with_swaps(12);
    for number in 12..24 {
        let mut told = Told::new(&format!("s-{number}"), "/home/user/orchard", number * 43_200);
        told.ask(OPUS, 0, 60_000, 500);
        if number == 12 {
            told.ask(CHEAP, 0, 60_500, 500);
        }
        (1..4).for_each(|turn| _ = told.ask(OPUS, 59_500 + turn * 500, 500, 500));
        place(&home, &told);
    }
    let page = report(&home, &[]);
    assert!(finding(&page, "miss_model_swap").is_some(), "{page:#}");
}

#[test]
fn what_is_seldom_is_over_later_than_what_is_frequent() {
    let lately = FindingThresholds::load(&Data::default()).unwrap().lately;
    let over = |with: usize, every: usize, without: usize| {
        let had = (0..with * every).map(|place| place % every == every - 1);
        lately.is_over(&had.chain(std::iter::repeat_n(false, without)).collect::<Vec<bool>>())
    };
    assert_eq!([over(6, 1, 0), over(6, 1, 4), over(6, 1, 5)], [false, false, true]);
    assert_eq!([over(6, 5, 5), over(6, 5, 19), over(6, 5, 60)], [false, false, true]);
    assert!(!over(1, 1, 20), "once is no habit that ended");
}

/// Which clients are in use, all logs say, whatever part is asked about.
#[test]
fn an_old_version_that_nobody_uses_any_more_is_no_finding_of_any_part() {
    let home = home_with_versions(&[("2.1.205", 58_000, 0), ("2.1.219", 0, 0)]);
    assert!(finding(&report(&home, &["-p", "lantern"]), "old_version").is_some());
    let mut later = Told::new("later", "/home/user/meadow", 12 * 86_400);
    place(&home, later.ask(OPUS, 0, 1_000, 50));
    let page = report(&home, &["-p", "lantern"]);
    assert!(finding(&page, "old_version").is_none(), "{page:#}");
}

/// Six sessions in which a tool answers with so many tokens, which are carried for twenty requests.
fn home_with_answers(content: &Value) -> Home {
    let home = Home::new();
    for number in 0..6 {
        let mut told = Told::new(&format!("i-{number}"), "/home/user/lantern", number * 43_200);
        told.ask(OPUS, 0, 10_000, 10).call(OPUS, (10_000, 100, 100), "mcp__atlas__shot", content.clone());
        told.ask(OPUS, 10_100, 1_900, 10);
        (1..20).for_each(|turn| _ = told.ask(OPUS, 12_000 + turn * 20, 20, 10));
        place(&home, &told);
    }
    home
}

#[test]
fn images_in_results_cost_what_came_in_with_them_and_was_carried() {
    let picture =
        json!([{ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" } }]);
    let home = home_with_answers(&picture);
    let page = report(&home, &[]);
    let found = finding(&page, "images").unwrap_or_else(|| panic!("{page:#}"));
    // About 1,700 of the 1,900 tokens that came in, with what the prompt beside them takes.
    let most = 6.0 * 1_900.0 * (WRITE + 19.0 * READ);
    assert!((0.8 * most..most).contains(&saved(found)), "{} of {most}: {found:#}", saved(found));
    assert_eq!(found["count"], 6);
    let made_of = &evidence(&home, "images")["made_of"];
    assert_eq!((&made_of[0]["tool"], &made_of[0]["count"]), (&json!("mcp__atlas__shot"), &json!(6)));
    let shared = home.run(&["--redact"]).out;
    assert!(shared.contains("server A: shot") && !shared.contains("atlas"), "{shared}");
}

#[test]
fn results_of_text_are_no_images() {
    let page = report(&home_with_answers(&json!("a line of text\n".repeat(500))), &[]);
    assert!(finding(&page, "images").is_none(), "{page:#}");
}

/// Six sessions that are given two servers with so many code points each; one is called, and the other if `is_called`.
fn home_with_servers(chars: usize, is_called: bool) -> Home {
    let home = Home::new();
    for number in 0..6 {
        let mut told = Told::new(&format!("m-{number}"), "/home/user/lantern", number * 43_200);
        let names = json!(["mcp__atlas__find", "mcp__atlas__show", "mcp__beacon__blink", "WebFetch"]);
        told.attach(
            json!({ "type": "deferred_tools_delta", "addedNames": names, "addedLines": names, "removedNames": [] }),
        );
        let text = |name: &str| format!("{name} {}", "x".repeat(chars - name.len() - 1));
        told.attach(json!({
            "type": "mcp_instructions_delta", "addedNames": ["atlas", "beacon"],
            "addedBlocks": [text("atlas"), text("beacon")], "removedNames": [],
        }));
        told.ask(OPUS, 0, 12_000, 10).call(OPUS, (12_000, 100, 10), "mcp__beacon__blink", json!("it blinks"));
        if is_called {
            told.call(OPUS, (12_100, 50, 10), "mcp__atlas__find", json!("found"));
        }
        (0..20).for_each(|turn| _ = told.ask(OPUS, 12_200 + turn * 20, 20, 10));
        place(&home, &told);
    }
    home
}

#[test]
fn servers_that_a_project_never_calls_cost_what_the_log_has_of_them() {
    let home = home_with_servers(8_280, false);
    let page = report(&home, &[]);
    let found = finding(&page, "unused_servers").unwrap_or_else(|| panic!("{page:#}"));
    let tokens = (8_280.0 + 32.0) / CHARS_PER_TOKEN;
    // Written once, and read by 21 requests.
    let expected = 6.0 * tokens * (WRITE + 21.0 * READ);
    assert!((saved(found) / expected - 1.0).abs() < 0.05, "{} for {expected}: {found:#}", saved(found));
    assert!(found["what"].as_str().unwrap().contains("never called: atlas, 6 times"), "{found:#}");
    let made_of = evidence(&home, "unused_servers")["made_of"].clone();
    assert_eq!(made_of.as_array().unwrap().len(), 1, "the other one is called: {made_of:#}");
    assert!(made_of[0]["project"].as_str().unwrap().contains("lantern"), "{made_of:#}");
    let shared = home.run(&["--finding", "unused_servers", "--redact"]).out;
    assert!(shared.contains("server A") && !shared.contains("atlas"), "{shared}");
}

/// What leaves a server out by now, for whatever reason, is seen as S5 sees it.
#[test]
fn a_server_that_settings_leave_out_is_no_advice_any_more() {
    let home = home_with_servers(8_280, false);
    let advice = |settings: &str| {
        home.write(".claude/settings.json", settings);
        let page = report(&home, &[]);
        let found = finding(&page, "unused_servers").unwrap_or_else(|| panic!("{page:#}"));
        found["advice"].as_str().unwrap().to_owned()
    };
    for (settings, lever) in [
        ("{\"disabledMcpjsonServers\": [\"atlas\"]}", "disabledMcpjsonServers"),
        ("{\"deniedMcpServers\": [{\"serverName\": \"atlas\"}]}", "deniedMcpServers"),
        ("{\"permissions\": {\"deny\": [\"mcp__*\"]}}", "permissions.deny"),
    ] {
        let advice = advice(settings);
        assert!(advice.starts_with(&format!("{lever} leaves out atlas in ")), "{settings}: {advice}");
        assert!(advice.ends_with(" already: done; what is shown here happened without it"), "{settings}: {advice}");
    }
    let other = advice("{\"permissions\": {\"deny\": [\"mcp__beacon\"]}}");
    assert!(other.starts_with("leave them out") && !other.contains("already"), "{other}");
    // Of two that nobody calls one is left.
    for number in 0..6 {
        let path = format!(".claude/projects/-home-user-lantern/m-{number}.jsonl");
        let text = fs::read_to_string(home.path(&path)).unwrap();
        home.write(&path, text.replace("\"name\":\"mcp__beacon__blink\"", "\"name\":\"Bash\""));
    }
    let partly = advice("{\"permissions\": {\"deny\": [\"mcp__beacon\"]}}");
    let said = "; permissions.deny leaves out beacon in ";
    assert!(partly.starts_with("leave them out") && partly.contains(said) && partly.contains("; effect: "), "{partly}");
}

#[test]
fn servers_that_are_called_or_small_are_no_finding() {
    for (chars, is_called) in [(8_280, true), (20, false)] {
        let page = report(&home_with_servers(chars, is_called), &[]);
        assert!(finding(&page, "unused_servers").is_none(), "{chars} {is_called}: {page:#}");
    }
}

/// Who took a server out is not told of it for as long as the old logs are there.
#[test]
fn a_server_that_no_newer_session_is_given_is_no_finding() {
    let home = home_with_servers(8_280, false);
    let with_newer = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            let mut told = Told::new(&format!("m-{number}"), "/home/user/lantern", number * 43_200);
            (0..20).for_each(|turn| _ = told.ask(OPUS, 12_200 + turn * 20, 20, 10));
            place(&home, &told);
        }
        finding(&report(&home, &[]), "unused_servers").is_some()
    };
    assert!(with_newer(6..7) && !with_newer(7..11));
}

/// Characters that a tool cannot have in its name are written `_`, so that two of them look like what ends a server's name.
#[test]
fn a_server_whose_name_has_the_marks_of_a_tool_in_it_is_seen_to_be_called() {
    for (server, tool) in [("docs (v2)", "mcp__docs__v2___search"), ("my__srv", "mcp__my__srv__do")] {
        let home = Home::new();
        for number in 0..6 {
            let mut told = Told::new(&format!("m-{number}"), "/home/user/lantern", number * 43_200);
            told.attach(json!({
                "type": "deferred_tools_delta", "addedNames": [tool], "addedLines": [tool], "removedNames": [],
            }));
            told.attach(json!({
                "type": "mcp_instructions_delta", "addedNames": [server], "removedNames": [],
                "addedBlocks": [format!("## {server}\n{}", "x".repeat(8_000))],
            }));
            told.ask(OPUS, 0, 12_000, 10).call(OPUS, (12_000, 100, 10), tool, json!("found"));
            (0..20).for_each(|turn| _ = told.ask(OPUS, 12_100 + turn * 20, 20, 10));
            place(&home, &told);
        }
        let page = report(&home, &[]);
        assert!(finding(&page, "unused_servers").is_none(), "{server}: {page:#}");
    }
}

/// Six sessions of ten turns; at every prompt a hook adds so many code points, at the end of each turn others take so many
/// milliseconds.
fn home_with_hooks(chars: usize, millis: u64) -> Home {
    home_with_texts(&["UserPromptSubmit"], chars, millis)
}

/// The same with a hook for each of these events.
fn home_with_texts(events: &[&str], chars: usize, millis: u64) -> Home {
    let home = Home::new();
    for number in 0..6 {
        let mut told = Told::new(&format!("h-{number}"), "/home/user/lantern", number * 43_200);
        for turn in 0..10 {
            for event in events {
                told.attach(json!({
                    "type": "hook_additional_context", "hookEvent": event, "hookName": event,
                    "toolUseID": format!("run-{turn}"), "content": ["y".repeat(chars)],
                }));
            }
            told.ask(
                OPUS,
                if turn == 0 { 0 } else { 9_000 + turn * 1_000 },
                if turn == 0 { 10_000 } else { 1_000 },
                10,
            );
            let infos = json!([{ "command": "a", "durationMs": millis }, { "command": "b", "durationMs": millis / 2 }]);
            told.push(
                &format!("stop-{turn}"),
                Record::new("system", "").set("subtype", "stop_hook_summary").set("hookInfos", infos),
            );
        }
        place(&home, &told);
    }
    home
}

#[test]
fn texts_of_hooks_cost_what_they_add_to_contexts() {
    let home = home_with_hooks(3_312, 0);
    let page = report(&home, &[]);
    let found = finding(&page, "hooks").unwrap_or_else(|| panic!("{page:#}"));
    // 800 tokens at each of ten prompts: written once, read by the prompts behind.
    let reads: f64 = (0..10).map(f64::from).sum();
    let expected = 6.0 * 800.0 * (10.0 * WRITE + reads * READ);
    assert!((saved(found) / expected - 1.0).abs() < 0.1, "{} for {expected}: {found:#}", saved(found));
    assert_eq!((&found["count"], &found["waited"]), (&json!(60), &Value::Null));
    assert_eq!(evidence(&home, "hooks")["made_of"][0]["hook"], "UserPromptSubmit");
}

#[test]
fn texts_of_hooks_cost_no_more_together_than_what_came_with_their_requests() {
    let (one, two) = (home_with_hooks(60_000, 0), home_with_texts(&["UserPromptSubmit", "SessionStart"], 60_000, 0));
    let (one, two) = (report(&one, &[]), report(&two, &[]));
    let cost = |page: &Value| saved(finding(page, "hooks").unwrap_or_else(|| panic!("{page:#}")));
    assert!((cost(&two) / cost(&one) - 1.0).abs() < 0.01, "{} and {}", cost(&one), cost(&two));
}

#[test]
fn waiting_for_hooks_is_told_by_the_slowest_of_each_turn() {
    let home = home_with_hooks(1, 20_000);
    let page = report(&home, &[]);
    let found = finding(&page, "hooks").unwrap_or_else(|| panic!("{page:#}"));
    // Ten turns of twenty seconds in each of six sessions, on three days.
    assert_eq!(found["waited"]["seconds"], 1_200.0, "{found:#}");
    assert_eq!(found["waited"]["seconds_a_day"], 400.0);
    assert!(
        found["where"].as_str().unwrap().starts_with("20 min of waiting, 6 min 40 s a day with requests"),
        "{found:#}"
    );
    assert!(
        found["advice"]
            .as_str()
            .unwrap()
            .contains("at most 6 min 40 s a day with requests here (in other sessions like these at most ["),
        "{found:#}"
    );
}

#[test]
fn short_and_fast_hooks_are_no_finding() {
    let page = report(&home_with_hooks(1, 100), &[]);
    assert!(finding(&page, "hooks").is_none(), "{page:#}");
}

/// Odd attachments say nothing, and break nothing.
#[test]
fn odd_attachments_say_nothing() {
    let home = Home::new();
    for number in 0..6 {
        let mut told = Told::new(&format!("o-{number}"), "/home/user/lantern", number * 43_200);
        for odd in [
            json!({ "type": "mcp_instructions_delta", "addedNames": 5, "addedBlocks": {} }),
            json!({ "type": "mcp_instructions_delta", "addedNames": ["", "a".repeat(9_000), 7], "addedBlocks": ["x"] }),
            json!({ "type": "deferred_tools_delta", "addedNames": ["mcp__", "mcp____", "__"], "addedLines": null }),
            json!({ "type": "hook_success", "hookEvent": ["Stop"], "durationMs": -5, "content": { "a": 1 } }),
            json!({ "type": "hook_success", "hookEvent": "\u{202e}x y", "durationMs": 1e300, "content": "z" }),
            json!({ "type": "hook_additional_context" }),
        ] {
            told.attach(odd);
        }
        let odd = Record::new("system", "")
            .set("subtype", "stop_hook_summary")
            .set("hookInfos", json!([3, { "durationMs": "x" }]));
        told.push("odd", odd);
        told.ask(OPUS, 0, 10_000, 10).ask(OPUS, 10_000, 100, 10);
        place(&home, &told);
    }
    let page = report(&home, &[]);
    assert_eq!(page["findings"], json!([]), "{page:#}");
}
