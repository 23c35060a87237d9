//! Sends the requests of the log again: lays out each context (the static prefix and then, request by request of the segment,
//! what the model wrote, the residual, what came in), lets the stages change it, sees what of it is still cached, and prices
//! it. Chains are independent of each other: what they share across sessions is looked up in times of the log, never in
//! results.

use std::ops::Range;

use crate::logs::timeline::requests::{Marks, NONE, Request, SegmentCause};
use crate::logs::trace::{Millis, Place};
use crate::whatif::prompt_cache::params::{CacheRules, HiddenForks};
use crate::whatif::sim::breakage::BreakWatch;
use crate::whatif::sim::cache_sim::{CacheRequest, PrefixCache, written};
use crate::whatif::sim::cost::Spent;
use crate::whatif::sim::priors::{Prior, WarmPrefix};
use crate::whatif::sim::run::{Extra, Priced, SimulatedRun};
use crate::whatif::sim::shared_list::SharedList;
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::view::{
    ContextView, ExtraCall, ForkPoints, Given, Item, ItemKey, Moment, Prefix, Stage, StageOutput, fork_point, tokens,
};
use crate::whatif::sim::{laid_out, sizes};

/// The request before in the chain.
#[derive(Clone, Copy)]
struct Last {
    request: u32,
    tokens: u64,
    /// When it was over, by the clock of the chain.
    end: Millis,
}

/// A request as it was sent that a chain is forked off, and what it left in the cache.
struct ForkBase {
    view: ContextView,
    /// Lengths of the prefixes of its model.
    lengths: Vec<u64>,
    cached: u64,
}

/// The same until a chain that is forked off there begins: its lists are in what shares them.
#[derive(Clone)]
struct KeptBase {
    prefix: Prefix,
    items: SharedList<Item>,
    /// Whether it was sent as the log has it: then its items are laid out where a chain needs them.
    is_plain: bool,
    lengths: SharedList<u64>,
    cached: u64,
}

/// One run on its way through the chains.
pub(super) struct Driver<'a, 'r, 'b> {
    simulator: &'r Simulator<'a>,
    cache: PrefixCache<'r>,
    stages: &'r mut [Box<dyn Stage>],
    /// What looks for breaks in contexts as they are sent.
    watch: Option<&'r mut BreakWatch<'b>>,
    /// The context as the log has it, as each stage leaves it, and as the last one was sent.
    logged: ContextView,
    /// The request behind that of which this is the context: it can be laid out from there.
    next: u32,
    views: Vec<ContextView>,
    before: ContextView,
    /// How many leading items of the log's context stand since the last request, how many the last context sent had, and how
    /// many of those are sent again.
    kept: usize,
    had: usize,
    equal: usize,
    last: Option<Last>,
    /// What the chain was forked off, until its first request is sent.
    base: Option<ForkBase>,
    forks: ForkPoints<KeptBase>,
    /// Whether the contexts of the chain go out as the log has them, so that none has to be copied and compared.
    is_plain: bool,
    output: StageOutput,
    run: SimulatedRun,
}

impl<'a, 'r, 'b> Driver<'a, 'r, 'b> {
    /// Nothing is sent yet.
    pub(super) fn new(
        simulator: &'r Simulator<'a>,
        stages: &'r mut [Box<dyn Stage>],
        watch: Option<&'r mut BreakWatch<'b>>,
    ) -> Self {
        Self {
            simulator,
            cache: PrefixCache::new(simulator.cache_rules),
            views: vec![ContextView::default(); stages.len()],
            stages,
            watch,
            logged: ContextView::default(),
            next: 0,
            before: ContextView::default(),
            kept: 0,
            had: 0,
            equal: 0,
            last: None,
            base: None,
            forks: ForkPoints::default(),
            is_plain: false,
            output: StageOutput::default(),
            run: SimulatedRun { rates: simulator.tariff.all.clone(), ..SimulatedRun::default() },
        }
    }

    /// Sends the requests of some chains, in their order.
    pub(super) fn send(mut self, chains: Range<u32>) -> SimulatedRun {
        let requests = |chain: u32| self.simulator.timeline.chain(chain).requests.len();
        self.run.requests.reserve_exact(chains.clone().map(requests).sum());
        let as_logged = self.simulator.as_logged.as_deref().filter(|_| !self.is_watched());
        let as_logged = as_logged.map(|run| (run, self.untouched()));
        for chain in chains {
            match &as_logged {
                Some((run, untouched)) if untouched[chain as usize] => self.copy(run, chain),
                _ => self.chain(chain),
            }
        }
        self.run
    }

