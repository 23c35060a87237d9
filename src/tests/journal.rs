//! Facts about the tuning journal: what is written down, what survives damage, and what can be taken back.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use proptest::prelude::*;
use toml_edit::{DocumentMut, Value};

use super::settings::{NASTY, other_than};
use crate::base::data::Data;
use crate::base::key_path::KeyPath;
use crate::rules::proposal::KeyOwners;
use crate::settings::entries::{ExpectedEffect, Journal, JournalChange, JournalEntry, Predicted, Restore, RuleInputs};
use crate::settings::finding::{Delta, Effect, Evidence, Finding, Verdict};
use crate::settings::journal::{append, journal_name, read_journal};
use crate::settings::*;

fn read(text: &str) -> SettingsFile {
    SettingsFile::parse(Path::new("c.toml"), text).unwrap()
}

fn key(text: &str) -> KeyPath {
    text.parse().unwrap()
}

fn set(key: &str, value: &str) -> WantedValue {
    WantedValue { key: key.parse().unwrap(), value: Some(value.parse().unwrap()) }
}

fn of_rule(rule: &str, key: &KeyPath) -> JournalChange {
    JournalChange {
        rule: rule.into(),
        key: key.to_string(),
        evidence: "3 of 4".into(),
        n: 4,
        ..JournalChange::default()
    }
}

/// What devboy would write down when it makes these changes, and the file after them.
fn written(file: &SettingsFile, changes: &[WantedValue]) -> (JournalEntry, SettingsFile) {
    let text = apply(file, changes).unwrap();
    let keys = changes.iter().map(|change| of_rule("R1", &change.key)).collect();
    (journal_entry(1_000, "tune analyze", file, &text, keys).unwrap(), read(&text))
}

fn entry(number: i64) -> JournalEntry {
    let (entry, _) = written(&read(""), &[set("dedup.lru_size", &number.to_string())]);
    entry
}

/// The values of the file itself.
fn tree(text: &str) -> String {
    let document: DocumentMut = text.trim_start_matches('\u{feff}').parse().unwrap();
    let mut lines: Vec<String> = Vec::new();
    flatten("", &Value::InlineTable(document.into_table().into_inline_table()), &mut lines);
    lines.sort();
    lines.join("\n")
}

fn flatten(at: &str, value: &Value, lines: &mut Vec<String>) {
    match value.as_inline_table() {
        Some(table) => table.iter().for_each(|(key, value)| flatten(&format!("{at}/{key}"), value, lines)),
        None => {
            // Spelling aside.
            let plain: DocumentMut = format!("v = {}", value.to_string().trim()).parse().unwrap();
            lines.push(format!("{at} = {:?}", toml_edit::de::from_document::<Holder>(plain).unwrap().v));
        }
    }
}

#[derive(serde::Deserialize)]
struct Holder {
    v: serde_json::Value,
}

// --- The file --------------------------------------------------------------------------------------------------------

#[test]
fn a_journal_that_is_not_there_is_empty() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(read_journal(&directory.path().join("tuning-journal.jsonl")).unwrap(), Journal::default());
    assert!(read_journal(directory.path()).is_err(), "a directory is no journal");
}

#[test]
fn the_journal_lies_beside_the_configuration() {
    assert_eq!(journal_path(Path::new("/a/b.toml")), Path::new("/a/tuning-journal.jsonl"));
    assert_eq!(journal_path(Path::new("b.toml")), Path::new("tuning-journal.jsonl"));
    assert_eq!(journal_name(Path::new("/a/b.toml")), "b.toml");
}

