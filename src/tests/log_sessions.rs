//! Rows to history: whatever copies the logs hold, in whatever order they are read, everything is there once.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use serde_json::{Value, json};

use crate::base::body_shape::BodyShape;
use crate::base::id::Id;
use crate::base::unpack::Packing;
use crate::logs::history::Eviction;
use crate::logs::overview::Overview;
use crate::logs::read;
use crate::logs::read::Job;
use crate::logs::trace::{FileTrace, NO_TIME, Place, Status};
use crate::tests::log_builder::*;

/// All orders of some things.
fn permutations<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |index: usize| {
        let mut rest = items.to_vec();
        let first = rest.remove(index);
        permutations(&rest).into_iter().map(move |rest| [vec![first.clone()], rest].concat())
    };
    (0..items.len()).flat_map(with_first).collect()
}

/// The whole history of one file.
fn told(records: &[Record]) -> Told {
    Told::of(&[("f", &log(records))])
}

/// A log in two parts, joined as a later run joins what was appended.
fn appended(log: &str, at: usize) -> FileTrace {
    let mut whole = trace(&log[..at]);
    whole.append(trace(&log[at..]));
    let FileTrace { names, rows, .. } = &mut whole;
    rows.fold(names);
    whole
}

/// The history without the counts of copies.
fn facts(told: &Told) -> Vec<String> {
    told.lines().into_iter().filter(|line| !line.starts_with("Merged")).collect()
}

fn session_id(name: &str) -> Id {
    Id::pseudonym(name.as_bytes())
}

fn partitions(told: &Told) -> Vec<u32> {
    told.history.calls.iter().map(|call| call.partition).collect()
}

fn compactions(told: &Told) -> u64 {
    told.history.compactions()
}

/// The records of one API message as they are streamed, and the result of its call.
fn streamed() -> Vec<Record> {
    let open = |block| assistant("m1", &[block]).message("stop_reason", json!(null)).usage(3, 1);
    vec![
        open(json!({ "type": "thinking", "thinking": "", "signature": "s" })).link("u1", None).at(1),
        open(json!({ "type": "text", "text": "let me see" })).link("u2", Some("u1")).at(2),
        asks("m1", "c1", "mcp__a__b").usage(3, 50).link("u3", Some("u2")).at(3),
        answers("c1", "a text").at(4),
    ]
}

/// A main file, a fork of it, and the file of a subagent, with compactions and copies.
fn family() -> Vec<(&'static str, String)> {
    let start = [
        asks("m1", "c1", "mcp__a__b").at(1),
        answers("c1", "one").at(2),
        assistant("m2", &[tool_use("c2", "mcp__a__b"), tool_use("c3", "mcp__a__c")]).at(3),
        fails("c3", "no such thing").at(4),
        answers("c2", "{\"a\":1}").at(5),
        boundary("b1").at(6),
        compact_summary("s1", Some("b1")).at(7),
        asks("m3", "c4", "mcp__a__b").at(8),
        micro_compaction("b2", &["c4", "c1"]).at(9),
    ];
    let main = [
        asks("m4", "c5", "mcp__a__d").at(10),
        agent_progress("a1", &asks("m9", "c9", "mcp__a__b").at(11)),
        agent_progress("a2", &asks("m8", "c8", "mcp__a__b").at(12)),
        answers("c5", "done").at(13),
    ];
    let fork = [answers("c4", "late").at(14), asks("m5", "c6", "mcp__a__b").at(15), answers("c6", "x").at(16)];
    let agent = [asks("m9", "c9", "mcp__a__b").agent("a1").at(11), answers("c9", "y").agent("a1").at(12)];
    let other_session =
        |records: &[Record]| log(&records.iter().map(|record| record.clone().session("s-fork")).collect::<Vec<_>>());
    vec![
        ("main", log(&start) + &log(&main)),
        ("fork", other_session(&start) + &other_session(&fork)),
        ("agent", log(&agent)),
    ]
}