    /// By chain: whether no stage may change it, nor what it was forked off or what was forked off that: then nobody has to know
    /// what stood.
    fn untouched(&self) -> Vec<bool> {
        let Simulator { timeline, ref largest, .. } = *self.simulator;
        let (mut roots, mut changed) = (Vec::new(), vec![false; timeline.chains.len()]);
        for chain in self.simulator.chains() {
            let base = timeline.forked_off(chain).map(|base| timeline.request(base).chain as usize);
            // A chain that is still to come leaves nothing to one before it.
            let root = base.and_then(|base| roots.get(base).copied()).unwrap_or(chain as usize);
            roots.push(root);
            let largest = largest[chain as usize];
            changed[root] |= self.stages.iter().any(|stage| stage.may_change(timeline, chain, largest));
        }
        roots.into_iter().map(|root| !changed[root]).collect()
    }

    /// Adds a chain as another run has it.
    fn copy(&mut self, from: &SimulatedRun, chain: u32) {
        let timeline = self.simulator.timeline;
        let requests = &timeline.chain(chain).requests;
        self.run.requests.extend_from_slice(within(&from.requests, requests, |one| one.request));
        self.run.extra.extend_from_slice(within(&from.extra, requests, |one| one.request));
        let has_none = |request: &&Request| request.context() == 0 && request.counts();
        self.run.without_usage += timeline.requests_of(chain).iter().filter(has_none).count() as u64;
    }

    /// Whether contexts are looked at that no stage changes.
    fn is_watched(&self) -> bool {
        self.stages.is_empty() && self.watch.is_some()
    }

    fn chain(&mut self, chain: u32) {
        let timeline = self.simulator.timeline;
        self.cache.begin();
        self.last = None;
        if self.next != timeline.chain(chain).requests.start {
            self.logged.items.clear();
        }
        self.before.items.clear();
        (self.kept, self.had) = (0, 0);
        self.logged.prefix = Prefix { tokens: self.simulator.sizes.prefix[chain as usize], edition: 0 };
        let largest = self.simulator.largest[chain as usize];
        self.is_plain =
            !self.is_watched() && !self.stages.iter().any(|stage| stage.may_change(timeline, chain, largest));
        self.base = self.take_base(chain);
        self.stages.iter_mut().for_each(|stage| stage.begin(timeline, chain));
        if let Some(watch) = self.watch.as_deref_mut() {
            watch.begin();
        }
        for index in timeline.chain(chain).requests.clone() {
            self.request(index);
        }
        // Nobody knows that a session will not go on; a subagent is over when it has answered.
        if timeline.chain(chain).place == Place::Main
            && let Some(last) = self.last
        {
            self.keep_alive(last.request, None);
        }
    }

    fn request(&mut self, index: u32) {
        let Simulator { timeline, sizes, .. } = *self.simulator;
        let request = timeline.request(index);
        let opens = laid_out::opens(timeline, index);
        self.kept = self.kept.min(laid_out::step(timeline, sizes, index, &mut self.logged.items));
        self.next = index + 1;
        if request.context() == 0 {
            self.run.without_usage += u64::from(request.counts());
            return;
        }
        let start = self.start(index);
        self.keep_alive(index, Some(start));
        self.equal = self.kept;
        if !self.is_plain {
            self.apply(index, opens);
        }
        self.price(index, opens, start);
        self.keep(index);
        (self.kept, self.had) = (self.logged.items.len(), self.view().items.len());
        if !self.is_plain {
            let sent = self.views.last().unwrap_or(&self.logged);
            self.before.follow(sent, self.equal, self.equal);
        }
    }

    /// Keeps what was sent, for chains that are forked off there.
    fn keep(&mut self, index: u32) {
        self.base = None;
        if self.stages.is_empty() {
            return;
        }
        let timeline = self.simulator.timeline;
        let sent = self.views.last().filter(|_| !self.is_plain);
        self.forks.keep(timeline, index, |last| KeptBase {
            prefix: sent.unwrap_or(&self.logged).prefix,
            items: SharedList::new(sent.map_or(&[], |sent| &sent.items), last.map(|last| &last.items)),
            is_plain: self.is_plain,
            lengths: SharedList::new(
                &self.cache.lengths(timeline.request(index).model),
                last.map(|last| &last.lengths),
            ),
            cached: self.cache.cached(),
        });
    }

