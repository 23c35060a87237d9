//! Runs one stack of policies over the workload and makes its report.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::base::allocator;
use crate::base::error::Result;
use crate::base::names::Sym;
use crate::report::table::Table;
use crate::whatif::chosen::{Policy, PolicyConfigs, Stack};
use crate::whatif::pipeline::replayed::ReplayedLayers;
use crate::whatif::prompt_cache::params::{CacheLayout, CacheRules, Params};
use crate::whatif::report::{Counted, Fidelity, PolicyReport, SimulationAccuracy, TELEMETRY, formulas};
use crate::whatif::sim::bill::Blind;
use crate::whatif::sim::breakage::rows::{Break, penalties, tally};
use crate::whatif::sim::breakage::{BreakWatch, Detectors};
use crate::whatif::sim::cache_sim::written;
use crate::whatif::sim::cells::CellJudge;
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::distance::{Apart, Distance};
use crate::whatif::sim::figures::RunBill;
use crate::whatif::sim::outcome::outcome;
use crate::whatif::sim::run::SimulatedRun;
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::view::Stage;
use crate::whatif::sim::{bill, distance};
use crate::whatif::tools::Tools;
use crate::whatif::workload::{Workload, cache_rules};

const OUTPUT_NOTE: &str =
    "output is counted on both sides, by the longer of usage and the sizes of its blocks (estimated)";

/// The log as simulated, under every cache that is needed, and what looks for breaks.
pub struct Simulation<'w> {
    pub workload: &'w Workload,
    pub tools: &'w Tools,
    /// What the layers of the pipeline sent, if a row asks for it.
    pub replayed: Option<&'w ReplayedLayers>,
    /// The requests under the cache as it was.
    pub simulator: Simulator<'w>,
    /// What looks for breaks.
    pub detectors: Detectors<'w>,
    /// The run under the cache as it was.
    pub observed: Arc<SimulatedRun>,
    pub billed: RunBill,
    pub off_bill: OffBill,
}

impl<'w> Simulation<'w> {
    /// Simulates the log itself. `shipped` is the cache with its default parameters.
    pub fn new(
        workload: &'w Workload,
        tools: &'w Tools,
        shipped: &'w CacheRules,
        replayed: Option<&'w ReplayedLayers>,
    ) -> Self {
        let simulator = Simulator::new(&workload.timeline, &workload.sizes, shipped, &workload.prices);
        let simulator = simulator.counting_answers(workload.with_output);
        let (observed, off_bill) = rayon::join(|| simulator.baseline(), || OffBill::of(&simulator, workload));
        let observed = Arc::new(observed);
        let simulator = simulator.knowing(Arc::clone(&observed));
        let detectors = Detectors::new(&workload.timeline, &workload.sizes.tokens, &workload.breakage);
        let billed = bill::total(&simulator);
        Self { workload, tools, replayed, simulator, detectors, observed, billed, off_bill }
    }

    /// Runs stages over all chains.
    pub fn run(&self, cache_rules: &CacheRules, stages: Vec<Box<dyn Stage>>) -> (SimulatedRun, Vec<Break>) {
        BreakWatch::new(&self.detectors).over(&self.simulator.under(cache_rules), stages)
    }

