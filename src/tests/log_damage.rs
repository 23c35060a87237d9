//! Damaged logs: what is counted, at which line, and what is read all the same.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::json;

use crate::base::damage::Reason;
use crate::base::damage::Reason::*;
use crate::base::id::Id;
use crate::base::lines::LINE_BYTES_MAX;
use crate::base::unpack::Packing;
use crate::logs::read;
use crate::logs::read::{FileReading, Job, PIECE_BYTES};
use crate::logs::trace::{FileTrace, ResultKind, Status, ToolResult};
use crate::mine::totals::totals;
use crate::tests::log_builder::*;

/// What a log must give: lines, records, bad fragments, bare values; calls as (asked, answered); damage as reason,
/// count and first line.
#[derive(Debug, Default, PartialEq)]
struct Expected {
    lines: u64,
    records: u64,
    bad: u64,
    bare: u64,
    calls: Vec<(bool, bool)>,
    damage: Vec<(Reason, u64, u64)>,
}

const CALL: (bool, bool) = (true, true);
const UNANSWERED: (bool, bool) = (true, false);
const ORPHAN: (bool, bool) = (false, true);

fn given(trace: &FileTrace) -> Expected {
    let counters = &trace.counters;
    assert_eq!(u64::from(counters.items), counters.records + counters.bad_fragments + counters.non_objects);
    Expected {
        lines: counters.lines,
        records: counters.records,
        bad: counters.bad_fragments,
        bare: counters.non_objects,
        calls: trace.rows.calls.iter().map(|row| (row.asked.is_some(), row.answered.is_some())).collect(),
        damage: counters.damage.0.iter().map(|(&reason, spot)| (reason, spot.count, spot.line)).collect(),
    }
}

#[track_caller]
fn check(log: impl AsRef<[u8]>, expected: Expected) {
    let log = log.as_ref();
    assert_eq!(given(&trace(log)), expected, "{}", String::from_utf8_lossy(log));
    // Read up to any line feed and appended later, the same comes out.
    for (at, _) in log.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        let (head, tail) = log.split_at(at + 1);
        let mut whole = trace(head);
        whole.append(trace(tail));
        let FileTrace { names, rows, .. } = &mut whole;
        rows.fold(names);
        assert_eq!(given(&whole), expected, "cut behind byte {at} of {}", String::from_utf8_lossy(log));
    }
}

fn ask() -> String {
    asks("m1", "c1", "Read").to_string()
}

fn answer() -> String {
    answers("c1", "some text").to_string()
}

/// The first part of a record, broken off inside a string.
fn torn(record: &str) -> &str {
    let end = record.find("/home").unwrap();
    &record[..end + 3]
}

/// The only result of a log.
#[track_caller]
fn result(log: impl AsRef<[u8]>) -> ToolResult {
    let trace = trace(log);
    let found: Vec<ToolResult> = trace.rows.calls.iter().filter_map(|row| row.answered).collect();
    assert_eq!(found.len(), 1);
    found[0]
}

#[test]
fn a_whole_log_has_no_damage() {
    let log = format!("{}\n{}\n{}\n{}\n", snapshot(), ask(), queue_operation(), answer());
    check(log, Expected { lines: 4, records: 4, calls: vec![CALL], ..Default::default() });
}

#[test]
fn glued_records_are_all_recovered() {
    let all = |lines, records| Expected {
        lines,
        records,
        calls: vec![CALL],
        damage: vec![(Glued, 1, 1)],
        ..Default::default()
    };
    check(format!("{}{}\n", ask(), answer()), all(1, 2));
    check(format!("{}{}{}\n", ask(), answer(), snapshot()), all(1, 3));
    check(format!("{}{}{}\n", ask(), bash_progress(), answer()), all(1, 3));
    check(format!("{} \t{}\n", ask(), answer()), all(1, 2));
}

#[test]
fn records_glued_behind_one_that_nobody_needs_are_recovered() {
    let summary = json!({ "type": "summary", "summary": "a title", "leafUuid": "u" }).to_string();
    for first in [snapshot(), summary, queue_operation(), bash_progress().to_string()] {
        let expected =
            Expected { lines: 1, records: 3, calls: vec![CALL], damage: vec![(Glued, 1, 1)], ..Default::default() };
        check(format!("{first}{}{}\n", ask(), answer()), expected);
    }
}

#[test]
fn records_glued_with_space_behind_one_that_nobody_needs_are_recovered() {
    for first in [snapshot(), queue_operation(), bash_progress().to_string()] {
        for space in [" ", "\t", "  \r "] {
            let expected =
                Expected { lines: 1, records: 3, calls: vec![CALL], damage: vec![(Glued, 1, 1)], ..Default::default() };
            check(format!("{first}{space}{}{space}{}\n", ask(), answer()), expected);
        }
    }
}

