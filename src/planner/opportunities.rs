//! The moments of a history at which something could be prefetched: a result, a link and one value that the result
//! lists, with everything that is known by then, and whether that very call came.

use crate::base::id::IdSet;
use crate::base::names::Sym;
use crate::logs::trace::Status;
use crate::logs::values::{List, ListedValue, ValueKind};
use crate::mine::projections::ToldHistory;
use crate::planner::contexts::PlannerContext;
use crate::planner::known_tools::{AnswerEffect, KnownLink, KnownTools};
use crate::planner::numbers::JudgeNumbers;

/// What came of a call that could be made ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum OpportunityEnd {
    /// Nothing, or something changed first.
    #[default]
    None,
    /// The tool was called with this value, and with other arguments than planned.
    Target,
    /// Exactly this call was made.
    Exact,
}

/// A value of an answer that a link could pass on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Opportunity {
    /// The call that answered, as an index into the history.
    pub trigger: u32,
    /// Its session, as an index into the history.
    pub session: u32,
    /// The tool that answered.
    pub from: Sym,
    /// Number of the link among those of that tool.
    pub link: u16,
    /// The tool that would be called.
    pub to: Sym,
    /// The argument, among the names of values; 0 if no call was ever given it.
    pub argument: Sym,
    /// The list, among the names of values.
    pub extractor: Sym,
    pub value: u64,
    pub is_path: bool,
    /// Its place among the values that the link takes, from 1 on.
    pub rank: u16,
    /// The same without values that the tool was already given; 0 for one of those.
    pub new_rank: u16,
    /// Distinct values in the list, those that were not kept included.
    pub found: u16,
    /// How often it stands in the list, up to 255.
    pub matches: u8,
    /// Flags of the list ([`crate::logs::values::List`]).
    pub flags: u8,
    /// How it stands in the answer.
    pub kind: ValueKind,
    /// Whether it lies in the directory of one of the files that were opened last.
    pub same_parent: bool,
    /// Whether a call of the tool with this value was answered before, in this context.
    pub already_read: bool,
    /// Probability of the link: that the tool comes next, with whatever argument.
    pub probability: f64,
    /// The best that came of it within the next few calls of later steps. A look into the future: unknown when the plan is
    /// made.
    pub outcome: OpportunityEnd,
}

/// Where the probability of a moment comes from.
pub trait Odds: Sync {
    /// Probability of exactly this call, 0 … 1, from what is known at the moment ([`Opportunity::outcome`] is not); none
    /// leaves it to the link.
    fn of(&self, moment: &Opportunity) -> Option<f64>;
}

/// What is kept of the moments of a history, session by session in the order of the calls. There may be more of them than
/// calls, so that nobody keeps all of each.
pub fn moments<T: Send>(
    told: ToldHistory<'_>,
    known: &KnownTools<'_>,
    numbers: &JudgeNumbers,
    keep: &(dyn Fn(Opportunity) -> Option<T> + Sync),
) -> Vec<T> {
    let of = |context: &PlannerContext| {
        OpportunityReader::new(told, known, numbers, context.session).moments(context).into_iter().filter_map(keep)
    };
    let sessions =
        PlannerContext::each_session(told.history, &[], |contexts| contexts.flat_map(of).collect::<Vec<_>>());
    // A list that grows may have room for twice as many.
    let mut all = Vec::with_capacity(sessions.iter().map(Vec::len).sum());
    sessions.into_iter().for_each(|found| all.extend(found));
    all
}

/// Whether a call is what a link with this value would have called ahead. A call that failed would have failed ahead as well.
pub(super) fn came(told: ToldHistory<'_>, link: &KnownLink<'_>, value: u64, call: usize) -> OpportunityEnd {
    let row = &told.history.calls[call];
    if row.tool != link.to || row.status != Status::Ok {
        return OpportunityEnd::None;
    }
    if told.values.input(call).is_some_and(|input| input.value == link.sole_input(value)) {
        return OpportunityEnd::Exact;
    }
    let given = told.values.given(call).iter();
    let is_target = given.into_iter().any(|given| given.argument == link.argument && given.value == value);
    if is_target { OpportunityEnd::Target } else { OpportunityEnd::None }
}

/// What a call changes.
pub(super) struct Change<'m> {
    pub files: Vec<u64>,
    /// Tools any answer of which it makes stale, by the value model.
    pub tools: &'m [Sym],
}

impl<'m> Change<'m> {
    /// That of a call; none if it changes nothing for sure, or failed. A shell may change anything; that is not counted as a
    /// change.
    pub fn of(told: ToldHistory<'_>, known: &'m KnownTools<'_>, call: usize) -> Option<Self> {
        let row = &told.history.calls[call];
        let tool = known.get(row.tool);
        if tool.changes != AnswerEffect::Surely && tool.invalidates.is_empty() || row.status != Status::Ok {
            return None;
        }
        let files = told.values.given(call).iter().filter(|given| known.file_arguments.contains(&given.argument));
        Some(Self { files: files.map(|given| given.value).collect(), tools: &tool.invalidates })
    }

