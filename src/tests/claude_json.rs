//! Facts about the editor of Claude Code's settings: one value changes, every other byte stays, and what is no strict JSON is
//! refused by line and column.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::base::key_path::KeyPath;
use crate::settings::claude::file::ClaudeFile;
use crate::settings::claude::file::{remove, set};
use crate::settings::claude::reversal::{claude_entry, reverse_claude};
use crate::settings::claude::strict::check;
use crate::settings::entries::JournalChange;
use crate::settings::write_noted;

/// How a text is written.
#[derive(Clone, Debug)]
struct Hand {
    newline: &'static str,
    indent: &'static str,
    colon: &'static str,
    is_compact: bool,
    has_bom: bool,
    ends: bool,
}

fn hands() -> impl Strategy<Value = Hand> {
    let newline = prop::sample::select(vec!["\n", "\r\n"]);
    let indent = prop::sample::select(vec!["  ", "\t", "    ", ""]);
    let colon = prop::sample::select(vec![": ", ":", " : "]);
    (newline, indent, colon, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(newline, indent, colon, is_compact, has_bom, ends)| Hand {
            newline,
            indent,
            colon,
            is_compact,
            has_bom,
            ends,
        },
    )
}

impl Hand {
    fn write(&self, value: &Value) -> String {
        let mut text = if self.has_bom { "\u{feff}".to_owned() } else { String::new() };
        self.value(value, 0, &mut text);
        if self.ends {
            text += self.newline;
        }
        text
    }

    fn value(&self, value: &Value, depth: usize, text: &mut String) {
        let line = |depth: usize| match self.is_compact {
            true => String::new(),
            false => format!("{}{}", self.newline, self.indent.repeat(depth)),
        };
        match value {
            Value::Object(members) if !members.is_empty() => {
                text.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    *text += if at > 0 { "," } else { "" };
                    *text += &format!("{}{}{}", line(depth + 1), Value::from(key.as_str()), self.colon);
                    self.value(value, depth + 1, text);
                }
                *text += &format!("{}}}", line(depth));
            }
            other => *text += &other.to_string(),
        }
    }
}

/// Values as people have them, with brackets, quotes and escapes where they can mislead.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        prop::sample::select(vec!["a", "", "{\"b\": 1}", "] , }", "\\\"", "ünï \u{1F600}", "// no comment", "\n\t"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let keys = prop::sample::select(vec!["env", "a", "b\"c", "permissions", "ö", "deny"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..4).prop_map(|pairs| Value::Object(
                pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

fn objects() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec!["env", "promptCacheTtl", "model", "hooks", "x"]);
    let members = prop::collection::vec((keys, values()), 0..5);
    members.prop_map(|pairs| Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()))
}

/// The value in a tree, by the plain meaning of a path.
fn planted(tree: &Value, key: &[&str], value: &Value) -> Option<Value> {
    let mut members = tree.as_object()?.clone();
    let (first, rest) = key.split_first()?;
    let planted = match rest {
        [] => value.clone(),
        rest => planted(&members.get(*first).cloned().unwrap_or_else(|| Value::Object(Map::new())), rest, value)?,
    };
    members.insert((*first).to_owned(), planted);
    Some(Value::Object(members))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap()
}

