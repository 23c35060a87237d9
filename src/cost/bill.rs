//! The bill of a timeline at list prices, request by request, as its usage says: input and output, nothing estimated.

use crate::logs::timeline::requests::{Request, Timeline};
use crate::whatif::prompt_cache::params::CacheLifetime;
use crate::whatif::sim::bill::spent;
use crate::whatif::sim::cost::{Cost, Spent, Total};
use crate::whatif::sim::money::{Rates, Tariff};
use crate::whatif::sim::sizes::BlockSizes;
use crate::whatif::workload::Workload;

/// What every request was billed.
pub struct Bill<'a> {
    pub timeline: &'a Timeline,
    /// Tokens of their blocks.
    pub sizes: &'a BlockSizes,
    tariff: Tariff<'a>,
    unknown: CacheLifetime,
}

/// The bill of one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Charge {
    /// Its tokens, by how they are billed.
    pub spent: Spent,
    pub cost: Cost,
    rates: Rates,
}

impl Charge {
    /// What some of the request's tokens cost. Parts of the tokens have parts of the cost: nothing is rounded, and what has
    /// no price as a whole has none in part.
    pub fn part(&self, spent: &Spent) -> Cost {
        let cost = self.rates.cost(spent);
        if self.cost.unpriced_tokens > 0 { cost.unpriced(spent) } else { cost }
    }
}

impl<'a> Bill<'a> {
    /// The bill of a simulation's log. `unknown` is the lifetime of writes whose usage does not say it
    /// (`class_unknown` of `rules/policies/prompt_cache.toml`).
    pub fn new(workload: &'a Workload, unknown: CacheLifetime) -> Self {
        Self::of(&workload.timeline, &workload.sizes, Tariff::new(&workload.prices, &workload.timeline.names), unknown)
    }

    /// The same of its parts.
    pub fn of(timeline: &'a Timeline, sizes: &'a BlockSizes, tariff: Tariff<'a>, unknown: CacheLifetime) -> Self {
        Self { timeline, sizes, tariff, unknown }
    }

    /// What a request was billed; nothing where the log has no usage.
    pub fn charge(&self, request: &Request) -> Charge {
        let spent = Spent { output: request.usage().output, ..spent(request, self.unknown) };
        let rates = self.tariff.rates(request.model, request.start, spent.prompt());
        Charge { spent, cost: rates.cost(&spent), rates }
    }

    /// What tokens of each kind cost; all kinds together are the bill.
    pub fn kinds(&self) -> Spent<Cost> {
        let mut kinds = Spent::<Cost>::default();
        for (_, request) in self.timeline.counted() {
            let charge = self.charge(request);
            let Spent { read, write_5m, write_1h, uncached, output } = charge.spent;
            let none = Spent::<u64>::default();
            kinds.read += charge.part(&Spent { read, ..none });
            kinds.write_5m += charge.part(&Spent { write_5m, ..none });
            kinds.write_1h += charge.part(&Spent { write_1h, ..none });
            kinds.uncached += charge.part(&Spent { uncached, ..none });
            kinds.output += charge.part(&Spent { output, ..none });
        }
        kinds
    }

    /// The whole bill: requests with usage, their tokens, their cost at list prices.
    pub fn total(&self) -> Total {
        let charges = self.timeline.counted().map(|(_, request)| self.charge(request));
        let billed = charges.filter(|charge| charge.spent != Spent::default());
        billed.map(|charge| Total { requests: 1, spent: charge.spent, cost: charge.cost }).sum()
    }
}
