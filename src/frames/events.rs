//! Recorded responses as a Polars frame, and the sums over it from which fingerprints are made.
//!
//! All sums are of whole numbers, apart for each sampling rate, so that they do not depend on the order in which threads
//! add; the weights come in afterwards.

use crate::base::body_shape::BodyShape;
use crate::base::error::Result;
use crate::base::id::IdMap;
use crate::base::names::Sym;
use crate::base::sums::adds_up;
use crate::frames::groups::{Column, DataFrame, frame, grouped, sums};
use crate::telemetry::log::RecordedEvent;

/// Parts of one in which key stability is added up.
pub const STABILITY_PARTS: f64 = 1e9;

/// One row per event.
pub struct EventFrame {
    events: DataFrame,
    /// What events are summed up by; rows name it by place: one key is grouped much faster than several.
    groups: Vec<EventGroup>,
}

/// Endpoint, bits of the weight, and shape, layer and inner formats in one number.
type EventGroup = (Sym, u64, u32);

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

adds_up!(
    EndpointSum: events, bytes, baseline, sent, repeats, unhashed, columns, rows, tables, stability, stable, prefetches, prefetches_cited
);

/// When and in how many sessions an endpoint was called.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EndpointSpan {
    pub endpoint: Sym,
    pub sessions: u64,
    /// First response, in milliseconds since 1970.
    pub first_ms: i64,
    pub last_ms: i64,
}

impl EventFrame {
    /// The frame of about so many events of whole sessions one after the other, each with the stack distance of its repeat,
    /// `u32::MAX` where there is none.
    pub fn new<'e>(count: usize, rows: impl Iterator<Item = (&'e RecordedEvent, u32)>) -> Result<Self> {
        let (mut groups, mut places) = (Vec::new(), IdMap::<EventGroup, u32>::default());
        let mut session_of = IdMap::<Sym, u32>::default();
        let mut numbers = NUMBERS.map(|_| Vec::with_capacity(count));
        let mut times = Vec::with_capacity(count);
        // Row by row: column by column each event would be fetched a dozen times.
        for (event, distance) in rows {
            let group = group_of(event);
            let place = *places.entry(group).or_insert_with(|| {
                groups.push(group);
                groups.len() as u32 - 1
            });
            let opens = session_of.insert(event.endpoint, event.session) != Some(event.session);
            let row = numbers_of(event, [place, opens.into(), (distance != u32::MAX).into()]);
            numbers.iter_mut().zip(row).for_each(|(column, number)| column.push(number));
            times.push(event.ts);
        }
        let mut columns: Vec<Column> =
            NUMBERS.into_iter().zip(numbers).map(|(name, numbers)| Column::new(name.into(), numbers)).collect();
        let height = times.len();
        columns.push(Column::new("ts".into(), times));
        Ok(Self { events: frame(height, columns)?, groups })
    }

    /// The sums of all endpoints, each with the sessions that begin with it and its times.
    pub fn sums(&self) -> Result<Vec<(EndpointSum, EndpointSpan)>> {
        grouped(&self.events, &["group"], |group| {
            let (endpoint, weight, kind) = self.groups[group.key("group")? as usize];
            let mut sum = EndpointSum {
                endpoint,
                weight: f64::from_bits(weight),
                shape: (kind >> 8) as u8,
                layer: kind as u8,
                inner_formats: (kind >> 16) as u16,
                events: group.count(),
                ..EndpointSum::default()
            };
            sums!(
                group => sum: bytes, baseline, sent, repeats, unhashed, columns, rows, tables, stability, stable,
                prefetches, prefetches_cited
            );
            let [first_ms, last_ms] = group.extremes("ts")?;
            Ok((sum, EndpointSpan { endpoint, sessions: group.sum("sessions")?, first_ms, last_ms }))
        })
    }
}

/// The columns of small numbers; those of conditions are 1 where they hold.
const NUMBERS: [&str; 14] = [
    "group",
    "sessions",
    "repeats",
    "bytes",
    "baseline",
    "sent",
    "unhashed",
    "columns",
    "rows",
    "tables",
    "stability",
    "stable",
    "prefetches",
    "prefetches_cited",
];

/// What they hold of an event; its group, whether it is the first of its endpoint in its session, and whether it repeats
/// anything are not to be seen from it alone.
fn numbers_of(event: &RecordedEvent, [group, opens, repeats]: [u32; 3]) -> [u32; NUMBERS.len()] {
    let is_table = event.shape == BodyShape::MarkdownTable as u8 && event.columns > 0;
    let is_array = event.shape == BodyShape::ArrayOfObjects as u8 && !event.key_stability.is_nan();
    [
        group,
        opens,
        repeats,
        event.bytes,
        event.baseline,
        event.sent,
        (!event.is_comparable()).into(),
        if is_table { event.columns.into() } else { 0 },
        if is_table { event.rows } else { 0 },
        is_table.into(),
        if is_array { (f64::from(event.key_stability) * STABILITY_PARTS).round() as u32 } else { 0 },
        is_array.into(),
        event.plan.prefetched.into(),
        (event.plan.prefetched && event.plan.cited == Some(true)).into(),
    ]
}

fn group_of(event: &RecordedEvent) -> EventGroup {
    let kind = u32::from(event.inner_formats) << 16 | u32::from(event.shape) << 8 | event.layer as u32;
    (event.endpoint, event.weight.to_bits(), kind)
}
