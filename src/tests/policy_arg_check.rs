//! Arguments of calls against schemas.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::whatif::arg_check::outcome::{ArgCheck, ArgClass, Truth};
use crate::whatif::arg_check::{Checker, NoSchemaMode, Params, Rules, tally};
use crate::whatif::catalog::Catalog;
use crate::whatif::catalog::read::Spec;

const SHEET: &str = include_str!("../../rules/policies/arg_check.toml");

#[derive(serde::Deserialize)]
struct Sheet {
    params: Params,
}

fn params() -> Params {
    toml_edit::de::from_str::<Sheet>(SHEET).unwrap().params
}

fn rules() -> Rules {
    toml_edit::de::from_str(SHEET).unwrap()
}

fn catalog(tools: &Value) -> Catalog {
    Catalog::read([(&Spec::parse("tools.json").unwrap(), tools.to_string().as_str())]).unwrap()
}

fn checker_with(tools: &Value, params: Params) -> Checker {
    Checker::new(&catalog(tools), &params, &rules()).unwrap()
}

fn tool(schema: Value) -> Value {
    json!([{ "name": "T", "input_schema": schema }])
}

fn class(schema: Value, input: &Value) -> ArgClass {
    checker_with(&tool(schema), params()).check("T", None, input.to_string().as_bytes()).class
}

fn numbered() -> Value {
    json!({
        "type": "object",
        "required": ["n"],
        "properties": { "n": { "type": "integer" }, "on": { "type": "boolean" }, "s": { "type": "string" } },
    })
}

