//! Why the cache was missed, as the bill shows it: every big drop of a read gets the first cause that fits.

use std::collections::{BTreeMap, BTreeSet};

use crate::logs::timeline::requests::{Marks, NONE, Request, SegmentCause};
use crate::logs::trace::Place;
use crate::whatif::prompt_cache::outcome::{Cause, CauseSum};
use crate::whatif::sim::cache_sim::written;
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::laid_out;
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::view::ItemKey;

/// Percent by which a read dropped, floored, if that is a break: the read before was positive and this one is less than half
/// of it (policies.md 2.1).
pub fn drop_percent(previous: u64, current: u64) -> Option<u64> {
    (previous > 0 && 2 * current < previous).then(|| 100 * (previous - current) / previous)
}

/// The cause of a break at a request, if the bill shows one there. The request before may have read little or nothing, behind
/// another break or at the start of a thread: where its context stays, or the cache expired, it is told by what that request
/// wrote as well.
pub fn of(simulator: &Simulator<'_>, before: u32, index: u32) -> Option<Cause> {
    let read = simulator.timeline.request(index).usage().cache_read;
    let billed = simulator.timeline.request(before);
    drop_percent(billed.cached(), read)?;
    let cause = occasion(simulator, before, index);
    let is_drop = || drop_percent(billed.usage().cache_read, read).is_some();
    (cause == Cause::TtlExpiry || is_drop() || stays(simulator, before, index)).then_some(cause)
}

/// Whether more time passed between two requests than the cache lives. The slack of the simulation is no part of it: what was lost
/// right behind the lifetime has expired.
pub fn has_expired(simulator: &Simulator<'_>, before: u32, index: u32) -> bool {
    let class = simulator.priors[before as usize].class;
    let [before, request] = [before, index].map(|request| simulator.timeline.request(request));
    let idle = match before.chain == request.chain {
        true => simulator.priors[index as usize].idle,
        false => request.start.saturating_sub(before.end),
    };
    idle > class.millis()
}

/// What stood in the log before a request: the first that fits.
fn occasion(simulator: &Simulator<'_>, before: u32, index: u32) -> Cause {
    let expired = has_expired(simulator, before, index);
    let [before, request] = [before, index].map(|request| simulator.timeline.request(request));
    let has = |marks: Marks| request.marks.has(marks);
    let is_forked = before.chain != request.chain;
    let segment = &simulator.timeline.segments[request.segment as usize];
    let opens = laid_out::opens(simulator.timeline, index);
    let went_back = opens && matches!(segment.cause, SegmentCause::Rewind | SegmentCause::Shrink);
    let causes = [
        (has(Marks::COMPACTION) || (opens && segment.cause == SegmentCause::Compaction), Cause::Compaction),
        (has(Marks::MICROCOMPACTION), Cause::Microcompact),
        (before.model != request.model, Cause::ModelSwap),
        (expired, Cause::TtlExpiry),
        (before.version != request.version, Cause::VersionChange),
        (has(Marks::RESUME), Cause::Resume),
        (has(Marks::EFFORT_CHANGE), Cause::EffortChange),
        (is_forked, Cause::Fork),
        (has(Marks::META) || has(Marks::SKILL), Cause::MetaInjection),
        (has(Marks::PLAN_MODE), Cause::PlanMode),
        (went_back || has(Marks::REWIND), Cause::RewindOrShrink),
        (has(Marks::WORKSPACE_EDIT), Cause::WorkspaceEdit),
        (has(Marks::HUMAN), Cause::MutationAtHuman),
    ];
    causes.into_iter().find(|(fits, _)| *fits).map_or(Cause::MutationAtTool, |(_, cause)| cause)
}

/// What stood in the log before every request, by index: for the first of a chain, how the chain came to be.
pub fn occasions(simulator: &Simulator<'_>) -> Vec<Cause> {
    let timeline = simulator.timeline;
    let mut occasions: Vec<Cause> = Vec::with_capacity(timeline.requests.len());
    for request in &timeline.requests {
        let chain = timeline.chain(request.chain);
        let is_forked = timeline.segments[chain.segments.start as usize].after != NONE;
        occasions.push(match chain.place {
            _ if is_forked => Cause::Fork,
            Place::Main => Cause::SessionStart,
            _ => Cause::AgentStart,
        });
    }
    for_pairs(simulator, |before, index| {
        if timeline.request(before).chain == timeline.request(index).chain {
            occasions[index as usize] = occasion(simulator, before, index);
        }
    });
    occasions
}

