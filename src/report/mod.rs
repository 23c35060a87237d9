//! How results look: tables in four forms, pages, escapes, the JSON envelope, and what is made to be shared.

pub mod sharing;

pub mod envelope;
pub mod escape;
pub mod html;
mod narrow;
pub mod share;
pub mod table;
pub mod wrapped;

// The logs tell in the same words how many files they lack.
pub use crate::base::numbers;
