//! The citation pass: what counts as used, by both definitions, and that nothing but one field is touched.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::Home;
use super::log_builder::cases;
use crate::shell::arguments::Exit;
use crate::telemetry::{Annotated, Citations, Pass, PipelineEvent, SummaryLine, UsedWhen, annotate};

const EVENTS: &str = ".config/devboy/telemetry/events/s.jsonl";
const FIELD: &str = "cited_in_next_n_turns";

/// An event in short: what citation depends on.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    session: u8,
    agent: u8,
    /// Compactions before it.
    partition: u8,
    tool: &'static str,
    /// 0 for none.
    body: u8,
    /// 0 for none.
    path: u8,
    prefetched: bool,
    sampled: bool,
    cited: Option<bool>,
}

/// A Read of a file, with a content of its own.
const READ: Said = Said {
    session: 1,
    agent: 0,
    partition: 0,
    tool: "Read",
    body: 1,
    path: 1,
    prefetched: false,
    sampled: false,
    cited: None,
};
/// The same, prefetched.
const AHEAD: Said = Said { prefetched: true, ..READ };
/// Something else.
const BASH: Said = Said { tool: "Bash", body: 0, path: 0, ..READ };
/// A change of the same file.
const EDIT: Said = Said { tool: "Edit", body: 0, ..READ };

impl Said {
    fn event(&self) -> PipelineEvent {
        let fields = json!({
            "session_hash": format!("s{}", self.session),
            "tool_call_id_hash": "94236e8f",
            "tool_name_anon": self.tool,
            "endpoint_class": self.tool,
            "response_chars": 500,
            "shape": "prose",
            "is_dedup_hit": false,
            "tokens_baseline": 125,
            "tokens_final": 125,
            "context_partition": self.partition,
            "is_sidechain": self.agent > 0,
            "ts_ms": 7,
        });
        PipelineEvent {
            content_sha_prefix_hex: if self.body > 0 { format!("{:032x}", self.body) } else { String::new() },
            file_path_hash: (self.path > 0).then(|| format!("{:08x}", self.path)),
            agent_chain: (self.agent > 1).then(|| format!("{:08x}", self.agent)),
            sample_rate_applied: if self.sampled { 0.5 } else { 1.0 },
            enricher_prefetched: self.prefetched,
            cited_in_next_n_turns: self.cited,
            ..serde_json::from_value(fields).unwrap()
        }
    }

    fn line(&self) -> String {
        serde_json::to_string(&self.event()).unwrap() + "\n"
    }
}

fn lines(said: &[Said]) -> String {
    said.iter().map(Said::line).collect()
}

fn mutates(tool: &str) -> bool {
    tool == "Edit"
}

fn pass(definition: UsedWhen, lookahead: u32) -> Pass<'static> {
    Pass { definition, lookahead, overwrite: false, mutates: &mutates, recycled_gap_ms: 12 * 3_600_000 }
}

/// What each event of an annotated text says about its use.
fn cited(annotated: &Annotated) -> Vec<Option<bool>> {
    let text = std::str::from_utf8(&annotated.text).unwrap();
    let event = |line: &str| serde_json::from_str::<PipelineEvent>(line).unwrap().cited_in_next_n_turns;
    text.lines().map(event).collect()
}

/// The judgement of each event by both definitions, within three.
fn judged(said: &[Said]) -> (Vec<Option<bool>>, Vec<Option<bool>>) {
    let by = |definition| cited(&annotate(lines(said).as_bytes(), &pass(definition, 3)));
    (by(UsedWhen::Answer), by(UsedWhen::Published))
}

/// The judgement of the first event, which was prefetched, by both definitions.
fn first(behind: &[Said]) -> (Option<bool>, Option<bool>) {
    let (answer, name) = judged(&[&[AHEAD], behind].concat());
    assert!(answer[1..].iter().chain(&name[1..]).all(Option::is_none) || behind.iter().any(|said| said.prefetched));
    (answer[0], name[0])
}