    /// Whether it changes what a call of `to` with this value would answer: the very file where both name one, else any answer
    /// of the tool.
    fn makes_stale(&self, to: Sym, value: u64, is_path: bool) -> bool {
        if is_path && !self.files.is_empty() { self.files.contains(&value) } else { self.tools.contains(&to) }
    }
}

/// Reads a context call by call and knows what was asked so far.
pub(super) struct OpportunityReader<'a, 'm> {
    told: ToldHistory<'a>,
    known: &'a KnownTools<'m>,
    numbers: &'a JudgeNumbers,
    session: u32,
    /// Tools with an argument and its value that were answered.
    asked: IdSet<u64>,
    /// Directories of the files that were opened last.
    parents: Vec<u32>,
}

impl<'a, 'm> OpportunityReader<'a, 'm> {
    pub fn new(told: ToldHistory<'a>, known: &'a KnownTools<'m>, numbers: &'a JudgeNumbers, session: u32) -> Self {
        Self { told, known, numbers, session, asked: IdSet::default(), parents: Vec::new() }
    }

    fn moments(mut self, context: &PlannerContext) -> Vec<Opportunity> {
        let (mut found, mut later) = (Vec::new(), 0);
        for step in context.steps(self.told.history) {
            later += step.len();
            step.iter().for_each(|&call| self.see(call));
            for &trigger in step {
                for (number, link) in self.links(trigger) {
                    let start = found.len();
                    let offered = link.offered(self.told, trigger as usize, self.numbers.ranks_max);
                    self.offers(trigger, number, link, offered, &mut found);
                    for moment in &mut found[start..] {
                        moment.outcome = self.outcome(link, moment, &context.calls[later..]);
                    }
                }
            }
        }
        found
    }

    /// What came of a moment in the calls of later steps.
    fn outcome(&self, link: &KnownLink<'_>, moment: &Opportunity, later: &[u32]) -> OpportunityEnd {
        let mut best = OpportunityEnd::None;
        let (mut before, mut last) = (0, None);
        for (made, &index) in (0..).zip(later) {
            let row = &self.told.history.calls[index as usize];
            if last.replace(row.step) != Some(row.step) {
                before = made;
            }
            if before >= self.numbers.calls_near {
                break;
            }
            best = best.max(came(self.told, link, moment.value, index as usize));
            let change = Change::of(self.told, self.known, index as usize);
            if change.is_some_and(|change| change.makes_stale(moment.to, moment.value, moment.is_path)) {
                break;
            }
        }
        best
    }

    /// Takes in a call and its answer.
    pub fn see(&mut self, call: u32) {
        let row = &self.told.history.calls[call as usize];
        if row.status != Status::Ok {
            return;
        }
        for given in self.told.values.given(call as usize) {
            self.asked.insert(asked_key(row.tool, given.argument, given.value));
            if given.parent != 0 && self.known.opened_arguments.contains(&given.argument) {
                if self.parents.len() == self.numbers.opened_recent {
                    self.parents.remove(0);
                }
                self.parents.push(given.parent);
            }
        }
    }

    /// The links that an answer sets off, with their numbers; a call that failed sets off none.
    pub fn links(&self, trigger: u32) -> impl Iterator<Item = (u16, &'a KnownLink<'m>)> + use<'a, 'm> {
        let row = &self.told.history.calls[trigger as usize];
        let links = if row.status == Status::Ok { self.known.get(row.tool).links.as_slice() } else { &[] };
        (0..).zip(links)
    }

    /// What an answer offers to a link, out of the values that are taken from it.
    pub fn offers(
        &self,
        trigger: u32,
        number: u16,
        link: &KnownLink<'_>,
        values: Vec<(&List, ListedValue)>,
        found: &mut Vec<Opportunity>,
    ) {
        let row = &self.told.history.calls[trigger as usize];
        let mut new_rank = 0;
        for (rank, (list, value)) in (1..).zip(values) {
            let already_read = self.asked.contains(&asked_key(link.to, link.argument, value.value));
            new_rank += u16::from(!already_read);
            found.push(Opportunity {
                trigger,
                session: self.session,
                from: row.tool,
                link: number,
                to: link.to,
                argument: link.argument,
                extractor: list.extractor,
                value: value.value,
                is_path: value.parent != 0,
                rank,
                new_rank: if already_read { 0 } else { new_rank },
                found: list.found,
                matches: value.count,
                flags: list.flags,
                kind: value.kind,
                same_parent: value.parent != 0 && self.parents.contains(&value.parent),
                already_read,
                probability: link.follow_up.probability,
                outcome: OpportunityEnd::None,
            });
        }
    }
}

fn asked_key(tool: Sym, argument: Sym, value: u64) -> u64 {
    value ^ (u64::from(tool.0) << 32 | u64::from(argument.0)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
