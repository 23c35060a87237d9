//! The sums between the reports add up, whatever copies and damage the logs hold.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::shell::arguments::Exit;
use crate::tests::harness::Home;
use crate::tests::log_builder::*;
use crate::tests::log_stories::{Folder, any_folder, texts};

fn sums(home: &Home) -> (Exit, Value) {
    let outcome = home.run(&["doctor", "--reconcile", "--json", "--no-lake", "--allow-empty"]);
    (outcome.exit, serde_json::from_str(&outcome.out).unwrap_or_else(|_| panic!("{}", outcome.err)))
}

fn home_of(folder: &Folder) -> Home {
    let home = Home::new();
    for (name, text) in texts(folder) {
        home.write(&format!(".claude/projects/p/{}.jsonl", name.replace('/', "-")), text);
    }
    home
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn every_sum_adds_up(folder in any_folder(), copies in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index, bool)>(), 0..3)) {
        let mut folder = folder;
        for (number, (of, from, is_fork)) in copies.into_iter().enumerate() {
            let records = folder[of.index(folder.len())].1.clone();
            let part = records[from.index(records.len() + 1)..].iter().cloned();
            let part = part.map(|record| if is_fork { record.session("s-copy") } else { record });
            folder.push((format!("copy{number}"), part.collect()));
        }
        let (exit, report) = sums(&home_of(&folder));
        prop_assert_eq!(exit, Exit::Done, "{}\n{:#?}", report, folder);
    }
}

/// What has no id is known by its message and its place in it.
#[test]
fn calls_without_an_id_add_up_in_a_fork() {
    let nameless = json!({ "type": "tool_use", "name": "Bash", "input": {} });
    let turn = |session: &str, message: &str| {
        let calls = [nameless.clone(), nameless.clone()];
        let records = [user(&format!("p-{message}"), "go on"), assistant(message, &calls).at(1)];
        records.map(|record| record.session(session))
    };
    let one = [turn("s", "m1"), turn("s", "m2")].concat();
    let fork = [turn("s", "m1"), turn("t", "m3")].concat();
    let (exit, report) = sums(&home_of(&vec![("s".into(), one), ("t".into(), fork)]));
    assert_eq!(exit, Exit::Done, "{report:#}");
}

/// The file of a subagent counts, not what its parent saw of it, also where only the parent's records tell usage.
#[test]
fn the_file_of_a_subagent_without_usage_adds_up() {
    let inner = asks("m-a", "c-a", "Grep").at(2);
    let main = vec![user("p", "go on"), asks("m1", "c1", "Agent").at(1), agent_progress("a1", &inner)];
    let own = vec![inner.without_message("usage").agent("a1")];
    let (exit, report) = sums(&home_of(&vec![("s-main".into(), main), ("agent-a1".into(), own)]));
    assert_eq!(exit, Exit::Done, "{report:#}");
}

/// Models of other makers give ids of calls again, also in a subagent that is known from progress records only.
#[test]
fn an_id_that_comes_again_in_a_subagent_is_another_call() {
    let inner = asks("m2", "c1", "Bash").at(2);
    let main = vec![user("p", "go on"), asks("m1", "c1", "Agent").at(1), agent_progress("a1", &inner)];
    let (exit, report) = sums(&home_of(&vec![("s-main".into(), main)]));
    assert_eq!(exit, Exit::Done, "{report:#}");
}

/// Gateways that tell no usage write zeros.
#[test]
fn the_bill_lacks_the_requests_whose_usage_is_nothing_but_zeros() {
    let nothing = json!({ "input_tokens": 0, "output_tokens": 0 });
    let records = vec![
        user("p", "go on"),
        asks("m1", "c1", "Read").at(1),
        answers("c1", "one").at(2),
        asks("m2", "c2", "Read").message("usage", nothing).at(3),
    ];
    let (exit, report) = sums(&home_of(&vec![("s-main".into(), records)]));
    assert_eq!(exit, Exit::Done, "{report:#}");
    let sum = report["sums"].as_array().unwrap().iter().find(|sum| sum["to"] == "cost, session, the page").unwrap();
    assert!(sum.to_string().contains("\"whose usage is nothing but zeros\""), "{sum:#}");
    assert_eq!(sum["steps"][0]["change"], -1, "{sum:#}");
}

