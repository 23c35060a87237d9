//! How often the cache is missed for no reason that the log has, and what makes it likelier: learned request by request, in the order of
//! the clock. Single misses cannot be foretold this way (no occasion brings one in more than half of the cases, save rare ones); what
//! they cost in sum can.
//!
//! Estimates what was sent and is in no log: forks (policies.md F5), summarisers (F9), and the true length of answers (F3). They
//! stand beside the bill and are never added to it.
//!
//! The table of what is in no log.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::base::names::Sym;
use crate::logs::timeline::requests::{BlockKind, Marks, NONE, Request, Timeline};
use crate::logs::trace::Millis;
use crate::report::numbers::known;
use crate::report::table::{Rows, Table};
use crate::whatif::prompt_cache::outcome::Count;
use crate::whatif::prompt_cache::params::{Class, UnforeseenWeight};
use crate::whatif::sim::cache_sim::written;
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::simulate::Ground;
use crate::whatif::sim::sizes::surplus;

/// Where a prefix can be lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Where {
    /// Where something but results of tools came in.
    Turn,
    /// Between two requests of a turn.
    Tools,
}

impl Where {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// What else stood before the request: the first that fits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// The effort was changed.
    EffortChanged,
    /// The client told the model of other tools or servers.
    ToolsArrived,
    /// A person put in an image or a document.
    Media,
    /// More than five minutes had passed.
    Idle,
    /// Nothing of these.
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
            () if media() => Self::Media,
            () if idle > Class::FiveMinutes.millis() => Self::Idle,
            () => Self::None,
        }
    }

    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::EffortChanged => "effort changed",
            Self::ToolsArrived => "other tools",
            Self::Media => "images",
            Self::Idle => "idle for over five minutes",
            Self::None => "none of these",
        }
    }
}

/// What was seen before a request at which a prefix could be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unforeseen {
    /// Where this is.
    pub place: Where,
    /// What else stood before it.
    pub occasion: Occasion,
    /// Requests at such a place before this one, and those of them that had lost it.
    pub at_place: Count,
    /// Of these, after the same occasion.
    pub at_occasion: Count,
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
        let (k, n) = (u128::from(self.at_place.k + 1), u128::from(self.at_place.n + requests.max(1)));
        let believed = u128::from(weight.occasion.max(1));
        let lost = u128::from(self.at_occasion.k) * n + believed * k;
        let seen = (u128::from(self.at_occasion.n) + believed) * n;
        (u128::from(at_stake) * lost / seen) as u64
    }
}

/// Losses so far.
#[derive(Default)]
pub struct Losses {
    places: BTreeMap<Where, Count>,
    occasions: BTreeMap<(Where, Occasion), Count>,
}

impl Losses {
    /// What was seen so far.
    pub fn before(&self, place: Where, occasion: Occasion) -> Unforeseen {
        let at_place = self.places.get(&place).copied().unwrap_or_default();
        let at_occasion = self.occasions.get(&(place, occasion)).copied().unwrap_or_default();
        Unforeseen { place, occasion, at_place, at_occasion }
    }

    /// Whether it was lost.
    pub fn add(&mut self, at: &Unforeseen, lost: bool) {
        self.places.entry(at.place).or_default().add(lost);
        self.occasions.entry((at.place, at.occasion)).or_default().add(lost);
    }
}

/// Estimates of what the log does not have (policies.md 8). None of it is in any bill here.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Unlogged {
    /// Requests that shared a prefix and cached an answer before a person wrote, where the next bill shows it.
    pub forks: UnloggedCalls,
    /// Calls that wrote the summaries of compactions.
    pub summaries: UnloggedCalls,
    /// What answers were longer than their usage says, by the sizes of their blocks; no calls of their own.
    pub answers: UnloggedCalls,
}

/// Estimated calls.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct UnloggedCalls {
    /// How many.
    pub calls: u64,
    /// Their tokens.
    pub spent: Spent,
    /// What they would cost.
    pub cost: Cost,
}

/// Estimates over all requests.
pub fn unlogged(ground: &Ground<'_>) -> Unlogged {
    Unlogged { forks: forks(ground), summaries: summaries(ground), answers: answers(ground) }
}

fn add(ground: &Ground<'_>, sum: &mut UnloggedCalls, calls: u64, (model, at): (Sym, Millis), spent: Spent) {
    sum.calls += calls;
    sum.spent += spent;
    sum.cost += ground.tariff.cost(model, at, &spent);
}

/// A fork read what was cached and wrote the answer, as far as the request after it read more than had been written.
fn forks(ground: &Ground<'_>) -> UnloggedCalls {
    let mut sum = UnloggedCalls::default();
    let requests = &ground.timeline.requests;
    for (pair, prior) in requests.windows(2).zip(ground.priors.iter().skip(1)) {
        let [before, request] = pair else { continue };
        let Some(answer) = surplus(before, request).filter(|_| before.chain == request.chain) else { continue };
        let read = before.usage.cache_read + before.usage.cache_creation;
        let spent = Spent { read, ..written(answer, prior.class) };
        add(ground, &mut sum, 1, (request.model, request.start), spent);
    }
    sum
}

/// A summariser read the context before the compaction and answered with the summary.
fn summaries(ground: &Ground<'_>) -> UnloggedCalls {
    let mut sum = UnloggedCalls::default();
    for boundary in &ground.timeline.boundaries {
        let chain = &ground.timeline.chains[boundary.chain as usize].requests;
        let earlier = chain.start..boundary.request.min(chain.end);
        let mut earlier = earlier.rev().map(|at| &ground.timeline.requests[at as usize]);
        let Some(before) = earlier.find(|before| before.context() > 0) else { continue };
        let summary = if boundary.summary == NONE { 0 } else { ground.sizes.tokens[boundary.summary as usize] };
        let spent = Spent { read: before.context(), output: summary.into(), ..Spent::default() };
        add(ground, &mut sum, 1, (before.model, before.end), spent);
    }
    sum
}

/// What answers are longer than their usage says; nothing where that counts anyway.
fn answers(ground: &Ground<'_>) -> UnloggedCalls {
    let mut sum = UnloggedCalls::default();
    if ground.counts_answers() {
        return sum;
    }
    let size = |request: &Request| -> u64 {
        request.outputs.clone().map(|block| u64::from(ground.sizes.tokens[block as usize])).sum()
    };
    for request in ground.timeline.requests.iter().filter(|request| request.context() > 0) {
        let output = size(request).saturating_sub(request.usage.output);
        add(ground, &mut sum, 0, (request.model, request.start), Spent { output, ..Spent::default() });
    }
    sum
}

/// Its title.
pub const TITLE: &str = "not in the log, estimated, and in no figure above";

/// Calls, tokens and cost by kind; nothing where there is nothing.
pub fn table(found: &Unlogged) -> Table {
    let kinds = [
        ("forks that cached an answer", found.forks),
        ("summarisers", found.summaries),
        ("answers, beyond their usage", found.answers),
    ];
    Rows::of(kinds.into_iter().filter(|(_, sum)| sum.cost.units > 0))
        .text("what", |(kind, _)| (*kind).to_owned())
        .count("calls", |(_, sum)| sum.calls)
        .count("read", |(_, sum)| sum.spent.read)
        .count("written", |(_, sum)| sum.spent.write())
        .count("answered", |(_, sum)| sum.spent.output)
        .count("input-equivalent", |(_, sum)| sum.cost.iet().round() as u64)
        .number("dollars", |(_, sum)| known(sum.cost.usd(), |usd| format!("{usd:.2}")))
        .table()
}
