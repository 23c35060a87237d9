//! `history-trim`: what a router does with a long conversation. Messages before the last few exchanges are cut to caps
//! that grow with their recency; what still exceeds the budget is dropped in units, oldest first.
//!
//! The rule is exact in its numbers; the text is not there. How much of a text fits its cap follows from its characters
//! and measured tokens, as if tokens were spread evenly over it. Where it falls on a blank, the router strips a few more
//! characters, so what is kept here is never less. Text that is not in the log (reminders, instructions) is neither
//! counted nor cut, so that the router would drop somewhat earlier.
//!
//! The stage reads the view as a conversation, plans, and carries the plan out on the view. Its report has known settings of the
//! router side by side.

pub mod conversation;
mod forked;
pub mod outcome;
pub mod params;
pub mod plan;
pub mod tables;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use rayon::prelude::*;
use serde_json::json;

use crate::base::error::Result;
use crate::logs::timeline::requests::{BlockKind, NONE, ReferenceKind, Timeline};
use crate::whatif::chosen::{Policy, PolicyConfigs, PolicyEntry};
use crate::whatif::history_trim::conversation::{Conversation, MessageReading, TrimMessage};
use crate::whatif::history_trim::forked::ForkedHistory;
use crate::whatif::history_trim::outcome::{Before, Edits, Role, TrimCosts, TrimOutcome, TrimReport};
use crate::whatif::history_trim::params::CutStyle;
use crate::whatif::history_trim::plan::{Memory, MessageFate, Sticky, TrimPlan};
use crate::whatif::history_trim::tables::{NOTES, TELEMETRY_NOTE, ages, breaks, formulas, summary, variants};
use crate::whatif::sim::breakage::rows::{Break, BreakClass, is_sourced};
use crate::whatif::sim::outcome::CostComparison;
use crate::whatif::sim::params::ReadOnlyWith;
use crate::whatif::sim::run::SimulatedRun;
use crate::whatif::sim::sizes::SizeRules;
use crate::whatif::sim::view::{ContextView, ForkPoints, Given, Item, ItemKey, Moment, Noticed, Stage, StageOutput};
use crate::whatif::simulation::{Finished, PolicyShare, Ready, Simulation};

pub use crate::whatif::history_trim::params::{HistoryTrimThresholds, Variant};
pub use params::Params;
pub use plan::TrimRule;

/// The policy.
pub struct HistoryTrim {
    rule: TrimRule,
    sizes: SizeRules,
    history: ChainHistory,
    /// What is forked off goes on from there.
    forks: ForkPoints<ForkedHistory>,
    outcome: Rc<RefCell<TrimOutcome>>,
}

/// What is remembered along a chain.
#[derive(Default)]
struct ChainHistory {
    conversation: Conversation,
    memory: Memory,
    sticky: Sticky,
    before: Option<Before>,
    /// What the request before came to, but for breaks.
    request: TrimOutcome,
    /// How the last request of which that was asked would have been sent without [`Sticky`], with what came behind it until the
    /// plain rule broke a prefix.
    plain: Vec<Item>,
    /// Calls of the chain that are known to have lost their other half.
    orphans: Rc<BTreeSet<u32>>,
}

impl HistoryTrim {
    /// The policy under a rule, and the books that it will keep. `sizes` are the numbers by which block sizes were
    /// estimated.
    pub fn new(rule: TrimRule, sizes: &SizeRules) -> (Self, Rc<RefCell<TrimOutcome>>) {
        let outcome = Rc::new(RefCell::new(TrimOutcome::with_ages(&rule.thresholds.report.ages)));
        let stage = Self {
            rule,
            sizes: sizes.clone(),
            history: ChainHistory::default(),
            forks: ForkPoints::default(),
            outcome: Rc::clone(&outcome),
        };
        (stage, outcome)
    }

