//! What things in contexts cost, from when they came in: one walk over the shares of the bill for all that is asked about.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::names::Sym;
use crate::cost::findings::BillEvidence;
use crate::cost::shares::{self, Thing};
use crate::whatif::sim::cost::Cost;

/// Costs by session and model.
pub type Costs = BTreeMap<(u32, Sym), Cost>;

/// One item that is asked about.
pub struct PartItem {
    pub item: usize,
    pub names: Vec<String>,
    /// How often it came in, by session and model.
    pub counts: BTreeMap<(u32, Sym), u64>,
}

/// What is asked about: items, each of them some things or parts of them.
pub struct CarriedCosts<'e> {
    evidence: &'e BillEvidence<'e>,
    items: usize,
    /// Lists of items with the share of a thing that is theirs; the first is empty.
    lists: Vec<Vec<(usize, f64)>>,
    /// By block, by request that brought what no log has, by chain with its prefix: the list.
    blocks: Vec<u32>,
    unlogged: Vec<u32>,
    prefixes: Vec<u32>,
}

impl<'e> CarriedCosts<'e> {
    /// Nothing so far.
    pub fn new(evidence: &'e BillEvidence<'e>) -> Self {
        let timeline = &evidence.workload.timeline;
        Self {
            evidence,
            items: 0,
            lists: vec![Vec::new()],
            blocks: vec![0; timeline.blocks.len()],
            unlogged: vec![0; timeline.requests.len()],
            prefixes: vec![0; timeline.chains.len()],
        }
    }

    /// A new item.
    pub fn item(&mut self, names: Vec<String>) -> PartItem {
        self.items += 1;
        PartItem { item: self.items - 1, names, counts: BTreeMap::new() }
    }

    /// Adds a share (0 to 1) of a block to an item.
    pub fn block(&mut self, item: usize, block: u32, share: f64) {
        add(&mut self.lists, &mut self.blocks[block as usize], item, share);
    }

    /// Adds tokens of what came in with requests and is in no block, as items with their requests. All of them together are no
    /// more than came in. With the first request of a chain they may stand in its prefix as well.
    pub fn unlogged(&mut self, came: &[(usize, u32, f64)]) {
        let BillEvidence { workload, .. } = self.evidence;
        let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
        came.iter().for_each(|&(_, request, tokens)| *sums.entry(request).or_default() += tokens);
        for &(item, request, tokens) in came {
            let chain = workload.timeline.request(request).chain as usize;
            let is_first = workload.timeline.chains[chain].requests.start == request;
            let prefix = if is_first { workload.sizes.prefix[chain] as f64 } else { 0.0 };
            let held = prefix + f64::from(workload.sizes.residual[request as usize]);
            let share = if held > 0.0 { tokens / held.max(sums[&request]) } else { 0.0 };
            add(&mut self.lists, &mut self.unlogged[request as usize], item, share);
            if is_first {
                add(&mut self.lists, &mut self.prefixes[chain], item, share);
            }
        }
    }

    /// What every item cost.
    pub fn costs(&self) -> Vec<Costs> {
        let evidence = self.evidence;
        let bill = evidence.bill();
        let of_chain = |chain: u32| {
            let mut costs: BTreeMap<(usize, (u32, Sym)), Cost> = BTreeMap::new();
            shares::of_chain(&bill, chain, |request| evidence.key(request), &mut |share| {
                let list = match share.thing {
                    Thing::Block(block) => self.blocks[block as usize],
                    Thing::Unlogged(request) => self.unlogged[request as usize],
                    Thing::Prefix => self.prefixes[chain as usize],
                    Thing::Answer => 0,
                };
                for &(item, part) in &self.lists[list as usize] {
                    *costs.entry((item, evidence.key(share.request))).or_default() += share.cost.part(part);
                }
            });
            costs
        };
        let chains = 0..evidence.workload.timeline.chains.len() as u32;
        let all: Vec<_> = chains.into_par_iter().map(of_chain).collect();
        let mut sums = vec![Costs::new(); self.items];
        for ((item, key), cost) in all.into_iter().flatten() {
            *sums[item].entry(key).or_default() += cost;
        }
        sums
    }
}

fn add(lists: &mut Vec<Vec<(usize, f64)>>, list: &mut u32, item: usize, share: f64) {
    if share <= 0.0 {
        return;
    }
    if *list == 0 {
        *list = lists.len() as u32;
        lists.push(Vec::new());
    }
    lists[*list as usize].push((item, share));
}
