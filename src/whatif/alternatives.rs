//! What every session would have cost under the settings that a team asks about.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::error::Result;
use crate::fleet::contribute::Alternative;
use crate::fleet::limits::PooledSetting;
use crate::whatif::chosen::{PolicyConfigs, Stack, StackRow};
use crate::whatif::shipped::ShippedWorkload;
use crate::whatif::sim::cost::UNITS_PER_TOKEN;
use crate::whatif::sim::outcome::outcome;
use crate::whatif::sim::params::Assigned;
use crate::whatif::simulation::Simulation;

/// Every session under every setting.
///
/// # Errors
/// If a setting does not fit its policy.
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
