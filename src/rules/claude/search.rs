//! The search over Claude Code's own settings: of each lever that can be simulated the value that was cheapest on the
//! earlier sessions, what it did on the later ones, and what all that saved come to together.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::bootstrap::Resampling;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::report::numbers::{counted, known, thousands};
use crate::report::table::{Table, TableBuilder};
use crate::rules::claude::judge::{forecast, of_trial};
use crate::settings::entries::BillForecast;
use crate::whatif::chosen::PolicyConfigs;
use crate::whatif::client::capped::Limit;
use crate::whatif::client::{LeverPart, LeverStudy, LeverValue, Trial, TriedLevers, study, together};
use crate::whatif::workload::{Workload, oracle};

/// A setting at the value that was chosen, or all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChosenValue {
    /// What is set.
    pub setting: String,
    /// To what.
    pub value: String,
    /// Values that were tried.
    pub tried: u64,
    /// Change of cost on the earlier sessions, as a share; none without cost.
    pub earlier: Option<f64>,
    /// What the later sessions say.
    pub later: Option<BillForecast>,
}

/// Tries every value on the sessions of all projects.
///
/// # Errors
/// If a data file does not fit.
pub fn search(workload: &Workload, data: &Data) -> Result<Vec<ChosenValue>> {
    let cache = oracle(&PolicyConfigs::load(data)?)?;
    let simulator = workload.with_answers(&cache);
    let study = study(&simulator, workload, data, None, TriedLevers::All, &[])?;
    let resampling = &workload.cells.resampling;
    let best = chosen(&study);
    let mut rows: Vec<ChosenValue> =
        best.iter().map(|(tried, change, trial)| row(&study, resampling, *tried, *change, trial)).collect();
    let saving: Vec<LeverValue> =
        best.iter().filter(|(_, change, _)| *change < 0.0).map(|(.., trial)| trial.setting).collect();
    if saving.len() > 1 {
        let all = together(&simulator, workload, data, None, (&saving, &[]))?;
        rows.push(ChosenValue {
            setting: "all that saved on the earlier sessions".to_owned(),
            value: counted(saving.len() as u64, "setting"),
            tried: 1,
            earlier: study.sum(&all, true).change(),
            later: forecast(&study, resampling, LeverPart::All, &all),
        });
    }
    Ok(rows)
}

/// Of each lever the cheapest value on the earlier sessions, with the number of values tried and the change there.
fn chosen(study: &LeverStudy) -> Vec<(u64, f64, &Trial)> {
    let mut kinds: Vec<Vec<&Trial>> = Vec::new();
    for trial in &study.trials {
        match kinds.iter_mut().find(|kind| words(kind[0].setting).0 == words(trial.setting).0) {
            Some(kind) => kind.push(trial),
            None => kinds.push(vec![trial]),
        }
    }
    let best = kinds.iter().filter_map(|kind| {
        let (change, trial) = study.chosen(kind.iter().copied())?;
        Some((kind.len() as u64, change, trial))
    });
    best.collect()
}

fn row(study: &LeverStudy, resampling: &Resampling, tried: u64, change: f64, trial: &Trial) -> ChosenValue {
    let (setting, value) = words(trial.setting);
    let later = of_trial(study, resampling, trial);
    ChosenValue { setting: setting.to_owned(), value, tried, earlier: Some(change), later }
}

fn words(setting: LeverValue) -> (&'static str, String) {
    match setting {
        LeverValue::MainTtl(class) => ("lifetime of the cache, main threads", class.into_str().to_owned()),
        LeverValue::SubagentTtl(class) => ("lifetime of the cache, subagents", class.into_str().to_owned()),
        LeverValue::Window(tokens) => ("window of automatic compaction, tokens", thousands(tokens)),
        LeverValue::Result(Limit::BashChars(chars)) => ("shell output, characters", thousands(chars)),
        LeverValue::Result(Limit::McpTokens(tokens)) => ("results of MCP tools, tokens", thousands(tokens)),
        LeverValue::Result(Limit::ReadTokens(tokens)) => ("readings, tokens", thousands(tokens)),
    }
}

/// The rows as a table: changes of the cost as simulated.
pub fn table(rows: &[ChosenValue]) -> Table {
    let percent = |share: Option<f64>| known(share, |share| format!("{:+.1} %", 100.0 * share));
    let of = |row: &ChosenValue, pick: fn(&BillForecast) -> f64| percent(row.later.as_ref().map(pick));
    TableBuilder::of(rows)
        .text("setting", |row| row.setting.clone())
        .number("best value", |row| row.value.clone())
        .number("values tried", |row| row.tried.to_string())
        .number("earlier sessions", |row| percent(row.earlier))
        .number("later sessions", |row| of(row, |later| later.change))
        .number("95 % from", |row| of(row, |later| later.lower))
        .number("95 % to", |row| of(row, |later| later.upper))
        .table()
}

/// The rows as data.
pub fn json(rows: &[ChosenValue]) -> Value {
    let row = |row: &ChosenValue| {
        let later = row.later.as_ref();
        json!({
            "setting": row.setting,
            "value": row.value,
            "values_tried": row.tried,
            "earlier_change": row.earlier,
            "later_change": later.map(|later| later.change),
            "later_95": later.map(|later| [later.lower, later.upper]),
            "later_sessions": later.map(|later| later.sessions),
        })
    };
    rows.iter().map(row).collect()
}
