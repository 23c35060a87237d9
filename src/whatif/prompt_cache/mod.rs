//! `--policy prompt-cache`: the simulated cache compared with the bill, then asked what other TTLs, layouts and
//! keep-alive would have cost, and why it was missed.

pub mod causes;
pub mod other_models;
pub mod outcome;
pub mod params;
pub mod reference;
pub mod slack;
pub mod tables;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::data::fitting;
use crate::base::error::Result;
use crate::logs::timeline::requests::{Request, Timeline};
use crate::logs::trace::{Millis, Place};
use crate::whatif::calibration::{Calibration, calibrate};
use crate::whatif::chosen::{Policy, PolicyConfigs, PolicyEntry};
use crate::whatif::prompt_cache::other_models::{HotCacheRules, WorkspaceRules};
use crate::whatif::prompt_cache::outcome::{BestPerSession, CacheArm, Cause, IdleReads, PromptCache, SimulationBars};
use crate::whatif::prompt_cache::params::{CacheLayout, CacheLifetime, CacheRules, Params, TtlPolicy};
use crate::whatif::prompt_cache::reference::PublishedStudy;
use crate::whatif::prompt_cache::slack::TriedSlacks;
use crate::whatif::sim::bill::Blind;
use crate::whatif::sim::cells::CellRules;
use crate::whatif::sim::cost::{Cost, Total};
use crate::whatif::sim::money::Prices;
use crate::whatif::sim::outcome::{CostComparison, by_session};
use crate::whatif::sim::params::ReadOnlyWith;
use crate::whatif::sim::run::SimulatedRun;
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::unlogged::unlogged;
use crate::whatif::sim::{bill, unlogged as unlogged_report};
use crate::whatif::simulation::{Finished, PolicyShare, Ready, Simulation};

/// The sheet `rules/policies/prompt_cache.toml`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct PromptCacheThresholds {
    #[serde(flatten)]
    pub cache_rules: CacheRules,
    /// Which variants stand beside the baseline, and when one wins.
    pub compare: Compare,
    /// What the simulation is held against.
    pub bars: SimulationBars,
    /// What is fitted on half of the sessions.
    pub fit: Fit,
    pub reference: PublishedStudy,
    /// The router's settings.
    pub router: HotCacheRules,
    /// What counts as a write to a workspace.
    pub workspace: WorkspaceRules,
}

/// Which variants stand beside the baseline, and when one wins.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Compare {
    pub winner_percent_min: f64,
    pub ttl: Vec<TtlPolicy>,
    pub layout: Vec<CacheLayout>,
    pub keepalive_s: Vec<u32>,
}

/// What is fitted on half of the sessions, and tried on the other.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Fit {
    /// Slacks in seconds; the first wins ties.
    pub slack_s: Vec<u32>,
    pub interval_percent: f64,
    /// How far off a week may be before enough weeks were seen, in percent.
    pub unknown_percent: f64,
}

impl PromptCacheThresholds {
    /// Reads the sheet; `place` is where it stands, for messages.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        // Of a part that is laid flat into the whole serde does not know the lines any more; read by itself it tells them.
        fitting::<CacheRules>(text, place)?;
        fitting(text, place)
    }
}

