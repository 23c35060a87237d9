//! Reports of what-if policies for people: one file per policy.

pub mod arg_check;
pub mod pick_tools;
pub mod tool_filter;
