//! `prompt-cache`: the log under other TTLs, layouts and keep-alive reads, and why the cache was missed.

use serde_json::json;

use crate::base::error::Result;
use crate::whatif::calibration::calibrate;
use crate::whatif::chosen::{Policy, PolicyConfigs, PolicyEntry};
use crate::whatif::prompt_cache;
use crate::whatif::prompt_cache::{PromptCacheThresholds, tables as report};
use crate::whatif::sim::params::ReadOnlyWith;
use crate::whatif::sim::unlogged as unlogged_report;
use crate::whatif::sim::unlogged::unlogged;
use crate::whatif::simulation::{Finished, PolicyShare, Ready, Simulation};

/// What the policy says of itself.
pub static POLICY: PolicyEntry = PolicyEntry {
    sheet: "policies/prompt_cache.toml",
    // The cache prices every policy, so its parameters are looked at in any case.
    check: |_| Ok(()),
    read_only_with: &[ReadOnlyWith {
        parameters: &["keepalive_max_s"],
        other: "keepalive_s",
        is: |seconds| seconds != "0",
        words: "keepalive_s above 0",
    }],
    without_logs: Some("it has no usage, so there is nothing to hold a cache against"),
    ready,
};

fn ready<'s>(_scene: &'s Simulation<'_>, configs: &PolicyConfigs) -> Result<Ready<'s>> {
    let sheet = configs.sheet(Policy::PromptCache);
    let sheet = PromptCacheThresholds::parse(&sheet.text(), sheet.place())?;
    let conclude = move |finished: &Finished<'_>| {
        let simulation = finished.simulation;
        // Beside other policies a lifetime is one row; the variants are for whoever asks about the cache alone.
        if !finished.is_named {
            return PolicyShare::default();
        }
        // Variants are held against the cache as it was, whatever was set.
        let shipped = PromptCacheThresholds { oracle: simulation.simulator.oracle.clone(), ..sheet };
        let simulator = simulation.simulator.under(finished.oracle);
        let found = prompt_cache::run(&simulator, &shipped, &simulation.workload.prices, &simulation.workload.cells);
        let calibration = calibrate(&simulation.workload.timeline, &simulation.workload.sizes.rules);
        let hidden = unlogged(&simulation.simulator);
        // Under the cache as it was there is nothing to compare but the variants.
        let headline = (*finished.oracle == *simulation.simulator.oracle && found.uncached.cost.units > 0)
            .then(|| report::headline(&found));
        PolicyShare {
            headline,
            summary: report::summary(&found),
            tables: report::tables(&found, &calibration, &shipped.reference)
                .into_iter()
                .chain([
                    ("cache misses that nothing foretold".to_owned(), report::losses(&simulation.distance.losses)),
                    (unlogged_report::TITLE.to_owned(), unlogged_report::table(&hidden)),
                ])
                .collect(),
            formulas: report::formulas(&found),
            notes: report::notes(simulation.workload.with_output),
            details: json!({
                "prompt_cache": found,
                "calibration": calibration,
                "unlogged": hidden,
                "aliases": prompt_cache::aliases(&found, &calibration),
            }),
            ..PolicyShare::default()
        }
    };
    Ok(Ready { stage: None, conclude: Box::new(conclude) })
}