#[test]
fn entries_come_back_as_they_were_written_in_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/tuning-journal.jsonl");
    let mut full = entry(1);
    full.inputs =
        Some(RuleInputs { origin: "logs".into(), events: 5, sessions: 2, since_ms: Some(-1), until_ms: None });
    full.predicted = Some(Predicted { baseline: 100.0, saved_before: 10.5, saved_after: 20.25 });
    full.undoes = Some("0123abcd".into());
    full.changes[0].threshold = Some("`rules/x.toml:3` asks for 0.3".into());
    full.changes[0].effect = Some(ExpectedEffect { tokens: -4.0, baseline: 100.0 });
    full.changes[0].evidence = "line\nbreak, \"quote\", 表\u{2028}".into();
    let entries = [full, entry(2), entry(3)];
    entries.iter().for_each(|entry| append(&path, entry).unwrap());
    assert_eq!(read_journal(&path).unwrap(), Journal { entries: entries.to_vec(), damaged_lines: Vec::new() });
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
    #[cfg(unix)]
    {
        let mode = |path: &Path| std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions());
        assert_eq!([mode(&path) & 0o777, mode(path.parent().unwrap()) & 0o777], [0o600, 0o700]);
    }
}

#[test]
fn a_line_torn_at_any_byte_costs_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tuning-journal.jsonl");
    let entries = [entry(1), entry(2), entry(3)];
    append(&path, &entries[0]).unwrap();
    let first = fs::read(&path).unwrap();
    append(&path, &entries[1]).unwrap();
    let both = fs::read(&path).unwrap();
    for end in first.len()..=both.len() {
        fs::write(&path, &both[..end]).unwrap();
        append(&path, &entries[2]).unwrap();
        // Only the line ending may be missing.
        let is_whole = end + 1 >= both.len();
        let expected = if is_whole { entries.to_vec() } else { vec![entries[0].clone(), entries[2].clone()] };
        let damaged_lines = if is_whole || end == first.len() { Vec::new() } else { vec![2] };
        assert_eq!(read_journal(&path).unwrap(), Journal { entries: expected, damaged_lines }, "cut at {end}");
    }
}

#[test]
fn odd_lines_are_counted_and_unknown_fields_are_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tuning-journal.jsonl");
    append(&path, &entry(1)).unwrap();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let newer = serde_json::to_string(&entry(2)).unwrap().replacen('{', "{\"colour\":[1,{}],", 1);
    file.write_all(b"not json\n\n\xff\xfe\n{}\n[1]\n\"id\"\n   \r\n").unwrap();
    writeln!(file, "{newer}\r").unwrap();
    // What a first version without the optional fields would have written.
    let bare = r#"{"id":"0a","at_ms":5,"tool_version":"0","command":"tune analyze","config":"c.toml","before_sha":"x","after_sha":"y","existed":true,"changes":[{"key":"a.b","new":"1"}]}"#;
    file.write_all(bare.as_bytes()).unwrap();
    let journal = read_journal(&path).unwrap();
    assert_eq!(journal.damaged_lines, [2, 4, 5, 6, 7]);
    assert_eq!(
        journal.entries.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>(),
        [entry(1).id, entry(2).id, "0a".into()]
    );
    assert_eq!(journal.entries[1], entry(2));
    assert_eq!(journal.entries[2].changes[0].new.as_deref(), Some("1"));
    assert_eq!((&journal.entries[2].restore, &journal.entries[2].inputs), (&None, &None));
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tuning-journal.jsonl");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = &path;
            scope.spawn(move || (1..=10).for_each(|number| append(path, &entry(writer * 10 + number)).unwrap()));
        }
    });
    let journal = read_journal(&path).unwrap();
    let mut seen: Vec<String> = journal.entries.iter().map(|entry| entry.changes[0].new.clone().unwrap()).collect();
    seen.sort_by_key(|number| number.parse::<u32>().unwrap());
    assert_eq!(seen, (1..=40).map(|number| number.to_string()).collect::<Vec<_>>());
    assert!(journal.damaged_lines.is_empty());
}

// --- What is written down --------------------------------------------------------------------------------------------

