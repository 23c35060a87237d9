//! Outcomes of what-if policies: plain data, counts and integers.

pub mod calibration;
pub mod cost;
pub mod prompt_cache;
