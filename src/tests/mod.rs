//! The suite: one test binary, commands run in-process.

mod body_shapes;
mod harness;
mod json_cursor;
mod lake;
mod log_builder;
mod log_damage;
mod log_lines;
mod log_sessions;
mod log_totals;
mod no_panic;
mod promises;
mod settings;
mod tune;
