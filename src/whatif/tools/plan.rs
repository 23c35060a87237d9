//! Which tools each request of a chain would have been shown, which it missed, and what became of the misses; by what was
//! really called.

use std::ops::Range;
use std::sync::Arc;

use crate::logs::timeline::requests::Timeline;
use crate::whatif::tools::inventory::{Inventory, ListedCall};
use crate::whatif::tools::{ToolSet, turns};

/// Tools that somebody proposes for a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ToolSelection {
    All,
    /// None, not even those that are always shown.
    Nothing,
    /// These, best first.
    Tools(Vec<u32>),
}

/// Proposes tools for the turn that begins with the last of some turns; where proposals are made anew for every request,
/// for the request given.
pub type Selector<'s> = dyn Fn(&[Range<u32>], u32) -> ToolSelection + 's;

/// How a tool that was needed and not shown comes back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expand {
    /// Its definition is added at the head of the context and the request sent again.
    #[serde(alias = "retry-rebuild")]
    RetryRebuild,
    /// Its definition is appended to the history.
    #[serde(alias = "retry-append")]
    RetryAppend,
    /// It does not.
    Fail,
}

/// The rules of showing and recovering.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Handling {
    pub always: ToolSet,
    /// Least and most proposed tools of a turn; too few are filled in catalog order.
    pub proposed: (usize, Option<usize>),
    /// Whether every tool is shown where nothing is allowed or nothing that is allowed exists; else none is.
    pub all_if_empty: bool,
    /// How misses are made good.
    pub expand: Expand,
    /// Whether there is a tool to ask for others with, and how often it may be used per request.
    pub retries: u32,
    /// Whether tools that came back stay for the rest of the chain.
    pub learn: bool,
    /// Whether requests after the first of a turn are shown everything.
    pub continuation_all: bool,
    /// Whether proposals are made for every request instead of every turn.
    pub every_request: bool,
}

/// A request as it would have been sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolRequest {
    /// Tools that the model could call when it was first sent.
    pub visible: Arc<ToolSet>,
    /// Tools whose definitions stood at the head of the context that was answered in the end.
    pub head: Arc<ToolSet>,
    /// The same when it was first sent: other than `head` if it had to be rebuilt.
    pub head_before: Arc<ToolSet>,
    /// Calls of tools that were not visible, each tool at its first call of the turn.
    pub missed: Vec<ListedCall>,
    /// Whether the missed tools came back.
    pub recovered: bool,
}

/// A chain as it would have been sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ToolPlan {
    /// Requests by turn.
    pub turns: Vec<Range<u32>>,
    /// By request of the chain.
    pub steps: Vec<ToolRequest>,
}

impl ToolPlan {
    /// Walks through a chain.
    pub fn new(
        timeline: &Timeline,
        chain: u32,
        inventory: &Inventory,
        selector: &Selector<'_>,
        handling: &Handling,
    ) -> Self {
        let mut walk =
            SetsWalk { inventory, handling, learned: Arc::default(), all: Arc::new(inventory.all()), joined: None };
        let turns = turns(timeline, chain);
        let mut steps = Vec::new();
        for number in 0..turns.len() {
            walk.turn(&turns[..=number], selector, &mut steps);
        }
        Self { turns, steps }
    }

    /// The step of a request of this chain.
    pub fn step(&self, request: u32) -> &ToolRequest {
        let first = self.turns[0].start;
        &self.steps[(request - first) as usize]
    }

    /// Steps of a turn.
    pub fn steps_of(&self, turn: &Range<u32>) -> &[ToolRequest] {
        let first = self.turns[0].start;
        &self.steps[(turn.start - first) as usize..(turn.end - first) as usize]
    }
}

struct SetsWalk<'a> {
    inventory: &'a Inventory,
    handling: &'a Handling,
    learned: Arc<ToolSet>,
    all: Arc<ToolSet>,
    /// The two sets joined last, and what they make: from request to request they seldom change.
    joined: Option<[Arc<ToolSet>; 3]>,
}

