//! Follow-up edges, tools, patterns, sessions and comparisons: against plain re-implementations over generated
//! histories, and as commands.

use std::collections::{BTreeMap, BTreeSet};

use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::{CallLines, Home, session};
use crate::base::names::Sym;
use crate::base::significance::Chance;
use crate::base::stats::Clustered;
use crate::frames::edge::{Edge, EdgeSum, EdgeSums, EdgeThresholds, EndSum, Turns};
use crate::mine::{edge_graph, edges, tables};
use crate::report::table;
use crate::shell::arguments::Exit;
use crate::tests::log_builder::*;

/// What a generated line of a session does.
#[derive(Clone, Debug)]
enum Act {
    /// A message with these tools.
    Calls(Vec<usize>),
    Prompt,
    QueuedPrompt,
    Wrapper,
    Compaction,
}

const TOOLS: [&str; 4] = ["Read", "Bash", "Edit", "mcp__a__b"];

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => prop::collection::vec(0..TOOLS.len(), 1..4).prop_map(Act::Calls),
        2 => Just(Act::Prompt),
        1 => Just(Act::QueuedPrompt),
        1 => Just(Act::Wrapper),
        1 => Just(Act::Compaction),
    ]
}

/// What happened, as a plain list: session, partition, turn, step, tool.
type Plain = Vec<(usize, u32, u32, usize, usize)>;

/// A log of one session, and what it says.
fn written(session: usize, acts: &[Act]) -> (String, Plain) {
    let (mut partition, mut turn, mut records, mut plain) = (0, 0, Vec::new(), Plain::new());
    for (number, act) in acts.iter().enumerate() {
        let name = format!("{session}-{number}");
        match act {
            Act::Calls(tools) => {
                let id = |index: usize| format!("c-{name}-{index}");
                let blocks: Vec<Value> =
                    tools.iter().enumerate().map(|(index, tool)| tool_use(&id(index), TOOLS[*tool])).collect();
                records.push(assistant(&name, &blocks).at(10 * number as u32));
                for (index, tool) in tools.iter().enumerate() {
                    records.push(answers(&id(index), "fine").at(10 * number as u32 + 1));
                    plain.push((session, partition, turn, number, *tool));
                }
            }
            Act::Prompt => {
                records.push(user(&format!("p{name}"), "do it"));
                turn += 1;
            }
            Act::QueuedPrompt => {
                let queued = json!({ "type": "queued_command", "prompt": "and that", "commandMode": "prompt" });
                records.push(Record::new("attachment", &format!("q{name}")).set("attachment", queued));
                turn += 1;
            }
            Act::Wrapper => {
                records.push(user(&format!("w{name}"), "<command-name>/model</command-name>"));
                records.push(user(&format!("m{name}"), "from a skill").set("isMeta", true));
                let notice = json!({ "type": "queued_command", "prompt": "done", "commandMode": "task-notification" });
                records.push(Record::new("attachment", &format!("n{name}")).set("attachment", notice));
            }
            Act::Compaction => {
                records.push(boundary(&format!("b{name}")));
                partition += 1;
            }
        }
    }
    let session = format!("s-{session}");
    (log(&records.into_iter().map(|record| record.session(&session)).collect::<Vec<_>>()), plain)
}

/// Earlier tool, later tool, lag.
type Key = (String, String, u32);
type Counts = BTreeMap<Key, (u64, u64, u64, u64)>;
/// Pairs, of these across turns, and the contexts.
type Row = (u64, u64, BTreeSet<(usize, u32)>);

fn counts(sums: &EdgeSums) -> Counts {
    let name = |sym: Sym| sums.names[sym.0 as usize].clone();
    let row = |sum: &EdgeSum| {
        ((name(sum.from), name(sum.to), sum.lag.unwrap_or(0)), (sum.count, sum.across_turns, sum.cases, sum.sessions))
    };
    sums.edges.iter().map(row).collect()
}

/// Pairs, of these across turns, cases and sessions, one pair after the other.
fn plain_counts(sessions: &[Plain], lags: &[u32], turns: Turns, eventually: bool) -> Counts {
    let mut found: BTreeMap<Key, Row> = BTreeMap::new();
    for calls in sessions {
        let mut steps: Vec<usize> = calls.iter().map(|call| call.3).collect();
        steps.dedup();
        let rank = |step: usize| steps.iter().position(|&known| known == step).unwrap();
        for a in calls {
            let mut later = BTreeSet::new();
            for b in calls.iter().filter(|b| b.1 == a.1) {
                let distance = rank(b.3) as i64 - rank(a.3) as i64;
                let across = a.2 != b.2;
                let wanted = match turns {
                    Turns::All => true,
                    Turns::Within => !across,
                    Turns::Across => across,
                };
                let mut keys = Vec::new();
                keys.extend(lags.iter().filter(|&&lag| i64::from(lag) == distance && wanted).map(|&lag| (lag, across)));
                if eventually && distance > 0 && later.insert(b.4) {
                    keys.push((0, false));
                }
                for (lag, across) in keys {
                    let key = (TOOLS[a.4].to_owned(), TOOLS[b.4].to_owned(), lag);
                    let row = found.entry(key).or_default();
                    row.0 += 1;
                    row.1 += u64::from(across);
                    row.2.insert((a.0, a.1));
                }
            }
        }
    }
    let sessions = |cases: &BTreeSet<(usize, u32)>| cases.iter().map(|case| case.0).collect::<BTreeSet<_>>().len();
    let counted =
        |(key, (count, across, cases)): (Key, Row)| (key, (count, across, cases.len() as u64, sessions(&cases) as u64));
    found.into_iter().map(counted).collect()
}

