//! Candidates counted by link and cell, and the probability that the counts give a new one.
//!
//! The table as part of a configuration: `[enrichment.selectivity]`, counts and nothing else, so that every probability
//! in use can be worked out by hand. Programs that do not know the key pass over it.

use std::collections::BTreeMap;
use std::ops::SubAssign;

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::base::stats::Share;
use crate::base::sums::adds_up;
use crate::planner::selectivity::Numbers;
use crate::planner::selectivity::odds::{Cell, Feature, Features};

/// A follow-up with its argument.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// Live name of the tool that answered.
    pub from: String,
    /// Live name of the tool that may be called next.
    pub to: String,
    /// The argument that the answer supplies.
    pub argument: String,
}

/// A candidate and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Its session; sessions are what is resampled.
    pub session: u32,
    /// The answer that it came from, distinct over all sessions.
    pub trigger: u64,
    /// The link.
    pub link: Link,
    /// What was known.
    pub features: Features,
    /// Whether exactly this call was made soon after.
    pub exact: bool,
    /// Whether a call of the tool with this argument was made, whatever its other arguments.
    pub target: bool,
}

/// How often candidates of a cell were called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Candidates.
    pub trials: u64,
    /// Of these, exactly called.
    pub exact: u64,
    /// Of these, called with this argument.
    pub target: u64,
}

impl Counts {
    fn of(example: &Example) -> Self {
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

adds_up!(Counts: trials, exact, target);

impl SubAssign for Counts {
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
    pub cell: Cell,
    /// What was counted in it.
    pub counts: Counts,
}

impl Estimate {
    /// What is held against the threshold: the share of exact calls.
    pub fn score(&self) -> f64 {
        self.counts.exact().value()
    }
}

/// Counts by link and cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Of every link all cells that had a candidate, the one of all candidates included.
    pub links: BTreeMap<Link, BTreeMap<Cell, Counts>>,
}

impl Table {
    /// Counts examples; their order does not matter.
    pub fn learn<'e>(examples: impl IntoIterator<Item = &'e Example>, numbers: &Numbers) -> Self {
        let mut table = Self::default();
        for example in examples {
            let cells = table.links.entry(example.link.clone()).or_default();
            for cell in Cell::finest(&example.features, numbers).outwards() {
                *cells.entry(cell).or_default() += Counts::of(example);
            }
        }
        table
    }

    /// The counts of the finest cell of a candidate that can be believed; none if not even the link has enough trials.
    pub fn estimate(&self, link: &Link, features: &Features, numbers: &Numbers) -> Option<Estimate> {
        self.estimate_beside(&Self::default(), link, features, numbers)
    }

    /// The same from what this table counted beside another one: how a session is judged that was counted itself.
    pub fn estimate_beside(
        &self,
        other: &Self,
        link: &Link,
        features: &Features,
        numbers: &Numbers,
    ) -> Option<Estimate> {
        let (cells, others) = (self.links.get(link)?, other.links.get(link));
        Cell::finest(features, numbers).outwards().find_map(|cell| {
            let mut counts = *cells.get(&cell)?;
            counts -= others.and_then(|cells| cells.get(&cell)).copied().unwrap_or_default();
            (counts.trials >= numbers.trials_min).then_some(Estimate { cell, counts })
        })
    }

    /// Cells that can be believed, by link, coarse before fine.
    pub fn believed(&self, numbers: &Numbers) -> impl Iterator<Item = (&Link, &Cell, &Counts)> {
        let cells =
            self.links.iter().flat_map(|(link, cells)| cells.iter().map(move |(cell, counts)| (link, cell, counts)));
        cells.filter(|(_, _, counts)| counts.trials >= numbers.trials_min)
    }
}

/// A table with the threshold that was chosen for it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selectivity {
    /// From which score on a candidate is fetched; none if none is.
    pub threshold: Option<f64>,
    /// The counts.
    pub table: Table,
}

#[derive(Serialize, Deserialize)]
struct File {
    enrichment: Enrichment,
}

#[derive(Serialize, Deserialize)]
struct Enrichment {
    selectivity: Section,
}

