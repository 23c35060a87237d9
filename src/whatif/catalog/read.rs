//! Reads tool definitions in any of the shapes in which clients, servers and SDKs hand them out, or in which a log
//! quotes them: results of a tool search that spell out what they found, and lists that a client attached to a request.

use serde_json::{Map, Value};

use crate::base::client_version::ClientVersion;
use crate::base::data::typed;
use crate::base::error::{Error, Result};
use crate::whatif::catalog::ToolDefinition;

/// How calls name tools of MCP servers: this, the server, `__`, the tool.
pub const MCP_PREFIX: &str = "mcp__";

const KNOWN_SHAPES: &str = "known shapes: an MCP tools/list answer ({\"tools\": [...]} with inputSchema, bare or in \
     \"result\"), Anthropic ([{name, input_schema}]), OpenAI ([{type: \"function\", function: {name, parameters}}] or \
     [{type: \"function\", name, parameters}]), Gemini ([{functionDeclarations: [{name, parameters}]}])";

/// A shape in which definitions are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefinitionShape {
    /// `inputSchema`, in a `tools/list` answer.
    Mcp,
    /// `input_schema`.
    Anthropic,
    /// `parameters`, inside `function`.
    OpenaiNested,
    /// `parameters`, beside `type: function`.
    OpenaiFlat,
    /// `parameters`, in function declarations.
    Gemini,
}

/// What the user named: a file, and the MCP server whose tools are in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    pub server: Option<String>,
    pub file: String,
}

impl Spec {
    /// Reads `FILE` or `server=NAME:FILE`.
    pub fn parse(text: &str) -> Result<Self> {
        let Some(rest) = text.strip_prefix("server=") else { return Ok(Self { server: None, file: text.to_owned() }) };
        match rest.split_once(':') {
            Some((server, file)) if !server.is_empty() && !file.is_empty() => {
                Ok(Self { server: Some(server.to_owned()), file: file.to_owned() })
            }
            _ => Err(Error::usage(format!("tool catalog {text}: a server needs a name and a file"))
                .hint("write server=NAME:FILE, for instance server=github:tools.json")),
        }
    }

    fn full_name(&self, name: &str) -> String {
        match &self.server {
            Some(server) if !name.starts_with(MCP_PREFIX) => format!("{MCP_PREFIX}{server}__{name}"),
            _ => name.to_owned(),
        }
    }
}

/// The definitions of a file, in order, and the shape of the first. An error if the text is no JSON or has none of the
/// known shapes.
pub fn definitions(spec: &Spec, text: &str) -> Result<(DefinitionShape, Vec<ToolDefinition>)> {
    let file = &spec.file;
    let value: Value = serde_json::from_str(text).map_err(|cause| {
        Error::failed(format!("{file}:{}:{}: not JSON: {cause}", cause.line(), cause.column())).hint(KNOWN_SHAPES)
    })?;
    let (entries, default) = entries(&value)
        .ok_or_else(|| Error::failed(format!("{file}: no tool catalog: found {}", told(&value))).hint(KNOWN_SHAPES))?;
    let mut found = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        read_entry(entry, default, &mut found).map_err(|what| {
            Error::failed(format!("{file}: entry {} of the catalog: {what}", index + 1)).hint(KNOWN_SHAPES)
        })?;
    }
    let shape = found.first().map(|(shape, _)| *shape);
    let shape = shape.ok_or_else(|| Error::failed(format!("{file}: a catalog without tools")).hint(KNOWN_SHAPES))?;
    let named = |definition: ToolDefinition| ToolDefinition { name: spec.full_name(&definition.name), ..definition };
    Ok((shape, found.into_iter().map(|(_, definition)| named(definition)).collect()))
}

/// The definitions of a sheet of our own: `[[tool]]` tables in Anthropic's shape.
pub fn sheet(text: &str, place: &str) -> Result<Vec<ToolDefinition>> {
    let fault = |cause: String| Error::failed(format!("{place}: {cause}"));
    let value: Value = typed(text, place)?;
    let entries = value.get("tool").and_then(Value::as_array).ok_or_else(|| fault("no [[tool]]".into()))?;
    let mut found = Vec::new();
    for entry in entries {
        read_entry(entry, DefinitionShape::Anthropic, &mut found).map_err(fault)?;
    }
    Ok(found.into_iter().map(|(_, definition)| definition).collect())
}

