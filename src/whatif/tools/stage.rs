//! Shows contexts with fewer definitions at their head, so that nothing behind it is still cached, and pays for getting missed
//! ones back. A definition that comes back by being appended leaves the prefix alone and stays in the history.

use std::sync::Arc;

use crate::base::numbers::saturated;
use crate::logs::timeline::requests::Timeline;
use crate::whatif::sim::breakage::rows::BreakClass;
use crate::whatif::sim::view::{ContextView, ExtraCall, Given, Item, ItemKey, Moment, Noticed, Stage, StageOutput};
use crate::whatif::tools::ToolSet;
use crate::whatif::tools::plan::{Expand, ToolPlan, ToolRequest};

/// Numbers of appended definitions begin here, so that they meet no other stage's: bit 30, then the request.
const MADE: u32 = 1 << 30;

/// Definitions in one chain: their tokens, and how one that is missed comes back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definitions {
    /// By tool; those of unknown size count as nothing.
    pub tokens: Vec<u64>,
    /// Of the tool by which a model asks for others.
    pub fallback: u64,
    /// By tool: tokens that a shorter description saves where the definition is sent.
    pub trimmed: Vec<u64>,
    /// How misses are made good.
    pub expand: Expand,
    /// Tokens of a call that asks for a definition and of its answer besides the definition.
    pub framing_tokens: u64,
}

impl Definitions {
    /// Tokens that a head with only these tools is smaller by, before the fallback is added.
    pub fn removed(&self, head: &ToolSet) -> u64 {
        let sent = |(index, tokens): (usize, &u64)| {
            #[cfg(test)]
            crate::base::id::work::step();
            if head.contains(&(index as u32)) { self.trimmed[index] } else { *tokens }
        };
        self.tokens.iter().enumerate().map(sent).sum()
    }

    /// Tokens that the tool for asking adds: nothing where no tool is hidden.
    pub fn added(&self, head: &ToolSet) -> u64 {
        if head.len() == self.tokens.len() { 0 } else { self.fallback }
    }

    /// Tokens of the definitions that a request missed, as they would be appended.
    pub fn missed(&self, step: &ToolRequest) -> u64 {
        let size = |tool: usize| self.tokens[tool] - self.trimmed[tool];
        step.missed.iter().map(|used| size(used.tool as usize)).sum()
    }
}

/// What a chain is sent: made by the policy, which knows its parameters.
pub trait Chains: Send + Sync {
    fn plan(&self, timeline: &Timeline, chain: u32) -> ToolPlan;

    /// Sizes in a chain; none if nothing may be said about sizes.
    fn definitions(&self, timeline: &Timeline, chain: u32) -> Option<Definitions>;

    /// A number for a set of definitions as it is sent: equal for equal bytes, 0 for the log's own.
    fn edition(&self, head: &ToolSet) -> u64;
}

/// A definition that stands in the history.
struct Appended {
    item: Item,
    /// It comes right after this one.
    after: Option<ItemKey>,
    /// Where that was at the last request.
    place: usize,
}

/// Changes the head of each context.
pub struct ToolStage {
    chains: Arc<dyn Chains>,
    plan: ToolPlan,
    definitions: Option<Definitions>,
    /// The head that was looked at last: from request to request it seldom changes.
    head: Option<(Arc<ToolSet>, HeadSize)>,
    appended: Vec<Appended>,
    edition_before: u64,
}

/// What a head of definitions comes to.
#[derive(Clone, Copy)]
struct HeadSize {
    removed: u64,
    added: u64,
    edition: u64,
}

