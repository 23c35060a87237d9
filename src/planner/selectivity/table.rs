//! Candidates counted by link and cell, and the probability that the counts give a new one.
//!
//! They are counted by what a result tells of a candidate before the agent goes on, and the named groups into which that is put.

use std::collections::BTreeMap;
use std::ops::SubAssign;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::stats::Share;
use crate::base::sums::adds_up;
use crate::planner::selectivity::SelectivityThresholds;

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
    pub link: Arc<FollowUpLink>,
    pub features: Features,
    /// Whether exactly this call was made soon after.
    pub exact: bool,
    /// Whether a call of the tool with this argument was made, whatever its other arguments.
    pub target: bool,
}

/// How often candidates of a cell were called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CandidateCounts {
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
    pub cell: FeatureCell,
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
            let cells = table.links.entry(FollowUpLink::clone(&example.link)).or_default();
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

/// In what kind of list a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListKind {
    /// Every value is a line of its own.
    Files,
    /// Values stand in lines of text, or in JSON.
    Lines,
    /// Lines around the matches are shown too.
    Context,
}

/// What is known of a candidate when the answer is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// Different values in the list, those beyond any cap included; at least 1.
    pub found: u32,
    pub list: ListKind,
    /// Place among the values that the context has not read yet, from 1.
    pub rank: u32,
    /// Whether it lies in a directory of the files that were last worked on.
    pub same_directory: bool,
}

/// What can be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// How many values the list has.
    Found,
    /// In what kind of list the value stands.
    List,
    /// Which of the values it is.
    Rank,
    /// Whether it lies where was just worked.
    Directory,
}

impl Feature {
    /// The number of the group in which a candidate falls, from 0.
    pub fn group(self, features: &Features, numbers: &SelectivityThresholds) -> u8 {
        match self {
            Self::Found => place(features.found, &numbers.found_ends),
            Self::Rank => place(features.rank, &numbers.rank_ends),
            Self::List => features.list as u8,
            Self::Directory => features.same_directory.into(),
        }
    }

    /// The names of its groups, by number.
    pub fn groups(self, numbers: &SelectivityThresholds) -> Vec<String> {
        match self {
            Self::Found => ranges(&numbers.found_ends),
            Self::Rank => ranges(&numbers.rank_ends),
            Self::List => ["files", "lines", "context"].map(str::to_owned).to_vec(),
            Self::Directory => ["other", "same"].map(str::to_owned).to_vec(),
        }
    }
}

/// Which group a number falls in, by the upper ends of the groups.
fn place(number: u32, ends: &[u32]) -> u8 {
    ends.iter().filter(|end| number > **end).count().try_into().unwrap_or(u8::MAX)
}

/// "1", "2-3", "4+": the groups that begin at 1, by their upper ends.
fn ranges(ends: &[u32]) -> Vec<String> {
    let starts = std::iter::once(1).chain(ends.iter().map(|end| end.saturating_add(1)));
    let named = starts.zip(ends.iter().map(Some).chain([None])).map(|(start, end)| match end {
        None => format!("{start}+"),
        Some(end) if *end <= start => start.to_string(),
        Some(end) => format!("{start}-{end}"),
    });
    named.collect()
}

/// A cell: the groups of the first so many features, in their order. The empty one is every candidate of a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FeatureCell(pub Vec<u8>);

impl FeatureCell {
    /// The finest cell of a candidate.
    pub fn finest(features: &Features, numbers: &SelectivityThresholds) -> Self {
        Self(numbers.features.iter().map(|feature| feature.group(features, numbers)).collect())
    }

    /// This cell and the coarser ones that it lies in, the finest first.
    pub fn outwards(&self) -> impl Iterator<Item = Self> {
        (0..=self.0.len()).rev().map(|depth| Self(self.0[..depth].to_vec()))
    }

    /// The features that it tells apart, with the names of their groups.
    pub fn named(&self, numbers: &SelectivityThresholds) -> Vec<(Feature, String)> {
        let groups = numbers.features.iter().zip(&self.0);
        let name = |(feature, group): (&Feature, &u8)| {
            (*feature, feature.groups(numbers).get(usize::from(*group)).cloned().unwrap_or_default())
        };
        groups.map(name).collect()
    }

    /// "found 1, list files"
    pub fn words(&self, numbers: &SelectivityThresholds) -> String {
        let words: Vec<String> =
            self.named(numbers).iter().map(|(feature, group)| format!("{} {group}", feature.into_str())).collect();
        if words.is_empty() { "any".to_owned() } else { words.join(", ") }
    }
}
