//! Rules R1 to R6 over hand-made sums: what they propose, hold and leave alone. Where the published tuner decides
//! otherwise than the paper, the name of the test says which is followed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use toml_edit::Value;

use crate::base::data::Data;
use crate::base::key_path::KeyPath;
use crate::base::names::Sym;
use crate::base::significance::Chance;
use crate::base::stats::{FollowUpCount, Share};
use crate::frames::fingerprint::{EventProfile, Fingerprint, LayerTokens, Observed, ToolCosts, UnrecordedPlans};
use crate::planner::numbers::PlannerThresholds;
use crate::rules::proposal::Proposal;
use crate::rules::tool_keys::link_list;
use crate::rules::{REGISTER, RuleFacts, RuleThresholds, Speaks, judge_all};
use crate::settings::annotations::Annotations;
use crate::settings::finding::{Basis, Delta, Evidence, Finding, Verdict};
use crate::settings::tool_model::FollowUp;
use crate::settings::{AgentClass, Effective, Settings, SettingsFile, View, WantedValue, apply};

/// A configuration text as the rules see it.
pub(super) struct Held {
    pub(super) file: SettingsFile,
    pub(super) settings: Settings,
}

impl Held {
    pub(super) fn new(text: &str) -> Self {
        let file = SettingsFile::parse(Path::new("c.toml"), text).unwrap();
        let settings = Effective::resolve(&file).unwrap().settings;
        Self { file, settings }
    }
}

pub(super) static SHIPPED: LazyLock<Annotations> = LazyLock::new(|| Annotations::load(&Data::default()).unwrap());

/// All findings, with a configuration.
fn judged(observed: &Observed, text: &str) -> Vec<Finding> {
    judged_when(&[Speaks::Events], observed, text)
}

/// The findings of the rules that are asked, with a configuration.
pub(super) fn judged_when(asked: &[Speaks], observed: &Observed, text: &str) -> Vec<Finding> {
    let data = Data::default();
    let held = Held::new(text);
    let (view, numbers) = (View::of(&held.file).unwrap(), PlannerThresholds::shipped());
    let facts = RuleFacts { observed, ..RuleFacts::none(&view, &SHIPPED, &numbers.projection) };
    judge_all(&facts, &data, asked).unwrap()
}

/// The findings of one rule, with a configuration.
fn spoken(rule: &str, observed: &Observed, text: &str) -> Vec<Finding> {
    judged(observed, text).into_iter().filter(|finding| finding.rule == rule).collect()
}

fn deltas(findings: &[Finding]) -> Vec<Delta> {
    let proposed = findings.iter().filter_map(|finding| match &finding.verdict {
        Verdict::Propose(delta) => Some(delta.clone()),
        _ => None,
    });
    proposed.collect()
}

pub(super) fn changes(findings: &[Finding]) -> Vec<WantedValue> {
    let change = |delta: Delta| WantedValue { key: delta.key, value: Some(delta.to) };
    deltas(findings).into_iter().map(change).collect()
}

/// What becomes of a configuration by these findings.
pub(super) fn settled(findings: Vec<Finding>, text: &str) -> Proposal {
    Proposal::new(&Held::new(text).file, findings, &SHIPPED).unwrap()
}

/// Proposed values by key.
fn proposed(rule: &str, observed: &Observed, text: &str) -> BTreeMap<String, String> {
    let spelled = |delta: Delta| (delta.key.to_string(), delta.to.to_string().trim().to_owned());
    deltas(&spoken(rule, observed, text)).into_iter().map(spelled).collect()
}

pub(super) fn map<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Why a verdict proposes nothing: "hold …" or "skip …".
pub(super) fn unproposed(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Propose(delta) => panic!("proposes {} = {}", delta.key, delta.to),
        Verdict::Hold(reason) => format!("hold {reason}"),
        Verdict::Skip(reason) => format!("skip {reason}"),
        Verdict::Hint(words) => format!("hint {words}"),
        Verdict::Wait { .. } | Verdict::TakenBack { .. } => "wait".to_owned(),
    }
}

/// The one reason of a rule for doing nothing.
fn reason(rule: &str, observed: &Observed, text: &str) -> String {
    let findings = spoken(rule, observed, text);
    assert_eq!(findings.len(), 1, "{findings:?}");
    unproposed(&findings[0].verdict)
}

/// The text with everything that a rule proposes. A second run must have nothing to add.
fn written(rule: &str, observed: &Observed, text: &str) -> String {
    let new = settled(spoken(rule, observed, text), text).text;
    assert_eq!(proposed(rule, observed, &new), BTreeMap::new(), "a second run, over\n{new}");
    new
}

fn settings(text: &str) -> Settings {
    Held::new(text).settings
}

fn one_endpoint(fingerprint: Fingerprint) -> Observed {
    Observed { endpoints: vec![fingerprint], ..Observed::default() }
}

/// An endpoint of which everything was recorded.
fn endpoint(calls: u32, repeats: u32) -> Fingerprint {
    Fingerprint {
        endpoint: "Read".to_owned(),
        key: Some("Read".to_owned()),
        events: calls.into(),
        calls: calls.into(),
        repeats: repeats.into(),
        repeat_events: repeats.into(),
        ..Fingerprint::default()
    }
}

fn repeating(calls: u32, repeats: u32, distance_p90: u64) -> Observed {
    one_endpoint(Fingerprint { repeat_distance_p90: Some(distance_p90), ..endpoint(calls, repeats) })
}

// --- R1 --------------------------------------------------------------------------------------------------------------

const ON: &str = "dedup.enabled_per_endpoint.Read";
const OWN_ON: &str = "endpoint_overrides.Read.dedup_enabled";
const OWN_SIZE: &str = "endpoint_overrides.Read.lru_size";

#[test]
fn half_of_thirty_responses_repeating_switches_an_endpoint_on() {
    // The published vector asks for a cache of 10, from 20 times the rate; the paper's burst percentile is followed.
    let wanted = map([(ON, "true"), (OWN_ON, "true"), (OWN_SIZE, "4")]);
    assert_eq!(proposed("R1", &repeating(30, 15, 3), ""), wanted);
}

#[test]
fn one_repeat_in_forty_switches_an_endpoint_off_and_asks_for_no_cache() {
    assert_eq!(proposed("R1", &repeating(40, 1, 3), ""), map([(ON, "false"), (OWN_ON, "false")]));
}

#[test]
fn fewer_than_twenty_calls_are_ignored_however_often_they_repeat() {
    assert!(reason("R1", &repeating(5, 4, 0), "").starts_with("skip too few responses (rules/r1_dedup_enable.toml:4"));
    let nearly = Fingerprint { calls: 19.999, repeats: 19.0, ..endpoint(19, 19) };
    assert!(reason("R1", &one_endpoint(nearly), "").starts_with("skip too few"));
    assert_eq!(proposed("R1", &one_endpoint(endpoint(20, 20)), "").len(), 2);
}

