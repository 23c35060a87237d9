//! Bounds of follow-up shares that hold on sessions to come. A share looks surer than it is, since calls of one session hang
//! together (the design effect), the best of several lags is taken (a smaller tail for each), what comes is as uncertain as
//! what was (both variances), and habits drift: new sessions weigh more, and the interval is made as wide as bounds written
//! week by week would have had to be.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::Deserialize;

use crate::base::backtest::{BacktestNumbers, JudgedCluster, Promise, PromiseCoverage, SessionSplit, cuts};
use crate::base::names::Sym;
use crate::base::numbers::DAY_MS;
use crate::base::significance::{quantile_above, t_above};
use crate::base::stats::{Clustered, FollowUpCount};
use crate::mine::follow_ups::{Counts, FollowUps};
use crate::mine::shuffled::LaggedTools;

/// How bounds are made: `[follow_ups]` of `rules/backtest.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BoundNumbers {
    /// Share of the bounds that hold.
    pub promise: f64,
    pub half_life_days: f64,
    pub later_steps_min: u64,
    pub judged_min: usize,
    pub errors_max: f64,
}

/// Which follow-ups become links: the thresholds of rule T1 (`rules/t1_tools.toml`).
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LinkNumbers {
    pub calls_min: u64,
    pub steps_min: u64,
    pub sessions_min: u64,
    /// Lower bound.
    pub probability_min: f64,
    pub q_max: f64,
    pub links_max: usize,
    pub lags: Vec<u32>,
}

/// All numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowUpThresholds {
    /// Where to cut.
    pub backtest: BacktestNumbers,
    pub bounds: BoundNumbers,
    pub links: LinkNumbers,
}

/// One pair as it was known.
struct KnownPair {
    pair: LaggedTools,
    share: Clustered,
    support: u64,
    trials: u64,
    sessions: u64,
}

impl FollowUps {
    /// Every pair with its counts and bounds, by tools and lag.
    pub fn rows(&self, numbers: &FollowUpThresholds) -> Vec<FollowUpCount> {
        self.rows_of_first(self.starts.len(), numbers)
    }

    /// The same over the first sessions.
    pub fn rows_of_first(&self, sessions: usize, numbers: &FollowUpThresholds) -> Vec<FollowUpCount> {
        let end = sessions.min(self.starts.len());
        let past = Past::new(self, &[end], numbers);
        let width = past.width(end);
        let row = |known: &KnownPair| {
            let (lower, upper) = known.share.ahead(past.errors(known, width));
            let chance = self.chances.get(&known.pair).copied().unwrap_or_default();
            let &KnownPair { pair: (from, to, lag), support, trials, sessions, .. } = known;
            FollowUpCount { from, to, lag, support, sessions, trials, lower, upper, chance }
        };
        past.known(end).iter().map(row).collect()
    }

    /// How many of the bounds that would have been written week by week held.
    pub fn coverage(&self, statistic: &str, numbers: &FollowUpThresholds) -> PromiseCoverage {
        let cuts = cuts(&self.starts, &numbers.backtest);
        let ends: Vec<usize> = cuts.iter().map(|cut| cut.known).collect();
        let past = Past::new(self, &ends, numbers);
        // Bounds of one pair rest on the same steps, week after week.
        let pair = |judged: &JudgedBound| u64::from(judged.pair.0.0) << 32 | u64::from(judged.pair.1.0);
        let judge = |cut: SessionSplit| -> Vec<JudgedCluster> {
            let judged = past.judged(cut.known, self.starts.len(), past.width(cut.known));
            judged.iter().map(|judged| (pair(judged), (u64::from(judged.came >= judged.lower), 1))).collect()
        };
        let promise = Promise::AtLeast(numbers.bounds.promise);
        PromiseCoverage::of((statistic, "bounds"), promise, &cuts, &numbers.backtest, &judge)
    }
}

/// What was known of all pairs at the end of each week that is asked for, or that the width of its bounds rests on. Weeks
/// share their pasts: each is summed up once.
struct Past<'s> {
    counted: &'s FollowUps,
    numbers: &'s FollowUpThresholds,
    /// By the number of sessions that were known.
    known: BTreeMap<usize, Vec<KnownPair>>,
    /// Standard errors that the tail of a bound asks for, were the sessions without number.
    normal: f64,
}

/// A bound against what came.
struct JudgedBound {
    pair: LaggedTools,
    lower: f64,
    /// The later share.
    came: f64,
    /// How many errors below the share that was known.
    errors: f64,
}

impl<'s> Past<'s> {
    /// Sums up what must be known to say how wide bounds are after `ends` sessions.
    fn new(counted: &'s FollowUps, ends: &[usize], numbers: &'s FollowUpThresholds) -> Self {
        // Each lag is a look of its own.
        let looks = numbers.links.lags.len().max(1) as f64;
        let normal = quantile_above((1.0 - numbers.bounds.promise) / looks);
        let mut past = Self { counted, numbers, known: BTreeMap::new(), normal };
        let weeks = ends.iter().flat_map(|&end| past.cuts(end)).map(|cut| cut.known);
        let wanted: BTreeSet<usize> = weeks.chain(ends.iter().copied()).collect();
        past.known = wanted.into_par_iter().map(|end| (end, known(counted, end, numbers))).collect();
        past
    }

    /// The weeks of the first sessions.
    fn cuts(&self, end: usize) -> Vec<SessionSplit> {
        cuts(&self.counted.starts[..end], &self.numbers.backtest)
    }

    /// Every pair as it was known after so many sessions.
    fn known(&self, end: usize) -> &[KnownPair] {
        self.known.get(&end).map_or(&[], Vec::as_slice)
    }

