//! What can be known of a request before its bill: how long its static prefix is, whether another session keeps that warm, how
//! long its writes live, whether a request that is not logged will have cached the output before it. All of it is learned from
//! requests that were sent earlier, by the clock over all sessions, so that neither the order of files nor threads matter.

use std::collections::BTreeMap;

use crate::base::id::Id;
use crate::base::names::Sym;
use crate::logs::timeline::requests::{Marks, NONE, Request, Timeline};
use crate::logs::trace::{Millis, NO_TIME, Place};
use crate::whatif::prompt_cache::params::CacheLifetime;
use crate::whatif::sim::sizes::SizeRules;
use crate::whatif::sim::unforeseen::{LossesSoFar, Occasion, Unforeseen, Where};
use crate::whatif::sim::{laid_out, sizes};

/// A prefix that somebody else wrote or read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WarmPrefix {
    /// Its tokens.
    pub length: u64,
    /// When it was last written or read.
    pub last_use: Millis,
    /// How long it lives from there, as observed.
    pub class: CacheLifetime,
}

/// What is known of a request before its bill.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prior {
    /// Tokens of the static prefix (policies.md: S).
    pub still: u64,
    /// Lifetime of its writes, as observed.
    pub class: CacheLifetime,
    /// Milliseconds since the request before in its chain was over.
    pub idle: Millis,
    /// What others wrote that it may read: of few requests anything.
    others: Option<Box<Others>>,
    /// Whether the answer before is believed to be cached by a request that is not logged.
    pub fork: bool,
    /// How often the cache was missed so far where the log has no reason for it and one could be lost here.
    pub unforeseen: Option<Unforeseen>,
}

/// What others wrote that a request may read.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Others {
    elsewhere: Option<WarmPrefix>,
    inherited: Option<WarmPrefix>,
}

impl Prior {
    /// The static prefix as other chains have it, where this one may need that.
    pub fn elsewhere(&self) -> Option<WarmPrefix> {
        self.others.as_ref()?.elsewhere
    }

    /// What another chain of the session has cached of a context that this chain begins with.
    pub fn inherited(&self) -> Option<WarmPrefix> {
        self.others.as_ref()?.inherited
    }
}

/// Whose static prefix it is: each kind of agent has tools and a system prompt of its own, and so has the main thread.
type Role = (Place, Sym);

/// Who shares a static prefix: directory, model, version, role.
type PrefixKey = (Id, Sym, Sym, Role);

/// Requests of one key, in the order of their starts.
#[derive(Default)]
struct Commons {
    uses: Vec<Sent>,
    /// Lengths at which reads were seen to stop.
    floors: Vec<u64>,
}

/// What one chain has shown so far.
#[derive(Clone, Copy, Default)]
struct ChainSeen {
    last: Option<u32>,
    /// Model and version of the values below.
    under: Option<(Sym, Sym)>,
    /// Least positive read after a break.
    floor: Option<u64>,
    /// The first read, if positive.
    first_read: Option<u64>,
    /// What was estimated at first.
    estimate: Option<u64>,
    /// Whether the last human turn that could tell showed an answer that was cached already.
    fork: Option<bool>,
    /// Whether the static prefix was still warm when the chain last came back cold.
    kept: Option<bool>,
    /// Whether another chain kept the static prefix warm when this one began.
    began_warm: bool,
}

/// What the chains of one session have sent.
#[derive(Default)]
struct Family {
    /// Until the last chain has begun: then nobody asks for it any more.
    sent: Vec<Sent>,
    /// Chains that have not begun.
    to_begin: u32,
    /// Chains forked off that found the context they begin with in the cache, less those that did not.
    inherits: i32,
}

/// What a request left in the cache: all that was cached of it, or its static prefix.
#[derive(Clone, Copy)]
struct Sent {
    chain: u32,
    model: Sym,
    warm: WarmPrefix,
}

/// Learns all priors; `unknown` is the lifetime of writes whose usage does not say it.
pub fn learn(timeline: &Timeline, rules: &SizeRules, unknown: CacheLifetime) -> Vec<Prior> {
    let mut learner = Learner {
        timeline,
        rules,
        classes: classes(timeline, unknown),
        idle: idle(timeline),
        commons: BTreeMap::new(),
        forks: BTreeMap::new(),
        statics: BTreeMap::new(),
        starts: BTreeMap::new(),
        returns: BTreeMap::new(),
        losses: LossesSoFar::default(),
        seen: vec![ChainSeen::default(); timeline.chains.len()],
        families: timeline.sessions.iter().map(|_| Family::default()).collect(),
    };
    for (index, chain) in (0..).zip(&timeline.chains) {
        let begins = timeline.requests_of(index).iter().any(|request| request.context() > 0);
        learner.families[chain.session as usize].to_begin += u32::from(begins);
    }
    let blank = Prior { still: 0, class: unknown, idle: 0, others: None, fork: true, unforeseen: None };
    let mut priors = vec![blank; timeline.requests.len()];
    for index in by_clock(timeline) {
        let at = index as usize;
        priors[at] = learner.prior(index);
        learner.bill(index, &priors[at]);
    }
    priors
}

