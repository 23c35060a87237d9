//! The policy `pick-tools`: of all tools those few are sent whose words score best against the person's message. Scores are
//! fractions of whole numbers and are compared as such. The engine behind it is that of `tool-filter`.

pub mod outcome;

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;

use crate::base::error::{Error, Result};
use crate::base::id::{Id, IdMap};
use crate::logs::timeline::requests::Timeline;
use crate::logs::timeline::words::Word;
use crate::logs::trace::Place;
use crate::whatif::catalog::read::MCP_PREFIX;
use crate::whatif::catalog::{DefinitionSource, ToolDefinition};
use crate::whatif::pick_tools::outcome::{Pick, PickTools, Picks, RecallAt, SCORE_BINS};
use crate::whatif::sim::figures::Portion;
use crate::whatif::tool_filter::facts;
use crate::whatif::tool_filter::params::Retry;
use crate::whatif::tools::inventory::{Inventory, StopWords, Tool};
use crate::whatif::tools::plan::{Expand, Handling, ToolPlan, ToolSelection};
use crate::whatif::tools::stage::{Chains, Definitions};
use crate::whatif::tools::{Bag, Queries, ToolSet, Tools, counted_part, turns};

/// What the user may set.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Params {
    pub max_candidates: usize,
    pub min_score: f64,
    pub allow_unsafe: bool,
    pub overlap: Overlap,
    pub on_empty: Empty,
    #[serde(deserialize_with = "crate::whatif::tool_filter::params::names")]
    pub always: Vec<String>,
    pub scope: PickScope,
    pub budget_tools: usize,
    pub unsafe_default: UnsafeDefault,
    pub query_chars: u32,
    pub query_context: usize,
    /// How missed tools come back.
    pub expand: Expand,
}

/// The score of a tool with words T for a query with words Q.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// |Q∩T| / |T|.
    Tool,
    /// |Q∩T| / |Q|.
    Query,
    /// |Q∩T| / |Q∪T|.
    Jaccard,
    /// |Q∩T| / min(|Q|, |T|), the overlap coefficient.
    #[serde(rename = "overlap")]
    Smaller,
    /// Cosine over counts.
    Cosine,
}

impl Overlap {
    /// The value of the parameter, and its formula.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Tool => ("tool", "|Q∩T| / |T|"),
            Self::Query => ("query", "|Q∩T| / |Q|"),
            Self::Jaccard => ("jaccard", "|Q∩T| / |Q∪T|"),
            Self::Smaller => ("overlap", "|Q∩T| / min(|Q|, |T|)"),
            Self::Cosine => ("cosine", "√((Σ q·t)² / (Σ q² · Σ t²)), q and t: how often a word stands in Q and T"),
        }
    }
}

/// What a turn without picks is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Empty {
    /// No tool at all.
    None,
    All,
    Always,
}

/// When tools are picked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PickScope {
    /// When a person wrote.
    Turn,
    /// Before every request.
    Request,
}

/// What tools are that do not say whether they are safe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnsafeDefault {
    /// Safe.
    Explicit,
    /// Unsafe unless they only read or say that they destroy nothing.
    Spec,
}

impl Params {
    /// Whether the values make sense.
    pub fn check(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.min_score) {
            return Err(Error::usage(format!("min_score={}: a score is from 0 to 1", self.min_score)));
        }
        if self.query_chars == 0 {
            return Err(Error::usage("query_chars=0: nothing of what was asked for would count"));
        }
        if !(self.query_chars as usize).is_multiple_of(Word::STEP_CHARS) {
            let message = format!(
                "query_chars={}: of a word only is known in which {} code points of the prompt it begins",
                self.query_chars,
                Word::STEP_CHARS
            );
            return Err(Error::usage(message).hint(format!("give a multiple of {}", Word::STEP_CHARS)));
        }
        Ok(())
    }
}

/// Constants of the policy (`rules/policies/pick_tools.toml` beside its parameters).
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename = "part")]
pub struct Rules {
    pub curve: PickCurve,
    /// When the report speaks plainly.
    pub verdict: PickVerdict,
    /// What asking for a tool costs.
    pub retry: Retry,
}

/// See [`Rules`].
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct PickCurve {
    pub picks: Vec<usize>,
}

