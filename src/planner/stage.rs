//! Everything that planners are judged on, and the planners that are compared there. To tell what each
//! parameter would do they walk again for every value.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use toml_edit::Value;

use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::base::names::Names;
use crate::frames::input::Input;
use crate::logs::history::History;
use crate::logs::trace::Millis;
use crate::logs::values::CallValues;
use crate::mine::projections::ToldHistory;
use crate::mine::runnable::Runnable;
use crate::planner::bound::OfferedValues;
use crate::planner::contexts::{Latencies, PlannerSplit};
use crate::planner::intents::Intents;
use crate::planner::known_tools::KnownTools;
use crate::planner::numbers::PlannerThresholds;
use crate::planner::opportunities::Odds;
use crate::planner::prefetches::{HostTrace, PlannerLedger};
use crate::planner::report::PlannerSweepRow;
use crate::planner::selectivity::backtest::Learned;
use crate::planner::selectivity::file::Selectivity;
use crate::planner::selectivity::{Named, Selective, SelectivityThresholds};
use crate::planner::value_models::ValueModels;
use crate::planner::walk::{self, JudgedPlanner, arguments_seen, judge};
use crate::replay::scenarios::{axes, grid};
use crate::settings::{Enrichment, Settings, SettingsFile, what_if};

/// The file with the numbers of the planner.
const NUMBERS: &str = "planner.toml";

/// Everything that planners are judged on.
pub struct PlannerStage {
    pub file: SettingsFile,
    pub settings: Settings,
    pub numbers: PlannerThresholds,
    pub history: History,
    pub values: CallValues,
    pub tools: Names,
    pub split: PlannerSplit,
    /// By session: whether it is judged.
    pub judged: Vec<bool>,
    /// What the prompts name, where they were read.
    pub intents: Option<Intents>,
    /// Which calls can run with one argument, as the training sessions show.
    pub runnable: Runnable,
}

impl PlannerStage {
    /// Says what planners ask of a history, for whoever asks nothing else.
    pub fn prepare(input: &mut Input) {
        input.find_values();
        input.sum_messages();
    }

    /// Learns from the sessions that began before `until`, else from the earlier ones.
    pub fn new(file: SettingsFile, input: &mut Input, until: Option<Millis>) -> Result<Self> {
        input.find_values();
        let named = input.named_history();
        Self::of(file, input, named, until)
    }

    /// The same of the history of this input; nothing is asked of its messages.
    pub fn of(
        file: SettingsFile,
        input: &mut Input,
        (mut history, tools): (History, Names),
        until: Option<Millis>,
    ) -> Result<Self> {
        let numbers = input.data.parsed::<PlannerThresholds>(NUMBERS)?;
        history.messages = Vec::new();
        let values = input.values(&history);
        let split = match until {
            Some(until) => PlannerSplit::by_time(&history, until),
            None => PlannerSplit::by_share(&history, numbers.backtest.train_share),
        };
        let judged = split.trains.iter().map(|trains| !trains).collect();
        let settings = what_if(&file, &[])?;
        let runnable = Runnable::shipped(&input.data)?.learned(&history, &values, &tools, &split.trains);
        Ok(Self { settings, file, numbers, history, values, tools, split, judged, intents: None, runnable })
    }

    pub fn told(&self) -> ToldHistory<'_> {
        ToldHistory { history: &self.history, values: &self.values, tools: &self.tools }
    }
}

/// As Paper 3 and its host have it.
pub const PUBLISHED: &str = "published";
/// As the file of the user says.
pub const CONFIGURED: &str = "configured";
/// With links mined on the training sessions.
pub const MINED: &str = "mined";
/// The same, one call at a time by what the answer looks like.
pub const SELECTIVE: &str = "selective";

/// A planner and what it believes.
pub struct Planner {
    pub name: &'static str,
    pub about: &'static str,
    pub models: ValueModels,
    pub kind: PlannerKind,
}