/// Requests with usage in the order of their starts; those of one chain stay in their order even if its clock ran
/// backwards.
fn by_clock(timeline: &Timeline) -> Vec<u32> {
    let mut order: Vec<(Millis, u32)> = Vec::with_capacity(timeline.requests.len());
    for chain in &timeline.chains {
        let mut latest = NO_TIME;
        for index in chain.requests.clone() {
            let request = timeline.request(index);
            latest = latest.max(request.start);
            if request.context() > 0 {
                order.push((latest, index));
            }
        }
    }
    order.sort_unstable();
    order.into_iter().map(|(_, index)| index).collect()
}

/// Lifetime of every request's writes: what its usage says, else that of the request before in its chain, else that of the
/// next one that says it.
fn classes(timeline: &Timeline, unknown: CacheLifetime) -> Vec<CacheLifetime> {
    let mut classes = vec![unknown; timeline.requests.len()];
    for chain in &timeline.chains {
        let range = chain.requests.start as usize..chain.requests.end as usize;
        let said = |request: &Request| match (request.usage().cache_creation_1h, request.usage().cache_creation_5m) {
            (0, 0) => None,
            (hour, five) => Some(if hour >= five { CacheLifetime::Hour } else { CacheLifetime::FiveMinutes }),
        };
        let mut class = timeline.requests[range.clone()].iter().find_map(said).unwrap_or(unknown);
        for at in range {
            class = said(&timeline.requests[at]).unwrap_or(class);
            classes[at] = class;
        }
    }
    classes
}

/// By request: milliseconds between the end of the one before in its chain and its start; 0 where that is not known. Clocks are
/// set back, and a session may be written anew with one time for all that was said before: a time counts only if it is not that
/// of several answers, from the newest earlier time that is not later than the request.
fn idle(timeline: &Timeline) -> Vec<Millis> {
    let mut idle = vec![0; timeline.requests.len()];
    for chain in &timeline.chains {
        let mut ends: BTreeMap<Millis, u32> = BTreeMap::new();
        for index in chain.requests.clone() {
            *ends.entry(timeline.request(index).end).or_default() += 1;
        }
        let trusted = |time: Millis| time != NO_TIME && ends.get(&time).is_none_or(|&answers| answers == 1);
        // In order, almost always by growing at the end.
        let mut earlier: Vec<Millis> = Vec::new();
        for index in chain.requests.clone() {
            let request = timeline.request(index);
            let after = earlier.partition_point(|&time| time <= request.start);
            if trusted(request.start) && after > 0 {
                idle[index as usize] = request.start.saturating_sub(earlier[after - 1]);
            }
            for time in [request.start, request.end].into_iter().filter(|&time| trusted(time)) {
                let place = earlier.partition_point(|&held| held <= time);
                earlier.insert(place, time);
            }
        }
    }
    idle
}

struct Learner<'a> {
    timeline: &'a Timeline,
    rules: &'a SizeRules,
    classes: Vec<CacheLifetime>,
    idle: Vec<Millis>,
    commons: BTreeMap<PrefixKey, Commons>,
    /// By version: what the last human turn showed.
    forks: BTreeMap<Sym, bool>,
    /// Static prefixes as they were last seen in any directory, by role, model and version, and by role and model.
    statics: BTreeMap<(Role, Sym, Option<Sym>), u64>,
    /// By role, model and whether another chain kept it warm: whether the last chain that began found its static prefix in
    /// the cache.
    starts: BTreeMap<(Role, Sym, bool), bool>,
    /// By model: whether the last chain that came back cold did.
    returns: BTreeMap<Sym, bool>,
    losses: LossesSoFar,
    seen: Vec<ChainSeen>,
    families: Vec<Family>,
}

