//! L2: the cheapest format that suits the shape of the body.

use crate::base::layer::LayerId;
use crate::replay::cache::Cache;
use crate::replay::layers::Layer;
use crate::replay::offer::{Decision, Offer, What};

/// See the file.
pub struct Router;

impl Layer for Router {
    fn offer(&mut self, offer: &Offer<'_>, _cache: &mut Cache) -> Option<Decision> {
        let (encoding, tokens) = offer.scenario.route(offer.tape, offer.response)?;
        let decision = Decision { layer: LayerId::L2, what: What::Encoded(encoding.format), tokens };
        (tokens < offer.baseline).then_some(decision)
    }
}