/// Runs everything. `simulator` has the parameters that were asked for.
pub fn run(
    simulator: &Simulator<'_>,
    thresholds: &PromptCacheThresholds,
    prices: &Prices,
    cells: &CellRules,
) -> PromptCache {
    let shipped = simulator.cache_rules.with(thresholds.cache_rules.params);
    let observed = simulator.under(&shipped);
    let baseline = observed.baseline();
    let predicted = Blind::new(&observed);
    let is_main = |request: &Request| simulator.timeline.chain(request.chain).place == Place::Main;
    let is_judged = |request: &Request| is_main(request) && is_held_out(simulator, request);
    let all = bill::compare(&observed, &predicted, |_| true);
    let error = all.cost_error().size().max(thresholds.compare.winner_percent_min / 100.0);
    let simulated = simulator.baseline();
    let compared = CostComparison::new(simulator, &baseline, &simulated, cells);
    let (billed, uncached) = bill::with_and_without_cache(simulator);
    let causes = causes::attribute(&observed);
    let expired = causes.get(&Cause::TtlExpiry).copied().unwrap_or_default();
    let asks_of_workspace = simulator.cache_rules.params.report.workspace.is_on();
    let tried = TriedSlacks::new(&observed, &thresholds.fit, |request| is_held_out(simulator, request));
    let slack_s_fitted = tried.best();
    let best = observed.cache_rules.with(Params { slack_s: slack_s_fitted, ..observed.cache_rules.params });
    let fitted = Blind::new(&observed.under(&best));
    PromptCache {
        bars: thresholds.bars,
        billed,
        uncached,
        baseline: baseline.total(),
        simulated: simulated.total(),
        verdict: compared.verdict(error),
        against_bill: all,
        against_bill_main: bill::compare(&observed, &predicted, is_main),
        slack_s_fitted,
        weeks: tried.forecasts(thresholds.fit.interval_percent / 100.0, thresholds.fit.unknown_percent / 100.0),
        weeks_promised: thresholds.fit.interval_percent,
        against_bill_held_out: bill::compare(&observed, &fitted, is_judged),
        best_per_session: best_per_session(simulator, &shipped, &baseline, &thresholds.compare),
        arms: arms(simulator, &shipped, &baseline, (&thresholds.compare, cells), error),
        idle_reads: idle_reads(simulator, prices, &thresholds.compare.keepalive_s),
        reference: reference::own(&observed, &baseline, &expired, &billed, &thresholds.reference),
        causes,
        stated: reference::stated(simulator),
        hot_cache: other_models::hot_cache(simulator, &thresholds.router),
        threshold: other_models::threshold(simulator),
        workspace: asks_of_workspace.then(|| other_models::workspace(simulator, &thresholds.workspace)),
        unlisted_minimum: unlisted(simulator.timeline, simulator.cache_rules),
        without_usage: baseline.without_usage,
        compactions: simulator.timeline.boundaries.len() as u64,
    }
}

/// Half of the sessions, by the parity of their ids: nothing is fitted on them.
pub fn is_held_out(simulator: &Simulator<'_>, request: &Request) -> bool {
    simulator.timeline.session_of(request).id.0[0] & 1 == 1
}

/// All variants, each with one parameter other than shipped.
fn arms(
    simulator: &Simulator<'_>,
    shipped: &CacheRules,
    baseline: &SimulatedRun,
    (compare, cells): (&Compare, &CellRules),
    error: f64,
) -> Vec<CacheArm> {
    let Compare { ttl, layout, keepalive_s, .. } = compare;
    let was = shipped.params;
    let ttl = ttl.iter().map(|&ttl| (format!("ttl={ttl}"), Params { ttl, ..was }));
    let layout = layout.iter().map(|&layout| (format!("layout={}", layout.into_str()), Params { layout, ..was }));
    let keep =
        keepalive_s.iter().map(|&keepalive_s| (format!("keepalive_s={keepalive_s}"), Params { keepalive_s, ..was }));
    let arm = |(name, params)| {
        let cache_rules = shipped.with(params);
        let run = simulator.under(&cache_rules).baseline();
        let compared = CostComparison::new(simulator, baseline, &run, cells);
        let (change_lower, change_upper) = compared.interval.unzip();
        CacheArm {
            name,
            total: compared.after,
            against: compared.before,
            change_lower,
            change_upper,
            verdict: compared.verdict(error),
            sessions_better: compared.sessions_with(|change| change < 0.0),
            sessions_worse: compared.sessions_with(|change| change > 0.0),
        }
    };
    ttl.chain(layout).chain(keep).map(arm).collect()
}

