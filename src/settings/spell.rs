//! How devboy spells values and whole blocks when it writes them: shortest floats, keys in the order of the schema.

use toml_edit::{InlineTable, Value};

use super::schema::SchemaNode;
use crate::base::key_path::KeyPath;
use crate::settings::tree::{is_table_list, plain, single};

/// A value on one line, floats as short as they go (`0.35`).
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Float(number) => Value::from(shortest(*number.value())).to_string(),
        Value::Array(array) => format!("[{}]", array.iter().map(self::value).collect::<Vec<_>>().join(", ")),
        Value::InlineTable(table) if table.is_empty() => "{}".to_owned(),
        Value::InlineTable(table) => {
            let pairs = table.iter().map(|(key, value)| assignment(&KeyPath::from([key]), value));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => plain(other).to_string(),
    }
}

/// A list with one element per line; `inner` indents the elements, `outer` the closing bracket.
pub(super) fn tall_list(list: &Value, inner: &str, outer: &str, eol: &str) -> String {
    let elements = list.as_array().into_iter().flatten();
    let lines = elements.map(|element| format!("{inner}{},{eol}", value(element)));
    format!("[{eol}{}{outer}]", lines.collect::<String>())
}

/// `key = value`.
pub(super) fn assignment(key: &KeyPath, value: &Value) -> String {
    format!("{key} = {}", self::value(value))
}

/// A table as one or more blocks with headers, blank lines between them, every line ended by `eol`.
pub(super) fn table(path: &KeyPath, table: &InlineTable, eol: &str) -> String {
    let mut blocks = Vec::new();
    collect_blocks(path, table, &format!("[{path}]"), eol, &mut blocks);
    blocks.join(eol)
}

/// A list of tables as blocks under `[[path]]`.
pub(super) fn table_list(path: &KeyPath, list: &Value, eol: &str) -> String {
    let mut blocks = Vec::new();
    collect_list(path, list, eol, &mut blocks);
    blocks.join(eol)
}

/// The keys of a table as the schema orders them; keys it does not know come last, as given.
pub(super) fn in_order<'t>(path: &KeyPath, table: &'t InlineTable) -> Vec<(&'t str, &'t Value)> {
    let node = SchemaNode::root().find(path);
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(key, _)| node.map_or(usize::MAX, |node| node.rank(key)));
    pairs
}

/// The same value with the keys of all its tables in order.
pub(super) fn ordered(path: &KeyPath, value: &Value) -> Value {
    match value {
        Value::InlineTable(table) => {
            let pairs = in_order(path, table).into_iter().map(|(key, value)| (key, ordered(&path.child(key), value)));
            Value::InlineTable(pairs.collect())
        }
        Value::Array(list) => {
            let elements = list.iter().enumerate();
            Value::Array(elements.map(|(position, value)| ordered(&path.child(position.to_string()), value)).collect())
        }
        other => plain(other),
    }
}

fn collect_blocks(path: &KeyPath, table: &InlineTable, header: &str, eol: &str, blocks: &mut Vec<String>) {
    let (nested, own): (Vec<_>, Vec<_>) = in_order(path, table).into_iter().partition(|(_, value)| is_block(value));
    if !own.is_empty() || nested.is_empty() || header.starts_with("[[") {
        let lines = own.iter().map(|(key, value)| assignment(&KeyPath::from([*key]), value) + eol);
        blocks.push(format!("{header}{eol}{}", lines.collect::<String>()));
    }
    for (key, value) in nested {
        let below = path.child(key);
        match value {
            Value::InlineTable(table) => collect_blocks(&below, table, &format!("[{below}]"), eol, blocks),
            list => collect_list(&below, list, eol, blocks),
        }
    }
}

fn collect_list(path: &KeyPath, list: &Value, eol: &str, blocks: &mut Vec<String>) {
    let ordered = ordered(path, list);
    for table in ordered.as_array().into_iter().flatten().filter_map(Value::as_inline_table) {
        collect_blocks(path, table, &format!("[[{path}]]"), eol, blocks);
    }
}

fn is_block(value: &Value) -> bool {
    value.is_inline_table() || is_table_list(value)
}

/// A number that came out of single precision gets its short spelling back.
fn shortest(number: f64) -> f64 {
    if f64::from(number as f32) == number { single(number) } else { number }
}
