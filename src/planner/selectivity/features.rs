//! What an answer tells of a candidate before the agent goes on, and the named groups into which that is put.

use serde::{Deserialize, Serialize};

use crate::planner::selectivity::SelectivityThresholds;

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
    /// The kind of list.
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
