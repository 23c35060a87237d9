//! Rule P4 over hand-made rows, and `tune from-claude-logs --calibrate` over generated logs.

use std::collections::BTreeMap;

use serde_json::json;

use super::event_rules::{Held, SHIPPED, changes};
use super::event_rules::{map, unproposed};
use super::harness::Home;
use super::log_builder::Record;
use crate::base::data::Data;
use crate::base::stats::ModelUse;
use crate::rules::{RuleFacts, Speaks, judge_all};
use crate::settings::finding::{Finding, Verdict};
use crate::settings::{View, apply};
use crate::shell::arguments::Exit;
use crate::whatif::calibration::{FamilyRatio, Ratio};

const SONNET: &str = "claude-sonnet-4.6";

/// A family of which more than enough was measured: 2.944 bytes per token.
fn row(family: &str) -> FamilyRatio {
    let ratio = |value| Ratio { value, lower: Some(value - 0.05), upper: Some(value + 0.05) };
    FamilyRatio {
        family: family.to_owned(),
        increments: 4_000,
        sessions: 40,
        chars: 2_900_000,
        bytes: 2_944_000,
        tokens: 1_000_000,
        counted: [880_000, 890_000],
        chars_per_token: ratio(2.9),
        bytes_per_token: ratio(2.944),
    }
}

/// What P4 says, and with `models` P1 as well.
fn judged(rows: &[FamilyRatio], models: &[ModelUse], text: &str) -> Vec<Finding> {
    let data = Data::default();
    let held = Held::new(text);
    let (view, numbers) = (View::of(&held.file).unwrap(), crate::planner::numbers::PlannerThresholds::shipped());
    let facts = RuleFacts {
        models,
        calibration: rows,
        families: &crate::rules::p1_model::families(&data).unwrap(),
        ..RuleFacts::none(&view, &SHIPPED, &numbers.projection)
    };
    let found = judge_all(&facts, &data, &[Speaks::Logs, Speaks::LogsCalibrated]).unwrap();
    found.into_iter().filter(|finding| finding.rule == "P4" || finding.rule == "P1" && !models.is_empty()).collect()
}

fn proposed(findings: &[Finding]) -> BTreeMap<String, String> {
    let spelled = |finding: &Finding| match &finding.verdict {
        Verdict::Propose(delta) => Some((delta.key.to_string(), delta.to.to_string().trim().to_owned())),
        _ => None,
    };
    findings.iter().filter_map(spelled).collect()
}

/// The one reason for doing nothing.
fn reason(row: FamilyRatio, text: &str) -> String {
    let findings = judged(&[row], &[], text);
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    unproposed(&finding.verdict)
}

/// The text with everything that is proposed. A second run must have nothing to add.
fn written(rows: &[FamilyRatio], models: &[ModelUse], text: &str) -> String {
    let findings = judged(rows, models, text);
    assert!(!proposed(&findings).is_empty());
    let new = apply(&Held::new(text).file, &changes(&findings)).unwrap();
    assert_eq!(proposed(&judged(rows, models, &new)), BTreeMap::new(), "a second run, over\n{new}");
    new
}

