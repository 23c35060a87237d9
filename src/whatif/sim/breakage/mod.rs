//! What a changed context broke: what the output of a request took up from the context in the log and would no longer have
//! found. [`detect`] compares the blocks of both contexts; [`rows`] adds the breaks up; [`files`] knows which file a call is
//! about, and what happens without any policy.

pub mod detect;
pub mod files;
pub mod rows;

use serde::Deserialize;

pub use detect::{BreakWatch, Detectors};

/// The sheet `rules/policies/breakage.toml`: all numbers of the detectors. It says where each comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BreakageThresholds {
    pub tools: FileTools,
    pub report: ReportNumbers,
    pub ages: AgeNumbers,
    pub risk: Vec<RiskPoint>,
    /// What real logs are held against.
    pub bars: BreakageBars,
}

/// `[tools]`: names of tools.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct FileTools {
    pub read: Vec<String>,
    pub edit: Vec<String>,
}

/// `[report]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ReportNumbers {
    pub examples_max: usize,
    pub calls_after: usize,
}

/// `[ages]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AgeNumbers {
    pub from: Vec<u32>,
}

/// `[[risk]]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RiskPoint {
    pub kept_turns: u32,
    pub expected_percent: f64,
}

/// `[bars]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BreakageBars {
    pub risk_tolerance_points: f64,
}