#[test]
fn an_entry_holds_the_values_of_both_texts() {
    let file = read("schema_version = 2\n[dedup]\nlru_size = 0b101 # five\nnear_ref_enabled = false\n[hints]\n");
    let table: DocumentMut = "value_class = \"critical\"\ncost_model.typical_kb = 1.5\n".parse().unwrap();
    let (entry, after) = written(
        &file,
        &[
            set("dedup.lru_size", "8"),
            set("dedup.near_ref_enabled", "false"),
            set("hints.default_verbosity", "\"terse\""),
            WantedValue { key: key("tools.R"), value: Some(table.as_table().clone().into_inline_table().into()) },
        ],
    );
    let row = |change: &JournalChange| {
        (change.rule.clone(), change.key.clone(), change.old.clone(), change.new.clone(), change.in_empty_table)
    };
    let expected = [
        ("R1", "dedup.lru_size", Some("5"), Some("8"), false),
        ("R1", "hints.default_verbosity", None, Some("\"terse\""), true),
        ("R1", "tools.R.cost_model.typical_kb", None, Some("1.5"), false),
        ("R1", "tools.R.value_class", None, Some("\"critical\""), false),
        // The version went up in the wake of the tool.
        ("", "schema_version", Some("2"), Some("4"), false),
    ];
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let expected: Vec<_> =
        expected.map(|(rule, key, old, new, empty)| (rule.into(), key.into(), owned(old), owned(new), empty)).into();
    assert_eq!(entry.changes.iter().map(row).collect::<Vec<_>>(), expected);
    assert_eq!((entry.changes[0].n, entry.changes[0].evidence.as_str()), (4, "3 of 4"));
    assert_eq!((entry.config.as_str(), entry.existed, entry.command.as_str()), ("c.toml", true, "tune analyze"));
    assert_eq!(entry.tool_version, env!("CARGO_PKG_VERSION"));
    // SHA-256 of nothing, first half, as everybody computes it.
    let (of_new, _) = written(&SettingsFile::missing(Path::new("c.toml")), &[set("dedup.lru_size", "8")]);
    assert_eq!((of_new.before_sha.as_str(), of_new.existed), ("e3b0c44298fc1c149afbf4c8996fb924", false));
    assert_eq!(entry.restore.unwrap().before(&after.text).unwrap(), file.text);
    assert_eq!((entry.id.len(), of_new.id.len()), (8, 8));
    assert_ne!(entry.id, of_new.id);
}

#[test]
fn a_finding_brings_its_evidence_and_what_is_held_brings_nothing() {
    let delta = Delta { key: key("dedup.lru_size"), from: None, to: Value::from(8) };
    let evidence =
        Evidence { counts: "180 of 400 repeat".into(), n: 400, threshold: Some("t".into()), ..Evidence::default() };
    let mut finding = Finding::new("R1", "x", Verdict::Propose(delta), evidence.clone());
    finding.effect = Some(Effect { tokens: 12.0, host: 3.0, baseline: 50.0, tokens_95: None, alone: 12.0 });
    let change = JournalChange::of(&finding).unwrap();
    assert_eq!((change.rule.as_str(), change.key.as_str(), change.n), ("R1", "dedup.lru_size", 400));
    assert_eq!((change.evidence.as_str(), change.threshold.as_deref()), ("180 of 400 repeat [measured]", Some("t")));
    assert_eq!(change.effect, Some(ExpectedEffect { tokens: 12.0, baseline: 50.0 }));
    finding.effect = Some(Effect { tokens: f64::NAN, host: 0.0, baseline: 50.0, tokens_95: None, alone: 0.0 });
    assert_eq!(JournalChange::of(&finding).unwrap().effect, None, "JSON cannot hold it");
    assert_eq!(JournalChange::of(&Finding::new("R1", "x", Verdict::Hold("h".into()), evidence)), None);
}

#[test]
fn shares_are_of_all_tokens_and_there_are_none_without_tokens() {
    let predicted = Predicted { baseline: 200.0, saved_before: 20.0, saved_after: 50.0 };
    assert_eq!(predicted.shares(), Some((0.1, 0.25)));
    assert_eq!(Predicted { baseline: 0.0, ..predicted }.shares(), None);
}

proptest! {
    #[test]
    fn a_text_comes_back_from_the_one_stretch_that_differs(
        before in "[ab表\n]{0,12}", after in "[ab表\n]{0,12}", other in "[ab表\n]{0,12}",
    ) {
        let restore = Restore::between(&before, &after);
        prop_assert_eq!(restore.before(&after), Some(before));
        // Another text may be too short or cut a character in two; that is no reason to fall over.
        let _ = restore.before(&other);
    }
}

