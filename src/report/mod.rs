//! How results look: tables in four forms, the JSON envelope, numbers, findings, aggregates.

pub mod calibration;
pub mod envelope;
pub mod escape;
pub mod findings;
pub mod fingerprints;
pub mod graph;
pub mod in_progress;
pub mod listing;
pub mod mined;
pub mod numbers;
pub mod planner;
pub mod policy;
pub mod projections;
pub mod quality;
pub mod replay;
pub mod selectivity;
pub mod table;
