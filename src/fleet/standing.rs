//! When a count stands on enough people, and how bins are joined until each of them does.

use std::collections::BTreeMap;

use crate::fleet::limits::FleetLimits;
use crate::fleet::measure::OTHER;

/// Counts by person; nobody with 0.
pub type ByPerson = BTreeMap<u32, i64>;

/// Whether a count may be told: enough people have a part in it, and none of them too large a one.
pub fn stands(counts: &ByPerson, limits: &FleetLimits) -> bool {
    let total: i64 = counts.values().sum();
    let largest = counts.values().copied().max().unwrap_or_default();
    counts.len() as u64 >= limits.people_min && largest * 100 <= total * limits.share_max_pct as i64
}

/// Adds the counts of one to those of another.
pub fn absorb(into: &mut ByPerson, from: &ByPerson) {
    from.iter().for_each(|(person, count)| *into.entry(*person).or_default() += count);
}

/// Joins neighbouring bins, from the lowest, until each stands; what is left at the end goes to the last that does. A joined
/// bin is called by the one in which its median lies, so that no extreme shows. No count is lost: what is missing could be
/// found by subtraction. Nothing where not even all together stand.
pub fn joined(bins: &BTreeMap<u32, ByPerson>, limits: &FleetLimits) -> Vec<(u32, ByPerson)> {
    let mut groups: Vec<BinGroup> = Vec::new();
    let mut open = BinGroup::default();
    for (&bin, counts) in bins {
        open.add(bin, counts);
        if stands(&open.counts, limits) {
            groups.push(std::mem::take(&mut open));
        }
    }
    groups.extend((!open.bins.is_empty()).then_some(open));
    // What joins a group may unbalance it.
    while let Some(last) = groups.pop_if(|last| !stands(&last.counts, limits)) {
        let Some(before) = groups.last_mut() else { return Vec::new() };
        last.bins.iter().for_each(|(bin, counts)| before.add(*bin, counts));
    }
    groups.into_iter().map(|group| (group.median(), group.counts)).collect()
}

/// Bins that are told as one.
#[derive(Default)]
struct BinGroup {
    bins: Vec<(u32, ByPerson)>,
    counts: ByPerson,
}

impl BinGroup {
    fn add(&mut self, bin: u32, counts: &ByPerson) {
        absorb(&mut self.counts, counts);
        self.bins.push((bin, counts.clone()));
    }

    fn median(&self) -> u32 {
        let total: i64 = self.counts.values().sum();
        let mut reached = 0;
        let found = self.bins.iter().find(|(_, counts)| {
            reached += counts.values().sum::<i64>();
            2 * reached >= total
        });
        found.or(self.bins.last()).map_or(0, |(bin, _)| *bin)
    }
}

/// Kinds that stand; all others together as [`OTHER`], to which the rarest of the rest are added until it stands too.
/// Nothing where not even all together stand.
pub fn gathered(kinds: &BTreeMap<u32, ByPerson>, limits: &FleetLimits) -> Vec<(u32, ByPerson)> {
    let (mut told, rare): (Vec<_>, Vec<_>) =
        kinds.iter().map(|(kind, counts)| (*kind, counts.clone())).partition(|(_, counts)| stands(counts, limits));
    let mut other = ByPerson::new();
    rare.iter().for_each(|(_, counts)| absorb(&mut other, counts));
    while !other.is_empty() && !stands(&other, limits) {
        let total = |counts: &ByPerson| counts.values().sum::<i64>();
        let rarest = (0..told.len()).min_by_key(|&at| (total(&told[at].1), told[at].0));
        let Some(at) = rarest else { return Vec::new() };
        absorb(&mut other, &told.remove(at).1);
    }
    if !other.is_empty() {
        told.push((OTHER, other));
    }
    told
}

/// Whether what parts leave of a whole stands too, or is nothing: what is suppressed must not be the difference of what is
/// told. Parts may overlap, and so be more than the whole.
pub fn leaves_enough(whole: &ByPerson, parts: &[&ByPerson], limits: &FleetLimits) -> bool {
    let mut rest = rest(whole, parts);
    rest.retain(|_, count| *count > 0);
    rest.is_empty() || stands(&rest, limits)
}

/// The same of two numbers of which either may be the larger, such as costs under two settings.
pub fn differs_enough(one: &ByPerson, other: &ByPerson, limits: &FleetLimits) -> bool {
    let mut rest = rest(one, &[other]);
    rest.values_mut().for_each(|count| *count = count.abs());
    rest.retain(|_, count| *count > 0);
    rest.is_empty() || stands(&rest, limits)
}

fn rest(whole: &ByPerson, parts: &[&ByPerson]) -> ByPerson {
    let mut rest = whole.clone();
    for (person, count) in parts.iter().flat_map(|part| part.iter()) {
        *rest.entry(*person).or_default() -= count;
    }
    rest
}

/// Takes parts of a told whole back, the smallest first, until what remains of the whole stands or is nothing, and before
/// that each one that by itself leaves too little. Gives the places of the parts that are taken back.
pub fn taken_back(whole: &ByPerson, parts: &[&ByPerson], limits: &FleetLimits) -> Vec<usize> {
    let total = |at: &usize| parts[*at].values().sum::<i64>();
    let (mut told, mut back): (Vec<usize>, Vec<usize>) =
        (0..parts.len()).partition(|&at| leaves_enough(whole, &[parts[at]], limits));
    told.sort_by_key(|at| (std::cmp::Reverse(total(at)), *at));
    loop {
        let parts: Vec<&ByPerson> = told.iter().map(|&at| parts[at]).collect();
        if leaves_enough(whole, &parts, limits) {
            return back;
        }
        let Some(smallest) = told.pop() else { return back };
        back.push(smallest);
    }
}
