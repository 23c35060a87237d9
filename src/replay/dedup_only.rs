//! L0 alone, replayed from what is known: what the layers behind it answer is worked out once (and again for the endpoints that
//! a change concerns), and each replay is one pass over a few numbers per response. Any number of changes are replayed in the
//! same pass, each only where what it has in its cache is not what is there now: a change of one endpoint is mostly forgotten a
//! few responses later.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::base::id::Id;
use crate::base::numbers::saturated;
use crate::facts::hints::{self, ShownAs};
use crate::replay::effects::Present;
use crate::replay::layers::SentAs;
use crate::replay::layers::exact_dedup::{DedupCache, ShownBody, wording};
use crate::replay::reach::WithinReach;
use crate::replay::scenario::{EndpointPolicy, Scenario};
use crate::replay::stack::fallback;
use crate::replay::tape::{Tape, TapeEntry, ToolKind};

/// One response.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct DedupStep {
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
    /// Pseudonym of the file named, or none.
    path: Id,
    /// Shows what a tool read from that file.
    reads: bool,
    /// Has text, so that it counts.
    counts: bool,
    /// May be answered by a hint and referred to.
    refers: bool,
    /// The tool was started: what it changes is stale.
    ran: bool,
    /// A preview of a result that stands in a file.
    preview: bool,
}

/// What L0 does with a response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Handling {
    Passed,
    LeftBehind,
    LookedUp,
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
            path: response.path,
            reads: kind == ToolKind::FileRead,
            counts: !matches!(response.outcome, TapeEntry::Silent | TapeEntry::Unstudied),
            refers: response.outcome == TapeEntry::Answer,
            ran: response.ran,
            preview: response.body_at_hand.preview,
        }
    }

    fn handling(&self, policy: &EndpointPolicy) -> Handling {
        if !self.refers || self.bytes < policy.body_bytes_min.max(1) {
            Handling::Passed
        } else if !policy.dedup || policy.reached == WithinReach::Misses {
            Handling::LeftBehind
        } else {
            Handling::LookedUp
        }
    }

    fn makes_stale(&self, policy: &EndpointPolicy) -> bool {
        self.ran && policy.makes_stale() && policy.reached != WithinReach::Misses
    }

    /// Whether it leaves the cache alone.
    fn is_idle(&self, policy: &EndpointPolicy) -> bool {
        self.handling(policy) != Handling::LookedUp && !self.makes_stale(policy)
    }

    /// Whether two policies of its endpoint treat it alike.
    fn is_alike(&self, now: &EndpointPolicy, change: &EndpointPolicy) -> bool {
        self.handling(now) == self.handling(change)
            && now.reached == change.reached
            && (!self.ran || now.makes_stale_like(change))
    }
}

/// The responses of a tape, as far as L0 asks about them.
pub(super) struct DedupOnlyReplay<'t> {
    tape: &'t Tape,
    /// Mostly a change leaves them all as they are.
    steps: Arc<Vec<DedupStep>>,
    weights: &'t [f64],
}

/// The responses for which the layers behind L0 answer otherwise under a change, by index.
type ChangedSteps = Vec<(usize, DedupStep)>;

impl<'t> DedupOnlyReplay<'t> {
    /// Works out what the layers behind L0 answer. Of recorded responses nothing is known that a near-reference or a reference
    /// to lines would need, so that L0 can do nothing but refer to equal bodies. `weights` are the responses that each one
    /// stands for, empty if each stands for itself.
    pub fn new(tape: &'t Tape, scenario: &Scenario, weights: &'t [f64]) -> Self {
        let steps = (0..tape.responses.len()).map(|index| DedupStep::new(tape, scenario, index)).collect();
        Self { tape, steps: Arc::new(steps), weights }
    }

    /// The same responses under a change.
    pub fn under(&self, now: &Scenario, change: &Scenario) -> Self {
        let mut steps = Arc::clone(&self.steps);
        for (index, step) in self.changed(now, change) {
            Arc::make_mut(&mut steps)[index] = step;
        }
        Self { steps, ..*self }
    }

