//! Where things stand in a context, and what is owed on them. Most of a context is billed as it was before, so places that
//! share one fate are a run; what is owed on part of a run is noted per token at its two ends, and told place by place once for
//! each group of requests. So a request takes as many steps as there are runs and new things.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::base::sums::{adds_up, grows};
use crate::cost::shares::{BillShare, Thing, When};
use crate::whatif::sim::cost::{Spent, Total};

/// What earlier bills say of a thing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BilledBefore {
    /// Whether its first cost has been paid.
    pub paid: bool,
    /// How many of its tokens have been in the cache.
    pub cached: u64,
}

impl BilledBefore {
    /// Of something that another chain has paid for: no token of it is known not to have been in the cache.
    pub const LENT: Self = Self { paid: true, cached: u64::MAX };

    /// How a thing of this size is billed from now on.
    pub fn fate(self, tokens: u32) -> Billing {
        match self {
            Self { paid: true, cached } if cached >= tokens.into() => Billing::Cached,
            Self { paid: true, cached: 0 } => Billing::Uncached,
            _ => Billing::Own,
        }
    }
}

/// How a place is billed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Billing {
    /// All of it has been in the cache: what is not read from there was lost.
    Cached,
    /// Nothing of it has been.
    Uncached,
    /// By itself: it is new, or part of it has been in the cache.
    Own,
}

/// Places up to this one share a fate.
#[derive(Clone, Copy, Debug)]
pub struct PlaceRun {
    /// The first place behind it.
    pub end: usize,
    pub fate: Billing,
}

/// Leading places of a run that a bill treats alike.
pub struct Alike {
    /// The first place behind them.
    pub end: usize,
    pub tokens: u64,
    /// One token, as it is billed.
    pub kind: Spent,
    /// Why it is paid for.
    pub when: When,
}

/// What is owed for each token of a place, by why it is paid for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Owed {
    carried: Total,
    again: Total,
}

adds_up!(Owed: carried, again);
grows!(Owed: carried, again);

/// A context.
#[derive(Default)]
pub struct ContextPlaces {
    places: Vec<PlacedThing>,
    runs: Vec<PlaceRun>,
    /// What is owed, by group of requests.
    dues: Vec<GroupDues>,
    /// The group of the request that is billed.
    group: usize,
}

/// What is owed with requests of one group.
#[derive(Default)]
struct GroupDues {
    /// By place: what is owed from there on, and what no longer is. A request notes few places: many groups take little room.
    steps: BTreeMap<usize, OwedStep>,
    /// The last of the requests.
    request: u32,
}

/// What changes at a place.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct OwedStep {
    begun: Owed,
    ended: Owed,
}

adds_up!(OwedStep: begun, ended);

struct PlacedThing {
    thing: Thing,
    tokens: u32,
    /// Tokens up to its end.
    end: u64,
}

impl ContextPlaces {
    /// Tokens of all of them.
    pub fn tokens(&self) -> u64 {
        self.before(self.places.len())
    }

    /// What stands at a place, and its tokens.
    pub fn at(&self, place: usize) -> (Thing, u32) {
        let PlacedThing { thing, tokens, .. } = self.places[place];
        (thing, tokens)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Thing, u32)> {
        self.places.iter().map(|place| (place.thing, place.tokens))
    }

    fn before(&self, place: usize) -> u64 {
        place.checked_sub(1).map_or(0, |last| self.places[last].end)
    }

    /// Leaves nothing behind the first places; what is owed there has been told.
    pub fn truncate(&mut self, places: usize) {
        self.places.truncate(places);
        let whole = self.runs.partition_point(|run| run.end < places);
        self.runs.truncate(whole + usize::from(places > 0));
        if let Some(last) = self.runs.last_mut() {
            last.end = last.end.min(places);
        }
    }

