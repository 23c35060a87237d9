//! Bounds of follow-up shares that hold on sessions to come.
//!
//! Four things make a share look surer than it is: calls of one session hang together (the design effect), the best of
//! several lags is taken (a smaller tail for each), what comes is as uncertain as what was (both variances), and habits
//! drift. Against the last, new sessions weigh more, and the interval is made as wide as the user's own past asks for:
//! bounds that would have been written week by week are held against what came after.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::base::backtest::{BacktestNumbers, Coverage, Cut, Promise, cuts};
use crate::base::bootstrap::Tally;
use crate::base::clustered::Clustered;
use crate::base::names::Sym;
use crate::base::normal::t_quantile_above;
use crate::base::stats::FollowUpCount;
use crate::mine::follow_ups::{FollowUps, SessionCounts};
use crate::mine::shuffled::Pair;

/// How bounds are made: `[follow_ups]` of `rules/backtest.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundNumbers {
    /// Share of the bounds that hold.
    pub promise: f64,
    /// Days after which a session weighs half.
    pub half_life_days: f64,
    /// Later steps from which on a bound is judged.
    pub later_steps_min: u64,
    /// Judged bounds from which on the past says how wide an interval must be.
    pub judged_min: usize,
}

/// Which follow-ups become links: the thresholds of rule T1.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkNumbers {
    /// Steps with the earlier tool.
    pub steps_min: u64,
    /// Sessions with the pair.
    pub sessions_min: u64,
    /// Lower bound.
    pub probability_min: f64,
    /// Links of one tool.
    pub links_max: usize,
    /// Steps between the two.
    pub lags: Vec<u32>,
}

/// All numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// Where to cut.
    pub backtest: BacktestNumbers,
    /// How wide.
    pub bounds: BoundNumbers,
    /// Which.
    pub links: LinkNumbers,
}

/// One pair as it was known.
struct Known {
    pair: Pair,
    share: Clustered,
    support: u64,
    trials: u64,
    sessions: u64,
}

impl FollowUps {
    /// Every pair with its counts and bounds, by tools and lag.
    pub fn rows(&self, numbers: &Numbers) -> Vec<FollowUpCount> {
        let width = width(&self.sessions, numbers);
        let row = |known: Known| {
            let (lower, upper) = known.share.ahead(errors(&known, width, numbers));
            let chance = self.chances.get(&known.pair).copied().unwrap_or_default();
            let Known { pair: (from, to, lag), support, trials, sessions, .. } = known;
            FollowUpCount { from, to, lag, support, sessions, trials, lower, upper, chance }
        };
        known(&self.sessions, numbers).into_iter().map(row).collect()
    }

    /// How many of the bounds that would have been written week by week held.
    pub fn coverage(&self, statistic: &str, numbers: &Numbers) -> Coverage {
        let judge = |cut: Cut| -> Tally {
            let (known, later) = self.sessions.split_at(cut.known);
            let judged = judged(known, later, width(known, numbers), numbers);
            let held = judged.iter().filter(|judged| judged.came >= judged.lower).count();
            (held as u64, judged.len() as u64)
        };
        let promise = Promise::AtLeast(numbers.bounds.promise);
        let cuts = cuts(&self.starts(), &numbers.backtest);
        Coverage::of((statistic, "bounds"), promise, &cuts, &numbers.backtest, &judge)
    }
}

/// How many standard errors wide the bounds of these sessions must be, as their own past says; 0 if it says too little.
fn width(sessions: &[SessionCounts], numbers: &Numbers) -> f64 {
    let starts: Vec<i64> = sessions.iter().map(|session| session.start).collect();
    let of_cut = |cut: Cut| {
        let (known, later) = sessions.split_at(cut.known);
        judged(known, later, 0.0, numbers).into_iter().map(|judged| judged.errors)
    };
    let mut errors: Vec<f64> = cuts(&starts, &numbers.backtest).into_iter().flat_map(of_cut).collect();
    if errors.len() < numbers.bounds.judged_min {
        return 0.0;
    }
    errors.sort_by(f64::total_cmp);
    let rank = (numbers.bounds.promise * (errors.len() + 1) as f64).ceil() as usize;
    errors[rank.clamp(1, errors.len()) - 1]
}