impl SetsWalk<'_> {
    fn turn(&mut self, turns: &[Range<u32>], selector: &Selector<'_>, steps: &mut Vec<ToolRequest>) {
        let turn = &turns[turns.len() - 1];
        let mut base = self.base(&selector(turns, turn.start));
        let mut back = Arc::clone(&self.learned);
        let mut lost = ToolSet::new();
        for request in turn.clone() {
            if request > turn.start && self.handling.continuation_all {
                base = Arc::clone(&self.all);
            } else if request > turn.start && self.handling.every_request {
                base = self.base(&selector(turns, request));
            }
            let step = self.request(request, &base, &mut back, &mut lost);
            steps.push(step);
        }
        if self.handling.learn {
            self.learned = back;
        }
    }

    /// One request, given the set of its turn, the tools that came back so far and those that never will.
    fn request(
        &mut self,
        request: u32,
        base: &Arc<ToolSet>,
        back: &mut Arc<ToolSet>,
        lost: &mut ToolSet,
    ) -> ToolRequest {
        let visible = self.joined(base, back);
        let missed = self.missed(request, &visible, lost);
        let recovered = !missed.is_empty() && self.handling.retries > 0 && self.handling.expand != Expand::Fail;
        let before = self.head(base, back);
        if recovered {
            *back = Arc::new(back.iter().copied().chain(missed.iter().map(|used| used.tool)).collect());
        } else {
            lost.extend(missed.iter().map(|used| used.tool));
        }
        ToolRequest { visible, head: self.head(base, back), head_before: before, missed, recovered }
    }

    fn head(&mut self, base: &Arc<ToolSet>, back: &Arc<ToolSet>) -> Arc<ToolSet> {
        match self.handling.expand {
            Expand::RetryRebuild => self.joined(base, back),
            Expand::RetryAppend | Expand::Fail => Arc::clone(base),
        }
    }

    fn joined(&mut self, one: &Arc<ToolSet>, other: &Arc<ToolSet>) -> Arc<ToolSet> {
        if other.is_subset(one) {
            return Arc::clone(one);
        }
        if let Some([first, second, both]) = &self.joined
            && Arc::ptr_eq(first, one)
            && Arc::ptr_eq(second, other)
        {
            return Arc::clone(both);
        }
        let both = Arc::new(one.union(other).copied().collect());
        self.joined = Some([Arc::clone(one), Arc::clone(other), Arc::clone(&both)]);
        both
    }

    fn missed(&self, request: u32, visible: &ToolSet, lost: &ToolSet) -> Vec<ListedCall> {
        let mut seen = ToolSet::new();
        let hidden = |used: &&ListedCall| !visible.contains(&used.tool) && !lost.contains(&used.tool);
        self.inventory.uses(request).iter().filter(hidden).filter(|used| seen.insert(used.tool)).copied().collect()
    }

    /// Always and proposed tools; by the rules about empty sets.
    fn base(&self, selection: &ToolSelection) -> Arc<ToolSet> {
        let mut set = match selection {
            ToolSelection::All => return Arc::clone(&self.all),
            ToolSelection::Nothing => return Arc::default(),
            ToolSelection::Tools(proposed) => self.bounded(proposed),
        };
        set.extend(&self.handling.always);
        let is_empty = set.is_empty() && self.learned.is_empty();
        if is_empty && self.handling.all_if_empty { Arc::clone(&self.all) } else { Arc::new(set) }
    }

    fn bounded(&self, proposed: &[u32]) -> ToolSet {
        let (least, most) = self.handling.proposed;
        let most = most.unwrap_or(usize::MAX);
        let mut set: ToolSet = proposed.iter().copied().take(most).collect();
        let fill = (0..self.inventory.tools.len() as u32).filter(|tool| !proposed.contains(tool));
        let short = least.min(most).saturating_sub(set.len());
        set.extend(fill.take(short));
        set
    }
}