// --- What holds ------------------------------------------------------------------------------------------------------

#[test]
fn what_was_taken_back_is_told_from_what_was_made_again() {
    let entry = |(id, from, to, undoes): (&str, &str, &str, &str)| {
        let spelled = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
        let change =
            JournalChange { key: "ttl".into(), old: spelled(from), new: spelled(to), ..JournalChange::default() };
        JournalEntry { id: id.into(), undoes: spelled(undoes), changes: vec![change], ..JournalEntry::default() }
    };
    let by = |entries: &[(&str, &str, &str, &str)], now: Option<&str>| {
        let journal = Journal { entries: entries.iter().copied().map(entry).collect(), ..Journal::default() };
        journal.taken_back("ttl", now).map(|entry| entry.id.clone())
    };
    let (a, b) = (("a", "", "1h", ""), ("b", "1h", "5m", ""));
    let both = [a, b, ("back_b", "5m", "1h", "b"), ("back_a", "1h", "", "a")];
    assert_eq!(by(&both[..1], Some("1h")), None, "it stands");
    assert_eq!(by(&both[..3], Some("1h")).as_deref(), Some("back_b"));
    assert_eq!(by(&both, None).as_deref(), Some("back_a"), "the first one, behind the second");
    assert_eq!(by(&both, Some("5m")), None, "somebody else has set it since");
    let again = [a, ("back", "1h", "", "a"), ("again", "", "1h", "back"), ("back_again", "1h", "", "again")];
    assert_eq!(by(&again[..3], Some("1h")), None, "made again");
    assert_eq!(by(&again[..3], None), None, "made again, and then removed by hand");
    assert_eq!(by(&again, None).as_deref(), Some("back_again"));
}

/// A journal of entries `(id, keys, undoes)`.
fn journal(entries: &[(&str, &[&str], Option<&str>)]) -> Journal {
    let made = entries.iter().map(|(id, keys, undoes)| JournalEntry {
        id: (*id).to_owned(),
        changes: keys.iter().map(|name| of_rule("R1", &key(name))).collect(),
        undoes: undoes.map(str::to_owned),
        ..entry(1)
    });
    Journal { entries: made.collect(), damaged_lines: Vec::new() }
}

#[test]
fn an_entry_holds_until_an_undo_that_holds_takes_it_back() {
    let all: &[(&str, &[&str], Option<&str>)] = &[
        ("a", &["x", "y"], None),
        ("b", &["z"], None),
        ("c", &["z"], Some("b")),
        ("d", &["x"], Some("a")),
        ("e", &["z"], Some("c")),
        ("f", &["y"], Some("a")),
    ];
    let at = |length: usize| {
        let journal = journal(&all[..length]);
        let states: String = journal
            .standings()
            .iter()
            .map(|standing| match (standing.holds(), standing.is_undone()) {
                (true, false) => 'h',
                (false, true) => 'u',
                (false, false) => 'p',
                (true, true) => '?',
            })
            .collect();
        (states, journal.last_standing().map(|entry| entry.id.clone()))
    };
    assert_eq!(at(0), (String::new(), None));
    assert_eq!(at(2), ("hh".into(), Some("b".into())));
    assert_eq!(at(3), ("huh".into(), Some("a".into())));
    assert_eq!(at(4), ("puhh".into(), Some("a".into())));
    // The undo of the undo makes the second one hold again.
    assert_eq!(at(5), ("phuhh".into(), Some("b".into())));
    assert_eq!(at(6), ("uhuhhh".into(), Some("b".into())));
    assert_eq!(journal(all).standings()[0].undos, [3, 5]);
}

/// To seek the undos of each entry among all later ones takes minutes here.
#[test]
fn a_long_journal_is_gone_through_once() {
    let entry = |number: u32| JournalEntry {
        id: number.to_string(),
        undoes: (number % 2 == 1).then(|| (number - 1).to_string()),
        ..JournalEntry::default()
    };
    let journal = Journal { entries: (0..200_000).map(entry).collect(), ..Journal::default() };
    assert_eq!(journal.standings().iter().filter(|standing| standing.is_undone()).count(), 100_000);
}

