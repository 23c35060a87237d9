//! What can be known of a request before its bill: how long its static prefix is, whether another session keeps that warm,
//! how long its writes live, whether a request that is not logged will have cached the answer before it.
//!
//! Everything is learned from requests that were sent earlier, in the order of the clock over all sessions, so that it
//! depends neither on the order of files nor on threads.

use std::collections::BTreeMap;

use crate::model::id::Id;
use crate::model::names::Sym;
use crate::model::timeline::{Marks, Request, SegmentCause, Timeline};
use crate::model::trace::{Millis, NO_TIME, Place};
use crate::policies::cache_knobs::{Class, Oracle};
use crate::policies::sizes::Sizes;

/// A prefix that somebody else wrote or read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Warm {
    /// Its tokens.
    pub length: u64,
    /// When it was last written or read.
    pub last_use: Millis,
    /// How long it lives from there, as observed.
    pub class: Class,
}

/// What is known of a request before its bill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prior {
    /// Tokens of the static prefix (policies.md: S).
    pub still: u64,
    /// Lifetime of its writes, as observed.
    pub class: Class,
    /// The static prefix as other chains have it, where this one may need that.
    pub elsewhere: Option<Warm>,
    /// Whether the answer before is believed to be cached by a request that is not logged.
    pub fork: bool,
}

/// Who shares a static prefix: directory, model, version.
type Key = (Id, Sym, Sym);

/// Requests of one key, in the order of their starts.
#[derive(Default)]
struct Commons {
    uses: Vec<Use>,
    /// Lengths at which reads were seen to stop.
    floors: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Use {
    chain: u32,
    end: Millis,
    class: Class,
    still: u64,
}

/// What one chain has shown so far.
#[derive(Clone, Copy, Default)]
struct Seen {
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
}

/// Learns all priors.
pub fn learn(timeline: &Timeline, sizes: &Sizes, oracle: &Oracle) -> Vec<Prior> {
    let classes = classes(timeline, oracle.cache.class_unknown);
    let mut learner = Learner {
        timeline,
        sizes,
        classes: &classes,
        commons: BTreeMap::new(),
        forks: BTreeMap::new(),
        seen: vec![Seen::default(); timeline.chains.len()],
    };
    let blank = Prior { still: 0, class: oracle.cache.class_unknown, elsewhere: None, fork: true };
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
            let request = &timeline.requests[index as usize];
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
fn classes(timeline: &Timeline, unknown: Class) -> Vec<Class> {
    let mut classes = vec![unknown; timeline.requests.len()];
    for chain in &timeline.chains {
        let range = chain.requests.start as usize..chain.requests.end as usize;
        let said = |request: &Request| match (request.usage.cache_creation_1h, request.usage.cache_creation_5m) {
            (0, 0) => None,
            (hour, five) => Some(if hour >= five { Class::Hour } else { Class::FiveMinutes }),
        };
        let mut class = timeline.requests[range.clone()].iter().find_map(said).unwrap_or(unknown);
        for at in range {
            class = said(&timeline.requests[at]).unwrap_or(class);
            classes[at] = class;
        }
    }
    classes
}

struct Learner<'a> {
    timeline: &'a Timeline,
    sizes: &'a Sizes,
    classes: &'a [Class],
    commons: BTreeMap<Key, Commons>,
    /// By version: what the last human turn showed.
    forks: BTreeMap<Sym, bool>,
    seen: Vec<Seen>,
}

impl Learner<'_> {
    fn key(&self, request: &Request) -> Key {
        (self.timeline.session_of(request).project, request.model, request.version)
    }

