//! Adds up what the plans of all chains show, and what a fixed list covers, with and without the tools of the last
//! turns: the figures by which a list is judged, from names alone.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::logs::timeline::requests::Timeline;
use crate::logs::trace::Place;
use crate::report::numbers::counted;
use crate::whatif::catalog::DefinitionSource;
use crate::whatif::sim::figures::Portion;
use crate::whatif::tool_filter::Filter;
use crate::whatif::tool_filter::result::{
    ALL_TURNS, BreakEven, CatalogFacts, ListCoverage, ProposalAccuracy, RecencyCoverage, ToolFilter, ToolRegret,
    Unexplained,
};
use crate::whatif::tools::inventory::Inventory;
use crate::whatif::tools::plan::{ToolPlan, ToolRequest};
use crate::whatif::tools::stage::{Chains, Definitions};
use crate::whatif::tools::{ToolSet, counted_part, turns};

impl Filter {
    /// What the tools alone show: misses, sizes, break-even.
    pub fn outcome(&self, timeline: &Timeline) -> ToolFilter {
        let mut sums = FilterSums::new(timeline, self);
        (0..timeline.chains.len() as u32).for_each(|chain| sums.chain(chain));
        sums.done()
    }
}

/// Sums over chains.
pub(crate) struct FilterSums<'a> {
    timeline: &'a Timeline,
    filter: &'a Filter,
    found: ToolFilter,
    regret: Vec<ToolRegret>,
    /// By tool: requests that were shown it.
    shown: Vec<u64>,
    /// Tokens of the fallback.
    added_tokens: u64,
    /// Requests with a miss, and tokens of the definitions that they missed.
    missed_requests: u64,
    missed_tokens: u64,
    context_tokens: u64,
    write_5m: u64,
    write_1h: u64,
}

impl<'a> FilterSums<'a> {
    fn new(timeline: &'a Timeline, filter: &'a Filter) -> Self {
        Self {
            timeline,
            filter,
            found: ToolFilter::default(),
            regret: filter.inventory.tools.iter().map(regret).collect(),
            shown: vec![0; filter.inventory.tools.len()],
            added_tokens: 0,
            missed_requests: 0,
            missed_tokens: 0,
            context_tokens: 0,
            write_5m: 0,
            write_1h: 0,
        }
    }

    fn chain(&mut self, chain: u32) {
        let plan = self.filter.plan(self.timeline, chain);
        let definitions = self.filter.definitions(self.timeline, chain);
        let mut head_before: Option<&Arc<ToolSet>> = None;
        for turn in &plan.turns {
            if let Some(turn) = counted_part(self.timeline, turn) {
                self.turn(&plan, &turn);
            }
            for (request, step) in turn.clone().zip(plan.steps_of(turn)) {
                let changed = head_before.replace(&step.head).is_some_and(|before| *before != step.head_before);
                if self.timeline.request(request).counts() {
                    self.request(request, step, definitions.as_ref());
                    self.found.set_changes += u64::from(changed) + u64::from(step.head != step.head_before);
                }
            }
        }
    }

    fn turn(&mut self, plan: &ToolPlan, turn: &Range<u32>) {
        let steps = plan.steps_of(turn);
        let used = self.filter.inventory.uses_of(turn.clone()).map(|used| used.tool).collect::<ToolSet>();
        self.found.turns.count(!used.is_empty());
        if !used.is_empty() {
            self.found.turns_missed.count(steps.iter().any(|step| !step.missed.is_empty()));
        }
        used.iter().for_each(|tool| self.regret[*tool as usize].turns += 1);
        accuracy(&mut self.found.accuracy, &steps[0].visible, &used, &self.filter.handling.always);
    }

    fn request(&mut self, request: u32, step: &ToolRequest, definitions: Option<&Definitions>) {
        let found = &mut self.found;
        let context = self.timeline.request(request).context();
        let usage = &self.timeline.request(request).usage();
        found.requests += 1;
        found.visible.add(step.visible.len() as u64, 1);
        found.retries += u64::from(step.recovered);
        found.unrecovered += if step.recovered { 0 } else { step.missed.len() as u64 };
        self.context_tokens += context;
        self.write_5m += usage.cache_creation_5m;
        self.write_1h += usage.cache_creation_1h;
        if let Some(definitions) = definitions {
            *found.removed_tokens.get_or_insert(0) += definitions.removed(&step.head);
            self.added_tokens += definitions.added(&step.head);
            self.missed_tokens += definitions.missed(step);
        }
        self.missed_requests += u64::from(!step.missed.is_empty());
        for used in self.filter.inventory.uses(request) {
            self.regret[used.tool as usize].calls += 1;
            found.calls += 1;
        }
        for used in &step.missed {
            let regret = &mut self.regret[used.tool as usize];
            regret.misses += 1;
            regret.missed_context_tokens += context;
        }
        step.head.iter().for_each(|&tool| self.shown[tool as usize] += 1);
    }

