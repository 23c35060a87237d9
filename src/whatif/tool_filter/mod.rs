//! The policy `tool-filter`: what is always shown, the proposals of a predictor and what was learned, with a tool for asking
//! for the others. Truth is what was called; a model with fewer tools might have called others. Savings need sizes: without a
//! catalog of the definitions that were really sent, misses alone are told.

pub mod outcome;
pub mod params;
pub mod result;
pub mod tables;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use crate::base::error::{Error, Result};
use crate::base::id::Id;
use crate::logs::timeline::requests::Timeline;
use crate::whatif::arg_check::outcome as arg_check;
use crate::whatif::arg_check::outcome::PROVIDER_TITLE;
use crate::whatif::catalog::{CatalogRules, DefinitionSource, ToolDefinition};
use crate::whatif::chosen::{Policy, PolicyConfigs, PolicyEntry};
use crate::whatif::sim::params::ReadOnlyWith;
use crate::whatif::sim::predictors::{Predictions, Successions, TfCosine, foreseen, recency};
use crate::whatif::sim::view::Stage;
use crate::whatif::simulation::{Finished, PolicyShare, Ready, Simulation};
use crate::whatif::tool_filter::params::{Continuation, Params, Predictor, Rules};
use crate::whatif::tool_filter::result::ListCoverage;
use crate::whatif::tool_filter::tables::{break_even, coverage, regret, summary};
use crate::whatif::tools::inventory::{Inventory, StopWords};
use crate::whatif::tools::plan::{Handling, Selector, ToolPlan, ToolSelection};
use crate::whatif::tools::stage::{Chains, Definitions, ToolStage};
use crate::whatif::tools::{Queries, ToolSet, Tools};

pub(crate) use outcome::facts;

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
    used: BTreeMap<Id, ToolSet>,
    /// By tool: what a shorter description saves.
    trimmed: Vec<u64>,
    fallback_tokens: u64,
    notes: Vec<String>,
}