const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);

// --- What counts as used ---------------------------------------------------------------------------------------------

#[test]
fn the_same_answer_soon_after_is_a_use_and_the_third_event_is_the_last_that_counts() {
    assert_eq!(first(&[READ]), (YES, YES));
    assert_eq!(first(&[BASH, BASH, READ]), (YES, YES));
    assert_eq!(first(&[BASH, BASH, BASH, READ]), (NO, NO));
    assert_eq!(first(&[]), (NO, NO));
    assert_eq!(first(&[AHEAD, AHEAD, AHEAD]), (NO, NO));
}

#[test]
fn a_decline_without_a_response_is_nothing_that_the_agent_asked_for() {
    let decline = |bytes: u64| {
        let event = PipelineEvent {
            response_chars: bytes,
            enricher_decline_reason: Some("budget".to_owned()),
            ..Said { body: 0, path: 0, ..BASH }.event()
        };
        serde_json::to_string(&event).unwrap() + "\n"
    };
    let used = |behind: u64| {
        let text = AHEAD.line() + &decline(behind) + &decline(behind) + &decline(behind) + &READ.line();
        cited(&annotate(text.as_bytes(), &pass(UsedWhen::Answer, 3)))[0]
    };
    assert_eq!(used(0), YES, "three declines do not use the lookahead up");
    assert_eq!(used(500), NO, "three responses do, whatever else is recorded with them");
}

#[test]
fn another_file_of_the_same_tool_is_a_use_by_name_only() {
    assert_eq!(first(&[Said { body: 2, path: 2, ..READ }]), (NO, YES));
    // Another part of the same file, or the file after a change that nobody recorded.
    assert_eq!(first(&[Said { body: 2, ..READ }]), (NO, YES));
    // The same text from another tool.
    assert_eq!(first(&[Said { tool: "Bash", ..READ }]), (NO, NO));
    // The same text from a file of another name.
    assert_eq!(first(&[Said { path: 2, ..READ }]), (YES, YES));
}

#[test]
fn the_file_decides_where_a_content_was_not_recorded() {
    assert_eq!(first(&[Said { body: 0, ..READ }]), (YES, YES));
    assert_eq!(first(&[Said { body: 0, path: 2, ..READ }]), (NO, YES));
    assert_eq!(first(&[Said { body: 0, path: 0, ..READ }]), (NO, YES));
    let (answer, _) = judged(&[Said { body: 0, ..AHEAD }, READ]);
    assert_eq!(answer[0], YES);
}

#[test]
fn a_change_of_the_file_ends_the_wait_and_one_of_another_file_does_not() {
    assert_eq!(first(&[EDIT, READ]), (NO, YES));
    assert_eq!(first(&[Said { path: 2, ..EDIT }, READ]), (YES, YES));
    assert_eq!(first(&[READ, EDIT]), (YES, YES));
    // A tool that names the file without changing it.
    assert_eq!(first(&[Said { tool: "Grep", ..EDIT }, READ]), (YES, YES));
    // Without a file there is nothing to change.
    let (answer, _) = judged(&[Said { path: 0, ..AHEAD }, EDIT, READ]);
    assert_eq!(answer[0], YES);
}

#[test]
fn what_another_reader_is_shown_is_no_use() {
    assert_eq!(first(&[Said { session: 2, ..READ }]), (NO, NO));
    // By name a session is one, whoever reads.
    assert_eq!(first(&[Said { agent: 1, ..READ }]), (NO, YES));
    assert_eq!(first(&[Said { agent: 2, ..READ }]), (NO, YES));
    // Events of other readers do not use up the lookahead.
    let other = Said { agent: 2, ..BASH };
    assert_eq!(first(&[other.clone(), other.clone(), other, READ]), (YES, NO));
}

