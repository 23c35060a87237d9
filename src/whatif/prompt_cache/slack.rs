//! The slack of lifetimes, fitted: on one half of the sessions for the other, and week by week for the weeks that
//! follow.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::backtest::{Forecast, next_within, week_of};
use crate::logs::timeline::requests::Request;
use crate::logs::trace::NO_TIME;
use crate::whatif::prompt_cache::Fit;
use crate::whatif::prompt_cache::params::{Params, Switch};
use crate::whatif::sim::bill;
use crate::whatif::sim::simulator::Simulator;

/// Reads of one week under one slack.
#[derive(Clone, Copy, Default)]
struct Reads {
    /// Error of the reads, of the sessions that are not held out.
    fitted_error: u64,
    /// Of all sessions.
    error: u64,
    /// Tokens read, as simulated.
    simulated: u64,
    billed: u64,
}

/// Every slack that is tried, with the reads of each week.
pub struct TriedSlacks(Vec<(u32, BTreeMap<i64, Reads>)>);

impl TriedSlacks {
    /// Simulates the log under each slack. Of each run only sums are kept: all of them at once would fill the memory.
    pub fn new(observed: &Simulator<'_>, fit: &Fit, is_held_out: impl Fn(&Request) -> bool + Sync) -> Self {
        let cache_rules = observed.cache_rules;
        let slacks = if fit.slack_s.is_empty() { &[cache_rules.params.slack_s][..] } else { &fit.slack_s };
        let under = |&slack_s: &u32| {
            let cache = cache_rules.with(Params { slack_s, ..cache_rules.params });
            (slack_s, by_week(&observed.under(&cache), &is_held_out))
        };
        Self(slacks.par_iter().with_max_len(1).map(under).collect())
    }

    /// The slack that did best on the sessions that are not held out; the first wins ties.
    pub fn best(&self) -> u32 {
        let error = |weeks: &BTreeMap<i64, Reads>| weeks.values().map(|reads| reads.fitted_error).sum::<u64>();
        self.0.iter().min_by_key(|(_, weeks)| error(weeks)).map_or(0, |(slack_s, _)| *slack_s)
    }

    /// Tokens read in each week, predicted with the slack that had done best before it: known until then, judged after. The interval is
    /// that of the weeks before, or `unknown` either way while there are too few of them.
    pub fn forecasts(&self, share: f64, unknown: f64) -> Vec<Forecast> {
        let Some((_, weeks)) = self.0.first() else { return Vec::new() };
        let mut off: Vec<f64> = Vec::new();
        let mut made = Vec::new();
        for &week in weeks.keys() {
            let error = |weeks: &BTreeMap<i64, Reads>| weeks.range(..week).map(|(_, reads)| reads.error).sum::<u64>();
            let best = self.0.iter().min_by_key(|(_, weeks)| error(weeks));
            let Some(reads) = best.and_then(|(_, weeks)| weeks.get(&week)) else { continue };
            let (predicted, came) = (reads.simulated as f64, reads.billed as f64);
            let (low, high) = next_within(&off, share).unwrap_or((1.0 - unknown, 1.0 + unknown));
            made.push(Forecast { week, predicted, lower: predicted * low, upper: predicted * high, came });
            if predicted > 0.0 {
                off.push(came / predicted);
            }
        }
        made
    }
}

fn by_week(simulator: &Simulator<'_>, is_held_out: &impl Fn(&Request) -> bool) -> BTreeMap<i64, Reads> {
    let mut weeks: BTreeMap<i64, Reads> = BTreeMap::new();
    for priced in bill::foretold(simulator, Switch::Off).requests {
        let request = simulator.timeline.request(priced.request);
        let (simulated, billed) = (priced.spent().read, request.usage().cache_read);
        let week = if request.start == NO_TIME { i64::MIN } else { week_of(request.start) };
        let reads = weeks.entry(week).or_default();
        let error = billed.abs_diff(simulated);
        reads.error += error;
        reads.fitted_error += if is_held_out(request) { 0 } else { error };
        reads.simulated += simulated;
        reads.billed += billed;
    }
    weeks
}