fn common(a: &str, b: &str) -> (usize, usize) {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let tail = a[head..].iter().rev().zip(b[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    (head, tail)
}

const PATH: &str = "settings.json";

proptest! {
    #![proptest_config(super::log_builder::cases(400))]

    #[test]
    fn an_edit_says_what_was_asked_and_leaves_every_other_byte(
        tree in objects(),
        hand in hands(),
        key in prop::sample::select(vec![vec!["promptCacheTtl"], vec!["env", "A"], vec!["env", "a"], vec!["new", "deep", "er"]]),
        value in prop_oneof![Just(json!("1h")), Just(json!(200_000)), Just(json!(["x", {"y": []}]))],
    ) {
        let text = hand.write(&tree);
        let path = KeyPath::from(key.as_slice());
        let edited = set(Path::new(PATH), &text, &path, &value);
        let Some(expected) = planted(&tree, &key, &value) else {
            prop_assert!(edited.is_err(), "a part of the key is no object: {text}");
            return Ok(());
        };
        let edited = edited.unwrap();
        prop_assert_eq!(parsed(&edited), expected, "{}", edited);
        // What was there before the value and behind it is there still, byte for byte.
        let mut old = Some(&tree);
        for part in &key {
            old = old.and_then(|tree| tree.get(part));
        }
        let (head, tail) = common(&text, &edited);
        let mut gone = String::new();
        old.iter().for_each(|old| hand.value(old, key.len(), &mut gone));
        let parent_is_empty = {
            let held = key[..key.len() - 1].iter().try_fold(&tree, |tree, part| tree.get(part));
            held.is_some_and(|held| held == &json!({})) || tree == json!({})
        };
        let lost = text.len() - head - tail;
        prop_assert!(lost <= gone.len() || (parent_is_empty && lost <= 2), "{lost} bytes of {text:?} are gone: {edited:?}");
        prop_assert_eq!(text.starts_with('\u{feff}'), edited.starts_with('\u{feff}'));
        if text.contains("\r\n") {
            prop_assert!(!edited.replace("\r\n", "").contains('\n'), "{:?}", edited);
        }
        // The way back: what was put in is taken out without a trace, where something else stands beside it.
        if old.is_none() && !parent_is_empty && key.len() == 1 {
            prop_assert_eq!(remove(Path::new(PATH), &edited, &path).unwrap(), text);
        }
        // Asked again, nothing changes.
        prop_assert_eq!(set(Path::new(PATH), &edited, &path, &value).unwrap(), edited);
    }

    #[test]
    fn a_key_is_taken_out_and_nothing_else(tree in objects(), hand in hands(), at in 0..5_usize) {
        let members = tree.as_object().unwrap();
        let Some(name) = members.keys().nth(at) else { return Ok(()) };
        let text = hand.write(&tree);
        let without = remove(Path::new(PATH), &text, &KeyPath::from([name.as_str()])).unwrap();
        let mut expected = members.clone();
        expected.remove(name);
        prop_assert_eq!(parsed(&without), Value::Object(expected), "{}", without);
    }

    #[test]
    fn whatever_stands_in_a_file_it_is_edited_as_json_or_refused(text in "[\\[\\]{},:\"a1/# \\n\\\\]{0,24}") {
        let edited = set(Path::new(PATH), &text, &KeyPath::from(["a"]), &json!(1));
        match serde_json::from_str::<Value>(&text) {
            Ok(Value::Object(_)) if edited.is_ok() => prop_assert_eq!(&parsed(&edited.unwrap())["a"], &json!(1)),
            Ok(Value::Object(_)) => prop_assert!(edited.unwrap_err().message.contains("second time")),
            _ if text.is_empty() => prop_assert_eq!(edited.unwrap(), "{\n  \"a\": 1\n}\n"),
            _ => prop_assert!(edited.is_err(), "{}", text),
        }
    }
}

#[test]
fn what_is_no_strict_json_is_refused_by_line_and_column() {
    for (text, told) in [
        ("{\n  // mine\n  \"a\": 1\n}", "settings.json:2:3: a comment"),
        ("{\n  \"a\": 1, /* x */\n  \"b\": 2\n}", "settings.json:2:11: a comment"),
        ("{\n  \"a\": 1,\n}", "settings.json:3:1: a comma with nothing behind it"),
        ("{\"a\": [1, 2,]}", "settings.json:1:13: a comma with nothing behind it"),
        ("{\n  \"ttl\": 1,\n  \"ü\": 1, \"ttl\": 2\n}", "settings.json:3:11: `ttl` stands a second time"),
        ("{\n  \"ttl\": 1", "settings.json:2:"),
        ("[]", "settings.json:1:1: no object"),
        ("\u{feff}[]", "settings.json:1:1: no object"),
        ("  ", "settings.json:1:"),
        ("{'a': 1}", "settings.json:1:2:"),
        ("{} {}", "settings.json:1:4:"),
    ] {
        let message = set(Path::new(PATH), text, &KeyPath::from(["ttl"]), &json!(1)).unwrap_err().message;
        assert!(message.starts_with(told), "{text:?}: {message}");
    }
    for (text, told) in [
        ("{", "settings.json:1:2: the file ends too early"),
        ("{\n", "settings.json:1:2: the file ends too early"),
        ("{\n  \"ttl\": 1", "settings.json:2:11: the file ends too early"),
        ("", "settings.json:1:1: it is empty"),
        (" \n", "settings.json:1:1: it is empty"),
    ] {
        let message = check(Path::new(PATH), text).unwrap_err().message;
        assert!(message.ends_with(told), "{text:?}: {message}");
    }
    // A key that stands twice where nothing is edited is somebody else's.
    let text = "{\"a\": 1, \"a\": 2, \"b\": {\"c\": 1, \"c\": 2}}";
    let edited = set(Path::new(PATH), text, &KeyPath::from(["ttl"]), &json!(1)).unwrap();
    assert_eq!(edited, "{\"a\": 1, \"a\": 2, \"b\": {\"c\": 1, \"c\": 2}, \"ttl\": 1}");
    let deep = set(Path::new(PATH), text, &KeyPath::from(["b", "c"]), &json!(1)).unwrap_err().message;
    assert!(deep.starts_with("settings.json:1:32: `c` stands a second time"), "{deep}");
}

#[test]
fn ten_megabytes_and_deep_nesting_are_fine() {
    let row = |n: usize| format!("  \"key{n}\": \"{}\"", "x".repeat(90));
    let rows: Vec<String> = (0..100_000).map(row).collect();
    let text = format!("{{\n  \"deep\": {}1{},\n{}\n}}\n", "[".repeat(20_000), "]".repeat(20_000), rows.join(",\n"));
    assert!(text.len() > 10 << 20);
    let edited = set(Path::new(PATH), &text, &KeyPath::from(["promptCacheTtl"]), &json!("1h")).unwrap();
    assert_eq!(edited.len(), text.len() + ",\n  \"promptCacheTtl\": \"1h\"".len());
    assert_eq!(remove(Path::new(PATH), &edited, &KeyPath::from(["promptCacheTtl"])).unwrap(), text);
}

fn changed(
    file: &ClaudeFile,
    journal: &Path,
    key: &str,
    value: Value,
) -> (String, crate::settings::entries::JournalEntry) {
    let path: KeyPath = key.parse().unwrap();
    let text = file.with([(&path, &value)]).unwrap();
    let change = JournalChange { rule: "S1".to_owned(), key: key.to_owned(), ..JournalChange::default() };
    let entry = claude_entry(1_000, "tune claude-settings", file, journal, &text, vec![change]).unwrap();
    (text, entry)
}

#[test]
fn a_file_that_somebody_else_wrote_to_meanwhile_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, journal) = (dir.path().join(PATH), dir.path().join("devboy/tuning-journal.jsonl"));
    for meanwhile in ["{\"model\": \"opus\"}", ""] {
        fs::write(&path, "{}").unwrap();
        let file = ClaudeFile::load(&path).unwrap();
        let (text, entry) = changed(&file, &journal, "promptCacheTtl", json!("1h"));
        fs::write(&path, meanwhile).unwrap();
        let refused = write_noted(&file.place(&journal), &text, &entry).unwrap_err();
        assert!(refused.message.contains("changed while devboy was working"), "{}", refused.message);
        assert_eq!(fs::read_to_string(&path).unwrap(), meanwhile);
    }
}

