//! Weeks: from Monday to Sunday in UTC, named by their Monday.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::base::numbers::{DAY_MS, WEEK_MS};
use crate::fleet::limits::FleetLimits;
use crate::logs::trace::Millis;

/// The Monday of the week in which a time lies; none for what is no time.
pub fn monday_of(ms: Millis) -> Option<Date> {
    let day = Timestamp::from_millisecond(ms).ok()?.to_zoned(TimeZone::UTC).date();
    day.checked_sub(i64::from(day.weekday().to_monday_zero_offset()).days()).ok()
}

/// The week with this name; none if it names no Monday as devboy writes it.
pub fn named(text: &str) -> Option<Date> {
    let date: Date = text.parse().ok()?;
    (date.weekday() == Weekday::Monday && date.to_string() == text).then_some(date)
}

/// The end of a week in milliseconds.
fn end_ms(monday: Date) -> Option<Millis> {
    let end = monday.checked_add(7.days()).ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(end.timestamp().as_millisecond())
}

/// Whether a week is over, and not too long ago.
pub fn is_told(monday: Date, now_ms: Millis, limits: &FleetLimits) -> bool {
    end_ms(monday).is_some_and(|end| now_ms - end >= limits.settle_hours * 3_600_000)
        && !is_past(monday, now_ms, limits)
}

/// Whether a week is too long ago to be pooled.
pub fn is_past(monday: Date, now_ms: Millis, limits: &FleetLimits) -> bool {
    end_ms(monday).is_none_or(|end| now_ms - end > limits.weeks_max * WEEK_MS)
}

/// The weight of a week now: 1 when it ends, 1/e after its life.
pub fn weight(monday: Date, now_ms: Millis, limits: &FleetLimits) -> f64 {
    let days = |ms: Millis| ms as f64 / DAY_MS as f64;
    let age = end_ms(monday).map_or(f64::INFINITY, |end| days((now_ms - end).max(0)));
    (-age / limits.life_days).exp()
}
