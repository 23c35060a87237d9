//! Fingerprints against a plain re-computation from the same events, and against themselves by another road.

use std::collections::{BTreeMap, BTreeSet};

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};

use super::harness::{Home, hidden};
use crate::base::stats::Clustered;
use crate::shell::arguments::Exit;

/// A small generator of numbers (Lehmer), so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0 * 48_271 % 2_147_483_647;
        self.0 % limit
    }
}

const SHAPES: [&str; 6] = ["prose", "markdown_table", "array_of_objects", "nested_object", "unknown", "numbered_list"];
const FORMATS: [&str; 5] = ["url", "log", "hash", "diff", "prose"];
const RATES: [f64; 4] = [1.0, 0.5, 0.25, 0.3];

/// Events of some sessions in the published schema, in the order of each session's clock.
fn events(seed: u64, count: u64) -> Vec<Value> {
    let mut dice = Dice(seed);
    let mut partition = BTreeMap::new();
    (0..count)
        .map(|number| {
            let session = dice.below(7);
            let partition = partition.entry(session).or_insert(0);
            *partition += u64::from(dice.below(20) == 0);
            let tool = ["Read", "Bash", "mcp__gitlab__get_issues", "Grep"][dice.below(4) as usize];
            let endpoint = if tool == "Bash" { ["git_log", "curl"][dice.below(2) as usize] } else { tool };
            let shape = SHAPES[dice.below(6) as usize];
            let baseline = 10 + dice.below(900);
            let layer = ["L0", "L1", "L2", "L3"][dice.below(4) as usize];
            let inner: Vec<&str> = FORMATS.into_iter().filter(|_| dice.below(3) == 0).collect();
            let mut event = json!({
                "session_hash": format!("s{session}"),
                "tool_call_id_hash": format!("{number:08x}"),
                "tool_name_anon": tool,
                "endpoint_class": endpoint,
                "response_chars": baseline * 4 + dice.below(4),
                "shape": shape,
                "inner_formats": inner,
                "content_sha_prefix_hex": format!("{:032x}", 1 + dice.below(60)),
                "is_dedup_hit": layer == "L0",
                "layer_used": layer,
                "tokens_baseline": baseline,
                "tokens_final": if layer == "L3" { baseline } else { baseline / 3 },
                "context_partition": *partition,
                "is_sidechain": false,
                "ts_ms": 1_700_000_000_000_u64 + 1000 * number,
                "sample_rate_applied": RATES[dice.below(4) as usize],
            });
            if shape == "markdown_table" {
                event["n_cols"] = json!(1 + dice.below(6));
                event["n_rows"] = json!(1 + dice.below(40));
            }
            if shape == "array_of_objects" {
                event["key_stability"] = json!(dice.below(5) as f64 / 4.0);
            }
            event
        })
        .collect()
}

fn lines<'e>(events: impl IntoIterator<Item = &'e Value>) -> String {
    events.into_iter().map(|event| format!("{event}\n")).collect()
}

/// What the fingerprints must say, worked out one event after the other.
#[derive(Default)]
struct Expected {
    calls: f64,
    bytes: f64,
    repeats: f64,
    shapes: BTreeMap<String, f64>,
    formats: BTreeMap<String, f64>,
    columns: (f64, f64),
    rows: f64,
    stability: (f64, f64),
    sessions: BTreeSet<String>,
    times: Vec<u64>,
    layers: BTreeMap<String, (f64, f64)>,
}

