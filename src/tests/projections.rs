//! Mined projections: planted links are found, decoys and shuffled logs give nothing, whatever way the logs are read.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::harness::{Home, all_bytes, session};
use super::log_builder::*;
use super::planted;
use super::planted::{LINKS, PlantedSession, Random};
use crate::base::data::Data;
use crate::base::id::{Id, IdMap, work};
use crate::base::names::Names;
use crate::frames::lake::Lake;
use crate::frames::projection::{Hold, MinedProjection};
use crate::logs::assemble::{Kept, assemble};
use crate::logs::corpus::{Corpus, RowSource};
use crate::logs::record::Extractor;
use crate::logs::take::TakeLines;
use crate::logs::trace::FileTrace;
use crate::logs::values::{CallBlocks, GivenArgument, List, ValueRows};
use crate::mine::projections::chance::Binomial;
use crate::mine::projections::{Thresholds, ToldHistory, mine};
use crate::shell::arguments::Exit;

fn thresholds() -> Thresholds {
    toml_edit::de::from_str(&Data::default().text("mined_projections.toml").unwrap()).unwrap()
}

/// What is mined from files that were read.
fn mined(files: impl IntoIterator<Item = (String, FileTrace)>) -> Vec<MinedProjection> {
    let (mut corpus, mut names, mut values) = (Corpus::default(), Names::default(), IdMap::default());
    for (name, mut trace) in files {
        let symbols = names.absorb(&trace.value_names);
        let mut own = ValueRows::default();
        own.append(std::mem::take(&mut trace.values), &symbols, 0);
        let key = Id::pseudonym(name.as_bytes());
        values.insert(key, Arc::new(own));
        let source = RowSource { key, path: Some(name.into()), bytes: 0, counters: trace.counters.clone().into() };
        corpus.push(source, trace);
    }
    let history = assemble(&mut corpus, &|_| (), Kept::default()).0;
    let values = CallBlocks::of(&corpus, &history).gather(Arc::new(names), &values);
    mine(ToldHistory { history: &history, values: &values, tools: &corpus.names }, &thresholds())
}

fn mined_of(sessions: &[PlantedSession]) -> Vec<MinedProjection> {
    mined(planted::logs(sessions).into_iter().map(|(name, log)| (name, trace(log))))
}

/// Links as from, extractor, to, argument.
fn links(rows: &[MinedProjection]) -> BTreeSet<(&str, &str, &str, &str)> {
    let found = rows.iter().filter(|row| row.held.is_none());
    found.map(|row| (&*row.from, &*row.extractor, &*row.to, &*row.argument)).collect()
}

/// Calls that were made in parallel tell each other nothing: none looks at the others.
#[test]
fn calls_of_one_message_take_as_many_times_longer() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    let steps = |size: usize| {
        let call = |at: usize| json!({ "type": "tool_use", "id": format!("c{at}"), "name": "Grep", "input": {} });
        let mut records = vec![assistant("m", &(0..size).map(call).collect::<Vec<_>>())];
        records.extend((0..size).map(|at| answers(&format!("c{at}"), format!("src/a{at}.rs\nsrc/b{at}.rs"))));
        let file = ("one".to_owned(), trace(log(&records)));
        work::of(|| drop(pool.install(|| mined([file]))))
    };
    let [few, many] = [50, 200].map(steps);
    assert!(many < 6 * few, "{few} steps for 50, {many} for 200");
}

#[test]
fn planted_links_are_found_and_nothing_else() {
    let truth = BTreeSet::from(LINKS);
    let (mut right, mut wrong, mut missed) = (0, Vec::new(), Vec::new());
    for seed in 1..=6 {
        let rows = mined_of(&planted::history(seed, 60));
        for row in rows.iter().filter(|row| row.held.is_none()) {
            assert!(row.hits >= 20 && row.sessions >= 10, "the test plants too little: {row:?}");
        }
        let found = links(&rows);
        right += found.intersection(&truth).count();
        wrong.extend(found.difference(&truth).map(|link| format!("seed {seed}: {link:?}")));
        missed.extend(truth.difference(&found).map(|link| format!("seed {seed}: {link:?}")));
    }
    let share = |others: usize| right as f64 / (right + others) as f64;
    assert!(share(wrong.len()) >= 0.95, "precision: {wrong:?}");
    assert!(share(missed.len()) >= 0.95, "recall: {missed:?}");
}

