//! Which configurations a replay runs: the file, a second one, or a grid of values (`--sweep KEY=A,B,…`: keys, the values that
//! they take, and all combinations); with the overrides of the command line.

use toml_edit::Value;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::replay::reach::Reaches;
use crate::settings::formats::{unknown_format, unknown_formats, vocabularies};
use crate::settings::resolve::AUTO;
use crate::settings::{Settings, SettingsFile, what_if};

/// One configuration with the values that make it a cell of a grid.
pub struct GridCell {
    /// What is varied: values in the order of [`Scenarios::keys`].
    pub values: Vec<String>,
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
    pub keys: Vec<String>,
    /// One cell per configuration.
    pub cells: Vec<GridCell>,
    /// The model of every session, if told.
    pub model: Option<String>,
    /// Who runs the pipeline.
    pub reaches: Reaches,
}

impl Scenarios {
    /// The configurations that are asked for. An error if one names a format that does not exist, or the command line a
    /// profile or value that does not fit.
    pub fn new(files: Vec<SettingsFile>, asked: &ScenarioChanges<'_>, data: &Data) -> Result<Self> {
        let axes = axes(asked.sweep)?;
        let mut base = Vec::new();
        if let Some(name) = asked.agent_profile {
            base.push((KeyPath::from(["profiles", "agent", "active"]), Value::from(name)));
        }
        if asked.model.is_some() {
            // One that the file names would hold whatever model answered.
            base.push((KeyPath::from(["profiles", "llm", "active"]), Value::from(AUTO)));
        }
        if let Some((key, _)) = base.iter().find(|(key, _)| axes.iter().any(|(axis, _)| axis == key)) {
            return Err(Error::usage(format!("--sweep {key}: another option sets this key")).hint("leave one out"));
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

/// Cells of a grid that are run at most.
const CELLS_MAX: usize = 10_000;

/// A key that is swept, and the values that it takes.
pub type Axis = (KeyPath, Vec<Value>);

/// Reads `--sweep`. An error if one is not `KEY=a,b,c`, or a key comes twice.
pub fn axes(texts: &[String]) -> Result<Vec<Axis>> {
    let axes: Vec<Axis> = texts.iter().map(|text| axis(text)).collect::<Result<_>>()?;
    for (place, (key, _)) in axes.iter().enumerate() {
        if axes[..place].iter().any(|(other, _)| other == key) {
            return Err(
                Error::usage(format!("--sweep {key}: given twice")).hint("give all its values at once: KEY=A,B")
            );
        }
    }
    Ok(axes)
}

/// `KEY=a,b,c`: a key and the values that it takes.
fn axis(text: &str) -> Result<Axis> {
    let odd =
        || Error::usage(format!("--sweep {text}: not KEY=A,B,…")).hint("for example --sweep dedup.lru_size=3,5,10");
    let (key, values) = text.split_once('=').ok_or_else(odd)?;
    let key: KeyPath = key.trim().parse()?;
    // What is no TOML value is a bare word.
    let value = |part: &str| part.trim().parse().unwrap_or_else(|_| Value::from(part.trim()));
    let values: Vec<Value> = split_outside_brackets(values).into_iter().map(value).collect();
    if values.iter().any(|value| value.as_str() == Some("")) {
        return Err(odd());
    }
    Ok((key, values))
}

/// Splits at commas that stand in no list and no string.
pub fn split_outside_brackets(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut start) = (0_usize, false, 0);
    let mut parts = Vec::new();
    for (place, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if depth == 0 && !quoted => {
                parts.push(&text[start..place]);
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// All combinations, the last axis changing fastest. An error if there are too many of them.
pub fn grid(axes: &[Axis]) -> Result<Vec<Vec<Value>>> {
    let count: usize = axes.iter().map(|(_, values)| values.len()).product();
    if count > CELLS_MAX {
        return Err(Error::usage(format!("the grid has {count} cells; {CELLS_MAX} are run at most")));
    }
    Ok(combinations(axes.iter().map(|(_, values)| values.as_slice())))
}

/// All combinations of a value of each axis, the last axis changing fastest.
pub fn combinations<'a, T: Clone + 'a>(axes: impl Iterator<Item = &'a [T]>) -> Vec<Vec<T>> {
    axes.fold(vec![Vec::new()], |cells, axis| {
        let with = |cell: &Vec<T>, value: &T| [cell.as_slice(), std::slice::from_ref(value)].concat();
        cells.iter().flat_map(|cell| axis.iter().map(move |value| with(cell, value))).collect()
    })
}
