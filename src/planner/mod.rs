//! What could be prefetched of the agent, what of it is worth its tokens, and whether it would have come in time.
//!
//! Everything is a pure function of rows that the caller brings. Read it in this order: [`value_models`] says what is
//! known of a tool, [`candidates`] lists what may come next, [`plan`] chooses within the budget, [`race`] lets the chosen
//! run against the agent in simulated time, [`fail_fast`] refuses what keeps coming back empty. [`published`] is the
//! planner of Paper 3 as it was published, for comparison.

pub mod opportunities;

pub mod prefetches;
pub mod report;

pub mod bound;
pub mod candidates;
pub mod contexts;
pub mod fail_fast;
pub mod intents;
pub mod judged;
pub mod known_tools;
pub mod numbers;
pub mod plan;
pub mod published;
pub mod race;
pub mod selectivity;
pub mod stage;
pub mod trail;
pub mod value_models;
pub mod walk;
mod watch;
