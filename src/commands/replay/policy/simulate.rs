//! Runs one stack of policies over the world and makes its report.

use serde_json::{Map, Value};

use crate::commands::replay::policy::chosen::{Policy, Sheets, Stack};
use crate::commands::replay::policy::world::{World, oracle};
use crate::commands::replay::policy::{compaction, history_trim, pick_tools, prompt_cache, tool_filter};
use crate::error::Result;
use crate::model::policy::breakage::Break;
use crate::policies::breakage::Detectors;
use crate::policies::breakage::tally::tally;
use crate::policies::breakage::watch::Watch;
use crate::policies::cache_knobs::Oracle;
use crate::policies::drive::{Ground, Run};
use crate::policies::outcome::outcome;
use crate::policies::view::Stage;
use crate::report::policy::PolicyReport;
use crate::report::table::Table;

/// A policy made ready for one run.
pub struct Ready<'w> {
    /// What changes contexts; none for those that only change the cache.
    pub stage: Option<Box<dyn Stage>>,
    /// What the policy says once the run is over.
    pub conclude: Box<dyn FnOnce(&Finished<'_>) -> Part + 'w>,
}

/// A run that is over.
pub struct Finished<'a> {
    /// The world.
    pub world: &'a World,
    /// The cache of both runs.
    pub oracle: &'a Oracle,
    /// The log as simulated.
    pub baseline: &'a Run,
    /// The policy.
    pub run: &'a Run,
    /// What it broke.
    pub breaks: &'a [Break],
    /// The detectors.
    pub detectors: &'a Detectors<'a>,
}

/// What one policy adds to the report.
#[derive(Default)]
pub struct Part {
    /// Its figures as data.
    pub details: Value,
    /// As tables with titles.
    pub tables: Vec<(String, Table)>,
    /// Formulas with numbers.
    pub formulas: Vec<String>,
    /// What to keep in mind.
    pub notes: Vec<String>,
    /// Why it claims no savings.
    pub withheld: Option<String>,
    /// Where tool definitions come from.
    pub catalog: Option<String>,
}

/// What a run gave.
pub struct Simulated {
    /// Requests and calls.
    pub run: Run,
    /// What broke.
    pub breaks: Vec<Break>,
}

/// Runs stages over all chains.
pub fn run(world: &World, oracle: &Oracle, detectors: &Detectors<'_>, stages: Vec<Box<dyn Stage>>) -> Simulated {
    let ground = Ground::new(&world.timeline, &world.sizes, oracle, &world.prices);
    let mut watch = Watch::new(detectors);
    let mut stages = stages;
    let run = ground.run(0..world.timeline.chains.len() as u32, &mut stages, Some(&mut watch));
    Simulated { run, breaks: watch.breaks }
}

/// What all stacks are held against.
pub struct Baseline<'w> {
    /// The log under the cache as it is set.
    pub as_set: Run,
    /// The log under the cache as observed.
    pub observed: Run,
    /// The cache as observed.
    pub observed_oracle: Oracle,
    /// The detectors.
    pub detectors: Detectors<'w>,
}

impl<'w> Baseline<'w> {
    /// Simulates the log itself.
    ///
    /// # Errors
    /// If the cache's knobs make no sense.
    pub fn new(world: &'w World, sheets: &Sheets, shipped: &Sheets) -> Result<Self> {
        let (set, observed_oracle) = (oracle(sheets)?, oracle(shipped)?);
        let whole = |oracle: &Oracle| {
            let ground = Ground::new(&world.timeline, &world.sizes, oracle, &world.prices);
            ground.run(0..world.timeline.chains.len() as u32, &mut [], None)
        };
        let observed = whole(&observed_oracle);
        let as_set = if set == observed_oracle { observed.clone() } else { whole(&set) };
        let detectors = Detectors::new(&world.timeline, &world.sizes.tokens, &world.breakage);
        Ok(Self { as_set, observed, observed_oracle, detectors })
    }
}

/// Everything that a stack says.
///
/// # Errors
/// If a knob makes no sense, or a file that it names cannot be read.
pub fn report(
    world: &World,
    sheets: &Sheets,
    stack: &Stack,
    baseline: &Baseline<'_>,
    tools: &tool_filter::Tools,
) -> Result<PolicyReport> {
    let set = oracle(sheets)?;
    // A question about the cache is held against the cache as it was; any other one against the same cache.
    let held_against = if stack.has(Policy::PromptCache) { &baseline.observed } else { &baseline.as_set };
    let ready = ready(world, sheets, stack, tools)?;
    let (mut stages, mut concluding) = (Vec::new(), Vec::new());
    for (policy, one) in ready {
        stages.extend(one.stage);
        concluding.push((policy, one.conclude));
    }
    let changes_contexts = !stages.is_empty();
    let simulated = if changes_contexts || stack.has(Policy::PromptCache) {
        run(world, &set, &baseline.detectors, stages)
    } else {
        Simulated { run: held_against.clone(), breaks: Vec::new() }
    };
    let finished = Finished {
        world,
        oracle: &set,
        baseline: held_against,
        run: &simulated.run,
        breaks: &simulated.breaks,
        detectors: &baseline.detectors,
    };
    let requests = simulated.run.requests.len() as u64;
    let broken = tally(&baseline.detectors, &world.timeline, &simulated.breaks, requests, &world.breakage);
    let mut report = PolicyReport {
        policy: stack.name(),
        knobs: knobs(sheets, stack)?,
        outcome: Some(outcome(&world.timeline, held_against, &simulated.run)),
        breakage: changes_contexts.then_some(broken),
        notes: world.notes(&set),
        ..PolicyReport::default()
    };
    for (policy, conclude) in concluding {
        add(&mut report, policy, conclude(&finished));
    }
    if !world.is_billed {
        report.withheld.get_or_insert_with(|| "telemetry has no usage, so nothing can be priced".to_owned());
    }
    Ok(report)
}

fn ready<'w>(
    world: &'w World,
    sheets: &Sheets,
    stack: &Stack,
    tools: &'w tool_filter::Tools,
) -> Result<Vec<(Policy, Ready<'w>)>> {
    let one = |&policy: &Policy| {
        let ready = match policy {
            Policy::ToolFilter => tool_filter::ready(world, sheets, tools)?,
            Policy::PickTools => pick_tools::ready(world, sheets, tools)?,
            Policy::Compaction => compaction::ready(world, sheets)?,
            Policy::HistoryTrim => history_trim::ready(world, sheets)?,
            Policy::PromptCache => prompt_cache::ready(sheets)?,
            Policy::ArgCheck => Ready { stage: None, conclude: Box::new(|_| Part::default()) },
        };
        Ok((policy, ready))
    };
    stack.0.iter().map(one).collect()
}

fn knobs(sheets: &Sheets, stack: &Stack) -> Result<Value> {
    let one = |policy: &Policy| Ok((policy.name().to_owned(), sheets.sheet(*policy).settings()?));
    Ok(Value::Object(stack.0.iter().map(one).collect::<Result<Map<String, Value>>>()?))
}

fn add(report: &mut PolicyReport, policy: Policy, part: Part) {
    report.details.insert(policy.name().to_owned(), part.details);
    report.tables.extend(part.tables);
    report.formulas.extend(part.formulas);
    report.notes.extend(part.notes);
    if report.withheld.is_none() {
        report.withheld = part.withheld;
    }
    if let Some(catalog) = part.catalog {
        report.fidelity.tool_catalog_source = catalog;
    }
}