/// A break: a request that lost what had been cached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Index into [`crate::logs::timeline::requests::Timeline::requests`].
    pub request: u32,
    pub cause: Cause,
    /// Whether the cache had expired as well, whatever is the first cause.
    pub expired: bool,
    /// What it comes to: one event.
    pub sum: CauseSum,
}

/// All breaks, in the order of the requests.
pub fn losses(simulator: &Simulator<'_>) -> Vec<Loss> {
    let mut losses = Vec::new();
    for_pairs(simulator, |before, index| {
        let Some(cause) = of(simulator, before, index) else { return };
        let there = still_there(simulator, before, index);
        let expired = has_expired(simulator, before, index);
        let [before, request] = [before, index].map(|request| simulator.timeline.request(request));
        let tokens_lost = before.cached().saturating_sub(request.usage().cache_read);
        // What a compaction or a rewind left out is not paid for again.
        let old = tokens_lost.min(there.saturating_sub(request.usage().cache_read));
        let rewritten = old.min(request.usage().cache_creation);
        let uncached = (old - rewritten).min(request.usage().input);
        let again = Spent { uncached, ..written(rewritten, simulator.priors[index as usize].class) };
        let (cost_again, cost_lost) = paid_again(simulator, request, &again);
        let sum = CauseSum { events: 1, tokens_lost, tokens_again: rewritten + uncached, cost_again, cost_lost };
        losses.push(Loss { request: index, cause, expired, sum });
    });
    losses
}

/// Whether a request of the same thread still has all of the context of another before it.
pub fn stays(simulator: &Simulator<'_>, before: u32, index: u32) -> bool {
    let Simulator { timeline, sizes, .. } = *simulator;
    let is_whole = |at: u32| !laid_out::opens(timeline, at) && !sizes.gone.contains_key(&at);
    timeline.request(before).chain == timeline.request(index).chain && (before + 1..=index).all(is_whole)
}

/// Tokens of a request's context that stood in the context of another before it.
fn still_there(simulator: &Simulator<'_>, before: u32, index: u32) -> u64 {
    let Simulator { timeline, sizes, .. } = *simulator;
    if stays(simulator, before, index) {
        return timeline.request(before).context();
    }
    let laid = |request: u32| {
        let mut items = Vec::new();
        laid_out::lay(timeline, sizes, request, &mut items);
        items
    };
    let held: BTreeSet<ItemKey> = laid(before).iter().map(|item| item.key).collect();
    let kept = laid(index).into_iter().filter(|item| held.contains(&item.key));
    sizes.prefix[timeline.request(index).chain as usize] + kept.map(|item| u64::from(item.tokens)).sum::<u64>()
}

/// All breaks by cause.
pub fn attribute(simulator: &Simulator<'_>) -> BTreeMap<Cause, CauseSum> {
    let mut sums: BTreeMap<Cause, CauseSum> = BTreeMap::new();
    for loss in losses(simulator) {
        *sums.entry(loss.cause).or_default() += loss.sum;
    }
    sums
}

/// What tokens cost that are written again or billed in full, and how much more than if they were read.
pub fn paid_again(simulator: &Simulator<'_>, request: &Request, again: &Spent) -> (Cost, Cost) {
    let rates = simulator.tariff.rates(request.model, request.start, request.context());
    let (paid, read) = (rates.cost(again), rates.cost(&Spent { read: again.prompt(), ..Spent::default() }));
    (paid, paid.less(&read))
}

/// Every billed request that counts and has another before it, by index: that one, and it. Before the first of a main thread
/// that goes on from the context of another (a session that was forked, or taken up in a log of its own) stands the one
/// that it went on from.
pub fn for_pairs(simulator: &Simulator<'_>, mut each: impl FnMut(u32, u32)) {
    let is_billed = |at: u32| simulator.timeline.request(at).context() > 0;
    for chain in &simulator.timeline.chains {
        let first = simulator.timeline.segments.get(chain.segments.start as usize);
        let base = first.filter(|_| chain.place == Place::Main).map(|first| first.after);
        let mut before = base.filter(|&base| base != NONE && is_billed(base));
        for index in chain.requests.clone().filter(|&at| is_billed(at)) {
            if let Some(before) = before.replace(index).filter(|_| simulator.timeline.request(index).counts()) {
                each(before, index);
            }
        }
    }
}
