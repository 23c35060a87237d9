//! Whatever bytes a log holds, reading goes on: every line is counted, and the stages behind take what comes out.

use proptest::prelude::*;
use serde_json::json;

use super::changed_bytes::{any_change, changed_log};
use crate::logs::read;
use crate::logs::record::Extractor;
use crate::logs::take::TakeLines;
use crate::mine::totals::totals;
use crate::tests::log_builder::*;
use crate::tests::timeline_damage::one_walk_is_as_good_as_two;

/// One line of each kind that is looked into.
fn valid_lines() -> Vec<Vec<u8>> {
    let pictured = answers("c1", vec![json!({ "type": "text", "text": "é😀\n\"x\"" }), json!({ "type": "image" })]);
    let torn = fails("c1", "\u{0}x").to_string();
    let lines = [
        assistant("m1", &[tool_use("c1", "Read"), tool_use("c2", "mcp__a__b")]).to_string(),
        pictured.to_string(),
        fails("c2", "Sibling tool call errored").to_string(),
        boundary("b1").to_string(),
        compact_summary("s1", Some("b1")).to_string(),
        micro_compaction("b2", &["c1"]).to_string(),
        agent_progress("a1", &asks("m2", "c3", "Read")).to_string(),
        asks("m3", "c4", "Read").inline().link("u1", Some("u2")).to_string(),
        asks("m4", "c5", "Read").agent("a1").to_string(),
        bash_progress().to_string(),
        snapshot(),
        queue_operation(),
        format!("{}{}", asks("m5", "c6", "Read"), snapshot()),
        format!("{}{}", &torn[..torn.len() - 9], answers("c1", "a\\b")),
    ];
    lines.into_iter().map(String::into_bytes).collect()
}

/// Reads a log in two ways and takes it through all stages.
fn check(log: &[u8]) -> Result<(), TestCaseError> {
    let lines = log.split_inclusive(|&byte| byte == b'\n').count() as u64;
    let mut extractor = Extractor::new(guide());
    for line in log.split_inclusive(|&byte| byte == b'\n') {
        extractor.line(line.strip_suffix(b"\n").unwrap_or(line), !line.ends_with(b"\n"));
    }
    let by_hand = extractor.finish();
    let streamed = read::read_stream(log, guide());
    let counters = &streamed.trace.counters;
    prop_assert_eq!(counters, &by_hand.counters);
    prop_assert_eq!(&streamed.trace.rows, &by_hand.rows);
    prop_assert_eq!(counters.lines, lines);
    prop_assert_eq!(u64::from(counters.items), counters.records + counters.bad_fragments + counters.non_objects);
    prop_assert_eq!(counters.records, counters.types.values().sum::<u64>());
    // Between two breaks of a line stands something whole.
    prop_assert!(counters.bad_fragments <= lines + counters.records + counters.non_objects);
    prop_assert!(counters.damage.0.values().all(|spot| spot.count > 0 && (1..=lines).contains(&spot.line)));
    prop_assert_eq!(streamed.open_tail, log.last().is_some_and(|&byte| byte != b'\n'));
    one_walk_is_as_good_as_two(log)?;
    let told = Told::from_traces([("a", by_hand), ("b", streamed.trace)]);
    let sums = totals(&told.corpus);
    prop_assert_eq!(sums.tool_uses, sums.paired + sums.unanswered);
    prop_assert!(
        told.history.calls.len() as u64 <= sums.tool_uses + told.history.merged.superseded_progress + lines * 4
    );
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn arbitrary_bytes_are_read_to_the_end(log in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&log)?;
    }

    #[test]
    fn changed_logs_are_read_to_the_end(log in changed_log(prop::sample::select(valid_lines()), 3, 12)) {
        check(&log)?;
    }

    #[test]
    fn a_changed_line_does_not_spoil_the_lines_around_it(
        line in prop::sample::select(valid_lines()),
        changes in prop::collection::vec(any_change(), 1..4),
    ) {
        let mut line = line;
        for change in &changes {
            change.apply(&mut line);
        }
        let (before, after) = (asks("m-before", "c-before", "Read").line(), answers("c-before", "x").line());
        let log = [before.as_bytes(), &line, b"\n", after.as_bytes()].concat();
        let told = Told::from_traces([("f", trace(&log))]);
        let call = told.call("c-before");
        prop_assert_eq!(call.chars, 1);
    }
}

#[test]
fn every_valid_line_is_read_without_loss_at_every_cut() {
    for line in valid_lines() {
        for end in 0..=line.len() {
            check(&line[..end]).unwrap();
        }
    }
}
