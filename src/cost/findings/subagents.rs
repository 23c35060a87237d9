//! Subagents on expensive models: what the same tokens cost at the list prices of a cheaper one. Whether that one would have
//! done the work is in no log, so it is a bound.

use crate::cost::bill::{Bill, Charge};
use crate::cost::findings::levers::Settable;
use crate::cost::findings::thresholds::Subagents;
use crate::cost::findings::{BillEvidence, Case, FindingBasis, MadeOf};
use crate::cost::groups::NO_KIND;
use crate::logs::timeline::requests::{Chain, NONE, Request, Timeline};
use crate::logs::trace::Place;
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::figures::{RunBill, Sides};
use crate::whatif::workload::Workload;

/// One case, if a subagent ran on a model that costs more.
pub fn cases(evidence: &BillEvidence<'_>) -> Vec<Case> {
    case(evidence, &evidence.thresholds.subagents).into_iter().collect()
}

fn case(evidence: &BillEvidence<'_>, section: &Subagents) -> Option<Case> {
    let (bill, timeline) = (evidence.bill(), &evidence.workload.timeline);
    let lever = evidence.levers.named(&section.lever)?;
    let settable = Settable { groups: vec![vec![lever]], for_model: None, so: Some(&section.so) };
    let case = Case::of(FindingBasis::Priced, &["cost", "--by", "agent-type,model"]);
    let mut case = Case {
        id: section.id.clone(),
        what: section.what.clone(),
        made_of: MadeOf::by(&["agent type", "model"]),
        ..settable.case(evidence, &section.value, case)
    };
    for chain in timeline.chains.iter().filter(|chain| is_own(timeline, section, chain)) {
        let kind = match timeline.names.text(chain.agent_type) {
            "" => NO_KIND,
            kind => kind,
        };
        for index in chain.requests.clone() {
            let request = &timeline.requests[index as usize];
            if !request.counts() {
                continue;
            }
            let charge = bill.charge(request);
            let most = section.cost_share_max * charge.cost.nano_usd as f64;
            let after = with_model(evidence.workload, section, request, &charge);
            let Some(after) = after.filter(|after| after.nano_usd as f64 <= most) else { continue };
            let [baseline, policy] = [charge.cost, after].map(|cost| RunBill { spent: charge.spent, cost });
            let names = vec![kind.to_owned(), timeline.names.text(request.model).to_owned()];
            case.add(names, evidence.key(index), 1, &Sides { requests: 1, unpriced_requests: 0, baseline, policy });
        }
    }
    (!case.sides.is_empty()).then_some(case)
}

/// Whether a chain is a subagent with a context of its own that follows the setting. One that goes on from another context
/// lives off the cache of that model; what the client runs for itself, and for which a call names a model, follows no setting.
fn is_own(timeline: &Timeline, section: &Subagents, chain: &Chain) -> bool {
    let first = timeline.segments.get(chain.segments.start as usize);
    let is_forked = first.is_some_and(|first| first.after != NONE);
    let kind = timeline.names.text(chain.agent_type);
    chain.place != Place::Main && !is_forked && !chain.names_model && !section.without.iter().any(|own| own == kind)
}

/// Whether a request is of a subagent that follows the setting, and would cost less with the cheaper model.
pub fn is_movable(workload: &Workload, bill: &Bill<'_>, section: &Subagents, request: &Request) -> bool {
    let timeline = &workload.timeline;
    let charge = bill.charge(request);
    let is_cheaper = |after: Cost| after.nano_usd < charge.cost.nano_usd;
    is_own(timeline, section, timeline.chain(request.chain))
        && with_model(workload, section, request, &charge).is_some_and(is_cheaper)
}

/// What a request would cost with the cheaper model; none if that is known of one of them only.
fn with_model(workload: &Workload, section: &Subagents, request: &Request, charge: &Charge) -> Option<Cost> {
    let rates = workload.prices.rates(&section.model, request.start, charge.spent.prompt())?;
    let after = rates.cost(&charge.spent);
    let is_priced = charge.cost.unpriced_tokens + after.unpriced_tokens == 0;
    (is_priced && charge.cost.nano_usd > 0).then_some(after)
}