    /// Adds a place at the end.
    pub fn push(&mut self, thing: Thing, tokens: u32, fate: Billing) {
        self.places.push(PlacedThing { thing, tokens, end: self.tokens() + u64::from(tokens) });
        self.keep(self.places.len(), fate);
    }

    /// All runs, in order; those that hold once they are billed are to be kept again.
    pub fn take_runs(&mut self) -> Vec<PlaceRun> {
        std::mem::take(&mut self.runs)
    }

    /// Places from the last run to this one have a fate. Without tokens a place has none of its own.
    pub fn keep(&mut self, end: usize, fate: Billing) {
        let so_far = self.runs.last().map_or(0, |last| last.end);
        let is_empty = self.before(so_far) == self.before(end);
        match self.runs.last_mut() {
            Some(last) if last.fate == fate || is_empty => last.end = end,
            _ => self.runs.push(PlaceRun { end, fate }),
        }
    }

    /// How many whole places of a run, from one on, are billed as the next tokens are, of which there are so many. None if
    /// the place has to be looked at by itself.
    pub fn alike(&self, place: usize, run: PlaceRun, (kind, left): (Spent, u64)) -> Option<Alike> {
        let when = match run.fate {
            Billing::Cached if kind.read > 0 => When::Carried,
            Billing::Cached => When::Again,
            Billing::Uncached if kind.uncached > 0 => When::Carried,
            Billing::Uncached | Billing::Own => return None,
        };
        let start = self.before(place);
        let whole = self.places[place..run.end].partition_point(|place| place.end - start <= left);
        let end = place + whole;
        (whole > 0).then(|| Alike { end, tokens: self.before(end) - start, kind, when })
    }

    /// What is owed from now on is owed with requests of this group.
    pub fn turn_to(&mut self, group: usize) {
        let groups = self.dues.len().max(group + 1);
        self.dues.resize_with(groups, GroupDues::default);
        self.group = group;
    }

    /// Notes what each token of some places owes with a request.
    pub fn owe(&mut self, request: u32, places: Range<usize>, when: When, due: Total) {
        let owed = match when {
            When::Again => Owed { again: due, ..Owed::default() },
            _ => Owed { carried: due, ..Owed::default() },
        };
        let dues = &mut self.dues[self.group];
        dues.steps.entry(places.start).or_default().begun += owed;
        dues.steps.entry(places.end).or_default().ended += owed;
        dues.request = request;
    }

    /// Tells what is owed on all places from one on.
    pub fn settle(&mut self, from: usize, each: &mut impl FnMut(&BillShare)) {
        for dues in &mut self.dues {
            dues.settle(from, &self.places, each);
        }
    }
}

impl GroupDues {
    fn settle(&mut self, from: usize, places: &[PlacedThing], each: &mut impl FnMut(&BillShare)) {
        if self.steps.last_key_value().is_none_or(|(&last, _)| last <= from) {
            return;
        }
        let later = self.steps.split_off(&from);
        let OwedStep { mut begun, mut ended } = self.steps.values().copied().sum();
        let earlier = begun - ended;
        if earlier != Owed::default() {
            // What stands before goes on owing; nothing behind it does.
            self.steps.insert(from, OwedStep { ended: earlier, ..OwedStep::default() });
        }
        let mut at = from;
        for (place, step) in later {
            places[at..place].iter().for_each(|one| one.tell(begun - ended, self.request, each));
            (at, begun, ended) = (place, begun + step.begun, ended + step.ended);
        }
    }
}

impl PlacedThing {
    fn tell(&self, owed: Owed, request: u32, each: &mut impl FnMut(&BillShare)) {
        for (when, due) in [(When::Carried, owed.carried), (When::Again, owed.again)] {
            if due.requests > 0 && self.tokens > 0 {
                let Total { requests, spent, cost } = due;
                let (spent, cost) = (spent.times(self.tokens), cost.times(self.tokens));
                each(&BillShare { request, requests, thing: self.thing, when, spent, cost });
            }
        }
    }
}
