//! The formats in which a body can be written: each a pair of an encoder and a decoder in a file of its own, the register that
//! lists them, a body as encoders see it and what it says, and the numbers of `rules/formats.toml`. An encoding counts only if
//! decoding it gives back what the body says; [`prove`] decides that on the real text, so an encoder may be written
//! optimistically.

pub mod csv;
pub mod csv_from_md;
pub mod grouped_paths;
pub mod json;
pub mod kv;
pub mod markdown_table;
pub mod mckp_v2;
pub mod mr_diff_fence;
mod named_strings;
pub mod numbered_compact;
pub mod pipeline_deep_mckp;

use std::cell::{Cell, OnceCell};

use serde::Deserialize;

use crate::base::body_shape::{BodyShape, KeptLines, Showing};
use crate::base::data::fitting;
use crate::base::error::{Error, Result};
use crate::facts::json_tree::Json;
use crate::facts::markdown::Document;
use crate::facts::quotable::Quotable;
use crate::facts::tokens::Counter;

/// Every format; its place is its number within one run of the program. A new format is a file and a line here.
pub const REGISTER: &[Format] = &[
    json::PRETTY,
    json::COMPACT,
    kv::FORMAT,
    csv::FORMAT,
    markdown_table::FORMAT,
    csv_from_md::FORMAT,
    mckp_v2::FORMAT,
    pipeline_deep_mckp::FORMAT,
    mr_diff_fence::FORMAT,
    numbered_compact::FORMAT,
    grouped_paths::FORMAT,
    named_strings::FORMAT,
];

/// Who knows a format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FormatFamily {
    /// Only something to compare with, never chosen.
    Baseline,
    /// The published pipeline.
    Published,
    /// A later pipeline: chosen only with `--extended-formats`, reported as a row of its own.
    Extended,
}

impl FormatFamily {
    /// Whether its formats may be chosen.
    pub fn is_allowed(self, extended: bool) -> bool {
        match self {
            Self::Baseline => false,
            Self::Published => true,
            Self::Extended => extended,
        }
    }
}

/// What encoders can be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Params {
    /// How deep containers and structured strings are taken apart (`mckp.recursion_depth`).
    pub recursion_depth: usize,
    /// Every how many lines a number is written (`numbered_every` of `rules/formats.toml`).
    pub numbered_every: usize,
}

/// One format.
#[derive(Clone, Copy)]
pub struct Format {
    /// Name in configurations, telemetry and reports.
    pub id: &'static str,
    pub family: FormatFamily,
    /// Whether [`Params::recursion_depth`] changes what is written.
    pub by_depth: bool,
    /// Writes the body; `None` where the format does not apply.
    pub encode: fn(&Subject<'_>, Params) -> Option<String>,
    /// Reads what [`Format::encode`] wrote, from that text alone; `None` if it is no such text.
    pub decode: fn(&str) -> Option<Meaning>,
}

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
    pub shape: BodyShape,
    /// Whether a format [by depth](Format::by_depth) left anything as it was because it lay deeper than was asked for.
    pub is_deeper: Cell<bool>,
    json: OnceCell<Option<Json>>,
    markdown: OnceCell<Document>,
}

impl<'a> Subject<'a> {
    /// A body of a known shape.
    pub fn new(text: &'a str, shape: BodyShape) -> Self {
        Self { text, shape, is_deeper: Cell::new(false), json: OnceCell::new(), markdown: OnceCell::new() }
    }

    /// The body as JSON, if it is such as can be re-encoded.
    pub fn json(&self) -> Option<&Json> {
        let parse = || if self.shape.is_json() { Json::parse(self.text).ok() } else { None };
        self.json.get_or_init(parse).as_ref()
    }

    /// The body as Markdown.
    pub fn markdown(&self) -> &Document {
        self.markdown.get_or_init(|| Document::parse(self.text))
    }

    /// Whether the body says exactly that.
    pub fn says(&self, meaning: &Meaning) -> bool {
        match meaning {
            Meaning::Json(json) => self.json() == Some(json),
            Meaning::Markdown(document) => self.markdown() == document,
            Meaning::Text(text) => self.text == text,
        }
    }
}

/// What came of writing a body in a format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EncodeAttempt {
    /// The format does not apply.
    Refused,
    /// It was written, but reading it does not give back what the body says: never used, and counted.
    Unproven,
    /// The text, which says what the body says.
    Proven(String),
}

/// Writes a body and reads it back.
pub fn attempt(format: &Format, subject: &Subject<'_>, params: Params) -> EncodeAttempt {
    let Some(text) = (format.encode)(subject, params) else { return EncodeAttempt::Refused };
    if says_the_same(format, subject, &text) { EncodeAttempt::Proven(text) } else { EncodeAttempt::Unproven }
}

/// Whether reading what [`Format::encode`] wrote gives back what the body says.
pub fn says_the_same(format: &Format, subject: &Subject<'_>, text: &str) -> bool {
    (format.decode)(text).is_some_and(|read| subject.says(&read))
}

