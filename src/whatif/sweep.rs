//! `--sweep KEY=A,B,…` of a policy: one run for each value, or for each cell of a grid.

use rayon::prelude::*;

use crate::base::error::{Error, Result};
use crate::whatif::chosen::{Policy, PolicyConfigs, StackRow, asked};
use crate::whatif::report::{Counted, PolicyReport};
use crate::whatif::sim::params::Assigned;
use crate::whatif::simulation::Simulation;

/// Cells of a sweep are run one by one, so there is an end to how many make sense.
const CELLS_MAX: usize = 400;

/// One cell: what was set, and what came of it.
pub struct SweepCell {
    /// The values, in the order of the keys.
    pub values: Vec<String>,
    /// The report.
    pub report: PolicyReport,
}

/// A sweep.
pub struct Swept {
    /// What was swept.
    pub keys: Vec<String>,
    /// The cells, the last key fastest.
    pub cells: Vec<SweepCell>,
}

/// Runs every cell.
///
/// # Errors
/// If a parameter is unknown, a value does not fit, or there is nothing that can be swept.
pub fn run(
    sweep: &[String],
    simulation: &Simulation<'_>,
    configs: &PolicyConfigs,
    rows: &[StackRow],
    counted: &Counted,
) -> Result<Swept> {
    let [StackRow { stack, .. }] = rows else {
        return Err(Error::usage("--sweep goes with one policy (or one stack)").hint("leave --compare and `all` out"));
    };
    if stack.has(Policy::ArgCheck) {
        return Err(Error::usage("arg-check has nothing to sweep: it changes no context"));
    }
    let grid = sweep.iter().map(|text| axis(text)).collect::<Result<Vec<_>>>()?;
    let keys: Vec<String> = grid.iter().filter_map(|axis| axis.first()).map(Assigned::name).collect();
    if let Some(key) = keys.iter().enumerate().find_map(|(at, key)| keys[..at].contains(key).then_some(key)) {
        return Err(Error::usage(format!("{key} is swept twice")).hint("name all its values in one --sweep"));
    }
    let cells = grid.iter().fold(vec![Vec::new()], |cells: Vec<Vec<&Assigned>>, axis| {
        cells.iter().flat_map(|cell| axis.iter().map(|value| [cell.as_slice(), &[value]].concat())).collect()
    });
    if cells.len() > CELLS_MAX {
        return Err(Error::usage(format!("{} cells are more than {CELLS_MAX}", cells.len())).hint("sweep fewer values"));
    }
    let one = |cell: &Vec<&Assigned>| {
        let mut set = configs.clone();
        for setting in cell {
            set.set(setting, &asked(rows))?;
        }
        let report = simulation.framed(simulation.report(&set, stack, false)?, counted.clone(), &set)?;
        let values = cell.iter().map(|setting| setting.value.to_string().trim().trim_matches('"').to_owned());
        Ok(SweepCell { values: values.collect(), report })
    };
    Ok(Swept { keys, cells: cells.par_iter().with_max_len(1).map(one).collect::<Result<_>>()? })
}

/// `KEY=A,B,…` as one setting per value; commas inside brackets and quotes do not divide.
fn axis(text: &str) -> Result<Vec<Assigned>> {
    let place = format!("--sweep {text}");
    let (key, values) = text.split_once('=').ok_or_else(|| {
        Error::usage(format!("`{text}` sweeps nothing")).hint("write KEY=A,B, for instance ttl=5m,1h")
    })?;
    let (mut depth, mut quoted) = (0_i32, false);
    let split = values.split(|letter: char| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        quoted ^= letter == '"';
        letter == ',' && depth == 0 && !quoted
    });
    let values: Vec<&str> = split.map(str::trim).filter(|value| !value.is_empty()).collect();
    if values.is_empty() {
        return Err(Error::usage(format!("`{text}` names no value")).hint("write KEY=A,B, for instance ttl=5m,1h"));
    }
    values.iter().map(|value| Assigned::parse(&format!("{key}={value}"), place.clone())).collect()
}
