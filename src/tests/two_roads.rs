//! Logs, and the telemetry that is emitted for them, lead to the same proposals, evidence and effects.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::Home;
use super::log_builder::{Record, answers, assistant, boundary, cases, compact_summary, fails, log, micro_compaction};
use crate::shell::arguments::Exit;

/// What happens next in a session.
#[derive(Clone, Debug)]
enum Step {
    /// A tool reads or changes one of a few files; `body` names what comes back, `way` how.
    Call {
        tool: usize,
        file: usize,
        body: usize,
        way: Way,
    },
    /// Two calls in one message.
    Pair(usize, usize),
    /// The result of an earlier call is cleared.
    Clear(usize),
    Compact,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Answers,
    Fails,
    Empty,
    Image,
    Beside,
    Never,
}

const TOOLS: [&str; 5] = ["Read", "Edit", "Grep", "Write", "Bash"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let way = prop_oneof![
        8 => Just(Way::Answers), 2 => Just(Way::Fails), 1 => Just(Way::Empty), 1 => Just(Way::Image),
        1 => Just(Way::Beside), 1 => Just(Way::Never),
    ];
    let call = (0..TOOLS.len(), 0..2_usize, 0..3_usize, way);
    let step = prop_oneof![
        12 => call.prop_map(|(tool, file, body, way)| Step::Call { tool, file, body, way }),
        2 => (0..3_usize, 0..3_usize).prop_map(|(a, b)| Step::Pair(a, b)),
        2 => (0..9_usize).prop_map(Step::Clear),
        1 => Just(Step::Compact),
    ];
    prop::collection::vec(step, 20..70)
}

fn body(number: usize) -> String {
    format!(
        "{{\"rows\":[{}]}}",
        (0..30).map(|row| format!("{{\"id\":{row},\"name\":\"n{number}\"}}")).collect::<Vec<_>>().join(",")
    )
}

/// The records of one context; `agent` is its subagent, if it is one.
fn records(steps: &[Step], name: &str, agent: Option<&str>) -> Vec<Record> {
    let mut out: Vec<Record> = Vec::new();
    let mut asked: Vec<String> = Vec::new();
    let mut second = 0;
    let mut add = |record: Record, out: &mut Vec<Record>| {
        second += 1;
        let record = record.session(name).at(second);
        out.push(match agent {
            Some(agent) => record.agent(agent),
            None => record,
        });
    };
    let image = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "aGk=" } });
    for (number, step) in steps.iter().enumerate() {
        let context = format!("{name}-{}", agent.unwrap_or("main"));
        let call = format!("call-{context}-{number}");
        let used = |call: &str, tool: usize, file: usize| json!({ "type": "tool_use", "id": call, "name": TOOLS[tool], "input": { "file_path": format!("/w/f{file}.rs") } });
        let message = format!("m-{context}-{number}");
        match step {
            Step::Call { tool, file, body: text, way } => {
                add(assistant(&message, &[used(&call, *tool, *file)]), &mut out);
                match way {
                    Way::Answers => add(answers(&call, body(*text)), &mut out),
                    Way::Fails => {
                        add(fails(&call, "it could not be done, since the text to replace is not there"), &mut out);
                    }
                    Way::Empty => add(answers(&call, ""), &mut out),
                    Way::Image => add(answers(&call, vec![image.clone()]), &mut out),
                    Way::Beside => add(
                        answers(&call, vec![json!({ "type": "text", "text": body(*text) }), image.clone()]),
                        &mut out,
                    ),
                    Way::Never => {}
                }
                asked.push(call);
            }
            Step::Pair(a, b) => {
                let calls = [format!("{call}-z"), format!("{call}-a")];
                add(assistant(&message, &[used(&calls[0], 0, 0), used(&calls[1], 0, 1)]), &mut out);
                add(answers(&calls[1], body(*b)), &mut out);
                add(answers(&calls[0], body(*a)), &mut out);
                asked.extend(calls);
            }
            Step::Clear(back) => {
                if let Some(call) = asked.iter().rev().nth(*back) {
                    add(micro_compaction(&format!("micro-{context}-{number}"), &[call]), &mut out);
                }
            }
            Step::Compact => {
                add(boundary(&format!("b-{context}-{number}")), &mut out);
                add(
                    compact_summary(&format!("s-{context}-{number}"), Some(&format!("b-{context}-{number}"))),
                    &mut out,
                );
            }
        }
    }
    out
}

/// What both commands must agree about.
fn said(report: &Value) -> Value {
    let mut profile = report["profile"].clone();
    profile.as_object_mut().unwrap().retain(|key, _| key != "basis");
    json!([report["findings"], report["changes"], report["diff"], report["gate"], report["fingerprints"], profile])
}

fn roads(home: &Home) -> [Value; 2] {
    let telemetry = home.path("telemetry").to_str().unwrap().to_owned();
    assert_eq!(home.run(&["replay", "--emit-telemetry", &telemetry, "-q"]).exit, Exit::Done);
    let analyze = |more: &[&str]| said(&home.json(&[&["tune", "analyze", "--dry-run", "-q"], more].concat()));
    [analyze(&["--input-dir", &telemetry]), analyze(&["--from-claude-logs"])]
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn telemetry_and_logs_propose_the_same(sessions in prop::collection::vec((steps(), steps()), 1..4)) {
        let home = Home::new();
        for (number, (main, side)) in sessions.iter().enumerate() {
            let name = format!("s{number}");
            home.write(&format!(".claude/projects/-w/{name}.jsonl"), log(&records(main, &name, None)));
            let side = log(&records(side, &name, Some("a1")));
            home.write(&format!(".claude/projects/-w/{name}/subagents/agent-a1.jsonl"), side);
        }
        let [telemetry, logs] = roads(&home);
        prop_assert_eq!(telemetry, logs);
    }
}

#[test]
fn readers_of_responses_pass_over_what_is_none() {
    let home = Home::new();
    let call = |way| Step::Call { tool: 1, file: 0, body: 0, way };
    let all = [call(Way::Answers), call(Way::Fails), Step::Clear(1), call(Way::Empty), call(Way::Never), Step::Compact];
    home.write(".claude/projects/-w/s.jsonl", log(&records(&all, "s", None)));
    let dir = home.path("telemetry");
    home.run(&["replay", "--emit-telemetry", dir.to_str().unwrap()]);
    let text = String::from_utf8(super::harness::all_bytes(&dir)).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let responses = lines.iter().filter(|line| line.get("session_hash").is_some()).count();
    assert_eq!(responses, 1, "only an answer has the fields of a response at the top of its line: {text}");
    let mut beside: Vec<&str> = lines
        .iter()
        .filter(|line| line["type"] == "context_event")
        .map(|line| line["data"]["what"].as_str().unwrap())
        .collect();
    beside.sort_unstable();
    assert_eq!(beside, ["cleared", "compacted", "empty", "failed", "unanswered"]);
}
