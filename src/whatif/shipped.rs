//! A timeline with everything that is shipped: policies, tools, the cache.

use crate::base::data::Data;
use crate::base::error::Result;
use crate::logs::timeline::requests::Timeline;
use crate::whatif::chosen::PolicyConfigs;
use crate::whatif::prompt_cache::params::CacheRules;
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
    ///
    /// # Errors
    /// If a data file does not fit.
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
