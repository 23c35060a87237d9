//! What the published pipeline would have sent: the published examples, and its losses, which are the point.

use crate::base::body_shape::BodyShape;
use crate::facts::legacy::published_output;
use crate::facts::shape::classify;

fn output(text: &str) -> Option<(&'static str, String)> {
    published_output(text, classify(text.as_bytes()))
}

#[track_caller]
fn check(text: &str, id: &str, expected: &str) {
    assert_eq!(output(text), Some((id, expected.to_owned())), "{text}");
}

const TABLE: &str = "| id | name | status |\n|----|------|--------|\n| 1 | a | ok |\n";
const COMPANY: &str = concat!(
    r#"{"company":"Acme","year":2026,"employees":["#,
    r#"{"id":1,"name":"Alice","dept":"Eng"},{"id":2,"name":"Bob","dept":"Sales"}]}"#,
);
const COMPANY_TABLE: &str = "company: Acme
year: 2026

| id | name | dept |
| --- | --- | --- |
| 1 | Alice | Eng |
| 2 | Bob | Sales |
";

#[test]
fn the_published_examples_come_out_as_published() {
    check(TABLE, "csv_from_md", "id,name,status\n1,a,ok\n");
    check(COMPANY, "deep_mckp_inner_table", COMPANY_TABLE);
}

#[test]
fn a_table_loses_all_that_is_not_its_first_one() {
    let text = format!("Title\n\n{TABLE}in between\n| 2 | b |\n| 3 | c | no | more |\n\nEnd\n\n{TABLE}");
    check(&text, "csv_from_md", "id,name,status\n1,a,ok\n2,b,\n3,c,no\n");
    check("| a | b |\n|---|---|\n", "csv_from_md", "a,b\n");
}

#[test]
fn cells_are_split_at_every_pipe_and_quoted_as_in_csv() {
    let text = "| a | b |\n|---|---|\n| x \\| y | z |\n||late|\n| 1,2 | say \"so\" |\n";
    check(text, "csv_from_md", "a,b\nx \\,y\nlate,\n\"1,2\",\"say \"\"so\"\"\"\n");
}

#[test]
fn the_router_asks_for_two_columns_and_counts_blanks_around_the_header() {
    assert_eq!(output("| a |\n|---|\n| 1 |\n"), None);
    check("  | a |\n|---|\n| 1 |\n", "csv_from_md", "a\n1\n");
}

#[test]
fn an_array_becomes_csv_with_sorted_columns_and_no_types() {
    let text = r#"[{"b":1,"a":"x, y"},{"b":null,"a":""},{"b":true,"a":"null"},{"b":[1, 2],"a":{"c": 1}}]"#;
    check(text, "csv", "a,b\n\"x, y\",1\n,\nnull,true\n\"{\"\"c\"\":1}\",\"[1,2]\"\n");
}

#[test]
fn an_array_that_is_short_or_unstable_is_only_compacted() {
    let three = r#"[{"a": 1}, {"a": 2}, {"a": 3}]"#;
    check(three, "json_compact", r#"[{"a":1},{"a":2},{"a":3}]"#);
    let unstable = r#"[{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}]"#;
    check(unstable, "json_compact", r#"[{"a":1},{"b":2},{"c":3},{"d":4}]"#);
    assert_eq!(output(r#"[{"a":1},{"a":2},{"a":3}]"#), None);
}

#[test]
fn keys_that_appear_late_are_lost() {
    let rows: Vec<String> =
        (0..201).map(|row| format!(r#"{{"a":{row}{}}}"#, if row == 200 { r#","late":1"# } else { "" })).collect();
    let (id, csv) = output(&format!("[{}]", rows.join(","))).unwrap();
    assert_eq!((id, csv.lines().next(), csv.lines().last()), ("csv", Some("a"), Some("200")));
}

#[test]
fn a_wide_object_becomes_lines() {
    let text = r#"{"a":1,"b":"x\ny","c":null,"d":false,"e":1.50,"f":"","g":"7","h":8}"#;
    check(text, "kv", "a: 1\nb: x\ny\nc: \nd: false\ne: 1.50\nf: \ng: 7\nh: 8\n");
    check(r#"{"a": 1, "b": 2}"#, "json_compact", r#"{"a":1,"b":2}"#);
}

#[test]
fn a_nested_object_without_a_table_is_only_compacted() {
    check(r#"{"a": {"b": 1}}"#, "deep_mckp", r#"{"a":{"b":1}}"#);
    assert_eq!(output(r#"{"a":{"b":1}}"#), None);
}

#[test]
fn an_inner_table_loses_what_is_no_object_and_flattens_cells() {
    let odd =
        r#"{"n":null,"o":{"x":1},"rows":[{"a":"p|q"},{"a":"l\nm","b":[1]},{"a":null},{},"lost"],"more":[{"a":1}]}"#;
    let text = format!("{odd}{}", " ".repeat(40));
    let table =
        "o: {\"x\":1}\nmore: [{\"a\":1}]\n\n| a | b |\n| --- | --- |\n| p\\|q |  |\n| l m | [1] |\n|  |  |\n|  |  |\n";
    check(&text, "deep_mckp_inner_table", table);
    let fewer_objects = r#"{"rows": [{"a": 1}, {"a": 2}, 3]}"#;
    check(fewer_objects, "deep_mckp", r#"{"rows":[{"a":1},{"a":2},3]}"#);
}

#[test]
fn of_several_arrays_the_longest_is_taken_and_of_those_the_first() {
    let text = r#"{"short":[{"s":1},{"s":2}],"one":[{"a":1},{"a":2},{"a":3}],"two":[{"b":1},{"b":2},{"b":3}]}"#;
    let (id, table) = output(&format!("{text}{}", " ".repeat(20))).unwrap();
    assert_eq!(id, "deep_mckp_inner_table");
    assert!(table.ends_with("\n\n| a |\n| --- |\n| 1 |\n| 2 |\n| 3 |\n"), "{table}");
}

#[test]
fn other_shapes_have_no_output() {
    for text in ["", "prose", "- a\n- b\n- c", "```\nx\n```", "[1, 2, 3]", "{}", "[ ]"] {
        assert_eq!(output(text), None, "{text}");
    }
    assert_eq!(output(r#"{"a": 1, "a": 2}"#), None);
}

#[test]
fn what_is_not_shorter_is_not_sent() {
    let quoted = "|\"|,|\n|-|-|\n|\"|,|\n|\"|,|\n|\"|,|\n|\"|,|\n";
    assert_eq!(output(quoted), None);
    assert_eq!(output(r#"{"rows":[{"a":1},{"a":2}]}"#), None);
}

#[test]
fn wide_headers_over_many_rows_end_early() {
    let table = format!("|{}\n|-|\n{}", "a|".repeat(30_000), "|x|\n".repeat(30_000));
    assert_eq!(published_output(&table, BodyShape::MarkdownTable), None);
    let wide: Vec<String> = (0..10_000).map(|key| format!(r#""k{key}":1"#)).collect();
    let rows = format!("[{}{},{{{}}}]", r#"{"a":1}"#, r#",{"a":1}"#.repeat(20_000), wide.join(","));
    assert!(output(&rows).is_some());
    let early = format!("[{},{{{}}}{}]", [r#"{"a":1}"#; 20].join(","), wide.join(","), r#",{"a":1}"#.repeat(20_000));
    assert_eq!(output(&early), None);
    let inner = format!(r#"{{"rows":{early}}}"#);
    assert_eq!(output(&inner), None);
}
