//! Who could change what a model reads: what is out of reach is sent as it is, everywhere where a saving is
//! printed. And what the published accounting claims, told in the order of time.

use proptest::prelude::*;
use serde_json::Value;

use super::harness::{CallLines, Home, all_bytes};
use super::replay::{EXTENDED, OPTIONS, Story, prose, reaches, stories};
use crate::base::data::Data;
use crate::base::id::Id;
use crate::replay::reach::{Reach, WithinReach};
use crate::replay::savings::Tally;
use crate::replay::tape::Response;
use crate::replay::{Scenario, SentAs, Tape, TapeEntry, published_claim, replay_each};
use crate::shell::arguments::Exit;

fn shipped(id: &str) -> Reach {
    crate::replay::reach::reaches(&Data::default()).unwrap().into_iter().find(|reach| reach.id == id).unwrap()
}

#[test]
fn the_shipped_reaches_are_those_of_the_places_on_the_way() {
    let of = |id: &str, tool: &str| shipped(id).of(tool);
    for tool in ["Read", "Bash", "Edit", "mcp__gitlab__get_issue"] {
        assert_eq!(of("gateway", tool), WithinReach::Changes);
    }
    assert_eq!(of("host", "mcp__gitlab__get_issue"), WithinReach::Changes);
    assert_eq!(of("host", "Bash"), WithinReach::Misses);
    assert_eq!(of("hook", "Bash"), WithinReach::Changes);
    assert_eq!(of("hook", "mcp__gitlab__get_issue"), WithinReach::Changes);
    for tool in ["Read", "Edit", "Write", "Glob"] {
        assert_eq!(of("hook", tool), WithinReach::Sees);
    }
    let last = crate::replay::reach::reaches(&Data::default()).unwrap().pop().unwrap();
    assert_eq!(last.id, "gateway", "the widest stands last");
}

/// Some responses of three tools.
fn told(rows: &[(u32, u32, u32, u32, bool)], endpoints: &[u32]) -> Story {
    let facts = (0..6).map(|name| prose(name, 100)).collect();
    rows.iter().zip(endpoints).fold(
        Story::new(facts),
        |story, (&(body, session, chain, partition, failed), &endpoint)| {
            story.show(body, |response| {
                (response.session, response.chain, response.partition) = (session, session * 2 + chain, partition);
                response.endpoint = endpoint;
                response.outcome = if failed { TapeEntry::Failure } else { TapeEntry::Answer };
            })
        },
    )
}

/// What is sent for each response with text, and the sums.
fn sent(tape: &Tape, scenario: &Scenario) -> (Vec<(u32, SentAs, u64)>, Tally) {
    let mut sent = Vec::new();
    let ledger = replay_each(tape, scenario, &mut |index, decision| sent.push((index, decision.what, decision.tokens)));
    (sent, ledger.total)
}

