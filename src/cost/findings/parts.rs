//! Parts of contexts that need not be there, by what they cost from the moment they came in.

mod calls;
mod hooks;
mod images;
mod servers;

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::cost::findings::carried::{CarriedCosts, Costs, PartItem};
use crate::cost::findings::made::MadeOf;
use crate::cost::findings::{BillEvidence, Case, FindingBasis};
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::figures::Sides;

/// Every kind of part. A new one is one line here.
const KINDS: &[fn(&BillEvidence<'_>, &mut CarriedCosts<'_>) -> Vec<Parts>] =
    &[calls::parts, images::parts, servers::parts, hooks::parts];

/// Some parts, with the case that they are.
pub struct Parts {
    /// What is said of them.
    pub case: Case,
    /// The items that were asked about.
    pub items: Vec<PartItem>,
}

impl Parts {
    /// The name of a finding, what happens and what to do; the key of `devboy cost` that shows it best; what the names of
    /// its items are.
    fn of(
        [id, what, advice]: [&String; 3],
        by: &str,
        kinds: &[&'static str],
        items: impl IntoIterator<Item = PartItem>,
    ) -> Self {
        let case = Case {
            id: id.clone(),
            what: what.clone(),
            advice: advice.clone().into(),
            made_of: MadeOf::by(kinds),
            ..Case::of(FindingBasis::Shared, &["cost", "--by", by])
        };
        Self { case, items: items.into_iter().collect() }
    }
}

/// A case for each kind of part.
pub fn cases(evidence: &BillEvidence<'_>) -> Vec<Case> {
    let mut carried = CarriedCosts::new(evidence);
    let parts: Vec<Parts> = KINDS.iter().flat_map(|kind| kind(evidence, &mut carried)).collect();
    let (costs, bill) = (carried.costs(), evidence.bill());
    let whole = evidence.charged(|request| {
        let charge = bill.charge(request);
        Some((charge.spent, charge.cost))
    });
    parts.into_iter().filter_map(|parts| case(parts, &costs, &whole)).collect()
}

fn case(Parts { mut case, items }: Parts, costs: &[Costs], whole: &BTreeMap<(u32, Sym), Sides>) -> Option<Case> {
    case.sides = whole.clone();
    let is_named = !case.made_of.kinds.is_empty();
    for item in items {
        for (&key, &cost) in &costs[item.item] {
            if let Some(sides) = case.sides.get_mut(&key) {
                sides.policy.cost = sides.policy.cost.less(&cost);
            }
            if is_named {
                case.made_of.add(item.names.clone(), key, 0, cost, Cost::default());
            }
        }
        for (key, count) in item.counts {
            *case.counts.entry(key).or_default() += count;
            if is_named {
                case.made_of.add(item.names.clone(), key, count, Cost::default(), Cost::default());
            }
        }
    }
    (!case.counts.is_empty()).then_some(case)
}