/// See [`Rules`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct PickVerdict {
    pub broken_pct: u64,
}

/// A score: a fraction, squared for `cosine`, with what it is made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Score {
    /// Above the line.
    pub numerator: u64,
    /// Below it; never 0.
    pub denominator: u64,
    /// |Q∩T|.
    pub shared: u64,
    is_squared: bool,
}

/// A score's least part, in which `min_score` is held.
const PPM: u64 = 1_000_000;

impl Score {
    /// The score of a tool's words for a query's; both hold counts by hash.
    pub fn new(overlap: Overlap, query: &Bag, tool: &[(u64, u32)]) -> Self {
        #[cfg(test)]
        crate::base::id::work::step();
        let shared = tool.iter().filter(|(word, _)| query.contains_key(word)).count() as u64;
        let (q, t) = (query.len() as u64, tool.len() as u64);
        let (numerator, denominator) = match overlap {
            Overlap::Tool => (shared, t),
            Overlap::Query => (shared, q),
            Overlap::Jaccard => (shared, q + t - shared),
            Overlap::Smaller => (shared, q.min(t)),
            Overlap::Cosine => cosine_squared(query, tool),
        };
        Self { numerator, denominator: denominator.max(1), shared, is_squared: overlap == Overlap::Cosine }
    }

    /// Whether it is at least so many millionths.
    pub fn is_at_least(&self, ppm: u64) -> bool {
        self.compare_with(ppm, PPM).is_ge()
    }

    /// As a number, for print; scores are compared as fractions.
    pub fn value(&self) -> f64 {
        let value = self.numerator as f64 / self.denominator as f64;
        if self.is_squared { value.sqrt() } else { value }
    }

    /// Compares two scores of one formula; no rounding.
    pub fn compare(&self, other: &Self) -> Ordering {
        let (mine, theirs) = (u128::from(self.numerator), u128::from(other.numerator));
        (mine * u128::from(other.denominator)).cmp(&(theirs * u128::from(self.denominator)))
    }

    /// Its bin: 0, then tenths, rounded up.
    fn bin(&self) -> usize {
        (1..SCORE_BINS).rev().find(|tenths| self.compare_with(*tenths as u64 - 1, 10).is_gt()).unwrap_or(0)
    }

    /// Compares it with `part / whole`, which is squared where the score is.
    fn compare_with(&self, part: u64, whole: u64) -> Ordering {
        let squared = |value: u64| u128::from(value) * u128::from(value);
        let power = |value: u64| if self.is_squared { squared(value) } else { value.into() };
        (u128::from(self.numerator) * power(whole)).cmp(&(power(part) * u128::from(self.denominator)))
    }
}

fn cosine_squared(query: &Bag, tool: &[(u64, u32)]) -> (u64, u64) {
    let square = |count: &u32| u64::from(*count) * u64::from(*count);
    let dot =
        tool.iter().filter_map(|(word, count)| Some(u64::from(*query.get(word)?) * u64::from(*count))).sum::<u64>();
    let norms = query.values().map(square).sum::<u64>() * tool.iter().map(|(_, count)| square(count)).sum::<u64>();
    (dot * dot, norms)
}

/// Indices of the tools that have a word, by the word's hash.
type ToolsByWord = IdMap<u64, Vec<u32>>;

/// Ranks tools for queries.
pub struct Picker<'a> {
    inventory: &'a Inventory,
    by_word: &'a ToolsByWord,
    queries: Queries<'a>,
    params: &'a Params,
    min_score_ppm: u64,
}

impl<'a> Picker<'a> {
    /// What a policy picks by, for one timeline.
    fn new(timeline: &'a Timeline, policy: &'a PickPolicy) -> Self {
        let PickPolicy { inventory, by_word, stop, params, .. } = policy;
        let min_score_ppm = (params.min_score * 1e6).round() as u64;
        Self { inventory, by_word, queries: Queries::new(timeline, stop, |text| &text.words), params, min_score_ppm }
    }

    /// What is asked for at a request of a turn.
    pub fn query(&self, turn: &Range<u32>, request: u32) -> Bag {
        let mut query = self.queries.asked(turn.start, Some(self.params.query_chars));
        if self.params.query_context > 0 {
            for (word, count) in self.queries.before(request, self.params.query_context) {
                *query.entry(word).or_default() += count;
            }
        }
        query
    }

