//! Compaction: the head of a context is replaced by a summary when the context grows past a trigger.
//!
//! [`params`] is what can be set and what is known, [`splice`] takes the log's own compactions out and says
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
pub mod real;
pub mod splice;
pub mod tables;

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::json;

use crate::base::error::{Error, Result};
use crate::base::model_id::normalise;
use crate::base::names::Sym;
use crate::base::numbers::thousands;
use crate::logs::timeline::requests::Timeline;
use crate::logs::trace::{Millis, NO_TIME};
use crate::whatif::chosen::{Policy, PolicyConfigs, PolicyEntry};
use crate::whatif::clearing::{Cleared, Micro, clearings, replayed};
use crate::whatif::compaction::carry::{after_sizes, growth, made_sizes, reattached};
use crate::whatif::compaction::figures::{compactions, points, row};
use crate::whatif::compaction::outcome::{AttemptEnd, CompactionAttempt, Compactions};
use crate::whatif::compaction::params::{AttemptGate, Params, Real, Tier};
use crate::whatif::compaction::real::{placement, real_compactions};
use crate::whatif::compaction::splice::Splice;
use crate::whatif::compaction::tables as report;
use crate::whatif::sim::breakage::files::edit_ages;
use crate::whatif::sim::money::Prices;
use crate::whatif::sim::params::{PolicyConfig, ReadOnlyWith};
use crate::whatif::sim::unlogged::SUMMARISER;
use crate::whatif::sim::view::{
    ContextView, ExtraCall, ForkPoints, Given, Item, ItemKey, Moment, Stage, StageJournal, StageOutput, tokens,
};
use crate::whatif::simulation::{Finished, PolicyShare, Ready, Simulation};
use crate::whatif::workload::Workload;

pub use params::CompactionThresholds;

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
    thresholds: CompactionThresholds,
    trigger: CompactionTrigger,
    /// Segments that begin behind the compactions that are taken out if those of the log are ignored; none: all.
    only: Option<Arc<BTreeSet<u32>>>,
    tokens: Arc<[u32]>,
    journal: StageJournal<CompactionAttempt>,
    chain: ChainState,
    /// Made items so far.
    made: u32,
    /// The cut that stood, if any did.
    forks: ForkPoints<Option<Cut>>,
    /// The summariser, where the parameters name one whose price is known.
    summarizer: Option<Sym>,
}

#[derive(Default)]
struct ChainState {
    gate: AttemptGate,
    cut: Option<Cut>,
    splice: Splice,
    /// Where the kept part began in what was given last; none where nothing was cut.
    from: Option<usize>,
    /// How many leading items of the context were looked through in vain for a place to cut at.
    sought: usize,
    last: Option<u32>,
    begun: Option<Millis>,
    /// Whether it writes the summary of a compaction of the log: nothing summarises that.
    is_summariser: bool,
}

/// What a compaction leaves: `made` stands for everything before the block `first`.
#[derive(Clone, Copy)]
struct Cut {
    first: u32,
    made: [Item; 3],
}

impl Compaction {
    /// `tokens` are the sizes of [`Timeline::blocks`]; every attempt is written to `journal`.
    pub fn new(
        params: Params,
        thresholds: CompactionThresholds,
        tokens: Arc<[u32]>,
        journal: StageJournal<CompactionAttempt>,
    ) -> Self {
        Self {
            params,
            thresholds,
            trigger: CompactionTrigger::Params,
            only: None,
            tokens,
            journal,
            chain: ChainState::default(),
            made: 0,
            forks: ForkPoints::default(),
            summarizer: None,
        }
    }

    /// The same with another trigger.
    #[must_use]
    pub fn at(mut self, trigger: CompactionTrigger) -> Self {
        self.set_trigger(trigger);
        self
    }

    /// Compacts at another trigger from here on.
    pub fn set_trigger(&mut self, trigger: CompactionTrigger) {
        self.trigger = trigger;
    }

    /// The same that takes out of the log's compactions only those behind which these segments begin.
    #[must_use]
    pub fn only(self, segments: Arc<BTreeSet<u32>>) -> Self {
        Self { only: Some(segments), ..self }
    }

