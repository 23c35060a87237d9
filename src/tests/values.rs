//! What counts as a value in answers and arguments, case by case.

use proptest::prelude::*;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::log_builder::*;
use crate::logs::path::{is_rooted, normal_path, normal_path_into};
use crate::logs::trace::FileTrace;
use crate::logs::value_draft::ValueDraft;
use crate::logs::value_rules::normal_url;
use crate::logs::values::{List, ValueKind, ValueRows};

/// Lists by extractor.
type Lists = &'static [(&'static str, &'static [&'static str])];

/// The trace of one call of an MCP tool.
fn call(input: Value, answer: impl Into<Value>) -> FileTrace {
    let block = json!({ "type": "tool_use", "id": "c", "name": "mcp__a__b", "input": input });
    trace(log(&[assistant("m", &[block]), answers("c", answer)]))
}

/// The lists of an answer: extractor and hashes.
fn lists(answer: &str) -> Vec<(String, Vec<u64>)> {
    let trace = call(json!({}), answer);
    let mut rest = &trace.values.listed[..];
    let list = |list: &List| {
        let (values, later) = rest.split_at(list.kept.into());
        rest = later;
        let name = trace.value_names.text(list.extractor).to_owned();
        (name, values.iter().map(|value| value.value).collect())
    };
    trace.values.lists.iter().map(list).collect()
}

/// The same, spelled out.
fn spelled(expected: Lists) -> Vec<(String, Vec<u64>)> {
    let hashes = |values: &[&str]| values.iter().map(|value| xxh3_64(value.as_bytes())).collect();
    expected.iter().map(|(name, values)| ((*name).to_owned(), hashes(values))).collect()
}

