//! How often the cache is missed for no reason that the log has, and what makes it likelier: learned request by
//! request, in the order of the clock. Single misses cannot be foretold this way (no occasion brings one in more than
//! half of the cases, save rare ones); what they cost in sum can.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::logs::timeline::requests::{BlockKind, Marks, Request, Timeline};
use crate::logs::trace::Millis;
use crate::whatif::prompt_cache::params::{CacheLifetime, UnforeseenWeight};

/// Where a prefix can be lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Where {
    /// Where something but results of tools came in.
    Turn,
    /// Between two requests of a turn.
    Tools,
}

/// What else stood before the request: the first that fits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, strum::IntoStaticStr)]
#[strum(const_into_str)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    #[strum(serialize = "effort changed")]
    EffortChanged,
    /// The client told the model of other tools or servers.
    #[strum(serialize = "other tools")]
    ToolsArrived,
    /// A person put in an image or a document.
    #[strum(serialize = "images")]
    Media,
    /// More than five minutes had passed.
    #[strum(serialize = "idle for over five minutes")]
    Idle,
    /// Nothing of these.
    #[strum(serialize = "none of these")]
    None,
}

impl Occasion {
    /// What stood before a request.
    pub fn of(timeline: &Timeline, request: &Request, idle: Millis) -> Self {
        let has = |marks: Marks| request.marks.has(marks);
        let media = || request.inputs.clone().any(|block| timeline.blocks[block as usize].kind == BlockKind::Media);
        match () {
            () if has(Marks::EFFORT_CHANGE) => Self::EffortChanged,
            () if has(Marks::TOOLS_ARRIVED) => Self::ToolsArrived,
            () if media() && timeline.was_prompted(request) => Self::Media,
            () if idle > CacheLifetime::FiveMinutes.millis() => Self::Idle,
            () => Self::None,
        }
    }
}

/// What was seen before a request at which a prefix could be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unforeseen {
    pub place: Where,
    /// What else stood before it.
    pub occasion: Occasion,
    /// Requests at such a place before this one, and those of them that had lost it.
    at_place: Lost,
    /// Of these, after the same occasion.
    at_occasion: Lost,
}

/// So many of so many, in little room: there are two of them for each request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Lost {
    k: u32,
    n: u32,
}

impl Lost {
    fn count(&mut self, lost: bool) {
        self.k += u32::from(lost);
        self.n += 1;
    }
}

impl Unforeseen {
    /// The tokens of `at_stake` that are to be expected to be lost.
    pub fn expected(&self, at_stake: u64, weight: &UnforeseenWeight) -> u64 {
        let requests = match self.place {
            Where::Turn => weight.turn,
            Where::Tools => weight.tools,
        };
        // A log that shows no loss is believed. Once there is one, rates are not those of a few requests alone: so many more count with
        // one loss more, and of an occasion what holds at its place is believed until it has shown more itself.
        if self.at_place.k == 0 {
            return 0;
        }
        let (k, n) = (u128::from(self.at_place.k) + 1, u128::from(self.at_place.n) + u128::from(requests.max(1)));
        let believed = u128::from(weight.occasion.max(1));
        let lost = u128::from(self.at_occasion.k) * n + believed * k;
        let seen = (u128::from(self.at_occasion.n) + believed) * n;
        (u128::from(at_stake) * lost / seen) as u64
    }
}

/// Losses so far.
#[derive(Default)]
pub struct LossesSoFar {
    places: BTreeMap<Where, Lost>,
    occasions: BTreeMap<(Where, Occasion), Lost>,
}

impl LossesSoFar {
    /// What was seen so far.
    pub fn before(&self, place: Where, occasion: Occasion) -> Unforeseen {
        let at_place = self.places.get(&place).copied().unwrap_or_default();
        let at_occasion = self.occasions.get(&(place, occasion)).copied().unwrap_or_default();
        Unforeseen { place, occasion, at_place, at_occasion }
    }

    /// Whether it was lost.
    pub fn add(&mut self, at: &Unforeseen, lost: bool) {
        self.places.entry(at.place).or_default().count(lost);
        self.occasions.entry((at.place, at.occasion)).or_default().count(lost);
    }
}
