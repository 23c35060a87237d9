//! The policy `tool-filter`: an always list and somebody's proposals instead of every tool.
//!
//! The visible set of a turn is always ∪ proposed ∪ learned, and a tool for asking for the others. Truth is what was
//! called; a model with fewer tools might have called others. Savings need sizes: without a catalog of the definitions
//! that were really sent they are not estimated, and misses alone are told.

pub mod ready;
pub mod result;
pub mod tables;

pub mod outcome;
pub mod params;

use std::sync::Arc;

use serde_json::json;

use crate::logs::timeline::requests::Timeline;
use crate::whatif::catalog::{Catalog, CatalogRules, DefinitionSource, ToolDefinition};
use crate::whatif::sim::predictors::{
    Foreseen, Markov, Nobody, Predictions, Recency, ReplayedPredictions, Successions, TfCosine,
};
use crate::whatif::sim::view::Stage;
use crate::whatif::tool_filter::params::{Continuation, Order, Params, Predictor, Rules};
use crate::whatif::tool_filter::result::{ListCoverage, ToolFilter};
use crate::whatif::tools::ToolSet;
use crate::whatif::tools::inventory::{Inventory, StopWords};
use crate::whatif::tools::plan::{Expand, Handling, OnEmpty, Selector, ToolPlan};
use crate::whatif::tools::stage::{Chains, Definitions, ToolStage};

pub(crate) use outcome::facts;

/// All that the policy reads besides the timeline.
#[derive(Clone, Copy)]
pub struct FilterInputs<'a> {
    /// Definitions, and where they come from; none: names of the logs alone.
    pub catalog: Option<(&'a Catalog, DefinitionSource)>,
    /// Words of built-in tools.
    pub shipped: &'a Catalog,
    /// Sizes of definitions.
    pub catalog_rules: &'a CatalogRules,
    /// Words that do not count.
    pub stop: &'a StopWords,
    /// Tokens of the static prefix by chain, where known.
    pub prefixes: Option<&'a [u64]>,
    /// Predictions of `predictor=replay:FILE`.
    pub predictions: Option<&'a Predictions>,
}

/// The policy over one timeline.
pub struct Filter {
    params: Params,
    rules: Rules,
    stop: StopWords,
    pub(crate) inventory: Inventory,
    handling: Handling,
    predictions: Predictions,
    successions: Successions,
    prefixes: Option<Vec<u64>>,
    /// By tool: what a shorter description saves.
    trimmed: Vec<u64>,
    fallback_tokens: u64,
    notes: Vec<String>,
}

impl Filter {
    /// Gets ready. The parameters have been checked.
    pub fn new(timeline: &Timeline, params: &Params, rules: &Rules, inputs: FilterInputs<'_>) -> Self {
        let formula = &inputs.catalog_rules.sizes;
        let source = match inputs.catalog {
            None | Some((_, DefinitionSource::Names))
                if params.system_tokens.is_some() && inputs.prefixes.is_some() =>
            {
                DefinitionSource::Inferred
            }
            None => DefinitionSource::Names,
            Some((_, source)) => source,
        };
        let mut inventory = Inventory::new(timeline, inputs.catalog, inputs.shipped, formula, inputs.stop);
        inventory.source = source;
        let always = params.always.iter().map(|name| rules.alias(name)).collect::<Vec<_>>();
        let always = inventory.matching(&always);
        let trimmed = trimmed(&inventory, params, inputs.catalog_rules);
        let mut notes = inputs.catalog.map(|(catalog, _)| catalog.notes()).unwrap_or_default();
        notes.extend(unknown_predictions(inputs.predictions, &inventory));
        Self {
            handling: handling(params, always),
            successions: Successions::new(timeline, &inventory),
            stop: inputs.stop.clone(),
            predictions: inputs.predictions.cloned().unwrap_or_default(),
            prefixes: inputs.prefixes.map(<[u64]>::to_vec),
            fallback_tokens: formula.tokens(&fallback(rules).canonical()),
            params: params.clone(),
            rules: rules.clone(),
            inventory,
            trimmed,
            notes,
        }
    }

    /// A stage for the driver.
    pub fn stage(self: &Arc<Self>) -> Box<dyn Stage> {
        Box::new(ToolStage::new(Arc::clone(self) as Arc<dyn Chains>))
    }

    /// What the tools alone show: misses, sizes, break-even.
    pub fn outcome(&self, timeline: &Timeline) -> ToolFilter {
        outcome::outcome(self, timeline)
    }

    /// What the always list covers, with and without the tools of the last turns.
    pub fn coverage(&self, timeline: &Timeline) -> ListCoverage {
        outcome::coverage(timeline, &self.inventory, &self.handling.always, &self.rules.coverage.recency_turns)
    }

    /// Whether the policy leaves everything as it is.
    fn is_idle(&self) -> bool {
        !self.params.enabled || self.params.skip_cacheable
    }

    fn prefix(&self, chain: u32) -> Option<u64> {
        self.prefixes.as_ref().map(|prefixes| prefixes[chain as usize]).filter(|prefix| *prefix > 0)
    }

