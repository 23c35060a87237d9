//! The bill of one request, shared out over what its context and its output are made of. A prompt is billed from the front:
//! read from the cache, written for an hour, written for five minutes, not cached. Every item takes the tokens that stand at
//! its place, so the parts add up to the bill to the token and to the nano-dollar.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use crate::cost::bill::{Bill, Charge};
use crate::cost::places::{BilledBefore, ContextPlaces};
use crate::logs::timeline::requests::{BlockKind, NONE, Request};
use crate::whatif::sim::cost::{Cost, Spent, Total};
use crate::whatif::sim::laid_out;
use crate::whatif::sim::sizes::apportioned;
use crate::whatif::sim::view::{Item, ItemKey};

/// A thing that takes part in a bill.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Thing {
    /// What stands before all messages: the system prompt and the definitions of tools.
    Prefix,
    /// What came into a context with this request beside its blocks, and no log has: reminders, attachments, hidden text.
    Unlogged(u32),
    /// Tokens of an answer of which the log has no block.
    Answer,
    /// A block of [`crate::logs::timeline::requests::Timeline::blocks`].
    Block(u32),
}

/// Why a thing is paid for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum When {
    /// It came in, or was written by the model.
    First,
    /// It was sent again.
    Carried,
    /// It had been in the cache, and was written or billed in full once more: the cache had lost it.
    Again,
}

/// Part of the bill of a request, or of several that are told together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BillShare {
    /// Index into [`crate::logs::timeline::requests::Timeline::requests`]; the last one of those that are told together.
    pub request: u32,
    /// How many requests it was part of that no other share of the same thing tells.
    pub requests: u64,
    pub thing: Thing,
    pub when: When,
    /// Tokens.
    pub spent: Spent,
    pub cost: Cost,
}

/// Shares out the bills of a chain's requests, in order. Requests of one group, also with those of others between them, are
/// told together where they bill a thing alike, so that what is carried along takes time once and not with every request.
pub fn of_chain<G: Eq + Hash>(
    bill: &Bill<'_>,
    chain: u32,
    group: impl Fn(u32) -> G,
    each: &mut impl FnMut(&BillShare),
) {
    let counts = |request: u32| bill.timeline.request(request).counts();
    let mut each = |share: &BillShare| {
        if counts(share.request) {
            each(share);
        }
    };
    BlockWalk::new(bill, chain).all(|request| (counts(request), group(request)), &mut each);
}

struct BlockWalk<'b, 'a> {
    bill: &'b Bill<'a>,
    chain: u32,
    /// The blocks of the chain, which stand together.
    blocks: Range<u32>,
    /// What is known of its blocks, and of what each of its requests brought beside them.
    of_blocks: Vec<BilledBefore>,
    of_unlogged: Vec<BilledBefore>,
    of_prefix: BilledBefore,
    items: Vec<Item>,
    /// The same context, with what is owed on it.
    places: ContextPlaces,
}

impl<'b, 'a> BlockWalk<'b, 'a> {
    fn new(bill: &'b Bill<'a>, chain: u32) -> Self {
        let requests = bill.timeline.requests_of(chain);
        let start = requests.first().map_or(0, |request| request.inputs.start);
        let end = requests.last().map_or(start, |request| request.outputs.end);
        let segments = &bill.timeline.chain(chain).segments;
        let forked = bill.timeline.segments.get(segments.start as usize).is_some_and(|first| first.after != NONE);
        Self {
            bill,
            chain,
            blocks: start..end,
            of_blocks: vec![BilledBefore::default(); (end - start) as usize],
            of_unlogged: vec![BilledBefore::default(); requests.len()],
            of_prefix: if forked { BilledBefore::LENT } else { BilledBefore::default() },
            items: Vec::new(),
            places: ContextPlaces::default(),
        }
    }

    fn all<G: Eq + Hash>(mut self, group: impl Fn(u32) -> G, each: &mut impl FnMut(&BillShare)) {
        let Bill { timeline, sizes, .. } = *self.bill;
        let requests = timeline.chain(self.chain).requests.clone();
        let mut open: HashMap<G, usize> = HashMap::new();
        for index in requests {
            let next = open.len();
            self.places.turn_to(*open.entry(group(index)).or_insert(next));
            let kept = laid_out::step(timeline, sizes, index, &mut self.items);
            self.places.settle(kept, each);
            self.lay_out(kept);
            let request = timeline.request(index);
            let charge = self.bill.charge(request);
            if charge.spent.prompt() > 0 {
                self.prompt(index, &charge, each);
            }
            if charge.spent.output > 0 {
                self.answer(index, request, &charge, each);
            }
        }
        self.places.settle(0, each);
    }