#[test]
fn a_line_of_many_glued_records_takes_no_more_than_its_length() {
    for record in [bash_progress().to_string(), queue_operation(), snapshot(), answer()] {
        let log = record.repeat(2000);
        let start = std::time::Instant::now();
        assert_eq!(trace(&log).counters.records, 2000);
        // A search of the whole rest for each record takes far longer, one pass far less.
        assert!(start.elapsed().as_millis() < 1500, "{:?} for {record}", start.elapsed());
    }
}

#[test]
fn braces_inside_a_string_are_no_glue() {
    let log = format!("{}\n", Record::new("queue-operation", "q").set("content", "{}{} } {"));
    check(log, Expected { lines: 1, records: 1, ..Default::default() });
}

#[test]
fn a_torn_tail_is_counted_and_the_rest_is_read() {
    for tail in [answers("c2", "x").to_string(), bash_progress().to_string()] {
        let log = format!("{}\n{}\n{}", ask(), answer(), torn(&tail));
        let damage = vec![(TornTail, 1, 3)];
        check(log, Expected { lines: 3, records: 2, bad: 1, calls: vec![CALL], damage, ..Default::default() });
    }
}

#[test]
fn a_record_torn_in_the_middle_of_a_file_is_counted_apart() {
    let log = format!("{}\n{}\n{}\n", ask(), torn(&answer()), answer());
    let damage = vec![(TornRecord, 1, 2)];
    check(log, Expected { lines: 3, records: 2, bad: 1, calls: vec![CALL], damage, ..Default::default() });
}

#[test]
fn a_record_appended_to_a_torn_one_is_read() {
    for (first, second) in [(ask(), answer()), (answer(), answer())] {
        let log = format!("{}\n{}{second}\n", ask(), torn(&first));
        let damage = vec![(TornRecord, 1, 2)];
        check(log, Expected { lines: 2, records: 2, bad: 1, calls: vec![CALL], damage, ..Default::default() });
    }
    // Torn between two fields, and inside a key.
    for cut in ["\"cwd\":", "\"cw"] {
        let first = answer();
        let first = &first[..first.find(cut).unwrap() + cut.len()];
        let log = format!("{}\n{first}{}", ask(), answer());
        let damage = vec![(TornRecord, 1, 2)];
        check(log, Expected { lines: 2, records: 2, bad: 1, calls: vec![CALL], damage, ..Default::default() });
    }
}

#[test]
fn a_record_appended_to_a_torn_one_is_read_however_many_objects_and_braces_that_one_holds() {
    let task = |number: usize| json!({ "content": format!("task {number}"), "status": "pending" });
    let line = |number: usize| json!(format!(" fn line_{number}() {{"));
    for what in [(0..500).map(task).collect::<Vec<_>>(), (0..500).map(line).collect()] {
        let first = user("u", "x").set("toolUseResult", json!({ "list": what })).to_string();
        // Torn behind an element, inside of one, and inside of a string.
        for torn in [first.trim_end_matches("]}}"), &first[..first.len() - 6], &first[..first.len() - 9]] {
            let log = format!("{}\n{torn}{}\n", ask(), answer());
            let damage = vec![(TornRecord, 1, 2)];
            check(log, Expected { lines: 2, records: 2, bad: 1, calls: vec![CALL], damage, ..Default::default() });
        }
    }
}