impl Learner<'_> {
    fn key(&self, request: &Request) -> PrefixKey {
        (self.timeline.session_of(request).project, request.model, request.version, self.role(request))
    }

    fn role(&self, request: &Request) -> Role {
        let chain = self.timeline.chain(request.chain);
        let place = if chain.place == Place::Main { Place::Main } else { Place::AgentFile };
        (place, chain.agent_type)
    }

    fn prior(&mut self, index: u32) -> Prior {
        let request = self.timeline.request(index);
        let (key, role) = (self.key(request), self.role(request));
        let idle = self.idle[index as usize];
        let inherited = self.candidate(index).filter(|_| self.family(request).inherits >= 0);
        let opening = self.opening(request);
        let seen = &mut self.seen[request.chain as usize];
        let under = Some((request.model, request.version));
        if seen.under != under {
            *seen =
                ChainSeen { last: seen.last, under, estimate: seen.estimate, fork: seen.fork, ..ChainSeen::default() };
        }
        let most = *seen.estimate.get_or_insert(opening);
        let commons = self.commons.entry(key).or_default();
        let common = commons.floors.iter().rev().copied().find(|&floor| floor <= most);
        // Tools and system are the same in every directory, as long as the client is (policies.md F14).
        let anywhere = [Some(request.version), None].map(|version| (role, request.model, version));
        let anywhere = anywhere.iter().filter_map(|key| self.statics.get(key)).copied().find(|&length| length <= most);
        let common = common.or(anywhere);
        let still = seen.floor.or(seen.first_read).or(common).unwrap_or(most).min(request.context());
        let last = seen.last.map(|last| self.timeline.request(last));
        let elsewhere = match last {
            Some(last) if last.model == request.model && idle <= CacheLifetime::FiveMinutes.millis() => None,
            _ => {
                let own = commons.last_use(request, still);
                let is_live =
                    own.is_some_and(|warm| request.start.saturating_sub(warm.last_use) <= warm.class.millis());
                // Somebody whose log is not here kept it warm the last time; or what was warm was not found.
                let believed = match last {
                    Some(_) => seen.kept.or_else(|| self.returns.get(&request.model).copied()),
                    None => {
                        seen.began_warm = is_live;
                        self.starts.get(&(role, request.model, is_live)).copied()
                    }
                };
                let kept = WarmPrefix { length: still, last_use: request.start, class: CacheLifetime::FiveMinutes };
                match believed {
                    Some(false) if last.is_none() && is_live => None,
                    Some(true) if last.is_some() || !is_live => Some(kept),
                    _ => own,
                }
            }
        };
        let fork = seen.fork.or_else(|| self.forks.get(&request.version).copied()).unwrap_or(true);
        let class = self.classes[index as usize];
        let unforeseen = last
            .and_then(|last| could_be_lost(last, request, idle, class))
            .map(|place| self.losses.before(place, Occasion::of(self.timeline, request, idle)));
        let others = elsewhere.or(inherited).map(|_| Box::new(Others { elsewhere, inherited }));
        Prior { still, class, idle, others, fork, unforeseen }
    }

    /// The most that the static prefix of a chain that begins here can be. One that goes on from another has that one's: the
    /// conversation that it begins with is none of it.
    fn opening(&self, request: &Request) -> u64 {
        let after = self.timeline.segments[request.segment as usize].after;
        let base = (after != NONE).then(|| self.seen[self.timeline.request(after).chain as usize]);
        let under = Some((request.model, request.version));
        let of_base = base.and_then(|seen| {
            // Another model or client has another one, which is no larger than what was estimated at first.
            seen.floor.or(seen.first_read).filter(|_| seen.under == under).or(seen.estimate)
        });
        of_base.unwrap_or_else(|| sizes::opening(self.timeline, request, self.rules))
    }

    fn family(&self, request: &Request) -> &Family {
        &self.families[self.timeline.session_of_chain(request.chain) as usize]
    }

    /// The context that a chain begins with, as another chain of its session has cached it: that of the request it was
    /// forked off, or where the log does not name that, the largest one that the first context can hold.
    fn candidate(&self, index: u32) -> Option<WarmPrefix> {
        let request = self.timeline.request(index);
        if self.seen[request.chain as usize].last.is_some() {
            return None;
        }
        let after = self.timeline.segments[request.segment as usize].after;
        if after != NONE {
            let base = self.timeline.request(after);
            let warm = WarmPrefix { length: base.cached(), last_use: base.end, class: self.classes[after as usize] };
            return (base.model == request.model).then_some(warm);
        }
        let most = sizes::opening(self.timeline, request, self.rules);
        if most < self.rules.inherited_tokens_min {
            return None;
        }
        let fits = |sent: &&Sent| {
            let WarmPrefix { length, last_use, .. } = sent.warm;
            let is_other = sent.chain != request.chain && sent.model == request.model;
            is_other && last_use <= request.start && length <= most && 2 * length > most
        };
        self.family(request).sent.iter().filter(fits).max_by_key(|sent| sent.warm.length).map(|sent| sent.warm)
    }

    /// Takes in what the bill of a request shows.
    fn bill(&mut self, index: u32, prior: &Prior) {
        let request = self.timeline.request(index);
        let read = request.usage().cache_read;
        let (key, role) = (self.key(request), self.role(request));
        let candidate = self.candidate(index);
        let family = &mut self.families[self.timeline.session_of_chain(request.chain) as usize];
        let inherits = candidate.map(|warm| 2 * read > warm.length);
        family.inherits += inherits.map_or(0, |found| if found { 1 } else { -1 });
        let left = |length: u64| Sent {
            chain: request.chain,
            model: request.model,
            warm: WarmPrefix { length, last_use: request.end, class: prior.class },
        };
        family.to_begin -= u32::from(self.seen[request.chain as usize].last.is_none());
        if family.to_begin > 0 {
            family.sent.push(left(request.cached()));
        } else {
            family.sent = Vec::new();
        }
        let before = self.seen[request.chain as usize].last.map(|last| self.timeline.request(last));
        let before = before.filter(|before| before.model == request.model);
        let cold = before.is_some() && prior.idle > prior.class.millis();
        let broke = before.is_some_and(|before| if cold { read < before.cached() } else { 2 * read < before.cached() });
        let opens = laid_out::opens(self.timeline, index) && before.is_some();
        let shown = before.and_then(|before| shows_fork(before, request, prior.idle));
        let first = self.seen[request.chain as usize].last.is_none();
        let seen = &mut self.seen[request.chain as usize];
        let commons = self.commons.entry(key).or_default();
        if let (Some(unforeseen), Some(before)) = (prior.unforeseen, before) {
            self.losses.add(&unforeseen, 2 * read < before.cached());
        }
        if first && inherits.is_none() {
            self.starts.insert((role, request.model, seen.began_warm), read > 0);
        }
        if read > 0 && (broke || opens || (first && inherits != Some(true))) {
            for version in [Some(request.version), None] {
                self.statics.insert((role, request.model, version), read);
            }
        }
        if read > 0 && (broke || opens) {
            seen.floor = Some(seen.floor.map_or(read, |floor| floor.min(read)));
            commons.add_floor(read);
        }
        if read > 0 && first && inherits != Some(true) {
            seen.first_read = Some(read);
            commons.add_floor(read);
        }
        if cold && (broke || read == 0) {
            seen.kept = Some(read > 0);
            self.returns.insert(request.model, read > 0);
        }
        if let Some(shown) = shown {
            seen.fork = Some(shown);
            self.forks.insert(request.version, shown);
        }
        seen.last = Some(index);
        commons.uses.push(left(seen.floor.or(seen.first_read).unwrap_or(prior.still)));
    }
}

