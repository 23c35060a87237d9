//! Settings of the client, replayed: what other values would have cost.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::cost::findings::breaks::Breaks;
use crate::cost::findings::levers::Settable;
use crate::cost::findings::thresholds::{CountOf, ReplayedFinding};
use crate::cost::findings::{BillEvidence, Case, FindingBasis, ReplayedSetting};
use crate::logs::timeline::requests::Request;
use crate::report::numbers::thousands;
use crate::whatif::client::{LeverStudy, LeverValue, Trial};
use crate::whatif::prompt_cache::causes;
use crate::whatif::prompt_cache::outcome::Cause;

/// A case for each value of each setting.
pub fn cases(evidence: &BillEvidence<'_>) -> Vec<Case> {
    let is_told = is_told(evidence.study);
    let of = |setting: &ReplayedFinding| -> Vec<Case> {
        let told = setting.values.iter().filter(|value| is_told(setting, value));
        told.filter_map(|value| case(evidence, setting, value)).collect()
    };
    evidence.sheet.replayed.iter().flat_map(of).collect()
}

/// Which values may be told: of those that `tune claude-settings` tries, the one that it would choose.
pub fn is_told(study: &LeverStudy) -> impl Fn(&ReplayedFinding, &str) -> bool + use<> {
    let window = |setting| if let LeverValue::Window(tokens) = setting { Some(tokens) } else { None };
    let chosen = study.paying(window).map(|(tokens, _)| tokens.to_string());
    move |setting, value| !setting.is_chosen || chosen.as_deref() == Some(value)
}

fn case(evidence: &BillEvidence<'_>, setting: &ReplayedFinding, value: &str) -> Option<Case> {
    let set = setting.set(value);
    let replay = evidence.replays.iter().find(|replay| replay.policy == setting.policy && replay.set == set)?;
    let outcome = replay.report.outcome.as_ref().filter(|_| replay.report.not_estimated.is_none())?;
    let shown = value.parse().map_or_else(|_| value.to_owned(), thousands);
    let levers = Settable {
        groups: setting.rules.iter().map(|rule| evidence.owned(rule)).collect(),
        for_model: setting.model_lever.as_deref(),
        so: setting.so.as_deref(),
    };
    let (advice, advice_in) = levers.advice(evidence, value);
    Some(Case {
        id: setting.id.clone(),
        what: setting.what.replace("{value}", &shown),
        advice,
        advice_in,
        sets: levers.sets(evidence, value),
        counts: counts(evidence, setting.counts, value),
        breaks: breaks(evidence, replay, value),
        sides: outcome.by_session.clone(),
        source: source(setting, &set),
        ..Case::of(FindingBasis::Replayed, &[])
    })
}

/// The command that replays it.
fn source(setting: &ReplayedFinding, set: &[String]) -> Vec<String> {
    let words = ["what-if".to_owned(), setting.policy.clone()].into_iter();
    words.chain(set.iter().flat_map(|one| ["--set".to_owned(), one.clone()])).collect()
}

fn counts(evidence: &BillEvidence<'_>, counts: CountOf, value: &str) -> BTreeMap<(u32, Sym), u64> {
    let requests = (0..).zip(&evidence.workload.timeline.requests);
    let of = |is_one: &dyn Fn(&Request) -> bool| {
        evidence.counts(requests.clone().filter(|(_, request)| is_one(request)).map(|(index, _)| index))
    };
    match counts {
        CountOf::ContextsAbove => {
            let most: u64 = value.parse().unwrap_or(u64::MAX);
            of(&|request| request.context() > most)
        }
        CountOf::HourWrites => of(&|request| request.usage.cache_creation_1h > 0),
        CountOf::CacheExpired => {
            let losses = causes::losses(evidence.simulator);
            evidence.counts(losses.iter().filter(|loss| loss.cause == Cause::TtlExpiry).map(|loss| loss.request))
        }
    }
}

/// What would have been missed, as `tune claude-settings` counts it, and what reading it again costs.
fn breaks(evidence: &BillEvidence<'_>, replay: &ReplayedSetting, value: &str) -> Breaks {
    let is_this = |trial: &&Trial| matches!(trial.setting, LeverValue::Window(tokens) if tokens.to_string() == value);
    let trial = evidence.study.trials.iter().find(is_this);
    trial.map_or_else(Breaks::default, |trial| Breaks::of(trial, replay.report.reread.usd()))
}
