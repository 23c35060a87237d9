//! Compaction: the head of a context is replaced by a summary when the context grows past a trigger.
//!
//! [`params`] and [`thresholds`] are what can be set and what is known, [`splice`] takes the log's own compactions out and says
//! where the kept part begins. Of the log itself, [`real`] finds the compactions again and what they cost and broke, [`carry`]
//! how large contexts were around them and would be; [`figures`] are those of a virtual run, and of other thresholds beside it.
//!
//! The stage decides before each request whether to compact, and from then on sends the summary for the head. The
//! decision rests on what was really sent: the context of the request before, as all stages left it, and what has come
//! since. So a trimmed context compacts later.

pub mod carry;
pub mod figures;
pub mod outcome;
pub mod params;
pub mod ready;
pub mod real;
pub mod splice;
pub mod tables;
pub mod thresholds;

use std::sync::Arc;

use crate::base::model_id::normalise;
use crate::base::names::Sym;
use crate::logs::timeline::requests::{NONE, Timeline};
use crate::logs::trace::{Millis, NO_TIME};
use crate::whatif::compaction::outcome::{AttemptEnd, CompactionAttempt};
use crate::whatif::compaction::params::{AttemptGate, Params, Real};
use crate::whatif::compaction::splice::Splice;
use crate::whatif::sim::breakage::rows::BreakClass;
use crate::whatif::sim::view::{
    ContextView, ExtraCall, Item, ItemKey, Noticed, RequestMoment, Stage, StageJournal, StageOutput, tokens,
};

pub use thresholds::CompactionThresholds;

/// Word under which the summariser's calls stand in the bill.
pub const SUMMARY_CALL: &str = "summary";

/// Made items of this policy count from here, so that they differ from those of other stages.
const FIRST_MADE: u32 = 1 << 24;
const MILLIS_PER_MINUTE: Millis = 60_000;

/// At which size a context is compacted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompactionTrigger {
    /// As the parameters say, by client version.
    Params,
    /// From so many tokens on.
    Tokens(u64),
    /// Never, not by age either.
    Never,
}

/// The stage.
pub struct Compaction {
    params: Params,
    sheet: CompactionThresholds,
    trigger: CompactionTrigger,
    tokens: Arc<[u32]>,
    journal: StageJournal<CompactionAttempt>,
    chain: ChainState,
    /// The summariser, where the parameters name one whose price is known.
    summarizer: Option<Sym>,
}

#[derive(Default)]
struct ChainState {
    gate: AttemptGate,
    cut: Option<Cut>,
    made: u32,
    splice: Splice,
    is_over: bool,
    last: Option<u32>,
    begun: Option<Millis>,
}

/// What a compaction leaves: `made` stands for everything before the block `first`.
struct Cut {
    first: u32,
    made: [Item; 3],
}

impl Compaction {
    /// `tokens` are the sizes of [`Timeline::blocks`]; every attempt is written to `journal`.
    pub fn new(
        params: Params,
        sheet: CompactionThresholds,
        tokens: Arc<[u32]>,
        journal: StageJournal<CompactionAttempt>,
    ) -> Self {
        Self {
            params,
            sheet,
            trigger: CompactionTrigger::Params,
            tokens,
            journal,
            chain: ChainState::default(),
            summarizer: None,
        }
    }

    /// The same with another trigger.
    #[must_use]
    pub fn at(mut self, trigger: CompactionTrigger) -> Self {
        self.trigger = trigger;
        self
    }

    /// Tokens that this request would have in its context. Where a segment begins, that is not what was sent before and
    /// what came since: the conversation went back, or something went.
    fn context_tokens(&self, moment: &RequestMoment<'_>, view: &ContextView) -> u64 {
        let requests = &moment.timeline.requests;
        let segment = |request: u32| requests[request as usize].segment;
        let is_joined = self.params.real == Real::Ignore && !splice::goes_on(moment.timeline, segment(moment.request));
        match (moment.sent_before, self.chain.last) {
            (Some(before), Some(last)) if segment(last) == segment(moment.request) || is_joined => {
                before + fresh_tokens(moment, last, view)
            }
            _ => view.tokens(),
        }
    }

