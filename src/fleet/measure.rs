//! What is counted, and the bins of histograms: whole numbers, so that sums are equal whoever makes them; and the rows of a pool
//! summed by subject, each share with the whole of the same parts.

use std::collections::BTreeMap;

use crate::base::body_shape::BodyShape;
use crate::frames::contribution::{CountSubject, Pool, PooledCount};

/// An endpoint.
pub const ENDPOINT: &str = "endpoint";
/// A tool.
pub const TOOL: &str = "tool";
/// One tool after another.
pub const EDGE: &str = "edge";
/// Another setting of the client or of the cache.
pub const WHAT_IF: &str = "what_if";

/// Sessions.
pub const SESSIONS: &str = "sessions";
/// Responses.
pub const CALLS: &str = "calls";
/// Responses that their context was shown before.
pub const REPEATS: &str = "repeats";
/// Other bodies between a repeat and its last showing.
pub const DISTANCE: &str = "distance";
/// Bytes of a response.
pub const BYTES: &str = "bytes";
/// Shape of a response.
pub const SHAPE: &str = "shape";
/// Inner formats of a response.
pub const INNER_FORMAT: &str = "inner_format";
/// Columns of the Markdown table of a response.
pub const COLUMNS: &str = "columns";
/// Milliseconds from a call to its response, where known.
pub const LATENCY: &str = "latency_ms";
/// Tokens as they are.
pub const BASELINE: &str = "baseline_tokens";
/// Tokens that the pipeline would send.
pub const SENT: &str = "sent_tokens";
/// Steps with a tool.
pub const STEPS: &str = "steps";
/// Steps with the earlier tool that the later one followed.
pub const SUPPORT: &str = "support";

/// Input-equivalent tokens of sessions as they were, simulated.
pub const LOG_TOKENS: &str = "log_tokens";
/// Those of the same sessions under another setting.
pub const POLICY_TOKENS: &str = "policy_tokens";

/// How the bins of a measure are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinForm {
    /// One number, in bin 0.
    Number,
    /// Bins of [`bin`].
    Histogram,
    /// Bins are kinds, of which there are so many; what is too rare is [`OTHER`].
    Category(u32),
}

/// The bin of all kinds that are too rare to tell.
pub const OTHER: u32 = 999;
/// Inner formats.
pub const FORMATS: u32 = 14;

/// All measures of a kind of subject, the one first by which people are weighed.
pub fn of_kind(kind: &str) -> &'static [(&'static str, BinForm)] {
    match kind {
        ENDPOINT => &[
            (CALLS, BinForm::Number),
            (SESSIONS, BinForm::Number),
            (REPEATS, BinForm::Number),
            (BASELINE, BinForm::Number),
            (SENT, BinForm::Number),
            (BYTES, BinForm::Histogram),
            (DISTANCE, BinForm::Histogram),
            (COLUMNS, BinForm::Histogram),
            (LATENCY, BinForm::Histogram),
            (SHAPE, BinForm::Category(BodyShape::COUNT as u32)),
            (INNER_FORMAT, BinForm::Category(FORMATS)),
        ],
        TOOL => &[(STEPS, BinForm::Number), (SESSIONS, BinForm::Number)],
        EDGE => &[(SUPPORT, BinForm::Number), (SESSIONS, BinForm::Number)],
        WHAT_IF => &[(LOG_TOKENS, BinForm::Number), (SESSIONS, BinForm::Number), (POLICY_TOKENS, BinForm::Number)],
        _ => &[],
    }
}

/// The measure by which people are weighed in a kind of subject.
pub fn weight_of(kind: &str) -> Option<&'static str> {
    of_kind(kind).first().map(|(measure, _)| *measure)
}

/// The form of a measure of a kind of subject.
pub fn form(kind: &str, measure: &str) -> Option<BinForm> {
    of_kind(kind).iter().find(|(name, _)| *name == measure).map(|(_, form)| *form)
}

/// Values below this have a bin each.
const EXACT: u32 = 16;
/// Bins between a power of two and the next.
const PARTS: u32 = 8;
/// The bin of the largest value there is.
pub const BIN_MAX: u32 = 16 + PARTS * 27 + 7;

/// The bin of a value: exact below 16, then eight to a doubling, so that a bin is at most 12.5 % wide.
pub fn bin(value: u32) -> u32 {
    if value < EXACT {
        return value;
    }
    let power = value.ilog2();
    EXACT + PARTS * (power - 4) + ((value >> (power - 3)) & (PARTS - 1))
}

/// The smallest value of a bin.
fn lowest(bin: u32) -> u64 {
    if bin < EXACT {
        return bin.into();
    }
    let (power, part) = ((bin - EXACT) / PARTS + 4, (bin - EXACT) % PARTS);
    u64::from(PARTS + part) << (power - 3)
}

/// What stands for the values of a bin: their middle, rounded down.
pub fn middle(bin: u32) -> u64 {
    (lowest(bin) + lowest(bin + 1) - 1) / 2
}

