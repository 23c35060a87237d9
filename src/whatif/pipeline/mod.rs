//! The policy `pipeline`: devboy's own layers over the same contexts, so that what they save is told in money, and beside
//! policies that take old text away. A result is shortened when it comes in, by what a replay of the layers decided, and stays
//! as it came, so no prefix breaks. If another policy has removed what a hint points at, the hint dangles
//! ([`crate::whatif::sim::breakage::detect`]).

pub mod replayed;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::logs::timeline::requests::{BlockKind, NONE, Timeline};
use crate::report::numbers::{counted, percent_of, thousands};
use crate::whatif::sim::breakage::detect::Hint;
use crate::whatif::sim::shared_list::SharedList;
use crate::whatif::sim::sizes::SizeRules;
use crate::whatif::sim::view::{
    ContextView, ForkPoints, Given, Item, ItemKey, Moment, Stage, StageJournal, StageOutput,
};

/// What the user may set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct Params {
    pub formats: Formats,
    pub partition: HintScope,
}

/// Which formats and references there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Formats {
    /// Those of the published pipeline.
    Published,
    /// Ours besides.
    Extended,
}

/// What hints may point at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HintScope {
    /// Results that stood whole in the context before, as the other policies left it.
    Virtual,
    /// Results of the same partition of the log.
    Logged,
}

/// How the pipeline would have sent one result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentResult {
    /// Index into [`Timeline::calls`].
    pub call: u32,
    /// Tokens of its text as it is.
    pub baseline: u64,
    /// Tokens of what would have been sent; at most `baseline`.
    pub tokens: u64,
    pub points: Points,
}

/// What a text that was sent points at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Points {
    /// Nothing: all of it is there.
    Nowhere,
    /// A hint for the result of this call, an index into [`Timeline::calls`].
    At(u32),
    /// References to lines of results that nobody lists.
    Lines,
}

/// One result as it first stood in a context.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FirstShown {
    block: u32,
    tokens: u32,
    saved: u32,
    is_hint: bool,
    is_held: bool,
}

/// What became of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ResultEnd {
    Undecided,
    AsItIs,
    Shortened,
    /// A hint that may not be sent.
    Held,
}

/// The stage.
pub struct Pipeline {
    params: Params,
    sizes: SizeRules,
    sent: Arc<[SentResult]>,
    /// By block: index into `sent`, or [`NONE`].
    by_block: Vec<u32>,
    fates: Vec<ResultEnd>,
    /// Those of a context stay as they are in what is forked off.
    forks: ForkPoints<SharedList<(u32, ResultEnd)>>,
    journal: StageJournal<FirstShown>,
}

impl Pipeline {
    /// The stage under its parameters, with what a replay of the layers found. `sizes` are the numbers by which block sizes were
    /// estimated.
    pub fn new(
        timeline: &Timeline,
        params: Params,
        sent: Arc<[SentResult]>,
        sizes: &SizeRules,
    ) -> (Self, StageJournal<FirstShown>) {
        let mut by_block = vec![NONE; timeline.blocks.len()];
        for (index, one) in (0u32..).zip(sent.iter()) {
            let block = timeline.calls[one.call as usize].answered;
            if block != NONE {
                by_block[block as usize] = index;
            }
        }
        let journal = StageJournal::default();
        let fates = vec![ResultEnd::Undecided; sent.len()];
        let stage = Self {
            params,
            sizes: sizes.clone(),
            sent,
            by_block,
            fates,
            forks: ForkPoints::default(),
            journal: journal.clone(),
        };
        (stage, journal)
    }

    fn decide(&self, moment: &Moment<'_>, view: &ContextView, sent: &SentResult) -> ResultEnd {
        let is_logged = self.params.partition == HintScope::Logged;
        let stands = match sent.points {
            _ if sent.tokens >= sent.baseline => return ResultEnd::AsItIs,
            Points::Nowhere => true,
            Points::At(call) => is_logged || stood(moment, view, moment.timeline.calls[call as usize].answered),
            Points::Lines => is_logged || all_stood(moment, view),
        };
        if stands { ResultEnd::Shortened } else { ResultEnd::Held }
    }

    /// Tokens by which an item gets shorter: its text in proportion, its framing not at all.
    fn saved(&self, timeline: &Timeline, block: u32, item: &Item, sent: &SentResult) -> u32 {
        let text = self.sizes.text_tokens(&timeline.blocks[block as usize], item.kept_chars, item.tokens).unwrap_or(0);
        let left = (u64::from(text) * sent.tokens).div_ceil(sent.baseline.max(1));
        text - u32::try_from(left).unwrap_or(text).min(text)
    }
}