/// The list of definitions, and the shape of entries that do not say.
fn entries(value: &Value) -> Option<(&[Value], DefinitionShape)> {
    let object = match value {
        Value::Array(entries) => return Some((entries, DefinitionShape::Anthropic)),
        Value::Object(object) => object,
        _ => return None,
    };
    if let Some(result) = object.get("result") {
        return entries(result);
    }
    if declarations(object).is_some() {
        return Some((std::slice::from_ref(value), DefinitionShape::Gemini));
    }
    object.get("tools").and_then(Value::as_array).map(|entries| (&entries[..], DefinitionShape::Mcp))
}

fn declarations(object: &Map<String, Value>) -> Option<&Value> {
    object.get("functionDeclarations").or_else(|| object.get("function_declarations"))
}

/// Reads one entry, which may hold several definitions (Gemini). Fails with what was found.
fn read_entry(
    entry: &Value,
    default: DefinitionShape,
    found: &mut Vec<(DefinitionShape, ToolDefinition)>,
) -> std::result::Result<(), String> {
    let object = entry.as_object().ok_or_else(|| format!("found {}", told(entry)))?;
    if let Some(declared) = declarations(object) {
        let list = declared.as_array().ok_or_else(|| format!("function declarations are {}", told(declared)))?;
        return list.iter().try_for_each(|entry| read_entry(entry, DefinitionShape::Gemini, found));
    }
    let (shape, body) = match object.get("function").and_then(Value::as_object) {
        Some(function) => (DefinitionShape::OpenaiNested, function),
        None => (shape_of(object, default), object),
    };
    let name = body.get("name").and_then(Value::as_str).filter(|name| !name.trim().is_empty());
    let name = name.ok_or_else(|| format!("no name; found {}", told(entry)))?;
    let schema = schema_of(body, shape).map_err(|what| format!("tool {name}: {what}"))?;
    found.push((shape, described(name, body, schema)));
    Ok(())
}

fn shape_of(object: &Map<String, Value>, default: DefinitionShape) -> DefinitionShape {
    let is_function = object.get("type").is_some_and(|kind| kind == "function");
    match () {
        () if object.contains_key("input_schema") => DefinitionShape::Anthropic,
        () if object.contains_key("inputSchema") => DefinitionShape::Mcp,
        () if is_function => DefinitionShape::OpenaiFlat,
        () if object.contains_key("parameters") || object.contains_key("parametersJsonSchema") => {
            DefinitionShape::Gemini
        }
        () => default,
    }
}

fn schema_of(body: &Map<String, Value>, shape: DefinitionShape) -> std::result::Result<Option<Value>, String> {
    let keys: &[&str] = match shape {
        DefinitionShape::Mcp => &["inputSchema"],
        DefinitionShape::Anthropic => &["input_schema"],
        DefinitionShape::OpenaiNested | DefinitionShape::OpenaiFlat => &["parameters"],
        DefinitionShape::Gemini => &["parametersJsonSchema", "parameters"],
    };
    let Some((key, schema)) = keys.iter().find_map(|key| Some((*key, body.get(*key)?))) else { return Ok(None) };
    match schema {
        Value::Null => Ok(None),
        Value::Object(_) | Value::Bool(_) if key == "parameters" && shape == DefinitionShape::Gemini => {
            let mut schema = schema.clone();
            // Gemini writes `STRING` where JSON Schema has `string`.
            provider_walk(&mut schema, &mut |keywords| {
                if let Some(Value::String(kind)) = keywords.get_mut("type") {
                    *kind = kind.to_lowercase();
                }
            });
            Ok(Some(schema))
        }
        Value::Object(_) | Value::Bool(_) => Ok(Some(schema.clone())),
        other => Err(format!("{key} is {}, no schema", told(other))),
    }
}

