//! What another context policy would have saved, cost and broken: the requests of the log are sent again as the policy
//! would have sent them, and every variant is priced by one simulator of the provider's prompt cache.
//!
//! [`view`] is a context as it is about to be sent and what a policy may change in it. [`sizes`] says how large its blocks
//! are, [`drive`] sends every request again, [`cache_knobs`] is what can be set about the cache, [`money`] what tokens cost.

pub mod cache_knobs;
pub mod drive;
pub mod history_trim;
pub mod money;
pub mod sizes;
pub mod view;
