//! Tool definitions: what is known about each tool that a model may be offered, how large that is in its context, and what each
//! provider's way to write them does to their size. They come from files that the user brings ([`read`]) or from what a log
//! quotes ([`read::quoted`]). The shipped catalog has words and schemas in our own wording: its sizes say nothing, and nobody
//! may add them up.

pub mod read;

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::base::client_version::ClientVersion;
use crate::base::error::{Error, Result};
use crate::whatif::arg_check::outcome::{Provider, ProviderSizes, ShapedTool};
use crate::whatif::catalog::read::{DefinitionShape, Spec, provider_walk};

/// Where definitions come from (policies.md 5.2), best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum DefinitionSource {
    /// Files that the user brought.
    Given,
    /// Definitions that the logs quote.
    Logged,
    /// Names used in the logs; the sizes share what the static prefix leaves beside the system prompt.
    Inferred,
    /// Names used in the logs, sizes unknown.
    Names,
}

/// One tool as a model is told about it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ToolDefinition {
    /// Name as it stands in calls.
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments, as it was brought.
    pub schema: Option<Value>,
    /// Words that the author filed it under.
    pub tags: Vec<String>,
    /// Whether the author calls it safe.
    pub safe: Option<bool>,
    /// MCP: `readOnlyHint`.
    pub read_only: Option<bool>,
    /// MCP: `destructiveHint`.
    pub destructive: Option<bool>,
    /// First client version with this definition.
    pub since: Option<ClientVersion>,
    /// First client version without it.
    pub until: Option<ClientVersion>,
    /// Whether its text is what a client sends, so that its size counts.
    pub is_real: bool,
    /// Index into [`Catalog::files`].
    pub file: usize,
}

impl ToolDefinition {
    /// Whether a client of this version has it; unknown versions count as the newest.
    pub fn is_in(&self, version: Option<&ClientVersion>) -> bool {
        let Some(version) = version else { return self.until.is_none() };
        self.since.as_ref().is_none_or(|since| version >= since)
            && self.until.as_ref().is_none_or(|until| version < until)
    }

    /// The same with at most `chars` code points of description.
    #[must_use]
    pub fn trimmed(&self, chars: usize) -> Self {
        Self { description: self.description.chars().take(chars).collect(), ..self.clone() }
    }

    /// The definition in Anthropic's shape, to which sizes refer.
    pub fn canonical(&self) -> Value {
        Value::Object(self.object("input_schema"))
    }

    /// Name, description and schema, the last under a key.
    fn object(&self, schema_key: &str) -> Map<String, Value> {
        let mut object = Map::from_iter([("name".to_owned(), Value::from(self.name.as_str()))]);
        if !self.description.is_empty() {
            object.insert("description".to_owned(), Value::from(self.description.as_str()));
        }
        if let Some(schema) = &self.schema {
            object.insert(schema_key.to_owned(), schema.clone());
        }
        object
    }
}

/// A file of definitions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CatalogFile {
    /// As the user named it.
    pub name: String,
    pub shape: DefinitionShape,
}

/// Definitions in the order in which a client would send them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Catalog {
    /// Where they come from.
    pub files: Vec<CatalogFile>,
    /// The tools. A name stands once, or once per range of client versions.
    pub definitions: Vec<ToolDefinition>,
}

