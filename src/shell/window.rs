//! The time window of a command: `--since`, `--until`, `--days`, in the local time zone.

use std::ops::Range;

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use crate::base::error::{Error, Result};
use crate::logs::trace::Millis;
use crate::logs::window::parse;
use crate::settings::entries::RuleInputs;
use crate::shell::arguments::WindowArgs;
use crate::shell::context::Env;

pub use crate::logs::window::{ALL, WIDEN, day_end, days_before, end_of, json, there, words};

/// The window asked for, as half-open milliseconds; both days named are inside.
pub fn of(args: &WindowArgs, now_ms: Millis) -> Result<Range<Millis>> {
    let zone = TimeZone::system();
    let now = Timestamp::from_millisecond(now_ms).map_err(|cause| Error::failed(format!("the clock says {cause}")))?;
    let back = |days: u32| {
        let span = Span::new().try_days(days)?;
        now.to_zoned(zone.clone()).checked_sub(span)
    };
    let days = args.days.map(back);
    let start = match (&args.since, days) {
        (Some(text), _) => parse("--since", text, now, &zone)?.0,
        (None, Some(start)) => {
            start.map_err(|cause| Error::usage(format!("--days: {cause}")))?.timestamp().as_millisecond()
        }
        (None, None) => ALL.start,
    };
    let until = args.until.as_ref().map(|text| parse("--until", text, now, &zone)).transpose()?;
    let (last, end) = until.unwrap_or((ALL.end, ALL.end));
    if start >= end {
        return Err(empty(args, start > last));
    }
    Ok(start..end)
}

/// The error of a window that ends where it begins, or before: only an end that was named can do that.
fn empty(WindowArgs { since, until, days }: &WindowArgs, is_backwards: bool) -> Error {
    let until = until.as_deref().unwrap_or_default();
    let days = format!("--days {}", days.unwrap_or_default());
    match since {
        _ if !is_backwards => {
            let begin = since.as_ref().map_or(days, |since| format!("--since {since}"));
            let message = format!("nothing lies between {begin} and --until {until}: the window is empty");
            Error::usage(message).hint("begin earlier, or name a later --until")
        }
        Some(since) => Error::usage(format!("--since {since} is later than --until {until}")).hint("swap them"),
        None => {
            Error::usage(format!("{days} begins later than --until {until}")).hint("name more days, or a later --until")
        }
    }
}

/// What to say of a `TZ` that names no time zone.
pub fn unknown_zone(env: &Env) -> Option<String> {
    let is_unknown = env.variables.contains_key("TZ") && TimeZone::try_system().is_err();
    is_unknown.then(|| "the variable TZ names no time zone that is known here: days are those of UTC".to_owned())
}

/// What a journal says about the input of a change.
pub fn inputs(origin: &str, events: u64, sessions: u64, window: &Range<Millis>) -> RuleInputs {
    let bound = |ms: Millis| if ms == ALL.start || ms == ALL.end { None } else { Some(ms) };
    RuleInputs {
        origin: origin.to_owned(),
        events,
        sessions,
        since_ms: bound(window.start),
        until_ms: bound(window.end),
    }
}