#[test]
fn what_was_shown_before_a_compaction_is_of_no_use_behind_it() {
    assert_eq!(first(&[Said { partition: 1, ..READ }]), (NO, YES));
    assert_eq!(first(&[Said { partition: 1, ..BASH }, READ]), (NO, YES), "it is gone by then");
    let ahead = Said { partition: 1, ..AHEAD };
    assert_eq!(judged(&[AHEAD, ahead, Said { partition: 1, ..READ }]).0, [NO, YES, None]);
}

#[test]
fn prefetches_use_up_the_published_lookahead_and_not_devboys() {
    let other = Said { body: 9, path: 9, ..AHEAD };
    let (answer, name) = judged(&[AHEAD, other.clone(), other.clone(), other, READ]);
    assert_eq!(answer, [YES, NO, NO, NO, None]);
    // The first one sees nothing but prefetches; the others see the Read.
    assert_eq!(name, [NO, YES, YES, YES, None]);
}

#[test]
fn one_call_uses_one_prefetch_and_the_oldest_first() {
    let (answer, name) = judged(&[AHEAD, AHEAD, READ, BASH]);
    assert_eq!((answer, name), (vec![YES, NO, None, None], vec![YES, YES, None, None]));
    // The first one uses it as long as it waits.
    let (answer, _) = judged(&[AHEAD, BASH, BASH, AHEAD, READ, READ]);
    assert_eq!(answer, [YES, None, None, YES, None, None]);
}

/// E9: windows of a sample are not complete, so nothing is said of them.
#[test]
fn what_cannot_be_judged_is_no_miss() {
    let untraced = Said { body: 0, path: 0, ..AHEAD };
    let sampled = Said { sampled: true, ..AHEAD };
    let said = [untraced, sampled, AHEAD, READ];
    let (answer, name) = judged(&said);
    assert_eq!(answer, [None, None, YES, None]);
    assert_eq!(name, [YES, YES, YES, None]);
    let counts = annotate(lines(&said).as_bytes(), &pass(UsedWhen::Answer, 3)).counts;
    let expected = Citations {
        lines: 4,
        events: 4,
        prefetches: 3,
        cited_by_name: 3,
        judged_by_answer: 1,
        cited_by_answer: 1,
        sampled: 1,
        untraced: 1,
        set: 1,
        ..Citations::default()
    };
    assert_eq!(counts, expected);
}

#[test]
fn a_file_that_ends_early_is_said_to() {
    let cut = |said: &[Said]| annotate(lines(said).as_bytes(), &pass(UsedWhen::Answer, 3)).counts.cut_short;
    assert_eq!(cut(&[AHEAD, BASH, BASH]), 1);
    assert_eq!(cut(&[AHEAD, BASH, BASH, BASH]), 0);
    assert_eq!(cut(&[AHEAD, READ]), 0);
    assert_eq!(cut(&[AHEAD, AHEAD, EDIT]), 0);
}

#[test]
fn the_lookahead_is_as_long_as_asked_for() {
    let text = lines(&[AHEAD, BASH, READ]);
    let used = |definition, lookahead| cited(&annotate(text.as_bytes(), &pass(definition, lookahead)))[0];
    for definition in [UsedWhen::Answer, UsedWhen::Published] {
        assert_eq!((used(definition, 1), used(definition, 2), used(definition, 1_000)), (NO, YES, YES));
    }
}

// --- What is written -------------------------------------------------------------------------------------------------

/// One line that is looked at alone, and the same behind the pass.
fn edited(line: &str, overwrite: bool) -> (String, Citations) {
    let whole = format!("{line}\n{}", READ.line());
    let pass = Pass { overwrite, ..pass(UsedWhen::Answer, 3) };
    let Annotated { text, counts, .. } = annotate(whole.as_bytes(), &pass);
    let text = String::from_utf8(text).unwrap();
    (text.strip_suffix(&format!("\n{}", READ.line())).unwrap().to_owned(), counts)
}

/// The fields of an event that was prefetched, without braces.
fn fields() -> String {
    AHEAD.line().trim().trim_start_matches('{').trim_end_matches('}').to_owned()
}