#[test]
fn the_thresholds_of_the_duplicate_rate_belong_to_the_outer_sides() {
    let switched = |calls, repeats| proposed("R1", &repeating(calls, repeats, 0), "").remove(ON);
    for (calls, repeats, wanted) in [
        (20, 6, Some("true")),
        (100, 30, Some("true")),
        (100, 29, None),
        (50, 3, None),
        (20, 1, Some("false")),
        (100, 5, Some("false")),
        (100, 0, Some("false")),
    ] {
        assert_eq!(switched(calls, repeats).as_deref(), wanted, "{repeats} of {calls}");
    }
    assert_eq!(reason("R1", &repeating(50, 3, 0), ""), "skip between the thresholds; it stays as it is");
}

#[test]
fn the_cache_is_one_more_than_the_distance_and_ten_at_most() {
    for (distance, size) in [(0, "1"), (1, "2"), (8, "9"), (9, "10"), (10, "10"), (u64::MAX, "10")] {
        assert_eq!(proposed("R1", &repeating(20, 20, distance), "")[OWN_SIZE], size, "distance {distance}");
    }
    // Without a distance there is nothing to ask for.
    assert_eq!(proposed("R1", &one_endpoint(endpoint(20, 20)), ""), map([(ON, "true"), (OWN_ON, "true")]));
}

#[test]
fn repeats_are_those_of_contents_so_an_endpoint_that_is_off_is_switched_on_again() {
    // Published: emitted hints count, of which an endpoint that is off has none.
    let text = "[dedup.enabled_per_endpoint]\nRead = false\n[endpoint_overrides.Read]\ndedup_enabled = false\n";
    let mut seen = repeating(30, 15, 3);
    seen.endpoints[0].tokens = LayerTokens { baseline: [0.0, 0.0, 0.0, 900.0], sent: [0.0, 0.0, 0.0, 900.0] };
    let new = written("R1", &seen, text);
    let is_on = |text: &str| {
        let settings = settings(text);
        let own = settings.endpoint_overrides.get("Read").and_then(|own| own.dedup_enabled);
        own.or_else(|| settings.dedup.enabled_per_endpoint.get("Read").copied()).unwrap_or(true)
    };
    assert!(!is_on(text) && is_on(&new));
    assert_eq!(deltas(&spoken("R1", &seen, text))[0].from.as_ref().and_then(Value::as_bool), Some(false));
}

#[test]
fn a_switch_that_only_holds_by_default_is_written_down_once() {
    let new = written("R1", &repeating(30, 15, 3), "");
    assert!(new.contains("[dedup.enabled_per_endpoint]\nRead = true"), "{new}");
    let skipped = spoken("R1", &repeating(30, 15, 3), &new);
    assert!(skipped.iter().all(|finding| matches!(&finding.verdict, Verdict::Skip(why) if why.ends_with("already"))));
}

#[test]
fn the_effect_on_the_shared_cache_is_told_as_the_settings_compute_it() {
    for (text, distance) in [
        ("", 7),
        ("", 1),
        ("[dedup]\nlru_size = 2\n", 4),
        ("[endpoint_overrides.Grep]\nlru_size = 9\n", 5),
        ("[endpoint_overrides.Read]\nlru_size = 10\n", 6),
        ("[endpoint_overrides.Read]\nlru_size = 0\n", 0),
    ] {
        let seen = repeating(30, 15, distance);
        let sizes = [text, &written("R1", &seen, text)].map(|text| settings(text).shared_lru_size());
        let told = format!("holds {} responses now, {} with this change alone", sizes[0], sizes[1]);
        for finding in spoken("R1", &seen, text) {
            assert!(finding.evidence.counts.contains(&told), "{told}: {}", finding.evidence.counts);
        }
    }
}

#[test]
fn an_endpoint_known_by_its_pseudonym_is_held_and_one_with_a_garbled_name_skipped() {
    let hidden = |calls, repeats| {
        let known = Fingerprint { key: None, endpoint: "mcp__p1a2b3c__list".to_owned(), ..endpoint(calls, repeats) };
        one_endpoint(known)
    };
    for (calls, repeats) in [(30, 15), (40, 1)] {
        let why = reason("R1", &hidden(calls, repeats), "");
        assert!(why.starts_with("hold only a pseudonym") && why.contains("devboy ingest"), "{why}");
    }
    // Nothing would change, so nothing is held.
    assert!(reason("R1", &hidden(30, 5), "").starts_with("skip between"));
    assert!(reason("R1", &hidden(5, 5), "").starts_with("skip too few"));
    let garbled = Fingerprint { key: Some("Read\n<x>".to_owned()), ..endpoint(30, 15) };
    assert!(reason("R1", &one_endpoint(garbled), "").starts_with("skip the name cannot stand"));
}

#[test]
fn the_real_name_of_a_pseudonym_is_the_one_that_is_configured() {
    let known = Fingerprint {
        endpoint: "mcp__p1a2b3c__list".to_owned(),
        key: Some("mcp__gitlab__list".to_owned()),
        ..endpoint(30, 15)
    };
    let findings = spoken("R1", &one_endpoint(known), "");
    assert!(findings.iter().all(|finding| finding.subject == "mcp__gitlab__list"));
    assert_eq!(changes(&findings)[0].key.to_string(), "dedup.enabled_per_endpoint.mcp__gitlab__list");
}

#[test]
fn a_sample_counts_for_what_it_stands_for_and_says_so() {
    let sampled = Fingerprint { calls: 20.0, repeats: 10.0, ..endpoint(8, 4) };
    let findings = spoken("R1", &one_endpoint(sampled), "");
    assert_eq!(changes(&findings).len(), 2);
    let evidence = &findings[0].evidence;
    assert!(evidence.counts.starts_with("8 events that stand for 20.0 responses\n"), "{}", evidence.counts);
    assert!(evidence.counts.contains("50.0 % or more repeat"), "{}", evidence.counts);
    let many = crate::rules::responses::scaled(12_345, 20_000.0, "");
    assert!(many.starts_with("12,345 events that stand for "), "{many}");
    assert_eq!((evidence.n, evidence.share.unwrap().k, evidence.share.unwrap().n), (8, 4, 8));
    // The weights decide, not the events: 10 of 40 responses are between the thresholds, 4 of 8 events are not.
    let uneven = Fingerprint { calls: 40.0, repeats: 10.0, ..endpoint(8, 4) };
    assert!(reason("R1", &one_endpoint(uneven), "").starts_with("skip between"));
}

/// Published recorders leave the hash of tiny bodies out.
#[test]
fn responses_without_a_content_hash_are_no_evidence_that_nothing_repeats() {
    let unhashed = |calls: u32, repeats: u32, unhashed: u32| {
        one_endpoint(Fingerprint {
            unhashed: unhashed.into(),
            unhashed_events: unhashed.into(),
            ..endpoint(calls, repeats)
        })
    };
    let why = reason("R1", &unhashed(120, 0, 120), "");
    assert!(why.starts_with("skip too few responses that can be compared (rules/r1"), "{why}");
    assert!(reason("R1", &unhashed(40, 1, 1), "").starts_with("hold not every response can be compared"));
    // The share is that of the others.
    let findings = spoken("R1", &unhashed(60, 9, 30), "");
    assert_eq!(changes(&findings).len(), 2);
    let Evidence { counts, share, .. } = &findings[0].evidence;
    assert!(
        counts.contains("30 responses without a content hash, or with images, are left out\n9 of 30 responses repeat"),
        "{counts}"
    );
    assert_eq!(share.map(|share| (share.k, share.n)), Some((9, 30)));
}

