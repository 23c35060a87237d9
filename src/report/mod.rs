//! How results look: tables in four forms, the JSON envelope, numbers, findings.

pub mod envelope;
pub mod findings;
pub mod fingerprints;
pub mod graph;
pub mod listing;
pub mod mined;
pub mod numbers;
pub mod quality;
pub mod replay;
pub mod table;
