//! `--sweep KEY=A,B,…` of a policy: one run for each value, or for each cell of a grid.

use rayon::prelude::*;

use crate::base::error::{Error, Result};
use crate::replay::scenarios::{combinations, split_outside_brackets};
use crate::whatif::chosen::{Policy, PolicyConfigs, StackRow, asked};
use crate::whatif::report::{Counted, PolicyReport};
use crate::whatif::sim::params::Assigned;
use crate::whatif::simulation::Simulation;

/// Cells of a sweep are run one by one, so there is an end to how many make sense.
const CELLS_MAX: usize = 400;

/// What a sweep sets.
pub struct SweepGrid {
    pub keys: Vec<String>,
    /// Settings of each cell, one of every key, the last key fastest.
    pub cells: Vec<Vec<Assigned>>,
}

impl SweepGrid {
    /// Reads every `KEY=A,B,…`. Of none of them there is one cell, which sets nothing. An error if one names no value,
    /// a key stands twice, or there are too many cells.
    pub fn parse(sweep: &[String]) -> Result<Self> {
        let axes = sweep.iter().map(|text| axis(text)).collect::<Result<Vec<_>>>()?;
        let keys: Vec<String> = axes.iter().filter_map(|axis| axis.first()).map(Assigned::name).collect();
        if let Some(key) = keys.iter().enumerate().find_map(|(at, key)| keys[..at].contains(key).then_some(key)) {
            return Err(Error::usage(format!("{key} is swept twice")).hint("name all its values in one --sweep"));
        }
        let count = axes.iter().fold(1_usize, |count, axis| count.saturating_mul(axis.len()));
        if count > CELLS_MAX {
            return Err(Error::usage(format!("{count} cells are more than {CELLS_MAX}")).hint("sweep fewer values"));
        }
        Ok(Self { keys, cells: combinations(axes.iter().map(Vec::as_slice)) })
    }
}

/// The sheets of one cell. An error if no policy has a parameter.
pub fn cell_configs(cell: &[Assigned], configs: &PolicyConfigs, rows: &[StackRow]) -> Result<PolicyConfigs> {
    let mut set = configs.clone();
    cell.iter().try_for_each(|setting| set.set(setting, &asked(rows)))?;
    Ok(set)
}

/// One cell: what was set, and what came of it.
pub struct SweepCell {
    /// The values, in the order of the keys.
    pub values: Vec<String>,
    pub report: PolicyReport,
}

/// Runs every cell. An error if a parameter is unknown, a value does not fit, or there is nothing that can be swept.
pub fn run(
    grid: &SweepGrid,
    simulation: &Simulation<'_>,
    configs: &PolicyConfigs,
    rows: &[StackRow],
    counted: &Counted,
) -> Result<Vec<SweepCell>> {
    let [StackRow { stack, .. }] = rows else {
        return Err(Error::usage("--sweep goes with one policy (or one stack)").hint("leave --compare and `all` out"));
    };
    if stack.has(Policy::ArgCheck) {
        return Err(Error::usage("arg-check has nothing to sweep: it changes no context"));
    }
    let one = |cell: &Vec<Assigned>| {
        let set = cell_configs(cell, configs, rows)?;
        let report = simulation.framed(simulation.report(&set, stack, false)?, counted.clone(), &set)?;
        let values = cell.iter().map(|setting| setting.value.to_string().trim().trim_matches('"').to_owned());
        Ok(SweepCell { values: values.collect(), report })
    };
    grid.cells.par_iter().with_max_len(1).map(one).collect()
}

/// `KEY=A,B,…` as one setting per value; commas inside brackets and quotes do not divide.
fn axis(text: &str) -> Result<Vec<Assigned>> {
    let place = format!("--sweep {text}");
    let fault = |does: &str| Error::usage(format!("`{text}` {does}")).hint("write KEY=A,B, for instance ttl=5m,1h");
    let (key, values) = text.split_once('=').ok_or_else(|| fault("sweeps nothing"))?;
    let split = split_outside_brackets(values).into_iter();
    let values: Vec<&str> = split.map(str::trim).filter(|value| !value.is_empty()).collect();
    if values.is_empty() {
        return Err(fault("names no value"));
    }
    values.iter().map(|value| Assigned::parse(&format!("{key}={value}"), place.clone())).collect()
}
