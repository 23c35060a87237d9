//! Single fields of a record: a text, a flag, a number, a timestamp, or the bytes of whatever stands there.
//!
//! RFC 3339 timestamps become milliseconds without a date library: a log has one on nearly every line. What was last made
//! of a text is remembered, since the same texts stand on nearly every line as well.

use crate::base::damage::Reason;
use crate::base::id::Id;
use crate::base::json::{Cursor, JsonFault, JsonKind, RawStr};
use crate::base::numbers::spelled;
use crate::logs::trace::Millis;

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
        let digits = std::str::from_utf8(cursor.number()?).ok();
        return Ok(digits.and_then(|digits| digits.parse().ok()).filter(|&number| number <= max));
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

/// Milliseconds since 1970 of `YYYY-MM-DDTHH:MM:SS[.fraction](Z|±HH:MM)`; `None` if the text is anything else.
pub fn parse_millis(text: &[u8]) -> Option<Millis> {
    let date = text.get(..19)?;
    if [date[4], date[7], date[13], date[16]] != *b"--::" || !matches!(date[10], b'T' | b't' | b' ') {
        return None;
    }
    let (year, month, day) = (spelled(&date[..4])?, spelled(&date[5..7])?, spelled(&date[8..10])?);
    let (hour, minute, second) = (spelled(&date[11..13])?, spelled(&date[14..16])?, spelled(&date[17..19])?);
    // A log of another century is no log of this program.
    let is_day = (2000..2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_day || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    let days = days_from_civil(year, month, day);
    if days >= days_from_civil(next.0, next.1, 1) {
        return None;
    }
    let (millis, zone) = fraction(&text[19..])?;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - offset_seconds(zone)?;
    Some(seconds * 1_000 + millis)
}

/// Milliseconds of an optional fraction, and what follows it.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(rest) = text.strip_prefix(b".") else { return Some((0, text)) };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut millis = spelled(&rest[..length.min(3)])?;
    for _ in length..3 {
        millis *= 10;
    }
    (length > 0).then_some((millis, &rest[length..]))
}

fn offset_seconds(zone: &[u8]) -> Option<i64> {
    let sign = match zone.first()? {
        b'Z' | b'z' => return (zone.len() == 1).then_some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let colon = usize::from(zone.get(3) == Some(&b':'));
    if zone.len() != 5 + colon {
        return None;
    }
    let (hours, minutes) = (spelled(&zone[1..3])?, spelled(&zone[3 + colon..])?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar. Years run from March, so that the leap day comes last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Remembers what was last made of a text: the same session and directory stand on nearly every line.
#[derive(Default)]
pub struct Memo<T> {
    text: Vec<u8>,
    made: Option<T>,
}

impl<T: Copy> Memo<T> {
    /// What `make` makes of the text.
    pub fn get(&mut self, text: &[u8], make: impl FnOnce(&[u8]) -> T) -> T {
        match self.made {
            Some(made) if self.text == text => made,
            _ => {
                self.text.clear();
                self.text.extend_from_slice(text);
                *self.made.insert(make(text))
            }
        }
    }
}
