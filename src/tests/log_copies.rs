//! Copies of logs, whole ones and any part of them, are seen through: what happened is the same without them.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::base::body_shape::BodyShape;
use crate::base::id::Id;
use crate::base::order::{places, put_in_place};
use crate::logs::assemble::families::families;
use crate::logs::assemble::{Kept, assemble, assemble_families, logs, standings_of};
use crate::logs::corpus::Corpus;
use crate::logs::history::{Call, Chain, Message};
use crate::logs::timeline::requests::{self, Request, Timeline, ToolCall};
use crate::logs::trace::{FileRows, Place};
use crate::logs::values::CallBlocks;
use crate::tests::log_builder::*;
use crate::tests::log_stories::{Folder, any_folder, texts};
use crate::tests::timeline;

/// Which lines of a file a copy has.
#[derive(Clone, Debug)]
enum Part {
    UpTo(prop::sample::Index),
    From(prop::sample::Index),
    Between(prop::sample::Index, prop::sample::Index),
    Some(Vec<bool>),
}

impl Part {
    fn of(&self, records: &[Record]) -> Vec<Record> {
        let place = |at: &prop::sample::Index| at.index(records.len() + 1);
        match self {
            Self::UpTo(end) => records[..place(end)].to_vec(),
            Self::From(start) => records[place(start)..].to_vec(),
            Self::Between(a, b) => records[place(a).min(place(b))..place(a).max(place(b))].to_vec(),
            Self::Some(chosen) => {
                let chosen = chosen.iter().cycle().zip(records).filter(|(is_in, _)| **is_in);
                chosen.map(|(_, record)| record.clone()).collect()
            }
        }
    }
}

fn any_part() -> impl Strategy<Value = Part> {
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Part::UpTo),
        any::<prop::sample::Index>().prop_map(Part::From),
        any::<(prop::sample::Index, prop::sample::Index)>().prop_map(|(a, b)| Part::Between(a, b)),
        prop::collection::vec(any::<bool>(), 1..20).prop_map(Part::Some),
    ]
}

/// What happened, without the counts of copies.
fn facts(folder: &Folder) -> Vec<String> {
    let texts = texts(folder);
    let told = Told::of(&texts.iter().map(|(name, log)| (name.as_str(), log.as_str())).collect::<Vec<_>>());
    told.lines().into_iter().filter(|line| !line.starts_with("Merged")).collect()
}

fn timeline(folder: &Folder) -> Timeline {
    let texts = texts(folder);
    let files: Vec<_> = texts.iter().map(|(name, log)| (name.as_str(), log.as_str())).collect();
    let timeline = timeline::timeline_of(&files);
    Timeline { skipped: Default::default(), ..timeline }
}

/// The folder with a part of one of its files under another name.
fn with_copy(folder: &Folder, of: &prop::sample::Index, part: &Part, name: &str) -> Folder {
    let copy = part.of(&folder[of.index(folder.len())].1);
    [folder.clone(), vec![(name.to_owned(), copy)]].concat()
}

/// What does not depend on which of two sessions something is told of.
fn sums(folder: &Folder, with_compactions: bool) -> Vec<String> {
    let texts = texts(folder);
    let told = Told::of(&texts.iter().map(|(name, log)| (name.as_str(), log.as_str())).collect::<Vec<_>>());
    let history = &told.history;
    let mut calls: Vec<String> =
        history.calls.iter().map(|call| format!("{} {:?} {} {}", call.id, call.status, call.body, call.ts)).collect();
    calls.sort();
    let messages = history.messages.iter().map(|row| format!("{} {:?} {}", row.id, row.usage, row.billed));
    let compactions = history.compactions();
    let mut cleared: Vec<String> = history.evictions.iter().map(|row| history.calls[row.call].id.to_string()).collect();
    cleared.sort();
    let compactions = with_compactions.then(|| format!("{compactions} compactions"));
    calls.into_iter().chain(messages).chain(compactions).chain(cleared).collect()
}

fn named(folder: &Folder) -> bool {
    let is_whole = |record: &Record| {
        let text = record.to_string();
        // A micro-compaction that clears nothing is nothing that anyone can tell of.
        if text.contains("\"compactedToolIds\":[]") {
            return false;
        }
        ["\"uuid\"", "\"sessionId\"", "\"timestamp\""].iter().all(|field| text.contains(field))
    };
    folder.iter().flat_map(|(_, records)| records).all(is_whole)
}

