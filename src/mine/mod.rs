//! Facts to aggregates: totals that can be checked by hand, tool statistics, follow-up edges.

pub mod contexts;
mod follow_ups;
pub mod observe;
pub mod overview;
mod quantile;
mod repeats;
pub mod totals;
pub mod uses;
