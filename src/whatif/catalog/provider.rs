//! Definitions as each provider wants them, and what that does to their size.

use serde_json::{Map, Value, json};

use crate::whatif::arg_check::outcome::{Provider, ProviderSizes, ShapedTool};
use crate::whatif::catalog::read::provider_walk;
use crate::whatif::catalog::{Catalog, CatalogRules, Definition};

/// A definition as it is sent to a provider; for Anthropic without the keywords that the router takes out.
pub fn shaped(definition: &Definition, provider: Provider, rules: &CatalogRules) -> Value {
    match provider {
        Provider::Anthropic => {
            let schema = definition.schema.as_ref().map(|schema| without_keywords(schema, rules));
            Definition { schema, ..definition.clone() }.canonical()
        }
        Provider::Openai => {
            let mut function = declared(definition);
            function.insert("type".into(), "function".into());
            Value::Object(function)
        }
        Provider::Ollama => json!({ "type": "function", "function": declared(definition) }),
        Provider::Gemini => Value::Object(declared(definition)),
    }
}

fn declared(definition: &Definition) -> Map<String, Value> {
    let mut object = Map::from_iter([("name".to_owned(), Value::from(definition.name.as_str()))]);
    if !definition.description.is_empty() {
        object.insert("description".into(), definition.description.as_str().into());
    }
    if let Some(schema) = &definition.schema {
        object.insert("parameters".into(), schema.clone());
    }
    object
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