proptest! {
    #![proptest_config(super::log_builder::cases(64))]

    #[test]
    fn what_was_written_is_taken_back_byte_for_byte_or_key_by_key(tree in objects(), hand in hands(), later in values()) {
        let dir = tempfile::tempdir().unwrap();
        let (path, journal) = (dir.path().join(PATH), dir.path().join("devboy/tuning-journal.jsonl"));
        let text = hand.write(&tree);
        fs::write(&path, &text).unwrap();
        let file = ClaudeFile::load(&path).unwrap();
        let (new, entry) = changed(&file, &journal, "promptCacheTtl", json!("1h"));
        if entry.changes.is_empty() {
            return Ok(());
        }
        write_noted(&file.place(&journal), &new, &entry).unwrap();
        prop_assert_eq!(fs::read_to_string(dir.path().join("settings.json.bak")).unwrap(), text.as_str());
        let back = reverse_claude(&ClaudeFile::load(&path).unwrap(), &entry).unwrap();
        prop_assert_eq!((back.text, back.is_exact, back.undone.len()), (text, true, 1));
        // Somebody adds a key of his own: it stays.
        let mine = set(&path, &new, &KeyPath::from(["mine"]), &later).unwrap();
        fs::write(&path, &mine).unwrap();
        let back = reverse_claude(&ClaudeFile::load(&path).unwrap(), &entry).unwrap();
        let mut expected = tree;
        expected["mine"] = later;
        prop_assert_eq!(parsed(&back.text), expected);
        // Somebody sets the key himself: it is kept.
        let mine = set(&path, &new, &KeyPath::from(["promptCacheTtl"]), &json!("5m")).unwrap();
        fs::write(&path, &mine).unwrap();
        let back = reverse_claude(&ClaudeFile::load(&path).unwrap(), &entry).unwrap();
        prop_assert!(back.undone.is_empty() && back.kept.len() == 1 && back.text == mine);
    }
}
