//! Any statistic as it would have been known until a week, held against what came after: the only proof that an
//! interval covers. Sessions stand in the order of their start; a *cut* divides those that were known from those that
//! came later.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::bootstrap::{Resampling, SessionTrials, interval};
use crate::base::numbers::{DAY_MS, WEEK_MS};
use crate::base::stats::{Share, TargetFigure, TargetVerdict, wilson};

/// The part of `rules/backtest.toml` that says where to cut and when to believe.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BacktestNumbers {
    /// Sessions that must be known.
    pub known_min: usize,
    /// Sessions that must come later.
    pub later_min: usize,
    /// Responses that a replay of later sessions is about, at most.
    pub responses_max: usize,
    /// Weeks that are looked at, the latest.
    pub weeks_max: usize,
    /// How far a coverage may be from its promise, as a share.
    pub tolerance: f64,
    /// How its interval is drawn.
    pub resampling: Resampling,
}

/// A division of the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSplit {
    /// Monday of the week whose sessions are the first of the later ones, in milliseconds since 1970.
    pub week_ms: i64,
    /// How many sessions were known.
    pub known: usize,
}

/// From a Monday to the day on which 1970 began.
const FROM_MONDAY_MS: i64 = 3 * DAY_MS;

/// The cuts between weeks. `starts` are the starts of all sessions, in order.
pub fn cuts(starts: &[i64], numbers: &BacktestNumbers) -> Vec<SessionSplit> {
    let week = |start: i64| start.saturating_add(FROM_MONDAY_MS).div_euclid(WEEK_MS);
    let between = (1..starts.len()).filter(|&known| week(starts[known]) != week(starts[known - 1]));
    let enough = between.filter(|&known| known >= numbers.known_min && starts.len() - known >= numbers.later_min);
    let cut = |known: usize| SessionSplit { week_ms: WEEK_MS * week(starts[known]) - FROM_MONDAY_MS, known };
    let mut cuts: Vec<SessionSplit> = enough.map(cut).collect();
    cuts.split_off(cuts.len().saturating_sub(numbers.weeks_max))
}

/// What a statistic promises of what it says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Promise {
    /// This share of it holds, or more.
    AtLeast(f64),
    /// Just this share of it holds.
    About(f64),
}

impl Promise {
    /// The share.
    pub fn share(self) -> f64 {
        match self {
            Self::AtLeast(share) | Self::About(share) => share,
        }
    }
}

/// What was said in one week, and how much of it held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForecastCoverage {
    /// As in [`SessionSplit::week_ms`].
    pub week_ms: i64,
    /// What held.
    pub held: u64,
    /// All that could be judged.
    pub judged: u64,
}

/// What of that is of one thing that hangs together, by its number: of one session, one pair of tools, one week.
pub type JudgedCluster = (u64, SessionTrials);

/// The interval of the share that held, whole clusters drawn with replacement. Of clusters without a miss or without a hit all draws
/// are the same, however few they are: then Wilson's over clusters. One cluster says nothing of others.
pub fn over_clusters(clusters: &[SessionTrials], resampling: &Resampling) -> Option<(f64, f64)> {
    let (lower, upper) = interval(clusters, resampling)?;
    let count = clusters.iter().filter(|(_, judged)| *judged > 0).count() as f64;
    if count <= 1.0 {
        return Some((0.0, 1.0));
    }
    let is_drawn = lower < upper || lower > 0.0 && upper < 1.0;
    Some(if is_drawn { (lower, upper) } else { wilson(lower * count, count) })
}

/// How much of what a statistic said held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromiseCoverage {
    /// Its name.
    pub statistic: String,
    /// What is judged, in the plural.
    pub unit: String,
    /// What it promises.
    pub promise: Promise,
    /// How far it may be from that.
    pub tolerance: f64,
    /// The weeks with something to judge.
    pub weeks: Vec<ForecastCoverage>,
    /// How many different things were judged: weeks share what came later.
    pub distinct: u64,
    /// 95 % interval of the share that held, over what hangs together.
    pub interval: Option<(f64, f64)>,
}

impl PromiseCoverage {
    /// Runs a statistic: `judge` says for a cut how much it would have said and how much of that held, cluster by cluster. What came
    /// later is judged in several weeks, so the interval is over clusters, each with all its weeks.
    pub fn of(
        (statistic, unit): (&str, &str),
        promise: Promise,
        cuts: &[SessionSplit],
        numbers: &BacktestNumbers,
        judge: &dyn Fn(SessionSplit) -> Vec<JudgedCluster>,
    ) -> Self {
        let mut weeks = Vec::new();
        let mut clusters: BTreeMap<u64, (SessionTrials, u64)> = BTreeMap::new();
        for &cut in cuts {
            let mut week = ForecastCoverage { week_ms: cut.week_ms, held: 0, judged: 0 };
            for (cluster, (held, judged)) in judge(cut) {
                (week.held, week.judged) = (week.held + held, week.judged + judged);
                let (all, most) = clusters.entry(cluster).or_default();
                (*all, *most) = ((all.0 + held, all.1 + judged), judged.max(*most));
            }
            weeks.extend((week.judged > 0).then_some(week));
        }
        let tallies: Vec<SessionTrials> = clusters.values().map(|(all, _)| *all).collect();
        Self {
            statistic: statistic.to_owned(),
            unit: unit.to_owned(),
            promise,
            tolerance: numbers.tolerance,
            interval: over_clusters(&tallies, &numbers.resampling),
            distinct: clusters.values().map(|(_, most)| most).sum(),
            weeks,
        }
    }

    /// What held, of all weeks together.
    pub fn share(&self) -> Share {
        let sum = |of: fn(&ForecastCoverage) -> u64| self.weeks.iter().map(of).sum();
        Share::new(sum(|week| week.held), sum(|week| week.judged))
    }

    /// Whether it keeps its promise, give or take the tolerance.
    pub fn verdict(&self) -> TargetVerdict {
        let Some(ends) = self.interval else { return TargetVerdict::NotApplicable };
        let (promised, tolerance) = (self.promise.share(), self.tolerance);
        let below = TargetVerdict::of(ends, TargetFigure::AtLeast(promised - tolerance));
        let above = match self.promise {
            Promise::AtLeast(_) => TargetVerdict::Pass,
            Promise::About(_) => TargetVerdict::of(ends, TargetFigure::AtMost(promised + tolerance)),
        };
        match (below, above) {
            (TargetVerdict::Fail, _) | (_, TargetVerdict::Fail) => TargetVerdict::Fail,
            (TargetVerdict::Pass, TargetVerdict::Pass) => TargetVerdict::Pass,
            _ => TargetVerdict::Open,
        }
    }

    /// Why nothing may be proposed from it; none unless it surely breaks its promise.
    pub fn broken(&self) -> Option<String> {
        let percent = |share: f64| 100.0 * share;
        (self.verdict() == TargetVerdict::Fail).then(|| {
            format!(
                "{} do not hold on later sessions: {:.1} % of {} {} in {} weeks, {:.1} % promised (`devboy tune backtest`)",
                self.statistic,
                percent(self.share().value()),
                self.distinct,
                self.unit,
                self.weeks.len(),
                percent(self.promise.share()),
            )
        })
    }
}