    /// What a stack is held against: a question about the cache against the cache as it was, any other against the same
    /// cache.
    fn against(&self, stack: &Stack, set: &CacheRules) -> Cow<'_, SimulatedRun> {
        let as_it_was = stack.has(Policy::PromptCache) || *set == *self.simulator.cache_rules;
        if as_it_was { Cow::Borrowed(&self.observed) } else { Cow::Owned(self.simulator.under(set).baseline()) }
    }

    /// The cache as it was, as far as its parameters are not about another cache.
    fn as_it_was(&self, set: &CacheRules) -> CacheRules {
        set.with(set.params.as_it_was(self.simulator.cache_rules.params))
    }

    /// The run of a stack, and what it is held against.
    pub fn run_stack(&self, configs: &PolicyConfigs, stack: &Stack) -> Result<(SimulatedRun, Cow<'_, SimulatedRun>)> {
        self.run_under(configs, stack, &cache_rules(configs)?)
    }

    fn run_under(
        &self,
        configs: &PolicyConfigs,
        stack: &Stack,
        set: &CacheRules,
    ) -> Result<(SimulatedRun, Cow<'_, SimulatedRun>)> {
        let stages = self.ready(configs, stack)?.into_iter().filter_map(|(_, one)| one.stage).collect();
        Ok((self.run(set, stages).0, self.against(stack, set)))
    }

    /// Everything that a stack says. An error if a parameter makes no sense, or a file that it names cannot be read.
    pub fn report(&self, configs: &PolicyConfigs, stack: &Stack, is_named: bool) -> Result<PolicyReport> {
        let workload = self.workload;
        // What the report before has freed lies between blocks still in use.
        allocator::give_back_small_blocks();
        let set = cache_rules(configs)?;
        let baseline = self.against(stack, &set);
        // What is taken for known of the cache moves the log as simulated nearer to the bill, or away from it; another cache was
        // never billed.
        let was = self.as_it_was(&set);
        let is_set = workload.is_billed && !stack.has(Policy::PromptCache) && was != *self.simulator.cache_rules;
        let under_set = is_set.then(|| OffBill::of(&self.simulator.under(&was), workload));
        let OffBill { accuracy, distance, apart } = under_set.as_ref().unwrap_or(&self.off_bill);
        let (mut stages, mut concluding) = (Vec::new(), Vec::new());
        for (policy, one) in self.ready(configs, stack)? {
            stages.extend(one.stage);
            concluding.push((policy, one.conclude));
        }
        let changes_contexts = !stages.is_empty();
        let mut watch = BreakWatch::new(&self.detectors);
        watch.with_pairs = is_named;
        let (run, breaks) = watch.over(&self.simulator.under(&set), stages);
        let is_asked = changes_contexts && is_named;
        let uncached =
            if is_asked { self.uncached(configs, stack)? } else { (SimulatedRun::default(), SimulatedRun::default()) };
        let uncached_alike = SimulatedRun::priced_alike(&[&uncached.0, &uncached.1]);
        let [uncached_log, uncached_policy] = [0, 1].map(|side| uncached_alike[side].total().cost);
        let is_alone = stack.0.len() == 1;
        let finished = Finished {
            simulation: self,
            cache_rules: &set,
            baseline: &baseline,
            run: &run,
            breaks: &breaks,
            uncached,
            accuracy: *accuracy,
            is_named,
            is_alone,
        };
        let outcome = outcome(&workload.timeline, &baseline, &run);
        let least = workload.winner_percent_min / 100.0;
        let is_compared = workload.is_billed && outcome.total.policy != outcome.total.baseline;
        let judge = CellJudge { rules: &workload.cells, apart: Some(apart), least };
        let cells = is_compared.then(|| judge.cells(&workload.timeline, &outcome.by_session));
        let whole = is_compared.then(|| judge.whole(&outcome.by_session)).flatten();
        let broken = tally(&self.detectors, &breaks, run.requests.len() as u64);
        // Telemetry has no text that could be looked for.
        let is_known = changes_contexts && (workload.is_billed || !broken.classes.is_empty());
        let is_priced_aside = workload.is_billed && !stack.has(Policy::PromptCache);
        let output_note = workload.with_output.then(|| OUTPUT_NOTE.to_owned());
        let mut report = PolicyReport {
            policy: stack.name(),
            bias: workload.bias.of(&stack.0.iter().map(|policy| policy.into_str()).collect::<Vec<_>>(), true),
            params: params(configs, stack, workload.is_billed)?,
            cache: if is_priced_aside { configs.sheet(Policy::PromptCache).changed() } else { Vec::new() },
            accuracy: workload.is_billed.then_some(*accuracy),
            distance: workload.is_billed.then(|| distance.clone()),
            cells: cells.unwrap_or_default(),
            whole,
            outcome: Some(outcome),
            breakage: is_known.then_some(broken),
            reread: self.rereads(&breaks),
            winner_min: least,
            uncached_change: if changes_contexts { uncached_log.change_to(&uncached_policy) } else { None },
            notes: workload.notes(&set).into_iter().chain(output_note).collect(),
            ..PolicyReport::default()
        };
        report.formulas = formulas(&report);
        for (policy, conclude) in concluding {
            add(&mut report, policy, conclude(&finished));
        }
        report.interaction_units = self.interaction(configs, stack, &run, &baseline)?;
        if !workload.is_billed {
            report.not_estimated.get_or_insert_with(|| "telemetry has no usage, so nothing can be priced".to_owned());
        }
        Ok(report)
    }

    /// Adds what every report says about its input.
    pub fn framed(&self, report: PolicyReport, input: Counted, configs: &PolicyConfigs) -> Result<PolicyReport> {
        let workload = self.workload;
        let (anchored, requests) = workload.sizes.anchored_share(&workload.timeline);
        let (estimator, static_prefix_source) = match workload.is_billed {
            true => (workload.estimator.into_str(), "usage: reads after breaks and of other sessions"),
            false => (TELEMETRY, "none"),
        };
        let fidelity = Fidelity {
            estimator: estimator.into(),
            anchored_share: (workload.is_billed && requests > 0).then(|| anchored as f64 / requests as f64),
            static_prefix_source: static_prefix_source.into(),
            ttl_source: cache_rules(configs)?.params.ttl.to_string(),
            ..report.fidelity
        };
        Ok(PolicyReport { input, fidelity, billed: self.billed, ..report })
    }

    /// Log and stack where the provider caches nothing.
    fn uncached(&self, configs: &PolicyConfigs, stack: &Stack) -> Result<(SimulatedRun, SimulatedRun)> {
        let set = self.simulator.cache_rules;
        let none = set.with(Params { layout: CacheLayout::None, ..set.params });
        let stages = self.ready(configs, stack)?.into_iter().filter_map(|(_, one)| one.stage).collect();
        Ok((self.simulator.under(&none).baseline(), self.run(&none, stages).0))
    }

    fn ready(&self, configs: &PolicyConfigs, stack: &Stack) -> Result<Vec<(Policy, Ready<'_>)>> {
        let one = |&policy: &Policy| Ok((policy, (policy.entry().ready)(self, configs)?));
        stack.0.iter().map(one).collect()
    }

    /// What writing the lost readings to the cache again would cost, each once: the least that reading them again costs.
    fn rereads(&self, breaks: &[Break]) -> Cost {
        let Simulator { timeline, tariff, priors, .. } = &self.simulator;
        let one = |lost: &Break| {
            let spent = written(lost.reread_tokens, priors[lost.request as usize].class);
            tariff.of(timeline.request(lost.request), &spent)
        };
        penalties(breaks).map(one).sum()
    }

    /// By how much a stack differs from the sum of what each of its policies changes alone; none for a single policy.
    fn interaction(
        &self,
        configs: &PolicyConfigs,
        stack: &Stack,
        together: &SimulatedRun,
        baseline: &SimulatedRun,
    ) -> Result<Option<i128>> {
        if stack.0.len() < 2 {
            return Ok(None);
        }
        let change =
            |run: &SimulatedRun, against: &SimulatedRun| run.cost().units as i128 - against.cost().units as i128;
        let set = cache_rules(configs)?;
        // Beside another cache each of the others is taken alone, with the cache as it was.
        let others = if stack.has(Policy::PromptCache) { self.as_it_was(&set) } else { set.clone() };
        let mut apart = 0;
        for &policy in &stack.0 {
            let own = if policy == Policy::PromptCache { &set } else { &others };
            let (run, against) = self.run_under(configs, &Stack(vec![policy]), own)?;
            apart += change(&run, &against);
        }
        Ok(Some(change(together, baseline) - apart))
    }
}

