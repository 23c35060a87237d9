//! The rows of a pool by subject: sums of published rows and nothing else, each share with the whole of the same parts.

use std::collections::BTreeMap;

use crate::base::body_shape::BodyShape;
use crate::fleet::measure::{
    BASELINE, CALLS, EDGE, OTHER, REPEATS, SENT, SHAPE, STEPS, SUPPORT, middle, quantile, weight_of,
};
use crate::frames::contribution::{CountSubject, Pool, PooledCount};

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
