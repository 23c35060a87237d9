//! L0 alone, replayed from what is known: as long as a change concerns only the cache (its size, which endpoints take part,
//! from which size on, what makes entries stale), the layers behind it answer as they do now. Their answers are worked out
//! once, and each change costs one pass over a few numbers per response.

use std::ops::Range;

use crate::facts::hints;
use crate::facts::hints::ShownAs;
use crate::replay::effects::Present;
use crate::replay::layers::exact_dedup::wording;
use crate::replay::offer::SentAs;
use crate::replay::reach::WithinReach;
use crate::replay::scenario::Scenario;
use crate::replay::stack::fallbacks;
use crate::replay::tape::{Response, Tape, TapeEntry};

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
            let context = (response.session, response.chain, response.partition);
            let begins = last.replace(context) != Some(context);
            let tokens = |tokens: u64| u32::try_from(tokens).unwrap_or(u32::MAX);
            let shown = if matches!(fallback.what, SentAs::Encoded(_)) { ShownAs::Encoded } else { ShownAs::AsIs };
            let kind = tape.endpoints[response.endpoint as usize].kind;
            let frame = hints::reference_size(shown, wording(now.verbosity, kind));
            let counting = now.session(response).counting;
            steps.push(DedupStep {
                body: response.body,
                endpoint: response.endpoint,
                bytes: response.body_at_hand.raw.bytes,
                baseline: tokens(baseline),
                otherwise: tokens(fallback.tokens),
                hint: tokens(counting.tokens(&frame.plus(&response.handle.size()))),
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
        let mut cache = Recent::new(change.lru_size);
        let first = self.tape.evictions.partition_point(|&(before, _)| (before as usize) < responses.start);
        let mut evictions = self.tape.evictions[first..].iter().peekable();
        for index in responses {
            let step = &self.steps[index];
            while let Some(&&(_, evicted)) = evictions.peek().filter(|(before, _)| *before as usize <= index) {
                cache.drop_if(|response| response == evicted);
                evictions.next();
            }
            if step.begins {
                cache.clear();
            }
            if step.ran && change.options.invalidate {
                self.make_stale(change, index, &mut cache);
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
    fn sent(&self, change: &Scenario, index: u32, cache: &mut Recent) -> u32 {
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
        match cache.touch(step.body) {
            Some(shown_by) if reached && self.steps[shown_by as usize].hint < otherwise => {
                return self.steps[shown_by as usize].hint;
            }
            Some(_) => cache.show_again(index),
            None => cache.insert(step.body, index),
        }
        otherwise
    }

    fn make_stale(&self, change: &Scenario, index: usize, cache: &mut Recent) {
        let response: &Response = &self.tape.responses[index];
        let policy = &change.endpoints[response.endpoint as usize];
        if policy.reached == WithinReach::Misses {
            return;
        }
        if policy.mutates_files && response.path.is_some() {
            cache.drop_if(|shown_by| self.tape.is_read_of(shown_by, response.path));
        }
        if !policy.invalidates.is_empty() {
            let endpoint = |shown_by: u32| self.tape.responses[shown_by as usize].endpoint;
            cache.drop_if(|shown_by| policy.invalidates.contains(&endpoint(shown_by)));
        }
    }
}

/// Bodies with the responses that showed them, oldest first.
struct Recent {
    entries: Vec<(u32, u32)>,
    capacity: usize,
}

impl Recent {
    fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self { entries: Vec::with_capacity(capacity.min(64)), capacity }
    }

    fn clear(&mut self) {
        self.entries.clear();
    }

    /// The response that showed a body; it becomes the most recent one.
    fn touch(&mut self, body: u32) -> Option<u32> {
        let place = self.entries.iter().rposition(|entry| entry.0 == body)?;
        self.entries[place..].rotate_left(1);
        self.entries.last().map(|entry| entry.1)
    }

    /// The most recent body was shown again.
    fn show_again(&mut self, response: u32) {
        if let Some(entry) = self.entries.last_mut() {
            entry.1 = response;
        }
    }

    fn insert(&mut self, body: u32, response: u32) {
        if self.entries.len() >= self.capacity {
            self.entries.remove(0);
        }
        self.entries.push((body, response));
    }

    fn drop_if(&mut self, stale: impl Fn(u32) -> bool) {
        self.entries.retain(|entry| !stale(entry.1));
    }
}
