//! What every policy is replayed on: the requests of the input, their sizes, prices, and the numbers of the detectors; and what
//! every session would have cost under the settings that a team asks about.

use std::collections::BTreeMap;

use rayon::prelude::*;
use strum::VariantArray as _;

use crate::base::allocator;
use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::fleet::contribute::Alternative;
use crate::fleet::limits::PooledSetting;
use crate::logs::timeline::requests::{NO_USAGE, Timeline};
use crate::logs::trace::{NO_TIME, Usage};
use crate::report::numbers::{counted, date, thousands};
use crate::whatif::chosen::{Policy, PolicyConfigs, Stack, StackRow};
use crate::whatif::prompt_cache::outcome::SimulationBars;
use crate::whatif::prompt_cache::params::{CacheRules, Params};
use crate::whatif::prompt_cache::{PromptCacheThresholds, unlisted};
use crate::whatif::report::Counted;
use crate::whatif::sim::breakage::BreakageThresholds;
use crate::whatif::sim::cells::CellRules;
use crate::whatif::sim::cost::UNITS_PER_TOKEN;
use crate::whatif::sim::money::{Prices, unpriced_models};
use crate::whatif::sim::outcome::outcome;
use crate::whatif::sim::params::{Assigned, Bias};
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::sizes::{BlockSizes, Estimator, SizeRules};
use crate::whatif::simulation::Simulation;
use crate::whatif::tools::Tools;

/// Under which reason answers are counted whose usage says more tokens than any context can have.
const OUT_OF_RANGE: &str = "usage_out_of_range";

/// The requests with all that it takes to send and price them again.
pub struct Workload {
    pub timeline: Timeline,
    pub sizes: BlockSizes,
    pub estimator: Estimator,
    /// What tokens cost.
    pub prices: Prices,
    /// Numbers of the detectors.
    pub breakage: BreakageThresholds,
    /// Where approximations lean.
    pub bias: Bias,
    /// Least difference in percent that is called one.
    pub winner_percent_min: f64,
    /// What the simulation is held against.
    pub bars: SimulationBars,
    /// How parts of the logs are looked at.
    pub cells: CellRules,
    /// Whether answers count, by estimate.
    pub with_output: bool,
    /// Whether there is usage to be priced: not in telemetry.
    pub is_billed: bool,
}

impl Workload {
    /// Sizes the requests and reads the data files. An error if a data file does not fit, or `strict` and a model has
    /// no price.
    pub fn new(
        timeline: Timeline,
        estimator: Option<&str>,
        data: &Data,
        strict: bool,
        is_billed: bool,
    ) -> Result<Self> {
        let rules = data.read("policies/sizes.toml", SizeRules::parse)?;
        let prices = data.read("prices.toml", Prices::parse)?;
        let mut timeline = timeline;
        leave_out_of_range(&mut timeline);
        // A policy may ask another model than the log does.
        prices.models().for_each(|model| _ = timeline.names.intern(model));
        let PromptCacheThresholds { compare, bars, .. } =
            data.read("policies/prompt_cache.toml", PromptCacheThresholds::parse)?;
        let cells = data.read("policies/cells.toml", CellRules::parse)?;
        let breakage = data.parsed::<BreakageThresholds>("policies/breakage.toml")?;
        let bias = data.parsed::<Bias>("policies/bias.toml")?;
        let unpriced = unpriced_models(&timeline, &prices);
        if strict && !unpriced.is_empty() {
            let names: Vec<&str> = unpriced.keys().copied().collect();
            let hint = format!("add them to {} (--rules-dir), or leave --strict-pricing out", prices.place);
            return Err(Error::failed(format!("no price is known for {}", names.join(", "))).hint(hint));
        }
        let estimator = estimator.map_or(Ok(Estimator::default()), estimator_of)?;
        let sizes = BlockSizes::new(&timeline, estimator, &rules);
        // What was learned on the way lies between blocks still in use.
        allocator::give_back_small_blocks();
        Ok(Self {
            timeline,
            sizes,
            estimator,
            prices,
            breakage,
            bias,
            winner_percent_min: compare.winner_percent_min,
            bars,
            cells,
            with_output: false,
            is_billed,
        })
    }

    /// The requests under a cache, with their answers in the money.
    pub fn with_answers<'a>(&'a self, cache: &'a CacheRules) -> Simulator<'a> {
        Simulator::new(&self.timeline, &self.sizes, cache, &self.prices).counting_answers(true)
    }

    /// Tokens of the static prefix by chain, where they are known.
    pub fn prefixes(&self) -> Option<&[u64]> {
        self.is_billed.then_some(&self.sizes.prefix)
    }

    /// How much there is of it, from so many files.
    pub fn counted(&self, files: u64) -> Counted {
        let timeline = &self.timeline;
        let starts = || timeline.counted().map(|(_, request)| request.start).filter(|&start| start != NO_TIME);
        Counted {
            files,
            days: starts().min().zip(starts().max()).map(|(first, last)| (date(first), date(last))),
            sessions: timeline.counted_sessions().len() as u64,
            requests: timeline.counted().count() as u64,
            skipped: timeline.skipped.clone(),
        }
    }

