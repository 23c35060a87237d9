//! What another context policy would have saved, cost and broken: the requests of the log are simulated as the policy would
//! have sent them, and every variant is priced by one simulator of the provider's prompt cache.

pub mod cache_sim;
pub mod simulator;

pub mod cost;
pub mod figures;
pub mod outcome;

pub mod bill;
pub mod breakage;
pub mod cells;
pub mod distance;
pub mod laid_out;
pub mod money;
pub mod params;
pub mod predictors;
pub mod priors;
pub mod sizes;
pub mod unforeseen;
pub mod unlogged;
pub mod view;
