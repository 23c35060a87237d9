//! Contributions and pools as listings: every value that leaves, and what a pool says of endpoints, tools and edges.

use std::collections::BTreeMap;

use crate::base::listing::{Columns, Listing};
use crate::base::stats::Share;
use crate::fleet::measure::{
    BYTES, CALLS, DISTANCE, EDGE, ENDPOINT, LATENCY, LOG_TOKENS, POLICY_TOKENS, REPEATS, SENT, SESSIONS, STEPS,
    SUPPORT, TOOL, WHAT_IF, weight_of,
};
use crate::fleet::sums::Summed;
use crate::frames::contribution::{Contribution, CountSubject};
use crate::frames::light::{AFTER, LightCall, Number};

/// What people read above the columns of a pool.
pub const HEADINGS: [(&str, &str); 17] = [
    ("parts", "weeks"),
    ("people_min", "people, at least"),
    ("bytes_p50", "median bytes"),
    ("bytes_p99", "99 % below"),
    ("shape_dominant", "mostly"),
    ("repeats_of", "of"),
    ("dup_rate", "repeated"),
    ("repeat_distance_p90", "apart, 90 % below"),
    ("latency_ms_p50", "median ms"),
    ("latency_ms_p90", "90 % below, ms"),
    ("baseline_tokens", "tokens"),
    ("sent_tokens", "tokens sent"),
    ("support", "followed"),
    ("probability", "share"),
    ("probability_lower", "share, at least"),
    ("log_tokens", "tokens in the logs"),
    ("policy_tokens", "tokens with it"),
];

/// What each column of a light row tells.
const LIGHT: [(&str, &str); 18] = [
    ("session", "keyed mark of the session"),
    ("chain", "keyed mark of the main thread or subagent"),
    ("position", "place of the call in its chain"),
    ("counts_in", "1: its endpoint, 2: its tool and what followed, 3: both"),
    ("tool", "name, keyed unless it is public"),
    ("endpoint", "class, keyed unless it is public; empty if it does not count in one"),
    ("shape", "number of the shape of the answer"),
    ("inner_formats", "formats found in the answer, a bit each"),
    ("columns", "of the answer's Markdown table, within 12.5 %"),
    ("bytes", "of the answer, within 12.5 %"),
    ("baseline_tokens", "of the answer, within 12.5 %, at most 50,000"),
    ("saved_tokens", "what the built-in configuration would have saved of them"),
    ("repeat_distance", "other answers since this one was shown before; -1: never"),
    ("latency_ms", "from the call to its answer, within 12.5 %; -1: unknown"),
    ("gap", "since the call before: 0 under 10 s, 1 to 60 s, 2 to 5 min, 3 to 1 h, 4 longer; -1: first"),
    ("after_1", "tools of the next step"),
    ("after_2", "tools two steps later"),
    ("after_3", "tools three steps later"),
];

/// What the columns of light rows tell.
pub fn light_columns() -> Listing {
    Columns::of(&LIGHT)
        .text("column", |(name, _)| (*name).to_owned())
        .text("tells", |(_, tells)| (*tells).to_owned())
        .finish()
}

/// Light rows as they leave.
pub fn light<'c>(weeks: impl Iterator<Item = (&'c str, &'c LightCall)>) -> Listing {
    let rows: Vec<_> = weeks.collect();
    let mut columns = Columns::of(&rows)
        .text("week", |(week, _)| (*week).to_owned())
        .text("session", |(_, call)| call.session.clone())
        .text("chain", |(_, call)| call.chain.clone())
        .text("tool", |(_, call)| call.tool.clone())
        .text("endpoint", |(_, call)| call.endpoint.clone());
    for (number, name) in Number::ALL {
        columns = columns.whole(name, move |(_, call)| Some(call.number(number)));
    }
    for (at, name) in AFTER.into_iter().enumerate() {
        columns = columns.text(name, move |(_, call)| call.after[at].clone());
    }
    columns.finish()
}

/// Every value of some contributions, as it leaves.
pub fn leaving<'c>(contributions: impl Iterator<Item = &'c Contribution>) -> Listing {
    let rows: Vec<_> = contributions.flat_map(|from| from.counts.iter().map(move |row| (from, row))).collect();
    Columns::of(&rows)
        .text("user", |(from, _)| from.user.clone())
        .text("week", |(from, _)| from.week.clone())
        .text("kind", |(_, row)| row.subject.kind.clone())
        .text("name", |(_, row)| row.subject.name.clone())
        .text("other", |(_, row)| row.subject.other.clone())
        .count("lag", |(_, row)| row.subject.lag.into())
        .text("measure", |(_, row)| row.measure.clone())
        .count("bin", |(_, row)| row.bin.into())
        .whole("count", |(_, row)| Some(row.count))
        .finish()
}

