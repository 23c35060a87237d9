//! The search over Claude Code's own settings: of each lever that can be simulated the value that was cheapest on the
//! earlier sessions, what it did on the later ones, and what all that saved come to together.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::bootstrap::Resampling;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::report::numbers::{counted, known, signed, thousands};
use crate::report::table::{Table, TableBuilder};
use crate::rules::claude::judge::{forecast, of_trial, plain};
use crate::settings::entries::BillForecast;
use crate::whatif::chosen::PolicyConfigs;
use crate::whatif::client::{LeverStudy, LeverTrials, LeverValue, Trial};
use crate::whatif::workload::{Workload, cache_rules};

/// A setting at the value that was chosen, or all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChosenValue {
    pub setting: String,
    /// To what; of all settings together what each is set to.
    pub value: Value,
    pub tried: u64,
    /// Change of cost on the earlier sessions, as a share; none without cost.
    pub earlier: Option<f64>,
    /// What the later sessions say.
    pub later: Option<BillForecast>,
}

/// Tries every value on the sessions of all projects, beside what is set already.
pub fn search(workload: &Workload, data: &Data, standing: &[LeverValue]) -> Result<Vec<ChosenValue>> {
    let cache = cache_rules(&PolicyConfigs::load(data)?)?;
    let simulator = workload.with_answers(&cache);
    let trials = LeverTrials::new(&simulator, workload, data, None, standing)?;
    let study = trials.study();
    let resampling = &workload.cells.resampling;
    let best = chosen(&study);
    let mut rows: Vec<ChosenValue> =
        best.iter().map(|(tried, change, trial)| row(&study, resampling, *tried, *change, trial)).collect();
    let saving: Vec<LeverValue> =
        best.iter().filter(|(_, change, _)| *change < 0.0).map(|(.., trial)| trial.setting).collect();
    if saving.len() > 1 {
        let all = trials.together(&saving);
        let each = saving.iter().map(|setting| json!({ "setting": setting.name(), "value": setting.value() }));
        rows.push(ChosenValue {
            setting: "all that saved on the earlier sessions".to_owned(),
            value: each.collect(),
            tried: 1,
            earlier: study.sum(&all, true).change(),
            later: forecast(&study, resampling, &saving, &all),
        });
    }
    Ok(rows)
}

/// Of each lever the cheapest value on the earlier sessions, with the number of values tried and the change there.
fn chosen(study: &LeverStudy) -> Vec<(u64, f64, &Trial)> {
    let mut kinds: Vec<Vec<&Trial>> = Vec::new();
    for trial in &study.trials {
        match kinds.iter_mut().find(|kind| kind[0].setting.is_of_lever(trial.setting)) {
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
    let setting = trial.setting.name().to_owned();
    // Where no value is cheaper, it stays as it is.
    if change >= 0.0 {
        return ChosenValue { setting, value: Value::Null, tried, earlier: None, later: None };
    }
    let later = of_trial(study, resampling, trial);
    ChosenValue { setting, value: trial.setting.value(), tried, earlier: Some(change), later }
}

/// "5 settings", "150,000", "1h"; of a value that changes nothing "as it is".
fn value_words(row: &ChosenValue) -> String {
    match &row.value {
        Value::Array(all) => counted(all.len() as u64, "setting"),
        Value::Null => "as it is".to_owned(),
        Value::Number(size) => size.as_u64().map_or_else(|| size.to_string(), thousands),
        value => plain(value),
    }
}

/// The rows as a table: changes of the cost as simulated.
pub fn table(rows: &[ChosenValue]) -> Table {
    let percent = |share: Option<f64>| known(share, |share| format!("{} %", signed(100.0 * share, 1)));
    let of = |row: &ChosenValue, pick: fn(&BillForecast) -> f64| percent(row.later.as_ref().map(pick));
    TableBuilder::of(rows)
        .text("setting", |row| row.setting.clone())
        .number("best value", |row| value_words(row))
        .number("values tried", |row| row.tried.to_string())
        .number("earlier sessions", |row| percent(row.earlier))
        .number("judged on", |row| known(row.later.as_ref(), |later| counted(later.sessions, "session")))
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