    /// Whether the compaction of the log behind which a segment begins is taken out.
    fn takes_out(&self, segment: u32) -> bool {
        self.params.real == Real::Ignore && self.only.as_ref().is_none_or(|only| only.contains(&segment))
    }

    /// Tokens that this request would have in its context. Where a segment begins, that is not what was sent before and
    /// what came since: the conversation went back, or something went.
    fn context_tokens(&self, moment: &Moment<'_>, view: &ContextView) -> u64 {
        let requests = &moment.timeline.requests;
        let segment = |request: u32| requests[request as usize].segment;
        let own = segment(moment.request);
        let is_joined = self.takes_out(own) && !splice::goes_on(moment.timeline, own);
        match (moment.sent_before, self.chain.last) {
            (Some(before), Some(last)) if segment(last) == segment(moment.request) || is_joined => {
                before + fresh_tokens(moment, last, view)
            }
            _ => view.tokens(),
        }
    }

    fn wants(&self, moment: &Moment<'_>, context_tokens: u64) -> bool {
        let request = moment.timeline.request(moment.request);
        let trigger = self.trigger_at(moment.timeline, request.version);
        let is_large = |trigger: u64| context_tokens >= trigger || self.is_aged(request.start);
        !self.chain.is_summariser && trigger.is_some_and(is_large)
    }

    /// The tokens from which on a client of this version compacts; none if nothing makes it.
    fn trigger_at(&self, timeline: &Timeline, version: Sym) -> Option<u64> {
        match self.trigger {
            CompactionTrigger::Never => None,
            CompactionTrigger::Tokens(tokens) => Some(tokens),
            CompactionTrigger::Params => {
                Some(self.params.trigger_tokens(&self.thresholds, timeline.names.text(version)))
            }
        }
    }

    fn is_aged(&self, now: Millis) -> bool {
        let Some(begun) = self.chain.begun.filter(|_| self.params.max_age_minutes > 0 && now != NO_TIME) else {
            return false;
        };
        u64::try_from(now.saturating_sub(begun) / MILLIS_PER_MINUTE).is_ok_and(|age| age >= self.params.max_age_minutes)
    }

    /// Makes the view what is given, behind the cut if one still fits; returns how many items of it stayed.
    fn cut(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView) -> usize {
        self.chain.cut = self.chain.cut.take().filter(|cut| cut.fits(moment, given.view));
        let before = self.chain.from.take();
        let Some(cut) = &self.chain.cut else {
            let kept = if before.is_none() { given.kept } else { 0 };
            view.follow(given.view, kept, kept);
            return kept;
        };
        if let Some(at) = before.filter(|&at| at < given.kept) {
            let kept = cut.made.len() + given.kept - at;
            view.follow(given.view, kept, given.kept);
            self.chain.from = before;
            return kept;
        }
        let at = cut.place(given.view);
        view.follow(given.view, 0, at);
        view.items.splice(0..0, cut.made);
        self.chain.from = Some(at);
        0
    }

    /// Tries to compact; what became of it stands in the journal. Returns whether it was compacted.
    fn attempt(
        &mut self,
        moment: &Moment<'_>,
        context_tokens: u64,
        view: &mut ContextView,
        output: &mut StageOutput,
    ) -> bool {
        let mut attempt = CompactionAttempt::idle(moment.request, AttemptEnd::Ok, context_tokens);
        let turn = moment.timeline.request(moment.request).turn;
        attempt.outcome = match self.chain.gate.refusal(&self.params, turn) {
            Some(refusal) => refusal,
            None => self.compact(moment, view, output, &mut attempt),
        };
        let is_ok = attempt.outcome == AttemptEnd::Ok;
        if moment.timeline.request(moment.request).counts() {
            self.journal.push(attempt);
        }
        is_ok
    }

