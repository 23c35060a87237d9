//! The provider's prompt cache, simulated for one chain: which leading part of a context is read, which written, which billed
//! in full. It holds prefixes, each with a lifetime that every hit renews. The static prefix has a breakpoint of its own; in
//! the layout of the client the tail has one at every request. Nothing else decides than the length that two contexts have in
//! common and the time between uses.

use crate::base::names::Sym;
use crate::logs::trace::{Millis, NO_TIME};
use crate::whatif::prompt_cache::params::{CacheLayout, CacheLifetime, CacheRules, Params, TtlPolicy};
use crate::whatif::sim::cost::Spent;
use crate::whatif::sim::priors::WarmPrefix;

/// A request as the cache sees it.
#[derive(Clone, Copy, Debug)]
pub struct CacheRequest {
    /// Model: each has a cache of its own.
    pub model: Sym,
    /// Edition of the static prefix.
    pub edition: u64,
    pub start: Millis,
    /// When its answer is complete.
    pub end: Millis,
    /// Tokens of the context.
    pub context: u64,
    /// Tokens after the last breakpoint.
    pub tail: u64,
    /// Tokens of the static prefix.
    pub still: u64,
    /// Leading tokens in common with the context before, whatever model that was sent to.
    pub same: u64,
    /// Leading tokens that this model may have cached.
    pub shared: u64,
    /// Items of the context, for the look-back.
    pub items: u32,
    /// Leading tokens that a request which is not logged has cached since the request before, if any.
    pub forked: Option<u64>,
    /// Lifetime of its writes, as observed.
    pub class: CacheLifetime,
    /// The static prefix as other chains have it.
    pub elsewhere: Option<WarmPrefix>,
    /// Below how many tokens nothing is cached.
    pub min_cacheable: u64,
}

/// One cached prefix, as it was written or kept alive: [`PrefixCache::used`] adds the hits since.
#[derive(Clone, Copy, Debug)]
struct CachedPrefix {
    length: u64,
    items: u32,
    model: Sym,
    class: CacheLifetime,
    last_use: Millis,
    /// How many hits there had been when it was written.
    hits: u64,
}

/// The newest hit of a model up to some length: it renewed every prefix up to there, which is looked up where it is asked for.
#[derive(Clone, Copy, Debug)]
struct Hit {
    number: u64,
    length: u64,
    model: Sym,
    class: CacheLifetime,
    last_use: Millis,
}

/// The static prefix of one model.
#[derive(Clone, Copy, Debug)]
struct StaticPrefix {
    model: Sym,
    edition: u64,
    class: CacheLifetime,
    last_use: Millis,
}

/// The cache as one chain sees it.
#[derive(Debug)]
pub struct PrefixCache<'a> {
    rules: &'a CacheRules,
    /// By length.
    entries: Vec<CachedPrefix>,
    /// Oldest first; a hit takes the place of those of its model that reached no further.
    renewed: Vec<Hit>,
    hits: u64,
    stills: Vec<StaticPrefix>,
    /// Edition with which the chain began: the one that other sessions have too.
    edition: Option<u64>,
    last: Option<Idle>,
}

/// What lies idle after a request.
#[derive(Clone, Copy, Debug)]
struct Idle {
    end: Millis,
    cached: u64,
    model: Sym,
}

/// Reads that only kept a prefix alive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KeptAlive {
    pub reads: u64,
    /// Tokens read by each.
    pub tokens: u64,
}

impl<'a> PrefixCache<'a> {
    /// An empty cache.
    pub fn new(rules: &'a CacheRules) -> Self {
        let (entries, renewed, stills) = (Vec::new(), Vec::new(), Vec::new());
        Self { rules, entries, renewed, hits: 0, stills, edition: None, last: None }
    }

    /// Forgets everything: a chain begins.
    pub fn begin(&mut self) {
        self.entries.clear();
        self.renewed.clear();
        self.stills.clear();
        (self.edition, self.last) = (None, None);
    }

    fn params(&self) -> &Params {
        &self.rules.params
    }