    fn plan(&mut self, timeline: &Timeline, view: &ContextView, goes_on: bool) -> TrimPlan {
        let prefix_tokens = view.prefix.tokens;
        let ChainHistory { conversation, memory, sticky, .. } = &mut self.history;
        let messages = &conversation.messages;
        if !self.rule.params.is_on() {
            return TrimPlan { fates: vec![MessageFate::default(); messages.len()], ..TrimPlan::default() };
        }
        if !goes_on {
            *memory = Memory::default();
        }
        if !self.rule.params.sticky {
            return self.rule.plan_on(memory, messages, prefix_tokens);
        }
        // Once the plain rule broke a prefix it does not matter what it would do until the next advance: what it does there is
        // compared with what it would do later.
        let is_due = sticky.is_due(&self.rule, messages);
        if !sticky.plain_broke || is_due {
            let plain = self.rule.plan_on(memory, messages, prefix_tokens);
            let mut items = view.items.clone();
            self.carry_out(timeline, &plain, &mut items);
            let ChainHistory { sticky, plain: before, .. } = &mut self.history;
            sticky.plain_broke |= goes_on && !items.starts_with(before);
            *before = items;
        }
        let ChainHistory { conversation, sticky, .. } = &mut self.history;
        sticky.plan(&self.rule, &conversation.messages, prefix_tokens, is_due)
    }

    /// Changes the items of one message, but for those of a dropped one.
    fn change(&self, timeline: &Timeline, message: &TrimMessage, fate: MessageFate, items: &mut [Item]) {
        if fate.forgets_thinking {
            let is_thinking = |item: &&mut Item| matches!(item.key, ItemKey::Block(at) if timeline.blocks[at as usize].kind == BlockKind::Thinking);
            for item in items[message.items.clone()].iter_mut().filter(is_thinking) {
                (item.tokens, item.kept_chars) = (0, 0);
            }
        }
        if let Some(kept_chars) = fate.kept_chars {
            self.cut(timeline, message, kept_chars, &mut items[message.items.clone()]);
        }
    }

    /// Cuts a text that may lie in several items. What stands behind the head (the tail if one is kept, the mark) is
    /// booked on the last one.
    fn cut(&self, timeline: &Timeline, message: &TrimMessage, kept_chars: u32, items: &mut [Item]) {
        let head = match self.rule.params.cut {
            CutStyle::Head => kept_chars,
            CutStyle::HeadTail => kept_chars - kept_chars / 2,
        };
        let (mut chars, mut tokens, mut last) = (0, 0, None);
        for (place, item) in items.iter_mut().enumerate() {
            let ItemKey::Block(index) = item.key else { continue };
            let block = &timeline.blocks[index as usize];
            let Some(text) = self.sizes.text_tokens(block, item.kept_chars, item.tokens) else { continue };
            item.kept_chars = item.kept_chars.min(head - chars);
            chars += item.kept_chars;
            let until_here = message.tokens_of(chars);
            item.tokens = item.tokens - text + (until_here - tokens);
            (tokens, last) = (until_here, Some(place));
        }
        if let Some(place) = last {
            items[place].tokens += self.rule.cut_tokens(message, kept_chars) - tokens;
        }
    }

    /// Carries out a plan; returns the tokens of each message as sent.
    fn carry_out(&self, timeline: &Timeline, plan: &TrimPlan, items: &mut Vec<Item>) -> Vec<u32> {
        let mut gone = Vec::new();
        let mut sent = Vec::with_capacity(plan.fates.len());
        for (message, &fate) in self.history.conversation.messages.iter().zip(&plan.fates) {
            if fate.is_dropped {
                gone.resize(items.len(), false);
                gone[message.items.clone()].fill(true);
                sent.push(0);
                continue;
            }
            if fate == MessageFate::default() {
                sent.push(message.tokens);
                continue;
            }
            self.change(timeline, message, fate, items);
            sent.push(tokens(&items[message.items.clone()]));
        }
        if !gone.is_empty() {
            let mut gone = gone.into_iter();
            items.retain(|_| !gone.next().unwrap_or(false));
        }
        sent
    }

