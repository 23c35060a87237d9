//! The automatic compactions of the log, each placed anew. Where results are shorter, a context reaches the size at which the
//! client compacts later, and grows to the same size again: with compactions kept at their places, contexts behind a shorter
//! result would stay small up to a compaction that would not have come there. And a window that stands made those of the log:
//! replayed on top of them, each would be paid twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::logs::timeline::requests::{Boundary, Timeline, Trigger};
use crate::whatif::compaction::params::{CompactionThresholds, Params, Real};
use crate::whatif::compaction::{Compaction, CompactionTrigger};
use crate::whatif::sim::view::{ContextView, Given, Moment, Stage, StageJournal, StageOutput};

/// Where the client compacted by itself.
#[derive(Default)]
pub struct SeenCompactions {
    /// By chain: the tokens from which on its client compacts, the least of those at which it did.
    triggers: BTreeMap<u32, u64>,
    /// The segments that begin behind such compactions.
    segments: Arc<BTreeSet<u32>>,
}

impl SeenCompactions {
    /// The automatic compactions of a log. What a person asked for happens whatever is set.
    pub fn of(timeline: &Timeline) -> Self {
        let (mut triggers, mut segments) = (BTreeMap::new(), BTreeSet::new());
        for boundary in timeline.boundaries.iter().filter(|boundary| boundary.trigger == Trigger::Auto) {
            // What the client says of it holds results that were not sent yet; it is no less than what was sent.
            let Some(tokens) = boundary.pre_tokens.max(context_before(timeline, boundary)) else { continue };
            triggers.entry(boundary.chain).and_modify(|least: &mut u64| *least = tokens.min(*least)).or_insert(tokens);
            if timeline.chain(boundary.chain).requests.contains(&boundary.request) {
                segments.insert(timeline.request(boundary.request).segment);
            }
        }
        Self { triggers, segments: Arc::new(segments) }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.triggers.is_empty()
    }
}

/// Tokens of the last context that was sent before a compaction.
fn context_before(timeline: &Timeline, boundary: &Boundary) -> Option<u64> {
    let before = timeline.chain(boundary.chain).requests.start..boundary.request;
    before.rev().map(|request| timeline.request(request).context()).find(|&context| context > 0)
}

/// The stage: chains with such compactions are compacted where they reach the size of those, or that of the window if it is
/// smaller (what they would do under a larger one the log does not say); the others by the window.
pub struct Recompacted {
    seen: Arc<SeenCompactions>,
    by_size: Compaction,
    by_window: Option<Compaction>,
    /// Tokens at which the window compacts.
    window_trigger: u64,
    is_by_size: bool,
}

impl Recompacted {
    /// As the client compacts by `params`; `window` are those of a window that is set. `tokens` are the sizes of [`Timeline::blocks`].
    pub fn new(
        seen: Arc<SeenCompactions>,
        params: Params,
        window: Option<Params>,
        thresholds: &CompactionThresholds,
        tokens: &Arc<[u32]>,
    ) -> Self {
        let stage = |params| Compaction::new(params, thresholds.clone(), tokens.clone(), StageJournal::default());
        Self {
            by_size: stage(Params { real: Real::Ignore, ..params }).only(Arc::clone(&seen.segments)),
            seen,
            window_trigger: window.as_ref().map_or(u64::MAX, |window| window.newest_trigger_tokens(thresholds)),
            by_window: window.map(stage),
            is_by_size: false,
        }
    }
}

impl Stage for Recompacted {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        let trigger = self.seen.triggers.get(&chain).map(|&seen| seen.min(self.window_trigger));
        self.is_by_size = trigger.is_some();
        self.by_size.set_trigger(trigger.map_or(CompactionTrigger::Never, CompactionTrigger::Tokens));
        self.by_size.begin(timeline, chain);
        self.by_window.iter_mut().for_each(|stage| stage.begin(timeline, chain));
    }

    fn may_change(&self, timeline: &Timeline, chain: u32, largest: u64) -> bool {
        let by_window = || self.by_window.as_ref().is_some_and(|stage| stage.may_change(timeline, chain, largest));
        self.seen.triggers.contains_key(&chain) || by_window()
    }

    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, out: &mut StageOutput) -> usize {
        match &mut self.by_window {
            _ if self.is_by_size => {
                let kept = self.by_size.apply(moment, given, view, out);
                // The model takes what it took.
                out.window = None;
                kept
            }
            Some(stage) => stage.apply(moment, given, view, out),
            None => {
                view.follow(given.view, given.kept, given.kept);
                given.kept
            }
        }
    }
}
