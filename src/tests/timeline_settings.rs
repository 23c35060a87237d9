//! What stands beside the conversation: effort, speed, branch and kinds of agents on requests and chains, the client's own
//! totals of cost on sessions.

use std::collections::BTreeSet;

use serde_json::json;

use crate::base::id::Id;
use crate::frames::packed::{pack, unpack};
use crate::logs::timeline::requests::{Chain, Marks, Timeline};
use crate::tests::harness::Home;
use crate::tests::log_builder::*;
use crate::tests::timeline::{linked, rows, says, timeline_of};

fn one(records: Vec<Record>) -> Timeline {
    timeline_of(&[("f", &log(&records))])
}

fn usage(speed: &str) -> serde_json::Value {
    json!({ "input_tokens": 3, "output_tokens": 5, "speed": speed })
}

fn names(timeline: &Timeline, request: usize) -> [&str; 3] {
    let setting = &timeline.requests[request].setting;
    [setting.effort, setting.speed, setting.miss_reason].map(|word| timeline.names.text(word))
}

fn agent_type<'t>(timeline: &'t Timeline, agent: &str) -> &'t str {
    let named = |chain: &&Chain| chain.agent == Id::of(agent.as_bytes());
    timeline.names.text(timeline.chains.iter().find(named).expect("the chain is there").agent_type)
}

#[test]
fn a_request_knows_its_effort_speed_branch_and_why_the_cache_was_missed() {
    let missed = json!({ "cache_miss_reason": { "type": "tools_changed", "cache_missed_input_tokens": 9 } });
    let first = says("m1", "one").set("effort", "high").set("gitBranch", "main").message("usage", usage("standard"));
    let second = says("m2", "two").message("effort", "low").set("gitBranch", "feat/x").message("usage", usage("fast"));
    let third = says("m3", "three").set("gitBranch", "");
    let timeline = one(linked(vec![user("p", "go"), first, second.message("diagnostics", missed), third]));
    assert_eq!(names(&timeline, 0), ["high", "standard", ""]);
    assert_eq!(names(&timeline, 1), ["low", "fast", "tools_changed"]);
    assert_eq!(names(&timeline, 2), ["", "", ""]);
    let branches = timeline.requests.iter().map(|request| request.setting.branch);
    assert_eq!(branches.collect::<Vec<_>>(), [Id::pseudonym(b"main"), Id::pseudonym(b"feat/x"), Id::NONE]);
    let changed = timeline.requests.iter().map(|request| request.marks.has(Marks::EFFORT_CHANGE));
    assert_eq!(changed.collect::<Vec<_>>(), [false, true, false], "an effort that is not written is no other effort");
}

#[test]
fn another_effort_is_none_to_a_model_whose_efforts_share_one_cache() {
    let changed = |model: &str| {
        let asked = |id: &str, effort: &str| says(id, id).set("effort", effort).message("model", model);
        let timeline = one(linked(vec![user("p", "go"), asked("m1", "high"), asked("m2", "low")]));
        assert_eq!([names(&timeline, 0)[0], names(&timeline, 1)[0]], ["high", "low"]);
        timeline.requests[1].marks.has(Marks::EFFORT_CHANGE)
    };
    let sharing = ["claude-opus-5-5", "claude-sonnet-5-5-20260901", "claude-haiku-5-5", "claude-fable-5-1[1m]"];
    assert!(!sharing.into_iter().any(changed));
    assert!(!["claude-fable-5.2", "claude-fable-5-10-20270101", "claude-opus-5-6"].into_iter().any(changed));
    assert!(["claude-opus-5", "claude-fable-5", "claude-haiku-4-5", "other"].into_iter().all(changed));
    assert!(["claude-opus-5-4", "claude-fable-6-1", "claude-other-5-5"].into_iter().all(changed));
}

#[test]
fn what_one_record_of_a_message_lacks_another_one_adds() {
    let records = vec![says("m", "a").link("u1", None), says("m", "b").link("u2", Some("u1")).set("effort", "max")];
    assert_eq!(names(&one(records), 0)[0], "max");
}