#[test]
fn text_lists_paths_addresses_and_ids() {
    let cases: [(&str, Lists); 15] = [
        // A list of files; the working directory is /home/user/lantern.
        (
            "src/a.rs\n./b/c.py\n/tmp/x y\n/tmp/d",
            &[("path", &["/home/user/lantern/src/a.rs", "/home/user/lantern/b/c.py", "/tmp/x", "/tmp/d"])],
        ),
        // Matching lines: the file stands before the colon, its other lines follow it.
        (
            "src/a.rs:12:let x = y.z;\nsrc/a.rs:19:see b.rs\nlib/q.ts:4:x",
            &[("path", &["/home/user/lantern/src/a.rs", "/home/user/lantern/lib/q.ts"])],
        ),
        ("src/a.rs-10-\nsrc/a.rs-11-    before\nsrc/a.rs:12:hit", &[("path", &["/home/user/lantern/src/a.rs"])]),
        // A name without ending is a head only with a directory and a line number.
        ("bin/run:7:exec\nwarning: unused\nnote:12: x", &[("path", &["/home/user/lantern/bin/run"])]),
        // Words: quotes, brackets, places and punctuation fall off.
        (
            "error in (src/a.rs:3:14), see `docs/b.md`.",
            &[("path", &["/home/user/lantern/src/a.rs", "/home/user/lantern/docs/b.md"])],
        ),
        (
            "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs",
            &[("path", &["/home/user/lantern/src/a.rs"])],
        ),
        ("version 1.2.3, e.g. foo.bar, 3.rs x, .rs x", &[("path", &["/home/user/lantern/3.rs"])]),
        (
            "see the Makefile and README: fine",
            &[("path", &["/home/user/lantern/Makefile", "/home/user/lantern/README"])],
        ),
        // The same file in two spellings is one.
        ("src/a.rs\n/home/user/lantern/src/a.rs\nsrc/./a.rs", &[("path", &["/home/user/lantern/src/a.rs"])]),
        ("at C:\\work\\a.rs\nc:/work/b.rs\n", &[("path", &["C:/work/a.rs", "C:/work/b.rs"])]),
        (
            "[x](https://Docs.Example/A/b/#part), http://one.example/?q=(1).",
            &[("url", &["https://docs.example/A/b", "https://one.example/?q=(1)"])],
        ),
        (
            "Job ID: 7f3a-99b0\ncommit 0f9e8d7c6b\nissue #48213, 12 files, v2",
            &[("id", &["7f3a-99b0", "0f9e8d7c6b", "48213"])],
        ),
        ("<li>https://a.example/x.html</li>", &[("url", &["https://a.example/x.html"])]),
        // A file with numbered lines is no list.
        ("     1→use src/a.rs;\n     2→// src/b.rs", &[]),
        ("12\tsrc/a.rs", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(lists(text), spelled(expected), "{text}");
    }
}

#[test]
fn json_lists_scalars_by_path() {
    let cases: [(&str, Lists); 10] = [
        (
            r#"{"data":{"issues":[{"id":4711,"title":"On fire"},{"id":"4712","title":"x"}]}}"#,
            &[("$.data.issues[].id", &["4711", "4712"]), ("$.data.issues[].title", &["On fire"])],
        ),
        (r#"[{"iid":12},{"iid":7},{"iid":12}]"#, &[("$[].iid", &["12"])]),
        // Documents one after another, and nested arrays.
        ("{\"a\":\"one\"}\n{\"a\":\"two\"}\n[[\"three\"]]", &[("$.a", &["one", "two"]), ("$[][]", &["three"])]),
        // Neither floats nor booleans nor short or long texts.
        (r#"{"a":1.5,"b":true,"c":null,"d":"ab","e":"one\ntwo","f":"7","g":-12}"#, &[("$.g", &["-12"])]),
        // Keys that are no identifiers are data.
        (
            r#"{"user 12":{"x":"one"},"a.b":{"x":"two"},"k12":{"x":"three"},"k1":{"x":"four"}}"#,
            &[("$.*.x", &["one", "two", "three"]), ("$.k1.x", &["four"])],
        ),
        (r#"{"n\u0061me":"one","b\u0020c":"two"}"#, &[("$.name", &["one"]), ("$.*", &["two"])]),
        (
            r#"{"url":"HTTP","link":"http://A.example/b/","file":"src/a.rs","esc":"on\u0065 two"}"#,
            &[
                ("$.url", &["HTTP"]),
                ("$.link", &["https://a.example/b"]),
                ("$.file", &["/home/user/lantern/src/a.rs"]),
                ("$.esc", &["one two"]),
            ],
        ),
        // What is no JSON after all is text.
        (r#"{"a":"src/a.rs"} and more"#, &[("path", &["/home/user/lantern/src/a.rs"])]),
        (r#"{"a":"src/a.rs""#, &[("path", &["/home/user/lantern/src/a.rs"])]),
        ("[INFO] src/a.rs 1", &[("path", &["/home/user/lantern/src/a.rs"])]),
    ];
    for (text, expected) in cases {
        assert_eq!(lists(text), spelled(expected), "{text}");
    }
}

#[test]
fn a_list_says_how_many_values_there_were_and_how_they_stood() {
    let lines: String = (0..100).map(|number| format!("src/f{}.rs:1:x\n", number % 80)).collect();
    let trace = call(json!({}), lines);
    let list = trace.values.lists[0];
    assert_eq!((list.found, list.matches, list.kept, list.flags), (80, 100, 64, 0));
    assert_eq!((trace.values.listed[0].count, trace.values.listed[30].count), (2, 1));
    assert_eq!(trace.values.listed[0].kind, ValueKind::Head);
    let directory = xxh3_64(b"/home/user/lantern/src") as u32;
    assert!(trace.values.listed.iter().all(|value| value.parent == directory));
    let flags = |text: &str| call(json!({}), text).values.lists[0].flags;
    assert_eq!(flags("src/a.rs\nsrc/b.rs"), List::FILES);
    assert_eq!(flags("src/a.rs:1:x\nsrc/a.rs-2-y"), List::CONTEXT);
    assert_eq!(flags("src/a.rs\nin src/b.rs"), 0);
    assert_eq!(flags(r#"["one"]"#), List::JSON);
    let long = "one.rs\n".to_owned() + &"word ".repeat(20_000);
    assert_eq!(flags(&long), List::CUT | List::FILES);
}

#[test]
fn failed_answers_list_nothing() {
    let failed = trace(log(&[asks("m", "c", "Read"), fails("c", "no such file: src/a.rs")]));
    assert_eq!(failed.values.lists, []);
}

/// Arguments of a call: name and hash.
fn arguments(input: Value) -> Vec<(String, u64)> {
    let trace = call(input, "");
    let named =
        |given: &crate::logs::values::GivenArgument| (trace.value_names.text(given.argument).to_owned(), given.value);
    trace.values.given.iter().skip(1).map(named).collect()
}

#[test]
fn arguments_are_the_scalars_of_the_input() {
    let expected = |rows: &[(&str, &str)]| -> Vec<(String, u64)> {
        rows.iter().map(|(name, value)| ((*name).to_owned(), xxh3_64(value.as_bytes()))).collect()
    };
    let input =
        json!({ "file_path": "src/../a", "filter": { "iid": 42, "x": true }, "ids": [[11], "x7y"], "content": "a\nb" });
    let rows = [("file_path", "/home/user/lantern/a"), ("filter.iid", "42"), ("ids[]", "x7y"), ("ids[][]", "11")];
    let mut found = arguments(input);
    found.sort();
    assert_eq!(found, {
        let mut rows = expected(&rows);
        rows.sort();
        rows
    });
    assert_eq!(arguments(json!({ "url": "http://a.example/", "note": "see a.rs" })).len(), 2);
    assert_eq!(arguments(json!("text")), []);
}

#[test]
fn the_hash_of_an_input_follows_from_names_and_values_alone() {
    let whole = |input: Value| {
        let given = call(input, "").values.given[0];
        (given.value, given.leaves)
    };
    let of_file = whole(json!({ "file_path": "/home/user/lantern/a.rs" }));
    assert_eq!(of_file, whole(json!({ "file_path": "./a.rs" })));
    let pair = [xxh3_64(b"file_path").to_le_bytes(), xxh3_64(b"/home/user/lantern/a.rs").to_le_bytes()].concat();
    assert_eq!(of_file, (xxh3_64(&pair), 1));
    assert_eq!(whole(json!({ "a": "one", "b": 12 })), whole(json!({ "b": "12", "a": "one" })));
    assert_ne!(whole(json!({ "a": "one" })), whole(json!({ "a": "one", "b": false })));
    assert_eq!(whole(json!({ "a": "one", "b": false })).1, 2);
}

#[test]
fn a_working_directory_that_stands_behind_the_message_counts_as_well() {
    let record = answers("c", "src/a.rs").without("cwd").set("cwd", "/elsewhere");
    let trace = trace(log(&[asks("m", "c", "Grep"), record]));
    assert_eq!(trace.values.listed[0].value, xxh3_64(b"/elsewhere/src/a.rs"));
}

#[test]
fn addresses_have_one_spelling() {
    let cases = [
        ("http://A.Example/Path/", "https://a.example/Path"),
        ("https://a.example", "https://a.example"),
        ("https://a.example/x_(y))", "https://a.example/x_(y)"),
        ("https://a.example/x?y=1#z", "https://a.example/x?y=1"),
        ("https://a.example?Q=1", "https://a.example?Q=1"),
        ("https://a.example/x!?).", "https://a.example/x"),
    ];
    let mut out = Vec::new();
    for (url, expected) in cases {
        normal_url(url.as_bytes(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), expected, "{url}");
    }
}

/// An address of a million closing brackets: to count them anew for each one would not end.
#[test]
fn the_brackets_of_an_address_are_counted_once() {
    let closed = ")]}".repeat(400_000);
    let mut out = Vec::new();
    normal_url(format!("http://x/(a){closed}").as_bytes(), &mut out);
    assert_eq!(out, b"https://x/(a)");
    normal_url(format!("http://x/([{{{closed}").as_bytes(), &mut out);
    assert_eq!(out, b"https://x/([{)]}");
}

fn any_path() -> impl Strategy<Value = Vec<u8>> {
    let part = prop::sample::select(vec!["a", "b.c", ".", "..", "", ".x", "C:", "\\", "~", "/", "//", "é"]);
    let parts = prop::collection::vec(part, 0..6);
    (parts, any::<bool>())
        .prop_map(|(parts, rooted)| [if rooted { "/" } else { "" }, &parts.join("/")].concat().into_bytes())
}

/// A path as [`normal_path`] says it: a list of parts, joined.
fn of_parts(path: &[u8], cwd: Option<&[u8]>) -> Vec<u8> {
    let path = match cwd.filter(|cwd| !cwd.is_empty() && !is_rooted(path)) {
        Some(cwd) => [cwd, b"/", path].concat(),
        None => path.to_vec(),
    };
    let (root, rest, is_windows) = match &path[..] {
        [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic() => {
            (vec![letter.to_ascii_uppercase(), b':', b'/'], &path[2..], true)
        }
        [b'\\', b'\\', rest @ ..] => (br"\\".to_vec(), rest, true),
        [b'/', rest @ ..] => (b"/".to_vec(), rest, false),
        rest => (Vec::new(), rest, false),
    };
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in rest.split(|&byte| byte == b'/' || (is_windows && byte == b'\\')) {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => drop(parts.pop()),
            b".." if !root.is_empty() => {}
            _ => parts.push(part),
        }
    }
    let parts = parts.join(&b'/');
    let behind: &[u8] = if !is_rooted(&path) && is_rooted(&parts) { b"./" } else { b"" };
    let whole = [&root, behind, &parts].concat();
    if whole.is_empty() { b".".to_vec() } else { whole }
}

/// Reads an answer and an input and turns them into rows.
fn drafted(answer: &[u8], input: &[u8]) -> ValueRows {
    let mut draft = ValueDraft::new(guide().values);
    let mut rows = ValueRows::default();
    draft.answer(0, answer, true);
    draft.answer(1, answer, true);
    draft.input(0, input);
    draft.commit(Some(b"/w"), 1..3, 3..4, &mut rows);
    rows
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_path_is_written_as_its_parts_say(path in any_path(), cwd in any_path(), known in any::<bool>()) {
        let cwd = known.then_some(&cwd[..]);
        let mut out = b"left over".to_vec();
        normal_path_into(&path, cwd, &mut out);
        prop_assert_eq!(&out, &of_parts(&path, cwd));
        prop_assert_eq!(out, normal_path(&path, cwd));
    }

    #[test]
    fn any_bytes_are_read_and_every_list_has_its_values(
        pieces in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![
                "{", "}", "[", "]", "\"", ":", ",", "\\", "\n", "/", "//", "://", "https://", "a.rs", "\"k\":", "12", "-", "\\u00",
                "src/", " ", "a/b", "C:/", "null", "1e9", "\r", "→", "1\t",
            ]).prop_map(|piece| piece.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 1..5),
        ], 0..40),
    ) {
        let bytes = pieces.concat();
        let rows = drafted(&bytes, &bytes);
        let kept: usize = rows.lists.iter().map(|list| usize::from(list.kept)).sum();
        prop_assert_eq!(kept, rows.listed.len());
        prop_assert!(rows.lists.iter().all(|list| list.kept > 0 && list.found >= list.kept && list.matches >= u32::from(list.found)));
        let half = rows.lists.len() / 2;
        prop_assert!(rows.lists[..half].iter().zip(&rows.lists[half..]).all(|(a, b)| a.extractor == b.extractor && a.kept == b.kept));
        prop_assert_eq!(rows.given.first().map(|given| given.block), Some(3));
    }
}
