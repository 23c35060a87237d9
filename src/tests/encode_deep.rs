//! The deep format: what each form looks like, that every value comes back, and texts that only look like it.

use proptest::prelude::*;

use crate::facts::encode::{EncodeAttempt, Format, Meaning, Params, Subject, attempt, find};
use crate::facts::json_tree::Json;
use crate::facts::shape::classify;
use crate::tests::log_builder::cases;

fn format() -> &'static Format {
    find("pipeline_deep_mckp").unwrap().1
}

fn params(recursion_depth: usize) -> Params {
    Params { recursion_depth, numbered_every: 10 }
}

fn attempted(body: &str, depth: usize) -> EncodeAttempt {
    attempt(format(), &Subject::new(body, classify(body.as_bytes())), params(depth))
}

/// The proven text.
fn encoded(body: &str, depth: usize) -> String {
    match attempted(body, depth) {
        EncodeAttempt::Proven(text) => text,
        other => panic!("{other:?} for {body}"),
    }
}

fn decoded(text: &str) -> Option<String> {
    match (format().decode)(text)? {
        Meaning::Json(value) => Some(value.compact()),
        other => panic!("{other:?}"),
    }
}

fn is_written(body: &str, text: &str) {
    assert_eq!(encoded(body, 5), text);
}

#[test]
fn members_are_lines_and_null_is_nothing() {
    is_written(
        r#"{"name":"Widget","count":12,"price":-1.50,"gone":null,"ok":true,"id":"12","none":"null","empty":""}"#,
        "name: Widget\ncount:12\nprice:-1.50\ngone:\nok: true\nid: \"12\"\nnone: \"null\"\nempty: \"\"",
    );
}

#[test]
fn members_of_members_are_indented() {
    is_written(
        r#"{"user":{"name":"Ann Lee","home":{"city":"Rome","gone":null,"road":"Main Street"},"gone":null},"last":"x"}"#,
        "user:\n name: Ann Lee\n home:\n  city: Rome\n  gone:\n  road: Main Street\n gone:\nlast: x",
    );
}

