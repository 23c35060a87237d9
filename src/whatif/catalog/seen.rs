//! Definitions that a log quotes: answers of a tool search that spell out what they found, and lists that a client
//! attached to a request.

use serde_json::Value;

use crate::whatif::catalog::Definition;
use crate::whatif::catalog::read::{Spec, definitions};

const OPENING: &str = "<function>";
const CLOSING: &str = "</function>";
/// Keys under which schemas stand, by shape.
const SCHEMA_KEYS: [&str; 4] = ["input_schema", "inputSchema", "parameters", "function"];

/// The definitions in the answer of a tool search: JSON objects with a name and a schema between `<function>` and
/// `</function>`, or a list in one of the known shapes. Anything else is passed over.
///
/// A client searches for tools that it left out of its list, so hiding these saves nothing: their sizes do not count.
pub fn quoted(text: &str) -> Vec<Definition> {
    let pieces = text.split(OPENING).skip(1).filter_map(|rest| rest.split(CLOSING).next());
    let between = pieces.filter_map(|json| serde_json::from_str(json.trim()).ok()).flat_map(|value| listed(&[value]));
    let whole = serde_json::from_str(text.trim()).map(|value| attached(&value)).unwrap_or_default();
    between.chain(whole).map(|definition| Definition { is_real: false, ..definition }).collect()
}

/// The definitions in what a client attached: lists in one of the known shapes, wherever they stand in it.
pub fn attached(value: &Value) -> Vec<Definition> {
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
fn listed(entries: &[Value]) -> Vec<Definition> {
    let spec = Spec { server: None, file: String::new() };
    let one = |entry: &Value| definitions(&spec, &Value::Array(vec![entry.clone()]).to_string()).ok();
    let found = entries.iter().filter_map(one).flat_map(|(_, found)| found);
    found.filter(|definition| definition.schema.is_some()).collect()
}