impl Stage for ToolStage {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        self.plan = self.chains.plan(timeline, chain);
        self.definitions = self.chains.definitions(timeline, chain);
        self.head = None;
        self.appended.clear();
        self.edition_before = 0;
    }

    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, out: &mut StageOutput) -> usize {
        let step = self.plan.step(moment.request).clone();
        notice(&step, out);
        let kept = self.put_back(given, view);
        let Some(definitions) = self.definitions.take() else { return kept };
        let whole = view.prefix;
        let [asked_with, sent_with] = [&step.head_before, &step.head].map(|head| self.head(&definitions, head));
        let tokens = |head: HeadSize| whole.tokens.saturating_sub(head.removed) + head.added;
        view.prefix.tokens = tokens(asked_with);
        if step.recovered {
            match definitions.expand {
                Expand::RetryRebuild => out.extra.push(self.asked_in_vain(moment, view, asked_with.edition)),
                Expand::RetryAppend => {
                    out.extra.push(retry(view.tokens(), 0));
                    self.append(&step, &definitions, moment.request, view);
                }
                Expand::Fail => {}
            }
        }
        view.prefix.tokens = tokens(sent_with);
        view.prefix.edition ^= sent_with.edition;
        self.edition_before = sent_with.edition;
        self.definitions = Some(definitions);
        kept
    }
}

impl ToolStage {
    /// A stage of a policy.
    pub fn new(chains: Arc<dyn Chains>) -> Self {
        let plan = ToolPlan::default();
        Self { chains, plan, definitions: None, head: None, appended: Vec::new(), edition_before: 0 }
    }

    fn head(&mut self, definitions: &Definitions, head: &Arc<ToolSet>) -> HeadSize {
        if let Some((known, size)) = &self.head
            && Arc::ptr_eq(known, head)
        {
            return *size;
        }
        let (removed, added) = (definitions.removed(head), definitions.added(head));
        let size = HeadSize { removed, added, edition: self.chains.edition(head) };
        self.head = Some((Arc::clone(head), size));
        size
    }

    /// The request that is answered with a wish for more tools, before the head is rebuilt: it reads what is still the
    /// same.
    fn asked_in_vain(&self, moment: &Moment<'_>, view: &ContextView, edition: u64) -> ExtraCall {
        let same = if edition == self.edition_before { moment.sent_before.unwrap_or(0) } else { 0 };
        let shared = if moment.opens_segment { same.min(view.prefix.tokens) } else { same };
        let read = shared.min(view.tokens());
        ExtraCall { is_before: true, ..retry(read, view.tokens() - read) }
    }

    /// Appended definitions take their places; those whose place is gone (a compaction, a rewind) come last, anew. Returns how
    /// much of the view stayed.
    fn put_back(&mut self, given: Given<'_>, view: &mut ContextView) -> usize {
        let kept = given.kept + self.appended.len();
        if self.appended.iter().all(|appended| appended.place <= given.kept) {
            view.follow(given.view, kept, given.kept);
            return kept;
        }
        view.follow(given.view, 0, 0);
        for appended in &mut self.appended {
            let before = view.items.iter().rposition(|item| Some(item.key) == appended.after);
            appended.place = before.map_or(view.items.len(), |before| before + 1);
            appended.after = appended.place.checked_sub(1).map(|before| view.items[before].key);
            view.items.insert(appended.place, appended.item);
        }
        0
    }

    /// What was missed is appended to the history, together with the call that asked for it.
    fn append(&mut self, step: &ToolRequest, definitions: &Definitions, request: u32, view: &mut ContextView) {
        let tokens = saturated(definitions.missed(step) + definitions.framing_tokens);
        let item = Item { key: ItemKey::Made(MADE | request), tokens, kept_chars: 0 };
        let after = view.items.last().map(|item| item.key);
        self.appended.push(Appended { item, after, place: view.items.len() });
        view.items.push(item);
    }
}

/// An extra request for a tool. The definition itself is written by the request of the log, in whose context it stands.
fn retry(read: u64, write: u64) -> ExtraCall {
    ExtraCall { cause: "tool_retry", read, write, ..ExtraCall::default() }
}

fn notice(step: &ToolRequest, output: &mut StageOutput) {
    for used in &step.missed {
        output.noticed.push(Noticed { class: BreakClass::ToolMiss, call: used.call });
        if !step.recovered {
            output.noticed.push(Noticed { class: BreakClass::Unrecovered, call: used.call });
        }
    }
}