/// The same texts in another place, with ids of their own, where these begin with something.
fn renamed(files: &[(String, String)], place: usize, by: &str) -> Vec<(String, String)> {
    let ids = ["uuid", "parentUuid", "logicalParentUuid", "id", "tool_use_id", "sessionId", "agentId"];
    let renamed = |text: &str| {
        let of_own = |text: String, field| text.replace(&format!(r#""{field}":""#), &format!(r#""{field}":"{by}"#));
        ids.iter().fold(text.to_owned(), of_own)
    };
    files.iter().map(|(name, text)| (format!("{place}/{name}"), renamed(text))).collect()
}

/// Files that were read, before anything is known of them.
fn corpus_of(files: &[(String, String)]) -> Corpus {
    let told = Told::of(&files.iter().map(|(name, log)| (name.as_str(), log.as_str())).collect::<Vec<_>>());
    let mut corpus = Corpus::of(told.corpus.names);
    corpus.files = told.corpus.files;
    corpus
}

#[test]
fn only_logs_that_share_something_are_put_together() {
    let own = |name: &str| log(&[user("u", "go").session(name), asks("m", "c", "Read").session(name).at(2)]);
    let fork = log(&[user("u", "go").session("fork"), asks("m", "c", "Read").session("fork").at(2)]);
    let family = [("a".to_owned(), own("s")), ("z".to_owned(), fork)];
    let files = [renamed(&family, 1, "1-"), renamed(&family, 2, "2-")].concat();
    let (corpus, mut again) = (corpus_of(&files), corpus_of(&files));
    assert_eq!(families(&logs(&corpus)), [[0, 1], [2, 3]]);
    let dropped = std::sync::atomic::AtomicUsize::new(0);
    let let_go = |rows: &mut FileRows| {
        dropped.fetch_add(std::mem::take(&mut rows.calls).len(), std::sync::atomic::Ordering::Relaxed);
    };
    assemble(&mut again, &let_go, Kept::default());
    assert_eq!(dropped.into_inner(), 4);
}

#[test]
fn a_fork_that_copies_a_boundary_alone_belongs_to_its_original() {
    let of = serde_json::json!({ "sessionId": "s", "messageUuid": "b" });
    let original = log(&[user("u", "go").session("s"), boundary("b").session("s")]);
    let fork = log(&[user("v", "on").session("f"), boundary("b2").session("f").set("forkedFrom", of)]);
    let files = [("s".to_owned(), original), ("f".to_owned(), fork)];
    assert_eq!(families(&logs(&corpus_of(&files))), [[0, 1]]);
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn rows_are_put_in_the_order_of_a_key_where_they_stand(keys in prop::collection::vec(0_u8..20, 0..60)) {
        let mut rows: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        let to = places(rows.len(), |&row| rows[row as usize].0);
        put_in_place(&mut rows, to);
        prop_assert_eq!(rows, sorted);
    }

    #[test]
    fn families_are_told_as_if_they_were_one(
        folders in prop::collection::vec(any_folder(), 1..4),
        copies in prop::collection::vec((any::<prop::sample::Index>(), any_part()), 0..3),
        shares in any::<bool>(),
    ) {
        let mut files = Vec::new();
        for (number, folder) in folders.iter().enumerate() {
            let copied = |folder: Folder, (of, part): &(prop::sample::Index, Part)| {
                with_copy(&folder, of, part, &format!("copy{}", folder.len()))
            };
            let told = texts(&copies.iter().fold(folder.clone(), copied));
            files.extend(renamed(&told, number, &if shares { String::new() } else { format!("{number}-") }));
        }
        let (mut apart, mut one) = (corpus_of(&files), corpus_of(&files));
        let all = vec![(0..logs(&one).len()).collect()];
        let (history, blocks) = assemble(&mut apart, &|_| (), Kept { blocks: true, ..Kept::default() });
        prop_assert_eq!(blocks, Some(CallBlocks::of(&one, &history)));
        prop_assert_eq!(history, assemble_families(&mut one, &all, &|_| (), Kept::default()).0);
        prop_assert_eq!(standings_of(&apart), standings_of(&one));
    }

    #[test]
    fn any_part_of_a_copy_adds_nothing_to_the_history(
        folder in any_folder(),
        of in any::<prop::sample::Index>(),
        part in any_part(),
        name in prop::sample::select(vec!["0", "copy", "zz"]),
    ) {
        prop_assert_eq!(facts(&with_copy(&folder, &of, &part, name)), facts(&folder));
    }

    #[test]
    fn any_part_of_a_copy_adds_nothing_to_the_timeline(
        folder in any_folder(),
        of in any::<prop::sample::Index>(),
        part in any_part(),
        name in prop::sample::select(vec!["0", "copy", "zz"]),
    ) {
        let (with, without) = (timeline(&with_copy(&folder, &of, &part, name)), timeline(&folder));
        prop_assert_eq!(timeline::told(&with), timeline::told(&without));
    }

    #[test]
    fn any_part_of_a_fork_adds_no_call_message_or_compaction(
        folder in any_folder(),
        of in any::<prop::sample::Index>(),
        part in any_part(),
    ) {
        prop_assume!(named(&folder));
        let mut forked = with_copy(&folder, &of, &part, "f");
        let copy = forked.last_mut().unwrap();
        copy.1 = copy.1.iter().map(|record| record.clone().session("another")).collect();
        // What begins like a session may be what that one was forked off: then it owns what it shows.
        let of = &folder[of.index(folder.len())].1;
        let is_later = of.first().map(ToString::to_string) != part.of(of).first().map(ToString::to_string);
        prop_assert_eq!(sums(&forked, is_later), sums(&folder, is_later));
        let counts = |folder: &Folder| {
            let timeline = timeline(folder);
            let marks = (timeline.boundaries.len(), timeline.clearings.len());
            (timeline.requests.len(), timeline.calls.len(), is_later.then_some(marks))
        };
        prop_assert_eq!(counts(&forked), counts(&folder));
    }
}

#[test]
fn a_fork_of_answers_alone_takes_nothing_from_where_they_were_given() {
    let says = |message: &str| assistant(message, &[serde_json::json!({ "type": "text", "text": "well" })]);
    let start = [user("p", "go on").at(1), boundary("b1").at(2), compact_summary("s1", Some("b1")).at(3)];
    let end = [says("m1").link("a1", Some("s1")).at(4)];
    let fork: Vec<Record> = end.iter().map(|record| record.clone().session("s-fork")).collect();
    let (main, fork) = (log(&[&start[..], &end].concat()), log(&fork));
    // Where times do not tell, the names of what is said would.
    for name in ["a", "b", "c", "d"] {
        let timeline = timeline::timeline_of(&[("main", &main), (name, &fork)]);
        assert_eq!((timeline.requests.len(), timeline.boundaries.len()), (1, 1));
        assert_eq!(timeline.sessions[0].id, Id::pseudonym(b"s-main"));
    }
}

#[test]
fn a_fork_of_nothing_but_a_compaction_leaves_it_where_it_happened() {
    let start = [asks("m1", "c1", "Read").at(1), answers("c1", "one").at(2)];
    let compaction = [boundary("b1").at(3), compact_summary("s1", Some("b1")).at(4)];
    let end = [asks("m2", "c2", "Read").at(5), answers("c2", "two").at(6)];
    let main = [&start[..], &compaction, &end].concat();
    let fork: Vec<Record> = compaction.iter().map(|record| record.clone().session("s-fork")).collect();
    let told = Told::of(&[("main", &log(&main)), ("fork", &log(&fork))]);
    assert_eq!(told.chain("c1").compactions.iter().map(|one| one.partition).collect::<Vec<_>>(), [1]);
}

#[test]
fn of_copies_the_fuller_one_counts_whatever_they_are_called() {
    let thought = serde_json::json!({ "type": "thinking", "thinking": "well" });
    let said = [serde_json::json!({ "type": "text", "text": "an answer" })];
    let streamed = timeline::linked(vec![
        user("p", "go").at(1),
        assistant("m1", &[thought]).link("a1", None).at(2),
        assistant("m1", &said).link("a2", None).at(3),
    ]);
    let reminded = timeline::linked(vec![
        user("p", "go").at(1),
        assistant("m1", &said).at(2),
        user("i", "a reminder").set("isMeta", true).at(3),
        assistant("m2", &said).at(4),
    ]);
    // Nothing but the end of an answer is missing, or nothing but what the client said.
    for (whole, missing) in [(streamed, 2), (reminded, 2)] {
        let mut part = whole.clone();
        part.remove(missing);
        let (whole, part) = (log(&whole), log(&part));
        let alone = timeline::timeline_of(&[("a", &whole)]);
        for names in [["a", "b"], ["b", "a"]] {
            let mut files = [(names[0], &*whole), (names[1], &*part)];
            files.sort();
            let told = timeline::timeline_of(&files);
            assert_eq!((told.requests, told.blocks), (alone.requests.clone(), alone.blocks.clone()), "{names:?}");
        }
    }
}

#[test]
fn copies_of_records_without_a_session_are_counted() {
    let records = |count: usize| -> String {
        let call = |number: usize| {
            let (message, call) = (format!("m{number}"), format!("c{number}"));
            [asks(&message, &call, "Read"), answers(&call, "x")].map(|record| record.without("sessionId"))
        };
        log(&(0..count).flat_map(call).collect::<Vec<_>>())
    };
    let (whole, part) = (records(4), records(3));
    for (files, copies) in [([("a", &whole), ("b", &whole)], 4), ([("a", &part), ("b", &whole)], 3)] {
        let told = Told::of(&files.map(|(name, log)| (name, log.as_str())));
        let merged = told.history.merged;
        assert_eq!((merged.duplicate_call, merged.duplicate_message), (copies, copies));
        assert_eq!((told.history.calls.len(), told.history.messages.len(), told.history.sessions.len()), (4, 4, 1));
    }
}

#[test]
fn calls_without_an_id_are_known_by_their_message() {
    let nameless = |tool: &str| serde_json::json!({ "type": "tool_use", "name": tool, "input": { "of": tool } });
    let turn = |session: &str, message: &str| {
        let prompt = user(&format!("p-{message}"), "go on");
        [prompt, assistant(message, &[nameless("Bash"), nameless("Bash")])].map(|record| record.session(session))
    };
    let one = [turn("s", "m1"), turn("s", "m2")].concat();
    // A fork repeats the first turn and goes on by itself.
    let fork = [turn("s", "m1"), turn("t", "m3")].concat();
    let told = Told::of(&[("s", &log(&one)), ("t", &log(&fork))]);
    assert_eq!((told.history.calls.len(), told.history.merged.duplicate_call), (6, 2));
    let timeline = timeline::timeline_of(&[("s", &log(&one)), ("t", &log(&fork))]);
    assert_eq!(timeline.calls.len(), 6);
}

/// Where each request and each call was made, what the request used, and how often each thread that made calls was
/// compacted: as the history has it, and as the timeline does. What progress records alone tell of is left out: the
/// history knows no usage of it.
fn whereabouts(folder: &Folder) -> (Vec<String>, Vec<String>) {
    let texts = texts(folder);
    let files: Vec<_> = texts.iter().map(|(name, log)| (name.as_str(), log.as_str())).collect();
    let (told, timeline) = (Told::of(&files), timeline::timeline_of(&files));
    let history = &told.history;
    let message = |row: &Message| {
        let session = history.sessions[row.session as usize].id;
        let is_known = row.billed && row.place != Place::Progress;
        is_known.then(|| format!("{} {session} {} {:?} {:?}", row.id, row.agent, row.place, row.usage))
    };
    let call = |row: &Call| {
        let Chain { session, agent, place, .. } = history.chains[row.chain as usize];
        let session = history.sessions[session as usize].id;
        let agent = if place == Place::Inline { Id::NONE } else { agent };
        (place != Place::Progress).then(|| format!("{} {session} {agent} {place:?}", row.id))
    };
    let compacted = |row: &Chain| {
        let session = history.sessions[row.session as usize].id;
        let is_told = matches!(row.place, Place::Main | Place::AgentFile);
        is_told.then(|| format!("{session} {} {} compactions", row.agent, row.compactions.len()))
    };
    let chain = |index: u32| {
        let requests::Chain { session, agent, place, .. } = &timeline.chains[index as usize];
        // Which inline side chain it was is told by its first record, which the timeline must have seen before.
        let agent = if *place == Place::Inline { Id::NONE } else { *agent };
        (*place != Place::Progress).then(|| (timeline.sessions[*session as usize].id, agent, *place))
    };
    let of_history = history.messages.iter().filter_map(message).chain(history.calls.iter().filter_map(call));
    let of_history = of_history.chain(history.chains.iter().filter_map(compacted));
    let talk = history.talk_compactions.iter().map(|(session, _)| history.sessions[*session as usize].id);
    // Without any request a thread is not in the timeline.
    let has_main = |session: &Id| {
        let of_main = timeline.requests.iter().filter_map(|request| chain(request.chain));
        of_main.filter(|(.., place)| *place == Place::Main).any(|(found, ..)| found == *session)
    };
    let talk = talk.filter(has_main);
    let of_history = of_history.chain(talk.map(|session| format!("{session} compactions of talk")));
    let request = |row: &Request| {
        let (session, agent, place) = chain(row.chain)?;
        Some(format!("{} {session} {agent} {place:?} {:?}", row.id, row.usage()))
    };
    let asking = |call: &ToolCall| timeline.requests.iter().find(|request| request.outputs.contains(&call.asked));
    let call = |row: &ToolCall| {
        let asking = asking(row)?;
        let (session, agent, place) = chain(asking.chain)?;
        Some(format!("{} {session} {agent} {place:?}", row.id))
    };
    let calling: BTreeSet<u32> = timeline.calls.iter().filter_map(asking).map(|request| request.chain).collect();
    let compacted = |&index: &u32| {
        let (session, agent, place) = chain(index)?;
        let count = timeline.boundaries.iter().filter(|boundary| boundary.chain == index).count();
        let is_told = matches!(place, Place::Main | Place::AgentFile);
        is_told.then(|| format!("{session} {agent} {count} compactions"))
    };
    let of_timeline = timeline.requests.iter().filter_map(request).chain(timeline.calls.iter().filter_map(call));
    let of_timeline = of_timeline.chain(calling.iter().filter_map(compacted));
    let talk = timeline.boundaries.iter().filter(|boundary| !calling.contains(&boundary.chain));
    let talk = talk.filter_map(|boundary| chain(boundary.chain)).map(|(session, ..)| session).filter(has_main);
    let of_timeline = of_timeline.chain(talk.map(|session| format!("{session} compactions of talk")));
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    (sorted(of_history.collect()), sorted(of_timeline.collect()))
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn history_and_timeline_tell_the_same_of_every_request_call_and_compaction(
        folder in any_folder(),
        of in any::<prop::sample::Index>(),
        part in any_part(),
        is_fork in any::<bool>(),
    ) {
        // What stands for the id of a message without any is the view's own.
        let is_named = |record: &Record| record.json()["type"] != "assistant" || record.json()["message"]["id"].is_string();
        prop_assume!(folder.iter().flat_map(|(_, records)| records).all(is_named));
        let is_in_order = |records: &[Record]| records.is_sorted_by_key(|record| record.json()["timestamp"].to_string());
        let is_orderly = named(&folder) && folder.iter().all(|(_, records)| is_in_order(records));
        let has_fork = is_fork || folder.iter().any(|(name, _)| name == "fork");
        let mut folder = with_copy(&folder, &of, &part, "copy");
        if is_fork {
            let copy = folder.last_mut().unwrap();
            copy.1 = copy.1.iter().map(|record| record.clone().session("another")).collect();
        }
        let is_asked = |line: &String| match () {
            () if line.contains("Usage") => true,
            // A fork that ends within a message has the message, but not the calls behind that place.
            () if has_fork => false,
            // A summary that stands before its boundary is one more compaction for the timeline.
            () => is_orderly || !line.contains("compactions"),
        };
        let (history, timeline) = whereabouts(&folder);
        let asked = |lines: Vec<String>| lines.into_iter().filter(is_asked).collect::<Vec<String>>();
        prop_assert_eq!(asked(history), asked(timeline));
    }
}

/// Other makers' models number their calls anew in each conversation, or in each answer: an equal id is a copy only if the same
/// message asked.
#[test]
fn an_id_that_comes_back_in_another_message_is_another_call() {
    let turn = |session: &str, message: &str, second: u32| {
        let read = |number: usize| {
            let id = format!("functions.Read:{number}");
            let uuid = |half: &str| format!("{half}-{message}-{number}");
            let asked = asks(message, &id, "Read").at(second).set("uuid", uuid("asked"));
            [asked, answers(&id, format!("text {number}")).at(second + 30).set("uuid", uuid("answered"))]
        };
        [vec![user(&format!("p-{message}"), "go on").at(second)], read(0).to_vec(), read(1).to_vec()]
            .concat()
            .into_iter()
            .map(|record| record.session(session))
            .collect::<Vec<Record>>()
    };
    let end = |session: &str, second: u32| {
        let said = [serde_json::json!({ "type": "text", "text": "done" })];
        vec![assistant(&format!("end-{session}"), &said).at(second).session(session)]
    };
    let linked = |records: Vec<Record>| {
        let mut parent: Option<String> = None;
        let link = |record: Record| {
            let uuid = record.json()["uuid"].as_str().unwrap().to_owned();
            let record = record.link(&uuid, parent.as_deref());
            parent = Some(uuid);
            record
        };
        records.into_iter().map(link).collect::<Vec<Record>>()
    };
    let one = linked([turn("s", "m1", 0), turn("s", "m2", 600), end("s", 700)].concat());
    let other = linked([turn("t", "m3", 7_200), end("t", 7_300)].concat());
    let told = Told::of(&[("s", &log(&one)), ("t", &log(&other))]);
    assert_eq!(told.history.calls.len(), 6);
    assert!(told.history.calls.iter().all(|call| call.latency_ms == Some(30_000)), "{:#?}", told.history.calls);
    assert_eq!((told.history.merged.duplicate_call, told.history.merged.orphan_result), (0, 0));
    // A copy of a file says nothing new.
    let copied = Told::of(&[("s", &log(&one)), ("t", &log(&other)), ("u", &log(&one))]);
    assert_eq!(copied.history.calls, told.history.calls);
    let timeline = timeline::timeline_of(&[("s", &log(&one)), ("t", &log(&other))]);
    let answered: Vec<(u32, u32)> = timeline.calls.iter().map(|call| (call.asked, call.answered)).collect();
    assert_eq!(answered.len(), 6);
    assert!(answered.iter().all(|(asked, answer)| asked < answer && answer - asked <= 3), "{answered:?}");
}

#[test]
fn an_answer_of_a_server_has_a_shape_though_another_tool_had_its_id() {
    let list = serde_json::json!([{ "id": 1, "name": "one" }, { "id": 2, "name": "two" }]).to_string();
    let records = [
        asks("m1", "c", "Bash").at(1),
        answers("c", "text").at(2).set("uuid", "r1"),
        asks("m2", "c", "mcp__tracker__list").at(3),
        answers("c", list).at(4).set("uuid", "r2"),
    ];
    let told = Told::of(&[("s", &log(&records))]);
    let shapes: Vec<u8> = told.history.calls.iter().map(|call| call.shape).collect();
    assert_eq!(shapes, [BodyShape::Unknown as u8, BodyShape::ArrayOfObjects as u8]);
}

/// A summary whose boundary stands in another file is that compaction.
#[test]
fn a_summary_without_its_boundary_is_no_second_compaction() {
    let compacted = [
        user("p1", "go").at(0),
        asks("m1", "c1", "Read").at(1),
        answers("c1", "text").at(2),
        boundary("b1").at(3),
        compact_summary("s1", Some("b1")).at(4),
        asks("m2", "c2", "Read").at(5),
        answers("c2", "text").at(6),
    ];
    let whole = log(&compacted);
    for cut in [4, 3] {
        let rest = log(&compacted[cut..]);
        let told = Told::of(&[("a", &whole), ("b", &rest)]);
        assert_eq!(told.history.compactions(), 1, "{cut}");
    }
    let told = Told::of(&[("a", &log(&compacted[..4])), ("b", &log(&compacted[4..]))]);
    assert_eq!(told.history.compactions(), 1);
}
