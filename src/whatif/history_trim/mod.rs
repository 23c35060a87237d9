//! `history-trim`: what a router does with a long conversation. Messages before the last few exchanges are cut to caps
//! that grow with their recency; what still exceeds the budget is dropped in units, oldest first.
//!
//! The rule is exact in its numbers; the text is not there. How much of a text fits its cap follows from its characters
//! and measured tokens, as if tokens were spread evenly over it. Where it falls on a blank, the router strips a few more
//! characters, so what is kept here is never less. Text that is not in the log (reminders, instructions) is neither
//! counted nor cut, so that the router would drop somewhat earlier.

pub mod outcome;
pub mod tables;

pub mod caps;
pub mod conversation;
pub mod params;
pub mod plan;
pub mod ready;
mod stage;
mod tally;

pub use crate::whatif::history_trim::params::{Sheet, Variant};
pub use params::Params;
pub use plan::Rule;
pub use stage::HistoryTrim;
