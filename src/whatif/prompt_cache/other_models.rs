//! Other models of the same cache, coarser than the simulated one: they stand beside it so that their users can reconcile
//! them with it.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::base::backtest::at_share;
use crate::logs::timeline::requests::{Request, ToolCall};
use crate::logs::trace::{Millis, NO_TIME};
use crate::whatif::prompt_cache::causes;
use crate::whatif::prompt_cache::outcome::{HotCache, ThresholdModel, Workspace};
use crate::whatif::prompt_cache::params::CacheLifetime;
use crate::whatif::sim::cache_sim::written;
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::simulator::Simulator;

/// The threshold model over all chains: a published way to compare lifetimes by the gap before each request alone. Gaps up to
/// five minutes are warm, up to an hour recoverable, longer ones cold. For five minutes reads after a recoverable gap become
/// writes; for an hour what is written after one is read, and only as much as a warm turn usually writes is written.
pub fn threshold(simulator: &Simulator<'_>) -> ThresholdModel {
    let mut model = ThresholdModel::default();
    for chain in &simulator.timeline.chains {
        let requests: Vec<u32> =
            chain.requests.clone().filter(|&index| request(simulator, index).context() > 0).collect();
        let warm = |(place, &index): (usize, &u32)| place > 0 && gap(simulator, index) == GapWarmth::Warm;
        let warm = requests.iter().enumerate().filter(|&pair| warm(pair));
        let mut written: Vec<u64> = warm.map(|(_, &index)| request(simulator, index).usage().cache_creation).collect();
        written.sort_unstable();
        let usual = at_share(&written, 0.5);
        for (place, &index) in requests.iter().enumerate() {
            if !request(simulator, index).counts() {
                continue;
            }
            let gap = if place == 0 { GapWarmth::Cold } else { gap(simulator, index) };
            charge(simulator, index, gap, usual, &mut model);
        }
    }
    model
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GapWarmth {
    Warm,
    Recoverable,
    Cold,
}

fn request<'a>(simulator: &Simulator<'a>, index: u32) -> &'a Request {
    simulator.timeline.request(index)
}

fn gap(simulator: &Simulator<'_>, index: u32) -> GapWarmth {
    match simulator.priors[index as usize].idle {
        idle if idle <= CacheLifetime::FiveMinutes.millis() => GapWarmth::Warm,
        idle if idle <= CacheLifetime::Hour.millis() => GapWarmth::Recoverable,
        _ => GapWarmth::Cold,
    }
}

fn charge(simulator: &Simulator<'_>, index: u32, gap: GapWarmth, usual: Option<u64>, model: &mut ThresholdModel) {
    let request = request(simulator, index);
    let billed = Spent { uncached: 0, ..simulator.billed(request) };
    let (created, read) = (billed.write(), billed.read);
    let recoverable = gap == GapWarmth::Recoverable;
    let five = match recoverable {
        true => Spent { write_5m: created + read, ..Spent::default() },
        false => Spent { write_5m: created, read, ..Spent::default() },
    };
    let hour = match recoverable {
        true => Spent { write_1h: usual.unwrap_or(created).min(created), read: created + read, ..Spent::default() },
        false => Spent { write_1h: created, read, ..Spent::default() },
    };
    let cost =
        |spent: &Spent| -> Cost { simulator.tariff.rates(request.model, request.start, request.context()).cost(spent) };
    model.actual += cost(&billed);
    model.five_minutes += cost(&five);
    model.hour += cost(&hour);
    model.written += created;
    model.recoverable += if recoverable { created } else { 0 };
}

/// The router's settings.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub struct HotCacheRules {
    pub ttl_minutes: u32,
    /// Seconds before its end from which a cache counts as cold.
    pub buffer_s: u32,
    /// Assumed seconds between two messages.
    pub seconds_per_message: u32,
    pub write_percent: u32,
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

