//! `history-trim`: what a router does with a long conversation. Messages before the last few exchanges are cut to caps
//! that grow with their recency; what still exceeds the budget is dropped in units, oldest first.
//!
//! The rule is exact in its numbers; the text is not there. How much of a text fits its cap follows from its characters
//! and measured tokens, as if tokens were spread evenly over it. Where it falls on a blank, the router strips a few more
//! characters, so what is kept here is never less. Text that is not in the log (reminders, instructions) is neither
//! counted nor cut, so that the router would drop somewhat earlier.

pub mod outcome;
pub mod tables;

mod boundary;
mod breaks;
mod caps;
mod conversation;
mod cutting;
mod params;
mod plan;
mod positions;
mod sheet;
mod stage;
mod sticky;
mod tally;
mod units;
mod verdict;
mod worked;

pub use boundary::{boundary, is_continuation};
pub use caps::{Caps, Overrides};
pub use conversation::{Conversation, Message, Reading};
pub use cutting::{CutNumbers, kept_chars};
pub use outcome::CapNumbers;
pub use params::{CutStyle, Exchanges, Fidelity, Params, SegmentRule};
pub use plan::{Fate, Memory, Plan, Rule};
pub use positions::cap_at;
pub use sheet::{CountNumbers, ReportNumbers, Sheet, Variant};
pub use stage::HistoryTrim;
pub use units::units;
pub use verdict::verdict;
