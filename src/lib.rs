//! devboy reads Claude Code logs, says what happened in them, what would have happened otherwise, and what to change.
//!
//! The rooms stand in the order in which data flows; a room uses only rooms above it. Whatever belongs to one question (its
//! parameters, its computation, its result, its tables) stands in one folder.

// What everything stands on.
mod base;

// Logs and telemetry to rows, rows to disk and back.
mod facts;
mod frames;
mod logs;
mod telemetry;

// What people configure, and how results look.
mod report;
mod settings;

// The questions.
mod fleet;
mod mine;
mod planner;
mod replay;
mod whatif;

// The bill: what it is made of, and what stands out in it.
mod cost;

// From answers to changes.
mod rules;

// The shell around it.
mod commands;
mod shell;

pub use crate::base::allocator::give_memory_back;
pub use crate::base::pseudonyms::Pseudonyms;
pub use crate::commands::cli;
pub use crate::report::table::terminal_width;
pub use crate::shell::context::{Context, Env};

/// Where fuzzers come in.
#[cfg(fuzzing)]
pub mod readers {
    pub use crate::base::{id, tokenizer};
    pub use crate::facts::{encode, shape};
    pub use crate::frames::packed;
    pub use crate::logs::{assemble, corpus, endpoint, message, read, timeline, value_rules, vocabulary};
    pub use crate::mine::totals;
    pub use crate::settings::{Effective, SettingsFile};
}

#[cfg(test)]
mod tests;