/// What the router's rule of a hot cache would have said at every request. Its clock is set when a model is first asked and
/// when the lifetime is over, not at hits: it calls a cache cold that steady traffic keeps warm.
pub fn hot_cache(simulator: &Simulator<'_>, rules: &HotCacheRules) -> HotCache {
    let mut found = HotCache { multiplier: rules.multiplier(), ..HotCache::default() };
    let (mut paid, mut uncached) = (0_u128, 0_u128);
    for chain in &simulator.timeline.chains {
        // Age of the stamp, by the clock of the chain.
        let mut age: Option<Millis> = None;
        let mut model = None;
        for index in chain.requests.clone() {
            let request = simulator.timeline.request(index);
            if request.context() == 0 {
                continue;
            }
            let took = request.end.saturating_sub(request.start).max(0);
            let now = age.map(|age| age.saturating_add(simulator.priors[index as usize].idle));
            let hot = model == Some(request.model) && now.is_some_and(|age| rules.is_hot(age));
            let warm = request.usage().cache_read > 0;
            age = Some(if hot { now.unwrap_or(0) } else { 0 } + took);
            model = Some(request.model);
            if !request.counts() {
                continue;
            }
            let told = if hot { &mut found.hot } else { &mut found.cold_but_warm };
            told.count(warm);
            let rates = simulator.tariff.rates(request.model, request.start, request.context());
            paid += rates.cost(&simulator.billed(request)).units;
            uncached += u128::from(rates.units.input) * u128::from(request.context());
        }
    }
    found.multiplier_measured = u64::try_from(paid * 100_000 / uncached.max(1)).unwrap_or(u64::MAX);
    found
}

/// What counts as a write.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct WorkspaceRules {
    pub tools: Vec<String>,
    /// Milliseconds within which writes count as one invalidation.
    pub debounce_ms: u32,
}

/// Writes to workspace files, session by session: how often a bundle of them would have been read anew, and what that would
/// have cost if it stood in the cached prefix.
pub fn workspace(simulator: &Simulator<'_>, rules: &WorkspaceRules) -> Workspace {
    let timeline = simulator.timeline;
    let writes: BTreeSet<_> = rules.tools.iter().filter_map(|tool| timeline.names.find(tool)).collect();
    let mut found = Workspace::default();
    let (mut sessions, mut roots) = (BTreeSet::new(), BTreeSet::new());
    for chain in &timeline.chains {
        let mut last = NO_TIME;
        for index in chain.requests.clone() {
            let request = timeline.request(index);
            let is_write = |call: &&ToolCall| writes.contains(&call.tool) && call.file & ToolCall::MARKDOWN != 0;
            let calls: Vec<&ToolCall> = calls_of(simulator, request).filter(is_write).collect();
            if calls.is_empty() {
                continue;
            }
            let quiet = last == NO_TIME || request.end.saturating_sub(last) > Millis::from(rules.debounce_ms);
            last = request.end;
            if !request.counts() {
                continue;
            }
            let instructions = calls.iter().filter(|call| call.file & ToolCall::WORKSPACE != 0).count();
            sessions.insert(chain.session);
            roots.insert(timeline.sessions[chain.session as usize].project);
            found.writes += calls.len() as u64;
            found.instruction_writes += instructions as u64;
            if quiet {
                found.invalidations += 1;
                followed(simulator, index, &mut found);
            }
        }
    }
    (found.sessions, found.roots) = (sessions.len() as u64, roots.len() as u64);
    found
}

fn calls_of<'a>(simulator: &Simulator<'a>, request: &Request) -> impl Iterator<Item = &'a ToolCall> {
    let timeline = simulator.timeline;
    request.outputs.clone().filter_map(|block| timeline.calls.get(timeline.blocks[block as usize].call as usize))
}

/// What the next request of the chain shows, and what it would have paid for a voided prefix.
fn followed(simulator: &Simulator<'_>, index: u32, found: &mut Workspace) {
    let request = simulator.timeline.request(index);
    let end = simulator.timeline.chain(request.chain).requests.end;
    let next = (index + 1..end).find(|&next| simulator.timeline.request(next).context() > 0);
    let Some(next) = next.filter(|_| request.context() > 0) else { return };
    found.followed_by_break.count(causes::of(simulator, index, next).is_some());
    let prior = &simulator.priors[next as usize];
    let at_risk = request.cached().saturating_sub(prior.still);
    let request = simulator.timeline.request(next);
    found.cost_at_risk += causes::paid_again(simulator, request, &written(at_risk, prior.class)).1;
}
