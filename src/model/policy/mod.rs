//! Outcomes of what-if policies: plain data, counts and integers.

pub mod arg_check;
pub mod cost;
pub mod pick_tools;
pub mod tool_filter;
