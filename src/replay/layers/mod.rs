//! The layers; those that need no memory share a file. A layer sees the past only: what was offered before, and what the stack tells it.

pub mod exact_dedup;
pub mod memoryless;
pub mod near_ref;
pub mod range_ref;