/// Where a warm prefix could be lost before this request, if the log gives no reason why it should: the model is the same,
/// nothing was taken out of the context, and no more time has passed than writes live.
fn could_be_lost(before: &Request, request: &Request, idle: Millis, class: CacheLifetime) -> Option<Where> {
    let has_any = |marks: [Marks; 3]| marks.into_iter().any(|mark| request.marks.has(mark));
    let explained = before.model != request.model
        || has_any([Marks::COMPACTION, Marks::MICROCOMPACTION, Marks::REWIND])
        || request.context() < before.context()
        || idle > class.millis();
    let place = if has_any([Marks::HUMAN, Marks::META, Marks::RESUME]) { Where::Turn } else { Where::Tools };
    (!explained && before.cached() > 0).then_some(place)
}

/// Whether a human turn within the lifetime read more than was written before: the answer was cached already. None where it
/// cannot tell.
fn shows_fork(before: &Request, request: &Request, idle: Millis) -> Option<bool> {
    let warm = idle <= CacheLifetime::FiveMinutes.millis();
    let cached = before.cached();
    let tells = request.marks.has(Marks::HUMAN) && warm && before.model == request.model && cached > 0;
    (tells && request.usage().cache_read >= cached).then_some(request.usage().cache_read > cached)
}

impl Commons {
    fn add_floor(&mut self, floor: u64) {
        if let Err(place) = self.floors.binary_search(&floor) {
            self.floors.insert(place, floor);
        }
    }

    /// The newest use of a static prefix of that length by another chain that was over when the request started.
    fn last_use(&self, request: &Request, still: u64) -> Option<WarmPrefix> {
        let timed = request.start != NO_TIME;
        let others = self.uses.iter().rev().filter(|used| timed && used.chain != request.chain).map(|used| used.warm);
        let over = |used: &WarmPrefix| used.last_use != NO_TIME && used.last_use <= request.start;
        let recent =
            |used: &WarmPrefix| request.start.saturating_sub(used.last_use) <= 2 * CacheLifetime::Hour.millis();
        others.filter(over).take_while(recent).find(|used| used.length == still)
    }
}