    fn prior(&mut self, index: u32) -> Prior {
        let request = &self.timeline.requests[index as usize];
        let key = self.key(request);
        let seen = &mut self.seen[request.chain as usize];
        let under = Some((request.model, request.version));
        if seen.under != under {
            *seen = Seen { last: seen.last, under, fork: seen.fork, ..Seen::default() };
        }
        let opening = self.sizes.opening(self.timeline, request);
        let most = *seen.estimate.get_or_insert(opening);
        let commons = self.commons.entry(key).or_default();
        let common = commons.floors.iter().rev().copied().find(|&floor| floor <= most);
        let still = seen.floor.or(seen.first_read).or(common).unwrap_or(most).min(request.context());
        let needs = seen.last.is_none_or(|last| {
            let last = &self.timeline.requests[last as usize];
            last.model != request.model || request.start - last.end > Class::FiveMinutes.millis()
        });
        let elsewhere = if needs { commons.last_use(request, still) } else { None };
        let fork = seen.fork.or_else(|| self.forks.get(&request.version).copied()).unwrap_or(true);
        Prior { still, class: self.classes[index as usize], elsewhere, fork }
    }

    /// Takes in what the bill of a request shows.
    fn bill(&mut self, index: u32, prior: &Prior) {
        let request = &self.timeline.requests[index as usize];
        let read = request.usage.cache_read;
        let key = self.key(request);
        let before = self.seen[request.chain as usize].last.map(|last| &self.timeline.requests[last as usize]);
        let broke = before.is_some_and(|before| {
            before.model == request.model && 2 * read < before.usage.cache_read + before.usage.cache_creation
        });
        let opens = opens(self.timeline, index) && before.is_some();
        let is_fork = self.timeline.chains[request.chain as usize].place != Place::Main;
        let shown = before.and_then(|before| shows_fork(before, request));
        let seen = &mut self.seen[request.chain as usize];
        let commons = self.commons.entry(key).or_default();
        if read > 0 && (broke || opens) {
            seen.floor = Some(seen.floor.map_or(read, |floor| floor.min(read)));
            commons.add_floor(read);
        }
        if read > 0 && before.is_none() {
            seen.first_read = Some(read);
            let _ = is_fork;
            commons.add_floor(read);
        }
        if let Some(shown) = shown {
            seen.fork = Some(shown);
            self.forks.insert(request.version, shown);
        }
        seen.last = Some(index);
        let still = seen.floor.or(seen.first_read).unwrap_or(prior.still);
        commons.uses.push(Use { chain: request.chain, end: request.end, class: prior.class, still });
    }
}

/// Whether a request opens a segment.
pub fn opens(timeline: &Timeline, index: u32) -> bool {
    timeline.segments[timeline.requests[index as usize].segment as usize].requests.start == index
}

/// Whether a human turn within the lifetime read more than was written before: the answer was cached already. None where it
/// cannot tell.
fn shows_fork(before: &Request, request: &Request) -> Option<bool> {
    let warm = request.start.saturating_sub(before.end) <= Class::FiveMinutes.millis();
    let cached = before.usage.cache_read + before.usage.cache_creation;
    let tells = request.marks.has(Marks::HUMAN) && warm && before.model == request.model && cached > 0;
    (tells && request.usage.cache_read >= cached).then_some(request.usage.cache_read > cached)
}

impl Commons {
    fn add_floor(&mut self, floor: u64) {
        if let Err(place) = self.floors.binary_search(&floor) {
            self.floors.insert(place, floor);
        }
    }

    /// The newest use of a static prefix of that length by another chain that was over when the request started.
    fn last_use(&self, request: &Request, still: u64) -> Option<Warm> {
        let over = |used: &&Use| used.chain != request.chain && used.end <= request.start;
        let recent = |used: &&Use| request.start - used.end <= 2 * Class::Hour.millis();
        let mut candidates = self.uses.iter().rev().filter(over).take_while(recent);
        let found = candidates.find(|used| used.still == still)?;
        Some(Warm { length: still, last_use: found.end, class: found.class })
    }
}

/// Whether a segment begins where messages were changed, so that of the cache only the static prefix is left.
pub fn breaks_messages(cause: SegmentCause) -> bool {
    cause != SegmentCause::Start
}