    fn compact(
        &mut self,
        moment: &Moment<'_>,
        view: &mut ContextView,
        output: &mut StageOutput,
        attempt: &mut CompactionAttempt,
    ) -> AttemptEnd {
        let Params { tail_keep_tokens, align, .. } = self.params;
        let Some(at) = splice::start(moment.timeline, &view.items, &mut self.chain.sought, tail_keep_tokens, align)
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
        view.items.splice(..at, made);
        self.chain.cut = Some(Cut { first, made });
        self.chain.sought = 0;
        // Behind an earlier cut, what was made for that stood before it.
        self.chain.from = Some(self.chain.from.map_or(at, |from| from + at - made.len()));
        self.made += 3;
        AttemptEnd::Ok
    }

    fn made_items(&self) -> [Item; 3] {
        let mut number = FIRST_MADE + self.made;
        made_sizes(&self.params, &self.thresholds).map(|tokens| {
            number += 1;
            Item { key: ItemKey::Made(number - 1), tokens, kept_chars: 0 }
        })
    }

    /// The summariser reads the whole context. A failed call is paid for what it read.
    fn summary_call(&self, moment: &Moment<'_>, context_tokens: u64, is_ok: bool) -> ExtraCall {
        let is_warm = self.is_same_model(moment) && moment.is_warm;
        let (read, uncached) = if is_warm { (context_tokens, 0) } else { (0, context_tokens) };
        let output = if is_ok { u64::from(self.params.summary_tokens) } else { 0 };
        ExtraCall { cause: SUMMARY_CALL, model: self.summarizer, read, uncached, output, ..ExtraCall::default() }
    }

    /// Whether the summariser finds the cache of the request.
    fn is_same_model(&self, moment: &Moment<'_>) -> bool {
        let named = &self.params.summarizer_model;
        let model = moment.timeline.request(moment.request).model;
        named.is_empty() || normalise(named) == normalise(moment.timeline.names.text(model))
    }
}

impl Stage for Compaction {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        let starts = timeline.requests_of(chain).iter().map(|request| request.start);
        let begun = starts.filter(|&start| start != NO_TIME).min();
        let cut = self.forks.of(timeline, chain).copied().flatten();
        let is_summariser = timeline.names.text(timeline.chain(chain).agent_type) == SUMMARISER;
        self.chain = ChainState { cut, begun, is_summariser, ..ChainState::default() };
        let named = Some(&self.params.summarizer_model).filter(|named| !named.is_empty());
        self.summarizer = named.and_then(|named| timeline.names.find(&normalise(named)));
    }

    fn may_change(&self, timeline: &Timeline, chain: u32, largest: u64) -> bool {
        let params = &self.params;
        let mut versions: Vec<Sym> = timeline.requests_of(chain).iter().map(|request| request.version).collect();
        versions.dedup();
        let mut triggers = versions.into_iter().filter_map(|version| self.trigger_at(timeline, version));
        let is_reached = params.max_age_minutes > 0 || triggers.any(|trigger| largest >= trigger);
        params.real == Real::Ignore || is_reached || self.forks.of(timeline, chain).is_some_and(Option::is_some)
    }

    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, out: &mut StageOutput) -> usize {
        let had = view.items.len();
        let mut kept = if self.params.real == Real::Ignore {
            out.window = Some(self.params.window);
            let mut splice = std::mem::take(&mut self.chain.splice);
            let takes_out = self.takes_out(moment.timeline.request(moment.request).segment);
            let kept = splice.apply((moment.timeline, moment.request), takes_out, &self.tokens, given);
            let kept = self.cut(moment, Given { view: &splice.joined, kept }, view);
            self.chain.splice = splice;
            kept
        } else {
            self.cut(moment, given, view)
        };
        // Where something went, a place may be whole that was not.
        self.chain.sought = if kept < had { 0 } else { self.chain.sought.min(kept) };
        let context_tokens = self.context_tokens(moment, view);
        if self.wants(moment, context_tokens) && self.attempt(moment, context_tokens, view, out) {
            kept = 0;
        }
        self.forks.keep(moment.timeline, moment.request, |_| self.chain.cut);
        self.chain.last = Some(moment.request);
        kept
    }
}