/// The published definition: every file by itself, its calls in line order.
fn plain_flat(files: &[Plain], lags: &[usize]) -> BTreeMap<Key, u64> {
    let mut found = BTreeMap::new();
    for calls in files {
        for lag in lags {
            for (a, b) in calls.iter().zip(calls.iter().skip(*lag)) {
                let key = (TOOLS[a.4].to_owned(), TOOLS[b.4].to_owned(), *lag as u32);
                *found.entry(key).or_default() += 1;
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn edges_are_those_of_a_plain_count(
        sessions in prop::collection::vec(prop::collection::vec(act(), 0..14), 1..4),
        turns in prop::sample::select(vec![Turns::All, Turns::Within, Turns::Across]),
    ) {
        let written: Vec<(String, Plain)> = sessions.iter().enumerate().map(|(n, acts)| written(n, acts)).collect();
        // The first file stands there twice, as a resumed session would leave it.
        let mut files: Vec<(String, &str)> = written.iter().enumerate().map(|(n, (log, _))| (format!("f{n}"), log.as_str())).collect();
        files.push(("copy".to_owned(), written[0].0.as_str()));
        let files: Vec<(&str, &str)> = files.iter().map(|(name, log)| (name.as_str(), *log)).collect();
        let told = Told::of(&files);
        let mut plain: Vec<Plain> = written.iter().map(|(_, plain)| plain.clone()).collect();

        let activities = edges::by_message(&told.history);
        let eventually = turns == Turns::All;
        let found = edges::sums(&activities, &told.corpus.names, &[1, 2, 4], eventually, turns).unwrap();
        prop_assert_eq!(counts(&found), plain_counts(&plain, &[1, 2, 4], turns, eventually));

        let activities = edges::by_file(&told.corpus, &(i64::MIN..i64::MAX));
        let found = edges::sums(&activities, &told.corpus.names, &[1, 2, 3], false, Turns::All).unwrap();
        plain.push(plain[0].clone());
        let found: BTreeMap<_, u64> = counts(&found).into_iter().map(|(key, row)| (key, row.0)).collect();
        prop_assert_eq!(found, plain_flat(&plain, &[1, 2, 3]));
    }
}

#[test]
fn contexts_begin_and_end_with_what_stands_there() {
    let records = [
        assistant("m1", &[tool_use("c1", "Read"), tool_use("c2", "Grep")]),
        asks("m2", "c3", "Bash"),
        boundary("b"),
        asks("m3", "c4", "Bash"),
    ];
    let told = Told::of(&[("f", &log(&records))]);
    let sums = edges::sums(&edges::by_message(&told.history), &told.corpus.names, &[1], false, Turns::All).unwrap();
    let ends: BTreeMap<&str, (u64, u64)> =
        sums.ends.iter().map(|end| (sums.names[end.tool.0 as usize].as_str(), (end.starts, end.ends))).collect();
    assert_eq!(ends, BTreeMap::from([("Read", (1, 0)), ("Grep", (1, 0)), ("Bash", (1, 2))]));
    assert_eq!(sums.cases, 2);
}

#[test]
fn the_time_between_runs_from_result_to_call() {
    let records = [
        asks("m1", "c1", "Read").at(0),
        answers("c1", "x").at(2),
        asks("m2", "c2", "Edit").at(9),
        answers("c2", "x").at(10),
    ];
    let told = Told::of(&[("f", &log(&records))]);
    for activities in [edges::by_message(&told.history), edges::by_file(&told.corpus, &(i64::MIN..i64::MAX))] {
        let sums = edges::sums(&activities, &told.corpus.names, &[1], false, Turns::All).unwrap();
        assert_eq!((sums.edges.len(), sums.edges[0].gap_ms_p50, sums.edges[0].gap_ms_p90), (1, Some(7000), Some(7000)));
    }
}

#[test]
fn what_is_not_counted_at_any_time_is_missing() {
    let mut sums = sums_of(&[(1, 2, 30, 6)]);
    sums.edges.push(EdgeSum { lag: None, chance: None, ..sums.edges[0] });
    let rows = table::json(&tables::edges(&edges::edges(&sums, &THRESHOLDS), true));
    assert_eq!((&rows[0]["across_turns"], &rows[0]["significant"]), (&json!(0), &json!(false)));
    assert_eq!((&rows[1]["across_turns"], &rows[1]["significant"]), (&json!(null), &json!(null)));
}

const THRESHOLDS: EdgeThresholds = EdgeThresholds { q_max: 0.05, count_min: 20, sessions_min: 5 };

fn sums_of(rows: &[(u32, u32, u64, u64)]) -> EdgeSums {
    let names = ["", "A", "B", "C"].map(str::to_owned).to_vec();
    let edge = |&(from, to, count, sessions): &(u32, u32, u64, u64)| EdgeSum {
        from: Sym(from),
        to: Sym(to),
        lag: Some(1),
        count,
        across_turns: 0,
        cases: sessions,
        sessions,
        of_sessions: Clustered::of([(count, rows.iter().filter(|row| row.0 == from).map(|row| row.2).sum())]),
        gap_ms_p50: None,
        gap_ms_p90: None,
        chance: Some(chance(from, to, count)),
    };
    let ends = (1..4).map(|tool| EndSum { tool: Sym(tool), calls: 0, starts: 0, ends: 0, sessions: 0 }).collect();
    EdgeSums { names, cases: 9, sessions: 9, edges: rows.iter().map(edge).collect(), ends }
}

/// A tool that follows itself does so far oftener than order explains, one that follows another far less.
fn chance(from: u32, to: u32, count: u64) -> Chance {
    let expected = if from == to { 0.1 * count as f64 } else { 3.0 * count as f64 };
    Chance { expected, variance: expected }
}

/// A follows A 30 times and B 10; B follows A 4 times and B 56. Of 100 pairs 34 end in A.
#[test]
fn support_confidence_lift_and_dependency_are_the_closed_forms() {
    let rows = edges::edges(&sums_of(&[(1, 1, 30, 6), (1, 2, 10, 6), (2, 1, 4, 6), (2, 2, 56, 6)]), &THRESHOLDS);
    let row = |from: &str, to: &str| rows.iter().find(|row| row.from == from && row.to == to).unwrap();
    let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-12, "{found} is not {wanted}");
    near(row("A", "A").support, 0.30);
    near(row("A", "A").confidence.value(), 0.75);
    near(row("A", "A").lift.unwrap(), 0.75 / 0.34);
    near(row("A", "A").dependency, 30.0 / 31.0);
    near(row("A", "B").lift.unwrap(), 0.25 / 0.66);
    near(row("A", "B").dependency, 6.0 / 15.0);
    near(row("B", "A").dependency, -6.0 / 15.0);
    assert!(row("A", "A").significant && row("B", "B").significant);
    assert!(!row("A", "B").significant && row("A", "B").p.unwrap() > 0.99);
    assert_eq!((&rows[0].from, rows[0].sum.count), (&"B".to_owned(), 56), "the most frequent first");
}

/// What always follows in one session says nothing of others; in eight it is no more than eight times the same.
#[test]
fn the_interval_of_an_edge_is_over_sessions() {
    let home = Home::new();
    let ends = || {
        let report = home.json(&["mine", "edges", "--lags", "1", "--eventually"]);
        let edges = report["edges"].as_array().unwrap().clone();
        let is_wanted = |edge: &&Value| edge["from"] == "Grep" && edge["to"] == "Read" && edge["lag"] == 1;
        let edge = edges.iter().find(is_wanted).unwrap().clone();
        assert_eq!(edge["confidence"], 1.0, "{edge}");
        assert_eq!(edge["trials"], edge["count"], "{edge}");
        [&edge["confidence_lower"], &edge["confidence_upper"]].map(|end| end.as_f64().unwrap())
    };
    home.write(".claude/projects/-p/0.jsonl", session("s0", 14));
    assert_eq!(ends(), [0.0, 1.0]);
    for number in 1..8 {
        home.write(&format!(".claude/projects/-p/{number}.jsonl"), session(&format!("s{number}"), 14));
    }
    let [lower, upper] = ends();
    assert!((0.5..0.7).contains(&lower) && upper == 1.0, "{lower}");
}

#[test]
fn an_edge_of_few_sessions_or_few_pairs_is_never_significant() {
    let rows = edges::edges(&sums_of(&[(1, 1, 60, 4), (2, 2, 19, 9), (3, 3, 60, 9)]), &THRESHOLDS);
    let significant: Vec<&str> = rows.iter().filter(|row| row.significant).map(|row| row.from.as_str()).collect();
    assert!(rows.iter().all(|row| row.q.unwrap() < 0.001));
    assert_eq!(significant, ["C"]);
}

#[test]
fn names_cannot_break_out_of_a_graph() {
    let rows = edges::edges(&sums_of(&[(1, 2, 60, 9), (2, 1, 60, 9)]), &THRESHOLDS);
    let odd = "a\"]; x -> y [label=\"\\\n|`<b>#";
    let rows: Vec<Edge> = rows.into_iter().map(|row| Edge { from: odd.to_owned(), ..row }).collect();
    let drawn: Vec<&Edge> = rows.iter().collect();
    let dot = edge_graph::dot(&drawn);
    assert!(dot.contains(r#"[label="a\"]; x -> y [label=\"\\ |`<b>#"];"#), "{dot}");
    // Outside of quoted strings nothing is left of the name.
    let bare: String = dot.replace("\\\\", "").replace("\\\"", "").split('"').step_by(2).collect();
    assert!(!bare.contains("x ->") && bare.matches("->").count() == 2, "{bare}");
    let mermaid = edge_graph::mermaid(&drawn);
    assert_eq!(mermaid.lines().count(), 1 + 3 + 2 + 2, "{mermaid}");
    assert!(
        mermaid.contains("[\"a#34;#93;#59; x -#62; y #91;label#61;#34;#92; #124;#96;#60;b#62;#35;\"]"),
        "{mermaid}"
    );
}

/// Eight sessions in which Grep and Read take turns, and one with a tool of its own.
fn home() -> Home {
    let home = Home::new();
    for number in 0..8 {
        home.write(&format!(".claude/projects/-p/{number}.jsonl"), session(&format!("s{number}"), 14 + number));
    }
    let rare = session("rare", 6).replace("\"Grep\"", "\"mcp__secretserver__look\"");
    home.write(".claude/projects/-p/rare.jsonl", rare);
    home
}

const COMMANDS: [&[&str]; 8] = [
    &["mine", "edges"],
    &["mine", "edges", "--concurrency", "flat", "--eventually"],
    &["mine", "edges", "--ends"],
    &["mine", "tools"],
    &["mine", "tools", "--servers"],
    &["mine", "patterns"],
    &["mine", "sessions"],
    &["mine", "compare", "..2026-10-30T00:00:00Z", "2026-10-30T00:00:01Z.."],
];

fn run(home: &Home, command: &[&str], more: &[&str]) -> String {
    let outcome = home.run(&[command, more, &["-q"]].concat());
    assert_eq!(outcome.exit, Exit::Done, "{command:?} {more:?}: {}", outcome.err);
    outcome.out
}

#[test]
fn tables_fit_100_columns() {
    for command in COMMANDS {
        let out = home().out_at_width(command, 100);
        assert!(out.lines().count() > 3, "{command:?}: {out}");
        assert!(out.lines().all(|line| line.chars().count() <= 100), "{command:?}\n{out}");
    }
}

#[test]
fn every_form_holds_the_same_rows() {
    let home = home();
    for command in COMMANDS {
        let report: Value = serde_json::from_str(&run(&home, command, &["--json"])).unwrap();
        let name = report["command"].as_str().unwrap().trim_start_matches("mine ").to_owned();
        let key = match command {
            _ if command.contains(&"--ends") => "ends",
            _ if command.contains(&"--servers") => "servers",
            _ if name == "compare" => "changes",
            _ => name.as_str(),
        };
        let rows = report[key].as_array().unwrap();
        assert!(!rows.is_empty(), "{command:?}");
        let csv = run(&home, command, &["--format", "csv"]);
        let mut lines = csv.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        for (line, row) in lines.by_ref().zip(rows) {
            if line.contains('"') {
                continue;
            }
            for (cell, name) in line.split(',').zip(&header) {
                let value = &row[*name];
                let same = match value {
                    Value::Null => cell.is_empty(),
                    Value::Number(number) => {
                        let (cell, value) = (cell.parse::<f64>().unwrap(), number.as_f64().unwrap());
                        (cell - value).abs() <= 1e-15 * value.abs()
                    }
                    Value::Bool(flag) => cell == flag.to_string(),
                    text => Some(cell) == text.as_str(),
                };
                assert!(same, "{command:?} {name}: {cell} is not {value}");
            }
        }
        assert_eq!(csv.lines().count(), rows.len() + 1, "{command:?}");
        let markdown = run(&home, command, &["--format", "md"]);
        assert_eq!(markdown.lines().count(), rows.len() + 2, "{command:?}");
        let path = home.path("out.parquet");
        run(&home, command, &["--format", "parquet", "--output", path.to_str().unwrap()]);
        let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let meta = file.metadata().file_metadata();
        assert_eq!(meta.num_rows() as usize, rows.len(), "{command:?}");
        let columns: Vec<&str> = meta.schema().get_fields().iter().map(|field| field.name()).collect();
        assert_eq!(columns, header, "{command:?}");
    }
}

#[test]
fn what_fewer_than_k_sessions_did_and_names_of_servers_do_not_leave() {
    let home = home();
    for command in COMMANDS {
        for form in ["table", "json", "csv", "md", "parquet"] {
            let mut out = Vec::new();
            home.run_into(&[command, &["--format", form, "--k-anonymity", "2", "-q"]].concat(), &mut out);
            let found = |text: &[u8]| memchr::memmem::find(&out, text).is_some();
            assert!(!found(b"__look") && !found(b"secret"), "{command:?} {form}");
        }
    }
    assert!(!run(&home, &["mine", "edges"], &["--format", "csv"]).contains("secretserver"));
    assert!(run(&home, &["mine", "edges", "--names"], &["--format", "csv"]).contains("mcp__secretserver__look"));
    let patterns = |more: &[&str]| home.json(&[&["mine", "patterns"], more].concat());
    let (all, few) = (patterns(&[]), patterns(&["--k-anonymity", "1000"]));
    assert_eq!((all["patterns"].as_array().unwrap().len(), &all["left_out"]), (9, &json!(0)), "{all:#}");
    assert_eq!((&few["patterns"], &few["left_out"]), (&json!([]), &json!(9)));
    let sessions = home.json(&["mine", "sessions", "--k-anonymity", "2"]);
    assert_eq!((&sessions["sessions"], &sessions["left_out"]), (&json!([]), &json!(9)));
}

#[test]
fn output_does_not_depend_on_threads_nor_on_what_is_remembered() {
    let home = home();
    for command in COMMANDS {
        for form in ["json", "csv"] {
            let with = |more: &[&str]| run(&home, command, &[&["--format", form, "--reproducible"], more].concat());
            let rows = |text: String| text.split("\"inputs\"").next().unwrap_or_default().to_owned();
            let first = with(&["--threads", "1", "--no-lake"]);
            for more in [&["--threads", "3", "--no-lake"][..], &["--threads", "2"], &["--threads", "1"]] {
                assert_eq!(rows(first.clone()), rows(with(more)), "{command:?} {more:?}");
            }
        }
    }
}

#[test]
fn a_published_layout_can_be_read_back_and_compared_with_the_logs_it_was_made_from() {
    let home = home();
    let (edges, volumes) = (home.path("edges.csv"), home.path("volumes.csv"));
    for (what, path) in [("edges", &edges), ("tools", &volumes)] {
        run(&home, &["mine", what, "--layout", "published"], &["--output", path.to_str().unwrap()]);
    }
    let header = |path| std::fs::read_to_string(path).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(header(&edges), "prev_tool,next_tool,lag,count");
    let columns = "tool_anon,calls,sessions,response_chars_median,response_chars_p90,response_chars_p99";
    assert_eq!(header(&volumes), columns);
    let logs = home.logs().display().to_string();
    for path in [&edges, &volumes] {
        let report = home.json(&["mine", "compare", path.to_str().unwrap(), &logs, "--lags", "1,2,3"]);
        let rows = report["changes"].as_array().unwrap();
        assert!(!rows.is_empty());
        assert!(rows.iter().all(|row| row["changed"] == false && row["p"].as_f64().unwrap() > 0.99), "{rows:?}");
    }
    let text = std::fs::read_to_string(&edges).unwrap();
    let lags: Vec<(u32, std::cmp::Reverse<u64>)> = text
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[2].parse().unwrap(), std::cmp::Reverse(cells[3].parse().unwrap()))
        })
        .collect();
    assert!(lags.is_sorted());
}

#[test]
fn where_nothing_changed_no_empty_table_is_shown() {
    let home = home();
    let path = home.write("same.csv", "prev_tool,next_tool,lag,count\nA,B,1,7\nB,A,1,6\n");
    let path = path.to_str().unwrap();
    let told = home.run(&["mine", "compare", path, path, "--changed"]).out;
    assert_eq!(told, "0 of 2 rows changed.\n");
}

#[test]
fn a_table_with_a_bad_row_is_refused_with_its_line() {
    let home = home();
    let path = home.write("bad.csv", "prev_tool,next_tool,lag,count\nA,B,1,7\nA,B,one,7\n");
    let outcome = home.run(&["mine", "compare", path.to_str().unwrap(), "30d.."]);
    assert_eq!(outcome.exit, Exit::Failed);
    assert!(outcome.err.contains("bad.csv:3"), "{}", outcome.err);
    let other = home.write("other.csv", "a,b\n1,2\n");
    assert!(home.run(&["mine", "compare", other.to_str().unwrap(), "30d.."]).err.contains("neither a table of edges"));
}

#[test]
fn a_follow_up_that_changed_is_told_from_one_that_did_not() {
    let home = Home::new();
    let logs = |dir: &str, second: &str| {
        for number in 0..12 {
            let text = session(&format!("{dir}{number}"), 30).replace("\"Grep\"", "\"Glob\"");
            let text = if number < 9 { text.replace("\"Read\"", second) } else { text };
            home.write(&format!("{dir}/{number}.jsonl"), text);
        }
        home.path(dir).display().to_string()
    };
    let (a, b) = (logs("a", "\"Read\""), logs("b", "\"Bash\""));
    let report = home.json(&["mine", "compare", &a, &b]);
    let row = |to: &str| report["changes"].as_array().unwrap().iter().find(|row| row["to"] == to).unwrap().clone();
    assert_eq!(row("Bash")["changed"], true);
    assert_eq!((row("Bash")["a_count"].as_u64(), row("Bash")["b_count"].as_u64()), (Some(0), Some(135)));
    let same = home.json(&["mine", "compare", &a, &a]);
    assert_eq!(same["changed"], 0);
}

/// Sizes that change are found, whichever side is named first, and constant ones too.
#[test]
fn sizes_that_changed_are_told_from_either_side() {
    let home = Home::new();
    let logs = |dir: &str, chars: &dyn Fn(usize) -> usize| {
        let call = |session: usize, number: usize| {
            CallLines {
                session: &format!("{dir}-{session}"),
                number,
                tool: "Grep",
                input: "/secretpath/secretfile.rs",
                body: &"b".repeat(chars(number)),
                model: "claude-opus-4-6",
            }
            .text()
        };
        for session in 0..4 {
            let calls = (0..30).map(|number| call(session, number));
            home.write(&format!("{dir}/{session}.jsonl"), calls.collect::<String>());
        }
        home.path(dir).display().to_string()
    };
    let growing = |least: usize| move |number: usize| least + number;
    for (small, large) in
        [(logs("small", &growing(100)), logs("large", &growing(900))), (logs("short", &|_| 50), logs("long", &|_| 160))]
    {
        let row = |a: &str, b: &str| {
            let report = home.json(&["mine", "compare", a, b]);
            let row = report["changes"].as_array().unwrap().iter().find(|row| row["what"] == "size").unwrap();
            (row["changed"].clone(), row["q"].as_f64().unwrap())
        };
        let (there, back) = (row(&small, &large), row(&large, &small));
        assert_eq!(there, back);
        assert_eq!(there.0, true);
        assert_eq!(row(&small, &small).0, false);
    }
}

/// Each session has a mix of tools of its own: that two groups of sessions differ is no change.
#[test]
fn what_differs_from_session_to_session_is_no_change() {
    let home = Home::new();
    let logs = |dir: &str, tools: &[&str]| {
        for (number, tool) in tools.iter().enumerate() {
            let text = session(&format!("{dir}{number}"), 60);
            home.write(&format!("{dir}/{number}.jsonl"), text.replace("\"Grep\"", tool).replace("\"Read\"", tool));
        }
        home.path(dir).display().to_string()
    };
    let a = logs("a", &["\"Glob\"", "\"Glob\"", "\"Glob\"", "\"Bash\""]);
    let b = logs("b", &["\"Glob\"", "\"Bash\"", "\"Bash\"", "\"Bash\""]);
    assert_eq!(home.json(&["mine", "compare", &a, &b])["changed"], 0);
    let one = home.json(&["mine", "compare", &format!("{a}/0.jsonl"), &format!("{b}/1.jsonl")]);
    assert!(one["changes"].as_array().unwrap().iter().all(|row| row["p"].is_null()), "{one}");
}

/// A Read with a path.
fn reads(message: &str, call: &str, tool: &str, path: &str) -> Record {
    let mut block = tool_use(call, tool);
    block["input"] = json!({ "file_path": path });
    assistant(message, &[block])
}

#[test]
fn rereads_repeats_and_empty_rows_are_counted_within_a_context() {
    let home = Home::new();
    let records = [
        reads("m1", "c1", "Read", "/a"),
        answers("c1", "text"),
        reads("m2", "c2", "Read", "/a"), // again, and the same text
        answers("c2", "text"),
        reads("m3", "c3", "Edit", "/a"),
        answers("c3", "done"),
        reads("m4", "c4", "Read", "/a"), // changed since
        answers("c4", "other"),
        asks("m5", "c5", "Grep"),
        answers("c5", ""),
        asks("m6", "c6", "Grep"),
        answers("c6", ""),
        asks("m7", "c7", "Grep"),
        answers("c7", "hit"),
        asks("m8", "c8", "Grep"),
        answers("c8", ""),
        boundary("b"),
        reads("m9", "c9", "Read", "/a"), // another context
        answers("c9", "other"),
        asks("m10", "c10", "Grep"),
        fails("c10", "no such directory"),
        asks("m11", "c11", "Grep"),
    ];
    home.write(".claude/projects/-p/1.jsonl", log(&records));
    let report = home.json(&["mine", "tools"]);
    let tool = |name: &str| report["tools"].as_array().unwrap().iter().find(|row| row["tool"] == name).unwrap().clone();
    let of = |name: &str, keys: &[&str]| keys.iter().map(|key| tool(name)[*key].as_i64().unwrap()).collect::<Vec<_>>();
    assert_eq!(of("Read", &["calls", "reads", "rereads_same", "repeatable", "repeats"]), [4, 4, 1, 4, 1]);
    assert_eq!(of("Grep", &["calls", "empty", "empty_in_runs", "empty_run_max", "failed", "open"]), [6, 3, 2, 2, 1, 1]);
    assert_eq!(of("Read", &["response_tokens", "response_chars_p50"]), [1 + 1 + 2 + 2, 4]);
    let patterns = home.json(&["mine", "patterns"]);
    let matches: BTreeMap<&str, i64> = patterns["patterns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["pattern"].as_str().unwrap(), row["matches"].as_i64().unwrap()))
        .collect();
    assert_eq!((matches.len(), matches["file_rereads"], matches["failed_search_loops"]), (9, 1, 1));
    assert_eq!((matches["find_then_fix"], matches["bulk_listing"], matches["todo_chains"]), (0, 0, 0));
}

/// The same words beside another image are another answer, as far as anybody can tell; another search is no re-read.
#[test]
fn what_cannot_be_compared_is_no_repeat() {
    let shot = |call: &str, image: usize| {
        let image = json!({ "type": "image", "source": { "type": "base64", "data": format!("iVBOR{image}") } });
        let result = json!({ "type": "tool_result", "tool_use_id": call, "content": [{ "type": "text", "text": "the page as it looks now" }, image] });
        user("", vec![result])
    };
    let polls = |message: &str, call: &str| asks(message, call, "BashOutput");
    let mut records: Vec<Record> = Vec::new();
    for number in 0..30 {
        let (message, call) = (format!("m{number}"), format!("c{number}"));
        records.extend([asks(&message, &call, "mcp__browser__shot"), shot(&call, number)]);
    }
    for number in 30..32 {
        let (message, call) = (format!("m{number}"), format!("c{number}"));
        records.extend([polls(&message, &call), shot(&call, number)]);
    }
    for (number, pattern) in ["alpha", "beta"].iter().enumerate() {
        let mut block = tool_use(&format!("g{number}"), "Grep");
        block["input"] = json!({ "pattern": pattern, "path": "/a" });
        records.extend([assistant(&format!("n{number}"), &[block]), answers(&format!("g{number}"), *pattern)]);
    }
    let home = Home::new();
    home.write(".claude/projects/-p/1.jsonl", log(&records));
    let report = home.json(&["mine", "tools"]);
    let row = |tool: &str| {
        let mut rows = report["tools"].as_array().unwrap().iter();
        rows.find(|row| row["tool"].as_str().unwrap().ends_with(tool)).unwrap_or_else(|| panic!("{report:#}"))
    };
    assert_eq!((&row("shot")["repeatable"], &row("shot")["repeats"]), (&json!(0), &json!(0)));
    assert_eq!((&row("Grep")["reads"], &row("Grep")["rereads_overlapping"]), (&json!(0), &json!(0)));
    let fingerprints = home.json(&["mine", "fingerprints"]);
    let mut rows = fingerprints["fingerprints"].as_array().unwrap().iter();
    let shots = rows.find(|row| row["endpoint_class"].as_str().unwrap().ends_with("shot")).unwrap();
    assert_eq!((&shots["call_count"], &shots["dup_events"]), (&json!(30.0), &json!(0)), "{shots:#}");
    let patterns = home.json(&["mine", "patterns"]);
    let polling = patterns["patterns"].as_array().unwrap().iter().find(|row| row["pattern"] == "pipeline_polling");
    assert_eq!(polling.unwrap()["matches"], 0);
}

/// Refusals are answers with text as well.
#[test]
fn answers_that_were_counted_are_told_of_all_that_have_text() {
    let refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected.";
    let records = [
        asks("m1", "c1", "Read"),
        answers("c1", "some text of a file"),
        asks("m2", "c2", "Bash"),
        fails("c2", refusal),
    ];
    let home = Home::new();
    home.write(".claude/projects/-p/1.jsonl", log(&records));
    let report = home.json(&["mine", "tools", "--exact"]);
    let basis = report["tokens_basis"]["responses"].as_str().unwrap();
    assert!(basis.starts_with("replayed: 2 of 2 results counted"), "{basis}");
}

/// The key of pseudonyms is another one on every machine.
#[test]
fn fingerprints_stand_in_the_order_of_the_names_that_are_shown() {
    let servers = ["ash", "birch", "cedar", "elm", "fir", "oak"];
    let records: Vec<Record> = servers
        .iter()
        .flat_map(|server| {
            [asks(&format!("m-{server}"), server, &format!("mcp__{server}__list")), answers(server, "x")]
        })
        .collect();
    let home = Home::new();
    home.write(".claude/projects/-p/1.jsonl", log(&records));
    let report = home.json(&["mine", "fingerprints", "--names"]);
    let rows = report["fingerprints"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["endpoint_class"].as_str().unwrap()).collect();
    assert!(names.len() == 6 && names.is_sorted() && names[0].contains("ash"), "{names:?}");
}

/// Of a second read counts whether its bytes were shown, else whether its lines were.
#[test]
fn rereads_are_of_three_classes() {
    let read = |id: &str, lines: Value| {
        let mut block = tool_use(id, "Read");
        block["input"] = json!({ "file_path": "/a" });
        block["input"].as_object_mut().unwrap().extend(lines.as_object().unwrap().clone());
        assistant(&format!("m-{id}"), &[block])
    };
    let shown = [
        ("c1", json!({ "offset": 1, "limit": 100 }), "first"),
        ("c2", json!({ "offset": 101, "limit": 100 }), "second"), // the next lines
        ("c3", json!({ "offset": "150", "limit": "10" }), "inside"), // lines of the second, numbers as texts
        ("c4", json!({ "offset": 1, "limit": 100 }), "first"),    // again
        ("c5", json!({}), "first and more"),                      // the whole file
        ("c6", json!({ "offset": 900 }), "end"),                  // to the end, as the one before
    ];
    let records: Vec<Record> =
        shown.iter().flat_map(|(id, lines, text)| [read(id, lines.clone()), answers(id, *text)]).collect();
    let home = Home::new();
    home.write(".claude/projects/-p/1.jsonl", log(&records));
    let report = home.json(&["mine", "tools"]);
    let row = &report["tools"][0];
    let counts =
        ["reads", "rereads_same", "rereads_overlapping", "rereads_other"].map(|key| row[key].as_i64().unwrap());
    assert_eq!(counts, [6, 1, 3, 1]);
    let patterns = home.json(&["mine", "patterns"]);
    let row = patterns["patterns"].as_array().unwrap().iter().find(|row| row["pattern"] == "file_rereads").unwrap();
    assert_eq!(row["matches"], 4, "other lines of a file are no habit of reading again");
    // Without a limit 2,000 lines are shown.
    let pages = ["p1", "p2", "p3", "p4"].into_iter().zip([1, 2_001, 4_001, 6_000]);
    let pages = pages.flat_map(|(id, first)| [read(id, json!({ "offset": first })), answers(id, id)]);
    let home = Home::new();
    home.write(".claude/projects/-p/1.jsonl", log(&pages.collect::<Vec<_>>()));
    let row = &home.json(&["mine", "tools"])["tools"][0];
    assert_eq!((&row["rereads_other"], &row["rereads_overlapping"]), (&json!(2), &json!(1)));
}

/// F2: volumes of patterns are recomputed from the logs.
#[test]
fn patterns_are_found_where_they_are_and_not_beside() {
    let home = Home::new();
    let poll = "mcp__gitlab__get_branch_pipeline";
    let records = [
        asks("m1", "c1", "Grep"),
        answers("c1", "hit"),
        asks("m2", "c2", "Bash"),
        asks("m3", "c3", "Edit"), // two messages later
        asks("m4", "c4", "Bash"),
        asks("m5", "c5", "Read"), // four messages later
        asks("m6", "c6", poll),
        answers("c6", "running"),
        asks("m7", "c7", "Bash"),
        asks("m8", "c8", poll), // unchanged
        answers("c8", "running"),
        asks("m9", "c9", poll), // changed
        answers("c9", "success"),
        asks("m10", "c10", "TodoWrite"),
        asks("m11", "c11", "mcp__play__browser_click"),
        answers("c11", "x".repeat(10_746)),
        asks("m12", "c12", "mcp__play__browser_click"),
        answers("c12", "x".repeat(10_745)),
    ];
    home.write(".claude/projects/-p/1.jsonl", log(&records));
    let report = home.json(&["mine", "patterns"]);
    let matches: Vec<i64> =
        report["patterns"].as_array().unwrap().iter().map(|row| row["matches"].as_i64().unwrap()).collect();
    assert_eq!(matches, [1, 0, 1, 0, 0, 0, 1, 0, 1]);
}

#[test]
fn a_session_is_one_row_with_its_turns_and_tokens() {
    let home = Home::new();
    let records = [
        user("p1", "go"),
        asks("m1", "c1", "Read").usage(10, 20),
        answers("c1", "abc"),
        user("p2", "more"),
        asks("m2", "c2", "Read").usage(1, 2),
        boundary("b"),
        asks("m3", "c3", "Bash").usage(5, 6),
    ];
    home.write(".claude/projects/-p/1.jsonl", log(&records));
    let report = home.json(&["mine", "sessions"]);
    let row = &report["sessions"][0];
    let numbers = ["calls", "read_calls", "chains", "subagents", "compactions", "turns", "messages", "input_tokens"];
    let found: Vec<i64> = numbers.iter().map(|key| row[*key].as_i64().unwrap()).collect();
    assert_eq!(found, [3, 2, 1, 0, 1, 2, 3, 16]);
    assert_eq!((row["output_tokens"].as_i64(), row["models"].as_str()), (Some(28), Some("claude-sonnet-5")));
    assert_eq!(row["session"].as_str().unwrap().len(), 16);
}

#[test]
fn turns_count_whether_tools_were_called_or_not() {
    let home = Home::new();
    let records = [
        user("p1", "what is this"),
        assistant("m1", &[json!({ "type": "text", "text": "a question" })]),
        user("p2", "look then"),
        asks("m2", "c1", "Read"),
        answers("c1", "abc"),
        user("p3", "and what do you say"),
        assistant("m3", &[json!({ "type": "text", "text": "nothing" })]),
    ];
    home.write(".claude/projects/-p/1.jsonl", log(&records));
    // A copy of the session says nothing new.
    home.write(".claude/projects/-p/2.jsonl", log(&records[..5]));
    assert_eq!(home.json(&["mine", "sessions"])["sessions"][0]["turns"], 3);
}

#[test]
fn nobody_writes_in_a_subagent() {
    let records = [
        user("p1", "look around").agent("a1"),
        asks("m1", "c1", "Read").agent("a1"),
        user("p2", "and there").agent("a1"),
        asks("m2", "c2", "Read").agent("a1"),
    ];
    let told = Told::of(&[("f", &log(&records))]);
    assert_eq!((told.call("c1").turn, told.call("c2").turn), (0, 0));
    let main = records.map(|record| record.set("isSidechain", false).without("agentId"));
    let told = Told::of(&[("f", &log(&main))]);
    assert_eq!((told.call("c1").turn, told.call("c2").turn), (0, 1));
}

#[test]
fn a_link_that_may_be_chance_is_not_proposed() {
    let home = Home::new();
    for number in 0..6 {
        let text = session(&format!("s{number}"), 30);
        home.write(&format!("same/{number}.jsonl"), text.replace("\"Read\"", "\"Grep\""));
        home.write(&format!("turns/{number}.jsonl"), text);
    }
    let links = |dir: &str| {
        let logs = home.path(dir).display().to_string();
        let report = home.json(&["tune", "from-claude-logs", "--tools", "--dry-run", "--input-dir", &logs]);
        let findings = report["findings"].as_array().unwrap().clone();
        let is_links = |row: &Value| row.to_string().contains("`tools.Grep.follow_up`") && row["verdict"] == "hold";
        let of_grep = findings.into_iter().filter(is_links);
        of_grep.map(|row| row["evidence"]["counts"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // Where every call is a Grep, a Grep says nothing about the next call.
    assert_eq!(links("same"), Vec::<String>::new());
    let found = links("turns").concat();
    assert!(found.contains("Read after") && found.contains("in any order") && found.contains("q < 0.001"), "{found}");
}

#[test]
fn no_flag_is_passed_over() {
    let home = home();
    let ends = |more: &[&str]| home.run(&[&["mine", "edges", "--ends"], more].concat());
    let (some, all) = (ends(&["--top", "2"]), ends(&["--all"]));
    assert_eq!((some.out.lines().count(), all.out.lines().count()), (4, 4), "{}", all.out);
    let first = |out: &str| out.split_whitespace().take(10).collect::<Vec<_>>().join(" ");
    assert_eq!(first(&some.out), first(&all.out), "those with most calls come first");
    assert!(some.out.ends_with("\n1 more row with --all\n") && !all.out.contains("more row"), "{}", some.out);
    for rows in ["tools", "fingerprints", "sessions", "patterns"] {
        let top = home.run(&["mine", rows, "--top", "1"]);
        assert!(top.out.ends_with(" with --all\n") && top.out.lines().count() == 3, "{rows}: {}", top.out);
        let (csv, whole) = (["mine", rows, "--top", "1", "--format", "csv"], ["mine", rows, "--format", "csv"]);
        assert_eq!(home.run(&csv).out, home.run(&whole).out, "data has all rows");
    }
    assert_eq!(ends(&["--top", "2", "--format", "csv"]).out.lines().count(), 4, "data has all rows");
    for flag in ["--servers", "--exact"] {
        let refused = home.run(&["mine", "tools", flag, "--layout", "published"]);
        assert!(refused.exit == Exit::Usage && refused.err.contains(flag), "{}", refused.err);
    }
    let refused = home.run(&["mine", "edges", "--ends", "--layout", "published"]);
    assert!(refused.exit == Exit::Usage && refused.err.contains("--ends"), "{}", refused.err);
    for more in [
        &["--min-count", "2"][..],
        &["--significant"],
        &["--eventually"],
        &["--format", "dot"],
        &["--lags", "2"],
        &["--turns", "within"],
    ] {
        let refused = ends(more);
        assert!(refused.exit == Exit::Usage && refused.err.contains("--ends"), "{more:?}: {}", refused.err);
    }
    let refused = home.run(&["--finding", "context_growth", "--explain"]);
    assert!(refused.exit == Exit::Usage && refused.err.contains("--explain"), "{}", refused.err);
    assert_eq!(home.run(&["doctor", "--reconcile", "--config", "c.toml"]).exit, Exit::Usage);
    for (flag, more) in [
        ("--print", &["--json"][..]),
        ("--as", &["json_compact", "--format", "md"]),
        ("--budget", &["40", "--fetch-rest", "get(page=2)", "--format", "csv"]),
    ] {
        let refused = home.run_with(&[&["encode", flag], more].concat(), b"{\"a\": [1, 2]}");
        assert!(refused.exit == Exit::Usage && refused.err.contains(flag), "{flag}: {}", refused.err);
    }
    let refused = home.run(&["what-if", "tool-filter", "--from-telemetry", "--alias", "agent-runtime"]);
    assert!(refused.exit == Exit::Usage && refused.err.contains("--alias works with logs only"), "{}", refused.err);
    let refused = home.run(&["encode", "--fetch-rest", "get_issues(page=2)"]);
    assert!(refused.exit == Exit::Usage && refused.err.contains("--budget"), "{}", refused.err);
}

#[test]
fn only_edges_can_be_drawn() {
    let home = home();
    assert!(run(&home, &["mine", "edges"], &["--format", "dot"]).starts_with("digraph"));
    let refused = home.run(&["mine", "tools", "--format", "mermaid"]);
    assert_eq!(refused.exit, Exit::Usage);
    assert!(refused.err.starts_with("error: invalid value 'mermaid'"), "before anything is read: {}", refused.err);
    let help = |rows: &str| home.run(&["mine", rows, "--help"]).out;
    assert!(help("edges").contains("mermaid") && !help("tools").contains("mermaid"));
    assert_eq!(home.run(&["mine", "edges", "--layout", "published", "--json"]).exit, Exit::Usage);
}

/// A side is named by no flag, and no flag is asked for.
#[test]
fn a_side_without_logs_is_told_as_a_side() {
    let home = home();
    let said = home.run(&["mine", "compare", "nowhere", "30d.."]).err;
    assert!(
        said.contains("looked at nowhere: does not exist\n") && said.contains("hint: a side is a folder"),
        "{said}"
    );
    assert!(!said.contains("--input-dir"), "{said}");
}

/// Counted file by file nobody knows where a person wrote.
#[test]
fn flat_edges_know_no_turns() {
    let home = Home::new();
    home.write(".claude/projects/p/s.jsonl", session("s", 6));
    let refused = home.run(&["mine", "edges", "--concurrency", "flat", "--turns", "across"]);
    assert!(refused.exit == Exit::Usage && refused.err.contains("knows no turns"), "{}", refused.err);
    let rows = home.json(&["mine", "edges", "--concurrency", "flat"]);
    let edges = rows["edges"].as_array().unwrap();
    assert!(!edges.is_empty() && edges.iter().all(|row| row["across_turns"].is_null()), "{rows:#}");
    let rows = home.json(&["mine", "edges"]);
    assert!(rows["edges"].as_array().unwrap().iter().all(|row| row["across_turns"].is_u64()), "{rows:#}");
}
