//! Our checks of values against schemas, held against those of a validator that we did not write.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::whatif::arg_check::schema::{Schema, SchemaRefusal};

/// Values that schemas are about, and some that they are not.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-4_i64..12).prop_map(Value::from),
        (-40_i64..120).prop_map(|tenths| json!(tenths as f64 / 10.0)),
        "[ab0-9é~/]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc/]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn type_name() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["array", "boolean", "integer", "null", "number", "object", "string"])
        .prop_map(Value::from)
}

/// Keywords that look at nothing inside a value.
fn plain_keyword() -> impl Strategy<Value = (String, Value)> {
    let sized =
        prop::sample::select(vec!["maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"]);
    let bound = prop::sample::select(vec!["maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"]);
    let number = prop_oneof![(-3_i64..9).prop_map(Value::from), (-30_i64..90).prop_map(|t| json!(t as f64 / 10.0))];
    let names = prop::collection::btree_set("[abc]", 0..3).prop_map(|names| json!(names));
    prop_oneof![
        type_name().prop_map(|name| ("type".to_owned(), name)),
        prop::collection::btree_set(0..7_usize, 1..3).prop_map(|at| {
            let names = ["array", "boolean", "integer", "null", "number", "object", "string"];
            ("type".to_owned(), at.into_iter().map(|at| names[at]).collect())
        }),
        (sized, 0_u64..4).prop_map(|(key, size)| (key.to_owned(), json!(size))),
        (bound, number).prop_map(|(key, number)| (key.to_owned(), number)),
        prop::sample::select(vec![json!(2), json!(0.1), json!(0.5), json!(3)])
            .prop_map(|step| ("multipleOf".to_owned(), step)),
        prop::collection::vec(value(), 1..3).prop_map(|values| ("enum".to_owned(), Value::from(values))),
        value().prop_map(|value| ("const".to_owned(), value)),
        any::<bool>().prop_map(|unique| ("uniqueItems".to_owned(), json!(unique))),
        prop::sample::select(vec!["^a", "\\d", "[^\\w]$", "b{2}", "^[a/]+$", "[[é]"])
            .prop_map(|pattern| ("pattern".to_owned(), json!(pattern))),
        names.clone().prop_map(|names| ("required".to_owned(), names)),
        names.prop_map(|names| ("dependentRequired".to_owned(), json!({ "a": names }))),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let object = |keywords: Vec<(String, Value)>| Value::Object(keywords.into_iter().collect::<Map<_, _>>());
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Value::from),
        8 => prop::collection::vec(plain_keyword(), 0..3).prop_map(object),
        1 => Just(json!({ "$ref": "#/$defs/n" })),
    ];
    leaf.prop_recursive(3, 20, 4, move |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3).prop_map(Value::from);
        let members = prop::collection::btree_map("[abc]", inner.clone(), 1..3).prop_map(|members| json!(members));
        let one = prop::sample::select(vec![
            "items",
            "additionalProperties",
            "contains",
            "not",
            "if",
            "then",
            "else",
            "unevaluatedProperties",
            "unevaluatedItems",
            "propertyNames",
        ]);
        let keyword = prop_oneof![
            (one, inner.clone()).prop_map(|(key, schema)| (key.to_owned(), schema)),
            (prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]), list)
                .prop_map(|(key, list)| (key.to_owned(), list)),
            (prop::sample::select(vec!["properties", "dependentSchemas"]), members)
                .prop_map(|(key, members)| (key.to_owned(), members)),
            inner.prop_map(|schema| ("patternProperties".to_owned(), json!({ "^[ab]": schema }))),
            (prop::sample::select(vec!["minContains", "maxContains"]), 0_u64..3)
                .prop_map(|(key, count)| (key.to_owned(), json!(count))),
            plain_keyword(),
        ];
        prop::collection::vec(keyword, 1..4).prop_map(object)
    })
}

/// What does not fit, as the other validator says it.
fn expected(schema: &Value, value: &Value) -> Vec<(String, String)> {
    let validator = jsonschema::options().build(schema).unwrap();
    let told = validator.iter_errors(value).map(|error| {
        let path = error.schema_path().to_string();
        let keyword = match error.kind().keyword() {
            // Where it stands alone, the other one calls it by its value.
            "falseSchema"
                if path.ends_with("/additionalProperties") && !path.ends_with("/properties/additionalProperties") =>
            {
                "additionalProperties"
            }
            keyword => keyword,
        };
        (error.instance_path().to_string(), keyword.to_owned())
    });
    told.collect()
}

/// A case that only some draws reach.
#[test]
fn additional_properties_alone_in_a_part_have_their_name() {
    let schema = json!({ "allOf": [{ "additionalProperties": false }] });
    let value = json!({ "a": null });
    assert_eq!(sorted(found(&schema, &value)), [(String::new(), "additionalProperties".to_owned())]);
    assert_eq!(sorted(expected(&schema, &value)), sorted(found(&schema, &value)));
}

fn found(schema: &Value, value: &Value) -> Vec<(String, String)> {
    let schema = Schema::new(schema).unwrap();
    schema.faults(value).into_iter().map(|fault| (fault.pointer, fault.keyword.to_owned())).collect()
}