// --- R2 --------------------------------------------------------------------------------------------------------------

const TEMPLATE: &str = "templates.endpoint_overrides.Read";

fn made_of(shape: &str, columns: Option<f64>, inner_formats: &[&str]) -> Fingerprint {
    Fingerprint {
        shape_dominant: Some(shape.to_owned()),
        shape_mix: vec![(shape.to_owned(), 1.0)],
        columns_mean: columns,
        inner_formats_top3: inner_formats.iter().map(|format| (*format).to_owned()).collect(),
        ..endpoint(25, 0)
    }
}

fn template(seen: Fingerprint) -> Option<String> {
    proposed("R2", &one_endpoint(seen), "").remove(TEMPLATE)
}

#[test]
fn twenty_five_tables_of_two_columns_or_more_get_csv() {
    let csv = Some("\"csv_from_md\"".to_owned());
    assert_eq!(template(made_of("markdown_table", Some(4.0), &[])), csv);
    assert_eq!(template(made_of("markdown_table", Some(2.0), &["log", "url", "hash"])), csv);
    assert_eq!(template(made_of("markdown_table", Some(1.999), &[])), None);
    assert_eq!(template(made_of("markdown_table", None, &[])), None);
    assert_eq!(template(made_of("prose", Some(4.0), &[])), None);
    assert_eq!(template(Fingerprint { calls: 19.999, ..made_of("markdown_table", Some(4.0), &[]) }), None);
}

#[test]
fn tables_that_the_router_encoded_have_as_many_columns_as_it_asks_for() {
    let unknown = made_of("markdown_table", None, &[]);
    assert_eq!(
        reason("R2", &one_endpoint(unknown.clone()), ""),
        "skip nobody recorded how many columns its tables have"
    );
    let routed = one_endpoint(Fingerprint { routed_tables: 25.0, ..unknown });
    assert_eq!(proposed("R2", &routed, "").remove(TEMPLATE).as_deref(), Some("\"csv_from_md\""));
    let counts = &spoken("R2", &routed, "")[0].evidence.counts;
    assert!(counts.contains("tables that the router encoded have 2 columns or more"), "{counts}");
    let lists = "[mckp.shape_thresholds]\nmarkdown_table_min_cols = 1\n";
    assert_eq!(proposed("R2", &routed, lists).remove(TEMPLATE), None);
}

#[test]
fn timestamps_links_and_hashes_together_get_the_deep_template() {
    for formats in [["log", "url", "hash"], ["hash", "log", "url"]] {
        assert_eq!(template(made_of("nested_object", None, &formats)).as_deref(), Some("\"pipeline_deep_mckp\""));
    }
    assert_eq!(
        template(made_of("markdown_table", Some(1.0), &["url", "log", "hash"])).unwrap(),
        "\"pipeline_deep_mckp\""
    );
    assert_eq!(template(made_of("nested_object", None, &["log", "url", "md"])), None);
    assert_eq!(template(made_of("nested_object", None, &["log", "url"])), None);
}

#[test]
fn diffs_among_the_top_three_get_the_fence() {
    assert_eq!(template(made_of("prose", None, &["url", "diff", "hash"])).as_deref(), Some("\"mr_diff_fence\""));
    let unknown = Fingerprint { shape_dominant: None, shape_mix: Vec::new(), ..made_of("prose", None, &["diff"]) };
    assert_eq!(template(unknown).as_deref(), Some("\"mr_diff_fence\""));
}

#[test]
fn nested_objects_that_repeat_get_no_template_by_the_paper() {
    // Published: nested and a rate of 0.20 or more gives pipeline_deep_mckp.
    let seen = Fingerprint { repeats: 10.0, repeat_events: 10, ..made_of("nested_object", None, &[]) };
    assert_eq!(reason("R2", &one_endpoint(seen), ""), "skip no template suits such responses");
}

#[test]
fn a_template_by_hand_is_proposed_to_change_and_the_same_one_is_left() {
    let seen = one_endpoint(made_of("markdown_table", Some(3.0), &[]));
    let text = "[templates.endpoint_overrides]\nRead = \"mr_diff_fence\" # mine\n";
    let new = written("R2", &seen, text);
    assert_eq!(new, text.replace("mr_diff_fence", "csv_from_md"));
    assert!(
        reason("R2", &seen, &new).starts_with("skip `templates.endpoint_overrides.Read` is \"csv_from_md\" already")
    );
}

#[test]
fn a_template_that_is_not_active_or_whose_endpoint_has_no_name_is_held() {
    let seen = made_of("prose", None, &["diff"]);
    let text = "[templates]\nactive = [\"csv_from_md\"]\n";
    let why = reason("R2", &one_endpoint(seen.clone()), text);
    assert_eq!(why, "hold `templates.active` does not list mr_diff_fence");
    assert!(reason("R2", &one_endpoint(Fingerprint { key: None, ..seen }), "").starts_with("hold only a pseudonym"));
}

#[test]
fn a_template_that_another_key_would_hide_is_held_and_one_that_it_gives_is_left() {
    let own = "[endpoint_overrides.Read]\ntemplate_id = \"mr_diff_fence\"\n";
    let pinned = "[profiles.data]\nactive = \"k8s_logs\"\n";
    let prefix = "[profiles.data.variants.r]\nendpoint_pattern = \"Re\"\npreferred_format = \"mr_diff_fence\"\n";
    let table = one_endpoint(made_of("markdown_table", Some(3.0), &[]));
    let diff = one_endpoint(made_of("prose", None, &["diff"]));
    for (text, key) in [
        (own, "endpoint_overrides.Read.template_id"),
        (pinned, "profiles.data.variants.k8s_logs.preferred_format"),
        (prefix, "profiles.data.variants.r.preferred_format"),
    ] {
        let why = reason("R2", &table, text);
        assert!(why.starts_with(&format!("hold `{key}` says ")) && why.contains("csv_from_md"), "{why}");
        // The rule is right that the settings would not have listened.
        let ignored = format!("{text}[templates.endpoint_overrides]\nRead = \"csv_from_md\"\n");
        assert_ne!(settings(&ignored).preferred_format_for("Read"), Some("csv_from_md"));
    }
    for text in [own, prefix] {
        assert!(reason("R2", &diff, text).ends_with("says so already"));
        assert_eq!(settings(text).preferred_format_for("Read"), Some("mr_diff_fence"));
    }
    // A profile without a format leaves the choice to the template.
    let silent = "[profiles.data.variants.r]\nendpoint_pattern = \"Read\"\n";
    assert_eq!(settings(&written("R2", &table, silent)).preferred_format_for("Read"), Some("csv_from_md"));
}

