//! Facts to aggregates: totals, tool statistics, follow-ups, patterns, projections, sums of recorded responses.

pub mod edge_graph;
pub mod fingerprint_tables;
pub mod quality;
pub mod tables;

pub mod compare;
pub mod edges;
pub mod fields;
pub mod follow_ups;
pub mod observe;
pub mod patterns;
pub mod projections;
pub mod reconcile;
pub mod repeats;
pub mod runnable;
pub mod sessions;
pub mod shuffled;
pub mod sizes;
pub mod tools;
pub mod totals;