proptest! {
    #![proptest_config(super::log_builder::cases(64))]

    #[test]
    fn what_is_out_of_reach_is_sent_as_it_is_and_all_else_as_the_reach_knows_it(
        rows in stories(),
        endpoints in prop::collection::vec(0_u32..3, 80),
        reach in reaches(),
        extended in any::<bool>(),
    ) {
        let story = told(&rows, &endpoints);
        let options = if extended { EXTENDED } else { OPTIONS };
        let scenario = Scenario::new(&story.settings, &story.tape, options);
        let (all, whole) = sent(&story.tape, &scenario.within(&reach, &story.tape));
        let changes = |response: &Response| {
            reach.of(&story.tape.endpoints[response.endpoint as usize].tool) == WithinReach::Changes
        };
        for &(index, what, _) in all.iter().filter(|(index, ..)| !changes(&story.tape.responses[*index as usize])) {
            prop_assert_eq!(what, SentAs::AsIs, "response {}", index);
        }
        if !reach.sees_all {
            // Who misses the rest saves what there is to save without the rest.
            let mut alone = story.tape.clone();
            alone.responses.retain(changes);
            let (_, own) = sent(&alone, &scenario.within(&reach, &alone));
            prop_assert_eq!(whole.saved(), own.saved());
        }
        let everything = Reach { changes: vec!["*".into()], sees_all: true, previews: true, ..Reach::default() };
        prop_assert_eq!(sent(&story.tape, &scenario.within(&everything, &story.tape)), sent(&story.tape, &scenario));
    }

    #[test]
    fn the_published_claim_has_one_cache_per_session_in_the_order_of_time(
        rows in stories(),
        times in prop::collection::vec(0_i64..500, 80),
        capacity in 1_usize..6,
    ) {
        let mut story = told(&rows, &[0; 80]).set("dedup.lru_size", &capacity.to_string());
        // Within a chain time goes on.
        let mut answered = times[..rows.len()].to_vec();
        let mut start = 0;
        for group in story.tape.responses.chunk_by(|a, b| a.chain == b.chain) {
            answered[start..start + group.len()].sort_unstable();
            start += group.len();
        }
        story.tape.responses.iter_mut().for_each(|response| response.ran = true);
        let scenario = Scenario::new(&story.settings, &story.tape, OPTIONS);
        let claim = published_claim(&story.tape, &scenario, &answered);
        let (mut hits, mut events) = (0_u32, 0_u32);
        for session in 0..2 {
            let mut order: Vec<usize> =
                (0..rows.len()).filter(|&at| story.tape.responses[at].session == session).collect();
            order.sort_by_key(|&at| (answered[at], at));
            let (mut cache, mut partitions): (Vec<u32>, [Option<u32>; 4]) = (Vec::new(), [None; 4]);
            for at in order {
                let Response { body, chain, partition, outcome, .. } = story.tape.responses[at];
                if partitions[chain as usize].replace(partition).is_some_and(|before| before != partition) {
                    cache.clear();
                }
                if outcome != TapeEntry::Answer {
                    continue; // a failed call passes the published host by
                }
                events += 1;
                if let Some(place) = cache.iter().position(|&known| known == body) {
                    hits += 1;
                    cache.remove(place);
                }
                cache.push(body);
                if cache.len() > capacity {
                    cache.remove(0);
                }
            }
        }
        let expected = (events > 0).then(|| f64::from(hits) / f64::from(events));
        prop_assert_eq!(claim.hits, expected);
    }
}

#[test]
fn a_repeat_that_another_reader_saw_counts_in_the_published_claim_in_its_time_only() {
    // The subagent answers between two answers of the main thread.
    let story = |first: u32, second: u32| {
        Story::new(vec![prose(1, 500), prose(2, 500)]).show(first, |_| {}).show(0, |_| {}).show(second, |r| r.chain = 1)
    };
    let hits = |story: &Story, answered: &[i64]| {
        let scenario = Scenario::new(&story.settings, &story.tape, OPTIONS);
        published_claim(&story.tape, &scenario, answered).hits
    };
    let story = story(1, 0).set("dedup.lru_size", "1");
    assert_eq!(hits(&story, &[1, 2, 3]), Some(1.0 / 3.0));
    // In another order each finds the other's body in the cache of one.
    assert_eq!(hits(&story, &[1, 3, 2]), Some(1.0 / 3.0));
    assert_eq!(hits(&story, &[2, 3, 1]), Some(0.0), "chain by chain this would be a hit");
    assert!(story.tape.responses.iter().all(|response| response.path == Id::NONE));
}

/// A session in which every kind of answer repeats.
fn home() -> Home {
    let home = Home::new();
    let words = |what: &str| format!("{what} {}\n", "says the same again ".repeat(30));
    let numbered = |to: usize| (1..to).map(|n| format!("{n:>6}\tlet value_{n} = {n};\n")).collect::<String>();
    let preview = format!("<persisted-output>\n{}", words("preview"));
    let bodies =
        [("Bash", words("shell")), ("Read", numbered(60)), ("mcp__tracker__list", words("tracker")), ("Bash", preview)];
    let call = |number: usize| {
        let (tool, body) = &bodies[number % 4];
        CallLines { session: "one", number, tool, input: "/x", body, model: "claude-opus-4-6" }.text()
    };
    home.write(".claude/projects/p/one.jsonl", (0..12).map(call).collect::<String>());
    home
}

