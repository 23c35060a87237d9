//! What a changed context broke: for every request, what its answer took up from the context in the log and would no
//! longer have found.
//!
//! [`detect`] compares the log's context with the one that was sent, [`shown`] is the lookup of the blocks of both, [`files`]
//! knows which file a call is about and when it was last read, [`tally`] adds the breaks up, [`ages`] says how old the sources
//! of edits are, [`rereads`] how often files are read again without any policy, [`dangling`] which hints lost their
//! targets; [`watch`] is what the driver takes along.

pub mod rows;

pub mod ages;
pub mod detect;
pub mod shown;

pub use crate::whatif::sim::breakage::rows::Sheet;
pub use crate::whatif::sim::breakage::shown::Watch;
pub use detect::Detectors;
