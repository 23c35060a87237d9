//! What all runs of one timeline share: its sizes, what is known before each request, the cache's rules and the prices.

use std::ops::Range;
use std::sync::Arc;

use crate::logs::timeline::requests::{Request, Timeline};
use crate::whatif::prompt_cache::params::CacheRules;
use crate::whatif::sim::breakage::BreakWatch;
use crate::whatif::sim::cost::Spent;
use crate::whatif::sim::driver::Driver;
use crate::whatif::sim::money::{Prices, Tariff};
use crate::whatif::sim::priors::Prior;
use crate::whatif::sim::run::{Priced, SimulatedRun};
use crate::whatif::sim::sizes::BlockSizes;
use crate::whatif::sim::view::Stage;
use crate::whatif::sim::{bill, laid_out};

/// Sends the requests of one timeline under one cache, as often as is asked: what all its runs share.
#[derive(Clone)]
pub struct Simulator<'a> {
    pub timeline: &'a Timeline,
    pub sizes: &'a BlockSizes,
    pub cache_rules: &'a CacheRules,
    /// Prices by symbol.
    pub tariff: Tariff<'a>,
    /// What is known of each request before its bill.
    pub priors: Arc<[Prior]>,
    /// Whether answers count.
    pub answers: bool,
    /// By symbol of the model: the shortest prefix that is cached, in tokens.
    pub(super) min_cacheable: Vec<u64>,
    /// By chain: tokens that no context of the log exceeds.
    pub(super) largest: Arc<[u64]>,
    /// [`Simulator::baseline`], if it has run: what no stage changes is taken from it.
    pub(super) as_logged: Option<Arc<SimulatedRun>>,
}

impl<'a> Simulator<'a> {
    /// Learns what is known before each request, over all sessions.
    pub fn new(timeline: &'a Timeline, sizes: &'a BlockSizes, cache_rules: &'a CacheRules, prices: &'a Prices) -> Self {
        Self {
            timeline,
            sizes,
            cache_rules,
            tariff: Tariff::new(prices, &timeline.names),
            priors: sizes.priors(timeline, cache_rules.cache.class_unknown),
            answers: false,
            min_cacheable: minima(timeline, cache_rules),
            largest: laid_out::largest(timeline, sizes).into(),
            as_logged: None,
        }
    }

    /// The same simulator under another cache. What was learned is kept: it does not depend on parameters.
    pub fn under<'b>(&self, cache_rules: &'b CacheRules) -> Simulator<'b>
    where
        'a: 'b,
    {
        let as_logged = self.as_logged.clone().filter(|_| *cache_rules == *self.cache_rules);
        Simulator { cache_rules, min_cacheable: minima(self.timeline, cache_rules), as_logged, ..self.clone() }
    }

    /// The same simulator, on which answers count or do not.
    #[must_use]
    pub fn counting_answers(self, answers: bool) -> Self {
        Self { answers, as_logged: self.as_logged.filter(|_| answers == self.answers), ..self }
    }

    /// The same simulator, which knows its own [`Simulator::baseline`].
    #[must_use]
    pub fn knowing(self, baseline: Arc<SimulatedRun>) -> Self {
        Self { as_logged: Some(baseline), ..self }
    }

    /// How the input of a request was billed.
    pub fn billed(&self, request: &Request) -> Spent {
        bill::spent(request, self.cache_rules.cache.class_unknown)
    }

    /// Tokens of the answer to a request, if answers count: the longer of what its usage says, which is often too little
    /// (policies.md F3), and of the sizes of its blocks.
    pub fn answer(&self, request: &Request) -> u64 {
        if self.answers { request.usage().output.max(self.sizes.of(&request.outputs)) } else { 0 }
    }

    /// The run without any policy.
    pub fn baseline(&self) -> SimulatedRun {
        self.run(self.chains(), &mut [], None)
    }

    /// A run of contexts that do not depend on the cache, as it would be billed if nothing were cached.
    pub fn uncached(&self, run: &SimulatedRun) -> SimulatedRun {
        let CacheRules { params, cache, .. } = self.cache_rules;
        let twice = if params.double_system.is_on() { cache.system_tokens } else { 0 };
        let priced = |priced: &Priced| {
            let request = self.timeline.request(priced.request);
            let sent = priced.spent();
            let spent = Spent { uncached: sent.prompt() - twice, output: sent.output, ..Spent::default() };
            let rates = self.tariff.number(request.model, request.start, spent.prompt());
            Priced::new(priced.request, &spent, rates, priced.shared())
        };
        let requests = run.requests.iter().map(priced).collect();
        SimulatedRun { requests, extra: Vec::new(), rates: run.rates.clone(), ..*run }
    }

    /// Every chain.
    pub fn chains(&self) -> Range<u32> {
        0..self.timeline.chains.len() as u32
    }

    /// Sends the requests of some chains, in their order: a stage may know from one what another begins with that was forked
    /// off it.
    pub fn run<'r>(
        &'r self,
        chains: Range<u32>,
        stages: &'r mut [Box<dyn Stage>],
        watch: Option<&'r mut BreakWatch<'_>>,
    ) -> SimulatedRun {
        Driver::new(self, stages, watch).send(chains)
    }
}

fn minima(timeline: &Timeline, cache_rules: &CacheRules) -> Vec<u64> {
    timeline.names.texts().iter().map(|model| cache_rules.min_cacheable(model)).collect()
}