#[test]
fn nothing_is_found_when_answers_are_exchanged_between_sessions() {
    for seed in 1..=3 {
        let mut sessions = planted::history(seed, 60);
        planted::exchange_answers(&mut sessions, &mut Random(seed));
        assert_eq!(links(&mined_of(&sessions)), BTreeSet::new(), "seed {seed}");
    }
}

#[test]
fn nothing_is_found_when_the_steps_are_put_in_another_order() {
    for seed in 1..=3 {
        let mut sessions = planted::history(seed, 60);
        planted::shuffle_steps(&mut sessions, &mut Random(seed));
        assert_eq!(links(&mined_of(&sessions)), BTreeSet::new(), "seed {seed}");
    }
}

#[test]
fn what_is_found_does_not_depend_on_the_order_of_files_or_on_copies_of_them() {
    let logs = planted::logs(&planted::history(7, 40));
    let read = |logs: Vec<(String, String)>| mined(logs.into_iter().map(|(name, log)| (name, trace(log))));
    let expected = read(logs.clone());
    assert!(expected.len() >= LINKS.len());
    assert_eq!(read(logs.iter().rev().cloned().collect()), expected);
    // A resumed session repeats the lines before.
    let copies = logs.iter().take(9).map(|(name, log)| (format!("resumed-{name}"), log.clone()));
    assert_eq!(read(copies.chain(logs.clone()).collect()), expected);
}

/// Lists and arguments of a file with names instead of symbols.
fn told(trace: &FileTrace) -> String {
    let name = |sym| trace.value_names.text(sym);
    let list = |row: &List| {
        let List { block, extractor, found, matches, flags, kept } = *row;
        format!("{block} {} {found} {matches} {flags} {kept}", name(extractor))
    };
    let given = |row: &GivenArgument| {
        let GivenArgument { block, argument, value, parent, leaves } = *row;
        format!("{block} {} {value} {parent} {leaves}", name(argument))
    };
    let lists = trace.values.lists.iter().map(list);
    let rows: Vec<String> = lists.chain(trace.values.given.iter().map(given)).collect();
    format!("{rows:#?} {:?}", trace.values.listed)
}

