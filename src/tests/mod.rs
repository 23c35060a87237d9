//! The suite: one test binary, commands run in-process.

mod body_shapes;
mod budget;
mod encode_deep;
mod encode_json;
mod encode_text;
mod endpoints;
mod harness;
mod inner_formats;
mod json_cursor;
mod knapsack;
mod lake;
mod legacy_costs;
mod log_builder;
mod log_damage;
mod log_lines;
mod log_sessions;
mod log_totals;
mod no_panic;
mod promises;
mod replay;
mod replay_command;
mod settings;
mod tokens;
mod tune;