#[test]
fn looking_behind_a_torn_record_takes_no_more_than_the_length_of_its_line() {
    // Each object reaches over the thousand behind it.
    let object = format!("{{\"a\":[{}", "0,".repeat(100));
    let log = format!("{{\"torn\":[{}x\n", object.repeat(4000));
    let start = std::time::Instant::now();
    assert_eq!(trace(&log).counters.bad_fragments, 1);
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

#[test]
fn a_record_appended_to_a_torn_one_that_nobody_needs_is_read() {
    let torn_snapshot = r#"{"type":"file-history-snapshot","messageId":"u","snapshot":{"tracked"#;
    let torn_queue = r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s-main","content":"broken o"#;
    let torn_progress = r#"{"type":"progress","sessionId":"s-main","data":{"type":"bash_progress","output":""#;
    for first in [torn_snapshot, torn_queue, torn_progress] {
        let log = format!("{}\n{first}{}\n", ask(), answer());
        let damage = vec![(TornRecord, 1, 2)];
        check(log, Expected { lines: 2, records: 2, bad: 1, calls: vec![CALL], damage, ..Default::default() });
    }
}

#[test]
fn a_malformed_record_appended_to_a_torn_one_is_passed_over() {
    let bad_escape = answer().replace("some text", "some \\x text");
    let log = format!("{}\n{}{bad_escape}\n", ask(), torn(&answer()));
    let damage = vec![(TornRecord, 1, 2)];
    check(log, Expected { lines: 2, records: 1, bad: 1, calls: vec![UNANSWERED], damage, ..Default::default() });
}

#[test]
fn all_records_appended_to_a_torn_one_are_read() {
    let damage = || vec![(TornRecord, 1, 2)];
    let words = || user("u-w", "and then").to_string();
    let log = format!("{}\n{}{}{}\n", ask(), torn(&answer()), words(), answer());
    check(log, Expected { lines: 2, records: 3, bad: 1, calls: vec![CALL], damage: damage(), ..Default::default() });
    // One that cannot be read does not take the next one with it.
    let bad_escape = answer().replace("some text", "some \\x text");
    let log = format!("{}\n{}{bad_escape}{}\n", ask(), torn(&answer()), answer());
    check(log, Expected { lines: 2, records: 2, bad: 1, calls: vec![CALL], damage: damage(), ..Default::default() });
    // Where the last one broke off as well, each break counts.
    let log = format!("{}\n{}{}{}\n", ask(), torn(&answer()), answer(), torn(&ask()));
    let damage_of = |breaks| vec![(TornRecord, breaks, 2)];
    check(
        log,
        Expected { lines: 2, records: 2, bad: 2, calls: vec![CALL], damage: damage_of(2), ..Default::default() },
    );
    let log = format!("{}\n{}{}{}{}\n", ask(), torn(&answer()), words(), torn(&ask()), answer());
    check(
        log,
        Expected { lines: 2, records: 3, bad: 2, calls: vec![CALL], damage: damage_of(2), ..Default::default() },
    );
    // However many they are.
    let log = format!("{}\n{}{}{}\n", ask(), torn(&answer()), words().repeat(20_000), answer());
    check(
        log,
        Expected { lines: 2, records: 20_002, bad: 1, calls: vec![CALL], damage: damage(), ..Default::default() },
    );
}

#[test]
fn a_line_that_is_no_json_is_counted() {
    let log = format!("{}\nnonsense\n{} trailing\n", ask(), answer());
    let damage = vec![(ParseError, 2, 2)];
    check(log, Expected { lines: 3, records: 2, bad: 2, calls: vec![CALL], damage, ..Default::default() });
}

#[test]
fn a_malformed_escape_in_a_body_spoils_its_record_only() {
    let log = format!("{}\n{}\n{}\n", ask(), answer().replace("some text", "\\x"), answer());
    let damage = vec![(TornRecord, 1, 2)];
    check(log, Expected { lines: 3, records: 2, bad: 1, calls: vec![CALL], damage, ..Default::default() });
}

#[test]
fn bytes_that_are_not_utf8_are_replaced() {
    let log = answer().into_bytes();
    let at = log.windows(4).position(|window| window == b"some").unwrap();
    let log = [&log[..at], b"\xFF\xE2\x82", &log[at..], b"\n"].concat();
    check(
        &log,
        Expected { lines: 1, records: 1, calls: vec![ORPHAN], damage: vec![(InvalidUtf8, 1, 1)], ..Default::default() },
    );
    let text = "\u{FFFD}\u{FFFD}some text";
    let found = result(&log);
    assert_eq!((found.chars, found.bytes), (11, text.len() as u32));
    assert_eq!(found.body, Id::of(text.as_bytes()));
}

#[test]
fn a_byte_order_mark_is_ignored() {
    let log = format!("\u{FEFF}{}\n{}\n", ask(), answer());
    check(log, Expected { lines: 2, records: 2, calls: vec![CALL], damage: vec![(Bom, 1, 1)], ..Default::default() });
}

#[test]
fn crlf_line_ends_are_read() {
    let log = format!("{}\n{}\r\n{}\r\n", snapshot(), ask(), answer());
    check(log, Expected { lines: 3, records: 3, calls: vec![CALL], damage: vec![(Crlf, 2, 2)], ..Default::default() });
}

#[test]
fn a_block_of_nul_bytes_before_a_record_is_ignored() {
    let log = format!("{}\n{}{}\n", ask(), "\0".repeat(4096), answer());
    check(log, Expected { lines: 2, records: 2, calls: vec![CALL], damage: vec![(Nul, 1, 2)], ..Default::default() });
    let log = format!("{}\n{}\n{}{}\n", ask(), "\0".repeat(100), answer(), "\0");
    check(log, Expected { lines: 3, records: 2, calls: vec![CALL], damage: vec![(Nul, 2, 2)], ..Default::default() });
}

/// However many gaps there are on a line: nothing of what stands between them is torn.
#[test]
fn what_stands_between_records_on_a_line_costs_none_of_them() {
    let words = |number: usize| user(&format!("u{number}"), "and then").to_string();
    for (gap, own) in [("\0".repeat(4096), vec![(Glued, 1, 1), (Nul, 1, 1)]), (" \t".to_owned(), vec![(Glued, 1, 1)])] {
        let log = format!("{}{gap}{}{gap}{}{gap}{}\n", ask(), words(1), words(2), answer());
        check(log, Expected { lines: 1, records: 4, calls: vec![CALL], damage: own, ..Default::default() });
    }
    let log = format!("{}\u{FEFF}{}\u{FEFF}{}\n", ask(), words(1), answer());
    let damage = vec![(Glued, 1, 1), (Bom, 2, 1)];
    check(log, Expected { lines: 1, records: 3, calls: vec![CALL], damage, ..Default::default() });
    let log = format!("{},{},{}\n", ask(), words(1), answer());
    let damage = vec![(TornRecord, 2, 1)];
    check(log, Expected { lines: 1, records: 3, bad: 2, calls: vec![CALL], damage, ..Default::default() });
}

/// What is no usage or content of any kind is told of.
#[test]
fn a_usage_or_content_of_another_type_is_counted() {
    for odd in [json!("x"), json!(3), json!(true)] {
        odd_record(&assistant("m1", &[]).message("usage", odd.clone()), &[], &[(MistypedField, 1, 1)]);
        odd_record(
            &assistant("m1", &[]).message("usage", json!({ "cache_creation": odd })),
            &[],
            &[(MistypedField, 1, 1)],
        );
    }
    odd_record(&assistant("m1", &[]).message("usage", json!(null)), &[], &[]);
    odd_record(&assistant("m1", &[]).message("content", json!(5)), &[], &[(MistypedField, 1, 1)]);
    odd_record(&user("u", "x").message("content", json!({})), &[], &[(MistypedField, 1, 1)]);
    odd_record(&user("u", "x").message("content", json!(null)), &[], &[]);
}

#[test]
fn half_a_utf16_pair_counts_as_one_character() {
    let log = |text: &str| format!("{}\n", answers("c1", "X").to_string().replace("\"X\"", &format!("\"{text}\"")));
    let halves = Expected {
        lines: 1,
        records: 1,
        calls: vec![ORPHAN],
        damage: vec![(LoneSurrogate, 1, 1)],
        ..Default::default()
    };
    for (text, chars) in
        [("a\\ud83db", 3), ("\\ude00", 1), ("\\ud83d\\ud83d", 2), ("\\ude00\\ud83d", 2), ("\\ud83d\\n", 2)]
    {
        check(log(text), Expected { calls: halves.calls.clone(), damage: halves.damage.clone(), ..halves });
        assert_eq!(result(log(text)).chars, chars, "{text}");
    }
    let whole = log("\\ud83d\\ude00");
    check(&whole, Expected { lines: 1, records: 1, calls: vec![ORPHAN], ..Default::default() });
    assert_eq!((result(&whole).chars, result(&whole).bytes), (1, 4));
}

#[test]
fn a_log_in_utf16_says_so() {
    let home = super::harness::Home::new();
    for (name, mark, units) in
        [("little", [0xFF, 0xFE], u16::to_le_bytes as fn(u16) -> [u8; 2]), ("big", [0xFE, 0xFF], u16::to_be_bytes)]
    {
        let text = format!("{}\r\n{}\r\n", ask(), answer());
        let bytes: Vec<u8> = mark.into_iter().chain(text.encode_utf16().flat_map(units)).collect();
        let log = home.write(&format!("{name}/p/log.jsonl"), &bytes);
        let outcome = home.run(&["mine", "tools", "--input-dir", log.to_str().unwrap()]);
        assert!(
            outcome.err.contains("log.jsonl:1: UTF-16: save it as UTF-8; nothing in it is read"),
            "{}",
            outcome.err
        );
        // Standard input is told of as such, and can be asked for once only.
        let piped = home.run_with(&["mine", "tools", "--input-dir", "-"], &bytes);
        assert!(piped.err.contains("-:1: UTF-16: save it as UTF-8"), "{}", piped.err);
        assert!(piped.err.contains("`… | devboy doctor --input-dir -` says what is there"), "{}", piped.err);
    }
}

#[test]
fn blank_lines_are_counted() {
    let log = format!("{}\n\n \t \n{}\n\n", ask(), answer());
    check(
        log,
        Expected { lines: 5, records: 2, calls: vec![CALL], damage: vec![(BlankLine, 3, 2)], ..Default::default() },
    );
}

#[test]
fn arrays_and_bare_values_are_no_records() {
    let log = format!("{}\n[{}]\n7\n\"text\"\ntrue\nnull\n[]\n{}\n", ask(), answer(), answer());
    let damage = vec![(Array, 2, 2), (Scalar, 4, 3)];
    check(log, Expected { lines: 8, records: 2, bare: 6, calls: vec![CALL], damage, ..Default::default() });
}

/// One record that misses or mistypes something, and how its call comes out.
#[track_caller]
fn odd_record(record: &Record, calls: &[(bool, bool)], damage: &[(Reason, u64, u64)]) {
    let expected =
        Expected { lines: 1, records: 1, calls: calls.to_vec(), damage: damage.to_vec(), ..Default::default() };
    check(record.line(), expected);
}

#[test]
fn absent_fields_are_counted() {
    let absent = &[(MissingField, 1, 1)];
    let ask = asks("m1", "c1", "Read");
    odd_record(&ask.clone().without("message"), &[], absent);
    odd_record(&ask.clone().without("sessionId"), &[UNANSWERED], absent);
    odd_record(&ask.clone().without("timestamp"), &[UNANSWERED], absent);
    odd_record(&ask.without("type"), &[], absent);
    odd_record(&assistant("m1", &[json!({ "type": "tool_use", "name": "Read", "input": {} })]), &[UNANSWERED], absent);
    odd_record(&assistant("m1", &[json!({ "type": "tool_use", "id": "c1", "input": {} })]), &[UNANSWERED], absent);
    odd_record(&assistant("m1", &[json!({ "text": "no type" })]), &[], absent);
    odd_record(&user("u", vec![json!({ "type": "tool_result", "content": "x" })]), &[ORPHAN], absent);
}

#[test]
fn optional_fields_may_be_absent() {
    let ask = asks("m1", "c1", "Read");
    for field in ["requestId", "uuid", "parentUuid", "cwd", "version", "isSidechain"] {
        odd_record(&ask.clone().without(field), &[UNANSWERED], &[]);
    }
    odd_record(&assistant("m1", &[]).message("usage", json!(null)), &[], &[]);
    odd_record(&user("u", vec![json!({ "type": "tool_result", "tool_use_id": "c1" })]), &[ORPHAN], &[]);
}

#[test]
fn fields_of_another_type_are_counted() {
    let odd = &[(MistypedField, 1, 1)];
    let ask = asks("m1", "c1", "Read");
    odd_record(&ask.clone().set("message", "a text"), &[], &[(MissingField, 1, 1)]);
    odd_record(&ask.clone().set("isSidechain", "true"), &[UNANSWERED], odd);
    for time in [json!("yesterday"), json!(""), json!(1_767_322_800), json!({ "at": "2026-01-02T03:04:05Z" })] {
        let ask = ask.clone().set("timestamp", time);
        odd_record(&ask, &[UNANSWERED], odd);
        odd_record(&agent_progress("a1", &ask).at(1), &[UNANSWERED], odd);
    }
    odd_record(&ask.set("timestamp", json!(null)), &[UNANSWERED], &[(MissingField, 1, 1)]);
    odd_record(&assistant("m1", &[json!("a text"), tool_use("c1", "Read")]), &[UNANSWERED], odd);
    odd_record(
        &assistant("m1", &[json!({ "type": "tool_use", "id": 7, "name": "Read" })]),
        &[UNANSWERED],
        &[(MissingField, 1, 1), (MistypedField, 1, 1)],
    );
    odd_record(&answers("c1", 7), &[ORPHAN], odd);
    odd_record(&answers("c1", vec![json!("a text"), json!({ "type": "text", "text": "x" })]), &[ORPHAN], odd);
}

#[test]
fn token_counts_that_are_no_numbers_count_as_zero_and_fractions_are_cut() {
    let usage = json!({
        "input_tokens": "12",
        "output_tokens": 7,
        "cache_creation_input_tokens": -1,
        "cache_read_input_tokens": 1.5,
        "cache_creation": { "ephemeral_5m_input_tokens": null, "ephemeral_1h_input_tokens": 4 },
    });
    let record = assistant("m1", &[]).message("usage", usage);
    odd_record(&record, &[], &[(MistypedField, 2, 1)]);
    let usage = trace(record.line()).rows.messages[0].usage;
    assert_eq!((usage.input, usage.output, usage.cache_creation, usage.cache_read), (0, 7, 4, 1));
    assert_eq!((usage.cache_creation_5m, usage.cache_creation_1h), (0, 4));
}

#[test]
fn a_hole_that_swallows_records_is_counted() {
    let whole = log(&[asks("m1", "c1", "Read"), answers("c1", "one"), asks("m2", "c2", "Read"), answers("c2", "two")]);
    // From within the id of the first message to within that of the second.
    let start = whole.find("m1").unwrap();
    let end = whole.find("m2").unwrap();
    let mut hole = whole.into_bytes();
    hole[start..end].fill(0);
    let counters = trace(String::from_utf8(hole).unwrap()).counters;
    assert_eq!((counters.items, counters.damage.count(Nul)), (2, 1));
}

#[test]
fn unknown_types_are_counted_by_name() {
    let log = log(&[Record::new("surprise", "u1"), Record::new("surprise", "u2"), asks("m1", "c1", "Read")]);
    let damage = vec![(UnknownType, 2, 1)];
    check(&log, Expected { lines: 3, records: 3, calls: vec![UNANSWERED], damage, ..Default::default() });
    let counters = trace(&log).counters;
    assert_eq!(
        counters.types.into_iter().collect::<Vec<_>>(),
        [("assistant".to_owned(), 1), ("surprise".to_owned(), 2)]
    );
    assert_eq!(counters.known_records, 1);
}

#[test]
fn a_tool_name_that_is_no_name_is_kept_and_counted() {
    for (name, odd) in [("Task\" >\n<parameter", true), (&"x".repeat(129), true), (&"x".repeat(128), false)] {
        let log = asks("m1", "c1", name).line();
        let trace = trace(&log);
        assert_eq!(trace.counters.damage.count(OddToolName), u64::from(odd), "{name}");
        assert_eq!(trace.names.text(trace.rows.calls[0].asked.unwrap().tool), name.replace('\n', "\\u{a}"));
    }
}

#[test]
fn a_second_result_of_a_call_stays_a_row_of_its_own_and_wins() {
    let log = log(&[asks("m1", "c1", "Read"), answers("c1", "one"), fails("c1", "second")]);
    check(&log, Expected { lines: 3, records: 3, calls: vec![CALL, ORPHAN], ..Default::default() });
    let told = Told::of(&[("f", &log)]);
    assert_eq!((told.call("c1").status, told.call("c1").chars), (Status::Error, 6));
    assert_eq!(told.history.merged.orphan_result, 0);
}

#[test]
fn a_result_without_a_call_is_an_orphan() {
    let log = log(&[answers("c9", "x"), asks("m1", "c1", "Read"), answers("c1", "y")]);
    check(&log, Expected { lines: 3, records: 3, calls: vec![ORPHAN, CALL], ..Default::default() });
    let told = Told::of(&[("f", &log)]);
    assert_eq!((told.history.calls.len(), told.history.merged.orphan_result), (1, 1));
}

#[test]
fn calls_without_an_id_are_not_taken_for_copies() {
    let nameless = assistant("m1", &[json!({ "type": "tool_use", "name": "Read" })]);
    let told = Told::of(&[("f", &log(&[nameless.clone(), nameless]))]);
    assert_eq!(told.history.calls.len(), 2);
    assert!(told.history.calls.iter().all(|call| call.status == Status::Unanswered));
}

#[test]
fn a_result_without_an_id_answers_no_call() {
    let asked = assistant("m1", &[json!({ "type": "tool_use", "name": "Read" })]);
    let answered =
        |second: u32| user(&format!("r{second}"), vec![json!({ "type": "tool_result", "content": "x" })]).at(second);
    let log = log(&[asked, answered(1), answered(2)]);
    let told = Told::of(&[("f", &log), ("copy", &log)]);
    assert_eq!(told.history.calls.len(), 1);
    assert!(told.history.calls.iter().all(|call| call.status == Status::Unanswered));
    let totals = totals(&told.corpus);
    assert_eq!((totals.paired, totals.unanswered, totals.orphan_results), (0, 2, 4));
}

#[test]
fn the_kind_of_a_result_says_what_it_held() {
    let text = json!({ "type": "text", "text": "x" });
    let image = json!({ "type": "image", "source": {} });
    let empty = json!({ "type": "text", "text": "" });
    let cases = [
        (json!("x"), ResultKind::Text, 1),
        (json!(""), ResultKind::Empty, 0),
        (json!(null), ResultKind::Empty, 0),
        (json!([]), ResultKind::Empty, 0),
        (json!([empty]), ResultKind::Empty, 0),
        (json!([text, empty, text]), ResultKind::Text, 4),
        (json!([image]), ResultKind::NonText, 0),
        (json!([image, text]), ResultKind::Mixed, 1),
    ];
    for (content, kind, chars) in cases {
        let found = result(answers("c1", content.clone()).line());
        assert_eq!((found.kind, found.chars), (kind, chars), "{content}");
    }
}

#[test]
fn a_body_longer_than_the_window_is_measured_in_full() {
    let text = "é".repeat(700_000) + "→x";
    let found = result(answers("c1", text.as_str()).line());
    assert_eq!((found.chars, found.bytes), (700_002, 1_400_004));
    assert_eq!(found.body, Id::of(text.as_bytes()));
}

#[test]
fn nesting_without_end_is_counted() {
    let open = "[".repeat(100_000);
    let log = format!("{}\n{{\"type\":\"user\",\"toolUseResult\":{open}\n{open}\n{}\n", ask(), answer());
    let damage = vec![(TooDeep, 2, 2)];
    check(log, Expected { lines: 4, records: 2, bad: 2, calls: vec![CALL], damage, ..Default::default() });
}

#[test]
fn a_file_need_not_end_with_a_line_feed() {
    let log = format!("{}\n{}", ask(), answer());
    check(&log, Expected { lines: 2, records: 2, calls: vec![CALL], ..Default::default() });
    assert!(read::read_stream(log.as_bytes(), guide()).open_tail);
    assert!(!read::read_stream(format!("{log}\n").as_bytes(), guide()).open_tail);
}

#[test]
fn an_empty_file_is_no_damage() {
    check("", Expected::default());
    assert!(!read::read_stream(b"".as_slice(), guide()).open_tail);
}

#[test]
fn a_line_over_the_limit_is_passed_over_and_counted() {
    let (head, tail) = (format!("{}\n{{\"type\":\"user\",\"x\":\"", ask()), format!("\"}}\n{}\n", answer()));
    let filler = io::repeat(b'x').take(LINE_BYTES_MAX as u64);
    let reading = read::read_stream(head.as_bytes().chain(filler).chain(tail.as_bytes()), guide());
    let damage = vec![(Oversize, 1, 2)];
    let expected = Expected { lines: 3, records: 2, bad: 1, calls: vec![CALL], damage, ..Default::default() };
    assert_eq!(given(&reading.trace), expected);
}

/// Reads files as a run does.
fn read_file(path: &Path, packing: Packing, threads: usize) -> FileReading {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let to = std::fs::metadata(path).map_or(0, |meta| meta.len());
    let jobs = [Job { path, packing, from: 0, to, named: false }];
    read_job(&jobs[0], &pool)
}

fn read_job(job: &Job<'_>, pool: &rayon::ThreadPool) -> FileReading {
    let mut readings = Vec::new();
    read::read_all(std::slice::from_ref(job), guide(), pool, &|_| {}, &mut |reading| {
        readings.push(reading);
        ControlFlow::Continue(())
    });
    readings.remove(0)
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(text, 3).unwrap()
}

/// A log that does not compress to nothing.
fn noisy_log(calls: u32) -> String {
    let body = |call: u32| -> String {
        let words = (0..400_u32).map(|word| (call * 400 + word + 1).wrapping_mul(2_654_435_761).rotate_left(word));
        words.map(|word| format!("{word:x} ")).collect()
    };
    let pair = |call: u32| {
        let id = format!("c{call}");
        log(&[asks(&format!("m{call}"), &id, "Read"), answers(&id, body(call))])
    };
    (0..calls).map(pair).collect()
}

#[test]
fn compressed_files_are_read_like_plain_ones() {
    let dir = tempfile::tempdir().unwrap();
    let log = format!("{}{}", noisy_log(20), torn(&ask()));
    let expected = given(&trace(&log));
    let (first, second) = log.split_at(log.len() / 3);
    let packed = [
        (Packing::Plain, log.clone().into_bytes()),
        (Packing::Gzip, gzip(log.as_bytes())),
        (Packing::Gzip, [gzip(first.as_bytes()), gzip(second.as_bytes())].concat()),
        (Packing::Zstd, zstd(log.as_bytes())),
        (Packing::Zstd, [zstd(first.as_bytes()), zstd(second.as_bytes())].concat()),
    ];
    for (packing, bytes) in packed {
        let path = dir.path().join("log");
        std::fs::write(&path, bytes).unwrap();
        let reading = read_file(&path, packing, 2);
        assert_eq!(given(&reading.trace), expected, "{packing:?}");
        assert!(reading.open_tail);
    }
}

#[test]
fn what_comes_before_the_break_of_a_compressed_file_is_used() {
    let dir = tempfile::tempdir().unwrap();
    for calls in [40, 600] {
        let log = noisy_log(calls);
        for (packing, bytes) in [(Packing::Gzip, gzip(log.as_bytes())), (Packing::Zstd, zstd(log.as_bytes()))] {
            let path = dir.path().join("log");
            std::fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
            let counters = read_file(&path, packing, 1).trace.counters;
            assert_eq!(counters.damage.count(BrokenCompression), 1, "{packing:?}");
            let read = counters.records as f64 / f64::from(2 * calls);
            // A decoder gives what it has in blocks; zstd blocks hold up to 128 KB.
            let expected = if packing == Packing::Gzip || calls > 100 { 0.8 } else { 0.0 };
            assert!(read > expected && read <= 1.0, "{packing:?}: {} of {} records", counters.records, 2 * calls);
        }
    }
}

#[test]
fn a_compressed_file_that_is_none_is_damage_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    std::fs::write(&path, noisy_log(1)).unwrap();
    for packing in [Packing::Gzip, Packing::Zstd] {
        let expected = Expected { damage: vec![(BrokenCompression, 1, 0)], ..Default::default() };
        assert_eq!(given(&read_file(&path, packing, 1).trace), expected, "{packing:?}");
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_damage_of_the_file() {
    for packing in [Packing::Plain, Packing::Gzip] {
        let expected = Expected { damage: vec![(Unreadable, 1, 0)], ..Default::default() };
        assert_eq!(given(&read_file(Path::new("no/such/file"), packing, 1).trace), expected);
    }
}

#[test]
fn pieces_of_a_large_file_give_the_rows_and_first_lines_of_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let piece = usize::try_from(PIECE_BYTES).unwrap();
    let head = format!("{}\n\u{FEFF}{}\n", snapshot(), asks("m1", "c1", "mcp__a__b"));
    let torn_tail = format!("{}\r\n{}\n\n{}", answer(), ask(), torn(&ask()));
    // A line that begins with the last byte.
    let blank_tail = format!("{}\r\n{}\n\n", answer(), ask());
    // The filler's line ends before, at and behind the cut; then the cut lies far inside it.
    let ends = [(piece - 1, &torn_tail), (piece, &torn_tail), (piece + 1, &torn_tail), (piece + 300_000, &blank_tail)];
    for (end, tail) in ends {
        let filler = Record::new("queue-operation", "q").set("content", "#").to_string();
        let fill = "x".repeat(end + 1 - head.len() - filler.len());
        let log = format!("{head}{}\n{tail}", filler.replace('#', &fill));
        assert_eq!(log.find(tail), Some(end + 1));
        std::fs::write(&path, &log).unwrap();
        let reading = read_file(&path, Packing::Plain, 2);
        let whole = trace(&log);
        assert_eq!(given(&reading.trace), given(&whole), "a line ends at {end}");
        assert_eq!(reading.trace.rows, whole.rows, "a line ends at {end}");
        assert_eq!(reading.trace.names.texts(), whole.names.texts());
        assert_eq!(reading.open_tail, tail == &torn_tail);
        let line = |reason| reading.trace.counters.damage.0.get(&reason).map_or(0, |spot| spot.line);
        assert_eq!((line(Bom), line(Crlf), line(BlankLine)), (2, 4, 6));
        assert_eq!(line(TornTail), if tail == &torn_tail { 7 } else { 0 });
    }
}

#[test]
fn a_reading_that_goes_on_from_an_offset_sees_only_what_was_appended() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let (old, new) = (log(&[asks("m1", "c1", "Read")]), log(&[answers("c1", "x"), asks("m2", "c2", "Read")]));
    std::fs::write(&path, format!("{old}{new}{}", ask())).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let from = old.len() as u64;
    let read = |to: usize| {
        let job = Job { path: &path, packing: Packing::Plain, from, to: to as u64, named: false };
        read_job(&job, &pool)
    };
    let expected = Expected { lines: 2, records: 2, calls: vec![ORPHAN, UNANSWERED], ..Default::default() };
    let reading = read(old.len() + new.len());
    assert_eq!((given(&reading.trace), reading.open_tail), (expected, false));
    // What came since the listing is not looked at, not even the rest of a line.
    let reading = read(old.len() + new.len() + 40);
    let damage = vec![(TornTail, 1, 3)];
    let expected =
        Expected { lines: 3, records: 2, bad: 1, calls: vec![ORPHAN, UNANSWERED], damage, ..Default::default() };
    assert_eq!((given(&reading.trace), reading.open_tail), (expected, true));
}

#[test]
fn a_token_count_that_no_message_has_is_damage_and_sums_do_not_wrap() {
    let usage = json!({ "input_tokens": u64::MAX, "output_tokens": 1e3, "cache_read_input_tokens": 4e9 });
    let record = assistant("m1", &[]).message("usage", usage);
    odd_record(&record, &[], &[(MistypedField, 1, 1)]);
    let usage = trace(record.line()).rows.messages[0].usage;
    assert_eq!((usage.input, usage.output, usage.cache_read), (0, 1_000, 4_000_000_000));
}

#[test]
fn of_a_repeated_key_the_last_stands() {
    let first = r#"{"id":"m0","model":"a","content":[{"type":"tool_use","id":"c0","name":"Read","input":{}}]}"#;
    let line = ask().replacen("\"message\":", &format!("\"message\":{first},\"message\":"), 1);
    assert_eq!(trace(format!("{line}\n")).rows.calls.len(), 1);
    let body = answer().replacen("\"content\":\"some text\"", "\"content\":\"old\",\"content\":\"some text\"", 1);
    let rows = trace(format!("{}\n{body}\n", ask())).rows;
    assert_eq!(rows.calls[0].answered.map(|answered| answered.chars), Some(9));
}
