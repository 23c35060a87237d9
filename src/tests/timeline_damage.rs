//! Timelines of any input: damaged logs, rows that came from elsewhere, files in any order.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::json;

use super::log_builder::*;
use super::timeline::{check, linked, rows, says, sources_of, timeline_guide, timeline_of, told};
use crate::base::damage::Reason::*;
use crate::base::id::Id;
use crate::frames::packed::{pack, unpack};
use crate::logs::copies::FileStanding;
use crate::logs::read;
use crate::logs::timeline::assemble::{SourceTimeline, assemble};
use crate::logs::timeline::families::families;
use crate::logs::timeline::rows::{FileTimeline, TimelineRows};
use crate::logs::timeline::{self, TimelineGuide, TimelineReader};

const LINE: &str = "let total = first_part + second_part;";

/// A conversation with everything in it.
fn conversation() -> Vec<Record> {
    let edit = json!({ "file_path": "src/main.rs", "old_string": LINE, "new_string": "x" });
    let edit = json!({ "type": "tool_use", "id": "e", "name": "Edit", "input": edit });
    let queued =
        json!({ "type": "queued_command", "commandMode": "prompt", "prompt": [{ "type": "text", "text": "and" }] });
    linked(vec![
        user("p", "look at src/main.rs").at(0),
        asks("m1", "c1", "Read").link("a1", None).at(1),
        asks("m1", "c2", "Grep").link("a2", None).at(1),
        answers("c1", format!("   1→{LINE}")).at(2),
        answers("c2", json!([{ "type": "text", "text": format!("src/main.rs:1:{LINE}") }, { "type": "image" }])).at(3),
        assistant("m2", &[json!({ "type": "thinking", "thinking": "hm", "signature": "s" }), edit]).at(4),
        answers("e", "done").at(5),
        Record::new("attachment", "q").set("attachment", queued).at(6),
        says("m3", "I changed `src/main.rs` and readWholeFile").at(7),
        boundary("b").at(8),
        compact_summary("s", None).at(9),
        says("m4", "readWholeFile again").at(10),
        micro_compaction("mb", &["c1", "c2"]).at(11),
        user("p2", vec![json!({ "type": "text", "text": "more" }), json!({ "type": "document" })]).at(12),
        says("m5", "bye").at(13),
    ])
}

fn subagent() -> Vec<Record> {
    let records = linked(vec![
        user("ap", "find it").at(1),
        asks("am", "ac", "Bash").at(2),
        answers("ac", LINE).at(3),
        says("am2", "found readWholeFile").at(4),
    ]);
    records.into_iter().map(|record| record.agent("a7")).collect()
}

fn any_file() -> impl Strategy<Value = String> {
    let fork = |records: Vec<Record>, until: usize, session: usize| {
        let session = format!("s-{session}");
        let mut fork: Vec<Record> = records[..until].iter().map(|record| record.clone().session(&session)).collect();
        fork.push(says(&format!("m-{session}-{until}"), LINE).session(&session).at(100 + until as u32));
        log(&fork)
    };
    let whole = (0..conversation().len() + 1).prop_map(|cut| log(&conversation()[..cut]));
    let later = (0..conversation().len()).prop_map(|from| log(&conversation()[from..]));
    let forked =
        (1..conversation().len(), 0..3_usize).prop_map(move |(until, session)| fork(conversation(), until, session));
    let agent = (0..subagent().len() + 1).prop_map(|cut| log(&subagent()[..cut]));
    let progress = (0..subagent().len() + 1).prop_map(|cut| {
        let repeated = subagent();
        let lines = repeated[..cut]
            .iter()
            .enumerate()
            .map(|(at, record)| agent_progress("a7", record).link(&format!("g{at}"), None));
        log(&lines.collect::<Vec<_>>())
    });
    prop_oneof![whole, later, forked, agent, progress]
}

fn any_change() -> impl Strategy<Value = (usize, Option<u8>, usize)> {
    (any::<usize>(), any::<Option<u8>>(), 0..40_usize)
}

