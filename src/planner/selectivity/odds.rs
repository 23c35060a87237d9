//! Moments as examples, and a learned table as a source of probabilities for the planner.
//!
//! What an answer tells of a candidate before the agent goes on, and the named groups into which that is put.

use serde::{Deserialize, Serialize};

use crate::base::names::Names;
use crate::logs::values::List;
use crate::planner::contexts::Told;
use crate::planner::known_tools::KnownTools;
use crate::planner::opportunities::{Odds, Opportunity, Outcome};
use crate::planner::selectivity::Numbers;
use crate::planner::selectivity::table::{Estimate, Example, Link, Selectivity};

/// What stands behind the symbols of a moment.
#[derive(Clone, Copy)]
pub struct Named<'a> {
    tools: &'a Names,
    arguments: &'a Names,
}

impl<'a> Named<'a> {
    /// The names of a history and its value models.
    pub fn new(told: Told<'a>, known: &'a KnownTools<'_>) -> Self {
        Self { tools: &known.names, arguments: &told.values.names }
    }

    fn link(&self, moment: &Opportunity) -> Link {
        Link {
            from: self.tools.text(moment.from).to_owned(),
            to: self.tools.text(moment.to).to_owned(),
            argument: self.arguments.text(moment.argument).to_owned(),
        }
    }
}

/// What a moment tells before the agent goes on.
pub fn features(moment: &Opportunity) -> Features {
    let has = |flag: u8| moment.flags & flag != 0;
    let list = if has(List::CONTEXT) {
        ListKind::Context
    } else if has(List::FILES) {
        ListKind::Files
    } else {
        ListKind::Lines
    };
    Features { found: moment.found.into(), list, rank: moment.new_rank.into(), same_directory: moment.same_parent }
}

/// How long the planner waits for a call before its prefetch counts as unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The next few calls, which is what every hit is judged by.
    Calls,
    /// More calls.
    MoreCalls,
    /// The next few steps.
    Steps,
}

impl Window {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Calls, Self::MoreCalls, Self::Steps];

    fn outcome(self, moment: &Opportunity) -> Outcome {
        match self {
            Self::Steps => moment.outcomes.steps_near,
            Self::Calls => moment.outcomes.calls_near,
            Self::MoreCalls => moment.outcomes.calls_far,
        }
    }
}

/// The moments that are candidates, as examples judged within a window. What the context has read already is L0's
/// business, a tool that may not be called ahead is nobody's, and of a list only as many values count as are projected.
pub fn examples(moments: &[Opportunity], window: Window, named: &Named<'_>, known: &KnownTools<'_>) -> Vec<Example> {
    let is_candidate = |moment: &&Opportunity| {
        let link = &known.get(moment.from).links[usize::from(moment.link)];
        let is_projected = !moment.already_read && usize::from(moment.new_rank) <= link.arguments_max;
        is_projected && known.get(moment.to).speculatable
    };
    let example = |moment: &Opportunity| Example {
        session: moment.session,
        trigger: moment.trigger.into(),
        link: named.link(moment),
        features: features(moment),
        exact: window.outcome(moment) == Outcome::Exact,
        target: window.outcome(moment) >= Outcome::Target,
    };
    moments.iter().filter(is_candidate).map(example).collect()
}

/// Probabilities for the planner: that of the cell, or none at all below the threshold.
pub struct Selective<'a> {
    /// What was learned.
    pub learned: &'a Selectivity,
    /// How.
    pub numbers: &'a Numbers,
    /// The names behind moments.
    pub named: Named<'a>,
}

impl Selective<'_> {
    /// What is known of a moment.
    pub fn estimate(&self, moment: &Opportunity) -> Option<Estimate> {
        self.learned.table.estimate(&self.named.link(moment), &features(moment), self.numbers)
    }
}

impl Odds for Selective<'_> {
    fn of(&self, moment: &Opportunity) -> Option<f64> {
        let admitted = |estimate: &Estimate| self.learned.threshold.is_some_and(|least| estimate.score() >= least);
        let estimate = self.estimate(moment).filter(admitted);
        Some(estimate.map_or(0.0, |estimate| estimate.counts.exact().value()))
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
    /// The kind of list.
    pub list: ListKind,
    /// Place among the values that the context has not read yet, from 1.
    pub rank: u32,
    /// Whether it lies in a directory of the files that were last worked on.
    pub same_directory: bool,
}

/// What can be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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
    /// The word in files and reports.
    pub fn key(self) -> &'static str {
        self.into()
    }

    /// The number of the group in which a candidate falls, from 0.
    pub fn group(self, features: &Features, numbers: &Numbers) -> u8 {
        match self {
            Self::Found => place(features.found, &numbers.found_ends),
            Self::Rank => place(features.rank, &numbers.rank_ends),
            Self::List => features.list as u8,
            Self::Directory => features.same_directory.into(),
        }
    }

    /// The names of its groups, by number.
    pub fn groups(self, numbers: &Numbers) -> Vec<String> {
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
pub struct Cell(pub Vec<u8>);

impl Cell {
    /// The finest cell of a candidate.
    pub fn finest(features: &Features, numbers: &Numbers) -> Self {
        Self(numbers.features.iter().map(|feature| feature.group(features, numbers)).collect())
    }

    /// This cell and the coarser ones that it lies in, the finest first.
    pub fn outwards(&self) -> impl Iterator<Item = Self> {
        (0..=self.0.len()).rev().map(|depth| Self(self.0[..depth].to_vec()))
    }

    /// The features that it tells apart, with the names of their groups.
    pub fn named(&self, numbers: &Numbers) -> Vec<(Feature, String)> {
        let groups = numbers.features.iter().zip(&self.0);
        let name = |(feature, group): (&Feature, &u8)| {
            (*feature, feature.groups(numbers).get(usize::from(*group)).cloned().unwrap_or_default())
        };
        groups.map(name).collect()
    }

    /// "found 1, list files"
    pub fn words(&self, numbers: &Numbers) -> String {
        let words: Vec<String> =
            self.named(numbers).iter().map(|(feature, group)| format!("{} {group}", feature.key())).collect();
        if words.is_empty() { "any".to_owned() } else { words.join(", ") }
    }
}