impl Catalog {
    /// Reads files, given as what the user wrote (`[server=NAME:]FILE`) and their text. An error if a file has none of
    /// the known shapes, or two define a tool differently.
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a Spec, &'a str)>) -> Result<Self> {
        let mut catalog = Self::default();
        for (spec, text) in files {
            let (shape, definitions) = read::definitions(spec, text)?;
            catalog.add(&spec.file, shape, definitions)?;
        }
        Ok(catalog)
    }

    /// The shipped built-in tools (`rules/catalogs/claude_code.toml`); their sizes mean nothing.
    pub fn shipped(text: &str, place: &str) -> Result<Self> {
        let mut definitions = read::sheet(text, place)?;
        definitions.iter_mut().for_each(|definition| definition.is_real = false);
        let mut catalog = Self::default();
        catalog.add(place, DefinitionShape::Anthropic, definitions)?;
        Ok(catalog)
    }

    /// Definitions that logs quote, in the order in which they were first seen; one that was in a list comes before one
    /// that was searched for. None if there are none.
    pub fn logged(mut definitions: Vec<ToolDefinition>) -> Option<Self> {
        definitions.sort_by_key(|definition| !definition.is_real);
        let mut seen = BTreeSet::new();
        definitions.retain(|definition| seen.insert(definition.name.clone()));
        let file = CatalogFile { name: "logs".into(), shape: DefinitionShape::Anthropic };
        (!definitions.is_empty()).then(|| Self { files: vec![file], definitions })
    }

    /// Whether the size of any definition counts.
    pub fn has_sizes(&self) -> bool {
        self.definitions.iter().any(|definition| definition.is_real)
    }

    fn add(&mut self, file: &str, shape: DefinitionShape, definitions: Vec<ToolDefinition>) -> Result<()> {
        let index = self.files.len();
        for definition in definitions {
            let definition = ToolDefinition { file: index, ..definition };
            match self.definitions.iter().find(|known| is_rival(known, &definition)) {
                Some(known) if ToolDefinition { file: index, ..known.clone() } == definition => {}
                Some(known) => {
                    let other = self.files.get(known.file).map_or(file, |file| &file.name);
                    let name = &definition.name;
                    return Err(Error::failed(format!("{file}: tool {name} is defined otherwise in {other}"))
                        .hint("leave one of them out; tools of an MCP server need server=NAME:FILE"));
                }
                None => self.definitions.push(definition),
            }
        }
        self.files.push(CatalogFile { name: file.to_owned(), shape });
        Ok(())
    }

    /// The newest definition of a tool.
    pub fn find(&self, name: &str) -> Option<&ToolDefinition> {
        // Gone tools: their last definition.
        self.definitions.iter().filter(|known| known.name == name).max_by_key(|known| known.until.is_none())
    }

    /// This catalog, and definitions of `other` for names that it has not.
    #[must_use]
    pub fn completed(mut self, other: &Self) -> Self {
        let first = self.files.len();
        let known = self.definitions.iter().map(|known| known.name.clone()).collect::<BTreeSet<_>>();
        let missing = other.definitions.iter().filter(|definition| !known.contains(&definition.name));
        let missing = missing.map(|definition| ToolDefinition { file: definition.file + first, ..definition.clone() });
        self.definitions.extend(missing);
        self.files.extend(other.files.iter().cloned());
        self
    }

    /// What the user should know about the files: tools of an MCP server without its prefix meet no call.
    pub fn notes(&self) -> Vec<String> {
        let is_bare = |index: usize| {
            let mut tools = self.definitions.iter().filter(|known| known.file == index).peekable();
            tools.peek().is_some() && tools.all(|known| !known.name.starts_with(read::MCP_PREFIX))
        };
        let mcp = self.files.iter().enumerate();
        let mcp = mcp.filter(|(index, file)| file.shape == DefinitionShape::Mcp && is_bare(*index)).map(|(_, file)| {
            let name = &file.name;
            format!("{name}: tools of an MCP server, but their names lack mcp__SERVER__: write server=NAME:{name}")
        });
        let searched = self.definitions.iter().filter(|definition| !definition.is_real).count();
        let searched = (searched > 0).then(|| {
            format!(
                "definitions in the logs that a tool search brought: {searched}; their words and schemas count, their \
                 sizes do not, since the client had left these tools out of its list"
            )
        });
        mcp.chain(searched).collect()
    }
}

/// Whether two definitions claim the same name in the same versions.
fn is_rival(one: &ToolDefinition, other: &ToolDefinition) -> bool {
    let ends_before = |a: &ToolDefinition, b: &ToolDefinition| matches!((&a.until, &b.since), (Some(end), Some(start)) if end <= start);
    one.name == other.name && !ends_before(one, other) && !ends_before(other, one)
}

/// Constants about definitions (`rules/policies/catalog.toml`).
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct CatalogRules {
    /// How tokens are estimated.
    pub sizes: SizeFormula,
    /// What Anthropic is not sent.
    pub anthropic: AnthropicRules,
    /// Where logs quote definitions.
    pub logged: LoggedRules,
}

/// Tokens of a definition from its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct SizeFormula {
    pub tokens_per_1000_chars: u64,
    pub tokens_per_tool: u64,
}

impl SizeFormula {
    /// Estimated tokens of a definition in some provider's shape, to the nearest.
    pub fn tokens(&self, shaped: &Value) -> u64 {
        let chars = shaped.to_string().chars().count() as u64;
        (chars * self.tokens_per_1000_chars + 500) / 1000 + self.tokens_per_tool
    }
}

/// Keywords that are taken out of schemas.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct AnthropicRules {
    pub removed_keywords: Vec<String>,
}

/// Where logs quote definitions.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct LoggedRules {
    pub search_tools: Vec<String>,
}

/// A definition as it is sent to a provider; for Anthropic without the keywords that the router takes out.
pub fn shaped(definition: &ToolDefinition, provider: Provider, rules: &CatalogRules) -> Value {
    let mut declared = definition.object("parameters");
    match provider {
        Provider::Anthropic => {
            let schema = definition.schema.as_ref().map(|schema| without_keywords(schema, rules));
            ToolDefinition { schema, ..definition.clone() }.canonical()
        }
        Provider::Openai => {
            declared.insert("type".into(), "function".into());
            Value::Object(declared)
        }
        Provider::Ollama => json!({ "type": "function", "function": declared }),
        Provider::Gemini => Value::Object(declared),
    }
}

/// A schema without the keywords that are not sent to Anthropic, at any depth.
pub fn without_keywords(schema: &Value, rules: &CatalogRules) -> Value {
    let mut schema = schema.clone();
    provider_walk(&mut schema, &mut |keywords| {
        keywords.retain(|keyword, _| !rules.anthropic.removed_keywords.contains(keyword));
    });
    schema
}

/// Sizes of all definitions whose text is real, in a provider's shape and beside it as they were brought.
pub fn sizes(catalog: &Catalog, provider: Provider, rules: &CatalogRules) -> ProviderSizes {
    let tools = catalog.definitions.iter().filter(|definition| definition.is_real).map(|definition| ShapedTool {
        tool: definition.name.clone(),
        tokens_brought: rules.sizes.tokens(&definition.canonical()),
        tokens_sent: rules.sizes.tokens(&shaped(definition, provider, rules)),
    });
    ProviderSizes { provider, tools: tools.collect() }
}
