//! What the responses of each endpoint add up to, from which fingerprints are made.
//!
//! All sums are of whole numbers, apart for each sampling rate, so that they do not depend on the order in which threads
//! add; the weights come in afterwards.

use crate::base::body_shape::BodyShape;
use crate::base::id::IdMap;
use crate::base::names::Sym;
use crate::frames::endpoint::{EndpointSpan, EndpointSum, STABILITY_PARTS};
use crate::telemetry::log::RecordedEvent;

/// Endpoint, bits of the weight, and shape, layer and inner formats in one number.
type EventGroup = (Sym, u64, u32);

/// The sums of endpoints over whole sessions, one after the other.
#[derive(Debug, Default)]
pub struct EndpointSums {
    sums: Vec<(EndpointSum, EndpointSpan)>,
    places: IdMap<EventGroup, usize>,
    /// By endpoint, the session that called it last.
    session_of: IdMap<Sym, u32>,
}

impl EndpointSums {
    /// Adds a response; whether it repeats anything is not to be seen from it alone.
    pub fn add(&mut self, event: &RecordedEvent, repeats: bool) {
        let place = *self.places.entry(group_of(event)).or_insert_with(|| {
            self.sums.push(unseen(event));
            self.sums.len() - 1
        });
        let (sum, span) = &mut self.sums[place];
        sum.events += 1;
        sum.bytes += u64::from(event.bytes);
        sum.baseline += u64::from(event.baseline);
        sum.sent += u64::from(event.sent);
        sum.repeats += u64::from(repeats);
        sum.unhashed += u64::from(!event.is_comparable());
        if event.shape == BodyShape::MarkdownTable as u8 && event.columns > 0 {
            sum.columns += u64::from(event.columns);
            sum.rows += u64::from(event.rows);
            sum.tables += 1;
        }
        if event.shape == BodyShape::ArrayOfObjects as u8 && !event.key_stability.is_nan() {
            sum.stability += (f64::from(event.key_stability) * STABILITY_PARTS).round() as u64;
            sum.stable += 1;
        }
        sum.prefetches += u64::from(event.plan.prefetched);
        sum.prefetches_cited += u64::from(event.plan.prefetched && event.plan.cited == Some(true));
        let opens = self.session_of.insert(event.endpoint, event.session) != Some(event.session);
        span.sessions += u64::from(opens);
        (span.first_ms, span.last_ms) = (span.first_ms.min(event.ts), span.last_ms.max(event.ts));
    }

    /// Takes over the sums of other sessions, beside its own.
    pub fn absorb(&mut self, other: Self) {
        self.sums.extend(other.sums);
    }

    /// All sums, each with the sessions that begin with it and its times.
    pub fn into_sums(self) -> Vec<(EndpointSum, EndpointSpan)> {
        self.sums
    }
}

/// What there is of the group of an event before the first one.
fn unseen(event: &RecordedEvent) -> (EndpointSum, EndpointSpan) {
    let RecordedEvent { endpoint, weight, shape, inner_formats, ts, .. } = *event;
    let layer = event.layer as u8;
    let sum = EndpointSum { endpoint, weight, shape, layer, inner_formats, ..EndpointSum::default() };
    (sum, EndpointSpan { endpoint, sessions: 0, first_ms: ts, last_ms: ts })
}

fn group_of(event: &RecordedEvent) -> EventGroup {
    let kind = u32::from(event.inner_formats) << 16 | u32::from(event.shape) << 8 | event.layer as u32;
    (event.endpoint, event.weight.to_bits(), kind)
}