    /// All tools that score enough and may be picked, best first. Ties: more shared words, then catalog order.
    pub fn ranked(&self, query: &Bag) -> Vec<(u32, Score)> {
        // What shares no word scores nothing.
        let sharing = || query.keys().filter_map(|word| self.by_word.get(word)).flatten().copied().collect();
        let tools = if self.min_score_ppm > 0 { sharing() } else { self.inventory.all() };
        let tools = tools.into_iter().map(|index| (index, &self.inventory.tools[index as usize]));
        let safe = tools.filter(|(_, tool)| self.may_pick(tool));
        let scored = safe.map(|(index, tool)| (index, Score::new(self.params.overlap, query, &tool.words)));
        let mut good = scored.filter(|(_, score)| score.is_at_least(self.min_score_ppm)).collect::<Vec<_>>();
        good.sort_by(|(at, one), (other_at, other)| {
            other.compare(one).then_with(|| (Reverse(one.shared), at).cmp(&(Reverse(other.shared), other_at)))
        });
        good
    }

    /// The tools that picks are taken from, best first, and whether the catalog was too large to be scored.
    fn candidates(&self, query: &Bag) -> (Vec<(u32, Score)>, bool) {
        let budget = self.params.budget_tools;
        let is_over = budget > 0 && self.inventory.tools.len() > budget;
        (if is_over { self.first() } else { self.ranked(query) }, is_over)
    }

    /// The picks, and whether the catalog was too large to be scored.
    pub fn picks(&self, query: &Bag) -> (Vec<(u32, Score)>, bool) {
        let (mut picks, is_over) = self.candidates(query);
        picks.truncate(self.params.max_candidates);
        (picks, is_over)
    }

    /// What is shown at a request of the last of `turns`, besides what always is.
    fn select(&self, turns: &[Range<u32>], request: u32) -> ToolSelection {
        let (picks, _) = self.picks(&self.query(&turns[turns.len() - 1], request));
        match self.params.on_empty {
            Empty::All if picks.is_empty() => ToolSelection::All,
            Empty::None if picks.is_empty() => ToolSelection::Nothing,
            _ => ToolSelection::Tools(picks.into_iter().map(|(tool, _)| tool).collect()),
        }
    }

    /// Tools in catalog order, unscored.
    fn first(&self) -> Vec<(u32, Score)> {
        let unscored = Score { numerator: 0, denominator: 1, shared: 0, is_squared: false };
        let tools = (0u32..).zip(&self.inventory.tools).filter(|(_, tool)| self.may_pick(tool));
        tools.map(|(index, _)| (index, unscored)).collect()
    }

    fn may_pick(&self, tool: &Tool) -> bool {
        self.params.allow_unsafe || is_safe(&tool.definition, self.params.unsafe_default)
    }
}

/// Whether a tool is safe: as its author says, else as its MCP hints say.
pub fn is_safe(definition: &ToolDefinition, default: UnsafeDefault) -> bool {
    match (definition.safe, definition.destructive) {
        (Some(safe), _) => safe,
        (None, Some(destructive)) => !destructive,
        (None, None) => default == UnsafeDefault::Explicit || definition.read_only == Some(true),
    }
}

/// The policy over one timeline. It acts on main threads: picking needs what a person wrote.
pub struct PickPolicy {
    params: Params,
    rules: Rules,
    stop: StopWords,
    inventory: Inventory,
    by_word: ToolsByWord,
    handling: Handling,
    prefixes: Option<Vec<u64>>,
    catalog_notes: Vec<String>,
}

