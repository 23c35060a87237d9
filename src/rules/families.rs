//! Model families as variants of the LLM profile axis (`rules/models.toml`).

use serde::Deserialize;

use crate::base::data::Data;
use crate::base::error::Result;

/// The shipped model families.
///
/// # Errors
/// If `models.toml` does not fit.
pub fn families(data: &Data) -> Result<Vec<Family>> {
    let file = data.file("models.toml")?;
    let families = file.parsed::<Families>()?.model.into_iter();
    Ok(families.map(|family| Family { place: file.place.clone(), ..family }).collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Families {
    model: Vec<Family>,
}

/// A model family as a variant of the LLM profile axis.
#[derive(Deserialize, Debug, Clone, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Name of the variant, in the published spelling.
    pub variant: String,
    /// Tokenizer profile.
    pub tokenizer: String,
    /// See the published schema.
    pub prefer_explicit_keys: bool,
    /// Context window in tokens, where it is known.
    pub context_window: Option<u32>,
    /// See the published schema.
    pub max_inline_nested: Option<u32>,
    /// The file that lists it.
    #[serde(skip)]
    pub place: String,
}
