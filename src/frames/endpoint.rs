//! What the responses of each endpoint add up to, as a Polars frame: sums of many stretches of responses, grouped.

use std::collections::BTreeMap;

use crate::base::error::Result;
use crate::base::names::Sym;
use crate::base::stats::Clustered;
use crate::frames::groups::{column, columns, frame, grouped, sums};

/// Parts of one in which key stability is added up.
pub const STABILITY_PARTS: f64 = 1e9;

/// Sums over the events of one endpoint that have the same weight, shape, layer and inner formats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EndpointSum {
    pub endpoint: Sym,
    /// Responses that each event stands for.
    pub weight: f64,
    /// Number of the shape.
    pub shape: u8,
    /// Number of the layer.
    pub layer: u8,
    /// Inner formats, one bit each.
    pub inner_formats: u16,
    pub events: u64,
    pub bytes: u64,
    /// Tokens as they are.
    pub baseline: u64,
    /// Tokens sent.
    pub sent: u64,
    /// Events that repeat an earlier one of their context and partition.
    pub repeats: u64,
    /// Events of which nobody can tell what they repeat: no content hash was recorded, or images stand beside
    /// the text.
    pub unhashed: u64,
    /// Columns of Markdown tables, added up.
    pub columns: u64,
    /// Rows of Markdown tables, added up.
    pub rows: u64,
    /// Events with a table whose columns are known.
    pub tables: u64,
    /// Key stability, added up in [`STABILITY_PARTS`].
    pub stability: u64,
    /// Events whose key stability is known.
    pub stable: u64,
    pub prefetches: u64,
    /// Of these, used afterwards.
    pub prefetches_cited: u64,
}

/// When and in how many sessions an endpoint was called, and how much of it repeats session by session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndpointSpan {
    pub sessions: u64,
    /// First response, in milliseconds since 1970.
    pub first_ms: i64,
    pub last_ms: i64,
    /// Repeats among the events of which that can be told.
    pub repeats: Clustered,
}

impl Default for EndpointSpan {
    fn default() -> Self {
        Self { sessions: 0, first_ms: i64::MAX, last_ms: i64::MIN, repeats: Clustered::default() }
    }
}

impl EndpointSpan {
    /// Takes over that of other sessions.
    pub fn absorb(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.first_ms = self.first_ms.min(other.first_ms);
        self.last_ms = self.last_ms.max(other.last_ms);
        self.repeats.absorb(&other.repeats);
    }
}

/// One sum for each endpoint, weight, shape, layer and set of inner formats, in this order.
pub fn merged(rows: &[EndpointSum]) -> Result<Vec<EndpointSum>> {
    let key = |row: &EndpointSum| (row.endpoint, row.weight.to_bits(), row.shape, row.layer, row.inner_formats);
    let mut numbers: BTreeMap<_, u32> = rows.iter().map(|row| (key(row), 0)).collect();
    numbers.values_mut().zip(0..).for_each(|(number, next)| *number = next);
    let keys: Vec<_> = numbers.keys().copied().collect();
    let mut all = columns!(
        rows => events, bytes, baseline, sent, repeats, unhashed, columns, rows, tables, stability, stable, prefetches,
        prefetches_cited
    );
    all.push(column("group", rows, |row| numbers[&key(row)]));
    grouped(&frame(rows.len(), all)?, &["group"], |group| {
        let (endpoint, weight, shape, layer, inner_formats) = keys[group.key("group")? as usize];
        let weight = f64::from_bits(weight);
        let mut sum = EndpointSum { endpoint, weight, shape, layer, inner_formats, ..EndpointSum::default() };
        sums!(
            group => sum: events, bytes, baseline, sent, repeats, unhashed, columns, rows, tables, stability, stable, prefetches,
            prefetches_cited
        );
        Ok(sum)
    })
}
