//! Any statistic as it would have been known until a week, compared with what came after: the only proof that an interval
//! covers. Sessions stand in the order of their start; a *cut* divides those that were known from those that came later. A
//! forecast says at its week where a ratio over sessions to come will lie, as wide as the past asks for.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::base::bootstrap::{Resampling, SessionTrials, TAIL, below, interval};
use crate::base::numbers::{DAY_MS, WEEK_MS, counted, thousands};
use crate::base::stats::{Share, TargetFigure, TargetVerdict, wilson};

/// The part of `rules/backtest.toml` that says where to cut and when to believe.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BacktestNumbers {
    pub known_min: usize,
    pub later_min: usize,
    pub responses_max: usize,
    pub weeks_max: usize,
    pub tolerance: f64,
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
    pub statistic: String,
    /// What is judged, in the plural.
    pub unit: String,
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
        judge: &(dyn Fn(SessionSplit) -> Vec<JudgedCluster> + Sync),
    ) -> Self {
        let judged: Vec<Vec<JudgedCluster>> = cuts.par_iter().map(|&cut| judge(cut)).collect();
        let mut weeks = Vec::new();
        let mut clusters: BTreeMap<u64, (SessionTrials, u64)> = BTreeMap::new();
        for (cut, judged) in cuts.iter().zip(judged) {
            let mut week = ForecastCoverage { week_ms: cut.week_ms, held: 0, judged: 0 };
            for (cluster, (held, judged)) in judged {
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

    /// "289 of 298 bounds (29 different)": what held of all that was judged, and of how many things that was.
    pub fn tally(&self) -> String {
        let Share { k, n, .. } = self.share();
        let unit = self.unit.as_str();
        let judged = unit.strip_suffix('s').map_or_else(|| format!("{} {unit}", thousands(n)), |one| counted(n, one));
        let held = if n == 0 { judged } else { format!("{} of {judged}", thousands(k)) };
        if self.distinct == n { held } else { format!("{held} ({} different)", thousands(self.distinct)) }
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

    /// Whether it passes although surely less than what was promised held, or of a share that was to be met, more.
    pub fn passes_by_tolerance(&self) -> bool {
        let promised = self.promise.share();
        let is_met = |(lower, upper): (f64, f64)| {
            promised <= upper && (lower <= promised || matches!(self.promise, Promise::AtLeast(_)))
        };
        self.verdict() == TargetVerdict::Pass && !self.interval.is_some_and(is_met)
    }

    /// Why nothing may be proposed from it; none unless it surely breaks its promise.
    pub fn broken(&self) -> Option<String> {
        let percent = |share: f64| 100.0 * share;
        (self.verdict() == TargetVerdict::Fail).then(|| {
            format!(
                "{} do not hold on later sessions: {:.1} %, {}, in {}, {:.1} % promised (`devboy tune backtest`)",
                self.statistic,
                percent(self.share().value()),
                self.tally(),
                counted(self.weeks.len() as u64, "week"),
                percent(self.promise.share()),
            )
        })
    }
}

/// One session: an effect, and the whole that it is a part of.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SessionEffect {
    pub effect: f64,
    /// The whole.
    pub of: f64,
}

/// A week with what was known then, and what came after it.
#[derive(Clone, PartialEq, Debug)]
pub struct ForecastWeek {
    /// The week, as in [`SessionSplit::week_ms`].
    pub week_ms: i64,
    /// When what came had come.
    pub until_ms: i64,
    /// The sessions that the forecast stands on.
    pub known: Vec<SessionEffect>,
    /// The sessions that it is about.
    pub came: Vec<SessionEffect>,
}

/// The effect as a share of the whole; none of nothing.
pub fn ratio(parts: &[SessionEffect]) -> Option<f64> {
    let (effect, of) = parts.iter().fold((0.0, 0.0), |(effect, of), part| (effect + part.effect, of + part.of));
    (of > 0.0).then(|| effect / of)
}

/// The ratio, and by how much the one of `coming` sessions may lie below and above it, in 95 of 100 cases: both what is known
/// and what comes are drawn from the known sessions.
pub fn ahead(known: &[SessionEffect], coming: usize, resampling: &Resampling) -> Option<(f64, [f64; 2])> {
    let told = ratio(known)?;
    let mut state = resampling.seed;
    let mut drawn =
        |count: usize| ratio(&(0..count).map(|_| known[below(known.len(), &mut state)]).collect::<Vec<_>>());
    let apart = (0..resampling.samples).filter_map(|_| Some(drawn(coming)? - drawn(known.len())?));
    let mut apart: Vec<f64> = apart.collect();
    apart.sort_by(f64::total_cmp);
    Some((told, [at_share(&apart, TAIL)?.min(0.0), at_share(&apart, 1.0 - TAIL)?.max(0.0)]))
}

/// The forecasts of all attempts, in the order of their weeks. Each interval is stretched until it would have held 95 in 100 of the forecasts
/// of which was known by then what came of them.
pub fn forecasts(attempts: &[ForecastWeek], resampling: &Resampling) -> Vec<(i64, Forecast)> {
    let mut out: Vec<(i64, Forecast)> = Vec::new();
    let mut past: Vec<(i64, f64)> = Vec::new();
    for attempt in attempts {
        let told = ahead(&attempt.known, attempt.came.len(), resampling).zip(ratio(&attempt.came));
        let Some(((predicted, [down, up]), came)) = told else { continue };
        let mut known: Vec<f64> =
            past.iter().filter(|(until, _)| *until <= attempt.week_ms).map(|(_, stretch)| *stretch).collect();
        known.sort_by(f64::total_cmp);
        let stretch = at_share(&known, 1.0 - 2.0 * TAIL).unwrap_or(1.0).max(1.0);
        let (lower, upper) = (predicted + stretch * down - ROUNDING, predicted + stretch * up + ROUNDING);
        out.push((attempt.week_ms, Forecast { week: week_of(attempt.week_ms), predicted, lower, upper, came }));
        let side = if came < predicted { -down } else { up };
        let apart = (came - predicted).abs();
        // What never moved before may not be stretched to anything.
        past.push((attempt.until_ms, if apart <= side { 1.0 } else { (apart / side.max(1e-12)).min(STRETCH_MAX) }));
    }
    out
}

/// What sums in another order may differ by.
const ROUNDING: f64 = 1e-12;
/// An interval is never stretched further: of what had no width nothing can be told.
const STRETCH_MAX: f64 = 100.0;

/// How many of the forecasts held. Those that share what came, which neighbouring weeks do, are one thing.
pub fn coverage(name: &str, attempts: &[ForecastWeek], promise: f64, numbers: &BacktestNumbers) -> PromiseCoverage {
    let told = forecasts(attempts, &numbers.resampling);
    let mut weeks: Vec<SessionSplit> =
        told.iter().map(|(week_ms, _)| SessionSplit { week_ms: *week_ms, known: 0 }).collect();
    weeks.dedup();
    let mut first = (i64::MIN, i64::MIN);
    let mut shared: BTreeMap<i64, i64> = BTreeMap::new();
    for attempt in attempts {
        if attempt.week_ms >= first.1 {
            first = (attempt.week_ms, attempt.until_ms);
        }
        shared.insert(attempt.week_ms, first.0);
    }
    let judge = |cut: SessionSplit| {
        let of_week = || told.iter().filter(|(week_ms, _)| *week_ms == cut.week_ms);
        let held = of_week().filter(|(_, told)| told.holds()).count() as u64;
        vec![(shared[&cut.week_ms].unsigned_abs(), (held, of_week().count() as u64))]
    };
    PromiseCoverage::of((name, "forecasts"), Promise::AtLeast(promise), &weeks, numbers, &judge)
}

/// One prediction and what came.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Forecast {
    /// Weeks since Thursday, 1 January 1970 (UTC). The prediction knows nothing of that week and of later ones.
    pub week: i64,
    pub predicted: f64,
    /// Lower end of its interval.
    pub lower: f64,
    pub upper: f64,
    pub came: f64,
}

impl Forecast {
    /// Whether what came lies in the interval, ends included.
    pub fn holds(&self) -> bool {
        (self.lower..=self.upper).contains(&self.came)
    }
}

/// The week of a time in milliseconds since 1970.
pub fn week_of(ms: i64) -> i64 {
    ms.div_euclid(WEEK_MS)
}

/// The value at a share of sorted values, by the nearest rank: at a half the lower of two in the middle. None of nothing.
pub fn at_share<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = (sorted.len() as f64 * share).ceil().max(1.0) as usize;
    sorted.get(rank.min(sorted.len()).checked_sub(1)?).copied()
}

/// A range in which the next of exchangeable values lies at least so often (split conformal prediction): so many ranks off either end.
/// None while there are too few values for it.
pub fn next_within(values: &[f64], share: f64) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    // The next one is as likely in any of the n + 1 gaps.
    let off = ((1.0 - share) / 2.0 * (n + 1.0)).floor() as usize;
    let place = off.checked_sub(1)?;
    Some((sorted[place], sorted[sorted.len() - off]))
}
