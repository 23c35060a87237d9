//! What the responses of each endpoint add up to, from which fingerprints are made.
//!
//! All sums are of whole numbers, apart for each sampling rate, so that they do not depend on the order in which threads
//! add; the weights come in afterwards.

use std::collections::BTreeMap;

use crate::base::body_shape::BodyShape;
use crate::base::id::IdMap;
use crate::base::names::Sym;
use crate::base::stats::Clustered;
use crate::frames::endpoint::{EndpointSpan, EndpointSum, STABILITY_PARTS};
use crate::logs::trace::Millis;
use crate::telemetry::log::RecordedEvent;

/// Endpoint, bits of the weight, and shape, layer and inner formats in one number.
type EventGroup = (Sym, u64, u32);

/// The sums of endpoints over whole sessions, one after the other.
#[derive(Debug, Default)]
pub struct EndpointSums {
    sums: Vec<EndpointSum>,
    places: IdMap<EventGroup, usize>,
    spans: BTreeMap<Sym, EndpointSpan>,
    /// What the session at hand has of each endpoint.
    of_session: IdMap<Sym, SessionOfEndpoint>,
}

/// The responses of one endpoint in one session.
#[derive(Debug)]
struct SessionOfEndpoint {
    first_ms: Millis,
    last_ms: Millis,
    /// Those of which it can be told whether they repeat anything.
    comparable: u64,
    repeats: u64,
}

impl SessionOfEndpoint {
    fn span(self) -> EndpointSpan {
        let Self { first_ms, last_ms, comparable, repeats } = self;
        EndpointSpan { sessions: 1, first_ms, last_ms, repeats: Clustered::of([(repeats, comparable)]) }
    }
}

impl EndpointSums {
    /// Adds a response; whether it repeats anything is not to be seen from it alone.
    pub fn add(&mut self, event: &RecordedEvent, repeats: bool) {
        let place = *self.places.entry(group_of(event)).or_insert_with(|| {
            self.sums.push(unseen(event));
            self.sums.len() - 1
        });
        let sum = &mut self.sums[place];
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
        let ts = event.ts;
        let unseen = || SessionOfEndpoint { first_ms: ts, last_ms: ts, comparable: 0, repeats: 0 };
        let session = self.of_session.entry(event.endpoint).or_insert_with(unseen);
        (session.first_ms, session.last_ms) = (session.first_ms.min(ts), session.last_ms.max(ts));
        session.comparable += u64::from(event.is_comparable());
        session.repeats += u64::from(repeats);
    }

    /// Ends a session: its responses are all added.
    pub fn end_session(&mut self) {
        let Self { spans, of_session, .. } = self;
        // Each has a sum of its own, so that it does not matter which comes first.
        of_session.drain().for_each(|(endpoint, session)| spans.entry(endpoint).or_default().absorb(&session.span()));
    }

    /// Takes over the sums of other sessions, beside its own.
    pub fn absorb(&mut self, other: Self) {
        self.sums.extend(other.sums);
        absorb_spans(&mut self.spans, other.spans);
    }

    /// All sums, and what is known of each endpoint as a whole.
    pub fn into_sums(self) -> (Vec<EndpointSum>, BTreeMap<Sym, EndpointSpan>) {
        (self.sums, self.spans)
    }
}

/// Takes over the spans of other sessions.
pub fn absorb_spans(spans: &mut BTreeMap<Sym, EndpointSpan>, others: BTreeMap<Sym, EndpointSpan>) {
    others.iter().for_each(|(endpoint, span)| spans.entry(*endpoint).or_default().absorb(span));
}

/// What there is of the group of an event before the first one.
fn unseen(event: &RecordedEvent) -> EndpointSum {
    let RecordedEvent { endpoint, weight, shape, inner_formats, .. } = *event;
    EndpointSum { endpoint, weight, shape, layer: event.layer as u8, inner_formats, ..EndpointSum::default() }
}

fn group_of(event: &RecordedEvent) -> EventGroup {
    let kind = u32::from(event.inner_formats) << 16 | u32::from(event.shape) << 8 | event.layer as u32;
    (event.endpoint, event.weight.to_bits(), kind)
}
