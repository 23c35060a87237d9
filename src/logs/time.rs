//! RFC 3339 timestamps to milliseconds, without a date library: a log has one on nearly every line.
//!
//! What was last made of a text, so that the text that stands on nearly every line is hashed once.
//!
//! A stretch of time in local days: what a text names, and how it is said.

use std::ops::Range;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};
use serde_json::{Value, json};

use crate::base::error::{Error, Result};
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
    let (millis, zone) = fraction(&text[19..])?;
    let seconds =
        days_from_civil(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset_seconds(zone)?;
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

/// No bounds at all.
pub const ALL: Range<Millis> = Millis::MIN..Millis::MAX;

/// The end of the day (or the instant) that a flag names.
///
/// # Errors
/// If it is no time.
pub fn end_of(flag: &str, text: &str, now_ms: Millis) -> Result<Millis> {
    let now = Timestamp::from_millisecond(now_ms).map_err(|cause| Error::failed(format!("the clock says {cause}")))?;
    parse(flag, text, now, &TimeZone::system()).map(|(_, end)| end)
}

/// The start of the first of so many days in local time, the day of `last` being the last of them.
pub fn days_before(last: Millis, days: u32) -> Millis {
    let start = Timestamp::from_millisecond(last).ok().and_then(|at| {
        let day = at.to_zoned(TimeZone::system()).date();
        let first = day.checked_sub(i64::from(days.saturating_sub(1)).days()).ok()?;
        first.to_zoned(TimeZone::system()).ok()
    });
    start.map_or(ALL.start, |start| start.timestamp().as_millisecond())
}

/// First and last-plus-one millisecond of what a text names: a day, an instant, or "so long ago".
pub fn parse(flag: &str, text: &str, now: Timestamp, zone: &TimeZone) -> Result<(Millis, Millis)> {
    let odd = || {
        Error::usage(format!("{flag} {text}: not a time"))
            .hint("write 2026-01-31, 20260131, 2026-01-31T12:00:00Z, or 7d / 4w for so long ago")
    };
    if let Some(span) = ago(text) {
        let at = now.to_zoned(zone.clone()).checked_sub(span).map_err(|_| odd())?.timestamp().as_millisecond();
        return Ok((at, at));
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok((at.as_millisecond(), at.as_millisecond() + 1));
    }
    let compact = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    let date = if compact { Date::strptime("%Y%m%d", text) } else { text.parse::<Date>() };
    let day = date.map_err(|_| odd())?.to_zoned(zone.clone()).map_err(|_| odd())?;
    let next = day.checked_add(1.day()).map_err(|_| odd())?;
    Ok((day.timestamp().as_millisecond(), next.timestamp().as_millisecond()))
}

fn ago(text: &str) -> Option<Span> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: i64 = number.parse().ok().filter(|number| (0..=36_500).contains(number))?;
    match unit {
        "d" => Some(number.days()),
        "w" => Some((number * 7).days()),
        _ => None,
    }
}

/// What to do about an empty window.
pub const WIDEN: &str = "widen --since, --until or --days, or pass --allow-empty";

/// "2026-01-01 00:00 … 2026-02-01 00:00" in local time; an open end is left out.
pub fn words(window: &Range<Millis>) -> String {
    let text = |ms: Millis| {
        let at = Timestamp::from_millisecond(ms).map(|at| at.to_zoned(TimeZone::system()));
        at.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
    };
    let bound = |ms: Millis, open: Millis| if ms == open { String::new() } else { text(ms) };
    format!("{} … {}", bound(window.start, ALL.start), bound(window.end, ALL.end)).trim().to_owned()
}

/// What there is instead of an empty window: "the logs reach from 2026-01-01 00:00 … 2026-01-31 23:59".
pub fn there(what: &str, span: Option<(Millis, Millis)>) -> String {
    span.map_or_else(
        || format!("{what} hold nothing with a time"),
        |(first, last)| format!("{what} reach from {}", words(&(first..last))),
    )
}

/// A window as text for JSON reports.
pub fn json(window: &Range<Millis>) -> Value {
    let text = |ms: Millis| Timestamp::from_millisecond(ms).map(|at| at.to_string()).ok();
    let bound = |ms: Millis| if ms == ALL.start || ms == ALL.end { None } else { text(ms) };
    let zone = TimeZone::system();
    json!({
        "since": bound(window.start),
        "until": bound(window.end),
        "timezone": zone.iana_name().unwrap_or("local"),
    })
}