    /// Sends what came since the request before as it is, behind what was sent then.
    fn go_on(&mut self, given: Given<'_>, view: &mut ContextView, known: usize) {
        view.follow(given.view, given.kept, given.kept);
        let ChainHistory { conversation, before, request, plain, sticky, .. } = &mut self.history;
        let came = &view.items[given.kept..];
        if self.rule.params.sticky && !sticky.plain_broke {
            plain.extend_from_slice(came);
        }
        if let Some(before) = before {
            before.plan.fates.resize(conversation.messages.len(), MessageFate::default());
            before.items.extend_from_slice(came);
        }
        request.extend(&conversation.messages[known..]);
        request.logged += u64::from(tokens(came));
        request.sent += u64::from(tokens(came));
    }

    /// Plans for all messages, and sends what stays of them.
    fn plan_anew(
        &mut self,
        moment: &Moment<'_>,
        given: &ContextView,
        view: &mut ContextView,
        output: &mut StageOutput,
        goes_on: bool,
    ) {
        view.follow(given, 0, 0);
        let plan = self.plan(moment.timeline, given, goes_on);
        let sent = self.carry_out(moment.timeline, &plan, &mut view.items);
        self.notice(moment, &plan, output);

        let ChainHistory { conversation, before, request, memory, .. } = &mut self.history;
        let messages = &conversation.messages;
        let as_before = || match self.rule.params.sticky {
            true => plan.clone(),
            false => self.rule.plan_as(!plan.is_continuation, memory, messages, view.prefix.tokens),
        };
        *request = TrimOutcome::with_ages(&self.rule.thresholds.report.ages);
        request.count(messages, &plan, &sent);
        (request.logged, request.sent) = (given.tokens(), view.tokens());
        let broken = before.as_ref().and_then(|before| before.break_to(&plan, &view.items, as_before));
        if let Some((cause, tokens)) = broken.filter(|_| moment.timeline.request(moment.request).counts()) {
            self.outcome.borrow_mut().count_break(cause, tokens);
        }
        let mut items = before.take().map(|before| before.items).unwrap_or_default();
        items.clone_from(&view.items);
        *before = Some(Before { plan, items });
    }

    /// What the rule itself breaks.
    fn notice(&mut self, moment: &Moment<'_>, plan: &TrimPlan, output: &mut StageOutput) {
        if !plan.fates.iter().any(|fate| fate.is_dropped) {
            return;
        }
        if plan.protected_dropped() > 0 {
            output.noticed.push(Noticed { class: BreakClass::ProtectedDropped, call: NONE });
        }
        let timeline = moment.timeline;
        let ChainHistory { conversation, orphans, .. } = &mut self.history;
        let messages = &conversation.messages;
        let dropped =
            || messages.iter().zip(&plan.fates).filter(|(_, fate)| fate.is_dropped).map(|(message, _)| message);
        let inputs = &timeline.request(moment.request).inputs;
        for message in dropped().filter(|message| message.role == Role::Tool && inputs.contains(&message.id)) {
            let call = timeline.blocks[message.id as usize].call;
            output.noticed.push(Noticed { class: BreakClass::ClearedBeforeSeen, call });
        }
        let sorted = |blocks: &mut dyn Iterator<Item = u32>| {
            let mut blocks: Vec<u32> = blocks.collect();
            #[cfg(test)]
            blocks.iter().for_each(|_| crate::base::id::work::step());
            blocks.sort_unstable();
            blocks
        };
        let lost = sorted(&mut dropped().flat_map(|message| conversation.blocks(message)));
        let parted = |&block: &u32| {
            let index = timeline.blocks[block as usize].call;
            let call = timeline.calls.get(index as usize)?;
            let other = if call.asked == block { call.answered } else { call.asked };
            let is_new = other != NONE && lost.binary_search(&other).is_err() && !orphans.contains(&index);
            is_new.then_some((index, other))
        };
        let parted: Vec<(u32, u32)> = lost.iter().filter_map(parted).collect();
        if parted.is_empty() {
            return;
        }
        let here = sorted(&mut messages.iter().flat_map(|message| conversation.blocks(message)));
        for (call, other) in parted {
            if here.binary_search(&other).is_ok() && Rc::make_mut(orphans).insert(call) {
                output.noticed.push(Noticed { class: BreakClass::OrphanPair, call });
            }
        }
    }
}

