//! The layers; those that need no memory share a file. A layer sees the past only: what was offered before, and what the stack tells it.

pub mod exact_dedup;
pub mod memoryless;
pub mod near_ref;
pub mod range_ref;

use crate::replay::cache::DedupCache;
use crate::replay::offer::{ContextEvent, Decision, Offer};

/// One way to send a response in fewer tokens.
pub trait Layer {
    /// Takes the response, or passes it on to the next layer.
    fn offer(&mut self, offer: &Offer<'_>, cache: &mut DedupCache) -> Option<Decision>;

    /// Something happened that the layer may have to know of.
    fn observe(&mut self, _event: &ContextEvent<'_>) {}
}
