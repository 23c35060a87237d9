//! The calls of a history as a replay needs them, before it is known what there is to the bodies that they were shown. They
//! take half the room of those of the history, which can go before facts about bodies come.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::body_shape::{BodyShape, Showing};
use crate::base::id::Id;
use crate::base::names::Names;
use crate::facts::body_facts::BodyFacts;
use crate::logs::history::{Call, CallDetails, History};
use crate::logs::trace::{ResultKind, Status};
use crate::replay::tape::{BodyAtHand, Endpoint, Response, TapeEntry};

/// Stands where nothing is known of a body, or there is none.
const NO_BODY: u32 = u32::MAX;

/// All calls, context by context.
pub struct LaidOutCalls {
    /// One per call, without bodies: [`LaidOutCalls::name_bodies`].
    pub responses: Vec<Response>,
    pub endpoints: Vec<Endpoint>,
    /// By call the name of what it quotes ([`BodyFacts::quoted_by`]), if it does.
    pub quotes: Vec<Id>,
    /// Bytes of the bodies that may have numbered lines.
    pub numbered_bytes: u64,
    /// The bodies that calls were shown, in order, each with the number of the call; as often as it was shown.
    shown: Vec<(Id, u32)>,
}

impl LaidOutCalls {
    /// `endpoint_of` makes an endpoint of a tool and a class.
    pub fn new(history: &History, names: &Names, endpoint_of: &dyn Fn(&str, &str) -> Endpoint) -> Self {
        let (mut endpoints, mut known) = (Vec::new(), BTreeMap::new());
        let response = |(call, details): (&Call, &CallDetails)| {
            let endpoint = *known.entry((call.tool, call.endpoint)).or_insert_with(|| {
                endpoints.push(endpoint_of(names.text(call.tool), names.text(call.endpoint)));
                endpoints.len() as u32 - 1
            });
            Response {
                body: NO_BODY,
                endpoint,
                session: history.chains[call.chain as usize].session,
                chain: call.chain,
                partition: call.partition,
                path: details.path,
                outcome: outcome(call),
                ran: call.ran(),
                handle: details.handle,
                showing: details.showing,
                body_at_hand: BodyAtHand::default(),
            }
        };
        let responses = history.detailed_calls().map(response).collect();
        let quotes = history.calls.par_iter().map(|call| BodyFacts::quoted_by(call.message, call.id)).collect();
        let is_numbered = |(call, details): &(&Call, &CallDetails)| {
            details.showing == Showing::Rows || call.shape == BodyShape::NumberedList as u8
        };
        let numbered = history.detailed_calls().filter(is_numbered);
        let numbered_bytes = numbered.map(|(call, _)| u64::from(call.bytes)).sum();
        let mut shown = Vec::with_capacity(history.calls.len());
        let bodies = history.calls.iter().map(|call| call.body).zip(0..);
        shown.extend(bodies.filter(|(body, _)| body.is_some()));
        shown.par_sort_unstable();
        Self { responses, endpoints, quotes, numbered_bytes, shown }
    }

    /// The calls that were shown a body, in order.
    pub fn shown(&self, body: Id) -> &[(Id, u32)] {
        shown_among(&self.shown, body)
    }

    /// The contexts of calls, numbered.
    pub fn contexts(&self) -> impl Iterator<Item = (u32, &[Response])> {
        (0..).zip(self.responses.chunk_by(|one, next| one.context() == next.context()))
    }

    /// Tells each call the number of the body that it was shown, which is its place among these facts: they come into the order
    /// in which calls first need them, so that a replay walks through memory instead of jumping about in it. Facts that no call
    /// needs are left out.
    pub fn name_bodies(&mut self, facts: &mut Vec<BodyFacts>) {
        let Self { shown, responses, .. } = self;
        // Where they stand: together they are large.
        facts.retain(|row| !shown_among(shown, row.body).is_empty());
        facts.sort_by_cached_key(|row| shown_among(shown, row.body)[0].1);
        facts.dedup_by_key(|row| row.body);
        facts.shrink_to_fit();
        for (body, row) in (0..).zip(&*facts) {
            for &(_, call) in shown_among(shown, row.body) {
                responses[call as usize].body = body;
            }
        }
        for response in responses.iter_mut().filter(|response| response.body == NO_BODY) {
            if response.outcome != TapeEntry::Silent {
                response.outcome = TapeEntry::Unstudied;
            }
        }
    }
}

/// Those of one body among bodies in order.
fn shown_among(shown: &[(Id, u32)], body: Id) -> &[(Id, u32)] {
    let start = shown.partition_point(|(one, _)| *one < body);
    shown[start..].chunk_by(|one, next| one.0 == next.0).next().filter(|same| same[0].0 == body).unwrap_or(&[])
}

/// What there is to a response, if its body is known.
fn outcome(call: &Call) -> TapeEntry {
    match (call.status, call.kind) {
        (Status::Unanswered, _) | (_, ResultKind::Absent | ResultKind::Empty | ResultKind::NonText) => {
            TapeEntry::Silent
        }
        (Status::Ok, ResultKind::Text) => TapeEntry::Answer,
        (Status::Ok, ResultKind::Mixed) => TapeEntry::Mixed,
        _ => TapeEntry::Failure,
    }
}
