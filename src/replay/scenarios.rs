//! Which configurations a replay runs: the file, a second one, or a grid of values; with the overrides of the command
//! line.

use toml_edit::Value;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::replay::grid::{axes, grid};
use crate::replay::reach::Reaches;
use crate::settings::formats::{unknown_format, unknown_formats, vocabularies};
use crate::settings::{Settings, SettingsFile, what_if};

/// One configuration with the values that make it a cell of a grid.
pub struct GridCell {
    /// What is varied: values in the order of [`Scenarios::keys`].
    pub values: Vec<String>,
    /// The configuration.
    pub settings: Settings,
}

/// What is changed about the files.
#[derive(Default)]
pub struct ScenarioChanges<'a> {
    /// `KEY=A,B,…`, each.
    pub sweep: &'a [String],
    /// The agent profile of every session.
    pub agent_profile: Option<&'a str>,
    /// The model of every session.
    pub model: Option<&'a str>,
    /// Who runs the pipeline.
    pub reach: Option<&'a str>,
}

/// The configurations of one run.
pub struct Scenarios {
    /// The files, first and second.
    pub files: Vec<SettingsFile>,
    /// Keys that are swept.
    pub keys: Vec<String>,
    /// One cell per configuration.
    pub cells: Vec<GridCell>,
    /// The model of every session, if told.
    pub model: Option<String>,
    /// Who runs the pipeline.
    pub reaches: Reaches,
}

impl Scenarios {
    /// The configurations that are asked for.
    ///
    /// # Errors
    /// If one names a format that does not exist, or the command line a profile or value that does not fit.
    pub fn new(files: Vec<SettingsFile>, asked: &ScenarioChanges<'_>, data: &Data) -> Result<Self> {
        let axes = axes(asked.sweep)?;
        let mut base = Vec::new();
        if let Some(name) = asked.agent_profile {
            base.push((KeyPath::from(["profiles", "agent", "active"]), Value::from(name)));
        }
        let mut cells = Vec::new();
        for file in &files {
            for values in grid(&axes)? {
                let keys = axes.iter().map(|(key, _)| key.clone());
                let changes: Vec<_> = base.iter().cloned().chain(keys.zip(values.iter().cloned())).collect();
                let settings = what_if(file, &changes)?;
                check_sweep(&settings, &changes)?;
                let values = values.iter().map(|value| value.to_string().trim().to_owned()).collect();
                cells.push(GridCell { values, settings });
            }
        }
        let keys = axes.iter().map(|(key, _)| key.to_string()).collect();
        let reaches = Reaches::choose(asked.reach, data)?;
        Ok(Self { files, keys, cells, model: asked.model.map(str::to_owned), reaches })
    }

    /// Whether a grid was asked for.
    pub fn is_sweep(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The vocabularies that some session may be counted in, one bit each.
    pub fn tier(&self) -> u8 {
        let bits = self.cells.iter().map(|cell| vocabularies(&cell.settings, self.model.as_deref()));
        bits.fold(0, |bits, more| bits | more)
    }
}

/// The same for values that only the command line names.
fn check_sweep(settings: &Settings, changes: &[(KeyPath, Value)]) -> Result<()> {
    let unresolved = settings.unresolved();
    let is_changed = |key: &KeyPath| changes.iter().any(|(other, _)| other == key);
    if let Some(unknown) = unresolved.into_iter().find(|unknown| is_changed(&unknown.key)) {
        return Err(Error::usage(unknown.message));
    }
    let unknown = changes.iter().find_map(|(key, value)| Some((key, unknown_formats(key, value).into_iter().next()?)));
    unknown.map_or(Ok(()), |(key, id)| Err(unknown_format(&id, &format!("`{key}`"))))
}
