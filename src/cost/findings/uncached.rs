//! Threads that the prompt cache does nothing for: what they write is never read, or nothing is written at all.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::model_id;
use crate::cost::findings::thresholds::{UnreadCache, UnwrittenCache};
use crate::cost::findings::{Advice, BillEvidence, Case, FindingBasis, misses};
use crate::logs::timeline::requests::Request;
use crate::whatif::prompt_cache::causes::{self, Loss};
use crate::whatif::sim::cache_sim::written;
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::simulator::Simulator;

/// A case for each of both.
pub fn cases(evidence: &BillEvidence<'_>) -> Vec<Case> {
    let unread = unread(evidence, &evidence.thresholds.unread);
    unread.into_iter().chain(unwritten(evidence, &evidence.thresholds.unwritten)).collect()
}

/// Threads in which no request that still had the context of the one before read any of it: by chain. What expired in a pause is
/// not enough of a sign, and counts as expired.
pub fn unread_threads(simulator: &Simulator<'_>, section: &UnreadCache) -> BTreeSet<u32> {
    let mut misses: BTreeMap<u32, Option<u64>> = BTreeMap::new();
    causes::for_pairs(simulator, |before, index| {
        // Behind what was too short to be cached there is nothing to read.
        let was_cached = simulator.timeline.request(before).cached() > 0;
        if !was_cached || !causes::stays(simulator, before, index) {
            return;
        }
        let request = simulator.timeline.request(index);
        let count = misses.entry(request.chain).or_insert(Some(0));
        // Where the static prefix is found, something else is lost.
        let is_miss = request.usage().cache_read == 0 && causes::of(simulator, before, index).is_some();
        let is_sign = is_miss && !causes::has_expired(simulator, before, index);
        *count = count.filter(|_| is_miss).map(|count| count + u64::from(is_sign));
    });
    let is_enough = |count: Option<u64>| count.is_some_and(|count| count >= section.misses_min);
    misses.into_iter().filter(|(_, count)| is_enough(*count)).map(|(chain, _)| chain).collect()
}

/// Whether a loss is one of a thread of these, and no pause explains it.
pub fn is_unread(evidence: &BillEvidence<'_>, loss: &Loss) -> bool {
    !loss.expired && evidence.unread.contains(&evidence.workload.timeline.request(loss.request).chain)
}

fn unread(evidence: &BillEvidence<'_>, section: &UnreadCache) -> Option<Case> {
    if evidence.unread.is_empty() {
        return None;
    }
    let losses = evidence.losses.iter().filter(|loss| is_unread(evidence, loss));
    let case = Case {
        id: section.id.clone(),
        what: section.what.clone(),
        advice: Advice::Do(section.advice.clone()),
        ..Case::of(FindingBasis::Billed, &["what-if", "prompt-cache", "--all"])
    };
    misses::without(evidence, &misses::billed(evidence), losses, case)
}

/// Threads of which nothing was read and nothing was written, though their contexts are long enough, by chain: their billed
/// requests, in their order.
fn unwritten_threads(evidence: &BillEvidence<'_>, section: &UnwrittenCache) -> BTreeMap<u32, Vec<u32>> {
    let timeline = &evidence.workload.timeline;
    let mut threads: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut cached: BTreeSet<u32> = BTreeSet::new();
    for (index, request) in timeline.counted().filter(|(_, request)| request.context() > 0) {
        if request.cached() > 0 {
            cached.insert(request.chain);
        } else if can_cache(evidence, section, request) {
            threads.entry(request.chain).or_default().push(index);
        }
    }
    threads.retain(|chain, requests| !cached.contains(chain) && requests.len() as u64 >= section.requests_min);
    threads
}

/// Whether the model is one of those that cache, and the context long enough.
fn can_cache(evidence: &BillEvidence<'_>, section: &UnwrittenCache, request: &Request) -> bool {
    let model = evidence.workload.timeline.names.text(request.model);
    request.context() >= evidence.simulator.cache_rules.min_cacheable(model)
        && model_id::normalise(model).starts_with(&section.models)
}

/// The input of these threads as it would have been billed with a cache: of a context that stays and has not expired is read what
/// the request before had, the rest is written.
fn unwritten(evidence: &BillEvidence<'_>, section: &UnwrittenCache) -> Option<Case> {
    let simulator = evidence.simulator;
    let threads = unwritten_threads(evidence, section);
    if threads.is_empty() {
        return None;
    }
    let mut sides = misses::billed(evidence);
    let mut requests = Vec::new();
    for (place, index) in threads.values().flat_map(|indices| indices.iter().copied().enumerate()) {
        let request = simulator.timeline.request(index);
        let before = place.checked_sub(1).and_then(|place| threads.get(&request.chain)?.get(place).copied());
        let cost = &mut sides.get_mut(&evidence.key(index))?.policy.cost;
        *cost = cost.less(&simulator.tariff.of(request, &simulator.billed(request)));
        let before = before.filter(|before| is_alive(evidence, *before, index));
        *cost += with_cache(evidence, before, index);
        requests.extend(before.map(|_| index));
    }
    let counts = evidence.counts(requests.into_iter());
    (!counts.is_empty()).then(|| Case {
        id: section.id.clone(),
        what: section.what.clone(),
        advice: Advice::Do(section.advice.clone()),
        counts,
        sides,
        is_judged_lately: false,
        ..Case::of(FindingBasis::Replayed, &[])
    })
}

/// Whether a cache would have had the context of one request at another.
fn is_alive(evidence: &BillEvidence<'_>, before: u32, index: u32) -> bool {
    let simulator = evidence.simulator;
    let model = |request: u32| simulator.timeline.request(request).model;
    model(before) == model(index)
        && causes::stays(simulator, before, index)
        && !causes::has_expired(simulator, before, index)
}

/// What a request would have cost that reads the context of the one before, if there is one.
fn with_cache(evidence: &BillEvidence<'_>, before: Option<u32>, index: u32) -> Cost {
    let simulator = evidence.simulator;
    let request = simulator.timeline.request(index);
    let read = before.map_or(0, |before| simulator.timeline.request(before).context()).min(request.context());
    let rest = written(request.context() - read, simulator.priors[index as usize].class);
    simulator.tariff.of(request, &(Spent { read, ..Spent::default() } + rest))
}
