//! Results of tools that are longer than need be: what a limit of the client would have saved, as `tune claude-settings`
//! tries it.

use crate::cost::findings::levers::Settable;
use crate::cost::findings::thresholds::{LongResult, ResultOf};
use crate::cost::findings::{BillEvidence, Breaks, Case, FindingBasis, tried_sides};
use crate::report::numbers::thousands;
use crate::whatif::client::LeverValue;
use crate::whatif::client::capped::{Limit, ResultLimit};

/// A case for each kind of tool that the sheet names.
pub fn cases(evidence: &BillEvidence<'_>) -> Vec<Case> {
    evidence.sheet.result.iter().filter_map(|result| case(evidence, result)).collect()
}

fn case(evidence: &BillEvidence<'_>, result: &LongResult) -> Option<Case> {
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
        breaks: Breaks::of(trial, None),
        sides: tried_sides(trial),
        ..settable.case(evidence, &most.to_string(), Case::of(FindingBasis::Replayed, &[]))
    })
}

/// The requests that results came in with which would have been cut.
fn cut(evidence: &BillEvidence<'_>, setting: LeverValue) -> Option<Vec<u32>> {
    let LeverValue::Result(limit) = setting else { return None };
    let (timeline, sizes) = (&evidence.workload.timeline, &evidence.workload.sizes);
    let limit = ResultLimit::new(limit, evidence.sheet.limits.clone()?, sizes.rules.clone());
    let is_cut = |block: &u32| limit.cut(timeline, *block, sizes.tokens[*block as usize]).is_some();
    Some(timeline.counted().flat_map(|(at, request)| request.inputs.clone().filter(is_cut).map(move |_| at)).collect())
}
