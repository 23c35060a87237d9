//! The shipped sheets as values that live as long as the tests.

use std::sync::LazyLock;

use crate::base::data::Data;
use crate::logs::timeline::requests::Timeline;
use crate::planner::numbers::PlannerThresholds;
use crate::whatif::compaction::params::CompactionThresholds;
use crate::whatif::prompt_cache::params::CacheRules;
use crate::whatif::sim::breakage::BreakageThresholds;
use crate::whatif::sim::money::Prices;
use crate::whatif::sim::sizes::{BlockSizes, Estimator, SizeRules};

impl PlannerThresholds {
    pub fn shipped() -> &'static Self {
        static SHEET: LazyLock<PlannerThresholds> = LazyLock::new(|| Data::default().parsed("planner.toml").unwrap());
        &SHEET
    }
}

impl CompactionThresholds {
    pub fn shipped() -> &'static Self {
        static SHEET: LazyLock<CompactionThresholds> =
            LazyLock::new(|| Data::default().read("policies/compaction.toml", CompactionThresholds::parse).unwrap());
        &SHEET
    }
}

impl BreakageThresholds {
    pub fn shipped() -> &'static Self {
        static SHEET: LazyLock<BreakageThresholds> =
            LazyLock::new(|| Data::default().parsed("policies/breakage.toml").unwrap());
        &SHEET
    }
}

impl CacheRules {
    pub fn shipped() -> &'static Self {
        static SHEET: LazyLock<CacheRules> =
            LazyLock::new(|| Data::default().parsed("policies/prompt_cache.toml").unwrap());
        &SHEET
    }
}

impl Prices {
    pub fn shipped() -> &'static Self {
        static SHEET: LazyLock<Prices> = LazyLock::new(|| Data::default().read("prices.toml", Prices::parse).unwrap());
        &SHEET
    }
}

impl SizeRules {
    pub fn shipped() -> &'static Self {
        static SHEET: LazyLock<SizeRules> =
            LazyLock::new(|| Data::default().read("policies/sizes.toml", SizeRules::parse).unwrap());
        &SHEET
    }
}

/// The sizes of a timeline, held against what was billed.
pub fn anchored_sizes(timeline: &Timeline) -> BlockSizes {
    BlockSizes::new(timeline, Estimator::Anchored, SizeRules::shipped())
}
