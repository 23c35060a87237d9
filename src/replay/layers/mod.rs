//! The layers, and what passes between the stack and them: a response on offer, and what is done with it. A layer sees the
//! past only: what was offered before, and what the stack tells it.
//!
//! Those that need no memory stand here: L1 is the format that the configuration gives an endpoint, L2 the cheapest format that
//! suits the shape of the body, L3 the body unchanged.

pub mod exact_dedup;
pub mod near_ref;
pub mod range_ref;

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
    pub index: u32,
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

/// L1.
pub fn template(offer: &Offer<'_>) -> Option<Decision> {
    let encoding = offer.scenario.template(offer.tape, offer.response)?;
    let tokens = offer.session.counting.tokens(&encoding.size);
    let decision = Decision { layer: LayerId::L1, what: SentAs::Encoded(encoding.format), tokens };
    (tokens < offer.baseline).then_some(decision)
}

/// L2.
pub fn router(offer: &Offer<'_>) -> Option<Decision> {
    let (encoding, tokens) = offer.scenario.route(offer.tape, offer.response)?;
    let decision = Decision { layer: LayerId::L2, what: SentAs::Encoded(encoding.format), tokens };
    (tokens < offer.baseline).then_some(decision)
}

/// L3. Always takes.
pub fn passthrough(offer: &Offer<'_>) -> Decision {
    Decision { layer: LayerId::L3, what: SentAs::AsIs, tokens: offer.baseline }
}
