//! The numbers of `rules/fleet.toml`, and the weeks that they are about: from Monday to Sunday in UTC, named by their Monday.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::Deserialize;

use crate::base::numbers::{DAY_MS, WEEK_MS};
use crate::logs::trace::Millis;

/// The data file.
pub const SHEET: &str = "fleet.toml";

/// What one person may add, on how many people a row stands, and how much of it counts at home.
#[derive(Clone, Debug, Deserialize)]
pub struct FleetLimits {
    pub sessions_max: u64,
    pub events_max: u64,
    pub events_min: u64,
    pub tokens_max: u64,
    pub session_tokens_max: u64,
    pub policy_factor_max: u64,
    pub people_min: u64,
    pub share_max_pct: u64,
    pub settle_hours: i64,
    pub weeks_max: i64,
    pub lags: Vec<u32>,
    pub file_bytes_max: u64,
    pub rows_max: usize,
    pub light_bytes_max: u64,
    pub light_rows_max: usize,
    /// Lower bounds of the classes of time between two calls.
    pub gap_seconds: Vec<u32>,
    pub secret_bytes_min: usize,
    pub marks_max: usize,
    pub enough: u64,
    pub lent_max_pct: u64,
    pub provider_max_pct: u64,
    pub life_days: f64,
    pub what_if: Vec<PooledSetting>,
}

/// A setting that is replayed for a pool.
#[derive(Clone, Debug, Deserialize)]
pub struct PooledSetting {
    /// The name under which its sums leave.
    pub name: String,
    pub policy: String,
    pub set: Vec<String>,
}

/// The Monday of the week in which a time lies; none for what is no time.
pub fn monday_of(ms: Millis) -> Option<Date> {
    let day = Timestamp::from_millisecond(ms).ok()?.to_zoned(TimeZone::UTC).date();
    day.checked_sub(i64::from(day.weekday().to_monday_zero_offset()).days()).ok()
}

/// The week with this name; none if it names no Monday as devboy writes it.
pub fn week_named(text: &str) -> Option<Date> {
    let date: Date = text.parse().ok()?;
    (date.weekday() == Weekday::Monday && date.to_string() == text).then_some(date)
}

/// The end of a week in milliseconds.
fn end_ms(monday: Date) -> Option<Millis> {
    let end = monday.checked_add(7.days()).ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(end.timestamp().as_millisecond())
}

impl FleetLimits {
    /// Whether a week is over, and not too long ago.
    pub fn is_told(&self, monday: Date, now_ms: Millis) -> bool {
        end_ms(monday).is_some_and(|end| now_ms - end >= self.settle_hours * 3_600_000) && !self.is_past(monday, now_ms)
    }

    /// Whether a week is too long ago to be pooled.
    pub fn is_past(&self, monday: Date, now_ms: Millis) -> bool {
        end_ms(monday).is_none_or(|end| now_ms - end > self.weeks_max * WEEK_MS)
    }

    /// The weight of a week now: 1 when it ends, 1/e after its life.
    pub fn weight(&self, monday: Date, now_ms: Millis) -> f64 {
        let days = |ms: Millis| ms as f64 / DAY_MS as f64;
        let age = end_ms(monday).map_or(f64::INFINITY, |end| days((now_ms - end).max(0)));
        (-age / self.life_days).exp()
    }
}
