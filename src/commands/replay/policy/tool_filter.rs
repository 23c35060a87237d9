//! `tool-filter`: definitions from wherever they are to be had, the stage, and what a fixed list would cover.

use std::sync::Arc;

use serde_json::json;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::commands::input::Input;
use crate::commands::replay::policy::args::ProviderName;
use crate::commands::replay::policy::simulate::{Finished, Part, Ready, Scene};
use crate::logs::definitions;
use crate::logs::definitions::Quote;
use crate::whatif::arg_check::outcome::{Provider, ProviderSizes};
use crate::whatif::arg_check::tables as arg_check;
use crate::whatif::arg_check::tables::PROVIDER_TITLE;
use crate::whatif::catalog::read::Spec;
use crate::whatif::catalog::{Catalog, CatalogRules, Source, provider, seen};
use crate::whatif::chosen::{Policy, Sheets};
use crate::whatif::sim::predictors::Predictions;
use crate::whatif::simulation::Simulation;
use crate::whatif::tool_filter::params::{Params, Predictor, Rules};
use crate::whatif::tool_filter::tables as report;
use crate::whatif::tool_filter::{Filter, Inputs};
use crate::whatif::tools::inventory::StopWords;

/// Tools that a table shows.
const TOOLS_SHOWN: usize = 20;

/// What is known of tools, for all policies about them.
pub struct Tools {
    /// Definitions, and where they come from: [`Source::Names`] where no size among them counts.
    pub catalog: Option<(Catalog, Source)>,
    /// In whose shape definitions are measured besides.
    pub provider: Option<ProviderName>,
    /// Words of built-in tools.
    pub shipped: Catalog,
    /// Sizes of definitions.
    pub rules: CatalogRules,
    /// Words that do not count.
    pub stop: StopWords,
}

impl Tools {
    /// Reads the user's catalogs and the shipped files.
    ///
    /// # Errors
    /// If a file cannot be read or has none of the known shapes.
    pub fn read(files: &[String], data: &Data) -> Result<Self> {
        let specs = files.iter().map(|file| Spec::parse(file)).collect::<Result<Vec<_>>>()?;
        let text = |spec: &Spec| {
            let path = std::path::Path::new(&spec.file);
            crate::base::files::read_to_string(path).map_err(|cause| Error::io("reading", path, &cause))
        };
        let texts = specs.iter().map(text).collect::<Result<Vec<_>>>()?;
        let given = specs.iter().zip(texts.iter().map(String::as_str));
        Ok(Self {
            catalog: if specs.is_empty() { None } else { Some((Catalog::read(given)?, Source::Given)) },
            provider: None,
            shipped: data.read("catalogs/claude_code.toml", Catalog::shipped)?,
            rules: data.read("policies/catalog.toml", CatalogRules::parse)?,
            stop: data.read("policies/stop_words.toml", StopWords::parse)?,
        })
    }

    /// Without files of the user, takes the definitions that the logs quote. The lake has none, so logs are read.
    pub fn look_in(&mut self, input: &mut Input) {
        if self.catalog.is_some() {
            return;
        }
        let take = |quote: Quote<'_>| match quote {
            Quote::Searched(text) => seen::quoted(text),
            Quote::Attached(value) => seen::attached(value),
        };
        let (found, failures) =
            definitions::read_all(&input.jobs(), &self.rules.logged.search_tools, &input.pool, &take);
        input.leave_out(failures);
        self.catalog = Catalog::logged(found).map(|catalog| {
            let source = if catalog.has_sizes() { Source::Logged } else { Source::Names };
            (catalog, source)
        });
    }

    /// Sizes of the definitions in the shape of a provider, where one is asked for and there are definitions.
    pub fn provider_sizes(&self) -> Option<ProviderSizes> {
        let (catalog, _) = self.catalog.as_ref().filter(|(catalog, _)| catalog.has_sizes())?;
        Some(provider::sizes(catalog, shape(self.provider?), &self.rules))
    }

    /// Why there are none although somebody asked for them.
    pub fn provider_note(&self) -> Option<String> {
        (self.provider.is_some() && self.provider_sizes().is_none())
            .then(|| "sizes in the shape of a provider need definitions: bring them with --tool-catalog".to_owned())
    }

    /// What the policies about tools read.
    pub fn inputs<'a>(&'a self, world: &'a Simulation, predictions: Option<&'a Predictions>) -> Inputs<'a> {
        Inputs {
            catalog: self.catalog.as_ref().map(|(catalog, source)| (catalog, *source)),
            shipped: &self.shipped,
            catalog_rules: &self.rules,
            stop: &self.stop,
            prefixes: world.is_billed.then_some(world.sizes.prefix.as_slice()),
            predictions,
        }
    }
}

/// Makes the policy ready.
///
/// # Errors
/// If a parameter makes no sense, or the file of predictions cannot be read.
pub fn ready<'s>(scene: &'s Scene<'_>, sheets: &Sheets) -> Result<Ready<'s>> {
    let world = scene.world;
    let sheet = sheets.sheet(Policy::ToolFilter);
    let params: Params = sheet.params()?;
    params.check()?;
    let rules: Rules = sheet.read()?;
    let predictions = predictions(&params)?;
    let filter =
        Arc::new(Filter::new(&world.timeline, &params, &rules, scene.tools.inputs(world, predictions.as_ref())));
    let stage = filter.stage();
    let conclude = move |finished: &Finished<'_>| {
        let world = finished.scene.world;
        let found = filter.outcome(&world.timeline);
        let mut summary = report::summary(&found);
        let mut tables = vec![("tools that were missed".to_owned(), report::regret(&found, TOOLS_SHOWN))];
        let mut details = json!(found);
        if let Some(sizes) = finished.scene.tools.provider_sizes() {
            tables.push((PROVIDER_TITLE.to_owned(), arg_check::provider(&sizes)));
            details["provider"] = json!(sizes);
        }
        // Telemetry has no prompts, so it has no turns to look back on.
        if finished.is_named && world.is_billed {
            let (covered, elsewhere) = (filter.coverage(&world.timeline), &rules.coverage.elsewhere);
            summary.push(report::covered(&covered, elsewhere));
            let title = "the always list and tools that were used of late: what turns would have missed";
            tables.push((title.to_owned(), report::coverage(&covered, elsewhere)));
            details["coverage"] = json!(covered);
            details["coverage"]["elsewhere"] = json!(elsewhere);
        }
        Part {
            summary,
            tables,
            formulas: report::break_even(&found),
            notes: found.notes.iter().cloned().chain(finished.scene.tools.provider_note()).collect(),
            not_estimated: found.not_estimated.clone(),
            catalog: Some(found.catalog.source.clone()),
            details,
            ..Part::default()
        }
    };
    Ok(Ready { stage: Some(stage), conclude: Box::new(conclude) })
}

fn predictions(params: &Params) -> Result<Option<Predictions>> {
    let Predictor::Replay(file) = &params.predictor else { return Ok(None) };
    let path = std::path::Path::new(file);
    let text = crate::base::files::read_to_string(path).map_err(|cause| Error::io("reading", path, &cause))?;
    Predictions::parse(&text, file).map(Some)
}

fn shape(name: ProviderName) -> Provider {
    match name {
        ProviderName::Anthropic => Provider::Anthropic,
        ProviderName::Openai => Provider::Openai,
        ProviderName::Ollama => Provider::Ollama,
        ProviderName::Gemini => Provider::Gemini,
    }
}
