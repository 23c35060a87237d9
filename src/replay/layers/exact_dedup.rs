//! L0: a body that the context was shown before is answered by a reference.

use crate::base::body_shape::LayerId;
use crate::facts::hints;
use crate::facts::hints::Wording;
use crate::replay::cache::DedupCache;
use crate::replay::offer::{Decision, Offer, SentAs};
use crate::replay::tape::ToolKind;
use crate::settings::Verbosity;

/// Takes the response, or passes it on to the next layer.
pub fn offer(offer: &Offer<'_>, cache: &mut DedupCache) -> Option<Decision> {
    let entry = cache.touch(offer.response.body)?;
    let shown_by = &offer.tape.responses[entry.response as usize];
    let kind = offer.tape.endpoints[shown_by.endpoint as usize].kind;
    let frame = hints::reference_size(entry.shown, wording(offer.scenario.verbosity, kind));
    let tokens = offer.session.hint_counting.tokens(&frame.plus(&shown_by.handle.size()));
    let decision = Decision { layer: LayerId::L0, what: SentAs::Reference(entry.response), tokens };
    (tokens < offer.otherwise).then_some(decision)
}

/// How a reference is worded.
pub fn wording(verbosity: Verbosity, earlier: ToolKind) -> Wording {
    match verbosity {
        Verbosity::Terse => Wording::Terse,
        Verbosity::Standard => Wording::Standard,
        Verbosity::Verbose => Wording::Verbose(earlier.into_str()),
    }
}
