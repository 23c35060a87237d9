//! Predictors: which tools they propose for a turn, before it is known what it will use.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::Value;

use crate::base::error::{Error, Result};
use crate::base::id::Id;
use crate::logs::timeline::requests::Timeline;
use crate::logs::trace::Millis;
use crate::whatif::tools::inventory::Inventory;
use crate::whatif::tools::plan::ToolSelection;
use crate::whatif::tools::{Bag, Queries, ToolSet};

/// Tools, each where it first comes.
fn distinct(tools: impl Iterator<Item = u32>) -> ToolSelection {
    let mut seen = ToolSet::new();
    ToolSelection::Tools(tools.filter(|tool| seen.insert(*tool)).collect())
}

/// Tools of the last `back` turns of this chain before the last of `turns`, latest turn first.
pub fn recency(inventory: &Inventory, turns: &[Range<u32>], back: usize) -> ToolSelection {
    let earlier = turns[..turns.len() - 1].iter().rev().take(back);
    distinct(earlier.flat_map(|turn| inventory.uses_of(turn.clone())).map(|used| used.tool))
}

/// Tools that the last of `turns` really uses: no prediction can be better.
pub fn foreseen(inventory: &Inventory, turns: &[Range<u32>]) -> ToolSelection {
    distinct(inventory.uses_of(turns[turns.len() - 1].clone()).map(|used| used.tool))
}

/// Tools whose description is closest to what was asked for (policies.md 5.1): cosine over term counts.
pub struct TfCosine<'a> {
    pub inventory: &'a Inventory,
    /// What was asked for, in terms.
    pub queries: Queries<'a>,
    /// Most tools; none at all if 0.
    pub top_k: usize,
    /// Least score, in millionths.
    pub min_score_ppm: u64,
    /// Messages that are stored when the query is made, the current one among them: it counts twice.
    pub stored_messages: usize,
}

impl TfCosine<'_> {
    fn query(&self, request: u32) -> Bag {
        let asked = self.queries.asked(request, None);
        let mut query = self.queries.before(request, self.stored_messages.saturating_sub(1));
        let times = if self.stored_messages > 0 { 2 } else { 1 };
        for (term, count) in asked {
            *query.entry(term).or_default() += times * count;
        }
        query
    }

    fn ranked(&self, query: &Bag) -> Vec<u32> {
        let norm = query.values().map(|count| square(u64::from(*count))).sum::<u128>();
        let scored = (0u32..).zip(&self.inventory.tools).map(|(index, tool)| (Cosine::of(query, &tool.terms), index));
        let mut good = scored.filter(|(cosine, _)| cosine.is_at_least(self.min_score_ppm, norm)).collect::<Vec<_>>();
        // Stable: ties keep catalog order.
        good.sort_by(|(one, _), (other, _)| other.cmp_score(one));
        good.into_iter().take(self.top_k).map(|(_, index)| index).collect()
    }

    /// Tools whose name occurs in the query, as one term or as all terms of the name.
    fn named(&self, query: &Bag) -> Vec<u32> {
        let occurs = |name: &str| {
            let mut terms = crate::base::words::terms(name).peekable();
            terms.peek().is_some() && terms.all(|term| query.contains_key(&term.hash()))
        };
        let tools = (0u32..).zip(&self.inventory.tools);
        tools.filter(|(_, tool)| occurs(&tool.definition.name)).map(|(index, _)| index).collect()
    }

    /// The tools for the last of `turns`.
    pub fn select(&self, turns: &[Range<u32>]) -> ToolSelection {
        if self.top_k == 0 {
            return ToolSelection::Tools(Vec::new());
        }
        let query = self.query(turns[turns.len() - 1].start);
        if query.is_empty() || self.inventory.tools.len() <= self.top_k {
            return ToolSelection::All;
        }
        let mut tools = self.ranked(&query);
        let ranked = tools.iter().copied().collect::<ToolSet>();
        tools.extend(self.named(&query).into_iter().filter(|tool| !ranked.contains(tool)));
        ToolSelection::Tools(tools)
    }
}

/// A cosine to one query, without the query's own length.
#[derive(Clone, Copy)]
struct Cosine {
    dot: u128,
    norm: u128,
}

impl Cosine {
    fn of(query: &Bag, terms: &[(u64, u32)]) -> Self {
        let dot =
            terms.iter().filter_map(|(term, count)| Some(u128::from(*query.get(term)?) * u128::from(*count))).sum();
        Self { dot, norm: terms.iter().map(|(_, count)| square(u64::from(*count))).sum() }
    }