/// Writes a body and proves it: the text, if reading it gives back what the body says.
pub fn prove(format: &Format, subject: &Subject<'_>, params: Params) -> Option<String> {
    (format.encode)(subject, params).filter(|text| says_the_same(format, subject, text))
}

/// One way to write the body.
pub struct EncodingChoice {
    pub id: &'static str,
    pub family: FormatFamily,
    pub outcome: EncodeAttempt,
    /// What the text costs.
    pub tokens: Option<u64>,
    /// What can be quoted from it.
    pub kept: KeptLines,
    /// Whether that is enough for this body.
    pub is_quotable: bool,
}

impl EncodingChoice {
    /// The text, if it is proven.
    pub fn text(&self) -> Option<&str> {
        if let EncodeAttempt::Proven(text) = &self.outcome { Some(text) } else { None }
    }

    /// What came of it, in words.
    pub fn state(&self) -> &'static str {
        match (&self.outcome, self.family) {
            (EncodeAttempt::Refused, _) => "does not apply",
            (EncodeAttempt::Unproven, _) => "does not give the body back: not used",
            (EncodeAttempt::Proven(_), _) if !self.is_quotable => "proven, but not quotable: not used",
            (EncodeAttempt::Proven(_), FormatFamily::Baseline) => "proven (a baseline, never chosen)",
            (EncodeAttempt::Proven(_), FormatFamily::Extended) => "proven (extended)",
            (EncodeAttempt::Proven(_), FormatFamily::Published) => "proven",
        }
    }
}

/// The body in every format, of which so much can be quoted and has to be.
pub fn candidates(
    subject: &Subject<'_>,
    params: Params,
    (quotable, showing): (&Quotable<'_>, Showing),
    counter: &mut Counter,
) -> Vec<EncodingChoice> {
    let candidate = |format: &Format| {
        let outcome = attempt(format, subject, params);
        let (tokens, kept) = match &outcome {
            EncodeAttempt::Proven(text) => (Some(counter.count(text)), quotable.kept(text)),
            EncodeAttempt::Refused | EncodeAttempt::Unproven => (None, KeptLines::Nothing),
        };
        let is_quotable = kept.suits(showing);
        EncodingChoice { id: format.id, family: format.family, outcome, tokens, kept, is_quotable }
    };
    REGISTER.iter().map(candidate).collect()
}

/// The cheapest that may be chosen; none if the body as it is costs no more.
pub fn winner(candidates: &[EncodingChoice], extended: bool, baseline: u64) -> Option<&EncodingChoice> {
    let allowed = candidates.iter().filter(|candidate| candidate.family.is_allowed(extended) && candidate.is_quotable);
    let cheaper = allowed.filter(|candidate| candidate.tokens.is_some_and(|t| t < baseline));
    cheaper.min_by_key(|candidate| candidate.tokens)
}

/// Names of all formats, by number.
pub fn ids() -> Vec<&'static str> {
    REGISTER.iter().map(|format| format.id).collect()
}

/// The number and the format of an id; ids of older configurations are known as well.
pub fn find(id: &str) -> Option<(u8, &'static Format)> {
    let id = ALIASES.iter().find(|(old, _)| *old == id).map_or(id, |(_, new)| new);
    REGISTER.iter().zip(0..).find(|(format, _)| format.id == id).map(|(format, number)| (number, format))
}

/// Other names of formats, and the names that they go by here.
const ALIASES: &[(&str, &str)] =
    &[("deep_mckp", "pipeline_deep_mckp"), ("deep_mckp_inner_table", "mckp_v2"), (mckp_v2::TEMPLATE_ID, "mckp_v2")];

/// The name of a format as a template of L1, which published readers go by.
pub fn template_id(id: &str) -> &str {
    if id == mckp_v2::FORMAT.id { mckp_v2::TEMPLATE_ID } else { id }
}

/// Whether the published pipeline knows the format with this number.
pub fn is_published(format: u8) -> bool {
    REGISTER.get(usize::from(format)).is_some_and(|format| format.family == FormatFamily::Published)
}

/// Whether a format is one of those that the router's `deep_mckp` stands for.
pub fn is_deep(id: &str) -> bool {
    matches!(id, "mckp_v2" | "pipeline_deep_mckp")
}

/// How bodies are written in other ways.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormatRules {
    /// See [`Params::numbered_every`].
    pub numbered_every: usize,
    pub range_lines_min: usize,
}

impl FormatRules {
    /// Reads the file; `origin` names it in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let rules: Self = fitting(text, origin)?;
        if rules.numbered_every == 0 || rules.range_lines_min < 2 {
            return Err(Error::failed(format!("{origin}: numbered_every is at least 1, range_lines_min at least 2")));
        }
        Ok(rules)
    }

    /// What encoders are told; the recursion depth is set per session.
    pub fn params(&self) -> Params {
        Params { recursion_depth: 0, numbered_every: self.numbered_every }
    }
}