#[test]
fn the_kind_of_the_responses_is_told_with_counts() {
    let seen = Fingerprint {
        shape_mix: vec![("markdown_table".to_owned(), 0.8), ("prose".to_owned(), 0.2)],
        ..made_of("markdown_table", Some(3.25), &["url"])
    };
    let evidence = &spoken("R2", &one_endpoint(seen), "")[0].evidence;
    let words = "the most frequent shape of 25 responses is markdown_table (80.0 %), tables have 3.25 columns on \
                 average, inner formats url";
    assert_eq!((evidence.counts.as_str(), evidence.n), (words, 25));
    assert_eq!(evidence.threshold.as_deref(), Some("rules/r2_template.toml:7 asks for columns_min = 2"));
}

// --- R3 --------------------------------------------------------------------------------------------------------------

fn sessions(calls: f64, sessions: u64, partitions: u64, compactions: u64) -> Observed {
    let events = calls.ceil() as u64;
    let profile = EventProfile { events, calls, sessions, partitions, compactions, ..EventProfile::default() };
    Observed { profile, ..Observed::default() }
}

/// The cache for such sessions, from a value that no branch gives.
fn lru_size(seen: &Observed) -> i64 {
    let new = written("R3", seen, "[dedup]\nlru_size = 77\n");
    settings(&new).dedup.lru_size as i64
}

#[test]
fn a_hundred_events_in_partition_three_ask_for_five_by_the_paper() {
    // Published: all events are after a compaction, so 10. Three compactions in a hundred are 0.03, which is not 0.05.
    assert_eq!(lru_size(&sessions(100.0, 1, 1, 3)), 5);
}

#[test]
fn fifteen_events_in_five_sessions_ask_for_three() {
    assert_eq!(lru_size(&sessions(15.0, 5, 5, 0)), 3);
}

#[test]
fn compactions_count_as_many_only_above_one_in_twenty() {
    assert_eq!(lru_size(&sessions(100.0, 1, 6, 5)), 5);
    assert_eq!(lru_size(&sessions(100.0, 1, 7, 6)), 10);
    // Many compactions come before short sessions.
    assert_eq!(lru_size(&sessions(15.0, 5, 6, 1)), 10);
}

#[test]
fn a_fifth_of_a_partition_is_rounded_up_and_ten_at_least() {
    // 51 and 50 responses in a partition: 10.2 and 10.
    assert_eq!(lru_size(&sessions(306.0, 1, 6, 16)), 11);
    assert_eq!(lru_size(&sessions(300.0, 1, 6, 16)), 10);
    assert_eq!(lru_size(&sessions(1000.0, 1, 8, 60)), 25);
    assert_eq!(lru_size(&sessions(20.0, 1, 4, 3)), 10);
}

#[test]
fn events_per_session_are_not_rounded_before_they_are_compared() {
    assert_eq!(lru_size(&sessions(19.999, 1, 1, 0)), 3);
    assert_eq!(lru_size(&sessions(20.0, 1, 1, 0)), 5);
    assert_eq!(lru_size(&sessions(59.0, 3, 3, 0)), 3);
}

#[test]
fn the_outcome_does_not_depend_on_what_an_earlier_run_wrote() {
    // Published: its last branch leaves the value as it was loaded.
    let seen = sessions(100.0, 1, 1, 0);
    assert_eq!(proposed("R3", &seen, "[dedup]\nlru_size = 10\n"), map([("dedup.lru_size", "5")]));
    assert_eq!(reason("R3", &seen, ""), "skip `dedup.lru_size` is 5 already");
}

#[test]
fn a_sample_is_not_taken_for_all_responses_of_a_session() {
    // 50 events stand for 500 responses: 10 compactions are 0.02, not 0.2, and a session has 50 of them, not 5.
    let mut seen = sessions(500.0, 10, 20, 10);
    seen.profile.events = 50;
    assert_eq!(lru_size(&seen), 5);
    let evidence = &spoken("R3", &seen, "[dedup]\nlru_size = 7\n")[0].evidence;
    assert!(evidence.counts.starts_with("50 events that stand for 500.0 responses\n10 compactions in 500 responses"));
    assert_eq!(evidence.n, 50);
    let one = &spoken("R3", &sessions(100.0, 1, 2, 1), "")[0].evidence.counts;
    assert!(one.starts_with("1 compaction in 100 responses"), "{one}");
}

#[test]
fn without_a_response_the_rules_over_all_of_them_are_quiet() {
    for rule in ["R3", "R4", "R5"] {
        assert!(reason(rule, &Observed::default(), "").starts_with("skip too few"), "{rule}");
    }
}

// --- R4 --------------------------------------------------------------------------------------------------------------

const DEPTH: &str = "mckp.recursion_depth";
const CLASSES: [AgentClass; 3] = [AgentClass::Default, AgentClass::FileSearchHeavy, AgentClass::MarathonRefactor];

fn nested(count: u64, depth_p95: u64, variants: &[&str]) -> Observed {
    let profile = EventProfile {
        events: 100,
        calls: 100.0,
        sessions: 1,
        partitions: 1,
        nested: count,
        nested_depth_p95: Some(depth_p95),
        agent_variants: variants.iter().map(|name| ((*name).to_owned(), 1)).collect(),
        ..EventProfile::default()
    };
    Observed { profile, ..Observed::default() }
}

#[test]
fn shallow_objects_ask_for_three_levels_and_others_for_five() {
    assert_eq!(proposed("R4", &nested(40, 2, &[]), ""), map([(DEPTH, "3")]));
    assert_eq!(proposed("R4", &nested(40, 3, &[]), "[mckp]\nrecursion_depth = 3\n"), map([(DEPTH, "5")]));
    assert_eq!(reason("R4", &nested(40, 9, &[]), ""), "skip `mckp.recursion_depth` is 5 already");
    assert!(reason("R4", &nested(0, 9, &[]), "").starts_with("skip too few nested objects"));
    assert_eq!(proposed("R4", &nested(1, 1, &[]), "").len(), 1, "one is enough");
}

#[test]
fn the_depth_holds_in_every_session_whose_class_was_recorded() {
    let seen = nested(40, 2, &["default", "marathon_refactor"]);
    let depths = |text: &str| CLASSES.map(|class| settings(text).agent_variant_for(class).mckp_recursion_depth);
    assert_eq!(depths(""), [5, 3, 7]);
    // Of the class that did not occur nothing is known: its profile keeps the 3 that it has.
    assert_eq!(depths(&written("R4", &seen, "")), [3, 3, 3]);
    let deep = nested(40, 6, &["default", "file_search_heavy"]);
    assert_eq!(depths(&written("R4", &deep, "")), [5, 5, 7]);
}

