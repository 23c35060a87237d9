//! A stretch of time in local days: what a text names, and how it is said.

use std::ops::Range;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};
use serde_json::{Value, json};

use crate::base::error::{Error, Result};
use crate::logs::trace::Millis;

/// No bounds at all.
pub const ALL: Range<Millis> = Millis::MIN..Millis::MAX;

/// The end of the day (or the instant) that a flag names.
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

/// The end of the day in local time that a moment lies in.
pub fn day_end(at: Millis) -> Millis {
    let end = Timestamp::from_millisecond(at).ok().and_then(|at| {
        let next = at.to_zoned(TimeZone::system()).date().tomorrow().ok()?;
        next.to_zoned(TimeZone::system()).ok()
    });
    end.map_or(ALL.end, |end| end.timestamp().as_millisecond())
}

/// First and last-plus-one millisecond of what a text names: a day, an instant, or "so long ago".
pub fn parse(flag: &str, text: &str, now: Timestamp, zone: &TimeZone) -> Result<(Millis, Millis)> {
    let odd = || {
        Error::usage(format!("{flag} {text}: not a time"))
            .hint("write 2026-01-31, 20260131, 2026-01-31T12:00 (local time), 2026-01-31T12:00:00Z, or 7d / 4w for so long ago")
    };
    if let Some(span) = ago(text) {
        let at = now.to_zoned(zone.clone()).checked_sub(span).map_err(|_| odd())?.timestamp().as_millisecond();
        return Ok((at, at));
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok((at.as_millisecond(), at.as_millisecond() + 1));
    }
    let has_time = text.len() > 10 || text.contains(['T', ' ', ':']);
    if has_time {
        let local = text.parse::<DateTime>().and_then(|local| local.to_zoned(zone.clone()));
        let at = local.map_err(|_| odd())?.timestamp().as_millisecond();
        return Ok((at, at + 1));
    }
    let compact = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    let date = if compact { Date::strptime("%Y%m%d", text) } else { text.parse::<Date>() };
    let date = date.map_err(|_| odd())?;
    let day = date.to_zoned(zone.clone()).map_err(|_| odd())?;
    // Where a clock is put forward at midnight, the next day does not begin as late as this one did.
    let next = date.tomorrow().and_then(|next| next.to_zoned(zone.clone()));
    Ok((day.timestamp().as_millisecond(), next.map_or(ALL.end, |next| next.timestamp().as_millisecond())))
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

/// What there is instead of an empty window: "the logs are of 2026-01-01 00:00 … 2026-01-31 23:59".
pub fn there(what: &str, span: Option<(Millis, Millis)>) -> String {
    span.map_or_else(
        || format!("{what} hold nothing with a time"),
        |(first, last)| format!("{what} are of {}", words(&(first..last))),
    )
}

/// A window as text for JSON reports.
pub fn json(window: &Range<Millis>) -> Value {
    let text = |ms: Millis| Timestamp::from_millisecond(ms).map(|at| at.to_string()).ok();
    let bound = |ms: Millis| if ms == ALL.start || ms == ALL.end { None } else { text(ms) };
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    json!({
        "since": bound(window.start),
        "until": bound(window.end),
        "timezone": zone.iana_name().unwrap_or("local"),
    })
}
