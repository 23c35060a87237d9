//! The formats in which a body can be written: each a pair of an encoder and a decoder in a file of its own, the
//! register that lists them, and the numbers of `rules/formats.toml`.
//!
//! An encoding counts only if decoding it gives back what the body says; [`prove`] is where that is decided, on the
//! real text, for every format alike. An encoder may therefore be written optimistically: what it loses is refused
//! here.

pub mod choice;
pub mod csv;
pub mod csv_from_md;
pub mod grouped_paths;
pub mod json;
pub mod kv;
pub mod markdown_table;
pub mod mckp_v2;
pub mod mr_diff_fence;
pub mod named_strings;
pub mod numbered_compact;
pub mod pipeline_deep_mckp;

use serde::Deserialize;

use crate::base::data::fitting;
use crate::base::error::{Error, Result};
use crate::facts::subject::{Meaning, Subject};

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
    /// Who knows it.
    pub family: FormatFamily,
    /// Whether [`Params::recursion_depth`] changes what is written.
    pub by_depth: bool,
    /// Writes the body; `None` where the format does not apply.
    pub encode: fn(&Subject<'_>, Params) -> Option<String>,
    /// Reads what [`Format::encode`] wrote, from that text alone; `None` if it is no such text.
    pub decode: fn(&str) -> Option<Meaning>,
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
#[serde(deny_unknown_fields)]
pub struct FormatRules {
    /// See [`Params::numbered_every`].
    pub numbered_every: usize,
    /// Lines that one hint must stand for at least.
    pub range_lines_min: usize,
}

impl FormatRules {
    /// Reads the file; `origin` names it in errors.
    ///
    /// # Errors
    /// If the text does not fit, or a number makes no sense.
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
