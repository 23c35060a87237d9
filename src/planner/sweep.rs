//! What each parameter would do: the planners walk again for every value.

use rayon::prelude::*;
use toml_edit::Value;

use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::planner::known_tools::KnownTools;
use crate::planner::report::PlannerSweepRow;
use crate::planner::stage::{Planner, PlannerStage, Trained, sum, walk};
use crate::replay::scenarios::{axes, grid};
use crate::settings::{Enrichment, SettingsFile, what_if};

/// The parameter that is no key of the configuration.
const PROBABILITY: &str = "min_followup_probability";

/// One combination of values.
struct SweepPointValues {
    values: Vec<String>,
    enrichment: Enrichment,
    probability_min: Option<f64>,
}

/// All combinations.
pub struct SweepGrid {
    /// What is swept.
    pub keys: Vec<String>,
    cells: Vec<SweepPointValues>,
}

impl SweepGrid {
    /// Reads `--sweep`.
    ///
    /// # Errors
    /// If a key is none of the planner's, or a value does not fit.
    pub fn parse(texts: &[String], file: &SettingsFile) -> Result<Self> {
        let axes = axes(texts)?;
        let keys: Vec<String> = axes.iter().map(|(key, _)| key.to_string()).collect();
        if keys.is_empty() {
            return Ok(Self { keys, cells: Vec::new() });
        }
        let is_probability = |key: &KeyPath| key.0.last().is_some_and(|last| last == PROBABILITY);
        let other = axes
            .iter()
            .find(|(key, _)| !is_probability(key) && key.0.first().is_none_or(|first| first != "enrichment"));
        if let Some((key, _)) = other {
            return Err(Error::usage(format!("--sweep {key}: the planner does not look at it"))
                .hint(format!("with --planner: keys of enrichment, and {PROBABILITY}")));
        }
        let cell = |values: Vec<Value>| {
            let (mut changes, mut probability_min) = (Vec::new(), None);
            for ((key, _), value) in axes.iter().zip(&values) {
                if is_probability(key) {
                    probability_min = Some(probability(value)?);
                } else {
                    changes.push((key.clone(), value.clone()));
                }
            }
            let values = values.iter().map(|value| value.to_string().trim().to_owned()).collect();
            Ok(SweepPointValues { values, enrichment: what_if(file, &changes)?.enrichment, probability_min })
        };
        Ok(Self { cells: grid(&axes)?.into_iter().map(cell).collect::<Result<_>>()?, keys })
    }

    /// Whether nothing is swept.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Walks once per cell and planner.
    pub fn run(&self, stage: &PlannerStage, planners: &[Planner]) -> Vec<PlannerSweepRow> {
        let trained = Trained::new(stage);
        let known: Vec<KnownTools<'_>> =
            planners.iter().map(|planner| KnownTools::new(&planner.models, stage.told(), &stage.numbers)).collect();
        let row = |cell: &SweepPointValues, planner: &Planner, known: &KnownTools<'_>| {
            let books = walk(stage, planner, known, &trained, &cell.enrichment, cell.probability_min, None);
            PlannerSweepRow {
                values: cell.values.clone(),
                arm: planner.name.to_owned(),
                always_runs: planner.always_runs(),
                tally: sum(&books).total,
            }
        };
        let of_planner = |(planner, known): (&Planner, &KnownTools<'_>)| {
            self.cells.par_iter().map(|cell| row(cell, planner, known)).collect::<Vec<_>>()
        };
        planners.iter().zip(&known).flat_map(of_planner).collect()
    }
}

fn probability(value: &Value) -> Result<f64> {
    let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
    number.filter(|number| (0.0..=1.0).contains(number)).ok_or_else(|| {
        Error::usage(format!("--sweep {PROBABILITY}: {} is no probability", value.to_string().trim()))
            .hint("a number from 0 to 1")
    })
}
