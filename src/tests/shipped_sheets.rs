//! The shipped sheets as values that live as long as the tests.

use std::sync::LazyLock;

use crate::base::data::Data;
use crate::planner::numbers::Numbers;
use crate::whatif::{compaction, sim::breakage};

static PLANNER: LazyLock<Numbers> = LazyLock::new(|| Data::default().parsed("planner.toml").unwrap());
static COMPACTION: LazyLock<compaction::sheet::Sheet> =
    LazyLock::new(|| Data::default().read("policies/compaction.toml", compaction::sheet::Sheet::parse).unwrap());
static BREAKAGE: LazyLock<breakage::Sheet> =
    LazyLock::new(|| Data::default().parsed("policies/breakage.toml").unwrap());

impl Numbers {
    pub fn shipped() -> &'static Self {
        &PLANNER
    }
}

impl compaction::sheet::Sheet {
    pub fn shipped() -> &'static Self {
        &COMPACTION
    }
}

impl breakage::Sheet {
    pub fn shipped() -> &'static Self {
        &BREAKAGE
    }
}