fn row<'r>(rows: &'r Value, id: &str) -> &'r Value {
    rows.as_array().unwrap().iter().find(|row| row["id"] == id).unwrap()
}

#[test]
fn every_report_of_savings_says_who_could_do_this() {
    let home = home();
    let report = home.json(&["replay"])["replay"].clone();
    let saved = |id: &str| row(&report["reaches"], id)["extended"]["saved_tokens"].as_u64().unwrap();
    let all = report["arms"][1]["savings"]["saved_tokens"].as_u64().unwrap();
    assert_eq!((saved("gateway"), &report["reach"]), (all, &"gateway".into()));
    assert!(0 < saved("host") && saved("host") < saved("hook") && saved("hook") < saved("gateway"));
    // Each body comes three times: of one tool two repeats are in reach of the host, of two bodies in that of the hook.
    let reached = |id: &str| row(&report["reaches"], id)["tokens"].as_u64().unwrap();
    assert!(reached("host") < reached("hook") && reached("hook") < reached("gateway"));
    for reach in ["host", "hook", "gateway"] {
        let one = home.json(&["replay", "--reach", reach])["replay"].clone();
        assert_eq!(one["arms"][1]["savings"]["saved_tokens"].as_u64().unwrap(), saved(reach), "{reach}");
        assert_eq!(one["reaches"], report["reaches"], "the table is the same whoever is asked about");
        assert_eq!(one["published_claim"], report["published_claim"], "the claim is about everything");
        let out = home.run(&["replay", "--reach", reach]).out;
        let name = row(&report["reaches"], reach)["name"].as_str().unwrap().to_owned();
        assert!(out.contains(&format!("extended formats, {name}: ")), "{out}");
        assert!(out.contains("who could do this"), "{out}");
        let sweep = home.json(&["replay", "--reach", reach, "--sweep", "dedup.lru_size=5,7"]);
        assert_eq!(sweep["cells"][0]["extended"], row(&report["reaches"], reach)["extended"]);
        assert_eq!(sweep["cells"][0]["reaches"], report["reaches"]);
    }
    assert_eq!(home.run(&["replay", "--reach", "nobody"]).exit, Exit::Usage);
    let sweep = home.run(&["replay", "--sweep", "dedup.lru_size=5,7"]).out;
    assert!(sweep.contains("saved by: gateway") && sweep.contains("who could do this"), "{sweep}");
}

#[test]
fn a_rule_about_the_pipeline_tells_what_an_mcp_host_gains_and_the_bound_beside_it() {
    let home = home();
    let outcome = home.run(&["tune", "analyze", "--from-claude-logs", "--dry-run"]);
    let answer = outcome.out.lines().next().unwrap();
    assert!(answer.contains("MCP host") && answer.contains("a gateway that changes all results"), "{answer}");
    let report = home.json(&["tune", "analyze", "--from-claude-logs", "--dry-run"]);
    let replay = home.json(&["replay"])["replay"].clone();
    let saved = |id: &str| row(&replay["reaches"], id)["published"]["saved_tokens"].as_f64();
    assert_eq!(report["gate"]["host"]["saved_before"].as_f64(), saved("host"));
    assert_eq!(report["gate"]["saved_before"].as_f64(), saved("gateway"));
}