    /// What a chain was forked off, if its contexts may be changed: else it goes by the log.
    fn take_base(&mut self, chain: u32) -> Option<ForkBase> {
        let Simulator { timeline, sizes, .. } = *self.simulator;
        let KeptBase { prefix, items, is_plain, lengths, cached } =
            self.forks.take(timeline, chain).filter(|_| !self.is_plain)?;
        let mut items = items.to_vec();
        if is_plain {
            laid_out::lay(timeline, sizes, fork_point(timeline, chain)?, &mut items);
        }
        Some(ForkBase { view: ContextView { prefix, items }, lengths: lengths.to_vec(), cached })
    }

    /// The context that is sent.
    fn view(&self) -> &ContextView {
        self.views.last().filter(|_| !self.is_plain).unwrap_or(&self.logged)
    }

    /// Lets the stages change the context.
    fn apply(&mut self, index: u32, opens: bool) {
        let timeline = self.simulator.timeline;
        let base = self.base.as_ref();
        let moment = Moment {
            timeline,
            request: index,
            sent_before: self.last.map(|last| last.tokens).or(base.map(|base| base.view.tokens())),
            before: self.last.map(|_| &self.before).or(base.map(|base| &base.view)),
            cached_before: base.map_or(self.cache.cached(), |base| base.cached),
            is_warm: self.is_warm(index),
            opens_segment: opens,
        };
        let mut given = Given { view: &self.logged, kept: self.kept };
        for (stage, view) in self.stages.iter_mut().zip(&mut self.views) {
            let kept = stage.apply(&moment, given, view, &mut self.output);
            given = Given { view, kept };
        }
        let (kept, sent) = (given.kept, given.view);
        let rest = sent.items[kept..].iter().zip(self.before.items.iter().skip(kept));
        self.equal = kept + rest.take_while(|(now, then)| now == then).count();
        let context = self.context();
        let sent = self.views.last().unwrap_or(&self.logged);
        if let Some(watch) = self.watch.as_deref_mut() {
            let logged = Given { view: &self.logged, kept: self.kept };
            watch.sent(&moment, [logged, Given { view: sent, kept: self.equal }], context, &self.output);
        }
        self.output.hints.clear();
        self.output.noticed.clear();
        self.output.window = None;
    }

    /// Whether all that was left by the request before, or by the one that the chain was forked off, is alive.
    fn is_warm(&self, index: u32) -> bool {
        let request = self.simulator.timeline.request(index);
        let Some(warm) = self.simulator.priors[index as usize].inherited().filter(|_| self.base.is_some()) else {
            return self.cache.is_warm(request.model, self.start(index));
        };
        self.cache.is_live(warm.last_use, self.cache.tail_class(warm.class), request.start)
    }

    /// When a request starts by the clock of its chain, which never runs backwards.
    fn start(&self, index: u32) -> Millis {
        let request = self.simulator.timeline.request(index);
        self.last.map_or(request.start, |last| last.end.saturating_add(self.simulator.priors[index as usize].idle))
    }

    fn price(&mut self, index: u32, opens: bool, start: Millis) {
        let Simulator { timeline, sizes, ref tariff, ref priors, ref min_cacheable, .. } = *self.simulator;
        let request = timeline.request(index);
        let prior = &priors[index as usize];
        let view = self.view();
        let (context, prefix, items) = (self.context(), view.prefix, view.items.len() as u32);
        let still = moved(prior.still, sizes.prefix[request.chain as usize], prefix.tokens).min(context);
        let end = start.saturating_add(request.end.saturating_sub(request.start).max(0));
        let parted = self.parted(index);
        self.adopt(index, start, still, parted);
        let common = self.common(index, opens, still, parted);
        let shifted = |warm: WarmPrefix| WarmPrefix {
            last_use: start.saturating_sub(request.start.saturating_sub(warm.last_use)),
            ..warm
        };
        let ask = CacheRequest {
            model: request.model,
            start,
            end,
            class: prior.class,
            elsewhere: prior.elsewhere().map(shifted),
            edition: prefix.edition,
            context,
            tail: request.usage().input.min(context),
            still,
            same: common.same,
            shared: common.shared,
            forked: common.forked,
            items,
            min_cacheable: min_cacheable[request.model.0 as usize],
        };
        // What a call besides the log's can read depends on whether it comes before or after its request.
        let mut calls = std::mem::take(&mut self.output.extra);
        let before: Vec<Spent> =
            calls.iter().map(|call| if call.is_before { self.quote(&ask, call) } else { Spent::default() }).collect();
        let foreseen = self.cache.step(&ask);
        let spent = Spent { output: self.simulator.answer(request), ..self.expected(foreseen, &ask, prior) };
        if request.counts() {
            let rates = tariff.number(request.model, request.start, spent.prompt());
            self.run.requests.push(Priced::new(index, &spent, rates, common.shared));
        }
        self.last = Some(Last { request: index, tokens: context, end });
        for (call, before) in calls.drain(..).zip(before) {
            let billed = if call.is_before { before } else { self.follow_up(&ask, &call) };
            let spent = Spent { uncached: billed.uncached + call.uncached, output: call.output, ..billed };
            let cost = tariff.cost_of_call(request.model, call.model, request.start, &spent);
            if request.counts() {
                self.run.extra.push(Extra { request: index, call, spent, cost });
            }
        }
        self.output.extra = calls;
    }

