//! JSON trees, and the formats for JSON bodies: nothing is lost, and what is ordinary is not refused.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;

use crate::facts::encode::{Format, Meaning, Params, Subject, prove};
use crate::facts::encode::{csv, json, kv, markdown_table, mckp_v2, mr_diff_fence};
use crate::facts::json_tree::{Json, JsonRefusal};
use crate::facts::shape::classify;
use crate::tests::log_builder::cases;

const KNOBS: Params = Params { recursion_depth: 5, numbered_every: 10 };

const ALL: [&Format; 7] = [
    &json::COMPACT,
    &json::PRETTY,
    &kv::FORMAT,
    &csv::FORMAT,
    &markdown_table::FORMAT,
    &mckp_v2::FORMAT,
    &mr_diff_fence::FORMAT,
];

/// The encoding of a body, checked: it decodes to what the body says, member for member.
#[track_caller]
fn written(format: &Format, body: &str) -> Option<String> {
    let subject = Subject::new(body, classify(body.as_bytes()));
    let text = (format.encode)(&subject, KNOBS)?;
    let Some(Meaning::Json(read)) = (format.decode)(&text) else { panic!("{}: {body:?} -> {text:?}", format.id) };
    let meant = Json::parse(body).unwrap();
    assert_eq!(sorted(&read).compact(), sorted(&meant).compact(), "{}: {text:?}", format.id);
    assert_eq!(prove(format, &subject, KNOBS).as_ref(), Some(&text), "{}", format.id);
    Some(text)
}

/// The value with its keys in order: an equality of its own, so that no mistake in that of the tree hides another.
fn sorted(value: &Json) -> Json {
    match value {
        Json::Array(elements) => Json::Array(elements.iter().map(sorted).collect()),
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            members.sort_by(|one, two| one.0.cmp(&two.0));
            Json::Object(members)
        }
        scalar => scalar.clone(),
    }
}

/// The body is written in these lines.
#[track_caller]
fn check(format: &Format, body: &str, lines: &[&str]) {
    assert_eq!(written(format, body), Some(lines.join("\n")));
}

#[track_caller]
fn refuses(format: &Format, bodies: &[&str]) {
    for body in bodies {
        assert_eq!(written(format, body), None, "{}: {body}", format.id);
    }
}

// The layouts.

const ISSUES: &str = r#"[{"id":1,"title":"Fix, please","open":true},{"id":2,"title":"Say \"hi\"","by":null}]"#;