impl Filter {
    /// Gets ready. The parameters have been checked. `prefixes` are tokens of the static prefix by chain, where known,
    /// `predictions` those of `predictor=replay:FILE`.
    pub fn new(
        timeline: &Timeline,
        params: &Params,
        rules: &Rules,
        tools: &Tools,
        prefixes: Option<&[u64]>,
        predictions: Predictions,
    ) -> Self {
        let mut inventory = Inventory::new(timeline, tools);
        if inventory.source == DefinitionSource::Names && params.system_tokens.is_some() && prefixes.is_some() {
            inventory.source = DefinitionSource::Inferred;
        }
        let always = params.always.iter().map(|name| rules.alias(name)).collect::<Vec<_>>();
        let unknown = inventory.unknown(&always, tools);
        let always = inventory.matching(&always);
        let trimmed = trimmed(&inventory, params, &tools.rules);
        let mut notes = tools.notes();
        notes.extend(unknown);
        notes.extend(unknown_predictions(&predictions, &inventory));
        Self {
            handling: Handling {
                always,
                proposed: (params.min_tools, params.max_tools),
                all_if_empty: true,
                expand: params.expand,
                retries: if params.fallback { params.max_retries } else { 0 },
                learn: params.learn,
                continuation_all: params.continuation == Continuation::All,
                every_request: false,
            },
            successions: Successions::new(timeline, &inventory),
            used: inventory.used_by_project(timeline),
            stop: tools.stop.clone(),
            predictions,
            prefixes: prefixes.map(<[u64]>::to_vec),
            fallback_tokens: tools.rules.sizes.tokens(&fallback(rules).canonical()),
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

    /// Tokens by tool in a chain; those of unknown size count as nothing.
    fn sizes(&self, timeline: &Timeline, chain: u32) -> Vec<u64> {
        let prefix = self.prefix(chain);
        match (self.inventory.source, self.params.system_tokens) {
            (DefinitionSource::Inferred, Some(system)) => {
                let session = timeline.session_of_chain(chain);
                let project = timeline.sessions[session as usize].project;
                self.inventory.inferred_sizes(&self.used[&project], prefix.unwrap_or(0), system)
            }
            (DefinitionSource::Given | DefinitionSource::Logged, _) => {
                self.inventory.sizes(prefix, self.params.catalog.timeline)
            }
            _ => vec![0; self.inventory.tools.len()],
        }
    }

    fn selector<'a>(&'a self, timeline: &'a Timeline, chain: u32) -> Box<Selector<'a>> {
        let Self { params, inventory, successions, predictions, .. } = self;
        match params.predictor {
            _ if self.is_idle() => Box::new(|_, _| ToolSelection::All),
            Predictor::None => Box::new(|_, _| ToolSelection::Tools(Vec::new())),
            Predictor::Recency => Box::new(|turns, _| recency(inventory, turns, params.recency_turns)),
            Predictor::Oracle => Box::new(|turns, _| foreseen(inventory, turns)),
            Predictor::Markov => {
                let session = timeline.session_of_chain(chain);
                let start = timeline.sessions[session as usize].ts_first;
                Box::new(move |turns, _| successions.select(inventory, turns, start, params.top_k))
            }
            Predictor::Replay(_) => Box::new(|turns, _| predictions.select(timeline, inventory, turns)),
            Predictor::TfCosine => {
                let cosine = TfCosine {
                    inventory,
                    queries: Queries::new(timeline, &self.stop, |text| &text.terms),
                    top_k: params.top_k,
                    min_score_ppm: (params.min_score * 1e6).round() as u64,
                    stored_messages: self.rules.query.stored_messages,
                };
                Box::new(move |turns, _| cosine.select(turns))
            }
        }
    }
}

impl Chains for Filter {
    fn plan(&self, timeline: &Timeline, chain: u32) -> ToolPlan {
        ToolPlan::new(timeline, chain, &self.inventory, &*self.selector(timeline, chain), &self.handling)
    }

    fn definitions(&self, timeline: &Timeline, chain: u32) -> Option<Definitions> {
        if self.is_idle() || self.inventory.source == DefinitionSource::Names {
            return None;
        }
        let tokens = self.sizes(timeline, chain);
        let trimmed = self.trimmed.iter().zip(&tokens).map(|(trimmed, tokens)| (*trimmed).min(*tokens)).collect();
        let fallback = if self.params.fallback { self.fallback_tokens } else { 0 };
        let (expand, framing_tokens) = (self.params.expand, self.rules.retry.framing_tokens);
        Some(Definitions { tokens, fallback, trimmed, expand, framing_tokens })
    }

    fn edition(&self, head: &ToolSet) -> u64 {
        let edition = self.inventory.edition(head);
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

fn unknown_predictions(predictions: &Predictions, inventory: &Inventory) -> Option<String> {
    let unknown = predictions.unknown(inventory);
    let names = unknown.iter().copied().collect::<Vec<_>>().join(", ");
    (!unknown.is_empty()).then(|| format!("predicted tools that no catalog has were dropped: {names}"))
}

/// Tools that a table shows.
const TOOLS_SHOWN: usize = 20;

/// Parameters of what is shown and how it comes back: read only where anything is left out.
const CHOOSING: &[&str] = &[
    "predictor",
    "recency_turns",
    "top_k",
    "min_score",
    "min_tools",
    "max_tools",
    "fallback",
    "expand",
    "max_retries",
    "learn",
    "continuation",
];

/// What the policy says of itself.
pub static POLICY: PolicyEntry = PolicyEntry {
    sheet: "policies/tool_filter.toml",
    check: |sheet| sheet.params::<Params>()?.check(),
    read_only_with: &[
        ReadOnlyWith { parameters: &["recency_turns"], only: "predictor=recency", is: |name| name == "recency" },
        ReadOnlyWith {
            parameters: &["top_k"],
            only: "predictor=tf-cosine or markov",
            is: |name| matches!(name, "tf-cosine" | "tf_cosine" | "markov"),
        },
        ReadOnlyWith {
            parameters: &["min_score"],
            only: "predictor=tf-cosine",
            is: |name| matches!(name, "tf-cosine" | "tf_cosine"),
        },
        ReadOnlyWith {
            parameters: &["expand", "max_retries", "learn"],
            only: "fallback=true",
            is: |fallback| fallback == "true",
        },
        ReadOnlyWith {
            parameters: &["max_retries", "learn"],
            only: "expand=retry_append or retry_rebuild",
            is: |expand| expand != "fail",
        },
        ReadOnlyWith { parameters: CHOOSING, only: "skip_cacheable=false", is: |skips| skips == "false" },
        ReadOnlyWith { parameters: CHOOSING, only: "enabled=true", is: |enabled| enabled == "true" },
    ],
    without_logs: None,
    ready,
};

fn ready<'s>(simulation: &'s Simulation<'_>, configs: &PolicyConfigs) -> Result<Ready<'s>> {
    let workload = simulation.workload;
    let sheet = configs.sheet(Policy::ToolFilter);
    let params: Params = sheet.params()?;
    params.check()?;
    let rules: Rules = sheet.read()?;
    let predictions = predictions(&params)?;
    let (timeline, prefixes) = (&workload.timeline, workload.prefixes());
    let filter = Arc::new(Filter::new(timeline, &params, &rules, simulation.tools, prefixes, predictions));
    let stage = filter.stage();
    let conclude = move |finished: &Finished<'_>| {
        let workload = finished.simulation.workload;
        let found = filter.outcome(&workload.timeline);
        let mut summary = summary(&found);
        let mut tables = vec![("tools that were missed".to_owned(), regret(&found, TOOLS_SHOWN))];
        let mut details = json!(found);
        if let Some(sizes) = finished.simulation.tools.provider_sizes() {
            tables.push((PROVIDER_TITLE.to_owned(), arg_check::provider(&sizes)));
            details["provider"] = json!(sizes);
        }
        // Telemetry has no prompts, so it has no turns to look back on.
        if finished.is_named && workload.is_billed {
            let (covered, elsewhere) = (filter.coverage(&workload.timeline), &rules.coverage.elsewhere);
            summary.push(tables::covered(&covered, elsewhere));
            let title =
                "the always list and tools that were used of late: what turns of main threads would have missed";
            tables.push((title.to_owned(), coverage(&covered, elsewhere)));
            details["coverage"] = json!(covered);
            details["coverage"]["elsewhere"] = json!(elsewhere);
        }
        PolicyShare {
            summary,
            tables,
            formulas: break_even(&found),
            notes: found.notes.iter().cloned().chain(finished.simulation.tools.provider_note()).collect(),
            not_estimated: found.not_estimated.clone(),
            catalog: Some(found.catalog.source.clone()),
            details,
            ..PolicyShare::default()
        }
    };
    Ok(Ready { stage: Some(stage), conclude: Box::new(conclude) })
}

fn predictions(params: &Params) -> Result<Predictions> {
    let Predictor::Replay(file) = &params.predictor else { return Ok(Predictions::default()) };
    let path = std::path::Path::new(file);
    let text = crate::base::files::read_to_string(path).map_err(|cause| Error::unread(path, &cause))?;
    Predictions::parse(&text, file)
}
