//! Settings of the client, replayed: what other values would have cost.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::cost::findings::sheet::{Counts, Replayed};
use crate::cost::findings::{Basis, Case, Evidence, Replay};
use crate::logs::timeline::requests::Request;
use crate::report::numbers::thousands;
use crate::whatif::prompt_cache::causes;
use crate::whatif::prompt_cache::outcome::Cause;
use crate::whatif::sim::breakage::rows::Strength;

/// A case for each value of each setting.
pub fn cases(evidence: &Evidence<'_>) -> Vec<Case> {
    let of = |setting: &Replayed| -> Vec<Case> {
        let one = |value: &String| case(evidence, setting, value);
        setting.values.iter().filter_map(one).collect()
    };
    evidence.sheet.replayed.iter().flat_map(of).collect()
}

fn case(evidence: &Evidence<'_>, setting: &Replayed, value: &str) -> Option<Case> {
    let set = format!("{}={value}", setting.key);
    let replay =
        evidence.replays.iter().find(|replay| replay.policy == setting.policy && replay.set == [set.as_str()])?;
    let outcome = replay.report.outcome.as_ref().filter(|_| replay.report.not_estimated.is_none())?;
    let shown = value.parse().map_or_else(|_| value.to_owned(), thousands);
    let put = |words: &str, value: &str| words.replace("{value}", value);
    Some(Case {
        id: setting.id.clone(),
        what: put(&setting.what, &shown),
        advice: put(&setting.advice, value),
        advice_in: [("project", &setting.advice_project), ("model", &setting.advice_model)]
            .into_iter()
            .filter_map(|(by, words)| Some((by, put(words.as_ref()?, value))))
            .collect(),
        evidence: ["what-if", &setting.policy, "--set", &set].map(str::to_owned).to_vec(),
        basis: Basis::Replayed,
        counts: counts(evidence, setting.counts, value),
        breaks: breaks(replay),
        unless: None,
        is_actionable: true,
        sides: outcome.by_session.clone(),
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
    (hard + soft > 0).then(|| {
        format!(
            "it would have dropped text that {} edits and {} later steps went back to (reading it again: ${again:.2})",
            thousands(hard),
            thousands(soft)
        )
    })
}
