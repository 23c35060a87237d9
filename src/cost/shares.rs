//! The bill of one request, shared out over what its context and its answer are made of.
//!
//! A prompt is billed from the front: what is read from the cache comes first, then what is written for an hour, then for
//! five minutes, then what is not cached. Every item of a context takes the tokens that stand at its place, so the parts
//! add up to the bill to the token, and to the nano-dollar.

use std::ops::Range;

use crate::cost::bill::{Bill, Charge};
use crate::logs::timeline::requests::{BlockKind, NONE, Request};
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::laid_out;
use crate::whatif::sim::sizes::apportioned;
use crate::whatif::sim::view::{Item, Key};

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

/// Part of the bill of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Index into [`crate::logs::timeline::requests::Timeline::requests`].
    pub request: u32,
    /// What is paid for.
    pub thing: Thing,
    /// Why.
    pub when: When,
    /// Tokens.
    pub spent: Spent,
    /// What they cost.
    pub cost: Cost,
}

/// Shares out the bills of a chain's requests, in order.
pub fn of_chain(bill: &Bill<'_>, chain: u32, each: &mut impl FnMut(&Share)) {
    Walk::new(bill, chain).all(each);
}

struct Walk<'b, 'a> {
    bill: &'b Bill<'a>,
    chain: u32,
    /// The blocks of the chain, which stand together.
    blocks: Range<u32>,
    /// By such a block: whether its first cost has been paid, and how many tokens of it have been in the cache.
    paid: Vec<bool>,
    cached: Vec<u64>,
    /// The same of the prefix.
    prefix: (bool, u64),
    items: Vec<Item>,
}

impl<'b, 'a> Walk<'b, 'a> {
    fn new(bill: &'b Bill<'a>, chain: u32) -> Self {
        let requests = bill.timeline.requests_of(chain);
        let start = requests.first().map_or(0, |request| request.inputs.start);
        let end = requests.last().map_or(start, |request| request.outputs.end);
        let segments = &bill.timeline.chains[chain as usize].segments;
        let forked = bill.timeline.segments.get(segments.start as usize).is_some_and(|first| first.after != NONE);
        let count = (end - start) as usize;
        Self {
            bill,
            chain,
            blocks: start..end,
            paid: vec![false; count],
            cached: vec![0; count],
            prefix: (forked, if forked { ALL } else { 0 }),
            items: Vec::new(),
        }
    }

    fn all(mut self, each: &mut impl FnMut(&Share)) {
        let Bill { timeline, sizes, .. } = *self.bill;
        for index in timeline.chains[self.chain as usize].requests.clone() {
            laid_out::step(timeline, sizes, index, &mut self.items);
            let request = &timeline.requests[index as usize];
            let charge = self.bill.charge(request);
            if charge.spent.prompt() > 0 {
                self.prompt(index, &charge, each);
            }
            if charge.spent.output > 0 {
                self.answer(index, request, &charge, each);
            }
        }
    }

    /// Shares out a prompt by place.
    fn prompt(&mut self, request: u32, charge: &Charge, each: &mut impl FnMut(&Share)) {
        let prefix = self.bill.sizes.prefix[self.chain as usize];
        let held = prefix + self.items.iter().map(|item| u64::from(item.tokens)).sum::<u64>();
        let mut till = Till { request, charge, rest: Spent { output: 0, ..charge.spent }, each };
        // Sizes that were not measured need not add up to the bill; their proportions are used.
        let scaled = (held != till.rest.prompt()).then(|| {
            let items = self.items.iter().map(|item| item.tokens.into());
            let weights: Vec<u64> = std::iter::once(prefix).chain(items).collect();
            apportioned(till.rest.prompt(), &weights)
        });
        let size = |place: usize, tokens: u64| scaled.as_ref().map_or(tokens, |scaled| scaled[place]);
        if let Some(cached) = till.pay(Thing::Prefix, size(0, prefix), self.prefix) {
            self.prefix = (true, self.prefix.1.max(cached));
        }
        for (place, item) in self.items.iter().enumerate() {
            let tokens = size(place + 1, item.tokens.into());
            match item.key {
                Key::Residual(brought) => till.pay(Thing::Unlogged(brought), tokens, (brought != request, ALL)),
                Key::Block(block) if self.blocks.contains(&block) => {
                    let own = (block - self.blocks.start) as usize;
                    // What takes no tokens of this bill comes in with a later one.
                    if let Some(cached) = till.pay(Thing::Block(block), tokens, (self.paid[own], self.cached[own])) {
                        (self.paid[own], self.cached[own]) = (true, self.cached[own].max(cached));
                    }
                    continue;
                }
                // Of the chain that this one was forked off.
                Key::Block(block) => till.pay(Thing::Block(block), tokens, (true, ALL)),
                Key::Made(_) => till.pay(Thing::Unlogged(request), tokens, (true, ALL)),
            };
        }
        // Nothing has a size: it came without a block.
        let rest = till.rest.prompt();
        till.pay(Thing::Unlogged(request), rest, (false, 0));
    }

    /// Shares out an answer over its blocks by their sizes. What usage says beyond them was thought: the log mostly leaves
    /// the text of thinking out.
    fn answer(&mut self, index: u32, request: &Request, charge: &Charge, each: &mut impl FnMut(&Share)) {
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
            each(&Share { request: index, thing, when: When::First, spent, cost });
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
                self.paid[(block - self.blocks.start) as usize] = true;
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

impl<E: FnMut(&Share)> Till<'_, E> {
    /// The next tokens are this thing, of which is known whether its first cost was paid before, and how many of its tokens
    /// have been in the cache. Says how many are now; none if no token was left for it.
    fn pay(&mut self, thing: Thing, tokens: u64, known: (bool, u64)) -> Option<u64> {
        let spent = take(&mut self.rest, tokens);
        for (when, spent) in split(spent, known) {
            (self.each)(&Share { request: self.request, thing, when, spent, cost: self.charge.part(&spent) });
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

/// No token of it is known not to have been in the cache.
const ALL: u64 = u64::MAX;

/// Tokens of a thing by why they are paid for; `paid` and `cached` say what was known of it before. What was billed in full
/// and comes into the cache only now was not lost.
fn split(spent: Spent, (paid, cached): (bool, u64)) -> impl Iterator<Item = (When, Spent)> {
    let mut rest = Spent { read: 0, ..spent };
    let again = take(&mut rest, cached.saturating_sub(spent.read));
    let parts = match paid {
        false => [(When::First, spent), (When::First, Spent::default())],
        true => [(When::Carried, Spent { read: spent.read, ..rest }), (When::Again, again)],
    };
    parts.into_iter().filter(|(_, spent)| *spent != Spent::default())
}
