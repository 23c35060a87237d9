//! Outcomes of what-if policies: plain data, counts and integers.

pub mod arg_check;
//pub mod pick_tools;
pub mod tool_filter;
