//! Looks at every context as the driver sends it, and writes down what broke.

use std::collections::BTreeSet;

use crate::model::policy::breakage::Break;
use crate::model::timeline::Timeline;
use crate::policies::drive::Observer;
use crate::policies::view::{Aside, Moment, View};

use super::Detectors;
use super::dangling::dangling;

/// Collects the breaks of a run.
pub struct Watch<'a> {
    detectors: &'a Detectors<'a>,
    /// What broke, request by request.
    pub breaks: Vec<Break>,
    /// Calls of the chain whose hints are known to dangle: each breaks once.
    dangling: BTreeSet<u32>,
}

impl<'a> Watch<'a> {
    /// Nothing seen yet.
    pub fn new(detectors: &'a Detectors<'a>) -> Self {
        Self { detectors, breaks: Vec::new(), dangling: BTreeSet::new() }
    }
}

impl Observer for Watch<'_> {
    fn begin(&mut self, _: &Timeline, _: u32) {
        self.dangling.clear();
    }

    fn sent(&mut self, moment: &Moment<'_>, logged: &View, sent: &View, aside: &Aside) {
        let noticed = aside.noticed.iter().filter_map(|noticed| self.detectors.noticed(moment.request, noticed));
        self.breaks.extend(noticed);
        let lost = dangling(moment.timeline, moment.request, &aside.hints, sent).into_iter();
        self.breaks.extend(lost.filter(|lost| self.dangling.insert(lost.call)));
        self.detectors.look(moment.request, logged, sent, &mut self.breaks);
    }
}
