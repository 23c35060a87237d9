//! devboy reads Claude Code logs, says what happened in them, and proposes a tuned configuration with its evidence.
//!
//! The modules stand in the order in which data flows. Each stage is a function from borrowed rows to owned rows; only
//! [`commands`] touches files for output, the clock and the terminal.

// Foundations.
pub mod error;
pub mod files;
pub mod json;
pub mod lines;
pub mod model;
pub mod pseudonyms;
pub mod seal;
pub mod unpack;
pub mod visible;

// Logs to rows, rows to history, rows to disk and back.
pub mod content;
pub mod extract;
pub mod frames;
pub mod logs;
pub mod tokens;

// History to aggregates, aggregates to findings, findings to a file.
pub mod mine;
pub mod planner;
pub mod policies;
pub mod replay;
pub mod rules;
pub mod settings;
pub mod telemetry;

// The shell around it.
pub mod cli;
pub mod commands;
pub mod context;
pub mod progress;
pub mod report;

#[cfg(test)]
mod tests;