#[test]
fn csv_has_the_keys_of_all_elements_and_quotes_what_needs_it() {
    let issues = ["id,title,open,by", "1,\"Fix, please\",true,", "2,\"Say \"\"hi\"\"\",,null"];
    check(&csv::FORMAT, ISSUES, &issues);
    check(&csv::FORMAT, r#"[{"a,b":" x","":"1\n2","c":"\r"}]"#, &["\"a,b\",\"\",c", "\" x\",\"1", "2\",\"\r\""]);
    let containers = ["a", r#""[1,{""b"":""x""}]""#, "{}", r#""""[]""""#];
    check(&csv::FORMAT, r#"[{"a":[1,{"b":"x"}]},{"a":{}},{"a":"[]"}]"#, &containers);
    check(
        &csv::FORMAT,
        r#"[{"a":1.50},{},{"a":"007"},{"a":"7"},{"a":""}]"#,
        &["a", "1.50", "", "007", "\"7\"", "\"\""],
    );
    refuses(
        &csv::FORMAT,
        &["[]", "[{}]", r#"[{"a":1},2]"#, r#"[{"a":1},[]]"#, r#"{"a":[{"b":1}]}"#, "[1]", "a,b\n1,2"],
    );
}

#[test]
fn a_pipe_table_escapes_bars_and_keeps_to_one_line_per_row() {
    let issues = [
        "| id | title | open | by |",
        "| --- | --- | --- | --- |",
        "| 1 | Fix, please | true | |",
        "| 2 | Say \"hi\" | | null |",
    ];
    check(&markdown_table::FORMAT, ISSUES, &issues);
    let body = r#"[{"a|b":"x|y\\"},{"a|b":"C:\\\\|"},{"a|b":"1\n2"},{"a|b":{"k":"|"}}]"#;
    let rows = [r"| a\|b |", "| --- |", r"| x\|y\ |", r"| C:\\\| |", r#"| "1\n2" |"#, r#"| {"k":"\|"} |"#];
    check(&markdown_table::FORMAT, body, &rows);
    let unfit = ["[]", "[{}]", r#"[{"a":1},2]"#, r#"{"a":[{"b":1}]}"#, "| a |\n| --- |\n| 1 |"];
    refuses(&markdown_table::FORMAT, &unfit);
}

#[test]
fn kv_is_a_line_per_member_in_document_order() {
    let body =
        r#"{"name":"lantern","age":3,"z":1e400,"a":null,"url":"http://x.y: z","text":"1\n2","id":"7","on":true}"#;
    let lines = [
        "name: lantern",
        "age: 3",
        "z: 1e400",
        "a:",
        "url: http://x.y: z",
        r#"text: "1\n2""#,
        r#"id: "7""#,
        "on: true",
    ];
    check(&kv::FORMAT, body, &lines);
    let body = r##"{"a: b":"x","":"","#":" ","k:":null,":":": "}"##;
    check(&kv::FORMAT, body, &[r#""a: b": x"#, r#""": """#, r##""#": " ""##, "k::", r#":: ": ""#]);
    check(&kv::FORMAT, r#"{"a\rb":"x\ry"}"#, &[r#""a\rb": "x\ry""#]);
    refuses(&kv::FORMAT, &["{}", r#"{"a":[]}"#, r#"{"a":{}}"#, "[1]", "a: 1"]);
}

#[test]
fn mckp_v2_names_its_table() {
    let body = concat!(
        r#"{"company":"Acme","year":2026,"employees":["#,
        r#"{"id":1,"name":"Alice","dept":"Eng"},{"id":2,"name":"Bob","dept":"Sales"}]}"#
    );
    let lines = [
        "company: Acme",
        "year: 2026",
        "",
        "## employees",
        "| id | name | dept |",
        "| --- | --- | --- |",
        "| 1 | Alice | Eng |",
        "| 2 | Bob | Sales |",
    ];
    check(&mckp_v2::FORMAT, body, &lines);
}

#[test]
fn mckp_v2_keeps_hostile_members() {
    let body = concat!(
        r###"{"## a":"x\n\n## b","small":[{"a":1},{"b":2}],"mixed":[{},{},{},1],"###,
        r#""\n":[{"a":1},{"a":2},{"a":null}]}"#
    );
    let lines = [
        r###""## a": "x\n\n## b""###,
        r#"small: [{"a":1},{"b":2}]"#,
        "mixed: [{},{},{},1]",
        "",
        r###"## "\n""###,
        "| a |",
        "| --- |",
        "| 1 |",
        "| 2 |",
        "| null |",
    ];
    check(&mckp_v2::FORMAT, body, &lines);
    check(&mckp_v2::FORMAT, r#"{"":[{"":""},{}]}"#, &["## \"\"", "| \"\" |", "| --- |", "| \"\" |", "| |"]);
    let unfit = [r#"{"a":[{"b":1}]}"#, r#"{"a":[{"b":1},2]}"#, r#"{"a":[{},{}]}"#, r#"{"a":1}"#, "[{},{}]"];
    refuses(&mckp_v2::FORMAT, &unfit);
}

#[test]
fn sparse_tables_are_tables() {
    let rows: Vec<String> = (0..30).map(|row| format!("{{\"id\":{row},\"k{row}\":1}}")).collect();
    let body = format!("[{}]", rows.join(","));
    assert!(written(&csv::FORMAT, &body).is_some() && written(&markdown_table::FORMAT, &body).is_some());
}

#[test]
fn the_first_of_the_longest_arrays_is_the_table() {
    let text = written(&mckp_v2::FORMAT, r#"{"a":[{"x":1}],"b":[{"x":1},{"x":2}],"c":[{"x":3},{"x":4}]}"#).unwrap();
    assert!(text.contains("\n## b\n"), "{text}");
}

#[test]
fn mr_diff_fence_keeps_every_field() {
    let body = concat!(
        r#"{"title":"Fix","diffs":[{"new_file":false,"path":"a.rs","diff":"@@ -1 +1 @@\n-a\n+b\n"},"#,
        r#"{"path":"b.md","diff":"+````\n+x"}],"n":2}"#
    );
    let lines = [
        "title: Fix",
        "n: 2",
        "",
        "## diff 1 (a.rs)",
        "new_file: false",
        "```diff",
        "@@ -1 +1 @@",
        "-a",
        "+b",
        "```",
        "## diff 2 (b.md)",
        "`````diff no-eol",
        "+````",
        "+x",
        "`````",
    ];
    check(&mr_diff_fence::FORMAT, body, &lines);
}

#[test]
fn mr_diff_fence_says_which_members_heading_and_fence_are() {
    let body = concat!(
        r#"{"diffs":[{"old_path":"x","new_path":"y","content":"\n","diff":"+"},"#,
        r###"{"path":"new_path: z","diff":""},{"path":7,"diff":"\n## diff 4\n"}]}"###
    );
    let lines = [
        "## diff 1 (new_path: y)",
        "old_path: x",
        "diff: +",
        "```diff content",
        "",
        "```",
        "## diff 2 (\"new_path: z\")",
        "```diff no-eol",
        "",
        "```",
        "## diff 3",
        "path: 7",
        "```diff",
        "",
        "## diff 4",
        "```",
    ];
    check(&mr_diff_fence::FORMAT, body, &lines);
    let incomplete = [r#"{"diffs":[{"diff":"x"},{"path":"y"}]}"#, r#"{"diffs":[{"diff":"x"},"y"]}"#];
    refuses(&mr_diff_fence::FORMAT, &incomplete);
    refuses(&mr_diff_fence::FORMAT, &[r#"{"diffs":[]}"#, r#"{"diffs":"x"}"#, r#"{"a":[]}"#, "[]"]);
}

#[test]
fn json_keeps_numbers_and_order() {
    let body = "{ \"b\": [1.0, -0, 12345678901234567890, 1E+2, {}],\n\"a\": \"\\u00e9\\/\\u0001\\ud83d\\ude00\" }";
    check(&json::COMPACT, body, &[r#"{"b":[1.0,-0,12345678901234567890,1E+2,{}],"a":"é/\u0001😀"}"#]);
    let lines = [
        "{",
        "  \"b\": [",
        "    1.0,",
        "    -0,",
        "    12345678901234567890,",
        "    1E+2,",
        "    {}",
        "  ],",
        r#"  "a": "é/\u0001😀""#,
        "}",
    ];
    check(&json::PRETTY, body, &lines);
}

#[test]
fn what_cannot_be_kept_is_refused_by_every_format() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(128), "]".repeat(128));
    let wide = format!("{{{}\"k7\":1}}", (0..99).map(|key| format!("\"k{key}\":0,")).collect::<String>());
    for (body, refusal) in [
        (r#"{"a":1,"b":2,"a":1}"#, JsonRefusal::DuplicateKey),
        (r#"[{"x":1,"\u0078":2}]"#, JsonRefusal::DuplicateKey),
        (r#"[{"a":"\ud800"}]"#, JsonRefusal::LoneSurrogate),
        (r#"{"\udc00":1}"#, JsonRefusal::LoneSurrogate),
        (deep.as_str(), JsonRefusal::TooDeep),
        (wide.as_str(), JsonRefusal::DuplicateKey),
        ("{\"a\":\"\t\"}", JsonRefusal::NotJson),
        (r#"{"a":"\x"}"#, JsonRefusal::NotJson),
    ] {
        assert_eq!(Json::parse(body).err(), Some(refusal), "{body}");
        assert_eq!(Subject::new(body, classify(body.as_bytes())).json(), None, "{body}");
        ALL.iter().for_each(|format| refuses(format, &[body]));
    }
}

// Texts that no encoder writes.

#[track_caller]
fn rejects(format: &Format, texts: &[&str]) {
    for text in texts {
        assert_eq!((format.decode)(text), None, "{}: {text:?}", format.id);
    }
}

#[test]
fn decoders_take_nothing_unexpected() {
    rejects(&json::COMPACT, &["", "{", "1 2", "[1,]", "nul"]);
    rejects(&kv::FORMAT, &["", "a", "a:1", "a: ", "a:  1", "a: 1\n", "a: 1\na: 2", ": 1", "a: []", "a: 1\r\nb: 2"]);
    rejects(&kv::FORMAT, &["\"a: 1", "\"a\"b: 1", "\"a\"", "\"a\\x\": 1", "é"]);
    rejects(&csv::FORMAT, &["", "a", "\n", "a,a\n1,2", "a,b\n1", "a,b\n1,2\n", "a,\n1,2", "a\n x", "a\nx\r"]);
    rejects(&csv::FORMAT, &["a\nx\"y", "a\n\"x", "a\n\"x\"y"]);
    rejects(&markdown_table::FORMAT, &["", "| a |", "| a |\n| --- |", "|\n|\n|", "||\n||\n||", "|a|\n| --- |\n|1|"]);
    rejects(
        &markdown_table::FORMAT,
        &["| a |\n| --- | --- |\n| 1 |", "| a |\n| --- |\n| 1 | 2 |", "| |\n| --- |\n| 1 |"],
    );
    rejects(
        &markdown_table::FORMAT,
        &["| a | a |\n| --- | --- |\n| 1 | 2 |", "| a |\n| --- |\n| 1 |\n", "| a |\n|---|\n| 1 |"],
    );
    rejects(&mckp_v2::FORMAT, &["", "## a", "## \n| a |\n| --- |\n| 1 |", "a: 1\n| a |\n| --- |\n| 1 |"]);
    rejects(&mckp_v2::FORMAT, &["a: 1\n\n## a\n| b |\n| --- |\n| 1 |", "\n\n## a\n| a |\n| --- |\n| 1 |"]);
    rejects(&mr_diff_fence::FORMAT, &["", "## diff 1", "## diff 2\n```diff\nx\n```", "## diff 1\n```diff\nx"]);
    rejects(
        &mr_diff_fence::FORMAT,
        &["## diff 1\n```rust\nx\n```", "## diff 1\n````diff\nx\n````", "## diff 1\n```diff\n```"],
    );
    rejects(&mr_diff_fence::FORMAT, &["## diff 1\n```diff\nx\n```\n", "## diff 1 ()\n```diff\nx\n```"]);
    rejects(&mr_diff_fence::FORMAT, &["## diff 1\ndiff: y\n```diff\nx\n```", "## diff 1\n```diff\nx\n````"]);
}

// Values that look alike.

#[test]
fn look_alikes_stay_apart() {
    let alike = [
        "",
        "null",
        "\"\"",
        "\"null\"",
        "1",
        "\"1\"",
        "1.0",
        "\"1.0\"",
        "-0",
        "0",
        "true",
        "\"true\"",
        "[]",
        "\"[]\"",
        "{}",
        "\"{}\"",
        r#""\"\"""#,
        r#""\"1\"""#,
        "\" \"",
        "\" 1\"",
        "\"[] \"",
        "\"-\"",
        "\"|\"",
        r#""\\|""#,
        r#""\\""#,
        r#""a\nb""#,
        r#""a\\nb""#,
        "\"a b\"",
    ];
    let cell =
        |value: &&str| if value.is_empty() { r#"{"z":0}"#.to_owned() } else { format!(r#"{{"a":{value},"z":0}}"#) };
    for format in [&csv::FORMAT, &markdown_table::FORMAT] {
        let body = |value| format!("[{},{}]", cell(value), cell(&"1"));
        let mut texts: Vec<String> = alike.iter().map(|value| written(format, &body(value)).unwrap()).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), alike.len(), "{}", format.id);
    }
    let body = format!("[{}]", alike.each_ref().map(cell).join(","));
    assert!(written(&csv::FORMAT, &body).is_some() && written(&markdown_table::FORMAT, &body).is_some());
    let lines: Vec<String> = alike.iter().filter_map(|value| written(&kv::FORMAT, &cell(value))).collect();
    assert_eq!(lines.len(), alike.len() - 2, "all but the two containers");
}

#[test]
fn what_another_reader_takes_for_json_is_no_bare_text() {
    let twice = r#"{"a":"{\"x\":1,\"x\":2}","half":"\"\\ud800\""}"#;
    check(&kv::FORMAT, twice, &[r#"a: "{\"x\":1,\"x\":2}""#, r#"half: "\"\\ud800\"""#]);
    let body = format!(r#"[{twice},{{"a":" [1]","half":" 7"}}]"#);
    let lines = ["a,half", r#""""{\""x\"":1,\""x\"":2}""","""\""\\ud800\""""""#, r#"""" [1]"""," 7""#];
    check(&csv::FORMAT, &body, &lines);
    let deep = format!(r#"{{"a":"{}{}"}}"#, "[".repeat(200), "]".repeat(200));
    check(&kv::FORMAT, &deep, &[&format!("a: \"{}{}\"", "[".repeat(200), "]".repeat(200))]);
}

// Generated values.

fn nasty_text() -> impl Strategy<Value = String> {
    let fragments = [
        "",
        " ",
        "\n",
        "\r",
        "\t",
        "|",
        "\\",
        "\"",
        "\"\"",
        ",",
        ":",
        ": ",
        "#",
        "## ",
        "## diff 1 (",
        ")",
        "`",
        "```",
        "```diff",
        "a",
        "é",
        "😀",
        "null",
        "true",
        "1",
        "-0",
        "1e400",
        "{",
        "}",
        "[",
        "]",
        "{}",
        "[]",
        "{\"a\":1}",
        "\u{2028}",
        "\u{85}",
        "\u{0}",
        "| --- |",
        "---",
        "new_path: ",
        " no-eol",
        "@@ -1 +1 @@",
        "\n\n",
    ];
    prop_oneof![
        6 => prop::collection::vec(select(fragments.to_vec()), 0..5).prop_map(|parts| parts.concat()),
        1 => any::<String>(),
    ]
}

fn number() -> impl Strategy<Value = String> {
    let literals = ["0", "-0", "1", "1.0", "1.00", "1e400", "1E-7", "12345678901234567890", "-0.0", "0.1"];
    prop_oneof![select(literals.to_vec()).prop_map(str::to_owned), any::<i64>().prop_map(|number| number.to_string())]
}

fn scalar() -> impl Strategy<Value = Json> {
    prop_oneof![
        1 => Just(Json::Null),
        1 => any::<bool>().prop_map(Json::Bool),
        2 => number().prop_map(Json::Number),
        4 => nasty_text().prop_map(Json::String),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => select(vec!["path", "new_path", "content", "diff", "diffs", "a", "b"]).prop_map(str::to_owned),
        2 => nasty_text(),
    ]
}

fn object(value: impl Strategy<Value = Json>) -> impl Strategy<Value = Json> {
    prop::collection::vec((key(), value), 0..6).prop_map(|mut members| {
        let mut seen = Vec::new();
        members.retain(|(key, _)| {
            !seen.contains(key) && {
                seen.push(key.clone());
                true
            }
        });
        Json::Object(members)
    })
}

fn tree() -> impl Strategy<Value = Json> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array), object(inner)]
    })
}

fn array_of(element: impl Strategy<Value = Json>) -> impl Strategy<Value = Json> {
    prop::collection::vec(element, 0..5).prop_map(Json::Array)
}

fn body() -> impl Strategy<Value = Json> {
    prop_oneof![
        tree(),
        object(scalar()),
        array_of(object(scalar())),
        array_of(object(tree())),
        object(prop_oneof![tree(), array_of(object(tree()))]),
        (object(tree()), prop::collection::vec(diff(), 1..4)).prop_map(|(other, diffs)| with_member(
            other,
            "diffs",
            Json::Array(diffs)
        )),
    ]
}

fn diff() -> impl Strategy<Value = Json> {
    let text = prop::collection::vec(nasty_text(), 0..3).prop_map(|lines| Json::String(lines.join("\n")));
    (object(tree()), select(vec!["content", "diff"]), text)
        .prop_map(|(other, name, text)| with_member(other, name, text))
}

fn with_member(object: Json, name: &str, value: Json) -> Json {
    let Json::Object(mut members) = object else { return object };
    members.retain(|(key, _)| key != name);
    members.push((name.to_owned(), value));
    Json::Object(members)
}

fn ordinary_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z][A-Za-z0-9 ,.:|/_-]{0,20}[a-z.]",
        "[0-9]{1,6}",
        prop::collection::vec("[ +-][a-z(){};\" ]{0,12}", 2..5).prop_map(|lines| lines.join("\n")),
    ]
}

fn ordinary_scalar() -> impl Strategy<Value = Json> {
    prop_oneof![
        1 => Just(Json::Null),
        1 => any::<bool>().prop_map(Json::Bool),
        1 => (-1000i32..1000).prop_map(|number| Json::Number(number.to_string())),
        3 => ordinary_text().prop_map(Json::String),
    ]
}

/// Values for each of the columns, sometimes missing but for the first.
fn ordinary_record(columns: Vec<String>) -> impl Strategy<Value = Json> {
    let values = prop::collection::vec((ordinary_scalar(), prop::bool::weighted(0.9)), columns.len());
    values.prop_map(move |values| {
        let members = columns.iter().cloned().zip(values).enumerate();
        Json::Object(
            members
                .filter(|(index, (_, (_, there)))| *index == 0 || *there)
                .map(|(_, (key, (value, _)))| (key, value))
                .collect(),
        )
    })
}

fn ordinary_records() -> impl Strategy<Value = Json> {
    let columns = prop::collection::btree_set("[a-z][a-z0-9_]{0,8}", 1..6);
    columns.prop_flat_map(|columns| {
        prop::collection::vec(ordinary_record(columns.into_iter().collect()), 2..6).prop_map(Json::Array)
    })
}

fn ordinary_object() -> impl Strategy<Value = Json> {
    prop::collection::btree_map("[a-z][a-zA-Z0-9_]{0,8}", ordinary_scalar(), 1..6)
        .prop_map(|members| Json::Object(members.into_iter().collect()))
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn nothing_is_lost_and_no_line_is_idle(value in body(), pretty in any::<bool>(), at in any::<Index>()) {
        let body = if pretty { value.pretty() } else { value.compact() };
        let parsed = Json::parse(&body);
        prop_assert_eq!(parsed.as_ref(), Ok(&value));
        for format in ALL {
            let Some(text) = written(format, &body) else { continue };
            let mut lines: Vec<&str> = text.split('\n').collect();
            lines.remove(at.index(lines.len()));
            prop_assert_ne!((format.decode)(&lines.join("\n")), Some(Meaning::Json(value.clone())), "{}", format.id);
            let cut = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let _ = ((format.decode)(&text[cut..]), (format.decode)(&text[..cut]));
        }
    }

    #[test]
    fn whatever_is_read_is_a_value(text in nasty_document()) {
        for format in ALL {
            if let Some(Meaning::Json(value)) = (format.decode)(&text) {
                written(format, &value.compact());
            }
        }
    }
}

/// Text with much of what the layouts consist of.
fn nasty_document() -> impl Strategy<Value = String> {
    let blocks = [
        ("| a | b |\n| --- | --- |", 3),
        ("| 1 | |", 3),
        ("| x | {} |", 2),
        ("a,b", 2),
        ("1,", 2),
        ("\"x\",2", 2),
        ("a: 1", 1),
        ("\"c\": []", 1),
        ("", 2),
        ("## a", 1),
        ("## diff 1\n```diff", 3),
        ("## diff 1 (x)", 1),
        ("## diff 2\n```diff content", 2),
        ("```diff no-eol", 1),
        ("```", 4),
        ("+x", 2),
        ("[", 1),
        ("{\"a\":", 1),
        ("1", 1),
        ("]", 1),
        ("}", 1),
    ];
    let block = prop::strategy::Union::new_weighted(blocks.map(|(block, weight)| (weight, Just(block))).to_vec());
    prop::collection::vec(block, 1..6).prop_map(|blocks| blocks.join("\n"))
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn ordinary_objects_are_not_refused(value in ordinary_object()) {
        for format in [&kv::FORMAT, &json::COMPACT, &json::PRETTY] {
            prop_assert!(written(format, &value.compact()).is_some(), "{}", format.id);
        }
    }

    #[test]
    fn ordinary_tables_are_not_refused(
        value in ordinary_records(),
        around in ordinary_object(),
        pretty in any::<bool>(),
    ) {
        let spelled = |value: &Json| if pretty { value.pretty() } else { value.compact() };
        for format in [&csv::FORMAT, &markdown_table::FORMAT, &json::COMPACT, &json::PRETTY] {
            prop_assert!(written(format, &spelled(&value)).is_some(), "{}", format.id);
        }
        let wrapped = with_member(around, "items", value);
        for format in [&mckp_v2::FORMAT, &json::COMPACT, &json::PRETTY] {
            prop_assert!(written(format, &spelled(&wrapped)).is_some(), "{}", format.id);
        }
    }

    #[test]
    fn ordinary_diffs_are_not_refused(
        around in ordinary_object(),
        diffs in prop::collection::vec((ordinary_object(), "[a-z/]{1,9}", ordinary_text(), any::<[bool; 3]>()), 1..4),
    ) {
        let diffs = diffs.into_iter().map(|(other, path, text, [new, content, line_feed])| {
            let text = if line_feed { text + "\n" } else { text };
            let diff = with_member(other, if new { "new_path" } else { "path" }, Json::String(path));
            with_member(diff, if content { "content" } else { "diff" }, Json::String(text))
        });
        let value = with_member(around, "diffs", Json::Array(diffs.collect()));
        prop_assert!(written(&mr_diff_fence::FORMAT, &value.compact()).is_some());
    }

    #[test]
    fn trees_agree_with_serde(value in tree()) {
        let text = value.compact();
        let by_serde: Result<Value, _> = serde_json::from_str(&text);
        // Numbers beyond what it can hold are all that it refuses.
        prop_assert!(by_serde.is_ok() || text.contains("1e400"), "{}", text);
        if let Ok(by_serde) = by_serde {
            prop_assert_eq!(&serde_json::from_str::<Value>(&value.pretty()).unwrap(), &by_serde);
            let again = sorted(&Json::parse(&by_serde.to_string()).unwrap());
            prop_assert_eq!(without_numbers(&again), without_numbers(&sorted(&value)));
        }
    }

    #[test]
    fn trees_and_serde_take_the_same_texts(value in tree(), at in any::<Index>(), with in damage()) {
        let mut text: Vec<char> = value.compact().chars().collect();
        let at = at.index(text.len());
        text.splice(at..at + 1, with.chars());
        let text: String = text.into_iter().collect();
        // Numbers that it cannot hold, keys that occur twice: that is where the two differ on purpose.
        prop_assume!(!text.contains("e4"));
        let taken = !matches!(Json::parse(&text), Err(JsonRefusal::NotJson | JsonRefusal::TooDeep | JsonRefusal::LoneSurrogate));
        prop_assert_eq!(taken, serde_json::from_str::<Value>(&text).is_ok(), "{:?}", text);
    }

    #[test]
    fn equality_is_that_of_sorted_trees(one in tree(), two in tree()) {
        prop_assert_eq!(one == two, sorted(&one).compact() == sorted(&two).compact());
        prop_assert!(reversed(&one) == one);
    }
}

/// What takes the place of one character.
fn damage() -> impl Strategy<Value = &'static str> {
    select(vec!["", " ", "\n", "{", "}", "[", "]", "\"", ",", ":", "\\", "\\ud800", "\\u00", "-", "0", "x", "null"])
}

fn without_numbers(value: &Json) -> Json {
    match value {
        Json::Number(_) => Json::Null,
        Json::Array(elements) => Json::Array(elements.iter().map(without_numbers).collect()),
        Json::Object(members) => {
            Json::Object(members.iter().map(|(key, value)| (key.clone(), without_numbers(value))).collect())
        }
        other => other.clone(),
    }
}

fn reversed(value: &Json) -> Json {
    match value {
        Json::Array(elements) => Json::Array(elements.iter().map(reversed).collect()),
        Json::Object(members) => {
            Json::Object(members.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect())
        }
        other => other.clone(),
    }
}

#[test]
fn numbers_are_told_apart_by_spelling_and_members_by_key() {
    let parsed = |text: &str| Json::parse(text).unwrap();
    assert_eq!(parsed(r#"{"a":[1,{"x":0,"y":1}],"b":2}"#), parsed(r#"{"b":2,"a":[1,{"y":1,"x":0}]}"#));
    for (one, two) in [
        ("1", "1.0"),
        ("0", "-0"),
        ("1e2", "1E2"),
        ("[1,2]", "[2,1]"),
        (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
        ("\"1\"", "1"),
        ("[]", "{}"),
    ] {
        assert_ne!(parsed(one), parsed(two));
    }
}

/// Levels of nesting: none in a scalar, one in an empty container.
fn depth_of(json: &Json) -> usize {
    let below = match json {
        Json::Array(elements) => elements.iter().map(depth_of).max(),
        Json::Object(members) => members.iter().map(|(_, value)| depth_of(value)).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

#[test]
fn depth_counts_containers() {
    for (text, depth) in [("1", 0), ("[]", 1), ("{}", 1), ("[1,[2]]", 2), (r#"{"a":{"b":[]},"c":1}"#, 3)] {
        assert_eq!(depth_of(&Json::parse(text).unwrap()), depth, "{text}");
    }
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(depth_of(&Json::parse(&nested(128)).unwrap()), 128);
    assert_eq!(Json::parse(&nested(129)), Err(JsonRefusal::TooDeep));
    assert_eq!(Json::parse(&nested(1_000_000)), Err(JsonRefusal::TooDeep));
}

// Size.

#[test]
fn large_bodies_take_linear_time() {
    let started = Instant::now();
    let wide: Vec<String> = (0..4_000).map(|key| format!("\"key {key}\":\"value\\n{key}\"")).collect();
    let backwards: Vec<&str> = wide.iter().rev().map(String::as_str).collect();
    let object = |members: String| format!("{{{members}}}");
    assert!(Json::parse(&object(wide.join(","))) == Json::parse(&object(backwards.join(","))));
    assert!(written(&kv::FORMAT, &object(wide.join(","))).is_some());
    let ragged = format!("[{}]", wide.iter().cloned().map(object).collect::<Vec<_>>().join(","));
    assert_eq!((written(&csv::FORMAT, &ragged), written(&markdown_table::FORMAT, &ragged)), (None, None));
    for (unit, times) in [("\\\"", 10_000), ("|\\\\", 10_000), ("`", 20_000), ("[", 20_000), ("\\n```", 5_000)] {
        let text = unit.repeat(times);
        let rows = format!("[{{\"a\":\"{text}\"}},{{\"a\":\"{text}\"}}]");
        assert!(written(&csv::FORMAT, &rows).is_some() && written(&markdown_table::FORMAT, &rows).is_some());
        assert!(written(&mr_diff_fence::FORMAT, &format!("{{\"diffs\":[{{\"diff\":\"{text}\"}}]}}")).is_some());
    }
    let long = format!("{{\"rows\":[{}]}}", vec![r#"{"a":1,"b":"x|y"}"#; 4_000].join(","));
    assert!(written(&mckp_v2::FORMAT, &long).is_some());
    assert!(started.elapsed() < Duration::from_secs(20));
}