/// Puts a byte in, or takes some out, here and there.
fn changed(text: &str, changes: &[(usize, Option<u8>, usize)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for &(at, byte, count) in changes {
        let at = at % (bytes.len() + 1);
        match byte {
            Some(byte) => bytes.insert(at, byte),
            None => drop(bytes.drain(at..(at + count).min(bytes.len()))),
        }
    }
    bytes
}

/// One walk gives what two walks give.
pub fn one_walk_is_as_good_as_two(log: &[u8]) -> Result<(), TestCaseError> {
    let plain = TimelineGuide { token_counter: None, ..timeline_guide() };
    let mut alone = TimelineReader::new(plain, None);
    read::read_stream_into(log, &mut alone);
    let light = read::read_stream(log, guide());
    let both = read::read_stream_twofold(log, guide(), TimelineReader::new(plain, None));
    prop_assert_eq!(&both.trace.counters, &light.trace.counters);
    prop_assert_eq!(&both.trace.rows, &light.trace.rows);
    prop_assert_eq!(&both.trace.values, &light.trace.values);
    prop_assert_eq!(both.trace.names.texts(), light.trace.names.texts());
    let (alone, file) = (alone.finish().0, both.timeline.unwrap_or_default());
    prop_assert_eq!(&file.rows, &alone.rows);
    prop_assert_eq!(file.names.texts(), alone.names.texts());
    Ok(())
}

/// Reads a log, takes it through all stages and back from the lake.
fn whole_way(log: &[u8]) -> Result<(), TestCaseError> {
    let (mut file, counters) = timeline::read_stream(log, timeline_guide());
    let light = trace(log).counters;
    prop_assert_eq!(counters.lines, light.lines);
    for reason in [InvalidUtf8, Bom, Crlf, Nul, BlankLine, Array, Scalar] {
        prop_assert_eq!(counters.damage.count(reason), light.damage.count(reason), "{:?}", reason);
    }
    // The light reading does not look at the rest of a record whose type nobody needs.
    prop_assert!(counters.bad_fragments >= light.bad_fragments);
    one_walk_is_as_good_as_two(log)?;
    let again = unpack(&pack(&mut file));
    prop_assert_eq!(again.as_ref().map(|file| &file.rows), Some(&file.rows));
    prop_assert_eq!(again.as_ref().map(|file| file.names.texts()), Some(file.names.texts()));
    let source = |name: &str, file: &FileTimeline| {
        let standing = FileStanding { digest: Id::of(name.as_bytes()), ..FileStanding::default() };
        SourceTimeline::new(standing.digest, file.clone(), standing)
    };
    check(&assemble(vec![source("a", &file)], timeline_guide().rules));
    let other = rows(super::log_builder::log(&conversation()));
    check(&assemble(vec![source("a", &file), source("b", &other)], timeline_guide().rules));
    Ok(())
}

#[test]
fn everything_in_the_conversation_is_seen() {
    let timeline = timeline_of(&[("a", &log(&conversation())), ("b", &log(&subagent()))]);
    check(&timeline);
    assert_eq!((timeline.requests.len(), timeline.boundaries.len(), timeline.clearings.len()), (7, 1, 1));
    assert_eq!((timeline.references.len(), timeline.utterances.len()), (2, 7));
}

#[test]
fn every_cut_of_a_log_is_read_to_its_end() {
    let log = log(&conversation());
    for end in (0..log.len()).step_by(7) {
        whole_way(&log.as_bytes()[..end]).unwrap();
    }
}

/// The timeline of files that are taken for one family.
fn as_one(files: &[(&str, &str)]) -> String {
    let mut sources = sources_of(files);
    let outside = sources.iter().map(|source| source.key).collect();
    let file = FileTimeline { rows: TimelineRows { outside, ..TimelineRows::default() }, ..FileTimeline::default() };
    sources.push(SourceTimeline::new(Id::NONE, file, FileStanding::default()));
    told(&assemble(sources, timeline_guide().rules))
}

#[test]
fn only_files_of_one_family_are_put_together_at_once() {
    let ids = ["uuid", "parentUuid", "id", "tool_use_id", "sessionId", "agentId"];
    let renamed = |text: &str, by: usize| {
        let of_own = |text: String, field| text.replace(&format!(r#""{field}":""#), &format!(r#""{field}":"{by}-"#));
        ids.iter().fold(text.to_owned(), of_own)
    };
    let mut fork: Vec<Record> = conversation()[..7].iter().map(|record| record.clone().session("fork")).collect();
    fork.push(says("own", LINE).session("fork").at(40));
    let stated = json!({ "claude-opus-5": { "inputTokens": 10, "costUSD": 0.5 } });
    let beside = [
        says("unbilled", "no usage").without_message("usage").at(14),
        Record::new("cost-state", "stated").set("modelUsage", stated).at(15),
    ];
    let family = [log(&conversation()) + &log(&beside), log(&subagent()), log(&fork)];
    let files: Vec<(String, String)> = (0..4_usize)
        .flat_map(|by| family.iter().zip(["main", "agent", "fork"]).map(move |(text, name)| (by, text, name)))
        .map(|(by, text, name)| (format!("{name}{by}"), renamed(text, by)))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&name[..], &text[..])).collect();
    let held: Vec<usize> = families(sources_of(&files)).iter().map(Vec::len).collect();
    assert_eq!(held, [3; 4]);
    let timeline = timeline_of(&files);
    check(&timeline);
    assert_eq!((timeline.sessions.len(), timeline.chains.len()), (8, 12));
    assert_eq!((timeline.stated_costs.len(), timeline.unbilled.len()), (4, 4));
    assert_eq!(told(&timeline), as_one(&files));
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn changed_logs_are_read_to_their_ends(changes in prop::collection::vec(any_change(), 0..6)) {
        whole_way(&changed(&log(&conversation()), &changes))?;
    }

    #[test]
    fn arbitrary_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        whole_way(&bytes)?;
    }

    #[test]
    fn the_order_of_files_changes_nothing(files in prop::collection::vec(any_file(), 1..5), turn in 0..5_usize) {
        let named: Vec<(String, &str)> = files.iter().enumerate().map(|(at, text)| (format!("f{at}"), &text[..])).collect();
        let mut named: Vec<(&str, &str)> = named.iter().map(|(name, text)| (&name[..], *text)).collect();
        let before = timeline_of(&named);
        check(&before);
        named.reverse();
        let places = named.len();
        named.rotate_left(turn % places);
        prop_assert_eq!(told(&timeline_of(&named)), told(&before));
        prop_assert_eq!(as_one(&named), told(&before));
    }

    #[test]
    fn a_copy_of_a_part_adds_nothing(from in 0..15_usize, length in 0..15_usize) {
        let records = conversation();
        let (from, to) = (from.min(records.len()), (from + length).min(records.len()));
        let whole = log(&records);
        let alone = timeline_of(&[("a", &whole)]);
        let both = timeline_of(&[("a", &whole), ("b", &log(&records[from..to]))]);
        prop_assert_eq!(both.requests.iter().map(|r| r.usage().input).sum::<u64>(), alone.requests.iter().map(|r| r.usage().input).sum::<u64>());
        prop_assert_eq!((both.requests.len(), both.blocks.len(), both.calls.len()), (alone.requests.len(), alone.blocks.len(), alone.calls.len()));
        prop_assert_eq!((both.boundaries.len(), both.references.len()), (alone.boundaries.len(), alone.references.len()));
    }

    #[test]
    fn foreign_bytes_give_rows_that_can_be_put_together_or_none(changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..5)) {
        let mut packed = pack(&mut rows(log(&conversation())));
        for (at, byte) in changes {
            let at = at % packed.len();
            packed[at] = byte;
        }
        if let Some(file) = unpack(&packed) {
            let timeline = assemble(vec![SourceTimeline::new(Id::NONE, file, FileStanding::default())], timeline_guide().rules);
            prop_assert!(timeline.blocks.len() >= timeline.calls.len());
        }
    }
}
