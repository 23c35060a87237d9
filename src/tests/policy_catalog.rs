//! Tool definitions: the shapes they come in, their sizes, what a provider is sent.

use serde_json::{Value, json};

use crate::base::client_version::ClientVersion;
use crate::base::data::fitting;
use crate::base::unpack::Packing;
use crate::logs::definitions::{Quote, read_all};
use crate::logs::read::Job;
use crate::logs::trace::compare_versions;
use crate::tests::log_builder::{agent_progress, answers, asks, log, user};
use crate::whatif::arg_check::outcome::Provider;
use crate::whatif::catalog::read::{DefinitionShape, Spec, attached, definitions, quoted};
use crate::whatif::catalog::{Catalog, CatalogRules, ToolDefinition};
use crate::whatif::catalog::{shaped, sizes, without_keywords};

const SHIPPED: &str = include_str!("../../rules/catalogs/claude_code.toml");

fn rules() -> CatalogRules {
    fitting(include_str!("../../rules/policies/catalog.toml"), "catalog.toml").unwrap()
}

fn read(spec: &str, value: &Value) -> crate::base::error::Result<(DefinitionShape, Vec<ToolDefinition>)> {
    definitions(&Spec::parse(spec).unwrap(), &value.to_string())
}

fn weather() -> Value {
    json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] })
}

#[test]
fn every_known_shape_gives_the_same_definition() {
    let about = "Tells the weather";
    let mcp = json!({ "name": "weather", "description": about, "inputSchema": weather() });
    let anthropic = json!({ "name": "weather", "description": about, "input_schema": weather() });
    let function = json!({ "name": "weather", "description": about, "parameters": weather() });
    let mut flat = function.clone();
    flat["type"] = json!("function");
    let mut shouting = function.clone();
    shouting["parameters"]["type"] = json!("OBJECT");
    shouting["parameters"]["properties"]["city"]["type"] = json!("STRING");
    let files = [
        (json!({ "tools": [mcp] }), DefinitionShape::Mcp),
        (json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [mcp] } }), DefinitionShape::Mcp),
        (json!([anthropic]), DefinitionShape::Anthropic),
        (json!({ "model": "m", "tools": [anthropic] }), DefinitionShape::Anthropic),
        (json!([{ "type": "function", "function": function }]), DefinitionShape::OpenaiNested),
        (json!([flat]), DefinitionShape::OpenaiFlat),
        (json!([{ "functionDeclarations": [shouting] }]), DefinitionShape::Gemini),
        (json!({ "function_declarations": [shouting] }), DefinitionShape::Gemini),
        (json!([function]), DefinitionShape::Gemini),
    ];
    for (file, shape) in files {
        let (found, tools) = read("tools.json", &file).unwrap();
        assert_eq!(found, shape, "{file}");
        assert_eq!(tools.len(), 1, "{file}");
        assert_eq!((tools[0].name.as_str(), tools[0].description.as_str()), ("weather", about), "{file}");
        assert_eq!(tools[0].schema, Some(weather()), "{file}");
    }
}

#[test]
fn a_server_prefixes_names_once() {
    let file =
        json!({ "tools": [{ "name": "get", "inputSchema": {} }, { "name": "mcp__git__put", "inputSchema": {} }] });
    let (_, tools) = read("server=git:tools.json", &file).unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["mcp__git__get", "mcp__git__put"]);
    assert_eq!(Spec::parse(r"server=git:C:\tools.json").unwrap().file, r"C:\tools.json");
    assert!(Spec::parse("server=:tools.json").is_err());
    assert!(Spec::parse("server=git").is_err());
}

#[test]
fn an_unknown_shape_is_told_with_the_file_what_was_found_and_what_is_known() {
    let cases = [
        (json!("tools"), "found a text"),
        (json!({ "servers": {}, "version": 1 }), "found an object with servers, version"),
        (json!({ "tools": {} }), "found an object with tools"),
        (json!([["Read"]]), "entry 1 of the catalog: found a list of 1"),
        (
            json!([{ "name": "Read", "input_schema": {} }, { "title": "x" }]),
            "entry 2 of the catalog: no name; found an object with title",
        ),
        (json!([{ "name": "Read", "input_schema": "text" }]), "tool Read: input_schema is a text, no schema"),
        (json!([]), "a catalog without tools"),
    ];
    for (file, message) in cases {
        let error = read("my/tools.json", &file).unwrap_err();
        assert!(error.message.starts_with("my/tools.json: "), "{}", error.message);
        assert!(error.message.contains(message), "{}", error.message);
        let hint = error.hint.unwrap();
        for shape in ["tools/list", "Anthropic", "OpenAI", "Gemini"] {
            assert!(hint.contains(shape), "{hint}");
        }
    }
    let error = definitions(&Spec::parse("tools.json").unwrap(), "{\n \"tools\": [\n").unwrap_err();
    assert!(error.message.starts_with("tools.json:3:"), "{}", error.message);
}

