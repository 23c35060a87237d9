//! What another context policy would have saved, cost and broken: the requests of the log are sent again as the policy
//! would have sent them, and every variant is priced by one simulator of the provider's prompt cache.
//!
//! [`view`] is a context as it is about to be sent and what a policy may change in it. [`sizes`] says how large its blocks
//! are, [`contexts`] lays them out, [`drive`] sends every request again, [`oracle`] is the cache, [`priors`] what it can
//! know, [`cache_knobs`] what can be set about it, [`money`] what tokens cost. [`breakage`] looks for what a changed
//! context lost. [`compaction`] and [`micro`] are policies; what their stages write down is a [`journal`].

pub mod breakage;
pub mod cache_knobs;
pub mod clock;
pub mod compaction;
pub mod contexts;
pub mod drive;
pub mod journal;
pub mod micro;
pub mod money;
pub mod oracle;
pub mod priors;
pub mod sizes;
pub mod view;