impl PickPolicy {
    /// Gets ready. The parameters have been checked. `prefixes` are tokens of the static prefix by chain, where known.
    pub fn new(timeline: &Timeline, params: &Params, rules: &Rules, tools: &Tools, prefixes: Option<&[u64]>) -> Self {
        let inventory = Inventory::new(timeline, tools);
        let handling = Handling {
            always: inventory.matching(&params.always),
            proposed: (0, None),
            all_if_empty: false,
            expand: params.expand,
            retries: 1,
            learn: false,
            continuation_all: false,
            every_request: params.scope == PickScope::Request,
        };
        let mut by_word = ToolsByWord::default();
        for (index, tool) in (0..).zip(&inventory.tools) {
            tool.words.iter().for_each(|(word, _)| by_word.entry(*word).or_default().push(index));
        }
        let (params, rules, stop) = (params.clone(), rules.clone(), tools.stop.clone());
        let prefixes = prefixes.map(<[u64]>::to_vec);
        let mut catalog_notes = tools.notes();
        catalog_notes.extend(inventory.unknown(&params.always, tools));
        Self { params, rules, stop, inventory, by_word, handling, prefixes, catalog_notes }
    }

    /// What was picked on all main threads, by the request before which it was.
    pub fn picks_by_request(&self, timeline: &Timeline) -> BTreeMap<Id, Vec<Pick>> {
        let chains = (0u32..).zip(&timeline.chains).filter(|(_, chain)| chain.place == Place::Main);
        let picks = chains.flat_map(|(number, _)| self.picks(timeline, number));
        picks.map(|picks| (picks.request, picks.picks)).collect()
    }

    /// What was picked for every turn (or request) of a chain, with reasons.
    pub fn picks(&self, timeline: &Timeline, chain: u32) -> Vec<Picks> {
        let picker = Picker::new(timeline, self);
        let asked = |turn: &Range<u32>| match self.params.scope {
            PickScope::Turn => turn.start..turn.start + 1,
            PickScope::Request => turn.clone(),
        };
        let turns = turns(timeline, chain);
        let requests = turns.iter().flat_map(|turn| asked(turn).map(move |request| (turn, request)));
        let picks = requests.map(|(turn, request)| {
            let query = picker.query(turn, request);
            let (picks, budget_fallback) = picker.picks(&query);
            let picks = picks.into_iter().map(|(tool, score)| self.pick(tool, score, &query)).collect();
            Picks { request: timeline.request(request).id, picks, budget_fallback }
        });
        picks.collect()
    }

    fn pick(&self, tool: u32, score: Score, query: &Bag) -> Pick {
        let tool = &self.inventory.tools[tool as usize];
        let words = tool.words.iter().zip(&tool.texts).filter(|((word, _), _)| query.contains_key(word));
        let mut matched = words.map(|(_, text)| text.clone()).collect::<Vec<_>>();
        matched.sort_unstable();
        let Score { numerator, denominator, is_squared, .. } = score;
        let matched = if score.shared > 0 { matched } else { Vec::new() };
        let name = tool.definition.name.clone();
        Pick { tool: name, score: score.value(), numerator, denominator, is_squared, matched }
    }

    /// The best pick of the first turn that has one with a score.
    fn example(&self, timeline: &Timeline) -> Option<Pick> {
        let chains = (0u32..).zip(&timeline.chains).filter(|(_, chain)| chain.place == Place::Main);
        let scored = |chain| self.picks(timeline, chain).into_iter().filter(|picks| !picks.budget_fallback);
        chains.flat_map(|(chain, _)| scored(chain)).find_map(|picks| picks.picks.into_iter().next())
    }

    /// Recall, empty turns, what was needed and not safe.
    pub fn outcome(&self, timeline: &Timeline) -> PickTools {
        let picker = Picker::new(timeline, self);
        let mut found = PickTools {
            catalog: facts(&self.inventory),
            stop_version: self.stop.version,
            not_estimated: self.not_estimated(),
            ..PickTools::default()
        };
        for (number, chain) in (0u32..).zip(&timeline.chains) {
            if chain.place != Place::Main {
                found.chains_left_alone += 1;
                continue;
            }
            let plan = self.plan(timeline, number);
            for turn in &plan.turns {
                if let Some(counted) = counted_part(timeline, turn) {
                    self.turn(&picker, &plan, turn, &counted, &mut found);
                }
            }
        }
        found.notes = self.notes(&found);
        found
    }

