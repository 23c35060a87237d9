//! `compaction`: the stage, what the compactions of the log cost, and the sweep of thresholds.

use std::sync::Arc;

use rayon::prelude::*;
use serde_json::json;

use crate::base::error::{Error, Result};
use crate::base::numbers::thousands;
use crate::logs::trace::NO_TIME;
use crate::whatif::chosen::{Policy, PolicyConfigs, PolicyEntry};
use crate::whatif::clearing::{Cleared, Micro, clearings, replayed};
use crate::whatif::compaction::carry::{after_sizes, growth, reattached};
use crate::whatif::compaction::figures::{compactions, points, row};
use crate::whatif::compaction::outcome::Compactions;
use crate::whatif::compaction::params::{Params, Tier};
use crate::whatif::compaction::real::{placement, real_compactions};
use crate::whatif::compaction::{Compaction, CompactionThresholds, tables as report};
use crate::whatif::sim::breakage::files::edit_ages;
use crate::whatif::sim::money::Prices;
use crate::whatif::sim::params::{PolicyConfig, ReadOnlyWith};
use crate::whatif::sim::view::StageJournal;
use crate::whatif::simulation::{Finished, PolicyShare, Ready, Simulation};
use crate::whatif::workload::Workload;

/// Whether the price of the summariser is known, if one is named.
fn check_summarizer(params: &Params, prices: &Prices) -> Result<()> {
    let model = &params.summarizer_model;
    if model.is_empty() || prices.rates(model, NO_TIME, 1).is_some() {
        return Ok(());
    }
    Err(Error::usage(format!("summarizer_model: no price is known for `{model}`"))
        .hint(format!("name a model of {}, or add a row to it (--rules-dir)", prices.place)))
}

/// What the policy says of itself.
pub static POLICY: PolicyEntry = PolicyEntry {
    sheet: "policies/compaction.toml",
    check: |sheet| thresholds(sheet).map(drop),
    read_only_with: &[
        ReadOnlyWith {
            parameters: &[
                "mode",
                "window",
                "reserve_output",
                "buffer",
                "compact_at_pct",
                "tail_keep_tokens",
                "summary_tokens",
                "reattach_tokens",
                "min_gain_tokens",
                "max_age_minutes",
                "min_turns_between",
                "max_consecutive_failures",
                "fail_every",
                "align",
                "real",
                "summarizer_model",
            ],
            only: "tier=auto",
            is: |tier| tier == "auto",
        },
        ReadOnlyWith {
            parameters: &["reserve_output", "buffer"],
            only: "mode=claude-code",
            is: |mode| mode == "claude-code",
        },
        ReadOnlyWith { parameters: &["compact_at_pct"], only: "mode=pct", is: |mode| mode == "pct" },
    ],
    without_logs: None,
    ready,
};

/// The sheet. What was set is looked at first: it is the user's, the rest of the sheet is not.
fn thresholds(sheet: &PolicyConfig) -> Result<CompactionThresholds> {
    sheet.params::<Params>()?;
    CompactionThresholds::parse(&sheet.text(), sheet.place())
}

fn ready<'s>(simulation: &'s Simulation<'_>, configs: &PolicyConfigs) -> Result<Ready<'s>> {
    let workload = simulation.workload;
    let sheet = thresholds(configs.sheet(Policy::Compaction))?;
    let params = sheet.params.clone();
    check_summarizer(&params, &workload.prices)?;
    if params.tier == Tier::Micro {
        let journal = StageJournal::default();
        let stage = Micro::new(params.micro.clone(), sheet.clone(), journal.clone());
        let conclude = move |finished: &Finished<'_>| cleared(finished, &journal, &params, &sheet);
        return Ok(Ready { stage: Some(Box::new(stage)), conclude: Box::new(conclude) });
    }
    let journal = StageJournal::default();
    let tokens: Arc<[u32]> = workload.sizes.tokens.as_slice().into();
    let stage = Compaction::new(params.clone(), sheet.clone(), tokens, journal.clone());
    let conclude = move |finished: &Finished<'_>| {
        let workload = finished.simulation.workload;
        let broken = Some((&finished.simulation.detectors, finished.breaks));
        let done = compactions(&workload.timeline, &journal.take(), finished.run, broken, &sheet);
        if workload.is_billed { compacted(finished, &done, &params, &sheet) } else { of_telemetry(finished, &done) }
    };
    Ok(Ready { stage: Some(Box::new(stage)), conclude: Box::new(conclude) })
}

/// What clearing tool results did, beside the clearings of the log.
fn cleared(
    finished: &Finished<'_>,
    journal: &StageJournal<Cleared>,
    params: &Params,
    sheet: &CompactionThresholds,
) -> PolicyShare {
    let timeline = &finished.simulation.workload.timeline;
    let found = replayed(timeline, &params.micro, sheet);
    let done = clearings(timeline, &journal.take(), finished.run);
    PolicyShare {
        tables: vec![("clearings of tool results in the log".to_owned(), report::clearings(&found))],
        details: json!({ "cleared": done, "logged": found }),
        ..PolicyShare::default()
    }
}

/// What compaction did where nothing is known but the sizes of tool results.
fn of_telemetry(finished: &Finished<'_>, done: &Compactions) -> PolicyShare {
    let growth = growth(&finished.simulation.workload.timeline);
    PolicyShare {
        tables: report::telemetry_tables(done, &growth),
        details: json!({ "compactions": done, "growth": growth }),
        notes: vec![report::TELEMETRY_NOTE.to_owned()],
        ..PolicyShare::default()
    }
}

/// What came back after the compactions of the log, where that is known and something else was replayed.
fn came_back(workload: &Workload, params: &Params, sheet: &CompactionThresholds) -> Option<String> {
    let found = reattached(&workload.timeline, &workload.sizes, params, sheet);
    let (replayed, tokens) = (params.reattach_tokens, found.tokens);
    (found.is_measured && tokens != replayed).then(|| {
        let replayed = thousands(replayed.into());
        format!("{}; {replayed} are replayed: --set reattach_tokens={tokens} replays the former", found.words())
    })
}

/// What compaction did, beside the compactions of the log and other thresholds.
fn compacted(
    finished: &Finished<'_>,
    done: &Compactions,
    params: &Params,
    sheet: &CompactionThresholds,
) -> PolicyShare {
    let Finished { simulation, is_named, .. } = *finished;
    let (workload, detectors) = (simulation.workload, &simulation.detectors);
    let timeline = &workload.timeline;
    let requests = simulation.simulator.under(finished.oracle);
    let points = if is_named { points(params, sheet) } else { Vec::new() };
    let swept = points.par_iter().with_max_len(1).map(|at| row(&requests, detectors, at, sheet));
    let found = report::CompactionReport {
        compactions: done,
        real: real_compactions(detectors, sheet),
        placement: placement(timeline, params, sheet),
        after_size: after_sizes(timeline, &workload.sizes, params, sheet),
        edit_ages: edit_ages(timeline, &workload.breakage),
        clearings: replayed(timeline, &params.micro, sheet),
        sweep: swept.collect(),
    };
    let notes = report::NOTES.iter().map(|note| (*note).to_owned());
    PolicyShare {
        summary: [report::trigger(params, sheet)].into_iter().chain(came_back(workload, params, sheet)).collect(),
        formulas: report::formulas(params, sheet),
        tables: report::tables(&found, &sheet.bars),
        details: json!(found),
        notes: report::notes(&found.placement, params.window).into_iter().chain(notes).collect(),
        ..PolicyShare::default()
    }
}