/// What `replay` says that a host, and a gateway, saves with the published formats, and what the gate says: of the logs, and of
/// the telemetry that is emitted for them.
fn saved_by_replay_and_gate(home: &Home) -> [[f64; 2]; 3] {
    let telemetry = home.path("telemetry").to_str().unwrap().to_owned();
    let replay = home.json(&["replay", "--emit-telemetry", &telemetry])["replay"].clone();
    let saved = |id: &str| row(&replay["reaches"], id)["published"]["saved_tokens"].as_f64().unwrap();
    let gate = |more: &[&str]| {
        let gate = home.json(&[&["tune", "analyze", "--dry-run"], more].concat())["gate"].clone();
        [&gate["host"], &gate].map(|gate| gate["saved_before"].as_f64().unwrap())
    };
    [[saved("host"), saved("gateway")], gate(&["--from-claude-logs"]), gate(&["--input-dir", &telemetry])]
}

fn calls(home: &Home, session: &str, calls: &[(&str, &str, &str)]) {
    let line = |(number, (tool, input, body)): (usize, &(&str, &str, &str))| {
        CallLines { session, number, tool, input, body, model: "claude-opus-4-6" }.text()
    };
    home.write(&format!(".claude/projects/p/{session}.jsonl"), calls.iter().enumerate().map(line).collect::<String>());
}

#[test]
fn the_gate_leaves_previews_to_whoever_stands_behind_the_client() {
    let home = Home::new();
    let preview = format!("<persisted-output>\n{}", "says the same again ".repeat(30));
    calls(&home, "one", &[("mcp__tracker__list", "/x", preview.as_str()); 6]);
    let [replay, logs, telemetry] = saved_by_replay_and_gate(&home);
    assert!(replay[0] == 0.0 && replay[1] > 0.0, "{replay:?}");
    assert_eq!([logs, telemetry], [replay; 2]);
}

#[test]
fn the_gate_keeps_text_of_files_quotable_though_another_call_answered_the_same() {
    let home = Home::new();
    let rows: Vec<Value> = (0..40).map(|id| serde_json::json!({ "id": id, "state": "open" })).collect();
    let body = serde_json::to_string_pretty(&rows).unwrap();
    let bash = |session: &str, command: &str| {
        let lines =
            CallLines { session, number: 0, tool: "Bash", input: command, body: &body, model: "claude-opus-4-6" };
        home.write(
            &format!(".claude/projects/p/{session}.jsonl"),
            lines.text().replace("\"file_path\"", "\"command\""),
        );
    };
    bash("one", "curl -s https://a.b/x");
    bash("two", "cat x.json");
    let [replay, logs, telemetry] = saved_by_replay_and_gate(&home);
    assert!(replay[1] > 0.0);
    assert_eq!([logs, telemetry], [replay; 2]);
    calls(&home, "three", &[("Read", "/w/x.json", &body), ("mcp__tracker__list", "/x", &body)]);
    let [replay, logs, telemetry] = saved_by_replay_and_gate(&home);
    assert_eq!([logs, telemetry], [replay; 2]);
}

#[test]
fn the_gate_charges_hints_by_the_ratio_that_bodies_are_counted_by() {
    let home = Home::new();
    home.write(".config/devboy/pipeline_config.toml", "[profiles.tokenizer]\nactive = \"ollama_bpe\"\n");
    let body = "word after word ".repeat(20);
    calls(&home, "one", &[("mcp__tracker__list", "/x", body.as_str()); 6]);
    let [replay, logs, telemetry] = saved_by_replay_and_gate(&home);
    assert!(replay[0] > 0.0);
    assert_eq!([logs, telemetry], [replay; 2]);
}

