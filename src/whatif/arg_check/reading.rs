//! Arguments as a client reads them: what is JSON is a value, though half a UTF-16 pair stands in a text, a number is beyond
//! the largest of 64 bits, or values are nested deeper than other readers go.

use serde_json::{Map, Number, Value};

use crate::base::json::{Cursor, JsonFault, JsonKind, RawStr, TextSink, decode_into};

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