    /// Lays out anew what stands behind the places that stayed.
    fn lay_out(&mut self, kept: usize) {
        self.places.truncate(kept);
        for at in kept..self.items.len() {
            let Item { key, tokens, .. } = self.items[at];
            let thing = match key {
                ItemKey::Block(block) => Thing::Block(block),
                // No stage has made anything of what the log says was sent.
                ItemKey::Residual(brought) | ItemKey::Made(brought) => Thing::Unlogged(brought),
            };
            let fate = self.known(thing).fate(tokens);
            self.places.push(thing, tokens, fate);
        }
    }

    fn known(&mut self, thing: Thing) -> BilledBefore {
        self.noted(thing).map_or(BilledBefore::LENT, |known| *known)
    }

    /// Where that is noted; nowhere of what belongs to the chain that this one was forked off.
    fn noted(&mut self, thing: Thing) -> Option<&mut BilledBefore> {
        let requests = &self.bill.timeline.chain(self.chain).requests;
        match thing {
            Thing::Prefix => Some(&mut self.of_prefix),
            Thing::Block(block) if self.blocks.contains(&block) => {
                self.of_blocks.get_mut((block - self.blocks.start) as usize)
            }
            Thing::Unlogged(brought) if requests.contains(&brought) => {
                self.of_unlogged.get_mut((brought - requests.start) as usize)
            }
            _ => None,
        }
    }

    /// Shares out a prompt by place.
    fn prompt(&mut self, request: u32, charge: &Charge, each: &mut impl FnMut(&BillShare)) {
        let prefix = self.bill.sizes.prefix[self.chain as usize];
        let mut till = Till { request, charge, rest: Spent { output: 0, ..charge.spent }, each };
        let billed = till.rest.prompt();
        if prefix + self.places.tokens() == billed {
            self.pay(Thing::Prefix, prefix, &mut till);
            self.by_runs(&mut till);
        } else {
            // Sizes that were not measured need not add up to the bill; their proportions are used.
            self.places.settle(0, &mut *till.each);
            let sizes = self.places.iter().map(|(_, tokens)| tokens.into());
            let weights: Vec<u64> = std::iter::once(prefix).chain(sizes).collect();
            let parts = apportioned(billed, &weights);
            self.pay(Thing::Prefix, parts[0], &mut till);
            self.places.take_runs();
            for (place, &tokens) in parts[1..].iter().enumerate() {
                self.by_itself(place, tokens, &mut till);
            }
        }
        // Nothing has a size: it came without a block.
        let rest = till.rest.prompt();
        till.pay(Thing::Unlogged(request), rest, BilledBefore::default());
    }

    /// Shares out a prompt whose sizes add up to its bill, many places at a time.
    fn by_runs<E: FnMut(&BillShare)>(&mut self, till: &mut Till<'_, E>) {
        let mut place = 0;
        for run in self.places.take_runs() {
            while place < run.end {
                let alike = till.next().and_then(|next| self.places.alike(place, run, next));
                let Some(alike) = alike else {
                    let (_, tokens) = self.places.at(place);
                    self.by_itself(place, tokens.into(), till);
                    place += 1;
                    continue;
                };
                take(&mut till.rest, alike.tokens);
                let spent = alike.kind;
                self.places.owe(
                    till.request,
                    place..alike.end,
                    alike.when,
                    Total { requests: 1, spent, cost: till.charge.part(&spent) },
                );
                self.places.keep(alike.end, run.fate);
                place = alike.end;
            }
        }
    }

    /// A place pays so many tokens for itself.
    fn by_itself<E: FnMut(&BillShare)>(&mut self, place: usize, tokens: u64, till: &mut Till<'_, E>) {
        let (thing, size) = self.places.at(place);
        self.pay(thing, tokens, till);
        let fate = self.known(thing).fate(size);
        self.places.keep(place + 1, fate);
    }

    fn pay<E: FnMut(&BillShare)>(&mut self, thing: Thing, tokens: u64, till: &mut Till<'_, E>) {
        let before = self.known(thing);
        // What takes no tokens of this bill comes in with a later one.
        if let (Some(cached), Some(known)) = (till.pay(thing, tokens, before), self.noted(thing)) {
            *known = BilledBefore { paid: true, cached: before.cached.max(cached) };
        }
    }