fn of_kind<'s>(all: &'s BTreeMap<CountSubject, Summed>, kind: &str) -> Vec<(&'s CountSubject, &'s Summed)> {
    let weight = |summed: &Summed| weight_of(kind).and_then(|measure| number(summed, measure));
    let mut rows: Vec<_> = all.iter().filter(|(subject, _)| subject.kind == kind).collect();
    rows.sort_by_key(|(subject, summed)| (std::cmp::Reverse(weight(summed)), (*subject).clone()));
    rows
}

/// A sum of counts is a whole number.
fn number(row: &Summed, measure: &str) -> Option<i64> {
    row.number(measure).map(|number| number as i64)
}

fn part(row: &Summed, measure: &str) -> Option<i64> {
    row.share(measure).map(|(part, _)| part as i64)
}

fn whole(row: &Summed, measure: &str) -> Option<i64> {
    row.share(measure).map(|(_, whole)| whole as i64)
}

/// Fingerprints of endpoints.
pub fn endpoints(all: &BTreeMap<CountSubject, Summed>) -> Listing {
    let rows = of_kind(all, ENDPOINT);
    let rate = |row: &Summed| row.share(REPEATS).filter(|(_, calls)| *calls > 0.0).map(|(part, calls)| part / calls);
    let quantile = |row: &Summed, measure, percent| row.quantile(measure, percent).map(|value| value as i64);
    Columns::of(&rows)
        .text("endpoint", |(subject, _)| subject.name.clone())
        .text("tool", |(subject, _)| subject.other.clone())
        .whole("calls", |(_, row)| number(row, CALLS))
        .count("parts", |(_, row)| row.parts)
        .whole("people_min", |(_, row)| Some(row.people_min))
        .whole("bytes_p50", |(_, row)| quantile(row, BYTES, 50.0))
        .whole("bytes_p99", |(_, row)| quantile(row, BYTES, 99.0))
        .text("shape_dominant", |(_, row)| row.shape())
        .whole("repeats", |(_, row)| part(row, REPEATS))
        .whole("repeats_of", |(_, row)| whole(row, REPEATS))
        .real("dup_rate", |(_, row)| rate(row))
        .whole("repeat_distance_p90", |(_, row)| quantile(row, DISTANCE, 90.0))
        .whole("latency_ms_p50", |(_, row)| quantile(row, LATENCY, 50.0))
        .whole("latency_ms_p90", |(_, row)| quantile(row, LATENCY, 90.0))
        .whole("baseline_tokens", |(_, row)| whole(row, SENT))
        .whole("sent_tokens", |(_, row)| part(row, SENT))
        .finish()
}

/// Tools with their steps.
pub fn tools(all: &BTreeMap<CountSubject, Summed>) -> Listing {
    let rows = of_kind(all, TOOL);
    Columns::of(&rows)
        .text("tool", |(subject, _)| subject.name.clone())
        .whole("steps", |(_, row)| number(row, STEPS))
        .count("parts", |(_, row)| row.parts)
        .whole("people_min", |(_, row)| Some(row.people_min))
        .finish()
}

/// Follow-up edges with the share of the earlier tool's steps, where both are told.
pub fn edges(all: &BTreeMap<CountSubject, Summed>) -> Listing {
    let rows = of_kind(all, EDGE);
    let share = |row: &Summed| {
        let (support, steps) = row.share(SUPPORT).unwrap_or_default();
        Share::new(support.clamp(0.0, steps.max(0.0)) as u64, steps.max(0.0) as u64)
    };
    Columns::of(&rows)
        .text("from", |(subject, _)| subject.name.clone())
        .text("to", |(subject, _)| subject.other.clone())
        .count("lag", |(subject, _)| subject.lag.into())
        .whole("support", |(_, row)| part(row, SUPPORT))
        .whole("steps", |(_, row)| whole(row, SUPPORT))
        .count("parts", |(_, row)| row.parts)
        .whole("people_min", |(_, row)| Some(row.people_min))
        .real("probability", |(_, row)| Some(share(row).value()))
        .real("probability_lower", |(_, row)| Some(share(row).lower))
        .finish()
}

/// What other settings would have cost.
pub fn what_ifs(all: &BTreeMap<CountSubject, Summed>) -> Listing {
    let rows = of_kind(all, WHAT_IF);
    let change = |row: &Summed| {
        let (log, policy) = row.number(LOG_TOKENS).zip(row.number(POLICY_TOKENS))?;
        (log > 0.0).then(|| policy / log - 1.0)
    };
    Columns::of(&rows)
        .text("setting", |(subject, _)| subject.name.clone())
        .whole("sessions", |(_, row)| number(row, SESSIONS))
        .count("parts", |(_, row)| row.parts)
        .whole("people_min", |(_, row)| Some(row.people_min))
        .whole("log_tokens", |(_, row)| number(row, LOG_TOKENS))
        .whole("policy_tokens", |(_, row)| number(row, POLICY_TOKENS))
        .real("change", |(_, row)| change(row))
        .finish()
}
