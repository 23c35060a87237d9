//! Contributions and pools as listings: every value that leaves, and what a pool says of endpoints, tools and edges.

use std::collections::BTreeMap;

use crate::base::body_shape::BodyShape;
use crate::base::listing::{Columns, Listing};
use crate::base::stats::Share;
use crate::fleet::measure::{
    BASELINE, BYTES, CALLS, DISTANCE, EDGE, ENDPOINT, LATENCY, LOG_TOKENS, OTHER, POLICY_TOKENS, REPEATS, SENT,
    SESSIONS, SHAPE, STEPS, SUPPORT, TOOL, WHAT_IF, quantile, weight_of,
};
use crate::frames::contribution::{Contribution, CountSubject, Pool, PooledCount};
use crate::frames::light::{AFTER, LightCall, Number};

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

/// What a pool says of a subject over all its weeks: sums of published rows and nothing else.
#[derive(Debug, Default)]
pub struct Summed {
    /// By measure and bin.
    pub counts: BTreeMap<(String, u32), i64>,
    /// Weeks and batches in which it is told.
    pub parts: u64,
    /// The fewest people on whom one of them stands.
    pub people_min: i64,
    /// Responses of the parts in which repeats are told.
    judged: i64,
}

impl Summed {
    /// A number; none where no week tells it.
    pub fn number(&self, measure: &str) -> Option<i64> {
        self.counts.get(&(measure.to_owned(), 0)).copied()
    }

    fn bins<'s>(&'s self, measure: &'s str) -> impl Iterator<Item = (u32, f64)> + Clone + 's {
        let all = self.counts.range((measure.to_owned(), 0)..=(measure.to_owned(), u32::MAX));
        all.map(|((_, bin), count)| (*bin, *count as f64))
    }

    fn quantile(&self, measure: &str, percent: f64) -> Option<i64> {
        quantile(self.bins(measure), percent).map(|value| value as i64)
    }

    /// The most frequent shape that says something; of equals the first by name.
    fn shape(&self) -> String {
        let known = self.bins(SHAPE).filter(|(bin, _)| *bin != OTHER && *bin != BodyShape::Unknown as u32);
        let named = known.map(|(bin, count)| (BodyShape::from_number(bin as u8).into_str(), count));
        let best = named.max_by(|(a, x), (b, y)| x.total_cmp(y).then_with(|| b.cmp(a)));
        best.map(|(name, _)| name.to_owned()).unwrap_or_default()
    }
}

/// Where a row of a subject stands: week, batch, subject.
pub fn part(row: &PooledCount) -> (&str, u32, &CountSubject) {
    (&row.week, row.batch, &row.count.subject)
}

/// The responses of every part of a pool.
pub fn calls(pool: &Pool) -> BTreeMap<(&str, u32, &CountSubject), i64> {
    let rows = pool.rows.iter().filter(|row| row.count.measure == CALLS);
    rows.map(|row| (part(row), row.count.count)).collect()
}

/// The rows of a pool by subject.
pub fn summed(pool: &Pool) -> BTreeMap<CountSubject, Summed> {
    let mut out: BTreeMap<CountSubject, Summed> = BTreeMap::new();
    let calls = calls(pool);
    for row in &pool.rows {
        let PooledCount { count, people, .. } = row;
        let summed = out.entry(count.subject.clone()).or_default();
        if count.measure == REPEATS {
            summed.judged += calls.get(&part(row)).copied().unwrap_or_default();
        }
        *summed.counts.entry((count.measure.clone(), count.bin)).or_default() += count.count;
        if weight_of(&count.subject.kind) == Some(count.measure.as_str()) {
            summed.people_min = if summed.parts == 0 { *people } else { summed.people_min.min(*people) };
            summed.parts += 1;
        }
    }
    out
}

fn of_kind<'s>(all: &'s BTreeMap<CountSubject, Summed>, kind: &str) -> Vec<(&'s CountSubject, &'s Summed)> {
    let weight = |summed: &Summed| weight_of(kind).and_then(|measure| summed.number(measure));
    let mut rows: Vec<_> = all.iter().filter(|(subject, _)| subject.kind == kind).collect();
    rows.sort_by_key(|(subject, summed)| (std::cmp::Reverse(weight(summed)), (*subject).clone()));
    rows
}

