//! One session in time: how its contexts grew, where they were compacted and where the cache was missed, and what was most
//! expensive.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::base::names::Sym;
use crate::cost::attribution::GroupCost;
use crate::cost::bill::Bill;
use crate::cost::groups::{CostKey, Label, Things};
use crate::cost::shares::{self, BillShare, Thing};
use crate::logs::timeline::requests::{BlockKind, Marks};
use crate::logs::trace::{Millis, NO_TIME, Place};
use crate::whatif::prompt_cache::causes::{self, Loss};
use crate::whatif::prompt_cache::outcome::Cause;
use crate::whatif::sim::cost::{Cost, Spent, Total};
use crate::whatif::sim::simulator::Simulator;

/// One request of the session.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SessionRequest {
    /// Number among the requests of its thread, from 1.
    pub number: u64,
    /// Thread: 0 is the main one, others are subagents.
    pub thread: u64,
    /// When it began.
    pub ts: Millis,
    pub model: String,
    /// Tokens of its context.
    pub context: u64,
    /// All its tokens.
    pub spent: Spent,
    pub cost: Cost,
    /// Whether the context was compacted before it.
    pub compacted: bool,
    /// Whether a person wrote before it.
    pub human: bool,
    /// Why the cache was missed, if it was.
    pub miss: Option<Cause>,
    /// Whether the cache had expired at that miss as well, whatever its first cause.
    pub expired: bool,
    /// What the miss cost beyond reading the same tokens from the cache.
    pub miss_cost: Cost,
}

/// Something that was in the contexts of the session.
#[derive(Clone, PartialEq, Debug)]
pub struct CarriedThing {
    /// Tool, or what it is.
    pub label: Label,
    /// "call", "result" or nothing.
    pub half: &'static str,
    pub tokens: u64,
    /// When it came in.
    pub ts: Millis,
    /// Requests that it was sent with, the first one included.
    pub sent: u64,
    pub entry: GroupCost,
}

/// A session.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SessionCost {
    /// Requests of all its threads, the main one first.
    pub moments: Vec<SessionRequest>,
    /// When its first request was sent and its last one was answered; none without times.
    pub span: Option<(Millis, Millis)>,
    /// What its contexts were made of, the most expensive to carry first.
    pub carried: Vec<CarriedThing>,
    pub total: Total,
    /// What was paid for again: it had been in the cache and was not read from it.
    pub again: Cost,
    pub subagents: u64,
    /// Compactions in all threads, those included that no request followed.
    pub compactions: u64,
}

/// Looks at one session of a timeline, by its index.
pub fn of(bill: &Bill<'_>, simulator: &Simulator<'_>, session: u32) -> SessionCost {
    let timeline = bill.timeline;
    let chains: Vec<u32> =
        (0..timeline.chains.len() as u32).filter(|&chain| timeline.session_of_chain(chain) == session).collect();
    let mut moments: Vec<SessionRequest> = Vec::new();
    let mut things: BTreeMap<Thing, OpenGroup> = BTreeMap::new();
    let mut again = Cost::default();
    let misses = misses(simulator);
    // Without a log of the main thread the first one is a subagent.
    let first = u64::from(chains.first().is_some_and(|&chain| timeline.chain(chain).place != Place::Main));
    for (thread, &chain) in (first..).zip(&chains) {
        moments.extend(of_chain(bill, chain, thread, &misses));
        shares::of_chain(bill, chain, |_| (), &mut |share| {
            let held = things.entry(share.thing).or_insert_with(|| OpenGroup::new(share));
            held.add(share);
            if share.when == shares::When::Again {
                again += share.cost;
            }
        });
    }
    let total = moments.iter().map(|moment| Total { requests: 1, spent: moment.spent, cost: moment.cost }).sum();
    let is_agent = |chain: &&u32| timeline.chains[**chain as usize].place != Place::Main;
    let subagents = chains.iter().filter(is_agent).count() as u64;
    let compactions = timeline.boundaries.iter().filter(|boundary| chains.binary_search(&boundary.chain).is_ok());
    let compactions = compactions.count() as u64;
    let requests = chains.iter().flat_map(|&chain| timeline.requests_of(chain));
    let requests = requests.filter(|request| request.counts() && request.is_billed());
    let spans = requests.filter(|request| request.start != NO_TIME).map(|request| (request.start, request.end));
    let span = spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
    SessionCost { moments, span, carried: carried(bill, things), total, again, subagents, compactions }
}

