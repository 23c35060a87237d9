//! Clearing of tool results: the oldest results of a context are replaced by a marker once all results together grow too
//! large (`--tier micro`).
//!
//! [`plan`] is the rule, [`stage`] applies it to contexts, [`replayed`] finds the clearings of the log again.

pub mod plan;
pub mod replayed;
pub mod stage;

pub use stage::Micro;
