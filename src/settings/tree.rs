//! TOML values without their layout: comparing, looking up and normalising them.

use toml_edit::{Array, InlineTable, Value};

use crate::base::key_path::KeyPath;

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

/// The shortest decimal that is the same single-precision number.
///
/// The published schema holds its fractions in single precision and writes 0.7 as 0.699999988079071.
pub(super) fn single(number: f64) -> f64 {
    let short = (number as f32).to_string().parse().unwrap_or(number);
    if f64::is_finite(short) { short } else { number }
}

/// Whether the value is a list of tables (and not an empty list).
pub(super) fn is_table_list(value: &Value) -> bool {
    value.as_array().is_some_and(|array| !array.is_empty() && array.iter().all(Value::is_inline_table))
}
