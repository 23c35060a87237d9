//! `tool-filter`: definitions from wherever they are to be had, the stage, and what a fixed list would cover.

use std::sync::Arc;

use serde_json::json;

use crate::base::error::{Error, Result};
use crate::whatif::arg_check::tables as arg_check;
use crate::whatif::arg_check::tables::PROVIDER_TITLE;
use crate::whatif::chosen::{Policy, PolicyConfigs, PolicyEntry};
use crate::whatif::sim::params::ReadOnlyWith;
use crate::whatif::sim::predictors::Predictions;
use crate::whatif::simulation::{Finished, PolicyShare, Ready, Simulation};
use crate::whatif::tool_filter::params::{Params, Predictor, Rules};
use crate::whatif::tool_filter::tables::{break_even, coverage, regret, summary};
use crate::whatif::tool_filter::{Filter, tables as report};

/// Tools that a table shows.
const TOOLS_SHOWN: usize = 20;

/// What the policy says of itself.
pub static POLICY: PolicyEntry = PolicyEntry {
    sheet: "policies/tool_filter.toml",
    check: |sheet| sheet.params::<Params>()?.check(),
    read_only_with: &[
        ReadOnlyWith {
            parameters: &["recency_turns"],
            other: "predictor",
            is: |name| name == "recency",
            words: "predictor=recency",
        },
        ReadOnlyWith {
            parameters: &["top_k"],
            other: "predictor",
            is: |name| matches!(name, "tf-cosine" | "tf_cosine" | "markov"),
            words: "predictor=tf-cosine or markov",
        },
        ReadOnlyWith {
            parameters: &["min_score"],
            other: "predictor",
            is: |name| matches!(name, "tf-cosine" | "tf_cosine"),
            words: "predictor=tf-cosine",
        },
        ReadOnlyWith {
            parameters: &["expand", "max_retries", "learn"],
            other: "fallback",
            is: |fallback| fallback == "true",
            words: "fallback=true",
        },
    ],
    without_logs: None,
    ready,
};

fn ready<'s>(simulation: &'s Simulation<'_>, configs: &PolicyConfigs) -> Result<Ready<'s>> {
    let workload = simulation.workload;
    let sheet = configs.sheet(Policy::ToolFilter);
    let params: Params = sheet.params()?;
    params.check()?;
    let rules: Rules = sheet.read()?;
    let predictions = predictions(&params)?;
    let (timeline, prefixes) = (&workload.timeline, workload.prefixes());
    let filter = Arc::new(Filter::new(timeline, &params, &rules, simulation.tools, prefixes, predictions));
    let stage = filter.stage();
    let conclude = move |finished: &Finished<'_>| {
        let workload = finished.simulation.workload;
        let found = filter.outcome(&workload.timeline);
        let mut summary = summary(&found);
        let mut tables = vec![("tools that were missed".to_owned(), regret(&found, TOOLS_SHOWN))];
        let mut details = json!(found);
        if let Some(sizes) = finished.simulation.tools.provider_sizes() {
            tables.push((PROVIDER_TITLE.to_owned(), arg_check::provider(&sizes)));
            details["provider"] = json!(sizes);
        }
        // Telemetry has no prompts, so it has no turns to look back on.
        if finished.is_named && workload.is_billed {
            let (covered, elsewhere) = (filter.coverage(&workload.timeline), &rules.coverage.elsewhere);
            summary.push(report::covered(&covered, elsewhere));
            let title =
                "the always list and tools that were used of late: what turns of main threads would have missed";
            tables.push((title.to_owned(), coverage(&covered, elsewhere)));
            details["coverage"] = json!(covered);
            details["coverage"]["elsewhere"] = json!(elsewhere);
        }
        PolicyShare {
            summary,
            tables,
            formulas: break_even(&found),
            notes: found.notes.iter().cloned().chain(finished.simulation.tools.provider_note()).collect(),
            not_estimated: found.not_estimated.clone(),
            catalog: Some(found.catalog.source.clone()),
            details,
            ..PolicyShare::default()
        }
    };
    Ok(Ready { stage: Some(stage), conclude: Box::new(conclude) })
}

fn predictions(params: &Params) -> Result<Predictions> {
    let Predictor::Replay(file) = &params.predictor else { return Ok(Predictions::default()) };
    let path = std::path::Path::new(file);
    let text = crate::base::files::read_to_string(path).map_err(|cause| Error::io("reading", path, &cause))?;
    Predictions::parse(&text, file)
}
