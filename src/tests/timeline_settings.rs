//! What stands beside the conversation: effort, speed, branch and kinds of agents on requests and chains, the client's own
//! totals of cost on sessions.

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
fn packed_rows_come_back_whole() {
    let first = says("m1", "one").set("effort", "high").set("gitBranch", "main").set("sessionKind", "bg");
    let records = log(&[user("p", "go"), delegation("c1", "Explore"), first.message("usage", usage("fast"))]);
    let result = answers("c1", "done").set("toolUseResult", json!({ "agentId": "aa11" }));
    let file = rows(records + &result.line() + &cost_state("claude-opus-5", 7, 1.5));
    let back = unpack(&pack(&file)).expect("it was packed here");
    assert_eq!(back.rows, file.rows);
    assert_eq!(back.names.texts(), file.names.texts());
    assert_eq!((file.rows.agents.len(), file.rows.stated_costs.len()), (1, 1));
}
