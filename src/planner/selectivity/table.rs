//! Candidates counted by link and cell, and the probability that the counts give a new one.

use std::collections::BTreeMap;
use std::ops::SubAssign;

use crate::base::stats::Share;
use crate::base::sums::adds_up;
use crate::planner::selectivity::SelectivityThresholds;
use crate::planner::selectivity::features::{FeatureCell, Features};

/// A follow-up with its argument.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FollowUpLink {
    /// Live name of the tool that answered.
    pub from: String,
    /// Live name of the tool that may be called next.
    pub to: String,
    /// The argument that the answer supplies.
    pub argument: String,
}

/// A candidate and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedCandidate {
    /// Its session; sessions are what is resampled.
    pub session: u32,
    /// The answer that it came from, distinct over all sessions.
    pub trigger: u64,
    /// The link.
    pub link: FollowUpLink,
    /// What was known.
    pub features: Features,
    /// Whether exactly this call was made soon after.
    pub exact: bool,
    /// Whether a call of the tool with this argument was made, whatever its other arguments.
    pub target: bool,
}

/// How often candidates of a cell were called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CandidateCounts {
    /// Candidates.
    pub trials: u64,
    /// Of these, exactly called.
    pub exact: u64,
    /// Of these, called with this argument.
    pub target: u64,
}

impl CandidateCounts {
    fn of(example: &JudgedCandidate) -> Self {
        Self { trials: 1, exact: example.exact.into(), target: (example.target || example.exact).into() }
    }

    /// Exact calls of trials.
    pub fn exact(&self) -> Share {
        Share::new(self.exact, self.trials)
    }

    /// Calls with the argument, of trials.
    pub fn target(&self) -> Share {
        Share::new(self.target, self.trials)
    }
}

adds_up!(CandidateCounts: trials, exact, target);

impl SubAssign for CandidateCounts {
    fn sub_assign(&mut self, other: Self) {
        self.trials -= other.trials;
        self.exact -= other.exact;
        self.target -= other.target;
    }
}

/// What the counts say of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The cell that was believed.
    pub cell: FeatureCell,
    /// What was counted in it.
    pub counts: CandidateCounts,
}

impl Estimate {
    /// What is held against the threshold: the share of exact calls.
    pub fn score(&self) -> f64 {
        self.counts.exact().value()
    }
}

/// Counts by link and cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkCounts {
    /// Of every link all cells that had a candidate, the one of all candidates included.
    pub links: BTreeMap<FollowUpLink, BTreeMap<FeatureCell, CandidateCounts>>,
}

impl LinkCounts {
    /// Counts examples; their order does not matter.
    pub fn learn<'e>(examples: impl IntoIterator<Item = &'e JudgedCandidate>, numbers: &SelectivityThresholds) -> Self {
        let mut table = Self::default();
        for example in examples {
            let cells = table.links.entry(example.link.clone()).or_default();
            for cell in FeatureCell::finest(&example.features, numbers).outwards() {
                *cells.entry(cell).or_default() += CandidateCounts::of(example);
            }
        }
        table
    }

    /// The counts of the finest cell of a candidate that can be believed; none if not even the link has enough trials.
    pub fn estimate(
        &self,
        link: &FollowUpLink,
        features: &Features,
        numbers: &SelectivityThresholds,
    ) -> Option<Estimate> {
        self.estimate_beside(&Self::default(), link, features, numbers)
    }

    /// The same from what this table counted beside another one: how a session is judged that was counted itself.
    pub fn estimate_beside(
        &self,
        other: &Self,
        link: &FollowUpLink,
        features: &Features,
        numbers: &SelectivityThresholds,
    ) -> Option<Estimate> {
        let (cells, others) = (self.links.get(link)?, other.links.get(link));
        FeatureCell::finest(features, numbers).outwards().find_map(|cell| {
            let mut counts = *cells.get(&cell)?;
            counts -= others.and_then(|cells| cells.get(&cell)).copied().unwrap_or_default();
            (counts.trials >= numbers.trials_min).then_some(Estimate { cell, counts })
        })
    }

    /// Cells that can be believed, by link, coarse before fine.
    pub fn believed(
        &self,
        numbers: &SelectivityThresholds,
    ) -> impl Iterator<Item = (&FollowUpLink, &FeatureCell, &CandidateCounts)> {
        let cells =
            self.links.iter().flat_map(|(link, cells)| cells.iter().map(move |(cell, counts)| (link, cell, counts)));
        cells.filter(|(_, _, counts)| counts.trials >= numbers.trials_min)
    }
}
