//! L0: a JSON object that differs from an earlier result of the same endpoint in a few scalars is replaced by those.

use crate::base::body_shape::LayerId;
use crate::facts::hints::{self, ShownAs};
use crate::facts::near_ref::delta;
use crate::replay::layers::exact_dedup::DedupCache;
use crate::replay::layers::{Decision, Offer, SentAs};

/// Counts what it shows: there is a limit per session.
#[derive(Default)]
pub struct NearRef {
    in_session: u32,
}

impl NearRef {
    /// Another session begins.
    pub fn begin_session(&mut self) {
        self.in_session = 0;
    }

    /// Takes the response, or passes it on to the next layer.
    pub fn offer(&mut self, offer: &Offer<'_>, cache: &DedupCache) -> Option<Decision> {
        if self.in_session >= offer.session.near_refs_max {
            return None;
        }
        let later = offer.tape.facts_of(offer.response).near.as_ref()?;
        for entry in cache.recent_first() {
            // The delta speaks of the text as it was, so that is what the reader must have been shown.
            let shown_by = &offer.tape.responses[entry.response as usize];
            if shown_by.endpoint != offer.response.endpoint || entry.shown != ShownAs::AsIs {
                continue;
            }
            let earlier = offer.tape.facts_of(shown_by).near.as_ref();
            let Some(change) = earlier.and_then(|earlier| delta(earlier, later)) else { continue };
            let size = hints::near_size().plus(&shown_by.handle.size()).plus(&change);
            let tokens = offer.session.counting.tokens(&size);
            if tokens < offer.otherwise {
                self.in_session += 1;
                return Some(Decision { layer: LayerId::L0, what: SentAs::NearReference(entry.response), tokens });
            }
        }
        None
    }
}
