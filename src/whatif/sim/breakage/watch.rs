//! Looks at every context as the driver sends it, and writes down what broke.

use std::collections::BTreeSet;

use crate::logs::timeline::requests::Timeline;
use crate::whatif::sim::breakage::Detectors;
use crate::whatif::sim::breakage::detect::{dangling, orphans};
use crate::whatif::sim::breakage::rows::{Break, BreakClass};
use crate::whatif::sim::simulator::Observer;
use crate::whatif::sim::view::{ContextView, Noticed, RequestMoment, StageOutput};

/// Collects the breaks of a run.
pub struct BreakWatch<'a> {
    detectors: &'a Detectors<'a>,
    /// What broke, request by request.
    pub breaks: Vec<Break>,
    /// Whether halves of calls are looked for that lost the other half.
    with_pairs: bool,
    /// Calls of the chain that are known to have lost one.
    orphans: BTreeSet<u32>,
    /// Calls of the chain whose hints are known to dangle: each breaks once.
    dangling: BTreeSet<u32>,
}

impl<'a> BreakWatch<'a> {
    /// Nothing seen yet.
    pub fn new(detectors: &'a Detectors<'a>) -> Self {
        Self { detectors, breaks: Vec::new(), with_pairs: false, orphans: BTreeSet::new(), dangling: BTreeSet::new() }
    }

    /// The same, looking for split pairs as well: that takes a look at every item of every context.
    #[must_use]
    pub fn with_pairs(self) -> Self {
        Self { with_pairs: true, ..self }
    }

    /// What a stage says itself is not found again.
    fn split_pairs(
        &mut self,
        moment: &RequestMoment<'_>,
        logged: &ContextView,
        sent: &ContextView,
        output: &StageOutput,
    ) {
        let orphan = BreakClass::OrphanPair.into_str();
        self.orphans.extend(output.noticed.iter().filter(|one| one.class == orphan).map(|one| one.call));
        if !self.with_pairs || sent.items.len() >= logged.items.len() {
            return;
        }
        for call in orphans(moment.timeline, logged, sent) {
            if self.orphans.insert(call) {
                self.breaks.extend(self.detectors.noticed(moment.request, &Noticed { class: orphan, call }));
            }
        }
    }
}

impl Observer for BreakWatch<'_> {
    fn begin(&mut self, _: &Timeline, _: u32) {
        self.dangling.clear();
        self.orphans.clear();
    }

    fn sent(&mut self, moment: &RequestMoment<'_>, logged: &ContextView, sent: &ContextView, output: &StageOutput) {
        let noticed = output.noticed.iter().filter_map(|noticed| self.detectors.noticed(moment.request, noticed));
        self.breaks.extend(noticed);
        let lost = dangling(moment.timeline, moment.request, &output.hints, sent).into_iter();
        self.breaks.extend(lost.filter(|lost| self.dangling.insert(lost.call)));
        self.split_pairs(moment, logged, sent, output);
        self.detectors.look(moment.request, logged, sent, &mut self.breaks);
    }
}