    /// dot / (|query| · |tool|) >= ppm / 10^6, without a root. A tool without terms has the score 0.
    fn is_at_least(&self, ppm: u64, query_norm: u128) -> bool {
        let ratio = square(1_000_000);
        self.dot * self.dot * ratio >= square(ppm) * query_norm * self.norm && (self.dot > 0 || ppm == 0)
    }

    fn cmp_score(&self, other: &Self) -> std::cmp::Ordering {
        let mine = self.dot * self.dot * other.norm.max(1);
        mine.cmp(&(other.dot * other.dot * self.norm.max(1)))
    }
}

fn square(value: u64) -> u128 {
    u128::from(value) * u128::from(value)
}

/// When which tool followed which, over all chains.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Successions {
    /// By first and second tool: times at which the second was known, in order.
    times: BTreeMap<(u32, u32), Vec<Millis>>,
}

impl Successions {
    /// Reads them off a timeline.
    pub fn new(timeline: &Timeline, inventory: &Inventory) -> Self {
        let mut times = BTreeMap::<(u32, u32), Vec<Millis>>::new();
        for chain in &timeline.chains {
            let mut last = None;
            for request in chain.requests.clone() {
                for used in inventory.uses(request) {
                    if let Some(last) = last.replace(used.tool) {
                        let known = timeline.request(request).end;
                        times.entry((last, used.tool)).or_default().push(known);
                    }
                }
            }
        }
        times.values_mut().for_each(|times| times.sort_unstable());
        Self { times }
    }

    /// The `top` usual successors of the last tool before the last of `turns`, by what was known before `start`.
    pub fn select(&self, inventory: &Inventory, turns: &[Range<u32>], start: Millis, top: usize) -> ToolSelection {
        let before = turns[0].start..turns[turns.len() - 1].start;
        let last = before.rev().find_map(|request| inventory.uses(request).last());
        let next = last.map(|used| self.after(used.tool, start)).unwrap_or_default();
        ToolSelection::Tools(next.into_iter().take(top).collect())
    }

    /// Tools that followed one before a time, commonest first, ties in catalog order.
    pub fn after(&self, tool: u32, before: Millis) -> Vec<u32> {
        let counts = self.times.range((tool, 0)..=(tool, u32::MAX));
        let counts = counts.map(|((_, next), times)| (times.partition_point(|time| *time < before), *next));
        let mut counts = counts.filter(|(count, _)| *count > 0).collect::<Vec<_>>();
        counts.sort_by_key(|(count, next)| (std::cmp::Reverse(*count), *next));
        counts.into_iter().map(|(_, next)| next).collect()
    }
}

/// Predictions made elsewhere, by `message.id` of a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Predictions {
    by_message: BTreeMap<Id, Vec<String>>,
}

impl Predictions {
    /// Reads lines of `{"message_id": "msg_…", "tools": ["…"]}`; `place` is the file, for messages. An error if a line
    /// is something else.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let by_message = lines.map(|(number, line)| {
            prediction(line).ok_or_else(|| {
                Error::failed(format!("{place}:{}: no prediction", number + 1))
                    .hint("each line is {\"message_id\": \"msg_…\", \"tools\": [\"Read\", …]}")
            })
        });
        Ok(Self { by_message: by_message.collect::<Result<_>>()? })
    }

    /// The first of them for any request of the last of `turns`. Unknown names are dropped, order is kept.
    pub fn select(&self, timeline: &Timeline, inventory: &Inventory, turns: &[Range<u32>]) -> ToolSelection {
        let mut requests = turns[turns.len() - 1].clone();
        let predicted = requests.find_map(|at| self.by_message.get(&timeline.request(at).id));
        distinct(predicted.into_iter().flatten().filter_map(|name| inventory.find(name)))
    }

    /// Distinct names in all predictions that no tool has.
    pub fn unknown<'a>(&'a self, inventory: &Inventory) -> BTreeSet<&'a str> {
        let names = self.by_message.values().flatten().map(String::as_str);
        names.filter(|name| inventory.find(name).is_none()).collect()
    }
}

fn prediction(line: &str) -> Option<(Id, Vec<String>)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let tools = value.get("tools")?.as_array()?.iter().map(|tool| Some(tool.as_str()?.to_owned()));
    Some((Id::of(value.get("message_id")?.as_str()?.as_bytes()), tools.collect::<Option<_>>()?))
}
