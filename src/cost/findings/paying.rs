//! Settings that pay, as `tune claude-settings` tries them: the window of automatic compaction, lifetimes of the prompt cache
//! of main threads and of subagents apart (their pauses differ, and so does what pays), and limits of results that are longer
//! than need be.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::cost::findings::levers::Settable;
use crate::cost::findings::thresholds::{CacheFinding, GrownContexts, LongResult, ResultOf, ThreadKind};
use crate::cost::findings::{BillEvidence, Breaks, Case, FindingBasis, tried_sides};
use crate::report::numbers::thousands;
use crate::whatif::client::LeverValue;
use crate::whatif::client::capped::{Limit, ResultLimit};
use crate::whatif::compaction::params::AS_CLIENT;
use crate::whatif::prompt_cache::params::CacheLifetime;

/// A case for the window, and for each lifetime and each kind of tool that the sheet names, if its value is the one that pays.
pub fn cases(evidence: &BillEvidence<'_>) -> Vec<Case> {
    let lifetimes = evidence.thresholds.lifetime.iter().filter_map(|one| lifetime(evidence, one));
    let windows = window(evidence, &evidence.thresholds.window).into_iter();
    windows.chain(lifetimes).chain(evidence.thresholds.result.iter().filter_map(|one| result(evidence, one))).collect()
}

fn window(evidence: &BillEvidence<'_>, finding: &GrownContexts) -> Option<Case> {
    let (window, trial) = evidence.paying(|setting| match setting {
        LeverValue::Window(tokens) => Some(tokens),
        _ => None,
    })?;
    let compacts_at = trial.compacts_at?;
    let said = |text: &str| text.replace("{compacts_at}", &thousands(compacts_at));
    let so = said(&finding.so);
    let levers = vec![evidence.owned(&finding.rule)];
    let settable = Settable { groups: levers, for_model: Some(&finding.model_lever), so: Some(&so) };
    let reach = evidence.workload.timeline.counted().filter(|(_, request)| request.context() >= compacts_at);
    Some(Case {
        id: finding.id.clone(),
        what: said(&finding.what),
        what_uncounted: Some(said(&finding.what_below)),
        counts: evidence.counts(reach.map(|(index, _)| index)),
        breaks: Breaks::of(trial),
        sides: tried_sides(trial),
        source: alone(window, evidence.study.reattached.tokens),
        ..settable.case(evidence, &window.to_string(), Case::of(FindingBasis::Replayed, &[]))
    })
}

/// The command that replays a window by itself.
fn alone(window: u64, reattach_tokens: u32) -> Vec<String> {
    let sets = [format!("window={window}"), format!("reattach_tokens={reattach_tokens}")];
    let sets = sets.into_iter().flat_map(|set| ["--set".to_owned(), set]);
    ["what-if", "compaction"].into_iter().chain(AS_CLIENT).map(str::to_owned).chain(sets).collect()
}

fn lifetime(evidence: &BillEvidence<'_>, finding: &CacheFinding) -> Option<Case> {
    let value = |setting| match (finding.of, setting) {
        (ThreadKind::Main, LeverValue::MainTtl(class)) | (ThreadKind::Subagents, LeverValue::SubagentTtl(class)) => {
            Some(class)
        }
        _ => None,
    };
    let (_, trial) = evidence.paying(value).filter(|(class, _)| *class == finding.value)?;
    let settable = Settable { groups: vec![evidence.owned(&finding.rule)], for_model: None, so: None };
    Some(Case {
        id: finding.id.clone(),
        what: finding.what.clone(),
        counts: counts(evidence, finding),
        sides: tried_sides(trial),
        ..settable.case(evidence, finding.value.into_str(), Case::of(FindingBasis::Replayed, &[]))
    })
}

/// Contexts that were paid for again where the cache lived too short, whatever else happened there; requests that wrote for an hour
/// where it lives too long.
fn counts(evidence: &BillEvidence<'_>, finding: &CacheFinding) -> BTreeMap<(u32, Sym), u64> {
    let timeline = &evidence.workload.timeline;
    let is_concerned = |request: &u32| {
        let place = timeline.chains[timeline.requests[*request as usize].chain as usize].place;
        ThreadKind::of(place) == finding.of
    };
    match finding.value {
        CacheLifetime::Hour => {
            let expired = evidence.losses.iter().filter(|loss| loss.expired);
            evidence.counts(expired.map(|loss| loss.request).filter(is_concerned))
        }
        CacheLifetime::FiveMinutes => {
            let hourly = timeline.counted().filter(|(_, request)| request.usage().cache_creation_1h > 0);
            evidence.counts(hourly.map(|(index, _)| index).filter(is_concerned))
        }
    }
}

fn result(evidence: &BillEvidence<'_>, result: &LongResult) -> Option<Case> {
    let value = |setting| match (result.of, setting) {
        (ResultOf::Bash, LeverValue::Result(Limit::BashChars(most)))
        | (ResultOf::Mcp, LeverValue::Result(Limit::McpTokens(most)))
        | (ResultOf::Read, LeverValue::Result(Limit::ReadTokens(most))) => Some(most),
        _ => None,
    };
    let (most, trial) = evidence.paying(value)?;
    let lever = evidence.levers.named(&result.lever)?;
    let settable = Settable { groups: vec![vec![lever]], for_model: None, so: Some(&result.so) };
    Some(Case {
        id: result.id.clone(),
        what: result.what.replace("{value}", &thousands(most)),
        counts: evidence.counts(cut(evidence, trial.setting)?.into_iter()),
        breaks: Breaks::of(trial),
        sides: tried_sides(trial),
        ..settable.case(evidence, &most.to_string(), Case::of(FindingBasis::Replayed, &[]))
    })
}

/// The requests that results came in with which would have been cut.
fn cut(evidence: &BillEvidence<'_>, setting: LeverValue) -> Option<Vec<u32>> {
    let LeverValue::Result(limit) = setting else { return None };
    let (timeline, sizes) = (&evidence.workload.timeline, &evidence.workload.sizes);
    let limit = ResultLimit::new(limit, evidence.thresholds.limits.clone()?, sizes.rules.clone());
    let is_cut = |block: &u32| limit.cut(timeline, *block, sizes.tokens[*block as usize]).is_some();
    Some(timeline.counted().flat_map(|(at, request)| request.inputs.clone().filter(is_cut).map(move |_| at)).collect())
}
