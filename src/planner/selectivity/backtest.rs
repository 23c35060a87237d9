//! Learned on earlier sessions, judged on later ones: the only figures that say anything about tomorrow.

use std::collections::BTreeMap;

use crate::base::bootstrap::Resampling;
use crate::mine::projections::ToldHistory;
use crate::planner::known_tools::KnownTools;
use crate::planner::opportunities::Opportunity;
use crate::planner::selectivity::SelectivityThresholds;
use crate::planner::selectivity::curve::{Scored, ThresholdPoint, curve, operating_point, point, thresholds};
use crate::planner::selectivity::file::Selectivity;
use crate::planner::selectivity::odds::{Named, WaitWindow, examples};
use crate::planner::selectivity::table::{JudgedCandidate, LinkCounts};

/// What was learned and how it did.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectiveBacktest {
    /// Counted on the training sessions.
    pub table: LinkCounts,
    /// The training sessions, each judged by all others.
    pub training: Vec<ThresholdPoint>,
    /// The other sessions, judged by all training sessions.
    pub held_out: Vec<ThresholdPoint>,
    /// The point to work at, chosen on the training sessions alone; none if the target is out of reach.
    pub chosen: Option<ThresholdPoint>,
    /// The same threshold on the other sessions.
    pub judged: Option<ThresholdPoint>,
}

impl SelectiveBacktest {
    /// From which score on a candidate is fetched; none if none is.
    pub fn threshold(&self) -> Option<f64> {
        self.chosen.as_ref().map(|point| point.threshold)
    }
}

/// Learns on the sessions that `is_training` names, and judges on the rest. `target` is the share of exact calls that the
/// point to work at must reach.
pub fn backtest(
    examples: &[JudgedCandidate],
    is_training: &dyn Fn(u32) -> bool,
    target: f64,
    numbers: &SelectivityThresholds,
    resampling: &Resampling,
) -> SelectiveBacktest {
    let (training, held_out): (Vec<&JudgedCandidate>, Vec<&JudgedCandidate>) =
        examples.iter().partition(|example| is_training(example.session));
    let table = LinkCounts::learn(training.iter().copied(), numbers);
    let tried = thresholds(numbers.threshold_step);
    let training = curve(&left_out(&training, &table, numbers), &tried, resampling);
    let held_out = judged_by(&table, held_out, numbers);
    let chosen = operating_point(&training, target).cloned();
    SelectiveBacktest {
        judged: chosen.as_ref().map(|chosen| point(&held_out, chosen.threshold, resampling)),
        held_out: curve(&held_out, &tried, resampling),
        table,
        training,
        chosen,
    }
}

/// Candidates with the scores that a table gives them, which must not have counted them.
fn judged_by<'e>(
    table: &LinkCounts,
    examples: impl IntoIterator<Item = &'e JudgedCandidate>,
    numbers: &SelectivityThresholds,
) -> Vec<Scored> {
    examples.into_iter().map(|example| scored(example, table, &LinkCounts::default(), numbers)).collect()
}

/// Every session judged by what the others counted: judged by its own counts, each would look better than it is.
fn left_out(examples: &[&JudgedCandidate], table: &LinkCounts, numbers: &SelectivityThresholds) -> Vec<Scored> {
    let mut sessions: BTreeMap<u32, Vec<&JudgedCandidate>> = BTreeMap::new();
    examples.iter().for_each(|example| sessions.entry(example.session).or_default().push(example));
    let of_session = |examples: &Vec<&JudgedCandidate>| {
        let own = LinkCounts::learn(examples.iter().copied(), numbers);
        examples.iter().map(|example| scored(example, table, &own, numbers)).collect::<Vec<_>>()
    };
    sessions.values().flat_map(of_session).collect()
}

fn scored(example: &JudgedCandidate, table: &LinkCounts, own: &LinkCounts, numbers: &SelectivityThresholds) -> Scored {
    let estimate = table.estimate_beside(own, &example.link, &example.features, numbers);
    Scored {
        session: example.session,
        trigger: example.trigger,
        score: estimate.map(|estimate| estimate.score()),
        exact: example.exact,
        target: example.target,
    }
}

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
        told: ToldHistory<'_>,
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
