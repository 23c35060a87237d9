//! Outcomes of what-if policies: plain data, counts and integers.

pub mod cost;
pub mod history_trim;
