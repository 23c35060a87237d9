//! Which configurations a replay runs: the file, a second one, or a grid of values; with the overrides of the command
//! line.

use toml_edit::Value;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::base::visible::Shown as _;
use crate::commands::config::{config_path, is_format, load_config, unknown_format, vocabularies, warn_unknown};
use crate::commands::replay::Args;
use crate::replay::reach::Reach;
use crate::settings::{Settings, SettingsFile, what_if};
use crate::shell::arguments::OutputArgs;
use crate::shell::context::Context;

/// Cells of a grid that are run at most.
const CELLS_MAX: usize = 10_000;

/// One configuration with the values that make it a cell of a grid.
pub struct Cell {
    /// What is varied: values in the order of [`Scenarios::keys`].
    pub values: Vec<String>,
    /// The configuration.
    pub settings: Settings,
}

/// The configurations of one run.
pub struct Scenarios {
    /// The files, first and second.
    pub files: Vec<SettingsFile>,
    /// Keys that are swept.
    pub keys: Vec<String>,
    /// One cell per configuration.
    pub cells: Vec<Cell>,
    /// The model of every session, if told.
    pub model: Option<String>,
    /// Who runs the pipeline.
    pub reaches: Reaches,
}

/// Who could run the pipeline, and who does here.
#[derive(Debug)]
pub struct Reaches {
    /// All of them, the widest last.
    pub all: Vec<Reach>,
    chosen: usize,
}

impl Reaches {
    /// The one with this id, or the widest.
    ///
    /// # Errors
    /// If the data file does not fit, or there is none with this id.
    pub fn choose(id: Option<&str>, data: &Data) -> Result<Self> {
        let all = crate::replay::reach::reaches(data)?;
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

impl Scenarios {
    /// Loads what the command line names.
    ///
    /// # Errors
    /// If a configuration is broken or names a format that does not exist, or a sweep does not fit.
    pub fn load(args: &Args, context: &Context<'_>) -> Result<Self> {
        let path = config_path(args.config.as_ref(), context)?;
        let mut files = vec![load_config(&path, args.config.is_some())?];
        if let Some(path) = &args.against {
            files.push(load_config(path, true)?);
        }
        let axes = axes(&args.sweep)?;
        let mut base = Vec::new();
        if let Some(name) = &args.agent_profile {
            base.push((KeyPath::from(["profiles", "agent", "active"]), Value::from(name.as_str())));
        }
        let mut cells = Vec::new();
        for file in &files {
            for values in grid(&axes)? {
                let keys = axes.iter().map(|(key, _)| key.clone());
                let changes: Vec<_> = base.iter().cloned().chain(keys.zip(values.iter().cloned())).collect();
                let settings = what_if(file, &changes)?;
                check_sweep(&settings)?;
                let values = values.iter().map(|value| value.to_string().trim().to_owned()).collect();
                cells.push(Cell { values, settings });
            }
        }
        check_profile(args, &cells)?;
        let keys = axes.iter().map(|(key, _)| key.to_string()).collect();
        let data = Data::new(args.input.rules_dir.as_deref())?;
        let reaches = Reaches::choose(args.reach.as_deref(), &data)?;
        Ok(Self { files, keys, cells, model: args.model.clone(), reaches })
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

    /// Tells which files hold and what in them has no effect.
    pub fn tell(&self, output: &OutputArgs, context: &mut Context<'_>) -> Result<()> {
        if output.quiet {
            return Ok(());
        }
        for file in &self.files {
            let state = if file.existed { "" } else { " (does not exist: built-in values)" };
            writeln!(context.err, "# config: {}{state}", file.path.shown())?;
            warn_unknown(file, context)?;
        }
        Ok(())
    }
}

/// The same for values that only the command line names.
fn check_sweep(settings: &Settings) -> Result<()> {
    let templates = settings.templates.active.iter().chain(settings.templates.endpoint_overrides.values());
    let unknown = templates.chain(&settings.mckp.formats_enabled).find(|id| !is_format(id));
    unknown.map_or(Ok(()), |id| Err(unknown_format(id, "the configuration")))
}

fn check_profile(args: &Args, cells: &[Cell]) -> Result<()> {
    let Some(name) = &args.agent_profile else { return Ok(()) };
    let variants = cells.first().map(|cell| &cell.settings.profiles.agent.variants);
    match variants {
        Some(known) if !known.contains_key(name) => {
            let names = known.keys().cloned().collect::<Vec<_>>().join(", ");
            Err(Error::usage(format!("there is no agent profile \"{name}\"")).hint(format!("profiles: {names}")))
        }
        _ => Ok(()),
    }
}

/// A key that is swept, and the values that it takes.
pub type Axis = (KeyPath, Vec<Value>);

/// Reads `--sweep`.
///
/// # Errors
/// If one is not `KEY=a,b,c`.
pub fn axes(texts: &[String]) -> Result<Vec<Axis>> {
    texts.iter().map(|text| axis(text)).collect()
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
fn split_outside_brackets(text: &str) -> Vec<&str> {
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

/// All combinations, the last axis changing fastest.
///
/// # Errors
/// If there are too many of them.
pub fn grid(axes: &[Axis]) -> Result<Vec<Vec<Value>>> {
    let count: usize = axes.iter().map(|(_, values)| values.len()).product();
    if count > CELLS_MAX {
        return Err(Error::usage(format!("the grid has {count} cells; {CELLS_MAX} are run at most")));
    }
    let mut cells = vec![Vec::new()];
    for (_, values) in axes {
        let with = |cell: &Vec<Value>, value: &Value| {
            let mut cell = cell.clone();
            cell.push(value.clone());
            cell
        };
        cells = cells.iter().flat_map(|cell| values.iter().map(|value| with(cell, value))).collect();
    }
    Ok(cells)
}
