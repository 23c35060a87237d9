//! The JSON document that every command writes: the same outer fields, then the command's own.

use serde_json::{Map, Value, json};

use crate::base::error::Result;
use crate::base::visible::visible_json;

/// Version of the envelope and of all fields in it. It rises when a field is renamed, removed or changes its meaning;
/// new fields do not raise it.
pub const SCHEMA_VERSION: u32 = 2;

/// Puts the command's fields into the envelope. `generated_at` is left out of reproducible reports.
pub fn envelope(command: &str, generated_at_ms: Option<i64>, fields: Value) -> Value {
    let mut out = Map::new();
    out.insert("schema_version".into(), json!(SCHEMA_VERSION));
    out.insert("command".into(), json!(command));
    out.insert("tool_version".into(), json!(env!("CARGO_PKG_VERSION")));
    let time = generated_at_ms.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    if let Some(time) = time {
        out.insert("generated_at".into(), json!(time.to_string()));
    }
    if let Value::Object(fields) = fields {
        out.extend(fields);
    }
    Value::Object(out)
}

/// Writes a document, indented, with a final line feed.
pub fn write(out: &mut dyn std::io::Write, document: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(document).expect("a JSON value prints");
    Ok(writeln!(out, "{}", visible_json(&text))?)
}