    /// What is to be expected of a request if prefixes are lost now and then for no reason in the log: that share of what is
    /// read behind the static prefix is written again.
    fn expected(&self, foreseen: Spent, ask: &CacheRequest, prior: &Prior) -> Spent {
        let CacheRules { params, cache, .. } = self.simulator.cache_rules;
        let Some(unforeseen) = prior.unforeseen.filter(|_| params.unforeseen.is_on()) else { return foreseen };
        let lost = unforeseen.expected(foreseen.read.saturating_sub(ask.still), &cache.unforeseen_weight);
        Spent { read: foreseen.read - lost, ..foreseen } + written(lost, self.cache.tail_class(ask.class))
    }

    /// How a call is billed that goes out before a request, with the prefix of the one before.
    fn quote(&self, ask: &CacheRequest, call: &ExtraCall) -> Spent {
        let edition = if self.last.is_some() { self.before.prefix.edition } else { ask.edition };
        self.cache.quote(&CacheRequest { edition, forked: None, ..besides(ask, call) })
    }

    /// How a call is billed that comes right after a request.
    fn follow_up(&self, ask: &CacheRequest, call: &ExtraCall) -> Spent {
        if call.read + call.write == 0 {
            return Spent::default();
        }
        self.cache.follow_up(&CacheRequest { start: ask.end, ..besides(ask, call) }, call.read)
    }

    /// Tokens of the context that is sent.
    fn context(&self) -> u64 {
        match self.last {
            Some(_) => self.same() + tokens(&self.view().items[self.equal..]),
            None => self.view().tokens(),
        }
    }

    /// Tokens of the leading items that were sent at the last request as well, and of the static prefix. What is whole need not
    /// be summed again.
    fn same(&self) -> u64 {
        let view = self.view();
        match self.last {
            Some(last) if self.is_plain && self.equal == self.had => last.tokens,
            Some(last) if !self.is_plain => {
                let items = last.tokens - self.before.prefix.tokens - tokens(&self.before.items[self.equal..]);
                view.prefix.tokens + items
            }
            _ => view.prefix.tokens + tokens(&view.items[..self.equal]),
        }
    }

    /// Where a chain does not go on from all that was sent for the request that it was forked off: the leading tokens that
    /// are the same. What the bill says went is in neither.
    fn parted(&self, index: u32) -> Option<u64> {
        let base = self.base.as_ref().filter(|_| !self.is_plain)?;
        let ContextView { prefix, items } = self.view();
        if prefix.edition != base.view.prefix.edition {
            return Some(0);
        }
        let gone = self.simulator.sizes.gone.get(&index);
        let stays = |item: &&Item| gone.is_none_or(|gone| !gone.contains(&item.key));
        let stood: Vec<Item> = base.view.items.iter().filter(stays).copied().collect();
        let equal = stood.iter().zip(items).take_while(|(then, now)| then == now).count();
        (equal < stood.len()).then(|| prefix.tokens + tokens(&items[..equal]))
    }