/// How far a simulation that sees no bill is from the bill.
pub struct OffBill {
    /// In sum.
    pub accuracy: SimulationAccuracy,
    /// Where.
    pub distance: Distance,
    /// By session and model.
    pub apart: BTreeMap<(u32, Sym), Apart>,
}

impl OffBill {
    /// Under the cache of a simulator.
    fn of(simulator: &Simulator<'_>, workload: &Workload) -> Self {
        let blind = Blind::new(simulator);
        let against = bill::compare(simulator, &blind, |_| true);
        let accuracy = SimulationAccuracy {
            wape_read: against.wape(),
            exact_share: against.warm_tool_turns.share(),
            bias: against.bias(),
            cost_error: against.cost_error(),
            cost_bar: workload.bars.cost / 100.0,
            read_bar: workload.bars.read_error / 100.0,
            bias_bar: workload.bars.bias / 100.0,
        };
        let key = |index: u32| {
            let request = workload.timeline.request(index);
            (workload.timeline.session_of_chain(request.chain), request.model)
        };
        let distance = distance::distance(simulator, &blind.cost, &workload.cells.resampling);
        Self { accuracy, distance, apart: distance::by(simulator, &blind.cost, key) }
    }
}

/// A policy made ready for one run.
pub struct Ready<'w> {
    /// What changes contexts; none for those that only change the cache.
    pub stage: Option<Box<dyn Stage>>,
    /// What the policy says once the run is over.
    pub conclude: Box<dyn FnOnce(&Finished<'_>) -> PolicyShare + 'w>,
}