#[test]
fn a_family_gets_a_tokenizer_of_its_own_and_every_other_keeps_what_it_had() {
    let findings = judged(&[row(SONNET)], &[], "");
    let expected = map([
        ("profiles.tokenizer.variants.\"claude-sonnet-4.6\".chars_per_token", "2.94"),
        ("profiles.tokenizer.variants.\"claude-sonnet-4.6\".bpe", "\"o200k_base\""),
        ("profiles.tokenizer.variants.\"claude-sonnet-4.6\".inline_json_cost", "2.2"),
        ("profiles.tokenizer.variants.\"claude-sonnet-4.6\".toon_overhead", "1.13"),
        ("profiles.llm.variants.\"claude-sonnet-4.6\".tokenizer", "\"claude-sonnet-4.6\""),
    ]);
    assert_eq!(proposed(&findings), expected);
    let told = &findings[0].evidence;
    assert!(
        told.counts.starts_with("4,000 increments without thinking, of 40 sessions: 2944000 bytes in 1000000 tokens"),
        "{told:?}"
    );
    assert!(
        told.counts.contains("now 3.5, by `anthropic_class`, which counts by the table o200k_base (88.0 %"),
        "{told:?}"
    );
    let before = Held::new("").settings;
    let after = Held::new(&written(&[row(SONNET)], &[], "")).settings;
    for id in ["glm-5.1", "gpt-oss:20b", "claude-opus-4-6", "unknown"] {
        assert_eq!(after.tokenizer_for(Some(id)), before.tokenizer_for(Some(id)), "{id}");
    }
    let id = Some("claude-sonnet-4-6-20260101");
    let mut expected = before.tokenizer_for(id);
    expected.chars_per_token = 2.94;
    assert_eq!(after.tokenizer_for(id), expected);
    let (mut was, is) = (before.llm_variant_for(id), after.llm_variant_for(id));
    was.tokenizer = SONNET.to_owned();
    assert_eq!(is, was);
}

#[test]
fn a_family_without_a_model_variant_gets_the_one_that_devboy_knows() {
    let found = proposed(&judged(&[row("claude-haiku-4.5")], &[], ""));
    let model: Vec<(&str, &str)> = found
        .iter()
        .filter_map(|(key, value)| {
            Some((key.strip_prefix("profiles.llm.variants.\"claude-haiku-4.5\".")?, value.as_str()))
        })
        .collect();
    let expected = [("context_window", "200000"), ("tokenizer", "\"claude-haiku-4.5\"")];
    assert_eq!(model, expected);
    // It was counted as `default` says, and is counted like its kin from now on.
    let overhead = "profiles.tokenizer.variants.\"claude-haiku-4.5\".toon_overhead";
    assert_eq!(found.get(overhead).map(String::as_str), Some("1.13"));
    written(&[row("claude-haiku-4.5")], &[], "");
    let unknown = reason(row("some-model"), "");
    assert_eq!(unknown, "hold devboy knows nothing else of this model, so it cannot add a variant");
}

#[test]
fn a_model_is_pinned_by_the_variant_that_spells_it_otherwise() {
    let opus = [ModelUse {
        id: "claude-opus-4-6".to_owned(),
        messages: 500,
        prompt_tokens_max: 150_000,
        ..ModelUse::default()
    }];
    let values = "tokenizer = \"ollama_bpe\" # pin\ncontext_window = 1000000 # pin\n";
    let text = format!("[profiles.llm.variants.\"claude-opus-4-6\"]\n{values}");
    assert_eq!(proposed(&judged(&[], &opus, &text)), map([("profiles.llm.active", "\"claude-opus-4-6\"")]));
    written(&[], &opus, &text);
}

/// The variant has no window, so P1 must not take it for one that a person made.
#[test]
fn a_variant_without_a_window_does_not_make_the_model_rule_speak() {
    let opus =
        [ModelUse { id: "claude-opus-5".to_owned(), messages: 500, prompt_tokens_max: 150_000, ..ModelUse::default() }];
    let text = written(&[row("claude-opus-5")], &opus, "");
    assert!(!text.contains("context_window") && !text.contains("active"), "{text}");
    let told = |text: &str| format!("{:?}", judged(&[row("claude-opus-5")], &opus, text)[0].verdict);
    assert!(told(&text).contains("its variant gives none"), "{}", told(&text));
    let window =
        text.replace("tokenizer = \"claude-opus-5\"", "tokenizer = \"claude-opus-5\"\ncontext_window = 300000");
    let pinned = proposed(&judged(&[row("claude-opus-5")], &opus, &window));
    assert_eq!(pinned, map([("profiles.llm.active", "\"claude-opus-5\"")]));
}

