//! Facts to aggregates: totals that can be checked by hand, tool statistics, follow-up edges, mined projections.

pub mod contexts;
pub mod observe;
pub mod overview;
pub mod projections;
mod quantile;
mod repeats;
pub mod totals;
pub mod uses;
