//! The shipped sheets as values that live as long as the tests.

use std::sync::LazyLock;

use crate::base::data::Data;
use crate::planner::numbers::PlannerThresholds;
use crate::whatif::{compaction, sim::breakage};

static PLANNER: LazyLock<PlannerThresholds> = LazyLock::new(|| Data::default().parsed("planner.toml").unwrap());
static COMPACTION: LazyLock<compaction::params::CompactionThresholds> = LazyLock::new(|| {
    Data::default().read("policies/compaction.toml", compaction::params::CompactionThresholds::parse).unwrap()
});
static BREAKAGE: LazyLock<breakage::BreakageThresholds> =
    LazyLock::new(|| Data::default().parsed("policies/breakage.toml").unwrap());

impl PlannerThresholds {
    pub fn shipped() -> &'static Self {
        &PLANNER
    }
}

impl compaction::params::CompactionThresholds {
    pub fn shipped() -> &'static Self {
        &COMPACTION
    }
}

impl breakage::BreakageThresholds {
    pub fn shipped() -> &'static Self {
        &BREAKAGE
    }
}