impl Cut {
    /// Whether the context still goes on from what was kept: after a compaction of the log, or back before the kept part,
    /// it does not.
    fn fits(&self, moment: &Moment<'_>, view: &ContextView) -> bool {
        let own = moment.timeline.request(moment.request).inputs.start;
        let is_kept = |item: &Item| matches!(item.key, ItemKey::Block(block) if (self.first..own).contains(&block));
        // It stands last.
        view.items.iter().rev().any(is_kept)
    }

    /// Where the kept part begins.
    fn place(&self, view: &ContextView) -> usize {
        let is_kept = |item: &Item| matches!(item.key, ItemKey::Block(block) if block >= self.first);
        view.items.iter().position(is_kept).unwrap_or(view.items.len())
    }
}

/// Tokens that came since the chain's request `last`: its answer, and what came in.
fn fresh_tokens(moment: &Moment<'_>, last: u32, view: &ContextView) -> u64 {
    let first = moment.timeline.request(last).outputs.start;
    let is_fresh = |item: &&Item| match item.key {
        ItemKey::Block(block) => block >= first,
        ItemKey::Residual(request) => request > last,
        ItemKey::Made(_) => false,
    };
    let is_old = |item: &Item| matches!(item.key, ItemKey::Block(block) if block < first);
    let behind = view.items.iter().rposition(is_old).map_or(0, |at| at + 1);
    view.items[behind..].iter().filter(is_fresh).map(|item| u64::from(item.tokens)).sum()
}

/// Whether the price of the summariser is known, if one is named.
fn check_summarizer(params: &Params, prices: &Prices) -> Result<()> {
    let model = &params.summarizer_model;
    if model.is_empty() || prices.rates(model, NO_TIME, 1).is_some() {
        return Ok(());
    }
    Err(Error::usage(format!("summarizer_model: no price is known for `{model}`"))
        .hint(format!("name a model of {}, or add a row to it (--rules-dir)", prices.place)))
}

/// What the policy says of itself.
pub static POLICY: PolicyEntry = PolicyEntry {
    sheet: "policies/compaction.toml",
    check: |sheet| thresholds(sheet).map(drop),
    read_only_with: &[
        ReadOnlyWith {
            parameters: &[
                "mode",
                "window",
                "reserve_output",
                "buffer",
                "compact_at_pct",
                "tail_keep_tokens",
                "summary_tokens",
                "reattach_tokens",
                "min_gain_tokens",
                "max_age_minutes",
                "min_turns_between",
                "max_consecutive_failures",
                "fail_every",
                "align",
                "real",
                "summarizer_model",
            ],
            only: "tier=auto",
            is: |tier| tier == "auto",
        },
        ReadOnlyWith {
            parameters: &["reserve_output", "buffer"],
            only: "mode=claude-code",
            is: |mode| mode == "claude-code",
        },
        ReadOnlyWith { parameters: &["compact_at_pct"], only: "mode=pct", is: |mode| mode == "pct" },
        // The target and the saving are held against the clearings of the log as well.
        ReadOnlyWith {
            parameters: &["micro.min_bytes", "micro.protect_last", "micro.only_uncached", "micro.style"],
            only: "tier=micro",
            is: |tier| tier == "micro",
        },
    ],
    without_logs: None,
    ready,
};

/// The sheet. What was set is looked at first: it is the user's, the rest of the sheet is not.
fn thresholds(sheet: &PolicyConfig) -> Result<CompactionThresholds> {
    sheet.params::<Params>()?;
    CompactionThresholds::parse(&sheet.text(), sheet.place())
}

