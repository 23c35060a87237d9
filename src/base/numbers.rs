//! Numbers as people read them, and the units that they are counted in.

/// Milliseconds of an hour.
pub const HOUR_MS: i64 = 3_600_000;

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// Milliseconds of a week.
pub const WEEK_MS: i64 = 7 * DAY_MS;

/// A number in 32 bits, or the largest that they hold.
pub fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The number that at most 18 digits spell; none of anything else. No digit at all spells 0.
pub fn spelled(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, byte| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0')))
}

/// 1,234,567
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// "73.4 MB" (powers of ten).
pub fn bytes(value: u64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let unit = units.into_iter().find(|(size, _)| value as f64 >= *size);
    unit.map_or_else(|| format!("{value} B"), |(size, name)| format!("{:.1} {name}", value as f64 / size))
}

/// "94.9 %", "−3.0 %"; what rounds to nothing has no sign.
pub fn percent(share: f64) -> String {
    let text = format!("{:.1} %", 100.0 * share);
    match text.strip_prefix('-') {
        Some(size @ "0.0 %") => size.to_owned(),
        Some(size) => format!("−{size}"),
        None => text,
    }
}

/// A part in per cent of its whole; of nothing "n/a".
pub fn percent_of(part: u64, whole: u64) -> String {
    if whole == 0 { "n/a".to_owned() } else { percent(part as f64 / whole as f64) }
}

/// A dash where nothing is known.
pub fn known<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}

/// The share that a part is of the whole; a dash where there is nothing.
pub fn share_of(part: u64, whole: u64) -> String {
    known((whole > 0).then(|| part as f64 / whole as f64), percent)
}

/// "$1,234.56", and "<$0.01" of what is less than half a cent, but something; a loss has its sign: "−<$0.01".
pub fn usd(value: f64) -> String {
    let size = value.abs();
    let cents = (size * 100.0).round() as u64;
    let sign = if value < 0.0 { "−" } else { "" };
    if size > 0.0 && cents == 0 {
        return format!("{sign}<$0.01");
    }
    format!("{sign}${}.{:02}", thousands(cents / 100), cents % 100)
}

/// A difference with its sign and so many decimals; what rounds to nothing has no sign.
pub fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let is_nothing = text.chars().all(|digit| matches!(digit, '0' | '.'));
    let sign = if is_nothing {
        ""
    } else if value < 0.0 {
        "−"
    } else {
        "+"
    };
    format!("{sign}{text}")
}

/// How long something lasted, in its two largest units, the smaller one rounded: "850 ms", "41 s", "20 min 29 s", "3 h 5 min";
/// from two days on "2 d 3 h".
pub fn lasting(ms: i64) -> String {
    let (sign, ms) = (if ms < 0 { "−" } else { "" }, ms.unsigned_abs());
    let two = |large: u64, small: u64, names: [&str; 2]| {
        let count = (ms + small / 2) / small;
        let (first, rest) = (count / (large / small), count % (large / small));
        let rest = if rest == 0 { String::new() } else { format!(" {rest} {}", names[1]) };
        format!("{sign}{} {}{rest}", thousands(first), names[0])
    };
    let (hour, day) = (HOUR_MS as u64, DAY_MS as u64);
    match ms {
        0..1_000 => format!("{sign}{ms} ms"),
        1_000..59_500 => format!("{sign}{} s", (ms + 500) / 1_000),
        _ if ms < hour - 500 => two(60_000, 1_000, ["min", "s"]),
        _ if ms < 2 * day - 30_000 => two(hour, 60_000, ["h", "min"]),
        _ => two(day, hour, ["d", "h"]),
    }
}

/// A count with its noun: "1 file", "2 files", "2 searches".
pub fn counted(count: u64, noun: &str) -> String {
    let ending = match count {
        1 => "",
        _ if noun.ends_with("ch") || noun.ends_with("ss") => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", thousands(count))
}

/// The days from one timestamp to another: "2026-01-02 … 2026-01-31", or one day.
pub fn days(first: i64, last: i64) -> String {
    dates(&date(first), &date(last))
}

/// The same of dates: "2026-01-02 … 2026-01-31", or one day.
pub fn dates(first: &str, last: &str) -> String {
    if first == last { first.to_owned() } else { format!("{first} … {last}") }
}

/// The date of a timestamp in the local time zone, in which windows are bounded too: "2026-01-02".
pub fn date(ms: i64) -> String {
    let local = |at: jiff::Timestamp| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d").to_string();
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| "?".to_owned(), local)
}
