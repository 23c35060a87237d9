//! L1: the format that the configuration gives an endpoint.

use crate::base::layer::LayerId;
use crate::replay::cache::Cache;
use crate::replay::layers::Layer;
use crate::replay::offer::{Decision, Offer, What};

/// See the file.
pub struct Template;

impl Layer for Template {
    fn offer(&mut self, offer: &Offer<'_>, _cache: &mut Cache) -> Option<Decision> {
        let encoding = offer.scenario.template(offer.tape, offer.response)?;
        let tokens = offer.session.counting.tokens(&encoding.size);
        let decision = Decision { layer: LayerId::L1, what: What::Encoded(encoding.format), tokens };
        (tokens < offer.baseline).then_some(decision)
    }
}
