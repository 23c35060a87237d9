//! Selectivity: how probable one exact follow-up is, given what the result looks like that it would follow. A link says "after
//! Glob, Read comes with 0.32"; whether *this* path is read next depends on how many there are, what kind of list they stand
//! in, which of them it is. Candidates are counted in a small set of named cells, one with few trials falls back on a coarser
//! one ([`table`]), and the threshold is read off a curve over the training sessions ([`backtest`]).

pub mod report;

pub mod backtest;
pub mod file;
pub mod table;

use std::sync::Arc;

use serde::Deserialize;

use crate::base::data::fitting;
use crate::base::error::{Error, Result};
use crate::base::names::{Names, Sym};
use crate::logs::values::List;
use crate::mine::projections::ToldHistory;
use crate::planner::known_tools::KnownTools;
use crate::planner::numbers::JudgeNumbers;
use crate::planner::opportunities::{Odds, Opportunity, OpportunityEnd, moments};
use crate::planner::selectivity::file::Selectivity;
use crate::planner::selectivity::table::{Estimate, Feature, Features, FollowUpLink, JudgedCandidate, ListKind};

/// The data file.
pub const SHEET: &str = "selectivity.toml";

/// The numbers of `rules/selectivity.toml`; the file says where each comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SelectivityThresholds {
    pub features: Vec<Feature>,
    pub found_ends: Vec<u32>,
    /// Upper ends of the groups of ranks.
    pub rank_ends: Vec<u32>,
    pub trials_min: u64,
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

/// What stands behind the symbols of a moment.
#[derive(Clone, Copy)]
pub struct Named<'a> {
    tools: &'a Names,
    arguments: &'a Names,
}

impl<'a> Named<'a> {
    /// The names of a history and its value models.
    pub fn new(told: ToldHistory<'a>, known: &'a KnownTools<'_>) -> Self {
        Self { tools: &known.names, arguments: &told.values.names }
    }

    fn link(&self, from: Sym, to: Sym, argument: Sym) -> FollowUpLink {
        FollowUpLink {
            from: self.tools.text(from).to_owned(),
            to: self.tools.text(to).to_owned(),
            argument: self.arguments.text(argument).to_owned(),
        }
    }
}

/// What a moment tells before the agent goes on.
pub fn features(moment: &Opportunity) -> Features {
    let has = |flag: u8| moment.flags & flag != 0;
    let list = if has(List::CONTEXT) {
        ListKind::Context
    } else if has(List::FILES) {
        ListKind::Files
    } else {
        ListKind::Lines
    };
    Features { found: moment.found.into(), list, rank: moment.new_rank.into(), same_directory: moment.same_parent }
}

/// The moments of a history that are candidates, as examples. What the context has read already is L0's business, a tool
/// that may not be called ahead is nobody's, and of a list only as many values count as are projected.
pub fn examples(told: ToldHistory<'_>, known: &KnownTools<'_>, numbers: &JudgeNumbers) -> Vec<JudgedCandidate> {
    let named = Named::new(told, known);
    // There are few links, and very many candidates.
    let links_of = |tool: Sym| -> Vec<Arc<FollowUpLink>> {
        known.get(tool).links.iter().map(|link| Arc::new(named.link(tool, link.to, link.argument))).collect()
    };
    let links: Vec<_> = (0..known.names.texts().len() as u32).map(|tool| links_of(Sym(tool))).collect();
    let is_candidate = |moment: &Opportunity| {
        let link = &known.get(moment.from).links[usize::from(moment.link)];
        let is_projected = !moment.already_read && usize::from(moment.new_rank) <= link.arguments_max;
        is_projected && known.get(moment.to).speculatable
    };
    let example = |moment: Opportunity| JudgedCandidate {
        session: moment.session,
        trigger: moment.trigger.into(),
        link: Arc::clone(&links[moment.from.0 as usize][usize::from(moment.link)]),
        features: features(&moment),
        exact: moment.outcome == OpportunityEnd::Exact,
        target: moment.outcome >= OpportunityEnd::Target,
    };
    moments(told, known, numbers, &|moment| is_candidate(&moment).then(|| example(moment)))
}

/// Probabilities for the planner: that of the cell, or none at all below the threshold.
pub struct Selective<'a> {
    pub learned: &'a Selectivity,
    pub numbers: &'a SelectivityThresholds,
    /// The names behind moments.
    pub named: Named<'a>,
}

impl Selective<'_> {
    /// What is known of a moment.
    pub fn estimate(&self, moment: &Opportunity) -> Option<Estimate> {
        self.learned.table.estimate(
            &self.named.link(moment.from, moment.to, moment.argument),
            &features(moment),
            self.numbers,
        )
    }
}

impl Odds for Selective<'_> {
    fn of(&self, moment: &Opportunity) -> Option<f64> {
        let admitted = |estimate: &Estimate| self.learned.threshold.is_some_and(|least| estimate.score() >= least);
        let estimate = self.estimate(moment).filter(admitted);
        Some(estimate.map_or(0.0, |estimate| estimate.counts.exact().value()))
    }
}