#[test]
fn too_little_is_held_with_its_counts() {
    let few = FamilyRatio { increments: 199, ..row(SONNET) };
    assert_eq!(
        reason(few, ""),
        "hold only 199 measured increments (rules/p4_tokenizer.toml:5 asks for increments_min = 200)"
    );
    let lonely = FamilyRatio { sessions: 9, ..row(SONNET) };
    assert!(reason(lonely, "").starts_with("hold only 9 sessions with measured increments (rules/p4_tokenizer.toml:9"));
    // 0.15 of 2.944 is 5.1 %.
    let wide = Ratio { value: 2.944, lower: Some(2.794), upper: Some(3.094) };
    let wide = FamilyRatio { bytes_per_token: wide, ..row(SONNET) };
    assert!(
        reason(wide, "")
            .starts_with("hold 2.94 bytes per token is known only to within ± 5.1 % (rules/p4_tokenizer.toml:13")
    );
    let nothing = FamilyRatio { tokens: 0, bytes_per_token: Ratio::default(), ..row(SONNET) };
    assert!(reason(nothing, "").starts_with("hold only 40 sessions"), "no ratio, no interval");
}

#[test]
fn a_present_value_within_the_interval_stays() {
    let near = Ratio { value: 3.46, lower: Some(3.41), upper: Some(3.51) };
    let near = FamilyRatio { bytes_per_token: near, ..row(SONNET) };
    let told = reason(near, "");
    assert_eq!(
        told,
        "skip `profiles.tokenizer.variants.anthropic_class.chars_per_token` is 3.5, within the interval 3.41 to 3.51"
    );
}

#[test]
fn a_tokenizer_or_model_that_is_chosen_for_all_is_left_alone() {
    let one = "[profiles.tokenizer]\nactive = \"openai_o200k\"\n";
    assert!(reason(row(SONNET), one).starts_with("skip `profiles.tokenizer.active` is \"openai_o200k\""));
    let other = "[profiles.llm]\nactive = \"glm-5.1\"\n";
    assert!(reason(row(SONNET), other).starts_with("skip `profiles.llm.active` is \"glm-5.1\""));
    let same = "[profiles.llm]\nactive = \"claude-sonnet-4.6\"\n";
    assert_eq!(proposed(&judged(&[row(SONNET)], &[], same)).len(), 5);
    assert!(judged(&[], &[], "").iter().all(|finding| matches!(finding.verdict, Verdict::Skip(_))));
}

#[test]
fn a_pin_on_either_key_keeps_both() {
    let model = "[profiles.llm.variants.\"claude-sonnet-4.6\"]\ntokenizer = \"anthropic_class\" # pin\n";
    let told = reason(row(SONNET), model);
    assert_eq!(told, "hold `profiles.llm.variants.\"claude-sonnet-4.6\".tokenizer` is marked `# pin`");
    let text = written(&[row(SONNET)], &[], "");
    let pinned = text.replace("chars_per_token = 2.94", "chars_per_token = 4.5 # pin");
    assert_ne!(text, pinned);
    let told = reason(row(SONNET), &pinned);
    assert_eq!(told, "hold `profiles.tokenizer.variants.\"claude-sonnet-4.6\".chars_per_token` is marked `# pin`");
}

#[test]
fn a_tokenizer_of_one_model_is_changed_in_place_and_a_shared_one_never() {
    let mine = "[profiles.tokenizer.variants.mine]\nchars_per_token = 4\n\
                [profiles.llm.variants.\"claude-sonnet-4-6\"]\ntokenizer = \"mine\"\n";
    // The built-in spelling comes first, whatever else would match.
    assert!(proposed(&judged(&[row(SONNET)], &[], mine)).len() > 1);
    let mine = mine.replace("claude-sonnet-4-6", "claude-sonnet-4.6");
    let expected = map([("profiles.tokenizer.variants.mine.chars_per_token", "2.94")]);
    assert_eq!(proposed(&judged(&[row(SONNET)], &[], &mine)), expected);
    written(&[row(SONNET)], &[], &mine);
    let shared =
        written(&[row(SONNET)], &[], "") + "\n[profiles.llm.variants.other]\ntokenizer = \"claude-sonnet-4.6\"\n";
    let shared = shared.replace("2.94", "4.5");
    let told = reason(row(SONNET), &shared);
    assert!(told.ends_with("is there already and is not this model's alone"), "{told}");
    let lost = "[profiles.llm.variants.\"claude-sonnet-4.6\"]\ntokenizer = \"nowhere\"\n";
    assert!(reason(row(SONNET), lost).ends_with("names no tokenizer that there is"));
}