#[test]
fn with_a_pinned_agent_only_its_profile_gets_the_depth() {
    let seen = nested(40, 2, &["default", "file_search_heavy"]);
    let text = "[profiles.agent]\nactive = \"marathon_refactor\"\n";
    let keys = proposed("R4", &seen, text);
    assert_eq!(keys, map([(DEPTH, "3"), ("profiles.agent.variants.marathon_refactor.mckp_recursion_depth", "3")]));
    // A pin that names nothing falls back to `default`, and so does the rule.
    let text = "[profiles.agent]\nactive = \"nobody\"\n";
    let new = written("R4", &seen, text);
    assert!(new.contains("[profiles.agent.variants.default]\nmckp_recursion_depth = 3"), "{new}");
    assert_eq!(settings(&new).agent_variant_for(AgentClass::MarathonRefactor).mckp_recursion_depth, 3);
}

#[test]
fn all_depths_of_a_run_are_one_subject_since_one_without_the_other_does_nothing() {
    let findings = spoken("R4", &nested(40, 2, &["default", "marathon_refactor"]), "");
    assert_eq!(findings.len(), 3);
    assert!(findings.iter().all(|finding| finding.subject == findings[0].subject));
}

// --- R5 --------------------------------------------------------------------------------------------------------------

fn quarter(bytes_p25: u64) -> Observed {
    let profile = EventProfile {
        events: 30,
        calls: 30.0,
        sessions: 1,
        partitions: 1,
        bytes_p25: Some(bytes_p25),
        ..EventProfile::default()
    };
    Observed { profile, ..Observed::default() }
}

#[test]
fn the_minimum_body_is_the_lower_quartile_between_its_limits() {
    for (p25, wanted) in
        [(0, 100), (99, 100), (100, 100), (101, 101), (499, 499), (500, 500), (501, 500), (8000, 500), (u64::MAX, 500)]
    {
        let new = written("R5", &quarter(p25), "");
        assert_eq!(settings(&new).dedup.min_body_chars, wanted, "a quartile of {p25} bytes");
    }
    assert_eq!(reason("R5", &quarter(200), ""), "skip `dedup.min_body_chars` is 200 already");
}

#[test]
fn the_minimum_body_follows_the_quartile_of_the_paper_and_not_a_quarter_of_the_mean() {
    // Half of the responses have 120 characters, half 15,880: the published tool takes 0.25 × 8,000, kept to 500.
    let mut seen = quarter(120);
    seen.endpoints = vec![Fingerprint { bytes_mean: 8000.0, ..endpoint(30, 5) }];
    assert_eq!(proposed("R5", &seen, ""), map([("dedup.min_body_chars", "120")]));
}

// --- R6 --------------------------------------------------------------------------------------------------------------

/// A tool without a shipped annotation, of which everything was recorded.
fn tool(calls: u32, p50: u64, p85: u64, p99: u64) -> ToolCosts {
    ToolCosts {
        tool: "mcp__acme__find".to_owned(),
        key: Some("mcp__acme__find".to_owned()),
        events: calls.into(),
        calls: calls.into(),
        bytes_p50: p50,
        bytes_p85: p85,
        bytes_p99: p99,
        ..ToolCosts::default()
    }
}

fn one_tool(costs: ToolCosts) -> Observed {
    Observed { tools: vec![costs], ..Observed::default() }
}

const TYPICAL: &str = "tools.mcp__acme__find.cost_model.typical_kb";
const LARGEST: &str = "tools.mcp__acme__find.cost_model.max_kb";

#[test]
fn sizes_are_the_median_and_the_99th_percentile_in_kib_with_three_digits() {
    assert_eq!(
        proposed("R6", &one_tool(tool(20, 1234, 5000, 123_456)), ""),
        map([(TYPICAL, "1.21"), (LARGEST, "121.0")])
    );
    let few = ToolCosts { calls: 19.999, ..tool(20, 1234, 5000, 123_456) };
    assert!(reason("R6", &one_tool(few), "").starts_with("skip too few responses"));
    let evidence = &spoken("R6", &one_tool(tool(20, 1234, 5000, 123_456)), "")[0].evidence;
    assert_eq!(evidence.counts, "the median of 20 responses is 1234 bytes");
    assert_eq!(evidence.threshold.as_deref(), Some("rules/r6_cost_models.toml:5 asks for calls_min = 20"));
}

#[test]
fn too_many_overruns_ask_for_the_85th_percentile_over_the_ratio() {
    // 13,312 bytes / 1.3 = 10,240 bytes = 10 KiB.
    let costs = |predictions, overruns| ToolCosts { predictions, overruns, ..tool(40, 2048, 13_312, 20_480) };
    let typical = |predictions, overruns| proposed("R6", &one_tool(costs(predictions, overruns)), "").remove(TYPICAL);
    assert_eq!(typical(20, 4).as_deref(), Some("10.0"));
    assert_eq!(typical(20, 3).as_deref(), Some("2.0"), "15 % is allowed");
    assert_eq!(typical(19, 19).as_deref(), Some("2.0"), "too few predictions");
    assert_eq!(typical(0, 0).as_deref(), Some("2.0"));
    let evidence = &spoken("R6", &one_tool(costs(20, 4)), "")[0].evidence;
    assert_eq!(evidence.share.map(|share| (share.k, share.n)), Some((4, 20)));
    assert!(evidence.counts.ends_with("\n4 of 20 predictions were met with 130 % or more"), "{}", evidence.counts);
}

#[test]
fn no_size_is_below_the_median_and_one_that_bounds_overruns_stays() {
    let text = |held: &str| format!("[tools.mcp__acme__find]\ncost_model = {{ typical_kb = {held}, max_kb = 20 }}\n");
    let costs = |p85, overruns| one_tool(ToolCosts { predictions: 20, overruns, ..tool(40, 2048, p85, 20_480) });
    let typical = |p85, overruns, held: &str| proposed("R6", &costs(p85, overruns), &text(held)).remove(TYPICAL);
    // 2,200 bytes / 1.3 is less than half of the responses are.
    assert_eq!(typical(2200, 20, "1.0").as_deref(), Some("2.0"));
    let evidence = &spoken("R6", &costs(2200, 20), &text("1.0"))[0].evidence;
    assert!(evidence.counts.starts_with("the median of 40 responses is 2048 bytes\n20 of 20"), "{}", evidence.counts);
    // 13,312 bytes / 1.3 = 10 KiB: once that is predicted, few are overrun, and so it stays.
    assert_eq!(typical(13_312, 4, "2.0").as_deref(), Some("10.0"));
    assert_eq!(typical(13_312, 3, "10.0"), None);
    assert_eq!(typical(13_312, 3, "20.0").as_deref(), Some("2.0"), "larger than that bounds nothing");
}

#[test]
fn a_size_that_is_near_enough_stays_so_that_a_weekly_run_is_quiet() {
    let typical = |held: &str, p50| {
        let text = format!("[tools.mcp__acme__find]\ncost_model = {{ typical_kb = {held}, max_kb = 100 }}\n");
        proposed("R6", &one_tool(tool(40, p50, p50, 102_400)), &text).remove(TYPICAL)
    };
    assert_eq!(typical("1.09", 1024), None);
    assert_eq!(typical("0.91", 1024), None);
    assert_eq!(typical("1.11", 1024).as_deref(), Some("1.0"));
    assert_eq!(typical("0.89", 1024).as_deref(), Some("1.0"));
    assert_eq!(typical("0", 0), None);
    assert_eq!(typical("1.0", 0).as_deref(), Some("0.0"));
}