impl Stage for HistoryTrim {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        self.history = self.forks.take(timeline, chain).map(ForkedHistory::history).unwrap_or_default();
    }

    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, out: &mut StageOutput) -> usize {
        let timeline = moment.timeline;
        let segment = &timeline.segments[timeline.request(moment.request).segment as usize];
        if moment.opens_segment && segment.after == NONE {
            let orphans = std::mem::take(&mut self.history.orphans);
            self.history = ChainHistory { orphans, ..ChainHistory::default() };
        }
        let reading =
            MessageReading { timeline, sizes: &self.sizes, counts_user_role: self.rule.params.counts_user_role() };
        let ChainHistory { conversation, before, sticky, .. } = &mut self.history;
        let (known, is_whole) = (conversation.messages.len(), conversation.is_read(given.kept));
        let goes_on = conversation.follow(&reading, &given.view.items, given.kept);
        if !goes_on {
            *before = None;
        }
        let messages = &conversation.messages;
        let stands =
            |before: &Before| self.rule.stands(&before.plan, messages, known) && !sticky.knows(&messages[known..]);
        // Where something is dropped, what comes may have lost its other half.
        let is_all_sent = is_whole && view.items.len() == given.kept && view.prefix == given.view.prefix;
        let kept = if is_all_sent && before.as_ref().is_some_and(stands) {
            self.go_on(given, view, known);
            given.kept
        } else {
            self.plan_anew(moment, given.view, view, out, goes_on);
            0
        };
        if timeline.request(moment.request).counts() {
            self.outcome.borrow_mut().add(&self.history.request);
        }
        self.forks.keep(timeline, moment.request, |last| ForkedHistory::of(&self.history, last));
        kept
    }
}

fn tokens(items: &[Item]) -> u32 {
    items.iter().map(|item| item.tokens).sum()
}

const CHAINED_TURNS: &str = "keep_recent_user_turns_in_chained_tool_calls";

/// Parameters of how a history is trimmed.
const TRIMMING: &[&str] = &[
    "max_history_tokens",
    "keep_recent_exchanges",
    CHAINED_TURNS,
    "skip_router_on_tool_results",
    "old_message_max_tokens",
    "oldest_message_max_tokens",
    "old_tool_result_max_tokens",
    "oldest_tool_result_max_tokens",
    "fidelity",
    "trim_thinking",
    "cut",
    "sticky",
    "sticky_step",
    "segment",
    "instruction_tokens",
];

/// What the policy says of itself.
pub static POLICY: PolicyEntry = PolicyEntry {
    sheet: "policies/history_trim.toml",
    check: |file| file.params::<Params>()?.check(),
    read_only_with: &[
        ReadOnlyWith { parameters: &["sticky_step"], only: "sticky=true", is: |sticky| sticky == "true" },
        ReadOnlyWith {
            parameters: &[CHAINED_TURNS, "skip_router_on_tool_results", "instruction_tokens"],
            only: "fidelity=upstream",
            is: |fidelity| fidelity == "upstream",
        },
        ReadOnlyWith {
            parameters: &[CHAINED_TURNS],
            only: "skip_router_on_tool_results=true",
            is: |skip| skip == "true",
        },
        ReadOnlyWith { parameters: TRIMMING, only: "history_trimming=true", is: |trims| trims == "true" },
    ],
    without_logs: None,
    ready,
};