    /// Whether what was last used then is alive at a time.
    pub fn is_live(&self, last_use: Millis, class: CacheLifetime, now: Millis) -> bool {
        // A clock that ran backwards or is missing says nothing against an entry.
        let unknown = last_use == NO_TIME || now == NO_TIME;
        unknown || now.saturating_sub(last_use) <= class.millis() + Millis::from(self.params().slack_s) * 1_000
    }

    /// Lifetimes of the static prefix and of the tail.
    fn classes(&self, observed: CacheLifetime) -> (CacheLifetime, CacheLifetime) {
        match (self.params().layout, self.params().ttl) {
            (CacheLayout::StaticAndTail, _) => (CacheLifetime::Hour, CacheLifetime::FiveMinutes),
            (_, TtlPolicy::Observed) => (observed, observed),
            (_, TtlPolicy::Always(class)) => (class, class),
            (_, TtlPolicy::Mixed { still, tail }) => (still, tail),
        }
    }

    /// Pays for the idle time since the request before, up to `now` (none: the chain is over).
    pub fn keep_alive(&mut self, now: Option<Millis>) -> KeptAlive {
        let Params { keepalive_s, keepalive_max_s, layout, .. } = *self.params();
        let Some(last) = self.last.filter(|last| keepalive_s > 0 && last.cached > 0 && layout != CacheLayout::None)
        else {
            return KeptAlive::default();
        };
        let most = Millis::from(keepalive_max_s) * 1_000;
        let idle = now.map_or(most, |now| if last.end == NO_TIME { 0 } else { now.saturating_sub(last.end) });
        let every = Millis::from(keepalive_s) * 1_000;
        let reads = idle.clamp(0, most) / every;
        for read in 1..=reads {
            let at = last.end.saturating_add(read * every);
            if !self.touch(last, at) {
                // What has expired cannot be kept alive.
                return KeptAlive { reads: (read - 1).cast_unsigned(), tokens: last.cached };
            }
        }
        KeptAlive { reads: reads.cast_unsigned(), tokens: last.cached }
    }

    /// Reads the newest prefix at a time; false if it has expired.
    fn touch(&mut self, last: Idle, at: Millis) -> bool {
        let found = self.is_entry_live(last, at);
        let tail_only = self.params().layout == CacheLayout::AgentRuntime;
        if !found && !tail_only {
            return false;
        }
        let live = |cache: &Self, still: &StaticPrefix| {
            still.model == last.model && cache.is_live(still.last_use, still.class, at)
        };
        let stills: Vec<bool> = self.stills.iter().map(|still| live(self, still)).collect();
        if tail_only && !stills.iter().any(|&live| live) {
            return false;
        }
        for place in 0..self.entries.len() {
            if self.entries[place].model == last.model {
                let (_, class) = self.used(&self.entries[place]);
                self.entries[place] = CachedPrefix { class, last_use: at, hits: self.hits, ..self.entries[place] };
            }
        }
        self.stills.iter_mut().zip(stills).filter(|(_, live)| *live).for_each(|(still, _)| still.last_use = at);
        true
    }

    /// Sends a request: how its context is billed (no output).
    pub fn step(&mut self, ask: &CacheRequest) -> Spent {
        self.edition.get_or_insert(ask.edition);
        let (still_class, tail_class) = self.classes(ask.class);
        if let Some(length) = ask.forked {
            self.fork(ask, length, tail_class);
        }
        let held = self.entries.partition_point(|entry| entry.length <= ask.same.max(ask.shared));
        self.entries.truncate(held);
        let spent = self.quote(ask);
        self.remember(ask, &spent, still_class, tail_class);
        spent
    }

    /// How a request would be billed now, without sending it.
    pub fn quote(&self, ask: &CacheRequest) -> Spent {
        let (still_class, tail_class) = self.classes(ask.class);
        let still = self.live_still(ask, self.edition.unwrap_or(ask.edition));
        let cached = ask.context - ask.tail.min(ask.context);
        match self.params().layout {
            CacheLayout::None => Spent { uncached: ask.context, ..Spent::default() },
            CacheLayout::AgentRuntime => self.still_only(ask, still, still_class),
            CacheLayout::ClaudeCode | CacheLayout::StaticAndTail => {
                let read = self.live_tail(ask).max(still.unwrap_or(0)).min(cached);
                bill(ask, read, cached, still_class, tail_class)
            }
        }
    }

