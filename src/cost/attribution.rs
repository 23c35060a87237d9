//! The bill by any keys: what came in first, what it cost to carry, and what was paid for again. Sums are exact: the rows of
//! every grouping add up to [`Bill::total`] in tokens and in nano-dollars.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::sums::adds_up;
use crate::cost::bill::Bill;
use crate::cost::groups::{CostKey, Label, Things};
use crate::cost::shares::{BillShare, Thing, When};
use crate::cost::{groups, shares};
use crate::logs::timeline::requests::BlockKind;
use crate::whatif::sim::cost::{Cost, Spent};

/// What a group of things cost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GroupCost {
    /// Tool calls that were made.
    pub calls: u64,
    /// Those of them that a model with a price asked for.
    pub priced_calls: u64,
    /// All tokens, by how they were billed.
    pub spent: Spent,
    /// When it came in, or was written by the model.
    pub first: Cost,
    /// Each time it was sent again.
    pub carried: Cost,
    /// Written or billed in full once more, since the cache had lost it.
    pub again: Cost,
}

impl GroupCost {
    /// All of it.
    pub fn cost(&self) -> Cost {
        self.first + self.carried + self.again
    }

    /// Adds a share.
    pub fn add(&mut self, share: &BillShare) {
        self.spent += share.spent;
        match share.when {
            When::First => self.first += share.cost,
            When::Carried => self.carried += share.cost,
            When::Again => self.again += share.cost,
        }
    }
}

adds_up!(GroupCost: calls, priced_calls, spent, first, carried, again);

/// A row of a cost table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CostRow {
    /// Its names, in the order of the keys.
    pub labels: Vec<Label>,
    pub entry: GroupCost,
}

/// A bill by some keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attribution {
    pub keys: Vec<CostKey>,
    /// The most expensive first; equal ones by name.
    pub rows: Vec<CostRow>,
    /// The whole bill.
    pub total: GroupCost,
}

/// Sums by group of requests and group of things.
type GroupSums = BTreeMap<(u32, u32), GroupCost>;

impl Attribution {
    /// Shares out a bill by one key or several.
    pub fn new(bill: &Bill<'_>, keys: &[CostKey]) -> Self {
        let (of_things, of_requests): (Vec<CostKey>, Vec<CostKey>) = keys.iter().partition(|key| key.is_of_things());
        let things = Things::new(bill.timeline, &of_things);
        let requests = groups::requests(bill.timeline, &of_requests);
        let group = |request: u32| requests.group(request as usize);
        let mut sums = sums(bill, &things, &group);
        count_calls(bill, &things, &group, &mut sums);
        let names = |(request, thing): (u32, u32)| {
            let (mut of_request, mut of_thing) =
                (requests.labels[request as usize].iter(), things.labels(thing).iter());
            let next = |key: &CostKey| if key.is_of_things() { of_thing.next() } else { of_request.next() };
            keys.iter().filter_map(next).cloned().collect()
        };
        let mut total = GroupCost::default();
        sums.values().for_each(|entry| total += *entry);
        let mut rows: Vec<CostRow> = sums.into_iter().map(|(at, entry)| CostRow { labels: names(at), entry }).collect();
        let weight = |entry: &GroupCost| (entry.cost().nano_usd, entry.cost().units);
        rows.sort_by(|a, b| weight(&b.entry).cmp(&weight(&a.entry)).then_with(|| a.labels.cmp(&b.labels)));
        Self { keys: keys.to_vec(), rows, total }
    }
}

/// All shares, chain by chain.
fn sums(bill: &Bill<'_>, things: &Things, group: &(impl Fn(u32) -> u32 + Sync)) -> GroupSums {
    let chains = 0..bill.timeline.chains.len() as u32;
    let of_chain = |page: &mut GroupPage, chain: u32| {
        let mut sums = GroupSums::new();
        let mut open: Option<u32> = None;
        shares::of_chain(bill, chain, group, &mut |share| {
            let at = group(share.request);
            if open != Some(at) {
                page.close(&mut sums, open.replace(at));
            }
            page.add(things.group(share.thing), share);
        });
        page.close(&mut sums, open);
        sums
    };
    let all = chains.into_par_iter().map_init(|| GroupPage::new(things.count()), of_chain);
    all.reduce(GroupSums::new, |mut all, part| {
        part.into_iter().for_each(|(at, entry)| *all.entry(at).or_default() += entry);
        all
    })
}

/// The sums of one group of requests, which mostly follow each other.
struct GroupPage {
    /// By group of things: there may be thousands, of which a session has a few.
    sums: Vec<GroupCost>,
    /// Those that may have something.
    written: Vec<u32>,
}

impl GroupPage {
    fn new(groups: usize) -> Self {
        #[cfg(test)]
        (0..groups).for_each(|_| crate::base::id::work::step());
        Self { sums: vec![GroupCost::default(); groups], written: Vec::new() }
    }

    fn add(&mut self, thing: u32, share: &BillShare) {
        let sum = &mut self.sums[thing as usize];
        if *sum == GroupCost::default() {
            self.written.push(thing);
        }
        sum.add(share);
    }

    /// Books what is written, if it belongs to a group of requests.
    fn close(&mut self, sums: &mut GroupSums, group: Option<u32>) {
        let Some(group) = group else { return };
        for thing in self.written.drain(..) {
            #[cfg(test)]
            crate::base::id::work::step();
            let sum = std::mem::take(&mut self.sums[thing as usize]);
            if sum != GroupCost::default() {
                *sums.entry((group, thing)).or_default() += sum;
            }
        }
    }
}

/// Counts tool calls where they were asked for.
fn count_calls(bill: &Bill<'_>, things: &Things, group: &impl Fn(u32) -> u32, sums: &mut GroupSums) {
    for (_, call) in bill.timeline.counted_calls() {
        let request = bill.timeline.request_of_block(call.asked);
        // The calls of a bill are those of its requests.
        if !bill.timeline.request(request).is_billed() {
            continue;
        }
        debug_assert_eq!(bill.timeline.blocks[call.asked as usize].kind, BlockKind::ToolUsage);
        let entry = sums.entry((group(request), things.group(Thing::Block(call.asked)))).or_default();
        let charge = bill.charge(bill.timeline.request(request));
        entry.calls += 1;
        entry.priced_calls += u64::from(charge.cost.unpriced_tokens == 0);
    }
}
