//! Owns `pipeline_config.toml`: what may stand in it, what holds where it is silent, and how it is changed without
//! disturbing a byte that nobody asked to change.
//!
//! Read it in this order: [`SettingsFile`] is the text with its places, [`Effective`] is the file laid over the built-in
//! tree, [`Settings`] answers questions about it, [`apply`] edits, [`unified_diff`] shows, [`write_atomically`] stores.

pub mod current;
pub mod entries;
pub mod finding;
pub mod tool_model;

mod check;
mod diff;
mod document;
mod draft;
mod edit;
mod effective;
mod journal;
mod lines;
mod lists;
mod outline;
mod pins;
mod resolve;
mod reversal;
mod schema;
mod sections;
mod spell;
mod tree;
mod version;
mod what_if;
mod write;

pub use crate::base::key_path::KeyPath;
pub use crate::base::tokenizer::Bpe;
pub use check::Warning;
pub use diff::unified_diff;
pub use document::SettingsFile;
pub use edit::{Change, NewValue, apply};
pub use effective::{Effective, Origin};
pub use journal::{append_entry, journal_entry, journal_name, journal_of, journal_path, read_journal, write_noted};
pub use resolve::{AgentClass, Chosen, Matched, SessionView, classify_agent};
pub use reversal::{Kept, Reversal, reverse};
pub use sections::{
    AgentAxis, AgentProfile, DataAxis, DataProfile, Dedup, EndpointOverride, Enrichment, HintType, Hints, LlmAxis,
    LlmProfile, Mckp, Priority, Profiles, Settings, ShapeThresholds, Telemetry, Templates, TokenizerAxis,
    TokenizerProfile, Verbosity,
};
pub use version::{CURRENT_VERSION, OLDEST_VERSION};
pub use what_if::what_if;
pub use write::{create_private, write_atomically, write_private, write_private_bytes};