#[test]
fn two_files_may_repeat_a_tool_but_not_define_it_otherwise() {
    let one = json!([{ "name": "Read", "input_schema": {} }]).to_string();
    let other = json!([{ "name": "Read", "description": "new", "input_schema": {} }]).to_string();
    let (a, b) = (Spec::parse("a.json").unwrap(), Spec::parse("b.json").unwrap());
    let twice = Catalog::read([(&a, one.as_str()), (&b, one.as_str())]).unwrap();
    assert_eq!(twice.definitions.len(), 1);
    let error = Catalog::read([(&a, one.as_str()), (&b, other.as_str())]).unwrap_err();
    assert!(error.message.contains("b.json: tool Read is defined otherwise in a.json"), "{}", error.message);
}

#[test]
fn tools_of_an_mcp_server_without_its_name_are_noted() {
    let tools = json!({ "tools": [{ "name": "get", "inputSchema": {} }] }).to_string();
    let bare = Spec::parse("t.json").unwrap();
    let named = Spec::parse("server=git:t.json").unwrap();
    assert!(Catalog::read([(&bare, tools.as_str())]).unwrap().notes()[0].contains("server=NAME:t.json"));
    assert!(Catalog::read([(&named, tools.as_str())]).unwrap().notes().is_empty());
}

/// 0.343 tokens per code point and 12 per tool, by hand: 68 code points are 23.3 + 12, 59 are 20.2 + 12.
#[test]
fn sizes_follow_the_formula_over_compact_json() {
    let (_, tools) =
        read("t.json", &json!([{ "name": "weather", "description": "Wetter für Köln", "input_schema": {} }])).unwrap();
    let compact = r#"{"description":"Wetter für Köln","input_schema":{},"name":"weather"}"#;
    assert_eq!(tools[0].canonical().to_string(), compact);
    assert_eq!(compact.chars().count(), 68);
    assert_eq!(rules().sizes.tokens(&tools[0].canonical()), 12 + 23);
    let short = tools[0].trimmed(6);
    assert_eq!(short.description, "Wetter");
    assert_eq!(rules().sizes.tokens(&short.canonical()), 12 + 20);
}

#[test]
fn keywords_go_and_properties_that_are_called_so_stay() {
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "default": { "type": "string", "default": "x", "examples": ["y"] },
            "examples": { "type": "array", "items": { "type": "object", "additionalProperties": {} } },
            "additionalProperties": { "anyOf": [{ "type": "null", "default": null }, { "$ref": "#/$defs/default" }] },
        },
        "$defs": { "default": { "enum": [{ "default": 1 }], "default": 2 } },
        "required": ["default"],
    });
    let kept = json!({
        "type": "object",
        "properties": {
            "default": { "type": "string" },
            "examples": { "type": "array", "items": { "type": "object" } },
            "additionalProperties": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/default" }] },
        },
        "$defs": { "default": { "enum": [{ "default": 1 }] } },
        "required": ["default"],
    });
    assert_eq!(without_keywords(&schema, &rules()), kept);
}

#[test]
fn each_provider_gets_its_shape_and_the_removal_is_a_difference_in_tokens() {
    let schema = json!({ "type": "object", "additionalProperties": false });
    let text = json!([{ "name": "w", "description": "d", "input_schema": schema }]).to_string();
    let spec = Spec::parse("t.json").unwrap();
    let catalog = Catalog::read([(&spec, text.as_str())]).unwrap();
    let parameters = json!({ "type": "object", "additionalProperties": false });
    let function = json!({ "name": "w", "description": "d", "parameters": parameters });
    let mut flat = function.clone();
    flat["type"] = json!("function");
    let wanted = [
        (Provider::Anthropic, json!({ "name": "w", "description": "d", "input_schema": { "type": "object" } })),
        (Provider::Openai, flat),
        (Provider::Ollama, json!({ "type": "function", "function": function })),
        (Provider::Gemini, function),
    ];
    for (provider, shape) in wanted {
        assert_eq!(shaped(&catalog.definitions[0], provider, &rules()), shape);
        let found = sizes(&catalog, provider, &rules());
        assert_eq!(found.tools[0].tokens_sent, rules().sizes.tokens(&shape));
    }
    let (brought, sent) = sizes(&catalog, Provider::Anthropic, &rules()).totals();
    // `,"additionalProperties":false` is 29 code points: 10 tokens, give or take the rounding.
    assert!((9..=11).contains(&(brought - sent)), "{brought} {sent}");
}