    /// How much of the context about to be sent was there before. `parted` is what [`Driver::parted`] says.
    fn common(&self, index: u32, opens: bool, still: u64, parted: Option<u64>) -> Common {
        let params = &self.simulator.cache_rules.params;
        let request = self.simulator.timeline.request(index);
        let alone = if params.cross_session.is_on() { still } else { 0 };
        let segment = &self.simulator.timeline.segments[request.segment as usize];
        let Some(last) = self.last else {
            let inherited = self.simulator.priors[index as usize].inherited();
            let shared = inherited.map_or(alone, |warm| match (segment.after, parted) {
                (NONE, _) => warm.length.min(self.view().tokens()),
                (_, Some(same)) => same.max(alone),
                (_, None) => self.inherited(index),
            });
            return Common::only(shared);
        };
        let prefix = self.view().prefix;
        if !self.is_plain && prefix.edition != self.before.prefix.edition {
            let known = self.cache.knows_edition(request.model, prefix.edition);
            return Common::only(if known { still } else { 0 });
        }
        let (equal, whole) = (self.equal, self.equal == self.had);
        let change = if equal == 0 { ContextChange::Rewritten } else { self.change(index, opens) };
        if change == ContextChange::Rewritten {
            return Common::only(still);
        }
        let same = self.same();
        if !self.cache.knows(request.model) {
            return Common { shared: alone, ..Common::only(same) };
        }
        if change == ContextChange::Stripped {
            return Common { forked: Some(same), ..Common::only(same) };
        }
        let forked = self.fork(index, last.request, whole).map(|measured| {
            let answer = tokens(self.answer(last.request, equal));
            measured.unwrap_or(answer).min(answer)
        });
        match forked.filter(|&answer| answer > 0) {
            Some(answer) => Common { forked: Some(self.cache.cached() + answer), ..Common::only(same + answer) },
            None => Common::only(same),
        }
    }

    /// How the messages of the log came from those of the request before.
    fn change(&self, index: u32, opens: bool) -> ContextChange {
        let request = self.simulator.timeline.request(index);
        let cause = self.simulator.timeline.segments[request.segment as usize].cause;
        let has = |marks: Marks| request.marks.has(marks);
        let is_shorter = self.simulator.sizes.gone.contains_key(&index);
        let is_compacted = opens && cause == SegmentCause::Compaction;
        // A stage took it out: all that was sent before still stands.
        if is_compacted && !self.is_plain && self.equal == self.had {
            return ContextChange::Grown;
        }
        if has(Marks::MICROCOMPACTION) || is_compacted {
            return ContextChange::Rewritten;
        }
        if !is_shorter || (opens && cause == SegmentCause::Rewind) {
            return ContextChange::Grown;
        }
        let before = self.last.map_or(0, |last| self.simulator.timeline.request(last.request).context());
        let shrunk = before.saturating_sub(request.context());
        // At a human turn thinking is left out of the answer before. A hidden request may have cached what is left, unless
        // the answer never ended. Within a turn only a clearing that is not logged makes a context much shorter.
        let forks = self.simulator.priors[index as usize].fork
            && self.simulator.cache_rules.params.hidden_forks != HiddenForks::Off;
        match (has(Marks::HUMAN), forks && !has(Marks::INTERRUPT) && !has(Marks::RESUME)) {
            (true, true) => ContextChange::Stripped,
            (true, false) => ContextChange::Rewritten,
            (false, _) if shrunk >= self.simulator.cache_rules.cache.clearing_tokens_min => ContextChange::Rewritten,
            (false, _) => ContextChange::Grown,
        }
    }

    /// Tokens that a chain forked off another begins with: everything before what its first request brings.
    fn inherited(&self, index: u32) -> u64 {
        let inputs = &self.simulator.timeline.request(index).inputs;
        let own = |key: ItemKey| match key {
            ItemKey::Block(block) => inputs.contains(&block),
            ItemKey::Residual(request) => request == index,
            ItemKey::Made(_) => false,
        };
        let before = self.view().items.iter().take_while(|item| !own(item.key));
        self.view().prefix.tokens + before.map(|item| u64::from(item.tokens)).sum::<u64>()
    }