    /// How many standard errors wide the bounds must be after so many sessions, as their own past says; 0 if it says too
    /// little.
    fn width(&self, end: usize) -> f64 {
        let bounds = &self.numbers.bounds;
        let of_cut = |cut: SessionSplit| self.judged(cut.known, end, 0.0).into_iter().map(|judged| judged.errors);
        let mut errors: Vec<f64> = self.cuts(end).into_iter().flat_map(of_cut).collect();
        if errors.len() < bounds.judged_min {
            return 0.0;
        }
        errors.sort_by(f64::total_cmp);
        let rank = (bounds.promise * (errors.len() + 1) as f64).ceil() as usize;
        errors[rank.clamp(1, errors.len()) - 1].min(bounds.errors_max)
    }

    /// The links that would have been written after `end` sessions, as far as enough came until `until` to judge them.
    fn judged(&self, end: usize, until: usize, width: f64) -> Vec<JudgedBound> {
        let FollowUps { trials, support, .. } = self.counted;
        let judge = |(link, lower): (&KnownPair, f64)| {
            let (from, ..) = link.pair;
            let sum = |counts: Option<&Counts>| counts.map_or(0, |counts| sum_between(counts, end, until));
            let trials = sum(trials.get(&from));
            if trials < self.numbers.bounds.later_steps_min.max(1) {
                return None;
            }
            let came = sum(support.get(&link.pair)) as f64 / trials as f64;
            Some(JudgedBound { pair: link.pair, lower, came, errors: link.share.errors_above(came) })
        };
        self.links(end, width).into_iter().filter_map(judge).collect()
    }

    /// What would have been written: of each pair the lag with the highest bound, of each tool the strongest pairs.
    fn links(&self, end: usize, width: f64) -> Vec<(&KnownPair, f64)> {
        let LinkNumbers { steps_min, sessions_min, probability_min, links_max, .. } = self.numbers.links;
        let mut best: BTreeMap<Sym, BTreeMap<Sym, (&KnownPair, f64)>> = BTreeMap::new();
        let enough = |known: &&KnownPair| known.sessions >= sessions_min && known.trials >= steps_min;
        for known in self.known(end).iter().filter(enough) {
            let lower = known.share.ahead(self.errors(known, width)).0;
            if lower < probability_min {
                continue;
            }
            let (from, to, _) = known.pair;
            let of_tool = best.entry(from).or_default();
            if of_tool.get(&to).is_none_or(|(_, other)| lower > *other) {
                of_tool.insert(to, (known, lower));
            }
        }
        best.into_values().flat_map(|of_tool| strongest_of(of_tool, links_max)).collect()
    }

    /// Standard errors of a bound: what its tail asks for, or what the past asks for.
    fn errors(&self, known: &KnownPair, width: f64) -> f64 {
        t_above(self.normal, known.share.clusters.saturating_sub(1)).max(width)
    }
}

/// So many links of a tool, those with the highest bounds.
fn strongest_of(of_tool: BTreeMap<Sym, (&KnownPair, f64)>, links_max: usize) -> Vec<(&KnownPair, f64)> {
    let mut links: Vec<(&KnownPair, f64)> = of_tool.into_values().collect();
    links.sort_by(|a, b| b.1.total_cmp(&a.1));
    links.truncate(links_max);
    links
}

/// What was counted in the sessions from one place to another.
fn sum_between(counts: &[(u32, u32)], from: usize, until: usize) -> u64 {
    let place = |session: usize| counts.partition_point(|(place, _)| (*place as usize) < session);
    counts[place(from)..place(until)].iter().map(|(_, count)| u64::from(*count)).sum()
}

/// Every pair with its counts over the first sessions.
fn known(counted: &FollowUps, end: usize, numbers: &FollowUpThresholds) -> Vec<KnownPair> {
    let starts = &counted.starts[..end];
    let last = starts.last().copied().unwrap_or_default();
    let half_life = numbers.bounds.half_life_days * DAY_MS as f64;
    let weight = |start: &i64| 0.5_f64.powf(last.saturating_sub(*start) as f64 / half_life);
    let weights: Vec<f64> = starts.iter().map(weight).collect();
    let seen = |counts: &[(u32, u32)]| counts.partition_point(|(place, _)| (*place as usize) < end);
    let of_tool = |(tool, counts): (&Sym, &Counts)| {
        let (mut share, mut all) = (Clustered::default(), 0);
        for &(place, trials) in &counts[..seen(counts)] {
            share.add_trials(trials.into(), weights[place as usize]);
            all += u64::from(trials);
        }
        (*tool, (share, all))
    };
    let tools: BTreeMap<Sym, (Clustered, u64)> = counted.trials.iter().map(of_tool).collect();
    let of_pair = |(pair, counts): (&LaggedTools, &Counts)| {
        let counts = &counts[..seen(counts)];
        let (mut share, trials) = tools.get(&pair.0).copied().unwrap_or_default();
        // Where a tool was followed it was called: its counts hold all these sessions.
        let mut trials_of_tool = counted.trials.get(&pair.0).into_iter().flatten();
        for &(place, support) in counts {
            let trials = trials_of_tool.find(|(at, _)| *at == place).map_or(0, |(_, trials)| *trials);
            share.add_successes(support.into(), trials.into(), weights[place as usize]);
        }
        let support = counts.iter().map(|(_, support)| u64::from(*support)).sum();
        let sessions = counts.len() as u64;
        (sessions > 0).then_some(KnownPair { pair: *pair, share, support, trials, sessions })
    };
    counted.support.iter().filter_map(of_pair).collect()
}