#[test]
fn entries_are_found_by_file_and_by_the_start_of_their_id() {
    let mut journal = journal(&[("ab1", &[], None), ("ab2", &[], None), ("b", &[], None)]);
    journal.entries[2].config = "other.toml".into();
    let ids = |start: &str| journal.named(start).iter().map(|entry| entry.id.clone()).collect::<Vec<_>>();
    assert_eq!([ids("ab"), ids("ab2"), ids("x")], [vec!["ab1".to_owned(), "ab2".into()], vec!["ab2".into()], vec![]]);
    assert_eq!(journal.clone().about("c.toml").entries, journal.entries[..2]);
}

// --- Taking back -----------------------------------------------------------------------------------------------------

fn other_value_for(key: &KeyPath, file: &SettingsFile) -> Value {
    let built_in = Effective::built_in().leaves;
    let value =
        file.get(key).or_else(|| built_in.iter().find(|(leaf, _, _)| leaf == key).map(|(_, value, _)| value.clone()));
    other_than(&value.unwrap(), key)
}

#[test]
fn what_nobody_touched_since_comes_back_byte_for_byte() {
    for text in NASTY {
        let file = read(text);
        for (key, _, _) in Effective::built_in().leaves.into_iter().step_by(4) {
            let value = Some(other_value_for(&key, &file));
            let (entry, after) = written(&file, &[WantedValue { key: key.clone(), value }]);
            let reversal = reverse(&after, &entry).unwrap();
            assert_eq!(reversal.text, *text, "{key}");
            assert!(reversal.is_exact && !reversal.is_edited && reversal.kept.is_empty());
            assert_eq!(reversal.undone, entry.changes);
        }
    }
}

#[test]
fn without_the_way_back_the_values_are_the_old_ones_all_the_same() {
    for text in NASTY {
        let file = read(text);
        for (key, _, _) in Effective::built_in().leaves.into_iter().step_by(7) {
            let value = Some(other_value_for(&key, &file));
            let (mut entry, after) = written(&file, &[WantedValue { key: key.clone(), value }]);
            entry.restore = None;
            let reversal = reverse(&after, &entry).unwrap();
            assert_eq!(tree(&reversal.text), tree(text), "{key} in {text:?}");
            assert!(!reversal.is_edited && reversal.kept.is_empty());
            assert_eq!(reversal.is_exact, reversal.text == *text);
        }
    }
}

#[test]
fn what_a_person_did_since_stays() {
    let person = set("telemetry.flush_every_n", "77");
    for text in NASTY {
        let file = read(text);
        for (key, _, _) in Effective::built_in().leaves.into_iter().step_by(7) {
            if key.to_string() == "telemetry.flush_every_n" {
                continue;
            }
            let value = Some(other_value_for(&key, &file));
            let (entry, after) = written(&file, &[WantedValue { key: key.clone(), value }]);
            let edited = read(&apply(&after, std::slice::from_ref(&person)).unwrap());
            let reversal = reverse(&edited, &entry).unwrap();
            let expected = apply(&file, std::slice::from_ref(&person)).unwrap();
            assert_eq!(tree(&reversal.text), tree(&expected), "{key} in {text:?}");
            assert!(reversal.is_edited && !reversal.is_exact);
        }
    }
}