#[test]
fn a_tool_without_a_block_gets_one_that_starts_from_its_annotation() {
    let costs = ToolCosts { tool: "Read".to_owned(), key: Some("Read".to_owned()), ..tool(40, 2048, 4096, 20_480) };
    let seen = one_tool(costs);
    let model = settings(&written("R6", &seen, "")).tools["Read"].clone();
    let mut shipped = SHIPPED.of("Read").unwrap().model;
    assert!(model.cost_model.typical_kb == 2.0 && model.cost_model.max_kb == Some(20.0));
    shipped.cost_model.typical_kb = 2.0;
    shipped.cost_model.max_kb = Some(20.0);
    assert_eq!(model, shipped);
    let basis = |finding: &Finding| finding.evidence.basis;
    assert!(settled(spoken("R6", &seen, ""), "").findings.iter().any(|finding| basis(finding) == Basis::Shipped));
    // A block that a person wrote is not filled up.
    let own = "[tools.Read]\nvalue_class = \"optional\"\n";
    let keys: Vec<String> = proposed("R6", &seen, own).into_keys().collect();
    assert_eq!(keys, ["tools.Read.cost_model.max_kb", "tools.Read.cost_model.typical_kb"]);
}

#[test]
fn what_a_new_block_would_hide_or_nobody_can_name_is_held() {
    let any = "[tools.\"*\"]\nvalue_class = \"optional\"\n";
    assert!(reason("R6", &one_tool(tool(40, 1, 1, 1)), any).starts_with("hold `tools.\"*\"` speaks for it"));
    let hidden = ToolCosts { key: None, ..tool(40, 1, 1, 1) };
    assert!(reason("R6", &one_tool(hidden), "").starts_with("hold only a pseudonym"));
    let garbled = ToolCosts { key: Some("a b".to_owned()), ..tool(40, 1, 1, 1) };
    assert!(reason("R6", &one_tool(garbled), "").starts_with("skip the name"));
}

#[test]
fn a_tool_whose_prefetches_go_unused_is_flagged() {
    let flagged = |prefetches_judged, prefetches_cited| {
        let costs = ToolCosts { prefetches_judged, prefetches_cited, ..tool(12, 1, 1, 1) };
        let findings = spoken("R6", &one_tool(costs), "");
        let flag = findings.iter().find(|f| matches!(&f.verdict, Verdict::Hold(why) if why.starts_with("tighten")));
        flag.map(|finding| finding.evidence.share.map(|share| (share.k, share.n)).unwrap())
    };
    assert_eq!(flagged(10, 4), Some((4, 10)));
    assert_eq!(flagged(10, 5), None);
    assert_eq!(flagged(9, 0), None);
    assert_eq!(flagged(0, 0), None);
}

/// 6 of 10 and 3 of 20 by themselves are on the other side of the bars than what they stand for.
#[test]
fn sampled_events_are_judged_by_what_they_stand_for_and_say_so() {
    let unrecorded =
        UnrecordedPlans { judged: 90.0, cited: 9.0, predictions: 80.0, overruns: 17.0, ..UnrecordedPlans::default() };
    let plain = ToolCosts {
        prefetches_judged: 10,
        prefetches_cited: 6,
        predictions: 20,
        overruns: 3,
        ..tool(40, 2048, 13_312, 20_480)
    };
    let counts = |costs: &ToolCosts| {
        let findings = spoken("R6", &one_tool(costs.clone()), "");
        findings.into_iter().map(|finding| finding.evidence.counts).collect::<String>()
    };
    let (alone, sampled) = (counts(&plain), counts(&ToolCosts { unrecorded, ..plain.clone() }));
    assert!(!alone.contains("prefetched") && !alone.contains("stand for") && !alone.contains("predictions"), "{alone}");
    for words in [
        "6 of 10 responses prefetched were used, 15.0 % of all that they stand for",
        "3 of 20 predictions were met with 130 % or more, 20.0 % of all that they stand for",
    ] {
        assert!(sampled.contains(words), "{sampled}");
    }
}

// Links: tool 1 is A, the others follow it.
const A: Sym = Sym(1);

fn edge(to: u32, lag: u32, support: u64, trials: u64, sessions: u64) -> FollowUpCount {
    let Share { lower, upper, .. } = Share::new(support, trials);
    FollowUpCount { from: A, to: Sym(to), lag, support, sessions, trials, lower, upper, chance: Chance::default() }
}

/// What becomes of the link from A to B with some probability.
fn probability(held: f64, edges: &[FollowUpCount]) -> Option<f64> {
    let text = format!(
        "[tools.A]\ncost_model = {{ typical_kb = 1, max_kb = 1 }}\n\
         follow_up = [{{ tool = \"B\", probability = {held}, projection = \"p\" }}]\n"
    );
    let new = written("R6", &followed(edges), &text);
    let links = settings(&new).tools["A"].follow_up.clone();
    assert!(links.iter().all(|link| link.projection.as_deref() == Some("p")), "projections stay");
    links.first().map(|link| link.probability)
}

fn followed(edges: &[FollowUpCount]) -> Observed {
    let costs = ToolCosts { tool: "A".to_owned(), key: Some("A".to_owned()), ..tool(40, 1024, 1024, 1024) };
    let names = ["", "A", "B", "C"].map(str::to_owned).to_vec();
    Observed { tools: vec![costs], names, follow_ups: edges.to_vec(), ..Observed::default() }
}

#[test]
fn a_probability_outside_its_interval_becomes_the_lower_end() {
    // 120 of 400: the Wilson interval with z = 1.96 is 0.2572 … 0.3466.
    let measured = [edge(2, 1, 120, 400, 5)];
    assert_eq!(probability(0.5, &measured), Some(0.257));
    assert_eq!(probability(0.35, &measured), Some(0.257));
    assert_eq!(probability(0.1, &measured), Some(0.257));
    assert_eq!(probability(0.346, &measured), Some(0.346));
    assert_eq!(probability(0.258, &measured), Some(0.258));
    // Outside, but no further from the new value than a week's noise.
    assert_eq!(probability(0.24, &measured), Some(0.24));
}

#[test]
fn the_strongest_lag_decides_about_a_link() {
    // 200 of 400: 0.4513 … 0.5487.
    let measured = [edge(2, 1, 120, 400, 5), edge(2, 2, 200, 400, 5), edge(2, 3, 4, 400, 5)];
    assert_eq!(probability(0.3, &measured), Some(0.451));
    assert_eq!(probability(0.5, &measured), Some(0.5));
    // Of equals the smaller lag is told.
    let text = "[tools.A]\nfollow_up = [{ tool = \"B\" }]\n";
    for edges in
        [[edge(2, 2, 120, 400, 5), edge(2, 1, 120, 400, 5)], [edge(2, 1, 120, 400, 5), edge(2, 2, 120, 400, 5)]]
    {
        let links = spoken("R6", &followed(&edges), text).pop().unwrap();
        assert!(links.evidence.counts.contains("at lag 1 "), "{}", links.evidence.counts);
    }
}

