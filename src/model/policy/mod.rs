//! Outcomes of what-if policies: plain data, counts and integers.

pub mod arg_check;
pub mod breakage;
pub mod calibration;
pub mod cells;
pub mod compaction;
pub mod cost;
pub mod distance;
pub mod history_trim;
pub mod outcome;
pub mod pick_tools;
pub mod pipeline;
pub mod prompt_cache;
pub mod tool_filter;
pub mod unlogged;
