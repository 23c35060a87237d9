//! The precision–coverage curve: what is fetched from which threshold on, how often it is exactly what was asked for,
//! and how many answers get anything fetched behind them at all.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::bootstrap::{Resampling, SessionTrials, interval};
use crate::base::stats::Share;

/// A candidate with its score and what became of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Its session.
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
    for candidate in scored.iter().filter(|candidate| candidate.score.is_some_and(|score| score >= threshold)) {
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