/// The interval may be narrower than what is written can say.
#[test]
fn what_was_rounded_is_not_proposed_again() {
    let exact = Ratio { value: 2.944, lower: Some(2.9439), upper: Some(2.9441) };
    written(&[FamilyRatio { bytes_per_token: exact, ..row(SONNET) }], &[], "");
}

/// Calls of 2,900 bytes each, in and out; each session has its own tokens for them, and 103 for framing.
fn calls(session: usize, calls: usize, tokens: u64) -> String {
    let name = format!("s{session}");
    let record = |kind: &str, at: usize, parent: Option<String>, message: serde_json::Value| {
        let uuid = format!("{name}-{kind}-{at}");
        let record = Record::new(kind, &uuid).set("sessionId", name.as_str()).set("message", message);
        record.set("parentUuid", parent).at(2 * at as u32 + u32::from(kind == "user")).line()
    };
    let usage = |read: u64, write: u64| json!({ "input_tokens": 0, "output_tokens": 1, "cache_creation_input_tokens": write, "cache_read_input_tokens": read });
    let mut text = record("user", 0, None, json!({ "role": "user", "content": "go" }));
    let mut read = 0;
    for at in 1..=calls + 1 {
        let write = if at == 1 { 20_000 } else { tokens + 103 };
        let id = format!("{name}-{at}");
        // {"file_path":"/a/b"} has 20 bytes.
        let call = json!({ "type": "tool_use", "id": id, "name": "Read", "input": { "file_path": "/a/b" } });
        let message = json!({ "id": format!("m-{id}"), "model": "claude-opus-4-6", "role": "assistant", "content": [call], "stop_reason": "tool_use", "usage": usage(read, write) });
        text += &record("assistant", at, Some(format!("{name}-user-{}", at - 1)), message);
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": "word ".repeat(576) });
        let answer = json!({ "role": "user", "content": [result] });
        text += &record("user", at, Some(format!("{name}-assistant-{at}")), answer);
        read += write;
    }
    text
}

/// Twelve sessions, half at 2.9 bytes per token and half at 3.1.
fn home() -> Home {
    let home = Home::new();
    for session in 0..12 {
        let tokens = if session % 2 == 0 { 1_000 } else { 935 };
        home.write(&format!(".claude/projects/-home-u-p/s{session}.jsonl"), calls(session, 20, tokens));
    }
    home
}

const TUNE: [&str; 3] = ["tune", "from-claude-logs", "--calibrate"];