#[test]
fn a_word_that_is_no_plain_word_is_not_kept() {
    let timeline = one(vec![says("m", "a").set("effort", "my secret plan")]);
    assert_eq!(names(&timeline, 0)[0], "*");
    assert!(timeline.names.texts().iter().all(|text| !text.contains("secret")));
}

fn delegation(call: &str, kind: &str) -> Record {
    let input = json!({ "prompt": "look", "subagent_type": kind });
    let block = json!({ "type": "tool_use", "id": call, "name": "Agent", "input": input });
    assistant(&format!("asks {call}"), &[block])
}

#[test]
fn a_subagent_is_of_the_kind_that_its_call_asked_for() {
    let result = answers("c1", "done").set("toolUseResult", json!({ "agentId": "aa11", "content": [] }));
    let inner = says("m-in", "looking").without("parentUuid");
    let progress = agent_progress("bb22", &inner).set("parentToolUseID", "c2");
    let other = answers("c9", "done").set("toolUseResult", json!({ "agentId": "cc33", "agentType": "Plan" }));
    let records =
        vec![user("p", "go"), delegation("c1", "Explore"), delegation("c2", "reviewer"), result, progress, other];
    let own = |agent: &str| log(&[says(&format!("m-{agent}"), "found").agent(agent).link(agent, None)]);
    let files = [log(&records), own("aa11"), own("cc33"), own("acompact-7f")];
    let named: Vec<(String, &str)> = files.iter().enumerate().map(|(at, log)| (at.to_string(), log.as_str())).collect();
    let named: Vec<(&str, &str)> = named.iter().map(|(name, log)| (name.as_str(), *log)).collect();
    let timeline = timeline_of(&named);
    assert_eq!(agent_type(&timeline, "aa11"), "Explore");
    assert_eq!(agent_type(&timeline, "bb22"), "reviewer");
    assert_eq!(agent_type(&timeline, "cc33"), "", "only results of calls that run agents are looked into");
    assert_eq!(agent_type(&timeline, "acompact-7f"), "compact");
}