#[test]
fn what_too_few_sessions_or_steps_show_changes_no_probability() {
    assert_eq!(probability(0.9, &[edge(2, 1, 120, 400, 4)]), Some(0.9));
    assert_eq!(probability(0.9, &[edge(2, 1, 1, 19, 9)]), Some(0.9));
    assert_eq!(probability(0.9, &[]), Some(0.9));
    // 1 of 20: 0.0089 … 0.2361.
    assert_eq!(probability(0.9, &[edge(2, 1, 1, 20, 5)]), Some(0.008));
}

#[test]
fn a_link_that_is_certainly_rare_is_removed() {
    // 1 of 400 is at most 0.0140.
    assert_eq!(probability(0.5, &[edge(2, 1, 1, 400, 1)]), None);
    // Never in 72 steps can be 0.0507, never in 73 only 0.0500 less a little.
    assert_eq!(probability(0.5, &[edge(3, 1, 60, 72, 9)]), Some(0.5));
    assert_eq!(probability(0.5, &[edge(3, 1, 60, 73, 9)]), None);
}

#[test]
fn links_are_refreshed_and_removed_but_never_added() {
    let text = "[tools.A]\ncost_model = { typical_kb = 1, max_kb = 1 }\n\n\
                [[tools.A.follow_up]]\ntool = \"B\"\nprobability = 0.5 # from memory\nprojection_arg = \"path\"\n\n\
                [[tools.A.follow_up]]\ntool = \"Gone\"\n";
    let seen = followed(&[edge(2, 1, 120, 400, 5), edge(3, 1, 300, 400, 5)]);
    let new = written("R6", &seen, text);
    let wanted = text.replace("0.5", "0.257").replace("\n[[tools.A.follow_up]]\ntool = \"Gone\"\n", "");
    assert_eq!(new.trim_end(), wanted.trim_end());
    let finding = &spoken("R6", &seen, text)[2];
    assert_eq!(
        finding.evidence.counts,
        "B after 120 of 400 steps at lag 1 (30.0 %, 95 % 25.7–34.7): 0.5 → 0.257\n\
         Gone after 0 of 400 steps at any lag (0.0 %, 95 % 0.0–1.0): removed"
    );
    assert_eq!(finding.evidence.n, 400);
    let none = "[tools.A]\ncost_model = { typical_kb = 1, max_kb = 1 }\n";
    assert_eq!(proposed("R6", &seen, none), BTreeMap::new());
}

#[test]
fn links_of_a_shipped_annotation_are_judged_before_they_are_written() {
    let shipped = SHIPPED.of("WebSearch").unwrap().model.follow_up;
    assert!(shipped.iter().any(|link| link.tool == "WebFetch"), "the test needs it");
    let costs = ToolCosts { tool: "WebSearch".to_owned(), key: Some("WebSearch".to_owned()), ..tool(40, 1, 1, 1) };
    let names = ["", "WebSearch", "WebFetch"].map(str::to_owned).to_vec();
    let follow_ups = vec![edge(2, 1, 200, 400, 9)];
    let seen = Observed { tools: vec![costs], names, follow_ups, ..Observed::default() };
    let links = settings(&written("R6", &seen, "")).tools["WebSearch"].follow_up.clone();
    let link = links.iter().find(|link| link.tool == "WebFetch").unwrap();
    assert_eq!(link.probability, 0.451);
    assert_eq!(links.len(), 1, "the others did not follow in 400 steps");
    // All of them may be gone; then the block says so.
    let never = Observed { follow_ups: vec![edge(2, 1, 1, 400, 9)], ..seen };
    assert!(settings(&written("R6", &never, "")).tools["WebSearch"].follow_up.is_empty());
}

#[test]
fn whatever_of_a_new_block_is_held_stands_there_as_shipped() {
    for name in ["Edit", "Read", "WebSearch", "mcp__gitlab__get_issues"] {
        let costs = ToolCosts { prefetches: 12, prefetches_judged: 12, prefetches_cited: 3, ..tool(40, 150, 150, 999) };
        let costs = ToolCosts { tool: name.to_owned(), key: Some(name.to_owned()), ..costs };
        let names = ["", name, "Read"].map(str::to_owned).to_vec();
        let seen = Observed { names, follow_ups: vec![edge(2, 1, 390, 400, 9)], ..one_tool(costs) };
        let found = judged_when(&[Speaks::Events, Speaks::AutoEnrichment], &seen, "");
        let keys = deltas(&found).len();
        assert!(keys >= 3, "{found:?}");
        for held in 0..1 << keys {
            let mut found = found.clone();
            let proposals = found.iter_mut().filter(|finding| matches!(finding.verdict, Verdict::Propose(_)));
            for (place, finding) in proposals.enumerate().filter(|(place, _)| held >> place & 1 == 1) {
                finding.verdict = Verdict::Hold(format!("{place}"));
            }
            let said = deltas(&found);
            let model = settings(&settled(found, "").text).tools.get(name).cloned();
            let mut expected = SHIPPED.of(name).unwrap().model;
            for Delta { key, to, .. } in &said {
                let links = || to.as_array().unwrap().iter().map(|link| link.as_inline_table().unwrap());
                match key.leaf().unwrap() {
                    "typical_kb" => expected.cost_model.typical_kb = to.as_float().unwrap(),
                    "max_kb" => expected.cost_model.max_kb = to.as_float(),
                    "speculate" => expected.speculate = to.as_bool(),
                    "follow_up" => {
                        let wanted =
                            |link: &FollowUp| links().find(|to| to["tool"].as_str() == Some(&link.tool)).cloned();
                        expected.follow_up.retain(|link| wanted(link).is_some());
                        let probability = |link: &FollowUp| wanted(link).unwrap()["probability"].as_float().unwrap();
                        expected.follow_up.iter_mut().for_each(|link| link.probability = probability(link));
                    }
                    key => panic!("{key}"),
                }
            }
            assert_eq!(model, (!said.is_empty()).then_some(expected), "{name}, held {held:b}");
        }
    }
}

// --- All -------------------------------------------------------------------------------------------------------------

/// Something for every rule.
fn busy() -> Observed {
    let named =
        |name: &str, seen: Fingerprint| Fingerprint { endpoint: name.to_owned(), key: Some(name.to_owned()), ..seen };
    let endpoints = vec![
        named("Grep", Fingerprint { repeat_distance_p90: Some(6), ..endpoint(50, 30) }),
        named("git_log", made_of("prose", None, &["log", "url", "hash"])),
        named(
            "mcp__acme__find",
            Fingerprint { repeats: 9.0, repeat_events: 9, ..made_of("markdown_table", Some(5.0), &[]) },
        ),
        named("Rare", endpoint(3, 1)),
    ];
    let wanted = ["Read", "Grep", "mcp__acme__find"];
    let tools = wanted.map(|name| ToolCosts {
        tool: name.to_owned(),
        key: Some(name.to_owned()),
        predictions: 30,
        overruns: 10,
        prefetches_judged: 30,
        prefetches_cited: 9,
        ..tool(60, 3000, 9000, 70_000)
    });
    let names = ["", "Grep", "Read"].map(str::to_owned).to_vec();
    let profile = EventProfile {
        compactions: 12,
        partitions: 13,
        bytes_p25: Some(140),
        ..nested(40, 2, &["default", "file_search_heavy"]).profile
    };
    Observed { profile, endpoints, tools: tools.to_vec(), names, follow_ups: vec![edge(2, 1, 90, 400, 9)] }
}