#[test]
fn definitions_that_a_log_quotes_are_found_and_other_text_is_not() {
    let tool = r#"{"name": "mcp__git__get", "description": "d", "parameters": {"type": "object"}}"#;
    let text =
        format!("<functions>\n<function>{tool}</function>\n<function>{{torn</function><function>{{}}</function>\n");
    let found = quoted(&text);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name, "mcp__git__get");
    assert!(found[0].schema.is_some() && !found[0].is_real, "it was searched for, so no list held it");
    assert_eq!(quoted(&format!("[{tool}]"))[0].name, "mcp__git__get", "a list is understood as well");
    assert!(quoted("no function here").is_empty());
}

/// A result of several texts is told text by text; what no search asked for, and what a torn record holds, is not told.
#[test]
fn quotes_are_the_texts_of_searches_and_what_was_attached() {
    let parts =
        |texts: &[&str]| -> Value { texts.iter().map(|text| json!({ "type": "text", "text": text })).collect() };
    let records = [
        asks("m-1", "search", "ToolSearch"),
        asks("m-2", "other", "Grep"),
        answers("search", parts(&["[one]", "\"two\""])),
        answers("other", "ToolSearch is not what was asked"),
        asks("m-3", "torn", "ToolSearch"),
        user("listed", "see").set("attachment", json!({ "tools": [{ "input_schema": {} }] })),
        agent_progress("sub", &asks("m-4", "inner", "ToolSearch")),
        agent_progress("sub", &answers("inner", "three")),
    ];
    let torn = answers("torn", "four").line();
    let text = log(&records) + &torn[..torn.len() - 9];
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("one.jsonl");
    std::fs::write(&path, &text).unwrap();
    let job = Job { path: &path, packing: Packing::Plain, from: 0, to: text.len() as u64, named: false };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let told = |quote: Quote<'_>| match quote {
        Quote::Searched(text) => vec![text.to_owned()],
        Quote::Attached(value) => vec![value.to_string()],
    };
    let (found, failures) = read_all(&[job], &["ToolSearch".to_owned()], &pool, &told);
    assert_eq!(found, ["[one]", "\"two\"", r#"{"tools":[{"input_schema":{}}]}"#, "three"]);
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn definitions_that_a_client_attached_are_found_wherever_they_stand() {
    let tool = |name: &str, key: &str| json!({ "name": name, key: weather() });
    let attachment = json!({
        "type": "tools", "names": ["a", "b"], "schema": { "parameters": "none" },
        "added": { "tools": [tool("a", "input_schema"), { "name": "without a schema" }] },
        "servers": [{ "server": "weather", "tools": [tool("b", "inputSchema")] }],
    });
    let found = attached(&attachment);
    assert_eq!(found.iter().map(|tool| (&tool.name[..], tool.is_real)).collect::<Vec<_>>(), [("a", true), ("b", true)]);
    assert!(attached(&json!({ "type": "file", "content": "input_schema" })).is_empty());
    let catalog = Catalog::logged([quoted(r#"[{"name": "b", "input_schema": {}}]"#), found].concat()).unwrap();
    assert!(catalog.has_sizes() && catalog.find("b").unwrap().is_real, "what was sent as a list comes first");
    assert_eq!(Catalog::logged(Vec::new()), None);
}

#[test]
fn the_shipped_catalog_holds_and_its_sizes_do_not_count() {
    let catalog = Catalog::shipped(SHIPPED, "claude_code.toml").unwrap();
    assert!(catalog.definitions.iter().all(|definition| !definition.is_real));
    assert!(sizes(&catalog, Provider::Anthropic, &rules()).tools.is_empty());
    for name in ["Read", "Bash", "Write", "Edit", "Glob", "Grep"] {
        let definition = catalog.find(name).unwrap();
        assert!(definition.schema.is_some() && !definition.description.is_empty(), "{name}");
    }
    let grep = |version: &str| {
        let version = ClientVersion::parse(version);
        catalog.definitions.iter().filter(|tool| tool.name == "Grep" && tool.is_in(version.as_ref())).count()
    };
    assert_eq!((grep("1.0.43"), grep("1.0.51"), grep("2.1.217")), (1, 1, 1));
}

#[test]
fn versions_are_compared_as_numbers() {
    let version = |text| ClientVersion::parse(text).unwrap();
    assert!(version("2.1.9") < version("2.1.30"));
    assert!(version("1.0.128") < version("2.0.5-dev"));
    assert!(version("2.0.5-dev") < version("2.0.5") && version("2.0.4") < version("2.0.5-dev"));
    assert_eq!(ClientVersion::parse("newest"), None);
    let ordered = ["newest", "2.1.8", "2.1.9-beta.1", "2.1.9", "2.1.30 (Claude Code)"];
    for pair in ordered.windows(2) {
        assert!(compare_versions(pair[0], pair[1]).is_lt(), "{pair:?}");
    }
}