    fn changed(&self, now: &Scenario, change: &Scenario) -> ChangedSteps {
        if now.answers_like(change) {
            return Vec::new();
        }
        let is_alike = now.is_alike_behind(change);
        let policies = now.endpoints.iter().zip(&change.endpoints);
        let alike: Vec<bool> = policies.map(|(now, change)| is_alike && now.is_alike_behind(change)).collect();
        let steps = self.steps.iter().enumerate().filter(|(_, step)| !alike[step.endpoint as usize]);
        let changed = steps.map(|(index, step)| (index, step, DedupStep::new(self.tape, change, index)));
        changed.filter(|(_, step, then)| *step != then).map(|(index, _, then)| (index, then)).collect()
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

    /// How much more each change saves in one context. `changed` are by change the responses for which the layers behind L0
    /// answer otherwise.
    pub fn more(&self, changes: &Changes<'_>, changed: &[ChangedSteps], context: Range<usize>) -> Vec<f64> {
        let mut more = vec![0.0; changes.all.len()];
        self.replay(changes, changed, context, |index, sent, apart| {
            for &(change, then) in apart.iter().filter(|(_, then)| *then != sent) {
                more[change] += self.weight(index) * (f64::from(sent) - f64::from(then));
            }
        });
        more
    }

    fn weight(&self, index: usize) -> f64 {
        self.weights.get(index).copied().unwrap_or(1.0)
    }

    /// Replays one context, and tells for each response what is sent now, and by the changes whose cache is another one.
    fn replay<'c>(
        &'c self,
        changes: &Changes<'c>,
        changed: &[ChangedSteps],
        context: Range<usize>,
        mut each: impl FnMut(usize, u32, &[(usize, u32)]),
    ) {
        let steps = &self.steps[context.clone()];
        let mut now = ContextReplay::new(changes.now, steps);
        let under = |(change, changed): (&&'c Scenario, &ChangedSteps)| {
            let mut then = ContextReplay::new(change, steps);
            let place = |index: usize| changed.partition_point(|(at, _)| *at < index);
            for (index, step) in &changed[place(context.start)..place(context.end)] {
                then.steps.to_mut()[index - context.start] = *step;
            }
            then
        };
        let mut then: Vec<ContextReplay<'_>> = changes.all.iter().zip(changed).map(under).collect();
        let has_own = |then: &ContextReplay<'_>| matches!(then.steps, Cow::Owned(_));
        let is_apart = |then: &ContextReplay<'_>| has_own(then) || then.scenario.lru_size != changes.now.lru_size;
        let always: Vec<bool> = then.iter().map(is_apart).collect();
        let mut apart: Vec<(usize, u32)> = (0..always.len()).filter(|&at| always[at]).map(|at| (at, 0)).collect();
        let first = self.tape.evictions.partition_point(|&(before, _)| (before as usize) < context.start);
        let mut evictions = self.tape.evictions[first..].iter().peekable();
        for (at, step) in steps.iter().enumerate() {
            let index = context.start + at;
            while let Some(&(_, evicted)) = evictions.next_if(|(before, _)| *before as usize <= index) {
                let is_evicted = |entry: &ShownBody| entry.response as usize + context.start == evicted as usize;
                now.cache.drop_if(is_evicted);
                apart.iter().for_each(|&(change, _)| then[change].cache.drop_if(is_evicted));
            }
            let mut is_idle = step.is_idle(now.policy(step));
            for &change in &changes.unlike[step.endpoint as usize] {
                if step.is_alike(now.policy(step), then[change].policy(step)) {
                    continue;
                }
                is_idle = false;
                if !apart.iter().any(|(known, _)| *known == change) {
                    then[change].cache.become_like(&now.cache);
                    apart.push((change, 0));
                }
            }
            let sent = now.pass(at);
            for (change, tokens) in &mut apart {
                let then = &mut then[*change];
                *tokens = if is_idle && !has_own(then) { sent } else { then.pass(at) };
            }
            each(index, sent, &apart);
            if !is_idle {
                apart.retain(|&(change, _)| always[change] || !then[change].cache.holds_like(&now.cache));
            }
        }
    }
}