/// The middle of the first bin up to which at least `percent` of all counts lie; none without counts. Bins ascend.
pub fn quantile(bins: impl IntoIterator<Item = (u32, f64)> + Clone, percent: f64) -> Option<u64> {
    let total: f64 = bins.clone().into_iter().map(|(_, count)| count).sum();
    // Weighted counts have no exact binary form: without the slack a share that is just reached would be missed.
    let wanted = total * percent / 100.0 * (1.0 - 1e-12);
    let mut reached = 0.0;
    let found = bins.into_iter().find(|(_, count)| {
        reached += count;
        *count > 0.0 && reached >= wanted
    });
    found.map(|(bin, _)| middle(bin))
}

/// What a pool says of a subject over all its weeks.
#[derive(Clone, Debug, Default)]
pub struct Summed {
    /// By measure and bin.
    counts: BTreeMap<(String, u32), f64>,
    /// Of each measure that is a share, its sum and that of its whole, over the parts that tell both.
    shares: BTreeMap<String, (f64, f64)>,
    /// Weeks and batches in which it is told.
    pub parts: u64,
    /// The fewest people on whom one of them stands.
    pub people_min: i64,
}

/// The measure that another counts some of: of the same subject, or, of an edge, of its earlier tool.
fn whole_of(measure: &str) -> Option<&'static str> {
    match measure {
        REPEATS => Some(CALLS),
        SENT => Some(BASELINE),
        SUPPORT => Some(STEPS),
        _ => None,
    }
}

/// Where a number of a row's subject stands: week, batch, names, measure.
fn place<'r>(row: &'r PooledCount, measure: &'r str) -> (&'r str, u32, &'r str, &'r str, &'r str) {
    let CountSubject { kind, name, other, .. } = &row.count.subject;
    let other = if kind == EDGE { "" } else { other };
    (&row.week, row.batch, name, other, measure)
}

/// The rows of a pool by subject, each as much as its week weighs.
pub fn summed(pool: &Pool, weight: impl Fn(&str) -> f64) -> BTreeMap<CountSubject, Summed> {
    let wholes = pool.rows.iter().filter(|row| [CALLS, BASELINE, STEPS].contains(&row.count.measure.as_str()));
    let wholes: BTreeMap<_, f64> = wholes.map(|row| (place(row, &row.count.measure), row.count.count as f64)).collect();
    let mut out: BTreeMap<CountSubject, Summed> = BTreeMap::new();
    for row in &pool.rows {
        let PooledCount { count, people, .. } = row;
        let weight = weight(&row.week);
        let weighted = weight * count.count as f64;
        let summed = out.entry(count.subject.clone()).or_default();
        *summed.counts.entry((count.measure.clone(), count.bin)).or_default() += weighted;
        if let Some(whole) = whole_of(&count.measure).and_then(|measure| wholes.get(&place(row, measure))) {
            let share = summed.shares.entry(count.measure.clone()).or_default();
            *share = (share.0 + weighted, share.1 + weight * whole);
        }
        if weight_of(&count.subject.kind) == Some(count.measure.as_str()) {
            summed.people_min = if summed.parts == 0 { *people } else { summed.people_min.min(*people) };
            summed.parts += 1;
        }
    }
    out
}

impl Summed {
    /// A number; none where no week tells it.
    pub fn number(&self, measure: &str) -> Option<f64> {
        self.counts.get(&(measure.to_owned(), 0)).copied()
    }

    /// A number that counts some of another, with that other: both over the weeks and batches that tell both. None where
    /// none does.
    pub fn share(&self, measure: &str) -> Option<(f64, f64)> {
        self.shares.get(measure).copied()
    }

    /// The bins of a measure.
    pub fn bins(&self, measure: &str) -> Vec<(u32, f64)> {
        let all = self.counts.range((measure.to_owned(), 0)..=(measure.to_owned(), u32::MAX));
        all.map(|((_, bin), count)| (*bin, *count)).collect()
    }

    /// See [`quantile`].
    pub fn quantile(&self, measure: &str, percent: f64) -> Option<u64> {
        quantile(self.bins(measure), percent)
    }

    /// Mean of the middles of a histogram.
    pub fn mean(&self, measure: &str) -> Option<f64> {
        let bins = self.bins(measure);
        let total: f64 = bins.iter().map(|(_, count)| count).sum();
        let sum: f64 = bins.iter().map(|(bin, count)| middle(*bin) as f64 * count).sum();
        (total > 0.0).then(|| sum / total)
    }

    /// The most frequent shape that says something; of equals the first by name.
    pub fn shape(&self) -> String {
        let bins = self.bins(SHAPE).into_iter();
        let known = bins.filter(|(bin, _)| *bin != OTHER && *bin != BodyShape::Unknown as u32);
        let named = known.map(|(bin, count)| (BodyShape::from_number(bin as u8).into_str(), count));
        let best = named.max_by(|(a, x), (b, y)| x.total_cmp(y).then_with(|| b.cmp(a)));
        best.map(|(name, _)| name.to_owned()).unwrap_or_default()
    }

    /// Adds another subject.
    pub fn absorb(&mut self, other: &Self) {
        other.counts.iter().for_each(|(key, count)| *self.counts.entry(key.clone()).or_default() += count);
        for (measure, (part, whole)) in &other.shares {
            let share = self.shares.entry(measure.clone()).or_default();
            *share = (share.0 + part, share.1 + whole);
        }
        self.people_min = if self.parts == 0 { other.people_min } else { self.people_min.min(other.people_min) };
        self.parts += other.parts;
    }
}
