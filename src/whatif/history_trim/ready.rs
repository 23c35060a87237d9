//! `history-trim`: the stage, its books, and known settings of the router side by side.

use std::rc::Rc;

use rayon::prelude::*;
use serde_json::json;

use crate::base::error::Result;
use crate::logs::timeline::requests::ReferenceKind;
use crate::whatif::chosen::{Policy, PolicyConfigs, PolicyEntry};
use crate::whatif::history_trim::outcome::{Edits, TrimCosts, TrimOutcome, TrimReport};
use crate::whatif::history_trim::tables::{NOTES, TELEMETRY_NOTE, ages, breaks, formulas, summary, variants};
use crate::whatif::history_trim::{HistoryTrim, HistoryTrimThresholds, Params, TrimRule, Variant};
use crate::whatif::prompt_cache::params::{CacheLayout, CacheRules, Params as CacheParams};
use crate::whatif::sim::breakage::rows::{Break, BreakClass};
use crate::whatif::sim::outcome::CostComparison;
use crate::whatif::sim::params::ReadOnlyWith;
use crate::whatif::sim::simulator::SimulatedRun;
use crate::whatif::simulation::{Finished, PolicyShare, Ready, Simulation};

const CHAINED_TURNS: &str = "keep_recent_user_turns_in_chained_tool_calls";

/// What the policy says of itself.
pub static POLICY: PolicyEntry = PolicyEntry {
    sheet: "policies/history_trim.toml",
    check: |sheet| sheet.params::<Params>()?.check(),
    read_only_with: &[
        ReadOnlyWith { parameters: &["sticky_step"], only: "sticky=true", is: |sticky| sticky == "true" },
        ReadOnlyWith {
            parameters: &[CHAINED_TURNS, "skip_router_on_tool_results", "instruction_tokens"],
            only: "fidelity=upstream",
            is: |fidelity| fidelity == "upstream",
        },
        ReadOnlyWith {
            parameters: &[CHAINED_TURNS],
            only: "skip_router_on_tool_results=true",
            is: |skip| skip == "true",
        },
    ],
    without_logs: None,
    ready,
};

fn ready<'s>(simulation: &'s Simulation<'_>, configs: &PolicyConfigs) -> Result<Ready<'s>> {
    let sheet = configs.sheet(Policy::HistoryTrim);
    let params: Params = sheet.params()?;
    params.check()?;
    let sheet = HistoryTrimThresholds::parse(&sheet.text(), sheet.place())?;
    let rule = TrimRule { params, sheet: sheet.clone() };
    let formulas = if rule.params.is_on() { formulas(&rule) } else { Vec::new() };
    let (stage, books) = HistoryTrim::new(rule, &simulation.workload.sizes.rules);
    let conclude = move |finished: &Finished<'_>| {
        let outcome = Rc::clone(&books).borrow().clone();
        let uncached = &finished.uncached;
        let edits = edits(finished.simulation, finished.breaks);
        let found = trimmed("as set", outcome, finished, [finished.run, &uncached.1], edits);
        let mut tables = vec![
            ("tokens of messages by role and age".to_owned(), ages(&found.outcome)),
            ("prefix breaks that the log does not have".to_owned(), breaks(&found.outcome)),
        ];
        let mut others = Vec::new();
        if finished.is_named {
            others = tried(finished, &sheet);
            tables
                .push(("settings of the router side by side (exchanges / budget / exchanges in chains of calls); the log is 100 %".to_owned(), variants(&others)));
        }
        let is_billed = finished.simulation.workload.is_billed;
        let notes = if is_billed { &NOTES[..] } else { &[TELEMETRY_NOTE] };
        PolicyShare {
            summary: summary(&found, is_billed && finished.is_alone),
            tables,
            formulas,
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            details: json!({ "as_set": found, "variants": others }),
            ..PolicyShare::default()
        }
    };
    Ok(Ready { stage: Some(Box::new(stage)), conclude: Box::new(conclude) })
}

/// The known settings, each with and without a cache.
fn tried(finished: &Finished<'_>, sheet: &HistoryTrimThresholds) -> Vec<TrimReport> {
    let simulation = finished.simulation;
    let none = finished.oracle.with(CacheParams { layout: CacheLayout::None, ..finished.oracle.params });
    let one = |variant: &Variant| {
        let rule = TrimRule { params: variant.params(&sheet.params), sheet: sheet.clone() };
        let under = |oracle: &CacheRules| {
            let (stage, books) = HistoryTrim::new(rule.clone(), &simulation.workload.sizes.rules);
            let (run, breaks) = simulation.run(oracle, vec![Box::new(stage)]);
            (run, breaks, books.borrow().clone())
        };
        let (run, breaks, outcome) = under(finished.oracle);
        let plain = under(&none).0;
        let report = trimmed(&variant.name, outcome, finished, [&run, &plain], edits(simulation, &breaks));
        TrimReport { elsewhere: variant.elsewhere.clone(), ..report }
    };
    sheet.variant.par_iter().with_max_len(1).map(one).collect()
}

/// Makes a report of a run with a cache and of the same without.
fn trimmed(
    name: &str,
    outcome: TrimOutcome,
    finished: &Finished<'_>,
    [cached, uncached]: [&SimulatedRun; 2],
    edits: Edits,
) -> TrimReport {
    TrimReport {
        name: name.to_owned(),
        elsewhere: None,
        outcome,
        cached: sides(finished, finished.baseline, cached, finished.accuracy.cost_error.size()),
        spent: cached.spent(),
        edits,
        uncached: sides(finished, &finished.uncached.0, uncached, 0.0),
    }
}

/// Log and policy by the same simulation, which is off the bill by this share.
fn sides(finished: &Finished<'_>, baseline: &SimulatedRun, policy: &SimulatedRun, error: f64) -> TrimCosts {
    let Simulation { simulator, workload, .. } = finished.simulation;
    let compared = CostComparison::new(simulator, baseline, policy, &workload.cells);
    let error = error.max(workload.winner_percent_min / 100.0);
    TrimCosts { baseline: compared.before, policy: compared.after.cost, verdict: compared.verdict(error) }
}

fn edits(simulation: &Simulation<'_>, breaks: &[Break]) -> Edits {
    let sourced = simulation.workload.timeline.counted_references();
    let sourced = sourced.filter(|one| one.kind == ReferenceKind::EditSource && !one.sources.is_empty());
    Edits {
        lost: breaks.iter().filter(|one| one.class == BreakClass::EditSourceLost).count() as u64,
        all: sourced.count() as u64,
    }
}
