//! L0 alone, replayed from what is known: what the layers behind it answer is worked out once (and again for the endpoints that
//! a change concerns), and each replay is one pass over a few numbers per response. Any number of changes are replayed in the
//! same pass, each only where what it has in its cache is not what is there now: a change of one endpoint is mostly forgotten a
//! few responses later.

use std::ops::Range;

use crate::base::numbers::saturated;
use crate::facts::hints::{self, ShownAs};
use crate::replay::effects::Present;
use crate::replay::layers::SentAs;
use crate::replay::layers::exact_dedup::{DedupCache, ShownBody, wording};
use crate::replay::reach::WithinReach;
use crate::replay::scenario::Scenario;
use crate::replay::stack::fallback;
use crate::replay::tape::{Tape, TapeEntry};

/// One response.
#[derive(Clone, Copy, PartialEq)]
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
    /// Has text, so that it counts.
    counts: bool,
    /// May be answered by a hint and referred to.
    refers: bool,
    /// The tool was started: what it changes is stale.
    ran: bool,
    /// A preview of a result that stands in a file.
    preview: bool,
}

impl DedupStep {
    fn new(tape: &Tape, scenario: &Scenario, index: usize) -> Self {
        let response = &tape.responses[index];
        let (baseline, fallback) = fallback(tape, scenario, index);
        let shown = if matches!(fallback.what, SentAs::Encoded(_)) { ShownAs::Encoded } else { ShownAs::AsIs };
        let kind = tape.endpoints[response.endpoint as usize].kind;
        let frame = hints::reference_size(shown, wording(scenario.verbosity, kind));
        let counting = scenario.session(response).hint_counting;
        Self {
            body: response.body,
            endpoint: response.endpoint,
            bytes: response.body_at_hand.raw.bytes,
            baseline: saturated(baseline),
            otherwise: saturated(fallback.tokens),
            hint: saturated(counting.tokens(&frame.plus(&response.handle.size()))),
            counts: !matches!(response.outcome, TapeEntry::Silent | TapeEntry::Unstudied),
            refers: response.outcome == TapeEntry::Answer,
            ran: response.ran,
            preview: response.body_at_hand.preview,
        }
    }
}

/// The responses of a tape, as far as L0 asks about them.
pub(super) struct DedupOnlyReplay<'t> {
    tape: &'t Tape,
    steps: Vec<DedupStep>,
    weights: &'t [f64],
}

impl<'t> DedupOnlyReplay<'t> {
    /// Works out what the layers behind L0 answer. Of recorded responses nothing is known that a near-reference or a reference
    /// to lines would need, so that L0 can do nothing but refer to equal bodies. `weights` are the responses that each one
    /// stands for, empty if each stands for itself.
    pub fn new(tape: &'t Tape, scenario: &Scenario, weights: &'t [f64]) -> Self {
        let steps = (0..tape.responses.len()).map(|index| DedupStep::new(tape, scenario, index)).collect();
        Self { tape, steps, weights }
    }

    /// The same responses under a change.
    fn under(&self, now: &Scenario, change: &Scenario) -> Self {
        let Self { tape, weights, .. } = *self;
        let is_alike = now.is_alike_behind(change);
        let policies = now.endpoints.iter().zip(&change.endpoints);
        let alike: Vec<bool> = policies.map(|(now, change)| is_alike && now.is_alike_behind(change)).collect();
        let step = |(index, step): (usize, &DedupStep)| {
            if alike[step.endpoint as usize] { *step } else { DedupStep::new(tape, change, index) }
        };
        Self { tape, steps: self.steps.iter().enumerate().map(step).collect(), weights }
    }

    /// What is saved in one context where nothing is changed.
    pub fn present(&self, unchanged: &Changes<'_>, context: Range<usize>) -> Present {
        let mut present = Present::default();
        self.replay(unchanged, &[], context, |index, sent, _| {
            let step = &self.steps[index];
            if step.counts {
                present.baseline += self.weight(index) * f64::from(step.baseline);
                present.saved += self.weight(index) * (f64::from(step.baseline) - f64::from(sent));
            }
        });
        present
    }

    /// How much more each change saves in one context. `own` are the replays of those for which the layers behind L0 answer
    /// otherwise.
    pub fn more(&self, changes: &Changes<'_>, own: &[Option<Self>], context: Range<usize>) -> Vec<f64> {
        let mut more = vec![0.0; changes.all.len()];
        self.replay(changes, own, context, |index, sent, apart| {
            for &(change, then) in apart {
                more[change] += self.weight(index) * (f64::from(sent) - f64::from(then));
            }
        });
        more
    }

    fn weight(&self, index: usize) -> f64 {
        self.weights.get(index).copied().unwrap_or(1.0)
    }