fn ready<'s>(simulation: &'s Simulation<'_>, configs: &PolicyConfigs) -> Result<Ready<'s>> {
    let file = configs.sheet(Policy::HistoryTrim);
    let params: Params = file.params()?;
    params.check()?;
    let thresholds = HistoryTrimThresholds::parse(&file.text(), file.place())?;
    let rule = TrimRule { params, thresholds: thresholds.clone() };
    let formulas = if rule.params.is_on() { formulas(&rule) } else { Vec::new() };
    let (stage, counted) = HistoryTrim::new(rule, &simulation.workload.sizes.rules);
    let conclude = move |finished: &Finished<'_>| {
        let outcome = Rc::clone(&counted).borrow().clone();
        let uncached = &finished.uncached;
        let edits = edits(finished.simulation, finished.breaks);
        let found = trimmed("as set", outcome, finished, [finished.run, &uncached.1], edits);
        let mut tables = vec![
            ("tokens of messages by role and age".to_owned(), ages(&found.outcome)),
            ("prefix breaks that the log does not have".to_owned(), breaks(&found.outcome)),
        ];
        let mut others = Vec::new();
        if finished.is_named {
            others = tried(finished, &thresholds);
            tables
                .push(("settings of the router side by side (exchanges / budget / exchanges in chains of calls); the log is 100 %".to_owned(), variants(&others)));
        }
        let is_billed = finished.simulation.workload.is_billed;
        let notes = if is_billed { &NOTES[..] } else { &[TELEMETRY_NOTE] };
        PolicyShare {
            summary: summary(&found, is_billed && finished.is_alone),
            tables,
            formulas,
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            details: json!({ "as_set": found, "variants": others }),
            ..PolicyShare::default()
        }
    };
    Ok(Ready { stage: Some(Box::new(stage)), conclude: Box::new(conclude) })
}

/// The known settings, each with and without a cache.
fn tried(finished: &Finished<'_>, thresholds: &HistoryTrimThresholds) -> Vec<TrimReport> {
    let simulation = finished.simulation;
    let one = |variant: &Variant| {
        let rule = TrimRule { params: variant.params(&thresholds.params), thresholds: thresholds.clone() };
        let (stage, counted) = HistoryTrim::new(rule, &simulation.workload.sizes.rules);
        let (run, breaks) = simulation.run(finished.cache_rules, vec![Box::new(stage)]);
        // Nobody who trims looks at the cache, so without one the same contexts are sent.
        let plain = simulation.simulator.under(finished.cache_rules).uncached(&run);
        let outcome = counted.borrow().clone();
        let report = trimmed(&variant.name, outcome, finished, [&run, &plain], edits(simulation, &breaks));
        TrimReport { elsewhere: variant.elsewhere.clone(), ..report }
    };
    thresholds.variant.par_iter().with_max_len(1).map(one).collect()
}

/// Makes a report of a run with a cache and of the same without.
fn trimmed(
    name: &str,
    outcome: TrimOutcome,
    finished: &Finished<'_>,
    [cached, uncached]: [&SimulatedRun; 2],
    edits: Edits,
) -> TrimReport {
    TrimReport {
        name: name.to_owned(),
        elsewhere: None,
        outcome,
        cached: sides(finished, finished.baseline, cached, finished.accuracy.cost_error.size()),
        spent: cached.spent(),
        edits,
        uncached: sides(finished, &finished.uncached.0, uncached, 0.0),
    }
}

/// Log and policy by the same simulation, which is off the bill by this share.
fn sides(finished: &Finished<'_>, baseline: &SimulatedRun, policy: &SimulatedRun, error: f64) -> TrimCosts {
    let Simulation { simulator, workload, .. } = finished.simulation;
    let compared = CostComparison::new(simulator, baseline, policy, &workload.cells);
    let error = error.max(workload.winner_percent_min / 100.0);
    TrimCosts { baseline: compared.before, policy: compared.after.cost, verdict: compared.verdict(error) }
}

fn edits(simulation: &Simulation<'_>, breaks: &[Break]) -> Edits {
    let timeline = &simulation.workload.timeline;
    let sourced = timeline.counted_references();
    let sourced = sourced.filter(|one| one.kind == ReferenceKind::EditSource && is_sourced(timeline, one));
    Edits {
        lost: breaks.iter().filter(|one| one.class == BreakClass::EditSourceLost).count() as u64,
        all: sourced.count() as u64,
    }
}
