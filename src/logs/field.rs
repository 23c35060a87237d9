//! Single fields of a record: a text, a flag, a number, or the bytes of whatever stands there.

use crate::base::damage::Reason;
use crate::base::id::Id;
use crate::base::json::{Cursor, JsonFault, JsonKind, RawStr};

/// Result of reading a part of a record.
pub type FieldResult<T> = Result<T, JsonFault>;

/// A string, or nothing where something else stands.
pub fn text<'a>(cursor: &mut Cursor<'a>) -> FieldResult<Option<RawStr<'a>>> {
    text_or(cursor, &mut |_| {})
}

/// A string; null counts as absent, anything else is told as mistyped.
pub fn text_or<'a>(cursor: &mut Cursor<'a>, odd: &mut impl FnMut(Reason)) -> FieldResult<Option<RawStr<'a>>> {
    match cursor.shape()? {
        JsonKind::String => return cursor.string().map(Some),
        JsonKind::Null => {}
        _ => odd(Reason::MistypedField),
    }
    cursor.skip_value()?;
    Ok(None)
}

/// A boolean; null and absence count as false, anything else is told as mistyped.
pub fn flag_or(cursor: &mut Cursor<'_>, odd: &mut impl FnMut(Reason)) -> FieldResult<bool> {
    match cursor.shape()? {
        JsonKind::Bool => return cursor.boolean(),
        JsonKind::Null => {}
        _ => odd(Reason::MistypedField),
    }
    cursor.skip_value()?;
    Ok(false)
}

/// A whole number; one above `max` is none.
pub fn whole_number(cursor: &mut Cursor<'_>, max: u64) -> FieldResult<Option<u64>> {
    if cursor.shape()? == JsonKind::Number {
        return Ok(std::str::from_utf8(cursor.number()?)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .filter(|&number| number <= max));
    }
    cursor.skip_value()?;
    Ok(None)
}

/// The bytes of the value that stands at the cursor.
pub fn span<'a>(cursor: &mut Cursor<'a>) -> FieldResult<&'a [u8]> {
    cursor.skip_space();
    let start = cursor.pos();
    cursor.skip_value()?;
    Ok(cursor.since(start))
}

/// Names a string by its decoded text.
pub fn id_of(text: RawStr<'_>) -> Id {
    Id::of(&text.decode().unwrap_or_default())
}

/// The pseudonym of a string by its decoded text.
pub fn pseudonym_of(text: RawStr<'_>) -> Id {
    Id::pseudonym(&text.decode().unwrap_or_default())
}

/// Walks the fields of an object; of anything else none.
pub fn each_field<'a>(
    bytes: &'a [u8],
    mut take: impl FnMut(&[u8], &mut Cursor<'a>) -> FieldResult<()>,
) -> FieldResult<()> {
    let mut cursor = Cursor::new(bytes);
    if cursor.shape()? != JsonKind::Object {
        return Ok(());
    }
    let mut first = cursor.enter()?;
    while let Some(key) = cursor.next_key(&mut first)? {
        take(key.0, &mut cursor)?;
    }
    Ok(())
}

/// The same of a span that was walked before: what fails in it is of another form, and what was read of it stands.
pub fn known_fields<'a>(span: &'a [u8], take: impl FnMut(&[u8], &mut Cursor<'a>) -> FieldResult<()>) {
    each_field(span, take).unwrap_or_default();
}
