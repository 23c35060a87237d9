//! What a changed context broke: for every request, what its answer took up from the context in the log and would no
//! longer have found.
//!
//! [`detect`] compares the log's context with the one that was sent, tells which hints lost their targets, and adds the breaks
//! up. [`shown`] is the lookup of the blocks of both, and what the driver takes along. [`ages`] knows which file a call is about
//! and when it was last read, how old the sources of edits are, and how often files are read again without any policy.

pub mod rows;

pub mod ages;
pub mod detect;
pub mod shown;

pub use crate::whatif::sim::breakage::rows::Sheet;
pub use crate::whatif::sim::breakage::shown::Watch;
pub use detect::Detectors;
