//! What a call quotes of what its agent was shown: the text that an edit is to replace.

use std::collections::BTreeSet;

use serde_json::Value;

/// The texts that an input gives under one of these names, at any depth, one after the other; none without any.
pub fn quoted(input: &[u8], names: &BTreeSet<String>) -> Option<String> {
    // Most inputs name none of them and are not read once more.
    if !names.iter().any(|name| memchr::memmem::find(input, name.as_bytes()).is_some()) {
        return None;
    }
    let input: Value = serde_json::from_slice(input).ok()?;
    let mut texts = Vec::new();
    gather(&input, names, &mut texts);
    let text = texts.join("\n");
    (!text.is_empty()).then_some(text)
}

fn gather<'v>(value: &'v Value, names: &BTreeSet<String>, texts: &mut Vec<&'v str>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if names.contains(name) => texts.push(text),
                    value => gather(value, names, texts),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| gather(value, names, texts)),
        _ => {}
    }
}