    /// What the chain that this one was forked off has left in the cache.
    fn adopt(&mut self, index: u32, start: Millis, still: u64, parted: Option<u64>) {
        let Simulator { timeline, sizes, ref priors, .. } = *self.simulator;
        let Some(warm) = priors[index as usize].inherited().filter(|_| self.last.is_none()) else { return };
        let request = timeline.request(index);
        let lengths = match (timeline.segments[request.segment as usize].after, parted, &self.base) {
            (NONE, ..) => vec![warm.length],
            (_, Some(same), Some(base)) => {
                let held = base.lengths.iter().copied().filter(|&length| length <= same);
                held.chain([still.min(same)]).collect()
            }
            (after, ..) => {
                let base = timeline.request(after);
                vec![self.inherited(index).saturating_sub(sizes.of(&base.outputs) + base.usage().input)]
            }
        };
        let last_use = start.saturating_sub(request.start.saturating_sub(warm.last_use));
        for length in lengths {
            self.cache.adopt(request.model, length, self.cache.tail_class(warm.class), last_use);
        }
    }

    /// Whether a hidden request has cached the answer before this request: some, with its size if the bill says it.
    fn fork(&self, index: u32, before: u32, whole: bool) -> Option<Option<u64>> {
        let timeline = self.simulator.timeline;
        let (last, request) = (timeline.request(before), timeline.request(index));
        if !whole || !request.marks.has(Marks::HUMAN) || last.model != request.model {
            return None;
        }
        let believed = self.simulator.priors[index as usize].fork.then_some(None);
        match self.simulator.cache_rules.params.hidden_forks {
            HiddenForks::Off => None,
            HiddenForks::Estimated => believed,
            // A read of exactly what was written says that there was none; a smaller one says nothing.
            HiddenForks::On if request.usage().cache_read == last.cached() => None,
            HiddenForks::On => sizes::surplus(last, request).map_or(believed, |surplus| Some(Some(surplus))),
        }
    }

    /// The items after the common ones that are the answer before, as it was.
    fn answer(&self, before: u32, from: usize) -> &[Item] {
        let timeline = self.simulator.timeline;
        let outputs = timeline.request(before).outputs.clone();
        let rest = &self.view().items[from..];
        let same = |(item, block): &(&Item, u32)| {
            item.key == ItemKey::Block(*block) && item.kept_chars == timeline.blocks[*block as usize].chars
        };
        let count = rest.iter().zip(outputs).take_while(same).count();
        &rest[..count]
    }

    /// Pays for reads that only kept the cache alive until a request.
    fn keep_alive(&mut self, index: u32, until: Option<Millis>) {
        let Some(last) = self.last else { return };
        let kept = self.cache.keep_alive(until);
        if kept.reads == 0 || !self.simulator.timeline.request(index).counts() {
            return;
        }
        let before = self.simulator.timeline.request(last.request);
        let call = ExtraCall { cause: "keep_alive", is_before: true, read: kept.tokens, ..ExtraCall::default() };
        let spent = Spent { read: kept.tokens, ..Spent::default() };
        let cost = self.simulator.tariff.cost(before.model, before.end, &spent);
        let extra = Extra { request: index, call, spent, cost };
        self.run.extra.extend(std::iter::repeat_n(extra, kept.reads as usize));
    }
}

/// What belongs to some requests, of things in the order of requests.
fn within<'t, T>(all: &'t [T], requests: &Range<u32>, request: impl Fn(&T) -> u32) -> &'t [T] {
    let until = |end: u32| all.partition_point(|one| request(one) < end);
    &all[until(requests.start)..until(requests.end)]
}

/// How messages came from those before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContextChange {
    /// Something was added at the end, or the end was taken back.
    Grown,
    /// Something before the end was left out, and what is left was cached by a hidden request.
    Stripped,
    /// They were changed before what any cached prefix covers.
    Rewritten,
}

/// What of a context can be in the cache.
#[derive(Clone, Copy)]
struct Common {
    /// Leading tokens that are the same as in the context before.
    same: u64,
    /// Of these, leading tokens that the model may have cached.
    shared: u64,
    /// Leading tokens that a hidden request has cached, if there was one.
    forked: Option<u64>,
}

impl Common {
    fn only(same: u64) -> Self {
        Self { same, shared: same, forked: None }
    }
}

/// A call beside a request, as the cache sees it.
fn besides(ask: &CacheRequest, call: &ExtraCall) -> CacheRequest {
    let context = call.read + call.write;
    CacheRequest { context, tail: 0, still: ask.still.min(context), same: call.read, shared: call.read, ..*ask }
}

/// The static prefix as the stages left it: as much longer or shorter as theirs is than the log's.
fn moved(still: u64, logged: u64, sent: u64) -> u64 {
    (still + sent).saturating_sub(logged)
}
