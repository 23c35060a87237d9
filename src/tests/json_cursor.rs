//! The JSON cursor against serde_json: the same extents, the same texts, and no bytes that upset it.

use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::base::json::{Cursor, DEPTH_MAX, JsonFault, JsonKind, RawStr, TextSink, decode_into};
use crate::tests::log_builder::cases;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_container() -> impl Strategy<Value = Value> {
    any_json().prop_map(|value| match value {
        Value::Number(_) => Value::Array(vec![value]),
        other => other,
    })
}

fn spelled(value: &Value, pretty: bool) -> String {
    if pretty { serde_json::to_string_pretty(value).unwrap() } else { value.to_string() }
}

/// One of the spellings that JSON has for a character.
fn spelling(character: char, how: u8) -> String {
    let short = match character {
        '"' => "\\\"",
        '\\' => "\\\\",
        '/' => "\\/",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        _ => "",
    };
    let must = character < ' ' || matches!(character, '"' | '\\');
    match how % 4 {
        0 if !short.is_empty() => short.to_owned(),
        0 | 1 if !must => character.to_string(),
        2 => character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        _ => character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
    }
}

#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
    halves: usize,
}

impl TextSink for Text {
    fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    fn lone_surrogate(&mut self) {
        self.halves += 1;
    }
}

/// Bytes that look like JSON more often than chance would have it.
fn json_like() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\\", "\\u", "\\ud83d", "\\n", "1", "-", "2.5e3", "true", "fals",
        "nul", "null", " ", "\n", "é", "{\"a\":", "[[",
    ]);
    prop_oneof![
        prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..64),
    ]
}

