//! A timeline with everything that is shipped (policies, tools, the cache), and what every session of it would have cost under
//! the settings that a team asks about.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::fleet::contribute::Alternative;
use crate::fleet::limits::PooledSetting;
use crate::logs::timeline::requests::Timeline;
use crate::whatif::chosen::{PolicyConfigs, Stack, StackRow};
use crate::whatif::prompt_cache::params::CacheRules;
use crate::whatif::sim::cost::UNITS_PER_TOKEN;
use crate::whatif::sim::outcome::outcome;
use crate::whatif::sim::params::Assigned;
use crate::whatif::simulation::Simulation;
use crate::whatif::tools::Tools;
use crate::whatif::workload::{Workload, oracle};

/// What policies are replayed on where nobody says anything else.
pub struct ShippedWorkload {
    /// The policies with their numbers.
    pub configs: PolicyConfigs,
    /// The requests.
    pub workload: Workload,
    tools: Tools,
    cache: CacheRules,
}

impl ShippedWorkload {
    /// Prepares a timeline.
    pub fn new(timeline: Timeline, data: &Data) -> Result<Self> {
        let configs = PolicyConfigs::load(data)?;
        let tools = Tools::read(&[], data)?;
        let workload = Workload::new(timeline, None, data, false, true)?;
        let cache = oracle(&configs)?;
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
