//! Settings of the client, replayed: what other values would have cost; and what people try and what does not pay, for the
//! line of what is not worth it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::names::Sym;
use crate::cost::findings::levers::Settable;
use crate::cost::findings::thresholds::{ReplayedFinding, TriedSetting};
use crate::cost::findings::{BillEvidence, Breaks, Case, FindingBasis};
use crate::logs::timeline::requests::Request;
use crate::report::numbers::thousands;
use crate::whatif::client::{LeverValue, Trial};
use crate::whatif::sim::cells::{Cell, correct};
use crate::whatif::sim::figures::CostVerdict;

/// A case for each value of each setting.
pub fn cases(evidence: &BillEvidence<'_>) -> Vec<Case> {
    let is_told = is_told(evidence.paying);
    let of = |setting: &ReplayedFinding| -> Vec<Case> {
        let told = setting.values.iter().filter(|value| is_told(setting, value));
        told.filter_map(|value| case(evidence, setting, value)).collect()
    };
    evidence.sheet.replayed.iter().flat_map(of).collect()
}

/// Which values may be told: of those that `tune claude-settings` tries, the one that pays.
pub fn is_told(paying: &[LeverValue]) -> impl Fn(&ReplayedFinding, &str) -> bool + use<> {
    let window =
        |setting: &LeverValue| if let LeverValue::Window(tokens) = setting { Some(tokens.to_string()) } else { None };
    let chosen = paying.iter().find_map(window);
    move |setting, value| !setting.is_chosen || chosen.as_deref() == Some(value)
}

fn case(evidence: &BillEvidence<'_>, setting: &ReplayedFinding, value: &str) -> Option<Case> {
    let set = setting.set(value);
    let replay = evidence.replays.iter().find(|replay| replay.policy == setting.policy && replay.set == set)?;
    let outcome = replay.report.outcome.as_ref().filter(|_| replay.report.not_estimated.is_none())?;
    let trial = trial(evidence, value);
    let compacts_at = trial.and_then(|trial| trial.compacts_at);
    let shown = value.parse().map_or_else(|_| value.to_owned(), thousands);
    let from = compacts_at.map_or_else(|| shown.clone(), thousands);
    let said = |text: &str| text.replace("{value}", &shown).replace("{compacts_at}", &from);
    let so = setting.so.as_deref().map(said);
    let levers = Settable {
        groups: setting.rules.iter().map(|rule| evidence.owned(rule)).collect(),
        for_model: setting.model_lever.as_deref(),
        so: so.as_deref(),
    };
    Some(Case {
        id: setting.id.clone(),
        what: said(&setting.what),
        what_uncounted: Some(said(&setting.what_below)),
        counts: reaching(evidence, compacts_at.or_else(|| value.parse().ok())),
        // As `tune claude-settings` counts it, and what reading it again costs.
        breaks: trial.map_or_else(Breaks::default, |trial| Breaks::of(trial, replay.report.reread.usd())),
        sides: outcome.by_session.clone(),
        source: source(&setting.policy, &set),
        ..levers.case(evidence, value, Case::of(FindingBasis::Replayed, &[]))
    })
}

/// The command that replays it.
fn source(policy: &str, set: &[String]) -> Vec<String> {
    let words = ["what-if", policy].map(str::to_owned).into_iter();
    words.chain(set.iter().flat_map(|one| ["--set".to_owned(), one.clone()])).collect()
}

/// Requests whose context is of that size at least.
fn reaching(evidence: &BillEvidence<'_>, least: Option<u64>) -> BTreeMap<(u32, Sym), u64> {
    let requests = evidence.workload.timeline.counted();
    let reach = |request: &Request| least.is_some_and(|least| request.context() >= least);
    evidence.counts(requests.filter(|(_, request)| reach(request)).map(|(index, _)| index))
}

/// The same setting as `tune claude-settings` tries it.
fn trial<'e>(evidence: &BillEvidence<'e>, value: &str) -> Option<&'e Trial> {
    evidence.study.trial(LeverValue::Window(value.parse().ok()?))
}

/// Something that costs more.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Loser {
    /// In plain words.
    pub name: String,
    /// Cost of it over that of the log, less one.
    pub change: f64,
    /// Lower end of its 95 % interval over sessions.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// How many sessions these are.
    pub sessions: u64,
    /// Arguments of the command that its figures come from.
    pub source: Vec<String>,
}

/// What would have cost more, beyond chance and the error of the simulation; the most expensive first.
pub fn losers(evidence: &BillEvidence<'_>) -> Vec<Loser> {
    let replayed = |tried: &TriedSetting| {
        let replay = evidence.replays.iter().find(|replay| replay.policy == tried.policy && replay.set == tried.set)?;
        replay.report.whole.clone().filter(|_| replay.report.not_estimated.is_none())
    };
    let mut tried: Vec<(&TriedSetting, Cell)> =
        evidence.sheet.tried.iter().filter_map(|tried| Some((tried, replayed(tried)?))).collect();
    correct(tried.iter_mut().map(|(_, cell)| cell), &evidence.workload.cells);
    let lost = tried.iter().filter(|(_, cell)| cell.verdict == CostVerdict::MoreExpensive);
    let mut losers: Vec<Loser> = lost.filter_map(|(tried, cell)| loser(tried, cell)).collect();
    losers.sort_by(|a, b| b.change.total_cmp(&a.change));
    losers
}

fn loser(tried: &TriedSetting, cell: &Cell) -> Option<Loser> {
    Some(Loser {
        name: tried.name.clone(),
        change: cell.change,
        lower: cell.lower?,
        upper: cell.upper?,
        sessions: cell.sessions,
        source: source(&tried.policy, &tried.set),
    })
}