/// Visits the keywords of a schema and of all schemas in it; names of properties are no keywords.
pub(crate) fn provider_walk(schema: &mut Value, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Value::Object(keywords) = schema else { return };
    visit(keywords);
    for (keyword, value) in keywords.iter_mut() {
        match (keyword.as_str(), value) {
            ("enum" | "const" | "default" | "examples" | "required", _) => {}
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(named),
            ) => {
                named.values_mut().for_each(|schema| provider_walk(schema, visit));
            }
            (_, Value::Array(schemas)) => schemas.iter_mut().for_each(|schema| provider_walk(schema, visit)),
            (_, schema) => provider_walk(schema, visit),
        }
    }
}

fn described(name: &str, body: &Map<String, Value>, schema: Option<Value>) -> ToolDefinition {
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    let hint = |key: &str| body.get("annotations").and_then(|hints| hints.get(key)).and_then(Value::as_bool);
    let tags = body.get("tags").and_then(Value::as_array).into_iter().flatten();
    ToolDefinition {
        name: name.trim().to_owned(),
        description: text("description").unwrap_or_default().to_owned(),
        schema,
        tags: tags.filter_map(Value::as_str).map(str::to_owned).collect(),
        safe: body.get("safe").and_then(Value::as_bool),
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        since: text("since").and_then(ClientVersion::parse),
        until: text("until").and_then(ClientVersion::parse),
        is_real: true,
        file: 0,
    }
}

/// A value in a few words: its kind, and the keys of an object.
fn told(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "true or false".into(),
        Value::Number(_) => "a number".into(),
        Value::String(_) => "a text".into(),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(object) if object.is_empty() => "an empty object".into(),
        Value::Object(object) => {
            let keys = object.keys().take(KEYS_TOLD).cloned().collect::<Vec<_>>().join(", ");
            let more = if object.len() > KEYS_TOLD { ", …" } else { "" };
            format!("an object with {keys}{more}")
        }
    }
}

/// Keys of an unknown object that a message names.
const KEYS_TOLD: usize = 6;

const OPENING: &str = "<function>";
const CLOSING: &str = "</function>";
/// Keys under which schemas stand, by shape.
const SCHEMA_KEYS: [&str; 4] = ["input_schema", "inputSchema", "parameters", "function"];

/// The definitions in the answer of a tool search: JSON objects with a name and a schema between `<function>` and
/// `</function>`, or a list in one of the known shapes. Anything else is passed over.
///
/// A client searches for tools that it left out of its list, so hiding these saves nothing: their sizes do not count.
pub fn quoted(text: &str) -> Vec<ToolDefinition> {
    let pieces = text.split(OPENING).skip(1).filter_map(|rest| rest.split(CLOSING).next());
    let between = pieces.filter_map(|json| serde_json::from_str(json.trim()).ok()).flat_map(|value| listed(&[value]));
    let whole = serde_json::from_str(text.trim()).map(|value| attached(&value)).unwrap_or_default();
    between.chain(whole).map(|definition| ToolDefinition { is_real: false, ..definition }).collect()
}

/// The definitions in what a client attached: lists in one of the known shapes, wherever they stand in it.
pub fn attached(value: &Value) -> Vec<ToolDefinition> {
    match value {
        Value::Array(entries) if entries.iter().any(is_definition) => listed(entries),
        Value::Array(entries) => entries.iter().flat_map(attached).collect(),
        Value::Object(fields) => fields.values().flat_map(attached).collect(),
        _ => Vec::new(),
    }
}

fn is_definition(entry: &Value) -> bool {
    SCHEMA_KEYS.iter().any(|key| entry.get(key).is_some_and(Value::is_object))
}

/// Those of the entries that are definitions with a schema.
fn listed(entries: &[Value]) -> Vec<ToolDefinition> {
    let spec = Spec { server: None, file: String::new() };
    let one = |entry: &Value| definitions(&spec, &Value::Array(vec![entry.clone()]).to_string()).ok();
    let found = entries.iter().filter_map(one).flat_map(|(_, found)| found);
    found.filter(|definition| definition.schema.is_some()).collect()
}
