//! Clearing of tool results: the oldest results of a context are replaced by a marker once all results together grow too
//! large (`--tier micro`).
//!
//! [`stage`] is the rule and applies it to contexts, [`replayed`] finds the clearings of the log again.

pub mod replayed;
pub mod stage;

pub use stage::Micro;
