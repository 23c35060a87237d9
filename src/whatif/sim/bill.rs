//! The bill of the log, and how far a simulated run is from it.

use crate::base::id::Id;
use crate::logs::timeline::requests::{Marks, Request, Timeline};
use crate::whatif::prompt_cache::causes;
use crate::whatif::prompt_cache::outcome::{AgainstBill, Cause};
use crate::whatif::prompt_cache::params::{CacheLifetime, HiddenForks, Params, Switch};
use crate::whatif::sim::cost::{Cost, Spent, Total};
use crate::whatif::sim::figures::RunBill;
use crate::whatif::sim::run::{Priced, SimulatedRun};
use crate::whatif::sim::simulator::Simulator;

/// How a request was billed (no output); `unknown` is the lifetime of writes whose usage does not say it.
pub fn spent(request: &Request, unknown: CacheLifetime) -> Spent {
    let usage = &request.usage();
    let (mut write_5m, mut write_1h) = (usage.cache_creation_5m, usage.cache_creation_1h);
    let rest = usage.cache_creation.saturating_sub(write_5m + write_1h);
    match unknown {
        CacheLifetime::FiveMinutes => write_5m += rest,
        CacheLifetime::Hour => write_1h += rest,
    }
    Spent { read: usage.cache_read, write_5m, write_1h, uncached: usage.input, output: 0 }
}

/// The bill of all requests.
pub fn total(simulator: &Simulator<'_>) -> RunBill {
    billed(simulator).map(|(_, spent, cost)| RunBill { spent, cost }).sum()
}

/// The bill of all requests, and what the same input would have been billed if nothing were cached; both in the money of
/// what has a price both ways.
pub fn with_and_without_cache(simulator: &Simulator<'_>) -> (Total, Total) {
    let (mut with, mut without) = (Total::default(), Total::default());
    for (request, spent, cost) in billed(simulator) {
        let plain = Spent { uncached: request.context(), output: spent.output, ..Spent::default() };
        let plain_cost = simulator.tariff.of(request, &plain);
        let is_priced = cost.unpriced_tokens + plain_cost.unpriced_tokens == 0;
        let told = |cost: Cost, spent: &Spent| if is_priced { cost } else { cost.unpriced(spent) };
        with += Total { requests: 1, spent, cost: told(cost, &spent) };
        without += Total { requests: 1, spent: plain, cost: told(plain_cost, &plain) };
    }
    (with, without)
}

/// Every request with usage, as billed.
fn billed<'g>(simulator: &'g Simulator<'_>) -> impl Iterator<Item = (&'g Request, Spent, Cost)> {
    simulator.timeline.billed().map(|(_, request)| {
        let spent = Spent { output: simulator.answer(request), ..simulator.billed(request) };
        (request, spent, simulator.tariff.of(request, &spent))
    })
}

/// Holds a run against the bill (no output), over the requests that `counts` picks: its reads one by one, its cost as it is to
/// be expected.
pub fn compare(simulator: &Simulator<'_>, run: &Blind, counts: impl Fn(&Request) -> bool) -> AgainstBill {
    let mut found = AgainstBill::default();
    for ((pair, priced), expected) in paired(simulator.timeline, &run.reads).zip(&run.cost.requests) {
        let (before, request) = pair;
        if !counts(request) {
            continue;
        }
        let (billed, read) = (simulator.billed(request), priced.spent().read);
        let off = billed.read.abs_diff(read);
        found.requests += 1;
        found.read_billed += billed.read;
        found.read_simulated += read;
        found.read_error += off;
        found.cost_billed += simulator.tariff.of(request, &billed);
        found.cost_simulated += simulator.tariff.of(request, &Spent { output: 0, ..expected.spent() });
        let Some(before) = before else { continue };
        let exact = off == 0;
        if request.marks.has(Marks::HUMAN) {
            found.human_turns_exact.count(exact);
            found.human_turns_close.count(off * CLOSE <= request.context());
        } else if is_warm(simulator, before, priced.request) {
            found.warm_tool_turns.count(exact);
            let late = before.usage().cache_creation > 0 && billed.read == before.usage().cache_read;
            found.late_writes += u64::from(!exact && late);
        }
    }
    found
}

/// The log as simulated by what can be known before each bill.
pub struct Blind {
    /// As foretold, request by request.
    pub reads: SimulatedRun,
    /// With what is lost for no reason at the rate at which it was so far.
    pub cost: SimulatedRun,
}

impl Blind {
    /// Simulates it; the parameters of the simulator hold for all but that.
    pub fn new(simulator: &Simulator<'_>) -> Self {
        let (reads, cost) = rayon::join(|| foretold(simulator, Switch::Off), || foretold(simulator, Switch::On));
        Self { reads, cost }
    }
}

/// The log as simulated by what can be known before each bill: its reads with `unforeseen` off,
/// without what is lost for no reason, its cost with it on, at the rate at which that was so far. What somebody has
/// switched off stays so.
pub fn foretold(simulator: &Simulator<'_>, unforeseen: Switch) -> SimulatedRun {
    let set = simulator.cache_rules.params;
    let hidden_forks = if set.hidden_forks == HiddenForks::Off { HiddenForks::Off } else { HiddenForks::Estimated };
    let unforeseen = if set.unforeseen == Switch::On { unforeseen } else { Switch::Off };
    let params = Params { hidden_forks, unforeseen, ..set };
    simulator.under(&simulator.cache_rules.with(params)).baseline()
}

/// A read is close if the context is at least so many times what it is off (2 %, policies.md 2.3).
const CLOSE: u64 = 50;

/// Whether nothing is known that could have broken the prefix.
fn is_warm(simulator: &Simulator<'_>, before: &Request, index: u32) -> bool {
    let request = simulator.timeline.request(index);
    let known = [Marks::COMPACTION, Marks::MICROCOMPACTION, Marks::MODEL_CHANGE];
    let alive = simulator.priors[index as usize].idle <= CacheLifetime::FiveMinutes.millis();
    alive && before.model == request.model && !known.iter().any(|&mark| request.marks.has(mark))
}

/// Requests of a run, each with the one before in its chain.
fn paired<'t>(
    timeline: &'t Timeline,
    run: &'t SimulatedRun,
) -> impl Iterator<Item = ((Option<&'t Request>, &'t Request), &'t Priced)> {
    let mut before: Option<&Request> = None;
    run.requests.iter().map(move |priced| {
        let request = timeline.request(priced.request);
        let last = before.replace(request).filter(|last| last.chain == request.chain);
        ((last, request), priced)
    })
}

/// Why the bill shows a cache miss at each request of a run, if it does.
pub fn causes<'t>(simulator: &'t Simulator<'_>, run: &'t SimulatedRun) -> impl Iterator<Item = (Id, Option<Cause>)> {
    let requests = &simulator.timeline.requests;
    let mut causes = vec![None; requests.len()];
    causes::for_pairs(simulator, |before, index| causes[index as usize] = causes::of(simulator, before, index));
    run.requests.iter().map(move |priced| (requests[priced.request as usize].id, causes[priced.request as usize]))
}