fn expected(events: &[Value]) -> BTreeMap<String, Expected> {
    let mut shown = BTreeSet::new();
    let mut out: BTreeMap<String, Expected> = BTreeMap::new();
    for event in events {
        let text = |key: &str| event[key].as_str().unwrap().to_owned();
        let number = |key: &str| event[key].as_f64().unwrap();
        let name = hidden(&text("endpoint_class"));
        let row = out.entry(name).or_default();
        let weight = (1.0 / number("sample_rate_applied")).round();
        row.calls += weight;
        row.bytes += weight * number("response_chars");
        let key = (text("session_hash"), event["context_partition"].as_u64(), text("content_sha_prefix_hex"));
        row.repeats += if shown.insert(key) { 0.0 } else { weight };
        *row.shapes.entry(text("shape")).or_default() += weight;
        for format in event["inner_formats"].as_array().unwrap() {
            *row.formats.entry(format.as_str().unwrap().to_owned()).or_default() += weight;
        }
        if text("shape") == "markdown_table" {
            row.columns.0 += weight * number("n_cols");
            row.columns.1 += weight;
            row.rows += weight * number("n_rows");
        }
        if text("shape") == "array_of_objects" {
            row.stability.0 += weight * number("key_stability");
            row.stability.1 += weight;
        }
        row.sessions.insert(text("session_hash"));
        row.times.push(event["ts_ms"].as_u64().unwrap());
        let layer = row.layers.entry(text("layer_used")).or_default();
        layer.0 += weight * number("tokens_baseline");
        layer.1 += weight * number("tokens_final");
    }
    out
}

fn near(found: &Value, wanted: f64, what: &str) {
    let found = found.as_f64().unwrap_or(f64::NAN);
    assert!((found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0), "{what}: {found} is not {wanted}");
}

fn assert_fingerprint(found: &Value, wanted: &Expected) {
    near(&found["call_count"], wanted.calls, "call_count");
    near(&found["avg_response_chars"], wanted.bytes / wanted.calls, "avg_response_chars");
    near(&found["dup_rate"], wanted.repeats / wanted.calls, "dup_rate");
    assert_eq!(found["shape_mix"].as_object().unwrap().len(), wanted.shapes.len());
    let mut entropy = 0.0;
    for (shape, weight) in &wanted.shapes {
        let share = weight / wanted.calls;
        near(&found["shape_mix"][shape], share, shape);
        entropy -= share * share.log2();
    }
    near(&found["format_entropy"], entropy, "format_entropy");
    let most = |counts: &BTreeMap<String, f64>| {
        let mut names: Vec<(f64, String)> = counts.iter().map(|(name, weight)| (-weight, name.clone())).collect();
        names.sort_by(|a, b| a.partial_cmp(b).unwrap());
        names.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    };
    let known: BTreeMap<String, f64> =
        wanted.shapes.clone().into_iter().filter(|(name, _)| name != "unknown").collect();
    assert_eq!(found["shape_dominant"], json!(most(&known)[0]));
    let top: Vec<String> = most(&wanted.formats).into_iter().take(3).collect();
    assert_eq!(found["inner_formats_top3"], json!(top));
    near(&found["avg_cols"], wanted.columns.0 / wanted.columns.1, "avg_cols");
    near(&found["avg_rows"], wanted.rows / wanted.columns.1, "avg_rows");
    near(&found["key_stability_mean"], wanted.stability.0 / wanted.stability.1, "key_stability_mean");
    assert_eq!(found["source_sessions"], json!(wanted.sessions.len()));
    assert_eq!(found["first_seen_ms"], json!(wanted.times.iter().min()));
    assert_eq!(found["last_seen_ms"], json!(wanted.times.iter().max()));
    let of = |layer: &str| wanted.layers.get(layer).copied().unwrap_or_default();
    let total: f64 = wanted.layers.values().map(|(baseline, _)| baseline).sum();
    let saved = |layer: &str| of(layer).0 - of(layer).1;
    near(&found["savings"]["dedup_savings"], saved("L0") / total, "dedup");
    near(&found["savings"]["encoder_savings"], (saved("L1") + saved("L2")) / (total - of("L0").0), "encoder");
    near(&found["savings"]["combined_savings"], (saved("L0") + saved("L1") + saved("L2")) / total, "combined");
}

fn mined(home: &Home) -> Value {
    let mut report = home.json(&["mine", "fingerprints", "--from-telemetry", "--reproducible", "-q"]);
    report["fingerprints"].take()
}

