//! Near-references: when one JSON object is another one with a few changed scalars, the change is all that has to be
//! said.
//!
//! Two bodies are near each other when they are equal byte for byte except for top-level scalar values of the same
//! type. What a hint would cost follows from the facts about the two bodies, without their texts: it is cut at places
//! where no vocabulary joins what stands on either side.

use std::collections::BTreeSet;

use crate::base::id::Id;
use crate::base::json::{Cursor, JsonFault, JsonKind, RawStr};
use crate::base::tokenizer::Size;
use crate::facts::body_facts::{NearField, NearSignature};

/// Bodies under this many bytes are no near-references of anything (published constant).
pub const BODY_BYTES_MIN: usize = 500;
/// All changes of one hint together, as written, in bytes (published constant).
pub const DELTA_BYTES_MAX: u32 = 50;
/// Objects with more fields are not looked at: their hints would not pay.
const FIELDS_MAX: usize = 64;

/// The signature of a body; none unless it is a JSON object with scalars that is large enough. `measure` gives the size
/// of a piece of hint text.
pub fn signature(body: &str, measure: &mut dyn FnMut(&str) -> Size) -> Option<NearSignature> {
    if body.len() < BODY_BYTES_MIN || !body.trim_start().starts_with('{') {
        return None;
    }
    let fields = scalar_fields(body.as_bytes()).ok()?;
    let mut keys = BTreeSet::new();
    if fields.is_empty() || fields.len() > FIELDS_MAX || !fields.iter().all(|field| keys.insert(field.key.0)) {
        return None;
    }
    let mut skeleton = Vec::with_capacity(body.len());
    let mut end = 0;
    for field in &fields {
        skeleton.extend_from_slice(&body.as_bytes()[end..field.start]);
        // JSON has no zero byte outside of values, so that a place cannot be taken for text.
        skeleton.extend_from_slice(&[0, field.shape as u8]);
        end = field.start + field.literal.len();
    }
    skeleton.extend_from_slice(&body.as_bytes()[end..]);
    let fields = fields.iter().map(|field| field.measured(measure)).collect();
    Some(NearSignature { skeleton: Id::witness(&skeleton), fields })
}

/// What a near-reference from one body to another would change: the size of all changes, as they stand in the hint
/// behind the name of the earlier call. None if the bodies are not near each other or the change is too large.
pub fn delta(earlier: &NearSignature, later: &NearSignature) -> Option<Size> {
    if earlier.skeleton != later.skeleton || earlier.fields.len() != later.fields.len() {
        return None;
    }
    let mut size = Size::default();
    let changed = earlier.fields.iter().zip(&later.fields).filter(|(old, new)| old.value != new.value);
    for (old, new) in changed {
        if !old.plain || !new.plain {
            return None;
        }
        size = size.plus(&old.old).plus(&new.new);
    }
    (1..=DELTA_BYTES_MAX).contains(&size.bytes).then_some(size)
}

struct BodyField<'a> {
    key: RawStr<'a>,
    shape: JsonKind,
    /// Where the value begins in the body.
    start: usize,
    literal: &'a [u8],
}

impl BodyField<'_> {
    fn measured(&self, measure: &mut dyn FnMut(&str) -> Size) -> NearField {
        let value = Id::witness(self.literal);
        let shown =
            if self.shape == JsonKind::String { &self.literal[1..self.literal.len() - 1] } else { self.literal };
        let plain = is_plain(self.key.0) && !self.key.0.contains(&b' ') && is_plain(shown);
        let texts = std::str::from_utf8(self.key.0).ok().zip(std::str::from_utf8(shown).ok()).filter(|_| plain);
        let Some((key, shown)) = texts else { return NearField { value, ..NearField::default() } };
        NearField { value, plain, old: measure(&format!(", {key}: {shown}")), new: measure(&format!("→{shown}")) }
    }
}

/// Letters, digits and a little punctuation inside: cannot be taken for another part of a hint, and joins with nothing
/// on either side.
fn is_plain(text: &[u8]) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./:+- ".contains(byte);
    edge(text.first()) && edge(text.last()) && text.iter().all(inner)
}

fn scalar_fields(body: &[u8]) -> Result<Vec<BodyField<'_>>, JsonFault> {
    let mut cursor = Cursor::new(body);
    let mut fields = Vec::new();
    let mut first = cursor.enter()?;
    while let Some(key) = cursor.next_key(&mut first)? {
        let shape = cursor.shape()?;
        let start = cursor.pos();
        cursor.skip_value()?;
        if !matches!(shape, JsonKind::Object | JsonKind::Array) {
            fields.push(BodyField { key, shape, start, literal: cursor.since(start) });
        }
    }
    if cursor.at_end() { Ok(fields) } else { Err(JsonFault::Syntax) }
}
