//! Parts of contexts that need not be there, by what they cost from the moment they came in.

mod calls;
mod hooks;
mod images;
mod servers;

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::cost::findings::carried::{CarriedCosts, Costs};
use crate::cost::findings::made::MadeOf;
use crate::cost::findings::misses::less;
use crate::cost::findings::{BillEvidence, Case, FindingBasis, Waits};
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::figures::Sides;

/// Every kind of part. A new one is one line here.
const KINDS: &[fn(&BillEvidence<'_>, &mut CarriedCosts<'_>) -> Vec<Parts>] =
    &[calls::parts, images::parts, servers::parts, hooks::parts];

/// Some parts, with what a case says of them.
pub struct Parts {
    /// Name of the finding.
    pub id: String,
    /// What happens.
    pub what: String,
    /// What to do.
    pub advice: String,
    /// The key of `devboy cost` that shows them best.
    pub by: &'static str,
    /// What the names of the items are.
    pub kinds: Vec<&'static str>,
    /// The items that were asked about.
    pub items: Vec<PartItem>,
    /// How long somebody waited.
    pub waits: Option<Waits>,
}

/// One item of [`CarriedCosts`].
pub struct PartItem {
    /// Which.
    pub item: usize,
    /// Its names.
    pub names: Vec<String>,
    /// How often it came in, by session and model.
    pub counts: BTreeMap<(u32, Sym), u64>,
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

fn case(parts: Parts, costs: &[Costs], whole: &BTreeMap<(u32, Sym), Sides>) -> Option<Case> {
    let mut sides = whole.clone();
    let mut counts: BTreeMap<(u32, Sym), u64> = BTreeMap::new();
    let mut made_of = MadeOf::by(&parts.kinds);
    for item in parts.items {
        for (&key, &cost) in &costs[item.item] {
            if let Some(sides) = sides.get_mut(&key) {
                sides.policy.cost = less(sides.policy.cost, cost);
            }
            if !parts.kinds.is_empty() {
                made_of.add(item.names.clone(), key, 0, cost, Cost::default());
            }
        }
        for (key, count) in item.counts {
            *counts.entry(key).or_default() += count;
            if !parts.kinds.is_empty() {
                made_of.add(item.names.clone(), key, count, Cost::default(), Cost::default());
            }
        }
    }
    (!counts.is_empty()).then(|| Case {
        id: parts.id,
        what: parts.what,
        advice: parts.advice,
        counts,
        sides,
        made_of,
        waits: parts.waits,
        ..Case::of(FindingBasis::Shared, &["cost", "--by", parts.by])
    })
}