/// A bound against what came.
struct Judged {
    lower: f64,
    /// The later share.
    came: f64,
    /// How many errors below the share that was known.
    errors: f64,
}

/// The links that would have been written, as far as enough came later to judge them.
fn judged(known: &[SessionCounts], later: &[SessionCounts], width: f64, numbers: &Numbers) -> Vec<Judged> {
    let judge = |(link, lower): (Known, f64)| {
        let (from, ..) = link.pair;
        let sum = |of: &dyn Fn(&SessionCounts) -> Option<u64>| later.iter().filter_map(of).sum::<u64>();
        let trials = sum(&|session| session.trials.get(&from).copied());
        let came = sum(&|session| session.support.get(&link.pair).copied()) as f64 / trials as f64;
        let is_enough = trials >= numbers.bounds.later_steps_min.max(1);
        is_enough.then(|| Judged { lower, came, errors: link.share.errors_above(came) })
    };
    links(known, width, numbers).into_iter().filter_map(judge).collect()
}

/// What would have been written: of each pair the lag with the highest bound, of each tool the strongest pairs.
fn links(sessions: &[SessionCounts], width: f64, numbers: &Numbers) -> Vec<(Known, f64)> {
    let LinkNumbers { steps_min, sessions_min, probability_min, links_max, .. } = numbers.links;
    let mut best: BTreeMap<Sym, BTreeMap<Sym, (Known, f64)>> = BTreeMap::new();
    for known in known(sessions, numbers) {
        let lower = known.share.ahead(errors(&known, width, numbers)).0;
        if known.sessions < sessions_min || known.trials < steps_min || lower < probability_min {
            continue;
        }
        let (from, to, _) = known.pair;
        let of_tool = best.entry(from).or_default();
        if of_tool.get(&to).is_none_or(|(_, other)| lower > *other) {
            of_tool.insert(to, (known, lower));
        }
    }
    let strongest = |of_tool: BTreeMap<Sym, (Known, f64)>| {
        let mut links: Vec<(Known, f64)> = of_tool.into_values().collect();
        links.sort_by(|a, b| b.1.total_cmp(&a.1));
        links.truncate(links_max);
        links
    };
    best.into_values().flat_map(strongest).collect()
}

/// Standard errors of a bound: what its tail asks for, each lag being a look of its own, or what the past asks for.
fn errors(known: &Known, width: f64, numbers: &Numbers) -> f64 {
    let looks = numbers.links.lags.len().max(1) as f64;
    let tail = (1.0 - numbers.bounds.promise) / looks;
    t_quantile_above(tail, known.share.clusters.saturating_sub(1)).max(width)
}

/// Every pair with its counts over sessions, which stand in order.
fn known(sessions: &[SessionCounts], numbers: &Numbers) -> Vec<Known> {
    let last = sessions.last().map_or(0, |session| session.start);
    let half_life = numbers.bounds.half_life_days * 86_400_000.0;
    let mut tools: BTreeMap<Sym, (Clustered, u64)> = BTreeMap::new();
    let mut pairs: BTreeMap<Pair, Vec<(u64, u64, f64)>> = BTreeMap::new();
    for session in sessions {
        let weight = 0.5_f64.powf(last.saturating_sub(session.start) as f64 / half_life);
        for (&tool, &trials) in &session.trials {
            let (share, all) = tools.entry(tool).or_default();
            share.add_trials(trials, weight);
            *all += trials;
        }
        for (&pair, &support) in &session.support {
            let trials = session.trials.get(&pair.0).copied().unwrap_or_default();
            pairs.entry(pair).or_default().push((support, trials, weight));
        }
    }
    let of_pair = |(pair, counts): (Pair, Vec<(u64, u64, f64)>)| {
        let (mut share, trials) = tools.get(&pair.0).copied().unwrap_or_default();
        counts.iter().for_each(|&(support, trials, weight)| share.add_successes(support, trials, weight));
        let support = counts.iter().map(|(support, ..)| support).sum();
        Known { pair, share, support, trials, sessions: counts.len() as u64 }
    };
    pairs.into_iter().map(of_pair).collect()
}