/// A run that is over.
pub struct Finished<'a> {
    pub simulation: &'a Simulation<'a>,
    /// The cache of both runs.
    pub cache_rules: &'a CacheRules,
    pub baseline: &'a SimulatedRun,
    pub run: &'a SimulatedRun,
    pub breaks: &'a [Break],
    /// Log and policy where nothing is cached.
    pub uncached: (SimulatedRun, SimulatedRun),
    /// How far the log as simulated is from the bill.
    pub accuracy: SimulationAccuracy,
    /// Whether this policy was asked for by name, so that there is room for variants.
    pub is_named: bool,
    /// Whether it acts alone: else the runs are those of the whole stack.
    pub is_alone: bool,
}

/// What one policy adds to the report.
#[derive(Default)]
pub struct PolicyShare {
    /// A first line of its own.
    pub headline: Option<String>,
    /// What it found, in sentences.
    pub summary: Vec<String>,
    /// Its figures as data.
    pub details: Value,
    pub tables: Vec<(String, Table)>,
    pub formulas: Vec<String>,
    /// What to keep in mind.
    pub notes: Vec<String>,
    /// Why it claims no savings.
    pub not_estimated: Option<String>,
    /// Where tool definitions come from.
    pub catalog: Option<String>,
}

/// The parameters of a stack, by policy, and of the cache where it prices them.
fn params(configs: &PolicyConfigs, stack: &Stack, is_priced: bool) -> Result<Value> {
    let one = |policy: &Policy| Ok((policy.into_str().to_owned(), configs.sheet(*policy).settings()?));
    let cache = is_priced.then_some(&Policy::PromptCache);
    Ok(Value::Object(stack.0.iter().chain(cache).map(one).collect::<Result<Map<String, Value>>>()?))
}

fn add(report: &mut PolicyReport, policy: Policy, part: PolicyShare) {
    report.details.insert(policy.into_str().to_owned(), part.details);
    report.headline = report.headline.take().or(part.headline);
    report.summary.extend(part.summary);
    report.tables.extend(part.tables.into_iter().filter(|(_, table)| !table.is_empty()));
    report.formulas.extend(part.formulas);
    report.notes.extend(part.notes);
    if report.not_estimated.is_none() {
        report.not_estimated = part.not_estimated;
    }
    if let Some(catalog) = part.catalog {
        report.fidelity.tool_catalog_source = catalog;
    }
}