/// Every session under its own best lifetime; the observed one wins ties.
fn best_per_session(
    simulator: &Simulator<'_>,
    shipped: &CacheRules,
    baseline: &SimulatedRun,
    compare: &Compare,
) -> BestPerSession {
    let under = |&ttl: &TtlPolicy| simulator.under(&shipped.with(Params { ttl, ..shipped.params })).baseline();
    let runs: Vec<SimulatedRun> = compare.ttl.iter().map(under).collect();
    let alike = SimulatedRun::priced_alike(&[baseline].into_iter().chain(&runs).collect::<Vec<_>>());
    let observed = |(session, total): (u32, Total)| (session, (total.cost, TtlPolicy::Observed.to_string()));
    let mut best: BTreeMap<u32, (Cost, String)> = by_session(simulator, &alike[0]).into_iter().map(observed).collect();
    for (ttl, run) in compare.ttl.iter().zip(&alike[1..]) {
        for (session, total) in by_session(simulator, run) {
            let Some(held) = best.get_mut(&session) else { continue };
            if held.0.change_to(&total.cost).is_some_and(|change| change < 0.0) {
                *held = (total.cost, ttl.to_string());
            }
        }
    }
    let mut sessions: BTreeMap<String, u64> = BTreeMap::new();
    let mut cost = Cost::default();
    for (each, name) in best.into_values() {
        cost += each;
        *sessions.entry(name).or_default() += 1;
    }
    BestPerSession { cost, against: alike[0].total().cost, sessions }
}

/// Models that the table of minimum prefixes does not list.
pub fn unlisted(timeline: &Timeline, cache_rules: &CacheRules) -> Vec<String> {
    let models: BTreeSet<String> = timeline.models(None).into_iter().map(|model| model.name).collect();
    models.into_iter().filter(|model| !model.is_empty() && cache_rules.listed_minimum(model).is_none()).collect()
}

/// Break-even of keep-alive reads for every model and lifetime that the log wrote with, at the prices of the last such write.
fn idle_reads(simulator: &Simulator<'_>, prices: &Prices, intervals_s: &[u32]) -> Vec<IdleReads> {
    let mut last: BTreeMap<(&str, CacheLifetime), Millis> = BTreeMap::new();
    for (_, request) in simulator.timeline.counted() {
        let spent = simulator.billed(request);
        let written = [(CacheLifetime::FiveMinutes, spent.write_5m), (CacheLifetime::Hour, spent.write_1h)];
        for (class, _) in written.into_iter().filter(|(_, tokens)| *tokens > 0) {
            let at = last.entry((simulator.timeline.names.text(request.model), class)).or_insert(request.start);
            *at = request.start.max(*at);
        }
    }
    let even = |((model, class), at)| {
        let (more, read) = keep_alive_break_even(prices, model, class, at)?;
        // Where reads cost nothing, any number of them is worth a write.
        let reads = more.checked_div(read)?;
        let bridged = |every_s: u32| {
            let lives = Millis::from(every_s) * 1_000 <= class.millis();
            (every_s, lives.then_some((reads + 1) * u64::from(every_s)))
        };
        Some(IdleReads {
            model: model.to_owned(),
            lifetime: class.into_str(),
            write_nano_usd: more + read,
            read_nano_usd: read,
            reads,
            idle_s: intervals_s.iter().copied().map(bridged).collect(),
        })
    };
    last.into_iter().filter_map(even).collect()
}

/// Keep-alive reads that one written prefix may cost before writing it again is cheaper, as a fraction of nano-dollars: what a
/// write costs more than a read, over a read. None for a model without a price at that time.
pub fn keep_alive_break_even(prices: &Prices, model: &str, class: CacheLifetime, at: Millis) -> Option<(u64, u64)> {
    let nano = prices.rates(model, at, 1).filter(|rates| rates.caches)?.nano_usd?;
    let write = match class {
        CacheLifetime::FiveMinutes => nano.write_5m,
        CacheLifetime::Hour => nano.write_1h?,
    };
    Some((write.checked_sub(nano.read)?, nano.read))
}

/// The figures under the names that operators of the agent runtime know. A bundle of workspace files is read anew after an
/// invalidation and held otherwise.
pub fn aliases(found: &PromptCache, calibration: &Calibration) -> BTreeMap<&'static str, Value> {
    let spent = found.simulated.spent;
    let ratio = (spent.prompt() > 0).then(|| spent.read as f64 / spent.prompt() as f64);
    let mut named = BTreeMap::from([
        ("llm_cache_read_tokens_total", json!(spent.read)),
        ("llm_cache_creation_tokens_total", json!(spent.write())),
        ("llm_cache_hit_ratio", json!(ratio)),
        ("llm_compaction_triggered_total{outcome=\"ok\"}", json!(found.compactions)),
        ("llm_prompt_tokens_estimated", json!(spent.prompt())),
    ]);
    if let Some(drift) = calibration.drift.iter().find(|drift| drift.estimator == "fitted") {
        named.insert("llm_prompt_tokens_drift", json!(drift.percent_p50));
    }
    if let Some(workspace) = &found.workspace {
        let misses = workspace.followed_by_break.n;
        named.insert("workspace_cache_hits_total", json!(found.baseline.requests - misses));
        named.insert("workspace_cache_misses_total", json!(misses));
        named.insert("workspace_cache_invalidations_total", json!(workspace.invalidations));
    }
    named
}