#[test]
fn csv_has_the_fields_of_parquet() {
    let home = Home::new();
    home.write(".config/devboy/telemetry/events/all.jsonl", lines(&events(3, 200)));
    let csv = home.run(&["mine", "fingerprints", "--from-telemetry", "-q", "--format", "csv"]).out;
    let (head, first) = csv.split_once('\n').unwrap();
    let path = home.path("endpoints.parquet");
    let parquet = ["mine", "fingerprints", "--from-telemetry", "-q", "--format", "parquet", "--output"];
    let written = home.run(&[&parquet[..], &[path.to_str().unwrap()]].concat());
    assert_eq!(written.exit, Exit::Done, "{}", written.err);
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let fields: Vec<&str> = schema.root_schema().get_fields().iter().map(|field| field.name()).collect();
    assert_eq!(head.split(',').collect::<Vec<_>>(), fields);
    let found = mined(&home);
    let baseline = found[0]["savings"]["baseline_tokens"].as_f64().unwrap().to_string();
    assert!(first.lines().next().unwrap().contains(&baseline), "{first}");
}

#[test]
fn fingerprints_are_those_of_a_plain_recomputation_for_any_sample_rate() {
    for seed in 1..6 {
        let events = events(seed, 900);
        let home = Home::new();
        home.write(".config/devboy/telemetry/events/all.jsonl", lines(&events));
        let found = mined(&home);
        let wanted = expected(&events);
        assert_eq!(found.as_array().unwrap().len(), wanted.len());
        for row in found.as_array().unwrap() {
            assert_fingerprint(row, &wanted[row["endpoint_class"].as_str().unwrap()]);
        }
    }
}

/// Of each session whatever file its events stand in, once.
#[test]
fn the_interval_of_repeats_is_over_sessions_however_these_are_cut() {
    let events = events(11, 700);
    let mut sessions: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    let mut shown = BTreeSet::new();
    for event in &events {
        let text = |key: &str| event[key].as_str().unwrap();
        let (endpoint, session) = (text("endpoint_class"), text("session_hash"));
        let repeats = !shown.insert((session, event["context_partition"].as_u64(), text("content_sha_prefix_hex")));
        let of_session = sessions.entry((endpoint, session)).or_default();
        *of_session = (of_session.0 + u64::from(repeats), of_session.1 + 1);
    }
    let home = Home::new();
    for (number, part) in events.chunks(90).enumerate() {
        home.write(&format!(".config/devboy/telemetry/events/{number}.jsonl"), lines(part));
    }
    for threads in ["1", "3"] {
        let report = home.json(&["tune", "analyze", "--dry-run", "--threads", threads, "--reproducible"]);
        let found = report["findings"].as_array().unwrap().iter().filter(|finding| finding["rule"] == "R1");
        let read = found.clone().find(|finding| finding["subject"] == "Read").unwrap();
        let of_read = sessions.iter().filter(|((endpoint, _), _)| *endpoint == "Read").map(|(_, trials)| *trials);
        let wanted = Clustered::of(of_read).over_clusters();
        let evidence = &read["evidence"];
        assert_eq!((&evidence["n"], &evidence["interval"]["n"]), (&json!(7), &json!(wanted.n)), "{read}");
        near(&evidence["interval"]["lower"], wanted.lower, "lower");
        near(&evidence["interval"]["upper"], wanted.upper, "upper");
    }
}

#[test]
fn fingerprints_do_not_depend_on_the_files_in_which_the_events_stand_nor_on_threads() {
    let events = events(11, 700);
    let whole = Home::new();
    whole.write(".config/devboy/telemetry/events/all.jsonl", lines(&events));
    let wanted = mined(&whole);
    for (seed, files) in [(3, 2), (5, 9), (7, 40)] {
        let mut dice = Dice(seed);
        let mut parts: Vec<Vec<&Value>> = vec![Vec::new(); files];
        for event in &events {
            parts[dice.below(files as u64) as usize].push(event);
        }
        let home = Home::new();
        for (number, part) in parts.into_iter().enumerate() {
            // Both places that are read without being named.
            let place = if number % 2 == 0 { ".config/devboy/telemetry/events" } else { ".devboy/telemetry" };
            home.write(&format!("{place}/{number}.jsonl"), lines(part));
        }
        assert_eq!(mined(&home), wanted, "{files} files");
        for threads in ["1", "3"] {
            let report =
                home.json(&["mine", "fingerprints", "--from-telemetry", "--threads", threads, "--reproducible"]);
            assert_eq!(report["fingerprints"], wanted, "{threads} threads");
        }
    }
}

