//! The layers. One sees the past only: what was offered before, and what the stack tells it.
//!
//! Those that need no memory stand here: L1 is the format that the configuration gives an endpoint, L2 the cheapest format that
//! suits the shape of the body, L3 the body as it is.

pub mod exact_dedup;
pub mod near_ref;
pub mod range_ref;

use crate::base::body_shape::LayerId;
use crate::replay::offer::{Decision, Offer, SentAs};

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
