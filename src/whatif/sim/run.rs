//! What the requests of a timeline come to under one policy: each one's tokens and cost, and the calls besides them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::numbers::saturated;
use crate::logs::timeline::requests::{Request, Timeline};
use crate::whatif::sim::cost::{Cost, Spent, Total};
use crate::whatif::sim::money::NumberedRates;
use crate::whatif::sim::view::ExtraCall;

/// One request as it was sent and billed in this run. There is one for each request of the log in each run that is compared, so
/// it takes little room: tokens of one request are counted in 32 bits, and what they cost is told by the rates of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priced {
    /// Index into [`Timeline::requests`].
    pub request: u32,
    /// In the order of the fields of [`Spent`].
    spent: [u32; 5],
    shared: u32,
    /// The number of its rates.
    rates: u32,
}

impl Priced {
    /// A request with its tokens, the number of their rates ([`Tariff::number`]), and the leading tokens that were the same as in
    /// the context before.
    pub fn new(request: u32, spent: &Spent, rates: u32, shared: u64) -> Self {
        let spent = [spent.read, spent.write_5m, spent.write_1h, spent.uncached, spent.output].map(saturated);
        Self { request, spent, shared: saturated(shared), rates }
    }

    /// Its tokens; no output, unless answers count.
    pub fn spent(&self) -> Spent {
        let [read, write_5m, write_1h, uncached, output] = self.spent.map(u64::from);
        Spent { read, write_5m, write_1h, uncached, output }
    }

    /// Leading tokens that were the same as in the context before: no more than these could be read.
    pub fn shared(&self) -> u64 {
        self.shared.into()
    }
}

/// A call besides those of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extra {
    /// The request at which it was made.
    pub request: u32,
    pub call: ExtraCall,
    pub spent: Spent,
    pub cost: Cost,
}

/// All requests of a timeline under one policy.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct SimulatedRun {
    /// In the order of [`Timeline::requests`]; those without usage and those that do not count are missing.
    pub requests: Vec<Priced>,
    /// In the same order.
    pub extra: Vec<Extra>,
    /// Requests without usage: they are not priced.
    pub without_usage: u64,
    /// What the tokens of the requests cost.
    pub rates: NumberedRates,
}

impl SimulatedRun {
    /// What the tokens of one of its requests cost.
    pub fn cost_of(&self, priced: &Priced) -> Cost {
        self.rates.of(priced.rates).cost(&priced.spent())
    }

    /// All requests, then the extra calls with the request of each; only the former count as requests.
    pub fn parts(&self) -> impl Iterator<Item = (u32, Total)> {
        let total = |one: &Priced| Total { requests: 1, spent: one.spent(), cost: self.cost_of(one) };
        let requests = self.requests.iter().map(move |one| (one.request, total(one)));
        let extra = self.extra.iter().map(|one| (one.request, Total { requests: 0, spent: one.spent, cost: one.cost }));
        requests.chain(extra)
    }

    /// Everything.
    pub fn total(&self) -> Total {
        self.parts().map(|(_, part)| part).sum()
    }

    /// Tokens of all requests and extra calls.
    pub fn spent(&self) -> Spent {
        self.total().spent
    }

    /// Cost of all requests and extra calls.
    pub fn cost(&self) -> Cost {
        self.total().cost
    }

    /// Runs with the money of only those requests that have a price in all of them: what lacks it in one compares with
    /// nothing. The calls besides a request go with it.
    pub fn priced_alike<'r>(runs: &[&'r Self]) -> Vec<PricedAlike<'r>> {
        let unpriced = || {
            let parts = runs.iter().flat_map(|run| run.parts());
            parts.filter(|(_, part)| part.cost.unpriced_tokens > 0).map(|(request, _)| request as usize)
        };
        let mut lacking = vec![false; unpriced().max().map_or(0, |last| last + 1)];
        unpriced().for_each(|request| lacking[request] = true);
        let lacking: Arc<[bool]> = lacking.into();
        runs.iter().map(|run| PricedAlike { run, lacking: Arc::clone(&lacking) }).collect()
    }
}

/// A run with the money of only some of its requests, and of the calls besides these.
pub struct PricedAlike<'r> {
    run: &'r SimulatedRun,
    /// By request: whether its money does not count; that of the others does.
    lacking: Arc<[bool]>,
}

impl PricedAlike<'_> {
    /// See [`SimulatedRun::parts`].
    pub fn parts(&self) -> impl Iterator<Item = (u32, Total)> {
        self.run.parts().map(|(request, part)| match self.lacking.get(request as usize) {
            Some(true) => (request, Total { cost: part.cost.unpriced(&part.spent), ..part }),
            _ => (request, part),
        })
    }

    /// The calls besides the requests.
    pub fn extra(&self) -> impl Iterator<Item = Extra> {
        let of_its_request = self.parts().skip(self.run.requests.len());
        self.run.extra.iter().zip(of_its_request).map(|(extra, (_, part))| Extra { cost: part.cost, ..*extra })
    }

    /// Everything.
    pub fn total(&self) -> Total {
        self.parts().map(|(_, part)| part).sum()
    }

    /// Sums by anything that a request has: model, version, project, session.
    pub fn by<K: Ord>(&self, timeline: &Timeline, key: impl Fn(&Request) -> K) -> BTreeMap<K, Total> {
        let mut sums: BTreeMap<K, Total> = BTreeMap::new();
        for (request, part) in self.parts() {
            *sums.entry(key(timeline.request(request))).or_default() += part;
        }
        sums
    }
}