/// Parameters that are not read in every layout where nothing but the cache is asked about. Beside another policy they also say
/// how far the log as simulated is off its bill, which had the client's layout.
pub static READ_ONLY_ALONE: &[ReadOnlyWith] = &[
    ReadOnlyWith {
        parameters: &["lookback_blocks", "hidden_forks", "unforeseen"],
        only: "layout=claude-code or static+tail",
        is: |layout| !matches!(layout, "agent-runtime" | "none"),
    },
    ReadOnlyWith {
        parameters: &["cross_session", "min_cacheable", "slack_s"],
        only: "layout other than none",
        is: |layout| layout != "none",
    },
];

/// What the policy says of itself.
pub static POLICY: PolicyEntry = PolicyEntry {
    sheet: "policies/prompt_cache.toml",
    // The cache prices every policy, so its parameters are looked at in any case.
    check: |_| Ok(()),
    // Everything else is read whatever the layout: what these logs are off their bill is told of the cache as it was.
    read_only_with: &[
        ReadOnlyWith { parameters: &["keepalive_max_s"], only: "keepalive_s above 0", is: |seconds| seconds != "0" },
        ReadOnlyWith {
            parameters: &["ttl"],
            only: "layout=claude-code or agent-runtime",
            is: |layout| !matches!(layout, "static+tail" | "none"),
        },
        ReadOnlyWith {
            parameters: &["keepalive_s", "keepalive_max_s"],
            only: "layout other than none",
            is: |layout| layout != "none",
        },
    ],
    without_logs: Some("it has no usage, so there is nothing to hold a cache against"),
    ready,
};

fn ready<'s>(_scene: &'s Simulation<'_>, configs: &PolicyConfigs) -> Result<Ready<'s>> {
    let file = configs.sheet(Policy::PromptCache);
    let thresholds = PromptCacheThresholds::parse(&file.text(), file.place())?;
    let conclude = move |finished: &Finished<'_>| {
        let simulation = finished.simulation;
        // Beside other policies a lifetime is one row; the variants are for whoever asks about the cache alone.
        if !finished.is_named {
            return PolicyShare::default();
        }
        // Variants are held against the cache as it was, whatever was set.
        let shipped = PromptCacheThresholds { cache_rules: simulation.simulator.cache_rules.clone(), ..thresholds };
        let simulator = simulation.simulator.under(finished.cache_rules);
        let found = run(&simulator, &shipped, &simulation.workload.prices, &simulation.workload.cells);
        let calibration = calibrate(&simulation.workload.timeline, &simulation.workload.sizes.rules);
        let hidden = unlogged(&simulation.simulator);
        // Under the cache as it was there is nothing to compare but the variants.
        let headline = (*finished.cache_rules == *simulation.simulator.cache_rules && found.uncached.cost.units > 0)
            .then(|| tables::headline(&found));
        let mut told = tables::tables(&found, &calibration, &shipped.reference);
        let losses = tables::losses(&simulation.off_bill.distance.losses);
        told.push(("cache misses that nothing foretold".to_owned(), losses));
        told.push((unlogged_report::TITLE.to_owned(), unlogged_report::table(&hidden)));
        PolicyShare {
            headline,
            summary: tables::summary(&found),
            tables: told,
            formulas: tables::formulas(&found),
            notes: tables::notes(simulation.workload.with_output),
            details: json!({
                "prompt_cache": found,
                "calibration": calibration,
                "unlogged": hidden,
                "aliases": aliases(&found, &calibration),
            }),
            ..PolicyShare::default()
        }
    };
    Ok(Ready { stage: None, conclude: Box::new(conclude) })
}
