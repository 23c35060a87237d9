//! Selectivity: how probable one exact follow-up is, given what the result looks like that it would follow.
//!
//! A link says "after Glob, Read comes with 0.32". Whether *this* path is read next depends on how many there are, what
//! kind of list they stand in, which of them it is. No model is fitted: candidates are counted in a small set of named
//! cells, one with few trials falls back on a coarser one ([`table`]), and the threshold from which on a candidate is worth
//! fetching is read off a curve over the training sessions ([`backtest`]).

pub mod report;

pub mod backtest;
pub mod file;
pub mod odds;
pub mod table;

use serde::Deserialize;

use crate::base::data::fitting;
use crate::base::error::{Error, Result};
use crate::planner::selectivity::table::Feature;

/// The data file.
pub const SHEET: &str = "selectivity.toml";

/// The numbers of `rules/selectivity.toml`; the file says where each comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelectivityThresholds {
    /// What is told apart, the weightiest first.
    pub features: Vec<Feature>,
    /// Upper ends of the groups of result numbers.
    pub found_ends: Vec<u32>,
    /// Upper ends of the groups of ranks.
    pub rank_ends: Vec<u32>,
    /// Trials before a cell is believed.
    pub trials_min: u64,
    /// Distance of the thresholds that are tried.
    pub threshold_step: f64,
}

impl SelectivityThresholds {
    /// Reads the file; `place` is how errors cite it. An error if a number is missing, misspelled, of the wrong kind or
    /// out of range.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let numbers: Self = fitting(text, place)?;
        let wrong = [
            ("threshold_step", !(0.001..=1.0).contains(&numbers.threshold_step)),
            ("found_ends", !numbers.found_ends.is_sorted()),
            ("rank_ends", !numbers.rank_ends.is_sorted()),
        ];
        match wrong.iter().find(|(_, is_wrong)| *is_wrong) {
            Some((key, _)) => Err(Error::failed(format!("{place}: `{key}` is out of range or order"))),
            None => Ok(numbers),
        }
    }
}
