//! What another context policy would have saved, cost and broken: the requests of the log are simulated as the policy
//! would have sent them, and every variant is priced by one simulator of the provider's prompt cache.
//!
//! [`laid_out`] is a context as the log says it was sent, [`view`] the same as it is about to be sent, what a policy
//! may change in it, and what a chain begins with that was forked off another ([`shared_list`]). [`sizes`] says how large its blocks
//! are, [`simulator`] is what all runs share, [`driver`] sends every request again, [`run`] is what that comes to,
//! [`cache_sim`] is the cache, [`priors`] what it can know, [`unforeseen`] how often it is missed for no reason in the
//! log, [`unlogged`] what is in no log, [`money`] what tokens cost, [`bill`] what they did cost, [`distance`] where the
//! simulation is off that. [`outcome`] holds a run against that of the log, and any two runs against each other;
//! [`figures`] is what the difference comes to, [`cells`] in which parts of the logs it is clear, [`breakage`] what a
//! changed context lost. [`params`] reads the settings of a policy and says where approximations lean; [`predictors`]
//! tell which tools a request would need.

pub mod bill;
pub mod breakage;
pub mod cache_sim;
pub mod cells;
pub mod cost;
pub mod distance;
pub mod driver;
pub mod figures;
pub mod laid_out;
pub mod money;
pub mod outcome;
pub mod params;
pub mod predictors;
pub mod priors;
pub mod run;
pub mod shared_list;
pub mod simulator;
pub mod sizes;
pub mod unforeseen;
pub mod unlogged;
pub mod view;