    /// How a call is billed that comes right after a request and sends `read` tokens of what that has sent, and others.
    pub fn follow_up(&self, ask: &CacheRequest, read: u64) -> Spent {
        match self.params().layout {
            CacheLayout::ClaudeCode | CacheLayout::StaticAndTail if self.cached() > 0 => {
                Spent { read, ..written(ask.context - read, self.tail_class(ask.class)) }
            }
            _ => self.quote(ask),
        }
    }

    fn fork(&mut self, ask: &CacheRequest, length: u64, class: CacheLifetime) {
        let Some(last) = self.last.filter(|last| last.model == ask.model && last.cached > 0 && length > last.cached)
        else {
            return;
        };
        self.push(length, ask.items, ask.model, class, last.end);
    }

    /// Tokens of the static prefix if some session has it warm.
    fn live_still(&self, ask: &CacheRequest, edition: u64) -> Option<u64> {
        let own = self.stills.iter().find(|still| still.model == ask.model && still.edition == ask.edition);
        let own = own.is_some_and(|still| self.is_live(still.last_use, still.class, ask.start));
        let shares = self.params().cross_session.is_on() && ask.edition == edition;
        let other = ask.elsewhere.filter(|_| shares).is_some_and(|warm| {
            let class = self.classes(warm.class).0;
            self.is_live(warm.last_use, class, ask.start)
        });
        (own || other).then_some(ask.still.min(ask.shared))
    }

    /// The longest live prefix in common with this context.
    fn live_tail(&self, ask: &CacheRequest) -> u64 {
        let lookback = self.params().lookback_blocks;
        let found = self.entries.iter().rev().find(|entry| {
            entry.model == ask.model
                && entry.length <= ask.shared
                && (lookback == 0 || ask.items.saturating_sub(entry.items) <= lookback)
                && self.is_used_live(entry, ask.start)
        });
        found.map_or(0, |entry| entry.length)
    }

    /// When a prefix was last used, and its lifetime since: a hit gives it the one that its request asks for.
    fn used(&self, entry: &CachedPrefix) -> (Millis, CacheLifetime) {
        #[cfg(test)]
        crate::base::id::work::step();
        let renews = |hit: &&Hit| hit.number > entry.hits && hit.model == entry.model && hit.length >= entry.length;
        let hit = self.renewed.iter().rev().find(renews);
        hit.map_or((entry.last_use, entry.class), |hit| (hit.last_use, hit.class))
    }

    fn is_used_live(&self, entry: &CachedPrefix, now: Millis) -> bool {
        let (last_use, class) = self.used(entry);
        self.is_live(last_use, class, now)
    }

    /// Whether what lies idle is alive.
    fn is_entry_live(&self, idle: Idle, now: Millis) -> bool {
        let from = self.entries.partition_point(|entry| entry.length < idle.cached);
        let mut as_long = self.entries[from..].iter().take_while(|entry| entry.length == idle.cached);
        as_long.find(|entry| entry.model == idle.model).is_some_and(|entry| self.is_used_live(entry, now))
    }

    /// Only the static prefix is marked.
    fn still_only(&self, ask: &CacheRequest, live: Option<u64>, class: CacheLifetime) -> Spent {
        let again = if self.params().double_system.is_on() { self.rules.cache.system_tokens } else { 0 };
        let still = ask.still.min(ask.context);
        if still < ask.min_cacheable {
            return Spent { uncached: ask.context + again, ..Spent::default() };
        }
        let read = live.map_or(0, |live| live.min(still));
        let rest = Spent { read, uncached: ask.context - still + again, ..Spent::default() };
        rest + written(still - read, class)
    }

