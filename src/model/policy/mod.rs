//! What the replays of policies find out, as plain data: integers, counts and shares.

pub mod breakage;
pub mod compaction;