/// Fingerprints of endpoints.
pub fn endpoints(all: &BTreeMap<CountSubject, Summed>) -> Listing {
    let rows = of_kind(all, ENDPOINT);
    let share = |row: &Summed| {
        let repeats = row.number(REPEATS).filter(|_| row.judged > 0);
        repeats.map(|repeats| repeats as f64 / row.judged as f64)
    };
    Columns::of(&rows)
        .text("endpoint", |(subject, _)| subject.name.clone())
        .text("tool", |(subject, _)| subject.other.clone())
        .whole("calls", |(_, row)| row.number(CALLS))
        .count("parts", |(_, row)| row.parts)
        .whole("people_min", |(_, row)| Some(row.people_min))
        .whole("bytes_p50", |(_, row)| row.quantile(BYTES, 50.0))
        .whole("bytes_p99", |(_, row)| row.quantile(BYTES, 99.0))
        .text("shape_dominant", |(_, row)| row.shape())
        .whole("repeats", |(_, row)| row.number(REPEATS))
        .real("dup_rate", |(_, row)| share(row))
        .whole("repeat_distance_p90", |(_, row)| row.quantile(DISTANCE, 90.0))
        .whole("latency_ms_p50", |(_, row)| row.quantile(LATENCY, 50.0))
        .whole("latency_ms_p90", |(_, row)| row.quantile(LATENCY, 90.0))
        .whole("baseline_tokens", |(_, row)| row.number(BASELINE))
        .whole("sent_tokens", |(_, row)| row.number(SENT))
        .finish()
}

/// Tools with their steps.
pub fn tools(all: &BTreeMap<CountSubject, Summed>) -> Listing {
    let rows = of_kind(all, TOOL);
    Columns::of(&rows)
        .text("tool", |(subject, _)| subject.name.clone())
        .whole("steps", |(_, row)| row.number(STEPS))
        .count("parts", |(_, row)| row.parts)
        .whole("people_min", |(_, row)| Some(row.people_min))
        .finish()
}

/// Follow-up edges with the share of the earlier tool's steps.
pub fn edges(all: &BTreeMap<CountSubject, Summed>) -> Listing {
    let rows = of_kind(all, EDGE);
    let steps = |from: &CountSubject| {
        let tool = CountSubject { kind: TOOL.to_owned(), name: from.name.clone(), ..CountSubject::default() };
        all.get(&tool).and_then(|row| row.number(STEPS)).unwrap_or_default().max(0)
    };
    let share = |subject: &CountSubject, row: &Summed| {
        let steps = steps(subject);
        Share::new(row.number(SUPPORT).unwrap_or_default().clamp(0, steps) as u64, steps as u64)
    };
    Columns::of(&rows)
        .text("from", |(subject, _)| subject.name.clone())
        .text("to", |(subject, _)| subject.other.clone())
        .count("lag", |(subject, _)| subject.lag.into())
        .whole("support", |(_, row)| row.number(SUPPORT))
        .whole("steps", |(subject, _)| Some(steps(subject)))
        .count("parts", |(_, row)| row.parts)
        .whole("people_min", |(_, row)| Some(row.people_min))
        .real("probability", |(subject, row)| Some(share(subject, row).value()))
        .real("probability_lower", |(subject, row)| Some(share(subject, row).lower))
        .finish()
}

/// What other settings would have cost.
pub fn what_ifs(all: &BTreeMap<CountSubject, Summed>) -> Listing {
    let rows = of_kind(all, WHAT_IF);
    let change = |row: &Summed| {
        let (log, policy) = row.number(LOG_TOKENS).zip(row.number(POLICY_TOKENS))?;
        (log > 0).then(|| policy as f64 / log as f64 - 1.0)
    };
    Columns::of(&rows)
        .text("setting", |(subject, _)| subject.name.clone())
        .whole("sessions", |(_, row)| row.number(SESSIONS))
        .count("parts", |(_, row)| row.parts)
        .whole("people_min", |(_, row)| Some(row.people_min))
        .whole("log_tokens", |(_, row)| row.number(LOG_TOKENS))
        .whole("policy_tokens", |(_, row)| row.number(POLICY_TOKENS))
        .real("change", |(_, row)| change(row))
        .finish()
}
