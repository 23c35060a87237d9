//! Recorded responses laid out once, for any number of configurations.

use super::{EffectsBaseline, HistoryPiece, RecordedLog, ReplayOptions, Scenario, Tape};
use crate::base::tokenizer::Counting;
use crate::replay::reach::Reach;
use crate::settings::Settings;

/// Responses laid out for a replay.
pub struct Laid {
    /// The responses.
    pieces: Vec<HistoryPiece>,
    /// What configurations of them are resolved for: their endpoints and sessions.
    skeleton: Tape,
}

impl Laid {
    /// Lays responses out.
    pub fn new(recorded: &RecordedLog<'_>) -> Self {
        Self { pieces: recorded.pieces(), skeleton: recorded.skeleton() }
    }

    /// A configuration for these responses. The recorder counted their tokens; those of hints are counted as it says.
    pub fn scenario(&self, settings: &Settings) -> Scenario {
        let options = ReplayOptions { extended: false, invalidate: true, counting: Some(Counting::Exact(0)) };
        Scenario::new(settings, &self.skeleton, options)
    }

    /// The same, where only some of the responses can be changed.
    pub fn within(&self, scenario: &Scenario, reach: &Reach) -> Scenario {
        scenario.within(reach, &self.skeleton)
    }

    /// The responses under a configuration.
    pub fn ground(&self, now: Scenario) -> EffectsBaseline<'_> {
        EffectsBaseline::new(&self.pieces, now)
    }
}
