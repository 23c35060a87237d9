//! The race of prefetches against the agent, in simulated time: what would have settled before the agent asked for it, within
//! the limits on parallel calls, hosts and waiting. A result waits for the prefetches that it set off, so everything after it
//! happens later than in the log; the race keeps account of that delay. With a timeout of 0 nothing waits, and a prefetch has
//! only the gap that the log shows.

use std::collections::BTreeMap;

use crate::planner::candidates::CallKey;
use crate::planner::numbers::RaceNumbers;
use crate::planner::prefetches::PrefetchEnd;
use crate::settings::Enrichment;
use crate::settings::tool_model::CostModel;

/// What holds a prefetch back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RaceLimits {
    /// Prefetches in flight at a time, whichever answer set them off.
    pub parallel_max: usize,
    /// How long an answer waits for its prefetches, all together, in milliseconds.
    pub timeout_ms: u64,
    /// Calls to one host at a time, the agent's own included. 0 lets none through.
    pub per_host_max: u32,
    /// Whether the limit per host holds.
    pub respect_rate_limits: bool,
}

impl RaceLimits {
    /// The limits of a configuration.
    pub fn new(enrichment: &Enrichment, numbers: &RaceNumbers) -> Self {
        Self {
            parallel_max: enrichment.max_parallel_prefetches as usize,
            timeout_ms: enrichment.prefetch_timeout_ms.into(),
            per_host_max: numbers.per_host_max,
            respect_rate_limits: enrichment.respect_rate_limits,
        }
    }
}

/// How long a call takes: as measured, else as the value model says, else the number for tools that were never timed.
pub fn latency_ms(measured_ms: Option<u64>, cost: &CostModel, numbers: &RaceNumbers) -> u64 {
    measured_ms.or(cost.latency_ms_p50).unwrap_or(numbers.latency_unknown_ms)
}

/// A call to be made ahead.
#[derive(Debug, Clone, PartialEq)]
pub struct Prefetch {
    pub request: CallKey,
    /// The host it goes to; without one no limit applies.
    pub host: Option<String>,
    /// How long it takes, in milliseconds.
    pub latency_ms: u64,
    /// How long its answer may be used, in milliseconds from when it settles; without a limit until something changes.
    pub fresh_ms: Option<u64>,
}

/// What became of a prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RaceEnd {
    InFlight,
    /// There, not asked for yet.
    Settled,
    /// The agent asked and got it: its own call did not run.
    Won,
    /// The agent asked before it was there: its own call ran too.
    Late,
    /// What it read changed, or it grew too old, before the agent asked.
    Stale,
    /// It was never dispatched: how that is booked.
    Refused(PrefetchEnd),
}

/// One prefetch and its times, in simulated milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub prefetch: Prefetch,
    /// When it was dispatched, or refused.
    pub dispatched_ms: u64,
    pub settled_ms: Option<u64>,
    /// When the agent asked.
    pub claimed_ms: Option<u64>,
    pub fate: RaceEnd,
}

/// What a dispatch did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Round {
    /// Records of the prefetches, in their order.
    pub records: Vec<usize>,
    /// Of these, those with an answer when the wait was over: what a hint may name.
    pub in_time: Vec<usize>,
    /// How much later the agent got its answer, in milliseconds.
    pub waited_ms: u64,
}

/// Something that will happen.
#[derive(Debug)]
enum Event {
    /// A prefetch ends.
    Settle(usize),
    /// A call of the agent ends.
    Release(String),
}

/// The race of one context.
#[derive(Debug, Default)]
pub struct Race {
    limits: RaceLimits,
    now_ms: u64,
    delay_ms: u64,
    /// By time, and in the order in which they were set off.
    queue: BTreeMap<(u64, u64), Event>,
    queued: u64,
    in_flight: usize,
    hosts: BTreeMap<String, u32>,
    /// Prefetches that a request of the agent could claim.
    claimable: BTreeMap<CallKey, usize>,
    records: Vec<Record>,
}