impl Stage for Pipeline {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        self.fates.fill(ResultEnd::Undecided);
        for (index, fate) in self.forks.take(timeline, chain).unwrap_or_default().to_vec() {
            self.fates[index as usize] = fate;
        }
    }

    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, out: &mut StageOutput) -> usize {
        let timeline = moment.timeline;
        view.follow(given.view, given.kept, given.kept);
        for place in given.kept..view.items.len() {
            let item = view.items[place];
            let ItemKey::Block(block) = item.key else { continue };
            let index = self.by_block[block as usize];
            let Some(&sent) = self.sent.get(index as usize) else { continue };
            let is_new = self.fates[index as usize] == ResultEnd::Undecided;
            if is_new {
                self.fates[index as usize] = self.decide(moment, view, &sent);
            }
            let fate = self.fates[index as usize];
            let is_shortened = fate == ResultEnd::Shortened;
            let saved = if is_shortened { self.saved(timeline, block, &item, &sent) } else { 0 };
            view.items[place].tokens -= saved;
            if let (Points::At(call), true) = (sent.points, is_shortened) {
                out.hints.push(Hint { block, target: timeline.calls[call as usize].answered });
            }
            if is_new && timeline.request(moment.request).counts() {
                let (is_hint, is_held) = (is_shortened && sent.points != Points::Nowhere, fate == ResultEnd::Held);
                self.journal.push(FirstShown { block, tokens: item.tokens, saved, is_hint, is_held });
            }
        }
        self.forks.keep(timeline, moment.request, |last| {
            let indexes = view.items.iter().filter_map(|item| Some(self.by_block[item.key.block()? as usize]));
            let fates = indexes.filter_map(|index| Some((index, *self.fates.get(index as usize)?)));
            SharedList::new(&fates.collect::<Vec<_>>(), last)
        });
        given.kept
    }
}

/// Whether a result stood whole in what was sent before, or comes in together with what refers to it.
fn stood(moment: &Moment<'_>, view: &ContextView, target: u32) -> bool {
    let inputs = &moment.timeline.request(moment.request).inputs;
    let shown = moment.before.filter(|_| !inputs.contains(&target)).unwrap_or(view);
    shown
        .block(moment.timeline, target)
        .is_some_and(|item| item.kept_chars >= moment.timeline.blocks[target as usize].chars)
}

/// Whether every result of the context stood whole in what was sent before, or comes in now.
fn all_stood(moment: &Moment<'_>, view: &ContextView) -> bool {
    let Moment { timeline, before: Some(before), .. } = *moment else { return true };
    let inputs = &timeline.request(moment.request).inputs;
    view.items.iter().all(|item| match item.key {
        ItemKey::Block(block) if !inputs.contains(&block) => {
            let of = &timeline.blocks[block as usize];
            of.kind != BlockKind::ToolResult
                || before.block(timeline, block).is_some_and(|shown| shown.kept_chars >= of.chars)
        }
        _ => true,
    })
}

/// Sums up what a stage wrote down. A result that stands in several chains (a fork) counts once.
pub fn outcome(journal: &StageJournal<FirstShown>) -> Shortened {
    let mut entries = journal.take();
    entries.dedup_by_key(|entry| entry.block);
    let mut sum = Shortened::default();
    for entry in entries {
        sum.results += 1;
        sum.shortened += u64::from(entry.saved > 0);
        sum.hints += u64::from(entry.is_hint);
        sum.hints_held += u64::from(entry.is_held);
        sum.tokens += u64::from(entry.tokens);
        sum.tokens_saved += u64::from(entry.saved);
    }
    sum
}

/// Results, each counted once, when it first stood in a context.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Shortened {
    /// Results with text that the pipeline met.
    pub results: u64,
    /// Of those, sent in fewer tokens, hints included.
    pub shortened: u64,
    /// Of those, hints for an earlier result.
    pub hints: u64,
    /// Hints that were not sent, since what they point at was not in the context any more.
    pub hints_held: u64,
    /// Tokens of all these results as they are; anchored sizes.
    pub tokens: u64,
    /// Tokens by which they were shorter.
    pub tokens_saved: u64,
}

const NOTE: &str =
    "a result is shortened as it comes in, so no prefix breaks; the pipeline's own report is `devboy replay`";

/// What is to be kept in mind. Of `unstudied` results nothing is known but the size.
pub fn notes(unstudied: u64) -> Vec<String> {
    let results = counted(unstudied, "result");
    let gone = (unstudied > 0).then(|| format!("{results} of deleted logs were never studied: sent as they are here"));
    std::iter::once(NOTE.to_owned()).chain(gone).collect()
}

/// What became of the results.
pub fn summary(found: &Shortened) -> Vec<String> {
    let mut lines = vec![format!(
        "{} of {} sent in fewer tokens ({} of them as hints): {} of their {} tokens, {}",
        thousands(found.shortened),
        counted(found.results, "result"),
        thousands(found.hints),
        thousands(found.tokens_saved),
        thousands(found.tokens),
        percent_of(found.tokens_saved, found.tokens)
    )];
    if found.hints_held > 0 {
        lines.push(format!(
            "{} not sent: what they point at was no longer in the context",
            counted(found.hints_held, "hint")
        ));
    }
    lines
}