#[test]
fn every_report_says_what_it_holds_of_subagents_known_from_progress_records_only() {
    let story = |is_told: bool| {
        let mut main = vec![user("p", "go on")];
        for number in 0..30 {
            let (message, call) = (format!("m{number}"), format!("c{number}"));
            let tool = ["Read", "Grep"][number % 2];
            main.push(asks(&message, &call, tool).at(3 * number as u32 + 1));
            main.push(answers(&call, "one").at(3 * number as u32 + 2));
        }
        if is_told {
            main.push(agent_progress("a1", &asks("m-a", "c-a", "Grep").at(200)));
        }
        home_of(&vec![("s-main".into(), main)])
    };
    let (with, without) = (story(true), story(false));
    for (command, holds) in [
        (&["ingest"][..], "calls"),
        (&["mine", "tools"], "calls"),
        (&["mine", "sessions"], "calls"),
        (&["mine", "edges"], "calls"),
        (&["mine", "edges", "--concurrency", "flat"], "nothing"),
        (&["mine", "patterns"], "calls"),
        (&["mine", "projections"], "calls"),
        (&["mine", "fingerprints"], "calls"),
        (&["replay"], "calls"),
        (&["replay", "--sweep", "dedup.lru_size=5,6"], "calls"),
        (&["replay", "--planner", "--allow-empty"], "calls"),
        (&["replay", "--policy", "prompt-cache"], "first_chunks"),
        (&["tune", "from-claude-logs", "--dry-run"], "calls"),
        (&["tune", "analyze", "--from-claude-logs", "--dry-run"], "calls"),
    ] {
        let told = |home: &Home| {
            let outcome = home.run(command);
            assert_eq!(outcome.exit, Exit::Done, "{command:?}: {}", outcome.err);
            let known = home.json(command)["inputs"]["subagents_in_progress_only"].clone();
            (outcome.err.contains("1 subagent has no log but progress records"), known)
        };
        assert_eq!(told(&with), (true, json!({ "count": 1, "holds": holds })), "{command:?}");
        assert_eq!(told(&without), (false, json!({ "count": 0, "holds": holds })), "{command:?}");
    }
}

#[test]
fn each_difference_between_the_reports_has_its_name() {
    let main = [
        user("p", "go on"),
        asks("m1", "c1", "Read").at(1),
        answers("c1", "one").at(2),
        asks("m2", "c2", "Read").message("model", "<synthetic>").link("u2", None).at(3),
        agent_progress("a1", &asks("m3", "c3", "Grep").at(4)),
        asks("m4", "c4", "Read").without_message("id").link("u4", None).at(5),
    ];
    let copy: Vec<Record> = main[1..2].iter().map(|record| record.clone().session("s-fork")).collect();
    let home = home_of(&vec![("s-main".into(), main.to_vec()), ("s-fork".into(), copy)]);
    let (exit, report) = sums(&home);
    assert_eq!(exit, Exit::Done, "{report}");
    let told: Vec<String> = report["sums"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sum| {
            let steps: Vec<String> =
                sum["steps"].as_array().unwrap().iter().map(|step| step["change"].to_string()).collect();
            format!("{} {} [{}] {}", sum["of"].as_str().unwrap(), sum["start"], steps.join(" "), sum["end"])
        })
        .collect();
    assert_eq!(
        told,
        [
            "tool calls 4 [-1 1] 4",
            "tool calls 4 [] 4",
            "tool calls 4 [] 4",
            "tool calls 4 [-1] 3",
            "responses 4 [-3] 1",
            "messages 1 [1] 2",
            "messages 2 [] 2",
            "messages, requests 2 [1] 3",
            "requests 3 [] 3",
            "sessions 2 [] 2",
            "sessions 2 [] 2",
            "sessions 2 [-1] 1",
            "sessions 2 [-1] 1",
        ]
    );
}

