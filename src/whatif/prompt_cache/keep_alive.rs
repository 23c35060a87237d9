//! The router's rule of a hot cache and its effective price of input, beside what happened.
//!
//! Its clock is set when a model is first asked and when the lifetime is over, not at hits: it calls a cache cold that
//! steady traffic keeps warm.

use serde::Deserialize;

use crate::logs::trace::Millis;
use crate::whatif::prompt_cache::outcome::HotCache;
use crate::whatif::sim::bill;
use crate::whatif::sim::simulate::Ground;

/// The router's settings.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotCacheRules {
    /// Lifetime in minutes.
    pub ttl_minutes: u32,
    /// Seconds before its end from which a cache counts as cold.
    pub buffer_s: u32,
    /// Assumed seconds between two messages.
    pub seconds_per_message: u32,
    /// Price of a write in percent of input.
    pub write_percent: u32,
    /// Price of a read in percent of input.
    pub read_percent: u32,
}

impl HotCacheRules {
    /// Milliseconds for which a cache is hot; none where the buffer eats them all.
    fn window(&self) -> Millis {
        (Millis::from(self.ttl_minutes) * 60 - Millis::from(self.buffer_s)) * 1_000
    }

    /// Whether a cache of that age is hot.
    pub fn is_hot(&self, age: Millis) -> bool {
        age < self.window() && self.window() > 0
    }

    /// Hits that one write is assumed to serve.
    pub fn hits(&self) -> u64 {
        let between = Millis::from(self.seconds_per_message.max(1)) * 1_000;
        (self.window().max(0) / between).cast_unsigned()
    }

    /// Effective price of input in thousandths of a percent, rounded down: one write and its hits, over all of them.
    pub fn multiplier(&self) -> u64 {
        let hits = self.hits();
        (u64::from(self.write_percent) + u64::from(self.read_percent) * hits) * 1_000 / (1 + hits)
    }
}

/// What the rule would have said at every request.
pub fn run(ground: &Ground<'_>, rules: &HotCacheRules) -> HotCache {
    let mut found = HotCache { hits_assumed: rules.hits(), multiplier: rules.multiplier(), ..HotCache::default() };
    let (mut paid, mut uncached) = (0_u128, 0_u128);
    for chain in &ground.timeline.chains {
        // Age of the stamp, by the clock of the chain.
        let mut age: Option<Millis> = None;
        let mut model = None;
        for index in chain.requests.clone() {
            let request = &ground.timeline.requests[index as usize];
            if request.context() == 0 {
                continue;
            }
            let took = request.end.saturating_sub(request.start).max(0);
            let now = age.map(|age| age.saturating_add(ground.priors[index as usize].idle));
            let hot = model == Some(request.model) && now.is_some_and(|age| rules.is_hot(age));
            let warm = request.usage.cache_read > 0;
            if hot {
                found.hot.add(warm);
            } else {
                found.cold_but_warm.add(warm);
            }
            age = Some(if hot { now.unwrap_or(0) } else { 0 } + took);
            model = Some(request.model);
            let billed = bill::spent(request, ground.oracle.cache.class_unknown);
            let rates = ground.tariff.rates(request.model, request.start, request.context());
            paid += rates.cost(&billed).units;
            uncached += u128::from(rates.units.input) * u128::from(request.context());
        }
    }
    found.multiplier_measured = u64::try_from(paid * 100_000 / uncached.max(1)).unwrap_or(u64::MAX);
    found
}