    /// What was asked for stands where the turn begins, what was used of it in the part that counts.
    fn turn(
        &self,
        picker: &Picker<'_>,
        plan: &ToolPlan,
        turn: &Range<u32>,
        counted: &Range<u32>,
        found: &mut PickTools,
    ) {
        let used = self.inventory.uses_of(counted.clone()).map(|used| used.tool).collect::<ToolSet>();
        found.turns.count(!used.is_empty());
        if used.is_empty() {
            return;
        }
        let query = picker.query(turn, turn.start);
        let (ranked, is_over) = picker.candidates(&query);
        let best = ranked.first().filter(|_| self.params.max_candidates > 0);
        found.empty.count(best.is_none());
        found.budget_fallbacks += u64::from(is_over);
        found.scores[best.map_or(0, |(_, score)| score.bin())] += 1;
        found.unsafe_needed +=
            used.iter().filter(|tool| !picker.may_pick(&self.inventory.tools[**tool as usize])).count() as u64;
        let ranked = ranked.into_iter().map(|(tool, _)| tool).collect::<Vec<_>>();
        let is_mcp = |tool: &u32| self.inventory.tools[*tool as usize].definition.name.starts_with(MCP_PREFIX);
        let ranked_mcp = ranked.iter().copied().filter(is_mcp).collect::<Vec<_>>();
        let used_mcp = used.iter().copied().filter(is_mcp).collect::<ToolSet>();
        for &picks in &self.rules.curve.picks {
            add_recall(found.recall.entry(picks).or_default(), &used, ranked.iter().take(picks));
            if !used_mcp.is_empty() {
                add_recall(found.recall_mcp.entry(picks).or_default(), &used_mcp, ranked_mcp.iter().take(picks));
            }
        }
        let missed = plan.steps_of(counted).iter().flat_map(|step| &step.missed).map(|used| used.tool);
        let missed = missed.collect::<ToolSet>();
        found.shown.recall.add((used.len() - missed.len()) as u64, used.len() as u64);
        found.shown.turns_covered.count(missed.is_empty());
    }

    fn not_estimated(&self) -> Option<String> {
        (self.inventory.source == DefinitionSource::Names)
            .then(|| "unknown: logs hold no tool definitions; bring them with --tool-catalog".into())
    }

    /// The verdict comes first, and in plain words.
    fn notes(&self, found: &PickTools) -> Vec<String> {
        let covered = found.shown.turns_covered;
        let broken = Portion { k: covered.n - covered.k, n: covered.n };
        let mut notes = Vec::new();
        if broken.n > 0 && broken.k * 100 >= self.rules.verdict.broken_pct * broken.n {
            notes.push(format!(
                "picking by keywords would have broken {} of {} turns that used tools: what they called was not shown",
                broken.k, broken.n
            ));
        }
        if self.inventory.source == DefinitionSource::Names {
            notes.push("descriptions of built-in tools are devboy's own, other tools are known by name alone".into());
        }
        notes.push(
            "truth is what was called with every tool in sight; with fewer the model might have called others".into(),
        );
        notes.extend(self.catalog_notes.iter().cloned());
        notes
    }
}

impl Chains for PickPolicy {
    fn plan(&self, timeline: &Timeline, chain: u32) -> ToolPlan {
        let picker = Picker::new(timeline, self);
        // Nobody types to a subagent: it keeps its tools.
        let select = |turns: &[Range<u32>], request| match timeline.chain(chain).place {
            Place::Main => picker.select(turns, request),
            _ => ToolSelection::All,
        };
        ToolPlan::new(timeline, chain, &self.inventory, &select, &self.handling)
    }

    fn definitions(&self, _: &Timeline, chain: u32) -> Option<Definitions> {
        if self.inventory.source == DefinitionSource::Names {
            return None;
        }
        let prefix = self.prefixes.as_ref().map(|prefixes| prefixes[chain as usize]);
        let tokens = self.inventory.sizes(prefix, false);
        let (expand, framing_tokens) = (self.params.expand, self.rules.retry.framing_tokens);
        Some(Definitions { trimmed: vec![0; tokens.len()], tokens, fallback: 0, expand, framing_tokens })
    }

    fn edition(&self, head: &ToolSet) -> u64 {
        self.inventory.edition(head)
    }
}

fn add_recall<'a>(sums: &mut RecallAt, used: &ToolSet, picks: impl Iterator<Item = &'a u32>) {
    let met = picks.filter(|tool| used.contains(tool)).count();
    sums.recall.add(met as u64, used.len() as u64);
    sums.turns_covered.count(met == used.len());
}
