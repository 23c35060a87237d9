//! Facts to aggregates: totals that can be checked by hand, tool statistics, follow-up edges, patterns, mined projections,
//! and what recorded responses add up to.

pub mod edge_graph;
pub mod fingerprint_tables;
pub mod quality;
pub mod tables;

pub mod compare;
pub mod edges;
pub mod endpoint_sums;
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