/// How it plans.
pub enum PlannerKind {
    Published,
    ByLink,
    ByTable { learned: Option<Box<Learned>>, table: Selectivity, numbers: SelectivityThresholds },
}

/// What planners know of the training sessions besides links.
pub struct Trained {
    latencies: Latencies,
    arguments: BTreeMap<String, BTreeSet<String>>,
}

impl Trained {
    pub fn new(stage: &PlannerStage) -> Self {
        let (told, trains) = (stage.told(), &stage.split.trains);
        Self { latencies: Latencies::measure(told, trains), arguments: arguments_seen(told, trains) }
    }
}

/// Lets one planner walk the judged sessions; `None` leaves a parameter where the planner has it.
pub fn walk(
    stage: &PlannerStage,
    planner: &Planner,
    known: &KnownTools<'_>,
    trained: &Trained,
    enrichment: &Enrichment,
    probability_min: Option<f64>,
    control: Option<&OfferedValues>,
) -> Vec<PlannerLedger> {
    let odds = odds(stage, planner, known);
    let policy = policy(stage, planner, known, trained, odds.as_ref(), probability_min);
    judge(stage.told(), &JudgedPlanner { enrichment, control, ..policy }, &stage.judged)
}

/// What the live host would have recorded of a planner in the judged sessions.
pub fn trail(stage: &PlannerStage, planner: &Planner) -> Vec<HostTrace> {
    let trained = Trained::new(stage);
    let known = KnownTools::new(&planner.models, stage.told(), &stage.numbers);
    let odds = odds(stage, planner, &known);
    let policy = policy(stage, planner, &known, &trained, odds.as_ref(), None);
    walk::trail(stage.told(), &policy, &stage.judged)
}

/// A planner under the settings of the file; without a `probability_min` it has its own.
fn policy<'a>(
    stage: &'a PlannerStage,
    planner: &'a Planner,
    known: &'a KnownTools<'a>,
    trained: &'a Trained,
    odds: Option<&'a Selective<'_>>,
    probability_min: Option<f64>,
) -> JudgedPlanner<'a> {
    // A table has its own threshold, below which nothing is left.
    let own = if odds.is_some() { f64::MIN_POSITIVE } else { stage.numbers.candidates.probability_min };
    JudgedPlanner {
        models: &planner.models,
        known,
        is_published: matches!(planner.kind, PlannerKind::Published),
        probability_min: probability_min.unwrap_or(own),
        odds: odds.map(|odds| odds as &dyn Odds),
        enrichment: &stage.settings.enrichment,
        latencies: &trained.latencies,
        arguments_seen: &trained.arguments,
        runnable: &stage.runnable,
        intents: stage.intents.as_ref(),
        control: None,
        numbers: &stage.numbers,
    }
}

fn odds<'a>(stage: &'a PlannerStage, planner: &'a Planner, known: &'a KnownTools<'_>) -> Option<Selective<'a>> {
    match &planner.kind {
        PlannerKind::ByTable { table, numbers, .. } => {
            Some(Selective { learned: table, numbers, named: Named::new(stage.told(), known) })
        }
        PlannerKind::Published | PlannerKind::ByLink => None,
    }
}

/// The books of several sessions in one.
pub fn sum(ledgers: &[PlannerLedger]) -> PlannerLedger {
    ledgers.iter().fold(PlannerLedger::default(), |mut sum, ledger| {
        sum.absorb(ledger);
        sum
    })
}

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
    pub keys: Vec<String>,
    cells: Vec<SweepPointValues>,
}

impl SweepGrid {
    /// Reads `--sweep`. An error if a key is none of the planner's, or a value does not fit.
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
                .hint(format!("keys of enrichment can be swept, and {PROBABILITY}")));
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
            let ledgers = walk(stage, planner, known, &trained, &cell.enrichment, cell.probability_min, None);
            PlannerSweepRow { values: cell.values.clone(), arm: planner.name.to_owned(), tally: sum(&ledgers).total }
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
