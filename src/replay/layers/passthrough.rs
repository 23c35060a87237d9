//! L3: the body as it is. Always takes.

use crate::base::layer::LayerId;
use crate::replay::offer::{Decision, Offer, What};

/// See the file.
pub struct Passthrough;

impl Passthrough {
    /// Sends the body.
    pub fn take(&mut self, offer: &Offer<'_>) -> Decision {
        Decision { layer: LayerId::L3, what: What::AsIs, tokens: offer.baseline }
    }
}