#[test]
fn each_class_has_its_calls() {
    let cases = [
        (json!({ "n": 1, "other": [] }), ArgClass::Valid),
        (json!(r#"{"n": 1}"#), ArgClass::ParsedString),
        (json!("{n: 1"), ArgClass::ParseError),
        (json!({ "__unparsedToolInput": { "raw": "{", "len": 1 } }), ArgClass::ParseError),
        (json!({ "n": "1", "on": "true" }), ArgClass::Coercible),
        (json!({ "n": 2, "on": "0" }), ArgClass::Coercible),
        (json!({ "n": "one" }), ArgClass::Invalid),
        (json!({ "n": 1, "on": "yes" }), ArgClass::Invalid),
        (json!({ "n": 1, "s": 5 }), ArgClass::Invalid),
        (json!({}), ArgClass::Invalid),
        (json!([1]), ArgClass::Invalid),
        (json!(r#"{"n": "x"}"#), ArgClass::Invalid),
    ];
    for (input, expected) in cases {
        assert_eq!(class(numbered(), &input), expected, "{input}");
    }
    let checker = checker_with(&tool(numbered()), params());
    assert_eq!(checker.check("T", None, b"{\"n\": 1").class, ArgClass::ParseError);
    assert_eq!(checker.check("U", None, b"{\"n\": 1}").class, ArgClass::UnknownTool);
}

#[test]
fn strict_takes_what_could_be_coerced_for_invalid() {
    let strict = Params { coerce: false, ..params() };
    let checker = checker_with(&tool(numbered()), strict);
    assert_eq!(checker.check("T", None, br#"{"n": "1"}"#).class, ArgClass::Invalid);
}

#[test]
fn texts_are_read_as_what_any_alternative_wants() {
    let numbers = json!({ "properties": { "a": { "type": "integer" }, "b": { "type": "string" } } });
    let truths = json!({ "properties": { "a": { "type": "string" }, "b": { "type": "boolean" } } });
    let cases = [
        (json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }), json!("5"), true),
        (json!({ "oneOf": [{ "type": "boolean" }, { "type": "array" }] }), json!("true"), true),
        (json!({ "anyOf": [{ "type": "object" }, { "anyOf": [{ "type": "number" }] }] }), json!("5"), true),
        (json!({ "anyOf": [{ "type": "integer", "minimum": 9 }, { "type": "null" }] }), json!("5"), false),
        (json!({ "oneOf": [{ "type": "integer" }, { "type": "number" }] }), json!("5"), false),
        (
            json!({ "oneOf": [{ "type": "array" }, { "$ref": "#/$defs/n" }], "$defs": { "n": { "type": "number" } } }),
            json!("5"),
            true,
        ),
        (json!({ "type": ["integer", "boolean"] }), json!("true"), true),
        (json!({ "type": ["number", "boolean"] }), json!("yes"), false),
        // One reading for all members, that of an alternative which they fit together.
        (json!({ "anyOf": [numbers, truths], "required": ["a", "b"] }), json!({ "a": "x", "b": "true" }), true),
        (json!({ "oneOf": [truths, numbers] }), json!({ "a": [], "b": "1" }), false),
    ];
    for (schema, input, fits) in cases {
        let input = json!({ "in": input });
        let mut whole = json!({ "properties": { "in": schema } });
        whole["$defs"] = whole["properties"]["in"]["$defs"].take();
        whole.as_object_mut().unwrap().retain(|_, part| !part.is_null());
        whole["properties"]["in"].as_object_mut().unwrap().retain(|_, part| !part.is_null());
        let expected = if fits { ArgClass::Coercible } else { ArgClass::Invalid };
        assert_eq!(class(whole.clone(), &input), expected, "{whole} {input}");
    }
}

/// Deep in alternatives nothing is looked for, however many of them there are.
#[test]
fn ladders_of_alternatives_end() {
    for width in [1, 2] {
        let rungs = 5_000;
        let rung = |at: usize| json!({ "anyOf": vec![json!({ "$ref": format!("#/$defs/r{}", at + 1) }); width] });
        let mut parts: serde_json::Map<_, _> = (0..rungs).map(|at| (format!("r{at}"), rung(at))).collect();
        parts.insert(format!("r{rungs}"), json!({ "type": "integer" }));
        assert_eq!(class(json!({ "$defs": parts, "$ref": "#/$defs/r0" }), &json!("5")), ArgClass::Invalid);
    }
}

#[test]
fn whatever_is_json_is_read() {
    let checker =
        checker_with(&tool(json!({ "properties": { "s": { "maxLength": 3 }, "n": { "type": "number" } } })), params());
    let class = |input: &str| checker.check("T", None, input.as_bytes()).class;
    let nested = |depth: usize| format!(r#"{{"x":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    for valid in [r#"{"s":"a\ud83db","n":1e400}"#, r#"{"s":"\ude00","n":-1e999}"#, r#"{"\ud83d":[]}"#, &nested(1_000)] {
        assert_eq!(class(valid), ArgClass::Valid, "{valid}");
        assert_eq!(class(&json!(valid).to_string()), ArgClass::ParsedString, "{valid}");
    }
    // Half a pair is one code point; a whole one is, too.
    assert_eq!(class(r#"{"s":"ab\ud83d\ude00"}"#), ArgClass::Valid);
    assert_eq!(class(r#"{"s":"abc\ud83d"}"#), ArgClass::Invalid);
    let broken = [
        r#"{"n":1e}"#,
        r#"{"s":"\ud8"}"#,
        r#"{"s":"\x"}"#,
        r#"{"n":1}}"#,
        "{\"s\":\"a\tb\"}",
        "",
        "{'n':1}",
        r#"{"n":01}"#,
    ];
    for broken in broken.map(str::to_owned).into_iter().chain([nested(5_000)]) {
        assert_eq!(class(&broken), ArgClass::ParseError, "{broken}");
    }
}

#[test]
fn a_tool_without_a_schema_gets_what_the_mode_says() {
    let modes = [
        (NoSchemaMode::Blocked, ArgClass::NoSchemaBlocked),
        (NoSchemaMode::ReadOnly, ArgClass::NoSchemaReadOnly),
        (NoSchemaMode::HumanApproval, ArgClass::NoSchemaHumanApproval),
        (NoSchemaMode::Full, ArgClass::NoSchemaFull),
    ];
    for (no_schema_mode, expected) in modes {
        let checker = checker_with(&json!([{ "name": "T" }]), Params { no_schema_mode, ..params() });
        assert_eq!(checker.check("T", None, b"{}").class, expected);
    }
}

#[test]
fn remote_references_are_refused_and_local_ones_followed() {
    for elsewhere in ["https://example.com/x.json", "other.json#/a", "file:///etc/schema.json"] {
        let schema = json!({ "properties": { "a": { "$ref": elsewhere } } });
        assert_eq!(class(schema, &json!({ "a": 1 })), ArgClass::RemoteRefRefused, "{elsewhere}");
    }
    let schema = json!({ "properties": { "a": { "$ref": "#/$defs/n" } }, "$defs": { "n": { "type": "integer" } } });
    assert_eq!(class(schema.clone(), &json!({ "a": 1 })), ArgClass::Valid);
    assert_eq!(class(schema.clone(), &json!({ "a": "1" })), ArgClass::Coercible);
    assert_eq!(class(schema, &json!({ "a": "x" })), ArgClass::Invalid);
}

#[test]
fn loops_of_references_end() {
    let ring = json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } }, "$ref": "#/$defs/a" });
    let inward = json!({ "$defs": { "a": { "allOf": [{ "$ref": "#" }] } }, "anyOf": [{ "$ref": "#/$defs/a" }] });
    for schema in [ring, inward, json!({ "$ref": "#" })] {
        assert_eq!(class(schema, &json!({ "n": 1 })), ArgClass::Valid);
    }
    // A tree is no loop: each step goes one level down.
    let tree = json!({ "type": "object", "properties": { "left": { "$ref": "#" } }, "required": ["name"] });
    assert_eq!(class(tree.clone(), &json!({ "name": 1, "left": { "name": 2 } })), ArgClass::Valid);
    assert_eq!(class(tree, &json!({ "name": 1, "left": {} })), ArgClass::Invalid);
}

#[test]
fn errors_name_the_place_and_the_keyword_and_no_value() {
    let schema = json!({
        "type": "object",
        "required": ["list"],
        "properties": { "list": { "type": "array", "items": { "properties": { "a/b": { "enum": [1] } } } } },
    });
    let checker = checker_with(&tool(schema), params());
    let verdict = checker.check("T", None, br#"{"list": [{}, {"a/b": "secret"}]}"#);
    assert_eq!(verdict.class, ArgClass::Invalid);
    assert_eq!(verdict.errors.len(), 1);
    assert_eq!((verdict.errors[0].pointer.as_str(), verdict.errors[0].keyword.as_str()), ("/list/1/a~1b", "enum"));
    let missing = checker.check("T", None, b"{}");
    assert_eq!((missing.errors[0].pointer.as_str(), missing.errors[0].keyword.as_str()), ("", "required"));
    let mut found = ArgCheck::default();
    tally(&mut found, "T", &verdict, Truth::Refused);
    tally(&mut found, "T", &missing, Truth::Accepted);
    assert_eq!(found.errors, BTreeMap::from([("T/list/*/a~1b: enum".into(), 1), ("T: required".into(), 1)]));
    assert_eq!((found.calls(), found.count(ArgClass::Invalid)), (2, 2));
    assert!(!format!("{found:?}").contains("secret"));
}

#[test]
fn a_schema_that_is_none_names_file_and_tool() {
    let broken = catalog(&tool(json!({ "type": "strin" })));
    let error = Checker::new(&broken, &params(), &rules()).err().unwrap();
    assert!(error.message.starts_with("tools.json: tool T: its schema is no JSON Schema"), "{}", error.message);
}

#[test]
fn the_version_of_the_client_decides_between_definitions() {
    let tools = json!([
        { "name": "T", "until": "2.0.0", "input_schema": { "required": ["old"] } },
        { "name": "T", "since": "2.0.0", "input_schema": { "required": ["new"] } },
    ]);
    let checker = checker_with(&tools, params());
    let fits = |version, input: &[u8]| checker.check("T", version, input).class == ArgClass::Valid;
    assert!(fits(Some("1.0.128"), br#"{"old": 1}"#) && !fits(Some("1.0.128"), br#"{"new": 1}"#));
    assert!(fits(Some("2.0.0"), br#"{"new": 1}"#) && fits(None, br#"{"new": 1}"#) && !fits(None, br#"{"old": 1}"#));
}

#[test]
fn results_tell_whether_the_arguments_were_refused() {
    let truth = rules().truth;
    let refused = "<tool_use_error>InputValidationError: Task failed: parameter `prompt` is missing</tool_use_error>";
    assert_eq!(truth.of(Some((true, refused))), Truth::Refused);
    assert_eq!(truth.of(Some((false, refused))), Truth::Accepted);
    assert_eq!(truth.of(Some((true, "Error: No such tool available: X"))), Truth::UnknownTool);
    assert_eq!(truth.of(Some((true, &format!("{}InputValidationError", " ".repeat(300))))), Truth::Accepted);
    assert_eq!(truth.of(None), Truth::Unanswered);
}

#[test]
fn the_shipped_catalog_takes_usual_calls_and_refuses_broken_ones() {
    let text = include_str!("../../rules/catalogs/claude_code.toml");
    let shipped = Catalog::shipped(text, "claude_code.toml").unwrap();
    let checker = Checker::new(&shipped, &params(), &rules()).unwrap();
    let class = |tool, version, input: Value| checker.check(tool, Some(version), input.to_string().as_bytes()).class;
    let todo = json!({ "content": "x", "status": "pending", "priority": "high", "id": "1" });
    let usual = [
        ("Read", "1.0.17", json!({ "file_path": "/a", "offset": 1, "limit": 20 })),
        ("Grep", "1.0.43", json!({ "pattern": "x", "include": "*.rs" })),
        ("Grep", "2.1.219", json!({ "pattern": "x", "-n": true, "-A": 3, "output_mode": "content" })),
        ("Task", "1.0.35", json!({ "description": "d", "prompt": "p" })),
        ("Agent", "2.1.219", json!({ "description": "d", "prompt": "p" })),
        ("TodoWrite", "1.0.17", json!({ "todos": [todo] })),
        ("ExitPlanMode", "2.1.108", json!({ "plan": "p", "planFilePath": "/p" })),
    ];
    for (tool, version, input) in usual {
        assert_eq!(class(tool, version, input), ArgClass::Valid, "{tool} {version}");
    }
    assert_eq!(class("Task", "1.0.108", json!({ "description": "d", "subagent_type": "x" })), ArgClass::Invalid);
    assert_eq!(class("AskUserQuestion", "2.1.209", json!({ "questions": [] })), ArgClass::Invalid);
    assert_eq!(class("Read", "2.1.209", json!({ "file_path": "/a", "limit": "20" })), ArgClass::Coercible);
}

/// A schema and a value that fits it.
fn schema_and_value() -> impl Strategy<Value = (Value, Value)> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(|n| (json!({ "type": "integer" }), json!(n))),
        any::<bool>().prop_map(|b| (json!({ "type": "boolean" }), json!(b))),
        "[a-z]{0,5}".prop_map(|s| (json!({ "type": "string" }), json!(s))),
        Just((json!({ "enum": ["a", "b"] }), json!("b"))),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|(schema, value)| (json!({ "type": "array", "items": schema }), json!([value]))),
            prop::collection::btree_map("[a-z]{1,4}", inner, 1..4).prop_map(object),
        ]
    })
}

fn object(members: BTreeMap<String, (Value, Value)>) -> (Value, Value) {
    let properties = members.iter().map(|(name, (schema, _))| (name.clone(), schema.clone()));
    let properties = properties.collect::<serde_json::Map<_, _>>();
    let required = members.keys().collect::<Vec<_>>();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    (schema, Value::Object(members.into_iter().map(|(name, (_, value))| (name, value)).collect()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_value_made_from_its_schema_is_valid_and_without_a_required_key_is_not(
        members in prop::collection::btree_map("[a-z]{1,4}", schema_and_value(), 1..5),
        gone in any::<prop::sample::Index>(),
    ) {
        let (schema, mut value) = object(members);
        prop_assert_eq!(class(schema.clone(), &value), ArgClass::Valid);
        prop_assert_eq!(class(schema.clone(), &json!(value.to_string())), ArgClass::ParsedString);
        let keys = value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        value.as_object_mut().unwrap().remove(gone.get(&keys));
        prop_assert_eq!(class(schema, &value), ArgClass::Invalid);
    }

    #[test]
    fn json_is_read_as_by_other_readers(text in r#"[\[\]{},:"0-9eE+.\\ua-f -]{0,12}|\{"a": ?(-?[0-9.eE]{1,6}|"[\\uD8-9"]{0,8}"|true|null)\}"#) {
        let checker = checker_with(&tool(json!({ "type": ["array", "object", "string", "number", "boolean", "null"] })), params());
        let is_read = checker.check("T", None, text.as_bytes()).class != ArgClass::ParseError;
        let other = serde_json::from_str::<Value>(&text);
        let is_text = other.as_ref().is_ok_and(Value::is_string);
        prop_assert!(is_read || is_text || other.is_err(), "{}", text);
    }

    #[test]
    fn what_is_coercible_is_invalid_under_strict_and_the_class_depends_on_nothing_else(
        (schema, value) in schema_and_value(),
        text in "[a-z0-9]{0,3}",
    ) {
        let inputs = [value.clone(), json!(text), json!({ "a": text }), json!([text]), json!([[value]])];
        let strict = checker_with(&tool(schema.clone()), Params { coerce: false, ..params() });
        let lenient = checker_with(&tool(schema), params());
        for input in inputs {
            let input = input.to_string();
            let (one, other) = (lenient.check("T", None, input.as_bytes()), strict.check("T", None, input.as_bytes()));
            prop_assert_eq!(lenient.check("T", None, input.as_bytes()), one.clone());
            if one.class == ArgClass::Coercible {
                prop_assert_eq!(other.class, ArgClass::Invalid);
            } else {
                prop_assert_eq!(other.class, one.class);
            }
        }
    }
}