#[test]
fn a_key_that_was_changed_pinned_or_taken_out_since_is_kept_and_named() {
    let file = read("[dedup]\nlru_size = 5\nmin_body_chars = 100\n\n[telemetry]\nsample_rate = 0.5\nenabled = true\n");
    let (entry, after) = written(
        &file,
        &[
            set("dedup.lru_size", "8"),
            set("dedup.min_body_chars", "200"),
            set("telemetry.sample_rate", "0.25"),
            set("telemetry.enabled", "false"),
            set("mckp.recursion_depth", "3"),
        ],
    );
    let edited = after
        .text
        .replace("lru_size = 8", "lru_size = 9")
        .replace("min_body_chars = 200", "min_body_chars = 200 # pin")
        .replace("sample_rate = 0.25\n", "")
        .replace("enabled = false", "enabled = true");
    let reversal = reverse(&read(&edited), &entry).unwrap();
    let kept: Vec<_> = reversal.kept.iter().map(|kept| (kept.key.as_str(), kept.reason.as_str())).collect();
    assert_eq!(
        kept,
        [
            ("dedup.lru_size", "is 9 now, devboy wrote 8"),
            ("dedup.min_body_chars", "is marked `# pin`"),
            ("telemetry.sample_rate", "was taken out since"),
            ("telemetry.enabled", "has its old value already"),
        ]
    );
    assert_eq!(reversal.undone.iter().map(|change| change.key.as_str()).collect::<Vec<_>>(), ["mckp.recursion_depth"]);
    assert_eq!(reversal.text, edited.replace("\n[mckp]\nrecursion_depth = 3\n", ""));
    assert!(reversal.is_edited && !reversal.is_exact);
}

#[test]
fn a_key_that_others_need_is_kept() {
    let table: DocumentMut = "tokenizer = \"anthropic_class\"\ncontext_window = 9\n".parse().unwrap();
    let change = WantedValue {
        key: key("profiles.llm.variants.m"),
        value: Some(table.as_table().clone().into_inline_table().into()),
    };
    let (entry, after) = written(&read("schema_version = 4\n"), std::slice::from_ref(&change));
    let edited = after.text.replace("context_window = 9", "context_window = 10");
    let reversal = reverse(&read(&edited), &entry).unwrap();
    assert!(reversal.undone.is_empty() && reversal.text == edited);
    assert!(reversal.kept.iter().any(|kept| kept.reason == "is needed by the other keys of `profiles.llm.variants.m`"));
    let untouched = format!("{}# mine\n", after.text);
    assert_eq!(reverse(&read(&untouched), &entry).unwrap().undone.len(), 2, "all of it can go");
}

#[test]
fn the_version_goes_down_again_unless_a_section_needs_it() {
    let file = read("schema_version = 1 # old\n\n[dedup]\nlru_size = 5\n");
    let (entry, after) = written(&file, &[set("enrichment.enabled", "true"), set("dedup.lru_size", "6")]);
    let edited = format!("{}\n# mine\n", after.text);
    assert_eq!(reverse(&read(&edited), &entry).unwrap().text, format!("{}\n# mine\n", file.text));
    let with_tools = format!("{edited}[tools.R]\n");
    let reversal = reverse(&read(&with_tools), &entry).unwrap();
    assert_eq!(reversal.kept.len(), 1);
    assert_eq!(reversal.kept[0].key, "schema_version");
    assert_eq!(reversal.kept[0].reason, "stays, since a section in the file needs version 3");
    assert!(reversal.text.starts_with("schema_version = 4 # old") && !reversal.text.contains("enrichment"));
}

#[test]
fn a_table_that_stood_there_without_a_key_stands_there_again() {
    let file = read("[tools.R]\n\n[mckp]\nrecursion_depth = 4\n");
    let (entry, after) = written(&file, &[set("tools.R.speculate", "false"), set("tools.S.speculate", "false")]);
    let edited = format!("{}\n[telemetry]\nenabled = true\n", after.text);
    let reversal = reverse(&read(&edited), &entry).unwrap();
    let tools = Effective::resolve(&read(&reversal.text)).unwrap().settings.tools;
    assert_eq!(tools.keys().collect::<Vec<_>>(), ["R"]);
    assert!(reversal.text.contains("[telemetry]"));
}

