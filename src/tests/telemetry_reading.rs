//! Telemetry read back: every field, every kind of damage, and nothing that depends on files, pieces or threads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::fs::File;
use std::io::{Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::changed_bytes::{any_change, changed_log};
use crate::base::body_shape::{BodyShape, LayerId};
use crate::base::damage::Reason;
use crate::base::damage::Reason::*;
use crate::base::id::Id;
use crate::base::lines::LINE_BYTES_MAX;
use crate::base::names::Sym;
use crate::base::visible::visible;
use crate::facts::encode;
use crate::facts::inner_formats::InnerFormat;
use crate::logs::trace::Millis;
use crate::telemetry::effectiveness::Effectiveness;
use crate::telemetry::log::{
    Decline, EncodedTokens, NO_FORMAT, NO_LATENCY, NO_ORDER, NO_STEP, RaceWord, RecordedAs, RecordedContent,
    RecordedEvent, RecordedPlan,
};
use crate::telemetry::{
    PipelineEvent, SummaryLine, Surroundings, Telemetry, TelemetryListing, TelemetryPlace, TelemetryRequest, places,
};
use crate::tests::log_builder::cases;

const ALL: Range<Millis> = Millis::MIN..Millis::MAX;
const HOUR_MS: u64 = 3_600_000;
/// The last millisecond of 2199.
const LAST_MS: Millis = 7_258_118_399_999;
const FORMATS: [&str; 3] = ["csv", "kv", "pipeline_deep_mckp"];
const TAGS: [&str; 3] = ["url", "md_table", "yaml"];

fn format(name: &str) -> Option<u8> {
    encode::find(name).map(|(number, _)| number)
}

fn inner_format(name: &str) -> Option<u16> {
    name.parse().ok().map(InnerFormat::bit)
}

fn request(window: Range<Millis>) -> TelemetryRequest {
    TelemetryRequest { window, recycled_gap_ms: HOUR_MS }
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// A directory with some files.
struct Store(TempDir);

impl Store {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn of(text: impl AsRef<[u8]>) -> Self {
        let store = Self::new();
        store.put("a.jsonl", text);
        store
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn put_at(&self, name: &str, text: impl AsRef<[u8]>, modified_ms: u64) -> &Self {
        self.put(name, text);
        let file = File::options().write(true).open(self.path(name)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_millis(modified_ms)).unwrap();
        self
    }

    fn list(&self, since: Millis) -> TelemetryListing {
        TelemetryListing::new(places(&[self.0.path().to_owned()], &Surroundings::default()), since)
    }

    fn read_within(&self, window: Range<Millis>) -> Telemetry {
        self.list(window.start).read(&request(window), &pool(1), &|_| ())
    }

    fn read(&self) -> Telemetry {
        self.read_within(ALL)
    }

    fn read_cut(&self, threads: usize, piece_bytes: u64) -> Telemetry {
        self.list(ALL.start).read_cut(&request(ALL), &pool(threads), &|_| (), piece_bytes)
    }
}

/// An event with nothing but what is needed.
fn event(session: &str, ts_ms: i64) -> PipelineEvent {
    PipelineEvent {
        session_hash: session.to_owned(),
        tool_call_id_hash: "94236e8f".to_owned(),
        tool_name_anon: "Bash".to_owned(),
        endpoint_class: "Bash".to_owned(),
        response_chars: 500,
        shape: "prose".to_owned(),
        inner_formats: Vec::new(),
        content_sha_prefix_hex: "c38c2bf3055c516a98ac5d97f30e7c36".to_owned(),
        file_path_hash: None,
        is_dedup_hit: false,
        layer_used: "L3".to_owned(),
        template_id: None,
        tokens_baseline: 63,
        tokens_final: 63,
        context_partition: 0,
        is_sidechain: false,
        ts_ms,
        sample_rate_applied: 1.0,
        l2_format: None,
        depth_max: 0,
        n_cols: 0,
        n_rows: 0,
        key_stability: None,
        agent_chain: None,
        n_items: 0,
        step: None,
        mixed: false,
        preview: false,
        handle_tokens: 0,
        encodings: Vec::new(),
        enricher_prefetched: false,
        enricher_predicted_cost_tokens: 0,
        enricher_decline_reason: None,
        cited_in_next_n_turns: None,
        enricher_race: None,
        call_order: None,
        what: None,
    }
}

fn in_partition(session: &str, ts_ms: i64, partition: u32) -> PipelineEvent {
    PipelineEvent { context_partition: partition, ..event(session, ts_ms) }
}

fn line(event: &PipelineEvent) -> String {
    serde_json::to_string(event).unwrap() + "\n"
}

fn lines<'e>(events: impl IntoIterator<Item = &'e PipelineEvent>) -> String {
    events.into_iter().map(line).collect()
}

/// A whole line with some fields replaced; `null` takes a field out.
fn line_with(changes: Value) -> String {
    let mut fields = serde_json::to_value(event("s", 5)).unwrap();
    for (key, value) in changes.as_object().unwrap() {
        if value.is_null() {
            fields.as_object_mut().unwrap().remove(key);
        } else {
            fields[key] = value.clone();
        }
    }
    fields.to_string() + "\n"
}

/// The only event of a line.
#[track_caller]
fn only(text: &str) -> (RecordedEvent, Telemetry) {
    let telemetry = Store::of(text).read();
    assert_eq!(telemetry.log.events.len(), 1, "{text}: {:?}", telemetry.files);
    (telemetry.log.events[0], telemetry)
}

/// Everything that was read, apart from the directory; NaN equals itself here.
fn told(telemetry: &Telemetry) -> String {
    let files: Vec<_> = telemetry.files.iter().map(|file| (file.path.file_name(), file.bytes, &file.counts)).collect();
    let Telemetry { log, copies, .. } = telemetry;
    format!("{} {:#?}", rows(telemetry), (&log.encodings, files, copies))
}

/// The log alone.
fn rows(telemetry: &Telemetry) -> String {
    let log = &telemetry.log;
    format!("{:#?}", (&log.sessions, log.names.texts(), &log.events, &log.encodings))
}

fn damage(telemetry: &Telemetry) -> Vec<(Reason, u64, u64)> {
    let spots = telemetry.files.iter().flat_map(|file| &file.counts.damage.0);
    spots.map(|(&reason, spot)| (reason, spot.count, spot.line)).collect()
}

/// What an event says, texts in place of numbers.
#[derive(Clone, PartialEq, PartialOrd, Debug)]
struct Said {
    who: (String, u32, String, String),
    place: (u32, Option<u32>, Millis, u32, u32, [u8; 16]),
    content: (u32, &'static str, Vec<&'static str>, u16, u32, u32, u32, Option<f32>),
    tokens: (&'static str, Option<&'static str>, u32, u32, f64, RecordedContent, u8),
    plan: (bool, u32, Option<bool>, Option<&'static str>),
    encodings: Vec<(String, u8, u32)>,
}

fn said(telemetry: &Telemetry) -> Vec<Said> {
    let log = &telemetry.log;
    let said = log.events.iter().map(|event| Said {
        who: (
            log.sessions[event.session as usize].clone(),
            event.chain,
            log.names.text(event.tool).to_owned(),
            log.names.text(event.endpoint).to_owned(),
        ),
        place: (
            event.partition,
            (event.step != NO_STEP).then_some(event.step),
            event.ts,
            event.call,
            event.path,
            event.body.0,
        ),
        content: (
            event.bytes,
            BodyShape::from_number(event.shape).into_str(),
            TAGS.into_iter().filter(|tag| event.inner_formats & inner_format(tag).unwrap() != 0).collect(),
            event.depth.into(),
            event.columns.into(),
            event.rows,
            event.items,
            (!event.key_stability.is_nan()).then_some(event.key_stability),
        ),
        tokens: (
            event.layer.key(),
            FORMATS.into_iter().find(|id| format(id) == Some(event.format)),
            event.baseline,
            event.sent,
            event.weight,
            event.content,
            event.handle_tokens,
        ),
        plan: (
            event.plan.prefetched,
            event.plan.predicted,
            event.plan.cited,
            event.plan.declined.map(|reason| reason.into_str()),
        ),
        encodings: log
            .encodings_of(event)
            .iter()
            .map(|cost| (encode::REGISTER[cost.format as usize].id.to_owned(), cost.depth, cost.tokens))
            .collect(),
    });
    said.collect()
}

/// The same, from the events as they were written.
fn expected(events: &[PipelineEvent]) -> Vec<Said> {
    let chain = |event: &PipelineEvent| {
        let kind = if event.agent_chain.is_some() { 2 } else { u8::from(event.is_sidechain) };
        (event.session_hash.clone(), kind, event.agent_chain.clone())
    };
    let chains: BTreeSet<_> = events.iter().map(chain).collect();
    let hex = |text: &str| u32::from_str_radix(text, 16).unwrap();
    let word = |words: [&'static str; 3], text: &str| words.into_iter().find(|word| *word == text);
    let layers = LayerId::ALL.map(LayerId::key);
    let declines = Decline::KNOWN.map(|reason| reason.into_str());
    let said = events.iter().map(|event| Said {
        who: (
            visible(&event.session_hash).into_owned(),
            chains.iter().position(|other| *other == chain(event)).unwrap() as u32,
            visible(&event.tool_name_anon).into_owned(),
            visible(&event.endpoint_class).into_owned(),
        ),
        place: (
            event.context_partition,
            event.step,
            event.ts_ms,
            hex(&event.tool_call_id_hash),
            event.file_path_hash.as_deref().map_or(0, hex),
            match event.content_sha_prefix_hex.as_str() {
                "" => [0; 16],
                digits => u128::from_str_radix(digits, 16).unwrap().to_be_bytes(),
            },
        ),
        content: (
            event.response_chars as u32,
            (0..=10).map(|number| BodyShape::from_number(number).into_str()).find(|key| *key == event.shape).unwrap(),
            TAGS.into_iter().filter(|tag| event.inner_formats.iter().any(|other| other == tag)).collect(),
            event.depth_max.min(255) as u16,
            event.n_cols.min(u16::MAX.into()),
            event.n_rows,
            event.n_items,
            event.key_stability.map(|share| share as f32),
        ),
        tokens: (
            layers.into_iter().find(|layer| *layer == event.layer_used).unwrap(),
            match event.layer_used.as_str() {
                "L1" => event.template_id.as_deref().and_then(|id| word(FORMATS, id)),
                "L2" => event.l2_format.as_deref().and_then(|id| word(FORMATS, id)),
                _ => None,
            },
            event.tokens_baseline as u32,
            event.tokens_final as u32,
            f64::from((1.0 / event.sample_rate_applied as f32).round()).max(1.0),
            match (event.mixed, event.preview) {
                (true, _) => RecordedContent::Mixed,
                (false, true) => RecordedContent::Preview,
                (false, false) => RecordedContent::Text,
            },
            event.handle_tokens,
        ),
        plan: (
            event.enricher_prefetched,
            event.enricher_predicted_cost_tokens,
            event.cited_in_next_n_turns,
            event.enricher_decline_reason.as_ref().and_then(|text| declines.iter().copied().find(|key| key == text)),
        ),
        encodings: event.encodings.clone(),
    });
    said.collect()
}

fn any_hex(digits: usize) -> impl Strategy<Value = String> {
    any::<u128>().prop_map(move |number| format!("{number:032x}")[..digits].to_owned())
}

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(words).prop_map(str::to_owned)
}

/// A count: small, or anything up to the largest.
fn any_count() -> impl Strategy<Value = u32> {
    prop_oneof![0..9_u32, any::<u32>()]
}

prop_compose! {
    fn any_content()(
        response_chars in any_count(),
        shape in (0..11_u8).prop_map(|number| BodyShape::from_number(number).into_str().to_owned()),
        inner_formats in prop::sample::subsequence(TAGS.to_vec(), 0..=3),
        hash in prop_oneof![Just(String::new()), any_hex(32)],
        file_path_hash in prop::option::of(any_hex(8)),
        depth_max in any::<u16>(),
        sizes in (any_count(), any_count(), any_count()),
        key_stability in prop::option::of(0.0..=1.0_f64),
        (mixed, preview) in any::<(bool, bool)>(),
    ) -> PipelineEvent {
        PipelineEvent {
            response_chars: response_chars.into(),
            shape,
            inner_formats: inner_formats.into_iter().map(str::to_owned).collect(),
            content_sha_prefix_hex: hash,
            file_path_hash,
            depth_max: depth_max.into(),
            n_cols: sizes.0,
            n_rows: sizes.1,
            n_items: sizes.2,
            key_stability,
            mixed,
            preview,
            ..event("", 0)
        }
    }
}

prop_compose! {
    fn any_decision()(
        layer_used in one_of(&["L0", "L1", "L2", "L3"]),
        template_id in prop::option::of(one_of(&FORMATS)),
        l2_format in prop::option::of(one_of(&FORMATS)),
        tokens in (any_count(), any_count()),
        sample_rate_applied in prop_oneof![Just(1.0), 0.001..1.0_f64],
        handle_tokens: u8,
        encodings in prop::collection::vec((one_of(&FORMATS), any::<u8>(), any_count()), 0..4),
        enricher in (any::<bool>(), any_count(), prop::option::of(any::<bool>())),
        declined in prop::option::of(one_of(&["budget", "low_probability", "preempted", "prereq_missing"])),
    ) -> PipelineEvent {
        PipelineEvent {
            is_dedup_hit: layer_used == "L0",
            layer_used,
            template_id,
            l2_format,
            tokens_baseline: tokens.0.into(),
            tokens_final: tokens.1.into(),
            sample_rate_applied,
            handle_tokens,
            encodings,
            enricher_prefetched: enricher.0,
            enricher_predicted_cost_tokens: enricher.1,
            cited_in_next_n_turns: enricher.2,
            enricher_decline_reason: declined,
            ..event("", 0)
        }
    }
}

prop_compose! {
    fn any_event()(
        content in any_content(),
        decision in any_decision(),
        session_hash in one_of(&["", "0f", "s\"quoted\\", "ünïcode", "mcp_", "mcp_1x"]),
        call in any_hex(8),
        tool in one_of(&["Bash", "Read", "mcp__p9d96d9__get_issue", "tab\there"]),
        endpoint in one_of(&["Bash", "bash:git", "", "Read"]),
        context in (0..3_u32, any::<bool>(), prop::option::of(one_of(&["a1", "b2", "ü"]))),
        step in prop::option::of(0..u32::MAX),
        ts_ms in prop_oneof![0..3_i64, 0..=LAST_MS],
    ) -> PipelineEvent {
        PipelineEvent {
            session_hash,
            tool_call_id_hash: call,
            tool_name_anon: tool,
            endpoint_class: endpoint,
            context_partition: context.0,
            is_sidechain: context.1,
            agent_chain: context.2,
            step,
            ts_ms,
            layer_used: decision.layer_used,
            is_dedup_hit: decision.is_dedup_hit,
            template_id: decision.template_id,
            l2_format: decision.l2_format,
            tokens_baseline: decision.tokens_baseline,
            tokens_final: decision.tokens_final,
            sample_rate_applied: decision.sample_rate_applied,
            handle_tokens: decision.handle_tokens,
            encodings: decision.encodings,
            enricher_prefetched: decision.enricher_prefetched,
            enricher_predicted_cost_tokens: decision.enricher_predicted_cost_tokens,
            cited_in_next_n_turns: decision.cited_in_next_n_turns,
            enricher_decline_reason: decision.enricher_decline_reason,
            ..content
        }
    }
}

/// Events that are often alike, so that their order hangs by the last fields.
fn any_alike() -> impl Strategy<Value = PipelineEvent> {
    let session = one_of(&["s", "t", "mcp_7"]);
    (session, 0..3_i64, 0..2_u32, any::<bool>(), 0..2_u32, 0..3_u32).prop_map(
        |(session, hours, partition, is_sidechain, n_cols, costs)| PipelineEvent {
            is_sidechain,
            n_cols,
            encodings: (0..costs).map(|tokens| ("csv".to_owned(), 0, tokens)).collect(),
            ..in_partition(&session, hours * 2 * HOUR_MS as i64, partition)
        },
    )
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn what_was_written_is_read_back_field_by_field(events in prop::collection::vec(any_event(), 0..12)) {
        let telemetry = Store::of(lines(&events)).read();
        let order = |a: &Said, b: &Said| a.partial_cmp(b).unwrap();
        let (mut read, mut wanted) = (said(&telemetry), expected(&events));
        read.sort_by(order);
        wanted.sort_by(order);
        prop_assert_eq!(read, wanted);
        prop_assert_eq!(damage(&telemetry), vec![]);
        let counts = &telemetry.files[0].counts;
        prop_assert_eq!((counts.lines, counts.events), (events.len() as u64, events.len() as u64));
        let key = |e: &RecordedEvent| (e.session, e.chain, e.partition, e.ts, e.call, e.body);
        prop_assert!(telemetry.log.events.is_sorted_by_key(key));
        let used: BTreeSet<&str> = events.iter().map(|event| event.session_hash.as_str()).collect();
        prop_assert!(telemetry.log.sessions.iter().map(String::as_str).eq(used), "each session once, by name");
    }

    #[test]
    fn files_do_not_show_in_the_log(
        events in prop::collection::vec((prop_oneof![any_alike(), any_event()], 0..4_usize), 1..24),
    ) {
        let whole = Store::of(lines(events.iter().map(|(event, _)| event)));
        let split = Store::new();
        for part in 0..4 {
            let name = format!("{}/{}.jsonl", part % 2, 9 - part);
            split.put(&name, lines(events.iter().filter(|(_, own)| *own == part).map(|(event, _)| event)));
        }
        let backwards = Store::of(lines(events.iter().rev().map(|(event, _)| event)));
        prop_assert_eq!(rows(&split.read()), rows(&whole.read()));
        prop_assert_eq!(rows(&backwards.read()), rows(&whole.read()));
    }

    #[test]
    fn cuts_and_threads_do_not_show(
        log in changed_log(any_line(), 2, 10),
        other in prop::collection::vec(any_alike(), 0..6),
        piece_bytes in prop_oneof![1..40_u64, 40..3000_u64],
        threads in 2..4_usize,
    ) {
        let store = Store::of(log);
        store.put("b.jsonl", lines(&other));
        let whole = told(&store.read());
        prop_assert_eq!(&told(&store.read_cut(1, piece_bytes)), &whole);
        prop_assert_eq!(&told(&store.read_cut(threads, piece_bytes)), &whole);
    }

    #[test]
    fn arbitrary_bytes_are_read_to_the_end(log in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&log)?;
    }

    #[test]
    fn changed_lines_are_read_to_the_end(log in changed_log(any_line(), 2, 10)) {
        check(&log)?;
    }

    #[test]
    fn a_changed_line_does_not_spoil_the_lines_around_it(
        line in any_line(),
        changes in prop::collection::vec(any_change(), 1..4),
    ) {
        let mut line = line;
        for change in &changes {
            change.apply(&mut line);
        }
        let (before, after) = (lines([&event("before", 1)]), lines([&event("after", 2)]));
        let telemetry = Store::of([before.as_bytes(), &line, b"\n", after.as_bytes()].concat()).read();
        for (name, ts) in [("before", 1), ("after", 2)] {
            let session = telemetry.log.sessions.iter().position(|session| session == name);
            let count = telemetry.log.events.iter().filter(|e| Some(e.session as usize) == session && e.ts == ts).count();
            prop_assert_eq!(count, 1, "{}", name);
        }
    }
}

/// Whatever a file holds, its lines are counted and each value on them has an outcome.
fn check(log: &[u8]) -> Result<(), TestCaseError> {
    let telemetry = Store::of(log).read();
    let counts = &telemetry.files[0].counts;
    let lines = log.split_inclusive(|&byte| byte == b'\n').count() as u64;
    prop_assert_eq!(counts.lines, lines);
    prop_assert_eq!(counts.events, telemetry.log.events.len() as u64 + telemetry.copied_events);
    prop_assert!(counts.damage.0.values().all(|spot| spot.count > 0 && (1..=lines).contains(&spot.line)));
    let why = [TornTail, TornRecord, ParseError, Array, Scalar, MissingField, OutOfRange, Oversize, TooDeep];
    let skipped: u64 = why.iter().map(|&reason| counts.damage.count(reason)).sum();
    prop_assert!((skipped..=skipped + counts.damage.count(MistypedField)).contains(&counts.skipped));
    let blank = counts.damage.count(BlankLine) + counts.damage.count(Nul);
    prop_assert!(counts.events + counts.summaries + counts.skipped + blank >= lines);
    Ok(())
}

fn summary_line() -> String {
    let summary = SummaryLine::of(&[event("s", 1_000), event("s", 9_000)], Effectiveness::default()).unwrap();
    serde_json::to_string(&summary).unwrap() + "\n"
}

#[test]
fn a_summary_counts_what_was_prefetched_and_is_read_whatever_its_counters_are() {
    let fetched = |cited| PipelineEvent {
        enricher_prefetched: true,
        enricher_predicted_cost_tokens: 100,
        response_chars: 800,
        tokens_baseline: 200,
        cited_in_next_n_turns: cited,
        enricher_race: Some(if cited.is_some() { "won" } else { "wasted" }.to_owned()),
        // At another time, or they would be copies of one.
        ..event("s", if cited.is_some() { 2 } else { 4 })
    };
    let declined = PipelineEvent { enricher_decline_reason: Some("tired".to_owned()), ..event("s", 3) };
    let hint = PipelineEvent { is_dedup_hit: true, layer_used: "L0".to_owned(), tokens_baseline: 800, ..event("s", 1) };
    let all = [hint.clone(), fetched(Some(true)), fetched(None), declined];
    let mut enrichment = Effectiveness::default();
    let log = Store::of(all.map(|event| serde_json::to_string(&event).unwrap() + "\n").concat()).read().log;
    log.events.iter().for_each(|event| enrichment.add(event, 4));
    let summary = SummaryLine::of(&[hint], enrichment).unwrap();
    let mut line = serde_json::to_value(&summary).unwrap();
    let counters = json!({
        "total_prefetches": 2, "cited_prefetches": 1, "total_declines": 1, "late_invoked_after_decline": 0,
        "cost_overrun_count": 2, "total_predictions": 2, "net_prediction_error_tokens": 200,
        "inference_calls_saved_prefetch": 1, "inference_calls_saved_dedup": 1, "inference_tokens_saved": 1000,
        "prefetch_dispatched": 2, "prefetch_won_race": 1, "prefetch_wasted": 1,
    });
    assert_eq!(line["data"]["enrichment"], counters);
    assert_eq!((&line["data"]["total_events"], &line["data"]["total_baseline_tokens"]), (&json!(1), &json!(800)));
    assert_eq!(serde_json::from_value::<SummaryLine>(line.clone()).unwrap(), summary);
    for odd in [json!(null), json!("none"), json!({}), json!({ "total_prefetches": -1 }), json!({ "new": [] })] {
        line["data"]["enrichment"] = odd;
        let telemetry = Store::of(format!("{line}\n")).read();
        assert_eq!((telemetry.files[0].counts.summaries, telemetry.files[0].counts.skipped), (1, 0), "{line}");
    }
}

/// A line of each kind, without its line feed.
fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let glued = line(&event("g", 1)).trim().to_owned() + line(&event("h", 1)).trim();
    let odd = line_with(json!({ "type": "x", "extra": { "a": [1, { "b": null }] }, "shape": "new", "step": "x" }));
    prop_oneof![
        any_event().prop_map(|event| line(&event)),
        any_alike().prop_map(|event| line(&event)),
        Just(summary_line()),
        Just(glued),
        Just(odd),
        Just(String::new()),
    ]
    .prop_map(|line| line.trim_end_matches('\n').as_bytes().to_vec())
}

#[test]
fn the_published_example_is_read_as_it_stands() {
    let text = concat!(
        r#"{"session_hash":"s1","tool_call_id_hash":"94236e8f","tool_name_anon":"Bash","endpoint_class":"bash:ls","#,
        r#""response_chars":500,"shape":"unknown","inner_formats":[],"#,
        r#""content_sha_prefix_hex":"c38c2bf3055c516a98ac5d97f30e7c36","is_dedup_hit":true,"layer_used":"L0","#,
        r#""tokens_baseline":63,"tokens_final":13,"context_partition":0,"is_sidechain":false,"ts_ms":0,"#,
        r#""sample_rate_applied":1.0}"#
    );
    let (event, telemetry) = only(text);
    let mut names = (*telemetry.log.names).clone();
    let expected = RecordedEvent {
        session: 0,
        chain: 0,
        partition: 0,
        step: NO_STEP,
        ts: 0,
        latency_ms: NO_LATENCY,
        call: 0x9423_6e8f,
        tool: names.intern("Bash"),
        endpoint: names.intern("bash:ls"),
        path: 0,
        body: Id::pseudonym(&[b'x'; 500]),
        bytes: 500,
        shape: BodyShape::Unknown as u8,
        inner_formats: 0,
        depth: 0,
        columns: 0,
        rows: 0,
        items: 0,
        key_stability: 0.0,
        layer: LayerId::L0,
        format: NO_FORMAT,
        baseline: 63,
        sent: 13,
        weight: 1.0,
        content: RecordedContent::Text,
        order: NO_ORDER,
        what: RecordedAs::Response,
        handle_tokens: 0,
        plan: RecordedPlan::default(),
        encodings_start: 0,
        encodings_count: 0,
    };
    assert!(event.key_stability.is_nan());
    assert_eq!(RecordedEvent { key_stability: 0.0, ..event }, expected);
    assert_eq!((names.texts().len(), &*telemetry.log.sessions), (3, &["s1".to_owned()][..]));
    assert_eq!(names.find("Bash"), Some(Sym(1)), "names are numbered by their text");
}

#[test]
fn read_counts_events_as_the_published_reader_does() {
    let text = [&line(&event("s", 1)), &summary_line(), "{\"broken\n", "\n", &line(&event("s", 2))].concat();
    let telemetry = Store::of(text).read();
    let counts = &telemetry.files[0].counts;
    assert_eq!((counts.lines, counts.events, counts.summaries, counts.skipped), (5, 2, 1, 1));
    assert_eq!(damage(&telemetry), [(ParseError, 1, 3), (BlankLine, 1, 4)]);
    let (_, other) = only(&line_with(json!({ "type": "tool_event" })));
    assert_eq!(damage(&other), []);
    let (_, without_data) = only(&line_with(json!({ "type": "session_summary" })));
    assert_eq!(without_data.files[0].counts.summaries, 0);
    let (_, with_data) = only(&line_with(json!({ "type": "Session_summary", "data": {} })));
    assert_eq!(with_data.files[0].counts.summaries, 0);
}

#[test]
fn summaries_are_taken_with_what_they_have() {
    let text = [
        r#"{"data":{"total_events":3,"savings_pct":null,"enrichment":{"x":1},"total_events":4},"type":"session_\u0073ummary"}"#,
        "\n",
        r#"{"type":"session_summary","data":{}}"#,
        "\n",
        r#"{"type":"session_summary","data":7}"#,
        "\n",
        r#"{"type":"session_summary","data":{"total_events":"many"}}"#,
        "\n",
    ];
    let telemetry = Store::of(text.concat() + &summary_line()).read();
    assert_eq!(damage(&telemetry), [(MistypedField, 2, 3)]);
    let counts = &telemetry.files[0].counts;
    assert_eq!((counts.summaries, counts.skipped), (3, 2));
}

/// Reads a file whose second line is the odd one; gives the damage, and whether something came of that line.
#[track_caller]
fn odd_line(text: impl AsRef<[u8]>, damage_wanted: &[(Reason, u64, u64)], kept: u64) {
    let (before, after) = (line(&event("before", 1)), line(&event("after", 2)));
    let text = text.as_ref();
    let telemetry = Store::of([before.as_bytes(), text, after.as_bytes()].concat()).read();
    let shown = String::from_utf8_lossy(text);
    assert_eq!(damage(&telemetry), damage_wanted, "{shown}");
    let counts = &telemetry.files[0].counts;
    assert_eq!(counts.events, 2 + kept, "{shown}");
}

#[test]
fn every_kind_of_damage_is_counted_at_its_line() {
    let whole = line(&event("s", 5));
    let whole = whole.trim();
    for blank in ["\n", " \t \n"] {
        odd_line(blank, &[(BlankLine, 1, 2)], 0);
    }
    for broken in ["nonsense\n", "{\"session_hash\":\n", &format!("{}\n", &whole[..90]), "{]\n", "nul\n"] {
        odd_line(broken, &[(ParseError, 1, 2)], 0);
    }
    odd_line(whole.replace("\"response_chars\":500", "\"response_chars\":NaN") + "\n", &[(ParseError, 1, 2)], 0);
    odd_line(whole.replace("\"Bash\"", "\"B\\x\"") + "\n", &[(ParseError, 1, 2)], 0);
    odd_line(format!("[{whole}]\n"), &[(Array, 1, 2)], 0);
    odd_line("17\n", &[(Scalar, 1, 2)], 0);
    odd_line("null\n", &[(Scalar, 1, 2)], 0);
    odd_line(format!("{whole}{whole}\n"), &[(Glued, 1, 2)], 2);
    odd_line(format!("\u{feff}{whole}\n"), &[(Bom, 1, 2)], 1);
    odd_line(format!("{whole}\r\n"), &[(Crlf, 1, 2)], 1);
    odd_line(format!("\0\0{whole}\n"), &[(Nul, 1, 2)], 1);
    odd_line(format!("{whole}\0\n"), &[(Nul, 1, 2)], 1);
    odd_line("\0\0\n", &[(Nul, 1, 2)], 0);
    let (head, tail) = whole.split_once("Bash\"").unwrap();
    odd_line([head.as_bytes(), b"B\xFF\"", tail.as_bytes(), b"\n"].concat(), &[(InvalidUtf8, 1, 2)], 1);
    odd_line(whole.replace("\"Bash\"", "\"\\ud800\"") + "\n", &[(LoneSurrogate, 1, 2)], 1);
    let deep = |depth| format!("{{\"deep\":{}{},{}\n", "[".repeat(depth), "]".repeat(depth), &whole[1..]);
    odd_line(deep(1000), &[], 1);
    odd_line(deep(1100), &[(TooDeep, 1, 2)], 0);
}

#[test]
fn a_record_behind_a_torn_one_is_recovered() {
    let whole = line(&event("s", 5));
    let whole = whole.trim();
    for end in [1, 10, 60, 200, whole.len() - 1] {
        odd_line(format!("{}{whole}\n", &whole[..end]), &[(TornRecord, 1, 2)], 1);
    }
    odd_line(format!("{}{whole}{whole}\n", &whole[..60]), &[(Glued, 1, 2), (TornRecord, 1, 2)], 2);
    let behind = Store::of(format!("{}{}", &whole[..60], summary_line())).read();
    assert_eq!((behind.files[0].counts.summaries, damage(&behind)), (1, vec![(TornRecord, 1, 1)]));
    odd_line("{\"session_hash\":\"s\",\"extra\":{\"ts_ms\":1},\"ts\n", &[(ParseError, 1, 2)], 0);
    let both = [(TornRecord, 1, 2), (ParseError, 1, 2)];
    odd_line(format!("{}{whole}{}\n", &whole[..60], &whole[..60]), &both, 1);
    odd_line(format!("{whole}, {whole}\n"), &[(Glued, 1, 2), (TornRecord, 1, 2)], 2);
}

#[test]
fn a_torn_last_line_is_told_from_a_whole_one_without_line_feed() {
    let whole = line(&event("s", 5));
    let telemetry = Store::of(format!("{whole}{}", line(&event("s", 6)).trim())).read();
    assert_eq!((telemetry.log.events.len(), damage(&telemetry)), (2, vec![]));
    for end in 1..whole.len() - 1 {
        let telemetry = Store::of(format!("{whole}{}", &whole[..end])).read();
        assert_eq!((telemetry.log.events.len(), damage(&telemetry)), (1, vec![(TornTail, 1, 2)]), "{end}");
    }
}

#[test]
fn an_event_needs_its_fields() {
    let needed = [
        "session_hash",
        "tool_call_id_hash",
        "tool_name_anon",
        "endpoint_class",
        "response_chars",
        "shape",
        "is_dedup_hit",
        "tokens_baseline",
        "tokens_final",
        "context_partition",
        "is_sidechain",
        "ts_ms",
    ];
    for field in needed {
        odd_line(line_with(json!({ field: null })), &[(MissingField, 1, 2)], 0);
        odd_line(line_with(json!({ field: {} })), &[(MistypedField, 1, 2)], 0);
        let whole = line_with(json!({}));
        odd_line(whole.replace('}', &format!(",\"{field}\":null}}")), &[(MissingField, 1, 2)], 0);
        // Two defects are one event lost.
        odd_line(line_with(json!({ field: null, "n_cols": -1, "layer_used": 4 })), &[(MissingField, 1, 2)], 0);
    }
    let optional = [
        "inner_formats",
        "content_sha_prefix_hex",
        "file_path_hash",
        "layer_used",
        "template_id",
        "sample_rate_applied",
        "l2_format",
        "depth_max",
        "n_cols",
        "n_rows",
        "key_stability",
        "agent_chain",
        "n_items",
        "step",
        "mixed",
        "handle_tokens",
        "encodings",
        "enricher_prefetched",
        "enricher_predicted_cost_tokens",
        "enricher_decline_reason",
        "cited_in_next_n_turns",
    ];
    let (bare, _) = only(&line_with(optional.iter().map(|field| (*field, Value::Null)).collect()));
    for field in optional {
        odd_line(line_with(json!({ field: null })), &[], 1);
        odd_line(line_with(json!({ field: {} })), &[(MistypedField, 1, 2)], 1);
        let null = line_with(json!({})).replace('}', &format!(",\"{field}\":null}}"));
        odd_line(null, &[], 1);
        let mut all: BTreeMap<&str, Value> = optional.iter().map(|field| (*field, Value::Null)).collect();
        all.insert(field, json!({}));
        let (mistyped, _) = only(&line_with(json!(all)));
        assert_eq!(format!("{mistyped:?}"), format!("{bare:?}"), "{field} counts as absent");
    }
    assert_eq!((bare.layer, bare.weight, bare.body, bare.inner_formats), (LayerId::L3, 1.0, Id::NONE, 0));
}

#[test]
fn numbers_that_cannot_be_are_no_events() {
    let counts = [
        ("response_chars", u32::MAX),
        ("tokens_baseline", u32::MAX),
        ("tokens_final", u32::MAX),
        ("context_partition", u32::MAX),
        ("depth_max", u16::MAX.into()),
        ("n_cols", u32::MAX),
        ("n_rows", u32::MAX),
        ("n_items", u32::MAX),
        ("step", u32::MAX - 1),
        ("handle_tokens", u8::MAX.into()),
        ("enricher_predicted_cost_tokens", u32::MAX),
    ];
    let with = |field: &str, number: &str| {
        line_with(json!({ field: 0 })).replace(&format!("\"{field}\":0"), &format!("\"{field}\":{number}"))
    };
    for (field, most) in counts {
        odd_line(with(field, &most.to_string()), &[], 1);
        odd_line(with(field, "-0"), &[], 1);
        let over = u64::from(most) + 1;
        for number in ["-1", &over.to_string(), "18446744073709551616", "-9999999999999999999"] {
            odd_line(with(field, number), &[(OutOfRange, 1, 2)], 0);
        }
        let needed = matches!(field, "response_chars" | "tokens_baseline" | "tokens_final" | "context_partition");
        for number in ["1.5", "1e3", "1E3"] {
            odd_line(with(field, number), &[(MistypedField, 1, 2)], u64::from(!needed));
        }
    }
    for rate in ["0", "-0.5", "1.0001", "1e999", "1e-400", "1e-300", "0.0000009"] {
        odd_line(with("sample_rate_applied", rate), &[(OutOfRange, 1, 2)], 0);
    }
    for time in ["-1", "7258118400000", "1767225600000000", "-9223372036854775808", "9223372036854775807"] {
        odd_line(with("ts_ms", time), &[(OutOfRange, 1, 2)], 0);
    }
    odd_line(with("ts_ms", "7258118399999"), &[], 1);
    for share in ["-0.1", "1.1"] {
        odd_line(with("key_stability", share), &[(OutOfRange, 1, 2)], 0);
    }
    odd_line(with("ts_ms", "9223372036854775808"), &[(OutOfRange, 1, 2)], 0);
    odd_line(with("ts_ms", "-62135596800000"), &[(OutOfRange, 1, 2)], 0);
}

#[test]
fn words_that_are_not_known_count_as_none() {
    let odd = [
        ("shape", json!("spiral")),
        ("layer_used", json!("L9")),
        ("enricher_decline_reason", json!("tired")),
        ("inner_formats", json!(["url", "runes", "yaml"])),
        ("template_id", json!("runes")),
        ("l2_format", json!("runes")),
        ("encodings", json!([["csv", 0, 7], ["runes", 0, 8], ["kv", 1, 9]])),
    ];
    for (field, value) in &odd {
        odd_line(line_with(json!({ *field: value })), &[(UnknownValue, 1, 2)], 1);
    }
    let all: serde_json::Map<String, Value> = odd.into_iter().map(|(field, value)| (field.to_owned(), value)).collect();
    let (event, telemetry) = only(&line_with(all.into()));
    assert_eq!(damage(&telemetry), [(UnknownValue, 1, 1)], "an event counts once");
    assert_eq!((event.shape, event.layer, event.format), (BodyShape::Unknown as u8, LayerId::L3, NO_FORMAT));
    assert_eq!(
        (event.plan.declined, event.inner_formats),
        (Some(Decline::Other), InnerFormat::Url.bit() | InnerFormat::Yaml.bit())
    );
    let cost = |id, depth, tokens| EncodedTokens { format: format(id).unwrap(), depth, tokens };
    let kept = [cost("csv", 0, 7), cost("kv", 1, 9)];
    assert_eq!(telemetry.log.encodings_of(&event), kept);
    // Declined for a reason of its own: nobody asked for it, and it is no response.
    let declined = line_with(json!({ "enricher_decline_reason": "tired", "response_chars": 0 }));
    let mut log = Store::of(declined).read().log;
    log.set_aside();
    assert_eq!((log.events.len(), log.planned.len()), (0, 1));
    let mut sum = Effectiveness::default();
    log.planned.iter().for_each(|event| sum.add(event, 4));
    assert_eq!(sum.total_declines, 1);
    let (event, _) = only(&line_with(json!({ "layer_used": "L2", "l2_format": "runes", "template_id": "csv" })));
    assert_eq!((event.layer, event.format), (LayerId::L2, NO_FORMAT));
}

#[test]
fn lists_of_encodings_are_whole_or_none() {
    for list in [json!([1]), json!([["csv"]]), json!([["csv", 0]]), json!([["csv", 0, 1, 2]]), json!([[0, 0, 1]])] {
        odd_line(line_with(json!({ "encodings": list })), &[(MistypedField, 1, 2)], 1);
    }
    for list in [json!([["csv", -1, 1]]), json!([["csv", 256, 1]]), json!([["csv", 0, -1]])] {
        odd_line(line_with(json!({ "encodings": list })), &[(OutOfRange, 1, 2)], 0);
    }
    odd_line(line_with(json!({ "encodings": vec![json!(["csv", 0, 1]); 255] })), &[], 1);
    odd_line(line_with(json!({ "encodings": vec![json!(["csv", 0, 1]); 256] })), &[(OutOfRange, 1, 2)], 0);
    odd_line(line_with(json!({ "inner_formats": ["url", 7] })), &[(MistypedField, 1, 2)], 1);
    // What a refused list left behind must not show at the next event.
    let text = line_with(json!({ "encodings": [["kv", 3, 3], 5] }))
        + &line_with(json!({ "encodings": [["csv", 1, 2]], "ts_ms": 6 }));
    let telemetry = Store::of(text).read();
    let costs: Vec<_> = telemetry.log.events.iter().map(|event| telemetry.log.encodings_of(event).to_vec()).collect();
    assert_eq!(costs, [vec![], vec![EncodedTokens { format: format("csv").unwrap(), depth: 1, tokens: 2 }]]);
}

#[test]
fn of_a_repeated_field_the_last_one_stands() {
    let whole = line(&event("s", 5));
    let again = |more: &str| whole.replace('}', &format!(",{more}}}"));
    let (event, _) = only(&again(r#""ts_ms":6,"n_cols":-4,"shape":"empty","n_cols":3,"ts_ms":7"#));
    assert_eq!((event.ts, event.columns, event.shape), (7, 3, BodyShape::Empty as u8));
    let (event, telemetry) = only(&again(r#""step":[],"step":2,"layer_used":"x","layer_used":"L1""#));
    assert_eq!((event.step, event.layer, damage(&telemetry)), (2, LayerId::L1, vec![]));
    odd_line(again(r#""tokens_final":-1"#), &[(OutOfRange, 1, 2)], 0);
}

#[test]
fn unknown_fields_hold_whatever_they_like() {
    let extra = r#"{"a":{"session_hash":"t"},"b":[[],{},"}{\"",1e9],"c":"\ud83d\ude00","d":null, "#;
    let whole = line(&event("s", 5));
    let (with, telemetry) = only(&format!("{extra}{}", &whole[1..]));
    let (without, _) = only(&whole);
    assert_eq!((format!("{with:?}"), damage(&telemetry)), (format!("{without:?}"), vec![]));
    let spaced = whole.replace(':', " :\t").replace(',', " , ");
    let escaped = spaced.replace("ts_ms", "ts\\u005fms").replace("Bash", "\\u0042ash");
    let (event, telemetry) = only(&escaped);
    assert_eq!(format!("{event:?}"), format!("{without:?}"));
    assert_eq!(telemetry.log.names.find("Bash"), Some(event.tool));
}

#[test]
fn names_that_were_recorded_in_clear_are_hashed_as_the_schema_has_it() {
    let (event, _) = only(&line_with(json!({ "tool_call_id_hash": "tc_42", "file_path_hash": "/src/main.rs" })));
    assert_eq!((event.call, event.path), (0x7c76_906f, 0x6ee2_1a7d));
    let (event, _) = only(&line_with(json!({ "tool_call_id_hash": "474AED5C", "content_sha_prefix_hex": "" })));
    assert_eq!((event.call, event.body), (0x474a_ed5c, Id::NONE));
    let body = |hash: &str| only(&line_with(json!({ "content_sha_prefix_hex": hash }))).0.body;
    assert_eq!(body("c38c2bf3"), body("c38c2bf3"));
    assert_ne!(body("c38c2bf3"), body("c38c2bf4"));
}

#[test]
fn an_event_stands_for_those_that_were_not_sampled() {
    // Every n-th call is recorded: of 0.75 all of them, of 0.4 one in three, also where its single precision was widened.
    let odd = [("0.75", 1.0), ("0.4", 3.0), ("0.4000000059604645", 3.0), ("0.67", 1.0), ("0.66", 2.0)];
    for (rate, weight) in [("1.0", 1.0), ("1", 1.0), ("0.5", 2.0), ("0.25", 4.0), ("2e-1", 5.0)].into_iter().chain(odd)
    {
        let text = line(&event("s", 5)).replace("_applied\":1.0", &format!("_applied\":{rate}"));
        assert_eq!(only(&text).0.weight, weight);
    }
}

#[test]
fn chains_are_the_main_thread_the_unnamed_subagents_and_each_named_one() {
    let chain = |session: &str, sidechain, agent: Option<&str>| PipelineEvent {
        is_sidechain: sidechain,
        agent_chain: agent.map(str::to_owned),
        ..event(session, 1)
    };
    let mut events = [
        chain("t", true, Some("b")),
        chain("s", true, Some("b")),
        chain("s", true, Some("a")),
        chain("s", true, None),
        chain("s", false, Some("a")),
        chain("s", false, None),
        chain("s", true, Some("")),
    ];
    (0..).zip(&mut events).for_each(|(bytes, event)| event.response_chars = bytes);
    let log = Store::of(lines(&events)).read().log;
    let chains: Vec<(u32, u32)> = log.events.iter().map(|event| (event.session, event.chain)).collect();
    assert_eq!(chains, [(0, 0), (0, 1), (0, 1), (0, 2), (0, 2), (0, 3), (1, 4)]);
    assert_eq!(*log.sessions, ["s", "t"]);
}

fn runs(events: &[PipelineEvent]) -> Vec<(String, i64)> {
    let log = Store::of(lines(events)).read().log;
    log.events.iter().map(|event| (log.sessions[event.session as usize].clone(), event.ts)).collect()
}

fn named(runs: &[(&str, i64)]) -> Vec<(String, i64)> {
    runs.iter().map(|&(name, ts)| (name.to_owned(), ts)).collect()
}

#[test]
fn a_recycled_process_id_is_split_where_a_partition_falls() {
    let events = [(1, 0), (2, 1), (3, 2), (4, 0), (5, 0), (6, 3), (7, 2)];
    let events = events.map(|(ts, partition)| in_partition("mcp_12", ts, partition));
    let expected = [
        ("mcp_12", 1),
        ("mcp_12", 2),
        ("mcp_12", 3),
        ("mcp_12#2", 4),
        ("mcp_12#2", 5),
        ("mcp_12#2", 6),
        ("mcp_12#3", 7),
    ];
    assert_eq!(runs(&events), named(&expected));
}

/// E9: sessions that share a process id are told apart.
#[test]
fn a_recycled_process_id_is_split_behind_a_long_silence() {
    let hour = HOUR_MS as i64;
    let events = [0, hour, 2 * hour + 1, 2 * hour + 2].map(|ts| event("mcp_3", ts));
    assert_eq!(
        runs(&events),
        named(&[("mcp_3", 0), ("mcp_3", hour), ("mcp_3#2", 2 * hour + 1), ("mcp_3#2", 2 * hour + 2)])
    );
    let far = [0, LAST_MS].map(|ts| event("mcp_3", ts));
    assert_eq!(runs(&far), named(&[("mcp_3", 0), ("mcp_3#2", LAST_MS)]));
}

#[test]
fn partitions_are_those_of_a_chain() {
    let side = |ts, partition| PipelineEvent { is_sidechain: true, ..in_partition("mcp_3", ts, partition) };
    let main = |ts, partition| in_partition("mcp_3", ts, partition);
    let together = runs(&[main(1, 4), side(2, 0), main(3, 4), side(4, 1)]);
    assert!(together.iter().all(|(name, _)| name == "mcp_3"));
    // Neither does a session know of the partitions of another one, nor a second run of those of the first.
    let next = |event: PipelineEvent| PipelineEvent { session_hash: "mcp_4".to_owned(), ..event };
    let events = [side(1, 5), next(main(1, 0)), next(side(2, 0))];
    assert_eq!(runs(&events), named(&[("mcp_3", 1), ("mcp_4", 1), ("mcp_4", 2)]));
    let events = [main(1, 4), side(2, 5), main(3, 0), side(4, 1)];
    assert_eq!(runs(&events), named(&[("mcp_3", 1), ("mcp_3", 2), ("mcp_3#2", 3), ("mcp_3#2", 4)]));
}

#[test]
fn only_process_ids_are_split_and_their_neighbours_keep_their_names() {
    let sessions = ["mcp_", "mcp_1", "mcp_1a", "mcp_2", "0123456789abcdef"];
    let events: Vec<PipelineEvent> =
        sessions.iter().flat_map(|session| [in_partition(session, 1, 1), in_partition(session, 2, 0)]).collect();
    let log = Store::of(lines(&events)).read().log;
    assert_eq!(*log.sessions, ["0123456789abcdef", "mcp_", "mcp_1", "mcp_1#2", "mcp_1a", "mcp_2", "mcp_2#2"]);
    let numbers: Vec<u32> = log.events.iter().map(|event| event.session).collect();
    assert_eq!(numbers, [0, 0, 1, 1, 2, 3, 4, 4, 5, 6]);
}

#[test]
fn a_window_is_half_open_and_what_lies_outside_leaves_no_trace() {
    let events = [("early", 9), ("s", 10), ("s", 19), ("late", 20)];
    let telemetry = Store::of(lines(&events.map(|(name, ts)| event(name, ts))) + &summary_line()).read_within(10..20);
    let times: Vec<Millis> = telemetry.log.events.iter().map(|event| event.ts).collect();
    assert_eq!((times, &*telemetry.log.sessions), (vec![10, 19], &["s".to_owned()][..]));
    let counts = &telemetry.files[0].counts;
    assert_eq!((counts.lines, counts.events, counts.outside_window, counts.skipped), (5, 2, 2, 0));
    assert_eq!(counts.summaries, 1);
}

#[test]
fn compactions_before_the_window_are_none_of_it() {
    let in_partition = |ts_ms, context_partition| PipelineEvent { context_partition, ..event("s", ts_ms) };
    let store = Store::of(lines(&[in_partition(5, 2), in_partition(10, 6), in_partition(15, 6), in_partition(20, 7)]));
    let compactions = |window| store.read_within(window).log.compactions();
    assert_eq!((compactions(10..20), compactions(10..30)), (vec![0], vec![1]));
    assert_eq!(store.read().log.compactions(), [7]);
}

#[test]
fn files_last_written_before_the_window_are_not_opened() {
    let store = Store::new();
    store.put_at("old.jsonl", "not even JSON", 999).put_at("new.jsonl", line(&event("s", 1_000)), 1_000);
    let telemetry = store.read_within(1_000..2_000);
    assert_eq!((telemetry.files_outside_window, telemetry.files.len(), damage(&telemetry)), (1, 1, vec![]));
    assert_eq!((telemetry.files[0].modified_ms, telemetry.log.events.len()), (1_000, 1));
    assert_eq!(store.read().files.len(), 2);
}

#[test]
fn a_copy_of_a_file_or_of_its_beginning_counts_once() {
    let (first, second) = (line(&event("s", 1)), line(&event("s", 2)));
    let all = format!("{first}{second}");
    let store = Store::new();
    store.put("a/x.jsonl", &all).put("b/x.jsonl", &all).put("c/x.jsonl", &first).put("d/x.jsonl", &all[..70]);
    store.put("a/y.jsonl", &first).put("e/x.jsonl", &second).put("f/x.jsonl", "");
    let telemetry = store.read();
    assert_eq!((telemetry.copies, telemetry.copied_events, telemetry.log.events.len()), (4, 2, 2));
    let read: Vec<PathBuf> = telemetry.files.iter().map(|file| file.path.clone()).collect();
    assert_eq!(read, [store.path("a/x.jsonl"), store.path("a/y.jsonl"), store.path("e/x.jsonl")]);
}

#[test]
fn long_copies_are_compared_to_their_end() {
    let long: String = (0..600).map(|ts| line(&event("s", ts))).collect();
    let changed = long.replace("\"ts_ms\":590", "\"ts_ms\":591");
    assert_ne!(long, changed);
    let store = Store::new();
    store.put("a/x.jsonl", &long).put("b/x.jsonl", &changed).put("c/x.jsonl", &long[..200_000]).put("d/x.jsonl", &long);
    let telemetry = store.read();
    assert_eq!((telemetry.copies, telemetry.copied_events, telemetry.log.events.len()), (2, 600, 600));
}

/// The same events packed, under another name, with other line ends, cut off in front, or twice in one file; what differs in
/// anything, or has no id, is told apart.
#[test]
fn events_that_are_the_same_in_everything_count_once_wherever_they_stand() {
    let all: String = (0..20).map(|ts| line(&event("s", ts))).collect();
    let store = Store::new();
    store.put("x.jsonl", format!("{all}{all}")).put("other.jsonl", &all[all.len() / 2..]);
    store.put("crlf.jsonl", all.replace('\n', "\r\n"));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(all.as_bytes()).unwrap();
    store.put("x.jsonl.gz", packed.finish().unwrap());
    let telemetry = store.read();
    assert_eq!(telemetry.log.events.len(), 20);
    assert!((69..=71).contains(&telemetry.copied_events), "{}", telemetry.copied_events);

    let annotated = PipelineEvent { cited_in_next_n_turns: Some(false), ..event("s", 3) };
    let telemetry = Store::of(lines(&[annotated, event("s", 3)])).read();
    assert_eq!((telemetry.copied_events, telemetry.log.events[0].plan.cited), (1, Some(false)));

    // How a race ended is known later than the response, as an annotation is: what is known of either stays.
    let raced = |race: Option<&str>, cited_in_next_n_turns| PipelineEvent {
        enricher_race: race.map(str::to_owned),
        cited_in_next_n_turns,
        ..event("s", 3)
    };
    let copies = [raced(Some("late"), None), raced(None, Some(true)), raced(Some("won"), None), raced(None, None)];
    for turned in 0..copies.len() {
        let mut copies = copies.clone();
        copies.rotate_left(turned);
        let telemetry = Store::of(lines(&copies)).read();
        let plan = telemetry.log.events[0].plan;
        assert_eq!((telemetry.copied_events, plan.cited, plan.race), (3, Some(true), Some(RaceWord::Late)));
    }

    let other = PipelineEvent { tokens_final: 62, ..event("s", 3) };
    let nameless = PipelineEvent { tool_call_id_hash: String::new(), ..event("s", 4) };
    let telemetry = Store::of(lines(&[event("s", 3), other, nameless.clone(), nameless])).read();
    assert_eq!((telemetry.copied_events, telemetry.log.events.len()), (0, 4));
}

#[test]
fn an_annotated_file_stands_for_its_original() {
    let plain = line(&event("s", 1));
    let annotated = line(&PipelineEvent { cited_in_next_n_turns: Some(true), ..event("s", 1) });
    let store = Store::new();
    store.put_at("a/x.jsonl", &plain, 1_000).put_at("a/x.annotated.jsonl", &annotated, 2_000);
    store.put("a/y.annotated.jsonl", line(&event("alone", 1)));
    let telemetry = store.read();
    assert_eq!((telemetry.log.events.len(), telemetry.copies), (2, 0));
    assert!(telemetry.log.events.iter().any(|event| event.plan.cited == Some(true)));
    let note =
        format!("originals read in their annotated form: 1 (first: {})", store.path("a/x.annotated.jsonl").display());
    assert_eq!(telemetry.notes, std::slice::from_ref(&note));

    // A copy elsewhere must not bring the original back, wherever its path sorts.
    for elsewhere in ["0/x.jsonl", "z/x.jsonl"] {
        store.put(elsewhere, &plain);
        let telemetry = store.read();
        assert_eq!((telemetry.log.events.len(), telemetry.copies), (2, 1), "{elsewhere}");
        assert!(telemetry.log.events.iter().any(|event| event.plan.cited == Some(true)));
        fs::remove_file(store.path(elsewhere)).unwrap();
    }
    // Old events were dropped from both, the original last.
    store.put_at("a/x.jsonl", &plain, 3_000);
    assert_eq!(store.read().notes, [note]);
    // What was recorded since is in the original alone.
    store.put_at("a/x.jsonl", plain + &line(&event("s", 2)), 4_000);
    let telemetry = store.read();
    assert_eq!((telemetry.log.events.len(), telemetry.copies), (3, 0));
    let again = format!("annotate them again: 1 (first: {})", store.path("a/x.jsonl").display());
    assert!(telemetry.notes[0].ends_with(&again), "{:?}", telemetry.notes);
}

#[test]
fn copies_of_annotated_pairs_count_once_whichever_is_longer() {
    let (plain, more) = (line(&event("s", 1)), line(&event("s", 2)));
    let annotated = line(&PipelineEvent { cited_in_next_n_turns: Some(false), ..event("s", 1) });
    let store = Store::new();
    store.put("a/x.jsonl", &plain).put("a/x.annotated.jsonl", &annotated);
    store.put("b/x.jsonl", &plain).put("b/x.annotated.jsonl", format!("{annotated}\n"));
    let telemetry = store.read();
    assert_eq!((telemetry.log.events.len(), telemetry.copies, telemetry.files.len()), (1, 1, 1));
    // The original grew elsewhere: the longer one is read, and nothing twice.
    let store = Store::new();
    store.put("a/x.jsonl", &plain).put("a/x.annotated.jsonl", &annotated).put("b/x.jsonl", plain + &more);
    let telemetry = store.read();
    assert_eq!((telemetry.log.events.len(), telemetry.copies, telemetry.files.len()), (2, 1, 1));
}

#[test]
fn packed_files_are_read_and_what_breaks_off_is_counted() {
    let events: Vec<PipelineEvent> = (0..500).map(|ts| event(&format!("{:x}", ts * 7919), ts)).collect();
    let text = lines(&events);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    let gzip = packer.finish().unwrap();
    let zstd = zstd::stream::encode_all(text.as_bytes(), 1).unwrap();
    let store = Store::new();
    store.put("a.jsonl.gz", &gzip).put("b.jsonl.zst", &zstd).put("c.jsonl.bz2", "ignored").put("d.json", "ignored");
    let telemetry = store.read_cut(2, 100);
    assert_eq!((telemetry.log.events.len(), telemetry.copied_events, damage(&telemetry)), (500, 500, vec![]));
    for (name, bytes) in [("a.jsonl.gz", gzip), ("b.jsonl.zst", zstd)] {
        let store = Store::new();
        store.put(name, &bytes[..bytes.len() - 9]);
        let telemetry = store.read();
        assert_eq!(damage(&telemetry)[0].0, BrokenCompression, "{name}");
        assert_eq!((damage(&telemetry)[0].1, damage(&telemetry)[0].2), (1, 0));
        store.put(name, "this is not packed at all");
        assert_eq!(damage(&store.read()), [(BrokenCompression, 1, 0)], "{name}");
    }
}

#[test]
fn a_line_over_the_limit_is_passed_over() {
    let long = std::io::repeat(b' ').take(LINE_BYTES_MAX as u64 + 1);
    let whole = line(&event("s", 5));
    let text = whole.as_bytes().chain(long).chain(b"\n".as_slice()).chain(whole.as_bytes());
    let store = Store::new();
    store.put("a.jsonl", "");
    std::io::copy(&mut { text }, &mut File::create(store.path("a.jsonl")).unwrap()).unwrap();
    let telemetry = store.read();
    assert_eq!((telemetry.files[0].counts.events, damage(&telemetry)), (2, vec![(Oversize, 1, 2)]));
    assert_eq!((telemetry.files[0].counts.lines, telemetry.files[0].counts.skipped), (3, 1));
}

#[test]
fn a_file_that_goes_away_is_unreadable_once() {
    let store = Store::of(line(&event("s", 5)));
    store.put("b.jsonl", line(&event("s", 6)));
    let listing = store.list(ALL.start);
    fs::remove_file(store.path("a.jsonl")).unwrap();
    let telemetry = listing.read_cut(&request(ALL), &pool(2), &|_| (), 100);
    assert_eq!((damage(&telemetry), telemetry.log.events.len()), (vec![(Unreadable, 1, 0)], 1));
}

#[test]
fn every_cut_gives_the_same() {
    let text =
        [&line(&event("s", 1)), "\n{broken\n", &line(&event("t", 2)), &summary_line(), &line(&event("s", 3))].concat();
    let store = Store::of(&text);
    let whole = told(&store.read());
    for piece_bytes in 1..text.len() as u64 {
        assert_eq!(told(&store.read_cut(1, piece_bytes)), whole, "pieces of {piece_bytes} bytes");
    }
}

#[test]
fn what_is_appended_while_reading_waits_for_the_next_run() {
    let (first, second) = (line(&event("s", 1)), line(&event("s", 2)));
    let store = Store::of(format!("{first}{}", &second[..50]));
    let listing = store.list(ALL.start);
    store.put("a.jsonl", first + &second);
    let telemetry = listing.read(&request(ALL), &pool(1), &|_| ());
    assert_eq!((telemetry.log.events.len(), damage(&telemetry)), (1, vec![(TornTail, 1, 2)]));
    assert_eq!(store.read().log.events.len(), 2);
}

#[test]
fn progress_is_told_for_every_byte() {
    let (long, short) = (line(&event("s", 5)).repeat(40), line(&event("s", 6)));
    let bytes = (long.len() + short.len()) as u64;
    let store = Store::of(long);
    store.put("b.jsonl", short);
    let told = std::sync::atomic::AtomicU64::new(0);
    let advance = |bytes| {
        told.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
    };
    store.list(ALL.start).read_cut(&request(ALL), &pool(2), &advance, 300);
    assert!(bytes > 40 * 300);
    assert_eq!(told.into_inner(), bytes);
}

/// B8: one list of places for every command.
#[test]
fn the_default_places_are_all_that_live_pipelines_write_to() {
    let store = Store::new();
    let around = Surroundings {
        home: Some(store.path("home")),
        telemetry_dir: Some(store.path("variable")),
        configured: Some(store.path("configured")),
    };
    let listed = places(&[], &around);
    let place = |path: &str, origin| TelemetryPlace { path: store.path(path), origin, found: false };
    let expected = [
        place("home/.config/devboy/telemetry/events", "default"),
        place("home/.config/devboy/telemetry/sessions.jsonl", "default"),
        place("home/.devboy/telemetry", "default"),
        place("variable", "DEVBOY_TELEMETRY_DIR"),
        place("configured", "telemetry.path"),
    ];
    assert_eq!(listed, expected);
    store.put("home/.config/devboy/telemetry/events/deep/er/a.jsonl", line(&event("s", 1)));
    store.put("home/.config/devboy/telemetry/sessions.jsonl", summary_line());
    store.put("home/.config/devboy/telemetry/other.jsonl", line(&event("s", 2)));
    store.put("configured/b.jsonl", line(&event("s", 3)));
    let telemetry = TelemetryListing::new(listed, ALL.start).read(&request(ALL), &pool(1), &|_| ());
    let summaries: u64 = telemetry.files.iter().map(|file| file.counts.summaries).sum();
    assert_eq!((telemetry.log.events.len(), summaries, telemetry.files.len()), (2, 1, 3));
    let found: Vec<bool> = telemetry.places.iter().map(|place| place.found).collect();
    assert_eq!(found, [true, true, false, false, true]);
    let given = places(&[store.path("mine")], &around);
    assert_eq!(given, [place("mine", "--input-dir")]);
    assert_eq!(places(&[], &Surroundings::default()), []);
}

#[test]
fn a_file_is_read_once_however_it_is_reached() {
    let store = Store::of(line(&event("s", 1)));
    store.put("sub/b.jsonl", line(&event("s", 2))).put("named.log", line(&event("s", 3)));
    let given = ["", "sub", "sub/b.jsonl", "a.jsonl", "named.log", "named.log", "gone"].map(|name| store.path(name));
    let telemetry = TelemetryListing::new(places(&given, &Surroundings::default()), ALL.start).read(
        &request(ALL),
        &pool(1),
        &|_| (),
    );
    assert_eq!((telemetry.log.events.len(), telemetry.files.len(), telemetry.copies), (3, 3, 0));
    let missing: Vec<&Path> =
        telemetry.places.iter().filter(|place| !place.found).map(|place| place.path.as_path()).collect();
    assert_eq!(missing, [store.path("gone")]);
    assert!(telemetry.files.is_sorted_by_key(|file| &file.path));
}

#[cfg(unix)]
#[test]
fn links_and_pipes_do_not_trap_the_reader() {
    use std::os::unix::fs::symlink;
    let store = Store::of(line(&event("s", 1)));
    store.put("sub/b.jsonl", line(&event("s", 2)));
    symlink(store.0.path(), store.path("sub/loop")).unwrap();
    for name in ["again", "b", "c", "d", "e", "f", "g", "h"] {
        symlink(store.path("sub"), store.path(name)).unwrap();
    }
    symlink(store.path("a.jsonl"), store.path("z.jsonl")).unwrap();
    symlink(store.path("nowhere"), store.path("broken.jsonl")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(store.path("pipe.jsonl")).unwrap();
    let telemetry = store.read();
    drop(socket);
    assert_eq!((telemetry.log.events.len(), telemetry.files.len()), (2, 2));
    let shown: Vec<&Path> = telemetry.files.iter().map(|file| file.path.as_path()).collect();
    assert_eq!(shown, [store.path("a.jsonl"), store.path("sub/b.jsonl")], "always the same one of several names");
    let notes: Vec<bool> = ["broken.jsonl: ", "pipe.jsonl: not a file"]
        .iter()
        .map(|text| telemetry.notes.iter().any(|note| note.contains(text)))
        .collect();
    assert_eq!(notes, [true, true]);
}

#[test]
fn names_that_only_look_like_telemetry_are_told_of() {
    let store = Store::of(line(&event("s", 1)));
    for name in ["S.JSONL", "s.jsonl.1", "sub/t.jsonl.bak", ".t.jsonl.part", "notes.txt"] {
        store.put(name, line(&event("s", 2)));
    }
    let telemetry = store.read();
    assert_eq!((telemetry.log.events.len(), telemetry.files.len()), (1, 1));
    let told = telemetry.notes.iter().find(|note| note.starts_with("not read: 3 files")).expect("a note");
    assert!(told.contains(&format!("(first: {})", store.path("S.JSONL").display())), "{told}");
}

#[test]
fn additions_are_left_out_when_they_say_nothing() {
    let bare = serde_json::to_value(event("s", 1)).unwrap();
    let written: BTreeSet<&str> = bare.as_object().unwrap().keys().map(String::as_str).collect();
    let published = [
        "session_hash",
        "tool_call_id_hash",
        "tool_name_anon",
        "endpoint_class",
        "response_chars",
        "shape",
        "inner_formats",
        "content_sha_prefix_hex",
        "is_dedup_hit",
        "layer_used",
        "tokens_baseline",
        "tokens_final",
        "context_partition",
        "is_sidechain",
        "ts_ms",
        "sample_rate_applied",
    ];
    assert_eq!(written, BTreeSet::from(published));
    let costs = PipelineEvent { encodings: vec![("csv".to_owned(), 2, 77)], step: Some(0), ..event("s", 1) };
    assert!(line(&costs).ends_with(",\"step\":0,\"encodings\":[[\"csv\",2,77]]}\n"));
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn written_events_are_read_by_serde_too(event in any_event()) {
        // Its quick way with fractions is not exact.
        let event = PipelineEvent { key_stability: event.key_stability.map(|_| 0.5), sample_rate_applied: 0.25, ..event };
        let text = line(&event);
        prop_assert_eq!(serde_json::from_str::<PipelineEvent>(&text).unwrap(), event);
    }
}

#[test]
fn many_threads_give_one_log() {
    let store = Store::new();
    for file in 0..20 {
        let events: Vec<PipelineEvent> = (0..30)
            .map(|ts| PipelineEvent {
                tool_name_anon: format!("tool{}", (ts * 7 + file) % 13),
                ..event(&format!("s{}", file % 7), ts)
            })
            .collect();
        store.put(&format!("{file}.jsonl"), lines(&events));
    }
    let one = told(&store.read_cut(1, 1000));
    for threads in [2, 3, 8] {
        assert_eq!(told(&store.read_cut(threads, 1000)), one);
    }
}

#[test]
fn a_flagged_hint_is_one_of_l0_where_the_recorder_names_no_layer() {
    for (flag, layer, wanted) in [
        (true, Value::Null, LayerId::L0),
        (true, json!(""), LayerId::L0),
        (false, Value::Null, LayerId::L3),
        (true, json!("L2"), LayerId::L2),
        (false, json!("L0"), LayerId::L0),
    ] {
        let (event, _) = only(&line_with(json!({ "is_dedup_hit": flag, "layer_used": layer })));
        assert_eq!(event.layer, wanted, "{flag} {layer}");
    }
}

/// What is emitted under the keys of two caches differs in the names of contents and files alone.
#[test]
fn events_that_differ_in_keyed_names_alone_are_copies_of_one() {
    let of_key = |key: &str| {
        let name = |what: &str, digits: usize| {
            Id::pseudonym(format!("{key}{what}").as_bytes()).to_string()[..digits].to_owned()
        };
        let row = |(number, content): (usize, &str)| PipelineEvent {
            tool_call_id_hash: format!("{:08x}", number + 1),
            content_sha_prefix_hex: name(content, 32),
            file_path_hash: Some(name("path", 8)),
            ..event("s", number as i64)
        };
        ["one", "two", "one"].into_iter().enumerate().map(row).collect::<Vec<_>>()
    };
    let text = |events: &[PipelineEvent]| -> String {
        events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect()
    };
    let (first, second) = (of_key("a"), of_key("b"));
    let store = Store::new();
    store.put("first.jsonl", text(&first)).put("second.jsonl", text(&second));
    let telemetry = store.read();
    assert_eq!(telemetry.copied_events, 3);
    let [a, b, c] = telemetry.log.events[..] else { panic!("three responses") };
    assert!(a.body == c.body && a.body != b.body, "what repeats goes on repeating");
    assert!(a.path == b.path && b.path == c.path, "and one file stays one");
    // Another size, or a file where there was none, is another event.
    let mut other = second.clone();
    other[0].tokens_final += 1;
    other[1].file_path_hash = None;
    store.put("second.jsonl", text(&other));
    assert_eq!(store.read().copied_events, 1);
    // Without the id of a call they may be alike by chance.
    let unnamed = |events: &[PipelineEvent]| {
        text(
            &events
                .iter()
                .map(|event| PipelineEvent { tool_call_id_hash: String::new(), ..event.clone() })
                .collect::<Vec<_>>(),
        )
    };
    store.put("first.jsonl", unnamed(&first)).put("second.jsonl", unnamed(&second));
    assert_eq!(store.read().copied_events, 0);
}
