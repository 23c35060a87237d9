//! TOML values: without their layout, to be compared, looked up and normalised; and how devboy spells them, and whole blocks, when
//! it writes them: shortest floats, keys in the order of the schema.

use toml_edit::{Array, InlineTable, Value};

use crate::base::key_path::KeyPath;
use crate::settings::schema::SchemaNode;

/// The same value without comments, spacing and number spelling.
pub(super) fn plain(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(text.value().as_str()),
        Value::Integer(number) => Value::from(*number.value()),
        Value::Float(number) => Value::from(*number.value()),
        Value::Boolean(flag) => Value::from(*flag.value()),
        Value::Datetime(date) => Value::from(*date.value()),
        Value::Array(array) => Value::Array(array.iter().map(plain).collect::<Array>()),
        Value::InlineTable(table) => {
            Value::InlineTable(table.iter().map(|(key, value)| (key, plain(value))).collect::<InlineTable>())
        }
    }
}

/// The value at `path`; list elements are addressed by position.
pub(super) fn find<'v>(root: &'v Value, path: &KeyPath) -> Option<&'v Value> {
    path.0.iter().try_fold(root, |value, segment| child(value, segment))
}

/// Puts a value into a table; what is missing above it becomes tables too. Whether nothing but tables stood in the way: else it
/// is not put there.
pub fn put(table: &mut InlineTable, path: &[String], value: Value) -> bool {
    match path {
        [] => return false,
        [key] => drop(table.insert(key, value)),
        [key, rest @ ..] => {
            if !table.contains_key(key) {
                table.insert(key, InlineTable::new().into());
            }
            return table
                .get_mut(key)
                .and_then(Value::as_inline_table_mut)
                .is_some_and(|below| put(below, rest, value));
        }
    }
    true
}

/// The value one step down.
pub(super) fn child<'v>(value: &'v Value, segment: &str) -> Option<&'v Value> {
    match value {
        Value::InlineTable(table) => table.get(segment),
        Value::Array(array) => segment.parse().ok().and_then(|position: usize| array.get(position)),
        _ => None,
    }
}

/// Whether two values mean the same: order of keys, spelling and single-precision rounding do not matter.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::String(a), Value::String(b)) => a.value() == b.value(),
        (Value::Integer(a), Value::Integer(b)) => a.value() == b.value(),
        (Value::Boolean(a), Value::Boolean(b)) => a.value() == b.value(),
        (Value::Datetime(a), Value::Datetime(b)) => a.value() == b.value(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::InlineTable(a), Value::InlineTable(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        _ => match (number(left), number(right)) {
            (Some(a), Some(b)) => single(a) == single(b),
            _ => false,
        },
    }
}

/// An integer or a float as a float.
pub(super) fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

/// The shortest decimal that is the same single-precision number: the published schema writes 0.7 as 0.699999988079071.
pub(super) fn single(number: f64) -> f64 {
    let short = (number as f32).to_string().parse().unwrap_or(number);
    if f64::is_finite(short) { short } else { number }
}

/// Whether the value is a list of tables (and not an empty list).
pub(super) fn is_table_list(value: &Value) -> bool {
    value.as_array().is_some_and(|array| !array.is_empty() && array.iter().all(Value::is_inline_table))
}

/// A value on one line, floats as short as they go (`0.35`).
pub(super) fn spelled(value: &Value) -> String {
    match value {
        Value::Float(number) => Value::from(shortest(*number.value())).to_string(),
        Value::Array(array) => format!("[{}]", array.iter().map(spelled).collect::<Vec<_>>().join(", ")),
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
    let lines = elements.map(|element| format!("{inner}{},{eol}", spelled(element)));
    format!("[{eol}{}{outer}]", lines.collect::<String>())
}

/// `key = value`.
pub(super) fn assignment(key: &KeyPath, value: &Value) -> String {
    format!("{key} = {}", spelled(value))
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