    /// Tokens by tool in a chain; those of unknown size have none.
    fn sizes(&self, timeline: &Timeline, chain: u32) -> Vec<Option<u64>> {
        let prefix = self.prefix(chain);
        match (self.inventory.source, self.params.system_tokens) {
            (DefinitionSource::Inferred, Some(system)) => {
                let session = timeline.chains[chain as usize].session;
                let project = timeline.sessions[session as usize].project;
                self.inventory.inferred_sizes(timeline, project, prefix.unwrap_or(0), system)
            }
            (DefinitionSource::Given | DefinitionSource::Logged, _) => {
                self.inventory.sizes(prefix, self.params.catalog.timeline)
            }
            _ => vec![None; self.inventory.tools.len()],
        }
    }

    fn selector<'a>(&'a self, timeline: &'a Timeline, chain: u32) -> Box<dyn Selector + 'a> {
        let inventory = &self.inventory;
        match self.params.predictor {
            Predictor::None => Box::new(Nobody),
            Predictor::Recency => Box::new(Recency { inventory, turns: self.params.recency_turns }),
            Predictor::CacheSim => Box::new(Foreseen { inventory }),
            Predictor::Markov => {
                Box::new(Markov::new(timeline, chain, inventory, &self.successions, self.params.top_k))
            }
            Predictor::Replay(_) => {
                Box::new(ReplayedPredictions { timeline, inventory, predictions: &self.predictions })
            }
            Predictor::TfCosine => Box::new(TfCosine {
                inventory,
                queries: TfCosine::queries(timeline, &self.stop),
                top_k: self.params.top_k,
                min_score_ppm: (self.params.min_score * 1e6).round() as u64,
                stored_messages: self.rules.query.stored_messages,
            }),
        }
    }
}

impl Chains for Filter {
    fn plan(&self, timeline: &Timeline, chain: u32) -> ToolPlan {
        if self.is_idle() {
            return ToolPlan::new(timeline, chain, &self.inventory, &Nobody, &idle(&self.inventory));
        }
        ToolPlan::new(timeline, chain, &self.inventory, &*self.selector(timeline, chain), &self.handling)
    }

    fn definitions(&self, timeline: &Timeline, chain: u32) -> Option<Definitions> {
        if self.is_idle() || self.inventory.source == DefinitionSource::Names {
            return None;
        }
        let tokens = self.sizes(timeline, chain).into_iter().map(|tokens| tokens.unwrap_or(0)).collect::<Vec<_>>();
        let trimmed = self.trimmed.iter().zip(&tokens).map(|(trimmed, tokens)| (*trimmed).min(*tokens)).collect();
        let fallback = if self.params.fallback { self.fallback_tokens } else { 0 };
        Some(Definitions { tokens, fallback, trimmed })
    }

    fn expand(&self) -> Expand {
        self.params.expand
    }

    fn framing_tokens(&self) -> u64 {
        self.rules.retry.framing_tokens
    }

    fn edition(&self, head: &ToolSet) -> u64 {
        let edition = self.inventory.edition(head, self.params.order == Order::Name);
        // Shorter descriptions are other bytes even where every tool is shown.
        if self.trimmed.iter().all(|tokens| *tokens == 0) { edition } else { edition ^ TRIMMED }
    }
}

/// Told apart from sets with whole descriptions.
const TRIMMED: u64 = 1 << 63;

impl Rules {
    /// A tool by its name or another name for it.
    fn alias(&self, name: &str) -> String {
        let name = name.trim();
        self.aliases.get(name).map_or(name, String::as_str).to_owned()
    }
}

fn handling(params: &Params, always: ToolSet) -> Handling {
    Handling {
        always,
        proposed: (params.min_tools, params.max_tools),
        on_empty: OnEmpty::All,
        expand: params.expand,
        retries: if params.fallback { params.max_retries } else { 0 },
        learn: params.learn,
        continuation_all: params.continuation == Continuation::All,
        every_request: false,
    }
}

/// Everything is shown.
fn idle(inventory: &Inventory) -> Handling {
    Handling {
        always: inventory.all(),
        proposed: (0, None),
        on_empty: OnEmpty::All,
        expand: Expand::Fail,
        retries: 0,
        learn: false,
        continuation_all: false,
        every_request: false,
    }
}

fn trimmed(inventory: &Inventory, params: &Params, rules: &CatalogRules) -> Vec<u64> {
    let saved = |tool: &crate::whatif::tools::inventory::Tool| {
        let (tokens, chars) = (tool.tokens?, params.description_chars?);
        Some(tokens - rules.sizes.tokens(&tool.definition.trimmed(chars).canonical()))
    };
    inventory.tools.iter().map(|tool| saved(tool).unwrap_or(0)).collect()
}

fn fallback(rules: &Rules) -> ToolDefinition {
    let parameters = &rules.fallback.parameters;
    let properties = parameters.iter().map(|name| (name.clone(), json!({ "type": "string" })));
    let properties = properties.collect::<serde_json::Map<_, _>>();
    ToolDefinition {
        name: rules.fallback.name.clone(),
        description: rules.fallback.description.clone(),
        schema: Some(json!({ "type": "object", "properties": properties, "required": parameters })),
        ..ToolDefinition::default()
    }
}

fn unknown_predictions(predictions: Option<&Predictions>, inventory: &Inventory) -> Option<String> {
    let unknown = predictions?.unknown(inventory);
    let names = unknown.iter().copied().collect::<Vec<_>>().join(", ");
    (!unknown.is_empty()).then(|| format!("predicted tools that no catalog has were dropped: {names}"))
}