#[test]
fn the_command_measures_writes_and_is_quiet_the_second_time() {
    let home = home();
    let report = home.json(&[&TUNE[..], &["--dry-run"]].concat());
    let family = &report["calibration"]["families"][0];
    assert_eq!((&family["family"], &family["increments"]), (&json!("claude-opus-4.6"), &json!(240)));
    assert_eq!((&family["bytes"], &family["tokens"]), (&json!(240 * 2_900), &json!(120 * 1_935)));
    // 2 · 2900 / 1935, and by hand 0.0668 to either side (Student, eleven degrees of freedom).
    let ratio = &family["bytes_per_token"];
    let near = |value: &serde_json::Value, to: f64| (value.as_f64().unwrap() - to).abs() < 5e-4;
    assert!(near(&ratio["value"], 2.9974) && near(&ratio["lower"], 2.9306) && near(&ratio["upper"], 3.0642), "{ratio}");
    let quarter = report["calibration"]["drift"].as_array().unwrap().iter().find(|row| row["estimator"] == "chars/4");
    assert_eq!(quarter.unwrap()["estimated"], 240 * 725);
    assert_eq!(quarter.unwrap()["actual"], 120 * (1_935 + 206));

    let first = home.run(&TUNE);
    assert_eq!(first.exit, Exit::Done, "{}", first.err);
    assert!(
        first.out.contains("P4 profiles.tokenizer.variants.\"claude-opus-4.6\".chars_per_token: 3.0\n"),
        "{}",
        first.out
    );
    assert!(first.out.contains("\n chars/4 ") && first.out.contains("bytes/token"), "{}", first.out);
    let text = std::fs::read_to_string(home.config()).unwrap();
    let tree: toml_edit::DocumentMut = text.parse().unwrap();
    assert_eq!(tree["profiles"]["llm"]["active"].as_str(), Some("claude-opus-4.6"), "P1 spoke too");
    let model = &tree["profiles"]["llm"]["variants"]["claude-opus-4.6"];
    assert_eq!(model["tokenizer"].as_str(), Some("claude-opus-4.6"));
    assert_eq!(model["context_window"].as_integer(), Some(200_000));
    assert_eq!(tree["profiles"]["tokenizer"]["variants"]["claude-opus-4.6"]["chars_per_token"].as_float(), Some(3.0));
    let check = home.run(&[&TUNE[..], &["--check"]].concat());
    assert_eq!(check.exit, Exit::Done, "{}", check.out);
    assert!(check.out.starts_with("Nothing to change in "), "{}", check.out);
}

#[test]
fn without_the_flag_no_text_is_read_again() {
    let home = home();
    let plain = home.run(&["tune", "from-claude-logs", "--explain"]);
    assert!(plain.out.contains("claude-opus-4.6") && !plain.out.contains("# P4"), "{}", plain.out);
    assert!(home.json(&["tune", "from-claude-logs"]).get("calibration").is_none());
    let names =
        || std::fs::read_dir(home.lake()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let has_timelines = || names().any(|name| name.ends_with("timelines.parquet"));
    assert!(!has_timelines(), "{:?}", names().collect::<Vec<_>>());
    home.run(&TUNE);
    assert!(has_timelines(), "{:?}", names().collect::<Vec<_>>());
}

#[test]
fn standard_input_and_files_measure_the_same() {
    let home = Home::new();
    let text = calls(1, 3, 1_000);
    home.write(".claude/projects/p/s1.jsonl", &text);
    let flags = ["--dry-run", "--json", "--input-dir"];
    let piped = home.run_with(&[&TUNE[..], &flags, &["-"]].concat(), text.as_bytes());
    let logs = home.logs();
    let read = home.run(&[&TUNE[..], &flags, &[logs.to_str().unwrap()]].concat());
    let found = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["calibration"].clone();
    assert_eq!(found(&piped.out)["families"][0]["increments"], 3, "{}", piped.err);
    assert_eq!(found(&piped.out), found(&read.out));
}

#[test]
fn the_shipped_example_is_too_small_and_says_so() {
    let home = Home::new();
    let logs = format!("{}/testdata/claude-home", env!("CARGO_MANIFEST_DIR"));
    let outcome = home.run(&[&TUNE[..], &["--dry-run", "--explain", "--input-dir", &logs]].concat());
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    assert!(outcome.out.contains("P4 hold claude-"), "{}", outcome.out);
    assert!(
        outcome.out.contains("only 1 measured increment (rules/p4_tokenizer.toml:5 asks for increments_min = 200)"),
        "{}",
        outcome.out
    );
    let table = home.run(&[&TUNE[..], &["--dry-run", "--format", "csv", "--input-dir", &logs]].concat());
    assert!(!table.out.contains("chars/4"), "{}", table.out);
}