    /// Replays one context, and tells for each response what is sent now, and by the changes whose cache is another one.
    fn replay(
        &self,
        changes: &Changes<'_>,
        own: &[Option<Self>],
        context: Range<usize>,
        mut each: impl FnMut(usize, u32, &[(usize, u32)]),
    ) {
        let differs = |own: &Self| own.steps[context.clone()] != self.steps[context.clone()];
        let is_apart = |change: usize| {
            changes.all[change].lru_size != changes.now.lru_size || own[change].as_ref().is_some_and(differs)
        };
        let always: Vec<bool> = (0..changes.all.len()).map(is_apart).collect();
        let replay_of = |change: usize| own[change].as_ref().filter(|_| always[change]).unwrap_or(self);
        let mut cache = DedupCache::new(changes.now.lru_size);
        let mut caches: Vec<DedupCache> = changes.all.iter().map(|change| DedupCache::new(change.lru_size)).collect();
        let mut apart: Vec<(usize, u32)> = (0..always.len()).filter(|&at| always[at]).map(|at| (at, 0)).collect();
        let first = self.tape.evictions.partition_point(|&(before, _)| (before as usize) < context.start);
        let mut evictions = self.tape.evictions[first..].iter().peekable();
        for index in context {
            while let Some(&(_, evicted)) = evictions.next_if(|(before, _)| *before as usize <= index) {
                cache.drop_if(|entry| entry.response == evicted);
                apart.iter().for_each(|&(change, _)| caches[change].drop_if(|entry| entry.response == evicted));
            }
            for &change in &changes.unlike[self.steps[index].endpoint as usize] {
                if !apart.iter().any(|(known, _)| *known == change) {
                    caches[change].become_like(&cache);
                    apart.push((change, 0));
                }
            }
            let sent = self.pass(changes.now, index, &mut cache);
            for (change, then) in &mut apart {
                *then = replay_of(*change).pass(changes.all[*change], index, &mut caches[*change]);
            }
            each(index, sent, &apart);
            apart.retain(|&(change, _)| always[change] || !caches[change].holds_like(&cache));
        }
    }

    /// Tokens that are sent for a response.
    fn pass(&self, scenario: &Scenario, index: usize, cache: &mut DedupCache) -> u32 {
        #[cfg(test)]
        crate::base::id::work::step();
        let step = &self.steps[index];
        let policy = &scenario.endpoints[step.endpoint as usize];
        if step.ran && policy.makes_stale() && scenario.options.invalidate {
            scenario.drop_stale(self.tape, &self.tape.responses[index], cache);
        }
        if !step.refers || step.bytes < policy.body_bytes_min.max(1) {
            return step.baseline;
        }
        let reached = policy.reached == WithinReach::Changes && (scenario.previews || !step.preview);
        let otherwise = step.otherwise;
        if !policy.dedup || policy.reached == WithinReach::Misses {
            return otherwise;
        }
        let hint = cache.touch(step.body).map(|entry| self.steps[entry.response as usize].hint);
        if let Some(hint) = hint.filter(|hint| reached && *hint < otherwise) {
            return hint;
        }
        // In which form it is shown is in the tokens of its hint.
        cache.insert(ShownBody { body: step.body, response: index as u32, shown: ShownAs::AsIs });
        otherwise
    }
}

/// Changes of a configuration that are replayed together.
pub(super) struct Changes<'c> {
    /// What holds now.
    pub now: &'c Scenario,
    all: &'c [&'c Scenario],
    /// By endpoint, those that treat its answers otherwise.
    unlike: Vec<Vec<usize>>,
    /// Whether one of them says something for all endpoints.
    is_wide: bool,
}

impl<'c> Changes<'c> {
    /// Holds changes against what holds now.
    pub fn new(now: &'c Scenario, all: &'c [&'c Scenario]) -> Self {
        let unlike_at = |endpoint: usize| {
            let is_unlike = |change: &usize| all[*change].endpoints[endpoint].is_unlike(&now.endpoints[endpoint]);
            (0..all.len()).filter(is_unlike).collect()
        };
        let is_wide = |change: &&Scenario| change.lru_size != now.lru_size || !now.answers_like(change);
        Self { now, all, unlike: (0..now.endpoints.len()).map(unlike_at).collect(), is_wide: all.iter().any(is_wide) }
    }

    /// Whether one of them may make a difference where these endpoints are called.
    pub fn concern(&self, endpoints: &[u32]) -> bool {
        self.is_wide || endpoints.iter().any(|&endpoint| !self.unlike[endpoint as usize].is_empty())
    }

    /// The replays of a tape under those for which the layers behind L0 may answer otherwise.
    pub fn own<'t>(&self, replay: &DedupOnlyReplay<'t>) -> Vec<Option<DedupOnlyReplay<'t>>> {
        let own = |change: &&Scenario| (!self.now.answers_like(change)).then(|| replay.under(self.now, change));
        self.all.iter().map(own).collect()
    }
}