fn told_family(files: &[(&'static str, String)]) -> Told {
    Told::of(&files.iter().map(|(name, log)| (*name, log.as_str())).collect::<Vec<_>>())
}

#[test]
fn either_key_names_a_session_and_an_empty_one_names_none() {
    let whole = log(&streamed());
    let lines = |log: &str| Told::of(&[("f", log)]).lines();
    assert_eq!(lines(&whole.replace("\"sessionId\":", "\"session_id\":")), lines(&whole));
    let each = |change: fn(Record) -> Record| log(&streamed().into_iter().map(change).collect::<Vec<_>>());
    let nameless = each(|record| record.without("sessionId"));
    assert_eq!(lines(&each(|record| record.session(""))), lines(&nameless));
    assert_ne!(lines(&nameless), lines(&whole));
}

#[test]
fn records_of_a_message_may_come_in_any_order() {
    let expected = told(&streamed()).lines();
    for order in permutations(&streamed()) {
        assert_eq!(told(&order).lines(), expected);
    }
}

#[test]
fn a_record_written_twice_counts_once_wherever_it_stands() {
    let expected = told(&streamed());
    for copy in streamed() {
        for at in 0..=streamed().len() {
            let mut records = streamed();
            records.insert(at, copy.clone());
            assert_eq!(facts(&told(&records)), facts(&expected));
        }
    }
}

#[test]
fn a_message_has_the_largest_usage_of_its_copies() {
    let told = told(&streamed());
    let [message] = told.history.messages[..] else { panic!("one message") };
    assert_eq!((message.usage.input, message.usage.output), (3, 50));
    assert!(message.finished && message.billed);
    assert_eq!(message.ts, START_MS + 1000);
    assert_eq!(told.history.merged.duplicate_message, 2);
}

#[test]
fn the_model_of_a_message_does_not_depend_on_which_record_comes_first() {
    let with = assistant("m1", &[]);
    let without = assistant("m1", &[]).message("model", "");
    assert_eq!(told(&[without.clone(), with.clone()]).lines(), told(&[with, without]).lines());
}

#[test]
fn files_may_be_read_in_any_order() {
    let expected = told_family(&family()).lines();
    for order in permutations(&family()) {
        assert_eq!(told_family(&order).lines(), expected);
    }
}

#[test]
fn a_file_may_be_read_in_two_parts() {
    let expected = told_family(&family()).lines();
    for (cut, (_, text)) in family().iter().enumerate() {
        for (at, _) in text.match_indices('\n') {
            let read = |(index, (name, text)): (usize, &(&'static str, String))| {
                (*name, if index == cut { appended(text, at + 1) } else { trace(text) })
            };
            let told = Told::from_traces(family().iter().enumerate().map(read).collect::<Vec<_>>());
            assert_eq!(told.lines(), expected, "file {cut} cut at byte {at}");
        }
    }
}

#[test]
fn the_shape_of_a_result_does_not_depend_on_where_a_file_was_cut() {
    for (tool, shape) in [("Read", BodyShape::Unknown), ("mcp__a__b", BodyShape::Prose)] {
        let log = log(&[asks("m1", "c1", tool), answers("c1", "a text")]);
        for at in [0, log.find('\n').unwrap() + 1, log.len()] {
            let told = Told::from_traces([("f", appended(&log, at))]);
            assert_eq!(told.call("c1").shape, shape as u8, "{tool}, cut at byte {at}");
        }
    }
}

#[test]
fn rows_do_not_depend_on_where_a_file_was_cut_even_if_calls_repeat() {
    let records =
        [asks("m1", "c1", "mcp__a__b"), asks("m1", "c1", "mcp__a__b"), answers("c1", "one"), answers("c1", "second")];
    for order in permutations(&records) {
        let log = log(&order);
        let whole = trace(&log);
        for (at, _) in log.match_indices('\n') {
            assert_eq!(appended(&log, at + 1).rows, whole.rows, "cut at byte {at} of {log}");
        }
    }
}

#[test]
fn the_history_does_not_depend_on_where_a_file_was_cut_even_if_calls_repeat() {
    let records =
        [asks("m1", "c1", "mcp__a__b"), asks("m1", "c1", "mcp__a__b"), answers("c1", "one"), answers("c1", "second")];
    for order in permutations(&records) {
        let log = log(&order);
        let whole = Told::of(&[("f", &log)]);
        for (at, _) in log.match_indices('\n') {
            let told = Told::from_traces([("f", appended(&log, at + 1))]);
            assert_eq!(told.lines(), whole.lines(), "cut at byte {at} of {log}");
        }
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let files: Vec<_> = family().into_iter().map(|(name, log)| (name, dir.path().join(name), log)).collect();
    for (_, path, log) in &files {
        std::fs::write(path, log).unwrap();
    }
    let expected = told_family(&family()).lines();
    for threads in 1..=3 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let jobs: Vec<Job<'_>> = files
            .iter()
            .map(|(_, path, log)| Job { path, packing: Packing::Plain, from: 0, to: log.len() as u64, named: false })
            .collect();
        let mut readings = Vec::new();
        read::read_all(&jobs, guide(), &pool, &|_| {}, &mut |reading| {
            readings.push(reading);
            ControlFlow::Continue(())
        });
        let traces = files.iter().zip(readings).map(|((name, ..), reading)| (*name, reading.trace));
        assert_eq!(Told::from_traces(traces).lines(), expected, "{threads} threads");
    }
}

fn session_of(told: &Told, call: &str) -> Id {
    let chain = &told.history.chains[told.call(call).chain as usize];
    told.history.sessions[chain.session as usize].id
}

#[test]
fn a_forked_copy_of_a_session_counts_once() {
    let told = told_family(&family());
    let ids = ["c1", "c2", "c3", "c4", "c5", "c6", "c8", "c9"];
    let found: BTreeSet<&str> = told.order(&ids).into_iter().collect();
    assert_eq!((told.history.calls.len(), found), (ids.len(), ids.into()));
    assert_eq!(told.history.messages.len(), 7);
    assert_eq!((told.history.merged.duplicate_call, told.history.merged.duplicate_message), (4, 3));
    let session = |call| session_of(&told, call);
    assert_eq!([session("c1"), session("c4"), session("c5")], [session_id(SESSION); 3]);
    assert_eq!(session("c6"), session_id("s-fork"));
    assert_eq!((told.call("c4").status, told.call("c4").chars), (Status::Ok, 4), "the fork has the answer");
}

#[test]
fn a_subagent_counts_once_in_whichever_places_it_stands() {
    let task = [asks("m1", "c1", "Task").at(1), answers("c1", "done").at(9)];
    let work = [asks("m2", "c2", "Read").usage(10, 20).at(2), answers("c2", "a text").at(5)];
    for places in 1..8 {
        let (own, inline, progress) = (places & 1 > 0, places & 2 > 0, places & 4 > 0);
        let mut main = vec![task[0].clone()];
        if inline {
            main.extend(work.iter().cloned().map(Record::inline));
        }
        if progress {
            main.extend(work.iter().map(|record| agent_progress("a1", record)));
        }
        main.push(task[1].clone());
        let agent = if own { log(&work.clone().map(|record| record.agent("a1"))) } else { String::new() };
        let told = Told::of(&[("main", &log(&main)), ("agent", &agent)]);
        let place = if own {
            Place::AgentFile
        } else if inline {
            Place::Inline
        } else {
            Place::Progress
        };
        let call = told.call("c2");
        assert_eq!(told.chains(), [(Place::Main, 1), (place, 1)], "places {places}");
        assert_eq!((call.status, call.chars, call.latency_ms), (Status::Ok, 6, Some(3000)), "places {places}");
        assert_eq!(told.history.sessions.len(), 1);
        assert_eq!(told.history.messages.len(), 2);
        let message = told.history.messages.iter().find(|message| message.id == Id::of(b"m2")).unwrap();
        assert_eq!((message.place, message.usage.input, message.usage.output), (place, 10, 20), "places {places}");
        assert_eq!(message.billed, own || inline, "places {places}");
        assert_eq!(told.history.merged.superseded_progress, u64::from(own && progress), "places {places}");
        assert_eq!(told.history.merged.orphan_result, 0, "places {places}");
    }
}

#[test]
fn a_record_of_its_own_says_where_a_message_was_made_even_behind_its_progress() {
    let own = assistant("m1", &[]).inline();
    let progress = agent_progress("a1", &assistant("m1", &[]));
    for records in permutations(&[own, progress]) {
        let [message] = told(&records).history.messages[..] else { panic!("one message") };
        assert_eq!((message.place, message.billed), (Place::Inline, true));
    }
}

#[test]
fn progress_of_one_subagent_is_kept_when_another_has_a_file() {
    let told = told_family(&family());
    assert_eq!(told.chain("c9").place, Place::AgentFile);
    assert_eq!(told.chain("c8").place, Place::Progress);
    assert_eq!(told.history.merged.superseded_progress, 1);
}

#[test]
fn an_agents_file_belongs_to_its_parents_session() {
    let main = log(&[asks("m1", "c1", "Task")]);
    let agent = log(&[asks("m2", "c2", "Read").agent("a1"), asks("m3", "c3", "Read").agent("a1")]);
    let other = log(&[asks("m4", "c4", "Read").agent("a2")]);
    let told = Told::of(&[("agent", &agent), ("main", &main), ("other", &other)]);
    assert_eq!(told.history.sessions.len(), 1);
    let chains = told.chains();
    assert_eq!(chains[0], (Place::Main, 1));
    assert_eq!(
        chains[1..].iter().collect::<BTreeSet<_>>(),
        [(Place::AgentFile, 1), (Place::AgentFile, 2)].iter().collect()
    );
    assert_eq!(told.chain("c2").agent, Id::of(b"a1"));
    assert_eq!(told.call("c2").chain, told.call("c3").chain);
    assert_ne!(told.call("c2").chain, told.call("c4").chain);
}

#[test]
fn interleaved_inline_subagents_are_told_apart_by_their_parents() {
    let records = [
        asks("m0", "c0", "Task").link("u0", None),
        user("p1", "do this").inline().link("p1", None),
        user("p2", "do that").inline().link("p2", None),
        asks("m1", "c1", "Read").inline().link("u1", Some("p1")),
        asks("m2", "c2", "Read").inline().link("u2", Some("p2")),
        answers("c2", "x").inline().link("r2", Some("u2")),
        answers("c1", "y").inline().link("r1", Some("u1")),
        asks("m3", "c3", "Read").inline().link("u3", Some("r2")),
        asks("m4", "c4", "Read").inline().link("u4", Some("r1")),
    ];
    let told = told(&records);
    assert_eq!(told.history.chains.len(), 3);
    assert_eq!(told.chain("c0").place, Place::Main);
    for (root, calls) in [("p1", ["c1", "c4"]), ("p2", ["c2", "c3"])] {
        let chain = told.chain(calls[0]);
        assert_eq!((chain.place, chain.agent, chain.calls.len()), (Place::Inline, Id::of(root.as_bytes()), 2));
        let steps = calls.map(|call| (told.call(call).chain, told.call(call).step));
        assert_eq!(steps[0].0, steps[1].0);
        assert_eq!((steps[0].1, steps[1].1), (0, 1));
    }
}

#[test]
fn inline_records_that_are_their_own_ancestors_do_not_hang() {
    let records = [
        asks("m1", "c1", "Read").inline().link("u1", Some("u2")),
        asks("m2", "c2", "Read").inline().link("u2", Some("u1")),
        asks("m3", "c3", "Read").inline().link("u3", Some("u3")),
    ];
    assert_eq!(told(&records).history.calls.len(), 3);
}

#[test]
fn a_boundary_and_its_summary_are_one_compaction() {
    // Three records further on, a summary whose parent is unknown stands for a compaction of its own.
    for (between, expected) in [(0, 1), (1, 1), (2, 1), (3, 2)] {
        let mut records = vec![asks("m1", "c1", "Read"), boundary("b1")];
        records.extend((0..between).map(|index| user(&format!("x{index}"), "a prompt")));
        records.extend([compact_summary("s1", None), asks("m2", "c2", "Read")]);
        let told = told(&records);
        assert_eq!((partitions(&told), compactions(&told)), (vec![0, 1], expected), "{between} records between");
    }
}

#[test]
fn a_summary_belongs_to_its_parent_however_far_away() {
    let mut records = vec![asks("m1", "c1", "Read"), boundary("b1")];
    records.extend((0..6).map(|index| user(&format!("x{index}"), "a prompt")));
    records.extend([compact_summary("s1", Some("b1")), asks("m2", "c2", "Read")]);
    assert_eq!(compactions(&told(&records)), 1);
}

#[test]
fn a_summary_without_a_boundary_is_a_compaction() {
    let told = told(&[
        asks("m1", "c1", "Read"),
        compact_summary("s1", None),
        asks("m2", "c2", "Read"),
        boundary("b1"),
        compact_summary("s2", Some("b1")),
        asks("m3", "c3", "Read"),
    ]);
    assert_eq!((partitions(&told), compactions(&told)), (vec![0, 1, 2], 2));
}

#[test]
fn a_boundary_without_a_uuid_is_a_compaction() {
    let nameless = boundary("b1").without("uuid");
    let told = told(&[
        asks("m1", "c1", "Read"),
        nameless.clone(),
        asks("m2", "c2", "Read"),
        nameless,
        asks("m3", "c3", "Read"),
    ]);
    assert_eq!((partitions(&told), compactions(&told)), (vec![0, 1, 2], 2));
}

#[test]
fn a_resumed_session_repeats_its_compactions_without_adding_any() {
    let start = [asks("m1", "c1", "Read").at(1)];
    let middle = [boundary("b1").at(2), compact_summary("s1", Some("b1")).at(3), asks("m2", "c2", "Read").at(4)];
    let end = [asks("m3", "c3", "Read").at(90), boundary("b2").at(91), asks("m4", "c4", "Read").at(92)];
    let told = Told::of(&[("old", &(log(&start) + &log(&middle))), ("new", &(log(&middle) + &log(&end)))]);
    assert_eq!(told.order(&["c1", "c2", "c3", "c4"]), ["c1", "c2", "c3", "c4"]);
    assert_eq!((partitions(&told), compactions(&told)), (vec![0, 1, 1, 2], 2));
}

#[test]
fn a_session_cut_into_two_files_goes_on_in_the_second() {
    let start = [
        user("p1", "a prompt").at(1),
        asks("m1", "c1", "Read").at(2),
        boundary("b1").at(3),
        asks("m2", "c2", "Read").at(4),
    ];
    let rest = [asks("m3", "c3", "Read").at(90), user("p2", "a prompt").at(91), asks("m4", "c4", "Read").at(92)];
    let told = Told::of(&[("one", &log(&start)), ("two", &log(&rest))]);
    let turns: Vec<u32> = told.history.calls.iter().map(|call| call.turn).collect();
    assert_eq!((partitions(&told), compactions(&told), turns), (vec![0, 1, 1, 1], 1, vec![0, 0, 0, 1]));
}

#[test]
fn a_fork_repeats_the_compactions_of_its_session_without_adding_any() {
    let start = [asks("m1", "c1", "Read").at(1), boundary("b1").at(2), asks("m2", "c2", "Read").at(3)];
    let copies = start.clone().map(|record| record.session("s-fork"));
    let fork = [asks("m3", "c3", "Read").session("s-fork").at(90)];
    let told = Told::of(&[("main", &log(&start)), ("fork", &(log(&copies) + &log(&fork)))]);
    assert_eq!(told.history.chains.len(), 2);
    assert_eq!(compactions(&told), 1);
}

#[test]
fn a_compaction_counts_where_no_tool_was_called_and_once_with_its_copy() {
    let says = |message| assistant(message, &[json!({"type": "text", "text": "an answer"})]);
    let talk = [user("p1", "a prompt").at(1), says("m1").at(2), boundary("b1").at(3), says("m2").at(4)];
    let resumed = [&talk[..], &[says("m3").at(9)]].concat();
    let told = Told::of(&[("old", &log(&talk)), ("new", &log(&resumed))]);
    assert_eq!((told.history.chains.len(), compactions(&told)), (0, 1));
    let after = told.history.within(&(START_MS + 3_500..START_MS + 9_000));
    assert_eq!((after.messages.len(), after.compactions()), (1, 0), "it was before the window");
}

#[test]
fn a_compaction_of_a_subagent_leaves_the_main_thread_alone() {
    let told = Told::of(&[
        ("main", &log(&[asks("m1", "c1", "Task"), asks("m2", "c2", "Read")])),
        (
            "agent",
            &log(&[
                asks("m3", "c3", "Read").agent("a1"),
                boundary("b1").agent("a1"),
                asks("m4", "c4", "Read").agent("a1"),
            ]),
        ),
    ]);
    assert_eq!((told.chain("c1").compactions.len(), told.chain("c3").compactions.len()), (0, 1));
    assert_eq!((told.call("c2").partition, told.call("c4").partition), (0, 1));
}

/// Evicted calls, each with the call before which it went, in order; and how many of them a micro-compaction cleared.
fn evicted(told: &Told) -> (Vec<(Id, Id)>, u64) {
    let id = |call: usize| told.history.calls[call].id;
    let places = told.history.evictions.iter().map(|eviction| (id(eviction.call), id(eviction.before))).collect();
    (places, Overview::of(&told.history).evictions)
}

/// A prompt and a call with its result behind it.
fn turn(name: &str, parent: Option<&str>, call: &str) -> Vec<Record> {
    let [ask, result] = ["a", "r"].map(|half| format!("{half}-{call}"));
    let asked = asks(&format!("m-{call}"), call, "Read").link(&ask, Some(name));
    vec![user(name, "go").link(name, parent), asked, answers(call, "x").link(&result, Some(&ask))]
}

#[test]
fn a_conversation_that_goes_back_leaves_results_behind_and_compacts_nothing() {
    let ids =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| (Id::of(a.as_bytes()), Id::of(b.as_bytes()))).collect();
    // Two prompts, then another second one, another first one, and one behind that.
    let records = [
        turn("p1", Some("root"), "c1"),
        turn("p2", Some("r-c1"), "c2"),
        turn("q2", Some("r-c1"), "c3"),
        turn("q1", Some("root"), "c4"),
        turn("q3", Some("r-c4"), "c5"),
    ]
    .concat();
    let whole = told(&records);
    assert_eq!(evicted(&whole), (ids(&[("c2", "c3"), ("c1", "c4"), ("c3", "c4")]), 0));
    assert_eq!((partitions(&whole), compactions(&whole)), (vec![0; 5], 0));
    // What is cleared once more was gone before.
    let cleared = told(&[&records[..], &[micro_compaction("b1", &["c2"])]].concat());
    assert_eq!(evicted(&cleared), (evicted(&whole).0, 1));
    // What goes on from a prompt does not go on from the answer to it.
    let again = [turn("p1", None, "c1"), turn("p2", Some("r-c1"), "c2"), turn("again", Some("p2"), "c3")].concat();
    assert_eq!(evicted(&told(&again)), (ids(&[("c2", "c3")]), 0));
    // However the log was cut, and whatever repeats it.
    let text = log(&records);
    for at in (0..records.len()).map(|count| log(&records[..count]).len()) {
        assert_eq!(evicted(&Told::from_traces([("f", appended(&text, at))])), evicted(&whole));
    }
    assert_eq!(evicted(&Told::of(&[("f", &text), ("copy", &text)])), evicted(&whole));
    // A fork that goes back takes nothing out of the context of what it was forked off.
    let fork = [&records[..6], &turn("other", Some("root"), "c9")].concat();
    let fork: Vec<Record> = fork.into_iter().map(|record| record.session("s-fork").at(60)).collect();
    assert_eq!(evicted(&Told::of(&[("f", &text), ("fork", &log(&fork))])), evicted(&whole));
}

#[test]
fn a_context_that_begins_anew_leaves_everything_behind() {
    let ids =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| (Id::of(a.as_bytes()), Id::of(b.as_bytes()))).collect();
    let start = [turn("p1", None, "c1"), turn("p2", Some("r-c1"), "c2")].concat();
    let then = |said: Record| told(&[start.clone(), vec![said], turn("p3", Some("said"), "c3")].concat());
    let said = |text: &str, parent| user("said", text).link("said", parent);
    let gone: Vec<(Id, Id)> = ids(&[("c1", "c3"), ("c2", "c3")]);
    for text in [
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>",
        "Implement the following plan:\n",
    ] {
        assert_eq!(evicted(&then(said(text, Some("r-c2")))), (gone.clone(), 0), "{text}");
    }
    assert_eq!(evicted(&then(said("hello", None))), (gone, 0), "a prompt without anything before it");
    for said in [said("<command-name>/cost</command-name>", Some("r-c2")), said("hello", None).without("parentUuid")] {
        assert_eq!(evicted(&then(said)), (Vec::new(), 0));
    }
}

#[test]
fn a_micro_compaction_evicts_results_before_the_next_call() {
    let records = [
        asks("m1", "c1", "Read"),
        asks("m2", "c2", "Read"),
        micro_compaction("b1", &["c1", "unheard of"]),
        asks("m3", "c3", "Read"),
        micro_compaction("b2", &["c1", "c3"]),
    ];
    let told = told(&records);
    let cleared = |before, call| Eviction { chain: 0, before, call, is_left: false };
    let expected = [cleared(2, 0), cleared(3, 2)];
    assert_eq!(told.history.evictions, expected);
    assert_eq!((partitions(&told), compactions(&told)), (vec![0, 0, 0], 0));
    // A fork repeats them.
    let copies = log(&records.clone().map(|record| record.session("s-fork")));
    let with_fork = Told::of(&[
        ("f", &log(&records)),
        ("fork", &(copies + &asks("m4", "c4", "Read").session("s-fork").at(9).line())),
    ]);
    let start = with_fork.chain("c1").calls.start;
    let places = with_fork.history.evictions.iter().map(|eviction| (eviction.before - start, eviction.call - start));
    assert_eq!(places.collect::<Vec<_>>(), [(2, 0), (3, 2)]);
}

#[test]
fn a_result_tells_how_its_call_ended() {
    let cases = [
        (answers("c1", "fine"), Status::Ok),
        (answers("c1", "The user doesn't want to proceed with this tool use."), Status::Ok),
        (fails("c1", "Error: Exit code 1"), Status::Error),
        (fails("c1", ""), Status::Error),
        (fails("c1", "The user doesn't want to proceed with this tool use. STOP"), Status::Rejected),
        (fails("c1", "[Request interrupted by user for tool use]"), Status::Rejected),
        (fails("c1", "Permission to use Bash has been denied."), Status::Rejected),
        (fails("c1", "ls /x was blocked. For security, Claude Code may only list files"), Status::Rejected),
        (fails("c1", "<tool_use_error>Sibling tool call errored</tool_use_error>"), Status::Cancelled),
        (fails("c1", "He said: The user doesn't want to proceed with this tool use."), Status::Error),
        (fails("c1", &format!("{} was blocked. For security, Claude Code may only", "x".repeat(200))), Status::Error),
    ];
    for (result, status) in cases {
        let told = told(&[asks("m1", "c1", "Read"), result.clone()]);
        assert_eq!(told.call("c1").status, status, "{result}");
    }
    assert_eq!(told(&[asks("m1", "c1", "Read")]).call("c1").status, Status::Unanswered);
}

#[test]
fn calls_of_one_message_share_a_step_even_if_its_records_are_apart() {
    let told = told(&[
        asks("m1", "c1", "Read"),
        answers("c1", "x"),
        asks("m2", "c2", "Read"),
        asks("m1", "c3", "Grep"),
        assistant("m3", &[tool_use("c4", "Read"), tool_use("c5", "Read")]),
        answers("c5", "y"),
        answers("c4", "z"),
    ]);
    let ids = ["c1", "c3", "c2", "c4", "c5"];
    assert_eq!(told.order(&ids), ids);
    assert_eq!(told.history.calls.iter().map(|call| call.step).collect::<Vec<_>>(), [0, 0, 1, 2, 2]);
}

#[test]
fn a_record_without_a_message_id_goes_by_its_request_or_its_uuid() {
    let nameless = |call: &str| asks("m", call, "Read").message("id", json!(null));
    let told = told(&[
        nameless("c1").set("requestId", "req-1").link("u1", None),
        nameless("c2").set("requestId", "req-1").link("u2", None),
        nameless("c3").without("requestId").link("u3", None),
        nameless("c4").without("requestId").link("u4", None),
    ]);
    assert_eq!(told.history.calls.iter().map(|call| call.step).collect::<Vec<_>>(), [0, 0, 1, 2]);
    assert_eq!(told.history.messages.len(), 3);
}

#[test]
fn the_main_threads_copy_of_a_message_stays_when_a_side_chain_replays_it() {
    let replay = assistant("m1", &[]).set("requestId", "req-other").usage(3, 9).agent("a1").at(0);
    for files in permutations(&[("main", assistant("m1", &[]).at(5).line()), ("agent", replay.line())]) {
        let told = told_family(&files);
        let [message] = told.history.messages[..] else { panic!("one message") };
        assert_eq!((message.place, message.usage.output), (Place::Main, 9));
        assert_eq!(told.history.merged.duplicate_message, 1);
    }
}

#[test]
fn latency_is_the_time_between_the_records() {
    let latency = |ask: Record, answer: Record| told(&[ask, answer]).call("c1").latency_ms;
    let (ask, answer) = (asks("m1", "c1", "Read"), answers("c1", "x"));
    assert_eq!(latency(ask.clone().at(2), answer.clone().at(65)), Some(63_000));
    assert_eq!(latency(ask.clone().set("timestamp", "2026-01-02T03:00:00.250Z"), answer.clone().at(1)), Some(750));
    assert_eq!(
        latency(ask.clone().set("timestamp", "2026-01-02T05:00:00.123456+02:00"), answer.clone()),
        None,
        "earlier"
    );
    assert_eq!(latency(ask.clone().set("timestamp", "2026-01-02T05:00:00.5+02:00"), answer.clone().at(1)), Some(500));
    assert_eq!(latency(ask.clone().without("timestamp"), answer.clone()), None);
    assert_eq!(latency(ask, answer.without("timestamp")), None);
}

#[test]
fn a_session_lasts_from_its_first_to_its_last_record_in_time() {
    let records = [
        asks("m1", "c1", "Read").at(50),
        Record::new("queue-operation", "q").at(1),
        user("u", "a prompt").at(20),
        asks("m2", "c2", "Read").at(30),
        asks("m3", "c3", "Read").without("timestamp"),
    ];
    let told = told(&records);
    let session = &told.history.sessions[0];
    assert_eq!((session.ts_first, session.ts_last), (START_MS + 20_000, START_MS + 50_000));
    assert_eq!(told.call("c3").ts, NO_TIME);
    assert_eq!(told.history.span(), Some((START_MS + 20_000, START_MS + 50_000)));
}

#[test]
fn the_first_working_directory_names_the_project() {
    let cases = [
        ("/home/user/lantern", "/home/user/lantern", "lantern"),
        ("/home/user/lantern/", "/home/user/lantern", "lantern"),
        ("D:\\work\\harbor", "D:/work/harbor", "harbor"),
        ("d:\\work\\harbor\\", "D:/work/harbor", "harbor"),
        ("D:/work/harbor", "D:/work/harbor", "harbor"),
        ("\\\\server\\share\\h\u{e4}fen", "\\\\server/share/h\u{e4}fen", "h\u{e4}fen"),
        ("lantern", "lantern", "lantern"),
    ];
    for (cwd, project, name) in cases {
        let told = told(&[
            progress_elsewhere(),
            asks("m1", "c1", "Read").set("cwd", cwd),
            asks("m2", "c2", "Read").set("cwd", "/home/user/elsewhere"),
        ]);
        let session = &told.history.sessions[0];
        assert_eq!(session.project, Id::pseudonym(project.as_bytes()), "{cwd}");
        assert_eq!(session.project_name, Id::pseudonym(name.as_bytes()), "{cwd}");
    }
}

/// A record that is no part of the conversation: it does not tell where a session took place.
fn progress_elsewhere() -> Record {
    Record::new("progress", "p").set("cwd", "/home/user/nowhere").set("data", json!({ "type": "bash_progress" }))
}

#[test]
fn the_file_in_which_a_session_begins_names_its_project() {
    let old = log(&[asks("m1", "c1", "Read").at(1)]);
    let new = log(&[asks("m2", "c2", "Read").set("cwd", "/home/user/elsewhere").at(9)]);
    for files in permutations(&[("a", old), ("b", new)]) {
        let told = told_family(&files);
        assert_eq!(told.history.sessions.len(), 1);
        assert_eq!(told.history.sessions[0].project, Id::pseudonym(CWD.as_bytes()));
    }
}

#[test]
fn an_input_counts_as_the_json_it_stands_in() {
    for path in ["D:\\work\\harbor\\a.txt", "/tmp/ü\"x\".txt", "a\nb"] {
        let input = json!({ "file_path": path, "limit": 10 });
        let block = json!({ "type": "tool_use", "id": "c1", "name": "Read", "input": input });
        let told = told(&[assistant("m1", &[block]), answers("c1", "x")]);
        assert_eq!(told.history.details[0].input_bytes as usize, input.to_string().len(), "{path}");
        assert_eq!(told.call("c1").status, Status::Ok);
    }
}

#[test]
fn synthetic_messages_are_no_api_calls() {
    let synthetic = assistant("m1", &[]).message("model", "<synthetic>").usage(7, 7);
    let told = told(&[synthetic, assistant("m2", &[])]);
    let billed: Vec<Id> =
        told.history.messages.iter().filter(|message| message.billed).map(|message| message.id).collect();
    assert_eq!(billed, [Id::of(b"m2")]);
}

#[test]
fn a_file_without_session_records_is_no_session_log() {
    let journal = format!("{}\n{}\n", json!({ "type": "started", "key": "x" }), json!({ "display": "hello" }));
    let told = Told::of(&[("journal", &journal), ("main", &log(&streamed())), ("empty", "")]);
    assert_eq!(told.history.merged.sidecar_files, 1);
    assert_eq!((told.history.sessions.len(), told.history.calls.len()), (1, 1));
}

#[test]
fn records_without_a_session_belong_to_their_file() {
    let lost = |call: &str| log(&[asks(&format!("m{call}"), call, "Read").without("sessionId").at(3)]);
    let told = Told::of(&[("a", &lost("c1")), ("b", &lost("c2"))]);
    assert_eq!(told.history.sessions.len(), 2);
    assert_eq!(session_of(&told, "c1"), Id::pseudonym(b"a"));
    assert_eq!(session_of(&told, "c2"), Id::pseudonym(b"b"));
}

#[test]
fn versions_are_compared_number_by_number() {
    let at = |version: &str| user("u", "x").set("version", version);
    let told = told(&[at("2.1.9"), at("2.1.29"), at("2.0.100")]);
    assert_eq!(told.corpus.names.text(told.history.sessions[0].version), "2.1.29");
}

#[test]
fn whatever_stands_between_records_of_an_inline_side_chain_it_stays_one_subagent() {
    let note = Record::new("attachment", "n").set("attachment", json!({ "type": "note" }));
    for between in [note, bash_progress(), Record::new("system", "s").set("subtype", "informational")] {
        let records = [
            asks("m1", "c1", "Read").inline().link("u1", None).at(1),
            between.inline().link("u2", Some("u1")).at(2),
            asks("m2", "c2", "Read").inline().link("u3", Some("u2")).at(3),
        ];
        // The flag may stand behind the type.
        let late = |record: &Record| record.clone().without("isSidechain").inline();
        for records in [records.to_vec(), records.iter().map(late).collect()] {
            let chains = |told: &Told| told.chains();
            assert_eq!(chains(&told(&records)), [(Place::Inline, 2)], "{records:?}");
            let timeline = crate::tests::timeline::timeline_of(&[("f", &log(&records))]);
            let requests: Vec<_> = timeline.chains.iter().map(|chain| chain.requests.len()).collect();
            assert_eq!(requests, [2], "{records:?}");
        }
    }
}

#[test]
fn each_message_without_any_id_is_its_own() {
    let nameless = |call: &str, at| {
        asks("m", call, "Read").without_message("id").without("requestId").without("uuid").usage(1, 5).at(at)
    };
    let records = [nameless("c1", 1), nameless("c2", 2), nameless("c2", 2), nameless("c3", 3)];
    let text = log(&records);
    let told = Told::of(&[("f", &text)]);
    let output: Vec<u64> = told.history.messages.iter().map(|message| message.usage.output).collect();
    assert_eq!(output, [5; 4]);
    let steps: BTreeSet<u32> = told.history.calls.iter().map(|call| call.step).collect();
    assert_eq!(steps.len(), 3, "one step for each call");
    let timeline = crate::tests::timeline::timeline_of(&[("f", &text)]);
    assert_eq!(timeline.requests.len(), 4);
    for at in text.match_indices('\n').map(|(at, _)| at + 1) {
        assert_eq!(Told::from_traces([("f", appended(&text, at))]).lines(), told.lines(), "cut at byte {at}");
    }
}

/// In whatever order its keys stand, a progress record says the same.
#[test]
fn a_progress_record_may_have_its_keys_in_any_order() {
    let inner =
        assistant("m9", &[json!({ "type": "tool_use", "id": "c9", "name": "Read", "input": { "file_path": "a.rs" } })]);
    let text = log(&[agent_progress("a1", &inner.at(2))]);
    let record: serde_json::Map<String, Value> = serde_json::from_str(text.trim_end()).unwrap();
    let spelled = |keys: &[&str]| {
        let named = keys.iter().filter_map(|key| Some((*key, record.get(*key)?)));
        let rest = record.iter().map(|(key, value)| (key.as_str(), value)).filter(|(key, _)| !keys.contains(key));
        let fields: Vec<String> = named.chain(rest).map(|(key, value)| format!("{}:{value}", json!(key))).collect();
        format!("{{{}}}\n", fields.join(","))
    };
    let path = |line: &str| trace(line).rows.calls[0].asked.unwrap().path;
    let expected = path(&text);
    for keys in
        [&["data", "type", "sessionId", "cwd"][..], &["isSidechain", "data", "sessionId", "type"], &["cwd", "type"]]
    {
        assert_eq!(path(&spelled(keys)), expected, "{keys:?}");
    }
}

/// A mark names a call by its id alone: where another thread has several of that id, nobody can say which one is meant.
#[test]
fn a_mark_takes_a_call_of_another_thread_only_where_its_id_stands_for_one() {
    let of = |session: &str, message: &str, call: &str| asks(message, call, "Read").session(session);
    let marks = log(&[of("u", "m3", "c3"), micro_compaction("b", &["c1"]).session("u")]);
    let evicted = |more: &[Record]| {
        let calls = [&[of("s", "m1", "c1")][..], more].concat();
        Told::of(&[("f", &log(&calls)), ("g", &marks)]).history.evictions.len()
    };
    assert_eq!((evicted(&[]), evicted(&[of("t", "m2", "c1")])), (1, 0));
}
