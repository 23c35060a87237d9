//! What a changed context broke: for every request, what its answer took up from the context in the log and would no
//! longer have found.
//!
//! [`detect`] compares the log's context with the one that was sent and tells which hints lost their targets, [`tally`]
//! adds the breaks up. [`shown`] is the lookup of the blocks of both, [`watch`] what the driver takes along. [`files`]
//! knows which file a call is about and when it was last read, [`ages`] how old the sources of edits are, and how often
//! files are read again without any policy.

pub mod rows;
mod thresholds;

pub mod ages;
pub mod detect;
pub mod files;
pub mod shown;
pub mod tally;
pub mod watch;

pub use crate::whatif::sim::breakage::thresholds::BreakageThresholds;
pub use crate::whatif::sim::breakage::watch::BreakWatch;
pub use detect::Detectors;