    /// Notes about models that the data files do not know.
    pub fn notes(&self, cache_rules: &CacheRules) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(count) = self.timeline.skipped.get(NO_USAGE) {
            notes.push(format!("{} of the log without usage: not replayed", counted(*count, "message")));
        }
        if let Some(count) = self.timeline.skipped.get(OUT_OF_RANGE) {
            let messages = counted(*count, "message");
            notes.push(format!(
                "{messages} with usage of more than {} tokens: not replayed",
                thousands(u32::MAX.into())
            ));
        }
        if matches!(self.estimator, Estimator::Cl100k | Estimator::O200k) {
            let uncounted = self.timeline.blocks.iter().filter(|block| !block.is_counted()).count() as u64;
            let blocks = counted(uncounted, "block");
            let note = format!("{blocks} of deleted logs were never counted: their sizes are estimates");
            notes.extend((uncounted > 0).then_some(note));
        }
        if !self.is_billed {
            return notes;
        }
        let unpriced = unpriced_models(&self.timeline, &self.prices).into_iter();
        let unpriced: Vec<String> =
            unpriced.map(|(model, requests)| format!("{} of {model}", counted(requests, "request"))).collect();
        if !unpriced.is_empty() {
            notes.push(format!(
                "no price is known for {}: their tokens count at the usual ratios, their dollars not at all",
                unpriced.join(", ")
            ));
        }
        let unlisted = unlisted(&self.timeline, cache_rules);
        if !unlisted.is_empty() {
            notes.push(format!("the smallest prefix that is cached is not known for {}", unlisted.join(", ")));
        }
        notes
    }
}

/// Takes the usage of requests away that nobody was ever billed: sizes of contexts are counted in 32 bits.
fn leave_out_of_range(timeline: &mut Timeline) {
    let fits = |usage: &Usage| {
        let all = [usage.cache_creation, usage.cache_read, usage.cache_creation_5m, usage.cache_creation_1h];
        let prompt = all[..2].iter().fold(usage.input, |sum, &tokens| sum.saturating_add(tokens));
        all.into_iter().chain([prompt, usage.output]).all(|tokens| u32::try_from(tokens).is_ok())
    };
    let mut count = 0;
    for request in timeline.requests.iter_mut().filter(|request| !fits(&request.usage())) {
        request.tokens = Usage::default().into();
        count += u64::from(request.counts());
    }
    if count > 0 {
        timeline.skipped.insert(OUT_OF_RANGE.to_owned(), count);
    }
}

/// The cache as it is set.
pub fn cache_rules(configs: &PolicyConfigs) -> Result<CacheRules> {
    let sheet = configs.sheet(Policy::PromptCache);
    // What was set is looked at first: it is the user's, the rest of the sheet is not.
    sheet.params::<Params>()?;
    let cache_rules: CacheRules = sheet.read()?;
    cache_rules.params.check()?;
    Ok(cache_rules)
}

/// The estimator of this name. An error if there is none.
pub fn estimator_of(name: &str) -> Result<Estimator> {
    Estimator::VARIANTS.iter().copied().find(|known| known.into_str() == name).ok_or_else(|| {
        let names: Vec<&str> = Estimator::VARIANTS.iter().map(|known| known.into_str()).collect();
        Error::usage(format!("there is no estimator `{name}`")).hint(names.join(", "))
    })
}

/// What policies are replayed on where nobody says anything else.
pub struct ShippedWorkload {
    pub configs: PolicyConfigs,
    pub workload: Workload,
    tools: Tools,
    pub cache: CacheRules,
}

impl ShippedWorkload {
    /// Prepares a timeline.
    pub fn new(timeline: Timeline, data: &Data) -> Result<Self> {
        let configs = PolicyConfigs::load(data)?;
        let tools = Tools::read(&[], data)?;
        let workload = Workload::new(timeline, None, data, false, true)?;
        let cache = cache_rules(&configs)?;
        Ok(Self { configs, workload, tools, cache })
    }

    /// Simulates the log itself.
    pub fn simulation(&self) -> Simulation<'_> {
        Simulation::new(&self.workload, &self.tools, &self.cache, None)
    }
}

/// Every session under every setting.
pub fn alternatives(shipped: &ShippedWorkload, settings: &[PooledSetting]) -> Result<Vec<Alternative>> {
    let simulation = shipped.simulation();
    let under = |asked| under(&simulation, &shipped.configs, asked);
    let found: Vec<Vec<Alternative>> = settings.par_iter().map(under).collect::<Result<_>>()?;
    Ok(found.concat())
}

/// Every session under one setting.
fn under(simulation: &Simulation<'_>, configs: &PolicyConfigs, asked: &PooledSetting) -> Result<Vec<Alternative>> {
    let settings = asked.set.iter().map(|text| Assigned::parse(text, "fleet.toml")).collect::<Result<_>>()?;
    let row = StackRow { name: asked.name.clone(), stack: Stack::parse(&asked.policy)?, settings, is_named: false };
    let (run, log) = simulation.run_stack(&configs.with(&row)?, &row.stack)?;
    let timeline = &simulation.workload.timeline;
    let mut sessions: BTreeMap<u32, (u128, u128)> = BTreeMap::new();
    for ((session, _), sides) in outcome(timeline, &log, &run).by_session {
        let units = sessions.entry(session).or_default();
        *units = (units.0 + sides.baseline.cost.units, units.1 + sides.policy.cost.units);
    }
    let tokens = |units: u128| u64::try_from(units / u128::from(UNITS_PER_TOKEN)).unwrap_or(u64::MAX);
    let one = |(session, (log, policy)): (u32, (u128, u128))| {
        let row = &timeline.sessions[session as usize];
        let (log, policy) = (tokens(log), tokens(policy));
        Alternative { name: asked.name.clone(), session: row.id, start: row.ts_first, log, policy }
    };
    Ok(sessions.into_iter().map(one).collect())
}
