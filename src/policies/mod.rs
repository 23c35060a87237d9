//! What another context policy would have saved, cost and broken: the requests of the log are sent again as the policy
//! would have sent them, and every variant is priced by one simulator of the provider's prompt cache.
//!
//! [`view`] is a context as it is about to be sent and what a policy may change in it. [`sizes`] says how large its blocks
//! are, [`drive`] sends every request again, [`cache_knobs`] is what can be set about the cache, [`money`] what tokens cost, [`outcome`]
//! what the difference comes to. [`knobs`] reads the settings of a policy.
//! are, [`drive`] sends every request again, [`cache_knobs`] is what can be set about the cache, [`money`] what tokens cost.
//! [`breakage`] looks for what a changed context lost. [`compaction`] and [`micro`] are policies; what their stages write
//! down is a [`journal`].

pub mod breakage;
pub mod cache_knobs;
pub mod compaction;
pub mod drive;
pub mod knobs;
pub mod journal;
pub mod micro;
pub mod money;
pub mod outcome;
pub mod sizes;
pub mod arg_check;
pub mod catalog;
pub mod predictors;
pub mod tool_filter;
pub mod tools;
pub mod view;
