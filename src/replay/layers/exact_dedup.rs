//! L0: a body that the context was shown before is replaced by a reference. What it was shown and may be referred to are
//! the most recently used bodies, oldest first.

use crate::base::body_shape::LayerId;
use crate::facts::hints::{self, ShownAs, Wording};
use crate::replay::layers::{Decision, Offer, SentAs};
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

/// A body that was shown in full.
#[derive(Clone, Copy, Debug)]
pub struct ShownBody {
    /// Names the body.
    pub body: u32,
    /// Index of the response that showed it.
    pub response: u32,
    /// How it was shown.
    pub shown: ShownAs,
}

/// The cache of one context and partition.
#[derive(Debug)]
pub struct DedupCache {
    entries: Vec<ShownBody>,
    capacity: usize,
    /// The body that was last looked up in vain: it need not be looked for again when it is added.
    missed: Option<u32>,
}

impl DedupCache {
    /// An empty cache for `capacity` bodies, at least one.
    pub fn new(capacity: usize) -> Self {
        Self { entries: Vec::new(), capacity: capacity.max(1), missed: None }
    }

    /// Forgets everything: another context, or another partition of this one.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Holds what another one holds.
    pub fn become_like(&mut self, other: &Self) {
        self.entries.clone_from(&other.entries);
    }

    /// Whether it holds what another one holds, if each response is shown in one form in both.
    pub fn holds_like(&self, other: &Self) -> bool {
        let mut pairs = self.entries.iter().zip(&other.entries);
        self.entries.len() == other.entries.len() && pairs.all(|(own, other)| own.response == other.response)
    }

    /// Looks a body up. A hit becomes the most recent entry and keeps pointing at the response that showed the body.
    pub fn touch(&mut self, body: u32) -> Option<ShownBody> {
        let place = self.entries.iter().rposition(|entry| entry.body == body);
        self.missed = if place.is_none() { Some(body) } else { None };
        self.entries[place?..].rotate_left(1);
        self.entries.last().copied()
    }

    /// Adds a body that was shown; the least recent one makes room.
    pub fn insert(&mut self, entry: ShownBody) {
        let is_new = self.missed.take() == Some(entry.body);
        let known = || self.entries.iter().rposition(|known| known.body == entry.body);
        if let Some(place) = if is_new { None } else { known() } {
            self.entries.remove(place);
        } else if self.entries.len() >= self.capacity {
            self.entries.remove(0);
        }
        self.entries.push(entry);
    }

    /// Entries, most recent first.
    pub fn recent_first(&self) -> impl Iterator<Item = &ShownBody> {
        self.entries.iter().rev()
    }

    /// Drops the entries for which `stale` holds.
    pub fn drop_if(&mut self, stale: impl Fn(&ShownBody) -> bool) {
        self.entries.retain(|entry| !stale(entry));
    }
}
