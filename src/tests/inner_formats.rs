//! Inner formats: the published vectors, what each detector takes and what it leaves, and the limits of the search.

use proptest::prelude::*;

use crate::base::body_shape::BodyShape;
use crate::facts::inner_formats::{InnerFormat, InnerFormats, find};
use crate::facts::shape::classify;
use crate::tests::log_builder::cases;

/// The tags of a body, joined.
fn tags(body: &str) -> String {
    let found = find(body, classify(body.as_bytes()));
    found.iter().map(|format| format.into_str()).collect::<Vec<_>>().join(",")
}

/// The tags of a text that stands in an object.
fn tags_in_json(text: &str) -> String {
    tags(&serde_json::json!({ "x": text }).to_string())
}

#[track_caller]
fn check(tag: &str, taken: &[&str], left: &[&str]) {
    for text in taken {
        for tags in [tags(text), tags_in_json(text)] {
            assert!(tags.split(',').any(|found| found == tag), "{tag} in {text:?}: {tags:?}");
        }
    }
    for text in left {
        for tags in [tags(text), tags_in_json(text)] {
            assert!(!tags.split(',').any(|found| found == tag), "no {tag} in {text:?}: {tags:?}");
        }
    }
}

#[test]
fn the_published_vectors_come_out_as_published() {
    assert_eq!(tags(r#"{"commit":"abc1234def","time":"2026-04-24 18:30:00","url":"https://x.y/z"}"#), "url,log,hash");
    assert_eq!(tags(r#"{"mr_id":42,"diffs":"@@ -1,3 +1,3 @@\n-old\n+new"}"#), "diff");
    assert_eq!(tags(r#"{"a":{"b":{"c":{"d":{"e":"https://x.y/z"}}}}}"#), "url");
    assert_eq!(tags(r#"{"a":{"b":{"c":{"d":{"e":{"f":"https://x.y/z"}}}}}}"#), "");
}

#[test]
fn names_and_bits_are_stable() {
    let names = "url log hash diff md md_table md_with_code code_fence \
                 xml_html yaml stack_trace numbered_list inline_json prose";
    let all = InnerFormats((1 << 14) - 1);
    assert!(all.iter().map(|format| format.into_str()).eq(names.split(' ')));
    for (bit, format) in InnerFormat::ALL.iter().copied().enumerate() {
        assert!(InnerFormats(1 << bit).iter().eq([format]));
    }
}

#[test]
fn a_link_has_a_scheme_and_a_host() {
    check(
        "url",
        &["https://a.example", "see (http://localhost:1/x)", "\"https://[::1]/x\" is one", "https://$HOST/path"],
        &["https://", "the https: scheme", "http:// nothing", "ftp://a.example", "s3://bucket/key", "x://y and http"],
    );
}

#[test]
fn a_log_has_a_full_and_possible_timestamp() {
    check(
        "log",
        &[
            "2026-04-24 18:30:00",
            "[2026-04-24T18:30:00.123Z] up",
            "2026/04/24 18:30:59 GET /",
            "at:2026-12-31 23:59:60",
        ],
        &[
            "2026-04-24 18:30",
            "2026-13-24 18:30:00",
            "2026-00-24 18:30:00",
            "2026-04-32 18:30:00",
            "2026-04-24 24:30:00",
            "2026-04-24 18:60:00",
            "0001-01-01T00:00:00Z",
            "12026-04-24 18:30:00",
            "2026-04/24 18:30:00",
            "2026-04-24_18:30:00",
            "18:30:00 up",
            "Fri Apr 24 18:30:00 2026",
        ],
    );
}

#[test]
fn a_hash_is_a_word_of_its_own_with_digits_and_letters() {
    let (sha1, sha256) = ("d6f1".repeat(10), "0fe1".repeat(16));
    check(
        "hash",
        &["commit abc1234", "index 0a1b2c3d..4e5f6a7b 100644", "(1a2B".replace('B', "b3c4d)").as_str(), &sha1, &sha256],
        &[
            "id 1234567",
            "a defaced, effaced façade",
            "xdeadbeef1x",
            "0xdeadbeef1",
            "abc123",
            "ABCdef123",
            "color: #a1b2c3d4",
            "run 01234567-89ab-cdef-0123-456789abcdef again",
            "agent-a1b2c3d.jsonl",
            "file_abc1234",
            "abc1234é, éabc1234",
            "1.797693134862315e308 and 1234567e10",
            "float 1000000f",
            "000001a0: 7f45 4c46",
            "a1b2c3d4e5f6a",        // 13
            "a1b2c3d4e5f6a7b8c9d0", // 20
            &"d6f1".repeat(11),
        ],
    );
}

#[test]
fn a_hash_is_found_wherever_it_lies() {
    for length in [7, 12, 40, 128] {
        let hash: String = "4f0c".chars().cycle().take(length).collect();
        for before in 0..20 {
            for after in 0..8 {
                let text = format!("{}{hash}{}", ".".repeat(before), " z zz z"[..after.min(7)].to_owned());
                assert_eq!(tags(&text), "hash", "{text}");
            }
        }
    }
}

#[test]
fn a_diff_has_a_hunk_header_or_a_git_header() {
    check(
        "diff",
        &["@@ -1 +1 @@", "  @@ -1,3 +1,4 @@ fn main()", "@@@ -1,2 -1,2 +1,3 @@@", "text\ndiff --git a/x b/x\n"],
        &["@@ x @@", "@@ -1,3 +1,4", "a @@ -1 +1 @@", "run diff --git a/x", "@param -1 @@ "],
    );
}

#[test]
fn markdown_has_headings() {
    check(
        "md",
        &["## Why it is so", "text\n### Deep\ntext", "# Title\n\nText follows."],
        &[
            "# a comment\nlet x = 1;",
            "#!/bin/sh and",
            "####### seven levels",
            "#no blank here",
            "    ## indented as code",
            "# the last line",
        ],
    );
}

#[test]
fn a_table_is_a_row_and_a_rule() {
    let table = "| a | b |\n|---|---|\n| 1 | 2 |";
    assert_eq!(tags_in_json(table), "md_table");
    assert_eq!(tags_in_json("| a | b |\n| 1 | 2 |"), "prose");
    // What the shape says is not said twice.
    assert_eq!(tags(table), "");
}

#[test]
fn code_is_fenced_from_line_to_line() {
    assert_eq!(tags_in_json("```rust\nfn f() {}\n```"), "code_fence");
    assert_eq!(tags_in_json("See:\n```rust\nfn f() {}\n```"), "md_with_code,code_fence");
    assert_eq!(tags_in_json("```rust\nfn f() {}\n```\nDone."), "md_with_code,code_fence");
    assert_eq!(tags_in_json("```rust\nfn f() {}"), "prose");
    assert_eq!(tags("```rust\nfn f() {}\n```"), "");
    assert_eq!(tags("See:\n```rust\nfn f() {}\n```"), "md_with_code");
    let in_table = "| a |\n|---|\n\n```\nx\n```";
    assert_eq!(tags(in_table), "md_with_code,code_fence");
}

#[test]
fn an_element_has_two_tags() {
    check(
        "xml_html",
        &["<p>one</p>", "<a href=\"x\">two</a>", "x <my-tag\n a='1'>y</my-tag>", "</b> then <i>x</i>"],
        &["<p>one", "one</p>", "<br/> and text", "a </ b", "Vec<Vec<u8>> and i</j", "<pre>x</p>", "<p>x</ p>"],
    );
}

#[test]
fn yaml_is_mostly_keys() {
    check(
        "yaml",
        &[
            "name: a\non: push\njobs:\n  build:\n    - run: x",
            "- id: 1\n- id: 2\n- id: 3",
            "a: 1\nb: 2\nc: 3\nx\ny\nz\nw",
        ],
        &[
            "name: a\non: push",
            "hint: one\nhint: two\nhint: three",
            "a: 1\nb: 2\nc: 3\nx\ny\nz\nw\nv",
            "a: number;\nb: string,\nc: {",
            "a:1\nb:2\nc:3",
            "12: a\n13: b\n14: c",
            "two words: a\nmore words: b\nstill more: c",
        ],
    );
}

#[test]
fn a_stack_trace_has_frames() {
    check(
        "stack_trace",
        &[
            "Traceback (most recent call last):\n  File \"x\", line 1",
            "Error: x\n    at f (a.js:1:2)",
            "Error: x\n    at node:internal/x:1:2",
            "X\n\tat a.b.C.d(C.java:1)",
            "goroutine 1 [running]:\nmain.main()",
            "stack backtrace:\n   0: f",
        ],
        &["we meet\n    at the end of it", "at f (a.js:1:2)", "Traceback omitted", "goroutine 1 ends"],
    );
}

#[test]
fn numbered_lines_are_told_as_by_the_shape() {
    assert_eq!(tags_in_json("1→a\n2→b\n3→c"), "numbered_list");
    assert_eq!(tags_in_json("  9\ta\n 10\tb\n 11\tc"), "numbered_list");
    assert_eq!(tags_in_json("1→a\n2→b"), "prose");
    assert_eq!(tags("1→https://a.example\n2→## b\n3→c"), "");
}

#[test]
fn inline_json_fills_its_lines() {
    check(
        "inline_json",
        &[
            "got\n{\"a\": 1, \"b\": [2, 3]}\ndone",
            "got\n  [\n    \"one\",\n    \"two, three\"\n  ]  \ndone",
            "{broken}\n[1] x\n{\"a\": \"0123456789a\"}",
        ],
        &[
            "got {\"a\": 1, \"b\": [2, 3]}",
            "{\"a\": 1}\nand so on",
            "{\"a\": 1, \"b\": [2, 3]} x",
            "[2026-01-01 12:00:00] started",
        ],
    );
    assert_eq!(tags(r#"{"body":"{\"a\": [1, 2, 3, 4, 5]}"}"#), "inline_json");
}

#[test]
fn prose_is_text_of_several_lines_inside_json() {
    assert_eq!(tags_in_json("One line.\nAnother line."), "prose");
    assert_eq!(tags_in_json("See https://a.example\nfixed in abc1234."), "url,hash,prose");
    assert_eq!(tags_in_json("One line only, however long it may be."), "");
    assert_eq!(tags_in_json("fn f() {\n    a();\n    b();\n    c();\n}"), "");
    assert_eq!(tags_in_json("## Heading\nText."), "md");
    assert_eq!(tags_in_json("up 2026-04-24 18:30:00\ndown"), "log");
    assert_eq!(tags("One line.\nAnother line."), "");
}

#[test]
fn escapes_are_resolved_and_keys_and_short_strings_are_not_looked_at() {
    assert_eq!(tags(r#"["\u0068ttps:\/\/a.example"]"#), "url");
    assert_eq!(tags(r#"["\ud800 https://a.example"]"#), "url");
    assert_eq!(tags(r#"{"https://a.example":"2026-04-24"}"#), "");
    assert_eq!(tags(r#"["http://a"]"#), "url");
    assert_eq!((tags("[\"\\n\\n\\n## a\"]"), tags("[\"\\n\\n\\n## ab\"]")), (String::new(), "md".into()));
    assert_eq!(tags(r#"["abc1234"]"#), "");
    assert_eq!(tags(r#"{"a":[[1,{"b":["https://a.example"]}]]}"#), "url");
}

#[test]
fn the_search_in_json_is_bounded() {
    let array = |before: usize| format!(r#"[{}"https://a.example",[2]]"#, "1,".repeat(before));
    assert_eq!((tags(&array(99)), tags(&array(100))), ("url".into(), String::new()));
    let object = |before: usize| {
        let members: String = (0..before).map(|key| format!(r#""k{key}":1,"#)).collect();
        format!(r#"{{{members}"x":"https://a.example"}}"#)
    };
    assert_eq!((tags(&object(199)), tags(&object(200))), ("url".into(), String::new()));
    let beside = format!(r#"[[{}1],"https://a.example"]"#, "1,".repeat(500));
    assert_eq!(tags(&beside), "url");
}

#[test]
fn empty_bodies_have_nothing() {
    for (text, shape) in [("", BodyShape::Prose), ("{}", BodyShape::Empty), ("\n\n", BodyShape::Prose)] {
        assert_eq!(find(text, shape), InnerFormats::default());
    }
}

#[test]
fn hostile_texts_take_one_pass() {
    let size = 60_000;
    for text in [
        "[".repeat(size),
        "[\n".repeat(size / 2),
        "{\"a\":[\n".repeat(size / 7),
        "[\"\n".repeat(size / 3),
        "</a>".repeat(size / 4),
        "<a</a>".repeat(size / 6),
        "a".repeat(size),
        "a1".repeat(size / 2),
        ":".repeat(size),
        "`".repeat(size),
        "\n".repeat(size),
        "@".repeat(size),
        "#".repeat(size),
        "|".repeat(size),
        "|\n".repeat(size / 2),
        "1\t\n".repeat(size / 3),
        "x: \n".repeat(size / 4),
        "http://".repeat(size / 7),
    ] {
        find(&text, classify(text.as_bytes()));
        find(&serde_json::json!({ "x": text }).to_string(), BodyShape::FlatObject);
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn any_text_can_be_searched(
        text in prop_oneof![
            any::<String>(),
            "[-|:` \n1→\ta{}\\[\\]\"\\\\,@#<>/eé]{0,60}",
            "(https?://|2026-01-01|[ T]|12:00:00|abc1234|@@ -1|<a>|</a>|\n|# |a: ){0,12}",
        ],
    ) {
        find(&text, classify(text.as_bytes()));
        let json = serde_json::json!([{ "x": text }]).to_string();
        prop_assert_eq!(classify(json.as_bytes()), BodyShape::ArrayOfObjects);
        find(&json, BodyShape::ArrayOfObjects);
    }

    #[test]
    fn a_format_in_a_string_is_found_at_any_depth_up_to_five(depth in 1_usize..8, in_arrays in any::<bool>()) {
        let (open, close) = if in_arrays { ("[", "]") } else { (r#"{"k":"#, "}") };
        let body = format!("{}\"https://a.example\"{}", open.repeat(depth), close.repeat(depth));
        prop_assert_eq!(tags(&body), if depth <= 5 { "url" } else { "" });
    }
}