#[test]
fn the_same_responses_twice_change_nothing_the_second_time() {
    for old in ["", "schema_version = 4\n\n[dedup]\nlru_size = 8 # eight\n\n[tools.Read]\nvalue_class = \"optional\"\n"]
    {
        let first = judged(&busy(), old);
        let rules: BTreeSet<&str> =
            first.iter().filter(|f| matches!(f.verdict, Verdict::Propose(_))).map(|f| f.rule).collect();
        assert_eq!(rules.into_iter().collect::<Vec<_>>(), ["R1", "R2", "R3", "R4", "R5", "R6"]);
        let new = settled(first.clone(), old).text;
        assert_eq!(changes(&judged(&busy(), &new)).len(), 0, "{new}");
    }
}

#[test]
fn every_proposal_carries_counts_n_and_the_place_of_its_threshold() {
    for finding in judged(&busy(), "") {
        let evidence = &finding.evidence;
        assert!(evidence.counts.chars().any(|c| c.is_ascii_digit()) || evidence.basis == Basis::Shipped, "{finding:?}");
        if matches!(finding.verdict, Verdict::Propose(_)) {
            assert!(evidence.n > 0, "{finding:?}");
            let threshold = evidence.threshold.as_deref().unwrap();
            let cited = threshold.starts_with("rules/") && threshold.contains(" asks for ");
            assert!(cited || evidence.basis == Basis::Shipped, "{threshold}");
        }
    }
}

#[test]
fn sums_without_sense_give_words_without_nan() {
    let mut odd = busy();
    odd.endpoints.push(Fingerprint { calls: 0.0, ..endpoint(40, 40) });
    odd.endpoints.push(Fingerprint { calls: f64::NAN, ..endpoint(40, 40) });
    let profiles = [
        EventProfile { events: 1, calls: 1.0, ..EventProfile::default() },
        EventProfile { events: 1, calls: 1.0, compactions: 5, ..EventProfile::default() },
        EventProfile { events: 1, calls: 0.0, compactions: 5, partitions: 0, ..EventProfile::default() },
        EventProfile { events: 1, calls: 0.0, ..EventProfile::default() },
    ];
    for profile in profiles {
        odd.profile = profile;
        for finding in judged(&odd, "") {
            let share = finding.evidence.share.map_or(0.0, |share| share.lower + share.upper);
            assert!(share.is_finite(), "{finding:?}");
            if let Verdict::Propose(delta) = &finding.verdict {
                let number = delta.to.as_float().unwrap_or_default();
                assert!(number.is_finite() && delta.to.as_integer().unwrap_or(1) > 0, "{finding:?}");
            }
        }
    }
}

/// Responses of which a share is numbered lines, and the rest objects.
fn numbered_responses(calls: u32, numbered: f64) -> Observed {
    let mix = vec![("flat_object".to_owned(), 1.0 - numbered), ("numbered_list".to_owned(), numbered)];
    let profile = EventProfile { events: calls.into(), calls: calls.into(), ..EventProfile::default() };
    let endpoints = vec![Fingerprint { shape_mix: mix, ..endpoint(calls, 0) }];
    Observed { endpoints, profile, ..Observed::default() }
}

#[test]
fn extended_formats_are_listed_behind_the_others_and_only_if_that_is_asked_for() {
    let seen = numbered_responses(40, 0.5);
    assert!(spoken("E1", &seen, "").is_empty());
    let asked = |seen: &Observed, text: &str| judged_when(&[Speaks::ExtendedFormats], seen, text);
    let proposal = asked(&seen, "[mckp]\nformats_enabled = [\"kv\", \"grouped_paths\"] # mine\n");
    assert!(proposal[0].evidence.counts.starts_with("text in 20 of 40 responses,"), "{:?}", proposal[0].evidence);
    let new =
        apply(&Held::new("[mckp]\nformats_enabled = [\"kv\", \"grouped_paths\"] # mine\n").file, &changes(&proposal));
    let new = new.unwrap();
    assert!(new.contains(r#"["kv", "grouped_paths", "numbered_compact", "named_strings"] # mine"#), "{new}");
    assert!(changes(&asked(&seen, &new)).is_empty(), "said twice");
    for (few, why) in [(numbered_responses(19, 0.5), "responses_min"), (numbered_responses(40, 0.09), "text_share_min")]
    {
        let findings = asked(&few, "");
        assert!(matches!(findings[0].verdict, Verdict::Skip(_)), "{findings:?}");
        assert!(findings[0].evidence.threshold.as_ref().unwrap().contains("e1_extended_formats.toml"), "{why}");
    }
}

#[test]
fn every_number_of_a_rule_has_a_reason_and_every_rule_says_what_is_asked_of_it() {
    let rules: Vec<_> =
        REGISTER.iter().filter(|rule| [Speaks::Events, Speaks::ExtendedFormats].contains(&rule.speaks)).collect();
    assert!(rules.len() >= 7);
    for rule in rules {
        let text = Data::default().text(&format!("{}.toml", rule.file)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let numbers = lines.windows(2).filter(|pair| pair[1].contains(" = "));
        assert!(numbers.clone().count() > 0);
        for pair in numbers {
            assert!(pair[0].starts_with("# "), "{}: {}", rule.file, pair[1]);
            let key = pair[1].split(" = ").next().unwrap();
            assert!(RuleThresholds::of(rule.file, &Data::default()).unwrap().cite(key).contains(" asks for "));
        }
        let page = Data::rule_page(rule.file).unwrap();
        for part in ["### What it looks at", "### Why", "### When it stays quiet", "### Example", "```toml"] {
            assert!(page.contains(part), "{} lacks {part}", rule.file);
        }
        assert!(page.contains("replayed over the later "), "{}", rule.file);
        assert!(page.lines().all(|line| line.chars().count() <= 120), "{}", rule.file);
    }
}

#[test]
fn links_are_told_on_one_line() {
    let link =
        |tool: &str| FollowUp { tool: tool.to_owned(), probability: 0.4, projection: None, projection_arg: None };
    let key = KeyPath::from(["tools", "Glob", "follow_up"]);
    let delta = Delta { key, from: None, to: link_list(&[link("Read"), link("Grep")]) };
    let links = "[{ tool = \"Read\", probability = 0.4 }, { tool = \"Grep\", probability = 0.4 }]";
    assert_eq!(delta.assignment(), format!("`tools.Glob.follow_up` = {links}"));
}