fn ready<'s>(simulation: &'s Simulation<'_>, configs: &PolicyConfigs) -> Result<Ready<'s>> {
    let workload = simulation.workload;
    let thresholds = thresholds(configs.sheet(Policy::Compaction))?;
    let params = thresholds.params.clone();
    check_summarizer(&params, &workload.prices)?;
    if params.tier == Tier::Micro {
        let journal = StageJournal::default();
        let stage = Micro::new(params.micro.clone(), thresholds.clone(), journal.clone());
        let conclude = move |finished: &Finished<'_>| cleared(finished, &journal, &params, &thresholds);
        return Ok(Ready { stage: Some(Box::new(stage)), conclude: Box::new(conclude) });
    }
    let journal = StageJournal::default();
    let tokens = Arc::clone(&workload.sizes.tokens);
    let stage = Compaction::new(params.clone(), thresholds.clone(), tokens, journal.clone());
    let conclude = move |finished: &Finished<'_>| {
        let workload = finished.simulation.workload;
        let broken = Some((&finished.simulation.detectors, finished.breaks));
        let done = compactions(&workload.timeline, &journal.take(), finished.run, broken, &thresholds);
        if workload.is_billed {
            compacted(finished, &done, &params, &thresholds)
        } else {
            of_telemetry(finished, &done)
        }
    };
    Ok(Ready { stage: Some(Box::new(stage)), conclude: Box::new(conclude) })
}

/// What clearing tool results did, beside the clearings of the log.
fn cleared(
    finished: &Finished<'_>,
    journal: &StageJournal<Cleared>,
    params: &Params,
    thresholds: &CompactionThresholds,
) -> PolicyShare {
    let timeline = &finished.simulation.workload.timeline;
    let found = replayed(timeline, &params.micro, thresholds);
    let done = clearings(timeline, &journal.take(), finished.run);
    PolicyShare {
        tables: vec![(report::CLEARINGS.to_owned(), report::clearings(&found))],
        details: json!({ "cleared": done, "logged": found }),
        ..PolicyShare::default()
    }
}

/// What compaction did where nothing is known but the sizes of tool results.
fn of_telemetry(finished: &Finished<'_>, done: &Compactions) -> PolicyShare {
    let growth = growth(&finished.simulation.workload.timeline);
    PolicyShare {
        tables: report::telemetry_tables(done, &growth),
        details: json!({ "compactions": done, "growth": growth }),
        notes: vec![report::TELEMETRY_NOTE.to_owned()],
        ..PolicyShare::default()
    }
}

/// What came back after the compactions of the log, where that is known and something else was replayed.
fn came_back(workload: &Workload, params: &Params, thresholds: &CompactionThresholds) -> Option<String> {
    let found = reattached(&workload.timeline, &workload.sizes, params, thresholds);
    let (replayed, tokens) = (params.reattach_tokens, found.tokens);
    (found.is_measured && tokens != replayed).then(|| {
        let replayed = thousands(replayed.into());
        format!("{}; {replayed} are replayed: --set reattach_tokens={tokens} replays the former", found.words())
    })
}

/// What compaction did, beside the compactions of the log and other thresholds.
fn compacted(
    finished: &Finished<'_>,
    done: &Compactions,
    params: &Params,
    thresholds: &CompactionThresholds,
) -> PolicyShare {
    let Finished { simulation, is_named, .. } = *finished;
    let (workload, detectors) = (simulation.workload, &simulation.detectors);
    let timeline = &workload.timeline;
    let requests = simulation.simulator.under(finished.cache_rules);
    let points = if is_named { points(params, thresholds) } else { Vec::new() };
    let swept = points.par_iter().with_max_len(1).map(|at| row(&requests, detectors, at, thresholds));
    let found = report::CompactionReport {
        compactions: done,
        real: real_compactions(detectors, thresholds),
        placement: placement(timeline, params, thresholds),
        after_size: after_sizes(timeline, &workload.sizes, params, thresholds),
        edit_ages: edit_ages(timeline, &workload.breakage),
        clearings: replayed(timeline, &params.micro, thresholds),
        sweep: swept.collect(),
    };
    let notes = report::NOTES.iter().map(|note| (*note).to_owned());
    PolicyShare {
        summary: [report::trigger(params, thresholds)]
            .into_iter()
            .chain(report::unlike_client(params, thresholds, done))
            .chain(came_back(workload, params, thresholds))
            .collect(),
        formulas: report::formulas(params, thresholds),
        tables: report::tables(&found, &thresholds.bars),
        details: json!(found),
        notes: report::notes(&found.placement, params.window).into_iter().chain(notes).collect(),
        ..PolicyShare::default()
    }
}