    fn wants(&self, moment: &RequestMoment<'_>, context_tokens: u64) -> bool {
        let request = moment.timeline.request(moment.request);
        let trigger = self.trigger_at(moment.timeline, request.version);
        trigger.is_some_and(|trigger| context_tokens >= trigger || self.is_aged(request.start))
    }

    /// The tokens from which on a client of this version compacts; none if nothing makes it.
    fn trigger_at(&self, timeline: &Timeline, version: Sym) -> Option<u64> {
        match self.trigger {
            CompactionTrigger::Never => None,
            CompactionTrigger::Tokens(tokens) => Some(tokens),
            CompactionTrigger::Params => Some(self.params.trigger_tokens(&self.sheet, timeline.names.text(version))),
        }
    }

    fn is_aged(&self, now: Millis) -> bool {
        let Some(begun) = self.chain.begun.filter(|_| self.params.max_age_minutes > 0 && now != NO_TIME) else {
            return false;
        };
        u64::try_from(now.saturating_sub(begun) / MILLIS_PER_MINUTE).is_ok_and(|age| age >= self.params.max_age_minutes)
    }

    /// Tries to compact; what became of it stands in the journal.
    fn attempt(
        &mut self,
        moment: &RequestMoment<'_>,
        context_tokens: u64,
        view: &mut ContextView,
        output: &mut StageOutput,
    ) {
        let mut attempt = CompactionAttempt::idle(moment.request, AttemptEnd::Ok, context_tokens);
        let turn = moment.timeline.request(moment.request).turn;
        attempt.outcome = match self.chain.gate.refusal(&self.params, turn) {
            Some(refusal) => refusal,
            None => self.compact(moment, view, output, &mut attempt),
        };
        self.note(moment, attempt);
    }

    /// Writes an attempt down, if it was made for a request that counts.
    fn note(&self, moment: &RequestMoment<'_>, attempt: CompactionAttempt) {
        if moment.timeline.request(moment.request).counts() {
            self.journal.push(attempt);
        }
    }

    fn compact(
        &mut self,
        moment: &RequestMoment<'_>,
        view: &mut ContextView,
        output: &mut StageOutput,
        attempt: &mut CompactionAttempt,
    ) -> AttemptEnd {
        let Some(at) = splice::start(moment.timeline, &view.items, self.params.tail_keep_tokens, self.params.align)
        else {
            return AttemptEnd::NoBoundary;
        };
        let ItemKey::Block(first) = view.items[at].key else { return AttemptEnd::NoBoundary };
        let made = self.made_items();
        let (head_tokens, made_tokens) = (tokens(&view.items[..at]), tokens(&made));
        if head_tokens < made_tokens + self.params.min_gain_tokens.max(1) {
            return AttemptEnd::NoGain;
        }
        let turn = moment.timeline.request(moment.request).turn;
        let is_ok = self.chain.gate.call(&self.params, turn);
        output.extra.push(self.summary_call(moment, attempt.before_tokens, is_ok));
        if !is_ok {
            return AttemptEnd::Failed;
        }
        attempt.head_tokens = head_tokens;
        attempt.made_tokens = made_tokens;
        attempt.tail_tokens = tokens(&view.items[at..]);
        let cut = Cut { first, made };
        cut.apply(view);
        self.chain.cut = Some(cut);
        self.chain.made += 3;
        AttemptEnd::Ok
    }

    fn made_items(&self) -> [Item; 3] {
        let sizes = [self.params.summary_tokens, self.sheet.client.acknowledgement_tokens, self.params.reattach_tokens];
        let mut number = FIRST_MADE + self.chain.made;
        sizes.map(|tokens| {
            number += 1;
            Item { key: ItemKey::Made(number - 1), tokens, kept_chars: 0 }
        })
    }

