//! RFC 3339 timestamps to milliseconds, without a date library: a log has one on nearly every line. What was last made
//! of a text is remembered, since the same texts stand on nearly every line as well.

use crate::logs::trace::Millis;

/// Milliseconds since 1970 of `YYYY-MM-DDTHH:MM:SS[.fraction](Z|±HH:MM)`; `None` if the text is anything else.
pub fn parse_millis(text: &[u8]) -> Option<Millis> {
    let date = text.get(..19)?;
    if date[4] != b'-'
        || date[7] != b'-'
        || !matches!(date[10], b'T' | b't' | b' ')
        || date[13] != b':'
        || date[16] != b':'
    {
        return None;
    }
    let (year, month, day) = (digits(&date[..4])?, digits(&date[5..7])?, digits(&date[8..10])?);
    let (hour, minute, second) = (digits(&date[11..13])?, digits(&date[14..16])?, digits(&date[17..19])?);
    // A log of another century is no log of this program.
    if !(2000..2200).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
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

fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |value, byte| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0')))
}

/// Milliseconds of an optional fraction, and what follows it.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(rest) = text.strip_prefix(b".") else { return Some((0, text)) };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut millis = digits(&rest[..length.min(3)])?;
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
    let (hours, minutes) = (digits(&zone[1..3])?, digits(&zone[3 + colon..])?);
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