/// A call without an id of a message that is no request, and two of one that is.
#[test]
fn calls_without_an_id_go_with_their_message() {
    let nameless = |message: &str, calls: usize| {
        assistant(message, &vec![json!({ "type": "tool_use", "name": "Read", "input": {} }); calls])
    };
    let main = vec![
        user("p", "go on"),
        nameless("m1", 2).at(1),
        nameless("m2", 1).message("model", "<synthetic>").link("u2", None).at(3),
    ];
    let (exit, report) = sums(&home_of(&vec![("s-main".into(), main)]));
    assert_eq!(exit, Exit::Done, "{report}");
    let sums = report["sums"].as_array().unwrap();
    let of_policies = sums.iter().find(|sum| sum["of"] == "tool calls" && sum["to"] == "what-if").unwrap();
    let steps: Vec<i64> =
        of_policies["steps"].as_array().unwrap().iter().map(|step| step["change"].as_i64().unwrap()).collect();
    assert_eq!((of_policies["start"].as_u64(), steps, of_policies["end"].as_u64()), (Some(3), vec![-1], Some(2)));
}

/// Two records of a message may have the same name: what they ask for tells that neither is a copy.
#[test]
fn parts_of_a_message_that_share_a_uuid_make_their_calls() {
    let asked = |call: &str, second: u32| asks("m1", call, "Read").link("u1", Some("p")).at(second);
    let main = vec![user("p", "go on"), asked("c1", 1), asked("c2", 2), asked("c2", 3), answers("c1", "one").at(4)];
    let home = home_of(&vec![("s-main".into(), main)]);
    let (exit, report) = sums(&home);
    assert_eq!(exit, Exit::Done, "{report}");
    assert_eq!(home.json(&["cost", "--since", "2026-01-01"])["total"]["calls"], 2);
}

/// A message without any id is known by nothing but its place.
#[test]
fn calls_without_an_id_of_messages_without_one_add_up() {
    let nameless = |second: u32| {
        let block = json!({ "type": "tool_use", "name": "Read", "input": {} });
        assistant("m", &[block]).without("uuid").without("requestId").without_message("id").at(second)
    };
    let main = vec![user("p", "go on"), nameless(1), nameless(2).without_message("usage"), nameless(3)];
    let (exit, report) = sums(&home_of(&vec![("s-main".into(), main)]));
    assert_eq!(exit, Exit::Done, "{report}");
}

#[test]
fn programs_can_add_the_sums_up() {
    let home = Home::new();
    home.write(".claude/projects/p/a.jsonl", crate::tests::harness::session("a", 6));
    home.write(".claude/projects/p/copy.jsonl", crate::tests::harness::session("a", 6));
    let csv = home.run(&["doctor", "--reconcile", "--format", "csv"]).out;
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("of,kind,count,what"));
    let (mut sum, mut sums) = (0, 0);
    for line in lines {
        // Only texts have commas of their own.
        let kinds = ["start", "change", "end"].into_iter();
        let (kind, rest) =
            kinds.filter_map(|kind| Some((kind, line.split_once(&format!(",{kind},"))?.1))).next().unwrap();
        let count: i64 = rest.split(',').next().unwrap().parse().unwrap_or_else(|_| panic!("{line}"));
        match kind {
            "start" => sum = count,
            "end" => {
                assert_eq!(sum, count, "{csv}");
                sums += 1;
            }
            _ => sum += count,
        }
    }
    assert!(sums > 3, "{csv}");
    let number = crate::report::escape::csv_number;
    assert_eq!(number("= 50.0 %"), "50.0 %");
    // What is nothing has no sign, and what is less has the one that programs read.
    assert_eq!(["-0", "-0.00", "-0.0 %", "−0.40 %"].map(number), ["0", "0.00", "0.0 %", "-0.40 %"]);
    assert_eq!(["-", "–", "-0.0004", "−<$0.01"].map(number), ["-", "–", "-0.0004", "-<$0.01"]);
    assert!(home.run(&["doctor", "--reconcile"]).out.contains(" = "), "people see where a sum ends");
}

/// `DEVBOY_LOGS=<folder> cargo test real_logs_add_up -- --ignored --nocapture` prints the sums of real logs.
#[test]
#[ignore = "needs a folder of logs in DEVBOY_LOGS"]
fn real_logs_add_up() {
    let logs = std::env::var("DEVBOY_LOGS").expect("DEVBOY_LOGS names a folder of logs");
    let home = Home::new();
    println!("{}", home.run(&["ingest", "--input-dir", &logs]).out);
    let outcome = home.run(&["doctor", "--reconcile", "--input-dir", &logs]);
    println!("{}{}", outcome.out, outcome.err);
    assert_eq!(outcome.exit, Exit::Done);
}