/// The logs of the test data, and a home whose telemetry is what `replay` emits for them.
fn emitted() -> (Home, String) {
    let logs = format!("{}/testdata/claude-home", env!("CARGO_MANIFEST_DIR"));
    let home = Home::new();
    let events = home.path("T").display().to_string();
    let run = home.run(&["replay", "--input-dir", &logs, "--emit-telemetry", &events, "-q"]);
    assert_eq!(run.exit, Exit::Done, "{}", run.err);
    (home, logs)
}

#[test]
fn telemetry_that_a_replay_emits_gives_the_fingerprints_of_the_logs() {
    let (home, logs) = emitted();
    let events = home.path("T").display().to_string();
    let of_logs = home.json(&["mine", "fingerprints", "--input-dir", &logs, "--reproducible"]);
    let of_events = home.json(&["mine", "fingerprints", "--from-telemetry", "--input-dir", &events, "--reproducible"]);
    assert!(of_logs["fingerprints"].as_array().unwrap().len() > 5);
    assert_eq!(of_logs["fingerprints"], of_events["fingerprints"]);
    assert_eq!(of_logs["profile"], of_events["profile"]);
}

#[test]
fn telemetry_that_a_replay_emits_gives_the_proposals_of_the_logs() {
    let (home, logs) = emitted();
    let events = home.path("T").display().to_string();
    let of_logs =
        home.json(&["tune", "analyze", "--from-claude-logs", "--input-dir", &logs, "--dry-run", "--reproducible"]);
    let of_events = home.json(&["tune", "analyze", "--input-dir", &events, "--dry-run", "--reproducible"]);
    // Mostly held: the sessions are too few. What is written where there are enough is compared in `two_roads`.
    assert!(of_logs["findings"].as_array().unwrap().len() > 10);
    assert_eq!(of_logs["diff"], of_events["diff"]);
    // Failed calls have no event, so the logs hold more tokens to weigh an effect against.
    let without_effects = |report: &Value| {
        let mut findings = report["findings"].as_array().unwrap().clone();
        findings.iter_mut().for_each(|finding| _ = finding.as_object_mut().unwrap().remove("effect"));
        findings
    };
    assert_eq!(without_effects(&of_logs), without_effects(&of_events));
}

#[test]
fn what_fewer_sessions_than_k_have_done_is_left_out_of_an_export() {
    let home = Home::new();
    home.write(".config/devboy/telemetry/events/all.jsonl", lines(&events(4, 300)));
    let all = mined(&home);
    let few = home.json(&["mine", "fingerprints", "--from-telemetry", "--k-anonymity", "8"]);
    assert_eq!(few["fingerprints"], json!([]), "there are seven sessions");
    assert_eq!(few["left_out"], json!(all.as_array().unwrap().len()));
}

#[test]
fn names_of_servers_leave_the_machine_as_pseudonyms_only() {
    let home = Home::new();
    home.write(".config/devboy/telemetry/events/all.jsonl", lines(&events(4, 300)));
    for form in ["json", "csv", "md", "table", "parquet"] {
        let mut out = Vec::new();
        home.run_into(&["mine", "fingerprints", "--from-telemetry", "--format", form, "-q"], &mut out);
        assert!(!out.is_empty() && memchr::memmem::find(&out, b"gitlab").is_none(), "{form}");
    }
    let live = home.run(&["mine", "fingerprints", "--from-telemetry", "--names", "--format", "csv"]);
    assert!(live.out.contains("mcp__gitlab__get_issues"));
}