    /// Shares out an answer over its blocks by their sizes. What usage says beyond them was thought: the log mostly leaves
    /// the text of thinking out.
    fn answer(&mut self, index: u32, request: &Request, charge: &Charge, each: &mut impl FnMut(&BillShare)) {
        let Bill { timeline, sizes, .. } = *self.bill;
        let output = charge.spent.output;
        let mut weights: Vec<u64> = request.outputs.clone().map(|block| sizes.tokens[block as usize].into()).collect();
        let thinking = |&at: &usize| timeline.blocks[request.outputs.start as usize + at].kind == BlockKind::Thinking;
        let thoughts: Vec<usize> = (0..weights.len()).filter(thinking).collect();
        let held: u64 = weights.iter().sum();
        let hidden = output.saturating_sub(held);
        let shares = thoughts.len() as u64;
        for (at, &thought) in thoughts.iter().enumerate() {
            weights[thought] += hidden / shares + u64::from((at as u64) < hidden % shares);
        }
        let mut parts = apportioned(output, &weights);
        let given: u64 = parts.iter().sum();
        let mut pay = |thing: Thing, output: u64| {
            let spent = Spent { output, ..Spent::default() };
            let cost = charge.part(&spent);
            each(&BillShare { request: index, requests: 1, thing, when: When::First, spent, cost });
        };
        // Blocks without any size: the first of them stands for all.
        if let Some(first) = parts.first_mut() {
            *first += output - given;
        } else {
            pay(Thing::Answer, output);
        }
        for (block, tokens) in request.outputs.clone().zip(parts) {
            if tokens > 0 {
                pay(Thing::Block(block), tokens);
                if let Some(known) = self.noted(Thing::Block(block)) {
                    known.paid = true;
                }
            }
        }
    }
}

/// The prompt of one request while it is paid for.
struct Till<'c, E> {
    request: u32,
    charge: &'c Charge,
    /// Tokens that nobody has taken yet.
    rest: Spent,
    each: &'c mut E,
}

impl<E: FnMut(&BillShare)> Till<'_, E> {
    /// How the next token is billed, and how many tokens are billed so from there on.
    fn next(&self) -> Option<(Spent, u64)> {
        let none = Spent::default();
        let Spent { read, write_1h, write_5m, uncached, .. } = self.rest;
        let kinds = [
            (Spent { read: 1, ..none }, read),
            (Spent { write_1h: 1, ..none }, write_1h),
            (Spent { write_5m: 1, ..none }, write_5m),
            (Spent { uncached: 1, ..none }, uncached),
        ];
        kinds.into_iter().find(|(_, left)| *left > 0)
    }

    /// The next tokens are this thing. Says how many of them are in the cache now; none if no token was left for it.
    fn pay(&mut self, thing: Thing, tokens: u64, known: BilledBefore) -> Option<u64> {
        let spent = take(&mut self.rest, tokens);
        for (part, (when, spent)) in split(spent, known).enumerate() {
            let (request, requests) = (self.request, u64::from(part == 0));
            (self.each)(&BillShare { request, requests, thing, when, spent, cost: self.charge.part(&spent) });
        }
        (spent != Spent::default()).then(|| spent.read + spent.write())
    }
}

/// Takes tokens from the front of what is left of a prompt.
fn take(rest: &mut Spent, tokens: u64) -> Spent {
    let mut left = tokens;
    let mut next = |tokens: &mut u64| {
        let taken = left.min(*tokens);
        left -= taken;
        *tokens -= taken;
        taken
    };
    let (read, write_1h) = (next(&mut rest.read), next(&mut rest.write_1h));
    let (write_5m, uncached) = (next(&mut rest.write_5m), next(&mut rest.uncached));
    Spent { read, write_5m, write_1h, uncached, output: 0 }
}

/// Tokens of a thing by why they are paid for. What was billed in full and comes into the cache only now was not lost.
fn split(spent: Spent, BilledBefore { paid, cached }: BilledBefore) -> impl Iterator<Item = (When, Spent)> {
    let mut rest = Spent { read: 0, ..spent };
    let again = take(&mut rest, cached.saturating_sub(spent.read));
    let parts = match paid {
        false => [(When::First, spent), (When::First, Spent::default())],
        true => [(When::Carried, Spent { read: spent.read, ..rest }), (When::Again, again)],
    };
    parts.into_iter().filter(|(_, spent)| *spent != Spent::default())
}
