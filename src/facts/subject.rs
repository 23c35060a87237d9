//! A body as encoders see it, and what it says: the value that an encoding must give back.

use std::cell::OnceCell;

use crate::base::body_shape::BodyShape;
use crate::facts::json_tree::{Json, JsonRefusal};
use crate::facts::markdown::Document;

/// What a text says, in the form in which two of them are compared.
#[derive(Clone, PartialEq, Debug)]
pub enum Meaning {
    /// A JSON value: equal trees, numbers by their spelling, keys in any order.
    Json(Json),
    /// Markdown: tables by their trimmed cells, every byte outside of them as it is.
    Markdown(Document),
    /// A text, byte by byte.
    Text(String),
}

/// A body with what was found out about it.
pub struct Subject<'a> {
    /// The text that the model saw.
    pub text: &'a str,
    /// Its shape.
    pub shape: BodyShape,
    json: OnceCell<Result<Json, JsonRefusal>>,
    markdown: OnceCell<Document>,
}

impl<'a> Subject<'a> {
    /// A body of a known shape.
    pub fn new(text: &'a str, shape: BodyShape) -> Self {
        Self { text, shape, json: OnceCell::new(), markdown: OnceCell::new() }
    }

    /// The body as JSON; why not, if it is none that can be re-encoded.
    pub fn json(&self) -> Result<&Json, JsonRefusal> {
        let parsed = self
            .json
            .get_or_init(|| if self.shape.is_json() { Json::parse(self.text) } else { Err(JsonRefusal::NotJson) });
        parsed.as_ref().map_err(|refusal| *refusal)
    }

    /// The body as Markdown.
    pub fn markdown(&self) -> &Document {
        self.markdown.get_or_init(|| Document::parse(self.text))
    }

    /// Whether the body says exactly that.
    pub fn says(&self, meaning: &Meaning) -> bool {
        match meaning {
            Meaning::Json(json) => self.json() == Ok(json),
            Meaning::Markdown(document) => self.markdown() == document,
            Meaning::Text(text) => self.text == text,
        }
    }
}
