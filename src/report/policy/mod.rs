//! Reports of what-if policies for people: one file per policy.

pub mod history_trim;