    fn done(mut self) -> ToolFilter {
        let misses = self.regret.iter().map(|tool| tool.misses).sum();
        self.found.misses = Portion { k: misses, n: self.found.calls };
        self.found.break_even = self.break_even();
        for (regret, shown) in self.regret.iter_mut().zip(&self.shown) {
            regret.requests_hidden = self.found.requests - shown;
        }
        self.regret.sort_by(|one, other| {
            let key = |tool: &ToolRegret| (std::cmp::Reverse(tool.misses), std::cmp::Reverse(tool.calls));
            key(one).cmp(&key(other)).then_with(|| one.tool.cmp(&other.tool))
        });
        self.found.catalog = facts(&self.filter.inventory);
        self.found.not_estimated = self.not_estimated();
        self.found.unexplained = self.unexplained();
        self.found.notes = self.notes();
        ToolFilter { regret: self.regret, ..self.found }
    }

    /// The rule of thumb with this log's numbers, at the price of the lifetime that most writes have.
    fn break_even(&self) -> Option<BreakEven> {
        let requests = self.found.requests.max(1);
        let prices = &self.filter.rules.break_even;
        let removed = self.found.removed_tokens?;
        Some(BreakEven {
            removed_tokens: removed.saturating_sub(self.added_tokens) / requests,
            context_tokens: self.context_tokens / requests,
            definition_tokens: self.missed_tokens / self.missed_requests.max(1),
            read_u20: prices.read_u20,
            write_u20: if self.write_1h > self.write_5m { prices.write_1h_u20 } else { prices.write_5m_u20 },
            requests_per_miss: self.found.requests.checked_div(self.missed_requests),
        })
    }

    fn not_estimated(&self) -> Option<String> {
        let reason = match self.filter.inventory.source {
            _ if self.filter.is_idle() => return None,
            _ if self.filter.prefixes.is_none() => "unknown: the size of the static prefix is not known here",
            DefinitionSource::Names => "unknown: logs hold no tool definitions; bring them with --tool-catalog",
            DefinitionSource::Inferred if self.leaves_nothing() => {
                "unknown: system_tokens is as much as every static prefix, so nothing is left for definitions"
            }
            DefinitionSource::Inferred => return None,
            _ if self.hides_unsized_only() => "unknown: of no tool that would be hidden is the definition known",
            _ if self.fits_nowhere() => {
                "unknown: these definitions are larger than the static prefix of every chain, so they were not sent"
            }
            _ => return None,
        };
        Some(reason.to_owned())
    }

    fn leaves_nothing(&self) -> bool {
        let system = self.filter.params.system_tokens.unwrap_or(0);
        let mut prefixes = (0..self.timeline.chains.len() as u32).filter_map(|chain| self.filter.prefix(chain));
        prefixes.all(|prefix| prefix <= system)
    }

    fn hides_unsized_only(&self) -> bool {
        let tools = (0u32..).zip(&self.filter.inventory.tools);
        let hidden: Vec<_> = tools.filter(|(tool, _)| !self.filter.handling.always.contains(tool)).collect();
        let is_trimmed = self.filter.trimmed.iter().any(|&tokens| tokens > 0);
        !hidden.is_empty() && !is_trimmed && hidden.iter().all(|(_, tool)| tool.tokens.is_none())
    }

    fn fits_nowhere(&self) -> bool {
        self.unexplained().is_some_and(|gaps| gaps.chains > 0 && gaps.too_small == gaps.chains)
    }

    fn unexplained(&self) -> Option<Unexplained> {
        if !matches!(self.filter.inventory.source, DefinitionSource::Given | DefinitionSource::Logged) {
            return None;
        }
        let system = self.filter.params.system_tokens;
        let prefixes = (0..self.timeline.chains.len() as u32).filter_map(|chain| self.filter.prefix(chain));
        let total = self.filter.inventory.tools.iter().filter_map(|tool| tool.tokens).sum::<u64>();
        let prefixes = prefixes.collect::<Vec<_>>();
        let mut gaps = prefixes.iter().map(|s| s.abs_diff(total + system.unwrap_or(0))).collect::<Vec<_>>();
        gaps.sort_unstable();
        Some(Unexplained {
            chains: gaps.len() as u64,
            min: *gaps.first()?,
            median: gaps[(gaps.len() - 1) / 2],
            max: *gaps.last()?,
            too_small: prefixes.iter().filter(|s| **s < total).count() as u64,
            system_tokens: system,
        })
    }