    /// Renews what was hit and keeps what was written. A hit gives a prefix the lifetime that its request asks for.
    fn remember(&mut self, ask: &CacheRequest, spent: &Spent, still_class: CacheLifetime, tail_class: CacheLifetime) {
        let layout = self.params().layout;
        let hit = spent.read;
        if hit > 0 {
            self.hits += 1;
            self.renewed.retain(|old| old.model != ask.model || old.length > hit);
            let (number, model, last_use) = (self.hits, ask.model, ask.end);
            self.renewed.push(Hit { number, length: hit, model, class: tail_class, last_use });
        }
        let reach = hit + spent.write();
        if reach >= ask.still && reach > 0 {
            let new = StaticPrefix { model: ask.model, edition: ask.edition, class: still_class, last_use: ask.end };
            match self.stills.iter_mut().find(|still| still.model == ask.model && still.edition == ask.edition) {
                Some(still) => *still = new,
                None => self.stills.push(new),
            }
        }
        if reach > 0 && matches!(layout, CacheLayout::ClaudeCode | CacheLayout::StaticAndTail) {
            self.push(reach, ask.items, ask.model, tail_class, ask.end);
        }
        self.last = Some(Idle { end: ask.end, cached: reach, model: ask.model });
    }

    fn push(&mut self, length: u64, items: u32, model: Sym, class: CacheLifetime, last_use: Millis) {
        let entry = CachedPrefix { length, items, model, class, last_use, hits: self.hits };
        let place = self.entries.partition_point(|held| held.length < entry.length);
        match self.entries.get_mut(place) {
            Some(held) if held.length == entry.length && held.model == entry.model => *held = entry,
            _ => self.entries.insert(place, entry),
        }
    }

    /// Takes over a prefix that another chain has left.
    pub fn adopt(&mut self, model: Sym, length: u64, class: CacheLifetime, last_use: Millis) {
        if length > 0 && matches!(self.params().layout, CacheLayout::ClaudeCode | CacheLayout::StaticAndTail) {
            self.push(length, 0, model, class, last_use);
        }
    }

    /// Whether this chain has asked the model before.
    pub fn knows(&self, model: Sym) -> bool {
        self.last.is_some_and(|last| last.model == model) || self.entries.iter().any(|entry| entry.model == model)
    }

    /// Whether the static prefix of that edition has been sent.
    pub fn knows_edition(&self, model: Sym, edition: u64) -> bool {
        self.stills.iter().any(|still| still.model == model && still.edition == edition)
    }

    /// Lifetime of what is written behind the static prefix.
    pub fn tail_class(&self, observed: CacheLifetime) -> CacheLifetime {
        self.classes(observed).1
    }

    /// Whether all that the request before left is alive for a model at a time.
    pub fn is_warm(&self, model: Sym, now: Millis) -> bool {
        let last = self.last.filter(|last| last.model == model && last.cached > 0);
        last.is_some_and(|last| self.is_entry_live(last, now))
    }

    /// Lengths of all prefixes of a model.
    pub fn lengths(&self, model: Sym) -> Vec<u64> {
        self.entries.iter().filter(|entry| entry.model == model).map(|entry| entry.length).collect()
    }

    /// Leading tokens that are cached after the request before.
    pub fn cached(&self) -> u64 {
        self.last.map_or(0, |last| last.cached)
    }
}

/// Written tokens by lifetime.
pub fn written(tokens: u64, class: CacheLifetime) -> Spent {
    match class {
        CacheLifetime::FiveMinutes => Spent { write_5m: tokens, ..Spent::default() },
        CacheLifetime::Hour => Spent { write_1h: tokens, ..Spent::default() },
    }
}

/// Reads what is live, writes the rest up to the breakpoint if that is long enough.
fn bill(ask: &CacheRequest, read: u64, cached: u64, still_class: CacheLifetime, tail_class: CacheLifetime) -> Spent {
    if cached < ask.min_cacheable {
        return Spent { read, uncached: ask.context - read, ..Spent::default() };
    }
    let still = ask.still.min(cached).saturating_sub(read);
    let rest = Spent { read, uncached: ask.context - cached, ..Spent::default() };
    rest + written(still, still_class) + written(cached - read - still, tail_class)
}