/// One configuration on its way through a context. Its cache knows responses by their place there.
struct ContextReplay<'c> {
    scenario: &'c Scenario,
    steps: Cow<'c, [DedupStep]>,
    cache: DedupCache,
}

impl<'c> ContextReplay<'c> {
    fn new(scenario: &'c Scenario, steps: &'c [DedupStep]) -> Self {
        Self { scenario, steps: Cow::Borrowed(steps), cache: DedupCache::new(scenario.lru_size) }
    }

    fn policy(&self, step: &DedupStep) -> &'c EndpointPolicy {
        &self.scenario.endpoints[step.endpoint as usize]
    }

    /// Tokens that are sent for a response.
    fn pass(&mut self, at: usize) -> u32 {
        #[cfg(test)]
        crate::base::id::work::step();
        let step = &self.steps[at];
        let policy = self.policy(step);
        if step.makes_stale(policy) && self.scenario.options.invalidate {
            self.drop_stale(at, policy);
        }
        let step = &self.steps[at];
        match step.handling(policy) {
            Handling::Passed => return step.baseline,
            Handling::LeftBehind => return step.otherwise,
            Handling::LookedUp => {}
        }
        let hint = self.cache.touch(step.body).map(|entry| self.steps[entry.response as usize].hint);
        let reached = policy.reached == WithinReach::Changes && (self.scenario.previews || !step.preview);
        if let Some(hint) = hint.filter(|hint| reached && *hint < step.otherwise) {
            return hint;
        }
        // In which form it is shown is in the tokens of its hint.
        self.cache.insert(ShownBody { body: step.body, response: at as u32, shown: ShownAs::AsIs });
        step.otherwise
    }

    /// Drops what a call makes stale, before anything else is decided about it.
    fn drop_stale(&mut self, at: usize, policy: &EndpointPolicy) {
        let Self { scenario, steps, cache } = self;
        let path = steps[at].path;
        let shown = |entry: &ShownBody| &steps[entry.response as usize];
        if policy.mutates_files && path.is_some() {
            cache.drop_if(|entry| shown(entry).reads && shown(entry).path == path);
        }
        if !policy.invalidates.is_empty() {
            cache.drop_if(|entry| scenario.endpoints[shown(entry).endpoint as usize].is_stale_behind(policy));
        }
    }
}

/// Changes of a configuration that are replayed together.
pub(super) struct Changes<'c> {
    pub now: &'c Scenario,
    all: &'c [&'c Scenario],
    /// By endpoint, those that may treat its answers otherwise.
    unlike: Vec<Vec<usize>>,
    /// By endpoint, whether one of them may make a difference to its answers.
    concerned: Vec<bool>,
}

impl<'c> Changes<'c> {
    /// Holds changes against what holds now.
    pub fn new(now: &'c Scenario, all: &'c [&'c Scenario]) -> Self {
        let unlike_at = |endpoint: usize| {
            let is_unlike = |change: &usize| all[*change].endpoints[endpoint].is_unlike(&now.endpoints[endpoint]);
            (0..all.len()).filter(is_unlike).collect()
        };
        let unlike: Vec<Vec<usize>> = (0..now.endpoints.len()).map(unlike_at).collect();
        let is_wide = |change: &&Scenario| change.lru_size != now.lru_size || !now.is_alike_behind(change);
        let is_wide = all.iter().any(is_wide);
        let is_concerned = |endpoint: usize| {
            let answers_like =
                |change: &&Scenario| now.endpoints[endpoint].is_alike_behind(&change.endpoints[endpoint]);
            is_wide || !unlike[endpoint].is_empty() || !all.iter().all(answers_like)
        };
        let concerned = (0..unlike.len()).map(is_concerned).collect();
        Self { now, all, unlike, concerned }
    }

    /// Whether one of them may make a difference where these endpoints are called.
    pub fn concern(&self, endpoints: &[u32]) -> bool {
        endpoints.iter().any(|&endpoint| self.concerned[endpoint as usize])
    }

    /// By change, the responses of a tape for which the layers behind L0 answer otherwise.
    pub fn changed(&self, replay: &DedupOnlyReplay<'_>) -> Vec<ChangedSteps> {
        self.all.iter().map(|change| replay.changed(self.now, change)).collect()
    }
}
