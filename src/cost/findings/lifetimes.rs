//! Lifetimes of the prompt cache, of main threads and of subagents apart: their pauses differ, and so does what pays.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::cost::findings::levers::Settable;
use crate::cost::findings::thresholds::{CacheFinding, ThreadKind};
use crate::cost::findings::{BillEvidence, Case, FindingBasis, tried_sides};
use crate::logs::trace::Place;
use crate::whatif::client::LeverValue;
use crate::whatif::prompt_cache::causes;
use crate::whatif::prompt_cache::outcome::Cause;
use crate::whatif::prompt_cache::params::CacheLifetime;

/// A case for each lifetime that the sheet names, if it is the one that pays.
pub fn cases(evidence: &BillEvidence<'_>) -> Vec<Case> {
    evidence.sheet.lifetime.iter().filter_map(|lifetime| case(evidence, lifetime)).collect()
}

fn case(evidence: &BillEvidence<'_>, finding: &CacheFinding) -> Option<Case> {
    let lifetime = |setting| match (finding.of, setting) {
        (ThreadKind::Main, LeverValue::MainTtl(class)) | (ThreadKind::Subagents, LeverValue::SubagentTtl(class)) => {
            Some(class)
        }
        _ => None,
    };
    let (_, trial) = evidence.paying(lifetime).filter(|(class, _)| *class == finding.value)?;
    let settable = Settable { groups: vec![evidence.owned(&finding.rule)], for_model: None, so: None };
    Some(Case {
        id: finding.id.clone(),
        what: finding.what.clone(),
        counts: counts(evidence, finding),
        sides: tried_sides(trial),
        ..settable.case(evidence, finding.value.into_str(), Case::of(FindingBasis::Replayed, &[]))
    })
}

/// Contexts that were paid for again where the cache lived too short, requests that wrote for an hour where it lives too long.
fn counts(evidence: &BillEvidence<'_>, finding: &CacheFinding) -> BTreeMap<(u32, Sym), u64> {
    let timeline = &evidence.workload.timeline;
    let is_concerned = |request: &u32| {
        let place = timeline.chains[timeline.requests[*request as usize].chain as usize].place;
        (place == Place::Main) == (finding.of == ThreadKind::Main)
    };
    match finding.value {
        CacheLifetime::Hour => {
            let losses = causes::losses(evidence.simulator);
            let expired = losses.iter().filter(|loss| loss.cause == Cause::TtlExpiry);
            evidence.counts(expired.map(|loss| loss.request).filter(is_concerned))
        }
        CacheLifetime::FiveMinutes => {
            let hourly = timeline.counted().filter(|(_, request)| request.usage.cache_creation_1h > 0);
            evidence.counts(hourly.map(|(index, _)| index).filter(is_concerned))
        }
    }
}
