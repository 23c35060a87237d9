//! Looks at every context as the driver sends it, and writes down what broke.

use crate::model::policy::breakage::Break;
use crate::model::timeline::Timeline;
use crate::policies::drive::Observer;
use crate::policies::view::{Aside, Moment, View};

use super::Detectors;

/// Collects the breaks of a run.
pub struct Watch<'a> {
    detectors: &'a Detectors<'a>,
    /// What broke, request by request.
    pub breaks: Vec<Break>,
}

impl<'a> Watch<'a> {
    /// Nothing seen yet.
    pub fn new(detectors: &'a Detectors<'a>) -> Self {
        Self { detectors, breaks: Vec::new() }
    }
}

impl Observer for Watch<'_> {
    fn begin(&mut self, _: &Timeline, _: u32) {}

    fn sent(&mut self, moment: &Moment<'_>, logged: &View, sent: &View, aside: &Aside) {
        let noticed = aside.noticed.iter().filter_map(|noticed| self.detectors.noticed(moment.request, noticed));
        self.breaks.extend(noticed);
        self.detectors.look(moment.request, logged, sent, &mut self.breaks);
    }
}
