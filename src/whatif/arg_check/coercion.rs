//! Arguments as a client reads them. Texts are the numbers and truth values that a schema wants in their places. What is JSON
//! is a value, though half a UTF-16 pair stands in a text, a number is beyond the largest of 64 bits, or values are nested
//! deeper than other readers go.

use serde_json::{Map, Number, Value};

use crate::base::json::{Cursor, JsonFault, JsonKind, RawStr, TextSink, decode_into};
use crate::whatif::arg_check::schema::Schema;
use crate::whatif::arg_check::walk::{SchemaFault, SchemaWalk};

/// Alternatives inside alternatives that are looked into.
const DEPTH_MAX: usize = 50;

impl Schema {
    /// Whether arguments fit once texts are read as what is wanted in their places.
    pub fn coerces(&self, arguments: &Value) -> bool {
        Coercion { schema: self, steps: 0, depth: 0 }.coerced(&self.root, arguments).is_some()
    }
}

/// A search for readings of texts. All its walks share one number of steps, so that alternatives in alternatives end.
struct Coercion<'s> {
    schema: &'s Schema,
    steps: usize,
    /// Alternatives inside each other that are being looked into.
    depth: usize,
}

impl Coercion<'_> {
    /// A value that fits a part of the schema, made of another by reading texts. Each round changes at least one text into
    /// something else, so the rounds end.
    fn coerced(&mut self, part: &Value, value: &Value) -> Option<Value> {
        let mut candidate = value.clone();
        loop {
            let mut walk = SchemaWalk::going_on(self.schema, self.steps);
            walk.hold(part, &candidate);
            self.steps = walk.steps;
            let fits = walk.faults.is_empty();
            let changes: Vec<_> = walk.faults.iter().filter_map(|fault| self.change(fault)).collect();
            if changes.is_empty() {
                return fits.then_some(candidate);
            }
            for (pointer, value) in changes {
                if let Some(place) = candidate.pointer_mut(&pointer) {
                    *place = value;
                }
            }
        }
    }

    /// What stands where something does not fit, read otherwise.
    fn change(&mut self, fault: &SchemaFault<'_>) -> Option<(String, Value)> {
        let read = match (fault.keyword, fault.wanted) {
            ("type", types) => read_as(types, fault.value.as_str()?.trim()),
            ("anyOf" | "oneOf", Value::Array(alternatives)) if self.depth < DEPTH_MAX => {
                self.depth += 1;
                let read = alternatives.iter().find_map(|one| self.coerced(one, fault.value));
                self.depth -= 1;
                read.filter(|read| read != fault.value)
            }
            _ => None,
        };
        Some((fault.pointer.clone(), read?))
    }
}

/// The number or truth value that a text says, if one of these types is wanted.
fn read_as(types: &Value, text: &str) -> Option<Value> {
    let wanted = |name: &str| match types {
        Value::Array(types) => types.iter().any(|one| one == name),
        one => one == name,
    };
    let number = || serde_json::from_str::<Value>(text).ok().filter(Value::is_number);
    let truth = || match text {
        "true" | "1" => Some(Value::Bool(true)),
        "false" | "0" => Some(Value::Bool(false)),
        _ => None,
    };
    let is_number = wanted("integer") || wanted("number");
    is_number.then(number).flatten().or_else(|| wanted("boolean").then(truth).flatten())
}

/// Reads a whole text. None if it is no JSON, or nested deeper than logs are read ([`crate::base::json::DEPTH_MAX`]).
pub(super) fn value(text: &[u8]) -> Option<Value> {
    let mut whole = Cursor::new(text);
    // Passing over it first sets an end to how deep the reading goes.
    whole.skip_value().ok().filter(|()| whole.at_end())?;
    read(&mut Cursor::new(text)).ok()
}

fn read(cursor: &mut Cursor<'_>) -> Result<Value, JsonFault> {
    match cursor.shape()? {
        JsonKind::Object => {
            let (mut members, mut first) = (Map::new(), cursor.enter()?);
            while let Some(name) = cursor.next_key(&mut first)? {
                members.insert(decoded(name)?, read(cursor)?);
            }
            Ok(Value::Object(members))
        }
        JsonKind::Array => {
            let (mut items, mut first) = (Vec::new(), cursor.enter()?);
            while cursor.next_element(&mut first)? {
                items.push(read(cursor)?);
            }
            Ok(Value::Array(items))
        }
        JsonKind::String => decoded(cursor.string()?).map(Value::String),
        JsonKind::Bool => cursor.boolean().map(Value::Bool),
        JsonKind::Null => cursor.skip_value().map(|()| Value::Null),
        JsonKind::Number => cursor.number().map(|digits| Value::Number(number(digits))),
    }
}

/// A number; the largest of its sign for one that is beyond it.
fn number(digits: &[u8]) -> Number {
    let largest = if digits.starts_with(b"-") { f64::MIN } else { f64::MAX };
    serde_json::from_slice(digits).ok().or_else(|| Number::from_f64(largest)).unwrap_or_else(|| 0.into())
}

fn decoded(raw: RawStr<'_>) -> Result<String, JsonFault> {
    if raw.0.iter().any(u8::is_ascii_control) {
        return Err(JsonFault::Syntax);
    }
    let mut text = WholePairs(Vec::with_capacity(raw.0.len()));
    decode_into(raw.0, &mut text)?;
    Ok(String::from_utf8_lossy(&text.0).into_owned())
}

/// A text in which one replacement character stands for half a pair.
struct WholePairs(Vec<u8>);

impl TextSink for WholePairs {
    fn push(&mut self, piece: &[u8]) {
        // Half a pair comes as a piece of its own, in three bytes that no UTF-8 has.
        let is_half = matches!(piece, [0xED, 0xA0..=0xBF, _]);
        self.0.extend_from_slice(if is_half { "\u{FFFD}".as_bytes() } else { piece });
    }
}