#[derive(Serialize, Deserialize, Default)]
struct Section {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    #[serde(default)]
    cells: Vec<Row>,
}

/// One cell. A feature that is not there is not told apart.
#[derive(Serialize, Deserialize)]
struct Row {
    after: String,
    tool: String,
    argument: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    found: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    list: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rank: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    trials: u64,
    exact: u64,
    target: u64,
}

impl Row {
    fn of(link: &Link, cell: &Cell, counts: &Counts, numbers: &Numbers) -> Self {
        let Link { from, to, argument } = link.clone();
        let Counts { trials, exact, target } = *counts;
        let named = cell.named(numbers);
        let group =
            |wanted: Feature| named.iter().find(|(feature, _)| *feature == wanted).map(|(_, group)| group.clone());
        Self {
            after: from,
            tool: to,
            argument,
            found: group(Feature::Found),
            list: group(Feature::List),
            rank: group(Feature::Rank),
            directory: group(Feature::Directory),
            trials,
            exact,
            target,
        }
    }

    fn group(&self, feature: Feature) -> Option<&String> {
        match feature {
            Feature::Found => self.found.as_ref(),
            Feature::List => self.list.as_ref(),
            Feature::Rank => self.rank.as_ref(),
            Feature::Directory => self.directory.as_ref(),
        }
    }

    /// The cell, or what is wrong with the row.
    fn cell(&self, numbers: &Numbers) -> std::result::Result<Cell, String> {
        let mut cell = Cell::default();
        for (depth, feature) in numbers.features.iter().enumerate() {
            let Some(named) = self.group(*feature) else { continue };
            if cell.0.len() < depth {
                return Err(format!("`{}` stands without what is told apart before it", feature.key()));
            }
            let group = feature.groups(numbers).iter().position(|group| group == named);
            let group = group.ok_or_else(|| format!("`{}` has no group \"{named}\"", feature.key()))?;
            cell.0.push(group.try_into().unwrap_or(u8::MAX));
        }
        if self.exact > self.target || self.target > self.trials {
            return Err("counts more calls than candidates".to_owned());
        }
        Ok(cell)
    }
}

impl Selectivity {
    /// As TOML to be put into a configuration: cells that can be believed, each with its counts.
    pub fn to_toml(&self, numbers: &Numbers) -> String {
        let cells = self.table.believed(numbers).map(|(link, cell, counts)| Row::of(link, cell, counts, numbers));
        let section = Section { threshold: self.threshold, cells: cells.collect() };
        let file = File { enrichment: Enrichment { selectivity: section } };
        let text = toml_edit::ser::to_string_pretty(&file).expect("names and numbers print as TOML");
        format!(
            "# How often a candidate of each cell was exactly what was called next, counted by `devboy planner`.\n\
             # Fetched ahead is what falls in a cell with exact / trials of at least the threshold; the finest cell counts.\n\
             {text}"
        )
    }

    /// Reads a configuration; without the key nothing is known and nothing fetched.
    ///
    /// # Errors
    /// If the text is no TOML, or a row cannot be meant; `place` is how errors cite the file.
    pub fn from_toml(text: &str, place: &str, numbers: &Numbers) -> Result<Self> {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Outer {
            enrichment: Inner,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Inner {
            selectivity: Section,
        }
        let fault = |cause: String| {
            Error::failed(format!("{place}: {cause}")).hint("`devboy planner --write-selectivity FILE` writes it anew")
        };
        let outer: Outer = toml_edit::de::from_str(text).map_err(|cause| fault(cause.to_string()))?;
        let Section { threshold, cells } = outer.enrichment.selectivity;
        let mut table = Table::default();
        for (position, row) in cells.into_iter().enumerate() {
            let cell =
                row.cell(numbers).map_err(|why| fault(format!("`enrichment.selectivity.cells` {position}: {why}")))?;
            let Row { after: from, tool: to, argument, trials, exact, target, .. } = row;
            let known = table.links.entry(Link { from, to, argument }).or_default();
            known.insert(cell, Counts { trials, exact, target });
        }
        Ok(Self { threshold, table })
    }
}