fn sorted(mut faults: Vec<(String, String)>) -> Vec<(String, String)> {
    faults.sort();
    faults.dedup();
    faults
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_does_not_fit_is_what_another_validator_says(schema in schema(), values in prop::collection::vec(value(), 6)) {
        let mut schema = schema;
        if let Value::Object(keywords) = &mut schema {
            keywords.insert("$defs".to_owned(), json!({ "n": { "type": "integer", "minimum": 2 } }));
        }
        prop_assume!(schema.is_object());
        for value in values {
            prop_assert_eq!(sorted(found(&schema, &value)), sorted(expected(&schema, &value)), "{} {}", schema, value);
        }
    }

    #[test]
    fn any_json_is_a_schema_or_refused(text in value(), instance in value()) {
        if let Ok(schema) = Schema::new(&json!({ "properties": text, "items": { "$ref": "#/properties/a" } })) {
            schema.faults(&instance);
        }
    }
}

#[test]
fn references_lead_to_pointers_anchors_and_named_parts() {
    let number = json!({ "$anchor": "n", "$id": "urn:n", "type": "integer" });
    for reference in ["#/$defs/a~1b%20c", "#n", "urn:n", "urn:n#"] {
        let schema = json!({ "properties": { "x": { "$ref": reference } }, "$defs": { "a/b c": number } });
        assert_eq!(found(&schema, &json!({ "x": "1" })), [("/x".into(), "type".into())], "{reference}");
        assert_eq!(found(&schema, &json!({ "x": 1 })), [], "{reference}");
    }
    assert!(matches!(Schema::new(&json!({ "$ref": "#/nowhere" })), Err(SchemaRefusal::Broken(_))));
    assert_eq!(Schema::new(&json!({ "$ref": "urn:other" })).unwrap_err(), SchemaRefusal::Remote);
}

#[test]
fn what_only_a_reference_leads_to_is_a_part_like_any_other() {
    let schema = |part: Value| {
        json!({ "properties": { "x": { "$ref": "#/parts/a" } },
            "parts": { "a": { "items": { "$ref": "#/parts/b" } }, "b": part } })
    };
    let circle = schema(json!({ "pattern": "^x", "anyOf": [{ "$ref": "#/parts/a" }, true] }));
    assert_eq!(found(&circle, &json!({ "x": ["y", "xy"] })), [("/x/0".into(), "pattern".into())]);
    let remote = schema(json!({ "$ref": "https://example.com/s.json" }));
    assert_eq!(Schema::new(&remote).unwrap_err(), SchemaRefusal::Remote);
    for part in [json!({ "type": "strin" }), json!("string")] {
        assert!(matches!(Schema::new(&schema(part)), Err(SchemaRefusal::Broken(_))));
    }
}

#[test]
fn older_drafts_are_read_as_they_were_meant() {
    let draft = "http://json-schema.org/draft-07/schema#";
    let lone = json!({ "$schema": draft, "properties": { "x": { "$ref": "#/definitions/n", "maximum": 1 } },
        "definitions": { "n": { "type": "number" } } });
    assert_eq!(found(&lone, &json!({ "x": 9 })), []);
    let pair = json!({ "$schema": draft, "items": [{ "type": "string" }], "additionalItems": { "type": "number" } });
    assert_eq!(found(&pair, &json!(["a", 1, 2])), []);
    assert_eq!(sorted(found(&pair, &json!([1, 1, "a"]))), [("/0".into(), "type".into()), ("/2".into(), "type".into())]);
    let below = json!({ "maximum": 3, "exclusiveMaximum": true, "minimum": 1 });
    assert_eq!(found(&below, &json!(3)), [("".into(), "maximum".into())]);
    assert_eq!(found(&below, &json!(1)), []);
}

#[test]
fn a_pattern_that_looks_ahead_is_named_and_refuses_nothing() {
    let schema = json!({ "patternProperties": { "^(?!a)": false }, "additionalProperties": false, "pattern": "x" });
    let schema = Schema::new(&schema).unwrap();
    assert_eq!(schema.unmatched().collect::<Vec<_>>(), ["^(?!a)"]);
    assert!(schema.faults(&json!({ "b": 1 })).is_empty());
}

#[test]
fn ladders_of_references_end() {
    let rungs = 60;
    let mut parts: Map<String, Value> = (0..rungs)
        .map(|at| (format!("r{at}"), json!({ "anyOf": vec![json!({ "$ref": format!("#/$defs/r{}", at + 1) }); 2] })))
        .collect();
    parts.insert(format!("r{rungs}"), json!(false));
    let ladder = json!({ "$defs": parts, "$ref": "#/$defs/r0" });
    assert!(!found(&ladder, &json!(1)).is_empty());
    // All names of an object together have no more steps than one value.
    let named = json!({ "$defs": ladder["$defs"], "propertyNames": { "$ref": "#/$defs/r0" } });
    let names: Map<String, Value> = (0..500).map(|at| (format!("n{at}"), json!(1))).collect();
    assert!(!found(&named, &Value::Object(names)).is_empty());
    let long: Map<String, Value> = (0..20_000)
        .map(|at| (format!("r{at}"), json!({ "$ref": format!("#/$defs/r{}", (at + 1) % 20_000) })))
        .collect();
    assert_eq!(found(&json!({ "$defs": long, "$ref": "#/$defs/r0" }), &json!(1)), [("".into(), "$ref".into())]);
}
