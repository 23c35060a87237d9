//! L0 alone, replayed from what is known: as long as a change concerns only the cache (its size, which endpoints take part,
//! from which size on, what makes entries stale), the layers behind it work as they do now. Their outcomes are worked out
//! once, and each change costs one pass over a few numbers per response.

use std::ops::Range;

use crate::base::numbers::saturated;
use crate::facts::hints::{self, ShownAs};
use crate::replay::effects::Present;
use crate::replay::layers::SentAs;
use crate::replay::layers::exact_dedup::{DedupCache, ShownBody, wording};
use crate::replay::reach::WithinReach;
use crate::replay::scenario::Scenario;
use crate::replay::stack::fallbacks;
use crate::replay::tape::{Tape, TapeEntry};

/// One response.
#[derive(Clone, Copy)]
struct DedupStep {
    /// Names the body.
    body: u32,
    endpoint: u32,
    bytes: u32,
    /// Tokens as it is.
    baseline: u32,
    /// Tokens that the layers behind L0 send.
    otherwise: u32,
    /// Tokens of a hint that refers to this response.
    hint: u32,
    /// Begins another context or partition.
    begins: bool,
    /// Has text, so that it counts.
    counts: bool,
    /// May be answered by a hint and referred to.
    refers: bool,
    /// The tool was started: what it changes is stale.
    ran: bool,
    /// A preview of a result that stands in a file.
    preview: bool,
}

/// The responses of a tape, as far as L0 asks about them.
pub(super) struct DedupOnlyReplay<'t> {
    tape: &'t Tape,
    steps: Vec<DedupStep>,
    weights: &'t [f64],
}

impl<'t> DedupOnlyReplay<'t> {
    /// Whether L0 can do nothing but refer to equal bodies, so that it can be replayed alone.
    pub fn suits(tape: &Tape, now: &Scenario) -> bool {
        let no_near_refs = || tape.facts.iter().all(|facts| facts.near.is_none());
        let switched_off = now.profiles.iter().all(|profile| profile.near_refs_max == 0);
        !now.options.extended && (switched_off || no_near_refs())
    }

    /// Whether a replay made under `now` can tell what a change does.
    pub fn serves(now: &Scenario, change: &Scenario) -> bool {
        let templates = || now.endpoints.iter().zip(&change.endpoints).all(|(a, b)| a.template == b.template);
        now.encodes_like(change) && now.profiles == change.profiles && templates()
    }

    /// Works out what the layers behind L0 answer now. `weights` are the responses that each one stands for, empty if
    /// each stands for itself.
    pub fn new(tape: &'t Tape, now: &Scenario, weights: &'t [f64]) -> Self {
        let mut last = None;
        let mut steps = Vec::with_capacity(tape.responses.len());
        fallbacks(tape, now, &mut |response, baseline, fallback| {
            let begins = last.replace(response.context()) != Some(response.context());
            let shown = if matches!(fallback.what, SentAs::Encoded(_)) { ShownAs::Encoded } else { ShownAs::AsIs };
            let kind = tape.endpoints[response.endpoint as usize].kind;
            let frame = hints::reference_size(shown, wording(now.verbosity, kind));
            let counting = now.session(response).hint_counting;
            steps.push(DedupStep {
                body: response.body,
                endpoint: response.endpoint,
                bytes: response.body_at_hand.raw.bytes,
                baseline: saturated(baseline),
                otherwise: saturated(fallback.tokens),
                hint: saturated(counting.tokens(&frame.plus(&response.handle.size()))),
                begins,
                counts: !matches!(response.outcome, TapeEntry::Silent | TapeEntry::Unstudied),
                refers: response.outcome == TapeEntry::Answer,
                ran: response.ran,
                preview: response.body_at_hand.preview,
            });
        });
        Self { tape, steps, weights }
    }

    /// Replays whole sessions under a change that it [`serves`](Self::serves).
    pub fn replay(&self, change: &Scenario, responses: Range<usize>) -> Present {
        let mut sums = Present::default();
        let mut cache = DedupCache::new(change.lru_size);
        let first = self.tape.evictions.partition_point(|&(before, _)| (before as usize) < responses.start);
        let mut evictions = self.tape.evictions[first..].iter().peekable();
        for index in responses {
            let step = &self.steps[index];
            while let Some(&&(_, evicted)) = evictions.peek().filter(|(before, _)| *before as usize <= index) {
                cache.drop_if(|entry| entry.response == evicted);
                evictions.next();
            }
            if step.begins {
                cache.clear();
            }
            let makes_stale = change.endpoints[step.endpoint as usize].makes_stale();
            if step.ran && makes_stale && change.options.invalidate {
                change.drop_stale(self.tape, &self.tape.responses[index], &mut cache);
            }
            if !step.counts {
                continue;
            }
            let saved = f64::from(step.baseline) - f64::from(self.sent(change, index as u32, &mut cache));
            let weight = self.weights.get(index).copied().unwrap_or(1.0);
            sums.baseline += weight * f64::from(step.baseline);
            sums.saved += weight * saved;
        }
        sums
    }

    /// Tokens that are sent for a response.
    fn sent(&self, change: &Scenario, index: u32, cache: &mut DedupCache) -> u32 {
        let step = &self.steps[index as usize];
        let policy = &change.endpoints[step.endpoint as usize];
        if !step.refers || step.bytes < policy.body_bytes_min.max(1) {
            return step.baseline;
        }
        let reached = policy.reached == WithinReach::Changes && (change.previews || !step.preview);
        let otherwise = step.otherwise;
        if !policy.dedup || policy.reached == WithinReach::Misses {
            return otherwise;
        }
        let hint = cache.touch(step.body).map(|entry| self.steps[entry.response as usize].hint);
        if let Some(hint) = hint.filter(|hint| reached && *hint < otherwise) {
            return hint;
        }
        // In which form it is shown is in the tokens of its hint.
        cache.insert(ShownBody { body: step.body, response: index, shown: ShownAs::AsIs });
        otherwise
    }
}
