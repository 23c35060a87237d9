//! The JSON document that every command writes: the same outer fields, then the command's own.

use serde_json::{Map, Value, json};

use crate::base::error::Result;
use crate::base::visible::visible_json;

/// Version of the envelope and of all fields in it. It rises when a field is renamed, removed or changes its meaning;
/// new fields do not raise it.
pub const SCHEMA_VERSION: u32 = 2;

/// Writes the fields of a command in the envelope, indented, with a final line feed. `generated_at` is left out of
/// reproducible reports.
pub fn write(out: &mut dyn std::io::Write, command: &str, generated_at_ms: Option<i64>, fields: Value) -> Result<()> {
    let mut document = Map::new();
    document.insert("schema_version".into(), json!(SCHEMA_VERSION));
    document.insert("command".into(), json!(command));
    document.insert("tool_version".into(), json!(env!("CARGO_PKG_VERSION")));
    let time = generated_at_ms.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    if let Some(time) = time {
        document.insert("generated_at".into(), json!(time.to_string()));
    }
    if let Value::Object(fields) = fields {
        document.extend(fields);
    }
    let text = serde_json::to_string_pretty(&document).expect("a JSON value prints");
    Ok(writeln!(out, "{}", visible_json(&text))?)
}