#[test]
fn values_do_not_depend_on_where_a_file_is_cut() {
    let bash = json!({ "type": "tool_use", "id": "b", "name": "Bash", "input": { "command": "cat x.json" } });
    let shell = [assistant("m-b", &[bash]), answers("b", r#"{"secret_key": "some value", "other": [12, 345]}"#)];
    let sessions = planted::history(3, 1);
    let log = log(&shell) + &planted::logs(&sessions)[0].1;
    let whole = told(&trace(&log));
    assert!(!whole.contains("secret_key") && whole.contains("file_path"), "{whole}");
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    for cut in (0..lines.len()).step_by(7).chain([1, 3]) {
        let mut joined = trace(lines[..cut].concat());
        joined.append(trace(lines[cut..].concat()));
        joined.fold(guide().values);
        assert_eq!(told(&joined), whole, "cut at line {cut}");
    }
}

/// A home with planted logs.
fn planted_home(seed: u64, sessions: usize) -> Home {
    let home = Home::new();
    for (name, log) in planted::logs(&planted::history(seed, sessions)) {
        home.write(&format!(".claude/projects/-home-u-planted/{name}"), log);
    }
    home
}

fn report(home: &Home, more: &[&str]) -> Value {
    home.json(&[&["mine", "projections", "--explain"], more].concat())["projections"].clone()
}

#[test]
fn the_command_finds_the_links_in_every_form_and_with_any_number_of_threads() {
    let home = planted_home(5, 60);
    let rows = report(&home, &["--names"]);
    let found = rows.as_array().unwrap().iter().filter(|row| row["held"].is_null());
    let names = |row: &Value| ["from", "extractor", "to", "argument"].map(|key| row[key].as_str().unwrap().to_owned());
    let expected = LINKS.map(|(from, extractor, to, argument)| [from, extractor, to, argument].map(str::to_owned));
    assert_eq!(found.map(names).collect::<BTreeSet<_>>(), BTreeSet::from(expected));
    for threads in ["1", "4"] {
        assert_eq!(report(&home, &["--names", "--no-lake", "--threads", threads]), rows);
    }
    for form in ["table", "csv", "md", "parquet"] {
        let path = home.path(&format!("out.{form}"));
        let outcome = home.run(&["mine", "projections", "--format", form, "--output", path.to_str().unwrap()]);
        assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(form == "parquet" && text.starts_with("PAR1") || text.contains("file_path"), "{form}: {text}");
        assert!(!text.contains("mcp__track"), "{form} shows the name of a server");
        assert!(!text.contains('┆'), "a file has a line for each row: {text}");
    }
}

#[test]
fn links_are_spelled_as_a_configuration_can_say_them() {
    let rows = mined_of(&planted::history(5, 60));
    let spelling = |to: &str| {
        let row = rows.iter().find(|row| row.held.is_none() && row.to == to).unwrap();
        row.spelling.clone().map(|link| (link.projection, link.projection_arg))
    };
    let said = |projection: &str, argument: &str| Some((projection.to_owned(), argument.to_owned()));
    assert_eq!(spelling("Read"), said("path", "file_path"));
    assert_eq!(spelling("WebFetch"), said("url", "url"));
    assert_eq!(spelling("mcp__queue__job_log"), said("id", "job"));
    // The last key alone would take the authors' ids as well.
    assert_eq!(spelling("mcp__track__get_issue"), said("$.data.issues[].id", "issue_id"));
    assert_eq!(spelling("mcp__track__get_notes"), None);
}

/// E10, F4: sessions count, not occurrences; coverage at the first and the first three places is counted from logged arguments.
#[test]
fn few_sessions_are_no_habit() {
    // Four sessions, each with twelve greps and the read of what they found.
    let call = |number: u64, step: u64| {
        let file = format!("src/file{number}x{step}.rs");
        let grep = planted::PlantedCall { step: 2 * step, tool: "Grep", input: json!({}), text: file.clone() };
        let input = json!({ "file_path": format!("/w/{file}") });
        [grep, planted::PlantedCall { step: 2 * step + 1, tool: "Read", input, text: "fine".into() }]
    };
    let sessions = |count: u64| -> Vec<PlantedSession> {
        let calls = |number| (0..12).flat_map(|step| call(number, step)).collect();
        (0..count).map(|number| PlantedSession { cwd: "/w".into(), calls: calls(number) }).collect()
    };
    let four = mined_of(&sessions(4));
    assert_eq!((four.len(), four[0].held, four[0].hits), (1, Some(Hold::Sessions), 48));
    let five = mined_of(&sessions(5));
    assert_eq!((five[0].held, five[0].hits, five[0].opportunities), (None, 60, 60));
    assert_eq!((five[0].top1, five[0].sole, five[0].reversed, five[0].forward), (60, 60, 0, 60));
}

#[test]
fn k_anonymity_leaves_out_links_of_few_sessions() {
    let home = planted_home(5, 60);
    let out = home.run(&["mine", "projections", "--json", "--k-anonymity", "1000"]);
    let report: Value = serde_json::from_str(&out.out).unwrap();
    assert_eq!((&report["projections"], &report["left_out"]), (&json!([]), &json!(LINKS.len())));
    assert!(out.err.contains("left out: fewer than 1000 sessions"), "{}", out.err);
}

#[test]
fn a_lake_that_grew_holds_the_values_of_a_fresh_reading() {
    let home = Home::new();
    let logs = planted::logs(&planted::history(5, 40));
    let place = |name: &str| format!(".claude/projects/-home-u-planted/{name}");
    for (name, log) in &logs {
        let lines: Vec<&str> = log.split_inclusive('\n').collect();
        home.write(&place(name), lines[..lines.len() / 2].concat());
    }
    home.json(&["ingest"]);
    for (name, log) in &logs {
        home.write(&place(name), log);
    }
    let grown = home.json(&["ingest"]);
    assert_eq!(grown["inputs"]["grown"], logs.len());
    let fresh = report(&home, &["--no-lake"]);
    assert!(fresh.as_array().unwrap().len() >= LINKS.len());
    assert_eq!(report(&home, &[]), fresh);
    // Deleted logs live on, also after segments were merged.
    std::fs::remove_file(home.path(&place(&logs[0].0))).unwrap();
    for number in 0..9 {
        home.write(&place(&format!("x{number}.jsonl")), session(&format!("x{number}"), 2));
        home.json(&["ingest"]);
    }
    let links =
        |rows: Value| rows.as_array().unwrap().iter().filter(|row| row["held"].is_null()).cloned().collect::<Vec<_>>();
    assert_eq!(links(report(&home, &[])), links(fresh));
}

#[test]
fn a_damaged_table_of_values_is_noticed_by_who_reads_it() {
    let home = planted_home(5, 40);
    let before = report(&home, &[]);
    for table in ["listed", "given"] {
        for entry in std::fs::read_dir(home.lake()).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().ends_with(&format!("{table}.parquet")) {
                std::fs::write(&path, b"nothing").unwrap();
            } else if path.extension().is_some_and(|ext| ext == "memo") {
                std::fs::remove_file(&path).unwrap();
            }
        }
        let calls = home.json(&["ingest"]);
        assert_eq!(calls["inputs"]["notes"], json!([]), "ingest reads no values");
        let after = home.json(&["mine", "projections", "--explain"]);
        assert_eq!(after["projections"], before);
        assert!(after["inputs"]["notes"].to_string().contains("damaged"), "{table}");
    }
}

#[test]
fn the_lake_holds_names_of_fields_and_no_values() {
    let home = Home::new();
    let call = |id: &str, tool: &str, input: Value| {
        assistant(&format!("m-{id}"), &[json!({ "type": "tool_use", "id": id, "name": tool, "input": input })])
    };
    let body =
        json!({ "issues": [{ "id": "hiddenid77" }], "hidden77key": { "a.b": "hiddenword" }, "x y": "hiddentext" });
    let mut records = vec![
        call("c1", "mcp__track__list", json!({ "filter": { "name": "hiddenname" }, "hidden 1": "hiddenvalue" })),
        answers("c1", body.to_string()),
        call("c2", "Bash", json!({ "command": "hiddencommand" })),
        answers("c2", r#"{"hiddenkey": "hiddenvalue"}"#),
        call("c3", "Grep", json!({ "path": "/hiddenroot" })),
        answers("c3", "/hiddenroot/hiddenfile.rs\nhttps://hidden.example/x\nhidden-4711"),
        call("c4", "Bash", json!({})),
    ];
    let place = ".claude/projects/-home-u-hidden/one.jsonl";
    home.write(place, log(&records));
    home.json(&["ingest"]);
    // The answer to a call of an earlier reading.
    records.push(answers("c4", r#"{"hiddenlaterkey": "hiddenlater"}"#));
    home.write(place, log(&records));
    assert_eq!(home.json(&["ingest"])["inputs"]["grown"], 1);
    let bytes = all_bytes(&home.lake());
    assert!(memchr::memmem::find(&bytes, b"hidden").is_none());
    let mut names = Names::default();
    let lake = Lake::open(&home.lake()).unwrap();
    let values = lake.load_values(&mut names, true).unwrap();
    let mut texts: Vec<&str> = names.texts().iter().map(String::as_str).collect();
    texts.sort_unstable();
    let of_answers = ["", "$.*", "$.*.*", "$.issues[].id", "*"];
    let expected = [&of_answers[..], &["command", "filter.name", "head", "id", "line", "path", "url"]].concat();
    assert_eq!(texts, expected);
    let file = values.values().next().unwrap();
    assert_eq!((file.lists.len(), file.listed.len(), file.given.len()), (8, 12, 8));
    let taken = file.lists.iter().filter(|list| list.is_taken());
    assert_eq!(taken.count(), 2, "of Grep alone");
    // Who asks nothing about those is given all others, and the values of no other.
    let bare = lake.load_values(&mut Names::default(), false).unwrap().into_values().next().unwrap();
    let others: Vec<_> = file.lists.iter().filter(|list| !list.is_taken()).copied().collect();
    assert_eq!((&bare.lists, &bare.given), (&others, &file.given));
    let mut rest = &file.listed[..];
    let of_others = file.lists.iter().flat_map(|list| {
        let (own, later) = rest.split_at(list.kept.into());
        rest = later;
        own.iter().filter(move |_| !list.is_taken())
    });
    assert_eq!(bare.listed, of_others.copied().collect::<Vec<_>>());
}

#[test]
fn tune_writes_mined_projections_and_says_so() {
    let home = planted_home(5, 60);
    let report = home.json(&["tune", "from-claude-logs", "--tools", "--dry-run"]);
    let of_grep = |row: &&Value| row["rule"] == "T1" && row.to_string().contains("tools.Grep.follow_up");
    let link = report["findings"].as_array().unwrap().iter().find(of_grep).unwrap();
    assert!(link["evidence"]["counts"].as_str().unwrap().contains("projection `path` mined: "), "{link}");
    // Whatever becomes of it is told with what it came to on the later sessions.
    assert!(report["prefetching"]["links"]["Grep"]["Read"]["sent"].is_u64(), "{}", report["prefetching"]);
    // An issue is asked for by its project, too, which no list says: such a call cannot be made ahead.
    assert!(!report["prefetching"].to_string().contains("issue"), "{}", report["prefetching"]);
    // Several parts of one run ask for the values of the calls, wherever these were read from.
    let logs: String = planted::logs(&planted::history(5, 60)).into_iter().map(|(_, log)| log).collect();
    let piped = home
        .run_with(&["tune", "from-claude-logs", "--tools", "--dry-run", "--json", "--input-dir", "-"], logs.as_bytes());
    let piped: Value = serde_json::from_str(&piped.out).unwrap();
    let unstored = home.json(&["tune", "from-claude-logs", "--tools", "--dry-run", "--no-lake"]);
    for other in [piped, unstored] {
        assert_eq!(other["findings"], report["findings"]);
        assert_eq!(other["prefetching"], report["prefetching"]);
    }
    let sparse = Home::new();
    for number in 0..8 {
        sparse.write(&format!(".claude/projects/-home-u-p/s{number}.jsonl"), session(&format!("s{number}"), 20));
    }
    let outcome = sparse.run(&["tune", "from-claude-logs", "--tools", "--dry-run", "--explain"]);
    assert!(outcome.out.contains("projection `path` shipped, kept: not enough data"), "{}", outcome.out);
}

#[test]
fn binomial_tails_are_exact() {
    let binomial = Binomial::new(40);
    let close = |left: f64, right: f64| assert!((left - right).abs() < 1e-12 * right.max(1e-3), "{left} {right}");
    close(binomial.at_least(10, 10, 0.5), 1.0 / 1024.0);
    // 10·0.2³·0.8² + 5·0.2⁴·0.8 + 0.2⁵
    close(binomial.at_least(3, 5, 0.2), 0.05792);
    close(binomial.at_least(1, 40, 0.1), 1.0 - 0.9_f64.powi(40));
    assert_eq!(
        (binomial.at_least(0, 5, 0.0), binomial.at_least(2, 5, 0.0), binomial.at_least(5, 5, 1.0)),
        (1.0, 0.0, 1.0)
    );
}

#[test]
fn rows_made_line_by_line_have_the_values_of_a_stream() {
    let log = &planted::logs(&planted::history(9, 1))[0].1;
    let mut extractor = Extractor::new(guide());
    log.lines().for_each(|line| extractor.line(line.as_bytes(), false));
    assert_eq!(told(&extractor.finish()), told(&trace(log)));
}
