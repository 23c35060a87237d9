//! Who could change the result of a tool before the model reads it, and which results (`rules/reach.toml`).

use serde::Deserialize;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::names::means;

/// A place on the way from tools to the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Reach {
    /// Short name for options and programs.
    pub id: String,
    /// Name in reports.
    pub name: String,
    /// Tools whose answers it may change: names, or beginnings of names with a `*` behind.
    pub changes: Vec<String>,
    /// Tools that it may not change all the same.
    #[serde(default)]
    pub except: Vec<String>,
    /// Whether it sees the answers that it may not change.
    pub sees_all: bool,
    /// Whether it may change what the client cut down to a preview.
    pub previews: bool,
}

/// What a place can do with the answers of a tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WithinReach {
    #[default]
    Changes,
    /// See that they were shown.
    Sees,
    /// Nothing: it does not know of them.
    Misses,
}

impl Reach {
    /// What it can do with the answers of a tool.
    pub fn of(&self, tool: &str) -> WithinReach {
        let names = |patterns: &[String]| patterns.iter().any(|pattern| means(pattern, tool));
        match names(&self.changes) && !names(&self.except) {
            true => WithinReach::Changes,
            false if self.sees_all => WithinReach::Sees,
            false => WithinReach::Misses,
        }
    }
}

/// Who could change what a model reads: by how much, the last one most.
pub fn reaches(data: &Data) -> Result<Vec<Reach>> {
    let file = data.file("reach.toml")?;
    let ReachRules { reach, .. } = file.parsed()?;
    if reach.is_empty() {
        return Err(Error::failed(format!("{} names no reach", file.place)));
    }
    Ok(reach)
}

/// Percent of the bill that a place has to save to be worth building something for it.
pub fn worth_percent_min(data: &Data) -> Result<f64> {
    data.parsed::<ReachRules>("reach.toml").map(|file| file.worth_percent_min)
}

#[derive(Deserialize)]
struct ReachRules {
    worth_percent_min: f64,
    reach: Vec<Reach>,
}

/// Who could run the pipeline, and who does here.
#[derive(Debug)]
pub struct Reaches {
    /// All of them, the widest last.
    pub all: Vec<Reach>,
    chosen: usize,
}

impl Reaches {
    /// The one with this id, or the widest. An error if the data file does not fit, or there is none with this id.
    pub fn choose(id: Option<&str>, data: &Data) -> Result<Self> {
        let all = reaches(data)?;
        let chosen = id.map_or(Some(all.len() - 1), |id| all.iter().position(|reach| reach.id == id));
        let Some(chosen) = chosen else {
            let ids = all.iter().map(|reach| reach.id.as_str()).collect::<Vec<_>>().join(", ");
            return Err(Error::usage(format!("there is no reach \"{}\"", id.unwrap_or_default()))
                .hint(format!("reaches: {ids}")));
        };
        Ok(Self { all, chosen })
    }

    /// The place of [`Self::chosen`] among all.
    pub fn place(&self) -> usize {
        self.chosen
    }

    /// Who runs the pipeline.
    pub fn chosen(&self) -> &Reach {
        &self.all[self.chosen]
    }
}