#[test]
fn arrays_of_objects_are_tables() {
    is_written(
        r#"{"items":[{"id":1,"name":"one"},{"id":2,"name":"two"},{"id":3,"name":null}],"total":3}"#,
        "items:\n```csv\nid,name\n1,one\n2,two\n3,null\n```\ntotal:3",
    );
    // Quotes are doubled in CSV and not between pipes.
    let row = r#"{"a":["p","q"],"b":["p","q"]}"#;
    let cells = r#"| ["p","q"] | ["p","q"] |"#;
    is_written(
        &format!(r#"{{"t":[{row},{row},{row}],"u":1}}"#),
        &format!("t:\n| a | b |\n| --- | --- |\n{cells}\n{cells}\n{cells}\nu:1"),
    );
}

#[test]
fn texts_of_several_lines_stand_in_fences() {
    let body = r#"{"log":"a \"b\"\n\"c\"\n\n\"d\"\n","doc":"```sh\n\"x\"\n\"y\"\n\"z\"\n```"}"#;
    is_written(body, "log:\n```\na \"b\"\n\"c\"\n\n\"d\"\n\n```\ndoc:\n````\n```sh\n\"x\"\n\"y\"\n\"z\"\n```\n````");
}

#[test]
fn arrays_of_long_texts_are_items() {
    let text = r#""\"one\"\n\"two\"\n\"three\"\n\"four\"""#;
    let fence = "\n```\n\"one\"\n\"two\"\n\"three\"\n\"four\"\n```\n";
    is_written(&format!("[{text},7,null,[],{text}]"), &format!("-{fence}- 7\n-\n- []\n-{}", fence.trim_end()));
    let nested = format!(r#"{{"all":[{{"body":{text},"n":-1}},"plain"]}}"#);
    is_written(&nested, &format!("all:\n -\n  body:{fence}  n:-1\n - plain"));
}

#[test]
fn texts_that_are_json_are_opened() {
    let small = r#"{"args":"[\"src\",\"docs\"]","spaced":"[ \"b\", \"c\", \"d\", \"e\" ]","text":"!json {}"}"#;
    is_written(
        small,
        "args: !json [\"src\",\"docs\"]\nspaced: !json [ \"b\", \"c\", \"d\", \"e\" ]\ntext: \"!json {}\"",
    );
    let rows = r#"{"rows":[{"id":1,"name":"one"},{"id":2,"name":"two"},{"id":3,"name":"three"}]}"#;
    let body = format!(r#"{{"out":"{}"}}"#, rows.replace('"', "\\\""));
    is_written(&body, "out: !json\n rows:\n```csv\nid,name\n1,one\n2,two\n3,three\n```");
}

#[test]
fn a_text_is_opened_only_if_it_comes_back_byte_for_byte() {
    for spaced in [r#"{ "a": "b", "c": "d" }"#, r#"{"a":"\u0062","c":"d"}"#, r#"{"a":"b","a":"c"}"#, r#"["b",]"#] {
        let body =
            Json::Object(vec![("out".to_owned(), Json::String(spaced.to_owned())), ("n".to_owned(), Json::Null)]);
        let text = encoded(&body.compact(), 5);
        assert_eq!(decoded(&text), Some(body.compact()), "{text}");
    }
    // A table would put the keys of every row into one order.
    let rows = r#"[{"id":1,"name":"one"},{"id":2,"name":"two"},{"name":"three","id":3},{"id":4,"name":"four"}]"#;
    let body = format!(r#"{{"out":"{}","n":null}}"#, rows.replace('"', "\\\""));
    assert!(!encoded(&body, 5).contains("csv"));
    assert_eq!(decoded(&encoded(&body, 5)), Some(body));
}

#[test]
fn keys_that_would_mislead_are_quoted() {
    let body =
        r#"{"a":{"- x":"a","|":"b","`":"c","a: b":"d","a:b":"e"," pad":"f","":"g","\"q":"h","l\nf":"i"},"z":"y"}"#;
    assert_eq!(decoded(&encoded(body, 5)).as_deref(), Some(body));
    for line in ["\"- x\": a", "\"|\": b", "\"`\": c", "\"a:b\": e", "\" pad\": f", "\"\": g", "\"l\\nf\": i"] {
        assert!(encoded(body, 5).contains(line), "{line}");
    }
}

#[test]
fn depth_is_how_many_levels_are_taken_apart() {
    let body = r#"{"a":{"b":{"c":{"d":"some words","e":"more words","n":null},"n":null},"n":null},"n":null}"#;
    assert_eq!(attempted(body, 0), EncodeAttempt::Refused);
    assert_eq!(encoded(body, 1).matches("\n").count(), 1);
    assert!(encoded(body, 1).starts_with("a: {\"b\":"));
    assert!(encoded(body, 2).starts_with("a:\n b: {\"c\":"));
    assert!(encoded(body, 9).contains("\n   d: some words\n"));
    assert_eq!(encoded(body, 9), encoded(body, usize::MAX));
}

#[test]
fn what_gains_nothing_is_left_to_compact_json() {
    for body in ["[1,2,3]", "[[1],[2]]", r#"["a","b"]"#, "{}", "[]", "plain text", "[{},{}]", r#"{"a":1,"a":2}"#] {
        assert_eq!(attempted(body, 5), EncodeAttempt::Refused, "{body}");
    }
}

#[test]
fn deep_and_large_bodies_are_written_in_time() {
    let deep = format!("{}{}{}", r#"{"key":"#.repeat(127), r#"{"a":"b c","n":null}"#, "}".repeat(127));
    assert!(matches!(attempted(&deep, usize::MAX), EncodeAttempt::Proven(_) | EncodeAttempt::Refused));
    let too_deep = format!(r#"{{"a":null,"b":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    assert_eq!(attempted(&too_deep, 5), EncodeAttempt::Refused);
    let quoted = (0..9).fold(r#"{"a":"b","c":null}"#.to_owned(), |inner, _| {
        Json::Object(vec![("in".to_owned(), Json::String(inner)), ("n".to_owned(), Json::Null)]).compact()
    });
    assert!(
        encoded(&quoted, usize::MAX)
            .ends_with("a: b\n         c:\n        n:\n       n:\n      n:\n     n:\n    n:\n   n:\n  n:\n n:\nn:")
    );
    let row = r#"{"id":1,"name":"one","tags":["x","y"],"at":{"line":3}},"#;
    let rows = format!(r#"{{"rows":[{}{{}}],"more":"{}"}}"#, row.repeat(2_000), r"a\n".repeat(20_000));
    encoded(&rows, 5);
    // Ever different keys: a table of them would have a cell for every pair.
    let keys: Vec<String> = (0..5_000).map(|key| format!(r#"{{"k{key}":"v","n":null}}"#)).collect();
    encoded(&format!("[{}]", keys.join(",")), 5);
}

#[test]
fn other_texts_are_refused() {
    let texts = [
        "",
        "\n",
        "plain",
        "a: b\n\nc: d",
        "a:\n   b: c",
        "a: b\n c: d",
        " a: b",
        "```\nopen",
        "```rust\nx\n```",
        "a:b",
        "a: !json",
        "a: !jsonx",
        "| a |",
        "- a\nb: c",
        "a: b\n| a |\n| --- |\n| 1 |",
        "\"a: b",
        "a:  b",
        "a: b ",
        "-1",
        "a: b\na: c",
    ];
    for text in texts {
        assert_eq!(decoded(text), None, "{text:?}");
    }
}

/// Words that forms must not confuse with what they write themselves.
fn any_text() -> impl Strategy<Value = String> {
    let hostile = vec![
        "",
        " ",
        "null",
        "true",
        "1",
        "-1",
        "1e5",
        "!json",
        "!json {}",
        "!json\n{}",
        "```",
        "````",
        "```csv\na\n1\n```",
        "-",
        "- a",
        "| a |",
        "|",
        "a: b",
        "a:",
        ":",
        "#",
        "\"",
        "\\",
        "{}",
        "[]",
        "{\"a\":1}",
        "[{\"a\":1,\"b\":\"c\"},{\"a\":2}]",
        "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1},{\"a\":3,\"b\":4}]",
        "{\"a\": 1}",
        "{\"a\":\"{\\\"b\\\":null}\",\"n\":null}",
        "a\nb",
        "\n",
        "\"a\"\n\n\"b\"\n",
        "a\r\nb",
        "\r",
        "\t",
        "a\u{85}b",
        "\u{2028}",
        "\u{feff}x",
        " x ",
        "é,",
        "a,b",
        "\0",
        "~~~\n``` x\n~~~",
    ];
    prop_oneof![3 => prop::sample::select(hostile).prop_map(str::to_owned), 1 => any::<String>(), 1 => "[a-z ]{1,12}"]
}

fn any_value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        prop::sample::select(vec!["0", "-0", "1", "1.0", "1e400", "12345678901234567890"])
            .prop_map(|literal| Json::Number(literal.to_owned())),
        any_text().prop_map(Json::String),
        any_text().prop_map(Json::String),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let members = prop::collection::btree_map(any_text(), inner.clone(), 0..5);
        let row = (inner.clone(), inner.clone(), any::<bool>()).prop_map(|(one, two, both)| {
            let mut row = vec![("one".to_owned(), one)];
            row.extend(both.then_some(("two".to_owned(), two)));
            Json::Object(row)
        });
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::Array),
            members.prop_map(|members| Json::Object(members.into_iter().collect())),
            prop::collection::vec(row, 1..6).prop_map(Json::Array),
            inner.prop_map(|value| Json::String(value.compact())),
        ]
    })
}

/// A body that some form makes shorter, whatever is in it.
fn any_body() -> impl Strategy<Value = String> {
    prop::collection::vec((any_text(), any_value()), 1..5).prop_map(|mut members| {
        members.sort_by(|one, two| one.0.cmp(&two.0));
        members.dedup_by(|one, two| one.0 == two.0);
        let gain =
            [("nothing one", Json::Null), ("nothing two", Json::String("\"\n\"\n\"\n\"\n\"\n\"\n\"\n\"".to_owned()))];
        members.extend(gain.map(|(key, value)| (key.to_owned(), value)));
        Json::Object(members).compact()
    })
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_body_comes_back(body in any_body(), depth in 0_usize..8) {
        match attempted(&body, depth) {
            EncodeAttempt::Unproven => prop_assert!(false, "{body} at depth {depth}"),
            EncodeAttempt::Refused => prop_assert!(depth == 0 || classify(body.as_bytes()).is_json(), "{body}"),
            EncodeAttempt::Proven(_) => {}
        }
    }

    #[test]
    fn keys_keep_their_order_where_no_table_is(body in any_body(), depth in 1_usize..8) {
        if let EncodeAttempt::Proven(text) = attempted(&body, depth)
            && !text.contains("csv") && !text.contains("| --- ")
        {
            prop_assert_eq!(decoded(&text), Some(body));
        }
    }

    #[test]
    fn no_text_upsets_the_reader(pieces in prop::collection::vec(prop::sample::select(vec![
        "a", ":", " ", "\n", "-", "- ", "|", "| a |\n", "| --- |\n",
        "```", "```csv\n", "\n```\n", "!json", "\"", "1", "{\"a\":1}",
        "é", "\u{a0}", "\r", "a: b\n", "a:\n ",
    ]), 0..24)) {
        let text = pieces.concat();
        if let Some(Meaning::Json(value)) = (format().decode)(&text) {
            prop_assert!(value.is_container() || value.as_str().is_some());
        }
    }
}
