//! Forecasts of the policies compared with what came: what the cache reads with the slack that was known, and how large
//! a context is after a compaction.

use std::collections::BTreeMap;

use crate::base::backtest::{
    BacktestNumbers, Forecast, ForecastCoverage, Promise, PromiseCoverage, cuts, over_clusters,
};
use crate::base::bootstrap::SessionTrials;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::numbers::WEEK_MS;
use crate::logs::trace::{Millis, NO_TIME};
use crate::whatif::compaction::{CompactionThresholds, carry};
use crate::whatif::prompt_cache::PromptCacheThresholds;
use crate::whatif::prompt_cache::slack::TriedSlacks;
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::workload::Workload;

/// Name of what is read with the slack of lifetimes that was known.
pub const SLACK: &str = "reads with the fitted slack";
/// Name of sizes after compactions.
pub const CARRY: &str = "sizes after compactions";

/// Both, judged in the weeks that the other statistics are judged in.
pub fn coverage(workload: &Workload, data: &Data, numbers: &BacktestNumbers) -> Result<Vec<PromiseCoverage>> {
    let cache = data.read("policies/prompt_cache.toml", PromptCacheThresholds::parse)?;
    let compaction = data.read("policies/compaction.toml", CompactionThresholds::parse)?;
    let simulator = Simulator::new(&workload.timeline, &workload.sizes, &cache.cache_rules, &workload.prices);
    let fit = &cache.fit;
    let reads = TriedSlacks::new(&simulator, fit, |_| false)
        .forecasts(fit.interval_percent / 100.0, fit.unknown_percent / 100.0);
    let carried = carry::compactions(&workload.timeline, &workload.sizes, &compaction);
    let after = carry::forecasts(&carried, &compaction);
    let from = judged_from(workload, numbers);
    let of = |name, percent: f64, forecasts: &[Forecast]| held(name, percent / 100.0, forecasts, from, numbers);
    Ok(vec![
        of((SLACK, "weeks"), fit.interval_percent, &reads),
        of((CARRY, "compactions"), compaction.client.reattach.interval_percent, &after),
    ])
}

/// The first week that is judged; none while too few sessions are known.
fn judged_from(workload: &Workload, numbers: &BacktestNumbers) -> Option<Millis> {
    let mut starts: BTreeMap<u32, Millis> = BTreeMap::new();
    for (_, request) in workload.timeline.counted().filter(|(_, request)| request.start != NO_TIME) {
        let start = starts.entry(workload.timeline.chains[request.chain as usize].session).or_insert(request.start);
        *start = request.start.min(*start);
    }
    let mut starts: Vec<Millis> = starts.into_values().collect();
    starts.sort_unstable();
    cuts(&starts, numbers).first().map(|cut| cut.week_ms)
}

/// How often the intervals of forecasts held, week by week.
pub fn held(
    (statistic, unit): (&str, &str),
    promised: f64,
    forecasts: &[Forecast],
    from: Option<Millis>,
    numbers: &BacktestNumbers,
) -> PromiseCoverage {
    let mut weeks: BTreeMap<i64, SessionTrials> = BTreeMap::new();
    let starts = |one: &&Forecast| from.is_some_and(|from| one.week.saturating_mul(WEEK_MS) >= from);
    for one in forecasts.iter().filter(starts) {
        let tally = weeks.entry(one.week).or_default();
        *tally = (tally.0 + u64::from(one.holds()), tally.1 + 1);
    }
    let tallies: Vec<SessionTrials> = weeks.values().copied().collect();
    let week =
        |(week, (held, judged)): (i64, SessionTrials)| ForecastCoverage { week_ms: week * WEEK_MS, held, judged };
    PromiseCoverage {
        statistic: statistic.to_owned(),
        unit: unit.to_owned(),
        promise: Promise::AtLeast(promised),
        tolerance: numbers.tolerance,
        weeks: weeks.into_iter().map(week).collect(),
        distinct: tallies.iter().map(|(_, judged)| judged).sum(),
        interval: over_clusters(&tallies, &numbers.resampling),
    }
}
