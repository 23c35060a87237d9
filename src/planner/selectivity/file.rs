//! The table as part of a configuration: `[enrichment.selectivity]`, counts and nothing else, so that every probability
//! in use can be worked out by hand. Programs that do not know the key pass over it.

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::base::toml;
use crate::planner::selectivity::SelectivityThresholds;
use crate::planner::selectivity::table::{CandidateCounts, Feature, FeatureCell, FollowUpLink, LinkCounts};

/// A table with the threshold that was chosen for it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selectivity {
    /// From which score on a candidate is fetched; none if none is.
    pub threshold: Option<f64>,
    pub table: LinkCounts,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default, rename = "part")]
struct Outer {
    enrichment: Inner,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default, rename = "part")]
struct Inner {
    selectivity: Section,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename = "part")]
struct Section {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    #[serde(default)]
    cells: Vec<Row>,
}

/// One cell. A feature that is not there is not told apart.
#[derive(Serialize, Deserialize)]
#[serde(rename = "part")]
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
    fn of(link: &FollowUpLink, cell: &FeatureCell, counts: &CandidateCounts, numbers: &SelectivityThresholds) -> Self {
        let FollowUpLink { from, to, argument } = link.clone();
        let CandidateCounts { trials, exact, target } = *counts;
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
    fn cell(&self, numbers: &SelectivityThresholds) -> std::result::Result<FeatureCell, String> {
        let mut cell = FeatureCell::default();
        for (depth, feature) in numbers.features.iter().enumerate() {
            let Some(named) = self.group(*feature) else { continue };
            if cell.0.len() < depth {
                return Err(format!("`{}` stands without what is told apart before it", feature.into_str()));
            }
            let group = feature.groups(numbers).iter().position(|group| group == named);
            let group = group.ok_or_else(|| format!("`{}` has no group \"{named}\"", feature.into_str()))?;
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
    pub fn to_toml(&self, numbers: &SelectivityThresholds) -> String {
        let cells = self.table.believed(numbers).map(|(link, cell, counts)| Row::of(link, cell, counts, numbers));
        let section = Section { threshold: self.threshold, cells: cells.collect() };
        let file = Outer { enrichment: Inner { selectivity: section } };
        let text = toml_edit::ser::to_string_pretty(&file).expect("names and numbers print as TOML");
        format!(
            "# How often a candidate of each cell was exactly what was called next, counted by `devboy planner`.\n\
             # Fetched ahead is what falls in a cell with exact / trials of at least the threshold; the finest cell counts.\n\
             {text}"
        )
    }

    /// Reads a configuration; without the key nothing is known and nothing fetched. An error if the text is no TOML, or
    /// a row cannot be meant; `place` is how errors cite the file.
    pub fn from_toml(text: &str, place: &str, numbers: &SelectivityThresholds) -> Result<Self> {
        let hinted = |message| Error::failed(message).hint("`devboy planner --write-selectivity FILE` writes it anew");
        let fault = |cause: String| hinted(format!("{place}: {cause}"));
        let outer: Outer = toml::parsed(text).map_err(|fault| hinted(fault.at(place)))?;
        let Section { threshold, cells } = outer.enrichment.selectivity;
        let mut table = LinkCounts::default();
        for (position, row) in cells.into_iter().enumerate() {
            let cell =
                row.cell(numbers).map_err(|why| fault(format!("`enrichment.selectivity.cells` {position}: {why}")))?;
            let Row { after: from, tool: to, argument, trials, exact, target, .. } = row;
            let known = table.links.entry(FollowUpLink { from, to, argument }).or_default();
            known.insert(cell, CandidateCounts { trials, exact, target });
        }
        Ok(Self { threshold, table })
    }
}
