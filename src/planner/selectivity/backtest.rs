//! Learned on earlier sessions, judged on later ones: the only figures that say anything about tomorrow. And the curve of
//! precision and coverage: what is fetched from which threshold on, and how often it is exactly what was asked for.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::bootstrap::{Resampling, SessionTrials, interval};
use crate::base::stats::Share;
use crate::planner::selectivity::SelectivityThresholds;
use crate::planner::selectivity::file::Selectivity;
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
}

impl SelectiveBacktest {
    /// How often what the threshold lets through was exactly what was asked for, in each of the other sessions.
    pub fn by_session<'e>(
        &self,
        held_out: impl Iterator<Item = &'e JudgedCandidate>,
        numbers: &SelectivityThresholds,
    ) -> BTreeMap<u32, SessionTrials> {
        let mut sessions: BTreeMap<u32, SessionTrials> = BTreeMap::new();
        let least = self.threshold().unwrap_or(f64::INFINITY);
        for candidate in judged_by(&self.table, held_out, numbers).iter().filter(|one| one.reaches(least)) {
            let (exact, all) = sessions.entry(candidate.session).or_default();
            (*exact, *all) = (*exact + u64::from(candidate.exact), *all + 1);
        }
        sessions
    }

    /// From which score on a candidate is fetched; none if none is.
    pub fn threshold(&self) -> Option<f64> {
        self.chosen.as_ref().map(|point| point.threshold)
    }

    /// What came of the threshold on the other sessions; none without one.
    pub fn judged(&self) -> Option<&ThresholdPoint> {
        self.held_out.iter().find(|point| self.threshold() == Some(point.threshold))
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
    let held_out = curve(&judged_by(&table, held_out, numbers), &tried, resampling);
    let chosen = operating_point(&training, target).cloned();
    SelectiveBacktest { table, training, held_out, chosen }
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
    pub backtest: SelectiveBacktest,
    /// The share of exact calls that was asked for.
    pub target: f64,
}

impl Learned {
    /// Learns on the sessions marked in `trains` and judges on the rest.
    pub fn new(
        examples: &[JudgedCandidate],
        trains: &[bool],
        target: f64,
        numbers: &SelectivityThresholds,
        resampling: &Resampling,
    ) -> Self {
        let is_training = |session: u32| trains[session as usize];
        Self { backtest: backtest(examples, &is_training, target, numbers, resampling), target }
    }

    /// What a planner needs of it.
    pub fn selectivity(&self) -> Selectivity {
        Selectivity { threshold: self.backtest.threshold(), table: self.backtest.table.clone() }
    }
}

/// A candidate with its score and what became of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    pub session: u32,
    /// The answer that it came from.
    pub trigger: u64,
    /// What is held against the threshold; none where nothing is known of its link.
    pub score: Option<f64>,
    /// Whether exactly this call was made soon after.
    pub exact: bool,
    /// Whether a call with this argument was made.
    pub target: bool,
}

impl Scored {
    fn reaches(&self, threshold: f64) -> bool {
        self.score.is_some_and(|score| score >= threshold)
    }
}

/// What comes of one threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct ThresholdPoint {
    /// Candidates with at least this score are fetched.
    pub threshold: f64,
    /// Answers with a fetched candidate, of all with a candidate.
    pub coverage: Share,
    /// Fetched candidates that were exactly called; its interval takes them as independent.
    pub exact: Share,
    /// Fetched candidates that were called with the argument.
    pub target: Share,
    /// The interval of `exact` over sessions.
    pub exact_sessions: Option<(f64, f64)>,
    /// The interval of `target` over sessions.
    pub target_sessions: Option<(f64, f64)>,
    /// Sessions with a fetched candidate.
    pub sessions: u64,
}

impl ThresholdPoint {
    /// The wider of the intervals of `exact`, over sessions and over prefetches; none without sessions.
    pub fn exact_widest(&self) -> Option<(f64, f64)> {
        self.exact_sessions.map(|(low, high)| (low.min(self.exact.lower), high.max(self.exact.upper)))
    }
}

/// Thresholds from 0 to 1.
pub fn thresholds(step: f64) -> Vec<f64> {
    let steps = (1.0 / step).round().max(1.0);
    (0..=steps as u32).map(|number| f64::from(number) / steps).collect()
}

/// The points of these thresholds.
pub fn curve(scored: &[Scored], thresholds: &[f64], resampling: &Resampling) -> Vec<ThresholdPoint> {
    thresholds.iter().map(|threshold| point(scored, *threshold, resampling)).collect()
}

/// What comes of a threshold. The order of the candidates does not matter.
pub fn point(scored: &[Scored], threshold: f64, resampling: &Resampling) -> ThresholdPoint {
    let all: BTreeSet<u64> = scored.iter().map(|candidate| candidate.trigger).collect();
    let mut reached = BTreeSet::new();
    let mut sessions: BTreeMap<u32, (SessionTrials, SessionTrials)> = BTreeMap::new();
    for candidate in scored.iter().filter(|candidate| candidate.reaches(threshold)) {
        reached.insert(candidate.trigger);
        let (exact, target) = sessions.entry(candidate.session).or_default();
        *exact = (exact.0 + u64::from(candidate.exact), exact.1 + 1);
        *target = (target.0 + u64::from(candidate.exact || candidate.target), target.1 + 1);
    }
    let exact: Vec<SessionTrials> = sessions.values().map(|(exact, _)| *exact).collect();
    let target: Vec<SessionTrials> = sessions.values().map(|(_, target)| *target).collect();
    let sum = |tallies: &[SessionTrials]| {
        let (k, n) = tallies.iter().fold((0, 0), |sum, tally| (sum.0 + tally.0, sum.1 + tally.1));
        Share::new(k, n)
    };
    ThresholdPoint {
        threshold,
        coverage: Share::new(reached.len() as u64, all.len() as u64),
        exact: sum(&exact),
        target: sum(&target),
        exact_sessions: interval(&exact, resampling),
        target_sessions: interval(&target, resampling),
        sessions: sessions.len() as u64,
    }
}

/// The point to work at: the smallest threshold at which the exact share reaches the target even at the lower end of both
/// its intervals, over prefetches and over sessions; none if there is none. Either alone can be too sure: one over
/// prefetches where a single session has most of them, the other where only few sessions have any. Below the target
/// itself no threshold is tried: there the good cells would pay for bad ones.
pub fn operating_point(curve: &[ThresholdPoint], target: f64) -> Option<&ThresholdPoint> {
    let low = |point: &ThresholdPoint| point.exact_widest().map_or(0.0, |(low, _)| low);
    let reaching = curve.iter().filter(|point| point.threshold >= target && low(point) >= target);
    reaching.min_by(|a, b| a.threshold.total_cmp(&b.threshold))
}
