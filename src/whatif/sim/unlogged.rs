//! Estimates what was sent and is in no log: forks (policies.md F5), summarisers (F9), and the true length of output
//! (F3). They stand beside the bill, in a table of their own, and are never added to it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::base::names::Sym;
use crate::logs::timeline::requests::{Marks, NONE, Request, Timeline};
use crate::logs::trace::{Millis, NO_TIME};
use crate::report::numbers::known;
use crate::report::table::{Table, TableBuilder};
use crate::whatif::prompt_cache::params::CacheLifetime;
use crate::whatif::sim::cache_sim::written;
use crate::whatif::sim::cost::Spent;
use crate::whatif::sim::figures::UnloggedCalls;
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::sizes::surplus;

/// The kind of agent that writes the summary of a compaction (`rules/timeline.toml`, `helper_agents`).
pub(crate) const SUMMARISER: &str = "compact";

/// Estimates of what the log does not have (policies.md 8). None of it is in any bill here.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Unlogged {
    /// Requests that shared a prefix and cached an answer before a person wrote, where the next bill shows it.
    pub forks: UnloggedCalls,
    /// Calls that wrote the summaries of compactions.
    pub summaries: UnloggedCalls,
    /// What answers were longer than their usage says, by the sizes of their blocks; no calls of their own.
    pub answers: UnloggedCalls,
}

/// Estimates over all requests.
pub fn unlogged(simulator: &Simulator<'_>) -> Unlogged {
    Unlogged { forks: forks(simulator), summaries: summaries(simulator), answers: answers(simulator) }
}

fn priced(simulator: &Simulator<'_>, (model, at): (Sym, Millis), spent: Spent) -> UnloggedCalls {
    UnloggedCalls { calls: 1, spent, cost: simulator.tariff.cost(model, at, &spent) }
}

/// A fork read what was cached and wrote the answer, as far as the request after it read more than had been written.
fn forks(simulator: &Simulator<'_>) -> UnloggedCalls {
    let requests = &simulator.timeline.requests;
    let pairs = requests.iter().zip(requests.iter().skip(1)).zip(simulator.priors.iter().skip(1));
    let pairs = pairs.filter(|((before, request), _)| before.chain == request.chain && request.counts());
    let forks = pairs.filter_map(|((before, request), prior)| {
        let answer = surplus(before, request)?;
        let spent = Spent { read: before.cached(), ..written(answer, prior.class) };
        Some(priced(simulator, (request.model, request.start), spent))
    });
    forks.sum()
}

/// The calls of summarisers, priced.
fn summaries(simulator: &Simulator<'_>) -> UnloggedCalls {
    let slack_s = simulator.cache_rules.params.slack_s;
    let calls = summariser_calls(simulator.timeline, &simulator.sizes.tokens, slack_s.into()).into_iter();
    let calls = calls.map(|SummariserCall { before, spent }| {
        let before = simulator.timeline.request(before);
        priced(simulator, (before.model, before.end), spent)
    });
    calls.sum()
}

/// A call that wrote the summary of a compaction and is in no log.
pub struct SummariserCall {
    /// The last billed request before it.
    pub before: u32,
    /// What it took in, from the cache if that was still alive, and the summary that it wrote.
    pub spent: Spent,
}

/// The summarisers of all compactions but those that are in the log: some clients log them, as an agent of the session.
/// `tokens` are the sizes of [`Timeline::blocks`]; a cache lives `slack_s` longer than it should.
pub fn summariser_calls(timeline: &Timeline, tokens: &[u32], slack_s: i64) -> Vec<SummariserCall> {
    let mut logged = logged_summarisers(timeline);
    let mut calls = Vec::new();
    for boundary in &timeline.boundaries {
        let chain = timeline.chain(boundary.chain);
        let mut earlier = (chain.requests.start..boundary.request.min(chain.requests.end)).rev();
        let Some(before) = earlier.find(|&at| timeline.request(at).context() > 0) else { continue };
        if let Some(left) = logged.get_mut(&chain.session).filter(|left| **left > 0) {
            *left -= 1;
            continue;
        }
        let context = boundary.pre_tokens.unwrap_or_else(|| timeline.request(before).context());
        // Of one that ends the log nobody knows how late it was: it is taken for one like most, right after the work.
        let is_last = !chain.requests.contains(&boundary.request);
        let is_warm = is_last || is_warm(timeline, boundary.request, slack_s);
        let (read, uncached) = if is_warm { (context, 0) } else { (0, context) };
        let output = if boundary.summary == NONE { 0 } else { tokens[boundary.summary as usize].into() };
        calls.push(SummariserCall { before, spent: Spent { read, uncached, output, ..Spent::default() } });
    }
    calls
}

/// Whether the cache that the chain's last request left is still alive when this one is made.
fn is_warm(timeline: &Timeline, request: u32, slack_s: i64) -> bool {
    let this = timeline.request(request);
    let before = &timeline.requests[timeline.chain(this.chain).requests.start as usize..request as usize];
    let Some(last) = before.last() else { return false };
    if this.marks.has(Marks::MODEL_CHANGE) || this.start == NO_TIME || last.end == NO_TIME {
        return false;
    }
    let class = before.iter().rev().find_map(|request| match request.usage() {
        usage if usage.cache_creation_1h > 0 => Some(CacheLifetime::Hour),
        usage if usage.cache_creation > 0 => Some(CacheLifetime::FiveMinutes),
        _ => None,
    });
    let lifetime = class.unwrap_or(CacheLifetime::FiveMinutes).millis();
    this.start.saturating_sub(last.end) <= lifetime + slack_s * 1_000
}

/// How many summarisers each session has among its agents.
fn logged_summarisers(timeline: &Timeline) -> BTreeMap<u32, u64> {
    let mut logged = BTreeMap::new();
    for chain in timeline.chains.iter().filter(|chain| timeline.names.text(chain.agent_type) == SUMMARISER) {
        *logged.entry(chain.session).or_default() += 1;
    }
    logged
}

/// What answers are longer than their usage says; nothing where that counts anyway.
fn answers(simulator: &Simulator<'_>) -> UnloggedCalls {
    if simulator.answers {
        return UnloggedCalls::default();
    }
    let longer = |(_, request): (u32, &Request)| {
        let output = simulator.sizes.of(&request.outputs).saturating_sub(request.usage().output);
        let spent = Spent { output, ..Spent::default() };
        // What output costs goes by the size of the context that it answers.
        let cost = simulator.tariff.rates(request.model, request.start, request.context()).cost(&spent);
        UnloggedCalls { calls: 0, spent, cost }
    };
    simulator.timeline.counted().filter(|(_, request)| request.context() > 0).map(longer).sum()
}

/// Its title.
pub const TITLE: &str = "not in the log, estimated, and in no figure above";

/// Calls, tokens and cost by kind; nothing where there is nothing.
pub fn table(found: &Unlogged) -> Table {
    let kinds = [
        ("forks that cached their output", found.forks),
        ("summarisers", found.summaries),
        ("output, beyond its usage", found.answers),
    ];
    TableBuilder::of(kinds.into_iter().filter(|(_, sum)| sum.cost.units > 0))
        .text("what", |(kind, _)| (*kind).to_owned())
        .count("calls", |(_, sum)| sum.calls)
        .count("read", |(_, sum)| sum.spent.read)
        .count("written", |(_, sum)| sum.spent.write())
        .count("output", |(_, sum)| sum.spent.output)
        .count("input-equivalent", |(_, sum)| sum.cost.iet().round() as u64)
        .number("dollars", |(_, sum)| known(sum.cost.usd(), |usd| format!("{usd:.2}")))
        .table()
}