/// The breaks of the cache, by request.
pub fn misses(simulator: &Simulator<'_>) -> BTreeMap<u32, Loss> {
    causes::losses(simulator).into_iter().map(|loss| (loss.request, loss)).collect()
}

/// The requests of a chain that count and were billed.
pub fn of_chain<'b>(
    bill: &'b Bill<'_>,
    chain: u32,
    thread: u64,
    misses: &'b BTreeMap<u32, Loss>,
) -> impl Iterator<Item = SessionRequest> + 'b {
    let name = |model: Sym| bill.timeline.names.text(model).to_owned();
    let requests = bill.timeline.chains[chain as usize].requests.clone();
    let billed = requests.map(|index| (index, &bill.timeline.requests[index as usize]));
    let billed = billed.filter(|(_, request)| request.counts());
    let billed = billed.map(|(index, request)| (index, request, bill.charge(request)));
    billed.filter(|(.., charge)| charge.spent != Spent::default()).enumerate().map(
        move |(at, (index, request, charge))| {
            let miss = misses.get(&index);
            SessionRequest {
                number: at as u64 + 1,
                thread,
                ts: request.start,
                model: name(request.model),
                context: charge.spent.prompt(),
                spent: charge.spent,
                cost: charge.cost,
                compacted: request.marks.has(Marks::COMPACTION),
                human: bill.timeline.was_prompted(request),
                miss: miss.map(|miss| miss.cause),
                expired: miss.is_some_and(|miss| miss.expired),
                miss_cost: miss.map_or_else(Cost::default, |miss| miss.sum.cost_lost),
            }
        },
    )
}

/// A thing while its shares come in.
struct OpenGroup {
    first: u32,
    sent: u64,
    tokens: u64,
    entry: GroupCost,
}

impl OpenGroup {
    fn new(share: &BillShare) -> Self {
        Self { first: share.request, sent: 0, tokens: 0, entry: GroupCost::default() }
    }

    fn add(&mut self, share: &BillShare) {
        self.entry.add(share);
        let prompt = share.spent.prompt();
        if prompt == 0 {
            return;
        }
        self.sent += share.requests;
        // A request may have read one part of it and written the other.
        self.tokens = prompt.checked_div(share.requests).unwrap_or(self.tokens + prompt);
    }
}

fn carried(bill: &Bill<'_>, things: BTreeMap<Thing, OpenGroup>) -> Vec<CarriedThing> {
    let groups = Things::new(bill.timeline, &[CostKey::Tool]);
    let half = |thing: Thing| match thing {
        Thing::Block(block) => match bill.timeline.blocks[block as usize].kind {
            BlockKind::ToolUsage => "call",
            BlockKind::ToolResult => "result",
            _ => "",
        },
        _ => "",
    };
    let mut all: Vec<(Thing, CarriedThing)> = things
        .into_iter()
        .map(|(thing, held)| {
            let label =
                groups.labels(groups.group(thing)).first().cloned().unwrap_or_else(|| Label::Word(String::new()));
            let ts = bill.timeline.request(held.first).start;
            (
                thing,
                CarriedThing { label, half: half(thing), tokens: held.tokens, ts, sent: held.sent, entry: held.entry },
            )
        })
        .collect();
    let weight = |carried: &CarriedThing| {
        let cost = carried.entry.carried + carried.entry.again;
        (cost.nano_usd, cost.units)
    };
    all.sort_by(|(a, one), (b, other)| weight(other).cmp(&weight(one)).then(a.cmp(b)));
    all.into_iter().map(|(_, carried)| carried).collect()
}
