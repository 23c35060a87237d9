//! Keywords of schemas that look at nothing inside a value: types, sizes, numbers, equality.

use serde_json::{Map, Number, Value};

use crate::whatif::arg_check::schema::Schema;

/// Whether a value fits a keyword; all that look inside it fit. `schema` is what stands beside the keyword.
pub(super) fn fits(key: &str, wanted: &Value, schema: &Map<String, Value>, value: &Value, rules: &Schema) -> bool {
    let most = |size: usize| wanted.as_f64().is_none_or(|most| size as f64 <= most);
    let least = |size: usize| wanted.as_f64().is_none_or(|least| size as f64 >= least);
    let excluded = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    match (key, value) {
        ("type", _) => match wanted {
            Value::Array(types) => types.iter().any(|name| is_of_type(value, name)),
            name => is_of_type(value, name),
        },
        ("enum", _) => wanted.as_array().is_none_or(|values| values.iter().any(|one| same(one, value))),
        ("const", _) => same(wanted, value),
        ("maxLength", Value::String(text)) => most(text.chars().count()),
        ("minLength", Value::String(text)) => least(text.chars().count()),
        ("pattern", Value::String(text)) => {
            wanted.as_str().and_then(|pattern| rules.matches(pattern, text)).unwrap_or(true)
        }
        ("maxItems", Value::Array(items)) => most(items.len()),
        ("minItems", Value::Array(items)) => least(items.len()),
        ("uniqueItems", Value::Array(items)) => {
            let repeats = |(at, item)| items[..at].iter().any(|earlier| same(earlier, item));
            *wanted != Value::Bool(true) || !items.iter().enumerate().any(repeats)
        }
        ("maxProperties", Value::Object(members)) => most(members.len()),
        ("minProperties", Value::Object(members)) => least(members.len()),
        ("maximum", Value::Number(number)) => ordered(number, wanted)
            .is_none_or(|order| if excluded("exclusiveMaximum") { order.is_lt() } else { order.is_le() }),
        ("minimum", Value::Number(number)) => ordered(number, wanted)
            .is_none_or(|order| if excluded("exclusiveMinimum") { order.is_gt() } else { order.is_ge() }),
        ("exclusiveMaximum", Value::Number(number)) => ordered(number, wanted).is_none_or(std::cmp::Ordering::is_lt),
        ("exclusiveMinimum", Value::Number(number)) => ordered(number, wanted).is_none_or(std::cmp::Ordering::is_gt),
        ("multipleOf", Value::Number(number)) => wanted.as_number().is_none_or(|step| is_multiple(number, step)),
        _ => true,
    }
}

fn is_of_type(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap_or_default() {
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_number().is_some_and(|number| !number.is_f64() || number.as_f64().is_some_and(is_whole)),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        "string" => value.is_string(),
        _ => false,
    }
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0
}

/// Whether two values are the same: numbers by what they are worth, members in any order.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(_)) => ordered(one, other).is_some_and(std::cmp::Ordering::is_eq),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, value): (&String, &Value)| other.get(name).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

/// How a number compares with another; none where that is no number.
fn ordered(number: &Number, other: &Value) -> Option<std::cmp::Ordering> {
    let other = other.as_number()?;
    match (number.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => number.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// Whether a number is a whole multiple of another: in decimals, as both are written.
fn is_multiple(number: &Number, step: &Number) -> bool {
    let (Some((number, places)), Some((step, step_places))) = (decimal(number), decimal(step)) else {
        let ratio = number.as_f64().zip(step.as_f64()).map(|(number, step)| number / step);
        return ratio.is_some_and(is_whole);
    };
    let scaled = |digits: i128, by: u32| 10_i128.checked_pow(by).and_then(|power| digits.checked_mul(power));
    let most = places.max(step_places);
    match (scaled(number, most - places), scaled(step, most - step_places)) {
        (Some(number), Some(step)) if step != 0 => number % step == 0,
        _ => false,
    }
}

/// The digits of a number, and how many of them stand after the point.
fn decimal(number: &Number) -> Option<(i128, u32)> {
    let text = number.to_string();
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let places = i32::try_from(part.len()).ok()? - exponent.parse::<i32>().ok()?;
    let digits: i128 = format!("{whole}{part}").parse().ok()?;
    match u32::try_from(places) {
        Ok(places) => Some((digits, places)),
        Err(_) => Some((digits.checked_mul(10_i128.checked_pow(places.unsigned_abs())?)?, 0)),
    }
}