impl Race {
    /// A race in which nothing has happened.
    pub fn new(limits: RaceLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Sends prefetches out behind an answer of the log at `at_ms`, and lets the answer wait for them: until all have
    /// ended, at most `timeout_ms`. What earlier answers set off is not waited for.
    pub fn dispatch(&mut self, at_ms: u64, prefetches: Vec<Prefetch>) -> Round {
        self.advance(at_ms + self.delay_ms);
        let start = self.now_ms;
        let deadline = start.saturating_add(self.limits.timeout_ms);
        let records: Vec<_> = prefetches.into_iter().map(|prefetch| self.send(prefetch)).collect();
        let ends =
            records.iter().map(|&record| &self.records[record]).filter(|record| record.fate == RaceEnd::InFlight);
        let last = ends.map(|record| start.saturating_add(record.prefetch.latency_ms)).max().unwrap_or(start);
        self.advance(last.min(deadline));
        let waited_ms = self.now_ms - start;
        self.delay_ms += waited_ms;
        let in_time = records.iter().copied().filter(|&record| self.records[record].fate == RaceEnd::Settled).collect();
        Round { records, in_time, waited_ms }
    }

    /// The agent asks at `at_ms` of the log. A prefetch is claimed once; `None` if there is none for the request.
    pub fn claim(&mut self, at_ms: u64, request: &CallKey) -> Option<RaceEnd> {
        self.advance(at_ms + self.delay_ms);
        let index = self.claimable.remove(request)?;
        let is_fresh = self.is_fresh(index);
        let record = &mut self.records[index];
        record.claimed_ms = Some(self.now_ms);
        record.fate = match record.fate {
            RaceEnd::InFlight => RaceEnd::Late,
            _ if is_fresh => RaceEnd::Won,
            _ => RaceEnd::Stale,
        };
        Some(record.fate)
    }

    /// A call of the agent that really runs: it takes a slot of its host.
    pub fn occupy(&mut self, at_ms: u64, host: &str, latency_ms: u64) {
        self.advance(at_ms + self.delay_ms);
        *self.hosts.entry(host.to_owned()).or_default() += 1;
        self.enqueue(latency_ms, Event::Release(host.to_owned()));
    }

    /// Something changed at `at_ms` of the log: prefetches of these requests must not be used any more.
    pub fn invalidate(&mut self, at_ms: u64, is_affected: impl Fn(&CallKey) -> bool) {
        self.advance(at_ms + self.delay_ms);
        let records = &mut self.records;
        self.claimable.retain(|request, index| {
            let affected = is_affected(request);
            if affected {
                records[*index].fate = RaceEnd::Stale;
            }
            !affected
        });
    }

    /// Lets time pass until `at_ms` of the log.
    pub fn pass(&mut self, at_ms: u64) {
        self.advance(at_ms + self.delay_ms);
    }

    /// Every prefetch so far, in the order of dispatch.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Calls to a host that are on their way.
    pub fn calls_to(&self, host: &str) -> u32 {
        self.hosts.get(host).copied().unwrap_or_default()
    }

    fn send(&mut self, prefetch: Prefetch) -> usize {
        let index = self.records.len();
        let refusal = self.refusal(&prefetch);
        if refusal.is_none() {
            if let Some(host) = &prefetch.host {
                *self.hosts.entry(host.clone()).or_default() += 1;
            }
            self.in_flight += 1;
            self.claimable.insert(prefetch.request.clone(), index);
            self.enqueue(prefetch.latency_ms, Event::Settle(index));
        }
        self.records.push(Record {
            prefetch,
            dispatched_ms: self.now_ms,
            settled_ms: None,
            claimed_ms: None,
            fate: refusal.map_or(RaceEnd::InFlight, RaceEnd::Refused),
        });
        index
    }

    fn refusal(&mut self, prefetch: &Prefetch) -> Option<PrefetchEnd> {
        let RaceLimits { parallel_max, per_host_max, respect_rate_limits, .. } = self.limits;
        let host = prefetch.host.as_deref().filter(|_| respect_rate_limits);
        if self.is_fetched(&prefetch.request) {
            Some(PrefetchEnd::AlreadyFetched)
        } else if self.in_flight >= parallel_max {
            Some(PrefetchEnd::MaxParallelReached)
        } else if host.is_some_and(|host| self.calls_to(host) >= per_host_max) {
            Some(PrefetchEnd::HostSaturated)
        } else {
            None
        }
    }

    /// Whether the request is in flight or there; one that grew too old makes room for another.
    fn is_fetched(&mut self, request: &CallKey) -> bool {
        let Some(&index) = self.claimable.get(request) else { return false };
        let fetched = self.records[index].fate == RaceEnd::InFlight || self.is_fresh(index);
        if !fetched {
            self.records[index].fate = RaceEnd::Stale;
            self.claimable.remove(request);
        }
        fetched
    }

    fn is_fresh(&self, index: usize) -> bool {
        let record = &self.records[index];
        let age_ms = record.settled_ms.map_or(0, |settled| self.now_ms - settled);
        record.prefetch.fresh_ms.is_none_or(|fresh_ms| age_ms <= fresh_ms)
    }

    fn enqueue(&mut self, in_ms: u64, event: Event) {
        self.queue.insert((self.now_ms.saturating_add(in_ms), self.queued), event);
        self.queued += 1;
    }

    /// Lets everything happen that is due by then. Time never runs back: a record that stands late in the log happens
    /// now.
    fn advance(&mut self, to_ms: u64) {
        while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= to_ms) {
            self.now_ms = self.now_ms.max(entry.key().0);
            match entry.remove() {
                Event::Settle(index) => self.settle(index),
                Event::Release(host) => self.release(&host),
            }
        }
        self.now_ms = self.now_ms.max(to_ms);
    }

    fn settle(&mut self, index: usize) {
        let record = &mut self.records[index];
        record.settled_ms = Some(self.now_ms);
        if record.fate == RaceEnd::InFlight {
            record.fate = RaceEnd::Settled;
        }
        self.in_flight -= 1;
        if let Some(host) = record.prefetch.host.clone() {
            self.release(&host);
        }
    }

    fn release(&mut self, host: &str) {
        if let Some(calls) = self.hosts.get_mut(host) {
            *calls -= 1;
            if *calls == 0 {
                self.hosts.remove(host);
            }
        }
    }
}