/// Visits every value, as a reader would who wants all of it; returns the number of steps.
fn visit(bytes: &[u8]) -> Result<usize, JsonFault> {
    let mut cursor = Cursor::new(bytes);
    let mut open: Vec<(bool, bool)> = Vec::new();
    let mut steps = 0;
    loop {
        steps += 1;
        assert!(steps <= 2 * bytes.len() + 2, "the cursor stands still");
        match cursor.shape()? {
            shape @ (JsonKind::Object | JsonKind::Array) => {
                let first = cursor.enter()?;
                open.push((shape == JsonKind::Object, first));
            }
            JsonKind::String => cursor.decode_string(&mut Text::default())?,
            JsonKind::Bool => drop(cursor.boolean()?),
            JsonKind::Number => drop(cursor.number()?),
            JsonKind::Null => cursor.skip_value()?,
        }
        loop {
            steps += 1;
            let Some((object, first)) = open.last_mut() else { return Ok(steps) };
            let more = if *object { cursor.next_key(first)?.is_some() } else { cursor.next_element(first)? };
            if more {
                break;
            }
            open.pop();
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn skipping_a_value_takes_exactly_its_text(
        value in any_json(),
        pretty in any::<bool>(),
        behind in prop::sample::select(vec!["", " ", ",", "}", "]", "{\"a\":1}", "\"", "x", "\n7"]),
    ) {
        let text = spelled(&value, pretty);
        let line = format!(" \t{text}{behind}");
        let mut cursor = Cursor::new(line.as_bytes());
        prop_assert_eq!(cursor.skip_value(), Ok(()));
        prop_assert_eq!(cursor.pos(), text.len() + 2);
        prop_assert_eq!(cursor.rest(), behind.as_bytes());
    }

    #[test]
    fn a_string_ends_at_its_first_quote_that_is_not_escaped(
        text in prop::collection::vec(prop::sample::select(b"\\\\\\\\\\\\\\\\\\\"aa".as_slice()), 0..400),
    ) {
        let text = [b"\"", text.as_slice()].concat();
        let mut is_escaped = false;
        let end = text[1..].iter().position(|&byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        });
        let mut cursor = Cursor::new(&text);
        prop_assert_eq!(cursor.skip_value().ok().map(|()| cursor.pos()), end.map(|end| end + 2));
    }

    #[test]
    fn visiting_a_value_accepts_what_skipping_accepts(value in any_json(), pretty in any::<bool>()) {
        prop_assert!(visit(spelled(&value, pretty).as_bytes()).is_ok());
    }

    #[test]
    fn a_value_cut_anywhere_is_torn(value in any_container(), pretty in any::<bool>()) {
        let text = spelled(&value, pretty);
        for end in 0..text.len() {
            let cut = &text.as_bytes()[..end];
            prop_assert_eq!(Cursor::new(cut).skip_value(), Err(JsonFault::Torn), "{:?}", String::from_utf8_lossy(cut));
            prop_assert_eq!(visit(cut), Err(JsonFault::Torn), "{:?}", String::from_utf8_lossy(cut));
        }
    }

    #[test]
    fn whatever_serde_accepts_is_accepted_to_the_same_end(
        value in any_json(),
        at in any::<prop::sample::Index>(),
        change in prop::sample::select(b"{}[],:\"\\ 01tfn-.e".to_vec()),
        kind in 0..3,
    ) {
        let mut text = value.to_string().into_bytes();
        let at = at.index(text.len());
        match kind {
            0 => text[at] = change,
            1 => text.insert(at, change),
            _ => drop(text.remove(at)),
        }
        if serde_json::from_slice::<IgnoredAny>(&text).is_ok() {
            let mut cursor = Cursor::new(&text);
            prop_assert_eq!(cursor.skip_value(), Ok(()));
            prop_assert!(cursor.at_end());
        }
    }

    #[test]
    fn strings_decode_as_serde_decodes_them(
        text in any::<String>(),
        // Decoded text is handed on in pieces: some have to be longer than one.
        times in prop::sample::select(vec![1, 2, 3, 50, 400]),
        hows in prop::collection::vec(any::<u8>(), 1..8),
    ) {
        let text = text.repeat(times);
        let inner: String = text.chars().zip(hows.iter().cycle()).map(|(c, how)| spelling(c, *how)).collect();
        let quoted = format!("\"{inner}\"");
        let expected: String = serde_json::from_str(&quoted).unwrap();
        prop_assert_eq!(&expected, &text);
        let mut cursor = Cursor::new(quoted.as_bytes());
        let raw = cursor.string().unwrap();
        prop_assert!(cursor.at_end());
        prop_assert_eq!(raw.0, inner.as_bytes());
        prop_assert_eq!(raw.decode().map(|text| text.into_owned()), Some(text.clone().into_bytes()));
        prop_assert_eq!(raw.plain().is_some(), !inner.contains('\\'));
        let mut sink = Text::default();
        let mut cursor = Cursor::new(quoted.as_bytes());
        prop_assert_eq!(cursor.decode_string(&mut sink), Ok(()));
        prop_assert!(cursor.at_end());
        prop_assert_eq!((sink.bytes, sink.halves), (text.into_bytes(), 0));
    }

    #[test]
    fn utf16_units_pair_as_the_standard_says(
        units in prop::collection::vec(
            prop_oneof![0xD7F0_u16..0xE010, prop::sample::select(vec![0xD83D, 0xDE00, 0x41, 0x7FF, 0x800, 0xFFFF])],
            0..12,
        ),
    ) {
        let inner: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
        let decoded: Vec<Result<char, _>> = char::decode_utf16(units.iter().copied()).collect();
        let mut sink = Text::default();
        prop_assert_eq!(decode_into(inner.as_bytes(), &mut sink), Ok(()));
        prop_assert_eq!(sink.halves, decoded.iter().filter(|unit| unit.is_err()).count());
        let starts = sink.bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        prop_assert_eq!(starts, decoded.len());
        if let Ok(text) = decoded.into_iter().collect::<Result<String, _>>() {
            prop_assert_eq!(sink.bytes, text.into_bytes());
        }
    }

    #[test]
    fn no_bytes_make_a_call_panic_or_go_astray(bytes in json_like()) {
        for start in 0..=bytes.len() {
            type Step = fn(&mut Cursor<'_>) -> Result<(), JsonFault>;
            let steps: [Step; 9] = [
                |cursor| cursor.shape().map(drop),
                |cursor| cursor.enter().map(drop),
                |cursor| cursor.next_key(&mut true).map(drop),
                |cursor| cursor.next_key(&mut false).map(drop),
                |cursor| cursor.next_element(&mut false).map(drop),
                |cursor| cursor.decode_string(&mut Text::default()),
                |cursor| cursor.boolean().map(drop),
                |cursor| cursor.number().map(drop),
                |cursor| cursor.skip_value(),
            ];
            for step in steps {
                let mut cursor = Cursor::at(&bytes, start);
                let outcome = step(&mut cursor);
                prop_assert!((start..=bytes.len()).contains(&cursor.pos()));
                prop_assert_eq!(cursor.rest().len(), bytes.len() - cursor.pos());
                prop_assert!(outcome != Err(JsonFault::TooDeep));
            }
            let _either = RawStr(&bytes[start..]).decode();
        }
        let _either = visit(&bytes);
    }
}

#[test]
fn a_million_open_brackets_are_too_deep() {
    for bracket in ["[", "{\"a\":", "[{\"a\":"] {
        assert_eq!(Cursor::new(bracket.repeat(1_000_000).as_bytes()).skip_value(), Err(JsonFault::TooDeep));
    }
}

#[test]
fn nesting_is_followed_down_to_the_limit_and_no_further() {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(Cursor::new(nested(DEPTH_MAX).as_bytes()).skip_value(), Ok(()));
    assert_eq!(Cursor::new(nested(DEPTH_MAX + 1).as_bytes()).skip_value(), Err(JsonFault::TooDeep));
    assert_eq!(Cursor::new("[".repeat(DEPTH_MAX).as_bytes()).skip_value(), Err(JsonFault::Torn));
}

#[test]
fn brackets_of_the_wrong_kind_do_not_close() {
    for text in
        ["[}", "{]", "[1}", "{\"a\":1]", "[{]}", "{\"a\":[}]", "[1 2]", "[,1]", "[1,]", "{\"a\"}", "{1:2}", "{,}"]
    {
        assert_eq!(Cursor::new(text.as_bytes()).skip_value(), Err(JsonFault::Syntax), "{text}");
        assert_eq!(visit(text.as_bytes()), Err(JsonFault::Syntax), "{text}");
    }
}

#[test]
fn malformed_escapes_are_noticed_when_a_string_is_read() {
    for inner in ["\\x", "\\u12g4", "\\ud83d\\u12g4", "a\\ b"] {
        let mut sink = Text::default();
        let quoted = format!("\"{inner}\"");
        assert_eq!(Cursor::new(quoted.as_bytes()).decode_string(&mut sink), Err(JsonFault::Syntax), "{inner}");
        assert_eq!(RawStr(inner.as_bytes()).decode(), None, "{inner}");
        assert_eq!(Cursor::new(quoted.as_bytes()).skip_value(), Ok(()), "{inner} is not looked at");
    }
}

/// Bytes beside quotes and backslashes in every place of a word: what a borrow could mistake for one.
#[test]
fn the_end_of_a_string_is_found_wherever_it_stands() {
    for length in 0..150 {
        for end in [&b"\""[..], b"\\\"\"", b"\\\\\""] {
            for filler in [b'!', b'#', b'[', b']', b' ', 0x7F, 0xA2, 0xDC] {
                let text = [&b"\""[..], &vec![filler; length], end, b",\"behind\""].concat();
                let mut cursor = Cursor::new(&text);
                assert_eq!(cursor.string().unwrap().0, &text[1..length + end.len()], "{length} {end:?} {filler}");
                assert_eq!(cursor.rest(), b",\"behind\"");
            }
        }
    }
}

#[test]
fn a_quote_behind_any_run_of_backslashes_is_told() {
    for (letters, slashes) in (1..=64).flat_map(|letters| (0..200).map(move |slashes| (letters, slashes))) {
        let text = format!("\"\\{}{}\"\"", "a".repeat(letters), "\\".repeat(slashes));
        let mut cursor = Cursor::new(text.as_bytes());
        assert_eq!(cursor.skip_value(), Ok(()));
        assert_eq!(cursor.pos(), text.len() - usize::from(slashes % 2 == 0), "{letters}, {slashes}");
    }
}

#[test]
fn an_escaped_quote_does_not_end_a_string() {
    for (text, inner) in [(r#""a\"b" "#, r#"a\"b"#), (r#""a\\" "#, r"a\\"), (r#""\\\"" "#, r#"\\\""#)] {
        assert_eq!(Cursor::new(text.as_bytes()).string(), Ok(RawStr(inner.as_bytes())));
    }
    assert_eq!(Cursor::new(br#""\\\""#).string(), Err(JsonFault::Torn));
}

#[test]
fn a_number_is_what_json_calls_a_number() {
    for text in ["0", "-1", "1.5", "1e9", "-2.5E-3"] {
        assert_eq!(Cursor::new(text.as_bytes()).number(), Ok(text.as_bytes()));
    }
    for text in ["[2026-01-02]", "[1.2.3]", "[--1]", "[1e]", "[01]"] {
        assert_eq!(Cursor::new(text.as_bytes()).skip_value(), Err(JsonFault::Syntax), "{text}");
    }
}
