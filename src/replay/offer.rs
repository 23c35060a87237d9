//! What passes between the stack and its layers: a response on offer, and what is done with it.

use crate::base::body_shape::LayerId;
use crate::replay::scenario::{EndpointPolicy, Scenario, SessionPolicy};
use crate::replay::tape::{Response, Tape};

/// What was sent in place of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The layer that decided.
    pub layer: LayerId,
    /// What exactly it did: a hint, or a format.
    pub what: SentAs,
    /// Tokens sent.
    pub tokens: u64,
}

/// What a layer sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SentAs {
    /// A reference to the response with this index.
    Reference(u32),
    /// A near-reference to the response with this index.
    NearReference(u32),
    /// References for lines that were shown, the others as they are.
    RangeReference,
    /// The body in the format with this number.
    Encoded(u8),
    /// The body.
    AsIs,
}

/// One response on offer.
pub struct Offer<'t> {
    /// Its index.
    pub index: u32,
    /// The response.
    pub response: &'t Response,
    /// What holds for its endpoint.
    pub endpoint: &'t EndpointPolicy,
    /// What holds for its session.
    pub session: &'t SessionPolicy,
    /// The configuration.
    pub scenario: &'t Scenario,
    /// The whole tape, of which a layer looks at the past only.
    pub tape: &'t Tape,
    /// Tokens of the body as it is.
    pub baseline: u64,
    /// Tokens of the cheapest way in which a later layer would send it.
    pub otherwise: u64,
}