#[test]
fn the_file_beside_a_subagents_log_names_its_kind() {
    let home = Home::new();
    let own = says("m", "found").agent("aa11").link("u", None).usage(900, 5);
    let dir = ".claude/projects/p/s-main/subagents";
    home.write(&format!("{dir}/agent-aa11.jsonl"), log(&[user("p", "go").agent("aa11"), own]));
    home.write(&format!("{dir}/agent-aa11.meta.json"), r#"{"agentType":"Explore","description":"x","spawnDepth":1}"#);
    let lines = home.path("requests.jsonl");
    let file = lines.to_str().expect("a plain path");
    home.json(&["replay", "--policy", "prompt-cache", "--per-request", file]);
    let text = std::fs::read_to_string(lines).expect("it was written");
    let line: serde_json::Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    assert_eq!(line["agent_type"], "Explore");
}

#[test]
fn the_file_beside_a_subagents_log_is_read_when_it_comes_later_or_changes() {
    let home = Home::new();
    let dir = ".claude/projects/p/s-main/subagents";
    let own = says("m", "found").agent("aa11").link("u", None).usage(900, 5);
    home.write(&format!("{dir}/agent-aa11.jsonl"), log(&[user("p", "go").agent("aa11"), own]));
    let lines = home.path("requests.jsonl");
    let kind = || {
        home.json(&["replay", "--policy", "prompt-cache", "--per-request", lines.to_str().expect("a plain path")]);
        let text = std::fs::read_to_string(&lines).expect("it was written");
        let line: serde_json::Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
        line["agent_type"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(kind(), "");
    for named in ["Explore", "reviewer"] {
        home.write(&format!("{dir}/agent-aa11.meta.json"), json!({ "agentType": named }).to_string());
        assert_eq!([kind(), kind()], [named; 2]);
    }
}

#[test]
fn a_main_thread_may_be_started_as_an_agent_and_in_the_background() {
    let setting = json!({ "type": "agent-setting", "agentSetting": "reviewer", "sessionId": SESSION });
    let records = log(&[user("p", "go"), says("m", "a").set("sessionKind", "bg")]);
    let timeline = timeline_of(&[("f", &format!("{setting}\n{records}"))]);
    assert_eq!(timeline.names.text(timeline.chains[0].agent_type), "reviewer");
    assert!(timeline.sessions[0].is_background);
    assert!(!one(vec![says("m", "a")]).sessions[0].is_background);
}

fn cost_state(model: &str, read: u64, dollars: f64) -> String {
    let usage = json!({
        "inputTokens": 10, "outputTokens": 20, "cacheReadInputTokens": read, "cacheCreationInputTokens": 40,
        "thinkingTokens": 7, "costUSD": dollars,
    });
    format!(
        "{}\n",
        json!({ "type": "cost-state", "sessionId": SESSION, "totalCostUSD": 9.9, "modelUsage": { model: usage } })
    )
}

#[test]
fn of_the_clients_running_totals_the_last_one_counts() {
    let records = log(&[user("p", "go"), says("m", "a")]);
    let totals = cost_state("claude-haiku-4-5", 5_000_000_000, 0.25) + &cost_state("claude-haiku-4-5", 100, 0.125);
    let timeline = timeline_of(&[("f", &(records + &totals))]);
    let [stated] = timeline.stated_costs[..] else { panic!("one model: {:?}", timeline.stated_costs) };
    assert_eq!(stated.session, timeline.sessions[0].id);
    assert_eq!(timeline.names.text(stated.model), "claude-haiku-4-5");
    assert_eq!((stated.nanodollars, stated.usage.cache_read), (250_000_000, 5_000_000_000));
}

#[test]
fn the_clients_running_totals_name_models_as_the_messages_do() {
    let names = ["claude-opus-5[1m]", "claude-sonnet-5[1m]", "claude-haiku-4-5@20251001", "gateway/claude-opus-5"];
    let totals = names.map(|model| cost_state(model, 100, 0.125)).concat();
    let timeline = timeline_of(&[("f", &(log(&[user("p", "go"), says("m", "a")]) + &totals))]);
    let stated: BTreeSet<&str> = timeline.stated_costs.iter().map(|row| timeline.names.text(row.model)).collect();
    assert_eq!(stated, names.into());
}

#[test]
fn packed_rows_come_back_whole() {
    let first = says("m1", "one").set("effort", "high").set("gitBranch", "main").set("sessionKind", "bg");
    let records = log(&[user("p", "go"), delegation("c1", "Explore"), first.message("usage", usage("fast"))]);
    let result = answers("c1", "done").set("toolUseResult", json!({ "agentId": "aa11" }));
    let mut file = rows(records + &result.line() + &cost_state("claude-opus-5", 7, 1.5));
    let back = unpack(&pack(&mut file)).expect("it was packed here");
    assert_eq!(back.rows, file.rows);
    assert_eq!(back.names.texts(), file.names.texts());
    assert_eq!((file.rows.agents.len(), file.rows.stated_costs.len()), (1, 1));
}

#[test]
fn a_member_of_a_team_is_known_by_its_name_there() {
    let records = vec![user("p", "go").set("teamName", "t").set("agentName", "researcher"), says("m", "a")];
    let timeline = one(linked(records));
    assert_eq!(timeline.names.text(timeline.chains[0].agent_type), "researcher");
    let titled = one(vec![says("m", "a").set("agentName", "title")]);
    assert_eq!(titled.names.text(titled.chains[0].agent_type), "", "a title is no team");
}

#[test]
fn attachments_are_counted_under_their_names() {
    let attached = |name: &str, kind: &str| Record::new("attachment", name).set("attachment", json!({ "type": kind }));
    let kinds = ["budget_usd", "diagnostics", "invoked_skills", "diagnostics", "of_tomorrow"];
    let mut records: Vec<Record> = vec![user("p", "go")];
    records.extend(kinds.iter().enumerate().map(|(at, kind)| attached(&format!("a{at}"), kind)));
    records.push(says("m", "a"));
    let timeline = one(linked(records));
    let counted = |kind: &str| timeline.skipped.get(&format!("attachment:{kind}")).copied();
    assert_eq!(
        ["budget_usd", "diagnostics", "invoked_skills", "other"].map(counted),
        [Some(1), Some(2), Some(1), Some(1)]
    );
    assert!(timeline.requests[0].marks.has(Marks::ATTACHED));
}

/// A second copy of a result, as newer clients write it for MCP tools: beside the message, and in the block.
#[test]
fn a_structured_copy_beside_a_result_is_not_counted_twice() {
    let copy = json!({ "structuredContent": { "rows": vec!["x".repeat(500); 9] } });
    let body = "x".repeat(4_000);
    let plain = answers("c", body.as_str());
    let block = json!({ "type": "tool_result", "tool_use_id": "c", "content": body.as_str(), "mcpMeta": copy });
    let doubled = user("r-c", vec![block]).set("mcpMeta", copy.clone()).set("toolUseResult", copy);
    let asked = || vec![user("p", "go"), asks("m", "c", "mcp__tracker__list")];
    let read = |result: Record| {
        let text = log(&[asked(), vec![result, says("n", "done")]].concat());
        let told = Told::of(&[("f", &text)]);
        let timeline = timeline_of(&[("f", &text)]);
        let blocks: Vec<(u32, u32)> = timeline.blocks.iter().map(|block| (block.chars, block.bytes)).collect();
        (told.call("c").chars, told.call("c").body, blocks)
    };
    assert_eq!(read(plain), read(doubled));
}

#[test]
fn an_older_name_of_the_folder_of_subagents_changes_nothing() {
    let read = |folder: &str| {
        let home = Home::new();
        let own = says("m", "found").agent("aa11").link("u", None).usage(900, 5);
        home.write(".claude/projects/p/s-main.jsonl", log(&[user("p", "go"), says("n", "a").usage(700, 5)]));
        home.write(
            &format!(".claude/projects/p/{folder}/agent-aa11.jsonl"),
            log(&[user("q", "go").agent("aa11"), own]),
        );
        home.write(&format!(".claude/projects/p/{folder}/agent-aa11.meta.json"), r#"{"agentType":"Explore"}"#);
        let lines = home.path("requests.jsonl");
        home.json(&["replay", "--policy", "prompt-cache", "--per-request", lines.to_str().expect("a plain path")]);
        std::fs::read_to_string(lines).expect("it was written")
    };
    assert_eq!(read("s-main/subagents"), read("s-main/sub-agents"));
    assert!(read("s-main/sub-agents").contains("Explore"));
}

#[test]
fn the_clients_own_total_stands_beside_what_the_log_comes_to() {
    let home = Home::new();
    let usage = json!({ "input_tokens": 1_000, "output_tokens": 100, "cache_read_input_tokens": 0 });
    let records = log(&[user("p", "go"), says("m", "a").message("usage", usage).message("model", "claude-haiku-4-5")]);
    // $1 and $5 per million: a tenth of a cent and half of that; the client has a helper's call besides.
    let totals = cost_state("claude-haiku-4-5", 3_000, 0.002) + &cost_state("claude-haiku-4-5[1m]", 30, 0.001);
    home.write(".claude/projects/p/s.jsonl", records + &totals);
    let text = home.run(&["replay", "--policy", "prompt-cache", "--explain"]).out;
    let report = home.json(&["replay", "--policy", "prompt-cache"])["policies"][0].to_string();
    assert!(report.contains("\"sessions\":1,\"stated_nano_usd\":3000000"), "{report}");
    assert!(report.contains("\"logged_tokens\":1100"), "{report}");
    assert!(report.contains("\"stated_tokens\":3170"), "{report}");
    assert!(text.contains("what the client says that sessions have cost"), "{text}");
}
