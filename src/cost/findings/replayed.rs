//! Settings of the client, replayed: what other values would have cost.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::cost::findings::levers::Settable;
use crate::cost::findings::sheet::{Counts, Replayed};
use crate::cost::findings::{Basis, Case, Evidence, Replay};
use crate::logs::timeline::requests::Request;
use crate::report::numbers::{counted, thousands, usd};
use crate::whatif::client::{Knob, Study};
use crate::whatif::prompt_cache::causes;
use crate::whatif::prompt_cache::outcome::Cause;
use crate::whatif::sim::breakage::rows::Strength;

/// A case for each value of each setting.
pub fn cases(evidence: &Evidence<'_>) -> Vec<Case> {
    let is_told = is_told(evidence.study);
    let of = |setting: &Replayed| -> Vec<Case> {
        let told = setting.values.iter().filter(|value| is_told(setting, value));
        told.filter_map(|value| case(evidence, setting, value)).collect()
    };
    evidence.sheet.replayed.iter().flat_map(of).collect()
}

/// Which values may be told: of those that `tune claude-settings` tries, the one that it would choose.
pub fn is_told(study: &Study) -> impl Fn(&Replayed, &str) -> bool + use<> {
    let window = |knob| if let Knob::Window(tokens) = knob { Some(tokens) } else { None };
    let chosen = study.paying(window).map(|(tokens, _)| tokens.to_string());
    move |setting, value| !setting.is_chosen || chosen.as_deref() == Some(value)
}

fn case(evidence: &Evidence<'_>, setting: &Replayed, value: &str) -> Option<Case> {
    let set = format!("{}={value}", setting.key);
    let replay =
        evidence.replays.iter().find(|replay| replay.policy == setting.policy && replay.set == [set.as_str()])?;
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
        counts: counts(evidence, setting.counts, value),
        breaks: breaks(replay),
        sides: outcome.by_session.clone(),
        ..Case::of(Basis::Replayed, &["what-if", &setting.policy, "--set", &set])
    })
}

fn counts(evidence: &Evidence<'_>, counts: Counts, value: &str) -> BTreeMap<(u32, Sym), u64> {
    let requests = (0..).zip(&evidence.world.timeline.requests);
    let of = |is_one: &dyn Fn(&Request) -> bool| {
        evidence.counts(requests.clone().filter(|(_, request)| is_one(request)).map(|(index, _)| index))
    };
    match counts {
        Counts::ContextsAbove => {
            let most: u64 = value.parse().unwrap_or(u64::MAX);
            of(&|request| request.context() > most)
        }
        Counts::HourWrites => of(&|request| request.usage.cache_creation_1h > 0),
        Counts::CacheExpired => {
            let losses = causes::losses(evidence.ground);
            evidence.counts(losses.iter().filter(|loss| loss.cause == Cause::TtlExpiry).map(|loss| loss.request))
        }
    }
}

/// What would have been missed: edits of text that was gone, and mentions of it.
fn breaks(replay: &Replay) -> Option<String> {
    let classes = &replay.report.breakage.as_ref()?.classes;
    let sum = |strength| classes.iter().filter(|class| class.strength == strength).map(|class| class.events).sum();
    let (hard, soft): (u64, u64) = (sum(Strength::Hard), sum(Strength::Soft));
    let again = replay.report.reread.usd().unwrap_or_default();
    dropped(hard, soft).map(|words| format!("{words} (reading it again: {})", usd(again)))
}

/// What goes missing, in words; none if nothing does.
pub fn dropped(hard: u64, soft: u64) -> Option<String> {
    let parts = [
        (hard > 0).then(|| counted(hard, "edit")),
        (soft > 0).then(|| format!("{} that only name it", counted(soft, "later step"))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("it would have dropped text that is needed by {}", parts.join(" and ")))
}