#[test]
fn calls_that_failed_are_a_part_of_how_a_session_was_worked_in() {
    let home = Home::new();
    home.write(".config/devboy/pipeline_config.toml", "[profiles.agent.variants.default]\nmckp_recursion_depth = 0\n");
    let inner = |n: usize| serde_json::json!({ "b": n, "c": { "d": [1, 2, { "e": n, "f": { "g": [1, 2, 3] } }] } });
    let nested: serde_json::Map<String, Value> = (0..12).map(|n| (format!("a{n}"), inner(n))).collect();
    let nested = serde_json::to_string_pretty(&nested).unwrap();
    // Half of the calls read; with one that fails it is less.
    calls(&home, "one", &[("Read", "/a", "one"), ("mcp__tracker__list", "/x", &nested)]);
    let [searching, logs, telemetry] = saved_by_replay_and_gate(&home);
    assert_eq!([logs, telemetry], [searching; 2]);
    let failed =
        CallLines { session: "one", number: 9, tool: "Bash", input: "z", body: "no", model: "claude-opus-4-6" };
    let failed = failed.text().replace("\"type\":\"tool_result\",", "\"type\":\"tool_result\",\"is_error\":true,");
    let path = ".claude/projects/p/one.jsonl";
    home.write(path, std::fs::read_to_string(home.path(path)).unwrap() + &failed);
    let [others, logs, telemetry] = saved_by_replay_and_gate(&home);
    assert!(others[0] < searching[0], "the profile for all others goes less deep: {others:?}, {searching:?}");
    assert_eq!([logs, telemetry], [others; 2]);
}

#[test]
fn a_model_without_a_profile_is_told_where_details_are_asked_for() {
    let home = home();
    let note = "1 session of claude-opus-4-6: no model profile is called so, `default` holds";
    assert!(home.run(&["replay", "-v"]).err.contains(note));
    assert!(!home.run(&["replay"]).err.contains(note));
    home.write(
        ".config/devboy/pipeline_config.toml",
        "[profiles.llm.variants.\"claude-opus-4.6\"]\ntokenizer = \"anthropic_class\"\n",
    );
    assert!(!home.run(&["replay", "-v"]).err.contains(note));
}

#[test]
fn hints_are_expanded_in_every_report() {
    let home = home();
    let report = home.json(&["replay"])["replay"].clone();
    for arm in report["arms"].as_array().unwrap() {
        let hints: u64 = ["exact", "near", "lines"].iter().map(|kind| arm["hints"][kind].as_u64().unwrap()).sum();
        assert!(hints > 0);
        assert_eq!(arm["hints_expanded"], serde_json::json!({ "same": hints, "different": 0 }));
    }
    let out = home.run(&["replay", "--explain"]).out;
    assert!(out.contains("expanded to the same body"), "{out}");
}

#[test]
fn a_window_reaches_every_row_of_the_report() {
    let day = |day: &str, number: usize| {
        let body = format!("{}\n", "the same on both days ".repeat(30));
        let call =
            CallLines { session: "one", number, tool: "Bash", input: "/x", body: &body, model: "claude-opus-4-6" };
        call.text().replace("2026-10-30", day)
    };
    let home = Home::new();
    let (old, new) = (["2026-10-20"; 3], ["2026-10-30"; 2]);
    let calls = (0..).zip(old.iter().chain(&new)).map(|(number, date)| day(date, number));
    home.write(".claude/projects/p/one.jsonl", calls.collect::<String>());
    let repeats = |more: &[&str]| home.json(&[&["replay"], more].concat())["replay"]["input"]["plain_repeats"].clone();
    assert_eq!(repeats(&[]), serde_json::json!([5, 4, 4]));
    assert_eq!(repeats(&["--since", "2026-10-25"]), serde_json::json!([2, 1, 1]));
}

#[test]
fn telemetry_is_that_of_who_runs_the_pipeline() {
    let home = Home::new();
    let body = "words of an answer\n".repeat(40);
    calls(&home, "one", &["Bash", "Bash", "mcp__alpha__list"].map(|tool| (tool, "/x", body.as_str())));
    let recorded = |reach: &str| {
        let dir = home.path(reach);
        home.json(&["replay", "--reach", reach, "--emit-telemetry", dir.to_str().unwrap()]);
        let text = String::from_utf8(all_bytes(&dir)).unwrap();
        ["", "true"].map(|value| text.matches(&format!("\"is_dedup_hit\":{value}")).count())
    };
    // The third answer is the same as the first, but a host never saw that one.
    assert_eq!((recorded("gateway"), recorded("host")), ([3, 2], [1, 0]));
}