#[test]
fn the_field_goes_behind_the_last_one_and_every_other_byte_stays() {
    let fields = fields();
    for (before, behind) in [("", ""), ("  ", "  "), ("\u{feff}", "\r"), ("\0\0", "\0"), ("", " \r")] {
        for (open, close) in [("{", "}"), ("{ ", "\t}"), (r#"{"extra":{"a":[1,"}"]},"#, "}")] {
            let (text, counts) = edited(&format!("{before}{open}{fields}{close}{behind}"), false);
            assert_eq!(text, format!("{before}{open}{fields},\"{FIELD}\":true{close}{behind}"));
            assert_eq!((counts.set, counts.damaged_lines, counts.lines), (1, 0, 2));
        }
    }
}

#[test]
fn a_field_that_is_there_is_replaced_in_its_place_or_kept() {
    let fields = fields();
    let with = |value: &str| format!("{{\"{FIELD}\" : {value} ,{fields}}}");
    for silent in ["null", "\"?\"", "[false]"] {
        assert_eq!(edited(&with(silent), false).0, with("true"));
    }
    let (kept, counts) = edited(&with("false"), false);
    assert_eq!((kept, counts.kept, counts.set), (with("false"), 1, 0));
    let (judged, counts) = edited(&with("false"), true);
    assert_eq!((judged, counts.kept, counts.set), (with("true"), 0, 1));
    // Its name may be spelled in many ways.
    let escaped = |value: &str| format!("{{\"\\u0063ited_in_next_n_turns\":{value},{fields}}}");
    assert_eq!(edited(&escaped("null"), false).0, escaped("true"));
    // Readers disagree about which of two holds.
    let twice = format!("{{\"{FIELD}\":null,{fields},\"{FIELD}\":null}}");
    let (text, counts) = edited(&twice, false);
    assert_eq!((text, counts.uneditable, counts.set), (twice, 1, 0));
}

#[test]
fn what_cannot_be_judged_keeps_what_it_says_even_if_it_may_be_overwritten() {
    let text = lines(&[Said { sampled: true, cited: NO, ..AHEAD }, READ]);
    let pass = |definition| Pass { overwrite: true, ..pass(definition, 3) };
    assert_eq!(annotate(text.as_bytes(), &pass(UsedWhen::Answer)).text, text.as_bytes());
    assert_eq!(cited(&annotate(text.as_bytes(), &pass(UsedWhen::Published)))[0], YES);
}

#[test]
fn events_without_a_line_of_their_own_are_judged_and_damaged_lines_left() {
    let (ahead, read) = (AHEAD.line(), READ.line());
    let (ahead, read) = (ahead.trim(), read.trim());
    let glued = format!("{ahead} {read}\n");
    let Annotated { text, counts, .. } = annotate(glued.as_bytes(), &pass(UsedWhen::Answer, 3));
    let ending = format!(",\"{FIELD}\":true}}");
    assert_eq!(String::from_utf8(text).unwrap(), glued.replacen('}', &ending, 1));
    assert_eq!((counts.events, counts.set, counts.damaged_lines), (2, 1, 0));
    // The first of two is whole, but nobody knows what the line was meant to be.
    let torn = format!("{ahead}{}\n{read}\n", &read[..40]);
    let Annotated { text, counts, .. } = annotate(torn.as_bytes(), &pass(UsedWhen::Answer, 3));
    assert_eq!(text, torn.as_bytes());
    assert_eq!((counts.cited_by_answer, counts.uneditable, counts.damaged_lines), (1, 1, 1));
}

#[test]
fn summaries_other_records_and_damage_stay_byte_for_byte() {
    let summary = serde_json::to_string(&SummaryLine::of(&[AHEAD.event()], Default::default()).unwrap()).unwrap();
    let odd: [&[u8]; 9] = [
        summary.as_bytes(),
        b"",
        b"\r",
        b"{\"session_hash\":\"s1\"",
        b"{\"session_hash\":\"s1\",\"enricher_prefetched\":true}",
        b"[1, 2]  3",
        b"\xFF\xFE{}",
        b"{\"tool_name_anon\":\"Read\",\"session_hash\":7,\"enricher_prefetched\":true}",
        b"not json",
    ];
    let mut text = AHEAD.line().into_bytes();
    for line in odd {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text.extend_from_slice(READ.line().trim().as_bytes());
    let Annotated { text: annotated, counts, .. } = annotate(&text, &pass(UsedWhen::Answer, 1));
    let place = AHEAD.line().len() - 2;
    let expected = [&text[..place], format!(",\"{FIELD}\":true").as_bytes(), &text[place..]].concat();
    assert_eq!(annotated, expected);
    assert_eq!((counts.lines, counts.events, counts.prefetches, counts.damaged_lines), (11, 2, 1, 3));
}

#[test]
fn nothing_gives_nothing() {
    for text in ["", "\n", "\n\n  \n"] {
        let Annotated { text: annotated, counts, .. } = annotate(text.as_bytes(), &pass(UsedWhen::Published, 3));
        assert_eq!((annotated, counts.events), (text.as_bytes().to_vec(), 0));
    }
}

// --- Any file --------------------------------------------------------------------------------------------------------

/// The published definition, event by event.
fn used_by_name(said: &[Said], at: usize, lookahead: usize) -> bool {
    let later = said[at + 1..].iter().filter(|other| other.session == said[at].session);
    later.take(lookahead).any(|other| !other.prefetched && other.tool == said[at].tool)
}

/// Devboy's own definition, call by call: each takes the oldest prefetch that it can use.
fn used_by_answer(said: &[Said], lookahead: usize) -> Vec<Option<bool>> {
    let judges = |one: &Said| one.prefetched && !one.sampled && (one.body > 0 || one.path > 0);
    let mut used: Vec<Option<bool>> = said.iter().map(|one| judges(one).then_some(false)).collect();
    for (at, call) in said.iter().enumerate().filter(|(_, call)| !call.prefetched) {
        let is_one_context = |said: &[Said]| {
            let own = said.iter().filter(|other| (other.session, other.agent) == (call.session, call.agent));
            own.map(|other| other.partition).all(|partition| partition == call.partition)
        };
        let fits = |from: usize| {
            let one = &said[from];
            let same_file = |other: &Said| one.path > 0 && other.path == one.path;
            let own: Vec<&Said> = said[from + 1..at]
                .iter()
                .filter(|other| !other.prefetched && (other.session, other.agent) == (one.session, one.agent))
                .collect();
            (call.session, call.agent, call.tool) == (one.session, one.agent, one.tool)
                && is_one_context(&said[from..=at])
                && (if one.body > 0 && call.body > 0 { one.body == call.body } else { same_file(call) })
                && own.len() < lookahead
                && !own.iter().any(|other| mutates(other.tool) && same_file(other))
        };
        if let Some(from) = (0..at).find(|&from| used[from] == NO && fits(from)) {
            used[from] = YES;
        }
    }
    used
}

fn any_event() -> impl Strategy<Value = Said> {
    let tool = prop::sample::select(vec!["Read", "Edit", "Bash", "mcp__p1a2b3c__get"]);
    let cited = prop_oneof![6 => Just(None), 1 => any::<bool>().prop_map(Some)];
    let flags = (prop::bool::weighted(0.5), prop::bool::weighted(0.1));
    let partition = prop_oneof![6 => Just(0_u8), 1 => Just(1)];
    (1..3_u8, (0..3_u8, partition), tool, 0..3_u8, 0..3_u8, flags, cited).prop_map(
        |(session, (agent, partition), tool, body, path, (prefetched, sampled), cited)| Said {
            session,
            agent,
            partition,
            tool,
            body,
            path,
            prefetched,
            sampled,
            cited: cited.filter(|_| prefetched),
        },
    )
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn any_sequence_is_judged_as_its_definition_says(
        said in prop::collection::vec(any_event(), 0..24),
        lookahead in 1..5_usize,
        overwrite: bool,
    ) {
        let text = lines(&said);
        let by = |definition| {
            let pass = Pass { overwrite, ..pass(definition, lookahead as u32) };
            annotate(text.as_bytes(), &pass)
        };
        let chosen = |old: Option<bool>, new: Option<bool>| {
            if overwrite { new.or(old) } else { old.or(new) }
        };
        let names: Vec<_> = (0..said.len())
            .map(|at| chosen(said[at].cited, said[at].prefetched.then(|| used_by_name(&said, at, lookahead))))
            .collect();
        prop_assert_eq!(cited(&by(UsedWhen::Published)), names);
        let used = used_by_answer(&said, lookahead);
        let answers: Vec<_> = said.iter().zip(&used).map(|(said, used)| chosen(said.cited, *used)).collect();
        let annotated = by(UsedWhen::Answer);
        prop_assert_eq!(cited(&annotated), answers);
        let counts = annotated.counts;
        prop_assert_eq!(counts, Citations { set: counts.set, kept: counts.kept, ..by(UsedWhen::Published).counts });
        prop_assert_eq!(counts.judged_by_answer, used.iter().flatten().count() as u64);
        prop_assert_eq!(counts.cited_by_answer, used.iter().filter(|used| **used == YES).count() as u64);
        prop_assert_eq!(counts.prefetches, counts.judged_by_answer + counts.sampled + counts.untraced);
    }

    #[test]
    fn twice_is_once_and_only_the_field_is_new(
        said in prop::collection::vec(any_event(), 0..24),
        junk in prop::collection::vec((0..24_usize, "[ -~\u{e9}\0]{0,12}"), 0..4),
        by_name: bool,
        overwrite: bool,
    ) {
        let mut all: Vec<String> = said.iter().map(Said::line).collect();
        for (place, text) in junk {
            all.insert(place.min(all.len()), text + "\n");
        }
        let definition = if by_name { UsedWhen::Published } else { UsedWhen::Answer };
        let pass = Pass { overwrite, ..pass(definition, 3) };
        let text = all.concat();
        let once = annotate(text.as_bytes(), &pass);
        prop_assert_eq!(&annotate(&once.text, &pass).text, &once.text);
        let once = String::from_utf8(once.text).unwrap();
        prop_assert_eq!(once.split('\n').count(), text.split('\n').count());
        for (old, new) in text.split('\n').zip(once.split('\n')) {
            if old == new {
                continue;
            }
            // Behind the last field, or in place of the value.
            let new_field = |value: bool| old.replacen('}', &format!(",\"{FIELD}\":{value}}}"), 1);
            let in_place = |from: bool| old.replace(&format!("{FIELD}\":{from}"), &format!("{FIELD}\":{}", !from));
            prop_assert!(
                [new_field(true), new_field(false)].contains(&new.to_owned())
                    || overwrite && [in_place(true), in_place(false)].contains(&new.to_owned()),
                "{old}\n{new}"
            );
        }
    }

    #[test]
    fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0..400_usize) {
        let text = lines(&[AHEAD, READ]);
        let mixed = [&text.as_bytes()[..cut.min(text.len())], &bytes, text.as_bytes()].concat();
        let annotated = annotate(&mixed, &pass(UsedWhen::Published, 3)).text;
        prop_assert!(annotated.len() >= mixed.len());
    }
}

// --- The command -----------------------------------------------------------------------------------------------------

/// E9: its own output is recognised and not read as one more recording.
#[test]
fn the_copy_stands_beside_the_original_is_private_and_is_read_again() {
    let home = Home::new();
    let text = lines(&[AHEAD, READ, Said { body: 5, path: 5, ..AHEAD }, BASH]);
    let original = home.write(EVENTS, &text);
    home.write(".devboy/telemetry/none.jsonl", lines(&[READ, BASH]));
    let told = home.run(&["annotate"]);
    assert_eq!(told.exit, Exit::Done, "{}", told.err);
    assert!(told.err.contains("# annotated: 1 of 2 files, 2 prefetch events"), "{}", told.err);
    assert!(told.err.contains("1 of 2 = 50.0 % (95 % interval 9.5–90.5 %)"), "{}", told.err);
    assert_eq!(std::fs::read_to_string(&original).unwrap(), text);
    let copy = original.with_file_name("s.annotated.jsonl");
    let annotated = annotate(text.as_bytes(), &pass(UsedWhen::Answer, 3));
    assert_eq!(std::fs::read(&copy).unwrap(), annotated.text);
    assert_eq!(cited(&annotated), [YES, None, NO, None]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // What holds no prefetch has no copy, which would go stale for nothing.
    assert!(!home.path(".devboy/telemetry/none.annotated.jsonl").exists());
    let again = home.run(&["annotate"]);
    assert!(again.err.contains("# left as they are: 1 annotated file"), "{}", again.err);
    assert!(!home.path(".config/devboy/telemetry/events/s.annotated.annotated.jsonl").exists());
    assert_eq!(std::fs::read(&copy).unwrap(), annotated.text);
}

#[test]
fn the_report_counts_by_both_definitions_and_a_dry_run_writes_nothing() {
    let home = Home::new();
    let other = Said { body: 2, path: 2, ..READ };
    let file = home.write("t/a.jsonl", lines(&[AHEAD, other]) + "torn{\n");
    let file = file.to_str().unwrap();
    let report = home.json(&["annotate", file, "--dry-run", "--reproducible"]);
    assert_eq!(report["used"]["published"]["k"], json!(1));
    assert_eq!((&report["used"]["answer"]["k"], &report["used"]["answer"]["n"]), (&json!(0), &json!(1)));
    assert_eq!((&report["total"]["damaged_lines"], &report["written"]), (&json!(1), &json!(false)));
    assert_eq!(report["files"][0]["output"], json!(home.path("t/a.annotated.jsonl").to_str().unwrap()));
    assert!(!home.path("t/a.annotated.jsonl").exists());
    let written = |definition: &str| {
        assert_eq!(home.run(&["annotate", file, "--definition", definition]).exit, Exit::Done);
        let text = std::fs::read_to_string(home.path("t/a.annotated.jsonl")).unwrap();
        serde_json::from_str::<Value>(text.lines().next().unwrap()).unwrap()[FIELD].clone()
    };
    assert_eq!((written("answer"), written("published"), written("name")), (json!(false), json!(true), json!(true)));
    let narrow = home.run(&["annotate", file, "--lookahead", "0"]);
    assert_eq!(narrow.exit, Exit::Usage);
}

#[test]
fn what_is_kept_is_not_called_annotated_and_the_rate_that_stands_is_told() {
    let home = Home::new();
    // The first says that it was not used, which it was; the second says nothing and was not.
    let kept = Said { cited: Some(false), ..AHEAD };
    home.write(EVENTS, lines(&[kept, READ, Said { body: 5, path: 5, ..AHEAD }, BASH]));
    let said = home.run(&["annotate"]).err;
    assert!(said.contains("# annotated: 1 of 1 file, 1 prefetch event newly set\n"), "{said}");
    assert!(said.contains("written of 1 of these): 1 of 2 = 50.0 %"), "{said}");
    assert!(said.contains("# used as it stands in the annotated form: 0 of 2 = 0.0 %"), "{said}");
    let standing = home.json(&["annotate", "--dry-run"])["used"]["standing"].clone();
    assert_eq!((&standing["k"], &standing["n"]), (&json!(0), &json!(2)));
    let judged = home.run(&["annotate", "--overwrite"]).err;
    assert!(judged.contains("2 prefetch events") && judged.contains("; written): 1 of 2"), "{judged}");
    assert!(!judged.contains("as it stands"), "{judged}");
}

#[test]
fn events_without_a_line_of_their_own_stand_in_the_annotated_form_which_is_known_again() {
    let home = Home::new();
    // Two events on one line behind a mark, the first without a time; nothing else in the file.
    let ahead = AHEAD.line().trim().replace("\"ts_ms\":7", "\"other\":7");
    home.write(EVENTS, format!("\u{feff}{ahead}{}", READ.line()));
    for _ in 0..2 {
        let report = home.json(&["annotate"]);
        assert_eq!((&report["used"]["standing"]["k"], &report["used"]["standing"]["n"]), (&json!(1), &json!(1)));
    }
}

#[test]
fn another_process_of_the_same_id_uses_nothing() {
    let at = |said: &Said, session: &str, ts_ms: u64| {
        let line = said.line().replace("\"session_hash\":\"s1\"", &format!("\"session_hash\":\"{session}\""));
        line.replace("\"ts_ms\":7", &format!("\"ts_ms\":{ts_ms}"))
    };
    let used = |session: &str, hours: u64| {
        let text = at(&AHEAD, session, 0) + &at(&READ, session, hours * 3_600_000);
        cited(&annotate(text.as_bytes(), &pass(UsedWhen::Answer, 3)))[0]
    };
    assert_eq!((used("mcp_42", 12), used("mcp_42", 13), used("s1", 13)), (YES, NO, YES));
}

#[test]
fn directories_below_are_looked_into_when_asked_for() {
    let home = Home::new();
    home.write("t/a.jsonl", lines(&[AHEAD]));
    home.write("t/deep/b.jsonl", lines(&[AHEAD]));
    home.write("t/c.jsonl.gz", [0x1f, 0x8b]);
    let dir = home.path("t");
    let found = |arguments: &[&str]| {
        let report = home.json(&[&["annotate", dir.to_str().unwrap(), "--dry-run"], arguments].concat());
        (report["files"].as_array().unwrap().len(), report["compressed_left_out"].clone())
    };
    assert_eq!((found(&[]), found(&["--recursive"])), ((1, json!(1)), (2, json!(1))));
    // A place that is named beside the one above it is meant, however it is spelled.
    let below = home.path("t/deep/../deep");
    assert_eq!(found(&[below.to_str().unwrap()]), (2, json!(1)));
    let table = home.run(&["annotate", dir.to_str().unwrap(), "--recursive", "--format", "csv", "-q", "--dry-run"]).out;
    let rows: BTreeMap<&str, &str> = table.lines().filter_map(|line| line.split_once(',')).collect();
    assert_eq!((rows["total"], rows.len()), ("2,2,0,0,2,0", 4));
}

#[test]
fn no_file_is_an_error_that_says_where_was_looked() {
    let home = Home::new();
    let nowhere = home.run(&["annotate"]);
    assert_eq!(nowhere.exit, Exit::Failed);
    let place = home.path(".config/devboy/telemetry/events");
    assert!(nowhere.err.contains(&format!("{} (default): does not exist", place.display())), "{}", nowhere.err);
    assert!(nowhere.err.contains("`telemetry.enabled = true`") && !nowhere.err.contains("--recursive"));
    let other = home.write("README.md", "# Words\n");
    let other = home.run(&["annotate", other.to_str().unwrap()]);
    assert_eq!((other.exit, other.out.as_str()), (Exit::Failed, ""));
    assert!(other.err.contains("README.md (given): holds no event"), "{}", other.err);
    let missing = home.run(&["annotate", "/no/such/place"]);
    assert_eq!((missing.exit, missing.err.contains("/no/such/place does not exist")), (Exit::Failed, true));
    let done = home.write("t/a.annotated.jsonl", lines(&[AHEAD]));
    let left = home.run(&["annotate", done.to_str().unwrap()]);
    assert!(left.exit == Exit::Failed && left.err.contains("annotated already: 1"), "{}", left.err);
}
