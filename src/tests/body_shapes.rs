//! The shape of a response: the published vectors, and one text per rule.

use proptest::prelude::*;

use crate::base::body_shape::BodyShape;
use crate::base::body_shape::BodyShape::*;
use crate::facts::shape::{Description, classify, describe};
use crate::tests::log_builder::{cases, *};

#[track_caller]
fn check(vectors: &[(&str, BodyShape)]) {
    for (text, shape) in vectors {
        assert_eq!(classify(text.as_bytes()), *shape, "{text:?}");
    }
}

#[test]
fn the_published_vectors_come_out_as_published() {
    check(&[
        (r#"[{"id":1,"name":"a"},{"id":2,"name":"b"}]"#, ArrayOfObjects),
        (r#"[{"a":1,"b":2},{"c":3,"d":4}]"#, ArrayOfObjects),
        (r#"[1,"two",{"three":3}]"#, NestedObject),
        (r#"{"commit":"abc1234def","time":"2026-04-24 18:30:00","url":"https://x.y/z"}"#, FlatObject),
        (r#"{"mr_id":42,"diffs":"@@ -1,3 +1,3 @@\n-old\n+new"}"#, FlatObject),
        (r#"{"a":{"b":{"c":{"d":{"e":"https://x.y/z"}}}}}"#, NestedObject),
    ]);
}

#[test]
fn json_is_told_by_its_members() {
    check(&[
        ("[]", Empty),
        ("{}", Empty),
        ("[ ]", Empty),
        (" \n\t[1, 2.5, \"x\", true, null]\n", ArrayOfPrimitives),
        ("[null]", ArrayOfPrimitives),
        ("[{}]", ArrayOfObjects),
        ("[[1],[2]]", NestedObject),
        ("[{},[]]", NestedObject),
        ("[{},1]", NestedObject),
        (r#"{"a":null,"b":"[1]"}"#, FlatObject),
        (r#"{"a":1,"b":[]}"#, NestedObject),
        (r#"{"a":{},"b":1}"#, NestedObject),
    ]);
}

#[test]
fn what_is_not_json_as_a_whole_is_text() {
    check(&[
        ("[1,2", Prose),
        ("[1,2]]", Prose),
        ("{\"a\":1} {\"b\":2}", Prose),
        ("{a: 1}", Prose),
        ("[INFO] started", Prose),
        ("[1,]", Prose),
        ("x [1]", Prose),
        ("7", Prose),
        ("\"text\"", Prose),
        ("null", Prose),
        ("{\"a\":1}\n- one\n- two\n- three", BulletList),
    ]);
}

#[test]
fn brackets_around_something_that_is_no_number_are_text() {
    check(&[("[2026-01-02]", Prose), ("[10.0.0.1]", Prose), ("[1-2]", Prose)]);
}

#[test]
fn a_table_is_a_row_and_a_rule_wherever_they_stand() {
    check(&[
        ("| a | b |\n|---|---|\n| 1 | 2 |", MarkdownTable),
        ("text before\n\n  | a | b |  \n  | :-- | --: |\nand after", MarkdownTable),
        ("|a|\n||", MarkdownTable),
        ("| a |\r\n| - |\r\n", MarkdownTable),
        ("| a | b |\n\n|---|---|", Prose),
        ("| a | b |\n| 1 | 2 |", Prose),
        ("a | b\n---|---", Prose),
        ("| a | b\n|---|---|", Prose),
        ("|---|---|", Prose),
    ]);
}

#[test]
fn a_fence_needs_its_end() {
    check(&[
        ("```rust\nfn f() {}\n```", CodeBlock),
        ("see\n  ```\nx\n  ```\n", CodeBlock),
        ("```\nx", Prose),
        ("`` `x` ``\n`` `y` ``", Prose),
    ]);
}

#[test]
fn three_numbered_lines_are_a_list() {
    check(&[
        ("     1→a\n     2→b\n    10→c", NumberedList),
        ("1→\n2→\n3→", NumberedList),
        ("1→a\n2→b\nc", Prose),
        ("→a\n→b\n→c", Prose),
        ("1. a\n2. b\n3. c", Prose),
    ]);
}

#[test]
fn a_tab_numbers_lines_whose_numbers_follow_one_another() {
    check(&[
        ("     1\ta\n     2\tb\n     3\tc", NumberedList),
        ("head\n98\ta\n99\t\n100\tc\n\ntail", NumberedList),
        ("7\t\n8\t\n9\t", NumberedList),
        ("1\ta\n2\tb\n4\tc\n5\td", Prose),
        ("1\ta\n\n2\tb\n3\tc", Prose),
        ("12\t0\ta.rs\n13\t1\tb.rs\n2\t2\tc.rs", Prose),
        ("3\ta\n2\tb\n1\tc", Prose),
        ("1 \ta\n2 \tb\n3 \tc", Prose),
        ("18446744073709551615\ta\n0\tb\n1\tc", Prose),
    ]);
}

fn described(text: &str) -> Description {
    describe(text, classify(text.as_bytes()))
}

#[test]
fn the_published_vectors_have_the_published_measures() {
    let twins = described(r#"[{"id":1,"name":"a"},{"id":2,"name":"b"}]"#);
    assert_eq!((twins.items, twins.key_stability, twins.depth), (2, 1.0, 2));
    let strangers = described(r#"[{"a":1,"b":2},{"c":3,"d":4}]"#);
    assert_eq!((strangers.items, strangers.key_stability), (2, 0.0));
    let flat = described(r#"{"commit":"abc1234def","time":"2026-04-24 18:30:00","url":"https://x.y/z"}"#);
    assert_eq!((flat.fields, flat.depth, flat.items), (3, 1, 0));
    assert_eq!(described(r#"{"a":{"b":{"c":1}}}"#).depth, 3);
}

#[test]
fn depth_is_that_of_the_deepest_container() {
    for (text, depth) in [
        ("[]", 1),
        (" {} ", 1),
        ("[1]", 1),
        ("[[], {}]", 2),
        (r#"{"a":"[[[[","b":"\"{{"}"#, 1),
        (r#"[{"a":[{"b":"]"}]},[1]]"#, 4),
        ("prose [[[", 0),
    ] {
        assert_eq!(described(text).depth, depth, "{text}");
    }
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(described(&nested(1000)).depth, 1000);
    assert_eq!(classify(nested(100_000).as_bytes()), Prose);
    assert_eq!(described(&nested(100_000)), Description::default());
}

#[test]
fn stability_is_the_mean_over_the_first_twenty_elements() {
    let stability = |text: &str| described(text).key_stability;
    assert_eq!(stability(r#"[{"a":1}]"#), 1.0);
    assert_eq!(stability("[{},{}]"), 1.0);
    assert_eq!(stability(r#"[{},{"a":1}]"#), 0.0);
    assert_eq!(stability(r#"[{"a":1,"b":2},{"b":1,"a":2},{"b":1,"c":1},{"a":1}]"#), (1.0 + 1.0 / 3.0 + 0.5) / 3.0);
    assert_eq!(stability(r#"[{"\u0061":1,"a":1},{"a":{"x":1}}]"#), 1.0);
    let late = |same: usize| format!(r#"[{}{{"b":1}}]"#, r#"{"a":1},"#.repeat(same));
    assert_eq!((stability(&late(20)), stability(&late(19))), (1.0, 18.0 / 19.0));
}

#[test]
fn arrays_count_their_elements_and_objects_their_members() {
    assert_eq!(described("[1, 2, null]").items, 3);
    assert_eq!(described("[1, [2], {}]").items, 3);
    assert_eq!(described(r#"{"a":1,"b":{"c":2,"d":3}}"#).fields, 2);
}

#[test]
fn a_table_is_measured_by_its_header_and_the_rows_below_it() {
    for (text, columns, rows) in [
        ("| a | b |\n|---|---|\n| 1 | 2 |", 2, 1),
        ("  | a | b |  \n  |---|---|  \n  | 1 | 2 |\n| 3 | 4 |\n", 2, 2),
        ("| a \\| b | c |\n|---|---|\n", 2, 0),
        ("| a | | c |\n|---|---|---|\n| 1 |", 3, 1),
        ("|a||c|\n|---|---|---|\n", 3, 0),
        ("| a |\r\n|---|\r\n| 1 |\r\n\r\n| 2 |\r\n", 1, 1),
        ("| a |\n|---|\n| 1 |\nbetween\n| 2 |\n\n| b | c |\n|---|---|\n| 3 | 4 |", 1, 2),
        ("x\n| 0 |\n| a | b | c |\n|---|---|---|\n| 1 |\n| 2 |\n| 3 |", 3, 3),
        ("|a \\||\n|-|\n", 1, 0),
    ] {
        let table = described(text);
        assert_eq!((table.columns, table.rows), (columns, rows), "{text:?}");
    }
}

#[test]
fn large_bodies_are_measured_in_one_pass() {
    let table = described(&format!("| a | b |\n|---|---|\n{}", "| 1 | 2 |\n".repeat(100_000)));
    assert_eq!((table.columns, table.rows), (2, 100_000));
    let keys: Vec<String> = (0..5000).map(|key| format!(r#""k{key}":1"#)).collect();
    let object = format!("{{{}}}", keys.join(","));
    let rows = described(&format!("[{}]", [object.as_str(); 20].join(",")));
    assert_eq!((rows.items, rows.key_stability, rows.depth), (20, 1.0, 2));
    let items = described(&format!("[{}1]", "1,".repeat(200_000)));
    assert_eq!(items.items, 200_001);
}

#[test]
fn spaces_may_stand_anywhere_before_the_arrow() {
    check(&[("1 →a\n2 →b\n3 →c", NumberedList), (" 1 0→a\n2→b\n3→c", NumberedList)]);
}

#[test]
fn three_bullets_are_a_list() {
    check(&[
        ("- a\n- b\n- c", BulletList),
        ("head\n  * a\n\ntext\n  - b\n* c", BulletList),
        ("- a\n- b", Prose),
        ("-a\n-b\n-c", Prose),
        ("+ a\n+ b\n+ c", Prose),
    ]);
}

#[test]
fn the_first_rule_that_fits_decides() {
    let (table, fence) = ("| a |\n|---|", "```\nx\n```");
    let (numbered, bullets) = ("1→a\n2→b\n3→c", "- a\n- b\n- c");
    let join = |parts: &[&str]| parts.join("\n");
    check(&[
        (&join(&[bullets, numbered, fence, table]), MarkdownTable),
        (&join(&[bullets, numbered, fence]), CodeBlock),
        (&join(&[bullets, numbered]), NumberedList),
        (&join(&["text", bullets, "text"]), BulletList),
    ]);
}

#[test]
fn a_body_without_text_is_prose() {
    check(&[("", Prose), (" \n\t\n", Prose), ("just a line", Prose)]);
    assert_eq!(classify(b"\xED\xA0\xBD half a pair"), Prose);
}

#[test]
fn names_and_numbers_are_stable() {
    let names = [
        "unknown",
        "empty",
        "prose",
        "numbered_list",
        "bullet_list",
        "code_block",
        "markdown_table",
        "nested_object",
        "flat_object",
        "array_of_objects",
        "array_of_primitives",
    ];
    for (number, name) in (0..).zip(names) {
        let shape = BodyShape::from_number(number);
        assert_eq!((shape.into_str(), shape as u8), (name, number));
    }
    assert_eq!(BodyShape::from_number(11), Unknown);
}

#[test]
fn the_log_reader_asks_for_the_shape_of_mcp_results_only() {
    for (tool, shape) in [("mcp__a__b", BulletList), ("Read", Unknown)] {
        let told = Told::of(&[("f", &log(&[asks("m1", "c1", tool), answers("c1", "- a\n- b\n- c")]))]);
        assert_eq!(BodyShape::from_number(told.call("c1").shape), shape, "{tool}");
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_body_has_a_shape(body in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        "[-|:` \n1→*\\[\\]{}\",a]{0,60}".prop_map(String::into_bytes),
    ]) {
        let shape = classify(&body);
        prop_assert_ne!(shape, Unknown);
        prop_assert_eq!(BodyShape::from_number(shape as u8), shape);
    }

    #[test]
    fn what_serde_takes_for_json_is_classified_as_json(body in "[ ]?[\\[{][\\[\\]{}\",:a1 ]{0,12}[\\]}][\n]?") {
        let expected = match serde_json::from_str::<serde_json::Value>(&body) {
            Ok(value) if value == serde_json::json!([]) || value == serde_json::json!({}) => Some(vec![Empty]),
            Ok(serde_json::Value::Object(_)) => Some(vec![FlatObject, NestedObject]),
            Ok(_) => Some(vec![ArrayOfObjects, ArrayOfPrimitives, NestedObject]),
            Err(_) => None,
        };
        if let Some(expected) = expected {
            prop_assert!(expected.contains(&classify(body.as_bytes())), "{}", body);
        }
    }
}
