//! Owns `pipeline_config.toml` (and, in [`claude`], Claude Code's own settings): what may stand in it, what holds where it
//! is silent, and how it is changed without disturbing a byte that nobody asked to change.
//!
//! Read it in this order: [`SettingsFile`] is the text with its places, [`Effective`] is the file laid over the built-in
//! tree, [`Settings`] answers questions about it, [`apply`] edits, [`unified_diff`] shows, [`write_noted`] stores.

pub mod annotations;
pub mod claude {
    //! Owns Claude Code's own `settings.json`: which levers it has, where its files are and which of them wins, and how one is
    //! changed without disturbing a byte that nobody asked to change.

    pub mod file;
    pub mod layers;
    pub mod levers;
    pub mod reversal;
    pub mod strict;
}
pub mod entries;
pub mod finding;
pub mod tool_model;

mod document;
mod draft;
pub mod effective;
pub mod formats;
pub mod journal;
mod lines;
mod lists;
mod outline;
pub mod resolve;
pub mod reversal;
mod schema;
pub mod sections;
pub mod undo;
mod values;
pub mod write;

pub use crate::settings::schema::{CURRENT_VERSION, is_idle};
pub use crate::settings::write::{WantedValue, apply, unified_diff};
pub use document::{SettingsFile, syntax_error};
pub use effective::{Effective, Origin, View, what_if};
pub use journal::{expect_writable, journal_entry, journal_of, journal_path, write_noted};
pub use resolve::{AgentClass, classify_agent};
pub use reversal::{Reversal, reverse};
pub use sections::{Enrichment, Settings, ShapeThresholds, Verbosity};
pub use values::put;
pub use write::{create_private, expect_directory, expect_place, write_output, write_private, write_with_its_mode};