    /// The summariser reads the whole context. A failed call is paid for what it read.
    fn summary_call(&self, moment: &RequestMoment<'_>, context_tokens: u64, is_ok: bool) -> ExtraCall {
        let is_warm = self.is_same_model(moment) && moment.is_warm;
        let (read, uncached) = if is_warm { (context_tokens, 0) } else { (0, context_tokens) };
        let output = if is_ok { u64::from(self.params.summary_tokens) } else { 0 };
        ExtraCall { cause: SUMMARY_CALL, model: self.summarizer, read, uncached, output, ..ExtraCall::default() }
    }

    /// Whether the summariser finds the cache of the request.
    fn is_same_model(&self, moment: &RequestMoment<'_>) -> bool {
        let named = &self.params.summarizer_model;
        let model = moment.timeline.request(moment.request).model;
        named.is_empty() || normalise(named) == normalise(moment.timeline.names.text(model))
    }

    /// Without the log's compactions a context may outgrow the window: that request would have been refused.
    fn watch_window(&mut self, moment: &RequestMoment<'_>, context_tokens: u64, output: &mut StageOutput) {
        let is_over = self.params.real == Real::Ignore && context_tokens > self.params.window;
        if is_over && !self.chain.is_over {
            output.noticed.push(Noticed { class: BreakClass::Overflow, call: NONE });
            self.note(moment, CompactionAttempt::idle(moment.request, AttemptEnd::Overflow, context_tokens));
        }
        self.chain.is_over = is_over;
    }
}

impl Stage for Compaction {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        let starts = timeline.requests_of(chain).iter().map(|request| request.start);
        let begun = starts.filter(|&start| start != NO_TIME).min();
        self.chain = ChainState { begun, ..ChainState::default() };
        let named = Some(&self.params.summarizer_model).filter(|named| !named.is_empty());
        self.summarizer = named.and_then(|named| timeline.names.find(&normalise(named)));
    }

    fn may_change(&self, timeline: &Timeline, chain: u32, largest: u64) -> bool {
        let params = &self.params;
        let mut versions: Vec<Sym> = timeline.requests_of(chain).iter().map(|request| request.version).collect();
        versions.dedup();
        let mut triggers = versions.into_iter().filter_map(|version| self.trigger_at(timeline, version));
        params.real == Real::Ignore || params.max_age_minutes > 0 || triggers.any(|trigger| largest >= trigger)
    }

    fn apply(&mut self, moment: &RequestMoment<'_>, view: &mut ContextView, output: &mut StageOutput) {
        if self.params.real == Real::Ignore {
            self.chain.splice.apply(moment.timeline, moment.request, &self.tokens, view);
        }
        self.chain.cut = self.chain.cut.take().filter(|cut| cut.fits(moment, view));
        if let Some(cut) = &self.chain.cut {
            cut.apply(view);
        }
        let context_tokens = self.context_tokens(moment, view);
        if self.wants(moment, context_tokens) {
            self.attempt(moment, context_tokens, view, output);
        }
        self.watch_window(moment, view.tokens(), output);
        self.chain.last = Some(moment.request);
    }
}

impl Cut {
    /// Whether the context still goes on from what was kept: after a compaction of the log, or back before the kept part,
    /// it does not.
    fn fits(&self, moment: &RequestMoment<'_>, view: &ContextView) -> bool {
        let own = moment.timeline.request(moment.request).inputs.start;
        view.items.iter().any(|item| matches!(item.key, ItemKey::Block(block) if (self.first..own).contains(&block)))
    }

    fn apply(&self, view: &mut ContextView) {
        let is_kept = |item: &Item| matches!(item.key, ItemKey::Block(block) if block >= self.first);
        let at = view.items.iter().position(is_kept).unwrap_or(view.items.len());
        view.items.splice(..at, self.made);
    }
}

/// Tokens that came since the chain's request `last`: its answer, and what came in.
fn fresh_tokens(moment: &RequestMoment<'_>, last: u32, view: &ContextView) -> u64 {
    let first = moment.timeline.request(last).outputs.start;
    let is_fresh = |item: &&Item| match item.key {
        ItemKey::Block(block) => block >= first,
        ItemKey::Residual(request) => request > last,
        ItemKey::Made(_) => false,
    };
    view.items.iter().filter(is_fresh).map(|item| u64::from(item.tokens)).sum()
}
