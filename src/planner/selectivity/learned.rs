//! Selectivity learned from the moments of a history: the table, the threshold, and how they do on other sessions.

use crate::base::bootstrap::Resampling;
use crate::planner::contexts::PlannerHistory;
use crate::planner::known_tools::KnownTools;
use crate::planner::opportunities::Opportunity;
use crate::planner::selectivity::SelectivityThresholds;
use crate::planner::selectivity::backtest::{SelectiveBacktest, backtest, judged_by};
use crate::planner::selectivity::curve::{ThresholdPoint, point};
use crate::planner::selectivity::file::Selectivity;
use crate::planner::selectivity::odds::{Named, WaitWindow, examples};

/// What was learned and how it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// Learned and judged within the next few calls.
    pub backtest: SelectiveBacktest,
    /// The same prefetches on the other sessions, judged within each of [`WaitWindow::ALL`]; none without a threshold.
    pub judged: Option<[ThresholdPoint; WaitWindow::ALL.len()]>,
    /// The share of exact calls that was asked for.
    pub target: f64,
}

impl Learned {
    /// Learns on the sessions marked in `trains` and judges on the rest.
    pub fn new(
        moments: &[Opportunity],
        told: PlannerHistory<'_>,
        known: &KnownTools<'_>,
        trains: &[bool],
        target: f64,
        numbers: &SelectivityThresholds,
        resampling: &Resampling,
    ) -> Self {
        let named = Named::new(told, known);
        let is_training = |session: u32| trains[session as usize];
        let of_window = |window: WaitWindow| examples(moments, window, &named, known);
        let backtest = backtest(&of_window(WaitWindow::Calls), &is_training, target, numbers, resampling);
        let judged = backtest.threshold().map(|threshold| {
            WaitWindow::ALL.map(|window| {
                let candidates = of_window(window);
                let held_out = candidates.iter().filter(|example| !is_training(example.session));
                point(&judged_by(&backtest.table, held_out, numbers), threshold, resampling)
            })
        });
        Self { backtest, judged, target }
    }

    /// What a planner needs of it.
    pub fn selectivity(&self) -> Selectivity {
        Selectivity { threshold: self.backtest.threshold(), table: self.backtest.table.clone() }
    }
}
