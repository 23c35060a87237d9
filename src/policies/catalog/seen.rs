//! Definitions that a log quotes: answers of a tool search that spell out what they found.

use serde_json::Value;

use crate::policies::catalog::Definition;
use crate::policies::catalog::read::{Spec, definitions};

const OPENING: &str = "<function>";
const CLOSING: &str = "</function>";

/// The definitions in a text: JSON objects with a name and a schema between `<function>` and `</function>`. Anything
/// else between them is passed over.
pub fn quoted(text: &str) -> Vec<Definition> {
    let pieces = text.split(OPENING).skip(1).filter_map(|rest| rest.split(CLOSING).next());
    pieces.filter_map(definition).collect()
}

fn definition(json: &str) -> Option<Definition> {
    let value: Value = serde_json::from_str(json.trim()).ok()?;
    let spec = Spec { server: None, file: String::new() };
    let (_, found) = definitions(&spec, &Value::Array(vec![value]).to_string()).ok()?;
    found.into_iter().next().filter(|definition| definition.schema.is_some())
}