    fn notes(&self) -> Vec<String> {
        let params = &self.filter.params;
        let inventory = &self.filter.inventory;
        let unsized_used = self.regret.iter().filter(|tool| tool.tokens.is_none() && tool.calls > 0).count();
        let has_sizes = matches!(inventory.source, DefinitionSource::Given | DefinitionSource::Logged);
        let mut notes = vec![
            "truth is what was called with every tool in sight; with fewer the model might have called others"
                .to_owned(),
        ];
        if params.skip_cacheable {
            notes.push("skip_cacheable=true: every model of Claude Code has a prompt cache, so nothing changes".into());
        }
        if inventory.source == DefinitionSource::Inferred {
            notes.push("inferred: sizes share S − system_tokens evenly among the tools that a project used".into());
        }
        if has_sizes && unsized_used > 0 {
            notes.push(format!(
                "used and not in the catalog: {}; hiding them counts as saving nothing",
                counted(unsized_used as u64, "tool")
            ));
        }
        if !params.fallback || params.max_retries == 0 {
            notes.push("without a tool for asking (fallback, max_retries) no miss is made good".into());
        }
        notes.extend(self.filter.notes.iter().cloned());
        notes
    }
}

fn regret(tool: &crate::whatif::tools::inventory::Tool) -> ToolRegret {
    ToolRegret { tool: tool.definition.name.clone(), tokens: tool.tokens, ..ToolRegret::default() }
}

pub(crate) fn facts(inventory: &Inventory) -> CatalogFacts {
    CatalogFacts {
        source: inventory.source.into_str().into(),
        tools: inventory.tools.len() as u64,
        unlisted: inventory.tools.len() as u64 - u64::from(inventory.listed),
        sized: inventory.tools.iter().filter(|tool| tool.tokens.is_some()).count() as u64,
        tokens: inventory.tools.iter().filter_map(|tool| tool.tokens).sum(),
    }
}

pub(crate) fn accuracy(sums: &mut ProposalAccuracy, visible: &ToolSet, used: &ToolSet, always: &ToolSet) {
    let met = visible.intersection(used).collect::<Vec<_>>();
    let rest = |set: &ToolSet| set.difference(always).count() as u64;
    let met_rest = met.iter().filter(|tool| !always.contains(tool)).count() as u64;
    sums.precision.add(met.len() as u64, visible.len() as u64);
    sums.recall.add(met.len() as u64, used.len() as u64);
    sums.precision_rest.add(met_rest, rest(visible));
    sums.recall_rest.add(met_rest, rest(used));
}

/// The figures for main threads: what a person's turns used. `recency_turns` are looked back on, and all.
pub fn coverage(timeline: &Timeline, inventory: &Inventory, always: &ToolSet, recency_turns: &[u32]) -> ListCoverage {
    let mut found = ListCoverage::default();
    let mut tools = ToolSet::new();
    for (number, chain) in (0u32..).zip(&timeline.chains) {
        if chain.place != Place::Main {
            continue;
        }
        let turns = turns(timeline, number);
        for turn in turns.iter().filter_map(|turn| counted_part(timeline, turn)) {
            let used = inventory.uses_of(turn.clone()).map(|used| used.tool).collect::<Vec<_>>();
            tools.extend(&used);
            used.iter().for_each(|tool| found.calls.count(always.contains(tool)));
            if !used.is_empty() {
                found.turns.count(used.iter().all(|tool| always.contains(tool)));
            }
        }
        for &back in recency_turns.iter().chain([&ALL_TURNS]) {
            recent((timeline, inventory), always, &turns, back, found.recency.entry(back).or_default());
        }
    }
    let calls = found.calls.n;
    found.recency.values_mut().for_each(|recency| recency.misses.n = calls);
    found.tools = tools.len() as u64;
    found
}

/// Misses where the list and the tools of the last `back` turns are shown.
fn recent(
    (timeline, inventory): (&Timeline, &Inventory),
    always: &ToolSet,
    turns: &[Range<u32>],
    back: u32,
    sums: &mut RecencyCoverage,
) {
    // The turn in which each tool was last used.
    let mut last = BTreeMap::<u32, usize>::new();
    for (number, turn) in turns.iter().enumerate() {
        let uses = |turn: &Range<u32>| inventory.uses_of(turn.clone()).map(|used| used.tool).collect::<ToolSet>();
        let used = counted_part(timeline, turn).map(|turn| uses(&turn)).unwrap_or_default();
        let is_recent = |tool: &u32| last.get(tool).is_some_and(|at| number - at <= back as usize);
        let missed = used.iter().filter(|tool| !always.contains(tool) && !is_recent(tool)).count() as u64;
        if !used.is_empty() {
            sums.turns_missed.count(missed > 0);
            sums.misses.add(missed, 0);
        }
        last.extend(uses(turn).into_iter().map(|tool| (tool, number)));
    }
}