#[test]
fn links_come_back_as_they_were() {
    let file =
        read("[[tools.R.follow_up]]\ntool = \"E\" # often\nprobability = 0.5\n\n[[tools.R.follow_up]]\ntool = \"G\"\n");
    let (entry, after) = written(&file, &[set("tools.R.follow_up", "[{ tool = \"G\", probability = 0.25 }]")]);
    assert_eq!(reverse(&after, &entry).unwrap().text, file.text);
    let edited = read(&format!("{}\n[telemetry]\nenabled = true\n", after.text));
    let reversal = reverse(&edited, &entry).unwrap();
    let links = |text: &str| read(text).get(&key("tools.R.follow_up")).unwrap().to_string();
    // Matched by their tool, so the one that stayed comes first.
    assert_eq!(links(&reversal.text), r#"[{ tool = "G" }, { tool = "E", probability = 0.5 }]"#);
}

#[test]
fn an_undo_is_an_entry_that_can_be_taken_back_itself() {
    let file = read("[dedup]\nlru_size = 5\n");
    let (entry, after) = written(&file, &[set("dedup.lru_size", "8"), set("mckp.recursion_depth", "3")]);
    let back = reverse(&after, &entry).unwrap();
    let undo = journal_entry(2_000, "tune undo", &after, &back.text, back.undone).unwrap();
    assert_eq!(
        undo.changes.iter().map(|change| (change.old.as_deref(), change.new.as_deref())).collect::<Vec<_>>(),
        [(Some("8"), Some("5")), (Some("3"), None)]
    );
    assert_eq!(reverse(&read(&back.text), &undo).unwrap().text, after.text);
}

#[test]
fn a_key_that_was_taken_back_belongs_to_no_rule() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    let file = |text: &str| SettingsFile::parse(&path, text).unwrap();
    let size = "tools.Read.cost_model.typical_kb";
    let text = apply(&file(""), &[set(size, "4.5")]).unwrap();
    let noted = |at_ms, before: &str, after: &str| {
        journal_entry(at_ms, "tune", &file(before), after, vec![of_rule("T1", &key(size))]).unwrap()
    };
    let kept = |text: &str| {
        let owners = KeyOwners::load(&Data::default(), &file(text), Some(1_000)).unwrap();
        owners.kept("R6", &key(size))
    };
    let entry = noted(1_000, "", &text);
    append(&journal_path(&path), &entry).unwrap();
    assert!(kept(&text).unwrap().contains("is T1's: "));
    let undo = JournalEntry { undoes: Some(entry.id), ..noted(2_000, &text, "") };
    append(&journal_path(&path), &undo).unwrap();
    assert_eq!(kept(""), None);
}

#[test]
fn what_t1_switched_off_stays_off_until_something_later_was_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    let file = |text: &str| SettingsFile::parse(&path, text).unwrap();
    let switch = key("enrichment.enabled");
    let before = "[enrichment]\nenabled = true\n";
    let after = apply(&file(before), &[set("enrichment.enabled", "false")]).unwrap();
    let entry = journal_entry(1_000, "tune", &file(before), &after, vec![of_rule("T1", &switch)]).unwrap();
    append(&journal_path(&path), &entry).unwrap();
    let kept = |seen_until: i64| {
        let owners = KeyOwners::load(&Data::default(), &file(&after), Some(seen_until)).unwrap();
        owners.kept("R7", &switch)
    };
    assert!(kept(1_000).unwrap().contains("is T1's: "));
    assert_eq!(kept(1_001), None);
}

#[test]
fn a_journal_that_somebody_edited_does_no_harm() {
    let file = read("[dedup]\nlru_size = 5\n");
    let (entry, after) = written(&file, &[set("dedup.lru_size", "8")]);
    let mut odd = entry;
    odd.restore = Some(Restore { at: 3, put: usize::MAX, taken: "x".into() });
    assert_eq!(reverse(&after, &odd).unwrap().text, file.text, "the keys alone say the same");
    odd.restore = Some(Restore { at: 0, put: 0, taken: "rm".into() });
    assert_eq!(reverse(&after, &odd).unwrap().text, file.text, "a way that leads elsewhere is not taken");
    odd.restore = None;
    odd.changes[0].old = Some("= nonsense".into());
    assert_eq!(reverse(&after, &odd).unwrap().kept[0].reason, "has values in the journal that cannot be read");
    odd.changes[0].key = "a..b".into();
    assert_eq!(reverse(&after, &odd).unwrap().kept[0].reason, "is no key");
}
