//! The JSON document that every command writes: the same outer fields, then the command's own.

use serde_json::{Map, Value, json};

use crate::base::error::Result;
use crate::base::visible::visible_json;

/// Version of the envelope and of all fields in it. It rises when a field is renamed, removed or changes its meaning;
/// new fields do not raise it.
pub const SCHEMA_VERSION: u32 = 3;

/// Fields of `inputs` that say what this run had to read, which the runs before it decide.
const OF_THE_RUN: [&str; 6] = ["new", "grown", "rewritten", "studied", "unchanged", "bytes_read"];

/// Writes the fields of a command in the envelope, indented, with a final line feed. What differs from run to run is left
/// out of reproducible reports: `generated_at`, and what had to be read.
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
    if generated_at_ms.is_none()
        && let Some(Value::Object(inputs)) = document.get_mut("inputs")
    {
        inputs.retain(|field, _| !OF_THE_RUN.contains(&field.as_str()));
    }
    document.values_mut().for_each(unsigned_nothing);
    let text = serde_json::to_string_pretty(&document).expect("a JSON value prints");
    Ok(writeln!(out, "{}", visible_json(&text))?)
}

/// What is nothing has no sign: -0.0, which arithmetic leaves where nothing is saved, is 0.0.
fn unsigned_nothing(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() && number.as_f64() == Some(0.0) => *value = json!(0.0),
        Value::Array(values) => values.iter_mut().for_each(unsigned_nothing),
        Value::Object(fields) => fields.values_mut().for_each(unsigned_nothing),
        _ => {}
    }
}
