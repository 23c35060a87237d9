//! What policies about tool lists share: which tools there are ([`inventory`]), what is known of them ([`Tools`]), what
//! was asked for ([`queries`]), which of them each request would have been shown and missed ([`plan`]), and what that
//! does to contexts ([`stage`]).

pub mod inventory;
pub mod plan;
pub mod queries;
pub mod stage;

use std::collections::BTreeSet;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::frames::input::Input;
use crate::logs::definitions;
use crate::logs::definitions::Quote;
use crate::whatif::arg_check::outcome::{Provider, ProviderSizes};
use crate::whatif::catalog::read::Spec;
use crate::whatif::catalog::{Catalog, CatalogRules, DefinitionSource, read, sizes};
use crate::whatif::tools::inventory::StopWords;

/// Tools, by index into [`inventory::Inventory::tools`], which is catalog order.
pub type ToolSet = BTreeSet<u32>;

/// What is known of tools, for all policies about them.
#[derive(Clone)]
pub struct Tools {
    /// Definitions, and where they come from; none: names of the logs alone. [`DefinitionSource::Names`] where no size among them counts.
    pub catalog: Option<(Catalog, DefinitionSource)>,
    /// In whose shape definitions are measured besides.
    pub provider: Option<Provider>,
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
            crate::base::files::read_to_string(path).map_err(|cause| {
                let hint = "name a file that holds what a server answers to `tools/list`, or `server=NAME:FILE`";
                Error::io("reading", path, &cause).hint(hint)
            })
        };
        let texts = specs.iter().map(text).collect::<Result<Vec<_>>>()?;
        let given = specs.iter().zip(texts.iter().map(String::as_str));
        Ok(Self {
            catalog: if specs.is_empty() { None } else { Some((Catalog::read(given)?, DefinitionSource::Given)) },
            provider: None,
            shipped: data.read("catalogs/claude_code.toml", Catalog::shipped)?,
            rules: data.parsed("policies/catalog.toml")?,
            stop: data.read("policies/stop_words.toml", StopWords::parse)?,
        })
    }

    /// Without files of the user, takes the definitions that the logs quote. The lake has none, so logs are read.
    pub fn look_in(&mut self, input: &mut Input) {
        if self.catalog.is_some() {
            return;
        }
        let take = |quote: Quote<'_>| match quote {
            Quote::Searched(text) => read::quoted(text),
            Quote::Attached(value) => read::attached(value),
        };
        let (found, failures) =
            definitions::read_all(&input.jobs(), &self.rules.logged.search_tools, &input.pool, &take);
        input.leave_out(failures);
        self.catalog = Catalog::logged(found).map(|catalog| {
            let source = if catalog.has_sizes() { DefinitionSource::Logged } else { DefinitionSource::Names };
            (catalog, source)
        });
    }

    /// Sizes of the definitions in the shape of a provider, where one is asked for and there are definitions.
    pub fn provider_sizes(&self) -> Option<ProviderSizes> {
        let (catalog, _) = self.catalog.as_ref().filter(|(catalog, _)| catalog.has_sizes())?;
        Some(sizes(catalog, self.provider?, &self.rules))
    }

    /// Why there are none although somebody asked for them.
    pub fn provider_note(&self) -> Option<String> {
        (self.provider.is_some() && self.provider_sizes().is_none())
            .then(|| "sizes in the shape of a provider need definitions: bring them with --tool-catalog".to_owned())
    }

    /// What the user should know about the files of the catalog.
    pub fn notes(&self) -> Vec<String> {
        self.catalog.as_ref().map(|(catalog, _)| catalog.notes()).unwrap_or_default()
    }
}
