//! Compaction: the head of a context is replaced by a summary when the context grows past a trigger.
//!
//! [`params`] and [`sheet`] are what can be set and what is known, [`carry`] says where the kept part begins and
//! takes the log's own compactions out of it, [`stage`] does it to a context, when an attempt is allowed.
//! [`sweep`] tries thresholds. Of the log itself, [`placement`] finds the real
//! compactions again and their sizes, [`real`] what they and those of a virtual run cost and broke.

pub mod outcome;
pub mod tables;

pub mod carry;
pub mod params;
pub mod placement;
pub mod real;
pub mod sheet;
pub mod stage;
pub mod sweep;

pub use sheet::Sheet;
pub use stage::Compaction;
